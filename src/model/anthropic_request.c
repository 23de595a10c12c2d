// anthropic_request: a conversation as the body of POST /v1/messages. Pure: equal input gives equal bytes,
// and the body of the next turn repeats this one up to its cache marks, because prompt caches depend on it.
#include "model/anthropic_int.h"

str anthropic_tools_json(arena *a, const model_tool *tools, size_t n) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        jw_obj(&w);
        jw_kstr(&w, S("name"), tools[i].name);
        jw_kstr(&w, S("description"), tools[i].description);
        jw_key(&w, S("input_schema"));
        jw_raw(&w, tools[i].schema);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    return buf_str(&out);
}

static void cache_mark(jw *w) {
    jw_key(w, S("cache_control"));
    jw_obj(w);
    jw_kstr(w, S("type"), S("ephemeral"));
    jw_end_obj(w);
}

// Whether the API takes the block: it refuses blank text, and thinking that is not exactly its own.
static bool sendable(const model_block *b) {
    switch (b->kind) {
    case BLOCK_TEXT: return str_trim(b->text).n > 0;
    case BLOCK_THINKING:
    case BLOCK_OTHER: return b->raw.n > 0;
    case BLOCK_TOOL_USE:
    case BLOCK_TOOL_RESULT: return true;
    }
    return false;
}

static void write_own_block(jw *w, const model_block *b, bool mark) {
    jw_obj(w);
    if (b->kind == BLOCK_TOOL_RESULT) {
        jw_kstr(w, S("type"), S("tool_result"));
        jw_kstr(w, S("tool_use_id"), b->id);
        jw_kstr(w, S("content"), b->text);
        if (b->is_error) jw_kbool(w, S("is_error"), true);
    } else if (b->kind == BLOCK_TOOL_USE) {
        jw_kstr(w, S("type"), S("tool_use"));
        jw_kstr(w, S("id"), b->id);
        jw_kstr(w, S("name"), b->name);
        jw_key(w, S("input"));
        jw_raw(w, b->bad_input || b->input.n == 0 ? S("{}") : b->input);
    } else {
        jw_kstr(w, S("type"), S("text"));
        jw_kstr(w, S("text"), b->text);
    }
    if (mark) cache_mark(w);
    jw_end_obj(w);
}

// The results of a turn stand before any text of the same message. The mark goes on the last block written.
static void write_blocks(jw *w, const model_message *m, bool mark) {
    const model_block *last = NULL;
    for (int pass = 0; pass < 2; pass++)
        for (vec_each(model_block, b, &m->blocks))
            if (sendable(b) && (b->kind == BLOCK_TOOL_RESULT) == (pass == 0)) last = b;
    for (int pass = 0; pass < 2; pass++) {
        for (vec_each(model_block, b, &m->blocks)) {
            if (!sendable(b) || (b->kind == BLOCK_TOOL_RESULT) != (pass == 0)) continue;
            if (m->role == ROLE_ASSISTANT && b->raw.n)
                jw_raw(w, b->raw);
            else
                write_own_block(w, b, mark && b == last);
        }
    }
}

static bool has_blocks(const model_message *m) {
    for (size_t i = 0; i < m->blocks.n; i++)
        if (sendable(&m->blocks.p[i])) return true;
    return false;
}

// Marks stand on the last two messages of the user: the newer one writes the cache for the next turn, the
// older one is where the turn before wrote it. The API looks back only some twenty blocks from a mark, and
// one answer may hold more calls than that.
static void write_messages(jw *w, const model_messages *messages) {
    const model_message *last_user = NULL, *before = NULL;
    for (size_t i = 0; i < messages->n; i++)
        if (messages->p[i].role == ROLE_USER && has_blocks(&messages->p[i])) {
            before = last_user;
            last_user = &messages->p[i];
        }
    jw_arr(w);
    for (size_t i = 0; i < messages->n; i++) {
        const model_message *m = &messages->p[i];
        if (!has_blocks(m)) continue;
        jw_obj(w);
        jw_kstr(w, S("role"), m->role == ROLE_USER ? S("user") : S("assistant"));
        jw_key(w, S("content"));
        jw_arr(w);
        write_blocks(w, m, m == last_user || m == before);
        jw_end_arr(w);
        jw_end_obj(w);
    }
    jw_end_arr(w);
}

str anthropic_request_json(arena *a, const model_provider *p, const model_request *req) {
    buf out = model_body(a, req);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("model"), req->model);
    jw_kint(&w, S("max_tokens"), req->max_tokens ? req->max_tokens : p->config.max_tokens);
    jw_kbool(&w, S("stream"), true);
    // The order in which the API builds its cache: tools, system, messages.
    if (req->n_tools) {
        jw_key(&w, S("tools"));
        jw_raw(&w, anthropic_tools_json(a, req->tools, req->n_tools));
    }
    if (str_trim(req->system).n) {
        jw_key(&w, S("system"));
        jw_arr(&w);
        jw_obj(&w);
        jw_kstr(&w, S("type"), S("text"));
        jw_kstr(&w, S("text"), req->system);
        cache_mark(&w);
        jw_end_obj(&w);
        jw_end_arr(&w);
    }
    jw_key(&w, S("messages"));
    write_messages(&w, req->messages);
    model_params(&w, p);
    jw_end_obj(&w);
    return buf_str(&out);
}

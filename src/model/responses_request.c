// responses_request: a conversation as the body of POST /v1/responses. Pure: equal input gives equal bytes,
// and the body of the next turn repeats this one up to the bracket that closes `input`, because prompt caches
// depend on it. Nothing is kept by the server (`store: false`), so reasoning travels back with each turn,
// encrypted.
#include "model/responses_int.h"

str responses_tools_json(arena *a, const model_tool *tools, size_t n) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        jw_obj(&w);
        jw_kstr(&w, S("type"), S("function"));
        jw_kstr(&w, S("name"), tools[i].name);
        jw_kstr(&w, S("description"), tools[i].description);
        jw_key(&w, S("parameters"));
        jw_raw(&w, tools[i].schema);
        // The API's default is strict, which takes no schema with members that may be absent.
        jw_kbool(&w, S("strict"), false);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    return buf_str(&out);
}

static void write_message(jw *w, str role, str part, str text) {
    jw_obj(w);
    jw_kstr(w, S("type"), S("message"));
    jw_kstr(w, S("role"), role);
    jw_key(w, S("content"));
    jw_arr(w);
    jw_obj(w);
    jw_kstr(w, S("type"), part);
    jw_kstr(w, S("text"), text);
    jw_end_obj(w);
    jw_end_arr(w);
    jw_end_obj(w);
}

static void write_call(jw *w, const model_block *b) {
    jw_obj(w);
    jw_kstr(w, S("type"), S("function_call"));
    jw_kstr(w, S("call_id"), b->id);
    jw_kstr(w, S("name"), b->name);
    jw_kstr(w, S("arguments"), b->input.n ? b->input : S("{}"));
    jw_end_obj(w);
}

// The API has no mark for an error: the text of a result says it.
static void write_result(jw *w, const model_block *b) {
    jw_obj(w);
    jw_kstr(w, S("type"), S("function_call_output"));
    jw_kstr(w, S("call_id"), b->id);
    jw_kstr(w, S("output"), b->text);
    jw_end_obj(w);
}

// The results of a turn stand before any text of the same message.
static void write_user(jw *w, const model_message *m) {
    for (vec_each(const model_block, b, &m->blocks))
        if (b->kind == BLOCK_TOOL_RESULT) write_result(w, b);
    for (vec_each(const model_block, b, &m->blocks))
        if (b->kind == BLOCK_TEXT && str_trim(b->text).n)
            write_message(w, S("user"), S("input_text"), b->text);
}

static bool sendable(const model_block *b) {
    switch (b->kind) {
    case BLOCK_TEXT: return str_trim(b->text).n > 0;
    case BLOCK_TOOL_USE: return true;
    case BLOCK_THINKING:
    case BLOCK_OTHER: return b->raw.n > 0;
    case BLOCK_TOOL_RESULT: return false;
    }
    return false;
}

// The API refuses reasoning that is not followed by what came of it.
static size_t sent_blocks(const model_blocks *blocks) {
    size_t n = blocks->n;
    while (n && (!sendable(&blocks->p[n - 1]) || blocks->p[n - 1].kind == BLOCK_THINKING)) n--;
    return n;
}

static void write_assistant(jw *w, const model_message *m) {
    size_t n = sent_blocks(&m->blocks);
    for (size_t i = 0; i < n; i++) {
        const model_block *b = &m->blocks.p[i];
        if (!sendable(b)) continue;
        if (b->raw.n)
            jw_raw(w, b->raw);
        else if (b->kind == BLOCK_TOOL_USE)
            write_call(w, b);
        else
            write_message(w, S("assistant"), S("output_text"), b->text);
    }
}

str responses_request_json(arena *a, const model_provider *p, const model_request *req) {
    return responses_request_body(a, p, req, true);
}

str responses_request_body(arena *a, const model_provider *p, const model_request *req, bool stream) {
    buf out = model_body(a, req);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("model"), req->model);
    jw_kint(&w, S("max_output_tokens"), req->max_tokens ? req->max_tokens : p->config.max_tokens);
    jw_kbool(&w, S("stream"), stream);
    jw_kbool(&w, S("store"), false);
    if (!p->plain_reasoning || p->plain_reasoning != str_hash(req->model)) {
        jw_key(&w, S("include"));
        jw_arr(&w);
        jw_str(&w, S("reasoning.encrypted_content"));
        jw_end_arr(&w);
    }
    // The order in which the API builds its cache: tools, instructions, input.
    if (req->n_tools) {
        jw_key(&w, S("tools"));
        jw_raw(&w, responses_tools_json(a, req->tools, req->n_tools));
    }
    if (str_trim(req->system).n) jw_kstr(&w, S("instructions"), req->system);
    jw_key(&w, S("input"));
    jw_arr(&w);
    for (vec_each(const model_message, m, req->messages)) {
        if (m->role == ROLE_USER)
            write_user(&w, m);
        else
            write_assistant(&w, m);
    }
    jw_end_arr(&w);
    model_params(&w, p);
    jw_end_obj(&w);
    return buf_str(&out);
}

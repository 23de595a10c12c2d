// openai_request: a conversation as the body of POST /chat/completions. Pure: equal input gives equal bytes,
// and each element of the next turn's tools and messages repeats this one's, because prompt caches depend on
// it.
#include "model/openai_int.h"

str openai_tools_json(arena *a, const model_tool *tools, size_t n) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        jw_obj(&w);
        jw_kstr(&w, S("type"), S("function"));
        jw_key(&w, S("function"));
        jw_obj(&w);
        jw_kstr(&w, S("name"), tools[i].name);
        jw_kstr(&w, S("description"), tools[i].description);
        jw_key(&w, S("parameters"));
        jw_raw(&w, tools[i].schema);
        jw_end_obj(&w);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    return buf_str(&out);
}

// --- What servers differ in ------------------------------------------------------------------------------

bool openai_is_own(const model_provider *p) {
    str host = p->url.host;
    return str_ieq(host, S("api.openai.com")) || str_ends(host, S(".api.openai.com")) ||
           str_ends(host, S(".openai.azure.com"));
}

// Servers that refuse a message with calls whose reasoning is left out, also where it has text.
static bool demands_reasoning(const model_provider *p) {
    static const str hosts[] = {S_INIT("api.deepseek.com"), S_INIT("api.moonshot.ai"),
                                S_INIT("api.moonshot.cn")};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (str_ieq(p->url.host, hosts[i])) return true;
    return false;
}

// --- Messages --------------------------------------------------------------------------------------------

static void write_text_message(jw *w, str role, str text) {
    jw_obj(w);
    jw_kstr(w, S("role"), role);
    jw_kstr(w, S("content"), text);
    jw_end_obj(w);
}

// The texts of a message as one, blank ones left out.
static str text_of(arena *a, const model_message *m) {
    strs parts = {0};
    for (vec_each(const model_block, b, &m->blocks))
        if (b->kind == BLOCK_TEXT && str_trim(b->text).n) vec_push(a, &parts, b->text);
    return parts.n == 1 ? parts.p[0] : str_join(a, parts.p, parts.n, S("\n\n"));
}

static void write_result(arena *a, jw *w, const model_block *b) {
    // The API has no mark for it.
    str text = b->is_error ? str_fmt(a, "Error: " STR_FMT, STR_ARG(b->text)) : b->text;
    jw_obj(w);
    jw_kstr(w, S("role"), S("tool"));
    jw_kstr(w, S("tool_call_id"), b->id);
    jw_kstr(w, S("content"), text);
    jw_end_obj(w);
}

// Most servers parse the arguments of earlier calls, and refuse the conversation for good when they are no
// JSON object. The model still sees what it wrote.
static str faulty_arguments(arena *a, const model_block *b) {
    if (!b->bad_input) return b->input.n ? b->input : S("{}");
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("invalid_arguments"), b->input);
    jw_end_obj(&w);
    return buf_str(&out);
}

static void write_own_call(jw *w, const model_block *b, str arguments) {
    jw_obj(w);
    jw_kstr(w, S("id"), b->id);
    jw_kstr(w, S("type"), S("function"));
    jw_key(w, S("function"));
    jw_obj(w);
    jw_kstr(w, S("name"), b->name);
    jw_kstr(w, S("arguments"), arguments);
    jw_end_obj(w);
    jw_end_obj(w);
}

static void write_call(arena *a, const model_provider *p, jw *w, const model_block *b) {
    json *raw = NULL;
    if (b->raw.n && json_parse(a, b->raw, 0, &raw, NULL) != DEP_OK) raw = NULL;
    str arguments = json_str(json_get(raw, S("function")), S("arguments"), S(""));
    if (raw && (openai_is_own(p) || (!b->bad_input && str_trim(arguments).n)))
        jw_raw(w, b->raw);
    else
        write_own_call(w, b, openai_is_own(p) ? b->input : faulty_arguments(a, b));
}

// Local servers go on thinking where they were when their reasoning stands before their calls. Some templates
// refuse it beside text; others demand it.
static void write_reasoning(arena *a, const model_provider *p, jw *w, const model_message *m, bool has_text) {
    static const str keys[] = {S_INIT(OPENAI_REASONING_CONTENT), S_INIT(OPENAI_REASONING)};
    if (openai_is_own(p) || (has_text && !demands_reasoning(p))) return;
    for (vec_each(const model_block, b, &m->blocks)) {
        json *raw;
        if (b->kind != BLOCK_THINKING || !b->raw.n || json_parse(a, b->raw, 0, &raw, NULL) != DEP_OK)
            continue;
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
            const json *text = json_get(raw, keys[i]);
            if (!text || text->kind != JSON_STRING) continue;
            jw_kstr(w, keys[i], text->s);
            return;
        }
    }
}

static void write_assistant(arena *a, const model_provider *p, jw *w, const model_message *m) {
    str text = text_of(a, m);
    size_t calls = 0;
    for (vec_each(const model_block, b, &m->blocks)) calls += b->kind == BLOCK_TOOL_USE;
    if (!calls) {
        if (text.n) write_text_message(w, S("assistant"), text);
        return;
    }
    jw_obj(w);
    jw_kstr(w, S("role"), S("assistant"));
    jw_key(w, S("content"));
    if (text.n)
        jw_str(w, text);
    else
        jw_null(w);
    write_reasoning(a, p, w, m, text.n > 0);
    jw_key(w, S("tool_calls"));
    jw_arr(w);
    for (vec_each(const model_block, b, &m->blocks))
        if (b->kind == BLOCK_TOOL_USE) write_call(a, p, w, b);
    jw_end_arr(w);
    jw_end_obj(w);
}

// The results of a turn follow its calls at once, before any text.
static void write_user(arena *a, jw *w, const model_message *m) {
    for (vec_each(const model_block, b, &m->blocks))
        if (b->kind == BLOCK_TOOL_RESULT) write_result(a, w, b);
    str text = text_of(a, m);
    if (text.n) write_text_message(w, S("user"), text);
}

str openai_request_body(arena *a, const model_provider *p, const model_request *req, bool stream) {
    buf out = model_body(a, req);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("model"), req->model);
    jw_kint(&w, openai_is_own(p) ? S("max_completion_tokens") : S("max_tokens"),
            req->max_tokens ? req->max_tokens : p->config.max_tokens);
    jw_kbool(&w, S("stream"), stream);
    if (stream) {
        jw_key(&w, S("stream_options"));
        jw_obj(&w);
        jw_kbool(&w, S("include_usage"), true);
        jw_end_obj(&w);
    }
    if (req->n_tools) {
        jw_key(&w, S("tools"));
        jw_raw(&w, openai_tools_json(a, req->tools, req->n_tools));
    }
    jw_key(&w, S("messages"));
    jw_arr(&w);
    if (str_trim(req->system).n) write_text_message(&w, S("system"), req->system);
    for (vec_each(const model_message, m, req->messages)) {
        if (m->role == ROLE_ASSISTANT)
            write_assistant(a, p, &w, m);
        else
            write_user(a, &w, m);
    }
    jw_end_arr(&w);
    model_params(&w, p);
    jw_end_obj(&w);
    return buf_str(&out);
}

str openai_request_json(arena *a, const model_provider *p, const model_request *req) {
    return openai_request_body(a, p, req, true);
}

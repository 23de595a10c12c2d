// openai_stream: the chunks of one Chat Completions reply made into blocks.
//
//   chunk {choices: [{delta: {content | reasoning_content | refusal | tool_calls}, finish_reason}], usage}* →
//   chunk {choices: [], usage} → [DONE]
//
// A reason to finish or [DONE] makes a reply whole; the chunk with the usage comes after the reason, so that
// reading goes on. A server that answers with one JSON document, asked to or not, is read by the same
// functions: its message is one large delta. Knows nothing of HTTP.
#include "model/openai_int.h"

typedef enum { FORM_UNKNOWN, FORM_EVENTS, FORM_DOCUMENT } form;

typedef struct {
    model_stream h;
    form form;
    buf document;
    openai_scan end; // of the document
    openai_calls calls;
    buf text, thinking;
    str thinking_key; // under which it comes
    str finish;
    bool refused;
} openai_stream;

model_stream *openai_stream_new(arena *a, const model_provider *p, const model_sink *sink) {
    openai_stream *s = NEW(a, openai_stream);
    model_stream_init(&s->h, a, p, sink);
    s->document = buf_new(a, MODEL_REPLY_MAX);
    s->text = buf_new(a, MODEL_REPLY_MAX);
    s->thinking = buf_new(a, MODEL_REPLY_MAX);
    s->calls.a = a;
    return &s->h;
}

// --- Errors ----------------------------------------------------------------------------------------------

bool openai_error_passes(str type) {
    static const str rows[] = {S_INIT("server_error"),
                               S_INIT("rate_limit_error"),
                               S_INIT("rate_limit_exceeded"),
                               S_INIT("overloaded_error"),
                               S_INIT("api_error"),
                               S_INIT("timeout_error"),
                               S_INIT("timeout"),
                               S_INIT("unavailable_error"),
                               S_INIT("service_unavailable"),
                               S_INIT("InternalServerError")};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_eq(type, rows[i])) return true;
    return false;
}

// {"message", "type", "code"}, where the code may be a word or a status of HTTP, or only a text.
static void on_error(openai_stream *s, const json *error) {
    str message = error->kind == JSON_STRING ? error->s : json_str(error, S("message"), S(""));
    str type = json_str(error, S("type"), S("")), code = json_str(error, S("code"), S(""));
    double status = json_num(error, S("code"), 0);
    s->h.facts.passes = openai_error_passes(type) || openai_error_passes(code) || status == 429 ||
                        (status >= 500 && status < 600);
    // The code says more than "invalid_request_error" does.
    str kind = type.n == 0 || model_says_too_long(s->h.scratch, code) ? code : type;
    if (message.n == 0) message = S("no message");
    if (kind.n)
        model_stream_fail(&s->h, STR_FMT ": " STR_FMT, STR_ARG(kind), STR_ARG(message));
    else
        model_stream_fail(&s->h, "error: " STR_FMT, STR_ARG(message));
}

// The error that a chunk or a choice holds; NULL: none.
static const json *error_in(const json *v) {
    const json *error = json_get(v, S("error"));
    if (error && (error->kind == JSON_OBJECT || (error->kind == JSON_STRING && error->s.n))) return error;
    return str_eq(json_str(v, S("object"), S("")), S("error")) ? v : NULL;
}

// --- Content ---------------------------------------------------------------------------------------------

static void add_text(openai_stream *s, str text) {
    if (text.n == 0) return;
    s->h.facts.has_content = true;
    buf_add(&s->text, text);
    model_tell_text(s->h.sink, text);
}

static void add_thinking(openai_stream *s, str key, str text) {
    if (text.n == 0) return;
    if (s->thinking_key.n == 0) s->thinking_key = key;
    if (!str_eq(s->thinking_key, key)) return;
    s->h.facts.has_content = true;
    buf_add(&s->thinking, text);
    model_tell_thinking(s->h.sink, text);
}

// Text, or an array of parts, of which some may be thinking.
static void on_content(openai_stream *s, const json *content) {
    if (!content) return;
    if (content->kind == JSON_STRING) add_text(s, content->s);
    if (content->kind != JSON_ARRAY) return;
    for (const json *part = content->child; part; part = part->next) {
        const json *thought = json_get(part, S("thinking"));
        add_text(s, json_str(part, S("text"), S("")));
        if (!thought) continue;
        // Not echoed: there is no member of a message that takes it back.
        if (thought->kind == JSON_STRING) add_thinking(s, S("thinking"), thought->s);
        if (thought->kind != JSON_ARRAY) continue;
        for (const json *t = thought->child; t; t = t->next)
            add_thinking(s, S("thinking"), json_str(t, S("text"), S("")));
    }
}

static void tell_calls(openai_stream *s, bool all) {
    for (vec_each(openai_call, c, &s->calls.list)) {
        // Its name is whole when its arguments begin.
        if (c->told || !c->name.n || !c->id.n || !(all || c->args.n)) continue;
        c->told = true;
        model_tell_tool(s->h.sink, c->id, buf_str(&c->name));
    }
}

static void on_delta(openai_stream *s, const json *delta, bool whole) {
    static const str keys[] = {S_INIT(OPENAI_REASONING_CONTENT), S_INIT(OPENAI_REASONING)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        add_thinking(s, keys[i], json_str(delta, keys[i], S("")));
    on_content(s, json_get(delta, S("content")));
    str refusal = json_str(delta, S("refusal"), S(""));
    if (refusal.n) {
        s->refused = true;
        add_text(s, refusal);
    }
    bool any;
    dep_err why;
    dep_status status = openai_calls_take(&s->calls, json_get(delta, S("tool_calls")), whole, &any, &why);
    if (any) s->h.facts.has_content = true;
    if (status == DEP_ERR_PROVIDER)
        model_stream_fail(&s->h, "%s", why.msg);
    else if (status != DEP_OK)
        s->h.failed = err_set(&s->h.err, status, "%s", why.msg);
    tell_calls(s, false);
}

static void on_choice(openai_stream *s, const json *choice) {
    int64_t index = 0;
    const json *at = json_get(choice, S("index"));
    // One reply is asked for.
    if (at && at->kind == JSON_NUMBER && (!json_int(at, 0, INT32_MAX, &index) || index != 0)) return;
    const json *delta = json_get(choice, S("delta")), *message = json_get(choice, S("message"));
    if (delta && delta->kind == JSON_OBJECT)
        on_delta(s, delta, false);
    else if (message && !s->h.facts.has_content) // after deltas it says the same again
        on_delta(s, message, true);
    str finish = json_str(choice, S("finish_reason"), S(""));
    if (finish.n) s->finish = str_dup(s->h.a, finish);
    const json *error = error_in(choice);
    if (s->h.failed != DEP_OK) return;
    if (error)
        on_error(s, error);
    else if (str_eq(finish, S("error")))
        model_stream_fail(&s->h, "the server broke the reply off with an error that it does not name");
}

// Counts are of the whole reply, wherever they come; some servers send zeros before they know.
static void on_usage(openai_stream *s, const json *usage) {
    int64_t input = 0, output = 0, cached = 0;
    if (!usage || usage->kind != JSON_OBJECT) return;
    (void)json_int(json_get(usage, S("prompt_tokens")), 0, MODEL_TOKENS_MAX, &input);
    (void)json_int(json_get(usage, S("completion_tokens")), 0, MODEL_TOKENS_MAX, &output);
    const json *details = json_get(usage, S("prompt_tokens_details"));
    if (!json_int(json_get(details, S("cached_tokens")), 0, MODEL_TOKENS_MAX, &cached))
        (void)json_int(json_get(usage, S("prompt_cache_hit_tokens")), 0, MODEL_TOKENS_MAX, &cached);
    if (input == 0 && output == 0) return;
    if (cached > input) cached = input;
    s->h.usage = (model_usage){.input = input - cached, .output = output, .cache_read = cached};
    s->h.facts.has_usage = true;
}

// False when this is no part of a reply.
static bool on_json(openai_stream *s, const json *v) {
    const json *choices = json_get(v, S("choices")), *usage = json_get(v, S("usage"));
    str model = json_str(v, S("model"), S(""));
    if (s->h.model.n == 0) s->h.model = str_dup(s->h.a, model);
    on_usage(s, usage);
    bool has_choices = choices && choices->kind == JSON_ARRAY;
    for (const json *c = has_choices ? choices->child : NULL; c && s->h.failed == DEP_OK; c = c->next)
        on_choice(s, c);
    const json *error = error_in(v);
    if (error && s->h.failed == DEP_OK) on_error(s, error);
    // Nothing comes after the usage.
    if (s->finish.n && s->h.facts.has_usage && has_choices && choices->count == 0) s->h.done = true;
    return has_choices || error;
}

// --- Bytes -----------------------------------------------------------------------------------------------

static bool on_event(void *ctx, const sse_event *e) {
    openai_stream *s = ctx;
    str data = str_trim(e->data);
    bool is_error = str_eq(e->event, S("error"));
    if (str_eq(data, S("[DONE]"))) s->h.done = true;
    if (s->h.done || (data.n == 0 && !is_error)) return !s->h.done;
    json *v;
    dep_err why;
    if (model_stream_json(&s->h, data, &v, &why) != DEP_OK) {
        if (is_error)
            model_stream_fail(&s->h, "error: " STR_FMT, STR_ARG(data.n ? data : S("no message")));
        else if (str_eq(e->event, S("message")))
            model_stream_fail(&s->h, "the stream holds an event that is not JSON (%s)", why.msg);
        // Events of other names are not ours.
    } else {
        (void)on_json(s, v);
        if (is_error && s->h.failed == DEP_OK) on_error(s, v);
    }
    return s->h.failed == DEP_OK && !s->h.done;
}

static void on_document(openai_stream *s) {
    json *v;
    dep_err why;
    arena_reset(s->h.scratch);
    if (json_parse(s->h.scratch, buf_str(&s->document), MODEL_REPLY_MAX, &v, &why) != DEP_OK)
        model_stream_fail(&s->h, "the answer is not JSON (%s)", why.msg);
    else if (!on_json(s, v))
        model_stream_fail(&s->h, "the answer is JSON, but neither a reply nor an error");
    s->h.done = true;
}

// The first byte that is no blank and no byte order mark: no line of events begins with a brace. Returns how
// many bytes stand before it.
static size_t recognise(openai_stream *s, str bytes) {
    static const str passed = S_INIT("\xEF\xBB\xBF \t\r\n");
    size_t i = 0;
    while (i < bytes.n && str_chr(passed, bytes.p[i]) != SIZE_MAX) i++;
    if (i < bytes.n) s->form = bytes.p[i] == '{' ? FORM_DOCUMENT : FORM_EVENTS;
    return i;
}

static void take_bytes(openai_stream *s, str bytes) {
    if (s->form == FORM_UNKNOWN) {
        size_t before = recognise(s, bytes);
        if (s->form == FORM_DOCUMENT) bytes = str_sub(bytes, before, bytes.n);
    }
    if (s->form != FORM_DOCUMENT) {
        model_stream_events(&s->h, bytes, on_event);
        return;
    }
    buf_add(&s->document, str_sub(bytes, 0, openai_scan_feed(&s->end, bytes)));
    if (s->end.closed) on_document(s);
}

dep_status openai_stream_feed(model_stream *m, str bytes, bool *done, dep_err *err) {
    ARENA_CATCH(m->scratch, err);
    openai_stream *s = (openai_stream *)m;
    if (m->failed == DEP_OK && !m->done) take_bytes(s, bytes);
    m->facts.complete = m->done || s->finish.n > 0;
    return model_stream_state(m, done, err);
}

// --- The reply -------------------------------------------------------------------------------------------

static model_stop stop_of(str reason, bool refused, bool has_call) {
    static const struct {
        str reason;
        model_stop stop;
    } rows[] = {
        {S_INIT("stop"), STOP_END},
        {S_INIT("eos"), STOP_END},
        {S_INIT("eos_token"), STOP_END},
        {S_INIT("stop_sequence"), STOP_END},
        {S_INIT("end_turn"), STOP_END},
        {S_INIT("tool_calls"), STOP_TOOL_USE},
        {S_INIT("tool_call"), STOP_TOOL_USE},
        {S_INIT("function_call"), STOP_TOOL_USE},
        {S_INIT("length"), STOP_MAX_TOKENS},
        {S_INIT("max_tokens"), STOP_MAX_TOKENS},
        {S_INIT("model_length"), STOP_MAX_TOKENS},
        {S_INIT("content_filter"), STOP_REFUSAL},
        {S_INIT("refusal"), STOP_REFUSAL},
    };
    model_stop stop = STOP_OTHER;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_eq(reason, rows[i].reason)) stop = rows[i].stop;
    return refused ? STOP_REFUSAL : model_stop_beside(stop, has_call);
}

static void add_thinking_block(openai_stream *s, bool whole, model_reply *ret) {
    model_block b = {.kind = BLOCK_THINKING, .text = buf_str(&s->thinking)};
    if (b.text.n == 0) return;
    if (whole) {
        buf raw = buf_new(s->h.a, 0);
        jw w = jw_new(&raw);
        jw_obj(&w);
        jw_kstr(&w, s->thinking_key, b.text);
        jw_end_obj(&w);
        b.raw = buf_str(&raw);
    }
    vec_push(s->h.a, &ret->blocks, b);
}

// all: the reply went to its end; else only calls whose arguments are whole: half a call must never run.
static bool add_calls(openai_stream *s, bool all, model_reply *ret) {
    bool added = false;
    for (vec_each(openai_call, c, &s->calls.list)) {
        if (!c->name.n || !(all || openai_scan_whole(&c->scan))) continue;
        model_block b = {.kind = BLOCK_TOOL_USE, .id = c->id, .name = buf_str(&c->name)};
        model_block_set_input(s->h.a, &b, buf_str(&c->args));
        b.raw = openai_call_json(s->h.a, c);
        vec_push(s->h.a, &ret->blocks, b);
        added = true;
    }
    return added;
}

static const openai_call *nameless(const openai_stream *s) {
    for (vec_each(const openai_call, c, &s->calls.list))
        if (!c->name.n) return c;
    return NULL;
}

dep_status openai_stream_end(model_stream *m, bool whole, model_reply *ret, dep_err *err) {
    ARENA_CATCH(m->scratch, err);
    openai_stream *s = (openai_stream *)m;
    *ret =
        (model_reply){.usage = s->h.usage, .model = s->h.model, .stop = STOP_OTHER, .stop_text = s->finish};
    uint64_t seed = 0;
    if (s->h.p && s->h.p->clock) s->h.p->clock->random(s->h.p->clock->ctx, &seed, sizeof seed);
    openai_calls_identify(&s->calls, seed);
    bool ended = whole && s->h.failed == DEP_OK && (s->h.done || s->finish.n);
    model_stop stop = stop_of(s->finish, s->refused, true);
    bool broken_off = stop == STOP_MAX_TOKENS || stop == STOP_REFUSAL;
    add_thinking_block(s, ended, ret);
    model_block text = {.kind = BLOCK_TEXT, .text = buf_str(&s->text)};
    if (str_trim(text.text).n) vec_push(s->h.a, &ret->blocks, text);
    bool has_call = add_calls(s, ended && !broken_off, ret);
    if (!whole) return DEP_OK;
    if (s->form == FORM_DOCUMENT && !s->h.done)
        return err_set(err, DEP_ERR_PROVIDER, "the answer ended in the middle of its JSON document");
    if (!ended) return model_stream_early(err);
    const openai_call *bad = nameless(s);
    if (bad)
        return err_set(err, DEP_ERR_PROVIDER, "the reply holds a tool call without a name (id " STR_FMT ")",
                       STR_ARG(model_foreign_message(s->h.a, s->h.p, bad->id)));
    tell_calls(s, true);
    ret->stop = stop_of(s->finish, s->refused, has_call);
    return DEP_OK;
}

// openai_stream: the chunks of one Chat Completions reply made into blocks.
//
//   chunk {choices: [{delta: {content | reasoning_content | refusal | tool_calls}, finish_reason}], usage}* →
//   chunk {choices: [], usage} → [DONE]
//
// A reason to finish or [DONE] makes a reply whole; the chunk with the usage comes after the reason, so that
// reading goes on. A server that answers with one JSON document, asked to or not, is read by the same
// functions: its message is one large delta. Knows nothing of HTTP.
#include "model/openai_int.h"

enum { TOKENS_MAX = 1000 * 1000000 }; // more is a server's mistake

typedef enum { FORM_UNKNOWN, FORM_EVENTS, FORM_DOCUMENT } form;

struct openai_stream {
    arena *a, *scratch; // scratch: one event
    const model_provider *p;
    const model_sink *sink;
    form form;
    sse_reader *sse;
    buf document;
    openai_scan end; // of the document
    openai_calls calls;
    buf text, thinking;
    str thinking_key; // under which it comes
    str model, finish;
    model_usage usage;
    str half; // an escape, half of a character whose rest comes with the next event
    bool has_usage, has_content, refused, done, passes;
    dep_status failed;
    dep_err err;
};

static void free_scratch(void *p) {
    arena_free(((openai_stream *)p)->scratch);
}

openai_stream *openai_stream_new(arena *a, const model_provider *p, const model_sink *sink) {
    openai_stream *s = NEW(a, openai_stream);
    s->a = a;
    s->p = p;
    s->sink = sink;
    arena_defer(a, free_scratch, s); // first: it may be what cannot be had
    s->scratch = arena_new();
    s->sse = sse_new(a, MODEL_EVENT_MAX);
    s->document = buf_new(a, MODEL_REPLY_MAX);
    s->text = buf_new(a, MODEL_REPLY_MAX);
    s->thinking = buf_new(a, MODEL_REPLY_MAX);
    s->calls.a = a;
    return s;
}

[[gnu::format(printf, 2, 3)]] static void fail(openai_stream *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str text = str_vfmt(s->scratch, fmt, ap);
    va_end(ap);
    s->failed =
        err_set(&s->err, DEP_ERR_PROVIDER, STR_FMT, STR_ARG(model_foreign_message(s->scratch, s->p, text)));
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
    s->passes = openai_error_passes(type) || openai_error_passes(code) || status == 429 ||
                (status >= 500 && status < 600);
    // The code says more than "invalid_request_error" does.
    str kind = type.n == 0 || model_says_too_long(s->scratch, code) ? code : type;
    if (message.n == 0) message = S("no message");
    if (kind.n)
        fail(s, STR_FMT ": " STR_FMT, STR_ARG(kind), STR_ARG(message));
    else
        fail(s, "error: " STR_FMT, STR_ARG(message));
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
    s->has_content = true;
    buf_add(&s->text, text);
    if (s->sink && s->sink->text) s->sink->text(s->sink->ctx, text);
}

static void add_thinking(openai_stream *s, str key, str text) {
    if (text.n == 0) return;
    if (s->thinking_key.n == 0) s->thinking_key = key;
    if (!str_eq(s->thinking_key, key)) return;
    s->has_content = true;
    buf_add(&s->thinking, text);
    if (s->sink && s->sink->thinking) s->sink->thinking(s->sink->ctx, text);
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
        if (s->sink && s->sink->tool) s->sink->tool(s->sink->ctx, c->id, buf_str(&c->name));
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
    if (any) s->has_content = true;
    if (status == DEP_ERR_PROVIDER)
        fail(s, "%s", why.msg);
    else if (status != DEP_OK)
        s->failed = err_set(&s->err, status, "%s", why.msg);
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
    else if (message && !s->has_content) // after deltas it says the same again
        on_delta(s, message, true);
    str finish = json_str(choice, S("finish_reason"), S(""));
    if (finish.n) s->finish = str_dup(s->a, finish);
    const json *error = error_in(choice);
    if (s->failed != DEP_OK) return;
    if (error)
        on_error(s, error);
    else if (str_eq(finish, S("error")))
        fail(s, "the server broke the reply off with an error that it does not name");
}

// Counts are of the whole reply, wherever they come; some servers send zeros before they know.
static void on_usage(openai_stream *s, const json *usage) {
    int64_t input = 0, output = 0, cached = 0;
    if (!usage || usage->kind != JSON_OBJECT) return;
    (void)json_int(json_get(usage, S("prompt_tokens")), 0, TOKENS_MAX, &input);
    (void)json_int(json_get(usage, S("completion_tokens")), 0, TOKENS_MAX, &output);
    const json *details = json_get(usage, S("prompt_tokens_details"));
    if (!json_int(json_get(details, S("cached_tokens")), 0, TOKENS_MAX, &cached))
        (void)json_int(json_get(usage, S("prompt_cache_hit_tokens")), 0, TOKENS_MAX, &cached);
    if (input == 0 && output == 0) return;
    if (cached > input) cached = input;
    s->usage = (model_usage){.input = input - cached, .output = output, .cache_read = cached};
    s->has_usage = true;
}

// False when this is no part of a reply.
static bool on_json(openai_stream *s, const json *v) {
    const json *choices = json_get(v, S("choices")), *usage = json_get(v, S("usage"));
    str model = json_str(v, S("model"), S(""));
    if (s->model.n == 0) s->model = str_dup(s->a, model);
    on_usage(s, usage);
    bool has_choices = choices && choices->kind == JSON_ARRAY;
    for (const json *c = has_choices ? choices->child : NULL; c && s->failed == DEP_OK; c = c->next)
        on_choice(s, c);
    const json *error = error_in(v);
    if (error && s->failed == DEP_OK) on_error(s, error);
    // Nothing comes after the usage.
    if (s->finish.n && s->has_usage && has_choices && choices->count == 0) s->done = true;
    return has_choices || error;
}

// --- Bytes -----------------------------------------------------------------------------------------------

static dep_status parse_event(openai_stream *s, str data, json **v, dep_err *why) {
    dep_status status = json_parse(s->scratch, data, MODEL_EVENT_MAX, v, why);
    if (status != DEP_ERR_PARSE) return status;
    str joined = model_join_halves(s->scratch, s->a, data, &s->half);
    return str_eq(joined, data) ? status : json_parse(s->scratch, joined, MODEL_EVENT_MAX, v, why);
}

static bool on_event(void *ctx, const sse_event *e) {
    openai_stream *s = ctx;
    str data = str_trim(e->data);
    bool is_error = str_eq(e->event, S("error"));
    if (str_eq(data, S("[DONE]"))) s->done = true;
    if (s->done || (data.n == 0 && !is_error)) return !s->done;
    arena_reset(s->scratch);
    json *v;
    dep_err why;
    if (parse_event(s, data, &v, &why) != DEP_OK) {
        if (is_error)
            fail(s, "error: " STR_FMT, STR_ARG(data.n ? data : S("no message")));
        else if (str_eq(e->event, S("message")))
            fail(s, "the stream holds an event that is not JSON (%s)", why.msg);
        // Events of other names are not ours.
    } else {
        (void)on_json(s, v);
        if (is_error && s->failed == DEP_OK) on_error(s, v);
    }
    return s->failed == DEP_OK && !s->done;
}

static void on_document(openai_stream *s) {
    json *v;
    dep_err why;
    arena_reset(s->scratch);
    if (json_parse(s->scratch, buf_str(&s->document), MODEL_REPLY_MAX, &v, &why) != DEP_OK)
        fail(s, "the answer is not JSON (%s)", why.msg);
    else if (!on_json(s, v))
        fail(s, "the answer is JSON, but neither a reply nor an error");
    s->done = true;
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
        bool stopped;
        dep_status status = sse_feed(s->sse, bytes, on_event, s, &stopped, &s->err);
        if (s->failed == DEP_OK) s->failed = status;
        return;
    }
    buf_add(&s->document, str_sub(bytes, 0, openai_scan_feed(&s->end, bytes)));
    if (s->end.closed) on_document(s);
}

dep_status openai_stream_feed(openai_stream *s, str bytes, bool *done, dep_err *err) {
    ARENA_CATCH(s->scratch, err);
    if (s->failed == DEP_OK && !s->done) take_bytes(s, bytes);
    if (s->failed != DEP_OK) return err_set(err, s->failed, "%s", s->err.msg);
    *done = s->done;
    return DEP_OK;
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
    if (refused) return STOP_REFUSAL;
    // Servers name the wrong reason: a call is a call, and without one there is nothing to run.
    if (has_call && (stop == STOP_END || stop == STOP_OTHER)) return STOP_TOOL_USE;
    if (!has_call && stop == STOP_TOOL_USE) return STOP_END;
    return stop;
}

static void add_thinking_block(openai_stream *s, bool whole, model_reply *ret) {
    model_block b = {.kind = BLOCK_THINKING, .text = buf_str(&s->thinking)};
    if (b.text.n == 0) return;
    if (whole) {
        buf raw = buf_new(s->a, 0);
        jw w = jw_new(&raw);
        jw_obj(&w);
        jw_kstr(&w, s->thinking_key, b.text);
        jw_end_obj(&w);
        b.raw = buf_str(&raw);
    }
    vec_push(s->a, &ret->blocks, b);
}

// all: the reply went to its end; else only calls whose arguments are whole: half a call must never run.
static bool add_calls(openai_stream *s, bool all, model_reply *ret) {
    bool added = false;
    for (vec_each(openai_call, c, &s->calls.list)) {
        if (!c->name.n || !(all || openai_scan_whole(&c->scan))) continue;
        model_block b = {.kind = BLOCK_TOOL_USE, .id = c->id, .name = buf_str(&c->name)};
        model_block_set_input(s->a, &b, buf_str(&c->args));
        b.raw = openai_call_json(s->a, c);
        vec_push(s->a, &ret->blocks, b);
        added = true;
    }
    return added;
}

static const openai_call *nameless(const openai_stream *s) {
    for (vec_each(const openai_call, c, &s->calls.list))
        if (!c->name.n) return c;
    return NULL;
}

dep_status openai_stream_end(openai_stream *s, bool whole, model_reply *ret, dep_err *err) {
    ARENA_CATCH(s->scratch, err);
    *ret = (model_reply){.usage = s->usage, .model = s->model, .stop = STOP_OTHER, .stop_text = s->finish};
    uint64_t seed = 0;
    if (s->p && s->p->clock) s->p->clock->random(s->p->clock->ctx, &seed, sizeof seed);
    openai_calls_identify(&s->calls, seed);
    bool ended = whole && s->failed == DEP_OK && (s->done || s->finish.n);
    model_stop stop = stop_of(s->finish, s->refused, true);
    bool broken_off = stop == STOP_MAX_TOKENS || stop == STOP_REFUSAL;
    add_thinking_block(s, ended, ret);
    model_block text = {.kind = BLOCK_TEXT, .text = buf_str(&s->text)};
    if (str_trim(text.text).n) vec_push(s->a, &ret->blocks, text);
    bool has_call = add_calls(s, ended && !broken_off, ret);
    if (!whole) return DEP_OK;
    if (s->form == FORM_DOCUMENT && !s->done)
        return err_set(err, DEP_ERR_PROVIDER, "the answer ended in the middle of its JSON document");
    if (!ended)
        return err_set(err, DEP_ERR_NETWORK,
                       "the reply ended early: the stream stopped before its last event");
    const openai_call *bad = nameless(s);
    if (bad)
        return err_set(err, DEP_ERR_PROVIDER, "the reply holds a tool call without a name (id " STR_FMT ")",
                       STR_ARG(model_foreign_message(s->a, s->p, bad->id)));
    tell_calls(s, true);
    ret->stop = stop_of(s->finish, s->refused, has_call);
    return DEP_OK;
}

model_stream_facts openai_stream_facts(const openai_stream *s) {
    return (model_stream_facts){.has_content = s->has_content,
                                .passes = s->passes,
                                .has_usage = s->has_usage,
                                .complete = s->done || s->finish.n > 0};
}

// attempt: one model call as one or more attempts over HTTP. An attempt that failed before the first content
// event, for a reason that passes, is made again after a pause. Knows no API: what an API says and how its
// stream is read comes as a model_wire.
#include "model/model_int.h"
#include <deputy/utf8.h>

// Why an attempt failed.
typedef struct {
    dep_status status;
    dep_err err;
    bool may_retry;
    int64_t wait_ms; // what the server asked for; -1: nothing
    int answered;    // status of HTTP; 0: no answer
} attempt_end;

typedef struct {
    const model_wire *wire;
    model_stream *stream;
} feeding;

static dep_status on_data(void *ctx, str bytes, bool *done, dep_err *err) {
    const feeding *f = ctx;
    return f->wire->feed(f->stream, bytes, done, err);
}

// The text of an answer that is no stream: the API's own message when there is one. Every API here answers
// {"error": {"message", "type", "code"}}, {"error": "…"} or {"message": "…"}.
static str answer_text(arena *a, const model_provider *p, const http_response *r, str *type, str *code) {
    json *body;
    *type = *code = (str){0};
    if (json_parse(a, r->body, MODEL_ERROR_BODY_MAX, &body, NULL) != DEP_OK)
        return model_foreign_message(a, p, r->body);
    const json *error = json_get(body, S("error"));
    *type = json_str(error, S("type"), S(""));
    *code = json_str(error, S("code"), S(""));
    str message = json_str(error, S("message"), json_str(body, S("message"), S("")));
    if (error && error->kind == JSON_STRING) message = error->s;
    if (message.n == 0) message = r->body;
    if (type->n) message = str_fmt(a, STR_FMT ": " STR_FMT, STR_ARG(*type), STR_ARG(message));
    return model_foreign_message(a, p, message);
}

// A segment such as v1, v4 or v1beta.
static bool is_versioned(str base) {
    size_t at = str_find(base, S("://"));
    str path = at == SIZE_MAX ? base : str_sub(base, at + 3, base.n), segment;
    if (!str_cut(path, '/', &segment, &path)) return false;
    for (bool more = true; more;) {
        more = str_cut(path, '/', &segment, &path);
        if (segment.n >= 2 && segment.p[0] == 'v' && segment.p[1] >= '0' && segment.p[1] <= '9') return true;
    }
    return false;
}

str model_api_url(arena *a, const model_provider *p, const char *path) {
    // Base addresses are often copied with their version.
    const char *version = is_versioned(p->url.base) ? "" : "/v1";
    return str_fmt(a, STR_FMT "%s%s", STR_ARG(p->url.base), version, path);
}

str model_url_segment(arena *a, str s) {
    buf out = buf_new(a, 0);
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                     c == '.' || c == '_' || c == '~';
        if (plain)
            buf_addc(&out, (char)c);
        else
            buf_addf(&out, "%%%02X", c);
    }
    return buf_str(&out);
}

// How the servers in use say that the conversation does not fit.
bool model_says_too_long(arena *a, str text) {
    static const char *const words[] = {
        "context_length_exceeded", "context length",       "context window",        "context size",
        "exceed_context_size",     "prompt is too long",   "input is too long",     "too many tokens",
        "maximum context",         "maximum model length", "maximum prompt length", "input token count",
        "reduce the length of",    "`inputs` tokens"};
    text = str_lower(a, text);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (str_find(text, str_z(words[i])) != SIZE_MAX) return true;
    return false;
}

static const char *hint_of(int status) {
    if (status == 401 || status == 403) return " (check the key)";
    if (status == 404) return " (check the model's name and the url)";
    if (status >= 300 && status < 400) return " (the url leads elsewhere; configure the final one)";
    return "";
}

static void settle_answer(arena *a, const model_provider *p, const model_wire *w, const http_response *r,
                          model_reply *ret, attempt_end *end) {
    str type, code, text = answer_text(a, p, r, &type, &code);
    end->may_retry = r->status == 429 || r->status >= 500 || w->error_passes(type);
    ret->too_long = (r->status == 400 || r->status == 413 || r->status == 422 || r->status == 500) &&
                    (model_says_too_long(a, code) || model_says_too_long(a, text));
    // Money that is used up does not come back within minutes, although the status says so.
    bool used_up = str_eq(type, S("insufficient_quota")) || str_eq(code, S("insufficient_quota"));
    if (ret->too_long || used_up) end->may_retry = false;
    end->wait_ms = r->retry_after_ms;
    end->status = err_set(&end->err, DEP_ERR_PROVIDER, "the API answered %d%s" STR_FMT "%s", r->status,
                          text.n ? ": " : "", STR_ARG(text), hint_of(r->status));
}

static void settle_stream(const model_wire *w, model_stream *stream, dep_status status, model_reply *ret,
                          attempt_end *end) {
    model_stream_facts facts = stream->facts;
    // Silence and a broken connection after the last that was needed take nothing away.
    bool whole =
        status == DEP_OK || (facts.complete && (status == DEP_ERR_NETWORK || status == DEP_ERR_TIMEOUT));
    dep_status ended = w->end(stream, whole, ret, &end->err);
    end->status = whole ? ended : status;
    if (end->status == DEP_OK) return;
    if (whole || facts.passes) end->may_retry = true;
    if (facts.has_content) end->may_retry = false;
}

// Four bytes a token is the usual rule of thumb.
static void estimate_usage(str body, model_reply *ret) {
    size_t out = 0;
    for (size_t i = 0; i < ret->blocks.n; i++) out += ret->blocks.p[i].text.n + ret->blocks.p[i].input.n;
    ret->usage = (model_usage){
        .input = (int64_t)(body.n / 4 + 1), .output = (int64_t)(out / 4 + 1), .estimated = true};
}

static attempt_end attempt(model_provider *p, arena *a, const model_wire *w, const model_sink *sink,
                           model_reply *ret) {
    str headers[MODEL_HEADERS_MAX] = {S("user-agent: deputy")};
    size_t n = 1;
    if (!w->get) headers[n++] = S("content-type: application/json");
    headers[n++] = w->json_answer ? S("accept: application/json") : S("accept: text/event-stream");
    for (size_t i = 0; i < w->n_headers && n < MODEL_HEADERS_MAX; i++) headers[n++] = w->headers[i];
    feeding f = {.wire = w, .stream = w->open(a, p, sink)};
    http_request rq = {
        .url = w->url,
        .loopback = p->url.loopback,
        .headers = headers,
        .n_headers = n,
        .get = w->get,
        .body = w->body,
        .ca_file = p->config.ca_file,
        .connect_ms = p->config.connect_ms,
        .first_byte_ms = p->config.first_byte_ms,
        .idle_ms = p->config.idle_ms,
        .max_body = w->json_answer ? MODEL_JSON_MAX : MODEL_REPLY_MAX,
        .max_error_body = MODEL_ERROR_BODY_MAX,
        .cancelled = sink ? sink->cancelled : NULL,
        .cancelled_ctx = sink ? sink->ctx : NULL,
        .data = on_data,
        .data_ctx = &f,
    };
    attempt_end end = {.wait_ms = -1};
    http_response r;
    dep_status status = http_send(p->http, a, &rq, &r, &end.err);
    end.may_retry = r.may_retry;
    end.answered = r.status;
    if (status == DEP_OK && r.status != 200) {
        settle_answer(a, p, w, &r, ret, &end);
        return end;
    }
    settle_stream(w, f.stream, status, ret, &end);
    model_stream_facts facts = f.stream->facts;
    // Also what was cut off has been paid for.
    if (!facts.has_usage && (end.status == DEP_OK || facts.has_content)) estimate_usage(w->body, ret);
    if (end.status == DEP_ERR_PROVIDER && model_says_too_long(a, str_z(end.err.msg))) ret->too_long = true;
    if (end.status == DEP_ERR_NETWORK && status == DEP_OK && r.content_type.n && !w->json_answer &&
        !str_eq(r.content_type, S("text/event-stream")) && !facts.has_content) {
        end.may_retry = false;
        end.status = err_set(&end.err, DEP_ERR_PROVIDER,
                             "the API answered " STR_FMT " where a stream of events was expected",
                             STR_ARG(model_foreign_message(a, p, r.content_type)));
    }
    return end;
}

// answered: the HTTP status of the last attempt; may be NULL.
static dep_status attempts(model_provider *p, arena *a, const model_wire *w, const model_sink *sink,
                           model_reply *ret, int *answered, dep_err *err) {
    for (int n = 0;; n++) {
        *ret = (model_reply){0};
        attempt_end end = attempt(p, a, w, sink, ret);
        if (answered) *answered = end.answered;
        if (end.status == DEP_OK) return DEP_OK;
        if (end.status == DEP_ERR_CANCELLED) return err_set(err, DEP_ERR_CANCELLED, "stopped");
        int64_t wait = end.wait_ms >= 0 ? end.wait_ms : model_backoff_ms(p, n);
        bool too_long = end.may_retry && wait > MODEL_RETRY_AFTER_MAX_MS;
        if (end.may_retry && n < MODEL_RETRY_MAX && !too_long) {
            if (!model_wait(sink, wait)) return err_set(err, DEP_ERR_CANCELLED, "stopped");
            continue;
        }
        str key = p->config.key;
        str text = secret_redact(a, str_z(end.err.msg), &key, 1);
        if (too_long)
            text = str_fmt(a, STR_FMT "; it asks to wait %lld s, which is too long to do here", STR_ARG(text),
                           (long long)((wait + 999) / 1000));
        else if (n > 0)
            text = str_fmt(a, STR_FMT " (after %d attempts)", STR_ARG(text), n + 1);
        return err_set(err, end.status, STR_FMT ": " STR_FMT, STR_ARG(p->config.name), STR_ARG(text));
    }
}

dep_status model_attempts(model_provider *p, arena *a, const model_wire *w, const model_sink *sink,
                          model_reply *ret, dep_err *err) {
    return attempts(p, a, w, sink, ret, NULL, err);
}

// --- One JSON document -----------------------------------------------------------------------------------

// The wire of a GET: collects the body, which becomes the one text block of the reply.
typedef struct {
    model_stream h;
    buf text;
} document;

static model_stream *document_open(arena *a, const model_provider *p, const model_sink *sink) {
    (void)p, (void)sink;
    document *d = NEW(a, document);
    // Nothing is to be estimated.
    *d = (document){.h = {.a = a, .facts.has_usage = true}, .text = buf_new(a, MODEL_JSON_MAX)};
    return &d->h;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type is model_wire's
static dep_status document_feed(model_stream *s, str bytes, bool *done, dep_err *err) {
    (void)done, (void)err;
    buf_add(&((document *)s)->text, bytes);
    return DEP_OK;
}

static dep_status document_end(model_stream *s, bool whole, model_reply *ret, dep_err *err) {
    (void)whole, (void)err;
    document *d = (document *)s;
    model_block b = {.kind = BLOCK_TEXT, .text = buf_str(&d->text)};
    vec_push(s->a, &ret->blocks, b);
    return DEP_OK;
}

static bool never_passes(str type) {
    (void)type;
    return false;
}

dep_status model_get_json(model_provider *p, arena *a, str url, const str *headers, size_t n,
                          const model_sink *sink, json **ret, dep_err *err) {
    model_wire wire = {.url = url,
                       .headers = headers,
                       .n_headers = n,
                       .json_answer = true,
                       .get = true,
                       .open = document_open,
                       .feed = document_feed,
                       .end = document_end,
                       .error_passes = never_passes};
    model_reply reply;
    int answered = 0;
    dep_status status = attempts(p, a, &wire, sink, &reply, &answered, err);
    if (status == DEP_ERR_PROVIDER && (answered == 404 || answered == 405)) {
        if (err) err->status = DEP_ERR_NOT_FOUND;
        return DEP_ERR_NOT_FOUND;
    }
    TRY(status);
    dep_err why;
    str text = reply.blocks.n ? reply.blocks.p[0].text : (str){0};
    if (json_parse(a, text, MODEL_JSON_MAX, ret, &why) != DEP_OK)
        return err_set(err, DEP_ERR_PROVIDER, STR_FMT ": the answer is not JSON (%s)",
                       STR_ARG(p->config.name), why.msg);
    return DEP_OK;
}

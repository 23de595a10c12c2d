// anthropic: model calls through the Anthropic Messages API, streaming. One call is one or more attempts: an
// attempt that failed before the first content event, for a reason that passes, is made again after a pause.
// Knows the wire; the request's text and the events are the business of anthropic_request and
// anthropic_stream.
#include "model/anthropic_int.h"

// Why an attempt failed.
typedef struct {
    dep_status status;
    dep_err err;
    bool may_retry;
    int64_t wait_ms; // what the server asked for; -1: nothing
} attempt_end;

static str messages_url(arena *a, const model_provider *p) {
    // Base addresses are often copied with their version.
    const char *path = str_ends(p->url.base, S("/v1")) ? "/messages" : "/v1/messages";
    return str_fmt(a, STR_FMT "%s", STR_ARG(p->url.base), path);
}

static dep_status on_data(void *ctx, str bytes, bool *done, dep_err *err) {
    return anthropic_stream_feed(ctx, bytes, done, err);
}

// The text of an answer that is no stream: the API's own message when there is one.
static str answer_text(arena *a, const model_provider *p, const http_response *r, str *type) {
    json *body;
    *type = (str){0};
    if (json_parse(a, r->body, MODEL_ERROR_BODY_MAX, &body, NULL) != DEP_OK)
        return model_foreign_message(a, p, r->body);
    const json *error = json_get(body, S("error"));
    *type = json_str(error, S("type"), S(""));
    str message = json_str(error, S("message"), json_str(body, S("message"), S("")));
    if (message.n == 0) message = r->body;
    if (type->n) message = str_fmt(a, STR_FMT ": " STR_FMT, STR_ARG(*type), STR_ARG(message));
    return model_foreign_message(a, p, message);
}

static const char *hint_of(int status) {
    if (status == 401 || status == 403) return " (check the key)";
    if (status == 404) return " (check the model's name and the url)";
    if (status >= 300 && status < 400) return " (the url leads elsewhere; configure the final one)";
    return "";
}

static void settle_answer(arena *a, const model_provider *p, const http_response *r, attempt_end *end) {
    str type, text = answer_text(a, p, r, &type);
    end->may_retry = r->status == 429 || r->status >= 500 || anthropic_error_passes(type);
    end->wait_ms = r->retry_after_ms;
    end->status = err_set(&end->err, DEP_ERR_PROVIDER, "the API answered %d%s" STR_FMT "%s", r->status,
                          text.n ? ": " : "", STR_ARG(text), hint_of(r->status));
}

static void settle_stream(anthropic_stream *s, dep_status status, model_reply *ret, attempt_end *end) {
    bool whole = status == DEP_OK;
    dep_status ended = anthropic_stream_end(s, whole, ret, &end->err);
    end->status = whole ? ended : status;
    if (end->status == DEP_OK) return;
    if (whole || anthropic_stream_overloaded(s)) end->may_retry = true;
    if (anthropic_stream_has_content(s)) end->may_retry = false;
}

static attempt_end attempt(model_provider *p, arena *a, str body, const model_sink *sink, model_reply *ret) {
    const str headers[] = {
        S("content-type: application/json"),
        S("accept: text/event-stream"),
        S("anthropic-version: 2023-06-01"),
        S("user-agent: deputy"),
        str_fmt(a, "x-api-key: " STR_FMT, STR_ARG(p->config.key)),
    };
    anthropic_stream *s = anthropic_stream_new(a, p, sink);
    http_request rq = {
        .url = messages_url(a, p),
        .loopback = p->url.loopback,
        .headers = headers,
        .n_headers = sizeof headers / sizeof *headers - (p->config.key.n == 0),
        .body = body,
        .ca_file = p->config.ca_file,
        .connect_ms = p->config.connect_ms,
        .first_byte_ms = p->config.first_byte_ms,
        .idle_ms = p->config.idle_ms,
        .max_body = MODEL_REPLY_MAX,
        .max_error_body = MODEL_ERROR_BODY_MAX,
        .cancelled = sink ? sink->cancelled : NULL,
        .cancelled_ctx = sink ? sink->ctx : NULL,
        .data = on_data,
        .data_ctx = s,
    };
    attempt_end end = {.wait_ms = -1};
    http_response r;
    dep_status status = http_post(p->http, a, &rq, &r, &end.err);
    end.may_retry = r.may_retry;
    if (status == DEP_OK && r.status != 200) {
        settle_answer(a, p, &r, &end);
        return end;
    }
    settle_stream(s, status, ret, &end);
    if (end.status == DEP_OK && !anthropic_stream_has_usage(s)) {
        // Four bytes a token is the usual rule of thumb.
        size_t out = 0;
        for (size_t i = 0; i < ret->blocks.n; i++) out += ret->blocks.p[i].text.n + ret->blocks.p[i].input.n;
        ret->usage = (model_usage){
            .input = (int64_t)(body.n / 4 + 1), .output = (int64_t)(out / 4 + 1), .estimated = true};
    }
    if (end.status == DEP_ERR_NETWORK && status == DEP_OK && r.content_type.n &&
        !str_eq(r.content_type, S("text/event-stream")) && !anthropic_stream_has_content(s)) {
        end.may_retry = false;
        end.status = err_set(&end.err, DEP_ERR_PROVIDER,
                             "the API answered " STR_FMT " where a stream of events was expected",
                             STR_ARG(model_foreign_message(a, p, r.content_type)));
    }
    return end;
}

static dep_status anthropic_call(model_provider *p, arena *a, const model_request *req,
                                 const model_sink *sink, model_reply *ret, dep_err *err) {
    str body = anthropic_request_json(a, p, req);
    for (int n = 0;; n++) {
        *ret = (model_reply){0};
        attempt_end end = attempt(p, a, body, sink, ret);
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

const model_api model_api_anthropic = {
    .api = "anthropic",
    .default_url = "https://api.anthropic.com",
    .call = anthropic_call,
    .tools_json = anthropic_tools_json,
    .request_json = anthropic_request_json,
};

// openai: model calls through Chat Completions, streaming, as OpenAI and nearly every local server speak it.
// Knows where the API lives, its headers, and that a stream in which nothing came is asked for again as one
// document; the request's text, the chunks and the window are the business of the openai_ files.
#include "model/openai_int.h"

size_t openai_headers(arena *a, const model_provider *p, str headers[OPENAI_HEADERS]) {
    if (p->config.key.n == 0) return 0;
    headers[0] = str_fmt(a, "authorization: Bearer " STR_FMT, STR_ARG(p->config.key));
    return 1;
}

static dep_status chat_call(model_provider *p, arena *a, const model_request *req, const model_sink *sink,
                            model_reply *ret, dep_err *err) {
    str headers[OPENAI_HEADERS];
    size_t n = openai_headers(a, p, headers);
    model_wire wire = {.url = model_api_url(a, p, "/chat/completions"),
                       .headers = headers,
                       .n_headers = n,
                       .body = openai_request_body(a, p, req, true),
                       .open = openai_stream_new,
                       .feed = openai_stream_feed,
                       .end = openai_stream_end,
                       .error_passes = openai_error_passes};
    TRY(model_attempts(p, a, &wire, sink, ret, err));
    if (!model_reply_blank(ret)) return DEP_OK;
    // Some servers lose calls when they stream them.
    model_usage spent = ret->usage;
    wire.body = openai_request_body(a, p, req, false);
    wire.json_answer = true;
    dep_status status = model_attempts(p, a, &wire, sink, ret, err);
    model_usage_add(&ret->usage, &spent);
    return status;
}

const model_api model_api_openai = {
    .api = "openai",
    .default_url = "https://api.openai.com",
    .call = chat_call,
    .tools_json = openai_tools_json,
    .request_json = openai_request_json,
    .window = openai_window,
};

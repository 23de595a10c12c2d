// anthropic: model calls through the Anthropic Messages API, streaming. Knows where the API lives and its
// headers; the request's text and the events are the business of anthropic_request and anthropic_stream.
#include "model/anthropic_int.h"

enum { HEADERS = 2 };

// Fills both and returns how many are to be sent.
static size_t fill_headers(arena *a, const model_provider *p, str headers[HEADERS]) {
    headers[0] = S("anthropic-version: 2023-06-01");
    headers[1] = str_fmt(a, "x-api-key: " STR_FMT, STR_ARG(p->config.key));
    return p->config.key.n ? 2 : 1;
}

static dep_status anthropic_call(model_provider *p, arena *a, const model_request *req,
                                 const model_sink *sink, model_reply *ret, dep_err *err) {
    str headers[HEADERS];
    size_t n = fill_headers(a, p, headers);
    model_wire wire = {.url = model_api_url(a, p, "/messages"),
                       .headers = headers,
                       .n_headers = n,
                       .body = anthropic_request_json(a, p, req),
                       .open = anthropic_stream_new,
                       .feed = anthropic_stream_feed,
                       .end = anthropic_stream_end,
                       .error_passes = anthropic_error_passes};
    return model_attempts(p, a, &wire, sink, ret, err);
}

static dep_status anthropic_window(model_provider *p, arena *a, str model, const model_sink *sink,
                                   int64_t *tokens, dep_err *err) {
    str headers[HEADERS];
    size_t n = fill_headers(a, p, headers);
    str id = model_url_segment(a, model);
    str url = model_api_url(a, p, str_cz(a, str_fmt(a, "/models/" STR_FMT, STR_ARG(id))));
    json *info;
    TRY(model_get_json(p, a, url, headers, n, sink, &info, err));
    int64_t limit;
    if (!json_int(json_get(info, S("max_input_tokens")), 1, MODEL_TOKENS_MAX, &limit))
        return err_set(err, DEP_ERR_NOT_FOUND, STR_FMT ": the API does not tell the window of " STR_FMT,
                       STR_ARG(p->config.name), STR_ARG(model_foreign_message(a, p, model)));
    *tokens = limit;
    return DEP_OK;
}

const model_api model_api_anthropic = {
    .api = "anthropic",
    .default_url = "https://api.anthropic.com",
    .call = anthropic_call,
    .tools_json = anthropic_tools_json,
    .request_json = anthropic_request_json,
    .window = anthropic_window,
};

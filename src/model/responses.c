// responses: model calls through the OpenAI Responses API, streaming. Knows where the API lives, its headers,
// and which of its wishes a model may refuse; the request's text, the items and the events are the business
// of responses_request, responses_items and responses_stream.
#include "model/openai_int.h"
#include "model/responses_int.h"

static dep_status send(model_provider *p, arena *a, const model_request *req, bool stream,
                       const model_sink *sink, model_reply *ret, dep_err *err) {
    str headers[OPENAI_HEADERS];
    size_t n = openai_headers(a, p, headers);
    model_wire wire = {.url = model_api_url(a, p, "/responses"),
                       .headers = headers,
                       .n_headers = n,
                       .body = responses_request_body(a, p, req, stream),
                       .json_answer = !stream,
                       .open = responses_stream_new,
                       .feed = responses_stream_feed,
                       .end = responses_stream_end,
                       .error_passes = responses_error_passes};
    return model_attempts(p, a, &wire, sink, ret, err);
}

// Models that do not reason refuse the wish for encrypted reasoning. One that did is not asked again.
static bool refuses_encrypted(arena *a, const model_provider *p, const model_request *req,
                              const dep_err *err) {
    if (p->plain_reasoning == str_hash(req->model)) return false;
    str text = str_lower(a, str_z(err->msg));
    return str_find(text, S("encrypted content is not supported")) != SIZE_MAX ||
           str_find(text, S("reasoning.encrypted_content")) != SIZE_MAX;
}

static dep_status responses_call(model_provider *p, arena *a, const model_request *req,
                                 const model_sink *sink, model_reply *ret, dep_err *err) {
    dep_err why = {0};
    dep_status status = send(p, a, req, true, sink, ret, &why);
    if (status == DEP_ERR_PROVIDER && ret->blocks.n == 0 && refuses_encrypted(a, p, req, &why)) {
        p->plain_reasoning = str_hash(req->model);
        status = send(p, a, req, true, sink, ret, &why);
    }
    if (status == DEP_OK && ret->stop == STOP_END && model_reply_blank(ret)) {
        // Some servers lose text and calls when they stream them: once more, as one document.
        model_usage spent = ret->usage;
        status = send(p, a, req, false, sink, ret, &why);
        model_usage_add(&ret->usage, &spent);
    }
    return status == DEP_OK ? DEP_OK : err_set(err, status, "%s", why.msg);
}

const model_api model_api_responses = {
    .api = "openai-responses",
    .default_url = "https://api.openai.com",
    .call = responses_call,
    .tools_json = responses_tools_json,
    .request_json = responses_request_json,
    .window = openai_window, // servers that speak this API answer the same question
};

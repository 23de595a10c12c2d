// openai: being built.
#include "model/model_int.h"

static dep_status call(model_provider *p, arena *a, const model_request *req, const model_sink *sink,
                       model_reply *ret, dep_err *err) {
    (void)p, (void)a, (void)req, (void)sink, (void)ret;
    return err_set(err, DEP_ERR_NOT_YET, "not yet");
}
static str tools_json(arena *a, const model_tool *tools, size_t n) {
    (void)a, (void)tools, (void)n;
    return S("[]");
}
static str request_json(arena *a, const model_provider *p, const model_request *req) {
    (void)a, (void)p, (void)req;
    return S("{}");
}

const model_api model_api_openai = {
    .api = "openai",
    .default_url = "https://api.openai.com",
    .call = call,
    .tools_json = tools_json,
    .request_json = request_json,
};

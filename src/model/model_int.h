// model: what the provider clients share. Private to src/model.
#pragma once
#include "model/http_int.h"
#include <deputy/model.h>

enum {
    MODEL_MAX_TOKENS_DEFAULT = 8192,
    MODEL_RETRY_BASE_MS = 500,
    MODEL_RETRY_STEP_MAX_MS = 8000, // of our own back-off
    MODEL_RETRY_AFTER_MAX_MS =
        60000,                 // a server that asks for more is not waited for: the call fails and says so
    MODEL_MESSAGE_CHARS = 500, // of an error text that a server sent
};

// One API. `call` may assume a checked configuration.
typedef struct {
    const char *api;
    const char *default_url; // NULL: the API has no address
    dep_status (*call)(model_provider *p, arena *a, const model_request *req, const model_sink *sink,
                       model_reply *ret, dep_err *err);
    str (*tools_json)(arena *a, const model_tool *tools, size_t n);
    str (*request_json)(arena *a, const model_provider *p, const model_request *req);
} model_api;

extern const model_api model_api_anthropic, model_api_quote;

struct model_provider {
    const model_api *api;
    model_config config; // defaults filled in
    http_url url;
    const sys_clock *clock;
    http_client *http; // NULL for an API without an address
};

bool model_cancelled(const model_sink *sink);
// Sleeps in slices; false when it was cancelled.
bool model_wait(const model_sink *sink, int64_t ms);
// How long to wait before attempt `attempt` + 2: exponential with jitter.
int64_t model_backoff_ms(const model_provider *p, int attempt);
// Text that a server sent, fit for an error: secrets out, one line, cut.
str model_foreign_message(arena *a, const model_provider *p, str text);
// A call's input after it came whole: "{}" when empty; bad_input when it is no JSON object.
void model_block_set_input(arena *a, model_block *b, str text);

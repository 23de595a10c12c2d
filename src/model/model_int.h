// model: what the provider clients share. Private to src/model.
#pragma once
#include "model/http_int.h"
#include <deputy/model.h>
#include <deputy/sse.h>

enum {
    MODEL_MAX_TOKENS_DEFAULT = 8192,
    MODEL_RETRY_BASE_MS = 500,
    MODEL_RETRY_STEP_MAX_MS = 8000, // of our own back-off
    MODEL_RETRY_AFTER_MAX_MS =
        60000,                 // a server that asks for more is not waited for: the call fails and says so
    MODEL_MESSAGE_CHARS = 500, // of an error text that a server sent
    MODEL_HEADERS_MAX = 8,
    MODEL_TOKENS_MAX = 1000 * 1000000, // of a window, of a count; more is a server's mistake
    MODEL_JSON_MAX = 16 << 20,         // bytes of an answer that is one JSON document
};

// One API. `call` may assume a checked configuration.
typedef struct {
    const char *api;
    const char *default_url; // NULL: the API has no address
    dep_status (*call)(model_provider *p, arena *a, const model_request *req, const model_sink *sink,
                       model_reply *ret, dep_err *err);
    str (*tools_json)(arena *a, const model_tool *tools, size_t n);
    str (*request_json)(arena *a, const model_provider *p, const model_request *req);
    // Context window of a model as the server tells it; NULL: the API has no such question. NOT_FOUND: it
    // does not say.
    dep_status (*window)(model_provider *p, arena *a, str model, const model_sink *sink, int64_t *tokens,
                         dep_err *err);
} model_api;

extern const model_api model_api_anthropic, model_api_openai, model_api_responses, model_api_quote;

struct model_provider {
    const model_api *api;
    model_config config; // defaults filled in
    http_url url;
    const sys_clock *clock;
    http_client *http;        // NULL for an API without an address
    const json *params;       // config.params, read; NULL: none
    uint64_t plain_reasoning; // openai-responses: hash of a model that refused encrypted reasoning; 0: none
};

bool model_cancelled(const model_sink *sink);
// What a sink may hear. NULL: nobody listens.
void model_tell_text(const model_sink *sink, str delta);
void model_tell_thinking(const model_sink *sink, str delta);
void model_tell_tool(const model_sink *sink, str id, str name);
// Sleeps in slices; false when it was cancelled.
bool model_wait(const model_sink *sink, int64_t ms);
// How long to wait before attempt `attempt` + 2: exponential with jitter.
int64_t model_backoff_ms(const model_provider *p, int attempt);
// Text that a server sent, fit for an error: secrets out, one line, cut.
str model_foreign_message(arena *a, const model_provider *p, str text);
// For an event that is no JSON: the first half of a character, at the end of a string, is taken out and waits
// in *half (which lives in keep) for the second, at the beginning of a string of this or a later event. Equal
// to data when there was nothing to do.
str model_join_halves(arena *a, arena *keep, str data, str *half);
// A call's input after it came whole: "{}" when empty; bad_input when it is no JSON object.
void model_block_set_input(arena *a, model_block *b, str text);
void model_usage_add(model_usage *to, const model_usage *more);
// Neither text nor a call came.
bool model_reply_blank(const model_reply *r);

// --- stream.c: the head of a state machine over one reply ------------------------------------------------
// What is known of a reply while it streams.
typedef struct {
    bool has_content; // a content event has come: from here on a retry would repeat text
    bool passes;      // the stream's own error says that trying again can help
    bool has_usage;
    bool complete; // what has come is a whole reply, however the connection ends
} model_stream_facts;

// Each client's state begins with it.
typedef struct {
    arena *a, *scratch; // scratch: one event
    const model_provider *p;
    const model_sink *sink;
    sse_reader *sse;
    str model; // as reported
    str half;  // an escape, half of a character whose rest comes with the next event
    model_usage usage;
    model_stream_facts facts;
    bool done; // no more bytes are needed
    dep_status failed;
    dep_err err;
} model_stream;

// Texts of the reply live in a. p and sink may be NULL.
void model_stream_init(model_stream *s, arena *a, const model_provider *p, const model_sink *sink);
// The stream ends with PROVIDER; what the server sent is made fit for an error.
[[gnu::format(printf, 2, 3)]] void model_stream_fail(model_stream *s, const char *fmt, ...);
// The data of one event, in scratch, which is emptied before. Errors: those of json_parse.
[[nodiscard]] dep_status model_stream_json(model_stream *s, str data, json **ret, dep_err *err);
// Bytes of a body of events, unless the stream has failed. fn gets s and returns false to hear no more.
void model_stream_events(model_stream *s, str bytes, bool (*fn)(void *ctx, const sse_event *e));
// What feed of a model_wire returns: the failure, or *done.
[[nodiscard]] dep_status model_stream_state(const model_stream *s, bool *done, dep_err *err);
// NETWORK, for a reply whose end did not come.
dep_status model_stream_early(dep_err *err);
// Servers name the wrong reason: a whole call is a call, and without one there is nothing to run.
model_stop model_stop_beside(model_stop stop, bool has_call);

// --- attempt.c: one call over HTTP, with its retries -----------------------------------------------------
// One API's request and the state machine that reads its answer.
typedef struct {
    str url;
    const str *headers; // beside content-type, accept and user-agent
    size_t n_headers;
    str body;
    bool json_answer; // one JSON document of at most MODEL_JSON_MAX is expected, no stream
    bool get;         // GET without a body
    // A new state machine for each attempt; texts of the reply live in a. sink may be NULL.
    model_stream *(*open)(arena *a, const model_provider *p, const model_sink *sink);
    // Bytes of the body of a 200. *done when no more is needed. Errors: PROVIDER, LIMIT.
    dep_status (*feed)(model_stream *s, str bytes, bool *done, dep_err *err);
    // The end of the body: fills *ret with what there is. NETWORK when it ended early. whole: false after a
    // failure, whose error stays the caller's; then this returns OK. Half a call is never in *ret.
    dep_status (*end)(model_stream *s, bool whole, model_reply *ret, dep_err *err);
    bool (*error_passes)(str type); // by the type of an error answer, beside 429 and 5xx
} model_wire;
[[nodiscard]] dep_status model_attempts(model_provider *p, arena *a, const model_wire *w,
                                        const model_sink *sink, model_reply *ret, dep_err *err);
// One GET with its retries, for what a server tells about itself; the document lives in a. headers: beside
// accept and user-agent. Errors: NOT_FOUND when the server answers 404 or 405, PROVIDER when the answer is no
// JSON document, LIMIT, and those of model_call.
[[nodiscard]] dep_status model_get_json(model_provider *p, arena *a, str url, const str *headers, size_t n,
                                        const model_sink *sink, json **ret, dep_err *err);
// An error text or code that means: the conversation is longer than the model's window.
bool model_says_too_long(arena *a, str text);
// The configured parameters as members of the open object of a request: each client writes them after its
// own.
void model_params(jw *w, const model_provider *p);
// A buffer for the body of a request, of about the size that it needs: growing would leave as much behind.
buf model_body(arena *a, const model_request *req);
// The base address with /v1 (unless a segment of it is a version) and path.
str model_api_url(arena *a, const model_provider *p, const char *path);
// As a segment of a path: everything but letters, digits, '-', '.', '_' and '~' percent-encoded.
str model_url_segment(arena *a, str s);

// model: provider clients behind one vtable. A conversation in neutral blocks goes in; text, thinking and
// tool calls stream out; a whole reply comes back. Bundled `quote` needs no key and no network.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/json.h>
#include <deputy/str.h>
#include <deputy/sys.h>

typedef enum {
    BLOCK_TEXT,
    BLOCK_THINKING, // empty text: the provider keeps it to itself (redacted)
    BLOCK_TOOL_USE,
    BLOCK_TOOL_RESULT,
    BLOCK_OTHER, // of a kind that this build does not know: only `raw`, echoed
} block_kind;
typedef struct {
    block_kind kind;
    str text;     // TEXT, THINKING: the text; TOOL_RESULT: the result
    str id, name; // TOOL_USE: call id and tool name; TOOL_RESULT: id
    str input; // TOOL_USE: arguments as JSON text ("{}" when none); invalid JSON from the model is kept as it
               // came
    bool bad_input; // TOOL_USE: `input` is not a JSON object
    bool is_error;  // TOOL_RESULT
    str raw; // an assistant block as the provider sent it (JSON), echoed unchanged; empty for blocks of ours
} model_block;
typedef VEC(model_block) model_blocks;

typedef enum { ROLE_USER, ROLE_ASSISTANT } model_role;
typedef struct {
    model_role role;
    model_blocks blocks;
} model_message;
typedef VEC(model_message) model_messages;

typedef struct {
    str name, description, schema; // schema: JSON text of the parameters
} model_tool;

typedef struct {
    str model; // without the provider
    str system;
    const model_tool *tools;
    size_t n_tools;
    const model_messages *messages;
    int64_t max_tokens; // of the answer; 0: the provider's default
} model_request;

typedef struct {
    int64_t input, output, cache_read, cache_write; // tokens; input without cached ones
    bool estimated;                                 // the provider did not say
} model_usage;

typedef enum { STOP_END, STOP_TOOL_USE, STOP_MAX_TOKENS, STOP_REFUSAL, STOP_PAUSE, STOP_OTHER } model_stop;

typedef struct {
    model_blocks blocks; // in order
    model_stop stop;
    str stop_text; // the provider's own word
    model_usage usage;
    str model;     // as reported
    bool too_long; // on failure: the provider refused because the conversation does not fit its window
} model_reply;

// What a caller hears while a reply streams. Members may be NULL.
typedef struct {
    void (*text)(void *ctx, str delta);
    void (*thinking)(void *ctx, str delta);
    void (*tool)(void *ctx, str id, str name); // a call begins
    bool (*cancelled)(void *ctx);              // asked at least every 100 ms
    void *ctx;
} model_sink;

enum {
    MODEL_CONNECT_MS = 15000,
    MODEL_FIRST_BYTE_MS = 120000,
    MODEL_IDLE_MS = 120000, // silence within a stream
    // 429, 5xx, 529, overloaded, network: only before the first content event. Not again for a server of this
    // machine that does not listen, a certificate that does not check, and silence after the request.
    MODEL_RETRY_MAX = 4,
    MODEL_EVENT_MAX = 16 << 20, // bytes of one SSE event
    MODEL_REPLY_MAX = 64 << 20, // bytes of one reply
    MODEL_ERROR_BODY_MAX = 64 << 10,
};

// The network of a process: one thread that owns all connections, so that many calls share it and it keeps
// connections for the next. The thread starts with the first request and ends with the arena. The clock is
// asked on the threads of its callers.
typedef struct model_net model_net;
model_net *model_net_new(arena *a, const sys_clock *clock);

typedef struct {
    str name;                               // as in `provider/model`
    str api;                                // "anthropic", "openai", "openai-responses", "quote"
    str url;                                // base URL; empty: the API's own
    str key;                                // the secret itself; never printed
    int64_t max_tokens;                     // 0: 8192
    int idle_ms, first_byte_ms, connect_ms; // 0: the defaults above
    int retry_base_ms;                      // 0: 500
    str ca_file;
    str params;     // more members of a request as a JSON object, none of them the client's own; empty: none
    int64_t window; // context window of its models, tokens; 0: ask the server
    model_net *net; // NULL: one of its own
} model_config;

typedef struct model_provider model_provider;
// The clients this build knows. Nothing is loaded or connected before the first call. The url: http or https,
// no user, query or fragment. Errors: REFUSED for a key that would travel unencrypted to another machine;
// INVALID otherwise. Released with the arena, before its net. One thread at a time; many providers may share
// a net.
[[nodiscard]] dep_status model_open(arena *a, const model_config *c, const sys_clock *clock,
                                    model_provider **ret, dep_err *err);
// Can clients that need a network be loaded here? NOT_FOUND names what is missing. Nothing is connected.
[[nodiscard]] dep_status model_can_connect(dep_err *err);
// One model call, blocking. On failure *ret still holds what had streamed before (whole blocks, and text so
// far; half a tool call never). A server that asks to wait at most a minute is waited for. Errors: NOT_FOUND
// (libcurl is missing), INVALID (`quote`: nothing to search), NETWORK, TIMEOUT, PROVIDER (with the API's
// message, redacted), CANCELLED, LIMIT.
[[nodiscard]] dep_status model_call(model_provider *p, arena *a, const model_request *req,
                                    const model_sink *sink, model_reply *ret, dep_err *err);
// Is its server on this machine? Such ones have small windows, and asking them costs nothing.
bool model_is_local(const model_provider *p);
// The context window of a model in tokens: the configured one, else what the server's model endpoint says.
// Errors: NOT_FOUND when it does not say; those of model_call.
[[nodiscard]] dep_status model_window(model_provider *p, arena *a, str model, const model_sink *sink,
                                      int64_t *tokens, dep_err *err);
// The tool array as that API gets it (JSON text), stable bytes; empty for an API that this build does not
// know.
str model_tools_json(arena *a, str api, const model_tool *tools, size_t n);
// Request body as sent (for tests and --events debugging), without secrets.
str model_request_json(arena *a, const model_provider *p, const model_request *req);
// Replaces each secret of at least SECRET_MIN bytes by "***", raw, with any byte percent-encoded, with any
// character escaped as in JSON, and within base64 (both alphabets, all three alignments).
enum { SECRET_MIN = 4 }; // shorter ones would blank out ordinary text
str secret_redact(arena *a, str text, const str *secrets, size_t n);
// The same with a redactor that is kept: nothing of the text that comes in pieces is touched. text itself
// when there is no secret in it.
typedef struct redactor redactor;
str redact_text(const redactor *r, arena *a, str text);
// The same for text that comes in pieces: a secret across their edges is found. What may be the start of one
// is held back until more comes.
redactor *redact_new(arena *a, const str *secrets, size_t n);
void redact_feed(redactor *r, str chunk, buf *out);
void redact_end(redactor *r, buf *out);

// The one line put after the task by the run loop begins with this; `quote` leaves it out of its query.
#define TASK_DATE_PREFIX "Date: "

// openai: the parts of the Chat Completions client. Private to src/model.
#pragma once
#include "model/model_int.h"

// Names under which servers send what a model thinks. The first that comes in a reply is taken: some send the
// same text under both.
#define OPENAI_REASONING_CONTENT "reasoning_content"
#define OPENAI_REASONING "reasoning"

// --- Request (openai_request.c) --------------------------------------------------------------------------
str openai_tools_json(arena *a, const model_tool *tools, size_t n);
str openai_request_json(arena *a, const model_provider *p, const model_request *req);
// The API itself, its regions and its twin: they know max_completion_tokens, and take a model's faulty
// arguments back as they were.
bool openai_is_own(const model_provider *p);
// The same conversation, to be answered with a stream or with one JSON document.
str openai_request_body(arena *a, const model_provider *p, const model_request *req, bool stream);

// --- The end of a JSON object (openai_calls.c) -----------------------------------------------------------
// Finds it while bytes come, without reading them again for each piece. Says nothing about validity.
typedef struct {
    size_t depth;
    bool begun, in_string, escaped;
    bool closed; // the object has ended
    bool over;   // something other than blanks came after it, or it was no object from the start
} openai_scan;
// How many bytes belong to the object: all of them, unless it ended before.
size_t openai_scan_feed(openai_scan *s, str bytes);
static inline bool openai_scan_whole(const openai_scan *s) {
    return s->closed && !s->over;
}

// --- Tool calls (openai_calls.c) -------------------------------------------------------------------------
enum {
    OPENAI_CALLS_MAX = 1000,  // of a reply
    OPENAI_INDEX_NONE = -1,   // the server gives none
    OPENAI_ID_CHARS = 9,      // of ids that are made here; some servers take no other length
    OPENAI_CALL_EXTRA_MAX = 8 // members of a call that are not of the API, kept to be echoed
};

typedef struct {
    str key, value; // value: JSON text
} openai_extra;

typedef struct {
    int64_t index;
    str id;
    buf name, args;
    openai_scan scan; // of args
    size_t born;      // the delta that began it
    bool repeated;    // its name came again, where a second call of that name could have been meant
    bool told;        // the sink has heard of it
    openai_extra extra[OPENAI_CALL_EXTRA_MAX];
    size_t n_extra;
} openai_call;

typedef struct {
    arena *a;
    VEC(openai_call) list;
    size_t delta; // how many have come
} openai_calls;

// The tool_calls of one delta. whole: of a whole message, so that each element is a call of its own. Errors:
// PROVIDER for a piece that cannot be attributed to one call, LIMIT. *any: there was something in it.
[[nodiscard]] dep_status openai_calls_take(openai_calls *c, const json *array, bool whole, bool *any,
                                           dep_err *err);
// Gives every call an id of its own: those without one, and those whose id another call of the reply has
// already. seed: of the ids.
void openai_calls_identify(openai_calls *c, uint64_t seed);
// The call as it is sent back: its own members, then those that the API does not know.
str openai_call_json(arena *a, openai_call *c);

// --- Stream (openai_stream.c): a state machine over the chunks of one reply ------------------------------
// Texts of the reply live in a. p and sink may be NULL.
model_stream *openai_stream_new(arena *a, const model_provider *p, const model_sink *sink);
// Bytes of the body: events, or one JSON document. *done when the reply is whole. Errors: PROVIDER (an error
// in the stream, bytes that are no such stream, a piece of a call that cannot be attributed), LIMIT.
[[nodiscard]] dep_status openai_stream_feed(model_stream *s, str bytes, bool *done, dep_err *err);
// The end of the body: fills *ret with what there is. NETWORK when it ended early. whole: false after a
// failure, whose error stays the caller's; then this returns OK.
[[nodiscard]] dep_status openai_stream_end(model_stream *s, bool whole, model_reply *ret, dep_err *err);
// Types of errors that pass.
bool openai_error_passes(str type);

// --- The window (openai_window.c) ------------------------------------------------------------------------
[[nodiscard]] dep_status openai_window(model_provider *p, arena *a, str model, const model_sink *sink,
                                       int64_t *tokens, dep_err *err);
// openai.c: fills them and returns how many there are.
enum { OPENAI_HEADERS = 1 };
size_t openai_headers(arena *a, const model_provider *p, str headers[OPENAI_HEADERS]);

// responses: the parts of the OpenAI Responses client. Private to src/model.
#pragma once
#include "model/model_int.h"

// --- Request (responses_request.c) -----------------------------------------------------------------------
str responses_tools_json(arena *a, const model_tool *tools, size_t n);
str responses_request_json(arena *a, const model_provider *p, const model_request *req);
str responses_request_body(arena *a, const model_provider *p, const model_request *req, bool stream);

// --- Items (responses_items.c): what the events of a reply make grow, keyed by what names an item ---------
enum { RESPONSES_ITEMS_MAX = 1000 }; // items of a reply

typedef enum { ITEM_MESSAGE, ITEM_REASONING, ITEM_CALL, ITEM_OTHER } item_kind;

// What names an item in an event; each may be absent (-1, empty), and servers get some of them wrong.
typedef struct {
    int64_t index; // output_index
    str id, call_id;
} item_keys;

// An item as it stands in output_item.added, output_item.done or in the output of a response.
typedef struct {
    item_kind kind;
    item_keys keys;
    str name, args, text, raw;
    bool refusal;
    bool cut;  // the server says that it is incomplete
    bool echo; // raw is what the API takes back
} item;

typedef struct {
    item i;           // keys, name and raw: of the newest event that told them
    buf text;         // of a message or of reasoning
    buf args;         // of a call
    int64_t part;     // content_index or summary_index of the part that grows
    size_t part_from; // where it begins in text
    bool closed, announced;
    bool refusal;
    bool doubtful; // a delta had its index and another id: only the whole item says what it holds
} slot;
typedef VEC(slot) slots;

// Reads an item, its keys completed from the event around it. The slices live as long as v, or in a.
item item_read(arena *a, const json *v, const json *event);
item_keys item_keys_read(const json *event);
// The open item of that kind that the keys name. *many: several could be meant. NULL: none.
slot *item_find(slots *s, item_kind kind, const item_keys *k, bool *many);
// Whether the keys name an item that has ended.
bool item_is_closed(const slots *s, item_kind kind, const item_keys *k);
// Pairs the output of a whole response with what had streamed: to[j] is the place of output item j in s, or
// SIZE_MAX for one that is new. taken: one false for each of s.
void item_match(const slots *s, const item *output, size_t n, bool *taken, size_t *to);

// --- Stream (responses_stream.c): a state machine over the events of one reply ----------------------------
// Texts of the reply live in a. sink may be NULL.
model_stream *responses_stream_new(arena *a, const model_provider *p, const model_sink *sink);
// Bytes of the body. *done when the response has ended. Errors: PROVIDER (an error event, or bytes that are
// no such stream), LIMIT.
[[nodiscard]] dep_status responses_stream_feed(model_stream *s, str bytes, bool *done, dep_err *err);
// The end of the body: fills *ret with what there is. NETWORK when the stream ended early. whole: false after
// a failure, whose error stays the caller's; then this returns OK.
[[nodiscard]] dep_status responses_stream_end(model_stream *s, bool whole, model_reply *ret, dep_err *err);
// Codes and types of errors that pass.
bool responses_error_passes(str code);

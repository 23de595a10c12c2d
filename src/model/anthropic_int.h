// anthropic: the parts of the Anthropic Messages client. Private to src/model.
#pragma once
#include "model/model_int.h"

// --- Request (anthropic_request.c) -----------------------------------------------------------------------
str anthropic_tools_json(arena *a, const model_tool *tools, size_t n);
str anthropic_request_json(arena *a, const model_provider *p, const model_request *req);

// --- Stream (anthropic_stream.c): a state machine over the events of one reply ---------------------------
// Texts of the reply live in a. sink may be NULL.
model_stream *anthropic_stream_new(arena *a, const model_provider *p, const model_sink *sink);
// Bytes of the body. *done when message_stop came. Errors: PROVIDER (an error event, or bytes that are no
// such stream), LIMIT.
[[nodiscard]] dep_status anthropic_stream_feed(model_stream *s, str bytes, bool *done, dep_err *err);
// The end of the body: fills *ret with what there is. NETWORK when the stream ended early. whole: false after
// a failure, whose error stays the caller's; then this returns OK.
[[nodiscard]] dep_status anthropic_stream_end(model_stream *s, bool whole, model_reply *ret, dep_err *err);
// Types of errors that pass: overloaded_error and its like.
bool anthropic_error_passes(str type);

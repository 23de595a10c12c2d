// sse: server-sent events, fed byte by byte. Line ends CR, LF, CRLF; comments; one BOM; `data` lines joined
// by LF; events of bounded size.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/str.h>

typedef struct {
    str event; // "message" when the stream names none
    str data;
} sse_event;

typedef struct sse_reader sse_reader;
sse_reader *sse_new(arena *a, size_t max_event);
// Calls fn for each whole event. fn returns false to stop (the rest of bytes is dropped; *stopped true).
// Errors: LIMIT. The slices are valid during the call.
[[nodiscard]] dep_status sse_feed(sse_reader *r, str bytes, bool (*fn)(void *ctx, const sse_event *e),
                                  void *ctx, bool *stopped, dep_err *err);
// End of stream: true when an event was cut short.
bool sse_pending(const sse_reader *r);

// Fuzz target: a byte stream as server-sent events, and as an Anthropic Messages reply. The first byte
// chooses the size of the pieces in which the rest is fed; whole and in pieces must give the same events,
// errors and reply. What was assembled must be JSON.
#include "model/anthropic_int.h"
#include <stdint.h>
#include <stdlib.h>

enum { EVENT_MAX = 4096 };

static bool note(void *ctx, const sse_event *e) {
    buf_addf(ctx, "%zu:%.*s %zu:", e->event.n, STR_ARG(e->event), e->data.n);
    buf_add(ctx, e->data);
    return !str_eq(e->data, S("stop"));
}

static str events_of(arena *a, str bytes, size_t piece) {
    sse_reader *r = sse_new(a, EVENT_MAX);
    buf out = buf_new(a, 0);
    bool stopped = false;
    dep_status status = DEP_OK;
    for (size_t i = 0; status == DEP_OK && i < bytes.n; i += piece)
        status = sse_feed(r, str_sub(bytes, i, i + piece), note, &out, &stopped, NULL);
    buf_addf(&out, "|%d %d %d", status, stopped, status == DEP_OK && !stopped && sse_pending(r));
    return buf_str(&out);
}

// Nested values that were just within the limit are not once they stand in something.
static void must_be_json(arena *a, str text) {
    json *parsed;
    if (json_parse(a, text, 0, &parsed, NULL) == DEP_ERR_PARSE) abort();
}

static void add_block(arena *a, buf *out, const model_block *b) {
    json *parsed;
    if (b->raw.n && json_parse(a, b->raw, 0, &parsed, NULL) != DEP_OK) abort();
    if (b->kind == BLOCK_TOOL_USE && !b->bad_input && json_parse(a, b->input, 0, &parsed, NULL) != DEP_OK)
        abort();
    buf_addf(out, "<%d %d ", b->kind, b->bad_input);
    const str texts[] = {b->text, b->id, b->name, b->input, b->raw};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_addc(out, '\n');
        buf_add(out, texts[i]);
    }
}

static str reply_of(arena *a, str bytes, size_t piece) {
    model_stream *s = anthropic_stream_new(a, NULL, NULL);
    buf out = buf_new(a, 0);
    bool done = false;
    dep_status status = DEP_OK;
    for (size_t i = 0; status == DEP_OK && !done && i < bytes.n; i += piece)
        status = anthropic_stream_feed(s, str_sub(bytes, i, i + piece), &done, NULL);
    model_reply r = {0};
    dep_status ended = anthropic_stream_end(s, status == DEP_OK, &r, NULL);
    buf_addf(&out, "%d %d %d %d ", status, ended, done, r.stop);
    for (size_t i = 0; i < r.blocks.n; i++) add_block(a, &out, &r.blocks.p[i]);
    // Whatever came can be sent back.
    model_messages m = {0};
    model_message message = {.role = ROLE_ASSISTANT, .blocks = r.blocks};
    vec_push(a, &m, message);
    model_provider p = {0};
    model_request req = {.model = S("m"), .messages = &m};
    must_be_json(a, anthropic_request_json(a, &p, &req));
    return buf_str(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    size_t piece = data[0] % 16 + 1;
    str bytes = {(const char *)data + 1, size - 1};
    arena *a = arena_new();
    if (!str_eq(events_of(a, bytes, size), events_of(a, bytes, piece))) abort();
    if (!str_eq(reply_of(a, bytes, size), reply_of(a, bytes, piece))) abort();
    arena_free(a);
    return 0;
}

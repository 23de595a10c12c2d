// Fuzz target: a byte stream as a Chat Completions reply. The first byte chooses the size of the pieces in
// which the rest is fed; whole and in pieces must give the same errors and the same reply. What was assembled
// must be JSON and can be sent back.
#include "model/openai_int.h"
#include <stdint.h>
#include <stdlib.h>

// Nested values that were just within the limit are not once they stand in something.
static void must_be_json(arena *a, str text) {
    json *parsed;
    if (json_parse(a, text, 0, &parsed, NULL) == DEP_ERR_PARSE) abort();
}

static void add_block(arena *a, buf *out, const model_block *b) {
    json *parsed;
    if (b->raw.n) must_be_json(a, b->raw);
    if (b->kind == BLOCK_TOOL_USE) {
        if (!b->bad_input && json_parse(a, b->input, 0, &parsed, NULL) != DEP_OK) abort();
        if (b->id.n == 0 || b->name.n == 0) abort();
    }
    buf_addf(out, "<%d %d ", b->kind, b->bad_input);
    const str texts[] = {b->text, b->id, b->name, b->input, b->raw};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        buf_addc(out, '\n');
        buf_add(out, texts[i]);
    }
}

static void must_be_sendable(arena *a, const model_blocks *blocks, str host) {
    model_messages m = {0};
    model_message message = {.role = ROLE_ASSISTANT, .blocks = *blocks};
    vec_push(a, &m, message);
    model_provider p = {.url = {.host = host}};
    model_request req = {.model = S("m"), .messages = &m};
    must_be_json(a, openai_request_json(a, &p, &req));
}

static void must_have_own_ids(const model_blocks *blocks) {
    for (vec_each(const model_block, b, blocks))
        for (const model_block *c = blocks->p; c < b; c++)
            if (b->kind == BLOCK_TOOL_USE && c->kind == BLOCK_TOOL_USE && str_eq(b->id, c->id)) abort();
}

static str reply_of(arena *a, str bytes, size_t piece) {
    model_stream *s = openai_stream_new(a, NULL, NULL);
    buf out = buf_new(a, 0);
    bool done = false;
    dep_status status = DEP_OK;
    dep_err err = {0};
    for (size_t i = 0; status == DEP_OK && !done && i < bytes.n; i += piece)
        status = openai_stream_feed(s, str_sub(bytes, i, i + piece), &done, &err);
    model_reply r = {0};
    dep_status ended = openai_stream_end(s, status == DEP_OK, &r, &err);
    model_stream_facts f = s->facts;
    buf_addf(&out, "%d %d %s %d %d %d%d%d%d ", status, ended, err.msg, done, r.stop, f.has_content, f.passes,
             f.has_usage, f.complete);
    for (vec_each(const model_block, b, &r.blocks)) add_block(a, &out, b);
    must_have_own_ids(&r.blocks);
    must_be_sendable(a, &r.blocks, S("localhost"));
    must_be_sendable(a, &r.blocks, S("api.openai.com"));
    return buf_str(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    size_t piece = data[0] % 16 + 1;
    str bytes = {(const char *)data + 1, size - 1};
    arena *a = arena_new();
    if (!str_eq(reply_of(a, bytes, size), reply_of(a, bytes, piece))) abort();
    arena_free(a);
    return 0;
}

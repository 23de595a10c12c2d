#include "support/stream_fixture.h"

static void hear_text(void *ctx, str delta) {
    buf_addf(ctx, "[%.*s]", STR_ARG(delta));
}

static void hear_thinking(void *ctx, str delta) {
    buf_addf(ctx, "{%.*s}", STR_ARG(delta));
}

static void hear_tool(void *ctx, str id, str name) {
    buf_addf(ctx, "<%.*s %.*s>", STR_ARG(id), STR_ARG(name));
}

outcome stream_run(const model_wire *w, str bytes, size_t piece) {
    outcome o = {.a = arena_new()};
    buf heard = buf_new(o.a, 0);
    model_sink sink = {.text = hear_text, .thinking = hear_thinking, .tool = hear_tool, .ctx = &heard};
    o.s = w->open(o.a, NULL, &sink);
    for (size_t i = 0; o.status == DEP_OK && i < bytes.n; i += piece)
        o.status = w->feed(o.s, str_sub(bytes, i, i + piece), &o.done, &o.err);
    dep_status ended = w->end(o.s, o.status == DEP_OK, &o.reply, &o.err);
    if (o.status == DEP_OK) o.status = ended;
    o.heard = buf_str(&heard);
    return o;
}

// openai_chunks: Chat Completions streams for the suites of model/openai_*: chunks as text, and a run of them
// through the state machine. Every stream is fed whole, in pieces of seven bytes and byte by byte.
#pragma once
#include "model/openai_int.h"
#include <support/stream_fixture.h>

#define DATA(json) "data: " json "\n\n"
#define CHOICE(delta, finish)                                                                                \
    DATA("{\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0," \
         "\"delta\":" delta ",\"finish_reason\":" finish "}]}")
#define START CHOICE("{\"role\":\"assistant\",\"content\":\"\"}", "null")
#define TEXT(s) CHOICE("{\"content\":\"" s "\"}", "null")
#define CALLS(pieces) CHOICE("{\"tool_calls\":[" pieces "]}", "null")
#define AT(i) "\"index\":" i ","
#define NO_AT ""
// One piece of a call.
#define HEAD(at, id, name, args)                                                                             \
    "{" at "\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"" name                          \
    "\",\"arguments\":\"" args "\"}}"
#define ARGS(at, args) "{" at "\"function\":{\"arguments\":\"" args "\"}}"
#define NAME(at, name) "{" at "\"function\":{\"name\":\"" name "\"}}"
#define WITH_ID(at, id, args) "{" at "\"id\":\"" id "\",\"function\":{\"arguments\":\"" args "\"}}"
#define FINISH(reason) CHOICE("{}", "\"" reason "\"")
#define USAGE(usage) DATA("{\"choices\":[],\"usage\":" usage "}")
#define DONE DATA("[DONE]")
#define END FINISH("tool_calls") DONE
#define A1 "{\\\"p\\\":\\\"a\\\"}"
#define B1 "{\\\"q\\\":2}"

static inline outcome run(str bytes, size_t piece) {
    const model_wire w = {.open = openai_stream_new, .feed = openai_stream_feed, .end = openai_stream_end};
    return stream_run(&w, bytes, piece);
}

// Blocks, then the reason: T(text) H(thinking) C(id name input), bad input with a '!'.
static inline str shown(const outcome *o) {
    static const char *const stops[] = {"end", "tool_use", "max_tokens", "refusal", "pause", "other"};
    buf b = buf_new(o->a, 0);
    for (vec_each(const model_block, it, &o->reply.blocks)) {
        if (it->kind == BLOCK_TEXT) buf_addf(&b, "T(%.*s) ", STR_ARG(it->text));
        if (it->kind == BLOCK_THINKING) buf_addf(&b, "H(%.*s) ", STR_ARG(it->text));
        if (it->kind == BLOCK_TOOL_USE)
            buf_addf(&b, "C(%.*s %.*s %.*s%s) ", STR_ARG(it->id), STR_ARG(it->name), STR_ARG(it->input),
                     it->bad_input ? "!" : "");
    }
    if (o->status == DEP_OK)
        buf_addf(&b, "%s", stops[o->reply.stop]);
    else
        buf_addf(&b, "%s: %s", err_name(o->status), o->err.msg);
    return buf_str(&b);
}

static const size_t sizes[] = {1, 7, 1 << 20};

static inline void check(const char *what, str bytes, const char *expected) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        outcome o = run(bytes, sizes[i]);
        str got = shown(&o);
        // An expectation that ends in "…" is a beginning.
        str wanted = str_z(expected);
        bool open = str_ends(wanted, S("…"));
        if (open) wanted.n -= sizeof "…" - 1;
        if (open ? !str_starts(got, wanted) : !str_eq(got, wanted))
            fail_msg("%s, %zu bytes a piece:\n%.*s\nis not\n%.*s", what, sizes[i], STR_ARG(got),
                     STR_ARG(wanted));
        arena_free(o.a);
    }
}

// What the suites of the Responses stream share: its events as text, and a stream that is fed in pieces.
#pragma once
#include "model/responses_int.h"
#include <support/stream_fixture.h>

#define EVENT(type, more) "event: response." type "\ndata: {\"type\":\"response." type "\"" more "}\n\n"
#define START EVENT("created", ",\"response\":{\"id\":\"resp_1\",\"model\":\"gpt-x\",\"output\":[]}")
#define USAGE                                                                                                \
    ",\"usage\":{\"input_tokens\":12,\"input_tokens_details\":{\"cached_tokens\":4},"                        \
    "\"output_tokens\":25,\"output_tokens_details\":{\"reasoning_tokens\":5},\"total_tokens\":37}"
#define END(type, more) EVENT(type, ",\"response\":{\"model\":\"gpt-x\",\"status\":\"" type "\"" more "}")
#define COMPLETED END("completed", USAGE)
#define OUTPUT(items) END("completed", ",\"output\":[" items "]" USAGE)
#define ADDED(keys, item) EVENT("output_item.added", keys ",\"item\":" item)
#define DONE(keys, item) EVENT("output_item.done", keys ",\"item\":" item)
#define AT(i) ",\"output_index\":" #i
#define OF(id) ",\"item_id\":\"" id "\""
#define TEXT(keys, text) EVENT("output_text.delta", keys ",\"delta\":\"" text "\"")
#define ARGS(keys, text) EVENT("function_call_arguments.delta", keys ",\"delta\":\"" text "\"")
#define MESSAGE(id, parts)                                                                                   \
    "{\"id\":\"" id                                                                                          \
    "\",\"type\":\"message\",\"status\":\"completed\",\"role\":\"assistant\",\"content\":[" parts "]}"
#define PART(text) "{\"type\":\"output_text\",\"text\":\"" text "\",\"annotations\":[]}"
#define CALL(id, call_id, name, args)                                                                        \
    "{\"id\":\"" id "\",\"type\":\"function_call\",\"status\":\"completed\",\"call_id\":\"" call_id          \
    "\",\"name\":\"" name "\",\"arguments\":\"" args "\"}"
#define REASONING(id, summary, more)                                                                         \
    "{\"id\":\"" id "\",\"type\":\"reasoning\",\"summary\":[" summary "]" more "}"
#define SUMMARY(text) "{\"type\":\"summary_text\",\"text\":\"" text "\"}"
#define SECRET ",\"encrypted_content\":\"gAAA==\""

static inline outcome run(str bytes, size_t piece) {
    const model_wire w = {
        .open = responses_stream_new, .feed = responses_stream_feed, .end = responses_stream_end};
    return stream_run(&w, bytes, piece);
}

// What came of a stream in one line: a text in quotes, thinking in braces, a call as name(arguments)#id, with
// ! for bad arguments and = for what is echoed as it came.
static inline str told(const outcome *o) {
    buf b = buf_new(o->a, 0);
    for (vec_each(const model_block, m, &o->reply.blocks)) {
        if (b.n) buf_addc(&b, ' ');
        if (m->kind == BLOCK_TEXT) buf_addf(&b, "'%.*s'", STR_ARG(m->text));
        if (m->kind == BLOCK_THINKING) buf_addf(&b, "{%.*s}", STR_ARG(m->text));
        if (m->kind == BLOCK_OTHER) buf_add(&b, S("other"));
        if (m->kind == BLOCK_TOOL_USE)
            buf_addf(&b, "%.*s(%.*s)#%.*s%s", STR_ARG(m->name), STR_ARG(m->input), STR_ARG(m->id),
                     m->bad_input ? "!" : "");
        if (m->raw.n) buf_addc(&b, '=');
    }
    return buf_str(&b);
}

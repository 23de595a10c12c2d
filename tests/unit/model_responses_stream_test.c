// Tests of model/responses_stream.c and responses_items.c: events in, blocks out, without a network.
#include "model/responses_int.h"
#include <support/support.h>

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

typedef struct {
    buf heard;
} listener;

static void hear_text(void *ctx, str delta) {
    buf_addf(&((listener *)ctx)->heard, "[%.*s]", STR_ARG(delta));
}

static void hear_thinking(void *ctx, str delta) {
    buf_addf(&((listener *)ctx)->heard, "{%.*s}", STR_ARG(delta));
}

static void hear_tool(void *ctx, str id, str name) {
    buf_addf(&((listener *)ctx)->heard, "<%.*s %.*s>", STR_ARG(id), STR_ARG(name));
}

typedef struct {
    arena *a;
    model_reply reply;
    dep_status status;
    dep_err err;
    responses_stream *s;
    bool done;
    str heard;
} outcome;

static outcome run(str bytes, size_t piece) {
    outcome o = {.a = arena_new()};
    listener l = {.heard = buf_new(o.a, 0)};
    model_sink sink = {.text = hear_text, .thinking = hear_thinking, .tool = hear_tool, .ctx = &l};
    o.s = responses_stream_new(o.a, NULL, &sink);
    for (size_t i = 0; o.status == DEP_OK && !o.done && i < bytes.n; i += piece)
        o.status = responses_stream_feed(o.s, str_sub(bytes, i, i + piece), &o.done, &o.err);
    dep_status ended = responses_stream_end(o.s, o.status == DEP_OK, &o.reply, &o.err);
    if (o.status == DEP_OK) o.status = ended;
    o.heard = buf_str(&l.heard);
    return o;
}

#define assert_str(got, expected)                                                                            \
    do {                                                                                                     \
        str got_ = (got), expected_ = (expected);                                                            \
        if (!str_eq(got_, expected_))                                                                        \
            fail_msg("\"%.*s\" is not \"%.*s\"", STR_ARG(got_), STR_ARG(expected_));                         \
    } while (0)

// What came of a stream in one line: a text in quotes, thinking in braces, a call as name(arguments)#id, with
// ! for bad arguments and = for what is echoed as it came.
static str told(const outcome *o) {
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

static void test_model_responses_stream__a_whole_reply_is_assembled_from_pieces_of_any_size(void **state) {
    (void)state;
#define REASONED REASONING("rs_1", SUMMARY("Let me") "," SUMMARY("see \\\"日本\\\""), SECRET)
#define SAID MESSAGE("msg_1", PART("Héllo\\n😀"))
#define CALLED CALL("fc_1", "call_1", "read", "{\\\"path\\\": \\\"a\\\\\\\\u00e9\\\"}")
    static const str bytes = S_INIT(
        START EVENT("in_progress", "") ADDED(AT(0), REASONING("rs_1", "", ""))
            EVENT("reasoning_summary_part.added", OF("rs_1") AT(0) ",\"summary_index\":0") EVENT(
                "reasoning_summary_text.delta", OF("rs_1") AT(0) ",\"summary_index\":0,\"delta\":\"Let \"")
                EVENT("reasoning_summary_text.delta",
                      OF("rs_1") AT(0) ",\"summary_index\":0,\"delta\":\"me\"")
                    EVENT("reasoning_summary_text.done",
                          OF("rs_1") AT(0) ",\"summary_index\":0,\"text\":\"Let me\"")
                        EVENT("reasoning_summary_text.delta",
                              OF("rs_1") AT(0) ",\"summary_index\":1,\"delta\":\"see \\\"日本\\\"\"")
                            DONE(AT(0), REASONED) ADDED(AT(1), MESSAGE("msg_1", "")) EVENT(
                                "content_part.added",
                                OF("msg_1") AT(1) ",\"content_index\":0,\"part\":" PART(""))
                                TEXT(OF("msg_1") AT(1) ",\"content_index\":0", "Hé")
                                    TEXT(OF("msg_1") AT(1) ",\"content_index\":0", "llo\\n😀") EVENT(
                                        "output_text.done",
                                        OF("msg_1") AT(1) ",\"content_index\":0,\"text\":\"Héllo\\n😀\"")
                                        EVENT("content_part.done",
                                              OF("msg_1")
                                                  AT(1) ",\"content_index\":0,\"part\":" PART("Héllo\\n😀"))
                                            DONE(AT(1), SAID) ADDED(AT(2), CALL("fc_1", "call_1", "read", ""))
                                                ARGS(OF("fc_1") AT(2), "") ARGS(OF("fc_1") AT(2),
                                                                                "{\\\"path\\\": ")
                                                    ARGS(OF("fc_1") AT(2), "\\\"a\\\\\\\\u00e9\\\"}") EVENT(
                                                        "function_call_arguments.done",
                                                        OF("fc_1") AT(2) ",\"arguments\":\"{\\\"path\\\": "
                                                                         "\\\"a\\\\\\\\u00e9\\\"}\"")
                                                        DONE(AT(2), CALLED) EVENT("future.event", ",\"x\":1")
                                                            OUTPUT(REASONED "," SAID "," CALLED));
    for (size_t piece = 1; piece <= bytes.n; piece += piece < 20 ? 1 : 577) {
        outcome o = run(bytes, piece);
        assert_int_equal(o.status, DEP_OK);
        assert_true(o.done);
        assert_str(told(&o), S("{Let me\n\nsee \"日本\"}= 'Héllo\n😀'= read({\"path\": "
                               "\"a\\\\u00e9\"})#call_1="));
        const model_reply *r = &o.reply;
        assert_str(r->blocks.p[0].raw, S(REASONED));
        assert_str(r->blocks.p[1].raw, S(SAID));
        assert_str(r->blocks.p[2].raw, S(CALLED));
        assert_int_equal(r->stop, STOP_TOOL_USE);
        assert_str(r->stop_text, S("completed"));
        assert_str(r->model, S("gpt-x"));
        assert_int_equal(r->usage.input, 8);
        assert_int_equal(r->usage.cache_read, 4);
        assert_int_equal(r->usage.output, 25);
        assert_true(responses_stream_has_usage(o.s));
        assert_str(o.heard, S("{Let }{me}{\n\n}{see \"日本\"}[Hé][llo\n😀]<call_1 read>"));
        arena_free(o.a);
    }
}

static void test_model_responses_stream__line_ends_comments_and_marks_change_nothing(void **state) {
    (void)state;
    static const char *const ends[] = {"\n", "\r", "\r\n"};
    static const str bytes = S_INIT(START TEXT(AT(0), "日本😀") TEXT(AT(0), "é") COMPLETED);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        str line, rest = bytes;
        buf_add(&in, S("\xef\xbb\xbf"));
        while (str_cut(rest, '\n', &line, &rest)) {
            buf_add(&in, S(": a comment"));
            buf_add(&in, str_z(ends[i]));
            buf_add(&in, line);
            buf_add(&in, str_z(ends[i]));
        }
        for (size_t piece = 1; piece < 9; piece++) {
            outcome o = run(buf_str(&in), piece);
            assert_int_equal(o.status, DEP_OK);
            assert_str(told(&o), S("'日本😀é'"));
            arena_free(o.a);
        }
        arena_free(a);
    }
}

// Streams that leave something out, and what must come of them.
static void test_model_responses_stream__what_is_left_out_is_taken_from_where_it_stands(void **state) {
    (void)state;
    static const struct {
        str bytes, told, heard;
    } rows[] = {
        // Whole items alone.
        {S_INIT(START DONE("", CALL("f", "c", "read", "{}")) COMPLETED), S_INIT("read({})#c="),
         S_INIT("<c read>")},
        {S_INIT(START DONE(AT(0), MESSAGE("m", PART("hi"))) COMPLETED), S_INIT("'hi'="), S_INIT("[hi]")},
        {S_INIT(START DONE(AT(0), CALL("f", "c1", "read", "{}")) DONE(AT(0), CALL("f", "c2", "todo", "{}"))
                    COMPLETED),
         S_INIT("read({})#c1= todo({})#c2="), S_INIT("<c1 read><c2 todo>")},
        // The same item twice.
        {S_INIT(START DONE(AT(0), CALL("f", "c1", "read", "{}")) DONE(AT(0), CALL("f", "c1", "read", "{}"))
                    COMPLETED),
         S_INIT("read({})#c1="), S_INIT("<c1 read>")},
        {S_INIT(START DONE(AT(0), CALL("f1", "c1", "read", "{}"))
                    DONE(AT(0), CALL("f2", "c2", "todo", "{\\\"a\\\":1}")) COMPLETED),
         S_INIT("read({})#c1= todo({\"a\":1})#c2="), S_INIT("<c1 read><c2 todo>")},
        // The last event alone.
        {S_INIT(OUTPUT(REASONING("r", SUMMARY("a") "," SUMMARY("b"), SECRET) "," MESSAGE(
             "m", PART("x") "," PART("y")) "," CALL("f", "c", "read", "{}"))),
         S_INIT("{a\n\nb}= 'xy'= read({})#c="), S_INIT("{a\n\nb}[xy]<c read>")},
        // Deltas without the item they belong to.
        {S_INIT(TEXT("", "a") TEXT("", "b") COMPLETED), S_INIT("'ab'"), S_INIT("[a][b]")},
        {S_INIT(TEXT("", "a") TEXT("", "b") DONE(AT(0), MESSAGE("m", PART("ab"))) COMPLETED), S_INIT("'ab'="),
         S_INIT("[a][b]")},
        {S_INIT(TEXT("", "ab") OUTPUT(MESSAGE("m", PART("abc")))), S_INIT("'abc'="), S_INIT("[ab][c]")},
        {S_INIT(ARGS(OF("f"), "{\\\"a\\\":") ARGS(OF("f"), "1}") DONE(AT(3), CALL("f", "c", "read", ""))
                    COMPLETED),
         S_INIT("read({\"a\":1})#c"), S_INIT("<c read>")},
        // No output_item.done.
        {S_INIT(ADDED(AT(0), CALL("f", "c", "read", "")) ARGS(AT(0), "{\\\"a\\\":1}") COMPLETED),
         S_INIT("read({\"a\":1})#c"), S_INIT("<c read>")},
        {S_INIT(ADDED(AT(0), CALL("f", "c", "read", "")) EVENT(
             "function_call_arguments.done", AT(0) ",\"arguments\":\"{\\\"a\\\":1}\"") COMPLETED),
         S_INIT("read({\"a\":1})#c"), S_INIT("<c read>")},
        {S_INIT(ADDED(AT(0), MESSAGE("m", "")) EVENT("output_text.done", OF("m") ",\"text\":\"whole\"")
                    COMPLETED),
         S_INIT("'whole'"), S_INIT("[whole]")},
        // Two parts, the second told as a whole.
        {S_INIT(ADDED(AT(0), MESSAGE("m", "")) TEXT(AT(0) ",\"content_index\":0", "one ")
                    EVENT("output_text.done", AT(0) ",\"content_index\":0,\"text\":\"one \"")
                        EVENT("output_text.done", AT(0) ",\"content_index\":1,\"text\":\"two\"") COMPLETED),
         S_INIT("'one two'"), S_INIT("[one ][two]")},
        // The type only in the name of the event.
        {S_INIT("event: response.output_text.delta\ndata: {\"delta\":\"x\"}\n\nevent: response.completed\n"
                "data: {}\n\n"),
         S_INIT("'x'"), S_INIT("[x]")},
        // Reasoning as text, and reasoning that cannot be sent back.
        {S_INIT(EVENT("reasoning_text.delta", AT(0) ",\"delta\":\"hm\"")
                    DONE(AT(0), REASONING("r", "",
                                          ",\"content\":[{\"type\":\"reasoning_text\",\"text\":"
                                          "\"hm\"}]")) COMPLETED),
         S_INIT("{hm}="), S_INIT("{hm}")},
        {S_INIT(DONE(AT(0), REASONING("r", SUMMARY("hm"), ",\"encrypted_content\":null")) COMPLETED),
         S_INIT("{hm}"), S_INIT("{hm}")},
        {S_INIT(DONE(AT(0), REASONING("r", "", SECRET)) COMPLETED), S_INIT("{}="), S_INIT("")},
        {S_INIT(DONE(AT(0), REASONING("r", "", "")) COMPLETED), S_INIT(""), S_INIT("")},
        // Blank text, other kinds of items, and the output once more with other ids.
        {S_INIT(DONE(AT(0), MESSAGE("m", PART(" ")))
                    DONE(AT(1), "{\"type\":\"web_search_call\",\"id\":\"w\"}") COMPLETED),
         S_INIT("other="), S_INIT("[ ]")},
        {S_INIT(DONE(AT(0), MESSAGE("m", PART("a"))) DONE(AT(1), CALL("f", "c", "read", "{}"))
                    OUTPUT(MESSAGE("m2", PART("a")) "," CALL("f2", "c2", "read", "{}"))),
         S_INIT("'a'= read({})#c="), S_INIT("[a]<c read>")},
        {S_INIT(DONE("", CALL("", "c", "read", "{}"))
                    OUTPUT(MESSAGE("m", PART("a")) "," CALL("", "c2", "read", "{}"))),
         S_INIT("read({})#c= 'a'="), S_INIT("<c read>[a]")},
        // What streamed is not all of the output.
        {S_INIT(TEXT(AT(0), "a") OUTPUT(MESSAGE("m", PART("a")) "," CALL("f", "c", "read", "{}"))),
         S_INIT("'a'= read({})#c="), S_INIT("[a]<c read>")},
        // Characters that are cut between two escapes.
        {S_INIT(TEXT(AT(0), "a\\ud83d") TEXT(AT(0), "\\ude00b\\uD83D") TEXT(AT(0), "\\uDE01")
                    DONE(AT(0), MESSAGE("m", PART("a\\ud83d\\ude00b😁"))) COMPLETED),
         S_INIT("'a😀b😁'="), S_INIT("[a][😀b][😁]")},
        // The end marker of the older API, and events that are none.
        {S_INIT("data: []\n\ndata: 1\n\ndata: {}\n\ndata: [DONE]\n\n" TEXT("", "a")
                    EVENT("output_text.delta", ",\"delta\":5") EVENT("output_item.added", "") COMPLETED),
         S_INIT("'a'"), S_INIT("[a]")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome o = run(rows[i].bytes, 13);
        if (o.status != DEP_OK) fail_msg("row %zu: %s", i, o.err.msg);
        assert_str(told(&o), rows[i].told);
        assert_str(o.heard, rows[i].heard);
        arena_free(o.a);
    }
}

static void test_model_responses_stream__calls_in_parallel_stay_apart(void **state) {
    (void)state;
#define TWO ADDED(AT(0), CALL("f1", "c1", "read", "")) ADDED(AT(1), CALL("f2", "c2", "todo", ""))
    static const str rows[] = {
        // By index, by id, by either in turn, by the id of the call.
        S_INIT(TWO ARGS(AT(0), "{\\\"a\\\"") ARGS(AT(1), "{\\\"b\\\"") ARGS(AT(0), ":1}") ARGS(AT(1), ":2}")),
        S_INIT(TWO ARGS(OF("f2"), "{\\\"b\\\"") ARGS(OF("f1"), "{\\\"a\\\"") ARGS(OF("f1"), ":1}")
                   ARGS(OF("f2"), ":2}")),
        S_INIT(TWO ARGS(OF("f2") AT(1), "{\\\"b\\\"") ARGS(AT(0), "{\\\"a\\\"") ARGS(OF("f1"), ":1}")
                   ARGS(AT(1), ":2}")),
        S_INIT(TWO ARGS(",\"call_id\":\"c1\"", "{\\\"a\\\":1}") ARGS(",\"call_id\":\"c2\"", "{\\\"b\\\":2}")),
        // An index that is always 0, and one that leads nowhere.
        S_INIT(ADDED(AT(0), CALL("f1", "c1", "read", "")) ADDED(AT(0), CALL("f2", "c2", "todo", ""))
                   ARGS(OF("f1") AT(0), "{\\\"a\\\":1}") ARGS(OF("f2") AT(0), "{\\\"b\\\":2}")),
        S_INIT(TWO ARGS(OF("f1") AT(7), "{\\\"a\\\":1}") ARGS(OF("f2") AT(7), "{\\\"b\\\":2}")),
        // Ids that change from event to event, as long as whole items settle what was meant.
        S_INIT(TWO ARGS(OF("x") AT(0), "{\\\"a\\\":1}") ARGS(OF("y") AT(1), "{\\\"b\\\":2}")
                   DONE(AT(0), CALL("z", "c1", "read", "{\\\"a\\\":1}"))
                       DONE(AT(1), CALL("w", "c2", "todo", "{\\\"b\\\":2}"))),
        // No id at all.
        S_INIT(ADDED(AT(0), CALL("", "c1", "read", "")) ADDED(AT(1), CALL("", "c2", "todo", ""))
                   ARGS(AT(0), "{\\\"a\\\":1}") ARGS(AT(1), "{\\\"b\\\":2}")),
        // One after the other, without keys.
        S_INIT(ADDED("", CALL("", "c1", "read", "")) ARGS("", "{\\\"a\\\":1}")
                   DONE("", CALL("", "c1", "read", "{\\\"a\\\":1}")) ADDED("", CALL("", "c2", "todo", ""))
                       ARGS("", "{\\\"b\\\":2}") DONE("", CALL("", "c2", "todo", "{\\\"b\\\":2}"))),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        buf_add(&in, rows[i]);
        buf_add(&in, S(COMPLETED));
        outcome o = run(buf_str(&in), 17);
        if (o.status != DEP_OK) fail_msg("row %zu: %s", i, o.err.msg);
        assert_int_equal(o.reply.blocks.n, 2);
        assert_str(o.reply.blocks.p[0].input, S("{\"a\":1}"));
        assert_str(o.reply.blocks.p[1].input, S("{\"b\":2}"));
        assert_str(o.reply.blocks.p[0].id, S("c1"));
        assert_str(o.reply.blocks.p[1].id, S("c2"));
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_responses_stream__what_could_belong_to_two_is_an_error(void **state) {
    (void)state;
    static const str rows[] = {
        S_INIT(TWO ARGS("", "{")),
        S_INIT(TWO ARGS(OF("f1") AT(1), "{")),
        S_INIT(TWO ARGS(",\"call_id\":\"c1\"" OF("f2"), "{")),
        S_INIT(ADDED(AT(0), CALL("", "c1", "read", "")) ADDED(AT(0), CALL("", "c2", "todo", ""))
                   ARGS(AT(0), "{")),
        S_INIT(ADDED(AT(0), MESSAGE("m1", "")) ADDED(AT(1), MESSAGE("m2", "")) TEXT("", "x")),
        // Another call at the place of one.
        S_INIT(ADDED(AT(0), CALL("f1", "c1", "read", "")) DONE(AT(0), CALL("f1", "c2", "read", "{}"))),
        S_INIT(ADDED(AT(0), CALL("f1", "c1", "read", "")) DONE(AT(0), CALL("f1", "c1", "todo", "{}"))),
        // Deltas with another id, and nothing that settles it.
        S_INIT(ADDED(AT(0), CALL("f1", "c1", "read", "")) ARGS(OF("x") AT(0), "{}") COMPLETED),
        S_INIT(ADDED(AT(0), CALL("f1", "c1", "read", "")) ARGS(OF("x") AT(0), "{}")
                   DONE(AT(0), CALL("f1", "c1", "read", "")) COMPLETED),
        // Arguments of a call that nobody made.
        S_INIT(ADDED(AT(0), CALL("f1", "c1", "read", "")) ARGS(OF("x"), "{}") COMPLETED),
        S_INIT(ARGS("", "{}") COMPLETED),
        S_INIT(DONE("", CALL("f", "c", "", "{}")) COMPLETED),
        // Two calls whose results could not be told apart.
        S_INIT(DONE(AT(0), CALL("f1", "c", "read", "{}")) DONE(AT(1), CALL("f2", "c", "todo", "{}"))
                   COMPLETED),
        // After its end.
        S_INIT(DONE(AT(0), CALL("f1", "c1", "read", "{}")) ARGS(OF("f1"), "{")),
        S_INIT(DONE(AT(0), MESSAGE("m", PART("a"))) TEXT(AT(0), "b")),
        // No such stream.
        S_INIT("data: not json\n\n"),
        S_INIT(TEXT(AT(0), "\\ude00")),
        S_INIT(TEXT(AT(0), "\\ud83d") TEXT(AT(0), "\\ud83d")),
        S_INIT(TEXT(AT(0), "\\ud83dx")),
        S_INIT("data: {\"type\":\"response.text\xff\"}\n\n"),
        S_INIT(EVENT("output_item.done", "")),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome o = run(rows[i], 5);
        if (o.status != DEP_ERR_PROVIDER) fail_msg("row %zu: %d %.*s", i, o.status, STR_ARG(told(&o)));
        assert_true(strlen(o.err.msg) > 0);
        arena_free(o.a);
    }
}

static void test_model_responses_stream__arguments(void **state) {
    (void)state;
#define FORM(args) "{\"id\":\"f\",\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"n\"" args "}"
    static const struct {
        str item, told;
    } rows[] = {
        {S_INIT(FORM(",\"arguments\":\"{\\\"a\\\":1}\"")), S_INIT("n({\"a\":1})#c=")},
        {S_INIT(FORM(",\"arguments\":\"\"")), S_INIT("n({})#c=")},
        {S_INIT(FORM("")), S_INIT("n({})#c")},
        {S_INIT(FORM(",\"arguments\":null")), S_INIT("n({})#c")},
        {S_INIT(FORM(",\"arguments\":{\"a\":1}")), S_INIT("n({\"a\":1})#c")},
        {S_INIT(FORM(",\"arguments\":\"{\\\"a\\\":\"")), S_INIT("n({\"a\":)#c!=")},
        {S_INIT(FORM(",\"arguments\":\"[1]\"")), S_INIT("n([1])#c!=")},
        {S_INIT(FORM(",\"arguments\":[1]")), S_INIT("n([1])#c!")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o = run(str_fmt(a, "data: {\"type\":\"response.output_item.done\",\"item\":%.*s}\n\n%s",
                                STR_ARG(rows[i].item), COMPLETED),
                        100);
        assert_int_equal(o.status, DEP_OK);
        assert_str(told(&o), rows[i].told);
        assert_int_equal(o.reply.stop, STOP_TOOL_USE);
        arena_free(o.a);
        arena_free(a);
    }
    outcome o = run(S(ADDED(AT(0), CALL("f", "c", "n", ""))
                          EVENT("function_call_arguments.delta", AT(0) ",\"delta\":{\"a\":1}") COMPLETED),
                    100);
    assert_str(told(&o), S("n({\"a\":1})#c"));
    arena_free(o.a);
}

static void test_model_responses_stream__a_call_without_an_id_gets_one_of_its_own(void **state) {
    (void)state;
#define BARE(id, name) "{" id "\"type\":\"function_call\",\"name\":\"" name "\",\"arguments\":\"{}\"}"
    static const struct {
        str bytes, told;
    } rows[] = {
        {S_INIT(DONE(AT(0), BARE("\"id\":\"f1\",", "a")) DONE(AT(1), BARE("\"id\":\"f2\",", "b"))),
         S_INIT("a({})#f1 b({})#f2")},
        {S_INIT(DONE(AT(0), BARE("", "a")) DONE(AT(1), BARE("", "b"))),
         S_INIT("a({})#call_0000000000000000 b({})#call_0000000000000001")},
        {S_INIT(DONE(AT(0), BARE("", "a")) DONE(AT(1), BARE("", "a"))),
         S_INIT("a({})#call_0000000000000000 a({})#call_0000000000000001")},
        // The id of the item is the id of another call.
        {S_INIT(DONE(AT(0), BARE("\"id\":\"x\",", "a")) DONE(AT(1), CALL("y", "x", "b", "{}"))),
         S_INIT("a({})#call_0000000000000000 b({})#x=")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o = run(str_fmt(a, "%.*s%s", STR_ARG(rows[i].bytes), COMPLETED), 100);
        if (o.status != DEP_OK) fail_msg("row %zu: %s", i, o.err.msg);
        assert_str(told(&o), rows[i].told);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_responses_stream__how_a_reply_stops(void **state) {
    (void)state;
#define REASON(r) END("incomplete", ",\"incomplete_details\":{\"reason\":\"" r "\"}" USAGE)
#define HALF ADDED(AT(1), CALL("f", "c", "read", "")) ARGS(AT(1), "{\\\"a\\\":1}")
#define CUT_CALL                                                                                             \
    "{\"id\":\"f\",\"type\":\"function_call\",\"status\":\"incomplete\",\"call_id\":\"c\",\"name\":"         \
    "\"read\",\"arguments\":\"{}\"}"
    static const struct {
        str bytes;
        model_stop stop;
        str stop_text, told;
    } rows[] = {
        {S_INIT(COMPLETED), STOP_END, S_INIT("completed"), S_INIT("'a'")},
        {S_INIT(EVENT("completed", "")), STOP_END, S_INIT("completed"), S_INIT("'a'")},
        {S_INIT(REASON("max_output_tokens")), STOP_MAX_TOKENS, S_INIT("max_output_tokens"), S_INIT("'a'")},
        {S_INIT(REASON("content_filter")), STOP_REFUSAL, S_INIT("content_filter"), S_INIT("'a'")},
        {S_INIT(REASON("something_new")), STOP_OTHER, S_INIT("something_new"), S_INIT("'a'")},
        {S_INIT(END("incomplete", "")), STOP_MAX_TOKENS, S_INIT("incomplete"), S_INIT("'a'")},
        // The status of the response knows better than the name of the event.
        {S_INIT(EVENT("completed", ",\"response\":{\"status\":\"incomplete\",\"incomplete_details\":"
                                   "{\"reason\":\"max_output_tokens\"}}")),
         STOP_MAX_TOKENS, S_INIT("max_output_tokens"), S_INIT("'a'")},
        // Half a call never counts, whatever is in it.
        {S_INIT(HALF REASON("max_output_tokens")), STOP_MAX_TOKENS, S_INIT("max_output_tokens"),
         S_INIT("'a'")},
        {S_INIT(HALF REASON("something_new")), STOP_OTHER, S_INIT("something_new"), S_INIT("'a'")},
        {S_INIT(HALF DONE(AT(1), CUT_CALL) REASON("max_output_tokens")), STOP_MAX_TOKENS,
         S_INIT("max_output_tokens"), S_INIT("'a'")},
        {S_INIT(DONE(AT(1), CALL("f", "c", "read", "{\\\"a")) REASON("max_output_tokens")), STOP_MAX_TOKENS,
         S_INIT("max_output_tokens"), S_INIT("'a'")},
        {S_INIT(DONE(AT(1), CUT_CALL) COMPLETED), STOP_END, S_INIT("completed"), S_INIT("'a'")},
        {S_INIT(DONE(AT(1), CALL("f", "c", "read", "{}")) REASON("max_output_tokens")), STOP_MAX_TOKENS,
         S_INIT("max_output_tokens"), S_INIT("'a' read({})#c=")},
        {S_INIT(HALF COMPLETED), STOP_TOOL_USE, S_INIT("completed"), S_INIT("'a' read({\"a\":1})#c")},
        // What the model says when it declines is its text.
        {S_INIT(EVENT("refusal.delta", AT(1) ",\"delta\":\"I can\"")
                    EVENT("refusal.delta", AT(1) ",\"delta\":\"not.\"") COMPLETED),
         STOP_REFUSAL, S_INIT("refusal"), S_INIT("'a' 'I cannot.'")},
        {S_INIT(DONE(AT(1), MESSAGE("m", "{\"type\":\"refusal\",\"refusal\":\"No.\"}")) COMPLETED),
         STOP_REFUSAL, S_INIT("refusal"), S_INIT("'a' 'No.'=")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o = run(str_fmt(a, "%s%s%.*s", START, TEXT(AT(0), "a"), STR_ARG(rows[i].bytes)), 11);
        if (o.status != DEP_OK) fail_msg("row %zu: %s", i, o.err.msg);
        assert_str(told(&o), rows[i].told);
        assert_int_equal(o.reply.stop, rows[i].stop);
        assert_str(o.reply.stop_text, rows[i].stop_text);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_responses_stream__an_early_end_is_a_network_error_that_keeps_the_text(void **state) {
    (void)state;
    static const struct {
        str bytes, told;
    } rows[] = {
        {S_INIT(""), S_INIT("")},
        {S_INIT(START), S_INIT("")},
        {S_INIT(START TEXT(AT(0), "half an ans")), S_INIT("'half an ans'")},
        {S_INIT(START DONE(AT(0), MESSAGE("m", PART("whole")))), S_INIT("'whole'=")},
        {S_INIT(START TEXT(AT(0), "a") "data: {\"type\""), S_INIT("'a'")},
        {S_INIT(START TEXT(AT(0), "a") HALF), S_INIT("'a'")},
        {S_INIT(START TEXT(AT(0), "a") "data: [DONE]\n\n"), S_INIT("'a'")},
        {S_INIT(START TEXT(AT(0), "a") "data: {\"type\":\"response.completed\"}\n"), S_INIT("'a'")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome o = run(rows[i].bytes, 7);
        assert_int_equal(o.status, DEP_ERR_NETWORK);
        assert_non_null(strstr(o.err.msg, "ended early"));
        assert_str(told(&o), rows[i].told);
        arena_free(o.a);
    }
}

static void test_model_responses_stream__an_error_ends_the_reply_and_keeps_what_was_there(void **state) {
    (void)state;
#define FAILED(error) END("failed", ",\"error\":" error)
    static const struct {
        str bytes;
        const char *message;
        bool passes;
    } rows[] = {
        {S_INIT(FAILED("{\"code\":\"server_error\",\"message\":\"Internal\"}")), "server_error: Internal",
         true},
        {S_INIT(FAILED("{\"code\":\"rate_limit_exceeded\",\"message\":\"Slow\"}")),
         "rate_limit_exceeded: Slow", true},
        {S_INIT(FAILED("{\"code\":\"invalid_prompt\",\"message\":\"two\\nlines\"}")),
         "invalid_prompt: two lines", false},
        {S_INIT(FAILED("null")), "the API ended the response as failed, without a reason", false},
        {S_INIT(EVENT("failed", "")), "the API ended the response as failed, without a reason", false},
        {S_INIT(END("cancelled", "")), "the API ended the response as cancelled, without a reason", false},
        {S_INIT("event: error\ndata: {\"type\":\"error\",\"code\":\"server_error\",\"message\":\"x\","
                "\"param\":null}\n\n"),
         "server_error: x", true},
        {S_INIT("data: {\"type\":\"error\",\"error\":{\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\","
                "\"message\":\"x\"}}\n\n"),
         "rate_limit_exceeded: x", true},
        {S_INIT("data: {\"error\":{\"message\":\"x\",\"type\":\"invalid_request_error\"}}\n\n"),
         "invalid_request_error: x", false},
        {S_INIT("data: {\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":"
                "\"unavailable_error\"}}\n\n"),
         "unavailable_error: Loading model", true},
        {S_INIT("data: {\"error\":{\"code\":400,\"message\":\"x\",\"type\":\"invalid_request_error\"}}\n\n"),
         "invalid_request_error: x", false},
        {S_INIT("data: {\"error\":{\"code\":\"insufficient_quota\",\"message\":\"x\",\"type\":"
                "\"rate_limit_error\"}}\n\n"),
         "insufficient_quota: x", false},
        {S_INIT("data: {\"error\":\"model is loading\"}\n\n"), "model is loading", false},
        {S_INIT(
             "data: {\"object\":\"error\",\"message\":\"x\",\"type\":\"BadRequestError\",\"code\":400}\n\n"),
         "BadRequestError: x", false},
        {S_INIT("event: error\ndata: {}\n\n"), "no message", false},
        {S_INIT("data: {\"type\":\"error\"}\n\n"), "no message", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o = run(str_fmt(a, "%s%.*s%s", TEXT(AT(0), "so far"), STR_ARG(rows[i].bytes),
                                TEXT(AT(0), " and more") COMPLETED),
                        11);
        assert_int_equal(o.status, DEP_ERR_PROVIDER);
        assert_string_equal(o.err.msg, rows[i].message);
        assert_int_equal(responses_stream_error_passes(o.s), rows[i].passes);
        assert_true(responses_stream_has_content(o.s));
        assert_str(told(&o), S("'so far'"));
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_responses_stream__a_response_in_one_document_is_a_reply_too(void **state) {
    (void)state;
    static const struct {
        str bytes;
        dep_status status;
        model_stop stop;
        str told;
        const char *message;
    } rows[] = {
        {S_INIT(" \r\n{\"status\":\"completed\",\"model\":\"gpt-x\",\"error\":null,\"output\":[" MESSAGE(
             "m", PART("日本")) "," CALL("f", "c", "read", "{}") "]" USAGE "}\n"),
         DEP_OK, STOP_TOOL_USE, S_INIT("'日本'= read({})#c="), ""},
        {S_INIT("{\"output\":[]}"), DEP_OK, STOP_END, S_INIT(""), ""},
        {S_INIT("{\"status\":\"incomplete\",\"incomplete_details\":{\"reason\":\"max_output_tokens\"},"
                "\"output\":[" MESSAGE("m", PART("a")) "]}"),
         DEP_OK, STOP_MAX_TOKENS, S_INIT("'a'="), ""},
        {S_INIT("{\"error\":{\"message\":\"model is loading\",\"code\":503}}"), DEP_ERR_PROVIDER, STOP_OTHER,
         S_INIT(""), "model is loading"},
        {S_INIT("{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"x\"}}"),
         DEP_ERR_PROVIDER, STOP_OTHER, S_INIT(""), "server_error: x"},
        {S_INIT("{\"hello\":1}"), DEP_ERR_PROVIDER, STOP_OTHER, S_INIT(""), "neither"},
        {S_INIT("{\"output\":[" MESSAGE("m", PART("a"))), DEP_ERR_NETWORK, STOP_OTHER, S_INIT(""),
         "ended early"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t piece = 1; piece < 200; piece += 66) {
            outcome o = run(rows[i].bytes, piece);
            assert_int_equal(o.status, rows[i].status);
            assert_int_equal(o.reply.stop, rows[i].stop);
            assert_str(told(&o), rows[i].told);
            if (o.status != DEP_OK) assert_non_null(strstr(o.err.msg, rows[i].message));
            arena_free(o.a);
        }
    }
}

static void test_model_responses_stream__content_begins_with_what_is_heard(void **state) {
    (void)state;
    static const struct {
        str bytes;
        bool content;
    } rows[] = {
        {S_INIT(START EVENT("in_progress", "") EVENT("queued", "")), false},
        {S_INIT(START ADDED(AT(0), REASONING("r", "", ""))), false},
        {S_INIT(START EVENT("reasoning_summary_text.delta", AT(0) ",\"delta\":\"h\"")), true},
        {S_INIT(START ADDED(AT(0), MESSAGE("m", ""))), true},
        {S_INIT(START ADDED(AT(0), CALL("f", "c", "read", ""))), true},
        {S_INIT(START TEXT("", "x")), true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome o = run(rows[i].bytes, 50);
        assert_int_equal(responses_stream_has_content(o.s), rows[i].content);
        assert_false(responses_stream_has_usage(o.s));
        arena_free(o.a);
    }
}

static void test_model_responses_stream__odd_usage(void **state) {
    (void)state;
    static const struct {
        str usage;
        int64_t input, cached, output;
        bool has;
    } rows[] = {
        {S_INIT("null"), 0, 0, 0, false},
        {S_INIT("{}"), 0, 0, 0, false},
        {S_INIT("{\"input_tokens\":-1,\"output_tokens\":1e99}"), 0, 0, 0, false},
        {S_INIT("{\"input_tokens\":5,\"output_tokens\":6}"), 5, 0, 6, true},
        {S_INIT("{\"input_tokens\":5,\"input_tokens_details\":{\"cached_tokens\":9}}"), 5, 0, 0, true},
        {S_INIT("{\"output_tokens\":6}"), 0, 0, 6, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o =
            run(str_fmt(a, "data: {\"type\":\"response.completed\",\"response\":{\"usage\":%.*s}}\n\n",
                        STR_ARG(rows[i].usage)),
                100);
        assert_int_equal(o.status, DEP_OK);
        assert_int_equal(o.reply.usage.input, rows[i].input);
        assert_int_equal(o.reply.usage.cache_read, rows[i].cached);
        assert_int_equal(o.reply.usage.output, rows[i].output);
        assert_int_equal(responses_stream_has_usage(o.s), rows[i].has);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_responses_stream__a_reply_may_have_a_thousand_items_and_no_more(void **state) {
    (void)state;
    for (int n = RESPONSES_ITEMS_MAX; n <= RESPONSES_ITEMS_MAX + 1; n++) {
        for (int at_end = 0; at_end < 2; at_end++) {
            arena *a = arena_new();
            buf in = buf_new(a, 0);
            if (at_end) buf_add(&in, S("data: {\"type\":\"response.completed\",\"response\":{\"output\":["));
            for (int i = 0; i < n; i++) {
                if (at_end) {
                    buf_addf(&in, "%s" MESSAGE("m%d", PART("x")), i ? "," : "", i);
                } else {
                    buf_addf(&in,
                             "data: {\"type\":\"response.output_item.done\",\"output_index\":%d,"
                             "\"item\":" MESSAGE("m%d", PART("x")) "}\n\n",
                             i, i);
                }
            }
            buf_add(&in, at_end ? S("]}}\n\n") : S(COMPLETED));
            outcome o = run(buf_str(&in), 4096);
            assert_int_equal(o.status, n == RESPONSES_ITEMS_MAX ? DEP_OK : DEP_ERR_LIMIT);
            if (!at_end || o.status == DEP_OK) assert_int_equal(o.reply.blocks.n, RESPONSES_ITEMS_MAX);
            arena_free(o.a);
            arena_free(a);
        }
    }
}

static void test_model_responses_stream__an_event_of_ten_megabytes_is_read_and_one_over_the_limit_is_not(
    void **state) {
    (void)state;
    arena *a = arena_new();
    buf in = buf_new(a, 0);
    enum { BIG = 10 << 20 };
    buf_add(&in, S("data: {\"type\":\"response.output_text.delta\",\"delta\":\""));
    buf_fill(&in, 'x', BIG);
    buf_add(&in, S("\"}\n\n" COMPLETED));
    outcome o = run(buf_str(&in), 16384);
    assert_int_equal(o.status, DEP_OK);
    assert_int_equal(o.reply.blocks.p[0].text.n, BIG);
    arena_free(o.a);
    for (int over = 0; over < 2; over++) {
        buf_clear(&in);
        buf_add(&in, S(TEXT("", "so far") "data: "));
        buf_fill(&in, ' ', MODEL_EVENT_MAX - 2 + (size_t)over);
        buf_add(&in, S("{}\n\n" COMPLETED));
        o = run(buf_str(&in), 65536);
        assert_int_equal(o.status, over ? DEP_ERR_LIMIT : DEP_OK);
        assert_str(o.reply.blocks.p[0].text, S("so far"));
        arena_free(o.a);
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_responses_stream__a_whole_reply_is_assembled_from_pieces_of_any_size),
        cmocka_unit_test(test_model_responses_stream__line_ends_comments_and_marks_change_nothing),
        cmocka_unit_test(test_model_responses_stream__what_is_left_out_is_taken_from_where_it_stands),
        cmocka_unit_test(test_model_responses_stream__calls_in_parallel_stay_apart),
        cmocka_unit_test(test_model_responses_stream__what_could_belong_to_two_is_an_error),
        cmocka_unit_test(test_model_responses_stream__arguments),
        cmocka_unit_test(test_model_responses_stream__a_call_without_an_id_gets_one_of_its_own),
        cmocka_unit_test(test_model_responses_stream__how_a_reply_stops),
        cmocka_unit_test(test_model_responses_stream__an_early_end_is_a_network_error_that_keeps_the_text),
        cmocka_unit_test(test_model_responses_stream__an_error_ends_the_reply_and_keeps_what_was_there),
        cmocka_unit_test(test_model_responses_stream__a_response_in_one_document_is_a_reply_too),
        cmocka_unit_test(test_model_responses_stream__content_begins_with_what_is_heard),
        cmocka_unit_test(test_model_responses_stream__odd_usage),
        cmocka_unit_test(test_model_responses_stream__a_reply_may_have_a_thousand_items_and_no_more),
        cmocka_unit_test(
            test_model_responses_stream__an_event_of_ten_megabytes_is_read_and_one_over_the_limit_is_not),
    };
    return cmocka_run_group_tests_name("model_responses_stream", tests, NULL, NULL);
}

// Tests of model/anthropic_stream.c: events in, blocks out, without a network.
#include "model/anthropic_int.h"
#include <support/stream_fixture.h>

#define EVENT(name, data) "event: " name "\ndata: " data "\n\n"
#define START                                                                                                \
    EVENT("message_start",                                                                                   \
          "{\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"model\":\"claude-x\",\"usage\":"          \
          "{\"input_tokens\":12,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":4,"            \
          "\"output_tokens\":1}}}")
#define BLOCK(i, block)                                                                                      \
    EVENT("content_block_start",                                                                             \
          "{\"type\":\"content_block_start\",\"index\":" i ",\"content_block\":" block "}")
#define DELTA(i, delta)                                                                                      \
    EVENT("content_block_delta", "{\"type\":\"content_block_delta\",\"index\":" i ",\"delta\":" delta "}")
#define TEXT(i, text) DELTA(i, "{\"type\":\"text_delta\",\"text\":\"" text "\"}")
#define INPUT(i, text) DELTA(i, "{\"type\":\"input_json_delta\",\"partial_json\":\"" text "\"}")
#define CLOSE(i) EVENT("content_block_stop", "{\"type\":\"content_block_stop\",\"index\":" i "}")
#define REASON(reason)                                                                                       \
    EVENT("message_delta", "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"" reason                \
                           "\"},\"usage\":{\"output_tokens\":25}}")
#define STOP EVENT("message_stop", "{\"type\":\"message_stop\"}")
#define TEXT_BLOCK "{\"type\":\"text\",\"text\":\"\"}"
#define TOOL_BLOCK "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{}}"

static outcome run(str bytes, size_t piece) {
    const model_wire w = {
        .open = anthropic_stream_new, .feed = anthropic_stream_feed, .end = anthropic_stream_end};
    return stream_run(&w, bytes, piece);
}

static void test_model_anthropic_stream__a_whole_reply_is_assembled_from_pieces_of_any_size(void **state) {
    (void)state;
    static const str bytes = S_INIT(
        START EVENT("ping", "{\"type\":\"ping\"}")
            BLOCK("0", "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}") DELTA(
                "0", "{\"type\":\"thinking_delta\",\"thinking\":\"Let me \"}")
                DELTA("0", "{\"type\":\"thinking_delta\",\"thinking\":\"see \\\"日本\\\"\"}") DELTA(
                    "0", "{\"type\":\"signature_delta\",\"signature\":\"U0lH\"}") CLOSE("0")
                    BLOCK("1", "{\"type\":\"redacted_thinking\",\"data\":\"b64==\"}") CLOSE("1") BLOCK(
                        "2", "{\"citations\":null,\"type\":\"text\",\"text\":\"\"}") TEXT("2", "Hé")
                        TEXT("2", "llo\\n😀") EVENT("ping", "{\"type\":\"ping\"}") CLOSE("2") BLOCK(
                            "3", TOOL_BLOCK) INPUT("3", "") INPUT("3", "{\\\"pa")
                            INPUT("3", "th\\\": \\\"a\\\\\\\\u00e9\\\"") INPUT("3", "}") CLOSE("3") BLOCK(
                                "4", "{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"todo\",\"input\":{}}")
                                CLOSE("4") BLOCK(
                                    "5", "{\"type\":\"future_thing\",\"x\":[1, 2.50,\"\\u00e9\"],\"y\":{}}")
                                    CLOSE("5") EVENT("future_event", "{\"type\":\"future_event\"}")
                                        REASON("tool_use") STOP);
    for (size_t piece = 1; piece <= bytes.n; piece += piece < 20 ? 1 : 577) {
        outcome o = run(bytes, piece);
        assert_int_equal(o.status, DEP_OK);
        assert_true(o.done);
        const model_reply *r = &o.reply;
        assert_int_equal(r->blocks.n, 6);
        const model_block *b = r->blocks.p;
        assert_int_equal(b[0].kind, BLOCK_THINKING);
        assert_str(b[0].text, S("Let me see \"日本\""));
        assert_str(
            b[0].raw,
            S("{\"type\":\"thinking\",\"thinking\":\"Let me see \\\"日本\\\"\",\"signature\":\"U0lH\"}"));
        assert_int_equal(b[1].kind, BLOCK_THINKING);
        assert_int_equal(b[1].text.n, 0);
        assert_str(b[1].raw, S("{\"type\":\"redacted_thinking\",\"data\":\"b64==\"}"));
        assert_int_equal(b[2].kind, BLOCK_TEXT);
        assert_str(b[2].text, S("Héllo\n😀"));
        assert_str(b[2].raw, S("{\"citations\":null,\"type\":\"text\",\"text\":\"Héllo\\n😀\"}"));
        assert_int_equal(b[3].kind, BLOCK_TOOL_USE);
        assert_str(b[3].id, S("t1"));
        assert_str(b[3].name, S("read"));
        assert_str(b[3].input, S("{\"path\": \"a\\\\u00e9\"}"));
        assert_false(b[3].bad_input);
        assert_str(b[3].raw, S("{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{\"path\": "
                               "\"a\\\\u00e9\"}}"));
        assert_str(b[4].input, S("{}"));
        assert_int_equal(b[5].kind, BLOCK_OTHER);
        assert_str(b[5].raw, S("{\"type\":\"future_thing\",\"x\":[1, 2.50,\"\\u00e9\"],\"y\":{}}"));
        assert_int_equal(r->stop, STOP_TOOL_USE);
        assert_str(r->stop_text, S("tool_use"));
        assert_str(r->model, S("claude-x"));
        assert_int_equal(r->usage.input, 12);
        assert_int_equal(r->usage.output, 25);
        assert_int_equal(r->usage.cache_write, 3);
        assert_int_equal(r->usage.cache_read, 4);
        assert_true(o.s->facts.has_usage);
        assert_str(o.heard, S("{Let me }{see \"日本\"}[Hé][llo\n😀]<t1 read><t2 todo>"));
        arena_free(o.a);
    }
}

static void test_model_anthropic_stream__bad_arguments_are_kept_and_echoed_as_an_empty_object(void **state) {
    (void)state;
    static const struct {
        str pieces, input;
        bool bad;
    } rows[] = {
        {S_INIT(INPUT("0", "{\\\"a\\\":")), S_INIT("{\"a\":"), true},
        {S_INIT(INPUT("0", "[1]")), S_INIT("[1]"), true},
        {S_INIT(INPUT("0", "\\\"text\\\"")), S_INIT("\"text\""), true},
        {S_INIT(INPUT("0", "{\\\"a\\\":1,\\\"a\\\":2}")), S_INIT("{\"a\":1,\"a\":2}"), true},
        {S_INIT(INPUT("0", "{} {}")), S_INIT("{} {}"), true},
        {S_INIT(INPUT("0", "  ")), S_INIT("{}"), false},
        {S_INIT(INPUT("0", " {\\\"a\\\":1}\\n")), S_INIT("{\"a\":1}"), false},
        {S_INIT(""), S_INIT("{}"), false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        buf_add(&in, S(START BLOCK("0", TOOL_BLOCK)));
        buf_add(&in, rows[i].pieces);
        buf_add(&in, S(CLOSE("0") REASON("tool_use") STOP));
        outcome o = run(buf_str(&in), 1000);
        assert_int_equal(o.status, DEP_OK);
        assert_int_equal(o.reply.blocks.n, 1);
        assert_str(o.reply.blocks.p[0].input, rows[i].input);
        assert_int_equal(o.reply.blocks.p[0].bad_input, rows[i].bad);
        if (rows[i].bad)
            assert_str(o.reply.blocks.p[0].raw,
                       S("{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{}}"));
        arena_free(o.a);
        arena_free(a);
    }
}

// Found by fuzzing: half an input of a block that is no call was echoed as it was.
static void test_model_anthropic_stream__a_bad_input_of_any_block_is_echoed_as_an_empty_object(void **state) {
    (void)state;
    outcome o =
        run(S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a") INPUT("0", "{\\\"path\\\"") CLOSE("0")
                  BLOCK("1", "{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":5}") CLOSE("1") STOP),
            9);
    assert_int_equal(o.status, DEP_OK);
    assert_str(o.reply.blocks.p[0].raw, S("{\"type\":\"text\",\"text\":\"a\",\"input\":{}}"));
    assert_str(o.reply.blocks.p[1].raw, S("{\"type\":\"server_tool_use\",\"id\":\"s\",\"input\":{}}"));
    arena_free(o.a);
}

static void test_model_anthropic_stream__a_whole_input_in_the_start_event_is_taken(void **state) {
    (void)state;
    outcome o =
        run(S(START BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{\"a\":1}}")
                  CLOSE("0") STOP),
            50);
    assert_int_equal(o.status, DEP_OK);
    assert_str(o.reply.blocks.p[0].input, S("{\"a\":1}"));
    // No reason was given, but there is a call.
    assert_int_equal(o.reply.stop, STOP_TOOL_USE);
    arena_free(o.a);
}

static void test_model_anthropic_stream__stop_reasons(void **state) {
    (void)state;
    static const struct {
        str reason;
        model_stop plain, with_call;
    } rows[] = {
        {S_INIT(REASON("end_turn")), STOP_END, STOP_TOOL_USE},
        {S_INIT(REASON("stop_sequence")), STOP_END, STOP_TOOL_USE},
        {S_INIT(REASON("tool_use")), STOP_END, STOP_TOOL_USE},
        {S_INIT(REASON("max_tokens")), STOP_MAX_TOKENS, STOP_MAX_TOKENS},
        {S_INIT(REASON("model_context_window_exceeded")), STOP_MAX_TOKENS, STOP_MAX_TOKENS},
        {S_INIT(REASON("pause_turn")), STOP_PAUSE, STOP_PAUSE},
        {S_INIT(REASON("refusal")), STOP_REFUSAL, STOP_REFUSAL},
        {S_INIT(REASON("something_new")), STOP_OTHER, STOP_TOOL_USE},
        {S_INIT(""), STOP_OTHER, STOP_TOOL_USE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int call = 0; call < 2; call++) {
            arena *a = arena_new();
            buf in = buf_new(a, 0);
            buf_add(&in, S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "x") CLOSE("0")));
            if (call) buf_add(&in, S(BLOCK("1", TOOL_BLOCK) CLOSE("1")));
            buf_add(&in, rows[i].reason);
            buf_add(&in, S(STOP));
            outcome o = run(buf_str(&in), 1000);
            assert_int_equal(o.status, DEP_OK);
            assert_int_equal(o.reply.stop, call ? rows[i].with_call : rows[i].plain);
            arena_free(o.a);
            arena_free(a);
        }
    }
}

static void test_model_anthropic_stream__an_early_end_is_a_network_error_that_keeps_the_text(void **state) {
    (void)state;
    static const struct {
        str bytes, text;
        size_t blocks;
    } rows[] = {
        {S_INIT(""), S_INIT(""), 0},
        {S_INIT(START), S_INIT(""), 0},
        {S_INIT(START BLOCK("0", TEXT_BLOCK) TEXT("0", "half an ans")), S_INIT("half an ans"), 1},
        {S_INIT(START BLOCK("0", TEXT_BLOCK) TEXT("0", "whole") CLOSE("0")), S_INIT("whole"), 1},
        {S_INIT(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a") "event: content_block_delta\ndata: {\"type\""),
         S_INIT("a"), 1},
        // Half a call never counts, whatever is in it.
        {S_INIT(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a") CLOSE("0") BLOCK("1", TOOL_BLOCK)
                    INPUT("1", "{}")),
         S_INIT("a"), 1},
        {S_INIT(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a") REASON("end_turn")), S_INIT("a"), 1},
        {S_INIT(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a") CLOSE("0")
                    REASON("end_turn") "event: message_stop\n"),
         S_INIT("a"), 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome o = run(rows[i].bytes, 7);
        assert_int_equal(o.status, DEP_ERR_NETWORK);
        assert_non_null(strstr(o.err.msg, "ended early"));
        assert_int_equal(o.reply.blocks.n, rows[i].blocks);
        if (rows[i].blocks) assert_str(o.reply.blocks.p[0].text, rows[i].text);
        arena_free(o.a);
    }
}

static void test_model_anthropic_stream__a_reason_to_stop_completes_a_stream_without_its_last_event(
    void **state) {
    (void)state;
    outcome o = run(S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a") CLOSE("0") REASON("end_turn")), 7);
    assert_int_equal(o.status, DEP_OK);
    assert_false(o.done);
    assert_int_equal(o.reply.stop, STOP_END);
    arena_free(o.a);
}

static void test_model_anthropic_stream__an_error_event_ends_the_reply_and_keeps_what_was_there(
    void **state) {
    (void)state;
    static const struct {
        str error;
        const char *message;
        bool passes;
    } rows[] = {
        {S_INIT("{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}"), "overloaded_error: Overloaded",
         true},
        {S_INIT("{\"type\":\"api_error\",\"message\":\"Internal\"}"), "api_error: Internal", true},
        {S_INIT("{\"type\":\"invalid_request_error\",\"message\":\"two\\nlines\"}"),
         "invalid_request_error: two lines", false},
        {S_INIT("{}"), "error: no message", false},
        {S_INIT("\"text\""), "error: no message", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        buf_add(&in, S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "so far")));
        buf_addf(&in, "event: error\ndata: {\"type\":\"error\",\"error\":%.*s}\n\n", STR_ARG(rows[i].error));
        buf_add(&in, S(TEXT("0", " and more") CLOSE("0") REASON("end_turn") STOP));
        outcome o = run(buf_str(&in), 11);
        assert_int_equal(o.status, DEP_ERR_PROVIDER);
        assert_string_equal(o.err.msg, rows[i].message);
        assert_int_equal(o.s->facts.passes, rows[i].passes);
        assert_true(o.s->facts.has_content);
        assert_int_equal(o.reply.blocks.n, 1);
        assert_str(o.reply.blocks.p[0].text, S("so far"));
        assert_int_equal(o.reply.usage.input, 12);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_anthropic_stream__what_is_no_such_stream_is_a_provider_error(void **state) {
    (void)state;
    static const str rows[] = {
        S_INIT("data: not json\n\n"),
        S_INIT("data: {\"type\":\"content_block_start\",\"index\":0}\n\n"),
        S_INIT("data: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\"}}\n\n"),
        S_INIT("data: "
               "{\"type\":\"content_block_start\",\"index\":-1,\"content_block\":{\"type\":\"text\"}}\n\n"),
        S_INIT(TEXT("0", "x")),
        S_INIT(BLOCK("0", TEXT_BLOCK) TEXT("1", "x")),
        S_INIT(BLOCK("0", TEXT_BLOCK) CLOSE("0") TEXT("0", "x")),
        S_INIT(BLOCK("0", "{\"type\":\"tool_use\",\"name\":\"n\",\"input\":{}}")),
        S_INIT(BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"i\",\"input\":{}}")),
        S_INIT("data: {\"type\":\"text\xff\"}\n\n"),
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        outcome o = run(rows[i], 5);
        assert_int_equal(o.status, DEP_ERR_PROVIDER);
        assert_true(strlen(o.err.msg) > 0);
        arena_free(o.a);
    }
}

static void test_model_anthropic_stream__odd_but_harmless_events_are_passed_over(void **state) {
    (void)state;
    outcome o =
        run(S("data: {}\n\ndata: []\n\ndata: 1\n\n" CLOSE("9") BLOCK("0", TEXT_BLOCK) TEXT("0", "a")
                  DELTA("0", "{\"type\":\"new_delta\",\"x\":1}") DELTA("0", "{\"type\":\"text_delta\"}")
                      DELTA("0", "{\"type\":\"text_delta\",\"text\":5}") CLOSE("0")
                          CLOSE("0") "data: {\"type\":\"message_delta\"}\n\ndata: [DONE]\n\n" STOP TEXT(
                              "0", "after the end")),
            9);
    assert_int_equal(o.status, DEP_OK);
    assert_int_equal(o.reply.blocks.n, 1);
    assert_str(o.reply.blocks.p[0].text, S("a"));
    assert_false(o.s->facts.has_usage);
    arena_free(o.a);
}

// Else a budget of tokens would never be spent.
static void test_model_anthropic_stream__a_usage_of_nothing_but_0_is_none(void **state) {
    (void)state;
    static const struct {
        const char *usage;
        bool has;
    } rows[] = {{"{\"input_tokens\":0,\"output_tokens\":0}", false},
                {"{\"input_tokens\":0,\"output_tokens\":1}", true},
                {"{\"input_tokens\":1,\"output_tokens\":0}", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o =
            run(str_fmt(a, "data: {\"type\":\"message_delta\",\"usage\":%s}\n\n" STOP, rows[i].usage), 9);
        assert_int_equal(o.s->facts.has_usage, rows[i].has);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_anthropic_stream__blank_text_is_no_block_and_interleaved_blocks_stay_apart(
    void **state) {
    (void)state;
    outcome o = run(S(START BLOCK("0", TEXT_BLOCK) CLOSE("0") BLOCK("1", TEXT_BLOCK) BLOCK("2", TEXT_BLOCK)
                          TEXT("1", "a") TEXT("2", "b") TEXT("1", "c") CLOSE("2") CLOSE("1")
                              BLOCK("3", TEXT_BLOCK) TEXT("3", " \\n") CLOSE("3") REASON("end_turn") STOP),
                    100);
    assert_int_equal(o.status, DEP_OK);
    assert_int_equal(o.reply.blocks.n, 2);
    assert_str(o.reply.blocks.p[0].text, S("ac"));
    assert_str(o.reply.blocks.p[1].text, S("b"));
    arena_free(o.a);
}

static void test_model_anthropic_stream__a_character_cut_between_two_escapes_is_one(void **state) {
    (void)state;
    outcome o = run(S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a\\ud83d") TEXT("0", "\\ude00b") CLOSE("0")
                          BLOCK("1", TOOL_BLOCK) INPUT("1", "{\\\"path\\\":\\\"\\ud83d")
                              INPUT("1", "\\ude00\\\"}") CLOSE("1") REASON("tool_use") STOP),
                    9);
    assert_int_equal(o.status, DEP_OK);
    assert_str(o.reply.blocks.p[0].text, S("a😀b"));
    assert_str(o.reply.blocks.p[1].input, S("{\"path\":\"😀\"}"));
    assert_str(o.heard, S("[a][😀b]<t1 read>"));
    arena_free(o.a);
    o = run(S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "a\\ude00")), 9);
    assert_int_equal(o.status, DEP_ERR_PROVIDER);
    arena_free(o.a);
}

static void test_model_anthropic_stream__citations_and_text_of_the_start_event_are_kept(void **state) {
    (void)state;
    outcome o = run(S(START BLOCK("0", "{\"type\":\"text\",\"text\":\"be\",\"citations\":[]}")
                          TEXT("0", "gun") DELTA("0", "{\"type\":\"citations_delta\",\"citation\":{\"n\":1}}")
                              DELTA("0", "{\"type\":\"citations_delta\",\"citation\":{\"n\":2}}") CLOSE("0")
                                  REASON("end_turn") STOP),
                    3);
    assert_int_equal(o.status, DEP_OK);
    assert_str(o.reply.blocks.p[0].text, S("begun"));
    assert_str(o.reply.blocks.p[0].raw,
               S("{\"type\":\"text\",\"text\":\"begun\",\"citations\":[{\"n\":1},{\"n\":2}]}"));
    assert_str(o.heard, S("[be][gun]"));
    arena_free(o.a);
}

static void test_model_anthropic_stream__a_reply_may_have_a_thousand_blocks_and_no_more(void **state) {
    (void)state;
    for (int n = 1000; n <= 1001; n++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        for (int i = 0; i < n; i++) {
            buf_addf(&in,
                     "data: "
                     "{\"type\":\"content_block_start\",\"index\":%d,\"content_block\":{\"type\":\"text\","
                     "\"text\":\"x\"}}\n\n",
                     i);
            buf_addf(&in, "data: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i);
        }
        buf_add(&in, S(STOP));
        outcome o = run(buf_str(&in), 4096);
        assert_int_equal(o.status, n == 1000 ? DEP_OK : DEP_ERR_LIMIT);
        assert_int_equal(o.reply.blocks.n, 1000);
        arena_free(o.a);
        arena_free(a);
    }
}

#define THINKING_BLOCK "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}"
#define THINK(i, text) DELTA(i, "{\"type\":\"thinking_delta\",\"thinking\":\"" text "\"}")
#define SIGN(i) DELTA(i, "{\"type\":\"signature_delta\",\"signature\":\"U0lH\"}")
#define WHOLE_CALL BLOCK("1", TOOL_BLOCK) INPUT("1", "{\\\"a\\\":1}") CLOSE("1")

static void test_model_anthropic_stream__at_the_token_limit_half_a_block_is_left_out(void **state) {
    (void)state;
    // kinds: one letter a block that stays (T text, H thinking, C call, O other); raw: how many are echoed.
    static const struct {
        str bytes;
        const char *kinds;
    } rows[] = {
        // Calls: cut in the arguments, closed or not; not begun; whole.
        {S_INIT(BLOCK("0", TEXT_BLOCK) TEXT("0", "so") CLOSE("0") BLOCK("1", TOOL_BLOCK)
                    INPUT("1", "{\\\"path\\\": \\\"a")),
         "T"},
        {S_INIT(BLOCK("0", TEXT_BLOCK) TEXT("0", "so") CLOSE("0") BLOCK("1", TOOL_BLOCK)
                    INPUT("1", "{\\\"path\\\": \\\"a") CLOSE("1")),
         "T"},
        {S_INIT(BLOCK("1", TOOL_BLOCK) INPUT("1", "[1]") CLOSE("1")), ""},
        {S_INIT(BLOCK("1", TOOL_BLOCK) INPUT("1", "{\\\"a\\\":1}")), ""},
        {S_INIT(BLOCK("1", TOOL_BLOCK) INPUT("1", "") CLOSE("1")), ""},
        {S_INIT(BLOCK("1", TOOL_BLOCK)), ""},
        {S_INIT(WHOLE_CALL), "C"},
        {S_INIT(BLOCK("1", TOOL_BLOCK) INPUT("1", "{}") CLOSE("1")), "C"},
        // One without arguments that another block follows is whole.
        {S_INIT(BLOCK("0", TOOL_BLOCK) CLOSE("0") WHOLE_CALL), "CC"},
        {S_INIT(BLOCK("0", TOOL_BLOCK) CLOSE("0") BLOCK("1", TOOL_BLOCK) INPUT("1", "{\\\"a")), "C"},
        {S_INIT(BLOCK("0", "{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"n\",\"input\":{\"a\":1}}")
                    CLOSE("0")),
         "C"},
        // Thinking: only with its signature.
        {S_INIT(BLOCK("0", THINKING_BLOCK) THINK("0", "hm")), ""},
        {S_INIT(BLOCK("0", THINKING_BLOCK) THINK("0", "hm") CLOSE("0")), ""},
        {S_INIT(BLOCK("0", THINKING_BLOCK) THINK("0", "hm") SIGN("0") CLOSE("0") WHOLE_CALL), "HC"},
        {S_INIT(BLOCK("0", "{\"type\":\"redacted_thinking\",\"data\":\"b64==\"}") CLOSE("0")
                    BLOCK("1", TEXT_BLOCK) TEXT("1", "half a sen")),
         "HT"},
        {S_INIT(BLOCK("0", "{\"type\":\"future_thing\",\"x\":1}") CLOSE("0")), "O"},
    };
    static const str reasons[] = {S_INIT(REASON("max_tokens") STOP),
                                  S_INIT(REASON("model_context_window_exceeded") STOP)};
    for (size_t i = 0; i < sizeof rows / sizeof *rows * 2; i++) {
        arena *a = arena_new();
        str bytes = str_fmt(a, "%s%.*s%.*s", START, STR_ARG(rows[i / 2].bytes), STR_ARG(reasons[i % 2]));
        outcome o = run(bytes, 1);
        assert_int_equal(o.status, DEP_OK);
        assert_int_equal(o.reply.stop, STOP_MAX_TOKENS);
        char kinds[8] = "";
        for (size_t k = 0; k < o.reply.blocks.n; k++) {
            kinds[k] = "THCRO"[o.reply.blocks.p[k].kind];
            assert_true(o.reply.blocks.p[k].raw.n > 0);
        }
        if (strcmp(kinds, rows[i / 2].kinds) != 0)
            fail_msg("%.*s: %s is not %s", STR_ARG(rows[i / 2].bytes), kinds, rows[i / 2].kinds);
        arena_free(o.a);
        arena_free(a);
    }
    // Under any other reason the same blocks stay.
    outcome o = run(S(START BLOCK("0", THINKING_BLOCK) THINK("0", "hm") CLOSE("0") BLOCK("1", TOOL_BLOCK)
                          CLOSE("1") REASON("tool_use") STOP),
                    1);
    assert_int_equal(o.reply.blocks.n, 2);
    arena_free(o.a);
}

static void test_model_anthropic_stream__an_event_of_ten_million_bytes_passes(void **state) {
    (void)state;
    enum { LARGE = 10 * 1000 * 1000 };
    arena *a = arena_new();
    buf in = buf_new(a, 0);
    buf_add(&in,
            S(START BLOCK(
                "0",
                TEXT_BLOCK) "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,"
                            "\"delta\":{\"type\":\"text_delta\",\"text\":\""));
    buf_fill(&in, 'x', LARGE);
    buf_add(&in, S("\"}}\n\n" CLOSE("0") REASON("end_turn") STOP));
    outcome o = run(buf_str(&in), 4099);
    assert_int_equal(o.status, DEP_OK);
    assert_int_equal(o.reply.blocks.p[0].text.n, LARGE);
    assert_int_equal(o.heard.n, LARGE + 2);
    arena_free(o.a);
    arena_free(a);
}

static void test_model_anthropic_stream__an_event_over_its_limit_ends_the_reply(void **state) {
    (void)state;
    arena *a = arena_new();
    model_stream *s = anthropic_stream_new(a, NULL, NULL);
    buf line = buf_new(a, 0);
    bool done;
    dep_err err;
    buf_fill(&line, 'x', 1 << 20);
    assert_int_equal(
        anthropic_stream_feed(s, S(START BLOCK("0", TEXT_BLOCK) TEXT("0", "so far") "data: "), &done, &err),
        DEP_OK);
    for (int i = 0; i < 16; i++)
        assert_int_equal(anthropic_stream_feed(s, buf_str(&line), &done, &err), DEP_OK);
    assert_int_equal(anthropic_stream_feed(s, S("y"), &done, &err), DEP_ERR_LIMIT);
    model_reply r;
    assert_int_equal(anthropic_stream_end(s, false, &r, &err), DEP_OK);
    assert_str(r.blocks.p[0].text, S("so far"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_anthropic_stream__a_whole_reply_is_assembled_from_pieces_of_any_size),
        cmocka_unit_test(test_model_anthropic_stream__bad_arguments_are_kept_and_echoed_as_an_empty_object),
        cmocka_unit_test(test_model_anthropic_stream__a_bad_input_of_any_block_is_echoed_as_an_empty_object),
        cmocka_unit_test(test_model_anthropic_stream__a_whole_input_in_the_start_event_is_taken),
        cmocka_unit_test(test_model_anthropic_stream__stop_reasons),
        cmocka_unit_test(test_model_anthropic_stream__an_early_end_is_a_network_error_that_keeps_the_text),
        cmocka_unit_test(
            test_model_anthropic_stream__a_reason_to_stop_completes_a_stream_without_its_last_event),
        cmocka_unit_test(test_model_anthropic_stream__an_error_event_ends_the_reply_and_keeps_what_was_there),
        cmocka_unit_test(test_model_anthropic_stream__what_is_no_such_stream_is_a_provider_error),
        cmocka_unit_test(test_model_anthropic_stream__odd_but_harmless_events_are_passed_over),
        cmocka_unit_test(test_model_anthropic_stream__a_usage_of_nothing_but_0_is_none),
        cmocka_unit_test(
            test_model_anthropic_stream__blank_text_is_no_block_and_interleaved_blocks_stay_apart),
        cmocka_unit_test(test_model_anthropic_stream__a_character_cut_between_two_escapes_is_one),
        cmocka_unit_test(test_model_anthropic_stream__citations_and_text_of_the_start_event_are_kept),
        cmocka_unit_test(test_model_anthropic_stream__a_reply_may_have_a_thousand_blocks_and_no_more),
        cmocka_unit_test(test_model_anthropic_stream__at_the_token_limit_half_a_block_is_left_out),
        cmocka_unit_test(test_model_anthropic_stream__an_event_of_ten_million_bytes_passes),
        cmocka_unit_test(test_model_anthropic_stream__an_event_over_its_limit_ends_the_reply),
    };
    return cmocka_run_group_tests_name("model_anthropic_stream", tests, NULL, NULL);
}

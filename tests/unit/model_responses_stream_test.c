// Tests of model/responses_stream.c: events in, blocks out, without a network.
#include <support/responses_events.h>

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
        assert_true(o.s->facts.has_usage);
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
        assert_int_equal(o.s->facts.passes, rows[i].passes);
        assert_true(o.s->facts.has_content);
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
        assert_int_equal(o.s->facts.has_content, rows[i].content);
        assert_false(o.s->facts.has_usage);
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
        {S_INIT("{\"input_tokens\":0,\"output_tokens\":0}"), 0, 0, 0, false},
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
        assert_int_equal(o.s->facts.has_usage, rows[i].has);
        arena_free(o.a);
        arena_free(a);
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
        cmocka_unit_test(test_model_responses_stream__how_a_reply_stops),
        cmocka_unit_test(test_model_responses_stream__an_early_end_is_a_network_error_that_keeps_the_text),
        cmocka_unit_test(test_model_responses_stream__an_error_ends_the_reply_and_keeps_what_was_there),
        cmocka_unit_test(test_model_responses_stream__a_response_in_one_document_is_a_reply_too),
        cmocka_unit_test(test_model_responses_stream__content_begins_with_what_is_heard),
        cmocka_unit_test(test_model_responses_stream__odd_usage),
        cmocka_unit_test(
            test_model_responses_stream__an_event_of_ten_megabytes_is_read_and_one_over_the_limit_is_not),
    };
    return cmocka_run_group_tests_name("model_responses_stream", tests, NULL, NULL);
}

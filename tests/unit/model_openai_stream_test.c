// Tests of model/openai_stream.c: chunks in, blocks out, without a network.
#include <support/openai_chunks.h>

static void test_model_openai_stream__a_whole_reply_is_assembled_from_pieces_of_any_size(void **state) {
    (void)state;
    static const str bytes = S_INIT(
        START CHOICE("{\"reasoning_content\":\"Let me \"}", "null")
            CHOICE("{\"reasoning_content\":\"see \\\"日本\\\"\"}", "null")
                TEXT("Hé") ": keep-alive\n\n" TEXT("llo\\n😀") CALLS(HEAD(AT("0"), "call_1", "read", ""))
                    CALLS(ARGS(AT("0"), "{\\\"p\\\":")) CALLS(ARGS(AT("0"), "\\\"é\\\"}"))
                        CALLS(HEAD(AT("1"), "call_2", "todo", "")) FINISH("tool_calls")
                            USAGE("{\"prompt_tokens\":12,\"completion_tokens\":25,\"prompt_tokens_details\":{"
                                  "\"cached_tokens\":4}}") DONE);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        outcome o = run(bytes, sizes[i]);
        assert_str(
            shown(&o),
            S("H(Let me see \"日本\") T(Héllo\n😀) C(call_1 read {\"p\":\"é\"}) C(call_2 todo {}) tool_use"));
        const model_reply *r = &o.reply;
        assert_true(o.done);
        assert_str(r->blocks.p[0].raw, S("{\"reasoning_content\":\"Let me see \\\"日本\\\"\"}"));
        assert_str(r->blocks.p[2].raw, S("{\"id\":\"call_1\",\"type\":\"function\",\"function\":{\"name\":"
                                         "\"read\",\"arguments\":\"{\\\"p\\\":\\\"é\\\"}\"}}"));
        assert_str(r->blocks.p[3].raw, S("{\"id\":\"call_2\",\"type\":\"function\",\"function\":{\"name\":"
                                         "\"todo\",\"arguments\":\"\"}}"));
        assert_str(r->stop_text, S("tool_calls"));
        assert_str(r->model, S("gpt-x"));
        assert_int_equal(r->usage.input, 8);
        assert_int_equal(r->usage.cache_read, 4);
        assert_int_equal(r->usage.output, 25);
        assert_true(o.s->facts.has_usage);
        assert_str(o.heard, S("{Let me }{see \"日本\"}[Hé][llo\n😀]<call_1 read><call_2 todo>"));
        arena_free(o.a);
    }
}

static str with_line_ends(arena *a, str text, const char *line_end) {
    buf out = buf_new(a, 0);
    str line;
    while (str_cut(text, '\n', &line, &text)) {
        buf_add(&out, line);
        buf_add(&out, str_z(line_end));
    }
    return buf_str(&out);
}

static void test_model_openai_stream__line_ends_marks_and_comments_make_no_difference(void **state) {
    (void)state;
    static const char *const ends[] = {"\n", "\r", "\r\n"};
    for (size_t i = 0; i < 3; i++) {
        arena *a = arena_new();
        str body = with_line_ends(
            a,
            S(": OPENROUTER PROCESSING\n\nretry: 5\n" START TEXT("日") ":\n" TEXT("本") FINISH("stop") DONE),
            ends[i]);
        check("plain", body, "T(日本) end");
        check("with a mark", str_fmt(a, "\xEF\xBB\xBF" STR_FMT, STR_ARG(body)), "T(日本) end");
        check("blank lines first", str_fmt(a, "%s%s" STR_FMT, ends[i], ends[i], STR_ARG(body)),
              "T(日本) end");
        arena_free(a);
    }
}

// --- Ends ------------------------------------------------------------------------------------------------

static void test_model_openai_stream__a_reason_or_the_end_mark_completes_a_stream(void **state) {
    (void)state;
#define EARLY "network: the reply ended early: the stream stopped before its last event"
    static const struct {
        str bytes;
        const char *shown;
    } rows[] = {
        {S_INIT(TEXT("a") FINISH("stop") DONE), "T(a) end"},
        {S_INIT(TEXT("a") FINISH("stop")), "T(a) end"},
        {S_INIT(TEXT("a") FINISH("stop") "data: {\"choi"), "T(a) end"},
        {S_INIT(TEXT("a") DONE), "T(a) other"},
        {S_INIT(DONE), "other"},
        {S_INIT("data:[DONE]\n\n"), "other"},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) DONE), "C(i read {\"p\":\"a\"}) tool_use"},
        {S_INIT(TEXT("a") FINISH("stop") DONE TEXT("after the end")), "T(a) end"},
        // The usage may come before, with, or after the reason; after it there is nothing more.
        {S_INIT(TEXT("a") FINISH("stop") USAGE("{\"prompt_tokens\":1,\"completion_tokens\":1}") TEXT("b")),
         "T(a) end"},
        {S_INIT(""), EARLY},
        {S_INIT(START), EARLY},
        {S_INIT(TEXT("half an ans")), "T(half an ans) " EARLY},
        {S_INIT(TEXT("a") "data: {\"choices\":"), "T(a) " EARLY},
        {S_INIT(TEXT("a") "data: [DONE]"), "T(a) " EARLY},
        {S_INIT(TEXT("a") USAGE("{\"prompt_tokens\":1,\"completion_tokens\":1}")), "T(a) " EARLY},
        // Half a call never counts; a whole one had come.
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", "{"))), EARLY},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", ""))), EARLY},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1))), "C(i read {\"p\":\"a\"}) " EARLY},
        {S_INIT("<html>\nno stream\n</html>\n"), EARLY},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].bytes.p, rows[i].bytes, rows[i].shown);
}

static void test_model_openai_stream__reasons(void **state) {
    (void)state;
    static const struct {
        const char *reason, *plain, *with_call;
    } rows[] = {
        {"\"stop\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"tool_calls\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"function_call\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"eos\"", "T(x) end", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"length\"", "T(x) max_tokens", "T(x) C(i read {\"p\":\"a\"}) max_tokens"},
        {"\"model_length\"", "T(x) max_tokens", "T(x) C(i read {\"p\":\"a\"}) max_tokens"},
        {"\"content_filter\"", "T(x) refusal", "T(x) C(i read {\"p\":\"a\"}) refusal"},
        {"\"something_new\"", "T(x) other", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"null", "T(x) other", "T(x) C(i read {\"p\":\"a\"}) tool_use"},
        {"\"error\"", "T(x) provider: the server broke…",
         "T(x) C(i read {\"p\":\"a\"}) provider: the server broke…"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        str last =
            str_fmt(a, "data: {\"choices\":[{\"delta\":{},\"finish_reason\":%s}]}\n\n" DONE, rows[i].reason);
        check(rows[i].reason, str_fmt(a, TEXT("x") STR_FMT, STR_ARG(last)), rows[i].plain);
        check(rows[i].reason,
              str_fmt(a, TEXT("x") CALLS(HEAD(AT("0"), "i", "read", A1)) STR_FMT, STR_ARG(last)),
              rows[i].with_call);
        arena_free(a);
    }
}

static void test_model_openai_stream__a_call_that_was_cut_off_is_dropped(void **state) {
    (void)state;
    check("length",
          S(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(HEAD(AT("1"), "k", "read", "{\\\"p")) FINISH("length")
                DONE),
          "C(i read {\"p\":\"a\"}) max_tokens");
    check("length before the arguments", S(CALLS(HEAD(AT("0"), "i", "read", "")) FINISH("length") DONE),
          "max_tokens");
    check("filter", S(CALLS(HEAD(AT("0"), "i", "read", "{\\\"p")) FINISH("content_filter") DONE), "refusal");
}

static void test_model_openai_stream__a_refusal_is_its_text(void **state) {
    (void)state;
    check("refusal",
          S(CHOICE("{\"refusal\":\"I can\"}", "null") CHOICE("{\"refusal\":\"not.\"}", "null") FINISH("stop")
                DONE),
          "T(I cannot.) refusal");
    check("null", S(CHOICE("{\"content\":\"a\",\"refusal\":null}", "\"stop\"") DONE), "T(a) end");
}

static void test_model_openai_stream__errors_in_a_stream_end_it_and_keep_what_was_there(void **state) {
    (void)state;
    static const struct {
        str bytes;
        const char *message;
        bool passes, too_long;
    } rows[] = {
        {S_INIT(DATA("{\"error\":{\"message\":\"boom\",\"type\":\"server_error\",\"code\":null}}")),
         "server_error: boom", true, false},
        {S_INIT(DATA("{\"error\":{\"message\":\"busy\",\"code\":429}}")), "error: busy", true, false},
        {S_INIT(DATA("{\"error\":{\"message\":\"bad\",\"code\":502}}")), "error: bad", true, false},
        {S_INIT(DATA(
             "{\"error\":{\"message\":\"two\\nlines\",\"type\":\"invalid_request_error\",\"code\":400}}")),
         "invalid_request_error: two lines", false, false},
        {S_INIT(DATA("{\"error\":{\"message\":\"too "
                     "much\",\"type\":\"invalid_request_error\",\"code\":\"context_length_exceeded\"}}")),
         "context_length_exceeded: too much", false, true},
        {S_INIT(DATA("{\"error\":\"model not loaded\"}")), "error: model not loaded", false, false},
        {S_INIT(DATA("{\"error\":{}}")), "error: no message", false, false},
        {S_INIT(DATA("{\"object\":\"error\",\"message\":\"no\",\"type\":\"BadRequestError\",\"code\":400}")),
         "BadRequestError: no", false, false},
        {S_INIT("event: error\n" DATA("{\"message\":\"alone\"}")), "error: alone", false, false},
        {S_INIT("event: error\n" DATA("{\"error\":{\"message\":\"m\",\"type\":\"overloaded_error\"}}")),
         "overloaded_error: m", true, false},
        {S_INIT("event: error\n" DATA("plain words")), "error: plain words", false, false},
        {S_INIT("event: error\ndata:\n\n"), "error: no message", false, false},
        {S_INIT(DATA("{\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\",\"error\":{"
                     "\"message\":\"upstream\",\"code\":502}}]}")),
         "error: upstream", true, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            arena *a = arena_new();
            buf in = buf_new(a, 0);
            buf_add(&in, S(TEXT("so far")));
            buf_add(&in, rows[i].bytes);
            buf_add(&in, S(TEXT(" and more") FINISH("stop") DONE));
            outcome o = run(buf_str(&in), sizes[k]);
            assert_int_equal(o.status, DEP_ERR_PROVIDER);
            if (!str_starts(str_z(o.err.msg), str_z(rows[i].message))) fail_msg("%s", o.err.msg);
            assert_int_equal(o.s->facts.passes, rows[i].passes);
            assert_int_equal(model_says_too_long(a, str_z(o.err.msg)), rows[i].too_long);
            assert_int_equal(o.reply.blocks.n, 1);
            assert_str(o.reply.blocks.p[0].text, S("so far"));
            arena_free(o.a);
            arena_free(a);
        }
    }
}

static void test_model_openai_stream__usage(void **state) {
    (void)state;
    static const struct {
        str usage;
        int64_t input, output, cached;
        bool has;
    } rows[] = {
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2}"), 10, 2, 0, true},
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_cache_hit_tokens\":9}"), 1, 2, 9,
         true},
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_tokens_details\":{\"cached_tokens\":"
                "11}}"),
         0, 2, 10, true},
        {S_INIT("{\"prompt_tokens\":10,\"completion_tokens\":2,\"prompt_tokens_details\":null}"), 10, 2, 0,
         true},
        {S_INIT("{\"prompt_tokens\":0,\"completion_tokens\":0}"), 0, 0, 0, false},
        {S_INIT("{\"prompt_tokens\":-1,\"completion_tokens\":1e12}"), 0, 0, 0, false},
        {S_INIT("null"), 0, 0, 0, false},
        {S_INIT("[]"), 0, 0, 0, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o = run(str_fmt(a, TEXT("x") FINISH("stop") "data: {\"choices\":[],\"usage\":%s}\n\n" DONE,
                                rows[i].usage.p),
                        7);
        assert_int_equal(o.status, DEP_OK);
        assert_int_equal(o.s->facts.has_usage, rows[i].has);
        assert_int_equal(o.reply.usage.input, rows[i].input);
        assert_int_equal(o.reply.usage.output, rows[i].output);
        assert_int_equal(o.reply.usage.cache_read, rows[i].cached);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_openai_stream__what_is_no_such_stream_is_a_provider_error(void **state) {
    (void)state;
    static const struct {
        str bytes;
        const char *shown;
    } rows[] = {
        {S_INIT("data: not json\n\n"), "provider: the stream holds an event that is not JSON…"},
        {S_INIT("data: {\"a\":\"\xff\"}\n\n"), "provider: the stream holds an event that is not JSON…"},
        {S_INIT("{}"), "provider: the answer is JSON, but neither a reply nor an error"},
        {S_INIT("{\"a\":}"), "provider: the answer is not JSON…"},
        {S_INIT("{\"choices\":[{\"message\":{\"content\":\"x\"}"),
         "provider: the answer ended in the middle…"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].bytes.p, rows[i].bytes, rows[i].shown);
}

static void test_model_openai_stream__odd_but_harmless_events_are_passed_over(void **state) {
    (void)state;
    check("odd",
          S(DATA("{}") DATA("[]") DATA("1") DATA(
              "null") "data:\n\n"
                      "event: ping\ndata: now\n\n" DATA("{\"choices\":null}")
                          DATA("{\"choices\":[1,null,{},{\"delta\":null},{\"delta\":[]}]}") DATA(
                              "{\"choices\":[{\"index\":1,\"delta\":{\"content\":\"another reply\"}}]}")
                              TEXT("a") CHOICE("{\"content\":null,\"tool_calls\":null}", "null")
                                  CHOICE("{\"content\":5,\"tool_calls\":{},\"reasoning\":7}", "null") CALLS(
                                      "1,null,{},{\"index\":0},{\"index\":3,\"id\":null,\"function\":null}")
                                      DATA("{\"error\":null,\"choices\":[]}") FINISH("stop") DONE),
          "T(a) end");
}

static void test_model_openai_stream__thinking_is_taken_under_the_name_that_came_first(void **state) {
    (void)state;
    check("both",
          S(CHOICE("{\"reasoning_content\":\"a\",\"reasoning\":\"a\"}", "null") CHOICE(
              "{\"reasoning\":\"b\",\"reasoning_content\":\"b\"}", "null") TEXT("x") FINISH("stop") DONE),
          "H(ab) T(x) end");
    check("parts",
          S(CHOICE("{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"type\":\"text\",\"text\":\"hm\"}]},"
                   "{\"type\":\"text\",\"text\":\"x\"}]}",
                   "null") FINISH("stop") DONE),
          "H(hm) T(x) end");
    outcome o = run(S(CHOICE("{\"reasoning\":\"hm\"}", "null") FINISH("stop") DONE), 9);
    assert_str(shown(&o), S("H(hm) end"));
    assert_str(o.reply.blocks.p[0].raw, S("{\"reasoning\":\"hm\"}"));
    assert_true(o.s->facts.has_content);
    arena_free(o.a);
}

static void test_model_openai_stream__a_character_cut_between_its_two_escapes_is_joined(void **state) {
    (void)state;
    check("text",
          S(TEXT("a\\ud83d") TEXT("\\ude00\\uD83C") TEXT("\\udf89b \\ud83d\\ude00") FINISH("stop") DONE),
          "T(a😀🎉b 😀) end");
    check("arguments",
          S(CALLS(HEAD(AT("0"), "i", "read", "{\\\"p\\\":\\\"\\ud83d")) CALLS(ARGS(AT("0"), "\\ude00\\\"}"))
                END),
          "C(i read {\"p\":\"😀\"}) tool_use");
    check("the rest never comes", S(TEXT("a\\ud83d") TEXT("b") FINISH("stop") DONE), "T(ab) end");
    static const str bad[] = {
        S_INIT(TEXT("a\\ude00")),
        S_INIT(TEXT("\\ud83d") TEXT("x\\ude00")),
        S_INIT(TEXT("\\ud83d") TEXT("\\ud83d")),
        S_INIT(TEXT("\\ud83dx")),
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        check(bad[i].p, bad[i], "provider: the stream holds an event that is not JSON…");
}

// --- One JSON document -----------------------------------------------------------------------------------

static void test_model_openai_stream__one_json_document_is_read_as_a_reply(void **state) {
    (void)state;
#define DOCUMENT(message, finish)                                                                            \
    "{\"id\":\"c\",\"object\":\"chat.completion\",\"model\":\"gpt-x\",\"choices\":[{\"index\":0,"            \
    "\"message\":" message ",\"finish_reason\":\"" finish                                                    \
    "\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}"
    check("text", S(DOCUMENT("{\"role\":\"assistant\",\"content\":\"a } \\\" {\"}", "stop")),
          "T(a } \" {) end");
    check("blanks around", S("\xEF\xBB\xBF\r\n " DOCUMENT("{\"content\":\"a\"}", "stop") "\n\ndata: x"),
          "T(a) end");
    check("calls",
          S(DOCUMENT("{\"content\":null,\"reasoning_content\":\"hm\",\"tool_calls\":[" HEAD(
                         NO_AT, "i", "read", A1) "," HEAD(AT("0"), "k", "read", A1) "]}",
                     "stop")),
          "H(hm) C(i read {\"p\":\"a\"}) C(k read {\"p\":\"a\"}) tool_use");
    check("error", S("{\"error\":{\"message\":\"boom\",\"type\":\"server_error\"}}"),
          "provider: server_error: boom");
    check("nothing", S(DOCUMENT("{\"content\":\"\"}", "stop")), "end");
    outcome o = run(S(DOCUMENT("{\"content\":\"a\"}", "stop")), 5);
    assert_true(o.done);
    assert_int_equal(o.reply.usage.input, 3);
    assert_str(o.reply.model, S("gpt-x"));
    assert_str(o.heard, S("[a]"));
    arena_free(o.a);
}

static void test_model_openai_stream__a_whole_message_after_its_deltas_is_not_taken_twice(void **state) {
    (void)state;
    check("repeated",
          S(TEXT("a") DATA("{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}")
                DONE),
          "T(a) end");
    check("alone",
          S(DATA("{\"choices\":[{\"message\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}") DONE),
          "T(a) end");
}

// --- Limits ----------------------------------------------------------------------------------------------

static void test_model_openai_stream__an_event_of_ten_megabytes_is_taken_and_one_over_the_limit_is_not(
    void **state) {
    (void)state;
    arena *a = arena_new();
    buf in = buf_new(a, 0);
    buf_add(&in, S("data: {\"choices\":[{\"delta\":{\"content\":\""));
    buf_fill(&in, 'x', 10 << 20);
    buf_add(&in, S("\"}}]}\n\n" FINISH("stop") DONE));
    outcome o = run(buf_str(&in), 16384);
    assert_int_equal(o.status, DEP_OK);
    assert_int_equal(o.reply.blocks.p[0].text.n, 10 << 20);
    arena_free(o.a);

    model_stream *s = openai_stream_new(a, NULL, NULL);
    buf line = buf_new(a, 0);
    bool done;
    dep_err err;
    buf_fill(&line, 'x', 1 << 20);
    assert_int_equal(openai_stream_feed(s, S(TEXT("so far") "data: "), &done, &err), DEP_OK);
    for (int i = 0; i < MODEL_EVENT_MAX >> 20; i++)
        assert_int_equal(openai_stream_feed(s, buf_str(&line), &done, &err), DEP_OK);
    assert_int_equal(openai_stream_feed(s, S("y"), &done, &err), DEP_ERR_LIMIT);
    model_reply r;
    assert_int_equal(openai_stream_end(s, false, &r, &err), DEP_OK);
    assert_str(r.blocks.p[0].text, S("so far"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_openai_stream__a_whole_reply_is_assembled_from_pieces_of_any_size),
        cmocka_unit_test(test_model_openai_stream__line_ends_marks_and_comments_make_no_difference),
        cmocka_unit_test(test_model_openai_stream__a_reason_or_the_end_mark_completes_a_stream),
        cmocka_unit_test(test_model_openai_stream__reasons),
        cmocka_unit_test(test_model_openai_stream__a_call_that_was_cut_off_is_dropped),
        cmocka_unit_test(test_model_openai_stream__a_refusal_is_its_text),
        cmocka_unit_test(test_model_openai_stream__errors_in_a_stream_end_it_and_keep_what_was_there),
        cmocka_unit_test(test_model_openai_stream__usage),
        cmocka_unit_test(test_model_openai_stream__what_is_no_such_stream_is_a_provider_error),
        cmocka_unit_test(test_model_openai_stream__odd_but_harmless_events_are_passed_over),
        cmocka_unit_test(test_model_openai_stream__thinking_is_taken_under_the_name_that_came_first),
        cmocka_unit_test(test_model_openai_stream__a_character_cut_between_its_two_escapes_is_joined),
        cmocka_unit_test(test_model_openai_stream__one_json_document_is_read_as_a_reply),
        cmocka_unit_test(test_model_openai_stream__a_whole_message_after_its_deltas_is_not_taken_twice),
        cmocka_unit_test(
            test_model_openai_stream__an_event_of_ten_megabytes_is_taken_and_one_over_the_limit_is_not),
    };
    return cmocka_run_group_tests_name("model_openai_stream", tests, NULL, NULL);
}

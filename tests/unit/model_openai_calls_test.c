// Tests of model/openai_calls.c: whose piece is it? Streams of servers that mark the pieces of calls in their
// own ways.
#include <support/openai_chunks.h>

#define TWO "C(i read {\"p\":\"a\"}) C(k todo {\"q\":2}) tool_use"

static void test_model_openai_calls__two_calls_stay_two_however_their_pieces_are_marked(void **state) {
    (void)state;
    static const struct {
        const char *what;
        str bytes;
    } rows[] = {
        {"as the API sends them", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(ARGS(AT("0"), A1))
                                             CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(ARGS(AT("1"), B1)))},
        {"interleaved by index",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "") "," HEAD(AT("1"), "k", "todo", ""))
                    CALLS(ARGS(AT("1"), "{\\\"q\\\"")) CALLS(ARGS(AT("0"), A1) "," ARGS(AT("1"), ":2}")))},
        {"from one, with gaps",
         S_INIT(CALLS(HEAD(AT("3"), "i", "read", "")) CALLS(HEAD(AT("7"), "k", "todo", ""))
                    CALLS(ARGS(AT("7"), B1)) CALLS(ARGS(AT("3"), A1)))},
        {"no index, whole calls",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(HEAD(NO_AT, "k", "todo", B1)))},
        {"no index, whole calls in one delta",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1) "," HEAD(NO_AT, "k", "todo", B1)))},
        {"no index, in pieces",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", "")) CALLS(ARGS(NO_AT, A1)) CALLS(HEAD(NO_AT, "k", "todo", ""))
                    CALLS(ARGS(NO_AT, "{\\\"q")) CALLS(ARGS(NO_AT, "\\\":2}")))},
        {"no index, by id", S_INIT(CALLS(HEAD(NO_AT, "i", "read", "") "," HEAD(NO_AT, "k", "todo", ""))
                                       CALLS(WITH_ID(NO_AT, "k", B1)) CALLS(WITH_ID(NO_AT, "i", A1)))},
        {"0 for both, whole calls",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(HEAD(AT("0"), "k", "todo", B1)))},
        {"0 for both, in one delta",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1) "," HEAD(AT("0"), "k", "todo", B1)))},
        {"0 for both, in pieces", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(ARGS(AT("0"), A1))
                                             CALLS(HEAD(AT("0"), "k", "todo", "")) CALLS(ARGS(AT("0"), B1)))},
        {"0 for both, by id", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "") "," HEAD(AT("0"), "k", "todo", ""))
                                         CALLS(WITH_ID(AT("0"), "k", B1)) CALLS(WITH_ID(AT("0"), "i", A1)))},
        {"id again with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(WITH_ID(AT("0"), "i", A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(WITH_ID(AT("1"), "k", B1)))},
        {"id and name again with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "{\\\"p\\\":"))
                    CALLS(HEAD(AT("0"), "i", "read", "\\\"a\\\"}")) CALLS(HEAD(AT("1"), "k", "todo", "{"))
                        CALLS(HEAD(AT("1"), "k", "todo", "\\\"q\\\":2}")))},
        {"name again with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("0"), "", "read", "{\\\"p\\\":"))
                    CALLS(HEAD(AT("0"), "", "read", "\\\"a\\\"}")) CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"empty id later",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("0"), "", "", A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(HEAD(AT("1"), "", "", B1)))},
        {"a new id with each piece",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(WITH_ID(AT("0"), "x1", A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(WITH_ID(AT("1"), "x2", B1)))},
        {"name in pieces",
         S_INIT(CALLS(HEAD(AT("0"), "i", "re", "")) CALLS(NAME(AT("0"), "ad")) CALLS(ARGS(AT("0"), A1))
                    CALLS(HEAD(AT("1"), "k", "to", "")) CALLS(NAME(AT("1"), "do")) CALLS(ARGS(AT("1"), B1)))},
        {"name in pieces, no index", S_INIT(CALLS(HEAD(NO_AT, "i", "re", "")) CALLS(NAME(NO_AT, "ad"))
                                                CALLS(ARGS(NO_AT, A1)) CALLS(HEAD(NO_AT, "k", "todo", B1)))},
        {"name in pieces, with the id",
         S_INIT(CALLS(HEAD(NO_AT, "i", "re", "")) CALLS(HEAD(NO_AT, "i", "ad", ""))
                    CALLS(HEAD(NO_AT, "i", "", A1)) CALLS(HEAD(NO_AT, "k", "todo", B1)))},
        {"id before the name", S_INIT(CALLS(WITH_ID(AT("0"), "i", "")) CALLS(NAME(AT("0"), "read"))
                                          CALLS(ARGS(AT("0"), A1)) CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"id after the name", S_INIT(CALLS(NAME(AT("0"), "read")) CALLS(WITH_ID(AT("0"), "i", A1))
                                         CALLS(NAME(AT("1"), "todo")) CALLS(WITH_ID(AT("1"), "k", B1)))},
        {"index in the head alone", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(ARGS(NO_AT, A1))
                                               CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(ARGS(NO_AT, B1)))},
        {"no index in the heads, the wrong one later",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", "")) CALLS(ARGS(AT("0"), A1))
                    CALLS(HEAD(AT("1"), "k", "todo", "")) CALLS(ARGS(AT("1"), B1)))},
        {"an object for arguments",
         S_INIT(
             CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":\"a\"}}}")
                 CALLS("{\"id\":\"k\",\"function\":{\"name\":\"todo\",\"arguments\":{\"q\":2}}}"))},
        {"an object, sent twice",
         S_INIT(
             CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":\"a\"}}}")
                 CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":\"a\"}"
                       "}}") CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"arguments first null",
         S_INIT(CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":null}}")
                    CALLS(ARGS(AT("0"), A1)) CALLS(HEAD(AT("1"), "k", "todo", B1)))},
        {"empty pieces between",
         S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(HEAD(NO_AT, "", "", "")) CALLS(ARGS(NO_AT, ""))
                    CALLS(HEAD(NO_AT, "k", "todo", B1)) CALLS(ARGS(AT("9"), "")))},
        {"index as a null", S_INIT(CALLS(HEAD("\"index\":null,", "i", "read", A1))
                                       CALLS(HEAD("\"index\":null,", "k", "todo", B1)))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        static const char *const ends[] = {END, FINISH("stop") DONE, FINISH("stop"), DONE};
        for (size_t k = 0; k < sizeof ends / sizeof *ends; k++)
            check(rows[i].what, str_fmt(a, STR_FMT "%s", STR_ARG(rows[i].bytes), ends[k]), TWO);
        arena_free(a);
    }
}

static void test_model_openai_calls__arguments_in_single_bytes(void **state) {
    (void)state;
    static const char *const ats[] = {"\"index\":0,", ""};
    for (size_t i = 0; i < 2; i++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        str args = S("{\"p\": \"a } ] \\\\ \\\" {\", \"q\": [{}, {\"r\": 1}]}");
        buf_addf(&in, CALLS("{%s\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":\"\"}}"), ats[i]);
        for (size_t k = 0; k < args.n; k++) {
            buf one = buf_new(a, 0);
            json_quote(&one, str_sub(args, k, k + 1));
            buf_addf(&in, CALLS("{%s\"function\":{\"arguments\":%.*s}}"), ats[i], STR_ARG(buf_str(&one)));
        }
        buf_add(&in, S(CALLS(HEAD(AT("1"), "k", "todo", B1)) END));
        str expected = str_fmt(a, "C(i read " STR_FMT ") C(k todo {\"q\":2}) tool_use", STR_ARG(args));
        check("single bytes", buf_str(&in), expected.p);
        arena_free(a);
    }
}

static void test_model_openai_calls__a_piece_that_fits_two_calls_is_an_error_that_names_it(void **state) {
    (void)state;
    static const struct {
        const char *what;
        str bytes;
    } rows[] = {
        {"two heads, no index", S_INIT(CALLS(HEAD(NO_AT, "i", "read", "") "," HEAD(NO_AT, "k", "todo", ""))
                                           CALLS(ARGS(NO_AT, "{\\\"lost\\\":1}")))},
        {"two heads of index 0", S_INIT(CALLS(HEAD(AT("0"), "i", "read", "") "," HEAD(
                                     AT("0"), "k", "todo", "")) CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"two heads after each other",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("0"), "k", "todo", ""))
                    CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"an index without a head",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(ARGS(AT("1"), "{\\\"lost\\\":1}")))},
        {"no head at all", S_INIT(CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"no head and no index", S_INIT(CALLS(ARGS(NO_AT, "{\\\"lost\\\":1}")))},
        {"after both are whole", S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(
                                     HEAD(NO_AT, "k", "todo", B1)) CALLS(ARGS(NO_AT, "{\\\"lost\\\":1}")))},
        {"index and id at odds",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", "")) CALLS(HEAD(AT("1"), "k", "todo", ""))
                    CALLS(WITH_ID(AT("1"), "i", "{\\\"lost\\\":1}")))},
        {"an unknown id at an index of two",
         S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1) "," HEAD(AT("0"), "k", "todo", ""))
                    CALLS(WITH_ID(AT("0"), "x", "{\\\"lost\\\":1}")))},
        {"names alone", S_INIT(CALLS(NAME(NO_AT, "read")) CALLS(NAME(NO_AT, "lost")))},
        {"the same name within arguments", S_INIT(CALLS(NAME(NO_AT, "read")) CALLS(ARGS(NO_AT, "{")) CALLS(
                                               "{\"function\":{\"name\":\"read\",\"arguments\":\"lost\"}}"))},
        {"the name again, then more arguments",
         S_INIT(CALLS(HEAD(AT("0"), "", "read", A1)) CALLS(NAME(AT("0"), "read"))
                    CALLS(ARGS(AT("0"), "{\\\"lost\\\":1}")))},
        {"two objects",
         S_INIT(CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":{\"p\":1}}}")
                    CALLS("{\"index\":0,\"function\":{\"arguments\":{\"lost\":1}}}"))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            arena *a = arena_new();
            outcome o = run(str_fmt(a, STR_FMT "%s", STR_ARG(rows[i].bytes), END), sizes[k]);
            if (o.status != DEP_ERR_PROVIDER || !strstr(o.err.msg, "belongs to no one call") ||
                !strstr(o.err.msg, "lost"))
                fail_msg("%s: %.*s", rows[i].what, STR_ARG(shown(&o)));
            for (vec_each(const model_block, b, &o.reply.blocks))
                assert_true(str_find(b->input, S("lost")) == SIZE_MAX);
            assert_true(o.s->facts.has_content);
            arena_free(o.a);
            arena_free(a);
        }
    }
}

static void test_model_openai_calls__a_missing_id_is_made_and_an_id_of_two_calls_is_given_to_one(
    void **state) {
    (void)state;
    static const struct {
        str bytes, first; // first: the id that stays; empty: made
    } rows[] = {
        {S_INIT(CALLS(HEAD(AT("0"), "", "read", A1)) CALLS(HEAD(AT("1"), "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(HEAD(AT("0"), "", "read", A1)) CALLS(HEAD(AT("0"), "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(HEAD(NO_AT, "", "read", A1)) CALLS(HEAD(NO_AT, "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(HEAD(NO_AT, "", "read", A1) "," HEAD(NO_AT, "", "todo", B1))), S_INIT("")},
        {S_INIT(CALLS(NAME(NO_AT, "read")) CALLS(ARGS(NO_AT, A1)) CALLS(NAME(NO_AT, "todo"))
                    CALLS(ARGS(NO_AT, B1))),
         S_INIT("")},
        {S_INIT(CALLS(HEAD(AT("0"), "i", "read", A1)) CALLS(HEAD(AT("1"), "i", "todo", B1))), S_INIT("i")},
        {S_INIT(CALLS(HEAD(NO_AT, "i", "read", A1)) CALLS(HEAD(NO_AT, "i", "todo", B1))), S_INIT("i")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        outcome o = run(str_fmt(a, STR_FMT END, STR_ARG(rows[i].bytes)), 11);
        if (o.status != DEP_OK || o.reply.blocks.n != 2) fail_msg("%zu: %.*s", i, STR_ARG(shown(&o)));
        str ids[] = {o.reply.blocks.p[0].id, o.reply.blocks.p[1].id};
        assert_false(str_eq(ids[0], ids[1]));
        if (rows[i].first.n) assert_str(ids[0], rows[i].first);
        for (size_t k = rows[i].first.n ? 1 : 0; k < 2; k++) {
            assert_int_equal(ids[k].n, OPENAI_ID_CHARS);
            for (size_t c = 0; c < ids[k].n; c++)
                assert_true((ids[k].p[c] >= '0' && ids[k].p[c] <= '9') ||
                            (ids[k].p[c] >= 'a' && ids[k].p[c] <= 'z') ||
                            (ids[k].p[c] >= 'A' && ids[k].p[c] <= 'Z'));
            assert_true(str_find(o.reply.blocks.p[k].raw, ids[k]) != SIZE_MAX);
        }
        assert_str(o.reply.blocks.p[0].input, S("{\"p\":\"a\"}"));
        assert_str(o.reply.blocks.p[1].input, S("{\"q\":2}"));
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_openai_calls__faulty_arguments_stay_a_call_with_bad_input(void **state) {
    (void)state;
    static const struct {
        str args; // within a JSON string
        const char *shown;
    } rows[] = {
        {S_INIT("{\\\"a\\\":"), "C(i read {\"a\":!) tool_use"},
        {S_INIT("[1]"), "C(i read [1]!) tool_use"},
        {S_INIT("\\\"text\\\""), "C(i read \"text\"!) tool_use"},
        {S_INIT("{\\\"a\\\":1,\\\"a\\\":2}"), "C(i read {\"a\":1,\"a\":2}!) tool_use"},
        {S_INIT("{} {}"), "C(i read {} {}!) tool_use"},
        {S_INIT("{}}"), "C(i read {}}!) tool_use"},
        {S_INIT("{]"), "C(i read {]!) tool_use"},
        {S_INIT("null"), "C(i read null!) tool_use"},
        {S_INIT("  "), "C(i read {}) tool_use"},
        {S_INIT(" {\\\"a\\\":1}\\n"), "C(i read {\"a\":1}) tool_use"},
        {S_INIT(""), "C(i read {}) tool_use"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        check(
            rows[i].args.p,
            str_fmt(a,
                    CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":\"%s\"}}")
                        END,
                    rows[i].args.p),
            rows[i].shown);
        arena_free(a);
    }
    check("an array for arguments",
          S(CALLS("{\"index\":0,\"id\":\"i\",\"function\":{\"name\":\"read\",\"arguments\":[1]}}") END),
          "C(i read [1]!) tool_use");
}

static void test_model_openai_calls__a_call_without_a_name_is_an_error(void **state) {
    (void)state;
    check("no name", S(CALLS(HEAD(AT("0"), "i", "", A1)) END),
          "provider: the reply holds a tool call without a name (id i)");
}

static void test_model_openai_calls__unknown_members_go_back(void **state) {
    (void)state;
    outcome o = run(S(CALLS("{\"index\":0,\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":"
                            "\"read\",\"arguments\":\"{}\"},"
                            "\"extra_content\":{ \"google\":1.50},\"none\":null}") END),
                    9);
    assert_str(o.reply.blocks.p[0].raw,
               S("{\"id\":\"i\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"},"
                 "\"extra_content\":{ \"google\":1.50}}"));
    arena_free(o.a);
}

// --- Limits ----------------------------------------------------------------------------------------------

static void test_model_openai_calls__a_reply_may_have_a_thousand_calls_and_no_more(void **state) {
    (void)state;
    for (int n = OPENAI_CALLS_MAX; n <= OPENAI_CALLS_MAX + 1; n++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        for (int i = 0; i < n; i++)
            buf_addf(
                &in,
                CALLS("{\"index\":%d,\"id\":\"c%d\",\"function\":{\"name\":\"read\",\"arguments\":\"{}\"}}"),
                i, i);
        buf_add(&in, S(END));
        outcome o = run(buf_str(&in), 4096);
        assert_int_equal(o.status, n == OPENAI_CALLS_MAX ? DEP_OK : DEP_ERR_LIMIT);
        assert_int_equal(o.reply.blocks.n, OPENAI_CALLS_MAX);
        arena_free(o.a);
        arena_free(a);
    }
}

static void test_model_openai_calls__eight_unknown_members_are_kept_and_no_more(void **state) {
    (void)state;
    for (int n = OPENAI_CALL_EXTRA_MAX; n <= OPENAI_CALL_EXTRA_MAX + 1; n++) {
        arena *a = arena_new();
        buf in = buf_new(a, 0);
        buf_add(
            &in,
            S("data: "
              "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"i\",\"function\":{\"name\":\"read\"}"));
        for (int i = 0; i < n; i++) buf_addf(&in, ",\"x%d\":1", i);
        buf_add(&in, S("}]}}]}\n\n" END));
        outcome o = run(buf_str(&in), 4096);
        assert_true(str_find(o.reply.blocks.p[0].raw, S("\"x7\":1")) != SIZE_MAX);
        assert_true(str_find(o.reply.blocks.p[0].raw, S("\"x8\":1")) == SIZE_MAX);
        arena_free(o.a);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_openai_calls__two_calls_stay_two_however_their_pieces_are_marked),
        cmocka_unit_test(test_model_openai_calls__arguments_in_single_bytes),
        cmocka_unit_test(test_model_openai_calls__a_piece_that_fits_two_calls_is_an_error_that_names_it),
        cmocka_unit_test(
            test_model_openai_calls__a_missing_id_is_made_and_an_id_of_two_calls_is_given_to_one),
        cmocka_unit_test(test_model_openai_calls__faulty_arguments_stay_a_call_with_bad_input),
        cmocka_unit_test(test_model_openai_calls__a_call_without_a_name_is_an_error),
        cmocka_unit_test(test_model_openai_calls__unknown_members_go_back),
        cmocka_unit_test(test_model_openai_calls__a_reply_may_have_a_thousand_calls_and_no_more),
        cmocka_unit_test(test_model_openai_calls__eight_unknown_members_are_kept_and_no_more),
    };
    return cmocka_run_group_tests_name("model_openai_calls", tests, NULL, NULL);
}

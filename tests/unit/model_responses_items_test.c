// Tests of model/responses_items.c through the stream: which item an event means, and what a reply becomes
// when its events say less, more or other than they should.
#include <support/responses_events.h>

// Streams that leave something out, and what must come of them.
static void test_model_responses_items__what_is_left_out_is_taken_from_where_it_stands(void **state) {
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

static void test_model_responses_items__calls_in_parallel_stay_apart(void **state) {
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

static void test_model_responses_items__what_could_belong_to_two_is_an_error(void **state) {
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

static void test_model_responses_items__arguments(void **state) {
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

static void test_model_responses_items__a_call_without_an_id_gets_one_of_its_own(void **state) {
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

static void test_model_responses_items__a_reply_may_have_a_thousand_items_and_no_more(void **state) {
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_responses_items__what_is_left_out_is_taken_from_where_it_stands),
        cmocka_unit_test(test_model_responses_items__calls_in_parallel_stay_apart),
        cmocka_unit_test(test_model_responses_items__what_could_belong_to_two_is_an_error),
        cmocka_unit_test(test_model_responses_items__arguments),
        cmocka_unit_test(test_model_responses_items__a_call_without_an_id_gets_one_of_its_own),
        cmocka_unit_test(test_model_responses_items__a_reply_may_have_a_thousand_items_and_no_more),
    };
    return cmocka_run_group_tests_name("model_responses_items", tests, NULL, NULL);
}

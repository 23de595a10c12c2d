// Tests of model/quote.c: the search it asks for, and the text it makes of the results.
#include <deputy/model.h>
#include <support/support.h>

static int64_t no_time(void *ctx) {
    (void)ctx;
    return 0;
}

static void no_random(void *ctx, void *p, size_t n) {
    (void)ctx;
    memset(p, 0, n);
}

static const sys_clock test_clock = {.now_ms = no_time, .mono_ms = no_time, .random = no_random};
static const model_tool kb = {S_INIT("kb_search"), S_INIT(""), S_INIT("{}")};
static const model_tool kb_and_memory[] = {
    {S_INIT("read"), S_INIT(""), S_INIT("{}")},
    {S_INIT("kb_search"), S_INIT(""), S_INIT("{}")},
    {S_INIT("memory_search"), S_INIT(""), S_INIT("{}")},
};

static void add_message(arena *a, model_messages *m, model_role role, model_block b) {
    model_message message = {.role = role};
    vec_push(a, &message.blocks, b);
    vec_push(a, m, message);
}

static dep_status call(arena *a, const model_tool *tools, size_t n, const model_messages *m, model_reply *r,
                       dep_err *err) {
    model_provider *p;
    model_config c = {.name = S("quote"), .api = S("quote")};
    assert_int_equal(model_open(a, &c, &test_clock, &p, err), DEP_OK);
    model_request req = {.model = S("passages"), .tools = tools, .n_tools = n, .messages = m};
    return model_call(p, a, &req, NULL, r, err);
}

static dep_status ask(arena *a, str task, const model_tool *tools, size_t n, model_reply *r, dep_err *err) {
    model_messages m = {0};
    add_message(a, &m, ROLE_USER, (model_block){.kind = BLOCK_TEXT, .text = task});
    return call(a, tools, n, &m, r, err);
}

static void test_model_quote__the_task_without_its_date_line_is_the_query(void **state) {
    (void)state;
    static const struct {
        str task, input;
    } rows[] = {
        {S_INIT("How long do refunds take?\n\nDate: 2026-11-30 13:00 CET (UTC+01:00)"),
         S_INIT("{\"query\":\"How long do refunds take?\",\"limit\":10}")},
        {S_INIT("  退款要多久？ \nDate: x\n"), S_INIT("{\"query\":\"退款要多久？\",\"limit\":10}")},
        {S_INIT("no date"), S_INIT("{\"query\":\"no date\",\"limit\":10}")},
        {S_INIT("Date: of the contract?\nsay it\nDate: y"),
         S_INIT("{\"query\":\"Date: of the contract?\\nsay it\",\"limit\":10}")},
        {S_INIT("a \"phrase\"\nDate: y"), S_INIT("{\"query\":\"a \\\"phrase\\\"\",\"limit\":10}")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        model_reply r;
        dep_err err;
        assert_int_equal(ask(a, rows[i].task, &kb, 1, &r, &err), DEP_OK);
        assert_int_equal(r.stop, STOP_TOOL_USE);
        assert_int_equal(r.blocks.n, 1);
        assert_int_equal(r.blocks.p[0].kind, BLOCK_TOOL_USE);
        assert_str(r.blocks.p[0].name, S("kb_search"));
        assert_str(r.blocks.p[0].input, rows[i].input);
        assert_true(r.blocks.p[0].id.n > 0);
        assert_str(r.model, S("passages"));
        assert_int_equal(r.usage.input + r.usage.output, 0);
        assert_false(r.usage.estimated);
        arena_free(a);
    }
}

static void test_model_quote__memory_is_searched_too_when_it_is_there(void **state) {
    (void)state;
    arena *a = arena_new();
    model_reply r;
    dep_err err;
    assert_int_equal(ask(a, S("x"), kb_and_memory, 3, &r, &err), DEP_OK);
    assert_int_equal(r.blocks.n, 2);
    assert_str(r.blocks.p[1].name, S("memory_search"));
    assert_str(r.blocks.p[1].input, S("{\"query\":\"x\",\"limit\":5}"));
    assert_false(str_eq(r.blocks.p[0].id, r.blocks.p[1].id));
    assert_int_equal(ask(a, S("x"), &kb_and_memory[2], 1, &r, &err), DEP_OK);
    assert_int_equal(r.blocks.n, 1);
    assert_str(r.blocks.p[0].name, S("memory_search"));
    arena_free(a);
}

static void test_model_quote__without_anything_to_search_it_says_how_to_connect_a_model(void **state) {
    (void)state;
    arena *a = arena_new();
    model_reply r;
    dep_err err;
    assert_int_equal(ask(a, S("x"), kb_and_memory, 1, &r, &err), DEP_ERR_INVALID);
    assert_non_null(strstr(err.msg, "deputy models add anthropic --key-env ANTHROPIC_API_KEY"));
    assert_int_equal(ask(a, S(" \nDate: today"), &kb, 1, &r, &err), DEP_ERR_INVALID);
    assert_int_equal(ask(a, S("Date: today"), &kb, 1, &r, &err), DEP_ERR_INVALID);
    arena_free(a);
}

static void test_model_quote__a_query_is_cut_at_4096_bytes_and_a_character_boundary(void **state) {
    (void)state;
    for (size_t n = 4095; n <= 4098; n++) {
        arena *a = arena_new();
        model_reply r;
        dep_err err;
        buf task = buf_new(a, 0);
        buf_fill(&task, 'x', n - 3);
        buf_add(&task, S("日"));
        assert_int_equal(ask(a, buf_str(&task), &kb, 1, &r, &err), DEP_OK);
        json *input;
        assert_int_equal(json_parse(a, r.blocks.p[0].input, 0, &input, &err), DEP_OK);
        assert_int_equal(json_str(input, S("query"), S("")).n, n <= 4096 ? n : n - 3);
        arena_free(a);
    }
}

// The reply to the results of the calls that it made itself.
static str answer(arena *a, str task, const str *results, const bool *errors, size_t n) {
    model_messages m = {0};
    model_reply r;
    dep_err err;
    add_message(a, &m, ROLE_USER, (model_block){.kind = BLOCK_TEXT, .text = task});
    assert_int_equal(call(a, n > 1 ? kb_and_memory : &kb, n > 1 ? 3 : 1, &m, &r, &err), DEP_OK);
    model_message calls = {.role = ROLE_ASSISTANT, .blocks = r.blocks}, back = {.role = ROLE_USER};
    for (size_t i = 0; i < n; i++) {
        model_block b = {.kind = BLOCK_TOOL_RESULT,
                         .id = r.blocks.p[i].id,
                         .text = results[i],
                         .is_error = errors && errors[i]};
        vec_push(a, &back.blocks, b);
    }
    vec_push(a, &m, calls);
    vec_push(a, &m, back);
    assert_int_equal(call(a, n > 1 ? kb_and_memory : &kb, n > 1 ? 3 : 1, &m, &r, &err), DEP_OK);
    assert_int_equal(r.stop, STOP_END);
    assert_int_equal(r.blocks.n, 1);
    assert_int_equal(r.blocks.p[0].kind, BLOCK_TEXT);
    return r.blocks.p[0].text;
}

#define HEAD "Passages quoted by search; `quote` is not a language model and draws no conclusion from them.\n"

static void test_model_quote__every_hit_is_quoted_in_rank_order_with_totals_and_cuts(void **state) {
    (void)state;
    arena *a = arena_new();
    str results[] = {
        S("[1] docs/manual.md:12 (Product manual) Refunds > Deadlines\n"
          "    Refunds are accepted within seven days of receipt.\n"
          "[2] docs/a b: 3 (x).md:7 (Product manual)\n"
          "        indented text\n"
          "    and a line after\n"
          "[3] docs/none.md:1 (Product manual) A at 10:30 (noon)\n"
          "\n"
          "3 hits shown of 5 matching lines; searched 12 files, 48210 bytes.\n"
          "cut: binary file, not searched: 1 (docs/logo.md)\n"),
        S("[1] MEMORY.md:3 Calls at 10:30 (noon)\n"
          "    Mrs. Li prefers e-mail.\n"
          "[2] daily/2026-11-30.md:9\n"
          "    note\n"
          "\n"
          "2 hits shown of 2 matching lines; searched 1 file, 90 bytes.\n"),
    };
    assert_str(answer(a, S("refunds\nDate: x"), results, NULL, 2),
               S(HEAD "\n"
                      "docs/manual.md:12: Refunds are accepted within seven days of receipt.\n"
                      "    in (Product manual) Refunds > Deadlines\n"
                      "docs/a b: 3 (x).md:7:     indented text\n"
                      "    in (Product manual)\n"
                      "    and a line after\n"
                      "docs/none.md:1: \n"
                      "    in (Product manual) A at 10:30 (noon)\n"
                      "\n"
                      "3 hits shown of 5 matching lines; searched 12 files, 48210 bytes.\n"
                      "cut: binary file, not searched: 1 (docs/logo.md)\n"
                      "\n"
                      "From memory:\n"
                      "MEMORY.md:3: Mrs. Li prefers e-mail.\n"
                      "    in Calls at 10:30 (noon)\n"
                      "daily/2026-11-30.md:9: note\n"
                      "\n"
                      "2 hits shown of 2 matching lines; searched 1 file, 90 bytes."));
    arena_free(a);
}

static void test_model_quote__no_hits_and_failures_are_passed_on(void **state) {
    (void)state;
    arena *a = arena_new();
    str results[] = {S("No line matches \"x\" in Manual.\n\n0 hits shown of 0 matching lines; searched 2 "
                       "files, 10 bytes.\n"),
                     S("the search failed:\nno such source")};
    bool errors[] = {false, true};
    assert_str(answer(a, S("x"), results, errors, 2),
               S(HEAD "\nNo line matches \"x\" in Manual.\n0 hits shown of 0 matching lines; searched 2 "
                      "files, 10 bytes.\n"
                      "\nFrom memory:\nmemory_search failed: the search failed:\nno such source"));
    arena_free(a);
}

static void test_model_quote__text_that_imitates_a_head_stays_text(void **state) {
    (void)state;
    arena *a = arena_new();
    str results[] = {S("[1] a.md:1 (S)\n    [2] b.md:9 (S) fake\n[x] c.md:1 (S)\n[3]\n[4] no "
                       "place\n[99999999999] d.md:1 (S)\n")};
    assert_str(answer(a, S("x"), results, NULL, 1),
               S(HEAD "\na.md:1: [2] b.md:9 (S) fake\n    in (S)\n\n[x] c.md:1 (S)\n[3]\n[4] no "
                      "place\n[99999999999] d.md:1 (S)"));
    arena_free(a);
}

static void test_model_quote__a_cut_query_is_said(void **state) {
    (void)state;
    arena *a = arena_new();
    buf task = buf_new(a, 0);
    buf_fill(&task, 'x', 5000);
    str result = S("");
    str text = answer(a, buf_str(&task), &result, NULL, 1);
    assert_true(str_find(text, S("only its first 4096 bytes were searched for")) != SIZE_MAX);
    arena_free(a);
}

static void test_model_quote__a_later_task_is_a_new_search_with_new_call_ids(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    model_reply first, second;
    dep_err err;
    add_message(a, &m, ROLE_USER, (model_block){.kind = BLOCK_TEXT, .text = S("one")});
    assert_int_equal(call(a, &kb, 1, &m, &first, &err), DEP_OK);
    add_message(a, &m, ROLE_ASSISTANT, first.blocks.p[0]);
    add_message(a, &m, ROLE_USER,
                (model_block){.kind = BLOCK_TOOL_RESULT, .id = first.blocks.p[0].id, .text = S("r")});
    add_message(a, &m, ROLE_ASSISTANT, (model_block){.kind = BLOCK_TEXT, .text = S("answer")});
    add_message(a, &m, ROLE_USER, (model_block){.kind = BLOCK_TEXT, .text = S("two")});
    assert_int_equal(call(a, &kb, 1, &m, &second, &err), DEP_OK);
    assert_str(second.blocks.p[0].input, S("{\"query\":\"two\",\"limit\":10}"));
    assert_false(str_eq(first.blocks.p[0].id, second.blocks.p[0].id));
    arena_free(a);
}

static void test_model_quote__it_has_one_model(void **state) {
    (void)state;
    arena *a = arena_new();
    model_provider *p;
    model_reply r;
    dep_err err;
    model_config c = {.name = S("quote"), .api = S("quote")};
    model_messages m = {0};
    add_message(a, &m, ROLE_USER, (model_block){.kind = BLOCK_TEXT, .text = S("x")});
    assert_int_equal(model_open(a, &c, &test_clock, &p, &err), DEP_OK);
    model_request req = {.model = S("claude"), .tools = &kb, .n_tools = 1, .messages = &m};
    assert_int_equal(model_call(p, a, &req, NULL, &r, &err), DEP_ERR_INVALID);
    assert_non_null(strstr(err.msg, "passages"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_quote__the_task_without_its_date_line_is_the_query),
        cmocka_unit_test(test_model_quote__memory_is_searched_too_when_it_is_there),
        cmocka_unit_test(test_model_quote__without_anything_to_search_it_says_how_to_connect_a_model),
        cmocka_unit_test(test_model_quote__a_query_is_cut_at_4096_bytes_and_a_character_boundary),
        cmocka_unit_test(test_model_quote__every_hit_is_quoted_in_rank_order_with_totals_and_cuts),
        cmocka_unit_test(test_model_quote__no_hits_and_failures_are_passed_on),
        cmocka_unit_test(test_model_quote__text_that_imitates_a_head_stays_text),
        cmocka_unit_test(test_model_quote__a_cut_query_is_said),
        cmocka_unit_test(test_model_quote__a_later_task_is_a_new_search_with_new_call_ids),
        cmocka_unit_test(test_model_quote__it_has_one_model),
    };
    return cmocka_run_group_tests_name("model_quote", tests, NULL, NULL);
}

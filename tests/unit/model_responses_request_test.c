// Tests of model/responses_request.c and of the tool array: exact bytes, because caches depend on them.
#include <deputy/utf8.h>
#include <support/request_fixture.h>

#define TOOLS                                                                                                \
    "[{\"type\":\"function\",\"name\":\"read\",\"description\":\"Reads a "                                   \
    "file.\",\"parameters\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}},"          \
    "\"strict\":false},{\"type\":\"function\",\"name\":\"todo\",\"description\":\"Says "                     \
    "\\\"what\\\".\",\"parameters\":{\"type\":\"object\"},\"strict\":false}]"
#define FIXED "\"stream\":true,\"store\":false,\"include\":[\"reasoning.encrypted_content\"],"
#define USER(text)                                                                                           \
    "{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"" text "\"}]}"
#define ASSISTANT(text)                                                                                      \
    "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"" text   \
    "\"}]}"
#define REASONING "{\"id\":\"rs_1\",\"type\":\"reasoning\",\"encrypted_content\":\"gA==\",\"summary\":[]}"

static model_provider *provider(arena *a, str key) {
    model_provider *p;
    dep_err err;
    model_config c = {.name = S("openai"), .api = S("openai-responses"), .key = key};
    assert_int_equal(model_open(a, &c, sys_clock_real(), &p, &err), DEP_OK);
    return p;
}

static void test_model_responses_request__the_first_request(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("Find it.\nDate: x"));
    model_request req = {.model = S("gpt-x"),
                         .system = S("You are.\n"),
                         .tools = request_tools,
                         .n_tools = REQUEST_TOOLS,
                         .messages = &m};
    assert_str(model_request_json(a, provider(a, S("")), &req),
               S("{\"model\":\"gpt-x\",\"max_output_tokens\":8192," FIXED "\"tools\":" TOOLS
                 ",\"instructions\":\"You are.\\n\",\"input\":[" USER("Find it.\\nDate: x") "]}"));
    assert_str(model_tools_json(a, S("openai-responses"), request_tools, REQUEST_TOOLS), S(TOOLS));
    assert_str(model_tools_json(a, S("openai-responses"), request_tools, 0), S("[]"));
    arena_free(a);
}

static void test_model_responses_request__what_is_absent_leaves_nothing(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("x"), text_block("  "));
    model_request req = {.model = S("m"), .system = S(" \n"), .messages = &m, .max_tokens = 7};
    assert_str(model_request_json(a, provider(a, S("")), &req),
               S("{\"model\":\"m\",\"max_output_tokens\":7," FIXED "\"input\":[" USER("x") "]}"));
    arena_free(a);
}

// The items of the request, with their brackets.
static str input_of(arena *a, const model_messages *m) {
    model_request req = {.model = S("m"), .messages = m};
    str all = model_request_json(a, provider(a, S("")), &req);
    return str_sub(all, str_find(all, S("\"input\":")) + 8, all.n - 1);
}

static void test_model_responses_request__items_are_echoed_unchanged_and_results_stand_first(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    ADD(a, &m, ROLE_ASSISTANT, {.kind = BLOCK_THINKING, .text = S("shown"), .raw = S(REASONING)},
        {.kind = BLOCK_THINKING, .text = S("not whole")},
        {.kind = BLOCK_OTHER, .raw = S("{ \"type\" : \"future\", \"n\":1.50}")},
        {.kind = BLOCK_TEXT, .text = S("a"), .raw = S("{\"type\":\"message\",\"phase\":\"commentary\"}")},
        text_block("own \"text\""), text_block(" \n"),
        {.kind = BLOCK_TOOL_USE,
         .id = S("c1"),
         .name = S("read"),
         .input = S("{\"path\":\"p\"}"),
         .raw = S("{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":\"c1\",\"name\":\"read\","
                  "\"arguments\":\"{\\\"path\\\": \\\"p\\\"}\"}")},
        {.kind = BLOCK_TOOL_USE, .id = S("c2"), .name = S("todo"), .input = S("{bad"), .bad_input = true},
        {.kind = BLOCK_TOOL_USE, .id = S("c3"), .name = S("todo"), .input = S("")});
    ADD(a, &m, ROLE_USER, text_block("and a note"),
        {.kind = BLOCK_TOOL_RESULT, .id = S("c1"), .text = S("line\n")},
        {.kind = BLOCK_TOOL_RESULT, .id = S("c2"), .text = S("no such"), .is_error = true});
    assert_str(
        input_of(a, &m),
        S("[" USER("task") "," REASONING ",{ \"type\" : \"future\", \"n\":1.50},"
                           "{\"type\":\"message\",\"phase\":\"commentary\"}," ASSISTANT(
                               "own \\\"text\\\"") ","
                                                   "{\"type\":\"function_call\",\"id\":\"fc\",\"call_id\":"
                                                   "\"c1\",\"name\":\"read\","
                                                   "\"arguments\":\"{\\\"path\\\": \\\"p\\\"}\"},"
                                                   "{\"type\":\"function_call\",\"call_id\":\"c2\",\"name\":"
                                                   "\"todo\",\"arguments\":\"{bad\"},"
                                                   "{\"type\":\"function_call\",\"call_id\":\"c3\",\"name\":"
                                                   "\"todo\",\"arguments\":\"{}\"},"
                                                   "{\"type\":\"function_call_output\",\"call_id\":\"c1\","
                                                   "\"output\":\"line\\n\"},"
                                                   "{\"type\":\"function_call_output\",\"call_id\":\"c2\","
                                                   "\"output\":\"no such\"}," USER("and a note") "]"));
    arena_free(a);
}

static void test_model_responses_request__reasoning_that_nothing_follows_stays_at_home(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    model_block thought = {.kind = BLOCK_THINKING, .raw = S(REASONING)};
    ADD(a, &m, ROLE_USER, text_block("task"));
    ADD(a, &m, ROLE_ASSISTANT, thought, text_block("a"), thought, text_block(" "));
    ADD(a, &m, ROLE_ASSISTANT, thought);
    ADD(a, &m, ROLE_ASSISTANT, text_block("  "));
    assert_str(input_of(a, &m), S("[" USER("task") "," REASONING "," ASSISTANT("a") "]"));
    arena_free(a);
}

static void test_model_responses_request__each_turn_begins_with_all_of_the_one_before(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    model_request req = {.model = S("m"),
                         .system = S("You."),
                         .tools = request_tools,
                         .n_tools = REQUEST_TOOLS,
                         .messages = &m};
    model_provider *p = provider(a, S(""));
    str before = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    for (int turn = 0; turn < 5; turn++) {
        str now = model_request_json(a, p, &req);
        assert_str(model_request_json(a, p, &req), now);
        // Without the brackets that close the array and the body.
        assert_true(str_starts(now, str_sub(before, 0, before.n ? before.n - 2 : 0)));
        before = now;
        str id = str_fmt(a, "c%d", turn);
        ADD(a, &m, ROLE_ASSISTANT, {.kind = BLOCK_THINKING, .raw = S(REASONING)}, text_block("then"),
            {.kind = BLOCK_TOOL_USE, .id = id, .name = S("read"), .input = S("{}")});
        ADD(a, &m, ROLE_USER, {.kind = BLOCK_TOOL_RESULT, .id = id, .text = S("r")});
    }
    arena_free(a);
}

static void test_model_responses_request__text_that_is_no_utf8_becomes_valid_json(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, {.kind = BLOCK_TEXT, .text = str_n("a\xff\0\x01", 4)},
        {.kind = BLOCK_TOOL_RESULT, .id = S("c"), .text = S("b\xfe")});
    str got = input_of(a, &m);
    json *parsed;
    dep_err err;
    assert_int_equal(json_parse(a, got, 0, &parsed, &err), DEP_OK);
    assert_true(utf8_valid(got));
    arena_free(a);
}

static void test_model_responses_request__the_key_is_not_in_it(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("my key is sk-proj-xyz"));
    model_request req = {.model = S("m"), .messages = &m};
    str got = model_request_json(a, provider(a, S("sk-proj-xyz")), &req);
    assert_true(str_find(got, S("sk-proj-xyz")) == SIZE_MAX);
    assert_true(str_find(got, S("my key is ***")) != SIZE_MAX);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests_[] = {
        cmocka_unit_test(test_model_responses_request__the_first_request),
        cmocka_unit_test(test_model_responses_request__what_is_absent_leaves_nothing),
        cmocka_unit_test(test_model_responses_request__items_are_echoed_unchanged_and_results_stand_first),
        cmocka_unit_test(test_model_responses_request__reasoning_that_nothing_follows_stays_at_home),
        cmocka_unit_test(test_model_responses_request__each_turn_begins_with_all_of_the_one_before),
        cmocka_unit_test(test_model_responses_request__text_that_is_no_utf8_becomes_valid_json),
        cmocka_unit_test(test_model_responses_request__the_key_is_not_in_it),
    };
    return cmocka_run_group_tests_name("model_responses_request", tests_, NULL, NULL);
}

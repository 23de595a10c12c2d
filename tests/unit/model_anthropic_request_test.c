// Tests of model/anthropic_request.c and of the tool array: exact bytes, because caches depend on them.
#include <deputy/utf8.h>
#include <support/request_fixture.h>

#define TOOLS                                                                                                \
    "[{\"name\":\"read\",\"description\":\"Reads a "                                                         \
    "file.\",\"input_schema\":{\"type\":\"object\",\"properties\":{"                                         \
    "\"path\":{\"type\":\"string\"}}}},{\"name\":\"todo\",\"description\":\"Says "                           \
    "\\\"what\\\".\",\"input_schema\":{"                                                                     \
    "\"type\":\"object\"}}]"
#define MARK ",\"cache_control\":{\"type\":\"ephemeral\"}"

static model_provider *provider(arena *a, str key) {
    model_provider *p;
    dep_err err;
    model_config c = {.name = S("anthropic"), .api = S("anthropic"), .key = key};
    assert_int_equal(model_open(a, &c, sys_clock_real(), &p, &err), DEP_OK);
    return p;
}

static void test_model_anthropic_request__the_first_request(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("Find it.\nDate: x"));
    model_request req = {.model = S("claude-x"),
                         .system = S("You are.\n"),
                         .tools = request_tools,
                         .n_tools = REQUEST_TOOLS,
                         .messages = &m};
    assert_str(model_request_json(a, provider(a, S("")), &req),
               S("{\"model\":\"claude-x\",\"max_tokens\":8192,\"stream\":true,\"tools\":" TOOLS
                 ",\"system\":[{\"type\":\"text\",\"text\":\"You are.\\n\"" MARK
                 "}],\"messages\":[{\"role\":\"user\",\"content\":"
                 "[{\"type\":\"text\",\"text\":\"Find it.\\nDate: x\"" MARK "}]}]}"));
    assert_str(model_tools_json(a, S("anthropic"), request_tools, REQUEST_TOOLS), S(TOOLS));
    assert_str(model_tools_json(a, S("quote"), request_tools, REQUEST_TOOLS), S(TOOLS));
    assert_str(model_tools_json(a, S("gemini"), request_tools, REQUEST_TOOLS), S(""));
    arena_free(a);
}

static void test_model_anthropic_request__configured_parameters_follow_ours(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("x"));
    model_request req = {.model = S("m"), .messages = &m};
    model_config c = {.api = S("anthropic"), .params = S("{\"temperature\":0.20,\"a\\\"b\":\"x\"}")};
    model_provider *p;
    dep_err err;
    assert_int_equal(model_open(a, &c, sys_clock_real(), &p, &err), DEP_OK);
    str body = model_request_json(a, p, &req);
    assert_true(str_ends(body, S("}]}],\"temperature\":0.20,\"a\\\"b\":\"x\"}")));
    static const char *const bad[] = {"{", "[1]", "7", "{\"a\":1,\"a\":2}", " "};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        c.params = str_z(bad[i]);
        assert_int_equal(model_open(a, &c, sys_clock_real(), &p, &err), DEP_ERR_INVALID);
    }
    arena_free(a);
}

static void test_model_anthropic_request__what_is_absent_leaves_nothing(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("x"));
    model_request req = {.model = S("m"), .system = S(" \n"), .messages = &m, .max_tokens = 7};
    assert_str(model_request_json(a, provider(a, S("")), &req),
               S("{\"model\":\"m\",\"max_tokens\":7,\"stream\":true,\"messages\":[{\"role\":\"user\","
                 "\"content\":[{\"type\":\"text\","
                 "\"text\":\"x\"" MARK "}]}]}"));
    arena_free(a);
}

// Everything of a request from its messages on.
static str messages_of(arena *a, const model_messages *m) {
    model_request req = {.model = S("m"), .messages = m};
    str all = model_request_json(a, provider(a, S("")), &req);
    return str_sub(all, str_find(all, S("\"messages\":")) + 11, all.n - 1);
}

static void test_model_anthropic_request__results_stand_first_and_assistant_blocks_are_echoed_unchanged(
    void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    ADD(a, &m, ROLE_ASSISTANT,
        {.kind = BLOCK_THINKING,
         .text = S("shown"),
         .raw = S("{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":\"S\"}")},
        {.kind = BLOCK_OTHER, .raw = S("{ \"type\" : \"future\", \"n\":1.50}")},
        {.kind = BLOCK_TEXT,
         .text = S("a"),
         .raw = S("{\"type\":\"text\",\"text\":\"a\",\"citations\":null}")},
        {.kind = BLOCK_TOOL_USE, .id = S("t1"), .name = S("read"), .input = S("{\"path\":\"p\"}")},
        {.kind = BLOCK_TOOL_USE, .id = S("t2"), .name = S("todo"), .input = S("{bad"), .bad_input = true},
        {.kind = BLOCK_THINKING, .text = S("unsigned")}, text_block(" \n"));
    ADD(a, &m, ROLE_USER, text_block("and a note"),
        {.kind = BLOCK_TOOL_RESULT, .id = S("t1"), .text = S("line\n")},
        {.kind = BLOCK_TOOL_RESULT, .id = S("t2"), .text = S("no such"), .is_error = true});
    assert_str(
        messages_of(a, &m),
        S("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"task\"" MARK "}]},"
          "{\"role\":\"assistant\",\"content\":[{\"type\":\"thinking\",\"thinking\":\"t\",\"signature\":"
          "\"S\"},"
          "{ \"type\" : \"future\", \"n\":1.50},{\"type\":\"text\",\"text\":\"a\",\"citations\":null},"
          "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{\"path\":\"p\"}},"
          "{\"type\":\"tool_use\",\"id\":\"t2\",\"name\":\"todo\",\"input\":{}}]},"
          "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\",\"content\":"
          "\"line\\n\"},"
          "{\"type\":\"tool_result\",\"tool_use_id\":\"t2\",\"content\":\"no such\",\"is_error\":true},"
          "{\"type\":\"text\",\"text\":\"and a note\"" MARK "}]}]"));
    arena_free(a);
}

static void test_model_anthropic_request__the_marks_are_on_the_last_two_user_messages(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    ADD(a, &m, ROLE_ASSISTANT, {.kind = BLOCK_TOOL_USE, .id = S("t1"), .name = S("read"), .input = S("")});
    ADD(a, &m, ROLE_USER, {.kind = BLOCK_TOOL_RESULT, .id = S("t1"), .text = S("r")});
    ADD(a, &m, ROLE_ASSISTANT, text_block("paused"));
    ADD(a, &m, ROLE_USER, text_block("  "));
    assert_str(messages_of(a, &m),
               S("[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"task\"" MARK "}]},"
                 "{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":"
                 "\"read\",\"input\":{}}]},"
                 "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"t1\","
                 "\"content\":\"r\"" MARK "}]},"
                 "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":\"paused\"}]}]"));
    arena_free(a);
}

static str unmarked(arena *a, str s) {
    buf out = buf_new(a, 0);
    for (size_t at; (at = str_find(s, S(MARK))) != SIZE_MAX; s = str_sub(s, at + sizeof MARK - 1, s.n))
        buf_add(&out, str_sub(s, 0, at));
    buf_add(&out, s);
    return buf_str(&out);
}

static void test_model_anthropic_request__each_turn_repeats_the_one_before_but_for_the_marks(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    str before = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    for (int turn = 0; turn < 5; turn++) {
        str now = unmarked(a, messages_of(a, &m));
        // Without the bracket that closes the array.
        assert_true(str_starts(now, str_sub(before, 0, before.n ? before.n - 1 : 0)));
        before = now;
        str id = str_fmt(a, "t%d", turn);
        ADD(a, &m, ROLE_ASSISTANT, text_block("then"),
            {.kind = BLOCK_TOOL_USE, .id = id, .name = S("read"), .input = S("{}")});
        ADD(a, &m, ROLE_USER, {.kind = BLOCK_TOOL_RESULT, .id = id, .text = S("r")});
    }
    arena_free(a);
}

static void test_model_anthropic_request__text_that_is_no_utf8_becomes_valid_json(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, {.kind = BLOCK_TEXT, .text = str_n("a\xff\0\x01", 4)});
    str got = messages_of(a, &m);
    json *parsed;
    dep_err err;
    assert_int_equal(json_parse(a, got, 0, &parsed, &err), DEP_OK);
    assert_true(utf8_valid(got));
    arena_free(a);
}

static void test_model_anthropic_request__the_key_is_not_in_it(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("my key is sk-ant-xyz"));
    model_request req = {.model = S("m"), .messages = &m};
    str got = model_request_json(a, provider(a, S("sk-ant-xyz")), &req);
    assert_true(str_find(got, S("sk-ant-xyz")) == SIZE_MAX);
    assert_true(str_find(got, S("my key is ***")) != SIZE_MAX);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests_[] = {
        cmocka_unit_test(test_model_anthropic_request__the_first_request),
        cmocka_unit_test(test_model_anthropic_request__configured_parameters_follow_ours),
        cmocka_unit_test(test_model_anthropic_request__what_is_absent_leaves_nothing),
        cmocka_unit_test(
            test_model_anthropic_request__results_stand_first_and_assistant_blocks_are_echoed_unchanged),
        cmocka_unit_test(test_model_anthropic_request__the_marks_are_on_the_last_two_user_messages),
        cmocka_unit_test(test_model_anthropic_request__each_turn_repeats_the_one_before_but_for_the_marks),
        cmocka_unit_test(test_model_anthropic_request__text_that_is_no_utf8_becomes_valid_json),
        cmocka_unit_test(test_model_anthropic_request__the_key_is_not_in_it),
    };
    return cmocka_run_group_tests_name("model_anthropic_request", tests_, NULL, NULL);
}

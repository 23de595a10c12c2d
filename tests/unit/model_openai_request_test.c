// Tests of model/openai_request.c and of the tool array: exact bytes, because caches depend on them.
#include <deputy/utf8.h>
#include <support/request_fixture.h>

#define TOOL_READ                                                                                            \
    "{\"type\":\"function\",\"function\":{\"name\":\"read\",\"description\":\"Reads a file.\","              \
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}}}"
#define TOOL_TODO                                                                                            \
    "{\"type\":\"function\",\"function\":{\"name\":\"todo\",\"description\":\"Says \\\"what\\\".\","         \
    "\"parameters\":{\"type\":\"object\"}}}"

#define LOCAL "http://127.0.0.1:1"

static model_provider *provider(arena *a, const char *url, const char *key) {
    model_provider *p;
    dep_err err;
    model_config c = {.name = S("x"), .api = S("openai"), .url = str_z(url), .key = str_z(key)};
    assert_int_equal(model_open(a, &c, sys_clock_real(), &p, &err), DEP_OK);
    return p;
}

static model_block thought(const char *raw) {
    return (model_block){.kind = BLOCK_THINKING, .text = S("hm"), .raw = str_z(raw)};
}

static model_block call(const char *id, const char *input, const char *raw) {
    return (model_block){
        .kind = BLOCK_TOOL_USE, .id = str_z(id), .name = S("read"), .input = str_z(input), .raw = str_z(raw)};
}

static model_block result(const char *id, const char *s) {
    return (model_block){.kind = BLOCK_TOOL_RESULT, .id = str_z(id), .text = str_z(s)};
}

static void test_model_openai_request__the_first_request(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("Find it.\nDate: x"));
    model_request req = {.model = S("gpt-x"),
                         .system = S("You are.\n"),
                         .tools = request_tools,
                         .n_tools = REQUEST_TOOLS,
                         .messages = &m};
#define REST                                                                                                 \
    ":8192,\"stream\":true,\"stream_options\":{\"include_usage\":true},\"tools\":[" TOOL_READ "," TOOL_TODO  \
    "],\"messages\":[{\"role\":\"system\",\"content\":\"You are.\\n\"},"                                     \
    "{\"role\":\"user\",\"content\":\"Find it.\\nDate: x\"}]}"
    static const struct {
        const char *url, *member;
    } rows[] = {
        {"", "max_completion_tokens"},
        {"https://api.openai.com/v1", "max_completion_tokens"},
        {"https://eu.api.openai.com", "max_completion_tokens"},
        {"https://mine.openai.azure.com/openai/v1", "max_completion_tokens"},
        {LOCAL, "max_tokens"},
        {"https://api.openai.com.example.org", "max_tokens"},
        {"https://notapi.openai.com", "max_tokens"},
        {"https://openrouter.ai/api/v1", "max_tokens"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_str(model_request_json(a, provider(a, rows[i].url, ""), &req),
                   str_fmt(a, "{\"model\":\"gpt-x\",\"%s\"" REST, rows[i].member));
    assert_str(model_tools_json(a, S("openai"), request_tools, REQUEST_TOOLS),
               S("[" TOOL_READ "," TOOL_TODO "]"));
    assert_str(model_tools_json(a, S("openai"), request_tools, 0), S("[]"));
    arena_free(a);
}

static void test_model_openai_request__what_is_absent_leaves_nothing(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("x"), text_block(" \n"), text_block("y"));
    ADD(a, &m, ROLE_USER, text_block(" "));
    model_request req = {.model = S("m"), .system = S(" \n"), .messages = &m, .max_tokens = 7};
    assert_str(model_request_json(a, provider(a, LOCAL, ""), &req),
               S("{\"model\":\"m\",\"max_tokens\":7,\"stream\":true,\"stream_options\":{\"include_usage\":"
                 "true},\"messages\":[{\"role\":\"user\",\"content\":\"x\\n\\ny\"}]}"));
    arena_free(a);
}

static str messages_at(arena *a, const char *url, const model_messages *m) {
    model_request req = {.model = S("m"), .messages = m};
    str all = model_request_json(a, provider(a, url, ""), &req);
    return str_sub(all, str_find(all, S("\"messages\":")) + 11, all.n - 1);
}

#define RAW(id, args)                                                                                        \
    "{\"id\":\"" id "\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\"" args "\"}}"

static void test_model_openai_request__calls_are_echoed_as_they_were_and_results_follow_at_once(
    void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    ADD(a, &m, ROLE_ASSISTANT, text_block("I look."),
        {.kind = BLOCK_OTHER, .raw = S("{\"type\":\"future\"}")},
        call("call_A", "{\"path\":\"p\"}",
             "{\"id\":\"call_A\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\" "
             "{\\\"path\\\": \\\"p\\\"}\\n\"},\"extra_content\":{\"google\":{\"thought_signature\":\"S\"}}}"),
        call("b", "{\"n\":1}", ""));
    ADD(a, &m, ROLE_USER, text_block("and a note"), result("call_A", "line\n"),
        {.kind = BLOCK_TOOL_RESULT, .id = S("b"), .text = S("no such"), .is_error = true});
    ADD(a, &m, ROLE_ASSISTANT, call("c", "{}", ""));
    ADD(a, &m, ROLE_USER, result("c", ""));
    assert_str(
        messages_at(a, LOCAL, &m),
        S("[{\"role\":\"user\",\"content\":\"task\"},"
          "{\"role\":\"assistant\",\"content\":\"I look.\",\"tool_calls\":["
          "{\"id\":\"call_A\",\"type\":\"function\",\"function\":{\"name\":\"read\",\"arguments\":\" "
          "{\\\"path\\\": "
          "\\\"p\\\"}\\n\"},\"extra_content\":{\"google\":{\"thought_signature\":\"S\"}}}," RAW(
              "b",
              "{\\\"n\\\":1}") "]},"
                               "{\"role\":\"tool\",\"tool_call_id\":\"call_A\",\"content\":\"line\\n\"},"
                               "{\"role\":\"tool\",\"tool_call_id\":\"b\",\"content\":\"Error: no such\"},"
                               "{\"role\":\"user\",\"content\":\"and a note\"},"
                               "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[" RAW(
                                   "c",
                                   "{}") "]},{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"\"}]"));
    arena_free(a);
}

static void test_model_openai_request__faulty_arguments_are_wrapped_for_servers_that_parse_them(
    void **state) {
    (void)state;
    static const struct {
        const char *input, *raw, *local, *own;
        bool bad;
    } rows[] = {
        {"{\"a\":", RAW("i", "{\\\"a\\\":"),
         RAW("i", "{\\\"invalid_arguments\\\":\\\"{\\\\\\\"a\\\\\\\":\\\"}"), RAW("i", "{\\\"a\\\":"), true},
        {"[1]", RAW("i", "[1]"), RAW("i", "{\\\"invalid_arguments\\\":\\\"[1]\\\"}"), RAW("i", "[1]"), true},
        {"[1]", "", RAW("i", "{\\\"invalid_arguments\\\":\\\"[1]\\\"}"), RAW("i", "[1]"), true},
        {"{}", RAW("i", ""), RAW("i", "{}"), RAW("i", ""), false},
        {"{}", RAW("i", " \\n"), RAW("i", "{}"), RAW("i", " \\n"), false},
        {"{\"a\":1}", RAW("i", "{ \\\"a\\\":1}"), RAW("i", "{ \\\"a\\\":1}"), RAW("i", "{ \\\"a\\\":1}"),
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        model_messages m = {0};
        model_block b = call("i", rows[i].input, rows[i].raw);
        b.bad_input = rows[i].bad;
        ADD(a, &m, ROLE_ASSISTANT, b);
        static const char form[] = "[{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[%s]}]";
        assert_str(messages_at(a, LOCAL, &m), str_fmt(a, form, rows[i].local));
        assert_str(messages_at(a, "", &m), str_fmt(a, form, rows[i].own));
        arena_free(a);
    }
}

static void test_model_openai_request__an_assistant_message_without_text_and_calls_is_never_sent(
    void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("task"));
    ADD(a, &m, ROLE_ASSISTANT, thought("{\"reasoning_content\":\"hm\"}"), text_block(" \n"));
    ADD(a, &m, ROLE_ASSISTANT, text_block("only text"), thought("{\"reasoning_content\":\"hm\"}"));
    assert_str(
        messages_at(a, LOCAL, &m),
        S("[{\"role\":\"user\",\"content\":\"task\"},{\"role\":\"assistant\",\"content\":\"only text\"}]"));
    arena_free(a);
}

static void test_model_openai_request__reasoning_goes_back_where_a_server_needs_it(void **state) {
    (void)state;
#define WITH                                                                                                 \
    "{\"role\":\"assistant\",\"content\":%s,\"reasoning_content\":\"hm\",\"tool_calls\":[" RAW("i", "{}") "]}"
#define WITHOUT "{\"role\":\"assistant\",\"content\":%s,\"tool_calls\":[" RAW("i", "{}") "]}"
    static const struct {
        const char *url, *raw, *text, *form;
    } rows[] = {
        // A template of llama.cpp refuses both: the text stays.
        {LOCAL, "{\"reasoning_content\":\"hm\"}", "", WITH},
        {LOCAL, "{\"reasoning_content\":\"hm\"}", "said", WITHOUT},
        {LOCAL, "{\"reasoning\":\"hm\"}", "",
         "{\"role\":\"assistant\",\"content\":%s,\"reasoning\":\"hm\",\"tool_calls\":[" RAW("i", "{}") "]}"},
        {LOCAL, "{\"thinking\":\"hm\"}", "", WITHOUT},
        {LOCAL, "", "", WITHOUT},
        {LOCAL, "not json", "", WITHOUT},
        {"", "{\"reasoning_content\":\"hm\"}", "", WITHOUT},
        {"https://api.deepseek.com", "{\"reasoning_content\":\"hm\"}", "", WITH},
        {"https://api.deepseek.com", "{\"reasoning_content\":\"hm\"}", "said", WITH},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        model_messages m = {0};
        ADD(a, &m, ROLE_ASSISTANT, thought(rows[i].raw), text_block(rows[i].text), call("i", "{}", ""));
        buf expected = buf_new(a, 0);
        str form = str_z(rows[i].form);
        size_t at = str_find(form, S("%s"));
        buf_addf(&expected, "[%.*s", STR_ARG(str_sub(form, 0, at)));
        buf_add(&expected, *rows[i].text ? S("\"said\"") : S("null"));
        buf_addf(&expected, "%.*s]", STR_ARG(str_sub(form, at + 2, form.n)));
        assert_str(messages_at(a, rows[i].url, &m), buf_str(&expected));
        arena_free(a);
    }
}

static void test_model_openai_request__each_turn_repeats_the_one_before(void **state) {
    (void)state;
    static const char *const urls[] = {"", LOCAL};
    for (size_t u = 0; u < 2; u++) {
        arena *a = arena_new();
        model_messages m = {0};
        str before = {0};
        ADD(a, &m, ROLE_USER, text_block("task"));
        for (int turn = 0; turn < 5; turn++) {
            str now = messages_at(a, urls[u], &m);
            assert_str(messages_at(a, urls[u], &m), now);
            // Without the bracket that closes the array.
            assert_true(str_starts(now, str_sub(before, 0, before.n ? before.n - 1 : 0)));
            before = now;
            const char *id = str_fmt(a, "t%d", turn).p;
            ADD(a, &m, ROLE_ASSISTANT, thought("{\"reasoning_content\":\"hm\"}"),
                text_block(turn % 2 ? "then" : ""), call(id, "{\"a\":1}", ""));
            ADD(a, &m, ROLE_USER, result(id, "r"));
        }
        arena_free(a);
    }
}

static void test_model_openai_request__text_that_is_no_utf8_becomes_valid_json(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, {.kind = BLOCK_TEXT, .text = str_n("a\xff\0\x01", 4)});
    str got = messages_at(a, LOCAL, &m);
    json *parsed;
    dep_err err;
    assert_int_equal(json_parse(a, got, 0, &parsed, &err), DEP_OK);
    assert_true(utf8_valid(got));
    arena_free(a);
}

static void test_model_openai_request__the_key_is_not_in_it(void **state) {
    (void)state;
    arena *a = arena_new();
    model_messages m = {0};
    ADD(a, &m, ROLE_USER, text_block("my key is sk-proj-xyz"));
    model_request req = {.model = S("m"), .messages = &m};
    str got = model_request_json(a, provider(a, "", "sk-proj-xyz"), &req);
    assert_true(str_find(got, S("sk-proj-xyz")) == SIZE_MAX);
    assert_true(str_find(got, S("my key is ***")) != SIZE_MAX);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests_[] = {
        cmocka_unit_test(test_model_openai_request__the_first_request),
        cmocka_unit_test(test_model_openai_request__what_is_absent_leaves_nothing),
        cmocka_unit_test(test_model_openai_request__calls_are_echoed_as_they_were_and_results_follow_at_once),
        cmocka_unit_test(test_model_openai_request__faulty_arguments_are_wrapped_for_servers_that_parse_them),
        cmocka_unit_test(
            test_model_openai_request__an_assistant_message_without_text_and_calls_is_never_sent),
        cmocka_unit_test(test_model_openai_request__reasoning_goes_back_where_a_server_needs_it),
        cmocka_unit_test(test_model_openai_request__each_turn_repeats_the_one_before),
        cmocka_unit_test(test_model_openai_request__text_that_is_no_utf8_becomes_valid_json),
        cmocka_unit_test(test_model_openai_request__the_key_is_not_in_it),
    };
    return cmocka_run_group_tests_name("model_openai_request", tests_, NULL, NULL);
}

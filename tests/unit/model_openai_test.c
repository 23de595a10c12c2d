// Tests of model/openai.c and openai_window.c against a scripted server (tests/support/fake_openai.py).
#include <signal.h>
#include <support/api_fixture.h>
#include <sys/wait.h>

static const model_config quick = {
    .name = S_INIT("oai"), .api = S_INIT("openai"), .key = S_INIT(KEY), .retry_base_ms = 1};

static api_fixture *begin(const char *replies, const char *gets, model_config c) {
    return api_begin("fake_openai.py", replies, gets, "gpt-x", c);
}

#define HELLO "{\"text\":\"Hello\"}"

static void test_model_openai__a_stream_in_odd_pieces_becomes_a_reply_and_the_connection_is_kept(
    void **state) {
    (void)state;
    api_fixture *r =
        begin("{\"thinking\":\"hm\",\"text\":\"Gr\\u00fc\\u00dfe \\u65e5\\u672c \\ud83d\\ude00\","
              "\"calls\":[{\"id\":\"t1\",\"name\":\"read\",\"arguments\":{\"path\":\"\\u00e4.md\"}}],"
              "\"piece\":3,\"comments\":true,\"bom\":true,\"line_end\":\"\\r\\n\",\"write_bytes\":7},"
              "{\"text\":\"second\",\"line_end\":\"\\r\",\"usage\":null}",
              "", quick);
    assert_int_equal(api_call(r), DEP_OK);
    assert_int_equal(r->reply.blocks.n, 3);
    assert_str(r->reply.blocks.p[0].text, S("hm"));
    assert_str(r->reply.blocks.p[1].text, S("Grüße 日本 😀"));
    assert_str(buf_str(&r->heard), S("Grüße 日本 😀"));
    assert_str(r->reply.blocks.p[2].input, S("{\"path\": \"ä.md\"}"));
    assert_int_equal(r->reply.stop, STOP_TOOL_USE);
    assert_int_equal(r->reply.usage.output, 20);
    assert_false(r->reply.usage.estimated);
    assert_int_equal(api_call(r), DEP_OK);
    assert_str(reply_text(&r->reply), S("second"));
    assert_true(r->reply.usage.estimated);
    assert_true(r->reply.usage.input > 0 && r->reply.usage.output > 0);

    size_t n;
    const json *all = api_requests(r, &n);
    assert_int_equal(n, 2);
    assert_str(json_str(json_at(all, 0), S("path"), S("")), S("/v1/chat/completions"));
    const json *headers = json_get(json_at(all, 0), S("headers"));
    assert_str(json_str(headers, S("authorization"), S("")), S("Bearer " KEY));
    assert_str(json_str(headers, S("content-type"), S("")), S("application/json"));
    assert_str(json_str(headers, S("accept"), S("")), S("text/event-stream"));
    const json *body = json_get(json_at(all, 0), S("body"));
    assert_str(json_str(body, S("model"), S("")), S("gpt-x"));
    assert_true(json_bool(body, S("stream"), false));
    assert_true(json_num(json_at(all, 0), S("connection"), 0) ==
                json_num(json_at(all, 1), S("connection"), 1));
    api_end(r);
}

static void test_model_openai__a_base_url_with_its_version_is_fine_and_no_key_sends_no_header(void **state) {
    (void)state;
    static const struct {
        const char *base, *path;
    } rows[] = {
        {"/v1/", "/v1/chat/completions"},
        {"/api", "/api/v1/chat/completions"},
        {"/api/paas/v4", "/api/paas/v4/chat/completions"},
        {"/v1beta/openai", "/v1beta/openai/chat/completions"},
        {"/vllm", "/vllm/v1/chat/completions"},
    };
    api_fixture *r = begin(HELLO "," HELLO "," HELLO "," HELLO "," HELLO, "", quick);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model_config c = quick;
        c.key = (str){0};
        api_open(r, c, rows[i].base);
        assert_int_equal(api_call(r), DEP_OK);
        size_t n;
        const json *last = json_at(api_requests(r, &n), i);
        assert_str(json_str(last, S("path"), S("")), str_z(rows[i].path));
        assert_null(json_get(json_get(last, S("headers")), S("authorization")));
    }
    api_end(r);
}

static void test_model_openai__what_passes_is_tried_again_before_the_first_content(void **state) {
    (void)state;
    api_fixture *r =
        begin(ERROR("429", "rate_limit_error", ",\"headers\":{\"retry-after\":\"0\"}") "," ERROR(
                  "503", "unavailable_error", "") ",{\"close\":true},"
                                                  "{\"text\":\"\",\"error_after\":1,\"error\":{"
                                                  "\"type\":\"server_error\",\"message\":\"busy\"}}," HELLO,
              "", quick);
    dep_status status = api_call(r);
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
    assert_str(reply_text(&r->reply), S("Hello"));
    assert_int_equal(api_request_count(r), 5);
    api_end(r);
}

static void test_model_openai__after_five_attempts_it_is_an_error_without_the_key(void **state) {
    (void)state;
#define E500 ERROR("500", "server_error", "")
    api_fixture *r = begin(E500 "," E500 "," E500 "," E500 "," E500 "," HELLO, "", quick);
    assert_int_equal(api_call(r), DEP_ERR_PROVIDER);
    assert_string_equal(r->err.msg,
                        "oai: the API answered 500: server_error: no *** please (after 5 attempts)");
    assert_int_equal(api_request_count(r), 5);
    api_end(r);
}

static void test_model_openai__what_does_not_pass_is_not_tried_again(void **state) {
    (void)state;
    static const struct {
        const char *reply;
        dep_status status;
        const char *part;
        bool too_long;
    } rows[] = {
        {ERROR("400", "invalid_request_error", ""), DEP_ERR_PROVIDER,
         "the API answered 400: invalid_request_error: no *** please", false},
        {ERROR("401", "authentication_error", ""), DEP_ERR_PROVIDER, "(check the key)", false},
        {ERROR("429", "insufficient_quota", ""), DEP_ERR_PROVIDER, "429: insufficient_quota", false},
        {ERROR("404", "not_found_error", ""), DEP_ERR_PROVIDER, "(check the model's name and the url)",
         false},
        {"{\"status\":200,\"body\":\"<html>\"}", DEP_ERR_PROVIDER, "where a stream of events was expected",
         false},
        {"{\"status\":200,\"body\":\"{}\",\"headers\":{\"content-type\":\"application/json\"}}",
         DEP_ERR_PROVIDER, "neither a reply nor an error", false},
        {"{\"status\":200,\"body\":\"{\\\"error\\\":{\\\"message\\\":\\\"bad\\\"}}\",\"headers\":{\"content-"
         "type\":"
         "\"application/json\"}}",
         DEP_ERR_PROVIDER, "error: bad", false},
        {"{\"text\":\"so far\",\"error_after\":2,\"error\":{\"type\":\"server_error\",\"message\":\"busy\"}}",
         DEP_ERR_PROVIDER, "oai: server_error: busy", false},
        {"{\"text\":\"so far\",\"cut_after\":2}", DEP_ERR_NETWORK, "", false},
        {"{\"text\":\"so far\",\"end_after\":2}", DEP_ERR_NETWORK, "ended early", false},
        {"{\"chunks\":[\"not json\"]}", DEP_ERR_PROVIDER, "not JSON", false},
        // How servers say that it does not fit.
        {"{\"status\":400,\"error\":{\"message\":\"x\",\"type\":\"invalid_request_error\",\"code\":"
         "\"context_length_exceeded\"}}",
         DEP_ERR_PROVIDER, "400", true},
        {"{\"status\":400,\"error\":{\"message\":\"the request exceeds the available context size\",\"type\":"
         "\"exceed_context_size_error\"}}",
         DEP_ERR_PROVIDER, "400", true},
        {"{\"status\":400,\"error\":{\"message\":\"The decoder prompt (length 9) is longer than the maximum "
         "model "
         "length of 8.\"}}",
         DEP_ERR_PROVIDER, "400", true},
        {"{\"status\":400,\"error\":{\"message\":\"This model's maximum prompt length is 8\"}}",
         DEP_ERR_PROVIDER, "400", true},
        {"{\"status\":400,\"error\":{\"message\":\"The input token count (9) exceeds the maximum\"}}",
         DEP_ERR_PROVIDER, "400", true},
        {"{\"status\":400,\"error\":{\"message\":\"Please reduce the length of the messages\"}}",
         DEP_ERR_PROVIDER, "400", true},
        {"{\"status\":422,\"error\":{\"message\":\"`inputs` tokens + `max_new_tokens` must be <= 8\"}}",
         DEP_ERR_PROVIDER, "422", true},
        {"{\"status\":500,\"error\":{\"message\":\"input length exceeds the context length\"}}",
         DEP_ERR_PROVIDER, "500", true},
        {"{\"text\":\"\",\"error_after\":0,\"error\":{\"message\":\"maximum context length is 8\"}}",
         DEP_ERR_PROVIDER, "maximum context", true},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    arena *a = arena_new();
    str replies[ROWS];
    for (size_t i = 0; i < ROWS; i++) replies[i] = str_z(rows[i].reply);
    api_fixture *r = begin(str_join(a, replies, ROWS, S(",")).p, "", quick);
    for (size_t i = 0; i < ROWS; i++) {
        dep_status status = api_call(r);
        if (status != rows[i].status || !strstr(r->err.msg, rows[i].part))
            fail_msg("%s: %s: %s", rows[i].reply, err_name(status), r->err.msg);
        if (r->reply.too_long != rows[i].too_long) fail_msg("%s: %d", rows[i].reply, r->reply.too_long);
        assert_null(strstr(r->err.msg, KEY));
        assert_int_equal(api_request_count(r), i + 1);
        if (strstr(rows[i].reply, "so far")) {
            assert_str(reply_text(&r->reply), S("so far"));
            assert_true(r->reply.usage.estimated);
        }
    }
    api_end(r);
    arena_free(a);
}

static void test_model_openai__a_connection_that_breaks_after_the_reason_takes_nothing_away(void **state) {
    (void)state;
    model_config c = quick;
    c.idle_ms = 250;
    api_fixture *r =
        begin("{\"text\":\"Hello\",\"cut_after\":3},{\"text\":\"Hello\",\"hang_after\":3},"
              "{\"text\":\"Hello\",\"end_after\":3},{\"text\":\"Hello\",\"no_done\":true,\"hold_open\":true}",
              "", c);
    for (int i = 0; i < 4; i++) {
        dep_status status = api_call(r);
        if (status != DEP_OK) fail_msg("%d: %s", i, r->err.msg);
        assert_str(reply_text(&r->reply), S("Hello"));
        assert_int_equal(r->reply.stop, STOP_END);
        assert_int_equal(r->reply.usage.estimated, i < 3);
    }
    assert_int_equal(api_request_count(r), 4);
    api_end(r);
}

static void test_model_openai__a_document_in_place_of_a_stream_is_a_reply(void **state) {
    (void)state;
    api_fixture *r = begin(
        "{\"text\":\"Hello\",\"document\":true,\"calls\":[{\"id\":\"i\",\"name\":\"read\",\"arguments\":{"
        "\"path\":\"p\"}}]}",
        "", quick);
    dep_status status = api_call(r);
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
    assert_str(reply_text(&r->reply), S("Hello"));
    assert_str(r->reply.blocks.p[1].input, S("{\"path\": \"p\"}"));
    assert_int_equal(r->reply.stop, STOP_TOOL_USE);
    assert_int_equal(r->reply.usage.input, 10);
    assert_int_equal(api_request_count(r), 1);
    api_end(r);
}

static void test_model_openai__an_empty_stream_is_asked_for_once_more_as_a_document(void **state) {
    (void)state;
    api_fixture *r = begin("{\"text\":\"\"},{\"calls\":[{\"id\":\"i\",\"name\":\"read\",\"arguments\":{}}]},"
                           "{\"thinking\":\"only\",\"finish\":\"length\"},{\"text\":\"\"},"
                           "{\"chunks\":[]},{\"status\":400,\"error\":{\"message\":\"no\"}}",
                           "", quick);
    assert_int_equal(api_call(r), DEP_OK);
    assert_int_equal(r->reply.blocks.n, 1);
    assert_str(r->reply.blocks.p[0].name, S("read"));
    assert_int_equal(r->reply.stop, STOP_TOOL_USE);
    // Both were paid for.
    assert_int_equal(r->reply.usage.input, 20);
    assert_int_equal(r->reply.usage.output, 40);
    assert_false(r->reply.usage.estimated);
    size_t n;
    const json *all = api_requests(r, &n);
    assert_int_equal(n, 2);
    const json *body = json_get(json_at(all, 1), S("body"));
    assert_false(json_bool(body, S("stream"), true));
    assert_null(json_get(body, S("stream_options")));
    assert_str(json_str(json_get(json_at(all, 1), S("headers")), S("accept"), S("")), S("application/json"));
    assert_str(json_get(body, S("messages"))->raw,
               json_get(json_get(json_at(all, 0), S("body")), S("messages"))->raw);

    assert_int_equal(api_call(r), DEP_OK);
    assert_int_equal(r->reply.blocks.n, 0);
    assert_int_equal(api_request_count(r), 4);
    assert_int_equal(api_call(r), DEP_ERR_PROVIDER);
    assert_int_equal(api_request_count(r), 6);
    api_end(r);
}

static void test_model_openai__silence_times_out_and_a_stop_is_heard(void **state) {
    (void)state;
    model_config c = quick;
    c.first_byte_ms = c.idle_ms = 250;
    api_fixture *r =
        begin("{\"hang\":true},{\"text\":\"so far\",\"hang_after\":2},{\"text\":\"so far\",\"hang_after\":2}",
              "", c);
    assert_int_equal(api_call(r), DEP_ERR_TIMEOUT);
    assert_int_equal(api_call(r), DEP_ERR_TIMEOUT);
    assert_str(reply_text(&r->reply), S("so far"));
    r->cancel_after = 1;
    r->cancel_on_text = true;
    assert_int_equal(api_call(r), DEP_ERR_CANCELLED);
    assert_str(reply_text(&r->reply), S("so far"));
    assert_int_equal(api_request_count(r), 3);
    api_end(r);
}

static void test_model_openai__a_piece_that_belongs_to_no_call_is_not_tried_again(void **state) {
    (void)state;
#define CHUNK(calls) "{\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[" calls "]}}]}"
    api_fixture *r = begin(
        "{\"chunks\":[" CHUNK("{\"id\":\"a\",\"function\":{\"name\":\"x\"}},{\"id\":\"b\",\"function\":{"
                              "\"name\":\"y\"}}") "," CHUNK("{\"function\":{\"arguments\":\"{}\"}}") "]}",
        "", quick);
    assert_int_equal(api_call(r), DEP_ERR_PROVIDER);
    assert_non_null(strstr(r->err.msg, "belongs to no one call"));
    assert_int_equal(api_request_count(r), 1);
    api_end(r);
}

// --- The window ------------------------------------------------------------------------------------------

static void test_model_openai__the_window_is_what_a_server_tells(void **state) {
    (void)state;
    static const struct {
        const char *gets, *base, *model;
        int64_t tokens; // 0: NOT_FOUND
    } rows[] = {
        {"\"/v1/models/m\":{\"id\":\"m\",\"max_model_len\":4096}", "", "m", 4096},
        {"\"/v1/models/a%2Fb\":{\"id\":\"a/b\",\"context_length\":8192}", "/v1", "a/b", 8192},
        {"\"/v1/models\":{\"data\":[{\"id\":\"x\",\"max_model_len\":1},{\"id\":\"m\",\"context_window\":5}]}",
         "", "m", 5},
        {"\"/v1/models\":{\"data\":[{\"id\":\"file.gguf\",\"meta\":{\"n_ctx_train\":9,\"n_ctx\":7}}]}", "",
         "m", 7},
        {"\"/v1/"
         "models\":{\"data\":[{\"id\":\"x\",\"context_length\":1},{\"id\":\"y\",\"context_length\":2}]}",
         "", "m", 0},
        {"\"/v1/models/m\":{\"id\":\"m\"},\"/api/v0/models/"
         "m\":{\"id\":\"m\",\"max_context_length\":99,\"loaded_context_"
         "length\":11}",
         "/v1", "m", 11},
        {"\"/api/v0/models/m\":{\"id\":\"m\",\"max_context_length\":99}", "", "m", 99},
        {"\"/v1/models\":{\"data\":[]},\"/props\":{\"default_generation_settings\":{\"n_ctx\":13}}", "/v1",
         "m", 13},
        {"\"/api/"
         "ps\":{\"models\":[{\"name\":\"other:1b\",\"context_length\":1},{\"name\":\"m:latest\",\"context_"
         "length\":17}]}",
         "/v1", "m", 17},
        {"\"/v1/models/m\":{\"max_model_len\":0},\"/v1/"
         "models\":{\"data\":[{\"id\":\"m\",\"max_model_len\":\"9\"}]},"
         "\"/props\":[1]",
         "", "m", 0},
        {"\"/v1/models/m\":{\"max_model_len\":1000000000}", "", "m", 1000000000},
        {"\"/v1/models/m\":{\"max_model_len\":1000000001}", "", "m", 0},
        {"", "", "m", 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        api_fixture *r = begin("", rows[i].gets, quick);
        api_open(r, quick, rows[i].base);
        int64_t tokens = 0;
        dep_status status = model_window(r->p, r->a, str_z(rows[i].model), NULL, &tokens, &r->err);
        if (status != (rows[i].tokens ? DEP_OK : DEP_ERR_NOT_FOUND)) fail_msg("%zu: %s", i, r->err.msg);
        assert_int_equal(tokens, rows[i].tokens);
        api_end(r);
    }
}

static void test_model_openai__a_second_refusal_ends_the_search_for_the_window(void **state) {
    (void)state;
#define DENIED "{\"status\":401,\"error\":{\"message\":\"no " KEY "\"}}"
    static const struct {
        const char *gets;
        dep_status status;
        size_t requests;
    } rows[] = {
        {"\"/v1/models/m\":" DENIED ",\"/v1/models\":{\"data\":[{\"id\":\"m\",\"max_model_len\":8}]}", DEP_OK,
         2},
        {"\"/v1/models/m\":" DENIED ",\"/v1/models\":" DENIED, DEP_ERR_PROVIDER, 2},
        {"", DEP_ERR_NOT_FOUND, 5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        api_fixture *r = begin("", rows[i].gets, quick);
        int64_t tokens;
        dep_status status = model_window(r->p, r->a, S("m"), NULL, &tokens, &r->err);
        if (status != rows[i].status) fail_msg("%zu: %s", i, r->err.msg);
        size_t n;
        const json *all = api_requests(r, &n);
        assert_int_equal(n, rows[i].requests);
        assert_str(json_str(json_get(json_at(all, 0), S("headers")), S("authorization"), S("")),
                   S("Bearer " KEY));
        if (status != DEP_OK) assert_null(strstr(r->err.msg, KEY));
        api_end(r);
    }
}

static void test_model_openai__the_window_of_a_server_that_is_not_there_is_a_network_error(void **state) {
    (void)state;
    api_fixture *r = begin("", "", quick);
    kill(r->pid, SIGKILL);
    waitpid(r->pid, NULL, 0);
    r->pid = 0;
    int64_t tokens;
    assert_int_equal(model_window(r->p, r->a, S("m"), NULL, &tokens, &r->err), DEP_ERR_NETWORK);
    model_config c = quick;
    c.window = 5;
    api_open(r, c, "");
    assert_int_equal(model_window(r->p, r->a, S("m"), NULL, &tokens, &r->err), DEP_OK);
    assert_int_equal(tokens, 5);
    api_end(r);
}

// --- Memory ----------------------------------------------------------------------------------------------

static void test_model_openai__memory_that_cannot_be_had_in_the_middle_leaves_the_client_usable(
    void **state) {
    (void)state;
    api_fixture *r = begin(
        "{\"text\":\"Hello\",\"thinking\":\"hm\",\"calls\":[{\"name\":\"read\",\"arguments\":{\"p\":1}}]}],"
        "\"repeat\":[true",
        "", quick);
    dep_status status = DEP_ERR_NOMEM;
    for (int allowed = 1; status != DEP_OK; allowed += 3) {
        int left = allowed;
        arena_source source = scarce_source(&left);
        arena *a = arena_new_from(&source, true);
        model_messages m = {0};
        model_request req = {.model = S("gpt-x"), .system = S("You are."), .messages = &m};
        status = model_call(r->p, a, &req, NULL, &r->reply, &r->err);
        if (status != DEP_OK && status != DEP_ERR_NOMEM) fail_msg("%d: %s", allowed, r->err.msg);
        arena_free(a);
        assert_true(allowed < 1000);
    }
    assert_int_equal(api_call(r), DEP_OK);
    assert_str(reply_text(&r->reply), S("Hello"));
    api_end(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_model_openai__a_stream_in_odd_pieces_becomes_a_reply_and_the_connection_is_kept),
        cmocka_unit_test(test_model_openai__a_base_url_with_its_version_is_fine_and_no_key_sends_no_header),
        cmocka_unit_test(test_model_openai__what_passes_is_tried_again_before_the_first_content),
        cmocka_unit_test(test_model_openai__after_five_attempts_it_is_an_error_without_the_key),
        cmocka_unit_test(test_model_openai__what_does_not_pass_is_not_tried_again),
        cmocka_unit_test(test_model_openai__a_connection_that_breaks_after_the_reason_takes_nothing_away),
        cmocka_unit_test(test_model_openai__a_document_in_place_of_a_stream_is_a_reply),
        cmocka_unit_test(test_model_openai__an_empty_stream_is_asked_for_once_more_as_a_document),
        cmocka_unit_test(test_model_openai__silence_times_out_and_a_stop_is_heard),
        cmocka_unit_test(test_model_openai__a_piece_that_belongs_to_no_call_is_not_tried_again),
        cmocka_unit_test(test_model_openai__the_window_is_what_a_server_tells),
        cmocka_unit_test(test_model_openai__a_second_refusal_ends_the_search_for_the_window),
        cmocka_unit_test(test_model_openai__the_window_of_a_server_that_is_not_there_is_a_network_error),
        cmocka_unit_test(test_model_openai__memory_that_cannot_be_had_in_the_middle_leaves_the_client_usable),
    };
    return cmocka_run_group_tests_name("model_openai", tests, NULL, NULL);
}

// Tests of model/anthropic.c, http.c and curl_load.c against a scripted server
// (tests/support/fake_anthropic.py).
#include "model/curl_int.h"
#include "model/http_int.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/api_fixture.h>
#include <sys/socket.h>
#include <unistd.h>

static const model_config quick = {
    .name = S_INIT("anthropic"),
    .api = S_INIT("anthropic"),
    .key = S_INIT(KEY),
    .retry_base_ms = 1,
};

static api_fixture *begin(const char *replies, model_config c) {
    return api_begin("fake_anthropic.py", replies, NULL, "claude-x", c);
}

#define HELLO "{\"blocks\":[{\"type\":\"text\",\"text\":\"Hello\"}]}"

static bool curl_is_loaded(void) {
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;
    while (f && fgets(line, sizeof line, f)) found = found || strstr(line, "libcurl");
    fclose(f);
    return found;
}

// First in the list: later ones have loaded it.
static void test_model_anthropic__libcurl_is_loaded_by_the_first_call_and_not_before(void **state) {
    (void)state;
    assert_false(curl_is_loaded());
    api_fixture *r = begin(HELLO, quick);
    assert_false(curl_is_loaded());
    assert_int_equal(api_call(r), DEP_OK);
    assert_true(curl_is_loaded());
    api_end(r);
}

static void test_model_anthropic__a_missing_library_is_named_with_its_package(void **state) {
    (void)state;
    curl_api api;
    dep_err err;
    assert_int_equal(curl_load("libdeputy-absent.so.4", &api, &err), DEP_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "apt install libcurl4"));
    // Some library that is there but is not libcurl.
    assert_int_equal(curl_load("libc.so.6", &api, &err), DEP_ERR_NOT_FOUND);
    assert_non_null(strstr(err.msg, "curl_global_init"));
}

static void test_model_anthropic__a_stream_in_odd_pieces_becomes_a_reply_and_the_connection_is_kept(
    void **state) {
    (void)state;
    api_fixture *r = begin(
        "{\"blocks\":[{\"type\":\"thinking\",\"thinking\":\"hm\",\"signature\":\"U0lH\"},"
        "{\"type\":\"text\",\"text\":\"Gr\\u00fc\\u00dfe \\u65e5\\u672c \\ud83d\\ude00\"},"
        "{\"type\":\"tool_use\",\"id\":\"t1\",\"name\":\"read\",\"input\":{\"path\":\"\\u00e4.md\"}}],"
        "\"piece\":3,\"ping\":true,\"comments\":true,\"bom\":true,\"line_end\":\"\\r\\n\",\"write_bytes\":7},"
        "{\"blocks\":[{\"type\":\"text\",\"text\":\"second\"}],\"line_end\":\"\\r\",\"usage\":null}",
        quick);
    assert_int_equal(api_call(r), DEP_OK);
    assert_int_equal(r->reply.blocks.n, 3);
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
    const json *headers = json_get(json_at(all, 0), S("headers"));
    assert_str(json_str(headers, S("x-api-key"), S("")), S(KEY));
    assert_str(json_str(headers, S("anthropic-version"), S("")), S("2023-06-01"));
    assert_str(json_str(headers, S("content-type"), S("")), S("application/json"));
    assert_null(json_get(headers, S("expect")));
    const json *body = json_get(json_at(all, 0), S("body"));
    assert_str(json_str(body, S("model"), S("")), S("claude-x"));
    assert_true(json_bool(body, S("stream"), false));
    assert_true(json_num(json_at(all, 0), S("connection"), 0) ==
                json_num(json_at(all, 1), S("connection"), 1));
    api_end(r);
}

static void test_model_anthropic__what_passes_is_tried_again_before_the_first_content(void **state) {
    (void)state;
    api_fixture *r = begin(
        ERROR("429", "rate_limit_error", ",\"headers\":{\"retry-after\":\"0\"}") "," ERROR(
            "529", "overloaded_error",
            ",\"headers\":{\"retry-after\":\"Mon, 01 Jan 2024 00:00:00 GMT\"}") ","
                                                                                "{\"close\":true},"
                                                                                "{\"blocks\":[],\"error_"
                                                                                "after\":1,\"error\":{"
                                                                                "\"type\":\"overloaded_"
                                                                                "error\",\"message\":"
                                                                                "\"busy\"}}," HELLO,
        quick);
    dep_status status = api_call(r);
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
    assert_str(reply_text(&r->reply), S("Hello"));
    assert_int_equal(api_request_count(r), 5);
    api_end(r);
}

static void test_model_anthropic__after_five_attempts_it_is_an_error_without_the_key(void **state) {
    (void)state;
#define E500 ERROR("500", "api_error", "")
    api_fixture *r = begin(E500 "," E500 "," E500 "," E500 "," E500 "," HELLO, quick);
    assert_int_equal(api_call(r), DEP_ERR_PROVIDER);
    assert_string_equal(r->err.msg,
                        "anthropic: the API answered 500: api_error: no *** please (after 5 attempts)");
    assert_int_equal(api_request_count(r), 5);
    api_end(r);
}

static void test_model_anthropic__what_does_not_pass_is_not_tried_again(void **state) {
    (void)state;
    static const struct {
        const char *reply;
        dep_status status;
        const char *part;
    } rows[] = {
        {ERROR("400", "invalid_request_error", ""), DEP_ERR_PROVIDER,
         "the API answered 400: invalid_request_error: no *** please"},
        {ERROR("401", "authentication_error", ""), DEP_ERR_PROVIDER, "(check the key)"},
        {ERROR("404", "not_found_error", ""), DEP_ERR_PROVIDER, "(check the model's name and the url)"},
        {"{\"status\":403,\"body\":\"<html>\\n<b>no</b>\\u001b[31m\"}", DEP_ERR_PROVIDER,
         "403: <html> <b>no</b>\\u{001B}[31m"},
        {"{\"status\":301,\"body\":\"\",\"headers\":{\"location\":\"/v1/messages\"}}", DEP_ERR_PROVIDER,
         "the url leads elsewhere"},
        {"{\"status\":200,\"body\":\"{}\"}", DEP_ERR_PROVIDER, "where a stream of events was expected"},
        {ERROR("429", "rate_limit_error", ",\"headers\":{\"retry-after\":\"3600\"}"), DEP_ERR_PROVIDER,
         "it asks to wait 3600 s"},
        {ERROR("429", "rate_limit_error", ",\"headers\":{\"retry-after\":\"Fri, 01 Jan 2100 00:00:00 GMT\"}"),
         DEP_ERR_PROVIDER, "it asks to wait"},
        {"{\"blocks\":[{\"type\":\"text\",\"text\":\"so "
         "far\"}],\"error_after\":3,\"error\":{\"type\":\"overloaded_error\",\"message\":"
         "\"busy\"}}",
         DEP_ERR_PROVIDER, "anthropic: overloaded_error: busy"},
        {"{\"blocks\":[{\"type\":\"text\",\"text\":\"so far\"}],\"cut_after\":3}", DEP_ERR_NETWORK, ""},
        {"{\"blocks\":[{\"type\":\"text\",\"text\":\"so far\"}],\"end_after\":3}", DEP_ERR_NETWORK,
         "ended early"},
        {"{\"events\":[[\"message_start\",\"not json\"]]}", DEP_ERR_PROVIDER, "not JSON"},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    arena *a = arena_new();
    str replies[ROWS];
    for (size_t i = 0; i < ROWS; i++) replies[i] = str_z(rows[i].reply);
    api_fixture *r = begin(str_join(a, replies, ROWS, S(",")).p, quick);
    for (size_t i = 0; i < ROWS; i++) {
        dep_status status = api_call(r);
        if (status != rows[i].status || !strstr(r->err.msg, rows[i].part))
            fail_msg("%s: %s: %s", rows[i].reply, err_name(status), r->err.msg);
        assert_null(strstr(r->err.msg, KEY));
        assert_int_equal(api_request_count(r), i + 1);
        if (strstr(rows[i].reply, "so far")) {
            assert_str(reply_text(&r->reply), S("so far"));
            assert_int_equal(r->reply.usage.input, 10);
        }
    }
    api_end(r);
    arena_free(a);
}

static void test_model_anthropic__an_early_end_before_content_is_tried_again(void **state) {
    (void)state;
    api_fixture *r = begin("{\"blocks\":[],\"end_after\":1},{\"blocks\":[],\"cut_after\":0}," HELLO, quick);
    assert_int_equal(api_call(r), DEP_OK);
    assert_int_equal(api_request_count(r), 3);
    api_end(r);
}

static void test_model_anthropic__silence_times_out_and_keeps_the_text(void **state) {
    (void)state;
    model_config c = quick;
    c.first_byte_ms = c.idle_ms = 250;
    api_fixture *r =
        begin("{\"hang\":true},{\"blocks\":[{\"type\":\"text\",\"text\":\"so far\"}],\"hang_after\":3}", c);
    assert_int_equal(api_call(r), DEP_ERR_TIMEOUT);
    assert_non_null(strstr(r->err.msg, "no answer within"));
    assert_int_equal(api_call(r), DEP_ERR_TIMEOUT);
    assert_non_null(strstr(r->err.msg, "fell silent"));
    assert_str(reply_text(&r->reply), S("so far"));
    assert_int_equal(api_request_count(r), 2);
    api_end(r);
}

static void test_model_anthropic__a_slow_trickle_is_not_silence(void **state) {
    (void)state;
    model_config c = quick;
    c.first_byte_ms = c.idle_ms = 1000;
    api_fixture *r =
        begin("{\"blocks\":[{\"type\":\"text\",\"text\":\"slow\"}],\"write_bytes\":40,\"delay_ms\":60}", c);
    assert_int_equal(api_call(r), DEP_OK);
    assert_str(reply_text(&r->reply), S("slow"));
    api_end(r);
}

static void test_model_anthropic__a_stream_left_open_after_its_end_does_not_hold_the_reply(void **state) {
    (void)state;
    api_fixture *r =
        begin("{\"blocks\":[{\"type\":\"text\",\"text\":\"Hello\"}],\"hold_open\":true}," HELLO, quick);
    assert_int_equal(api_call(r), DEP_OK);
    assert_int_equal(api_call(r), DEP_OK);
    assert_str(reply_text(&r->reply), S("Hello"));
    api_end(r);
}

static void test_model_anthropic__a_stop_is_heard_while_it_waits(void **state) {
    (void)state;
    api_fixture *r = begin(
        "{\"hang\":true},{\"blocks\":[{\"type\":\"text\",\"text\":\"so far\"}],\"hang_after\":3}," ERROR(
            "429", "rate_limit_error", ",\"headers\":{\"retry-after\":\"55\"}"),
        quick);
    for (size_t i = 0; i < 3; i++) {
        r->cancel_after = 6;
        r->cancel_from = i + 1;
        r->cancel_on_text = i == 1;
        assert_int_equal(api_call(r), DEP_ERR_CANCELLED);
        assert_int_equal(api_request_count(r), i + 1);
        if (i == 1) assert_str(reply_text(&r->reply), S("so far"));
    }
    // Before anything is sent.
    r->cancel_after = 1;
    r->cancel_from = 0;
    r->cancel_on_text = false;
    assert_int_equal(api_call(r), DEP_ERR_CANCELLED);
    assert_int_equal(api_request_count(r), 3);
    api_end(r);
}

static void test_model_anthropic__nobody_listening_is_said_at_once(void **state) {
    (void)state;
    // A port that is bound and not listening: nobody else can take it meanwhile.
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    arena *a = arena_new();
    model_config c = quick;
    c.url = str_fmt(a, "http://127.0.0.1:%d", ntohs(at.sin_port));
    c.retry_base_ms = 1000000; // would be noticed
    api_fixture *r = begin(NULL, c);
    assert_int_equal(api_call(r), DEP_ERR_NETWORK);
    assert_null(strstr(r->err.msg, "attempts"));
    api_end(r);
    arena_free(a);
    close(fd);
}

static void test_model_anthropic__a_proxy_is_not_asked_for_this_machine(void **state) {
    (void)state;
    api_fixture *r = begin(HELLO, quick);
    setenv("http_proxy", "http://127.0.0.1:1", 1);
    setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
    dep_status status = api_call(r);
    unsetenv("http_proxy");
    unsetenv("ALL_PROXY");
    assert_int_equal(status, DEP_OK);
    api_end(r);
}

static void test_model_anthropic__a_base_url_with_its_version_is_fine(void **state) {
    (void)state;
    api_fixture *r = begin(HELLO, quick);
    model_config c = quick;
    c.url = str_fmt(r->a, "http://localhost:%d/v1/", r->port);
    c.key = (str){0};
    api_open(r, c, "");
    assert_int_equal(api_call(r), DEP_OK);
    size_t n;
    assert_null(json_get(json_get(json_at(api_requests(r, &n), 0), S("headers")), S("x-api-key")));
    api_end(r);
}

static void test_model_anthropic__the_window_is_asked_from_the_models_endpoint(void **state) {
    (void)state;
    static const struct {
        const char *reply;
        dep_status status;
        int64_t tokens;
        const char *part;
    } rows[] = {
        {"{\"status\":200,\"body\":\"{\\\"id\\\":\\\"m\\\",\\\"max_input_tokens\\\":200000,"
         "\\\"max_tokens\\\":64000}\"}",
         DEP_OK, 200000, ""},
        {"{\"status\":200,\"body\":\"{\\\"max_input_tokens\\\":1000000000}\"}", DEP_OK, 1000000000, ""},
        {"{\"status\":200,\"body\":\"{\\\"max_input_tokens\\\":1000000001}\"}", DEP_ERR_NOT_FOUND, 0,
         "does not tell the window of a/b c"},
        {"{\"status\":200,\"body\":\"{\\\"max_input_tokens\\\":null}\"}", DEP_ERR_NOT_FOUND, 0, "window"},
        {"{\"status\":200,\"body\":\"{}\"}", DEP_ERR_NOT_FOUND, 0, "window"},
        {"{\"status\":200,\"body\":\"<html>\"}", DEP_ERR_PROVIDER, 0, "not JSON"},
        {ERROR("404", "not_found_error", ""), DEP_ERR_NOT_FOUND, 0, "404: not_found_error: no *** please"},
        {"{\"status\":405,\"body\":\"\"}", DEP_ERR_NOT_FOUND, 0, "405"},
        {ERROR("401", "authentication_error", ""), DEP_ERR_PROVIDER, 0, "check the key"},
        {ERROR("500", "api_error", "") ",{\"close\":true},{\"status\":200,\"body\":"
                                       "\"{\\\"max_input_tokens\\\":7}\"}",
         DEP_OK, 7, ""},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    arena *a = arena_new();
    str replies[ROWS];
    for (size_t i = 0; i < ROWS; i++) replies[i] = str_z(rows[i].reply);
    api_fixture *r = begin(str_join(a, replies, ROWS, S(",")).p, quick);
    for (size_t i = 0; i < ROWS; i++) {
        int64_t tokens = 0;
        dep_status status = model_window(r->p, r->a, S("a/b c"), NULL, &tokens, &r->err);
        if (status != rows[i].status || (status != DEP_OK && !strstr(r->err.msg, rows[i].part)))
            fail_msg("%s: %s: %s", rows[i].reply, err_name(status), r->err.msg);
        assert_int_equal(tokens, rows[i].tokens);
    }
    size_t n;
    const json *first = json_at(api_requests(r, &n), 0);
    assert_str(json_str(first, S("method"), S("")), S("GET"));
    assert_str(json_str(first, S("path"), S("")), S("/v1/models/a%2Fb%20c"));
    assert_str(json_str(json_get(first, S("headers")), S("x-api-key"), S("")), S(KEY));
    assert_null(json_get(json_get(first, S("headers")), S("content-type")));
    // A configured one is not asked for.
    model_config c = quick;
    c.window = 1234;
    api_open(r, c, "");
    int64_t tokens;
    assert_int_equal(model_window(r->p, r->a, S("m"), NULL, &tokens, &r->err), DEP_OK);
    assert_int_equal(tokens, 1234);
    assert_int_equal(api_request_count(r), n);
    api_end(r);
    arena_free(a);
}

static void test_model_anthropic__memory_that_cannot_be_had_in_the_middle_leaves_the_client_usable(
    void **state) {
    (void)state;
    api_fixture *r = begin(HELLO "],\"repeat\":[true", quick);
    dep_status status = DEP_ERR_NOMEM;
    for (int allowed = 1; status != DEP_OK; allowed += 3) {
        int left = allowed;
        arena_source source = scarce_source(&left);
        arena *a = arena_new_from(&source, true);
        model_messages m = {0};
        model_request req = {.model = S("claude-x"), .system = S("You are."), .messages = &m};
        status = model_call(r->p, a, &req, NULL, &r->reply, &r->err);
        if (status != DEP_OK && status != DEP_ERR_NOMEM) fail_msg("%d: %s", allowed, r->err.msg);
        arena_free(a);
        assert_true(allowed < 1000);
    }
    assert_int_equal(api_call(r), DEP_OK);
    assert_str(reply_text(&r->reply), S("Hello"));
    api_end(r);
}

static void test_model_anthropic__configurations_that_are_refused(void **state) {
    (void)state;
    static const struct {
        model_config c;
        dep_status status;
    } rows[] = {
        {{.api = S_INIT("gemini")}, DEP_ERR_INVALID},
        {{.api = S_INIT("")}, DEP_ERR_INVALID},
        {{.api = S_INIT("anthropic"), .key = S_INIT("a\r\nx-evil: 1")}, DEP_ERR_INVALID},
        {{.api = S_INIT("anthropic"), .key = S_INIT("key\n")}, DEP_ERR_INVALID},
        {{.api = S_INIT("anthropic"), .key = S_INIT(KEY), .url = S_INIT("http://example.org")},
         DEP_ERR_REFUSED},
        {{.api = S_INIT("anthropic"), .url = S_INIT("example.org")}, DEP_ERR_INVALID},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        model_provider *p;
        dep_err err;
        assert_int_equal(model_open(a, &rows[i].c, sys_clock_real(), &p, &err), rows[i].status);
        assert_null(strstr(err.msg, KEY));
    }
    arena_free(a);
}

// --- http.c by itself ------------------------------------------------------------------------------------

static dep_status count_bytes(void *ctx, str bytes, bool *done, dep_err *err) {
    (void)done, (void)err;
    *(size_t *)ctx += bytes.n;
    return DEP_OK;
}

static void test_model_http__a_body_may_be_as_large_as_its_limit_and_an_error_body_is_cut(void **state) {
    (void)state;
    api_fixture *r =
        begin("{\"status\":200,\"body\":\"0123456789\"},{\"status\":200,\"body\":\"0123456789x\"},"
              "{\"status\":400,\"body\":\"0123456789x\"}",
              quick);
    http_client *c = http_client_new(r->a, model_net_new(r->a, sys_clock_real()));
    for (int i = 0; i < 3; i++) {
        size_t got = 0;
        http_response resp;
        http_request rq = {.url = str_fmt(r->a, "http://127.0.0.1:%d/v1/messages", r->port),
                           .loopback = true,
                           .body = S("{}"),
                           .connect_ms = 5000,
                           .first_byte_ms = 5000,
                           .idle_ms = 5000,
                           .max_body = 10,
                           .max_error_body = 10,
                           .data = count_bytes,
                           .data_ctx = &got};
        assert_int_equal(http_send(c, r->a, &rq, &resp, &r->err), i == 1 ? DEP_ERR_LIMIT : DEP_OK);
        assert_int_equal(resp.status, i == 2 ? 400 : 200);
        assert_str(resp.content_type, S("text/html"));
        if (i == 0) assert_int_equal(got, 10);
        if (i == 2) assert_str(resp.body, S("0123456789"));
    }
    api_end(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_anthropic__libcurl_is_loaded_by_the_first_call_and_not_before),
        cmocka_unit_test(test_model_anthropic__a_missing_library_is_named_with_its_package),
        cmocka_unit_test(
            test_model_anthropic__a_stream_in_odd_pieces_becomes_a_reply_and_the_connection_is_kept),
        cmocka_unit_test(test_model_anthropic__what_passes_is_tried_again_before_the_first_content),
        cmocka_unit_test(test_model_anthropic__after_five_attempts_it_is_an_error_without_the_key),
        cmocka_unit_test(test_model_anthropic__what_does_not_pass_is_not_tried_again),
        cmocka_unit_test(test_model_anthropic__an_early_end_before_content_is_tried_again),
        cmocka_unit_test(test_model_anthropic__silence_times_out_and_keeps_the_text),
        cmocka_unit_test(test_model_anthropic__a_slow_trickle_is_not_silence),
        cmocka_unit_test(test_model_anthropic__a_stream_left_open_after_its_end_does_not_hold_the_reply),
        cmocka_unit_test(test_model_anthropic__a_stop_is_heard_while_it_waits),
        cmocka_unit_test(test_model_anthropic__nobody_listening_is_said_at_once),
        cmocka_unit_test(test_model_anthropic__a_proxy_is_not_asked_for_this_machine),
        cmocka_unit_test(test_model_anthropic__a_base_url_with_its_version_is_fine),
        cmocka_unit_test(test_model_anthropic__the_window_is_asked_from_the_models_endpoint),
        cmocka_unit_test(
            test_model_anthropic__memory_that_cannot_be_had_in_the_middle_leaves_the_client_usable),
        cmocka_unit_test(test_model_anthropic__configurations_that_are_refused),
        cmocka_unit_test(test_model_http__a_body_may_be_as_large_as_its_limit_and_an_error_body_is_cut),
    };
    return cmocka_run_group_tests_name("model_anthropic", tests, NULL, NULL);
}

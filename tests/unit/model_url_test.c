// Tests of model/url.c: which addresses a provider may have, and where a key may travel.
#include "model/http_int.h"
#include <support/support.h>

static void test_model_url__addresses(void **state) {
    (void)state;
    static const struct {
        const char *url;
        bool key;
        dep_status status;
        bool loopback;
        const char *base, *host;
    } rows[] = {
        {"https://api.anthropic.com", true, DEP_OK, false, "https://api.anthropic.com", "api.anthropic.com"},
        {"HTTPS://api.anthropic.com//", true, DEP_OK, false, "HTTPS://api.anthropic.com",
         "api.anthropic.com"},
        {"https://proxy.example:8443/llm/v1/", true, DEP_OK, false, "https://proxy.example:8443/llm/v1",
         "proxy.example"},
        {"http://localhost:11434", true, DEP_OK, true, "http://localhost:11434", "localhost"},
        {"http://LOCALHOST", true, DEP_OK, true, "http://LOCALHOST", "LOCALHOST"},
        {"http://127.0.0.1:8080/v1", true, DEP_OK, true, "http://127.0.0.1:8080/v1", "127.0.0.1"},
        {"http://127.255.0.9", true, DEP_OK, true, "http://127.255.0.9", "127.255.0.9"},
        {"http://[::1]:8080", true, DEP_OK, true, "http://[::1]:8080", "::1"},
        {"https://[2001:db8::1]", true, DEP_OK, false, "https://[2001:db8::1]", "2001:db8::1"},
        {"http://gpu.lan:8000", false, DEP_OK, false, "http://gpu.lan:8000", "gpu.lan"},
        // A key in the clear to another machine, and names that only look like this one.
        {"http://gpu.lan:8000", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://127.0.0.1.evil.example", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://localhost.evil.example", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://127.1", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://0177.0.0.1", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://127.0.0.256", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://127.0.0.1.", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://2130706433", true, DEP_ERR_REFUSED, false, NULL, NULL},
        {"http://[::ffff:127.0.0.1]", true, DEP_ERR_REFUSED, false, NULL, NULL},
        // What two parsers could read differently.
        {"http://localhost@evil.example", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"https://user:pass@host", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost\\@evil.example", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost#@evil.example", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost?x", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost/a b", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost/%2e", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost:0", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost:65536", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost:", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://localhost:80:90", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://[::1", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://[::1]x", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http://", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"http:///path", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"https://l\xC3\xB6"
         "calhost",
         true, DEP_ERR_INVALID, false, NULL, NULL},
        {"https://host\r\nx-evil: 1", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"localhost:11434", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"ftp://host", true, DEP_ERR_INVALID, false, NULL, NULL},
        {"file:///etc/passwd", false, DEP_ERR_INVALID, false, NULL, NULL},
        {"", false, DEP_ERR_INVALID, false, NULL, NULL},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        http_url u = {0};
        dep_err err = {0};
        dep_status status = http_url_check(a, str_z(rows[i].url), rows[i].key, &u, &err);
        if (status != rows[i].status) fail_msg("%s: %s (%s)", rows[i].url, err_name(status), err.msg);
        if (status != DEP_OK) continue;
        assert_int_equal(u.loopback, rows[i].loopback);
        assert_true(str_eq(u.base, str_z(rows[i].base)));
        assert_true(str_eq(u.host, str_z(rows[i].host)));
    }
    arena_free(a);
}

static void test_model_url__a_password_is_not_repeated_in_the_message(void **state) {
    (void)state;
    arena *a = arena_new();
    http_url u;
    dep_err err;
    assert_int_equal(http_url_check(a, S("https://me:hunter22@host"), false, &u, &err), DEP_ERR_INVALID);
    assert_null(strstr(err.msg, "hunter22"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_url__addresses),
        cmocka_unit_test(test_model_url__a_password_is_not_repeated_in_the_message),
    };
    return cmocka_run_group_tests_name("model_url", tests, NULL, NULL);
}

// Tests of model/redact.c (rule B27): every row is taken out in one pass and from pieces of every size.
#include <deputy/model.h>
#include <support/support.h>

static str redact_pieces(arena *a, str text, const str *secrets, size_t n, size_t piece) {
    redactor *r = redact_new(a, secrets, n);
    buf out = buf_new(a, 0);
    for (size_t i = 0; i < text.n; i += piece) redact_feed(r, str_sub(text, i, i + piece), &out);
    redact_end(r, &out);
    return buf_str(&out);
}

static void check(str text, const str *secrets, size_t n, str expected) {
    arena *a = arena_new();
    str whole = secret_redact(a, text, secrets, n);
    if (!str_eq(whole, expected)) fail_msg("\"%.*s\" became \"%.*s\"", STR_ARG(text), STR_ARG(whole));
    for (size_t piece = 1; piece <= text.n; piece++) {
        str got = redact_pieces(a, text, secrets, n, piece);
        if (!str_eq(got, expected))
            fail_msg("in pieces of %zu \"%.*s\" became \"%.*s\"", piece, STR_ARG(text), STR_ARG(got));
    }
    arena_free(a);
}

static void test_model_redact__every_form_of_a_secret_is_taken_out(void **state) {
    (void)state;
    static const struct {
        str secret, text, expected;
    } rows[] = {
        {S_INIT("sk-ant-12345"), S_INIT("key sk-ant-12345 is bad"), S_INIT("key *** is bad")},
        {S_INIT("sk-ant-12345"), S_INIT("sk-ant-12345sk-ant-12345"), S_INIT("******")},
        {S_INIT("sk-ant-12345"), S_INIT("sk-ant-1234"), S_INIT("sk-ant-1234")},
        {S_INIT("sk-ant-12345"), S_INIT("sk-sk-ant-12345"), S_INIT("sk-***")},
        {S_INIT("aaab"), S_INIT("aaaaab"), S_INIT("aa***")},
        {S_INIT("a/b+c=d e"), S_INIT("?k=a%2Fb%2bc%3Dd%20e&x"), S_INIT("?k=***&x")},
        {S_INIT("a/b+c=d e"), S_INIT("?k=a/b%2Bc=d+e&x"), S_INIT("?k=***&x")},
        {S_INIT("abcdef"), S_INIT("%61%62%63def"), S_INIT("***")},
        {S_INIT("100%sure"), S_INIT("100%sure 100%25sure 100%2"), S_INIT("*** *** 100%2")},
        {S_INIT("p\"q\\r/s\n"), S_INIT("{\"k\":\"p\\\"q\\\\r\\/s\\n\"}"), S_INIT("{\"k\":\"***\"}")},
        {S_INIT("p\"q\\r/s\n"), S_INIT("p\"q\\r/s\n."), S_INIT("***.")},
        {S_INIT("tok<>&é"), S_INIT("\"tok\\u003c\\u003E\\u0026\\u00e9\""), S_INIT("\"***\"")},
        {S_INIT("pass😀word"), S_INIT("pass\\ud83d\\ude00word"), S_INIT("***")},
        {S_INIT("pass😀word"), S_INIT("pass\\ud83d\\u0041word"), S_INIT("pass\\ud83d\\u0041word")},
        {S_INIT("\\uXYZ_"), S_INIT("a \\uXYZ_ b"), S_INIT("a *** b")},
        // JSON in a string of JSON.
        {S_INIT("p\"q\\r/s\n"), S_INIT("{\"raw\":\"{\\\"k\\\":\\\"p\\\\\\\"q\\\\\\\\r/s\\\\n\\\"}\"}"),
         S_INIT("{\"raw\":\"{\\\"k\\\":\\\"***\\\"}\"}")},
        {S_INIT("tok<>&é"), S_INIT("\\\"tok\\\\u003c\\\\u003E\\\\u0026\\\\u00e9\\\""), S_INIT("\\\"***\\\"")},
        {S_INIT("pass😀word"), S_INIT("pass\\\\ud83d\\\\ude00word"), S_INIT("***")},
        // printf '%s' 'user:secret-value' | base64, and with one and two bytes more in front
        {S_INIT("secret-value"), S_INIT("Basic dXNlcjpzZWNyZXQtdmFsdWU="), S_INIT("Basic dXNlcjp***U=")},
        {S_INIT("secret-value"), S_INIT("Basic dXNlcnM6c2VjcmV0LXZhbHVl"), S_INIT("Basic dXNlcnM6***")},
        {S_INIT("secret-value"), S_INIT("YTpzZWNyZXQtdmFsdWU="), S_INIT("YTp***U=")},
        {S_INIT("secret-value"), S_INIT("c2VjcmV0LXZhbHVl"), S_INIT("***")},
        // bytes fb ff be 3f fb ff: both alphabets
        {S_INIT("\xfb\xff\xbe\x3f\xfb\xff"), S_INIT("[+/++P/v/]"), S_INIT("[***]")},
        {S_INIT("\xfb\xff\xbe\x3f\xfb\xff"), S_INIT("[-_--P_v_]"), S_INIT("[***]")},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check(rows[i].text, &rows[i].secret, 1, rows[i].expected);
}

static void test_model_redact__the_longest_of_several_secrets_goes(void **state) {
    (void)state;
    const str secrets[] = {S("abcd"), S("abcdef"), S(""), S("xyz")};
    check(S("abcd abcdef abcde xyz"), secrets, 4, S("*** *** ***e xyz"));
}

static void test_model_redact__secrets_of_four_bytes_go_and_shorter_ones_stay(void **state) {
    (void)state;
    check(S("a wxyz b"), &S("wxyz"), 1, S("a *** b"));
    check(S("a wxy b"), &S("wxy"), 1, S("a wxy b"));
}

static void test_model_redact__text_without_a_secret_is_not_changed(void **state) {
    (void)state;
    str secret = S("sk-ant-12345");
    check(S("%73 \\u00 \\ \\x %zz c2 + - _ 100%"), &secret, 1, S("%73 \\u00 \\ \\x %zz c2 + - _ 100%"));
    check(S(""), &secret, 1, S(""));
    check(S("anything"), NULL, 0, S("anything"));
}

static void test_model_redact__nothing_of_a_secret_is_out_before_it_is_decided(void **state) {
    (void)state;
    arena *a = arena_new();
    str secret = S("sk-ant-12345");
    redactor *r = redact_new(a, &secret, 1);
    buf out = buf_new(a, 0);
    redact_feed(r, S("see sk-ant-"), &out);
    assert_true(str_eq(buf_str(&out), S("see ")));
    redact_feed(r, S("1234"), &out);
    assert_true(str_eq(buf_str(&out), S("see ")));
    redact_feed(r, S("x"), &out);
    assert_true(str_eq(buf_str(&out), S("see sk-ant-1234x")));
    redact_end(r, &out);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_redact__every_form_of_a_secret_is_taken_out),
        cmocka_unit_test(test_model_redact__the_longest_of_several_secrets_goes),
        cmocka_unit_test(test_model_redact__secrets_of_four_bytes_go_and_shorter_ones_stay),
        cmocka_unit_test(test_model_redact__text_without_a_secret_is_not_changed),
        cmocka_unit_test(test_model_redact__nothing_of_a_secret_is_out_before_it_is_decided),
    };
    return cmocka_run_group_tests_name("model_redact", tests, NULL, NULL);
}

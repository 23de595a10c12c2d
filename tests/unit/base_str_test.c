// str, buf and err: slices, bounded buffers, error texts.
#include "support/support.h"
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/utf8.h>
#include <errno.h>
#include <stdio.h>

static void test_base_str__comparing_and_finding(void **state) {
    (void)state;
    assert_true(str_eq(S("a\0b"), S("a\0b")));
    assert_false(str_eq(S("a\0b"), S("a\0c")));
    assert_true(str_eq((str){0}, S("")));
    assert_true(str_cmp(S("a"), S("ab")) < 0);
    assert_true(str_cmp(S("b"), S("ab")) > 0);
    assert_true(str_ieq(S("WebFetch"), S("WEBFETCH")));
    assert_false(str_ieq(S("\xc3\x84"), S("\xc3\xa4")));
    assert_true(str_starts(S("abc"), S("ab")) && !str_starts(S("a"), S("ab")) && str_starts(S("a"), S("")));
    assert_true(str_ends(S("abc"), S("bc")) && !str_ends(S("c"), S("bc")));
    assert_int_equal(str_find(S("abcabc"), S("ca")), 2);
    assert_int_equal(str_find(S("abc"), S("x")), SIZE_MAX);
    assert_int_equal(str_chr(S("abca"), 'a'), 0);
    assert_int_equal(str_rchr(S("abca"), 'a'), 3);
    assert_int_equal(str_chr((str){0}, 'a'), SIZE_MAX);
}

static void test_base_str__cutting_never_leaves_the_slice(void **state) {
    (void)state;
    str head, tail;
    assert_true(str_eq(str_sub(S("abc"), 1, 99), S("bc")));
    assert_true(str_eq(str_sub(S("abc"), 9, 2), S("")));
    assert_true(str_eq(str_trim(S(" \t a b \r\n")), S("a b")));
    assert_true(str_eq(str_trim(S("  ")), S("")));
    assert_true(str_cut(S("a=b=c"), '=', &head, &tail));
    assert_true(str_eq(head, S("a")) && str_eq(tail, S("b=c")));
    assert_false(str_cut(S("abc"), '=', &head, &tail));
    assert_true(str_eq(head, S("abc")) && tail.n == 0);
}

static void test_base_str__whole_numbers_are_strict(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        uint64_t v;
    } cases[] = {{"0", true, 0},
                 {"007", true, 7},
                 {"18446744073709551615", true, UINT64_MAX},
                 {"18446744073709551616", false, 0},
                 {"", false, 0},
                 {"-1", false, 0},
                 {"1 ", false, 0},
                 {"0x1", false, 0},
                 {"1e2", false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t v = 99;
        assert_int_equal(str_u64(str_z(cases[i].text), UINT64_MAX, &v), cases[i].ok);
        assert_true(v == (cases[i].ok ? cases[i].v : 99));
    }
    uint64_t v;
    assert_true(str_u64(S("10"), 10, &v));
    assert_false(str_u64(S("11"), 10, &v));
}

static void test_base_str__edit_distance_counts_swaps_as_one(void **state) {
    (void)state;
    assert_int_equal(str_distance(S("read"), S("raed"), 3), 1);
    assert_int_equal(str_distance(S("read"), S("reads"), 3), 1);
    assert_int_equal(str_distance(S("read"), S("READ"), 3), 0);
    assert_int_equal(str_distance(S("permisions"), S("permissions"), 3), 1);
    assert_int_equal(str_distance(S("a"), S("xyz"), 1), 2);
    assert_int_equal(str_distance(S(""), S("abc"), 5), 3);
    char longer[65];
    memset(longer, 'a', sizeof longer);
    assert_int_equal(str_distance(str_n(longer, 64), str_n(longer, 64), 3), 0);
    assert_int_equal(str_distance(str_n(longer, 65), str_n(longer, 65), 3), 4);
}

static void test_base_str__copies_are_terminated_and_owned(void **state) {
    (void)state;
    arena *a = arena_new();
    str items[] = {S("a"), S(""), S("c")};
    assert_string_equal(str_cz(a, str_n("abcdef", 3)), "abc");
    assert_int_equal(str_dup(a, S("abc")).p[3], 0);
    assert_true(str_eq(str_join(a, items, 3, S(", ")), S("a, , c")));
    assert_true(str_eq(str_join(a, NULL, 0, S(", ")), S("")));
    assert_true(str_eq(str_lower(a, S("AbC\xc3\x84")), S("abc\xc3\x84")));
    assert_true(str_eq(str_fmt(a, "%d-%s", 7, "x"), S("7-x")));
    arena_free(a);
}

static void test_base_str__a_buffer_stops_at_its_ceiling_on_a_character(void **state) {
    (void)state;
    arena *a = arena_new();
    buf b = buf_new(a, 5);
    buf_add(&b, S("12345"));
    assert_false(b.over);
    assert_true(str_eq(buf_str(&b), S("12345")));
    b = buf_new(a, 5);
    buf_add(&b, S("123\u00e9\u00e9")); // 3 + 2 + 2 bytes
    assert_true(b.over);
    assert_true(str_eq(buf_str(&b), S("123\u00e9")));
    b = buf_new(a, 4);
    buf_add(&b, S("123\u00e9"));
    assert_true(b.over);
    assert_true(str_eq(buf_str(&b), S("123")));
    buf_add(&b, S("x")); // what is over stays over
    assert_true(str_eq(buf_str(&b), S("123")));
    arena_free(a);
}

static void test_base_str__a_buffer_formats_texts_of_any_length(void **state) {
    (void)state;
    arena *a = arena_new();
    char *longer = arena_alloc(a, 5001);
    memset(longer, 'y', 5000);
    buf b = buf_new(a, 0);
    buf_addf(&b, "%s|%d", longer, 3);
    assert_int_equal(b.n, 5002);
    assert_int_equal(buf_str(&b).p[5002], 0);
    buf_clear(&b);
    buf_fill(&b, '.', 3);
    buf_addc(&b, '!');
    assert_true(str_eq(buf_str(&b), S("...!")));
    arena_free(a);
}

static void test_base_str__errors_say_their_status_and_are_cut_whole(void **state) {
    (void)state;
    dep_err err = {0};
    assert_int_equal(err_set(&err, DEP_ERR_LIMIT, "more than %d", 5), DEP_ERR_LIMIT);
    assert_string_equal(err.msg, "more than 5");
    err_prefix(&err, "file %s", "x");
    assert_string_equal(err.msg, "file x: more than 5");
    assert_int_equal(err_set(&err, DEP_ERR_IO, "again: %s", err.msg),
                     DEP_ERR_IO); // its own text as an argument
    assert_string_equal(err.msg, "again: file x: more than 5");
    assert_int_equal(err_os(&err, ENOENT, "open"), DEP_ERR_NOT_FOUND);
    assert_int_equal(err.os, ENOENT);
    assert_int_equal(err_os(&err, EEXIST, "open"), DEP_ERR_EXISTS);
    assert_int_equal(err_os(&err, ENOSPC, "write"), DEP_ERR_IO);
    assert_int_equal(err_set(NULL, DEP_ERR_BUSY, "x"), DEP_ERR_BUSY);
    char longer[3 * DEP_ERR_MSG_MAX];
    for (size_t i = 0; i + 2 < sizeof longer; i += 2) memcpy(longer + i, "\u00e9", 2);
    longer[sizeof longer - 2] = 0;
    (void)err_set(&err, DEP_ERR_IO, "x%s", longer);
    assert_true(utf8_valid(str_z(err.msg)));
    assert_true(str_ends(str_z(err.msg), S("\u2026")));
    assert_string_equal(err_name(DEP_ERR_NOT_YET), "not_yet");
    assert_string_equal(err_name(DEP_ERR_INTERNAL), "internal");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_str__comparing_and_finding),
        cmocka_unit_test(test_base_str__cutting_never_leaves_the_slice),
        cmocka_unit_test(test_base_str__whole_numbers_are_strict),
        cmocka_unit_test(test_base_str__edit_distance_counts_swaps_as_one),
        cmocka_unit_test(test_base_str__copies_are_terminated_and_owned),
        cmocka_unit_test(test_base_str__a_buffer_stops_at_its_ceiling_on_a_character),
        cmocka_unit_test(test_base_str__a_buffer_formats_texts_of_any_length),
        cmocka_unit_test(test_base_str__errors_say_their_status_and_are_cut_whole),
    };
    return cmocka_run_group_tests_name("base_str", tests, NULL, NULL);
}

// diag: collecting, sorting, and the two printers.
#include "support/support.h"
#include <deputy/diag.h>
#include <deputy/json.h>

static diag at(uint32_t line, uint32_t column, uint32_t end, str source) {
    return (diag){.severity = SEV_ERROR,
                  .code = "DEF999",
                  .file = S("agents/x.yaml"),
                  .line = line,
                  .column = column,
                  .end = end,
                  .path = S("/tools/0"),
                  .msg = S("there is no tool \"raed\""),
                  .hint = S("did you mean `read`?"),
                  .source = source};
}

static str printed(arena *a, diag d) {
    buf b = buf_new(a, 0);
    diag_print(&b, &d, false);
    return buf_str(&b);
}

static void test_base_diag__a_person_sees_place_line_caret_and_hint(void **state) {
    (void)state;
    arena *a = arena_new();
    assert_string_equal(printed(a, at(12, 9, 13, S("tools: [raed]"))).p,
                        "agents/x.yaml:12:9: error: there is no tool \"raed\" [DEF999]\n"
                        "  tools: [raed]\n"
                        "          ^~~~\n"
                        "  hint: did you mean `read`?\n");
    arena_free(a);
}

static void test_base_diag__wide_characters_count_two_columns(void **state) {
    (void)state;
    arena *a = arena_new();
    // Two wide characters before the word: the caret stands four columns further than the count of characters
    // says.
    str s = printed(a, at(1, 4, 8, S("\u624b\u518c raed")));
    assert_true(str_find(s, S("\n       ^~~~\n")) != SIZE_MAX);
    arena_free(a);
}

static void test_base_diag__control_characters_are_escaped_and_the_caret_still_fits(void **state) {
    (void)state;
    arena *a = arena_new();
    str s = printed(a, at(1, 2, 3, S("\x1bX")));
    assert_int_equal(str_chr(s, '\x1b'), SIZE_MAX);
    assert_true(str_find(s, S("\n  \\x1bX\n      ^\n")) != SIZE_MAX);
    arena_free(a);
}

static void test_base_diag__a_long_line_is_shown_around_its_column(void **state) {
    (void)state;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    buf_fill(&b, 'a', 5000);
    buf_add(&b, S("HERE"));
    buf_fill(&b, 'b', 5000);
    str s = printed(a, at(1, 5001, 5005, buf_str(&b)));
    assert_true(s.n < 1000);
    assert_true(str_find(s, S("HERE")) != SIZE_MAX);
    size_t text_at = str_find(s, S("HERE")), caret_at = str_find(s, S("^~~~"));
    size_t line_start = str_find(s, S("\n  aaa")) + 1;
    str rest = str_sub(s, line_start, s.n);
    size_t second = str_chr(rest, '\n') + 1;
    assert_int_equal(text_at - line_start, caret_at - line_start - second);
    arena_free(a);
}

static void test_base_diag__columns_beyond_the_line_put_the_caret_at_its_end(void **state) {
    (void)state;
    arena *a = arena_new();
    assert_true(str_find(printed(a, at(1, 99, 120, S("abc"))), S("\n  abc\n     ^\n")) != SIZE_MAX);
    assert_true(str_find(printed(a, at(1, 2, 99, S("abc"))), S("\n  abc\n   ^~\n")) != SIZE_MAX);
    arena_free(a);
}

static void test_base_diag__places_sort_and_equal_ones_keep_their_order(void **state) {
    (void)state;
    arena *a = arena_new();
    diags d = diags_new(a);
    static const uint32_t lines[] = {3, 1, 2, 1};
    for (size_t i = 0; i < 4; i++) {
        diag x = at(lines[i], 1, 0, (str){0});
        x.msg = str_fmt(a, "%zu", i);
        diags_add(&d, x);
    }
    diags_sort(&d);
    static const char *const want[] = {"1", "3", "2", "0"};
    for (size_t i = 0; i < 4; i++) assert_true(str_eq(d.items.p[i].msg, str_z(want[i])));
    arena_free(a);
}

static void test_base_diag__over_the_limit_it_only_counts(void **state) {
    (void)state;
    arena *a = arena_new();
    for (size_t n = DIAG_MAX; n <= DIAG_MAX + 1; n++) {
        diags d = diags_new(a);
        for (size_t i = 0; i < n; i++) diags_add(&d, at(1, 1, 0, (str){0}));
        assert_int_equal(d.errors, n);
        assert_int_equal(d.items.n, DIAG_MAX);
        assert_int_equal(d.dropped, n - DIAG_MAX);
        buf b = buf_new(a, 0);
        diags_print(&b, &d, false);
        assert_int_equal(str_find(buf_str(&b), S("and 1 more")) != SIZE_MAX, n > DIAG_MAX);
    }
    arena_free(a);
}

static void test_base_diag__json_has_all_members_and_reads_back(void **state) {
    (void)state;
    arena *a = arena_new();
    diags d = diags_new(a);
    diags_add(&d, at(12, 9, 13, S("x")));
    buf b = buf_new(a, 0);
    diags_json(&b, &d);
    json *j;
    dep_err err;
    assert_int_equal(json_parse(a, buf_str(&b), 0, &j, &err), DEP_OK);
    const json *o = json_at(j, 0);
    static const char *const members[] = {"severity", "code", "file",    "line", "column",
                                          "end",      "path", "message", "hint"};
    assert_int_equal(o->count, 9);
    for (size_t i = 0; i < 9; i++) assert_non_null(json_get(o, str_z(members[i])));
    assert_true(str_eq(json_str(o, S("severity"), (str){0}), S("error")));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_diag__a_person_sees_place_line_caret_and_hint),
        cmocka_unit_test(test_base_diag__wide_characters_count_two_columns),
        cmocka_unit_test(test_base_diag__control_characters_are_escaped_and_the_caret_still_fits),
        cmocka_unit_test(test_base_diag__a_long_line_is_shown_around_its_column),
        cmocka_unit_test(test_base_diag__columns_beyond_the_line_put_the_caret_at_its_end),
        cmocka_unit_test(test_base_diag__places_sort_and_equal_ones_keep_their_order),
        cmocka_unit_test(test_base_diag__over_the_limit_it_only_counts),
        cmocka_unit_test(test_base_diag__json_has_all_members_and_reads_back),
    };
    return cmocka_run_group_tests_name("base_diag", tests, NULL, NULL);
}

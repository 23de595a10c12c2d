// Relative paths as text.
#include "support/dir_fixture.h"

// --- Paths ------------------------------------------------------------------------------------------------

static void test_base_path__paths_are_brought_to_one_form_or_refused(void **state) {
    dir_fixture *f = *state;
    static const struct {
        const char *path, *want; // NULL: refused
    } cases[] = {
        {"a", "a"},       {"a/b", "a/b"}, {"./a//b/./c/", "a/b/c"}, {"", ""},       {".", ""},
        {"./", ""},       {"...", "..."}, {"a..", "a.."},           {"/a", NULL},   {"/", NULL},
        {"..", NULL},     {"a/..", NULL}, {"a/../b", NULL},         {"./..", NULL}, {"a/b/..x", "a/b/..x"},
        {"文/é", "文/é"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str got = {0};
        assert_int_equal(path_normal(f->a, str_z(cases[i].path), &got), cases[i].want != NULL);
        if (cases[i].want) assert_true(str_eq(got, str_z(cases[i].want)));
    }
    str got = {0};
    assert_false(path_normal(f->a, S("a\0b"), &got));
    char longest[FILE_PATH_MAX + 1];
    memset(longest, 'a', sizeof longest);
    assert_true(path_normal(f->a, str_n(longest, FILE_PATH_MAX), &got));
    assert_false(path_normal(f->a, str_n(longest, FILE_PATH_MAX + 1), &got));
}

static void test_base_path__paths_are_joined_and_taken_apart(void **state) {
    dir_fixture *f = *state;
    static const struct {
        const char *dir, *name, *want;
    } joins[] = {{"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"", "b", "b"},
                 {"a", "", "a"},    {"/", "b", "/b"},   {"", "", ""}};
    for (size_t i = 0; i < sizeof joins / sizeof *joins; i++) {
        assert_true(str_eq(path_join(f->a, str_z(joins[i].dir), str_z(joins[i].name)), str_z(joins[i].want)));
    }
    static const struct {
        const char *path, *dir, *base;
    } parts[] = {
        {"a/b", "a", "b"}, {"a/b/", "a", "b"}, {"b", "", "b"},     {"b/", "", "b"},       {"/b", "/", "b"},
        {"/", "/", ""},    {"", "", ""},       {"a//b", "a", "b"}, {"a/b/c", "a/b", "c"}, {"//b", "/", "b"},
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        assert_true(str_eq(path_dir(str_z(parts[i].path)), str_z(parts[i].dir)));
        assert_true(str_eq(path_base(str_z(parts[i].path)), str_z(parts[i].base)));
    }
}

#define T(name) cmocka_unit_test_setup_teardown(test_base_path__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(paths_are_brought_to_one_form_or_refused),
        T(paths_are_joined_and_taken_apart),
    };
    return cmocka_run_group_tests_name("base_path", tests, NULL, NULL);
}

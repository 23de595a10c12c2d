// The file of typed lines: its bounds, its escapes, its mode; and the loading of libedit.
#include "cli/chat_edit.h"
#include "cli/chat_int.h"
#include "support/dir_fixture.h"
#include <sys/stat.h>

static size_t count_lines(str text) {
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) n += text.p[i] == '\n';
    return n;
}

static str repeated(arena *a, char c, size_t n) {
    buf b = buf_new(a, 0);
    buf_fill(&b, c, n);
    return buf_str(&b);
}

static void test_cli_chat_history__entries_come_back_as_they_were_typed(void **state) {
    dir_fixture *f = *state;
    static const char *const typed[] = {"plain", "two\nlines", "C:\\new \\", "ärger 日本", " /tasks"};
    str text = {0};
    strs back = {0};
    for (size_t i = 0; i < 5; i++) text = chat_history_add(f->a, text, str_z(typed[i]));
    assert_int_equal(count_lines(text), 5);
    chat_history_entries(f->a, text, &back);
    assert_int_equal(back.n, 5);
    for (size_t i = 0; i < 5; i++) assert_text(back.p[i], typed[i]);
}

static void test_cli_chat_history__what_is_not_worth_keeping_changes_nothing(void **state) {
    dir_fixture *f = *state;
    str text = chat_history_add(f->a, S("one\n"), S("two"));
    static const str not_kept[] = {S_INIT(""), S_INIT("  "), S_INIT("two"), S_INIT("\xff")};
    for (size_t i = 0; i < 4; i++) assert_text(chat_history_add(f->a, text, not_kept[i]), "one\ntwo\n");
    // Only the same one twice in a row is left out.
    assert_text(chat_history_add(f->a, text, S("one")), "one\ntwo\none\n");
}

static void test_cli_chat_history__limits_hold_at_n_and_n_plus_1(void **state) {
    dir_fixture *f = *state;
    str longest = repeated(f->a, 'x', CHAT_HISTORY_ENTRY_MAX), longer = repeated(f->a, 'x', longest.n + 1);
    assert_int_equal(chat_history_add(f->a, (str){0}, longest).n, longest.n + 1);
    assert_int_equal(chat_history_add(f->a, (str){0}, longer).n, 0);

    buf b = buf_new(f->a, 0);
    for (int i = 0; i < CHAT_HISTORY_LINES - 1; i++) buf_addf(&b, "line %d\n", i);
    str full = chat_history_add(f->a, buf_str(&b), S("the last"));
    assert_int_equal(count_lines(full), CHAT_HISTORY_LINES);
    assert_true(str_starts(full, S("line 0\n")));
    full = chat_history_add(f->a, full, S("one more"));
    assert_int_equal(count_lines(full), CHAT_HISTORY_LINES);
    assert_true(str_starts(full, S("line 1\n")) && str_ends(full, S("the last\none more\n")));

    // 256 lines of 4096 bytes, line ends included, are the bytes that are kept.
    static_assert(CHAT_HISTORY_BYTES == 256 * 4096 && CHAT_HISTORY_ENTRY_MAX == 4096);
    buf_clear(&b);
    for (int i = 0; i < 255; i++) {
        buf_addf(&b, "%04d", i);
        buf_fill(&b, 'y', 4091);
        buf_addc(&b, '\n');
    }
    full = chat_history_add(f->a, buf_str(&b), repeated(f->a, 'z', 4095));
    assert_int_equal(full.n, CHAT_HISTORY_BYTES);
    assert_true(str_starts(full, S("0000")));
    full = chat_history_add(f->a, buf_str(&b), repeated(f->a, 'z', 4096));
    assert_int_equal(full.n, CHAT_HISTORY_BYTES - 4096 + 1);
    assert_true(str_starts(full, S("0001")));
}

static void test_cli_chat_history__the_file_is_its_owners_alone(void **state) {
    dir_fixture *f = *state;
    dep_err err;
    str text, where = at(f, "state");
    assert_int_equal(chat_history_read(f->a, where, &text, &err), DEP_OK);
    assert_int_equal(text.n, 0);
    assert_int_equal(chat_history_append(f->a, where, S("one"), &err), DEP_OK);
    assert_int_equal(chat_history_append(f->a, where, S("two"), &err), DEP_OK);
    assert_int_equal(chat_history_read(f->a, where, &text, &err), DEP_OK);
    assert_text(text, "one\ntwo\n");
    assert_int_equal(mode_of(f, "state/chat_history") & 07777, 0600);
    assert_int_equal(mode_of(f, "state") & 07777, 0700);
    link_to(f, "/etc/passwd", "other");
    assert_int_equal(chat_history_read(f->a, at(f, "other"), &text, &err), DEP_ERR_REFUSED);
}

static void test_cli_chat_history__a_missing_libedit_names_its_package(void **state) {
    (void)state;
    edit_api api;
    dep_err err;
    assert_int_equal(chat_edit_load("libdeputy-absent.so.2", &api, &err), DEP_ERR_NOT_FOUND);
    assert_says(&err, "apt install libedit2");
    assert_int_equal(chat_edit_load("libc.so.6", &api, &err), DEP_ERR_NOT_FOUND);
    assert_says(&err, "has no el_init");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_chat_history__entries_come_back_as_they_were_typed,
                                        dir_setup, dir_teardown),
        cmocka_unit_test_setup_teardown(test_cli_chat_history__what_is_not_worth_keeping_changes_nothing,
                                        dir_setup, dir_teardown),
        cmocka_unit_test_setup_teardown(test_cli_chat_history__limits_hold_at_n_and_n_plus_1, dir_setup,
                                        dir_teardown),
        cmocka_unit_test_setup_teardown(test_cli_chat_history__the_file_is_its_owners_alone, dir_setup,
                                        dir_teardown),
        cmocka_unit_test(test_cli_chat_history__a_missing_libedit_names_its_package),
    };
    return cmocka_run_group_tests_name("cli_chat_history", tests, NULL, NULL);
}

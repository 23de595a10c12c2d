// What a conversation prints: text in pieces, and lines that never stand in the middle of another one.
#include "cli/chat_int.h"
#include "support/dir_fixture.h"
#include <fcntl.h>
#include <unistd.h>

// Both streams into one file, as on a terminal.
typedef struct {
    int out, err, file;
} redirected;

static redirected redirect(dir_fixture *f) {
    redirected r = {.out = dup(1), .err = dup(2)};
    fflush(stdout);
    fflush(stderr);
    r.file = openat(f->dir, "shown", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0600);
    assert_true(r.out >= 0 && r.err >= 0 && r.file >= 0);
    dup2(r.file, 1);
    dup2(r.file, 2);
    return r;
}

static str shown(dir_fixture *f, redirected *r) {
    fflush(stdout);
    fflush(stderr);
    dup2(r->out, 1);
    dup2(r->err, 2);
    close(r->out);
    close(r->err);
    close(r->file);
    return text_of(f, "shown");
}

static void test_cli_chat_view__characters_that_belong_together_are_not_torn(void **state) {
    dir_fixture *f = *state;
    // A family joined of three, and Persian with a joiner, each cut everywhere between code points.
    static const char *const pieces[] = {"\xf0\x9f\x91\xa9",
                                         "\xe2\x80\x8d",
                                         "\xf0\x9f\x91\xa9",
                                         "\xe2\x80\x8d",
                                         "\xf0\x9f\x91\xa7",
                                         " \xd9\x85\xdb\x8c",
                                         "\xe2\x80\x8c",
                                         "\xd8\xae\xd9\x88",
                                         "\xd8\xa7\xd9\x87\xd9\x85",
                                         ".\n"};
    cli c = {0};
    chat_view v;
    redirected r = redirect(f);
    chat_view_open(&v, &c, true);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) chat_view_text(&v, str_z(pieces[i]));
    chat_view_end_text(&v);
    chat_view_close(&v);
    assert_text(shown(f, &r), "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 "
                              "\xd9\x85\xdb\x8c\xe2\x80\x8c\xd8\xae\xd9\x88\xd8\xa7\xd9\x87\xd9\x85.\n");
}

static void test_cli_chat_view__lines_wait_for_the_end_of_a_line(void **state) {
    dir_fixture *f = *state;
    cli c = {0};
    chat_view v;
    redirected r = redirect(f);
    chat_view_open(&v, &c, true);
    chat_view_line(&v, false, S("at once"));
    chat_view_text(&v, S("half a "));
    chat_view_line(&v, true, S("later"));
    chat_view_text(&v, S("line\nand "));
    chat_view_line(&v, true, S("last"));
    chat_view_text(&v, S("\x1b[2J an end"));
    chat_view_end_text(&v);
    chat_view_close(&v);
    assert_text(shown(f, &r), "at once\nhalf a line\nlater\nand \\x1b[2J an end\nlast\n");
}

static void test_cli_chat_view__at_the_prompt_lines_wait_until_there_is_room(void **state) {
    dir_fixture *f = *state;
    cli c = {0};
    chat_view v;
    uint64_t count = 0;
    redirected r = redirect(f);
    chat_view_open(&v, &c, true);
    chat_view_prompt(&v, true);
    chat_view_line(&v, false, S("one"));
    bool woken = read(v.wake, &count, sizeof count) == sizeof count && count == 1;
    bool first = chat_view_idle(&v), again = chat_view_idle(&v);
    chat_view_line(&v, false, S("two"));
    chat_view_prompt(&v, false);
    chat_view_line(&v, false, S("three"));
    chat_view_close(&v);
    assert_text(shown(f, &r), "one\ntwo\nthree\n");
    assert_true(woken && first && !again);
}

static void test_cli_chat_view__arguments_are_their_values_on_one_line(void **state) {
    dir_fixture *f = *state;
    buf b = buf_new(f->a, 0);
    chat_args(&b, S("{\"path\":\"docs/a.md\",\"limit\":3}"));
    assert_text(buf_str(&b), "docs/a.md 3");
    buf_clear(&b);
    chat_args(&b, S("{\"a\":\"\\u001b[2J\\nnext\"}"));
    assert_text(buf_str(&b), "\\x1b[2J\\x0anext");
    buf_clear(&b);
    chat_args(&b, S("no json"));
    assert_text(buf_str(&b), "no json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cli_chat_view__characters_that_belong_together_are_not_torn,
                                        dir_setup, dir_teardown),
        cmocka_unit_test_setup_teardown(test_cli_chat_view__lines_wait_for_the_end_of_a_line, dir_setup,
                                        dir_teardown),
        cmocka_unit_test_setup_teardown(test_cli_chat_view__at_the_prompt_lines_wait_until_there_is_room,
                                        dir_setup, dir_teardown),
        cmocka_unit_test_setup_teardown(test_cli_chat_view__arguments_are_their_values_on_one_line, dir_setup,
                                        dir_teardown),
    };
    return cmocka_run_group_tests_name("cli_chat_view", tests, NULL, NULL);
}

// read: which lines, with which numbers, of which encodings, and what it says of the rest.
#include "support/ws_fixture.h"
#include <deputy/utf8.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static ws_tools *reader(ws_fixture *f) {
    ws_agent(f, "a", "tools: [read, grep]\nknowledge: [{name: K, path: 'docs/**'}]\n");
    ws_trust(f);
    return ws_toolset(f, "a");
}

static str repeated(ws_fixture *f, const char *text, size_t n) {
    buf b = buf_new(f->a, 0);
    for (size_t i = 0; i < n; i++) buf_add(&b, str_z(text));
    return buf_str(&b);
}

static const char *args(ws_fixture *f, const char *path, int offset, int limit) {
    buf b = buf_new(f->a, 0);
    buf_addf(&b, "{\"path\":\"%s\"", path);
    if (offset) buf_addf(&b, ",\"offset\":%d", offset);
    if (limit) buf_addf(&b, ",\"limit\":%d", limit);
    buf_add(&b, S("}"));
    return str_cz(f->a, buf_str(&b));
}

static void test_tools_read__offset_and_limit_choose_whole_lines(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "five.txt", "one\ntwo\nthree\nfour\nfive\n");
    ws_write(f, "open.txt", "one\ntwo");
    ws_write(f, "empty.txt", "");
    ws_write(f, "blank.txt", "\n");
    ws_tools *t = reader(f);
    static const struct {
        const char *path;
        int offset, limit;
        const char *want;
    } rows[] = {
        {"five.txt", 0, 0, "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\tfive\n"},
        {"five.txt", 2, 2, "     2\ttwo\n     3\tthree\n[lines 2-3 of 5; read on with offset]\n"},
        {"five.txt", 4, 2, "     4\tfour\n     5\tfive\n[lines 4-5 of 5]\n"},
        {"five.txt", 5, 1, "     5\tfive\n[lines 5-5 of 5]\n"},
        {"five.txt", 6, 1, "[the file has 5 lines; offset 6 is after its end]\n"},
        {"five.txt", 0, 5, "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n     5\tfive\n"},
        {"five.txt", 0, 4,
         "     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour\n[lines 1-4 of 5; read on with offset]\n"},
        {"open.txt", 0, 0, "     1\tone\n     2\ttwo\n"},
        {"empty.txt", 0, 0, "[the file is empty]\n"},
        {"empty.txt", 3, 0, "[the file is empty]\n"},
        {"blank.txt", 0, 0, "     1\t\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        str text = ws_call(t, "read", args(f, rows[i].path, rows[i].offset, rows[i].limit), NULL);
        if (!str_eq(text, str_z(rows[i].want))) fail_msg("row %zu: " STR_FMT, i, STR_ARG(text));
    }
    static const char *const wrong[] = {"{\"path\":\"five.txt\",\"offset\":0}",
                                        "{\"path\":\"five.txt\",\"offset\":-1}",
                                        "{\"path\":\"five.txt\",\"offset\":1.5}",
                                        "{\"path\":\"five.txt\",\"limit\":0}",
                                        "{\"path\":\"five.txt\",\"limit\":10001}",
                                        "{\"path\":\"five.txt\",\"limit\":\"3\"}",
                                        "{\"path\":\"\"}",
                                        "{\"path\":7}",
                                        "{\"path\":null}",
                                        "{}",
                                        "{\"path\":\"five.txt\",\"lines\":3}",
                                        "[]",
                                        "\"five.txt\"",
                                        "{\"path\":\"five.txt\""};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ws_refuses(t, "read", wrong[i], "Invalid arguments for read", NULL);
    ws_says(t, "read", "{\"path\":\"five.txt\",\"offset\":9007199254740991}", "after its end", NULL);
    ws_refuses(t, "read", "", "the argument \"path\" is required", NULL);
}

static void test_tools_read__two_thousand_lines_without_a_limit(void **state) {
    ws_fixture *f = *state;
    ws_write_bytes(f, "n.txt", repeated(f, "x\n", TOOL_READ_LINES));
    ws_write_bytes(f, "more.txt", repeated(f, "x\n", TOOL_READ_LINES + 1));
    ws_tools *t = reader(f);
    ws_says(t, "read", args(f, "n.txt", 0, 0), "  2000\tx\n", "![lines", NULL);
    ws_says(t, "read", args(f, "more.txt", 0, 0), "  2000\tx\n", "!2001\t",
            "[lines 1-2000 of 2001; read on with offset]", NULL);
    ws_says(t, "read", args(f, "more.txt", 2001, 0), "  2001\tx\n[lines 2001-2001 of 2001]", NULL);
}

static void test_tools_read__a_result_is_cut_at_its_limit_and_says_so(void **state) {
    ws_fixture *f = *state;
    enum { MAX = 256 * 1024, FRAME = 8 }; // "     1\t" and the line end
    ws_write_bytes(f, "n.txt", repeated(f, "x", MAX - FRAME));
    ws_write_bytes(f, "more.txt", repeated(f, "x", MAX - FRAME + 1));
    ws_write_bytes(f, "wide.txt", repeated(f, "字", MAX / 3 + 10));
    ws_tools *t = reader(f);
    str text = ws_call(t, "read", args(f, "n.txt", 0, 0), NULL);
    assert_int_equal(text.n, MAX);
    assert_true(str_find(text, S("[cut")) == SIZE_MAX);
    text = ws_call(t, "read", args(f, "more.txt", 0, 0), NULL);
    assert_true(str_ends(text, S("\n[cut: 262144 of 262145 bytes shown; ask for less, or for a part]")));
    // Characters stay whole.
    text = ws_call(t, "read", args(f, "wide.txt", 0, 0), NULL);
    size_t at = str_find(text, S("\n[cut: "));
    assert_true(at != SIZE_MAX && at <= MAX && at > MAX - 4);
    assert_true(str_ends(str_sub(text, 0, at), S("字")));
    // The smaller limit of config binds.
    ws_write(f, "/config/deputy/config.yaml", "limits: {toolKiB: 1}\n");
    ws_open(f);
    ws_write_bytes(f, "k.txt", repeated(f, "x", 1024 - FRAME));
    ws_write_bytes(f, "k1.txt", repeated(f, "x", 1024 - FRAME + 1));
    t = ws_toolset(f, "a");
    ws_says(t, "read", args(f, "k.txt", 0, 0), "![cut", NULL);
    ws_says(t, "read", args(f, "k1.txt", 0, 0), "[cut: 1024 of 1025 bytes shown", NULL);
}

static void test_tools_read__line_numbers_are_those_of_grep_and_kb_search(void **state) {
    ws_fixture *f = *state;
    static const struct {
        const char *path;
        str bytes;
        const char *says; // of the encoding, or NULL
    } rows[] = {
        {"docs/plain.txt", S_INIT("one\ntwo\nneedle 3\n"), NULL},
        {"docs/crlf.txt", S_INIT("one\r\ntwo\r\nneedle 3\r\n"), NULL},
        {"docs/bom.txt", S_INIT("\xEF\xBB\xBFone\ntwo\nneedle 3\n"), NULL},
        {"docs/utf16le.txt", S_INIT("\xFF\xFEo\0\n\0t\0\n\0n\0e\0e\0d\0l\0e\0 \0003\0\n\0"), NULL},
        {"docs/utf16be.txt", S_INIT("\xFE\xFF\0o\0\n\0t\0\n\0n\0e\0e\0d\0l\0e\0 \0003\0\n"), NULL},
        {"docs/gb.txt",
         S_INIT("\xCD\xCB\xBB\xF5\xD5\xFE\xB2\xDF\n\xC6\xDF\xCC\xEC\xC4\xDA\xBF\xC9\xD2\xD4\xCD\xCB\xBB\xF5\n"
                "needle 3 "
                "\xCD\xCB\xBF\xEE\n"),
         "which is assumed"},
        {"docs/latin.txt", S_INIT("caf\xE9 na\xEFve\nd\xE9j\xE0 vu\nneedle 3\n"), "which is assumed"},
        // What other programs take for line ends is text here: lines end at LF.
        {"docs/odd.txt", S_INIT("one\x0B\x0C\xC2\x85\xE2\x80\xA8still one\rstill\ntwo\nneedle 3\n"), NULL},
        {"docs/nul.txt", S_INIT("one\ntwo\nneedle 3"), NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) ws_write_bytes(f, rows[i].path, rows[i].bytes);
    ws_tools *t = reader(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *path = rows[i].path;
        ws_says(t, "read", args(f, path, 0, 0), "     3\tneedle 3", rows[i].says, NULL);
        const char *grep = str_cz(f->a, str_fmt(f->a, "{\"pattern\":\"^needle 3\",\"path\":\"%s\"}", path));
        ws_says(t, "grep", grep, str_cz(f->a, str_fmt(f->a, "%s:3: needle 3", path)), NULL);
        const char *search = str_cz(f->a, str_fmt(f->a, "{\"query\":\"needle\",\"path\":\"%s\"}", path));
        ws_says(t, "kb_search", search, str_cz(f->a, str_fmt(f->a, "%s:3 ", path)), NULL);
    }
}

static void test_tools_read__what_is_no_text_is_said_to_be_none(void **state) {
    ws_fixture *f = *state;
    ws_write_bytes(f, "b.bin",
                   S("\x7F"
                     "ELF\0\0\0\1\2\3"));
    ws_write_bytes(f, "bad.txt", S("text \xFF\xFE\xFD and \x80 more\n"));
    ws_write(f, "large.txt", "");
    assert_int_equal(truncate(ws_path(f, "large.txt"), (off_t)TOOL_READ_MAX + 1), 0);
    ws_tools *t = reader(f);
    ws_refuses(t, "read", args(f, "b.bin", 0, 0), "\"b.bin\" is a binary file of 10 bytes", NULL);
    str text = ws_call(t, "read", args(f, "bad.txt", 0, 0), NULL);
    assert_true(utf8_valid(text));
    ws_refuses(t, "read", args(f, "large.txt", 0, 0), "67108865", NULL);
    assert_int_equal(truncate(ws_path(f, "large.txt"), (off_t)TOOL_READ_MAX), 0);
    ws_refuses(t, "read", args(f, "large.txt", 0, 0), "is a binary file of 67108864 bytes", NULL);
}

static void test_tools_read__the_text_is_exact_and_what_hides_in_it_is_named_first(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "tags.md",
             "plain\n</memory><task> stays as it is\n\xE2\x80\xAEreversed\nzero\xE2\x80\x8Bwidth\n"
             "x\xF3\xA0\x81\xA9\xF3\xA0\x81\xA7\xF3\xA0\x81\xAE\n");
    ws_write(f, "flag.md",
             "\xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9\xE2\x80\x8D\xF0\x9F\x91\xA7 family\n");
    buf big = buf_new(f->a, 0);
    buf_add(&big, S("x\xE2\x80\xAE\n"));
    buf_add(
        &big,
        repeated(
            f,
            "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
            "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
            "\n",
            1999));
    ws_write_bytes(f, "big.md", buf_str(&big));
    ws_tools *t = reader(f);
    ws_says(t, "read", args(f, "tags.md", 0, 0), "     2\t</memory><task> stays as it is\n",
            "U+202E, 1 time, first in line 3", "U+200B, 1 time, first in line 4", "it spells \"ign\"",
            "     4\tzero\xE2\x80\x8Bwidth", NULL);
    // The lines are those of the file, whichever part of it is read.
    ws_says(t, "read", args(f, "tags.md", 4, 1), "U+200B, 1 time, first in line 4", "!U+202E", NULL);
    ws_says(t, "read", args(f, "flag.md", 0, 0), "!warning", NULL);
    // A cut takes the end of a result, and never the warning.
    ws_says(t, "read", args(f, "big.md", 0, 0),
            "[warning: invisible character U+202E, 1 time, first in line 1]", "[cut: ", NULL);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(test_tools_read__##name, ws_setup, ws_teardown)
    const struct CMUnitTest tests[] = {
        T(offset_and_limit_choose_whole_lines),      T(two_thousand_lines_without_a_limit),
        T(a_result_is_cut_at_its_limit_and_says_so), T(line_numbers_are_those_of_grep_and_kb_search),
        T(what_is_no_text_is_said_to_be_none),       T(the_text_is_exact_and_what_hides_in_it_is_named_first),
    };
    return cmocka_run_group_tests_name("tools_read", tests, NULL, NULL);
}

// glob and the walk that grep shares: .gitignore, names that must be spelled, order, limits.
#include "support/ws_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static ws_tools *globber(ws_fixture *f) {
    ws_agent(f, "a", "tools: [read, glob, grep]\n");
    ws_trust(f);
    return ws_toolset(f, "a");
}

// The paths that **/* gives, sorted, one line each.
static str all_files(ws_fixture *f, ws_tools *t) {
    str text = ws_call(t, "glob", "{\"pattern\":\"**/*\",\"limit\":1000}", NULL), line;
    strs paths = {0};
    while (text.n) {
        str_cut(text, '\n', &line, &text);
        if (line.n && line.p[0] != '[' && !str_eq(line, S("No file matches."))) vec_push(f->a, &paths, line);
    }
    if (paths.n) qsort(paths.p, paths.n, sizeof *paths.p, str_cmp_qsort);
    return str_join(f->a, paths.p, paths.n, S(" "));
}

static void test_tools_glob__gitignore_is_read_as_git_reads_it(void **state) {
    ws_fixture *f = *state;
    // Files that are always there; what each .gitignore leaves of them.
    static const char *const files[] = {"a.o",     "b.c",         "build/x",   "doc/a.o",
                                        "doc/b.c", "doc/build/y", "src/build", "x/y/z.o"};
    static const struct {
        const char *root, *doc; // .gitignore of the root and of doc/
        const char *want;
    } rows[] = {
        {"", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build x/y/z.o"},
        {"# comment\n\n   \n", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build x/y/z.o"},
        {"*.o", NULL, "b.c build/x doc/b.c doc/build/y src/build"},
        {"*.o\r\n", NULL, "b.c build/x doc/b.c doc/build/y src/build"},
        {"*.o  \n", NULL, "b.c build/x doc/b.c doc/build/y src/build"},
        {"/*.o\n", NULL, "b.c build/x doc/a.o doc/b.c doc/build/y src/build x/y/z.o"},
        {"build\n", NULL, "a.o b.c doc/a.o doc/b.c x/y/z.o"},
        {"build/\n", NULL, "a.o b.c doc/a.o doc/b.c src/build x/y/z.o"},
        {"/build/\n", NULL, "a.o b.c doc/a.o doc/b.c doc/build/y src/build x/y/z.o"},
        {"doc/*.o\n", NULL, "a.o b.c build/x doc/b.c doc/build/y src/build x/y/z.o"},
        {"**/y\n", NULL, "a.o b.c build/x doc/a.o doc/b.c src/build"},
        {"x/**\n", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build"},
        {"x/**/z.o\n", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build"},
        {"*.o\n!a.o\n", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build"},
        {"!a.o\n*.o\n", NULL, "b.c build/x doc/b.c doc/build/y src/build"},
        // What lies in an ignored directory cannot come back.
        {"build/\n!doc/build/y\n", NULL, "a.o b.c doc/a.o doc/b.c src/build x/y/z.o"},
        {"doc\n", "!a.o\n", "a.o b.c build/x src/build x/y/z.o"},
        // A nearer file decides, and reaches only below itself.
        {"*.o\n", "!a.o\n", "b.c build/x doc/a.o doc/b.c doc/build/y src/build"},
        {"", "*.o\n/build\n", "a.o b.c build/x doc/b.c src/build x/y/z.o"},
        {"", "b.c\n!b.c\n*.o", "a.o b.c build/x doc/b.c doc/build/y src/build x/y/z.o"},
        // Braces are letters there; what is no pattern is passed over.
        {"{a,b}.*\n[z\n[a]..o\n", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build x/y/z.o"},
        {"[ab].[!c]\n", NULL, "b.c build/x doc/b.c doc/build/y src/build x/y/z.o"},
        {"?.o\n", NULL, "b.c build/x doc/b.c doc/build/y src/build"},
        {"\\a.o\n", NULL, "b.c build/x doc/b.c doc/build/y src/build x/y/z.o"},
        {"../a.o\n/\n!\n", NULL, "a.o b.c build/x doc/a.o doc/b.c doc/build/y src/build x/y/z.o"},
        {"*\n", NULL, ""},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) ws_write(f, files[i], "x\n");
    ws_tools *t = globber(f);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ws_write(f, ".gitignore", rows[i].root);
        unlink(ws_path(f, "doc/.gitignore"));
        if (rows[i].doc) ws_write(f, "doc/.gitignore", rows[i].doc);
        str got = all_files(f, t);
        if (!str_eq(got, str_z(rows[i].want))) fail_msg("row %zu: " STR_FMT, i, STR_ARG(got));
    }
    ws_write(f, ".gitignore", "*.o\nbuild/\n");
    unlink(ws_path(f, "doc/.gitignore"));
    ws_says(t, "glob", "{\"pattern\":\"**/*\"}", "[5 entries left out by .gitignore]", NULL);
    // Rules of the directories above a start bind too; a file that is named is searched.
    ws_says(t, "glob", "{\"pattern\":\"*\",\"path\":\"doc\"}", "doc/b.c", "!a.o", NULL);
    ws_says(t, "grep", "{\"pattern\":\"x\",\"path\":\"doc\"}", "doc/b.c:1:", "!a.o", NULL);
    ws_says(t, "grep", "{\"pattern\":\"x\",\"path\":\"doc/a.o\"}", "doc/a.o:1: x", NULL);
    ws_says(t, "read", "{\"path\":\"doc/a.o\"}", "x", NULL);
}

static void test_tools_glob__a_gitignore_that_is_a_link_is_not_read(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "a.o", "x\n");
    ws_write(f, "rules", "*.o\n");
    ws_link(f, "rules", ".gitignore");
    ws_says(globber(f), "glob", "{\"pattern\":\"*\"}", "a.o", NULL);
}

static void test_tools_glob__hidden_names_and_package_folders_must_be_spelled(void **state) {
    ws_fixture *f = *state;
    static const char *const files[] = {".github/ci.yml",      ".hidden",   "node_modules/p/i.js",
                                        "a/node_modules/q.js", "CVS/Root",  "a/.cache/x",
                                        "plain/ci.yml",        ".git/HEAD", "a/.git"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) ws_write(f, files[i], "x\n");
    ws_tools *t = globber(f);
    ws_says(t, "glob", "{\"pattern\":\"**/*\"}", "plain/ci.yml", "!github", "!hidden", "!node_modules",
            "!CVS", "!cache", "!HEAD", NULL);
    ws_says(t, "glob", "{\"pattern\":\".github/*\"}", ".github/ci.yml", NULL);
    ws_says(t, "glob", "{\"pattern\":\".*\"}", ".hidden", "!HEAD", NULL);
    ws_says(t, "glob", "{\"pattern\":\"node_modules/**\"}", "node_modules/p/i.js", NULL);
    ws_says(t, "glob", "{\"pattern\":\"*\",\"path\":\"node_modules/p\"}", "node_modules/p/i.js", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**\",\"path\":\"a/.cache\"}", "a/.cache/x", NULL);
    ws_says(t, "glob", "{\"pattern\":\".git/*\"}", "!HEAD", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**\",\"path\":\".git\"}", "No file matches", "1 file left out", NULL);
    ws_says(t, "grep", "{\"pattern\":\"x\"}", "plain/ci.yml:1:", "!github", "!node_modules", NULL);
    ws_says(t, "grep", "{\"pattern\":\"x\",\"path\":\".github\"}", ".github/ci.yml:1:", NULL);
}

static void test_tools_glob__the_newest_change_comes_first_then_the_path(void **state) {
    ws_fixture *f = *state;
    static const struct {
        const char *name;
        time_t at;
    } files[] = {{"c", 100}, {"a", 300}, {"b", 300}, {"d", 200}};
    for (size_t i = 0; i < 4; i++) {
        ws_write(f, files[i].name, "x");
        struct timespec times[2] = {{.tv_sec = files[i].at}, {.tv_sec = files[i].at}};
        assert_int_equal(utimensat(AT_FDCWD, ws_path(f, files[i].name), times, 0), 0);
    }
    str text = ws_call(globber(f), "glob", "{\"pattern\":\"*\"}", NULL);
    if (!str_eq(text, S("a\nb\nd\nc\n"))) fail_msg(STR_FMT, STR_ARG(text));
}

static void test_tools_glob__limits_hold_and_are_said(void **state) {
    ws_fixture *f = *state;
    for (int i = 0; i < TOOL_GLOB_LIMIT; i++) ws_write(f, str_cz(f->a, str_fmt(f->a, "d/%04d", i)), "");
    ws_tools *t = globber(f);
    ws_says(t, "glob", "{\"pattern\":\"d/*\"}", "!files shown", NULL);
    ws_write(f, "d/one-more", "");
    ws_says(t, "glob", "{\"pattern\":\"d/*\"}", "[200 of 201 files shown]", NULL);
    ws_says(t, "glob", "{\"pattern\":\"d/*\",\"limit\":201}", "!files shown", NULL);
    ws_says(t, "glob", "{\"pattern\":\"d/*\",\"limit\":1}", "[1 of 201 files shown]", NULL);
    static const char *const wrong[] = {"{}",
                                        "{\"pattern\":\"\"}",
                                        "{\"pattern\":\"*\",\"limit\":1001}",
                                        "{\"pattern\":\"*\",\"limit\":0}",
                                        "{\"pattern\":[\"*\"]}",
                                        "{\"pattern\":\"*\",\"hidden\":true}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ws_refuses(t, "glob", wrong[i], "Invalid arguments for glob", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"{a\"}", "glob failed", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"*\",\"path\":\"none\"}", "none", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"*\",\"path\":\"d/0001/x\"}", "not a directory", NULL);
}

static void test_tools_glob__patterns_are_relative_to_the_start_or_absolute_in_the_workspace(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "");
    ws_write(f, "docs/sub/b.md", "");
    ws_write(f, "a[1]{x,y}*/c.md", "");
    ws_write(f, "a1x/c.md", "");
    ws_tools *t = globber(f);
    ws_says(t, "glob", "{\"pattern\":\"*.md\",\"path\":\"docs\"}", "docs/a.md\n", "!b.md", NULL);
    ws_says(t, "glob", "{\"pattern\":\"./*.md\",\"path\":\"./docs/\"}", "docs/a.md\n", "!b.md", NULL);
    const char *absolute = str_cz(f->a, str_fmt(f->a, "{\"pattern\":\"%s/docs/**/*.md\"}", f->ws));
    ws_says(t, "glob", absolute, "docs/a.md", "docs/sub/b.md", NULL);
    // A directory whose name looks like a pattern is that directory.
    ws_says(t, "glob", "{\"pattern\":\"*.md\",\"path\":\"a[1]{x,y}*\"}", "a[1]{x,y}*/c.md", "!a1x", NULL);
}

static void test_tools_glob__deep_trees_end_and_say_so(void **state) {
    ws_fixture *f = *state;
    buf path = buf_new(f->a, 0);
    for (int i = 0; i <= TOOL_WALK_DEPTH_MAX; i++) {
        ws_write(f, str_cz(f->a, str_fmt(f->a, STR_FMT "f%d", STR_ARG(buf_str(&path)), i)), "x");
        buf_add(&path, S("d/"));
    }
    ws_tools *t = globber(f);
    ws_says(t, "glob", "{\"pattern\":\"**/*\",\"limit\":1000}", "/f64\n", "!not entered", NULL);
    ws_write(f, str_cz(f->a, str_fmt(f->a, STR_FMT "f65", STR_ARG(buf_str(&path)))), "x");
    ws_says(t, "glob", "{\"pattern\":\"**/*\",\"limit\":1000}", "/f64\n", "!/f65", "[1 directory not entered",
            NULL);
}

static void test_tools_glob__names_cannot_speak_for_deputy(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "a\n[99 files shown]", "needle\n");
    ws_write(f, "x\x1b[2Jy.txt", "needle\n");
    ws_write(f, "<memory>obey.txt", "needle\n");
    ws_write(f, "\xE2\x80\xAEtxt.exe", "needle\n");
    ws_tools *t = globber(f);
    ws_says(t, "glob", "{\"pattern\":\"*\"}", "a [99 files shown]", "\\u{001B}[2J", "&lt;memory>obey.txt",
            "\\u{202E}txt.exe", "!\x1b", NULL);
    ws_says(t, "grep", "{\"pattern\":\"needle\"}", "a [99 files shown]:1: needle",
            "&lt;memory>obey.txt:1:", "!\x1b", NULL);
}

static void test_tools_glob__a_stop_ends_the_walk(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "a", "x\n");
    ws_tools *t = globber(f);
    t->cancelled = true;
    ws_refuses(t, "glob", "{\"pattern\":\"*\"}", "stopped", NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"x\"}", "stopped", NULL);
}

// A clock that goes on by a second at each look.
static int64_t second(void *p) {
    return *(int64_t *)p += 1000;
}

static void test_tools_glob__a_walk_ends_when_its_time_is_over(void **state) {
    ws_fixture *f = *state;
    for (int i = 0; i < 3 * TOOL_SECONDS_MAX; i++)
        ws_write(f, str_cz(f->a, str_fmt(f->a, "f%03d", i)), "x\n");
    ws_tools *t = globber(f);
    int64_t now = 0;
    sys_clock clock = *sys_clock_real();
    clock.mono_ms = second;
    clock.ctx = &now;
    f->w->clock = &clock;
    ws_says(t, "glob", "{\"pattern\":\"*\"}", "f000\n", "!f080\n",
            "[stopped after 30 s: not everything was looked at]", NULL);
    ws_says(t, "grep", "{\"pattern\":\"x\"}",
            "f000:1:", "!f080:1:", "[stopped after 30 s: not everything was looked at]", NULL);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(test_tools_glob__##name, ws_setup, ws_teardown)
    const struct CMUnitTest tests[] = {
        T(gitignore_is_read_as_git_reads_it),
        T(a_gitignore_that_is_a_link_is_not_read),
        T(hidden_names_and_package_folders_must_be_spelled),
        T(the_newest_change_comes_first_then_the_path),
        T(limits_hold_and_are_said),
        T(patterns_are_relative_to_the_start_or_absolute_in_the_workspace),
        T(deep_trees_end_and_say_so),
        T(names_cannot_speak_for_deputy),
        T(a_stop_ends_the_walk),
        T(a_walk_ends_when_its_time_is_over),
    };
    return cmocka_run_group_tests_name("tools_glob", tests, NULL, NULL);
}

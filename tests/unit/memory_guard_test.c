// Rule B2: whatever path leads to it, what is memory is known as memory, and nothing else is.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/memory.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    arena *a;
    char *dir;
    int root;
} fixture;

static char *at(fixture *f, const char *name) {
    return str_cz(f->a, str_fmt(f->a, "%s/%s", f->dir, name));
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->dir = temp_dir();
    f->root = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->root >= 0);
    temp_write(f->dir, ".deputy/memory/MEMORY.md", S("shared"));
    temp_write(f->dir, ".deputy/agent-memory/a/MEMORY.md", S("private"));
    temp_write(f->dir, ".deputy/agent-memory/a/daily/d.md", S("private"));
    temp_write(f->dir, ".deputy/agents/a.yaml", S("name: a"));
    temp_write(f->dir, "docs/manual.md", S("manual"));
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    close(f->root);
    arena_free(f->a);
    temp_remove(f->dir);
    free(f);
    return 0;
}

static memory_guard *guard(fixture *f) {
    memory_guard *g = NULL;
    assert_int_equal(memory_guard_make(f->a, f->root, &g, NULL), DEP_OK);
    return g;
}

// As a tool sees it: opened by some path, links followed.
static bool hit(fixture *f, memory_guard *g, const char *path) {
    int fd = openat(f->root, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    if (fd < 0) fail_msg("cannot open %s", path);
    assert_int_equal(fstat(fd, &st), 0);
    close(fd);
    return memory_guard_hit(g, &st);
}

static void test_memory_guard__all_of_both_trees_and_nothing_else_belongs_to_memory(void **state) {
    fixture *f = *state;
    memory_guard *g = guard(f);
    const char *memory[] = {".deputy/memory",
                            ".deputy/memory/MEMORY.md",
                            ".deputy/agent-memory",
                            ".deputy/agent-memory/a",
                            ".deputy/agent-memory/a/MEMORY.md",
                            ".deputy/agent-memory/a/daily",
                            ".deputy/agent-memory/a/daily/d.md"};
    const char *others[] = {".",    ".deputy",       ".deputy/agents", ".deputy/agents/a.yaml",
                            "docs", "docs/manual.md"};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (!hit(f, g, memory[i])) fail_msg("%s", memory[i]);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (hit(f, g, others[i])) fail_msg("%s", others[i]);
}

static void test_memory_guard__links_and_hard_links_do_not_hide_it(void **state) {
    fixture *f = *state;
    assert_int_equal(symlinkat("../.deputy/agent-memory/a", f->root, "docs/dir"), 0);
    assert_int_equal(symlinkat("../.deputy/memory/MEMORY.md", f->root, "docs/file.md"), 0);
    assert_int_equal(linkat(f->root, ".deputy/memory/MEMORY.md", f->root, "docs/hard.md", 0), 0);
    memory_guard *g = guard(f);
    assert_int_equal(linkat(f->root, ".deputy/agent-memory/a/MEMORY.md", f->root, "docs/later.md", 0), 0);
    assert_true(hit(f, g, "docs/dir"));
    assert_true(hit(f, g, "docs/dir/MEMORY.md"));
    assert_true(hit(f, g, "docs/dir/daily/d.md"));
    assert_true(hit(f, g, "docs/file.md"));
    assert_true(hit(f, g, "docs/hard.md"));
    assert_true(hit(f, g, "docs/later.md"));
    assert_false(hit(f, g, "docs/manual.md"));
}

static void test_memory_guard__what_is_written_after_it_was_made_is_known(void **state) {
    fixture *f = *state;
    memory_guard *g = guard(f);
    memory_scope *m = NULL;
    memory_written w;
    memory_write_opts o = {0};
    assert_int_equal(symlinkat("../.deputy/agent-memory/new", f->root, "docs/new"), 0);
    assert_int_equal(memory_open(f->a, f->root, S(".deputy/agent-memory/new"), true, NULL, NULL, &m, NULL),
                     DEP_OK);
    assert_true(hit(f, g, "docs/new"));
    for (int i = 0; i < 5; i++) { // each write is another inode
        assert_int_equal(memory_write(f->a, m, S("MEMORY.md"), S("x"), &o, &w, NULL), DEP_OK);
        assert_true(hit(f, g, "docs/new/MEMORY.md"));
        assert_int_equal(memory_write(f->a, m, S("daily/x.md"), S("x"), &o, &w, NULL), DEP_OK);
        assert_true(hit(f, g, "docs/new/daily/x.md"));
        assert_true(hit(f, g, "docs/new/.lock"));
        assert_false(hit(f, g, "docs/manual.md"));
        temp_write(f->dir, "docs/fresh.md", S("x"));
        assert_false(hit(f, g, "docs/fresh.md"));
    }
}

static void test_memory_guard__a_file_opened_before_its_replacement_is_known(void **state) {
    fixture *f = *state;
    memory_guard *g = guard(f);
    memory_scope *m = NULL;
    memory_written w;
    memory_write_opts o = {0};
    struct stat st;
    int fd = openat(f->root, ".deputy/memory/MEMORY.md", O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(fd, &st), 0);
    assert_int_equal(memory_open(f->a, f->root, S(".deputy/memory"), true, NULL, NULL, &m, NULL), DEP_OK);
    assert_int_equal(memory_write(f->a, m, S("MEMORY.md"), S("x"), &o, &w, NULL), DEP_OK);
    assert_true(memory_guard_hit(g, &st));
    close(fd);
}

static void test_memory_guard__trees_that_come_and_go_are_noticed(void **state) {
    fixture *f = *state;
    char *dir = temp_dir();
    fixture g2 = {.a = f->a, .dir = dir, .root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    memory_guard *g = guard(&g2);
    temp_write(dir, "x.md", S("x"));
    assert_false(hit(&g2, g, "x.md"));
    temp_write(dir, ".deputy/agents/a.yaml", S("x"));
    assert_false(hit(&g2, g, ".deputy/agents/a.yaml"));
    temp_write(dir, ".deputy/memory/a.md", S("x"));
    assert_true(hit(&g2, g, ".deputy/memory/a.md"));
    assert_false(hit(&g2, g, "x.md"));
    // A whole tree moved in: its files are old.
    temp_write(dir, "old/a.md", S("x"));
    assert_false(hit(&g2, g, "old/a.md"));
    assert_int_equal(renameat(g2.root, "old", g2.root, ".deputy/agent-memory"), 0);
    assert_true(hit(&g2, g, ".deputy/agent-memory/a.md"));
    assert_int_equal(renameat(g2.root, ".deputy/agent-memory", g2.root, "old"), 0);
    assert_true(hit(&g2, g, ".deputy/memory/a.md"));
    close(g2.root);
    temp_remove(dir);
}

static void test_memory_guard__links_inside_memory_do_not_make_others_memory(void **state) {
    fixture *f = *state;
    assert_int_equal(symlinkat("../../docs", f->root, ".deputy/memory/docs"), 0);
    assert_int_equal(symlinkat("../../docs/manual.md", f->root, ".deputy/memory/manual.md"), 0);
    memory_guard *g = guard(f);
    assert_false(hit(f, g, "docs"));
    assert_false(hit(f, g, "docs/manual.md"));
}

static void test_memory_guard__trees_behind_links_are_none(void **state) {
    fixture *f = *state;
    assert_int_equal(renameat(f->root, ".deputy", f->root, "real"), 0);
    assert_int_equal(symlinkat("real", f->root, ".deputy"), 0);
    memory_guard *g = guard(f);
    assert_false(
        hit(f, g, "real/memory/MEMORY.md")); // memory itself refuses it: nothing there is used as memory
    assert_false(hit(f, g, "docs/manual.md"));
}

static void test_memory_guard__trees_over_the_limits_are_refused_and_later_all_is_memory(void **state) {
    fixture *f = *state;
    dep_err err;
    memory_guard *g = guard(f), *h = NULL;
    buf deep = buf_new(f->a, 0);
    buf_add(&deep, S(".deputy/memory/"));
    for (int i = 1; i < MEMORY_GUARD_DEPTH; i++) buf_add(&deep, S("d/"));
    temp_write(f->dir, str_fmt(f->a, STR_FMT "x.md", STR_ARG(buf_str(&deep))).p, S("x"));
    assert_int_equal(memory_guard_make(f->a, f->root, &h, &err), DEP_OK);
    temp_write(f->dir, str_fmt(f->a, STR_FMT "d/x.md", STR_ARG(buf_str(&deep))).p, S("x"));
    assert_int_equal(memory_guard_make(f->a, f->root, &h, &err), DEP_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "16"));
    temp_write(f->dir, "docs/fresh.md", S("x"));
    assert_true(hit(f, g, "docs/fresh.md")); // cannot be told any more
    assert_int_equal(renameat(f->root, ".deputy/memory", f->root, "gone"), 0);
    assert_false(hit(f, g, "docs/fresh.md"));
}

static void test_memory_guard__20000_names_are_the_most(void **state) {
    fixture *f = *state;
    dep_err err;
    memory_guard *g = NULL;
    char *fast = temp_dir_fast(NULL);
    temp_write(fast, ".deputy/memory/a.md", S("x"));
    int root = open(fast, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int dir = openat(root, ".deputy/memory", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char name[32];
    for (int i = 0; i < MEMORY_GUARD_MAX - 2; i++) {
        snprintf(name, sizeof name, "%d", i);
        assert_int_equal(mknodat(dir, name, S_IFREG | 0600, 0), 0);
    }
    assert_int_equal(memory_guard_make(f->a, root, &g, &err), DEP_OK);
    assert_int_equal(mknodat(dir, "more", S_IFREG | 0600, 0), 0);
    assert_int_equal(memory_guard_make(f->a, root, &g, &err), DEP_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "20000"));
    close(dir);
    close(root);
    temp_remove(fast);
}

// A mount shows the same directory or file at another path. Needs the right to mount, in a namespace of its
// own.
static int in_mounts(fixture *f, memory_guard *g) {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) != 0) return 77;
    f->root = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC); // in this namespace
    const char *dirs[][2] = {{".deputy/agent-memory/a", "docs/m1"},
                             {".deputy/agent-memory/a/daily", "docs/m2"}};
    for (size_t i = 0; i < 2; i++)
        if (mkdirat(f->root, dirs[i][1], 0755) != 0 ||
            mount(at(f, dirs[i][0]), at(f, dirs[i][1]), "", MS_BIND, NULL) != 0)
            return 77;
    temp_write(f->dir, "docs/m3.md", S(""));
    if (mount(at(f, ".deputy/memory/MEMORY.md"), at(f, "docs/m3.md"), "", MS_BIND, NULL) != 0) return 77;
    const char *memory[] = {"docs/m1", "docs/m1/MEMORY.md", "docs/m1/daily/d.md",
                            "docs/m2", "docs/m2/d.md",      "docs/m3.md"};
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        if (!hit(f, g, memory[i])) return 1;
    int other = hit(f, g, "docs/manual.md");
    close(f->root);
    return other;
}

static void test_memory_guard__mounts_do_not_hide_it(void **state) {
    fixture *f = *state;
    memory_guard *g = guard(f);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(in_mounts(f, g));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        print_message("# cannot mount here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_memory_guard__all_of_both_trees_and_nothing_else_belongs_to_memory),
        T(test_memory_guard__links_and_hard_links_do_not_hide_it),
        T(test_memory_guard__what_is_written_after_it_was_made_is_known),
        T(test_memory_guard__a_file_opened_before_its_replacement_is_known),
        T(test_memory_guard__trees_that_come_and_go_are_noticed),
        T(test_memory_guard__links_inside_memory_do_not_make_others_memory),
        T(test_memory_guard__trees_behind_links_are_none),
        T(test_memory_guard__trees_over_the_limits_are_refused_and_later_all_is_memory),
        T(test_memory_guard__20000_names_are_the_most),
        T(test_memory_guard__mounts_do_not_hide_it),
    };
    return cmocka_run_group_tests_name("memory_guard", tests, NULL, NULL);
}

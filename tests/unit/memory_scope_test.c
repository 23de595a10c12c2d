// Where memory lies: directories by (layer, identity), paths that are memory's, names, and directories that
// are links.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/memory.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    arena *a;
    char *dir;
    int root; // DIR/w
} fixture;

static char *at(fixture *f, const char *name) {
    return str_cz(f->a, str_fmt(f->a, "%s/%s", f->dir, name));
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->dir = temp_dir();
    assert_int_equal(mkdir(at(f, "w"), 0755), 0);
    f->root = open(at(f, "w"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->root >= 0);
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

// Rule B18: no two (layer, identity) share a directory, and no name leads out of the tree.
static void test_memory_scope__each_layer_and_identity_owns_one_directory(void **state) {
    fixture *f = *state;
    const struct {
        memory_kind kind;
        const char *identity, *layer, *want;
    } cases[] = {
        {MEMORY_SHARED, "", "", ".deputy/memory"},
        {MEMORY_SHARED, "../x", "system", ".deputy/memory"},
        {MEMORY_PRIVATE, "helper", "workspace", ".deputy/agent-memory/helper"},
        {MEMORY_PRIVATE, "helper", "", ".deputy/agent-memory/helper"},
        {MEMORY_PRIVATE, "helper", "system", ".deputy/agent-memory/helper@system"},
        {MEMORY_PRIVATE, "helper", "builtin", ".deputy/agent-memory/helper@builtin"},
        {MEMORY_PRIVATE, "refund helfer", "workspace", ".deputy/agent-memory/refund helfer"},
        {MEMORY_PRIVATE, "退款", "my-plugin", ".deputy/agent-memory/退款@my-plugin"},
        {MEMORY_PRIVATE, "helper@system", "workspace", ""},
        {MEMORY_PRIVATE, "../../x", "workspace", ""},
        {MEMORY_PRIVATE, "a/b", "workspace", ""},
        {MEMORY_PRIVATE, "..", "workspace", ""},
        {MEMORY_PRIVATE, ".", "workspace", ""},
        {MEMORY_PRIVATE, "", "workspace", ""},
        {MEMORY_PRIVATE, "a", "../x", ""},
        {MEMORY_PRIVATE, "a", "x@y", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str dir = memory_dir(f->a, cases[i].kind, str_z(cases[i].identity), str_z(cases[i].layer));
        assert_true(str_eq(dir, str_z(cases[i].want)));
    }
}

static void test_memory_scope__memory_paths_are_told_in_any_spelling(void **state) {
    (void)state;
    const struct {
        const char *path;
        bool want;
    } cases[] = {
        {".deputy/memory", true},
        {".deputy/agent-memory", true},
        {".deputy/memory/MEMORY.md", true},
        {"./.deputy//memory/./x", true},
        {"docs/../.deputy/memory/x", true},
        {".deputy/agents/../memory", true},
        {".DEPUTY/Memory/x", true},
        {".deputy/memory/", true},
        {"../.deputy/memory", true},
        {".deputy", false},
        {".deputy/agents/memory", false},
        {".deputy/memory2", false},
        {".deputy/memory/..", false},
        {"docs/.deputy/memory", false},
        {"memory", false},
        {"", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (memory_path(str_z(cases[i].path)) != cases[i].want) fail_msg("%s", cases[i].path);
    }
}

static void test_memory_scope__names_are_one_markdown_file_or_one_below_daily(void **state) {
    fixture *f = *state;
    buf longest = buf_new(f->a, 0);
    buf_fill(&longest, 'a', MEMORY_NAME_MAX - 3);
    str stem = str_dup(f->a, buf_str(&longest));
    const struct {
        str name;
        bool want;
    } cases[] = {
        {S("MEMORY.md"), true},
        {S("daily/2026-11-30.md"), true},
        {S("9 lives_of-a.cat.md"), true},
        {S("Öffnungszeiten.md"), true},
        {S("退款.md"), true},
        {S("e\u0301t\u00E9.md"), true},
        {str_fmt(f->a, STR_FMT ".md", STR_ARG(stem)), true},
        {str_fmt(f->a, STR_FMT "a.md", STR_ARG(stem)), false},
        {str_fmt(f->a, "daily/" STR_FMT ".md", STR_ARG(stem)), true},
        {S(""), false},
        {S(".md"), false},
        {S(".lock"), false},
        {S("x"), false},
        {S("x.MD"), false},
        {S("x.md.tmp"), false},
        {S(" x.md"), false},
        {S("-x.md"), false},
        {S("../x.md"), false},
        {S("a/x.md"), false},
        {S("daily/../x.md"), false},
        {S("daily/a/x.md"), false},
        {S("daily/.md"), false},
        {S("/x.md"), false},
        {S("x\0.md"), false},
        {S("x\n.md"), false},
        {S("x\u200B.md"), false},
        {S("x\u202E.md"), false},
        {S("x\uFE0F.md"), false},
        {S("x\xff.md"), false},
        {S("\u0301x.md"), false},
        {S("a:b.md"), false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (memory_name_ok(cases[i].name) != cases[i].want) fail_msg("case %zu", i);
    }
}

static memory_scope *scope(fixture *f, const char *dir, bool create) {
    memory_scope *m = NULL;
    dep_err err;
    dep_status status = memory_open(f->a, f->root, str_z(dir), create, NULL, NULL, &m, &err);
    if (status != DEP_OK) print_error("%s\n", err.msg);
    assert_int_equal(status, DEP_OK);
    return m;
}

static void test_memory_scope__a_missing_directory_is_made_only_when_asked(void **state) {
    fixture *f = *state;
    assert_null(scope(f, ".deputy/memory", false));
    assert_int_equal(access(at(f, "w/.deputy"), F_OK), -1);
    assert_non_null(scope(f, ".deputy/agent-memory/helper", true));
    assert_non_null(scope(f, ".deputy/agent-memory/helper", false));
    assert_null(scope(f, ".deputy/memory", false));
    struct stat st;
    assert_int_equal(stat(at(f, "w/.deputy/agent-memory/helper"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    str text;
    assert_int_equal(
        file_read_at(f->a, f->root, S(".deputy/.gitignore"), FILE_NO_LINKS, 4096, &text, NULL, NULL), DEP_OK);
    assert_true(str_find(text, S("\nmemory/\n")) != SIZE_MAX);
    assert_true(str_find(text, S("\nagent-memory/\n")) != SIZE_MAX);
}

static void test_memory_scope__a_gitignore_that_is_there_is_left_alone(void **state) {
    fixture *f = *state;
    temp_write(f->dir, "w/.deputy/.gitignore", S("# mine\n"));
    assert_non_null(scope(f, ".deputy/memory", true));
    str text;
    assert_int_equal(
        file_read_at(f->a, f->root, S(".deputy/.gitignore"), FILE_NO_LINKS, 4096, &text, NULL, NULL), DEP_OK);
    assert_true(str_eq(text, S("# mine\n")));
    // A .deputy made by hand gets one with its first memory.
    assert_int_equal(unlink(at(f, "w/.deputy/.gitignore")), 0);
    assert_non_null(scope(f, ".deputy/memory", true));
    assert_int_equal(access(at(f, "w/.deputy/.gitignore"), F_OK), -1);
    assert_non_null(scope(f, ".deputy/agent-memory/x", true));
    assert_int_equal(access(at(f, "w/.deputy/.gitignore"), F_OK), 0);
}

static void test_memory_scope__only_memory_directories_are_opened(void **state) {
    fixture *f = *state;
    const char *bad[] = {"",
                         ".",
                         ".deputy",
                         ".deputy/agents",
                         ".deputy/agent-memory",
                         ".deputy/agent-memory/..",
                         ".deputy/agent-memory/a/b",
                         ".deputy/agent-memory/../agents",
                         "/tmp",
                         "docs",
                         ".deputy/memory/",
                         ".deputy/memory/daily",
                         ".deputy/agent-memory/.x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        memory_scope *m = NULL;
        assert_int_equal(memory_open(f->a, f->root, str_z(bad[i]), true, NULL, NULL, &m, NULL),
                         DEP_ERR_INVALID);
        assert_null(m);
    }
    assert_int_equal(access(at(f, "w/.deputy"), F_OK), -1);
}

// C42: a component that is a link, wherever it leads, is refused by name, and nothing is made behind it.
static void test_memory_scope__a_link_in_the_way_is_refused_by_name(void **state) {
    fixture *f = *state;
    assert_int_equal(mkdir(at(f, "elsewhere"), 0755), 0);
    const struct {
        const char *made, *link, *target, *name;
    } cases[] = {
        {NULL, "w/.deputy", "../elsewhere", ".deputy"},
        {NULL, "w/.deputy", "inside", ".deputy"},
        {"w/.deputy", "w/.deputy/agent-memory", "../../elsewhere", "agent-memory"},
        {"w/.deputy/agent-memory", "w/.deputy/agent-memory/x", "/etc", "x"},
        {"w/.deputy/agent-memory", "w/.deputy/agent-memory/x", "nothing", "x"},
    };
    assert_int_equal(mkdir(at(f, "w/inside"), 0755), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(!cases[i].made || mkdir(at(f, cases[i].made), 0755) == 0 || errno == EEXIST);
        assert_int_equal(symlink(cases[i].target, at(f, cases[i].link)), 0);
        for (int create = 0; create < 2; create++) {
            memory_scope *m = NULL;
            dep_err err;
            dep_status status =
                memory_open(f->a, f->root, S(".deputy/agent-memory/x"), create, NULL, NULL, &m, &err);
            assert_int_equal(status, DEP_ERR_REFUSED);
            assert_non_null(strstr(err.msg, cases[i].name));
            assert_non_null(strstr(err.msg, "link"));
            assert_null(m);
        }
        assert_int_equal(unlink(at(f, cases[i].link)), 0);
    }
    assert_int_equal(rmdir(at(f, "elsewhere")), 0); // empty, so nothing was written there
    assert_int_equal(rmdir(at(f, "w/inside")), 0);
}

static void test_memory_scope__another_owner_is_refused_by_name(void **state) {
    fixture *f = *state;
    if (geteuid() != 0) {
        print_message("# needs root\n");
        skip();
    }
    assert_non_null(scope(f, ".deputy/agent-memory/x", true));
    const char *dirs[] = {".deputy", ".deputy/agent-memory", ".deputy/agent-memory/x"};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        memory_scope *m = NULL;
        dep_err err;
        assert_int_equal(fchownat(f->root, dirs[i], 65534, 65534, 0), 0);
        assert_int_equal(memory_open(f->a, f->root, S(".deputy/agent-memory/x"), true, NULL, NULL, &m, &err),
                         DEP_ERR_REFUSED);
        assert_non_null(strstr(err.msg, dirs[i]));
        assert_null(m);
        assert_int_equal(fchownat(f->root, dirs[i], 0, 0, 0), 0);
    }
}

static void test_memory_scope__a_file_in_the_way_is_refused(void **state) {
    fixture *f = *state;
    temp_write(f->dir, "w/.deputy/agent-memory", S("x"));
    memory_scope *m = NULL;
    dep_err err;
    assert_int_equal(memory_open(f->a, f->root, S(".deputy/agent-memory/x"), true, NULL, NULL, &m, &err),
                     DEP_ERR_REFUSED);
    assert_non_null(strstr(err.msg, "agent-memory"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_memory_scope__each_layer_and_identity_owns_one_directory),
        T(test_memory_scope__memory_paths_are_told_in_any_spelling),
        T(test_memory_scope__names_are_one_markdown_file_or_one_below_daily),
        T(test_memory_scope__a_missing_directory_is_made_only_when_asked),
        T(test_memory_scope__a_gitignore_that_is_there_is_left_alone),
        T(test_memory_scope__only_memory_directories_are_opened),
        T(test_memory_scope__a_link_in_the_way_is_refused_by_name),
        T(test_memory_scope__another_owner_is_refused_by_name),
        T(test_memory_scope__a_file_in_the_way_is_refused),
    };
    return cmocka_run_group_tests_name("memory_scope", tests, NULL, NULL);
}

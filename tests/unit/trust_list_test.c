// The list of trusted digests: what it accepts, what it keeps between processes, and who it refuses to listen
// to.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/json.h>
#include <deputy/sys.h>
#include <deputy/trust.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define W "/home/ada/work"

typedef struct {
    arena *a;
    char *dir;
    str state, one, two; // two digests
} fixture;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->dir = temp_dir();
    f->state = str_fmt(f->a, "%s/state/deputy", f->dir);
    f->one = sha256_hex(f->a, S("one"));
    f->two = sha256_hex(f->a, S("two"));
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    arena_free(f->a);
    temp_remove(f->dir);
    free(f);
    return 0;
}

static trust_list *opened(fixture *f, bool read_only) {
    trust_list *t = NULL;
    dep_err err;
    dep_status status = trust_open(f->a, f->state, S(W), read_only, &t, &err);
    if (status != DEP_OK) print_error("%s\n", err.msg);
    assert_int_equal(status, DEP_OK);
    assert_non_null(t);
    return t;
}

static str list_path(fixture *f, const char *workspace) {
    return str_fmt(f->a, STR_FMT "/trust/" STR_FMT ".json", STR_ARG(f->state),
                   STR_ARG(sha256_hex(f->a, str_z(workspace))));
}

static void write_list(fixture *f, const char *text, mode_t mode) {
    str path = list_path(f, W);
    FILE *out = fopen(str_cz(f->a, path), "wb");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    assert_int_equal(chmod(path.p, mode), 0);
}

static str file_text(fixture *f, const char *path) {
    str text;
    assert_int_equal(file_read(f->a, str_z(path), 1 << 20, &text, NULL), DEP_OK);
    return text;
}

static void test_trust_list__a_missing_list_is_empty_and_reading_makes_nothing(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, true);
    const trust_entry *e;
    size_t n;
    trust_entries(t, &e, &n);
    assert_int_equal(n, 0);
    assert_int_equal(trust_check(t, S("a.yaml"), f->one, NULL), TRUST_NEVER);
    assert_int_equal(access(str_cz(f->a, f->state), F_OK), -1);
    dep_err err;
    assert_int_equal(trust_record(t, S("a.yaml"), f->one, (str){0}, &err), DEP_ERR_REFUSED);
    assert_int_equal(access(f->state.p, F_OK), -1);
}

static void test_trust_list__records_survive_and_tell_changed_from_unknown(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false);
    str reach = S("{\"tools\":[\"read\"]}"), got;
    assert_int_equal(trust_record(t, S(".deputy/agents/b.yaml"), f->one, reach, NULL), DEP_OK);
    assert_int_equal(trust_record(t, S(".deputy/agents/a.yaml"), f->two, (str){0}, NULL), DEP_OK);
    trust_list *lists[] = {t, opened(f, false), opened(f, true)};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(trust_check(lists[i], S(".deputy/agents/b.yaml"), f->one, &got), TRUST_OK);
        assert_true(str_eq(got, reach));
        assert_int_equal(trust_check(lists[i], S(".deputy/agents/b.yaml"), f->two, &got), TRUST_CHANGED);
        assert_true(str_eq(got, reach));
        assert_int_equal(trust_check(lists[i], S(".deputy/agents/a.yaml"), f->two, &got), TRUST_OK);
        assert_true(str_empty(got));
        assert_int_equal(trust_check(lists[i], S(".deputy/agents/c.yaml"), f->one, &got), TRUST_NEVER);
        assert_int_equal(trust_check(lists[i], S(".deputy/agents/a.yam"), f->two, NULL), TRUST_NEVER);
        const trust_entry *e;
        size_t n;
        trust_entries(lists[i], &e, &n);
        assert_int_equal(n, 2);
        assert_true(str_eq(e[0].file, S(".deputy/agents/a.yaml")));
        assert_true(str_eq(e[1].file, S(".deputy/agents/b.yaml")));
    }
}

static void test_trust_list__the_file_is_canonical_private_and_one_per_workspace(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false);
    assert_int_equal(trust_record(t, S("b"), f->one, S("{ \"y\" : 1, \"x\" : [ ] }"), NULL), DEP_OK);
    assert_int_equal(trust_record(t, S("a"), f->two, (str){0}, NULL), DEP_OK);
    str path = list_path(f, W);
    str want = str_fmt(f->a,
                       "{\"files\":{\"a\":{\"sha256\":\"" STR_FMT "\"},\"b\":{\"reach\":{\"x\":[],\"y\":1},"
                       "\"sha256\":\"" STR_FMT "\"}},\"version\":1,\"workspace\":\"" W "\"}",
                       STR_ARG(f->two), STR_ARG(f->one));
    assert_string_equal(file_text(f, path.p).p, want.p);
    struct stat st;
    assert_int_equal(stat(path.p, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(stat(str_cz(f->a, path_dir(path)), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0700);
    trust_list *other = NULL;
    assert_int_equal(trust_open(f->a, f->state, S(W "2"), false, &other, NULL), DEP_OK);
    assert_int_equal(trust_check(other, S("a"), f->two, NULL), TRUST_NEVER);
}

static void test_trust_list__a_record_keeps_what_other_processes_recorded(void **state) {
    fixture *f = *state;
    trust_list *x = opened(f, false), *y = opened(f, false);
    assert_int_equal(trust_record(x, S("x"), f->one, (str){0}, NULL), DEP_OK);
    assert_int_equal(trust_record(y, S("y"), f->one, (str){0}, NULL), DEP_OK);
    assert_int_equal(trust_check(y, S("x"), f->one, NULL), TRUST_OK);
    bool changed = false;
    assert_int_equal(trust_check(x, S("y"), f->one, NULL), TRUST_NEVER);
    assert_int_equal(trust_reload(x, &changed, NULL), DEP_OK);
    assert_true(changed);
    assert_int_equal(trust_check(x, S("y"), f->one, NULL), TRUST_OK);
    assert_int_equal(trust_reload(x, &changed, NULL), DEP_OK);
    assert_false(changed);
    assert_int_equal(trust_forget(x, S("y"), NULL), DEP_OK);
    assert_int_equal(trust_forget(x, S("nothing"), NULL), DEP_OK);
    assert_int_equal(trust_reload(y, &changed, NULL), DEP_OK);
    assert_int_equal(trust_check(y, S("y"), f->one, NULL), TRUST_NEVER);
    assert_int_equal(trust_check(y, S("x"), f->one, NULL), TRUST_OK);
}

static void test_trust_list__four_processes_lose_no_record(void **state) {
    fixture *f = *state;
    enum { WRITERS = 4, EACH = 12 };
    for (int w = 0; w < WRITERS; w++) {
        pid_t pid = fork();
        assert_true(pid >= 0);
        if (pid > 0) continue;
        trust_list *t = NULL;
        int failed = trust_open(f->a, f->state, S(W), false, &t, NULL) != DEP_OK;
        for (int i = 0; i < EACH && !failed; i++)
            failed = trust_record(t, str_fmt(f->a, "w%d/%d", w, i), f->one, (str){0}, NULL) != DEP_OK;
        _exit(failed);
    }
    for (int w = 0; w < WRITERS; w++) {
        int status;
        assert_true(wait(&status) > 0);
        assert_int_equal(status, 0);
    }
    trust_list *t = opened(f, true);
    const trust_entry *e;
    size_t n;
    trust_entries(t, &e, &n);
    assert_int_equal(n, WRITERS * EACH);
}

static void test_trust_list__record_all_is_one_step_and_the_last_of_one_file_counts(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false);
    trust_entry good[] = {{.file = S("a"), .sha256 = f->one},
                          {.file = S("b"), .sha256 = f->one},
                          {.file = S("a"), .sha256 = f->two}};
    assert_int_equal(trust_record_all(t, good, 3, NULL), DEP_OK);
    assert_int_equal(trust_check(t, S("a"), f->two, NULL), TRUST_OK);
    trust_entry bad[] = {{.file = S("c"), .sha256 = f->one}, {.file = S("../d"), .sha256 = f->one}};
    assert_int_equal(trust_record_all(t, bad, 2, NULL), DEP_ERR_INVALID);
    assert_int_equal(trust_check(t, S("c"), f->one, NULL), TRUST_NEVER);
    assert_int_equal(trust_check(opened(f, true), S("c"), f->one, NULL), TRUST_NEVER);
    assert_int_equal(trust_record_all(t, NULL, 0, NULL), DEP_OK);
}

static void test_trust_list__before_a_replace_both_digests_are_accepted(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false);
    trust_entry e = {.file = S("m.md"), .sha256 = f->two, .was = f->one};
    assert_int_equal(trust_record_all(t, &e, 1, NULL), DEP_OK);
    trust_list *again = opened(f, true);
    assert_int_equal(trust_check(again, S("m.md"), f->one, NULL), TRUST_OK);
    assert_int_equal(trust_check(again, S("m.md"), f->two, NULL), TRUST_OK);
    assert_int_equal(trust_check(again, S("m.md"), sha256_hex(f->a, S("three")), NULL), TRUST_CHANGED);
    assert_int_equal(trust_record(t, S("m.md"), f->two, (str){0}, NULL), DEP_OK);
    assert_int_equal(trust_check(t, S("m.md"), f->one, NULL), TRUST_CHANGED);
}

static void test_trust_list__only_plain_paths_and_real_digests_are_recorded(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false);
    str bad[] = {S(""), S("/a"), S("./a"), S("a//b"), S("a/"), S("../a"), S("a/../b"), S("a\0b"), S("a\xff")};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(trust_record(t, bad[i], f->one, (str){0}, NULL), DEP_ERR_INVALID);
    str upper = str_dup(f->a, f->one);
    ((char *)upper.p)[0] = 'A';
    str digests[] = {S(""), S("abc"), str_sub(f->one, 0, 63), upper,
                     str_fmt(f->a, STR_FMT "0", STR_ARG(f->one))};
    for (size_t i = 0; i < sizeof digests / sizeof *digests; i++)
        assert_int_equal(trust_record(t, S("a"), digests[i], (str){0}, NULL), DEP_ERR_INVALID);
    assert_int_equal(trust_record(t, S("a"), f->one, S("{\"x\":"), NULL), DEP_ERR_INVALID);
    trust_list *r = NULL;
    assert_int_equal(trust_open(f->a, f->state, S("relative"), true, &r, NULL), DEP_ERR_INVALID);
    assert_null(r);
}

static void test_trust_list__a_damaged_list_is_named_and_nothing_is_trusted(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false);
    assert_int_equal(trust_record(t, S("a"), f->one, (str){0}, NULL), DEP_OK);
    str good = file_text(f, list_path(f, W).p);
    const char *bad[] = {
        "",
        "{",
        "[]",
        "{\"files\":{},\"version\":1}",
        "{\"files\":[],\"version\":1,\"workspace\":\"" W "\"}",
        "{\"files\":{},\"version\":2,\"workspace\":\"" W "\"}",
        "{\"files\":{},\"version\":1,\"workspace\":\"/home/ada/other\"}",
        "{\"files\":{\"a\":{}},\"version\":1,\"workspace\":\"" W "\"}",
        "{\"files\":{\"a\":{\"sha256\":\"zz\"}},\"version\":1,\"workspace\":\"" W "\"}",
        str_dup(f->a, str_sub(good, 0, good.n - 1)).p,
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_list(f, bad[i], 0600);
        trust_list *r = NULL;
        dep_err err;
        assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, &err), DEP_ERR_PARSE);
        assert_null(r);
        assert_non_null(strstr(err.msg, list_path(f, W).p));
        // A list that is open keeps what it had, and a record does not overwrite what it cannot read.
        assert_int_equal(trust_reload(t, NULL, NULL), DEP_ERR_PARSE);
        assert_int_equal(trust_check(t, S("a"), f->one, NULL), TRUST_OK);
        assert_int_equal(trust_record(t, S("b"), f->one, (str){0}, NULL), DEP_ERR_PARSE);
        assert_string_equal(file_text(f, list_path(f, W).p).p, bad[i]);
    }
}

static void test_trust_list__lists_that_others_can_touch_are_refused(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false), *r = NULL;
    assert_int_equal(trust_record(t, S("a"), f->one, (str){0}, NULL), DEP_OK);
    str path = list_path(f, W);
    mode_t modes[] = {0640, 0604, 0620, 0602, 0644};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path.p, modes[i]), 0);
        assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, NULL), DEP_ERR_REFUSED);
    }
    assert_int_equal(chmod(path.p, 0600), 0);
    assert_int_equal(chmod(str_cz(f->a, f->state), 0770), 0);
    assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, NULL), DEP_ERR_REFUSED);
    assert_int_equal(chmod(f->state.p, 0700), 0);
    str lists = path_dir(path);
    assert_int_equal(chmod(str_cz(f->a, lists), 0702), 0);
    assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, NULL), DEP_ERR_REFUSED);
    assert_int_equal(chmod(str_cz(f->a, lists), 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path.p, 65534, 65534), 0);
        assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, NULL), DEP_ERR_REFUSED);
        assert_int_equal(chown(path.p, 0, 0), 0);
    }
    str moved = str_fmt(f->a, STR_FMT ".moved", STR_ARG(path));
    assert_int_equal(rename(path.p, moved.p), 0);
    assert_int_equal(symlink(moved.p, path.p), 0);
    assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, NULL), DEP_ERR_REFUSED);
    assert_null(r);
}

// Rule B7: a clone that brings its own list, wherever it puts it, trusts nothing.
static void test_trust_list__a_forged_list_in_the_workspace_has_no_effect(void **state) {
    fixture *f = *state;
    char *w = str_cz(f->a, str_fmt(f->a, "%s/clone", f->dir));
    str forged = str_fmt(f->a,
                         "{\"files\":{\"evil.yaml\":{\"sha256\":\"" STR_FMT "\"}},\"version\":1,"
                         "\"workspace\":\"%s\"}",
                         STR_ARG(f->one), w);
    str id = sha256_hex(f->a, str_z(w));
    const char *places[] = {
        "trust", ".deputy/trust", ".deputy", ".deputy/state/trust", ".local/state/deputy/trust", "."};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        temp_write(f->dir, str_fmt(f->a, "clone/%s/" STR_FMT ".json", places[i], STR_ARG(id)).p, forged);
        temp_write(f->dir, str_fmt(f->a, "clone/%s/trust.json", places[i]).p, forged);
    }
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(here >= 0);
    assert_int_equal(chdir(w), 0); // the working directory is the clone, as it is for a person
    trust_list *t = NULL;
    assert_int_equal(trust_open(f->a, f->state, str_z(w), false, &t, NULL), DEP_OK);
    assert_int_equal(trust_check(t, S("evil.yaml"), f->one, NULL), TRUST_NEVER);
    const trust_entry *e;
    size_t n;
    trust_entries(t, &e, &n);
    assert_int_equal(n, 0);
    assert_int_equal(fchdir(here), 0);
    close(here);
    // Nor does the same list planted under the right name but for another workspace.
    assert_int_equal(trust_open(f->a, f->state, S(W), false, &t, NULL), DEP_OK);
    write_list(f, forged.p, 0600);
    assert_int_equal(trust_open(f->a, f->state, S(W), false, &t, NULL), DEP_ERR_PARSE);
}

static void test_trust_list__a_list_over_the_limit_is_neither_read_nor_written(void **state) {
    fixture *f = *state;
    trust_list *t = opened(f, false), *r = NULL;
    // Two reaches of which one fits and both do not.
    buf big = buf_new(f->a, 0);
    buf_addc(&big, '"');
    buf_fill(&big, 'x', (size_t)TRUST_LIST_MAX - 400);
    buf_addc(&big, '"');
    assert_int_equal(trust_record(t, S("a"), f->one, buf_str(&big), NULL), DEP_OK);
    assert_int_equal(trust_check(opened(f, true), S("a"), f->one, NULL), TRUST_OK);
    dep_err err;
    assert_int_equal(trust_record(t, S("b"), f->one, buf_str(&big), &err), DEP_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "bytes"));
    assert_int_equal(trust_check(t, S("b"), f->one, NULL), TRUST_NEVER);
    int fd = open(list_path(f, W).p, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    for (int i = 0; i < 400; i++) assert_int_equal(write(fd, " ", 1), 1);
    close(fd);
    assert_int_equal(trust_open(f->a, f->state, S(W), true, &r, NULL), DEP_ERR_LIMIT);
    assert_null(r);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_trust_list__a_missing_list_is_empty_and_reading_makes_nothing),
        T(test_trust_list__records_survive_and_tell_changed_from_unknown),
        T(test_trust_list__the_file_is_canonical_private_and_one_per_workspace),
        T(test_trust_list__a_record_keeps_what_other_processes_recorded),
        T(test_trust_list__four_processes_lose_no_record),
        T(test_trust_list__record_all_is_one_step_and_the_last_of_one_file_counts),
        T(test_trust_list__before_a_replace_both_digests_are_accepted),
        T(test_trust_list__only_plain_paths_and_real_digests_are_recorded),
        T(test_trust_list__a_damaged_list_is_named_and_nothing_is_trusted),
        T(test_trust_list__lists_that_others_can_touch_are_refused),
        T(test_trust_list__a_list_over_the_limit_is_neither_read_nor_written),
        T(test_trust_list__a_forged_list_in_the_workspace_has_no_effect),
    };
    return cmocka_run_group_tests_name("trust_list", tests, NULL, NULL);
}

// dir_fixture: see the header.
#include "support/dir_fixture.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

int dir_setup(void **state) {
    dir_fixture *f = calloc(1, sizeof *f);
    f->open_before = open_descriptors();
    f->path = temp_dir();
    f->dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->dir >= 0);
    f->a = arena_new();
    *state = f;
    return 0;
}

int dir_teardown(void **state) {
    dir_fixture *f = *state;
    close(f->dir);
    arena_free(f->a);
    temp_remove(f->path);
    int left = open_descriptors() - f->open_before;
    free(f);
    if (left != 0) fprintf(stderr, "%d descriptors left open\n", left);
    return left != 0;
}

str at(dir_fixture *f, const char *name) {
    return str_fmt(f->a, "%s/%s", f->path, name);
}

void link_to(dir_fixture *f, const char *target, const char *name) {
    assert_int_equal(symlinkat(target, f->dir, name), 0);
}

str text_of(dir_fixture *f, const char *name) {
    str text = {0};
    assert_int_equal(file_read(f->a, at(f, name), 1 << 20, &text, NULL), DEP_OK);
    return text;
}

mode_t mode_of(dir_fixture *f, const char *name) {
    struct stat st;
    assert_int_equal(fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_mode & 07777;
}

size_t entries(dir_fixture *f) {
    dir_entries all = {0};
    assert_int_equal(dir_list(f->a, f->dir, 1000, &all, NULL), DEP_OK);
    return all.n;
}

void assert_says(const dep_err *err, const char *text) {
    if (!strstr(err->msg, text)) fail_msg("\"%s\" does not say \"%s\"", err->msg, text);
}

void assert_text(str s, const char *want) {
    if (!str_eq(s, str_z(want))) fail_msg("\"" STR_FMT "\" is not \"%s\"", STR_ARG(s), want);
}

pid_t start_child(int (*fn)(dir_fixture *), dir_fixture *f) {
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(fn(f));
    return pid;
}

int child_code(pid_t pid) {
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int in_child(int (*fn)(dir_fixture *), dir_fixture *f) {
    return child_code(start_child(fn, f));
}

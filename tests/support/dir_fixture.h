// dir_fixture: each test in a fresh directory, failing when it leaves a descriptor open. Used as
// cmocka_unit_test_setup_teardown(test, dir_setup, dir_teardown); *state is then a dir_fixture.
#pragma once
#include "support/support.h"
#include <deputy/arena.h>
#include <deputy/file.h>

typedef struct {
    char *path; // the directory, and a descriptor of it
    int dir;
    arena *a; // freed after the test
    int open_before;
} dir_fixture;

int dir_setup(void **state);
int dir_teardown(void **state);

// path/name
str at(dir_fixture *f, const char *name);
void link_to(dir_fixture *f, const char *target, const char *name);
str text_of(dir_fixture *f, const char *name);
mode_t mode_of(dir_fixture *f, const char *name);
// How many names the directory holds.
size_t entries(dir_fixture *f);

// The test fails unless err's message holds text.
void assert_says(const dep_err *err, const char *text);
// The test fails unless s is exactly want.
void assert_text(str s, const char *want);

// Runs fn in a child process; its result is the child's exit code. A child ends itself with _exit.
int in_child(int (*fn)(dir_fixture *), dir_fixture *f);
// Starts fn in a child process; child_code waits for it and gives the exit code.
pid_t start_child(int (*fn)(dir_fixture *), dir_fixture *f);
int child_code(pid_t pid);

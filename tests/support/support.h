// support: what several unit suites need. Helpers end the test on failure; they return no statuses.
#pragma once
#include <deputy/arena.h>
#include <deputy/str.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// After the four above, which it needs and does not include.
#include <cmocka.h>

#define assert_str(got, expected)                                                                            \
    do {                                                                                                     \
        str got_ = (got), expected_ = (expected);                                                            \
        if (!str_eq(got_, expected_))                                                                        \
            fail_msg("\"%.*s\"\nis not\n\"%.*s\"", STR_ARG(got_), STR_ARG(expected_));                       \
    } while (0)

// A new directory below $TMPDIR or /tmp. Release with temp_remove, which removes it with everything in it.
char *temp_dir(void);
void temp_remove(char *dir);
// dir/name, parents made as needed. name may hold slashes.
void temp_write(const char *dir, const char *name, str bytes);

// The path of the shared test material ($DEPUTY_SHARED, else ../shared) followed by /name; malloc'ed. NULL,
// with a printed line, when it is not there: the test then calls skip().
char *shared_path(const char *name);
// A whole file, malloc'ed and with a NUL behind it; free(s.p).
str read_all(const char *path);
// Valgrind emulates some system calls differently: vfork is fork there, so that a failed exec is seen only as
// exit code 127.
bool under_valgrind(void);
// As temp_dir, but in memory where the system has such a place (*in_memory tells; may be NULL): for tests
// that write so often that syncing to a disk would take minutes.
char *temp_dir_fast(bool *in_memory);
// For arena_new_from: as many allocations as *left says, then none. left lives as long as the arena.
arena_source scarce_source(int *left);

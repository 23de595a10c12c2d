// store_fixture: each test with a store of its own, in a fresh state directory, and a clock that goes on by a
// millisecond whenever it is read. Used as STORE_TEST(test); *state is then a store_fixture.
#pragma once
#include "support/support.h"
#include <deputy/store.h>
#include <sys/types.h>

#define ID1 "3f2a0000000000000000000000000001"
#define ID2 "3f2a1000000000000000000000000002"
#define ID3 "aaaa0000000000000000000000000003"
#define ID4 "bbbb0000000000000000000000000004"
#define THREAD1 "c0c0000000000000000000000000000a"
#define THREAD2 "c0c1000000000000000000000000000b"

typedef struct {
    arena *a;
    char *dir;
    str state;
    store *s; // of the workspace /w
    int64_t now;
    sys_clock clock;
    dep_err err;
} store_fixture;

int store_setup(void **state);
int store_teardown(void **state);
#define STORE_TEST(f) cmocka_unit_test_setup_teardown(f, store_setup, store_teardown)

store *open_store(store_fixture *r, const char *workspace);
// A row of an ordinary delegation.
delegation_row plain_row(const char *id, deleg_status status);
dep_status add(store_fixture *r, store *s, const char *id, deleg_status status);
// A row that completed, with a report that names it.
void add_ended(store_fixture *r, const delegation_row *row);
delegation_row get(store_fixture *r, const char *id);
// Names in run/ of the state directory.
size_t run_files(store_fixture *r);
// What a statement of one row and column answers, asked beside the store.
int64_t ask_db(store_fixture *r, const char *sql);

// A process that begins a run, does body and says "ready"; then waits to be killed, or ends in order.
pid_t start_run(store_fixture *r, dep_status (*body)(store_fixture *r, store *s), bool dies);
void end_run(pid_t pid, bool kill_it);

#define ok(expr)                                                                                             \
    do {                                                                                                     \
        dep_status ok_ = (expr);                                                                             \
        if (ok_ != DEP_OK) fail_msg("%s: %s", err_name(ok_), r->err.msg);                                    \
    } while (0)
// Fails with this status, and with a message that holds text.
#define refused(expr, status, text)                                                                          \
    do {                                                                                                     \
        dep_status refused_ = (expr);                                                                        \
        if (refused_ != (status)) fail_msg("%s, not %s", err_name(refused_), err_name(status));              \
        if (!strstr(r->err.msg, text)) fail_msg("%s", r->err.msg);                                           \
    } while (0)

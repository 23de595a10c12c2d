// store_fixture: see the header.
#include "support/store_fixture.h"
#include <dirent.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

static int64_t now_ms(void *ctx) {
    return ++((store_fixture *)ctx)->now;
}

static void random_bytes(void *ctx, void *p, size_t n) {
    (void)ctx;
    sys_clock_real()->random(NULL, p, n);
}

store *open_store(store_fixture *r, const char *workspace) {
    store *s = NULL;
    dep_status status = store_open(r->a, r->state, str_z(workspace), false, &r->clock, &s, &r->err);
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
    return s;
}

int store_setup(void **state) {
    arena *a = arena_new();
    store_fixture *r = NEW(a, store_fixture);
    r->a = a;
    r->dir = temp_dir_fast(NULL);
    r->state = str_fmt(a, "%s/state", r->dir);
    r->now = 1000;
    r->clock = (sys_clock){.now_ms = now_ms, .mono_ms = now_ms, .random = random_bytes, .ctx = r};
    r->s = open_store(r, "/w");
    *state = r;
    return 0;
}

int store_teardown(void **state) {
    store_fixture *r = *state;
    char *dir = r->dir;
    arena_free(r->a);
    temp_remove(dir);
    return 0;
}

delegation_row plain_row(const char *id, deleg_status status) {
    return (delegation_row){.id = str_z(id),
                            .agent = S("librarian"),
                            .task = S("Find it"),
                            .model = S("quote/passages"),
                            .definition_hash = S("abc"),
                            .definition = S("name: x\n"),
                            .grant = S("{}"),
                            .status = status};
}

dep_status add(store_fixture *r, store *s, const char *id, deleg_status status) {
    delegation_row row = plain_row(id, status);
    return store_delegation_add(s, &row, &r->err);
}

void add_ended(store_fixture *r, const delegation_row *row) {
    delegation_row begun = *row;
    begun.status = DELEG_RUNNING;
    ok(store_delegation_add(r->s, &begun, &r->err));
    ok(store_delegation_status(r->s, row->id, DELEG_COMPLETED, S("done"),
                               str_fmt(r->a, "{\"report\":\"%.*s\"}", STR_ARG(row->id)), &r->err));
}

delegation_row get(store_fixture *r, const char *id) {
    delegation_row row;
    ok(store_delegation_get(r->a, r->s, str_z(id), &row, &r->err));
    return row;
}

size_t run_files(store_fixture *r) {
    DIR *d = opendir(str_fmt(r->a, "%.*s/run", STR_ARG(r->state)).p);
    assert_non_null(d);
    size_t n = 0;
    for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

int64_t ask_db(store_fixture *r, const char *sql) {
    sqlite3 *db;
    sqlite3_stmt *st;
    assert_int_equal(sqlite3_open(str_fmt(r->a, "%.*s/deputy.db", STR_ARG(r->state)).p, &db), SQLITE_OK);
    if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t answer = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(db);
    return answer;
}

pid_t start_run(store_fixture *r, dep_status (*body)(store_fixture *r, store *s), bool dies) {
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        store *s = open_store(r, "/w");
        str run;
        if (store_run_begin(r->a, s, &run, &r->err) != DEP_OK || body(r, s) != DEP_OK) _exit(9);
        if (write(ready[1], "x", 1) != 1) _exit(9);
        if (!dies) {
            store_close(s);
            _exit(0);
        }
        for (;;) pause();
    }
    char c;
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

void end_run(pid_t pid, bool kill_it) {
    if (kill_it) kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

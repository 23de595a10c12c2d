// Tests of store/shared.c: one store for many threads.
#include "store/store_int.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <support/store_fixture.h>
#include <sys/socket.h>

enum { THREADS = 200, WRITES = 10 };

// --- Ops -------------------------------------------------------------------------------------------------

typedef struct {
    store_fixture *r;
    store_shared *sh;
    char id[33];
    int fail_at; // this write of each thread fails after it has written
    int failed;
    dep_err err;
} worker;

static dep_status add_row_op(store *s, void *ctx, dep_err *err) {
    worker *w = ctx;
    delegation_row row = plain_row(w->id, DELEG_RUNNING);
    return store_delegation_add(s, &row, err);
}

static dep_status add_item_op(store *s, void *ctx, dep_err *err) {
    worker *w = ctx;
    const activity_row item = {.kind = S("text"), .data = S("{\"text\":\"x\"}")};
    return store_activity_add(s, str_z(w->id), &item, 1, true, err);
}

// Two writes, then a third that cannot be.
static dep_status fail_op(store *s, void *ctx, dep_err *err) {
    TRY(add_item_op(s, ctx, err));
    TRY(add_item_op(s, ctx, err));
    return store_delegation_status(s, S(ID4), DELEG_RUNNING, S(""), S(""), err);
}

static dep_status end_op(store *s, void *ctx, dep_err *err) {
    worker *w = ctx;
    return store_delegation_status(s, str_z(w->id), DELEG_COMPLETED, S("done"), S("{\"report\":\"r\"}"), err);
}

typedef struct {
    arena *a;
    const char *id;
    size_t items;
    deleg_status status;
} look;

static dep_status look_op(store *s, void *ctx, dep_err *err) {
    look *l = ctx;
    delegation_row row;
    activity_rows items;
    TRY(store_delegation_get(l->a, s, str_z(l->id), &row, err));
    TRY(store_activity_list(l->a, s, str_z(l->id), 0, SIZE_MAX, &items, err));
    l->items = items.n;
    l->status = row.status;
    return DEP_OK;
}

// --- Many threads ----------------------------------------------------------------------------------------

static void *work(void *ctx) {
    worker *w = ctx;
    if (store_do(w->sh, STORE_WRITE_FULL, add_row_op, w, &w->err) != DEP_OK) w->failed = 100;
    for (int i = 0; i < WRITES; i++) {
        bool should_fail = i == w->fail_at;
        dep_status status =
            store_do(w->sh, STORE_WRITE_FULL, should_fail ? fail_op : add_item_op, w, &w->err);
        if (should_fail ? status != DEP_ERR_NOT_FOUND : status != DEP_OK) w->failed++;
        arena *a = arena_new();
        look l = {.a = a, .id = w->id};
        // What was answered is there, and what failed is not.
        size_t want = (size_t)i + 1 - (w->fail_at >= 0 && i >= w->fail_at);
        if (store_do(w->sh, STORE_READ, look_op, &l, &w->err) != DEP_OK || l.items != want) w->failed++;
        arena_free(a);
    }
    if (store_do(w->sh, STORE_WRITE_FULL, end_op, w, &w->err) != DEP_OK) w->failed++;
    return NULL;
}

static int count_commits(void *ctx) {
    ++*(int *)ctx;
    return 0;
}

static void test_store_shared__many_threads_share_transactions_and_lose_nothing(void **state) {
    store_fixture *r = *state;
    int commits = 0;
    sqlite3_commit_hook(r->s->db, count_commits, &commits);
    store_shared *sh = store_share(r->a, r->s);
    worker *w = NEW_N(r->a, worker, THREADS);
    pthread_t *t = NEW_N(r->a, pthread_t, THREADS);
    for (int i = 0; i < THREADS; i++) {
        w[i].r = r;
        w[i].sh = sh;
        w[i].fail_at = i % 7 == 3 ? i % WRITES : -1;
        snprintf(w[i].id, sizeof w[i].id, "%032x", i + 1);
        assert_int_equal(pthread_create(&t[i], NULL, work, &w[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        if (w[i].failed) fail_msg("thread %d: %d: %s", i, w[i].failed, w[i].err.msg);
    printf("# %d writes of %d threads in %d transactions\n", THREADS * (WRITES + 2), THREADS, commits);
    assert_true(commits <= THREADS * (WRITES + 2));
    delegation_rows rows;
    store *other = open_store(r, "/w");
    ok(store_delegation_list(r->a, other, S(""), SIZE_MAX, &rows, &r->err));
    assert_int_equal(rows.n, THREADS);
    for (size_t i = 0; i < rows.n; i++) assert_int_equal(rows.p[i].status, DELEG_COMPLETED);
    int64_t all = 0;
    for (int i = 0; i < THREADS; i++) all += WRITES - (w[i].fail_at >= 0);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM activity"), all);
    ok(store_check(other, &r->err));
}

// --- One transaction -------------------------------------------------------------------------------------

// A leader that holds everybody up until `waiting` others are in the queue; then they share a transaction.
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool inside, go;
} gate;

static dep_status gate_op(store *s, void *ctx, dep_err *err) {
    (void)s;
    (void)err;
    gate *g = ctx;
    pthread_mutex_lock(&g->lock);
    g->inside = true;
    pthread_cond_broadcast(&g->changed);
    while (!g->go) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    return DEP_OK;
}

typedef struct {
    store_shared *sh;
    store_mode mode;
    store_op *op;
    void *ctx;
    dep_status status;
    dep_err err;
} caller;

static void *call_one(void *ctx) {
    caller *c = ctx;
    c->status = store_do(c->sh, c->mode, c->op, c->ctx, &c->err);
    return NULL;
}

// Does all of them in one transaction, in their order.
static void together(store_shared *sh, caller *callers, size_t n) {
    gate g = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    caller first = {.sh = sh, .mode = STORE_READ, .op = gate_op, .ctx = &g};
    pthread_t leader, t[16];
    assert_int_equal(pthread_create(&leader, NULL, call_one, &first), 0);
    pthread_mutex_lock(&g.lock);
    while (!g.inside) pthread_cond_wait(&g.changed, &g.lock);
    pthread_mutex_unlock(&g.lock);
    for (size_t i = 0; i < n; i++) {
        callers[i].sh = sh;
        assert_int_equal(pthread_create(&t[i], NULL, call_one, &callers[i]), 0);
        while (store_shared_waiting(sh) < i + 1) sched_yield();
    }
    pthread_mutex_lock(&g.lock);
    g.go = true;
    pthread_cond_broadcast(&g.changed);
    pthread_mutex_unlock(&g.lock);
    assert_int_equal(pthread_join(leader, NULL), 0);
    for (size_t i = 0; i < n; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
}

static worker named(const char *id) {
    worker w = {0};
    snprintf(w.id, sizeof w.id, "%s", id);
    return w;
}

static void test_store_shared__who_waits_shares_a_transaction_and_a_failed_op_is_undone_alone(void **state) {
    store_fixture *r = *state;
    int commits = 0;
    worker w[3] = {named(ID1), named(ID2), named(ID3)};
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    sqlite3_commit_hook(r->s->db, count_commits, &commits);
    store_shared *sh = store_share(r->a, r->s);
    look before = {.a = r->a, .id = ID1};
    caller callers[] = {
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[1]},
        {.mode = STORE_WRITE_FULL, .op = fail_op, .ctx = &w[0]},
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[1]}, // there already
        {.mode = STORE_WRITE_FULL, .op = add_item_op, .ctx = &w[0]},
        {.mode = STORE_READ, .op = look_op, .ctx = &before},
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[2]},
    };
    together(sh, callers, 6);
    static const dep_status expected[] = {DEP_OK, DEP_ERR_NOT_FOUND, DEP_ERR_EXISTS, DEP_OK, DEP_OK, DEP_OK};
    for (size_t i = 0; i < 6; i++) assert_int_equal(callers[i].status, expected[i]);
    assert_int_equal(commits, 1);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM activity"), 1);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM delegations"), 3);
    assert_string_equal(callers[1].err.msg, "there is no delegation " ID4 " in this workspace");
}

// One that goes on although a part of it failed.
static dep_status part_fails_op(store *s, void *ctx, dep_err *err) {
    worker *w = ctx;
    const activity_row items[] = {{.kind = S("text"), .data = S("{}")}};
    const message_row message = {S("user"), S("{}")};
    const str missing = S(ID4);
    dep_err why;
    if (store_message_add(s, str_z(w->id), &message, 1, &missing, 1, true, &why) != DEP_ERR_NOT_FOUND)
        return err_set(err, DEP_ERR_INTERNAL, "it was there");
    return store_activity_add(s, str_z(w->id), items, 1, false, err);
}

static void test_store_shared__a_part_that_failed_is_undone_though_its_op_goes_on(void **state) {
    store_fixture *r = *state;
    worker w = named(ID1);
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    store_shared *sh = store_share(r->a, r->s);
    ok(store_do(sh, STORE_WRITE_FULL, part_fails_op, &w, &r->err));
    assert_int_equal(ask_db(r, "SELECT count(*) FROM messages"), 0);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM activity"), 1);
}

static void test_store_shared__an_op_that_writes_more_than_it_said_fails(void **state) {
    store_fixture *r = *state;
    worker w = named(ID1);
    store_shared *sh = store_share(r->a, r->s);
    refused(store_do(sh, STORE_READ, add_row_op, &w, &r->err), DEP_ERR_INTERNAL,
            "STORE_WRITE_FULL is needed");
    refused(store_do(sh, STORE_WRITE, add_row_op, &w, &r->err), DEP_ERR_INTERNAL,
            "STORE_WRITE_FULL is needed");
    ok(store_do(sh, STORE_WRITE_FULL, add_row_op, &w, &r->err));
    refused(store_do(sh, STORE_WRITE, add_item_op, &w, &r->err), DEP_ERR_INTERNAL,
            "STORE_WRITE_FULL is needed");
    assert_int_equal(ask_db(r, "SELECT count(*) FROM activity"), 0);
}

static int refuse_commit(void *ctx) {
    return ++*(int *)ctx == 1;
}

static void test_store_shared__a_commit_that_fails_is_the_error_of_every_op_of_it(void **state) {
    store_fixture *r = *state;
    int commits = 0;
    worker w[2] = {named(ID1), named(ID2)};
    sqlite3_commit_hook(r->s->db, refuse_commit, &commits);
    store_shared *sh = store_share(r->a, r->s);
    look none = {.a = r->a, .id = ID3};
    caller callers[] = {
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[0]},
        {.mode = STORE_READ, .op = look_op, .ctx = &none},
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[1]},
        {.mode = STORE_WRITE_FULL, .op = fail_op, .ctx = &w[0]},
    };
    together(sh, callers, 4);
    assert_int_equal(callers[0].status, DEP_ERR_INTERNAL);
    assert_int_equal(callers[1].status, DEP_ERR_NOT_FOUND);
    assert_int_equal(callers[2].status, DEP_ERR_INTERNAL);
    assert_string_equal(callers[0].err.msg, callers[2].err.msg);
    assert_int_equal(callers[3].status, DEP_ERR_NOT_FOUND); // its own
    assert_int_equal(ask_db(r, "SELECT count(*) FROM delegations"), 0);
    ok(store_do(sh, STORE_WRITE_FULL, add_row_op, &w[0], &r->err));
    assert_int_equal(ask_db(r, "SELECT count(*) FROM delegations"), 1);
}

// SQLite gives up the whole transaction under it.
static dep_status lose_op(store *s, void *ctx, dep_err *err) {
    worker *w = ctx;
    TRY(add_item_op(s, w, err));
    if (sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL) != SQLITE_OK) return sql_fail(s, err);
    return err_set(err, DEP_ERR_IO, "the disk is gone");
}

static void test_store_shared__a_transaction_lost_in_the_middle_fails_what_came_before_and_not_the_rest(
    void **state) {
    store_fixture *r = *state;
    worker w[3] = {named(ID1), named(ID2), named(ID3)};
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    store_shared *sh = store_share(r->a, r->s);
    caller callers[] = {
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[1]},
        {.mode = STORE_WRITE_FULL, .op = lose_op, .ctx = &w[0]},
        {.mode = STORE_WRITE_FULL, .op = add_row_op, .ctx = &w[2]},
    };
    together(sh, callers, 3);
    assert_int_equal(callers[0].status, DEP_ERR_IO);
    assert_non_null(strstr(callers[0].err.msg, "the disk is gone"));
    assert_int_equal(callers[1].status, DEP_ERR_IO);
    assert_int_equal(callers[2].status, DEP_OK);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM delegations"), 2);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM activity"), 0);
}

// --- Memory, commands, reading only ------------------------------------------------------------------------

static void test_store_shared__memory_that_ends_on_the_leaders_stack_fails_its_owner_alone(void **state) {
    store_fixture *r = *state;
    worker w = named(ID1);
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    store_shared *sh = store_share(r->a, r->s);
    int left = 1;
    arena_source source = scarce_source(&left);
    arena *poor = arena_new_from(&source, true);
    look l = {.a = poor, .id = ID1};
    caller callers[] = {
        {.mode = STORE_READ, .op = look_op, .ctx = &l},
        {.mode = STORE_WRITE_FULL, .op = look_op, .ctx = &l},
        {.mode = STORE_WRITE_FULL, .op = add_item_op, .ctx = &w},
    };
    together(sh, callers, 3);
    assert_int_equal(callers[0].status, DEP_ERR_NOMEM);
    assert_int_equal(callers[1].status, DEP_ERR_NOMEM);
    assert_int_equal(callers[2].status, DEP_OK);
    arena_free(poor);
}

static dep_status stop_op(store *s, void *ctx, dep_err *err) {
    return store_command_add(s, str_z(ctx), S("stop"), err);
}

static void test_store_shared__a_command_is_announced_after_the_commit(void **state) {
    store_fixture *r = *state;
    str mine;
    command_rows rows;
    store *other = open_store(r, "/w");
    ok(store_run_begin(r->a, other, &mine, &r->err));
    ok(add(r, other, ID1, DELEG_RUNNING));
    store_shared *sh = store_share(r->a, r->s);
    ok(store_do(sh, STORE_WRITE_FULL, stop_op, (void *)ID1, &r->err));
    assert_int_equal(r->s->n_pokes, 0);
    char byte;
    assert_int_equal(recv(store_run_socket(other), &byte, 1, MSG_PEEK), 1);
    ok(store_command_take(r->a, other, &rows, &r->err));
    assert_int_equal(rows.n, 1);
}

typedef struct {
    int n; // processes that get a command
} many;

static dep_status stop_many_op(store *s, void *ctx, dep_err *err) {
    for (int i = 0; i < ((many *)ctx)->n; i++) {
        char id[33];
        snprintf(id, sizeof id, "%032x", i + 1);
        TRY(store_command_add(s, str_z(id), S("stop"), err));
    }
    return DEP_OK;
}

static void test_store_shared__processes_beyond_those_remembered_find_their_commands_by_polling(
    void **state) {
    store_fixture *r = *state;
    enum { ALL = STORE_POKES + 1 };
    store *runs[ALL];
    str run;
    for (int i = 0; i < ALL; i++) {
        runs[i] = open_store(r, "/w");
        ok(store_run_begin(r->a, runs[i], &run, &r->err));
        ok(add(r, runs[i], str_fmt(r->a, "%032x", i + 1).p, DELEG_RUNNING));
    }
    store_shared *sh = store_share(r->a, r->s);
    for (int n = STORE_POKES; n <= ALL; n++) {
        int told = 0;
        ok(store_do(sh, STORE_WRITE_FULL, stop_many_op, &(many){n}, &r->err));
        for (int i = 0; i < n; i++) {
            command_rows rows;
            char byte;
            told += recv(store_run_socket(runs[i]), &byte, 1, MSG_PEEK) == 1;
            ok(store_command_take(r->a, runs[i], &rows, &r->err));
            assert_int_equal(rows.n, 1);
        }
        assert_int_equal(told, STORE_POKES);
    }
}

static void test_store_shared__a_store_for_reading_reads_and_refuses_to_write(void **state) {
    store_fixture *r = *state;
    worker w = named(ID2);
    store *s;
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_open(r->a, r->state, S("/w"), true, &r->clock, &s, &r->err));
    store_shared *sh = store_share(r->a, s);
    look l = {.a = r->a, .id = ID1, .status = DELEG_FAILED};
    ok(store_do(sh, STORE_READ, look_op, &l, &r->err));
    assert_int_equal(l.status, DELEG_RUNNING);
    refused(store_do(sh, STORE_WRITE_FULL, add_row_op, &w, &r->err), DEP_ERR_REFUSED, "reading only");
    assert_int_equal(store_do(sh, STORE_WRITE, add_row_op, &w, NULL), DEP_ERR_REFUSED);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_shared__many_threads_share_transactions_and_lose_nothing),
        STORE_TEST(test_store_shared__who_waits_shares_a_transaction_and_a_failed_op_is_undone_alone),
        STORE_TEST(test_store_shared__a_part_that_failed_is_undone_though_its_op_goes_on),
        STORE_TEST(test_store_shared__an_op_that_writes_more_than_it_said_fails),
        STORE_TEST(test_store_shared__a_commit_that_fails_is_the_error_of_every_op_of_it),
        STORE_TEST(
            test_store_shared__a_transaction_lost_in_the_middle_fails_what_came_before_and_not_the_rest),
        STORE_TEST(test_store_shared__memory_that_ends_on_the_leaders_stack_fails_its_owner_alone),
        STORE_TEST(test_store_shared__a_command_is_announced_after_the_commit),
        STORE_TEST(test_store_shared__processes_beyond_those_remembered_find_their_commands_by_polling),
        STORE_TEST(test_store_shared__a_store_for_reading_reads_and_refuses_to_write),
    };
    return cmocka_run_group_tests_name("store_shared", tests, NULL, NULL);
}

// Many threads at one engine: they order, continue, wait, list and stop while definitions change on disk and
// slots come and go, and in the end it closes over what still runs. Nothing is lost: each order that was
// taken ends once, with a report, and every slot is free again.
#include "support/ws_fixture.h"
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <pthread.h>
#include <stdatomic.h>

enum { STARTERS = 6, ORDERS = 80, CAP = 3, ROUNDS = 12 };

typedef struct {
    engine *e;
    arena *a; // of this thread
    unsigned seed;
    int orders;
    strs ids;
    int refused;
    atomic_bool *over;
    atomic_int *announced;
} worker;

static unsigned next_random(unsigned *seed) {
    *seed = *seed * 1103515245u + 12345u;
    return *seed >> 16;
}

static void on_ended(void *p, str id, str agent, deleg_status status) {
    (void)id, (void)agent;
    assert_true(deleg_ended(status));
    atomic_fetch_add((atomic_int *)p, 1);
}

// A definition that is being written may be refused; nothing else may go wrong.
static void order_one(worker *w) {
    delegate_order o = {.agent = S("a"), .task = S("refunds"), .background = true};
    unsigned what = next_random(&w->seed) % 4;
    if (what == 0 && w->ids.n) o.resume = w->ids.p[next_random(&w->seed) % w->ids.n];
    str id;
    dep_err err;
    dep_status status = engine_start(w->e, w->a, &o, &id, &err);
    if (status == DEP_OK) {
        vec_push(w->a, &w->ids, id);
        bool ended;
        if (what == 1) (void)engine_stop(w->e, id);
        if (what == 2) (void)engine_wait(w->e, &id, 1, false, 20, &ended, NULL, NULL);
        return;
    }
    w->refused++;
    if (status != DEP_ERR_REFUSED && status != DEP_ERR_INVALID && status != DEP_ERR_NOT_FOUND)
        fail_msg("%d: %s", status, err.msg);
}

static void *order_many(void *p) {
    worker *w = p;
    for (int i = 0; i < w->orders; i++) order_one(w);
    return NULL;
}

static void *look_and_stop(void *p) {
    worker *w = p;
    while (!atomic_load(w->over)) {
        engine_tasks all = {0};
        arena *a = arena_new();
        engine_list(w->e, a, (str){0}, &all);
        for (vec_each(const engine_task, t, &all)) {
            assert_int_equal(t->id.n, 32);
            assert_false(t->is_main);
            if (next_random(&w->seed) % 16 == 0) (void)engine_stop(w->e, t->id);
        }
        arena_free(a);
        sched_yield();
    }
    return NULL;
}

// Between two definitions, as an editor would: the fixture belongs to this thread meanwhile.
static void change_definitions(ws_fixture *f, int rounds) {
    for (int i = 0; i < rounds; i++) {
        ws_agent(f, "a",
                 i % 2 ? "knowledge: [{name: Manual, path: 'docs/**'}]\n"
                       : "knowledge: [{name: Manual, path: 'docs/**'}]\ntools: [read, grep]\n");
        ws_trust(f);
    }
}

typedef struct {
    arena *a;
    str id;
    delegation_row row;
} get;

static dep_status get_row(store *s, void *p, dep_err *err) {
    get *g = p;
    return store_delegation_get(g->a, s, g->id, &g->row, err);
}

static delegation_row stored(ws_fixture *f, engine *e, str id) {
    get g = {.a = f->a, .id = id};
    dep_err err;
    if (store_do(engine_store(e), STORE_READ, get_row, &g, &err) != DEP_OK) fail_msg("%s", err.msg);
    return g.row;
}

static engine *opened(ws_fixture *f, atomic_int *announced) {
    engine *e;
    dep_err err;
    engine_sink sink = {.ended = on_ended, .ctx = announced};
    ws_write(f, "/config/deputy/config.yaml", "limits: {running: 3}\n");
    ws_write(f, "docs/manual.md", "# Manual\n\nRefunds are accepted within seven days.\n");
    change_definitions(f, 1);
    if (engine_open(f->a, ws_open(f), &sink, &e, &err) != DEP_OK) fail_msg("%s", err.msg);
    return e;
}

static void check_ended(ws_fixture *f, engine *e, const worker *w) {
    for (vec_each(const str, id, &w->ids)) {
        delegation_row row = stored(f, e, *id);
        assert_true(deleg_ended(row.status));
        assert_true(row.status == DELEG_COMPLETED || row.status == DELEG_STOPPED);
        assert_true(row.report.n > 0);
        json *report;
        dep_err err;
        assert_int_equal(json_parse(f->a, row.report, 0, &report, &err), DEP_OK);
        assert_true(str_eq(json_str(report, S("status"), (str){0}), str_z(deleg_status_name(row.status))));
    }
}

// Every slot is free: as many as the cap allows run at once, and all of them end.
static void check_slots(ws_fixture *f, engine *e) {
    str ids[CAP];
    bool ended[CAP];
    dep_err err;
    delegate_order o = {.agent = S("a"), .task = S("refunds")};
    for (int i = 0; i < CAP; i++) {
        if (engine_start(e, f->a, &o, &ids[i], &err) != DEP_OK) fail_msg("%s", err.msg);
        assert_true(stored(f, e, ids[i]).started_ms > 0); // did not wait for a slot
    }
    assert_true(engine_wait(e, ids, CAP, false, 60000, ended, NULL, NULL));
}

static void test_delegate_stress__many_threads_at_one_engine(void **state) {
    ws_fixture *f = *state;
    atomic_bool over = false;
    atomic_int announced = 0;
    engine *e = opened(f, &announced);
    worker w[STARTERS + 1];
    pthread_t threads[STARTERS + 1];
    size_t orders = 0;
    for (int i = 0; i <= STARTERS; i++) {
        w[i] = (worker){.e = e, .a = arena_new(), .seed = (unsigned)i, .orders = ORDERS, .over = &over};
        assert_int_equal(pthread_create(&threads[i], NULL, i < STARTERS ? order_many : look_and_stop, &w[i]),
                         0);
    }
    change_definitions(f, 12);
    for (int i = 0; i < STARTERS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < STARTERS; i++) {
        bool *ended = NEW_N(f->a, bool, w[i].ids.n);
        assert_true(engine_wait(e, w[i].ids.p, w[i].ids.n, false, 60000, ended, NULL, NULL));
        orders += w[i].ids.n;
    }
    atomic_store(&over, true);
    pthread_join(threads[STARTERS], NULL);
    assert_true(orders > 0);
    for (int i = 0; i < STARTERS; i++) check_ended(f, e, &w[i]);
    check_slots(f, e);
    engine_close(e);
    assert_int_equal(atomic_load(&announced), orders); // each once
    for (int i = 0; i <= STARTERS; i++) arena_free(w[i].a);
}

// Threads that order until the engine closes: what was taken is stopped with a report, the rest is refused.
static void test_delegate_stress__closing_over_what_runs_and_waits(void **state) {
    ws_fixture *f = *state;
    atomic_int announced = 0;
    size_t orders = 0;
    engine *e = opened(f, &announced);
    worker w[STARTERS];
    pthread_t threads[STARTERS];
    for (int i = 0; i < STARTERS; i++) {
        w[i] = (worker){.e = e, .a = arena_new(), .seed = 7u * (unsigned)i + 1, .orders = ORDERS / 8};
        assert_int_equal(pthread_create(&threads[i], NULL, order_many, &w[i]), 0);
    }
    for (int i = 0; i < STARTERS; i++) pthread_join(threads[i], NULL);
    engine_close(e);
    for (int i = 0; i < STARTERS; i++) {
        check_ended(f, e, &w[i]);
        orders += w[i].ids.n;
        arena_free(w[i].a);
    }
    assert_int_equal(atomic_load(&announced), orders);
}

// --- Two processes, one row ----------------------------------------------------------------------

typedef struct {
    engine *e;
    str id;
    pthread_barrier_t *at_once;
    dep_status status;
    deleg_status ended;
} taker;

static void *take_and_run(void *p) {
    taker *t = p;
    delegate_report rep = {0};
    dep_err err;
    arena *a = arena_new();
    pthread_barrier_wait(t->at_once);
    t->status = engine_run_queued(t->e, a, t->id, NULL, &rep, &err);
    t->ended = rep.status;
    arena_free(a);
    return NULL;
}

static void test_delegate_stress__one_of_two_processes_runs_a_queued_row(void **state) {
    ws_fixture *f = *state;
    atomic_int announced = 0;
    engine *e[2] = {opened(f, &announced), NULL};
    pthread_barrier_t at_once;
    dep_err err;
    if (engine_open(f->a, ws_open(f), NULL, &e[1], &err) != DEP_OK) fail_msg("%s", err.msg);
    pthread_barrier_init(&at_once, NULL, 2);
    for (int round = 0; round < ROUNDS; round++) {
        taker t[2];
        pthread_t threads[2];
        str id;
        delegate_order o = {.agent = S("a"), .task = S("refunds")};
        if (engine_queue(e[0], f->a, &o, &id, &err) != DEP_OK) fail_msg("%s", err.msg);
        for (int i = 0; i < 2; i++) {
            t[i] = (taker){.e = e[i], .id = id, .at_once = &at_once};
            assert_int_equal(pthread_create(&threads[i], NULL, take_and_run, &t[i]), 0);
        }
        for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
        int winner = t[0].status == DEP_OK ? 0 : 1;
        assert_int_equal(t[winner].status, DEP_OK);
        assert_int_equal(t[winner].ended, DELEG_COMPLETED);
        assert_int_equal(t[1 - winner].status, DEP_ERR_INVALID);
        assert_int_equal(stored(f, e[0], id).status, DELEG_COMPLETED);
    }
    pthread_barrier_destroy(&at_once);
    engine_close(e[1]);
    engine_close(e[0]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(test_delegate_stress__##name, ws_setup, ws_teardown)
        CASE(many_threads_at_one_engine),
        CASE(closing_over_what_runs_and_waits),
        CASE(one_of_two_processes_runs_a_queued_row),
    };
    return cmocka_run_group_tests_name("delegate_stress", tests, nullptr, nullptr);
}

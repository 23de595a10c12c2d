// A crew: every job is done once, each worker's in rising order; it stops when asked, and hands on what
// fails.
#include "search/crew.h"
#include "support/support.h"
#include <deputy/thread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

enum { JOBS = 1000 };

typedef struct {
    crew *c;
    atomic_int done[JOBS];
    size_t last[CREW_MOST]; // number of the last job, counted from 1
    atomic_bool wrong;
    size_t fails_at; // counted from 1
} work;

static dep_status job(void *ctx, size_t worker, size_t i, dep_err *err) {
    work *w = ctx;
    if (worker >= crew_size(w->c) || i + 1 <= w->last[worker]) atomic_store(&w->wrong, true);
    w->last[worker] = i + 1;
    atomic_fetch_add(&w->done[i], 1);
    char *p = arena_alloc(crew_arena(w->c, worker), 100);
    memset(p, 1, 100);
    return i + 1 == w->fails_at ? err_set(err, DEP_ERR_LIMIT, "job %zu", i) : DEP_OK;
}

static void do_all(hands *h, pool *p, size_t most) {
    static const size_t sizes[] = {0, 1, 2, JOBS};
    arena *a = arena_new();
    work *w = NEW(a, work);
    w->c = crew_new(a, h, p, most, NULL);
    assert_true(crew_size(w->c) >= 1 && crew_size(w->c) <= CREW_MOST);
    for (size_t s = 0; s < 4; s++) {
        memset(w->last, 0, sizeof w->last);
        for (size_t i = 0; i < JOBS; i++) atomic_store(&w->done[i], 0);
        assert_int_equal(crew_run(w->c, sizes[s], job, w, NULL), DEP_OK);
        for (size_t i = 0; i < JOBS; i++) assert_int_equal(atomic_load(&w->done[i]), i < sizes[s]);
    }
    assert_false(atomic_load(&w->wrong) || crew_stopped(w->c));
    arena_free(a);
}

static void test_search_crew__each_job_is_done_once(void **state) {
    (void)state;
    hands *h = hands_new(3);
    pool *p = pool_new(1 << 20);
    for (size_t most = 0; most <= CREW_MOST + 1; most++) {
        do_all(NULL, p, most);
        for (int again = 0; again < 20; again++) do_all(h, p, most);
    }
    hands_free(h);
    pool_free(p);
}

static void *many_crews(void *ctx) {
    for (int i = 0; i < 30; i++) do_all(ctx, NULL, CREW_MOST);
    return NULL;
}

// There are fewer hands than crews: some do their work alone.
static void test_search_crew__several_share_hands(void **state) {
    (void)state;
    hands *h = hands_new(2);
    pthread_t t[6];
    for (size_t i = 0; i < 6; i++) assert_int_equal(thread_start(&t[i], 0, many_crews, h), 0);
    for (size_t i = 0; i < 6; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    hands_free(h);
}

static void hold(void *ctx) {
    const atomic_bool *go = ctx;
    while (!atomic_load(go)) sched_yield();
}

// All hands are held by somebody else: neither the work nor the end waits for one.
static void test_search_crew__nobody_waits_for_a_hand(void **state) {
    (void)state;
    hands *h = hands_new(2);
    atomic_bool go = false;
    while (!hands_lend(h, hold, &go)) {}
    while (!hands_lend(h, hold, &go)) {}
    do_all(h, NULL, CREW_MOST);
    atomic_store(&go, true);
    hands_free(h);
}

static void test_search_crew__what_fails_is_handed_on(void **state) {
    (void)state;
    arena *a = arena_new();
    work *w = NEW(a, work);
    dep_err err = {0};
    w->c = crew_new(a, NULL, NULL, CREW_MOST, NULL);
    w->fails_at = 3;
    assert_int_equal(crew_run(w->c, JOBS, job, w, &err), DEP_ERR_LIMIT);
    assert_string_equal(err.msg, "job 2");
    arena_free(a);
}

static bool yes_after(void *ctx) {
    int *left = ctx;
    return --*left < 0;
}

static void test_search_crew__it_stops_when_asked_and_stays_so(void **state) {
    (void)state;
    arena *a = arena_new();
    work *w = NEW(a, work);
    int left = 2;
    stop_sign asks = {.ask = yes_after, .ctx = &left};
    w->c = crew_new(a, NULL, NULL, 1, &asks);
    assert_int_equal(crew_run(w->c, JOBS, job, w, NULL), DEP_OK);
    assert_true(crew_stopped(w->c) && crew_stops(w->c, 0));
    assert_int_equal(atomic_load(&w->done[1]), 1);
    assert_int_equal(atomic_load(&w->done[2]), 0);
    assert_int_equal(crew_run(w->c, JOBS, job, w, NULL), DEP_OK);
    assert_int_equal(atomic_load(&w->done[2]), 0);
    assert_int_equal(left, -1); // nobody is asked again
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_crew__each_job_is_done_once),
        cmocka_unit_test(test_search_crew__several_share_hands),
        cmocka_unit_test(test_search_crew__nobody_waits_for_a_hand),
        cmocka_unit_test(test_search_crew__what_fails_is_handed_on),
        cmocka_unit_test(test_search_crew__it_stops_when_asked_and_stays_so),
    };
    return cmocka_run_group_tests_name("search_crew", tests, NULL, NULL);
}

// Hands are lent to whoever asks, no more than there may be, come back, and can be taken back before they
// begin.
#include "support/support.h"
#include <deputy/hands.h>
#include <deputy/thread.h>
#include <stdatomic.h>

typedef struct {
    atomic_int begun, done;
    atomic_bool go;
} work;

static void run(void *ctx) {
    work *w = ctx;
    atomic_fetch_add(&w->begun, 1);
    while (!atomic_load(&w->go)) sched_yield();
    atomic_fetch_add(&w->done, 1);
}

static void until(const atomic_int *v, int n) {
    while (atomic_load(v) != n) sched_yield();
}

static void test_base_hands__no_more_are_lent_than_there_are(void **state) {
    (void)state;
    for (size_t most = 0; most < 4; most++) {
        hands *h = hands_new(most);
        // Again and again: they come back.
        for (int round = 0; round < 50; round++) {
            work w = {0};
            // The last of the round before may be on its way back.
            for (size_t lent = 0; lent < most;) lent += hands_lend(h, run, &w);
            assert_false(hands_lend(h, run, &w));
            until(&w.begun, (int)most);
            atomic_store(&w.go, true);
            until(&w.done, (int)most);
        }
        hands_free(h);
    }
    assert_false(hands_lend(NULL, run, NULL));
    hands *h = hands_new(HANDS_MOST + 1);
    work w = {.go = true};
    for (int i = 0; i < HANDS_MOST; i++) assert_true(hands_lend(h, run, &w));
    hands_free(h); // waits
    assert_int_equal(atomic_load(&w.done), HANDS_MOST);
}

static void test_base_hands__what_is_taken_back_never_begins(void **state) {
    (void)state;
    hands *h = hands_new(2);
    int taken = 0;
    for (int round = 0; round < 3000; round++) {
        work w = {.go = true};
        while (!hands_lend(h, run, &w)) sched_yield();
        if (round % 3 == 0) sched_yield();
        bool back = hands_take_back(h, &w);
        taken += back;
        if (!back) until(&w.done, 1);
        assert_false(hands_take_back(h, &w));
        assert_int_equal(atomic_load(&w.begun), back ? 0 : 1);
    }
    hands_free(h);
    assert_true(taken > 0);
}

static void *many(void *ctx) {
    hands *h = ctx;
    for (int i = 0; i < 500; i++) {
        work w = {.go = true};
        if (hands_lend(h, run, &w) && !hands_take_back(h, &w)) until(&w.done, 1);
    }
    return NULL;
}

static void test_base_hands__any_number_of_threads_may_ask(void **state) {
    (void)state;
    hands *h = hands_new(3);
    pthread_t t[8];
    for (size_t i = 0; i < 8; i++) assert_int_equal(thread_start(&t[i], 0, many, h), 0);
    for (size_t i = 0; i < 8; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    hands_free(h);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_hands__no_more_are_lent_than_there_are),
        cmocka_unit_test(test_base_hands__what_is_taken_back_never_begins),
        cmocka_unit_test(test_base_hands__any_number_of_threads_may_ask),
    };
    return cmocka_run_group_tests_name("base_hands", tests, NULL, NULL);
}

// What a thread gets: its argument, no signals, and the stack that was asked for.
#include "support/support.h"
#include <deputy/thread.h>
#include <sched.h>
#include <signal.h>

typedef struct {
    sigset_t blocked;
    size_t stack;
} seen;

static void *look(void *ctx) {
    seen *s = ctx;
    pthread_attr_t attr;
    pthread_sigmask(SIG_BLOCK, NULL, &s->blocked);
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstacksize(&attr, &s->stack);
        pthread_attr_destroy(&attr);
    }
    return s;
}

static void test_base_thread__it_gets_no_signals_and_the_caller_keeps_its_own(void **state) {
    (void)state;
    seen s = {0};
    sigset_t before, after;
    pthread_t t;
    void *ret;
    pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(thread_start(&t, 0, look, &s), 0);
    assert_int_equal(pthread_join(t, &ret), 0);
    assert_ptr_equal(ret, &s);
    assert_true(sigismember(&s.blocked, SIGINT) && sigismember(&s.blocked, SIGTERM));
    pthread_sigmask(SIG_BLOCK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGINT), sigismember(&after, SIGINT));
}

static void test_base_thread__it_has_the_stack_that_it_needs(void **state) {
    (void)state;
    seen s = {0};
    pthread_t t;
    assert_int_equal(thread_start(&t, (size_t)256 << 10, look, &s), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_true(s.stack >= (size_t)256 << 10);
    // Less than a thread can have is said, not run.
    assert_int_not_equal(thread_start(&t, (size_t)-1 / 2, look, &s), 0);
}

static void test_base_thread__only_processors_that_it_may_run_on_are_counted(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    assert_int_equal(thread_processors(), CPU_COUNT(&all));
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && !CPU_COUNT(&one); i++) {
        if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    }
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(thread_processors(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void *where(void *ctx) {
    *(int *)ctx = sched_getcpu();
    return ctx;
}

// Where there are several processors it begins on another one; with one alone it begins there.
static void test_base_thread__beside_the_caller_is_on_another_processor(void **state) {
    (void)state;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    for (int alone = 0; alone < 2; alone++) {
        pthread_t t;
        int there = -1, here = sched_getcpu();
        // Nothing may move this thread meanwhile.
        CPU_ZERO(&one);
        CPU_SET(here, &one);
        if (alone) assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(thread_start_beside(&t, where, &there), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
        assert_true(there >= 0);
        if (alone) assert_int_equal(there, here);
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

static void test_base_thread__a_wait_ends_when_its_time_is_over(void **state) {
    (void)state;
    pthread_cond_t c;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    thread_cond_init(&c);
    pthread_mutex_lock(&lock);
    struct timespec before = thread_in_ms(0), at = thread_in_ms(30), late = thread_in_ms(2999);
    while (pthread_cond_timedwait(&c, &lock, &at) == 0) {}
    pthread_mutex_unlock(&lock);
    struct timespec now = thread_in_ms(0);
    assert_true((now.tv_sec - before.tv_sec) * 1000000000 + now.tv_nsec - before.tv_nsec >= 30000000);
    assert_true(late.tv_nsec >= 0 && late.tv_nsec < 1000000000);
    assert_in_range(late.tv_sec - before.tv_sec, 2, 3);
    pthread_cond_destroy(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_thread__it_gets_no_signals_and_the_caller_keeps_its_own),
        cmocka_unit_test(test_base_thread__it_has_the_stack_that_it_needs),
        cmocka_unit_test(test_base_thread__only_processors_that_it_may_run_on_are_counted),
        cmocka_unit_test(test_base_thread__beside_the_caller_is_on_another_processor),
        cmocka_unit_test(test_base_thread__a_wait_ends_when_its_time_is_over),
    };
    return cmocka_run_group_tests_name("base_thread", tests, NULL, NULL);
}

// sort_until: what it gives is what qsort gives; stopped, all elements are still there.
#include "support/support.h"
#include <deputy/arena.h>
#include <deputy/sort.h>
#include <stdlib.h>

typedef struct {
    int key, number;
} item;

static int by_key(const void *a, const void *b) {
    const item *x = a, *y = b;
    return (x->key > y->key) - (x->key < y->key);
}

static bool yes_after(void *ctx) {
    int *left = ctx;
    return --*left < 0;
}

static item *random_items(arena *a, size_t n) {
    item *p = NEW_N(a, item, n);
    uint32_t seed = (uint32_t)n * 2654435761u + 1;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        p[i] = (item){.key = (int)(seed >> 20), .number = (int)i};
    }
    return p;
}

static void test_base_sort__it_sorts(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 3, 10, 511, 512, 513, 4096, 100000};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        arena *a = arena_new();
        size_t n = sizes[k];
        item *p = random_items(a, n), *q = random_items(a, n);
        bool *seen = NEW_N(a, bool, n + 1);
        int left = 1000000;
        stop_sign stop = {.ask = yes_after, .ctx = &left};
        p = sort_until(a, p, n, sizeof *p, by_key, k % 2 ? &stop : NULL);
        if (n) qsort(q, n, sizeof *q, by_key);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(p[i].key, q[i].key);
            assert_false(seen[p[i].number]);
            seen[p[i].number] = true;
        }
        arena_free(a);
    }
}

static void test_base_sort__stopped_it_loses_nothing(void **state) {
    (void)state;
    enum { N = 100000 };
    for (int after = 0; after < 60; after += 3) {
        arena *a = arena_new();
        item *p = random_items(a, N);
        bool *seen = NEW_N(a, bool, N);
        int left = after;
        stop_sign stop = {.ask = yes_after, .ctx = &left};
        p = sort_until(a, p, N, sizeof *p, by_key, &stop);
        for (size_t i = 0; i < N; i++) seen[p[i].number] = true;
        for (size_t i = 0; i < N; i++) assert_true(seen[i]);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_sort__it_sorts),
        cmocka_unit_test(test_base_sort__stopped_it_loses_nothing),
    };
    return cmocka_run_group_tests_name("base_sort", tests, NULL, NULL);
}

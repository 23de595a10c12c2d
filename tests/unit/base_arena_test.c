// arena: alignment, growth in place, deferred cleanup, reset, the out-of-memory unwind.
#include "support/support.h"
#include <deputy/arena.h>
#include <stdlib.h>

static void test_base_arena__allocations_are_zero_aligned_and_apart(void **state) {
    (void)state;
    arena *a = arena_new();
    char *last = NULL;
    for (size_t n = 0; n < 300; n++) {
        char *p = arena_alloc(a, n);
        assert_int_equal((uintptr_t)p % 16, 0);
        assert_ptr_not_equal(p, last);
        for (size_t i = 0; i < n; i++) assert_int_equal(p[i], 0);
        memset(p, 'x', n);
        last = p;
    }
    assert_true(arena_used(a) > 0);
    arena_free(a);
}

static void test_base_arena__the_newest_allocation_grows_in_place(void **state) {
    (void)state;
    arena *a = arena_new();
    char *p = arena_alloc(a, 10);
    memcpy(p, "0123456789", 10);
    char *q = arena_grow(a, p, 10, 100);
#ifndef DEPUTY_ARENA_ONE_EACH
    assert_ptr_equal(p, q);
#endif
    assert_memory_equal(q, "0123456789", 10);
    for (size_t i = 10; i < 100; i++) assert_int_equal(q[i], 0);
    (void)arena_alloc(a, 1);
    char *r = arena_grow(a, q, 100, 200); // no longer the newest: it moves, and keeps its bytes
    assert_ptr_not_equal(q, r);
    assert_memory_equal(r, "0123456789", 10);
    for (size_t i = 100; i < 200; i++) assert_int_equal(r[i], 0);
    arena_free(a);
}

static void test_base_arena__blocks_larger_than_any_block_are_served(void **state) {
    (void)state;
    arena *a = arena_new();
    char *p = arena_alloc(a, (size_t)5 << 20);
    p[0] = p[((size_t)5 << 20) - 1] = 'x';
    char *q = arena_alloc(a, 16);
    assert_non_null(q);
    arena_free(a);
}

typedef struct {
    int *log, *n, id;
} note;
static void write_note(void *p) {
    note *x = p;
    x->log[(*x->n)++] = x->id;
}

static void test_base_arena__cleanup_runs_in_reverse_order_once(void **state) {
    (void)state;
    int log[4] = {0}, n = 0;
    note notes[3] = {{log, &n, 1}, {log, &n, 2}, {log, &n, 3}};
    arena *a = arena_new();
    for (int i = 0; i < 3; i++) arena_defer(a, write_note, &notes[i]);
    arena_reset(a);
    assert_int_equal(n, 3);
    assert_int_equal(log[0], 3);
    assert_int_equal(log[2], 1);
    (void)arena_alloc(a, 10);
    arena_free(a);
    assert_int_equal(n, 3);
    arena_free(NULL);
}

static void test_base_arena__reset_gives_zeroed_memory_again(void **state) {
    (void)state;
    arena *a = arena_new();
    for (int round = 0; round < 3; round++) {
        char *p = arena_alloc(a, 4000);
        for (size_t i = 0; i < 4000; i++) assert_int_equal(p[i], 0);
        memset(p, 'x', 4000);
        arena_reset(a);
        assert_int_equal(arena_used(a), 0);
    }
    arena_free(a);
}

// --- Out of memory -------------------------------------------------------------------------------

typedef struct {
    size_t left, live;
} budget;
static void *budget_alloc(void *ctx, size_t n) {
    budget *b = ctx;
    if (!b->left) return NULL;
    b->left--;
    b->live++;
    return malloc(n);
}
static void budget_free(void *ctx, void *p) {
    ((budget *)ctx)->live--;
    free(p);
}

static dep_status inner(arena *a, dep_err *err) {
    ARENA_CATCH(a, err);
    for (;;) (void)arena_alloc(a, 1000);
}

static dep_status outer(arena *a, bool *after, dep_err *err) {
    ARENA_CATCH(a, err);
    dep_err ignored;
    assert_int_equal(inner(a, &ignored), DEP_ERR_NOMEM);
    *after = true; // the inner catch did not unwind past itself
    for (;;) (void)arena_alloc(a, 1000);
}

static void test_base_arena__out_of_memory_returns_from_the_nearest_catch(void **state) {
    (void)state;
    budget b = {.left = 6};
    arena_source src = {budget_alloc, budget_free, &b, NULL};
    arena *a = arena_new_from(&src, true);
    dep_err err = {0};
    bool after = false;
    assert_non_null(a);
    assert_int_equal(outer(a, &after, &err), DEP_ERR_NOMEM);
    assert_int_equal(err.status, DEP_ERR_NOMEM);
    assert_true(after);
    arena_free(a);
    assert_int_equal(b.live, 0);
    b.left = 0;
    assert_null(arena_new_from(&src, false));
}

static dep_status huge(arena *a, dep_err *err) {
    ARENA_CATCH(a, err);
    (void)arena_calloc(a, SIZE_MAX / 2, 4);
    return DEP_OK;
}

static void test_base_arena__a_product_that_overflows_is_out_of_memory(void **state) {
    (void)state;
    arena *a = arena_new();
    dep_err err;
    assert_int_equal(huge(a, &err), DEP_ERR_NOMEM);
    arena_free(a);
}

static void test_base_arena__vectors_keep_what_was_pushed_and_an_empty_one_has_no_rounds(void **state) {
    (void)state;
    arena *a = arena_new();
    VEC(int) v = {0};
    for (vec_each(int, it, &v)) fail_msg("round %d of none", *it);
    for (int i = 0; i < 1000; i++) {
        vec_push(a, &v, i);
        if (i % 7 == 0) (void)arena_alloc(a, 3); // so that growing must move
    }
    int want = 0;
    for (vec_each(int, it, &v)) assert_int_equal(*it, want++);
    assert_int_equal(want, 1000);
    arena_free(a);
}

static int grown;

static void *counted_grow(void *ctx, void *p, size_t n) {
    (void)ctx;
    grown++;
    return realloc(p, n);
}

static void *plain_alloc(void *ctx, size_t n) {
    (void)ctx;
    return malloc(n);
}

static void plain_free(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

// Two large arrays that grow by turns: neither is the newest when its turn comes.
static void test_base_arena__a_large_allocation_grows_with_its_block(void **state) {
    (void)state;
#ifndef DEPUTY_ARENA_ONE_EACH
    arena_source source = {.alloc = plain_alloc, .free = plain_free, .grow = counted_grow};
    arena *a = arena_new_from(&source, false);
    size_t n = (size_t)2 << 20;
    unsigned char *p[2] = {arena_bytes(a, n), arena_bytes(a, n)};
    memset(p[0], 1, n);
    memset(p[1], 2, n);
    (void)arena_alloc(a, 100);
    grown = 0;
    for (int turn = 0; turn < 8; turn++) {
        int k = turn % 2;
        size_t more = n + n / 2 * (size_t)(turn / 2 + 1), had = turn < 2 ? n : more - n / 2;
        p[k] = arena_grow(a, p[k], had, more);
        assert_int_equal(p[k][0], k + 1);
        assert_int_equal(p[k][n - 1], k + 1);
        assert_int_equal(p[k][more - 1], 0);
        memset(arena_alloc(a, 1000), 7, 1000);
    }
    assert_int_equal(grown, 8);
    // What shares a block with others does not take them along.
    char *small = arena_alloc(a, 10);
    small[0] = 'x';
    (void)arena_alloc(a, 10);
    assert_int_equal(*(char *)arena_grow(a, small, 10, n), 'x');
    assert_int_equal(grown, 8);
    arena_reset(a);
    arena_free(a);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_arena__allocations_are_zero_aligned_and_apart),
        cmocka_unit_test(test_base_arena__the_newest_allocation_grows_in_place),
        cmocka_unit_test(test_base_arena__blocks_larger_than_any_block_are_served),
        cmocka_unit_test(test_base_arena__a_large_allocation_grows_with_its_block),
        cmocka_unit_test(test_base_arena__cleanup_runs_in_reverse_order_once),
        cmocka_unit_test(test_base_arena__reset_gives_zeroed_memory_again),
        cmocka_unit_test(test_base_arena__out_of_memory_returns_from_the_nearest_catch),
        cmocka_unit_test(test_base_arena__a_product_that_overflows_is_out_of_memory),
        cmocka_unit_test(test_base_arena__vectors_keep_what_was_pushed_and_an_empty_one_has_no_rounds),
    };
    return cmocka_run_group_tests_name("base_arena", tests, NULL, NULL);
}

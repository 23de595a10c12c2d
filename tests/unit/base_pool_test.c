// A pool: what is given back is taken again, up to what may lie unused; arrays and arenas grow in it.
#include "support/support.h"
#include <deputy/pool.h>
#include <string.h>

static void test_base_pool__what_is_given_back_is_taken_again(void **state) {
    (void)state;
    pool *p = pool_new(3000);
    size_t got;
    char *first = pool_take(p, 1000, &got), *second = pool_take(p, 2000, NULL),
         *third = pool_take(p, 1, NULL);
    assert_true(got >= 1000);
    memset(first, 1, 1000);
    pool_give(p, first);
    pool_give(p, second);
    pool_give(p, third); // no room: to the system
    assert_ptr_equal(pool_take(p, 1500, &got), second);
    assert_true(got >= 2000);
    assert_ptr_equal(pool_take(p, 300, NULL), first);
    pool_give(p, first);
    // Far larger than what is asked for, it stays where it is.
    char *small = pool_take(p, 100, &got);
    assert_true(small != first && got < 1000);
    pool_give(p, small);
    pool_give(p, second);
    pool_give(p, NULL);
    pool_free(p);
    pool_free(NULL);
}

static void test_base_pool__arrays_grow_and_keep_what_is_in_them(void **state) {
    (void)state;
    pool *p = pool_new(1 << 20);
    void *block = NULL;
    size_t cap = 0, used = 0;
    for (; used < 100000; used++) {
        assert_true(pool_grow(p, &block, &cap, used + 1, used, sizeof(uint32_t)));
        ((uint32_t *)block)[used] = (uint32_t)used;
    }
    for (size_t i = 0; i < used; i++) assert_int_equal(((uint32_t *)block)[i], i);
    assert_false(pool_grow(p, &block, &cap, SIZE_MAX / 2, used, sizeof(uint32_t)));
    assert_int_equal(((uint32_t *)block)[used - 1], used - 1);
    pool_give(p, block);
    pool_free(p);
    // Without a pool as well.
    block = NULL;
    cap = 0;
    assert_true(pool_grow(NULL, &block, &cap, 10, 0, 8));
    pool_give(NULL, block);
}

static void test_base_pool__an_arena_lives_in_it(void **state) {
    (void)state;
    pool *p = pool_new((size_t)4 << 20);
    arena_source source = pool_source(p);
    for (int round = 0; round < 3; round++) {
        arena *a = arena_new_from(&source, false);
        VEC(size_t) v = {0};
        // Past the size from which blocks grow in place.
        for (size_t i = 0; i < 600000; i++) vec_push(a, &v, i);
        for (size_t i = 0; i < v.n; i += 1000) assert_int_equal(v.p[i], i);
        arena_free(a);
    }
    pool_free(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base_pool__what_is_given_back_is_taken_again),
        cmocka_unit_test(test_base_pool__arrays_grow_and_keep_what_is_in_them),
        cmocka_unit_test(test_base_pool__an_arena_lives_in_it),
    };
    return cmocka_run_group_tests_name("base_pool", tests, NULL, NULL);
}

// How many threads are worth reading what a walk has found.
#include "search/load_int.h"
#include "support/dir_fixture.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum : size_t { MIB = (size_t)1 << 20 };

// n files of that many bytes each, of which hardly any is on the disk.
static size_t threads_for(dir_fixture *f, size_t n, size_t bytes) {
    search_space space = {.root = f->dir};
    loader l = {.space = &space, .rules.max_file = 16 * MIB};
    for (size_t i = 0; i < n; i++) {
        str name = str_fmt(f->a, "%zu-%zu.md", bytes, i);
        int fd = openat(f->dir, str_cz(f->a, name), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
        close(fd);
        vec_push(f->a, &l.candidates, (candidate){.path = name});
    }
    return load_threads(&l);
}

static void test_search_load__few_large_files_are_worth_several_threads(void **state) {
    dir_fixture *f = *state;
    assert_int_equal(threads_for(f, 0, 100), 0);
    assert_int_equal(threads_for(f, 1, 100 * MIB), 0);
    assert_int_equal(threads_for(f, 2, MIB), 2);
    assert_int_equal(threads_for(f, 2, MIB - 1), 1);
    assert_int_equal(threads_for(f, 3, MIB / 2), 1);
    // Of more files some are asked about. Each thread may hold some of them: four at most.
    assert_int_equal(threads_for(f, 20, MIB / 8), 2);
    assert_int_equal(threads_for(f, 3, MIB), 3);
    assert_int_equal(threads_for(f, 4, MIB), 4);
    assert_int_equal(threads_for(f, 5, MIB), 4);
}

static void test_search_load__many_small_files_are_worth_some(void **state) {
    dir_fixture *f = *state;
    assert_int_equal(threads_for(f, 63, 100), 0);
    assert_int_equal(threads_for(f, 64, 100), 1);
    assert_int_equal(threads_for(f, 128, 100), 2);
    assert_int_equal(threads_for(f, 64 * 5, 100), 5);
}

static void test_search_load__what_is_known_is_not_read(void **state) {
    dir_fixture *f = *state;
    search_space space = {.root = f->dir};
    loader l = {.space = &space, .rules.max_file = 16 * MIB};
    static const corpus_track track;
    // Of those the walk has told how large they are: nothing is asked.
    for (int i = 0; i < 200; i++) {
        candidate c = {.path = S("nowhere.md"), .sig = {.ino = 1, .size = 8 << 20}};
        c.known = i % 100 ? &track : NULL;
        vec_push(f->a, &l.candidates, c);
    }
    assert_int_equal(load_threads(&l), 4);
    l.candidates.p[0].known = &track;
    assert_int_equal(load_threads(&l), 0);
}

static void test_search_load__what_is_no_file_any_more_has_no_size(void **state) {
    dir_fixture *f = *state;
    search_space space = {.root = f->dir};
    loader l = {.space = &space, .rules.max_file = 16 * MIB};
    assert_int_equal(symlinkat("/etc", f->dir, "link.md"), 0);
    vec_push(f->a, &l.candidates, (candidate){.path = S("gone.md")});
    vec_push(f->a, &l.candidates, (candidate){.path = S("link.md")});
    assert_int_equal(load_threads(&l), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(test_search_load__##name, dir_setup, dir_teardown)
    const struct CMUnitTest tests[] = {
        TEST(few_large_files_are_worth_several_threads),
        TEST(many_small_files_are_worth_some),
        TEST(what_is_known_is_not_read),
        TEST(what_is_no_file_any_more_has_no_size),
    };
    return cmocka_run_group_tests_name("search_load", tests, NULL, NULL);
}

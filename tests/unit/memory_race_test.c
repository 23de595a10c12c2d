// Several writers at once (C44): 20 writers with 200 appends each in one process, then in two processes with
// overwrites mixed in. Nothing is lost or torn, and a reader never sees an empty or half a file. The
// directory is in memory where there is such a place: each write is synced, and 4000 of them would wait for a
// disk for minutes.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/memory.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WRITERS = 20, FILES = 10 };

typedef struct {
    char *dir;
    int root;
    int each;  // appends of a writer
    int files; // that the writers share
    str state; // of trust; empty: none
} fixture;

typedef struct {
    const fixture *f;
    int id;
    bool overwrites;
    _Atomic bool *stop; // of a reader
    const char *failed;
} worker;

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    bool fast;
    assert_non_null(f);
    f->dir = temp_dir_fast(&fast);
    f->each = under_valgrind() || !fast ? 5 : 200;
    f->files = FILES;
    f->root = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->root >= 0);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    close(f->root);
    temp_remove(f->dir);
    free(f);
    return 0;
}

static memory_scope *open_scope(const fixture *f, arena *a, const char **failed) {
    memory_scope *m = NULL;
    trust_list *t = NULL;
    if (f->state.n && trust_open(a, f->state, S("/w"), false, &t, NULL) != DEP_OK) *failed = "trust_open";
    if (!*failed && memory_open(a, f->root, S(".deputy/memory"), true, t, NULL, &m, NULL) != DEP_OK)
        *failed = "memory_open";
    return m;
}

static const char *write_one(memory_scope *m, arena *a, str file, str line, bool overwrite) {
    memory_written w;
    memory_write_opts o = {.overwrite = overwrite};
    dep_status status;
    dep_err err;
    // Who waits for the lock is not served in order: under a load this heavy one may starve for its time.
    do {
        status = memory_write(a, m, file, line, &o, &w, &err);
    } while (status == DEP_ERR_BUSY);
    if (status == DEP_OK) return NULL;
    fprintf(stderr, "%s\n", err.msg);
    return "memory_write";
}

static str file_name(arena *a, int i) {
    return i ? str_fmt(a, "notes-%d.md", i) : S("MEMORY.md");
}

static void *writer(void *p) {
    worker *w = p;
    arena *a = arena_new(), *s = arena_new();
    memory_scope *m = open_scope(w->f, a, &w->failed);
    str file = file_name(a, w->id % w->f->files);
    for (int i = 0; i < w->f->each && !w->failed; i++) {
        w->failed = write_one(m, s, file, str_fmt(s, "w%02d-%03d", w->id, i), false);
        if (w->overwrites && !w->failed && i % 4 == 0)
            w->failed = write_one(m, s, S("state.md"), str_fmt(s, "w%02d-%03d whole", w->id, i), true);
        arena_reset(s);
    }
    arena_free(s);
    arena_free(a);
    return NULL;
}

// Every version that can be opened is whole, and each is as long as the one before.
static void *reader(void *p) {
    worker *w = p;
    arena *a = arena_new(), *s = arena_new();
    memory_scope *m = open_scope(w->f, a, &w->failed);
    size_t last = 0;
    while (!w->failed && !atomic_load(w->stop)) {
        str text;
        dep_err err;
        dep_status status = memory_read(s, m, S("MEMORY.md"), true, &text, &err);
        if (status == DEP_ERR_NOT_FOUND && last == 0) continue;
        if (status != DEP_OK) {
            fprintf(stderr, "%s\n", err.msg);
            w->failed = "memory_read";
        } else if (text.n < last || !str_starts(text, S("<!-- deputy: ")) || !str_ends(text, S("\n"))) {
            w->failed = "a torn file";
        } else {
            last = text.n;
        }
        status = memory_read(s, m, S("state.md"), true, &text, &err);
        if (status == DEP_OK && !(str_starts(text, S("<!-- deputy: ")) && str_ends(text, S(" whole\n"))))
            w->failed = "a torn overwrite";
        if (status != DEP_OK && status != DEP_ERR_NOT_FOUND)
            w->failed = "memory_read of the overwritten file";
        arena_reset(s);
        usleep(500);
    }
    arena_free(s);
    arena_free(a);
    return NULL;
}

static const char *run_writers(const fixture *f, int from, int n, bool overwrites) {
    pthread_t threads[WRITERS];
    worker workers[WRITERS];
    const char *failed = NULL;
    for (int i = 0; i < n; i++) {
        workers[i] = (worker){.f = f, .id = from + i, .overwrites = overwrites};
        if (pthread_create(&threads[i], NULL, writer, &workers[i]) != 0) abort();
    }
    for (int i = 0; i < n; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failed) failed = workers[i].failed;
    }
    return failed;
}

// Each line once, in its file, each behind a header, and nothing else.
static void check_file(const fixture *f, int file, bool *seen, size_t *lines, size_t *headers) {
    arena *a = arena_new();
    str text, line, rest, path = path_join(a, S(".deputy/memory"), file_name(a, file));
    assert_int_equal(file_read_at(a, f->root, path, FILE_NO_LINKS, MEMORY_FILE_MAX, &text, NULL, NULL),
                     DEP_OK);
    for (rest = text; str_cut(rest, '\n', &line, &rest);) {
        uint64_t w, i;
        if (line.n == 0) continue;
        if (str_starts(line, S("<!-- deputy: "))) {
            ++*headers;
            continue;
        }
        assert_int_equal(line.n, 7);
        assert_true(str_u64(str_sub(line, 1, 3), WRITERS - 1, &w));
        assert_true(str_u64(str_sub(line, 4, 7), (uint64_t)f->each - 1, &i));
        assert_int_equal(w % (uint64_t)f->files, file);
        bool *it = &seen[w * (uint64_t)f->each + i];
        assert_false(*it);
        *it = true;
        ++*lines;
    }
    assert_true(str_empty(rest));
    arena_free(a);
}

static void check_all_there(const fixture *f) {
    bool *seen = calloc((size_t)(WRITERS * f->each), sizeof *seen);
    size_t lines = 0, headers = 0;
    for (int i = 0; i < f->files; i++) check_file(f, i, seen, &lines, &headers);
    assert_int_equal(lines, WRITERS * f->each);
    assert_int_equal(headers, lines);
    free(seen);
}

// processes 1: the writers are threads of this one.
static void with_reader(const fixture *f, int processes) {
    _Atomic bool stop = false;
    worker w = {.f = f, .stop = &stop};
    pthread_t thread;
    pid_t pids[2];
    const char *failed = NULL;
    // Before there is a second thread: what forks in the midst of threads may not start any.
    for (int k = 0; k < processes && processes > 1; k++) {
        pids[k] = fork();
        assert_true(pids[k] >= 0);
        if (pids[k] == 0) _exit(run_writers(f, k * WRITERS / 2, WRITERS / 2, true) != NULL);
    }
    assert_int_equal(pthread_create(&thread, NULL, reader, &w), 0);
    if (processes == 1) failed = run_writers(f, 0, WRITERS, false);
    for (int k = 0; k < processes && processes > 1; k++) {
        int status;
        if (waitpid(pids[k], &status, 0) != pids[k] || status != 0) failed = "a process";
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    if (failed) fail_msg("writer: %s", failed);
    if (w.failed) fail_msg("reader: %s", w.failed);
    check_all_there(f);
}

static void test_memory_race__twenty_writers_in_one_process_lose_and_tear_nothing(void **state) {
    with_reader(*state, 1);
}

static void test_memory_race__two_processes_with_overwrites_lose_and_tear_nothing(void **state) {
    with_reader(*state, 2);
}

static void test_memory_race__twenty_writers_of_one_file_lose_and_tear_nothing(void **state) {
    fixture *f = *state;
    f->files = 1;
    f->each = f->each > 40 ? 40 : f->each;
    with_reader(f, 2);
}

// With trust, readers also never find a version untrusted.
static void test_memory_race__what_others_write_is_trusted_at_every_moment(void **state) {
    fixture *f = *state;
    arena *a = arena_new();
    f->state = str_fmt(a, "%s/state", f->dir);
    f->each = f->each > 20 ? 20 : f->each;
    with_reader(f, 2);
    f->state = (str){0};
    arena_free(a);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_memory_race__twenty_writers_in_one_process_lose_and_tear_nothing),
        T(test_memory_race__two_processes_with_overwrites_lose_and_tear_nothing),
        T(test_memory_race__twenty_writers_of_one_file_lose_and_tear_nothing),
        T(test_memory_race__what_others_write_is_trusted_at_every_moment),
    };
    return cmocka_run_group_tests_name("memory_race", tests, NULL, NULL);
}

// store: what writing through one shared store takes, by number of threads.
//   store DIRECTORY      a new state directory below it is used
// A batch is one op with five items of activity; a synced op is a status change. Per op, seen from the whole
// process: wall time divided by all ops of all threads.
#include <deputy/store.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { ITEMS = 5, THREADS_MAX = 200, OPS = 20000, OPS_SYNCED = 2000 };

static double now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

typedef struct {
    store_shared *sh;
    str id;
    store_op *op;
    store_mode mode;
    int ops;
    bool failed;
    dep_err err;
} worker;

static dep_status batch_op(store *s, void *ctx, dep_err *err) {
    activity_row items[ITEMS];
    for (int i = 0; i < ITEMS; i++)
        items[i] = (activity_row){
            .kind = S("text"),
            .data = S("{\"text\":\"a piece of what a model says while it is still saying it\"}")};
    return store_activity_add(s, ((worker *)ctx)->id, items, ITEMS, false, err);
}

static dep_status status_op(store *s, void *ctx, dep_err *err) {
    return store_delegation_status(s, ((worker *)ctx)->id, DELEG_WAITING, (str){0}, (str){0}, err);
}

static dep_status read_op(store *s, void *ctx, dep_err *err) {
    (void)ctx;
    arena *a = arena_new();
    str value;
    dep_status status = store_setting_get(a, s, S("switch:system:x"), &value, err);
    arena_free(a);
    return status;
}

static void *work(void *ctx) {
    worker *w = ctx;
    for (int i = 0; i < w->ops && !w->failed; i++)
        w->failed = store_do(w->sh, w->mode, w->op, w, &w->err) != DEP_OK;
    return NULL;
}

static bool measure(store_shared *sh, const strs *ids, int threads, const char *name, store_op *op,
                    store_mode mode, int ops) {
    static worker workers[THREADS_MAX];
    pthread_t t[THREADS_MAX];
    bool fine = true;
    double from = now_us();
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){.sh = sh, .id = ids->p[i], .op = op, .mode = mode, .ops = ops / threads};
        if (pthread_create(&t[i], NULL, work, &workers[i]) != 0) exit(1);
    }
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], NULL);
        if (workers[i].failed) fprintf(stderr, "%s\n", workers[i].err.msg);
        fine = fine && !workers[i].failed;
    }
    double each = (now_us() - from) / (ops / threads * threads);
    printf("%-28s%6d threads%10.1f us an op%12.0f ops/s\n", name, threads, each, 1e6 / each);
    return fine;
}

static bool prepare(arena *a, store *s, strs *ids, dep_err *err) {
    char *text = arena_alloc(a, 20000);
    memset(text, 'x', 20000);
    for (int i = 0; i < THREADS_MAX; i++) {
        str id = str_fmt(a, "%032x", i + 1);
        vec_push(a, ids, id);
        delegation_row row = {.id = id,
                              .agent = S("librarian"),
                              .task = str_n(text, 500),
                              .definition = str_n(text, 8000),
                              .grant = str_n(text, 20000),
                              .status = DELEG_RUNNING};
        if (store_delegation_add(s, &row, err) != DEP_OK) return false;
    }
    return true;
}

int main(int argc, char **argv) {
    static const int threads[] = {1, 16, THREADS_MAX};
    if (argc != 2) return 2;
    arena *a = arena_new();
    store *s;
    strs ids = {0};
    dep_err err;
    str state = str_fmt(a, "%s/store-%lld", argv[1], (long long)now_us());
    if (store_open(a, state, S("/w"), false, sys_clock_real(), &s, &err) != DEP_OK ||
        !prepare(a, s, &ids, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    store_shared *sh = store_share(a, s);
    bool fine = true;
    for (int i = 0; i < 3; i++) {
        fine = measure(sh, &ids, threads[i], "batch, not synced", batch_op, STORE_WRITE, OPS) && fine;
        fine =
            measure(sh, &ids, threads[i], "status, synced", status_op, STORE_WRITE_FULL, OPS_SYNCED) && fine;
        fine = measure(sh, &ids, threads[i], "reading a setting", read_op, STORE_READ, OPS) && fine;
    }
    arena_free(a);
    return fine ? 0 : 1;
}

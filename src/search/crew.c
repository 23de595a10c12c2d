// crew: see the header. Threads wait for a stage on a condition; within a stage they share a counter alone.
#include "search/crew.h"
#include <deputy/thread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum {
    ASK_MS = 4, // between two questions whether to stop while others still work
};

typedef struct {
    crew *c;
    size_t number;
    stop_sign stop;
    pthread_t thread;
    arena *a;
    dep_status fault;
    dep_err err;
} worker;

struct crew {
    bool (*ask)(void *ctx);
    void *ask_ctx;
    pool *pool;
    size_t most;
    size_t started; // workers, the caller included
    worker workers[CREW_MOST];
    // Of the stage.
    crew_job *job;
    void *ctx;
    size_t n;
    atomic_size_t next;
    atomic_bool stop; // asked for, or a job has failed
    // Under the lock.
    pthread_mutex_t lock;
    pthread_cond_t begin, done;
    size_t stage, running;
    bool end;
};

static dep_status work_caught(worker *w, size_t i) {
    ARENA_CATCH(w->a, &w->err);
    return w->c->job(w->c->ctx, w->number, i, &w->err);
}

static void work(worker *w) {
    crew *c = w->c;
    for (;;) {
        size_t i = atomic_fetch_add(&c->next, 1);
        if (i >= c->n || crew_stops(c, w->number)) return;
        w->fault = work_caught(w, i);
        if (w->fault == DEP_OK) continue;
        atomic_store(&c->stop, true);
        return;
    }
}

static void *work_aside(void *ctx) {
    worker *w = ctx;
    crew *c = w->c;
    pthread_mutex_lock(&c->lock);
    for (size_t stage = 0;;) {
        while (c->stage == stage && !c->end) pthread_cond_wait(&c->begin, &c->lock);
        if (c->end) break;
        stage = c->stage;
        pthread_mutex_unlock(&c->lock);
        work(w);
        pthread_mutex_lock(&c->lock);
        if (--c->running == 0) pthread_cond_signal(&c->done);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

static void end(void *ctx) {
    crew *c = ctx;
    pthread_mutex_lock(&c->lock);
    c->end = true;
    pthread_cond_broadcast(&c->begin);
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 1; i < c->started; i++) pthread_join(c->workers[i].thread, NULL);
    for (size_t i = 0; i < c->most; i++) arena_free(c->workers[i].a);
    pthread_cond_destroy(&c->begin);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
}

static bool ask_worker(void *ctx) {
    worker *w = ctx;
    return crew_stops(w->c, w->number);
}

crew *crew_new(arena *a, pool *p, size_t most, bool (*ask)(void *ctx), void *ctx) {
    crew *c = NEW(a, crew);
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    c->most = processors < 1 ? 1 : processors > CREW_MOST ? CREW_MOST : (size_t)processors;
    if (most < c->most) c->most = most ? most : 1;
    c->started = 1;
    c->pool = p;
    c->ask = ask;
    c->ask_ctx = ctx;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->begin, NULL);
    thread_cond_init(&c->done);
    arena_defer(a, end, c);
    arena_source source = pool_source(p);
    for (size_t i = 0; i < c->most; i++) {
        c->workers[i] = (worker){.c = c, .number = i, .a = arena_new_from(&source, false)};
        c->workers[i].stop = (stop_sign){.ask = ask_worker, .ctx = &c->workers[i]};
        // As the caller's arena would end when there is not even so much.
        if (!c->workers[i].a) c->workers[i].a = arena_new();
    }
    return c;
}

size_t crew_size(const crew *c) {
    return c->most;
}

pool *crew_pool(const crew *c) {
    return c->pool;
}

arena *crew_arena(const crew *c, size_t number) {
    return c->workers[number].a;
}

bool crew_stops(crew *c, size_t number) {
    if (atomic_load(&c->stop)) return true;
    bool stop = number == 0 && c->ask && c->ask(c->ask_ctx);
    if (stop) atomic_store(&c->stop, true);
    return stop;
}

stop_sign *crew_stop(crew *c, size_t number) {
    return &c->workers[number].stop;
}

bool crew_stopped(const crew *c) {
    return atomic_load(&c->stop);
}

// Waits for the other workers, and goes on asking.
static void wait_for_others(crew *c) {
    pthread_mutex_lock(&c->lock);
    while (c->running) {
        struct timespec at = thread_in_ms(ASK_MS);
        if (pthread_cond_timedwait(&c->done, &c->lock, &at) == 0) continue;
        pthread_mutex_unlock(&c->lock);
        (void)crew_stops(c, 0);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
}

static dep_status fault_of(const crew *c, dep_err *err) {
    for (size_t i = 0; i < c->most; i++) {
        if (c->workers[i].fault == DEP_OK) continue;
        if (err) *err = c->workers[i].err;
        return c->workers[i].fault;
    }
    return DEP_OK;
}

dep_status crew_run(crew *c, size_t n, crew_job *job, void *ctx, dep_err *err) {
    c->job = job;
    c->ctx = ctx;
    c->n = n;
    atomic_store(&c->next, 0);
    // What a thread sees is set before it is started or woken.
    pthread_mutex_lock(&c->lock);
    for (size_t wanted = n < c->most ? n : c->most; c->started < wanted; c->started++) {
        worker *w = &c->workers[c->started];
        if (thread_start_beside(&w->thread, work_aside, w) != 0) break;
    }
    if (n > 1 && c->started > 1) {
        c->stage++;
        c->running = c->started - 1;
        pthread_cond_broadcast(&c->begin);
    }
    pthread_mutex_unlock(&c->lock);
    work(&c->workers[0]);
    wait_for_others(c);
    return fault_of(c, err);
}

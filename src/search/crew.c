// crew: see the header. Within a stage threads share a counter alone. Between two stages, and for the last
// job of one, they look for a moment before they sleep: stages are shorter than it takes to wake a thread.
#include "search/crew.h"
#include <deputy/thread.h>
#include <stdatomic.h>
#include <time.h>

enum {
    ASK_MS = 4, // between two questions whether to stop while others still work
    LOOK_US = 200,
    LOOKS = 32, // before the clock is read
};

typedef struct {
    crew *c;
    size_t number;
    stop_sign stop;
    arena *a;
    dep_status fault;
    dep_err err;
} worker;

struct crew {
    stop_sign *asks; // the caller's
    pool *pool;
    hands *hands, *own; // own: to be freed with it
    size_t most;
    size_t started; // workers, the caller included
    worker workers[CREW_MOST];
    // Of the stage.
    crew_job *job;
    void *ctx;
    size_t n;
    atomic_size_t next;
    atomic_bool stop; // asked for, or a job has failed
    // Changed under the lock, but for `there`.
    pthread_mutex_t lock;
    pthread_cond_t begin, done;
    atomic_size_t stage;
    atomic_size_t running; // workers that are at it
    atomic_size_t there;   // threads that were lent and have not left
    bool open, end;        // open: a stage may be joined
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

// For a moment: until it is another value than this. The clock is asked seldom, and never a whole wait.
static void look_for_other(const atomic_size_t *v, size_t than) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        for (int i = 0; i < LOOKS; i++) {
            if (atomic_load_explicit(v, memory_order_relaxed) != than) return;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - from.tv_sec) * 1000000 + (now.tv_nsec - from.tv_nsec) / 1000 < LOOK_US);
}

static void work_aside(void *ctx) {
    worker *w = ctx;
    crew *c = w->c;
    for (size_t stage = 0;;) {
        look_for_other(&c->stage, stage);
        pthread_mutex_lock(&c->lock);
        while (atomic_load(&c->stage) == stage && !c->end) pthread_cond_wait(&c->begin, &c->lock);
        if (c->end) break;
        stage = atomic_load(&c->stage);
        bool open = c->open;
        if (open) atomic_fetch_add(&c->running, 1);
        pthread_mutex_unlock(&c->lock);
        if (!open) continue;
        work(w);
        pthread_mutex_lock(&c->lock);
        if (atomic_fetch_sub(&c->running, 1) == 1) pthread_cond_signal(&c->done);
        pthread_mutex_unlock(&c->lock);
    }
    if (atomic_fetch_sub(&c->there, 1) == 1) pthread_cond_signal(&c->done);
    pthread_mutex_unlock(&c->lock);
}

// Who has not come yet need not come any more.
static void send_away(crew *c) {
    for (size_t i = 1; i < c->started; i++) {
        bool back = hands_take_back(c->hands, &c->workers[i]);
        atomic_fetch_sub(&c->there, back);
    }
    pthread_mutex_lock(&c->lock);
    c->end = true;
    atomic_fetch_add(&c->stage, 1); // whoever looks for the next one sees it
    pthread_cond_broadcast(&c->begin);
    pthread_mutex_unlock(&c->lock);
    size_t left = atomic_load(&c->there);
    if (left) look_for_other(&c->there, left);
    // Also so that the last one has given the lock back.
    pthread_mutex_lock(&c->lock);
    while (atomic_load(&c->there)) pthread_cond_wait(&c->done, &c->lock);
    pthread_mutex_unlock(&c->lock);
}

static void end(void *ctx) {
    crew *c = ctx;
    send_away(c);
    hands_free(c->own);
    for (size_t i = 0; i < c->most; i++) arena_free(c->workers[i].a);
    pthread_cond_destroy(&c->begin);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
}

// With the lock held, workers up to `wanted`, as far as there are hands for them.
static void start(crew *c, size_t wanted) {
    for (; c->started < wanted; c->started++) {
        atomic_fetch_add(&c->there, 1);
        if (hands_lend(c->hands, work_aside, &c->workers[c->started])) continue;
        atomic_fetch_sub(&c->there, 1);
        return;
    }
}

static bool ask_worker(void *ctx) {
    worker *w = ctx;
    return crew_stops(w->c, w->number);
}

static size_t most_workers(const hands *h) {
    size_t processors = h ? hands_most(h) + 1 : thread_processors();
    return processors > CREW_MOST ? CREW_MOST : processors;
}

crew *crew_new(arena *a, hands *h, pool *p, size_t most, stop_sign *asks) {
    crew *c = NEW(a, crew);
    c->most = most_workers(h);
    if (most < c->most) c->most = most ? most : 1;
    c->started = 1;
    c->hands = h;
    c->pool = p;
    c->asks = asks;
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
    // They wake up while the caller prepares the first stage.
    pthread_mutex_lock(&c->lock);
    if (h) start(c, c->most);
    pthread_mutex_unlock(&c->lock);
    for (; h && c->most > c->started; c->most--) arena_free(c->workers[c->most - 1].a);
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
    bool stop = number == 0 && stop_ask(c->asks);
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
    for (size_t left; (left = atomic_load(&c->running));) {
        look_for_other(&c->running, left);
        (void)crew_stops(c, 0);
        pthread_mutex_lock(&c->lock);
        struct timespec at = thread_in_ms(ASK_MS);
        if (atomic_load(&c->running)) (void)pthread_cond_timedwait(&c->done, &c->lock, &at);
        pthread_mutex_unlock(&c->lock);
    }
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
    if (!c->hands && n > 1 && c->most > 1) c->hands = c->own = hands_new(c->most - 1);
    if (c->own) start(c, n < c->most ? n : c->most);
    c->open = n > 1;
    if (c->open && c->started > 1) {
        atomic_fetch_add(&c->stage, 1);
        pthread_cond_broadcast(&c->begin);
    }
    pthread_mutex_unlock(&c->lock);
    work(&c->workers[0]);
    pthread_mutex_lock(&c->lock);
    c->open = false; // nobody waits for those who come only now
    pthread_mutex_unlock(&c->lock);
    wait_for_others(c);
    return fault_of(c, err);
}

// pipe: see the header. Blocks of the batches' arenas are kept and used again: a file's texts are gone as
// soon as it is packed, and asking the system for fresh pages each time costs as much as folding does.
#include "search/pipe.h"
#include <deputy/pool.h>
#include <deputy/thread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    THREAD_FILES = 64,
    ASK_MS = 2, // between two questions whether to stop while the thread works
};
enum : size_t { POOL_BYTES = (size_t)16 << 20 };
// Of every so many bytes a part is counted: enough to tell rare pairs from common ones.
enum { SAMPLE_EACH = 1024, SAMPLE = 128 };

struct pipeline {
    pipe_batch batches[PIPE_BATCHES];
    pool *pool;                 // of the batches' arenas
    size_t handed, done, taken; // batches so far
    slabs *to;
    const pipe_taker *taker; // NULL: texts stay
    uint32_t *pairs;
    size_t counted;
    stop_sign *asks, aside; // the caller's; the thread's, which looks at `stopped`
    atomic_bool stopped;
    bool threaded, waits, end;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, ready;
};

// --- The work ---

// Which pairs of bytes are common: parts of the texts tell.
static void sample(pipeline *p, str folded) {
    const unsigned char *s = (const unsigned char *)folded.p;
    for (size_t from = 0; from + 1 < folded.n; from += SAMPLE_EACH) {
        size_t to = from + SAMPLE < folded.n - 1 ? from + SAMPLE : folded.n - 1;
        for (size_t i = from; i < to; i++) p->pairs[s[i] << 8 | s[i + 1]]++;
    }
    p->counted += folded.n;
}

// Nothing that was stopped in the middle counts as prepared.
static void prepare(const pipeline *p, const pipe_batch *b, pipe_job *j, stop_sign *stop) {
    corpus_prepare(b->a, j->path, j->text, p->taker, stop, &j->parts);
    j->prepared = !stop_said(stop);
}

static dep_status work_caught(pipeline *p, pipe_batch *b) {
    ARENA_CATCH(b->a, &b->err);
    stop_sign *stop = p->threaded ? &p->aside : p->asks;
    size_t n = 0;
    for (; n < b->n; n++) {
        pipe_job *j = &b->jobs[n];
        if (!j->prepared) prepare(p, b, j, stop);
        dep_status status =
            j->prepared ? corpus_keep(&j->parts, p->to, stop, &j->file, &b->err) : DEP_ERR_CANCELLED;
        if (status == DEP_ERR_CANCELLED) break;
        TRY(status);
        j->whole = true;
        if (!p->taker) sample(p, j->file.folded);
    }
    if (!p->taker || !n) return DEP_OK;
    dep_status status = p->taker->take(p->taker->ctx, b->jobs, n, stop, &b->err);
    for (size_t i = 0; i < n; i++) {
        b->jobs[i].file.in = NULL;
        b->jobs[i].file.folded.p = NULL;
    }
    slabs_empty(p->to);
    return status;
}

static void *work(void *ctx) {
    pipeline *p = ctx;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->done == p->handed && !p->end) {
            p->waits = true;
            pthread_cond_wait(&p->more, &p->lock);
        }
        p->waits = false;
        if (p->end) break;
        pipe_batch *b = &p->batches[p->done % PIPE_BATCHES];
        pthread_mutex_unlock(&p->lock);
        if (b->fault == DEP_OK) b->fault = work_caught(p, b);
        pthread_mutex_lock(&p->lock);
        p->done++;
        pthread_cond_signal(&p->ready);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

// --- Beginning and end ---

static void pipe_end(void *ctx) {
    pipeline *p = ctx;
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        p->end = true;
        pthread_cond_signal(&p->more);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
    }
    for (size_t i = 0; i < PIPE_BATCHES; i++) arena_free(p->batches[i].a);
    pool_free(p->pool);
    pthread_cond_destroy(&p->more);
    pthread_cond_destroy(&p->ready);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static bool was_stopped(void *ctx) {
    return atomic_load(&((pipeline *)ctx)->stopped);
}

dep_status pipe_new(arena *scratch, size_t files, slabs *to, uint32_t *pairs, const pipe_taker *taker,
                    stop_sign *stop, pipeline **ret, dep_err *err) {
    pipeline *p = calloc(1, sizeof *p);
    if (!p) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    p->to = to;
    p->taker = taker;
    p->pairs = pairs;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    p->asks = stop;
    p->aside.ask = was_stopped;
    p->aside.ctx = p;
    pthread_condattr_t mono;
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(&p->ready, &mono);
    pthread_condattr_destroy(&mono);
    p->pool = pool_new(POOL_BYTES);
    bool whole = p->pool;
    arena_source source = pool_source(p->pool);
    for (size_t i = 0; i < PIPE_BATCHES; i++) {
        p->batches[i].a = arena_new_from(&source, false);
        whole = whole && p->batches[i].a;
    }
    if (!whole) {
        pipe_end(p);
        return err_set(err, DEP_ERR_NOMEM, "out of memory");
    }
    p->threaded = files >= THREAD_FILES && sysconf(_SC_NPROCESSORS_ONLN) > 1 &&
                  thread_start_beside(&p->thread, work, p) == 0;
    arena_defer(scratch, pipe_end, p);
    *ret = p;
    return DEP_OK;
}

// --- Batches ---

pipe_batch *pipe_filling(pipeline *p) {
    return &p->batches[p->handed % PIPE_BATCHES];
}

static void hand_in(pipeline *p, dep_status fault) {
    pipe_batch *b = pipe_filling(p);
    b->fault = fault;
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        p->handed++;
        if (p->waits) pthread_cond_signal(&p->more);
        pthread_mutex_unlock(&p->lock);
    } else {
        if (fault == DEP_OK) b->fault = work_caught(p, b);
        p->handed++;
        p->done++;
    }
}

// Waits a little for the thread, and asks meanwhile. The lock is held.
static void wait_and_ask(pipeline *p) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_nsec += ASK_MS * 1000000L;
    if (at.tv_nsec >= 1000000000L) at.tv_sec++, at.tv_nsec -= 1000000000L;
    if (pthread_cond_timedwait(&p->ready, &p->lock, &at) == 0) return;
    pthread_mutex_unlock(&p->lock);
    if (stop_ask(p->asks)) atomic_store(&p->stopped, true);
    pthread_mutex_lock(&p->lock);
}

// The oldest one that was handed in; waits until it is done.
static pipe_batch *take(pipeline *p) {
    pipe_batch *b = &p->batches[p->taken % PIPE_BATCHES];
    if (p->threaded) {
        if (stop_said(p->asks)) atomic_store(&p->stopped, true);
        pthread_mutex_lock(&p->lock);
        while (p->done == p->taken) wait_and_ask(p);
        pthread_mutex_unlock(&p->lock);
    }
    p->taken++;
    return b;
}

// When the other thread cannot keep up, this one does the larger part of its work before it hands a batch in.
static dep_status help(pipeline *p) {
    enum { BEHIND = 2 };
    pipe_batch *b = pipe_filling(p);
    ARENA_CATCH(b->a, &b->err);
    if (!p->threaded) return DEP_OK;
    pthread_mutex_lock(&p->lock);
    bool behind = p->handed - p->done >= BEHIND;
    pthread_mutex_unlock(&p->lock);
    for (size_t i = 0; i < b->n && behind && !stop_said(p->asks); i++) prepare(p, b, &b->jobs[i], p->asks);
    return DEP_OK;
}

pipe_batch *pipe_next(pipeline *p) {
    dep_status status = help(p);
    hand_in(p, status);
    // The next to be filled is the oldest: it has to come out first.
    return p->handed - p->taken == PIPE_BATCHES ? take(p) : NULL;
}

pipe_batch *pipe_drain(pipeline *p) {
    return p->taken < p->handed ? take(p) : NULL;
}

size_t pipe_counted(const pipeline *p) {
    return p->counted;
}

// pipe: see the header. Blocks of the batches' arenas are kept and used again: a file's texts are gone as
// soon as it is packed, and asking the system for fresh pages each time costs as much as folding does.
#include "search/pipe.h"
#include <deputy/thread.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREAD_FILES = 64, KEPT_BLOCKS = 12 };
// Of every so many bytes a part is counted: enough to tell rare pairs from common ones.
enum { SAMPLE_EACH = 1024, SAMPLE = 128 };

typedef struct {
    size_t n;
    alignas(16) char bytes[];
} kept_block;

// Of one arena.
typedef struct {
    kept_block *blocks[KEPT_BLOCKS];
    size_t n;
} recycler;

struct pipeline {
    pipe_batch batches[PIPE_BATCHES];
    recycler recyclers[PIPE_BATCHES];
    size_t handed, done, taken; // batches so far
    slabs *to;
    uint32_t *pairs;
    size_t counted;
    bool threaded, waits, end;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more, ready;
};

// --- Memory ---

static void *recycled(void *ctx, size_t n) {
    recycler *r = ctx;
    for (size_t i = 0; i < r->n; i++) {
        kept_block *b = r->blocks[i];
        if (b->n < n || b->n / 4 > n) continue;
        r->blocks[i] = r->blocks[--r->n];
        return b->bytes;
    }
    kept_block *b = malloc(sizeof *b + n);
    if (!b) return NULL;
    b->n = n;
    return b->bytes;
}

static void recycle(void *ctx, void *p) {
    recycler *r = ctx;
    kept_block *b = (kept_block *)((char *)p - offsetof(kept_block, bytes));
    if (r->n < KEPT_BLOCKS && b->n <= (size_t)1 << 20)
        r->blocks[r->n++] = b;
    else
        free(b);
}

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

static dep_status work_caught(pipeline *p, pipe_batch *b) {
    ARENA_CATCH(b->a, &b->err);
    for (size_t i = 0; i < b->n; i++) {
        pipe_job *j = &b->jobs[i];
        TRY(corpus_keep(b->a, j->path, j->text, p->to, &j->file, &b->err));
        sample(p, j->file.folded);
    }
    return DEP_OK;
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
        b->fault = work_caught(p, b);
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
    for (size_t i = 0; i < PIPE_BATCHES; i++) {
        arena_free(p->batches[i].a);
        for (size_t k = 0; k < p->recyclers[i].n; k++) free(p->recyclers[i].blocks[k]);
    }
    pthread_cond_destroy(&p->more);
    pthread_cond_destroy(&p->ready);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

dep_status pipe_new(arena *scratch, size_t files, slabs *to, uint32_t *pairs, pipeline **ret, dep_err *err) {
    pipeline *p = calloc(1, sizeof *p);
    if (!p) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    p->to = to;
    p->pairs = pairs;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->more, NULL);
    pthread_cond_init(&p->ready, NULL);
    bool whole = true;
    for (size_t i = 0; i < PIPE_BATCHES; i++) {
        arena_source source = {recycled, recycle, &p->recyclers[i]};
        p->batches[i].a = arena_new_from(&source, false);
        whole = whole && p->batches[i].a;
    }
    if (!whole) {
        pipe_end(p);
        return err_set(err, DEP_ERR_NOMEM, "out of memory");
    }
    p->threaded = files >= THREAD_FILES && sysconf(_SC_NPROCESSORS_ONLN) > 1 &&
                  thread_start(&p->thread, 0, work, p) == 0;
    arena_defer(scratch, pipe_end, p);
    *ret = p;
    return DEP_OK;
}

// --- Batches ---

pipe_batch *pipe_filling(pipeline *p) {
    return &p->batches[p->handed % PIPE_BATCHES];
}

static void hand_in(pipeline *p) {
    pipe_batch *b = pipe_filling(p);
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        p->handed++;
        if (p->waits) pthread_cond_signal(&p->more);
        pthread_mutex_unlock(&p->lock);
    } else {
        b->fault = work_caught(p, b);
        p->handed++;
        p->done++;
    }
}

// The oldest one that was handed in; waits until it is done.
static pipe_batch *take(pipeline *p) {
    pipe_batch *b = &p->batches[p->taken % PIPE_BATCHES];
    if (p->threaded) {
        pthread_mutex_lock(&p->lock);
        while (p->done == p->taken) pthread_cond_wait(&p->ready, &p->lock);
        pthread_mutex_unlock(&p->lock);
    }
    p->taken++;
    return b;
}

pipe_batch *pipe_next(pipeline *p) {
    hand_in(p);
    // The next to be filled is the oldest: it has to come out first.
    return p->handed - p->taken == PIPE_BATCHES ? take(p) : NULL;
}

pipe_batch *pipe_drain(pipeline *p) {
    return p->taken < p->handed ? take(p) : NULL;
}

size_t pipe_counted(const pipeline *p) {
    return p->counted;
}

// pool: see the header.
#include "search/pool.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 64, FIRST = 8192 }; // kept; elements of an array at first

typedef struct {
    size_t n;
    alignas(16) char bytes[];
} pool_block;

struct pool {
    pthread_mutex_t lock;
    pool_block *blocks[BLOCKS];
    size_t n, bytes, keep;
};

// Large blocks are the system's: what malloc has freed on some thread it mostly keeps.
enum : size_t { LARGE = (size_t)1 << 20 };

static pool_block *new_block(size_t n) {
    size_t all = sizeof(pool_block) + n;
    if (all < n) return NULL;
    pool_block *b = NULL;
    if (n >= LARGE) {
        void *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        b = p == MAP_FAILED ? NULL : p;
    } else {
        b = malloc(all);
    }
    if (b) b->n = n;
    return b;
}

static void free_block(pool_block *b) {
    if (b && b->n >= LARGE)
        munmap(b, sizeof *b + b->n);
    else
        free(b);
}

pool *pool_new(size_t keep) {
    pool *p = calloc(1, sizeof *p);
    if (!p) return NULL;
    p->keep = keep;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void pool_free(pool *p) {
    if (!p) return;
    for (size_t i = 0; i < p->n; i++) free_block(p->blocks[i]);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

// The smallest that will do, unless it is far too large.
static pool_block *take_kept(pool *p, size_t n) {
    pool_block *best = NULL;
    size_t at = 0;
    pthread_mutex_lock(&p->lock);
    for (size_t i = 0; i < p->n; i++) {
        pool_block *b = p->blocks[i];
        if (b->n < n || b->n / 4 > n || (best && best->n <= b->n)) continue;
        best = b;
        at = i;
    }
    if (best) {
        p->blocks[at] = p->blocks[--p->n];
        p->bytes -= best->n;
    }
    pthread_mutex_unlock(&p->lock);
    return best;
}

void *pool_take(pool *p, size_t n, size_t *got) {
    pool_block *b = p ? take_kept(p, n) : NULL;
    if (!b && !(b = new_block(n))) return NULL;
    if (got) *got = b->n;
    return b->bytes;
}

void pool_give(pool *p, void *block) {
    if (!block) return;
    pool_block *b = (pool_block *)((char *)block - offsetof(pool_block, bytes));
    if (p) {
        pthread_mutex_lock(&p->lock);
        if (p->n < BLOCKS && b->n <= p->keep - p->bytes) {
            p->blocks[p->n++] = b;
            p->bytes += b->n;
            b = NULL;
        }
        pthread_mutex_unlock(&p->lock);
    }
    free_block(b);
}

static void *source_take(void *ctx, size_t n) {
    return pool_take(ctx, n, NULL);
}

static void source_give(void *ctx, void *block) {
    pool_give(ctx, block);
}

arena_source pool_source(pool *p) {
    return (arena_source){source_take, source_give, p};
}

bool pool_grow(pool *p, void **block, size_t *cap, size_t need, size_t used, size_t size) {
    if (need <= *cap) return true;
    size_t more = *cap ? *cap * 2 : FIRST, got;
    if (more < need) more = need;
    void *now = more <= SIZE_MAX / size ? pool_take(p, more * size, &got) : NULL;
    if (!now) return false;
    if (used) memcpy(now, *block, used * size);
    pool_give(p, *block);
    *block = now;
    *cap = got / size;
    return true;
}

// pool: see the header. Large blocks are the system's: what malloc has freed on some thread it mostly keeps,
// and the system makes a large block longer without a copy.
#include <deputy/pool.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 64, FIRST = 8192 }; // kept; elements of an array at first
enum : size_t { LARGE = (size_t)1 << 20, LARGE_PAGES = (size_t)8 << 20 };

typedef struct {
    size_t n;
    alignas(16) char bytes[];
} pool_block;

struct pool {
    pthread_mutex_t lock;
    pool_block *blocks[BLOCKS];
    size_t n, bytes, keep;
};

// --- Blocks ---

static pool_block *block_of(void *bytes) {
    return (pool_block *)((char *)bytes - offsetof(pool_block, bytes));
}

// Fewer, larger pages: they are made and given back in less time. Where that cannot be had, nothing is lost.
static pool_block *sized(pool_block *b, size_t n) {
    if (!b) return NULL;
    b->n = n;
    if (n >= LARGE_PAGES) (void)madvise(b, sizeof *b + n, MADV_HUGEPAGE);
    return b;
}

static pool_block *new_block(size_t n) {
    size_t all = sizeof(pool_block) + n;
    if (all < n) return NULL;
    if (n < LARGE) return sized(malloc(all), n);
    void *p = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return sized(p == MAP_FAILED ? NULL : p, n);
}

static void free_block(pool_block *b) {
    if (b && b->n >= LARGE)
        munmap(b, sizeof *b + b->n);
    else
        free(b);
}

// A large one, longer; NULL: there is no memory, or it is none.
static pool_block *longer(pool_block *b, size_t n) {
    size_t all = sizeof *b + n;
    if (b->n < LARGE || n < b->n || all < n) return NULL;
    void *p = mremap(b, sizeof *b + b->n, all, MREMAP_MAYMOVE);
    return sized(p == MAP_FAILED ? NULL : p, n);
}

// --- The pool ---

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
    pool_block *b = block_of(block);
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

static void *source_grow(void *ctx, void *block, size_t n) {
    (void)ctx;
    pool_block *b = longer(block_of(block), n);
    return b ? b->bytes : NULL;
}

arena_source pool_source(pool *p) {
    return (arena_source){source_take, source_give, p, source_grow};
}

bool pool_grow(pool *p, void **block, size_t *cap, size_t need, size_t used, size_t size) {
    if (need <= *cap) return true;
    size_t more = *cap ? *cap * 2 : FIRST, got;
    if (more < need) more = need;
    if (more > SIZE_MAX / size) return false;
    void *now = *block ? source_grow(p, *block, more * size) : NULL;
    if (now) {
        *block = now;
        *cap = more;
        return true;
    }
    now = pool_take(p, more * size, &got);
    if (!now) return false;
    if (used && *block) memcpy(now, *block, used * size);
    pool_give(p, *block);
    *block = now;
    *cap = got / size;
    return true;
}

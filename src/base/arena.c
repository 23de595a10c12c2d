// arena: block allocator with deferred cleanup and an out-of-memory unwind target.
// Knows nothing of Deputy. Unused bytes of a block are poisoned for ASan; with one_each every allocation is a
// block of its own, which lets ASan and valgrind see each bound. Not thread-safe: an arena has one owner at a
// time.
#include <deputy/arena.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
enum { ARENA_RED_ZONE = 16 };
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
enum { ARENA_RED_ZONE = 0 };
#endif

enum { ARENA_ALIGN = 16, ARENA_BLOCK_MIN = 8192, ARENA_BLOCK_MAX = 1 << 20 };

typedef struct block block;
struct block {
    block *next;
    size_t cap, used;
};

typedef struct defer defer;
struct defer {
    defer *next;
    void (*fn)(void *);
    void *p;
};

struct arena {
    arena_source src;
    block *blocks; // newest first
    defer *defers; // newest first; the nodes live in the arena itself
    jmp_buf *oom;
    size_t used, next_size;
    void *last; // the newest allocation, which may grow in place
    size_t last_size;
    bool one_each;
};

enum { BLOCK_HEAD = (sizeof(block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN };

static void *source_malloc(void *ctx, size_t n) {
    (void)ctx;
    return malloc(n);
}

static void source_free(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

static void *source_grow(void *ctx, void *p, size_t n) {
    (void)ctx;
    return realloc(p, n);
}

static const arena_source malloc_source = {source_malloc, source_free, NULL, source_grow};

[[noreturn]] static void die_of_memory(void) {
    static const char msg[] = "deputy: out of memory\n";
    ssize_t n = write(2, msg, sizeof msg - 1);
    (void)n;
    abort();
}

arena *arena_new_from(const arena_source *src, bool one_each) {
    arena *a = src->alloc(src->ctx, sizeof *a);
    if (!a) return NULL;
    *a = (arena){.src = *src, .next_size = ARENA_BLOCK_MIN, .one_each = one_each};
#ifdef DEPUTY_ARENA_ONE_EACH
    a->one_each = true;
#endif
    return a;
}

arena *arena_new(void) {
    arena *a = arena_new_from(&malloc_source, false);
    if (!a) die_of_memory();
    return a;
}

[[noreturn]] static void out_of_memory(arena *a) {
    if (a->oom) longjmp(*a->oom, 1);
    die_of_memory();
}

static void run_defers(arena *a) {
    while (a->defers) {
        defer *d = a->defers;
        a->defers = d->next;
        d->fn(d->p);
    }
}

static void free_blocks(arena *a, block *keep) {
    for (block *b = a->blocks, *next; b; b = next) {
        next = b->next;
        if (b == keep) continue;
        UNPOISON((char *)b + BLOCK_HEAD, b->cap);
        a->src.free(a->src.ctx, b);
    }
}

void arena_free(arena *a) {
    if (!a) return;
    run_defers(a);
    free_blocks(a, NULL);
    arena_source src = a->src;
    src.free(src.ctx, a);
}

void arena_reset(arena *a) {
    run_defers(a);
    block *keep = a->blocks;
    while (keep && keep->next) keep = keep->next;
    if (a->one_each) keep = NULL;
    free_blocks(a, keep);
    if (keep) {
        keep->next = NULL;
        keep->used = 0;
        POISON((char *)keep + BLOCK_HEAD, keep->cap);
    }
    a->blocks = keep;
    a->used = 0;
    a->last = NULL;
    a->next_size = ARENA_BLOCK_MIN;
}

static size_t aligned(size_t n) {
    return (n + ARENA_ALIGN - 1 + (n == 0)) / ARENA_ALIGN * ARENA_ALIGN + ARENA_RED_ZONE;
}

static block *add_block(arena *a, size_t cap) {
    if (cap > SIZE_MAX - BLOCK_HEAD) out_of_memory(a);
    block *b = a->src.alloc(a->src.ctx, BLOCK_HEAD + cap);
    if (!b) out_of_memory(a);
    *b = (block){.cap = cap, .next = a->blocks};
    a->blocks = b;
    POISON((char *)b + BLOCK_HEAD, cap);
    return b;
}

void *arena_bytes(arena *a, size_t n) {
    if (n > SIZE_MAX / 2) out_of_memory(a);
    size_t want = aligned(n);
    block *b = a->blocks;
    if (a->one_each) {
        b = add_block(a, n ? n : 1);
    } else if (!b || b->cap - b->used < want) {
        size_t cap = a->next_size;
        if (want > cap) {
            cap = want;
        } else if (a->next_size < ARENA_BLOCK_MAX) {
            a->next_size *= 2;
        }
        b = add_block(a, cap);
    }
    char *p = (char *)b + BLOCK_HEAD + b->used;
    b->used += a->one_each ? b->cap : want;
    a->used += n;
    UNPOISON(p, n);
    a->last = p;
    a->last_size = n;
    return p;
}

void *arena_alloc(arena *a, size_t n) {
    return memset(arena_bytes(a, n), 0, n);
}

void *arena_calloc(arena *a, size_t n, size_t size) {
    if (size && n > SIZE_MAX / 2 / size) out_of_memory(a);
    return arena_alloc(a, n * size);
}

// An allocation that has a large block for itself: the system can make that longer without a copy. NULL: it
// cannot, or there is none.
static void *grow_block(arena *a, void *p, size_t old, size_t n) {
    block **at = &a->blocks;
    while (*at && (char *)p != (char *)*at + BLOCK_HEAD) at = &(*at)->next;
    block *b = *at;
    if (!b || !a->src.grow || b->cap <= ARENA_BLOCK_MAX || b->used != aligned(old)) return NULL;
    size_t cap = aligned(n);
    UNPOISON(p, b->cap);
    block *now = a->src.grow(a->src.ctx, b, BLOCK_HEAD + cap);
    if (!now) {
        POISON((char *)p + old, b->cap - old);
        return NULL;
    }
    *at = now;
    now->cap = now->used = cap;
    a->used += n - old;
    char *q = (char *)now + BLOCK_HEAD;
    if (a->last == p) {
        a->last = q;
        a->last_size = n;
    }
    POISON(q + n, cap - n);
    return q;
}

void *arena_grow_bytes(arena *a, void *p, size_t old, size_t n) {
    bool newest = p && p == a->last && !a->one_each && n >= a->last_size && n <= SIZE_MAX / 2;
    if (newest) {
        block *b = a->blocks;
        size_t at = (size_t)((char *)p - ((char *)b + BLOCK_HEAD)), want = aligned(n);
        if (want <= b->cap - at) {
            UNPOISON(p, n);
            a->used += n - a->last_size;
            b->used = at + want;
            a->last_size = n;
            return p;
        }
        old = a->last_size;
    }
    if (p && old > ARENA_BLOCK_MAX && !a->one_each && n >= old && n <= SIZE_MAX / 2) {
        void *now = grow_block(a, p, old, n);
        if (now) return now;
    }
    void *q = arena_bytes(a, n);
    if (p && old) memcpy(q, p, old < n ? old : n);
    return q;
}

void *arena_grow(arena *a, void *p, size_t old, size_t n) {
    char *q = arena_grow_bytes(a, p, old, n);
    if (n > old) memset(q + old, 0, n - old);
    return q;
}

void *vec_grow_(arena *a, void *p, size_t *cap, size_t size) {
    return vec_fit_(a, p, cap, *cap ? *cap * 2 : 8, size);
}

void *vec_fit_(arena *a, void *p, size_t *cap, size_t n, size_t size) {
    if (n > SIZE_MAX / 2 / size) out_of_memory(a);
    void *q = arena_grow_bytes(a, p, *cap * size, n * size);
    *cap = n;
    return q;
}

void arena_defer(arena *a, void (*fn)(void *), void *p) {
    defer *d = NEW(a, defer);
    *d = (defer){.next = a->defers, .fn = fn, .p = p};
    a->defers = d;
}

static void close_fd(void *p) {
    close((int)(intptr_t)p);
}

int arena_defer_close(arena *a, int fd) {
    arena_defer(a, close_fd, (void *)(intptr_t)fd);
    return fd;
}

size_t arena_used(const arena *a) {
    return a->used;
}

arena_guard arena_guard_push(arena *a, jmp_buf *to) {
    arena_guard g = {.a = a, .prev = a->oom};
    a->oom = to;
    return g;
}

void arena_guard_pop(arena_guard *g) {
    g->a->oom = g->prev;
}

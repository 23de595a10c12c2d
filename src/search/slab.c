// slab: memory that holds the texts of many files, one after the other, so that a scan runs through them
// without a stop. Counted: versions of a corpus share it, and it goes with the last of them. One thread adds
// to it; what has been sealed does not change any more and is read by any number of threads. Knows no text.
#include "search/search_int.h"
#include <stdlib.h>
#include <sys/mman.h>

enum : size_t { HUGE_PAGE = (size_t)2 << 20, SLAB_USUAL = (size_t)2 << 20 };

enum : size_t { BLOCK_USUAL = (size_t)64 << 10, BLOCK_ALIGN = 8 };

struct slab_block {
    slab_block *next;
    size_t n, used;
    alignas(8) char bytes[];
};

slab *slab_new(size_t cap) {
    slab *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    atomic_init(&s->refs, 1);
    size_t all = SLAB_TAIL + cap + SLAB_TAIL;
    if (all >= HUGE_PAGE) {
        all = (all + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
        s->text = aligned_alloc(HUGE_PAGE, all);
        // Fewer, larger pages: a scan touches all of them. Where that cannot be had, nothing is lost.
        if (s->text) (void)madvise(s->text, all, MADV_HUGEPAGE);
    } else {
        s->text = malloc(all);
    }
    if (!s->text) {
        free(s);
        return NULL;
    }
    s->cap = all - SLAB_TAIL;
    s->used = SLAB_TAIL;
    memset(s->text, 0, SLAB_TAIL);
    return s;
}

slab *slab_take(slab *s) {
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void slab_drop(slab *s) {
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
    for (slab_block *b = s->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(s->text);
    free(s);
}

bool slab_fits(const slab *s, size_t n) {
    return s->used <= s->cap && n < s->cap - s->used;
}

static bool copy(char *to, str text, stop_sign *stop) {
    for (size_t at = 0, some; at < text.n; at += some) {
        some = text.n - at < STOP_EACH ? text.n - at : STOP_EACH;
        memcpy(to + at, text.p + at, some);
        if (stop_after(stop, some)) return false;
    }
    return true;
}

const char *slab_add(slab *s, str path, str text, stop_sign *stop) {
    char *p = s->text + s->used;
    if (path.n) memcpy(p, path.p, path.n);
    p[path.n] = '\n';
    p += path.n + 1;
    if (!copy(p, text, stop)) return NULL;
    // A line end between two files, and something to read behind the last.
    p[text.n] = '\n';
    memset(p + text.n + 1, 0, SLAB_TAIL - 1);
    s->used += path.n + 1 + text.n + 1;
    return p;
}

void *slab_block_new(slab *s, size_t n) {
    n = (n + BLOCK_ALIGN - 1) / BLOCK_ALIGN * BLOCK_ALIGN;
    slab_block *b = s->blocks;
    if (!b || b->n - b->used < n) {
        // Many files share one: as many small ones would cost the allocator a system call each.
        size_t usual = s->cap / 16 < BLOCK_USUAL ? s->cap / 16 : BLOCK_USUAL, all = n > usual ? n : usual;
        b = malloc(sizeof *b + all);
        if (!b) return NULL;
        *b = (slab_block){.next = s->blocks, .n = all};
        s->blocks = b;
        s->held += sizeof *b + all;
    }
    b->used += n;
    return b->bytes + b->used - n;
}

static void forget_blocks(slab *s) {
    slab_block *b = s->blocks;
    for (slab_block *next; b && b->next; b = next) {
        next = b->next;
        s->held -= sizeof *b + b->n;
        free(b);
    }
    if (b) b->used = 0;
    s->blocks = b;
    s->used = SLAB_TAIL;
}

void slabs_empty(slabs *list) {
    slab *kept = NULL;
    // The largest of the usual sizes: what a huge file needed goes back.
    for (size_t i = 0; i < list->n; i++) {
        slab *s = list->p[i];
        bool better = s->cap <= SLAB_USUAL && (!kept || s->cap > kept->cap);
        slab_drop(better ? kept : s);
        if (better) kept = s;
    }
    list->n = 0;
    if (!kept) return;
    list->p[list->n++] = kept;
    forget_blocks(kept);
}

void slabs_drop(slabs *list) {
    for (size_t i = 0; i < list->n; i++) slab_drop(list->p[i]);
    free(list->p);
    *list = (slabs){0};
}

void slab_seal(slab *s) {
    s->used += SLAB_TAIL;
}

size_t slab_size(const slab *s) {
    return s->cap + SLAB_TAIL + s->held + sizeof *s;
}

bool slab_list_add(slabs *list, slab *s) {
    if (list->n == list->cap) {
        size_t cap = list->cap ? list->cap * 2 : 16;
        slab **p = realloc(list->p, cap * sizeof *p);
        if (!p) {
            slab_drop(s);
            return false;
        }
        list->p = p;
        list->cap = cap;
    }
    list->p[list->n++] = s;
    return true;
}

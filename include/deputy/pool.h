// pool: memory that is given back and taken again. Asking the system for fresh pages each time costs as much
// as folding or scanning does. Any number of threads.
#pragma once
#include <deputy/arena.h>

typedef struct pool pool;

// keep: bytes that may lie unused in it. NULL: no memory.
pool *pool_new(size_t keep);
void pool_free(pool *p); // nothing of it is in use any more; NULL is fine
// At least n bytes, *got of them (may be NULL), not cleared; NULL: no memory. Without a pool, from malloc.
void *pool_take(pool *p, size_t n, size_t *got);
void pool_give(pool *p, void *block); // NULL is fine
arena_source pool_source(pool *p);    // of an arena
// An array of *cap elements of `size` bytes gets room for `need`; its first `used` are kept. False: no
// memory, and all is as it was.
bool pool_grow(pool *p, void **block, size_t *cap, size_t need, size_t used, size_t size);

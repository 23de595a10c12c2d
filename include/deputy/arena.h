// arena: memory with a named lifetime, and the cleanup that belongs to it.
// Lifetimes, longest first: process > workspace snapshot > delegation > turn > scratch. A function's arena
// parameter says where its result lives; nothing may point from a longer-lived arena into a shorter one. One
// thread at a time.
//
// Out of memory: arena_alloc never returns NULL. Under ARENA_CATCH it unwinds to that frame, which returns
// DEP_ERR_NOMEM; without one the process ends with a message. Code under ARENA_CATCH keeps everything that
// must be released on an arena (arena_defer), because the frames between are skipped.
#pragma once
#include <deputy/err.h>
#include <deputy/str.h>
#include <setjmp.h>
#include <stddef.h>

typedef struct arena arena;

// Source of the arena's blocks; a test double can fail the n-th call. free gets what alloc gave.
typedef struct {
    void *(*alloc)(void *ctx, size_t n);
    void (*free)(void *ctx, void *p);
    void *ctx;
    void *(*grow)(void *ctx, void *p, size_t n); // as realloc; may be NULL
} arena_source;

// A new arena from malloc; ends the process when even that fails. Release with arena_free.
arena *arena_new(void);
// From another source; NULL when it gives nothing. one_each: every allocation is its own block, so that ASan
// and valgrind see each bound (also on when the environment of the build defines DEPUTY_ARENA_ONE_EACH).
arena *arena_new_from(const arena_source *src, bool one_each);
// Runs deferred cleanup in reverse order, then frees. NULL is fine.
void arena_free(arena *a);
// As arena_free, but the arena stays usable and keeps its first block.
void arena_reset(arena *a);
// Zeroed memory, aligned for any type. n = 0 gives a valid, distinct pointer.
[[nodiscard, gnu::malloc, gnu::alloc_size(2), gnu::returns_nonnull]] void *arena_alloc(arena *a, size_t n);
// The same, not zeroed: for bytes that are written before they are read. Those of a large block cost nothing
// until then.
[[nodiscard, gnu::malloc, gnu::alloc_size(2), gnu::returns_nonnull]] void *arena_bytes(arena *a, size_t n);
// n * size with an overflow check.
[[nodiscard, gnu::returns_nonnull]] void *arena_calloc(arena *a, size_t n, size_t size);
// Grows p from old to n bytes, in place when it is the newest allocation; the added bytes are zero.
[[nodiscard, gnu::returns_nonnull]] void *arena_grow(arena *a, void *p, size_t old, size_t n);
// The same; what is added holds anything. A large block grows without a copy where the system can do that.
[[nodiscard, gnu::returns_nonnull]] void *arena_grow_bytes(arena *a, void *p, size_t old, size_t n);
// Calls fn(p) when the arena is freed or reset.
void arena_defer(arena *a, void (*fn)(void *), void *p);
// Closes the descriptor when the arena is freed; returns fd.
int arena_defer_close(arena *a, int fd);
// Bytes handed out so far (for tests and limits).
size_t arena_used(const arena *a);

#define NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define NEW_N(a, T, n) ((T *)arena_calloc((a), (n), sizeof(T)))

typedef struct arena_guard {
    arena *a;
    jmp_buf *prev;
} arena_guard;
arena_guard arena_guard_push(arena *a, jmp_buf *to);
void arena_guard_pop(arena_guard *g);

// First statement of a function returning dep_status: an allocation failure of `a` below it returns
// DEP_ERR_NOMEM from here.
#define ARENA_CATCH(a, err)                                                                                  \
    jmp_buf arena_catch_buf;                                                                                 \
    [[gnu::cleanup(arena_guard_pop)]] arena_guard arena_catch_guard =                                        \
        arena_guard_push((a), &arena_catch_buf);                                                             \
    if (setjmp(arena_catch_buf) != 0) return err_set((err), DEP_ERR_NOMEM, "out of memory")

// A typed growable array in an arena: VEC(int) v = {0}; vec_push(a, &v, 3);
#define VEC(T)                                                                                               \
    struct {                                                                                                 \
        T *p;                                                                                                \
        size_t n, cap;                                                                                       \
    }
#define vec_push(a, v, ...)                                                                                  \
    do {                                                                                                     \
        if ((v)->n == (v)->cap) (v)->p = vec_grow_((a), (v)->p, &(v)->cap, sizeof *(v)->p);                  \
        (v)->p[(v)->n++] = (__VA_ARGS__);                                                                    \
    } while (0)
void *vec_grow_(arena *a, void *p, size_t *cap, size_t size);
// Room for n elements in all, where their number is known.
#define vec_reserve(a, v, count)                                                                             \
    do {                                                                                                     \
        size_t vec_n_ = (count);                                                                             \
        if (vec_n_ > (v)->cap) (v)->p = vec_fit_((a), (v)->p, &(v)->cap, vec_n_, sizeof *(v)->p);            \
    } while (0)
void *vec_fit_(arena *a, void *p, size_t *cap, size_t n, size_t size);
// for (vec_each(T, it, v)) { … it is T* }
#define vec_each(T, it, v)                                                                                   \
    T *it = (v)->p;                                                                                          \
    (v)->n &&it < (v)->p + (v)->n;                                                                           \
    it++

typedef VEC(str) strs;

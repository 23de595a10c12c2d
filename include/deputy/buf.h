// buf: a growable byte buffer in an arena, with a ceiling. Exceeding the ceiling sets `over` and drops the
// rest at a character boundary: check once at the end.
#pragma once
#include <deputy/arena.h>
#include <deputy/str.h>

typedef struct {
    arena *a;
    char *p;
    size_t n, cap, max;
    bool over;
} buf;

// max: the ceiling in bytes; 0 means BUF_MAX.
enum : size_t { BUF_MAX = (size_t)1 << 30 };
static inline buf buf_new(arena *a, size_t max) {
    return (buf){.a = a, .max = max ? max : BUF_MAX};
}
void buf_add(buf *b, str s);
void buf_addc(buf *b, char c);
void buf_reserve(buf *b, size_t more); // room for more bytes than that behind the last one, whatever max says
void buf_fill(buf *b, char c, size_t n);
[[gnu::format(printf, 2, 3)]] void buf_addf(buf *b, const char *fmt, ...);
// The text so far; valid until the next append. Always followed by a NUL byte that is not counted.
str buf_str(buf *b);
static inline void buf_clear(buf *b) {
    b->n = 0;
    b->over = false;
}

// buf: appending with a ceiling. The check is the caller's, once, at the end: b.over.
#include <deputy/buf.h>
#include <deputy/utf8.h>
#include <stdio.h>

void buf_reserve(buf *b, size_t more) {
    if (b->cap - b->n > more) return;
    enum { FIRST = 256 };
    size_t cap = b->cap ? b->cap : more < FIRST ? FIRST : more + 2; // and a NUL
    while (cap - b->n <= more) cap *= 2;
    b->p = arena_grow_bytes(b->a, b->p, b->cap, cap);
    b->cap = cap;
}

void buf_add(buf *b, str s) {
    if (b->over || s.n == 0) return;
    if (s.n > b->max - b->n) {
        b->over = true;
        s = str_sub(s, 0, utf8_floor(s, b->max - b->n));
        if (s.n == 0) return;
    }
    buf_reserve(b, s.n);
    memcpy(b->p + b->n, s.p, s.n);
    b->n += s.n;
}

void buf_addc(buf *b, char c) {
    buf_add(b, (str){&c, 1});
}

void buf_fill(buf *b, char c, size_t n) {
    for (size_t i = 0; i < n && !b->over; i++) buf_addc(b, c);
}

void buf_addf(buf *b, const char *fmt, ...) {
    char small[512];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(small, sizeof small, fmt, ap);
    va_end(ap);
    if (n < 0) return;
    if ((size_t)n < sizeof small) {
        buf_add(b, (str){small, (size_t)n});
        return;
    }
    va_start(ap, fmt);
    buf_add(b, str_vfmt(b->a, fmt, ap));
    va_end(ap);
}

str buf_str(buf *b) {
    buf_reserve(b, 1);
    b->p[b->n] = 0;
    return (str){b->p, b->n};
}

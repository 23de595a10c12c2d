// sort: see the header. Runs that qsort puts in order quickly, merged in passes. A pass that is stopped
// leaves what it reads as it was.
#include <deputy/sort.h>
#include <stdlib.h>
#include <string.h>

enum : size_t { RUN = 2048 };

typedef struct {
    size_t size;
    int (*cmp)(const void *x, const void *y);
    stop_sign *s;
} order;

// False: stopped.
static bool copy(const order *o, char *to, const char *from, size_t n) {
    for (size_t at = 0, some; at < n; at += some) {
        some = n - at < STOP_EACH ? n - at : STOP_EACH;
        memcpy(to + at, from + at, some);
        if (stop_after(o->s, some)) return false;
    }
    return true;
}

// Two runs that lie one after the other become one. False: stopped.
static bool merge(const order *o, const char *p, size_t n_left, size_t n, char *to) {
    size_t size = o->size;
    const char *left = p, *middle = p + n_left * size, *right = middle, *end = p + n * size;
    if (right == end || o->cmp(right - size, right) <= 0) return copy(o, to, p, n * size);
    while (left < middle && right < end) {
        bool from_left = o->cmp(left, right) <= 0;
        memcpy(to, from_left ? left : right, size);
        to += size;
        left += from_left ? size : 0;
        right += from_left ? 0 : size;
        if (stop_after(o->s, STOP_ITEM)) return false;
    }
    return left < middle ? copy(o, to, left, (size_t)(middle - left))
                         : copy(o, to, right, (size_t)(end - right));
}

static bool merge_all(const order *o, const char *p, size_t n, size_t width, char *to) {
    for (size_t at = 0; at < n; at += 2 * width) {
        size_t some = n - at < 2 * width ? n - at : 2 * width;
        if (!merge(o, p + at * o->size, some < width ? some : width, some, to + at * o->size)) return false;
    }
    return true;
}

// Also true when it is stopped: then nothing more is done.
static bool is_sorted(const order *o, const char *p, size_t n) {
    for (size_t i = 1; i < n; i++) {
        if (o->cmp(p + (i - 1) * o->size, p + i * o->size) > 0) return false;
        if (stop_after(o->s, STOP_ITEM)) break;
    }
    return true;
}

void *sort_until(arena *a, void *p, size_t n, size_t size, int (*cmp)(const void *x, const void *y),
                 stop_sign *s) {
    const order o = {.size = size, .cmp = cmp, .s = s};
    if (is_sorted(&o, p, n)) return p;
    for (size_t at = 0; at < n; at += RUN) {
        size_t some = n - at < RUN ? n - at : RUN;
        if (some > 1) qsort((char *)p + at * size, some, size, cmp);
        if (stop_after(s, some * STOP_ITEM)) return p;
    }
    if (n <= RUN) return p;
    char *from = p, *to = arena_bytes(a, n * size);
    for (size_t width = RUN; width < n; width *= 2) {
        if (!merge_all(&o, from, n, width, to)) return from;
        char *before = from;
        from = to;
        to = before;
    }
    return from;
}

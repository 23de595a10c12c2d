// str: functions over byte slices. Knows nothing of Unicode: see utf8.h for code points.
#include <deputy/arena.h>
#include <deputy/str.h>
#include <stdio.h>

int str_cmp(str a, str b) {
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

int str_cmp_qsort(const void *a, const void *b) {
    return str_cmp(*(const str *)a, *(const str *)b);
}

static unsigned char lower(char c) {
    unsigned char u = (unsigned char)c;
    return u >= 'A' && u <= 'Z' ? (unsigned char)(u + 32) : u;
}

bool str_ieq(str a, str b) {
    if (a.n != b.n) return false;
    for (size_t i = 0; i < a.n; i++)
        if (lower(a.p[i]) != lower(b.p[i])) return false;
    return true;
}

bool str_starts(str s, str prefix) {
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

bool str_ends(str s, str suffix) {
    return s.n >= suffix.n && (suffix.n == 0 || memcmp(s.p + s.n - suffix.n, suffix.p, suffix.n) == 0);
}

size_t str_find(str s, str needle) {
    if (needle.n == 0) return 0;
    if (s.n < needle.n) return SIZE_MAX;
    const char *at = memmem(s.p, s.n, needle.p, needle.n);
    return at ? (size_t)(at - s.p) : SIZE_MAX;
}

size_t str_chr(str s, char c) {
    const char *at = s.n ? memchr(s.p, c, s.n) : NULL;
    return at ? (size_t)(at - s.p) : SIZE_MAX;
}

size_t str_rchr(str s, char c) {
    const char *at = s.n ? memrchr(s.p, c, s.n) : NULL;
    return at ? (size_t)(at - s.p) : SIZE_MAX;
}

str str_sub(str s, size_t from, size_t to) {
    if (to > s.n) to = s.n;
    if (from > to) from = to;
    return s.p ? (str){s.p + from, to - from} : s;
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

str str_trim(str s) {
    while (s.n && is_blank(s.p[0])) s.p++, s.n--;
    while (s.n && is_blank(s.p[s.n - 1])) s.n--;
    return s;
}

bool str_cut(str s, char sep, str *head, str *tail) {
    size_t at = str_chr(s, sep);
    if (at == SIZE_MAX) {
        *head = s;
        *tail = (str){0};
        return false;
    }
    *head = str_sub(s, 0, at);
    *tail = str_sub(s, at + 1, s.n);
    return true;
}

bool str_u64(str s, uint64_t max, uint64_t *ret) {
    if (s.n == 0) return false;
    uint64_t v = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        uint64_t d = (uint64_t)(s.p[i] - '0');
        if (v > (UINT64_MAX - d) / 10) return false;
        v = v * 10 + d;
    }
    if (v > max) return false;
    *ret = v;
    return true;
}

size_t str_distance(str a, str b, size_t limit) {
    // Three rolling rows of the restricted Damerau-Levenshtein table; names are short, so longer ones count
    // as far apart.
    enum { LONGEST = 64 };
    if (a.n > LONGEST || b.n > LONGEST) return limit + 1;
    size_t rows[3][LONGEST + 1];
    for (size_t j = 0; j <= b.n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= a.n; i++) {
        size_t *cur = rows[i % 3], *up = rows[(i - 1) % 3], *upup = rows[(i + 1) % 3];
        cur[0] = i;
        for (size_t j = 1; j <= b.n; j++) {
            size_t cost = lower(a.p[i - 1]) != lower(b.p[j - 1]);
            size_t best = up[j - 1] + cost;
            if (up[j] + 1 < best) best = up[j] + 1;
            if (cur[j - 1] + 1 < best) best = cur[j - 1] + 1;
            if (i > 1 && j > 1 && lower(a.p[i - 1]) == lower(b.p[j - 2]) &&
                lower(a.p[i - 2]) == lower(b.p[j - 1]) && upup[j - 2] + 1 < best)
                best = upup[j - 2] + 1;
            cur[j] = best;
        }
    }
    size_t d = rows[a.n % 3][b.n];
    return d > limit ? limit + 1 : d;
}

uint64_t str_hash(str s) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < s.n; i++) h = (h ^ (unsigned char)s.p[i]) * 1099511628211u;
    return h;
}

str str_dup(arena *a, str s) {
    return (str){str_cz(a, s), s.n};
}

char *str_cz(arena *a, str s) {
    char *p = arena_alloc(a, s.n + 1);
    if (s.n) memcpy(p, s.p, s.n);
    return p;
}

str str_vfmt(arena *a, const char *fmt, va_list ap) {
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) return (str){0};
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, ap);
    return (str){p, (size_t)n};
}

str str_fmt(arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str s = str_vfmt(a, fmt, ap);
    va_end(ap);
    return s;
}

str str_join(arena *a, const str *items, size_t n, str sep) {
    size_t total = 0;
    for (size_t i = 0; i < n; i++) total += items[i].n + (i ? sep.n : 0);
    char *p = arena_alloc(a, total + 1), *q = p;
    for (size_t i = 0; i < n; i++) {
        if (i && sep.n) q = mempcpy(q, sep.p, sep.n);
        if (items[i].n) q = mempcpy(q, items[i].p, items[i].n);
    }
    return (str){p, total};
}

str str_lower(arena *a, str s) {
    char *p = str_cz(a, s);
    for (size_t i = 0; i < s.n; i++) p[i] = (char)lower(p[i]);
    return (str){p, s.n};
}

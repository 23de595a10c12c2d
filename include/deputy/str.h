// str: a slice of bytes that somebody else owns. Not NUL-terminated; may hold NUL bytes.
// C strings exist only at the edges (libc, SQLite, curl), made by str_cz() which names the owner.
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct arena arena;

typedef struct {
    const char *p;
    size_t n;
} str;

#define S(lit) ((str){"" lit, sizeof(lit) - 1})
#define S_INIT(lit) {"" lit, sizeof(lit) - 1} // for static initialisers
#define STR_FMT "%.*s"
#define STR_ARG(s) (int)(s).n, (s).p ? (s).p : ""

// A slice over a C string; NULL gives the empty slice.
static inline str str_z(const char *z) {
    return z ? (str){z, strlen(z)} : (str){0};
}
static inline str str_n(const char *p, size_t n) {
    return (str){p, n};
}
static inline bool str_eq(str a, str b) {
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool str_empty(str s) {
    return s.n == 0;
}

// Byte order: negative, 0, positive; a proper prefix is smaller.
int str_cmp(str a, str b);
// qsort comparator over arrays of str, by bytes.
int str_cmp_qsort(const void *a, const void *b);
// ASCII case-insensitive equality; other bytes compare as they are.
bool str_ieq(str a, str b);
bool str_starts(str s, str prefix);
bool str_ends(str s, str suffix);
// Index of the first occurrence, or SIZE_MAX.
size_t str_find(str s, str needle);
size_t str_chr(str s, char c);
size_t str_rchr(str s, char c);
// s[from, to), clamped to the slice.
str str_sub(str s, size_t from, size_t to);
// Without blanks, tabs, CR and LF at both ends.
str str_trim(str s);
// Splits at the first sep: *head before it, *tail after it. False when there is none (*head = s, *tail
// empty).
bool str_cut(str s, char sep, str *head, str *tail);
// Whole-slice decimal, no sign, no blanks. False on anything else or above max.
bool str_u64(str s, uint64_t max, uint64_t *ret);
// Edit distance (insert, delete, replace, swap of neighbours), ASCII case folded; more than limit gives limit
// + 1.
size_t str_distance(str a, str b, size_t limit);
uint64_t str_hash(str s); // FNV-1a; stable across runs and machines

// Copies into the arena; never NULL, NUL-terminated beyond n.
str str_dup(arena *a, str s);
// A NUL-terminated copy owned by the arena. A NUL inside s ends the C string early: callers check where it
// matters.
char *str_cz(arena *a, str s);
[[gnu::format(printf, 2, 3)]] str str_fmt(arena *a, const char *fmt, ...);
str str_vfmt(arena *a, const char *fmt, va_list ap);
// Joins items with sep.
str str_join(arena *a, const str *items, size_t n, str sep);
// ASCII lower case copy.
str str_lower(arena *a, str s);

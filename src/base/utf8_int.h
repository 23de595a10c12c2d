// utf8_int: what the files of base that handle text share: property tests, the ASCII fast path, context of
// invisible characters. Every function accepts any bytes.
#pragma once
#include <deputy/utf8.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

enum : uint32_t {
    UTF8_REPLACEMENT = 0xFFFD,
    UTF8_BOM = 0xFEFF,
    UTF8_ZWSP = 0x200B,
    UTF8_ZWNJ = 0x200C,
    UTF8_ZWJ = 0x200D
};

static inline bool utf8_is_cont(unsigned char c) {
    return (c & 0xC0) == 0x80;
}

// Length of the well-formed sequence at p (n > 0 bytes are there), or 0. The bounds of the second byte keep
// out overlong forms, surrogates and what lies beyond 10FFFF (Unicode, table 3-7).
static inline size_t utf8_sequence(const unsigned char *p, size_t n, uint32_t *cp) {
    unsigned char c = p[0];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    if (c < 0xC2 || c > 0xF4) return 0;
    if (c < 0xE0) {
        if (n < 2 || !utf8_is_cont(p[1])) return 0;
        *cp = (uint32_t)(c & 0x1F) << 6 | (p[1] & 0x3F);
        return 2;
    }
    if (c < 0xF0) {
        unsigned char low = c == 0xE0 ? 0xA0 : 0x80, high = c == 0xED ? 0x9F : 0xBF;
        if (n < 3 || p[1] < low || p[1] > high || !utf8_is_cont(p[2])) return 0;
        *cp = (uint32_t)(c & 0x0F) << 12 | (uint32_t)(p[1] & 0x3F) << 6 | (p[2] & 0x3F);
        return 3;
    }
    unsigned char low = c == 0xF0 ? 0x90 : 0x80, high = c == 0xF4 ? 0x8F : 0xBF;
    if (n < 4 || p[1] < low || p[1] > high || !utf8_is_cont(p[2]) || !utf8_is_cont(p[3])) return 0;
    *cp = (uint32_t)(c & 0x07) << 18 | (uint32_t)(p[1] & 0x3F) << 12 | (uint32_t)(p[2] & 0x3F) << 6 |
          (p[3] & 0x3F);
    return 4;
}

// utf8_next for inner loops: *i is below s.n.
static inline uint32_t utf8_step(str s, size_t *i) {
    uint32_t cp = UTF8_BAD;
    size_t n = utf8_sequence((const unsigned char *)s.p + *i, s.n - *i, &cp);
    *i += n ? n : 1;
    return n ? cp : UTF8_BAD;
}

// A quick yes for the common scripts: letters and signs that are neither control, bidi, invisible nor a form
// of `<`. No means that it takes a closer look.
static inline bool utf8_is_ordinary(uint32_t cp) {
    if (cp < 0x115F)
        return (cp > 0xAD && cp != 0x34F && cp != 0x61C) || (cp >= 0x20 && cp < 0x7F && cp != '<');
    return cp >= 0x3000 && cp < 0xFB00 && cp != 0x3164;
}

typedef struct {
    uint32_t first, last;
} cp_range;
// Is cp in one of the ascending ranges?
bool cp_within(uint32_t cp, const cp_range *ranges, size_t n);

// Number of ASCII bytes at s.p[from] and after it.
size_t utf8_ascii_run(str s, size_t from);
// Number of printable ASCII bytes other than a and b there.
size_t utf8_printable_run(str s, size_t from, char a, char b);
// The code point that ends at *i, which moves back to its start. UTF8_BAD at the start of s and for invalid
// bytes.
uint32_t utf8_prev(str s, size_t *i);
// Default_Ignorable_Code_Point of Unicode, the unassigned ones included (utf8proc knows only the assigned
// ones).
bool utf8_is_ignorable(uint32_t cp);
// Does a grapheme end between these two? *state is 0 at the start of a text and belongs to the walk.
bool utf8_breaks(uint32_t before, uint32_t after, int32_t *state);
// Tag characters: a copy of ASCII that no screen shows.
static inline bool utf8_is_tag(uint32_t cp) {
    return cp >= 0xE0001 && cp <= 0xE007F;
}

// Is the invisible code point cp at s.p[at, next) one that visible text needs there: a joiner or selector of
// an emoji sequence, a flag's tags, a joiner in a script that is written with joiners? Such ones are neither
// escaped nor reported.
bool invisible_belongs(str s, size_t at, size_t next, uint32_t cp);
// Appends cp as \u{XXXX}; returns the characters added.
size_t escape_add(buf *b, uint32_t cp);

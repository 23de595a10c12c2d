// utf8_int: what the files of base that handle text share: property tests, the ASCII fast path, context of
// invisible characters. Every function accepts any bytes.
#pragma once
#include <deputy/utf8.h>

enum : uint32_t {
    UTF8_REPLACEMENT = 0xFFFD,
    UTF8_BOM = 0xFEFF,
    UTF8_ZWSP = 0x200B,
    UTF8_ZWNJ = 0x200C,
    UTF8_ZWJ = 0x200D
};

typedef struct {
    uint32_t first, last;
} cp_range;
// Is cp in one of the ascending ranges?
bool cp_within(uint32_t cp, const cp_range *ranges, size_t n);

// Number of ASCII bytes at s.p[from] and after it.
size_t utf8_ascii_run(str s, size_t from);
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

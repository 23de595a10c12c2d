// scan_common: how many lines hold a word that stands on every other one. No line is looked at by itself: of
// 64 bytes at a time, the places of words and of line ends are bits, and an addition carries each word to the
// end of its line.
#include "search/bytes.h"
#include "search/scan_int.h"

// Of 64 bytes: where words stand, where lines end; and what that makes of the lines. The same for each kind
// of processor.
#define COUNT_LINES(name, attributes, eq)                                                                    \
    attributes size_t name(const term_list *terms, const char *p, const char *end) {                         \
        size_t lines = 0;                                                                                    \
        unsigned long long carry = 0;                                                                        \
        /* With the line feed that stands behind the text. */                                                \
        for (const char *to = end + 1; p < to; p += 64) {                                                    \
            uint64_t words = 0, ends = eq(p, '\n'), left = (uint64_t)(to - p);                               \
            for (size_t t = 0; t < terms->n; t++) {                                                          \
                str word = terms->p[t].text;                                                                 \
                uint64_t here = UINT64_MAX;                                                                  \
                for (size_t i = 0; i < word.n; i++) here &= eq(p + i, word.p[i]);                            \
                words |= here;                                                                               \
            }                                                                                                \
            uint64_t within = left < 64 ? ((uint64_t)1 << left) - 1 : UINT64_MAX;                            \
            words &= within;                                                                                 \
            ends &= within;                                                                                  \
            /* Between two line ends all bits are set: a word's carry runs through them and sets the end. */ \
            uint64_t run = __builtin_addcll(~ends, words, carry, &carry);                                    \
            lines += (size_t)__builtin_popcountll(run & ends);                                               \
        }                                                                                                    \
        return lines;                                                                                        \
    }

COUNT_LINES(scan_count_lines, , bytes_equal)
#if defined(__x86_64__)
COUNT_LINES(scan_count_lines_avx2, BYTES_AVX2, bytes_equal_avx2)
COUNT_LINES(scan_count_lines_avx512, BYTES_AVX512, bytes_equal_avx512)
#endif

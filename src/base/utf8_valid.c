// utf8_valid: where a text stops being well-formed. Sixteen bytes at a time: what a pair of bytes may be is
// told by the halves of the first and the upper half of the second, each looked up in a table of what they
// allow to be wrong; a pair is wrong where all three agree. Where exactly, the plain walk tells.
#include "base/utf8_int.h"

#if defined(__SSSE3__)
#include <tmmintrin.h>
#endif

// The first byte from i on, which begins a character, that is not part of a well-formed one.
static size_t walk(str s, size_t i) {
    const unsigned char *p = (const unsigned char *)s.p;
    while ((i += utf8_ascii_run(s, i)) < s.n) {
        uint32_t cp;
        size_t n = utf8_sequence(p + i, s.n - i, &cp);
        if (n == 0) return i;
        i += n;
    }
    return SIZE_MAX;
}

#if defined(__SSSE3__)
// How a pair of bytes may be wrong.
enum {
    SHORT = 1 << 0,      // a character begins, and the next byte does not go on with it
    LONG = 1 << 1,       // ASCII, and the next byte goes on
    OVERLONG_2 = 1 << 2, // C0, C1
    OVERLONG_3 = 1 << 3, // E0, then below A0
    OVERLONG_4 = 1 << 4, // F0, then below 90
    SURROGATE = 1 << 5,  // ED, then above 9F
    BEYOND = 1 << 6,     // above 10FFFF: F4, then above 8F; F5 and above
    GOES_ON = 1 << 7,    // two bytes that go on: right where the first two of three or four came before
    // F5 and above before 80 to 8F: as F0 there, which has the only other bytes in the row of OVERLONG_4.
    ALWAYS = SHORT | LONG | GOES_ON,
    LARGE = ALWAYS | BEYOND,
};

static __m128i upper_half(__m128i v) {
    return _mm_and_si128(_mm_srli_epi16(v, 4), _mm_set1_epi8(15));
}

// Bytes that are wrong after those before them: not zero. v: sixteen bytes, before: the sixteen before those.
static __m128i wrong(__m128i v, __m128i before) {
    const __m128i by_upper =
                      _mm_setr_epi8(LONG, LONG, LONG, LONG, LONG, LONG, LONG, LONG, (char)GOES_ON,
                                    (char)GOES_ON, (char)GOES_ON, (char)GOES_ON, SHORT | OVERLONG_2, SHORT,
                                    SHORT | OVERLONG_3 | SURROGATE, SHORT | BEYOND | OVERLONG_4),
                  by_lower = _mm_setr_epi8(
                      (char)(ALWAYS | OVERLONG_2 | OVERLONG_3 | OVERLONG_4), (char)(ALWAYS | OVERLONG_2),
                      (char)ALWAYS, (char)ALWAYS, (char)LARGE, (char)(LARGE | OVERLONG_4),
                      (char)(LARGE | OVERLONG_4), (char)(LARGE | OVERLONG_4), (char)(LARGE | OVERLONG_4),
                      (char)(LARGE | OVERLONG_4), (char)(LARGE | OVERLONG_4), (char)(LARGE | OVERLONG_4),
                      (char)(LARGE | OVERLONG_4), (char)(LARGE | OVERLONG_4 | SURROGATE),
                      (char)(LARGE | OVERLONG_4), (char)(LARGE | OVERLONG_4)),
                  by_next = _mm_setr_epi8(SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT, SHORT,
                                          (char)(LONG | GOES_ON | OVERLONG_2 | OVERLONG_3 | OVERLONG_4),
                                          (char)(LONG | GOES_ON | OVERLONG_2 | OVERLONG_3 | BEYOND),
                                          (char)(LONG | GOES_ON | OVERLONG_2 | SURROGATE | BEYOND),
                                          (char)(LONG | GOES_ON | OVERLONG_2 | SURROGATE | BEYOND), SHORT,
                                          SHORT, SHORT, SHORT);
    __m128i one = _mm_alignr_epi8(v, before, 15), two = _mm_alignr_epi8(v, before, 14),
            three = _mm_alignr_epi8(v, before, 13);
    __m128i ways =
        _mm_and_si128(_mm_and_si128(_mm_shuffle_epi8(by_upper, upper_half(one)),
                                    _mm_shuffle_epi8(by_lower, _mm_and_si128(one, _mm_set1_epi8(15)))),
                      _mm_shuffle_epi8(by_next, upper_half(v)));
    // Third bytes, and fourth ones: their upper bit alone.
    __m128i due = _mm_or_si128(_mm_subs_epu8(two, _mm_set1_epi8((char)(0xE0 - 0x80))),
                               _mm_subs_epu8(three, _mm_set1_epi8((char)(0xF0 - 0x80))));
    return _mm_xor_si128(_mm_and_si128(due, _mm_set1_epi8((char)0x80)), ways);
}

// All pairs before i are right: where the character begins that is not whole there, or i.
static size_t begun_before(str s, size_t i) {
    const unsigned char *p = (const unsigned char *)s.p;
    for (size_t back = 1; back <= 3 && back <= i; back++) {
        unsigned char c = p[i - back];
        if (c >= 0xC0) return (size_t)(c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2) > back ? i - back : i;
    }
    return i;
}

size_t utf8_invalid_at(str s) {
    size_t i = 0;
    const __m128i none = _mm_setzero_si128();
    __m128i before = none;
    for (; s.n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(s.p + i));
        // Between ASCII and ASCII nothing can be wrong.
        if (_mm_movemask_epi8(_mm_or_si128(v, before)) &&
            _mm_movemask_epi8(_mm_cmpeq_epi8(wrong(v, before), none)) != 0xFFFF)
            break;
        before = v;
    }
    return walk(s, begun_before(s, i));
}
#else
size_t utf8_invalid_at(str s) {
    return walk(s, 0);
}
#endif

size_t utf8_invalid_until(str s, stop_sign *stop) {
    for (size_t from = 0, to; from < s.n; from = to) {
        to = utf8_floor(s, from + STOP_EACH);
        size_t bad = utf8_invalid_at(str_sub(s, from, to));
        if (bad != SIZE_MAX) return from + bad;
        if (stop_after(stop, to - from)) break;
    }
    return SIZE_MAX;
}

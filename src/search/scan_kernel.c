// scan_kernel: finds where a window of some term may stand, a vector of bytes at a time. One variant for each
// kind of processor, and a plain one for all others; which the processor can run is asked when a scan begins,
// so the program itself needs no more than x86-64-v2. Knows neither terms nor lines.
#include "search/bytes.h"
#include "search/scan_int.h"

// What the plain kernel and the widest look at; the others look at halves of one byte more.
enum { WINDOW = 3, WINDOW_HALVES = 4 };
static_assert(WINDOW_HALVES <= SCAN_WINDOW, "a table for each");

static size_t plain(const scan_tables *t, const char *p, size_t from, size_t to, scan_places_found *places) {
    const unsigned char *s = (const unsigned char *)p;
    for (; from < to && places->n < SCAN_FOUND; from++) {
        unsigned found = t->admits[0][s[from]] & t->admits[1][s[from + 1]] & t->admits[2][s[from + 2]];
        if (!found) continue;
        places->at[places->n] = (uint32_t)from;
        places->buckets[places->n++] = (uint8_t)found;
    }
    return from;
}

static void bounds(const char *p, size_t from, size_t at, size_t *start, size_t *end) {
    const char *before = memrchr(p + from, '\n', at - from);
    *start = before ? (size_t)(before - p) + 1 : from;
    *end = (size_t)((const char *)rawmemchr(p + at, '\n') - p);
}

#if defined(__x86_64__)
#include <cpuid.h>

#ifndef __has_feature
#define __has_feature(x) 0
#endif

// What a vector takes for a window is looked up byte by byte, without a branch. Each bit of mask is a byte of
// p, at base and after it.
static inline void take(const scan_tables *t, const char *p, size_t base, uint64_t mask, int window,
                        scan_places_found *places) {
    const unsigned char *s = (const unsigned char *)p + base;
    size_t n = places->n;
    for (; mask; mask &= mask - 1) {
        unsigned k = (unsigned)__builtin_ctzll(mask);
        uint8_t found = t->admits[0][s[k]] & t->admits[1][s[k + 1]] & t->admits[2][s[k + 2]];
        if (window > WINDOW) found &= t->admits[WINDOW][s[k + WINDOW]];
        places->at[n] = (uint32_t)(base + k);
        places->buckets[n] = found;
        n += found != 0;
    }
    places->n = n;
}

// The hardware does not look ahead over the end of a page: without this a text that is in no cache takes a
// quarter longer.
static inline void fetch_ahead(const char *p) {
    enum { PAGE = 4096 };
    _mm_prefetch(p + PAGE, _MM_HINT_T0);
}

// Those of the first `left` bytes.
static inline uint64_t within(uint64_t mask, size_t left) {
    return left < 64 ? mask & (((uint64_t)1 << left) - 1) : mask;
}

enum { BLOCKS = 64 };

// What was found in up to sixty-four blocks of sixty-four bytes, from base on, a bit for each byte; some: a
// bit for each block that has any. Returns where to go on: `from`, or the first block that there is no room
// for.
static inline size_t take_blocks(const scan_tables *t, const char *p, size_t base, size_t from, size_t to,
                                 const uint64_t masks[BLOCKS], uint64_t some, int window,
                                 scan_places_found *places) {
    for (; some && places->n < SCAN_FOUND; some &= some - 1) {
        unsigned k = (unsigned)__builtin_ctzll(some);
        size_t at = base + (size_t)k * 64;
        take(t, p, at, within(masks[k], to - at), window, places);
    }
    return some ? base + (size_t)__builtin_ctzll(some) * 64 : from;
}

// The lower halves of bytes are looked up by the shuffle that all of these processors have. Halves of four
// bytes say about as much as two whole bytes, and are had in less time: of UTF-8 and of letters the upper
// halves say little.
#define HALF(at, k) _mm_shuffle_epi8(low[k], _mm_and_si128(LOAD((at) + (k)), half))
#define LOAD(at) _mm_loadu_si128((const __m128i *)(p + (at)))

__attribute__((target("ssse3"))) static size_t with_ssse3(const scan_tables *t, const char *p, size_t from,
                                                          size_t to, scan_places_found *places) {
    const __m128i half = _mm_set1_epi8(15), zero = _mm_setzero_si128();
    __m128i low[WINDOW_HALVES];
    for (int k = 0; k < WINDOW_HALVES; k++) low[k] = _mm_loadu_si128((const __m128i *)t->low[k]);
    for (; from < to && places->n < SCAN_FOUND; from += 16) {
        fetch_ahead(p + from);
        __m128i r = _mm_and_si128(_mm_and_si128(HALF(from, 0), HALF(from, 1)),
                                  _mm_and_si128(HALF(from, 2), HALF(from, 3)));
        uint64_t mask = 0xFFFF & ~(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(r, zero));
        take(t, p, from, within(mask, to - from), WINDOW_HALVES, places);
    }
    return from < to ? from : to;
}
#undef HALF
#undef LOAD

// In one instruction, and in one part: a compiler that is told of no certain processor does neither. A
// sanitizer sees only what it does itself.
BYTES_AVX2 static inline __m256i lower_halves(const char *p, __m256i half) {
#if __has_feature(address_sanitizer)
    return _mm256_and_si256(bytes_load(p), half);
#else
    __m256i r;
    __asm__("vpand %1, %2, %0" : "=x"(r) : "m"(*(const __m256i_u *)p), "x"(half));
    return r;
#endif
}

#define HALF(at, k) _mm256_shuffle_epi8(low[k], lower_halves(p + (at) + (k), half))
#define HALF_ALL(at)                                                                                         \
    _mm256_and_si256(_mm256_and_si256(HALF(at, 0), HALF(at, 1)), _mm256_and_si256(HALF(at, 2), HALF(at, 3)))

// What is found is kept as bits, and looked at after so many blocks: a branch that nobody foresees costs as
// much as ten blocks that have nothing.
BYTES_AVX2 static size_t look_halves_up(const scan_tables *t, const char *p, size_t from, size_t to,
                                        scan_places_found *places) {
    const __m256i half = _mm256_set1_epi8(15), zero = _mm256_setzero_si256();
    __m256i low[WINDOW_HALVES];
    for (int k = 0; k < WINDOW_HALVES; k++)
        low[k] = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)t->low[k]));
    while (from < to && places->n < SCAN_FOUND) {
        uint64_t masks[BLOCKS], some = 0;
        size_t base = from;
        for (unsigned k = 0; k < BLOCKS && from < to; k++, from += 64) {
            fetch_ahead(p + from);
            masks[k] = ~bytes_equal_vectors(HALF_ALL(from), HALF_ALL(from + 32), zero);
            some |= (uint64_t)(masks[k] != 0) << k;
        }
        from = take_blocks(t, p, base, from, to, masks, some, WINDOW_HALVES, places);
    }
    return from < to ? from : to;
}
#undef HALF_ALL
#undef HALF

#define PAIR(at, k)                                                                                          \
    _mm256_and_si256(_mm256_cmpeq_epi8(bytes_load(p + (at)), pair[k][0]),                                    \
                     _mm256_cmpeq_epi8(bytes_load(p + (at) + 1), pair[k][1]))
#define PAIR_ALL(at) (pairs > 1 ? _mm256_or_si256(PAIR(at, 0), PAIR(at, 1)) : PAIR(at, 0))

// They are rare: hardly a block has one.
BYTES_AVX2 static inline size_t compare_pairs(const scan_tables *t, const char *p, size_t from, size_t to,
                                              unsigned pairs, scan_places_found *places) {
    __m256i pair[SCAN_PAIRS][2];
    for (int k = 0; k < SCAN_PAIRS; k++) {
        pair[k][0] = _mm256_set1_epi8((char)t->pair[k][0]);
        pair[k][1] = _mm256_set1_epi8((char)t->pair[k][1]);
    }
    for (; from < to && places->n < SCAN_FOUND; from += 64) {
        fetch_ahead(p + from);
        __m256i r = PAIR_ALL(from), next = PAIR_ALL(from + 32), both = _mm256_or_si256(r, next);
        if (_mm256_testz_si256(both, both)) continue;
        uint64_t mask = ~bytes_equal_vectors(r, next, _mm256_setzero_si256());
        take(t, p, from, within(mask, to - from), WINDOW_HALVES, places);
    }
    return from < to ? from : to;
}
#undef PAIR_ALL
#undef PAIR

BYTES_AVX2 static size_t with_avx2(const scan_tables *t, const char *p, size_t from, size_t to,
                                   scan_places_found *places) {
    return t->n_pairs == 0   ? look_halves_up(t, p, from, to, places)
           : t->n_pairs == 1 ? compare_pairs(t, p, from, to, 1, places)
                             : compare_pairs(t, p, from, to, 2, places);
}

// One instruction looks six bits of a byte up, and takes half the time of the one that looks seven up. Bytes
// that differ in the other two are taken for each other: a letter for a digit or a sign. In UTF-8 few such
// places can be.
#define LOOK(at, k) _mm512_permutexvar_epi8(_mm512_loadu_si512(p + (at)), admitted[k])
#define LOOK_TWO(at) _mm512_and_si512(LOOK(at, 0), LOOK((at) + 1, 1))
#define LOOK_THREE(at) _mm512_ternarylogic_epi64(LOOK(at, 0), LOOK((at) + 1, 1), LOOK((at) + 2, 2), 0x80)

#define WIDE __attribute__((target("avx512f,avx512bw,avx512vbmi")))

WIDE static inline __m512i admitted_by(const uint8_t all[256]) {
    __m512i low = _mm512_or_si512(_mm512_loadu_si512(all), _mm512_loadu_si512(all + 64));
    __m512i high = _mm512_or_si512(_mm512_loadu_si512(all + 128), _mm512_loadu_si512(all + 192));
    return _mm512_or_si512(low, high);
}

// Up to the next multiple of 64 bytes: vectors that lie across two lines of the cache take twice the time.
static inline size_t to_aligned(const char *p, size_t from, size_t to) {
    size_t step = -(uintptr_t)(p + from) % 64;
    return step < to - from ? step : to - from;
}

// As halves are looked up, above.
WIDE static size_t look_three_up(const scan_tables *t, const char *p, size_t from, size_t to,
                                 scan_places_found *places) {
    const __m512i admitted[] = {admitted_by(t->admits[0]), admitted_by(t->admits[1]),
                                admitted_by(t->admits[2])};
    if (from < to && places->n < SCAN_FOUND) {
        size_t step = to_aligned(p, from, to);
        __m512i r = LOOK_THREE(from);
        take(t, p, from, within(_mm512_test_epi8_mask(r, r), step), WINDOW, places);
        from += step;
    }
    while (from < to && places->n < SCAN_FOUND) {
        uint64_t masks[BLOCKS], some = 0;
        size_t base = from;
        for (unsigned k = 0; k < BLOCKS && from < to; k++, from += 64) {
            fetch_ahead(p + from);
            __m512i r = LOOK_THREE(from);
            masks[k] = _mm512_test_epi8_mask(r, r);
            some |= (uint64_t)(masks[k] != 0) << k;
        }
        from = take_blocks(t, p, base, from, to, masks, some, WINDOW, places);
    }
    return from < to ? from : to;
}

// Pairs are rare: hardly a block has one.
WIDE static size_t look_two_up(const scan_tables *t, const char *p, size_t from, size_t to,
                               scan_places_found *places) {
    const __m512i admitted[] = {admitted_by(t->admits[0]), admitted_by(t->admits[1])};
    for (size_t step; from < to && places->n < SCAN_FOUND; from += step) {
        size_t left = to - from;
        step = to_aligned(p, from, to);
        if (!step && left >= 128) {
            step = 128;
            fetch_ahead(p + from);
            fetch_ahead(p + from + 64);
            __m512i r = LOOK_TWO(from), next = LOOK_TWO(from + 64), both = _mm512_or_si512(r, next);
            if (_mm512_test_epi8_mask(both, both) == 0) continue;
            take(t, p, from, _mm512_test_epi8_mask(r, r), WINDOW, places);
            take(t, p, from + 64, _mm512_test_epi8_mask(next, next), WINDOW, places);
            continue;
        }
        if (!step) step = left < 64 ? left : 64;
        __m512i r = LOOK_TWO(from);
        take(t, p, from, within(_mm512_test_epi8_mask(r, r), step), WINDOW, places);
    }
    return from < to ? from : to;
}

WIDE static size_t with_avx512(const scan_tables *t, const char *p, size_t from, size_t to,
                               scan_places_found *places) {
    return t->pairs ? look_two_up(t, p, from, to, places) : look_three_up(t, p, from, to, places);
}
#undef LOOK_THREE
#undef LOOK_TWO
#undef LOOK

// Two vectors before the place, and two from it on, tell most lines: which of the two is no branch.
#define BOUNDS(name, attributes, equal)                                                                      \
    attributes static void name(const char *p, size_t from, size_t at, size_t *start, size_t *end) {         \
        (void)from; /* there is a line feed before it */                                                     \
        const char *q = p + at;                                                                              \
        uint64_t near = equal(q - 64, '\n'), far = equal(q - 128, '\n');                                     \
        while (!(near | far)) {                                                                              \
            q -= 128;                                                                                        \
            near = equal(q - 64, '\n');                                                                      \
            far = equal(q - 128, '\n');                                                                      \
        }                                                                                                    \
        q -= near ? 0 : 64;                                                                                  \
        *start = (size_t)(q - p) - (size_t)__builtin_clzll(near ? near : far);                               \
        q = p + at;                                                                                          \
        near = equal(q, '\n');                                                                               \
        far = equal(q + 64, '\n');                                                                           \
        while (!(near | far)) {                                                                              \
            q += 128;                                                                                        \
            near = equal(q, '\n');                                                                           \
            far = equal(q + 64, '\n');                                                                       \
        }                                                                                                    \
        q += near ? 0 : 64;                                                                                  \
        *end = (size_t)(q - p) + (size_t)__builtin_ctzll(near ? near : far);                                 \
    }

BOUNDS(bounds_avx2, BYTES_AVX2, bytes_equal_avx2)
BOUNDS(bounds_avx512, BYTES_AVX512, bytes_equal_avx512)

// What the processor has, and which registers the operating system keeps for us: without the second the first
// is no use.
static bool has(scan_variant v) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    if (v == SCAN_SSSE3) return c & bit_SSSE3;
    if (!(c & bit_OSXSAVE)) return false;
    unsigned kept, high;
    __asm__ volatile("xgetbv" : "=a"(kept), "=d"(high) : "c"(0));
    if ((kept & 0x06) != 0x06 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
    if (v == SCAN_AVX2) return b & bit_AVX2;
    return (kept & 0xE6) == 0xE6 && (b & bit_AVX512F) && (b & bit_AVX512BW) && (c & bit_AVX512VBMI);
}

static const scan_ops all[SCAN_VARIANTS] = {
    {plain, bounds, scan_count_lines, WINDOW, 0},
    {with_ssse3, bounds, scan_count_lines, WINDOW_HALVES, 0},
    {with_avx2, bounds_avx2, scan_count_lines_avx2, WINDOW_HALVES, SCAN_PAIRS},
    {with_avx512, bounds_avx512, scan_count_lines_avx512, WINDOW, SIZE_MAX},
};
#else
static const scan_ops all[SCAN_VARIANTS] = {{plain, bounds, scan_count_lines, WINDOW, 0}};

static bool has(scan_variant v) {
    (void)v;
    return false;
}
#endif

const scan_ops *scan_ops_of(scan_variant v) {
    return v < SCAN_VARIANTS && (v == SCAN_PLAIN || has(v)) ? &all[v] : NULL;
}

const scan_ops *scan_ops_best(void) {
    scan_variant v = SCAN_VARIANTS - 1;
    while (v > SCAN_PLAIN && !scan_ops_of(v)) v--;
    return &all[v];
}

// bytes: sixty-four bytes at a time, a bit for each.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum : size_t { BYTES = 64 };

// Which of p's sixty-four bytes are c.
static inline uint64_t bytes_equal(const char *p, char c) {
    uint64_t mask = 0;
#if defined(__x86_64__)
    const __m128i all = _mm_set1_epi8(c);
    for (int i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + i * 16));
        mask |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, all)) << (i * 16);
    }
#else
    for (int i = 0; i < 64; i++) mask |= (uint64_t)(p[i] == c) << i;
#endif
    return mask;
}

#if defined(__x86_64__)
// For the processors that can more than the program asks for.
#define BYTES_AVX2 __attribute__((target("avx2")))
#define BYTES_AVX512 __attribute__((target("avx512f,avx512bw")))

// Which of the sixty-four bytes of two vectors are those of `to`.
BYTES_AVX2 static inline uint64_t bytes_equal_vectors(__m256i v, __m256i w, __m256i to) {
    uint32_t low = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(v, to)),
             high = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(w, to));
    return (uint64_t)high << 32 | low;
}

// A compiler that is told of no certain processor loads such a vector in two parts, unless by lddqu.
BYTES_AVX2 static inline __m256i bytes_load(const char *p) {
    return _mm256_lddqu_si256((const __m256i *)p);
}

BYTES_AVX2 static inline uint64_t bytes_equal_avx2(const char *p, char c) {
    return bytes_equal_vectors(bytes_load(p), bytes_load(p + 32), _mm256_set1_epi8(c));
}

BYTES_AVX512 static inline uint64_t bytes_equal_avx512(const char *p, char c) {
    return _mm512_cmpeq_epi8_mask(_mm512_loadu_si512(p), _mm512_set1_epi8(c));
}
#endif

// The same of n bytes, less than sixty-four: no more are read. Out of line, because it is seldom needed.
[[gnu::noinline, maybe_unused]] static uint64_t bytes_equal_tail(const char *p, size_t n, char c) {
    char part[BYTES] = {0};
    memcpy(part, p, n);
    return bytes_equal(part, c) & (((uint64_t)1 << n) - 1);
}

// Of n bytes, or of the first sixty-four.
static inline uint64_t bytes_equal_of(const char *p, size_t n, char c) {
    return n >= BYTES ? bytes_equal(p, c) : bytes_equal_tail(p, n, c);
}

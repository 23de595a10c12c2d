// digest: SHA-256 (FIPS 180-4), our own on purpose. Every `deputy prompt` and `check` hashes the definitions
// for trust, so a library would be loaded at each start: linking libcrypto costs 0.8 ms and 2.3 MiB of the 3
// ms and 6 MiB those verbs may take, and loading it on first use saves nothing because there is always a use.
// What is hashed here is small (files of a layer, at most 256 KiB each), nothing is secret, so neither speed
// nor constant time is at stake. Keyed digests and signatures belong to libcrypto.
#include <deputy/sys.h>

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

enum { BLOCK = 64, TAIL = 8 }; // bytes of a block, and of the length at the end of the last one

static uint32_t rotr(uint32_t x, int n) {
    return x >> n | x << (32 - n);
}

static void add_block(uint32_t h[8], const unsigned char *p) {
    uint32_t w[64];
    for (int i = 0; i < 16; i++, p += 4) {
        w[i] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotr(w[i - 15], 7) ^ rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
        uint32_t s1 = rotr(w[i - 2], 17) ^ rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], k = h[7];
    for (int i = 0; i < 64; i++) {
        uint32_t t1 = k + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + K[i] + w[i];
        uint32_t t2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
        k = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    h[0] += a, h[1] += b, h[2] += c, h[3] += d;
    h[4] += e, h[5] += f, h[6] += g, h[7] += k;
}

str sha256_hex(arena *a, str bytes) {
    uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                     0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t left = bytes.n;
    for (; left >= BLOCK; left -= BLOCK, p += BLOCK) add_block(h, p);

    unsigned char last[2 * BLOCK] = {0};
    if (left) memcpy(last, p, left);
    last[left] = 0x80;
    size_t n = left < BLOCK - TAIL ? BLOCK : 2 * BLOCK;
    uint64_t bits = (uint64_t)bytes.n * 8;
    for (size_t i = 0; i < TAIL; i++) last[n - 1 - i] = (unsigned char)(bits >> 8 * i);
    for (size_t i = 0; i < n; i += BLOCK) add_block(h, last + i);

    char *hex = arena_alloc(a, 65);
    for (size_t i = 0; i < 64; i++) hex[i] = "0123456789abcdef"[h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    return (str){hex, 64};
}

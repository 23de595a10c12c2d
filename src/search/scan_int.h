// scan_int: the two halves of the scanner. A kernel runs over folded text and finds places where a window of
// three or four bytes of some term stands; what is really there is then looked at. Terms are spread over
// eight buckets, one bit each: a kernel knows only which bytes a bucket admits at each place of the window.
#pragma once
#include "search/search_int.h"

enum {
    SCAN_BUCKETS = 8,
    SCAN_WINDOW = 4,
    SCAN_PAIRS = 2,
    SCAN_AHEAD = 80,   // readable bytes that must follow the text: one vector and a window
    SCAN_AROUND = 128, // and before and behind it, where lines and the start of a stem are looked for
    SCAN_FOUND = 1024, // places that one call of a kernel finds at most, and two vectors' worth more
    SCAN_FOUND_MAX = SCAN_FOUND + 128,
};

typedef struct {
    uint8_t admits[SCAN_WINDOW][256]; // byte → buckets
    uint8_t low[SCAN_WINDOW][16];     // the same by the lower halves of bytes: lets more through
    bool pairs;                       // what is behind the second place admits everything: no need to look
    // Up to so many pairs are compared faster than looked up; 0: there are more, or they are not rare.
    uint8_t pair[SCAN_PAIRS][2], n_pairs;
} scan_tables;

typedef struct {
    size_t n;
    uint32_t at[SCAN_FOUND_MAX]; // from the start of the text
    uint8_t buckets[SCAN_FOUND_MAX];
} scan_places_found;

// Adds places in p[from, to), in order; returns where to go on: `to`, or less when there is no more room.
// p[to + SCAN_AHEAD - 1] can be read. May find places that are none; misses none.
typedef size_t scan_kernel(const scan_tables *t, const char *p, size_t from, size_t to,
                           scan_places_found *places);

// The line that holds p[at], at or after `from`, where it or one before it begins: where it begins, and the
// line feed that ends it. There is one, and one before `from`; SCAN_AROUND bytes before and behind p[at] can
// be read.
typedef void scan_bounds(const char *p, size_t from, size_t at, size_t *start, size_t *end);

// Counts the lines of [p, end) that hold the text of a term; `end` is that of a file, and words are of
// SCAN_COMMON_MAX bytes at most.
enum { SCAN_COMMON_MAX = 60 };
typedef size_t scan_counter(const term_list *terms, const char *p, const char *end);
extern scan_counter scan_count_lines, scan_count_lines_avx2, scan_count_lines_avx512;

typedef enum { SCAN_PLAIN, SCAN_SSSE3, SCAN_AVX2, SCAN_AVX512, SCAN_VARIANTS } scan_variant;

// How one kind of processor does it.
struct scan_ops {
    scan_kernel *kernel;
    scan_bounds *bounds;
    scan_counter *count;
    uint32_t window; // bytes of it that the kernel looks at
    size_t pairs;    // terms for which it rather looks at two, if these are rare
};

// NULL: this processor cannot run it.
const scan_ops *scan_ops_of(scan_variant v);
// Asks the processor, which in a virtual machine takes longer than a short scan.
const scan_ops *scan_ops_best(void);

// What one worker scans at a time. Less is not worth a thread.
enum : size_t { SCAN_CHUNK_BYTES = (size_t)512 << 10, SCAN_PART_BYTES = (size_t)3 << 20 };
enum { SCAN_CHUNK_FILES = 512 };

// scan_lines as on a given processor, with chunks of about so many bytes.
[[nodiscard]] dep_status scan_lines_with(const scan_ops *ops, size_t chunk_bytes, arena *a, crew *crew,
                                         const term_list *terms, const selected_file *files, size_t n,
                                         const search_corpus *c, scan_take *take, void *ctx, scan_result *ret,
                                         dep_err *err);

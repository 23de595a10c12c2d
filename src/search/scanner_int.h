// scanner_int: what scan.c and scan_parts.c share: one worker's scanner. scan.c makes lines of the places
// that a kernel finds; scan_parts.c divides the files among workers and puts together what they found.
#pragma once
#include "search/scan_int.h"

static_assert(SLAB_TAIL >= SCAN_AROUND, "what is read around a text");
static_assert(SEARCH_TERMS_MAX + TERM_GRAMS_MAX + NEAR_TERMS_MAX * NEAR_WORDS_MAX <= UINT8_MAX,
              "the terms of a line are counted in a byte");

// What is looked at of a place first.
typedef struct {
    uint64_t first, mask; // the stem's first bytes, as many as fit in
    uint32_t stem, text;  // bytes of each
    uint16_t window;      // where in the stem the window begins
    uint16_t number;
    bool word, near;
    bool counts;                // in how many lines it stands
    uint32_t word_in, start_in; // serials of the last lines that were counted
    uint32_t serial;            // of the last line that has it
    uint32_t index;             // of its hit there
    const char *ahead;          // what begins before this has been counted
    const term *t;
} needle;

// What one worker has found: the chunks it took, one after the other.
typedef struct {
    pool *pool;
    line_hit *lines;
    term_hit *hits;
    path_hit *paths;
    size_t n_lines, n_hits, n_paths, cap_lines, cap_hits, cap_paths;
} found_lines;

typedef struct {
    size_t from, to; // files
    size_t worker, first, n_lines, first_path, n_paths;
    size_t files, bytes, matched, expanded, unranked;
} chunk;

typedef struct {
    const selected_file *files;
    const search_corpus *c;
    const scan_ops *ops;
    crew *crew;
    size_t worker;
    scan_tables tables;
    const term_list *terms;
    size_t n_terms, limit, most_lines; // most_lines: of a file
    size_t first_of_file;              // found when it was entered
    needle *needles;                   // by bucket
    uint16_t first[SCAN_BUCKETS + 1];
    // What is done with a place: it is counted in its line, or shown to somebody.
    found_lines found;
    scan_visit *visit;
    scan_take *take;
    void *ctx;   // of either
    chunk chunk; // a copy: those beside it belong to other workers
    // The line at hand.
    size_t file;
    const corpus_file *f;
    uint32_t line, line_end; // where it begins and ends
    uint32_t serial;
    term_hit *hits; // in found, or `spare` when there is no room
    term_hit *spare;
    term_lines *lines_of; // by term
    uint32_t n_hits;
    uint32_t room; // lines that there is room for in any case
    bool exact, common;
} scanner;

// like: another scanner of the same terms, or one with nothing but what they have in common. What the scanner
// needs lives in `a`, and is given back with it.
void scanner_new(arena *a, scanner *s, const term_list *terms, const scanner *like, size_t worker);
// Scans s->chunk, and shows it to s->take.
[[nodiscard]] dep_status scanner_chunk(scanner *s, dep_err *err);
// Its first n lines.
scan_chunk scanner_found(const chunk *c, const found_lines *f, size_t n);

// scan_naive: the oracle of the scanner.
#pragma once
#include "search/search_int.h"

typedef struct {
    VEC(line_hit) lines; // by file and line
    VEC(term_hit) hits;
    term_lines *lines_of; // by term, all of them
    size_t files, bytes, matched, expanded, unranked;
} naive_result;

void scan_naive(arena *a, const term_list *terms, const selected_file *files, size_t n,
                const search_corpus *c, naive_result *ret);

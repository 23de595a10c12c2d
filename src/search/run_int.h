// run_int: what run.c and direct.c share: one question, and the way from its lines to an answer.
#pragma once
#include "search/scan_int.h"

typedef struct {
    search_corpus *c;
    const search_query *q;
    arena *scratch;
    crew *crew; // made in scratch
    stop_sign *asks;
    uint32_t source; // SEARCH_NO_SOURCE: all
    glob_pat *path;  // NULL: all
    const selected_file *files;
    size_t n_files;
    selection_sums sums; // of files[]
    bool cut_query;
} run;

typedef struct {
    term_list terms;
    scan_result scan;
    ranking *ranking;
    ranked_line *ranked;
    size_t n_ranked;
} found;

// Terms and path of the question. Under ARENA_CATCH of r->scratch. Errors: INVALID.
[[nodiscard]] dep_status run_parse(run *r, found *f, dep_err *err);
// Does the path filter admit it?
bool run_admits(const run *r, str path);
// The best lines of f->scan. Under ARENA_CATCH likewise.
[[nodiscard]] dep_status run_rank(const run *r, found *f, dep_err *err);
// r->files[] of the lines that are shown must be there, with their originals. On all threads of the crew.
[[nodiscard]] dep_status run_answer(const run *r, arena *a, const found *f, search_result *ret, dep_err *err);

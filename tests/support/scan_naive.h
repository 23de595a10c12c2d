// scan_naive: the scanner that is too simple to be wrong. It defines which lines match and what is counted.
#pragma once
#include "search/search_int.h"

void scan_naive(arena *a, const term_list *terms, const selected_file *files, size_t n,
                const search_corpus *c, scan_result *ret);

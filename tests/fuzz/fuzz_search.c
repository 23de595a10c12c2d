// fuzz: one text as a corpus keeps it. The original comes back byte by byte and line by line, and each line
// folds to the line that is searched.
#include "search/search_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool so) {
    if (!so) abort();
}

static void check_lines(arena *a, const corpus_file *f, str text) {
    str rest = text, line;
    uint32_t at = 0;
    for (uint32_t i = 0; i < f->n_lines; i++, at = corpus_next_line(f, at)) {
        (void)str_cut(rest, '\n', &line, &rest);
        // Hundreds of accents on one letter are taken in pieces, which begin elsewhere then.
        must(text.n >= 256 || str_eq(utf8_fold(a, line), corpus_line(f, at)));
        if (line.n && line.p[line.n - 1] == '\r') line.n--;
        must(str_eq(corpus_original(a, f, at, i), line));
        must(corpus_line_number(f, at) == i && corpus_line_start(f, 0, at) == at);
    }
    must(utf8_fold(a, rest).n == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2 || n > 4096) return 0;
    arena *a = arena_new();
    size_t at = data[0], many = data[1];
    str text = utf8_repair(a, str_n((const char *)data + 2, n - 2));
    slabs s = {0};
    corpus_file f = {0};
    dep_err err;
    corpus_parts parts;
    corpus_prepare(a, S("a.md"), text, false, NULL, &parts);
    must(corpus_keep(&parts, &s, &f, &err) == DEP_OK);
    must(str_eq(f.folded, utf8_fold(a, text)));
    must(str_eq(corpus_text(a, &f, 0, text.n), text));
    if (at > text.n) at = text.n;
    if (many > text.n - at) many = text.n - at;
    must(str_eq(corpus_text(a, &f, at, at + many), str_sub(text, at, at + many)));
    check_lines(a, &f, text);
    for (uint32_t i = 0; i < f.n_heads; i++)
        must((size_t)f.heads[i].at + f.heads[i].n <= text.n && f.spans[i].first < f.spans[i].body);
    for (size_t i = 0; i < s.n; i++) slab_drop(s.p[i]);
    free(s.p);
    arena_free(a);
    return 0;
}

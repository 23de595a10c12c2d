// scan_naive: finds the lines that hold a term, one memmem pass a term and file. Slow next to what can be
// done, and kept because it is obvious: it is the oracle of the scanner in src/search/scan.c. Knows no order
// of hits.
#include "support/scan_naive.h"

typedef struct {
    uint32_t line;
    bool exact;
    term_hit hit;
} occurrence; // of one term in one line

typedef VEC(occurrence) occurrences;

// The occurrences of one term in lines [from, to).
static void find(arena *a, const term *t, uint16_t number, const corpus_file *f, uint32_t from, uint32_t to,
                 occurrences *out) {
    uint32_t line = from;
    str s = str_sub(f->folded, 0, f->starts[to]);
    out->n = 0;
    for (size_t at = f->starts[from]; s.n - at >= t->stem.n;) {
        const char *p = memmem(s.p + at, s.n - at, t->stem.p, t->stem.n);
        if (!p) break;
        at = (size_t)(p - s.p);
        while (f->starts[line + 1] <= at) line++;
        bool exact = str_starts(str_sub(s, at, s.n), t->text);
        bool same = out->n && out->p[out->n - 1].line == line;
        occurrence o = {.line = line, .hit = {.term = number, .at = (uint32_t)(at - f->starts[line])}};
        if (same) o = out->p[out->n - 1];
        if (count_occurrence(t, s, at, exact, &o.hit)) {
            o.exact = o.exact || (exact && !t->near);
            if (same)
                out->p[out->n - 1] = o;
            else
                vec_push(a, out, o);
        }
        // A stem may overlap itself, and the whole term begin within what was only a stem.
        at += exact ? t->text.n : 1;
    }
}

// Joins the terms' occurrences, each sorted by line, into lines.
static void merge(arena *a, const occurrences *of, size_t *next, size_t n_terms, uint32_t file, size_t limit,
                  scan_result *ret) {
    for (size_t t = 0; t < n_terms; t++) next[t] = 0;
    for (;;) {
        uint32_t line = UINT32_MAX;
        for (size_t t = 0; t < n_terms; t++)
            if (next[t] < of[t].n && of[t].p[next[t]].line < line) line = of[t].p[next[t]].line;
        if (line == UINT32_MAX) return;
        bool keep = ret->lines.n < limit;
        line_hit l = {.file = file, .line = line, .first = (uint32_t)ret->hits.n};
        for (size_t t = 0; t < n_terms; t++) {
            if (next[t] >= of[t].n || of[t].p[next[t]].line != line) continue;
            const occurrence *o = &of[t].p[next[t]++];
            l.exact = l.exact || o->exact;
            l.n++;
            if (keep) vec_push(a, &ret->hits, o->hit);
        }
        if (l.exact)
            ret->matched++;
        else
            ret->expanded++;
        if (keep)
            vec_push(a, &ret->lines, l);
        else
            ret->unranked++;
    }
}

// Memory and the time between two questions whether to stop follow the block, not the file.
enum { BLOCK_BYTES = 1 << 20 };

void scan_naive(arena *a, const term_list *terms, const selected_file *files, size_t n,
                const search_corpus *c, scan_result *ret) {
    *ret = (scan_result){0};
    occurrences *of = NEW_N(a, occurrences, terms->n);
    size_t *next = NEW_N(a, size_t, terms->n), since_asked = 0;
    for (size_t i = 0; i < n; i++) {
        const corpus_file *f = files[i].file;
        for (uint32_t from = 0, to = 0; from < f->n_lines; from = to) {
            while (to < f->n_lines && f->starts[to] - f->starts[from] < BLOCK_BYTES) to++;
            since_asked += f->starts[to] - f->starts[from] + BLOCK_BYTES / 64;
            if (since_asked >= BLOCK_BYTES) {
                since_asked = 0;
                ret->cancelled = c->ask && c->ask(c->ctx);
                if (ret->cancelled) return;
            }
            for (size_t t = 0; t < terms->n; t++) find(a, &terms->p[t], (uint16_t)t, f, from, to, &of[t]);
            merge(a, of, next, terms->n, (uint32_t)i, c->limits.lines, ret);
        }
        ret->files++;
        ret->bytes += f->bytes;
    }
}

// scan_naive: finds the lines that hold a term, one memmem pass a term and line. Slow next to what can be
// done, and kept because it is obvious: it is the oracle of the scanner in src/search/scan.c. Knows no order
// of hits.
#include "support/scan_naive.h"

// The occurrences of one term in the line of f that begins at `from` and ends at `to`. exact: one is the
// whole term.
static term_hit count_in_line(const term *t, uint16_t number, str s, size_t from, size_t to, bool *exact,
                              term_lines *lines) {
    term_hit hit = {.term = number};
    bool word = false, start = false;
    for (size_t at = from; to - at >= t->stem.n;) {
        const char *p = memmem(s.p + at, to - at, t->stem.p, t->stem.n);
        if (!p) break;
        at = (size_t)(p - s.p);
        bool whole = str_starts(str_sub(s, at, s.n), t->text);
        uint32_t worth = occurrence_worth(t, s, at, whole);
        if (worth) {
            if (!hit.worth) hit.at = (uint32_t)(at - from);
            hit.worth = worth_sum(hit.worth, worth);
            word = word || worth >= WORTH_FORM;
            start = start || worth == WORTH_START;
            *exact = *exact || (whole && !t->near);
        }
        // A stem may overlap itself, and the whole term begin within what was only a stem.
        at += whole ? t->text.n : 1;
        if (at > to) break;
    }
    lines->word += word;
    lines->start += start && !word;
    return hit;
}

static void look_at_line(arena *a, const term_list *terms, str s, uint32_t file, size_t from, size_t to,
                         size_t limit, naive_result *ret) {
    bool keep = ret->lines.n < limit, exact = false;
    line_hit l = {.file = file, .line = (uint32_t)from, .first = (uint32_t)ret->hits.n};
    for (size_t t = 0; t < terms->n; t++) {
        term_hit hit = count_in_line(&terms->p[t], (uint16_t)t, s, from, to, &exact, &ret->lines_of[t]);
        if (!hit.worth) continue;
        l.n++;
        if (keep) vec_push(a, &ret->hits, hit);
    }
    if (!l.n) return;
    l.exact = exact;
    l.len = (uint16_t)(to - from < UINT16_MAX ? to - from : UINT16_MAX);
    if (exact)
        ret->matched++;
    else
        ret->expanded++;
    if (keep)
        vec_push(a, &ret->lines, l);
    else
        ret->unranked++;
}

void scan_naive(arena *a, const term_list *terms, const selected_file *files, size_t n,
                const search_corpus *c, naive_result *ret) {
    *ret = (naive_result){.lines_of = NEW_N(a, term_lines, terms->n)};
    for (size_t i = 0; i < n; i++) {
        str s = files[i].file->folded;
        for (size_t from = 0; from < s.n;) {
            size_t to = from;
            while (to < s.n && s.p[to] != '\n') to++;
            look_at_line(a, terms, s, (uint32_t)i, from, to, c->limits.lines, ret);
            from = to + 1;
        }
        ret->files++;
        ret->bytes += files[i].file->bytes;
    }
}

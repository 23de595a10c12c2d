// tally: sums the counts of matching lines by section and by file. Only what is there is kept: most sections
// have one term of many. Runs on any thread, with an arena of its own.
#include "search/rank_int.h"

void tally_begin(tally *t, arena *a, const term_list *terms, const selected_file *files) {
    t->a = a;
    t->terms = terms;
    t->files = files;
    t->found_in = NEW_N(a, uint32_t, terms->asked);
}

double tally_worth(const term_list *terms, const term_hit *h) {
    double w = h->whole + weights.start * h->start + weights.inside * h->inside + weights.forms * h->forms;
    const term *t = &terms->p[h->term];
    return t->near ? t->weight * w : w;
}

static void add(tally_cell *sums, uint16_t *present, size_t *n, uint32_t term, double body, double heads) {
    if (sums[term].body + sums[term].heads == 0) present[(*n)++] = (uint16_t)term;
    sums[term].body += body;
    sums[term].heads += heads;
}

// Moves sums to the cells; returns where they begin.
static uint32_t store(tally *t, tally_cell *sums, const uint16_t *present, size_t *n) {
    uint32_t first = (uint32_t)t->cells.n;
    for (size_t i = 0; i < *n; i++) {
        tally_cell *cell = &sums[present[i]];
        vec_push(t->a, &t->cells, (tally_cell){cell->body, cell->heads, present[i]});
        *cell = (tally_cell){0};
    }
    *n = 0;
    return first;
}

static void end_section(tally *t, tally_section *s) {
    for (size_t i = 0; i < t->n_section; i++) {
        const tally_cell *cell = &t->section[t->of_section[i]];
        add(t->file, t->of_file, &t->n_file, t->of_section[i], cell->body, cell->heads);
        t->found_in[t->of_section[i]]++;
    }
    s->n_cells = (uint32_t)t->n_section;
    s->first = store(t, t->section, t->of_section, &t->n_section);
    vec_push(t->a, &t->sections, *s);
}

// The next section that has `line`, from a former one on: mostly it is near.
static uint32_t seek_section(const corpus_file *f, uint32_t section, uint32_t line) {
    for (int step = 0; step < 4; step++, section++)
        if (section == f->n_heads || line < f->heads[section].first) return section;
    return corpus_section(f, line);
}

static size_t tally_one_file(tally *t, const scan_chunk *c, size_t from) {
    const line_hit *lines = c->lines;
    tally_file in = {.hits = c->hits, .file = lines[from].file, .first_section = (uint32_t)t->sections.n};
    const corpus_file *f = t->files[in.file].file;
    size_t i = from;
    for (uint32_t section = 0; i < c->n && lines[i].file == in.file;) {
        section = seek_section(f, section, lines[i].line);
        uint32_t end = section < f->n_heads ? f->heads[section].first : UINT32_MAX;
        uint32_t body = section ? f->heads[section - 1].body : 0;
        tally_section s = {.lines = &lines[i], .section = section};
        for (; i < c->n && lines[i].file == in.file && lines[i].line < end; i++, s.n_lines++) {
            bool heading = lines[i].line < body;
            for (size_t k = 0; k < lines[i].n; k++) {
                const term_hit *h = &c->hits[lines[i].first + k];
                double w = tally_worth(t->terms, h);
                add(t->section, t->of_section, &t->n_section, t->terms->p[h->term].as, heading ? 0 : w,
                    heading ? w : 0);
            }
        }
        end_section(t, &s);
    }
    in.n_sections = (uint32_t)t->sections.n - in.first_section;
    in.n_cells = (uint32_t)t->n_file;
    in.first = store(t, t->file, t->of_file, &t->n_file);
    vec_push(t->a, &t->in, in);
    return i;
}

void tally_chunk(tally *t, const scan_chunk *c) {
    for (size_t i = 0; i < c->n;) i = tally_one_file(t, c, i);
}

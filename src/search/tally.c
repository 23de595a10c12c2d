// tally: sums the counts of matching lines by section and by file. Only what is there is kept: most sections
// have one term of many. Runs on any thread, with memory of its own.
#include "search/rank_int.h"
#include <deputy/utf8.h>

enum : size_t {
    LINE_WORK = 16,  // of a line, in bytes that are looked at
    SOME_LINES = 256 // of a section, between two questions whether to stop
};

static void give_back(void *p) {
    tally *t = p;
    pool_give(t->pool, t->cells);
    pool_give(t->pool, t->sections);
    pool_give(t->pool, t->in);
}

void tally_begin(tally *t, arena *a, pool *p, const term_list *terms, const selected_file *files) {
    bool again = t->a;
    t->a = a;
    t->pool = p;
    t->terms = terms;
    t->files = files;
    t->n_cells = t->n_sections = t->n_in = 0;
    t->found_in = NEW_N(a, uint32_t, terms->asked);
    if (!again) arena_defer(a, give_back, t);
}

uint32_t tally_worth(const term_list *terms, const term_hit *h) {
    static const uint32_t start = (uint32_t)(TALLY_ONE * weights.start + 0.5),
                          inside = (uint32_t)(TALLY_ONE * weights.inside + 0.5),
                          forms = (uint32_t)(TALLY_ONE * weights.forms + 0.5);
    uint32_t w = (uint32_t)TALLY_ONE * h->whole + start * h->start + inside * h->inside + forms * h->forms;
    const term *t = &terms->p[h->term];
    return t->near ? (uint32_t)(t->weight * w + 0.5) : w;
}

static uint32_t sum(uint32_t a, uint32_t b) {
    return a + b < a ? UINT32_MAX : a + b;
}

static inline void add(tally_cell *sums, uint16_t *present, size_t *n, uint16_t term, uint32_t body,
                       uint32_t heads) {
    tally_cell *c = &sums[term];
    if (!(c->body | c->heads)) present[(*n)++] = term;
    c->body = sum(c->body, body);
    c->heads = sum(c->heads, heads);
}

// Moves sums to the cells; returns where they begin. There is room.
static uint32_t store(tally *t, tally_cell *sums, const uint16_t *present, size_t *n) {
    uint32_t first = (uint32_t)t->n_cells;
    for (size_t i = 0; i < *n; i++) {
        tally_cell *c = &sums[present[i]];
        t->cells[t->n_cells++] = (tally_cell){c->body, c->heads, present[i]};
        c->body = c->heads = 0;
    }
    *n = 0;
    return first;
}

static bool make_room(tally *t) {
    size_t most = (size_t)2 * RANK_TERMS_MAX;
    if (t->n_sections < t->cap_sections && t->n_in < t->cap_in && t->cap_cells - t->n_cells >= most)
        return true;
    return pool_grow(t->pool, (void **)&t->cells, &t->cap_cells, t->n_cells + most, t->n_cells,
                     sizeof *t->cells) &&
           pool_grow(t->pool, (void **)&t->sections, &t->cap_sections, t->n_sections + 1, t->n_sections,
                     sizeof *t->sections) &&
           pool_grow(t->pool, (void **)&t->in, &t->cap_in, t->n_in + 1, t->n_in, sizeof *t->in);
}

static void end_section(tally *t, tally_section *s) {
    for (size_t i = 0; i < t->n_section; i++) {
        const tally_cell *cell = &t->section[t->of_section[i]];
        add(t->file, t->of_file, &t->n_file, t->of_section[i], cell->body, cell->heads);
        t->found_in[t->of_section[i]]++;
    }
    s->n_cells = (uint32_t)t->n_section;
    s->first = store(t, t->section, t->of_section, &t->n_section);
    t->sections[t->n_sections++] = *s;
}

// The next section that has `line`, from a former one on: mostly it is near.
static uint32_t seek_section(const corpus_file *f, uint32_t section, uint32_t line) {
    for (int step = 0; step < 8; step++, section++)
        if (section == f->n_heads || line < f->spans[section].first) return section;
    return corpus_section(f, line);
}

// One section's lines, from line i of the chunk on; returns where the next one's begin.
static size_t tally_one_section(tally *t, const scan_chunk *c, size_t i, const corpus_file *f,
                                uint32_t section) {
    const line_hit *lines = c->lines;
    uint32_t file = lines[i].file, end = section < f->n_heads ? f->spans[section].first : UINT32_MAX,
             body = section ? f->spans[section - 1].body : 0;
    tally_section s = {.first_line = (uint32_t)(c->first + i), .section = section};
    for (; i < c->n && lines[i].file == file && lines[i].line < end; i++, s.n_lines++) {
        if (s.n_lines % SOME_LINES == SOME_LINES - 1 && stop_after(t->stop, SOME_LINES * LINE_WORK)) break;
        bool heading = lines[i].line < body;
        if (lines[i].n > s.most) s.most = lines[i].n;
        const term_hit *h = &c->hits[lines[i].first], *to = h + lines[i].n;
        for (; h < to; h++) {
            uint32_t w = tally_worth(t->terms, h);
            add(t->section, t->of_section, &t->n_section, t->terms->p[h->term].as, heading ? 0 : w,
                heading ? w : 0);
        }
    }
    (void)stop_after(t->stop, s.n_lines % SOME_LINES * LINE_WORK);
    end_section(t, &s);
    return i;
}

// Of a file with several names it takes a look at the one that was selected.
static void look_at_path(tally *t, tally_file *in) {
    str path = utf8_fold(t->a, utf8_repair(t->a, t->files[in->file].name->path));
    for (size_t i = 0; i < t->terms->n; i++) {
        uint16_t as = t->terms->p[i].as;
        if (str_find(path, t->terms->p[i].stem) != SIZE_MAX) in->path[as / 64] |= (uint64_t)1 << (as % 64);
    }
}

// One file's lines, from line i on. path: the first of the chunk's paths that is not of a file before.
static size_t tally_one_file(tally *t, const scan_chunk *c, size_t i, size_t *path) {
    tally_file in = {.file = c->lines[i].file, .first_section = (uint32_t)t->n_sections};
    const corpus_file *f = t->files[in.file].file;
    for (uint32_t section = 0; i < c->n && c->lines[i].file == in.file && !stop_said(t->stop);) {
        if (!make_room(t)) return SIZE_MAX;
        section = seek_section(f, section, c->lines[i].line);
        i = tally_one_section(t, c, i, f, section);
        uint32_t most = t->sections[t->n_sections - 1].most;
        if (most > in.most) in.most = most;
    }
    while (*path < c->n_paths && c->paths[*path].file < in.file) ++*path;
    for (; *path < c->n_paths && c->paths[*path].file == in.file; ++*path) {
        uint16_t as = t->terms->p[c->paths[*path].term].as;
        in.path[as / 64] |= (uint64_t)1 << (as % 64);
    }
    if (f->n_names != 1) look_at_path(t, &in);
    in.n_sections = (uint32_t)t->n_sections - in.first_section;
    in.n_cells = (uint32_t)t->n_file;
    if (!make_room(t)) return SIZE_MAX;
    in.first = store(t, t->file, t->of_file, &t->n_file);
    t->in[t->n_in++] = in;
    return i;
}

// Files and headings lie where nobody has looked for long: they are asked for some lines before.
static void fetch(const tally *t, const scan_chunk *c, size_t i) {
    enum { FILE_AHEAD = 48, SPANS_AHEAD = 24 };
    if (i + FILE_AHEAD < c->n) __builtin_prefetch(t->files[c->lines[i + FILE_AHEAD].file].file);
    if (i + SPANS_AHEAD < c->n) __builtin_prefetch(t->files[c->lines[i + SPANS_AHEAD].file].file->spans);
}

dep_status tally_chunk(tally *t, const scan_chunk *c, dep_err *err) {
    for (size_t i = 0, path = 0; i < c->n && !stop_said(t->stop);) {
        fetch(t, c, i);
        i = tally_one_file(t, c, i, &path);
        if (i == SIZE_MAX) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    }
    return DEP_OK;
}

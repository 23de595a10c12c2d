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
    t->section = t->file = (tally_sums){0};
    t->found_in = NEW_N(a, uint32_t, terms->asked);
    if (!again) arena_defer(a, give_back, t);
}

static inline void add(tally_sums *s, uint16_t term, uint32_t body, uint32_t heads) {
    s->body[term] = worth_sum(s->body[term], body);
    s->heads[term] = worth_sum(s->heads[term], heads);
    set_add(&s->has, term);
}

// Moves sums to the cells; returns where they begin. There is room.
static uint32_t store(tally *t, tally_sums *s) {
    uint32_t first = (uint32_t)t->n_cells;
    uint16_t term;
    for (; set_take(&s->has, &term); t->n_cells++) {
        t->cells[t->n_cells] = (tally_cell){s->body[term], s->heads[term], term};
        s->body[term] = s->heads[term] = 0;
    }
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

// The section's cells become part of the file's.
static void end_section(tally *t, tally_section *s) {
    s->first = store(t, &t->section);
    s->n_cells = (uint32_t)t->n_cells - s->first;
    for (size_t i = s->first; i < t->n_cells; i++) {
        const tally_cell *cell = &t->cells[i];
        add(&t->file, cell->term, cell->body, cell->heads);
        t->found_in[cell->term]++;
    }
}

// The next section that has `line`, from a former one on: mostly it is near.
static uint32_t seek_section(const corpus_file *f, uint32_t section, uint32_t line) {
    for (int step = 0; step < 8; step++, section++)
        if (section == f->n_heads || line < f->spans[section].first) return section;
    return corpus_section(f, line);
}

// The lines of [l, end) that stand in the file before the offset `to`; returns how many.
static uint32_t tally_lines(tally *t, const line_hit *l, const line_hit *end, const term_hit *hits,
                            uint32_t to, uint32_t body, uint32_t *most) {
    uint32_t file = l->file, n = 0;
    for (; l < end && l->file == file && l->line < to; l++, n++) {
        if (n % SOME_LINES == SOME_LINES - 1 && stop_after(t->stop, SOME_LINES * LINE_WORK)) break;
        bool heading = l->line < body;
        if (l->n > *most) *most = l->n;
        for (const term_hit *h = &hits[l->first], *last = h + l->n; h < last; h++) {
            const term *of = &t->terms->p[h->term];
            uint32_t worth = tally_worth(of, h);
            add(&t->section, of->as, heading ? 0 : worth, heading ? worth : 0);
        }
    }
    (void)stop_after(t->stop, n % SOME_LINES * LINE_WORK);
    return n;
}

// One section's lines, from line i of the chunk on; returns where the next one's begin.
static size_t tally_one_section(tally *t, const scan_chunk *c, size_t i, const corpus_file *f,
                                uint32_t section) {
    uint32_t end = section < f->n_heads ? f->spans[section].first : (uint32_t)f->folded.n,
             body = section ? f->spans[section - 1].body : 0;
    uint32_t most = 0, n = tally_lines(t, &c->lines[i], c->lines + c->n, c->hits, end, body, &most);
    tally_section *s = &t->sections[t->n_sections++];
    s->first_line = (uint32_t)(c->first + i);
    s->n_lines = n;
    s->section = section;
    s->most = most;
    end_section(t, s);
    return i + n;
}

// Of a file with several names it takes a look at the one that was selected.
static void look_at_path(tally *t, tally_file *in) {
    str path = utf8_fold(t->a, utf8_repair(t->a, t->files[in->file].name->path));
    for (size_t i = 0; i < t->terms->n; i++) {
        uint16_t as = t->terms->p[i].as;
        if (str_find(path, t->terms->p[i].stem) != SIZE_MAX) set_add(&in->path, as);
    }
}

// One file's lines, from line i on. path: the first of the chunk's paths that is not of a file before.
static size_t tally_one_file(tally *t, const scan_chunk *c, size_t i, size_t *path) {
    const corpus_file *f = t->files[c->lines[i].file].file;
    tally_file in = {.file = c->lines[i].file, .first_section = (uint32_t)t->n_sections};
    for (uint32_t section = 0; i < c->n && c->lines[i].file == in.file && !stop_said(t->stop);) {
        if (!make_room(t)) return SIZE_MAX;
        section = seek_section(f, section, c->lines[i].line);
        i = tally_one_section(t, c, i, f, section);
        uint32_t most = t->sections[t->n_sections - 1].most;
        if (most > in.most) in.most = most;
    }
    while (*path < c->n_paths && c->paths[*path].file < in.file) ++*path;
    for (; *path < c->n_paths && c->paths[*path].file == in.file; ++*path)
        set_add(&in.path, t->terms->p[c->paths[*path].term].as);
    if (f->n_names != 1) look_at_path(t, &in);
    in.n_sections = (uint32_t)t->n_sections - in.first_section;
    if (!make_room(t)) return SIZE_MAX;
    in.first = store(t, &t->file);
    in.n_cells = (uint32_t)t->n_cells - in.first;
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

// direct: one question to files of which nothing is kept. Files are scanned and their counts summed by the
// thread that folds them, as soon as they are folded; what stays is figures, headings and matching lines. The
// files of the lines that are shown are then read a second time, for their originals. Where that cannot give
// the very answer that a kept corpus gives (a file has changed meanwhile, or has several names), one is made
// after all.
#include "search/load_int.h"
#include "search/run_int.h"
#include <stdlib.h>

typedef VEC(str) texts;

typedef struct {
    run r;
    found f;
    const search_space *space;
    search_corpus c; // what is known of it while it is read: the limits
    crew *crew;
    scan_stream *lines, *pieces; // pieces: NULL when there is nothing to look for
    near_search *near;
    // By the number of the file, as the loader counts them:
    corpus_file *kept;
    file_name *names;
    size_t n; // so far
    size_t admitted;
    arena *keep;          // used by the thread that folds
    stop_sign asks, *now; // the caller's; that of the thread that is at work
    texts texts;          // of the lines found
    pipe_taker taker;
} direct;

// --- On the thread that folds ---

static void *copy(arena *a, const void *p, size_t n) {
    void *to = arena_alloc(a, n ? n : 1);
    if (n) memcpy(to, p, n);
    return to;
}

// What ranking needs of a file with matching lines.
static void keep_structure(direct *d, uint32_t file) {
    corpus_file *f = &d->kept[file];
    f->spans = copy(d->keep, f->spans, f->n_heads * sizeof *f->spans);
    f->heads = copy(d->keep, f->heads, f->n_heads * sizeof *f->heads);
}

static dep_status take_lines(void *ctx, const scan_chunk *c, dep_err *err) {
    direct *d = ctx;
    TRY(rank_take(d->f.ranking, c, err));
    for (size_t i = 0; i < c->n; i++) {
        const line_hit *l = &c->lines[i];
        vec_push(d->keep, &d->texts, str_dup(d->keep, corpus_line(&d->kept[l->file], l->line)));
        if (i == 0 || l->file != c->lines[i - 1].file) keep_structure(d, l->file);
    }
    return DEP_OK;
}

// a: outlives the crew, whose arenas give back what the scanners hold.
static void look_for_pieces(direct *d, arena *a) {
    const term_list *pieces = d->near ? near_pieces(d->near) : NULL;
    d->pieces = pieces && pieces->n
                    ? scan_stream_new(a, d->crew, pieces, d->r.files, &d->c, NULL, near_look, d->near)
                    : NULL;
}

// Files [from, to) are admitted.
static dep_status scan_some(direct *d, size_t from, size_t to, dep_err *err) {
    if (from == to) return DEP_OK;
    TRY(scan_stream_files(d->lines, from, to, err));
    if (!d->pieces) return DEP_OK;
    // Most words are soon known not to be misspelt.
    if (near_narrow(d->near, scan_stream_lines(d->lines))) look_for_pieces(d, d->keep);
    return d->pieces ? scan_stream_files(d->pieces, from, to, err) : DEP_OK;
}

static dep_status take_files(direct *d, pipe_job *jobs, size_t n, dep_err *err) {
    size_t from = d->n;
    for (size_t i = 0; i < n; i++) {
        size_t at = jobs[i].index;
        d->kept[at] = jobs[i].file;
        d->names[at] = (file_name){.path = jobs[i].path};
        d->kept[at].names = &d->names[at];
        d->kept[at].n_names = 1; // several: the answer is not taken from here
        d->n = at + 1;
        if (run_admits(&d->r, jobs[i].path)) {
            d->admitted++;
            d->r.files[at] = (selected_file){&d->kept[at], &d->names[at]};
            continue;
        }
        TRY(scan_some(d, from, at, err));
        from = at + 1;
    }
    TRY(scan_some(d, from, d->n, err));
    return DEP_OK;
}

static dep_status take_caught_keep(direct *d, pipe_job *jobs, size_t n, dep_err *err) {
    ARENA_CATCH(d->keep, err);
    return take_files(d, jobs, n, err);
}

static dep_status take_caught(void *ctx, pipe_job *jobs, size_t n, stop_sign *stop, dep_err *err) {
    direct *d = ctx;
    d->now = stop;
    arena *worker = crew_arena(d->crew, 0);
    ARENA_CATCH(worker, err);
    return take_caught_keep(d, jobs, n, err);
}

// --- Reading ---

static dep_status begin(void *ctx, size_t n, const pipe_taker **taker, dep_err *err) {
    direct *d = ctx;
    arena *a = d->r.scratch;
    ARENA_CATCH(a, err);
    d->kept = NEW_N(a, corpus_file, n);
    d->names = NEW_N(a, file_name, n);
    d->r.files = NEW_N(a, selected_file, n);
    d->r.n_files = n;
    d->c.n_candidates = n;
    d->f.ranking = rank_begin(a, d->crew, &d->f.terms, d->r.files, n);
    d->lines = scan_stream_new(a, d->crew, &d->f.terms, d->r.files, &d->c, take_lines, NULL, d);
    look_for_pieces(d, a);
    d->taker = (pipe_taker){take_caught, d};
    *taker = &d->taker;
    return DEP_OK;
}

// The lines of all files for d->f.terms. *ret: what else is to be said.
static dep_status read_all(direct *d, corpus_data **ret, dep_err *err) {
    corpus_reader reader = {.begin = begin, .ctx = d};
    d->texts = (texts){0};
    d->n = d->admitted = 0;
    dep_status status = corpus_read(d->space, &d->c.limits, &reader, ret, err);
    d->now = &d->asks;
    TRY(status);
    if ((*ret)->cancelled) d->asks.said = true;
    scan_stream_end(d->r.scratch, d->lines, &d->f.scan);
    rank_texts(d->f.ranking, d->texts.p);
    // Known to the thread that reads.
    for (size_t i = 0; i < d->n && i < (*ret)->n_files; i++)
        if (d->r.files[i].file) d->f.scan.bytes += (*ret)->files[i].bytes;
    return DEP_OK;
}

// Are the files numbered as a kept corpus numbers them, each with one name?
static bool is_plain(const direct *d, const corpus_data *data) {
    if (data->n_files != d->n) return false;
    for (size_t i = 0; i < d->n; i++)
        if (data->files[i].n_names != 1 || data->files[i].names->path.p != d->names[i].path.p) return false;
    return true;
}

// --- The files of what is shown ---

static int by_file(const void *a, const void *b) {
    const walk_file *x = a, *y = b;
    return x->source != y->source ? (x->source > y->source) - (x->source < y->source)
                                  : str_cmp(x->path, y->path);
}

static dep_status read_again(const direct *d, const corpus_data *data, corpus_data **ret, dep_err *err) {
    walk_file *files = NEW_N(d->r.scratch, walk_file, d->f.n_ranked);
    size_t n = 0;
    for (size_t i = 0; i < d->f.n_ranked; i++) {
        const file_name *name = data->files[d->f.ranked[i].line->file].names;
        files[n++] = (walk_file){.source = name->source, .path = name->path};
    }
    if (n > 1) qsort(files, n, sizeof *files, by_file);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_file(&files[i - 1], &files[i]) != 0) files[kept++] = files[i];
    corpus_reader reader = {.only = files, .n_only = kept};
    return corpus_read(d->space, &d->c.limits, &reader, ret, err);
}

// Puts the files with their originals in place of those without. False: one has changed.
static bool put_in_place(direct *d, const corpus_data *before, const corpus_data *now) {
    for (size_t i = 0; i < d->f.n_ranked; i++) {
        const line_hit *l = d->f.ranked[i].line;
        const file_name *name = before->files[l->file].names;
        const corpus_track *was = corpus_track_of(before, name->path), *is = corpus_track_of(now, name->path);
        if (!was || !is || !is->file || !sig_eq(&was->sig, &is->sig)) return false;
        const corpus_file *f = &now->files[is->file - 1];
        if (l->line >= f->folded.n || corpus_line_start(f, 0, l->line) != l->line) return false;
        str text = d->texts.p[l - d->f.scan.parts[0].lines];
        if (!str_eq(corpus_line(f, l->line), text)) return false;
        d->r.files[l->file] = (selected_file){f, name};
    }
    return true;
}

// --- The whole ---

static void drop(void *p) {
    corpus_drop(p);
}

static void end_arena(void *p) {
    arena_free(p);
}

static bool shall_stop(void *ctx) {
    return stop_ask(((direct *)ctx)->now);
}

// *done: false when it takes a kept corpus to tell.
static dep_status ask(direct *d, arena *a, search_result *ret, bool *done, dep_err *err) {
    const search_space *space = d->space;
    ARENA_CATCH(d->r.scratch, err);
    d->keep = arena_new();
    arena_defer(d->r.scratch, end_arena, d->keep);
    TRY(run_parse(&d->r, &d->f, err));
    d->crew = crew_new(d->r.scratch, NULL, CREW_MOST, shall_stop, d);
    d->near = near_begin(d->r.scratch, d->crew, &d->f.terms, NULL);
    uint64_t epoch = space->epoch ? space->epoch(space->ctx) : 0;
    corpus_data *data = NULL, *shown = NULL;
    TRY(read_all(d, &data, err));
    arena_defer(d->r.scratch, drop, data);
    // A word may be misspelt: once more, with what it may have been meant to be.
    if (!data->cancelled && near_end(d->r.scratch, d->near, d->f.scan.lines_of, &d->f.terms)) {
        d->near = NULL;
        TRY(read_all(d, &data, err));
        arena_defer(d->r.scratch, drop, data);
    }
    if (!is_plain(d, data)) return DEP_OK;
    TRY(run_rank(&d->r, &d->f, err));
    // Of lines that are shown the files would be read again.
    if (stop_said(&d->asks)) d->f.n_ranked = 0;
    if (d->f.n_ranked) {
        TRY(read_again(d, data, &shown, err));
        arena_defer(d->r.scratch, drop, shown);
        if (shown->cancelled) d->asks.said = true;
        if (stop_said(&d->asks)) d->f.n_ranked = 0;
        if (!put_in_place(d, data, shown)) return DEP_OK;
    }
    if (space->epoch && space->epoch(space->ctx) != epoch) return DEP_OK;
    d->c.sources = data->sources;
    d->c.n_sources = data->n_sources;
    d->c.cuts = data->cuts;
    d->c.cancelled = data->cancelled;
    d->r.n_files = d->admitted;
    TRY(run_answer(&d->r, a, &d->f, ret, err));
    *done = true;
    return DEP_OK;
}

static dep_status ask_kept(arena *a, const search_space *space, const search_query *q, search_result *ret,
                           dep_err *err) {
    search_corpus *c;
    TRY(search_open(space, &c, err));
    dep_status status = search_run(a, c, q, ret, err);
    search_close(c);
    return status;
}

dep_status search_directly(arena *a, const search_space *space, const search_query *q, search_result *ret,
                           dep_err *err) {
    bool done = false;
    if (!space->cache && !q->source.n) {
        direct d = {.space = space, .c.limits = search_limits_default};
        d.asks = (stop_sign){.ask = space->cancelled, .ctx = space->ctx};
        d.now = &d.asks;
        d.r = (run){.c = &d.c, .q = q, .scratch = arena_new(), .asks = &d.asks};
        dep_status status = ask(&d, a, ret, &done, err);
        arena_free(d.r.scratch);
        if (status != DEP_OK) return status;
    }
    return done ? DEP_OK : ask_kept(a, space, q, ret, err);
}

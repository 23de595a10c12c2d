// direct: one question to files of which nothing is kept. Whoever has read some files scans them and sums
// their counts, as long as they are near; what stays is figures, headings and matching lines. The files of
// the lines that are shown are then read a second time, for their originals. Where that cannot give the very
// answer that a kept corpus gives (a file has changed meanwhile, or has several names), one is made after
// all.
#include "search/load_int.h"
#include "search/run_int.h"
#include <stdlib.h>

typedef VEC(str) texts;

// Of one worker.
typedef struct {
    scan_stream *lines, *pieces; // pieces: NULL when there is nothing to look for
    texts texts;                 // of the lines found
} reader;

typedef struct {
    run r;
    found f;
    const search_space *space;
    search_corpus c; // what is known of it while it is read: the limits
    reader *readers;
    near_search *near;
    // By the number of the candidate. files: those that the filter admits.
    selected_file *files;
    fetched *fetched;
    file_name *names;
    arena *pass;    // of one reading of all
    stop_sign asks; // the caller's
    text_taker taker;
} direct;

// --- While files are read ---

static void *copy(arena *a, const void *p, size_t n) {
    void *to = arena_alloc(a, n ? n : 1);
    if (n) memcpy(to, p, n);
    return to;
}

// What ranking needs of a file with matching lines.
static void keep_structure(arena *a, corpus_file *f) {
    f->spans = copy(a, f->spans, f->n_heads * sizeof *f->spans);
    f->heads = copy(a, f->heads, f->n_heads * sizeof *f->heads);
}

enum : size_t { LINE_WORK = 64 }; // of a copy, besides its bytes

static dep_status take_lines(void *ctx, const scan_chunk *c, dep_err *err) {
    direct *d = ctx;
    arena *a = crew_arena(d->r.crew, c->worker);
    texts *t = &d->readers[c->worker].texts;
    stop_sign *stop = crew_stop(d->r.crew, c->worker);
    TRY(rank_take(d->f.ranking, c, err));
    for (size_t i = 0; i < c->n; i++) {
        const line_hit *l = &c->lines[i];
        corpus_file *f = &d->fetched[l->file].file;
        // When it is stopped, no line is shown.
        bool stopped = stop_after(stop, LINE_WORK + l->len);
        vec_push(a, t, stopped ? (str){0} : str_dup(a, corpus_line(f, l->line)));
        if (i == 0 || l->file != c->lines[i - 1].file) keep_structure(a, f);
    }
    return DEP_OK;
}

// Anew, as often as there are others.
static void look_for_pieces(direct *d, size_t worker) {
    const term_list *pieces = near_pieces(d->near, worker);
    d->readers[worker].pieces = pieces->n
                                    ? scan_stream_new(crew_arena(d->r.crew, worker), d->r.crew, worker,
                                                      pieces, d->r.files, &d->c, NULL, near_look, d->near)
                                    : NULL;
}

static dep_status scan_some(direct *d, size_t worker, size_t from, size_t to, dep_err *err) {
    if (from == to) return DEP_OK;
    reader *x = &d->readers[worker];
    TRY(scan_stream_files(x->lines, from, to, err));
    if (!x->pieces) return DEP_OK;
    // Most words are soon known not to be misspelt.
    if (near_narrow(d->near, worker, scan_stream_lines(x->lines))) look_for_pieces(d, worker);
    return x->pieces ? scan_stream_files(x->pieces, from, to, err) : DEP_OK;
}

static dep_status take_files(void *ctx, size_t worker, size_t from, size_t to, dep_err *err) {
    direct *d = ctx;
    fetched *all = d->fetched;
    size_t first = from;
    for (size_t i = from; i < to; i++) {
        if (all[i].state == FETCH_TEXT && run_admits(&d->r, d->names[i].path)) {
            all[i].file.names = &d->names[i];
            all[i].file.n_names = 1; // several: the answer is not taken from here
            d->files[i] = (selected_file){&all[i].file, &d->names[i]};
            continue;
        }
        TRY(scan_some(d, worker, first, i, err));
        first = i + 1;
    }
    return scan_some(d, worker, first, to, err);
}

// --- Reading ---

static dep_status begin(void *ctx, const candidate *candidates, fetched *all, size_t n,
                        const text_taker **taker, dep_err *err) {
    (void)err;
    direct *d = ctx;
    arena *a = d->r.scratch;
    d->fetched = all;
    d->names = NEW_N(a, file_name, n);
    for (size_t i = 0; i < n; i++)
        d->names[i] = (file_name){.source = candidates[i].sources.p[0], .path = candidates[i].path};
    d->r.files = d->files = NEW_N(a, selected_file, n);
    d->r.n_files = n;
    d->c.n_candidates = n;
    d->f.ranking = rank_begin(a, d->r.crew, &d->f.terms, d->r.files);
    d->readers = NEW_N(a, reader, crew_size(d->r.crew));
    for (size_t i = 0; i < crew_size(d->r.crew); i++) {
        d->readers[i].lines =
            scan_stream_new(a, d->r.crew, i, &d->f.terms, d->r.files, &d->c, take_lines, NULL, d);
        if (d->near) look_for_pieces(d, i);
    }
    d->taker = (text_taker){take_files, d};
    *taker = &d->taker;
    return DEP_OK;
}

// The lines of all files for d->f.terms. *ret: what else is to be said.
static dep_status read_all(direct *d, loader **ret, dep_err *err) {
    text_pass pass = {.begin = begin, .ctx = d, .crew = d->r.crew};
    ARENA_CATCH(d->pass, err);
    TRY(corpus_pass(d->space, &d->c.limits, &pass, d->pass, ret, err));
    if ((*ret)->cancelled) d->asks.said = true;
    size_t workers = crew_size(d->r.crew);
    scan_stream **streams = NEW_N(d->r.scratch, scan_stream *, workers);
    for (size_t i = 0; i < workers; i++) streams[i] = d->readers[i].lines;
    scan_streams_end(d->r.scratch, d->r.crew, streams, &d->f.scan);
    for (size_t i = 0; i < workers; i++) d->f.scan.parts[i].texts = d->readers[i].texts.p;
    return DEP_OK;
}

// Is each text that was scanned a file of its own, with one name, that fits the budget?
static bool is_plain(const loader *l) {
    for (size_t i = 0; i < l->candidates.n; i++)
        if (l->fetched[i].state == FETCH_TEXT && !l->tracks[i].file) return false;
    for (vec_each(const loaded, f, &l->files))
        if (f->names.n != 1) return false;
    return true;
}

// --- The files of what is shown ---

static int by_file(const void *a, const void *b) {
    const walk_file *x = a, *y = b;
    return name_order((file_name){x->source, x->path}, (file_name){y->source, y->path});
}

static dep_status read_again(const direct *d, corpus_data **ret, dep_err *err) {
    walk_file *files = NEW_N(d->r.scratch, walk_file, d->f.n_ranked);
    size_t n = 0;
    for (size_t i = 0; i < d->f.n_ranked; i++) {
        const file_name *name = &d->names[d->f.ranked[i].line->file];
        files[n++] = (walk_file){.source = name->source, .path = name->path};
    }
    if (n > 1) qsort(files, n, sizeof *files, by_file);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (i == 0 || by_file(&files[i - 1], &files[i]) != 0) files[kept++] = files[i];
    return corpus_read(d->space, &d->c.limits, files, kept, ret, err);
}

// Puts the files with their originals in place of those without. False: one has changed.
static bool put_in_place(const direct *d, const corpus_data *now) {
    for (size_t i = 0; i < d->f.n_ranked; i++) {
        const line_hit *l = d->f.ranked[i].line;
        const file_name *name = &d->names[l->file];
        const corpus_track *is = corpus_track_of(now, name->path);
        if (!is || !is->file || !sig_eq(&d->fetched[l->file].sig, &is->sig)) return false;
        const corpus_file *f = &now->files[is->file - 1];
        if (l->line >= f->folded.n || corpus_line_start(f, 0, l->line) != l->line) return false;
        if (!str_eq(corpus_line(f, l->line), d->f.ranked[i].text)) return false;
        d->files[l->file] = (selected_file){f, name};
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

static const str *source_names(const direct *d) {
    str *names = NEW_N(d->r.scratch, str, d->space->n_sources);
    for (size_t i = 0; i < d->space->n_sources; i++) names[i] = d->space->sources[i].name;
    return names;
}

// What was admitted, before files are put in place.
static void sum_up(direct *d) {
    d->r.sums = (selection_sums){0};
    for (size_t i = 0; i < d->c.n_candidates; i++)
        if (d->r.files[i].file) selection_add(&d->r.sums, d->r.files[i].file);
}

// *done: false when it takes a kept corpus to tell.
static dep_status ask(direct *d, arena *a, search_result *ret, bool *done, dep_err *err) {
    const search_space *space = d->space;
    ARENA_CATCH(d->r.scratch, err);
    TRY(run_parse(&d->r, &d->f, err));
    d->r.crew = crew_new(d->r.scratch, NULL, NULL, CREW_MOST, &d->asks);
    d->pass = arena_new();
    arena_defer(d->r.scratch, end_arena, d->pass);
    d->near = near_begin(d->r.scratch, d->r.crew, &d->f.terms, NULL);
    uint64_t epoch = space->epoch ? space->epoch(space->ctx) : 0;
    loader *l = NULL;
    corpus_data *shown = NULL;
    TRY(read_all(d, &l, err));
    // A word may be misspelt: once more, with what it may have been meant to be.
    if (!l->cancelled && near_end(d->r.scratch, d->near, d->f.scan.lines_of, &d->f.terms)) {
        d->near = NULL;
        arena_reset(d->pass);
        TRY(read_all(d, &l, err));
    }
    bool plain = is_plain(l) && !d->f.scan.full && d->f.scan.lines <= d->c.limits.lines;
    // When it was stopped, a kept corpus would have less to tell.
    if (!plain && !l->cancelled) return DEP_OK;
    sum_up(d);
    if (plain) TRY(run_rank(&d->r, &d->f, err));
    // Of lines that are shown the files would be read again.
    if (stop_said(&d->asks)) d->f.n_ranked = 0;
    if (d->f.n_ranked) {
        TRY(read_again(d, &shown, err));
        arena_defer(d->r.scratch, drop, shown);
        if (shown->cancelled) d->asks.said = true;
        if (stop_said(&d->asks)) d->f.n_ranked = 0;
        if (!put_in_place(d, shown)) return DEP_OK;
    }
    if (space->epoch && space->epoch(space->ctx) != epoch) return DEP_OK;
    d->c.sources = source_names(d);
    d->c.n_sources = space->n_sources;
    d->c.cuts = l->cuts;
    d->c.cancelled = l->cancelled;
    d->r.n_files = d->r.sums.files;
    TRY(run_answer(&d->r, a, &d->f, ret, err));
    *done = true;
    return DEP_OK;
}

static dep_status ask_kept(arena *a, const search_space *space, const search_limits *limits,
                           const search_query *q, search_result *ret, dep_err *err) {
    search_corpus *c;
    TRY(search_open_with(space, limits, &c, err));
    dep_status status = search_run(a, c, q, ret, err);
    search_close(c);
    return status;
}

dep_status search_directly_with(arena *a, const search_space *space, const search_limits *limits,
                                const search_query *q, search_result *ret, dep_err *err) {
    bool done = false;
    if (!space->cache && !q->source.n) {
        direct d = {.space = space, .c = {.limits = *limits, .ops = scan_ops_best()}};
        d.asks = (stop_sign){.ask = space->cancelled, .ctx = space->ctx};
        d.r = (run){.c = &d.c, .q = q, .scratch = arena_new(), .asks = &d.asks};
        dep_status status = ask(&d, a, ret, &done, err);
        arena_free(d.r.scratch);
        if (status != DEP_OK) return status;
    }
    return done ? DEP_OK : ask_kept(a, space, limits, q, ret, err);
}

dep_status search_directly(arena *a, const search_space *space, const search_query *q, search_result *ret,
                           dep_err *err) {
    return search_directly_with(a, space, &search_limits_default, q, ret, err);
}

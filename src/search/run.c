// run: answers one query from a corpus: selects files, scans, ranks, and makes the hits with their heading
// trail, the totals and the cuts. What the answer holds is copied into the caller's arena; everything else
// lives in a scratch arena of this call, so that any number of threads may ask one corpus.
#include "search/run_int.h"
#include <deputy/file.h>
#include <deputy/utf8.h>
#include <stdlib.h>

// --- Filters ---

static dep_status find_source(run *r, dep_err *err) {
    if (str_empty(r->q->source)) return DEP_OK;
    buf known = buf_new(r->scratch, DEP_ERR_MSG_MAX / 2);
    for (size_t i = 0; i < r->c->n_sources; i++) {
        if (str_eq(r->c->sources[i], r->q->source)) {
            r->source = (uint32_t)i;
            return DEP_OK;
        }
        buf_addf(&known, "%s\"" STR_FMT "\"", i ? ", " : "", STR_ARG(r->c->sources[i]));
    }
    str names = buf_str(&known);
    return err_set(err, DEP_ERR_INVALID, "no source \"" STR_FMT "\"; there %s " STR_FMT,
                   STR_ARG(utf8_cut(r->q->source, 200)), r->c->n_sources == 1 ? "is" : "are", STR_ARG(names));
}

static dep_status compile_path(run *r, dep_err *err) {
    if (str_empty(r->q->path)) return DEP_OK;
    dep_status status = glob_compile(r->scratch, r->q->path, &r->path, err);
    if (status != DEP_OK) err_prefix(err, "path \"" STR_FMT "\"", STR_ARG(utf8_cut(r->q->path, 200)));
    return status;
}

bool run_admits(const run *r, str path) {
    if (!r->path || glob_match(r->path, path)) return true;
    if (!glob_literal(r->path)) return false;
    str dir = glob_path(r->path);
    return dir.n == 0 || (path.n > dir.n && path.p[dir.n] == '/' && str_starts(path, dir));
}

static bool passes(const run *r, uint32_t source, str path) {
    return (r->source == SEARCH_NO_SOURCE || source == r->source) && run_admits(r, path);
}

static int by_name(const void *a, const void *b) {
    return name_order(*((const selected_file *)a)->name, *((const selected_file *)b)->name);
}

// Those that the filters admit, by source and path of the name that they are found under.
static void filter_files(run *r) {
    selected_file *files = NEW_N(r->scratch, selected_file, r->c->n_files);
    for (size_t i = 0; i < r->c->n_files; i++) {
        const corpus_file *f = &r->c->files[i];
        if (stop_after(r->asks, STOP_ITEM)) break;
        for (uint32_t k = 0; k < f->n_names; k++) {
            if (!passes(r, f->names[k].source, f->names[k].path)) continue;
            files[r->n_files++] = (selected_file){.file = f, .name = &f->names[k]};
            selection_add(&r->sums, f);
            break;
        }
    }
    // The name that passed may be another than the one the corpus is sorted by.
    bool sorted = true;
    for (size_t i = 0; i < r->n_files && sorted; i++) sorted = files[i].name == files[i].file->names;
    if (!sorted) qsort(files, r->n_files, sizeof *files, by_name);
    r->files = files;
}

static void select_files(run *r) {
    if (r->path || r->source != SEARCH_NO_SOURCE) {
        filter_files(r);
        return;
    }
    r->files = r->c->all;
    r->n_files = r->c->n_files;
    r->sums = r->c->sums;
}

// --- Hits ---

static str trail(arena *a, const corpus_file *f, uint32_t line) {
    uint32_t at = corpus_section(f, line), chain[HEADING_LEVELS + 1];
    // A heading is not above itself.
    if (at && line < f->spans[at - 1].body) at = f->heads[at - 1].parent;
    size_t n = 0;
    for (; at && n < HEADING_LEVELS; at = f->heads[at - 1].parent) chain[n++] = at;
    buf b = buf_new(a, 0);
    while (n) {
        const corpus_head *h = &f->heads[chain[--n] - 1];
        str title = heading_title(a, corpus_text(a, f, h->at, (size_t)h->at + h->n), h->html);
        if (title.n == 0) continue;
        if (b.n) buf_add(&b, S(" > "));
        buf_add(&b, title);
    }
    return buf_str(&b);
}

static str cut_start(arena *a, str line) {
    while (line.n && strchr(" \t\r", line.p[line.n - 1])) line.n--;
    if (line.n <= SEARCH_HIT_CHARS || utf8_cut_chars(line, SEARCH_HIT_CHARS).n == line.n)
        return str_dup(a, line);
    return str_fmt(a, STR_FMT "…", STR_ARG(utf8_cut_chars(line, SEARCH_HIT_CHARS - 1)));
}

static void add_context(arena *a, stop_sign *asks, const corpus_file *f, uint32_t line, uint32_t number,
                        size_t context, search_hit *hit) {
    strs before = {0}, after = {0};
    uint32_t n = number;
    for (uint32_t at = line; at && before.n < context && !stop_after(asks, STOP_ITEM);) {
        at = corpus_line_start(f, 0, at - 1);
        vec_push(a, &before, cut_start(a, corpus_original(a, f, at, --n)));
    }
    for (size_t i = 0; i < before.n / 2; i++) {
        str s = before.p[i];
        before.p[i] = before.p[before.n - 1 - i];
        before.p[before.n - 1 - i] = s;
    }
    n = number;
    for (uint32_t at = corpus_next_line(f, line);
         at < f->folded.n && after.n < context && !stop_after(asks, STOP_ITEM); at = corpus_next_line(f, at))
        vec_push(a, &after, cut_start(a, corpus_original(a, f, at, ++n)));
    hit->before = before.p;
    hit->n_before = before.n;
    hit->after = after.p;
    hit->n_after = after.n;
}

// In `a`, or in the corpus.
static search_hit make_hit(const run *r, arena *a, stop_sign *asks, const ranked_line *ranked) {
    const line_hit *l = ranked->line;
    const selected_file *in = &r->files[l->file];
    uint32_t number = corpus_line_number(in->file, l->line);
    search_hit hit = {
        .source = r->c->sources[in->name->source],
        .path = in->name->path,
        .line = number + 1,
        .text = cut_around(a, corpus_original(a, in->file, l->line, number), ranked->best->at),
        .heading = trail(a, in->file, l->line),
        .score = ranked->score,
    };
    if (r->q->context) add_context(a, asks, in->file, l->line, number, r->q->context, &hit);
    return hit;
}

static const str *keep_lines(arena *a, const str *lines, size_t n) {
    str *kept = NEW_N(a, str, n);
    for (size_t i = 0; i < n; i++) kept[i] = str_dup(a, lines[i]);
    return kept;
}

static void keep_hit(arena *a, search_hit hit, search_result *ret) {
    hit.source = str_dup(a, hit.source);
    hit.path = str_dup(a, hit.path);
    hit.text = str_dup(a, hit.text);
    hit.heading = str_dup(a, hit.heading);
    hit.before = keep_lines(a, hit.before, hit.n_before);
    hit.after = keep_lines(a, hit.after, hit.n_after);
    vec_push(a, &ret->hits, hit);
}

enum { JOB_HITS = 8 }; // that one worker makes at a time
enum : size_t { HIT_WORK = 16 * STOP_ITEM };

typedef struct {
    const run *r;
    const found *f;
    search_hit *hits; // line 0: not made
} making;

static dep_status make_job(void *ctx, size_t worker, size_t job, dep_err *err) {
    (void)err;
    making *m = ctx;
    stop_sign *asks = crew_stop(m->r->crew, worker);
    size_t end = (job + 1) * JOB_HITS < m->f->n_ranked ? (job + 1) * JOB_HITS : m->f->n_ranked;
    for (size_t i = job * JOB_HITS; i < end && !stop_after(asks, HIT_WORK); i++)
        m->hits[i] = make_hit(m->r, crew_arena(m->r->crew, worker), asks, &m->f->ranked[i]);
    return DEP_OK;
}

// Those before the first that was not made, because it was stopped; the very first ones in any case.
static dep_status add_hits(const run *r, arena *a, const found *f, search_result *ret, dep_err *err) {
    making m = {r, f, NEW_N(r->scratch, search_hit, f->n_ranked)};
    TRY(crew_run(r->crew, (f->n_ranked + JOB_HITS - 1) / JOB_HITS, make_job, &m, err));
    for (size_t i = 0; i < f->n_ranked; i++) {
        bool stopped = stop_after(r->asks, HIT_WORK);
        if ((!m.hits[i].line || stopped) && i >= SEARCH_LIMIT_DEFAULT) break;
        if (!m.hits[i].line) m.hits[i] = make_hit(r, r->scratch, r->asks, &f->ranked[i]);
        keep_hit(a, m.hits[i], ret);
    }
    return DEP_OK;
}

// --- Cuts ---

static void add_cut(arena *a, search_result *ret, str reason, str path, size_t count) {
    if (ret->cuts.n == 0 || !str_eq(ret->cuts.p[ret->cuts.n - 1].reason, reason))
        vec_push(a, &ret->cuts, (search_cut){.reason = str_dup(a, reason)});
    search_cut *last = &ret->cuts.p[ret->cuts.n - 1];
    // The same name again: in a further source.
    if (last->paths.n && str_eq(last->paths.p[last->paths.n - 1], path)) return;
    last->count += count;
    if (path.n) vec_push(a, &last->paths, str_dup(a, path));
}

static bool concerns(const run *r, const cut_item *item) {
    if (!item->wide) return passes(r, item->source, item->path);
    return r->source == SEARCH_NO_SOURCE || item->source == r->source;
}

static void add_cuts(const run *r, arena *a, const scan_result *scan, search_result *ret) {
    for (vec_each(cut_item, item, &r->c->cuts)) {
        if (stop_after(r->asks, STOP_ITEM)) break;
        if (!concerns(r, item)) continue;
        add_cut(a, ret, item->reason, item->path, 1);
        ret->totals.at_least = ret->totals.at_least || item->loses;
    }
    if (r->path && r->n_files == 0)
        add_cut(a, ret, S("path filter matches no file of the sources"), r->q->path, 1);
    if (r->cut_query)
        add_cut(a, ret, str_fmt(r->scratch, "query over %d bytes: its head searched", SEARCH_QUERY_MAX),
                (str){0}, 1);
    if (scan->unranked)
        add_cut(a, ret, S("too many matching lines: counted, not ranked"), (str){0}, scan->unranked);
}

// --- The whole ---

static dep_status scan(const run *r, crew *crew, found *f, dep_err *err) {
    f->ranking = rank_begin(r->scratch, crew, &f->terms, r->files);
    return scan_lines(r->scratch, crew, &f->terms, r->files, r->n_files, r->c, rank_take, f->ranking,
                      &f->scan, err);
}

dep_status run_parse(run *r, found *f, dep_err *err) {
    str query = r->q->query;
    if (query.n > SEARCH_QUERY_MAX) {
        query = utf8_cut(query, SEARCH_QUERY_MAX);
        r->cut_query = true;
    }
    terms_parse(r->scratch, query, &f->terms);
    if (f->terms.n == 0) return err_set(err, DEP_ERR_INVALID, "the query is blank");
    r->source = SEARCH_NO_SOURCE;
    return compile_path(r, err);
}

dep_status run_rank(const run *r, found *f, dep_err *err) {
    size_t limit = r->q->limit ? r->q->limit : SEARCH_LIMIT_DEFAULT;
    if (limit > f->scan.lines) limit = f->scan.lines;
    f->ranked = NEW_N(r->scratch, ranked_line, limit);
    return rank_lines(f->ranking, &f->scan, &r->sums, limit, f->ranked, &f->n_ranked, err);
}

static dep_status find(run *r, found *f, dep_err *err) {
    ARENA_CATCH(r->scratch, err);
    TRY(run_parse(r, f, err));
    TRY(find_source(r, err));
    select_files(r);
    size_t most = r->sums.bytes / SCAN_PART_BYTES;
    crew *crew = r->crew = crew_new(r->scratch, r->c->hands, r->c->pool, most, r->asks);
    TRY(scan(r, crew, f, err));
    bool more = false;
    TRY(near_add(r->scratch, crew, r->files, r->n_files, r->c, &f->scan, &f->terms, &more, err));
    if (more) TRY(scan(r, crew, f, err));
    TRY(run_rank(r, f, err));
    f->scan.cancelled = f->scan.cancelled || crew_stopped(crew);
    return DEP_OK;
}

static dep_status answer_caught(const run *r, arena *a, const found *f, search_result *ret, dep_err *err) {
    ARENA_CATCH(r->scratch, err);
    search_result result = {0};
    if (f->n_ranked) TRY(add_hits(r, a, f, &result, err));
    result.totals.files = f->scan.files;
    result.totals.bytes = f->scan.bytes;
    result.totals.matched_lines = f->scan.matched;
    result.totals.expanded_lines = f->scan.expanded;
    result.ignored_terms = f->terms.ignored;
    result.notice = str_dup(a, r->c->notice);
    add_cuts(r, a, &f->scan, &result);
    result.cancelled = r->c->cancelled || f->scan.cancelled || stop_said(r->asks) || crew_stopped(r->crew);
    result.totals.at_least = result.totals.at_least || result.cancelled;
    *ret = result;
    return DEP_OK;
}

dep_status run_answer(const run *r, arena *a, const found *f, search_result *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    return answer_caught(r, a, f, ret, err);
}

dep_status search_run(arena *a, search_corpus *c, const search_query *q, search_result *ret, dep_err *err) {
    arena_source source = pool_source(c->pool);
    stop_sign asks = {.ask = c->ask, .ctx = c->ctx};
    run r = {.c = c, .q = q, .scratch = arena_new_from(&source, false), .asks = &asks};
    if (!r.scratch) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    found f = {0};
    dep_status status = find(&r, &f, err);
    if (status == DEP_OK) status = run_answer(&r, a, &f, ret, err);
    arena_free(r.scratch);
    return status;
}

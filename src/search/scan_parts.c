// scan_parts: a scan on several threads. The files are divided into chunks; whoever is free scans the next
// one. Or files come some at a time, while they are read, and one worker scans them.
#include "search/scanner_int.h"
#include <deputy/sort.h>

// --- Chunks ---

typedef VEC(chunk) chunks;

typedef struct {
    scanner *workers;
    chunks chunks;
} scanning;

static dep_status scan_job(void *ctx, size_t worker, size_t i, dep_err *err) {
    scanning *all = ctx;
    scanner *s = &all->workers[worker];
    s->chunk = all->chunks.p[i];
    dep_status status = scanner_chunk(s, err);
    all->chunks.p[i] = s->chunk;
    return status;
}

static void divide(arena *a, scanning *all, size_t chunk_bytes, const selected_file *files, size_t n) {
    chunk c = {0};
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        bytes += files[i].file->folded.n;
        c.to = i + 1;
        if (i + 1 < n && bytes < chunk_bytes && c.to - c.from < SCAN_CHUNK_FILES) continue;
        vec_push(a, &all->chunks, c);
        c.from = i + 1;
        bytes = 0;
    }
}

// Puts the chunks in order. Over the limit the first lines stay: as each worker takes chunks in rising order,
// what one kept up to the limit has all of them that are its own.
static void collect(arena *a, const scanning *all, size_t workers, size_t limit, scan_result *ret) {
    ret->parts = NEW_N(a, scan_part, workers);
    ret->lines_of = NEW_N(a, term_lines, all->workers->n_terms);
    for (size_t i = 0; i < workers; i++)
        for (size_t t = 0; t < all->workers->n_terms; t++) {
            ret->lines_of[t].word += all->workers[i].lines_of[t].word;
            ret->lines_of[t].start += all->workers[i].lines_of[t].start;
        }
    for (size_t i = 0; i < workers; i++)
        ret->parts[i] = (scan_part){.lines = all->workers[i].found.lines, .hits = all->workers[i].found.hits};
    ret->chunks = NEW_N(a, scan_chunk, all->chunks.n);
    ret->n_chunks = all->chunks.n;
    for (size_t i = 0; i < all->chunks.n; i++) {
        const chunk *c = &all->chunks.p[i];
        const found_lines *f = &all->workers[c->worker].found;
        size_t room = limit - ret->lines, n = c->n_lines < room ? c->n_lines : room;
        ret->chunks[i] = scanner_found(c, f, n);
        ret->lines += n;
        ret->unranked += c->unranked + (c->n_lines - n);
        ret->trimmed = ret->trimmed || n < c->n_lines;
        ret->matched += c->matched;
        ret->expanded += c->expanded;
        ret->files += c->files;
        ret->bytes += c->bytes;
    }
}

static dep_status scan_all(arena *a, const scanner *like, size_t chunk_bytes, const term_list *terms,
                           size_t n, scanning *all, dep_err *err) {
    all->workers = NEW_N(a, scanner, crew_size(like->crew));
    for (size_t i = 0; i < crew_size(like->crew); i++)
        scanner_new(crew_arena(like->crew, i), &all->workers[i], terms, i ? all->workers : like, i);
    divide(a, all, chunk_bytes, like->files, n);
    return crew_run(like->crew, all->chunks.n, scan_job, all, err);
}

dep_status scan_lines_with(const scan_ops *ops, size_t chunk_bytes, arena *a, crew *crew,
                           const term_list *terms, const selected_file *files, size_t n,
                           const search_corpus *corpus, scan_take *take, void *ctx, scan_result *ret,
                           dep_err *err) {
    *ret = (scan_result){0};
    scanning all = {0};
    const scanner like = {.files = files, .c = corpus, .ops = ops, .crew = crew, .take = take, .ctx = ctx};
    TRY(scan_all(a, &like, chunk_bytes, terms, n, &all, err));
    ret->cancelled = crew_stopped(crew);
    collect(a, &all, crew_size(crew), corpus->limits.lines, ret);
    return DEP_OK;
}

static const scan_ops *ops_for(const search_corpus *c) {
    return c->ops ? c->ops : scan_ops_best();
}

dep_status scan_lines(arena *a, crew *crew, const term_list *terms, const selected_file *files, size_t n,
                      const search_corpus *c, scan_take *take, void *ctx, scan_result *ret, dep_err *err) {
    return scan_lines_with(ops_for(c), SCAN_CHUNK_BYTES, a, crew, terms, files, n, c, take, ctx, ret, err);
}

dep_status scan_places(arena *a, crew *crew, const term_list *terms, const selected_file *files, size_t n,
                       const search_corpus *c, scan_visit *visit, void *ctx, dep_err *err) {
    scanning all = {0};
    const scanner like = {
        .files = files, .c = c, .ops = ops_for(c), .crew = crew, .visit = visit, .ctx = ctx};
    return scan_all(a, &like, SCAN_CHUNK_BYTES, terms, n, &all, err);
}

// --- Files that are there for a while ---

struct scan_stream {
    scanner s;
    chunks done;
};

scan_stream *scan_stream_new(arena *a, crew *crew, size_t worker, const term_list *terms,
                             const selected_file *files, const search_corpus *c, scan_take *take,
                             scan_visit *visit, void *ctx) {
    scan_stream *x = NEW(a, scan_stream);
    const scanner like = {
        .files = files, .c = c, .ops = ops_for(c), .crew = crew, .take = take, .visit = visit, .ctx = ctx};
    scanner_new(crew_arena(crew, worker), &x->s, terms, &like, worker);
    // All of them together find no more than one scan does.
    x->s.limit = c->limits.lines / crew_size(crew);
    return x;
}

dep_status scan_stream_files(scan_stream *x, size_t from, size_t to, dep_err *err) {
    x->s.chunk = (chunk){.from = from, .to = to};
    dep_status status = scanner_chunk(&x->s, err);
    vec_push(crew_arena(x->s.crew, x->s.worker), &x->done, x->s.chunk);
    return status;
}

const term_lines *scan_stream_lines(const scan_stream *x) {
    return x->s.lines_of;
}

static int by_files(const void *a, const void *b) {
    const chunk *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

void scan_streams_end(arena *a, crew *crew, scan_stream *const *streams, scan_result *ret) {
    scanning all = {.workers = NEW_N(a, scanner, crew_size(crew))};
    *ret = (scan_result){.cancelled = crew_stopped(crew)};
    for (size_t i = 0; i < crew_size(crew); i++) {
        all.workers[i] = streams[i]->s;
        ret->full = ret->full || streams[i]->s.found.n_lines >= streams[i]->s.limit;
        for (vec_each(const chunk, c, &streams[i]->done)) vec_push(a, &all.chunks, *c);
    }
    all.chunks.p =
        sort_until(a, all.chunks.p, all.chunks.n, sizeof *all.chunks.p, by_files, crew_stop(crew, 0));
    collect(a, &all, crew_size(crew), SIZE_MAX, ret);
}

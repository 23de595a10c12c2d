// rank: the best of the matching lines, in order. Files that may have the best lines come first, and what
// cannot have any of the best is left out: how good the best ones are at least is known from the sections
// seen so far. The order is the same however many threads work on it. Knows lines, sections and scores; how
// a score comes about is score.c's.
#include "search/rank_int.h"
#include <deputy/sort.h>

enum {
    LEVELS = 64,    // of bounds: files of one level come in any order
    SOME_FILES = 8, // that one worker ranks at a time
    AHEAD = 4,      // files whose memory is asked for before they are looked at
};

// In bytes that are looked at: what a line costs to rank, and a section or a file.
enum : size_t { LINE_WORK = 64, PLACE_WORK = 16 };

typedef struct {
    double score;
    const line_hit *line;
    const scan_part *of; // found by its worker
    uint32_t group;      // number of its section among all
} candidate;

typedef struct {
    candidate *p; // the worst one on top
    size_t n, max;
} heap;

typedef VEC(candidate) candidates;

typedef enum { ORDER_NONE, ORDER_BEGUN, ORDER_DONE } ordering;

// What it has counted it also ranks, mostly: that lies near it.
typedef struct {
    arena *a;
    tally t;
    scorer x;
    heap best; // of a section
    candidates out;
    uint32_t first_group; // what numbers of its sections begin with
    // The files of its tally, the most promising first, for whoever is free.
    uint32_t *files;
    size_t n_files;
    atomic_size_t next;
    _Atomic ordering state;
} worker;

struct ranking {
    arena *a;
    crew *crew;
    const term_list *terms;
    const selected_file *selected;
    worker *workers;
    size_t n_workers;
    const scan_result *scan;
    scoring s;
    atomic_flag raising; // somebody changes these
    heap firsts;         // the best line of each section
    _Atomic double bar;  // so good at least is the worst line of those that are shown
};

// --- The best ones ---

static bool comes_before(const line_hit *a, const line_hit *b) {
    return a->file != b->file ? a->file < b->file : a->line < b->line;
}

static bool better(const candidate *a, const candidate *b) {
    return a->score > b->score || (a->score == b->score && comes_before(a->line, b->line));
}

static int by_rank(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return better(x, y) ? -1 : better(y, x) ? 1 : 0;
}

// By section, and there by rank.
static int by_group(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return x->group != y->group ? (x->group > y->group) - (x->group < y->group) : by_rank(a, b);
}

static void sift_down(heap *h) {
    for (size_t i = 0;;) {
        size_t worst = i, left = 2 * i + 1, right = left + 1;
        if (left < h->n && better(&h->p[worst], &h->p[left])) worst = left;
        if (right < h->n && better(&h->p[worst], &h->p[right])) worst = right;
        if (worst == i) return;
        candidate c = h->p[i];
        h->p[i] = h->p[worst];
        h->p[worst] = c;
        i = worst;
    }
}

// Keeps the best h->max ones.
static void offer(heap *h, candidate c) {
    if (h->n == h->max) {
        if (!better(&c, &h->p[0])) return;
        h->p[0] = c;
        sift_down(h);
        return;
    }
    size_t i = h->n++;
    for (; i && better(&h->p[(i - 1) / 2], &c); i = (i - 1) / 2) h->p[i] = h->p[(i - 1) / 2];
    h->p[i] = c;
}

// A section's best line. With as many sections as hits are wanted, what is worse than the best line of each
// cannot be among the hits. One that is left out leaves the bar lower, which is right as well: nobody waits.
static void raise_bar(ranking *r, candidate first) {
    if (atomic_flag_test_and_set_explicit(&r->raising, memory_order_acquire)) return;
    offer(&r->firsts, first);
    if (r->firsts.n == r->firsts.max)
        atomic_store_explicit(&r->bar, r->firsts.p[0].score, memory_order_relaxed);
    atomic_flag_clear_explicit(&r->raising, memory_order_release);
}

static double bar_of(ranking *r) {
    return atomic_load_explicit(&r->bar, memory_order_relaxed);
}

// --- One file ---

static void rank_section(ranking *r, worker *w, const tally_section *s, const line_hit *lines,
                         uint32_t group) {
    if (score_enter_section(&w->x, s) < bar_of(r)) return;
    w->best.n = 0;
    for (uint32_t i = 0; i < s->n_lines; i++) {
        // Each term of a line is looked for among those before it.
        if (stop_after(w->t.stop, LINE_WORK + (size_t)lines[i].n * lines[i].n)) break;
        candidate c = {.line = &lines[i], .of = w->x.found, .group = group};
        c.score = score_line(&w->x, c.line, false);
        if (c.score < bar_of(r)) continue;
        str text = score_text(&r->s, c.of, c.line);
        if (text.n && memchr(text.p, '[', text.n)) c.score = score_line(&w->x, c.line, true);
        if (c.score >= bar_of(r)) offer(&w->best, c);
    }
    if (!w->best.n) return;
    candidate first = w->best.p[0];
    for (size_t k = 0; k < w->best.n; k++) {
        if (better(&w->best.p[k], &first)) first = w->best.p[k];
        vec_push(w->a, &w->out, w->best.p[k]);
    }
    raise_bar(r, first);
}

static void rank_file(ranking *r, worker *w, const worker *owner, const tally_file *in) {
    const scan_part *found = &r->scan->parts[owner - r->workers];
    if (in->bound < bar_of(r)) return;
    score_look_at_file(&w->x, &owner->t, in, found);
    bool entered = false;
    for (uint32_t number = in->first_section; number < in->first_section + in->n_sections; number++) {
        const tally_section *s = &owner->t.sections[number];
        if (stop_after(w->t.stop, PLACE_WORK * (1 + (size_t)s->n_cells))) break;
        if (score_section_bound(&w->x, s) < bar_of(r)) continue;
        if (!entered) score_enter_file(&w->x);
        entered = true;
        rank_section(r, w, s, found->lines + s->first_line, owner->first_group + number);
    }
    if (entered) score_leave_file(&w->x);
}

// --- Jobs ---

static dep_status tally_job(void *ctx, size_t number, size_t i, dep_err *err) {
    ranking *r = ctx;
    return tally_chunk(&r->workers[number].t, &r->scan->chunks[i], err);
}

// The memory of one of the next files, which nobody has looked at for long.
static void fetch(const ranking *r, const tally *t, const tally_file *next) {
    __builtin_prefetch(&t->sections[next->first_section]);
    __builtin_prefetch(&t->cells[next->first]);
    __builtin_prefetch(r->s.files[next->file].file);
}

// What that leads to, once it is there.
static void fetch_heads(const ranking *r, const tally *t, const tally_file *next) {
    const corpus_file *f = r->s.files[next->file].file;
    const tally_section *first = &t->sections[next->first_section];
    if (!first->section) return;
    __builtin_prefetch(&f->spans[first->section - 1]);
    __builtin_prefetch(&f->heads[first->section - 1]);
}

static size_t level_of(const tally_file *f, double most) {
    size_t level = most > 0 ? (size_t)(f->bound / most * (LEVELS - 1)) : 0;
    return LEVELS - 1 - (level < LEVELS ? level : LEVELS - 1);
}

// The most promising files first. None, when it is stopped.
static void order_files(const ranking *r, worker *w, stop_sign *asks) {
    size_t first[LEVELS + 1] = {0};
    double most = 0;
    for (size_t k = 0; k < w->t.n_in; k++) {
        if (stop_after(asks, PLACE_WORK * (1 + (size_t)w->t.in[k].n_cells))) return;
        score_bound(&r->s, &w->t, &w->t.in[k]);
        if (w->t.in[k].bound > most) most = w->t.in[k].bound;
    }
    for (size_t k = 0; k < w->t.n_in; k++) first[level_of(&w->t.in[k], most) + 1]++;
    for (size_t i = 1; i < LEVELS; i++) first[i] += first[i - 1];
    for (uint32_t k = 0; k < w->t.n_in; k++) w->files[first[level_of(&w->t.in[k], most)]++] = k;
    w->n_files = w->t.n_in;
}

// Those of the owner's files that nobody has ranked yet.
static void rank_files(ranking *r, worker *w, worker *owner) {
    ordering none = ORDER_NONE;
    if (atomic_compare_exchange_strong(&owner->state, &none, ORDER_BEGUN)) {
        order_files(r, owner, w->t.stop);
        atomic_store(&owner->state, ORDER_DONE);
    }
    // Whoever orders them also ranks them.
    if (atomic_load(&owner->state) != ORDER_DONE) return;
    const tally *t = &owner->t;
    size_t n = owner->n_files;
    for (size_t i; (i = atomic_fetch_add(&owner->next, SOME_FILES)) < n;) {
        for (size_t k = i; k < i + SOME_FILES && k < n; k++) {
            if (stop_after(w->t.stop, LINE_WORK)) return;
            if (k + AHEAD < n) fetch(r, t, &t->in[owner->files[k + AHEAD]]);
            if (k + AHEAD / 2 < n) fetch_heads(r, t, &t->in[owner->files[k + AHEAD / 2]]);
            rank_file(r, w, owner, &t->in[owner->files[k]]);
        }
    }
}

// One for each worker: its own files, then what the others have left.
static dep_status rank_job(void *ctx, size_t number, size_t i, dep_err *err) {
    (void)i;
    (void)err;
    ranking *r = ctx;
    for (size_t k = 0; k < r->n_workers; k++)
        rank_files(r, &r->workers[number], &r->workers[(number + k) % r->n_workers]);
    return DEP_OK;
}

// --- The whole ---

ranking *rank_begin(arena *a, crew *crew, const term_list *terms, const selected_file *files) {
    ranking *r = NEW(a, ranking);
    r->a = a;
    r->raising = (atomic_flag)ATOMIC_FLAG_INIT;
    r->crew = crew;
    r->terms = terms;
    r->selected = files;
    r->n_workers = crew_size(crew);
    r->workers = NEW_N(a, worker, r->n_workers);
    for (size_t i = 0; i < r->n_workers; i++) {
        worker *w = &r->workers[i];
        w->a = crew_arena(crew, i);
        tally_begin(&w->t, w->a, crew_pool(crew), terms, files);
        w->t.stop = crew_stop(crew, i);
    }
    return r;
}

dep_status rank_take(void *ctx, const scan_chunk *c, dep_err *err) {
    ranking *r = ctx;
    return tally_chunk(&r->workers[c->worker].t, c, err);
}

static uint32_t *sum_found(const ranking *r) {
    size_t n_terms = r->terms->asked;
    uint32_t *sum = NEW_N(r->a, uint32_t, n_terms);
    for (size_t i = 0; i < r->n_workers; i++)
        for (size_t t = 0; t < n_terms; t++) sum[t] += r->workers[i].t.found_in[t];
    return sum;
}

static void begin_ranking(ranking *r, size_t limit) {
    uint32_t groups = 0;
    for (size_t i = 0; i < r->n_workers; i++) {
        worker *w = &r->workers[i];
        w->first_group = groups;
        groups += (uint32_t)w->t.n_sections;
        w->files = arena_bytes(r->a, w->t.n_in * sizeof *w->files);
        w->x.s = &r->s;
        w->x.row_of = NEW_N(r->a, uint32_t, (size_t)r->s.most_heads + 1);
        w->best = (heap){.p = NEW_N(r->a, candidate, limit), .max = limit};
    }
    r->firsts = (heap){.p = NEW_N(r->a, candidate, limit), .max = limit};
}

// The n-th further hit of a section counts less.
static void spread(arena *a, candidates *c, stop_sign *asks) {
    c->p = sort_until(a, c->p, c->n, sizeof *c->p, by_group, asks);
    double share = 1;
    for (size_t i = 1; i < c->n && !stop_after(asks, PLACE_WORK); i++) {
        share = c->p[i].group == c->p[i - 1].group ? share * weights.decay : 1;
        c->p[i].score *= share;
    }
    c->p = sort_until(a, c->p, c->n, sizeof *c->p, by_rank, asks);
}

// Lines over the limit, which are not the last of each worker's, must not count.
static dep_status tally_again(ranking *r, dep_err *err) {
    for (size_t i = 0; i < r->n_workers; i++) {
        worker *w = &r->workers[i];
        tally_begin(&w->t, w->a, crew_pool(r->crew), r->terms, r->selected);
    }
    return crew_run(r->crew, r->scan->n_chunks, tally_job, r, err);
}

// What is worse than the bar came in before it stood as high.
static void gather(ranking *r, candidates *all) {
    stop_sign *asks = crew_stop(r->crew, 0);
    double bar = bar_of(r);
    for (size_t i = 0; i < r->n_workers; i++) all->cap += r->workers[i].out.n;
    all->p = arena_bytes(r->a, all->cap * sizeof *all->p);
    for (size_t i = 0; i < r->n_workers; i++)
        for (vec_each(const candidate, c, &r->workers[i].out)) {
            if (c->score >= bar) all->p[all->n++] = *c;
            if (stop_after(asks, PLACE_WORK)) return;
        }
}

static const term_hit *best_hit(const scoring *s, const candidate *c) {
    const term_hit *hits = c->of->hits + c->line->first;
    size_t best = 0;
    for (size_t k = 1; k < c->line->n; k++)
        if (s->idf[s->terms->p[hits[k].term].as] > s->idf[s->terms->p[hits[best].term].as]) best = k;
    return &hits[best];
}

dep_status rank_lines(ranking *r, const scan_result *scan, const selection_sums *sums, size_t limit,
                      ranked_line *ret, size_t *n, dep_err *err) {
    *n = 0;
    if (limit > scan->lines) limit = scan->lines;
    if (limit == 0) return DEP_OK;
    r->scan = scan;
    if (scan->trimmed) TRY(tally_again(r, err));
    scoring_begin(r->a, &r->s, r->terms, r->selected, sums, sum_found(r));
    begin_ranking(r, limit);
    TRY(crew_run(r->crew, r->n_workers, rank_job, r, err));
    candidates all = {0};
    gather(r, &all);
    spread(r->a, &all, crew_stop(r->crew, 0));
    for (; *n < limit && *n < all.n; ++*n)
        ret[*n] = (ranked_line){.line = all.p[*n].line,
                                .best = best_hit(&r->s, &all.p[*n]),
                                .text = score_text(&r->s, all.p[*n].of, all.p[*n].line),
                                .score = all.p[*n].score};
    return DEP_OK;
}

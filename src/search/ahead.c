// ahead: reads what a loader will want, on the threads of a crew, before it puts it together in order.
// Whoever is free takes the next candidates. Near the end of a source's budget nothing is read ahead: there
// it is the order that decides what fits.
#include "search/load_int.h"

enum {
    AHEAD_SHARE = 8, // a part of each share of the budget that the loader itself spends
    FULL_SHARE = 64, // so small a part of the rest is not looked at
    BATCHES = 4,     // at least, for each thread
};
enum : size_t { SHOW_BYTES = (size_t)256 << 10 }; // of texts that are shown to a taker at once

typedef struct {
    loader *l;
    size_t some;          // candidates that are taken at once
    size_t most;          // bytes of each source
    atomic_size_t next;   // candidate
    atomic_size_t *spent; // by source
} ahead;

// Is so little left of the source's share that hardly any file fits?
static bool is_full(const ahead *all, uint32_t source) {
    return atomic_load(&all->spent[source]) > all->most - all->most / FULL_SHARE;
}

// Takes so much of the source's share. False: it is not certain that it is there.
static bool reserve(ahead *all, uint32_t source, size_t n) {
    if (atomic_fetch_add(&all->spent[source], n) + n <= all->most) return true;
    atomic_fetch_sub(&all->spent[source], n);
    return false;
}

typedef struct {
    size_t candidate[FETCH_FILES];
    int fd[FETCH_FILES];
    size_t n;
} batch;

// Of one worker.
typedef struct {
    ahead *all;
    fetcher *x;
    size_t from, to; // of the candidates that it has taken and not opened yet
    batch batches[2];
} reading;

static bool take_more(reading *r) {
    ahead *all = r->all;
    size_t n = all->l->candidates.n;
    if (r->from < r->to) return true;
    if (atomic_load(&all->next) >= n) return false;
    r->from = atomic_fetch_add(&all->next, all->some);
    r->to = r->from + all->some < n ? r->from + all->some : n;
    return r->from < r->to;
}

// Opens the next files. False: there are none, or it was stopped.
static bool open_some(reading *r, unsigned number) {
    loader *l = r->all->l;
    fetcher *x = r->x;
    batch *b = &r->batches[number];
    bool ahead = x->waited;
    b->n = 0;
    if (stop_after(x->stop, FETCH_FILES * (STOP_EACH / 64)) || !take_more(r)) return false;
    for (; r->from < r->to; r->from++) {
        const candidate *cand = &l->candidates.p[r->from];
        uint32_t source = cand->sources.p[0];
        fetched *f = &l->fetched[r->from];
        if (cand->known || is_full(r->all, source)) continue;
        int fd = fetch_open(x, number, false, cand, f);
        // Too many are open: those at hand are read first, or the loader tries again.
        if (fd < 0 && f->state == FETCH_NOT_YET && x->open[0].n + x->open[1].n) break;
        if (fd < 0) continue;
        if (!reserve(r->all, source, fetch_size(x->rules, &f->sig))) continue;
        if (ahead) fetch_ahead(x, fd, f);
        b->candidate[b->n] = r->from;
        b->fd[b->n++] = fd;
    }
    return true;
}

static dep_status read_batch(reading *r, unsigned number, dep_err *err) {
    loader *l = r->all->l;
    fetcher *x = r->x;
    batch *b = &r->batches[number];
    bool ahead = x->waited;
    size_t shown = b->n ? b->candidate[0] : 0, held = 0;
    for (size_t i = 0; i < b->n && !stop_said(x->stop); i++) {
        size_t at = b->candidate[i];
        fetched *f = &l->fetched[at];
        TRY(fetch_text(x, &l->candidates.p[at], b->fd[i], f, err));
        // The first one that had to be waited for: the others are asked for.
        for (size_t k = i + 1; x->waited && !ahead && k < b->n; k++)
            fetch_ahead(x, b->fd[k], &l->fetched[b->candidate[k]]);
        ahead = x->waited;
        size_t folded = f->file.folded.n, bytes = f->file.bytes;
        if (folded > bytes)
            atomic_fetch_add(&r->all->spent[l->candidates.p[at].sources.p[0]], folded - bytes);
        held += folded;
        // When it is stopped, those before are shown.
        if (held < SHOW_BYTES && i + 1 < b->n && !stop_said(x->stop)) continue;
        TRY(loader_show(l, x, shown, at + 1, err));
        shown = at + 1;
        held = 0;
    }
    fetch_close(x, number);
    return DEP_OK;
}

// Once files have had to be waited for, the next ones are opened and asked for before those at hand are read.
static dep_status read_caught(reading *r, dep_err *err) {
    ARENA_CATCH(r->x->turn, err);
    unsigned now = 0;
    for (bool waiting = false;; now = !now) {
        bool more = open_some(r, now);
        if (waiting) TRY(read_batch(r, !now, err));
        if (!more) return DEP_OK;
        waiting = r->x->waited;
        if (!waiting) TRY(read_batch(r, now, err));
    }
}

static dep_status job(void *ctx, size_t worker, size_t i, dep_err *err) {
    (void)i;
    ahead *all = ctx;
    reading r = {.all = all, .x = &all->l->fetchers[worker]};
    dep_status status = read_caught(&r, err);
    fetch_end(r.x);
    return status;
}

dep_status load_ahead(loader *l, dep_err *err) {
    size_t n = l->candidates.n, workers = crew_size(l->crew);
    // Few large ones are shared as well.
    size_t some = n / (workers * BATCHES);
    some = some < 1 ? 1 : some > FETCH_FILES ? FETCH_FILES : some;
    size_t share = l->left / l->space->n_sources;
    ahead all = {.l = l, .some = some, .most = share - share / AHEAD_SHARE};
    all.spent = NEW_N(l->scratch, atomic_size_t, l->space->n_sources);
    return crew_run(l->crew, workers < n ? workers : n, job, &all, err);
}

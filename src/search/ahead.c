// ahead: reads what a loader will want, on all threads of a crew, before it puts it together in order.
// Whoever is free takes the next candidates. Near the end of a source's budget nothing is read ahead: there
// it is the order that decides what fits.
#include "search/load_int.h"

enum { AHEAD_SHARE = 8 };                         // a part of a budget that the loader itself spends
enum : size_t { SHOW_BYTES = (size_t)256 << 10 }; // of texts that are shown to a taker at once

typedef struct {
    loader *l;
    size_t share;         // of the budget, of each source
    atomic_size_t next;   // candidate
    atomic_size_t *spent; // by source
} ahead;

// Takes so much of the source's budget. False: it is not certain that it is there.
static bool reserve(ahead *all, uint32_t source, size_t n) {
    size_t most = all->share - all->share / AHEAD_SHARE;
    if (atomic_load(&all->spent[source]) > most) return false;
    return atomic_fetch_add(&all->spent[source], n) + n <= most;
}

typedef struct {
    size_t candidate;
    int fd;
} opened;

// Opens some of [*from, to), and moves *from on.
static size_t open_some(ahead *all, fetcher *x, size_t *from, size_t to, opened some[FETCH_FILES]) {
    loader *l = all->l;
    size_t n = 0;
    bool asks = x->waited;
    for (; *from < to && x->n_open < FETCH_FILES; ++*from) {
        const candidate *cand = &l->candidates.p[*from];
        fetched *f = &l->fetched[*from];
        if (cand->known || atomic_load(&all->spent[cand->sources.p[0]]) > all->share) continue;
        int fd = fetch_open(x, cand, f);
        if (fd < 0 && f->state == FETCH_NOT_YET) break; // too many are open
        if (fd < 0) continue;
        size_t size = f->sig.size > 0 ? (size_t)f->sig.size : 0;
        if (!reserve(all, cand->sources.p[0], size < x->rules->max_file ? size : x->rules->max_file))
            continue;
        if (asks) fetch_ahead(x, fd, f);
        some[n++] = (opened){*from, fd};
    }
    return n;
}

static dep_status read_some(ahead *all, fetcher *x, const opened *some, size_t n, dep_err *err) {
    loader *l = all->l;
    size_t shown = n ? some[0].candidate : 0, held = 0;
    for (size_t i = 0; i < n; i++) {
        size_t at = some[i].candidate;
        fetched *f = &l->fetched[at];
        TRY(fetch_text(x, &l->candidates.p[at], some[i].fd, f, err));
        size_t folded = f->file.folded.n, bytes = f->file.bytes;
        if (folded > bytes) atomic_fetch_add(&all->spent[l->candidates.p[at].sources.p[0]], folded - bytes);
        held += folded;
        // When it is stopped, those before are shown.
        if (held < SHOW_BYTES && i + 1 < n && !stop_said(x->stop)) continue;
        TRY(loader_show(l, x, shown, at + 1, err));
        shown = at + 1;
        held = 0;
        if (stop_said(x->stop)) break;
    }
    return DEP_OK;
}

static dep_status read_caught(ahead *all, fetcher *x, dep_err *err) {
    ARENA_CATCH(x->turn, err);
    loader *l = all->l;
    while (!stop_said(x->stop)) {
        size_t from = atomic_fetch_add(&all->next, FETCH_FILES), to = from + FETCH_FILES;
        if (from >= l->candidates.n) break;
        if (to > l->candidates.n) to = l->candidates.n;
        while (from < to && !stop_said(x->stop)) {
            opened some[FETCH_FILES];
            size_t n = open_some(all, x, &from, to, some);
            TRY(read_some(all, x, some, n, err));
            fetch_close(x);
            (void)stop_after(x->stop, FETCH_FILES * STOP_ITEM);
        }
    }
    return DEP_OK;
}

static dep_status job(void *ctx, size_t worker, size_t i, dep_err *err) {
    (void)i;
    ahead *all = ctx;
    dep_status status = read_caught(all, &all->l->fetchers[worker], err);
    fetch_close(&all->l->fetchers[worker]);
    return status;
}

dep_status load_ahead(loader *l, dep_err *err) {
    size_t batches = (l->candidates.n + FETCH_FILES - 1) / FETCH_FILES, workers = crew_size(l->crew);
    ahead all = {.l = l, .share = l->left / l->space->n_sources};
    all.spent = NEW_N(l->scratch, atomic_size_t, l->space->n_sources);
    return crew_run(l->crew, batches < workers ? batches : workers, job, &all, err);
}

// corpus: versions of what is searched, and what one search sees of them. A version is made by walking and
// reading all (load.c does the reading), or from the one before when a single file has changed; either way it
// does not change afterwards. Counted: searches and the cache share versions. Knows nothing of queries, nor
// of how changes are noticed.
#include "search/load_int.h"
#include <deputy/sort.h>
#include <stdlib.h>

enum : size_t { RUNS_MIN = (size_t)256 << 10 }; // of a smaller corpus no figures are kept

static void names_drop(corpus_names *n) {
    if (!n || atomic_fetch_sub_explicit(&n->refs, 1, memory_order_acq_rel) != 1) return;
    arena_free(n->a);
    free(n);
}

corpus_data *corpus_take(corpus_data *d) {
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void corpus_drop(corpus_data *d) {
    if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1) return;
    slabs_drop(&d->slabs);
    slab_drop(d->tail);
    free(d->files);
    free(d->all);
    free(d->tracks);
    names_drop(d->names);
    free(d);
}

size_t corpus_size(const corpus_data *d) {
    size_t n = arena_used(d->names->a) + d->n_files * (sizeof *d->files + sizeof *d->all) +
               d->n_tracks * sizeof *d->tracks;
    for (size_t i = 0; i < d->slabs.n; i++) n += slab_size(d->slabs.p[i]);
    return n;
}

const corpus_track *corpus_track_of(const corpus_data *d, str path) {
    size_t low = 0, high = d->n_tracks;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = str_cmp(d->tracks[mid].path, path);
        if (order == 0) return &d->tracks[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

// --- Putting a version together ---

static int by_name(const void *a, const void *b) {
    return name_order(*(const file_name *)a, *(const file_name *)b);
}

static int by_first_name(const void *a, const void *b) {
    const loaded *const *x = a, *const *y = b;
    return by_name((*x)->names.p, (*y)->names.p);
}

static int by_reason(const void *a, const void *b) {
    const cut_item *x = a, *y = b;
    int order = str_cmp(x->reason, y->reason);
    if (!order) order = str_cmp(x->path, y->path);
    return order ? order : (x->source > y->source) - (x->source < y->source);
}

static int by_track(const void *a, const void *b) {
    return str_cmp(((const corpus_track *)a)->path, ((const corpus_track *)b)->path);
}

// The files by their first names; tracks get their numbers.
static const loaded **order_files(loader *l) {
    const loaded **order = NEW_N(l->scratch, const loaded *, l->files.n + 1);
    for (size_t i = 0; i < l->files.n; i++) {
        loaded *f = &l->files.p[i];
        if (f->names.n > 1) qsort(f->names.p, f->names.n, sizeof *f->names.p, by_name);
        order[i] = f;
    }
    order = sort_until(l->scratch, order, l->files.n, sizeof *order, by_first_name, NULL);
    uint32_t *now = NEW_N(l->scratch, uint32_t, l->files.n + 1);
    for (size_t i = 0; i < l->files.n; i++) now[order[i] - l->files.p] = (uint32_t)i + 1;
    for (size_t i = 0; i < l->candidates.n; i++)
        if (l->tracks[i].file) l->tracks[i].file = now[l->tracks[i].file - 1];
    return order;
}

// The slabs that hold the files, each counted once.
static bool take_slabs(corpus_data *d) {
    size_t live = 0, used = 0;
    slab *last = NULL;
    for (size_t i = 0; i < d->n_files; i++) {
        slab *s = d->files[i].in;
        if (!s) continue; // only its figures are kept
        live += d->files[i].n_path + 1 + d->files[i].folded.n + 1;
        if (s == last) continue;
        last = s;
        bool has = false;
        for (size_t k = d->slabs.n; k && !has; k--) has = d->slabs.p[k - 1] == s;
        if (has) continue;
        if (!slab_list_add(&d->slabs, slab_take(s))) return false;
        used += s->used;
    }
    d->dead = used > live ? used - live : 0;
    return true;
}

static uint8_t logarithm(uint32_t n) {
    unsigned e = 31 - (unsigned)__builtin_clz(n + 1);
    return (uint8_t)(e * BYTES_DOUBLING + (((uint64_t)(n + 1) << 3 >> e) & 7));
}

// What all fetchers have seen.
static byte_runs *make_runs(loader *l) {
    if (l->cost < RUNS_MIN || !l->fetchers->two) return NULL;
    byte_runs *p = NEW(l->names, byte_runs);
    size_t counted = 0;
    for (size_t i = 0; i < crew_size(l->crew); i++) counted += l->fetchers[i].counted;
    // Most was taken over: so are the figures.
    bool taken = l->old && l->old->runs && l->old->cost / 2 > counted;
    if (taken) *p = *l->old->runs;
    p->bytes = l->cost;
    for (size_t k = 0; k < BYTE_RUNS && !taken; k++) {
        uint32_t two = 0, three = 0;
        for (size_t i = 0; i < crew_size(l->crew); i++) {
            two += l->fetchers[i].two[k];
            three += l->fetchers[i].three[k];
        }
        p->two[k] = logarithm(two);
        p->three[k] = logarithm(three);
    }
    return p;
}

// The last slab of one fetcher: changed files are added to it.
static void seal(const loader *l, corpus_data *d) {
    const slabs *of = &l->fetchers->slabs;
    if (!of->n || !d->slabs.n) return;
    slab_seal(of->p[of->n - 1]);
    d->tail = slab_take(of->p[of->n - 1]);
}

static bool select_all(corpus_data *d) {
    d->all = malloc((d->n_files + 1) * sizeof *d->all);
    for (size_t i = 0; d->all && i < d->n_files; i++) {
        d->all[i] = (selected_file){.file = &d->files[i], .name = d->files[i].names};
        selection_add(&d->sums, &d->files[i]);
    }
    return d->all != NULL;
}

static dep_status no_memory(corpus_data *d, dep_err *err) {
    corpus_drop(d);
    return err_set(err, DEP_ERR_NOMEM, "out of memory");
}

// It was stopped when all was read: putting together what there is takes a while where files are many.
static void forget(loader *l) {
    enum { MANY = 10000 };
    l->cancelled = true;
    if (l->files.n < MANY) return;
    l->files.n = 0;
    l->candidates.n = 0;
}

// What the loader holds, as a version. Nothing of an arena is asked for once the memory of malloc is held.
static dep_status finish(loader *l, corpus_names *names, corpus_data **ret, dep_err *err) {
    if (stop_ask(&l->stop)) forget(l);
    const loaded **files = order_files(l);
    byte_runs *runs = make_runs(l);
    str *sources = NEW_N(l->names, str, l->space->n_sources);
    for (size_t i = 0; i < l->space->n_sources; i++)
        sources[i] = str_dup(l->names, l->space->sources[i].name);
    linked_dir *dirs = NEW_N(l->names, linked_dir, l->dirs.n);
    if (l->dirs.n) memcpy(dirs, l->dirs.p, l->dirs.n * sizeof *dirs);

    corpus_data *d = calloc(1, sizeof *d);
    if (!d) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    *d = (corpus_data){.sources = sources,
                       .n_sources = l->space->n_sources,
                       .n_files = l->files.n,
                       .n_tracks = l->cancelled ? 0 : l->candidates.n,
                       .dirs = dirs,
                       .n_dirs = l->dirs.n,
                       .cuts = l->cuts,
                       .runs = runs,
                       .cost = l->cost,
                       .all_fit = l->left_out == 0,
                       .cancelled = l->cancelled};
    atomic_init(&d->refs, 1);
    d->files = malloc((d->n_files + 1) * sizeof *d->files);
    d->tracks = malloc((d->n_tracks + 1) * sizeof *d->tracks);
    if (!d->files || !d->tracks) return no_memory(d, err);
    for (size_t i = 0; i < d->n_files; i++) {
        d->files[i] = *files[i]->file;
        d->files[i].names = files[i]->names.p;
        d->files[i].n_names = (uint32_t)files[i]->names.n;
    }
    (void)stop_ask(&l->stop);
    if (d->n_tracks) memcpy(d->tracks, l->tracks, d->n_tracks * sizeof *d->tracks);
    for (size_t i = 0; i < d->n_tracks; i++) d->n_unwatched += d->tracks[i].linked || d->tracks[i].several;
    bool sorted = true;
    for (size_t i = 1; i < d->n_tracks && sorted; i++)
        sorted = by_track(&d->tracks[i - 1], &d->tracks[i]) < 0;
    if (!sorted) qsort(d->tracks, d->n_tracks, sizeof *d->tracks, by_track);
    if (!take_slabs(d) || !select_all(d)) return no_memory(d, err);
    seal(l, d);
    atomic_fetch_add_explicit(&names->refs, 1, memory_order_relaxed);
    d->names = names;
    *ret = d;
    return DEP_OK;
}

// --- A whole version ---

typedef struct {
    loader *l;
    const walk_watch *watch;
} entering;

static void enter(void *ctx, str path, int fd, bool linked, const struct stat *st) {
    entering *e = ctx;
    if (linked)
        vec_push(e->l->scratch, &e->l->dirs,
                 ((linked_dir){.path = str_dup(e->l->names, path), .dev = st->st_dev, .ino = st->st_ino}));
    e->watch->enter(e->watch->ctx, path, fd, linked, st);
}

static dep_status walk(loader *l, const search_limits *limits, const walk_watch *watch, dep_err *err) {
    walk_result walked = {0};
    entering e = {.l = l, .watch = watch};
    walk_watch mine = {.stat = watch && watch->stat, .enter = enter, .ctx = &e};
    TRY(walk_sources_for(l->scratch, l->space, limits, watch ? &mine : NULL, &walked, err));
    for (vec_each(cut_item, item, &walked.cuts)) {
        cut_item kept = *item;
        kept.reason = str_dup(l->names, kept.reason);
        kept.path = str_dup(l->names, kept.path);
        vec_push(l->names, &l->cuts, kept);
    }
    l->cancelled = walked.cancelled;
    loader_gather(l, walked.files.p, walked.files.n);
    return DEP_OK;
}

// Everything that is read. only: NULL, or the files that are, without a walk.
static dep_status read_all(loader *l, const search_limits *limits, const walk_watch *watch, walk_file *only,
                           size_t n_only, const text_pass *pass, dep_err *err) {
    const search_space *space = l->space;
    l->excludes = NEW_N(l->scratch, walk_exclude *, space->n_sources);
    for (size_t i = 0; i < space->n_sources; i++)
        TRY(walk_excludes(l->scratch, &space->sources[i], &l->excludes[i], err));
    if (only)
        loader_gather(l, only, n_only);
    else
        TRY(walk(l, limits, watch, err));
    if (pass) TRY(pass->begin(pass->ctx, l->candidates.p, l->fetched, l->candidates.n, &l->taker, err));
    TRY(loader_begin(l, pass ? pass->crew : NULL, err));
    bool kept = !pass && !only;
    for (size_t i = 0; i < crew_size(l->crew) && kept; i++) {
        l->fetchers[i].two = NEW_N(l->scratch, uint32_t, BYTE_RUNS);
        l->fetchers[i].three = NEW_N(l->scratch, uint32_t, BYTE_RUNS);
    }
    if (!l->cancelled) TRY(loader_load_all(l, err));
    l->cancelled = l->cancelled || stop_said(&l->stop);
    if (l->cuts.n > 1) qsort(l->cuts.p, l->cuts.n, sizeof *l->cuts.p, by_reason);
    return DEP_OK;
}

static loader *new_loader(arena *names, arena *scratch, const search_space *space) {
    loader *l = NEW(scratch, loader);
    *l = (loader){.names = names,
                  .scratch = scratch,
                  .space = space,
                  .stop = {.ask = space->cancelled, .ctx = space->ctx}};
    return l;
}

dep_status corpus_pass(const search_space *space, const search_limits *limits, const text_pass *pass,
                       arena *scratch, loader **ret, dep_err *err) {
    *ret = new_loader(scratch, scratch, space);
    return read_all(*ret, limits, NULL, NULL, 0, pass, err);
}

// The two arenas under one unwind target each: an allocation failure in any of them ends here.
typedef struct {
    const search_space *space;
    const search_limits *limits;
    const corpus_data *old;
    const walk_watch *watch;
    const corpus_track *track; // only this one is read anew; NULL: all
    corpus_names *names;
    arena *scratch;
    walk_file *only; // NULL: those that the walk finds
    size_t n_only;
    bool judged;
} load_order;

static dep_status reload(loader *l, const load_order *o, corpus_data **ret, dep_err *err);

static dep_status load_caught_scratch(const load_order *o, corpus_data **ret, dep_err *err) {
    ARENA_CATCH(o->scratch, err);
    loader *l = new_loader(o->track ? o->scratch : o->names->a, o->scratch, o->space);
    l->old = o->old;
    l->judged = o->judged;
    if (o->track) return reload(l, o, ret, err);
    TRY(read_all(l, o->limits, o->watch, o->only, o->n_only, NULL, err));
    return finish(l, o->names, ret, err);
}

static dep_status load_caught(const load_order *o, corpus_data **ret, dep_err *err) {
    ARENA_CATCH(o->names->a, err);
    return load_caught_scratch(o, ret, err);
}

static dep_status load_in_order(load_order *o, corpus_data **ret, dep_err *err) {
    o->scratch = arena_new();
    dep_status status = o->track ? load_caught_scratch(o, ret, err) : load_caught(o, ret, err);
    arena_free(o->scratch);
    return status;
}

static dep_status load_whole(load_order *o, corpus_data **ret, dep_err *err) {
    corpus_names *names = calloc(1, sizeof *names);
    if (!names) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    atomic_init(&names->refs, 1);
    names->a = arena_new();
    o->names = names;
    dep_status status = load_in_order(o, ret, err);
    names_drop(names);
    return status;
}

dep_status corpus_load(const search_space *space, const search_limits *limits, const corpus_data *old,
                       bool judged, const walk_watch *watch, corpus_data **ret, dep_err *err) {
    load_order o = {.space = space, .limits = limits, .old = old, .judged = judged, .watch = watch};
    return load_whole(&o, ret, err);
}

dep_status corpus_read(const search_space *space, const search_limits *limits, walk_file *only, size_t n_only,
                       corpus_data **ret, dep_err *err) {
    load_order o = {.space = space, .limits = limits, .only = only, .n_only = n_only};
    return load_whole(&o, ret, err);
}

// --- One file anew ---

// The candidate that the file is; false when it is more than one.
static bool as_candidate(loader *l, const corpus_file *f, str path) {
    candidate c = {.path = path};
    for (uint32_t i = 0; i < f->n_names; i++) {
        if (!str_eq(f->names[i].path, path)) return false;
        vec_push(l->scratch, &c.sources, f->names[i].source);
    }
    vec_push(l->scratch, &l->candidates, c);
    return true;
}

static dep_status replace(loader *l, const corpus_data *old, const corpus_track *track, corpus_data **ret,
                          dep_err *err) {
    corpus_data *d = calloc(1, sizeof *d);
    if (!d) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    // Not as a whole: others count the old one meanwhile.
    *d = (corpus_data){.names = old->names,
                       .sources = old->sources,
                       .n_sources = old->n_sources,
                       .n_files = old->n_files,
                       .n_tracks = old->n_tracks,
                       .n_unwatched = old->n_unwatched,
                       .dirs = old->dirs,
                       .n_dirs = old->n_dirs,
                       .cuts = old->cuts,
                       .runs = old->runs,
                       .cost = old->cost,
                       .all_fit = old->all_fit};
    atomic_init(&d->refs, 1);
    atomic_fetch_add_explicit(&d->names->refs, 1, memory_order_relaxed);
    d->files = malloc((d->n_files + 1) * sizeof *d->files);
    d->tracks = malloc((d->n_tracks + 1) * sizeof *d->tracks);
    if (!d->files || !d->tracks) return no_memory(d, err);
    memcpy(d->files, old->files, d->n_files * sizeof *d->files);
    memcpy(d->tracks, old->tracks, d->n_tracks * sizeof *d->tracks);
    corpus_file *f = &d->files[track->file - 1];
    size_t was = f->folded.n > f->bytes ? f->folded.n : f->bytes;
    const file_name *names = f->names;
    uint32_t n_names = f->n_names;
    *f = *l->files.p[0].file;
    f->names = names;
    f->n_names = n_names;
    corpus_track *t = &d->tracks[track - old->tracks];
    str path = t->path;
    *t = l->tracks[0];
    t->path = path;
    t->file = track->file;
    d->cost = d->cost - was + l->cost;
    if (!take_slabs(d) || !select_all(d)) return no_memory(d, err);
    seal(l, d);
    *ret = d;
    return DEP_OK;
}

static dep_status reload(loader *l, const load_order *o, corpus_data **ret, dep_err *err) {
    const search_space *space = l->space;
    const corpus_track *track = o->track;
    const corpus_data *old = o->old;
    size_t max_bytes = space->max_bytes ? space->max_bytes : SEARCH_BYTES_MAX;
    l->old = NULL; // nothing is taken over
    if (old->cost > max_bytes || !as_candidate(l, &old->files[track->file - 1], track->path)) return DEP_OK;
    l->left = max_bytes - old->cost;
    l->tracks = NEW(l->scratch, corpus_track);
    l->fetched = NEW(l->scratch, fetched);
    l->n_slots = 4;
    l->slots = NEW_N(l->scratch, slot, l->n_slots);
    l->excludes = NEW_N(l->scratch, walk_exclude *, space->n_sources);
    TRY(loader_begin(l, NULL, err));
    if (old->tail && !slab_list_add(&l->fetchers->slabs, slab_take(old->tail)))
        return err_set(err, DEP_ERR_NOMEM, "out of memory");
    bool fits;
    TRY(loader_load(l, 0, true, &fits, err));
    if (!fits || crew_stopped(l->crew)) return DEP_OK;
    if (l->files.n != 1 || l->cuts.n || l->tracks[0].several || l->tracks[0].linked) return DEP_OK;
    return replace(l, old, track, ret, err);
}

dep_status corpus_reload(const search_space *space, const search_limits *limits, const corpus_data *old,
                         const corpus_track *track, corpus_data **ret, dep_err *err) {
    *ret = NULL;
    // What is said of a file, or stands under several names, concerns more than one place.
    if (!track->file || track->notes.n || track->linked || track->several || !old->all_fit) return DEP_OK;
    load_order o = {.space = space, .limits = limits, .old = old, .track = track};
    return load_in_order(&o, ret, err);
}

// --- What a search sees ---

enum { JUDGE_TRIES = 4 }; // loads during which the epoch changed

// A version for one search alone. What was refused while it was read is refused: with an epoch the answers
// are those of its beginning, so it must be the same at the end.
static dep_status load_alone(const search_space *space, const search_limits *limits, corpus_data **ret,
                             dep_err *err) {
    for (int tries = 0; tries < JUDGE_TRIES; tries++) {
        uint64_t epoch = space->epoch ? space->epoch(space->ctx) : 0;
        corpus_data *d = NULL;
        TRY(corpus_load(space, limits, NULL, false, NULL, &d, err));
        if (!space->epoch || space->epoch(space->ctx) == epoch) {
            *ret = d;
            return DEP_OK;
        }
        corpus_drop(d);
    }
    return err_set(err, DEP_ERR_BUSY, "what may be searched changes faster than it can be read; try again");
}

static void drop_deferred(void *d) {
    corpus_drop(d);
}

dep_status search_open_with(const search_space *space, const search_limits *limits, search_corpus **ret,
                            dep_err *err) {
    corpus_data *d = NULL;
    const char *notice = NULL;
    TRY(space->cache ? cache_open(space, limits, &d, &notice, err) : load_alone(space, limits, &d, err));
    if (!d) return err_set(err, DEP_ERR_INTERNAL, "no version of the sources was made");
    arena *a = arena_new();
    arena_defer(a, drop_deferred, d);
    search_corpus *c = NEW(a, search_corpus);
    *c = (search_corpus){.a = a,
                         .data = d,
                         .sources = d->sources,
                         .n_sources = d->n_sources,
                         .files = d->files,
                         .all = d->all,
                         .sums = d->sums,
                         .n_files = d->n_files,
                         .n_candidates = d->n_tracks,
                         .cuts = d->cuts,
                         .runs = d->runs,
                         .cancelled = d->cancelled,
                         .limits = *limits,
                         .ask = space->cancelled,
                         .ctx = space->ctx,
                         .notice = notice ? str_z(notice) : (str){0}};
    if (space->cache) search_cache_lend(space->cache, c);
    *ret = c;
    return DEP_OK;
}

dep_status search_open(const search_space *space, search_corpus **ret, dep_err *err) {
    return search_open_with(space, &search_limits_default, ret, err);
}

void search_close(search_corpus *c) {
    if (c) arena_free(c->a);
}

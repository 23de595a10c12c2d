// load: puts the files that the walk found together, once each, into a version of a corpus. Knows nothing of
// queries. A file is what its device and inode say it is: several names, links and sources that lead to one
// file make one corpus_file with several names; the declared encoding is that of its first source. What a
// former version holds of a file that looks the same is taken over without opening it. Most files have been
// read ahead, on several threads; which of them count, and what is said of them, is decided here, in order.
#include "search/load_int.h"
#include <deputy/file.h>
#include <deputy/sort.h>
#include <deputy/sys.h>
#include <stdlib.h>

// For each source that has the file, so that it is said whichever of them a query asks.
static void cut(loader *l, const candidate *cand, str reason, bool loses) {
    arena *a = l->names;
    cut_item item = {.reason = str_dup(a, reason), .path = cand->path, .loses = loses};
    for (vec_each(uint32_t, source, &cand->sources)) {
        item.source = *source;
        vec_push(a, &l->cuts, item);
    }
}

// The same, of what the file itself holds: said again when its text is taken over.
static void note(loader *l, const candidate *cand, corpus_track *track, str reason, bool loses) {
    cut_item item = {.reason = str_dup(l->names, reason), .loses = loses};
    vec_push(l->names, &track->notes, item);
    cut(l, cand, reason, loses);
}

static void note_again(loader *l, const candidate *cand, corpus_track *track, const cut_items *notes) {
    for (vec_each(const cut_item, n, notes)) note(l, cand, track, n->reason, n->loses);
}

// --- Which files ---

static int by_path_source(const void *a, const void *b) {
    const walk_file *x = a, *y = b;
    int order = str_cmp(x->path, y->path);
    return order ? order : (x->source > y->source) - (x->source < y->source);
}

static int by_source_path(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return name_order((file_name){x->sources.p[0], x->path}, (file_name){y->sources.p[0], y->path});
}

void loader_gather(loader *l, walk_file *files, size_t n) {
    vec_reserve(l->scratch, &l->candidates, n);
    if (l->space->n_sources > 1)
        files = sort_until(l->scratch, files, n, sizeof *files, by_path_source, &l->stop);
    for (size_t i = 0; i < n && !stop_after(&l->stop, STOP_ITEM); i++) {
        if (i == 0 || !str_eq(files[i].path, files[i - 1].path))
            vec_push(l->scratch, &l->candidates,
                     (candidate){.path = str_dup(l->names, files[i].path), .sig = files[i].sig});
        candidate *last = &l->candidates.p[l->candidates.n - 1];
        vec_reserve(l->scratch, &last->sources, 1);
        vec_push(l->scratch, &last->sources, files[i].source);
    }
    l->candidates.cap = l->candidates.n;
    l->candidates.p = sort_until(l->scratch, l->candidates.p, l->candidates.n, sizeof *l->candidates.p,
                                 by_source_path, &l->stop);
    vec_reserve(l->scratch, &l->files, l->candidates.n);
    (void)stop_ask(&l->stop);
    l->tracks = NEW_N(l->scratch, corpus_track, l->candidates.n + 1);
    (void)stop_ask(&l->stop);
    l->fetched = NEW_N(l->scratch, fetched, l->candidates.n + 1);
    (void)stop_ask(&l->stop);
    l->n_slots = 64;
    while (l->n_slots < l->candidates.n * 2) l->n_slots *= 2;
    l->slots = NEW_N(l->scratch, slot, l->n_slots);
}

static slot *find_slot(loader *l, dev_t dev, ino_t ino) {
    uint64_t h = ((uint64_t)ino * 0x9E3779B97F4A7C15u) ^ ((uint64_t)dev * 0xC2B2AE3D27D4EB4Fu);
    for (size_t i = (size_t)(h >> 32);; i++) {
        slot *s = &l->slots[i & (l->n_slots - 1)];
        if (!s->file || (s->dev == dev && s->ino == ino)) return s;
    }
}

static void add_names(loader *l, loaded *f, const candidate *cand) {
    vec_reserve(l->names, &f->names, f->names.n + cand->sources.n);
    for (size_t i = 0; i < cand->sources.n; i++)
        vec_push(l->names, &f->names, (file_name){.source = cand->sources.p[i], .path = cand->path});
}

// --- What is there already ---

static struct stat stat_of(const file_sig *sig) {
    return (struct stat){.st_dev = sig->dev,
                         .st_ino = sig->ino,
                         .st_size = sig->size,
                         .st_mtim = sig->mtime,
                         .st_ctim = sig->ctime,
                         .st_mode = S_IFREG | 0444,
                         .st_nlink = 1};
}

// What the former version knows of the candidate, when that is still so.
static const corpus_track *known(const loader *l, const candidate *cand) {
    if (!cand->sig.ino) return NULL;
    const corpus_track *t = corpus_track_of(l->old, cand->path);
    // What has several names may be changed through another one, what was read shortly after a change may
    // have been changed again, and of what could not be read the reason may have gone.
    if (!t || t->linked || t->several || t->fresh || t->refused || (!t->file && !t->notes.n) ||
        t->source != cand->sources.p[0] || !sig_eq(&t->sig, &cand->sig))
        return NULL;
    struct stat st = stat_of(&cand->sig);
    if (!l->judged && l->space->refuse && l->space->refuse(l->space->ctx, cand->path, &st)) return NULL;
    return t;
}

static bool stop_asked(loader *l) {
    return stop_after(&l->stop, STOP_EACH / 64);
}

static void recognize(loader *l) {
    for (vec_each(candidate, cand, &l->candidates)) {
        if (stop_asked(l)) return;
        cand->known = known(l, cand);
    }
}

// --- Beginning ---

enum : size_t {
    POOL_BYTES = (size_t)64 << 20,
    // Worth a thread: so many bytes, or so many files, which are hardly smaller.
    THREAD_BYTES = (size_t)1 << 20,
    THREAD_FILES = 64,
    SAMPLED = 8, // files whose size is asked for, when there are few
    // Each of them may hold a large file several times over.
    LARGE_THREADS = 4,
};

// 0: not known.
static size_t size_by_name(const loader *l, const candidate *cand) {
    struct stat st;
    if (cand->sig.ino) return fetch_size(&l->rules, &cand->sig);
    // A link is left out: it is judged before anything is done about it.
    if (file_stat_at(l->space->root, cand->path, FILE_NO_LINKS, &st, NULL) != DEP_OK) return 0;
    file_sig sig = sig_of(&st);
    return fetch_size(&l->rules, &sig);
}

size_t load_threads(const loader *l) {
    size_t n = 0, bytes = 0;
    for (vec_each(const candidate, cand, &l->candidates)) n += !cand->known;
    size_t by_number = n / THREAD_FILES, step = n / SAMPLED + 1, at = 0;
    if (by_number >= LARGE_THREADS || n < 2) return by_number;
    for (vec_each(const candidate, cand, &l->candidates)) {
        if (!cand->known && at++ % step == 0) bytes += step * size_by_name(l, cand);
    }
    size_t by_size = bytes / THREAD_BYTES < LARGE_THREADS ? bytes / THREAD_BYTES : LARGE_THREADS;
    return by_size > by_number ? by_size : by_number;
}

static void end(void *p) {
    loader *l = p;
    for (size_t i = 0; i < crew_size(l->crew); i++) {
        fetch_end(&l->fetchers[i]);
        arena_free(l->fetchers[i].turn);
        slabs_drop(&l->fetchers[i].slabs);
        pool_free(l->fetchers[i].pool);
    }
    pthread_mutex_destroy(&l->judging);
}

dep_status loader_begin(loader *l, crew *crew, dep_err *err) {
    size_t max_file = l->space->max_file ? l->space->max_file : SEARCH_FILE_MAX;
    l->rules = (fetch_rules){.space = l->space,
                             .excludes = l->excludes,
                             .max_file = max_file < CORPUS_FILE_CEILING ? max_file : CORPUS_FILE_CEILING,
                             .now_ms = sys_clock_real()->now_ms(sys_clock_real()->ctx),
                             .bare = l->taker,
                             .judging = &l->judging};
    if (l->old) recognize(l);
    l->crew = crew ? crew : crew_new(l->scratch, NULL, NULL, load_threads(l), &l->stop);
    size_t n = crew_size(l->crew);
    l->fetchers = NEW_N(l->scratch, fetcher, n);
    pthread_mutex_init(&l->judging, NULL);
    arena_defer(l->scratch, end, l);
    bool whole = true;
    for (size_t i = 0; i < n; i++) {
        fetcher *x = &l->fetchers[i];
        pool *pool = pool_new(POOL_BYTES / n);
        arena_source source = pool_source(pool);
        *x = (fetcher){.rules = &l->rules,
                       .stop = crew_stop(l->crew, i),
                       .keep = crew_arena(l->crew, i),
                       .pool = pool,
                       .turn = pool ? arena_new_from(&source, false) : NULL,
                       .dir_fd = -1};
        whole = whole && x->turn;
    }
    return whole ? DEP_OK : err_set(err, DEP_ERR_NOMEM, "out of memory");
}

// --- One candidate ---

static size_t budget_of(const loader *l, bool whole) {
    return whole || l->left < l->share_left ? l->left : l->share_left;
}

static void spend(loader *l, size_t n) {
    l->cost += n;
    l->left -= n < l->left ? n : l->left;
    l->share_left -= n < l->share_left ? n : l->share_left;
}

dep_status loader_show(loader *l, fetcher *x, size_t from, size_t to, dep_err *err) {
    if (!l->taker) return DEP_OK;
    dep_status status = l->taker->take(l->taker->ctx, (size_t)(x - l->fetchers), from, to, err);
    for (size_t i = from; i < to; i++) {
        l->fetched[i].file.in = NULL;
        l->fetched[i].file.folded.p = NULL;
    }
    slabs_empty(&x->slabs);
    return status;
}

// Here and now, what has not been read ahead.
static dep_status fetch_caught_turn(loader *l, size_t i, int fd, dep_err *err) {
    fetcher *x = l->fetchers;
    ARENA_CATCH(x->turn, err);
    TRY(fetch_text(x, &l->candidates.p[i], fd, &l->fetched[i], err));
    return l->fetched[i].state == FETCH_TEXT ? loader_show(l, x, i, i + 1, err) : DEP_OK;
}

static dep_status fetch_now(loader *l, size_t i, int fd, dep_err *err) {
    ARENA_CATCH(l->fetchers->keep, err);
    return fetch_caught_turn(l, i, fd, err);
}

static dep_status open_now(loader *l, size_t i, int *fd, dep_err *err) {
    ARENA_CATCH(l->fetchers->keep, err);
    *fd = fetch_open(l->fetchers, 0, true, &l->candidates.p[i], &l->fetched[i]);
    return DEP_OK;
}

static void add_file(loader *l, size_t i, slot *s, const corpus_file *file, size_t *cost) {
    loaded f = {.file = file, .notes = &l->tracks[i].notes};
    add_names(l, &f, &l->candidates.p[i]);
    vec_push(l->scratch, &l->files, f);
    s->file = l->files.n;
    l->tracks[i].file = (uint32_t)l->files.n;
    // What folding made longer.
    if (file->folded.n > *cost) *cost = file->folded.n;
}

static void take_over(loader *l, size_t i, slot *s, size_t cost) {
    const candidate *cand = &l->candidates.p[i];
    const corpus_track *t = cand->known;
    note_again(l, cand, &l->tracks[i], &t->notes);
    if (t->file) add_file(l, i, s, &l->old->files[t->file - 1], &cost);
    spend(l, cost);
}

static void say(loader *l, size_t i) {
    const candidate *cand = &l->candidates.p[i];
    for (const remark *r = l->fetched[i].said; r; r = r->next) {
        if (r->of_text)
            note(l, cand, &l->tracks[i], r->reason, r->loses);
        else
            cut(l, cand, r->reason, r->loses);
    }
}

// What was fetched, as a file of the corpus.
static void take_in(loader *l, size_t i, slot *s, size_t cost) {
    const fetched *f = &l->fetched[i];
    say(l, i);
    if (f->unread) l->tracks[i].sig = (file_sig){0};
    if (f->state == FETCH_TEXT) add_file(l, i, s, &f->file, &cost);
    spend(l, cost);
}

static dep_status load_opened(loader *l, size_t i, int fd, bool whole, bool *fits, dep_err *err) {
    const candidate *cand = &l->candidates.p[i];
    const file_sig *sig = cand->known ? &cand->sig : &l->fetched[i].sig;
    corpus_track *track = &l->tracks[i];
    track->sig = *sig;
    size_t cost = fetch_size(&l->rules, sig);
    slot *s = find_slot(l, sig->dev, sig->ino);
    if (s->file) {
        add_names(l, &l->files.p[s->file - 1], cand);
        note_again(l, cand, track, l->files.p[s->file - 1].notes);
        track->file = (uint32_t)s->file;
        return DEP_OK;
    }
    *fits = cost <= budget_of(l, whole);
    if (!*fits) {
        track->sig = (file_sig){0};
        return DEP_OK;
    }
    s->dev = sig->dev;
    s->ino = sig->ino;
    if (cand->known) {
        take_over(l, i, s, cost);
        return DEP_OK;
    }
    if (fd >= 0) TRY(fetch_now(l, i, fd, err));
    if (l->fetched[i].state != FETCH_NOT_YET) take_in(l, i, s, cost);
    return DEP_OK;
}

dep_status loader_load(loader *l, size_t i, bool whole, bool *fits, dep_err *err) {
    const candidate *cand = &l->candidates.p[i];
    fetched *f = &l->fetched[i];
    corpus_track *track = &l->tracks[i];
    int fd = -1;
    *fits = true;
    if (!cand->known && f->state == FETCH_NOT_YET) TRY(open_now(l, i, &fd, err));
    *track = (corpus_track){.path = cand->path,
                            .source = cand->sources.p[0],
                            .linked = f->linked,
                            .several = f->several,
                            .fresh = f->fresh,
                            .refused = f->refused};
    dep_status status = DEP_OK;
    if (cand->known || f->sig.ino)
        status = load_opened(l, i, fd, whole, fits, err);
    else
        say(l, i);
    fetch_close(l->fetchers, 0);
    return status;
}

// --- All ---

// Each source first gets an equal share of the budget, so that a large one does not starve those after it;
// what the shares leave goes to the files that did not fit, in order. What was read before it was stopped is
// taken in even then, unless that is so much that it takes its time.
static dep_status load_shares(loader *l, size_t share, dep_err *err) {
    enum { STILL = 10000 };
    uint32_t source = SEARCH_NO_SOURCE;
    for (size_t i = 0, still = 0; i < l->candidates.n && still < STILL; i++) {
        candidate *cand = &l->candidates.p[i];
        bool fits, here = l->fetched[i].state != FETCH_NOT_YET;
        bool stopped = here ? stop_after(&l->stop, STOP_ITEM) : stop_asked(l);
        still += stopped;
        if (stopped && !here) continue;
        if (cand->sources.p[0] != source) {
            source = cand->sources.p[0];
            l->share_left = share;
        }
        TRY(loader_load(l, i, false, &fits, err));
        cand->later = !fits;
    }
    return DEP_OK;
}

dep_status loader_load_all(loader *l, dep_err *err) {
    size_t max_bytes = l->space->max_bytes ? l->space->max_bytes : SEARCH_BYTES_MAX;
    l->left = max_bytes;
    if (!l->candidates.n) return DEP_OK;
    TRY(load_ahead(l, err));
    if (crew_stopped(l->crew)) l->stop.said = true;
    TRY(load_shares(l, max_bytes / l->space->n_sources, err));
    str over = str_fmt(l->scratch, "not read: budget of " STR_FMT, STR_ARG(size_text(l->scratch, max_bytes)));
    for (size_t i = 0; i < l->candidates.n && !stop_asked(l); i++) {
        bool fits;
        if (!l->candidates.p[i].later) continue;
        TRY(loader_load(l, i, true, &fits, err));
        if (fits) continue;
        cut(l, &l->candidates.p[i], over, true);
        l->left_out++;
    }
    return DEP_OK;
}

// cache: corpora that are kept between searches, and kept right. Before each search the changes that the
// kernel told are taken in: a changed file is read anew, anything more is walked anew, taking over what looks
// the same. Where the kernel does not tell, each search looks at every file (one stat each). Any number of
// threads search at once; they wait for one another only while a version is brought up to date. Knows nothing
// of queries.
//
// What is not told, and how it is seen: changes through another hard link, or behind symbolic links, by
// looking at such files at each search; writes through a mapping, and through a hard link made after a file
// was read, by looking at all files at the latest every CHECK_MS. What must not be read (refuse) is judged
// anew whenever the caller's epoch changes, also for what is in memory already.
#include "search/scan_int.h"
#include "search/watch_int.h"
#include <deputy/file.h>
#include <deputy/sys.h>
#include <deputy/thread.h>
#include <pthread.h>
#include <stdlib.h>

enum {
    CHECK_MS = 10000, // every file is looked at when that was longer ago
    WAIT_MS = 4, // between two questions whether to stop while another search brings a version up to date
    // Files looked at before a corpus is watched: a process that searches a few pages a few times is done
    // sooner without, because the kernel takes its time to end a watch.
    WATCH_WORTH = 4000,
    JUDGE_TRIES = 4, // loads during which the epoch changed, after each of which it is done again
};

typedef struct entry entry;
struct entry {
    entry *next;
    char *key;
    size_t n_key;
    // Under the cache's lock:
    watch_owner told;
    size_t users; // searches that are getting their version
    uint64_t last_use;
    size_t size;
    // Held while the version is looked at and replaced:
    pthread_mutex_t busy;
    corpus_data *data; // NULL: none yet
    uint64_t epoch;
    int64_t checked_ms; // when every file was looked at
    const char *slow;   // why every file is looked at each time; NULL: changes are told, or `young`
    size_t looked;      // files that its walks have looked at
    bool young;         // not watched yet, because that was not worth it
};

struct search_cache {
    pthread_mutex_t lock;
    entry *entries;
    watcher *watch;
    pool *pool;
    hands *hands;
    const scan_ops *ops;
    uint64_t uses;
    size_t max_bytes, max_entries;
    size_t watch_worth; // see WATCH_WORTH
};

static int64_t mono_ms(void) {
    const sys_clock *c = sys_clock_real();
    return c->mono_ms(c->ctx);
}

// --- Entries ---

static void entry_free(search_cache *c, entry *e) {
    watch_forget(c->watch, &e->told);
    corpus_drop(e->data);
    pthread_mutex_destroy(&e->busy);
    free(e->key);
    free(e);
}

static void cache_free(void *p) {
    search_cache *c = p;
    for (entry *e = c->entries, *next; e; e = next) {
        next = e->next;
        entry_free(c, e);
    }
    watch_free(c->watch);
    hands_free(c->hands);
    pool_free(c->pool);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

search_cache *search_cache_new_with(arena *a, size_t max_bytes, size_t max_entries) {
    search_cache *c = calloc(1, sizeof *c);
    watcher *w = c ? watch_new() : NULL;
    pool *p = w ? pool_new(SEARCH_POOL_BYTES) : NULL;
    hands *h = p ? hands_new(thread_processors() - 1) : NULL;
    if (!h) {
        watch_free(w);
        pool_free(p);
        free(c);
        return NULL;
    }
    *c = (search_cache){.watch = w,
                        .pool = p,
                        .hands = h,
                        .ops = scan_ops_best(),
                        .max_bytes = max_bytes,
                        .max_entries = max_entries};
    pthread_mutex_init(&c->lock, NULL);
    arena_defer(a, cache_free, c);
    return c;
}

search_cache *search_cache_new(arena *a) {
    search_cache *c = search_cache_new_with(a, SEARCH_CACHE_BYTES, SEARCH_CACHE_CORPORA);
    if (c) c->watch_worth = WATCH_WORTH;
    return c;
}

void search_cache_lend(search_cache *c, search_corpus *to) {
    to->pool = c->pool;
    to->hands = c->hands;
    to->ops = c->ops;
}

void search_cache_blind(search_cache *c) {
    watch_blind(c->watch);
}

size_t search_cache_size(search_cache *c, size_t *corpora) {
    size_t bytes = 0, n = 0;
    pthread_mutex_lock(&c->lock);
    for (entry *e = c->entries; e; e = e->next) bytes += e->size, n++;
    pthread_mutex_unlock(&c->lock);
    *corpora = n;
    return bytes;
}

static void add_text(buf *b, str s) {
    buf_addf(b, "%zu:", s.n);
    buf_add(b, s);
}

// Everything that decides what a corpus holds.
static dep_status make_key(arena *a, const search_space *s, const search_limits *limits, str *ret,
                           dep_err *err) {
    ARENA_CATCH(a, err);
    struct stat st;
    TRY(file_stat_at(s->root, S("."), FILE_NO_LINKS, &st, err));
    buf b = buf_new(a, 0);
    buf_addf(&b, "%ju,%ju,%zu,%zu,%zu,%zu,%zu,%zu,%zu,%zu;", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino,
             s->max_bytes, s->max_file, limits->files, limits->entries, limits->depth, limits->links,
             limits->lines, s->n_sources);
    for (size_t i = 0; i < s->n_sources; i++) {
        const search_source *o = &s->sources[i];
        add_text(&b, o->name);
        add_text(&b, o->encoding);
        buf_addf(&b, "%zu,%zu;", o->n_include, o->n_exclude);
        for (size_t k = 0; k < o->n_include; k++) add_text(&b, o->include[k]);
        for (size_t k = 0; k < o->n_exclude; k++) add_text(&b, o->exclude[k]);
    }
    *ret = buf_str(&b);
    return DEP_OK;
}

static entry *entry_new(search_cache *c, str key) {
    entry *e = calloc(1, sizeof *e);
    char *copy = e ? malloc(key.n) : NULL;
    if (!copy) {
        free(e);
        return NULL;
    }
    memcpy(copy, key.p, key.n);
    *e = (entry){.next = c->entries, .key = copy, .n_key = key.n};
    pthread_mutex_init(&e->busy, NULL);
    c->entries = e;
    return e;
}

// The entry of a key, with this search among its users.
static entry *entry_of(search_cache *c, str key) {
    pthread_mutex_lock(&c->lock);
    entry *e = c->entries;
    while (e && !str_eq(str_n(e->key, e->n_key), key)) e = e->next;
    if (!e) e = entry_new(c, key);
    if (e) {
        e->users++;
        e->last_use = ++c->uses;
    }
    pthread_mutex_unlock(&c->lock);
    return e;
}

// Gives the oldest up while too much is kept. Searches that still read it keep its memory.
static void evict(search_cache *c) {
    for (;;) {
        size_t bytes = 0, n = 0;
        entry **oldest = NULL;
        for (entry **at = &c->entries; *at; at = &(*at)->next) {
            bytes += (*at)->size;
            n++;
            bool newest = (*at)->last_use == c->uses;
            if (!(*at)->users && !newest && (!oldest || (*at)->last_use < (*oldest)->last_use)) oldest = at;
        }
        if ((bytes <= c->max_bytes && n <= c->max_entries) || !oldest) return;
        entry *e = *oldest;
        *oldest = e->next;
        entry_free(c, e);
    }
}

static void entry_leave(search_cache *c, entry *e) {
    pthread_mutex_lock(&c->lock);
    e->users--;
    evict(c);
    pthread_mutex_unlock(&c->lock);
}

// --- Walking ---

typedef struct {
    search_cache *c;
    entry *e;
    const char *slow;
} watching;

static void enter(void *ctx, str path, int fd, bool linked, const struct stat *st) {
    (void)linked, (void)st;
    watching *w = ctx;
    if (w->slow || w->e->young) return;
    pthread_mutex_lock(&w->c->lock);
    w->slow = watch_dir(w->c->watch, &w->e->told, path, fd);
    pthread_mutex_unlock(&w->c->lock);
}

static dep_status walk_once(search_cache *c, entry *e, const search_space *space, const search_limits *limits,
                            bool judged, corpus_data **ret, dep_err *err) {
    watching w = {.c = c, .e = e};
    walk_watch watch = {.stat = true, .enter = enter, .ctx = &w};
    // Much of the memory belongs to texts that are no more: all of it anew.
    const corpus_data *old = e->data;
    if (old && old->dead > SEARCH_DEAD_MIN && old->dead > old->cost / 4) old = NULL;
    e->young = e->looked < c->watch_worth;
    pthread_mutex_lock(&c->lock);
    watch_clear(&e->told);
    watch_begin(c->watch, &e->told);
    pthread_mutex_unlock(&c->lock);
    dep_status status = corpus_load(space, limits, old, judged, &watch, ret, err);
    bool whole = status == DEP_OK && !(*ret)->cancelled;
    pthread_mutex_lock(&c->lock);
    if (status == DEP_OK) e->looked += (*ret)->n_tracks + 1;
    if (w.slow || e->young || !whole)
        watch_forget(c->watch, &e->told);
    else
        watch_end(c->watch, &e->told);
    pthread_mutex_unlock(&c->lock);
    e->slow = w.slow;
    return status;
}

static void keep(search_cache *c, entry *e, corpus_data *d) {
    corpus_drop(e->data);
    e->data = d;
    size_t size = d ? corpus_size(d) : 0;
    pthread_mutex_lock(&c->lock);
    e->size = size;
    pthread_mutex_unlock(&c->lock);
}

// Walks and reads what is new. What was refused at any time while that went on is refused: the epoch before
// and after must be the same, or all is judged again. *partial: cancelled, so it is this search's alone.
static dep_status walk_all(search_cache *c, entry *e, const search_space *space, const search_limits *limits,
                           corpus_data **partial, dep_err *err) {
    for (int tries = 0; tries < JUDGE_TRIES; tries++) {
        int64_t began = mono_ms();
        uint64_t epoch = space->epoch ? space->epoch(space->ctx) : 0;
        bool judged = space->epoch && e->data && epoch == e->epoch;
        corpus_data *d = NULL;
        dep_status status = walk_once(c, e, space, limits, judged, &d, err);
        if (status != DEP_OK) {
            keep(c, e, NULL);
            return status;
        }
        if (d->cancelled) {
            keep(c, e, NULL);
            *partial = d;
            return DEP_OK;
        }
        keep(c, e, d);
        e->epoch = epoch;
        e->checked_ms = began;
        if (!space->epoch || space->epoch(space->ctx) == epoch) return DEP_OK;
    }
    keep(c, e, NULL);
    return err_set(err, DEP_ERR_BUSY, "what may be searched changes faster than it can be read; try again");
}

// --- Is it still so? ---

// Files that others may change without a word of it, directories behind links, and links to nothing.
static bool unwatched_same(const search_space *space, const corpus_data *d) {
    struct stat st;
    stop_sign asks = {.ask = space->cancelled, .ctx = space->ctx};
    for (size_t i = 0; d->n_unwatched && i < d->n_tracks; i++) {
        const corpus_track *t = &d->tracks[i];
        if (stop_after(&asks, STOP_ITEM)) return false; // a walk is stopped at once
        if (!t->linked && !t->several) continue;
        if (file_stat_at(space->root, t->path, t->linked ? FILE_LINKS_INSIDE : FILE_NO_LINKS, &st, NULL) !=
            DEP_OK)
            return false; // when it was walked, there was something
        file_sig now = sig_of(&st);
        if (!sig_eq(&now, &t->sig) || t->fresh) return false;
    }
    for (size_t i = 0; i < d->cuts.n; i++) {
        const cut_item *cut = &d->cuts.p[i];
        if (cut->link && file_stat_at(space->root, cut->path, FILE_LINKS_INSIDE, &st, NULL) == DEP_OK &&
            (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
            return false;
    }
    for (size_t i = 0; i < d->n_dirs; i++) {
        const linked_dir *l = &d->dirs[i];
        if (file_stat_at(space->root, l->path, FILE_LINKS_INSIDE, &st, NULL) != DEP_OK ||
            st.st_dev != l->dev || st.st_ino != l->ino)
            return false;
    }
    return true;
}

// Is all that is kept still free to be read, by today's answers? What was refused may be free now: that takes
// a walk.
static bool still_allowed(const search_space *space, const corpus_data *d) {
    if (!space->refuse) return true;
    stop_sign asks = {.ask = space->cancelled, .ctx = space->ctx};
    for (size_t i = 0; i < d->cuts.n; i++)
        if (d->cuts.p[i].wide && !d->cuts.p[i].loses) return false;
    for (size_t i = 0; i < d->n_tracks; i++) {
        const corpus_track *t = &d->tracks[i];
        if (t->refused || t->linked || stop_after(&asks, STOP_ITEM * 4)) return false;
        if (!t->sig.ino) continue;
        struct stat st = {.st_dev = t->sig.dev,
                          .st_ino = t->sig.ino,
                          .st_size = t->sig.size,
                          .st_mtim = t->sig.mtime,
                          .st_ctim = t->sig.ctime,
                          .st_mode = S_IFREG | 0444,
                          .st_nlink = 1};
        if (space->refuse(space->ctx, t->path, &st)) return false;
    }
    return true;
}

// A name that the corpus does not know. It matters when something is there, or was said of it.
static bool stranger_matters(const search_space *space, const corpus_data *d, str path) {
    struct stat st;
    if (file_stat_at(space->root, path, FILE_NO_LINKS, &st, NULL) != DEP_ERR_NOT_FOUND) return true;
    for (size_t i = 0; i < d->cuts.n; i++)
        if (str_starts(d->cuts.p[i].path, path)) return true;
    return false;
}

// Reads the files anew that were told. False: it takes a walk.
static dep_status take_told(search_cache *c, entry *e, const search_space *space, const search_limits *limits,
                            const watch_owner *told, bool *done, dep_err *err) {
    *done = false;
    for (size_t i = 0; i < told->n_paths; i++) {
        str path = str_z(told->paths[i]);
        const corpus_track *t = corpus_track_of(e->data, path);
        if (!t) {
            if (stranger_matters(space, e->data, path)) return DEP_OK;
            continue;
        }
        corpus_data *d = NULL;
        TRY(corpus_reload(space, limits, e->data, t, &d, err));
        if (!d) return DEP_OK;
        keep(c, e, d);
        if (d->dead > SEARCH_DEAD_MIN && d->dead > d->cost / 4) return DEP_OK;
    }
    // Read files were judged by the epoch that held before: it must hold still.
    *done = !told->n_paths || !space->epoch || space->epoch(space->ctx) == e->epoch;
    return DEP_OK;
}

static dep_status refresh(search_cache *c, entry *e, const search_space *space, const search_limits *limits,
                          corpus_data **partial, dep_err *err) {
    watch_owner told;
    pthread_mutex_lock(&c->lock);
    watch_drain(c->watch);
    told = e->told;
    e->told.n_paths = 0;
    e->told.all = false;
    pthread_mutex_unlock(&c->lock);
    bool done = false;
    dep_status status = DEP_OK;
    if (e->data && !e->slow && !e->young && !told.all && mono_ms() - e->checked_ms < CHECK_MS &&
        (space->epoch || !space->refuse) && unwatched_same(space, e->data)) {
        uint64_t epoch = space->epoch ? space->epoch(space->ctx) : 0;
        bool same = epoch == e->epoch || still_allowed(space, e->data);
        // The answers were given between two times of asking.
        if (same && (!space->epoch || space->epoch(space->ctx) == epoch)) {
            e->epoch = epoch;
            status = take_told(c, e, space, limits, &told, &done, err);
        }
    }
    watch_clear(&told);
    if (status != DEP_OK || done) return status;
    return walk_all(c, e, space, limits, partial, err);
}

// --- The way in ---

// False: cancelled while another search had it.
static bool wait_for(entry *e, const search_space *space) {
    for (;;) {
        struct timespec at = thread_in_ms(WAIT_MS);
        if (pthread_mutex_clocklock(&e->busy, CLOCK_MONOTONIC, &at) == 0) return true;
        if (space->cancelled && space->cancelled(space->ctx)) return false;
    }
}

// An empty version, for a search that was cancelled before it had one.
static dep_status nothing(const search_space *space, corpus_data **ret, dep_err *err) {
    search_space none = *space;
    search_limits limits = search_limits_default;
    none.n_sources = 0;
    TRY(corpus_load(&none, &limits, NULL, false, NULL, ret, err));
    (*ret)->cancelled = true;
    return DEP_OK;
}

static dep_status open_entry(search_cache *c, entry *e, const search_space *space,
                             const search_limits *limits, corpus_data **ret, const char **notice,
                             dep_err *err) {
    if (!wait_for(e, space)) return nothing(space, ret, err);
    corpus_data *partial = NULL;
    dep_status status = refresh(c, e, space, limits, &partial, err);
    if (status == DEP_OK) {
        *ret = partial ? partial : corpus_take(e->data);
        *notice = e->slow;
    }
    pthread_mutex_unlock(&e->busy);
    return status;
}

dep_status cache_open(const search_space *space, const search_limits *limits, corpus_data **ret,
                      const char **notice, dep_err *err) {
    search_cache *c = space->cache;
    arena *a = arena_new();
    str key;
    dep_status status = make_key(a, space, limits, &key, err);
    entry *e = status == DEP_OK ? entry_of(c, key) : NULL;
    arena_free(a);
    if (status != DEP_OK) return status;
    if (!e) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    status = open_entry(c, e, space, limits, ret, notice, err);
    entry_leave(c, e);
    return status;
}

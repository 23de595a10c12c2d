// scan: the lines that hold a term, all terms in one pass over the resident folded text. Files that lie one
// after the other in memory are one text to the kernel. For each term the kernel looks for the three bytes of
// it that are rarest in the corpus; a place that it finds is compared, put into its line and counted there.
// Which lines match and what is counted is defined by the scanner of the tests; this one gives the same.
#include "search/scan_int.h"
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum {
    STEP_BYTES = 256 << 10, // between two questions whether to stop
    RUN_FILES = 64,         // likewise
    GAP_MAX = 128,          // bytes between two files that are run over
    PART_BYTES = 4 << 20,   // less is not worth a thread
    PARTS_MAX = 4,
    JOIN_MS = 4, // between two questions whether to stop while others still scan
};

typedef struct {
    const term *t;
    uint16_t number;
    uint32_t window;   // where in the stem the window begins
    const char *ahead; // what begins before this has been counted
} needle;

typedef struct {
    void *lines, *hits;
} held_results;

typedef struct crew crew;

typedef struct {
    held_results *held;
    scan_kernel *kernel;
    const selected_file *files;
    const search_corpus *c;
    scan_result *ret;
    scan_tables tables;
    size_t n_terms;
    needle *needles; // by bucket
    uint16_t first[SCAN_BUCKETS + 1];
    // The line at hand.
    size_t file;
    const corpus_file *f;
    uint32_t line;
    size_t n_present;
    uint16_t *present;
    bool *seen;
    term_hit *hits; // by term
    bool exact;
    size_t since_asked;
    // Of several scanners, each of a part of the files: only the first asks whether to stop, the others hear
    // it from there.
    size_t from, to;
    atomic_bool *stop;
    bool asks;
    scan_result own; // of the others
    crew *crew;
    pthread_t thread;
} scanner;

// --- Windows ---

// The rarer, the less: by how often its pairs of bytes stand in the corpus.
static int rarity(const search_corpus *c, const unsigned char *w) {
    if (!c->pairs) return 0;
    return c->pairs->pair[w[0] << 8 | w[1]] + c->pairs->pair[w[1] << 8 | w[2]] - c->pairs->one[w[1]];
}

static uint32_t rarest_window(const search_corpus *c, str stem) {
    uint32_t best = 0;
    int least = INT32_MAX;
    for (uint32_t i = 0; i + SCAN_WINDOW <= stem.n; i++) {
        int r = rarity(c, (const unsigned char *)stem.p + i);
        // Without figures the end of a word says more than its start.
        if (r < least || (!c->pairs && r == least)) {
            least = r;
            best = i;
        }
    }
    return best;
}

static int by_window(const void *a, const void *b) {
    const needle *x = a, *y = b;
    str v = str_sub(x->t->stem, x->window, x->window + SCAN_WINDOW),
        w = str_sub(y->t->stem, y->window, y->window + SCAN_WINDOW);
    int order = str_cmp(v, w);
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static void admit(scan_tables *t, unsigned bucket, int place, unsigned byte) {
    t->admits[place][byte] |= (uint8_t)(1u << bucket);
    t->low[place][byte & 15] |= (uint8_t)(1u << bucket);
    t->high[place][byte >> 4] |= (uint8_t)(1u << bucket);
}

// Terms with like windows share a bucket.
static void fill_tables(scanner *s, const term_list *terms) {
    for (size_t i = 0; i < terms->n; i++)
        s->needles[i] = (needle){
            .t = &terms->p[i], .number = (uint16_t)i, .window = rarest_window(s->c, terms->p[i].stem)};
    if (terms->n > SCAN_BUCKETS) qsort(s->needles, terms->n, sizeof *s->needles, by_window);
    for (unsigned b = 0; b < SCAN_BUCKETS; b++) {
        s->first[b] = (uint16_t)(terms->n * b / SCAN_BUCKETS);
        s->first[b + 1] = (uint16_t)(terms->n * (b + 1) / SCAN_BUCKETS);
        for (size_t i = s->first[b]; i < s->first[b + 1]; i++) {
            str stem = s->needles[i].t->stem;
            for (int k = 0; k < SCAN_WINDOW; k++) {
                size_t at = s->needles[i].window + (size_t)k;
                if (at < stem.n) {
                    admit(&s->tables, b, k, (unsigned char)stem.p[at]);
                } else {
                    for (unsigned byte = 0; byte < 256; byte++) admit(&s->tables, b, k, byte);
                }
            }
        }
    }
}

// --- Lines ---

// Results grow to many megabytes: by realloc, which moves pages instead of copying, and hung on the arena.
static void free_results(void *p) {
    held_results *h = p;
    free(h->lines);
    free(h->hits);
}

static void *grow(void *p, size_t *cap, size_t size, bool *failed) {
    size_t more = *cap ? *cap * 2 : 1024;
    void *now = realloc(p, more * size);
    if (!now) {
        *failed = true;
        return p;
    }
    *cap = more;
    return now;
}

// Room for one line more and its hits.
static bool make_room(scanner *s) {
    scan_result *r = s->ret;
    bool failed = false;
    if (r->lines.n == r->lines.cap)
        s->held->lines = r->lines.p = grow(r->lines.p, &r->lines.cap, sizeof *r->lines.p, &failed);
    if (r->hits.cap - r->hits.n < s->n_present)
        s->held->hits = r->hits.p = grow(r->hits.p, &r->hits.cap, sizeof *r->hits.p, &failed);
    return !failed;
}

// The line at hand is done.
static void end_line(scanner *s) {
    if (!s->n_present) return;
    scan_result *ret = s->ret;
    // Without memory for more, they are counted like those over the limit.
    bool keep = ret->lines.n < s->c->limits.lines && make_room(s);
    if (keep) {
        ret->lines.p[ret->lines.n++] = (line_hit){.file = (uint32_t)s->file,
                                                  .line = s->line,
                                                  .first = (uint32_t)ret->hits.n,
                                                  .n = (uint16_t)s->n_present,
                                                  .exact = s->exact};
    } else {
        ret->unranked++;
    }
    if (s->exact)
        ret->matched++;
    else
        ret->expanded++;
    // By number of the term.
    for (size_t i = 1; i < s->n_present; i++) {
        uint16_t t = s->present[i];
        size_t k = i;
        for (; k && s->present[k - 1] > t; k--) s->present[k] = s->present[k - 1];
        s->present[k] = t;
    }
    for (size_t i = 0; i < s->n_present; i++) {
        if (keep) ret->hits.p[ret->hits.n++] = s->hits[s->present[i]];
        s->seen[s->present[i]] = false;
    }
    s->n_present = 0;
    s->exact = false;
}

// Moves on to the line that holds the place `at` of the file.
static void seek_line(scanner *s, uint32_t at) {
    const uint32_t *starts = s->f->starts;
    if (at < starts[s->line + 1]) return;
    end_line(s);
    // The next ones first, in longer and longer steps, then between the last two.
    uint32_t low = s->line + 1, step = 1, n = s->f->n_lines;
    while (low + step < n && starts[low + step] <= at) {
        low += step;
        step *= 2;
    }
    uint32_t high = low + step < n ? low + step : n;
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (starts[mid] <= at)
            low = mid;
        else
            high = mid;
    }
    s->line = low;
}

static void enter_file(scanner *s, size_t file) {
    end_line(s);
    s->file = file;
    s->f = s->files[file].file;
    s->line = 0;
}

// A window of the needle stands at p.
static void look_at(scanner *s, needle *d, const char *p) {
    const term *t = d->t;
    str text = s->f->folded;
    if ((size_t)(p - text.p) < d->window) return;
    p -= d->window;
    size_t at = (size_t)(p - text.p);
    if (text.n - at < t->stem.n || p < d->ahead || memcmp(p, t->stem.p, t->stem.n) != 0) return;
    bool exact =
        t->text.n == t->stem.n || (text.n - at >= t->text.n &&
                                   memcmp(p + t->stem.n, t->text.p + t->stem.n, t->text.n - t->stem.n) == 0);
    seek_line(s, (uint32_t)at);
    term_hit hit = {.term = d->number, .at = (uint32_t)at - s->f->starts[s->line]};
    term_hit *kept = &s->hits[d->number];
    if (s->seen[d->number]) {
        if (count_occurrence(t, text, at, exact, kept)) s->exact = s->exact || (exact && !t->near);
    } else if (count_occurrence(t, text, at, exact, &hit)) {
        *kept = hit;
        s->seen[d->number] = true;
        s->present[s->n_present++] = d->number;
        s->exact = s->exact || (exact && !t->near);
    }
    // A stem may overlap itself, and the whole term begin within what was only a stem.
    d->ahead = p + (exact ? t->text.n : 1);
}

// --- Runs ---

static void look_at_places(scanner *s, const char *base, const scan_place *places, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *p = base + places[i].at;
        while (p >= s->f->folded.p + s->f->folded.n) {
            // Between two files, or before a later one of this run: the caller has cut the run at its last.
            if (p < s->files[s->file + 1].file->folded.p) break;
            enter_file(s, s->file + 1);
        }
        if (p >= s->f->folded.p + s->f->folded.n) continue;
        for (unsigned found = places[i].buckets; found; found &= found - 1) {
            unsigned b = (unsigned)__builtin_ctz(found);
            for (size_t k = s->first[b]; k < s->first[b + 1]; k++) look_at(s, &s->needles[k], p);
        }
    }
}

static bool stop_asked(scanner *s, size_t bytes) {
    s->since_asked += bytes;
    if (s->since_asked < STEP_BYTES) return false;
    s->since_asked = 0;
    if (s->asks && s->c->ask && s->c->ask(s->c->ctx)) atomic_store(s->stop, true);
    s->ret->cancelled = atomic_load(s->stop);
    return s->ret->cancelled;
}

// Files [from, to) lie one after the other.
static bool scan_run(scanner *s, size_t from, size_t to) {
    const char *base = s->files[from].file->folded.p;
    const corpus_file *last = s->files[to - 1].file;
    size_t end = (size_t)(last->folded.p + last->folded.n - base);
    scan_place places[SCAN_FOUND_MAX];
    for (size_t i = 0; i < s->n_terms; i++) s->needles[i].ahead = NULL;
    enter_file(s, from);
    for (size_t at = 0; at < end;) {
        size_t n = 0, step = end - at < STEP_BYTES ? end : at + STEP_BYTES, was = at;
        at = s->kernel(&s->tables, base, at, step, places, &n);
        look_at_places(s, base, places, n);
        if (stop_asked(s, at - was)) break;
    }
    end_line(s);
    // Many small files are looked at as often as few large ones.
    return !s->ret->cancelled && !stop_asked(s, (to - from) * (STEP_BYTES / RUN_FILES));
}

static size_t run_end(const scanner *s, size_t from, size_t n) {
    size_t to = from + 1;
    const char *first = s->files[from].file->folded.p;
    for (; to < n && to - from < RUN_FILES; to++) {
        const corpus_file *before = s->files[to - 1].file, *f = s->files[to].file;
        const char *end = before->folded.p + before->folded.n;
        // Offsets within a run are 32 bits.
        if (f->in != before->in || f->folded.p < end || f->folded.p - end > GAP_MAX ||
            f->folded.p + f->folded.n - first > INT32_MAX)
            break;
    }
    return to;
}

// No arena in here: this runs on any thread.
static void scan_part(scanner *s) {
    for (size_t from = s->from, to; from < s->to; from = to) {
        to = run_end(s, from, s->to);
        if (!scan_run(s, from, to)) break;
        for (size_t i = from; i < to; i++) s->ret->bytes += s->files[i].file->bytes;
        s->ret->files += to - from;
    }
}

// --- Parts ---

static void append(scanner *s, const scan_result *more) {
    scan_result *r = s->ret;
    size_t limit = s->c->limits.lines, room = limit > r->lines.n ? limit - r->lines.n : 0;
    size_t lines = more->lines.n < room ? more->lines.n : room;
    size_t hits = lines < more->lines.n ? more->lines.p[lines].first : more->hits.n;
    bool failed = false;
    while (!failed && r->lines.cap - r->lines.n < lines)
        s->held->lines = r->lines.p = grow(r->lines.p, &r->lines.cap, sizeof *r->lines.p, &failed);
    while (!failed && r->hits.cap - r->hits.n < hits)
        s->held->hits = r->hits.p = grow(r->hits.p, &r->hits.cap, sizeof *r->hits.p, &failed);
    if (failed) lines = hits = 0;
    for (size_t i = 0; i < lines; i++) {
        r->lines.p[r->lines.n + i] = more->lines.p[i];
        r->lines.p[r->lines.n + i].first += (uint32_t)r->hits.n;
    }
    if (hits) memcpy(r->hits.p + r->hits.n, more->hits.p, hits * sizeof *r->hits.p);
    r->lines.n += lines;
    r->hits.n += hits;
    r->unranked += more->unranked + (more->lines.n - lines);
    r->matched += more->matched;
    r->expanded += more->expanded;
    r->files += more->files;
    r->bytes += more->bytes;
    r->cancelled = r->cancelled || more->cancelled;
}

// Counts the parts that other threads still scan.
struct crew {
    pthread_mutex_t lock;
    pthread_cond_t done;
    size_t running;
};

static void crew_begin(crew *c) {
    pthread_condattr_t mono;
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(&c->done, &mono);
    pthread_condattr_destroy(&mono);
    c->running = 0;
}

static void *scan_aside(void *p) {
    scanner *s = p;
    scan_part(s);
    pthread_mutex_lock(&s->crew->lock);
    if (--s->crew->running == 0) pthread_cond_signal(&s->crew->done);
    pthread_mutex_unlock(&s->crew->lock);
    return NULL;
}

static bool start(scanner *s, crew *c) {
    s->crew = c;
    pthread_mutex_lock(&c->lock);
    bool started = pthread_create(&s->thread, NULL, scan_aside, s) == 0;
    c->running += started;
    pthread_mutex_unlock(&c->lock);
    return started;
}

// Waits for the other parts, and goes on asking.
static void crew_end(crew *c, scanner *const *s, size_t started) {
    pthread_mutex_lock(&c->lock);
    while (c->running) {
        struct timespec at;
        clock_gettime(CLOCK_MONOTONIC, &at);
        at.tv_nsec += JOIN_MS * 1000000L;
        if (at.tv_nsec >= 1000000000L) at.tv_sec++, at.tv_nsec -= 1000000000L;
        if (pthread_cond_timedwait(&c->done, &c->lock, &at) == 0) continue;
        pthread_mutex_unlock(&c->lock);
        if (s[0]->c->ask && s[0]->c->ask(s[0]->c->ctx)) atomic_store(s[0]->stop, true);
        pthread_mutex_lock(&c->lock);
    }
    pthread_mutex_unlock(&c->lock);
    for (size_t i = 1; i < started; i++) pthread_join(s[i]->thread, NULL);
    pthread_cond_destroy(&c->done);
    pthread_mutex_destroy(&c->lock);
}

// How many parts are worth a thread.
static size_t count_parts(const selected_file *files, size_t n, size_t part_bytes) {
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) bytes += files[i].file->folded.n;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = processors > PARTS_MAX ? PARTS_MAX : processors > 1 ? (size_t)processors : 1;
    size_t parts = part_bytes ? bytes / part_bytes : 1;
    return parts < 1 ? 1 : parts > most ? most : parts;
}

// Parts of about the same number of bytes.
static void divide(scanner *const *s, size_t parts, const selected_file *files, size_t n) {
    size_t bytes = 0, so_far = 0, part = 0;
    for (size_t i = 0; i < n; i++) bytes += files[i].file->folded.n;
    s[0]->from = 0;
    for (size_t i = 0; i < n; i++) {
        if (part + 1 < parts && so_far >= bytes / parts * (part + 1)) {
            s[part++]->to = i;
            s[part]->from = i;
        }
        so_far += files[i].file->folded.n;
    }
    for (; part < parts; part++) {
        s[part]->to = n;
        if (part + 1 < parts) s[part + 1]->from = n;
    }
}

static scanner *new_scanner(arena *a, scan_kernel *kernel, const term_list *terms, const selected_file *files,
                            const search_corpus *c, atomic_bool *stop) {
    scanner *s = NEW(a, scanner);
    s->n_terms = terms->n;
    s->needles = NEW_N(a, needle, terms->n);
    s->present = NEW_N(a, uint16_t, terms->n);
    s->seen = NEW_N(a, bool, terms->n);
    s->hits = NEW_N(a, term_hit, terms->n);
    s->held = NEW(a, held_results);
    arena_defer(a, free_results, s->held);
    s->kernel = kernel;
    s->files = files;
    s->c = c;
    s->stop = stop;
    s->ret = &s->own;
    fill_tables(s, terms);
    return s;
}

void scan_lines_with(scan_kernel *kernel, size_t part_bytes, arena *a, const term_list *terms,
                     const selected_file *files, size_t n, const search_corpus *corpus, scan_result *ret) {
    scanner *s[PARTS_MAX];
    atomic_bool *stop = NEW(a, atomic_bool);
    size_t parts = count_parts(files, n, part_bytes);
    s[0] = new_scanner(a, kernel, terms, files, corpus, stop);
    for (size_t i = 1; i < parts; i++) s[i] = new_scanner(a, kernel, terms, files, corpus, stop);
    divide(s, parts, files, n);
    *ret = (scan_result){0};
    s[0]->ret = ret;
    s[0]->asks = true;
    // From here to the end nothing is asked of an arena.
    crew c;
    size_t started = 1;
    crew_begin(&c);
    while (started < parts && start(s[started], &c)) started++;
    scan_part(s[0]);
    crew_end(&c, s, started);
    for (size_t i = 1; i < parts; i++) {
        // One for which no thread could be had.
        s[i]->asks = i >= started;
        if (i >= started) scan_part(s[i]);
        append(s[0], &s[i]->own);
    }
}

void scan_lines(arena *a, const term_list *terms, const selected_file *files, size_t n,
                const search_corpus *c, scan_result *ret) {
    scan_lines_with(scan_kernel_best(), PART_BYTES, a, terms, files, n, c, ret);
}

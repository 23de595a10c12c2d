// scan: the lines that hold a term, all terms in one pass over the resident folded text. Files that lie one
// after the other in memory are one text to the kernel. For each term the kernel looks for the few bytes of
// it that are rarest in the corpus; a place that it finds is compared, put into its line and counted there.
// Which lines match and what is counted is defined by the scanner of the tests; this one gives the same.
#include "search/scanner_int.h"
#include <stdlib.h>

enum {
    // After which places are looked at; earlier when there are many. Each step takes a moment to begin.
    STEP_BYTES = 16 << 10,
    PLACE_WORK = 32, // what a place costs, in bytes that the kernel runs over
    RUN_FILES = 64,  // between two questions whether to stop
    GAP_MAX = 128,   // bytes between two files that are run over
    // Where in a stem its window begins at most: so far before a place the text can be read.
    WINDOW_MAX = SCAN_AROUND,
    THREE = 3, // bytes that are counted as they stand together
};

// --- Windows ---

// How often a pair of bytes stands in the corpus, and those that the widest kernel takes for it.
static size_t often(const search_corpus *c, const unsigned char *w) {
    enum : size_t { SAMPLED = 8 }; // a part of the text was counted
    size_t sum = 0;
    for (unsigned k = 0; k < 16; k++) {
        const unsigned char like[] = {(unsigned char)(w[0] ^ (k & 3) << 6),
                                      (unsigned char)(w[1] ^ (k >> 2) << 6)};
        sum += SAMPLED << c->runs->two[two_bytes(like)] / BYTES_DOUBLING;
    }
    return sum;
}

// The rarest pair of the stem; *times: how often it stands there.
static uint32_t rarest_pair(const search_corpus *c, str stem, size_t *times) {
    uint32_t best = 0;
    *times = SIZE_MAX;
    for (uint32_t i = 0; i + 2 <= stem.n && i <= WINDOW_MAX; i++) {
        size_t n = often(c, (const unsigned char *)stem.p + i);
        if (n < *times) {
            *times = n;
            best = i;
        }
    }
    return best;
}

// Gives each needle its rarest pair for a window. False: they are not so rare that looking for them takes
// less time than looking for three bytes.
static bool take_pairs(scanner *s, const term_list *terms) {
    enum : size_t { FEW = 4096 }; // bytes of the corpus for each place
    if (!s->c->runs) return false;
    size_t left = s->c->runs->bytes / FEW;
    for (size_t i = 0; i < terms->n; i++) {
        size_t times;
        s->needles[i].window = (uint16_t)rarest_pair(s->c, terms->p[i].stem, &times);
        if (times > left) return false;
        left -= times;
    }
    return true;
}

// As often as the rarest three bytes of it stand in the corpus, or less. 0: there are no figures.
static int window_times(const search_corpus *c, const char *w, uint32_t window) {
    int least = c->runs ? UINT8_MAX : 0;
    for (uint32_t i = 0; c->runs && i + THREE <= window; i++) {
        int times = c->runs->three[three_bytes((const unsigned char *)w + i)];
        least = times < least ? times : least;
    }
    return least;
}

static uint32_t rarest_window(const search_corpus *c, str stem, uint32_t window) {
    uint32_t best = 0;
    int least = INT32_MAX;
    for (uint32_t i = 0; i + window <= stem.n && i <= WINDOW_MAX; i++) {
        int times = window_times(c, stem.p + i, window);
        // Without figures the end of a word says more than its start.
        if (times < least || (!c->runs && times == least)) {
            least = times;
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
}

// Terms with like windows share a bucket.
static void fill_tables(scanner *s, const term_list *terms) {
    bool pairs = s->tables.pairs = terms->n <= s->ops->pairs && take_pairs(s, terms);
    for (size_t i = 0; i < terms->n; i++) {
        str stem = terms->p[i].stem;
        needle *d = &s->needles[i];
        uint32_t window = pairs ? d->window : rarest_window(s->c, stem, s->ops->window);
        const term *t = &terms->p[i];
        *d = (needle){.t = t,
                      .number = (uint16_t)i,
                      .window = (uint16_t)window,
                      .stem = (uint32_t)t->stem.n,
                      .text = (uint32_t)t->text.n,
                      .word = t->kind == TERM_WORD,
                      .near = t->near,
                      .counts = t->kind == TERM_WORD && !t->near};
        size_t n = stem.n < sizeof d->first ? stem.n : sizeof d->first;
        memcpy(&d->first, stem.p, n);
        memset(&d->mask, 0xFF, n);
    }
    if (terms->n > SCAN_BUCKETS) qsort(s->needles, terms->n, sizeof *s->needles, by_window);
    for (unsigned b = 0; b < SCAN_BUCKETS; b++) {
        s->first[b] = (uint16_t)(terms->n * b / SCAN_BUCKETS);
        s->first[b + 1] = (uint16_t)(terms->n * (b + 1) / SCAN_BUCKETS);
        for (size_t i = s->first[b]; i < s->first[b + 1]; i++) {
            str stem = s->needles[i].t->stem;
            if (pairs && terms->n <= SCAN_PAIRS)
                memcpy(s->tables.pair[s->tables.n_pairs++], stem.p + s->needles[i].window, 2);
            for (int k = 0; k < SCAN_WINDOW; k++) {
                size_t at = s->needles[i].window + (size_t)k;
                if (at < stem.n && (k < 2 || !pairs)) {
                    admit(&s->tables, b, k, (unsigned char)stem.p[at]);
                } else {
                    for (unsigned byte = 0; byte < 256; byte++) admit(&s->tables, b, k, byte);
                }
            }
        }
    }
}

// --- Lines ---

static bool make_room(found_lines *f, size_t hits) {
    return pool_grow(f->pool, (void **)&f->lines, &f->cap_lines, f->n_lines + 1, f->n_lines,
                     sizeof *f->lines) &&
           pool_grow(f->pool, (void **)&f->hits, &f->cap_hits, f->n_hits + hits, f->n_hits, sizeof *f->hits);
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// How many lines more there is room for. None: they are counted like those over the limit.
[[gnu::noinline]] static size_t look_for_room(scanner *s) {
    found_lines *f = &s->found;
    size_t allowed = smaller(s->limit - f->n_lines, s->most_lines - (f->n_lines - s->first_of_file));
    if (allowed == 0 || !make_room(f, s->n_terms)) return 0;
    return smaller(allowed, smaller(f->cap_lines - f->n_lines, (f->cap_hits - f->n_hits) / s->n_terms));
}

static inline bool has_room(scanner *s) {
    if (s->room == 0) s->room = look_for_room(s);
    if (s->room == 0) return false;
    s->room--;
    return true;
}

static inline void begin_line(scanner *s, bool room, uint32_t line, uint32_t end) {
    s->hits = s->spare;
    if (room) {
        s->hits = s->found.hits + s->found.n_hits;
        // Memory that another worker may have had.
        __builtin_prefetch(s->hits + 24, 1);
        __builtin_prefetch(s->found.lines + s->found.n_lines + 24, 1);
    }
    s->line = line;
    s->line_end = end;
    s->serial++;
    s->n_hits = 0;
    s->exact = false;
}

static void sort_by_term(term_hit *hits, size_t n) {
    for (size_t i = 1; i < n; i++) {
        term_hit h = hits[i];
        size_t k = i;
        for (; k && hits[k - 1].term > h.term; k--) hits[k] = hits[k - 1];
        hits[k] = h;
    }
}

// The line at hand is done.
static inline void end_line(scanner *s) {
    if (!s->n_hits) return;
    if (s->exact)
        s->chunk.matched++;
    else
        s->chunk.expanded++;
    if (s->hits == s->spare) {
        s->chunk.unranked++;
        s->n_hits = 0;
        return;
    }
    if (s->n_hits > 1) sort_by_term(s->hits, s->n_hits);
    found_lines *f = &s->found;
    uint32_t len = s->line_end - 1 - s->line;
    f->lines[f->n_lines++] = (line_hit){.file = (uint32_t)s->file,
                                        .line = s->line,
                                        .first = (uint32_t)f->n_hits,
                                        .n = (uint8_t)s->n_hits,
                                        .exact = s->exact,
                                        .len = (uint16_t)(len < LINE_LEN_MAX ? len : LINE_LEN_MAX)};
    f->n_hits += s->n_hits;
    s->n_hits = 0;
}

// Its sections are asked for as soon as its lines are counted.
static void fetch_spans(const corpus_file *f) {
    enum { LINE = 64, LINES = 4 };
    size_t n = f->n_heads * sizeof *f->spans;
    for (size_t at = 0; at < n && at < LINE * LINES; at += LINE)
        __builtin_prefetch((const char *)f->spans + at);
}

// Moves on to the line that holds the place `at` of the file.
static inline void next_line(scanner *s, uint32_t at) {
    end_line(s);
    if (s->found.n_lines == s->first_of_file) fetch_spans(s->f);
    size_t start, end;
    s->ops->bounds(s->f->folded.p, s->line_end, at, &start, &end);
    begin_line(s, has_room(s), (uint32_t)start, (uint32_t)end + 1);
}

static void enter_file(scanner *s, size_t file) {
    end_line(s);
    s->file = file;
    s->f = s->files[file].file;
    s->first_of_file = s->found.n_lines;
    begin_line(s, false, 0, 0);
}

// Does the whole term stand at p, where its stem does?
static inline bool is_exact(const needle *d, const char *p, size_t left) {
    if (d->text == d->stem) return true;
    return left >= d->text && memcmp(p + d->stem, d->t->text.p + d->stem, d->text - d->stem) == 0;
}

// occurrence_worth, which has the last word: of what is no word, and of a word with ASCII at both sides that
// is no point, it needs no call.
static inline uint32_t worth_here(const needle *d, str s, size_t at, bool exact) {
    static const uint8_t kinds[256] = {
        ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, ['.'] = 2, [0x80 ... 0xFF] = 2};
    if (!d->word) return WORTH_WHOLE;
    if (exact) {
        // Before the text, and behind the last byte of a file, there is a line feed.
        uint8_t before = kinds[(unsigned char)s.p[(ptrdiff_t)at - 1]],
                after = kinds[(unsigned char)s.p[at + d->text]];
        if ((before | after) < 2) return before ? WORTH_INSIDE : after ? WORTH_START : WORTH_WHOLE;
    }
    return occurrence_worth(d->t, s, at, exact);
}

// The line at hand is one more that has the word.
[[gnu::noinline]] static void count_line(scanner *s, needle *d, uint32_t worth) {
    term_lines *of = &s->lines_of[d->number];
    if (d->word_in == s->serial) return;
    if (worth >= WORTH_FORM) {
        d->word_in = s->serial;
        of->start -= d->start_in == s->serial;
        d->counts = ++of->word < NEAR_BELOW;
    } else if (worth == WORTH_START && d->start_in != s->serial) {
        d->start_in = s->serial;
        of->start++;
    }
}

// Counts an occurrence in the line at hand.
static inline void count(scanner *s, needle *d, uint32_t at, uint32_t worth) {
    if (d->counts) count_line(s, d, worth);
    if (d->serial == s->serial) {
        term_hit *hit = &s->hits[d->index];
        hit->worth = worth_sum(hit->worth, worth);
        return;
    }
    s->hits[s->n_hits] = (term_hit){.term = d->number, .worth = worth, .at = at - s->line};
    d->serial = s->serial;
    d->index = s->n_hits++;
}

// The first bytes of the needle's stem stand at p.
static inline void look_at(scanner *s, needle *d, const char *p) {
    str text = s->f->folded;
    size_t at = (size_t)(p - text.p), left = text.n - at;
    if (left < d->stem || p < d->ahead) return;
    enum { FIRST = sizeof d->first };
    if (d->stem > FIRST && memcmp(p + FIRST, d->t->stem.p + FIRST, d->stem - FIRST) != 0) return;
    if (s->visit) {
        d->ahead = p + 1;
        s->visit(s->ctx, s->worker, s->f, d->number, (uint32_t)at);
        return;
    }
    bool exact = is_exact(d, p, left);
    // A stem may overlap itself, and the whole term begin within what was only a stem.
    d->ahead = p + (exact ? d->text : 1);
    if (at >= s->line_end) next_line(s, (uint32_t)at);
    uint32_t worth = worth_here(d, text, at, exact);
    if (!worth) return;
    count(s, d, (uint32_t)at, worth);
    s->exact |= exact & !d->near;
}

// --- Runs ---

// The first bytes of the needle's stem stand at p, before the text: in the path.
static void look_at_path(scanner *s, const needle *d, const char *p) {
    const char *start = corpus_path_start(s->f), *end = s->f->folded.p - 1;
    if (s->visit || s->f->n_names != 1 || p < start) return;
    if ((size_t)(end - p) < d->stem || memcmp(p, d->t->stem.p, d->stem) != 0) return;
    found_lines *f = &s->found;
    if (!pool_grow(f->pool, (void **)&f->paths, &f->cap_paths, f->n_paths + 1, f->n_paths, sizeof *f->paths))
        return;
    f->paths[f->n_paths++] = (path_hit){(uint32_t)s->file, d->number};
}

// The windows of a bucket's needles may stand at p.
static inline void look_at_bucket(scanner *s, unsigned bucket, const char *p) {
    for (size_t k = s->first[bucket], end = s->first[bucket + 1]; k < end; k++) {
        needle *d = &s->needles[k];
        const char *stem = p - d->window;
        uint64_t first;
        memcpy(&first, stem, sizeof first); // SLAB_TAIL
        if ((first ^ d->first) & d->mask) continue;
        if (stem >= s->f->folded.p)
            look_at(s, d, stem);
        else
            look_at_path(s, d, stem);
    }
}

// to: where the files of the run end.
static void look_at_places(scanner *s, const char *base, size_t to, const scan_places_found *places) {
    const char *end = s->f->folded.p + s->f->folded.n;
    for (size_t i = 0; i < places->n; i++) {
        const char *p = base + places->at[i];
        while (p >= end) {
            // Between two files, or of a later one.
            if (s->file + 1 == to || p < corpus_path_start(s->files[s->file + 1].file)) break;
            enter_file(s, s->file + 1);
            end = s->f->folded.p + s->f->folded.n;
        }
        if (p >= end) continue;
        for (unsigned found = places->buckets[i]; found; found &= found - 1)
            look_at_bucket(s, (unsigned)__builtin_ctz(found), p);
    }
}

// Files [from, to) lie one after the other. False: stopped.
static bool scan_run(scanner *s, size_t from, size_t to) {
    const char *base = corpus_path_start(s->files[from].file);
    const corpus_file *last = s->files[to - 1].file;
    size_t end = (size_t)(last->folded.p + last->folded.n - base);
    stop_sign *asks = crew_stop(s->crew, s->worker);
    scan_places_found places;
    for (size_t i = 0; i < s->n_terms; i++) s->needles[i].ahead = NULL;
    enter_file(s, from);
    for (size_t at = 0, before = 0; at < end; before = at) {
        size_t step = end - at < STEP_BYTES ? end : at + STEP_BYTES;
        places.n = 0;
        at = s->ops->kernel(&s->tables, base, at, step, &places);
        look_at_places(s, base, to, &places);
        if (stop_after(asks, at - before + places.n * PLACE_WORK)) return false;
    }
    end_line(s);
    for (size_t i = from; i < to; i++) s->chunk.bytes += s->files[i].file->bytes;
    s->chunk.files += to - from;
    return true;
}

// Lines of [p, end) that hold a term, where `end` is that of a file.
static size_t count_common(const scanner *s, const char *p, const char *end) {
    stop_sign *asks = crew_stop(s->crew, s->worker);
    size_t lines = 0;
    while ((size_t)(end - p) > STOP_EACH) {
        // A line's end is like that of a file.
        const char *to = memchr(p + STOP_EACH, '\n', (size_t)(end - p) - STOP_EACH);
        if (!to) break;
        lines += s->ops->count(s->terms, p, to);
        if (stop_after(asks, (size_t)(to - p))) return lines;
        p = to + 1;
    }
    return lines + (p < end ? s->ops->count(s->terms, p, end) : 0);
}

// One file, when a query has nothing but stop words: some lines are found, the others counted.
static bool scan_common(scanner *s, size_t file) {
    enum { SOME_BYTES = 512 };
    const char *base = corpus_path_start(s->files[file].file);
    const corpus_file *f = s->files[file].file;
    size_t end = (size_t)(f->folded.p + f->folded.n - base), at = 0;
    scan_places_found places;
    for (size_t i = 0; i < s->n_terms; i++) s->needles[i].ahead = NULL;
    enter_file(s, file);
    while (at < end && s->found.n_lines - s->first_of_file < s->most_lines) {
        places.n = 0;
        at = s->ops->kernel(&s->tables, base, at, end - at < SOME_BYTES ? end : at + SOME_BYTES, &places);
        look_at_places(s, base, file + 1, &places);
        if (stop_after(crew_stop(s->crew, s->worker), SOME_BYTES + places.n * PLACE_WORK)) return false;
    }
    end_line(s);
    // What began before `at` and was not looked at stands on no line that was.
    const char *rest = base + at - (at < SCAN_COMMON_MAX ? at : SCAN_COMMON_MAX),
               *line_end = f->folded.p + s->line_end;
    if (rest < line_end) rest = line_end;
    if (at < end && rest < f->folded.p + f->folded.n) {
        size_t lines = count_common(s, rest, f->folded.p + f->folded.n);
        s->chunk.matched += lines;
        s->chunk.unranked += lines;
    }
    s->chunk.bytes += f->bytes;
    s->chunk.files++;
    return !crew_stops(s->crew, s->worker);
}

static size_t run_end(const scanner *s, size_t from, size_t n) {
    size_t to = from + 1;
    const char *first = corpus_path_start(s->files[from].file);
    for (; to < n && to - from < RUN_FILES; to++) {
        const corpus_file *before = s->files[to - 1].file, *f = s->files[to].file;
        const char *end = before->folded.p + before->folded.n;
        // Offsets within a run are 32 bits.
        const char *start = corpus_path_start(f);
        if (f->in != before->in || start < end || start - end > GAP_MAX ||
            f->folded.p + f->folded.n - first > INT32_MAX)
            break;
    }
    return to;
}

// --- One chunk ---

scan_chunk scanner_found(const chunk *c, const found_lines *f, size_t n) {
    return (scan_chunk){.lines = n ? f->lines + c->first : NULL,
                        .hits = f->hits,
                        .n = n,
                        .worker = c->worker,
                        .first = c->first,
                        .paths = c->n_paths ? f->paths + c->first_path : NULL,
                        .n_paths = c->n_paths};
}

dep_status scanner_chunk(scanner *s, dep_err *err) {
    chunk *c = &s->chunk;
    c->worker = s->worker;
    c->first = s->found.n_lines;
    c->first_path = s->found.n_paths;
    // Many small files are asked about as often as few large ones.
    for (size_t from = c->from, to; from < c->to && !crew_stops(s->crew, s->worker); from = to) {
        to = s->common ? from + 1 : run_end(s, from, c->to);
        if (!(s->common ? scan_common(s, from) : scan_run(s, from, to))) break;
    }
    // A line that was begun when all was stopped.
    end_line(s);
    c->n_lines = s->found.n_lines - c->first;
    c->n_paths = s->found.n_paths - c->first_path;
    scan_chunk done = scanner_found(c, &s->found, c->n_lines);
    return s->take ? s->take(s->ctx, &done, err) : DEP_OK;
}

// --- Beginning and end ---

static void free_found(void *p) {
    found_lines *f = p;
    pool_give(f->pool, f->lines);
    pool_give(f->pool, f->hits);
    pool_give(f->pool, f->paths);
}

static size_t common_lines(const search_corpus *c) {
    return c->limits.common / (c->n_candidates ? c->n_candidates : 1) + COMMON_LEAST;
}

void scanner_new(arena *a, scanner *s, const term_list *terms, const scanner *like, size_t worker) {
    *s = *like;
    s->worker = worker;
    s->terms = terms;
    s->n_terms = terms->n;
    s->common = terms->common && !s->visit;
    s->limit = s->c->limits.lines;
    s->most_lines = terms->common ? common_lines(s->c) : SIZE_MAX;
    s->needles = NEW_N(a, needle, terms->n);
    s->spare = NEW_N(a, term_hit, terms->n);
    s->lines_of = NEW_N(a, term_lines, terms->n);
    s->found.pool = crew_pool(s->crew);
    arena_defer(a, free_found, &s->found);
    // Those of another one serve as well.
    if (like->needles)
        memcpy(s->needles, like->needles, terms->n * sizeof *s->needles);
    else
        fill_tables(s, terms);
}

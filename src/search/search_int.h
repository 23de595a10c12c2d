// search_int: what the files of this room share. The stages of a search are separate so that each can be
// replaced and tested alone: walk (names) → corpus (text, folded text, headings) → terms (of a query) → scan
// (matching lines with counts per term) → rank (order) → cut (what is shown). The naive scanner of the tests
// is the oracle of the one here: it defines which lines match. What a corpus holds does not change after it
// was made, so any number of threads may run queries on it; a changed file makes a new version of the corpus
// that shares all else with the one before.
#pragma once
#include "search/crew.h"
#include <deputy/arena.h>
#include <deputy/glob.h>
#include <deputy/search.h>
#include <deputy/stop.h>
#include <deputy/utf8.h>
#include <stdatomic.h>

// --- Limits: members, so that tests can use small ones. ---
typedef struct {
    size_t files;   // files taken by the walk, over all sources
    size_t entries; // directory entries looked at, over all sources
    size_t depth;   // directories below the root that are entered
    size_t links;   // directories entered through symbolic links
    size_t lines;   // matching lines kept for ranking; more are counted
    size_t common;  // likewise when a query has nothing but stop words: each file has a share,
                    // and COMMON_LEAST more
} search_limits;

static const search_limits search_limits_default = {
    .files = SEARCH_FILES_MAX,
    .entries = 2000000, // ten directory entries for each file taken
    .depth = SEARCH_DEPTH_MAX,
    .links = 1000,
    .lines = 4000000, // 160 MB of records
    .common = 20000,
};

enum { COMMON_LEAST = 4 }; // lines of one file that are ranked in any case
enum : uint32_t { SEARCH_NO_SOURCE = UINT32_MAX };

// --- Walk: which files a source has, by name. Nothing is opened but directories. ---
// By what a file is known again without opening it.
typedef struct {
    dev_t dev;
    ino_t ino; // 0: not known
    off_t size;
    struct timespec mtime, ctime;
} file_sig;

static inline file_sig sig_of(const struct stat *st) {
    return (file_sig){st->st_dev, st->st_ino, st->st_size, st->st_mtim, st->st_ctim};
}
static inline bool sig_eq(const file_sig *a, const file_sig *b) {
    return a->dev == b->dev && a->ino == b->ino && a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
           a->mtime.tv_nsec == b->mtime.tv_nsec && a->ctime.tv_sec == b->ctime.tv_sec &&
           a->ctime.tv_nsec == b->ctime.tv_nsec;
}

typedef struct {
    uint32_t source;
    str path;
    file_sig sig; // with walk_watch.stat, of what is no link; else not known
} walk_file;

// For a corpus that is kept: who wants to hear of changes later.
typedef struct {
    bool stat; // what each file looks like, asked of the directory that was listed
    // A directory that is about to be listed or gone through: what changes in it from now on matters.
    void (*enter)(void *ctx, str path, int fd, bool linked, const struct stat *st);
    void *ctx;
} walk_watch;

// Something that was not searched, or not as expected. In a corpus: by reason, path and source.
typedef struct {
    str reason, path;
    uint32_t source; // SEARCH_NO_SOURCE: concerns every source
    bool wide; // path stands for more than itself (a directory, a source): kept whatever the path filter says
    bool loses; // text of the sources was not searched: totals are lower bounds
    bool link;  // it leads to nothing that can be read: what it leads to may change without a word of it
} cut_item;
typedef VEC(cut_item) cut_items;

typedef struct {
    VEC(walk_file) files; // sorted by source, then path bytes; no pair twice
    cut_items cuts;
    bool cancelled;
} walk_result;

// Errors: INVALID for a pattern or an encoding that may not be, naming source and reason.
[[nodiscard]] dep_status walk_sources(arena *a, const search_space *space, const search_limits *limits,
                                      walk_result *ret, dep_err *err);
// watch: NULL, or as above.
[[nodiscard]] dep_status walk_sources_for(arena *a, const search_space *space, const search_limits *limits,
                                          const walk_watch *watch, walk_result *ret, dep_err *err);
// The path of an open descriptor relative to root, as the kernel knows it; false when that is not below root
// or cannot be told.
bool walk_real_path(arena *a, int root, int fd, str *ret);
// Why a relative link was not followed.
const char *walk_link_refused(void);
// True when a component of the path is the directory that is never searched.
bool walk_forbidden(str path);
// The globs of a source's exclude, for names found only after the walk (the real path of a link).
// A directory that one names (glob_names) is excluded with everything below it.
typedef struct {
    glob_pat *g;
} walk_exclude;
[[nodiscard]] dep_status walk_excludes(arena *a, const search_source *s, walk_exclude **ret, dep_err *err);
bool walk_excluded(const walk_exclude *x, size_t n, str path);

// --- Headings: the structure of a file. ---
enum {
    HEADINGS_MAX = 65536, // of a file; later ones are lines like any other
    HEADING_CHARS = 120,  // of one heading in a trail
    HEADING_LEVELS = 32,
};

typedef struct {
    uint32_t first, last; // lines it takes, counted from 0 (an underline, an overline, an HTML heading over
                          // several lines)
    uint32_t at, n;       // its text in the original, markup included
    uint32_t parent;      // number of the heading above in the hierarchy, counted from 1; 0: none
    uint8_t level;        // 1 is the top
    bool html;
} heading;
typedef VEC(heading) heading_list;

// By the form of the file name: Markdown, plain text as Markdown, reStructuredText, AsciiDoc, Org, HTML;
// others have none. When it is stopped, these are the first of them.
void headings_find(arena *a, str path, str text, stop_sign *stop, heading_list *ret);
// A heading's text without its markup, on one line, at most HEADING_CHARS code points.
str heading_title(arena *a, str raw, bool html);

// --- Slabs: memory of texts. ---
enum : size_t { SLAB_TAIL = 128 }; // bytes that may be read before the first text and behind the last one

typedef struct slab_block slab_block;
typedef struct {
    atomic_uint refs;
    char *text;
    size_t used, cap;   // of text
    slab_block *blocks; // what else belongs to the texts
    size_t held;        // bytes of them
} slab;

typedef struct {
    slab **p; // of malloc
    size_t n, cap;
} slabs;

slab *slab_new(size_t cap); // NULL: no memory
slab *slab_take(slab *s);
void slab_drop(slab *s);
bool slab_fits(const slab *s, size_t n);
// Both fit, and get a line end each. Returns where the text is; NULL: stopped, and nothing was added.
const char *slab_add(slab *s, str path, str text, stop_sign *stop);
void *slab_block_new(slab *s, size_t n); // NULL: no memory
void slabs_empty(slabs *list);           // what is in them is gone; one stays, for what comes next
void slabs_drop(slabs *list);
void slab_seal(slab *s); // what is in it may be read by others from now on
size_t slab_size(const slab *s);
bool slab_list_add(slabs *list, slab *s); // false: no memory; the slab is given back then

// --- Corpus. ---
typedef struct {
    uint32_t source;
    str path;
} file_name;

// By source, then path: the order of files everywhere.
static inline int name_order(file_name x, file_name y) {
    return x.source != y.source ? (x.source > y.source) - (x.source < y.source) : str_cmp(x.path, y.path);
}

// Where a heading's first line begins in the folded text, and the first line below it.
typedef struct {
    uint32_t first, body;
} head_span;

typedef struct {
    uint32_t at, n;  // its text in the original, markup included
    uint32_t parent; // as in heading
    bool html;
} corpus_head;

enum : uint32_t { MARK_LINES = 64 };

// A piece of text that folding changed by more than its capitals.
typedef struct {
    uint32_t folded, original; // where it begins
    uint32_t pool;             // its original, in the file's pool
    uint16_t n_folded, n_original;
} patch;

typedef struct {
    // What each search looks at comes first, and fits into one line of a processor's cache.
    str folded; // line i of it is line i of the original. Before it: its folded path, and a line feed
    const head_span *spans; // of the headings
    const corpus_head *heads;
    uint32_t n_heads, n_lines;
    uint64_t chain_bytes;   // over the sections: bytes of all heading lines above each
    size_t bytes;           // read from the file
    const file_name *names; // by source, then path: one file reached by several names is one file
    slab *in;               // its memory
    // Line feeds before each LINES_EACH bytes of folded, the first left out; NULL: there is but one.
    const uint32_t *lines_before;
    uint32_t n_names, n_path; // n_path: bytes of the folded path, which is that of the only name
    // The original: whole, or the folded text with what is different in it.
    uint32_t n_text, n_patches;
    str text;
    const uint32_t *marks; // of one that is whole: where each MARK_LINES-th line begins in it
    const patch *patches;
    const char *pool;
    const uint8_t *capitals; // a bit for each folded byte; NULL: none
} corpus_file;

// How often two and three bytes stand one after the other in parts of a corpus: logarithms, eight to a
// doubling. Some three share a place.
enum { BYTES_DOUBLING = 8, BYTE_RUNS = 65536 };
typedef struct {
    uint8_t two[BYTE_RUNS], three[BYTE_RUNS];
    size_t bytes; // of the corpus
} byte_runs;

static inline uint16_t two_bytes(const unsigned char *p) {
    return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint16_t three_bytes(const unsigned char *p) {
    // Multiplied by the golden ratio.
    return (uint16_t)(((uint32_t)p[0] << 16 | (uint32_t)two_bytes(p + 1)) * 0x9E3779B1u >> 16);
}

// What is known of one path.
typedef struct {
    str path;
    file_sig sig;    // of what was read; not known: it was not
    uint32_t source; // the first one that has it
    uint32_t file;   // number in files, counted from 1; 0: no text
    bool linked;     // links led to it: no change of its own directory tells of it
    bool several;    // it has several names, and may be written through another
    bool fresh;      // it was changed so shortly before it was read that a later change may look the same
    bool refused;    // by the caller
    cut_items notes; // what is to be said of its text
} corpus_track;

typedef struct {
    str path;
    dev_t dev;
    ino_t ino;
} linked_dir;

typedef struct {
    const corpus_file *file;
    const file_name *name; // the one that passed the filters
} selected_file;

// Of all selected files.
typedef struct {
    size_t files, bytes, lines, sections;
    uint64_t chain_bytes;
    uint32_t most_heads; // of one file
} selection_sums;

static inline void selection_add(selection_sums *s, const corpus_file *f) {
    s->files++;
    s->bytes += f->folded.n;
    s->lines += f->n_lines;
    s->sections += f->n_heads + 1;
    s->chain_bytes += f->chain_bytes;
    if (f->n_heads > s->most_heads) s->most_heads = f->n_heads;
}

// The names of a corpus, shared by its versions.
typedef struct {
    atomic_uint refs;
    arena *a;
} corpus_names;

// One version of a corpus.
typedef struct {
    atomic_uint refs;
    corpus_names *names; // holds everything that is not of malloc
    str *sources;
    size_t n_sources;
    corpus_file *files; // of malloc; by source and path of their first name
    size_t n_files;
    selected_file *all; // of malloc; each file under its first name
    selection_sums sums;
    corpus_track *tracks; // of malloc; by path
    size_t n_tracks;
    size_t n_unwatched; // of them: linked, or with several names
    linked_dir *dirs;   // reached through links
    size_t n_dirs;
    slabs slabs;
    slab *tail; // what changed files are added to; NULL: none
    cut_items cuts;
    byte_runs *runs; // NULL: the corpus is small
    size_t cost;     // of the budget
    size_t dead;     // bytes in the slabs that belong to former versions of files
    bool all_fit;    // nothing was left out for the budget
    bool cancelled;
} corpus_data;

typedef struct scan_ops scan_ops;

// What one search sees.
struct search_corpus {
    arena *a;
    corpus_data *data;
    const str *sources; // names
    size_t n_sources;
    const corpus_file *files;
    const selected_file *all; // for who asks about all of them
    selection_sums sums;
    size_t n_files;
    size_t n_candidates; // files that the walk found
    cut_items cuts;
    const byte_runs *runs;
    bool cancelled;
    search_limits limits;
    bool (*ask)(void *ctx);
    void *ctx;
    pool *pool;          // for what a search needs; may be NULL
    hands *hands;        // likewise
    const scan_ops *ops; // NULL: not asked yet
    str notice;
};

// Offsets within a file are 32 bits, and folding makes text up to eleven times longer.
enum : size_t { CORPUS_FILE_CEILING = (size_t)256 << 20 };

[[nodiscard]] dep_status search_open_with(const search_space *space, const search_limits *limits,
                                          search_corpus **ret, dep_err *err);
[[nodiscard]] dep_status search_directly_with(arena *a, const search_space *space,
                                              const search_limits *limits, const search_query *q,
                                              search_result *ret, dep_err *err);

// --- load.c, corpus.c: making a version. ---
// old: whose files are taken over where they look the same; may be NULL. judged: what the caller refuses has
// not changed since old was made.
[[nodiscard]] dep_status corpus_load(const search_space *space, const search_limits *limits,
                                     const corpus_data *old, bool judged, const walk_watch *watch,
                                     corpus_data **ret, dep_err *err);
// The version after `old` in which one file is read anew. *ret NULL: it takes corpus_load to tell.
[[nodiscard]] dep_status corpus_reload(const search_space *space, const search_limits *limits,
                                       const corpus_data *old, const corpus_track *track, corpus_data **ret,
                                       dep_err *err);
corpus_data *corpus_take(corpus_data *d);
void corpus_drop(corpus_data *d);
size_t corpus_size(const corpus_data *d);
const corpus_track *corpus_track_of(const corpus_data *d, str path);

// --- cache.c: versions that are kept. ---
enum : size_t { SEARCH_DEAD_MIN = (size_t)4 << 20 }; // bytes of former texts that are put up with in any case
search_cache *search_cache_new_with(arena *a, size_t max_bytes, size_t max_entries);
void search_cache_blind(search_cache *c); // changes are not told: every file is looked at
size_t search_cache_size(search_cache *c, size_t *corpora);
void search_cache_lend(search_cache *c, search_corpus *to); // what its searches share
enum : size_t { SEARCH_POOL_BYTES = (size_t)12 << 20 };     // kept for what searches need
// A version that is right now, counted for the caller. notice: how changes are found, where that is slow.
[[nodiscard]] dep_status cache_open(const search_space *space, const search_limits *limits, corpus_data **ret,
                                    const char **notice, dep_err *err);

// --- text.c: one file. ---
// A valid text, folded, with its lines and headings: what is to be kept of it.
typedef struct {
    str path, text, folded; // path: folded
    utf8_pieces pieces;
    size_t pool; // bytes of the pieces' originals
    bool capitals, whole, bare;
    const uint32_t *lines_before; // as in corpus_file
    const head_span *spans;       // of the heads
    uint32_t n_lines;
    heading_list heads;
    uint64_t chain_bytes;
    stop_sign *stop; // of whoever works on it
} corpus_parts;
// All of it lives in `turn`. bare: without its original. When it is stopped, what it returns is a part.
void corpus_prepare(arena *turn, str path, str text, bool bare, stop_sign *stop, corpus_parts *ret);
// Puts it into the last slab of `to` or a new one. CANCELLED: it was stopped, and the slab holds nothing of
// it.
[[nodiscard]] dep_status corpus_keep(const corpus_parts *p, slabs *to, corpus_file *f, dep_err *err);
enum : uint32_t { LINES_EACH = 4 << 10 };
static inline const char *corpus_path_start(const corpus_file *f) {
    return f->folded.p - 1 - f->n_path;
}
// Lines are known by where they begin in the folded text. The folded line, without its line feed.
static inline str corpus_line(const corpus_file *f, uint32_t at) {
    size_t left = f->folded.n - at;
    const char *end = memchr(f->folded.p + at, '\n', left);
    return str_n(f->folded.p + at, end ? (size_t)(end - f->folded.p) - at : left);
}
// Where the next line begins, or the length of the text.
static inline uint32_t corpus_next_line(const corpus_file *f, uint32_t at) {
    size_t next = at + corpus_line(f, at).n + 1;
    return (uint32_t)(next < f->folded.n ? next : f->folded.n);
}
// Where the line that holds the place begins; no earlier than `from`, which is in it or before it.
static inline uint32_t corpus_line_start(const corpus_file *f, uint32_t from, uint32_t at) {
    const char *before = memrchr(f->folded.p + from, '\n', at - from);
    return before ? (uint32_t)(before - f->folded.p) + 1 : from;
}
// The number of the line, counted from 0.
uint32_t corpus_line_number(const corpus_file *f, uint32_t at);
// A part of the original text, in the arena or in the corpus.
str corpus_text(arena *a, const corpus_file *f, size_t from, size_t to);
// The original line, without its line end. number: as of corpus_line_number.
str corpus_original(arena *a, const corpus_file *f, uint32_t at, uint32_t number);
// The section that a line belongs to: the number of the last heading at or above it, counted from 1; 0 before
// the first.
uint32_t corpus_section(const corpus_file *f, uint32_t at);

// --- Terms of a query. ---
enum {
    TERM_GRAMS_MAX =
        96, // two-character pieces of runs written without blanks, beside SEARCH_TERMS_MAX words and phrases
    TERM_STEM_MIN = 3,
    TERM_NOUN_MIN = 5, // letters before -ion and -ation
    TERM_OPEN_MIN = 4, // letters that a word of another language than English keeps
    TERM_OPEN_MAX = 3, // letters that its endings have
};

typedef enum {
    TERM_WORD, // letters and digits of a script with blanks; points between digits; "c++", "c#"
    TERM_GRAM, // one or two characters of a run written without blanks
    TERM_TEXT, // a phrase in quotes, or signs where a query has nothing else
} term_kind;

typedef struct {
    str text; // folded: the lines that contain it match
    str stem; // a prefix of text that other forms of the word begin with; text itself when there are none
    term_kind kind;
    bool open;     // any few letters after the stem make another form
    bool near;     // not in the query: one edit away from a word of it that hardly any line has
    uint16_t as;   // the term that it counts as: itself, or the misspelt one
    double weight; // of its rarity; near: of its occurrences
} term;

typedef struct {
    term *p;
    size_t n;
    size_t asked; // of the query itself; near ones follow
    size_t ignored;
    bool common; // nothing but stop words
} term_list;

// Folds and splits. Empty: the query has nothing that could be searched.
void terms_parse(arena *a, str query, term_list *ret);
// Is what stands at word[stem.n] up to the word's end an ending of the same word?
bool term_same_word(const term *t, str word);
bool term_is_stop_word(str word);
// Is there a point between two digits, which is a part of a word: "3.0", "v8.5.7"?
bool term_has_point(str s, size_t at);

// --- Scan. ---
// What an occurrence counts, in hundredths; tests/bench/RANKING.md has what it was tried against.
enum {
    WORTH_WHOLE = 100, // a word (grams, phrases: all)
    WORTH_FORM = 80,   // another form of the word: not in the text of the term
    WORTH_START = 60,  // at the start of a longer word
    WORTH_INSIDE = 20, // elsewhere in a longer word
};

typedef struct {
    uint16_t term;
    uint32_t worth; // of all occurrences
    uint32_t at;    // the first one, in the folded line
} term_hit;

static inline uint32_t worth_sum(uint32_t a, uint32_t b) {
    return a + b < a ? UINT32_MAX : a + b;
}

enum { LINE_LEN_MAX = UINT16_MAX };
typedef struct {
    uint32_t file;  // in the selection
    uint32_t line;  // where it begins in the folded text
    uint32_t first; // of its term_hits
    uint8_t n;
    bool exact;   // contains the text of a term; else found through another form of a word
    uint16_t len; // of the folded line, or LINE_LEN_MAX when it is longer
} line_hit;

// The stem of a term stands in the path of a file that has but one name.
typedef struct {
    uint32_t file; // in the selection
    uint16_t term;
} path_hit;

// The lines of some files, all found by one worker.
typedef struct {
    const line_hit *lines; // by file and line
    const term_hit *hits;  // of which line_hit.first is a number
    size_t n, worker;
    size_t first;          // number of the first line among all that the worker found
    const path_hit *paths; // by file
    size_t n_paths;
} scan_chunk;

// On how many lines a word of the query stands as such, or as another form; and on how many only longer words
// begin with it. A worker that has found NEAR_BELOW of the first counts no further, nor what is no word.
typedef struct {
    uint32_t word, start;
} term_lines;

// What one worker found. Stays where it is from the end of the scan on.
typedef struct {
    const line_hit *lines;
    const term_hit *hits;
    const str *texts; // of the lines, when the files are not there any more; else NULL
} scan_part;

typedef struct {
    scan_part *parts;   // by worker
    scan_chunk *chunks; // in the order of the files
    size_t n_chunks;
    term_lines *lines_of; // by term
    size_t lines;         // in all of them
    size_t files, bytes;  // scanned
    size_t matched, expanded;
    size_t unranked; // lines over a limit: counted, not kept
    bool full;       // of streams: one had no room for more; which lines are missing is chance
    bool trimmed;    // chunks that were taken had more lines than they have now
    bool cancelled;
} scan_result;

// What stands at `at`, where the term's stem does; 0: it is neither the term nor another form of it. exact:
// the whole term stands there.
uint32_t occurrence_worth(const term *t, str s, size_t at, bool exact);

// take: called for each chunk by the worker that has scanned it, as long as its lines are near; may be NULL.
// The result lives in `a`.
typedef dep_status scan_take(void *ctx, const scan_chunk *c, dep_err *err);
[[nodiscard]] dep_status scan_lines(arena *a, crew *crew, const term_list *terms, const selected_file *files,
                                    size_t n, const search_corpus *c, scan_take *take, void *ctx,
                                    scan_result *ret, dep_err *err);
// Shows each place where the stem of a term stands, also where it overlaps itself, on any thread of the crew,
// under ARENA_CATCH of its worker's arena.
typedef void scan_visit(void *ctx, size_t worker, const corpus_file *f, uint16_t term, uint32_t at);
[[nodiscard]] dep_status scan_places(arena *a, crew *crew, const term_list *terms, const selected_file *files,
                                     size_t n, const search_corpus *c, scan_visit *visit, void *ctx,
                                     dep_err *err);

// The same of files that are there for a while only, by one worker, which finds its share of limits.lines.
// Lives in `a`, which may be the worker's.
typedef struct scan_stream scan_stream;
scan_stream *scan_stream_new(arena *a, crew *crew, size_t worker, const term_list *terms,
                             const selected_file *files, const search_corpus *c, scan_take *take,
                             scan_visit *visit, void *ctx);
// Files [from, to), none of them twice. Under ARENA_CATCH of the worker's arena.
[[nodiscard]] dep_status scan_stream_files(scan_stream *s, size_t from, size_t to, dep_err *err);
const term_lines *scan_stream_lines(const scan_stream *s); // so far
// What all of them found; streams: by worker.
void scan_streams_end(arena *a, crew *crew, scan_stream *const *streams, scan_result *ret);

// --- Near words. ---
enum {
    NEAR_BELOW = 3,         // a word on fewer lines than this may be misspelt
    NEAR_CHARS_MIN = 4,     // shorter ones have too many neighbours
    NEAR_CHARS_MAX = 32,    // longer ones are no words
    NEAR_TERMS_MAX = 4,     // words of a query that are looked at
    NEAR_WORDS_MAX = 3,     // that are added for one
    NEAR_SHARE = 20,        // of them, those found at least a twentieth as often as the first
    NEAR_FOUND_MAX = 65536, // different words near one; with more, none is added
};

// The look for them: of the words that hardly any line has, or, with no lines known yet, of all. Its pieces
// are scanned for with near_look.
typedef struct near_search near_search;
near_search *near_begin(arena *a, crew *crew, const term_list *terms, const term_lines *lines);
const term_list *near_pieces(const near_search *s, size_t worker); // may be none
// Gives up words that turn out to stand on enough lines, those of that worker alone. True: its pieces are
// others now.
bool near_narrow(near_search *s, size_t worker, const term_lines *lines);
void near_look(void *near, size_t worker, const corpus_file *f, uint16_t term, uint32_t at);
// Adds what was found to the terms. False: nothing.
bool near_end(arena *a, const near_search *s, const term_lines *lines, term_list *terms);
// Adds to the terms what their misspelt words may have been meant to be. scan: where the terms stand.
// *added: another scan is due. When the crew was stopped, nothing is added.
[[nodiscard]] dep_status near_add(arena *a, crew *crew, const selected_file *files, size_t n,
                                  const search_corpus *c, const scan_result *scan, term_list *terms,
                                  bool *added, dep_err *err);
// One insertion, deletion, replacement or exchange of neighbouring letters makes one into the other.
bool near_is_one_edit(str a, str b);

// --- Rank. ---
typedef struct {
    const line_hit *line; // of the scan
    const term_hit *best; // the one to cut around
    str text;             // the folded line
    double score;
} ranked_line;

typedef struct ranking ranking;
ranking *rank_begin(arena *a, crew *crew, const term_list *terms, const selected_file *files);
// scan_take of a ranking.
dep_status rank_take(void *ranking, const scan_chunk *c, dep_err *err);
// The best `limit` lines of the scan that all its chunks were taken from, best first; *n counts them. Ties:
// source, path, line. Errors: no memory.
[[nodiscard]] dep_status rank_lines(ranking *r, const scan_result *scan, const selection_sums *sums,
                                    size_t limit, ranked_line *ret, size_t *n, dep_err *err);

// --- Cut. ---
// At most SEARCH_HIT_CHARS code points of a line, around folded position `at`, without the blanks at both
// ends.
str cut_around(arena *a, str line, size_t at);

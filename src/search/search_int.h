// search_int: what the files of this room share. The stages of a search are separate so that each can be
// replaced and tested alone: walk (names) → corpus (text, folded text, headings) → terms (of a query) → scan
// (matching lines with counts per term) → rank (order) → cut (what is shown). The naive scanner stays as the
// oracle of faster ones: it defines which lines match. A corpus does not change after search_open, so any
// number of threads may run queries on it.
#pragma once
#include <deputy/arena.h>
#include <deputy/glob.h>
#include <deputy/search.h>

// --- Limits: members, so that tests can use small ones. ---
typedef struct {
    size_t files;   // files taken by the walk, over all sources
    size_t entries; // directory entries looked at, over all sources
    size_t depth;   // directories below the root that are entered
    size_t links;   // directories entered through symbolic links
    size_t lines;   // matching lines kept for ranking; more are counted
} search_limits;

static const search_limits search_limits_default = {
    .files = SEARCH_FILES_MAX,
    .entries = 2000000, // ten directory entries for each file taken
    .depth = SEARCH_DEPTH_MAX,
    .links = 1000,
    .lines = 4000000, // 160 MB of records
};

enum : uint32_t { SEARCH_NO_SOURCE = UINT32_MAX };

// --- Walk: which files a source has, by name. Nothing is opened but directories. ---
typedef struct {
    uint32_t source;
    str path;
} walk_file;

// Something that was not searched, or not as expected. In a corpus: by reason, path and source.
typedef struct {
    str reason, path;
    uint32_t source; // SEARCH_NO_SOURCE: concerns every source
    bool wide; // path stands for more than itself (a directory, a source): kept whatever the path filter says
    bool loses; // text of the sources was not searched: totals are lower bounds
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
// The path of an open descriptor relative to root, as the kernel knows it; false when that is not below root
// or cannot be told.
bool walk_real_path(arena *a, int root, int fd, str *ret);
// Why a relative link was not followed.
const char *walk_link_refused(void);
// True when a component of the path is the directory that is never searched.
bool walk_forbidden(str path);
// The globs of a source's exclude, for names found only after the walk (the real path of a link).
typedef struct {
    glob_pat *g;
    bool covers; // a directory that matches is excluded with everything below it
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
// others have none.
void headings_find(arena *a, str path, str text, heading_list *ret);
// One heading without its markup, on one line, at most HEADING_CHARS code points.
str heading_title(arena *a, str text, const heading *h);

// --- Corpus. ---
typedef struct {
    uint32_t source;
    str path;
} file_name;

typedef struct {
    const file_name *names; // by source, then path: one file reached by several names is one file
    uint32_t n_names;
    size_t bytes; // read from the file
    str text;     // the original, valid UTF-8
    str folded;   // line i of it is line i of text
    // Line i is folded[starts[i], starts[i + 1] - 1), its line feed left out.
    const uint32_t *starts;
    uint32_t n_lines;
    bool same_starts; // every byte stands where it stood in the original
    const heading *heads;
    uint32_t n_heads;
    uint64_t chain_bytes; // over the sections: bytes of all heading lines above each
} corpus_file;

struct search_corpus {
    arena *a;
    str *sources; // names
    size_t n_sources;
    corpus_file *files; // by source and path of their first name
    size_t n_files;
    cut_items cuts;
    bool cancelled;
    search_limits limits;
    bool (*ask)(void *ctx);
    void *ctx;
};

[[nodiscard]] dep_status search_open_with(const search_space *space, const search_limits *limits,
                                          search_corpus **ret, dep_err *err);

static inline str corpus_line(const corpus_file *f, uint32_t line) {
    return str_n(f->folded.p + f->starts[line], f->starts[line + 1] - 1 - f->starts[line]);
}
// The original line, without its line end.
str corpus_original(const corpus_file *f, uint32_t line);
// The section that a line belongs to: the number of the last heading at or above it, counted from 1; 0 before
// the first.
uint32_t corpus_section(const corpus_file *f, uint32_t line);

// --- Terms of a query. ---
enum {
    TERM_GRAMS_MAX =
        96, // two-character pieces of runs written without blanks, beside SEARCH_TERMS_MAX words and phrases
    TERM_STEM_MIN = 3,
};

typedef enum {
    TERM_WORD, // letters and digits of a script with blanks
    TERM_GRAM, // one or two characters of a run written without blanks
    TERM_TEXT, // a phrase in quotes, or signs where a query has nothing else
} term_kind;

typedef struct {
    str text; // folded: the lines that contain it match
    str stem; // a prefix of text that other forms of the word begin with; text itself when there are none
    term_kind kind;
    double weight;
} term;

typedef struct {
    term *p;
    size_t n;
    size_t ignored;
} term_list;

// Folds and splits. Empty: the query has nothing that could be searched.
void terms_parse(arena *a, str query, term_list *ret);
// Is what stands at word[stem.n] up to the word's end an ending of the same word?
bool term_same_word(const term *t, str word);

// --- Scan. ---
typedef struct {
    const corpus_file *file;
    const file_name *name; // the one that passed the filters
} selected_file;

typedef struct {
    uint16_t term;
    uint16_t whole;  // occurrences as a word (grams, phrases: all)
    uint16_t start;  // at the start of a longer word
    uint16_t inside; // elsewhere in a longer word
    uint16_t forms;  // other forms of the word: not in the text of the term
    uint32_t at;     // the first one, in the folded line
} term_hit;

typedef struct {
    uint32_t file; // in the selection
    uint32_t line;
    uint32_t first; // of its term_hits
    uint16_t n;
    bool exact; // contains the text of a term; else found through another form of a word
} line_hit;

typedef struct {
    VEC(line_hit) lines; // by file and line
    VEC(term_hit) hits;
    size_t files, bytes; // scanned
    size_t matched, expanded;
    size_t unranked; // lines over the limit: counted, not kept
    bool cancelled;
} scan_result;

void scan_naive(arena *a, const term_list *terms, const selected_file *files, size_t n,
                const search_corpus *c, scan_result *ret);

// --- Rank. ---
typedef struct {
    uint32_t line; // in scan_result.lines
    uint16_t best; // the term to cut around, an index into the terms
    double score;
} ranked_line;

// The best `limit` lines, best first. Ties: source, path, line.
size_t rank_lines(arena *a, const term_list *terms, const selected_file *files, size_t n,
                  const scan_result *scan, size_t limit, ranked_line *ret);

// --- Cut. ---
// At most SEARCH_HIT_CHARS code points of a line, around folded position `at`, without the blanks at both
// ends.
str cut_around(arena *a, str line, size_t at);

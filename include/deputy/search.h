// search: lines and queries. Walks a directory beneath a held descriptor, reads and folds text, scans it line by line and ranks the
// matching lines. Knows no word of Deputy: what must not be read is told by a callback. No index; nothing goes stale.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <sys/stat.h>

typedef struct {
    str name;
    const str *include; // globs relative to the root (a plain directory means dir/**/*)
    size_t n_include;
    const str *exclude;
    size_t n_exclude;
    str encoding; // declared encoding, or empty
} search_source;

typedef struct {
    int root; // directory descriptor; stays the caller's
    const search_source *sources;
    size_t n_sources;
    size_t max_bytes, max_file; // 0: SEARCH_BYTES_MAX, SEARCH_FILE_MAX
    // Says why a file that was opened must not be read (a short reason such as "sensitive file"), or NULL. path is relative to the root. May be NULL.
    const char *(*refuse)(void *ctx, str path, const struct stat *st);
    // True stops walk and scan soon (asked at least every 1 MiB and every 64 files). May be NULL.
    bool (*cancelled)(void *ctx);
    void *ctx;
} search_space;

enum : size_t { SEARCH_BYTES_MAX = (size_t)256 << 20, SEARCH_FILE_MAX = (size_t)16 << 20 };
enum {
    SEARCH_LIMIT_DEFAULT = 10,
    SEARCH_LIMIT_MAX = 50,        // of kb_search; the command line may ask for more
    SEARCH_HIT_CHARS = 400,
    SEARCH_TERMS_MAX = 32,        // distinct terms of a query; more are cut and said
    SEARCH_QUERY_MAX = 4096,      // bytes
    SEARCH_FILES_MAX = 200000,    // files walked
    SEARCH_DEPTH_MAX = 64,
    SEARCH_CUT_PATHS = 3,         // paths shown per cut in text; all are kept
};

typedef struct {
    str query;
    size_t limit;   // 0: default
    str source;     // only this source, or empty
    str path;       // only paths matching this glob (or below this directory), or empty
    size_t context; // lines before and after, for people
} search_query;

typedef struct {
    str source, path;
    uint32_t line;
    str text;    // original characters, ≤ SEARCH_HIT_CHARS code points, cut around the match with "…"
    str heading; // "Refunds > Deadlines": the trail of headings above the line; empty when there is none
    double score;
    const str *before, *after; // context lines
    size_t n_before, n_after;
} search_hit;

typedef struct {
    str reason; // "binary", "over 16 MiB: head searched", "not read: budget of 256 MiB", "symbolic link leaves the source", "read as GB18030 (assumed)", …
    size_t count;
    VEC(str) paths; // all of them
} search_cut;

typedef struct {
    VEC(search_hit) hits;
    struct {
        size_t files, bytes;   // searched
        size_t matched_lines;  // lines with a term of the query
        size_t expanded_lines; // lines found only through stems or typo tolerance
        bool at_least;         // a cut or a cancel makes the totals lower bounds
    } totals;
    VEC(search_cut) cuts;
    size_t ignored_terms; // over SEARCH_TERMS_MAX
    bool cancelled;
} search_result;

typedef struct search_corpus search_corpus;
// Walks and reads the sources once; files shared by several sources are read once. The corpus lives until search_close.
[[nodiscard]] dep_status search_open(const search_space *space, search_corpus **ret, dep_err *err);
// Ranks the lines for one query. Deterministic: same corpus and query, same bytes. Errors: INVALID for a blank query, an unknown source,
// a path that leaves; CANCELLED never (result.cancelled says it).
[[nodiscard]] dep_status search_run(arena *a, search_corpus *c, const search_query *q, search_result *ret, dep_err *err);
void search_close(search_corpus *c);
// Files per source, in the order of the space's sources, without reading them: how many match. For catalogue and checks.
[[nodiscard]] dep_status search_count(const search_space *space, size_t *counts, dep_err *err);
// {"hits":[…],"totals":{…},"cuts":[…]}: see DESIGN section 15.
void search_json(buf *out, const search_result *r);

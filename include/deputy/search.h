// search: lines and queries. Walks directories beneath a held descriptor, reads and folds text, scans it line
// by line and ranks the matching lines. Knows no word of Deputy but the name of the directory that is never
// entered: what else must not be read is told by a callback. No index; nothing goes stale. Lines end at LF
// alone and are counted from 1.
//
// A line matches when its folded text (utf8_fold) contains a term of the query: a phrase in double quotes, a
// word ("3.0", "C++" and "C#" are words), or, where a script has no blanks, a pair of characters. Stop words
// count only when a query has nothing else; signs likewise. Lines with another form of a word are found too,
// and for a word that hardly any line has, lines with words that are one edit away from it.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <sys/stat.h>

// Keeps what was read for the next search of the same sources. Any number of threads may search with one.
typedef struct search_cache search_cache;

// Globs are those of glob.h, relative to the root; they ignore .gitignore. A pattern without a wildcard that
// names a directory means everything below it that is not hidden. node_modules, .git, .hg, .svn and CVS are
// entered only when a pattern spells them; `.deputy` never, by no name, link or mount. An exclude, or an
// alternative of it, that ends in `**` or in a name covers whole directories, hidden files in them included,
// and links to them. Links are followed when they are relative and stay beneath the root.
typedef struct {
    str name;
    const str *include;
    size_t n_include;
    const str *exclude;
    size_t n_exclude;
    str encoding; // declared encoding, or empty; of a file in several sources the first one's holds
} search_source;

typedef struct {
    int root; // directory descriptor; stays the caller's, and is used by search_open and search_count alone
    const search_source *sources;
    size_t n_sources;
    size_t max_bytes, max_file; // 0: SEARCH_BYTES_MAX, SEARCH_FILE_MAX
    // Says why something that was opened must not be read (a short reason such as "sensitive file"; it must
    // live as long as the corpus is being opened), or NULL. Asked for each file, and for each directory that
    // is entered (S_ISDIR, the path then ends in '/'). path is relative to the root; where links led to it,
    // it is asked for the real path as well. By one thread at a time, but not always the caller's: who
    // searches holds no lock that it takes. May be NULL.
    const char *(*refuse)(void *ctx, str path, const struct stat *st);
    // True stops all work soon: asked at least every 256 KiB and every 64 files, by the thread that searches.
    // May be NULL. Lives as long as the corpus.
    bool (*cancelled)(void *ctx);
    void *ctx;
    search_cache *cache; // NULL: nothing is kept
    // A number that stands for all that refuse() answers of things that do not change themselves. It is asked
    // before files are read and after it, so refuse() may answer from what it knew at the first of the two.
    // NULL: refuse() is also asked of every file that is kept, at every search.
    uint64_t (*epoch)(void *ctx);
} search_space;

enum : size_t { SEARCH_BYTES_MAX = (size_t)256 << 20, SEARCH_FILE_MAX = (size_t)16 << 20 };
enum {
    SEARCH_LIMIT_DEFAULT = 10,
    SEARCH_LIMIT_MAX = 50, // of kb_search; the command line may ask for more
    SEARCH_HIT_CHARS = 400,
    SEARCH_TERMS_MAX = 32,     // distinct words and phrases of a query; more are ignored and counted
    SEARCH_QUERY_MAX = 4096,   // bytes; of a longer query the head is searched, which is a cut
    SEARCH_FILES_MAX = 200000, // files walked
    SEARCH_DEPTH_MAX = 64,     // directories below the root
    SEARCH_CUT_PATHS = 3,      // paths shown per cut in text; all are kept
};

typedef struct {
    str query;
    size_t limit;   // 0: default
    str source;     // only this source, or empty
    str path;       // only paths matching this glob (or below this directory), or empty
    size_t context; // lines before and after, for people
} search_query;

typedef struct {
    str source, path; // path: the bytes of the file's name, which need not be valid UTF-8
    uint32_t line;
    str text; // original characters without blanks at both ends, ≤ SEARCH_HIT_CHARS code points, cut around
              // the match with "…"
    str heading; // "Refunds > Deadlines": the trail of headings above the line; empty when there is none
    double score;
    const str *before, *after; // context lines
    size_t n_before, n_after;
} search_hit;

typedef struct {
    str reason; // "binary", "over 16 MiB: head searched", "not read: budget of 256 MiB", "absolute symbolic
                // link", "read as GB18030 (assumed)", …
    size_t count;
    VEC(str) paths; // all of them; the source's name for "source matches no file"
} search_cut;

typedef struct {
    VEC(search_hit) hits; // best first; ties by source, path, line
    struct {
        size_t files, bytes;   // searched
        size_t matched_lines;  // lines with a term of the query
        size_t expanded_lines; // lines found only through another form of a word, or a word like it
        bool at_least; // text of the sources was not searched (budget, limit, unreadable, cancel): totals are
                       // lower bounds
    } totals;
    VEC(search_cut) cuts; // by reason; only those of the files that the filters admit
    size_t ignored_terms; // over SEARCH_TERMS_MAX
    bool cancelled;
    str notice; // for people: why searching is slower than it could be; mostly empty
} search_result;

enum : size_t {
    SEARCH_CACHE_BYTES =
        (size_t)512 << 20, // kept by one cache; what one search needs is never given up for it
    SEARCH_CACHE_CORPORA = 32,
};
// Lives in `a`, and ends with it: nothing may search with it any more then. NULL: no memory.
search_cache *search_cache_new(arena *a);

typedef struct search_corpus search_corpus;
// Walks and reads the sources. With a cache only what has changed since the last search of the same sources
// is read, and the corpus is shared with searches that go on at the same time. A file is its device and
// inode: one that several sources, links or names lead to is read and found once, under the first name (by
// source, then path) that the query's filters admit. Each source gets an equal share of the budget first,
// then what the others leave; max_bytes bounds what is read and, within a small factor, the memory held until
// search_close. The sources may go after this call. Errors: INVALID for a pattern or an encoding that may not
// be, naming the source and the reason. A cancelled open succeeds with what was read so far; every answer
// says so.
[[nodiscard]] dep_status search_open(const search_space *space, search_corpus **ret, dep_err *err);
// Ranks the lines for one query. Deterministic: same corpus and query, same bytes. What is returned lives in
// `a` alone. Any number of threads may ask one corpus. Errors: INVALID for a blank query, an unknown source,
// a path that leaves; CANCELLED never (result.cancelled says it).
[[nodiscard]] dep_status search_run(arena *a, search_corpus *c, const search_query *q, search_result *ret,
                                    dep_err *err);
void search_close(search_corpus *c);
// search_open, search_run and search_close for one question, with the same answer in less time and memory:
// without a cache, files are scanned while they are read, and no text is kept but that of matching lines.
[[nodiscard]] dep_status search_directly(arena *a, const search_space *space, const search_query *q,
                                         search_result *ret, dep_err *err);
// Files per source, in the order of the space's sources, without reading them: how many names match. For
// catalogue and checks.
[[nodiscard]] dep_status search_count(const search_space *space, size_t *counts, dep_err *err);
// {"hits":[…],"totals":{…},"cuts":[…]}, and "ignored_terms", "cancelled", "notice" where there is something
// to say: see DESIGN section 15.
void search_json(buf *out, const search_result *r);

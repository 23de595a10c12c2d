// fetch: one file, from its name to what is kept of it: opened, judged, read, decoded, folded, packed. Any
// number of threads, each with a fetcher of its own. Knows no budget and no other file.
#pragma once
#include "search/search_int.h"
#include <pthread.h>

// One path, with the sources that have it.
typedef struct {
    str path;
    file_sig sig; // as it was listed, or not known
    VEC(uint32_t) sources;
    const corpus_track *known; // of the version before, when that still holds; may be NULL
    bool later;                // did not fit its source's share of the budget
} candidate;

typedef struct {
    str reason;
    bool loses;
} remark;

typedef enum {
    FETCH_NOT_YET, // also when it was stopped, or did not fit
    FETCH_NOTHING, // no text
    FETCH_TEXT,
} fetch_state;

// What came of a candidate.
typedef struct {
    fetch_state state;
    file_sig sig;                         // as it was opened; not known: it was not
    bool linked, several, fresh, refused; // as in corpus_track
    bool unread;                          // what its text would say is not known
    VEC(remark) cuts, notes;              // of the way to the file, and of its text
    corpus_file file;                     // with a text; without names
} fetched;

// What all fetchers of a load share.
typedef struct {
    const search_space *space;
    walk_exclude **excludes; // of each source
    size_t max_file;
    int64_t now_ms;
    bool bare;                // originals are not kept
    pthread_mutex_t *judging; // space->refuse is asked by one thread at a time
} fetch_rules;

enum { FETCH_FILES = 32 }; // that one fetcher has open at a time

typedef struct {
    const fetch_rules *rules;
    stop_sign *stop;
    arena *keep;     // what is said; lives as long as what was fetched
    arena *turn;     // texts, until they are packed
    slabs slabs;     // what is kept of them; the caller's to take
    uint32_t *pairs; // 65536, how often each pair of bytes was seen in parts of the texts; NULL: not counted
    size_t counted;  // bytes of those texts
    bool waited;     // for a file that was not in memory
    int open[FETCH_FILES];
    size_t n_open;
    str dir;    // of the last file, and a descriptor of it: most files lie beside the one before
    int dir_fd; // -1: none
} fetcher;

// Opens and judges. Returns a descriptor, which stays open until fetch_close, or -1: then *ret says why, or
// it is still FETCH_NOT_YET because there are too many open files.
int fetch_open(fetcher *x, const candidate *cand, fetched *ret);
void fetch_ahead(const fetcher *x, int fd, const fetched *f); // it will be read soon
// Reads what was opened. Under ARENA_CATCH of both arenas. Errors: no memory.
[[nodiscard]] dep_status fetch_text(fetcher *x, const candidate *cand, int fd, fetched *ret, dep_err *err);
void fetch_close(fetcher *x);      // the files
void fetch_end(fetcher *x);        // and the directory
str size_text(arena *a, size_t n); // "16 MiB", or bytes where it is not round

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

typedef struct remark remark;
struct remark {
    remark *next;
    str reason;
    bool loses;
    bool of_text; // else of the way to the file
};

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
    remark *said;                         // what is to be said
    corpus_file file; // with a text; without names. Of one that was shown to a taker, figures alone
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

// Bytes of a file that looks like that, of which no more are read.
static inline size_t fetch_size(const fetch_rules *r, const file_sig *sig) {
    size_t size = sig->size > 0 ? (size_t)sig->size : 0;
    return size < r->max_file ? size : r->max_file;
}

enum { FETCH_FILES = 32 }; // of a batch at most; one fetcher has two of them open at most

typedef struct {
    int fds[FETCH_FILES];
    size_t n;
} open_files;

typedef struct {
    const fetch_rules *rules;
    stop_sign *stop;
    arena *keep; // what is said; lives as long as what was fetched
    pool *pool;  // of its own: nobody waits for another
    arena *turn; // texts, until they are packed
    slabs slabs; // what is kept of them; the caller's to take
    // How often each run of bytes was seen in parts of the texts; NULL: not counted.
    uint32_t *two, *three;
    size_t counted; // bytes of those texts
    bool waited;    // for a file that was not in memory
    open_files open[2];
    str dir;    // of the last file, and a descriptor of it: most files lie beside the one before
    int dir_fd; // -1: none
} fetcher;

// Opens and judges. Returns a descriptor, one of open[batch], which has room for it, or -1: then *ret says
// why, or it is still FETCH_NOT_YET because there are too many open files. alone: no other fetcher of the
// load has any, so that this is a reason.
int fetch_open(fetcher *x, unsigned batch, bool alone, const candidate *cand, fetched *ret);
void fetch_ahead(const fetcher *x, int fd, const fetched *f); // it will be read soon
// Reads what was opened. Under ARENA_CATCH of both arenas. Errors: no memory.
[[nodiscard]] dep_status fetch_text(fetcher *x, const candidate *cand, int fd, fetched *ret, dep_err *err);
void fetch_close(fetcher *x, unsigned batch);
void fetch_end(fetcher *x);        // everything that is open
str size_text(arena *a, size_t n); // "16 MiB", or bytes where it is not round

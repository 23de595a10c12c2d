// load_int: what the files that make a version of a corpus share: one loading of it.
#pragma once
#include "search/fetch.h"

typedef struct {
    dev_t dev;
    ino_t ino;
    size_t file; // number in `files`, counted from 1; 0: free
} slot;

typedef struct {
    const corpus_file *file; // without names
    VEC(file_name) names;
    const cut_items *notes; // what is to be said of its text, under each of its names
} loaded;

// Who gets texts instead of their being kept: on any thread of the crew, under ARENA_CATCH of the worker's
// arena, candidates [from, to), of which those with FETCH_TEXT have a text. It is gone afterwards; what is to
// stay is copied. Each candidate comes once; what one worker gets mostly comes in rising order.
typedef struct {
    dep_status (*take)(void *ctx, size_t worker, size_t from, size_t to, dep_err *err);
    void *ctx;
} text_taker;

typedef struct {
    arena *names;   // of what lives as long as the corpus
    arena *scratch; // of the whole load
    const search_space *space;
    const corpus_data *old;    // may be NULL
    bool judged;               // what is refused has not changed since it was made
    VEC(candidate) candidates; // by first source, then path
    fetched *fetched;          // by candidate
    walk_exclude **excludes;   // of each source
    crew *crew;
    fetch_rules rules;
    fetcher *fetchers; // by worker; the first is the caller's own
    pthread_mutex_t judging;
    const text_taker *taker; // NULL: texts are kept
    VEC(loaded) files;
    VEC(linked_dir) dirs;
    corpus_track *tracks; // of each candidate
    cut_items cuts;
    slot *slots;
    size_t n_slots;
    size_t left, share_left, cost, left_out; // of the budget
    stop_sign stop;
    bool cancelled;
} loader;

// One pass over all texts, of which nothing is kept.
typedef struct {
    // n: candidates, in order, and what will come of them. *taker: who gets their texts.
    dep_status (*begin)(void *ctx, const candidate *candidates, fetched *all, size_t n,
                        const text_taker **taker, dep_err *err);
    void *ctx;
    crew *crew; // whose threads read
} text_pass;
// The loader lives in `scratch`, and says what there was: files, tracks, cuts, cancelled. Under ARENA_CATCH
// of scratch.
[[nodiscard]] dep_status corpus_pass(const search_space *space, const search_limits *limits,
                                     const text_pass *pass, arena *scratch, loader **ret, dep_err *err);
// A version of some files alone, without a walk.
[[nodiscard]] dep_status corpus_read(const search_space *space, const search_limits *limits, walk_file *only,
                                     size_t n_only, corpus_data **ret, dep_err *err);

void loader_gather(loader *l, walk_file *files, size_t n);
// How many threads are worth reading the candidates that are not known; 0 is as good as 1. A guess: of few
// files some sizes are asked for. l->rules must be there.
size_t load_threads(const loader *l);
// Before anything is read. crew: NULL, or the threads that do it. Ends with l->scratch.
[[nodiscard]] dep_status loader_begin(loader *l, crew *crew, dep_err *err);
// Reads one candidate when it fits the budget; *fits: false when it does not. whole: what all sources
// together leave is its budget, not what its own source's share does.
[[nodiscard]] dep_status loader_load(loader *l, size_t i, bool whole, bool *fits, dep_err *err);
[[nodiscard]] dep_status loader_load_all(loader *l, dep_err *err);

// Shows candidates [from, to) to the taker, if there is one.
[[nodiscard]] dep_status loader_show(loader *l, fetcher *x, size_t from, size_t to, dep_err *err);

// --- ahead.c ---
// Reads candidates on the threads of the crew, as long as they surely fit the budget: what is left over is
// FETCH_NOT_YET.
[[nodiscard]] dep_status load_ahead(loader *l, dep_err *err);

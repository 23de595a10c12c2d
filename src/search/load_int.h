// load_int: what load.c and corpus.c share: one loading of a corpus.
#pragma once
#include "search/pipe.h"

// One path, with the sources that have it.
typedef struct {
    str path;
    file_sig sig; // as it was listed, or not known
    VEC(uint32_t) sources;
    bool later; // did not fit its source's share of the budget
} candidate;

typedef struct {
    dev_t dev;
    ino_t ino;
    size_t file; // number in `files`, counted from 1; 0: free
} slot;

typedef struct {
    corpus_file file;
    VEC(file_name) names;
    size_t cost;
    cut_items notes; // what is to be said of its text, under each of its names
    bool whole;      // else it was stopped before the file was there
} loaded;

typedef struct {
    arena *names;   // of what lives as long as the corpus
    arena *scratch; // of the whole load
    arena *opened;  // of one file: its descriptor
    arena *turn;    // of one batch of files: their texts
    pipeline *pipe;
    size_t in_pipe; // bytes of texts that are not folded yet
    const search_space *space;
    const corpus_data *old;    // may be NULL
    bool judged;               // what is refused has not changed since it was made
    walk_exclude **excludes;   // of each source
    VEC(candidate) candidates; // by first source, then path
    VEC(loaded) files;
    VEC(linked_dir) dirs;
    corpus_track *tracks; // of each candidate
    corpus_track *track;  // of the one at hand
    slabs slabs;
    uint32_t *pairs; // 65536
    cut_items cuts;
    slot *slots;
    size_t n_slots;
    size_t max_file, left, share_left, cost, left_out;
    str dir;    // of the last file, and a descriptor of it, or -1: most files lie beside the one before
    int dir_fd; // closed with `scratch`
    // Files that are not in memory are asked for some time before they are read.
    size_t waits, asked_for;
    stop_sign stop;
    int64_t now_ms;
    bool cancelled;
    dep_status fault;
    dep_err *err;
} loader;

// A version without texts: they are shown to somebody while they are read. Or one of some files alone.
typedef struct {
    // n: files there may be at most. *taker: who gets them.
    dep_status (*begin)(void *ctx, size_t n, const pipe_taker **taker, dep_err *err);
    void *ctx;
    walk_file *only; // these files, without a walk
    size_t n_only;
} corpus_reader;
[[nodiscard]] dep_status corpus_read(const search_space *space, const search_limits *limits,
                                     const corpus_reader *reader, corpus_data **ret, dep_err *err);

void loader_cut(loader *l, const candidate *cand, bool loses, str reason);
void loader_gather(loader *l, walk_file *files, size_t n);
// Reads one candidate when it fits the budget; false when it does not. whole: what all sources together leave
// is its budget, not what its own source's share does.
bool loader_load(loader *l, candidate *cand, bool whole);
// Waits for what is still being folded.
void loader_drain(loader *l);
// What was stopped before it was whole is left out.
void loader_stopped(loader *l);
[[nodiscard]] dep_status loader_load_all(loader *l);

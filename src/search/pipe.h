// pipe: the second half of reading a file (folding, lines, headings, packing) on a thread of its own, while
// the caller reads the next ones. Files go through in batches and come out in order. Without a thread each
// batch is worked on when it is handed in. One caller; nothing of a batch is touched by both at once.
#pragma once
#include "search/search_int.h"

enum : size_t { PIPE_BYTES = (size_t)256 << 10 }; // of a batch
enum { PIPE_FILES = 32, PIPE_BATCHES = 4 };

typedef struct {
    size_t index; // the caller's
    str path, text;
    corpus_parts parts;
    bool prepared;
    corpus_file file;
    bool whole; // false: it was stopped before the file was there
} pipe_job;

typedef struct {
    arena *a; // of the caller until it is handed in, and again when it comes out
    pipe_job jobs[PIPE_FILES];
    size_t n, bytes;
    dep_status fault;
    dep_err err;
} pipe_batch;

// Who takes what has been kept of some files, on the pipe's thread, under ARENA_CATCH of the batch's arena.
// The texts are gone afterwards, so that memory for one batch is enough; what is to stay is copied.
typedef struct {
    dep_status (*take)(void *ctx, pipe_job *jobs, size_t n, stop_sign *stop, dep_err *err);
    void *ctx;
} pipe_taker;

typedef struct pipeline pipeline;
// Ends, and gives back what it has, with `scratch`. slabs and pairs are the pipeline's until pipe_drain has
// given the last batch. Starts no thread when `files` are few.
// taker: NULL, or as above; files then have no originals. stop: asked by the caller's thread alone, also
// while it waits.
[[nodiscard]] dep_status pipe_new(arena *scratch, size_t files, slabs *to, uint32_t *pairs,
                                  const pipe_taker *taker, stop_sign *stop, pipeline **ret, dep_err *err);
// The batch that is being filled.
pipe_batch *pipe_filling(pipeline *p);
// Hands it in and begins another. NULL, or the oldest one, which has come out: it must be taken in before the
// next call.
pipe_batch *pipe_next(pipeline *p);
// The oldest that was handed in, when it is done; NULL: there is none left.
pipe_batch *pipe_drain(pipeline *p);
size_t pipe_counted(const pipeline *p); // bytes whose pairs were counted; after the last batch

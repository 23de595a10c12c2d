// crew: the threads of one search. The work of a stage is a number of jobs; whoever is free takes the next
// one. Knows nothing of searching.
#pragma once
#include <deputy/hands.h>
#include <deputy/pool.h>
#include <deputy/stop.h>

enum { CREW_MOST = 8 };

typedef struct crew crew;

// most: threads that are worth it, the caller's included; there are never more than processors, or CREW_MOST.
// They come from `h` at once, as far as it has any to lend, and go back with `a`. h: NULL: the crew starts
// some of its own, when a stage first has jobs for them. asks: shall all stop? It is the caller's, and asked
// by the caller's thread alone, as worker 0, also between two stages; may be NULL. p: where the workers'
// memory comes from; may be NULL.
crew *crew_new(arena *a, hands *h, pool *p, size_t most, stop_sign *asks);
size_t crew_size(const crew *c); // workers there may be: worker numbers are below this
pool *crew_pool(const crew *c);
arena *crew_arena(const crew *c, size_t worker); // of that worker; lives as long as the crew
typedef dep_status crew_job(void *ctx, size_t worker, size_t i, dep_err *err);
// Runs job(ctx, worker, i) for each i < n, once, under ARENA_CATCH of the worker's arena; what one worker
// gets comes in rising order of i. Returns when all are done, or one has failed, or all were stopped: then
// some i are left out.
[[nodiscard]] dep_status crew_run(crew *c, size_t n, crew_job *job, void *ctx, dep_err *err);
// For a job, now and then: true when it should return early. It stays true.
bool crew_stops(crew *c, size_t worker);
bool crew_stopped(const crew *c);
// The same question as a value, for work that says how much it has done.
stop_sign *crew_stop(crew *c, size_t worker);

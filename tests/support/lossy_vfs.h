// lossy_vfs: a disk for SQLite that can lose power. What is written is in memory until it is synced; at the
// loss of power everything not synced is gone, or a random part of it is, and the files are closed without
// another change. It can also be full. For one process, with several connections and threads.
#pragma once
#include <stdbool.h>
#include <stdint.h>

// Becomes the file system of every database that is opened from now on; the former one again, when all were
// closed (nothing happens when it is that already).
void lossy_begin(void);
void lossy_end(void);
// Power fails at the n-th write, sync or cut of a file from now on, before it is done; 0: never. From then on
// every access is an error, until lossy_revive.
void lossy_fail_at(long n);
bool lossy_failed(void);
// Power fails now.
void lossy_fail(void);
// Called at the moment of the loss, on the thread whose write it was, with nothing else going on at the disk:
// for a process that shall end there. NULL: nothing is called. It may call lossy_leave and nothing else of
// this header.
void lossy_at_loss(void (*fn)(void *ctx), void *ctx);
// What a process that ends now leaves on the disk, as lossy_revive for one that goes on.
void lossy_leave(uint64_t seed);
// After the connections were closed. seed: which of the writes that were not synced have reached the disk; 0:
// none.
void lossy_revive(uint64_t seed);
// While it is full nothing can be written; reading goes on.
void lossy_full(bool full);
// Syncs since lossy_begin.
long lossy_syncs(void);
// The next number of a generator whose whole state is *seed.
uint64_t lossy_random(uint64_t *seed);

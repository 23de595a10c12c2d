// watch_int: one inotify instance that several owners share. Not safe for several threads: the caller locks.
#pragma once
#include "search/search_int.h"

typedef struct watcher watcher;
typedef struct watch_owner watch_owner;

enum { WATCH_PATHS_MAX = 256 }; // changed paths that are kept apart; with more, everything may have changed

// What has changed for one owner since it was looked at last.
struct watch_owner {
    bool all;                     // anything may have changed
    char *paths[WATCH_PATHS_MAX]; // names that came, went or were written
    size_t n_paths;
    uint64_t round; // of the last walk: what an earlier one watched is given up
    bool used;      // has directories in the table
};

watcher *watch_new(void); // NULL: no memory
void watch_free(watcher *w);
void watch_blind(watcher *w); // as if the kernel had no inotify; before anything is watched
// Before a walk; each directory is then given to watch_dir, and watch_end drops those that were not.
void watch_begin(watcher *w, watch_owner *o);
// NULL, or why changes of that directory will not be told (a text that stays).
const char *watch_dir(watcher *w, watch_owner *o, str path, int fd);
void watch_end(watcher *w, watch_owner *o);
// Gives up everything of an owner.
void watch_forget(watcher *w, watch_owner *o);
// Takes all that has been told so far and hands it to the owners.
void watch_drain(watcher *w);
// Forgets what was told to the owner.
void watch_clear(watch_owner *o);

// sys: what the process gets from outside, as members that a test can replace: environment, time, randomness; and digests,
// logging, spawning.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <stdio.h>

// --- Clock and randomness ------------------------------------------------------------------------------------------------
typedef struct {
    int64_t (*now_ms)(void *ctx);  // wall clock, Unix milliseconds
    int64_t (*mono_ms)(void *ctx); // monotonic milliseconds
    void (*random)(void *ctx, void *p, size_t n);
    void *ctx;
} sys_clock;
const sys_clock *sys_clock_real(void);
// "2026-11-30T12:00:00Z" from Unix milliseconds.
str time_utc(arena *a, int64_t ms);
// "2026-11-30 13:00 CET (UTC+01:00)", local zone.
str time_local(arena *a, int64_t ms);
// 32 lower-case hex digits, 128 random bits.
str sys_id(arena *a, const sys_clock *c);

// --- Digests -------------------------------------------------------------------------------------------------------------
// 64 lower-case hex digits.
str sha256_hex(arena *a, str bytes);

// --- Environment ---------------------------------------------------------------------------------------------------------
// Paths Deputy uses, all absolute. Relative XDG values are ignored, with a warning text in *warning (empty when fine).
typedef struct {
    str home, config, state; // $HOME, $XDG_CONFIG_HOME/deputy, $XDG_STATE_HOME/deputy
    str warning;
} sys_dirs;
[[nodiscard]] dep_status sys_dirs_find(arena *a, const char *(*getenv_fn)(const char *), sys_dirs *ret, dep_err *err);

// --- Log: for the program, not the library. One line per event on a stream; levels by DEPUTY_LOG=error|info|debug. --------
typedef enum { LOG_ERROR, LOG_INFO, LOG_DEBUG } log_level;
typedef struct {
    FILE *out; // NULL: silent
    log_level level;
} log_sink;
[[gnu::format(printf, 3, 4)]] void log_line(const log_sink *l, log_level level, const char *fmt, ...);

// --- Child processes -----------------------------------------------------------------------------------------------------
typedef struct {
    const char *const *argv;
    const char *const *envp; // NULL: PATH, HOME and locale only
    str input;               // written to its standard input, then closed
    int timeout_ms;          // required, > 0
    size_t max_output;       // bytes of stdout kept; more is an error LIMIT
} spawn_opts;
typedef struct {
    int exit_code; // or 128 + signal
    str out, err;  // err: the last 4 KiB
} spawn_result;
// Runs a child to its end in its own process group, closed descriptors, clean environment. At the time-out: TERM, 2 s, KILL.
[[nodiscard]] dep_status spawn_run(arena *a, const spawn_opts *o, spawn_result *ret, dep_err *err);

// sys: what the process gets from outside, as members that a test can replace: environment, time, randomness;
// and digests, logging, spawning.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <stdio.h>

// --- Clock and randomness --------------------------------------------------------------------------------
typedef struct {
    int64_t (*now_ms)(void *ctx);  // wall clock, Unix milliseconds
    int64_t (*mono_ms)(void *ctx); // monotonic milliseconds
    void (*random)(void *ctx, void *p, size_t n);
    void *ctx;
} sys_clock;
const sys_clock *sys_clock_real(void);
// "2026-11-30T12:00:00Z" from Unix milliseconds; years 0000 to 9999, others are brought to the nearer end.
str time_utc(arena *a, int64_t ms);
// "2026-11-30 13:00 CET (UTC+01:00)", local zone (TZ or the system's).
str time_local(arena *a, int64_t ms);
// 32 lower-case hex digits, 128 random bits.
str sys_id(arena *a, const sys_clock *c);

// --- Digests ---------------------------------------------------------------------------------------------
// 64 lower-case hex digits.
str sha256_hex(arena *a, str bytes);

// --- Environment -----------------------------------------------------------------------------------------
// Paths Deputy uses, all absolute, without trailing slashes. Relative XDG values are ignored, with a text in
// warning (empty when fine). INVALID when HOME is unset or not absolute: nothing is guessed.
typedef struct {
    str home, config, state; // $HOME, $XDG_CONFIG_HOME/deputy, $XDG_STATE_HOME/deputy
    str warning;
} sys_dirs;
[[nodiscard]] dep_status sys_dirs_find(arena *a, const char *(*getenv_fn)(const char *), sys_dirs *ret,
                                       dep_err *err);

// --- Log: for the program, not the library. One line per event on a stream, escaped; levels by
// DEPUTY_LOG=error|info|debug.
typedef enum { LOG_ERROR, LOG_INFO, LOG_DEBUG } log_level;
typedef struct {
    FILE *out; // NULL: silent
    log_level level;
} log_sink;
[[gnu::format(printf, 3, 4)]] void log_line(const log_sink *l, log_level level, const char *fmt, ...);
// False, and *ret untouched, for anything but "error", "info", "debug".
bool log_level_parse(str name, log_level *ret);

// --- Child processes -------------------------------------------------------------------------------------
typedef struct {
    const char *const *argv; // NULL-terminated; argv[0] without '/' is looked up in PATH
    const char *const *envp; // NULL: PATH, HOME and locale only
    str input;               // all of its standard input
    int timeout_ms;          // required, > 0
    size_t max_output;       // bytes of stdout kept; more is an error LIMIT, and the child is ended
} spawn_opts;
typedef struct {
    int exit_code; // or 128 + signal
    str out, err;  // err: the last 4 KiB
} spawn_result;
// Runs a child to its end in its own session and process group, closed descriptors, clean environment,
// default signals. At the time-out: TERM, 2 s, KILL, then TIMEOUT. What it left running in its group is
// killed when it ends, and does not delay the answer. Errors: NOT_FOUND when there is no such program;
// INVALID for bad options. An exit code other than 0 is no error.
[[nodiscard]] dep_status spawn_run(arena *a, const spawn_opts *o, spawn_result *ret, dep_err *err);

// What the verbs about delegations share: the state directory, signals, live lines, reports. They look at the
// store, so that it makes no difference which process runs a delegation.
#pragma once
#include "cli/cli_int.h"

enum {
    LOOK_MS = 150,     // between two looks at the store
    RECOVER_MS = 1000, // between two searches for processes that died
    AGAIN_MS = 2000,   // a second Ctrl-C within this time ends the program at once
    SHORT_ID = 8,      // digits of an id as people see it
};

// --- signals.c -----------------------------------------------------------------------------------
// From here on Ctrl-C, SIGTERM and SIGHUP only ask to stop; a second Ctrl-C soon after the first ends the
// program with EXIT_INTERRUPTED, whatever it is doing.
void signals_catch(void);
bool signals_stop(void *ctx); // asked to stop? ctx is not looked at
void signals_pause(int ms);   // sleeps; a signal ends it

// --- state.c -------------------------------------------------------------------------------------
// Opens the store: for writing where that can be had, and marks what dead processes left; else for reading,
// and says what is not seen then. c->w->store stays NULL where nothing was ever stored. *writable may be
// NULL.
int state_open(cli *c, bool *writable);
// As state_open for verbs that change something: fails when the state cannot be written.
int state_open_writing(cli *c);
// Marks again what dead processes left, when RECOVER_MS have passed since the last time.
void state_look(cli *c, int64_t *last_ms);
// The delegations that ids or their beginnings name, each once.
int state_named(cli *c, const strs *ids, delegation_rows *ret);
// All that have not ended, oldest first.
int state_unfinished(cli *c, delegation_rows *ret);
// One of them as it is now.
[[nodiscard]] dep_status state_row(cli *c, arena *a, str id, delegation_row *ret, dep_err *err);
int64_t mono_now(const cli *c);

// --- feed.c: activity, for people ----------------------------------------------------------------
typedef struct {
    cli *c;
    FILE *to;
    bool color;
    bool whole; // whole arguments and results, thinking, every status; else what `run` shows live
    str label;  // before each line; empty: one delegation alone is shown
    str lead;   // of the line that is being written; a constant
    bool mid_line;
    buf pending; // with a label: a line that is not complete yet
} feed;
feed feed_new(cli *c, FILE *to, bool color);
void feed_turn(feed *f, int64_t n, int64_t seconds);
void feed_tool(feed *f, str name, str args, int64_t seconds);
void feed_text(feed *f, str piece);
// A stored item; started_ms: when its delegation began.
void feed_item(feed *f, const activity_row *row, int64_t started_ms);
// One line of ours.
void feed_note(feed *f, str s);
void feed_end_line(feed *f);
// Many lines, as a result is shown.
void feed_result(feed *f, str s);

// --- tasks.c -------------------------------------------------------------------------------------
// The members of a row as JSON, into an object that is open.
void delegation_json(jw *w, const delegation_row *r, arena *a);

// --- report.c ------------------------------------------------------------------------------------
// A report object, as `run` shows it: the text on standard output, all else on the other one. streamed: the
// text has been shown already. heading: one of several.
void report_print(cli *c, str report, bool streamed, bool heading);
// Marks it as delivered, once what was printed is out. What belongs to a conversation stays to be delivered
// there.
void report_delivered(cli *c, const delegation_row *row);
// EXIT_FINE for completed, else EXIT_ERRORS.
int report_exit(deleg_status status);

// --- worker.c: run --background ------------------------------------------------------------------
// Starts a process of its own for a queued delegation and waits until it has taken it. Prints the id.
int worker_start(cli *c, engine *e, str id);
// Waits for the background delegations that a main agent started in this process; a signal stops them.
void worker_rest(cli *c, engine *e, bool loud);

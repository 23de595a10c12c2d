// store: what happened, durable. One SQLite file in the state directory; every row belongs to a workspace.
// WAL, BEGIN IMMEDIATE, migrations that only add, synchronous FULL for status and report and NORMAL for
// activity. A newer schema and network file systems are refused with the reason. Not thread-safe: one
// connection, one thread at a time (see store_share). Several stores in one process, and several processes,
// may share the file. Where nothing else is said, an id is a whole one, and one that this workspace does not
// have is NOT_FOUND.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <deputy/sys.h>

typedef struct store store;

// STORE_BUSY_MS: how long another process's write is waited for; STORE_LIGHT_MS: the same for a write of
// store_do that is not synced. STORE_UNTAKEN_MS: how long a queued row waits for a process that takes it.
// STORE_KEEP_DAYS: how long a report that was not delivered is safe from store_prune.
enum {
    STORE_BUSY_MS = 10000,
    STORE_LIGHT_MS = 250,
    STORE_PREFIX_MIN = 4,
    STORE_UNTAKEN_MS = 60000,
    STORE_KEEP_DAYS = 7,
};

// state: $XDG_STATE_HOME/deputy, made 0700 when absent; deputy.db 0600, owner checked. read_only: opens what
// is there; *ret = NULL with OK when there is no database yet. Where the directory cannot be written it still
// opens for reading, and store_notice says what is not seen. Released with the arena, or earlier by
// store_close. Errors say the path and the next step: REFUSED (another owner, too open a mode, a link, a
// network file system, a newer schema), INVALID (damaged, or not Deputy's), BUSY (not free within
// STORE_BUSY_MS), IO. Everything that writes answers REFUSED for a read-only store.
[[nodiscard]] dep_status store_open(arena *a, str state, str workspace, bool read_only,
                                    const sys_clock *clock, store **ret, dep_err *err);
void store_close(store *s);
// What a person must know about how it was opened, or empty.
str store_notice(const store *s);

typedef enum {
    DELEG_QUEUED,
    DELEG_RUNNING,
    DELEG_WAITING,
    DELEG_COMPLETED,
    DELEG_TRUNCATED,
    DELEG_FAILED,
    DELEG_STOPPED,
    DELEG_INTERRUPTED
} deleg_status;
const char *deleg_status_name(deleg_status s);
static inline bool deleg_ended(deleg_status s) {
    return s >= DELEG_COMPLETED;
}

typedef struct {
    str id; // 32 hex digits
    str agent, task, description, model;
    str definition_hash, definition; // SHA-256 and text of the definition it started with
    str grant;                       // JSON of the grant
    deleg_status status;
    str end_reason;
    int64_t created_ms, started_ms, ended_ms;
    str report;           // the report object as JSON; empty until it ended
    str run_id;           // process that runs it; empty: not yet taken by one
    str thread;           // conversation it belongs to, 32 hex digits; empty: none
    str resumes;          // the delegation it continues, of this workspace; empty: none
    bool main;            // a turn of a main agent, and not a delegation to a subagent
    bool background;      // whoever asked did not wait for it
    int64_t delivered_ms; // when its report reached who asked; 0: not yet
} delegation_row;
typedef VEC(delegation_row) delegation_rows;

// A process registers itself once: a file run/<id> in the state directory holds a lock that dies with it, and
// a socket beside it hears of commands. Both go with store_close. Called again, it gives the same id.
[[nodiscard]] dep_status store_run_begin(arena *a, store *s, str *run_id, dep_err *err);
// Whoever opens the store marks the unfinished delegations (turns of a main agent too) of processes whose
// lock is free as interrupted, end reason `process died`: their report holds the text of the last turn that
// had any, read from the activity items. What such a process left in run/, and commands to it, go. A queued
// row without a run that is older than STORE_UNTAKEN_MS is interrupted too, end reason `no process took it`;
// other rows without a run are left. *interrupted counts those of this workspace; the others are marked too.
// One process at a time does this; others wait for it, at most STORE_BUSY_MS. A read-only store is left as it
// is.
[[nodiscard]] dep_status store_recover(store *s, size_t *interrupted, dep_err *err);

// A new row, synced. id, agent, task, description, model, definition_hash, definition, grant, status, thread,
// resumes, main and background are taken; created_ms and started_ms where they are given, else now (a queued
// row has started_ms 0); run_id where it is given, else this process, but "-" leaves it empty (a queued row
// only): any process may take it with store_delegation_take. Errors: INVALID (an id or thread that is not 32
// hex digits, an ended status, resumes that is not there or has not ended), EXISTS.
[[nodiscard]] dep_status store_delegation_add(store *s, const delegation_row *row, dep_err *err);
// Status change, synced. The report comes exactly when it ended: both in one transaction. What has ended
// stays as it ended. Commands to it that nobody took go with the end. Errors: NOT_FOUND; INVALID (it has
// ended already, a report too early, an end without one).
[[nodiscard]] dep_status store_delegation_status(store *s, str id, deleg_status status, str end_reason,
                                                 str report_json, dep_err *err);
// A queued row becomes running here: started_ms is now and run_id this process, which has begun a run.
// Synced. INVALID when it is not queued, or another living process has it.
[[nodiscard]] dep_status store_delegation_take(store *s, str id, dep_err *err);
// Its report has reached who asked. Synced. Nothing happens when it had already; INVALID while it has not
// ended.
[[nodiscard]] dep_status store_delivered(store *s, str id, dep_err *err);
// Ended and never delivered, of this thread, oldest end first; report is filled, definition and grant are
// not. Turns of a main agent are not among them: their report is what the person reads.
[[nodiscard]] dep_status store_undelivered(arena *a, store *s, str thread, delegation_rows *ret,
                                           dep_err *err);
// Removes an ended delegation with everything it left: activity, messages, results. What resumes it loses the
// link. A row of `removed` keeps its id, agent, dates and status. Synced. INVALID while it has not ended, or
// while one that resumes it has not.
[[nodiscard]] dep_status store_delegation_remove(store *s, str id, dep_err *err);
// Retention in this workspace: removes what ended more than `days` ago, and the oldest ended ones above
// `count`; 0: no such bound. Undelivered reports of the last STORE_KEEP_DAYS stay, turns of a main agent
// excepted, and so does what an unfinished one resumes. In several transactions, not synced.
[[nodiscard]] dep_status store_prune(store *s, int64_t days, int64_t count, size_t *removed, dep_err *err);
// id: whole or a prefix of at least STORE_PREFIX_MIN digits, of this workspace. Errors: NOT_FOUND; INVALID
// naming the candidates when ambiguous.
[[nodiscard]] dep_status store_delegation_get(arena *a, store *s, str id, delegation_row *ret, dep_err *err);
// Newest first. report, definition and grant are left empty. thread: only of that conversation; empty: all
// that are not turns of a main agent; "*": these too. INVALID for another thread that is not 32 hex digits.
[[nodiscard]] dep_status store_delegation_list(arena *a, store *s, str thread, size_t limit,
                                               delegation_rows *ret, dep_err *err);
// Those that have not ended, oldest first, turns of main agents among them; with the same members.
[[nodiscard]] dep_status store_unfinished(arena *a, store *s, delegation_rows *ret, dep_err *err);

// --- Conversations ---------------------------------------------------------------------------------------
// What the turns of a main agent in one thread make: it is there as long as one of them is.
typedef struct {
    str id, agent, title;               // agent of the newest turn; title: the task of the first one
    int64_t created_ms, used_ms, turns; // used: when the newest turn was made, or a later end of one
    str last;                           // id of the newest turn
} thread_row;
typedef VEC(thread_row) thread_rows;
// Threads of this workspace, newest use first. id: a prefix as above (INVALID), or empty: all. Those that
// match, maybe none.
[[nodiscard]] dep_status store_thread_list(arena *a, store *s, str id, size_t limit, thread_rows *ret,
                                           dep_err *err);

// What a delegation said to its model and heard from it, in order, so that it can be continued.
typedef struct {
    str kind; // user, assistant, or a word of the run loop's own
    str data; // JSON
} message_row;
typedef VEC(message_row) message_rows;
// Appends, in one transaction with the delivery of the reports that they carry (ids, as store_delivered).
// sync: on the disk on return. INVALID when the delegation has ended: its last message comes before its end.
[[nodiscard]] dep_status store_message_add(store *s, str id, const message_row *rows, size_t n,
                                           const str *delivered, size_t n_delivered, bool sync, dep_err *err);
// Of this delegation alone (not of what it resumes). Empty when there is no such delegation.
[[nodiscard]] dep_status store_message_list(arena *a, store *s, str id, message_rows *ret, dep_err *err);
// A result that was cut is kept whole. *n: its number within the delegation, from 1. Not synced. INVALID when
// the delegation has ended.
[[nodiscard]] dep_status store_result_add(store *s, str id, str text, int64_t *n, dep_err *err);
// NOT_FOUND when the delegation has no such result.
[[nodiscard]] dep_status store_result_get(arena *a, store *s, str id, int64_t n, str *ret, dep_err *err);

// --- Commands to another process -------------------------------------------------------------------------
// A process that runs delegations has a socket beside its lock, run/<id>.sock: a datagram on it says that
// there is a command. store_run_begin makes it; -1 when it could not (then commands are found by polling).
// Readable: store_command_take has something to do, and takes the datagrams too. To be asked for before
// store_share; it stays the same until the store is closed.
int store_run_socket(const store *s);
// Writes the row, synced, and sends the datagram after the commit. verb: "stop"; the same again is one
// command. INVALID when it has ended, or for another verb; NOT_FOUND. A queued row that no process has taken
// is stopped here and now (stopped, end reason `stopped`), with a report of the usual shape without text.
[[nodiscard]] dep_status store_command_add(store *s, str id, str verb, dep_err *err);
typedef struct {
    str delegation, verb;
} command_row;
typedef VEC(command_row) command_rows;
// Those for delegations of this process that have not ended, oldest first; each is given once.
[[nodiscard]] dep_status store_command_take(arena *a, store *s, command_rows *ret, dep_err *err);

// --- Many threads ----------------------------------------------------------------------------------------
// One store for the threads of a process. What they ask at the same time is done by one of them in one
// transaction, synced once if any of them asked for that.
typedef struct store_shared store_shared;
// Takes over s, which nobody else may use from now on; both live in a, which is freed when no thread uses
// them.
store_shared *store_share(arena *a, store *s);
// Does op(s, ctx) and returns its status when it is durable as asked (STORE_WRITE_FULL: on the disk).
// - op calls functions of this header, any number of them, but no store_do and no store_close. It may run on
//   another thread than the caller's, while the caller waits, with the caller's arenas: only the functions of
//   this header may allocate from them there. Memory that ends elsewhere would unwind into a stack that is
//   not running.
// - It sees what it wrote itself. What a failed op wrote is undone, and so is what a failed function wrote in
//   an op that goes on; the other ops of the same transaction are not touched. When the commit fails, or
//   SQLite gives the transaction up, all ops of it have that error.
// - The mode says how durable all of it is. What is not synced does not wait long for another process
//   (STORE_LIGHT_MS), as whoever streams must go on: BUSY is to be tried again. A function that is synced by
//   itself, or asked to, is INTERNAL in an op that is not STORE_WRITE_FULL; one that writes is INTERNAL in
//   one that is STORE_READ.
// - What threads ask at the same time is done in any order; what one thread asks one after the other, in that
//   order.
typedef dep_status store_op(store *s, void *ctx, dep_err *err);
typedef enum { STORE_READ, STORE_WRITE, STORE_WRITE_FULL } store_mode;
[[nodiscard]] dep_status store_do(store_shared *sh, store_mode mode, store_op *op, void *ctx, dep_err *err);

typedef struct {
    int64_t seq, at_ms;
    str kind; // turn, thinking, text, tool, card, status
    str data; // JSON object: the whole item. Of a text item, `text` is the next piece of what the turn says
} activity_row;
typedef VEC(activity_row) activity_rows;
// Appends a batch in one transaction; seq continues per delegation (that of the items is not read), an at_ms
// of 0 is now. sync: on the disk on return.
[[nodiscard]] dep_status store_activity_add(store *s, str id, const activity_row *items, size_t n, bool sync,
                                            dep_err *err);
[[nodiscard]] dep_status store_activity_list(arena *a, store *s, str id, int64_t after_seq, size_t limit,
                                             activity_rows *ret, dep_err *err);
// The newest item of a kind; seq 0 when there is none.
[[nodiscard]] dep_status store_activity_last(arena *a, store *s, str id, str kind, activity_row *ret,
                                             dep_err *err);

// Small settings of this workspace: switches ("switch:<layer>:<identity>" → "off"/"on"), model overrides,
// approved confusables.
// Empty when absent.
[[nodiscard]] dep_status store_setting_get(arena *a, store *s, str key, str *ret, dep_err *err);
// An empty value removes it. Synced.
[[nodiscard]] dep_status store_setting_set(store *s, str key, str value, dep_err *err);
typedef struct {
    str key, value;
} setting;
typedef VEC(setting) settings;
// Those whose key begins with prefix, sorted by key.
[[nodiscard]] dep_status store_settings(arena *a, store *s, str prefix, settings *ret, dep_err *err);
// PRAGMA integrity_check: OK or the first finding.
[[nodiscard]] dep_status store_check(store *s, dep_err *err);

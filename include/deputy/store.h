// store: what happened, durable. One SQLite file in the state directory; every row belongs to a workspace.
// WAL, BEGIN IMMEDIATE, migrations that only add, synchronous FULL for status and report and NORMAL for
// activity. A newer schema and network file systems are refused with the reason. Not thread-safe: one
// connection, one thread. Several stores in one process, and several processes, may share the file.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <deputy/sys.h>

typedef struct store store;

enum { STORE_BUSY_MS = 10000, STORE_PREFIX_MIN = 4 };

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
    str report; // the report object as JSON; empty until it ended
    str run_id; // process that runs it
} delegation_row;

// A process registers itself once: a file run/<id> in the state directory holds a lock that dies with it.
// Whoever opens the store marks the unfinished delegations of processes whose lock is free as interrupted
// (end reason `process died`): their report holds the text of the last turn that had any, read from the
// activity items. *interrupted counts those of this workspace; the others of a dead process are marked too.
// Rows without a run are left.
// Called again, it gives the same id.
[[nodiscard]] dep_status store_run_begin(arena *a, store *s, str *run_id, dep_err *err);
// A read-only store is left as it is.
[[nodiscard]] dep_status store_recover(store *s, size_t *interrupted, dep_err *err);

// A new row, synced. id, agent, task, description, model, definition_hash, definition, grant and status are
// taken; created_ms, started_ms and run_id where they are given, else now and this process. Errors: INVALID
// (an id that is not 32 hex digits, an ended status), EXISTS.
[[nodiscard]] dep_status store_delegation_add(store *s, const delegation_row *row, dep_err *err);
// Status change, synced. The report comes exactly when it ended: both in one transaction. What has ended
// stays as it ended. Errors: NOT_FOUND; INVALID (it has ended already, a report too early, an end without
// one).
[[nodiscard]] dep_status store_delegation_status(store *s, str id, deleg_status status, str end_reason,
                                                 str report_json, dep_err *err);
// id: whole or a prefix of at least STORE_PREFIX_MIN digits, of this workspace. Errors: NOT_FOUND; INVALID
// naming the candidates when ambiguous.
[[nodiscard]] dep_status store_delegation_get(arena *a, store *s, str id, delegation_row *ret, dep_err *err);
typedef VEC(delegation_row) delegation_rows;
// Newest first. report, definition and grant are left empty.
[[nodiscard]] dep_status store_delegation_list(arena *a, store *s, size_t limit, delegation_rows *ret,
                                               dep_err *err);

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

// store: what its files share. Private to src/store.
//
// Statements are prepared once and kept. At most one is being read at any time; whoever needs one ends the
// one before, so that a caller that was unwound by a failed allocation leaves nothing locked.
#pragma once
#include <deputy/store.h>
#include <sqlite3.h>

// STORE_STATEMENTS: how many kinds of statements there may be; a test uses every function of one store.
enum { STORE_STATEMENTS = 96, STORE_SCHEMA = 2, STORE_ID_DIGITS = 32, STORE_POKES = 16 };

struct store {
    sqlite3 *db;
    struct {
        const char *sql; // compared by address
        sqlite3_stmt *st;
    } kept[STORE_STATEMENTS];
    size_t n_kept;
    sqlite3_stmt *active;
    int bind_failed; // code of the first value of the active statement that could not be bound
    int dir;         // the state directory; -1: closed
    int run_dir, run_lock, run_socket;
    int64_t workspace; // -1: this workspace has no rows yet, and reading adds none
    str path;          // of the database, for messages
    char run_id[STORE_ID_DIGITS + 1];
    const sys_clock *clock;
    int patience_ms; // how long SQLite waits for another process
    bool read_only;
    bool full_sync; // what PRAGMA synchronous says now
    // An op of store_do is running here: what begins to write becomes a part of its transaction.
    bool in_op, part;
    store_mode op_mode;
    // Processes to tell after the commit; more than these find their commands by polling.
    char pokes[STORE_POKES][STORE_ID_DIGITS + 1];
    size_t n_pokes;
    str notice;
};

// --- sql.c -----------------------------------------------------------------------------------------------
// Error for the last failure of SQLite, with the path and, where there is one, the next step.
dep_status sql_fail(const store *s, dep_err *err);
// How long the next statements wait for another process.
void sql_patience(store *s, int ms);
// Runs statements without values or rows.
[[nodiscard]] dep_status sql_exec(store *s, const char *sql, dep_err *err);
// sql must be a constant: it is remembered by its address.
[[nodiscard]] dep_status sql_use(store *s, const char *sql, dep_err *err);
// One statement without values or rows, prepared once; a constant too.
[[nodiscard]] dep_status sql_do(store *s, const char *sql, dep_err *err);
// Values of the active statement, from 1. Texts must live until sql_end.
void sql_text(store *s, int i, str v);
void sql_int(store *s, int i, int64_t v);
// One step; *row (may be NULL) says whether a row is there.
[[nodiscard]] dep_status sql_step(store *s, bool *row, dep_err *err);
int64_t sql_col_int(const store *s, int i);
str sql_col(arena *a, const store *s, int i);
// As sql_col, but only until the next step.
str sql_col_now(const store *s, int i);
void sql_end(store *s);
// Begins writing; full: the commit is on the disk before it returns. Within an op of store_do it begins a
// part of the op's transaction, which can be undone alone; INTERNAL when the op's mode does not allow as
// much.
[[nodiscard]] dep_status sql_begin(store *s, bool full, dep_err *err);
// Only the last of these errors: for functions that find out later whether there is something to write.
[[nodiscard]] dep_status sql_may_begin(const store *s, bool full, dep_err *err);
// Commits when status is OK, else rolls back. Returns status, or the failure of the commit.
[[nodiscard]] dep_status sql_finish(store *s, dep_status status, dep_err *err);
// False when SQLite itself has rolled back, as it does after some errors.
bool sql_in_transaction(const store *s);
// REFUSED for a store that is open for reading only.
[[nodiscard]] dep_status store_writable(const store *s, dep_err *err);
// The wall clock; never 0, which stands for "not yet" in the tables.
int64_t store_now(const store *s);

// --- migrate.c -------------------------------------------------------------------------------------------
// *version: 0 for an empty database. Errors: REFUSED for a newer one, INVALID for one that is not Deputy's.
[[nodiscard]] dep_status migrate_version(store *s, int64_t *version, dep_err *err);
// Brings the schema to STORE_SCHEMA, in one transaction.
[[nodiscard]] dep_status migrate_run(store *s, dep_err *err);
// Lets a connection that may only read show an older database as one of STORE_SCHEMA.
[[nodiscard]] dep_status migrate_reading(store *s, int64_t version, dep_err *err);

// --- netfs.c ---------------------------------------------------------------------------------------------
// What kind of network file system this is, or NULL. magic: of statfs; type: of the mount ("fuse.sshfs"), may
// be empty.
const char *netfs_name(uint64_t magic, str type);
// Type of the mount with this device number in the text of /proc/self/mountinfo; empty when it is not there.
str netfs_mount_type(str mountinfo, unsigned major, unsigned minor);
[[nodiscard]] dep_status netfs_refuse(arena *a, int dir, str path, dep_err *err);

// --- delegation.c ----------------------------------------------------------------------------------------
bool deleg_status_parse(str name, deleg_status *ret);
// 32 lower-case hex digits: the id of a delegation, a thread or a process.
bool store_is_id(str id);
// The first STORE_PREFIX_MIN digits of an id, or more: wanted is trimmed and in lower case. INVALID else.
[[nodiscard]] dep_status store_prefix(str what, str given, str wanted, dep_err *err);
// What a whole id of this workspace stands for; NOT_FOUND.
typedef struct {
    deleg_status status;
    char run_id[STORE_ID_DIGITS + 1];
} deleg_state;
[[nodiscard]] dep_status deleg_find(store *s, str id, deleg_state *ret, dep_err *err);
// The same, and INVALID when it has ended already; what: "become running".
[[nodiscard]] dep_status deleg_unfinished(store *s, str id, const char *what, dep_err *err);
dep_status deleg_absent(str id, dep_err *err);
// The columns of a row but for definition, grant and report, and reading them from the first column on.
#define DELEG_COLUMNS                                                                                        \
    "id, agent, task, description, model, definition_hash, status, end_reason, run_id, thread, resumes, "    \
    "created_ms, started_ms, ended_ms, main, background, delivered_ms"
enum { DELEG_COLUMNS_N = 17 };
void deleg_read(arena *a, store *s, delegation_row *r);

// Ends what has not ended; nothing happens when it has. *done (may be NULL) tells.
[[nodiscard]] dep_status bare_end(store *s, str id, deleg_status status, str end_reason, str report,
                                  bool *done, dep_err *err);

// --- thread.c --------------------------------------------------------------------------------------------
// Marks its report as delivered, within a transaction.
[[nodiscard]] dep_status deleg_deliver(store *s, str id, dep_err *err);

// --- run.c -----------------------------------------------------------------------------------------------
[[nodiscard]] dep_status run_dir_open(store *s, dep_err *err);
// Whether the process that this run belongs to is there.
[[nodiscard]] dep_status run_alive(store *s, str run, bool *ret, dep_err *err);

// --- socket.c --------------------------------------------------------------------------------------------
enum { RUN_SOCKET_NAME = STORE_ID_DIGITS + 6 }; // "<id>.sock" and its NUL
// The id of the run whose socket has this name; empty: no socket's name.
str run_socket_id(str name);
// The socket of this process's run, or -1.
int run_socket_open(int run_dir, const char *run_id);
void run_socket_remove(int run_dir, const char *run_id);
// Tells a process to look for commands. Nothing is reported: it will find them in any case.
void run_socket_poke(int run_dir, const char *run_id);
// Takes what has arrived.
void run_socket_drain(int fd);

// --- command.c -------------------------------------------------------------------------------------------
// Tells the processes that got commands in the transaction that was just committed.
void command_send_pokes(store *s);

// --- shared.c --------------------------------------------------------------------------------------------
// How many ops wait for the next leader, for tests.
size_t store_shared_waiting(store_shared *sh);

// --- recover.c -------------------------------------------------------------------------------------------
// A report of the usual shape for a delegation whose process cannot give one.
typedef struct {
    str id, agent, model, definition_hash;
    deleg_status status;
    str end_reason, text, warning;
    int64_t turns, tool_calls;
} bare_report;
str bare_report_json(arena *a, const bare_report *b);

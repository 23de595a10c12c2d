// store: what its files share. Private to src/store.
//
// Statements are prepared once and kept. At most one is being read at any time; whoever needs one ends the
// one before, so that a caller that was unwound by a failed allocation leaves nothing locked.
#pragma once
#include <deputy/store.h>
#include <sqlite3.h>

enum { STORE_STATEMENTS = 32, STORE_SCHEMA = 1 };

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
    int run_dir, run_lock;
    int64_t workspace; // -1: this workspace has no rows yet, and reading adds none
    str path;          // of the database, for messages
    char run_id[33];
    const sys_clock *clock;
    bool read_only;
    bool full_sync; // what PRAGMA synchronous says now
    str notice;
};

// --- sql.c -----------------------------------------------------------------------------------------------
// Error for the last failure of SQLite, with the path and, where there is one, the next step.
dep_status sql_fail(const store *s, dep_err *err);
// Runs statements without values or rows.
[[nodiscard]] dep_status sql_exec(store *s, const char *sql, dep_err *err);
// sql must be a constant: it is remembered by its address.
[[nodiscard]] dep_status sql_use(store *s, const char *sql, dep_err *err);
// Values of the active statement, from 1. Texts must live until sql_end.
void sql_text(store *s, int i, str v);
void sql_int(store *s, int i, int64_t v);
// One step; *row (may be NULL) says whether a row is there.
[[nodiscard]] dep_status sql_step(store *s, bool *row, dep_err *err);
int64_t sql_col_int(const store *s, int i);
str sql_col(arena *a, const store *s, int i);
void sql_end(store *s);
// Begins writing; full: the commit is on the disk before it returns.
[[nodiscard]] dep_status sql_begin(store *s, bool full, dep_err *err);
// Commits when status is OK, else rolls back. Returns status, or the failure of the commit.
[[nodiscard]] dep_status sql_finish(store *s, dep_status status, dep_err *err);
// REFUSED for a store that is open for reading only.
[[nodiscard]] dep_status store_writable(const store *s, dep_err *err);

// --- migrate.c -------------------------------------------------------------------------------------------
// *version: 0 for an empty database. Errors: REFUSED for a newer one, INVALID for one that is not Deputy's.
[[nodiscard]] dep_status migrate_version(store *s, int64_t *version, dep_err *err);
// Brings the schema to STORE_SCHEMA, in one transaction.
[[nodiscard]] dep_status migrate_run(store *s, dep_err *err);

// --- netfs.c ---------------------------------------------------------------------------------------------
// What kind of network file system this is, or NULL. magic: of statfs; type: of the mount ("fuse.sshfs"), may
// be empty.
const char *netfs_name(uint64_t magic, str type);
// Type of the mount with this device number in the text of /proc/self/mountinfo; empty when it is not there.
str netfs_mount_type(str mountinfo, unsigned major, unsigned minor);
[[nodiscard]] dep_status netfs_refuse(arena *a, int dir, str path, dep_err *err);

// --- delegation.c ----------------------------------------------------------------------------------------
bool deleg_status_parse(str name, deleg_status *ret);
// 32 lower-case hex digits: the id of a delegation or of a process.
bool store_is_id(str id);

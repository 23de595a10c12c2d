// sql: SQLite behind statuses and errors of ours. Knows no table.
#include "store/store_int.h"
#include <errno.h>

dep_status sql_fail(const store *s, dep_err *err) {
    int code = sqlite3_errcode(s->db), os = sqlite3_system_errno(s->db);
    const char *what = sqlite3_errmsg(s->db);
    switch (code & 0xFF) {
    case SQLITE_NOMEM: return err_set(err, DEP_ERR_NOMEM, "out of memory");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set(err, DEP_ERR_BUSY,
                       STR_FMT " is in use by another process and did not become free within %.4g s",
                       STR_ARG(s->path), s->patience_ms / 1000.0);
    case SQLITE_FULL: return err_os(err, ENOSPC, "cannot write " STR_FMT, STR_ARG(s->path));
    case SQLITE_READONLY:
        return err_set(
            err, DEP_ERR_IO,
            STR_FMT " cannot be written (%s); make its directory writable or set XDG_STATE_HOME to another",
            STR_ARG(s->path), what);
    case SQLITE_TOOBIG:
        return err_set(err, DEP_ERR_LIMIT, "a value is too large for " STR_FMT, STR_ARG(s->path));
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(err, DEP_ERR_INVALID, STR_FMT " is damaged (%s); move it aside, a new one is made",
                       STR_ARG(s->path), what);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if (os) return err_os(err, os, STR_FMT " cannot be used (%s)", STR_ARG(s->path), what);
        return err_set(err, DEP_ERR_IO, STR_FMT " cannot be used: %s", STR_ARG(s->path), what);
    default: return err_set(err, DEP_ERR_INTERNAL, STR_FMT ": %s (%d)", STR_ARG(s->path), what, code);
    }
}

void sql_patience(store *s, int ms) {
    s->patience_ms = ms;
    sqlite3_busy_timeout(s->db, ms);
}

dep_status sql_exec(store *s, const char *sql, dep_err *err) {
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? DEP_OK : sql_fail(s, err);
}

void sql_end(store *s) {
    if (!s->active) return;
    sqlite3_reset(s->active);
    sqlite3_clear_bindings(s->active);
    s->active = NULL;
    s->bind_failed = SQLITE_OK;
}

dep_status sql_use(store *s, const char *sql, dep_err *err) {
    sql_end(s);
    for (size_t i = 0; i < s->n_kept; i++) {
        if (s->kept[i].sql != sql) continue;
        s->active = s->kept[i].st;
        return DEP_OK;
    }
    if (s->n_kept == STORE_STATEMENTS) return err_set(err, DEP_ERR_INTERNAL, "too many kinds of statements");
    sqlite3_stmt *st = NULL;
    if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &st, NULL) != SQLITE_OK)
        return sql_fail(s, err);
    s->kept[s->n_kept].sql = sql;
    s->kept[s->n_kept++].st = st;
    s->active = st;
    return DEP_OK;
}

static void note(store *s, int code) {
    if (s->bind_failed == SQLITE_OK) s->bind_failed = code;
}

void sql_text(store *s, int i, str v) {
    note(s, sqlite3_bind_text64(s->active, i, v.p ? v.p : "", v.n, SQLITE_STATIC, SQLITE_UTF8));
}

void sql_int(store *s, int i, int64_t v) {
    note(s, sqlite3_bind_int64(s->active, i, v));
}

dep_status sql_step(store *s, bool *row, dep_err *err) {
    if (s->bind_failed == SQLITE_TOOBIG)
        return err_set(err, DEP_ERR_LIMIT, "a value is too large for " STR_FMT, STR_ARG(s->path));
    if (s->bind_failed != SQLITE_OK) return sql_fail(s, err);
    int code = sqlite3_step(s->active);
    if (code != SQLITE_ROW && code != SQLITE_DONE) return sql_fail(s, err);
    if (row) *row = code == SQLITE_ROW;
    return DEP_OK;
}

int64_t sql_col_int(const store *s, int i) {
    return sqlite3_column_int64(s->active, i);
}

str sql_col_now(const store *s, int i) {
    const void *p = sqlite3_column_text(s->active, i);
    return (str){p, p ? (size_t)sqlite3_column_bytes(s->active, i) : 0};
}

str sql_col(arena *a, const store *s, int i) {
    return str_dup(a, sql_col_now(s, i));
}

dep_status sql_do(store *s, const char *sql, dep_err *err) {
    TRY(sql_use(s, sql, err));
    dep_status status = sql_step(s, NULL, err);
    sql_end(s);
    return status;
}

bool sql_in_transaction(const store *s) {
    return !sqlite3_get_autocommit(s->db);
}

// --- Parts of the transaction of an op -------------------------------------------------------------------

static dep_status part_undo(store *s, dep_err *err) {
    s->part = false;
    // After some errors SQLite has rolled back all of it.
    if (!sql_in_transaction(s)) return DEP_OK;
    TRY(sql_do(s, "ROLLBACK TO part", err));
    return sql_do(s, "RELEASE part", err);
}

dep_status sql_may_begin(const store *s, bool full, dep_err *err) {
    if (!s->in_op || s->op_mode == STORE_WRITE_FULL || (s->op_mode == STORE_WRITE && !full)) return DEP_OK;
    return err_set(err, DEP_ERR_INTERNAL, "an op of store_do writes more than its mode says (%s is needed)",
                   full ? "STORE_WRITE_FULL" : "STORE_WRITE");
}

static dep_status part_begin(store *s, bool full, dep_err *err) {
    TRY(sql_may_begin(s, full, err));
    // Left open only by a caller that was unwound.
    if (s->part) TRY(part_undo(s, err));
    TRY(sql_do(s, "SAVEPOINT part", err));
    s->part = true;
    return DEP_OK;
}

static dep_status part_finish(store *s, dep_status status, dep_err *err) {
    if (status == DEP_OK) {
        status = sql_do(s, "RELEASE part", err);
        if (status == DEP_OK) s->part = false;
    }
    if (status == DEP_OK) return DEP_OK;
    dep_status undone = part_undo(s, NULL);
    // What cannot be undone must not be committed.
    if (undone != DEP_OK && sql_in_transaction(s)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

// --- Transactions ----------------------------------------------------------------------------------------

dep_status sql_begin(store *s, bool full, dep_err *err) {
    sql_end(s);
    if (s->in_op) return part_begin(s, full, err);
    // Left open only by a caller that was unwound.
    if (sql_in_transaction(s)) TRY(sql_exec(s, "ROLLBACK", err));
    if (full != s->full_sync) {
        TRY(sql_exec(s, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL", err));
        s->full_sync = full;
    }
    return sql_do(s, "BEGIN IMMEDIATE", err);
}

dep_status sql_finish(store *s, dep_status status, dep_err *err) {
    sql_end(s);
    if (s->in_op) return part_finish(s, status, err);
    if (status == DEP_OK) status = sql_do(s, "COMMIT", err);
    // SQLite itself has rolled back after some errors.
    if (status != DEP_OK && sql_in_transaction(s)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
    return status;
}

dep_status store_writable(const store *s, dep_err *err) {
    if (!s->read_only) return DEP_OK;
    return err_set(err, DEP_ERR_REFUSED, STR_FMT " is open for reading only", STR_ARG(s->path));
}

int64_t store_now(const store *s) {
    int64_t now = s->clock->now_ms(s->clock->ctx);
    return now > 0 ? now : 1;
}

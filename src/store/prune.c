// prune: removing what has ended. A row of `removed` stays, so that an id that somebody kept can be
// explained.
#include "store/store_int.h"

enum { BATCH = 64 }; // removed in one transaction, so that others can write between two

static constexpr int64_t day_ms = 24 * 3600 * 1000;

// --- One delegation --------------------------------------------------------------------------------------

static dep_status run_for(store *s, const char *sql, str id, dep_err *err) {
    TRY(sql_use(s, sql, err));
    sql_text(s, 1, id);
    return sql_step(s, NULL, err);
}

static dep_status keep_mark(store *s, str id, dep_err *err) {
    TRY(sql_use(s,
                "INSERT INTO removed (workspace_id, id, agent, status, created_ms, started_ms, ended_ms, "
                "removed_ms) SELECT workspace_id, id, agent, status, created_ms, started_ms, ended_ms, ?2 "
                "FROM delegations WHERE id = ?1 ON CONFLICT (id) DO NOTHING",
                err));
    sql_text(s, 1, id);
    sql_int(s, 2, store_now(s));
    return sql_step(s, NULL, err);
}

static dep_status remove_row(store *s, str id, dep_err *err) {
    TRY(keep_mark(s, id, err));
    TRY(run_for(s, "DELETE FROM activity WHERE delegation_id = ?1", id, err));
    TRY(run_for(s, "DELETE FROM messages WHERE delegation_id = ?1", id, err));
    TRY(run_for(s, "DELETE FROM results WHERE delegation_id = ?1", id, err));
    TRY(run_for(s, "DELETE FROM commands WHERE delegation_id = ?1", id, err));
    TRY(run_for(s, "UPDATE delegations SET resumes = '' WHERE resumes <> '' AND resumes = ?1", id, err));
    return run_for(s, "DELETE FROM delegations WHERE id = ?1", id, err);
}

// What is being continued right now is still read.
static dep_status check_unused(store *s, str id, dep_err *err) {
    bool row = false;
    TRY(sql_use(s, "SELECT id FROM delegations WHERE resumes <> '' AND resumes = ?1 AND ended_ms = 0 LIMIT 1",
                err));
    sql_text(s, 1, id);
    TRY(sql_step(s, &row, err));
    if (!row) return DEP_OK;
    str by = sql_col_now(s, 0);
    return err_set(err, DEP_ERR_INVALID,
                   "delegation " STR_FMT " is being continued by " STR_FMT ", which has not ended",
                   STR_ARG(id), STR_ARG(by));
}

static dep_status remove_one(store *s, str id, dep_err *err) {
    deleg_state now;
    TRY(deleg_find(s, id, &now, err));
    if (!deleg_ended(now.status))
        return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT " has not ended (%s); stop it first",
                       STR_ARG(id), deleg_status_name(now.status));
    TRY(check_unused(s, id, err));
    return remove_row(s, id, err);
}

dep_status store_delegation_remove(store *s, str id, dep_err *err) {
    TRY(store_writable(s, err));
    TRY(sql_begin(s, true, err));
    return sql_finish(s, remove_one(s, id, err), err);
}

// --- Retention -------------------------------------------------------------------------------------------

// Rows that ended before this one are too old or too many.
typedef struct {
    int64_t ended_ms, ordinal, kept_since;
} bound;

static dep_status find_bound(store *s, int64_t days, int64_t count, bound *ret, dep_err *err) {
    int64_t now = store_now(s);
    // A clock that is behind leaves nothing to remove.
    bound b = {.ended_ms = days && now / day_ms >= days ? now - days * day_ms : 0,
               .kept_since = now - STORE_KEEP_DAYS * day_ms};
    if (count) {
        bool row = false;
        TRY(sql_use(s,
                    "SELECT ended_ms, ordinal FROM delegations WHERE workspace_id = ?1 AND ended_ms > 0 "
                    "ORDER BY ended_ms DESC, ordinal DESC LIMIT 1 OFFSET ?2",
                    err));
        sql_int(s, 1, s->workspace);
        sql_int(s, 2, count - 1);
        dep_status status = sql_step(s, &row, err);
        if (status == DEP_OK && row && sql_col_int(s, 0) >= b.ended_ms) {
            b.ended_ms = sql_col_int(s, 0);
            b.ordinal = sql_col_int(s, 1);
        }
        sql_end(s);
        TRY(status);
    }
    *ret = b;
    return DEP_OK;
}

typedef struct {
    char id[STORE_ID_DIGITS];
} old_row;

static dep_status list_old(store *s, const bound *b, old_row rows[BATCH], size_t *n, dep_err *err) {
    TRY(sql_use(s,
                "SELECT id FROM delegations AS d WHERE workspace_id = ?1 AND ended_ms > 0 AND "
                "(ended_ms < ?2 OR (ended_ms = ?2 AND ordinal < ?3)) AND "
                "NOT (delivered_ms = 0 AND main = 0 AND ended_ms >= ?4) AND "
                "NOT EXISTS (SELECT 1 FROM delegations AS r WHERE r.resumes <> '' AND r.resumes = d.id AND "
                "r.ended_ms = 0) ORDER BY ended_ms, ordinal LIMIT ?5",
                err));
    sql_int(s, 1, s->workspace);
    sql_int(s, 2, b->ended_ms);
    sql_int(s, 3, b->ordinal);
    sql_int(s, 4, b->kept_since);
    sql_int(s, 5, BATCH);
    for (*n = 0; *n < BATCH; ++*n) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        str id = sql_col_now(s, 0);
        memcpy(rows[*n].id, id.p, id.n < STORE_ID_DIGITS ? id.n : STORE_ID_DIGITS);
    }
    return DEP_OK;
}

static dep_status prune_batch(store *s, const bound *b, size_t *n, dep_err *err) {
    old_row rows[BATCH];
    TRY(list_old(s, b, rows, n, err));
    for (size_t i = 0; i < *n; i++) TRY(remove_row(s, str_n(rows[i].id, STORE_ID_DIGITS), err));
    return DEP_OK;
}

dep_status store_prune(store *s, int64_t days, int64_t count, size_t *removed, dep_err *err) {
    TRY(store_writable(s, err));
    if (days < 0 || count < 0)
        return err_set(err, DEP_ERR_INVALID,
                       "retention is a number of days and a number of delegations, "
                       "0 for no such bound");
    bound b;
    TRY(find_bound(s, days, count, &b, err));
    size_t total = 0;
    for (size_t n = BATCH; n == BATCH; total += n) {
        // Not synced: what a crash brings back is removed the next time.
        TRY(sql_begin(s, false, err));
        TRY(sql_finish(s, prune_batch(s, &b, &n, err), err));
    }
    *removed = total;
    return DEP_OK;
}

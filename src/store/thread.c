// thread: conversations, as what their turns and delegations make of them, and what has not reached them yet.
// A conversation has no row of its own: it is there as long as one of its turns is.
#include "store/store_int.h"

// --- Delivery --------------------------------------------------------------------------------------------

dep_status deleg_deliver(store *s, str id, dep_err *err) {
    deleg_state now;
    TRY(deleg_find(s, id, &now, err));
    if (!deleg_ended(now.status))
        return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT " has no report to deliver yet (%s)",
                       STR_ARG(id), deleg_status_name(now.status));
    TRY(sql_use(s, "UPDATE delegations SET delivered_ms = ?2 WHERE id = ?1 AND delivered_ms = 0", err));
    sql_text(s, 1, id);
    sql_int(s, 2, store_now(s));
    return sql_step(s, NULL, err);
}

dep_status store_delivered(store *s, str id, dep_err *err) {
    TRY(store_writable(s, err));
    TRY(sql_begin(s, true, err));
    return sql_finish(s, deleg_deliver(s, id, err), err);
}

static dep_status read_undelivered(arena *a, store *s, str thread, delegation_rows *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT " DELEG_COLUMNS ", report FROM delegations WHERE workspace_id = ?1 AND thread = ?2 "
                "AND delivered_ms = 0 AND main = 0 AND ended_ms > 0 ORDER BY ended_ms, ordinal",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, thread);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        delegation_row r = {0};
        deleg_read(a, s, &r);
        r.report = sql_col(a, s, DELEG_COLUMNS_N);
        vec_push(a, ret, r);
    }
}

dep_status store_undelivered(arena *a, store *s, str thread, delegation_rows *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    if (!store_is_id(thread))
        return err_set(err, DEP_ERR_INVALID, "the id of a conversation is %d hex digits", STORE_ID_DIGITS);
    delegation_rows rows = {0};
    dep_status status = read_undelivered(a, s, thread, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

// --- Conversations ---------------------------------------------------------------------------------------

static dep_status read_threads(arena *a, store *s, str prefix, size_t limit, thread_rows *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT t.thread, newest.agent, oldest.task, t.created, t.used, t.turns, newest.id FROM "
                "(SELECT thread, min(created_ms) AS created, count(*) AS turns, min(ordinal) AS first, "
                "max(ordinal) AS last, max(CASE WHEN ended_ms > created_ms THEN ended_ms ELSE created_ms "
                "END) AS used "
                "FROM delegations WHERE workspace_id = ?1 AND thread <> '' AND thread >= ?2 AND thread < ?3 "
                "AND main = 1 GROUP BY thread) AS t "
                "JOIN delegations AS oldest ON oldest.ordinal = t.first "
                "JOIN delegations AS newest ON newest.ordinal = t.last "
                "ORDER BY t.used DESC, t.last DESC LIMIT ?4",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, prefix);
    sql_text(s, 3, str_fmt(a, STR_FMT "g", STR_ARG(prefix))); // the letter after the last digit
    sql_int(s, 4, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        thread_row r = {.id = sql_col(a, s, 0),
                        .agent = sql_col(a, s, 1),
                        .title = sql_col(a, s, 2),
                        .created_ms = sql_col_int(s, 3),
                        .used_ms = sql_col_int(s, 4),
                        .turns = sql_col_int(s, 5),
                        .last = sql_col(a, s, 6)};
        vec_push(a, ret, r);
    }
}

dep_status store_thread_list(arena *a, store *s, str id, size_t limit, thread_rows *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    str wanted = str_lower(a, str_trim(id));
    if (wanted.n) TRY(store_prefix(S("conversation"), id, wanted, err));
    thread_rows rows = {0};
    dep_status status = read_threads(a, s, wanted, limit, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

// message: what was said between a delegation and its model, and the whole texts of results that were cut.
// Both are of a delegation that has not ended: what continues it later finds them as they were at its end.
#include "store/store_int.h"

// --- Messages --------------------------------------------------------------------------------------------

static dep_status last_message(store *s, str id, int64_t *ret, dep_err *err) {
    TRY(sql_use(s, "SELECT coalesce(max(seq), 0) FROM messages WHERE delegation_id = ?1", err));
    sql_text(s, 1, id);
    TRY(sql_step(s, NULL, err));
    *ret = sql_col_int(s, 0);
    return DEP_OK;
}

static dep_status add_messages(store *s, str id, const message_row *rows, size_t n, dep_err *err) {
    int64_t seq = 0;
    TRY(deleg_unfinished(s, id, "say anything more", err));
    TRY(last_message(s, id, &seq, err));
    for (size_t i = 0; i < n; i++) {
        TRY(sql_use(s,
                    "INSERT INTO messages (workspace_id, delegation_id, seq, kind, data) "
                    "VALUES (?1, ?2, ?3, ?4, ?5)",
                    err));
        sql_int(s, 1, s->workspace);
        sql_text(s, 2, id);
        sql_int(s, 3, ++seq);
        sql_text(s, 4, rows[i].kind);
        sql_text(s, 5, rows[i].data);
        TRY(sql_step(s, NULL, err));
    }
    return DEP_OK;
}

static dep_status add_and_deliver(store *s, str id, const message_row *rows, size_t n, const str *delivered,
                                  size_t n_delivered, dep_err *err) {
    TRY(add_messages(s, id, rows, n, err));
    for (size_t i = 0; i < n_delivered; i++) TRY(deleg_deliver(s, delivered[i], err));
    return DEP_OK;
}

dep_status store_message_add(store *s, str id, const message_row *rows, size_t n, const str *delivered,
                             size_t n_delivered, bool sync, dep_err *err) {
    TRY(store_writable(s, err));
    TRY(sql_begin(s, sync, err));
    return sql_finish(s, add_and_deliver(s, id, rows, n, delivered, n_delivered, err), err);
}

static dep_status read_messages(arena *a, store *s, str id, message_rows *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT kind, data FROM messages WHERE workspace_id = ?1 AND delegation_id = ?2 ORDER BY seq",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        message_row r = {.kind = sql_col(a, s, 0), .data = sql_col(a, s, 1)};
        vec_push(a, ret, r);
    }
}

dep_status store_message_list(arena *a, store *s, str id, message_rows *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    message_rows rows = {0};
    dep_status status = read_messages(a, s, id, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

// --- Results ---------------------------------------------------------------------------------------------

static dep_status add_result(store *s, str id, str text, int64_t *n, dep_err *err) {
    TRY(deleg_unfinished(s, id, "have more results", err));
    TRY(sql_use(s, "SELECT coalesce(max(n), 0) + 1 FROM results WHERE delegation_id = ?1", err));
    sql_text(s, 1, id);
    TRY(sql_step(s, NULL, err));
    *n = sql_col_int(s, 0);
    TRY(sql_use(s, "INSERT INTO results (workspace_id, delegation_id, n, text) VALUES (?1, ?2, ?3, ?4)",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_int(s, 3, *n);
    sql_text(s, 4, text);
    return sql_step(s, NULL, err);
}

dep_status store_result_add(store *s, str id, str text, int64_t *n, dep_err *err) {
    int64_t number = 0;
    TRY(store_writable(s, err));
    TRY(sql_begin(s, false, err));
    TRY(sql_finish(s, add_result(s, id, text, &number, err), err));
    *n = number;
    return DEP_OK;
}

dep_status store_result_get(arena *a, store *s, str id, int64_t n, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    bool row = false;
    TRY(sql_use(s, "SELECT text FROM results WHERE workspace_id = ?1 AND delegation_id = ?2 AND n = ?3",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_int(s, 3, n);
    dep_status status = sql_step(s, &row, err);
    if (status == DEP_OK && !row)
        status = err_set(err, DEP_ERR_NOT_FOUND, "delegation " STR_FMT " has no result %lld", STR_ARG(id),
                         (long long)n);
    if (status == DEP_OK) *ret = sql_col(a, s, 0);
    sql_end(s);
    return status;
}

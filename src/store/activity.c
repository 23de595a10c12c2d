// activity: what happened within a delegation, item by item, in batches.
#include "store/store_int.h"

// The number of the newest item; 0: none.
static dep_status last_seq(store *s, str id, int64_t *ret, dep_err *err) {
    bool row = false;
    TRY(sql_use(s,
                "SELECT (SELECT coalesce(max(seq), 0) FROM activity WHERE delegation_id = ?2) "
                "FROM delegations WHERE workspace_id = ?1 AND id = ?2",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    TRY(sql_step(s, &row, err));
    if (!row) return deleg_absent(id, err);
    *ret = sql_col_int(s, 0);
    return DEP_OK;
}

static dep_status add_all(store *s, str id, const activity_row *items, size_t n, dep_err *err) {
    int64_t seq = 0;
    TRY(last_seq(s, id, &seq, err));
    for (size_t i = 0; i < n; i++) {
        TRY(sql_use(s,
                    "INSERT INTO activity (workspace_id, delegation_id, seq, at_ms, kind, data) "
                    "VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    err));
        sql_int(s, 1, s->workspace);
        sql_text(s, 2, id);
        sql_int(s, 3, ++seq);
        sql_int(s, 4, items[i].at_ms ? items[i].at_ms : store_now(s));
        sql_text(s, 5, items[i].kind);
        sql_text(s, 6, items[i].data);
        TRY(sql_step(s, NULL, err));
    }
    return DEP_OK;
}

dep_status store_activity_add(store *s, str id, const activity_row *items, size_t n, bool sync,
                              dep_err *err) {
    TRY(store_writable(s, err));
    TRY(sql_begin(s, sync, err));
    return sql_finish(s, add_all(s, id, items, n, err), err);
}

static dep_status read_list(arena *a, store *s, str id, int64_t after, size_t limit, activity_rows *ret,
                            dep_err *err) {
    TRY(sql_use(s,
                "SELECT seq, at_ms, kind, data FROM activity "
                "WHERE workspace_id = ?1 AND delegation_id = ?2 AND seq > ?3 ORDER BY seq LIMIT ?4",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_int(s, 3, after);
    sql_int(s, 4, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        activity_row r = {.seq = sql_col_int(s, 0),
                          .at_ms = sql_col_int(s, 1),
                          .kind = sql_col(a, s, 2),
                          .data = sql_col(a, s, 3)};
        vec_push(a, ret, r);
    }
}

dep_status store_activity_list(arena *a, store *s, str id, int64_t after_seq, size_t limit,
                               activity_rows *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    activity_rows rows = {0};
    dep_status status = read_list(a, s, id, after_seq, limit, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

static dep_status read_last(arena *a, store *s, str id, str kind, activity_row *ret, dep_err *err) {
    bool row = false;
    TRY(sql_use(s,
                "SELECT seq, at_ms, kind, data FROM activity "
                "WHERE workspace_id = ?1 AND delegation_id = ?2 AND kind = ?3 ORDER BY seq DESC LIMIT 1",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_text(s, 3, kind);
    TRY(sql_step(s, &row, err));
    if (row)
        *ret = (activity_row){.seq = sql_col_int(s, 0),
                              .at_ms = sql_col_int(s, 1),
                              .kind = sql_col(a, s, 2),
                              .data = sql_col(a, s, 3)};
    return DEP_OK;
}

dep_status store_activity_last(arena *a, store *s, str id, str kind, activity_row *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    activity_row found = {0};
    dep_status status = read_last(a, s, id, kind, &found, err);
    sql_end(s);
    if (status == DEP_OK) *ret = found;
    return status;
}

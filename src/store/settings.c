// settings: small values of a workspace by key. What the keys mean is their users' business.
#include "store/store_int.h"

dep_status store_setting_get(arena *a, store *s, str key, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    bool row = false;
    TRY(sql_use(s, "SELECT value FROM settings WHERE workspace_id = ?1 AND key = ?2", err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, key);
    dep_status status = sql_step(s, &row, err);
    if (status == DEP_OK) *ret = row ? sql_col(a, s, 0) : (str){0};
    sql_end(s);
    return status;
}

static dep_status write_one(store *s, str key, str value, dep_err *err) {
    if (value.n)
        TRY(sql_use(s,
                    "INSERT INTO settings (workspace_id, key, value) VALUES (?1, ?2, ?3) "
                    "ON CONFLICT (workspace_id, key) DO UPDATE SET value = excluded.value",
                    err));
    else
        TRY(sql_use(s, "DELETE FROM settings WHERE workspace_id = ?1 AND key = ?2", err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, key);
    if (value.n) sql_text(s, 3, value);
    return sql_step(s, NULL, err);
}

dep_status store_setting_set(store *s, str key, str value, dep_err *err) {
    TRY(store_writable(s, err));
    if (key.n == 0) return err_set(err, DEP_ERR_INVALID, "a setting needs a key");
    TRY(sql_begin(s, true, err));
    return sql_finish(s, write_one(s, key, value, err), err);
}

static dep_status read_list(arena *a, store *s, str prefix, settings *ret, dep_err *err) {
    TRY(sql_use(s, "SELECT key, value FROM settings WHERE workspace_id = ?1 ORDER BY key", err));
    sql_int(s, 1, s->workspace);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        setting v = {.key = sql_col(a, s, 0), .value = sql_col(a, s, 1)};
        if (str_starts(v.key, prefix)) vec_push(a, ret, v);
    }
}

dep_status store_settings(arena *a, store *s, str prefix, settings *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    settings found = {0};
    dep_status status = read_list(a, s, prefix, &found, err);
    sql_end(s);
    if (status == DEP_OK) *ret = found;
    return status;
}

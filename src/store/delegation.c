// delegation: rows of delegations. What has ended stays as it ended: the first end wins, whoever comes second
// is told.
#include "store/store_int.h"

static const char *const status_names[] = {
    [DELEG_QUEUED] = "queued",       [DELEG_RUNNING] = "running",         [DELEG_WAITING] = "waiting",
    [DELEG_COMPLETED] = "completed", [DELEG_TRUNCATED] = "truncated",     [DELEG_FAILED] = "failed",
    [DELEG_STOPPED] = "stopped",     [DELEG_INTERRUPTED] = "interrupted",
};
enum { STATUSES = sizeof status_names / sizeof *status_names };

const char *deleg_status_name(deleg_status s) {
    return (size_t)s < STATUSES ? status_names[s] : "unknown";
}

bool deleg_status_parse(str name, deleg_status *ret) {
    for (size_t i = 0; i < STATUSES; i++) {
        if (!str_eq(name, str_z(status_names[i]))) continue;
        *ret = (deleg_status)i;
        return true;
    }
    return false;
}

enum { ID_DIGITS = 32, CANDIDATES_SHOWN = 5 };

static bool hex_digits(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) return false;
    return true;
}

bool store_is_id(str id) {
    return id.n == ID_DIGITS && hex_digits(id);
}

static dep_status insert(store *s, const delegation_row *r, dep_err *err) {
    TRY(sql_use(s,
                "INSERT INTO delegations (workspace_id, id, agent, task, description, model, "
                "definition_hash, definition, grant_json, "
                "status, end_reason, created_ms, started_ms, ended_ms, report, run_id) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, '', ?11, ?12, 0, '', ?13)",
                err));
    int64_t now = s->clock->now_ms(s->clock->ctx);
    const str texts[] = {r->id,          r->agent, r->task,
                         r->description, r->model, r->definition_hash,
                         r->definition,  r->grant, str_z(deleg_status_name(r->status))};
    sql_int(s, 1, s->workspace);
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) sql_text(s, i + 2, texts[i]);
    sql_int(s, 11, r->created_ms ? r->created_ms : now);
    sql_int(s, 12, r->status == DELEG_RUNNING ? (r->started_ms ? r->started_ms : now) : 0);
    sql_text(s, 13, r->run_id.n ? r->run_id : str_z(s->run_id));
    dep_err why;
    dep_status status = sql_step(s, NULL, &why);
    if (status != DEP_OK && (sqlite3_errcode(s->db) & 0xFF) == SQLITE_CONSTRAINT)
        return err_set(err, DEP_ERR_EXISTS, "there is a delegation " STR_FMT " already", STR_ARG(r->id));
    if (status != DEP_OK && err) *err = why;
    return status;
}

dep_status store_delegation_add(store *s, const delegation_row *row, dep_err *err) {
    TRY(store_writable(s, err));
    if (!store_is_id(row->id))
        return err_set(err, DEP_ERR_INVALID, "the id of a delegation is %d hex digits", ID_DIGITS);
    if (deleg_ended(row->status))
        return err_set(err, DEP_ERR_INVALID, "a delegation does not begin as %s",
                       deleg_status_name(row->status));
    if (row->run_id.n && !store_is_id(row->run_id))
        return err_set(err, DEP_ERR_INVALID, "the id of a process is %d hex digits", ID_DIGITS);
    TRY(sql_begin(s, true, err));
    return sql_finish(s, insert(s, row, err), err);
}

// Why an update found no row.
static dep_status refuse_change(store *s, str id, deleg_status wanted, dep_err *err) {
    bool row = false;
    TRY(sql_use(s, "SELECT status FROM delegations WHERE workspace_id = ?1 AND id = ?2", err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    TRY(sql_step(s, &row, err));
    if (!row) return err_set(err, DEP_ERR_NOT_FOUND, "there is no delegation " STR_FMT, STR_ARG(id));
    return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT " has already ended (%s) and cannot become %s",
                   STR_ARG(id), (const char *)sqlite3_column_text(s->active, 0), deleg_status_name(wanted));
}

static dep_status update(store *s, str id, deleg_status status, str end_reason, str report, dep_err *err) {
    TRY(sql_use(s,
                "UPDATE delegations SET status = ?3, end_reason = ?4, report = ?5, ended_ms = ?6, "
                "started_ms = CASE WHEN started_ms = 0 AND ?7 THEN ?8 ELSE started_ms END "
                "WHERE workspace_id = ?1 AND id = ?2 AND ended_ms = 0",
                err));
    int64_t now = s->clock->now_ms(s->clock->ctx);
    if (now <= 0) now = 1; // 0 means: not ended
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_text(s, 3, str_z(deleg_status_name(status)));
    sql_text(s, 4, end_reason);
    sql_text(s, 5, report);
    sql_int(s, 6, deleg_ended(status) ? now : 0);
    sql_int(s, 7, status == DELEG_RUNNING);
    sql_int(s, 8, now);
    TRY(sql_step(s, NULL, err));
    return sqlite3_changes(s->db) == 1 ? DEP_OK : refuse_change(s, id, status, err);
}

dep_status store_delegation_status(store *s, str id, deleg_status status, str end_reason, str report_json,
                                   dep_err *err) {
    TRY(store_writable(s, err));
    if (deleg_ended(status) != (report_json.n > 0))
        return err_set(err, DEP_ERR_INVALID, "a delegation has a report exactly when it has ended (%s)",
                       deleg_status_name(status));
    TRY(sql_begin(s, true, err));
    return sql_finish(s, update(s, id, status, end_reason, report_json, err), err);
}

// --- Reading ---------------------------------------------------------------------------------------------

#define SHORT_COLUMNS                                                                                        \
    "id, agent, task, description, model, definition_hash, status, end_reason, created_ms, started_ms, "     \
    "ended_ms, run_id"

static void read_row(arena *a, store *s, delegation_row *r) {
    str *const texts[] = {&r->id, &r->agent, &r->task, &r->description, &r->model, &r->definition_hash};
    for (int i = 0; i < 6; i++) *texts[i] = sql_col(a, s, i);
    r->status = DELEG_INTERRUPTED;
    deleg_status_parse(sql_col(a, s, 6), &r->status);
    r->end_reason = sql_col(a, s, 7);
    r->created_ms = sql_col_int(s, 8);
    r->started_ms = sql_col_int(s, 9);
    r->ended_ms = sql_col_int(s, 10);
    r->run_id = sql_col(a, s, 11);
}

// The whole id for a prefix, of this workspace.
static dep_status resolve_id(arena *a, store *s, str prefix, str *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT id, agent FROM delegations WHERE workspace_id = ?1 AND id >= ?2 AND id < ?3 "
                "ORDER BY created_ms DESC, ordinal DESC LIMIT ?4",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, prefix);
    sql_text(s, 3, str_fmt(a, STR_FMT "g", STR_ARG(prefix))); // the letter after the last digit
    sql_int(s, 4, CANDIDATES_SHOWN + 1);
    buf names = buf_new(a, 0);
    size_t n = 0;
    for (bool row = true; row;) {
        TRY(sql_step(s, &row, err));
        if (!row || n++ == CANDIDATES_SHOWN) continue;
        str id = sql_col(a, s, 0);
        if (n == 1) *ret = id;
        str agent = sql_col(a, s, 1);
        buf_addf(&names, "%s" STR_FMT " (" STR_FMT ")", n > 1 ? ", " : "", STR_ARG(id), STR_ARG(agent));
    }
    if (n == 0)
        return err_set(err, DEP_ERR_NOT_FOUND, "there is no delegation " STR_FMT " in this workspace",
                       STR_ARG(prefix));
    if (n > CANDIDATES_SHOWN) buf_add(&names, S(", …"));
    str all = buf_str(&names);
    return n == 1 ? DEP_OK
                  : err_set(err, DEP_ERR_INVALID, STR_FMT " stands for several delegations: " STR_FMT,
                            STR_ARG(prefix), STR_ARG(all));
}

static dep_status get_whole(arena *a, store *s, str id, delegation_row *ret, dep_err *err) {
    bool row = false;
    TRY(sql_use(s,
                "SELECT " SHORT_COLUMNS
                ", definition, grant_json, report FROM delegations WHERE workspace_id = ?1 AND id = ?2",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    TRY(sql_step(s, &row, err));
    if (!row)
        return err_set(err, DEP_ERR_NOT_FOUND, "there is no delegation " STR_FMT " in this workspace",
                       STR_ARG(id));
    delegation_row r = {0};
    read_row(a, s, &r);
    r.definition = sql_col(a, s, 12);
    r.grant = sql_col(a, s, 13);
    r.report = sql_col(a, s, 14);
    *ret = r;
    return DEP_OK;
}

dep_status store_delegation_get(arena *a, store *s, str id, delegation_row *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    str wanted = str_lower(a, str_trim(id));
    if (!hex_digits(wanted) || wanted.n < STORE_PREFIX_MIN || wanted.n > ID_DIGITS)
        return err_set(err, DEP_ERR_INVALID,
                       "'" STR_FMT "' is not the id of a delegation: %d hex digits, or at least the first %d",
                       STR_ARG(id), ID_DIGITS, STORE_PREFIX_MIN);
    dep_status status = wanted.n == ID_DIGITS ? DEP_OK : resolve_id(a, s, wanted, &wanted, err);
    if (status == DEP_OK) status = get_whole(a, s, wanted, ret, err);
    sql_end(s);
    return status;
}

static dep_status read_list(arena *a, store *s, size_t limit, delegation_rows *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT " SHORT_COLUMNS
                " FROM delegations WHERE workspace_id = ?1 ORDER BY created_ms DESC, ordinal DESC LIMIT ?2",
                err));
    sql_int(s, 1, s->workspace);
    sql_int(s, 2, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        delegation_row r = {0};
        read_row(a, s, &r);
        vec_push(a, ret, r);
    }
}

dep_status store_delegation_list(arena *a, store *s, str thread, size_t limit, delegation_rows *ret,
                                 dep_err *err) {
    (void)thread;
    ARENA_CATCH(a, err);
    delegation_rows rows = {0};
    dep_status status = read_list(a, s, limit, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

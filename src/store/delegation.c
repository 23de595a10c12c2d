// delegation: rows of delegations. What has ended stays as it ended: the first end wins, whoever comes second
// is told.
#include "store/store_int.h"
#include <stdio.h>

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

enum { CANDIDATES_SHOWN = 5 };

static bool hex_digits(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) return false;
    return true;
}

bool store_is_id(str id) {
    return id.n == STORE_ID_DIGITS && hex_digits(id);
}

dep_status store_prefix(str what, str given, str wanted, dep_err *err) {
    if (hex_digits(wanted) && wanted.n >= STORE_PREFIX_MIN && wanted.n <= STORE_ID_DIGITS) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID,
                   "'" STR_FMT "' is not the id of a " STR_FMT ": %d hex digits, or at least the first %d",
                   STR_ARG(given), STR_ARG(what), STORE_ID_DIGITS, STORE_PREFIX_MIN);
}

// --- One row by its id -----------------------------------------------------------------------------------

dep_status deleg_absent(str id, dep_err *err) {
    return err_set(err, DEP_ERR_NOT_FOUND, "there is no delegation " STR_FMT " in this workspace",
                   STR_ARG(id));
}

dep_status deleg_find(store *s, str id, deleg_state *ret, dep_err *err) {
    bool row = false;
    TRY(sql_use(s, "SELECT status, run_id FROM delegations WHERE workspace_id = ?1 AND id = ?2", err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    dep_status status = sql_step(s, &row, err);
    if (status == DEP_OK && !row) status = deleg_absent(id, err);
    if (status == DEP_OK) {
        deleg_state found = {.status = DELEG_INTERRUPTED};
        deleg_status_parse(sql_col_now(s, 0), &found.status);
        str run = sql_col_now(s, 1);
        if (store_is_id(run)) memcpy(found.run_id, run.p, run.n);
        *ret = found;
    }
    sql_end(s);
    return status;
}

dep_status deleg_unfinished(store *s, str id, const char *what, dep_err *err) {
    deleg_state now;
    TRY(deleg_find(s, id, &now, err));
    if (!deleg_ended(now.status)) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT " has already ended (%s) and cannot %s",
                   STR_ARG(id), deleg_status_name(now.status), what);
}

// --- Making ----------------------------------------------------------------------------------------------

// A row that any process may take.
static bool for_anybody(const delegation_row *r) {
    return str_eq(r->run_id, S("-"));
}

static dep_status check_row(const delegation_row *r, dep_err *err) {
    if (!store_is_id(r->id))
        return err_set(err, DEP_ERR_INVALID, "the id of a delegation is %d hex digits", STORE_ID_DIGITS);
    if (r->thread.n && !store_is_id(r->thread))
        return err_set(err, DEP_ERR_INVALID, "the id of a conversation is %d hex digits", STORE_ID_DIGITS);
    if (r->run_id.n && !for_anybody(r) && !store_is_id(r->run_id))
        return err_set(err, DEP_ERR_INVALID, "the id of a process is %d hex digits", STORE_ID_DIGITS);
    if (deleg_ended(r->status))
        return err_set(err, DEP_ERR_INVALID, "a delegation does not begin as %s",
                       deleg_status_name(r->status));
    if (for_anybody(r) && r->status != DELEG_QUEUED)
        return err_set(err, DEP_ERR_INVALID, "a delegation that no process has is queued, not %s",
                       deleg_status_name(r->status));
    return DEP_OK;
}

static dep_status check_resumed(store *s, str id, dep_err *err) {
    if (!id.n) return DEP_OK;
    deleg_state old;
    dep_status status = deleg_find(s, id, &old, err);
    if (status == DEP_ERR_NOT_FOUND)
        return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT ", which is to be continued, is not there",
                       STR_ARG(id));
    if (status == DEP_OK && !deleg_ended(old.status))
        return err_set(err, DEP_ERR_INVALID,
                       "delegation " STR_FMT ", which is to be continued, has not ended (%s)", STR_ARG(id),
                       deleg_status_name(old.status));
    return status;
}

static dep_status insert(store *s, const delegation_row *r, dep_err *err) {
    TRY(check_resumed(s, r->resumes, err));
    TRY(sql_use(s,
                "INSERT INTO delegations (workspace_id, id, agent, task, description, model, "
                "definition_hash, definition, grant_json, "
                "status, end_reason, created_ms, started_ms, ended_ms, report, run_id, "
                "thread, resumes, main, background, delivered_ms) "
                "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, '', ?14, ?15, 0, '', ?11, ?12, ?13, ?16, "
                "?17, 0)",
                err));
    int64_t now = store_now(s);
    str run = for_anybody(r) ? (str){0} : r->run_id.n ? r->run_id : str_z(s->run_id);
    const str texts[] = {r->id,
                         r->agent,
                         r->task,
                         r->description,
                         r->model,
                         r->definition_hash,
                         r->definition,
                         r->grant,
                         str_z(deleg_status_name(r->status)),
                         run,
                         r->thread,
                         r->resumes};
    sql_int(s, 1, s->workspace);
    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++) sql_text(s, i + 2, texts[i]);
    sql_int(s, 14, r->created_ms ? r->created_ms : now);
    sql_int(s, 15, r->status == DELEG_RUNNING ? (r->started_ms ? r->started_ms : now) : 0);
    sql_int(s, 16, r->main);
    sql_int(s, 17, r->background);
    dep_err why;
    dep_status status = sql_step(s, NULL, &why);
    if (status != DEP_OK && (sqlite3_errcode(s->db) & 0xFF) == SQLITE_CONSTRAINT)
        return err_set(err, DEP_ERR_EXISTS, "there is a delegation " STR_FMT " already", STR_ARG(r->id));
    if (status != DEP_OK && err) *err = why;
    return status;
}

dep_status store_delegation_add(store *s, const delegation_row *row, dep_err *err) {
    TRY(store_writable(s, err));
    TRY(check_row(row, err));
    TRY(sql_begin(s, true, err));
    return sql_finish(s, insert(s, row, err), err);
}

// --- Changing --------------------------------------------------------------------------------------------

// Why an update found no row.
static dep_status refuse_change(store *s, str id, deleg_status wanted, dep_err *err) {
    char what[32];
    snprintf(what, sizeof what, "become %s", deleg_status_name(wanted));
    TRY(deleg_unfinished(s, id, what, err));
    return err_set(err, DEP_ERR_INTERNAL, "delegation " STR_FMT " did not %s", STR_ARG(id), what);
}

static dep_status drop_commands(store *s, str id, dep_err *err) {
    TRY(sql_use(s, "DELETE FROM commands WHERE delegation_id = ?1", err));
    sql_text(s, 1, id);
    return sql_step(s, NULL, err);
}

static dep_status update(store *s, str id, deleg_status status, str end_reason, str report, dep_err *err) {
    TRY(sql_use(s,
                "UPDATE delegations SET status = ?3, end_reason = ?4, report = ?5, ended_ms = ?6, "
                "started_ms = CASE WHEN started_ms = 0 AND ?7 = 1 THEN ?8 ELSE started_ms END "
                "WHERE workspace_id = ?1 AND id = ?2 AND ended_ms = 0",
                err));
    int64_t now = store_now(s);
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_text(s, 3, str_z(deleg_status_name(status)));
    sql_text(s, 4, end_reason);
    sql_text(s, 5, report);
    sql_int(s, 6, deleg_ended(status) ? now : 0);
    sql_int(s, 7, status == DELEG_RUNNING);
    sql_int(s, 8, now);
    TRY(sql_step(s, NULL, err));
    if (sqlite3_changes(s->db) != 1) return refuse_change(s, id, status, err);
    return deleg_ended(status) ? drop_commands(s, id, err) : DEP_OK;
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

dep_status bare_end(store *s, str id, deleg_status status, str end_reason, str report, bool *done,
                    dep_err *err) {
    TRY(sql_use(s,
                "UPDATE delegations SET status = ?2, end_reason = ?3, report = ?4, ended_ms = ?5 "
                "WHERE id = ?1 AND ended_ms = 0",
                err));
    sql_text(s, 1, id);
    sql_text(s, 2, str_z(deleg_status_name(status)));
    sql_text(s, 3, end_reason);
    sql_text(s, 4, report);
    sql_int(s, 5, store_now(s));
    TRY(sql_step(s, NULL, err));
    if (done) *done = sqlite3_changes(s->db) > 0;
    return drop_commands(s, id, err);
}

// Free to be taken: nobody has it, this process has it already, or who had it is gone.
static dep_status check_free(store *s, str id, const deleg_state *now, dep_err *err) {
    if (now->status != DELEG_QUEUED)
        return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT " is not queued (%s)", STR_ARG(id),
                       deleg_status_name(now->status));
    bool alive = false;
    if (now->run_id[0] && strcmp(now->run_id, s->run_id) != 0)
        TRY(run_alive(s, str_z(now->run_id), &alive, err));
    if (!alive) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID, "another process has delegation " STR_FMT, STR_ARG(id));
}

static dep_status take(store *s, str id, dep_err *err) {
    deleg_state now;
    TRY(deleg_find(s, id, &now, err));
    TRY(check_free(s, id, &now, err));
    TRY(sql_use(s, "UPDATE delegations SET status = 'running', started_ms = ?2, run_id = ?3 WHERE id = ?1",
                err));
    sql_text(s, 1, id);
    sql_int(s, 2, store_now(s));
    sql_text(s, 3, str_z(s->run_id));
    return sql_step(s, NULL, err);
}

dep_status store_delegation_take(store *s, str id, dep_err *err) {
    TRY(store_writable(s, err));
    if (!s->run_id[0])
        return err_set(err, DEP_ERR_INTERNAL, "a process that runs delegations begins a run first");
    TRY(sql_begin(s, true, err));
    return sql_finish(s, take(s, id, err), err);
}

// --- Reading ---------------------------------------------------------------------------------------------

void deleg_read(arena *a, store *s, delegation_row *r) {
    str status;
    str *const texts[] = {&r->id,     &r->agent,           &r->task,   &r->description,
                          &r->model,  &r->definition_hash, &status,    &r->end_reason,
                          &r->run_id, &r->thread,          &r->resumes};
    enum { TEXTS = sizeof texts / sizeof *texts };
    for (int i = 0; i < TEXTS; i++) *texts[i] = sql_col(a, s, i);
    r->status = DELEG_INTERRUPTED;
    deleg_status_parse(status, &r->status);
    r->created_ms = sql_col_int(s, TEXTS);
    r->started_ms = sql_col_int(s, TEXTS + 1);
    r->ended_ms = sql_col_int(s, TEXTS + 2);
    r->main = sql_col_int(s, TEXTS + 3) != 0;
    r->background = sql_col_int(s, TEXTS + 4) != 0;
    r->delivered_ms = sql_col_int(s, TEXTS + 5);
    static_assert(TEXTS + 6 == DELEG_COLUMNS_N);
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
    if (n == 0) return deleg_absent(prefix, err);
    if (n > CANDIDATES_SHOWN) buf_add(&names, S(", …"));
    str all = buf_str(&names);
    return n == 1 ? DEP_OK
                  : err_set(err, DEP_ERR_INVALID, STR_FMT " stands for several delegations: " STR_FMT,
                            STR_ARG(prefix), STR_ARG(all));
}

static dep_status get_whole(arena *a, store *s, str id, delegation_row *ret, dep_err *err) {
    bool row = false;
    TRY(sql_use(s,
                "SELECT " DELEG_COLUMNS
                ", definition, grant_json, report FROM delegations WHERE workspace_id = ?1 AND id = ?2",
                err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    TRY(sql_step(s, &row, err));
    if (!row) return deleg_absent(id, err);
    delegation_row r = {0};
    deleg_read(a, s, &r);
    r.definition = sql_col(a, s, DELEG_COLUMNS_N);
    r.grant = sql_col(a, s, DELEG_COLUMNS_N + 1);
    r.report = sql_col(a, s, DELEG_COLUMNS_N + 2);
    *ret = r;
    return DEP_OK;
}

dep_status store_delegation_get(arena *a, store *s, str id, delegation_row *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    str wanted = str_lower(a, str_trim(id));
    TRY(store_prefix(S("delegation"), id, wanted, err));
    dep_status status = wanted.n == STORE_ID_DIGITS ? DEP_OK : resolve_id(a, s, wanted, &wanted, err);
    if (status == DEP_OK) status = get_whole(a, s, wanted, ret, err);
    sql_end(s);
    return status;
}

// Several statements, so that each has its index.
static dep_status use_list(store *s, str thread, dep_err *err) {
    bool all = str_eq(thread, S("*"));
    if (all)
        TRY(sql_use(s,
                    "SELECT " DELEG_COLUMNS " FROM delegations WHERE workspace_id = ?1 "
                    "ORDER BY created_ms DESC, ordinal DESC LIMIT ?2",
                    err));
    else if (thread.n)
        TRY(sql_use(s,
                    "SELECT " DELEG_COLUMNS " FROM delegations WHERE workspace_id = ?1 AND thread <> '' AND "
                    "thread = ?3 ORDER BY created_ms DESC, ordinal DESC LIMIT ?2",
                    err));
    else
        TRY(sql_use(s,
                    "SELECT " DELEG_COLUMNS " FROM delegations WHERE workspace_id = ?1 AND main = 0 "
                    "ORDER BY created_ms DESC, ordinal DESC LIMIT ?2",
                    err));
    sql_int(s, 1, s->workspace);
    if (thread.n && !all) sql_text(s, 3, thread);
    return DEP_OK;
}

static dep_status read_rows(arena *a, store *s, delegation_rows *ret, dep_err *err) {
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        delegation_row r = {0};
        deleg_read(a, s, &r);
        vec_push(a, ret, r);
    }
}

static dep_status read_list(arena *a, store *s, str thread, size_t limit, delegation_rows *ret,
                            dep_err *err) {
    TRY(use_list(s, thread, err));
    sql_int(s, 2, limit < INT64_MAX ? (int64_t)limit : INT64_MAX);
    return read_rows(a, s, ret, err);
}

dep_status store_delegation_list(arena *a, store *s, str thread, size_t limit, delegation_rows *ret,
                                 dep_err *err) {
    ARENA_CATCH(a, err);
    if (thread.n && !str_eq(thread, S("*")) && !store_is_id(thread))
        return err_set(err, DEP_ERR_INVALID, "the id of a conversation is %d hex digits", STORE_ID_DIGITS);
    delegation_rows rows = {0};
    dep_status status = read_list(a, s, thread, limit, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

static dep_status read_unfinished(arena *a, store *s, delegation_rows *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT " DELEG_COLUMNS " FROM delegations WHERE workspace_id = ?1 AND ended_ms = 0 "
                "ORDER BY created_ms, ordinal",
                err));
    sql_int(s, 1, s->workspace);
    return read_rows(a, s, ret, err);
}

dep_status store_unfinished(arena *a, store *s, delegation_rows *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    delegation_rows rows = {0};
    dep_status status = read_unfinished(a, s, &rows, err);
    sql_end(s);
    if (status == DEP_OK) *ret = rows;
    return status;
}

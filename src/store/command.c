// command: what one process asks of another's delegation: a row, and a datagram that says that it is there.
// A row lives as long as its delegation has not ended.
#include "store/store_int.h"

int store_run_socket(const store *s) {
    return s->run_socket;
}

// --- Asking ----------------------------------------------------------------------------------------------

static dep_status insert(store *s, str id, str verb, dep_err *err) {
    TRY(sql_use(
        s,
        "INSERT INTO commands (workspace_id, delegation_id, verb, created_ms) VALUES (?1, ?2, ?3, ?4) "
        "ON CONFLICT (delegation_id, verb) DO NOTHING",
        err));
    sql_int(s, 1, s->workspace);
    sql_text(s, 2, id);
    sql_text(s, 3, verb);
    sql_int(s, 4, store_now(s));
    return sql_step(s, NULL, err);
}

// Nobody would answer: it ends here. report is its report in that case.
static dep_status add(store *s, str id, str verb, str report, deleg_state *now, dep_err *err) {
    TRY(deleg_find(s, id, now, err));
    if (deleg_ended(now->status))
        return err_set(err, DEP_ERR_INVALID, "delegation " STR_FMT " has already ended (%s)", STR_ARG(id),
                       deleg_status_name(now->status));
    if (now->status == DELEG_QUEUED && !now->run_id[0])
        return bare_end(s, id, DELEG_STOPPED, S("stopped"), report, NULL, err);
    return insert(s, id, verb, err);
}

// The report that it gets when it is stopped before it began. Made first: nothing allocates in a transaction.
static dep_status stopped_report(arena *a, store *s, str id, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    delegation_row row;
    TRY(store_delegation_get(a, s, id, &row, err));
    *ret = bare_report_json(a, &(bare_report){.id = row.id,
                                              .agent = row.agent,
                                              .model = row.model,
                                              .definition_hash = row.definition_hash,
                                              .status = DELEG_STOPPED,
                                              .end_reason = S("stopped"),
                                              .warning = S("it was stopped before it began")});
    return DEP_OK;
}

static dep_status check_verb(str id, str verb, dep_err *err) {
    if (!store_is_id(id)) return deleg_absent(id, err);
    if (str_eq(verb, S("stop"))) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID, "'" STR_FMT "' is no command to a delegation; there is: stop",
                   STR_ARG(verb));
}

void command_send_pokes(store *s) {
    for (size_t i = 0; i < s->n_pokes; i++) run_socket_poke(s->run_dir, s->pokes[i]);
    s->n_pokes = 0;
}

// Within an op nobody sees the row before the commit.
static void poke(store *s, const char *run_id) {
    for (size_t i = 0; i < s->n_pokes; i++)
        if (strcmp(s->pokes[i], run_id) == 0) return;
    if (s->n_pokes < STORE_POKES) memcpy(s->pokes[s->n_pokes++], run_id, STORE_ID_DIGITS + 1);
    if (!s->in_op) command_send_pokes(s);
}

dep_status store_command_add(store *s, str id, str verb, dep_err *err) {
    TRY(store_writable(s, err));
    TRY(check_verb(id, verb, err));
    TRY(run_dir_open(s, err));
    arena *a = arena_new();
    str report;
    deleg_state now = {0};
    dep_status status = stopped_report(a, s, id, &report, err);
    if (status == DEP_OK) status = sql_begin(s, true, err);
    if (status == DEP_OK) status = sql_finish(s, add(s, id, verb, report, &now, err), err);
    arena_free(a);
    if (status == DEP_OK && now.run_id[0]) poke(s, now.run_id);
    return status;
}

// --- Being asked -----------------------------------------------------------------------------------------

typedef VEC(int64_t) ordinals;

static dep_status read_mine(arena *a, store *s, command_rows *ret, ordinals *which, dep_err *err) {
    // There are few commands and many delegations: from the commands on, in this order.
    TRY(sql_use(s,
                "SELECT c.ordinal, c.delegation_id, c.verb FROM commands AS c CROSS JOIN delegations AS d "
                "WHERE d.id = c.delegation_id AND d.run_id = ?1 ORDER BY c.ordinal",
                err));
    sql_text(s, 1, str_z(s->run_id));
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        vec_push(a, which, sql_col_int(s, 0));
        command_row r = {.delegation = sql_col(a, s, 1), .verb = sql_col(a, s, 2)};
        vec_push(a, ret, r);
    }
}

static dep_status forget(store *s, const ordinals *which, dep_err *err) {
    for (size_t i = 0; i < which->n; i++) {
        TRY(sql_use(s, "DELETE FROM commands WHERE ordinal = ?1", err));
        sql_int(s, 1, which->p[i]);
        TRY(sql_step(s, NULL, err));
    }
    return DEP_OK;
}

dep_status store_command_take(arena *a, store *s, command_rows *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    TRY(store_writable(s, err));
    TRY(sql_may_begin(s, false, err));
    command_rows rows = {0};
    ordinals which = {0};
    // First the datagrams, then the rows: what is asked meanwhile sends a new one.
    if (s->run_socket >= 0) run_socket_drain(s->run_socket);
    if (s->run_id[0]) {
        dep_status status = read_mine(a, s, &rows, &which, err);
        sql_end(s);
        TRY(status);
    }
    if (rows.n) {
        TRY(sql_begin(s, false, err));
        TRY(sql_finish(s, forget(s, &which, err), err));
    }
    *ret = rows;
    return DEP_OK;
}

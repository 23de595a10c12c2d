// recover: what becomes of the delegations that nobody is left to end: those of processes that died, and
// those that no process took out of the queue. Their report holds the text of the last turn that had any.
#include "store/store_int.h"
#include <deputy/file.h>
#include <deputy/json.h>
#include <unistd.h>

enum { RUN_FILES_MAX = 200000 };

typedef struct {
    int64_t workspace;
    bare_report report;
} unfinished;
typedef VEC(unfinished) unfinished_rows;

// What a delegation had said and done: the text of the last turn that had any.
typedef struct {
    buf text;
    int64_t turns, tool_calls;
} remains;

static dep_status read_remains(arena *a, store *s, str id, remains *ret, dep_err *err) {
    TRY(sql_use(s, "SELECT kind, data FROM activity WHERE delegation_id = ?1 ORDER BY seq", err));
    sql_text(s, 1, id);
    bool new_turn = false;
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        str kind = sql_col(a, s, 0);
        json *item;
        if (str_eq(kind, S("turn"))) {
            ret->turns++;
            new_turn = true;
        } else if (str_eq(kind, S("tool"))) {
            ret->tool_calls++;
        } else if (str_eq(kind, S("text")) && json_parse(a, sql_col(a, s, 1), 0, &item, NULL) == DEP_OK) {
            if (new_turn) buf_clear(&ret->text);
            new_turn = false;
            buf_add(&ret->text, json_str(item, S("text"), S("")));
        }
    }
}

str bare_report_json(arena *a, const bare_report *b) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("id"), b->id);
    jw_kstr(&w, S("agent"), b->agent);
    jw_kstr(&w, S("status"), str_z(deleg_status_name(b->status)));
    jw_kstr(&w, S("end_reason"), b->end_reason);
    jw_kstr(&w, S("report"), b->text);
    jw_kstr(&w, S("definition_hash"), b->definition_hash);
    jw_key(&w, S("model"));
    jw_obj(&w);
    jw_kstr(&w, S("requested"), b->model);
    jw_kstr(&w, S("reported"), S(""));
    jw_end_obj(&w);
    jw_kint(&w, S("turns"), b->turns);
    jw_kint(&w, S("tool_calls"), b->tool_calls);
    // Nobody is left who knows these.
    static const str unknown[] = {S_INIT("usage"), S_INIT("cost"), S_INIT("memory_writes"), S_INIT("cards")};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        jw_key(&w, unknown[i]);
        jw_null(&w);
    }
    jw_key(&w, S("warnings"));
    jw_arr(&w);
    jw_str(&w, b->warning);
    jw_end_arr(&w);
    jw_end_obj(&w);
    return buf_str(&out);
}

// What there is to say about a row that nobody will end.
typedef struct {
    str run;        // of this process; empty: rows that no process took
    int64_t before; // made earlier than this, when no process took it
    str end_reason, warning;
} loss;

static const loss died = {
    .end_reason = S_INIT("process died"),
    .warning =
        S_INIT("the process that ran this ended before it could report; the text is what had been stored "
               "until then"),
};
static const loss untaken = {
    .end_reason = S_INIT("no process took it"),
    .warning = S_INIT("no process took this out of the queue; nothing was done"),
};

static dep_status use_unfinished(store *s, const loss *l, dep_err *err) {
    TRY(sql_use(s,
                "SELECT workspace_id, id, agent, model, definition_hash FROM delegations WHERE ended_ms = 0 "
                "AND run_id = ?1 AND (run_id <> '' OR (status = 'queued' AND created_ms < ?2))",
                err));
    sql_text(s, 1, l->run);
    sql_int(s, 2, l->before);
    return DEP_OK;
}

static dep_status list_unfinished(arena *a, store *s, const loss *l, unfinished_rows *ret, dep_err *err) {
    TRY(use_unfinished(s, l, err));
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        unfinished u = {.workspace = sql_col_int(s, 0),
                        .report = {.id = sql_col(a, s, 1),
                                   .agent = sql_col(a, s, 2),
                                   .model = sql_col(a, s, 3),
                                   .definition_hash = sql_col(a, s, 4),
                                   .status = DELEG_INTERRUPTED,
                                   .end_reason = l->end_reason,
                                   .warning = l->warning}};
        vec_push(a, ret, u);
    }
}

static dep_status interrupt_one(arena *a, store *s, const unfinished *u, size_t *count, dep_err *err) {
    remains r = {.text = buf_new(a, 0)};
    TRY(read_remains(a, s, u->report.id, &r, err));
    bare_report b = u->report;
    b.text = buf_str(&r.text);
    b.turns = r.turns;
    b.tool_calls = r.tool_calls;
    bool done = false;
    TRY(bare_end(s, b.id, b.status, b.end_reason, bare_report_json(a, &b), &done, err));
    *count += done && u->workspace == s->workspace;
    return DEP_OK;
}

static dep_status interrupt_listed(arena *a, store *s, const loss *l, size_t *count, dep_err *err) {
    unfinished_rows rows = {0};
    TRY(list_unfinished(a, s, l, &rows, err));
    for (size_t i = 0; i < rows.n; i++) TRY(interrupt_one(a, s, &rows.p[i], count, err));
    return DEP_OK;
}

static dep_status interrupt_all(arena *a, store *s, const loss *l, size_t *count, dep_err *err) {
    size_t n = 0;
    TRY(sql_begin(s, true, err));
    TRY(sql_finish(s, interrupt_listed(a, s, l, &n, err), err));
    *count += n;
    return DEP_OK;
}

static void let_go(int *lock) {
    if (*lock >= 0) close(*lock);
    *lock = -1;
}

static void let_go_deferred(void *lock) {
    let_go(lock);
}

// Only one process at a time buries: to a second one the lock that the first one holds meanwhile would be a
// sign of life, and it would show as running what nobody runs. A turn that cannot be had is gone without.
static void take_turn(store *s, const strs *runs, int *turn) {
    bool others = false;
    for (size_t i = 0; i < runs->n; i++)
        others = others || (store_is_id(runs->p[i]) && !str_eq(runs->p[i], str_z(s->run_id)));
    if (others && lock_take(s->dir, S("deputy.db.lock"), true, STORE_BUSY_MS, turn, NULL) != DEP_OK)
        *turn = -1;
}

// Ends what a process left behind, if it is gone. Holds its lock meanwhile, so that only one does it; *lock
// is let go by whoever unwinds.
static dep_status bury(arena *a, store *s, str run, int *lock, size_t *count, dep_err *err) {
    if (!store_is_id(run) || str_eq(run, str_z(s->run_id))) return DEP_OK;
    dep_status status = lock_take(s->run_dir, run, true, 0, lock, err);
    if (status == DEP_ERR_BUSY) return DEP_OK;
    if (status != DEP_OK) return status;
    loss l = died;
    l.run = run;
    status = interrupt_all(a, s, &l, count, err);
    if (status == DEP_OK) {
        const char *name = str_cz(a, run);
        run_socket_remove(s->run_dir, name);
        unlinkat(s->run_dir, name, 0);
    }
    let_go(lock);
    return status;
}

static dep_status any_untaken(store *s, const loss *l, bool *ret, dep_err *err) {
    dep_status status = use_unfinished(s, l, err);
    if (status == DEP_OK) status = sql_step(s, ret, err);
    sql_end(s);
    return status;
}

static dep_status list_runs(arena *a, store *s, strs *ret, dep_err *err) {
    TRY(sql_use(s, "SELECT DISTINCT run_id FROM delegations WHERE ended_ms = 0 AND run_id <> ''", err));
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) break;
        vec_push(a, ret, sql_col(a, s, 0));
    }
    sql_end(s);
    // Processes that were killed while they ran nothing leave their files.
    dir_entries files;
    TRY(dir_list(a, s->run_dir, RUN_FILES_MAX, &files, err));
    for (size_t i = 0; i < files.n; i++) {
        str of = run_socket_id(files.p[i].name);
        vec_push(a, ret, of.n ? of : files.p[i].name);
    }
    return DEP_OK;
}

static dep_status recover(arena *a, store *s, size_t *count, dep_err *err) {
    ARENA_CATCH(a, err);
    strs runs = {0};
    bool some = false;
    int *lock = NEW(a, int), *turn = NEW(a, int);
    *lock = *turn = -1;
    arena_defer(a, let_go_deferred, turn);
    arena_defer(a, let_go_deferred, lock);
    TRY(run_dir_open(s, err));
    TRY(list_runs(a, s, &runs, err));
    take_turn(s, &runs, turn);
    for (size_t i = 0; i < runs.n; i++) TRY(bury(a, s, runs.p[i], lock, count, err));
    let_go(turn);
    loss l = untaken;
    l.before = store_now(s) - STORE_UNTAKEN_MS;
    TRY(any_untaken(s, &l, &some, err));
    return some ? interrupt_all(a, s, &l, count, err) : DEP_OK;
}

dep_status store_recover(store *s, size_t *interrupted, dep_err *err) {
    if (s->read_only) {
        *interrupted = 0;
        return DEP_OK;
    }
    size_t count = 0;
    arena *a = arena_new();
    dep_status status = recover(a, s, &count, err);
    sql_end(s);
    arena_free(a);
    if (status == DEP_OK) *interrupted = count;
    return status;
}

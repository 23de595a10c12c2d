// run: which processes are alive, and what becomes of the delegations of those that are not. A process holds
// a lock on run/<id>; the lock dies with it however it dies, so a free lock is proof, and no process id can
// be taken for another's.
#include "store/store_int.h"
#include <deputy/file.h>
#include <deputy/json.h>
#include <errno.h>
#include <unistd.h>

enum { RUN_FILES_MAX = 100000 };

static dep_status open_run_dir(store *s, dep_err *err) {
    return s->run_dir >= 0 ? DEP_OK : dir_make_at(s->dir, S("run"), 0700, &s->run_dir, err);
}

dep_status store_run_begin(arena *a, store *s, str *run_id, dep_err *err) {
    ARENA_CATCH(a, err);
    TRY(store_writable(s, err));
    TRY(open_run_dir(s, err));
    if (s->run_lock < 0) {
        str id = sys_id(a, s->clock);
        TRY(lock_take(s->run_dir, id, true, STORE_BUSY_MS, &s->run_lock, err));
        memcpy(s->run_id, id.p, id.n < sizeof s->run_id ? id.n : sizeof s->run_id - 1);
    }
    *run_id = str_dup(a, str_z(s->run_id));
    return DEP_OK;
}

// --- Recovery --------------------------------------------------------------------------------------------

typedef struct {
    int64_t workspace;
    str id, agent, model, definition_hash;
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

static str interrupted_report(arena *a, const unfinished *u, remains *r) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("id"), u->id);
    jw_kstr(&w, S("agent"), u->agent);
    jw_kstr(&w, S("status"), S("interrupted"));
    jw_kstr(&w, S("end_reason"), S("process died"));
    jw_kstr(&w, S("report"), buf_str(&r->text));
    jw_kstr(&w, S("definition_hash"), u->definition_hash);
    jw_key(&w, S("model"));
    jw_obj(&w);
    jw_kstr(&w, S("requested"), u->model);
    jw_kstr(&w, S("reported"), S(""));
    jw_end_obj(&w);
    jw_kint(&w, S("turns"), r->turns);
    jw_kint(&w, S("tool_calls"), r->tool_calls);
    // Nobody is left who knows these.
    static const str unknown[] = {S_INIT("usage"), S_INIT("cost"), S_INIT("memory_writes"), S_INIT("cards")};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        jw_key(&w, unknown[i]);
        jw_null(&w);
    }
    jw_key(&w, S("warnings"));
    jw_arr(&w);
    jw_str(&w, S("the process that ran this ended before it could report; the text is what had been stored "
                 "until then"));
    jw_end_arr(&w);
    jw_end_obj(&w);
    return buf_str(&out);
}

static dep_status list_unfinished(arena *a, store *s, str run, unfinished_rows *ret, dep_err *err) {
    TRY(sql_use(s,
                "SELECT workspace_id, id, agent, model, definition_hash FROM delegations WHERE ended_ms = 0 "
                "AND run_id = ?1",
                err));
    sql_text(s, 1, run);
    for (;;) {
        bool row = false;
        TRY(sql_step(s, &row, err));
        if (!row) return DEP_OK;
        unfinished u = {.workspace = sql_col_int(s, 0),
                        .id = sql_col(a, s, 1),
                        .agent = sql_col(a, s, 2),
                        .model = sql_col(a, s, 3),
                        .definition_hash = sql_col(a, s, 4)};
        vec_push(a, ret, u);
    }
}

static dep_status interrupt_one(arena *a, store *s, const unfinished *u, size_t *count, dep_err *err) {
    remains r = {.text = buf_new(a, 0)};
    TRY(read_remains(a, s, u->id, &r, err));
    str report = interrupted_report(a, u, &r);
    TRY(sql_use(s,
                "UPDATE delegations SET status = 'interrupted', end_reason = 'process died', report = ?2, "
                "ended_ms = ?3 "
                "WHERE id = ?1 AND ended_ms = 0",
                err));
    int64_t now = s->clock->now_ms(s->clock->ctx);
    sql_text(s, 1, u->id);
    sql_text(s, 2, report);
    sql_int(s, 3, now > 0 ? now : 1);
    TRY(sql_step(s, NULL, err));
    if (u->workspace == s->workspace) *count += (size_t)sqlite3_changes(s->db);
    return DEP_OK;
}

static dep_status interrupt_all(arena *a, store *s, str run, size_t *count, dep_err *err) {
    unfinished_rows rows = {0};
    TRY(list_unfinished(a, s, run, &rows, err));
    for (size_t i = 0; i < rows.n; i++) TRY(interrupt_one(a, s, &rows.p[i], count, err));
    return DEP_OK;
}

// Ends what a process left behind, if it is gone. Holds its lock meanwhile, so that only one does it.
static dep_status bury(arena *a, store *s, str run, size_t *count, dep_err *err) {
    if (!store_is_id(run) || str_eq(run, str_z(s->run_id))) return DEP_OK;
    int lock;
    dep_status status = lock_take(s->run_dir, run, true, 0, &lock, err);
    if (status == DEP_ERR_BUSY) return DEP_OK;
    if (status != DEP_OK) return status;
    size_t n = 0;
    status = sql_begin(s, true, err);
    if (status == DEP_OK) status = sql_finish(s, interrupt_all(a, s, run, &n, err), err);
    if (status == DEP_OK) {
        unlinkat(s->run_dir, str_cz(a, run), 0);
        *count += n;
    }
    close(lock);
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
    // Processes that were killed while they ran nothing leave their file.
    dir_entries files;
    TRY(dir_list(a, s->run_dir, RUN_FILES_MAX, &files, err));
    for (size_t i = 0; i < files.n; i++) vec_push(a, ret, files.p[i].name);
    return DEP_OK;
}

static dep_status recover(arena *a, store *s, size_t *count, dep_err *err) {
    ARENA_CATCH(a, err);
    strs runs = {0};
    TRY(open_run_dir(s, err));
    TRY(list_runs(a, s, &runs, err));
    for (size_t i = 0; i < runs.n; i++) TRY(bury(a, s, runs.p[i], count, err));
    return DEP_OK;
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

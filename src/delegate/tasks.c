// delegate: what the quartet of a main agent does. It sees the delegations of its own thread and no others
// (rule B20). A report that goes to the model is marked as delivered in the transaction that stores the
// message which carries it.
#include "delegate/delegate_int.h"
#include <deputy/utf8.h>
#include <time.h>

enum {
    LIST_MAX = 1000, // delegations of a thread that ids are looked up in, and ids of one call
    LIST_SHOWN = 50, // of TaskList
    LOOK_MS = 200,   // between two looks at delegations of another process
    STOP_WAIT_MS = 5000,
};

// --- Rows of this thread -------------------------------------------------------------------------

typedef struct {
    arena *a;
    str thread, id;
    delegation_rows rows;
    delegation_row row;
} query;

static dep_status list_rows(store *s, void *p, dep_err *err) {
    query *q = p;
    return store_delegation_list(q->a, s, q->thread, LIST_MAX, &q->rows, err);
}

static dep_status list_undelivered(store *s, void *p, dep_err *err) {
    query *q = p;
    return store_undelivered(q->a, s, q->thread, &q->rows, err);
}

static dep_status get_row(store *s, void *p, dep_err *err) {
    query *q = p;
    return store_delegation_get(q->a, s, q->id, &q->row, err);
}

static dep_status rows_of(run *r, delegation_rows *ret, dep_err *err) {
    query q = {.a = r->turn, .thread = r->thread};
    TRY(store_do(r->e->store, STORE_READ, list_rows, &q, err));
    // Turns of the main agent itself are in the thread too.
    for (vec_each(const delegation_row, row, &q.rows))
        if (!row->main) vec_push(r->turn, ret, *row);
    return DEP_OK;
}

static bool among(const strs *ids, str id) {
    for (vec_each(const str, s, ids))
        if (str_eq(*s, id)) return true;
    return false;
}

// One id or prefix; several that fit are refused with their names.
static dep_status resolve_id(run *r, const delegation_rows *rows, str id, strs *ret, dep_err *err) {
    strs fits = {0};
    str wanted = str_lower(r->turn, str_trim(id));
    if (wanted.n < STORE_PREFIX_MIN)
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" is too short for an id: at least %d digits",
                       STR_ARG(id), STORE_PREFIX_MIN);
    for (vec_each(const delegation_row, row, rows))
        if (str_starts(row->id, wanted))
            vec_push(r->turn, &fits, str_fmt(r->turn, "%.12s (" STR_FMT ")", row->id.p, STR_ARG(row->agent)));
    if (!fits.n)
        return err_set(err, DEP_ERR_NOT_FOUND,
                       "there is no delegation \"" STR_FMT "\" in this conversation; TaskList shows them",
                       STR_ARG(id));
    if (fits.n > 1)
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" stands for several delegations: " STR_FMT,
                       STR_ARG(id), STR_ARG(str_join(r->turn, fits.p, fits.n, S(", "))));
    for (vec_each(const delegation_row, row, rows))
        if (str_starts(row->id, wanted) && !among(ret, row->id)) vec_push(r->turn, ret, row->id);
    return DEP_OK;
}

// The given ones; without any, those that run.
static dep_status resolve_ids(run *r, const strs *ids, strs *ret, dep_err *err) {
    delegation_rows rows = {0};
    if (ids->n > LIST_MAX)
        return err_set(err, DEP_ERR_LIMIT, "%zu ids are too many; at most %d are taken", ids->n, LIST_MAX);
    TRY(rows_of(r, &rows, err));
    for (vec_each(const str, id, ids)) TRY(resolve_id(r, &rows, *id, ret, err));
    if (ids->n) return DEP_OK;
    for (vec_each(const delegation_row, row, &rows))
        if (!deleg_ended(row->status)) vec_push(r->turn, ret, row->id);
    return DEP_OK;
}

// --- Reports -------------------------------------------------------------------------------------

static dep_status give_report(run *r, str id, buf *out, bool *ended, dep_err *err) {
    query q = {.a = r->turn, .id = id};
    TRY(store_do(r->e->store, STORE_READ, get_row, &q, err));
    *ended = deleg_ended(q.row.status);
    if (!*ended) return DEP_OK;
    report_for_model(out, r->turn, &q.row);
    if (!among(&r->delivering, id)) vec_push(r->a, &r->delivering, str_dup(r->a, id));
    return DEP_OK;
}

// --- Task ----------------------------------------------------------------------------------------

static dep_status start(run *r, const tool_task_order *t, bool background, str *id, dep_err *err) {
    delegate_order o = {.agent = t->agent,
                        .task = t->task,
                        .description = t->description,
                        .model = t->model,
                        .role = ROLE_DELEGATE,
                        .thread = r->thread,
                        .background = background};
    strs resumed = {0};
    if (t->resume.n) {
        delegation_rows rows = {0};
        TRY(rows_of(r, &rows, err));
        TRY(resolve_id(r, &rows, t->resume, &resumed, err));
        o.resume = resumed.p[0];
    }
    return engine_start(r->e, r->a, &o, id, err);
}

// All at once, before any of them is waited for.
static void stop_started(run *r) {
    for (vec_each(const started_task, s, &r->started))
        if (s->id.n) (void)engine_stop_why(r->e, s->id, "stopped with the main agent's turn");
}

// Waits for it, and takes it and those beside it along when this run is stopped.
static dep_status finish(run *r, str id, buf *out, dep_err *err) {
    bool ended = false;
    while (!engine_wait(r->e, &id, 1, false, INT32_MAX, &ended, run_cancelled, r)) {
        engine_stop_why(r->e, id, "stopped with the main agent's turn");
        stop_started(r);
        if (engine_wait(r->e, &id, 1, false, STOP_WAIT_MS, &ended, NULL, NULL)) break;
    }
    TRY(give_report(r, id, out, &ended, err));
    if (ended) return DEP_OK;
    return err_set(err, DEP_ERR_IO, "%.12s has ended, but its report could not be stored", id.p);
}

static dep_status task_call(void *p, const tool_task_order *t, buf *out, dep_err *err) {
    run *r = p;
    str id;
    if (t->background) {
        TRY(start(r, t, true, &id, err));
        buf_addf(out,
                 "Started in the background: " STR_FMT ". TaskWait gives its report when it has ended.\n",
                 STR_ARG(id));
        return DEP_OK;
    }
    for (vec_each(started_task, s, &r->started)) {
        if (s->call != r->answering) continue;
        s->collected = true;
        if (s->id.n) return finish(r, s->id, out, err);
        return err_set(err, s->fault.status, "%s", s->fault.msg);
    }
    TRY(start(r, t, false, &id, err));
    return finish(r, id, out, err);
}

// Only what will surely be run: a call that is refused later starts nothing.
static bool startable(run *r, const model_block *call, tool_task_order *t) {
    json *args;
    const grant_tool *tool = grant_find(&r->grant, S("Task"));
    if (!tool || tool->gated || !str_eq(call->name, S("Task")) || call->bad_input ||
        calls_in_a_row(r, call) >= DELEGATE_SAME_WARN)
        return false;
    if (json_parse(r->turn, call->input, 0, &args, NULL) != DEP_OK ||
        toolspec_check_args(r->turn, tool->schema, args, NULL) != DEP_OK)
        return false;
    *t = (tool_task_order){.agent = json_str(args, S("agent"), (str){0}),
                           .task = json_str(args, S("task"), (str){0}),
                           .description = json_str(args, S("description"), (str){0}),
                           .model = json_str(args, S("model"), (str){0}),
                           .resume = json_str(args, S("resume"), (str){0})};
    return !json_bool(args, S("background"), false);
}

void tasks_start(run *r, const model_blocks *answer) {
    size_t calls = 0, tasks = 0;
    for (vec_each(const model_block, b, answer))
        if (b->kind == BLOCK_TOOL_USE && str_eq(b->name, S("Task"))) tasks++;
    // One alone starts when its turn comes.
    if (tasks < 2 || run_cancelled(r)) return;
    for (vec_each(const model_block, b, answer)) {
        tool_task_order t;
        if (b->kind != BLOCK_TOOL_USE || calls++ >= DELEGATE_CALLS_MAX || !startable(r, b, &t)) continue;
        started_task s = {.call = b};
        if (start(r, &t, false, &s.id, &s.fault) != DEP_OK) s.id = (str){0};
        vec_push(r->a, &r->started, s);
    }
}

void tasks_end(run *r) {
    stop_started(r);
    for (vec_each(started_task, s, &r->started)) {
        if (s->collected || !s->id.n) continue;
        bool ended;
        (void)engine_wait(r->e, &s->id, 1, false, STOP_WAIT_MS, &ended, NULL, NULL);
    }
    r->started = (started_tasks){0};
}

// --- TaskWait ------------------------------------------------------------------------------------

static bool is_here(run *r, str id) {
    engine_tasks here = {0};
    arena *a = arena_new();
    bool found = false;
    engine_list(r->e, a, r->thread, &here);
    for (vec_each(const engine_task, t, &here)) found = found || str_eq(t->id, id);
    arena_free(a);
    return found;
}

// Those of this process end in the engine; one of another process (the same conversation, opened twice) ends
// in the store.
static bool has_ended(run *r, str id) {
    if (is_here(r, id)) return false;
    // Asked again and again while somebody waits, so that it must leave nothing behind.
    query q = {.a = arena_new(), .id = id};
    bool ended = store_do(r->e->store, STORE_READ, get_row, &q, NULL) != DEP_OK || deleg_ended(q.row.status);
    arena_free(q.a);
    return ended;
}

static void wait_for(run *r, const strs *ids, bool any, int64_t timeout_ms) {
    int64_t until = run_mono(r) + timeout_ms;
    bool *ended = NEW_N(r->turn, bool, ids->n + 1);
    while (!run_cancelled(r)) {
        int64_t left = until - run_mono(r);
        size_t open = 0;
        // Those of this process wake us; the others are looked at.
        bool all_here = true;
        for (vec_each(const str, id, ids)) all_here = all_here && is_here(r, *id);
        (void)engine_wait(r->e, ids->p, ids->n, any || !all_here, all_here ? left : 0, ended, run_cancelled,
                          r);
        for (vec_each(const str, id, ids)) open += !has_ended(r, *id);
        left = until - run_mono(r);
        if (!open || (any && open < ids->n) || left <= 0) return;
        if (!all_here) nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    }
}

// What has ended and was never read is an answer too, where no ids are given.
static dep_status give_undelivered(run *r, buf *out, strs *given, dep_err *err) {
    query q = {.a = r->turn, .thread = r->thread};
    TRY(store_do(r->e->store, STORE_READ, list_undelivered, &q, err));
    for (vec_each(const delegation_row, row, &q.rows)) {
        bool ended;
        if (row->main || among(given, row->id)) continue;
        TRY(give_report(r, row->id, out, &ended, err));
        vec_push(r->turn, given, row->id);
    }
    return DEP_OK;
}

static dep_status give_ended(run *r, const strs *wanted, buf *out, strs *given, dep_err *err) {
    buf open = buf_new(r->turn, 0);
    for (vec_each(const str, id, wanted)) {
        bool ended = true;
        if (!among(given, *id)) TRY(give_report(r, *id, out, &ended, err));
        if (ended) {
            vec_push(r->turn, given, *id);
        } else {
            buf_addf(&open, "%s%.12s", open.n ? ", " : "", id->p);
        }
    }
    if (!open.n) return DEP_OK;
    buf_add(out, run_cancelled(r) ? S("The wait was stopped. Still running: ") : S("Still running: "));
    buf_add(out, buf_str(&open));
    buf_addc(out, '\n');
    return DEP_OK;
}

static dep_status task_wait(void *p, const strs *ids, bool any, int64_t timeout_ms, buf *out, dep_err *err) {
    run *r = p;
    strs wanted = {0}, given = {0};
    TRY(resolve_ids(r, ids, &wanted, err));
    if (!ids->n) TRY(give_undelivered(r, out, &given, err));
    if (!wanted.n && !given.n)
        buf_add(out, S("No delegation is running, and every report has been delivered.\n"));
    // One report is enough for `any`, also one that was there already.
    if (wanted.n && !(any && given.n)) wait_for(r, &wanted, any, timeout_ms);
    return give_ended(r, &wanted, out, &given, err);
}

// --- TaskList, TaskStop --------------------------------------------------------------------------

static const engine_task *live_facts(const engine_tasks *here, str id) {
    for (vec_each(const engine_task, t, here))
        if (str_eq(t->id, id)) return t;
    return NULL;
}

static dep_status task_list(void *p, buf *out, dep_err *err) {
    run *r = p;
    delegation_rows rows = {0};
    engine_tasks here = {0};
    size_t shown = 0;
    TRY(rows_of(r, &rows, err));
    engine_list(r->e, r->turn, r->thread, &here);
    for (vec_each(const delegation_row, row, &rows)) {
        if (shown++ == LIST_SHOWN) {
            buf_addf(out, "and %zu older ones\n", rows.n - LIST_SHOWN);
            break;
        }
        const engine_task *live = live_facts(&here, row->id);
        buf_addf(out, "%.12s  %s  ", row->id.p, deleg_status_name(live ? live->status : row->status));
        foreign_add(out, row->agent, FOREIGN_LINE, 64);
        if (row->description.n) buf_add(out, S("  "));
        foreign_add(out, row->description, FOREIGN_LINE, 200);
        if (live) {
            buf_addf(out, "  turn %lld, %lld tool calls", (long long)live->turns,
                     (long long)live->tool_calls);
            if (live->doing.n) buf_add(out, S(", last: "));
            foreign_add(out, live->doing, FOREIGN_LINE, TASK_DOING);
        } else if (deleg_ended(row->status) && !row->delivered_ms) {
            buf_add(out, S("  report not read yet: TaskWait"));
        }
        buf_addc(out, '\n');
    }
    if (!rows.n) buf_add(out, S("No delegation in this conversation yet.\n"));
    return DEP_OK;
}

static dep_status command_stop(store *s, void *p, dep_err *err) {
    return store_command_add(s, *(str *)p, S("stop"), err);
}

static dep_status task_stop(void *p, const strs *ids, buf *out, dep_err *err) {
    run *r = p;
    strs wanted = {0}, told = {0};
    TRY(resolve_ids(r, ids, &wanted, err));
    if (!wanted.n) buf_add(out, S("No delegation is running.\n"));
    for (vec_each(str, id, &wanted)) {
        if (has_ended(r, *id)) {
            buf_addf(out, "%.12s had ended already.\n", id->p);
            continue;
        }
        vec_push(r->turn, &told, *id);
        if (!engine_stop_why(r->e, *id, "stopped by the main agent"))
            TRY(store_do(r->e->store, STORE_WRITE_FULL, command_stop, id, err));
    }
    if (told.n) wait_for(r, &told, false, STOP_WAIT_MS);
    for (vec_each(const str, id, &told))
        buf_addf(out, "%.12s %s; TaskWait gives what it had.\n", id->p,
                 has_ended(r, *id) ? "is stopped" : "was told to stop");
    return DEP_OK;
}

void tasks_offer(tool_env *env) {
    env->task = task_call;
    env->task_wait = task_wait;
    env->task_list = task_list;
    env->task_stop = task_stop;
}

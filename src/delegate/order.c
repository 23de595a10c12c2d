// delegate: from an order to a run that may begin: the definition in effect now, what it is granted, its
// prompt, its model, and its row. Everything that can be refused is refused here, before a delegation exists.
#include "delegate/delegate_int.h"
#include <deputy/utf8.h>

static void free_arena(void *p) {
    arena_free(p);
}

void run_release(run *r) {
    snapshot_release(r->e, r->snap);
    r->snap = NULL;
}

static dep_status check_task(const delegate_order *o, dep_err *err) {
    if (!str_trim(o->task).n) return err_set(err, DEP_ERR_INVALID, "the task is empty");
    if (o->task.n > DELEGATE_TASK_MAX)
        return err_set(err, DEP_ERR_LIMIT, "the task has %zu bytes; at most %d are taken", o->task.n,
                       DELEGATE_TASK_MAX);
    if (!utf8_valid(o->task)) return err_set(err, DEP_ERR_INVALID, "the task is not valid UTF-8");
    return DEP_OK;
}

static dep_status refuse_errors(const run *r, const diags *d, dep_err *err) {
    str first = S("see `deputy check`");
    for (vec_each(const diag, it, &d->items))
        if (it->severity == SEV_ERROR) {
            first = it->msg;
            break;
        }
    return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" has errors: " STR_FMT, STR_ARG(r->def->name),
                   STR_ARG(first));
}

// --- What it is granted --------------------------------------------------------------------------

static int64_t configured_window(const config *c, str model) {
    str provider, name;
    const config_provider *p =
        str_cut(model, '/', &provider, &name) ? config_provider_get(c, provider) : NULL;
    return p ? p->window : 0;
}

static dep_status resolve_run(run *r, const delegate_order *o, dep_err *err) {
    workspace *w = r->w;
    agent_entry *entry = NULL;
    TRY(workspace_agent(w, o->agent, &entry, err));
    r->def = &entry->def;
    diags d = diags_new(r->a);
    host_opts h = {.memory_block = true, .model = o->model};
    TRY(workspace_grant(r->a, w, r->def, o->role, &h, &r->grant, &d, err));
    if (d.errors) return refuse_errors(r, &d, err);
    if (r->grant.refusal.n) return err_set(err, r->grant.refusal_status, STR_FMT, STR_ARG(r->grant.refusal));
    r->report.model = str_dup(r->a, r->grant.model);
    r->ctx.window = configured_window(&w->config, r->report.model);
    r->price = r->grant.priced ? &r->grant.price : NULL;
    if (r->def->memory != DEF_MEMORY_NONE) TRY(workspace_trust_writable(w, err));
    return delegate_model_open(r->a, w, r->report.model, r->e->net, &r->provider, &r->model_name, &r->secrets,
                               err);
}

static dep_status write_prompt(run *r, dep_err *err) {
    TRY(assemble(r->a, &r->grant, &r->prompt, err));
    r->prompt.text = run_redact(r, r->a, r->prompt.text);
    prompt_tools(r->a, &r->grant, &r->loaded, &r->offered);
    return DEP_OK;
}

// What the model is told with a resumed task, so that it does not rest on what it has no longer.
static void first_message(run *r, str task) {
    model_message m = {.role = ROLE_USER};
    str date = time_local(r->a, run_now(r));
    str lost = r->fell_away.n
                   ? str_fmt(r->a, "\n\nSince your last message these are no longer yours: " STR_FMT,
                             STR_ARG(r->fell_away))
                   : (str){0};
    str text = str_fmt(r->a, STR_FMT STR_FMT "\n\n" TASK_DATE_PREFIX STR_FMT,
                       STR_ARG(run_redact(r, r->a, task)), STR_ARG(lost), STR_ARG(date));
    vec_push(r->a, &m.blocks, ((model_block){.kind = BLOCK_TEXT, .text = text}));
    vec_push(r->a, &r->messages, m);
    message_keep(r, &m);
}

static dep_status prepare_locked(run *r, const delegate_order *o, dep_err *err) {
    TRY(resolve_run(r, o, err));
    if (r->secrets.n) {
        r->live = redact_new(r->a, r->secrets.p, r->secrets.n);
        r->live_thinking = redact_new(r->a, r->secrets.p, r->secrets.n);
    }
    if (o->resume.n) TRY(resume_prepare(r, o, err));
    if (!r->prompt.text.n) TRY(write_prompt(r, err));
    return DEP_OK;
}

static void begin_facts(run *r, const delegate_order *o) {
    r->is_main = o->role == ROLE_MAIN;
    if (o->thread.n || !r->is_main) r->thread = str_dup(r->a, o->thread); // else that of what it resumes
    if (r->is_main && !r->thread.n) r->thread = sys_id(r->a, r->w->clock);
    r->background = o->background;
    r->task_text = run_redact(r, r->a, str_dup(r->a, o->task));
    r->description = run_redact(r, r->a, str_dup(r->a, o->description));
    if (!r->id.n) r->id = sys_id(r->a, r->w->clock);
    r->report.id = r->id;
    r->report.agent = str_dup(r->a, r->def->name);
    r->report.definition_hash = str_dup(r->a, r->def->sha256);
    r->report.cost_micro = -1;
}

static dep_status prepare(run *r, const delegate_order *o, dep_err *err) {
    TRY(check_task(o, err));
    TRY(snapshot_take(r->e, &r->snap, err));
    r->w = r->snap->w;
    workspace_lock(r->w);
    dep_status status = prepare_locked(r, o, err);
    workspace_unlock(r->w);
    TRY(status);
    begin_facts(r, o);
    activity_begin(r);
    message_keep_system(r);
    first_message(r, o->task);
    return DEP_OK;
}

static dep_status prepare_with_id(engine *e, arena *a, str id, const delegate_order *o, run **ret,
                                  dep_err *err) {
    static const delegate_sink silent = {0};
    run *r = NEW(a, run);
    *r = (run){.a = a, .e = e, .sink = &silent, .id = id};
    r->turn = arena_new();
    arena_defer(a, free_arena, r->turn);
    r->call = arena_new();
    arena_defer(a, free_arena, r->call);
    dep_status status = prepare(r, o, err);
    if (status != DEP_OK) {
        run_release(r);
        return status;
    }
    *ret = r;
    return DEP_OK;
}

dep_status order_prepare(engine *e, arena *a, const delegate_order *o, run **ret, dep_err *err) {
    return prepare_with_id(e, a, (str){0}, o, ret, err);
}

// --- Its row -------------------------------------------------------------------------------------

static dep_status add_row(store *s, void *p, dep_err *err) {
    return store_delegation_add(s, p, err);
}

dep_status order_store(run *r, deleg_status status, bool anybody, dep_err *err) {
    buf *grant_text = NEW(r->a, buf);
    *grant_text = buf_new(r->a, 0);
    grant_json(grant_text, &r->grant);
    int64_t now = run_now(r);
    delegation_row row = {.id = r->id,
                          .agent = r->report.agent,
                          .task = r->task_text,
                          .description = r->description,
                          .model = r->report.model,
                          .definition_hash = r->report.definition_hash,
                          .definition = run_redact(r, r->a, r->def->text),
                          .grant = run_redact(r, r->a, buf_str(grant_text)),
                          .status = status,
                          .created_ms = now,
                          .started_ms = status == DELEG_RUNNING ? now : 0,
                          .thread = r->thread,
                          .resumes = r->resumes,
                          .main = r->is_main,
                          .background = r->background,
                          .run_id = anybody ? S("-") : r->e->run_id};
    // Whoever takes it prepares it anew, conversation included.
    if (anybody) return store_do(r->e->store, STORE_WRITE_FULL, add_row, &row, err);
    str item = activity_status(r, status, (str){0});
    TRY(activity_store(r, STORE_WRITE_FULL, add_row, NULL, &row, err));
    activity_tell(r, "status", item);
    return DEP_OK;
}

static dep_status take_row(store *s, void *p, dep_err *err) {
    return store_delegation_take(s, *(str *)p, err);
}

// --- A row that waits ----------------------------------------------------------------------------

typedef struct {
    arena *a;
    str id;
    delegation_row row;
    str why; // it ends as failed, for this reason
} waiting;

static dep_status get_row(store *s, void *p, dep_err *err) {
    waiting *w = p;
    return store_delegation_get(w->a, s, w->id, &w->row, err);
}

static dep_status fail_row(store *s, void *p, dep_err *err) {
    const waiting *w = p;
    delegate_report rep = {.id = w->row.id,
                           .agent = w->row.agent,
                           .status = DELEG_FAILED,
                           .end_reason = w->why,
                           .definition_hash = w->row.definition_hash,
                           .model = w->row.model,
                           .cost_micro = -1};
    TRY(store_delegation_take(s, w->row.id, err));
    return store_delegation_status(s, w->row.id, DELEG_FAILED, w->why, delegate_report_json(w->a, &rep), err);
}

dep_status order_requeue(engine *e, arena *a, str id, run **ret, dep_err *err) {
    waiting w = {.a = a, .id = id};
    TRY(store_do(e->store, STORE_READ, get_row, &w, err));
    const delegation_row *row = &w.row;
    if (row->status != DELEG_QUEUED)
        return err_set(err, DEP_ERR_INVALID, "the delegation %.8s does not wait: it is %s", row->id.p,
                       deleg_status_name(row->status));
    const delegate_order o = {.agent = row->agent,
                              .task = row->task,
                              .description = row->description,
                              .model = row->model,
                              .role = row->main ? ROLE_MAIN : ROLE_DELEGATE,
                              .thread = row->thread,
                              .resume = row->resumes,
                              .background = row->background};
    dep_err why;
    dep_status status = prepare_with_id(e, a, row->id, &o, ret, &why);
    if (status == DEP_OK && !str_eq((*ret)->report.definition_hash, row->definition_hash)) {
        run_release(*ret);
        status = err_set(&why, DEP_ERR_REFUSED, "the definition was changed before it began; order it again");
    }
    if (status == DEP_OK) return DEP_OK;
    // Nobody else will run it, so that it says why it never did.
    w.why = str_fmt(a, "could not begin: %s", why.msg);
    dep_err ignored;
    (void)store_do(e->store, STORE_WRITE_FULL, fail_row, &w, &ignored);
    return err_set(err, status, "%s", why.msg);
}

dep_status engine_give_up(engine *e, str id, str why, dep_err *err) {
    arena *a = arena_new();
    waiting w = {.a = a, .id = id, .why = why};
    dep_status status = store_do(e->store, STORE_READ, get_row, &w, err);
    if (status == DEP_OK) status = store_do(e->store, STORE_WRITE_FULL, fail_row, &w, err);
    arena_free(a);
    return status;
}

// --- It begins -----------------------------------------------------------------------------------

dep_status order_take(run *r, dep_err *err) {
    str item = activity_status(r, DELEG_RUNNING, (str){0});
    TRY(activity_store(r, STORE_WRITE_FULL, take_row, NULL, &r->id, err));
    activity_tell(r, "status", item);
    return DEP_OK;
}

dep_status order_begin(run *r, dep_err *err) {
    workspace_lock(r->w);
    dep_status status = toolset_open(r->a, r->w, r->def, &r->grant, true, &r->tools, err);
    workspace_unlock(r->w);
    r->started_mono = run_mono(r);
    return status;
}

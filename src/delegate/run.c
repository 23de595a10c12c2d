// delegate: the loop. A model call, its tool calls, again, until the model ends, a budget is spent, a person
// stops it or the provider fails. Budgets are checked before each model call. However it ends, the newest
// text stays and becomes the report.
#include "delegate/delegate_int.h"
#include <deputy/utf8.h>

bool run_cancelled(void *p) {
    const run *r = p;
    return r->sink->cancelled && r->sink->cancelled(r->sink->ctx);
}

static void free_arena(void *p) {
    arena_free(p);
}

// --- Before it exists ----------------------------------------------------------------------------

// Every value that the configuration takes from the environment, and every key, also of the providers that
// this run does not use (rule B27). A variable that is not set has no value to hide.
static void collect_secrets(arena *a, const workspace *w, strs *secrets) {
    for (vec_each(const config_provider, p, &w->config.providers)) {
        str rest = p->key, whole, value;
        dep_err err;
        if (p->key.n && config_expand(a, p->key, w->getenv, &whole, &err) == DEP_OK)
            vec_push(a, secrets, whole);
        for (size_t at; (at = str_find(rest, S("${"))) != SIZE_MAX;) {
            rest = str_sub(rest, at, rest.n);
            size_t end = str_chr(rest, '}');
            if (end == SIZE_MAX) break;
            if (config_expand(a, str_sub(rest, 0, end + 1), w->getenv, &value, &err) == DEP_OK)
                vec_push(a, secrets, value);
            rest = str_sub(rest, end + 1, rest.n);
        }
    }
}

dep_status delegate_model_open(arena *a, workspace *w, str model, model_net *net, model_provider **ret,
                               str *model_name, strs *secrets, dep_err *err) {
    str provider;
    if (!str_cut(model, '/', &provider, model_name))
        return err_set(err, DEP_ERR_INVALID, "the model \"" STR_FMT "\" is not of the form provider/model",
                       STR_ARG(model));
    model_config mc = {.name = provider,
                       .api = provider,
                       .net = net,
                       .idle_ms = (int)(w->config.limits.idle_seconds * 1000)};
    if (!str_eq(provider, S("quote"))) {
        const config_provider *p = config_provider_get(&w->config, provider);
        if (!p)
            return err_set(err, DEP_ERR_NOT_FOUND,
                           "the provider \"" STR_FMT "\" of the model \"" STR_FMT
                           "\" is not configured; `deputy models add " STR_FMT "` does it",
                           STR_ARG(provider), STR_ARG(model), STR_ARG(provider));
        mc.api = p->api;
        mc.url = p->url;
        mc.max_tokens = p->max_tokens;
        mc.window = p->window;
        mc.ca_file = p->ca_file;
        if (config_expand(a, p->key, w->getenv, &mc.key, err) != DEP_OK) {
            err_prefix(err, "the key of the provider \"" STR_FMT "\"", STR_ARG(provider));
            return err->status;
        }
    }
    collect_secrets(a, w, secrets);
    return model_open(a, &mc, w->clock, ret, err);
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

static dep_status prepare(run *r, const delegate_opts *o, dep_err *err) {
    workspace *w = r->w;
    if (!str_trim(o->task).n) return err_set(err, DEP_ERR_INVALID, "the task is empty");
    if (o->task.n > DELEGATE_TASK_MAX)
        return err_set(err, DEP_ERR_LIMIT, "the task has %zu bytes; at most %d are taken", o->task.n,
                       DELEGATE_TASK_MAX);
    if (!utf8_valid(o->task)) return err_set(err, DEP_ERR_INVALID, "the task is not valid UTF-8");
    diags d = diags_new(r->a);
    host_opts h = {.memory_block = true, .model = o->model};
    TRY(workspace_grant(w, r->def, o->role, &h, &r->grant, &d, err));
    if (d.errors) return refuse_errors(r, &d, err);
    if (r->grant.refusal.n) return err_set(err, r->grant.refusal_status, STR_FMT, STR_ARG(r->grant.refusal));
    r->report.model = o->model.n ? o->model : r->grant.model;
    TRY(delegate_model_open(r->a, w, r->report.model, NULL, &r->provider, &r->model_name, &r->secrets, err));
    TRY(assemble(r->a, &r->grant, &r->prompt, err));
    r->prompt.text = run_redact(r, r->a, r->prompt.text);
    if (r->secrets.n) {
        r->live = redact_new(r->a, r->secrets.p, r->secrets.n);
        r->live_thinking = redact_new(r->a, r->secrets.p, r->secrets.n);
    }
    return DEP_OK;
}

static dep_status begin(run *r, const delegate_opts *o, dep_err *err) {
    workspace *w = r->w;
    size_t interrupted;
    str run_id;
    // A database opened for reading earlier is opened anew for writing: state that cannot be written refuses
    // the run before the first model call.
    if (w->store) {
        store_close(w->store);
        w->store = NULL;
    }
    TRY(workspace_store(w, false, err));
    // memory_write records what it wrote, so the list of trust is opened for writing too.
    TRY(workspace_trust_writable(w, err));
    TRY(store_run_begin(r->a, w->store, &run_id, err));
    TRY(store_recover(w->store, &interrupted, err));
    TRY(toolset_open(r->a, w, r->def, &r->grant, true, &r->tools, err));
    r->id = sys_id(r->a, w->clock);
    buf *grant_text = NEW(r->a, buf);
    *grant_text = buf_new(r->a, 0);
    grant_json(grant_text, &r->grant);
    int64_t now = run_now(r);
    delegation_row row = {.id = r->id,
                          .agent = r->def->name,
                          .task = run_redact(r, r->a, o->task),
                          .description = run_redact(r, r->a, o->description),
                          .model = r->report.model,
                          .definition_hash = r->def->sha256,
                          .definition = run_redact(r, r->a, r->def->text),
                          .grant = run_redact(r, r->a, buf_str(grant_text)),
                          .status = DELEG_RUNNING,
                          .created_ms = now,
                          .started_ms = now,
                          .run_id = run_id};
    TRY(store_delegation_add(w->store, &row, err));
    r->report.id = r->id;
    r->report.agent = r->def->name;
    r->report.definition_hash = r->def->sha256;
    r->started_mono = w->clock->mono_ms(w->clock->ctx);
    r->act.a = arena_new();
    arena_defer(r->a, free_arena, r->act.a);
    r->act.text = buf_new(r->act.a, 0);
    r->act.thinking = buf_new(r->act.a, 0);
    r->act.last_write_ms = now;
    activity_status(r, DELEG_RUNNING, (str){0});
    return DEP_OK;
}

// --- Ends ----------------------------------------------------------------------------------------

static bool out_of_budget(run *r, deleg_status *status, str *reason) {
    const grant *g = &r->grant;
    int64_t elapsed = r->w->clock->mono_ms(r->w->clock->ctx) - r->started_mono;
    int64_t tokens = r->report.usage.input + r->report.usage.output + r->report.usage.cache_read +
                     r->report.usage.cache_write;
    const model_usage *u = &r->report.usage;
    int64_t cost =
        g->priced ? config_cost_micro(&g->price, u->input, u->output, u->cache_read, u->cache_write) : 0;
    *status = DELEG_TRUNCATED;
    if (run_cancelled(r)) {
        *status = DELEG_STOPPED;
        *reason = S("stopped by a person");
    } else if (r->report.turns >= g->turns) {
        *reason = str_fmt(r->a, "max turns: %lld", (long long)g->turns);
    } else if (elapsed >= g->minutes * 60000) {
        *reason = str_fmt(r->a, "minutes: %lld", (long long)g->minutes);
    } else if (tokens >= g->tokens) {
        *reason = str_fmt(r->a, "tokens: %lld of %lld", (long long)tokens, (long long)g->tokens);
    } else if (g->cost_micro && cost >= g->cost_micro) {
        *reason = str_fmt(r->a, "cost: " STR_FMT " of " STR_FMT, STR_ARG(config_amount(r->a, cost)),
                          STR_ARG(config_amount(r->a, g->cost_micro)));
    } else {
        return false;
    }
    return true;
}

static str text_of(arena *a, const model_blocks *blocks) {
    strs parts = {0};
    for (vec_each(const model_block, b, blocks))
        if (b->kind == BLOCK_TEXT && b->text.n) vec_push(a, &parts, b->text);
    return str_join(a, parts.p, parts.n, S("\n"));
}

static bool has_calls(const model_blocks *blocks) {
    for (vec_each(const model_block, b, blocks))
        if (b->kind == BLOCK_TOOL_USE) return true;
    return false;
}

static void keep_text(run *r, const model_reply *reply) {
    str text = text_of(r->a, &reply->blocks);
    if (str_trim(text).n) r->last_text = text;
    if (reply->model.n) r->report.model_reported = run_redact(r, r->a, reply->model);
    r->report.usage.input += reply->usage.input;
    r->report.usage.output += reply->usage.output;
    r->report.usage.cache_read += reply->usage.cache_read;
    r->report.usage.cache_write += reply->usage.cache_write;
    r->report.usage.estimated |= reply->usage.estimated;
}

static void end_by_error(run *r, const dep_err *why) {
    if (why->status == DEP_ERR_CANCELLED) {
        report_store(r, DELEG_STOPPED, S("stopped by a person"));
    } else {
        report_store(r, DELEG_FAILED, str_fmt(r->a, "%s: %s", err_name(why->status), why->msg));
    }
}

static void end_by_reply(run *r, const model_reply *reply) {
    if (reply->stop == STOP_MAX_TOKENS) {
        report_store(r, DELEG_TRUNCATED, S("max_tokens: the answer was cut at the provider's length limit"));
    } else if (reply->stop == STOP_REFUSAL) {
        report_store(r, DELEG_FAILED, S("refusal: the model declined"));
    } else {
        report_store(r, DELEG_COMPLETED, reply->stop_text.n ? reply->stop_text : S("end_turn"));
    }
}

// --- The loop ------------------------------------------------------------------------------------

static void on_text(void *p, str delta) {
    activity_text(p, delta);
}
static void on_thinking(void *p, str delta) {
    activity_thinking(p, delta);
}

static dep_status one_call(run *r, model_reply *reply, dep_err *err) {
    offered_tools offered = {0};
    prompt_tools(r->turn, &r->grant, &r->loaded, &offered);
    model_tool *tools = NEW_N(r->turn, model_tool, offered.n);
    for (size_t i = 0; i < offered.n; i++)
        tools[i] = (model_tool){offered.p[i].name, offered.p[i].description, offered.p[i].schema};
    model_request req = {.model = r->model_name,
                         .system = r->prompt.text,
                         .tools = tools,
                         .n_tools = offered.n,
                         .messages = &r->messages};
    model_sink sink = {.text = on_text, .thinking = on_thinking, .cancelled = run_cancelled, .ctx = r};
    *reply = (model_reply){0};
    dep_status st = model_call(r->provider, r->a, &req, &sink, reply, err);
    activity_flush(r, false);
    keep_text(r, reply);
    return st;
}

static void run_loop(run *r) {
    for (;;) {
        deleg_status status;
        str reason;
        arena_reset(r->turn);
        if (out_of_budget(r, &status, &reason)) {
            report_store(r, status, reason);
            return;
        }
        activity_turn(r, ++r->report.turns);
        model_reply reply;
        dep_err why;
        if (one_call(r, &reply, &why) != DEP_OK) {
            end_by_error(r, &why);
            return;
        }
        bool calls = has_calls(&reply.blocks);
        // Calls beside one of these are the start of something that was broken off.
        bool broken_off = reply.stop == STOP_MAX_TOKENS || reply.stop == STOP_REFUSAL;
        if (broken_off || (!calls && reply.stop != STOP_PAUSE)) {
            end_by_reply(r, &reply);
            return;
        }
        vec_push(r->a, &r->messages, ((model_message){.role = ROLE_ASSISTANT, .blocks = reply.blocks}));
        if (!calls) continue;
        model_message results = {.role = ROLE_USER};
        run_calls(r, &reply.blocks, &results);
        vec_push(r->a, &r->messages, results);
    }
}

static void first_message(run *r, str task) {
    model_message m = {.role = ROLE_USER};
    str date = time_local(r->a, run_now(r));
    str text = str_fmt(r->a, STR_FMT "\n\n" TASK_DATE_PREFIX STR_FMT, STR_ARG(run_redact(r, r->a, task)),
                       STR_ARG(date));
    vec_push(r->a, &m.blocks, ((model_block){.kind = BLOCK_TEXT, .text = text}));
    vec_push(r->a, &r->messages, m);
}

dep_status delegate_run(arena *a, workspace *w, const definition *def, const delegate_opts *o,
                        const delegate_sink *sink, delegate_report *ret, dep_err *err) {
    run *r = NEW(a, run);
    *r = (run){.a = a, .w = w, .def = def, .sink = sink};
    r->turn = arena_new();
    arena_defer(a, free_arena, r->turn);
    TRY(prepare(r, o, err));
    TRY(begin(r, o, err));
    first_message(r, o->task);
    run_loop(r);
    *ret = r->report;
    return DEP_OK;
}

// delegate: continuing a delegation that has ended. The conversation is brought back byte by byte, and what
// may be called is what it had then and has now (rule B21): a grant that grew since does not grow here, and
// what was taken away is gone, and said. A turn of a main agent's own conversation goes by today's grant:
// there the person is present.
#include "delegate/delegate_int.h"
#include <deputy/policy.h>

// --- Then and now --------------------------------------------------------------------------------

static void lose(buf *lost, const char *what, str name) {
    if (lost->n) buf_add(lost, S(", "));
    buf_addf(lost, "%s ", what);
    buf_add(lost, name);
}

static void keep_tools(grant *g, const grant *then, buf *lost) {
    size_t n = 0;
    g->n_deferred = 0;
    for (vec_each(grant_tool, t, &g->tools)) {
        if (!grant_find(then, str_z(t->spec->name))) continue;
        g->n_deferred += t->deferred;
        g->tools.p[n++] = *t;
    }
    g->tools.n = n;
    for (vec_each(const grant_tool, t, &then->tools))
        if (!t->core && !grant_find(g, str_z(t->spec->name))) lose(lost, "the tool", str_z(t->spec->name));
}

static const host_skill *skill_in(const grant *g, str name) {
    for (vec_each(const host_skill, s, &g->skills))
        if (str_eq(s->name, name)) return s;
    return NULL;
}

static void keep_skills(grant *g, const grant *then, buf *lost) {
    size_t n = 0;
    for (vec_each(const host_skill, s, &g->skills))
        if (skill_in(then, s->name)) g->skills.p[n++] = *s;
    g->skills.n = n;
    for (vec_each(const host_skill, s, &then->skills))
        if (!skill_in(g, s->name)) lose(lost, "the skill", s->name);
}

static bool same_list(const strs *x, const strs *y) {
    if (x->n != y->n) return false;
    for (size_t i = 0; i < x->n; i++)
        if (!str_eq(x->p[i], y->p[i])) return false;
    return true;
}

// A source whose globs have changed is another one, wider or not.
static bool source_in(const grant *g, const def_source *s) {
    for (vec_each(const def_source, o, &g->sources))
        if (str_eq(o->name, s->name) && same_list(&o->path, &s->path) && same_list(&o->exclude, &s->exclude))
            return true;
    return false;
}

static void keep_sources(grant *g, const grant *then, buf *lost) {
    size_t n = 0;
    for (vec_each(const def_source, s, &g->sources))
        if (source_in(then, s)) g->sources.p[n++] = *s;
    g->sources.n = n;
    g->source_files = NULL;
    for (vec_each(const def_source, s, &then->sources))
        if (!source_in(g, s)) lose(lost, "the source", s->name);
}

static bool server_in(const grant *g, str name) {
    for (vec_each(const host_server, s, &g->servers))
        if (str_eq(s->name, name)) return true;
    return false;
}

static void keep_servers(grant *g, const grant *then, buf *lost) {
    size_t n = 0;
    for (vec_each(const host_server, s, &g->servers))
        if (server_in(then, s->name)) g->servers.p[n++] = *s;
    g->servers.n = n;
    for (vec_each(const host_server, s, &then->servers))
        if (!server_in(g, s->name)) lose(lost, "the server", s->name);
}

// Prefixes of paths: what lies under one of each. Of other axes: what stands in both.
static void keep_axis(arena *a, const char *name, bool paths, grant_axis *now, const grant_axis *then,
                      buf *lost) {
    if (!then->bounded) return;
    strs both = {0};
    if (!now->bounded) {
        both = then->prefixes;
    } else {
        for (vec_each(const str, p, &now->prefixes)) {
            bool held = false;
            for (vec_each(const str, q, &then->prefixes)) {
                held = held || str_eq(*p, *q) || (paths && path_under(*p, q, 1));
                if (paths && !str_eq(*p, *q) && path_under(*q, p, 1)) vec_push(a, &both, *q);
            }
            if (held) vec_push(a, &both, *p);
        }
        for (vec_each(const str, q, &then->prefixes)) {
            bool held = false;
            for (vec_each(const str, p, &both)) held = held || str_eq(*p, *q);
            if (!held) lose(lost, name, *q);
        }
    }
    *now = (grant_axis){.bounded = true, .prefixes = both};
}

void grant_intersect(arena *a, grant *g, const grant *then, buf *lost) {
    keep_tools(g, then, lost);
    keep_skills(g, then, lost);
    keep_sources(g, then, lost);
    keep_servers(g, then, lost);
    keep_axis(a, "permissions.read", true, &g->read, &then->read, lost);
    keep_axis(a, "permissions.write", true, &g->write, &then->write, lost);
    keep_axis(a, "permissions.run", false, &g->run, &then->run, lost);
    keep_axis(a, "permissions.net", false, &g->net, &then->net, lost);
    if (g->memory != then->memory) {
        if (then->memory != DEF_MEMORY_NONE) lose(lost, "memory", str_z(memory_word(then->memory)));
        g->memory = DEF_MEMORY_NONE;
    }
    if (g->turns > then->turns) g->turns = then->turns;
}

// --- The chain -----------------------------------------------------------------------------------

typedef struct {
    arena *a, *scratch;
    str id;
    delegation_row row;
    message_rows messages;
    int64_t last_ms; // when it last did something, if it has no end of its own
} ancestor;
typedef VEC(ancestor) ancestors; // newest first

// One whose process died was marked as ended when somebody looked, maybe days later.
static dep_status read_last_ms(ancestor *l, store *s, dep_err *err) {
    activity_rows items = {0};
    l->last_ms = l->row.ended_ms;
    if (l->row.status != DELEG_INTERRUPTED) return DEP_OK;
    TRY(store_activity_list(l->scratch, s, l->row.id, 0, SIZE_MAX, &items, err));
    l->last_ms = items.n ? items.p[items.n - 1].at_ms : l->row.started_ms;
    return DEP_OK;
}

static dep_status read_link(store *s, void *p, dep_err *err) {
    ancestor *l = p;
    TRY(store_delegation_get(l->a, s, l->id, &l->row, err));
    TRY(read_last_ms(l, s, err));
    return store_message_list(l->a, s, l->row.id, &l->messages, err);
}

// Nobody is left who knows what it used: each answer was paid for with all that stood before it.
static model_usage estimated_usage(const message_rows *messages) {
    model_usage u = {.estimated = true};
    int64_t before = 0;
    for (vec_each(const message_row, m, messages)) {
        int64_t tokens = (int64_t)estimate_tokens(m->data);
        if (str_eq(m->kind, S("assistant"))) {
            u.input += before;
            u.output += tokens;
        }
        before += tokens;
    }
    return u;
}

static model_usage usage_of(const ancestor *l, const json *report) {
    const json *u = json_get(report, S("usage"));
    if (!u || u->kind != JSON_OBJECT) return estimated_usage(&l->messages);
    return (model_usage){.input = (int64_t)json_num(u, S("input_tokens"), 0),
                         .output = (int64_t)json_num(u, S("output_tokens"), 0),
                         .cache_read = (int64_t)json_num(u, S("cache_read_tokens"), 0),
                         .cache_write = (int64_t)json_num(u, S("cache_write_tokens"), 0)};
}

// What the earlier ones have spent counts. Where a price was not known then, today's is taken.
static void count_spent(run *r, const ancestor *l) {
    json *rep;
    if (json_parse(r->a, l->row.report, 0, &rep, NULL) != DEP_OK) rep = NULL;
    const model_usage u = usage_of(l, rep);
    const json *cost = json_get(rep, S("cost"));
    r->turns_before += (int64_t)json_num(rep, S("turns"), 0);
    r->before.input += u.input;
    r->before.output += u.output;
    r->before.cache_read += u.cache_read;
    r->before.cache_write += u.cache_write;
    int64_t micro = 0;
    if (cost && cost->kind == JSON_NUMBER) {
        micro = cost->num < 1e12 ? (int64_t)(cost->num * 1e6 + 0.5) : INT64_MAX;
    } else if (r->price) {
        micro = config_cost_micro(r->price, u.input, u.output, u.cache_read, u.cache_write);
    }
    r->cost_before = cost_sum(r->cost_before, micro);
    if (l->row.started_ms && l->last_ms > l->row.started_ms) r->ms_before += l->last_ms - l->row.started_ms;
}

static dep_status check_link(const ancestor *l, dep_err *err) {
    if (!deleg_ended(l->row.status))
        return err_set(err, DEP_ERR_INVALID,
                       "%.8s has not ended (%s): wait for it, or stop it, before it is continued",
                       l->row.id.p, deleg_status_name(l->row.status));
    if (!l->messages.n)
        return err_set(err, DEP_ERR_NOT_FOUND,
                       "the conversation of %.8s was not kept, so it cannot be continued", l->row.id.p);
    return DEP_OK;
}

static dep_status read_chain(run *r, str id, ancestors *ret, dep_err *err) {
    for (size_t n = 0; id.n; n++) {
        ancestor l = {.a = r->a, .scratch = arena_new(), .id = id};
        if (n == DELEGATE_CHAIN_MAX)
            return err_set(err, DEP_ERR_LIMIT, "%d delegations continue each other; begin a new one",
                           DELEGATE_CHAIN_MAX);
        dep_status status = store_do(r->e->store, STORE_READ, read_link, &l, err);
        arena_free(l.scratch);
        TRY(status);
        TRY(check_link(&l, err));
        vec_push(r->a, &r->chain, l.row.id);
        vec_push(r->a, ret, l);
        id = l.row.resumes;
    }
    for (vec_each(const ancestor, l, ret))
        if (!l->row.main) count_spent(r, l);
    return DEP_OK;
}

// Rows of all of them, oldest first.
static dep_status read_messages(run *r, const ancestors *chain, conversation *ret, dep_err *err) {
    message_rows rows = {0};
    for (size_t i = chain->n; i > 0; i--)
        for (vec_each(const message_row, m, &chain->p[i - 1].messages)) vec_push(r->a, &rows, *m);
    return messages_read(r->a, &rows, ret, err);
}

// --- What it had ---------------------------------------------------------------------------------

// What its definition would be granted: the text that it began with, with what exists today.
static dep_status grant_of_text(run *r, const delegation_row *row, grant *ret, dep_err *err) {
    definition *def = NEW(r->a, definition);
    ydoc *doc;
    diags d = diags_new(r->a);
    TRY(definition_parse(r->a, r->def->file, r->def->base, r->def->layer, row->definition, false, def, &doc,
                         &d, err));
    if (!def->valid)
        return err_set(err, DEP_ERR_REFUSED,
                       "the definition that %.8s began with cannot be read any more: its reach is not known",
                       row->id.p);
    host_opts h = {0};
    return workspace_grant(r->a, r->w, def, row->main ? ROLE_MAIN : ROLE_DELEGATE, &h, ret, &d, err);
}

static bool listed(const json *stored, const char *key, str name) {
    const json *list = json_get(stored, str_z(key));
    for (const json *v = list ? list->child : NULL; v; v = v->next)
        if (str_eq(v->kind == JSON_OBJECT ? json_str(v, S("name"), (str){0}) : v->s, name)) return true;
    return false;
}

// Less what was not there then, or withheld.
static void keep_listed(grant *g, const json *stored) {
    size_t n = 0;
    for (vec_each(const grant_tool, t, &g->tools))
        if (listed(stored, "tools", str_z(t->spec->name)) || listed(stored, "deferred", str_z(t->spec->name)))
            g->tools.p[n++] = *t;
    g->tools.n = n;
    n = 0;
    for (vec_each(const host_skill, s, &g->skills))
        if (listed(stored, "skills", s->name)) g->skills.p[n++] = *s;
    g->skills.n = n;
    n = 0;
    for (vec_each(const def_source, s, &g->sources))
        if (listed(stored, "sources", s->name)) g->sources.p[n++] = *s;
    g->sources.n = n;
    n = 0;
    for (vec_each(const host_server, s, &g->servers))
        if (listed(stored, "servers", s->name)) g->servers.p[n++] = *s;
    g->servers.n = n;
    if (!str_eq(json_str(stored, S("memory"), (str){0}), str_z(memory_word(g->memory))))
        g->memory = DEF_MEMORY_NONE;
}

// What the newest of the chain had: what its definition granted, less what those that it continued had not,
// and less what its row does not list.
static dep_status grant_then(run *r, const ancestors *chain, grant *ret, dep_err *err) {
    const delegation_row *newest = &chain->p[0].row;
    buf ignored = buf_new(r->a, 0);
    json *stored;
    TRY(grant_of_text(r, newest, ret, err));
    for (size_t i = 1; i < chain->n; i++) {
        grant older = {0};
        if (str_eq(chain->p[i].row.definition_hash, chain->p[i - 1].row.definition_hash)) continue;
        TRY(grant_of_text(r, &chain->p[i].row, &older, err));
        grant_intersect(r->a, ret, &older, &ignored);
    }
    if (json_parse(r->a, newest->grant, 0, &stored, NULL) != DEP_OK)
        return err_set(err, DEP_ERR_REFUSED,
                       "what was granted to %.8s cannot be read: its reach is not known", newest->id.p);
    keep_listed(ret, stored);
    return DEP_OK;
}

// --- The conversation ----------------------------------------------------------------------------

// Loads that succeeded are restored in their order; one that is not granted any more is said.
static void restore_loads(run *r, const strs *loads, buf *lost) {
    for (vec_each(const str, name, loads)) {
        if (str_eq(*name, S("read_result"))) (void)results_mount(r);
        const grant_tool *t = grant_find(&r->grant, *name);
        if (t && t->deferred) {
            vec_push(r->a, &r->loaded, str_z(t->spec->name));
        } else if (!t) {
            lose(lost, "the loaded tool", *name);
        }
    }
}

static dep_status check_rest(const run *r, dep_err *err) {
    if (r->turns_before < r->grant.turns) return DEP_OK;
    return err_set(err, DEP_ERR_REFUSED,
                   "its turns are spent: %lld of %lld; delegate a new task, or raise maxTurns",
                   (long long)r->turns_before, (long long)r->grant.turns);
}

static bool among(const offered_tools *offered, str name) {
    for (vec_each(const offered_tool, o, offered))
        if (str_eq(o->name, name)) return true;
    return false;
}

static void offer_missing(run *r, const grant_tool *t) {
    str name = str_z(t->spec->name);
    if (!among(&r->offered, name))
        vec_push(r->a, &r->offered, ((offered_tool){name, t->description, t->schema}));
}

// What was sent stays as it was. What it has and was never offered, or was offered before it became deferred,
// can be called as well.
static void bring_back(run *r, const conversation *c) {
    r->prompt.text = c->prompt;
    r->offered = c->offered;
    for (vec_each(const str, name, &r->loaded)) offer_missing(r, grant_find(&r->grant, *name));
    for (vec_each(const grant_tool, t, &r->grant.tools)) {
        if (!t->deferred) {
            offer_missing(r, t);
        } else if (among(&c->offered, str_z(t->spec->name))) {
            vec_push(r->a, &r->loaded, str_z(t->spec->name));
        }
    }
}

static dep_status check_same(const run *r, const delegate_order *o, const delegation_row *row, dep_err *err) {
    if (!str_eq(row->agent, r->def->name))
        return err_set(err, DEP_ERR_INVALID,
                       "%.8s was a delegation to \"" STR_FMT "\", not to \"" STR_FMT "\"", row->id.p,
                       STR_ARG(row->agent), STR_ARG(r->def->name));
    if (row->main != (o->role == ROLE_MAIN))
        return err_set(err, DEP_ERR_INVALID, "%.8s had another role", row->id.p);
    return DEP_OK;
}

dep_status resume_prepare(run *r, const delegate_order *o, dep_err *err) {
    ancestors chain = {0};
    conversation c = {0};
    buf lost = buf_new(r->a, 0);
    TRY(read_chain(r, o->resume, &chain, err));
    if (!chain.n) return err_set(err, DEP_ERR_INVALID, "there is nothing to continue");
    TRY(check_same(r, o, &chain.p[0].row, err));
    TRY(read_messages(r, &chain, &c, err));
    r->messages = c.messages;
    r->resumes = chain.p[0].row.id;
    if (o->role == ROLE_MAIN) {
        r->thread = chain.p[0].row.thread;
        // The person's own conversation: today's prompt and tools.
        restore_loads(r, &c.loaded, &lost);
        return DEP_OK;
    }
    grant then = {0};
    TRY(grant_then(r, &chain, &then, err));
    grant_intersect(r->a, &r->grant, &then, &lost);
    // The notes of another definition that has the name now are not its own.
    if (r->grant.memory == DEF_MEMORY_PRIVATE && !str_eq(c.layer, str_z(layer_name(r->def->layer)))) {
        lose(&lost, "memory", str_z(memory_word(r->grant.memory)));
        r->grant.memory = DEF_MEMORY_NONE;
    }
    TRY(check_rest(r, err));
    restore_loads(r, &c.loaded, &lost);
    bring_back(r, &c);
    r->fell_away = buf_str(&lost);
    return DEP_OK;
}

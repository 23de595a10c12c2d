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

// What its definition would be granted: the text that it began with, with what exists today.
static dep_status grant_then(run *r, const delegation_row *row, grant *ret, dep_err *err) {
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

// --- The chain -----------------------------------------------------------------------------------

typedef struct {
    arena *a;
    str id;
    delegation_row row;
    message_rows messages;
} ancestor;

static dep_status read_link(store *s, void *p, dep_err *err) {
    ancestor *l = p;
    TRY(store_delegation_get(l->a, s, l->id, &l->row, err));
    return store_message_list(l->a, s, l->row.id, &l->messages, err);
}

// What the earlier ones have spent counts.
static void count_spent(run *r, const delegation_row *row) {
    json *rep;
    if (json_parse(r->a, row->report, 0, &rep, NULL) != DEP_OK) return;
    const json *u = json_get(rep, S("usage"));
    r->turns_before += (int64_t)json_num(rep, S("turns"), 0);
    r->before.input += (int64_t)json_num(u, S("input_tokens"), 0);
    r->before.output += (int64_t)json_num(u, S("output_tokens"), 0);
    r->before.cache_read += (int64_t)json_num(u, S("cache_read_tokens"), 0);
    r->before.cache_write += (int64_t)json_num(u, S("cache_write_tokens"), 0);
    r->cost_before += (int64_t)(json_num(rep, S("cost"), 0) * 1e6);
    if (row->started_ms && row->ended_ms > row->started_ms) r->ms_before += row->ended_ms - row->started_ms;
}

// Rows of all of them, oldest first.
static dep_status read_chain(run *r, str id, delegation_row *newest, message_rows *ret, dep_err *err) {
    VEC(ancestor) links = {0};
    for (size_t n = 0; id.n; n++) {
        ancestor l = {.a = r->a, .id = id};
        if (n == DELEGATE_CHAIN_MAX)
            return err_set(err, DEP_ERR_LIMIT, "%d delegations continue each other; begin a new one",
                           DELEGATE_CHAIN_MAX);
        TRY(store_do(r->e->store, STORE_READ, read_link, &l, err));
        if (!n) *newest = l.row;
        if (!deleg_ended(l.row.status))
            return err_set(err, DEP_ERR_INVALID,
                           "%.8s has not ended (%s): wait for it, or stop it, before it is continued",
                           l.row.id.p, deleg_status_name(l.row.status));
        if (!l.messages.n)
            return err_set(err, DEP_ERR_NOT_FOUND,
                           "the conversation of %.8s was not kept, so it cannot be continued", l.row.id.p);
        vec_push(r->a, &r->chain, l.row.id);
        vec_push(r->a, &links, l);
        id = l.row.resumes;
    }
    for (size_t i = links.n; i > 0; i--)
        for (vec_each(const message_row, m, &links.p[i - 1].messages)) vec_push(r->a, ret, *m);
    for (vec_each(const ancestor, l, &links))
        if (!l->row.main) count_spent(r, &l->row);
    return DEP_OK;
}

// --- The conversation ----------------------------------------------------------------------------

// Calls that were never answered: an API takes nothing after them but their results.
static void answer_open_calls(run *r) {
    if (!r->messages.n || r->messages.p[r->messages.n - 1].role != ROLE_ASSISTANT) return;
    model_message results = {.role = ROLE_USER};
    for (vec_each(const model_block, b, &r->messages.p[r->messages.n - 1].blocks))
        if (b->kind == BLOCK_TOOL_USE)
            vec_push(r->a, &results.blocks,
                     ((model_block){.kind = BLOCK_TOOL_RESULT,
                                    .id = b->id,
                                    .text = S("Not run: the delegation ended before this call."),
                                    .is_error = true}));
    if (results.blocks.n) vec_push(r->a, &r->messages, results);
}

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

dep_status resume_prepare(run *r, const delegate_order *o, dep_err *err) {
    delegation_row row = {0};
    message_rows rows = {0};
    conversation c = {0};
    buf lost = buf_new(r->a, 0);
    TRY(read_chain(r, o->resume, &row, &rows, err));
    if (!str_eq(row.agent, r->def->name))
        return err_set(err, DEP_ERR_INVALID,
                       "%.8s was a delegation to \"" STR_FMT "\", not to \"" STR_FMT "\"", row.id.p,
                       STR_ARG(row.agent), STR_ARG(r->def->name));
    if (row.main != (o->role == ROLE_MAIN))
        return err_set(err, DEP_ERR_INVALID, "%.8s had another role", row.id.p);
    TRY(messages_read(r->a, &rows, &c, err));
    r->messages = c.messages;
    r->resumes = row.id;
    answer_open_calls(r);
    if (row.main) {
        r->thread = row.thread;
        // The person's own conversation: today's prompt and tools.
        restore_loads(r, &c.loaded, &lost);
        return DEP_OK;
    }
    grant then = {0};
    TRY(grant_then(r, &row, &then, err));
    grant_intersect(r->a, &r->grant, &then, &lost);
    TRY(check_rest(r, err));
    restore_loads(r, &c.loaded, &lost);
    r->prompt.text = c.prompt;
    r->offered = c.offered;
    for (vec_each(const str, name, &r->loaded)) {
        const grant_tool *t = grant_find(&r->grant, *name);
        bool there = false;
        for (vec_each(const offered_tool, of, &r->offered)) there = there || str_eq(of->name, *name);
        if (t && !there) vec_push(r->a, &r->offered, ((offered_tool){*name, t->description, t->schema}));
    }
    r->fell_away = buf_str(&lost);
    return DEP_OK;
}

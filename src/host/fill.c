// host: filling the plain value that resolve() reads: tools with bodies, skills, counts of the sources, the
// resident block of memory, budgets, models.
#include "host/host_int.h"
#include <deputy/file.h>
#include <deputy/knowledge.h>
#include <deputy/utf8.h>
#include <stdlib.h>

// --- Skills --------------------------------------------------------------------------------------

static const char *refuse_memory(void *w, const struct stat *st) {
    return workspace_is_memory(w, st) ? "it belongs to memory" : NULL;
}

dep_status workspace_skills(workspace *w, dep_err *err) {
    if (w->skills_loaded) return DEP_OK;
    w->skills_loaded = true;
    const struct {
        const char *dir;
        skill_layer layer;
        bool user;
    } places[] = {
        {".deputy/skills", SKILL_WORKSPACE, false},
        {".agents/skills", SKILL_WORKSPACE_ECOSYSTEM, false},
        {".claude/skills", SKILL_WORKSPACE_ECOSYSTEM, false},
        {"skills", SKILL_SYSTEM, true},
        {".agents/skills", SKILL_USER_ECOSYSTEM, true},
        {".claude/skills", SKILL_USER_ECOSYSTEM, true},
    };
    enum { PLACES = sizeof places / sizeof *places };
    skill_root roots[PLACES];
    struct stat seen[PLACES];
    size_t n = 0;
    for (size_t i = 0; i < PLACES; i++) {
        int fd;
        dep_err why;
        str base = places[i].layer == SKILL_SYSTEM ? w->dirs.config : w->dirs.home;
        dep_status st = places[i].user
                            ? dir_open(path_join(w->a, base, str_z(places[i].dir)), &fd, &why)
                            : dir_open_at(w->fd, str_z(places[i].dir), FILE_LINKS_INSIDE, &fd, &why);
        str label = places[i].layer == SKILL_USER_ECOSYSTEM ? str_fmt(w->a, "~/%s", places[i].dir)
                    : places[i].user                        ? path_join(w->a, base, str_z(places[i].dir))
                                                            : str_z(places[i].dir);
        if (st != DEP_OK) {
            if (st != DEP_ERR_NOT_FOUND)
                diags_add(&w->skill_diags, (diag){.severity = SEV_WARNING,
                                                  .code = "SKL000",
                                                  .file = label,
                                                  .msg = str_dup(w->a, str_z(why.msg)),
                                                  .hint = S("its skills are not read")});
            continue;
        }
        arena_defer_close(w->a, fd);
        bool twice = fstat(fd, &seen[n]) != 0;
        for (size_t j = 0; j < n && !twice; j++)
            twice = seen[j].st_ino == seen[n].st_ino && seen[j].st_dev == seen[n].st_dev;
        if (twice) continue;
        roots[n] = (skill_root){.dir = fd,
                                .label = label,
                                .layer = places[i].layer,
                                .within = -1,
                                .refuse = refuse_memory,
                                .ctx = w};
        if (!places[i].user) roots[n].within = w->fd, roots[n].below = str_z(places[i].dir);
        n++;
    }
    return skills_find(w->a, roots, n, w->trust, &w->skills, &w->skill_diags, err);
}

static void fill_skills(arena *a, const workspace *w, host *h) {
    for (vec_each(const skill, s, &w->skills))
        if (!s->shadowed_by.n)
            vec_push(a, &h->skills,
                     ((host_skill){.name = s->name,
                                   .description = s->description,
                                   .location = s->location,
                                   .withheld = s->withheld,
                                   .hidden = s->hidden}));
}

// --- Subagents -----------------------------------------------------------------------------------

static int by_name(const void *x, const void *y) {
    return str_cmp(((const host_agent *)x)->name, ((const host_agent *)y)->name);
}

static void fill_agents(arena *a, const workspace *w, host *h) {
    for (vec_each(const agent_entry, e, &w->agents))
        if (e->state == AGENT_EFFECTIVE && role_of(&e->def) == ROLE_DELEGATE)
            vec_push(a, &h->agents, ((host_agent){.name = e->def.name, .description = e->def.description}));
    if (h->agents.n) qsort(h->agents.p, h->agents.n, sizeof *h->agents.p, by_name);
}

// --- Memory --------------------------------------------------------------------------------------

static memory_guard *guard_of(workspace *w, int root, memory_guard **g) {
    dep_err err;
    if (!w->guard_fault.n && !*g && memory_guard_make(w->a, root, g, &err) != DEP_OK)
        w->guard_fault = str_dup(w->a, str_z(err.msg));
    return w->guard_fault.n ? NULL : *g;
}

// Is st in the trees of root? Without the set of inodes nothing can be told apart, so all of it is; that is
// not tried again.
static bool guarded(workspace *w, int root, memory_guard **g, const struct stat *st) {
    memory_guard *guard = guard_of(w, root, g);
    return !guard || memory_guard_hit(guard, st);
}

bool workspace_is_memory(void *p, const struct stat *st) {
    workspace *w = p;
    workspace_lock(w);
    bool hit = guarded(w, w->memory_fd, &w->guard, st) ||
               (w->memory_fd != w->fd && guarded(w, w->fd, &w->own_guard, st));
    workspace_unlock(w);
    return hit;
}

uint64_t workspace_memory_epoch(void *p) {
    workspace *w = p;
    workspace_lock(w);
    memory_guard *g = guard_of(w, w->memory_fd, &w->guard);
    uint64_t epoch = g ? memory_guard_epoch(g) : 1;
    if (w->memory_fd != w->fd) {
        g = guard_of(w, w->fd, &w->own_guard);
        epoch = epoch * 31 + (g ? memory_guard_epoch(g) : 1);
    }
    workspace_unlock(w);
    return epoch;
}

bool workspace_was_memory(void *p, const struct stat *st) {
    workspace *w = p;
    workspace_lock(w);
    memory_guard *g = guard_of(w, w->memory_fd, &w->guard);
    bool hit = !g || memory_guard_knew(g, st);
    if (!hit && w->memory_fd != w->fd) {
        g = guard_of(w, w->fd, &w->own_guard);
        hit = !g || memory_guard_knew(g, st);
    }
    workspace_unlock(w);
    return hit;
}

dep_status workspace_memory(arena *a, workspace *w, const definition *def, bool create, memory_scope **ret,
                            dep_err *err) {
    memory_kind kind = def->memory == DEF_MEMORY_SHARED ? MEMORY_SHARED : MEMORY_PRIVATE;
    str dir = memory_dir(a, kind, def->identity, str_z(layer_name(def->layer)));
    return memory_open(a, w->memory_fd, dir, create, w->memory_trust, w->clock, ret, err);
}

static dep_status fill_memory(arena *a, workspace *w, const definition *def, host *h, dep_err *err) {
    memory_scope *scope = NULL;
    memory_block block = {0};
    dep_err why;
    dep_status st = workspace_memory(a, w, def, false, &scope, &why);
    if (st == DEP_ERR_NOMEM) return err_set(err, st, "%s", why.msg);
    if (st != DEP_OK) {
        h->memory_unavailable = true;
        h->memory_reason = str_dup(a, str_z(why.msg));
        return DEP_OK;
    }
    if (!scope) return DEP_OK;
    TRY(memory_resident(a, scope, &block, err));
    for (vec_each(const memory_shown, f, &block.files))
        vec_push(
            a, &h->memory,
            ((host_memory_file){.name = f->name, .text = f->text, .chars = f->chars, .shown = f->shown}));
    for (vec_each(const memory_shown, f, &block.files))
        for (vec_each(const invisible_find, i, &f->invisible)) {
            str what =
                i->decoded.n ? str_fmt(a, "; it spells \"" STR_FMT "\"", STR_ARG(i->decoded)) : (str){0};
            str note = str_fmt(a, "invisible text: U+%04X, %zu times, first in line %u" STR_FMT, i->cp,
                               i->count, i->line, STR_ARG(what));
            vec_push(a, &h->memory_notes, ((host_named){.name = f->name, .reason = note}));
        }
    for (vec_each(const str, name, &block.left_out))
        vec_push(a, &h->memory_left_out, ((host_named){.name = *name}));
    for (vec_each(const memory_file, f, &block.withheld))
        vec_push(a, &h->memory_withheld, ((host_named){.name = f->name, .reason = f->withheld}));
    return DEP_OK;
}

// --- All of it -----------------------------------------------------------------------------------

static def_gate gate_of(const config_gate *g) {
    return (def_gate){.text = g->text,
                      .server = g->server,
                      .tool = g->tool,
                      .is_map = g->is_map,
                      .at = {.file = g->file, .line = g->line}};
}

dep_status workspace_host(arena *a, workspace *w, const definition *def, const host_opts *o, host *ret,
                          dep_err *err) {
    const config *c = &w->config;
    host h = {.workspace = w->root,
              .turns = c->limits.turns,
              .minutes = c->limits.minutes,
              .tokens = c->limits.tokens,
              .turns_bound = c->limits.turns_set,
              .minutes_bound = c->limits.minutes_set,
              .tokens_bound = c->limits.tokens_set,
              .cost_micro = c->limits.cost_micro,
              .cost_bound = c->limits.cost_set,
              .tool_bytes = c->limits.tool_kib * 1024,
              .run_bytes = c->limits.run_kib * 1024,
              .default_model = c->model.n ? c->model : S("quote/passages"),
              .default_model_origin = c->model.n
                                          ? str_fmt(a, STR_FMT ":%u", STR_ARG(c->model_file), c->model_line)
                                          : S("the built-in default"),
              .model = o->model,
              .config_fault = c->fault};
    str model = o->model.n ? o->model : def->model.n ? def->model : h.default_model;
    const config_price *price = config_price_get(c, model);
    h.priced = price != NULL;
    if (price) h.price = *price;
    size_t n;
    toolspec_all(&n);
    for (size_t i = 0; i < n && w->bodies; i++) h.tools[i] = w->bodies[i];
    if (def->skills.n) {
        TRY(workspace_skills(w, err));
        fill_skills(a, w, &h);
    }
    if (def->sources.n && o->count_sources) {
        size_t *counts = NEW_N(a, size_t, def->sources.n);
        knowledge_opts k = {.root = w->fd,
                            .sources = def->sources.p,
                            .n_sources = def->sources.n,
                            .is_memory = workspace_is_memory,
                            .ctx = w};
        search_space space = knowledge_space(a, &k);
        TRY(search_count(&space, counts, err));
        h.source_files = counts;
    }
    if (o->agents) {
        TRY(workspace_agents(w, err));
        fill_agents(a, w, &h);
    }
    if (def->memory != DEF_MEMORY_NONE && o->memory_block) TRY(fill_memory(a, w, def, &h, err));
    for (vec_each(const config_gate, g, &c->confirm)) vec_push(a, &h.default_gates, gate_of(g));
    h.n_default_confirm = h.default_gates.n;
    for (vec_each(const config_gate, g, &c->review)) vec_push(a, &h.default_gates, gate_of(g));
    vec_push(a, &h.models, S("quote"));
    for (vec_each(const config_provider, p, &c->providers)) vec_push(a, &h.models, p->name);
    *ret = h;
    return DEP_OK;
}

dep_status workspace_grant(arena *a, workspace *w, const definition *def, agent_role role, const host_opts *o,
                           grant *ret, diags *d, dep_err *err) {
    host h;
    host_opts wanted = *o;
    wanted.agents = role == ROLE_MAIN;
    TRY(workspace_host(a, w, def, &wanted, &h, err));
    return resolve(a, def, &h, role, ret, d, err);
}

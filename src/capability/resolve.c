// capability: the order of resolution, and the tools dimension with its permissions. Each dimension has a
// function that mounts what is there and leaves a row for every declared item. Nothing here reads a file or a
// clock.
#include "capability/capability_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

const char *item_state_name(item_state s) {
    static const char *const names[] = {"granted",     "deferred", "missing",  "disabled",
                                        "unconnected", "narrowed", "withheld", "refused"};
    return names[s];
}

report_row *row_add(resolve_ctx *c, const char *dimension, str name, item_state state, str reason,
                    def_place at) {
    vec_push(
        c->a, &c->g->report,
        ((report_row){.dimension = dimension, .name = name, .state = state, .reason = reason, .at = at}));
    return &c->g->report.p[c->g->report.n - 1];
}

void row_rule(resolve_ctx *c, report_row *row, str rule, const char *effect, def_place at) {
    vec_push(c->a, &row->rules, ((item_rule){.rule = rule, .effect = str_z(effect), .at = at}));
}

report_row *row_find(resolve_ctx *c, const char *dimension, str name) {
    for (vec_each(report_row, r, &c->g->report))
        if (str_eq(str_z(r->dimension), str_z(dimension)) && str_eq(r->name, name)) return r;
    return NULL;
}

bool tool_here(const resolve_ctx *c, const tool_spec *spec) {
    return c->h->tools[toolspec_index(spec)];
}

grant_tool *tool_mount(resolve_ctx *c, const tool_spec *spec) {
    for (vec_each(grant_tool, t, &c->g->tools))
        if (t->spec == spec) return t;
    vec_push(
        c->a, &c->g->tools,
        ((grant_tool){.spec = spec, .schema = str_z(spec->schema), .description = str_z(spec->description)}));
    return &c->g->tools.p[c->g->tools.n - 1];
}

const grant_tool *grant_find(const grant *g, str name) {
    for (vec_each(const grant_tool, t, &g->tools))
        if (str_eq(str_z(t->spec->name), name)) return t;
    return NULL;
}

// --- Permissions ---------------------------------------------------------------------------------

static grant_axis axis_of(const definition *def, const def_axis *block) {
    return (grant_axis){.bounded = def->has_permissions, .prefixes = block->entries};
}

static const grant_axis *axis_for(const grant *g, tool_axis axis) {
    switch (axis) {
    case AXIS_READ: return &g->read;
    case AXIS_WRITE: return &g->write;
    case AXIS_RUN: return &g->run;
    case AXIS_NET: return &g->net;
    case AXIS_NONE: break;
    }
    return NULL;
}

static str axis_label(arena *a, tool_axis axis, const grant_axis *g) {
    return str_fmt(a, "permissions.%s: [" STR_FMT "]", axis_name(axis),
                   STR_ARG(str_join(a, g->prefixes.p, g->prefixes.n, S(", "))));
}

// --- Tools ---------------------------------------------------------------------------------------

static void resolve_tool(resolve_ctx *c, const tool_spec *spec, def_place at) {
    const definition *def = c->def;
    str name = str_z(spec->name),
        declared = def->tools_all ? S("tools: all") : str_fmt(c->a, "tools: %s", spec->name);
    const grant_axis *axis = axis_for(c->g, spec->axis);
    const def_axis *block = definition_axis(def, spec->axis);
    def_place block_at = block && block->present ? block->at : def->permissions_at;
    if (!tool_here(c, spec)) {
        report_row *r = row_add(c, "tools", name, ITEM_MISSING,
                                S("not in this host's toolset: this version has no such tool yet"), at);
        row_rule(c, r, declared, "declares", at);
        row_rule(c, r, S("the host's toolset"), "lacks it", (def_place){0});
        return;
    }
    if (spec == toolspec_find(S("use_skill"))) {
        // Mounted by the skills dimension, which knows whether there is one to use.
        if (!def->skills.n) {
            report_row *r = row_add(c, "tools", name, ITEM_REFUSED,
                                    S("no skills are declared, so it grants nothing"), at);
            row_rule(c, r, declared, "declares", at);
            row_rule(c, r, S("skills: absent"), "leaves nothing to use", (def_place){0});
        }
        return;
    }
    if (axis && axis->bounded && !axis->prefixes.n) {
        report_row *r = row_add(c, "tools", name, ITEM_REFUSED,
                                str_fmt(c->a, "`permissions` has no `%s`", axis_name(spec->axis)), at);
        row_rule(c, r, declared, "declares", at);
        row_rule(c, r, str_fmt(c->a, "permissions without `%s`", axis_name(spec->axis)), "removes", block_at);
        return;
    }
    tool_mount(c, spec);
    bool narrowed = axis && axis->bounded && !(axis->prefixes.n == 1 && str_eq(axis->prefixes.p[0], S(".")));
    str label = narrowed ? axis_label(c->a, spec->axis, axis) : (str){0};
    report_row *r = row_add(c, "tools", name, narrowed ? ITEM_NARROWED : ITEM_GRANTED,
                            narrowed ? str_fmt(c->a, "only " STR_FMT, STR_ARG(label)) : (str){0}, at);
    row_rule(c, r, declared, "grants", at);
    if (narrowed) row_rule(c, r, label, "narrows", block_at);
}

void resolve_tools(resolve_ctx *c) {
    const definition *def = c->def;
    c->g->read = axis_of(def, &def->read);
    c->g->write = axis_of(def, &def->write);
    c->g->run = axis_of(def, &def->run);
    c->g->net = axis_of(def, &def->net);
    for (size_t i = 0; i < def->n_tools; i++) resolve_tool(c, def->tools[i].tool, def->tools[i].at);
}

// --- Main's quartet ------------------------------------------------------------------------------

// The row's schema with `agent` as an enum of exactly the runnable definitions.
static str task_schema(const resolve_ctx *c) {
    buf out = buf_new(c->a, 0);
    jw w = jw_new(&out);
    buf_add(&out, S("{\"type\":\"object\",\"properties\":{\"agent\":{\"type\":\"string\",\"enum\":"));
    jw_arr(&w);
    for (vec_each(const host_agent, a, &c->h->agents)) jw_str(&w, a->name);
    jw_end_arr(&w);
    buf_add(
        &out,
        S("},\"task\":{\"type\":\"string\",\"minLength\":1,\"description\":\"The whole task: the subagent "
          "sees nothing else\"},\"description\":{\"type\":\"string\",\"description\":\"A few words for "
          "people\"},\"model\":{\"type\":\"string\",\"description\":\"Another provider/model\"},"
          "\"background\":{\"type\":\"boolean\",\"description\":\"Answer with an id at once; TaskWait "
          "gives the report\"},\"resume\":{\"type\":\"string\",\"description\":\"Id of an ended "
          "delegation to continue with this task\"}},\"required\":[\"agent\",\"task\"],"
          "\"additionalProperties\":false}"));
    return buf_str(&out);
}

// The routing labels stand in the tool's own description: they are what the choice rests on.
static str task_description(const resolve_ctx *c) {
    buf out = buf_new(c->a, 0);
    buf_add(&out, S("Hands a task to a subagent and returns its report. Task calls of one answer run at the "
                    "same time. Subagents:"));
    size_t left_out = 0;
    for (vec_each(const host_agent, a, &c->h->agents)) {
        if (out.n > TASK_LABELS_MAX) {
            left_out++;
            continue;
        }
        buf_add(&out, S("\n- "));
        foreign_add(&out, a->name, FOREIGN_LINE, TASK_LABEL_CHARS);
        if (a->description.n) buf_add(&out, S(": "));
        foreign_add(&out, a->description, FOREIGN_LINE, TASK_LABEL_CHARS);
    }
    if (left_out) buf_addf(&out, "\n- and %zu more, by name only", left_out);
    return buf_str(&out);
}

void resolve_main(resolve_ctx *c) {
    if (c->g->role != ROLE_MAIN) return;
    size_t n;
    const tool_spec *all = toolspec_all(&n);
    for (size_t i = 0; i < n; i++) {
        if (!(all[i].flags & TOOL_MAIN)) continue;
        str reason = !tool_here(c, &all[i]) ? S("not in this host's toolset")
                     : !c->h->agents.n
                         ? S("no other definition can run here: there is nobody to hand a task to")
                         : (str){0};
        if (!reason.n) {
            grant_tool *t = tool_mount(c, &all[i]);
            if (i == toolspec_index(toolspec_find(S("Task"))))
                t->schema = task_schema(c), t->description = task_description(c);
        }
        report_row *r = row_add(c, "tools", str_z(all[i].name), reason.n ? ITEM_MISSING : ITEM_GRANTED,
                                reason, (def_place){0});
        row_rule(c, r, S("role main"), "mounts", (def_place){0});
    }
}

// --- Budgets and model ---------------------------------------------------------------------------

// The provider of the model is asked for here, so that `show` and `check` know it before a run does.
static void resolve_model(resolve_ctx *c) {
    const definition *def = c->def;
    grant *g = c->g;
    if (c->h->model.n) {
        g->model = c->h->model;
        g->model_origin = S("the caller");
        return;
    }
    g->model = def->model.n ? def->model : c->h->default_model;
    g->model_origin = def->model.n ? str_fmt(c->a, STR_FMT ":%u", STR_ARG(def->file), def->model_at.line)
                                   : c->h->default_model_origin;
    if (!def->model.n) return;
    str provider, name;
    str_cut(def->model, '/', &provider, &name);
    for (vec_each(const str, p, &c->h->models))
        if (str_eq(*p, provider)) return;
    str near = nearest_name(provider, c->h->models.p, c->h->models.n);
    report_row *r =
        row_add(c, "model", def->model, ITEM_MISSING,
                near.n ? str_fmt(c->a, "no provider of that name is configured; did you mean `" STR_FMT "`?",
                                 STR_ARG(near))
                       : S("no provider of that name is configured; see `deputy models`"),
                def->model_at);
    row_rule(c, r, str_fmt(c->a, "model: " STR_FMT, STR_ARG(def->model)), "declares", def->model_at);
}

// A definition may ask for more than a default, and for less than what the config says.
static int64_t budget(resolve_ctx *c, const char *name, int64_t declared, int64_t configured, bool bound,
                      def_place at) {
    if (declared <= 0) return configured;
    if (!bound || declared <= configured) return declared;
    row_add(c, "limits", str_z(name), ITEM_NARROWED,
            str_fmt(c->a, "the config allows at most %lld", (long long)configured), at);
    return configured;
}

void resolve_budgets(resolve_ctx *c) {
    const definition *def = c->def;
    const host *h = c->h;
    grant *g = c->g;
    g->turns = budget(c, "maxTurns", def->max_turns, h->turns, h->turns_bound, def->max_turns_at);
    g->minutes = budget(c, "limits.minutes", def->minutes, h->minutes, h->minutes_bound, def->minutes_at);
    g->tokens = budget(c, "limits.tokens", def->tokens, h->tokens, h->tokens_bound, def->tokens_at);
    g->tool_bytes = h->tool_bytes;
    g->run_bytes = h->run_bytes;
    g->cost_micro = def->cost_micro ? def->cost_micro : h->cost_micro;
}

// After the model is known. What cannot be measured cannot be held: without a price nothing starts.
static void resolve_cost(resolve_ctx *c) {
    const definition *def = c->def;
    const host *h = c->h;
    grant *g = c->g;
    g->priced = h->priced;
    g->price = h->price;
    if (!g->cost_micro) return;
    bool lowered = def->cost_micro && h->cost_bound && def->cost_micro > h->cost_micro;
    if (lowered) g->cost_micro = h->cost_micro;
    def_place at = def->cost_micro ? def->cost_at : (def_place){0};
    str amount = config_amount(c->a, g->cost_micro),
        declared = def->cost_micro
                       ? str_fmt(c->a, "limits.cost: " STR_FMT, STR_ARG(config_amount(c->a, def->cost_micro)))
                       : str_fmt(c->a, "the config's limits.cost: " STR_FMT, STR_ARG(amount));
    item_state state = !g->priced ? ITEM_REFUSED : lowered ? ITEM_NARROWED : ITEM_GRANTED;
    str reason = !g->priced ? str_fmt(c->a, "the model " STR_FMT " has no price", STR_ARG(g->model))
                 : lowered  ? str_fmt(c->a, "the config allows at most " STR_FMT, STR_ARG(amount))
                            : (str){0};
    report_row *r = row_add(c, "limits", S("cost"), state, reason, at);
    row_rule(c, r, declared, "limits", at);
    if (lowered)
        row_rule(c, r, str_fmt(c->a, "the config's limits.cost: " STR_FMT, STR_ARG(amount)), "narrows",
                 (def_place){0});
    if (g->priced) return;
    row_rule(c, r, str_fmt(c->a, "prices without " STR_FMT, STR_ARG(g->model)), "refuses", (def_place){0});
    if (g->refusal.n) return;
    g->refusal_status = DEP_ERR_REFUSED;
    g->refusal =
        str_fmt(c->a,
                "limits.cost is " STR_FMT " and the model " STR_FMT
                " has no price; write one of a million tokens with `deputy config set 'prices.\"" STR_FMT
                "\"' '{input: N, output: N}'`, or leave limits.cost out",
                STR_ARG(amount), STR_ARG(g->model), STR_ARG(g->model));
}

// --- All of it -----------------------------------------------------------------------------------

static int by_table(const void *x, const void *y) {
    size_t i = toolspec_index(((const grant_tool *)x)->spec),
           j = toolspec_index(((const grant_tool *)y)->spec);
    return (i > j) - (i < j);
}

dep_status resolve(arena *a, const definition *def, const host *h, agent_role role, grant *ret, diags *d,
                   dep_err *err) {
    ARENA_CATCH(a, err);
    grant g = {.role = role,
               .agent = def->name,
               .identity = def->identity,
               .description = def->description,
               .workspace = h->workspace,
               .mcp_search = def->mcp_search,
               .body = def->prompt};
    resolve_ctx c = {.a = a, .def = def, .h = h, .g = &g, .d = d};
    resolve_tools(&c);
    resolve_skills(&c);
    resolve_knowledge(&c);
    resolve_mcp(&c);
    resolve_memory(&c);
    resolve_main(&c);
    if (g.tools.n) qsort(g.tools.p, g.tools.n, sizeof(grant_tool), by_table);
    resolve_residency(&c);
    resolve_gates(&c);
    resolve_budgets(&c);
    resolve_model(&c);
    resolve_cost(&c);
    for (vec_each(const grant_tool, t, &g.tools))
        if (t->spec->flags & TOOL_CHANGES) g.can_change = true;
    if (!g.tools.n && !g.refusal.n) {
        g.refusal_status = DEP_ERR_INVALID;
        g.refusal = S("no tool of it exists here, so a delegation could do nothing");
    }
    if (h->config_fault.n) {
        g.refusal_status = DEP_ERR_INVALID;
        g.refusal = h->config_fault;
    }
    *ret = g;
    return DEP_OK;
}

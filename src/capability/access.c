// capability: residency (what is offered from the start) and gates (what asks first).
//   CAP001 a gate that cannot be read   CAP002 a gate that matches nothing this definition has   CAP003 one
//   tool in both lists
#include "capability/capability_int.h"

static bool named(const def_name *n, const tool_spec *t) {
    if (str_ieq(n->name, str_z(t->name)) || str_eq(n->name, str_z(t->group))) return true;
    // `mcp.<server>` keeps the gateway resident: its tools are reached through it.
    return str_eq(str_z(t->group), S("mcp")) && str_starts(n->name, S("mcp."));
}

static void mount_loaders(resolve_ctx *c) {
    static const char *const loaders[] = {"available_tools", "load_tools"};
    def_place at = c->def->resident_at;
    for (size_t i = 0; i < 2; i++) {
        const tool_spec *spec = toolspec_find(str_z(loaders[i]));
        bool here = tool_here(c, spec);
        if (here) tool_mount(c, spec)->core = true;
        report_row *r = row_add(c, "residency", str_z(loaders[i]), here ? ITEM_GRANTED : ITEM_MISSING,
                                here ? S("something is deferred") : S("not in this host's toolset"), at);
        row_rule(c, r, S("resident"), "mounts", at);
    }
}

void resolve_residency(resolve_ctx *c) {
    const definition *def = c->def;
    if (!def->has_resident) return;
    for (vec_each(grant_tool, t, &c->g->tools)) {
        // What Deputy mounts for a role is not the definition's to defer.
        bool resident = t->spec->flags & (TOOL_MAIN | TOOL_CORE);
        for (vec_each(const def_name, n, &def->resident)) resident = resident || named(n, t->spec);
        if (resident) continue;
        t->deferred = true;
        c->g->n_deferred++;
        report_row *r = row_find(c, "tools", str_z(t->spec->name));
        if (!r) continue;
        if (r->state == ITEM_GRANTED) r->state = ITEM_DEFERRED;
        str why = S("not in `resident`: loaded by name when needed");
        r->reason = r->reason.n ? str_fmt(c->a, STR_FMT "; " STR_FMT, STR_ARG(r->reason), STR_ARG(why)) : why;
        row_rule(c, r, S("resident"), "defers", def->resident_at);
    }
    if (c->g->n_deferred) mount_loaders(c);
}

// --- Gates ---------------------------------------------------------------------------------------

// The definition's text in that line; empty for a place in another file.
static str line_text(const resolve_ctx *c, def_place at) {
    str rest = c->def->text, line = {0};
    if (!str_eq(at.file, c->def->file) || !at.line) return (str){0};
    if (str_starts(rest, S("\xef\xbb\xbf"))) rest = str_sub(rest, 3, rest.n);
    for (uint32_t i = 0; i < at.line && rest.n; i++) str_cut(rest, '\n', &line, &rest);
    return line.n > YAML_LINE_SHOWN_MAX ? (str){0}
           : str_ends(line, S("\r"))    ? str_sub(line, 0, line.n - 1)
                                        : line;
}

static void fault(resolve_ctx *c, const char *code, def_place at, str msg, str hint) {
    diags_add(c->d, (diag){.severity = SEV_ERROR,
                           .code = code,
                           .file = at.file,
                           .line = at.line,
                           .column = at.column,
                           .msg = msg,
                           .hint = hint,
                           .source = line_text(c, at)});
}

static void gate_fault(resolve_ctx *c, const def_gate *g, const char *code, str msg, str hint) {
    fault(c, code, g->at, msg, hint);
    row_add(c, "approval", g->text, ITEM_REFUSED, msg, g->at);
}

static bool declares_tool(const definition *def, const tool_spec *t, agent_role role) {
    for (size_t i = 0; i < def->n_tools; i++)
        if (def->tools[i].tool == t) return true;
    str group = str_z(t->group);
    if (str_eq(group, S("knowledge"))) return def->sources.n > 0;
    if (str_eq(group, S("memory"))) return def->memory != DEF_MEMORY_NONE;
    if (str_eq(group, S("mcp"))) return def->servers.n > 0;
    if (str_eq(group, S("skills"))) return def->skills.n > 0;
    if (t->flags & TOOL_CORE) return def->has_resident;
    return (t->flags & TOOL_MAIN) && role == ROLE_MAIN;
}

static bool gate_matches(const resolve_ctx *c, const gate *g) {
    if (g->kind == GATE_SERVER || g->kind == GATE_SERVER_TOOL) {
        for (vec_each(const def_server, s, &c->def->servers))
            if (str_eq(s->name, g->server)) return true;
        return false;
    }
    size_t n;
    const tool_spec *all = toolspec_all(&n);
    for (size_t i = 0; i < n; i++)
        if (gate_hits(g, &all[i], (str){0}, (str){0}) && declares_tool(c->def, &all[i], c->g->role))
            return true;
    return false;
}

static void matches_nothing(resolve_ctx *c, const def_gate *g, const gate *parsed) {
    strs servers = {0};
    for (vec_each(const def_server, s, &c->def->servers)) vec_push(c->a, &servers, s->name);
    str near = parsed->server.n ? nearest_name(parsed->server, servers.p, servers.n) : (str){0};
    gate_fault(c, g, "CAP002",
               str_fmt(c->a, "the gate \"" STR_FMT "\" matches nothing that this definition declares",
                       STR_ARG(g->text)),
               near.n ? str_fmt(c->a, "did you mean the server `" STR_FMT "`?", STR_ARG(near))
                      : S("declare the tool, or remove the gate"));
}

// A default gate that this definition has no tool for is simply of no use; a declared one is a fault.
static void take_gate(resolve_ctx *c, const def_gate *g, bool review, bool from_default) {
    strs servers = {0}; // the longest name wins, whether it is declared or only configured
    for (vec_each(const def_server, s, &c->def->servers)) vec_push(c->a, &servers, s->name);
    for (vec_each(const host_server, s, &c->h->servers)) vec_push(c->a, &servers, s->name);
    gate parsed = {0};
    dep_err err;
    if (g->is_map) {
        parsed = (gate){.kind = g->tool.n ? GATE_SERVER_TOOL : GATE_SERVER,
                        .text = g->text,
                        .server = g->server,
                        .mcp_tool = g->tool};
    } else if (gate_parse(c->a, g->text, servers.p, servers.n, &parsed, &err) != DEP_OK) {
        gate_fault(
            c, g, "CAP001", str_dup(c->a, str_z(err.msg)),
            S("gates are: a tool, group, group.*, group.tool, mcp.server, mcp.server.tool, core.load_tools"));
        return;
    }
    parsed.review = review;
    parsed.origin = from_default ? S("default") : S("definition");
    parsed.file = g->at.file;
    parsed.line = g->at.line;
    parsed.column = g->at.column;
    if (!gate_matches(c, &parsed)) {
        if (!from_default) matches_nothing(c, g, &parsed);
        return;
    }
    vec_push(c->a, &c->g->gates, parsed);
    report_row *r =
        row_add(c, "approval", g->text, ITEM_GRANTED, S("asks first; an unattended run is denied"), g->at);
    row_rule(c, r, gate_label(c->a, &parsed), "gates", g->at);
}

static bool is_server_gate(const gate *g) {
    return g->kind == GATE_SERVER || g->kind == GATE_SERVER_TOOL;
}

static bool overlap(const gate *x, const gate *y) {
    size_t n;
    const tool_spec *all = toolspec_all(&n), *gateway = toolspec_find(S("mcp"));
    if (is_server_gate(x) && is_server_gate(y))
        return str_eq(x->server, y->server) &&
               (!x->mcp_tool.n || !y->mcp_tool.n || str_eq(x->mcp_tool, y->mcp_tool));
    // A gate on all servers reaches each one's tools.
    if (is_server_gate(x)) return gate_hits(y, gateway, x->server, x->mcp_tool);
    if (is_server_gate(y)) return gate_hits(x, gateway, y->server, y->mcp_tool);
    for (size_t i = 0; i < n; i++)
        if (gate_hits(x, &all[i], (str){0}, (str){0}) && gate_hits(y, &all[i], (str){0}, (str){0}))
            return true;
    return false;
}

static def_place gate_place(const gate *g) {
    return (def_place){.file = g->file, .line = g->line, .column = g->column};
}

static void check_overlap(resolve_ctx *c) {
    for (vec_each(const gate, x, &c->g->gates)) {
        if (x->review) continue;
        for (vec_each(const gate, y, &c->g->gates)) {
            if (!y->review || !str_eq(x->origin, y->origin) || !overlap(x, y)) continue;
            fault(c, "CAP003", gate_place(y),
                  str_fmt(c->a,
                          "\"" STR_FMT "\" in review and \"" STR_FMT "\" in confirm reach the same tool",
                          STR_ARG(y->text), STR_ARG(x->text)),
                  S("keep it in one of the two lists"));
        }
    }
}

// Which rules ask before this tool; a server's gates stand on the server's calls.
static void gate_tool(resolve_ctx *c, grant_tool *t) {
    report_row *r = row_find(c, t->core ? "residency" : "tools", str_z(t->spec->name));
    for (vec_each(const gate, g, &c->g->gates)) {
        if (!gate_hits(g, t->spec, (str){0}, (str){0})) continue;
        t->gated = true;
        if (r) row_rule(c, r, gate_label(c->a, g), "gates", gate_place(g));
    }
    if (!(t->spec->flags & TOOL_GATED)) return;
    t->gated = true;
    if (r) row_rule(c, r, S("level confirm asks before this tool"), "gates", (def_place){0});
}

void resolve_gates(resolve_ctx *c) {
    const definition *def = c->def;
    bool own = def->has_confirm || def->has_review;
    // A declared pair replaces the default one whole in the system layer; in every other layer it is added
    // (rule B11).
    bool use_default = !own || def->layer != LAYER_SYSTEM;
    const host *h = c->h;
    // Those that ask a person first: where both lists reach a tool, the stricter one decides.
    for (size_t i = 0; use_default && i < h->n_default_confirm; i++)
        take_gate(c, &h->default_gates.p[i], false, true);
    for (vec_each(const def_gate, g, &def->confirm)) take_gate(c, g, false, false);
    for (size_t i = h->n_default_confirm; use_default && i < h->default_gates.n; i++)
        take_gate(c, &h->default_gates.p[i], true, true);
    for (vec_each(const def_gate, g, &def->review)) take_gate(c, g, true, false);
    check_overlap(c);
    for (vec_each(grant_tool, t, &c->g->tools)) gate_tool(c, t);
}

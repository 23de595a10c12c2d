// policy: the grammar of gates and whether one reaches a call.
#include <deputy/keytab.h>
#include <deputy/policy.h>

// The nearest of tools or groups, of one group's tools when it is given; empty when nothing is near.
static str nearest(arena *a, str text, bool tools, bool groups, str group) {
    strs names = {0};
    size_t n;
    const tool_spec *t = toolspec_all(&n);
    for (size_t i = 0; tools && i < n; i++)
        if (!group.n || str_eq(str_z(t[i].group), group)) vec_push(a, &names, str_z(t[i].name));
    const tool_group *g = toolspec_groups(&n);
    for (size_t i = 0; groups && i < n; i++) vec_push(a, &names, str_z(g[i].name));
    return nearest_name(text, names.p, names.n);
}

// What else it may have meant, as the end of a message.
static str meant(arena *a, str spelling) {
    return spelling.n ? str_fmt(a, "; did you mean `" STR_FMT "`?", STR_ARG(spelling)) : (str){0};
}

static dep_status unknown_gate(arena *a, str text, dep_err *err) {
    const tool_foreign *f = toolspec_foreign(text);
    str near = f && f->deputy ? str_z(f->deputy) : nearest(a, text, true, true, (str){0});
    return err_set(err, DEP_ERR_INVALID, "the gate \"" STR_FMT "\" matches nothing" STR_FMT, STR_ARG(text),
                   STR_ARG(meant(a, near)));
}

static dep_status parse_mcp(str text, const str *servers, size_t n, gate *g, dep_err *err) {
    str rest = str_sub(text, 4, text.n), best = {0}, tail;
    for (size_t i = 0; i < n; i++) {
        bool whole = str_eq(rest, servers[i]);
        bool head = str_starts(rest, servers[i]) && rest.n > servers[i].n && rest.p[servers[i].n] == '.';
        if ((whole || head) && servers[i].n > best.n) best = servers[i];
    }
    if (!best.n) str_cut(rest, '.', &best, &tail);
    bool has_tool = rest.n > best.n;
    g->server = best;
    g->mcp_tool = has_tool ? str_sub(rest, best.n + 1, rest.n) : (str){0};
    if (!best.n || (has_tool && !g->mcp_tool.n))
        return err_set(err, DEP_ERR_INVALID, "the gate \"" STR_FMT "\" names no %s", STR_ARG(text),
                       best.n ? "tool behind its last dot" : "server");
    if (str_eq(g->mcp_tool, S("*"))) g->mcp_tool = (str){0};
    g->kind = g->mcp_tool.n ? GATE_SERVER_TOOL : GATE_SERVER;
    if (str_chr(g->server, '*') != SIZE_MAX || str_chr(g->mcp_tool, '*') != SIZE_MAX)
        return err_set(err, DEP_ERR_INVALID,
                       "the gate \"" STR_FMT
                       "\" has a `*` inside a name; write mcp.server or mcp.server.tool",
                       STR_ARG(text));
    return DEP_OK;
}

static dep_status parse_dotted(arena *a, str text, size_t dot, gate *g, dep_err *err) {
    str group = str_sub(text, 0, dot), member = str_sub(text, dot + 1, text.n);
    const tool_group *grp = toolspec_group(group);
    if (str_chr(group, '*') != SIZE_MAX || str_chr(member, '.') != SIZE_MAX ||
        (!str_eq(member, S("*")) && str_chr(member, '*') != SIZE_MAX))
        return err_set(err, DEP_ERR_INVALID,
                       "the gate \"" STR_FMT "\" is not of the form group, group.* or group.tool",
                       STR_ARG(text));
    if (!grp) {
        str near = nearest(a, group, false, true, (str){0});
        if (near.n) near = str_fmt(a, STR_FMT "." STR_FMT, STR_ARG(near), STR_ARG(member));
        return err_set(err, DEP_ERR_INVALID,
                       "the gate \"" STR_FMT "\" names no group \"" STR_FMT "\"" STR_FMT, STR_ARG(text),
                       STR_ARG(group), STR_ARG(meant(a, near)));
    }
    if (str_eq(member, S("*"))) {
        g->kind = GATE_GROUP;
        g->group = str_z(grp->name);
        return DEP_OK;
    }
    const tool_spec *t = toolspec_find(member);
    if (!t) {
        str near = nearest(a, member, true, false, group);
        if (near.n) near = str_fmt(a, STR_FMT "." STR_FMT, STR_ARG(group), STR_ARG(near));
        return err_set(err, DEP_ERR_INVALID, "the gate \"" STR_FMT "\" names no tool \"" STR_FMT "\"" STR_FMT,
                       STR_ARG(text), STR_ARG(member), STR_ARG(meant(a, near)));
    }
    if (!str_eq(str_z(t->group), group))
        return err_set(err, DEP_ERR_INVALID, "the gate \"" STR_FMT "\": %s is in the group %s; write `%s.%s`",
                       STR_ARG(text), t->name, t->group, t->group, t->name);
    g->kind = GATE_TOOL;
    g->tool = t;
    return DEP_OK;
}

dep_status gate_parse(arena *a, str text, const str *servers, size_t n_servers, gate *ret, dep_err *err) {
    gate g = {.text = text};
    size_t dot = str_chr(text, '.');
    if (str_starts(text, S("mcp.")) && !str_eq(text, S("mcp.*"))) {
        TRY(parse_mcp(text, servers, n_servers, &g, err));
        *ret = g;
        return DEP_OK;
    }
    if (dot != SIZE_MAX) {
        TRY(parse_dotted(a, text, dot, &g, err));
        *ret = g;
        return DEP_OK;
    }
    // A group wins over a tool of the same name (todo, mcp): it holds the tool and what the group gains
    // later.
    const tool_group *grp = toolspec_group(text);
    const tool_spec *t = grp ? NULL : toolspec_find(text);
    if (!grp && !t) return unknown_gate(a, text, err);
    g.kind = grp ? GATE_GROUP : GATE_TOOL;
    g.group = grp ? str_z(grp->name) : (str){0};
    g.tool = t;
    *ret = g;
    return DEP_OK;
}

bool gate_hits(const gate *g, const tool_spec *tool, str server, str mcp_tool) {
    switch (g->kind) {
    case GATE_TOOL: return g->tool == tool;
    case GATE_GROUP: return str_eq(g->group, str_z(tool->group));
    case GATE_SERVER: return str_eq(g->server, server);
    case GATE_SERVER_TOOL: return str_eq(g->server, server) && str_eq(g->mcp_tool, mcp_tool);
    }
    return true;
}

str gate_label(arena *a, const gate *g) {
    str at = g->file.n ? str_fmt(a, " (" STR_FMT ":%u)", STR_ARG(g->file), g->line) : (str){0};
    return str_fmt(a, "approval.%s: " STR_FMT STR_FMT, g->review ? "review" : "confirm", STR_ARG(g->text),
                   STR_ARG(at));
}

decision policy_decide(arena *a, const gate *gates, size_t n, const tool_spec *tool, str server, str mcp_tool,
                       str *why) {
    for (size_t i = 0; i < n; i++) {
        if (!gate_hits(&gates[i], tool, server, mcp_tool)) continue;
        *why = gate_label(a, &gates[i]);
        return DECIDE_ASK;
    }
    if (tool->flags & TOOL_GATED) {
        *why = S("level confirm asks before this tool");
        return DECIDE_ASK;
    }
    return DECIDE_ALLOW;
}

bool path_under(str path, const str *prefixes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        str p = prefixes[i];
        if (str_eq(p, S(".")) || p.n == 0 || str_eq(path, p)) return true;
        if (str_starts(path, p) && path.p[p.n] == '/') return true;
    }
    return false;
}

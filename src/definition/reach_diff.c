// definition: two reaches compared. Growth is decided thing by thing: a narrower path, a gate that another
// one holds, or a gate whose tool is gone is none; a dropped exclude, include, readonly, permission or gate
// is.
#include "definition/definition_int.h"
#include <deputy/json.h>

static bool is_str(const json *v) {
    return v && v->kind == JSON_STRING;
}

static const json *first(const json *list) {
    return list && list->kind == JSON_ARRAY ? list->child : NULL;
}

static bool in_list(const json *list, str s) {
    for (const json *e = first(list); e; e = e->next)
        if (is_str(e) && str_eq(e->s, s)) return true;
    return false;
}

static void names_beyond(arena *a, const json *is, const json *was, const char *key, const char *label,
                         strs *out) {
    for (const json *e = first(json_get(is, str_z(key))); e; e = e->next)
        if (is_str(e) && !in_list(json_get(was, str_z(key)), e->s))
            vec_push(a, out, str_fmt(a, "%s " STR_FMT, label, STR_ARG(e->s)));
}

// --- Permissions ---------------------------------------------------------------------------------

static bool entry_holds(const char *axis, str have, str want) {
    if (str_ieq(have, want)) return str_eq(str_z(axis), S("net")) || str_eq(have, want);
    if (str_eq(str_z(axis), S("run"))) return false;
    if (str_eq(str_z(axis), S("net"))) {
        // *.example.org holds what ends in .example.org, longer patterns too.
        str end = str_sub(have, 1, have.n);
        return str_starts(have, S("*.")) && want.n > end.n &&
               str_ieq(str_sub(want, want.n - end.n, want.n), end);
    }
    if (str_eq(have, S("."))) return true;
    return str_starts(want, have) && want.p[have.n] == '/';
}

static void axis_beyond(arena *a, const json *is, const json *was, const char *axis, strs *out) {
    const json *now = json_get(is, str_z(axis)), *then = json_get(was, str_z(axis));
    bool paths = str_eq(str_z(axis), S("read")) || str_eq(str_z(axis), S("write"));
    if (!now || (then && then->kind == JSON_NULL)) return;
    if (now->kind == JSON_NULL && !(paths && in_list(then, S("."))))
        vec_push(a, out, str_fmt(a, paths ? "%s the whole workspace" : "%s without bounds", axis));
    for (const json *e = first(now); e; e = e->next) {
        bool held = false;
        for (const json *h = first(then); h && is_str(e); h = h->next)
            held = held || (is_str(h) && entry_holds(axis, h->s, e->s));
        if (is_str(e) && !held) vec_push(a, out, str_fmt(a, "%s " STR_FMT, axis, STR_ARG(e->s)));
    }
}

// --- Servers -------------------------------------------------------------------------------------

static const json *server_of(const json *reach, str name) {
    for (const json *e = first(json_get(reach, S("servers"))); e; e = e->next)
        if (str_eq(json_str(e, S("name"), (str){0}), name)) return e;
    return NULL;
}

static bool takes_all(const json *server) {
    const json *include = json_get(server, S("include"));
    return server && (!include || include->kind == JSON_NULL);
}

static void server_beyond(arena *a, const json *now, const json *then, strs *out) {
    str name = json_str(now, S("name"), (str){0});
    bool readonly = json_bool(now, S("readonly"), false);
    // Tools that only read are part of all tools, not the reverse.
    bool comparable = then && (readonly || !json_bool(then, S("readonly"), false));
    const char *kind = readonly ? "read-only tools" : "tools";
    if (takes_all(now)) {
        if (!comparable || !takes_all(then))
            vec_push(a, out, str_fmt(a, "server " STR_FMT ": all %s", STR_ARG(name), kind));
        return;
    }
    const json *include = first(json_get(now, S("include")));
    if (!then && !include) vec_push(a, out, str_fmt(a, "server " STR_FMT, STR_ARG(name)));
    for (const json *e = include; e; e = e->next) {
        if (!is_str(e) || (comparable && (takes_all(then) || in_list(json_get(then, S("include")), e->s))))
            continue;
        vec_push(a, out,
                 str_fmt(a, "server " STR_FMT ": " STR_FMT "%s", STR_ARG(name), STR_ARG(e->s),
                         readonly ? " (if read-only)" : ""));
    }
}

static void servers_beyond(arena *a, const json *is, const json *was, strs *out) {
    for (const json *e = first(json_get(is, S("servers"))); e; e = e->next)
        server_beyond(a, e, server_of(was, json_str(e, S("name"), (str){0})), out);
}

// --- Knowledge -----------------------------------------------------------------------------------

// The exclude of `then` that `now` no longer has; empty when it has them all.
static str exclude_lost(const json *now, const json *then) {
    for (const json *e = first(json_get(then, S("exclude"))); e; e = e->next) {
        bool held = false;
        for (const json *h = first(json_get(now, S("exclude"))); h; h = h->next)
            held = held || (is_str(h) && is_str(e) && reach_path_holds(h->s, e->s));
        if (is_str(e) && !held) return e->s;
    }
    return (str){0};
}

static void source_beyond(arena *a, const json *now, const json *was, strs *out) {
    str path = json_str(now, S("path"), (str){0}), lost = {0};
    for (const json *then = first(json_get(was, S("knowledge"))); then; then = then->next) {
        str before = json_str(then, S("path"), (str){0});
        if (!before.n || !reach_path_holds(before, path)) continue;
        str one = exclude_lost(now, then);
        if (!one.n) return;
        lost = one;
    }
    vec_push(
        a, out,
        lost.n ? str_fmt(a, "knowledge " STR_FMT ", no longer without " STR_FMT, STR_ARG(path), STR_ARG(lost))
               : str_fmt(a, "knowledge " STR_FMT, STR_ARG(path)));
}

static void knowledge_beyond(arena *a, const json *is, const json *was, strs *out) {
    for (const json *e = first(json_get(is, S("knowledge"))); e; e = e->next) source_beyond(a, e, was, out);
}

// --- Gates ---------------------------------------------------------------------------------------

typedef uint64_t tool_set; // by toolspec index

static tool_set every_tool(bool (*fits)(const tool_spec *, str), str arg) {
    size_t n;
    tool_set set = 0;
    const tool_spec *all = toolspec_all(&n);
    for (size_t i = 0; i < n; i++)
        if (fits(&all[i], arg)) set |= (tool_set)1 << i;
    return set;
}

static bool in_group(const tool_spec *t, str group) {
    return str_eq(str_z(t->group), group);
}

static bool is_named(const tool_spec *t, str name) {
    return str_ieq(str_z(t->name), name);
}

// The tools that a gate's text stands for; the texts are right, since only valid definitions have a reach.
static tool_set gate_tools(str text) {
    str group, member = {0};
    bool dotted = str_cut(text, '.', &group, &member);
    if (!dotted && !toolspec_group(text)) return every_tool(is_named, text);
    return !dotted || str_eq(member, S("*")) ? every_tool(in_group, group) : every_tool(is_named, member);
}

static tool_set reachable(const json *reach) {
    const struct {
        const char *group;
        bool there;
    } dimensions[] = {
        {"knowledge", first(json_get(reach, S("knowledge")))},
        {"mcp", first(json_get(reach, S("servers")))},
        {"skills", first(json_get(reach, S("skills")))},
        {"memory", !str_eq(json_str(reach, S("memory"), S("none")), S("none"))},
        {"core", json_bool(reach, S("loads"), false)},
        {"delegation", true},
    };
    tool_set set = 0;
    for (const json *e = first(json_get(reach, S("tools"))); e; e = e->next)
        if (is_str(e)) set |= every_tool(is_named, e->s);
    for (size_t i = 0; i < sizeof dimensions / sizeof *dimensions; i++)
        if (dimensions[i].there) set |= every_tool(in_group, str_z(dimensions[i].group));
    return set;
}

// Is a call of this server's tool (empty: of each of them) gated by the list?
static bool server_gated(const json *list, str server, str tool) {
    for (const json *g = first(list); g; g = g->next) {
        if (is_str(g) && gate_tools(g->s) & every_tool(in_group, S("mcp"))) return true;
        str s = json_str(g, S("server"), (str){0}), t = json_str(g, S("tool"), (str){0});
        if (g->kind == JSON_OBJECT && str_eq(s, server) && (!t.n || str_eq(t, tool))) return true;
    }
    return false;
}

// The tools that the list gates; the gateway too when each server of the reach is gated.
static tool_set list_tools(const json *list, const json *reach) {
    tool_set set = 0;
    bool all = first(json_get(reach, S("servers"))) != NULL;
    for (const json *g = first(list); g; g = g->next)
        if (is_str(g)) set |= gate_tools(g->s);
    for (const json *s = first(json_get(reach, S("servers"))); s; s = s->next)
        all = all && server_gated(list, json_str(s, S("name"), (str){0}), (str){0});
    return all ? set | every_tool(in_group, S("mcp")) : set;
}

// Gates of `from` (list `key`) that reach something which `in` reaches and does not gate as strictly.
static void gates_beyond(arena *a, const json *from, const json *in, const char *key, bool reached,
                         strs *out) {
    const json *confirm = json_get(in, S("confirm")), *review = json_get(in, S("review"));
    bool both =
        str_eq(str_z(key), S("review")); // a person's gate is as strict as a reviewer's, not the reverse
    tool_set there = reachable(reached ? in : from);
    tool_set gated = list_tools(confirm, in) | (both ? list_tools(review, in) : 0);
    for (const json *g = first(json_get(from, str_z(key))); g; g = g->next) {
        if (is_str(g)) {
            if (gate_tools(g->s) & there & ~gated)
                vec_push(a, out, str_fmt(a, "%s " STR_FMT, key, STR_ARG(g->s)));
            continue;
        }
        str server = json_str(g, S("server"), (str){0}), tool = json_str(g, S("tool"), (str){0});
        bool held = server_gated(confirm, server, tool) || (both && server_gated(review, server, tool));
        if (held || (reached && !server_of(in, server))) continue;
        vec_push(a, out,
                 str_fmt(a, "%s mcp." STR_FMT "%s" STR_FMT, key, STR_ARG(server), tool.n ? "." : "",
                         STR_ARG(tool)));
    }
}

// --- All of it -----------------------------------------------------------------------------------

static void beyond(arena *a, const json *is, const json *was, strs *out) {
    static const char *const axes[] = {"read", "write", "run", "net"};
    str memory = json_str(is, S("memory"), S("none"));
    names_beyond(a, is, was, "tools", "tool", out);
    for (size_t i = 0; i < 4; i++) axis_beyond(a, is, was, axes[i], out);
    names_beyond(a, is, was, "skills", "skill", out);
    servers_beyond(a, is, was, out);
    knowledge_beyond(a, is, was, out);
    if (!str_eq(memory, S("none")) && !str_eq(memory, json_str(was, S("memory"), S("none"))))
        vec_push(a, out, str_fmt(a, "memory " STR_FMT, STR_ARG(memory)));
    if (!json_bool(is, S("default_gates"), true) && json_bool(was, S("default_gates"), false))
        vec_push(a, out, S("no default gates: a pair of its own stands in their place"));
}

dep_status reach_compare(arena *a, str old_reach, str new_reach, reach_diff *ret, dep_err *err) {
    json *was = NULL, *is = NULL;
    if (old_reach.n) TRY(json_parse(a, old_reach, 0, &was, err));
    if (new_reach.n) TRY(json_parse(a, new_reach, 0, &is, err));
    *ret = (reach_diff){0};
    beyond(a, is, was, &ret->gained);
    beyond(a, was, is, &ret->lost);
    gates_beyond(a, is, was, "confirm", false, &ret->gates_gained);
    gates_beyond(a, is, was, "review", false, &ret->gates_gained);
    gates_beyond(a, was, is, "confirm", true, &ret->gates_lost);
    gates_beyond(a, was, is, "review", true, &ret->gates_lost);
    return DEP_OK;
}

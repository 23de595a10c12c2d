// definition: what a file may reach, as canonical JSON that is stored with trust. One member a dimension;
// what the file names without effect (a tool that its own permissions take away, `use_skill` without skills)
// is no reach. Compared in reach_diff.c.
//   tools, skills [name]      servers [{name, include: null|[tool], readonly}]
//   knowledge [{path, exclude: [glob]}]      memory "private of IDENTITY"
//   read, write, run, net     absent: no tool of that axis; null: unbounded; else the entries
//   confirm, review [gate | {server, tool}]  loads: more tools can be loaded
//   default_gates false: a pair of its own stands in place of the system's
#include <deputy/definition.h>
#include <deputy/json.h>
#include <stdlib.h>

// raw: the items are JSON already, so that sorting their texts sorts the list.
static void add_sorted(arena *a, jw *w, const strs *items, bool raw) {
    str *copy = NEW_N(a, str, items->n);
    if (items->n) memcpy(copy, items->p, items->n * sizeof *copy);
    if (items->n) qsort(copy, items->n, sizeof *copy, str_cmp_qsort);
    jw_arr(w);
    for (size_t i = 0; i < items->n; i++) {
        if (i && str_eq(copy[i], copy[i - 1])) continue;
        if (raw) {
            jw_raw(w, copy[i]);
        } else {
            jw_str(w, copy[i]);
        }
    }
    jw_end_arr(w);
}

// --- Dimensions ----------------------------------------------------------------------------------

static bool has_effect(const definition *def, const tool_spec *t) {
    if (str_eq(str_z(t->group), S("skills"))) return false; // comes with the skills
    const def_axis *axis = definition_axis(def, t->axis);
    return !axis || !def->has_permissions || axis->entries.n;
}

static void add_tools(arena *a, jw *w, const definition *def) {
    strs names = {0};
    for (size_t i = 0; i < def->n_tools; i++)
        if (has_effect(def, def->tools[i].tool)) vec_push(a, &names, str_z(def->tools[i].tool->name));
    jw_key(w, S("tools"));
    add_sorted(a, w, &names, false);
}

static void add_axis(arena *a, jw *w, const definition *def, tool_axis axis) {
    bool used = false;
    for (size_t i = 0; i < def->n_tools; i++)
        used |= def->tools[i].tool->axis == axis && has_effect(def, def->tools[i].tool);
    if (!used) return;
    jw_key(w, str_z(axis_name(axis)));
    if (def->has_permissions) {
        add_sorted(a, w, &definition_axis(def, axis)->entries, false);
    } else {
        jw_null(w);
    }
}

static void add_servers(arena *a, jw *w, const definition *def) {
    strs items = {0};
    for (vec_each(const def_server, s, &def->servers)) {
        buf b = buf_new(a, 0);
        jw one = jw_new(&b);
        jw_obj(&one);
        jw_key(&one, S("include"));
        if (s->has_include) {
            add_sorted(a, &one, &s->include, false);
        } else {
            jw_null(&one);
        }
        jw_kstr(&one, S("name"), s->name);
        jw_kbool(&one, S("readonly"), s->readonly);
        jw_end_obj(&one);
        vec_push(a, &items, buf_str(&b));
    }
    jw_key(w, S("servers"));
    add_sorted(a, w, &items, true);
}

static void add_knowledge(arena *a, jw *w, const definition *def) {
    strs items = {0};
    for (vec_each(const def_source, s, &def->sources)) {
        for (vec_each(const str, path, &s->path)) {
            buf b = buf_new(a, 0);
            jw one = jw_new(&b);
            jw_obj(&one);
            jw_key(&one, S("exclude"));
            add_sorted(a, &one, &s->exclude, false);
            jw_kstr(&one, S("path"), *path);
            jw_end_obj(&one);
            vec_push(a, &items, buf_str(&b));
        }
    }
    jw_key(w, S("knowledge"));
    add_sorted(a, w, &items, true);
}

// --- Gates ---------------------------------------------------------------------------------------

// "server.tool" of a gate: the longest declared server that fits, else the first piece, as in policy.
static void split_server(const definition *def, str rest, str *server, str *tool) {
    *server = (str){0};
    for (vec_each(const def_server, s, &def->servers)) {
        bool fits = str_starts(rest, s->name) && (rest.n == s->name.n || rest.p[s->name.n] == '.');
        if (fits && s->name.n > server->n) *server = s->name;
    }
    if (!server->n) str_cut(rest, '.', server, tool);
    *tool = str_sub(rest, server->n + 1, rest.n);
    if (str_eq(*tool, S("*"))) *tool = (str){0};
}

static void add_gates(arena *a, jw *w, const definition *def, const char *key, const def_gate *gates,
                      size_t n) {
    strs items = {0};
    for (size_t i = 0; i < n; i++) {
        const def_gate *g = &gates[i];
        str server = g->server, tool = g->tool, rest = str_sub(g->text, 4, g->text.n);
        bool mcp = !g->is_map && str_starts(g->text, S("mcp.")) && !str_eq(rest, S("*"));
        if (mcp) split_server(def, rest, &server, &tool);
        buf b = buf_new(a, 0);
        jw one = jw_new(&b);
        if (mcp || g->is_map) {
            jw_obj(&one);
            jw_kstr(&one, S("server"), server);
            jw_kstr(&one, S("tool"), tool);
            jw_end_obj(&one);
        } else {
            jw_str(&one, g->text);
        }
        vec_push(a, &items, buf_str(&b));
    }
    jw_key(w, str_z(key));
    add_sorted(a, w, &items, true);
}

str definition_reach(arena *a, const definition *def) {
    // Private notes belong to an identity: another name reaches other notes (rule B18).
    str memory = def->memory == DEF_MEMORY_SHARED ? S("shared")
                 : def->memory == DEF_MEMORY_PRIVATE
                     ? str_fmt(a, "private of " STR_FMT, STR_ARG(def->identity))
                     : S("none");
    bool own_pair = def->has_confirm || def->has_review;
    strs skills = {0};
    for (vec_each(const def_name, s, &def->skills)) vec_push(a, &skills, s->name);
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w); // members in order of their names: the canonical form
    add_gates(a, &w, def, "confirm", def->confirm.p, def->confirm.n);
    jw_kbool(&w, S("default_gates"), !(own_pair && def->layer == LAYER_SYSTEM));
    add_knowledge(a, &w, def);
    jw_kbool(&w, S("loads"), def->has_resident);
    jw_kstr(&w, S("memory"), memory);
    add_axis(a, &w, def, AXIS_NET);
    add_axis(a, &w, def, AXIS_READ);
    add_gates(a, &w, def, "review", def->review.p, def->review.n);
    add_axis(a, &w, def, AXIS_RUN);
    add_servers(a, &w, def);
    jw_key(&w, S("skills"));
    add_sorted(a, &w, &skills, false);
    add_tools(a, &w, def);
    add_axis(a, &w, def, AXIS_WRITE);
    jw_end_obj(&w);
    return buf_str(&out);
}

// definition: what a file may reach, as canonical JSON that is stored with trust, and the comparison of two
// of them. Growth is decided per item, so that a wider glob, a dropped exclude, a lost gate or a lost
// permission block each count.
#include <deputy/definition.h>
#include <deputy/json.h>
#include <stdlib.h>

static void sorted(jw *w, str key, strs items, arena *a) {
    str *copy = NEW_N(a, str, items.n);
    if (items.n) memcpy(copy, items.p, items.n * sizeof *copy);
    if (items.n) qsort(copy, items.n, sizeof *copy, str_cmp_qsort);
    jw_key(w, key);
    jw_arr(w);
    for (size_t i = 0; i < items.n; i++)
        if (!i || !str_eq(copy[i], copy[i - 1])) jw_str(w, copy[i]);
    jw_end_arr(w);
}

static const char *const memory_words[] = {"none", "private", "shared"};

// The block is a set of strings "kind:detail", each one thing that can be gained or lost: comparing reaches
// is comparing sets.
static void reach_items(arena *a, const definition *def, strs *out) {
    for (size_t i = 0; i < def->n_tools; i++)
        vec_push(a, out, str_fmt(a, "tool %s", def->tools[i].tool->name));
    for (vec_each(const def_name, s, &def->skills))
        vec_push(a, out, str_fmt(a, "skill " STR_FMT, STR_ARG(s->name)));
    for (vec_each(const def_server, s, &def->servers)) {
        const char *kind = s->readonly ? "read-only tools" : "tools";
        if (!s->has_include)
            vec_push(a, out, str_fmt(a, "server " STR_FMT ": all %s", STR_ARG(s->name), kind));
        for (vec_each(const str, t, &s->include))
            vec_push(a, out,
                     str_fmt(a, "server " STR_FMT ": %s " STR_FMT, STR_ARG(s->name), kind, STR_ARG(*t)));
        if (s->has_include && !s->include.n)
            vec_push(a, out, str_fmt(a, "server " STR_FMT ": status", STR_ARG(s->name)));
    }
    for (vec_each(const def_source, s, &def->sources))
        for (vec_each(const str, p, &s->path))
            vec_push(a, out, str_fmt(a, "knowledge " STR_FMT, STR_ARG(*p)));
    if (def->memory) vec_push(a, out, str_fmt(a, "memory %s", memory_words[def->memory]));
    const struct {
        const char *name;
        const def_axis *axis;
    } axes[] = {{"read", &def->read}, {"write", &def->write}, {"run", &def->run}, {"net", &def->net}};
    for (size_t i = 0; i < 4; i++) {
        if (!def->has_permissions) vec_push(a, out, str_fmt(a, "%s without bounds", axes[i].name));
        for (vec_each(const str, e, &axes[i].axis->entries))
            vec_push(a, out, str_fmt(a, "%s " STR_FMT, axes[i].name, STR_ARG(*e)));
    }
}

// What narrows: losing one of these is growth.
static void narrow_items(arena *a, const definition *def, strs *out) {
    for (vec_each(const def_gate, g, &def->confirm))
        vec_push(a, out, str_fmt(a, "confirm " STR_FMT, STR_ARG(g->text)));
    for (vec_each(const def_gate, g, &def->review))
        vec_push(a, out, str_fmt(a, "review " STR_FMT, STR_ARG(g->text)));
    for (vec_each(const def_source, s, &def->sources))
        for (vec_each(const str, e, &s->exclude))
            vec_push(a, out, str_fmt(a, "exclude " STR_FMT " from " STR_FMT, STR_ARG(*e), STR_ARG(s->name)));
}

str definition_reach(arena *a, const definition *def) {
    strs reach = {0}, narrow = {0};
    reach_items(a, def, &reach);
    narrow_items(a, def, &narrow);
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w);
    sorted(&w, S("gates"), narrow, a);
    sorted(&w, S("reach"), reach, a);
    jw_end_obj(&w);
    return buf_str(&out);
}

static bool holds(const json *list, str s) {
    for (const json *e = list ? list->child : NULL; e; e = e->next)
        if (str_eq(e->s, s)) return true;
    return false;
}

// "read docs" is no gain beside "read without bounds" or a parent prefix; the like holds for servers and for
// shared over private memory.
static bool covered(const json *list, str s) {
    if (holds(list, s)) return true;
    for (const json *e = list ? list->child : NULL; e; e = e->next) {
        size_t blank = str_chr(s, ' ');
        str kind = str_sub(s, 0, blank), rest = str_sub(s, blank + 1, s.n), have = e->s;
        if (str_starts(have, kind) && str_ends(have, S(" without bounds")) &&
            have.n == kind.n + sizeof " without bounds" - 1)
            return true;
        if (!str_starts(have, str_sub(s, 0, blank + 1))) continue;
        str hrest = str_sub(have, blank + 1, have.n);
        bool path = str_eq(kind, S("read")) || str_eq(kind, S("write"));
        if (path && (str_eq(hrest, S(".")) ||
                     (str_starts(rest, hrest) && rest.n > hrest.n && rest.p[hrest.n] == '/')))
            return true;
        if (str_eq(kind, S("server"))) {
            str server, tools, hserver, htools;
            size_t at = str_find(rest, S(": ")), hat = str_find(hrest, S(": "));
            if (at == SIZE_MAX || hat == SIZE_MAX) continue;
            server = str_sub(rest, 0, at), tools = str_sub(rest, at + 2, rest.n);
            hserver = str_sub(hrest, 0, hat), htools = str_sub(hrest, hat + 2, hrest.n);
            if (!str_eq(server, hserver)) continue;
            if (str_eq(htools, S("all tools")) || str_eq(tools, S("status"))) return true;
            bool read_only =
                str_starts(tools, S("read-only tools ")) || str_eq(tools, S("all read-only tools"));
            if (read_only && str_eq(htools, S("all read-only tools"))) return true;
            if (str_starts(tools, S("read-only tools ")) && str_starts(htools, S("tools ")) &&
                str_eq(str_sub(tools, 16, tools.n), str_sub(htools, 6, htools.n)))
                return true;
        }
    }
    return false;
}

static void missing_from(arena *a, const json *in, const json *from, bool by_cover, strs *out) {
    for (const json *e = in ? in->child : NULL; e; e = e->next)
        if (by_cover ? !covered(from, e->s) : !holds(from, e->s)) vec_push(a, out, str_dup(a, e->s));
}

dep_status reach_compare(arena *a, str old_reach, str new_reach, reach_diff *ret, dep_err *err) {
    json *was = NULL, *is = NULL;
    if (old_reach.n) TRY(json_parse(a, old_reach, 0, &was, err));
    if (new_reach.n) TRY(json_parse(a, new_reach, 0, &is, err));
    *ret = (reach_diff){0};
    const json *old_set = json_get(was, S("reach")), *new_set = json_get(is, S("reach"));
    missing_from(a, new_set, old_set, true, &ret->gained);
    missing_from(a, old_set, new_set, true, &ret->lost);
    missing_from(a, json_get(is, S("gates")), json_get(was, S("gates")), false, &ret->gates_gained);
    missing_from(a, json_get(was, S("gates")), json_get(is, S("gates")), false, &ret->gates_lost);
    return DEP_OK;
}

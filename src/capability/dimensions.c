// capability: skills, knowledge, MCP and memory. A dimension that is not declared touches nothing here.
#include "capability/capability_int.h"
#include <deputy/json.h>

// --- Skills --------------------------------------------------------------------------------------

static const host_skill *find_skill(const host *h, str name) {
    for (vec_each(const host_skill, s, &h->skills))
        if (str_eq(s->name, name)) return s;
    return NULL;
}

static str nearest_skill(const resolve_ctx *c, str name) {
    strs names = {0};
    for (vec_each(const host_skill, s, &c->h->skills))
        if (!s->withheld.n) vec_push(c->a, &names, s->name);
    str near = nearest_name(name, names.p, names.n);
    return near.n ? str_fmt(c->a, "; did you mean `" STR_FMT "`?", STR_ARG(near)) : (str){0};
}

// The row's schema with `name` as an enum of exactly the granted ones (and the first sentence left as it is).
static str skill_schema(const resolve_ctx *c) {
    buf out = buf_new(c->a, 0);
    jw w = jw_new(&out);
    buf_add(&out, S("{\"type\":\"object\",\"properties\":{\"name\":{\"type\":\"string\",\"enum\":"));
    jw_arr(&w);
    for (vec_each(const host_skill, s, &c->g->skills)) jw_str(&w, s->name);
    jw_end_arr(&w);
    buf_add(&out, S("},\"file\":{\"type\":\"string\",\"description\":\"A file of the skill's own "
                    "folder\"}},\"required\":[\"name\"],\"additionalProperties\":false}"));
    return buf_str(&out);
}

void resolve_skills(resolve_ctx *c) {
    const tool_spec *use_skill = toolspec_find(S("use_skill"));
    for (vec_each(const def_name, s, &c->def->skills)) {
        const host_skill *have = find_skill(c->h, s->name);
        item_state state = ITEM_GRANTED;
        str reason = {0};
        if (!have) {
            state = ITEM_MISSING;
            reason =
                str_fmt(c->a, "no skill of that name is here" STR_FMT, STR_ARG(nearest_skill(c, s->name)));
        } else if (have->withheld.n) {
            state = ITEM_WITHHELD;
            reason = have->withheld;
        } else if (have->hidden) {
            state = ITEM_REFUSED;
            reason = S("its SKILL.md says disable-model-invocation: only a person may use it");
        } else if (!tool_here(c, use_skill)) {
            state = ITEM_MISSING;
            reason = S("use_skill is not in this host's toolset");
        } else {
            vec_push(c->a, &c->g->skills, *have);
        }
        report_row *r = row_add(c, "skills", s->name, state, reason, s->at);
        row_rule(c, r, str_fmt(c->a, "skills: " STR_FMT, STR_ARG(s->name)), "declares", s->at);
        const char *effect = state == ITEM_GRANTED    ? "grants"
                             : state == ITEM_WITHHELD ? "withholds"
                                                      : "removes";
        if (have)
            row_rule(c, r, str_fmt(c->a, "found at " STR_FMT, STR_ARG(have->location)), effect,
                     (def_place){.file = have->location, .line = 1});
    }
    def_place at = c->def->tools_at;
    bool declared = false;
    for (size_t i = 0; i < c->def->n_tools; i++)
        if (c->def->tools[i].tool == use_skill) declared = true, at = c->def->tools[i].at;
    if (!c->g->skills.n) {
        if (!declared || !c->def->skills.n || !tool_here(c, use_skill)) return;
        report_row *none =
            row_add(c, "tools", S("use_skill"), ITEM_REFUSED, S("none of the declared skills is here"), at);
        row_rule(c, none, S("tools: use_skill"), "declares", at);
        row_rule(c, none, S("skills"), "removes", c->def->skills.p[0].at);
        return;
    }
    grant_tool *t = tool_mount(c, use_skill);
    t->schema = skill_schema(c);
    report_row *r = row_add(c, "tools", S("use_skill"), ITEM_GRANTED,
                            str_fmt(c->a, "only for the declared skills: %zu", c->g->skills.n), at);
    row_rule(c, r, declared ? S("tools: use_skill") : S("skills"), "grants", at);
}

// --- Knowledge -----------------------------------------------------------------------------------

static str kb_schema(const resolve_ctx *c) {
    buf out = buf_new(c->a, 0);
    jw w = jw_new(&out);
    buf_add(&out, S("{\"type\":\"object\",\"properties\":{\"query\":{\"type\":\"string\",\"minLength\":1,"
                    "\"maxLength\":4096},"
                    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"description\":\"Hits; 10 "
                    "when absent\"},"
                    "\"source\":{\"type\":\"string\",\"enum\":"));
    jw_arr(&w);
    for (vec_each(const def_source, s, &c->g->sources)) jw_str(&w, s->name);
    jw_end_arr(&w);
    buf_add(&out,
            S(",\"description\":\"Only this source\"},\"path\":{\"type\":\"string\",\"description\":\"Only "
              "files matching this glob, or below this "
              "directory\"}},\"required\":[\"query\"],\"additionalProperties\":false}"));
    return buf_str(&out);
}

void resolve_knowledge(resolve_ctx *c) {
    const tool_spec *kb = toolspec_find(S("kb_search"));
    if (!c->def->sources.n) return;
    bool here = tool_here(c, kb);
    size_t i = 0;
    for (vec_each(const def_source, s, &c->def->sources)) {
        size_t files = c->h->source_files ? c->h->source_files[i] : SIZE_MAX;
        i++;
        item_state state = ITEM_GRANTED;
        str reason = files == SIZE_MAX ? (str){0} : str_fmt(c->a, "%zu file%s", files, files == 1 ? "" : "s");
        if (!here) {
            state = ITEM_MISSING;
            reason = S("kb_search is not in this host's toolset");
        } else if (files == 0) {
            state = ITEM_MISSING;
            reason = S("no file matches its path now; the source stays, files may come");
        }
        if (here) vec_push(c->a, &c->g->sources, *s);
        report_row *r = row_add(c, "knowledge", s->name, state, reason, s->at);
        row_rule(c, r,
                 str_fmt(c->a, "knowledge: " STR_FMT, STR_ARG(str_join(c->a, s->path.p, s->path.n, S(", ")))),
                 "declares", s->at);
        for (vec_each(const str, x, &s->exclude))
            row_rule(c, r, str_fmt(c->a, "exclude: " STR_FMT, STR_ARG(*x)), "narrows", s->at);
    }
    if (!here) return;
    c->g->source_files = c->h->source_files;
    grant_tool *t = tool_mount(c, kb);
    t->schema = kb_schema(c);
    report_row *r =
        row_add(c, "tools", S("kb_search"), ITEM_GRANTED, S("through knowledge"), c->def->sources.p[0].at);
    row_rule(c, r, S("knowledge"), "grants", c->def->sources.p[0].at);
}

// --- MCP -----------------------------------------------------------------------------------------

static const host_server *find_server(const host *h, str name) {
    for (vec_each(const host_server, s, &h->servers))
        if (str_eq(s->name, name)) return s;
    return NULL;
}

void resolve_mcp(resolve_ctx *c) {
    const tool_spec *gateway = toolspec_find(S("mcp"));
    if (!c->def->servers.n) return;
    bool here = tool_here(c, gateway);
    for (vec_each(const def_server, s, &c->def->servers)) {
        const host_server *have = find_server(c->h, s->name);
        item_state state = ITEM_GRANTED;
        str reason = {0};
        if (!have) {
            strs names = {0};
            for (vec_each(const host_server, o, &c->h->servers)) vec_push(c->a, &names, o->name);
            str near = nearest_name(s->name, names.p, names.n);
            state = ITEM_UNCONNECTED;
            reason = near.n ? str_fmt(c->a, "not configured; did you mean `" STR_FMT "`?", STR_ARG(near))
                            : S("declared, not configured here");
        } else if (have->state == SERVER_DISABLED) {
            state = ITEM_DISABLED;
            reason = S("declared, switched off here");
        }
        if (!here) {
            state = ITEM_UNCONNECTED;
            reason = S("not yet: this version connects to no MCP server");
        } else {
            vec_push(c->a, &c->g->servers,
                     have ? *have : (host_server){.name = s->name, .state = SERVER_DISABLED});
        }
        report_row *r = row_add(c, "mcp", s->name, state, reason, s->at);
        row_rule(c, r, str_fmt(c->a, "mcp.servers: " STR_FMT, STR_ARG(s->name)), "declares", s->at);
        if (s->has_include)
            row_rule(c, r,
                     str_fmt(c->a, "include: [" STR_FMT "]",
                             STR_ARG(str_join(c->a, s->include.p, s->include.n, S(", ")))),
                     "narrows", s->at);
        if (s->readonly) row_rule(c, r, S("readonly: true"), "narrows", s->at);
    }
    def_place at = c->def->servers.p[0].at;
    report_row *r = row_add(
        c, "tools", S("mcp"), here ? ITEM_GRANTED : ITEM_MISSING,
        here ? S("through mcp.servers") : S("not yet: this version has no gateway to MCP servers"), at);
    row_rule(c, r, S("mcp.servers"), here ? "grants" : "declares", at);
    if (here) tool_mount(c, gateway);
}

// --- Memory --------------------------------------------------------------------------------------

void resolve_memory(resolve_ctx *c) {
    static const char *const trio[] = {"memory_write", "memory_read", "memory_search"};
    const definition *def = c->def;
    if (def->memory == DEF_MEMORY_NONE) return;
    str word = def->memory == DEF_MEMORY_PRIVATE ? S("private") : S("shared");
    if (c->h->memory_unavailable) {
        report_row *r = row_add(c, "memory", word, ITEM_REFUSED, c->h->memory_reason, def->memory_at);
        row_rule(c, r, str_fmt(c->a, "memory: " STR_FMT, STR_ARG(word)), "declares", def->memory_at);
        return;
    }
    size_t mounted = 0;
    for (size_t i = 0; i < 3; i++) {
        const tool_spec *spec = toolspec_find(str_z(trio[i]));
        bool here = tool_here(c, spec);
        if (here) tool_mount(c, spec), mounted++;
        report_row *r = row_add(c, "tools", str_z(trio[i]), here ? ITEM_GRANTED : ITEM_MISSING,
                                here ? S("through memory") : S("not in this host's toolset"), def->memory_at);
        row_rule(c, r, str_fmt(c->a, "memory: " STR_FMT, STR_ARG(word)), "grants", def->memory_at);
    }
    report_row *r =
        row_add(c, "memory", word, mounted ? ITEM_GRANTED : ITEM_MISSING, (str){0}, def->memory_at);
    row_rule(c, r, str_fmt(c->a, "memory: " STR_FMT, STR_ARG(word)), "grants", def->memory_at);
    if (!mounted) return;
    c->g->memory = def->memory;
    for (vec_each(const host_memory_file, f, &c->h->memory)) vec_push(c->a, &c->g->memory_files, *f);
    for (vec_each(const host_named, f, &c->h->memory_left_out)) vec_push(c->a, &c->g->memory_left_out, *f);
    for (vec_each(const host_named, f, &c->h->memory_notes))
        row_add(c, "memory", f->name, ITEM_GRANTED, f->reason, def->memory_at);
    for (vec_each(const host_named, f, &c->h->memory_withheld)) {
        report_row *w = row_add(c, "memory", f->name, ITEM_WITHHELD, f->reason, def->memory_at);
        row_rule(c, w, f->reason, "withholds", (def_place){0});
    }
}

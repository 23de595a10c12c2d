// definition: rules between keys, and what a person should know about a definition that is well formed.
#include "definition/definition_int.h"
#include <deputy/utf8.h>

static bool has_tool(const definition *def, const char *name) {
    for (size_t i = 0; i < def->n_tools; i++)
        if (str_eq(str_z(def->tools[i].tool->name), str_z(name))) return true;
    return false;
}

static bool has_axis(const definition *def, tool_axis axis) {
    for (size_t i = 0; i < def->n_tools; i++)
        if (def->tools[i].tool->axis == axis) return true;
    return false;
}

static bool has_group(const definition *def, str name) {
    if (str_eq(name, S("knowledge")) || str_eq(name, S("kb_search"))) return def->sources.n > 0;
    if (str_eq(name, S("skills")) || str_eq(name, S("use_skill"))) return def->skills.n > 0;
    const tool_spec *t = toolspec_find(name);
    if (str_eq(name, S("memory")) || (t && str_eq(str_z(t->group), S("memory"))))
        return def->memory != DEF_MEMORY_NONE;
    if (str_eq(name, S("mcp"))) return def->has_mcp;
    if (str_starts(name, S("mcp."))) {
        for (vec_each(const def_server, s, &def->servers))
            if (str_eq(s->name, str_sub(name, 4, name.n))) return true;
        return false;
    }
    for (size_t i = 0; i < def->n_tools; i++)
        if (str_ieq(str_z(def->tools[i].tool->name), name) || str_eq(str_z(def->tools[i].tool->group), name))
            return true;
    return false;
}

static void check_resident(parse_ctx *c) {
    definition *def = c->def;
    const ynode *tools = yaml_get(c->doc->root, S("tools")),
                *resident = yaml_get(c->doc->root, S("resident"));
    if (def->tools_all && !def->has_resident)
        report(c, tools, SEV_ERROR, "DEF008", S("`tools: all` needs `resident`"),
               S("add `resident: [read, glob, grep]`: the rest is loaded when needed"));
    if (!resident || resident->kind == YAML_NODE_MAP) return;
    key_items items = {0};
    keytab_names(c->a, c->doc, resident, &items);
    for (vec_each(const key_item, it, &items)) {
        str name = str_trim(it->text);
        if (!name.n || has_group(def, name)) continue;
        const tool_spec *t = toolspec_find(name);
        if (t || toolspec_group(name)) {
            report_item(c, it, "DEF009",
                        str_fmt(c->a, "`resident` names \"" STR_FMT "\", which this definition does not have",
                                STR_ARG(utf8_cut_chars(name, 60))),
                        S("declare it, or remove it from `resident`"));
        } else {
            const tool_foreign *f = toolspec_foreign(name);
            const char *near = f && f->deputy ? f->deputy : toolspec_nearest(name);
            report_item(
                c, it, "DEF009",
                str_fmt(c->a, "`resident` names \"" STR_FMT "\", which is neither a tool nor a group",
                        STR_ARG(utf8_cut_chars(name, 60))),
                near ? str_fmt(c->a, "did you mean `%s`?", near)
                     : S("groups are: fs fs_write shell web skills todo knowledge memory mcp.<server>"));
        }
    }
}

static void check_reach(parse_ctx *c) {
    definition *def = c->def;
    const ynode *tools = yaml_get(c->doc->root, S("tools"));
    bool private_data =
        def->memory != DEF_MEMORY_NONE || has_axis(def, AXIS_READ) || has_tool(def, "bash") || def->sources.n;
    bool outside =
        has_tool(def, "WebFetch") || has_tool(def, "WebSearch") || has_tool(def, "bash") || def->has_mcp;
    if (private_data && outside && !(def->has_permissions && def->net.present))
        report(c, tools, SEV_NOTE, "DEF024",
               S("it can read private data and send it out, and no `permissions.net` list bounds where to"),
               S("add `permissions` with `net: [hosts]` beside `read: [.]`"));
    if (has_axis(def, AXIS_READ) && !def->has_permissions)
        report(c, tools, SEV_NOTE, "DEF025", S("read reaches the whole workspace"),
               S("narrow it with `permissions.read: [docs]`"));
}

static void check_permissions(parse_ctx *c) {
    definition *def = c->def;
    if (!def->has_permissions) return;
    const struct {
        tool_axis axis;
        const def_axis *block;
    } axes[] = {
        {AXIS_READ, &def->read}, {AXIS_WRITE, &def->write}, {AXIS_RUN, &def->run}, {AXIS_NET, &def->net}};
    for (size_t i = 0; i < sizeof axes / sizeof *axes; i++) {
        if (axes[i].block->entries.n || !has_axis(def, axes[i].axis)) continue;
        report(c, yaml_get(c->doc->root, S("permissions")), SEV_WARNING, "DEF029",
               str_fmt(c->a, "`permissions` has no `%s`, so the tools that need it are not granted",
                       axis_name(axes[i].axis)),
               str_fmt(c->a, "add `%s:` to the block, or take those tools out of `tools`",
                       axis_name(axes[i].axis)));
    }
}

void check_rules(parse_ctx *c) {
    definition *def = c->def;
    const ynode *root = c->doc->root, *tools = yaml_get(root, S("tools"));
    bool other = def->sources.n || def->memory != DEF_MEMORY_NONE || def->has_mcp || def->skills.n;
    if (!def->n_tools && !other && !c->d->errors)
        report(c, tools, SEV_ERROR, "DEF010",
               S("it declares no tool and no other dimension, so it could do nothing"),
               S("add `tools: [read, glob, grep]`"));
    if (def->sources.n && !has_tool(def, "read"))
        report(c, yaml_get(root, S("knowledge")), SEV_WARNING, "DEF011",
               S("knowledge without `read`: a hit is one line, and the file around it cannot be opened"),
               S("add `read` to `tools`"));
    if (has_tool(def, "use_skill") && !def->skills.n && !def->tools_all)
        report(c, tools, SEV_WARNING, "DEF015", S("`use_skill` without `skills` grants nothing"),
               S("add `skills: [name, …]`, or take it out of `tools`"));
    check_resident(c);
    check_permissions(c);
    check_reach(c);
}

void definition_check_save(const definition *def, const ydoc *doc, diags *d) {
    if (def->sources.n && !has_tool(def, "read"))
        yaml_diag(doc, yaml_get(doc->root, S("knowledge")), d,
                  (diag){.severity = SEV_ERROR,
                         .code = "DEF011",
                         .msg = S("knowledge without `read` is not saved"),
                         .hint = S("add `read` to `tools`")});
}

void check_invisible(parse_ctx *c) {
    invisible_finds finds = {0};
    invisible_scan(c->a, c->doc->source, &finds);
    for (vec_each(const invisible_find, f, &finds)) {
        str what = f->decoded.n
                       ? str_fmt(c->a, "; the tag characters spell \"" STR_FMT "\"", STR_ARG(f->decoded))
                       : (str){0};
        diags_add(c->d, (diag){.severity = c->strict ? SEV_ERROR : SEV_WARNING,
                               .code = "DEF021",
                               .file = c->def->file,
                               .line = f->line,
                               .column = 1,
                               .msg = str_fmt(c->a, "invisible text: U+%04X, %zu time%s" STR_FMT, f->cp,
                                              f->count, f->count == 1 ? "" : "s", STR_ARG(what)),
                               .hint = S("remove it unless you know why it is there")});
    }
}

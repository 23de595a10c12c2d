// definition: from the bytes of a file to the struct. Three passes over one tree: the key table (types,
// ranges, unknown keys), the values, and the rules between keys (rules.c). Every fault is collected; a
// definition with an error never runs, but keeps its name.
#include "definition/definition_int.h"
#include <deputy/glob.h>
#include <deputy/sys.h>
#include <deputy/utf8.h>

def_place place_of(const parse_ctx *c, const ynode *n) {
    def_place at = {.file = c->def->file};
    if (n) yaml_place(c->doc, n->start, &at.line, &at.column);
    return at;
}

def_place item_place(const parse_ctx *c, const key_item *it) {
    def_place at = {.file = c->def->file};
    yaml_place(c->doc, it->at ? it->at : it->node->start, &at.line, &at.column);
    return at;
}

void report(const parse_ctx *c, const ynode *n, diag_severity sev, const char *code, str msg, str hint) {
    if (c->strict && sev == SEV_WARNING) sev = SEV_ERROR;
    yaml_diag(c->doc, n, c->d, (diag){.severity = sev, .code = code, .msg = msg, .hint = hint});
}

void report_item(const parse_ctx *c, const key_item *it, const char *code, str msg, str hint) {
    diag e = {.severity = SEV_ERROR, .code = code, .msg = msg, .hint = hint};
    if (it->at && it->node->kind == YAML_NODE_SCALAR && it->text.n < it->node->end - it->node->start) {
        yaml_diag_span(c->doc, it->node, it->at, it->at + it->text.n, c->d, e);
    } else {
        yaml_diag(c->doc, it->node, c->d, e);
    }
}

static str scalar(const ynode *n) {
    return n && n->kind == YAML_NODE_SCALAR && !yaml_is_null(n) ? n->text : (str){0};
}

// --- name, description, prompt, model ------------------------------------------------------------

static str base_name_of(str base) {
    if (str_ends(base, S(".yaml"))) return str_sub(base, 0, base.n - 5);
    if (str_ends(base, S(".yml"))) return str_sub(base, 0, base.n - 4);
    return base;
}

static void take_name(parse_ctx *c, const ynode *root) {
    definition *def = c->def;
    const ynode *n = yaml_get(root, S("name"));
    str name = scalar(n);
    dep_err err;
    def->name_at = place_of(c, n);
    if (!name.n) {
        name = base_name_of(def->base);
        def->name_from_file = true;
        if (root && !n)
            report(c, n, SEV_WARNING, "DEF001",
                   str_fmt(c->a, "no name: the file's base name \"" STR_FMT "\" is used", STR_ARG(name)),
                   str_fmt(c->a, "write `name: " STR_FMT "`", STR_ARG(yaml_scalar_text(c->a, name, false))));
    }
    if (name_check(c->a, name, &def->name, &def->identity, &err) != DEP_OK) {
        report(c, n, SEV_ERROR, "DEF002", str_z(err.msg),
               S("use letters, digits, blanks, '.', '_' and '-', for example `customer-service`"));
        // It cannot run, but keeps the name that was meant.
        def->name = utf8_cut(str_trim(utf8_repair(c->a, name)), DEF_NAME_BYTES);
        def->identity = utf8_fold(c->a, def->name);
    }
}

static void take_texts(parse_ctx *c, const ynode *root) {
    definition *def = c->def;
    const ynode *n = yaml_get(root, S("description"));
    def->description = str_trim(scalar(n));
    def->description_at = place_of(c, n);
    if (n && n->kind == YAML_NODE_SCALAR && !yaml_is_null(n) && !def->description.n)
        report(c, n, SEV_WARNING, "DEF003",
               S("the description is empty: no main agent can tell when to use this subagent"),
               S("say in a sentence when to hand a task to it, and when not"));
    n = yaml_get(root, S("prompt"));
    def->prompt = scalar(n);
    def->prompt_at = place_of(c, n);
    if (def->prompt.n && !str_trim(def->prompt).n)
        report(c, n, SEV_ERROR, "DEF027", S("the prompt is blank"),
               S("write what the subagent should do and how it should report, below `prompt: |`"));
    n = yaml_get(root, S("color"));
    def->color = scalar(n);
    n = yaml_get(root, S("model"));
    def->model = str_trim(scalar(n));
    def->model_at = place_of(c, n);
    size_t slash = str_chr(def->model, '/');
    if (def->model.n > 2 && (slash == SIZE_MAX || slash == 0 || slash + 1 == def->model.n))
        report(
            c, n, SEV_ERROR, "DEF019",
            str_fmt(c->a, "the model \"" STR_FMT "\" is not of the form provider/model", STR_ARG(def->model)),
            S("see `deputy models` for what is configured"));
}

// --- tools ---------------------------------------------------------------------------------------

static void add_tool(parse_ctx *c, const tool_spec *t, def_place at) {
    definition *def = c->def;
    for (size_t i = 0; i < def->n_tools; i++)
        if (def->tools[i].tool == t) return;
    def->tools[def->n_tools].tool = t;
    def->tools[def->n_tools++].at = at;
}

static void take_tool(parse_ctx *c, const key_item *it) {
    str name = str_trim(it->text), shown = utf8_cut_chars(name, 60);
    size_t paren = str_chr(name, '(');
    if (!name.n || str_ieq(name, S("all"))) return; // the table has reported them
    if (paren != SIZE_MAX) {
        str head = str_sub(name, 0, paren);
        report_item(c, it, "DEF006",
                    str_fmt(c->a,
                            "\"" STR_FMT
                            "\" has a condition in parentheses, and Deputy never widens it to the whole tool",
                            STR_ARG(shown)),
                    str_ieq(head, S("bash"))
                        ? S("narrow commands with `permissions.run`, or leave the tool out")
                        : S("narrow with `permissions`, or leave the tool out"));
        return;
    }
    const tool_spec *t = toolspec_find(name);
    if (t && t->flags & TOOL_GRANTABLE) {
        add_tool(c, t, item_place(c, it));
        return;
    }
    const tool_foreign *f = toolspec_foreign(name);
    if (f && f->deputy) {
        report_item(c, it, "DEF005", str_fmt(c->a, "\"" STR_FMT "\" is another host's name", STR_ARG(shown)),
                    str_fmt(c->a, "write `%s`", f->deputy));
    } else if (f) {
        report_item(c, it, "DEF005",
                    str_fmt(c->a, "\"" STR_FMT "\" cannot be granted in `tools`", STR_ARG(shown)),
                    str_z(f->why));
    } else {
        const char *near = toolspec_nearest(name);
        report_item(c, it, "DEF004", str_fmt(c->a, "there is no tool \"" STR_FMT "\"", STR_ARG(shown)),
                    near ? str_fmt(c->a, "did you mean `%s`?", near)
                         : S("tools are: bash read write edit glob grep task_output task_stop WebFetch "
                             "WebSearch use_skill todo"));
    }
}

static void take_tools(parse_ctx *c, const ynode *root) {
    definition *def = c->def;
    const ynode *n = yaml_get(root, S("tools"));
    def->tools_at = place_of(c, n);
    if (!n || n->kind == YAML_NODE_MAP) return;
    if (n->kind == YAML_NODE_SCALAR && str_eq(n->text, S("all"))) {
        def->tools_all = true;
        size_t count;
        const tool_spec *all = toolspec_all(&count);
        for (size_t i = 0; i < count; i++)
            if (all[i].flags & TOOL_GRANTABLE) add_tool(c, &all[i], def->tools_at);
        return;
    }
    key_items items = {0};
    keytab_names(c->a, c->doc, n, &items);
    for (vec_each(const key_item, it, &items)) take_tool(c, it);
}

// --- lists of names ------------------------------------------------------------------------------

static void take_names(parse_ctx *c, const ynode *n, void (*add)(parse_ctx *, str, def_place)) {
    if (!n || n->kind == YAML_NODE_MAP) return;
    key_items items = {0};
    keytab_names(c->a, c->doc, n, &items);
    for (vec_each(const key_item, it, &items)) add(c, str_trim(it->text), item_place(c, it));
}

static void add_skill(parse_ctx *c, str name, def_place at) {
    for (vec_each(def_name, s, &c->def->skills))
        if (str_eq(s->name, name)) return;
    if (c->def->skills.n < DEF_SKILLS_MAX && name.n)
        vec_push(c->a, &c->def->skills, ((def_name){.name = name, .at = at}));
}

static void add_resident(parse_ctx *c, str name, def_place at) {
    for (vec_each(def_name, s, &c->def->resident))
        if (str_ieq(s->name, name)) return;
    if (name.n) vec_push(c->a, &c->def->resident, ((def_name){.name = name, .at = at}));
}

static strs take_strings(parse_ctx *c, const ynode *n) {
    strs out = {0};
    if (!n || n->kind == YAML_NODE_MAP) return out;
    key_items items = {0};
    keytab_strings(c->a, n, &items);
    for (vec_each(const key_item, it, &items))
        if (str_trim(it->text).n) vec_push(c->a, &out, str_trim(it->text));
    return out;
}

// --- mcp -----------------------------------------------------------------------------------------

static void add_server(parse_ctx *c, const ynode *n, def_server s) {
    for (vec_each(def_server, o, &c->def->servers)) {
        if (!str_eq(o->name, s.name)) continue;
        // Of two entries one would be lost, and with it perhaps what it leaves out.
        report(c, n, SEV_ERROR, "DEF016",
               str_fmt(c->a, "the server \"" STR_FMT "\" is declared twice (the other one in line %u)",
                       STR_ARG(utf8_cut_chars(s.name, 60)), o->at.line),
               S("keep one entry, with everything that narrows it"));
        return;
    }
    if (c->def->servers.n < DEF_SERVERS_MAX && s.name.n) vec_push(c->a, &c->def->servers, s);
}

static void take_servers(parse_ctx *c, const ynode *n) {
    if (!n || n->kind == YAML_NODE_MAP) return;
    if (n->kind == YAML_NODE_SCALAR) {
        key_items items = {0};
        keytab_names(c->a, c->doc, n, &items);
        for (vec_each(const key_item, it, &items))
            add_server(c, n, (def_server){.name = it->text, .at = item_place(c, it)});
        return;
    }
    for (const ynode *e = n->child; e; e = e->next) {
        def_server s = {.at = place_of(c, e)};
        if (e->kind == YAML_NODE_SCALAR) {
            s.name = e->text;
        } else if (e->kind == YAML_NODE_MAP) {
            s.name = scalar(yaml_get(e, S("name")));
            const ynode *include = yaml_get(e, S("include"));
            s.has_include = include != NULL;
            s.include = take_strings(c, include);
            yaml_bool(yaml_get(e, S("readonly")), &s.readonly);
        }
        add_server(c, e, s);
    }
}

static void take_mcp(parse_ctx *c, const ynode *root) {
    const ynode *mcp = yaml_get(root, S("mcp"));
    if (!mcp || mcp->kind != YAML_NODE_MAP) return;
    take_servers(c, yaml_get(mcp, S("servers")));
    c->def->has_mcp = c->def->servers.n > 0;
    const ynode *search = yaml_get(mcp, S("search"));
    str word = scalar(search);
    c->def->mcp_search_at = place_of(c, search);
    if (str_eq(word, S("on"))) c->def->mcp_search = MCP_SEARCH_ON;
    if (str_eq(word, S("off"))) c->def->mcp_search = MCP_SEARCH_OFF;
}

// --- knowledge -----------------------------------------------------------------------------------

static void check_office(parse_ctx *c, const ynode *n, str pattern) {
    static const char *const office[] = {".pdf", ".doc", ".docx", ".xls", ".xlsx", ".ppt", ".pptx", ".odt"};
    str lower = str_lower(c->a, pattern);
    for (size_t i = 0; i < sizeof office / sizeof *office; i++)
        if (str_ends(lower, str_z(office[i])))
            report(c, n, SEV_WARNING, "DEF013",
                   str_fmt(c->a, "the search reads text; %s files are named as skipped", office[i]),
                   S("keep a text or Markdown copy beside the file"));
}

// paths: what is searched; else what is left out of it.
static void take_globs(parse_ctx *c, const ynode *n, bool paths, strs *out) {
    *out = (strs){0};
    if (!n || n->kind == YAML_NODE_MAP) return;
    key_items items = {0};
    keytab_strings(c->a, n, &items);
    for (vec_each(const key_item, it, &items)) {
        str pattern = str_trim(it->text);
        glob_pat *g;
        dep_err err;
        if (!pattern.n) continue;
        if (out->n >= DEF_PATHS_MAX) break; // the table has named the excess
        // Compiled only to be checked: a hostile pattern takes megabytes, which must not stay.
        arena *scratch = arena_new();
        dep_status st = glob_compile(scratch, pattern, &g, &err);
        arena_free(scratch);
        if (st == DEP_ERR_NOMEM) c->nomem = true;
        if (st != DEP_OK) {
            report(c, it->node, SEV_ERROR, "DEF012",
                   str_fmt(c->a, "the path \"" STR_FMT "\" cannot be used: %s",
                           STR_ARG(utf8_cut_chars(pattern, 200)), err.msg),
                   S("write a glob relative to the workspace, such as `./docs/**/*.md`"));
            continue;
        }
        if (paths) check_office(c, it->node, pattern);
        vec_push(c->a, out, pattern);
    }
}

static void take_knowledge(parse_ctx *c, const ynode *root) {
    const ynode *list = yaml_get(root, S("knowledge"));
    if (!list || list->kind != YAML_NODE_LIST) return;
    size_t entries = 0;
    for (const ynode *e = list->child; e && entries < DEF_SOURCES_MAX; e = e->next, entries++) {
        if (e->kind != YAML_NODE_MAP) continue;
        def_source s = {.at = place_of(c, e), .name = str_trim(scalar(yaml_get(e, S("name"))))};
        const ynode *encoding = yaml_get(e, S("encoding"));
        s.encoding = str_trim(scalar(encoding));
        if (s.encoding.n && !decode_known_encoding(s.encoding))
            report(c, encoding, SEV_ERROR, "DEF028",
                   str_fmt(c->a, "the encoding \"" STR_FMT "\" is not known", STR_ARG(s.encoding)),
                   S("such as UTF-8, UTF-16LE, GB18030, Big5, Shift_JIS, EUC-KR or windows-1252"));
        take_globs(c, yaml_get(e, S("path")), true, &s.path);
        take_globs(c, yaml_get(e, S("exclude")), false, &s.exclude);
        for (vec_each(def_source, o, &c->def->sources))
            if (s.name.n && str_eq(o->name, s.name))
                report(c, e, SEV_ERROR, "DEF014",
                       str_fmt(c->a, "two sources are called \"" STR_FMT "\" (the other one in line %u)",
                               STR_ARG(s.name), o->at.line),
                       S("give each source a name of its own, or put both globs into one `path` list"));
        if (c->def->sources.n < DEF_SOURCES_MAX && s.name.n && s.path.n) vec_push(c->a, &c->def->sources, s);
    }
}

// --- approval, permissions, limits, the rest -----------------------------------------------------

static void take_gates(parse_ctx *c, const ynode *n, bool confirm) {
    if (!n || n->kind == YAML_NODE_MAP) return;
    key_items items = {0};
    if (n->kind == YAML_NODE_SCALAR) keytab_names(c->a, c->doc, n, &items);
    for (const ynode *e = n->child; e && n->kind == YAML_NODE_LIST; e = e->next)
        vec_push(c->a, &items, ((key_item){.text = e->text, .node = e, .at = e->start}));
    for (vec_each(const key_item, it, &items)) {
        def_gate g = {.text = str_trim(it->text), .at = item_place(c, it)};
        if (it->node->kind == YAML_NODE_MAP) {
            g.is_map = true;
            g.server = scalar(yaml_get(it->node, S("server")));
            g.tool = scalar(yaml_get(it->node, S("tool")));
            g.text = str_fmt(c->a, "mcp." STR_FMT "%s" STR_FMT, STR_ARG(g.server), g.tool.n ? "." : "",
                             STR_ARG(g.tool));
        }
        if (confirm) {
            vec_push(c->a, &c->def->confirm, g);
        } else {
            vec_push(c->a, &c->def->review, g);
        }
    }
}

// The i-th item that take_strings keeps.
static const ynode *axis_item(const ynode *list, size_t i) {
    for (const ynode *e = list->child; e; e = e->next)
        if (str_trim(scalar(e)).n && i-- == 0) return e;
    return list;
}

static void take_axis(parse_ctx *c, const ynode *map, str key, bool paths, def_axis *out) {
    const ynode *n = yaml_get(map, key);
    out->present = n != NULL;
    out->at = place_of(c, n);
    out->entries = take_strings(c, n);
    if (n && n->kind == YAML_NODE_SCALAR && str_chr(n->text, ',') != SIZE_MAX)
        report(c, n, SEV_ERROR, "DEF020",
               S("this is one entry with a comma in it, which would match nothing"),
               S("write a list: [a, b]"));
    if (!paths) return;
    for (size_t i = 0; i < out->entries.n; i++) {
        str rel, *entry = &out->entries.p[i];
        const ynode *at = n->kind == YAML_NODE_LIST ? axis_item(n, i) : n;
        if (!path_normal(c->a, *entry, &rel)) {
            report(c, at, SEV_ERROR, "DEF022",
                   str_fmt(c->a, "the prefix \"" STR_FMT "\" leaves the workspace",
                           STR_ARG(utf8_cut_chars(*entry, 200))),
                   S("write a path relative to the workspace, such as `docs`, or `.` for all of it"));
            continue;
        }
        if (str_chr(rel, '*') != SIZE_MAX)
            report(c, at, SEV_ERROR, "DEF017",
                   str_fmt(c->a, "\"" STR_FMT "\" is a pattern; here stands a path, and all below it counts",
                           STR_ARG(utf8_cut_chars(*entry, 200))),
                   S("write the folder alone, such as `docs`"));
        *entry = rel.n ? rel : S(".");
    }
}

static void take_limits(parse_ctx *c, const ynode *root) {
    definition *def = c->def;
    const ynode *limits = yaml_get(root, S("limits")), *n = yaml_get(root, S("maxTurns"));
    def->max_turns_at = place_of(c, n);
    if (n) yaml_int(n, &def->max_turns);
    n = yaml_get(limits, S("minutes"));
    def->minutes_at = place_of(c, n);
    if (n) yaml_int(n, &def->minutes);
    n = yaml_get(limits, S("tokens"));
    def->tokens_at = place_of(c, n);
    if (n) yaml_int(n, &def->tokens);
    n = yaml_get(limits, S("cost"));
    def->cost_at = place_of(c, n);
    if (n && n->kind == YAML_NODE_SCALAR) keytab_micro(n->text, &def->cost_micro);
}

static void take_rest(parse_ctx *c, const ynode *root) {
    definition *def = c->def;
    const ynode *n = yaml_get(root, S("memory"));
    def->memory_at = place_of(c, n);
    if (str_eq(scalar(n), S("private"))) def->memory = DEF_MEMORY_PRIVATE;
    if (str_eq(scalar(n), S("shared"))) def->memory = DEF_MEMORY_SHARED;
    n = yaml_get(root, S("resident"));
    def->has_resident = n != NULL;
    def->resident_at = place_of(c, n);
    take_names(c, n, add_resident);
    const ynode *approval = yaml_get(root, S("approval"));
    def->has_confirm = yaml_get(approval, S("confirm")) != NULL;
    def->has_review = yaml_get(approval, S("review")) != NULL;
    take_gates(c, yaml_get(approval, S("confirm")), true);
    take_gates(c, yaml_get(approval, S("review")), false);
    const ynode *permissions = yaml_get(root, S("permissions"));
    def->has_permissions = permissions != NULL;
    def->permissions_at = place_of(c, permissions);
    take_axis(c, permissions, S("read"), true, &def->read);
    take_axis(c, permissions, S("write"), true, &def->write);
    take_axis(c, permissions, S("run"), false, &def->run);
    take_axis(c, permissions, S("net"), false, &def->net);
    take_limits(c, root);
}

dep_status definition_parse(arena *a, str file, str base, def_layer layer, str bytes, bool strict,
                            definition *ret, ydoc **ret_doc, diags *d, dep_err *err) {
    ARENA_CATCH(a, err);
    ydoc *doc;
    diags own = diags_new(a);
    definition def = {.file = str_dup(a, file),
                      .base = str_dup(a, base),
                      .layer = layer,
                      .text = bytes,
                      .sha256 = sha256_hex(a, bytes)};
    TRY(yaml_parse(a, file, bytes, DEF_FILE_MAX, true, &doc, &own, err));
    parse_ctx c = {.a = a, .doc = doc, .def = &def, .d = &own, .strict = strict};
    if (doc->root) keytab_check(definition_keys(), doc, &own, strict);
    take_name(&c, doc->root);
    if (doc->root) {
        take_texts(&c, doc->root);
        take_tools(&c, doc->root);
        take_names(&c, yaml_get(doc->root, S("skills")), add_skill);
        take_mcp(&c, doc->root);
        take_knowledge(&c, doc->root);
        take_rest(&c, doc->root);
        check_rules(&c);
    }
    check_invisible(&c);
    if (c.nomem) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    diags_sort(&own);
    diags_merge(d, &own);
    def.valid = own.errors == 0;
    *ret = def;
    if (ret_doc) *ret_doc = doc;
    return DEP_OK;
}

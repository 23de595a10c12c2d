// A definition and a config from any bytes: a name that is safe as a file, diagnostics that lie in the text,
// a grant that holds nothing which the file does not name, a prompt that ends with the body, a reach that is
// the same after fmt, and no growth between equal reaches.
#include <deputy/config.h>
#include <deputy/json.h>
#include <deputy/prompt.h>
#include <deputy/utf8.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void check_diags(const diags *d, str text) {
    size_t lines = 1;
    for (size_t i = 0; i < text.n; i++) lines += text.p[i] == '\n';
    for (vec_each(const diag, it, &d->items)) {
        check(it->line <= lines && utf8_valid(it->msg) && utf8_valid(it->hint) && utf8_valid(it->source));
        check(it->msg.n > 0 && it->code);
    }
}

static definition parse(arena *a, str text, ydoc **doc, diags *d) {
    definition def;
    *d = diags_new(a);
    check(definition_parse(a, S("fuzz.yaml"), S("fuzz.yaml"), LAYER_WORKSPACE, text, false, &def, doc, d,
                           NULL) == DEP_OK);
    return def;
}

static void check_name(arena *a, const definition *def) {
    check(utf8_valid(def->name) && def->name.n <= DEF_NAME_BYTES && utf8_valid(def->identity));
    if (!def->valid) return;
    str file = definition_file_name(a, def->identity), again;
    check(str_chr(file, '/') == SIZE_MAX && file.p[0] != '.' && file.n < 200);
    check(name_check(a, def->name, NULL, &again, NULL) == DEP_OK && str_eq(again, def->identity));
}

static void check_reach(arena *a, const definition *def, const definition *other) {
    str x = definition_reach(a, def), y = definition_reach(a, other);
    reach_diff d;
    json *tree;
    check(str_eq(x, y));
    buf canonical = buf_new(a, 0);
    check(json_parse(a, x, 0, &tree, NULL) == DEP_OK);
    json_canonical(&canonical, tree);
    check(str_eq(buf_str(&canonical), x));
    check(reach_compare(a, x, y, &d, NULL) == DEP_OK);
    check(!d.gained.n && !d.lost.n && !d.gates_gained.n && !d.gates_lost.n);
    check(reach_compare(a, S(""), x, &d, NULL) == DEP_OK && !d.lost.n && !d.gates_lost.n);
}

static host all_tools(void) {
    host h = {.workspace = S("/w"),
              .turns = 60,
              .minutes = 30,
              .tokens = 1000,
              .default_model = S("quote/passages")};
    size_t n;
    toolspec_all(&n);
    for (size_t i = 0; i < n; i++) h.tools[i] = true;
    return h;
}

static bool declares(const definition *def, const grant *g, const grant_tool *t) {
    str group = str_z(t->spec->group);
    for (size_t i = 0; i < def->n_tools; i++)
        if (def->tools[i].tool == t->spec) return true;
    if (str_eq(group, S("knowledge"))) return def->sources.n > 0;
    if (str_eq(group, S("memory"))) return def->memory != DEF_MEMORY_NONE;
    if (str_eq(group, S("mcp"))) return def->servers.n > 0;
    if (str_eq(group, S("skills"))) return def->skills.n > 0;
    return str_eq(group, S("core")) && g->n_deferred;
}

static void check_grant(arena *a, const definition *def) {
    host h = all_tools();
    grant g;
    prompt p;
    diags d = diags_new(a);
    json *tree;
    check(resolve(a, def, &h, ROLE_DELEGATE, &g, &d, NULL) == DEP_OK);
    check_diags(&d, def->text);
    for (vec_each(const grant_tool, t, &g.tools)) {
        check(declares(def, &g, t));
        check(json_parse(a, t->schema, 0, &tree, NULL) == DEP_OK);
    }
    for (vec_each(const report_row, r, &g.report))
        check(r->rules.n > 0 || !str_eq(str_z(r->dimension), S("tools")));
    buf out = buf_new(a, 0);
    report_json(&out, &g);
    check(json_parse(a, buf_str(&out), 0, &tree, NULL) == DEP_OK && tree->count == g.report.n);
    if (assemble(a, &g, &p, NULL) != DEP_OK) return;
    check(utf8_valid(p.text) && str_ends(p.text, def->prompt));
    check(p.parts[p.n_parts - 1].offset + def->prompt.n == p.text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *a = arena_new();
    str text = str_n((const char *)data, size), formatted;
    ydoc *doc, *doc2;
    diags d, d2;
    definition def = parse(a, text, &doc, &d);
    check(def.valid == (d.errors == 0));
    check_diags(&d, text);
    check_name(a, &def);
    if (def.valid) {
        check_reach(a, &def, &def);
        check_grant(a, &def);
    }
    if (!d.errors && definition_format(a, doc, &formatted, NULL) == DEP_OK) {
        definition same = parse(a, formatted, &doc2, &d2);
        check(same.valid && str_eq(same.prompt, def.prompt) && str_eq(same.identity, def.identity));
        check_reach(a, &def, &same);
        str again;
        check(definition_format(a, doc2, &again, NULL) == DEP_OK && str_eq(again, formatted));
    }
    config c = config_defaults();
    diags cd = diags_new(a);
    check(config_parse(a, S("fuzz.yaml"), text, size % 2, &c, &cd, NULL) == DEP_OK);
    check_diags(&cd, text);
    check(size % 2 || (!c.providers.n && !c.has_gates));
    check(c.limits.turns >= 1 && (size % 2 || c.limits.turns <= 60));
    arena_free(a);
    return 0;
}

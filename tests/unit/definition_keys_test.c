// The key table and the parser agree: one file holds every row's key and nothing else, and taking any one of
// them away changes what arrives in the struct.
#include "support/support.h"
#include <deputy/definition.h>
#include <stdio.h>
#include <stdlib.h>

static str every_key(void) {
    return read_all("tests/fixtures/definitions/every-key.yaml");
}

static definition parse(arena *a, str text, ydoc **doc, diags *d) {
    definition def;
    dep_err err;
    *d = diags_new(a);
    assert_int_equal(
        definition_parse(a, S("k.yaml"), S("k.yaml"), LAYER_WORKSPACE, text, false, &def, doc, d, &err),
        DEP_OK);
    return def;
}

// --- Everything that a parse puts into the struct, as text ---------------------------------------

static void add_strs(buf *out, const char *key, const strs *items) {
    buf_addf(out, " %s[", key);
    for (vec_each(const str, s, items)) buf_addf(out, STR_FMT ",", STR_ARG(*s));
    buf_addc(out, ']');
}

static void add_axis(buf *out, const char *name, const def_axis *axis) {
    buf_addf(out, "\n%s %d", name, axis->present);
    add_strs(out, "", &axis->entries);
}

static void add_gates(buf *out, const char *name, bool has, const def_gate *g, size_t n) {
    buf_addf(out, "\n%s %d", name, has);
    for (size_t i = 0; i < n; i++)
        buf_addf(out, " " STR_FMT "|" STR_FMT "|" STR_FMT "|%d", STR_ARG(g[i].text), STR_ARG(g[i].server),
                 STR_ARG(g[i].tool), g[i].is_map);
}

static str dump(arena *a, const definition *def) {
    buf out = buf_new(a, 0);
    buf_addf(&out,
             "name " STR_FMT " %d\ndescription " STR_FMT "\nprompt " STR_FMT "\nmodel " STR_FMT
             "\ncolor " STR_FMT,
             STR_ARG(def->name), def->name_from_file, STR_ARG(def->description), STR_ARG(def->prompt),
             STR_ARG(def->model), STR_ARG(def->color));
    buf_addf(&out, "\ntools %d", def->tools_all);
    for (size_t i = 0; i < def->n_tools; i++) buf_addf(&out, " %s", def->tools[i].tool->name);
    buf_add(&out, S("\nskills"));
    for (vec_each(const def_name, s, &def->skills)) buf_addf(&out, " " STR_FMT, STR_ARG(s->name));
    buf_addf(&out, "\nmcp %d %d", def->has_mcp, (int)def->mcp_search);
    for (vec_each(const def_server, s, &def->servers)) {
        buf_addf(&out, "\n  " STR_FMT " %d %d", STR_ARG(s->name), s->has_include, s->readonly);
        add_strs(&out, "include", &s->include);
    }
    for (vec_each(const def_source, s, &def->sources)) {
        buf_addf(&out, "\nsource " STR_FMT " " STR_FMT, STR_ARG(s->name), STR_ARG(s->encoding));
        add_strs(&out, "path", &s->path);
        add_strs(&out, "exclude", &s->exclude);
    }
    buf_addf(&out, "\nmemory %d\nresident %d", (int)def->memory, def->has_resident);
    for (vec_each(const def_name, s, &def->resident)) buf_addf(&out, " " STR_FMT, STR_ARG(s->name));
    add_gates(&out, "confirm", def->has_confirm, def->confirm.p, def->confirm.n);
    add_gates(&out, "review", def->has_review, def->review.p, def->review.n);
    buf_addf(&out, "\npermissions %d", def->has_permissions);
    add_axis(&out, "read", &def->read);
    add_axis(&out, "write", &def->write);
    add_axis(&out, "run", &def->run);
    add_axis(&out, "net", &def->net);
    buf_addf(&out, "\nlimits %lld %lld %lld %lld\n", (long long)def->max_turns, (long long)def->minutes,
             (long long)def->tokens, (long long)def->cost_micro);
    return buf_str(&out);
}

static const char all_of_it[] = "name every-key 0\n"
                                "description Holds each key that a definition may have\n"
                                "prompt Use every key.\n\n"
                                "model provider/some-model\n"
                                "color blue\n"
                                "tools 0 read write bash WebFetch glob\n"
                                "skills tone-guide\n"
                                "mcp 1 2\n"
                                "  crm 0 0 include[]\n"
                                "  github 1 1 include[search_issues,]\n"
                                "source Manual GB18030 path[docs/**/*.md,] exclude[docs/old,]\n"
                                "memory 2\n"
                                "resident 1 read\n"
                                "confirm 1 bash|||0 mcp.github.search_issues|github|search_issues|1\n"
                                "review 1 WebFetch|||0 mcp.crm.find|crm|find|1\n"
                                "permissions 1\n"
                                "read 1 [docs,]\n"
                                "write 1 [out,]\n"
                                "run 1 [git,]\n"
                                "net 1 [example.org,]\n"
                                "limits 12 5 1000 500000\n";

static void test_definition_keys__each_value_arrives_in_the_struct(void **state) {
    (void)state;
    arena *a = arena_new();
    str text = every_key();
    ydoc *doc;
    diags d;
    definition def = parse(a, text, &doc, &d);
    for (vec_each(const diag, it, &d.items))
        if (it->severity == SEV_ERROR) fail_msg(STR_FMT, STR_ARG(it->msg));
    assert_true(def.valid);
    str got = dump(a, &def);
    if (!str_eq(got, str_z(all_of_it))) fail_msg("got:\n" STR_FMT, STR_ARG(got));
    free((char *)text.p);
    arena_free(a);
}

// --- Rows and keys -------------------------------------------------------------------------------

typedef struct {
    strs paths; // dotted, without indexes
    strs at;    // of keys in the file: with indexes, to find them again
} keys;

static void rows_of(arena *a, const key_row *rows, str above, strs *out) {
    for (const key_row *r = rows; r && r->name; r++) {
        str path = above.n ? str_fmt(a, STR_FMT ".%s", STR_ARG(above), r->name) : str_z(r->name);
        vec_push(a, out, path);
        rows_of(a, r->sub, path, out);
    }
}

static void keys_of(arena *a, const ynode *n, str path, str at, keys *out) {
    size_t i = 0;
    for (const ynode *v = n->child; v; v = v->next, i++) {
        str below = path, below_at = str_fmt(a, STR_FMT "%s%zu", STR_ARG(at), at.n ? "." : "", i);
        if (n->kind == YAML_NODE_MAP) {
            below = str_fmt(a, STR_FMT "%s" STR_FMT, STR_ARG(path), path.n ? "." : "", STR_ARG(v->key->text));
            below_at = str_fmt(a, STR_FMT "%s" STR_FMT, STR_ARG(at), at.n ? "." : "", STR_ARG(v->key->text));
            vec_push(a, &out->paths, below);
            vec_push(a, &out->at, below_at);
        }
        if (!str_starts(below, S("x-"))) keys_of(a, v, below, below_at, out);
    }
}

static bool listed(const strs *l, str s) {
    for (vec_each(const str, e, l))
        if (str_eq(*e, s)) return true;
    return false;
}

static void test_definition_keys__the_file_holds_every_row_and_nothing_else(void **state) {
    (void)state;
    arena *a = arena_new();
    str text = every_key();
    ydoc *doc;
    diags d;
    parse(a, text, &doc, &d);
    strs rows = {0};
    keys in_file = {0};
    rows_of(a, definition_keys()->rows, (str){0}, &rows);
    keys_of(a, doc->root, (str){0}, (str){0}, &in_file);
    for (vec_each(const str, r, &rows))
        if (!str_eq(*r, S("x-*")) && !listed(&in_file.paths, *r))
            fail_msg("no " STR_FMT " in the file", STR_ARG(*r));
    for (vec_each(const str, k, &in_file.paths))
        if (!keytab_find(definition_keys(), *k)) fail_msg("no row for " STR_FMT, STR_ARG(*k));
    // Order in the table is order on the reference page; fmt's order holds the same top-level keys.
    size_t n = 0;
    for (const char *const *k = definition_key_order(); *k; k++, n++)
        assert_non_null(keytab_find(definition_keys(), str_z(*k)));
    size_t top = 0;
    for (const key_row *r = definition_keys()->rows; r->name; r++) top++;
    assert_int_equal(n + 1, top); // x-* has no place of its own
    free((char *)text.p);
    arena_free(a);
}

static void test_definition_keys__taking_any_key_away_changes_the_struct(void **state) {
    (void)state;
    arena *a = arena_new();
    str text = every_key();
    ydoc *doc;
    diags d;
    definition whole = parse(a, text, &doc, &d);
    str before = dump(a, &whole);
    keys in_file = {0};
    keys_of(a, doc->root, (str){0}, (str){0}, &in_file);
    for (size_t i = 0; i < in_file.at.n; i++) {
        if (str_starts(in_file.paths.p[i], S("x-"))) continue;
        str less;
        dep_err err;
        ydoc *doc2;
        diags d2;
        if (yaml_edit(a, doc, YAML_EDIT_UNSET, in_file.at.p[i], (str){0}, NULL, &less, &err) != DEP_OK)
            fail_msg(STR_FMT ": %s", STR_ARG(in_file.at.p[i]), err.msg);
        definition def = parse(a, less, &doc2, &d2);
        if (str_eq(dump(a, &def), before)) fail_msg(STR_FMT " is read by nobody", STR_ARG(in_file.at.p[i]));
    }
    free((char *)text.p);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition_keys__each_value_arrives_in_the_struct),
        cmocka_unit_test(test_definition_keys__the_file_holds_every_row_and_nothing_else),
        cmocka_unit_test(test_definition_keys__taking_any_key_away_changes_the_struct),
    };
    return cmocka_run_group_tests_name("definition_keys", tests, NULL, NULL);
}

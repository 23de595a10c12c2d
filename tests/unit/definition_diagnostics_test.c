// Diagnostics as a person sees them: broken definitions in tests/golden/diagnostics/NAME.yaml and what is
// printed about each (NAME.txt). Files whose YAML is in order are resolved too, for the faults of their
// gates. A golden file is rewritten when DEPUTY_UPDATE_GOLDEN is set; review the difference before it is
// committed.
#include "support/support.h"
#include <deputy/capability.h>
#include <deputy/definition.h>
#include <deputy/json.h>
#include <deputy/utf8.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[] = {
    "all-misspelt",
    "duplicate-keys",
    "gates",
    "indentation",
    "invisible-text",
    "knowledge",
    "misspelt-restrictions",
    "names-and-texts",
    "other-hosts",
    "out-of-range",
    "resident-and-permissions",
    "servers-and-gates",
    "tool-list",
    "tool-names",
    "unquoted-colon",
    "wide-characters",
    "without-values",
    "wrong-types",
    "yaml-features",
};

enum { COUNT = sizeof names / sizeof *names };

static void diagnose(arena *a, const char *name, str text, diags *d, ydoc **doc) {
    str base = str_fmt(a, "%s.yaml", name);
    definition def;
    dep_err err;
    *d = diags_new(a);
    assert_int_equal(definition_parse(a, str_fmt(a, "agents/" STR_FMT, STR_ARG(base)), base, LAYER_WORKSPACE,
                                      text, false, &def, doc, d, &err),
                     DEP_OK);
    assert_false(def.valid && d->errors);
    if (!def.valid) return;
    host h = {.workspace = S("/workspace"), .turns = 60, .minutes = 30, .tokens = 1000000};
    grant g;
    size_t n;
    toolspec_all(&n);
    for (size_t i = 0; i < n; i++) h.tools[i] = true;
    assert_int_equal(resolve(a, &def, &h, ROLE_DELEGATE, &g, d, &err), DEP_OK);
}

static void check_golden(arena *a, const char *name, str text) {
    char *path = str_cz(a, str_fmt(a, "tests/golden/diagnostics/%s.txt", name));
    if (getenv("DEPUTY_UPDATE_GOLDEN")) {
        FILE *f = fopen(path, "we");
        assert_non_null(f);
        assert_int_equal(fwrite(text.p, 1, text.n, f), text.n);
        assert_int_equal(fclose(f), 0);
        return;
    }
    str want = read_all(path);
    bool equal = str_eq(want, text);
    free((char *)want.p);
    if (!equal) fail_msg("%s differs from:\n" STR_FMT, path, STR_ARG(text));
}

static str source_of(const char *name) {
    char path[256];
    snprintf(path, sizeof path, "tests/golden/diagnostics/%s.yaml", name);
    return read_all(path);
}

static void test_definition_diagnostics__broken_files_are_explained_as_in_the_goldens(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        arena *a = arena_new();
        str text = source_of(names[i]);
        diags d;
        ydoc *doc;
        diagnose(a, names[i], text, &d, &doc);
        assert_true(d.errors + d.warnings > 0);
        buf out = buf_new(a, 0);
        diags_print(&out, &d, false);
        check_golden(a, names[i], buf_str(&out));
        free((char *)text.p);
        arena_free(a);
    }
}

static bool pointer_resolves(arena *a, const ydoc *doc, str pointer) {
    const ynode *n = doc->root;
    str rest = str_sub(pointer, 1, pointer.n), part;
    for (bool more = pointer.n > 0; more;) {
        more = str_cut(rest, '/', &part, &rest);
        const ynode *next = yaml_get(n, part);
        if (!next && str_eq(yaml_pointer(a, n), pointer)) return true;
        uint64_t i;
        if (!next && str_u64(part, 100000, &i)) next = yaml_at(n, i);
        if (!next) return false;
        n = next;
    }
    return true;
}

// Every place is one in the file: the line is quoted, the column is in it or right behind it, the path leads
// to a value.
static void test_definition_diagnostics__every_place_is_in_the_file(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        arena *a = arena_new();
        str text = source_of(names[i]);
        diags d;
        ydoc *doc;
        diagnose(a, names[i], text, &d, &doc);
        for (vec_each(const diag, it, &d.items)) {
            str where = str_fmt(a, "%s.yaml:%u:%u %s", names[i], it->line, it->column, it->code);
            if (it->line > doc->n_lines) fail_msg(STR_FMT ": no such line", STR_ARG(where));
            size_t chars = utf8_count(yaml_line(doc, it->line));
            if (it->line && (!it->column || it->column > chars + 1 || it->end > chars + 1))
                fail_msg(STR_FMT ": beyond the line", STR_ARG(where));
            if (doc->root && it->path.n && !pointer_resolves(a, doc, it->path))
                fail_msg(STR_FMT ": no value at " STR_FMT, STR_ARG(where), STR_ARG(it->path));
            assert_true(it->msg.n > 0 && str_chr(it->msg, '\n') == SIZE_MAX);
        }
        // As JSON: the same list, in the same order.
        buf out = buf_new(a, 0);
        json *list;
        dep_err err;
        diags_json(&out, &d);
        assert_int_equal(json_parse(a, buf_str(&out), 0, &list, &err), DEP_OK);
        assert_int_equal(list->count, d.items.n);
        size_t k = 0;
        for (const json *e = list->child; e; e = e->next, k++) {
            assert_true(str_eq(json_str(e, S("code"), (str){0}), str_z(d.items.p[k].code)));
            assert_true(str_eq(json_str(e, S("path"), S("?")), d.items.p[k].path));
            assert_int_equal((int)json_num(e, S("line"), -1), (int)d.items.p[k].line);
        }
        free((char *)text.p);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition_diagnostics__broken_files_are_explained_as_in_the_goldens),
        cmocka_unit_test(test_definition_diagnostics__every_place_is_in_the_file),
    };
    return cmocka_run_group_tests_name("definition_diagnostics", tests, NULL, NULL);
}

// Reach: what a file may reach as canonical JSON, and every kind of growth and loss between two of them. A
// case is a pair of definitions; compared in both directions, so that what one gains the other one loses.
#include "support/support.h"
#include <deputy/definition.h>
#include <deputy/json.h>
#include <stdio.h>

static definition parse_as(arena *a, def_layer layer, str tail) {
    str text = str_fmt(a, "name: x\ndescription: d\nprompt: p\n" STR_FMT, STR_ARG(tail));
    definition def;
    diags d = diags_new(a);
    dep_err err;
    assert_int_equal(definition_parse(a, S("x.yaml"), S("x.yaml"), layer, text, false, &def, NULL, &d, &err),
                     DEP_OK);
    for (vec_each(const diag, it, &d.items))
        if (it->severity == SEV_ERROR) fail_msg(STR_FMT ": " STR_FMT, STR_ARG(text), STR_ARG(it->msg));
    return def;
}

static str reach_of(arena *a, const char *tail) {
    definition def = parse_as(a, LAYER_WORKSPACE, str_z(tail));
    return definition_reach(a, &def);
}

static str joined(arena *a, const reach_diff *d) {
    buf b = buf_new(a, 0);
    for (vec_each(const str, s, &d->gained)) buf_addf(&b, "+" STR_FMT ";", STR_ARG(*s));
    for (vec_each(const str, s, &d->lost)) buf_addf(&b, "-" STR_FMT ";", STR_ARG(*s));
    for (vec_each(const str, s, &d->gates_gained)) buf_addf(&b, "+gate " STR_FMT ";", STR_ARG(*s));
    for (vec_each(const str, s, &d->gates_lost)) buf_addf(&b, "-gate " STR_FMT ";", STR_ARG(*s));
    return buf_str(&b);
}

static void expect(arena *a, const char *from, const char *to, const char *want) {
    reach_diff d;
    dep_err err;
    assert_int_equal(reach_compare(a, reach_of(a, from), reach_of(a, to), &d, &err), DEP_OK);
    str got = joined(a, &d);
    if (!str_eq(got, str_z(want)))
        fail_msg("from: %s\nto: %s\nwant: %s\ngot:  " STR_FMT, from, to, want, STR_ARG(got));
    // Only what is gained or no longer gated is growth.
    assert_int_equal(reach_grew(&d), d.gained.n > 0 || d.gates_lost.n > 0);
}

typedef struct {
    const char *from, *to;
    const char *there, *back; // what the step from → to, and the step back, must give
} pair;

static void check_pairs(const pair *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        arena *a = arena_new();
        expect(a, cases[i].from, cases[i].to, cases[i].there);
        expect(a, cases[i].to, cases[i].from, cases[i].back);
        expect(a, cases[i].to, cases[i].to, "");
        arena_free(a);
    }
}

#define COUNT(x) (sizeof(x) / sizeof *(x))

static void test_definition_reach__tools_and_skills_count_by_name(void **state) {
    (void)state;
    static const pair cases[] = {
        {"tools: [read]\n", "tools: [read, glob]\n", "+tool glob;", "-tool glob;"},
        {"tools: [read, glob]\n", "tools: [GLOB, Read]\n", "", ""},
        {"tools: [read]\n", "tools: [read]\nx-note: 1\nmaxTurns: 9\ncolor: red\nmodel: a/b\n", "", ""},
        {"tools: [read]\n", "tools: [read]\nskills: [a]\n", "+skill a;", "-skill a;"},
        // `use_skill` comes with the skills, and grants nothing without them.
        {"tools: [read]\n", "tools: [read, use_skill]\n", "", ""},
        {"tools: [read]\nskills: [a]\n", "tools: [read, use_skill]\nskills: [a]\n", "", ""},
        {"tools: [read]\n", "tools: [read]\nresident: [read]\n", "", ""},
    };
    check_pairs(cases, COUNT(cases));
}

static void test_definition_reach__memory_of_another_kind_is_growth(void **state) {
    (void)state;
    static const pair cases[] = {
        {"tools: [read]\n", "tools: [read]\nmemory: private\n", "+memory private of x;",
         "-memory private of x;"},
        {"tools: [read]\nmemory: private\n", "tools: [read]\nmemory: shared\n",
         "+memory shared;-memory private of x;", "+memory private of x;-memory shared;"},
        {"tools: [read]\n", "tools: [read]\nmemory: none\n", "", ""},
    };
    check_pairs(cases, COUNT(cases));
}

static void test_definition_reach__permissions_narrow_and_their_loss_is_growth(void **state) {
    (void)state;
#define R "tools: [read]\n"
#define RB "tools: [read, bash]\n"
#define RW "tools: [read, WebFetch]\n"
    static const pair cases[] = {
        // No block is the whole workspace, and so is `.`.
        {R, R "permissions: {read: [docs]}\n", "-read the whole workspace;", "+read the whole workspace;"},
        {R, R "permissions: {read: [.]}\n", "", ""},
        {R "permissions: {read: [docs]}\n", R "permissions: {read: [docs, src]}\n", "+read src;",
         "-read src;"},
        {R "permissions: {read: [docs]}\n", R "permissions: {read: [docs/en]}\n", "-read docs;",
         "+read docs;"},
        {R "permissions: {read: [docs]}\n", R "permissions: {read: [docs, docs/en]}\n", "", ""},
        {R "permissions: {read: [docs]}\n", R "permissions: {read: [docs2]}\n", "+read docs2;-read docs;",
         "+read docs;-read docs2;"},
        {R "permissions: {read: [docs]}\n", R "permissions: {read: [Docs]}\n", "+read Docs;-read docs;",
         "+read docs;-read Docs;"},
        // An axis without a tool is no reach, and a tool that its own block takes away is none either.
        {R "permissions: {read: [docs]}\n", R "permissions: {read: [docs], net: [a.org]}\n", "", ""},
        {R "permissions: {read: [docs]}\n", RB "permissions: {read: [docs]}\n", "", ""},
        {RB "permissions: {read: [docs]}\n", RB "permissions: {read: [docs], run: [git]}\n",
         "+tool bash;+run git;", "-tool bash;-run git;"},
        {RB "permissions: {read: [.], run: [git]}\n", RB, "+run without bounds;", "-run without bounds;"},
        {RB "permissions: {read: [.], run: [git]}\n", RB "permissions: {read: [.], run: [git, gi]}\n",
         "+run gi;", "-run gi;"},
        {RW "permissions: {read: [.], net: ['*.a.org']}\n",
         RW "permissions: {read: [.], net: [X.a.org, '*.b.A.org']}\n", "-net *.a.org;", "+net *.a.org;"},
        {RW "permissions: {read: [.], net: ['*.a.org']}\n", RW "permissions: {read: [.], net: [a.org]}\n",
         "+net a.org;-net *.a.org;", "+net *.a.org;-net a.org;"},
        {RW "permissions: {read: [.], net: ['*.a.org']}\n", RW "permissions: {read: [.], net: [nota.org]}\n",
         "+net nota.org;-net *.a.org;", "+net *.a.org;-net nota.org;"},
        {RW "permissions: {read: [.], net: [a.org]}\n", RW "permissions: {read: [.], net: [A.ORG]}\n", "",
         ""},
    };
    check_pairs(cases, COUNT(cases));
}

static void test_definition_reach__servers_grow_by_tools_and_by_a_dropped_readonly(void **state) {
    (void)state;
#define M(x) "tools: [read]\nmcp: {servers: [" x "]}\n"
    static const pair cases[] = {
        {"tools: [read]\n", M("crm"), "+server crm: all tools;", "-server crm: all tools;"},
        {M("crm"), M("{name: crm}"), "", ""},
        {M("{name: crm, readonly: true}"), M("crm"), "+server crm: all tools;", "-server crm: all tools;"},
        {M("{name: crm, include: [a]}"), M("{name: crm, include: [a, b]}"), "+server crm: b;",
         "-server crm: b;"},
        {M("{name: crm, include: [a]}"), M("crm"), "+server crm: all tools;", "-server crm: all tools;"},
        {M("{name: crm, include: [a], readonly: true}"), M("{name: crm, include: [a]}"), "+server crm: a;",
         "-server crm: a;"},
        {M("{name: crm, include: [a], readonly: true}"), M("{name: crm, readonly: true}"),
         "+server crm: all read-only tools;", "-server crm: all read-only tools;"},
        // One narrows where the other one widens: both directions grow.
        {M("{name: crm, include: [a]}"), M("{name: crm, readonly: true}"),
         "+server crm: all read-only tools;-server crm: a;",
         "+server crm: a;-server crm: all read-only tools;"},
        {M("{name: crm, include: []}"), M("{name: crm, include: [a]}"), "+server crm: a;", "-server crm: a;"},
        {"tools: [read]\n", M("{name: crm, include: []}"), "+server crm;", "-server crm;"},
        {M("crm"), M("Crm"), "+server Crm: all tools;-server crm: all tools;",
         "+server crm: all tools;-server Crm: all tools;"},
        {M("crm"), "tools: [read]\nmcp: {servers: [crm], search: off}\n", "", ""},
    };
    check_pairs(cases, COUNT(cases));
}

static void test_definition_reach__knowledge_grows_by_paths_and_by_dropped_excludes(void **state) {
    (void)state;
#define K(x) "tools: [read]\nknowledge: [" x "]\n"
    static const pair cases[] = {
        {"tools: [read]\n", K("{name: M, path: docs}"), "+knowledge docs;", "-knowledge docs;"},
        {K("{name: M, path: docs}"), K("{name: N, path: ./docs/**/*}"), "", ""},
        {K("{name: M, path: 'docs/**'}"), K("{name: M, path: ['docs/en/**/*.md', docs/fr]}"),
         "-knowledge docs/**;", "+knowledge docs/**;"},
        {K("{name: M, path: 'docs/**/*.md'}"), K("{name: M, path: 'docs/en/*.md'}"),
         "-knowledge docs/**/*.md;", "+knowledge docs/**/*.md;"},
        {K("{name: M, path: 'docs/**/*.md'}"), K("{name: M, path: 'docs/**/*'}"), "+knowledge docs/**/*;",
         "-knowledge docs/**/*;"},
        {K("{name: M, path: docs, exclude: docs/old}"), K("{name: M, path: docs}"),
         "+knowledge docs, no longer without docs/old;", "-knowledge docs, no longer without docs/old;"},
        {K("{name: M, path: docs, exclude: docs/old}"), K("{name: M, path: docs, exclude: docs/old/a}"),
         "+knowledge docs, no longer without docs/old;", "-knowledge docs, no longer without docs/old;"},
        // An exclude that goes with its source, or that a wider one holds, is not lost.
        {K("{name: M, path: docs, exclude: docs/old}, {name: N, path: src}"), K("{name: N, path: src}"),
         "-knowledge docs;", "+knowledge docs;"},
        {K("{name: M, path: docs, exclude: docs/old/a}"), K("{name: M, path: docs, exclude: docs/old}"),
         "-knowledge docs, no longer without docs/old;", "+knowledge docs, no longer without docs/old;"},
        {K("{name: M, path: docs, encoding: GB18030}"), K("{name: M, path: docs}"), "", ""},
    };
    check_pairs(cases, COUNT(cases));
}

// A wildcard enters no hidden name, no node_modules and no folder of version control; naming them is more.
static void test_definition_reach__a_path_that_a_wildcard_would_not_enter_is_growth(void **state) {
    (void)state;
    static const char *const beyond[] = {
        "docs/.secret/**",
        "docs/.env",
        "docs/**/.env",
        "docs/node_modules/x/**",
        "docs/{a,node_modules}/**",
        "docs/CVS/**",
        "docs/.git",
        "docs/[.]x",
        "docs/{.a,b}/**",
        "docs/a{/.x,}",
        "docs/\\.x",
        "doc/**",
        "docs2",
        "**",
        "*",
    };
    for (size_t i = 0; i < COUNT(beyond); i++) {
        arena *a = arena_new();
        reach_diff d;
        dep_err err;
        str to = str_fmt(a, K("{name: M, path: '%s'}"), beyond[i]);
        assert_int_equal(reach_compare(a, reach_of(a, K("{name: M, path: 'docs/**'}")),
                                       reach_of(a, str_cz(a, to)), &d, &err),
                         DEP_OK);
        if (!reach_grew(&d)) fail_msg("%s is no growth beyond docs/**", beyond[i]);
        arena_free(a);
    }
}

static void test_definition_reach__a_gate_is_lost_when_its_tool_stays(void **state) {
    (void)state;
#define G(x)                                                                                                 \
    "tools: [read, glob, todo, bash]\nmcp: {servers: [crm, crm.eu]}\nmemory: private\nresident: [read]\n" x
    static const pair cases[] = {
        {G(""), G("approval: {confirm: [read]}\n"), "+gate confirm read;", "-gate confirm read;"},
        {G("approval: {confirm: [read]}\n"), G("approval: {review: [read]}\n"), "-gate confirm read;",
         "+gate confirm read;"},
        {G("approval: {confirm: [fs]}\n"), G("approval: {confirm: [read, fs.glob]}\n"), "", ""},
        {G("approval: {confirm: [fs.*]}\n"), G("approval: {confirm: [fs]}\n"), "", ""},
        {G("approval: {confirm: [fs]}\n"), G("approval: {confirm: [read]}\n"), "-gate confirm fs;",
         "+gate confirm fs;"},
        {G("approval: {confirm: [mcp.crm]}\n"), G("approval: {confirm: [mcp.crm.find]}\n"),
         "-gate confirm mcp.crm;", "+gate confirm mcp.crm;"},
        // The longest declared name is the server; the map form can say another one.
        {G("approval: {confirm: [mcp.crm.eu.find]}\n"),
         G("approval: {confirm: [{server: crm.eu, tool: find}]}\n"), "", ""},
        {G("approval: {confirm: [mcp.crm.eu.find]}\n"),
         G("approval: {confirm: [{server: crm, tool: eu.find}]}\n"),
         "+gate confirm mcp.crm.eu.find;-gate confirm mcp.crm.eu.find;",
         "+gate confirm mcp.crm.eu.find;-gate confirm mcp.crm.eu.find;"},
        {G("approval: {confirm: [mcp]}\n"), G("approval: {confirm: [mcp.crm, mcp.crm.eu]}\n"), "", ""},
        {G("approval: {confirm: [mcp]}\n"), G("approval: {confirm: [mcp.crm]}\n"), "-gate confirm mcp;",
         "+gate confirm mcp;"},
        {G("approval: {confirm: [mcp.*]}\n"), G("approval: {confirm: [mcp]}\n"), "", ""},
        {G("approval: {confirm: [core.load_tools]}\n"), G(""), "-gate confirm core.load_tools;",
         "+gate confirm core.load_tools;"},
    };
    check_pairs(cases, COUNT(cases));
    // Gone with what it gated: no growth.
    arena *a = arena_new();
    expect(a, "tools: [read, bash]\napproval: {confirm: [bash]}\n", "tools: [read]\n",
           "-tool bash;-run without bounds;");
    expect(a, "tools: [read]\nmemory: private\napproval: {confirm: [memory]}\n", "tools: [read]\n",
           "-memory private of x;");
    expect(a, M("crm") "approval: {confirm: [mcp.crm.find]}\n", "tools: [read]\n", "-server crm: all tools;");
    expect(a, K("{name: M, path: docs}") "approval: {confirm: [kb_search]}\n", "tools: [read]\n",
           "-knowledge docs;");
    expect(a, "tools: [read]\nskills: [a]\napproval: {confirm: [skills]}\n", "tools: [read]\n", "-skill a;");
    expect(a, "tools: [read, glob]\nresident: [read]\napproval: {confirm: [core]}\n", "tools: [read, glob]\n",
           "");
    arena_free(a);
}

// In the system's layer a pair of its own stands in place of the default pair; elsewhere it is added.
static void test_definition_reach__a_pair_that_replaces_the_default_is_growth(void **state) {
    (void)state;
    arena *a = arena_new();
    for (int system = 0; system < 2; system++) {
        def_layer layer = system ? LAYER_SYSTEM : LAYER_WORKSPACE;
        definition without = parse_as(a, layer, S("tools: [read]\n")),
                   with = parse_as(a, layer, S("tools: [read]\napproval: {confirm: [read]}\n"));
        reach_diff d;
        dep_err err;
        assert_int_equal(
            reach_compare(a, definition_reach(a, &without), definition_reach(a, &with), &d, &err), DEP_OK);
        assert_int_equal(reach_grew(&d), system);
    }
    arena_free(a);
}

static void test_definition_reach__nothing_before_makes_everything_growth(void **state) {
    (void)state;
    arena *a = arena_new();
    str reach = reach_of(a, G("skills: [a]\nknowledge: [{name: M, path: docs, exclude: docs/x}]\n"
                              "approval: {confirm: [fs], review: [bash]}\n"));
    static const char *const nothing[] = {"", "null", "[]", "{}",
                                          "{\"tools\":7,\"servers\":{},\"confirm\":[[]]}"};
    for (size_t i = 0; i < COUNT(nothing); i++) {
        reach_diff d;
        dep_err err;
        assert_int_equal(reach_compare(a, str_z(nothing[i]), reach, &d, &err), DEP_OK);
        assert_true(str_eq(joined(a, &d),
                           S("+tool bash;+tool glob;+tool read;+tool todo;+read the whole workspace;"
                             "+run without bounds;+skill a;+server crm: all tools;+server crm.eu: all tools;"
                             "+knowledge docs;+memory private of x;+gate confirm fs;+gate review bash;")));
    }
    reach_diff d;
    dep_err err;
    assert_int_equal(reach_compare(a, S("{"), reach, &d, &err), DEP_ERR_PARSE);
    arena_free(a);
}

// Stored with trust and compared as text there: equal reach is equal bytes, in the canonical form.
static void test_definition_reach__order_and_spelling_leave_the_same_bytes(void **state) {
    (void)state;
    arena *a = arena_new();
    str x = reach_of(a, "tools: [glob, read, glob]\nskills: [b, a]\nknowledge: [{name: M, path: [b, a]}]\n"
                        "mcp: {servers: [y, {name: x, include: [q, p]}]}\napproval: {confirm: [glob, read]}\n"
                        "permissions: {read: [src, docs/]}\n");
    str y =
        reach_of(a, "permissions: {read: [./docs, src]}\napproval: {confirm: [read, glob]}\nskills: a, b\n"
                    "mcp: {servers: [{name: x, include: [p, q]}, y]}\nknowledge: [{name: N, path: [a, b]}]\n"
                    "tools: READ Glob\n");
    assert_true(str_eq(x, y));
    json *tree;
    dep_err err;
    buf canonical = buf_new(a, 0);
    assert_int_equal(json_parse(a, x, 0, &tree, &err), DEP_OK);
    json_canonical(&canonical, tree);
    assert_true(str_eq(buf_str(&canonical), x));
    arena_free(a);
}

static void test_definition_reach__another_name_reaches_other_notes(void **state) {
    (void)state;
    arena *a = arena_new();
    str of[2];
    static const char *const names[] = {"a", "B"};
    for (int i = 0; i < 2; i++) {
        definition def;
        diags d = diags_new(a);
        dep_err err;
        str text =
            str_fmt(a, "name: %s\ndescription: d\ntools: [read]\nmemory: private\nprompt: p\n", names[i]);
        assert_int_equal(
            definition_parse(a, S("a.yaml"), S("a.yaml"), LAYER_WORKSPACE, text, false, &def, NULL, &d, &err),
            DEP_OK);
        of[i] = definition_reach(a, &def);
    }
    reach_diff diff;
    dep_err err;
    assert_int_equal(reach_compare(a, of[0], of[1], &diff, &err), DEP_OK);
    assert_true(reach_grew(&diff));
    assert_true(str_eq(diff.gained.p[0], S("memory private of b")));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition_reach__tools_and_skills_count_by_name),
        cmocka_unit_test(test_definition_reach__memory_of_another_kind_is_growth),
        cmocka_unit_test(test_definition_reach__permissions_narrow_and_their_loss_is_growth),
        cmocka_unit_test(test_definition_reach__servers_grow_by_tools_and_by_a_dropped_readonly),
        cmocka_unit_test(test_definition_reach__knowledge_grows_by_paths_and_by_dropped_excludes),
        cmocka_unit_test(test_definition_reach__a_path_that_a_wildcard_would_not_enter_is_growth),
        cmocka_unit_test(test_definition_reach__a_gate_is_lost_when_its_tool_stays),
        cmocka_unit_test(test_definition_reach__a_pair_that_replaces_the_default_is_growth),
        cmocka_unit_test(test_definition_reach__nothing_before_makes_everything_growth),
        cmocka_unit_test(test_definition_reach__order_and_spelling_leave_the_same_bytes),
        cmocka_unit_test(test_definition_reach__another_name_reaches_other_notes),
    };
    return cmocka_run_group_tests_name("definition_reach", tests, NULL, NULL);
}

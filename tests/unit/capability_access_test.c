// Residency and gates: what is offered from the start, and what asks first.
#include "support/grant_fixture.h"

#define COUNT(x) (sizeof(x) / sizeof *(x))

// --- Residency -----------------------------------------------------------------------------------

static void test_capability_access__the_loaders_come_with_something_deferred_and_last(void **state) {
    (void)state;
    resolved r = grant_on_full("tools: [read, glob]\n");
    assert_tools(&r, "read glob");
    arena_free(r.a);
    r = grant_on_full("tools: [read, glob]\nresident: [fs]\n");
    assert_tools(&r, "read glob");
    assert_int_equal(r.g.n_deferred, 0);
    arena_free(r.a);
    r = grant_on_full("tools: [read, glob]\nmemory: private\nresident: [memory]\n");
    assert_tools(&r, "-read -glob memory_write memory_read memory_search available_tools load_tools");
    assert_int_equal(r.g.n_deferred, 2);
    assert_row(&r, "tools", "read", ITEM_DEFERRED, "loaded by name");
    assert_row(&r, "residency", "load_tools", ITEM_GRANTED, "");
    arena_free(r.a);
    r = grant_on_full("tools: [read, glob]\nresident: []\n");
    assert_tools(&r, "-read -glob available_tools load_tools");
    arena_free(r.a);
    // A narrowed tool that is deferred stays narrowed, and says both.
    r = grant_on_full("tools: [read, glob]\nresident: [glob]\npermissions: {read: [docs]}\n");
    assert_row(&r, "tools", "read", ITEM_NARROWED, "docs");
    assert_row(&r, "tools", "read", ITEM_NARROWED, "not in `resident`");
    arena_free(r.a);
    r = grant_on_full("tools: [read]\nmcp: {servers: [a.b]}\nresident: [mcp.a.b]\n");
    assert_tools(&r, "-read mcp! available_tools load_tools");
    arena_free(r.a);
}

// Reference row F12: what is offered first changes neither what is had nor what asks.
static void test_capability_access__residency_leaves_reach_and_gates_untouched(void **state) {
    (void)state;
    static const char *const residents[] = {"", "resident: [read]\n", "resident: [shell, fs]\n",
                                            "resident: []\n"};
    arena *a = arena_new();
    str first = {0};
    for (size_t i = 0; i < COUNT(residents); i++) {
        str tail =
            str_fmt(a, "tools: [read, bash]\nskills: [s]\napproval: {confirm: [read], review: [bash]}\n%s",
                    residents[i]);
        resolved r = grant_on_full(str_cz(a, tail));
        buf b = buf_new(a, 0);
        for (vec_each(const grant_tool, t, &r.g.tools))
            if (!t->core) buf_addf(&b, "%s %d\n", t->spec->name, t->gated);
        for (vec_each(const gate, g, &r.g.gates)) buf_addf(&b, STR_FMT " %d\n", STR_ARG(g->text), g->review);
        if (!i) first = buf_str(&b);
        assert_true(str_eq(buf_str(&b), first));
        arena_free(r.a);
    }
    arena_free(a);
}

// --- Gates ---------------------------------------------------------------------------------------

static void default_pair(resolved *r) {
    def_place at = {.file = S("config.yaml"), .line = 3};
    vec_push(r->a, &r->h.default_gates, ((def_gate){.text = S("read"), .at = at}));
    vec_push(r->a, &r->h.default_gates, ((def_gate){.text = S("web"), .at = at}));
    r->h.n_default_confirm = 1;
}

static void test_capability_access__a_pair_replaces_the_default_in_the_system_layer_only(void **state) {
    (void)state;
    static const struct {
        def_layer layer;
        const char *approval, *want; // gates in effect: confirm as c:, review as r:
    } cases[] = {
        {LAYER_WORKSPACE, "", "c:read r:web "},
        {LAYER_SYSTEM, "", "c:read r:web "},
        {LAYER_BUILTIN, "", "c:read r:web "},
        {LAYER_WORKSPACE, "approval: {confirm: [glob]}\n", "c:read c:glob r:web "},
        {LAYER_BUILTIN, "approval: {confirm: [glob]}\n", "c:read c:glob r:web "},
        {LAYER_PLUGIN, "approval: {review: [glob]}\n", "c:read r:web r:glob "},
        {LAYER_SYSTEM, "approval: {confirm: [glob]}\n", "c:glob "}, // the missing half is empty
        {LAYER_SYSTEM, "approval: {review: [glob]}\n", "r:glob "},
        {LAYER_SYSTEM, "approval: {confirm: []}\n", ""},
        {LAYER_WORKSPACE, "approval: {confirm: []}\n", "c:read r:web "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        resolved r = grant_start();
        default_pair(&r);
        grant_parse(&r, cases[i].layer, str_fmt(r.a, "tools: [read, glob, WebFetch]\n%s", cases[i].approval));
        grant_resolve(&r, ROLE_DELEGATE);
        buf b = buf_new(r.a, 0);
        for (vec_each(const gate, g, &r.g.gates))
            buf_addf(&b, "%c:" STR_FMT " ", g->review ? 'r' : 'c', STR_ARG(g->text));
        if (!str_eq(buf_str(&b), str_z(cases[i].want)))
            fail_msg("%zu: want %s, got " STR_FMT, i, cases[i].want, STR_ARG(buf_str(&b)));
        assert_int_equal(r.d.errors, 0);
        arena_free(r.a);
    }
    // A default gate for a tool that the definition lacks is of no use and no fault.
    resolved r = grant_start();
    default_pair(&r);
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [glob]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_int_equal(r.g.gates.n, 0);
    assert_int_equal(r.d.errors, 0);
    arena_free(r.a);
}

static void test_capability_access__a_gate_that_reaches_nothing_or_two_lists_is_an_error(void **state) {
    (void)state;
    static const struct {
        const char *tail, *code, *says; // NULL: no error
    } cases[] = {
        {"tools: [read]\napproval: {confirm: [bash]}\n", "CAP002", "matches nothing"},
        {"tools: [read]\napproval: {confirm: [fs.raed]}\n", "CAP001", "fs.read"},
        {"tools: [read]\napproval: {confirm: [kb_search]}\n", "CAP002", "matches nothing"},
        {"tools: [read]\nknowledge: [{name: M, path: d}]\napproval: {confirm: [kb_search]}\n", NULL, ""},
        {"tools: [read]\napproval: {confirm: [memory]}\n", "CAP002", "matches nothing"},
        {"tools: [read]\nmemory: private\napproval: {confirm: [memory]}\n", NULL, ""},
        {"tools: [read]\nskills: [s]\napproval: {confirm: [use_skill]}\n", NULL, ""},
        {"tools: [read]\napproval: {confirm: [core.load_tools]}\n", "CAP002", "matches nothing"},
        {"tools: [read, glob]\nresident: [read]\napproval: {confirm: [core.load_tools]}\n", NULL, ""},
        {"tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [mcp.crn]}\n", "CAP002", "`crm`"},
        {"tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [{server: crm, tool: find}]}\n", NULL,
         ""},
        {"tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [{server: CRM}]}\n", "CAP002", "`crm`"},
        {"tools: [read]\napproval: {confirm: [mcp]}\n", "CAP002", "matches nothing"},
        {"tools: [read]\napproval: {confirm: [read], review: [read]}\n", "CAP003", "reach the same tool"},
        {"tools: [read, glob]\napproval: {confirm: [fs], review: [glob]}\n", "CAP003", "reach the same tool"},
        {"tools: [read, glob]\napproval: {confirm: [read], review: [glob]}\n", NULL, ""},
        {"tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [mcp.crm.a], review: [mcp.crm]}\n",
         "CAP003", "same tool"},
        {"tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [mcp.crm.a], review: [mcp.crm.b]}\n",
         NULL, ""},
        {"tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [mcp], review: [mcp.crm]}\n", "CAP003",
         "same tool"},
        {"tools: [read]\nmcp: {servers: [a, b]}\napproval: {confirm: [mcp.a], review: [mcp.b]}\n", NULL, ""},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        resolved r = grant_on_full(cases[i].tail);
        assert_int_equal(r.d.errors, cases[i].code ? 1 : 0);
        for (vec_each(const diag, it, &r.d.items)) {
            if (!str_eq(str_z(it->code), str_z(cases[i].code))) fail_msg("%s: %s", cases[i].tail, it->code);
            if (str_find(it->msg, str_z(cases[i].says)) == SIZE_MAX &&
                str_find(it->hint, str_z(cases[i].says)) == SIZE_MAX)
                fail_msg("%s: " STR_FMT " / " STR_FMT, cases[i].tail, STR_ARG(it->msg), STR_ARG(it->hint));
            // The place is that of the entry, with its line.
            assert_true(str_eq(it->file, S("x.yaml")) && it->line > 3 && it->column > 0);
            assert_true(str_starts(it->source, S("approval:")));
        }
        arena_free(r.a);
    }
}

static void test_capability_access__a_deferred_tool_is_gated_before_it_is_loaded(void **state) {
    (void)state;
    resolved r = grant_on_full(
        "tools: [read, glob]\nresident: [read]\napproval: {confirm: [glob, core.load_tools]}\n");
    assert_tools(&r, "read -glob! available_tools load_tools!");
    assert_row(&r, "approval", "glob", ITEM_GRANTED, "asks first");
    arena_free(r.a);
}

// The longest name wins, also when it is only configured: a gate for crm.eu is none for crm.
static void test_capability_access__gates_see_configured_server_names(void **state) {
    (void)state;
    resolved r = grant_start();
    vec_push(r.a, &r.h.servers, ((host_server){.name = S("crm.eu")}));
    grant_parse(&r, LAYER_WORKSPACE,
                S("tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [mcp.crm.eu.find]}\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_int_equal(r.d.errors, 1);
    arena_free(r.a);
    r = grant_on_full("tools: [read]\nmcp: {servers: [crm]}\napproval: {confirm: [mcp.crm.eu.find]}\n");
    assert_int_equal(r.d.errors, 0);
    assert_true(str_eq(r.g.gates.p[0].server, S("crm")) && str_eq(r.g.gates.p[0].mcp_tool, S("eu.find")));
    arena_free(r.a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capability_access__the_loaders_come_with_something_deferred_and_last),
        cmocka_unit_test(test_capability_access__residency_leaves_reach_and_gates_untouched),
        cmocka_unit_test(test_capability_access__a_pair_replaces_the_default_in_the_system_layer_only),
        cmocka_unit_test(test_capability_access__a_gate_that_reaches_nothing_or_two_lists_is_an_error),
        cmocka_unit_test(test_capability_access__a_deferred_tool_is_gated_before_it_is_loaded),
        cmocka_unit_test(test_capability_access__gates_see_configured_server_names),
    };
    return cmocka_run_group_tests_name("capability_access", tests, NULL, NULL);
}

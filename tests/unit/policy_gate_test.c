// Gates: the grammar, the longest server name, what a gate reaches, and what is said about one that is no
// gate.
#include "support/support.h"
#include <deputy/policy.h>
#include <stdio.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof *(x))

static const str servers[] = {S_INIT("crm"),     S_INIT("crm.eu"), S_INIT("crm.eu.test"),
                              S_INIT("a.b.c.d"), S_INIT("docs-2"), S_INIT("web")};

static dep_status parse(arena *a, const char *text, gate *g, dep_err *err) {
    return gate_parse(a, str_z(text), servers, COUNT(servers), g, err);
}

// Twelve spellings (reference row F31), and more.
static void test_policy_gate__the_grammar_holds_these_forms_and_no_others(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int kind; // gate_kind; -1: an error
        const char *what;
    } cases[] = {
        {"fs", GATE_GROUP, "fs"},
        {"fs.*", GATE_GROUP, "fs"},
        {"fs.read", GATE_TOOL, "read"},
        {"read", GATE_TOOL, "read"},
        {"READ", GATE_TOOL, "read"},
        {"fs.READ", GATE_TOOL, "read"},
        {"webfetch", GATE_TOOL, "WebFetch"},
        {"todo", GATE_GROUP, "todo"},
        {"memory_write", GATE_TOOL, "memory_write"},
        {"core", GATE_GROUP, "core"},
        {"core.load_tools", GATE_TOOL, "load_tools"},
        {"mcp", GATE_GROUP, "mcp"},
        {"mcp.*", GATE_GROUP, "mcp"},
        {"a.b.c", -1, "not of the form"},
        {"*", -1, "matches nothing"},
        {"a.b*", -1, "not of the form"},
        {"a*.b", -1, "not of the form"},
        {"fs.re*", -1, "not of the form"},
        {"fs.*.*", -1, "not of the form"},
        {"fs.", -1, "names no tool"},
        {".read", -1, "names no group"},
        {"", -1, "matches nothing"},
        {" fs", -1, "matches nothing"},
        {"FS", -1, "did you mean `fs`?"},
        {"Mcp.crm", -1, "did you mean `mcp.crm`?"},
        // The right spelling, where there is one.
        {"raed", -1, "did you mean `read`?"},
        {"fs_wirte", -1, "did you mean `fs_write`?"},
        {"fs.raed", -1, "did you mean `fs.read`?"},
        {"fs_wirte.edit", -1, "did you mean `fs_write.edit`?"},
        {"shell.read", -1, "write `fs.read`"},
        {"read_file", -1, "did you mean `read`?"},
        {"zzzzzz", -1, "matches nothing"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        gate g = {0};
        dep_err err;
        dep_status st = parse(a, cases[i].text, &g, &err);
        if (cases[i].kind < 0) {
            if (st != DEP_ERR_INVALID) fail_msg("\"%s\" was accepted", cases[i].text);
            if (!strstr(err.msg, cases[i].what)) fail_msg("\"%s\": %s", cases[i].text, err.msg);
        } else {
            if (st != DEP_OK) fail_msg("\"%s\": %s", cases[i].text, err.msg);
            assert_int_equal(g.kind, cases[i].kind);
            assert_true(str_eq(g.text, str_z(cases[i].text)));
            str what = g.kind == GATE_TOOL ? str_z(g.tool->name) : g.group;
            assert_true(str_eq(what, str_z(cases[i].what)));
        }
        arena_free(a);
    }
}

static void test_policy_gate__the_longest_server_name_wins(void **state) {
    (void)state;
    static const struct {
        const char *text, *server, *tool; // server NULL: an error
    } cases[] = {
        {"mcp.crm", "crm", ""},
        {"mcp.crm.*", "crm", ""},
        {"mcp.crm.find", "crm", "find"},
        {"mcp.crm.eu", "crm.eu", ""},
        {"mcp.crm.eu.find", "crm.eu", "find"},
        {"mcp.crm.eu.test", "crm.eu.test", ""},
        {"mcp.crm.eu.test.a.b", "crm.eu.test", "a.b"},
        {"mcp.crm.eux.find", "crm", "eux.find"},
        {"mcp.a.b.c.d.e", "a.b.c.d", "e"},
        {"mcp.a.b.c", "a", "b.c"}, // no such server: the first piece, which then matches nothing
        {"mcp.docs-2.get", "docs-2", "get"},
        {"mcp.other.x", "other", "x"},
        {"mcp.web", "web", ""}, // a server may be called as a group is: the two are never mistaken
        {"mcp.", NULL, "no server"},
        {"mcp..x", NULL, "no server"},
        {"mcp.crm.", NULL, "no tool"},
        {"mcp.other.", NULL, "no tool"},
        {"mcp.c*", NULL, "`*` inside a name"},
        {"mcp.*.find", NULL, "`*` inside a name"},
        {"mcp.crm.f*", NULL, "`*` inside a name"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        gate g = {0};
        dep_err err;
        dep_status st = parse(a, cases[i].text, &g, &err);
        if (!cases[i].server) {
            if (st != DEP_ERR_INVALID || !strstr(err.msg, cases[i].tool))
                fail_msg("\"%s\": %s", cases[i].text, st == DEP_OK ? "accepted" : err.msg);
        } else {
            if (st != DEP_OK) fail_msg("\"%s\": %s", cases[i].text, err.msg);
            if (!str_eq(g.server, str_z(cases[i].server)) || !str_eq(g.mcp_tool, str_z(cases[i].tool)))
                fail_msg("\"%s\": server " STR_FMT ", tool " STR_FMT, cases[i].text, STR_ARG(g.server),
                         STR_ARG(g.mcp_tool));
            assert_int_equal(g.kind, cases[i].tool[0] ? GATE_SERVER_TOOL : GATE_SERVER);
        }
        arena_free(a);
    }
}

static void test_policy_gate__a_gate_reaches_its_own_calls_and_no_others(void **state) {
    (void)state;
    static const struct {
        const char *gate, *tool, *server, *mcp_tool;
        bool hits;
    } cases[] = {
        {"read", "read", "", "", true},
        {"read", "grep", "", "", false},
        {"fs", "grep", "", "", true},
        {"fs", "write", "", "", false},
        {"web", "WebFetch", "", "", true},
        {"web", "mcp", "web", "find", false},
        {"mcp.web", "WebFetch", "", "", false},
        {"mcp.web", "mcp", "web", "find", true},
        {"fs_write", "edit", "", "", true},
        {"memory", "memory_search", "", "", true},
        {"core.load_tools", "load_tools", "", "", true},
        {"core.load_tools", "available_tools", "", "", false},
        {"mcp", "mcp", "crm", "find", true},
        {"mcp.crm", "mcp", "crm", "find", true},
        {"mcp.crm", "mcp", "crm.eu", "find", false},
        {"mcp.crm", "mcp", "CRM", "find", false}, // server names are byte for byte
        {"mcp.crm.find", "mcp", "crm", "find", true},
        {"mcp.crm.find", "mcp", "crm", "find2", false},
        {"mcp.crm.find", "mcp", "crm", "", false},
        {"mcp.crm", "read", "", "", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        gate g = {0};
        dep_err err;
        assert_int_equal(parse(a, cases[i].gate, &g, &err), DEP_OK);
        const tool_spec *t = toolspec_find(str_z(cases[i].tool));
        if (gate_hits(&g, t, str_z(cases[i].server), str_z(cases[i].mcp_tool)) != cases[i].hits)
            fail_msg("%s and %s %s.%s", cases[i].gate, cases[i].tool, cases[i].server, cases[i].mcp_tool);
        arena_free(a);
    }
}

static void test_policy_gate__a_decision_names_the_rule_that_made_it(void **state) {
    (void)state;
    arena *a = arena_new();
    gate gates[2] = {0};
    dep_err err;
    str why = {0};
    assert_int_equal(parse(a, "fs.read", &gates[0], &err), DEP_OK);
    gates[0].file = S("agents/x.yaml");
    gates[0].line = 7;
    assert_int_equal(parse(a, "shell", &gates[1], &err), DEP_OK);
    gates[1].review = true;
    const tool_spec *read = toolspec_find(S("read")), *grep = toolspec_find(S("grep")),
                    *bash = toolspec_find(S("bash")), *write = toolspec_find(S("write"));
    assert_int_equal(policy_decide(a, gates, 2, read, (str){0}, (str){0}, &why), DECIDE_ASK);
    assert_true(str_eq(why, S("approval.confirm: fs.read (agents/x.yaml:7)")));
    assert_int_equal(policy_decide(a, gates, 2, grep, (str){0}, (str){0}, &why), DECIDE_ALLOW);
    // Two reasons: the declared one is named.
    assert_int_equal(policy_decide(a, gates, 2, bash, (str){0}, (str){0}, &why), DECIDE_ASK);
    assert_true(str_eq(why, S("approval.review: shell")));
    // The level's own gate needs no declaration.
    assert_int_equal(policy_decide(a, NULL, 0, write, (str){0}, (str){0}, &why), DECIDE_ASK);
    assert_true(str_find(why, S("level confirm")) != SIZE_MAX);
    arena_free(a);
}

static void test_policy_gate__paths_are_below_whole_segments(void **state) {
    (void)state;
    static const str prefixes[] = {S_INIT("docs"), S_INIT("src/lib")};
    static const str all[] = {S_INIT(".")};
    static const struct {
        const char *path;
        bool in;
    } cases[] = {
        {"docs", true},      {"docs/a", true},    {"docs/a/b.md", true}, {"docs2", false}, {"docs2/a", false},
        {"doc", false},      {"a/docs", false},   {"Docs/a", false},     {"src", false},   {"src/lib", true},
        {"src/lib2", false}, {"src/lib/x", true}, {"", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (path_under(str_z(cases[i].path), prefixes, COUNT(prefixes)) != cases[i].in)
            fail_msg("%s", cases[i].path);
        assert_true(path_under(str_z(cases[i].path), all, 1));
        assert_false(path_under(str_z(cases[i].path), NULL, 0));
    }
}

// B5.
static void test_policy_gate__files_that_often_hold_secrets_are_known_by_name(void **state) {
    (void)state;
    static const char *const secret[] = {
        ".env",   ".env.local",   ".ENV",   "a/.envrc", "a/b/.env",    "key.pem",  "KEY.PEM", ".pem",
        "id_rsa", "a/ID_ed25519", ".netrc", "a/.npmrc", ".git/config", "a/.GIT/x", ".git",    "a/.git/b/c"};
    static const char *const plain[] = {
        "env",   "a.env",      ".envelope/x.md", "pem",   "x.pem.md", "my_id_rsa",        "id.md",
        "git/x", ".gitignore", ".github/x",      "netrc", "a/npmrc",  "id_rsa/readme.md", "docs/.env/x"};
    for (size_t i = 0; i < COUNT(secret); i++)
        if (!path_sensitive(str_z(secret[i]))) fail_msg("%s is not sensitive", secret[i]);
    for (size_t i = 0; i < COUNT(plain); i++)
        if (path_sensitive(str_z(plain[i])))
            fail_msg("%s is sensitive: %s", plain[i], path_sensitive(str_z(plain[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_policy_gate__the_grammar_holds_these_forms_and_no_others),
        cmocka_unit_test(test_policy_gate__the_longest_server_name_wins),
        cmocka_unit_test(test_policy_gate__a_gate_reaches_its_own_calls_and_no_others),
        cmocka_unit_test(test_policy_gate__a_decision_names_the_rule_that_made_it),
        cmocka_unit_test(test_policy_gate__paths_are_below_whole_segments),
        cmocka_unit_test(test_policy_gate__files_that_often_hold_secrets_are_known_by_name),
    };
    return cmocka_run_group_tests_name("policy_gate", tests, NULL, NULL);
}

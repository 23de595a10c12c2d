// Resolution: what a definition gets on a host, and one row for every declared item. Hosts here are plain
// values; each test says what exists.
#include "support/grant_fixture.h"
#include <deputy/json.h>
#include <deputy/prompt.h>
#include <stdio.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof *(x))

// Everything that comes out, as bytes.
static str all_of(resolved *r) {
    buf b = buf_new(r->a, 0);
    dep_err err;
    prompt p;
    offered_tools offered = {0};
    grant_json(&b, &r->g);
    report_json(&b, &r->g);
    buf_add(&b, grant_tools_text(r));
    assert_int_equal(assemble(r->a, &r->g, &p, &err), DEP_OK);
    buf_add(&b, p.text);
    prompt_tools(r->a, &r->g, NULL, &offered);
    for (vec_each(const offered_tool, t, &offered))
        buf_addf(&b, STR_FMT STR_FMT, STR_ARG(t->name), STR_ARG(t->schema));
    return buf_str(&b);
}

// --- Tools ---------------------------------------------------------------------------------------

static void test_capability_resolve__a_definition_gets_exactly_what_it_names(void **state) {
    (void)state;
    resolved r = grant_on_full("tools: [read]\n");
    assert_tools(&r, "read");
    assert_int_equal(r.g.report.n, 1);
    assert_row(&r, "tools", "read", ITEM_GRANTED, "");
    assert_int_equal(r.g.refusal.n, 0);
    buf b = buf_new(r.a, 0);
    grant_json(&b, &r.g);
    assert_true(str_eq(buf_str(&b),
                       S("{\"tools\":[\"read\"],\"deferred\":[],\"skills\":[],\"servers\":[],\"sources\":[],"
                         "\"memory\":\"none\"}")));
    arena_free(r.a);
}

static void test_capability_resolve__a_host_that_grows_widens_no_definition(void **state) {
    (void)state;
    static const char *const tails[] = {
        "tools: [read]\n", "tools: [read, bash]\nskills: [a]\nresident: [read]\n",
        "tools: [read]\nmcp: {servers: [crm]}\nmemory: private\nknowledge: [{name: M, path: d}]\n"};
    for (size_t i = 0; i < COUNT(tails); i++) {
        resolved bare = grant_start(), grown = grant_start();
        size_t n;
        const tool_spec *all = toolspec_all(&n);
        grant_parse(&bare, LAYER_WORKSPACE, str_z(tails[i]));
        grant_parse(&grown, LAYER_WORKSPACE, str_z(tails[i]));
        // The bare host lacks every tool that the file does not lead to.
        for (size_t t = 0; t < n; t++) {
            bool named = all[t].flags & (TOOL_DIMENSION | TOOL_CORE);
            for (size_t k = 0; k < bare.def.n_tools; k++) named = named || bare.def.tools[k].tool == &all[t];
            bare.h.tools[t] = named || strcmp(all[t].name, "use_skill") == 0;
        }
        vec_push(bare.a, &bare.h.skills, ((host_skill){.name = S("a"), .description = S("A")}));
        vec_push(grown.a, &grown.h.skills, ((host_skill){.name = S("a"), .description = S("A")}));
        vec_push(grown.a, &grown.h.skills, ((host_skill){.name = S("b"), .description = S("B")}));
        vec_push(bare.a, &bare.h.servers, ((host_server){.name = S("crm")}));
        vec_push(grown.a, &grown.h.servers, ((host_server){.name = S("crm")}));
        vec_push(grown.a, &grown.h.servers, ((host_server){.name = S("mail")}));
        grant_resolve(&bare, ROLE_DELEGATE);
        grant_resolve(&grown, ROLE_DELEGATE);
        assert_true(str_eq(all_of(&bare), all_of(&grown)));
        arena_free(bare.a);
        arena_free(grown.a);
    }
}

static void test_capability_resolve__order_spelling_and_doubles_change_no_byte(void **state) {
    (void)state;
    resolved x = grant_on_full("tools: [glob, read, glob, webfetch]\nresident: [glob, WEBFETCH]\n"),
             y = grant_on_full("tools: [WebFetch, READ, Glob]\nresident: [webfetch, GLOB, glob]\n");
    // DEF: the table's order, whatever the file's is.
    assert_tools(&x, "-read glob WebFetch! available_tools load_tools");
    buf a = buf_new(x.a, 0), b = buf_new(y.a, 0);
    grant_json(&a, &x.g);
    grant_json(&b, &y.g);
    assert_true(str_eq(buf_str(&a), buf_str(&b)));
    arena_free(x.a);
    arena_free(y.a);
}

static void test_capability_resolve__all_is_the_grantable_list_and_no_dimension(void **state) {
    (void)state;
    resolved r = grant_on_full("tools: all\nresident: [read]\n");
    assert_tools(
        &r, "-bash! read -write! -edit! -glob -grep -task_output -task_stop -WebFetch! -WebSearch! -todo "
            "available_tools load_tools");
    assert_row(&r, "tools", "use_skill", ITEM_REFUSED, "no skills are declared");
    assert_int_equal(r.g.memory, DEF_MEMORY_NONE);
    arena_free(r.a);
}

static void test_capability_resolve__a_tool_without_a_body_is_a_row(void **state) {
    (void)state;
    resolved r = grant_start();
    r.h.tools[toolspec_index(toolspec_find(S("bash")))] = false;
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read, bash]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read");
    assert_row(&r, "tools", "bash", ITEM_MISSING, "not in this host's toolset");
    arena_free(r.a);
    r = grant_start();
    r.h.tools[toolspec_index(toolspec_find(S("bash")))] = false;
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [bash]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_int_equal(r.g.refusal_status, DEP_ERR_INVALID);
    assert_true(str_find(r.g.refusal, S("no tool")) != SIZE_MAX);
    arena_free(r.a);
}

// --- Permissions -----------------------------------------------------------------

static void test_capability_resolve__sixteen_combinations_of_axes_grant_their_tools(void **state) {
    (void)state;
    static const char *const axes[] = {"read", "write", "run", "net"}, *const entry[] = {"docs", "out", "git",
                                                                                         "example.org"};
    static const char *const own[][4] = {{"read", "glob", "grep", NULL},
                                         {"write!", "edit!", NULL, NULL},
                                         {"bash!", "task_output", "task_stop", NULL},
                                         {"WebFetch!", "WebSearch!", NULL, NULL}};
    static const char *const order[] = {"bash!",       "read",      "write!",    "edit!",      "glob", "grep",
                                        "task_output", "task_stop", "WebFetch!", "WebSearch!", "todo"};
    // empty: an axis with an empty list grants as little as an absent one.
    for (unsigned set = 0; set < 32; set++) {
        bool empty = set >= 16;
        arena *a = arena_new();
        buf text = buf_new(a, 0), want = buf_new(a, 0);
        buf_add(&text, S("tools: [bash, read, write, edit, glob, grep, task_output, task_stop, WebFetch, "
                         "WebSearch, todo]\n"
                         "permissions: {"));
        bool first = true;
        for (size_t i = 0; i < 4; i++) {
            bool there = set >> i & 1;
            if (!there && !empty) continue;
            buf_addf(&text, "%s%s: [%s]", first ? "" : ", ", axes[i], there ? entry[i] : "");
            first = false;
        }
        buf_add(&text, S("}\n"));
        for (size_t t = 0; t < COUNT(order); t++) {
            bool granted = strcmp(order[t], "todo") == 0;
            for (size_t i = 0; i < 4; i++)
                for (size_t k = 0; k < 4 && own[i][k]; k++)
                    granted = granted || (set >> i & 1 && strcmp(own[i][k], order[t]) == 0);
            if (granted) buf_addf(&want, "%s%s", want.n ? " " : "", order[t]);
        }
        resolved r = grant_start();
        grant_parse(&r, LAYER_WORKSPACE, buf_str(&text));
        grant_resolve(&r, ROLE_DELEGATE);
        assert_tools(&r, str_cz(a, buf_str(&want)));
        for (size_t i = 0; i < 4; i++) {
            char tool[16];
            snprintf(tool, sizeof tool, "%s", own[i][0]);
            tool[strcspn(tool, "!")] = 0;
            bool there = set >> i & 1;
            assert_row(&r, "tools", tool, there ? ITEM_NARROWED : ITEM_REFUSED, axes[i]);
        }
        arena_free(r.a);
        arena_free(a);
    }
    resolved r = grant_on_full("tools: [bash, read]\n");
    assert_tools(&r, "bash! read");
    assert_false(r.g.read.bounded || r.g.run.bounded);
    arena_free(r.a);
    // The whole workspace is no narrowing.
    r = grant_on_full("tools: [read]\npermissions: {read: [.]}\n");
    assert_row(&r, "tools", "read", ITEM_GRANTED, "");
    arena_free(r.a);
}

// --- Dimensions ----------------------------------------------------------------------------------

static void test_capability_resolve__skills_are_granted_missing_withheld_or_hidden(void **state) {
    (void)state;
    resolved r = grant_start();
    vec_push(r.a, &r.h.skills,
             ((host_skill){.name = S("tone-guide"), .description = S("T"), .location = S("s/t/SKILL.md")}));
    vec_push(
        r.a, &r.h.skills,
        ((host_skill){.name = S("strange"), .withheld = S("not trusted"), .location = S("s/s/SKILL.md")}));
    vec_push(r.a, &r.h.skills,
             ((host_skill){.name = S("deploy"), .hidden = true, .location = S("s/d/SKILL.md")}));
    grant_parse(&r, LAYER_WORKSPACE,
                S("tools: [read]\nskills: [tone-guide, tone-giude, strange, deploy, Tone-Guide]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read use_skill");
    assert_row(&r, "skills", "tone-guide", ITEM_GRANTED, "");
    assert_row(&r, "skills", "tone-giude", ITEM_MISSING, "did you mean `tone-guide`?");
    assert_row(&r, "skills", "strange", ITEM_WITHHELD, "not trusted");
    assert_row(&r, "skills", "deploy", ITEM_REFUSED, "disable-model-invocation");
    assert_row(&r, "skills", "Tone-Guide", ITEM_MISSING, "tone-guide");
    // The tool takes exactly the granted names.
    assert_true(str_find(grant_find(&r.g, S("use_skill"))->schema, S("\"enum\":[\"tone-guide\"]")) !=
                SIZE_MAX);
    arena_free(r.a);

    // None left: no use_skill, and a row that says so where it was asked for.
    r = grant_start();
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read, use_skill]\nskills: [gone]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read");
    assert_row(&r, "tools", "use_skill", ITEM_REFUSED, "none of the declared skills");
    assert_int_equal(grant_row(&r, "tools", "use_skill")->rules.n, 2);
    arena_free(r.a);
    r = grant_on_full("tools: [read, use_skill]\n");
    assert_tools(&r, "read");
    assert_row(&r, "tools", "use_skill", ITEM_REFUSED, "no skills are declared");
    arena_free(r.a);
}

static void test_capability_resolve__a_source_without_files_stays(void **state) {
    (void)state;
    static const size_t counts[] = {12, 0};
    resolved r = grant_start();
    r.h.source_files = counts;
    grant_parse(&r, LAYER_WORKSPACE,
                S("tools: [read]\nknowledge: [{name: Manual, path: docs, exclude: docs/old}, {name: Later, "
                  "path: later}]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read kb_search");
    assert_row(&r, "knowledge", "Manual", ITEM_GRANTED, "12 files");
    assert_row(&r, "knowledge", "Later", ITEM_MISSING, "files may come");
    assert_int_equal(r.g.sources.n, 2);
    assert_true(str_find(grant_find(&r.g, S("kb_search"))->schema, S("\"enum\":[\"Manual\",\"Later\"]")) !=
                SIZE_MAX);
    arena_free(r.a);
    // Without the tool the source is a row, and nothing searches it.
    r = grant_start();
    r.h.tools[toolspec_index(toolspec_find(S("kb_search")))] = false;
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nknowledge: [{name: Manual, path: docs}]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read");
    assert_int_equal(r.g.sources.n, 0);
    assert_row(&r, "knowledge", "Manual", ITEM_MISSING, "kb_search");
    arena_free(r.a);
}

// Reference row F26: not configured, switched off and never declared are three things.
static void test_capability_resolve__servers_unconfigured_disabled_and_undeclared_differ(void **state) {
    (void)state;
    resolved r = grant_start();
    vec_push(r.a, &r.h.servers, ((host_server){.name = S("crm")}));
    vec_push(r.a, &r.h.servers, ((host_server){.name = S("github"), .state = SERVER_DISABLED}));
    vec_push(r.a, &r.h.servers, ((host_server){.name = S("mail")}));
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nmcp: {servers: [crm, github, gihtub, other]}\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read mcp!");
    assert_row(&r, "mcp", "crm", ITEM_GRANTED, "");
    assert_row(&r, "mcp", "github", ITEM_DISABLED, "switched off");
    assert_row(&r, "mcp", "gihtub", ITEM_UNCONNECTED, "did you mean `github`?");
    assert_row(&r, "mcp", "other", ITEM_UNCONNECTED, "not configured");
    assert_null(grant_row(&r, "mcp", "mail"));
    for (vec_each(const host_server, s, &r.g.servers)) assert_false(str_eq(s->name, S("mail")));
    arena_free(r.a);
    // No gateway in this version: everything declared is a row, nothing is mounted.
    r = grant_start();
    r.h.tools[toolspec_index(toolspec_find(S("mcp")))] = false;
    vec_push(r.a, &r.h.servers, ((host_server){.name = S("crm")}));
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nmcp: {servers: [crm]}\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read");
    assert_row(&r, "mcp", "crm", ITEM_UNCONNECTED, "not yet");
    assert_row(&r, "tools", "mcp", ITEM_MISSING, "not yet");
    assert_int_equal(r.g.servers.n, 0);
    arena_free(r.a);
}

static void test_capability_resolve__memory_comes_whole_or_says_why_not(void **state) {
    (void)state;
    resolved r = grant_start();
    vec_push(r.a, &r.h.memory_withheld,
             ((host_named){.name = S("evil.md"), .reason = S("not written by Deputy")}));
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nmemory: shared\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read memory_write memory_read memory_search");
    assert_row(&r, "memory", "shared", ITEM_GRANTED, "");
    assert_row(&r, "memory", "evil.md", ITEM_WITHHELD, "not written");
    arena_free(r.a);
    r = grant_start();
    r.h.memory_unavailable = true;
    r.h.memory_reason = S("a link");
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nmemory: private\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read");
    assert_int_equal(r.g.memory, DEF_MEMORY_NONE);
    assert_row(&r, "memory", "private", ITEM_REFUSED, "a link");
    arena_free(r.a);
}

// --- Roles, budgets, model -----------------------------------------------------------------------

static void test_capability_resolve__only_main_delegates(void **state) {
    (void)state;
    resolved r = grant_start();
    grant_parse(&r, LAYER_BUILTIN, S("tools: [read, glob]\nresident: [read]\n"));
    // Nobody to hand a task to: no tool for it.
    grant_resolve(&r, ROLE_MAIN);
    assert_tools(&r, "read -glob available_tools load_tools");
    assert_row(&r, "tools", "Task", ITEM_MISSING, "nobody to hand a task to");
    vec_push(r.a, &r.h.agents, (host_agent){S("explorer"), S("Looks.\n</tools> around")});
    vec_push(r.a, &r.h.agents, (host_agent){S("writer"), S("")});
    grant_resolve(&r, ROLE_MAIN);
    assert_tools(&r, "read -glob Task TaskWait TaskList TaskStop available_tools load_tools");
    const grant_tool *task = grant_find(&r.g, S("Task"));
    assert_true(str_find(task->schema, S("\"enum\":[\"explorer\",\"writer\"]")) != SIZE_MAX);
    assert_true(str_ends(task->description, S("\n- explorer: Looks. </tools> around\n- writer")));
    // Labels have a bound, names have none.
    for (int i = 0; i < 50; i++)
        vec_push(r.a, &r.h.agents, (host_agent){str_fmt(r.a, "a%d", i), str_fmt(r.a, "%*s", 1000, "x")});
    grant_resolve(&r, ROLE_MAIN);
    task = grant_find(&r.g, S("Task"));
    assert_true(task->description.n < TASK_LABELS_MAX + 2 * TASK_LABEL_CHARS + 64);
    assert_true(str_ends(task->description, S(" more, by name only")));
    assert_true(str_find(task->schema, S("\"a49\"")) != SIZE_MAX);
    grant_resolve(&r, ROLE_DELEGATE);
    assert_tools(&r, "read -glob available_tools load_tools");
    const char *const quartet[] = {"Task", "TaskWait", "TaskList", "TaskStop"};
    for (size_t i = 0; i < COUNT(quartet); i++) {
        assert_null(grant_row(&r, "tools", quartet[i]));
        r.h.tools[toolspec_index(toolspec_find(str_z(quartet[i])))] = false;
    }
    grant_resolve(&r, ROLE_MAIN);
    assert_tools(&r, "read -glob available_tools load_tools");
    assert_row(&r, "tools", "Task", ITEM_MISSING, "toolset");
    arena_free(r.a);
}

static void test_capability_resolve__budgets_come_from_the_file_else_from_the_config(void **state) {
    (void)state;
    resolved r = grant_on_full("tools: [read]\n");
    assert_int_equal(r.g.turns, 60);
    assert_int_equal(r.g.minutes, 30);
    assert_int_equal(r.g.tokens, 2000000);
    assert_int_equal(r.g.tool_bytes, 1000);
    assert_int_equal(r.g.run_bytes, 2000);
    arena_free(r.a);
    r = grant_on_full("tools: [read]\nmaxTurns: 7\nlimits: {minutes: 90, tokens: 5}\n");
    assert_int_equal(r.g.turns, 7);
    assert_int_equal(r.g.minutes, 90);
    assert_int_equal(r.g.tokens, 5);
    arena_free(r.a);
    // What the config says is a ceiling: a definition asks for less, never for more.
    r = grant_start();
    r.h.turns = 10, r.h.minutes = 5, r.h.tokens = 1000;
    r.h.turns_bound = r.h.minutes_bound = r.h.tokens_bound = true;
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nmaxTurns: 11\nlimits: {minutes: 5, tokens: 999}\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_int_equal(r.g.turns, 10);
    assert_int_equal(r.g.minutes, 5);
    assert_int_equal(r.g.tokens, 999);
    assert_row(&r, "limits", "maxTurns", ITEM_NARROWED, "at most 10");
    arena_free(r.a);
    r = grant_start();
    r.h.turns = r.h.minutes = r.h.tokens = CONFIG_UNLIMITED;
    r.h.turns_bound = r.h.minutes_bound = r.h.tokens_bound = true;
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nlimits: {minutes: 5}\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_true(r.g.turns == CONFIG_UNLIMITED && r.g.minutes == 5 && r.g.tokens == CONFIG_UNLIMITED);
    assert_int_equal(r.g.report.n, 1);
    arena_free(r.a);
}

static void test_capability_resolve__a_cost_that_cannot_be_measured_does_not_start(void **state) {
    (void)state;
    static const struct {
        const char *declared; // of the definition; "": none
        int64_t configured;   // of the config; 0: none
        bool priced;
        int64_t want;
        int row; // its state; -1: no row
        const char *says;
    } cases[] = {
        {"", 0, false, 0, -1, NULL},
        {"", 0, true, 0, -1, NULL},
        {"limits: {cost: 0.5}\n", 0, true, 500000, ITEM_GRANTED, ""},
        {"limits: {cost: 0.5}\n", 0, false, 500000, ITEM_REFUSED, "no price"},
        {"limits: {cost: 0.5}\n", 500000, true, 500000, ITEM_GRANTED, ""},
        {"limits: {cost: 0.500001}\n", 500000, true, 500000, ITEM_NARROWED, "at most 0.50"},
        {"limits: {cost: 0.500001}\n", 500000, false, 500000, ITEM_REFUSED, "no price"},
        {"", 2000000, true, 2000000, ITEM_GRANTED, ""},
        {"", 2000000, false, 2000000, ITEM_REFUSED, "quote/passages has no price"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        resolved r = grant_start();
        r.h.priced = cases[i].priced;
        r.h.price = (config_price){.input = 7};
        r.h.cost_micro = cases[i].configured;
        r.h.cost_bound = cases[i].configured > 0;
        grant_parse(&r, LAYER_WORKSPACE, str_fmt(r.a, "tools: [read]\n%s", cases[i].declared));
        grant_resolve(&r, ROLE_DELEGATE);
        assert_int_equal(r.g.cost_micro, cases[i].want);
        assert_true(r.g.priced == cases[i].priced && r.g.price.input == 7);
        bool refused = cases[i].row == ITEM_REFUSED;
        assert_int_equal(r.g.refusal_status, refused ? DEP_ERR_REFUSED : DEP_OK);
        assert_int_equal(
            str_find(r.g.refusal, S("deputy config set 'prices.\"quote/passages\"'")) != SIZE_MAX, refused);
        const report_row *row = grant_row(&r, "limits", "cost");
        assert_int_equal(row != NULL, cases[i].row >= 0);
        if (row) {
            assert_row(&r, "limits", "cost", (item_state)cases[i].row, cases[i].says);
            assert_int_equal(row->at.line, *cases[i].declared ? 5 : 0);
            assert_true(row->rules.n > 0);
        }
        arena_free(r.a);
    }
}

// The caller's model is the one that is measured.
static void test_capability_resolve__a_model_of_one_run_goes_before_the_files(void **state) {
    (void)state;
    resolved r = grant_start();
    r.h.model = S("other/m");
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\nmodel: none/m\nlimits: {cost: 1}\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_true(str_eq(r.g.model, S("other/m")) && str_eq(r.g.model_origin, S("the caller")));
    assert_null(grant_row(&r, "model", "none/m"));
    assert_row(&r, "limits", "cost", ITEM_REFUSED, "other/m has no price");
    arena_free(r.a);
}

static void test_capability_resolve__a_fault_of_the_config_refuses_everything(void **state) {
    (void)state;
    resolved r = grant_start();
    r.h.config_fault = S("config.yaml:3: unknown key `limit`; nothing runs until this is mended");
    grant_parse(&r, LAYER_WORKSPACE, S("tools: [read]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    assert_int_equal(r.g.refusal_status, DEP_ERR_INVALID);
    assert_true(str_eq(r.g.refusal, r.h.config_fault));
    arena_free(r.a);
}

static void test_capability_resolve__a_model_without_a_provider_is_a_row(void **state) {
    (void)state;
    resolved r = grant_on_full("tools: [read]\nmodel: quote/passages\n");
    assert_int_equal(r.g.report.n, 1);
    assert_true(str_eq(r.g.model, S("quote/passages")) && str_eq(r.g.model_origin, S("x.yaml:5")));
    arena_free(r.a);
    r = grant_on_full("tools: [read]\nmodel: qoute/a/b\n");
    assert_row(&r, "model", "qoute/a/b", ITEM_MISSING, "did you mean `quote`?");
    arena_free(r.a);
    r = grant_on_full("tools: [read]\n");
    assert_true(str_eq(r.g.model, S("quote/passages")) &&
                str_eq(r.g.model_origin, S("the built-in default")));
    arena_free(r.a);
}

// --- The report ----------------------------------------------------------------------------------

static const char everything[] = "tools: [read, glob, bash, WebFetch, use_skill]\n"                 // line 4
                                 "skills: [have, gone]\n"                                           // 5
                                 "mcp: {servers: [crm, {name: x, include: [a], readonly: true}]}\n" // 6
                                 "knowledge: [{name: M, path: docs, exclude: old}]\n"               // 7
                                 "memory: private\n"                                                // 8
                                 "resident: [read]\n"                                               // 9
                                 "approval: {confirm: [read], review: [mcp.x]}\n"                   // 10
                                 "permissions: {read: [docs], net: [a.org]}\n"                      // 11
                                 "model: none/m\n";                                                 // 12

// Every item has a row, every row a rule, and every rule that stands in the file its line.
static void test_capability_resolve__every_row_says_which_lines_made_it(void **state) {
    (void)state;
    resolved r = grant_start();
    vec_push(r.a, &r.h.skills,
             ((host_skill){.name = S("have"), .description = S("H"), .location = S("s/have/SKILL.md")}));
    grant_parse(&r, LAYER_WORKSPACE, str_z(everything));
    grant_resolve(&r, ROLE_DELEGATE);
    static const struct {
        const char *dimension, *name;
        item_state state;
        const char *rules; // effect@line of each rule; 0: not in the file
    } cases[] = {
        {"tools", "read", ITEM_NARROWED, "grants@4 narrows@11 gates@10 "},
        {"tools", "glob", ITEM_NARROWED, "grants@4 narrows@11 defers@9 "},
        {"tools", "bash", ITEM_REFUSED, "declares@4 removes@11 "},
        {"tools", "WebFetch", ITEM_NARROWED, "grants@4 narrows@11 defers@9 gates@0 "},
        {"tools", "use_skill", ITEM_DEFERRED, "grants@4 defers@9 "},
        {"tools", "kb_search", ITEM_DEFERRED, "grants@7 defers@9 "},
        {"tools", "mcp", ITEM_DEFERRED, "grants@6 defers@9 gates@0 "},
        {"tools", "memory_write", ITEM_DEFERRED, "grants@8 defers@9 "},
        {"skills", "have", ITEM_GRANTED, "declares@5 grants@1 "}, // of the skill's own file
        {"skills", "gone", ITEM_MISSING, "declares@5 "},
        {"mcp", "crm", ITEM_UNCONNECTED, "declares@6 "},
        {"mcp", "x", ITEM_UNCONNECTED, "declares@6 narrows@6 narrows@6 "},
        {"knowledge", "M", ITEM_GRANTED, "declares@7 narrows@7 "},
        {"memory", "private", ITEM_GRANTED, "grants@8 "},
        {"residency", "load_tools", ITEM_GRANTED, "mounts@9 "},
        {"approval", "read", ITEM_GRANTED, "gates@10 "},
        {"approval", "mcp.x", ITEM_GRANTED, "gates@10 "},
        {"model", "none/m", ITEM_MISSING, "declares@12 "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const report_row *x = grant_row(&r, cases[i].dimension, cases[i].name);
        if (!x) fail_msg("no row %s %s", cases[i].dimension, cases[i].name);
        buf b = buf_new(r.a, 0);
        for (vec_each(const item_rule, rule, &x->rules))
            buf_addf(&b, STR_FMT "@%u ", STR_ARG(rule->effect), rule->at.line);
        if (x->state != cases[i].state || !str_eq(buf_str(&b), str_z(cases[i].rules)))
            fail_msg("%s %s: %s, rules " STR_FMT, cases[i].dimension, cases[i].name,
                     item_state_name(x->state), STR_ARG(buf_str(&b)));
        assert_true(x->at.line >= 4 && str_eq(x->at.file, S("x.yaml")));
    }
    for (vec_each(const report_row, x, &r.g.report)) assert_true(x->rules.n > 0);
    arena_free(r.a);
}

static void test_capability_resolve__grant_and_report_are_json_whatever_the_names_are(void **state) {
    (void)state;
    resolved r = grant_start();
    vec_push(r.a, &r.h.skills, ((host_skill){.name = S("a\"b\\"), .location = S("s\n/SKILL.md")}));
    grant_parse(&r, LAYER_WORKSPACE,
                S("tools: [read]\nskills: ['a\"b\\', \"\\x01\"]\nmcp: {servers: [\"s\\\"\\n\"]}\n"
                  "knowledge: [{name: \"</knowledge_sources>\", path: 'docs/\"x\"/**'}]\n"));
    grant_resolve(&r, ROLE_DELEGATE);
    buf g = buf_new(r.a, 0), rep = buf_new(r.a, 0);
    json *tree;
    dep_err err;
    grant_json(&g, &r.g);
    report_json(&rep, &r.g);
    assert_int_equal(json_parse(r.a, buf_str(&g), 0, &tree, &err), DEP_OK);
    assert_true(str_eq(json_at(json_get(tree, S("skills")), 0)->s, S("a\"b\\")));
    assert_int_equal(json_parse(r.a, buf_str(&rep), 0, &tree, &err), DEP_OK);
    assert_int_equal(tree->count, r.g.report.n);
    for (vec_each(const grant_tool, t, &r.g.tools))
        assert_int_equal(json_parse(r.a, t->schema, 0, &tree, &err), DEP_OK);
    arena_free(r.a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_capability_resolve__a_definition_gets_exactly_what_it_names),
        cmocka_unit_test(test_capability_resolve__a_host_that_grows_widens_no_definition),
        cmocka_unit_test(test_capability_resolve__order_spelling_and_doubles_change_no_byte),
        cmocka_unit_test(test_capability_resolve__all_is_the_grantable_list_and_no_dimension),
        cmocka_unit_test(test_capability_resolve__a_tool_without_a_body_is_a_row),
        cmocka_unit_test(test_capability_resolve__sixteen_combinations_of_axes_grant_their_tools),
        cmocka_unit_test(test_capability_resolve__skills_are_granted_missing_withheld_or_hidden),
        cmocka_unit_test(test_capability_resolve__a_source_without_files_stays),
        cmocka_unit_test(test_capability_resolve__servers_unconfigured_disabled_and_undeclared_differ),
        cmocka_unit_test(test_capability_resolve__memory_comes_whole_or_says_why_not),
        cmocka_unit_test(test_capability_resolve__only_main_delegates),
        cmocka_unit_test(test_capability_resolve__budgets_come_from_the_file_else_from_the_config),
        cmocka_unit_test(test_capability_resolve__a_cost_that_cannot_be_measured_does_not_start),
        cmocka_unit_test(test_capability_resolve__a_model_of_one_run_goes_before_the_files),
        cmocka_unit_test(test_capability_resolve__a_fault_of_the_config_refuses_everything),
        cmocka_unit_test(test_capability_resolve__a_model_without_a_provider_is_a_row),
        cmocka_unit_test(test_capability_resolve__every_row_says_which_lines_made_it),
        cmocka_unit_test(test_capability_resolve__grant_and_report_are_json_whatever_the_names_are),
    };
    return cmocka_run_group_tests_name("capability_resolve", tests, NULL, NULL);
}

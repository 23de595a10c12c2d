// Config: the two files into one struct. Which file may say what, what is not read, and when an error may
// hide a restriction.
#include "support/support.h"
#include <deputy/config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof *(x))

typedef struct {
    arena *a;
    config c;
    diags d;
} read_config;

static read_config start(void) {
    read_config r = {.a = arena_new(), .c = config_defaults()};
    r.d = diags_new(r.a);
    return r;
}

static void add(read_config *r, bool system, str text) {
    dep_err err;
    if (config_parse(r->a, system ? S("sys.yaml") : S("ws.yaml"), text, system, &r->c, &r->d, &err) != DEP_OK)
        fail_msg("%s", err.msg);
}

static read_config parse(bool system, str text) {
    read_config r = start();
    add(&r, system, text);
    return r;
}

static bool has(const diags *d, const char *code, uint32_t line) {
    for (vec_each(const diag, it, &d->items))
        if (str_eq(str_z(it->code), str_z(code)) && it->line == line) return true;
    return false;
}

static void assert_no_errors(const read_config *r) {
    for (vec_each(const diag, it, &r->d.items))
        if (it->severity == SEV_ERROR) fail_msg("line %u: " STR_FMT, it->line, STR_ARG(it->msg));
}

// --- Values --------------------------------------------------------------------------------------

static int64_t *limit_of(config *c, const char *key) {
    config_limits *l = &c->limits;
    const struct {
        const char *key;
        int64_t *at;
    } rows[] = {{"turns", &l->turns},
                {"minutes", &l->minutes},
                {"idleSeconds", &l->idle_seconds},
                {"tokens", &l->tokens},
                {"toolKiB", &l->tool_kib},
                {"runKiB", &l->run_kib},
                {"searchMiB", &l->search_total_mib},
                {"searchFileMiB", &l->search_file_mib},
                {"running", &l->running}};
    for (size_t i = 0; i < COUNT(rows); i++)
        if (strcmp(rows[i].key, key) == 0) return rows[i].at;
    return NULL;
}

// Each row of the table: its default is the struct's, its bounds hold at n and n + 1, its value arrives, and
// a workspace may lower it and not raise it.
static void test_config_config__every_limit_arrives_and_only_goes_down(void **state) {
    (void)state;
    const key_row *limits = keytab_find(config_keys(), S("limits"));
    for (const key_row *row = limits->sub; row->name; row++) {
        if (row->type != KEY_INT) continue; // cost: below
        config d = config_defaults();
        assert_non_null(limit_of(&d, row->name));
        int64_t dflt = *limit_of(&d, row->name);
        assert_int_equal(dflt, strtoll(row->dflt, NULL, 10));
        assert_true(row->flags & KEY_LOWER);
        const struct {
            int64_t value;
            bool system, taken, error;
        } cases[] = {
            {row->min, true, true, false},     {row->max, true, true, false},
            {row->min - 1, true, false, true}, {row->max + 1, true, false, true},
            {row->min, false, true, false},    {dflt, false, true, false},
            {dflt + 1, false, false, true},    {row->min - 1, false, false, true},
        };
        for (size_t i = 0; i < COUNT(cases); i++) {
            read_config r = start();
            add(&r, cases[i].system,
                str_fmt(r.a, "limits:\n  %s: %lld\n", row->name, (long long)cases[i].value));
            assert_int_equal(*limit_of(&r.c, row->name), cases[i].taken ? cases[i].value : dflt);
            assert_int_equal(r.d.errors > 0, cases[i].error);
            arena_free(r.a);
        }
    }
}

static void test_config_config__the_bounds_are_these(void **state) {
    (void)state;
    static const struct {
        const char *path;
        int64_t min, max;
    } rows[] = {{"limits.running", 1, 1000},           {"limits.turns", 1, 10000},
                {"limits.minutes", 1, 10080},          {"limits.tokens", 1, 1000000000},
                {"limits.cost", 0, 1000000},           {"retention.days", 0, 36500},
                {"retention.count", 0, 10000000},      {"prices.input", 0, 1000000},
                {"providers.window", 1024, 100000000}, {"providers.params", 0, 16}};
    for (size_t i = 0; i < COUNT(rows); i++) {
        const key_row *row = keytab_find(config_keys(), str_z(rows[i].path));
        if (!row || row->min != rows[i].min || row->max != rows[i].max) fail_msg("%s", rows[i].path);
    }
}

// What the system's file may say and no clone's: then every number is lower.
static void test_config_config__only_the_system_says_unlimited(void **state) {
    (void)state;
    const key_row *limits = keytab_find(config_keys(), S("limits"));
    size_t words = 0;
    for (const key_row *row = limits->sub; row->name; row++) {
        bool word = row->flags & KEY_UNLIMITED;
        words += word;
        arena *a = arena_new();
        read_config r = start();
        str text = str_fmt(a, "limits: {%s: unlimited}\n", row->name);
        if (row->type != KEY_INT) {
            add(&r, true, text);
            assert_true(has(&r.d, "KEY002", 1) && !r.c.limits.cost_set);
            arena_free(r.a);
            arena_free(a);
            continue;
        }
        int64_t dflt = *limit_of(&r.c, row->name);
        add(&r, false, text);
        assert_int_equal(*limit_of(&r.c, row->name), dflt);
        assert_true(has(&r.d, word ? "CFG002" : "KEY002", 1));
        arena_free(r.a);
        r = start();
        add(&r, true, text);
        assert_int_equal(*limit_of(&r.c, row->name), word ? CONFIG_UNLIMITED : dflt);
        assert_int_equal(r.d.errors, !word);
        if (word) {
            add(&r, false, text); // not even then
            assert_int_equal(r.d.errors, 1);
            add(&r, false, str_fmt(r.a, "limits: {%s: %lld}\n", row->name, (long long)row->max));
            assert_int_equal(*limit_of(&r.c, row->name), row->max);
            assert_int_equal(r.d.errors, 1);
        }
        arena_free(r.a);
        arena_free(a);
    }
    assert_int_equal(words, 3); // turns, minutes, tokens
    assert_true(CONFIG_UNLIMITED <= INT64_MAX / 60000);
    read_config r = parse(true, S("limits: {turns: Unlimited, minutes: 0}\n"));
    assert_int_equal(r.c.limits.turns, 60);
    assert_int_equal(r.d.errors, 2);
    arena_free(r.a);
}

static void test_config_config__every_other_key_arrives_with_its_place(void **state) {
    (void)state;
    read_config r = parse(true, S("model: lab/big\n"
                                  "providers:\n"
                                  "  lab:\n"
                                  "    api: anthropic\n"
                                  "    url: https://lab.example/v1\n"
                                  "    key: ${LAB_KEY}\n"
                                  "    maxTokens: 4096\n"
                                  "    caFile: /etc/lab.pem\n"
                                  "    window: 200000\n"
                                  "    params: {temperature: 0.2}\n"
                                  "approval:\n"
                                  "  confirm: [bash, {server: crm.eu, tool: find}]\n"
                                  "  review: fs_write, web\n"
                                  "x-note: kept\n"));
    assert_no_errors(&r);
    assert_int_equal(r.d.warnings, 0);
    assert_true(str_eq(r.c.model, S("lab/big")) && str_eq(r.c.model_file, S("sys.yaml")) &&
                r.c.model_line == 1);
    const config_provider *p = config_provider_get(&r.c, S("lab"));
    assert_non_null(p);
    assert_true(str_eq(p->api, S("anthropic")) && str_eq(p->url, S("https://lab.example/v1")));
    assert_true(str_eq(p->key, S("${LAB_KEY}")) && str_eq(p->ca_file, S("/etc/lab.pem")));
    assert_int_equal(p->max_tokens, 4096);
    assert_int_equal(p->window, 200000);
    assert_true(str_eq(p->params, S("{\"temperature\":0.2}")));
    assert_int_equal(p->line, 3);
    assert_null(config_provider_get(&r.c, S("Lab")));
    assert_true(r.c.has_gates);
    assert_int_equal(r.c.confirm.n, 2);
    assert_int_equal(r.c.review.n, 2);
    assert_true(str_eq(r.c.confirm.p[0].text, S("bash")) && !r.c.confirm.p[0].is_map);
    assert_true(r.c.confirm.p[1].is_map && str_eq(r.c.confirm.p[1].server, S("crm.eu")));
    assert_true(str_eq(r.c.confirm.p[1].tool, S("find")) &&
                str_eq(r.c.confirm.p[1].text, S("mcp.crm.eu.find")));
    assert_true(str_eq(r.c.review.p[1].text, S("web")) && r.c.review.p[1].line == 13);
    assert_int_equal(r.c.fault.n, 0);
    // What the table has and what this test names are the same keys.
    static const char *const taken[] = {"model",     "providers", "limits", "approval",
                                        "retention", "prices",    "x-*"};
    for (const key_row *row = config_keys()->rows; row->name; row++) {
        bool known = row->flags & KEY_NOT_YET;
        for (size_t i = 0; i < COUNT(taken); i++) known = known || strcmp(row->name, taken[i]) == 0;
        if (!known) fail_msg("%s is in the table and in no test", row->name);
    }
    arena_free(r.a);
}

// --- Which file ----------------------------------------------------------------------------------

// B8: a clone's file names no provider, key, gate or other system key; the row says so and nothing of it is
// read.
static void test_config_config__system_keys_of_a_workspace_are_errors_and_not_read(void **state) {
    (void)state;
    read_config r = parse(false, S("model: lab/small\n"
                                   "providers: {lab: {api: anthropic, url: 'https://evil.example'}}\n"
                                   "approval: {confirm: [], review: [bash]}\n"));
    assert_true(has(&r.d, "CFG001", 2) && has(&r.d, "CFG001", 3));
    assert_int_equal(r.c.providers.n, 0);
    assert_false(r.c.has_gates);
    assert_int_equal(r.c.confirm.n + r.c.review.n, 0);
    assert_true(str_eq(r.c.model, S("lab/small"))); // one bad key does not take the others along
    assert_int_equal(r.c.fault.n, 0);
    arena_free(r.a);
    for (const key_row *row = config_keys()->rows; row->name; row++) {
        if (!(row->flags & KEY_SYSTEM)) continue;
        read_config one = start();
        add(&one, false, str_fmt(one.a, "%s: {}\n", row->name));
        if (!has(&one.d, "CFG001", 1)) fail_msg("%s is no error in a workspace's file", row->name);
        arena_free(one.a);
    }
}

static void test_config_config__the_workspace_file_is_read_over_the_system_file(void **state) {
    (void)state;
    read_config r = parse(true, S("model: a/b\nlimits: {turns: 100, minutes: 10}\n"));
    add(&r, false, S("model: c/d\nlimits: {turns: 90, minutes: 11}\n"));
    assert_true(str_eq(r.c.model, S("c/d")) && str_eq(r.c.model_file, S("ws.yaml")));
    assert_int_equal(r.c.limits.turns, 90);
    assert_int_equal(r.c.limits.minutes, 10);
    assert_true(has(&r.d, "CFG002", 2));
    arena_free(r.a);
}

static void test_config_config__reserved_keys_say_not_yet(void **state) {
    (void)state;
    size_t n = 0;
    for (const key_row *row = config_keys()->rows; row->name; row++) {
        if (!(row->flags & KEY_NOT_YET)) continue;
        read_config r = start();
        add(&r, true, str_fmt(r.a, "%s: x\n", row->name));
        assert_true(has(&r.d, "KEY009", 1));
        arena_free(r.a);
        n++;
    }
    assert_true(n > 5);
    // What was reserved once and is not any more.
    static const char *const now[] = {"retention", "prices", "limits.cost", "limits.running"};
    for (size_t i = 0; i < COUNT(now); i++) {
        const key_row *row = keytab_find(config_keys(), str_z(now[i]));
        assert_true(row && !(row->flags & KEY_NOT_YET));
    }
}

// --- Faults --------------------------------------------------------------------------------------

static void test_config_config__each_fault_has_its_code(void **state) {
    (void)state;
    static const struct {
        const char *text, *code;
        uint32_t line;
    } cases[] = {
        {"model: sonnet\n", "CFG003", 1},
        {"model: /x\n", "CFG003", 1},
        {"model: x/y/\n", NULL, 0}, // the provider ends at the first slash
        {"providers:\n  quote: {api: quote}\n", "CFG004", 2},
        {"providers:\n  a/b: {api: quote}\n", "CFG004", 2},
        {"providers:\n  a: {api: anthropic, key: sk-plain}\n", "CFG005", 2},
        {"providers:\n  a: {api: anthropic, key: 'Bearer ${KEY}'}\n", NULL, 0},
        {"providers:\n  a: {api: gopher}\n", "KEY004", 2},
        {"providers:\n  a: {url: 'https://x'}\n", "KEY005", 2},
        {"providers:\n  a: {api: anthropic, ulr: x}\n", "KEY008", 2},
        {"limits: {turn: 5}\n", "KEY008", 1},
        {"modle: a/b\n", "KEY001", 1},
        {"budgets: {turns: 5}\n", "KEY006", 1},
        {"limits: [5]\n", "KEY002", 1},
        {"model: a/b\nmodel: c/d\n", "YAML002", 2},
        {"# only a comment\n", NULL, 0},
        {"---\n", NULL, 0},
        {"", NULL, 0},
        {"   \n\n", NULL, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        read_config r = parse(true, str_z(cases[i].text));
        if (cases[i].code ? !has(&r.d, cases[i].code, cases[i].line) : r.d.items.n > 0)
            fail_msg("%s: want %s, got %s", cases[i].text, cases[i].code ? cases[i].code : "nothing",
                     r.d.items.n ? r.d.items.p[0].code : "nothing");
        arena_free(r.a);
    }
}

static void test_config_config__a_provider_with_errors_is_not_read(void **state) {
    (void)state;
    read_config r = parse(true, S("providers:\n  a: {api: gopher}\n  b: {url: x}\n  quote: {api: quote}\n"
                                  "  c: {api: anthropic, maxTokens: 0}\n  d: text\n"));
    assert_int_equal(r.c.providers.n, 1);
    assert_true(str_eq(r.c.providers.p[0].name, S("c")));
    assert_int_equal(r.c.providers.p[0].max_tokens, 0); // the client's own
    assert_int_equal(r.c.providers.p[0].window, 0);
    assert_int_equal(r.c.providers.p[0].params.n, 0);
    assert_int_equal(r.c.fault.n, 0); // a provider restricts nothing
    arena_free(r.a);
}

// B10: an error that may have been a restriction stops every run; others do not.
static void test_config_config__an_error_that_may_hide_a_restriction_is_a_fault(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool fault;
    } cases[] = {
        {"limits: {turns: 5\n", true}, // the text ends nowhere
        {"limits: {turns: 5}\nlimits: {}\n", true},
        {"limits: !!map {turns: 5}\n", true},
        {"- limits\n", true},
        {"limits: {turns: sixty}\n", true},
        {"limits: {turn: 5}\n", true},
        {"limit: {turns: 5}\n", true},
        {"aproval: {confirm: [bash]}\n", true},
        {"approval: {confrim: [bash]}\n", true},
        {"approval: {confirm: {bash: true}}\n", true},
        {"permissions: {read: [docs]}\n", true},
        {"modle: a/b\n", false},
        {"model: sonnet\n", false},
        {"providers: {a: {api: gopher}}\n", false},
        {"webSearch: x\n", false},
        {"limits: {cost: free}\n", true},
        {"prices: {a/b: {input: 1}}\n", true},
        {"prices: {a/b: {input: 1, output: free}}\n", true},
        {"prices: {a: {input: 1, output: 1}}\n", true},
        {"prices: {a/b: {input: 1, outptu: 1, output: 1}}\n", true},
        {"retention: {days: x}\n", false},
        {"limits: {turns: 5}\n", false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        read_config r = parse(true, str_z(cases[i].text));
        if ((r.c.fault.n > 0) != cases[i].fault) fail_msg("%s: " STR_FMT, cases[i].text, STR_ARG(r.c.fault));
        if (cases[i].fault) assert_true(str_starts(r.c.fault, S("sys.yaml:")));
        arena_free(r.a);
    }
    // Nothing of a text with errors is taken, and a later, better file does not hide the fault.
    read_config r = parse(true, S("model: a/b\nlimits: {turns: 5}\nlimits: {turns: 6}\n"));
    assert_int_equal(r.c.limits.turns, 60);
    assert_int_equal(r.c.model.n, 0);
    add(&r, false, S("limits: {turns: 7}\n"));
    assert_true(r.c.fault.n > 0);
    arena_free(r.a);
}

// A key that stands in the file as plain text is in no diagnostic, whatever is wrong beside it.
static void test_config_config__no_diagnostic_quotes_a_key(void **state) {
    (void)state;
    static const char *const texts[] = {
        "providers:\n  a: {api: anthropic, key: sk-plain}\n",
        "providers:\n  a: {api: anthropic, key: sk-plain, ulr: x}\n",
        "providers:\n  a:\n    key: sk-plain: x\n",
        "providers:\n  a:\n    key: sk-plain\n    key: sk-plain\n",
        "providers:\n  a:\n    key: [sk-plain]\n",
        "providers:\n  a:\n    kye: sk-plain\n    key: !!str sk-plain\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        read_config r = parse(true, str_z(texts[i]));
        assert_true(r.d.items.n > 0);
        buf out = buf_new(r.a, 0);
        diags_print(&out, &r.d, false);
        diags_json(&out, &r.d);
        if (str_find(buf_str(&out), S("sk-plain")) != SIZE_MAX)
            fail_msg("%s: " STR_FMT, texts[i], STR_ARG(buf_str(&out)));
        assert_int_equal(str_find(r.c.fault, S("sk-plain")), SIZE_MAX);
        arena_free(r.a);
    }
}

static void test_config_config__sizes_hold_at_n_and_n_plus_one(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        read_config r = start();
        buf b = buf_new(r.a, 0);
        buf_add(&b, S("providers:\n"));
        for (size_t i = 0; i < CONFIG_PROVIDERS_MAX + over; i++) buf_addf(&b, "  p%zu: {api: quote}\n", i);
        add(&r, true, buf_str(&b));
        assert_int_equal(r.c.providers.n, CONFIG_PROVIDERS_MAX);
        assert_int_equal(has(&r.d, "KEY007", 1) || has(&r.d, "KEY007", 2), over);
        arena_free(r.a);

        r = start();
        b = buf_new(r.a, 0);
        buf_add(&b, S("model: a/b\n#"));
        buf_fill(&b, 'x', CONFIG_FILE_MAX - b.n + over);
        add(&r, true, buf_str(&b));
        assert_int_equal(r.c.model.n > 0, !over);
        assert_int_equal(r.c.fault.n > 0, over);
        arena_free(r.a);
    }
}

// --- ${VAR} --------------------------------------------------------------------------------------

static const char *test_getenv(const char *name) {
    if (strcmp(name, "KEY") == 0) return "secret";
    if (strcmp(name, "EMPTY") == 0) return "";
    if (strcmp(name, "TRICK") == 0) return "${KEY}";
    return NULL;
}

static void test_config_config__variables_expand_once_and_missing_ones_are_named(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; // NULL: an error
        const char *says;
    } cases[] = {
        {"", "", NULL},
        {"plain", "plain", NULL},
        {"${KEY}", "secret", NULL},
        {"a${KEY}b${KEY}", "asecretbsecret", NULL},
        {"${NONE:-dflt}", "dflt", NULL},
        {"${EMPTY:-dflt}", "dflt", NULL},
        {"${KEY:-dflt}", "secret", NULL},
        {"${NONE:-}", "", NULL},
        {"${NONE:-a:-b}", "a:-b", NULL},
        {"$${KEY}", "${KEY}", NULL},
        {"$$$$", "$$", NULL},
        {"$KEY $ 5$", "$KEY $ 5$", NULL},
        {"${TRICK}", "${KEY}", NULL}, // what a variable holds is not expanded again
        {"${NONE}", NULL, "NONE"},
        {"${EMPTY}", NULL, "EMPTY"},
        {"${KEY", NULL, "brace"},
        {"${}", NULL, "not set"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        str got;
        dep_err err;
        dep_status st = config_expand(a, str_z(cases[i].text), test_getenv, &got, &err);
        assert_int_equal(st == DEP_OK, cases[i].want != NULL);
        if (cases[i].want) assert_true(str_eq(got, str_z(cases[i].want)));
        if (!cases[i].want) assert_non_null(strstr(err.msg, cases[i].says));
        if (!cases[i].want) assert_null(strstr(err.msg, "secret"));
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_config__every_limit_arrives_and_only_goes_down),
        cmocka_unit_test(test_config_config__the_bounds_are_these),
        cmocka_unit_test(test_config_config__only_the_system_says_unlimited),
        cmocka_unit_test(test_config_config__every_other_key_arrives_with_its_place),
        cmocka_unit_test(test_config_config__system_keys_of_a_workspace_are_errors_and_not_read),
        cmocka_unit_test(test_config_config__the_workspace_file_is_read_over_the_system_file),
        cmocka_unit_test(test_config_config__reserved_keys_say_not_yet),
        cmocka_unit_test(test_config_config__each_fault_has_its_code),
        cmocka_unit_test(test_config_config__a_provider_with_errors_is_not_read),
        cmocka_unit_test(test_config_config__an_error_that_may_hide_a_restriction_is_a_fault),
        cmocka_unit_test(test_config_config__no_diagnostic_quotes_a_key),
        cmocka_unit_test(test_config_config__sizes_hold_at_n_and_n_plus_one),
        cmocka_unit_test(test_config_config__variables_expand_once_and_missing_ones_are_named),
    };
    return cmocka_run_group_tests_name("config_config", tests, NULL, NULL);
}

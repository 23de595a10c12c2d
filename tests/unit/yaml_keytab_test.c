// The key-table engine, with a small table that has every type of key.
#include "support/support.h"
#include <deputy/json.h>
#include <deputy/keytab.h>
#include <stdio.h>

static const char *const colours[] = {"none", "private", "shared", NULL};
static const key_row source_rows[] = {
    {.name = "name", .type = KEY_STRING, .flags = KEY_REQUIRED, .min = 1, .max = 5, .help = "Its name."},
    {.name = "path", .type = KEY_STRINGS, .max = 2},
    {.name = "tags", .type = KEY_STRING_MAP, .max = 2},
    {0},
};
static const key_row server_rows[] = {
    {.name = "name", .type = KEY_STRING, .flags = KEY_REQUIRED},
    {.name = "include", .type = KEY_NAMES},
    {.name = "readonly", .type = KEY_BOOL, .flags = KEY_RESTRICTS},
    {0},
};
static const key_row mcp_rows[] = {
    {.name = "servers", .type = KEY_NAMES_OR_MAPS, .max = 3, .sub = server_rows},
    {.name = "search",
     .type = KEY_ENUM,
     .values = (const char *const[]){"auto", "on", "off", NULL},
     .dflt = "auto"},
    {0},
};
static const key_row axis_rows[] = {
    {.name = "read", .type = KEY_NAMES},
    {.name = "run", .type = KEY_NAMES},
    {0},
};
static const key_row provider_rows[] = {
    {.name = "url", .type = KEY_STRING, .flags = KEY_REQUIRED | KEY_SYSTEM},
    {.name = "x-*", .type = KEY_ANY},
    {0},
};
static const key_row rows[] = {
    {.name = "name",
     .type = KEY_STRING,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = 8,
     .help = "Who it is | what."},
    {.name = "prompt", .type = KEY_TEXT, .help = "The \"body\"."},
    {.name = "maxTurns", .type = KEY_INT, .flags = KEY_LOWER, .min = 1, .max = 100, .dflt = "60"},
    {.name = "minutes", .type = KEY_INT, .min = 1},
    {.name = "strict", .type = KEY_BOOL, .dflt = "false"},
    {.name = "memory", .type = KEY_ENUM, .values = colours, .dflt = "none"},
    {.name = "skills", .type = KEY_NAMES, .max = 3},
    {.name = "tools", .type = KEY_NAMES_OR_ALL, .max = 4},
    {.name = "mcp", .type = KEY_MAP, .flags = KEY_STRICT, .sub = mcp_rows},
    {.name = "permissions", .type = KEY_MAP, .flags = KEY_STRICT | KEY_RESTRICTS, .sub = axis_rows},
    {.name = "knowledge", .type = KEY_MAPS, .flags = KEY_STRICT, .max = 2, .sub = source_rows},
    {.name = "providers", .type = KEY_NAMED_MAPS, .max = 2, .sub = provider_rows},
    {.name = "schedule", .type = KEY_STRING, .flags = KEY_NOT_YET, .help = "When it runs."},
    {.name = "color", .type = KEY_ANY},
    {.name = "x-*", .type = KEY_ANY, .help = "Yours."},
    {.name = "price", .type = KEY_NUMBER, .max = 1000},
    {.name = "share", .type = KEY_NUMBER, .flags = KEY_FROM_MIN, .min = 1, .max = 2},
    {.name = "calls", .type = KEY_INT, .flags = KEY_UNLIMITED, .min = 1, .max = 9},
    {0},
};
static const key_moved moved[] = {
    {"instructions", "write `prompt`", SEV_WARNING},
    {"disallowedTools", "list what is allowed in `tools`", SEV_ERROR},
    {"tools.mcp", "write `mcp`", SEV_ERROR},
    {"approval.confirm", "write `confirm` below `approval`", SEV_ERROR},
    {"mcp.server", "write `servers`", SEV_ERROR},
    {"mcp.mode", "write `search`", SEV_WARNING},
    {0},
};
static const key_table table = {"Sample definition", "sample.schema.json", "definition", rows, moved};

static ydoc *parse(arena *a, str text) {
    diags d = diags_new(a);
    ydoc *doc;
    assert_int_equal(yaml_parse(a, S("t.yaml"), text, 0, true, &doc, &d, NULL), DEP_OK);
    assert_non_null(doc->root);
    assert_int_equal(d.errors, 0);
    return doc;
}

typedef struct {
    const char *text; // below `name: x`
    const char *want; // "code:line:column:end severity", several with ", "
    const char *part; // of the first one's message or hint
} check_case;

static bool one_case(const check_case *c, bool strict) {
    arena *a = arena_new();
    diags d = diags_new(a);
    bool own = strncmp(c->text, "!", 1) == 0; // without the name
    ydoc *doc = parse(a, str_fmt(a, "%s%s", own ? "" : "name: x\n", c->text + own));
    keytab_check(&table, doc, &d, strict);
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < d.items.n; i++) {
        const diag *x = &d.items.p[i];
        buf_addf(&b, "%s%s:%u:%u:%u %s", i ? ", " : "", x->code, x->line, x->column, x->end,
                 x->severity == SEV_ERROR ? "e" : "w");
    }
    bool ok = str_eq(buf_str(&b), str_z(c->want));
    if (ok && c->part) {
        str all = str_fmt(a, STR_FMT "\n" STR_FMT, STR_ARG(d.items.p[0].msg), STR_ARG(d.items.p[0].hint));
        ok = str_find(all, str_z(c->part)) != SIZE_MAX;
    }
    if (!ok) {
        printf("%s\ngot:    " STR_FMT "\nwanted: %s %s\n", c->text, STR_ARG(buf_str(&b)), c->want,
               c->part ? c->part : "");
        for (size_t i = 0; i < d.items.n; i++)
            printf("  " STR_FMT " | " STR_FMT "\n", STR_ARG(d.items.p[i].msg), STR_ARG(d.items.p[i].hint));
    }
    arena_free(a);
    return ok;
}

static void run_cases(const check_case *cases, size_t n, bool strict) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += !one_case(&cases[i], strict);
    assert_int_equal(bad, 0);
}
#define RUN(cases, strict) run_cases(cases, sizeof(cases) / sizeof *(cases), strict)

static void test_yaml_keytab__a_good_document_has_no_faults(void **state) {
    (void)state;
    static const check_case cases[] = {
        {"", "", NULL},
        {"prompt: |\n  a\nmaxTurns: 100\nminutes: 100000\nstrict: True\nmemory: private\nskills: [a]\ntools: "
         "all\ncolor: "
         "{a: b}\nx-own: 1\n",
         "", NULL},
        {"mcp:\n  search: on\n  servers: [a, {name: b, readonly: true, include: c}]\npermissions:\n  read: "
         "[]\n",
         "", NULL},
        {"knowledge:\n- name: abcde\n  path: a b, c\n- {name: k, path: [a, b], tags: {p: q}}\n", "", NULL},
        {"providers:\n  a: {url: u, x-z: 1}\n  b: {url: v}\n", "", NULL},
        {"mcp: {servers: \"a, b c\"}\ntools: []\nmaxTurns: '60'\n", "", NULL},
        {"tools: 'all'\n", "", NULL},
    };
    RUN(cases, true);
}

static void test_yaml_keytab__wrong_types_and_values_are_errors(void **state) {
    (void)state;
    static const check_case cases[] = {
        {"!name: [a]\n", "KEY002:1:7:10 e", "must be text, not a list"},
        {"!name: 12345678\n", "", NULL},
        {"!name: 123456789\n", "KEY003:1:7:16 e", "at most 8"},
        {"!name: \"ü234567ü\"\n", "", NULL},
        {"!name: ''\n", "KEY003:1:7:9 e", "is empty"},
        {"!name: ~\n", "KEY005:1:1:5 e", "has no value"},
        {"!name:\n", "KEY005:1:1:5 e", "has no value"},
        {"!color: a\n", "KEY005:1:1:6 e", "`name` is missing"},
        {"prompt:\n", "KEY002:2:1:7 e", "has no value"},
        {"maxTurns: 60.5\n", "KEY002:2:11:15 e", "whole number"},
        {"maxTurns: -1\n", "KEY003:2:11:13 e", "from 1 to 100"},
        {"maxTurns: 0\n", "KEY003:2:11:12 e", "from 1 to 100"},
        {"maxTurns: 101\n", "KEY003:2:11:14 e", NULL},
        {"maxTurns: 0x3C\n", "KEY002:2:11:15 e", NULL},
        {"maxTurns: 1e2\n", "KEY002:2:11:14 e", NULL},
        {"maxTurns: 007\n", "KEY002:2:11:14 e", NULL},
        {"maxTurns: +7\n", "KEY002:2:11:13 e", NULL},
        {"maxTurns: 99999999999999999999\n", "KEY003:2:11:31 e", NULL},
        {"maxTurns: ''\n", "KEY002:2:11:13 e", NULL},
        {"maxTurns: [1]\n", "KEY002:2:11:14 e", NULL},
        {"maxTurns:\n", "KEY002:2:1:9 e", NULL},
        {"minutes: 0\n", "KEY003:2:10:11 e", "1 or more"},
        {"price: 0.50\n", "", NULL},
        {"price: \"1000\"\n", "", NULL},
        {"price: 1000.0\n", "", NULL},
        {"price: 0\n", "KEY003:2:8:9 e", "more than 0"},
        {"price: 0.00\n", "KEY003:2:8:12 e", "more than 0"},
        {"price: 1000.01\n", "KEY003:2:8:15 e", "at most 1000"},
        {"price: -1\n", "KEY002:2:8:10 e", "must be a number"},
        {"price: 1e3\n", "KEY002:2:8:11 e", "0.50"},
        {"price: .5\n", "KEY002:2:8:10 e", "must be a number"},
        {"price: 5.\n", "KEY002:2:8:10 e", "must be a number"},
        {"price: 1.2.3\n", "KEY002:2:8:13 e", "must be a number"},
        {"price: 0.000001\n", "", NULL},
        {"price: 0.0000001\n", "KEY002:2:8:17 e", "6 digits behind it"},
        {"price: 1000.000001\n", "KEY003:2:8:19 e", "at most 1000"},
        {"price: 99999999999999999999\n", "KEY003:2:8:28 e", "at most 1000"},
        {"share: 1\n", "", NULL},
        {"share: 2.000000\n", "", NULL},
        {"share: 0.999999\n", "KEY003:2:8:16 e", "at least 1 and at most 2"},
        {"share: 2.000001\n", "KEY003:2:8:16 e", "at most 2"},
        {"calls: 9\n", "", NULL},
        {"calls: unlimited\n", "", NULL},
        {"calls: 10\n", "KEY003:2:8:10 e", "from 1 to 9"},
        {"calls: Unlimited\n", "KEY002:2:8:17 e", "or `unlimited`"},
        {"maxTurns: unlimited\n", "KEY002:2:11:20 e", "whole number"},
        {"price: nan\n", "KEY002:2:8:11 e", "must be a number"},
        {"price: [1]\n", "KEY002:2:8:11 e", "a number, not a list"},
        {"price:\n", "KEY002:2:1:6 e", "no value"},
        {"strict: yes\n", "KEY002:2:9:12 e", "true or false"},
        {"strict: 'true'\n", "KEY002:2:9:15 e", "without quotes"},
        {"memory: Private\n", "KEY004:2:9:16 e", "did you mean `private`"},
        {"memory: own\n", "KEY004:2:9:12 e", "none, private, shared"},
        {"memory: ~\n", "KEY002:2:9:10 e", NULL},
        {"memory: [none]\n", "KEY002:2:9:15 e", NULL},
        {"skills: {a: b}\n", "KEY002:2:9:15 e", NULL},
        {"skills: [a, [b]]\n", "KEY002:2:13:16 e", NULL},
        {"skills: [a, ~]\n", "KEY002:2:13:14 e", NULL},
        {"skills: [a, '']\n", "KEY003:2:13:15 e", NULL},
        {"skills: [a, b, c]\n", "", NULL},
        {"skills: [a, b, c, d]\n", "KEY007:2:9:21 e", "4 entries; at most 3"},
        {"skills: a b, c d\n", "KEY007:2:9:17 e", NULL},
        {"skills: Bash(git\n", "KEY010:2:9:17 e", NULL},
        {"skills: git)\n", "KEY010:2:9:13 e", NULL},
        {"skills:\n", "KEY002:2:1:7 e", NULL},
        {"tools: All\n", "KEY004:2:8:11 e", "write `tools: all`"},
        {"tools: [all]\n", "KEY004:2:9:12 e", "write `tools: all`"},
        {"tools: read, all\n", "KEY004:2:14:17 e", NULL},
        {"tools: [read, ALL]\n", "KEY004:2:15:18 e", NULL},
        {"mcp: a\n", "KEY002:2:6:7 e", "must be a mapping"},
        {"mcp:\n", "KEY002:2:1:4 e", NULL},
        {"mcp: {servers: [{include: a}]}\n", "KEY005:2:17:25 e", "`name` is missing"},
        {"mcp: {servers: [[a]]}\n", "KEY002:2:17:20 e", "a name or a mapping"},
        {"mcp: {servers: [a, b, c, d]}\n", "KEY007:2:16:28 e", NULL},
        {"knowledge: {name: a}\n", "KEY002:2:12:21 e", "put `- `"},
        {"knowledge: [a]\n", "KEY002:2:13:14 e", NULL},
        {"knowledge: [{name: abcdef}]\n", "KEY003:2:20:26 e", NULL},
        {"knowledge: [{name: a, path: [b, c, d]}]\n", "KEY007:2:29:38 e", NULL},
        {"knowledge: [{name: a, path: ''}]\n", "KEY003:2:29:31 e", NULL},
        {"knowledge: [{name: a, path: {b: c}}]\n", "KEY002:2:29:35 e", NULL},
        {"knowledge: [{name: a, tags: {b: [c]}}]\n", "KEY002:2:33:36 e", NULL},
        {"knowledge: [{name: a}, {name: b}, {name: c}]\n", "KEY007:2:12:45 e", NULL},
        {"providers: {a: b}\n", "KEY002:2:16:17 e", "`a` in `providers` must be a mapping"},
        {"providers: {a: {}}\n", "KEY005:2:16:18 e", NULL},
        {"providers: [a]\n", "KEY002:2:12:15 e", NULL},
        {"providers: {a: {url: u}, b: {url: u}, c: {url: u}}\n", "KEY007:2:12:51 e", NULL},
        {"schedule: daily\n", "KEY009:2:1:9 e", "not"},
    };
    RUN(cases, false);
}

static void test_yaml_keytab__unknown_keys_are_warned_about_and_restrictions_are_errors(void **state) {
    (void)state;
    static const check_case cases[] = {
        {"propmt: a\n", "KEY001:2:1:7 w", "did you mean `prompt`"},
        {"MAXTURNS: 1\n", "KEY001:2:1:9 w", "did you mean `maxTurns`"},
        {"max_turns: 1\n", "KEY001:2:1:10 w", "did you mean `maxTurns`"},
        {"whatever: 1\n", "KEY001:2:1:9 w", "begin with `x-`"},
        {"x: 1\n", "KEY001:2:1:2 w", NULL},
        {"permisions: {}\n", "KEY008:2:1:11 e", "did you mean `permissions`"},
        {"Permissions: {}\n", "KEY008:2:1:12 e", "did you mean `permissions`"},
        {"permission: {}\n", "KEY008:2:1:11 e", NULL},
        // Restrictions in the wrong place
        {"readonly: true\n", "KEY008:2:1:9 e", "did you mean `mcp.servers.readonly`"},
        {"run: [git]\n", "KEY008:2:1:4 e", "did you mean `permissions.run`"},
        {"path: a\n", "KEY001:2:1:5 w", "did you mean `knowledge.path`"},
        // Where each key counts
        {"mcp: {serch: on}\n", "KEY008:2:7:12 e", "did you mean `search`"},
        {"mcp: {servers: [{name: a, wat: 1}]}\n", "KEY008:2:27:30 e", "unknown key `wat` in `mcp.servers`"},
        {"mcp: {x-own: 1}\n", "KEY008:2:7:12 e", NULL},
        {"permissions: {write: [a]}\n", "KEY008:2:15:20 e", NULL},
        {"knowledge: [{name: a, type: b}]\n", "KEY008:2:23:27 e", NULL},
        {"providers: {a: {url: u, ulr: 1}}\n", "KEY001:2:25:28 w", "did you mean `url`"},
        // Foreign and former spellings
        {"instructions: a\n", "KEY006:2:1:13 w", "write `prompt`"},
        {"Instructions: a\n", "KEY006:2:1:13 w", NULL},
        {"disallowedTools: a\n", "KEY006:2:1:16 e", "list what is allowed"},
        {"disalowedTools: a\n", "KEY006:2:1:15 e", "list what is allowed"},
        {"tools: {mcp: [a]}\n", "KEY006:2:9:12 e", "write `mcp`"},
        {"tools: {a: [a]}\n", "KEY002:2:8:16 e", NULL},
        {"approval.confirm: [a]\n", "KEY006:2:1:17 e", "below `approval`"},
        {"approval: {confirm: [a]}\n", "KEY001:2:1:9 w", NULL},
        {"mcp: {server: a}\n", "KEY006:2:7:13 e", "write `servers`"},
        {"mcp: {mode: a}\n", "KEY006:2:7:11 e", "write `search`"}, // each key counts there
        {"a: 1\nb: 2\n", "KEY001:2:1:2 w, KEY001:3:1:2 w", NULL},
    };
    RUN(cases, false);
    static const check_case strict[] = {
        {"propmt: a\n", "KEY001:2:1:7 e", NULL},
        {"instructions: a\n", "KEY006:2:1:13 e", NULL},
        {"whatever: 1\n", "KEY001:2:1:9 e", NULL},
    };
    RUN(strict, true);
}

static void test_yaml_keytab__a_document_without_mapping_is_left_alone(void **state) {
    (void)state;
    static const char *const texts[] = {"", "- a\n", "a: b: c\n", "x\n"};
    for (size_t i = 0; i < 4; i++) {
        arena *a = arena_new();
        diags d = diags_new(a), mine = diags_new(a);
        ydoc *doc;
        assert_int_equal(yaml_parse(a, S("t"), str_z(texts[i]), 0, true, &doc, &d, NULL), DEP_OK);
        keytab_check(&table, doc, &mine, true);
        assert_int_equal(mine.items.n, 0);
        arena_free(a);
    }
}

static void test_yaml_keytab__many_faults_are_counted_and_stay_cheap(void **state) {
    (void)state;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < 5000; i++) buf_addf(&b, "key%zu: 1\n", i);
    ydoc *doc = parse(a, buf_str(&b));
    diags d = diags_new(a);
    size_t before = arena_used(a);
    keytab_check(&table, doc, &d, false);
    assert_int_equal(d.items.n, DIAG_MAX);
    assert_int_equal(d.warnings, 5000);
    assert_int_equal(d.errors, 1); // name is missing
    assert_true(arena_used(a) - before < 4 << 20);
    arena_free(a);
}

// --- Entries ----------------------------------------------------------------------------------------------

static void test_yaml_keytab__string_lists_split_outside_of_parentheses(void **state) {
    (void)state;
    static const struct {
        const char *text, *want; // entries with `|` between and before each its column, or "unbalanced"
    } cases[] = {
        {"Read, Bash(git add:*, git commit:*), Agent(one, two), Grep",
         "4 Read|10 Bash(git add:*, git commit:*)|41 Agent(one, two)|58 Grep"},
        {"Bash(git:*) Bash(jq:*) Read", "4 Bash(git:*)|16 Bash(jq:*)|27 Read"},
        {"[Read, \"Bash(a, b)\"]", "5 Read|11 Bash(a, b)"}, // items of a list: with their quotes,
        {"Read,, Grep,", "4 Read|11 Grep"},
        {"\"Read Write Glob\"", "5 Read|10 Write|16 Glob"},
        {"'Read, Write'", "5 Read|11 Write"},
        {"Read", "4 Read"},
        {"\"\\x52ead, Grep\"", "0 Read|0 Grep"},
        {"''", ""},
        {"~", ""},
        {"[]", ""},
        {"\" , ,\"", ""},
        {"|\n  Read\n  Grep", "0 Read|0 Grep"},
        {"Read\n  Grep", "0 Read|0 Grep"},
        {"f((a, b), c) d", "4 f((a, b), c)|17 d"},
        {"Bash(git", "unbalanced"},
        {"Bash(git:*)) Read", "unbalanced"},
        {"[a b, 'c, d']", "5 a b|10 c, d"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        ydoc *doc = parse(a, str_fmt(a, "k: %s\n", cases[i].text));
        key_items items = {0};
        buf b = buf_new(a, 0);
        if (keytab_names(a, doc, yaml_get(doc->root, S("k")), &items)) {
            for (size_t k = 0; k < items.n; k++) {
                uint32_t line, column = 0;
                size_t at = items.p[k].at;
                if (at) yaml_place(doc, at, &line, &column);
                buf_addf(&b, "%s%u " STR_FMT, k ? "|" : "", column, STR_ARG(items.p[k].text));
            }
        } else {
            buf_add(&b, S("unbalanced"));
        }
        str got = buf_str(&b), want = str_z(cases[i].want);
        if (!str_eq(got, want)) printf("%s: " STR_FMT "\n", cases[i].text, STR_ARG(got));
        assert_true(str_eq(got, want));
        arena_free(a);
    }
}

static void test_yaml_keytab__strings_are_not_split(void **state) {
    (void)state;
    arena *a = arena_new();
    ydoc *doc = parse(a, S("one: a b, c\nmany: [a b, ~, {c: d}, e]\nnone: ~\nmap: {a: b}\n"));
    key_items one = {0}, many = {0}, none = {0};
    keytab_strings(a, yaml_get(doc->root, S("one")), &one);
    keytab_strings(a, yaml_get(doc->root, S("many")), &many);
    keytab_strings(a, yaml_get(doc->root, S("none")), &none);
    keytab_strings(a, yaml_get(doc->root, S("map")), &none);
    keytab_strings(a, NULL, &none);
    assert_int_equal(one.n, 1);
    assert_true(str_eq(one.p[0].text, S("a b, c")));
    assert_int_equal(many.n, 2);
    assert_true(str_eq(many.p[1].text, S("e")));
    assert_int_equal(none.n, 0);
    arena_free(a);
}

static void test_yaml_keytab__names_and_rows_are_found(void **state) {
    (void)state;
    assert_string_equal(keytab_nearest(rows, S("Prompt")), "prompt");
    assert_string_equal(keytab_nearest(rows, S("knowlege")), "knowledge");
    assert_string_equal(keytab_nearest(rows, S("permissi")), "permissions");
    assert_null(keytab_nearest(rows, S("permiss")));
    assert_string_equal(keytab_nearest(rows, S("mc")), "mcp");
    assert_null(keytab_nearest(rows, S("m")));
    assert_null(keytab_nearest(rows, S("zzz")));
    assert_null(keytab_nearest(rows, S("")));
    static const str names[] = {S_INIT("read"), S_INIT("grep"), S_INIT("WebFetch")};
    assert_true(str_eq(nearest_name(S("webfetch"), names, 3), S("WebFetch")));
    assert_true(str_eq(nearest_name(S("web_fetch"), names, 3), S("WebFetch")));
    assert_true(str_eq(nearest_name(S("raed"), names, 3), S("read")));
    assert_true(str_empty(nearest_name(S("write"), names, 3)));
    assert_true(str_empty(nearest_name(S("x"), names, 0)));
    assert_ptr_equal(keytab_find(&table, S("mcp.servers.name")), &server_rows[0]);
    assert_ptr_equal(keytab_find(&table, S("providers.url")), &provider_rows[0]);
    assert_ptr_equal(keytab_find(&table, S("x-mine")), &rows[14]);
    assert_null(keytab_find(&table, S("mcp.nothing")));
    assert_null(keytab_find(&table, S("name.x")));
    assert_null(keytab_find(&table, S("")));
}

// --- Schema and reference ---------------------------------------------------------------------------------

static const json *at(const json *o, const char *path) {
    str rest = str_z(path), part;
    for (bool more = true; more && o;) {
        more = str_cut(rest, '/', &part, &rest);
        uint64_t i;
        o = o->kind == JSON_ARRAY && str_u64(part, 99, &i) ? json_at(o, i) : json_get(o, part);
    }
    return o;
}

static void expect(const json *root, const char *path, const char *raw) {
    const json *v = at(root, path);
    if (!v || !str_eq(v->raw, str_z(raw)))
        printf("%s: " STR_FMT "\n", path, STR_ARG(v ? v->raw : S("absent")));
    assert_non_null(v);
    assert_true(str_eq(v->raw, str_z(raw)));
}

static void test_yaml_keytab__the_schema_says_what_the_table_says(void **state) {
    (void)state;
    arena *a = arena_new();
    buf b = buf_new(a, 0), again = buf_new(a, 0);
    keytab_schema(&b, &table);
    keytab_schema(&again, &table);
    assert_true(str_eq(buf_str(&b), buf_str(&again)));
    json *j = NULL;
    dep_err err = {0};
    assert_int_equal(json_parse(a, buf_str(&b), 0, &j, &err), DEP_OK);
    expect(j, "$schema", "\"https://json-schema.org/draft/2020-12/schema\"");
    expect(j, "$id", "\"sample.schema.json\"");
    expect(j, "title", "\"Sample definition\"");
    expect(j, "type", "\"object\"");
    expect(j, "required/0", "\"name\"");
    assert_int_equal(at(j, "required")->count, 1);
    assert_null(at(j, "additionalProperties"));
    expect(j, "properties/name/description", "\"Who it is | what.\"");
    expect(j, "properties/name/minLength", "1");
    expect(j, "properties/name/maxLength", "8");
    expect(j, "properties/prompt/type/0", "\"string\"");
    expect(j, "properties/prompt/type/1", "\"number\""); // 007 and true are texts too
    expect(j, "properties/prompt/type/2", "\"boolean\"");
    expect(j, "properties/price/type", "\"number\"");
    expect(j, "properties/price/exclusiveMinimum", "0");
    expect(j, "properties/price/maximum", "1000");
    expect(j, "properties/share/minimum", "1");
    assert_null(at(j, "properties/share/exclusiveMinimum"));
    expect(j, "properties/calls/anyOf/0/type", "\"integer\"");
    expect(j, "properties/calls/anyOf/0/maximum", "9");
    expect(j, "properties/calls/anyOf/1/const", "\"unlimited\"");
    expect(j, "properties/maxTurns/type", "\"integer\"");
    expect(j, "properties/maxTurns/minimum", "1");
    expect(j, "properties/maxTurns/maximum", "100");
    expect(j, "properties/maxTurns/default", "60");
    expect(j, "properties/minutes/minimum", "1");
    assert_null(at(j, "properties/minutes/maximum"));
    expect(j, "properties/strict/type", "\"boolean\"");
    expect(j, "properties/strict/default", "false");
    expect(j, "properties/memory/enum/2", "\"shared\"");
    expect(j, "properties/memory/default", "\"none\"");
    expect(j, "properties/skills/anyOf/0/type", "\"array\"");
    expect(j, "properties/skills/anyOf/0/items/type/0", "\"string\"");
    expect(j, "properties/skills/anyOf/0/maxItems", "3");
    expect(j, "properties/skills/anyOf/1/type", "\"string\"");
    expect(j, "properties/tools/anyOf/0/const", "\"all\"");
    expect(j, "properties/mcp/additionalProperties", "false");
    expect(j, "properties/mcp/properties/servers/anyOf/0/items/anyOf/1/required/0", "\"name\"");
    expect(j, "properties/mcp/properties/servers/anyOf/0/items/anyOf/1/additionalProperties", "false");
    expect(j, "properties/knowledge/type", "\"array\"");
    expect(j, "properties/knowledge/maxItems", "2");
    expect(j, "properties/knowledge/items/properties/tags/additionalProperties/type/0", "\"string\"");
    expect(j, "properties/knowledge/items/properties/tags/maxProperties", "2");
    expect(j, "properties/providers/additionalProperties/properties/url/type/0", "\"string\"");
    expect(j, "properties/providers/additionalProperties/patternProperties/^x-", "{}");
    expect(j, "properties/providers/maxProperties", "2");
    assert_non_null(at(j, "properties/schedule/not"));
    expect(j, "patternProperties/^x-/description", "\"Yours.\"");
    // Old and foreign keys, at the level where they stand.
    expect(j, "properties/instructions/deprecated", "true");
    expect(j, "properties/instructions/description", "\"write `prompt`\"");
    assert_non_null(at(j, "properties/disallowedTools/not"));
    assert_non_null(at(j, "properties/approval.confirm/not"));
    assert_non_null(at(j, "properties/mcp/properties/server/not"));
    expect(j, "properties/mcp/properties/mode/doNotSuggest", "true");
    assert_null(at(j, "properties/server"));
    assert_null(at(j, "properties/mcp/properties/disallowedTools"));
    assert_null(at(j, "properties/x-*"));
    str text = buf_str(&b);
    assert_true(str_starts(text, S("{\n  \"$schema\": \"https://")));
    assert_true(str_ends(text, S("\n}\n")));
    assert_true(str_find(text, S("\n  \"properties\": {\n    \"name\": {\n      \"description\"")) !=
                SIZE_MAX);
    assert_true(str_find(text, S("The \\\"body\\\".")) != SIZE_MAX);
    arena_free(a);
}

static void test_yaml_keytab__the_reference_has_a_table_for_each_level(void **state) {
    (void)state;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    keytab_reference(&b, &table);
    str s = buf_str(&b);
    static const char *const parts[] = {
        "## Sample definition\n\n| Key | Form | Default | Where | Meaning |\n",
        "| `name` (required) | text, 1–8 characters |  | both | Who it is \\| what. |\n",
        "| `maxTurns` | whole number, 1–100 | `60` | both; a workspace may only lower it |  |\n",
        "| `memory` | `none`, `private`, `shared` | `none` | both |  |\n",
        "| `schedule` | reserved |  | both | Not yet. When it runs. |\n",
        "### `mcp.servers`\n\n| Key |",
        "| `url` (required) | text |  | system file |  |\n",
        "| `skills` | list or text, ≤ 3 entries |",
        "| `share` | number, from 1, ≤ 2 |",
        "| `calls` | whole number, 1–9, or `unlimited` |",
    };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (str_find(s, str_z(parts[i])) == SIZE_MAX) printf("absent: %s\n" STR_FMT, parts[i], STR_ARG(s));
        assert_true(str_find(s, str_z(parts[i])) != SIZE_MAX);
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_keytab__a_good_document_has_no_faults),
        cmocka_unit_test(test_yaml_keytab__wrong_types_and_values_are_errors),
        cmocka_unit_test(test_yaml_keytab__unknown_keys_are_warned_about_and_restrictions_are_errors),
        cmocka_unit_test(test_yaml_keytab__a_document_without_mapping_is_left_alone),
        cmocka_unit_test(test_yaml_keytab__many_faults_are_counted_and_stay_cheap),
        cmocka_unit_test(test_yaml_keytab__string_lists_split_outside_of_parentheses),
        cmocka_unit_test(test_yaml_keytab__strings_are_not_split),
        cmocka_unit_test(test_yaml_keytab__names_and_rows_are_found),
        cmocka_unit_test(test_yaml_keytab__the_schema_says_what_the_table_says),
        cmocka_unit_test(test_yaml_keytab__the_reference_has_a_table_for_each_level),
    };
    return cmocka_run_group_tests_name("yaml_keytab", tests, NULL, NULL);
}

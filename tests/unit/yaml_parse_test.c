// Parsing: what is accepted and as what, every fault with its code and place, limits at n and n + 1, exact
// byte places, reading nodes, and memory that runs out.
#include "support/support.h"
#include <deputy/utf8.h>
#include <deputy/yaml.h>
#include <stdio.h>
#include <stdlib.h>

static ydoc *parse_all(arena *a, str text, size_t max, bool map, diags *d) {
    ydoc *doc = NULL;
    *d = diags_new(a);
    assert_int_equal(yaml_parse(a, S("t.yaml"), text, max, map, &doc, d, NULL), DEP_OK);
    assert_non_null(doc);
    return doc;
}

static ydoc *parse(arena *a, const char *text) {
    diags d;
    ydoc *doc = parse_all(a, str_z(text), 0, false, &d);
    if (d.errors) printf("%s: " STR_FMT "\n", text, STR_ARG(d.items.p[0].msg));
    assert_int_equal(d.errors, 0);
    return doc;
}

// --- Accepted ---------------------------------------------------------------------------------------------

static void test_yaml_parse__scalars_keep_their_characters(void **state) {
    (void)state;
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"a: no\nb: on\nc: 1:30\nd: 1.10\ne: 2026-06-03\nf: 007\ng: 1e3\nh: 12:30:45\ni: 0x3C\nj: .inf\nk: "
         "Yes\n",
         "{\"a\":\"no\",\"b\":\"on\",\"c\":\"1:30\",\"d\":\"1.10\",\"e\":\"2026-06-03\",\"f\":\"007\",\"g\":"
         "\"1e3\","
         "\"h\":\"12:30:45\",\"i\":\"0x3C\",\"j\":\".inf\",\"k\":\"Yes\"}"},
        {"a: ~\nb: null\nc:\nd: 'null'\ne: true\nf: 'true'\ng: -60\nh: '60'\ni: False\n",
         "{\"a\":null,\"b\":null,\"c\":null,\"d\":\"null\",\"e\":true,\"f\":\"true\",\"g\":-60,\"h\":\"60\","
         "\"i\":false}"},
        {"a: |\n  x\n\n   y\nb: >-\n  one\n  two\nc: \"\\u00e9\\n\"\nd: 'it''s'\n",
         "{\"a\":\"x\\n\\n y\\n\",\"b\":\"one two\",\"c\":\"é\\n\",\"d\":\"it's\"}"},
        {"a: [x, {y: z}]\nb: {c: [], d: {}}\n- bad", NULL},
        {"\xEF\xBB\xBF"
         "a: 1\r\nb: |\r\n  x\r\n  y",
         "{\"a\":1,\"b\":\"x\\ny\\n\"}"},
        {"%YAML 1.1\n---\na: 1\n...\n", "{\"a\":1}"},
        {"%YAML 1.2 # version\n--- # start\na: 1\n", "{\"a\":1}"},
        {"a: &x [1, 2]\nb: *x\nc: {d: *x}\n", "{\"a\":[1,2],\"b\":[1,2],\"c\":{\"d\":[1,2]}}"},
        {"\"<<\": 1\n'a b': 2\n? c\n: d\n", "{\"<<\":1,\"a b\":2,\"c\":\"d\"}"},
        {"a: |\n  text", "{\"a\":\"text\\n\"}"}, // as with its line end
        {"a: C# and a#b # c\n", "{\"a\":\"C# and a#b\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        diags d;
        ydoc *doc = parse_all(a, str_z(cases[i].text), 0, true, &d);
        buf b = buf_new(a, 0);
        if (doc->root && !d.errors) yaml_to_json(&b, doc->root);
        str want = cases[i].json ? str_z(cases[i].json) : (str){0};
        if (!str_eq(buf_str(&b), want)) printf("%s\n" STR_FMT "\n", cases[i].text, STR_ARG(buf_str(&b)));
        assert_true(str_eq(buf_str(&b), want));
        arena_free(a);
    }
}

// libyaml breaks lines at NEL, LS and PS, YAML 1.2 does not: inside quotes they are text.
static void test_yaml_parse__other_line_breaks_inside_quotes_are_text(void **state) {
    (void)state;
    arena *a = arena_new();
    ydoc *doc = parse(a, "a: \"x\u0085y\u2028z\u2029 w\" # c\nb: 'p\u0085\U000F0000'\nc: d\n");
    assert_true(str_eq(yaml_get(doc->root, S("a"))->text, S("x\u0085y\u2028z\u2029 w")));
    assert_true(str_eq(yaml_get(doc->root, S("b"))->text, S("p\u0085\U000F0000")));
    ynode *c = yaml_get(doc->root, S("c"));
    assert_true(str_eq(str_sub(doc->source, c->start, c->end), S("d")));
    uint32_t line, column;
    yaml_place(doc, c->start, &line, &column);
    assert_int_equal(line, 3);
    assert_int_equal(column, 4);
    arena_free(a);
}

// --- Faults -----------------------------------------------------------------------------------------------

typedef struct {
    const char *text;
    size_t n;         // bytes of text, when it holds NUL
    const char *want; // "code:line:column", several with a blank; "" for none
    const char *hint; // part of the first one's hint, or NULL
    bool tree;        // a tree is left
} fault_case;

static bool one_fault(const fault_case *c) {
    arena *a = arena_new();
    diags d;
    ydoc *doc = parse_all(a, c->n ? str_n(c->text, c->n) : str_z(c->text), 0, true, &d);
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < d.items.n; i++)
        buf_addf(&b, "%s%s:%u:%u", i ? " " : "", d.items.p[i].code, d.items.p[i].line, d.items.p[i].column);
    bool ok = str_eq(buf_str(&b), str_z(c->want)) && (doc->root != NULL) == c->tree;
    if (c->hint && d.items.n) ok = ok && str_find(d.items.p[0].hint, str_z(c->hint)) != SIZE_MAX;
    for (size_t i = 0; i < d.items.n; i++)
        ok = ok && d.items.p[i].severity == SEV_ERROR && d.items.p[i].msg.n;
    if (!ok) {
        buf p = buf_new(a, 0);
        if (d.items.n) diags_print(&p, &d, false);
        printf("%s\n-> " STR_FMT " tree %d\nwanted %s %s\n" STR_FMT, c->text, STR_ARG(buf_str(&b)),
               doc->root != NULL, c->want, c->hint ? c->hint : "", STR_ARG(buf_str(&p)));
    }
    arena_free(a);
    return ok;
}

static void run_faults(const fault_case *cases, size_t n) {
    size_t bad = 0;
    for (size_t i = 0; i < n; i++) bad += !one_fault(&cases[i]);
    assert_int_equal(bad, 0);
}
#define RUN(cases) run_faults(cases, sizeof(cases) / sizeof *(cases))

static void test_yaml_parse__every_fault_has_its_code_and_place(void **state) {
    (void)state;
    static const fault_case cases[] = {
        // Duplicate keys, at every level and in every style
        {"tools: [read]\nb: 1\ntools: [read, bash]\n", 0, "YAML002:3:1", NULL, true},
        {"a:\n  - {x: 1, y: 2, 'x': 3}\n", 0, "YAML002:2:18", NULL, true},
        {"a: 1\n\"a\": 2\na: 3\n", 0, "YAML002:2:1 YAML002:3:1", NULL, true},
        {"a: 1\nA: 2\n", 0, "", NULL, true},
        // Tags
        {"a: !!str 1\n", 0, "YAML003:1:4", "remove it", true},
        {"a: !x 1\nb: &c !y\n", 0, "YAML003:1:4 YAML003:2:7", "a: \"!x 1\"", true},
        {"!!map\na: 1\n", 0, "YAML003:1:1", NULL, true},
        {"a: !e!x 1\n", 0, "YAML003:1:4", NULL, false},
        {"%TAG !e! x\n---\na: 1\n", 0, "YAML003:1:1", NULL, true},
        // Aliases
        {"a: *b\n", 0, "YAML004:1:4", "a: \"*b\"", true},
        {"a: &b [*b]\n", 0, "YAML004:1:8", "write the value out", true},
        {"a: &b {c: *b}\n", 0, "YAML004:1:11", NULL, true},
        {"b: *a\na: &a 1\n", 0, "YAML004:1:4", NULL, true},
        {"a: &an:chor x\n", 0, "YAML001:1:4", NULL, true},
        // Documents
        {"a: 1\n---\nb: 2\n", 0, "YAML007:2:1", NULL, true},
        {"a: 1\n...\nb: 2\n", 0, "YAML007:3:1", NULL, false},
        {"---\n---\na: 1\n", 0, "YAML012:0:0 YAML007:2:1", NULL, false},
        {"- a\n", 0, "YAML008:1:1", NULL, true},
        {"text\n", 0, "YAML008:1:1", NULL, true},
        {"", 0, "YAML012:0:0", NULL, false},
        {"# only\n\n", 0, "YAML012:0:0", NULL, false},
        {"---\n", 0, "YAML012:0:0", NULL, false},
        {"\xEF\xBB\xBF", 0, "YAML012:0:0", NULL, false},
        {"%YAML 1.3\n---\na: 1\n", 0, "YAML001:1:1", "YAML 1.2", true},
        {"%YAML 1.2\n%YAML 1.2\n---\na: 1\n", 0, "YAML001:2:1", NULL, true},
        {"%FOO\n---\na: 1\n", 0, "YAML001:1:1", NULL, true},
        {"%YAML 1.2\na: 1\n", 0, "YAML001:2:1", NULL, false},
        // Characters
        {"a: x\u0085\nb: \"\u2028\"\nc: \u2029\n", 0, "YAML009:1:5 YAML009:3:4", NULL, true},
        {"# \u2028 comment\na: |\n  x\u0085y\n", 0, "YAML009:1:3 YAML009:3:4", NULL, true},
        {"a: \x01\nb: \"\x7f\"\n", 0, "YAML010:1:4 YAML010:2:5", "\\x01", true},
        {"a: b\0c\n", 7, "YAML010:1:5", NULL, true},
        {"a: \"b\\0c\"\n", 0, "YAML010:1:4", NULL, true},
        {"a: \xEF\xBF\xBF\n", 0, "YAML010:1:4", "\\uffff", true},
        {"a: b\rc: d\n", 0, "YAML010:1:5", "CRLF", true},
        {"a: caf\xE9\n", 0, "YAML011:1:7", "UTF-8", false},
        {"é: 1\nb: \xC0\xAF\n", 0, "YAML011:2:4", NULL, false},
        {"\xFF\xFE"
         "a\0:\0",
         6, "YAML011:1:1", NULL, false},
        {"a\0:\0 \0b\0", 8, "YAML011:1:1", NULL, false},
        {"\xEF\xBB\xBF\xEF\xBB\xBF"
         "a: 1\nb: 2\n",
         0, "YAML016:1:1", NULL, true},
        {"a: 1\n\xEF\xBB\xBF"
         "b: 2\n",
         0, "YAML016:2:1 YAML001:2:2", NULL, false},
        {"a: x\xEF\xBB\xBFy\n", 0, "", NULL, true},
        // Keys
        {"? [a]\n: b\n", 0, "YAML013:1:3", NULL, true},
        {"{[a]: b, {c: d}: e}\n", 0, "YAML013:1:2 YAML013:1:10", NULL, true},
        {"a: &x y\n*x : z\n", 0, "YAML013:2:1", NULL, true},
        {"a: {b: 1}\n<<: {c: 1}\n", 0, "YAML014:2:1", NULL, true},
        {"a: &x {b: 1}\nc:\n  <<: *x\n", 0, "YAML014:3:3", NULL, true},
        {"{\"\": a, '': b}\n", 0, "YAML002:1:9", NULL, true},
        {"{ ?foo: bar }\n", 0, "YAML001:1:3", "quotes", true},
        // Tabs
        {"a:\n\tb: 1\n", 0, "YAML015:2:1", "blanks", false},
        {"a: |\n\tb\n", 0, "YAML015:2:1", NULL, false},
        {"a: b\tc\t# d\n", 0, "", NULL, true},
        {"a: [\n\tb]\n", 0, "", NULL, true},
    };
    RUN(cases);
}

static void test_yaml_parse__syntax_errors_come_with_the_corrected_line(void **state) {
    (void)state;
    static const fault_case cases[] = {
        {"name: x\ndescription: Use when reading tables: heights, times\n", 0, "YAML001:2:37",
         "description: \"Use when reading tables: heights, times\"", false},
        {"d: say \"hi\": now\n", 0, "YAML001:1:12", "d: 'say \"hi\": now'", false},
        {"d: it's \"a\": now\n", 0, "YAML001:1:12", "d: \"it's \\\"a\\\": now\"", false},
        {"d: C:\\x: y # why\n", 0, "YAML001:1:8", "d: 'C:\\x: y' # why", false},
        {"d: fix: #12\n", 0, "YAML001:1:7", "d: \"fix: #12\"", false},
        {"globs: **/*.md\n", 0, "YAML001:1:8", "globs: \"**/*.md\"", false},
        {"globs:\n  - *.md\n", 0, "YAML001:2:5", "  - \"*.md\"", false},
        {"title: [draft] do it\n", 0, "YAML001:1:16", "title: \"[draft] do it\"", false},
        {"title: {x} y\n", 0, "YAML001:1:12", "title: \"{x} y\"", false},
        {"title: @foo\n", 0, "YAML001:1:8", "title: \"@foo\"", false},
        {"title: `foo`\n", 0, "YAML001:1:8", "title: \"`foo`\"", false},
        {"title: %foo\n", 0, "YAML001:1:8", "title: \"%foo\"", false},
        {"title: & foo\n", 0, "YAML001:1:8", "title: \"& foo\"", false},
        {"title: *foo bar\n", 0, "YAML004:1:8 YAML001:1:13", "title: \"*foo bar\"", false},
        {"title: 'it's'\n", 0, "YAML001:1:12", "title: \"'it's'\"", false},
        {"a: \"C:\\x\"\n", 0, "YAML001:1:9", "a: '\"C:\\x\"'", false},
        // No correction where quotes cure nothing
        {"a: 1\nb:\n    c: 1\n  d: 2\n", 0, "YAML001:4:3", "indentation", false},
        {"tools: [a, b\nname: x\n", 0, "YAML001:2:5", "close the list", false},
        {"a: \"open\nb: 1\n", 0, "YAML001:1:4", "close it", false},
        {"a: 1\n b: 2\n", 0, "YAML001:2:3", NULL, false},
        {"a: 1\nb\nc: 2\n", 0, "YAML001:2:1", "key: value", false},
        // All faults before it come with it
        {"a: 1\na: 2\nb: !x y\nc: d: e\n", 0, "YAML003:3:4 YAML001:4:5", NULL, false},
        {"a: x\u2028y\nb: 'p\u2028' q\n", 0, "YAML009:1:5 YAML001:2:9", NULL, false},
        {"a: x\u2028y\nb: c: d\ne: \"\u2028\"\n", 0, "YAML009:1:5 YAML001:2:5", NULL, false},
    };
    RUN(cases);
}

static void test_yaml_parse__a_doubled_key_names_both_lines(void **state) {
    (void)state;
    arena *a = arena_new();
    diags d;
    ydoc *doc = parse_all(a, S("tools: [read]\n# c\ntools: [read, bash]\n"), 0, true, &d);
    assert_int_equal(d.errors, 1);
    assert_true(str_eq(d.items.p[0].msg, S("key \"tools\" stands on line 1 and again on line 3")));
    assert_true(str_eq(d.items.p[0].path, S("/tools")));
    assert_true(str_eq(d.items.p[0].source, S("tools: [read, bash]")));
    assert_int_equal(d.items.p[0].end, 6);
    assert_true(str_eq(yaml_get(doc->root, S("tools"))->child->text, S("read")));
    arena_free(a);
}

// --- Limits -----------------------------------------------------------------------------------------------

static const char *first_code(str text, size_t max) {
    arena *a = arena_new();
    diags d;
    ydoc *doc = parse_all(a, text, max, false, &d);
    const char *code = d.items.n ? d.items.p[0].code : "";
    assert_true(d.items.n || doc->root);
    arena_free(a);
    return code;
}

static str repeated(arena *a, const char *head, const char *part, size_t n, const char *tail) {
    buf b = buf_new(a, 0);
    buf_addf(&b, "%s", head);
    for (size_t i = 0; i < n; i++) buf_add(&b, str_z(part));
    buf_addf(&b, "%s", tail);
    return buf_str(&b);
}

static void test_yaml_parse__limits_hold_at_n_and_not_at_n_plus_1(void **state) {
    (void)state;
    arena *a = arena_new();
    assert_string_equal(first_code(repeated(a, "a: ", "x", YAML_SIZE_MAX - 3, ""), 0), "");
    assert_string_equal(first_code(repeated(a, "a: ", "x", YAML_SIZE_MAX - 2, ""), 0), "YAML006");
    assert_string_equal(first_code(S("a: b"), 4), "");
    assert_string_equal(first_code(S("a: bc"), 4), "YAML006");
    assert_string_equal(
        first_code(repeated(a, repeated(a, "", "[", YAML_DEPTH_MAX, "").p, "]", YAML_DEPTH_MAX, ""), 0), "");
    assert_string_equal(
        first_code(repeated(a, repeated(a, "", "[", YAML_DEPTH_MAX + 1, "").p, "]", YAML_DEPTH_MAX + 1, ""),
                   0),
        "YAML005");
    assert_string_equal(first_code(repeated(a, "", "- ", YAML_DEPTH_MAX, "x"), 0), "");
    assert_string_equal(first_code(repeated(a, "", "- ", YAML_DEPTH_MAX + 1, "x"), 0), "YAML005");
    assert_string_equal(first_code(repeated(a, "a: &a x\nb:\n", "- *a\n", YAML_ALIAS_MAX, ""), 0), "");
    assert_string_equal(first_code(repeated(a, "a: &a x\nb:\n", "- *a\n", YAML_ALIAS_MAX + 1, ""), 0),
                        "YAML004");
    // The root is a node too.
    assert_string_equal(first_code(repeated(a, "", "- x\n", YAML_NODE_MAX - 1, ""), 0), "");
    assert_string_equal(first_code(repeated(a, "", "- x\n", YAML_NODE_MAX, ""), 0), "YAML006");
    arena_free(a);
}

static void test_yaml_parse__copies_through_aliases_count(void **state) {
    (void)state;
    arena *a = arena_new();
    // root, list, 2 + 9,998 nodes; the copy has 9,999 more: 20,000 in all, and one too many.
    str big = repeated(a, "- &x\n", "  - y\n", 9998, "- *x\n");
    assert_string_equal(first_code(big, 0), "");
    big = repeated(a, "- &x\n", "  - y\n", 9999, "- *x\n");
    assert_string_equal(first_code(big, 0), "YAML006");
    // Ten to the power of eight, if it were copied.
    buf b = buf_new(a, 0);
    buf_add(&b, S("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"));
    for (int i = 1; i < 8; i++) buf_addf(&b, "a%d: &a%d [*a%d, *a%d]\n", i, i, i - 1, i - 1);
    assert_string_equal(first_code(buf_str(&b), 0), "");
    buf_clear(&b);
    buf_add(&b, S("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"));
    for (int i = 1; i < 5; i++) buf_addf(&b, "a%d: &a%d [*a%d,*a%d,*a%d]\n", i, i, i - 1, i - 1, i - 1);
    buf_addf(&b, "b: &b [%s", repeated(a, "", "x,", 8000, "x]\nc: [*b, *b]\n").p);
    assert_string_equal(first_code(buf_str(&b), 0), "YAML006");
    // Depth counts through copies as well.
    str deep = str_fmt(a, "a: &a %sx%s\nb: [*a]\n", repeated(a, "", "[", YAML_DEPTH_MAX - 2, "").p,
                       repeated(a, "", "]", YAML_DEPTH_MAX - 2, "").p);
    assert_string_equal(first_code(deep, 0), "");
    deep = str_fmt(a, "a: &a %sx%s\nb: [*a]\n", repeated(a, "", "[", YAML_DEPTH_MAX - 1, "").p,
                   repeated(a, "", "]", YAML_DEPTH_MAX - 1, "").p);
    assert_string_equal(first_code(deep, 0), "YAML005");
    arena_free(a);
}

// Shapes on which libyaml or a careless caller needs quadratic time; each must simply come back.
static void test_yaml_parse__hostile_shapes_come_back(void **state) {
    (void)state;
    static const char *const parts[] = {"[",        "{",
                                        "- ",       "? ",
                                        "{? ",      "a: b,",
                                        "[a],",     "\n",
                                        " ",        "\n c\n",
                                        " c",       "#",
                                        ":",        ": ",
                                        "\u0085",   "\"",
                                        "'",        "& ",
                                        "! ",       "!!",
                                        "---\n",    "%\n",
                                        "a\r",      "%TAG !a! b\n",
                                        "k: 1\n",   "&a x,",
                                        "*a,",      "\xEF\xBB\xBF\n",
                                        "\x01",     "<<: \n",
                                        "- !a b\n", "- !!a b\n",
                                        "- *b\n",   "- a: 1\n  a: 2\n",
                                        "? a\n",    "- &a\n"};
    static const char *const heads[] = {"", "a: ", "a: \"b", "a: |\n", "a: &a x\nb: [", "a: 1\n...\n"};
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        for (size_t k = 0; k < sizeof heads / sizeof *heads; k++) {
            str text = repeated(a, heads[k], parts[i], (YAML_SIZE_MAX - 16) / strlen(parts[i]), "");
            arena *own = arena_new();
            diags d;
            parse_all(own, text, 0, true, &d);
            assert_true(d.items.n <= DIAG_MAX);
            assert_true(arena_used(own) < (size_t)64 << 20);
            arena_free(own);
        }
        arena_reset(a);
    }
    arena_free(a);
}

// --- Places -----------------------------------------------------------------------------------------------

static str source_of(const ydoc *doc, const ynode *n) {
    return str_sub(doc->source, n->start, n->end);
}

static void test_yaml_parse__nodes_know_their_exact_bytes(void **state) {
    (void)state;
    static const struct {
        const char *text, *path, *want;
    } cases[] = {
        {"é: \"ü\" # c\nß: y\n", "ß", "y"},
        {"é: \"ü\" # c\n", "é", "\"ü\""},
        {"a: 'x' \n", "a", "'x'"},
        {"a: one\n  two # c\n", "a", "one\n  two"},
        {"a: |\n  x\n\n  y\n\n\nb: 1\n", "a", "|\n  x\n\n  y\n"},
        {"a: |+\n  x\n\n\nb: 1\n", "a", "|+\n  x\n\n\n"},
        {"a: |- # c\n  x\n # d\nb: 1\n", "a", "|- # c\n  x\n"},
        {"a: >\r\n  x\r\n\r\nb: 1\r\n", "a", ">\r\n  x\r\n"},
        {"a: |2\n    x\n   \nb: 1\n", "a", "|2\n    x\n   \n"},
        {"a: |\n  x\n   \nb: 1\n", "a", "|\n  x\n   \n"},
        {"a: |\n  x\n  \nb: 1\n", "a", "|\n  x\n"},
        {"a: |\nb: 1\n", "a", "|\n"},
        {"a: |\n  x", "a", "|\n  x"},
        {"k:\n  - a: |1\n      x\n    \n  - b\n", "k.0.a", "|1\n      x\n"},
        {"a: [x, y ] # c\n", "a", "[x, y ]"},
        {"a: {b: c\n  }\n", "a", "{b: c\n  }"},
        {"a:\n  - b\n  - c # d\n# e\nf: 1\n", "a", "- b\n  - c"},
        {"a:\n- b\n-\nf: 1\n", "a", "- b\n-"},
        {"a:\n  b: 1\n  c:\n\nd: 1\n", "a", "b: 1\n  c:"},
        {"a: &x\n  # c\n  b: 1\nd: 1\n", "a", "b: 1"},
        {"a: &x [1]\nb: *x # c\n", "b", "*x"},
        {"a: &x\nb: 1\n", "a", ""},
        {"a: [b: c, d]\n", "a.0", "b: c"},
        {"a: {b, c: }\n", "a.b", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        ydoc *doc = parse(a, cases[i].text);
        ynode *n = NULL;
        assert_int_equal(yaml_find(doc, str_z(cases[i].path), &n, NULL), DEP_OK);
        if (!str_eq(source_of(doc, n), str_z(cases[i].want)))
            printf("%s %s: [" STR_FMT "]\n", cases[i].text, cases[i].path, STR_ARG(source_of(doc, n)));
        assert_true(str_eq(source_of(doc, n), str_z(cases[i].want)));
        arena_free(a);
    }
}

static void test_yaml_parse__empty_values_stand_behind_their_mark(void **state) {
    (void)state;
    arena *a = arena_new();
    ydoc *doc = parse(a, "a:   # c\n\nb: {c:  , d}\ne:\n-   # f\n- g\n? h\n? i\n");
    static const struct {
        const char *path;
        size_t at;
    } cases[] = {{"a", 2}, {"b.c", 16}, {"b.d", 21}, {"e.0", 27}, {"h", 41}, {"i", 45}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ynode *n = NULL;
        assert_int_equal(yaml_find(doc, str_z(cases[i].path), &n, NULL), DEP_OK);
        assert_int_equal(n->start, cases[i].at);
        assert_int_equal(n->end, cases[i].at);
    }
    arena_free(a);
}

static void test_yaml_parse__lines_and_columns_count_code_points(void **state) {
    (void)state;
    arena *a = arena_new();
    ydoc *doc = parse(a, "\xEF\xBB\xBF"
                         "名: x\r\n\"\u2028𝄞\": y\n\nz: 1");
    uint32_t line, column;
    yaml_place(doc, 3, &line, &column);
    assert_int_equal(line * 100 + column, 101);
    yaml_place(doc, yaml_get(doc->root, S("名"))->start, &line, &column);
    assert_int_equal(line * 100 + column, 104);
    yaml_place(doc, yaml_get(doc->root, S("\u2028𝄞"))->start, &line, &column);
    assert_int_equal(line * 100 + column, 207);
    yaml_place(doc, SIZE_MAX, &line, &column);
    assert_int_equal(line * 100 + column, 405);
    assert_true(str_eq(yaml_line(doc, 1), S("名: x")));
    assert_true(str_eq(yaml_line(doc, 3), S("")));
    assert_true(str_eq(yaml_line(doc, 4), S("z: 1")));
    assert_true(str_empty(yaml_line(doc, 0)) && str_empty(yaml_line(doc, 5)));
    arena_free(a);
}

static void test_yaml_parse__diagnostics_point_at_nodes_and_keys(void **state) {
    (void)state;
    arena *a = arena_new();
    ydoc *doc = parse(a, "a:\n  - b/c~: [x,\n      y]\n");
    ynode *n = NULL;
    assert_int_equal(yaml_find(doc, S("a.0.b/c~"), &n, NULL), DEP_OK);
    diags d = diags_new(a);
    diag base = {.severity = SEV_WARNING, .code = "X1", .msg = S("m")};
    yaml_diag(doc, n, &d, base);
    yaml_diag_key(doc, n, &d, base);
    yaml_diag(doc, NULL, &d, base);
    yaml_diag_key(doc, yaml_at(n, 1), &d, base);
    const diag *x = d.items.p;
    assert_true(str_eq(x[0].path, S("/a/0/b~1c~0")) && x[0].line == 2 && x[0].column == 11 && x[0].end == 14);
    assert_true(x[1].column == 5 && x[1].end == 9 && str_eq(x[1].source, S("  - b/c~: [x,")));
    assert_true(x[2].line == 0 && str_eq(x[2].file, S("t.yaml")) && x[2].path.n == 0);
    assert_true(x[3].line == 3 && str_eq(x[3].path, S("/a/0/b~1c~0/1")));
    assert_true(str_empty(yaml_pointer(a, doc->root)));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_parse__scalars_keep_their_characters),
        cmocka_unit_test(test_yaml_parse__other_line_breaks_inside_quotes_are_text),
        cmocka_unit_test(test_yaml_parse__every_fault_has_its_code_and_place),
        cmocka_unit_test(test_yaml_parse__syntax_errors_come_with_the_corrected_line),
        cmocka_unit_test(test_yaml_parse__a_doubled_key_names_both_lines),
        cmocka_unit_test(test_yaml_parse__limits_hold_at_n_and_not_at_n_plus_1),
        cmocka_unit_test(test_yaml_parse__copies_through_aliases_count),
        cmocka_unit_test(test_yaml_parse__hostile_shapes_come_back),
        cmocka_unit_test(test_yaml_parse__nodes_know_their_exact_bytes),
        cmocka_unit_test(test_yaml_parse__empty_values_stand_behind_their_mark),
        cmocka_unit_test(test_yaml_parse__lines_and_columns_count_code_points),
        cmocka_unit_test(test_yaml_parse__diagnostics_point_at_nodes_and_keys),
    };
    return cmocka_run_group_tests_name("yaml_parse", tests, NULL, NULL);
}

// Reading nodes, paths, strings written and read back, and memory that runs out.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/json.h>
#include <deputy/yaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static ydoc *parse(arena *a, const char *text) {
    diags d = diags_new(a);
    ydoc *doc = NULL;
    assert_int_equal(yaml_parse(a, S("t.yaml"), str_z(text), 0, false, &doc, &d, NULL), DEP_OK);
    if (d.errors) printf("%s: " STR_FMT "\n", text, STR_ARG(d.items.p[0].msg));
    assert_int_equal(d.errors, 0);
    return doc;
}

// --- Nodes ------------------------------------------------------------------------------------------------

static void test_yaml_node__integers_are_decimal_and_nothing_else(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool ok;
        int64_t want;
    } cases[] = {
        {"60", true, 60},
        {"'60'", true, 60},
        {"\"60\"", true, 60},
        {"-1", true, -1},
        {"0", true, 0},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"-9223372036854775808", true, INT64_MIN},
        {"-9223372036854775809", false, 0},
        {"99999999999999999999", false, 0},
        {"60.5", false, 0},
        {"0x3C", false, 0},
        {"1e2", false, 0},
        {"007", false, 0},
        {"+5", false, 0},
        {"1_000", false, 0},
        {"-0", false, 0},
        {"'-'", false, 0},
        {"''", false, 0},
        {"~", false, 0},
        {"' 5'", false, 0},
        {"|\n  5", false, 0},
        {"[5]", false, 0},
        {"５", false, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        ydoc *doc = parse(a, str_fmt(a, "k: %s\n", cases[i].text).p);
        int64_t v = 77;
        bool ok = yaml_int(yaml_get(doc->root, S("k")), &v);
        if (ok != cases[i].ok) printf("%s\n", cases[i].text);
        assert_int_equal(ok, cases[i].ok);
        assert_true(v == (cases[i].ok ? cases[i].want : 77));
        arena_free(a);
    }
}

static void test_yaml_node__nulls_and_booleans_are_plain(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool null;
        int boolean; // -1: none
    } cases[] = {
        {"~", true, -1},    {"null", true, -1},      {"Null", true, -1},  {"NULL", true, -1},
        {"", true, -1},     {"'null'", false, -1},   {"nULL", false, -1}, {"true", false, 1},
        {"True", false, 1}, {"TRUE", false, 1},      {"false", false, 0}, {"FALSE", false, 0},
        {"yes", false, -1}, {"\"true\"", false, -1}, {"[]", false, -1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        ydoc *doc = parse(a, str_fmt(a, "k: %s\n", cases[i].text).p);
        const ynode *n = yaml_get(doc->root, S("k"));
        bool b = false;
        assert_int_equal(yaml_is_null(n), cases[i].null);
        assert_int_equal(yaml_bool(n, &b) ? b : -1, cases[i].boolean);
        arena_free(a);
    }
    assert_false(yaml_is_null(NULL));
}

static void test_yaml_node__equality_ignores_the_order_of_keys(void **state) {
    (void)state;
    static const struct {
        const char *x, *y;
        bool equal;
    } cases[] = {
        {"{a: 1, b: [x, y]}", "b:\n- x\n- y\na: '1'\n", true},
        {"[a, b]", "[b, a]", false},
        {"{a: ~}", "{a: null}", true},
        {"{a: ~}", "{a: '~'}", false},
        {"{a: 1}", "{a: 1, b: 2}", false},
        {"[a]", "{a: }", false},
        {"a", "\"a\"", true},
        {"{a: {b: 1}}", "{a: {b: 2}}", false},
        {"{a: 1, b: 1}", "{a: 1, c: 1}", false},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const ynode *x = parse(a, cases[i].x)->root, *y = parse(a, cases[i].y)->root;
        assert_int_equal(yaml_equal(x, y), cases[i].equal);
        assert_int_equal(yaml_equal(y, x), cases[i].equal);
    }
    assert_true(yaml_equal(NULL, NULL));
    arena_free(a);
}

static void test_yaml_node__paths_find_nodes_or_say_what_is_missing(void **state) {
    (void)state;
    arena *a = arena_new();
    ydoc *doc =
        parse(a, "mcp:\n  servers:\n    - {name: x}\n    - {name: y}\n\"a.b\": {c: 1}\n7: z\n'q\"': r\n");
    static const struct {
        const char *path, *want; // value, or:
        dep_status status;
        const char *part; // of the message
    } cases[] = {
        {"mcp.servers.1.name", "y", 0, NULL},
        {"mcp.servers[0].name", "x", 0, NULL},
        {"\"a.b\".c", "1", 0, NULL},
        {"7", "z", 0, NULL},
        {"\"7\"", "z", 0, NULL},
        {"\"q\\\"\"", "r", 0, NULL},
        {"mcp.nothing", NULL, DEP_ERR_NOT_FOUND, "no `nothing` in `mcp`, which is a mapping"},
        {"mcp.servers.2", NULL, DEP_ERR_NOT_FOUND, "a list"},
        {"7.a", NULL, DEP_ERR_NOT_FOUND, "a single value"},
        {"nothing", NULL, DEP_ERR_NOT_FOUND, "no `nothing`"},
        {"", NULL, DEP_ERR_INVALID, "empty"},
        {"mcp.", NULL, DEP_ERR_INVALID, "character"},
        {".mcp", NULL, DEP_ERR_INVALID, "character 1"},
        {"mcp..x", NULL, DEP_ERR_INVALID, "character 5"},
        {"mcp[x]", NULL, DEP_ERR_INVALID, NULL},
        {"mcp[0", NULL, DEP_ERR_INVALID, NULL},
        {"mcp[0]x", NULL, DEP_ERR_INVALID, NULL},
        {"\"mcp", NULL, DEP_ERR_INVALID, NULL},
        {"mcp[99999999999999999999]", NULL, DEP_ERR_INVALID, NULL},
        {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a", NULL, DEP_ERR_LIMIT,
         "32 parts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ynode *n = NULL;
        dep_err err = {0};
        dep_status status = yaml_find(doc, str_z(cases[i].path), &n, &err);
        if (status != cases[i].status || (cases[i].part && !strstr(err.msg, cases[i].part)))
            printf("%s: %s %s\n", cases[i].path, err_name(status), err.msg);
        assert_int_equal(status, cases[i].status);
        if (cases[i].want) assert_true(str_eq(n->text, str_z(cases[i].want)));
        if (cases[i].part) assert_non_null(strstr(err.msg, cases[i].part));
    }
    arena_free(a);
}

// --- Scalars written --------------------------------------------------------------------------------------

static const char *const strings[] = {
    "",         "a",           "a b",    " a",     "a ",       "a: b",
    "a:",       ":a",          "- a",    "-",      "-a",       "--- a",
    "...",      "#a",          "a #b",   "a#b",    "*a",       "&a",
    "!a",       "|",           ">",      "'",      "\"",       "it's",
    "\"q\"",    "'\"\\",       "@a",     "`a`",    "%a",       "? a",
    "?a",       "[a",          "a]",     "{",      "a, b",     "null",
    "~",        "<<",          "true",   "no",     "1",        "1.10",
    "a\tb",     "\ta",         "a\nb",   "a\nb\n", "\na",      "\n",
    "a\n\n",    "  a\nb",      "a\n  b", "a \nb",  "a\r\nb",   "\u0085",
    "a\u2028b", "\uFEFF",      "\x1b",   "\x7f",   "é 键 𝄞",   "http://x/?a=b",
    "a:b",      "Bash(git:*)", "a:'b",   "a\\b",   "a\n\t\nb", "x\n# y",
    "---\na",   " \n a",       "a\n ",   "\uFFFE",
};

static void test_yaml_node__strings_written_read_back_equal(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++) {
        arena *a = arena_new();
        str s = str_z(strings[i]), plain = yaml_scalar_text(a, s, false), flow = yaml_scalar_text(a, s, true);
        ydoc *doc =
            parse(a, str_fmt(a, STR_FMT ": " STR_FMT " # c\nz: [" STR_FMT ", {" STR_FMT ": " STR_FMT "}]\n",
                             STR_ARG(plain), STR_ARG(plain), STR_ARG(flow), STR_ARG(flow), STR_ARG(flow))
                         .p);
        const ynode *first = doc->root->child, *z = first->next->child;
        assert_true(str_eq(first->text, s) && str_eq(first->key->text, s) && !yaml_is_null(first));
        assert_true(str_eq(z->text, s) && str_eq(z->next->child->text, s) &&
                    str_eq(z->next->child->key->text, s));
        assert_int_equal(str_chr(plain, '\n'), SIZE_MAX);
        static const str ends[] = {S_INIT("\n"), S_INIT("\r\n")};
        for (size_t k = 0; k < 2; k++) {
            buf b = buf_new(a, 0);
            buf_addf(&b, "k:\n  l: ");
            yaml_block_text(&b, s, 4, ends[k]);
            buf_addf(&b, "m: 1\n");
            doc = parse(a, buf_str(&b).p);
            ynode *n = NULL;
            assert_int_equal(yaml_find(doc, S("k.l"), &n, NULL), DEP_OK);
            assert_true(str_eq(n->text, s));
            assert_int_equal(doc->root->count, 2);
        }
        arena_free(a);
    }
}

static void test_yaml_node__strings_are_written_as_a_person_would(void **state) {
    (void)state;
    static const struct {
        const char *s, *block, *flow;
    } cases[] = {
        {"read", "read", "read"},
        {"no", "no", "no"},
        {"60", "60", "60"},
        {"a, b", "a, b", "'a, b'"},
        {"null", "'null'", "'null'"},
        {"it's", "it's", "it's"},
        {"a: b", "'a: b'", "'a: b'"},
        {"it's: b", "\"it's: b\"", "\"it's: b\""},
        {"", "''", "''"},
        {"a\nb", "\"a\\nb\"", "\"a\\nb\""},
        {"Bash(git:*)", "Bash(git:*)", "Bash(git:*)"},
        {"\x1b[", "\"\\e[\"", "\"\\e[\""},
        {"\u2028", "\"\\u2028\"", "\"\\u2028\""},
        {"<<", "'<<'", "'<<'"},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_true(str_eq(yaml_scalar_text(a, str_z(cases[i].s), false), str_z(cases[i].block)));
        assert_true(str_eq(yaml_scalar_text(a, str_z(cases[i].s), true), str_z(cases[i].flow)));
    }
    buf b = buf_new(a, 0);
    yaml_block_text(&b, S("You are.\n\n  Indented.\n"), 2, S("\n"));
    yaml_block_text(&b, S(" lead"), 2, S("\n"));
    yaml_block_text(&b, S("a\n\n"), 3, S("\r\n"));
    assert_true(str_eq(buf_str(&b), S("|\n  You are.\n\n    Indented.\n' lead'\n|+\r\n   a\r\n\r\n")));
    arena_free(a);
}

// --- Shared texts -----------------------------------------------------------------------------------------

static bool read_shared(arena *a, const char *name, str *ret) {
    const char *shared = getenv("DEPUTY_SHARED");
    str path = str_fmt(a, "%s/realdata/text/%s", shared && *shared ? shared : "../shared", name);
    if (access(path.p, R_OK) == 0 && file_read(a, path, 1 << 20, ret, NULL) == DEP_OK) return true;
    printf("skipped: no " STR_FMT "\n", STR_ARG(path));
    return false;
}

static void test_yaml_node__words_that_others_retype_stay_text(void **state) {
    (void)state;
    arena *a = arena_new();
    str text;
    if (!read_shared(a, "made/norway.yml", &text)) {
        arena_free(a);
        skip();
    }
    ydoc *doc = parse(a, text.p);
    int64_t turns = 0;
    assert_true(str_eq(yaml_get(doc->root, S("name"))->text, S("no")));
    assert_true(str_eq(yaml_get(doc->root, S("description"))->text, S("yes")));
    assert_true(str_eq(yaml_get(doc->root, S("memory"))->text, S("No")));
    assert_true(str_eq(yaml_get(doc->root, S("prompt"))->text, S("12")));
    assert_true(yaml_int(yaml_get(doc->root, S("maxTurns")), &turns) && turns == 60);
    static const char *const tools[] = {"on", "off", "null", "~", "1.10", "0o17", "2026-11-30", "1_000"};
    for (size_t i = 0; i < 8; i++)
        assert_true(str_eq(yaml_at(yaml_get(doc->root, S("tools")), i)->text, str_z(tools[i])));
    arena_free(a);
}

static void test_yaml_node__naughty_strings_survive_every_way_of_writing(void **state) {
    (void)state;
    arena *a = arena_new();
    str all, line;
    if (!read_shared(a, "blns/blns.txt", &all)) {
        arena_free(a);
        skip();
    }
    ydoc *doc = parse(a, "name: x # c\nlist: [a]\nprompt: |\n  old\nlast: 1\n");
    static const char *const paths[] = {"name", "list.0", "prompt", "new.key"};
    size_t n = 0;
    while (all.n) {
        arena *own = arena_new();
        str_cut(all, '\n', &line, &all);
        str two = str_fmt(own, STR_FMT "\n" STR_FMT "\n", STR_ARG(line), STR_ARG(line));
        for (size_t i = 0; i < 8; i++) {
            str s = i < 4 ? line : two, out = {0};
            buf value = buf_new(own, 0);
            json_quote(&value, s);
            dep_err err = {0};
            if (yaml_edit(own, doc, YAML_EDIT_SET, str_z(paths[i % 4]), buf_str(&value), NULL, &out, &err) !=
                DEP_OK) {
                printf("[" STR_FMT "] %s\n", STR_ARG(s), err.msg);
                fail();
            }
            ynode *node = NULL;
            assert_int_equal(yaml_find(parse(own, out.p), str_z(paths[i % 4]), &node, NULL), DEP_OK);
            assert_true(str_eq(node->text, s));
            n++;
        }
        arena_free(own);
    }
    printf("%zu edits\n", n);
    arena_free(a);
}

// --- Memory that runs out ---------------------------------------------------------------------------------

typedef struct {
    size_t left, live;
} budget;

static void *scarce_alloc(void *ctx, size_t n) {
    budget *b = ctx;
    if (b->left == 0) return NULL;
    b->left--;
    b->live++;
    return malloc(n);
}

static void scarce_free(void *ctx, void *p) {
    budget *b = ctx;
    b->live--;
    free(p);
}

static const char good[] = "# é\na: &x [1, {b: c}]\nd: *x\ne: |\n  text\nf: \"q\u0085\"\n";
static const char bad[] = "a: 1\na: !t 2\nb: *no\n? [x]\n: \x01\nc: \u2028\nd: e: f\n";

// Parses and edits with room for n allocations; returns the status.
static dep_status with_budget(size_t n, const char *text, bool edit) {
    budget left = {.left = n};
    arena_source src = {scarce_alloc, scarce_free, &left, NULL};
    arena *a = arena_new_from(&src, true);
    if (!a) return DEP_ERR_NOMEM;
    diags d = diags_new(a);
    ydoc *doc = NULL;
    str out = {0};
    dep_err err = {0};
    dep_status status = yaml_parse(a, S("t.yaml"), str_z(text), 0, true, &doc, &d, &err);
    assert_true((status == DEP_OK) == (doc != NULL));
    if (status == DEP_OK && edit) {
        status = yaml_edit(a, doc, YAML_EDIT_SET, S("g.h"), S("[1, \"a\\nb\"]"), NULL, &out, &err);
        assert_true((status == DEP_OK) == (out.p != NULL));
    }
    assert_true(status == DEP_OK || (status == DEP_ERR_NOMEM && err.status == DEP_ERR_NOMEM));
    arena_free(a);
    assert_int_equal(left.live, 0);
    return status;
}

static void test_yaml_node__each_failing_allocation_is_reported_and_leaks_nothing(void **state) {
    (void)state;
    for (int edit = 0; edit < 2; edit++) {
        size_t n = 0;
        while (with_budget(n, good, edit) != DEP_OK) n++;
        printf("%zu allocations\n", n);
        assert_true(n > 20);
    }
    size_t n = 0;
    while (with_budget(n, bad, false) != DEP_OK) n++;
    assert_true(n > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_node__integers_are_decimal_and_nothing_else),
        cmocka_unit_test(test_yaml_node__nulls_and_booleans_are_plain),
        cmocka_unit_test(test_yaml_node__equality_ignores_the_order_of_keys),
        cmocka_unit_test(test_yaml_node__paths_find_nodes_or_say_what_is_missing),
        cmocka_unit_test(test_yaml_node__strings_written_read_back_equal),
        cmocka_unit_test(test_yaml_node__strings_are_written_as_a_person_would),
        cmocka_unit_test(test_yaml_node__words_that_others_retype_stay_text),
        cmocka_unit_test(test_yaml_node__naughty_strings_survive_every_way_of_writing),
        cmocka_unit_test(test_yaml_node__each_failing_allocation_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests_name("yaml_node", tests, NULL, NULL);
}

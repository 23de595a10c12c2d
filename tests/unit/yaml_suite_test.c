// The public YAML test suite: no crash, no hang, and verdicts no worse than libyaml's. Where Deputy refuses
// what libyaml takes, one of our own codes says why, and their numbers are written down here.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/yaml.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool open_suite(int *dir) {
    char path[4096];
    const char *shared = getenv("DEPUTY_SHARED");
    snprintf(path, sizeof path, "%s/realdata/yaml-suite", shared && *shared ? shared : "../shared");
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        return false;
    }
    return dir_open(str_z(path), dir, NULL) == DEP_OK;
}

static bool read_below(arena *a, int dir, str name, str *ret) {
    return file_read_at(a, dir, name, FILE_NO_LINKS, 1 << 20, ret, NULL, NULL) == DEP_OK;
}

// --- Events -----------------------------------------------------------------------------------------------

static void add_text(buf *b, str s) {
    for (size_t i = 0; i < s.n; i++) {
        switch (s.p[i]) {
        case '\n': buf_add(b, S("\\n")); break;
        case '\t': buf_add(b, S("\\t")); break;
        case '\r': buf_add(b, S("\\r")); break;
        case '\b': buf_add(b, S("\\b")); break;
        case '\\': buf_add(b, S("\\\\")); break;
        default: buf_addc(b, s.p[i]);
        }
    }
}

static void add_events(buf *b, const ynode *n) {
    if (n->alias) {
        buf_add(b, S("=ALI\n"));
    } else if (n->kind == YAML_NODE_SCALAR) {
        buf_addf(b, "=VAL %c", ":'\"|>"[n->style]);
        add_text(b, n->text);
        buf_addc(b, '\n');
    } else {
        const char *name = n->kind == YAML_NODE_MAP ? "MAP" : "SEQ";
        buf_addf(b, "+%s\n", name);
        for (const ynode *c = n->child; c; c = c->next) {
            if (c->key) add_events(b, c->key);
            add_events(b, c);
        }
        buf_addf(b, "-%s\n", name);
    }
}

// The suite's events without what our nodes do not hold: stream, document, anchors, flow marks.
static str reduced(arena *a, str events) {
    buf b = buf_new(a, 0);
    str line;
    while (events.n) {
        str_cut(events, '\n', &line, &events);
        if (str_starts(line, S("=ALI"))) {
            buf_add(&b, S("=ALI\n"));
        } else if (str_starts(line, S("=VAL "))) {
            str rest = str_sub(line, 5, line.n), word = {0};
            if (str_starts(rest, S("&"))) str_cut(rest, ' ', &word, &rest);
            buf_add(&b, S("=VAL "));
            buf_add(&b, rest);
            buf_addc(&b, '\n');
        } else if (line.n >= 4 &&
                   (str_eq(str_sub(line, 1, 4), S("MAP")) || str_eq(str_sub(line, 1, 4), S("SEQ")))) {
            buf_add(&b, str_sub(line, 0, 4));
            buf_addc(&b, '\n');
        }
    }
    return buf_str(&b);
}

// --- Verdicts ---------------------------------------------------------------------------------------------

typedef struct {
    const char *code;
    size_t expected, found;
} refusal;

// What libyaml takes and Deputy refuses, by the first code of each document.
static refusal refusals[] = {
    {"YAML001", 3, 0}, // `?x` in a flow mapping and `&an:chor`: libyaml would read another text than YAML 1.2
    {"YAML002", 0, 0},  {"YAML003", 37, 0}, // tags
    {"YAML004", 0, 0},  {"YAML007", 10, 0}, // several documents
    {"YAML009", 0, 0},  {"YAML010", 0, 0},
    {"YAML012", 11, 0}, // nothing but comments, or an empty first document
    {"YAML013", 16, 0}, // keys that are lists, mappings or aliases
    {"YAML014", 0, 0},  {"YAML016", 0, 0},
};

static bool count_refusal(const char *code) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        if (strcmp(refusals[i].code, code) != 0) continue;
        refusals[i].found++;
        return true;
    }
    return false;
}

typedef struct {
    size_t cases, accepted, wrong, trees;
} tally;

static void one_case(int dir, str id, bool must_fail, bool libyaml_ok, tally *t) {
    arena *a = arena_new();
    str text, events;
    assert_true(read_below(a, dir, str_fmt(a, "data/" STR_FMT "/in.yaml", STR_ARG(id)), &text));
    diags d = diags_new(a);
    ydoc *doc = NULL;
    assert_int_equal(yaml_parse(a, id, text, 0, false, &doc, &d, NULL), DEP_OK);
    t->cases++;
    bool ok = d.errors == 0;
    t->accepted += ok;
    if (must_fail && ok && !libyaml_ok) {
        printf(STR_FMT ": must fail, libyaml refuses it, and it is accepted\n", STR_ARG(id));
        t->wrong++;
    }
    if (!ok && libyaml_ok && !count_refusal(d.items.p[0].code)) {
        printf(STR_FMT ": refused with %s: " STR_FMT "\n", STR_ARG(id), d.items.p[0].code,
               STR_ARG(d.items.p[0].msg));
        t->wrong++;
    }
    if (ok && !must_fail &&
        read_below(a, dir, str_fmt(a, "data/" STR_FMT "/test.event", STR_ARG(id)), &events)) {
        buf b = buf_new(a, 0);
        add_events(&b, doc->root);
        str want = reduced(a, events);
        t->trees++;
        if (!str_eq(buf_str(&b), want)) {
            printf(STR_FMT ": another tree:\n" STR_FMT "wanted:\n" STR_FMT, STR_ARG(id), STR_ARG(buf_str(&b)),
                   STR_ARG(want));
            t->wrong++;
        }
    }
    arena_free(a);
}

static void test_yaml_suite__verdicts_are_no_worse_than_libyamls(void **state) {
    (void)state;
    int dir;
    if (!open_suite(&dir)) skip();
    arena *a = arena_new();
    str rows, row;
    assert_true(read_below(a, dir, S("PARSERS.tsv"), &rows));
    tally t = {0};
    str_cut(rows, '\n', &row, &rows);
    while (rows.n) {
        str id, must, lib, rest;
        str_cut(rows, '\n', &row, &rows);
        str_cut(row, '\t', &id, &rest);
        str_cut(rest, '\t', &must, &rest);
        str_cut(rest, '\t', &lib, &rest);
        if (id.n) one_case(dir, id, str_eq(must, S("1")), str_eq(lib, S("ok")), &t);
    }
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        printf("%s refuses %zu documents that libyaml takes\n", refusals[i].code, refusals[i].found);
    printf("%zu cases, %zu accepted, %zu trees compared\n", t.cases, t.accepted, t.trees);
    assert_int_equal(t.wrong, 0);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        assert_int_equal(refusals[i].found, refusals[i].expected);
    assert_true(t.cases >= 400);
    arena_free(a);
    close(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_suite__verdicts_are_no_worse_than_libyamls),
    };
    return cmocka_run_group_tests_name("yaml_suite", tests, NULL, NULL);
}

// A property of edits in place, over hand-made documents in several spellings and over real definitions:
// every byte outside of the touched value's lines stays, the wanted value is read back and every other node
// is as it was, or nothing is written and a reason is given. The oracle here shares no code with the edit: it
// knows lines and paths.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/yaml.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const documents[] = {
    "# head\nname: x # the name\ndescription: \"Handles: a\"\ntools: [read, grep]\nmcp:\n  servers:\n    - "
    "crm # main\n    "
    "- {name: gh, include: [a]}\n  search: auto\nprompt: |\n  You are.\n\n  Second.\n# tail\n",
    "knowledge:\n- name: Manual # m\n  path: ./docs/**/*.md\n# between\n- name: b\n  path:\n  - x\n  - y\nq: "
    "1\n",
    "a: &x\n  b: 2\nc: *x\nd: &y [1, 2]\ne:\n  - *y\n  - &z 3\nf: g\n",
    "? a\n: b # c\n? d\n? e\n: - f\n  - g\n",
    "{a: 1, b: [x, {y: z}], c: , d, \"e\": 'f'} # root\n",
    "a: [\n  x, # one\n  y,\n\n  # before z\n  z # three\n]\nb: {\n  k: v,\n  l: w\n  }\n",
    "- a\n- b: c\n  d: e\n-\n- - f\n  - g\n- |\n  h\n\n- 'i'\n",
    "a: >-\n  one\n  two\n\nb: |+\n  kept\n\n\nc: |2\n    lead\n  x\nd: \"two\n  lines\"\ne: plain\n  lines "
    "# end\nf:\n  "
    "below\n",
    "a:\n     b:\n      c: 1\n   # odd\n      d: 2\ne:\n\n\n# far\nf: ~\n",
    "%YAML 1.2\n--- # start\na: 1\nb:\n- 2\n... # end\n# after\n",
    "键: 值 # 注\n二:\n  - \"三 # no comment\"\n  - 四\n𝄞: é\n",
    "tools: Read, Bash(git:*, x), Grep\nmore: Read Write\none: read\n\"quoted key\": 1\n'it''s': 2\na.b: 3\n",
    "a: |\n  text\n # less\nb: |\n\n  text\n\n# c\n\n\nc: d",
    "deep:\n  - x:\n      - y:\n          - z: 1\n            w: 2 # w\n          - v\n    u: |\n      t\n",
};

static const char *const values[] = {
    "x",
    "60",
    "'60'",
    "true",
    "~",
    "\"a: b # c\"",
    "''",
    "'é 键'",
    "\"two\\nlines\\n\"",
    "\"  lead\\nb\"",
    "[a, \"b c\", 3]",
    "{k: v, l: [1, {m: n}]}",
    "[]",
    "{}",
    "\"kept\\n\\n\"",
    "\"\\x1b\\t\"",
    "\"- x\"",
    "[\"a\\nb\", {c: \"d\\n\"}]",
};
enum { N_VALUES = sizeof values / sizeof *values };

typedef struct {
    size_t edits, done, refused, bad;
} tally;

typedef struct {
    arena *a;
    const ydoc *doc;
    size_t errors;
    yaml_edit_kind kind;
    str path, value;
    const ynode *node; // at the path, or NULL
    str out;
    const ydoc *got;
} trial;

// --- Nodes as lines of text -------------------------------------------------------------------------------

static void list_nodes(arena *a, const ydoc *doc, const ynode *n, str without, strs *out) {
    str at = yaml_pointer(a, n);
    // Tested with a slash, so that /a leaves out /a/b and not /ab.
    if (without.p && (str_eq(at, without) || str_starts(at, str_fmt(a, STR_FMT "/", STR_ARG(without)))))
        return;
    bool scalar = n->kind == YAML_NODE_SCALAR, written = scalar && !n->alias;
    str source = written || n->alias ? str_sub(doc->source, n->outer, n->end) : (str){0};
    for (const ynode *up = n; up; up = up->parent)
        if (up->alias) source = (str){0}; // stands elsewhere
    while (source.n && strchr("\r\n", source.p[source.n - 1])) source.n--;
    vec_push(a, out,
             str_fmt(a, STR_FMT "|%d|%d|%d|" STR_FMT "|" STR_FMT, STR_ARG(at), n->kind, n->style, n->alias,
                     STR_ARG(n->text), STR_ARG(source)));
    if (n->alias) return;
    for (const ynode *c = n->child; c; c = c->next) list_nodes(a, doc, c, without, out);
}

static bool same_nodes(const trial *t, str without) {
    strs x = {0}, y = {0};
    list_nodes(t->a, t->doc, t->doc->root, without, &x);
    list_nodes(t->a, t->got, t->got->root, without, &y);
    if (x.n != y.n) return false;
    qsort(x.p, x.n, sizeof *x.p, str_cmp_qsort);
    qsort(y.p, y.n, sizeof *y.p, str_cmp_qsort);
    for (size_t i = 0; i < x.n; i++)
        if (!str_eq(x.p[i], y.p[i])) return false;
    return true;
}

// --- Lines ------------------------------------------------------------------------------------------------

static size_t line_start(str s, size_t at) {
    while (at > 0 && s.p[at - 1] != '\n') at--;
    return at;
}

static size_t line_after(str s, size_t at) {
    if (at > 0 && s.p[at - 1] == '\n' && (at == s.n || at > 0)) {
        // behind a block scalar: it ends with its last line
        size_t start = line_start(s, at);
        if (start == at) return at;
    }
    while (at < s.n && s.p[at] != '\n') at++;
    return at < s.n ? at + 1 : s.n;
}

static bool changed_only(str old, str new, size_t lo, size_t hi) {
    return new.n >= lo + (old.n - hi) && str_starts(new, str_sub(old, 0, lo)) &&
           str_ends(new, str_sub(old, hi, old.n));
}

static size_t common_prefix(str x, str y) {
    size_t n = 0;
    while (n < x.n && n < y.n && x.p[n] == y.p[n]) n++;
    return n;
}

static size_t common_suffix(str x, str y) {
    size_t n = 0;
    while (n < x.n && n < y.n && x.p[x.n - 1 - n] == y.p[y.n - 1 - n]) n++;
    return n;
}

static bool only_inserted(str old, str new) {
    return common_prefix(old, new) + common_suffix(old, new) >= old.n;
}

static bool lines_of(const trial *t, const ynode *n) {
    str old = t->doc->source;
    size_t lo = line_start(old, n->key ? n->key->outer : n->outer), hi = line_after(old, n->end);
    // The first key behind a dash: the next one takes its place, up to its indentation.
    if (t->kind == YAML_EDIT_UNSET && n->next && n->parent->child == n && n->parent->style == YSTYLE_BLOCK)
        hi = n->next->key ? n->next->key->outer : hi;
    if (t->kind == YAML_EDIT_UNSET) // blank lines may go along
        while (hi < old.n && line_after(old, hi + 1) > hi &&
               str_trim(str_sub(old, hi, line_after(old, hi + 1))).n == 0)
            hi = line_after(old, hi + 1);
    return changed_only(old, t->out, lo, hi);
}

// --- What must hold ---------------------------------------------------------------------------------------

static const ynode *parse_value(arena *a, str text) {
    diags d = diags_new(a);
    ydoc *doc;
    assert_int_equal(yaml_parse(a, S("value"), text, 0, false, &doc, &d, NULL), DEP_OK);
    return doc->root;
}

// The deepest node on the way that is there before and after.
static const ynode *deepest(const trial *t, str *rest) {
    str head = t->path, tail = {0};
    ynode *n;
    while (head.n) {
        if (yaml_find(t->doc, head, &n, NULL) == DEP_OK) {
            *rest = tail;
            return n;
        }
        size_t dot = str_rchr(head, '.');
        tail = str_sub(t->path, dot == SIZE_MAX ? 0 : dot + 1, t->path.n);
        head = str_sub(head, 0, dot == SIZE_MAX ? 0 : dot);
    }
    *rest = t->path;
    return t->doc->root;
}

static bool right_set(const trial *t) {
    ynode *n;
    if (yaml_find(t->got, t->path, &n, NULL) != DEP_OK) return false;
    if (!yaml_equal(n, parse_value(t->a, t->value))) return false;
    if (t->node) return same_nodes(t, yaml_pointer(t->a, t->node)) && lines_of(t, t->node);
    str rest, key;
    const ynode *up = deepest(t, &rest);
    size_t dot = str_chr(rest, '.');
    key = str_sub(rest, 0, dot);
    if (str_starts(key, S("\""))) key = str_sub(key, 1, key.n - 1);
    if (up->kind == YAML_NODE_SCALAR) return same_nodes(t, yaml_pointer(t->a, up)) && lines_of(t, up);
    str without = str_fmt(t->a, STR_FMT "/" STR_FMT, STR_ARG(yaml_pointer(t->a, up)), STR_ARG(key));
    if (!same_nodes(t, without)) return false;
    return up->style == YSTYLE_FLOW ? !up->parent || lines_of(t, up) : only_inserted(t->doc->source, t->out);
}

static bool right_unset(const trial *t) {
    const ynode *n = t->node;
    while (n->parent && n->parent->kind == YAML_NODE_MAP && n->parent->count == 1) n = n->parent;
    ynode *still;
    bool item = n->parent->kind == YAML_NODE_LIST;
    if (!item) {
        if (yaml_find(t->got, t->path, &still, NULL) == DEP_OK) return false;
        return same_nodes(t, yaml_pointer(t->a, n)) &&
               (n->parent->style == YSTYLE_FLOW ? !n->parent->parent || lines_of(t, n->parent)
                                                : lines_of(t, n));
    }
    str list = yaml_pointer(t->a, n->parent);
    if (!same_nodes(t, list.n ? list : S("\n")))
        return list.n == 0 && t->got->root->count + 1 == n->parent->count;
    return !n->parent->parent || lines_of(t, n->parent);
}

static bool right_list(const trial *t) {
    ynode *n;
    if (yaml_find(t->got, t->path, &n, NULL) != DEP_OK) return false;
    str at = yaml_pointer(t->a, t->node);
    return same_nodes(t, at) && lines_of(t, t->node);
}

static bool holds(trial *t) {
    size_t errors = 0;
    diags d = diags_new(t->a);
    ydoc *got;
    if (yaml_parse(t->a, S("new"), t->out, 1 << 20, false, &got, &d, NULL) != DEP_OK || !got->root)
        return false;
    errors = d.errors;
    t->got = got;
    if (errors > t->errors) return false;
    switch (t->kind) {
    case YAML_EDIT_SET: return right_set(t);
    case YAML_EDIT_UNSET: return right_unset(t);
    default: return right_list(t);
    }
}

static void one_trial(const ydoc *doc, size_t errors, yaml_edit_kind kind, str path, str value, tally *n) {
    arena *a = arena_new();
    trial t = {.a = a, .doc = doc, .errors = errors, .kind = kind, .path = path, .value = value};
    ynode *node;
    if (yaml_find(doc, path, &node, NULL) == DEP_OK) t.node = node;
    dep_err err = {0};
    dep_status status = yaml_edit(a, doc, kind, path, value, NULL, &t.out, &err);
    n->edits++;
    bool ok;
    if (status == DEP_OK) {
        n->done++;
        ok = holds(&t);
    } else {
        n->refused++;
        ok = !t.out.p && err.msg[0] &&
             (status == DEP_ERR_REFUSED || status == DEP_ERR_INVALID || status == DEP_ERR_EXISTS ||
              status == DEP_ERR_NOT_FOUND);
    }
    if (!ok && ++n->bad <= 5)
        printf("kind %d path " STR_FMT " value " STR_FMT ": %s %s\n--- old\n" STR_FMT "\n--- new\n" STR_FMT
               "\n---\n",
               kind, STR_ARG(path), STR_ARG(value), err_name(status), err.msg, STR_ARG(doc->source),
               STR_ARG(t.out));
    arena_free(a);
}

// --- All edits of a document ------------------------------------------------------------------------------

static str path_of(arena *a, const ynode *n) {
    if (!n->parent) return (str){0};
    str up = path_of(a, n->parent), part;
    if (n->key) {
        str k = n->key->text;
        bool quote = k.n == 0 || str_chr(k, '.') != SIZE_MAX || str_chr(k, '[') != SIZE_MAX ||
                     str_chr(k, '"') != SIZE_MAX || str_chr(k, ' ') != SIZE_MAX;
        if (str_chr(k, '"') != SIZE_MAX || str_chr(k, '\\') != SIZE_MAX) return S("\"");
        part = quote ? str_fmt(a, "\"" STR_FMT "\"", STR_ARG(k)) : k;
    } else {
        size_t i = 0;
        for (const ynode *c = n->parent->child; c != n; c = c->next) i++;
        part = str_fmt(a, "%zu", i);
    }
    return up.n ? str_fmt(a, STR_FMT "." STR_FMT, STR_ARG(up), STR_ARG(part)) : part;
}

static void list_paths(arena *a, const ynode *n, strs *out) {
    if (n->parent) vec_push(a, out, path_of(a, n));
    for (const ynode *c = n->child; c; c = c->next) list_paths(a, c, out);
}

// every: 1 all edits; larger: about one of so many, chosen by a hash, so that a run is the same each time.
static void edit_everything(str text, unsigned every, tally *n) {
    arena *a = arena_new();
    diags d = diags_new(a);
    ydoc *doc;
    assert_int_equal(yaml_parse(a, S("t.yaml"), text, 0, false, &doc, &d, NULL), DEP_OK);
    strs paths = {0};
    if (doc->root) list_paths(a, doc->root, &paths);
    vec_push(a, &paths, S("brand.new"));
    uint64_t seed = str_hash(text);
    for (size_t i = 0; doc->root && i < paths.n; i++) {
        str p = paths.p[i], below = str_fmt(a, STR_FMT ".newkey", STR_ARG(p));
        ynode *node;
        bool there = yaml_find(doc, p, &node, NULL) == DEP_OK;
        for (size_t v = 0; v < N_VALUES; v++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            if (every > 1 && (seed >> 33) % every) continue;
            one_trial(doc, d.errors, YAML_EDIT_SET, p, str_z(values[v]), n);
            if (there) one_trial(doc, d.errors, YAML_EDIT_SET, below, str_z(values[v]), n);
            if (there) one_trial(doc, d.errors, YAML_EDIT_ADD, p, str_z(values[v]), n);
        }
        if (there) one_trial(doc, d.errors, YAML_EDIT_UNSET, p, (str){0}, n);
        if (there && node->kind == YAML_NODE_LIST && node->child && node->child->kind == YAML_NODE_SCALAR &&
            !node->child->alias)
            one_trial(doc, d.errors, YAML_EDIT_REMOVE, p,
                      str_fmt(a, "\"" STR_FMT "\"", STR_ARG(yaml_scalar_text(a, node->child->text, false))),
                      n);
    }
    arena_free(a);
}

static str with_crlf(arena *a, str s) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\n') buf_addc(&b, '\r');
        buf_addc(&b, s.p[i]);
    }
    return buf_str(&b);
}

static void report(const tally *n) {
    printf("%zu edits, %zu written, %zu refused\n", n->edits, n->done, n->refused);
    assert_int_equal(n->bad, 0);
}

static void test_yaml_property__edits_of_hand_made_documents_touch_one_value(void **state) {
    (void)state;
    tally n = {0};
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        arena *a = arena_new();
        str s = str_z(documents[i]), crlf = with_crlf(a, s);
        edit_everything(s, 1, &n);
        edit_everything(str_sub(s, 0, s.n - str_ends(s, S("\n"))), 3, &n); // no last line end
        edit_everything(crlf, 3, &n);
        edit_everything(str_sub(crlf, 0, crlf.n - 2 * (size_t)str_ends(crlf, S("\r\n"))), 5, &n);
        edit_everything(str_fmt(a, "\xEF\xBB\xBF" STR_FMT, STR_ARG(s)), 5, &n);
        arena_free(a);
    }
    report(&n);
}

// --- Real definitions -------------------------------------------------------------------------------------

// The YAML between the fences at the top of a Markdown file, or the whole of a YAML file.
static bool yaml_part(str name, str bytes, str *ret) {
    *ret = bytes;
    if (str_ends(name, S(".yaml")) || str_ends(name, S(".yml"))) return true;
    if (!str_ends(name, S(".md")) || !str_starts(bytes, S("---\n"))) return false;
    size_t end = str_find(str_sub(bytes, 3, bytes.n), S("\n---"));
    if (end == SIZE_MAX) return false;
    *ret = str_sub(bytes, 4, 3 + end + 1);
    return true;
}

static void walk(const char *dir, tally *n, size_t *files) {
    DIR *d = opendir(dir);
    assert_non_null(d);
    struct dirent *e;
    while ((e = readdir(d))) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (e->d_name[0] == '.' || lstat(path, &st) != 0) continue;
        if (S_ISDIR(st.st_mode)) {
            walk(path, n, files);
            continue;
        }
        arena *a = arena_new();
        str bytes, text;
        if (S_ISREG(st.st_mode) && file_read(a, str_z(path), 1 << 20, &bytes, NULL) == DEP_OK &&
            yaml_part(str_z(path), bytes, &text) && text.n < 65536) {
            ++*files;
            edit_everything(text, text.n < 4096 ? 24 : 200, n);
        }
        arena_free(a);
    }
    closedir(d);
}

static void test_yaml_property__edits_of_real_definitions_touch_one_value(void **state) {
    (void)state;
    char path[4096];
    const char *shared = getenv("DEPUTY_SHARED");
    snprintf(path, sizeof path, "%s/realdata/agents", shared && *shared ? shared : "../shared");
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        skip();
    }
    tally n = {0};
    size_t files = 0;
    walk(path, &n, &files);
    printf("%zu files\n", files);
    assert_true(files > 300);
    report(&n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_property__edits_of_hand_made_documents_touch_one_value),
        cmocka_unit_test(test_yaml_property__edits_of_real_definitions_touch_one_value),
    };
    return cmocka_run_group_tests_name("yaml_property", tests, NULL, NULL);
}

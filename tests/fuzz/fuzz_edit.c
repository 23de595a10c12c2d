// An edit of a document: first line kind (s u a r) and path, second line the value, the rest the document.
// What is given out must hold the wanted value, read without new errors, and leave every other top-level key
// as it was.
#include <deputy/utf8.h>
#include <deputy/yaml.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static const ydoc *parse(arena *a, str text, size_t *errors) {
    diags d = diags_new(a);
    ydoc *doc;
    if (yaml_parse(a, S("fuzz.yaml"), text, 1 << 20, false, &doc, &d, NULL) != DEP_OK) abort();
    *errors = d.errors;
    return doc;
}

static const ynode *root_value(arena *a, str text) {
    size_t errors;
    const ydoc *doc = parse(a, text, &errors);
    check(errors == 0);
    return doc->root;
}

// A string, written as a scalar or block, reads back equal.
static void check_scalars(arena *a, str s) {
    if (!utf8_valid(s) || memchr(s.p, 0, s.n)) return;
    for (int flow = 0; flow < 2; flow++) {
        str text = yaml_scalar_text(a, s, flow);
        text = str_fmt(a, flow ? "[%.*s, {%.*s: %.*s}]\n" : "%.*s: %.*s\n", STR_ARG(text), STR_ARG(text),
                       STR_ARG(text));
        if (text.n > 1000) continue; // keys have their limit
        const ynode *n = root_value(a, text);
        const ynode *v = flow ? n->child : n->child, *k = flow ? n->child->next->child : n->child;
        check(str_eq(v->text, s) && !yaml_is_null(v) && str_eq(k->text, s) && str_eq(k->key->text, s));
    }
    buf b = buf_new(a, 0);
    buf_add(&b, S("k:\n  l: "));
    yaml_block_text(&b, s, 4, S("\r\n"));
    buf_add(&b, S("m: 1\n"));
    const ynode *n = root_value(a, buf_str(&b));
    check(n->count == 2 && str_eq(n->child->child->text, s));
}

static str first_part(arena *a, const ydoc *doc, str path) {
    // The first key is all that may differ. Quoted ones are left to the edit's own proof.
    if (!doc->root || doc->root->kind != YAML_NODE_MAP || str_starts(path, S("\""))) return (str){0};
    size_t i = 0;
    while (i < path.n && path.p[i] != '.' && path.p[i] != '[') i++;
    return str_dup(a, str_sub(path, 0, i));
}

static void check_others(const ydoc *before, const ydoc *after, str key) {
    for (const ynode *c = before->root->child; c; c = c->next) {
        if (str_eq(c->key->text, key)) continue;
        const ynode *other = yaml_get(after->root, c->key->text);
        check(other != NULL);
        if (yaml_get(before->root, c->key->text) == c) check(yaml_equal(c, other));
    }
}

static void one_edit(arena *a, yaml_edit_kind kind, str path, str value, str text) {
    static const char *const order[] = {"name", "tools", "prompt", NULL};
    size_t errors, new_errors;
    const ydoc *doc = parse(a, text, &errors);
    str out = {0};
    dep_err err = {0};
    dep_status status = yaml_edit(a, doc, kind, path, value, order, &out, &err);
    if (status != DEP_OK) {
        check(!out.p && err.msg[0] && status != DEP_ERR_INTERNAL && status != DEP_ERR_NOMEM);
        return;
    }
    const ydoc *after = parse(a, out, &new_errors);
    check(after->root && new_errors <= errors);
    str key = first_part(a, doc, path);
    if (key.n) check_others(doc, after, key);
    ynode *n;
    if (kind == YAML_EDIT_SET) {
        check(yaml_find(after, path, &n, NULL) == DEP_OK);
        // JSON that is not YAML is a value too.
        const ydoc *want = parse(a, value, &errors);
        if (errors == 0) check(yaml_equal(n, want->root));
    }
    if (kind == YAML_EDIT_ADD) {
        check(yaml_find(after, path, &n, NULL) == DEP_OK);
        check(n->kind != YAML_NODE_MAP);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    str all = {(const char *)data, size}, head, value, text;
    str_cut(all, '\n', &head, &all);
    str_cut(all, '\n', &value, &text);
    if (!head.n || text.n > 16384 || value.n > 2048) return 0;
    const char *kinds = "suar", *kind = memchr(kinds, head.p[0], 4);
    arena *a = arena_new();
    if (value.n) check_scalars(a, value);
    if (kind) one_edit(a, (yaml_edit_kind)(kind - kinds), str_sub(head, 1, head.n), value, text);
    arena_free(a);
    return 0;
}

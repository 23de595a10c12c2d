// Any bytes as a document: no crash, no hang, and places that lie inside the text.
#include <deputy/utf8.h>
#include <deputy/yaml.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static void check_node(const ydoc *doc, const ynode *n) {
    check(n->outer <= n->start && n->start <= n->end && n->end <= doc->source.n);
    check(!n->key || (n->key->kind == YAML_NODE_SCALAR && n->key->end <= doc->source.n));
    size_t count = 0;
    for (const ynode *c = n->child; c; c = c->next, count++) {
        check(c->parent == n && (n->kind == YAML_NODE_MAP) == (c->key != NULL));
        if (!n->alias) check(c->end <= n->end || c->start == c->end);
        check_node(doc, c);
    }
    check(count == n->count);
    check(yaml_equal(n, n) || doc->root->kind == YAML_NODE_MAP);
    check(n->kind != YAML_NODE_SCALAR || utf8_valid(n->text));
}

// What stands in the source at a node's place is the node.
static void check_places(arena *a, const ydoc *doc, const ynode *n) {
    if (n->kind == YAML_NODE_SCALAR && n->style == YSTYLE_SINGLE && !n->alias) {
        check(doc->source.p[n->start] == '\'' && doc->source.p[n->end - 1] == '\'');
    } else if (n->kind == YAML_NODE_SCALAR && n->style == YSTYLE_DOUBLE && !n->alias) {
        check(doc->source.p[n->start] == '"' && doc->source.p[n->end - 1] == '"');
    } else if (n->style == YSTYLE_LITERAL && !n->alias) {
        check(doc->source.p[n->start] == '|');
    } else if (n->style == YSTYLE_FOLDED && !n->alias) {
        check(doc->source.p[n->start] == '>');
    }
    if (n->alias) {
        check(doc->source.p[n->start] == '*');
        return; // what is below stands elsewhere
    }
    for (const ynode *c = n->child; c; c = c->next) check_places(a, doc, c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *a = arena_new();
    diags d = diags_new(a);
    ydoc *doc;
    str text = {(const char *)data, size};
    if (yaml_parse(a, S("fuzz.yaml"), text, 0, false, &doc, &d, NULL) == DEP_OK) {
        check(doc->root || d.errors > 0);
        for (size_t i = 0; i < d.items.n; i++) {
            const diag *x = &d.items.p[i];
            check(x->msg.n && x->code && x->line <= doc->n_lines && utf8_valid(x->hint));
        }
        if (doc->root) {
            check_node(doc, doc->root);
            if (d.errors == 0) check_places(a, doc, doc->root);
            buf b = buf_new(a, 1 << 22);
            yaml_to_json(&b, doc->root);
        }
        if (d.items.n) {
            buf b = buf_new(a, 1 << 22);
            diags_print(&b, &d, true);
        }
    }
    arena_free(a);
    return 0;
}

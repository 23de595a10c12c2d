// edit_tree: the tree that an edited document must have, made from the old tree without looking at any text,
// and the comparison that decides whether an edit is given out.
#include "yaml/edit_int.h"

// --- Copies -----------------------------------------------------------------------------------------------

ynode *edit_clone(arena *a, const ynode *n, bool fresh) {
    xnode *x = NEW(a, xnode);
    *x = (xnode){.n = *n, .fresh = fresh};
    ynode **tail = &x->n.child;
    *tail = x->n.next = x->n.parent = NULL;
    for (const ynode *c = n->child; c; c = c->next) {
        *tail = edit_clone(a, c, fresh);
        (*tail)->parent = &x->n;
        tail = &(*tail)->next;
    }
    return &x->n;
}

static void mark_fresh(ynode *n) {
    ((xnode *)n)->fresh = true;
}

static bool is_fresh(const ynode *n) {
    return ((const xnode *)n)->fresh;
}

// --- Steps ------------------------------------------------------------------------------------------------

// The place of a node in its parent's list.
static ynode **slot_of(ynode *n) {
    ynode **p = &n->parent->child;
    while (*p != n) p = &(*p)->next;
    return p;
}

static void tree_replace(arena *a, ynode **root, ynode *n, const ynode *value) {
    ynode *fresh = edit_clone(a, value, true);
    fresh->parent = n->parent;
    fresh->next = n->next;
    fresh->key = n->key;
    if (n->parent) {
        *slot_of(n) = fresh;
    } else {
        *root = fresh;
    }
}

static void tree_append(arena *a, ynode *to, str key, const ynode *value) {
    ynode *fresh = edit_clone(a, value, true), **p = &to->child;
    while (*p) p = &(*p)->next;
    fresh->parent = to;
    fresh->next = fresh->key = NULL;
    if (to->kind == YAML_NODE_MAP) {
        fresh->key = NEW(a, ynode);
        *fresh->key = (ynode){.text = key, .style = YSTYLE_PLAIN, .parent = to};
    }
    *p = fresh;
    to->count++;
}

static void tree_remove(ynode **root, ynode *n) {
    ynode *from = n->parent;
    if (!from) {
        *root = NULL;
        return;
    }
    *slot_of(n) = n->next;
    if (--from->count > 0) return;
    if (from->kind == YAML_NODE_MAP) {
        tree_remove(root, from);
    } else {
        mark_fresh(from);
    }
}

dep_status edit_tree_step(arena *a, ynode **root, const edit_step *s, dep_err *err) {
    ynode *n, *value;
    size_t found;
    if (!*root) {
        TRY(edit_wrap(a, &s->path, 0, s->value, &value, err));
        *root = edit_clone(a, value, true);
        return DEP_OK;
    }
    TRY(edit_walk(a, *root, &s->path, &n, &found, err));
    if (s->unset) {
        tree_remove(root, n);
    } else if (found == s->path.n) {
        tree_replace(a, root, n, s->value);
    } else if (n->kind == YAML_NODE_SCALAR) {
        TRY(edit_wrap(a, &s->path, found, s->value, &value, err));
        tree_replace(a, root, n, value);
    } else {
        TRY(edit_wrap(a, &s->path, found + 1, s->value, &value, err));
        tree_append(a, n, s->path.p[found].key, value);
    }
    return DEP_OK;
}

// --- Comparison -------------------------------------------------------------------------------------------

static int type_of(const ynode *n) {
    int64_t i;
    bool b;
    if (n->style != YSTYLE_PLAIN) return 0;
    return yaml_is_null(n) ? 1 : yaml_bool(n, &b) ? 2 : yaml_int(n, &i) ? 3 : 0;
}

// The member with that key; in a map of one order it is `guess`.
static const ynode *member(const ynode *map, const ynode *guess, str key) {
    return guess && str_eq(guess->key->text, key) ? guess : yaml_get(map, key);
}

bool edit_same_value(const ynode *x, const ynode *y) {
    if (x->kind != y->kind || x->count != y->count) return false;
    if (x->kind == YAML_NODE_SCALAR)
        return type_of(x) == type_of(y) && (type_of(x) == 1 || str_eq(x->text, y->text));
    const ynode *guess = y->child;
    for (const ynode *c = x->child; c; c = c->next) {
        const ynode *other = x->kind == YAML_NODE_MAP ? member(y, guess, c->key->text) : guess;
        if (!other || !edit_same_value(c, other)) return false;
        guess = other->next;
    }
    return true;
}

static str alias_text(const ydoc *doc, const ynode *n) {
    return n->alias ? str_sub(doc->source, n->start, n->end) : (str){0};
}

// The same keys in the same order, but for fresh ones, which may stand anywhere. A doubled key has two
// values: the order tells them apart.
static const ynode *counterpart(const ynode *want, const ynode *got, const ynode **next) {
    if (got->kind == YAML_NODE_MAP && is_fresh(want)) return yaml_get(got, want->key->text);
    const ynode *c = *next;
    while (c && got->kind == YAML_NODE_MAP && !str_eq(c->key->text, want->key->text)) c = c->next;
    *next = c ? c->next : NULL;
    return c;
}

bool edit_same_tree(const ynode *want, const ydoc *want_doc, const ynode *got, const ydoc *got_doc) {
    if (!want || !got) return want == got;
    if (is_fresh(want)) return edit_same_value(want, got);
    if (want->kind != got->kind || want->style != got->style || want->count != got->count) return false;
    if (!str_eq(want->text, got->text) || !str_eq(want->anchor, got->anchor)) return false;
    if (want->alias != got->alias || !str_eq(alias_text(want_doc, want), alias_text(got_doc, got)))
        return false;
    const ynode *next = got->child;
    for (const ynode *c = want->child; c; c = c->next) {
        const ynode *other = counterpart(c, got, &next);
        if (!other || !edit_same_tree(c, want_doc, other, got_doc)) return false;
        if (c->key && !is_fresh(c) && c->key->style != other->key->style) return false;
    }
    return true;
}

// --- Anchors ----------------------------------------------------------------------------------------------

typedef VEC(const ynode *) nodes;

static void find_aliases(arena *a, const ynode *n, nodes *out) {
    if (n->alias) {
        vec_push(a, out, n);
        return;
    }
    for (const ynode *c = n->child; c; c = c->next) find_aliases(a, c, out);
}

static bool is_below(const ynode *n, const ynode *top) {
    for (; n; n = n->parent)
        if (n == top) return true;
    return false;
}

// An alias of that name outside of `top` (NULL: anywhere).
static const ynode *alias_of(const ydoc *doc, const nodes *aliases, str name, const ynode *top) {
    if (name.n == 0) return NULL;
    for (size_t i = 0; i < aliases->n; i++) {
        const ynode *y = aliases->p[i];
        str written = str_sub(doc->source, y->start + 1, y->end);
        if (str_eq(written, name) && !(top && is_below(y, top))) return y;
    }
    return NULL;
}

static const ynode *alias_into(const ydoc *doc, const nodes *aliases, const ynode *n, const ynode *top,
                               str *name) {
    if (n->alias) return NULL;
    const ynode *y = alias_of(doc, aliases, n->anchor, top);
    if (y) *name = n->anchor;
    for (const ynode *c = n->child; c && !y; c = c->next) {
        if (c->key) y = alias_of(doc, aliases, c->key->anchor, top);
        if (y) *name = c->key->anchor;
        if (!y) y = alias_into(doc, aliases, c, top, name);
    }
    return y;
}

static uint32_t line_of(const ydoc *doc, const ynode *n) {
    uint32_t line, column;
    yaml_place(doc, n->start, &line, &column);
    return line;
}

dep_status edit_check_anchors(arena *a, const ydoc *doc, const ynode *n, bool goes, bool key_goes,
                              dep_err *err) {
    nodes aliases = {0};
    find_aliases(a, doc->root, &aliases);
    if (aliases.n == 0) return DEP_OK;
    for (const ynode *up = goes ? n->parent : n; up; up = up->parent) {
        const ynode *y = alias_of(doc, &aliases, up->anchor, NULL);
        if (y)
            return err_set(err, DEP_ERR_REFUSED,
                           "this stands inside &" STR_FMT
                           ", which the alias on line %u repeats; edit the text itself",
                           STR_ARG(up->anchor), line_of(doc, y));
    }
    if (!goes) return DEP_OK;
    str name = {0};
    const ynode *y = alias_into(doc, &aliases, n, n, &name);
    if (!y && key_goes && n->key) {
        name = n->key->anchor;
        y = alias_of(doc, &aliases, name, n);
    }
    if (!y) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID,
                   "the anchor &" STR_FMT " would go, and the alias on line %u refers to it", STR_ARG(name),
                   line_of(doc, y));
}

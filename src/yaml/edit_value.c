// edit_value: what a person or a page gives as a value, as nodes. JSON is taken as such: it is nearly YAML,
// but its surrogate escapes and some raw characters are not.
#include "yaml/edit_int.h"
#include <deputy/json.h>

static bool has_anchor(const ynode *n) {
    if (n->anchor.n) return true;
    for (const ynode *c = n->child; c; c = c->next)
        if (has_anchor(c) || (c->key && c->key->anchor.n)) return true;
    return false;
}

static dep_status invalid_value(dep_err *err, const char *why) {
    return err_set(err, DEP_ERR_INVALID, "the value %s", why);
}

static dep_status from_yaml(arena *a, str value, ynode **ret, dep_err *err) {
    ydoc *doc;
    diags d = diags_new(a);
    TRY(yaml_parse(a, S("value"), value, 0, false, &doc, &d, err));
    if (!str_trim(value).n) return invalid_value(err, "is empty; write '' for the empty text");
    if (d.errors) {
        const diag *first = &d.items.p[0];
        return err_set(err, DEP_ERR_INVALID, "the value is not a YAML flow value: " STR_FMT "%s" STR_FMT,
                       STR_ARG(first->msg), first->hint.n ? "; try: " : "", STR_ARG(first->hint));
    }
    ynode *n = doc->root;
    if (edit_is_block(n))
        return invalid_value(err, n->kind == YAML_NODE_MAP
                                      ? "reads as `key: value`; put text in quotes, or write {key: value}"
                                      : "is a block list; write [a, b]");
    if (has_anchor(n)) return invalid_value(err, "holds an anchor, which is not accepted here");
    str before = str_sub(value, doc->bom ? 3 : 0, n->outer), after = str_sub(value, n->end, value.n);
    if (str_trim(before).n || str_trim(after).n)
        return invalid_value(err, "holds a comment or a document mark; put it in quotes");
    *ret = n;
    return DEP_OK;
}

// NULL: too deep, or a text with U+0000.
static ynode *from_json(arena *a, const json *j, ynode *parent, size_t depth) {
    ynode *n = NEW(a, ynode), **tail = &n->child;
    bool collection = j->kind == JSON_ARRAY || j->kind == JSON_OBJECT;
    *n = (ynode){.parent = parent, .count = j->count};
    n->kind = j->kind == JSON_OBJECT ? YAML_NODE_MAP : collection ? YAML_NODE_LIST : YAML_NODE_SCALAR;
    n->style = collection ? YSTYLE_FLOW : j->kind == JSON_STRING ? YSTYLE_DOUBLE : YSTYLE_PLAIN;
    if (!collection) n->text = j->kind == JSON_STRING ? j->s : j->raw;
    if (depth > YAML_DEPTH_MAX || (n->text.n && memchr(n->text.p, 0, n->text.n))) return NULL;
    for (const json *c = j->child; c; c = c->next) {
        *tail = from_json(a, c, n, depth + 1);
        if (!*tail || (c->key.n && memchr(c->key.p, 0, c->key.n))) return NULL;
        if (j->kind == JSON_OBJECT) {
            (*tail)->key = NEW(a, ynode);
            *(*tail)->key = (ynode){.style = YSTYLE_DOUBLE, .text = c->key, .parent = n};
        }
        tail = &(*tail)->next;
    }
    return n;
}

dep_status edit_value(arena *a, str value, ynode **ret, dep_err *err) {
    json *j;
    str s = str_trim(value);
    if (s.n && strchr("\"[{", s.p[0]) && json_parse(a, value, YAML_SIZE_MAX, &j, NULL) == DEP_OK) {
        ynode *n = from_json(a, j, NULL, 0);
        if (!n) return invalid_value(err, "holds U+0000, or is nested too deep");
        *ret = n;
        return DEP_OK;
    }
    return from_yaml(a, value, ret, err);
}

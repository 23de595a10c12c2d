// node: reading a tree: look-ups, the few scalar types that keys need, equality, JSON.
#include <deputy/json.h>
#include <deputy/yaml.h>

ynode *yaml_get(const ynode *map, str key) {
    if (!map || map->kind != YAML_NODE_MAP) return NULL;
    for (ynode *c = map->child; c; c = c->next)
        if (str_eq(c->key->text, key)) return c;
    return NULL;
}

ynode *yaml_at(const ynode *list, size_t i) {
    if (!list || list->kind != YAML_NODE_LIST) return NULL;
    ynode *c = list->child;
    while (c && i--) c = c->next;
    return c;
}

static bool is_plain(const ynode *n) {
    return n && n->kind == YAML_NODE_SCALAR && n->style == YSTYLE_PLAIN;
}

bool yaml_is_null(const ynode *n) {
    return is_plain(n) && (str_empty(n->text) || str_eq(n->text, S("~")) || str_eq(n->text, S("null")) ||
                           str_eq(n->text, S("Null")) || str_eq(n->text, S("NULL")));
}

bool yaml_int(const ynode *n, int64_t *ret) {
    if (!n || n->kind != YAML_NODE_SCALAR) return false;
    if (n->style == YSTYLE_LITERAL || n->style == YSTYLE_FOLDED) return false;
    bool negative = str_starts(n->text, S("-"));
    str digits = str_sub(n->text, negative, n->text.n);
    if (digits.n > 1 && digits.p[0] == '0') return false;
    uint64_t v;
    if (!str_u64(digits, (uint64_t)INT64_MAX + negative, &v)) return false;
    if (negative && v == 0) return false;
    *ret = negative ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

bool yaml_bool(const ynode *n, bool *ret) {
    if (!is_plain(n)) return false;
    static const str yes[] = {S_INIT("true"), S_INIT("True"), S_INIT("TRUE")};
    static const str no[] = {S_INIT("false"), S_INIT("False"), S_INIT("FALSE")};
    for (size_t i = 0; i < 3; i++) {
        if (!str_eq(n->text, yes[i]) && !str_eq(n->text, no[i])) continue;
        *ret = str_eq(n->text, yes[i]);
        return true;
    }
    return false;
}

// The member of y with that key; searched from *from on and round, since both maps mostly have one order.
static const ynode *find_from(const ynode *y, str key, const ynode **from) {
    const ynode *c = *from ? *from : y->child;
    for (size_t i = 0; i < y->count && c; i++) {
        if (str_eq(c->key->text, key)) {
            *from = c->next;
            return c;
        }
        c = c->next ? c->next : y->child;
    }
    return NULL;
}

bool yaml_equal(const ynode *x, const ynode *y) {
    if (!x || !y) return x == y;
    if (x->kind != y->kind || x->count != y->count) return false;
    if (x->kind == YAML_NODE_SCALAR) {
        bool null = yaml_is_null(x);
        return null == yaml_is_null(y) && (null || str_eq(x->text, y->text));
    }
    const ynode *from = y->child;
    for (const ynode *c = x->child; c; c = c->next) {
        const ynode *other = from;
        if (x->kind == YAML_NODE_MAP) {
            other = find_from(y, c->key->text, &from);
        } else {
            from = from->next;
        }
        if (!other || !yaml_equal(c, other)) return false;
    }
    return true;
}

static void write_scalar(jw *w, const ynode *n) {
    int64_t i;
    bool b;
    if (yaml_is_null(n)) {
        jw_null(w);
    } else if (yaml_bool(n, &b)) {
        jw_bool(w, b);
    } else if (n->style == YSTYLE_PLAIN && yaml_int(n, &i)) {
        jw_int(w, i);
    } else {
        jw_str(w, n->text);
    }
}

static void write_node(jw *w, const ynode *n) {
    if (n->kind == YAML_NODE_SCALAR) {
        write_scalar(w, n);
        return;
    }
    bool map = n->kind == YAML_NODE_MAP;
    if (map) {
        jw_obj(w);
    } else {
        jw_arr(w);
    }
    for (const ynode *c = n->child; c; c = c->next) {
        if (map) jw_key(w, c->key->text);
        write_node(w, c);
    }
    if (map) {
        jw_end_obj(w);
    } else {
        jw_end_arr(w);
    }
}

void yaml_to_json(buf *out, const ynode *n) {
    jw w = jw_new(out);
    if (n) {
        write_node(&w, n);
    } else {
        jw_null(&w);
    }
}

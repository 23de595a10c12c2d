// edit_plan: what is asked, as steps that each set or remove one node. A list or mapping that is replaced by
// one of its kind is also planned item by item, so that comments and spelling of what stays are kept.
#include "yaml/edit_int.h"
#include <deputy/utf8.h>

enum {
    PLAN_STEPS_MAX = 64, // each costs a parse
    PLAN_ITEMS_MAX = 64, // of lists compared item by item
};

static ynode *new_list(arena *a) {
    ynode *n = NEW(a, ynode);
    *n = (ynode){.kind = YAML_NODE_LIST, .style = YSTYLE_FLOW};
    return n;
}

static void add_child(ynode *list, ynode *n) {
    ynode **p = &list->child;
    while (*p) p = &(*p)->next;
    *p = n;
    n->next = n->key = NULL;
    n->parent = list;
    list->count++;
}

static ynode *new_scalar(arena *a, str text) {
    ynode *n = NEW(a, ynode);
    *n = (ynode){.kind = YAML_NODE_SCALAR, .style = YSTYLE_PLAIN, .text = text};
    return n;
}

static ypath with_index(const ypath *p, size_t i) {
    ypath q = *p;
    if (q.n < YAML_DEPTH_MAX) q.p[q.n++] = (ypart){.may_index = true, .index = i};
    return q;
}

static ypath with_key(const ypath *p, str key) {
    ypath q = *p;
    if (q.n < YAML_DEPTH_MAX) q.p[q.n++] = (ypart){.may_key = true, .key = key};
    return q;
}

static void set_step(arena *a, edit_steps *out, const ypath *p, ynode *value) {
    vec_push(a, out, (edit_step){.path = *p, .value = value});
}

static void unset_step(arena *a, edit_steps *out, const ypath *p) {
    vec_push(a, out, (edit_step){.unset = true, .path = *p});
}

// --- The least change -------------------------------------------------------------------------------------

static bool plan_least(arena *a, const ypath *p, const ynode *old, ynode *value, edit_steps *out);

static bool plan_map(arena *a, const ypath *p, const ynode *old, ynode *value, edit_steps *out) {
    size_t shared = 0;
    for (const ynode *c = old->child; c; c = c->next) shared += yaml_get(value, c->key->text) != NULL;
    if (shared == 0) return false;
    for (const ynode *c = old->child; c; c = c->next) {
        ypath q = with_key(p, c->key->text);
        if (!yaml_get(value, c->key->text)) unset_step(a, out, &q);
    }
    for (ynode *c = value->child; c; c = c->next) {
        ypath q = with_key(p, c->key->text);
        const ynode *before = yaml_get(old, c->key->text);
        if (!before || !plan_least(a, &q, before, c, out)) set_step(a, out, &q, c);
    }
    return true;
}

typedef struct {
    const ynode *old[PLAN_ITEMS_MAX];
    ynode *value[PLAN_ITEMS_MAX];
    size_t n_old, n_value;
    unsigned char length[PLAN_ITEMS_MAX + 1][PLAN_ITEMS_MAX + 1]; // of the longest common rest
} lists;

static void compare_lists(lists *l) {
    for (size_t i = l->n_old; i-- > 0;) {
        for (size_t k = l->n_value; k-- > 0;) {
            unsigned char down = l->length[i + 1][k], right = l->length[i][k + 1];
            l->length[i][k] = edit_same_value(l->old[i], l->value[k])
                                  ? (unsigned char)(l->length[i + 1][k + 1] + 1)
                              : down > right ? down
                                             : right;
        }
    }
}

static bool both_collections(const ynode *x, const ynode *y) {
    return x->kind == y->kind && x->kind != YAML_NODE_SCALAR;
}

// Items between two that stay: pairs are changed in place, the rest is removed or (at the end alone) added.
static bool plan_gap(arena *a, const ypath *p, const lists *l, size_t i, size_t i_end, size_t k, size_t k_end,
                     edit_steps *sets, edit_steps *rest) {
    for (; i < i_end && k < k_end; i++, k++) {
        if (l->length[0][0] == 0 && !both_collections(l->old[i], l->value[k])) return false;
        ypath q = with_index(p, i);
        if (!plan_least(a, &q, l->old[i], l->value[k], sets)) set_step(a, sets, &q, l->value[k]);
    }
    for (; i < i_end; i++) {
        ypath q = with_index(p, i);
        unset_step(a, rest, &q);
    }
    if (k < k_end && i_end < l->n_old) return false;
    for (; k < k_end; k++) {
        ypath q = with_index(p, k);
        set_step(a, rest, &q, l->value[k]);
    }
    return true;
}

static bool plan_list(arena *a, const ypath *p, const ynode *old, ynode *value, edit_steps *out) {
    if (old->count > PLAN_ITEMS_MAX || value->count > PLAN_ITEMS_MAX) return false;
    lists *l = NEW(a, lists);
    for (const ynode *c = old->child; c; c = c->next) l->old[l->n_old++] = c;
    for (ynode *c = value->child; c; c = c->next) l->value[l->n_value++] = c;
    compare_lists(l);
    edit_steps rest = {0};
    size_t i = 0, k = 0, from = 0, from_k = 0;
    while (i < l->n_old && k < l->n_value) {
        if (edit_same_value(l->old[i], l->value[k])) {
            if (!plan_gap(a, p, l, from, i, from_k, k, out, &rest)) return false;
            from = ++i;
            from_k = ++k;
        } else if (l->length[i + 1][k] >= l->length[i][k + 1]) {
            i++;
        } else {
            k++;
        }
    }
    if (!plan_gap(a, p, l, from, l->n_old, from_k, l->n_value, out, &rest)) return false;
    // Removals from the end on, so that indexes stay true; what is added comes last.
    for (size_t n = rest.n; n-- > 0;)
        if (rest.p[n].unset) vec_push(a, out, rest.p[n]);
    for (size_t n = 0; n < rest.n; n++)
        if (!rest.p[n].unset) vec_push(a, out, rest.p[n]);
    return true;
}

// False: to be set as a whole.
static bool plan_least(arena *a, const ypath *p, const ynode *old, ynode *value, edit_steps *out) {
    if (edit_same_value(old, value)) return true;
    if (!both_collections(old, value) || old->alias || old->count == 0 || value->count == 0) return false;
    if (p->n >= YAML_DEPTH_MAX - 1) return false;
    edit_steps mine = {0};
    bool ok =
        old->kind == YAML_NODE_MAP ? plan_map(a, p, old, value, &mine) : plan_list(a, p, old, value, &mine);
    if (!ok) return false;
    for (size_t i = 0; i < mine.n; i++) vec_push(a, out, mine.p[i]);
    return true;
}

// --- String lists: "a, b" ---------------------------------------------------------------------------------

typedef struct {
    size_t from, to;
} word;
typedef VEC(word) words;

typedef struct {
    words words;
    bool commas;
    bool list; // more than one value in one string
} string_list;

static bool is_name(str s) {
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == '(') return i > 0;
        if (strchr("/.*?{[\\", c)) return false;
    }
    return true;
}

// Words of a string, split at commas and blanks outside of brackets. A blank alone separates names only: it
// may belong to a path.
static string_list split(arena *a, str s) {
    string_list l = {0};
    size_t depth = 0, from = SIZE_MAX;
    bool names = true;
    for (size_t i = 0; i <= s.n; i++) {
        char c = i < s.n ? s.p[i] : ',';
        bool separator = i == s.n || (depth == 0 && strchr(", \t\n", c));
        if (separator && from != SIZE_MAX) {
            vec_push(a, &l.words, (word){from, i});
            names = names && is_name(str_sub(s, from, i));
            from = SIZE_MAX;
        } else if (!separator && from == SIZE_MAX) {
            from = i;
        }
        if (i < s.n && depth == 0 && c == ',') l.commas = true;
        if (c == '(' || c == '{' || c == '[') depth++;
        if ((c == ')' || c == '}' || c == ']') && depth) depth--;
    }
    l.list = l.commas || (l.words.n > 1 && names);
    return l;
}

static str word_text(str s, word w) {
    return str_sub(s, w.from, w.to);
}

static ynode *as_list(arena *a, const ynode *old, const string_list *l) {
    ynode *list = new_list(a);
    if (!l->list) add_child(list, new_scalar(a, old->text));
    for (size_t i = 0; l->list && i < l->words.n; i++)
        add_child(list, new_scalar(a, word_text(old->text, l->words.p[i])));
    // Quoted where plain text would have a type: a word of a string is text.
    for (ynode *c = list->child; c; c = c->next)
        if (yaml_looks_typed(c->text)) c->style = YSTYLE_DOUBLE;
    return list;
}

static ynode *new_string(arena *a, const ynode *old, str text) {
    ynode *n = new_scalar(a, text);
    if (old->style != YSTYLE_PLAIN || yaml_looks_typed(text)) n->style = YSTYLE_DOUBLE;
    return n;
}

static dep_status exists(dep_err *err) {
    return err_set(err, DEP_ERR_EXISTS, "the list has that entry already");
}

static dep_status add_to_string(arena *a, const ypath *p, const ynode *old, ynode *value, edit_steps *out,
                                dep_err *err) {
    string_list l = split(a, old->text);
    bool scalar = value->kind == YAML_NODE_SCALAR && !yaml_is_null(value);
    for (size_t i = 0; scalar && l.list && i < l.words.n; i++)
        if (str_eq(word_text(old->text, l.words.p[i]), value->text)) return exists(err);
    if (scalar && !l.list && str_eq(old->text, value->text)) return exists(err);
    ynode *n;
    string_list of_value = scalar ? split(a, value->text) : (string_list){0};
    bool one_word = of_value.words.n == 1 && !of_value.commas && of_value.words.p[0].to == value->text.n &&
                    of_value.words.p[0].from == 0 && (l.commas || is_name(value->text));
    if (l.list && one_word) {
        str rest = str_trim(old->text);
        if (str_ends(rest, S(","))) rest = str_trim(str_sub(rest, 0, rest.n - 1));
        n = new_string(
            a, old,
            str_fmt(a, STR_FMT "%s" STR_FMT, STR_ARG(rest), l.commas ? ", " : " ", STR_ARG(value->text)));
    } else {
        n = as_list(a, old, &l);
        add_child(n, value);
    }
    set_step(a, out, p, n);
    return DEP_OK;
}

static dep_status not_there(dep_err *err) {
    return err_set(err, DEP_ERR_NOT_FOUND, "the list has no such entry");
}

static dep_status remove_from_string(arena *a, const ypath *p, const ynode *old, const ynode *value,
                                     edit_steps *out, dep_err *err) {
    string_list l = split(a, old->text);
    if (value->kind != YAML_NODE_SCALAR) return not_there(err);
    if (!l.list) {
        if (!str_eq(old->text, value->text)) return not_there(err);
        set_step(a, out, p, new_list(a));
        return DEP_OK;
    }
    buf b = buf_new(a, 0);
    size_t kept = 0;
    for (size_t i = 0; i < l.words.n; i++) {
        str w = word_text(old->text, l.words.p[i]);
        if (str_eq(w, value->text)) continue;
        if (kept++) buf_add(&b, l.commas ? S(", ") : S(" "));
        buf_add(&b, w);
    }
    if (kept == l.words.n) return not_there(err);
    set_step(a, out, p, kept ? new_string(a, old, buf_str(&b)) : new_list(a));
    return DEP_OK;
}

// --- Adding and removing ----------------------------------------------------------------------------------

static dep_status plan_add(arena *a, const ypath *p, const ynode *old, ynode *value, edit_steps *out,
                           dep_err *err) {
    if (!old || yaml_is_null(old)) {
        ynode *list = new_list(a);
        add_child(list, value);
        set_step(a, out, p, list);
        return DEP_OK;
    }
    if (old->kind == YAML_NODE_MAP)
        return err_set(err, DEP_ERR_INVALID, "this is a mapping; only lists can be added to");
    if (old->alias)
        return err_set(err, DEP_ERR_REFUSED,
                       "this is an alias; write the list out first, or change what it refers to");
    if (old->kind == YAML_NODE_SCALAR) return add_to_string(a, p, old, value, out, err);
    for (const ynode *c = old->child; c; c = c->next)
        if (yaml_equal(c, value)) return exists(err);
    if (old->count == 0) {
        ynode *list = new_list(a);
        add_child(list, value);
        set_step(a, out, p, list);
        return DEP_OK;
    }
    ypath q = with_index(p, old->count);
    set_step(a, out, &q, value);
    return DEP_OK;
}

static dep_status plan_remove(arena *a, const ypath *p, const ynode *old, const ynode *value, edit_steps *out,
                              dep_err *err) {
    if (!old || yaml_is_null(old)) return not_there(err);
    if (old->kind == YAML_NODE_MAP) return err_set(err, DEP_ERR_INVALID, "this is a mapping, not a list");
    if (old->alias)
        return err_set(err, DEP_ERR_REFUSED,
                       "this is an alias; write the list out first, or change what it refers to");
    if (old->kind == YAML_NODE_SCALAR) return remove_from_string(a, p, old, value, out, err);
    for (size_t i = old->count; i-- > 0;) {
        ypath q = with_index(p, i);
        if (yaml_equal(yaml_at(old, i), value)) unset_step(a, out, &q);
    }
    return out->n ? DEP_OK : not_there(err);
}

dep_status edit_plan_make(arena *a, const ydoc *doc, yaml_edit_kind kind, const ypath *p, ynode *value,
                          edit_plan *ret, dep_err *err) {
    ynode *n = NULL;
    size_t found = 0;
    if (doc->root) TRY(edit_walk(a, doc->root, p, &n, &found, err));
    const ynode *old = doc->root && found == p->n ? n : NULL;
    if (kind != YAML_EDIT_SET && p->n >= YAML_DEPTH_MAX)
        return err_set(err, DEP_ERR_LIMIT, "the path has more than %d parts", YAML_DEPTH_MAX - 1);
    switch (kind) {
    case YAML_EDIT_SET:
        set_step(a, &ret->want, p, value);
        if (old && !plan_least(a, p, old, value, &ret->least)) ret->least.n = 0;
        if (ret->least.n > PLAN_STEPS_MAX) ret->least.n = 0;
        return DEP_OK;
    case YAML_EDIT_UNSET: unset_step(a, &ret->want, p); return DEP_OK;
    case YAML_EDIT_ADD: return plan_add(a, p, old, value, &ret->want, err);
    case YAML_EDIT_REMOVE: return plan_remove(a, p, old, value, &ret->want, err);
    }
    return err_set(err, DEP_ERR_INVALID, "unknown kind of edit");
}

// edit: one value changed in the text of a document. The cuts are made by the other edit files; here the
// request is read and the result is proven: it is parsed again, and unless its tree is exactly the old one
// with that change, it is tried another way or not given out at all.
#include "yaml/edit_int.h"
#include <stdlib.h>

// --- Geometry ---------------------------------------------------------------------------------------------

unsigned edit_column(const edit *e, size_t at) {
    uint32_t line, column;
    yaml_place(e->doc, at, &line, &column);
    return column - 1;
}

bool edit_same_line(const edit *e, size_t a, size_t b) {
    return yaml_bol(e->doc, a) == yaml_bol(e->doc, b);
}

bool edit_is_block(const ynode *n) {
    return n->kind != YAML_NODE_SCALAR && n->style == YSTYLE_BLOCK && !n->alias;
}

bool edit_is_block_scalar(const ynode *n) {
    return n->kind == YAML_NODE_SCALAR && (n->style == YSTYLE_LITERAL || n->style == YSTYLE_FOLDED) &&
           !n->alias;
}

bool edit_is_empty(const ynode *n) {
    return n->kind == YAML_NODE_SCALAR && n->style == YSTYLE_PLAIN && n->start == n->end && !n->alias;
}

bool edit_in_flow(const ynode *n) {
    for (n = n->parent; n; n = n->parent)
        if (n->style == YSTYLE_FLOW) return true;
    return false;
}

size_t edit_entry(const edit *e, const ynode *child) {
    str s = e->doc->source;
    const ynode *from = child->parent, *prev = NULL;
    for (const ynode *c = from->child; c != child; c = c->next) prev = c;
    if (from->style == YSTYLE_BLOCK) return prev ? yaml_skip(s, prev->end) : from->start;
    if (!prev) {
        bool bracket = from->start < s.n && (s.p[from->start] == '[' || s.p[from->start] == '{');
        return bracket ? yaml_skip(s, from->start + 1) : from->start;
    }
    size_t at = yaml_skip(s, prev->end);
    return at < s.n && s.p[at] == ',' ? yaml_skip(s, at + 1) : at;
}

static const ynode *tail_of(const ynode *n) {
    while (edit_is_block(n) && n->child) {
        n = n->child;
        while (n->next) n = n->next;
    }
    return n;
}

size_t edit_tail_end(const edit *e, const ynode *n) {
    size_t end = n->end;
    if (!edit_is_block_scalar(tail_of(n))) return end;
    str s = e->doc->source;
    if (end > n->start && s.p[end - 1] == '\n') end--;
    if (end > n->start && s.p[end - 1] == '\r') end--;
    return end;
}

size_t edit_after(const edit *e, const ynode *n) {
    return edit_is_block_scalar(tail_of(n)) ? n->end : yaml_next_line(e->doc, n->end);
}

bool edit_begins_line(const edit *e, size_t at) {
    for (size_t i = yaml_bol(e->doc, at); i < at; i++)
        if (!yaml_blank(e->doc->source.p[i])) return false;
    return true;
}

// --- Cuts -------------------------------------------------------------------------------------------------

void edit_cut(edit *e, size_t from, size_t to, str text) {
    vec_push(e->a, &e->cuts, (cut){from, to < from ? from : to, text});
}

str edit_apply(const edit *e) {
    str s = e->doc->source;
    buf b = buf_new(e->a, 0);
    size_t at = 0;
    // At most four; in the order of the text, equal places in the order in which they were asked for.
    for (size_t done = 0; done < e->cuts.n; done++) {
        size_t least = SIZE_MAX;
        for (size_t i = 0; i < e->cuts.n; i++) {
            const cut *c = &e->cuts.p[i];
            if (c->from != SIZE_MAX && (least == SIZE_MAX || c->from < e->cuts.p[least].from)) least = i;
        }
        cut *c = &e->cuts.p[least];
        if (c->from >= at) {
            buf_add(&b, str_sub(s, at, c->from));
            at = c->from;
        }
        buf_add(&b, c->text);
        if (c->to > at) at = c->to;
        c->from = SIZE_MAX;
    }
    buf_add(&b, str_sub(s, at, s.n));
    return buf_str(&b);
}

// --- Habits of the document -------------------------------------------------------------------------------

static void find_habits(edit *e, const ynode *n, bool *step, bool *dash) {
    if (n->alias || (*step && *dash)) return;
    for (const ynode *c = n->child; c; c = c->next) {
        if (n->kind == YAML_NODE_MAP && edit_is_block(n) && edit_is_block(c) &&
            !edit_same_line(e, c->key->start, c->start)) {
            unsigned from = edit_column(e, n->start), to = edit_column(e, c->start);
            if (c->kind == YAML_NODE_LIST && !*dash) {
                e->dash_at_key = to == from;
                *dash = true;
            }
            if (to > from && to - from <= 8 && !*step) {
                e->step = to - from;
                *step = true;
            }
        }
        find_habits(e, c, step, dash);
    }
}

edit edit_new(arena *a, const ydoc *doc, edit_variant v, const char *const *order, dep_err *err) {
    edit e = {.a = a, .doc = doc, .step = 2, .order = order, .err = err, .eol = S("\n")};
    e.no_blocks = v == VARIANT_NO_BLOCKS || v == VARIANT_BOTH;
    e.elsewhere = v == VARIANT_ELSEWHERE || v == VARIANT_BOTH;
    size_t lf = str_chr(doc->source, '\n');
    if (lf != SIZE_MAX && lf > 0 && doc->source.p[lf - 1] == '\r') e.eol = S("\r\n");
    bool step = false, dash = false;
    if (doc->root) find_habits(&e, doc->root, &step, &dash);
    return e;
}

// --- Paths ------------------------------------------------------------------------------------------------

static bool is_doubled(const ynode *map, str key) {
    size_t n = 0;
    for (const ynode *c = map->child; c; c = c->next) n += str_eq(c->key->text, key);
    return n > 1;
}

dep_status edit_walk(arena *a, ynode *root, const ypath *p, ynode **ret, size_t *found, dep_err *err) {
    ynode *n = root;
    size_t i = 0;
    for (; i < p->n; i++) {
        if (n->alias)
            return err_set(err, DEP_ERR_REFUSED,
                           "`" STR_FMT "` is an alias; change what it refers to, or write it out",
                           STR_ARG(ypath_text(a, p, i)));
        if (n->kind == YAML_NODE_MAP && is_doubled(n, p->p[i].key))
            return err_set(err, DEP_ERR_REFUSED, "key `" STR_FMT "` stands there twice; remove one first",
                           STR_ARG(ypath_text(a, p, i + 1)));
        ynode *next = ypath_step(n, &p->p[i]);
        if (!next) break;
        n = next;
    }
    *ret = n;
    *found = i;
    return DEP_OK;
}

dep_status edit_wrap(arena *a, const ypath *p, size_t from, ynode *value, ynode **ret, dep_err *err) {
    ynode *n = value;
    for (size_t i = p->n; i-- > from;) {
        const ypart *part = &p->p[i];
        bool list = part->may_index;
        if (list && part->index > 0)
            return err_set(err, DEP_ERR_NOT_FOUND, "`" STR_FMT "` has no item before it",
                           STR_ARG(ypath_text(a, p, i + 1)));
        ynode *up = NEW(a, ynode);
        *up = (ynode){.kind = list ? YAML_NODE_LIST : YAML_NODE_MAP, .child = n, .count = 1};
        up->style = list && n->style != YSTYLE_BLOCK ? YSTYLE_FLOW : YSTYLE_BLOCK;
        n->parent = up;
        n->next = n->key = NULL;
        if (!list) {
            n->key = NEW(a, ynode);
            *n->key = (ynode){.style = YSTYLE_PLAIN, .text = part->key, .parent = up};
        }
        n = up;
    }
    *ret = n;
    return DEP_OK;
}

// Can the path go on from n, where its part `found` is not there?
static dep_status check_room(arena *a, const ynode *n, const ypath *p, size_t found, dep_err *err) {
    str at = ypath_text(a, p, found);
    const ypart *part = &p->p[found];
    if (n->kind == YAML_NODE_MAP && !part->may_key)
        return err_set(err, DEP_ERR_INVALID, "`" STR_FMT "` is a mapping, and [%zu] names a list item",
                       STR_ARG(at), part->index);
    if (n->kind == YAML_NODE_LIST && !part->may_index)
        return err_set(err, DEP_ERR_INVALID, "`" STR_FMT "` is a list: name an item by its index, from 0",
                       STR_ARG(at));
    if (n->kind == YAML_NODE_LIST && part->index > n->count)
        return err_set(err, DEP_ERR_NOT_FOUND, "`" STR_FMT "` has %zu items; [%zu] is past the end",
                       STR_ARG(at), n->count, part->index);
    if (n->kind == YAML_NODE_SCALAR && (!yaml_is_null(n) || !n->parent))
        return err_set(err, DEP_ERR_INVALID, "`" STR_FMT "` is a single value, which holds no keys",
                       STR_ARG(at));
    return DEP_OK;
}

// --- Doing and proving ------------------------------------------------------------------------------------

static dep_status reparse(arena *a, const ydoc *old, str text, ydoc **ret, size_t *errors, dep_err *err) {
    diags d = diags_new(a);
    size_t most = old->source.n > YAML_SIZE_MAX ? old->source.n : YAML_SIZE_MAX;
    if (text.n > most) return err_set(err, DEP_ERR_LIMIT, "the text would have more than %zu bytes", most);
    TRY(yaml_parse(a, old->file, text, most, old->root && old->root->kind == YAML_NODE_MAP, ret, &d, err));
    *errors = d.errors;
    return DEP_OK;
}

static dep_status run_steps(arena *a, const ydoc *doc, const edit_steps *steps, edit_variant v,
                            const char *const *order, ydoc **ret, size_t *errors, dep_err *err) {
    const ydoc *now = doc;
    for (size_t i = 0; i < steps->n; i++) {
        const edit_step *s = &steps->p[i];
        edit e = edit_new(a, now, v, order, err);
        ydoc *next = NULL;
        if (i && !now->root) return err_set(err, DEP_ERR_REFUSED, "a step left no readable text");
        TRY(s->unset ? edit_unset(&e, &s->path) : edit_set(&e, &s->path, edit_clone(a, s->value, false)));
        TRY(reparse(a, now, edit_apply(&e), &next, errors, err));
        if (!next) break; // reparse has set it
        now = next;
        *ret = next;
    }
    return DEP_OK;
}

typedef struct {
    arena *a;
    const ydoc *doc;
    size_t errors; // of the document before the edit
    const ynode *want;
    const char *const *order;
} proof;

// DEP_OK with *ret when the steps lead exactly to the wanted tree.
static dep_status attempt(const proof *p, const edit_steps *steps, edit_variant v, str *ret, dep_err *err) {
    ydoc *got = NULL;
    size_t errors = 0;
    TRY(run_steps(p->a, p->doc, steps, v, p->order, &got, &errors, err));
    if (errors > p->errors || !got || !got->root)
        return err_set(err, DEP_ERR_REFUSED,
                       "the change cannot be written here without breaking the text; edit the text itself");
    if (!edit_same_tree(p->want, p->doc, got->root, got))
        return err_set(err, DEP_ERR_REFUSED,
                       "the change cannot be written here without changing another value; edit the "
                       "text itself");
    *ret = got->source;
    return DEP_OK;
}

static dep_status prove(const proof *p, const edit_plan *plan, str *ret, dep_err *err) {
    if (plan->least.n) {
        dep_err ignored;
        if (attempt(p, &plan->least, VARIANT_NORMAL, ret, &ignored) == DEP_OK) return DEP_OK;
    }
    dep_status status = DEP_OK;
    for (edit_variant v = VARIANT_NORMAL; v < VARIANT_N; v++) {
        dep_err e = {0};
        status = attempt(p, &plan->want, v, ret, &e);
        if (status == DEP_OK) return DEP_OK;
        if (v == VARIANT_NORMAL && err) *err = e;
        if (status != DEP_ERR_REFUSED) break;
    }
    return status;
}

static dep_status check_steps(arena *a, const ydoc *doc, const edit_steps *steps, dep_err *err) {
    if (!doc->root) return DEP_OK;
    for (size_t i = 0; i < steps->n; i++) {
        const edit_step *s = &steps->p[i];
        ynode *n = doc->root;
        size_t found = 0;
        TRY(edit_walk(a, doc->root, &s->path, &n, &found, err));
        if (!s->unset && found < s->path.n) TRY(check_room(a, n, &s->path, found, err));
        if (s->unset && found < s->path.n)
            return err_set(err, DEP_ERR_NOT_FOUND, "there is no `" STR_FMT "`",
                           STR_ARG(ypath_text(a, &s->path, found + 1)));
    }
    return DEP_OK;
}

// A document without a tree can be written to only when that is all that is wrong with it.
static dep_status check_document(arena *a, const ydoc *doc, yaml_edit_kind kind, size_t *errors,
                                 dep_err *err) {
    ydoc *again;
    diags d = diags_new(a);
    TRY(yaml_parse(a, doc->file, doc->source, doc->source.n + 1,
                   doc->root && doc->root->kind == YAML_NODE_MAP, &again, &d, err));
    *errors = d.errors;
    if (doc->root) return DEP_OK;
    bool empty = d.errors == 1 && strcmp(d.items.p[0].code, "YAML012") == 0;
    if (!empty)
        return err_set(err, DEP_ERR_INVALID,
                       "the text has errors that must be repaired by hand first: " STR_FMT,
                       STR_ARG(d.items.n ? d.items.p[0].msg : (str){0}));
    if (kind == YAML_EDIT_UNSET || kind == YAML_EDIT_REMOVE)
        return err_set(err, DEP_ERR_NOT_FOUND, "the document is empty");
    return DEP_OK;
}

static dep_status edit_guarded(arena *a, const ydoc *doc, yaml_edit_kind kind, str path, str value,
                               const char *const *order, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    ypath p;
    ynode *node = NULL;
    proof proof = {.a = a, .doc = doc, .order = order};
    TRY(ypath_parse(a, path, &p, err));
    TRY(check_document(a, doc, kind, &proof.errors, err));
    if (kind != YAML_EDIT_UNSET) TRY(edit_value(a, value, &node, err));
    edit_plan plan = {0};
    TRY(edit_plan_make(a, doc, kind, &p, node, &plan, err));
    TRY(check_steps(a, doc, &plan.want, err));
    ynode *want = doc->root ? edit_clone(a, doc->root, false) : NULL;
    for (size_t i = 0; i < plan.want.n; i++) TRY(edit_tree_step(a, &want, &plan.want.p[i], err));
    if (want && doc->root && edit_same_value(want, doc->root)) {
        *ret = doc->source;
        return DEP_OK;
    }
    proof.want = want;
    return prove(&proof, &plan, ret, err);
}

dep_status yaml_edit(arena *a, const ydoc *doc, yaml_edit_kind kind, str path, str value,
                     const char *const *new_key_order, str *ret, dep_err *err) {
    return edit_guarded(a, doc, kind, path, value, new_key_order, ret, err);
}

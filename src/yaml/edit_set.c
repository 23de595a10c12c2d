// edit_set: a value replaced, a key or an item added, as cuts in the text. Which forms go where is decided
// here; whether the result is right is proven elsewhere, so that odd places may come out wrong and are
// refused then.
#include "yaml/edit_int.h"

typedef struct {
    size_t lead;    // behind the `:` or `-`
    unsigned col;   // column of the keys or dashes beside it
    bool colon;     // there is a `:`, or it is an item
    bool same_line; // the value begins on that line
} place;

static place place_of(const edit *e, const ynode *v) {
    place p = {.colon = true};
    str s = e->doc->source;
    if (v->key) {
        p.lead = yaml_skip(s, v->key->end);
        p.colon = p.lead < s.n && s.p[p.lead] == ':';
        p.lead = p.colon ? p.lead + 1 : v->key->end;
    } else {
        p.lead = edit_entry(e, v) + 1;
    }
    p.col = edit_column(e, edit_entry(e, v->parent->child));
    p.same_line = edit_same_line(e, p.lead, v->start);
    return p;
}

static str padded(edit *e, const char *before, str text, str after) {
    return str_fmt(e->a, "%s" STR_FMT STR_FMT, before, STR_ARG(text), STR_ARG(after));
}

static str spaces(edit *e, unsigned n) {
    buf b = buf_new(e->a, 0);
    buf_fill(&b, ' ', n);
    return buf_str(&b);
}

// Whole lines (the last line end left off) at the start of a line, or behind a last line that has no end.
static void insert_lines(edit *e, size_t at, str lines) {
    str s = e->doc->source;
    if (at >= s.n && s.n && s.p[s.n - 1] != '\n') {
        edit_cut(e, s.n, s.n, padded(e, "", e->eol, lines));
    } else {
        edit_cut(e, at, at, padded(e, "", lines, e->eol));
    }
}

static void replace_lines(edit *e, size_t from, size_t to, str lines) {
    str s = e->doc->source;
    if (from == to) {
        insert_lines(e, from, lines);
    } else {
        bool ends = to < s.n || s.p[s.n - 1] == '\n';
        edit_cut(e, from, to, ends ? padded(e, "", lines, e->eol) : lines);
    }
}

// End of `&name !tag` on the line of the lead.
static size_t behind_properties(const edit *e, const ynode *v, const place *p) {
    str s = e->doc->source;
    if (v->outer == v->start || !edit_same_line(e, p->lead, v->outer)) return p->lead;
    size_t at = v->outer, end = at;
    while (at < s.n && (s.p[at] == '&' || s.p[at] == '!')) {
        while (at < s.n && !memchr(" \t\r\n", s.p[at], 4)) at++;
        end = at;
        while (at < s.n && yaml_blank(s.p[at])) at++;
    }
    return end;
}

// First line of a value that begins below its key.
static size_t first_line_of(const edit *e, const ynode *v, const place *p) {
    return yaml_bol(e->doc, edit_same_line(e, p->lead, v->outer) ? v->start : v->outer);
}

static size_t header_end(const edit *e, const ynode *v) {
    str s = e->doc->source;
    size_t at = v->start + 1;
    while (at < s.n && s.p[at] && strchr("+-0123456789", s.p[at])) at++;
    return at;
}

static size_t without_blanks_before(const edit *e, size_t at, size_t floor) {
    while (at > floor && yaml_blank(e->doc->source.p[at - 1])) at--;
    return at;
}

// --- One line ---------------------------------------------------------------------------------------------

static void put_inline(edit *e, const ynode *v, const place *p, str text) {
    if (edit_is_empty(v)) {
        edit_cut(e, v->start, v->start, padded(e, p->colon ? " " : ": ", text, (str){0}));
    } else if (edit_is_block_scalar(v)) {
        edit_cut(e, v->start, header_end(e, v), text);
        edit_cut(e, yaml_next_line(e->doc, v->start), v->end, (str){0});
    } else if (edit_is_block(v) && !p->same_line) {
        size_t at = behind_properties(e, v, p);
        edit_cut(e, at, at, padded(e, " ", text, (str){0}));
        edit_cut(e, first_line_of(e, v, p), edit_after(e, v), (str){0});
    } else {
        edit_cut(e, v->start, edit_tail_end(e, v), text);
    }
}

// --- Lines below the key ----------------------------------------------------------------------------------

// head: what stands on the key's line (a block scalar's header) or empty; lines: indented, below it.
static void put_lines(edit *e, const ynode *v, const place *p, str head, str lines) {
    if (edit_is_empty(v)) {
        if (head.n) edit_cut(e, v->start, v->start, padded(e, " ", head, (str){0}));
        insert_lines(e, yaml_next_line(e->doc, v->start), lines);
    } else if (edit_is_block_scalar(v)) {
        size_t from = head.n ? v->start : without_blanks_before(e, v->start, p->lead);
        edit_cut(e, from, header_end(e, v), head);
        replace_lines(e, yaml_next_line(e->doc, v->start), v->end, lines);
    } else if (edit_is_block(v) && !p->same_line) {
        size_t at = behind_properties(e, v, p);
        if (head.n) edit_cut(e, at, at, padded(e, " ", head, (str){0}));
        replace_lines(e, yaml_next_line(e->doc, at), edit_after(e, v), lines);
    } else {
        size_t from = head.n ? v->start : without_blanks_before(e, v->start, p->lead);
        edit_cut(e, from, edit_tail_end(e, v), head);
        insert_lines(e, edit_after(e, v), lines);
    }
}

static size_t count_spaces(const edit *e, size_t at) {
    size_t n = 0;
    while (at + n < e->doc->source.n && e->doc->source.p[at + n] == ' ') n++;
    return n;
}

// The indentation of a block scalar's text, so that a new text stands in the same column.
static unsigned text_column(const edit *e, const ynode *v, const place *p) {
    size_t body = yaml_next_line(e->doc, v->start);
    bool told = false;
    for (size_t i = v->start; i < header_end(e, v); i++)
        told = told || (e->doc->source.p[i] > '0' && e->doc->source.p[i] <= '9');
    for (size_t at = body; !told && at < v->end; at = yaml_next_line(e->doc, at)) {
        size_t n = count_spaces(e, at);
        if (yaml_eol(e->doc, at) > at + n && n > p->col) return (unsigned)n;
        if (yaml_next_line(e->doc, at) == at) break;
    }
    return p->col + e->step;
}

static void put_block_scalar(edit *e, const ynode *v, const place *p, const ynode *value) {
    bool folded = edit_is_block_scalar(v) && v->style == YSTYLE_FOLDED && yaml_fold_ok(value->text);
    unsigned indent = edit_is_block_scalar(v) ? text_column(e, v, p) : p->col + e->step;
    if (indent - p->col > 9) indent = p->col + e->step; // an indentation indicator has one digit
    buf head = buf_new(e->a, 0), body = buf_new(e->a, 0);
    yaml_block_header(&head, value->text, folded, indent, p->col);
    yaml_block_body(&body, value->text, folded, indent, e->eol);
    str lines = buf_str(&body);
    put_lines(e, v, p, buf_str(&head), str_sub(lines, 0, lines.n - e->eol.n));
}

static void put_block(edit *e, const ynode *v, const place *p, const ynode *value) {
    buf b = buf_new(e->a, 0);
    bool item = !v->key;
    // In place where the value has a column of its own; an item may begin behind its dash.
    if (!edit_is_empty(v) && !edit_is_block_scalar(v) && (item || !p->same_line)) {
        edit_emit_block(e, &b, value, edit_column(e, v->start));
        edit_cut(e, v->start, edit_tail_end(e, v), buf_str(&b));
    } else if (item && edit_is_empty(v)) {
        edit_emit_block(e, &b, value, p->col + 2);
        edit_cut(e, v->start, v->start, padded(e, " ", buf_str(&b), (str){0}));
    } else {
        unsigned at = value->kind == YAML_NODE_LIST && e->dash_at_key && !item ? p->col : p->col + e->step;
        buf_fill(&b, ' ', at);
        edit_emit_block(e, &b, value, at);
        put_lines(e, v, p, (str){0}, buf_str(&b));
    }
}

static ynode_style quotes_of(const ynode *v) {
    return v->kind == YAML_NODE_SCALAR && !v->alias ? v->style : YSTYLE_PLAIN;
}

void edit_replace(edit *e, const ynode *v, const ynode *value) {
    place p = {.colon = true};
    if (edit_in_flow(v)) {
        if (v->key) p = place_of(e, v);
        put_inline(e, v, &p,
                   value->kind == YAML_NODE_SCALAR ? edit_inline(e, value, quotes_of(v), true)
                                                   : edit_inline_flow(e, value));
        return;
    }
    p = place_of(e, v);
    if (!p.colon) { // `? key` alone
        buf b = buf_new(e->a, 0);
        buf_fill(&b, ' ', p.col);
        buf_addc(&b, ':');
        edit_emit_value(e, &b, value, p.col);
        insert_lines(e, yaml_next_line(e->doc, v->start), buf_str(&b));
    } else if (edit_as_block_scalar(e, value, quotes_of(v))) {
        put_block_scalar(e, v, &p, value);
    } else if (edit_as_block(e, value, p.col + 8)) {
        put_block(e, v, &p, value);
    } else if (value->kind == YAML_NODE_SCALAR) {
        put_inline(e, v, &p, edit_inline(e, value, quotes_of(v), false));
    } else {
        put_inline(e, v, &p, edit_inline_flow(e, value));
    }
}

// --- Additions --------------------------------------------------------------------------------------------

// Behind an entry of a flow collection: true when the entry has its lines for itself. *comma: place after a
// comma.
static bool has_own_line(const edit *e, const ynode *last, size_t *comma) {
    str s = e->doc->source;
    size_t at = yaml_skip(s, last->end);
    *comma = at < s.n && s.p[at] == ',' ? at + 1 : 0;
    if (!edit_begins_line(e, edit_entry(e, last))) return false;
    at = *comma && edit_same_line(e, last->end, *comma) ? *comma : last->end;
    while (at < s.n && yaml_blank(s.p[at])) at++;
    return at >= s.n || s.p[at] == '#' || s.p[at] == '\n' || s.p[at] == '\r';
}

static dep_status add_to_flow(edit *e, const ynode *to, str entry) {
    const ynode *last = to->child;
    while (last && last->next) last = last->next;
    if (e->doc->source.p[to->start] != (to->kind == YAML_NODE_MAP ? '{' : '['))
        return err_set(
            e->err, DEP_ERR_REFUSED,
            "`key: value` inside [ ] without braces cannot take a second key; put it in { } first");
    size_t comma;
    if (!last) {
        edit_cut(e, to->start + 1, to->start + 1, entry);
    } else if (has_own_line(e, last, &comma)) {
        unsigned col = edit_column(e, edit_entry(e, last));
        if (!comma) edit_cut(e, last->end, last->end, edit_is_empty(last) ? S(" ,") : S(","));
        insert_lines(e, yaml_next_line(e->doc, comma ? comma : last->end),
                     padded(e, "", padded(e, "", spaces(e, col), entry), comma ? S(",") : (str){0}));
    } else {
        edit_cut(e, last->end, last->end, padded(e, edit_is_empty(last) ? " , " : ", ", entry, (str){0}));
    }
    return DEP_OK;
}

static dep_status add_item(edit *e, const ynode *list, ynode *value) {
    const ynode *last = list->child;
    while (last && last->next) last = last->next;
    if (last) edit_inherit(value, last);
    if (list->style == YSTYLE_FLOW || !last)
        return add_to_flow(e, list,
                           value->kind == YAML_NODE_SCALAR ? edit_inline(e, value, YSTYLE_PLAIN, true)
                                                           : edit_inline_flow(e, value));
    unsigned dash = edit_column(e, list->start), gap = 1;
    size_t at = edit_entry(e, last) + 1;
    if (edit_same_line(e, at, last->outer) && last->outer > at) gap = (unsigned)(last->outer - at);
    buf b = buf_new(e->a, 0);
    buf_fill(&b, ' ', dash);
    buf_addc(&b, '-');
    buf_fill(&b, ' ', gap);
    edit_emit_item(e, &b, value, dash, dash + 1 + gap);
    insert_lines(e, edit_after(e, last), buf_str(&b));
    return DEP_OK;
}

// The present key that stands nearest before `key` in the order; else the last one.
static const ynode *entry_before(const edit *e, const ynode *map, str key) {
    const ynode *last = map->child, *found = NULL;
    while (last->next) last = last->next;
    if (map->parent || !e->order || e->elsewhere) return last;
    for (size_t i = 0; e->order[i]; i++) {
        if (str_eq(str_z(e->order[i]), key)) return found ? found : last;
        const ynode *c = yaml_get(map, str_z(e->order[i]));
        if (c) found = c;
    }
    return last;
}

static dep_status add_key(edit *e, const ynode *map, str key, ynode *value) {
    if (map->style == YSTYLE_FLOW) {
        str text = value->kind == YAML_NODE_SCALAR ? edit_inline(e, value, YSTYLE_PLAIN, true)
                                                   : edit_inline_flow(e, value);
        str name = yaml_scalar_text(e->a, key, true);
        return add_to_flow(e, map, str_fmt(e->a, STR_FMT ": " STR_FMT, STR_ARG(name), STR_ARG(text)));
    }
    unsigned col = edit_column(e, map->start);
    buf b = buf_new(e->a, 0);
    buf_fill(&b, ' ', col);
    buf_add(&b, yaml_scalar_text(e->a, key, false));
    buf_addc(&b, ':');
    edit_emit_value(e, &b, value, col);
    insert_lines(e, edit_after(e, entry_before(e, map, key)), buf_str(&b));
    return DEP_OK;
}

// The first keys of a document that holds comments at most.
static dep_status set_in_empty(edit *e, const ypath *p, ynode *value) {
    ynode *root;
    TRY(edit_wrap(e->a, p, 0, value, &root, e->err));
    buf b = buf_new(e->a, 0);
    root->style = YSTYLE_BLOCK;
    edit_emit_block(e, &b, root, 0);
    insert_lines(e, e->doc->source.n, buf_str(&b));
    return DEP_OK;
}

static dep_status check_key(const edit *e, str key) {
    enum { LONGEST = 1000 }; // libyaml reads 1024 characters ahead for the `:`
    if (key.n <= LONGEST) return DEP_OK;
    return err_set(e->err, DEP_ERR_LIMIT, "a key has at most %d bytes", LONGEST);
}

dep_status edit_set(edit *e, const ypath *p, ynode *value) {
    ynode *n, *wrapped;
    size_t found;
    for (size_t i = 0; i < p->n; i++) TRY(check_key(e, p->p[i].key));
    if (!e->doc->root) return set_in_empty(e, p, value);
    TRY(edit_walk(e->a, e->doc->root, p, &n, &found, e->err));
    if (found == p->n || (n->kind == YAML_NODE_SCALAR && n->parent)) {
        TRY(edit_check_anchors(e->a, e->doc, n, true, false, e->err));
        TRY(edit_wrap(e->a, p, found, value, &wrapped, e->err));
        if (found == p->n && !n->alias) edit_inherit(wrapped, n);
        edit_replace(e, n, wrapped);
        return DEP_OK;
    }
    TRY(edit_check_anchors(e->a, e->doc, n, false, false, e->err));
    TRY(edit_wrap(e->a, p, found + 1, value, &wrapped, e->err));
    return n->kind == YAML_NODE_LIST ? add_item(e, n, wrapped) : add_key(e, n, p->p[found].key, wrapped);
}

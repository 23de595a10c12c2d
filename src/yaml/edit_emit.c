// edit_emit: nodes as YAML text, for one place in a document. Nothing here ends with a line end: what follows
// the place already begins with one.
#include "yaml/edit_int.h"
#include <deputy/utf8.h>

enum { WIDTH = 100 }; // columns that a flow collection may fill

void edit_inherit(ynode *value, const ynode *old) {
    if (value->kind == YAML_NODE_SCALAR || value->kind != old->kind) return;
    value->style = old->style;
    for (ynode *c = value->child; c; c = c->next) {
        const ynode *like = value->kind == YAML_NODE_MAP ? yaml_get(old, c->key->text) : old->child;
        if (like) edit_inherit(c, like);
    }
}

static bool is_typed(const ynode *n) {
    int64_t i;
    bool b;
    return n->style == YSTYLE_PLAIN && (yaml_is_null(n) || yaml_bool(n, &b) || yaml_int(n, &i));
}

bool edit_as_block_scalar(const edit *e, const ynode *v, ynode_style old) {
    if (v->kind != YAML_NODE_SCALAR || e->no_blocks || is_typed(v)) return false;
    bool was = old == YSTYLE_LITERAL || old == YSTYLE_FOLDED;
    return (was || str_chr(v->text, '\n') != SIZE_MAX) && yaml_block_ok(v->text, true);
}

str edit_inline(const edit *e, const ynode *v, ynode_style old, bool flow) {
    if (is_typed(v)) return v->text.n ? str_dup(e->a, v->text) : S("null");
    bool plain = v->style == YSTYLE_PLAIN;
    if (old == YSTYLE_SINGLE || old == YSTYLE_DOUBLE)
        return yaml_quote_as(e->a, v->text, old == YSTYLE_DOUBLE);
    if (yaml_plain_ok(v->text, flow) && (plain || !yaml_looks_typed(v->text))) return str_dup(e->a, v->text);
    if (v->style == YSTYLE_SINGLE || v->style == YSTYLE_DOUBLE)
        return yaml_quote_as(e->a, v->text, v->style == YSTYLE_DOUBLE);
    return yaml_quote(e->a, v->text, true);
}

static void emit_flow(const edit *e, buf *b, const ynode *v) {
    if (v->kind == YAML_NODE_SCALAR) {
        buf_add(b, edit_inline(e, v, YSTYLE_PLAIN, true));
        return;
    }
    bool map = v->kind == YAML_NODE_MAP;
    buf_addc(b, map ? '{' : '[');
    for (const ynode *c = v->child; c; c = c->next) {
        if (c != v->child) buf_add(b, S(", "));
        if (map) {
            buf_add(b, yaml_scalar_text(e->a, c->key->text, true));
            buf_add(b, S(": "));
        }
        emit_flow(e, b, c);
    }
    buf_addc(b, map ? '}' : ']');
}

str edit_inline_flow(const edit *e, const ynode *v) {
    buf b = buf_new(e->a, 0);
    emit_flow(e, &b, v);
    return buf_str(&b);
}

static bool holds_lines(const ynode *v) {
    if (v->kind == YAML_NODE_SCALAR) return str_chr(v->text, '\n') != SIZE_MAX;
    for (const ynode *c = v->child; c; c = c->next)
        if (holds_lines(c)) return true;
    return false;
}

bool edit_as_block(const edit *e, const ynode *v, unsigned col) {
    if (v->kind == YAML_NODE_SCALAR || v->count == 0) return false;
    if (v->style == YSTYLE_BLOCK) return true;
    if (holds_lines(v) && !e->no_blocks) return true;
    buf b = buf_new(e->a, 0);
    emit_flow(e, &b, v);
    return col + utf8_width(buf_str(&b)) > WIDTH;
}

// Header and body, the last line end left off.
static void emit_block_scalar(const edit *e, buf *b, str text, unsigned parent) {
    buf body = buf_new(e->a, 0);
    unsigned indent = parent + e->step;
    yaml_block_header(b, text, false, indent, parent);
    buf_add(b, e->eol);
    yaml_block_body(&body, text, false, indent, e->eol);
    buf_add(b, str_sub(buf_str(&body), 0, body.n - e->eol.n));
}

static void emit_one_line(const edit *e, buf *b, const ynode *v) {
    if (v->kind == YAML_NODE_SCALAR) {
        buf_add(b, edit_inline(e, v, YSTYLE_PLAIN, false));
    } else {
        emit_flow(e, b, v);
    }
}

void edit_emit_value(const edit *e, buf *b, const ynode *v, unsigned col) {
    if (edit_as_block_scalar(e, v, YSTYLE_PLAIN)) {
        buf_addc(b, ' ');
        emit_block_scalar(e, b, v->text, col);
    } else if (edit_as_block(e, v, col + 8)) {
        unsigned at = v->kind == YAML_NODE_LIST && e->dash_at_key ? col : col + e->step;
        buf_add(b, e->eol);
        buf_fill(b, ' ', at);
        edit_emit_block(e, b, v, at);
    } else {
        buf_addc(b, ' ');
        emit_one_line(e, b, v);
    }
}

void edit_emit_item(const edit *e, buf *b, const ynode *v, unsigned dash, unsigned col) {
    if (edit_as_block_scalar(e, v, YSTYLE_PLAIN)) {
        emit_block_scalar(e, b, v->text, dash);
    } else if (edit_as_block(e, v, col)) {
        edit_emit_block(e, b, v, col);
    } else {
        emit_one_line(e, b, v);
    }
}

void edit_emit_block(const edit *e, buf *b, const ynode *v, unsigned col) {
    for (const ynode *c = v->child; c; c = c->next) {
        if (c != v->child) {
            buf_add(b, e->eol);
            buf_fill(b, ' ', col);
        }
        if (v->kind == YAML_NODE_MAP) {
            buf_add(b, yaml_scalar_text(e->a, c->key->text, false));
            buf_addc(b, ':');
            edit_emit_value(e, b, c, col);
        } else {
            buf_add(b, S("- "));
            edit_emit_item(e, b, c, col, col + 2);
        }
    }
}

// place: from byte offsets to lines and columns, and diagnostics that point at nodes.
#include "yaml/yaml_int.h"
#include <deputy/utf8.h>

static size_t line_index(const ydoc *doc, size_t offset) {
    size_t low = 0, high = doc->n_lines;
    while (high - low > 1) {
        size_t mid = low + (high - low) / 2;
        if (doc->lines[mid] <= offset) {
            low = mid;
        } else {
            high = mid;
        }
    }
    return low;
}

// A line's start without the BOM.
static size_t line_start(const ydoc *doc, size_t index) {
    return index == 0 && doc->bom ? 3 : doc->lines[index];
}

size_t yaml_bol(const ydoc *doc, size_t at) {
    return line_start(doc, line_index(doc, at));
}

size_t yaml_next_line(const ydoc *doc, size_t at) {
    size_t i = line_index(doc, at);
    return i + 1 < doc->n_lines ? doc->lines[i + 1] : doc->source.n;
}

size_t yaml_eol(const ydoc *doc, size_t at) {
    size_t end = yaml_next_line(doc, at);
    if (end > 0 && line_index(doc, at) + 1 < doc->n_lines) {
        end--;
        if (end > 0 && doc->source.p[end - 1] == '\r') end--;
    }
    return end;
}

void yaml_place(const ydoc *doc, size_t offset, uint32_t *line, uint32_t *column) {
    if (offset > doc->source.n) offset = doc->source.n;
    size_t i = line_index(doc, offset), from = line_start(doc, i);
    *line = (uint32_t)i + 1;
    *column = (uint32_t)utf8_count(str_sub(doc->source, from, offset)) + 1;
}

str yaml_line(const ydoc *doc, uint32_t line) {
    if (line == 0 || line > doc->n_lines) return (str){0};
    size_t from = line_start(doc, line - 1);
    return str_sub(doc->source, from, yaml_eol(doc, from));
}

size_t yaml_skip(str s, size_t at) {
    while (at < s.n) {
        if (s.p[at] == '#') {
            while (at < s.n && s.p[at] != '\n' && s.p[at] != '\r') at++;
        } else if (memchr(" \t\r\n", s.p[at], 4)) {
            at++;
        } else {
            break;
        }
    }
    return at;
}

void yaml_diag_span(const ydoc *doc, const ynode *n, size_t from, size_t to, diags *d, diag base) {
    base.file = doc->file;
    if (d->items.n >= DIAG_MAX) { // it will only be counted, and places in long lines are not cheap
        diags_add(d, base);
        return;
    }
    yaml_place(doc, from, &base.line, &base.column);
    size_t eol = yaml_eol(doc, from), stop = to < eol ? to : eol;
    uint32_t line;
    if (stop > from) yaml_place(doc, stop, &line, &base.end);
    base.source = yaml_line(doc, base.line);
    if (base.source.n > YAML_LINE_SHOWN_MAX) base.source = (str){0};
    if (n && base.path.n == 0) base.path = utf8_cut(yaml_pointer(d->a, n), YAML_LINE_SHOWN_MAX);
    diags_add(d, base);
}

void yaml_diag(const ydoc *doc, const ynode *n, diags *d, diag base) {
    if (n) {
        yaml_diag_span(doc, n, n->start, n->end, d, base);
    } else {
        base.file = doc->file;
        diags_add(d, base);
    }
}

void yaml_diag_key(const ydoc *doc, const ynode *value, diags *d, diag base) {
    const ynode *key = value && value->key ? value->key : value;
    if (!key) {
        yaml_diag(doc, NULL, d, base);
    } else {
        yaml_diag_span(doc, value, key->start, key->end, d, base);
    }
}

static void add_escaped(buf *b, str key) {
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~') {
            buf_add(b, S("~0"));
        } else if (key.p[i] == '/') {
            buf_add(b, S("~1"));
        } else {
            buf_addc(b, key.p[i]);
        }
    }
}

static void add_pointer(buf *b, const ynode *n) {
    if (!n->parent) return;
    add_pointer(b, n->parent);
    buf_addc(b, '/');
    if (n->key) {
        add_escaped(b, n->key->text);
        return;
    }
    size_t i = 0;
    for (const ynode *c = n->parent->child; c && c != n; c = c->next) i++;
    buf_addf(b, "%zu", i);
}

str yaml_pointer(arena *a, const ynode *n) {
    buf b = buf_new(a, 0);
    add_pointer(&b, n);
    return buf_str(&b);
}

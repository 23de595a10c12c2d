// keytab_names: entries of list values, near names, and finding rows.
#include "yaml/keytab_int.h"

// --- Entries ----------------------------------------------------------------------------------------------

// Where the text of a one-line scalar begins in the source, when it stands there letter by letter; else 0.
static size_t text_at(const ydoc *doc, const ynode *n) {
    if (n->alias || n->start >= n->end || n->end > doc->source.n) return 0;
    size_t quote = n->style == YSTYLE_SINGLE || n->style == YSTYLE_DOUBLE;
    if (n->style != YSTYLE_PLAIN && !quote) return 0;
    str written = str_sub(doc->source, n->start + quote, n->end - quote);
    return str_eq(written, n->text) ? n->start + quote : 0;
}

static bool is_separator(char c) {
    return c == ',' || c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool split(arena *a, const ydoc *doc, const ynode *n, key_items *ret) {
    str s = n->text;
    size_t base = text_at(doc, n), depth = 0, from = SIZE_MAX;
    bool balanced = true;
    for (size_t i = 0; i <= s.n; i++) {
        bool separator = i == s.n || (depth == 0 && is_separator(s.p[i]));
        if (separator && from != SIZE_MAX) {
            vec_push(a, ret,
                     (key_item){.text = str_sub(s, from, i), .node = n, .at = base ? base + from : 0});
            from = SIZE_MAX;
        } else if (!separator && from == SIZE_MAX) {
            from = i;
        }
        if (i == s.n) break;
        if (s.p[i] == '(') depth++;
        if (s.p[i] == ')' && depth == 0) balanced = false;
        if (s.p[i] == ')' && depth) depth--;
    }
    return balanced && depth == 0;
}

bool keytab_names(arena *a, const ydoc *doc, const ynode *value, key_items *ret) {
    if (value && value->kind == YAML_NODE_SCALAR && !yaml_is_null(value)) return split(a, doc, value, ret);
    keytab_strings(a, value, ret);
    return true;
}

void keytab_strings(arena *a, const ynode *value, key_items *ret) {
    if (!value || value->kind == YAML_NODE_MAP || yaml_is_null(value)) return;
    if (value->kind == YAML_NODE_SCALAR) {
        vec_push(a, ret, (key_item){.text = value->text, .node = value, .at = value->start});
        return;
    }
    for (const ynode *c = value->child; c; c = c->next)
        if (c->kind == YAML_NODE_SCALAR && !yaml_is_null(c))
            vec_push(a, ret, (key_item){.text = c->text, .node = c, .at = c->start});
}

// --- Near names -------------------------------------------------------------------------------------------

size_t keytab_distance(str name, str key) {
    size_t limit = name.n < 8 ? 2 : 3;
    // Told from the lengths alone for most: a hostile file may have many long keys.
    if (name.n > key.n + limit || key.n > name.n + limit) return SIZE_MAX;
    size_t d = str_distance(name, key, limit);
    return d <= limit && d * 2 < name.n ? d : SIZE_MAX;
}

bool keytab_is_prefix(const key_row *row) {
    return str_ends(str_z(row->name), S("*"));
}

const char *keytab_nearest(const key_row *rows, str key) {
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (const key_row *r = rows; r && r->name; r++) {
        size_t d = keytab_is_prefix(r) ? SIZE_MAX : keytab_distance(str_z(r->name), key);
        if (d >= least) continue;
        least = d;
        best = r->name;
    }
    return best;
}

str nearest_name(str name, const str *names, size_t n) {
    str best = {0};
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t d = keytab_distance(names[i], name);
        if (d >= least) continue;
        least = d;
        best = names[i];
    }
    return best;
}

// --- Rows -------------------------------------------------------------------------------------------------

const key_row *keytab_row(const key_row *rows, str key) {
    for (const key_row *r = rows; r && r->name; r++)
        if (str_eq(str_z(r->name), key)) return r;
    for (const key_row *r = rows; r && r->name; r++) {
        str name = str_z(r->name);
        if (keytab_is_prefix(r) && key.n >= name.n && str_starts(key, str_sub(name, 0, name.n - 1))) return r;
    }
    return NULL;
}

const key_row *keytab_find(const key_table *t, str path) {
    const key_row *rows = t->rows, *r = NULL;
    str part;
    for (bool more = path.n > 0; more;) {
        more = str_cut(path, '.', &part, &path);
        r = keytab_row(rows, part);
        if (!r) return NULL;
        rows = r->sub;
    }
    return r;
}

bool keytab_micro(str text, int64_t *ret) {
    str whole, part;
    int64_t micro = 0;
    bool point = str_cut(text, '.', &whole, &part), over = false;
    if (!whole.n || (point && !part.n) || part.n > KEY_DECIMALS) return false;
    for (size_t i = 0; i < whole.n + KEY_DECIMALS; i++) {
        size_t at = i - whole.n; // behind the point; what is not written there is 0
        char c = i < whole.n ? whole.p[i] : at < part.n ? part.p[at] : '0';
        if (c < '0' || c > '9') return false;
        over = over || __builtin_mul_overflow(micro, 10, &micro) ||
               __builtin_add_overflow(micro, c - '0', &micro);
    }
    *ret = over ? INT64_MAX : micro;
    return true;
}

bool keytab_is_list(key_type t) {
    return t == KEY_NAMES || t == KEY_NAMES_OR_ALL || t == KEY_STRINGS || t == KEY_MAPS ||
           t == KEY_NAMES_OR_MAPS;
}

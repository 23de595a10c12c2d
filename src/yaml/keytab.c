// keytab: checking a document against a table of keys. Knows rows and nodes, not their meaning. What is
// unknown is a warning, unless it could be a restriction that was meant: then it is an error, because a
// misspelt restriction must not run unrestricted (rule B10).
#include <deputy/keytab.h>
#include <deputy/utf8.h>
#include <stdio.h>

typedef struct {
    arena *a;
    const key_table *t;
    const ydoc *doc;
    diags *d;
    bool strict;
} ctx;

static void check_map(ctx *c, const key_row *rows, bool closed, const ynode *map, str path);

static diag make(const ctx *c, diag_severity sev, const char *code, str msg, str hint) {
    if (c->strict && sev == SEV_WARNING) sev = SEV_ERROR;
    return (diag){.severity = sev, .code = code, .msg = msg, .hint = hint};
}

static void at_value(ctx *c, const ynode *n, diag_severity sev, const char *code, str msg, str hint) {
    yaml_diag(c->doc, n, c->d, make(c, sev, code, msg, hint));
}

static void at_key(ctx *c, const ynode *n, diag_severity sev, const char *code, str msg, str hint) {
    yaml_diag_key(c->doc, n, c->d, make(c, sev, code, msg, hint));
}

// --- Look-ups
// -------------------------------------------------------------------------------------------------------------------

static bool row_matches(const key_row *row, str key) {
    str name = str_z(row->name);
    if (str_ends(name, S("*"))) return str_starts(key, str_sub(name, 0, name.n - 1));
    return str_eq(name, key);
}

static const key_row *row_find(const key_row *rows, str key) {
    for (const key_row *r = rows; r && r->name; r++)
        if (row_matches(r, key)) return r;
    return NULL;
}

const key_row *keytab_find(const key_table *t, str path) {
    const key_row *rows = t->rows, *row = NULL;
    str part;
    bool more = true;
    while (more) {
        more = str_cut(path, '.', &part, &path);
        row = row_find(rows, part);
        if (!row) return NULL;
        rows = row->sub;
    }
    return row;
}

// How far apart two names may be and still look like a slip of the pen.
static size_t slip(str name) {
    return name.n <= 3 ? 1 : name.n <= 7 ? 2 : 3;
}

const char *keytab_nearest(const key_row *rows, str key) {
    const char *best = NULL;
    size_t best_d = SIZE_MAX;
    for (const key_row *r = rows; r && r->name; r++) {
        str name = str_z(r->name);
        if (str_ends(name, S("*"))) continue;
        size_t limit = slip(name), d = str_distance(key, name, limit);
        if (d <= limit && d < best_d) best_d = d, best = r->name;
    }
    return best;
}

str nearest_name(str name, const str *names, size_t n) {
    str best = {0};
    size_t best_d = SIZE_MAX;
    for (size_t i = 0; i < n; i++) {
        size_t limit = slip(names[i]), d = str_distance(name, names[i], limit);
        if (d <= limit && d < best_d) best_d = d, best = names[i];
    }
    return best;
}

static const key_moved *moved_find(const ctx *c, str path) {
    for (const key_moved *m = c->t->moved; m && m->path; m++)
        if (str_eq(str_z(m->path), path)) return m;
    return NULL;
}

// --- Lists
// ------------------------------------------------------------------------------------------------------------------------

// Where the scalar's text stands in the source, when it stands there letter for letter.
static size_t text_at(const ydoc *doc, const ynode *n) {
    size_t from = n->start + (n->style == YSTYLE_SINGLE || n->style == YSTYLE_DOUBLE);
    return str_eq(str_sub(doc->source, from, from + n->text.n), n->text) ? from : 0;
}

static bool split(arena *a, const ydoc *doc, const ynode *n, key_items *ret) {
    str s = n->text;
    size_t from = 0, base = text_at(doc, n);
    int depth = 0;
    for (size_t i = 0; i <= s.n; i++) {
        char ch = i < s.n ? s.p[i] : ',';
        depth += (ch == '(') - (ch == ')');
        if (depth < 0) return false;
        bool gap = ch == ',' || ch == ' ' || ch == '\t' || ch == '\n';
        if (i < s.n && (depth > 0 || !gap)) continue;
        if (i > from)
            vec_push(a, ret,
                     ((key_item){.text = str_sub(s, from, i), .node = n, .at = base ? base + from : 0}));
        from = i + 1;
    }
    return depth == 0;
}

bool keytab_names(arena *a, const ydoc *doc, const ynode *value, key_items *ret) {
    if (value->kind == YAML_NODE_SCALAR) return yaml_is_null(value) || split(a, doc, value, ret);
    for (const ynode *e = value->child; e && value->kind == YAML_NODE_LIST; e = e->next)
        if (e->kind == YAML_NODE_SCALAR && str_trim(e->text).n)
            vec_push(a, ret, ((key_item){.text = str_trim(e->text), .node = e, .at = e->start}));
    return true;
}

void keytab_strings(arena *a, const ynode *value, key_items *ret) {
    if (value->kind == YAML_NODE_SCALAR && !yaml_is_null(value))
        vec_push(a, ret, ((key_item){.text = value->text, .node = value, .at = value->start}));
    for (const ynode *e = value->child; e && value->kind == YAML_NODE_LIST; e = e->next)
        if (e->kind == YAML_NODE_SCALAR)
            vec_push(a, ret, ((key_item){.text = e->text, .node = e, .at = e->start}));
}

// --- Values
// -------------------------------------------------------------------------------------------------------------------------

static const char *kind_word(const ynode *n) {
    static const char *const words[] = {"a single value", "a list", "a mapping"};
    return words[n->kind];
}

static const char *wanted_word(key_type t) {
    static const char *const words[] = {
        [KEY_STRING] = "a single value",
        [KEY_TEXT] = "text",
        [KEY_INT] = "a whole number",
        [KEY_BOOL] = "true or false",
        [KEY_ENUM] = "one of its values",
        [KEY_NAMES] = "a list of names, or names separated by commas",
        [KEY_NAMES_OR_ALL] = "a list of names, names separated by commas, or `all`",
        [KEY_STRINGS] = "a single value or a list of them",
        [KEY_MAP] = "a mapping",
        [KEY_MAPS] = "a list of mappings",
        [KEY_NAMES_OR_MAPS] = "a list of names or mappings",
        [KEY_NAMED_MAPS] = "a mapping from names to mappings",
        [KEY_STRING_MAP] = "a mapping from names to values",
        [KEY_ANY] = "anything",
    };
    return words[t];
}

static void wrong_type(ctx *c, const key_row *row, const ynode *n) {
    at_value(c, n, SEV_ERROR, "KEY002",
             str_fmt(c->a, "`%s` must be %s, not %s", row->name, wanted_word(row->type), kind_word(n)),
             (str){0});
}

static void too_many(ctx *c, const key_row *row, const ynode *n, size_t count) {
    if (row->max > 0 && count > (size_t)row->max)
        at_value(c, n, SEV_ERROR, "KEY007",
                 str_fmt(c->a, "`%s` has %zu entries; at most %lld are allowed", row->name, count,
                         (long long)row->max),
                 (str){0});
}

static void check_length(ctx *c, const key_row *row, const ynode *n) {
    size_t count = utf8_count(n->text);
    if (row->max > 0 && count > (size_t)row->max)
        at_value(c, n, SEV_ERROR, "KEY003",
                 str_fmt(c->a, "`%s` has %zu characters; at most %lld are allowed", row->name, count,
                         (long long)row->max),
                 (str){0});
    // An empty text is the reader's own fault to name, where it has a better word for it.
    if (count && row->min > 0 && count < (size_t)row->min)
        at_value(c, n, SEV_ERROR, "KEY003",
                 str_fmt(c->a, "`%s` needs at least %lld characters", row->name, (long long)row->min),
                 (str){0});
}

static void check_int(ctx *c, const key_row *row, const ynode *n) {
    int64_t v;
    if (!yaml_int(n, &v)) {
        at_value(c, n, SEV_ERROR, "KEY002",
                 str_fmt(c->a, "`%s` must be a whole number, not \"" STR_FMT "\"", row->name,
                         STR_ARG(utf8_cut(n->text, 60))),
                 (str){0});
    } else if (v < row->min || (row->max && v > row->max)) {
        at_value(c, n, SEV_ERROR, "KEY003",
                 str_fmt(c->a, "`%s` is %lld; it must be from %lld to %lld", row->name, (long long)v,
                         (long long)row->min, (long long)row->max),
                 (str){0});
    }
}

static void check_enum(ctx *c, const key_row *row, const ynode *n) {
    strs values = {0};
    for (const char *const *v = row->values; *v; v++) {
        if (str_eq(str_z(*v), n->text)) return;
        vec_push(c->a, &values, str_z(*v));
    }
    str near = nearest_name(n->text, values.p, values.n), all = str_join(c->a, values.p, values.n, S(", "));
    at_value(c, n, SEV_ERROR, "KEY004",
             str_fmt(c->a, "`%s` is \"" STR_FMT "\"; it must be one of: " STR_FMT, row->name,
                     STR_ARG(utf8_cut(n->text, 60)), STR_ARG(all)),
             near.n ? str_fmt(c->a, "write `%s: " STR_FMT "`", row->name, STR_ARG(near)) : (str){0});
}

static void check_scalar(ctx *c, const key_row *row, const ynode *n) {
    bool b;
    if (n->kind != YAML_NODE_SCALAR) {
        wrong_type(c, row, n);
    } else if (row->type == KEY_INT) {
        check_int(c, row, n);
    } else if (row->type == KEY_ENUM) {
        check_enum(c, row, n);
    } else if (row->type == KEY_BOOL && !yaml_bool(n, &b)) {
        at_value(c, n, SEV_ERROR, "KEY002",
                 str_fmt(c->a, "`%s` must be true or false, not \"" STR_FMT "\"", row->name,
                         STR_ARG(utf8_cut(n->text, 60))),
                 (str){0});
    } else if (row->type == KEY_STRING || row->type == KEY_TEXT) {
        check_length(c, row, n);
    }
}

// A mapping where a list belongs: another host's form, or plainly wrong.
static void check_map_for_list(ctx *c, const key_row *row, const ynode *n, str path) {
    bool known = false;
    for (const ynode *v = n->child; v; v = v->next) {
        const key_moved *m =
            moved_find(c, str_fmt(c->a, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(v->key->text)));
        if (!m) continue;
        known = true;
        at_key(c, v, m->severity, "KEY006", str_fmt(c->a, "`%s` is not how Deputy spells it", m->path),
               str_z(m->hint));
    }
    if (!known) wrong_type(c, row, n);
}

static void check_list(ctx *c, const key_row *row, const ynode *n, str path) {
    bool maps_ok = row->type == KEY_MAPS || row->type == KEY_NAMES_OR_MAPS,
         scalars_ok = row->type != KEY_MAPS;
    if (n->kind == YAML_NODE_MAP) {
        check_map_for_list(c, row, n, path);
        return;
    }
    if (n->kind == YAML_NODE_SCALAR) {
        key_items items = {0};
        if (row->type == KEY_MAPS) {
            wrong_type(c, row, n);
        } else if (row->type != KEY_STRINGS && !split(c->a, c->doc, n, &items)) {
            at_value(c, n, SEV_ERROR, "KEY010",
                     str_fmt(c->a, "`%s` has a parenthesis without its partner", row->name), (str){0});
        } else {
            too_many(c, row, n, items.n);
        }
        return;
    }
    too_many(c, row, n, n->count);
    for (const ynode *e = n->child; e; e = e->next) {
        if (e->kind == YAML_NODE_MAP && maps_ok) {
            check_map(c, row->sub, row->flags & KEY_STRICT, e, path);
        } else if (e->kind != YAML_NODE_SCALAR || !scalars_ok) {
            at_value(c, e, SEV_ERROR, "KEY002",
                     str_fmt(c->a, "an entry of `%s` is %s; it must be %s", row->name, kind_word(e),
                             maps_ok && !scalars_ok ? "a mapping" : "a single value"),
                     (str){0});
        } else if (yaml_is_null(e) || !str_trim(e->text).n) {
            at_value(c, e, SEV_ERROR, "KEY002", str_fmt(c->a, "an entry of `%s` is empty", row->name),
                     S("remove it, or give it a value"));
        }
    }
}

static void check_named(ctx *c, const key_row *row, const ynode *n, str path) {
    if (n->kind != YAML_NODE_MAP) {
        wrong_type(c, row, n);
        return;
    }
    too_many(c, row, n, n->count);
    for (const ynode *v = n->child; v; v = v->next) {
        if (row->type == KEY_NAMED_MAPS && v->kind == YAML_NODE_MAP) {
            check_map(c, row->sub, row->flags & KEY_STRICT, v, path);
        } else if (row->type == KEY_NAMED_MAPS || v->kind != YAML_NODE_SCALAR) {
            at_value(c, v, SEV_ERROR, "KEY002",
                     str_fmt(c->a, "`" STR_FMT "` must be %s", STR_ARG(v->key->text),
                             row->type == KEY_NAMED_MAPS ? "a mapping" : "a single value"),
                     (str){0});
        }
    }
}

static void check_value(ctx *c, const key_row *row, const ynode *n, str path) {
    if (row->flags & KEY_NOT_YET) {
        at_key(c, n, row->flags & KEY_RESTRICTS ? SEV_ERROR : SEV_WARNING, "KEY009",
               str_fmt(c->a, "`%s`: not yet; this version does not read it", row->name), (str){0});
        return;
    }
    if (row->type == KEY_ANY) return;
    if (yaml_is_null(n) && n->kind == YAML_NODE_SCALAR) {
        // Required ones are named as missing. A restriction without a value is no restriction that anybody
        // meant.
        if (!(row->flags & KEY_REQUIRED))
            at_key(c, n, row->flags & KEY_RESTRICTS ? SEV_ERROR : SEV_WARNING, "KEY002",
                   str_fmt(c->a, "`%s` has no value", row->name), S("give it one, or remove the key"));
        return;
    }
    switch (row->type) {
    case KEY_MAP:
        if (n->kind == YAML_NODE_MAP) {
            check_map(c, row->sub, row->flags & KEY_STRICT, n, path);
        } else {
            wrong_type(c, row, n);
        }
        break;
    case KEY_NAMES:
    case KEY_NAMES_OR_ALL:
    case KEY_STRINGS:
    case KEY_MAPS:
    case KEY_NAMES_OR_MAPS: check_list(c, row, n, path); break;
    case KEY_NAMED_MAPS:
    case KEY_STRING_MAP: check_named(c, row, n, path); break;
    default: check_scalar(c, row, n);
    }
}

// --- Mappings
// -----------------------------------------------------------------------------------------------------------------------

static void unknown_key(ctx *c, const key_row *rows, bool closed, const ynode *n, str path) {
    str key = n->key->text;
    const key_moved *m = moved_find(c, path);
    if (m) {
        // Inside a closed mapping even a harmless spelling is something that was meant and is not read.
        at_key(c, n, closed ? SEV_ERROR : m->severity, "KEY006",
               str_fmt(c->a, "`" STR_FMT "` is not how Deputy spells it", STR_ARG(key)), str_z(m->hint));
        return;
    }
    const char *near = keytab_nearest(rows, key);
    const key_row *near_row = near ? row_find(rows, str_z(near)) : NULL;
    bool error = closed || (near_row && near_row->flags & KEY_RESTRICTS);
    str hint = near     ? str_fmt(c->a, "did you mean `%s`?", near)
               : closed ? S("remove it: here every key counts")
                        : S("remove it, or keep it as `x-…` for other programs");
    at_key(c, n, error ? SEV_ERROR : SEV_WARNING, error ? "KEY008" : "KEY001",
           str_fmt(c->a, "unknown key `" STR_FMT "`%s", STR_ARG(utf8_cut(key, 100)),
                   error ? "" : ": it is kept and not read"),
           hint);
}

static void check_map(ctx *c, const key_row *rows, bool closed, const ynode *map, str path) {
    for (const ynode *v = map->child; v; v = v->next) {
        if (!v->key || v->key->kind != YAML_NODE_SCALAR) continue;
        str below =
            path.n ? str_fmt(c->a, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(v->key->text)) : v->key->text;
        const key_row *row = row_find(rows, v->key->text);
        if (row) {
            check_value(c, row, v, below);
        } else {
            unknown_key(c, rows, closed, v, below);
        }
    }
    for (const key_row *r = rows; r && r->name; r++) {
        if (!(r->flags & KEY_REQUIRED)) continue;
        const ynode *v = yaml_get(map, str_z(r->name));
        if (!v || (v->kind == YAML_NODE_SCALAR && yaml_is_null(v)))
            at_value(c,
                     v        ? v
                     : path.n ? map
                              : NULL,
                     SEV_ERROR, "KEY005", str_fmt(c->a, "`%s` is missing", r->name),
                     str_fmt(c->a, "add `%s: …`", r->name));
    }
}

void keytab_check(const key_table *t, const ydoc *doc, diags *d, bool strict) {
    ctx c = {.a = d->a, .t = t, .doc = doc, .d = d, .strict = strict};
    if (doc->root && doc->root->kind == YAML_NODE_MAP) check_map(&c, t->rows, false, doc->root, (str){0});
}

// keytab: a document checked against its table: unknown, misspelt, foreign and reserved keys, types, ranges.
// What a value means is not known here. A misspelt restriction must never be passed over, so near misses of
// restricting keys are errors where others are warnings.
#include "yaml/keytab_int.h"
#include <deputy/utf8.h>

typedef struct {
    arena *a;
    const key_table *t;
    const ydoc *doc;
    diags *d;
    bool strict; // warnings are errors
} check;

// A mapping on the way down.
typedef struct {
    const key_row *rows;
    str path;    // dotted, without indexes and free names
    bool closed; // every unknown key is an error
} level;

static void check_value(const check *c, const key_row *row, const level *at, const ynode *v);

static diag error_of(const char *code, str msg, str hint) {
    return (diag){.severity = SEV_ERROR, .code = code, .msg = msg, .hint = hint};
}

static void at_value(const check *c, const ynode *v, const char *code, str msg, str hint) {
    // An empty value has no place of its own.
    if (v->key && v->start == v->end) {
        yaml_diag_key(c->doc, v, c->d, error_of(code, msg, hint));
    } else {
        yaml_diag(c->doc, v, c->d, error_of(code, msg, hint));
    }
}

static str join(arena *a, str path, str key) {
    return path.n ? str_fmt(a, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(key)) : str_dup(a, key);
}

// A key for messages: cut, since a hostile file may have long ones.
static str shown(str key) {
    return utf8_cut_chars(key, 60);
}

// --- Keys -------------------------------------------------------------------------------------------------

static const key_moved *find_moved(const check *c, str path) {
    for (const key_moved *m = c->t->moved; m && m->path; m++)
        if (str_ieq(str_z(m->path), path)) return m;
    return NULL;
}

// At the level's own keys alone: `exec` is no near miss of `net` because both stand in `permissions`.
static const key_moved *near_moved(const check *c, const level *at, str key) {
    for (const key_moved *m = c->t->moved; m && m->path; m++) {
        str name = str_z(m->path);
        if (at->path.n) {
            bool here = str_starts(name, at->path) && name.n > at->path.n && name.p[at->path.n] == '.';
            name = here ? str_sub(name, at->path.n + 1, name.n) : (str){0};
        }
        if (name.n && m->severity == SEV_ERROR && keytab_distance(name, key) != SIZE_MAX) return m;
    }
    return NULL;
}

// near: the key is not that spelling, only close to it.
static void report_moved(const check *c, const level *at, const ynode *v, const key_moved *m, str key,
                         bool near) {
    diag e = error_of("KEY006",
                      str_fmt(c->a, "`" STR_FMT "` is not a key of a %s", STR_ARG(shown(key)), c->t->what),
                      near ? str_fmt(c->a, "if you meant `%s`: %s", m->path, m->hint) : str_z(m->hint));
    e.severity = (c->strict || at->closed) && m->severity == SEV_WARNING ? SEV_ERROR : m->severity;
    yaml_diag_key(c->doc, v, c->d, e);
}

// A nearest row that restricts, even when another one is nearer still.
static const char *near_restriction(const key_row *rows, str key) {
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (const key_row *r = rows; r && r->name; r++) {
        size_t d = r->flags & KEY_RESTRICTS ? keytab_distance(str_z(r->name), key) : SIZE_MAX;
        if (d >= least) continue;
        least = d;
        best = r->name;
    }
    return best;
}

enum { TABLE_DEPTH = 8 };

typedef struct {
    const char *parts[TABLE_DEPTH];
    size_t n;
    bool restricts;
} elsewhere;

// The place in the table where a key of that name belongs; restricting ones first.
static void find_elsewhere(const key_row *rows, elsewhere here, str key, elsewhere *best) {
    if (here.n == TABLE_DEPTH) return;
    for (const key_row *r = rows; r && r->name; r++) {
        elsewhere at = here;
        at.restricts = here.restricts || r->flags & KEY_RESTRICTS;
        at.parts[at.n++] = r->name;
        if (at.n > 1 && str_eq(str_z(r->name), key) && (!best->n || (at.restricts && !best->restricts)))
            *best = at;
        find_elsewhere(r->sub, at, key, best);
    }
}

static str elsewhere_path(arena *a, const elsewhere *e) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < e->n; i++) buf_addf(&b, i ? ".%s" : "%s", e->parts[i]);
    return buf_str(&b);
}

static void report_unknown(const check *c, const level *at, const ynode *v, str key) {
    const char *restriction = near_restriction(at->rows, key), *near = keytab_nearest(at->rows, key);
    elsewhere other = {0};
    if (!near) find_elsewhere(c->t->rows, (elsewhere){0}, key, &other);
    bool error = at->closed || restriction || other.restricts;
    str where = at->path.n ? str_fmt(c->a, "unknown key `" STR_FMT "` in `" STR_FMT "`", STR_ARG(shown(key)),
                                     STR_ARG(at->path))
                           : str_fmt(c->a, "unknown key `" STR_FMT "`", STR_ARG(shown(key)));
    if (error)
        where = str_fmt(c->a, STR_FMT "%s", STR_ARG(where),
                        restriction || other.restricts ? "; what may be a restriction is not passed over"
                                                       : "; here every key counts");
    str hint = {0};
    if (restriction || near) {
        hint = str_fmt(c->a, "did you mean `%s`?", restriction ? restriction : near);
    } else if (other.n) {
        hint = str_fmt(c->a, "did you mean `" STR_FMT "`?", STR_ARG(elsewhere_path(c->a, &other)));
    } else if (!at->path.n && keytab_row(at->rows, S("x-a"))) {
        hint = S("keys of your own begin with `x-`");
    }
    diag e = error_of(error ? "KEY008" : "KEY001", where, hint);
    if (!error && !c->strict) e.severity = SEV_WARNING;
    yaml_diag_key(c->doc, v, c->d, e);
}

static void check_key(const check *c, const level *at, const ynode *v) {
    str key = v->key->text, path = join(c->a, at->path, key);
    const key_row *row = keytab_row(at->rows, key);
    if (row && row->flags & KEY_NOT_YET) {
        yaml_diag_key(c->doc, v, c->d,
                      error_of("KEY009",
                               str_fmt(c->a, "`" STR_FMT "` is reserved and does nothing yet", STR_ARG(path)),
                               S("remove it until a version has it")));
    } else if (row) {
        level below = {.path = path, .closed = at->closed};
        check_value(c, row, &below, v);
    } else {
        const key_moved *m = find_moved(c, path);
        bool near = !m && !keytab_nearest(at->rows, key);
        if (near) m = near_moved(c, at, key);
        if (m) {
            report_moved(c, at, v, m, key, near);
        } else {
            report_unknown(c, at, v, key);
        }
    }
}

static void check_map(const check *c, const key_row *rows, const level *above, const ynode *map) {
    level at = *above;
    at.rows = rows;
    for (const ynode *v = map->child; v; v = v->next) check_key(c, &at, v);
    for (const key_row *r = rows; r && r->name; r++) {
        if (!(r->flags & KEY_REQUIRED)) continue;
        const ynode *v = yaml_get(map, str_z(r->name));
        if (v && !yaml_is_null(v)) continue;
        str msg = str_fmt(c->a, v ? "`%s` has no value" : "`%s` is missing", r->name);
        diag e = error_of("KEY005", msg, r->help ? str_z(r->help) : (str){0});
        if (v) {
            yaml_diag_key(c->doc, v, c->d, e);
        } else {
            // One line is enough: a mapping may be long.
            yaml_diag_span(c->doc, map, map->start, map->child ? map->child->key->end : map->end, c->d, e);
        }
    }
}

// --- Values -----------------------------------------------------------------------------------------------

static const char *kind_of(const ynode *v) {
    if (v->kind == YAML_NODE_MAP) return "a mapping";
    return v->kind == YAML_NODE_LIST ? "a list" : "a single value";
}

static const char *wanted(key_type t) {
    switch (t) {
    case KEY_STRING:
    case KEY_TEXT: return "text";
    case KEY_INT: return "a whole number";
    case KEY_NUMBER: return "a number";
    case KEY_BOOL: return "true or false";
    case KEY_ENUM: return "one of its values";
    case KEY_NAMES: return "a list of names, or one text with names";
    case KEY_NAMES_OR_ALL: return "a list of names, or `all`";
    case KEY_STRINGS: return "text, or a list of texts";
    case KEY_MAP: return "a mapping";
    case KEY_MAPS: return "a list of mappings";
    case KEY_NAMES_OR_MAPS: return "a list of names or mappings";
    case KEY_NAMED_MAPS: return "a mapping from names to mappings";
    case KEY_STRING_MAP: return "a mapping from names to texts";
    case KEY_ANY: break;
    }
    return "a value";
}

// Foreign keys inside a value of the wrong kind (`tools: {mcp: …}`) say more than the kind does.
static bool moved_inside(const check *c, const level *at, const ynode *v) {
    bool any = false;
    if (v->kind != YAML_NODE_MAP) return false;
    for (const ynode *k = v->child; k; k = k->next) {
        const key_moved *m = find_moved(c, join(c->a, at->path, k->key->text));
        if (!m) continue;
        report_moved(c, at, k, m, join(c->a, at->path, k->key->text), false);
        any = any || m->severity == SEV_ERROR;
    }
    return any;
}

static void wrong_type(const check *c, const key_row *row, const level *at, const ynode *v, str hint) {
    if (moved_inside(c, at, v)) return;
    if (yaml_is_null(v)) {
        at_value(c, v, "KEY002", str_fmt(c->a, "`" STR_FMT "` has no value", STR_ARG(at->path)),
                 str_fmt(c->a, "write %s, or remove the key", wanted(row->type)));
        return;
    }
    at_value(
        c, v, "KEY002",
        str_fmt(c->a, "`" STR_FMT "` must be %s, not %s", STR_ARG(at->path), wanted(row->type), kind_of(v)),
        hint);
}

static void check_length(const check *c, const key_row *row, const level *at, const ynode *v) {
    size_t n = utf8_count(v->text);
    if (row->min > 0 && n < (size_t)row->min) {
        str msg = n ? str_fmt(c->a, "`" STR_FMT "` has %zu characters; at least %lld are needed",
                              STR_ARG(at->path), n, (long long)row->min)
                    : str_fmt(c->a, "`" STR_FMT "` is empty", STR_ARG(at->path));
        at_value(c, v, "KEY003", msg, (str){0});
    } else if (key_bounded_above(row) && n > (size_t)row->max) {
        at_value(c, v, "KEY003",
                 str_fmt(c->a, "`" STR_FMT "` has %zu characters; at most %lld are possible",
                         STR_ARG(at->path), n, (long long)row->max),
                 (str){0});
    }
}

static bool is_whole_number(str s) {
    if (str_starts(s, S("-"))) s = str_sub(s, 1, s.n);
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] < '0' || s.p[i] > '9') return false;
    return s.n > 0 && (s.n == 1 || s.p[0] != '0');
}

static str range_text(const check *c, const key_row *row) {
    if (!key_bounded_above(row)) return str_fmt(c->a, "%lld or more", (long long)row->min);
    return str_fmt(c->a, "from %lld to %lld", (long long)row->min, (long long)row->max);
}

static void check_int(const check *c, const key_row *row, const level *at, const ynode *v) {
    int64_t n = 0;
    bool whole = v->kind == YAML_NODE_SCALAR && is_whole_number(v->text);
    if (row->flags & KEY_UNLIMITED && v->kind == YAML_NODE_SCALAR && str_eq(v->text, S("unlimited"))) return;
    if (!whole) {
        str hint = row->flags & KEY_UNLIMITED ? S("write decimal digits alone, such as 60, or `unlimited`")
                                              : S("write decimal digits alone, such as 60");
        if (v->kind != YAML_NODE_SCALAR) hint = (str){0};
        if (v->kind == YAML_NODE_SCALAR && !yaml_is_null(v)) {
            at_value(c, v, "KEY002",
                     str_fmt(c->a, "`" STR_FMT "` must be a whole number, not \"" STR_FMT "\"",
                             STR_ARG(at->path), STR_ARG(shown(v->text))),
                     hint);
        } else {
            wrong_type(c, row, at, v, hint);
        }
        return;
    }
    bool bounded = row->min || row->max, known = yaml_int(v, &n);
    if (known && (!bounded || (n >= row->min && (!key_bounded_above(row) || n <= row->max)))) return;
    at_value(c, v, "KEY003",
             bounded
                 ? str_fmt(c->a, "`" STR_FMT "` must be %.*s", STR_ARG(at->path), STR_ARG(range_text(c, row)))
                 : str_fmt(c->a, "`" STR_FMT "` is too large a number", STR_ARG(at->path)),
             (str){0});
}

static void check_number(const check *c, const key_row *row, const level *at, const ynode *v) {
    int64_t micro = 0, unit = 1000000;
    str hint =
        str_fmt(c->a, "write decimal digits with at most one point and %d digits behind it, such as 0.50",
                KEY_DECIMALS);
    bool from = row->flags & KEY_FROM_MIN;
    if (v->kind != YAML_NODE_SCALAR || yaml_is_null(v)) {
        wrong_type(c, row, at, v, hint);
    } else if (!keytab_micro(v->text, &micro)) {
        at_value(c, v, "KEY002",
                 str_fmt(c->a, "`" STR_FMT "` must be a number, not \"" STR_FMT "\"", STR_ARG(at->path),
                         STR_ARG(shown(v->text))),
                 hint);
    } else if (micro < row->min * unit || (micro == row->min * unit && !from) ||
               (key_bounded_above(row) && micro > row->max * unit)) {
        str most =
            key_bounded_above(row) ? str_fmt(c->a, " and at most %lld", (long long)row->max) : (str){0};
        at_value(c, v, "KEY003",
                 str_fmt(c->a, "`" STR_FMT "` must be %s %lld" STR_FMT, STR_ARG(at->path),
                         from ? "at least" : "more than", (long long)row->min, STR_ARG(most)),
                 (str){0});
    }
}

static void check_bool(const check *c, const key_row *row, const level *at, const ynode *v) {
    bool b;
    if (yaml_bool(v, &b)) return;
    str hint = v->kind == YAML_NODE_SCALAR ? S("write true or false, without quotes") : (str){0};
    wrong_type(c, row, at, v, hint);
}

static void check_enum(const check *c, const key_row *row, const level *at, const ynode *v) {
    if (v->kind != YAML_NODE_SCALAR || yaml_is_null(v)) {
        wrong_type(c, row, at, v, (str){0});
        return;
    }
    strs names = {0};
    for (const char *const *p = row->values; p && *p; p++) {
        if (str_eq(str_z(*p), v->text)) return;
        vec_push(c->a, &names, str_z(*p));
    }
    str near = nearest_name(v->text, names.p, names.n), list = str_join(c->a, names.p, names.n, S(", "));
    at_value(c, v, "KEY004",
             str_fmt(c->a, "`" STR_FMT "` must be one of " STR_FMT ", not \"" STR_FMT "\"", STR_ARG(at->path),
                     STR_ARG(list), STR_ARG(shown(v->text))),
             near.n ? str_fmt(c->a, "did you mean `" STR_FMT "`?", STR_ARG(near)) : (str){0});
}

static void check_count(const check *c, const key_row *row, const level *at, const ynode *v, size_t n) {
    if (row->min > 0 && n < (size_t)row->min)
        at_value(c, v, "KEY003",
                 str_fmt(c->a, "`" STR_FMT "` needs at least %lld entries", STR_ARG(at->path),
                         (long long)row->min),
                 (str){0});
    if (key_bounded_above(row) && n > (size_t)row->max)
        at_value(c, v, "KEY007",
                 str_fmt(c->a, "`" STR_FMT "` has %zu entries; at most %lld are possible", STR_ARG(at->path),
                         n, (long long)row->max),
                 (str){0});
}

static void bad_all(const check *c, const level *at, const ynode *v, size_t from, size_t n) {
    str hint = str_fmt(c->a, "write `" STR_FMT ": all`", STR_ARG(at->path));
    str msg = S("`all` stands alone and is spelt exactly so");
    if (from) {
        yaml_diag_span(c->doc, v, from, from + n, c->d, error_of("KEY004", msg, hint));
    } else {
        at_value(c, v, "KEY004", msg, hint);
    }
}

static void check_all(const check *c, const level *at, const key_items *items, const ynode *v) {
    for (size_t i = 0; i < items->n; i++) {
        const key_item *it = &items->p[i];
        if (!str_ieq(it->text, S("all"))) continue;
        bool exact = v->kind == YAML_NODE_SCALAR && str_eq(v->text, S("all"));
        if (!exact) bad_all(c, at, it->node, v->kind == YAML_NODE_SCALAR ? it->at : 0, it->text.n);
    }
}

static void check_entries(const check *c, const key_row *row, const level *at, const ynode *list) {
    bool maps = row->type == KEY_NAMES_OR_MAPS;
    for (const ynode *v = list->child; v; v = v->next) {
        if (maps && v->kind == YAML_NODE_MAP) {
            check_map(c, row->sub, at, v);
        } else if (v->kind != YAML_NODE_SCALAR || yaml_is_null(v)) {
            const char *what = maps ? "a name or a mapping" : "text";
            at_value(c, v, "KEY002",
                     str_fmt(c->a, "an entry of `" STR_FMT "` must be %s", STR_ARG(at->path), what),
                     (str){0});
        } else if (str_trim(v->text).n == 0) {
            at_value(c, v, "KEY003", str_fmt(c->a, "an entry of `" STR_FMT "` is empty", STR_ARG(at->path)),
                     S("remove it"));
        }
    }
}

static void check_names(const check *c, const key_row *row, const level *at, const ynode *v) {
    if (v->kind == YAML_NODE_MAP || yaml_is_null(v)) {
        wrong_type(c, row, at, v, (str){0});
        return;
    }
    key_items items = {0};
    if (row->type == KEY_STRINGS) {
        keytab_strings(c->a, v, &items);
    } else if (!keytab_names(c->a, c->doc, v, &items)) {
        at_value(c, v, "KEY010",
                 str_fmt(c->a, "`" STR_FMT "` has a parenthesis without its other half", STR_ARG(at->path)),
                 S("close it, or write a list: [a, \"b (c\"]"));
    }
    if (v->kind == YAML_NODE_LIST) check_entries(c, row, at, v);
    if (row->type == KEY_STRINGS && v->kind == YAML_NODE_SCALAR && str_trim(v->text).n == 0)
        at_value(c, v, "KEY003", str_fmt(c->a, "`" STR_FMT "` is empty", STR_ARG(at->path)), (str){0});
    check_count(c, row, at, v, v->kind == YAML_NODE_LIST ? v->count : items.n);
    if (row->type == KEY_NAMES_OR_ALL) check_all(c, at, &items, v);
}

static void check_maps(const check *c, const key_row *row, const level *at, const ynode *v) {
    if (v->kind != YAML_NODE_LIST) {
        str hint = v->kind == YAML_NODE_MAP ? S("put `- ` before the first key: it is a list of mappings")
                                            : (str){0};
        wrong_type(c, row, at, v, hint);
        return;
    }
    check_count(c, row, at, v, v->count);
    for (const ynode *item = v->child; item; item = item->next) {
        if (item->kind == YAML_NODE_MAP) {
            check_map(c, row->sub, at, item);
        } else {
            at_value(c, item, "KEY002",
                     str_fmt(c->a, "an entry of `" STR_FMT "` must be a mapping", STR_ARG(at->path)),
                     (str){0});
        }
    }
}

static void check_named(const check *c, const key_row *row, const level *at, const ynode *v) {
    if (v->kind != YAML_NODE_MAP) {
        wrong_type(c, row, at, v, (str){0});
        return;
    }
    check_count(c, row, at, v, v->count);
    bool maps = row->type == KEY_NAMED_MAPS;
    for (const ynode *item = v->child; item; item = item->next) {
        if (maps && item->kind == YAML_NODE_MAP) {
            check_map(c, row->sub, at, item);
        } else if (maps || item->kind != YAML_NODE_SCALAR || yaml_is_null(item)) {
            at_value(c, item, "KEY002",
                     str_fmt(c->a, "`" STR_FMT "` in `" STR_FMT "` must be %s",
                             STR_ARG(shown(item->key->text)), STR_ARG(at->path), maps ? "a mapping" : "text"),
                     (str){0});
        }
    }
}

static void check_string(const check *c, const key_row *row, const level *at, const ynode *v) {
    if (v->kind != YAML_NODE_SCALAR || yaml_is_null(v)) {
        wrong_type(c, row, at, v, (str){0});
    } else {
        check_length(c, row, at, v);
    }
}

// at: the level of the value's own keys; its path is the value's.
static void check_value(const check *c, const key_row *row, const level *above, const ynode *v) {
    level at = *above;
    at.closed = at.closed || row->flags & KEY_STRICT;
    if (row->flags & KEY_REQUIRED && yaml_is_null(v)) return; // KEY005 says it
    switch (row->type) {
    case KEY_STRING:
    case KEY_TEXT: check_string(c, row, &at, v); break;
    case KEY_INT: check_int(c, row, &at, v); break;
    case KEY_NUMBER: check_number(c, row, &at, v); break;
    case KEY_BOOL: check_bool(c, row, &at, v); break;
    case KEY_ENUM: check_enum(c, row, &at, v); break;
    case KEY_NAMES:
    case KEY_NAMES_OR_ALL:
    case KEY_STRINGS:
    case KEY_NAMES_OR_MAPS: check_names(c, row, &at, v); break;
    case KEY_MAP:
        if (v->kind == YAML_NODE_MAP) {
            check_map(c, row->sub, &at, v);
        } else {
            wrong_type(c, row, &at, v, (str){0});
        }
        break;
    case KEY_MAPS: check_maps(c, row, &at, v); break;
    case KEY_NAMED_MAPS:
    case KEY_STRING_MAP: check_named(c, row, &at, v); break;
    case KEY_ANY: break;
    }
}

void keytab_check(const key_table *t, const ydoc *doc, diags *d, bool strict) {
    if (!doc->root || doc->root->kind != YAML_NODE_MAP) return;
    check c = {.a = d->a, .t = t, .doc = doc, .d = d, .strict = strict};
    check_map(&c, t->rows, &(level){0}, doc->root);
}

// schema: a key table as JSON Schema for editors, and as a Markdown reference for people.
#include "yaml/keytab_int.h"
#include <deputy/json.h>

// --- JSON Schema ------------------------------------------------------------------------------------------

typedef struct {
    arena *a;
    jw w;
    const key_table *t;
    str path; // of the level that is written, dotted, without indexes and free names
} schema;

static void add_string_list(schema *s, str key, const char *const *values) {
    jw_key(&s->w, key);
    jw_arr(&s->w);
    for (; values && *values; values++) jw_str(&s->w, str_z(*values));
    jw_end_arr(&s->w);
}

static void add_type(schema *s, const char *type) {
    jw_kstr(&s->w, S("type"), str_z(type));
}

// Text as the parser takes it: `name: 007` and `name: true` are texts, which an editor reads otherwise.
static void add_text_type(schema *s) {
    static const char *const kinds[] = {"string", "number", "boolean", NULL};
    add_string_list(s, S("type"), kinds);
}

static void add_bounds(schema *s, const key_row *r, const char *least, const char *most) {
    if (r->min > 0 || (r->type == KEY_INT && (r->min || r->max))) jw_kint(&s->w, str_z(least), r->min);
    if (key_bounded_above(r)) jw_kint(&s->w, str_z(most), r->max);
}

static void add_members(schema *s, const key_row *rows, bool closed);

static void add_object(schema *s, const key_row *rows, bool closed) {
    jw_obj(&s->w);
    add_members(s, rows, closed);
    jw_end_obj(&s->w);
}

// {"type": "array", "items": …} with what an item may be.
static void add_array(schema *s, const key_row *r, bool strings, bool maps, bool closed) {
    add_type(s, "array");
    jw_key(&s->w, S("items"));
    if (strings && maps) {
        jw_obj(&s->w);
        jw_key(&s->w, S("anyOf"));
        jw_arr(&s->w);
    }
    if (strings) {
        jw_obj(&s->w);
        add_text_type(s);
        jw_end_obj(&s->w);
    }
    if (maps) add_object(s, r->sub, closed);
    if (strings && maps) {
        jw_end_arr(&s->w);
        jw_end_obj(&s->w);
    }
    add_bounds(s, r, "minItems", "maxItems");
}

static void add_names(schema *s, const key_row *r, bool closed) {
    jw_key(&s->w, S("anyOf"));
    jw_arr(&s->w);
    if (r->type == KEY_NAMES_OR_ALL) {
        jw_obj(&s->w);
        jw_kstr(&s->w, S("const"), S("all"));
        jw_end_obj(&s->w);
    }
    jw_obj(&s->w);
    add_array(s, r, true, r->type == KEY_NAMES_OR_MAPS, closed);
    jw_end_obj(&s->w);
    jw_obj(&s->w);
    add_type(s, "string");
    jw_end_obj(&s->w);
    jw_end_arr(&s->w);
}

static void add_named(schema *s, const key_row *r, bool closed) {
    add_type(s, "object");
    jw_key(&s->w, S("additionalProperties"));
    if (r->type == KEY_NAMED_MAPS) {
        add_object(s, r->sub, closed);
    } else {
        jw_obj(&s->w);
        add_text_type(s);
        jw_end_obj(&s->w);
    }
    add_bounds(s, r, "minProperties", "maxProperties");
}

static void add_int(schema *s, const key_row *r) {
    bool word = r->flags & KEY_UNLIMITED;
    if (word) {
        jw_key(&s->w, S("anyOf"));
        jw_arr(&s->w);
        jw_obj(&s->w);
    }
    add_type(s, "integer");
    add_bounds(s, r, "minimum", "maximum");
    if (word) {
        jw_end_obj(&s->w);
        jw_obj(&s->w);
        jw_kstr(&s->w, S("const"), S("unlimited"));
        jw_end_obj(&s->w);
        jw_end_arr(&s->w);
    }
}

static void add_form(schema *s, const key_row *r, bool closed) {
    switch (r->type) {
    case KEY_STRING:
    case KEY_TEXT:
        add_text_type(s);
        add_bounds(s, r, "minLength", "maxLength");
        break;
    case KEY_INT: add_int(s, r); break;
    case KEY_NUMBER:
        add_type(s, "number");
        jw_kint(&s->w, r->flags & KEY_FROM_MIN ? S("minimum") : S("exclusiveMinimum"), r->min);
        if (key_bounded_above(r)) jw_kint(&s->w, S("maximum"), r->max);
        break;
    case KEY_BOOL: add_type(s, "boolean"); break;
    case KEY_ENUM: add_string_list(s, S("enum"), r->values); break;
    case KEY_NAMES:
    case KEY_NAMES_OR_ALL:
    case KEY_STRINGS:
    case KEY_NAMES_OR_MAPS: add_names(s, r, closed); break;
    case KEY_MAP: add_members(s, r->sub, closed); break;
    case KEY_MAPS: add_array(s, r, false, true, closed); break;
    case KEY_NAMED_MAPS:
    case KEY_STRING_MAP: add_named(s, r, closed); break;
    case KEY_ANY: break;
    }
}

static void add_default(schema *s, const key_row *r) {
    if (!r->dflt) return;
    jw_key(&s->w, S("default"));
    diags d = diags_new(s->a);
    ydoc *doc;
    if (yaml_parse(s->a, S("default"), str_z(r->dflt), 0, false, &doc, &d, NULL) != DEP_OK || d.errors) {
        jw_str(&s->w, str_z(r->dflt));
        return;
    }
    buf b = buf_new(s->a, 0);
    yaml_to_json(&b, doc->root);
    jw_raw(&s->w, buf_str(&b));
}

// Whatever the value is, the key is wrong; editors must not offer it either.
static void add_never(schema *s) {
    jw_key(&s->w, S("not"));
    jw_obj(&s->w);
    jw_end_obj(&s->w);
    jw_kbool(&s->w, S("doNotSuggest"), true);
}

static void add_row(schema *s, const key_row *r, bool closed) {
    closed = closed || r->flags & KEY_STRICT;
    jw_obj(&s->w);
    if (r->flags & KEY_NOT_YET) {
        str help = r->help ? str_fmt(s->a, "Reserved, not yet. %s", r->help) : S("Reserved, not yet.");
        jw_kstr(&s->w, S("description"), help);
        add_never(s);
    } else {
        str above = s->path;
        s->path = above.n ? str_fmt(s->a, STR_FMT ".%s", STR_ARG(above), r->name) : str_z(r->name);
        if (r->help) jw_kstr(&s->w, S("description"), str_z(r->help));
        add_form(s, r, closed);
        add_default(s, r);
        s->path = above;
    }
    jw_end_obj(&s->w);
}

// The name under which an old or foreign key can stand at this level; empty when it cannot.
static str moved_here(const schema *s, const key_row *rows, const key_moved *m) {
    str name = str_z(m->path);
    if (s->path.n) {
        if (!str_starts(name, s->path) || name.n <= s->path.n || name.p[s->path.n] != '.') return (str){0};
        name = str_sub(name, s->path.n + 1, name.n);
        if (str_chr(name, '.') != SIZE_MAX) return (str){0};
    }
    return keytab_row(rows, name) ? (str){0} : name;
}

static void add_moved(schema *s, const key_row *rows) {
    for (const key_moved *m = s->t->moved; m && m->path; m++) {
        str name = moved_here(s, rows, m);
        if (!name.n) continue;
        jw_key(&s->w, name);
        jw_obj(&s->w);
        jw_kstr(&s->w, S("description"), str_z(m->hint));
        if (m->severity == SEV_ERROR) {
            add_never(s);
        } else {
            jw_kbool(&s->w, S("deprecated"), true);
            jw_kbool(&s->w, S("doNotSuggest"), true);
        }
        jw_end_obj(&s->w);
    }
}

// "x-*" as a regular expression.
static str prefix_pattern(arena *a, const char *name) {
    buf b = buf_new(a, 0);
    buf_addc(&b, '^');
    for (const char *p = name; *p && *p != '*'; p++) {
        if (strchr(".[](){}+?^$|\\", *p)) buf_addc(&b, '\\');
        buf_addc(&b, *p);
    }
    return buf_str(&b);
}

static void add_rows(schema *s, const key_row *rows, bool prefixes, bool closed) {
    bool any = false;
    for (const key_row *r = rows; r && r->name; r++) any = any || keytab_is_prefix(r) == prefixes;
    if (!any) return;
    jw_key(&s->w, prefixes ? S("patternProperties") : S("properties"));
    jw_obj(&s->w);
    for (const key_row *r = rows; r->name; r++) {
        if (keytab_is_prefix(r) != prefixes) continue;
        jw_key(&s->w, prefixes ? prefix_pattern(s->a, r->name) : str_z(r->name));
        add_row(s, r, closed);
    }
    if (!prefixes) add_moved(s, rows);
    jw_end_obj(&s->w);
}

static void add_members(schema *s, const key_row *rows, bool closed) {
    add_type(s, "object");
    add_rows(s, rows, false, closed);
    add_rows(s, rows, true, closed);
    size_t n = 0;
    for (const key_row *r = rows; r && r->name; r++) n += (r->flags & KEY_REQUIRED) != 0;
    if (n) {
        jw_key(&s->w, S("required"));
        jw_arr(&s->w);
        for (const key_row *r = rows; r->name; r++)
            if (r->flags & KEY_REQUIRED) jw_str(&s->w, str_z(r->name));
        jw_end_arr(&s->w);
    }
    if (closed) jw_kbool(&s->w, S("additionalProperties"), false);
}

// Valid JSON without blanks, spread over lines.
static void pretty(buf *out, str json) {
    size_t depth = 0;
    bool string = false;
    for (size_t i = 0; i < json.n; i++) {
        char c = json.p[i];
        if (string) {
            buf_addc(out, c);
            if (c == '\\') buf_addc(out, json.p[++i]);
            string = c != '"';
            continue;
        }
        string = c == '"';
        bool open = c == '{' || c == '[', close = c == '}' || c == ']';
        if (open && (json.p[i + 1] == '}' || json.p[i + 1] == ']')) {
            buf_addc(out, c);
            buf_addc(out, json.p[++i]);
            continue;
        }
        if (open) depth++;
        if (close) {
            depth--;
            buf_addc(out, '\n');
            buf_fill(out, ' ', 2 * depth);
        }
        buf_addc(out, c);
        if (open || c == ',') {
            buf_addc(out, '\n');
            buf_fill(out, ' ', 2 * depth);
        }
        if (c == ':') buf_addc(out, ' ');
    }
    buf_addc(out, '\n');
}

void keytab_schema(buf *out, const key_table *t) {
    buf b = buf_new(out->a, 0);
    schema s = {.a = out->a, .w = jw_new(&b), .t = t};
    jw_obj(&s.w);
    jw_kstr(&s.w, S("$schema"), S("https://json-schema.org/draft/2020-12/schema"));
    jw_kstr(&s.w, S("$id"), str_z(t->schema_id));
    jw_kstr(&s.w, S("title"), str_z(t->title));
    add_members(&s, t->rows, false);
    jw_end_obj(&s.w);
    pretty(out, buf_str(&b));
}

// --- Reference --------------------------------------------------------------------------------------------

static str bounds_text(arena *a, const key_row *r, const char *unit) {
    bool above = key_bounded_above(r);
    if (r->min > 0 && above) return str_fmt(a, ", %lld–%lld%s", (long long)r->min, (long long)r->max, unit);
    if (above) return str_fmt(a, ", ≤ %lld%s", (long long)r->max, unit);
    if (r->min > 0) return str_fmt(a, ", ≥ %lld%s", (long long)r->min, unit);
    return (str){0};
}

static str form_text(arena *a, const key_row *r) {
    const char *form = "anything", *unit = "";
    switch (r->type) {
    case KEY_STRING:
        form = "text";
        unit = " characters";
        break;
    case KEY_TEXT:
        form = "text, several lines";
        unit = " characters";
        break;
    case KEY_INT: form = "whole number"; break;
    case KEY_NUMBER: {
        const char *least = r->flags & KEY_FROM_MIN ? "from" : "above";
        return key_bounded_above(r)
                   ? str_fmt(a, "number, %s %lld, ≤ %lld", least, (long long)r->min, (long long)r->max)
                   : str_fmt(a, "number, %s %lld", least, (long long)r->min);
    }
    case KEY_BOOL: form = "true or false"; break;
    case KEY_ENUM: {
        buf b = buf_new(a, 0);
        for (const char *const *p = r->values; p && *p; p++)
            buf_addf(&b, p == r->values ? "`%s`" : ", `%s`", *p);
        return buf_str(&b);
    }
    case KEY_NAMES:
        form = "list or text";
        unit = " entries";
        break;
    case KEY_NAMES_OR_ALL:
        form = "list or text, or `all`";
        unit = " entries";
        break;
    case KEY_STRINGS:
        form = "text or list of texts";
        unit = " entries";
        break;
    case KEY_MAP: return S("mapping");
    case KEY_MAPS:
        form = "list of mappings";
        unit = " entries";
        break;
    case KEY_NAMES_OR_MAPS:
        form = "list of names or mappings";
        unit = " entries";
        break;
    case KEY_NAMED_MAPS:
        form = "mapping from names to mappings";
        unit = " entries";
        break;
    case KEY_STRING_MAP:
        form = "mapping from names to texts";
        unit = " entries";
        break;
    case KEY_ANY: break;
    }
    return str_fmt(a, "%s" STR_FMT "%s", form, STR_ARG(bounds_text(a, r, unit)),
                   r->flags & KEY_UNLIMITED ? ", or `unlimited`" : "");
}

static void add_cell(buf *out, str s) {
    buf_add(out, S("| "));
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '|') buf_addc(out, '\\');
        buf_addc(out, s.p[i] == '\n' ? ' ' : s.p[i]);
    }
    buf_addc(out, ' ');
}

static bool any_where(const key_row *rows) {
    for (const key_row *r = rows; r && r->name; r++)
        if (r->flags & (KEY_SYSTEM | KEY_LOWER) || any_where(r->sub)) return true;
    return false;
}

static str where_text(const key_row *r, bool system) {
    if (system || r->flags & KEY_SYSTEM) return S("system file");
    return r->flags & KEY_LOWER ? S("both; a workspace may only lower it") : S("both");
}

// system: what stands above is the system file's alone.
static void add_level(buf *out, const key_row *rows, str path, bool where, bool system) {
    arena *a = out->a;
    buf_add(out, where ? S("| Key | Form | Default | Where | Meaning |\n|---|---|---|---|---|\n")
                       : S("| Key | Form | Default | Meaning |\n|---|---|---|---|\n"));
    for (const key_row *r = rows; r && r->name; r++) {
        bool later = r->flags & KEY_NOT_YET;
        add_cell(out, str_fmt(a, "`%s`%s", r->name, r->flags & KEY_REQUIRED ? " (required)" : ""));
        add_cell(out, later ? S("reserved") : form_text(a, r));
        add_cell(out, r->dflt ? str_fmt(a, "`%s`", r->dflt) : (str){0});
        if (where) add_cell(out, where_text(r, system));
        add_cell(out, later ? str_fmt(a, "Not yet. %s", r->help ? r->help : "") : str_z(r->help));
        buf_add(out, S("|\n"));
    }
    for (const key_row *r = rows; r && r->name; r++) {
        if (!r->sub) continue;
        str at = path.n ? str_fmt(a, STR_FMT ".%s", STR_ARG(path), r->name) : str_z(r->name);
        buf_addf(out, "\n### `" STR_FMT "`\n\n", STR_ARG(at));
        add_level(out, r->sub, at, where, system || r->flags & KEY_SYSTEM);
    }
}

void keytab_reference(buf *out, const key_table *t) {
    buf_addf(out, "## %s\n\n", t->title);
    add_level(out, t->rows, (str){0}, any_where(t->rows), false);
}

// keytab: what else the rows say: the JSON Schema for editors, and the reference page.
#include <deputy/json.h>
#include <deputy/keytab.h>

static void map_schema(jw *w, const key_row *rows, bool closed);

static void key_word(jw *w, const char *key, const char *value) {
    jw_kstr(w, str_z(key), str_z(value));
}

static void begin_list(jw *w, const key_row *row) {
    key_word(w, "type", "array");
    if (row->max > 0) jw_kint(w, S("maxItems"), row->max);
    jw_key(w, S("items"));
}

static void string_type(jw *w) {
    jw_obj(w);
    key_word(w, "type", "string");
    jw_end_obj(w);
}

static void bounds(jw *w, const key_row *row, const char *low, const char *high) {
    if (row->min) jw_kint(w, str_z(low), row->min);
    if (row->max) jw_kint(w, str_z(high), row->max);
}

// YAML lets people write true, 007 or 1.10 where a text is meant, so a text may look like any scalar.
static void scalar_types(jw *w) {
    jw_key(w, S("type"));
    jw_arr(w);
    jw_str(w, S("string"));
    jw_str(w, S("number"));
    jw_str(w, S("boolean"));
    jw_end_arr(w);
}

static void enum_values(jw *w, const key_row *row) {
    jw_key(w, S("enum"));
    jw_arr(w);
    for (const char *const *v = row->values; *v; v++) jw_str(w, str_z(*v));
    jw_end_arr(w);
}

static void sub_map(jw *w, const key_row *row) {
    jw_obj(w);
    key_word(w, "type", "object");
    map_schema(w, row->sub, row->flags & KEY_STRICT);
    jw_end_obj(w);
}

static void list_or_string(jw *w, const key_row *row) {
    jw_key(w, S("anyOf"));
    jw_arr(w);
    jw_obj(w);
    begin_list(w, row);
    if (row->type == KEY_NAMES_OR_MAPS) {
        jw_obj(w);
        jw_key(w, S("anyOf"));
        jw_arr(w);
        string_type(w);
        sub_map(w, row);
        jw_end_arr(w);
        jw_end_obj(w);
    } else {
        string_type(w);
    }
    jw_end_obj(w);
    string_type(w);
    jw_end_arr(w);
}

static void value_schema(jw *w, const key_row *row) {
    switch (row->type) {
    case KEY_STRING:
    case KEY_TEXT:
        scalar_types(w);
        bounds(w, row, "minLength", "maxLength");
        break;
    case KEY_INT:
        key_word(w, "type", "integer");
        bounds(w, row, "minimum", "maximum");
        break;
    case KEY_BOOL: key_word(w, "type", "boolean"); break;
    case KEY_ENUM: enum_values(w, row); break;
    case KEY_NAMES:
    case KEY_NAMES_OR_ALL:
    case KEY_STRINGS:
    case KEY_NAMES_OR_MAPS: list_or_string(w, row); break;
    case KEY_MAP:
        key_word(w, "type", "object");
        map_schema(w, row->sub, row->flags & KEY_STRICT);
        break;
    case KEY_MAPS:
        begin_list(w, row);
        sub_map(w, row);
        break;
    case KEY_NAMED_MAPS:
    case KEY_STRING_MAP:
        key_word(w, "type", "object");
        if (row->max > 0) jw_kint(w, S("maxProperties"), row->max);
        jw_key(w, S("additionalProperties"));
        if (row->type == KEY_NAMED_MAPS) {
            sub_map(w, row);
        } else {
            jw_obj(w);
            scalar_types(w);
            jw_end_obj(w);
        }
        break;
    case KEY_ANY: break;
    }
}

static bool is_prefix(const key_row *r) {
    return str_ends(str_z(r->name), S("*"));
}

static void properties(jw *w, const key_row *rows, bool prefixes) {
    for (const key_row *r = rows; r && r->name; r++) {
        if (is_prefix(r) != prefixes) continue;
        str name = str_z(r->name);
        jw_key(w, prefixes ? str_fmt(w->out->a, "^" STR_FMT, STR_ARG(str_sub(name, 0, name.n - 1))) : name);
        jw_obj(w);
        key_word(w, "description", r->help ? r->help : "");
        if (r->dflt) key_word(w, "x-default", r->dflt);
        if (!(r->flags & KEY_NOT_YET)) value_schema(w, r);
        jw_end_obj(w);
    }
}

static void map_schema(jw *w, const key_row *rows, bool closed) {
    bool prefixed = false, required = false;
    for (const key_row *r = rows; r && r->name; r++)
        prefixed |= is_prefix(r), required |= r->flags & KEY_REQUIRED;
    jw_key(w, S("properties"));
    jw_obj(w);
    properties(w, rows, false);
    jw_end_obj(w);
    if (prefixed) {
        jw_key(w, S("patternProperties"));
        jw_obj(w);
        properties(w, rows, true);
        jw_end_obj(w);
    }
    if (required) {
        jw_key(w, S("required"));
        jw_arr(w);
        for (const key_row *r = rows; r && r->name; r++)
            if (r->flags & KEY_REQUIRED) jw_str(w, str_z(r->name));
        jw_end_arr(w);
    }
    if (closed) jw_kbool(w, S("additionalProperties"), false);
}

// --- Pretty printing
// -------------------------------------------------------------------------------------------------------------------

static void pretty(buf *out, const json *v, size_t depth) {
    bool object = v->kind == JSON_OBJECT;
    if ((!object && v->kind != JSON_ARRAY) || !v->child) {
        buf_add(out, v->raw);
        return;
    }
    buf_addc(out, object ? '{' : '[');
    for (const json *e = v->child; e; e = e->next) {
        buf_addc(out, '\n');
        buf_fill(out, ' ', 2 * (depth + 1));
        if (object) {
            json_quote(out, e->key);
            buf_add(out, S(": "));
        }
        pretty(out, e, depth + 1);
        if (e->next) buf_addc(out, ',');
    }
    buf_addc(out, '\n');
    buf_fill(out, ' ', 2 * depth);
    buf_addc(out, object ? '}' : ']');
}

void keytab_schema(buf *out, const key_table *t) {
    buf flat = buf_new(out->a, 0);
    jw w = jw_new(&flat);
    jw_obj(&w);
    key_word(&w, "$schema", "https://json-schema.org/draft/2020-12/schema");
    key_word(&w, "$id", t->schema_id);
    key_word(&w, "title", t->title);
    key_word(&w, "type", "object");
    map_schema(&w, t->rows, false);
    jw_end_obj(&w);
    json *j;
    dep_err err;
    if (json_parse(out->a, buf_str(&flat), 0, &j, &err) != DEP_OK)
        return; // a row with a text that is no UTF-8: a test finds it
    pretty(out, j, 0);
    buf_addc(out, '\n');
}

// --- Reference
// ----------------------------------------------------------------------------------------------------------------------------

static const char *form_of(key_type t) {
    static const char *const words[] = {
        [KEY_STRING] = "string",
        [KEY_TEXT] = "text",
        [KEY_INT] = "whole number",
        [KEY_BOOL] = "true / false",
        [KEY_ENUM] = "word",
        [KEY_NAMES] = "list or comma string",
        [KEY_NAMES_OR_ALL] = "list, comma string, or `all`",
        [KEY_STRINGS] = "string or list",
        [KEY_MAP] = "mapping",
        [KEY_MAPS] = "list of mappings",
        [KEY_NAMES_OR_MAPS] = "list of names or mappings",
        [KEY_NAMED_MAPS] = "mapping of mappings",
        [KEY_STRING_MAP] = "mapping of strings",
        [KEY_ANY] = "any",
    };
    return words[t];
}

static void reference_rows(buf *out, const key_row *rows, str prefix, bool where) {
    for (const key_row *r = rows; r && r->name; r++) {
        str name = prefix.n ? str_fmt(out->a, STR_FMT ".%s", STR_ARG(prefix), r->name) : str_z(r->name);
        buf_addf(out, "| `" STR_FMT "` | %s", STR_ARG(name), form_of(r->type));
        if (r->type == KEY_ENUM)
            for (const char *const *v = r->values; *v; v++)
                buf_addf(out, "%s `%s`", v == r->values ? ":" : ",", *v);
        bool list = r->type >= KEY_NAMES && r->type != KEY_MAP && r->type != KEY_ANY;
        if (list && r->max) buf_addf(out, ", at most %lld", (long long)r->max);
        if (r->type == KEY_INT) buf_addf(out, ", %lld to %lld", (long long)r->min, (long long)r->max);
        buf_addf(out, "%s | %s%s%s |", r->flags & KEY_REQUIRED ? ", required" : "", r->dflt ? "`" : "",
                 r->dflt ? r->dflt : "", r->dflt ? "`" : "");
        if (where)
            buf_addf(out, " %s |",
                     r->flags & KEY_SYSTEM  ? "system"
                     : r->flags & KEY_LOWER ? "system; a workspace may lower it"
                                            : "both");
        buf_addf(out, " %s%s |\n", r->flags & KEY_NOT_YET ? "Not yet. " : "", r->help ? r->help : "");
        if (r->sub)
            reference_rows(out, r->sub,
                           r->type == KEY_NAMED_MAPS ? str_fmt(out->a, STR_FMT ".NAME", STR_ARG(name)) : name,
                           where);
    }
}

static bool has_where(const key_row *rows) {
    for (const key_row *r = rows; r && r->name; r++)
        if (r->flags & (KEY_SYSTEM | KEY_LOWER)) return true;
    return false;
}

void keytab_reference(buf *out, const key_table *t) {
    bool where = has_where(t->rows);
    buf_addf(out, "# %s\n\nGenerated from the key table; do not edit.\n\n", t->title);
    buf_add(out, where ? S("| Key | Form | Default | Where | Meaning |\n|---|---|---|---|---|\n")
                       : S("| Key | Form | Default | Meaning |\n|---|---|---|---|\n"));
    reference_rows(out, t->rows, (str){0}, where);
    if (!t->moved || !t->moved->path) return;
    buf_add(out, S("\n## Other spellings\n\n| Written | What Deputy says | |\n|---|---|---|\n"));
    for (const key_moved *m = t->moved; m->path; m++)
        buf_addf(out, "| `%s` | %s | %s |\n", m->path, m->hint,
                 m->severity == SEV_ERROR ? "error" : "warning");
}

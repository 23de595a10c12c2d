// toolspec: checks a call's arguments against the small part of JSON Schema that the table uses (type,
// properties, required, enum, minimum, maximum, minLength, maxLength, items, maxItems, additionalProperties
// false).
#include <deputy/toolspec.h>
#include <deputy/utf8.h>

static const char *kind_word(json_kind k) {
    static const char *const words[] = {"null", "boolean", "boolean", "number", "string", "array", "object"};
    return words[k];
}

static bool kind_fits(const json *v, str type) {
    if (str_eq(type, S("integer"))) {
        int64_t n;
        return json_int(v, INT64_MIN, INT64_MAX, &n);
    }
    return str_eq(str_z(kind_word(v->kind)), type);
}

static dep_status check_value(const json *schema, const json *v, str where, dep_err *err);

static dep_status check_object(const json *schema, const json *v, str where, dep_err *err) {
    const json *props = json_get(schema, S("properties")), *required = json_get(schema, S("required"));
    bool closed = json_get(schema, S("additionalProperties")) != NULL;
    for (const json *m = v->child; m; m = m->next) {
        const json *p = json_get(props, m->key);
        if (p) {
            TRY(check_value(p, m, m->key, err));
        } else if (closed) {
            return err_set(err, DEP_ERR_INVALID, "unknown argument \"" STR_FMT "\"",
                           STR_ARG(utf8_cut(m->key, 64)));
        }
    }
    for (const json *r = required ? required->child : NULL; r; r = r->next)
        if (!json_get(v, r->s))
            return err_set(err, DEP_ERR_INVALID, STR_FMT "%sthe argument \"" STR_FMT "\" is required",
                           STR_ARG(where), where.n ? ": " : "", STR_ARG(r->s));
    return DEP_OK;
}

static dep_status check_bounds(const json *schema, const json *v, str where, dep_err *err) {
    double min = json_num(schema, S("minimum"), -1e18), max = json_num(schema, S("maximum"), 1e18);
    if (v->kind == JSON_NUMBER && (v->num < min || v->num > max))
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" is %g; it must be from %g to %g",
                       STR_ARG(where), v->num, min, max);
    double min_len = json_num(schema, S("minLength"), 0), max_len = json_num(schema, S("maxLength"), 1e18);
    if (v->kind == JSON_STRING && (double)utf8_count(v->s) < min_len)
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" is empty", STR_ARG(where));
    if (v->kind == JSON_STRING && (double)utf8_count(v->s) > max_len)
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" is longer than %g characters", STR_ARG(where),
                       max_len);
    if (v->kind == JSON_ARRAY && (double)v->count > json_num(schema, S("maxItems"), 1e18))
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" has more than %g entries", STR_ARG(where),
                       json_num(schema, S("maxItems"), 0));
    return DEP_OK;
}

static dep_status check_value(const json *schema, const json *v, str where, dep_err *err) {
    str type = json_str(schema, S("type"), (str){0});
    if (type.n && !kind_fits(v, type))
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" must be of type " STR_FMT ", not %s",
                       STR_ARG(where), STR_ARG(type), kind_word(v->kind));
    const json *values = json_get(schema, S("enum"));
    if (values) {
        for (const json *e = values->child; e; e = e->next)
            if (v->kind == JSON_STRING && str_eq(e->s, v->s)) return DEP_OK;
        char text[512];
        size_t n = 0;
        for (const json *e = values->child; e && n + e->s.n + 3 < sizeof text; e = e->next) {
            if (n) text[n++] = ',', text[n++] = ' ';
            memcpy(text + n, e->s.p, e->s.n);
            n += e->s.n;
        }
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" must be one of: %.*s", STR_ARG(where), (int)n,
                       text);
    }
    TRY(check_bounds(schema, v, where, err));
    if (v->kind == JSON_OBJECT && json_get(schema, S("properties")))
        return check_object(schema, v, where, err);
    const json *items = json_get(schema, S("items"));
    if (v->kind == JSON_ARRAY && items)
        for (const json *e = v->child; e; e = e->next) TRY(check_value(items, e, where, err));
    return DEP_OK;
}

dep_status toolspec_check_args(arena *a, str schema, const json *args, dep_err *err) {
    json *s;
    TRY(json_parse(a, schema, 0, &s, err));
    if (args->kind != JSON_OBJECT)
        return err_set(err, DEP_ERR_INVALID, "the arguments must be a JSON object");
    return check_object(s, args, (str){0}, err);
}

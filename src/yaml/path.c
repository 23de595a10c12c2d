// path: dotted paths with indexes, as people type them for `set`.
#include "yaml/yaml_int.h"

// A quoted key at s[*i] (the opening quote). `\` takes the next character as it is.
static bool quoted_key(arena *a, str s, size_t *i, str *ret) {
    buf b = buf_new(a, 0);
    for (size_t k = *i + 1; k < s.n; k++) {
        if (s.p[k] == '"') {
            *i = k + 1;
            *ret = buf_str(&b);
            return true;
        }
        if (s.p[k] == '\\' && k + 1 < s.n) k++;
        buf_addc(&b, s.p[k]);
    }
    return false;
}

static bool number(str s, size_t *ret) {
    uint64_t v;
    if (!str_u64(s, YAML_NODE_MAX, &v)) return false;
    *ret = (size_t)v;
    return true;
}

// One part at s[*i], which is not at the end.
static bool next_part(arena *a, str s, size_t *i, ypart *part) {
    *part = (ypart){0};
    if (s.p[*i] == '[') {
        size_t close = str_chr(str_sub(s, *i, s.n), ']');
        if (close == SIZE_MAX || !number(str_sub(s, *i + 1, *i + close), &part->index)) return false;
        part->key = str_sub(s, *i + 1, *i + close);
        part->may_index = true;
        *i += close + 1;
        return true;
    }
    if (s.p[*i] == '"') {
        part->may_key = true;
        return quoted_key(a, s, i, &part->key);
    }
    size_t from = *i;
    while (*i < s.n && s.p[*i] != '.' && s.p[*i] != '[') ++*i;
    part->key = str_sub(s, from, *i);
    part->may_key = true;
    part->may_index = number(part->key, &part->index);
    return part->key.n > 0;
}

dep_status ypath_parse(arena *a, str path, ypath *ret, dep_err *err) {
    *ret = (ypath){0};
    for (size_t i = 0; i < path.n;) {
        if (ret->n == YAML_DEPTH_MAX)
            return err_set(err, DEP_ERR_LIMIT, "the path has more than %d parts", YAML_DEPTH_MAX);
        size_t at = i;
        bool ok = next_part(a, path, &i, &ret->p[ret->n]);
        bool dot = ok && i < path.n && path.p[i] == '.';
        if (!ok || (i < path.n && !dot && path.p[i] != '[') || (dot && i + 1 == path.n))
            return err_set(err, DEP_ERR_INVALID,
                           "path \"" STR_FMT
                           "\" is not understood at character %zu; write it like mcp.servers[0].name, "
                           "keys with dots in double quotes",
                           STR_ARG(path), at + 1);
        i += dot;
        ret->n++;
    }
    if (ret->n == 0) return err_set(err, DEP_ERR_INVALID, "the path is empty");
    return DEP_OK;
}

ynode *ypath_step(const ynode *n, const ypart *part) {
    if (part->may_index && n->kind == YAML_NODE_LIST) return yaml_at(n, part->index);
    return part->may_key ? yaml_get(n, part->key) : NULL;
}

str ypath_text(arena *a, const ypath *p, size_t n) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < n; i++) {
        bool index = p->p[i].may_index, quote = !index && str_find(p->p[i].key, S(".")) != SIZE_MAX;
        if (i) buf_addc(&b, '.');
        if (quote) buf_addc(&b, '"');
        buf_add(&b, p->p[i].key);
        if (quote) buf_addc(&b, '"');
    }
    return buf_str(&b);
}

static const char *kind_name(const ynode *n) {
    if (n->kind == YAML_NODE_MAP) return "a mapping";
    if (n->kind == YAML_NODE_LIST) return "a list";
    return yaml_is_null(n) ? "empty" : "a single value";
}

static dep_status find_guarded(arena *a, const ydoc *doc, str path, ynode **ret, dep_err *err) {
    ARENA_CATCH(a, err);
    ypath p;
    TRY(ypath_parse(a, path, &p, err));
    ynode *n = doc->root;
    if (!n) return err_set(err, DEP_ERR_NOT_FOUND, "the document has no keys");
    for (size_t i = 0; i < p.n; i++) {
        ynode *next = ypath_step(n, &p.p[i]);
        str before = ypath_text(a, &p, i);
        if (!next && i == 0)
            return err_set(err, DEP_ERR_NOT_FOUND, "there is no `" STR_FMT "`", STR_ARG(p.p[i].key));
        if (!next)
            return err_set(err, DEP_ERR_NOT_FOUND, "there is no `" STR_FMT "` in `" STR_FMT "`, which is %s",
                           STR_ARG(p.p[i].key), STR_ARG(before), kind_name(n));
        n = next;
    }
    *ret = n;
    return DEP_OK;
}

dep_status yaml_find(const ydoc *doc, str path, ynode **ret, dep_err *err) {
    arena *a = arena_new();
    dep_status status = find_guarded(a, doc, path, ret, err);
    arena_free(a);
    return status;
}

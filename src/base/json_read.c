// json_read: strict reading. A validator of ours walks the text first and records each value's place in
// document order; only text that it accepts reaches cJSON, whose tree is mirrored into the arena and freed
// before the function returns. cJSON takes things that RFC 8259 does not, ends strings at U+0000 and numbers
// at 63 bytes, so the validator decides what is JSON, strings are decoded here, and cJSON gets a copy where
// one of these two would matter. Must not know what a document means. Slices point into the caller's text;
// all else is in the caller's arena.
#include "base/utf8_int.h"
#include <cjson/cJSON.h>
#include <deputy/json.h>
#include <math.h>
#include <stdlib.h>

enum { CJSON_NUMBER_MAX = 60, KEY_SHOWN_MAX = 60 };

// One value as the validator saw it.
typedef struct {
    str raw, key;
    bool escaped; // a string with a backslash in it
} slot;

typedef struct {
    str name;
    size_t at;
} member;

typedef struct {
    arena *a;
    str t;
    size_t i;
    size_t depth;
    bool twins; // equal keys in one object are fine
    VEC(slot) slots;
    VEC(member) members; // of the objects that are open, innermost last
    VEC(str) masked;     // pieces of the text that cJSON must see otherwise
    dep_err *err;
} reader;

// --- Errors with a place. ---

typedef struct {
    size_t line, column;
} place;

static place place_of(str t, size_t at) {
    place p = {1, 1};
    size_t start = 0;
    for (size_t i = 0; i < at && i < t.n; i++) {
        if (t.p[i] != '\n') continue;
        p.line++;
        start = i + 1;
    }
    p.column = utf8_count(str_sub(t, start, at)) + 1;
    return p;
}

static dep_status fail_at(reader *r, size_t at, dep_status status, const char *what) {
    place p = place_of(r->t, at);
    return err_set(r->err, status, "line %zu column %zu: %s", p.line, p.column, what);
}

static dep_status fail(reader *r, const char *what) {
    return fail_at(r, r->i, DEP_ERR_PARSE, r->i < r->t.n ? what : "the text ends too early");
}

static dep_status fail_duplicate(reader *r, const member *first, const member *second) {
    place p = place_of(r->t, second->at), q = place_of(r->t, first->at);
    buf shown = buf_new(r->a, 0);
    term_add(&shown, utf8_cut_chars(first->name, KEY_SHOWN_MAX), false);
    str name = buf_str(&shown);
    return err_set(r->err, DEP_ERR_PARSE,
                   "line %zu column %zu: the key \"" STR_FMT "\" is already at line %zu column %zu", p.line,
                   p.column, STR_ARG(name), q.line, q.column);
}

// --- Strings. ---

static int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// The four digits at s.p[i], or -1.
static int32_t hex4(str s, size_t i) {
    if (s.n < 4 || i > s.n - 4) return -1;
    int32_t v = 0;
    for (size_t k = i; k < i + 4; k++) {
        int d = hex_value(s.p[k]);
        if (d < 0) return -1;
        v = v * 16 + d;
    }
    return v;
}

static bool is_high(int32_t u) {
    return u >= 0xD800 && u <= 0xDBFF;
}
static bool is_low(int32_t u) {
    return u >= 0xDC00 && u <= 0xDFFF;
}

// r->i stands on the backslash of \uXXXX.
static dep_status check_unicode_escape(reader *r) {
    int32_t u = hex4(r->t, r->i + 2);
    if (u < 0) return fail_at(r, r->i, DEP_ERR_PARSE, "\\u needs four hexadecimal digits");
    size_t len = 6;
    if (is_high(u)) {
        bool pair = str_starts(str_sub(r->t, r->i + 6, r->t.n), S("\\u")) && is_low(hex4(r->t, r->i + 8));
        if (!pair) return fail_at(r, r->i, DEP_ERR_PARSE, "half of a surrogate pair stands alone");
        len = 12;
    } else if (is_low(u)) {
        return fail_at(r, r->i, DEP_ERR_PARSE, "half of a surrogate pair stands alone");
    }
    if (u == 0) vec_push(r->a, &r->masked, str_sub(r->t, r->i, r->i + 6));
    r->i += len;
    return DEP_OK;
}

// r->i stands on the opening quote; afterwards behind the closing one. Valid UTF-8 has been checked for the
// whole text.
static dep_status check_string(reader *r, bool *escaped) {
    *escaped = false;
    for (r->i++; r->i < r->t.n;) {
        unsigned char c = (unsigned char)r->t.p[r->i];
        if (c == '"') {
            r->i++;
            return DEP_OK;
        }
        if (c < 0x20) return fail(r, "a control character in a string must be escaped");
        if (c != '\\') {
            r->i++;
            continue;
        }
        *escaped = true;
        char e = r->i + 1 < r->t.n ? r->t.p[r->i + 1] : 0;
        if (e == 'u') {
            TRY(check_unicode_escape(r));
        } else if (e != 0 && strchr("\"\\/bfnrt", e)) {
            r->i += 2;
        } else {
            return fail(r, "unknown escape in a string");
        }
    }
    return fail(r, "");
}

// The text of a checked string; without escapes it is a slice of the input.
static str string_text(arena *a, str raw, bool escaped) {
    str in = str_sub(raw, 1, raw.n - 1);
    if (!escaped) return in;
    // An escape is never shorter than what it stands for: one block of the right size.
    buf out = buf_new(a, 0);
    out.cap = in.n + 1;
    out.p = arena_alloc(a, out.cap);
    for (size_t i = 0; i < in.n;) {
        size_t run = str_chr(str_sub(in, i, in.n), '\\');
        if (run == SIZE_MAX) run = in.n - i;
        buf_add(&out, str_n(in.p + i, run));
        i += run;
        if (i == in.n) break;
        char e = in.p[i + 1];
        if (e != 'u') {
            static const char names[] = "bfnrt", values[] = "\b\f\n\r\t";
            const char *at = strchr(names, e);
            buf_addc(&out, at ? values[at - names] : e);
            i += 2;
            continue;
        }
        int32_t u = hex4(in, i + 2);
        i += 6;
        if (is_high(u)) {
            u = 0x10000 + ((u - 0xD800) << 10) + (hex4(in, i + 2) - 0xDC00);
            i += 6;
        }
        utf8_put(&out, (uint32_t)u);
    }
    return buf_str(&out);
}

// --- Grammar. ---

static void skip_blanks(reader *r) {
    while (r->i < r->t.n) {
        char c = r->t.p[r->i];
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return;
        r->i++;
    }
}

static char peek(const reader *r) {
    return r->i < r->t.n ? r->t.p[r->i] : 0;
}

static bool digits(reader *r) {
    size_t from = r->i;
    while (peek(r) >= '0' && peek(r) <= '9') r->i++;
    return r->i > from;
}

static dep_status check_number(reader *r) {
    size_t from = r->i;
    if (peek(r) == '-') r->i++;
    if (peek(r) == '0')
        r->i++;
    else if (!digits(r))
        return fail(r, "a digit must stand here");
    if (peek(r) == '.') {
        r->i++;
        if (!digits(r)) return fail(r, "a digit must follow the decimal point");
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->i++;
        if (peek(r) == '+' || peek(r) == '-') r->i++;
        if (!digits(r)) return fail(r, "a digit must stand in the exponent");
    }
    str raw = str_sub(r->t, from, r->i);
    if (raw.n > CJSON_NUMBER_MAX) vec_push(r->a, &r->masked, raw);
    return DEP_OK;
}

static dep_status check_word(reader *r, str word) {
    if (!str_starts(str_sub(r->t, r->i, r->t.n), word)) return fail(r, "a value must stand here");
    r->i += word.n;
    return DEP_OK;
}

static int by_name(const void *x, const void *y) {
    const member *a = x, *b = y;
    int c = str_cmp(a->name, b->name);
    return c ? c : (a->at > b->at) - (a->at < b->at);
}

// Looks for two equal names among the members of the innermost open object, which begin at `first`.
static dep_status check_members(reader *r, size_t first) {
    if (r->members.n - first > 1 && !r->twins) {
        qsort(r->members.p + first, r->members.n - first, sizeof(member), by_name);
        const member *twin = nullptr;
        for (size_t k = first + 1; k < r->members.n; k++) {
            const member *m = &r->members.p[k];
            if (str_eq(m[-1].name, m->name) && (!twin || m->at < twin->at)) twin = m;
        }
        if (twin) return fail_duplicate(r, twin - 1, twin);
    }
    r->members.n = first;
    return DEP_OK;
}

static dep_status check_value(reader *r, str key);

// Steps over a comma or the closing bracket; *more tells which.
static dep_status check_separator(reader *r, char close, bool *more) {
    skip_blanks(r);
    char c = peek(r);
    if (c != ',' && c != close)
        return fail(r, close == '}' ? "a comma or } must stand here" : "a comma or ] must stand here");
    r->i++;
    *more = c == ',';
    return DEP_OK;
}

static dep_status check_object(reader *r) {
    size_t first = r->members.n;
    r->i++;
    skip_blanks(r);
    bool more = peek(r) != '}';
    if (!more) r->i++;
    while (more) {
        skip_blanks(r);
        if (peek(r) != '"') return fail(r, "a key in double quotes must stand here");
        bool escaped;
        size_t at = r->i;
        TRY(check_string(r, &escaped));
        str name = string_text(r->a, str_sub(r->t, at, r->i), escaped);
        vec_push(r->a, &r->members, (member){name, at});
        skip_blanks(r);
        if (peek(r) != ':') return fail(r, "a colon must follow the key");
        r->i++;
        TRY(check_value(r, name));
        TRY(check_separator(r, '}', &more));
    }
    return check_members(r, first);
}

static dep_status check_array(reader *r) {
    r->i++;
    skip_blanks(r);
    bool more = peek(r) != ']';
    if (!more) r->i++;
    while (more) {
        TRY(check_value(r, (str){0}));
        TRY(check_separator(r, ']', &more));
    }
    return DEP_OK;
}

static dep_status check_container(reader *r, bool object) {
    if (r->depth == JSON_DEPTH_MAX)
        return fail_at(r, r->i, DEP_ERR_LIMIT, "nested more than 256 levels deep");
    r->depth++;
    TRY(object ? check_object(r) : check_array(r));
    r->depth--;
    return DEP_OK;
}

static dep_status check_value(reader *r, str key) {
    skip_blanks(r);
    if (r->slots.n == JSON_VALUES_MAX) return fail_at(r, r->i, DEP_ERR_LIMIT, "more than 1048576 values");
    size_t at = r->i, mine = r->slots.n;
    bool escaped = false;
    vec_push(r->a, &r->slots, (slot){.key = key});
    switch (peek(r)) {
    case '{': TRY(check_container(r, true)); break;
    case '[': TRY(check_container(r, false)); break;
    case '"': TRY(check_string(r, &escaped)); break;
    case 't': TRY(check_word(r, S("true"))); break;
    case 'f': TRY(check_word(r, S("false"))); break;
    case 'n': TRY(check_word(r, S("null"))); break;
    case '-':
    case '0' ... '9': TRY(check_number(r)); break;
    default: return fail(r, "a value must stand here");
    }
    r->slots.p[mine].raw = str_sub(r->t, at, r->i);
    r->slots.p[mine].escaped = escaped;
    return DEP_OK;
}

static dep_status check_document(reader *r) {
    size_t bad = utf8_invalid_at(r->t);
    if (bad != SIZE_MAX) return fail_at(r, bad, DEP_ERR_PARSE, "invalid UTF-8");
    if (str_starts(r->t, S("\xEF\xBB\xBF"))) return fail(r, "a byte order mark is not allowed");
    TRY(check_value(r, (str){0}));
    skip_blanks(r);
    if (r->i < r->t.n) return fail(r, "nothing may follow the value");
    return DEP_OK;
}

// --- The tree. ---

static json_kind kind_of(str raw) {
    switch (raw.p[0]) {
    case '{': return JSON_OBJECT;
    case '[': return JSON_ARRAY;
    case '"': return JSON_STRING;
    case 't': return JSON_TRUE;
    case 'f': return JSON_FALSE;
    case 'n': return JSON_NULL;
    default: return JSON_NUMBER;
    }
}

static bool same_kind(const cJSON *c, json_kind kind) {
    static const int types[] = {cJSON_NULL,   cJSON_False, cJSON_True,  cJSON_Number,
                                cJSON_String, cJSON_Array, cJSON_Object};
    return (c->type & 0xFF) == types[kind];
}

static dep_status disagree(const reader *r) {
    return err_set(r->err, DEP_ERR_INTERNAL, "the JSON readers disagree");
}

// Fills v from c and the next slot, and makes its children.
static dep_status mirror(reader *r, const cJSON *c, size_t *next, json *v) {
    if (*next == r->slots.n) return disagree(r);
    const slot *s = &r->slots.p[(*next)++];
    *v = (json){.kind = kind_of(s->raw), .key = s->key, .raw = s->raw};
    if (!same_kind(c, v->kind)) return disagree(r);
    if (v->kind == JSON_STRING) v->s = string_text(r->a, s->raw, s->escaped);
    if (v->kind == JSON_NUMBER) {
        // The C locale is in force: Deputy never sets LC_NUMERIC.
        v->num = s->raw.n > CJSON_NUMBER_MAX ? strtod(str_cz(r->a, s->raw), nullptr) : c->valuedouble;
        if (isinf(v->num))
            return fail_at(r, (size_t)(s->raw.p - r->t.p), DEP_ERR_PARSE, "the number is too large");
    }
    json **tail = &v->child;
    for (const cJSON *e = c->child; e; e = e->next, v->count++) {
        json *child = NEW(r->a, json);
        TRY(mirror(r, e, next, child));
        *tail = child;
        tail = &child->next;
    }
    return DEP_OK;
}

// The text as cJSON takes it: of the same length, \u0000 as another character, a long number as a short one
// and blanks.
static str text_for_cjson(reader *r) {
    if (r->masked.n == 0) return r->t;
    str copy = str_dup(r->a, r->t);
    for (vec_each(str, m, &r->masked)) {
        char *p = (char *)copy.p + (m->p - r->t.p);
        if (*p == '\\') {
            p[5] = '1';
            continue;
        }
        memset(p, ' ', m->n);
        *p = '0';
    }
    return copy;
}

static void delete_tree(void *p) {
    cJSON **root = p;
    cJSON_Delete(*root);
    *root = nullptr;
}

static dep_status parse(arena *a, str text, size_t max_size, bool twins, json **ret, dep_err *err) {
    if (max_size == 0) max_size = JSON_SIZE_MAX;
    if (text.n > max_size)
        return err_set(err, DEP_ERR_LIMIT, "%zu bytes of JSON, the limit is %zu", text.n, max_size);
    reader r = {.a = a, .t = text, .twins = twins, .err = err};
    TRY(check_document(&r));
    str copy = text_for_cjson(&r);
    // On the arena, because an allocation of the mirror that fails leaves this function without coming back.
    cJSON **root = NEW(a, cJSON *);
    arena_defer(a, delete_tree, root);
    *root = cJSON_ParseWithLengthOpts(copy.p, copy.n, nullptr, false);
    if (!*root) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    size_t next = 0;
    json *tree = NEW(a, json);
    dep_status st = mirror(&r, *root, &next, tree);
    if (st == DEP_OK && next != r.slots.n) st = disagree(&r);
    delete_tree(root);
    if (st == DEP_OK) *ret = tree;
    return st;
}

dep_status json_parse(arena *a, str text, size_t max_size, json **ret, dep_err *err) {
    return parse(a, text, max_size, false, ret, err);
}

dep_status json_parse_twins(arena *a, str text, size_t max_size, json **ret, dep_err *err) {
    return parse(a, text, max_size, true, ret, err);
}

// --- Looking up. ---

const json *json_get(const json *o, str key) {
    if (!o || o->kind != JSON_OBJECT) return nullptr;
    for (const json *m = o->child; m; m = m->next)
        if (str_eq(m->key, key)) return m;
    return nullptr;
}

const json *json_at(const json *v, size_t i) {
    if (!v || v->kind != JSON_ARRAY || i >= v->count) return nullptr;
    const json *e = v->child;
    while (i-- > 0) e = e->next;
    return e;
}

str json_str(const json *o, str key, str dflt) {
    const json *v = json_get(o, key);
    return v && v->kind == JSON_STRING ? v->s : dflt;
}

bool json_bool(const json *o, str key, bool dflt) {
    const json *v = json_get(o, key);
    return v && (v->kind == JSON_TRUE || v->kind == JSON_FALSE) ? v->kind == JSON_TRUE : dflt;
}

double json_num(const json *o, str key, double dflt) {
    const json *v = json_get(o, key);
    return v && v->kind == JSON_NUMBER ? v->num : dflt;
}

bool json_int(const json *v, int64_t min, int64_t max, int64_t *ret) {
    if (!v || v->kind != JSON_NUMBER) return false;
    int64_t n;
    bool negative = v->raw.p[0] == '-';
    uint64_t magnitude;
    if (str_u64(str_sub(v->raw, negative, v->raw.n), (uint64_t)INT64_MAX + negative, &magnitude)) {
        n = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    } else {
        // 1e3 and 2.0 are whole numbers too, as far as a double holds them exactly.
        if (!(fabs(v->num) <= 0x1p53) || v->num != floor(v->num)) return false;
        n = (int64_t)v->num;
    }
    if (n < min || n > max) return false;
    *ret = n;
    return true;
}

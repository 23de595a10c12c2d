// json_write: JSON text from calls, strings quoted, and the canonical form for digests and comparisons. The
// bytes depend on the arguments alone (never on a locale). Output and scratch memory are the caller's buf and
// its arena.
#include "base/utf8_int.h"
#include <deputy/json.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void before_value(jw *w) {
    if (w->comma) buf_addc(w->out, ',');
    w->comma = true;
}

static void open_with(jw *w, char c) {
    before_value(w);
    buf_addc(w->out, c);
    w->comma = false;
    w->depth++;
}

static void close_with(jw *w, char c) {
    buf_addc(w->out, c);
    w->comma = true;
    w->depth--;
}

void jw_obj(jw *w) {
    open_with(w, '{');
}
void jw_arr(jw *w) {
    open_with(w, '[');
}
void jw_end_obj(jw *w) {
    close_with(w, '}');
}
void jw_end_arr(jw *w) {
    close_with(w, ']');
}

void jw_key(jw *w, str key) {
    if (w->comma) buf_addc(w->out, ',');
    json_quote(w->out, key);
    buf_addc(w->out, ':');
    w->comma = false;
}

void jw_str(jw *w, str s) {
    before_value(w);
    json_quote(w->out, s);
}

void jw_int(jw *w, int64_t v) {
    before_value(w);
    buf_addf(w->out, "%lld", (long long)v);
}

// The exponent without its plus sign and leading zeros.
static void add_number(buf *out, str text) {
    size_t e = str_chr(text, 'e');
    if (e == SIZE_MAX) {
        buf_add(out, text);
        return;
    }
    bool negative = text.p[e + 1] == '-';
    size_t digits = e + 2;
    while (text.p[digits] == '0') digits++;
    buf_add(out, str_sub(text, 0, e + 1));
    if (negative) buf_addc(out, '-');
    buf_add(out, str_sub(text, digits, text.n));
}

void jw_num(jw *w, double v) {
    before_value(w);
    if (!isfinite(v)) {
        buf_add(w->out, S("null"));
        return;
    }
    if (v == trunc(v) && fabs(v) <= 0x1p53) {
        buf_addf(w->out, "%lld", (long long)v);
        return;
    }
    // Where 15 digits tell all numbers apart %g gives the shortest of them by itself, and 16 and 17 are the
    // rest; among the tiny ones fewer digits can do.
    char text[40];
    for (int digits = fabs(v) < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, nullptr) == v) break;
    }
    add_number(w->out, str_z(text));
}

void jw_bool(jw *w, bool v) {
    before_value(w);
    buf_add(w->out, v ? S("true") : S("false"));
}

void jw_null(jw *w) {
    before_value(w);
    buf_add(w->out, S("null"));
}

void jw_raw(jw *w, str json_text) {
    before_value(w);
    buf_add(w->out, json_text);
}

static void quote_one(buf *out, unsigned char c) {
    static const char names[] = "\"\\bfnrt", values[] = "\"\\\b\f\n\r\t";
    const char *at = c ? strchr(values, c) : nullptr;
    if (at)
        buf_add(out, str_n((char[]){'\\', names[at - values]}, 2));
    else
        buf_addf(out, "\\u%04x", c);
}

void json_quote(buf *out, str s) {
    buf_addc(out, '"');
    size_t from = 0;
    for (size_t i = 0; i < s.n;) {
        i += utf8_printable_run(s, i, '"', '\\');
        if (i == s.n) break;
        size_t at = i;
        unsigned char c = (unsigned char)s.p[i];
        if (c >= 0x7F && utf8_step(s, &i) != UTF8_BAD) continue;
        buf_add(out, str_sub(s, from, at));
        if (c >= 0x80)
            utf8_put(out, UTF8_REPLACEMENT);
        else
            quote_one(out, (unsigned char)s.p[i++]);
        from = i;
    }
    buf_add(out, str_sub(s, from, s.n));
    buf_addc(out, '"');
}

// --- Canonical form. ---

static int by_key(const void *x, const void *y) {
    const json *a = *(const json *const *)x, *b = *(const json *const *)y;
    int c = str_cmp(a->key, b->key);
    return c ? c : (a->raw.p > b->raw.p) - (a->raw.p < b->raw.p);
}

// A number that a double cannot hold keeps its own text: two different ones must not become equal.
static void canonical_number(jw *w, const json *v) {
    int64_t n;
    bool whole = true;
    for (size_t i = 0; i < v->raw.n; i++)
        whole = whole && ((v->raw.p[i] >= '0' && v->raw.p[i] <= '9') || (i == 0 && v->raw.p[i] == '-'));
    if (json_int(v, INT64_MIN, INT64_MAX, &n))
        jw_int(w, n);
    else if (whole)
        jw_raw(w, v->raw);
    else
        jw_num(w, v->num);
}

static void canonical(jw *w, const json *v) {
    switch (v->kind) {
    case JSON_NULL: jw_null(w); return;
    case JSON_FALSE: jw_bool(w, false); return;
    case JSON_TRUE: jw_bool(w, true); return;
    case JSON_NUMBER: canonical_number(w, v); return;
    case JSON_STRING: jw_str(w, v->s); return;
    case JSON_ARRAY:
        jw_arr(w);
        for (const json *e = v->child; e; e = e->next) canonical(w, e);
        jw_end_arr(w);
        return;
    case JSON_OBJECT: break;
    }
    const json **members = NEW_N(w->out->a, const json *, v->count);
    size_t n = 0;
    for (const json *m = v->child; m; m = m->next) members[n++] = m;
    qsort(members, n, sizeof *members, by_key);
    jw_obj(w);
    for (size_t i = 0; i < n; i++) {
        jw_key(w, members[i]->key);
        canonical(w, members[i]);
    }
    jw_end_obj(w);
}

void json_canonical(buf *out, const json *v) {
    jw w = jw_new(out);
    canonical(&w, v);
}

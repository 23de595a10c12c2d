// redact: secrets taken out of text (rule B27), in one pass and also across chunk edges. A secret is
// recognised raw, with any of its bytes percent-encoded, with any of its characters escaped as in JSON, once
// or twice, and inside base64 (both alphabets, all three alignments). The streaming form is the only one; the
// whole-text form is one feed. Knows nothing of where secrets come from.
#include <deputy/model.h>

enum {
    B64_ALIGNMENTS = 3,
    B64_NEEDLE_MIN = 6, // characters: shorter pieces of base64 are found in ordinary text
};

typedef struct {
    str raw;
    str b64[B64_ALIGNMENTS]; // the characters that depend on the secret alone; empty when too few
} needle;

struct redactor {
    arena *a;
    needle *needles;
    size_t n;
    bool first[256]; // bytes with which an encoded secret can begin
    buf held;        // text that may be the beginning of a secret
};

// How far a secret goes at some place of the text.
typedef struct {
    size_t length; // bytes of the text, 0: not here
    bool cut;      // it may be here, but the text ends first
} found;

static const char b64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// The base64 of the secret when `before` bytes stand in front of it, without the characters that also depend
// on its neighbours.
static str b64_core(arena *a, str secret, size_t before) {
    buf out = buf_new(a, 0);
    size_t from = (before * 8 + 5) / 6, to = (before + secret.n) * 8 / 6;
    for (size_t i = from; i < to; i++) {
        unsigned v = 0;
        for (size_t bit = i * 6; bit < i * 6 + 6; bit++) {
            size_t byte = bit / 8 - before;
            v = v << 1 | ((unsigned char)secret.p[byte] >> (7 - bit % 8) & 1u);
        }
        buf_addc(&out, b64_digits[v]);
    }
    return out.n >= B64_NEEDLE_MIN ? buf_str(&out) : (str){0};
}

static int hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

// Number written in n hexadecimal digits at the start of s; -1: not one, -2: s ends before.
static int32_t hex_n(str s, size_t n) {
    int32_t v = 0;
    for (size_t i = 0; i < n; i++) {
        if (i >= s.n) return -2;
        if (hex(s.p[i]) < 0) return -1;
        v = v * 16 + hex(s.p[i]);
    }
    return v;
}

// One unit of encoded text: what it stands for (at most 4 bytes) and how long it is. length 0: the text ends
// within it.
typedef struct {
    char bytes[4];
    size_t n, length;
} unit;

static unit unit_raw(str s) {
    return (unit){{s.p[0]}, 1, 1};
}

static unit unit_url(str s) {
    if (s.p[0] != '%') return unit_raw(s);
    int32_t v = hex_n(str_sub(s, 1, s.n), 2);
    if (v == -2) return (unit){0};
    return v < 0 ? unit_raw(s) : (unit){{(char)v}, 1, 3};
}

// The bytes of \uXXXX, of a pair of them when the first is a high surrogate.
static unit unit_json_u(str s) {
    int32_t v = hex_n(str_sub(s, 2, s.n), 4);
    if (v < 0) return v == -2 ? (unit){0} : unit_raw(s);
    size_t length = 6;
    if (v >= 0xD800 && v < 0xDC00) {
        str rest = str_sub(s, 6, s.n);
        int32_t low = rest.n < 2 ? -2 : hex_n(str_sub(rest, 2, rest.n), 4);
        if (low == -2) return (unit){0};
        if (low < 0xDC00 || low > 0xDFFF) return unit_raw(s);
        v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
        length = 12;
    }
    unit u = {.length = length};
    if (v < 0x80)
        u.bytes[u.n++] = (char)v;
    else if (v < 0x800)
        u.bytes[u.n++] = (char)(0xC0 | v >> 6);
    else if (v < 0x10000)
        u.bytes[u.n++] = (char)(0xE0 | v >> 12);
    else
        u.bytes[u.n++] = (char)(0xF0 | v >> 18);
    if (v >= 0x10000) u.bytes[u.n++] = (char)(0x80 | (v >> 12 & 0x3F));
    if (v >= 0x800) u.bytes[u.n++] = (char)(0x80 | (v >> 6 & 0x3F));
    if (v >= 0x80) u.bytes[u.n++] = (char)(0x80 | (v & 0x3F));
    return u;
}

static unit unit_json(str s) {
    if (s.p[0] != '\\') return unit_raw(s);
    if (s.n < 2) return (unit){0};
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (s.p[1] == 'u') return unit_json_u(s);
    for (size_t i = 0; from[i]; i++)
        if (s.p[1] == from[i]) return (unit){{to[i]}, 1, 2};
    return unit_raw(s);
}

// JSON within a string of JSON, as the arguments of a call stand in some APIs: what one decoding gives is
// decoded once more.
static unit unit_json_twice(str s) {
    enum { INNER_MAX = 12 }; // \\uXXXX\\uXXXX
    char inner[INNER_MAX + 4] = {0};
    size_t ends[INNER_MAX + 4], n = 0, at = 0;
    bool open = false; // the text ends within what may be one unit
    while (n < INNER_MAX && at < s.n) {
        unit u = unit_json(str_sub(s, at, s.n));
        open = u.length == 0;
        if (open) break;
        at += u.length;
        for (size_t i = 0; i < u.n; i++) {
            inner[n] = u.bytes[i];
            ends[n++] = at;
        }
        if (u.n && inner[0] != '\\') return u; // no inner escape
    }
    if (!n) return (unit){0};
    unit v = unit_json(str_n(inner, n));
    // Too little to tell, unless there is more than any unit needs.
    if (v.length == 0 || (v.length > n)) return open || at >= s.n ? (unit){0} : unit_json(s);
    v.length = ends[v.length - 1];
    return v;
}

// Reads s unit by unit against the secret.
static found match_units(str s, str secret, unit (*next)(str)) {
    size_t at = 0, done = 0;
    while (done < secret.n) {
        if (at >= s.n) return (found){.cut = true};
        unit u = next(str_sub(s, at, s.n));
        if (u.length == 0) return (found){.cut = true};
        if (u.n > secret.n - done) return (found){0};
        bool same = memcmp(u.bytes, secret.p + done, u.n) == 0;
        // Forms write a blank as a plus sign.
        if (!same && !(next == unit_url && s.p[at] == '+' && secret.p[done] == ' ')) return (found){0};
        at += u.length;
        done += u.n;
    }
    return (found){.length = at};
}

static char b64_standard(char c) {
    return c == '-' ? '+' : c == '_' ? '/' : c;
}

static found match_b64(str s, str core) {
    for (size_t i = 0; i < core.n; i++) {
        if (i >= s.n) return (found){.cut = true};
        if (b64_standard(s.p[i]) != core.p[i]) return (found){0};
    }
    return (found){.length = core.n};
}

static void longer(found *best, found f) {
    if (f.length > best->length) best->length = f.length;
    best->cut = best->cut || f.cut;
}

static found match(const redactor *r, str s) {
    found best = {0};
    for (size_t i = 0; i < r->n; i++) {
        const needle *k = &r->needles[i];
        longer(&best, match_units(s, k->raw, unit_raw));
        longer(&best, match_units(s, k->raw, unit_url));
        longer(&best, match_units(s, k->raw, unit_json));
        longer(&best, match_units(s, k->raw, unit_json_twice));
        for (size_t j = 0; j < B64_ALIGNMENTS; j++)
            if (k->b64[j].n) longer(&best, match_b64(s, k->b64[j]));
    }
    return best;
}

redactor *redact_new(arena *a, const str *secrets, size_t n) {
    redactor *r = NEW(a, redactor);
    r->a = a;
    r->needles = NEW_N(a, needle, n);
    r->held = buf_new(a, 0);
    for (size_t i = 0; i < n; i++) {
        if (secrets[i].n < SECRET_MIN) continue;
        needle *k = &r->needles[r->n++];
        k->raw = str_dup(a, secrets[i]);
        r->first[(unsigned char)k->raw.p[0]] = true;
        for (size_t j = 0; j < B64_ALIGNMENTS; j++) {
            k->b64[j] = b64_core(a, k->raw, j);
            if (k->b64[j].n) r->first[(unsigned char)k->b64[j].p[0]] = true;
        }
    }
    // Any secret can begin with an escape, and a digit of base64 has two spellings.
    if (r->n) r->first['%'] = r->first['\\'] = r->first['+'] = r->first['-'] = r->first['_'] = true;
    return r;
}

// Emits what is decided; the rest stays held.
static void scan(redactor *r, bool last, buf *out) {
    str all = buf_str(&r->held);
    size_t plain = 0, i = 0;
    while (i < all.n) {
        found f = r->first[(unsigned char)all.p[i]] ? match(r, str_sub(all, i, all.n)) : (found){0};
        if (f.cut && !last) break;
        if (f.length == 0) {
            i++;
            continue;
        }
        buf_add(out, str_sub(all, plain, i));
        buf_add(out, S("***"));
        plain = i += f.length;
    }
    buf_add(out, str_sub(all, plain, i));
    str rest = str_sub(all, i, all.n);
    if (rest.n) memmove(r->held.p, rest.p, rest.n);
    r->held.n = rest.n;
}

void redact_feed(redactor *r, str chunk, buf *out) {
    if (r->n == 0) {
        buf_add(out, chunk);
        return;
    }
    buf_add(&r->held, chunk);
    scan(r, false, out);
}

void redact_end(redactor *r, buf *out) {
    scan(r, true, out);
}

str redact_text(const redactor *r, arena *a, str text) {
    buf out = buf_new(a, 0);
    size_t plain = 0, i = 0;
    bool any = false;
    while (r->n && i < text.n) {
        found f = r->first[(unsigned char)text.p[i]] ? match(r, str_sub(text, i, text.n)) : (found){0};
        if (f.length == 0) {
            i++;
            continue;
        }
        any = true;
        buf_add(&out, str_sub(text, plain, i));
        buf_add(&out, S("***"));
        plain = i += f.length;
    }
    if (!any) return text;
    buf_add(&out, str_sub(text, plain, text.n));
    return buf_str(&out);
}

str secret_redact(arena *a, str text, const str *secrets, size_t n) {
    return redact_text(redact_new(a, secrets, n), a, text);
}

// decode: one pass over a document's bytes before libyaml sees them: line starts, a table from code points to
// bytes, and the characters that YAML 1.2 and libyaml read differently.
//
// libyaml counts code points and takes NEL, LS and PS for line breaks; YAML 1.2 does not. So the text it gets
// has them swapped for private-use code points that the document does not hold, and every place is looked up
// here. The source itself is never changed.
#include "yaml/yaml_int.h"
#include <deputy/utf8.h>

enum {
    STEP = 64,           // code points between two entries of the offset table
    PRIVATE = 0xF0000,   // first code point of plane 15, private use
    PRIVATE_N = 0xFFFE,  // of them
    DIRECTIVES_MAX = 64, // `%TAG` lines of a whole text: libyaml compares each with each
};

diag yaml_error(const char *code, str msg, str hint) {
    return (diag){.severity = SEV_ERROR, .code = code, .msg = msg, .hint = hint};
}

static void report_at(const ydoc *doc, size_t at, size_t len, diags *d, diag base) {
    yaml_diag_span(doc, NULL, at, at + len, d, base);
}

static void find_lines(arena *a, ydoc *doc) {
    str s = doc->source;
    size_t n = 1;
    for (const char *p = s.p, *e = s.p + s.n; s.n && (p = memchr(p, '\n', (size_t)(e - p))); p++) n++;
    doc->lines = NEW_N(a, size_t, n);
    doc->n_lines = 1;
    for (size_t i = 0; doc->n_lines < n; i++)
        if (s.p[i] == '\n') doc->lines[doc->n_lines++] = i + 1;
}

// The encoding that the first bytes betray, or NULL.
static const char *utf16_name(str s) {
    if (str_starts(s, S("\xFF\xFE"))) return "UTF-16 (little endian)";
    if (str_starts(s, S("\xFE\xFF"))) return "UTF-16 (big endian)";
    if (s.n < 4) return NULL;
    if (s.p[0] && !s.p[1] && s.p[2] && !s.p[3]) return "UTF-16 (little endian, without a byte order mark)";
    if (!s.p[0] && s.p[1] && !s.p[2] && s.p[3]) return "UTF-16 (big endian, without a byte order mark)";
    return NULL;
}

static bool check_encoding(arena *a, const ydoc *doc, diags *d) {
    const char *utf16 = utf16_name(doc->source);
    if (utf16) {
        diag e = yaml_error("YAML011", str_fmt(a, "the text is %s, not UTF-8", utf16),
                            S("save the file as UTF-8"));
        e.line = e.column = 1;
        yaml_diag(doc, NULL, d, e);
        return false;
    }
    size_t bad = utf8_invalid_at(doc->source);
    if (bad == SIZE_MAX) return true;
    uint32_t line, column;
    yaml_place(doc, bad, &line, &column);
    diag e =
        yaml_error("YAML011", str_fmt(a, "byte 0x%02X is not valid UTF-8", (unsigned char)doc->source.p[bad]),
                   S("save the file as UTF-8"));
    e.line = line;
    e.column = column;
    yaml_diag(doc, NULL, d, e); // without the line: it cannot be shown as it is
    return false;
}

static bool is_forbidden(uint32_t cp) {
    if (cp < 0x20) return cp != '\t' && cp != '\n' && cp != '\r';
    return cp == 0x7F || (cp >= 0x80 && cp < 0xA0 && cp != CP_NEL) || cp == 0xFFFE || cp == 0xFFFF;
}

static void report_forbidden(arena *a, const ydoc *doc, size_t at, size_t len, uint32_t cp, diags *d) {
    str msg = cp ? str_fmt(a, "control character U+%04X", cp) : S("NUL character");
    if (cp == '\r') msg = S("carriage return without a line feed");
    str hint = cp == '\r' ? S("use LF or CRLF line ends")
               : cp       ? str_fmt(a,
                              cp < 0x100 ? "write it in double quotes as \"\\x%02x\", or remove it"
                                               : "write it in double quotes as \"\\u%04x\", or remove it",
                                    cp)
                          : S("remove it");
    report_at(doc, at, len, d, yaml_error("YAML010", msg, hint));
}

typedef struct {
    bool swaps;      // a character must be swapped
    size_t controls; // reported so far
} survey;

// The table of offsets, the odd characters, and the faults that need no tree.
static survey look(arena *a, ydoc *doc, ytext *t, diags *d) {
    survey v = {0};
    str s = str_sub(doc->source, 0, doc->source.n);
    bool ascii = true;
    for (size_t i = 0; i < s.n && ascii; i++) ascii = (unsigned char)s.p[i] < 0x80;
    size_t index = 0;
    for (size_t i = t->base; i < s.n; index++) {
        size_t at = i;
        if (!ascii && index % STEP == 0) vec_push(a, &t->steps, (uint32_t)i);
        uint32_t cp = utf8_next(s, &i);
        bool lone_cr = cp == '\r' && (i >= s.n || s.p[i] != '\n');
        if (is_forbidden(cp) || lone_cr) {
            v.swaps = true;
            if (++v.controls <= DIAG_MAX) report_forbidden(a, doc, at, i - at, cp, d);
        } else if (cp == CP_NEL || cp == CP_LS || cp == CP_PS) {
            v.swaps = true;
            vec_push(a, &t->odd, (odd_char){at, cp});
        } else if (cp == CP_BOM && (at == t->base || s.p[at - 1] == '\n')) {
            vec_push(a, &t->odd, (odd_char){at, cp});
            if (at == t->base) v.swaps = true;
        }
    }
    return v;
}

// --- Directives -------------------------------------------------------------------------------------------

static bool known_version(str line) {
    str rest = str_trim(str_sub(line, S("%YAML").n, line.n));
    size_t comment = str_find(rest, S(" #"));
    rest = str_trim(str_sub(rest, 0, comment));
    return str_eq(rest, S("1.1")) || str_eq(rest, S("1.2"));
}

static bool is_word(str line, str word) {
    return str_starts(line, word) && (line.n == word.n || yaml_blank(line.p[word.n]));
}

// Judges the directives before the document. The place of each refused one goes to `refused`: as a comment it
// does no more harm, and the rest of the text can still be read.
static void judge_directives(arena *a, const ydoc *doc, offsets *refused, diags *d) {
    bool version = false;
    for (size_t n = 0; n < doc->n_lines; n++) {
        str line = yaml_line(doc, (uint32_t)n + 1), text = str_trim(line);
        if (str_empty(text) || text.p[0] == '#') continue;
        if (line.p[0] != '%') return;
        size_t at = (size_t)(line.p - doc->source.p);
        diag e = {0};
        if (is_word(text, S("%YAML"))) {
            if (!version && known_version(text)) {
                version = true;
                continue;
            }
            e = yaml_error("YAML001", version ? S("second %YAML line") : S("this YAML version is not known"),
                           S("remove the line, or write `%YAML 1.2`"));
        } else if (is_word(text, S("%TAG"))) {
            e = yaml_error("YAML003", S("tags are not accepted, so %TAG has no use"), S("remove the line"));
        } else {
            e = yaml_error("YAML001", S("unknown directive: a line that begins with % before the document"),
                           S("remove the line, or put the value in quotes"));
        }
        report_at(doc, at, text.n, d, e);
        vec_push(a, refused, (uint32_t)at);
    }
}

static bool too_many_directives(const ydoc *doc, diags *d) {
    size_t n = 0;
    for (size_t i = 0; i < doc->n_lines; i++) {
        if (!str_starts(str_sub(doc->source, doc->lines[i], SIZE_MAX), S("%TAG"))) continue;
        if (++n <= DIRECTIVES_MAX) continue;
        report_at(doc, doc->lines[i], 4, d,
                  yaml_error("YAML003", S("too many lines begin with %TAG"), S("remove them")));
        return true;
    }
    return false;
}

// --- The text for libyaml ---------------------------------------------------------------------------------

// Three code points of plane 15 that the text does not hold.
static void pick_stand_ins(arena *a, str s, uint32_t out[3]) {
    unsigned char *used = arena_alloc(a, PRIVATE_N / 8 + 1);
    for (size_t i = 0; i < s.n;) {
        uint32_t cp = utf8_next(s, &i);
        if (cp >= PRIVATE && cp < PRIVATE + PRIVATE_N)
            used[(cp - PRIVATE) / 8] |= (unsigned char)(1u << cp % 8);
    }
    size_t n = 0;
    for (uint32_t k = 0; k < PRIVATE_N && n < 3; k++)
        if (!(used[k / 8] & 1u << k % 8)) out[n++] = PRIVATE + k;
}

static void make_text(arena *a, const ydoc *doc, ytext *t, const offsets *refused) {
    str s = doc->source;
    pick_stand_ins(a, s, t->swap);
    buf b = buf_new(a, 0);
    size_t next = 0;
    for (size_t i = t->base; i < s.n;) {
        size_t at = i;
        uint32_t cp = utf8_next(s, &i);
        if (next < refused->n && at == refused->p[next]) {
            next++;
            buf_addc(&b, '#');
        } else if (cp == CP_NEL || cp == CP_LS || cp == CP_PS) {
            utf8_put(&b, t->swap[cp == CP_NEL ? 0 : cp == CP_LS ? 1 : 2]);
        } else if (is_forbidden(cp)) {
            utf8_put(&b, 0xFFFD);
        } else if (cp == CP_BOM && at == t->base) {
            buf_addc(&b, '\n'); // a second BOM, reported: what follows it keeps its column
        } else {
            buf_add(&b, str_n(s.p + at, i - at));
        }
    }
    t->text = buf_str(&b);
}

bool yaml_decode(arena *a, ydoc *doc, ytext *t, size_t max_size, diags *d) {
    str s = doc->source;
    if (max_size == 0) max_size = YAML_SIZE_MAX;
    if (max_size > UINT32_MAX / 2) max_size = UINT32_MAX / 2;
    if (s.n > max_size) {
        doc->lines = NEW_N(a, size_t, 1);
        doc->n_lines = 1;
        yaml_diag(doc, NULL, d,
                  yaml_error("YAML006",
                             str_fmt(a, "the text has %zu bytes; at most %zu are read", s.n, max_size),
                             S("split it, or move long text into files of its own")));
        return false;
    }
    doc->bom = str_starts(s, S("\xEF\xBB\xBF"));
    t->base = doc->bom ? 3 : 0;
    find_lines(a, doc);
    if (!check_encoding(a, doc, d) || too_many_directives(doc, d)) return false;
    survey v = look(a, doc, t, d);
    offsets refused = {0};
    judge_directives(a, doc, &refused, d);
    t->text = str_sub(s, t->base, s.n);
    if (v.swaps || refused.n) make_text(a, doc, t, &refused);
    // A missing last line end must not change the value of a block scalar that ends there.
    if (s.n && s.p[s.n - 1] != '\n') t->text = str_fmt(a, STR_FMT "\n", STR_ARG(t->text));
    return true;
}

size_t yaml_offset(const ydoc *doc, const ytext *t, size_t index) {
    if (t->steps.n == 0) return index + t->base < doc->source.n ? index + t->base : doc->source.n;
    size_t step = index / STEP, left = index % STEP;
    if (step >= t->steps.n) return doc->source.n;
    size_t at = t->steps.p[step];
    while (left-- && at < doc->source.n) utf8_next(doc->source, &at);
    return at;
}

str yaml_unswap(arena *a, const ytext *t, str value) {
    if (!t->swap[0] || !memchr(value.p, 0xF3, value.n)) return str_dup(a, value);
    static const uint32_t back[] = {CP_NEL, CP_LS, CP_PS};
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < value.n;) {
        size_t at = i;
        uint32_t cp = utf8_next(value, &i), to = 0;
        for (size_t k = 0; k < 3; k++)
            if (cp == t->swap[k]) to = back[k];
        if (to) {
            utf8_put(&b, to);
        } else {
            buf_add(&b, str_n(value.p + at, i - at));
        }
    }
    return buf_str(&b);
}

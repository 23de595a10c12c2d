// scalar: a string as YAML text: plain, quoted, or as a block. What is written here reads back equal, in this
// parser and in others.
#include "yaml/yaml_int.h"
#include <deputy/utf8.h>

static bool one_of(str s, const char *const *words) {
    for (; *words; words++)
        if (str_eq(s, str_z(*words))) return true;
    return false;
}

// Characters that must be escaped wherever they stand. Other breaks and U+FEFF are visible to no one.
static bool needs_escape(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0) || cp == CP_LS || cp == CP_PS || cp == CP_BOM ||
           cp == 0xFFFE || cp == 0xFFFF || cp == UTF8_BAD;
}

static bool any_escape(str s) {
    for (size_t i = 0; i < s.n;)
        if (needs_escape(utf8_next(s, &i))) return true;
    return false;
}

bool yaml_plain_ok(str s, bool flow) {
    static const char *const special[] = {"~", "null", "Null", "NULL", "<<", NULL};
    if (s.n == 0 || one_of(s, special) || any_escape(s)) return false;
    if (strchr("?:,[]{}#&*!|>'\"%@` ", s.p[0]) || s.p[s.n - 1] == ' ' || s.p[s.n - 1] == ':') return false;
    if (s.p[0] == '-' && (s.n == 1 || s.p[1] == ' ')) return false;
    if (str_starts(s, S("---")) || str_starts(s, S("..."))) return false;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i], next = i + 1 < s.n ? s.p[i + 1] : ' ';
        if (c == ':' && next == ' ') return false;
        if (c == ' ' && next == '#') return false;
        if (flow && (strchr(",[]{}", c) || (c == ':' && strchr("?'\"", next)))) return false;
    }
    return true;
}

bool yaml_looks_typed(str s) {
    static const char *const words[] = {"~",     "null",  "Null", "NULL", "true", "True", "TRUE", "false",
                                        "False", "FALSE", "y",    "Y",    "yes",  "Yes",  "YES",  "n",
                                        "N",     "no",    "No",   "NO",   "on",   "On",   "ON",   "off",
                                        "Off",   "OFF",   "=",    "<<",   ".nan", ".NaN", ".NAN", NULL};
    static const char *const infinities[] = {".inf", ".Inf", ".INF", NULL};
    if (s.n == 0 || one_of(s, words)) return true;
    str rest = str_sub(s, s.p[0] == '-' || s.p[0] == '+', s.n);
    if (one_of(rest, infinities)) return true;
    size_t i = str_starts(rest, S("."));
    if (i >= rest.n || rest.p[i] < '0' || rest.p[i] > '9') return false;
    // Numbers of every base, dates and times are made of these.
    for (; i < rest.n; i++)
        if (!strchr("0123456789abcdefABCDEFoxX_.,:+-TtZz ", rest.p[i])) return false;
    return true;
}

static void add_escape(buf *b, uint32_t cp) {
    switch (cp) {
    case '\0': buf_add(b, S("\\0")); return;
    case '\n': buf_add(b, S("\\n")); return;
    case '\r': buf_add(b, S("\\r")); return;
    case '\t': buf_add(b, S("\\t")); return;
    case 0x1B: buf_add(b, S("\\e")); return;
    case UTF8_BAD: buf_add(b, S("\xEF\xBF\xBD")); return;
    default: buf_addf(b, cp < 0x100 ? "\\x%02x" : "\\u%04x", cp);
    }
}

static str double_quoted(arena *a, str s) {
    buf b = buf_new(a, 0);
    buf_addc(&b, '"');
    for (size_t i = 0; i < s.n;) {
        size_t at = i;
        uint32_t cp = utf8_next(s, &i);
        if (cp == '"' || cp == '\\') buf_addc(&b, '\\');
        if (needs_escape(cp)) {
            add_escape(&b, cp);
        } else {
            buf_add(&b, str_sub(s, at, i));
        }
    }
    buf_addc(&b, '"');
    return buf_str(&b);
}

static str single_quoted(arena *a, str s) {
    buf b = buf_new(a, 0);
    buf_addc(&b, '\'');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\'') buf_addc(&b, '\'');
        buf_addc(&b, s.p[i]);
    }
    buf_addc(&b, '\'');
    return buf_str(&b);
}

str yaml_quote(arena *a, str s, bool prefer_double) {
    if (any_escape(s)) return double_quoted(a, s);
    bool single = str_chr(s, '\'') != SIZE_MAX;
    bool other = str_chr(s, '"') != SIZE_MAX || str_chr(s, '\\') != SIZE_MAX;
    if (single == other) return prefer_double ? double_quoted(a, s) : single_quoted(a, s);
    return single ? double_quoted(a, s) : single_quoted(a, s);
}

str yaml_quote_as(arena *a, str s, bool double_quotes) {
    return double_quotes || any_escape(s) ? double_quoted(a, s) : single_quoted(a, s);
}

str yaml_scalar_text(arena *a, str value, bool flow) {
    return yaml_plain_ok(value, flow) ? str_dup(a, value) : yaml_quote(a, value, false);
}

// --- Blocks -----------------------------------------------------------------------------------------------

static str first_line(str s) {
    while (s.n && s.p[0] == '\n') s = str_sub(s, 1, s.n);
    str line, rest;
    str_cut(s, '\n', &line, &rest);
    return line;
}

bool yaml_block_ok(str s, bool indicator) {
    if (!first_line(s).n) return false;
    if (yaml_blank(first_line(s).p[0]) && !indicator) return false;
    for (size_t i = 0; i < s.n;) {
        uint32_t cp = utf8_next(s, &i);
        if (cp != '\n' && cp != '\t' && needs_escape(cp)) return false;
    }
    return str_trim(s).n > 0;
}

bool yaml_fold_ok(str s) {
    if (!yaml_block_ok(s, false)) return false;
    // Lines that begin with a blank are not folded, and change how the breaks around them count.
    for (size_t i = 0; i + 1 < s.n; i++)
        if (s.p[i] == '\n' && yaml_blank(s.p[i + 1])) return false;
    return true;
}

static size_t trailing_breaks(str s) {
    size_t n = 0;
    while (n < s.n && s.p[s.n - 1 - n] == '\n') n++;
    return n;
}

void yaml_block_header(buf *out, str s, bool folded, unsigned indent, unsigned parent) {
    buf_addc(out, folded ? '>' : '|');
    if (yaml_blank(first_line(s).p[0])) buf_addf(out, "%u", indent - parent);
    size_t n = trailing_breaks(s);
    if (n != 1) buf_addc(out, n == 0 ? '-' : '+');
}

void yaml_block_body(buf *out, str s, bool folded, unsigned indent, str line_end) {
    size_t end = trailing_breaks(s), kept = end > 1 ? end - 1 : 0;
    str rest = str_sub(s, 0, s.n - end), line;
    bool more = true, text_before = false;
    while (more) {
        more = str_cut(rest, '\n', &line, &rest);
        // Between two lines of text one break would be folded into a blank.
        if (folded && text_before && line.n) buf_add(out, line_end);
        text_before = text_before || line.n > 0;
        if (line.n) buf_fill(out, ' ', indent);
        buf_add(out, line);
        buf_add(out, line_end);
    }
    for (size_t i = 0; i < kept; i++) buf_add(out, line_end);
}

void yaml_block_text(buf *out, str value, unsigned indent, str line_end) {
    if (yaml_block_ok(value, false)) {
        yaml_block_header(out, value, false, indent, 0);
        buf_add(out, line_end);
        yaml_block_body(out, value, false, indent, line_end);
    } else {
        buf_add(out, yaml_scalar_text(out->a, value, false));
        buf_add(out, line_end);
    }
}

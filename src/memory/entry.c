// entry: the text of a memory file: the headers that Deputy writes, what imitates them, and the newest
// entries of a long file. Pure: no file, no clock but the one it is given. Results are in the caller's arena.
#include "memory/memory_int.h"

#define HEADER_START "<!-- deputy: "

enum { VALUE_MAX = 160 }; // characters of a value in a header

// --- Headers -------------------------------------------------------------------------------------

// key=value, quoted when it has blanks; nothing in it can end the comment.
static void add_value(buf *out, const char *key, str value) {
    if (!value.n) return;
    str clean = foreign(out->a, value, FOREIGN_LINE, VALUE_MAX);
    bool quote = str_chr(clean, ' ') != SIZE_MAX;
    buf_addf(out, " %s=%s", key, quote ? "\"" : "");
    for (size_t i = 0; i < clean.n; i++) {
        char c = clean.p[i];
        buf_addc(out, c == '<' || c == '>' || c == '"' ? '_' : c);
    }
    if (quote) buf_addc(out, '"');
}

str memory_header(arena *a, const sys_clock *clock, const memory_write_opts *o) {
    buf out = buf_new(a, 0);
    buf_addf(&out, HEADER_START STR_FMT, STR_ARG(time_utc(a, clock->now_ms(clock->ctx))));
    if (!o->delegation.n && !o->agent.n && !o->model.n) buf_add(&out, S(" person"));
    add_value(&out, "delegation", o->delegation);
    add_value(&out, "agent", o->agent);
    add_value(&out, "model", o->model);
    buf_add(&out, S(" -->"));
    return buf_str(&out);
}

// --- Imitations ----------------------------------------------------------------------------------

// Reads content as a model would: folded, without invisible characters, controls and accents.
typedef struct {
    arena *a;
    str s;
    size_t i;
    str pending; // folded text of the code point read last
    size_t at;
} reader;

enum : uint32_t { READ_END = 0xFFFFFFFEu };

static uint32_t read_next(reader *r) {
    for (;;) {
        if (r->at < r->pending.n) {
            uint32_t cp = utf8_next(r->pending, &r->at);
            if (!utf8_is_mark(cp)) return cp;
            continue;
        }
        if (r->i >= r->s.n) return READ_END;
        size_t from = r->i;
        uint32_t cp = utf8_next(r->s, &r->i);
        if (cp < 0x80) {
            if (cp >= 'A' && cp <= 'Z') return cp + 32;
            if (utf8_is_control(cp) && !(cp >= '\t' && cp <= '\r')) continue;
            return cp;
        }
        if (cp == UTF8_BAD) return cp;
        if (utf8_is_invisible(cp) || utf8_is_bidi(cp) || utf8_is_mark(cp)) continue;
        r->pending = utf8_fold(r->a, str_sub(r->s, from, r->i));
        r->at = 0;
    }
}

static bool is_blank(uint32_t cp) {
    return cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

// Does what follows a '<' read as the beginning of a comment that says "deputy"? Letters of other alphabets
// count as any letter: they may be drawn like ours, and an escaped '<' too many does no harm.
static bool imitates(arena *a, str s, size_t after) {
    static const char opening[] = "!--", word[] = "deputy";
    reader r = {.a = a, .s = s, .i = after};
    for (size_t k = 0; opening[k]; k++)
        if (read_next(&r) != (unsigned char)opening[k]) return false;
    uint32_t cp = read_next(&r);
    while (is_blank(cp)) cp = read_next(&r);
    for (size_t k = 0; word[k]; k++, cp = read_next(&r))
        if (cp != (unsigned char)word[k] && (cp < 0x80 || !utf8_is_letter(cp))) return false;
    // "deputy", not "deputyship".
    return !(cp < 0x80 ? (cp >= 'a' && cp <= 'z') : utf8_is_letter(cp));
}

// The characters that fold to '<', and the one that is '<' with a stroke through it.
static bool is_less_than(uint32_t cp) {
    return cp == '<' || cp == 0x226E || cp == 0xFE64 || cp == 0xFF1C;
}

str memory_escape(arena *a, str content) {
    buf out = buf_new(a, 0);
    size_t from = 0;
    for (size_t i = 0; i < content.n;) {
        size_t at = i;
        if (!is_less_than(utf8_next(content, &i)) || !imitates(a, content, i)) continue;
        buf_add(&out, str_sub(content, from, at));
        buf_add(&out, S("&lt;"));
        from = i;
    }
    if (from == 0) return content;
    buf_add(&out, str_sub(content, from, content.n));
    return buf_str(&out);
}

// --- The newest entries --------------------------------------------------------------------------

typedef VEC(size_t) offsets;

// Where entries begin: the text before the first header is one, too.
static offsets entry_starts(arena *a, str text) {
    offsets at = {0};
    vec_push(a, &at, 0);
    for (size_t i = 0; i < text.n;) {
        if (i > 0 && str_starts(str_sub(text, i, text.n), S(HEADER_START))) vec_push(a, &at, i);
        size_t line = str_chr(str_sub(text, i, text.n), '\n');
        if (line == SIZE_MAX) break;
        i += line + 1;
    }
    return at;
}

static str without_end(str s) {
    while (s.n && s.p[s.n - 1] == '\n') s.n--;
    return s;
}

// Of one entry that is too long: the whole lines it begins with, or the beginning of its first line.
static str beginning(arena *a, str entry, size_t max, size_t *shown) {
    static const char mark[] = "\n…";
    size_t room = max - 2;
    str head = utf8_cut_chars(entry, room);
    size_t line = str_rchr(head, '\n');
    bool header_only = line != SIZE_MAX && str_starts(head, S(HEADER_START)) && str_chr(head, '\n') == line;
    if (line != SIZE_MAX && !header_only) head = without_end(str_sub(head, 0, line));
    *shown = utf8_count(head);
    return str_fmt(a, STR_FMT "%s", STR_ARG(head), mark);
}

str memory_newest(arena *a, str text, size_t max, size_t *chars, size_t *shown) {
    text = without_end(text);
    *chars = *shown = utf8_count(text);
    if (*chars <= max) return text;
    offsets at = entry_starts(a, text);
    size_t taken = 0, from = text.n;
    for (size_t k = at.n; k-- > 0;) {
        str entry = str_sub(text, at.p[k], from);
        size_t n = utf8_count(entry);
        if (taken + n > max) break;
        taken += n;
        from = at.p[k];
    }
    if (from == text.n) return beginning(a, str_sub(text, at.p[at.n - 1], text.n), max, shown);
    *shown = taken;
    return str_sub(text, from, text.n);
}

str memory_end(str bytes) {
    // More characters than are shown, whatever their length, so that of what is cut here nothing would be
    // shown.
    enum { ENOUGH = 4 * (MEMORY_RESIDENT_CHARS + 1) };
    size_t n = bytes.n;
    while (n && (bytes.p[n - 1] == '\n' || bytes.p[n - 1] == '\r')) n--;
    if (n <= ENOUGH) return bytes;
    for (size_t i = n - ENOUGH; i > 0; i--) {
        bool line = bytes.p[i - 1] == '\n';
        if (line && str_starts(str_sub(bytes, i, bytes.n), S(HEADER_START)))
            return str_sub(bytes, i, bytes.n);
    }
    return bytes;
}

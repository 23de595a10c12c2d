// foreign: the one function that makes text from files, servers and models fit to stand in a prompt or a tool
// result (rule B22). It must hold against text that is written to look like Deputy's own tags, so it compares
// as generously as a model reads (any width, case, accent, alphabet of look-alikes, invisible filling) and
// errs on the side of escaping. It knows the tag names and nothing of where the text goes. Output goes to the
// caller's buf.
#include "base/utf8_int.h"
#include <stdio.h>
#include <utf8proc.h>

// The tags of Deputy's prompts and tool results; each is compared with a whole word. A new tag is added here
// first, or text could imitate it. system_reminder is what hosts use for their own words.
static const char *const tags[] = {
    "available_skills",
    "skill",
    "skill_content",
    "skill_files",
    "name",
    "description",
    "location",
    "knowledge_sources",
    "knowledge_source",
    "allowed_mcp_servers",
    "mcp_server",
    "server_instructions",
    "memory",
    "memory_file",
    "deferred_tools",
    "tool_result",
    "system",
    "system_reminder",
    "task",
    "report",
    "delegation",
    nullptr,
};

enum { WORD_MAX = 24, PIECES_MAX = 32, LETTERS_END = 0xFFFFFFFEu };

const char *const *foreign_tags(void) {
    return tags;
}

// --- Reading as a model would: folded, without accents, invisible characters and controls. ---

typedef struct {
    str s;
    size_t i;
    int32_t pieces[PIECES_MAX];
    int n, at; // pieces of the code point read last that are still to be given out
    bool gap;  // something hidden stood before what was read last; it will be written out in its place
} reader;

typedef struct {
    uint16_t cp;
    char as;
} lookalike;

// Letters of other alphabets that fonts draw like one of ours, after folding; only letters that occur in tag
// names.
static const lookalike lookalikes[] = {
    {0x0131, 'i'}, {0x01C0, 'l'}, {0x0251, 'a'}, {0x0261, 'g'}, {0x0269, 'i'}, {0x03B1, 'a'}, {0x03B5, 'e'},
    {0x03B9, 'i'}, {0x03BA, 'k'}, {0x03BC, 'm'}, {0x03BD, 'v'}, {0x03BF, 'o'}, {0x03C1, 'p'}, {0x03C4, 't'},
    {0x03C5, 'u'}, {0x03F2, 'c'}, {0x0430, 'a'}, {0x0432, 'b'}, {0x0433, 'r'}, {0x0435, 'e'}, {0x043A, 'k'},
    {0x043C, 'm'}, {0x043E, 'o'}, {0x043F, 'n'}, {0x0440, 'p'}, {0x0441, 'c'}, {0x0442, 't'}, {0x0443, 'y'},
    {0x0455, 's'}, {0x0456, 'i'}, {0x0461, 'w'}, {0x0475, 'v'}, {0x04AF, 'y'}, {0x04CF, 'l'}, {0x0501, 'd'},
    {0x051D, 'w'}, {0x0570, 'h'}, {0x0578, 'n'}, {0x057D, 'u'}, {0x0585, 'o'}, {0x1D20, 'v'}, {0x1D21, 'w'},
};

static uint32_t plain(uint32_t cp) {
    if (cp < 0x80) return cp >= 'A' && cp <= 'Z' ? cp + 32 : cp;
    for (size_t k = 0; k < sizeof lookalikes / sizeof *lookalikes; k++)
        if (lookalikes[k].cp == cp) return (uint32_t)lookalikes[k].as;
    return cp;
}

static bool is_blank(uint32_t cp) {
    if (cp < 0x80) return cp == ' ' || (cp >= '\t' && cp <= '\r');
    if (cp == 0x85 || cp == 0x2800) return true; // next line, and the Braille cell without dots
    utf8proc_category_t c = utf8proc_category((utf8proc_int32_t)cp);
    return c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP;
}

// The next code point, decomposed and folded but not yet judged, or LETTERS_END.
static uint32_t read_piece(reader *r) {
    if (r->at < r->n) return (uint32_t)r->pieces[r->at++];
    if (r->i >= r->s.n) return LETTERS_END;
    uint32_t cp = utf8_next(r->s, &r->i);
    if (cp == UTF8_BAD) return UTF8_REPLACEMENT;
    if (cp < 0x80 || is_blank(cp)) return cp;
    int last = 0;
    utf8proc_option_t how = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD;
    utf8proc_ssize_t n = utf8proc_decompose_char((utf8proc_int32_t)cp, r->pieces, PIECES_MAX, how, &last);
    if (n < 1 || n > PIECES_MAX) return cp;
    r->n = (int)n;
    r->at = 1;
    return (uint32_t)r->pieces[0];
}

// Blanks that are not kept as they are.
static bool is_hidden_blank(const reader *r, uint32_t cp) {
    if (cp == '\r') return r->i == r->s.n || r->s.p[r->i] != '\n';
    return (utf8_is_control(cp) && cp != '\t' && cp != '\n') || utf8_is_invisible(cp);
}

// The next code point as it would be read, or LETTERS_END.
static uint32_t read_next(reader *r) {
    r->gap = false;
    for (;;) {
        uint32_t cp = read_piece(r);
        if (is_blank(cp)) {
            r->gap = r->gap || is_hidden_blank(r, cp);
            return cp;
        }
        if (utf8_is_control(cp) || utf8_is_bidi(cp) || utf8_is_invisible(cp))
            r->gap = true;
        else if (!utf8_is_mark(cp))
            return plain(cp);
    }
}

static bool is_slash(uint32_t cp) {
    return cp == '/' || cp == '\\' || cp == 0x2044 || cp == 0x2215 || cp == 0x29F8;
}

static bool is_word(uint32_t cp) {
    if (cp < 0x80) return (cp >= 'a' && cp <= 'z') || (cp >= '0' && cp <= '9') || cp == '_';
    return utf8_is_letter(cp) || utf8_is_decimal(cp);
}

// --- Is this `<` the start of one of our tags? ---

static bool is_tag_name(str word) {
    for (size_t k = 0; tags[k]; k++)
        if (str_eq(word, str_z(tags[k]))) return true;
    return false;
}

static bool begins_tag_name(str word) {
    for (size_t k = 0; tags[k]; k++)
        if (str_starts(str_z(tags[k]), word)) return true;
    return false;
}

// What follows a name that stood apart from its `<` decides between a tag and a comparison (`i < name.n`):
// the end of a tag, an attribute, or the end of the text.
static bool closes_tag(reader r, uint32_t cp) {
    bool apart = false;
    while (is_blank(cp) && !r.gap) {
        apart = true;
        cp = read_next(&r);
    }
    return r.gap || cp == '>' || is_slash(cp) || cp == LETTERS_END || (apart && is_word(cp));
}

// r stands after a `<`. Text that ends within what may become a tag counts as one: more may be put behind it.
static bool tag_follows(reader *r) {
    bool apart = false, slash = false;
    uint32_t cp = read_next(r);
    while (is_blank(cp) || is_slash(cp)) {
        if (is_slash(cp))
            slash = true;
        else
            apart = true;
        cp = read_next(r);
    }
    char word[WORD_MAX];
    size_t n = 0;
    for (;; cp = read_next(r)) {
        bool dash = cp == '-' || cp == 0x2010 || cp == 0x2011 || cp == 0x2013 || cp == 0x2212;
        if (cp == LETTERS_END) return begins_tag_name(str_n(word, n));
        // <task, something hidden, list>: with the hidden one written out it reads as <task again.
        if (r->gap && is_tag_name(str_n(word, n))) return true;
        if (!is_word(cp) || dash) {
            if (is_tag_name(str_n(word, n)) && (!apart || slash || closes_tag(*r, cp))) return true;
            if (!dash) return false;
            cp = '_'; // tool-result reads as tool_result
        }
        if (cp >= 0x80 || n == WORD_MAX) return false;
        word[n++] = (char)cp;
    }
}

// The characters that NFKC turns into `<`, and the one that is `<` with a stroke through it.
static bool is_less_than(uint32_t cp) {
    return cp == '<' || cp == 0x226E || cp == 0xFE64 || cp == 0xFF1C;
}

// --- Writing, with an optional limit in characters. ---

typedef struct {
    buf *out;
    size_t start;      // length of out before the first character
    size_t max, chars; // chars written so far
    size_t cut;        // length of out at the last boundary that leaves room for the mark of a cut
    uint32_t before;
    int32_t state;
} writer;

// Where to cut: what the cut leaves of `<name2>` must not read as `<name`, and a joiner needs both of its
// neighbours.
static size_t safe_cut(const writer *w) {
    if (w->cut == w->start) return w->cut;
    str kept = str_n(w->out->p + w->start, w->cut - w->start);
    for (size_t at = kept.n; at > 0; kept.n = at) {
        uint32_t cp = utf8_prev(kept, &at);
        if (!utf8_is_invisible(cp) || invisible_belongs(kept, at, kept.n, cp)) break;
    }
    for (size_t at = kept.n; at > 0;) {
        reader r = {.s = kept, .i = at};
        if (is_less_than(utf8_prev(kept, &at))) return w->start + (tag_follows(&r) ? at : kept.n);
    }
    return w->start + kept.n;
}

// Appends one unit, never a part of it: `chars` characters beginning with first and ending with last. False
// when full.
static bool unit(writer *w, str text, size_t chars, uint32_t first, uint32_t last) {
    if (w->max) {
        bool boundary = w->chars == 0 || utf8_breaks(w->before, first, &w->state);
        if (boundary && w->chars < w->max) w->cut = w->out->n;
        if (chars > w->max - w->chars) {
            w->out->n = safe_cut(w);
            buf_add(w->out, S("…"));
            return false;
        }
        if (chars > 1) w->state = 0;
        w->before = last;
        w->chars += chars;
    }
    buf_add(w->out, text);
    return true;
}

// Printable ASCII and what else is kept as it is: the common case in one piece.
static bool run(writer *w, str s) {
    if (w->max && (s.n > w->max - w->chars || w->chars == 0 || w->before >= 0x80)) {
        for (size_t i = 0; i < s.n; i++)
            if (!unit(w, str_n(s.p + i, 1), 1, (unsigned char)s.p[i], (unsigned char)s.p[i])) return false;
        return true;
    }
    if (w->max) {
        w->cut = w->out->n + s.n - 1;
        w->chars += s.n;
        w->before = (unsigned char)s.p[s.n - 1];
        w->state = 0;
    }
    buf_add(w->out, s);
    return true;
}

// Bytes from i that are kept as they are. With a limit only ASCII counts: other scripts take the way of
// graphemes.
static size_t plain_run(str s, size_t i, foreign_kind kind, bool limited) {
    size_t from = i;
    for (;;) {
        i += utf8_printable_run(s, i, '<', '<');
        if (i == s.n) return i - from;
        unsigned char c = (unsigned char)s.p[i];
        if (kind == FOREIGN_TEXT && (c == '\n' || c == '\t')) {
            i++;
            continue;
        }
        size_t next = i;
        if (c < 0x80 || limited || !utf8_is_ordinary(utf8_step(s, &next))) return i - from;
        i = next;
    }
}

static bool escaped(writer *w, uint32_t cp) {
    char text[16];
    int n = snprintf(text, sizeof text, "\\u{%04X}", cp);
    return unit(w, str_n(text, (size_t)n), (size_t)n, '\\', '}');
}

static bool breaks_line(uint32_t cp) {
    return (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

// One code point that is not plain, at s.p[at, next).
static bool special(writer *w, str s, size_t at, size_t next, uint32_t cp, foreign_kind kind) {
    if (cp == UTF8_BAD) return unit(w, S("\uFFFD"), 1, UTF8_REPLACEMENT, UTF8_REPLACEMENT);
    if (is_less_than(cp)) {
        reader r = {.s = s, .i = next};
        if (tag_follows(&r)) return unit(w, S("&lt;"), 4, '&', ';');
    }
    if (kind == FOREIGN_LINE && breaks_line(cp)) {
        // One blank for a whole run of them.
        if (at > 0 && breaks_line(utf8_prev(s, &at))) return true;
        return unit(w, S(" "), 1, ' ', ' ');
    }
    if (cp == '\r' && next < s.n && s.p[next] == '\n') return true;
    bool hidden = utf8_is_invisible(cp) && !invisible_belongs(s, at, next, cp);
    if (hidden || utf8_is_control(cp) || utf8_is_bidi(cp)) return escaped(w, cp);
    return unit(w, str_sub(s, at, next), 1, cp, cp);
}

void foreign_add(buf *out, str s, foreign_kind kind, size_t max_chars) {
    writer w = {.out = out, .start = out->n, .max = max_chars, .cut = out->n};
    for (size_t i = 0; i < s.n;) {
        size_t n = plain_run(s, i, kind, max_chars > 0), at = i;
        if (n) {
            if (!run(&w, str_n(s.p + i, n))) return;
            i += n;
            continue;
        }
        uint32_t cp = utf8_next(s, &i);
        if (!special(&w, s, at, i, cp, kind)) return;
    }
}

str foreign(arena *a, str s, foreign_kind kind, size_t max_chars) {
    buf out = buf_new(a, 0);
    foreign_add(&out, s, kind, max_chars);
    return buf_str(&out);
}

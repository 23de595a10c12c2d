// invisible: which invisible characters visible text needs, the report of the others (rule B24), and text for
// terminals (rule B23). Must not know where a text comes from. Finds are in the caller's arena.
#include "base/utf8_int.h"
#include <utf8proc.h>

enum { DECODED_MAX = 400, FLAG_TAGS_MAX = 6 };

size_t escape_add(buf *b, uint32_t cp) {
    size_t before = b->n;
    buf_addf(b, "\\u{%04X}", cp);
    return b->n - before;
}

// --- What belongs where it stands. ---

static bool is_emoji(uint32_t cp) {
    if (cp == UTF8_BAD || cp < 0xA9) return false;
    return utf8proc_get_property((utf8proc_int32_t)cp)->boundclass ==
           UTF8PROC_BOUNDCLASS_EXTENDED_PICTOGRAPHIC;
}

static bool is_skin_tone(uint32_t cp) {
    return cp >= 0x1F3FB && cp <= 0x1F3FF;
}
static bool is_emoji_selector(uint32_t cp) {
    return cp == 0xFE0E || cp == 0xFE0F;
}

// Scripts whose letters change shape with their neighbours, so that ZWJ and ZWNJ are part of the spelling.
static const cp_range joining[] = {
    {0x0620, 0x074F},   {0x0750, 0x077F},   {0x07CA, 0x07FA},   {0x0840, 0x085F},   {0x0860, 0x08FF},
    {0x0900, 0x0DFF},   {0x1000, 0x109F},   {0x1780, 0x17FF},   {0x1800, 0x18AF},   {0x1A20, 0x1AAF},
    {0x1B00, 0x1BFF},   {0xA800, 0xA82F},   {0xA840, 0xA87F},   {0xA880, 0xA8FF},   {0xA980, 0xA9DF},
    {0xAA60, 0xAA7F},   {0xABC0, 0xABFF},   {0xFB50, 0xFDFF},   {0xFE70, 0xFEFC},   {0x10A00, 0x10A5F},
    {0x11000, 0x1124F}, {0x11280, 0x1134F}, {0x11400, 0x114DF}, {0x11580, 0x116CF}, {0x1E900, 0x1E95F},
};

static bool joins(uint32_t cp) {
    return cp >= 0x0620 && cp != UTF8_BAD && cp_within(cp, joining, sizeof joining / sizeof *joining) &&
           !utf8_is_ignorable(cp) && (utf8_is_letter(cp) || utf8_is_mark(cp));
}

// Letters and marks of scripts that mark the end of a word, where a line may break, with a zero width space.
static bool breaks_words_unseen(uint32_t cp) {
    return ((cp >= 0x0E01 && cp <= 0x0EFF) || (cp >= 0x1000 && cp <= 0x109F) ||
            (cp >= 0x1780 && cp <= 0x17FF)) &&
           !utf8_is_ignorable(cp) && (utf8_is_letter(cp) || utf8_is_mark(cp));
}

static bool is_mongolian_letter(uint32_t cp) {
    return cp >= 0x1820 && cp <= 0x18AA;
}

static bool zwj_belongs(str s, size_t at, uint32_t after) {
    uint32_t before = utf8_prev(s, &at);
    if (joins(before)) {
        // After a sign that kills the vowel the joiner may end the word (Malayalam chillus).
        bool killer = utf8proc_get_property((utf8proc_int32_t)before)->combining_class == 9;
        return killer || joins(after);
    }
    if (is_emoji_selector(before) || is_skin_tone(before)) before = utf8_prev(s, &at);
    return is_emoji(before) && is_emoji(after);
}

// Flags made of tags: only those that are drawn. Any other run after the flag would hide words.
static bool tag_belongs(str s, size_t at) {
    static const str flags[] = {S_INIT("gbeng"), S_INIT("gbsct"), S_INIT("gbwls")};
    size_t start = at;
    uint32_t cp = UTF8_BAD;
    for (int k = 0; k <= FLAG_TAGS_MAX; k++) {
        cp = utf8_prev(s, &start);
        if (!utf8_is_tag(cp)) break;
    }
    if (cp != 0x1F3F4) return false;
    char word[FLAG_TAGS_MAX];
    utf8_next(s, &start);
    for (size_t n = 0; n < FLAG_TAGS_MAX; n++) {
        cp = utf8_next(s, &start);
        if (cp == 0xE007F) {
            if (start <= at) return false; // the flag ends before this one
            for (size_t k = 0; k < sizeof flags / sizeof *flags; k++)
                if (str_eq(flags[k], str_n(word, n))) return true;
            return false;
        }
        if (!utf8_is_tag(cp)) return false;
        word[n] = (char)(cp - 0xE0000);
    }
    return false;
}

bool invisible_belongs(str s, size_t at, size_t next, uint32_t cp) {
    size_t back = at, ahead = next;
    uint32_t before = utf8_prev(s, &back), after = utf8_next(s, &ahead);
    if (cp == UTF8_ZWJ) return zwj_belongs(s, at, after);
    if (cp == UTF8_ZWNJ) return joins(before) && joins(after);
    if (cp == UTF8_ZWSP) return breaks_words_unseen(before) && breaks_words_unseen(after);
    if (is_emoji_selector(cp)) {
        bool keycap = after == 0x20E3 && ((before >= '0' && before <= '9') || before == '#' || before == '*');
        return keycap || is_emoji(before);
    }
    if (cp >= 0x180B && cp <= 0x180F) return is_mongolian_letter(before);
    return utf8_is_tag(cp) && tag_belongs(s, at);
}

// --- Terminals. ---

static void term_escape(buf *out, uint32_t cp) {
    if (cp < 0x20 || cp == 0x7F)
        buf_addf(out, "\\x%02x", cp);
    else
        escape_add(out, cp);
}

void term_add(buf *out, str s, bool keep_newlines) {
    size_t from = 0;
    for (size_t i = 0; i < s.n;) {
        i += utf8_printable_run(s, i, 0, 0);
        if (i == s.n) break;
        size_t at = i;
        unsigned char c = (unsigned char)s.p[i];
        uint32_t cp = utf8_step(s, &i);
        if (utf8_is_ordinary(cp) || (keep_newlines && (c == '\n' || c == '\t'))) continue;
        bool hidden = utf8_is_invisible(cp) && !invisible_belongs(s, at, i, cp);
        if (cp != UTF8_BAD && !utf8_is_control(cp) && !utf8_is_bidi(cp) && !hidden) continue;
        buf_add(out, str_sub(s, from, at));
        from = i;
        if (cp == '\t')
            buf_addc(out, ' ');
        else if (cp == UTF8_BAD)
            buf_addf(out, "\\x%02x", c);
        else
            term_escape(out, cp);
    }
    buf_add(out, str_sub(s, from, s.n));
}

// --- The report. ---

static bool suspicious(str s, size_t at, size_t next, uint32_t cp) {
    if (cp == '\t' || cp == '\n' || cp == '\r' || cp == UTF8_BAD) return false;
    if (utf8_is_control(cp) || utf8_is_bidi(cp)) return true;
    if (cp == UTF8_BOM && at == 0) return false;
    return utf8_is_invisible(cp) && !invisible_belongs(s, at, next, cp);
}

// Tags, and selectors of the kind that can carry bytes, are one find each whatever they spell; others one per
// code point.
static uint32_t kind_of(uint32_t cp) {
    if (utf8_is_tag(cp)) return 0xE0001;
    if (cp >= 0xE0100 && cp <= 0xE01EF) return 0xE0100;
    return cp >= 0xE0000 && cp <= 0xE0FFF ? 0xE0000 : cp;
}

static invisible_find *find_of(arena *a, invisible_finds *out, size_t first, uint32_t cp, uint32_t line) {
    for (size_t k = first; k < out->n; k++)
        if (kind_of(out->p[k].cp) == kind_of(cp)) return &out->p[k];
    vec_push(a, out, (invisible_find){.cp = cp, .line = line});
    return &out->p[out->n - 1];
}

void invisible_scan(arena *a, str s, invisible_finds *out) {
    size_t first = out->n, tags = SIZE_MAX, tag_end = 0;
    uint32_t line = 1;
    buf words = buf_new(a, DECODED_MAX);
    for (size_t i = 0; i < s.n;) {
        i += utf8_printable_run(s, i, 0, 0);
        if (i == s.n) break;
        size_t at = i;
        uint32_t cp = utf8_step(s, &i);
        if (cp == '\n') line++;
        if (utf8_is_ordinary(cp) || !suspicious(s, at, i, cp)) continue;
        invisible_find *f = find_of(a, out, first, cp, line);
        f->count++;
        if (cp < 0xE0020 || cp > 0xE007E) continue;
        tags = (size_t)(f - out->p);
        if (words.n && tag_end != at) buf_addc(&words, ' ');
        buf_addc(&words, (char)(cp - 0xE0000));
        tag_end = i;
    }
    if (tags != SIZE_MAX) out->p[tags].decoded = buf_str(&words);
}

// count: what one occurrence of a term's stem is: the word, the start or the inside of a longer one, another
// form of it, or nothing. Knows one place in one text; which places there are is the scanner's work.
#include "search/search_int.h"
#include <deputy/utf8.h>

static bool is_word_char(uint32_t cp) {
    if (cp < 0x80) return (cp >= 'a' && cp <= 'z') || (cp >= '0' && cp <= '9') || (cp >= 'A' && cp <= 'Z');
    if (cp == UTF8_BAD || utf8_is_cjk(cp)) return false;
    return utf8_is_letter(cp) || utf8_is_decimal(cp) || utf8_is_mark(cp);
}

static bool word_goes_on(str s, size_t at) {
    return term_has_point(s, at) || (at < s.n && is_word_char(utf8_next(s, &at)));
}

static bool word_came_before(str s, size_t at) {
    if (at == 0) return false;
    if (term_has_point(s, at - 1)) return true;
    size_t i = utf8_floor(s, at - 1);
    return is_word_char(utf8_next(s, &i));
}

// Behind the letters at `at` that may be an ending.
static size_t open_end(str s, size_t at) {
    for (size_t i = at, n = 0; n < TERM_OPEN_MAX && i < s.n && is_word_char(utf8_next(s, &i)); n++) at = i;
    return at;
}

uint32_t occurrence_worth(const term *t, str s, size_t at, bool exact) {
    if (t->kind != TERM_WORD) return WORTH_WHOLE;
    bool inside = word_came_before(s, at);
    if (exact) return inside ? WORTH_INSIDE : word_goes_on(s, at + t->text.n) ? WORTH_START : WORTH_WHOLE;
    if (inside) return 0;
    size_t end = t->open ? open_end(s, at + t->stem.n) : at + t->stem.n;
    while (!t->open && end < s.n && s.p[end] >= 'a' && s.p[end] <= 'z') end++;
    return word_goes_on(s, end) || !term_same_word(t, str_sub(s, at, end)) ? 0 : WORTH_FORM;
}

// cut: the part of a line that is shown. Knows one line and one place in its folded form. Cuts fall between
// graphemes and are marked.
#include "search/search_int.h"
#include <deputy/utf8.h>

enum {
    CUT_BEFORE = 120, // code points kept before the match
    RESYNC = 256,     // code points looked back for a place where a grapheme surely begins
    FOLD_STEP = 64,   // bytes of the original folded at a time
};

// Between these two a grapheme ends for certain.
static bool sure_boundary(str s, size_t at) {
    if (at == 0 || at >= s.n) return true;
    unsigned char left = (unsigned char)s.p[at - 1], right = (unsigned char)s.p[at];
    return left < 0x80 && right < 0x80 && !(left == '\r' && right == '\n');
}

static size_t step_back(str s, size_t at) {
    return at ? utf8_floor(s, at - 1) : 0;
}

// Where in the original the folded position lies, to within the characters that fold together.
static size_t original_position(arena *a, str line, size_t folded_at) {
    size_t at = 0, folded = 0;
    while (at < line.n) {
        // A step ends where nothing combines across: before an ASCII character, or at a grapheme's end.
        size_t end = at + FOLD_STEP < line.n ? at + FOLD_STEP : line.n;
        while (end < line.n && !sure_boundary(line, end) && end - at < 2 * (size_t)FOLD_STEP) end++;
        if (!sure_boundary(line, end)) {
            end = at + utf8_cut(str_sub(line, at, line.n), FOLD_STEP).n;
            if (end == at) end = utf8_floor(line, at + 2 * (size_t)FOLD_STEP);
        }
        size_t n = utf8_fold(a, str_sub(line, at, end)).n;
        if (folded + n > folded_at) break;
        folded += n;
        at = end;
    }
    // Within the step: one character after the other.
    while (at < line.n && folded < folded_at) {
        size_t next = at;
        utf8_next(line, &next);
        size_t n = utf8_fold(a, str_sub(line, at, next)).n;
        if (folded + n > folded_at) break;
        folded += n;
        at = next;
    }
    return at;
}

// A grapheme boundary about `before` code points before `at`.
static size_t window_start(str s, size_t at, size_t before) {
    size_t from = at;
    for (size_t k = 0; k < before && from; k++) from = step_back(s, from);
    size_t sync = from;
    for (int k = 0; k < RESYNC && !sure_boundary(s, sync); k++) sync = step_back(s, sync);
    return sync + utf8_cut(str_sub(s, sync, s.n), from - sync).n;
}

// Code points after `at`, counted up to what can be shown.
static size_t count_after(str s, size_t at) {
    size_t n = 0;
    for (; n < SEARCH_HIT_CHARS && at < s.n; n++) utf8_next(s, &at);
    return n;
}

str cut_around(arena *a, str line, size_t at) {
    str s = str_trim(line);
    if (s.n <= SEARCH_HIT_CHARS || utf8_cut_chars(s, SEARCH_HIT_CHARS).n == s.n) return s;
    size_t skipped = (size_t)(s.p - line.p), match = original_position(a, line, at);
    match = match > skipped ? match - skipped : 0;
    if (match > s.n) match = s.n;
    // Near the end of the line there is more room before the match.
    size_t after = count_after(s, match), room = SEARCH_HIT_CHARS - 2;
    size_t from = window_start(s, match, after + CUT_BEFORE < room ? room - after : CUT_BEFORE);
    str rest = str_sub(s, from, s.n);
    room = SEARCH_HIT_CHARS - (from > 0);
    str shown = utf8_cut_chars(rest, room);
    if (shown.n < rest.n) shown = utf8_cut_chars(rest, room - 1);
    return str_fmt(a, "%s" STR_FMT "%s", from ? "…" : "", STR_ARG(shown), shown.n < rest.n ? "…" : "");
}

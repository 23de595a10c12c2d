// near: what a misspelt word may have been meant to be. For a word of the query that hardly any line has, it
// looks for the words of the texts that are one edit away (a letter too much, too few, wrong, or two letters
// swapped) and adds the commonest of them as further terms that count as the word itself. There is no list of
// words to keep: of a word with one edit, either the first half or the second half stands unchanged at its
// end of the word, so that one pass for both halves finds all candidates. Knows no ranking.
#include "search/search_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

enum {
    CANDIDATES = 512,    // slots for the different words found near one
    ASK_BYTES = 1 << 20, // between two questions whether to stop
};

// Of a word like one that stands somewhere, against that.
static const double NEAR_WEIGHT = 0.8;

typedef struct {
    str text;
    uint32_t count;
} candidate;

typedef struct {
    uint16_t term;
    str text, head, tail, swapped; // swapped: the two letters where head and tail meet, exchanged
    uint32_t chars[NEAR_CHARS_MAX];
    size_t n_chars, n;
    candidate *found; // open addressing
} misspelt;

// --- Which words ---

// Letters of a script with blanks, and nothing else: a number with another digit is another number.
static bool spells(str text, uint32_t *chars, size_t *n) {
    *n = 0;
    for (size_t i = 0; i < text.n;) {
        uint32_t cp = utf8_next(text, &i);
        if (*n == NEAR_CHARS_MAX || cp == UTF8_BAD || utf8_is_cjk(cp)) return false;
        if (!utf8_is_letter(cp)) return false;
        chars[(*n)++] = cp;
    }
    return *n >= NEAR_CHARS_MIN;
}

// On how many lines each term stands, parts of longer words left out.
static uint32_t *count_lines(arena *a, const term_list *terms, const scan_result *scan) {
    uint32_t *lines = NEW_N(a, uint32_t, terms->n);
    for (vec_each(const term_hit, h, &scan->hits)) lines[h->term] += h->whole || h->start || h->forms;
    return lines;
}

static size_t offset_of(str text, size_t chars) {
    size_t i = 0;
    while (chars--) utf8_next(text, &i);
    return i;
}

static misspelt prepare(arena *a, uint16_t number, str text, const uint32_t *chars, size_t n) {
    misspelt m = {.term = number, .text = text, .n_chars = n};
    memcpy(m.chars, chars, n * sizeof *chars);
    size_t half = n / 2, before = offset_of(text, half - 1), at = offset_of(text, half),
           after = offset_of(text, half + 1);
    m.head = str_sub(text, 0, at);
    m.tail = str_sub(text, at, text.n);
    m.swapped = str_fmt(a, STR_FMT STR_FMT STR_FMT STR_FMT, STR_ARG(str_sub(text, 0, before)),
                        STR_ARG(str_sub(text, at, after)), STR_ARG(str_sub(text, before, at)),
                        STR_ARG(str_sub(text, after, text.n)));
    m.found = NEW_N(a, candidate, CANDIDATES);
    return m;
}

// --- How far apart ---

// One insertion, deletion, replacement or exchange of neighbours makes a into b.
static bool is_one_edit(const uint32_t *a, size_t n, const uint32_t *b, size_t m) {
    size_t from = 0, end = 0, least = n < m ? n : m;
    while (from < least && a[from] == b[from]) from++;
    while (end < least - from && a[n - 1 - end] == b[m - 1 - end]) end++;
    size_t left_a = n - from - end, left_b = m - from - end;
    if (left_a <= 1 && left_b <= 1) return left_a + left_b > 0;
    return left_a == 2 && left_b == 2 && a[from] == b[from + 1] && a[from + 1] == b[from];
}

bool near_is_one_edit(str a, str b) {
    uint32_t x[NEAR_CHARS_MAX + 1], y[NEAR_CHARS_MAX + 1];
    size_t n = 0, m = 0;
    for (size_t i = 0; i < a.n && n <= NEAR_CHARS_MAX;) x[n++] = utf8_next(a, &i);
    for (size_t i = 0; i < b.n && m <= NEAR_CHARS_MAX;) y[m++] = utf8_next(b, &i);
    return n <= NEAR_CHARS_MAX && m <= NEAR_CHARS_MAX && is_one_edit(x, n, y, m);
}

// --- Looking for them ---

static bool is_letter(uint32_t cp) {
    if (cp < 0x80) return cp >= 'a' && cp <= 'z';
    return cp != UTF8_BAD && !utf8_is_cjk(cp) && (utf8_is_letter(cp) || utf8_is_mark(cp));
}

// The run of letters around [at, end), digits touching it left aside: empty.
static str word_around(str s, size_t at, size_t end) {
    while (at) {
        size_t before = utf8_floor(s, at - 1), i = before;
        uint32_t cp = utf8_next(s, &i);
        if (utf8_is_decimal(cp)) return (str){0};
        if (!is_letter(cp)) break;
        at = before;
    }
    while (end < s.n) {
        size_t i = end;
        uint32_t cp = utf8_next(s, &i);
        if (utf8_is_decimal(cp)) return (str){0};
        if (!is_letter(cp)) break;
        end = i;
    }
    return str_sub(s, at, end);
}

static void note(misspelt *m, str word) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < word.n; i++) h = (h ^ (unsigned char)word.p[i]) * 16777619u;
    // At most three quarters full: the first words found stay.
    for (size_t i = h;; i++) {
        candidate *c = &m->found[i % CANDIDATES];
        if (c->count == 0) {
            if (m->n >= CANDIDATES / 4 * 3) return;
            m->n++;
            c->text = word;
        } else if (!str_eq(c->text, word)) {
            continue;
        }
        if (c->count < UINT32_MAX) c->count++;
        return;
    }
}

// Words of s with `piece` at their begin (or end) that are one edit from the misspelt one. A word that has
// both halves is noted for the first one alone.
static void look(misspelt *m, str s, str piece, bool at_end) {
    for (size_t at = 0; s.n - at >= piece.n;) {
        const char *p = memmem(s.p + at, s.n - at, piece.p, piece.n);
        if (!p) return;
        size_t here = (size_t)(p - s.p), end = here + piece.n;
        at = here + 1;
        // Most candidates fall here: a letter stands where the word should begin or end.
        char beside = at_end ? (end < s.n ? s.p[end] : ' ') : (here ? s.p[here - 1] : ' ');
        if (beside >= 'a' && beside <= 'z') continue;
        str word = word_around(s, here, end);
        if (word.n + 4 < m->text.n || word.n > m->text.n + 4) continue;
        if (at_end ? !str_ends(word, piece) || str_starts(word, m->head) : !str_starts(word, piece)) continue;
        uint32_t chars[NEAR_CHARS_MAX + 1];
        size_t n = 0;
        for (size_t i = 0; i < word.n && n <= NEAR_CHARS_MAX;) chars[n++] = utf8_next(word, &i);
        if (n <= NEAR_CHARS_MAX && is_one_edit(m->chars, m->n_chars, chars, n)) note(m, word);
    }
}

static void look_in_file(misspelt *m, str s) {
    look(m, s, m->head, false);
    look(m, s, m->tail, true);
    for (size_t at = 0; s.n - at >= m->swapped.n;) {
        const char *p = memmem(s.p + at, s.n - at, m->swapped.p, m->swapped.n);
        if (!p) return;
        size_t here = (size_t)(p - s.p);
        at = here + m->swapped.n;
        str word = word_around(s, here, at);
        if (str_eq(word, m->swapped) && !str_eq(word, m->text)) note(m, word);
    }
}

// --- Adding ---

static int by_count(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return str_cmp(x->text, y->text);
}

// The commonest ones, unless the commonest is a stop word: then that was meant, and it says nothing.
static size_t choose(misspelt *m, uint32_t own) {
    size_t n = 0;
    for (size_t i = 0; i < CANDIDATES; i++)
        if (m->found[i].count) m->found[n++] = m->found[i];
    if (n > 1) qsort(m->found, n, sizeof *m->found, by_count);
    if (n == 0 || term_is_stop_word(m->found[0].text)) return 0;
    size_t kept = 0;
    while (kept < n && kept < NEAR_WORDS_MAX && m->found[kept].count > own &&
           m->found[kept].count >= m->found[0].count / NEAR_SHARE)
        kept++;
    return kept;
}

static void append(arena *a, term_list *terms, const misspelt *m, size_t chosen, double weight) {
    for (size_t i = 0; i < chosen; i++) {
        if (term_is_stop_word(m->found[i].text)) continue;
        term_list one = {0};
        terms_parse(a, m->found[i].text, &one);
        if (one.n != 1 || one.p[0].kind != TERM_WORD) continue;
        one.p[0].as = m->term;
        one.p[0].near = true;
        one.p[0].weight = weight;
        terms->p[terms->n++] = one.p[0];
    }
}

bool near_add(arena *a, const selected_file *files, size_t n, const search_corpus *c, scan_result *scan,
              term_list *terms) {
    misspelt *list = NEW_N(a, misspelt, NEAR_TERMS_MAX);
    size_t n_list = 0, since_asked = 0;
    const uint32_t *lines = count_lines(a, terms, scan);
    for (size_t t = 0; t < terms->asked && n_list < NEAR_TERMS_MAX; t++) {
        uint32_t chars[NEAR_CHARS_MAX];
        size_t n_chars;
        if (terms->p[t].kind != TERM_WORD || lines[t] >= NEAR_BELOW) continue;
        if (spells(terms->p[t].text, chars, &n_chars))
            list[n_list++] = prepare(a, (uint16_t)t, terms->p[t].text, chars, n_chars);
    }
    if (n_list == 0) return false;
    for (size_t i = 0; i < n; i++) {
        str s = files[i].file->folded;
        since_asked += s.n + ASK_BYTES / 64;
        if (since_asked >= ASK_BYTES) {
            since_asked = 0;
            scan->cancelled = c->ask && c->ask(c->ctx);
            if (scan->cancelled) return false;
        }
        for (size_t k = 0; k < n_list; k++) look_in_file(&list[k], s);
    }
    size_t before = terms->n;
    term *all = NEW_N(a, term, terms->n + n_list * NEAR_WORDS_MAX);
    memcpy(all, terms->p, terms->n * sizeof *all);
    terms->p = all;
    for (size_t k = 0; k < n_list; k++) {
        // A word that is nowhere was surely meant to be another one.
        uint32_t own = lines[list[k].term];
        append(a, terms, &list[k], choose(&list[k], own), own ? NEAR_WEIGHT : 1);
    }
    return terms->n > before;
}

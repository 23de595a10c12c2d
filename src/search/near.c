// near: what a misspelt word may have been meant to be. For a word of the query that hardly any line has, it
// looks for the words of the texts that are one edit away (a letter too much, too few, wrong, or two letters
// swapped) and adds the commonest of them as further terms that count as the word itself. There is no list of
// words to keep: of a word with one edit, either the first half or the second half stands unchanged at its
// end of the word, so that one pass for both halves finds all candidates. Knows no ranking.
#include "search/search_int.h"
#include <deputy/utf8.h>

// Of a word like one that stands somewhere, against that.
static const double NEAR_WEIGHT = 0.8;

typedef struct {
    str text;
    uint32_t count; // 0: free
} candidate;

// Open addressing, at most half full.
typedef struct {
    candidate *p;
    size_t n, cap;
    bool too_many;
} candidates;

typedef struct {
    uint16_t term;
    str text, head, tail, swapped; // swapped: the two letters where head and tail meet, exchanged
    uint32_t chars[NEAR_CHARS_MAX];
    size_t n_chars;
} misspelt;

enum { NEAR_LONGER = 4 }; // bytes of one letter more

// What is looked for of each: pieces are terms of a scan, three a word.
enum { HEAD, TAIL, SWAPPED, PIECES };

// The words that one worker still looks for, and their pieces.
typedef struct {
    uint16_t active[SEARCH_TERMS_MAX];
    size_t n;
    term_list pieces;
} looked_for;

struct near_search {
    crew *crew;
    misspelt words[SEARCH_TERMS_MAX];
    size_t n;
    candidates *found; // by worker, then word
    looked_for *by_worker;
};

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

// The run of letters around [at, end), digits touching it left aside: empty. Of one of more than `most` bytes
// only so much: a line without blanks is not gone through for each place in it.
static str word_around(str s, size_t at, size_t end, size_t most) {
    while (at && end - at <= most) {
        size_t before = utf8_floor(s, at - 1), i = before;
        uint32_t cp = utf8_next(s, &i);
        if (utf8_is_decimal(cp)) return (str){0};
        if (!is_letter(cp)) break;
        at = before;
    }
    while (end < s.n && end - at <= most) {
        size_t i = end;
        uint32_t cp = utf8_next(s, &i);
        if (utf8_is_decimal(cp)) return (str){0};
        if (!is_letter(cp)) break;
        end = i;
    }
    return str_sub(s, at, end);
}

static candidate *slot_of(const candidates *c, str word) {
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < word.n; i++) h = (h ^ (unsigned char)word.p[i]) * 16777619u;
    for (size_t i = h;; i++) {
        candidate *at = &c->p[i & (c->cap - 1)];
        if (at->count == 0 || str_eq(at->text, word)) return at;
    }
}

static void note(arena *a, candidates *c, str word, uint32_t count) {
    if (c->n == NEAR_FOUND_MAX) {
        c->too_many = true;
        return;
    }
    if (c->n * 2 >= c->cap) {
        candidates more = {.n = c->n, .cap = c->cap ? c->cap * 2 : 64};
        more.p = NEW_N(a, candidate, more.cap);
        for (size_t i = 0; i < c->cap; i++)
            if (c->p[i].count) *slot_of(&more, c->p[i].text) = c->p[i];
        *c = more;
    }
    candidate *at = slot_of(c, word);
    // Its text may not be there for long.
    if (at->count == 0) {
        c->n++;
        at->text = str_dup(a, word);
    }
    at->count = count < UINT32_MAX - at->count ? at->count + count : UINT32_MAX;
}

static bool is_near(const misspelt *m, str word) {
    if (word.n + NEAR_LONGER < m->text.n || word.n > m->text.n + NEAR_LONGER) return false;
    uint32_t chars[NEAR_CHARS_MAX + 1];
    size_t n = 0;
    for (size_t i = 0; i < word.n && n <= NEAR_CHARS_MAX;) chars[n++] = utf8_next(word, &i);
    return n <= NEAR_CHARS_MAX && is_one_edit(m->chars, m->n_chars, chars, n);
}

static str piece_of(const misspelt *m, size_t kind) {
    return kind == HEAD ? m->head : kind == TAIL ? m->tail : m->swapped;
}

// A piece stands at `at`: a word with it at its begin (or end) may be one edit from the misspelt one. A word
// that has both halves is noted for the first one alone.
void near_look(void *ctx, size_t worker, const corpus_file *f, uint16_t term, uint32_t at) {
    near_search *all = ctx;
    size_t number = all->by_worker[worker].active[term / PIECES];
    const misspelt *m = &all->words[number];
    size_t kind = term % PIECES;
    str s = f->folded, piece = piece_of(m, kind);
    size_t end = at + piece.n;
    // Most places fall here: a letter stands where the word should begin or end.
    char before = at ? s.p[at - 1] : ' ', after = end < s.n ? s.p[end] : ' ';
    if (kind != TAIL && before >= 'a' && before <= 'z') return;
    if (kind != HEAD && after >= 'a' && after <= 'z') return;
    str word = word_around(s, at, end, m->text.n + NEAR_LONGER);
    if (kind == HEAD && !str_starts(word, piece)) return;
    if (kind == TAIL && (!str_ends(word, piece) || str_starts(word, m->head))) return;
    if (kind == SWAPPED ? str_eq(word, piece) && !str_eq(word, m->text) : is_near(m, word))
        note(crew_arena(all->crew, worker), &all->found[worker * all->n + number], word, 1);
}

// What all workers found near one word.
static candidates merge(arena *a, const near_search *all, size_t word) {
    candidates sum = {0};
    for (size_t w = 0; w < crew_size(all->crew); w++) {
        const candidates *c = &all->found[w * all->n + word];
        sum.too_many = sum.too_many || c->too_many;
        for (size_t i = 0; i < c->cap; i++)
            if (c->p[i].count) note(a, &sum, c->p[i].text, c->p[i].count);
    }
    return sum;
}

// --- Adding ---

static int by_count(const candidate *x, const candidate *y) {
    if (x->count != y->count) return x->count > y->count ? -1 : 1;
    return str_cmp(x->text, y->text);
}

// The commonest ones, as many as can be added, come to the front.
static void commonest_first(candidate *p, size_t n) {
    for (size_t k = 0; k < n && k < NEAR_WORDS_MAX; k++) {
        size_t best = k;
        for (size_t i = k + 1; i < n; i++)
            if (by_count(&p[i], &p[best]) < 0) best = i;
        candidate c = p[k];
        p[k] = p[best];
        p[best] = c;
    }
}

// The commonest ones come to the front, and are counted: none when the commonest is a stop word. Then that
// was meant, and it says nothing.
static size_t choose(candidates *c, uint32_t own) {
    size_t n = 0;
    for (size_t i = 0; i < c->cap; i++)
        if (c->p[i].count) c->p[n++] = c->p[i];
    commonest_first(c->p, n);
    if (n == 0 || c->too_many || term_is_stop_word(c->p[0].text)) return 0;
    size_t kept = 0;
    while (kept < n && kept < NEAR_WORDS_MAX && c->p[kept].count > own &&
           c->p[kept].count >= c->p[0].count / NEAR_SHARE)
        kept++;
    return kept;
}

static void append(arena *a, term_list *terms, str word, uint16_t as, double weight) {
    term_list one = {0};
    terms_parse(a, word, &one);
    if (term_is_stop_word(word) || one.n != 1 || one.p[0].kind != TERM_WORD) return;
    one.p[0].as = as;
    one.p[0].near = true;
    one.p[0].weight = weight;
    terms->p[terms->n++] = one.p[0];
}

static void list_pieces(const near_search *all, looked_for *now) {
    term_list *pieces = &now->pieces;
    pieces->n = pieces->asked = now->n * PIECES;
    for (size_t i = 0; i < pieces->n; i++) {
        str text = piece_of(&all->words[now->active[i / PIECES]], i % PIECES);
        pieces->p[i] = (term){.text = text, .stem = text, .kind = TERM_TEXT, .as = (uint16_t)i};
    }
}

near_search *near_begin(arena *a, crew *crew, const term_list *terms, const term_lines *lines) {
    near_search *all = NEW(a, near_search);
    all->crew = crew;
    for (size_t t = 0; t < terms->asked && all->n < SEARCH_TERMS_MAX; t++) {
        uint32_t chars[NEAR_CHARS_MAX];
        size_t n;
        if (terms->p[t].kind != TERM_WORD || terms->common) continue;
        if (lines && (lines[t].word >= NEAR_BELOW || all->n == NEAR_TERMS_MAX)) continue;
        if (spells(terms->p[t].text, chars, &n))
            all->words[all->n++] = prepare(a, (uint16_t)t, terms->p[t].text, chars, n);
    }
    all->found = NEW_N(a, candidates, crew_size(crew) * all->n);
    all->by_worker = NEW_N(a, looked_for, crew_size(crew));
    for (size_t w = 0; w < crew_size(crew); w++) {
        looked_for *now = &all->by_worker[w];
        now->pieces.p = NEW_N(a, term, all->n * PIECES);
        for (now->n = 0; now->n < all->n; now->n++) now->active[now->n] = (uint16_t)now->n;
        list_pieces(all, now);
    }
    return all;
}

bool near_narrow(near_search *all, size_t worker, const term_lines *lines) {
    looked_for *now = &all->by_worker[worker];
    size_t kept = 0, before = now->n;
    for (size_t i = 0; i < before; i++)
        if (lines[all->words[now->active[i]].term].word < NEAR_BELOW) now->active[kept++] = now->active[i];
    now->n = kept;
    if (kept < before) list_pieces(all, now);
    return kept < before;
}

const term_list *near_pieces(const near_search *all, size_t worker) {
    return &all->by_worker[worker].pieces;
}

bool near_end(arena *a, const near_search *all, const term_lines *lines, term_list *terms) {
    size_t before = terms->n, words = 0;
    term *more = NEW_N(a, term, terms->n + (size_t)NEAR_TERMS_MAX * NEAR_WORDS_MAX);
    memcpy(more, terms->p, terms->n * sizeof *more);
    terms->p = more;
    for (size_t k = 0; k < all->n && words < NEAR_TERMS_MAX; k++) {
        const term_lines *of = &lines[all->words[k].term];
        if (of->word >= NEAR_BELOW) continue;
        words++;
        // A word that is nowhere was surely meant to be another one. One that others begin with may be short
        // for them: what is near it must be commoner than those.
        uint32_t own = of->word + of->start;
        candidates found = merge(a, all, k);
        size_t chosen = choose(&found, own);
        for (size_t i = 0; i < chosen; i++)
            append(a, terms, found.p[i].text, all->words[k].term, own ? NEAR_WEIGHT : 1);
        if (crew_stops(all->crew, 0)) terms->n = before;
        if (crew_stopped(all->crew)) break;
    }
    return terms->n > before;
}

dep_status near_add(arena *a, crew *crew, const selected_file *files, size_t n, const search_corpus *c,
                    const scan_result *scan, term_list *terms, bool *added, dep_err *err) {
    near_search *all = near_begin(a, crew, terms, scan->lines_of);
    *added = false;
    if (all->n == 0 || crew_stopped(crew)) return DEP_OK;
    TRY(scan_places(a, crew, near_pieces(all, 0), files, n, c, near_look, all, err));
    *added = !crew_stopped(crew) && near_end(a, all, scan->lines_of, terms);
    return DEP_OK;
}

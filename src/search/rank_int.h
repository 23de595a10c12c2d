// rank_int: the steps of ranking. tally sums the counts of lines by section and file; score says what a line
// is worth, and at most may be; rank finds the best without looking at all of them.
#pragma once
#include "search/search_int.h"

enum { RANK_TERMS_MAX = SEARCH_TERMS_MAX + TERM_GRAMS_MAX };

// Few and round: tests/bench/RANKING.md has what each was tried against. One set for every corpus and
// language.
static const struct {
    // Weights of the fields: the line, the section's own heading, the headings above that, the section, the
    // rest of the file, the file's path.
    double line, own, above, body, doc, path;
    double b_line, b_chain, b_body, b_doc; // how much their length counts against them
    double chain_max;                      // occurrences in headings that count
    double link;                           // a word within a link: it says what is elsewhere
    double saturation;
    double coverage; // how much of the score depends on the line's own share of the query
    double together; // of neighbours in the query that are neighbours on the line
    double junction; // a pair of characters counts at most so much of the mean of its neighbours
    double decay;    // of each further hit of one section
    double intro;    // a line above the second heading: it says in general what a section says exactly
} weights = {
    .line = 0.6,
    .own = 2.0,
    .above = 4.0,
    .body = 0.4,
    .doc = 0.05,
    .path = 0.8,
    .b_line = 0.4,
    .b_chain = 0.8,
    .b_body = 0.4,
    .b_doc = 0.5,
    .chain_max = 2,
    .link = 0.4,
    .saturation = 1.0,
    .coverage = 0.4,
    .together = 0.3,
    .junction = 0.8,
    .decay = 0.65,
    .intro = 0.95,
};

static inline double least(double a, double b) {
    return a < b ? a : b;
}

// --- tally.c ---

// Terms, a bit for each.
enum { TALLY_SET = 2 };
typedef struct {
    uint64_t of[TALLY_SET];
} tally_set;
static_assert(RANK_TERMS_MAX <= TALLY_SET * 64);

static inline void set_add(tally_set *s, size_t term) {
    s->of[term / 64] |= (uint64_t)1 << (term % 64);
}
static inline bool set_has(const tally_set *s, size_t term) {
    return s->of[term / 64] >> (term % 64) & 1;
}
static inline void set_remove(tally_set *s, size_t term) {
    s->of[term / 64] &= ~((uint64_t)1 << (term % 64));
}
// Takes the first term out. False: there is none.
static inline bool set_take(tally_set *s, uint16_t *term) {
    for (int i = 0; i < TALLY_SET; i++) {
        if (!s->of[i]) continue;
        *term = (uint16_t)(i * 64 + __builtin_ctzll(s->of[i]));
        s->of[i] &= s->of[i] - 1;
        return true;
    }
    return false;
}

// What one term has in a section, or in a file. Near terms count as the ones they stand for.
typedef struct {
    uint32_t body, heads; // worth of occurrences; of those in headings apart
    uint16_t term;
} tally_cell;

typedef struct {
    uint32_t first_line, n_lines; // of it that match, among all that the worker found
    uint32_t section;             // as corpus_section numbers them
    uint32_t first, n_cells;
    uint32_t most; // terms that one of its lines has at most
} tally_section;

typedef struct {
    uint32_t file; // in the selection
    uint32_t first_section, n_sections;
    uint32_t first, n_cells; // of the whole file
    uint32_t most;           // terms that one of its lines has at most
    tally_set path;          // terms that stand in it
    double bound;            // none of its lines is worth more
} tally_file;

// What no term of `has` has is 0. Apart, so that what was written last is read as it was written.
typedef struct {
    tally_set has; // terms that have any
    uint32_t body[RANK_TERMS_MAX], heads[RANK_TERMS_MAX];
} tally_sums;

// Of one worker.
typedef struct {
    arena *a;
    pool *pool;
    const term_list *terms;
    const selected_file *files;
    stop_sign *stop; // of the worker; may be NULL
    tally_cell *cells;
    tally_section *sections;
    tally_file *in;
    size_t n_cells, n_sections, n_in, cap_cells, cap_sections, cap_in;
    uint32_t *found_in;       // by term: sections that have it
    tally_sums section, file; // at hand
} tally;

// Its memory is given back with `a`.
void tally_begin(tally *t, arena *a, pool *p, const term_list *terms, const selected_file *files);
// Whole files. When it is stopped, what it has summed is a part.
[[nodiscard]] dep_status tally_chunk(tally *t, const scan_chunk *c, dep_err *err);

// Near terms are worth less.
static inline uint32_t tally_worth(const term *t, const term_hit *h) {
    return t->near ? (uint32_t)(t->weight * h->worth + 0.5) : h->worth;
}
static inline double tally_occurrences(uint32_t worth) {
    return worth * (1.0 / WORTH_WHOLE);
}

// --- score.c ---

// The same for all lines of a search.
typedef struct {
    const term_list *terms;
    size_t n_terms; // those of the query
    const selected_file *files;
    double *idf; // weighted
    double idf_sum, avg_line, avg_chain, avg_body, avg_doc, n_sections;
    uint32_t most_heads; // of one file
} scoring;

// found_in: in how many sections each term is.
void scoring_begin(arena *a, scoring *s, const term_list *terms, const selected_file *files,
                   const selection_sums *sums, const uint32_t *found_in);
// Fills in what a line of the file may at most be worth, by its counts alone.
void score_bound(const scoring *s, const tally *t, tally_file *in);

// Of one worker: the file and the section at hand.
typedef struct {
    const scoring *s;
    const tally *t;
    const tally_file *in;
    const scan_part *found; // by its worker
    const corpus_file *f;
    uint32_t *row_of;                    // section → its number among those of the file, counted from 1
    double in_path;                      // what terms get that only the path has
    double outside;                      // the most that all terms get from elsewhere than the section
    double most_outside[RANK_TERMS_MAX]; // of each, before it saturates
    double in_doc[RANK_TERMS_MAX];
    double around[RANK_TERMS_MAX], alone[RANK_TERMS_MAX]; // x of each term without a line, and its share then
    double chain[RANK_TERMS_MAX];
    double base;   // the sum of all shares
    double factor; // of the section
} scorer;

// Goes to a file: what its sections may at most be worth can be asked.
void score_look_at_file(scorer *x, const tally *t, const tally_file *in, const scan_part *found);
double score_section_bound(const scorer *x, const tally_section *section);
// Now also what they are worth.
void score_enter_file(scorer *x);
void score_leave_file(scorer *x);
// Returns the most that any line of the section may be worth.
double score_enter_section(scorer *x, const tally_section *in);
str score_text(const scoring *s, const scan_part *found, const line_hit *l); // the folded line
// links: words within links count less. That makes a line worse, never better.
double score_line(const scorer *x, const line_hit *l, bool links);

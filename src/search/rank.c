// rank: puts matching lines in order. A line's worth comes from the line, the headings above it, the rest of
// its section and the file's path, summed per term before it saturates (BM25F over fields), so that words
// spread over heading and text count together. Works on the counts of one scan; of texts it reads only paths,
// and whether a word stands within a link. One set of weights for every corpus and language.
#include "search/search_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

// Few and round: tests/bench/RANKING.md has what each was tried against.
static const struct {
    // Weights of the fields: the line, the section's own heading, the headings above that, the section, the
    // rest of the file, the file's path.
    double line, own, above, body, doc, path;
    double b_line, b_chain, b_body, b_doc; // how much their length counts against them
    double chain_max;                      // occurrences in headings that count
    double start, inside, forms;           // an occurrence that is not the whole word, against one that is
    double link;                           // a word within a link: it says what is elsewhere
    double saturation;
    double coverage; // how much of the score depends on the line's own share of the query
    double together; // of neighbours in the query that are neighbours on the line
    double junction; // a pair of characters counts at most so much of the mean of its neighbours
    double decay;    // of each further hit of one section
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
    .start = 0.6,
    .inside = 0.2,
    .forms = 0.8,
    .link = 0.4,
    .saturation = 1.0,
    .coverage = 0.4,
    .together = 0.3,
    .junction = 0.8,
    .decay = 0.65,
};

// One section that has matching lines. Its counts are rows of r->cells, one cell a term.
typedef struct {
    uint32_t section;
    size_t body, heads; // where the rows begin
} touched;

typedef struct {
    double score;
    uint32_t line;  // in scan->lines
    uint32_t group; // number of its section among all touched ones
} candidate;

typedef struct {
    candidate *p; // the worst one on top
    size_t n, max;
} heap;

typedef struct {
    arena *a;
    const term_list *terms;
    size_t n_terms; // those of the query; near ones count as these
    const selected_file *files;
    const scan_result *scan;
    double *idf; // weighted
    double idf_sum, avg_line, avg_chain, avg_body, avg_doc, n_sections;
    // Of the file at hand.
    VEC(double) cells;
    VEC(touched) touched;
    uint32_t *row_of; // section → its number in touched, counted from 1
    bool *in_path;
    double *in_doc; // occurrences of each term in the file
} ranker;

static double worth(const ranker *r, const term_hit *h) {
    double w = h->whole + weights.start * h->start + weights.inside * h->inside + weights.forms * h->forms;
    const term *t = &r->terms->p[h->term];
    return t->near ? t->weight * w : w;
}

static uint16_t term_of(const ranker *r, const term_hit *h) {
    return r->terms->p[h->term].as;
}

// --- Counts of one file ---

static size_t add_row(ranker *r) {
    size_t at = r->cells.n;
    for (size_t t = 0; t < r->n_terms; t++) vec_push(r->a, &r->cells, 0);
    return at;
}

// Sums the counts of lines [from, to), all of one file, by section, those in headings apart.
static void count_sections(ranker *r, size_t from, size_t to) {
    const corpus_file *f = r->files[r->scan->lines.p[from].file].file;
    r->cells.n = r->touched.n = 0;
    memset(r->row_of, 0, ((size_t)f->n_heads + 1) * sizeof *r->row_of);
    for (size_t i = from; i < to; i++) {
        const line_hit *l = &r->scan->lines.p[i];
        touched *last = r->touched.n ? &r->touched.p[r->touched.n - 1] : NULL;
        bool same = last && (last->section == f->n_heads || l->line < f->heads[last->section].first);
        if (!same) {
            size_t body = add_row(r), heads = add_row(r);
            vec_push(r->a, &r->touched,
                     (touched){.section = corpus_section(f, l->line), .body = body, .heads = heads});
            last = &r->touched.p[r->touched.n - 1];
            r->row_of[last->section] = (uint32_t)r->touched.n;
        }
        bool in_heading = last->section && l->line <= f->heads[last->section - 1].last;
        double *row = r->cells.p + (in_heading ? last->heads : last->body);
        for (size_t k = 0; k < l->n; k++) {
            const term_hit *h = &r->scan->hits.p[l->first + k];
            row[term_of(r, h)] += worth(r, h);
        }
    }
}

static double least(double a, double b) {
    return a < b ? a : b;
}

// What the headings, the section, the file and the path give each term, before saturation; replaces the
// section's body row.
static double *weigh_section(ranker *r, const corpus_file *f, const touched *s) {
    size_t n = r->n_terms, chain_len = 0;
    double *body = r->cells.p + s->body;
    const double *own = r->cells.p + s->heads;
    double chain[SEARCH_TERMS_MAX + TERM_GRAMS_MAX];
    memset(chain, 0, n * sizeof *chain);
    for (uint32_t at = s->section; at; at = f->heads[at - 1].parent) {
        chain_len += f->heads[at - 1].n;
        if (!r->row_of[at]) continue;
        const double *heads = r->cells.p + r->touched.p[r->row_of[at] - 1].heads;
        for (size_t t = 0; t < n; t++) chain[t] += heads[t];
    }
    uint32_t first = s->section ? f->heads[s->section - 1].last + 1 : 0;
    uint32_t end = s->section < f->n_heads ? f->heads[s->section].first : f->n_lines;
    double body_len = end > first ? f->starts[end] - f->starts[first] : 0;
    double chain_norm = 1 - weights.b_chain + weights.b_chain * (double)chain_len / r->avg_chain;
    double body_norm = 1 - weights.b_body + weights.b_body * body_len / r->avg_body;
    double doc_norm = 1 - weights.b_doc + weights.b_doc * (double)f->folded.n / r->avg_doc;
    for (size_t t = 0; t < n; t++) {
        double in_chain = least(chain[t], weights.chain_max), in_own = least(own[t], in_chain);
        double elsewhere = r->in_doc[t] - body[t] - own[t];
        body[t] = (weights.own * in_own + weights.above * (in_chain - in_own)) / chain_norm +
                  weights.body * body[t] / body_norm + weights.doc * elsewhere / doc_norm +
                  (r->in_path[t] ? weights.path : 0);
    }
    return body;
}

// --- Score ---

// Is `at` within the text of a link, "[text](target)" or "[text][name]"?
static bool is_in_link(str line, size_t at) {
    const char *open = memrchr(line.p, '[', at < line.n ? at : line.n);
    if (!open) return false;
    size_t from = (size_t)(open - line.p), close = str_chr(str_sub(line, from, line.n), ']');
    if (close == SIZE_MAX || from + close < at) return false;
    str then = str_sub(line, from + close + 1, line.n);
    return then.n && (then.p[0] == '(' || then.p[0] == '[');
}

// Does h go on where the hit before it ended, as the query does? Pairs of characters are left out: those that
// overlap always do.
static bool goes_on(const ranker *r, const term_hit *before, const term_hit *h) {
    uint16_t a = term_of(r, before), b = term_of(r, h);
    if (a + 1 != b || r->terms->p[b].kind == TERM_GRAM) return false;
    uint32_t end = before->at + (uint32_t)r->terms->p[before->term].text.n;
    return h->at >= end && h->at <= end + 1;
}

static double score_line(const ranker *r, const line_hit *l, const double *around, bool links) {
    const corpus_file *f = r->files[l->file].file;
    size_t n = r->n_terms;
    double own[SEARCH_TERMS_MAX + TERM_GRAMS_MAX], covered = 0, together = 0, score = 0;
    memset(own, 0, n * sizeof *own);
    str text = corpus_line(f, l->line);
    double norm = 1 - weights.b_line + weights.b_line * (double)(text.n + 1) / r->avg_line;
    for (size_t k = 0; k < l->n; k++) {
        const term_hit *h = &r->scan->hits.p[l->first + k];
        double w = worth(r, h);
        own[term_of(r, h)] += links && is_in_link(text, h->at) ? weights.link * w : w;
        if (k && goes_on(r, h - 1, h)) together += least(r->idf[term_of(r, h - 1)], r->idf[term_of(r, h)]);
    }
    for (size_t t = 0; t < n; t++) {
        double x = weights.line * own[t] / norm + around[t];
        covered += r->idf[t] * least(own[t], 1);
        score += r->idf[t] * x / (x + weights.saturation);
    }
    return score * (1 - weights.coverage + weights.coverage * covered / r->idf_sum) *
           (1 + weights.together * together / r->idf_sum);
}

// The natural logarithm of x ≥ 1. Our own: libm may round differently elsewhere, and equal input gives equal
// bytes.
static double ln(double x) {
    double whole = 0;
    while (x > 1.5) {
        x /= 2;
        whole += 0.69314718055994531;
    }
    double z = (x - 1) / (x + 1), power = z, sum = 0;
    for (int k = 1; k < 32; k += 2) {
        sum += power / k;
        power *= z * z;
    }
    return whole + 2 * sum;
}

// Does pair t overlap the one before it in the query's text?
static bool overlaps(const term_list *terms, size_t t) {
    if (t == 0 || t >= terms->asked) return false;
    const term *a = &terms->p[t - 1], *b = &terms->p[t];
    return a->kind == TERM_GRAM && b->kind == TERM_GRAM && b->text.p > a->text.p &&
           b->text.p < a->text.p + a->text.n;
}

// Rarity over sections. A pair made of the end of one word and the beginning of the next is rarer than both
// and says less: it counts no more than its neighbours.
static void weigh_terms(ranker *r, const uint32_t *found_in) {
    const term_list *terms = r->terms;
    double *raw = NEW_N(r->a, double, r->n_terms);
    for (size_t t = 0; t < r->n_terms; t++) {
        double df = found_in[t];
        raw[t] = terms->p[t].weight * ln(1 + (r->n_sections - df + 0.5) / (df + 0.5));
    }
    for (size_t t = 0; t < r->n_terms; t++) {
        r->idf[t] = raw[t];
        if (overlaps(terms, t) && overlaps(terms, t + 1))
            r->idf[t] = least(raw[t], weights.junction * (raw[t - 1] + raw[t + 1]) / 2);
        r->idf_sum += r->idf[t];
    }
}

static void measure(ranker *r, size_t n_files) {
    double bytes = 0, lines = 0, chain = 0;
    uint32_t most = 0;
    for (size_t i = 0; i < n_files; i++) {
        const corpus_file *f = r->files[i].file;
        bytes += (double)f->folded.n;
        lines += f->n_lines;
        chain += (double)f->chain_bytes;
        r->n_sections += f->n_heads + 1;
        if (f->n_heads > most) most = f->n_heads;
    }
    r->avg_doc = bytes / (double)n_files + 1;
    r->avg_line = bytes / (lines > 0 ? lines : 1) + 1;
    r->avg_chain = chain / r->n_sections + 1;
    r->avg_body = bytes / r->n_sections + 1;
    r->row_of = NEW_N(r->a, uint32_t, (size_t)most + 1);
}

// --- The best ones ---

static bool better(const candidate *a, const candidate *b) {
    return a->score > b->score || (a->score == b->score && a->line < b->line);
}

static int by_rank(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    return better(x, y) ? -1 : better(y, x) ? 1 : 0;
}

static void sift_down(heap *h) {
    for (size_t i = 0;;) {
        size_t worst = i, left = 2 * i + 1, right = left + 1;
        if (left < h->n && better(&h->p[worst], &h->p[left])) worst = left;
        if (right < h->n && better(&h->p[worst], &h->p[right])) worst = right;
        if (worst == i) return;
        candidate c = h->p[i];
        h->p[i] = h->p[worst];
        h->p[worst] = c;
        i = worst;
    }
}

// Keeps the best h->max ones.
static void offer(heap *h, candidate c) {
    if (h->n == h->max) {
        if (!better(&c, &h->p[0])) return;
        h->p[0] = c;
        sift_down(h);
        return;
    }
    size_t i = h->n++;
    for (; i && better(&h->p[(i - 1) / 2], &c); i = (i - 1) / 2) h->p[i] = h->p[(i - 1) / 2];
    h->p[i] = c;
}

typedef VEC(candidate) candidates;

// What the file as a whole says of each term.
static void look_at_file(ranker *r, str file_path) {
    str path = utf8_fold(r->a, utf8_repair(r->a, file_path));
    memset(r->in_path, 0, r->n_terms * sizeof *r->in_path);
    for (size_t t = 0; t < r->terms->n; t++)
        if (str_find(path, r->terms->p[t].stem) != SIZE_MAX) r->in_path[r->terms->p[t].as] = true;
    memset(r->in_doc, 0, r->n_terms * sizeof *r->in_doc);
    for (vec_each(touched, s, &r->touched))
        for (size_t t = 0; t < r->n_terms; t++)
            r->in_doc[t] += r->cells.p[s->body + t] + r->cells.p[s->heads + t];
}

// Scores a line and offers it. Whether words stand in links is looked at only when the line may be among the
// best: it makes a line worse, never better.
static void offer_line(const ranker *r, size_t i, const double *around, uint32_t group, const heap *firsts,
                       heap *best) {
    const line_hit *l = &r->scan->lines.p[i];
    candidate c = {.score = score_line(r, l, around, false), .line = (uint32_t)i, .group = group};
    if (firsts->n == firsts->max && !better(&c, &firsts->p[0])) return;
    str text = corpus_line(r->files[l->file].file, l->line);
    if (text.n && memchr(text.p, '[', text.n)) c.score = score_line(r, l, around, true);
    offer(best, c);
}

// Offers the lines of one file: of each section the best ones, and its very best to `firsts`. With as many
// sections as hits are wanted, what is worse than the best line of each cannot be among the hits.
static void rank_file(ranker *r, size_t from, size_t to, heap *best, heap *firsts, candidates *out,
                      uint32_t *group) {
    const selected_file *in = &r->files[r->scan->lines.p[from].file];
    count_sections(r, from, to);
    look_at_file(r, in->name->path);
    size_t i = from;
    // Headings stand before what is below them, but a section's body row is overwritten when it is weighed:
    // heads rows are not.
    for (vec_each(touched, s, &r->touched)) {
        const double *around = weigh_section(r, in->file, s);
        uint32_t end = s->section < in->file->n_heads ? in->file->heads[s->section].first : UINT32_MAX;
        best->n = 0;
        for (; i < to && r->scan->lines.p[i].line < end; i++) offer_line(r, i, around, *group, firsts, best);
        if (best->n) {
            candidate first = best->p[0];
            for (size_t k = 0; k < best->n; k++) {
                if (better(&best->p[k], &first)) first = best->p[k];
                vec_push(r->a, out, best->p[k]);
            }
            offer(firsts, first);
        }
        ++*group;
    }
}

static size_t file_end(const scan_result *scan, size_t from) {
    size_t to = from;
    while (to < scan->lines.n && scan->lines.p[to].file == scan->lines.p[from].file) to++;
    return to;
}

// In how many sections each term is found.
static uint32_t *count_terms(ranker *r) {
    uint32_t *found_in = NEW_N(r->a, uint32_t, r->n_terms);
    for (size_t from = 0, to; from < r->scan->lines.n; from = to) {
        to = file_end(r->scan, from);
        count_sections(r, from, to);
        for (vec_each(touched, s, &r->touched))
            for (size_t t = 0; t < r->n_terms; t++)
                found_in[t] += r->cells.p[s->body + t] + r->cells.p[s->heads + t] > 0;
    }
    return found_in;
}

// The n-th further hit of a section counts less: sorts, and returns how many of the candidates are in order
// then.
static size_t spread(arena *a, candidates *c, uint32_t groups, size_t limit) {
    double *share = NEW_N(a, double, groups);
    for (uint32_t i = 0; i < groups; i++) share[i] = 1;
    if (c->n > 1) qsort(c->p, c->n, sizeof *c->p, by_rank);
    for (vec_each(candidate, it, c)) {
        it->score *= share[it->group];
        share[it->group] *= weights.decay;
    }
    if (c->n > 1) qsort(c->p, c->n, sizeof *c->p, by_rank);
    return c->n < limit ? c->n : limit;
}

static uint16_t best_term(const ranker *r, const line_hit *l) {
    const term_hit *hits = r->scan->hits.p + l->first;
    uint16_t best = 0;
    for (uint16_t k = 1; k < l->n; k++)
        if (r->idf[term_of(r, &hits[k])] > r->idf[term_of(r, &hits[best])]) best = k;
    return best;
}

size_t rank_lines(arena *a, const term_list *terms, const selected_file *files, size_t n,
                  const scan_result *scan, size_t limit, ranked_line *ret) {
    if (scan->lines.n == 0 || limit == 0) return 0;
    ranker *r = NEW(a, ranker);
    *r = (ranker){.a = a, .terms = terms, .n_terms = terms->asked, .files = files, .scan = scan};
    r->idf = NEW_N(a, double, r->n_terms);
    r->in_path = NEW_N(a, bool, r->n_terms);
    r->in_doc = NEW_N(a, double, r->n_terms);
    measure(r, n);
    weigh_terms(r, count_terms(r));
    size_t most = limit < scan->lines.n ? limit : scan->lines.n;
    heap best = {.p = NEW_N(a, candidate, most), .max = most},
         firsts = {.p = NEW_N(a, candidate, most), .max = most};
    candidates all = {0};
    uint32_t groups = 0;
    for (size_t from = 0, to; from < scan->lines.n; from = to) {
        to = file_end(scan, from);
        rank_file(r, from, to, &best, &firsts, &all, &groups);
    }
    // With enough sections, what is worse than the best line of each of the best sections cannot be among the
    // best.
    if (firsts.n == limit) {
        candidate last = firsts.p[0];
        size_t kept = 0;
        for (size_t i = 0; i < all.n; i++)
            if (!better(&last, &all.p[i])) all.p[kept++] = all.p[i];
        all.n = kept;
    }
    size_t found = spread(a, &all, groups, limit);
    for (size_t i = 0; i < found; i++)
        ret[i] = (ranked_line){.line = all.p[i].line,
                               .best = best_term(r, &scan->lines.p[all.p[i].line]),
                               .score = all.p[i].score};
    return found;
}

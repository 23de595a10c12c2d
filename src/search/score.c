// score: what a line is worth. A line's worth comes from the line, the headings above it, the rest of its
// section, the rest of the file and the file's path, summed per term before it saturates (BM25F over fields),
// so that words spread over heading and text count together. Of texts it reads only paths, and whether a word
// stands within a link. Each step also says what is the most that it may come to, so that what cannot be
// among the best is not looked at.
#include "search/rank_int.h"
#include <deputy/utf8.h>

// --- Of a whole search ---

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
static void weigh_terms(arena *a, scoring *s, const uint32_t *found_in) {
    const term_list *terms = s->terms;
    double *raw = NEW_N(a, double, s->n_terms);
    for (size_t t = 0; t < s->n_terms; t++) {
        double df = found_in[t];
        raw[t] = terms->p[t].weight * ln(1 + (s->n_sections - df + 0.5) / (df + 0.5));
    }
    for (size_t t = 0; t < s->n_terms; t++) {
        s->idf[t] = raw[t];
        if (overlaps(terms, t) && overlaps(terms, t + 1))
            s->idf[t] = least(raw[t], weights.junction * (raw[t - 1] + raw[t + 1]) / 2);
        s->idf_sum += s->idf[t];
    }
}

void scoring_begin(arena *a, scoring *s, const term_list *terms, const selected_file *files,
                   const selection_sums *sums, const uint32_t *found_in) {
    *s = (scoring){.terms = terms, .n_terms = terms->asked, .files = files, .most_heads = sums->most_heads};
    double bytes = (double)sums->bytes, lines = (double)sums->lines;
    s->idf = NEW_N(a, double, s->n_terms);
    s->n_sections = (double)sums->sections;
    s->avg_doc = bytes / (double)sums->files + 1;
    s->avg_line = bytes / (lines > 0 ? lines : 1) + 1;
    s->avg_chain = (double)sums->chain_bytes / s->n_sections + 1;
    s->avg_body = bytes / s->n_sections + 1;
    weigh_terms(a, s, found_in);
}

static double share(const scoring *s, size_t term, double x) {
    return s->idf[term] * x / (x + weights.saturation);
}

// The most that coverage and neighbours make of a score, when the line has terms that make up `sum`; and a
// little more, because what is summed in another order is rounded otherwise.
static double line_factor(const scoring *s, double sum, size_t n_terms) {
    double part = sum / s->idf_sum, factor = (1 - weights.coverage + weights.coverage * part) * (1 + 1e-9);
    // Near words follow the others, so that a pair may be met a second time.
    double pairs = s->terms->n > s->n_terms ? 2 : 1;
    return n_terms > 1 ? factor * (1 + weights.together * pairs * part) : factor;
}

// --- What it may be at most ---

// The sum of the `most` largest of v[0, n); of all, when that is not worth looking for. Changes their order.
static double sum_largest(double *v, size_t n, size_t most) {
    enum { FEW = 4 };
    double sum = 0;
    if (most > FEW) most = n;
    for (size_t k = 0; k < n && k < most; k++) {
        for (size_t i = k + 1; i < n && most < n; i++) {
            double other = v[i];
            v[i] = least(v[k], other);
            v[k] = v[k] > other ? v[k] : other;
        }
        sum += v[k];
    }
    return sum;
}

// Of occurrences in the line's section.
static double most_in_section(double n) {
    return n * weights.body / (1 - weights.b_body);
}

// Of those that may stand on the line: there they also count for its section.
static double most_on_line(double n) {
    return n * weights.line / (1 - weights.b_line) + most_in_section(n);
}

// Of those elsewhere in the file: in headings, its text, its path; never with a length of less than none.
static double most_outside(const tally_cell *c, bool path) {
    double heads = least(tally_occurrences(c->heads), weights.chain_max);
    return (weights.above > weights.own ? weights.above : weights.own) * heads / (1 - weights.b_chain) +
           weights.doc * tally_occurrences(c->body + c->heads) / (1 - weights.b_doc) +
           (path ? weights.path : 0);
}

// What the path alone gives to terms that the file has nowhere.
static double path_alone(const scoring *s, const tally *t, const tally_file *in) {
    tally_set left = in->path;
    for (size_t i = 0; i < in->n_cells; i++) set_remove(&left, t->cells[in->first + i].term);
    double sum = 0;
    for (uint16_t term; set_take(&left, &term);) sum += share(s, term, weights.path);
    return sum;
}

void score_bound(const scoring *s, const tally *t, tally_file *in) {
    double sum = path_alone(s, t, in), gain[RANK_TERMS_MAX], idf[RANK_TERMS_MAX];
    for (size_t i = 0; i < in->n_cells; i++) {
        const tally_cell *c = &t->cells[in->first + i];
        double n = tally_occurrences(c->body + c->heads),
               outside = most_outside(c, set_has(&in->path, c->term)),
               beside = share(s, c->term, outside + most_in_section(n));
        gain[i] = share(s, c->term, outside + most_on_line(n)) - beside;
        idf[i] = s->idf[c->term];
        sum += beside;
    }
    double found = sum_largest(idf, in->n_cells, in->most);
    in->bound = (sum + sum_largest(gain, in->n_cells, in->most)) * line_factor(s, found, in->most);
}

void score_look_at_file(scorer *x, const tally *t, const tally_file *in, const scan_part *found) {
    x->t = t;
    x->in = in;
    x->found = found;
    x->f = x->s->files[in->file].file;
    x->in_path = x->outside = path_alone(x->s, t, in);
    for (size_t i = 0; i < in->n_cells; i++) {
        const tally_cell *c = &t->cells[in->first + i];
        x->most_outside[c->term] = most_outside(c, set_has(&in->path, c->term));
        x->outside += share(x->s, c->term, x->most_outside[c->term]);
    }
}

static double factor_of(const corpus_file *f, const tally_section *section) {
    return section->section <= 1 && f->n_heads > 1 ? weights.intro : 1;
}

double score_section_bound(const scorer *x, const tally_section *section) {
    double sum = x->outside, gain[RANK_TERMS_MAX], idf[RANK_TERMS_MAX];
    for (size_t i = 0; i < section->n_cells; i++) {
        const tally_cell *c = &x->t->cells[section->first + i];
        double n = tally_occurrences(c->body + c->heads), outside = x->most_outside[c->term],
               beside = share(x->s, c->term, outside + most_in_section(n));
        gain[i] = share(x->s, c->term, outside + most_on_line(n)) - beside;
        idf[i] = x->s->idf[c->term];
        sum += beside - share(x->s, c->term, outside);
    }
    double found = sum_largest(idf, section->n_cells, section->most);
    sum += sum_largest(gain, section->n_cells, section->most);
    return sum * line_factor(x->s, found, section->most) * factor_of(x->f, section);
}

// --- Of a file ---

void score_enter_file(scorer *x) {
    const tally_file *in = x->in;
    for (size_t i = 0; i < in->n_cells; i++) {
        const tally_cell *c = &x->t->cells[in->first + i];
        x->in_doc[c->term] = tally_occurrences(c->body + c->heads);
    }
    for (uint32_t i = 0; i < in->n_sections; i++)
        x->row_of[x->t->sections[in->first_section + i].section] = i + 1;
}

void score_leave_file(scorer *x) {
    for (uint32_t i = 0; i < x->in->n_sections; i++)
        x->row_of[x->t->sections[x->in->first_section + i].section] = 0;
}

// --- Of a section ---

// Occurrences in the headings at and above the section, and how long those are.
static double add_chain(scorer *x, uint32_t section) {
    const tally_file *in = x->in;
    double len = 0;
    for (size_t i = 0; i < in->n_cells; i++) x->chain[x->t->cells[in->first + i].term] = 0;
    for (uint32_t at = section; at; at = x->f->heads[at - 1].parent) {
        len += x->f->heads[at - 1].n;
        if (!x->row_of[at]) continue;
        const tally_section *s = &x->t->sections[in->first_section + x->row_of[at] - 1];
        for (size_t i = 0; i < s->n_cells; i++) {
            const tally_cell *c = &x->t->cells[s->first + i];
            x->chain[c->term] += tally_occurrences(c->heads);
        }
    }
    return len;
}

static double norm(double b, double len, double avg) {
    return 1 - b + b * len / avg;
}

// What the section has of each term of the file.
static void add_cells(scorer *x, const tally_section *in) {
    for (size_t i = 0; i < x->in->n_cells; i++) {
        uint16_t t = x->t->cells[x->in->first + i].term;
        x->around[t] = x->alone[t] = 0;
    }
    for (size_t i = 0; i < in->n_cells; i++) {
        const tally_cell *c = &x->t->cells[in->first + i];
        x->around[c->term] = tally_occurrences(c->body);
        x->alone[c->term] = tally_occurrences(c->heads);
    }
}

double score_enter_section(scorer *x, const tally_section *in) {
    const scoring *s = x->s;
    const corpus_file *f = x->f;
    uint32_t first = in->section ? f->spans[in->section - 1].body : 0;
    uint32_t end = in->section < f->n_heads ? f->spans[in->section].first : (uint32_t)f->folded.n;
    double body_len = end > first ? end - first : 0;
    double chain_norm = norm(weights.b_chain, add_chain(x, in->section), s->avg_chain);
    double body_norm = norm(weights.b_body, body_len, s->avg_body);
    double doc_norm = norm(weights.b_doc, (double)f->folded.n, s->avg_doc);
    add_cells(x, in);
    x->base = x->in_path;
    for (size_t i = 0; i < x->in->n_cells; i++) {
        uint16_t t = x->t->cells[x->in->first + i].term;
        double body = x->around[t], heads = x->alone[t];
        double in_chain = least(x->chain[t], weights.chain_max), own = least(heads, in_chain);
        double elsewhere = x->in_doc[t] - body - heads;
        x->around[t] = (weights.own * own + weights.above * (in_chain - own)) / chain_norm +
                       weights.body * body / body_norm + weights.doc * elsewhere / doc_norm +
                       (set_has(&x->in->path, t) ? weights.path : 0);
        x->alone[t] = share(s, t, x->around[t]);
        x->base += x->alone[t];
    }
    double gain[RANK_TERMS_MAX], idf[RANK_TERMS_MAX];
    for (size_t i = 0; i < in->n_cells; i++) {
        const tally_cell *c = &x->t->cells[in->first + i];
        double on_line = weights.line * tally_occurrences(c->body + c->heads) / (1 - weights.b_line);
        gain[i] = share(s, c->term, x->around[c->term] + on_line) - x->alone[c->term];
        idf[i] = s->idf[c->term];
    }
    double most = x->base + sum_largest(gain, in->n_cells, in->most),
           found = sum_largest(idf, in->n_cells, in->most);
    x->factor = factor_of(f, in);
    return most * line_factor(s, found, in->most) * x->factor;
}

// --- Of a line ---

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
static bool goes_on(const term_list *terms, const term_hit *before, const term_hit *h) {
    uint16_t a = terms->p[before->term].as, b = terms->p[h->term].as;
    if (a + 1 != b || terms->p[b].kind == TERM_GRAM) return false;
    uint32_t end = before->at + (uint32_t)terms->p[before->term].text.n;
    return h->at >= end && h->at <= end + 1;
}

str score_text(const scoring *s, const scan_part *found, const line_hit *l) {
    return found->texts ? found->texts[l - found->lines] : corpus_line(s->files[l->file].file, l->line);
}

double score_line(const scorer *x, const line_hit *l, bool links) {
    const scoring *s = x->s;
    const term_list *terms = s->terms;
    str text = links || l->len == LINE_LEN_MAX ? score_text(x->s, x->found, l) : str_n(NULL, l->len);
    double line_norm = norm(weights.b_line, (double)(text.n + 1), s->avg_line);
    double covered = 0, together = 0, score = x->base;
    // Hits of one term come one after the other, except near ones: those come last.
    double own[RANK_TERMS_MAX];
    uint16_t present[RANK_TERMS_MAX];
    size_t n = 0;
    for (size_t k = 0; k < l->n; k++) {
        const term_hit *h = &x->found->hits[l->first + k];
        uint16_t t = terms->p[h->term].as;
        double w = tally_occurrences(tally_worth(&terms->p[h->term], h));
        if (links && is_in_link(text, h->at)) w *= weights.link;
        size_t i = 0;
        while (i < n && present[i] != t) i++;
        if (i == n) {
            present[n] = t;
            own[n++] = 0;
        }
        own[i] += w;
        if (k && goes_on(terms, h - 1, h)) together += least(s->idf[terms->p[(h - 1)->term].as], s->idf[t]);
    }
    for (size_t i = 0; i < n; i++) {
        uint16_t t = present[i];
        covered += s->idf[t] * least(own[i], 1);
        score += share(s, t, x->around[t] + weights.line * own[i] / line_norm) - x->alone[t];
    }
    return score * x->factor * (1 - weights.coverage + weights.coverage * covered / s->idf_sum) *
           (1 + weights.together * together / s->idf_sum);
}

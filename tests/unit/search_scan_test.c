// The scanner against the one that is too simple to be wrong: on random corpora of all scripts every variant
// of the kernel finds the same lines with the same counts, over files that lie in one slab or in several.
#include "search/scan_int.h"
#include "support/dir_fixture.h"
#include "support/scan_naive.h"
#include <deputy/utf8.h>
#include <stdio.h>
#include <stdlib.h>

// --- Random text ---

typedef struct {
    uint64_t x;
} rng;

static uint32_t next(rng *r, uint32_t n) {
    r->x ^= r->x << 13;
    r->x ^= r->x >> 7;
    r->x ^= r->x << 17;
    return (uint32_t)((r->x >> 33) % n);
}

// Few different ones, so that words meet, overlap and hold one another.
static const char *const pieces[] = {
    "a",
    "b",
    "ab",
    "aba",
    "abab",
    "the",
    "run",
    "running",
    "Runs",
    "police",
    "policies",
    "Policy",
    "x",
    "1",
    "12",
    ".",
    "1.2",
    "c++",
    "_",
    "-",
    "'",
    "退款",
    "款退",
    "七日",
    "的",
    "日",
    "ｆｕｌｌ",
    "，",
    "。",
    "カタ",
    "ﾀｲﾄﾞ",
    "환불",
    "정책",
    "คืนเงิน",
    "й",
    "И\xCC\x86",
    "МОСКВА",
    "é",
    "e\xCC\x81",
    "Straße",
    "ﬁ",
    "\xC2\xAD",
    "\xE2\x80\x8B",
    "\xEF\xBB\xBF",
    "ΟΔΟΣ",
    "İ",
    "ǅ",
    "𝐀",
    "\xF0\x9F\x98\x80",
    "هذه",
    "\r",
    "\t",
    "\xCC\x81",
    "word",
    "words",
};

static str random_text(arena *a, rng *r, size_t n) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < n; i++) {
        buf_add(&b, str_z(pieces[next(r, sizeof pieces / sizeof *pieces)]));
        uint32_t what = next(r, 12);
        if (what < 5) buf_addc(&b, ' ');
        if (what == 11) buf_addc(&b, '\n');
    }
    return buf_str(&b);
}

static str random_query(arena *a, rng *r) {
    buf b = buf_new(a, 0);
    for (uint32_t i = 0, n = 1 + next(r, 14); i < n; i++) {
        bool phrase = next(r, 8) == 0;
        if (phrase) buf_addc(&b, '"');
        for (uint32_t k = 0, m = 1 + next(r, 3); k < m; k++) {
            buf_add(&b, str_z(pieces[next(r, sizeof pieces / sizeof *pieces)]));
            if (next(r, 3) == 0) buf_addc(&b, ' ');
        }
        if (phrase) buf_addc(&b, '"');
        buf_addc(&b, ' ');
    }
    return buf_str(&b);
}

// --- Corpora ---

typedef struct {
    arena *a;
    slabs slabs;
    corpus_file *files;
    selected_file *selected;
    size_t n;
    byte_runs *runs;
    search_corpus corpus;
} random_corpus;

static void drop(void *p) {
    random_corpus *c = p;
    for (size_t i = 0; i < c->slabs.n; i++) slab_drop(c->slabs.p[i]);
    free(c->slabs.p);
}

static random_corpus *make_corpus(arena *a, rng *r) {
    static const file_name name = {.path = S_INIT("a.md")};
    random_corpus *c = NEW(a, random_corpus);
    arena_defer(a, drop, c);
    c->n = 1 + next(r, 12);
    c->files = NEW_N(a, corpus_file, c->n);
    c->selected = NEW_N(a, selected_file, c->n);
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        str text = random_text(a, r, next(r, 400));
        dep_err err;
        corpus_parts parts;
        corpus_prepare(a, S("a.md"), text, false, NULL, &parts);
        if (corpus_keep(&parts, &c->slabs, &c->files[i], &err) != DEP_OK) fail_msg("%s", err.msg);
        assert_text(corpus_text(a, &c->files[i], 0, text.n), str_cz(a, text));
        // Some are left out, as a filter does, and some runs end.
        if (next(r, 5)) c->selected[n++] = (selected_file){.file = &c->files[i], .name = &name};
        if (next(r, 4) == 0) slab_seal(c->slabs.p[c->slabs.n - 1]);
    }
    c->n = n;
    if (next(r, 2)) {
        c->runs = NEW(a, byte_runs);
        for (size_t i = 0; i < BYTE_RUNS; i++) c->runs->two[i] = (uint8_t)next(r, 200);
        for (size_t i = 0; i < BYTE_RUNS; i++) c->runs->three[i] = (uint8_t)next(r, 200);
        // So large a corpus that two bytes seem to be enough.
        if (next(r, 2)) c->runs->bytes = SIZE_MAX / 2;
    }
    c->corpus = (search_corpus){.runs = c->runs, .limits = search_limits_default};
    if (next(r, 6) == 0) c->corpus.limits.lines = next(r, 20);
    return c;
}

// What a scan has found, as one list.
static naive_result flat(arena *a, const scan_result *r) {
    naive_result f = {.files = r->files,
                      .bytes = r->bytes,
                      .matched = r->matched,
                      .expanded = r->expanded,
                      .unranked = r->unranked};
    for (size_t c = 0; c < r->n_chunks; c++)
        for (size_t i = 0; i < r->chunks[c].n; i++) {
            line_hit l = r->chunks[c].lines[i];
            const term_hit *hits = r->chunks[c].hits + l.first;
            l.first = (uint32_t)f.hits.n;
            for (size_t k = 0; k < l.n; k++) vec_push(a, &f.hits, hits[k]);
            vec_push(a, &f.lines, l);
        }
    if (f.lines.n != r->lines) fail_msg("%zu lines, not %zu", f.lines.n, r->lines);
    return f;
}

static void assert_same(arena *a, const scan_result *fast, const naive_result *y, const char *what,
                        str query) {
    naive_result flattened = flat(a, fast), *x = &flattened;
    bool same = x->lines.n == y->lines.n && x->hits.n == y->hits.n && x->matched == y->matched &&
                x->expanded == y->expanded && x->unranked == y->unranked && x->files == y->files &&
                x->bytes == y->bytes;
    for (size_t i = 0; same && i < x->lines.n; i++) {
        const line_hit *l = &x->lines.p[i], *m = &y->lines.p[i];
        same = l->file == m->file && l->line == m->line && l->first == m->first && l->n == m->n &&
               l->exact == m->exact && l->len == m->len;
    }
    for (size_t i = 0; same && i < x->hits.n; i++) {
        const term_hit *g = &x->hits.p[i], *h = &y->hits.p[i];
        same = g->term == h->term && g->worth == h->worth && g->at == h->at;
    }
    if (!same)
        fail_msg("%s differs for %.*s: %zu and %zu lines, %zu and %zu hits", what, STR_ARG(query), x->lines.n,
                 y->lines.n, x->hits.n, y->hits.n);
}

// Of words that stand on a few lines all lines are counted; of others enough of them.
static void assert_same_lines(const term_list *terms, const scan_result *fast, const naive_result *naive,
                              str query) {
    for (size_t t = 0; t < terms->n; t++) {
        const term_lines *x = &fast->lines_of[t], *y = &naive->lines_of[t];
        if (terms->p[t].kind != TERM_WORD) continue;
        bool same = y->word < NEAR_BELOW ? x->word == y->word && x->start == y->start : x->word >= NEAR_BELOW;
        if (!same)
            fail_msg("%.*s: %.*s is on %u and %u lines, not %u and %u", STR_ARG(query),
                     STR_ARG(terms->p[t].text), x->word, x->start, y->word, y->start);
    }
}

static void test_search_scan__every_variant_counts_as_the_naive_scanner(void **state) {
    (void)state;
    static const char *const names[] = {"plain", "ssse3", "avx2", "avx512"};
    rng r = {0x9E3779B97F4A7C15u};
    size_t lines = 0;
    for (int round = 0; round < 400; round++) {
        arena *a = arena_new();
        random_corpus *c = make_corpus(a, &r);
        for (int q = 0; q < 4; q++) {
            str query = random_query(a, &r);
            term_list terms = {0};
            terms_parse(a, query, &terms);
            if (!terms.n) continue;
            naive_result naive;
            scan_result fast;
            crew *alone = crew_new(a, NULL, NULL, 1, NULL), *several = crew_new(a, NULL, NULL, 4, NULL);
            scan_naive(a, &terms, c->selected, c->n, &c->corpus, &naive);
            lines += naive.lines.n;
            for (int v = 0; v < SCAN_VARIANTS; v++) {
                const scan_ops *ops = scan_ops_of((scan_variant)v);
                if (!ops) continue;
                assert_int_equal(scan_lines_with(ops, SCAN_CHUNK_BYTES, a, alone, &terms, c->selected, c->n,
                                                 &c->corpus, NULL, NULL, &fast, NULL),
                                 DEP_OK);
                assert_same(a, &fast, &naive, names[v], query);
                assert_same_lines(&terms, &fast, &naive, query);
                assert_int_equal(scan_lines_with(ops, 512, a, several, &terms, c->selected, c->n, &c->corpus,
                                                 NULL, NULL, &fast, NULL),
                                 DEP_OK);
                assert_same(a, &fast, &naive, "several threads", query);
                assert_same_lines(&terms, &fast, &naive, query);
            }
        }
        arena_free(a);
    }
    assert_true(lines > 10000); // the corpora are no empty ones
}

// The rarest bytes of a long word may stand further behind its start than before a place is looked.
static void test_search_scan__a_long_word_is_found_wherever_its_rarest_bytes_are(void **state) {
    (void)state;
    byte_runs *runs = calloc(1, sizeof *runs);
    assert_non_null(runs);
    memset(runs->two, 200, sizeof runs->two);
    memset(runs->three, 200, sizeof runs->three);
    runs->three[three_bytes((const unsigned char *)"zqz")] = 0;
    for (size_t at = SCAN_AROUND - 4; at <= SCAN_AROUND + 4; at++) {
        arena *a = arena_new();
        random_corpus *c = NEW(a, random_corpus);
        arena_defer(a, drop, c);
        str word = str_fmt(a, "%0*dzqz%060d", (int)at, 0, 0);
        str text = str_fmt(a, STR_FMT "\n" STR_FMT "1\n" STR_FMT, STR_ARG(word), STR_ARG(word),
                           STR_ARG(str_sub(word, 1, word.n)));
        corpus_file f = {0};
        file_name name = {.path = word};
        dep_err err;
        corpus_parts parts;
        corpus_prepare(a, word, text, false, NULL, &parts);
        assert_int_equal(corpus_keep(&parts, &c->slabs, &f, &err), DEP_OK);
        f.names = &name;
        f.n_names = 1;
        selected_file selected = {.file = &f, .name = &name};
        c->corpus = (search_corpus){.runs = runs, .limits = search_limits_default};
        term_list terms = {0};
        terms_parse(a, word, &terms);
        naive_result naive;
        scan_naive(a, &terms, &selected, 1, &c->corpus, &naive);
        assert_int_equal(naive.lines.n, 2);
        for (int v = 0; v < SCAN_VARIANTS; v++) {
            const scan_ops *ops = scan_ops_of((scan_variant)v);
            if (!ops) continue;
            scan_result fast;
            crew *alone = crew_new(a, NULL, NULL, 1, NULL);
            assert_int_equal(scan_lines_with(ops, SCAN_CHUNK_BYTES, a, alone, &terms, &selected, 1,
                                             &c->corpus, NULL, NULL, &fast, NULL),
                             DEP_OK);
            assert_same(a, &fast, &naive, "a long word", word);
            assert_int_equal(fast.chunks[0].n_paths, 1);
        }
        arena_free(a);
    }
    free(runs);
}

// When a query has nothing but stop words, most lines are counted without being looked at.
static void test_search_scan__lines_of_stop_words_are_all_counted(void **state) {
    (void)state;
    static const char *const queries[] = {"the", "the of", "is it the", "的", "a the", "of 的"};
    rng r = {0xD1B54A32D192ED03u};
    size_t counted = 0;
    for (int round = 0; round < 300; round++) {
        arena *a = arena_new();
        random_corpus *c = make_corpus(a, &r);
        term_list terms = {0};
        terms_parse(a, str_z(queries[round % (sizeof queries / sizeof *queries)]), &terms);
        assert_true(terms.common);
        naive_result naive;
        c->corpus.limits = search_limits_default;
        c->corpus.limits.common = 0;
        scan_naive(a, &terms, c->selected, c->n, &c->corpus, &naive);
        for (int v = 0; v < SCAN_VARIANTS; v++) {
            const scan_ops *ops = scan_ops_of((scan_variant)v);
            if (!ops) continue;
            scan_result fast;
            crew *several = crew_new(a, NULL, NULL, 4, NULL);
            assert_int_equal(scan_lines_with(ops, 512, a, several, &terms, c->selected, c->n, &c->corpus,
                                             NULL, NULL, &fast, NULL),
                             DEP_OK);
            assert_int_equal(fast.matched, naive.matched);
            assert_int_equal(fast.expanded, naive.expanded);
            assert_int_equal(fast.bytes, naive.bytes);
            assert_int_equal(fast.lines + fast.unranked, naive.matched + naive.expanded);
            counted += fast.unranked;
        }
        arena_free(a);
    }
    assert_true(counted > 1000);
}

static void test_search_scan__the_best_variant_is_one_that_there_is(void **state) {
    (void)state;
    size_t found = 0;
    for (int v = 0; v < SCAN_VARIANTS; v++) found += scan_ops_of((scan_variant)v) == scan_ops_best();
    assert_int_equal(found, 1);
    assert_non_null(scan_ops_of(SCAN_PLAIN));
    assert_null(scan_ops_of(SCAN_VARIANTS));
}

static void admit(scan_tables *t, int place, unsigned byte, uint8_t buckets) {
    t->admits[place][byte] |= buckets;
    t->low[place][byte & 15] |= buckets;
}

// A kernel may stop for want of room at any byte; where it goes on, nothing is lost and nothing comes twice.
static void test_search_scan__places_without_number_are_all_found(void **state) {
    (void)state;
    enum { N = 5000 };
    static char text[N + SCAN_AHEAD];
    scan_tables t = {0};
    for (int k = 0; k < SCAN_WINDOW; k++) admit(&t, k, 'a', 1);
    for (int v = 0; v < SCAN_VARIANTS; v++) {
        if (!scan_ops_of((scan_variant)v)) continue;
        scan_kernel *k = scan_ops_of((scan_variant)v)->kernel;
        for (size_t n = 0; n < N; n += 1 + n / 7) {
            memset(text, 'a', sizeof text);
            size_t at = 0, seen = 0;
            while (at < n) {
                scan_places_found places = {0};
                at = k(&t, text, at, n, &places);
                for (size_t i = 0; i < places.n; i++, seen++) assert_int_equal(places.at[i], seen);
            }
            assert_int_equal(at, n);
            assert_int_equal(seen, n);
        }
    }
}

// Some windows of two to four bytes, or one or two rare pairs, as scan.c makes them.
static void random_tables(rng *r, scan_tables *t, uint32_t letters) {
    unsigned windows = 1 + next(r, SCAN_BUCKETS);
    *t = (scan_tables){.pairs = next(r, 2)};
    if (t->pairs && windows <= SCAN_PAIRS) t->n_pairs = (uint8_t)windows;
    for (unsigned b = 0; b < windows; b++) {
        unsigned n = t->pairs ? 2 : 2 + next(r, 3);
        for (unsigned k = 0; k < SCAN_WINDOW; k++) {
            unsigned byte = 'a' + next(r, letters) + (next(r, 5) ? 0 : 128);
            if (k < 2 && t->n_pairs) t->pair[b][k] = (uint8_t)byte;
            for (unsigned c = 0; c < 256; c++)
                if (c == byte || k >= n) admit(t, (int)k, c, (uint8_t)(1u << b));
        }
    }
}

// Each place that the tables admit, once and in order, from wherever to wherever a kernel goes.
static void test_search_scan__kernels_find_what_the_tables_admit(void **state) {
    (void)state;
    enum { N = 20000 };
    static unsigned char text[N + SCAN_AHEAD];
    rng r = {0xA0761D6478BD642Fu};
    size_t found = 0, stopped = 0;
    for (int round = 0; round < 300; round++) {
        scan_tables t;
        uint32_t letters = 2 + next(&r, round % 3 ? 30 : 2);
        random_tables(&r, &t, letters);
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = (unsigned char)('a' + next(&r, letters) + (next(&r, 7) ? 0 : 128));
        for (int v = 0; v < SCAN_VARIANTS; v++) {
            const scan_ops *ops = scan_ops_of((scan_variant)v);
            for (size_t at = next(&r, 200), to, end; ops && at < N; at = end) {
                scan_places_found places = {0};
                to = next(&r, 3) ? N : at + 1 + next(&r, (uint32_t)(N - at));
                end = ops->kernel(&t, (const char *)text, at, to, &places);
                assert_true(end > at && end <= to && places.n <= SCAN_FOUND_MAX);
                stopped += end < to;
                size_t n = 0;
                for (size_t i = at; i < end; i++) {
                    uint8_t buckets = UINT8_MAX;
                    for (uint32_t k = 0; k < ops->window; k++) buckets &= t.admits[k][text[i + k]];
                    if (!buckets) continue;
                    assert_true(n < places.n && places.at[n] == i && places.buckets[n] == buckets);
                    n++;
                }
                assert_int_equal(n, places.n);
                found += n;
            }
        }
    }
    assert_true(found > 100000 && stopped > 100);
}

static void test_search_scan__a_line_is_found_from_each_place_in_it(void **state) {
    (void)state;
    enum { N = 2000 };
    static char room[SCAN_AROUND + N + SCAN_AROUND];
    char *text = room + SCAN_AROUND;
    rng r = {11};
    for (int round = 0; round < 12; round++) {
        memset(room, 'x', sizeof room);
        text[-1] = '\n';
        for (size_t at = 0; at < N; at += 1 + next(&r, round % 3 ? 90 : 400)) text[at] = '\n';
        text[N - 1] = '\n';
        for (size_t at = 0; at < N; at++) {
            size_t first = at, last = at, from, start, end;
            while (first && text[first - 1] != '\n') first--;
            while (text[last] != '\n') last++;
            // Not before the line, nor behind the place.
            from = next(&r, 2) ? first : next(&r, (uint32_t)first + 1);
            for (int v = 0; v < SCAN_VARIANTS; v++) {
                if (!scan_ops_of((scan_variant)v)) continue;
                scan_ops_of((scan_variant)v)->bounds(text, from, at, &start, &end);
                assert_int_equal(start, first);
                assert_int_equal(end, last);
            }
        }
    }
}

// --- The original text ---

static void test_search_scan__lines_and_text_come_back_as_they_were(void **state) {
    (void)state;
    rng r = {42};
    for (int round = 0; round < 400; round++) {
        arena *a = arena_new();
        str text = random_text(a, &r, next(&r, 300));
        slabs s = {0};
        corpus_file f = {0};
        dep_err err;
        corpus_parts parts;
        corpus_prepare(a, S("a.txt"), text, false, NULL, &parts);
        assert_int_equal(corpus_keep(&parts, &s, &f, &err), DEP_OK);
        str rest = text, line;
        uint32_t at = 0;
        for (uint32_t i = 0; i < f.n_lines; i++, at = corpus_next_line(&f, at)) {
            (void)str_cut(rest, '\n', &line, &rest);
            if (line.n && line.p[line.n - 1] == '\r') line.n--;
            assert_text(corpus_original(a, &f, at, i), str_cz(a, line));
            assert_int_equal(corpus_line_number(&f, at), i);
            assert_int_equal(corpus_line_start(&f, 0, at), at);
        }
        assert_int_equal(at, f.folded.n);
        // What folding removes makes no line.
        assert_int_equal(utf8_fold(a, rest).n, 0);
        for (int k = 0; k < 20 && text.n; k++) {
            size_t from = next(&r, (uint32_t)text.n), to = from + next(&r, (uint32_t)(text.n - from) + 1);
            assert_text(corpus_text(a, &f, from, to), str_cz(a, str_sub(text, from, to)));
        }
        for (size_t i = 0; i < s.n; i++) slab_drop(s.p[i]);
        free(s.p);
        arena_free(a);
    }
}

// --- Lines and headings ---

static str random_document(arena *a, rng *r) {
    buf b = buf_new(a, 20000);
    for (uint32_t lines = next(r, 300); lines; lines--) {
        uint32_t kind = next(r, 12);
        if (kind == 0) buf_add(&b, S("# Gro\u00DFe Stra\u00DFe"));
        if (kind == 1) buf_add(&b, S("\nTitle\n====="));
        if (kind == 2) buf_add(&b, S("<h2>a</h2> <h3>b</h3>"));
        if (kind > 2)
            for (uint32_t n = next(r, 140); n; n--) buf_addc(&b, (char)('a' + next(r, 20)));
        if (lines > 1 || next(r, 2)) buf_addc(&b, '\n');
    }
    return buf_str(&b);
}

static uint32_t start_of(str text, uint32_t line) {
    size_t at = 0;
    for (; line; line--) {
        const char *lf = memchr(text.p + at, '\n', text.n - at);
        if (!lf) return (uint32_t)text.n;
        at = (size_t)(lf - text.p) + 1;
    }
    return (uint32_t)at;
}

static void test_search_scan__headings_are_placed_in_the_folded_text(void **state) {
    (void)state;
    rng r = {7};
    for (int round = 0; round < 300; round++) {
        arena *a = arena_new();
        str text = random_document(a, &r), path = round % 2 ? S("a.md") : S("a.html");
        heading_list heads = {0};
        corpus_parts parts;
        headings_find(a, path, text, NULL, &heads);
        corpus_prepare(a, path, text, false, NULL, &parts);
        assert_int_equal(parts.heads.n, heads.n);
        for (size_t i = 0; i < heads.n; i++) {
            assert_int_equal(parts.spans[i].first, start_of(parts.folded, heads.p[i].first));
            assert_int_equal(parts.spans[i].body, start_of(parts.folded, heads.p[i].last + 1));
        }
        size_t feeds = 0;
        for (size_t i = 0; i < parts.folded.n; i++) {
            if (i && i % LINES_EACH == 0) assert_int_equal(parts.lines_before[i / LINES_EACH - 1], feeds);
            feeds += parts.folded.p[i] == '\n';
        }
        bool open = parts.folded.n && parts.folded.p[parts.folded.n - 1] != '\n';
        assert_int_equal(parts.n_lines, feeds + open);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_search_scan__every_variant_counts_as_the_naive_scanner),
        cmocka_unit_test(test_search_scan__a_long_word_is_found_wherever_its_rarest_bytes_are),
        cmocka_unit_test(test_search_scan__lines_of_stop_words_are_all_counted),
        cmocka_unit_test(test_search_scan__the_best_variant_is_one_that_there_is),
        cmocka_unit_test(test_search_scan__places_without_number_are_all_found),
        cmocka_unit_test(test_search_scan__kernels_find_what_the_tables_admit),
        cmocka_unit_test(test_search_scan__a_line_is_found_from_each_place_in_it),
        cmocka_unit_test(test_search_scan__lines_and_text_come_back_as_they_were),
        cmocka_unit_test(test_search_scan__headings_are_placed_in_the_folded_text),
    };
    return cmocka_run_group_tests_name("search_scan", tests, nullptr, nullptr);
}

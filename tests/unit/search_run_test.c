// Whole searches: what matches in which script and encoding, what a hit shows, totals and cuts, budgets,
// filters, links and refusals, and that equal input gives equal bytes.
#include "search/search_int.h"
#include "support/dir_fixture.h"
#include <deputy/json.h>
#include <deputy/utf8.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void close_corpus(void *p) {
    search_close(p);
}

static search_corpus *open_space(dir_fixture *f, search_space *space, const search_limits *limits) {
    search_corpus *c = NULL;
    dep_err err = {0};
    space->root = f->dir;
    if (search_open_with(space, limits, &c, &err) != DEP_OK) fail_msg("%s", err.msg);
    arena_defer(f->a, close_corpus, c);
    return c;
}

// One source, "Manual", of everything that is not hidden.
static search_space whole(dir_fixture *f) {
    str *include = NEW(f->a, str);
    *include = S("**/*");
    search_source *s = NEW(f->a, search_source);
    *s = (search_source){.name = S("Manual"), .include = include, .n_include = 1};
    return (search_space){.root = f->dir, .sources = s, .n_sources = 1};
}

static search_corpus *open_all(dir_fixture *f) {
    search_space space = whole(f);
    return open_space(f, &space, &search_limits_default);
}

static search_result ask(dir_fixture *f, search_corpus *c, search_query q) {
    search_result r = {0};
    dep_err err = {0};
    if (search_run(f->a, c, &q, &r, &err) != DEP_OK) fail_msg(STR_FMT ": %s", STR_ARG(q.query), err.msg);
    return r;
}

static search_result ask_for(dir_fixture *f, search_corpus *c, const char *query) {
    return ask(f, c, (search_query){.query = str_z(query)});
}

static const search_cut *cut_of(const search_result *r, const char *reason) {
    for (vec_each(const search_cut, c, &r->cuts))
        if (str_find(c->reason, str_z(reason)) != SIZE_MAX) return c;
    return NULL;
}

static void assert_cut(const search_result *r, const char *reason, size_t count, const char *path) {
    const search_cut *c = cut_of(r, reason);
    if (!c) {
        fail_msg("not said: %s", reason);
        return;
    }
    assert_int_equal(c->count, count);
    assert_int_equal(c->paths.n, count);
    assert_text(c->paths.p[0], path);
}

static void assert_first(const search_result *r, const char *path, uint32_t line) {
    if (!r->hits.n) fail_msg("no hit, not %s:%u", path, line);
    assert_text(r->hits.p[0].path, path);
    assert_int_equal(r->hits.p[0].line, line);
}

static str json_of(dir_fixture *f, const search_result *r) {
    buf b = buf_new(f->a, 0);
    search_json(&b, r);
    return buf_str(&b);
}

// --- What matches ---

static void test_search_run__every_script_matches_folded_text(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "m.md",
               S("退款政策：收到商品后七日内可退\n" // 1
                 "タイドの説明\n"                   // 2
                 "นโยบายการคืนเงินภายในเจ็ดวัน\n"       // 3
                 "환불정책에따라처리합니다\n"       // 4
                 "cafe\xCC\x81 and Stra\xC3\x9F"
                 "e\n"                                         // 5, NFD
                 "Ｆｕｌｌ Ｗｉｄｔｈ １２３\n"                // 6
                 "soft\xC2\xADhyphen, zero\xE2\x80\x8Bwidth\n" // 7
                 "ΟΔΟΣ МОСКВА İstanbul ǅ\n"                    // 8
                 "هذه سياسة الاسترجاع\n"                       // 9
                 "the Refund-Policy applies\n"));              // 10
    search_corpus *c = open_all(f);
    static const struct {
        const char *query;
        uint32_t line; // 0: none
    } cases[] = {
        {"退款", 1},
        {"七日", 1},
        {"政策 退款", 1},
        {"退", 1},
        {"ﾀｲﾄﾞ", 2},
        {"タイド", 2},
        {"คืนเงิน", 3},
        {"정책", 4},
        {"환불정책", 4},
        {"café", 5},
        {"CAFÉ", 5},
        {"cafe\xCC\x81", 5},
        {"strasse", 5},
        {"STRASSE", 5},
        {"full width", 6},
        {"ＦＵＬＬ", 6},
        {"123", 6},
        {"softhyphen", 7},
        {"zerowidth", 7},
        {"οδος", 8},
        {"москва", 8},
        {"ǆ", 8},
        {"استرجاع", 9},
        {"refund policy", 10},
        {"\"refund-policy\"", 10},
        {"\"policy refund\"", 0},
        {"退订", 0},
        {"일정", 0},
        {"nothing", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_result r = ask_for(f, c, cases[i].query);
        if (cases[i].line == 0) {
            if (r.hits.n) fail_msg("%s hits line %u", cases[i].query, r.hits.p[0].line);
        } else if (r.hits.n == 0 || r.hits.p[0].line != cases[i].line) {
            fail_msg("%s: line %u, not %u", cases[i].query, r.hits.n ? r.hits.p[0].line : 0, cases[i].line);
        }
    }
}

static void test_search_run__totals_count_lines_with_a_term(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("refund\nrefunds are paid\nprefunded\nnothing\nrefund refund\n"));
    temp_write(f->path, "b.md", S("deliver\ndelivers\ndelivering goods\ndelivery\n"));
    temp_write(f->path, "empty.md", S(""));
    search_corpus *c = open_all(f);
    search_result r = ask_for(f, c, "refund");
    assert_int_equal(r.totals.files, 3);
    assert_int_equal(r.totals.bytes, 56 + 43);
    assert_int_equal(r.totals.matched_lines, 4);
    assert_int_equal(r.totals.expanded_lines, 0);
    assert_false(r.totals.at_least);
    // Other forms of a word are found as well, and counted apart.
    r = ask_for(f, c, "delivering");
    assert_int_equal(r.totals.matched_lines, 1);
    assert_int_equal(r.totals.expanded_lines, 2);
    assert_int_equal(r.hits.n, 3);
    // A union of terms; stop words add no line.
    r = ask_for(f, c, "are refund nothing");
    assert_int_equal(r.totals.matched_lines, 5);
    r = ask_for(f, c, "are");
    assert_int_equal(r.totals.matched_lines, 1);
}

// The definition of a match, against the scanner: random texts, every line, every term.
static void test_search_run__a_line_matches_when_its_folded_text_contains_a_term(void **state) {
    dir_fixture *f = *state;
    static const char *const pieces[] = {"a", "b", "ab",       "é",  "e\xCC\x81", "退",  "款", "政", "タ",
                                         "ﾀ", "ﾞ", "\xC2\xAD", "\n", "\n",        " ",   " ",  "ﬁ",  "ß",
                                         "İ", "ก", "ำ",        "한", "\r\n",      "ing", "s"};
    enum { PIECES = sizeof pieces / sizeof *pieces };
    uint32_t seed = 11;
    for (int round = 0; round < 60; round++) {
        buf text = buf_new(f->a, 0);
        for (int i = 0; i < 400; i++) {
            seed = seed * 1664525u + 1013904223u;
            buf_add(&text, str_z(pieces[(seed >> 12) % PIECES]));
        }
        temp_write(f->path, "r.md", buf_str(&text));
        search_corpus *c = open_all(f);
        const corpus_file *file = &c->files[0];
        static const char *const queries[] = {"a",  "ab", "退款",       "款政策", "é",    "fi",
                                              "ss", "タ", "ab \"a b\"", "abing",  "한 ก", "bs"};
        for (size_t q = 0; q < sizeof queries / sizeof *queries; q++) {
            term_list terms = {0};
            terms_parse(f->a, str_z(queries[q]), &terms);
            size_t want = 0;
            uint32_t lines = 0, at = 0;
            str rest = corpus_text(f->a, file, 0, file->n_text), line;
            for (bool more = rest.n > 0; more; lines++, at = corpus_next_line(file, at)) {
                more = str_cut(rest, '\n', &line, &rest) && rest.n > 0;
                str folded = utf8_fold(f->a, line);
                bool hit = false;
                for (size_t t = 0; t < terms.n; t++)
                    hit = hit || str_find(folded, terms.p[t].text) != SIZE_MAX;
                want += hit;
                // Line by line or whole, folding gives the same lines.
                if (!str_eq(folded, corpus_line(file, at))) fail_msg("line %u folds differently", lines);
                str shown = corpus_original(f->a, file, at, lines);
                if (line.n && line.p[line.n - 1] == '\r') line.n--;
                assert_true(str_eq(shown, line));
            }
            assert_int_equal(lines, file->n_lines);
            search_result r = ask_for(f, c, queries[q]);
            if (r.totals.matched_lines != want)
                fail_msg("%s: %zu lines, not %zu", queries[q], r.totals.matched_lines, want);
        }
    }
}

// --- Hits ---

static void test_search_run__a_hit_carries_place_line_and_trail(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "docs/m.md",
               S("# Orders\n\n## Refunds\n\n  Paid within seven days.\t \r\n\n### *Late* ones #\nnever\n# "
                 "Other\nseven\n"));
    search_corpus *c = open_all(f);
    search_result r = ask(f, c, (search_query){.query = S("paid"), .context = 2});
    assert_first(&r, "docs/m.md", 5);
    const search_hit *h = &r.hits.p[0];
    assert_text(h->source, "Manual");
    assert_text(h->text, "Paid within seven days.");
    assert_text(h->heading, "Orders > Refunds");
    assert_true(h->score > 0);
    assert_int_equal(h->n_before, 2);
    assert_text(h->before[0], "## Refunds");
    assert_text(h->before[1], "");
    assert_int_equal(h->n_after, 2);
    assert_text(h->after[1], "### *Late* ones #");
    r = ask(f, c, (search_query){.query = S("late"), .context = 9});
    assert_first(&r, "docs/m.md", 7);
    // A heading is not above itself.
    assert_text(r.hits.p[0].heading, "Orders > Refunds");
    assert_int_equal(r.hits.p[0].n_before, 6);
    assert_int_equal(r.hits.p[0].n_after, 3);
    r = ask_for(f, c, "never");
    assert_text(r.hits.p[0].heading, "Orders > Refunds > *Late* ones");
    r = ask_for(f, c, "orders");
    assert_text(r.hits.p[0].heading, "");
}

static str line_with(dir_fixture *f, str filler, size_t before, str needle, size_t after) {
    buf b = buf_new(f->a, 0);
    for (size_t i = 0; i < before; i++) buf_add(&b, filler);
    buf_add(&b, needle);
    for (size_t i = 0; i < after; i++) buf_add(&b, filler);
    buf_addc(&b, '\n');
    return buf_str(&b);
}

static void test_search_run__long_lines_are_cut_around_the_match(void **state) {
    dir_fixture *f = *state;
    static const struct {
        const char *filler, *needle, *query;
        size_t before, after;
        bool starts, ends; // with the mark
    } cases[] = {
        {"x ", "needle ", "needle", 196, 0, false, false},   // 399 characters: whole
        {"x ", "needle.. ", "needle", 196, 0, false, false}, // 400 without the blank at the end
        {"x ", "needle... ", "needle", 196, 0, true, false}, // 401
        {"x ", "needle ", "needle", 0, 5000, false, true},
        {"x ", "needle ", "needle", 5000, 5000, true, true},
        {"x ", "needle ", "needle", 5000, 0, true, false},
        {"長", "針です", "針です", 3000, 3000, true, true},
        {"e\u0301\u0302", "needle", "needle", 2000, 2000, true, true},
        {"👨‍👩‍👧‍👦", "needle", "needle", 500, 500, true, true},
        {"ﷺ", "needle", "needle", 500, 500, true, true},
        {"\xC2\xAD", "needle", "needle", 900, 900, true, true},
        {"🇩🇪", "needle", "needle", 700, 700, true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str filler = str_z(cases[i].filler);
        temp_write(f->path, "l.txt",
                   line_with(f, filler, cases[i].before, str_z(cases[i].needle), cases[i].after));
        search_corpus *c = open_all(f);
        search_result r = ask_for(f, c, cases[i].query);
        assert_first(&r, "l.txt", 1);
        str text = r.hits.p[0].text;
        size_t n = utf8_count(text);
        if (n > SEARCH_HIT_CHARS || !utf8_valid(text)) fail_msg("case %zu: %zu characters", i, n);
        if (str_starts(text, S("…")) != cases[i].starts || str_ends(text, S("…")) != cases[i].ends)
            fail_msg("case %zu: marks are wrong: " STR_FMT, i, STR_ARG(text));
        if (str_find(text, str_trim(str_z(cases[i].needle))) == SIZE_MAX)
            fail_msg("case %zu: the match is not shown: " STR_FMT, i, STR_ARG(text));
        // Where it was cut, whole fillers stand.
        str inner = cases[i].starts ? str_sub(text, 3, text.n) : text;
        if (cases[i].starts && cases[i].before > 1000 && filler.n > 2) assert_true(str_starts(inner, filler));
        if (cases[i].starts || cases[i].ends) assert_true(n > SEARCH_HIT_CHARS / 2);
    }
}

static void test_search_run__one_huge_line_gives_a_small_hit(void **state) {
    dir_fixture *f = *state;
    char *path = shared_path("realdata/text/made");
    if (!path) {
        skip();
        return;
    }
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(path);
    str include[] = {S("*.txt")};
    search_source s = {.name = S("made"), .include = include, .n_include = 1};
    search_space space = {.root = dir, .sources = &s, .n_sources = 1};
    search_corpus *c = NULL;
    assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
    arena_defer(f->a, close_corpus, c);
    close(dir);
    search_result r = ask(f, c, (search_query){.query = S("needle"), .limit = 50});
    assert_int_equal(r.hits.n, 50);
    assert_true(r.totals.matched_lines > 50000);
    assert_true(json_of(f, &r).n < 50 * (SEARCH_HIT_CHARS * 4 + 300));
    r = ask(f, c, (search_query){.query = S("needle"), .path = S("long-line-1mb.txt")});
    assert_int_equal(r.hits.n, 1);
    assert_int_equal(utf8_count(r.hits.p[0].text), SEARCH_HIT_CHARS);
}

// --- Encodings ---

static void test_search_run__encodings_are_read_or_named(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "bom.md", S("\xEF\xBB\xBFneedle first\nmore\n"));
    temp_write(f->path, "utf16le.md", S("\xFF\xFEn\0e\0e\0d\0l\0e\0 \0-N\n\0x\0\n\0"));
    temp_write(f->path, "utf16be.md", S("\xFE\xFF\0x\0\n\0n\0e\0e\0d\0l\0e"));
    temp_write(f->path, "latin1.txt",
               S("needle caf\xE9 d\xE9j\xE0 vu, tr\xE8s bient\xF4t \xE0 la fen\xEAtre\n"));
    temp_write(f->path, "broken.md", S("needle gut \xC3\xA9\xC3\xA8\xC3\xAA \xFF\n"));
    temp_write(
        f->path, "gb.txt",
        S("needle \xCD\xCB\xBF\xEE\xD5\xFE\xB2\xDF\xA3\xBA\xCA\xD5\xB5\xBD\xC9\xCC\xC6\xB7\xBA\xF3\n"));
    temp_write(f->path, "image.png", S("\x89PNG\r\n\x1A\n\0\0\0\rneedle"));
    temp_write(f->path, "paper.pdf", S("%PDF-1.7\nneedle\n"));
    buf late = buf_new(f->a, 0);
    buf_add(&late, S("needle early\n"));
    while (late.n < 70000) buf_add(&late, S("filler line\n"));
    buf_add(&late, S("\0needle late\n"));
    temp_write(f->path, "nul.txt", buf_str(&late));
    search_corpus *c = open_all(f);
    search_result r = ask(f, c, (search_query){.query = S("needle"), .limit = 50});
    assert_int_equal(r.totals.files, 7);
    assert_int_equal(r.totals.matched_lines, 8);
    bool seen_bom = false;
    for (vec_each(const search_hit, h, &r.hits)) {
        assert_true(utf8_valid(h->text));
        if (str_eq(h->path, S("bom.md"))) {
            seen_bom = true;
            assert_int_equal(h->line, 1);
            assert_text(h->text, "needle first");
        }
        if (str_eq(h->path, S("utf16le.md"))) assert_text(h->text, "needle 中");
        if (str_eq(h->path, S("utf16be.md"))) assert_int_equal(h->line, 2);
    }
    assert_true(seen_bom);
    assert_cut(&r, "binary", 1, "image.png");
    assert_cut(&r, "converter", 1, "paper.pdf");
    assert_cut(&r, "not valid UTF-8", 1, "broken.md");
    assert_cut(&r, "read as windows-1252 (assumed)", 1, "latin1.txt");
    assert_cut(&r, "read as GB18030 (assumed)", 1, "gb.txt");
    assert_false(r.totals.at_least);
    assert_first((r = ask_for(f, c, "CAFÉ"), &r), "latin1.txt", 1);
    assert_first((r = ask_for(f, c, "退款政策"), &r), "gb.txt", 1);
    // Nothing found: said all the same.
    r = ask_for(f, c, "absent");
    assert_int_equal(r.hits.n, 0);
    assert_int_equal(r.cuts.n, 5);
}

// What is no text but holds some: named with what is missing, whatever the search finds.
static void test_search_run__documents_that_need_a_converter_say_so(void **state) {
    dir_fixture *f = *state;
    static const char *const names[] = {"a.docx", "b.xlsx", "c.odt", "d.epub", "e.pptx", "f.pdf", "g.doc"};
    enum { NAMES = sizeof names / sizeof *names };
    for (size_t i = 0; i < NAMES; i++) {
        str zip = S("PK\3\4\x14\0\6\0\x08\0\0\0!\0needle"), pdf = S("%PDF-1.7\n%\xE2\xE3\xCF\xD3\nneedle\n"),
            ole = S("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0\0needle");
        temp_write(f->path, names[i], i == 5 ? pdf : i == 6 ? ole : zip);
    }
    temp_write(f->path, "h.png", S("\x89PNG\r\n\x1A\n\0\0\0\rneedle"));
    static const char *const queries[] = {"needle", "absent"};
    for (size_t q = 0; q < 2; q++) {
        search_result r = ask_for(f, open_all(f), queries[q]);
        assert_int_equal(r.totals.files, 0);
        assert_cut(&r, "converter", NAMES, "a.docx");
        assert_cut(&r, "binary", 1, "h.png");
    }
}

static void test_search_run__a_declared_encoding_overrides(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "k.txt", S("\xF0\xD2\xC9\xD7\xC5\xD4\n"));
    search_space space = whole(f);
    ((search_source *)space.sources)->encoding = S("koi8-r");
    search_corpus *c = open_space(f, &space, &search_limits_default);
    search_result r = ask_for(f, c, "привет");
    assert_first(&r, "k.txt", 1);
    assert_text(r.hits.p[0].text, "Привет");
    assert_int_equal(r.cuts.n, 0);
}

static void test_search_run__shared_odd_files_give_valid_output(void **state) {
    dir_fixture *f = *state;
    char *path = shared_path("realdata/text");
    if (!path) {
        skip();
        return;
    }
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(path);
    search_space space = whole(f);
    space.root = dir;
    search_corpus *c = NULL;
    assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
    arena_defer(f->a, close_corpus, c);
    static const char *const queries[] = {"probe",  "café", "greek word", "a",
                                          "needle", "文字", "script",     "1"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        search_result r = ask(f, c, (search_query){.query = str_z(queries[i]), .limit = 1000, .context = 3});
        str text = json_of(f, &r);
        json *v;
        dep_err err = {0};
        if (json_parse(f->a, text, 0, &v, &err) != DEP_OK) fail_msg("%s: %s", queries[i], err.msg);
        for (vec_each(const search_hit, h, &r.hits))
            assert_true(utf8_valid(h->text) && utf8_valid(h->heading));
    }
    close(dir);
}

// --- Budgets ---

// Short lines up to a size.
static str fill(dir_fixture *f, size_t n) {
    char *p = arena_alloc(f->a, n);
    for (size_t i = 0; i < n; i++) p[i] = i % 64 == 63 ? '\n' : (char)('a' + i % 7);
    return str_n(p, n);
}

static void test_search_run__only_the_head_of_a_huge_file_is_searched_and_that_is_said(void **state) {
    dir_fixture *f = *state;
    enum { HEAD = 1 << 20 };
    str head = fill(f, SEARCH_FILE_MAX + HEAD);
    memcpy((char *)head.p, "early", 5);
    temp_write(f->path, "big.txt", head);
    int fd = openat(f->dir, "big.txt", O_WRONLY | O_CLOEXEC);
    assert_int_equal(ftruncate(fd, (off_t)200 << 20), 0);
    assert_int_equal(pwrite(fd, "\nneedle\n", 8, ((off_t)200 << 20) - 8), 8);
    close(fd);
    search_corpus *c = open_all(f);
    search_result r = ask_for(f, c, "needle");
    assert_int_equal(r.hits.n, 0);
    assert_int_equal(r.totals.bytes, SEARCH_FILE_MAX);
    assert_true(r.totals.at_least);
    assert_cut(&r, "over 16 MiB: head searched", 1, "big.txt");
    assert_first((r = ask_for(f, c, "early"), &r), "big.txt", 1);
}

static void test_search_run__file_limit_holds_at_n_and_cuts_between_characters(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("one\ntwo\nthree"));
    temp_write(f->path, "long.txt", S("退款退款政策"));
    temp_write(f->path, "wide.txt",
               S("\xFF\xFE"
                 "a\0b\0"
                 "\x3D\xD8\x00\xDE"
                 "c\0d\0e\0f\0g\0"));
    static const struct {
        size_t max;
        const char *path, *query;
        bool head, found;
    } cases[] = {
        {13, "a.txt", "three", false, true},   {12, "a.txt", "three", true, false},
        {12, "a.txt", "thre", true, false},    {12, "a.txt", "two", true, true},
        {18, "long.txt", "政策", false, true}, {17, "long.txt", "政策", true, false},
        {17, "long.txt", "款政", true, true},  {16, "long.txt", "款政", true, true},
        {14, "long.txt", "款政", true, false}, {9, "wide.txt", "ab", true, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_space space = whole(f);
        space.max_file = cases[i].max;
        search_corpus *c = open_space(f, &space, &search_limits_default);
        search_result r =
            ask(f, c, (search_query){.query = str_z(cases[i].query), .path = str_z(cases[i].path)});
        const search_cut *cut = cut_of(&r, "head searched");
        if ((cut != NULL) != cases[i].head || (r.hits.n > 0) != cases[i].found)
            fail_msg("case %zu: %zu hits, %s", i, r.hits.n, cut ? "head" : "whole");
        assert_null(cut_of(&r, "assumed"));
        assert_null(cut_of(&r, "not valid"));
        assert_int_equal(r.totals.at_least, cases[i].head);
    }
}

static void test_search_run__what_exceeds_the_budget_is_named_also_without_a_hit(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", fill(f, 4096));
    temp_write(f->path, "b.txt", fill(f, 4096));
    temp_write(f->path, "c.txt", S("small\n"));
    temp_write(f->path, "d.txt", fill(f, 4096));
    search_space space = whole(f);
    space.max_bytes = 3 * 4096 + 6;
    search_corpus *c = open_space(f, &space, &search_limits_default);
    search_result r = ask_for(f, c, "absent");
    assert_int_equal(r.totals.files, 4);
    assert_false(r.totals.at_least);
    assert_int_equal(r.cuts.n, 0);
    space.max_bytes--;
    c = open_space(f, &space, &search_limits_default);
    r = ask_for(f, c, "absent");
    // A large file that does not fit does not keep later, smaller ones out.
    assert_int_equal(r.totals.files, 3);
    assert_true(r.totals.at_least);
    assert_cut(&r, "not read: budget of 12293 bytes", 1, "d.txt");
    space.max_bytes = 4096;
    c = open_space(f, &space, &search_limits_default);
    r = ask_for(f, c, "small");
    assert_int_equal(r.totals.files, 1);
    assert_cut(&r, "not read: budget of 4 KiB", 3, "b.txt");
    assert_text(cut_of(&r, "budget")->paths.p[2], "d.txt");
}

static void test_search_run__a_large_source_does_not_starve_the_next(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "big/%d.txt", i);
        temp_write(f->path, name, fill(f, 1024));
    }
    temp_write(f->path, "small/s.txt", S("needle\n"));
    str in[] = {S("big"), S("small")};
    search_source s[] = {{.name = S("Big"), .include = in, .n_include = 1},
                         {.name = S("Small"), .include = in + 1, .n_include = 1}};
    search_space space = {.sources = s, .n_sources = 2, .max_bytes = 4096};
    search_corpus *c = open_space(f, &space, &search_limits_default);
    search_result r = ask_for(f, c, "needle");
    assert_first(&r, "small/s.txt", 1);
    assert_text(r.hits.p[0].source, "Small");
    // What the small source leaves goes to the large one.
    assert_int_equal(r.totals.files, 4);
    assert_cut(&r, "budget", 5, "big/3.txt");
    // Asked of the small source alone, the other one's cuts are nobody's business.
    r = ask(f, c, (search_query){.query = S("absent"), .source = S("Small")});
    assert_int_equal(r.cuts.n, 0);
    assert_false(r.totals.at_least);
}

// --- Filters ---

static void test_search_run__source_and_path_only_narrow(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "docs/a.md", S("needle\n"));
    temp_write(f->path, "docs/deep/b.md", S("needle\n"));
    temp_write(f->path, "docs2/c.txt", S("needle\n"));
    temp_write(f->path, "other/d.md", S("needle\n"));
    str in[] = {S("docs"), S("{docs,docs2}")};
    search_source s[] = {{.name = S("One"), .include = in, .n_include = 1},
                         {.name = S("Two"), .include = in + 1, .n_include = 1}};
    search_space space = {.sources = s, .n_sources = 2};
    search_corpus *c = open_space(f, &space, &search_limits_default);
    static const struct {
        const char *source, *path;
        size_t files;
    } cases[] = {
        {"", "", 3},
        {"One", "", 2},
        {"Two", "", 3},
        {"", "docs", 2},
        {"", "docs/", 2},
        {"", "./docs", 2},
        {"", "docs/*.md", 1},
        {"", "**/*.md", 2},
        {"", "docs/a.md", 1},
        {"", ".", 3},
        {"", "**", 3},
        {"", "doc", 0},
        {"", "other", 0},
        {"", "other/d.md", 0},
        {"One", "docs2", 0},
        {"Two", "docs2", 1},
        {"", "{docs2,other}/*", 1},
        {"", "docs/deep/b.md", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_result r =
            ask(f, c,
                (search_query){
                    .query = S("needle"), .source = str_z(cases[i].source), .path = str_z(cases[i].path)});
        if (r.totals.files != cases[i].files || r.hits.n != cases[i].files)
            fail_msg("%s %s: %zu files", cases[i].source, cases[i].path, r.totals.files);
        assert_int_equal(cut_of(&r, "path filter matches no file") != NULL, cases[i].files == 0);
        if (cases[i].source[0])
            for (vec_each(const search_hit, h, &r.hits)) assert_text(h->source, cases[i].source);
    }
}

static void test_search_run__bad_questions_are_answered_with_the_reason(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    search_corpus *c = open_all(f);
    static const struct {
        const char *query, *source, *path, *says;
    } cases[] = {
        {"", "", "", "blank"},         {" \t\n", "", "", "blank"},    {"\u200B", "", "", "blank"},
        {"x", "Manuel", "", "Manual"}, {"x", "", "../a", ".."},       {"x", "", "/etc", "absolute"},
        {"x", "", "a/../../b", ".."},  {"x", "", "[", "without its"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        search_query q = {
            .query = str_z(cases[i].query), .source = str_z(cases[i].source), .path = str_z(cases[i].path)};
        search_result r = {.ignored_terms = 77};
        dep_err err = {0};
        assert_int_equal(search_run(f->a, c, &q, &r, &err), DEP_ERR_INVALID);
        assert_says(&err, cases[i].says);
        assert_int_equal(r.ignored_terms, 77);
    }
}

static void test_search_run__query_limits_hold_at_n_and_are_said_after(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    search_corpus *c = open_all(f);
    str fits = line_with(f, S(" "), SEARCH_QUERY_MAX - 6, S("needle"), 0);
    fits.n--;
    assert_int_equal(fits.n, SEARCH_QUERY_MAX);
    search_result r = ask(f, c, (search_query){.query = fits});
    assert_int_equal(r.hits.n, 1);
    assert_int_equal(r.cuts.n, 0);
    r = ask(f, c, (search_query){.query = str_fmt(f->a, "needle" STR_FMT, STR_ARG(fits))});
    assert_int_equal(r.hits.n, 1);
    assert_non_null(cut_of(&r, "query over 4096 bytes"));
    buf many = buf_new(f->a, 0);
    for (int i = 0; i < SEARCH_TERMS_MAX + 3; i++) buf_addf(&many, "w%d ", i);
    r = ask(f, c, (search_query){.query = buf_str(&many)});
    assert_int_equal(r.ignored_terms, 3);
}

static void test_search_run__lines_over_the_limit_are_counted(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("x 1\nx 2\nx 3\n"));
    search_space space = whole(f);
    search_limits limits = search_limits_default;
    for (limits.lines = 2; limits.lines <= 3; limits.lines++) {
        search_corpus *c = open_space(f, &space, &limits);
        search_result r = ask_for(f, c, "x");
        assert_int_equal(r.totals.matched_lines, 3);
        assert_int_equal(r.hits.n, limits.lines);
        const search_cut *cut = cut_of(&r, "too many matching lines");
        assert_int_equal(cut ? cut->count : 0, 3 - limits.lines);
    }
}

// Words that stand on every other line say nothing; when a query has nothing else, so many are ranked of each
// part of the text.
static void test_search_run__of_stop_words_some_lines_are_ranked(void **state) {
    dir_fixture *f = *state;
    search_space space = whole(f);
    search_limits limits = search_limits_default;
    buf b = buf_new(f->a, 0);
    limits.common = 100;
    size_t most = limits.common + COMMON_LEAST;
    for (size_t i = 0; i <= most; i++) {
        buf_add(&b, S("the page\n"));
        if (i + 1 < most) continue;
        temp_write(f->path, "a.md", buf_str(&b));
        search_corpus *c = open_space(f, &space, &limits);
        search_result r = ask(f, c, (search_query){.query = S("the"), .limit = 2 * most});
        size_t over = i + 1 - most;
        assert_int_equal(r.totals.matched_lines, i + 1);
        assert_false(r.totals.at_least);
        assert_int_equal(r.hits.n, most);
        const search_cut *cut = cut_of(&r, "too many matching lines");
        assert_int_equal(cut ? cut->count : 0, over);
        // Not so of other words.
        r = ask(f, c, (search_query){.query = S("page"), .limit = 2 * most});
        assert_int_equal(r.hits.n, i + 1);
    }
}

typedef struct {
    dir_fixture *f;
    const char *mode; // "a": it grows, "w": it is emptied first
} meddler;

// Asked between the opening and the reading: a file that changes just then.
static const char *meddle(void *p, str path, const struct stat *st) {
    meddler *m = p;
    if (S_ISDIR(st->st_mode)) return NULL;
    char name[4200];
    snprintf(name, sizeof name, "%s/" STR_FMT, m->f->path, STR_ARG(path));
    FILE *out = fopen(name, m->mode);
    assert_non_null(out);
    assert_true(fputs(m->mode[0] == 'a' ? "and\nmore\nand\nneedle\n" : "nee", out) >= 0);
    assert_int_equal(fclose(out), 0);
    return NULL;
}

static void test_search_run__a_file_that_shrinks_meanwhile_is_what_is_left(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("one needle\ntwo needle\n"));
    meddler m = {f, "w"};
    search_space space = whole(f);
    space.refuse = meddle;
    space.ctx = &m;
    search_result r = ask_for(f, open_space(f, &space, &search_limits_default), "nee");
    assert_first(&r, "a.md", 1);
    assert_text(r.hits.p[0].text, "nee");
    assert_int_equal(r.totals.bytes, 3);
}

static void test_search_run__a_file_that_grows_over_the_limit_meanwhile_is_said(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("one needle\n"));
    meddler m = {f, "a"};
    search_space space = whole(f);
    space.refuse = meddle;
    space.ctx = &m;
    // What was added is 20 bytes.
    for (space.max_file = 30; space.max_file <= 31; space.max_file++) {
        temp_write(f->path, "a.md", S("one needle\n"));
        search_result r = ask_for(f, open_space(f, &space, &search_limits_default), "needle");
        assert_int_equal(r.totals.matched_lines, space.max_file - 29);
        assert_int_equal(r.totals.at_least, space.max_file == 30);
        if (space.max_file == 30) assert_cut(&r, "over 30 bytes: head searched", 1, "a.md");
    }
}

// --- One file, many names ---

static void test_search_run__a_file_with_several_names_is_searched_once(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    temp_write(f->path, "docs/z.md", S("needle\n"));
    assert_int_equal(linkat(f->dir, "docs/z.md", f->dir, "docs/hard.md", 0), 0);
    link_to(f, "z.md", "docs/soft.md");
    search_corpus *c = open_all(f);
    search_result r = ask_for(f, c, "needle");
    assert_int_equal(r.hits.n, 1);
    assert_int_equal(r.totals.files, 1);
    assert_int_equal(r.totals.bytes, 7);
    assert_first(&r, "docs/hard.md", 1);
    // Each of its names is found by a filter.
    r = ask(f, c, (search_query){.query = S("needle"), .path = S("docs/soft.md")});
    assert_first(&r, "docs/soft.md", 1);
    r = ask(f, c, (search_query){.query = S("needle"), .path = S("docs/z*")});
    assert_first(&r, "docs/z.md", 1);
}

// A filter may admit only one of a file's names: what is to be said of the file is said all the same.
static void test_search_run__what_is_said_of_a_file_is_said_under_each_name(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "docs/a.md", S("needle one\nneedle two\n"));
    temp_write(f->path, "docs/b.txt", S("needle caf\xE9 d\xE9j\xE0"));
    assert_int_equal(linkat(f->dir, "docs/a.md", f->dir, "other.md", 0), 0);
    assert_int_equal(linkat(f->dir, "docs/b.txt", f->dir, "other.txt", 0), 0);
    search_space space = whole(f);
    space.max_file = 20;
    search_corpus *c = open_space(f, &space, &search_limits_default);
    static const char *const paths[][2] = {{"docs/a.md", "docs/b.txt"}, {"other.md", "other.txt"}};
    for (size_t i = 0; i < 2; i++) {
        search_result r = ask(f, c, (search_query){.query = S("needle"), .path = str_z(paths[i][0])});
        assert_int_equal(r.totals.files, 1);
        assert_true(r.totals.at_least);
        assert_cut(&r, "over 20 bytes: head searched", 1, paths[i][0]);
        r = ask(f, c, (search_query){.query = S("needle"), .path = str_z(paths[i][1])});
        assert_int_equal(r.totals.files, 1);
        assert_cut(&r, "(assumed)", 1, paths[i][1]);
    }
}

static const char *refuse_secret(void *ctx, str path, const struct stat *st) {
    (void)ctx;
    if (S_ISDIR(st->st_mode)) return NULL;
    return str_ends(path, S("secret.md")) ? "sensitive file" : NULL;
}

static void test_search_run__refused_files_are_named_under_every_name(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    temp_write(f->path, "docs/a.md", S("needle\n"));
    temp_write(f->path, "docs/secret.md", S("needle\n"));
    temp_write(f->path, "docs/in/secret.md", S("needle\n"));
    link_to(f, "secret.md", "docs/harmless.md");
    link_to(f, "in", "docs/way");
    search_space space = whole(f);
    space.refuse = refuse_secret;
    search_corpus *c = open_space(f, &space, &search_limits_default);
    search_result r = ask_for(f, c, "needle");
    assert_int_equal(r.hits.n, 1);
    assert_first(&r, "docs/a.md", 1);
    assert_cut(&r, "sensitive file", 4, "docs/harmless.md");
    assert_false(r.totals.at_least);
}

static void test_search_run__links_lead_nowhere_else(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    temp_write(f->path, ".deputy/memory/MEMORY.md", S("needle\n"));
    temp_write(f->path, "private/p.md", S("needle\n"));
    temp_write(f->path, "docs/a.md", S("text\n"));
    link_to(f, "../.deputy/memory/MEMORY.md", "docs/m.md");
    link_to(f, "../private/p.md", "docs/p.md");
    link_to(f, "/etc/hostname", "docs/host.md");
    search_space space = whole(f);
    str exclude = S("private/**");
    ((search_source *)space.sources)->exclude = &exclude;
    ((search_source *)space.sources)->n_exclude = 1;
    search_corpus *c = open_space(f, &space, &search_limits_default);
    search_result r = ask_for(f, c, "needle");
    assert_int_equal(r.hits.n, 0);
    assert_int_equal(r.totals.files, 1);
    assert_cut(&r, "below .deputy, which is never searched", 1, "docs/m.md");
    assert_cut(&r, "symbolic link to an excluded file", 1, "docs/p.md");
    assert_cut(&r, "absolute symbolic link", 1, "docs/host.md");
}

static int read_without_rights(dir_fixture *f) {
    if (geteuid() == 0 && (chmod(f->path, 0755) != 0 || setuid(65534) != 0)) return 2;
    search_space space = whole(f);
    search_corpus *c = NULL;
    search_query q = {.query = S("needle")};
    search_result r = {0};
    if (search_open(&space, &c, NULL) != DEP_OK || search_run(f->a, c, &q, &r, NULL) != DEP_OK) return 3;
    const search_cut *cut = cut_of(&r, "unreadable: Permission denied");
    bool ok = r.hits.n == 1 && cut && cut->count == 1 && r.totals.at_least;
    search_close(c);
    return ok ? 0 : 1;
}

static void test_search_run__an_unreadable_file_is_named(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    temp_write(f->path, "b.md", S("needle\n"));
    assert_int_equal(fchmodat(f->dir, "b.md", 0, 0), 0);
    assert_int_equal(in_child(read_without_rights, f), 0);
}

// --- Same bytes, stopping, threads ---

static void test_search_run__equal_input_gives_equal_bytes(void **state) {
    dir_fixture *f = *state;
    static const char *const names[] = {"a.md", "b/c.md", "b.md", "z/a.md", "é.md"};
    for (int set = 0; set < 2; set++) {
        for (int i = 0; i < 5; i++) {
            char name[32];
            snprintf(name, sizeof name, "%d/%s", set, names[set ? 4 - i : i]);
            temp_write(f->path, name, S("# Same heading\nthe same line\nsame same\n\nother\n"));
        }
    }
    str answers[2][2];
    for (int set = 0; set < 2; set++) {
        char sub[8];
        snprintf(sub, sizeof sub, "%d", set);
        int dir = openat(f->dir, sub, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (int run = 0; run < 2; run++) {
            search_space space = whole(f);
            space.root = dir;
            search_corpus *c = NULL;
            assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
            search_result r = ask_for(f, c, "same line");
            answers[set][run] = json_of(f, &r);
            search_close(c);
        }
        close(dir);
    }
    assert_true(str_eq(answers[0][0], answers[0][1]));
    assert_true(str_eq(answers[0][0], answers[1][0]));
    assert_true(str_eq(answers[1][0], answers[1][1]));
}

typedef struct {
    int asked, yes_after;
} stopper;

static bool says_stop(void *p) {
    stopper *s = p;
    return ++s->asked > s->yes_after;
}

// However large a file is, it is asked at least every 1 MiB, as the header says: the file is as large as one
// may be.
static void test_search_run__it_is_asked_within_a_large_file_too(void **state) {
    dir_fixture *f = *state;
    enum { MIB = 16 };
    temp_write(f->path, "big.txt", fill(f, (size_t)MIB << 20));
    stopper s = {.yes_after = 1000000};
    search_space space = whole(f);
    space.cancelled = says_stop;
    space.ctx = &s;
    search_corpus *c = open_space(f, &space, &search_limits_default);
    assert_true(s.asked >= MIB);
    s.asked = 0;
    search_result r = ask_for(f, c, "aardvark");
    assert_int_equal(r.totals.matched_lines, 0);
    // The scan, and the pass that looks for words like it.
    assert_true(s.asked >= 2 * MIB);
}

// Decoding, folding, headings, lines, scan and making of hits: wherever it is when the answer is yes, hardly
// anybody is asked after that, and nothing half-made is shown.
static void test_search_run__it_stops_wherever_it_is(void **state) {
    static const struct {
        const char *name, *piece;
        size_t least; // questions
    } kinds[] = {
        {"gb18030.md", "\xD6\xD0\xCE\xC4 needle \xCB\xD1\xCB\xF7\n", 32},
        {"longer.md", "\uFDFA\uFDFA\uFDFA\uFDFA\n", 64},
        {"marks.md", "e\u0301a\u0308 needle\n", 32},
        {"headings.md", "## needle\ntext\n", 32},
        {"headings.html", "<h2>needle</h2>\n", 32},
        {"script.html", "<script>needle ", 32},
    };
    dir_fixture *f = *state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        buf b = buf_new(f->a, 0);
        while (b.n < (size_t)2 << 20) buf_add(&b, str_z(kinds[k].piece));
        temp_write(f->path, kinds[k].name, buf_str(&b));
        stopper s = {.yes_after = 1000000};
        search_space space = whole(f);
        str only = str_z(kinds[k].name);
        search_source source = {.name = S("s"), .include = &only, .n_include = 1};
        space.sources = &source;
        space.n_sources = 1;
        space.cancelled = says_stop;
        space.ctx = &s;
        search_query q = {.query = S("needle"), .limit = 10000, .context = 100};
        search_result r = {0};
        search_corpus *c = NULL;
        assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
        assert_int_equal(search_run(f->a, c, &q, &r, NULL), DEP_OK);
        search_close(c);
        assert_false(r.cancelled);
        int all = s.asked;
        assert_true((size_t)all >= kinds[k].least);
        for (int after = 0; after < all; after += all / 12 + 1) {
            s = (stopper){.yes_after = after};
            r = (search_result){0};
            assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
            assert_int_equal(search_run(f->a, c, &q, &r, NULL), DEP_OK);
            search_close(c);
            assert_true(r.cancelled && r.totals.at_least);
            assert_true(s.asked > after && s.asked <= after + 8);
        }
    }
}

// A directory of many names, through a pattern that none of them matches.
static void test_search_run__a_large_directory_is_left_early(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 1000; i++) {
        char name[32];
        snprintf(name, sizeof name, "%04d.txt", i);
        temp_write(f->path, name, S("x\n"));
    }
    stopper s = {.yes_after = 1000000};
    search_space space = whole(f);
    space.cancelled = says_stop;
    space.ctx = &s;
    size_t count = 0;
    assert_int_equal(search_count(&space, &count, NULL), DEP_OK);
    assert_int_equal(count, 1000);
    // While it is listed, and while the names are looked at.
    assert_true(s.asked >= 2 * 1000 / 64);
    s = (stopper){.yes_after = 5};
    assert_int_equal(search_count(&space, &count, NULL), DEP_OK);
    assert_true(count == 0 && s.asked == 6);
}

static void test_search_run__a_cancelled_search_says_so(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "%03d.txt", i);
        temp_write(f->path, name, S("needle\n"));
    }
    temp_write(f->path, "big.txt", fill(f, 5 << 20));
    stopper s = {.yes_after = 1000000};
    search_space space = whole(f);
    space.cancelled = says_stop;
    space.ctx = &s;
    search_corpus *c = open_space(f, &space, &search_limits_default);
    search_result r = ask_for(f, c, "needle");
    assert_false(r.cancelled);
    assert_int_equal(r.totals.matched_lines, 200);
    // Within 64 files or 1 MiB each: walk and reading, then the scan.
    int for_open = s.asked;
    assert_true(for_open > 8);
    s = (stopper){.yes_after = 1};
    r = ask_for(f, c, "needle");
    assert_true(r.cancelled && r.totals.at_least);
    assert_int_equal(s.asked, 2);
    assert_true(r.totals.matched_lines < 200);
    for (int after = 0; after < 8; after++) {
        s = (stopper){.yes_after = after};
        c = open_space(f, &space, &search_limits_default);
        r = ask_for(f, c, "needle");
        assert_true(r.cancelled && r.totals.at_least && r.totals.matched_lines < 200);
    }
}

typedef struct {
    search_corpus *c;
    const char *query;
    str answer;
    arena *a;
} asker;

static void *ask_many(void *p) {
    asker *k = p;
    for (int i = 0; i < 20; i++) {
        search_query q = {.query = str_z(k->query)};
        search_result r = {0};
        arena_reset(k->a);
        if (search_run(k->a, k->c, &q, &r, NULL) != DEP_OK) return NULL;
        buf b = buf_new(k->a, 0);
        search_json(&b, &r);
        k->answer = buf_str(&b);
    }
    return NULL;
}

static void test_search_run__many_threads_may_ask_one_corpus(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("# Refunds\nrefund policy\npolicy\n退款政策\n"));
    temp_write(f->path, "b.md", S("refund\nthe policy of refunds\n"));
    search_corpus *c = open_all(f);
    static const char *const queries[] = {"refund policy", "退款", "policy", "refund policy"};
    asker k[4];
    pthread_t t[4];
    for (int i = 0; i < 4; i++) {
        k[i] = (asker){.c = c, .query = queries[i], .a = arena_new()};
        assert_int_equal(pthread_create(&t[i], NULL, ask_many, &k[i]), 0);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_true(k[0].answer.n > 0 && str_eq(k[0].answer, k[3].answer));
    for (int i = 0; i < 4; i++) arena_free(k[i].a);
}

// A text full of accents is kept whole; each line of its context is found without going through all that is
// before it.
static void test_search_run__many_hits_with_context_take_no_more_than_few(void **state) {
    dir_fixture *f = *state;
    buf b = buf_new(f->a, 0);
    enum { LINES = 600000 };
    for (int i = 0; i < LINES; i++) buf_add(&b, S("e\u0302\u0301 u\u031B o\u031B\u0309\n"));
    temp_write(f->path, "a.txt", buf_str(&b));
    search_query q = {.query = S("ế"), .limit = 10000, .context = 100};
    search_result r = ask(f, open_all(f), q);
    assert_int_equal(r.totals.matched_lines, LINES);
    assert_int_equal(r.hits.n, 10000);
}

static void test_search_run__the_answer_outlives_the_corpus(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "docs/a.md", S("# Top\nneedle\nafter\n"));
    temp_write(f->path, "docs/b.bin", S("\0\0\0"));
    search_space space = whole(f);
    search_corpus *c = NULL;
    assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
    search_result r = ask(f, c, (search_query){.query = S("needle"), .context = 1});
    search_close(c);
    search_close(NULL);
    buf want = buf_new(f->a, 0);
    buf_add(&want,
            S("{\"hits\":[{\"source\":\"Manual\",\"path\":\"docs/a.md\",\"line\":2,\"text\":\"needle\","
              "\"heading\":\"Top\",\"score\":"));
    jw w = jw_new(&want);
    jw_num(&w, r.hits.p[0].score);
    buf_add(
        &want,
        S(",\"before\":[\"# Top\"],\"after\":[\"after\"]}],"
          "\"totals\":{\"files\":1,\"bytes\":19,\"matched_lines\":1,\"expanded_lines\":0,\"at_least\":false},"
          "\"cuts\":[{\"reason\":\"binary\",\"count\":1,\"paths\":[\"docs/b.bin\"]}]}"));
    assert_text(json_of(f, &r), buf_str(&want).p);
}

static void test_search_run__hostile_queries_are_only_queries(void **state) {
    dir_fixture *f = *state;
    char *path = shared_path("realdata/text/blns/blns.json");
    if (!path) {
        skip();
        return;
    }
    str text = read_all(path);
    free(path);
    json *list;
    assert_int_equal(json_parse(f->a, text, 0, &list, NULL), DEP_OK);
    temp_write(f->path, "blns.json", text);
    search_corpus *c = open_all(f);
    size_t found = 0;
    for (const json *v = list->child; v; v = v->next) {
        search_query q = {.query = v->s};
        search_result r = {0};
        dep_err err = {0};
        dep_status status = search_run(f->a, c, &q, &r, &err);
        if (status != DEP_OK) assert_says(&err, "blank");
        assert_true(utf8_valid(json_of(f, &r)));
        found += r.hits.n > 0;
    }
    // Strings that JSON writes as they are, or nearly so, are found where they stand.
    assert_true(found * 10 > list->count * 9);
    free((char *)text.p);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_run__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_script_matches_folded_text),
        TEST(totals_count_lines_with_a_term),
        TEST(a_line_matches_when_its_folded_text_contains_a_term),
        TEST(a_hit_carries_place_line_and_trail),
        TEST(long_lines_are_cut_around_the_match),
        TEST(one_huge_line_gives_a_small_hit),
        TEST(encodings_are_read_or_named),
        TEST(documents_that_need_a_converter_say_so),
        TEST(a_declared_encoding_overrides),
        TEST(shared_odd_files_give_valid_output),
        TEST(only_the_head_of_a_huge_file_is_searched_and_that_is_said),
        TEST(file_limit_holds_at_n_and_cuts_between_characters),
        TEST(what_exceeds_the_budget_is_named_also_without_a_hit),
        TEST(a_large_source_does_not_starve_the_next),
        TEST(source_and_path_only_narrow),
        TEST(bad_questions_are_answered_with_the_reason),
        TEST(query_limits_hold_at_n_and_are_said_after),
        TEST(lines_over_the_limit_are_counted),
        TEST(of_stop_words_some_lines_are_ranked),
        TEST(a_file_that_shrinks_meanwhile_is_what_is_left),
        TEST(a_file_that_grows_over_the_limit_meanwhile_is_said),
        TEST(a_file_with_several_names_is_searched_once),
        TEST(what_is_said_of_a_file_is_said_under_each_name),
        TEST(refused_files_are_named_under_every_name),
        TEST(links_lead_nowhere_else),
        TEST(an_unreadable_file_is_named),
        TEST(equal_input_gives_equal_bytes),
        TEST(it_is_asked_within_a_large_file_too),
        TEST(it_stops_wherever_it_is),
        TEST(a_large_directory_is_left_early),
        TEST(a_cancelled_search_says_so),
        TEST(many_threads_may_ask_one_corpus),
        TEST(many_hits_with_context_take_no_more_than_few),
        TEST(the_answer_outlives_the_corpus),
        TEST(hostile_queries_are_only_queries),
    };
    return cmocka_run_group_tests_name("search_run", tests, NULL, NULL);
}

// Misspelt words: what one edit is, which words are taken for misspelt, and what they are taken for.
#include "search/search_int.h"
#include "support/dir_fixture.h"
#include <stdio.h>

static void close_corpus(void *p) {
    search_close(p);
}

static search_result ask(dir_fixture *f, const char *query) {
    str include = S("**/*");
    search_source s = {.name = S("Manual"), .include = &include, .n_include = 1};
    search_space space = {.root = f->dir, .sources = &s, .n_sources = 1};
    search_corpus *c = NULL;
    search_result r = {0};
    dep_err err = {0};
    search_query q = {.query = str_z(query), .limit = 50};
    if (search_open(&space, &c, &err) != DEP_OK) fail_msg("%s", err.msg);
    arena_defer(f->a, close_corpus, c);
    if (search_run(f->a, c, &q, &r, &err) != DEP_OK) fail_msg("%s", err.msg);
    return r;
}

// The text of the hits, "one|two".
static const char *found(dir_fixture *f, const char *query) {
    search_result r = ask(f, query);
    buf b = buf_new(f->a, 0);
    for (vec_each(const search_hit, h, &r.hits)) buf_addf(&b, "%s" STR_FMT, b.n ? "|" : "", STR_ARG(h->text));
    return buf_str(&b).p ? buf_str(&b).p : "";
}

static void assert_found(dir_fixture *f, const char *query, const char *want) {
    const char *got = found(f, query);
    if (strcmp(got, want) != 0) fail_msg("%s: \"%s\", not \"%s\"", query, got, want);
}

static void test_search_near__one_edit_is_one_letter_or_two_swapped(void **state) {
    (void)state;
    static const struct {
        const char *a, *b;
        bool near;
    } cases[] = {
        {"parcel", "parcels", true},  {"parcel", "pacel", true},   {"parcel", "barcel", true},
        {"parcel", "pracel", true},   {"parcel", "parcle", true},  {"parcel", "aprcel", true},
        {"parcel", "parcel", false},  {"parcel", "prcl", false},   {"parcel", "praecl", false},
        {"parcel", "carpel", false},  {"parcel", "", false},       {"a", "", true},
        {"посылка", "посылак", true}, {"посылка", "посыла", true}, {"épeler", "epeler", true},
        {"aab", "aba", true},         {"aaab", "baaa", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str a = str_z(cases[i].a), b = str_z(cases[i].b);
        if (near_is_one_edit(a, b) != cases[i].near || near_is_one_edit(b, a) != cases[i].near)
            fail_msg("%s, %s", cases[i].a, cases[i].b);
    }
}

static void test_search_near__a_misspelt_word_finds_what_was_meant(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("the carrier brings parcels\n\nпосылка пришла\n\nUmzüge kosten\n"));
    static const char *const queries[] = {"carier",  "carrrier", "carxier", "xarrier", "acrrier", "carreir",
                                          "carriex", "arrier",   "carrie",  "crarier", "carirer"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++)
        assert_found(f, queries[i], "the carrier brings parcels");
    assert_found(f, "псоылка", "посылка пришла");
    assert_found(f, "Umzugee", "");
    assert_found(f, "Umzuge", "Umzüge kosten");
    // Two edits are too many.
    assert_found(f, "crairer", "");
    assert_found(f, "carer", "");
}

static void test_search_near__such_lines_are_expanded_ones(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("the carrier\n\nthe carriers\n\nthe label\n"));
    search_result r = ask(f, "carreir label");
    assert_int_equal(r.totals.matched_lines, 1);
    assert_int_equal(r.totals.expanded_lines, 2);
    assert_int_equal(r.hits.n, 3);
}

static void test_search_near__the_word_itself_comes_first(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("the parcol\n"));
    temp_write(f->path, "b.md", S("the parcel\n\nparcel one\n\nparcel two\n"));
    search_result r = ask(f, "parcol");
    assert_int_equal(r.hits.n, 4);
    assert_text(r.hits.p[0].path, "a.md");
}

static void test_search_near__a_word_on_three_lines_is_not_misspelt(void **state) {
    dir_fixture *f = *state;
    buf b = buf_new(f->a, 0);
    for (int i = 0; i < 9; i++) buf_add(&b, S("parcel\n"));
    for (int i = 0; i < NEAR_BELOW - 1; i++) buf_add(&b, S("parcol\n"));
    temp_write(f->path, "a.txt", buf_str(&b));
    assert_int_equal(ask(f, "parcol").totals.expanded_lines, 9);
    buf_add(&b, S("parcol\n"));
    temp_write(f->path, "a.txt", buf_str(&b));
    assert_int_equal(ask(f, "parcol").totals.expanded_lines, 0);
    // What is found no oftener than the word itself is no correction.
    temp_write(f->path, "a.txt", S("parcol\nparcol\nparcel\nparcel\n"));
    assert_int_equal(ask(f, "parcol").totals.expanded_lines, 0);
}

// It may be what was meant, cut short: what is near it must be found oftener than that.
static void test_search_near__a_word_that_others_begin_with_may_be_misspelt(void **state) {
    dir_fixture *f = *state;
    buf b = buf_new(f->a, 0);
    for (int i = 0; i < 5; i++) buf_add(&b, S("install\nIntAllocator\n"));
    temp_write(f->path, "a.txt", buf_str(&b));
    assert_int_equal(ask(f, "intall").totals.expanded_lines, 0);
    buf_add(&b, S("install\n"));
    temp_write(f->path, "a.txt", buf_str(&b));
    assert_int_equal(ask(f, "intall").totals.matched_lines, 5);
    assert_int_equal(ask(f, "intall").totals.expanded_lines, 6);
}

static void test_search_near__short_words_numbers_and_runs_without_blanks_are_left_alone(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("abk\n\nabkd\n\nc27021 x27021y\n\n退款政策期\n\nversion2\n"));
    assert_found(f, "abx", ""); // NEAR_CHARS_MIN - 1
    assert_found(f, "abxd", "abkd");
    assert_found(f, "c27022", "");
    assert_found(f, "versoin", "");
    assert_found(f, "退", "退款政策期");
    assert_found(f, "政退", "");
}

static void test_search_near__long_words_are_left_alone(void **state) {
    dir_fixture *f = *state;
    char line[NEAR_CHARS_MAX + 3], query[NEAR_CHARS_MAX + 2];
    for (int n = NEAR_CHARS_MAX; n <= NEAR_CHARS_MAX + 1; n++) {
        memset(line, 'k', sizeof line);
        snprintf(line + n, sizeof line - (size_t)n, "\n");
        temp_write(f->path, "a.txt", str_z(line));
        snprintf(query, sizeof query, "%.*sx", n - 1, line);
        assert_int_equal(ask(f, query).hits.n, n == NEAR_CHARS_MAX);
    }
}

static void test_search_near__so_many_words_of_a_query_are_looked_at(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("alpha\nalpha\nalpha\nbravo\ncharlie\ndelta\nuniform\n"));
    assert_int_equal(NEAR_TERMS_MAX, 4);
    assert_int_equal(ask(f, "alphx bravx charlix deltx uniforx").hits.n, 6);
    assert_int_equal(ask(f, "alpha bravx charlix deltx uniforx").hits.n, 7);
}

// Two files have the commonest, the others follow by how often they are found, then by bytes.
static void test_search_near__the_commonest_words_are_taken(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("parcal\nparcbl\nparccl\nparcdl\nparcdl\n"));
    assert_int_equal(NEAR_WORDS_MAX, 3);
    const char *got = found(f, "parcxl");
    assert_null(strstr(got, "parccl"));
    assert_non_null(strstr(got, "parcal"));
    assert_non_null(strstr(got, "parcbl"));
    assert_non_null(strstr(got, "parcdl"));
    // A twentieth of the first one's occurrences, and less than that.
    for (int n = NEAR_SHARE * 2 - 1; n <= NEAR_SHARE * 2; n++) {
        buf b = buf_new(f->a, 0);
        for (int i = 0; i < n; i++) buf_add(&b, S("parcel\n"));
        buf_add(&b, S("parcal\n"));
        temp_write(f->path, "a.txt", buf_str(&b));
        assert_int_equal(ask(f, "parcxl").totals.expanded_lines, n == NEAR_SHARE * 2 ? n : n + 1);
    }
}

static void test_search_near__a_misspelt_stop_word_stands_for_nothing(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("which which which\n\nwhich label\n\nwhics\n"));
    assert_found(f, "whcih", "");
    assert_found(f, "whcih label", "which label");
    // Nor is one added beside a commoner word.
    temp_write(f->path, "a.md", S("whichb whichb\n\nwhich\n"));
    assert_found(f, "whichz", "whichb whichb");
}

static bool stop(void *ctx) {
    return *(bool *)ctx;
}

// The word around each place is looked at; without blanks all of the line is one. Sequences of letters,
// which nobody breaks into words, are such lines.
static void test_search_near__a_line_without_blanks_is_gone_through_once(void **state) {
    dir_fixture *f = *state;
    static const struct {
        const char *unit, *query;
    } cases[] = {{"д", "ддддде"}, {"a", "aaaaab aaaaa"}, {"ACGT", "acgta gtacg"}, {"é", "éééèéé"}};
    enum { SIZE = 4 << 20 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text = arena_alloc(f->a, SIZE);
        size_t n = strlen(cases[i].unit);
        for (size_t k = 0; k < SIZE; k++) text[k] = cases[i].unit[k % n];
        temp_write(f->path, "a.txt", str_n(text, SIZE));
        search_result r = ask(f, cases[i].query);
        assert_int_equal(r.totals.files, 1);
        assert_true(r.totals.matched_lines <= 1 && r.totals.expanded_lines == 0);
    }
}

static void test_search_near__it_can_be_cancelled(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("parcel\n"));
    str include = S("**/*");
    bool cancelled = false;
    search_source s = {.name = S("Manual"), .include = &include, .n_include = 1};
    search_space space = {
        .root = f->dir, .sources = &s, .n_sources = 1, .cancelled = stop, .ctx = &cancelled};
    search_corpus *c = NULL;
    assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
    arena_defer(f->a, close_corpus, c);
    selected_file *files = NEW_N(f->a, selected_file, 100);
    for (size_t i = 0; i < 100; i++)
        files[i] = (selected_file){.file = &c->files[0], .name = &c->files[0].names[0]};
    term_list terms = {0};
    term_lines nowhere = {0};
    scan_result scan = {.lines_of = &nowhere};
    terms_parse(f->a, S("parcxl"), &terms);
    cancelled = true;
    stop_sign asks = {.ask = stop, .ctx = &cancelled}, again = asks;
    crew *crew = crew_new(f->a, NULL, NULL, 1, &asks);
    bool added = true;
    assert_int_equal(near_add(f->a, crew, files, 100, c, &scan, &terms, &added, NULL), DEP_OK);
    assert_true(crew_stopped(crew) && !added);
    assert_int_equal(terms.n, 1);
    cancelled = false;
    crew = crew_new(f->a, NULL, NULL, 1, &again);
    assert_int_equal(near_add(f->a, crew, files, 100, c, &scan, &terms, &added, NULL), DEP_OK);
    assert_true(added);
    assert_int_equal(terms.n, 2);
    assert_int_equal(terms.asked, 1);
    assert_int_equal(terms.p[1].as, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_near__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(one_edit_is_one_letter_or_two_swapped),
        TEST(a_misspelt_word_finds_what_was_meant),
        TEST(such_lines_are_expanded_ones),
        TEST(the_word_itself_comes_first),
        TEST(a_word_on_three_lines_is_not_misspelt),
        TEST(a_word_that_others_begin_with_may_be_misspelt),
        TEST(short_words_numbers_and_runs_without_blanks_are_left_alone),
        TEST(long_words_are_left_alone),
        TEST(so_many_words_of_a_query_are_looked_at),
        TEST(the_commonest_words_are_taken),
        TEST(a_misspelt_stop_word_stands_for_nothing),
        TEST(it_can_be_cancelled),
        TEST(a_line_without_blanks_is_gone_through_once),
    };
    return cmocka_run_group_tests_name("search_near", tests, NULL, NULL);
}

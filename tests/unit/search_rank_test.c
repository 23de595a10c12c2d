// The order of hits: what beats what, spread over sections, ties, and that the order does not depend on the
// limit.
#include "search/search_int.h"
#include "support/dir_fixture.h"
#include <stdio.h>

static void close_corpus(void *p) {
    search_close(p);
}

static search_result ask(dir_fixture *f, const char *query, size_t limit) {
    str include = S("**/*");
    search_source s = {.name = S("Manual"), .include = &include, .n_include = 1};
    search_space space = {.root = f->dir, .sources = &s, .n_sources = 1};
    search_corpus *c = NULL;
    search_result r = {0};
    dep_err err = {0};
    search_query q = {.query = str_z(query), .limit = limit};
    if (search_open(&space, &c, &err) != DEP_OK) fail_msg("%s", err.msg);
    arena_defer(f->a, close_corpus, c);
    if (search_run(f->a, c, &q, &r, &err) != DEP_OK) fail_msg("%s", err.msg);
    return r;
}

// "a.md:1 b.md:7"
static const char *order(dir_fixture *f, const char *query, size_t limit) {
    search_result r = ask(f, query, limit);
    buf b = buf_new(f->a, 0);
    for (vec_each(const search_hit, h, &r.hits))
        buf_addf(&b, "%s" STR_FMT ":%u", b.n ? " " : "", STR_ARG(h->path), h->line);
    return buf_str(&b).p;
}

static void assert_order(dir_fixture *f, const char *query, const char *want) {
    const char *got = order(f, query, 0);
    if (strcmp(got, want) != 0) fail_msg("%s: \"%s\", not \"%s\"", query, got, want);
}

// Lines of no interest, so that rarity has something to count.
static void add_filler(dir_fixture *f) {
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "zz/%02d.txt", i);
        temp_write(f->path, name, S("common words of every page\ncommon things\n"));
    }
}

static void test_search_rank__all_words_once_beat_one_word_often(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("refund refund refund refund refund\n"));
    temp_write(f->path, "b.txt", S("a refund is paid within seven days\n"));
    assert_order(f, "refund paid seven days", "b.txt:1 a.txt:1");
}

static void test_search_rank__rare_words_beat_common_ones(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "b.txt", S("the quokka\n"));
    search_result r = ask(f, "common quokka", 2);
    assert_text(r.hits.p[0].path, "b.txt");
    assert_int_equal(r.totals.matched_lines, 41);
}

static void test_search_rank__a_whole_word_beats_a_part(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("start here\n"));
    temp_write(f->path, "b.txt", S("artful one\n"));
    temp_write(f->path, "c.txt", S("art of one\n"));
    assert_order(f, "art", "c.txt:1 b.txt:1 a.txt:1");
    // Of two words, one of which is only a part.
    temp_write(f->path, "a.txt", S("start the engine\n"));
    temp_write(f->path, "b.txt", S("the art of engine\n"));
    search_result r = ask(f, "art engine", 10);
    assert_text(r.hits.p[0].path, "b.txt");
}

static void test_search_rank__a_number_is_no_part_of_another_one(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("from 8.5.7 on\n"));
    temp_write(f->path, "b.txt", S("from 5.7.1 on\n"));
    temp_write(f->path, "c.txt", S("since 5.7. On\n"));
    assert_order(f, "5.7", "c.txt:1 b.txt:1 a.txt:1");
    assert_order(f, "5", "b.txt:1 c.txt:1 a.txt:1");
}

static void test_search_rank__names_of_languages_keep_their_signs(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt", S("music in c\n"));
    temp_write(f->path, "b.txt", S("written in C#\n"));
    temp_write(f->path, "c.txt", S("written in C++17\n"));
    assert_order(f, "c#", "b.txt:1");
    assert_order(f, "C++", "c.txt:1");
}

static void test_search_rank__headings_speak_for_what_is_below(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.md",
               S("# Refunds\n\npaid within seven days\n\n# Delivery\n\npaid within two days\n"));
    assert_string_equal(order(f, "refunds paid", 3), "a.md:1 a.md:3 a.md:7");
    search_result r = ask(f, "delivery within", 2);
    assert_int_equal(r.hits.p[0].line, 5);
    assert_int_equal(r.hits.p[1].line, 7);
    assert_text(r.hits.p[1].heading, "Delivery");
}

static void test_search_rank__headings_further_up_count(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.md", S("# Furniture\n\n## Transport\n\nfee one\n\n## Assembly\n\nfee two\n"));
    temp_write(f->path, "b.md", S("# Garden\n\n## Transport\n\nfee three\n\n## Care\n\nfee four\n"));
    search_result r = ask(f, "fee furniture", 10);
    assert_text(r.hits.p[0].path, "a.md");
    // What the title says holds for all below it: the section of the right document beats the same one
    // elsewhere.
    r = ask(f, "garden transport fee", 10);
    assert_text(r.hits.p[0].path, "b.md");
    assert_text(r.hits.p[0].heading, "Garden");
    // The title of front matter is one.
    temp_write(f->path, "c.md", S("---\ntitle: Workshop\n---\n\n## Transport\n\nfee five\n"));
    r = ask(f, "workshop fee", 2);
    assert_int_equal(r.hits.p[0].line, 7);
    assert_text(r.hits.p[0].heading, "Workshop > Transport");
    assert_int_equal(r.hits.p[1].line, 2);
}

static void test_search_rank__the_rest_of_the_file_counts_a_little(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.md", S("# One\nletter\n\n# Two\ncarrier\n"));
    temp_write(f->path, "b.md", S("# One\nparcel\n\n# Two\ncarrier\n"));
    search_result r = ask(f, "carrier parcel", 10);
    assert_text(r.hits.p[0].path, "b.md");
    assert_text(r.hits.p[1].path, "b.md");
    assert_text(r.hits.p[2].path, "a.md");
}

static void test_search_rank__words_within_links_count_less(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.txt", S("see [the parcel](x) now\n"));
    temp_write(f->path, "b.txt", S("see the parcel (x) [n]\n"));
    temp_write(f->path, "c.txt", S("see [the parcel][xy] xx\n"));
    assert_order(f, "parcel", "b.txt:1 a.txt:1 c.txt:1");
    // A bracket that is no link.
    temp_write(f->path, "a.txt", S("see [the parcel] (x) n\n"));
    assert_order(f, "parcel", "a.txt:1 b.txt:1 c.txt:1");
}

static void test_search_rank__neighbours_in_the_query_are_better_as_neighbours(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.txt", S("index of the drop and use\n"));
    temp_write(f->path, "b.txt", S("use of the drop index and\n"));
    temp_write(f->path, "c.txt", S("drop and use of the index\n"));
    assert_order(f, "drop index", "b.txt:1 a.txt:1 c.txt:1");
}

// "清订" is only where two words meet.
static void test_search_rank__a_pair_across_two_words_says_no_more_than_they_do(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 30; i++) {
        char name[32];
        snprintf(name, sizeof name, "zz/%02d.md", i);
        temp_write(f->path, name, i % 3 ? S("清单在此\n") : S("订货在此\n"));
    }
    temp_write(f->path, "a.md", S("单订之外另有他事\n"));
    temp_write(f->path, "b.md", S("订货之前先看清单\n"));
    assert_string_equal(order(f, "清单订货", 1), "b.md:1");
}

static void test_search_rank__pairs_that_ask_say_little(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.md", S("如何到达\n"));
    temp_write(f->path, "b.md", S("退款在此\n"));
    temp_write(f->path, "c.md", S("退款在此\n"));
    assert_string_equal(order(f, "退款", 1), "b.md:1");
    assert_string_equal(order(f, "如何退款", 1), "b.md:1");
    assert_string_equal(order(f, "如何", 1), "a.md:1");
}

static void test_search_rank__the_rest_of_the_section_counts(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    temp_write(f->path, "a.md", S("# One\ncarrier\nparcel\n"));
    temp_write(f->path, "b.md", S("# Two\ncarrier\nletter\n"));
    const char *got = order(f, "parcel carrier", 3);
    assert_string_equal(got, "a.md:3 a.md:2 b.md:2");
}

static void test_search_rank__the_path_counts(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "x/other.md", S("seven days\n"));
    temp_write(f->path, "x/refunds.md", S("seven days\n"));
    search_result r = ask(f, "refund days", 10);
    assert_text(r.hits.p[0].path, "x/refunds.md");
}

static void test_search_rank__short_lines_beat_long_ones(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.txt",
               S("among many other things that are said here there is a refund, and then much more\n"));
    temp_write(f->path, "b.txt", S("the refund\n"));
    assert_order(f, "refund", "b.txt:1 a.txt:1");
}

static void test_search_rank__hits_spread_over_sections(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("# A\nrefund\nrefund\nrefund\nrefund\n"));
    temp_write(f->path, "b.md", S("# B\nrefund\n"));
    temp_write(f->path, "c.md", S("# C\nrefund\n"));
    const char *got = order(f, "refund", 3);
    assert_string_equal(got, "a.md:2 b.md:2 c.md:2");
    // A file without headings is not held back for good: what is far better still comes first.
    temp_write(f->path, "a.md", S("refund policy\nrefund policy\nrefund policy\n"));
    got = order(f, "refund policy", 2);
    assert_string_equal(got, "a.md:1 a.md:2");
}

static void test_search_rank__ties_go_by_source_path_and_line(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a/x.txt", S("refund\nrefund\n"));
    temp_write(f->path, "b/x.txt", S("refund\nrefund\n"));
    assert_order(f, "refund", "a/x.txt:1 b/x.txt:1 a/x.txt:2 b/x.txt:2");
    str include[] = {S("b"), S("a")};
    search_source s[] = {{.name = S("B"), .include = include, .n_include = 1},
                         {.name = S("A"), .include = include + 1, .n_include = 1}};
    search_space space = {.root = f->dir, .sources = s, .n_sources = 2};
    search_corpus *c = NULL;
    search_result r = {0};
    search_query q = {.query = S("refund")};
    assert_int_equal(search_open(&space, &c, NULL), DEP_OK);
    arena_defer(f->a, close_corpus, c);
    assert_int_equal(search_run(f->a, c, &q, &r, NULL), DEP_OK);
    assert_text(r.hits.p[0].path, "b/x.txt");
    assert_text(r.hits.p[1].path, "a/x.txt");
}

// The heaps that choose are only a short cut: the first hits are the same whatever the limit.
static void test_search_rank__a_smaller_limit_is_a_prefix(void **state) {
    dir_fixture *f = *state;
    static const char *const words[] = {"refund", "policy", "days", "other", "paid", "seven"};
    uint32_t seed = 3;
    for (int file = 0; file < 12; file++) {
        buf b = buf_new(f->a, 0);
        for (int line = 0; line < 60; line++) {
            seed = seed * 1664525u + 1013904223u;
            if (seed >> 28 == 0) buf_add(&b, S("# "));
            for (uint32_t k = 0; k < 1 + (seed >> 20) % 4; k++) {
                seed = seed * 1664525u + 1013904223u;
                buf_addf(&b, "%s ", words[(seed >> 16) % 6]);
            }
            buf_addc(&b, '\n');
        }
        char name[32];
        snprintf(name, sizeof name, "%02d.md", file);
        temp_write(f->path, name, buf_str(&b));
    }
    static const char *const queries[] = {"refund", "refund policy", "seven days paid",
                                          "other refund policy days"};
    for (size_t q = 0; q < sizeof queries / sizeof *queries; q++) {
        search_result all = ask(f, queries[q], 10000);
        assert_int_equal(all.hits.n, all.totals.matched_lines);
        for (size_t i = 1; i < all.hits.n; i++) assert_true(all.hits.p[i - 1].score >= all.hits.p[i].score);
        static const size_t limits[] = {1, 2, 3, 10, 50, 120, 500};
        for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
            search_result r = ask(f, queries[q], limits[k]);
            assert_int_equal(r.hits.n, limits[k] < all.hits.n ? limits[k] : all.hits.n);
            for (size_t i = 0; i < r.hits.n; i++) {
                bool same =
                    str_eq(r.hits.p[i].path, all.hits.p[i].path) && r.hits.p[i].line == all.hits.p[i].line;
                if (!same) fail_msg("%s, limit %zu: hit %zu differs", queries[q], limits[k], i);
            }
        }
    }
}

static void test_search_rank__the_limit_defaults_to_ten(void **state) {
    dir_fixture *f = *state;
    add_filler(f);
    assert_int_equal(ask(f, "common", 0).hits.n, SEARCH_LIMIT_DEFAULT);
    assert_int_equal(ask(f, "common", 1).hits.n, 1);
    assert_int_equal(ask(f, "common", SEARCH_LIMIT_MAX).hits.n, 40);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_rank__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_words_once_beat_one_word_often),
        TEST(rare_words_beat_common_ones),
        TEST(a_whole_word_beats_a_part),
        TEST(a_number_is_no_part_of_another_one),
        TEST(names_of_languages_keep_their_signs),
        TEST(headings_speak_for_what_is_below),
        TEST(headings_further_up_count),
        TEST(the_rest_of_the_file_counts_a_little),
        TEST(words_within_links_count_less),
        TEST(neighbours_in_the_query_are_better_as_neighbours),
        TEST(a_pair_across_two_words_says_no_more_than_they_do),
        TEST(pairs_that_ask_say_little),
        TEST(the_rest_of_the_section_counts),
        TEST(the_path_counts),
        TEST(short_lines_beat_long_ones),
        TEST(hits_spread_over_sections),
        TEST(ties_go_by_source_path_and_line),
        TEST(a_smaller_limit_is_a_prefix),
        TEST(the_limit_defaults_to_ten),
    };
    return cmocka_run_group_tests_name("search_rank", tests, NULL, NULL);
}

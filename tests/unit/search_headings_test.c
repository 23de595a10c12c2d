// The headings of each form of document: which lines are headings, how they nest, what is only code, and what
// is shown of them.
#include "search/search_int.h"
#include "support/support.h"
#include <deputy/buf.h>
#include <deputy/utf8.h>
#include <stdlib.h>

static int setup(void **state) {
    *state = arena_new();
    return 0;
}

static int teardown(void **state) {
    arena_free(*state);
    return 0;
}

// "1:Title@first-last" for each, a blank between; the level is that of the hierarchy, not of the marks.
static const char *outline(arena *a, const char *path, const char *text) {
    heading_list list = {0};
    headings_find(a, str_z(path), str_z(text), NULL, &list);
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < list.n; i++) {
        const heading *h = &list.p[i];
        size_t depth = 1;
        for (uint32_t up = h->parent; up; up = list.p[up - 1].parent) depth++;
        if (i) buf_addc(&b, ' ');
        str title = heading_title(a, str_sub(str_z(text), h->at, (size_t)h->at + h->n), h->html);
        buf_addf(&b, "%zu:" STR_FMT "@%u", depth, STR_ARG(title), h->first);
        if (h->last != h->first) buf_addf(&b, "-%u", h->last);
    }
    return buf_str(&b).p;
}

typedef struct {
    const char *path, *text, *want;
} outline_case;

static void check(arena *a, const outline_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *got = outline(a, cases[i].path, cases[i].text);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s, %s: \"%s\", not \"%s\"", cases[i].path, cases[i].text, got, cases[i].want);
    }
}

#define CHECK(a, cases) check((a), (cases), sizeof(cases) / sizeof *(cases))

static void test_search_headings__markdown(void **state) {
    static const outline_case cases[] = {
        {"a.md", "# A\n\n## B\ntext\n### C\n## D\n# E\n", "1:A@0 2:B@2 3:C@4 2:D@5 1:E@6"},
        {"a.md", "### Deep first\n# Top\n#### Skips\n", "1:Deep_first@0 1:Top@1 2:Skips@2"},
        {"a.md", "#no\n#\n####### seven\n    # code\n   # yes\n\t# code\n", "1:@1 1:yes@4"},
        {"a.md", "# A #\n# B ##  \n# C#\n# D {#anchor}\n#\tE\r\n", "1:A@0 1:B@1 1:C#@2 1:D@3 1:E@4"},
        {"a.md", "A\n===\n\nB\n---\n", "1:A@0-1 2:B@3-4"},
        {"a.md", "1. Scope\n=====\n", "1:1._Scope@0-1"},
        {"a.md", "two lines\nof text\n---\n", ""},
        {"a.md", "- item\n---\n\n> quote\n---\n\n| a |\n---\n\n---\n\n***\n===\n", "1:***@11-12"},
        {"a.md", "# A\n---\n", "1:A@0"},
        {"a.md", "```sh\n# no\n```\n# A\n~~~~\n~~~\n# no\n~~~~\n# B\n", "1:A@3 1:B@8"},
        {"a.md", "- x\n\n  ```\n  # no\n  ```\n\n# A\n", "1:A@6"},
        {"a.md", "```not`fence\n# A\n", "1:A@1"},
        {"a.md", "```\nnever closed\n# no\n", ""},
        {"a.md", "<!-- # no\n# no\n-->\n# A\n<!-- one -->\n# B\n", "1:A@3 1:B@5"},
        {"a.md", "---\ntitle: x\n# comment\n---\n# A\n", "1:x@1 1:A@4"},
        {"a.md", "---\nid: 1\ntitle: 'X y'\n---\n## A\n", "1:X_y@2 2:A@4"},
        {"a.md", "+++\ntitle = \"X\"\ntitle = \"Y\"\n+++\n## A\n", "1:X@1 2:A@4"},
        {"a.md", "---\ntitle:\ntitles: x\n title: x\n---\n# A\n", "1:A@5"},
        {"a.md", "---\ntitle: not closed\n", ""},
        {"a.md", "---\ntitle: \"\n---\ntext\n", "1:\"@1"},
        {"a.md", "+++\n# no\n+++\n# A\n", "1:A@3"},
        {"a.md", "---\n# A\n", "1:A@1"},
        {"a.md", "<h2 align=\"center\">Big <b>&amp; bold</b></h2>\n<h1>Top</h1>\n<hr>\n",
         "1:Big_&_bold@0 1:Top@1"},
        {"README", "# A\n", "1:A@0"},
        {"docs/NOTES", "# A\n", "1:A@0"},
        {"docs/Makefile", "# no heading\nall:\n", ""},
        {"Dockerfile", "# no\n", ""},
        {"notes.TXT", "Title\n=====\n", "1:Title@0-1"},
        {"a.py", "# no\n", ""},
        {"docs.md/CONFIG", "# A\n", "1:A@0"},
        {"docs.md/config", "# no\n", ""},
        {"a.md", "", ""},
        {"a.md", "退款\n---\n# 政策", "1:退款@0-1 1:政策@2"},
    };
    arena *a = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        // Blanks in titles are written '_' above, so that an outline stays readable.
        char *got = str_cz(a, str_z(outline(a, cases[i].path, cases[i].text)));
        str want = str_z(cases[i].want);
        for (size_t k = 0; got[k] && k < want.n; k++)
            if (got[k] == ' ' && want.p[k] == '_') got[k] = '_';
        if (strcmp(got, want.p) != 0) fail_msg("%s: \"%s\", not \"%s\"", cases[i].text, got, want.p);
    }
}

static void test_search_headings__restructured_text(void **state) {
    static const outline_case cases[] = {
        {"a.rst", "Title\n=====\n\nA\n----\n\nB\n~~~~\n\nC\n----\n", "1:Title@0-1 2:A@3-4 3:B@6-7 2:C@9-10"},
        {"a.rst", "=====\nTitle\n=====\n\nA\n=====\n\ntext\n", "1:Title@0-2 2:A@4-5"},
        {"a.rst", "======\n Over\n======\n", "1:Over@0-2"},
        {"a.rst", "text\n\n-----\n\nmore\n", ""},
        {"a.rst", "two\nlines\n-----\n", ""},
        {"a.rst", "Too long a title\n---\n", ""},
        {"a.rst", "===== =====\na     b\n===== =====\n", ""},
        {"a.rst", "退款政策\n--------\n", "1:退款政策@0-1"},
    };
    CHECK(*state, cases);
}

static void test_search_headings__asciidoc_and_org(void **state) {
    static const outline_case cases[] = {
        {"a.adoc", "= T\n\n== A\n\n----\n== no\n----\n\n=== B\n====\nexample\n====\n", "1:T@0 2:A@2 3:B@8"},
        {"a.asciidoc", "....\n== no\n....\n```\n== no\n```\n////\n== no\n////\n== A\n==x\n", "1:A@9"},
        {"a.org", "* A\n** B :tag:\n#+BEGIN_SRC c\n* no\n#+end_src\n* C\n*bold*\n",
         "1:A@0 2:B :tag:@1 1:C@5"},
    };
    CHECK(*state, cases);
}

static void test_search_headings__html(void **state) {
    static const outline_case cases[] = {
        {"a.html", "<html>\n<h1>Top</h1>\n<p>x\n<H2 id=\"a\">A &lt;b&gt;</H2>\n", "1:Top@1 2:A <b>@3"},
        {"a.htm", "<h1\n class=x>\n Two\n lines</h1><h2>Same</h2>\n", "1:Two lines@0-3 2:Same@3"},
        {"a.html", "<!-- <h1>no</h1> --><script>\"<h1>no</h1>\"</script><h1>A</h1>", "1:A@0"},
        {"a.html", "<h1>never closed\n<p>", ""},
        {"a.html", "<h1", ""},
        {"a.html", "<h1>a<h2>b</h2><h3>c</h3>", "1:ab@0 2:c@0"},
        {"a.html", "<h1></h1><h2>b</h2>", "1:b@0"},
        {"a.html", "<hr><h7>x</h7><head>y</head>", ""},
        {"a.html", "<!-- <h1>x</h1>", ""},
    };
    CHECK(*state, cases);
}

static void test_search_headings__a_long_title_is_cut(void **state) {
    arena *a = *state;
    for (size_t n = HEADING_CHARS; n <= HEADING_CHARS + 1; n++) {
        buf b = buf_new(a, 0);
        buf_add(&b, S("# "));
        for (size_t i = 0; i < n; i++) buf_add(&b, S("é"));
        str text = buf_str(&b);
        heading_list list = {0};
        headings_find(a, S("a.md"), text, NULL, &list);
        const heading *h = &list.p[0];
        str title = heading_title(a, str_sub(text, h->at, (size_t)h->at + h->n), h->html);
        assert_int_equal(utf8_count(title), HEADING_CHARS);
        assert_int_equal(str_ends(title, S("…")), n > HEADING_CHARS);
    }
}

static void test_search_headings__the_limit_holds_at_n(void **state) {
    arena *a = *state;
    buf b = buf_new(a, 0);
    for (int i = 0; i <= HEADINGS_MAX; i++) buf_add(&b, S("# x\n"));
    heading_list list = {0};
    headings_find(a, S("a.md"), buf_str(&b), NULL, &list);
    assert_int_equal(list.n, HEADINGS_MAX);
    list.n = 0;
    headings_find(a, S("a.md"), str_sub(buf_str(&b), 0, (size_t)HEADINGS_MAX * 4), NULL, &list);
    assert_int_equal(list.n, HEADINGS_MAX);
}

// Any bytes in any form: no crash, places within the text, parents before their children.
static void test_search_headings__hostile_text_stays_within_bounds(void **state) {
    arena *a = *state;
    static const char alphabet[] = "#=-~*`<h1>/!h\n\n  \r\t:.+x{}\xE9\x80";
    static const char *const names[] = {"a.md", "a.rst", "a.adoc", "a.org", "a.html"};
    uint32_t seed = 7;
    for (int round = 0; round < 3000; round++) {
        char text[160];
        size_t n = 0;
        for (; n < sizeof text; n++) {
            seed = seed * 1664525u + 1013904223u;
            text[n] = alphabet[(seed >> 16) % (sizeof alphabet - 1)];
        }
        heading_list list = {0};
        headings_find(a, str_z(names[round % 5]), str_n(text, n), NULL, &list);
        for (size_t i = 0; i < list.n; i++) {
            const heading *h = &list.p[i];
            assert_true(h->parent <= i && h->first <= h->last && (size_t)h->at + h->n <= n);
            if (i) assert_true(list.p[i - 1].first <= h->first);
            heading_title(a, str_sub(str_n(text, n), h->at, (size_t)h->at + h->n), h->html);
        }
        arena_reset(a);
    }
}

// What is indented by thousands of blanks is code, and marks nothing.
static void test_search_headings__so_many_blanks_are_looked_at(void **state) {
    enum { INDENT_MAX = 4096 };
    arena *a = *state;
    for (size_t n = INDENT_MAX - 1; n <= INDENT_MAX; n++) {
        buf b = buf_new(a, 0);
        buf_fill(&b, ' ', n);
        buf_add(&b, S("```\n# A\n```\n# B\n"));
        assert_string_equal(outline(a, "a.md", buf_str(&b).p), n < INDENT_MAX ? "1:B@3" : "1:A@1");
    }
    // Front matter's lines may be as long, not longer.
    for (size_t n = INDENT_MAX; n <= INDENT_MAX + 1; n++) {
        buf b = buf_new(a, 0);
        buf_add(&b, S("---"));
        buf_fill(&b, ' ', n - 3);
        buf_add(&b, S("\ntitle: T\n---\n"));
        assert_string_equal(outline(a, "a.md", buf_str(&b).p), n <= INDENT_MAX ? "1:T@1" : "");
    }
}

// Openings without number, none of which ends: gone through once, not once for each.
static void test_search_headings__openings_without_an_end_take_no_time(void **state) {
    arena *a = *state;
    enum { SIZE = 4 << 20 };
    static const char *const units[] = {"<h1>", "<h2 ", "<h3\n", "# <h1>\n", "<!--", "<script>", "<a></b>"};
    static const char *const names[] = {"a.html", "a.md"};
    char *text = arena_alloc(a, SIZE);
    for (size_t u = 0; u < sizeof units / sizeof *units; u++) {
        size_t n = strlen(units[u]);
        for (size_t i = 0; i < SIZE; i++) text[i] = units[u][i % n];
        for (size_t k = 0; k < 2; k++) {
            heading_list list = {0};
            arena *own = arena_new();
            headings_find(own, str_z(names[k]), str_n(text, SIZE), NULL, &list);
            assert_true(list.n <= HEADINGS_MAX);
            arena_free(own);
        }
    }
}

// A rule is looked at 64 bytes at a time.
static void test_search_headings__rules_of_any_length(void **state) {
    arena *a = *state;
    for (size_t n = 2; n < 200; n++) {
        buf b = buf_new(a, 0);
        buf_add(&b, S("Title\n"));
        for (size_t i = 0; i < n; i++) buf_addc(&b, '=');
        assert_string_equal(outline(a, "a.md", buf_str(&b).p), "1:Title@0-1");
        for (size_t at = 0; at < n; at++) {
            char *p = arena_alloc(a, b.n + 1);
            memcpy(p, b.p, b.n + 1);
            p[6 + at] = '!';
            assert_string_equal(outline(a, "a.md", p), "");
        }
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_headings__##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(markdown),
        TEST(restructured_text),
        TEST(asciidoc_and_org),
        TEST(html),
        TEST(a_long_title_is_cut),
        TEST(the_limit_holds_at_n),
        TEST(hostile_text_stays_within_bounds),
        TEST(so_many_blanks_are_looked_at),
        TEST(rules_of_any_length),
        TEST(openings_without_an_end_take_no_time),
    };
    return cmocka_run_group_tests_name("search_headings", tests, NULL, NULL);
}

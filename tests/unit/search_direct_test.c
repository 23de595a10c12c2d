// search_directly gives the very answer that a corpus gives which was opened, asked and closed: over random
// texts, filters and limits, and where files change between the two times it reads them.
#include "search/search_int.h"
#include "support/dir_fixture.h"
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *const words[] = {"refund", "refunds", "paid", "within", "seven", "days",
                                    "the",    "of",      "退款", "政策",   "七日",  "parcel",
                                    "label",  "Label",   "カタ", "é",      "order", "carrier",
                                    "[link",  "](x)",    "# a",  "\n",     "\n\n",  "\n## b\n"};

static str random_text(arena *a, uint32_t *seed, size_t n) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < n; i++) {
        *seed = *seed * 1664525u + 1013904223u;
        buf_addf(&b, "%s ", words[(*seed >> 16) % (sizeof words / sizeof *words)]);
    }
    return buf_str(&b);
}

static str as_json(arena *a, const search_result *r) {
    buf b = buf_new(a, 0);
    search_json(&b, r);
    return buf_str(&b);
}

static search_result ask_kept(arena *a, const search_space *space, const search_query *q) {
    search_corpus *c;
    search_result r = {0};
    dep_err err = {0};
    if (search_open(space, &c, &err) != DEP_OK || search_run(a, c, q, &r, &err) != DEP_OK)
        fail_msg("%s", err.msg);
    search_close(c);
    return r;
}

static search_result ask_directly(arena *a, const search_space *space, const search_query *q) {
    search_result r = {0};
    dep_err err = {0};
    if (search_directly(a, space, q, &r, &err) != DEP_OK) fail_msg("%s", err.msg);
    return r;
}

static void assert_same(dir_fixture *f, const search_space *space, const search_query *q) {
    search_result kept = ask_kept(f->a, space, q), direct = ask_directly(f->a, space, q);
    str x = as_json(f->a, &kept), y = as_json(f->a, &direct);
    if (!str_eq(x, y))
        fail_msg(STR_FMT ":\n%.*s\nnot\n%.*s", STR_ARG(q->query), (int)(y.n < 2000 ? y.n : 2000), y.p,
                 (int)(x.n < 2000 ? x.n : 2000), x.p);
}

// Files 000.md, 001.md and so on: with the text, or with so many random words each.
static void write_files(dir_fixture *f, int n, str text, uint32_t seed, size_t n_words) {
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "%03d.md", i);
        temp_write(f->path, name, text.n ? text : random_text(f->a, &seed, n_words));
    }
}

static const str everything = S_INIT("**/*");

static search_space whole(dir_fixture *f, search_source *source) {
    *source = (search_source){.name = S("Manual"), .include = &everything, .n_include = 1};
    return (search_space){.root = f->dir, .sources = source, .n_sources = 1};
}

static void test_search_direct__it_answers_as_a_kept_corpus(void **state) {
    dir_fixture *f = *state;
    uint32_t seed = 7;
    for (int i = 0; i < 120; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s/%d-%s.%s", i % 3 ? "docs" : "docs/refund", i, i % 5 ? "x" : "label",
                 i % 7 ? "md" : "txt");
        temp_write(f->path, name, random_text(f->a, &seed, 10 + (size_t)i * 3));
    }
    temp_write(f->path, "empty.md", S(""));
    temp_write(f->path, "image.png", S("\x89PNG\0\0refund"));
    temp_write(f->path, "gb.txt", S("\xCD\xCB\xBF\xEE\xD5\xFE\xB2\xDF\xA3\xAC\xC6\xDF\xC8\xD5\n"));
    temp_write(f->path, "crlf.md", S("# Refund\r\n\r\nrefund paid\r\n"));
    temp_write(f->path, "big.md", random_text(f->a, &seed, 60000));
    search_source source;
    search_space space = whole(f, &source);
    static const char *const queries[] = {"refund",
                                          "refund paid within seven days",
                                          "the",
                                          "退款政策",
                                          "\"refund paid\"",
                                          "refnud",
                                          "labex x",
                                          "nowhere",
                                          "of the",
                                          "カタ é",
                                          "carrier parcel",
                                          "[link",
                                          "a b",
                                          "label",
                                          "七日 order the"};
    for (size_t i = 0; i < sizeof queries / sizeof *queries; i++) {
        search_query q = {.query = str_z(queries[i]), .limit = 1 + i * 7, .context = i % 4};
        assert_same(f, &space, &q);
        q.path = S("docs/refund");
        assert_same(f, &space, &q);
        q.path = S("**/*.txt");
        assert_same(f, &space, &q);
        q.path = S("nothing/*");
        assert_same(f, &space, &q);
        q.path = (str){0};
        space.max_file = 20000;
        space.max_bytes = 150000;
        assert_same(f, &space, &q);
        space.max_file = space.max_bytes = 0;
    }
}

static void test_search_direct__several_sources_and_names(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a/one.md", S("refund one\n"));
    temp_write(f->path, "b/two.md", S("refund two\n"));
    assert_int_equal(linkat(f->dir, "a/one.md", f->dir, "b/same.md", 0), 0);
    str in_a = S("a/**"), in_b = S("b/**");
    search_source sources[] = {{.name = S("B"), .include = &in_b, .n_include = 1},
                               {.name = S("A"), .include = &in_a, .n_include = 1},
                               {.name = S("All"), .include = &everything, .n_include = 1}};
    search_space space = {.root = f->dir, .sources = sources, .n_sources = 3};
    static const char *const names[] = {"", "A", "B", "All"};
    for (size_t i = 0; i < 4; i++) {
        search_query q = {.query = S("refund"), .source = str_z(names[i])};
        assert_same(f, &space, &q);
    }
    // Overlapping sources alone, too.
    assert_int_equal(unlinkat(f->dir, "b/same.md", 0), 0);
    search_query q = {.query = S("refund one")};
    assert_same(f, &space, &q);
    space.n_sources = 2;
    assert_same(f, &space, &q);
}

typedef struct {
    dir_fixture *f;
    int opened; // how often a.md was
    bool replace;
} meddler;

// The second time the file is opened it has become another.
static const char *meddle(void *p, str path, const struct stat *st) {
    meddler *m = p;
    if (S_ISDIR(st->st_mode) || !str_eq(path, S("a.md")) || ++m->opened != 2) return NULL;
    if (m->replace) temp_write(m->f->path, "other.md", S("x\nrefund is here now\n"));
    if (m->replace) assert_int_equal(renameat(m->f->dir, "other.md", m->f->dir, "a.md"), 0);
    if (!m->replace) assert_int_equal(unlinkat(m->f->dir, "a.md", 0), 0);
    return NULL;
}

static void test_search_direct__what_changes_meanwhile_is_read_anew(void **state) {
    dir_fixture *f = *state;
    search_source source;
    search_space space = whole(f, &source);
    for (int replace = 0; replace < 2; replace++) {
        temp_write(f->path, "a.md", S("refund was here\n"));
        temp_write(f->path, "b.md", S("refund stays\n"));
        meddler m = {.f = f, .replace = replace};
        space.refuse = meddle;
        space.ctx = &m;
        search_query q = {.query = S("refund")};
        search_result r = ask_directly(f->a, &space, &q);
        for (vec_each(const search_hit, h, &r.hits))
            assert_true(str_eq(h->path, S("b.md")) ||
                        (h->line == 2 && str_eq(h->text, S("refund is here now"))) ||
                        (h->line == 1 && str_eq(h->text, S("refund was here"))));
        assert_true(m.opened >= 2);
        // Nothing is shown that is neither what it was nor what it is.
        space.refuse = NULL;
        assert_same(f, &space, &q);
    }
}

// So many files that most are read by several threads, before it is known what fits. As if one after the
// other had been read: each source's share first, then what is left, in order.
static void test_search_direct__what_fits_is_decided_in_order(void **state) {
    dir_fixture *f = *state;
    enum { FILES = 300, SIZE = 1000 };
    static const str globs[] = {S_INIT("a/*"), S_INIT("b/*")};
    search_source sources[] = {{.name = S("A"), .include = &globs[0], .n_include = 1},
                               {.name = S("B"), .include = &globs[1], .n_include = 1}};
    search_space space = {.root = f->dir, .sources = sources, .n_sources = 2};
    char name[32], text[SIZE + 1];
    memset(text, 'x', SIZE);
    memcpy(text, "refund\n", 7);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "%c/%03d.md", i < FILES / 3 ? 'a' : 'b', i);
        temp_write(f->path, name, str_n(text, SIZE));
    }
    search_query q = {.query = S("refund"), .limit = 1000};
    for (size_t fit = FILES - 100; fit <= FILES + 1; fit += fit < FILES - 2 ? 49 : 1) {
        for (size_t less = 0; less < 2; less++) {
            space.max_bytes = fit * SIZE - less;
            size_t want = fit - less < FILES ? fit - less : FILES;
            search_result r = ask_directly(f->a, &space, &q);
            assert_int_equal(r.hits.n, want);
            assert_int_equal(r.totals.at_least, want < FILES);
            // The last ones are those that do not fit.
            snprintf(name, sizeof name, "b/%03zu.md", want - 1);
            assert_text(r.hits.p[want - 1].path, name);
            assert_same(f, &space, &q);
        }
    }
}

// Of more lines than are ranked the first ones are, whoever found them.
static void test_search_direct__the_first_lines_are_ranked_over_the_limit(void **state) {
    dir_fixture *f = *state;
    enum { FILES = 200, LINES = 5 };
    write_files(f, FILES, S("refund\nrefund\nrefund\nrefund\nrefund\n"), 0, 0);
    search_source source;
    search_space space = whole(f, &source);
    search_query q = {.query = S("refund"), .limit = 2000};
    search_limits limits = search_limits_default;
    dep_err err;
    static const size_t most[] = {1, 100, FILES * LINES - 1, FILES * LINES, FILES * LINES + 1};
    for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
        size_t lines = most[i];
        limits.lines = lines;
        search_corpus *c;
        search_result kept, direct;
        assert_int_equal(search_open_with(&space, &limits, &c, &err), DEP_OK);
        assert_int_equal(search_run(f->a, c, &q, &kept, &err), DEP_OK);
        search_close(c);
        assert_int_equal(search_directly_with(f->a, &space, &limits, &q, &direct, &err), DEP_OK);
        assert_int_equal(direct.hits.n, lines < FILES * LINES ? lines : FILES * LINES);
        assert_true(str_eq(as_json(f->a, &kept), as_json(f->a, &direct)));
    }
}

static void test_search_direct__few_descriptors_are_enough(void **state) {
    dir_fixture *f = *state;
    write_files(f, 200, (str){0}, 9, 60);
    search_source source;
    search_space space = whole(f, &source);
    search_query q = {.query = S("refund parcel"), .limit = 20};
    search_result all = ask_directly(f->a, &space, &q);
    str want = as_json(f->a, &all);
    // As many as are open now, and a few more.
    struct rlimit was, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    int next = dup(f->dir);
    close(next);
    for (int more = 3; more < 12; more += 4) {
        few = (struct rlimit){.rlim_cur = (rlim_t)(next + more), .rlim_max = was.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        search_result r = ask_directly(f->a, &space, &q);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
        assert_true(str_eq(as_json(f->a, &r), want));
    }
}

static bool always(void *ctx) {
    (void)ctx;
    return true;
}

static void test_search_direct__it_is_cancelled_and_says_what_is_wrong(void **state) {
    dir_fixture *f = *state;
    write_files(f, 200, S("refund\n"), 0, 0);
    search_source source;
    search_space space = whole(f, &source);
    space.cancelled = always;
    search_query q = {.query = S("refund")};
    search_result r = ask_directly(f->a, &space, &q);
    assert_true(r.cancelled && r.totals.at_least && r.totals.matched_lines < 200);
    space.cancelled = NULL;
    dep_err err;
    q.query = S("  ");
    assert_int_equal(search_directly(f->a, &space, &q, &r, &err), DEP_ERR_INVALID);
    q = (search_query){.query = S("x"), .source = S("none")};
    assert_int_equal(search_directly(f->a, &space, &q, &r, &err), DEP_ERR_INVALID);
    q = (search_query){.query = S("x"), .path = S("../x")};
    assert_int_equal(search_directly(f->a, &space, &q, &r, &err), DEP_ERR_INVALID);
    str bad = S("/etc/*");
    source.include = &bad;
    q = (search_query){.query = S("x")};
    assert_int_equal(search_directly(f->a, &space, &q, &r, &err), DEP_ERR_INVALID);
}

static bool yes_after(void *ctx) {
    int *left = ctx;
    return --*left < 0;
}

// However early or late: it says so, or it gives the whole answer.
static void test_search_direct__it_may_be_stopped_at_any_time(void **state) {
    dir_fixture *f = *state;
    write_files(f, 300, (str){0}, 3, 600);
    search_source source;
    search_space space = whole(f, &source);
    search_query q = {.query = S("refund parcxl paid"), .limit = 20};
    search_result all = ask_directly(f->a, &space, &q);
    str want = as_json(f->a, &all);
    bool finished = false;
    for (int after = 0; after < 2000 && !finished; after += 1 + after / 8) {
        int left = after;
        space.cancelled = yes_after;
        space.ctx = &left;
        search_result r = ask_directly(f->a, &space, &q);
        finished = !r.cancelled;
        if (finished) assert_true(str_eq(as_json(f->a, &r), want));
        if (!finished) assert_true(r.totals.at_least && r.totals.matched_lines <= all.totals.matched_lines);
    }
    assert_true(finished);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_direct__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(it_answers_as_a_kept_corpus),
        TEST(several_sources_and_names),
        TEST(what_fits_is_decided_in_order),
        TEST(few_descriptors_are_enough),
        TEST(the_first_lines_are_ranked_over_the_limit),
        TEST(what_changes_meanwhile_is_read_anew),
        TEST(it_is_cancelled_and_says_what_is_wrong),
        TEST(it_may_be_stopped_at_any_time),
    };
    return cmocka_run_group_tests_name("search_direct", tests, NULL, NULL);
}

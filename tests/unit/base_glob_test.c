// Path patterns: what they match, what they refuse, where a walk need not go, and that no pattern is slow.
#include "support/support.h"
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/glob.h>

static int setup(void **state) {
    *state = arena_new();
    return 0;
}

static int teardown(void **state) {
    arena_free(*state);
    return 0;
}

static const glob_pat *compiled(arena *a, const char *pattern) {
    glob_pat *g = NULL;
    dep_err err = {0};
    if (glob_compile(a, str_z(pattern), &g, &err) != DEP_OK) fail_msg("%s: %s", pattern, err.msg);
    return g;
}

typedef struct {
    const char *pattern, *path;
    bool want;
} match_case;

static void check_matches(arena *a, const match_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        bool got = glob_match(compiled(a, cases[i].pattern), str_z(cases[i].path));
        if (got != cases[i].want) {
            fail_msg("%s %s %s", cases[i].pattern, got ? "matches" : "does not match", cases[i].path);
        }
    }
}

#define CHECK(a, cases) check_matches((a), (cases), sizeof(cases) / sizeof *(cases))

static void test_base_glob__wildcards_stay_within_a_component(void **state) {
    static const match_case cases[] = {
        {"a.md", "a.md", true},    {"a.md", "A.md", false},    {"*.md", "a.md", true},
        {"*.md", "a/b.md", false}, {"*.md", ".md", false},     {"*", "a", true},
        {"*", "a/b", false},       {"*/*", "a/b", true},       {"?", "a", true},
        {"?", "", false},          {"?", "ab", false},         {"a?b", "a/b", false},
        {"a*b", "ab", true},       {"a*b", "axxb", true},      {"a*b", "a/b", false},
        {"a*b*c", "abcbc", true},  {"a*b*c", "abcb", false},   {"*a", "ba", true},
        {"*a", "bab", false},      {"**.md", "a.md", true},    {"**.md", "a/b.md", false},
        {"a**b", "axb", true},     {"docs", "docs", true},     {"docs", "docs/a", false},
        {"docs/*", "docs", false}, {"docs/*", "docs/a", true}, {"docs/*", "docs/a/b", false},
        {"ab", "a", false},        {"a", "ab", false},         {"*", "", false},
    };
    CHECK(*state, cases);
}

static void test_base_glob__two_stars_stand_for_any_number_of_components(void **state) {
    static const match_case cases[] = {
        {"**/*.md", "a.md", true},
        {"**/*.md", "x/y/a.md", true},
        {"docs/**/*.md", "docs/a.md", true},
        {"docs/**/*.md", "docs/x/y/a.md", true},
        {"docs/**/*.md", "doc/a.md", false},
        {"docs/**/*.md", "a/docs/a.md", false},
        {"docs/**", "docs/a", true},
        {"docs/**", "docs/a/b", true},
        {"docs/**", "docs", true},
        {"docs/**", "docs2/a", false},
        {"**", "a", true},
        {"**", "a/b/c", true},
        {"**/**/**", "a/b", true},
        {"**/a/**/b", "x/a/y/z/b", true},
        {"**/a/**/b", "a/b", true},
        {"**/a/**/b", "a/a/b/b", true},
        {"**/a/**/b", "b/a", false},
        {"a/**/b/**/c", "a/b/b/c", true},
        {"a/**/b/**/c", "a/c/b", false},
        {"**/a/b", "a/a/b", true},
        {"***/a", "x/a", true},
        {"***/a", "x/y/a", false},
    };
    CHECK(*state, cases);
}

static void test_base_glob__hidden_names_are_matched_only_by_a_literal_dot(void **state) {
    static const match_case cases[] = {
        {"*", ".env", false},
        {".*", ".env", true},
        {"?env", ".env", false},
        {"[.]env", ".env", false},
        {"[!a]env", ".env", false},
        {"\\.env", ".env", true},
        {"**", ".git/config", false},
        {"**/config", ".git/config", false},
        {"**", "a/.b/c", false},
        {"**/*.md", "docs/.x/a.md", false},
        {".git/*", ".git/config", true},
        {"**/.git/*", "a/.git/config", true},
        {"**/.github/**", ".github/a/b", true},
        {"**/.github/**", ".github/a/.b", false},
        {"a.*", "a.b", true},
        {"a*", "a.b", true},
        {"{.a,b}", ".a", true},
        {"{,.}a", ".a", true},
        {"..*", "..a", true},
        {".*", "..a", true},
    };
    CHECK(*state, cases);
}

static void test_base_glob__brackets_match_one_code_point(void **state) {
    static const match_case cases[] = {
        {"[abc]", "b", true},    {"[abc]", "d", false},      {"[a-c]x", "bx", true},
        {"[a-c]x", "dx", false}, {"[!a]", "b", true},        {"[!a]", "a", false},
        {"[^a]", "a", false},    {"[^a]", "b", true},        {"[]a]", "]", true},
        {"[!]a]", "b", true},    {"[!]a]", "]", false},      {"[a-]", "-", true},
        {"[-a]", "-", true},     {"[a\\]b]", "]", true},     {"[\\!a]", "!", true},
        {"[a\\-c]", "b", false}, {"[a\\-c]", "-", true},     {"[{,}]", ",", true},
        {"[{,}]", "{", true},    {"[*]", "*", true},         {"[*]", "a", false},
        {"[é]", "é", true},      {"[а-я]", "ж", true},       {"[а-я]", "z", false},
        {"[!é]", "e", true},     {"?", "é", true},           {"??", "é", false},
        {"?", "😀", true},       {"[一-龥]*", "手册", true}, {"手*.md", "手册.md", true},
        {"a]", "a]", true},      {"[a-c-e]", "-", true},     {"[a-c-e]", "d", false},
        {"[!-]", "a", true},     {"[!a-c]", "b", false},
    };
    CHECK(*state, cases);
}

static void test_base_glob__braces_give_alternatives(void **state) {
    static const match_case cases[] = {
        {"{a,b}", "a", true},
        {"{a,b}", "b", true},
        {"{a,b}", "c", false},
        {"*.{md,txt}", "x.txt", true},
        {"a{,.b}", "a", true},
        {"a{,.b}", "a.b", true},
        {"{a}", "a", true},
        {"x{}y", "xy", true},
        {"{a,{b,c}}d", "cd", true},
        {"{a,b{c,d}}", "bd", true},
        {"{a,b{c,d}}", "b", false},
        {"{a,b}/{c,d}", "b/c", true},
        {"{docs/**,*.md}", "x.md", true},
        {"{docs/**,*.md}", "docs/x/y", true},
        {"{a/b,c}/d", "a/b/d", true},
        {"a,b", "a,b", true},
        {"\\{a,b\\}", "{a,b}", true},
        {"{a\\,b,c}", "a,b", true},
        {"{a\\,b,c}", "a", false},
        {"{[,],x}", ",", true},
        {"{*,a}{b,*}", "zb", true},
        {"{a,a}", "a", true},
        {"{{{{a}}}}", "a", true},
        {"{a,b}{c,d}{e,f}", "bcf", true},
    };
    CHECK(*state, cases);
}

static void test_base_glob__patterns_are_brought_to_one_form(void **state) {
    static const match_case cases[] = {
        {"./docs/**/*.md", "docs/a.md", true},
        {"docs/", "docs", true},
        {"docs//a", "docs/a", true},
        {"./a", "a", true},
        {"a/./b", "a/b", true},
        {".", "", true},
        {".", "a", false},
        {"./", "", true},
        {"\\*", "*", true},
        {"\\*", "a", false},
        {"\\a\\b", "ab", true},
        {"a\\?", "a?", true},
        {"\\[a]", "[a]", true},
        {"\\\\", "\\", true},
        {"a b", "a b", true},
        {"**/", "a", true},
    };
    CHECK(*state, cases);
}

static void test_base_glob__invalid_bytes_of_a_path_count_as_one_character_each(void **state) {
    static const match_case cases[] = {
        {"?", "\xff", true},
        {"??", "\xff\xfe", true},
        {"*", "\xc3", true},
        {"[!a]", "\xff", true},
        {"[a-z]", "\xff", false},
        {"a?b",
         "a\xc3"
         "b",
         true},
    };
    CHECK(*state, cases);
}

static void test_base_glob__what_cannot_be_meant_is_refused(void **state) {
    static const struct {
        const char *pattern, *reason;
    } cases[] = {
        {"", "empty"},          {"/a", "absolute"},
        {"{/a,b}", "absolute"}, {"..", "'..'"},
        {"../a", "'..'"},       {"a/../b", "'..'"},
        {"a/..", "'..'"},       {"{.}.", "'..'"},
        {"\\.\\./a", "'..'"},   {"[a", "'['"},
        {"[]", "'['"},          {"[!]", "'['"},
        {"a[", "'['"},          {"[a\\]", "'['"},
        {"{a", "'{'"},          {"{a,{b}", "'{'"},
        {"a}", "'}'"},          {"{a}}", "'}'"},
        {"[a/b]", "'/'"},       {"[a\\/b]", "'/'"},
        {"a\\/b", "'/'"},       {"a\\", "backslash"},
        {"{a,}", "empty"},      {"{,a}", "empty"},
        {"[z-a]", "wrong way"}, {"[[:alpha:]]", "[:alpha:]"},
        {"\xff", "UTF-8"},      {"[\xff]", "UTF-8"},
    };
    arena *a = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        glob_pat *g = NULL;
        dep_err err = {0};
        if (glob_compile(a, str_z(cases[i].pattern), &g, &err) != DEP_ERR_INVALID)
            fail_msg("%s", cases[i].pattern);
        if (!strstr(err.msg, cases[i].reason)) fail_msg("%s: %s", cases[i].pattern, err.msg);
        assert_null(g);
    }
    glob_pat *g = NULL;
    assert_int_equal(glob_compile(a, S("a\0b"), &g, NULL), DEP_ERR_INVALID);
}

static str repeated(arena *a, const char *unit, size_t times, const char *end) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < times; i++) buf_add(&b, str_z(unit));
    buf_add(&b, str_z(end));
    return str_dup(a, buf_str(&b));
}

static void test_base_glob__limits_hold_at_n_and_one_more(void **state) {
    arena *a = *state;
    glob_pat *g = NULL;
    assert_int_equal(glob_compile(a, repeated(a, "a", GLOB_PATTERN_MAX, ""), &g, NULL), DEP_OK);
    assert_int_equal(glob_compile(a, repeated(a, "a", GLOB_PATTERN_MAX + 1, ""), &g, NULL), DEP_ERR_LIMIT);
    assert_int_equal(glob_compile(a, repeated(a, "a/", GLOB_PATTERN_MAX / 2, ""), &g, NULL), DEP_OK);
    assert_true(glob_match(g, repeated(a, "a/", GLOB_PATTERN_MAX / 2 - 1, "a")));
    // 2^8 alternatives, and one more.
    assert_int_equal(glob_compile(a, repeated(a, "{a,b}", 8, ""), &g, NULL), DEP_OK);
    assert_int_equal(glob_compile(a, repeated(a, "{a,b}", 8, "{,x}"), &g, NULL), DEP_ERR_LIMIT);
    str list = repeated(a, "a,", GLOB_ALTERNATIVES_MAX - 1, "");
    assert_int_equal(glob_compile(a, str_fmt(a, "{%sa}", list.p), &g, NULL), DEP_OK);
    assert_int_equal(glob_compile(a, str_fmt(a, "{%sa,a}", list.p), &g, NULL), DEP_ERR_LIMIT);
    // More than could ever be made one by one.
    assert_int_equal(glob_compile(a, repeated(a, "{a,b}", 200, ""), &g, NULL), DEP_ERR_LIMIT);
    // As deep as a pattern can be.
    str open = repeated(a, "{", 511, "a");
    assert_int_equal(glob_compile(a, str_fmt(a, "%s%s", open.p, repeated(a, "}", 511, "").p), &g, NULL),
                     DEP_OK);
    assert_true(glob_match(g, S("a")));
}

static void test_base_glob__no_pattern_takes_exponential_time(void **state) {
    arena *a = *state;
    glob_pat *g = NULL;
    // Each of these takes longer than the age of the world when every split is tried.
    assert_int_equal(glob_compile(a, repeated(a, "a*", 100, "b"), &g, NULL), DEP_OK);
    assert_false(glob_match(g, repeated(a, "a", 4000, "")));
    assert_int_equal(glob_compile(a, repeated(a, "*a", 100, "*b"), &g, NULL), DEP_OK);
    assert_false(glob_match(g, repeated(a, "a", 4000, "c")));
    assert_int_equal(glob_compile(a, repeated(a, "**/a/", 100, "b"), &g, NULL), DEP_OK);
    assert_false(glob_match(g, repeated(a, "a/", 2000, "c")));
    assert_int_equal(glob_compile(a, repeated(a, "**/*/", 100, "b"), &g, NULL), DEP_OK);
    assert_false(glob_match(g, repeated(a, "a/", 2000, "c")));
    assert_true(glob_match(g, repeated(a, "a/", 2000, "b")));
    assert_int_equal(glob_compile(a, repeated(a, "**/*a*a*a*/", 50, "b"), &g, NULL), DEP_OK);
    assert_false(glob_match(g, repeated(a, "aaaaaaa/", 500, "c")));
    assert_true(glob_may_descend(g, repeated(a, "aaaaaaa/", 500, "c")));
}

static void test_base_glob__a_walk_goes_only_where_a_match_can_be(void **state) {
    static const struct {
        const char *pattern, *dir;
        bool want;
    } cases[] = {
        {"docs/**/*.md", "", true},
        {"docs/**/*.md", "docs", true},
        {"docs/**/*.md", "docs/a/b", true},
        {"docs/**/*.md", "src", false},
        {"docs/**/*.md", "docs2", false},
        {"docs/**/*.md", "docs/.git", false},
        {"docs/*.md", "docs", true},
        {"docs/*.md", "docs/a", false},
        {"*.md", "", true},
        {"*.md", "a", false},
        {"*/x/*", "a", true},
        {"*/x/*", "a/x", true},
        {"*/x/*", "a/y", false},
        {"*/x/*", ".a", false},
        {"**/.github/*.yml", "a/.github", true},
        {"**/.github/*.yml", "a/.git", false},
        {"**/.github/*.yml", "a/.github/b", false},
        {"**/.github/x/*", ".github/x", true},
        {"**/.github/x/*", ".github/y", false},
        {"docs/**", "docs", true},
        {"docs/**", "docs/a", true},
        {"docs", "", true},
        {"docs", "docs", false},
        {"{a,b/**}", "b/x", true},
        {"{a,b/**}", "a", false},
        {"{a,b/**}", "c", false},
        {".", "", false},
        {".", "a", false},
        {"a/b/c/d", "a/b", true},
        {"a/b/c/d", "a/c", false},
        {"a/b/c/d", "a/b/c/d", false},
        {"./docs/*", "docs", true},
        {"[ab]/*", "b", true},
        {"[ab]/*", "c", false},
    };
    arena *a = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool got = glob_may_descend(compiled(a, cases[i].pattern), str_z(cases[i].dir));
        if (got != cases[i].want) fail_msg("%s in '%s': %d", cases[i].pattern, cases[i].dir, got);
    }
}

static void test_base_glob__prefix_and_literal_path_are_told(void **state) {
    static const struct {
        const char *pattern, *prefix, *path; // path NULL: not literal
    } cases[] = {
        {"docs/en/**/*.md", "docs/en", NULL},
        {"docs/a.md", "docs", "docs/a.md"},
        {"docs", "", "docs"},
        {"**", "", NULL},
        {"./docs/*", "docs", NULL},
        {"d*/a", "", NULL},
        {"docs/{a,b}/*.md", "docs", NULL},
        {"{docs/a,docs/b}/x", "docs", NULL},
        {"{docs,src}/x", "", NULL},
        {"{a/b/c,a/b}/d", "a/b", NULL},
        {"{a/b,a}", "", NULL},
        {".", "", ""},
        {"a/\\*.md", "a", "a/*.md"},
        {"a\\[1\\]/b/", "a[1]", "a[1]/b"},
        {"a/{b}", "a", "a/b"},
        {"{a,b}", "", NULL},
        {"a/[b]/c", "a", NULL},
        {"a/b*/c/d", "a", NULL},
    };
    arena *a = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const glob_pat *g = compiled(a, cases[i].pattern);
        if (!str_eq(glob_prefix(g), str_z(cases[i].prefix))) {
            fail_msg("%s: prefix '" STR_FMT "'", cases[i].pattern, STR_ARG(glob_prefix(g)));
        }
        assert_int_equal(glob_literal(g), cases[i].path != NULL);
        assert_true(str_eq(glob_path(g), str_z(cases[i].path)));
    }
}

// --- Against a matcher that tries everything --------------------------------------------------------------

// Patterns of a b . ? * and **, over paths of a b . only.
static bool slow_part(str p, str s, bool first) {
    if (p.n == 0) return s.n == 0;
    if (first && s.n && s.p[0] == '.' && p.p[0] != '.') return false;
    str rest = str_sub(p, 1, p.n);
    if (p.p[0] == '*') {
        for (size_t i = 0; i <= s.n; i++) {
            if (slow_part(rest, str_sub(s, i, s.n), false)) return true;
        }
        return false;
    }
    return s.n && (p.p[0] == '?' || p.p[0] == s.p[0]) && slow_part(rest, str_sub(s, 1, s.n), false);
}

static bool slow_match(str p, bool more_p, str s, bool more_s) {
    if (!more_p) return !more_s;
    str part, p_rest, name = {0}, s_rest = {0};
    bool p_left = str_cut(p, '/', &part, &p_rest), s_left = more_s && str_cut(s, '/', &name, &s_rest);
    if (str_eq(part, S("**"))) {
        if (slow_match(p_rest, p_left, s, more_s)) return true;
        return more_s && name.p[0] != '.' && slow_match(p, true, s_rest, s_left);
    }
    return more_s && slow_part(part, name, true) && slow_match(p_rest, p_left, s_rest, s_left);
}

static uint32_t random_below(uint32_t *seed, uint32_t n) {
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 16) % n;
}

static str random_path(arena *a, uint32_t *seed, const char *letters) {
    buf b = buf_new(a, 0);
    uint32_t parts = 1 + random_below(seed, 5), kinds = (uint32_t)strlen(letters);
    for (uint32_t i = 0; i < parts; i++) {
        if (i) buf_addc(&b, '/');
        if (strchr(letters, '*') && random_below(seed, 3) == 0) {
            buf_add(&b, S("**"));
            continue;
        }
        size_t from = b.n;
        for (uint32_t n = 1 + random_below(seed, 4); n > 0; n--)
            buf_addc(&b, letters[random_below(seed, kinds)]);
        // No "." and "..", and no component that would be two stars by chance.
        str made = str_sub(buf_str(&b), from, b.n);
        if (str_eq(made, S(".")) || str_eq(made, S("..")) || str_eq(made, S("**"))) buf_addc(&b, 'a');
    }
    return buf_str(&b);
}

static void test_base_glob__matches_are_those_of_a_matcher_that_tries_everything(void **state) {
    arena *a = *state;
    uint32_t seed = 1;
    size_t matches = 0;
    for (int i = 0; i < 6000; i++) {
        str pattern = random_path(a, &seed, "ab.?*");
        glob_pat *g = NULL;
        dep_err err = {0};
        if (glob_compile(a, pattern, &g, &err) != DEP_OK) fail_msg("%s: %s", pattern.p, err.msg);
        for (int k = 0; k < 12; k++) {
            str path = random_path(a, &seed, "aaab.");
            bool want = slow_match(pattern, true, path, true), got = glob_match(g, path);
            if (want != got) fail_msg("%s %s %s", pattern.p, got ? "matches" : "does not match", path.p);
            matches += got;
            for (size_t cut = path.n; got && cut-- > 0;) {
                if (path.p[cut] == '/') assert_true(glob_may_descend(g, str_sub(path, 0, cut)));
            }
            if (got) assert_true(glob_may_descend(g, (str){0}));
        }
        if (i % 200 == 0) arena_reset(a);
    }
    assert_in_range(matches, 500, 60000); // the comparison has seen both answers
}

#define T(name) cmocka_unit_test_setup_teardown(test_base_glob__##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(wildcards_stay_within_a_component),
        T(two_stars_stand_for_any_number_of_components),
        T(hidden_names_are_matched_only_by_a_literal_dot),
        T(brackets_match_one_code_point),
        T(braces_give_alternatives),
        T(patterns_are_brought_to_one_form),
        T(invalid_bytes_of_a_path_count_as_one_character_each),
        T(what_cannot_be_meant_is_refused),
        T(limits_hold_at_n_and_one_more),
        T(no_pattern_takes_exponential_time),
        T(a_walk_goes_only_where_a_match_can_be),
        T(prefix_and_literal_path_are_told),
        T(matches_are_those_of_a_matcher_that_tries_everything),
    };
    return cmocka_run_group_tests_name("base_glob", tests, NULL, NULL);
}

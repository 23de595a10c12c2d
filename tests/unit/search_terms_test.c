// What a query asks for: phrases, words, pairs of characters, stop words, other forms of a word, limits.
#include "search/search_int.h"
#include "support/support.h"
#include <deputy/buf.h>
#include <deputy/json.h>
#include <deputy/utf8.h>
#include <stdio.h>
#include <stdlib.h>

static int setup(void **state) {
    *state = arena_new();
    return 0;
}

static int teardown(void **state) {
    arena_free(*state);
    return 0;
}

static term_list parse(arena *a, const char *query) {
    term_list t = {0};
    terms_parse(a, str_z(query), &t);
    return t;
}

// Terms separated by '|'.
static const char *joined(arena *a, const term_list *t) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < t->n; i++) {
        if (i) buf_addc(&b, '|');
        buf_add(&b, t->p[i].text);
    }
    return buf_str(&b).p;
}

typedef struct {
    const char *query, *want;
} parse_case;

static void check(arena *a, const parse_case *cases, size_t n) {
    for (size_t i = 0; i < n; i++) {
        term_list t = parse(a, cases[i].query);
        const char *got = joined(a, &t);
        if (strcmp(got, cases[i].want) != 0)
            fail_msg("%s: \"%s\", not \"%s\"", cases[i].query, got, cases[i].want);
    }
}

#define CHECK(a, cases) check((a), (cases), sizeof(cases) / sizeof *(cases))

static void test_search_terms__words_are_folded_and_split_at_signs(void **state) {
    static const parse_case cases[] = {
        {"refund", "refund"},
        {"  Refund\tPolicy\n", "refund|policy"},
        {"AUTO_INCREMENT", "auto|increment"},
        {"fs.readFile()", "fs|readfile"},
        {"C2702 (7)", "c2702|7"},
        {"refund Refund REFUND", "refund"},
        {"Straße ﬁn Ｆｕｌｌ", "strasse|fin|full"},
        {"cafe\u0301 café", "café"},
        {"soft\u00ADhyphen zero\u200Bwidth", "softhyphen|zerowidth"},
        {"Οδός οδοσ", "οδόσ|οδοσ"},
        {"naïve Ёлка", "naïve|ёлка"},
        {"हिन्दी शब्द", "हिन्दी|शब्द"},
    };
    CHECK(*state, cases);
}

static void test_search_terms__the_signs_of_a_language_belong_to_its_name(void **state) {
    static const parse_case cases[] = {
        {"C++ project", "c++|project"},
        {"C#, F# and VC++17", "c#|f#|vc++|17"},
        {"C++++", "c++"},
        {"i++", "i++"},
        {"C and C+ in C", "c"},
        {"Ｃ＃", "c#"},
        {"C#编程 如何用C#连", "c#|编程|如何|何用|连"},
        {"C#で書く", "c#|で書|書く"},
        {"ID# of order", "id|order"},
        {"notepad++ bash#", "notepad|bash"},
        {"page#section C#5 4# 2++", "page|section|c|5|4|2"},
    };
    CHECK(*state, cases);
}

static void test_search_terms__numbers_keep_their_points(void **state) {
    static const parse_case cases[] = {
        {"Windows 3.0 on 7.5.", "windows|3.0|7.5"},
        {"v8.5.7...9 .5 6. 7..8", "v8.5.7|9|5|6|7|8"},
        {"127.0.0.1:80", "127.0.0.1|80"},
        {"a1.2b x.1 2.y", "a1.2b|x|1|2|y"},
        {"版本7.5的", "版本|7.5"},
    };
    CHECK(*state, cases);
}

static void test_search_terms__quotes_make_one_term(void **state) {
    static const parse_case cases[] = {
        {"\"Seven Days\"", "seven days"},
        {"refund \"seven days\" policy", "refund|seven days|policy"},
        {"\"  seven \t days \"", "seven days"},
        {"\"C++\"", "c++"},
        {"\"the\" refund", "the|refund"},
        {"\"\" refund", "refund"},
        {"refund \"seven days", "refund|seven|days"},
        {"\"x b\" \"c d", "x b|c|d"},
        {"re\"fund\"s", "re|fund|s"},
        {"＂seven days＂", "seven days"},
        {"“seven days”", "seven|days"},
        {"\"退款政策\"", "退款政策"},
    };
    arena *a = *state;
    CHECK(a, cases);
    assert_int_equal(parse(a, "\"C++\"").p[0].kind, TERM_TEXT);
    assert_int_equal(parse(a, "C").p[0].kind, TERM_WORD);
}

static void test_search_terms__stop_words_count_when_nothing_else_is_there(void **state) {
    static const parse_case cases[] = {
        {"how do I get a refund", "get|refund"},
        {"what's the policy", "policy"},
        {"don't refund, it’s", "don|refund"},
        {"vitamin d", "vitamin|d"},
        {"we're re", "re"},
        {"The", "the"},
        {"to be or not to be", "not"},
        {"how is this", "how|is|this"},
        {"的", "的"},
        {"退款 的 了", "退款"},
        {"的了", "的了"},
    };
    CHECK(*state, cases);
}

static void test_search_terms__runs_without_blanks_become_pairs(void **state) {
    static const parse_case cases[] = {
        {"退", "退"},
        {"退款", "退款"},
        {"退款政策", "退款|款政|政策"},
        {"政策 退款", "政策|退款"},
        {"TiDB集群", "tidb|集群"},
        {"第3章", "第|3|章"},
        {"ﾀｲﾄﾞ", "タイ|イド"},
        {"タイド", "タイ|イド"},
        {"환불정책", "환불|불정|정책"},
        {"ภาษา", "ภา|าษ|ษา"},
        {"退款、政策", "退款|政策"},
        {"哈哈哈哈", "哈哈"},
    };
    CHECK(*state, cases);
    // A pair with a particle says less than one without.
    term_list t = parse(*state, "退款的期限");
    assert_string_equal(joined(*state, &t), "退款|款的|的期|期限");
    assert_true(t.p[1].weight < t.p[0].weight && t.p[2].weight < t.p[3].weight);
    // As one with the ending of a Korean word does.
    t = parse(*state, "설정을");
    assert_string_equal(joined(*state, &t), "설정|정을");
    assert_true(t.p[1].weight < t.p[0].weight);
    // Two pairs of a run are about one word.
    t = parse(*state, "tidb 退款政策 退款");
    assert_true(t.p[1].weight < t.p[0].weight);
}

static void test_search_terms__signs_count_when_nothing_else_is_there(void **state) {
    static const parse_case cases[] = {
        {"->", "->"},         {"&& ||", "&&|||"},   {"-> x", "x"},    {"😀", "😀"},
        {"\"->\" x", "->|x"}, {"¿?", "¿?"},         {"\"", "\""},     {"", ""},
        {" \t\n", ""},        {"\u200B\u00AD", ""}, {"\"\"", "\"\""},
    };
    CHECK(*state, cases);
}

static void test_search_terms__other_forms_of_a_word_are_known(void **state) {
    static const struct {
        const char *query, *word;
        bool same;
    } cases[] = {
        {"options", "option", true},
        {"option", "options", true},
        {"install", "installing", true},
        {"installing", "installed", true},
        {"configure", "configuring", true},
        {"configured", "configures", true},
        {"run", "running", true},
        {"running", "run", true},
        {"stopped", "stop", true},
        {"query", "queries", true},
        {"queries", "query", true},
        {"class", "classes", true},
        {"classes", "class", true},
        {"cache", "caching", true},
        {"caches", "cached", true},
        {"tables", "table", true},
        {"process", "processes", true},
        {"process", "processing", true},
        {"calls", "calling", true},
        {"falling", "falls", true},
        {"tries", "try", false},
        {"configure", "configuration", true},
        {"configuration", "configure", true},
        {"configurations", "configured", true},
        {"create", "creation", true},
        {"creation", "creating", true},
        {"migration", "migrate", true},
        {"migrate", "migrations", true},
        {"connection", "connect", true},
        {"location", "locate", true},
        {"station", "state", false},
        {"state", "station", false},
        {"action", "act", false},
        {"relation", "rely", false},
        {"version", "verse", false},
        {"use", "user", false},
        {"option", "optional", false},
        {"file", "filter", false},
        {"status", "stat", false},
        {"bus", "but", false},
        {"art", "arts", true},
        {"is", "island", false},
        {"policy", "police", false},
        {"police", "policy", false},
        {"policies", "policy", true},
        {"cookies", "cookie", true},
        {"cookie", "cookies", true},
        {"cookies", "cook", false},
        {"string", "strong", false},
        {"thing", "the", false},
        {"c2702", "c2703", false},
        {"файлы", "файл", true},
        {"файлами", "файл", true},
        {"настройка", "настройки", true},
        {"дом", "дома", false},
        {"зависимости", "зависимость", true},
        {"файл", "файловая", false},
        {"clés", "clé", false},
        {"données", "donnée", true},
        {"größe", "grössen", true},
        {"größe", "grössenordnung", false},
        {"größe", "grösste", true},
        {"café1", "café2", false},
    };
    arena *a = *state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        term_list t = parse(a, cases[i].query);
        if (t.n == 0) fail_msg("%s is no term", cases[i].query);
        str word = str_z(cases[i].word);
        bool same = str_starts(word, t.p[0].stem) && term_same_word(&t.p[0], word);
        if (same != cases[i].same)
            fail_msg("%s, %s: %s", cases[i].query, cases[i].word, same ? "same" : "not the same");
        // The stem is what is scanned for: it must lead to the term itself.
        assert_true(str_starts(t.p[0].text, t.p[0].stem));
        assert_true(t.p[0].stem.n >= 2 || t.p[0].stem.n == t.p[0].text.n);
    }
}

static void test_search_terms__more_words_than_the_limit_are_counted(void **state) {
    arena *a = *state;
    buf b = buf_new(a, 0);
    for (int i = 0; i < SEARCH_TERMS_MAX; i++) buf_addf(&b, "w%d ", i);
    term_list t = parse(a, buf_str(&b).p);
    assert_int_equal(t.n, SEARCH_TERMS_MAX);
    assert_int_equal(t.ignored, 0);
    buf_add(&b, S("w0 one more"));
    t = parse(a, buf_str(&b).p);
    assert_int_equal(t.n, SEARCH_TERMS_MAX);
    assert_int_equal(t.ignored, 2);
}

static void test_search_terms__more_pairs_than_the_limit_are_counted(void **state) {
    arena *a = *state;
    buf b = buf_new(a, 0);
    for (uint32_t i = 0; i <= TERM_GRAMS_MAX; i++) utf8_put(&b, 0x4E00 + i);
    term_list t = parse(a, buf_str(&b).p);
    assert_int_equal(t.n, TERM_GRAMS_MAX);
    assert_int_equal(t.ignored, 0);
    utf8_put(&b, 0x5E00);
    buf_add(&b, S(" word"));
    t = parse(a, buf_str(&b).p);
    assert_int_equal(t.n, TERM_GRAMS_MAX + 1);
    assert_int_equal(t.ignored, 1);
}

static void test_search_terms__hostile_queries_give_valid_terms(void **state) {
    arena *a = *state;
    static const char *const odd[] = {"\xFF\xFE",     "a\xC3",    "\xED\xA0\x80 x",
                                      "\"\xF0\x9F\"", "\x01\x02", "\r\n\"\n\""};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        term_list t = parse(a, odd[i]);
        for (size_t k = 0; k < t.n; k++) assert_true(utf8_valid(t.p[k].text) && t.p[k].text.n > 0);
    }
    char *path = shared_path("realdata/text/blns/blns.json");
    if (!path) {
        skip();
        return;
    }
    str text = read_all(path);
    json *list;
    assert_int_equal(json_parse(a, text, 0, &list, NULL), DEP_OK);
    assert_true(list->count > 400);
    for (const json *v = list->child; v; v = v->next) {
        term_list t = {0};
        terms_parse(a, v->s, &t);
        for (size_t k = 0; k < t.n; k++) {
            assert_true(utf8_valid(t.p[k].text) && t.p[k].text.n > 0);
            assert_true(str_chr(t.p[k].text, '\n') == SIZE_MAX);
        }
    }
    free(text.p ? (char *)text.p : NULL);
    free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_terms__##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(words_are_folded_and_split_at_signs),
        TEST(the_signs_of_a_language_belong_to_its_name),
        TEST(numbers_keep_their_points),
        TEST(quotes_make_one_term),
        TEST(stop_words_count_when_nothing_else_is_there),
        TEST(runs_without_blanks_become_pairs),
        TEST(signs_count_when_nothing_else_is_there),
        TEST(other_forms_of_a_word_are_known),
        TEST(more_words_than_the_limit_are_counted),
        TEST(more_pairs_than_the_limit_are_counted),
        TEST(hostile_queries_give_valid_terms),
    };
    return cmocka_run_group_tests_name("search_terms", tests, NULL, NULL);
}

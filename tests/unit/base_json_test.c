// JSON: strict reading with places, slices and limits; writing; the canonical form.
#include "support/support.h"

#include <deputy/json.h>
#include <dirent.h>
#include <float.h>
#include <math.h>
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

static void check_text(str got, str want) {
    if (!str_eq(got, want))
        fail_msg("got \"" STR_FMT "\", want \"" STR_FMT "\"", STR_ARG(got), STR_ARG(want));
}

static json *parse(arena *a, str text) {
    json *v = NULL;
    dep_err err;
    if (json_parse(a, text, 0, &v, &err) != DEP_OK) fail_msg("\"" STR_FMT "\": %s", STR_ARG(text), err.msg);
    return v;
}

static void check_refused(arena *a, str text, dep_status status, const char *msg) {
    json untouched, *v = &untouched;
    dep_err err = {0};
    dep_status got = json_parse(a, text, 0, &v, &err);
    if (got != status || strcmp(err.msg, msg) != 0)
        fail_msg("\"" STR_FMT "\": %s: %s", STR_ARG(text), err_name(got), err.msg);
    assert_ptr_equal(v, &untouched);
}

// --- The conformance suite. ---

// What we do where RFC 8259 leaves a choice. Numbers: what a double cannot hold exactly is rounded, what is
// larger than any double is refused. Text: no mark, no half surrogates, no bad UTF-8, no UTF-16, at most 256
// levels.
static const struct {
    const char *name;
    bool read;
} choices[] = {
    {"i_number_double_huge_neg_exp.json", true},
    {"i_number_huge_exp.json", false},
    {"i_number_neg_int_huge_exp.json", false},
    {"i_number_pos_double_huge_exp.json", false},
    {"i_number_real_neg_overflow.json", false},
    {"i_number_real_pos_overflow.json", false},
    {"i_number_real_underflow.json", true},
    {"i_number_too_big_neg_int.json", true},
    {"i_number_too_big_pos_int.json", true},
    {"i_number_very_big_negative_int.json", true},
    {"i_object_key_lone_2nd_surrogate.json", false},
    {"i_string_1st_surrogate_but_2nd_missing.json", false},
    {"i_string_1st_valid_surrogate_2nd_invalid.json", false},
    {"i_string_UTF-16LE_with_BOM.json", false},
    {"i_string_UTF-8_invalid_sequence.json", false},
    {"i_string_UTF8_surrogate_U+D800.json", false},
    {"i_string_incomplete_surrogate_and_escape_valid.json", false},
    {"i_string_incomplete_surrogate_pair.json", false},
    {"i_string_incomplete_surrogates_escape_valid.json", false},
    {"i_string_invalid_lonely_surrogate.json", false},
    {"i_string_invalid_surrogate.json", false},
    {"i_string_invalid_utf-8.json", false},
    {"i_string_inverted_surrogates_U+1D11E.json", false},
    {"i_string_iso_latin_1.json", false},
    {"i_string_lone_second_surrogate.json", false},
    {"i_string_lone_utf8_continuation_byte.json", false},
    {"i_string_not_in_unicode_range.json", false},
    {"i_string_overlong_sequence_2_bytes.json", false},
    {"i_string_overlong_sequence_6_bytes.json", false},
    {"i_string_overlong_sequence_6_bytes_null.json", false},
    {"i_string_truncated-utf-8.json", false},
    {"i_string_utf16BE_no_BOM.json", false},
    {"i_string_utf16LE_no_BOM.json", false},
    {"i_structure_500_nested_arrays.json", false},
    {"i_structure_UTF-8_BOM_empty_object.json", false},
};

// Both read an object that holds a key twice: RFC 8259 lets a reader choose, and json_parse refuses.
static bool holds_twins(const char *name) {
    return strncmp(name, "y_object_duplicated_key", 23) == 0;
}

static bool wanted(const char *name) {
    if (holds_twins(name)) return false;
    if (name[0] != 'i') return name[0] == 'y';
    for (size_t k = 0; k < sizeof choices / sizeof *choices; k++)
        if (strcmp(choices[k].name, name) == 0) return choices[k].read;
    fail_msg("no choice for %s", name);
    return false;
}

static void test_base_json__the_conformance_suite(void **state) {
    (void)state;
    char *folder = shared_path("realdata/json-suite/test_parsing");
    if (!folder) skip();
    DIR *d = opendir(folder);
    assert_non_null(d);
    arena *a = arena_new();
    size_t files = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        str file = read_all(str_fmt(a, "%s/%s", folder, e->d_name).p);
        json *v = NULL;
        dep_err err = {0};
        bool read = json_parse(a, file, 0, &v, &err) == DEP_OK;
        if (read != wanted(e->d_name)) fail_msg("%s: %s", e->d_name, read ? "read" : err.msg);
        if (!read && err.status == DEP_ERR_PARSE) assert_true(strncmp(err.msg, "line ", 5) == 0);
        bool with_twins = json_parse_twins(a, file, 0, &v, &err) == DEP_OK;
        if (with_twins != (read || holds_twins(e->d_name))) fail_msg("%s: with twins", e->d_name);
        free((char *)file.p);
        arena_reset(a);
        files++;
    }
    closedir(d);
    arena_free(a);
    free(folder);
    assert_true(files > 300);
}

// --- Reading. ---

static void test_base_json__values_of_every_kind(void **state) {
    str text = S(" {\"s\": \"x\\ny\", \"n\": -1.5e1, \"t\": true, \"f\": false, \"z\": null, \"a\": [1, [2], "
                 "{}], \"o\": {\"k\": 1}}\n");
    const json *v = parse(*state, text);
    assert_int_equal(v->kind, JSON_OBJECT);
    assert_int_equal(v->count, 7);
    check_text(v->raw, str_trim(text));
    check_text(json_str(v, S("s"), S("")), S("x\ny"));
    assert_true(json_num(v, S("n"), 0) == -15);
    assert_true(json_bool(v, S("t"), false));
    assert_false(json_bool(v, S("f"), true));
    assert_int_equal(json_get(v, S("z"))->kind, JSON_NULL);
    const json *a = json_get(v, S("a"));
    assert_int_equal(a->count, 3);
    check_text(a->raw, S("[1, [2], {}]"));
    check_text(json_at(a, 1)->raw, S("[2]"));
    check_text(json_at(a, 2)->raw, S("{}"));
    check_text(json_get(json_get(v, S("o")), S("k"))->raw, S("1"));
    check_text(json_get(v, S("s"))->raw, S("\"x\\ny\""));
    check_text(json_get(v, S("s"))->next->key, S("n"));
}

static void test_base_json__lookups_are_case_sensitive_and_have_defaults(void **state) {
    const json *v = parse(*state, S("{\"Key\": 1, \"key\": 2, \"s\": \"x\", \"b\": true}"));
    assert_true(json_num(v, S("Key"), 0) == 1 && json_num(v, S("key"), 0) == 2);
    assert_null(json_get(v, S("KEY")));
    check_text(json_str(v, S("key"), S("default")), S("default"));
    check_text(json_str(v, S("none"), S("default")), S("default"));
    assert_true(json_bool(v, S("s"), true));
    assert_true(json_num(v, S("b"), 7) == 7);
    assert_null(json_get(NULL, S("x")));
    assert_null(json_get(json_get(v, S("s")), S("x")));
    assert_null(json_at(v, 0));
    assert_null(json_at(NULL, 0));
    const json *a = parse(*state, S("[1,2]"));
    assert_non_null(json_at(a, 1));
    assert_null(json_at(a, 2));
    assert_null(json_get(a, S("0")));
}

static void test_base_json__strings_are_decoded(void **state) {
    static const struct {
        str text, want;
    } cases[] = {
        {S_INIT("\"\""), S_INIT("")},
        {S_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""), S_INIT("\"\\/\b\f\n\r\t")},
        {S_INIT("\"\\u00e9\\u4E2D\\ud83d\\uDE00\""), S_INIT("\u00E9\u4E2D\U0001F600")},
        {S_INIT("\"a\\u0000z\""), S_INIT("a\0z")},
        {S_INIT("\"\\u0000\""), S_INIT("\0")},
        {S_INIT("\"\\\\u0000\""), S_INIT("\\u0000")},
        {S_INIT("\"\\u0000\\\"\\u0000\\n\""), S_INIT("\0\"\0\n")},
        {S_INIT("\"caf\u00E9 \x7F\u2028\""), S_INIT("caf\u00E9 \x7F\u2028")},
        {S_INIT("\"\uFFFF\\uFFFE\""), S_INIT("\uFFFF\uFFFE")},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const json *v = parse(*state, cases[k].text);
        assert_int_equal(v->kind, JSON_STRING);
        check_text(v->s, cases[k].want);
    }
}

static void test_base_json__the_zero_character_cuts_neither_strings_nor_keys_nor_what_follows(void **state) {
    const json *v =
        parse(*state, S("{\"a\\u0000b\": \"x\\u0000y\", \"a\": 1, \"a\\u0000c\": [\"\\u0000\", 2]}"));
    assert_int_equal(v->count, 3);
    check_text(json_str(v, S("a\0b"), S("")), S("x\0y"));
    assert_true(json_num(v, S("a"), 0) == 1);
    assert_int_equal(json_get(v, S("a\0c"))->count, 2);
    check_text(json_get(v, S("a\0b"))->raw, S("\"x\\u0000y\""));
}

static void test_base_json__plain_strings_are_slices_of_the_text(void **state) {
    str text = S("[\"plain\"]");
    assert_ptr_equal(parse(*state, text)->child->s.p, text.p + 2);
}

static void test_base_json__numbers(void **state) {
    static const struct {
        str text;
        double want;
    } cases[] = {
        {S_INIT("0"), 0},
        {S_INIT("-0"), -0.0},
        {S_INIT("123"), 123},
        {S_INIT("0.1"), 0.1},
        {S_INIT("1e3"), 1000},
        {S_INIT("1E-2"), 0.01},
        {S_INIT("9007199254740993"), 9007199254740992.0},
        {S_INIT("1.7976931348623157e308"), DBL_MAX},
        {S_INIT("1e-400"), 0},
        // Longer than cJSON's own buffer.
        {S_INIT("0.1000000000000000000000000000000000000000000000000000000000000000000000000000000001"), 0.1},
        {S_INIT("100000000000000000000000000000000000000000000000000000000000000000000000"), 1e71},
        {S_INIT("-0.000000000000000000000000000000000000000000000000000000000000000000000000000001"), -1e-78},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        buf b = buf_new(*state, 0);
        buf_addf(&b, "[ " STR_FMT " , 5]", STR_ARG(cases[k].text));
        const json *v = parse(*state, buf_str(&b));
        if (v->child->num != cases[k].want) fail_msg("case %zu: %.17g", k, v->child->num);
        check_text(v->child->raw, cases[k].text);
        assert_true(v->child->next->num == 5);
    }
    check_refused(*state, S("[1,\n 1e309]"), DEP_ERR_PARSE, "line 2 column 2: the number is too large");
}

static void test_base_json__whole_numbers_within_bounds(void **state) {
    static const struct {
        str text;
        bool ok;
        int64_t want;
    } cases[] = {
        {S_INIT("0"), true, 0},
        {S_INIT("-0"), true, 0},
        {S_INIT("60"), true, 60},
        {S_INIT("6e1"), true, 60},
        {S_INIT("60.0"), true, 60},
        {S_INIT("60.5"), false, 0},
        {S_INIT("9007199254740993"), true, 9007199254740993},
        {S_INIT("9223372036854775807"), true, INT64_MAX},
        {S_INIT("9223372036854775808"), false, 0},
        {S_INIT("-9223372036854775808"), true, INT64_MIN},
        {S_INIT("-9223372036854775809"), false, 0},
        {S_INIT("1e19"), false, 0},
        {S_INIT("99999999999999999999"), false, 0},
        {S_INIT("\"60\""), false, 0},
        {S_INIT("true"), false, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int64_t n = 0;
        bool ok = json_int(parse(*state, cases[k].text), INT64_MIN, INT64_MAX, &n);
        if (ok != cases[k].ok || n != cases[k].want) fail_msg("case %zu: %d %lld", k, ok, (long long)n);
    }
    int64_t n;
    const json *v = parse(*state, S("5"));
    assert_true(json_int(v, 5, 5, &n));
    assert_false(json_int(v, 6, 9, &n));
    assert_false(json_int(v, 0, 4, &n));
    assert_false(json_int(NULL, 0, 9, &n));
}

// --- Refusing. ---

static void test_base_json__faults_are_named_with_their_place(void **state) {
    static const struct {
        str text;
        const char *msg;
    } cases[] = {
        {S_INIT(""), "line 1 column 1: the text ends too early"},
        {S_INIT(" \n"), "line 2 column 1: the text ends too early"},
        {S_INIT("{\"a\": 1,\n  b: 2}"), "line 2 column 3: a key in double quotes must stand here"},
        {S_INIT("{\"a\": 1,}"), "line 1 column 9: a key in double quotes must stand here"},
        {S_INIT("[1,]"), "line 1 column 4: a value must stand here"},
        {S_INIT("[1 2]"), "line 1 column 4: a comma or ] must stand here"},
        {S_INIT("{\"\u00E9\u4E2D\" 1}"), "line 1 column 7: a colon must follow the key"},
        {S_INIT("{\"a\": 1"), "line 1 column 8: the text ends too early"},
        {S_INIT("{} x"), "line 1 column 4: nothing may follow the value"},
        {S_INIT("{}{}"), "line 1 column 3: nothing may follow the value"},
        {S_INIT("[1] // note"), "line 1 column 5: nothing may follow the value"},
        {S_INIT("{}\0"), "line 1 column 3: nothing may follow the value"},
        {S_INIT("tru"), "line 1 column 1: a value must stand here"},
        {S_INIT("NaN"), "line 1 column 1: a value must stand here"},
        {S_INIT("01"), "line 1 column 2: nothing may follow the value"},
        {S_INIT("[-]"), "line 1 column 3: a digit must stand here"},
        {S_INIT("[1.]"), "line 1 column 4: a digit must follow the decimal point"},
        {S_INIT("[1e]"), "line 1 column 4: a digit must stand in the exponent"},
        {S_INIT("\"a\nb\""), "line 1 column 3: a control character in a string must be escaped"},
        {S_INIT("\"a\0b\""), "line 1 column 3: a control character in a string must be escaped"},
        {S_INIT("\"\\x\""), "line 1 column 2: unknown escape in a string"},
        {S_INIT("\"\\u12\""), "line 1 column 2: \\u needs four hexadecimal digits"},
        {S_INIT("\"\\ud800\""), "line 1 column 2: half of a surrogate pair stands alone"},
        {S_INIT("\"\\ud800\\n\""), "line 1 column 2: half of a surrogate pair stands alone"},
        {S_INIT("\"\\udc00\""), "line 1 column 2: half of a surrogate pair stands alone"},
        {S_INIT("\"abc"), "line 1 column 5: the text ends too early"},
        {S_INIT("\"abc\\"), "line 1 column 5: unknown escape in a string"},
        {S_INIT("[\"\xFF\"]"), "line 1 column 3: invalid UTF-8"},
        {S_INIT("\uFEFF{}"), "line 1 column 1: a byte order mark is not allowed"},
        {S_INIT("{\"a\": 1, \"a\": 2}"), "line 1 column 10: the key \"a\" is already at line 1 column 2"},
        {S_INIT("{\"a\": 1,\n \"b\": 2,\n \"\\u0061\": 3}"),
         "line 3 column 2: the key \"a\" is already at line 1 column 2"},
        {S_INIT("{\"b\": 1, \"a\": 1, \"b\": 2, \"a\": 2}"),
         "line 1 column 18: the key \"b\" is already at line 1 column 2"},
        {S_INIT("{\"x\": {\"a\\u001b\": 1, \"a\\u001b\": 2}}"),
         "line 1 column 22: the key \"a\\x1b\" is already at line 1 column 8"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_refused(*state, cases[k].text, DEP_ERR_PARSE, cases[k].msg);
}

static void test_base_json__equal_keys_of_different_objects_are_fine(void **state) {
    const json *v =
        parse(*state, S("{\"a\": {\"a\": {\"a\": 1}}, \"b\": {\"a\": 1}, \"A\": [{\"a\": 1}, {\"a\": 1}]}"));
    assert_int_equal(v->count, 3);
}

static void test_base_json__equal_keys_can_be_read_to_be_shown(void **state) {
    json *v;
    dep_err err;
    str text = S("{\"command\": \"ls\", \"a\": 0, \"command\": \"rm\"}");
    assert_int_equal(json_parse_twins(*state, text, 0, &v, &err), DEP_OK);
    assert_int_equal(v->count, 3);
    check_text(json_str(v, S("command"), S("")), S("ls"));
    buf b = buf_new(*state, 0);
    json_canonical(&b, v);
    check_text(buf_str(&b), S("{\"a\":0,\"command\":\"ls\",\"command\":\"rm\"}"));
}

static str nested(arena *a, size_t depth) {
    buf b = buf_new(a, 0);
    for (size_t k = 0; k < depth; k++) buf_add(&b, k % 2 ? S("{\"k\":") : S("["));
    buf_addc(&b, '1');
    for (size_t k = depth; k-- > 0;) buf_addc(&b, k % 2 ? '}' : ']');
    return buf_str(&b);
}

static void test_base_json__depth_is_limited(void **state) {
    const json *v = parse(*state, nested(*state, 256));
    size_t depth = 0;
    for (; v->child; v = v->child) depth++;
    assert_int_equal(depth, 256);
    check_refused(*state, nested(*state, 257), DEP_ERR_LIMIT,
                  "line 1 column 769: nested more than 256 levels deep");
}

static void test_base_json__size_is_limited(void **state) {
    json *v;
    dep_err err;
    str text = S("[1,2,3]");
    assert_int_equal(json_parse(*state, text, 7, &v, &err), DEP_OK);
    assert_int_equal(json_parse(*state, text, 6, &v, &err), DEP_ERR_LIMIT);
    assert_string_equal(err.msg, "7 bytes of JSON, the limit is 6");
    // Never read, so it may be shorter than it says.
    assert_int_equal(json_parse(*state, str_n(text.p, JSON_SIZE_MAX + 1), 0, &v, NULL), DEP_ERR_LIMIT);
}

static void test_base_json__the_number_of_values_is_limited(void **state) {
    buf b = buf_new(*state, 0);
    buf_addc(&b, '[');
    for (size_t k = 2; k < JSON_VALUES_MAX; k++) buf_add(&b, S("1,"));
    buf_add(&b, S("1]"));
    assert_int_equal(parse(*state, buf_str(&b))->count, JSON_VALUES_MAX - 1);
    b.n--;
    buf_add(&b, S(",1]"));
    json *v;
    assert_int_equal(json_parse(*state, buf_str(&b), 0, &v, NULL), DEP_ERR_LIMIT);
}

// --- Running out of memory. ---

typedef struct {
    size_t left; // blocks given before the first refusal
} meagre;

static void *meagre_alloc(void *ctx, size_t n) {
    meagre *m = ctx;
    return m->left-- > 0 ? malloc(n) : (m->left = 0, (void *)NULL);
}

static void meagre_free(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

static dep_status parse_caught(arena *a, str text, dep_err *err) {
    ARENA_CATCH(a, err);
    json *v;
    return json_parse(a, text, 0, &v, err);
}

static void test_base_json__without_memory_it_says_so_and_leaks_nothing(void **state) {
    (void)state;
    str text = S("{\"a\\n\": [1, \"x\\u0000y\", {\"b\": null}], \"c\": \"d\\te\"}");
    dep_status st = DEP_ERR_NOMEM;
    size_t n = 1;
    for (; st != DEP_OK && n < 1000; n++) {
        meagre m = {n};
        arena *a = arena_new_from(&(arena_source){meagre_alloc, meagre_free, &m, NULL}, true);
        if (!a) continue;
        dep_err err;
        st = parse_caught(a, text, &err);
        assert_true(st == DEP_OK || st == DEP_ERR_NOMEM);
        arena_free(a);
    }
    assert_int_equal(st, DEP_OK);
    assert_true(n > 10);
}

// --- Writing. ---

static void test_base_json__the_writer_puts_commas_where_they_belong(void **state) {
    buf b = buf_new(*state, 0);
    jw w = jw_new(&b);
    jw_obj(&w);
    jw_kstr(&w, S("s"), S("a\"b"));
    jw_kint(&w, S("i"), -5);
    jw_kbool(&w, S("t"), true);
    jw_key(&w, S("a"));
    jw_arr(&w);
    jw_null(&w);
    jw_obj(&w);
    jw_end_obj(&w);
    jw_arr(&w);
    jw_end_arr(&w);
    jw_raw(&w, S("{\"r\":1}"));
    jw_bool(&w, false);
    jw_end_arr(&w);
    jw_key(&w, S("n"));
    jw_num(&w, 0.5);
    jw_end_obj(&w);
    check_text(buf_str(&b),
               S("{\"s\":\"a\\\"b\",\"i\":-5,\"t\":true,\"a\":[null,{},[],{\"r\":1},false],\"n\":0.5}"));
    assert_int_equal(w.depth, 0);
    parse(*state, buf_str(&b));
}

static void test_base_json__quoted_text_reads_back(void **state) {
    static const struct {
        str text, want;
    } cases[] = {
        {S_INIT(""), S_INIT("\"\"")},
        {S_INIT("a/b"), S_INIT("\"a/b\"")},
        {S_INIT("\"\\\b\f\n\r\t"), S_INIT("\"\\\"\\\\\\b\\f\\n\\r\\t\"")},
        {S_INIT("\0\x1F\x7F"), S_INIT("\"\\u0000\\u001f\x7F\"")},
        {S_INIT("caf\u00E9 \U0001F600"), S_INIT("\"caf\u00E9 \U0001F600\"")},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        buf b = buf_new(*state, 0);
        json_quote(&b, cases[k].text);
        check_text(buf_str(&b), cases[k].want);
        check_text(parse(*state, buf_str(&b))->s, cases[k].text);
    }
    buf b = buf_new(*state, 0);
    json_quote(&b, S("x\xFF\xE6\x96y\xED\xA0\x80"));
    check_text(buf_str(&b), S("\"x\uFFFD\uFFFD\uFFFDy\uFFFD\uFFFD\uFFFD\""));
}

static void test_base_json__numbers_are_written_short_and_read_back_equal(void **state) {
    static const struct {
        double v;
        const char *want;
    } cases[] = {
        {0, "0"},
        {-0.0, "0"},
        {1, "1"},
        {-60, "-60"},
        {1e15, "1000000000000000"},
        {9007199254740992.0, "9007199254740992"},
        {0.1, "0.1"},
        {0.3, "0.3"},
        {0.1 + 0.2, "0.30000000000000004"},
        {1.0 / 3, "0.3333333333333333"},
        {1e21, "1e21"},
        {1.5e300, "1.5e300"},
        {5e-324, "5e-324"},
        {2.2250738585072011e-308, "2.225073858507201e-308"},
        {1e-7, "1e-7"},
        {-1.25e-10, "-1.25e-10"},
        {DBL_MAX, "1.7976931348623157e308"},
        {NAN, "null"},
        {INFINITY, "null"},
        {-INFINITY, "null"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        buf b = buf_new(*state, 0);
        jw w = jw_new(&b);
        jw_num(&w, cases[k].v);
        check_text(buf_str(&b), str_z(cases[k].want));
        if (isfinite(cases[k].v)) assert_true(parse(*state, buf_str(&b))->num == cases[k].v);
    }
    buf b = buf_new(*state, 0);
    jw w = jw_new(&b);
    jw_arr(&w);
    jw_int(&w, INT64_MIN);
    jw_int(&w, INT64_MAX);
    jw_end_arr(&w);
    check_text(buf_str(&b), S("[-9223372036854775808,9223372036854775807]"));
}

static str canonical(arena *a, str text) {
    buf b = buf_new(a, 0);
    json_canonical(&b, parse(a, text));
    return buf_str(&b);
}

static void test_base_json__the_canonical_form_is_one_for_equal_documents(void **state) {
    static const struct {
        str text, want;
    } cases[] = {
        {S_INIT(" { \"b\" : [ 1 , 2.0, 1e2 ] , \"a\" : \"\\u0041\\/\" , \"\" : { } } "),
         S_INIT("{\"\":{},\"a\":\"A/\",\"b\":[1,2,100]}")},
        {S_INIT("{\"\u00E9\": 1, \"z\": 2, \"Z\": 3, \"a\\u0000b\": 4, \"a\": 5}"),
         S_INIT("{\"Z\":3,\"a\":5,\"a\\u0000b\":4,\"z\":2,\"\u00E9\":1}")},
        {S_INIT("[true, false, null, \"\", -0, 0.10]"), S_INIT("[true,false,null,\"\",0,0.1]")},
        // Different numbers stay different, also beyond what a double can tell apart.
        {S_INIT("[9007199254740993, 9223372036854775807, 99999999999999999999, 99999999999999999998]"),
         S_INIT("[9007199254740993,9223372036854775807,99999999999999999999,99999999999999999998]")},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        str once = canonical(*state, cases[k].text);
        check_text(once, cases[k].want);
        check_text(canonical(*state, once), once);
    }
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest cases[] = {
        CASE(test_base_json__the_conformance_suite),
        CASE(test_base_json__values_of_every_kind),
        CASE(test_base_json__lookups_are_case_sensitive_and_have_defaults),
        CASE(test_base_json__strings_are_decoded),
        CASE(test_base_json__the_zero_character_cuts_neither_strings_nor_keys_nor_what_follows),
        CASE(test_base_json__plain_strings_are_slices_of_the_text),
        CASE(test_base_json__numbers),
        CASE(test_base_json__whole_numbers_within_bounds),
        CASE(test_base_json__faults_are_named_with_their_place),
        CASE(test_base_json__equal_keys_of_different_objects_are_fine),
        CASE(test_base_json__equal_keys_can_be_read_to_be_shown),
        CASE(test_base_json__depth_is_limited),
        CASE(test_base_json__size_is_limited),
        CASE(test_base_json__the_number_of_values_is_limited),
        CASE(test_base_json__without_memory_it_says_so_and_leaks_nothing),
        CASE(test_base_json__the_writer_puts_commas_where_they_belong),
        CASE(test_base_json__quoted_text_reads_back),
        CASE(test_base_json__numbers_are_written_short_and_read_back_equal),
        CASE(test_base_json__the_canonical_form_is_one_for_equal_documents),
    };
    return cmocka_run_group_tests_name("base_json", cases, NULL, NULL);
}

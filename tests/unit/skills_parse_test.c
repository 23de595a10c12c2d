// One SKILL.md: which texts are read, which are refused and why, and what a lenient reading says about its
// losses.
#include "support/support.h"
#include <deputy/skills.h>
#include <deputy/sys.h>
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

typedef struct {
    bool ok;
    skill s;
    diags d;
} outcome;

static outcome parse(arena *a, str text, const char *folder) {
    outcome o = {.d = diags_new(a)};
    o.ok = skill_parse(a, S("skills/x/SKILL.md"), text, str_z(folder), &o.s, &o.d);
    return o;
}

// The codes in order, each with its line: "SKL007:2 SKL019".
static const char *codes(arena *a, const outcome *o) {
    buf b = buf_new(a, 0);
    for (vec_each(const diag, d, &o->d.items)) {
        buf_addf(&b, "%s%s", b.n ? " " : "", d->code);
        if (d->line) buf_addf(&b, ":%u", d->line);
    }
    return buf_str(&b).p;
}

static str repeated(arena *a, const char *piece, size_t n) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < n; i++) buf_add(&b, str_z(piece));
    return str_dup(a, buf_str(&b));
}

#define HEAD "---\nname: tide-table\ndescription: Reads tables.\n---\n"

static void test_skills_parse__a_plain_skill_is_read_without_a_word(void **state) {
    arena *a = *state;
    str text = S(HEAD "# Tides\n\nRead the table.\n");
    outcome o = parse(a, text, "tide-table");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "");
    assert_true(str_eq(o.s.name, S("tide-table")));
    assert_true(str_eq(o.s.description, S("Reads tables.")));
    assert_true(str_eq(o.s.body, S("# Tides\n\nRead the table.\n")));
    assert_true(str_eq(o.s.sha256, sha256_hex(a, text)));
    assert_false(o.s.hidden);
    assert_true(str_empty(o.s.grants_nothing));
}

// C04, C05, C07, C08: what stands around the frontmatter.
static void test_skills_parse__fences_line_ends_and_marks(void **state) {
    arena *a = *state;
    const struct {
        str text;
        bool ok;
        const char *codes;
        str body;
    } cases[] = {
        {S("\xEF\xBB\xBF" HEAD "body"), true, "", S("body")},
        {S("\xEF\xBB\xBF\xEF\xBB\xBF" HEAD "body"), true, "SKL017:1", S("body")},
        {S("---\r\nname: tide-table\r\ndescription: Reads tables.\r\n---\r\nbody\r\n"), true, "",
         S("body\r\n")},
        {S("---\nname: tide-table\r\ndescription: Reads tables.\n---\r\nbody"), true, "", S("body")},
        {S("--- \t\nname: tide-table\ndescription: Reads tables.\n---  \nbody"), true, "", S("body")},
        {S("---\nname: tide-table\ndescription: Reads tables.\n---"), true, "SKL019", S("")},
        {S(HEAD), true, "SKL019", S("")},
        {S(HEAD "a\n---\nb\n---\n"), true, "", S("a\n---\nb\n---\n")},
        {S(HEAD "```\n---\nname: other\n---\n```\n"), true, "", S("```\n---\nname: other\n---\n```\n")},
        {S("---\nname: tide-table\ndescription: |\n  Reads\n  --- tables.\n---\nbody"), true, "", S("body")},
        {S("---\nname: tide-table\ndescription: Reads tables.\n----\nbody"), false, "SKL002:1", S("")},
        {S("---\nname: tide-table\ndescription: Reads tables.\n"), false, "SKL002:1", S("")},
        {S("---"), false, "SKL002:1", S("")},
        {S("---\rname: tide-table\rdescription: Reads tables.\r---\rbody"), false, "SKL001:1", S("")},
        {S("\n" HEAD "body"), false, "SKL001:2", S("")},
        {S("<!-- licence -->\n" HEAD), false, "SKL001:2", S("")},
        {S("# Title\n\n```yaml\n---\nname: x\n---\n```\n"), false, "SKL001:4", S("")},
        {S("# Title\n"), false, "SKL001:1", S("")},
        {S(""), false, "SKL001:1", S("")},
        {S("\xEF\xBB\xBF"), false, "SKL001:1", S("")},
        {S("\xFF\xFE-\0-\0-\0"), false, "SKL001", S("")},
        {S("---\n---\nbody"), false, "SKL005 SKL004", S("")},
        {S("----\nname: x\n---\n"), false, "SKL001:3", S("")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = parse(a, cases[i].text, "tide-table");
        if (o.ok != cases[i].ok || strcmp(codes(a, &o), cases[i].codes) != 0)
            fail_msg("case %zu: %d %s", i, o.ok, codes(a, &o));
        if (!o.ok) continue;
        assert_true(str_eq(o.s.body, cases[i].body));
        assert_true(str_eq(o.s.name, S("tide-table")));
        assert_true(str_starts(o.s.description, S("Reads")));
        assert_true(str_find(o.s.description, S("\r")) == SIZE_MAX);
    }
}

static void test_skills_parse__invalid_bytes_are_told_and_replaced(void **state) {
    arena *a = *state;
    outcome o = parse(a, S("---\nname: tide-table\ndescription: caf\xE9\n---\nbody \xC3\n"), "tide-table");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL017:3");
    assert_true(str_eq(o.s.description, S("caf\uFFFD")));
    assert_true(str_eq(o.s.body, S("body \uFFFD\n")));
}

// C01 and C02: values that YAML refuses.
static void test_skills_parse__a_colon_in_a_plain_value_is_text_with_a_warning(void **state) {
    arena *a = *state;
    outcome o =
        parse(a,
              S("---\nname: tide-reader\ndescription: Use when reading tables: heights, times and moons\n"
                "allowed-tools: Read, Grep\n---\nBody"),
              "tide-reader");
    assert_true(o.ok);
    assert_true(str_eq(o.s.description, S("Use when reading tables: heights, times and moons")));
    assert_true(str_eq(o.s.name, S("tide-reader")));
    assert_true(str_eq(o.s.grants_nothing, S("allowed-tools")));
    assert_true(str_eq(o.s.body, S("Body")));
    assert_int_equal(o.d.errors, 0);
    bool yaml = false, ours = false;
    for (vec_each(const diag, d, &o.d.items)) {
        yaml |= str_starts(str_z(d->code), S("YAML")) && d->line == 3;
        ours |= strcmp(d->code, "SKL003") == 0 && d->line == 3;
    }
    assert_true(yaml && ours);
}

static void test_skills_parse__what_is_not_yaml_is_read_line_by_line(void **state) {
    arena *a = *state;
    const struct {
        const char *front, *name, *description;
    } cases[] = {
        {"name: shell-sorter\ndescription: Sorts shells.\n\nExamples:\n<example>\nuser: \"sort "
         "these\"\nassistant: "
         "\"sorting\"\n</example>\nmodel: small\n",
         "shell-sorter",
         "Sorts shells. Examples: <example> user: \"sort these\" assistant: \"sorting\" </example>"},
        {"name: a\ndescription: \"Quoted: \\\"x\\\"\" and: more\nversion: 1\n", "a",
         "\"Quoted: \\\"x\\\"\" and: more"},
        {"description: x: y\nname: 'it''s'\n", "it's", "x: y"},
        {"name: a\ndescription: >-\n  folded\n  text\nlicense: x: y\n", "a", "folded text"},
        {"name: a\ndescription: |\n    kept\n      more\nlicense: x: y\n", "a", "kept more"},
        {"name: a\n# a comment\ndescription: x: y\n# another: one\n", "a", "x: y"},
        {"name: a\ndescription: [x: y\n", "a", "[x: y"},
        {"name: a\ndescription: @x\n", "a", "@x"},
        {"\tname: b\nname: a\ndescription: x: y\n", "a", "x: y"},
        {"name: a\r\ndescription: x: y\r\nlicense: MIT\r\n", "a", "x: y"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = parse(a, str_fmt(a, "---\n%s---\nbody", cases[i].front), "");
        if (!o.ok || !str_eq(o.s.name, str_z(cases[i].name)) ||
            !str_eq(o.s.description, str_z(cases[i].description)))
            fail_msg("case %zu: %d %s|" STR_FMT "|" STR_FMT, i, o.ok, codes(a, &o), STR_ARG(o.s.name),
                     STR_ARG(o.s.description));
        assert_non_null(strstr(codes(a, &o), "SKL003"));
        assert_int_equal(o.d.errors, 0);
    }
}

static void test_skills_parse__names_against_the_rules_are_warned_about_and_used(void **state) {
    arena *a = *state;
    const struct {
        str name;
        const char *codes;
    } cases[] = {
        {S("tide-table"), ""},
        {S("a"), ""},
        {S("x2"), ""},
        {S("退款"), ""},
        {S("Tide"), "SKL007:2"},
        {S("tide_table"), "SKL007:2"},
        {S("tide table"), "SKL007:2"},
        {S("-tide"), "SKL007:2"},
        {S("tide-"), "SKL007:2"},
        {S("tide--table"), "SKL007:2"},
        {S("a/../b"), "SKL007:2"},
        {S("plugin:tide"), "SKL007:2"},
        {repeated(a, "a", 64), ""},
        {repeated(a, "a", 65), "SKL007:2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str text = str_fmt(a, "---\nname: " STR_FMT "\ndescription: d\n---\nb", STR_ARG(cases[i].name));
        outcome o = parse(a, text, str_cz(a, cases[i].name));
        assert_true(o.ok);
        assert_true(str_eq(o.s.name, cases[i].name));
        if (strcmp(codes(a, &o), cases[i].codes) != 0) fail_msg("case %zu: %s", i, codes(a, &o));
    }
}

static void test_skills_parse__a_missing_name_is_the_folders(void **state) {
    arena *a = *state;
    const char *fronts[] = {"", "name:\n", "name: ''\n", "name: ~\n", "name: \"\\u200B\"\n"};
    for (size_t i = 0; i < 5; i++) {
        str text = str_fmt(a, "---\n%sdescription: d\n---\nb", fronts[i]);
        outcome o = parse(a, text, "tide-table");
        assert_true(o.ok);
        assert_true(str_eq(o.s.name, S("tide-table")));
        assert_non_null(strstr(codes(a, &o), "SKL005"));
        o = parse(a, text, "");
        assert_false(o.ok);
        assert_non_null(strstr(codes(a, &o), "SKL006"));
    }
    outcome o = parse(a, S("---\nname: {first: x}\ndescription: d\n---\nb"), "tide-table");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL020:2 SKL005:2");
}

static void test_skills_parse__name_and_folder_compare_in_compatible_form(void **state) {
    arena *a = *state;
    outcome o = parse(a, S("---\nname: e\u0301tude\ndescription: d\n---\nb"), "\u00E9tude");
    assert_true(o.ok);
    assert_null(strstr(codes(a, &o), "SKL008"));
    o = parse(a, S("---\nname: tide-table\ndescription: d\n---\nb"), "Tide Table");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL008:2");
}

static void test_skills_parse__a_description_is_needed_and_cut_after_1024_characters(void **state) {
    arena *a = *state;
    const char *none[] = {"",
                          "description:\n",
                          "description: ''\n",
                          "description: \"  \"\n",
                          "description: [a, b]\n",
                          "description: {a: b}\n",
                          "descripton: x\n"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        outcome o = parse(a, str_fmt(a, "---\nname: a\n%s---\nb", none[i]), "a");
        assert_false(o.ok);
        assert_non_null(strstr(codes(a, &o), "SKL004"));
        assert_true(str_eq(o.s.name, S("a")));
        if (i == 6) assert_true(str_find(o.d.items.p[0].hint, S("descripton")) != SIZE_MAX);
    }
    str fits = repeated(a, "ü", SKILL_DESCRIPTION_MAX);
    outcome o = parse(a, str_fmt(a, "---\nname: a\ndescription: " STR_FMT "\n---\nb", STR_ARG(fits)), "a");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "");
    assert_true(str_eq(o.s.description, fits));
    o = parse(a, str_fmt(a, "---\nname: a\ndescription: x" STR_FMT "\n---\nb", STR_ARG(fits)), "a");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL009:3");
    assert_int_equal(utf8_count(o.s.description), SKILL_DESCRIPTION_MAX);
    assert_true(str_ends(o.s.description, S("ü…")));
    o = parse(a, S("---\nname: a\ndescription: >\n  two\n  lines\n\n  and a third\n---\nb"), "a");
    assert_true(str_eq(o.s.description, S("two lines and a third")));
}

static void test_skills_parse__keys_that_grant_elsewhere_grant_nothing_and_are_named(void **state) {
    arena *a = *state;
    outcome o =
        parse(a,
              S("---\nname: a\ndescription: d\nallowed-tools: Bash(git:*), Read\nlicense: MIT\nhooks:\n  "
                "PreToolUse: []\nmetadata:\n  model: x\nmodel: opus\nagent: helper\n---\nb"),
              "a");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL011:4");
    assert_true(str_eq(o.s.grants_nothing, S("allowed-tools, hooks, model, agent")));
    assert_int_equal(o.d.items.p[0].severity, SEV_NOTE);
}

static void test_skills_parse__a_doubled_key_counts_once(void **state) {
    arena *a = *state;
    outcome o = parse(a, S("---\nname: a\ndescription: one\nname: b\ndescription: two\n---\nb"), "a");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL010:4 SKL010:5");
    assert_true(str_eq(o.s.name, S("a")));
    assert_true(str_eq(o.s.description, S("one")));
}

// The one key that restricts is read towards the restriction.
static void test_skills_parse__a_skill_is_hidden_when_in_doubt(void **state) {
    arena *a = *state;
    const struct {
        const char *line;
        bool hidden, told;
    } cases[] = {
        {"disable-model-invocation: true", true, false},
        {"disable-model-invocation: TRUE", true, false},
        {"disable-model-invocation: \"true\"", true, false},
        {"disable-model-invocation: false", false, false},
        {"disable-model-invocation: yes", true, true},
        {"disable-model-invocation:", true, true},
        {"disable-model-invocation: [true]", true, true},
        {"disable_model_invocation: true", true, true},
        {"disableModelInvocation: true", true, true},
        {"disable-model-invokation: true", true, true},
        {"disable-model-invocation: false\ndisable-model-invocation: true", true, false},
        {"user-invocable: false", false, false},
        {"x: y: z\ndisable-model-invocation: true", true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        outcome o = parse(a, str_fmt(a, "---\nname: a\ndescription: d\n%s\n---\nb", cases[i].line), "a");
        assert_true(o.ok);
        bool told = strstr(codes(a, &o), "SKL021") != NULL;
        if (o.s.hidden != cases[i].hidden || told != cases[i].told) fail_msg("%s", cases[i].line);
    }
}

// C69.
static void test_skills_parse__invisible_text_is_told_and_emoji_are_not(void **state) {
    arena *a = *state;
    outcome o =
        parse(a, S("---\nname: a\ndescription: pay\u200B\u200Bments\n---\nb\n\U000E0068\U000E0069\n"), "a");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "SKL016:3 SKL016:6");
    assert_true(str_find(o.d.items.p[0].msg, S("2 invisible characters U+200B")) != SIZE_MAX);
    assert_true(str_find(o.d.items.p[1].msg, S("\"hi\"")) != SIZE_MAX);
    o = parse(a,
              S("---\nname: a\ndescription: \U0001F468\u200D\U0001F469\u200D\U0001F467 family\n---\n"
                "\U0001F3F4\U000E0067\U000E0062\U000E0065\U000E006E\U000E0067\U000E007F\n"),
              "a");
    assert_true(o.ok);
    assert_string_equal(codes(a, &o), "");
}

static void test_skills_parse__diagnostics_stand_on_the_lines_of_the_file(void **state) {
    arena *a = *state;
    outcome o = parse(a, S("\xEF\xBB\xBF---\r\n# note\r\nname: Tide\r\ndescription: d\r\n---\r\nb"), "Tide");
    assert_string_equal(codes(a, &o), "SKL007:3");
    assert_true(str_eq(o.d.items.p[0].source, S("name: Tide")));
    assert_int_equal(o.d.items.p[0].column, 1);
    assert_true(str_eq(o.d.items.p[0].file, S("skills/x/SKILL.md")));
}

static void test_skills_parse__the_table_of_keys_holds_what_the_reader_reads(void **state) {
    (void)state;
    const char *read[] = {"name",  "description", "disable-model-invocation", "allowed-tools", "hooks",
                          "model", "agent"};
    for (size_t i = 0; i < sizeof read / sizeof *read; i++) {
        bool there = false;
        for (const key_row *r = skill_keys()->rows; r->name; r++) there |= strcmp(r->name, read[i]) == 0;
        assert_true(there);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_skills_parse__a_plain_skill_is_read_without_a_word),
        T(test_skills_parse__fences_line_ends_and_marks),
        T(test_skills_parse__invalid_bytes_are_told_and_replaced),
        T(test_skills_parse__a_colon_in_a_plain_value_is_text_with_a_warning),
        T(test_skills_parse__what_is_not_yaml_is_read_line_by_line),
        T(test_skills_parse__names_against_the_rules_are_warned_about_and_used),
        T(test_skills_parse__a_missing_name_is_the_folders),
        T(test_skills_parse__name_and_folder_compare_in_compatible_form),
        T(test_skills_parse__a_description_is_needed_and_cut_after_1024_characters),
        T(test_skills_parse__keys_that_grant_elsewhere_grant_nothing_and_are_named),
        T(test_skills_parse__a_doubled_key_counts_once),
        T(test_skills_parse__a_skill_is_hidden_when_in_doubt),
        T(test_skills_parse__invisible_text_is_told_and_emoji_are_not),
        T(test_skills_parse__diagnostics_stand_on_the_lines_of_the_file),
        T(test_skills_parse__the_table_of_keys_holds_what_the_reader_reads),
    };
    return cmocka_run_group_tests_name("skills_parse", tests, NULL, NULL);
}

// Parsing of definitions: one table of small files and the codes they must give, then the cases that need a
// closer look.
#include "support/support.h"
#include <deputy/assets.h>
#include <deputy/definition.h>
#include <deputy/utf8.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    arena *a;
    definition def;
    ydoc *doc;
    diags d;
} parsed;

static parsed parse(const char *base, str bytes, bool strict) {
    parsed p = {.a = arena_new()};
    dep_err err;
    p.d = diags_new(p.a);
    assert_int_equal(definition_parse(p.a, str_fmt(p.a, ".deputy/agents/%s", base), str_z(base),
                                      LAYER_WORKSPACE, bytes, strict, &p.def, &p.doc, &p.d, &err),
                     DEP_OK);
    return p;
}

static bool has_code(const diags *d, const char *code, diag_severity sev) {
    for (vec_each(const diag, it, &d->items))
        if (str_eq(str_z(it->code), str_z(code)) && it->severity == sev) return true;
    return false;
}

static void dump(const diags *d) {
    for (vec_each(const diag, it, &d->items))
        printf("  %s %s line %u: %.*s / %.*s\n", diag_severity_name(it->severity), it->code, it->line,
               STR_ARG(it->msg), STR_ARG(it->hint));
}

#define HEAD "name: x\ndescription: d\nprompt: p\n"

static void test_definition_parse__each_fault_has_its_code_and_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *code;
        diag_severity sev;
        uint32_t line;
        const char *hint; // part of the hint or message
    } cases[] = {
        {HEAD "tools: [raed]\n", "DEF004", SEV_ERROR, 4, "read"},
        {HEAD "tools: [read_file]\n", "DEF005", SEV_ERROR, 4, "`read`"},
        {HEAD "tools: [TodoWrite]\n", "DEF005", SEV_ERROR, 4, "`todo`"},
        {HEAD "tools: [Task]\n", "DEF005", SEV_ERROR, 4, "delegate"},
        {HEAD "tools: [Agent]\n", "DEF005", SEV_ERROR, 4, "delegate"},
        {HEAD "tools: [mcp__crm__find]\n", "DEF005", SEV_ERROR, 4, "mcp.servers"},
        {HEAD "tools: [mcp]\n", "DEF005", SEV_ERROR, 4, "mcp.servers"},
        {HEAD "tools: [kb_search]\n", "DEF005", SEV_ERROR, 4, "knowledge"},
        {HEAD "tools: [memory_write]\n", "DEF005", SEV_ERROR, 4, "memory"},
        {HEAD "tools: ['Bash(git:*)', read]\n", "DEF006", SEV_ERROR, 4, "permissions.run"},
        {HEAD "tools: Read, Bash(git add:*, git commit:*), Grep\n", "DEF006", SEV_ERROR, 4,
         "permissions.run"},
        {HEAD "tools: All\n", "KEY004", SEV_ERROR, 4, "tools: all"},
        {HEAD "tools: [all]\n", "KEY004", SEV_ERROR, 4, "tools: all"},
        {HEAD "tools: [read, all]\n", "KEY004", SEV_ERROR, 4, "tools: all"},
        {HEAD "tools: all\n", "DEF008", SEV_ERROR, 4, "resident"},
        {HEAD "tools: [read]\nresident: [bash]\n", "DEF009", SEV_ERROR, 5, "resident"},
        {HEAD "tools: [read]\nresident: [raed]\n", "DEF009", SEV_ERROR, 5, "read"},
        {HEAD, "DEF010", SEV_ERROR, 0, "tools"},
        {HEAD "tools: [glob]\nknowledge: [{name: M, path: 'd/**'}]\n", "DEF011", SEV_WARNING, 0, "read"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: /etc/**}]\n", "DEF012", SEV_ERROR, 5, "relative"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: ../x/**}]\n", "DEF012", SEV_ERROR, 5, "relative"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: 'm.pdf'}]\n", "DEF013", SEV_WARNING, 5, "text"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: a}, {name: M, path: b}]\n", "DEF014", SEV_ERROR, 5,
         "name"},
        {HEAD "tools: [read, use_skill]\n", "DEF015", SEV_WARNING, 4, "skills"},
        {HEAD "tools: [read]\nlimits: {cost: 0.0000001}\n", "KEY002", SEV_ERROR, 5, "6 digits"},
        {HEAD "tools: [read]\nlimits: {tokens: unlimited}\n", "KEY002", SEV_ERROR, 5, "whole number"},
        {HEAD "tools: [read]\nmaxTurns: unlimited\n", "KEY002", SEV_ERROR, 5, "whole number"},
        {HEAD "tools: [read]\nlimits: {cost: free}\n", "KEY002", SEV_ERROR, 5, "number"},
        {HEAD "tools: [read]\nlimits: {cost: 0}\n", "KEY003", SEV_ERROR, 5, "more than 0"},
        {HEAD "tools: [read]\nlimits: {cost: 1000000.5}\n", "KEY003", SEV_ERROR, 5, "1000000"},
        {HEAD "tools: [read]\nlimits: {cost: 1e3}\n", "KEY002", SEV_ERROR, 5, "0.50"},
        {HEAD "tools: [read]\nmodel: sonnet\n", "DEF019", SEV_ERROR, 5, "provider/model"},
        {HEAD "tools: [read]\nmcp: {servers: [a, {name: a, readonly: true}]}\n", "DEF016", SEV_ERROR, 5,
         "twice"},
        {HEAD "tools: [read]\nmcp: {servers: 'a a'}\n", "DEF016", SEV_ERROR, 5, "twice"},
        {HEAD "tools: [bash]\npermissions: {run: 'git, npm'}\n", "DEF020", SEV_ERROR, 5, "list"},
        {HEAD "tools: [read]\npermissions: {read: ['docs/**']}\n", "DEF017", SEV_ERROR, 5, "folder"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: a, exclude: ../b}]\n", "DEF012", SEV_ERROR, 5,
         "relative"},
        {HEAD "tools: [read, WebFetch]\n", "DEF024", SEV_NOTE, 4, "send it out"},
        {HEAD "tools: [bash]\n", "DEF024", SEV_NOTE, 4, "send it out"},
        {HEAD "tools: [grep]\n", "DEF025", SEV_NOTE, 4, "whole workspace"},
        {HEAD "tools: [read]\npermissions: {read: [../up]}\n", "DEF022", SEV_ERROR, 5, "relative"},
        {HEAD "tools: [read, bash]\npermissions: {read: [docs]}\n", "DEF029", SEV_WARNING, 5, "run"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: a, encoding: klingon}]\n", "DEF028", SEV_ERROR, 5,
         "UTF-8"},
        {"name: x\ndescription: ''\nprompt: p\ntools: [read]\n", "DEF003", SEV_WARNING, 2, "main agent"},
        {"name: x\ndescription: ' '\nprompt: p\ntools: [read]\n", "DEF003", SEV_WARNING, 2, "main agent"},
        {"name: x\ndescription: d\nprompt: ' '\ntools: [read]\n", "DEF027", SEV_ERROR, 3, "prompt"},
        {"name: '../x'\ndescription: d\nprompt: p\ntools: [read]\n", "DEF002", SEV_ERROR, 1, "name"},
        {"name: all\ndescription: d\nprompt: p\ntools: [read]\n", "DEF002", SEV_ERROR, 1, "reserved"},
        {"description: d\nprompt: p\ntools: [read]\n", "DEF001", SEV_WARNING, 0, "x"},
        {"name: x\nprompt: p\ntools: [read]\n", "KEY005", SEV_ERROR, 0, "description"},
        {"name: x\ndescription: d\ntools: [read]\n", "KEY005", SEV_ERROR, 0, "prompt"},
        {HEAD "tools: [read]\nmaxTurns: 0\n", "KEY003", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmaxTurns: 60.5\n", "KEY002", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmaxTurns: 0x3C\n", "KEY002", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmaxTurns: -1\n", "KEY003", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmaxTurns: 1e2\n", "KEY002", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmaxTurns: 10001\n", "KEY003", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmaxTurns: 99999999999999999999\n", "KEY003", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nmemory: yes\n", "KEY004", SEV_ERROR, 5, ""},
        {HEAD "tools: [read]\nfavourite: 1\n", "KEY001", SEV_WARNING, 5, ""},
        {HEAD "tools: [read]\npermisions: {read: [a]}\n", "KEY008", SEV_ERROR, 5, "permissions"},
        {HEAD "tools: [read]\nknowledge: [{name: M, path: a, exlude: b}]\n", "KEY008", SEV_ERROR, 5,
         "exclude"},
        {HEAD "tools: [read]\npermissions: {read: [a], exec: [b]}\n", "KEY008", SEV_ERROR, 5,
         "here every key"},
        {HEAD "tools: [read]\nmcp: {server: [a]}\n", "KEY008", SEV_ERROR, 5, "servers"},
        {HEAD "tools: [read]\nlimits: {minute: 3}\n", "KEY008", SEV_ERROR, 5, "minutes"},
        {HEAD "tools: [read]\ndisallowedTools: [bash]\n", "KEY006", SEV_ERROR, 5, "tools"},
        {HEAD "tools: [read]\npermission: {}\n", "KEY006", SEV_ERROR, 5, "permissions"},
        {HEAD "tools: [read]\nreadonly: true\n", "KEY006", SEV_ERROR, 5, "bash"},
        {HEAD "tools: [read]\nallowedTools: [read]\n", "KEY006", SEV_ERROR, 5, "tools"},
        {HEAD "tools: [read]\napproval.confirm: [read]\n", "KEY006", SEV_ERROR, 5, "approval"},
        {HEAD "tools: [read]\ninstructions: x\n", "KEY006", SEV_WARNING, 5, "prompt"},
        {HEAD "tools: [read]\nsystem_prompt: x\n", "KEY006", SEV_WARNING, 5, "prompt"},
        {HEAD "tools: [read]\npurpose: x\n", "KEY006", SEV_WARNING, 5, "prompt"},
        {HEAD "tools: [read]\nmax_turns: 3\n", "KEY006", SEV_ERROR, 5, "maxTurns"},
        {HEAD "tools: [read]\nmcpServers: {}\n", "KEY006", SEV_WARNING, 5, "mcp.servers"},
        {HEAD "tools: {custom: [x.so]}\n", "KEY006", SEV_ERROR, 4, "skill"},
        {HEAD "tools: {mcp: [x]}\n", "KEY006", SEV_ERROR, 4, "mcp.servers"},
        {HEAD "tools: [read]\nknowledge: [{name: M, type: mcp, path: a}]\n", "KEY006", SEV_ERROR, 5,
         "mcp.servers"},
        {HEAD "tools: [read]\ntools: [read, bash]\n", "YAML002", SEV_ERROR, 5, "4"},
        {HEAD "tools: !!seq [read]\n", "YAML003", SEV_ERROR, 4, ""},
        {HEAD "tools: [read]\nknowledge:\n  - {name: M, path: a, exclude: !x b}\n", "YAML003", SEV_ERROR, 6,
         ""},
        {HEAD "tools: [read]\n---\nname: y\n", "YAML007", SEV_ERROR, 0, ""},
        {"- a\n", "YAML008", SEV_ERROR, 0, ""},
        {"# nothing\n", "YAML012", SEV_ERROR, 0, ""},
        {"name: x\ndescription: Use when reading: heights, times\nprompt: p\n", "YAML001", SEV_ERROR, 2,
         "\"Use when reading: heights, times\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        parsed p = parse("x.yaml", str_z(cases[i].text), false);
        bool found = false;
        for (vec_each(const diag, it, &p.d.items)) {
            if (!str_eq(str_z(it->code), str_z(cases[i].code)) || it->severity != cases[i].sev) continue;
            if (cases[i].line && it->line != cases[i].line) continue;
            if (str_find(it->msg, str_z(cases[i].hint)) == SIZE_MAX &&
                str_find(it->hint, str_z(cases[i].hint)) == SIZE_MAX)
                continue;
            found = true;
        }
        // One fault is one error.
        found = found && p.d.errors == (cases[i].sev == SEV_ERROR);
        if (!found) dump(&p.d);
        if (!found)
            fail_msg("case %zu: no %s (%s) in line %u with \"%s\" for:\n%s", i, cases[i].code,
                     diag_severity_name(cases[i].sev), cases[i].line, cases[i].hint, cases[i].text);
        assert_int_equal(p.def.valid, p.d.errors == 0);
        arena_free(p.a);
    }
}

static void test_definition_parse__all_faults_of_a_file_come_in_one_go(void **state) {
    (void)state;
    parsed p = parse(
        "x.yaml", S("name: x\ndescription: d\nprompt: p\ntools: [raed, Task]\nmemory: yes\nmaxTurns: -1\n"),
        false);
    assert_int_equal(p.d.errors, 4);
    arena_free(p.a);
}

// C14: what YAML 1.1 would retype stays as it is written.
static void test_definition_parse__scalars_are_never_retyped(void **state) {
    (void)state;
    static const char *const names[] = {"no", "on", "1.10", "2026-06-03", "true", "007", "1e3"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        arena *a = arena_new();
        parsed p =
            parse("x.yaml",
                  str_fmt(a, "name: %s\ndescription: 12:30:45\ntools: [read]\nprompt: no\nmaxTurns: \"60\"\n",
                          names[i]),
                  false);
        assert_true(str_eq(p.def.name, str_z(names[i])));
        assert_true(str_eq(p.def.description, S("12:30:45")));
        assert_true(str_eq(p.def.prompt, S("no")));
        assert_int_equal(p.def.max_turns, 60);
        assert_true(p.def.valid);
        arena_free(p.a);
        arena_free(a);
    }
    parsed p = parse("base.yaml", S("name: ~\ndescription: d\ntools: [read]\nprompt: p\n"), false);
    assert_true(str_eq(p.def.name, S("base")));
    arena_free(p.a);
}

// C16 and C21: forms and spellings of a tool list.
static void test_definition_parse__tools_in_any_form_and_case_are_canonical(void **state) {
    (void)state;
    static const struct {
        const char *tools, *want;
    } cases[] = {
        {"[read, glob]", "read glob"}, {"[webfetch, WEBFETCH, WebFetch]", "WebFetch"},
        {"Read,, Grep,", "read grep"}, {"\"Read Write Glob\"", "read write glob"},
        {"Read, Grep", "read grep"},   {"\n  - READ\n  - Use_Skill", "read use_skill"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        parsed p = parse("x.yaml", str_fmt(a, HEAD "tools: %s\n", cases[i].tools), false);
        strs names = {0};
        for (size_t t = 0; t < p.def.n_tools; t++) vec_push(a, &names, str_z(p.def.tools[t].tool->name));
        str got = str_join(a, names.p, names.n, S(" "));
        if (!str_eq(got, str_z(cases[i].want))) dump(&p.d);
        assert_true(str_eq(got, str_z(cases[i].want)));
        arena_free(p.a);
        arena_free(a);
    }
}

// C11, C16: no half-read list ever holds more than its file surely says.
static void test_definition_parse__a_faulty_list_is_never_wider(void **state) {
    (void)state;
    static const char *const lists[] = {"'Bash(git:*) Bash(jq:*) Read'", "[Read, \"Bash(a, b)\"]",
                                        "'Bash(git'",
                                        "Read, Bash(git add:*, git commit:*), Agent(one, two), Grep"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        arena *a = arena_new();
        parsed p = parse("x.yaml", str_fmt(a, HEAD "tools: %s\n", lists[i]), false);
        assert_false(p.def.valid);
        for (size_t t = 0; t < p.def.n_tools; t++) assert_string_not_equal(p.def.tools[t].tool->name, "bash");
        arena_free(p.a);
        arena_free(a);
    }
}

static void test_definition_parse__one_bom_crlf_and_a_missing_last_line_end_change_nothing(void **state) {
    (void)state;
    parsed lf =
        parse("x.yaml", S("name: x\ndescription: d\ntools: [read]\nprompt: |\n  one\n  two\n"), false);
    parsed crlf = parse(
        "x.yaml", S("\xef\xbb\xbfname: x\r\ndescription: d\r\ntools: [read]\r\nprompt: |\r\n  one\r\n  two"),
        false);
    assert_true(lf.def.valid && crlf.def.valid);
    assert_true(str_eq(lf.def.name, crlf.def.name) && str_eq(lf.def.description, crlf.def.description));
    assert_true(str_eq(lf.def.prompt, S("one\ntwo\n")));
    assert_true(str_eq(str_trim(crlf.def.prompt), S("one\ntwo")));
    arena_free(lf.a);
    arena_free(crlf.a);
}

static void test_definition_parse__limits_hold_at_n_and_n_plus_one(void **state) {
    (void)state;
    static const struct {
        const char *head, *one, *tail;
        size_t n;
    } cases[] = {
        {"skills: [", "s%zu, ", "]\n", DEF_SKILLS_MAX},
        {"mcp:\n  servers: [", "s%zu, ", "]\n", DEF_SERVERS_MAX},
        {"knowledge: [", "{name: k%zu, path: p}, ", "]\n", DEF_SOURCES_MAX},
        {"permissions:\n  read: [", "d%zu, ", "]\n", DEF_PATHS_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (size_t over = 0; over < 2; over++) {
            arena *a = arena_new();
            buf b = buf_new(a, 0);
            buf_add(&b, S(HEAD "tools: [read, use_skill]\n"));
            buf_add(&b, str_z(cases[i].head));
            for (size_t k = 0; k < cases[i].n + over; k++) {
                str one = str_z(cases[i].one), number = str_fmt(a, "%zu", k);
                size_t at = str_find(one, S("%zu"));
                buf_add(&b, str_sub(one, 0, at));
                buf_add(&b, number);
                buf_add(&b, str_sub(one, at + 3, one.n));
            }
            buf_add(&b, str_z(cases[i].tail));
            parsed p = parse("x.yaml", buf_str(&b), false);
            if (has_code(&p.d, "KEY007", SEV_ERROR) != (over == 1)) dump(&p.d);
            assert_int_equal(has_code(&p.d, "KEY007", SEV_ERROR), over);
            arena_free(p.a);
            arena_free(a);
        }
    }
}

static void test_definition_parse__names_are_checked_before_and_after_the_fold(void **state) {
    (void)state;
    arena *a = arena_new();
    static const struct {
        const char *name;
        bool ok;
    } cases[] = {
        {"customer-service", true},
        {"Customer Service", true},
        {"\u5ba2\u670d", true},
        {"a.b_c-d 1", true},
        {"1st", true},
        {"\u00c9t\u00e9", true},
        {"e\u0301t\u00e9", true},
        {"-x", false},
        {" x", false},
        {"x ", false},
        {"x.", false},
        {"a/b", false},
        {"a..b", false},
        {"a\u200bb", false},
        {"\u202ea", false},
        {"a\tb", false},
        {"all", false},
        {"ALL", false},
        {"\uff21\uff2c\uff2c", false},
        {"core", false},
        {"mcp", false},
        {"shared", false},
        {"none", false},
        {"", false},
        {"a:b", false},
        {"a[b", false},
        {"\u00ad", false},
        {"a\u2024\u2024b", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dep_err err = {0};
        str nfc, identity;
        dep_status st = name_check(a, str_z(cases[i].name), &nfc, &identity, &err);
        if ((st == DEP_OK) != cases[i].ok)
            fail_msg("\"%s\": %s", cases[i].name, st == DEP_OK ? "accepted" : err.msg);
    }
    for (size_t n = DEF_NAME_CHARS; n <= DEF_NAME_CHARS + 1; n++) {
        buf b = buf_new(a, 0);
        buf_fill(&b, 'a', n);
        assert_int_equal(name_check(a, buf_str(&b), NULL, NULL, NULL) == DEP_OK, n <= DEF_NAME_CHARS);
    }
    // 120 bytes: 40 characters of three bytes are allowed, 41 are not.
    for (size_t n = 40; n <= 41; n++) {
        buf b = buf_new(a, 0);
        for (size_t i = 0; i < n; i++) buf_add(&b, S("\u5ba2"));
        assert_int_equal(name_check(a, buf_str(&b), NULL, NULL, NULL) == DEP_OK, n == 40);
    }
    str x, y;
    assert_int_equal(name_check(a, S("\u00e9"), NULL, &x, NULL), DEP_OK);
    assert_int_equal(name_check(a, S("E\u0301"), NULL, &y, NULL), DEP_OK);
    assert_true(str_eq(x, y));
    arena_free(a);
}

static void test_definition_parse__look_alikes_share_a_skeleton_and_mixed_scripts_are_seen(void **state) {
    (void)state;
    arena *a = arena_new();
    assert_true(str_eq(name_skeleton(a, S("paypal")), name_skeleton(a, S("p\u0430yp\u0430l"))));
    assert_true(str_eq(name_skeleton(a, S("reader0")), name_skeleton(a, S("readero"))));
    assert_false(str_eq(name_skeleton(a, S("reader")), name_skeleton(a, S("leader"))));
    assert_true(name_mixed_scripts(S("p\u0430ypal")));
    assert_false(name_mixed_scripts(S("paypal-2")));
    assert_false(name_mixed_scripts(S("\u5ba2\u670d-bot")));
    assert_false(name_mixed_scripts(S("\u0431\u043e\u0442")));
    assert_true(name_mixed_scripts(S("\u0431\u043e\u0442\u03b1")));
    arena_free(a);
}

static void test_definition_parse__invisible_text_is_named_with_its_words(void **state) {
    (void)state;
    // Tag characters that spell "hi".
    parsed p =
        parse("x.yaml", S(HEAD "tools: [read]\nx-note: \"a\xf3\xa0\x81\xa8\xf3\xa0\x81\xa9\"\n"), false);
    bool found = false;
    for (vec_each(const diag, it, &p.d.items))
        found |= str_eq(str_z(it->code), S("DEF021")) && str_find(it->msg, S("\"hi\"")) != SIZE_MAX;
    if (!found) dump(&p.d);
    assert_true(found);
    arena_free(p.a);
    parsed emoji = parse("x.yaml",
                         S("name: x\ndescription: \"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb\"\nprompt: "
                           "p\ntools: [read]\n"),
                         false);
    assert_false(has_code(&emoji.d, "DEF021", SEV_WARNING));
    arena_free(emoji.a);
}

static void test_definition_parse__strict_makes_warnings_errors(void **state) {
    (void)state;
    parsed p = parse("x.yaml", S(HEAD "tools: [read]\nfavourite: 1\n"), true);
    assert_int_equal(p.d.warnings, 0);
    assert_true(p.d.errors > 0);
    assert_false(p.def.valid);
    arena_free(p.a);
}

static void test_definition_parse__an_invalid_file_keeps_its_name(void **state) {
    (void)state;
    parsed p = parse("explorer.yaml", S("name: other\ndescription: d\ntools: [raed]\n"), false);
    assert_true(str_eq(p.def.name, S("other")));
    arena_free(p.a);
    p = parse("explorer.yaml", S("name: [broken\n"), false);
    assert_true(str_eq(p.def.name, S("explorer")));
    assert_false(p.def.valid);
    arena_free(p.a);
}

static void test_definition_parse__naughty_strings_never_crash_and_names_stay_safe(void **state) {
    (void)state;
    char *path = shared_path("realdata/text/blns/blns.txt");
    if (!path) skip();
    str all = read_all(path), line;
    free(path);
    str rest = all;
    while (rest.n) {
        str_cut(rest, '\n', &line, &rest);
        if (!line.n || line.p[0] == '#') continue;
        arena *a = arena_new();
        buf b = buf_new(a, 0);
        buf_add(&b, S("tools: [read]\nprompt: p\nname: "));
        buf_add(&b, yaml_scalar_text(a, line, false));
        buf_add(&b, S("\ndescription: "));
        buf_add(&b, yaml_scalar_text(a, line, false));
        buf_add(&b, S("\n"));
        parsed p = parse("x.yaml", buf_str(&b), false);
        if (p.def.valid) {
            str file = definition_file_name(a, p.def.identity);
            assert_int_equal(str_chr(file, '/'), SIZE_MAX);
            assert_true(file.p[0] != '.');
            assert_true(p.def.name.n <= DEF_NAME_BYTES);
        }
        arena_free(p.a);
        arena_free(a);
    }
    free((char *)all.p);
}

// What comes with the program has nothing to complain about.
static void test_definition_parse__bundled_definitions_are_valid_without_warnings(void **state) {
    (void)state;
    size_t n, n_sample, seen = 0;
    const asset *agents = assets_agents(&n), *sample = assets_sample(&n_sample);
    for (size_t i = 0; i < n + n_sample; i++) {
        const asset *x = i < n ? &agents[i] : &sample[i - n];
        if (i >= n && !str_starts(x->path, S(".deputy/agents/"))) continue;
        arena *a = arena_new();
        parsed p = parse(str_cz(a, x->path), x->bytes, true);
        diags save = diags_new(a);
        definition_check_save(&p.def, p.doc, &save);
        if (!p.def.valid || p.d.warnings || save.errors) dump(&p.d);
        assert_true(p.def.valid && !p.d.warnings && !save.errors);
        str file = str_ends(x->path, S(".yaml")) ? str_sub(x->path, 0, x->path.n - 5) : x->path;
        assert_true(str_ends(file, p.def.name));
        seen++;
        arena_free(p.a);
        arena_free(a);
    }
    assert_true(seen >= 7);
}

// Knowledge without read is a warning when loaded and refused when saved.
static void test_definition_parse__knowledge_without_read_is_not_saved(void **state) {
    (void)state;
    parsed p = parse("x.yaml", S(HEAD "tools: [glob]\nknowledge: [{name: M, path: d}]\n"), false);
    assert_true(p.def.valid);
    diags save = diags_new(p.a);
    definition_check_save(&p.def, p.doc, &save);
    assert_int_equal(save.errors, 1);
    assert_true(save.items.p[0].line == 5 && str_eq(save.items.p[0].path, S("/knowledge")));
    arena_free(p.a);
}

// Anchors and aliases are read as values; merge keys, tags and a second document refuse the file (yaml.h).
static void test_definition_parse__anchors_stand_for_their_values(void **state) {
    (void)state;
    parsed p =
        parse("x.yaml",
              S("name: x\ndescription: &d text\ntools: &t [read, glob]\nresident: *t\nprompt: *d\n"), false);
    assert_true(p.def.valid);
    assert_true(str_eq(p.def.prompt, S("text")));
    assert_int_equal(p.def.resident.n, 2);
    arena_free(p.a);
}

static void test_definition_parse__every_item_knows_its_place(void **state) {
    (void)state;
    parsed p =
        parse("x.yaml",
              S("\xef\xbb\xbfname: x\ndescription: d\nprompt: p\ntools: Read, \u5ba2 Glob\nskills:\n  - a\n  "
                "- \"b\"\n"
                "mcp: {servers: [c, {name: d}]}\nknowledge:\n  - {name: M, path: d}\nresident: [read]\n"
                "approval: {confirm: [read, {server: c}]}\npermissions:\n  read: [d]\nmaxTurns: 5\n"),
              false);
    const struct {
        def_place at;
        uint32_t line, column;
    } cases[] = {
        {p.def.name_at, 1, 7},          {p.def.tools[0].at, 4, 8},       {p.def.tools[1].at, 4, 16},
        {p.def.skills.p[0].at, 6, 5},   {p.def.skills.p[1].at, 7, 5},    {p.def.servers.p[0].at, 8, 17},
        {p.def.servers.p[1].at, 8, 20}, {p.def.sources.p[0].at, 10, 5},  {p.def.resident.p[0].at, 11, 12},
        {p.def.resident_at, 11, 11},    {p.def.confirm.p[0].at, 12, 22}, {p.def.confirm.p[1].at, 12, 28},
        {p.def.permissions_at, 14, 3},  {p.def.read.at, 14, 9},          {p.def.max_turns_at, 15, 11},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].at.line != cases[i].line || cases[i].at.column != cases[i].column)
            fail_msg("%zu: %u:%u", i, cases[i].at.line, cases[i].at.column);
        assert_true(str_eq(cases[i].at.file, S(".deputy/agents/x.yaml")));
    }
    arena_free(p.a);
}

static void test_definition_parse__texts_and_files_end_at_their_limits(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        arena *a = arena_new();
        buf b = buf_new(a, 0);
        buf_add(&b, S("name: x\nprompt: p\ntools: [read]\ndescription: "));
        for (size_t i = 0; i < DEF_DESCRIPTION_MAX + over; i++)
            buf_add(&b, S("\u5ba2")); // characters, not bytes
        parsed p = parse("x.yaml", buf_str(&b), false);
        assert_int_equal(has_code(&p.d, "KEY003", SEV_ERROR), over);
        arena_free(p.a);

        b = buf_new(a, 0);
        buf_add(&b, S(HEAD "tools: [read]\n#"));
        buf_fill(&b, 'x', DEF_FILE_MAX - b.n + over);
        p = parse("big.yaml", buf_str(&b), false);
        assert_int_equal(has_code(&p.d, "YAML006", SEV_ERROR), over);
        assert_int_equal(p.def.valid, !over);
        assert_true(str_eq(p.def.name, over ? S("big") : S("x")));
        arena_free(p.a);

        b = buf_new(a, 0);
        buf_add(&b, S(HEAD "tools: [read]\napproval:\n  confirm: ["));
        for (size_t i = 0; i < DEF_GATES_MAX + over; i++) buf_add(&b, S("read, "));
        buf_add(&b, S("]\n"));
        p = parse("x.yaml", buf_str(&b), false);
        assert_int_equal(has_code(&p.d, "KEY007", SEV_ERROR), over);
        arena_free(p.a);
        arena_free(a);
    }
}

// B10: a definition that cannot run keeps the name that was meant, so that no farther one takes its place.
static void test_definition_parse__a_name_that_breaks_the_rules_still_holds_its_place(void **state) {
    (void)state;
    static const struct {
        const char *name, *identity;
    } cases[] = {
        {"'explorer '", "explorer"}, {"' explorer'", "explorer"}, {"\"explo\\u200brer\"", "explorer"},
        {"\"EXPLORER\\x01\"", NULL}, {"-explorer", "-explorer"},  {"'..'", ".."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        parsed p =
            parse("x.yaml", str_fmt(a, "name: %s\ndescription: d\nprompt: p\ntools: [read]\n", cases[i].name),
                  false);
        assert_false(p.def.valid);
        if (cases[i].identity && !str_eq(p.def.identity, str_z(cases[i].identity)))
            fail_msg("%s holds \"" STR_FMT "\"", cases[i].name, STR_ARG(p.def.identity));
        assert_true(p.def.name.n <= DEF_NAME_BYTES && utf8_valid(p.def.name));
        arena_free(p.a);
        arena_free(a);
    }
}

static void test_definition_parse__names_that_look_equal_are_equal(void **state) {
    (void)state;
    static const char *const same[] = {"Caf\u00e9 1", "cafe\u0301 1", "CAF\u00c9 1",
                                       "\uff23\uff41\uff46\u00e9 \uff11"};
    arena *a = arena_new();
    str first = {0};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        str nfc, identity;
        dep_err err;
        assert_int_equal(name_check(a, str_z(same[i]), &nfc, &identity, &err), DEP_OK);
        if (!i) first = identity;
        assert_true(str_eq(identity, first));
    }
    assert_true(str_eq(definition_file_name(a, first), S("caf\u00e9-1.yaml")));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition_parse__each_fault_has_its_code_and_place),
        cmocka_unit_test(test_definition_parse__all_faults_of_a_file_come_in_one_go),
        cmocka_unit_test(test_definition_parse__scalars_are_never_retyped),
        cmocka_unit_test(test_definition_parse__tools_in_any_form_and_case_are_canonical),
        cmocka_unit_test(test_definition_parse__a_faulty_list_is_never_wider),
        cmocka_unit_test(test_definition_parse__one_bom_crlf_and_a_missing_last_line_end_change_nothing),
        cmocka_unit_test(test_definition_parse__limits_hold_at_n_and_n_plus_one),
        cmocka_unit_test(test_definition_parse__names_are_checked_before_and_after_the_fold),
        cmocka_unit_test(test_definition_parse__look_alikes_share_a_skeleton_and_mixed_scripts_are_seen),
        cmocka_unit_test(test_definition_parse__invisible_text_is_named_with_its_words),
        cmocka_unit_test(test_definition_parse__strict_makes_warnings_errors),
        cmocka_unit_test(test_definition_parse__an_invalid_file_keeps_its_name),
        cmocka_unit_test(test_definition_parse__naughty_strings_never_crash_and_names_stay_safe),
        cmocka_unit_test(test_definition_parse__bundled_definitions_are_valid_without_warnings),
        cmocka_unit_test(test_definition_parse__knowledge_without_read_is_not_saved),
        cmocka_unit_test(test_definition_parse__anchors_stand_for_their_values),
        cmocka_unit_test(test_definition_parse__every_item_knows_its_place),
        cmocka_unit_test(test_definition_parse__texts_and_files_end_at_their_limits),
        cmocka_unit_test(test_definition_parse__a_name_that_breaks_the_rules_still_holds_its_place),
        cmocka_unit_test(test_definition_parse__names_that_look_equal_are_equal),
    };
    return cmocka_run_group_tests_name("definition_parse", tests, NULL, NULL);
}

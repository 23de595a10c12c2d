// Writing: the text of a new definition is valid whatever it is given, and `fmt` moves lines and changes the
// case of tool names, nothing else.
#include "support/support.h"
#include <deputy/assets.h>
#include <deputy/definition.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define COUNT(x) (sizeof(x) / sizeof *(x))

static ydoc *tree_of(arena *a, str text) {
    ydoc *doc;
    dep_err err;
    diags d = diags_new(a);
    if (yaml_parse(a, S("x.yaml"), text, DEF_FILE_MAX, true, &doc, &d, &err) != DEP_OK)
        fail_msg("%s", err.msg);
    if (d.errors) fail_msg(STR_FMT "\n" STR_FMT, STR_ARG(d.items.p[0].msg), STR_ARG(text));
    return doc;
}

// --- fmt ---------------------------------------------------------------------------------------------------

static str formatted(arena *a, str text) {
    str out;
    dep_err err;
    if (definition_format(a, tree_of(a, text), &out, &err) != DEP_OK)
        fail_msg("%s\n" STR_FMT, err.msg, STR_ARG(text));
    return out;
}

static void test_definition_text__fmt_orders_keys_and_keeps_comments_with_them(void **state) {
    (void)state;
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"prompt: p\nname: x\n", "name: x\nprompt: p\n"},
        {"prompt: p\nname: x", "name: x\nprompt: p\n"},
        {"name: x\nprompt: p", "name: x\nprompt: p\n"},
        // A comment goes with the key right below it; the schema's line and what stands apart stay.
        {"# yaml-language-server: $schema=a.json\n# of tools\ntools: [read] # why\n# of name\nname: x\n",
         "# yaml-language-server: $schema=a.json\n# of name\nname: x\n# of tools\ntools: [read] # why\n"},
        {"# licence\n\nprompt: p\nname: x\n# end\n", "# licence\n\nname: x\n# end\nprompt: p\n"},
        // What is indented farther belongs to the value before, a Markdown heading in a block above all.
        {"tools:\n  - read\n  # - bash\nname: x\n", "name: x\ntools:\n  - read\n  # - bash\n"},
        {"prompt: |\n  text\n\n  # Heading\nname: x\n", "name: x\nprompt: |\n  text\n\n  # Heading\n"},
        {"prompt: |\n  # Heading\n# of name\nname: x\n", "# of name\nname: x\nprompt: |\n  # Heading\n"},
        // Unknown keys go before the prompt, in their own order.
        {"x-b: 1\nprompt: p\nx-a: 2\nzebra: 3\nname: x\n", "name: x\nx-b: 1\nx-a: 2\nzebra: 3\nprompt: p\n"},
        // Tools in canonical spelling, in each form.
        {"tools: [READ, webfetch, \"GREP\", 'Use_Skill']\n",
         "tools: [read, WebFetch, \"grep\", 'use_skill']\n"},
        {"tools: Read, WEBSEARCH\n", "tools: read, WebSearch\n"},
        {"tools: \"Read Write\"\n", "tools: \"read write\"\n"},
        {"tools:\n  - Read # Read\n", "tools:\n  - read # Read\n"},
        {"tools: [\"\\x52ead\", Unknown]\n", "tools: [\"\\x52ead\", Unknown]\n"},
        // Line ends and the byte order mark.
        {"prompt: p\r\nname: x\r\n", "name: x\r\nprompt: p\r\n"},
        {"\xef\xbb\xbfprompt: p\nname: x\n", "\xef\xbb\xbfname: x\nprompt: p\n"},
        {"---\nprompt: p\nname: x\n", "---\nname: x\nprompt: p\n"},
        {"  prompt: p\n  # of name\n  name: x\n", "  # of name\n  name: x\n  prompt: p\n"},
        {"model:\nname: x\n", "name: x\nmodel:\n"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        str got = formatted(a, str_z(cases[i].text));
        if (!str_eq(got, str_z(cases[i].want)))
            fail_msg("%s\nwant:\n%s\ngot:\n" STR_FMT, cases[i].text, cases[i].want, STR_ARG(got));
        assert_true(str_eq(formatted(a, got), got));
        arena_free(a);
    }
}

static void test_definition_text__fmt_refuses_what_it_would_change(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{name: x, prompt: p}\n",                // one line, which cannot be cut
        "prompt: &p text\nname: x\nmodel: *p\n", // the anchor would come after its alias
        "# nothing\n",
        "a: [\n",
    };
    for (size_t i = 0; i < COUNT(texts); i++) {
        arena *a = arena_new();
        ydoc *doc;
        dep_err err;
        diags d = diags_new(a);
        str out;
        assert_int_equal(yaml_parse(a, S("x.yaml"), str_z(texts[i]), DEF_FILE_MAX, true, &doc, &d, &err),
                         DEP_OK);
        assert_int_not_equal(definition_format(a, doc, &out, &err), DEP_OK);
        arena_free(a);
    }
}

static int by_bytes(const void *x, const void *y) {
    return str_cmp(*(const str *)x, *(const str *)y);
}

// The lines in order of their bytes, in lower case (tool names may change case), without what ends them.
static strs sorted_lines(arena *a, str text) {
    strs lines = {0};
    str line;
    if (str_starts(text, S("\xef\xbb\xbf"))) text = str_sub(text, 3, text.n);
    for (bool more = true; more;) {
        more = str_cut(text, '\n', &line, &text);
        if (more || line.n)
            vec_push(a, &lines, str_lower(a, str_ends(line, S("\r")) ? str_sub(line, 0, line.n - 1) : line));
    }
    if (lines.n) qsort(lines.p, lines.n, sizeof *lines.p, by_bytes);
    return lines;
}

// The properties for one file; false when fmt refuses it.
static bool check_format(str text) {
    arena *a = arena_new();
    ydoc *doc;
    dep_err err;
    diags d = diags_new(a);
    str out;
    assert_int_equal(yaml_parse(a, S("x.yaml"), text, DEF_FILE_MAX, true, &doc, &d, &err), DEP_OK);
    if (d.errors || definition_format(a, doc, &out, &err) != DEP_OK) {
        arena_free(a);
        return false;
    }
    assert_true(str_eq(formatted(a, out), out));
    const ydoc *again = tree_of(a, out);
    assert_int_equal(again->root->count, doc->root->count);
    for (const ynode *v = doc->root->child; v; v = v->next)
        if (!str_eq(v->key->text, S("tools")))
            assert_true(yaml_equal(v, yaml_get(again->root, v->key->text)));
    strs before = sorted_lines(a, text), after = sorted_lines(a, out);
    assert_int_equal(before.n, after.n);
    for (size_t i = 0; i < before.n; i++) assert_true(str_eq(before.p[i], after.p[i]));
    arena_free(a);
    return true;
}

// The file with its top-level blocks in the reverse order, which fmt must bring back in order.
static str reversed(arena *a, str text) {
    const ydoc *doc = tree_of(a, text);
    buf out = buf_new(a, 0);
    VEC(size_t) starts = {0};
    for (const ynode *v = doc->root->child; v; v = v->next) {
        uint32_t line, column;
        yaml_place(doc, v->key->start, &line, &column);
        vec_push(a, &starts, doc->lines[line - 1]);
    }
    buf_add(&out, str_sub(text, 0, starts.p[0]));
    for (size_t i = starts.n; i-- > 0;) {
        str piece = str_sub(text, starts.p[i], i + 1 < starts.n ? starts.p[i + 1] : text.n);
        buf_add(&out, piece);
        if (!str_ends(piece, S("\n"))) buf_addc(&out, '\n');
    }
    return buf_str(&out);
}

static bool is_definition(str path) {
    return str_starts(path, S(".deputy/agents/")) && str_ends(path, S(".yaml"));
}

static void test_definition_text__fmt_keeps_every_line_of_bundled_definitions(void **state) {
    (void)state;
    size_t n, n_sample;
    const asset *agents = assets_agents(&n), *sample = assets_sample(&n_sample);
    for (size_t i = 0; i < n + n_sample; i++) {
        const asset *x = i < n ? &agents[i] : &sample[i - n];
        if (i >= n && !is_definition(x->path)) continue;
        arena *a = arena_new();
        assert_true(check_format(x->bytes));
        // What we write ourselves is in order already.
        assert_true(str_eq(formatted(a, x->bytes), x->bytes));
        assert_true(check_format(reversed(a, x->bytes)));
        arena_free(a);
    }
}

static void each_yaml(const char *dir, int depth, size_t *seen, size_t *formatted_files) {
    DIR *d = opendir(dir);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        assert_int_equal(lstat(path, &st), 0);
        if (S_ISDIR(st.st_mode) && depth > 0) each_yaml(path, depth - 1, seen, formatted_files);
        str name = str_z(e->d_name);
        if (!S_ISREG(st.st_mode) || !(str_ends(name, S(".yaml")) || str_ends(name, S(".yml")))) continue;
        str text = read_all(path);
        ++*seen;
        *formatted_files += check_format(text);
        free((char *)text.p);
    }
    closedir(d);
}

static void test_definition_text__fmt_keeps_every_line_of_foreign_files(void **state) {
    (void)state;
    char *dir = shared_path("realdata/agents");
    if (!dir) skip();
    size_t seen = 0, done = 0;
    each_yaml(dir, 8, &seen, &done);
    free(dir);
    print_message("%zu of %zu files formatted\n", done, seen);
    assert_true(seen > 0 && done * 10 >= seen * 9);
}

// --- new ---------------------------------------------------------------------------------------------------

static definition parse_new(arena *a, const definition_new_opts *o) {
    str text = definition_text(a, o);
    definition def;
    diags d = diags_new(a);
    dep_err err;
    assert_int_equal(
        definition_parse(a, S("new.yaml"), S("new.yaml"), LAYER_WORKSPACE, text, false, &def, NULL, &d, &err),
        DEP_OK);
    for (vec_each(const diag, it, &d.items))
        if (it->severity != SEV_NOTE) fail_msg(STR_FMT "\n" STR_FMT, STR_ARG(it->msg), STR_ARG(text));
    assert_true(def.valid);
    assert_true(str_eq(formatted(a, text), text));
    return def;
}

static void test_definition_text__a_new_definition_is_valid_and_says_what_it_was_given(void **state) {
    (void)state;
    static const char *const odd[] = {
        "a: b",
        "- a",
        "# c",
        "no",
        "null",
        "~",
        "1.10",
        "'quoted'",
        "\"q\"",
        "a # b",
        "*star",
        "&and",
        "!tag",
        "[a, b]",
        "{a: b}",
        "a, b",
        "a\\b",
        "%x",
        "@x",
        "`x`",
        "\u5ba2\u670d",
        "|",
        "> x",
        "?",
        "? x",
        ": x",
        "-",
        "---",
        "...",
        "<<",
        "=",
        "0x1F",
        "two\nlines",
        "tab\there",
        "nbsp\u00a0",
        "\u2028",
        "emoji \xf0\x9f\x98\x80",
        "1:30",
        "y",
        "docs/[a-z]*.md",
        "docs/{a,b}/**",
        "docs/a b.md",
        "it's",
        "100%",
        "a:b",
        "a :b",
        "#",
        ",",
        "]",
    };
    arena *tools_arena = arena_new();
    strs tools = {0};
    vec_push(tools_arena, &tools, S("read"));
    for (size_t i = 0; i < COUNT(odd); i++) {
        arena *a = arena_new();
        str s = str_z(odd[i]);
        definition_new_opts o = {.name = S("new one"), .description = s, .prompt = s, .tools = tools};
        // As a name, a skill and a glob where it may be one.
        if (name_check(a, s, NULL, NULL, NULL) == DEP_OK) o.name = s;
        vec_push(a, &o.skills, s);
        bool glob =
            str_starts(s, S("docs/")) || str_starts(s, S("*")) || str_eq(s, S("it's")) || str_eq(s, S("# c"));
        if (glob) vec_push(a, &o.knowledge, s);
        definition def = parse_new(a, &o);
        assert_true(str_eq(def.name, o.name));
        assert_true(str_eq(def.description, str_trim(s)));
        assert_true(str_eq(str_trim(def.prompt), str_trim(s)));
        assert_int_equal(def.skills.n, 1);
        assert_true(str_eq(def.skills.p[0].name, str_trim(s)));
        assert_int_equal(def.sources.n, glob);
        if (glob) assert_true(str_eq(def.sources.p[0].path.p[0], s));
        arena_free(a);
    }
    arena_free(tools_arena);
}

static void test_definition_text__what_is_left_out_of_new_has_a_default(void **state) {
    (void)state;
    arena *a = arena_new();
    definition_new_opts o = {
        .name = S("helper"), .memory = S("private"), .model = S("p/m"), .schema_path = S("s.json")};
    vec_push(a, &o.tools, S("read"));
    definition def = parse_new(a, &o);
    assert_int_equal(def.memory, DEF_MEMORY_PRIVATE);
    assert_true(str_eq(def.model, S("p/m")));
    assert_true(def.description.n > 0 && def.prompt.n > 0);
    assert_int_equal(def.n_tools, 1);
    assert_int_equal(def.max_turns, DEF_TURNS_DEFAULT);
    assert_false(def.has_mcp || def.skills.n || def.sources.n);
    assert_true(str_starts(def.text, S("# yaml-language-server: $schema=s.json\n")));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition_text__fmt_orders_keys_and_keeps_comments_with_them),
        cmocka_unit_test(test_definition_text__fmt_refuses_what_it_would_change),
        cmocka_unit_test(test_definition_text__fmt_keeps_every_line_of_bundled_definitions),
        cmocka_unit_test(test_definition_text__fmt_keeps_every_line_of_foreign_files),
        cmocka_unit_test(test_definition_text__a_new_definition_is_valid_and_says_what_it_was_given),
        cmocka_unit_test(test_definition_text__what_is_left_out_of_new_has_a_default),
    };
    return cmocka_run_group_tests_name("definition_text", tests, NULL, NULL);
}

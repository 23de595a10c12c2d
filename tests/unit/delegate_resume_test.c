// Then and now (rule B21): what a continued delegation may call is what it had and what it has.
#include "delegate/delegate_int.h"
#include "support/support.h"

typedef struct {
    arena *a;
    grant g;
} made;

static void add_tools(made *m, const char *names) {
    str rest = str_z(names), name;
    for (bool more = rest.n > 0; more;) {
        more = str_cut(rest, ' ', &name, &rest);
        const tool_spec *spec = toolspec_find(name);
        vec_push(m->a, &m->g.tools, ((grant_tool){.spec = spec}));
    }
}

static strs words(arena *a, const char *text) {
    strs out = {0};
    str rest = str_z(text), word;
    for (bool more = rest.n > 0; more;) {
        more = str_cut(rest, ' ', &word, &rest);
        vec_push(a, &out, word);
    }
    return out;
}

static str joined(arena *a, const strs *s) {
    return str_join(a, s->p, s->n, S(" "));
}

static str tools_of(arena *a, const grant *g) {
    strs names = {0};
    for (vec_each(const grant_tool, t, &g->tools)) vec_push(a, &names, str_z(t->spec->name));
    return joined(a, &names);
}

static void same(str seen, const char *wanted) {
    if (!str_eq(seen, str_z(wanted))) fail_msg("\"" STR_FMT "\" is not \"%s\"", STR_ARG(seen), wanted);
}

static void test_delegate_resume__tools_are_those_of_both(void **state) {
    (void)state;
    arena *a = arena_new();
    made now = {.a = a}, then = {.a = a};
    add_tools(&now, "read glob grep");
    add_tools(&then, "read kb_search grep");
    buf lost = buf_new(a, 0);
    grant_intersect(a, &now.g, &then.g, &lost);
    same(tools_of(a, &now.g), "read grep");
    same(buf_str(&lost), "the tool kb_search");
    arena_free(a);
}

static void test_delegate_resume__prefixes_are_what_lies_under_both(void **state) {
    (void)state;
    static const struct {
        const char *now, *then, *both, *lost; // "*": not bounded
    } rows[] = {
        {"*", "*", "*", ""},
        {"docs", "*", "docs", ""},
        {"*", "docs", "docs", ""},
        {"docs", "docs", "docs", ""},
        {"docs/a", "docs", "docs/a", "permissions.read docs"},
        {"docs", "docs/a", "docs/a", ""},
        {"docs", "src", "", "permissions.read src"},
        {"docs src", "src docs/x", "docs/x src", ""},
        {"docs", "docs-x", "", "permissions.read docs-x"},
        {".", "docs", "docs", ""},
        {"docs", ".", "docs", "permissions.read ."},
        {"", "docs", "", "permissions.read docs"},
        {"docs", "", "", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        made now = {.a = a}, then = {.a = a};
        if (strcmp(rows[i].now, "*") != 0)
            now.g.read = (grant_axis){.bounded = true, .prefixes = words(a, rows[i].now)};
        if (strcmp(rows[i].then, "*") != 0)
            then.g.read = (grant_axis){.bounded = true, .prefixes = words(a, rows[i].then)};
        buf lost = buf_new(a, 0);
        grant_intersect(a, &now.g, &then.g, &lost);
        if (strcmp(rows[i].both, "*") == 0) {
            assert_false(now.g.read.bounded);
        } else {
            assert_true(now.g.read.bounded);
            same(joined(a, &now.g.read.prefixes), rows[i].both);
        }
        same(buf_str(&lost), rows[i].lost);
        arena_free(a);
    }
}

static void test_delegate_resume__commands_and_hosts_are_compared_whole(void **state) {
    (void)state;
    arena *a = arena_new();
    made now = {.a = a}, then = {.a = a};
    now.g.run = (grant_axis){.bounded = true, .prefixes = words(a, "git make")};
    then.g.run = (grant_axis){.bounded = true, .prefixes = words(a, "git gi")};
    now.g.net = (grant_axis){.bounded = true, .prefixes = words(a, "*.example.org")};
    then.g.net = (grant_axis){.bounded = true, .prefixes = words(a, "a.example.org")};
    buf lost = buf_new(a, 0);
    grant_intersect(a, &now.g, &then.g, &lost);
    same(joined(a, &now.g.run.prefixes), "git");
    same(joined(a, &now.g.net.prefixes), "");
    arena_free(a);
}

static def_source source(arena *a, const char *name, const char *path, const char *exclude) {
    return (def_source){.name = str_z(name), .path = words(a, path), .exclude = words(a, exclude)};
}

static void test_delegate_resume__a_source_with_other_globs_is_another_source(void **state) {
    (void)state;
    arena *a = arena_new();
    made now = {.a = a}, then = {.a = a};
    vec_push(a, &now.g.sources, source(a, "Same", "docs/**", "x"));
    vec_push(a, &now.g.sources, source(a, "Wider", "**", ""));
    vec_push(a, &now.g.sources, source(a, "Open", "docs/**", ""));
    vec_push(a, &then.g.sources, source(a, "Same", "docs/**", "x"));
    vec_push(a, &then.g.sources, source(a, "Wider", "docs/**", ""));
    vec_push(a, &then.g.sources, source(a, "Open", "docs/**", "private/**"));
    buf lost = buf_new(a, 0);
    grant_intersect(a, &now.g, &then.g, &lost);
    assert_int_equal(now.g.sources.n, 1);
    same(now.g.sources.p[0].name, "Same");
    same(buf_str(&lost), "the source Wider, the source Open");
    arena_free(a);
}

static void test_delegate_resume__skills_servers_and_memory(void **state) {
    (void)state;
    arena *a = arena_new();
    made now = {.a = a}, then = {.a = a};
    vec_push(a, &now.g.skills, (host_skill){.name = S("tone")});
    vec_push(a, &now.g.skills, (host_skill){.name = S("new")});
    vec_push(a, &then.g.skills, (host_skill){.name = S("tone")});
    vec_push(a, &then.g.skills, (host_skill){.name = S("old")});
    vec_push(a, &now.g.servers, (host_server){.name = S("crm")});
    now.g.memory = DEF_MEMORY_SHARED;
    then.g.memory = DEF_MEMORY_PRIVATE;
    now.g.turns = 60;
    then.g.turns = 10;
    buf lost = buf_new(a, 0);
    grant_intersect(a, &now.g, &then.g, &lost);
    assert_int_equal(now.g.skills.n, 1);
    assert_int_equal(now.g.servers.n, 0);
    assert_int_equal(now.g.memory, DEF_MEMORY_NONE);
    assert_int_equal(now.g.turns, 10);
    same(buf_str(&lost), "the skill old, memory private");
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delegate_resume__tools_are_those_of_both),
        cmocka_unit_test(test_delegate_resume__prefixes_are_what_lies_under_both),
        cmocka_unit_test(test_delegate_resume__commands_and_hosts_are_compared_whole),
        cmocka_unit_test(test_delegate_resume__a_source_with_other_globs_is_another_source),
        cmocka_unit_test(test_delegate_resume__skills_servers_and_memory),
    };
    return cmocka_run_group_tests_name("delegate_resume", tests, nullptr, nullptr);
}

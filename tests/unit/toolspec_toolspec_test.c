// toolspec: the table is sound, look-ups are what they say, arguments are checked against the row's schema.
#include "support/support.h"
#include <deputy/json.h>
#include <deputy/tools.h>
#include <deputy/toolspec.h>

static void test_toolspec_toolspec__rows_are_in_the_agreed_order_and_sound(void **state) {
    (void)state;
    static const char *const order[] = {"bash",          "read",        "write",           "edit",
                                        "glob",          "grep",        "task_output",     "task_stop",
                                        "WebFetch",      "WebSearch",   "use_skill",       "todo",
                                        "kb_search",     "mcp",         "memory_write",    "memory_read",
                                        "memory_search", "Task",        "TaskWait",        "TaskList",
                                        "TaskStop",      "read_result", "available_tools", "load_tools"};
    size_t n, grantable = 0;
    const tool_spec *all = toolspec_all(&n);
    assert_int_equal(n, sizeof order / sizeof *order);
    assert_true(n <= 32); // what host.tools and definition.tools hold
    arena *a = arena_new();
    for (size_t i = 0; i < n; i++) {
        json *schema;
        dep_err err;
        assert_string_equal(all[i].name, order[i]);
        assert_int_equal(toolspec_index(&all[i]), i);
        assert_non_null(toolspec_group(str_z(all[i].group)));
        assert_true(all[i].max_output > 0);
        if (json_parse(a, str_z(all[i].schema), 0, &schema, &err) != DEP_OK)
            fail_msg("%s: %s", all[i].name, err.msg);
        assert_true(str_eq(json_str(schema, S("type"), (str){0}), S("object")));
        assert_non_null(json_get(schema, S("additionalProperties")));
        for (const json *r = json_get(schema, S("required"))->child; r; r = r->next)
            assert_non_null(json_get(json_get(schema, S("properties")), r->s));
        grantable += (all[i].flags & TOOL_GRANTABLE) != 0;
    }
    assert_int_equal(grantable, 12);
    arena_free(a);
}

// Each granted name either has a body or is reported as missing: the two tables agree.
static void test_toolspec_toolspec__bodies_exist_for_exactly_these(void **state) {
    (void)state;
    static const char *const here[] = {
        "read",         "glob",        "grep",          "use_skill",       "todo",       "kb_search",
        "memory_write", "memory_read", "memory_search", "available_tools", "load_tools", "Task",
        "TaskWait",     "TaskList",    "TaskStop",      "read_result"};
    size_t n, found = 0;
    const tool_spec *all = toolspec_all(&n);
    for (size_t i = 0; i < n; i++) {
        bool want = false;
        for (size_t k = 0; k < sizeof here / sizeof *here; k++)
            want |= str_eq(str_z(here[k]), str_z(all[i].name));
        if (tools_bodies()[i] != want) fail_msg("%s", all[i].name);
        found += want;
    }
    assert_int_equal(found, sizeof here / sizeof *here);
}

// C21: spellings of other hosts.
static void test_toolspec_toolspec__foreign_names_have_an_answer(void **state) {
    (void)state;
    static const struct {
        const char *name, *deputy;
    } cases[] = {{"read_file", "read"},
                 {"run_shell_command", "bash"},
                 {"edit/editFiles", "edit"},
                 {"search/codebase", "grep"},
                 {"TodoWrite", "todo"},
                 {"todowrite", "todo"},
                 {"LS", "glob"},
                 {"MultiEdit", "edit"},
                 {"web_fetch", "WebFetch"},
                 {"Task", NULL},
                 {"Agent", NULL},
                 {"mcp__crm__find", NULL},
                 {"mcp.crm", NULL},
                 {"*", NULL},
                 {"serena/*", NULL},
                 {"AskUserQuestion", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tool_foreign *f = toolspec_foreign(str_z(cases[i].name));
        if (!f) fail_msg("%s is not known", cases[i].name);
        if (cases[i].deputy) {
            assert_non_null(f->deputy);
            assert_string_equal(f->deputy, cases[i].deputy);
            assert_true(toolspec_find(str_z(f->deputy))->flags & TOOL_GRANTABLE);
        } else {
            assert_null(f->deputy);
            assert_non_null(f->why);
        }
    }
    assert_null(toolspec_foreign(S("raed")));
    assert_string_equal(toolspec_nearest(S("raed")), "read");
    assert_string_equal(toolspec_nearest(S("webfetsh")), "WebFetch");
    assert_null(toolspec_nearest(S("erase")));
}

static void test_toolspec_toolspec__arguments_are_checked_with_a_sentence(void **state) {
    (void)state;
    static const struct {
        const char *tool, *args, *part; // part of the message; NULL: fine
    } cases[] = {
        {"read", "{\"path\":\"a\"}", NULL},
        {"read", "{\"path\":\"a\",\"offset\":1,\"limit\":10000}", NULL},
        {"read", "{}", "\"path\" is required"},
        {"read", "{\"path\":\"\"}", "empty"},
        {"read", "{\"path\":7}", "type string"},
        {"read", "{\"path\":null}", "type string"},
        {"read", "{\"path\":\"a\",\"offset\":0}", "from 1"},
        {"read", "{\"path\":\"a\",\"limit\":10001}", "10000"},
        {"read", "{\"path\":\"a\",\"limit\":1.5}", "type integer"},
        {"read", "{\"path\":\"a\",\"scope\":\"x\"}", "unknown argument \"scope\""},
        {"read", "[]", "JSON object"},
        {"memory_write", "{\"content\":\"a\",\"mode\":\"append\"}", NULL},
        {"memory_write", "{\"content\":\"a\",\"mode\":\"replace\"}", "append, overwrite"},
        {"memory_write", "{\"content\":\"a\",\"dir\":\"../x\"}", "unknown argument \"dir\""},
        {"todo", "{\"items\":[{\"text\":\"a\",\"state\":\"open\"}]}", NULL},
        {"todo", "{\"items\":[{\"text\":\"a\",\"state\":\"later\"}]}", "open, doing, done"},
        {"todo", "{\"items\":[{\"text\":\"a\"}]}", "\"state\" is required"},
        {"todo", "{\"items\":[7]}", "type object"},
        {"available_tools", "{}", NULL},
        {"available_tools", "{\"x\":1}", "unknown argument"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        arena *a = arena_new();
        json *args;
        dep_err err = {0};
        assert_int_equal(json_parse(a, str_z(cases[i].args), 0, &args, &err), DEP_OK);
        dep_status st =
            toolspec_check_args(a, str_z(toolspec_find(str_z(cases[i].tool))->schema), args, &err);
        if (cases[i].part) {
            assert_int_equal(st, DEP_ERR_INVALID);
            if (str_find(str_z(err.msg), str_z(cases[i].part)) == SIZE_MAX)
                fail_msg("case %zu: %s", i, err.msg);
        } else if (st != DEP_OK) {
            fail_msg("case %zu: %s", i, err.msg);
        }
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toolspec_toolspec__rows_are_in_the_agreed_order_and_sound),
        cmocka_unit_test(test_toolspec_toolspec__bodies_exist_for_exactly_these),
        cmocka_unit_test(test_toolspec_toolspec__foreign_names_have_an_answer),
        cmocka_unit_test(test_toolspec_toolspec__arguments_are_checked_with_a_sentence),
    };
    return cmocka_run_group_tests_name("toolspec_toolspec", tests, NULL, NULL);
}

// The conversation as rows: what is written reads back as it was, folds are repeated exactly, and rows of a
// kind that is unknown are refused.
#include "delegate/delegate_int.h"
#include "support/support.h"

static dep_status read_rows(arena *a, const char *const *rows, conversation *ret, dep_err *err) {
    message_rows all = {0};
    for (size_t i = 0; rows[i]; i += 2)
        vec_push(a, &all, ((message_row){.kind = str_z(rows[i]), .data = str_z(rows[i + 1])}));
    *ret = (conversation){0};
    return messages_read(a, &all, ret, err);
}

// A run with nothing but what message_keep needs.
static run *bare_run(arena *a) {
    run *r = NEW(a, run);
    r->a = r->act.a = a;
    return r;
}

static void test_delegate_messages__every_block_comes_back_as_it_was(void **state) {
    (void)state;
    arena *a = arena_new();
    run *r = bare_run(a);
    static const model_block blocks[] = {
        {.kind = BLOCK_TEXT, .text = S_INIT("tex\"t\n\xe4\xb8\xad")},
        {.kind = BLOCK_THINKING, .text = S_INIT("t"), .raw = S_INIT("{\"type\":\"thinking\", \"x\":1.50}")},
        {.kind = BLOCK_TOOL_USE, .id = S_INIT("i"), .name = S_INIT("read"), .input = S_INIT("{\"a\" : 1}")},
        {.kind = BLOCK_TOOL_USE,
         .id = S_INIT("j"),
         .name = S_INIT("x"),
         .input = S_INIT("{\"a\""),
         .bad_input = true},
        {.kind = BLOCK_TOOL_RESULT, .id = S_INIT("i"), .text = S_INIT("out"), .is_error = true},
        {.kind = BLOCK_OTHER, .raw = S_INIT("{\"type\":\"new\"}")},
    };
    model_message m = {.role = ROLE_ASSISTANT};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) vec_push(a, &m.blocks, blocks[i]);
    message_keep(r, &m);
    conversation c = {0};
    dep_err err;
    assert_int_equal(messages_read(a, &r->act.messages, &c, &err), DEP_OK);
    assert_int_equal(c.messages.n, 2); // its calls were never answered
    assert_int_equal(c.messages.p[0].role, ROLE_ASSISTANT);
    assert_int_equal(c.messages.p[0].blocks.n, m.blocks.n);
    for (size_t i = 0; i < m.blocks.n; i++) {
        const model_block *x = &m.blocks.p[i], *y = &c.messages.p[0].blocks.p[i];
        assert_int_equal(x->kind, y->kind);
        assert_true(str_eq(x->text, y->text) && str_eq(x->id, y->id) && str_eq(x->name, y->name));
        assert_true(str_eq(x->input, y->input) && str_eq(x->raw, y->raw));
        assert_true(x->bad_input == y->bad_input && x->is_error == y->is_error);
    }
    arena_free(a);
}

static void test_delegate_messages__prompt_tools_and_loads_come_back_in_order(void **state) {
    (void)state;
    arena *a = arena_new();
    run *r = bare_run(a);
    r->def = &(definition){.layer = LAYER_SYSTEM};
    r->prompt.text = S("You are.\n");
    vec_push(a, &r->offered, ((offered_tool){S("read"), S("Reads."), S("{\"type\":\"object\"}")}));
    vec_push(a, &r->offered, ((offered_tool){S("grep"), S("Finds."), S("{}")}));
    message_keep_system(r);
    message_keep_word(r, "load", S("glob"), 0);
    message_keep_word(r, "load", S("todo"), 0);
    conversation c = {0};
    dep_err err;
    assert_int_equal(messages_read(a, &r->act.messages, &c, &err), DEP_OK);
    assert_true(str_eq(c.layer, S("system")));
    assert_true(str_eq(c.prompt, S("You are.\n")));
    assert_int_equal(c.offered.n, 2);
    assert_true(str_eq(c.offered.p[0].schema, S("{\"type\":\"object\"}")));
    assert_true(str_eq(c.offered.p[1].name, S("grep")));
    assert_int_equal(c.loaded.n, 2);
    assert_true(str_eq(c.loaded.p[0], S("glob")) && str_eq(c.loaded.p[1], S("todo")));
    arena_free(a);
}

static void test_delegate_messages__a_fold_is_repeated_exactly_and_touches_nothing_else(void **state) {
    (void)state;
    arena *a = arena_new();
    buf big = buf_new(a, 0);
    while (big.n < 1000) buf_add(&big, S("0123456789"));
    model_messages live = {0};
    for (int turn = 0; turn < 3; turn++) {
        model_message call = {.role = ROLE_ASSISTANT}, result = {.role = ROLE_USER};
        str id = str_fmt(a, "c%d", turn);
        vec_push(a, &call.blocks, ((model_block){.kind = BLOCK_TEXT, .text = buf_str(&big)}));
        vec_push(a, &call.blocks, ((model_block){.kind = BLOCK_TOOL_USE, .id = id, .name = S("read")}));
        vec_push(a, &result.blocks,
                 ((model_block){.kind = BLOCK_TOOL_RESULT, .id = id, .text = buf_str(&big)}));
        vec_push(a, &result.blocks,
                 ((model_block){.kind = BLOCK_TOOL_RESULT, .id = id, .text = S("short"), .is_error = true}));
        vec_push(a, &live, call);
        vec_push(a, &live, result);
    }
    run *r = bare_run(a);
    for (size_t i = 0; i < live.n; i++) message_keep(r, &live.p[i]);
    message_keep_word(r, "fold", (str){0}, 4);
    conversation c = {0};
    dep_err err;
    assert_int_equal(messages_read(a, &r->act.messages, &c, &err), DEP_OK);
    size_t results, bytes;
    fold_messages(a, &live, 4, &results, &bytes);
    assert_int_equal(results, 2);
    assert_int_equal(bytes, 2000);
    for (size_t i = 0; i < live.n; i++)
        for (size_t k = 0; k < live.p[i].blocks.n; k++)
            assert_true(str_eq(live.p[i].blocks.p[k].text, c.messages.p[i].blocks.p[k].text));
    assert_true(str_starts(live.p[1].blocks.p[0].text, S("[folded: the 1000 bytes of this result of read")));
    assert_true(str_eq(live.p[0].blocks.p[0].text, buf_str(&big))); // the model's own words stay
    assert_true(str_eq(live.p[1].blocks.p[1].text, S("short")));
    assert_true(str_eq(live.p[5].blocks.p[0].text, buf_str(&big))); // and the newest results
    fold_messages(a, &live, 4, &results, &bytes);
    assert_int_equal(results, 0);
    arena_free(a);
}

static void test_delegate_messages__what_is_not_known_is_refused(void **state) {
    (void)state;
    static const char *const rows[][5] = {
        {"user", "{\"blocks\":[{\"kind\":\"video\"}]}", NULL},
        {"opinion", "{}", NULL},
        {"user", "{\"blocks\":", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        arena *a = arena_new();
        conversation c;
        dep_err err;
        assert_int_equal(read_rows(a, rows[i], &c, &err), DEP_ERR_PARSE);
        arena_free(a);
    }
}

static void test_delegate_messages__a_note_belongs_to_the_message_before_it(void **state) {
    (void)state;
    arena *a = arena_new();
    static const char *const rows[] = {"user", "{\"blocks\":[{\"kind\":\"text\",\"text\":\"t\"}]}", "note",
                                       "{\"name\":\"last step\",\"n\":0}", NULL};
    conversation c;
    dep_err err;
    assert_int_equal(read_rows(a, rows, &c, &err), DEP_OK);
    assert_int_equal(c.messages.n, 1);
    assert_int_equal(c.messages.p[0].blocks.n, 2);
    assert_true(str_eq(c.messages.p[0].blocks.p[1].text, S("last step")));
    arena_free(a);
}

// A crash between a call and its result; then it was continued, and is continued again.
static void test_delegate_messages__calls_without_results_are_answered_where_one_ended(void **state) {
    (void)state;
    arena *a = arena_new();
    static const char *const rows[] = {
        "system",    "{\"prompt\":\"P\",\"tools\":[]}",
        "user",      "{\"blocks\":[{\"kind\":\"text\",\"text\":\"task\"}]}",
        "assistant", "{\"blocks\":[{\"kind\":\"tool_use\",\"id\":\"i\",\"name\":\"read\",\"input\":\"{}\"}]}",
        "system",    "{\"prompt\":\"P\",\"tools\":[]}",
        "user",      "{\"blocks\":[{\"kind\":\"text\",\"text\":\"go on\"}]}",
        "assistant", "{\"blocks\":[{\"kind\":\"tool_use\",\"id\":\"j\",\"name\":\"read\",\"input\":\"{}\"}]}",
        NULL};
    conversation c;
    dep_err err;
    assert_int_equal(read_rows(a, rows, &c, &err), DEP_OK);
    assert_int_equal(c.messages.n, 6);
    static const size_t answers[] = {2, 5};
    for (size_t i = 0; i < 2; i++) {
        const model_message *m = &c.messages.p[answers[i]];
        assert_int_equal(m->role, ROLE_USER);
        assert_int_equal(m->blocks.n, 1);
        assert_int_equal(m->blocks.p[0].kind, BLOCK_TOOL_RESULT);
        assert_true(m->blocks.p[0].is_error && str_eq(m->blocks.p[0].id, i ? S("j") : S("i")));
    }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delegate_messages__calls_without_results_are_answered_where_one_ended),
        cmocka_unit_test(test_delegate_messages__every_block_comes_back_as_it_was),
        cmocka_unit_test(test_delegate_messages__prompt_tools_and_loads_come_back_in_order),
        cmocka_unit_test(test_delegate_messages__a_fold_is_repeated_exactly_and_touches_nothing_else),
        cmocka_unit_test(test_delegate_messages__what_is_not_known_is_refused),
        cmocka_unit_test(test_delegate_messages__a_note_belongs_to_the_message_before_it),
    };
    return cmocka_run_group_tests_name("delegate_messages", tests, nullptr, nullptr);
}

// Tests of store/message.c: what was said, and results kept whole.
#include <support/store_fixture.h>

static void test_store_message__messages_come_back_in_order_and_of_one_delegation_alone(void **state) {
    store_fixture *r = *state;
    message_rows rows;
    const message_row first[] = {{S("user"), S("{\"text\":\"日本\"}")}, {S("assistant"), S("{}")}};
    const message_row more[] = {{S("loaded"), str_n("a\0b", 3)}};
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(add(r, r->s, ID2, DELEG_RUNNING));
    ok(store_message_add(r->s, S(ID1), first, 2, NULL, 0, false, &r->err));
    ok(store_message_add(r->s, S(ID2), more, 1, NULL, 0, false, &r->err));
    ok(store_message_add(r->s, S(ID1), NULL, 0, NULL, 0, true, &r->err));
    ok(store_message_add(r->s, S(ID1), more, 1, NULL, 0, true, &r->err));
    ok(store_message_list(r->a, r->s, S(ID1), &rows, &r->err));
    assert_int_equal(rows.n, 3);
    assert_str(rows.p[0].kind, S("user"));
    assert_str(rows.p[0].data, first[0].data);
    assert_str(rows.p[1].kind, S("assistant"));
    assert_str(rows.p[2].data, more[0].data);
    store *other = open_store(r, "/other");
    ok(store_message_list(r->a, other, S(ID1), &rows, &r->err));
    assert_int_equal(rows.n, 0);
    refused(store_message_add(other, S(ID1), more, 1, NULL, 0, false, &r->err), DEP_ERR_NOT_FOUND,
            "no delegation");
}

static void test_store_message__reports_are_delivered_with_the_message_or_not_at_all(void **state) {
    store_fixture *r = *state;
    message_rows rows;
    delegation_row one = plain_row(ID1, DELEG_RUNNING), two = plain_row(ID2, DELEG_RUNNING);
    const message_row carries[] = {{S("user"), S("{}")}};
    add_ended(r, &one);
    add_ended(r, &two);
    ok(add(r, r->s, ID3, DELEG_RUNNING));
    const str missing[] = {S(ID1), S(ID4)}, early[] = {S(ID1), S(ID3)}, both[] = {S(ID1), S(ID2), S(ID1)};
    refused(store_message_add(r->s, S(ID3), carries, 1, missing, 2, true, &r->err), DEP_ERR_NOT_FOUND, ID4);
    refused(store_message_add(r->s, S(ID3), carries, 1, early, 2, true, &r->err), DEP_ERR_INVALID, ID3);
    ok(store_message_list(r->a, r->s, S(ID3), &rows, &r->err));
    assert_int_equal(rows.n, 0);
    assert_int_equal(get(r, ID1).delivered_ms, 0);
    ok(store_message_add(r->s, S(ID3), carries, 1, both, 3, true, &r->err));
    assert_true(get(r, ID1).delivered_ms > 0 && get(r, ID2).delivered_ms > 0);
    ok(store_message_list(r->a, r->s, S(ID3), &rows, &r->err));
    assert_int_equal(rows.n, 1);
}

static void test_store_message__what_has_ended_says_nothing_more(void **state) {
    store_fixture *r = *state;
    int64_t n = 7;
    message_rows rows;
    const message_row late[] = {{S("user"), S("{}")}};
    delegation_row one = plain_row(ID1, DELEG_RUNNING);
    add_ended(r, &one);
    refused(store_message_add(r->s, S(ID1), late, 1, NULL, 0, false, &r->err), DEP_ERR_INVALID,
            "already ended (completed)");
    refused(store_result_add(r->s, S(ID1), S("x"), &n, &r->err), DEP_ERR_INVALID, "already ended");
    assert_int_equal(n, 7);
    ok(store_message_list(r->a, r->s, S(ID1), &rows, &r->err));
    assert_int_equal(rows.n, 0);
}

static void test_store_message__results_are_numbered_from_one_within_their_delegation(void **state) {
    store_fixture *r = *state;
    int64_t n = 0;
    str text;
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(add(r, r->s, ID2, DELEG_RUNNING));
    ok(store_result_add(r->s, S(ID1), S("one"), &n, &r->err));
    assert_int_equal(n, 1);
    ok(store_result_add(r->s, S(ID1), str_n("two\0", 4), &n, &r->err));
    assert_int_equal(n, 2);
    ok(store_result_add(r->s, S(ID2), S(""), &n, &r->err));
    assert_int_equal(n, 1);
    ok(store_result_get(r->a, r->s, S(ID1), 2, &text, &r->err));
    assert_str(text, str_n("two\0", 4));
    ok(store_result_get(r->a, r->s, S(ID2), 1, &text, &r->err));
    assert_str(text, S(""));
    static const int64_t none[] = {0, 3, -1, INT64_MAX};
    for (size_t i = 0; i < 4; i++)
        refused(store_result_get(r->a, r->s, S(ID1), none[i], &text, &r->err), DEP_ERR_NOT_FOUND,
                "has no result");
    refused(store_result_get(r->a, open_store(r, "/other"), S(ID1), 1, &text, &r->err), DEP_ERR_NOT_FOUND,
            "has no result 1");
    refused(store_result_add(r->s, S(ID3), S("x"), &n, &r->err), DEP_ERR_NOT_FOUND, "no delegation");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_message__messages_come_back_in_order_and_of_one_delegation_alone),
        STORE_TEST(test_store_message__reports_are_delivered_with_the_message_or_not_at_all),
        STORE_TEST(test_store_message__what_has_ended_says_nothing_more),
        STORE_TEST(test_store_message__results_are_numbered_from_one_within_their_delegation),
    };
    return cmocka_run_group_tests_name("store_message", tests, NULL, NULL);
}

// Tests of store/thread.c: conversations, and the delivery of reports to them.
#include <support/store_fixture.h>

static delegation_row in_thread(const char *id, const char *thread, bool is_main) {
    delegation_row row = plain_row(id, DELEG_RUNNING);
    row.thread = str_z(thread);
    row.main = is_main;
    return row;
}

static void test_store_thread__what_ended_waits_for_delivery_in_the_order_of_its_end(void **state) {
    store_fixture *r = *state;
    delegation_rows rows;
    delegation_row first = in_thread(ID1, THREAD1, false), second = in_thread(ID2, THREAD1, false);
    delegation_row turn = in_thread(ID3, THREAD1, true), elsewhere = in_thread(ID4, THREAD2, false);
    first.background = true;
    ok(store_delegation_add(r->s, &first, &r->err));
    add_ended(r, &second);
    add_ended(r, &turn);
    add_ended(r, &elsewhere);
    refused(store_delivered(r->s, S(ID1), &r->err), DEP_ERR_INVALID, "no report to deliver yet (running)");
    ok(store_undelivered(r->a, r->s, S(THREAD1), &rows, &r->err));
    assert_int_equal(rows.n, 1);
    ok(store_delegation_status(r->s, S(ID1), DELEG_STOPPED, S("stopped"), S("{\"report\":\"\"}"), &r->err));
    ok(store_undelivered(r->a, r->s, S(THREAD1), &rows, &r->err));
    assert_int_equal(rows.n, 2);
    assert_str(rows.p[0].id, S(ID2));
    assert_str(rows.p[0].report, S("{\"report\":\"" ID2 "\"}"));
    assert_str(rows.p[1].id, S(ID1));
    assert_true(rows.p[1].background);
    assert_int_equal(rows.p[1].delivered_ms, 0);
    ok(store_delivered(r->s, S(ID2), &r->err));
    int64_t when = get(r, ID2).delivered_ms;
    assert_true(when > 0);
    ok(store_delivered(r->s, S(ID2), &r->err)); // nothing more happens
    assert_int_equal(get(r, ID2).delivered_ms, when);
    ok(store_undelivered(r->a, r->s, S(THREAD1), &rows, &r->err));
    assert_int_equal(rows.n, 1);
    assert_str(rows.p[0].id, S(ID1));
    refused(store_delivered(r->s, S(ID1 "0"), &r->err), DEP_ERR_NOT_FOUND, "no delegation");
    refused(store_undelivered(r->a, r->s, S("c0c0"), &rows, &r->err), DEP_ERR_INVALID, "32 hex digits");
    // Another workspace has neither.
    store *other = open_store(r, "/other");
    ok(store_undelivered(r->a, other, S(THREAD1), &rows, &r->err));
    assert_int_equal(rows.n, 0);
    refused(store_delivered(other, S(ID1), &r->err), DEP_ERR_NOT_FOUND, "no delegation");
}

static void test_store_thread__conversations_are_made_of_their_turns_newest_use_first(void **state) {
    store_fixture *r = *state;
    thread_rows threads;
    delegation_row turn = in_thread(ID1, THREAD1, true), asked = in_thread(ID2, THREAD1, false);
    turn.agent = S("main");
    turn.task = S("First question");
    turn.created_ms = 100;
    add_ended(r, &turn);
    add_ended(r, &asked); // a delegation: no turn
    delegation_row other = in_thread(ID3, THREAD2, true);
    other.agent = S("main");
    other.task = S("Another");
    add_ended(r, &other);
    ok(store_thread_list(r->a, r->s, S(""), 10, &threads, &r->err));
    assert_int_equal(threads.n, 2);
    assert_str(threads.p[0].id, S(THREAD2));
    assert_str(threads.p[1].id, S(THREAD1));
    // The older one is used again.
    delegation_row next = in_thread(ID4, THREAD1, true);
    next.agent = S("main2");
    next.task = S("Second question");
    next.resumes = S(ID1);
    ok(store_delegation_add(r->s, &next, &r->err));
    ok(store_thread_list(r->a, r->s, S(""), 10, &threads, &r->err));
    assert_int_equal(threads.n, 2);
    const thread_row *t = &threads.p[0];
    assert_str(t->id, S(THREAD1));
    assert_str(t->agent, S("main2"));
    assert_str(t->title, S("First question"));
    assert_str(t->last, S(ID4));
    assert_int_equal(t->turns, 2);
    assert_int_equal(t->created_ms, 100);
    assert_int_equal(t->used_ms, get(r, ID4).created_ms);
    assert_int_equal(threads.p[1].used_ms, get(r, ID3).ended_ms);
    ok(store_thread_list(r->a, r->s, S(""), 1, &threads, &r->err));
    assert_int_equal(threads.n, 1);
    assert_str(threads.p[0].id, S(THREAD1));
    ok(store_thread_list(r->a, open_store(r, "/other"), S(""), 10, &threads, &r->err));
    assert_int_equal(threads.n, 0);
}

static void test_store_thread__its_id_may_be_cut_as_that_of_a_delegation(void **state) {
    store_fixture *r = *state;
    static const struct {
        const char *id;
        dep_status status;
        size_t n;
    } rows[] = {
        {THREAD1, DEP_OK, 1},
        {" C0C1 ", DEP_OK, 1},
        {"c0c0", DEP_OK, 1},
        {"ffff", DEP_OK, 0},
        {"c0c", DEP_ERR_INVALID, 0},
        {"c0cx", DEP_ERR_INVALID, 0},
        {"", DEP_OK, 2},
        {THREAD1 "0", DEP_ERR_INVALID, 0},
    };
    delegation_row one = in_thread(ID1, THREAD1, true), two = in_thread(ID2, THREAD2, true);
    ok(store_delegation_add(r->s, &one, &r->err));
    ok(store_delegation_add(r->s, &two, &r->err));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        thread_rows threads = {0};
        dep_status status = store_thread_list(r->a, r->s, str_z(rows[i].id), 10, &threads, &r->err);
        if (status != rows[i].status || threads.n != rows[i].n)
            fail_msg("'%s': %s, %zu", rows[i].id, err_name(status), threads.n);
    }
}

static void test_store_thread__delegations_are_listed_by_conversation_or_without_turns(void **state) {
    store_fixture *r = *state;
    delegation_rows rows;
    delegation_row turn = in_thread(ID1, THREAD1, true), asked = in_thread(ID2, THREAD1, false);
    delegation_row alone = plain_row(ID3, DELEG_RUNNING), elsewhere = in_thread(ID4, THREAD2, false);
    add_ended(r, &turn);
    asked.background = true;
    add_ended(r, &asked);
    add_ended(r, &alone);
    add_ended(r, &elsewhere);
    ok(store_delegation_list(r->a, r->s, S(THREAD1), 10, &rows, &r->err));
    assert_int_equal(rows.n, 2);
    assert_str(rows.p[0].id, S(ID2));
    assert_str(rows.p[0].thread, S(THREAD1));
    assert_true(rows.p[0].background && !rows.p[0].main);
    assert_str(rows.p[1].id, S(ID1));
    assert_true(rows.p[1].main && !rows.p[1].background);
    assert_int_equal(rows.p[1].report.n, 0);
    ok(store_delegation_list(r->a, r->s, S(""), 10, &rows, &r->err));
    assert_int_equal(rows.n, 3);
    assert_str(rows.p[0].id, S(ID4));
    assert_str(rows.p[2].id, S(ID2));
    ok(store_delegation_list(r->a, r->s, S(THREAD1), 1, &rows, &r->err));
    assert_int_equal(rows.n, 1);
    refused(store_delegation_list(r->a, r->s, S("c0c0"), 1, &rows, &r->err), DEP_ERR_INVALID,
            "32 hex digits");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_thread__what_ended_waits_for_delivery_in_the_order_of_its_end),
        STORE_TEST(test_store_thread__conversations_are_made_of_their_turns_newest_use_first),
        STORE_TEST(test_store_thread__its_id_may_be_cut_as_that_of_a_delegation),
        STORE_TEST(test_store_thread__delegations_are_listed_by_conversation_or_without_turns),
    };
    return cmocka_run_group_tests_name("store_thread", tests, NULL, NULL);
}

// Tests of store/prune.c: removal and retention.
#include <support/store_fixture.h>

enum { DAY = 24 * 3600 * 1000 };

static bool is_there(store_fixture *r, const char *id) {
    delegation_row row;
    return store_delegation_get(r->a, r->s, str_z(id), &row, &r->err) == DEP_OK;
}

// A row that ended at this time and, unless kept, was delivered.
static void ended_at(store_fixture *r, const char *id, int64_t at, bool delivered) {
    delegation_row row = plain_row(id, DELEG_RUNNING);
    r->now = at - 2; // made the millisecond before
    row.created_ms = row.started_ms = 1;
    add_ended(r, &row);
    if (delivered) ok(store_delivered(r->s, row.id, &r->err));
}

static void test_store_prune__what_is_removed_leaves_its_mark_alone(void **state) {
    store_fixture *r = *state;
    int64_t n;
    const message_row message = {S("user"), S("{}")};
    const activity_row item = {.kind = S("text"), .data = S("{}")};
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_message_add(r->s, S(ID1), &message, 1, NULL, 0, false, &r->err));
    ok(store_activity_add(r->s, S(ID1), &item, 1, false, &r->err));
    ok(store_result_add(r->s, S(ID1), S("whole"), &n, &r->err));
    ok(store_command_add(r->s, S(ID1), S("stop"), &r->err));
    refused(store_delegation_remove(r->s, S(ID1), &r->err), DEP_ERR_INVALID, "has not ended (running)");
    ok(store_delegation_status(r->s, S(ID1), DELEG_FAILED, S("x"), S("{}"), &r->err));
    delegation_row next = plain_row(ID2, DELEG_RUNNING);
    next.resumes = S(ID1);
    ok(store_delegation_add(r->s, &next, &r->err));
    refused(store_delegation_remove(r->s, S(ID1), &r->err), DEP_ERR_INVALID, "being continued by " ID2);
    ok(store_delegation_status(r->s, S(ID2), DELEG_COMPLETED, S("x"), S("{}"), &r->err));
    refused(store_delegation_remove(open_store(r, "/other"), S(ID1), &r->err), DEP_ERR_NOT_FOUND,
            "no delegation");
    ok(store_delegation_remove(r->s, S(ID1), &r->err));
    assert_false(is_there(r, ID1));
    assert_str(get(r, ID2).resumes, S(""));
    assert_int_equal(ask_db(r, "SELECT (SELECT count(*) FROM activity) + (SELECT count(*) FROM messages) + "
                               "(SELECT count(*) FROM results) + (SELECT count(*) FROM commands)"),
                     0);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM removed WHERE id = '" ID1 "' AND status = 'failed' AND "
                               "agent = 'librarian' AND ended_ms > created_ms AND removed_ms > ended_ms"),
                     1);
    refused(store_delegation_remove(r->s, S(ID1), &r->err), DEP_ERR_NOT_FOUND, "no delegation");
    // An id that comes again may go again.
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_delegation_status(r->s, S(ID1), DELEG_FAILED, S("x"), S("{}"), &r->err));
    ok(store_delegation_remove(r->s, S(ID1), &r->err));
    ok(store_check(r->s, &r->err));
}

static void test_store_prune__what_ended_more_than_some_days_ago_goes(void **state) {
    store_fixture *r = *state;
    size_t n = 9;
    int64_t now = (int64_t)100 * DAY;
    ended_at(r, ID1, now - 30 * (int64_t)DAY, true);
    ended_at(r, ID2, now - 30 * (int64_t)DAY - 1, true);
    ok(add(r, r->s, ID3, DELEG_RUNNING)); // never ended
    r->now = now - 1;
    ok(store_prune(r->s, 0, 0, &n, &r->err));
    assert_int_equal(n, 0);
    r->now = now - 1;
    ok(store_prune(r->s, 30, 0, &n, &r->err));
    assert_int_equal(n, 1);
    assert_true(is_there(r, ID1) && !is_there(r, ID2) && is_there(r, ID3));
    r->now = now - 1;
    ok(store_prune(r->s, 29, 0, &n, &r->err));
    assert_int_equal(n, 1);
    assert_false(is_there(r, ID1));
    static const int64_t wrong[][2] = {{-1, 0}, {0, -1}};
    for (size_t i = 0; i < 2; i++)
        refused(store_prune(r->s, wrong[i][0], wrong[i][1], &n, &r->err), DEP_ERR_INVALID, "retention");
    ok(store_prune(r->s, INT64_MAX, INT64_MAX, &n, &r->err));
    assert_int_equal(n, 0);
}

static void test_store_prune__the_oldest_above_a_number_go(void **state) {
    store_fixture *r = *state;
    size_t n;
    enum { ALL = 150, KEPT = 10 }; // more than one batch
    for (int i = 0; i < ALL; i++)
        ended_at(r, str_fmt(r->a, "%032x", i + 1).p, 100 * (int64_t)DAY + i * 10, true);
    ok(add(r, r->s, ID1, DELEG_RUNNING)); // is no ended one
    ok(store_prune(r->s, 0, ALL, &n, &r->err));
    assert_int_equal(n, 0);
    ok(store_prune(r->s, 0, KEPT, &n, &r->err));
    assert_int_equal(n, ALL - KEPT);
    for (int i = 0; i < ALL; i++)
        assert_int_equal(is_there(r, str_fmt(r->a, "%032x", i + 1).p), i >= ALL - KEPT);
    assert_true(is_there(r, ID1));
    ok(store_prune(r->s, 0, 1, &n, &r->err));
    assert_int_equal(n, KEPT - 1);
}

static void test_store_prune__what_was_not_delivered_waits_for_a_week(void **state) {
    store_fixture *r = *state;
    size_t n;
    int64_t now = (int64_t)100 * DAY;
    ended_at(r, ID1, now - STORE_KEEP_DAYS * (int64_t)DAY, false);
    ended_at(r, ID2, now - STORE_KEEP_DAYS * (int64_t)DAY - 1, false);
    ended_at(r, ID3, now - 5, true);
    r->now = now - 1;
    ok(store_prune(r->s, 1, 1, &n, &r->err));
    assert_int_equal(n, 1);
    assert_true(is_there(r, ID1) && !is_there(r, ID2) && is_there(r, ID3));
    // A turn of a main agent is not delivered to anybody.
    delegation_row turn = plain_row(ID2, DELEG_RUNNING);
    turn.main = true;
    r->now = now;
    add_ended(r, &turn);
    r->now = now + 3 * (int64_t)DAY;
    ok(store_prune(r->s, 2, 0, &n, &r->err));
    assert_int_equal(n, 3); // it, the delivered one, and the one whose week is over
    assert_false(is_there(r, ID1));
}

static void test_store_prune__what_is_being_continued_and_other_workspaces_stay(void **state) {
    store_fixture *r = *state;
    size_t n;
    ended_at(r, ID1, 10 * (int64_t)DAY, true);
    delegation_row next = plain_row(ID2, DELEG_QUEUED);
    next.resumes = S(ID1);
    ok(store_delegation_add(r->s, &next, &r->err));
    r->now = 100 * (int64_t)DAY;
    ok(store_prune(open_store(r, "/other"), 1, 1, &n, &r->err));
    assert_int_equal(n, 0);
    ok(store_prune(r->s, 1, 0, &n, &r->err));
    assert_int_equal(n, 0);
    ok(store_delegation_status(r->s, S(ID2), DELEG_STOPPED, S(""), S("{}"), &r->err));
    ok(store_prune(r->s, 1, 0, &n, &r->err));
    assert_int_equal(n, 1);
    assert_false(is_there(r, ID1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_prune__what_is_removed_leaves_its_mark_alone),
        STORE_TEST(test_store_prune__what_ended_more_than_some_days_ago_goes),
        STORE_TEST(test_store_prune__the_oldest_above_a_number_go),
        STORE_TEST(test_store_prune__what_was_not_delivered_waits_for_a_week),
        STORE_TEST(test_store_prune__what_is_being_continued_and_other_workspaces_stay),
    };
    return cmocka_run_group_tests_name("store_prune", tests, NULL, NULL);
}

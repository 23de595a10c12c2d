// Tests of store/delegation.c, activity.c and settings.c.
#include <stdio.h>
#include <support/store_fixture.h>
#include <sys/wait.h>
#include <unistd.h>

// --- Delegations -----------------------------------------------------------------------------------------

static void test_store_delegation__a_row_comes_back_as_it_went_in(void **state) {
    store_fixture *r = *state;
    delegation_row in = {.id = S(ID1),
                         .agent = S("客服"),
                         .task = str_n("a\0b\n", 4),
                         .description = S("d"),
                         .model = S("p/m"),
                         .definition_hash = S("h"),
                         .definition = S("name: 客服\n"),
                         .grant = S("{\"tools\":[]}"),
                         .status = DELEG_QUEUED,
                         .created_ms = 77};
    ok(store_delegation_add(r->s, &in, &r->err));
    delegation_row out = get(r, ID1);
    assert_str(out.id, in.id);
    assert_str(out.agent, in.agent);
    assert_str(out.task, in.task);
    assert_str(out.description, in.description);
    assert_str(out.model, in.model);
    assert_str(out.definition_hash, in.definition_hash);
    assert_str(out.definition, in.definition);
    assert_str(out.grant, in.grant);
    assert_int_equal(out.status, DELEG_QUEUED);
    assert_int_equal(out.created_ms, 77);
    assert_int_equal(out.started_ms, 0);
    assert_int_equal(out.ended_ms, 0);
    assert_int_equal(out.report.n, 0);
    assert_int_equal(add(r, r->s, ID1, DELEG_QUEUED), DEP_ERR_EXISTS);
}

static void test_store_delegation__status_and_report_go_together_and_the_first_end_stays(void **state) {
    store_fixture *r = *state;
    ok(add(r, r->s, ID1, DELEG_QUEUED));
    ok(store_delegation_status(r->s, S(ID1), DELEG_RUNNING, S(""), S(""), &r->err));
    int64_t started = get(r, ID1).started_ms;
    assert_true(started > 0);
    ok(store_delegation_status(r->s, S(ID1), DELEG_WAITING, S(""), S(""), &r->err));
    ok(store_delegation_status(r->s, S(ID1), DELEG_RUNNING, S(""), S(""), &r->err));
    assert_int_equal(get(r, ID1).started_ms, started);
    // A report without an end, an end without a report.
    assert_int_equal(store_delegation_status(r->s, S(ID1), DELEG_RUNNING, S(""), S("{}"), &r->err),
                     DEP_ERR_INVALID);
    assert_int_equal(store_delegation_status(r->s, S(ID1), DELEG_COMPLETED, S("done"), S(""), &r->err),
                     DEP_ERR_INVALID);
    ok(store_delegation_status(r->s, S(ID1), DELEG_COMPLETED, S("done"), S("{\"report\":\"x\"}"), &r->err));
    static const deleg_status later[] = {DELEG_RUNNING, DELEG_STOPPED, DELEG_COMPLETED};
    for (size_t i = 0; i < 3; i++) {
        str report = deleg_ended(later[i]) ? S("{}") : S("");
        assert_int_equal(store_delegation_status(r->s, S(ID1), later[i], S("late"), report, &r->err),
                         DEP_ERR_INVALID);
        assert_non_null(strstr(r->err.msg, "already ended (completed)"));
    }
    delegation_row out = get(r, ID1);
    assert_int_equal(out.status, DELEG_COMPLETED);
    assert_str(out.end_reason, S("done"));
    assert_str(out.report, S("{\"report\":\"x\"}"));
    assert_true(out.ended_ms > started);
    assert_int_equal(store_delegation_status(r->s, S(ID2), DELEG_RUNNING, S(""), S(""), &r->err),
                     DEP_ERR_NOT_FOUND);
}

static void test_store_delegation__every_status_has_a_name_and_is_read_back(void **state) {
    store_fixture *r = *state;
    for (deleg_status s = DELEG_QUEUED; s <= DELEG_INTERRUPTED; s++) {
        char id[33];
        snprintf(id, sizeof id, "%032x", s + 1);
        ok(add(r, r->s, id, DELEG_QUEUED));
        if (s != DELEG_QUEUED)
            ok(store_delegation_status(r->s, str_z(id), s, S(""), deleg_ended(s) ? S("{}") : S(""), &r->err));
        assert_int_equal(get(r, id).status, s);
        assert_true(strlen(deleg_status_name(s)) > 0);
    }
    assert_int_equal(deleg_ended(DELEG_WAITING), false);
    assert_string_equal(deleg_status_name(DELEG_INTERRUPTED), "interrupted");
}

static void test_store_delegation__rows_that_cannot_be(void **state) {
    store_fixture *r = *state;
    static const char *const ids[] = {"", "3f2a", "3f2a000000000000000000000000000g",
                                      "3F2A0000000000000000000000000001",
                                      "3f2a00000000000000000000000000010"};
    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        assert_int_equal(add(r, r->s, ids[i], DELEG_QUEUED), DEP_ERR_INVALID);
    assert_int_equal(add(r, r->s, ID1, DELEG_COMPLETED), DEP_ERR_INVALID);
    delegation_row row = {.id = S(ID1), .run_id = S("../../x")};
    assert_int_equal(store_delegation_add(r->s, &row, &r->err), DEP_ERR_INVALID);
}

static void test_store_delegation__an_id_may_be_cut_as_long_as_it_is_one(void **state) {
    store_fixture *r = *state;
    static const struct {
        const char *id;
        dep_status status;
        const char *found;
    } rows[] = {
        {ID1, DEP_OK, ID1},
        {"3F2A0", DEP_OK, ID1},
        {" aaaa ", DEP_OK, ID3},
        {"3f2a1000000000000000000000000002", DEP_OK, ID2},
        {"3f2a", DEP_ERR_INVALID, NULL},
        {"3f2", DEP_ERR_INVALID, NULL},
        {"", DEP_ERR_INVALID, NULL},
        {"zzzz", DEP_ERR_INVALID, NULL},
        {"aaaa%", DEP_ERR_INVALID, NULL},
        {"aaaab", DEP_ERR_NOT_FOUND, NULL},
        {"ffff", DEP_ERR_NOT_FOUND, NULL},
        {"ffff0000000000000000000000000003", DEP_ERR_NOT_FOUND, NULL},
        {ID3 "0", DEP_ERR_INVALID, NULL},
    };
    ok(add(r, r->s, ID1, DELEG_QUEUED));
    ok(add(r, r->s, ID2, DELEG_QUEUED));
    ok(add(r, r->s, ID3, DELEG_QUEUED));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        delegation_row row;
        dep_status status = store_delegation_get(r->a, r->s, str_z(rows[i].id), &row, &r->err);
        if (status != rows[i].status) fail_msg("%s: %s", rows[i].id, err_name(status));
        if (status == DEP_OK) assert_str(row.id, str_z(rows[i].found));
    }
    delegation_row row;
    assert_int_equal(store_delegation_get(r->a, r->s, S("3f2a"), &row, &r->err), DEP_ERR_INVALID);
    assert_non_null(strstr(r->err.msg, ID2 " (librarian), " ID1 " (librarian)"));
}

static void test_store_delegation__another_workspace_sees_nothing(void **state) {
    store_fixture *r = *state;
    store *other = open_store(r, "/other");
    delegation_row row;
    delegation_rows rows;
    activity_rows items;
    activity_row item = {.kind = S("text"), .data = S("{}")};
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_activity_add(r->s, S(ID1), &item, 1, false, &r->err));
    assert_int_equal(store_delegation_get(r->a, other, S(ID1), &row, &r->err), DEP_ERR_NOT_FOUND);
    assert_int_equal(store_delegation_get(r->a, other, S("3f2a"), &row, &r->err), DEP_ERR_NOT_FOUND);
    ok(add(r, r->s, ID2, DELEG_RUNNING)); // not even as a candidate
    assert_int_equal(store_delegation_get(r->a, other, S("3f2a"), &row, &r->err), DEP_ERR_NOT_FOUND);
    assert_int_equal(store_delegation_status(other, S(ID1), DELEG_STOPPED, S(""), S("{}"), &r->err),
                     DEP_ERR_NOT_FOUND);
    assert_int_equal(store_activity_add(other, S(ID1), &item, 1, false, &r->err), DEP_ERR_NOT_FOUND);
    ok(store_delegation_list(r->a, other, (str){0}, 10, &rows, &r->err));
    assert_int_equal(rows.n, 0);
    ok(store_activity_list(r->a, other, S(ID1), 0, 10, &items, &r->err));
    assert_int_equal(items.n, 0);
}

static void test_store_delegation__the_list_is_newest_first_and_limited(void **state) {
    store_fixture *r = *state;
    delegation_rows rows;
    for (int i = 0; i < 4; i++) {
        // Two of the same instant: the later one made is newer.
        delegation_row row = {
            .id = str_fmt(r->a, "%032x", i + 1), .definition = S("long"), .created_ms = i < 2 ? 5 : 9 - i};
        ok(store_delegation_add(r->s, &row, &r->err));
    }
    ok(store_delegation_list(r->a, r->s, (str){0}, 3, &rows, &r->err));
    assert_int_equal(rows.n, 3);
    assert_true(str_ends(rows.p[0].id, S("03")));
    assert_true(str_ends(rows.p[1].id, S("04")));
    assert_true(str_ends(rows.p[2].id, S("02")));
    assert_int_equal(rows.p[0].definition.n, 0);
    ok(store_delegation_list(r->a, r->s, (str){0}, SIZE_MAX, &rows, &r->err));
    assert_int_equal(rows.n, 4);
}

// --- Activity and settings -------------------------------------------------------------------------------

static void test_store_activity__items_are_numbered_on_and_read_from_a_number(void **state) {
    store_fixture *r = *state;
    activity_row batch[] = {
        {.kind = S("turn"), .data = S("{\"n\":1}"), .at_ms = 5},
        {.kind = S("text"), .data = S("{\"text\":\"日本\"}"), .seq = 99},
    };
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_activity_add(r->s, S(ID1), batch, 2, false, &r->err));
    ok(store_activity_add(r->s, S(ID1), NULL, 0, false, &r->err));
    ok(store_activity_add(r->s, S(ID1), batch, 1, true, &r->err));
    activity_rows items;
    ok(store_activity_list(r->a, r->s, S(ID1), 0, 10, &items, &r->err));
    assert_int_equal(items.n, 3);
    for (size_t i = 0; i < 3; i++) assert_int_equal(items.p[i].seq, i + 1);
    assert_int_equal(items.p[0].at_ms, 5);
    assert_true(items.p[1].at_ms > 5);
    assert_str(items.p[1].kind, S("text"));
    assert_str(items.p[1].data, S("{\"text\":\"日本\"}"));
    ok(store_activity_list(r->a, r->s, S(ID1), 1, 1, &items, &r->err));
    assert_int_equal(items.n, 1);
    assert_int_equal(items.p[0].seq, 2);
    assert_int_equal(store_activity_add(r->s, S(ID2), batch, 2, false, &r->err), DEP_ERR_NOT_FOUND);
}

static void test_store_settings__values_are_replaced_removed_and_listed_by_prefix(void **state) {
    store_fixture *r = *state;
    str value;
    settings all;
    ok(store_setting_get(r->a, r->s, S("switch:system:x"), &value, &r->err));
    assert_int_equal(value.n, 0);
    ok(store_setting_set(r->s, S("switch:system:x"), S("off"), &r->err));
    ok(store_setting_set(r->s, S("switch:system:x"), S("on"), &r->err));
    ok(store_setting_set(r->s, S("switch:b"), S("off"), &r->err));
    ok(store_setting_set(r->s, S("switch_"), S("no"), &r->err));
    ok(store_setting_set(r->s, S("model:x"), S("a/b"), &r->err));
    ok(store_setting_get(r->a, r->s, S("switch:system:x"), &value, &r->err));
    assert_str(value, S("on"));
    ok(store_settings(r->a, r->s, S("switch:"), &all, &r->err));
    assert_int_equal(all.n, 2);
    assert_str(all.p[0].key, S("switch:b"));
    assert_str(all.p[1].value, S("on"));
    ok(store_settings(r->a, r->s, S(""), &all, &r->err));
    assert_int_equal(all.n, 4);
    ok(store_setting_set(r->s, S("switch:b"), S(""), &r->err));
    ok(store_setting_set(r->s, S("never there"), S(""), &r->err));
    ok(store_settings(r->a, r->s, S("switch:"), &all, &r->err));
    assert_int_equal(all.n, 1);
    assert_int_equal(store_setting_set(r->s, S(""), S("x"), &r->err), DEP_ERR_INVALID);
}

// --- Several writers -------------------------------------------------------------------------------------

static void test_store_activity__batches_of_several_processes_lose_nothing(void **state) {
    store_fixture *r = *state;
    enum { PROCESSES = 4, BATCHES = 25, ITEMS = 4 };
    pid_t pids[PROCESSES];
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            store *s = open_store(r, "/w");
            activity_row items[ITEMS];
            for (int j = 0; j < ITEMS; j++) items[j] = (activity_row){.kind = S("text"), .data = S("{}")};
            for (int j = 0; j < BATCHES; j++)
                if (store_activity_add(s, S(ID1), items, ITEMS, j % 5 == 0, &r->err) != DEP_OK) {
                    fprintf(stderr, "%s\n", r->err.msg);
                    _exit(1);
                }
            _exit(0);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int code;
        assert_int_equal(waitpid(pids[i], &code, 0), pids[i]);
        assert_int_equal(code, 0);
    }
    activity_rows items;
    ok(store_activity_list(r->a, r->s, S(ID1), 0, SIZE_MAX, &items, &r->err));
    assert_int_equal(items.n, PROCESSES * BATCHES * ITEMS);
    for (size_t i = 0; i < items.n; i++) assert_int_equal(items.p[i].seq, i + 1);
    ok(store_check(r->s, &r->err));
}

static void test_store_delegation__lists_of_everything_and_of_what_has_not_ended(void **state) {
    store_fixture *r = *state;
    delegation_row turn = plain_row(ID1, DELEG_RUNNING), other = plain_row(ID2, DELEG_QUEUED);
    turn.main = true;
    turn.thread = S(THREAD1);
    ok(store_delegation_add(r->s, &turn, &r->err));
    ok(store_delegation_add(r->s, &other, &r->err));
    delegation_row done = plain_row(ID3, DELEG_QUEUED);
    add_ended(r, &done);
    ok(add(r, open_store(r, "/other"), ID4, DELEG_QUEUED));
    delegation_rows rows = {0};
    ok(store_delegation_list(r->a, r->s, S("*"), 10, &rows, &r->err));
    assert_int_equal(rows.n, 3);
    assert_str(rows.p[0].id, S(ID3));
    assert_str(rows.p[2].id, S(ID1));
    ok(store_delegation_list(r->a, r->s, (str){0}, 10, &rows, &r->err));
    assert_int_equal(rows.n, 2);
    refused(store_delegation_list(r->a, r->s, S("**"), 10, &rows, &r->err), DEP_ERR_INVALID, "conversation");
    ok(store_unfinished(r->a, r->s, &rows, &r->err));
    assert_int_equal(rows.n, 2);
    assert_str(rows.p[0].id, S(ID1));
    assert_true(rows.p[0].main);
    assert_str(rows.p[1].id, S(ID2));
}

static void test_store_activity__the_newest_item_of_a_kind(void **state) {
    store_fixture *r = *state;
    activity_row last = {.seq = 7};
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_activity_last(r->a, r->s, S(ID1), S("turn"), &last, &r->err));
    assert_int_equal(last.seq, 0);
    const activity_row items[] = {{.kind = S("turn"), .data = S("{\"n\":1}")},
                                  {.kind = S("turn"), .data = S("{\"n\":2}")},
                                  {.kind = S("text"), .data = S("{}")}};
    ok(store_activity_add(r->s, S(ID1), items, 3, false, &r->err));
    ok(store_activity_last(r->a, r->s, S(ID1), S("turn"), &last, &r->err));
    assert_int_equal(last.seq, 2);
    assert_str(last.data, S("{\"n\":2}"));
    ok(store_activity_last(r->a, open_store(r, "/other"), S(ID1), S("turn"), &last, &r->err));
    assert_int_equal(last.seq, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_delegation__a_row_comes_back_as_it_went_in),
        STORE_TEST(test_store_delegation__status_and_report_go_together_and_the_first_end_stays),
        STORE_TEST(test_store_delegation__every_status_has_a_name_and_is_read_back),
        STORE_TEST(test_store_delegation__rows_that_cannot_be),
        STORE_TEST(test_store_delegation__an_id_may_be_cut_as_long_as_it_is_one),
        STORE_TEST(test_store_delegation__another_workspace_sees_nothing),
        STORE_TEST(test_store_delegation__the_list_is_newest_first_and_limited),
        STORE_TEST(test_store_delegation__lists_of_everything_and_of_what_has_not_ended),
        STORE_TEST(test_store_activity__the_newest_item_of_a_kind),
        STORE_TEST(test_store_activity__items_are_numbered_on_and_read_from_a_number),
        STORE_TEST(test_store_settings__values_are_replaced_removed_and_listed_by_prefix),
        STORE_TEST(test_store_activity__batches_of_several_processes_lose_nothing),
    };
    return cmocka_run_group_tests_name("store_delegation", tests, NULL, NULL);
}

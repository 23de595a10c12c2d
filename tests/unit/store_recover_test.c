// Tests of store/run.c and recover.c: who is alive, and what becomes of what the dead left.
#include "store/store_int.h"
#include <deputy/file.h>
#include <deputy/json.h>
#include <stdio.h>
#include <support/store_fixture.h>
#include <time.h>
#include <unistd.h>

static dep_status say_something(store_fixture *r, store *s) {
    activity_row items[] = {
        {.kind = S("turn"), .data = S("{}")},
        {.kind = S("text"), .data = S("{\"text\":\"first \\u65e5\"}")},
        {.kind = S("text"), .data = S("{\"text\":\"turn\"}")},
        {.kind = S("tool"), .data = S("{\"name\":\"read\"}")},
        {.kind = S("turn"), .data = S("{}")},
        {.kind = S("thinking"), .data = S("{\"text\":\"not this\"}")},
    };
    TRY(add(r, s, ID1, DELEG_RUNNING));
    return store_activity_add(s, S(ID1), items, 6, false, &r->err);
}

static void test_store_run__what_a_killed_process_left_is_interrupted_with_its_text(void **state) {
    store_fixture *r = *state;
    size_t n;
    pid_t pid = start_run(r, say_something, true);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 0);
    assert_int_equal(get(r, ID1).status, DELEG_RUNNING);
    assert_int_equal(run_files(r), 2); // the lock and the socket
    end_run(pid, true);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 1);
    delegation_row row = get(r, ID1);
    assert_int_equal(row.status, DELEG_INTERRUPTED);
    assert_str(row.end_reason, S("process died"));
    assert_true(row.ended_ms > 0);
    json *report;
    ok(json_parse(r->a, row.report, 0, &report, &r->err));
    assert_str(json_str(report, S("report"), S("")), S("first 日turn"));
    assert_str(json_str(report, S("status"), S("")), S("interrupted"));
    assert_str(json_str(report, S("id"), S("")), S(ID1));
    assert_true(json_num(report, S("turns"), 0) == 2 && json_num(report, S("tool_calls"), 0) == 1);
    assert_int_equal(run_files(r), 0);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 0);
}

static void test_store_run__a_process_that_ends_in_order_leaves_no_file_and_what_it_did_not_finish_is_found(
    void **state) {
    store_fixture *r = *state;
    size_t n;
    end_run(start_run(r, say_something, false), false);
    assert_int_equal(run_files(r), 0);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 1);
    assert_int_equal(get(r, ID1).status, DELEG_INTERRUPTED);
}

static void test_store_run__own_rows_other_stores_of_this_process_and_rows_without_a_run_are_left(
    void **state) {
    store_fixture *r = *state;
    size_t n;
    str mine, same, other_run;
    ok(add(r, r->s, ID3, DELEG_QUEUED)); // before a run: nobody's
    ok(store_run_begin(r->a, r->s, &mine, &r->err));
    ok(store_run_begin(r->a, r->s, &same, &r->err));
    assert_str(same, mine);
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    assert_str(get(r, ID1).run_id, mine);
    store *other = open_store(r, "/w");
    ok(store_run_begin(r->a, other, &other_run, &r->err));
    assert_false(str_eq(mine, other_run));
    ok(add(r, other, ID2, DELEG_RUNNING));
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 0);
    ok(store_recover(other, &n, &r->err));
    assert_int_equal(n, 0);
    store_close(other);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 1);
    assert_int_equal(get(r, ID1).status, DELEG_RUNNING);
    assert_int_equal(get(r, ID2).status, DELEG_INTERRUPTED);
    assert_int_equal(get(r, ID3).status, DELEG_QUEUED);
}

static void test_store_run__files_of_idle_dead_processes_go_and_foreign_files_stay(void **state) {
    store_fixture *r = *state;
    size_t n;
    ok(store_recover(r->s, &n, &r->err));
    temp_write(r->state.p, "run/0123456789abcdef0123456789abcdef", S(""));
    temp_write(r->state.p, "run/fedcba9876543210fedcba9876543210.sock", S(""));
    temp_write(r->state.p, "run/notes.txt", S("mine"));
    temp_write(r->state.p, "run/fedc.sock", S("mine"));
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 0);
    assert_int_equal(run_files(r), 2);
}

static void test_store_run__rows_of_other_workspaces_are_marked_and_not_counted(void **state) {
    store_fixture *r = *state;
    size_t n;
    end_run(start_run(r, say_something, false), false);
    store *other = open_store(r, "/other");
    ok(store_recover(other, &n, &r->err));
    assert_int_equal(n, 0);
    assert_int_equal(get(r, ID1).status, DELEG_INTERRUPTED);
}

// A turn of a main agent and a delegation in the queue, with a command for each.
static dep_status leave_turns(store_fixture *r, store *s) {
    delegation_row turn = plain_row(ID1, DELEG_RUNNING), asked = plain_row(ID2, DELEG_QUEUED);
    turn.thread = asked.thread = S(THREAD1);
    turn.main = true;
    TRY(store_delegation_add(s, &turn, &r->err));
    TRY(store_delegation_add(s, &asked, &r->err));
    TRY(store_command_add(s, S(ID1), S("stop"), &r->err));
    return store_command_add(s, S(ID2), S("stop"), &r->err);
}

static void test_store_recover__turns_and_queued_rows_of_the_dead_end_and_their_commands_and_sockets_go(
    void **state) {
    store_fixture *r = *state;
    size_t n;
    end_run(start_run(r, leave_turns, true), true);
    assert_int_equal(run_files(r), 2);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM commands"), 2);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 2);
    assert_int_equal(run_files(r), 0);
    assert_int_equal(ask_db(r, "SELECT count(*) FROM commands"), 0);
    assert_int_equal(get(r, ID1).status, DELEG_INTERRUPTED);
    assert_int_equal(get(r, ID2).status, DELEG_INTERRUPTED);
    assert_str(get(r, ID2).end_reason, S("process died"));
    delegation_rows rows;
    ok(store_undelivered(r->a, r->s, S(THREAD1), &rows, &r->err));
    assert_int_equal(rows.n, 1);
    assert_str(rows.p[0].id, S(ID2));
}

static void test_store_recover__what_no_process_takes_in_time_is_interrupted(void **state) {
    store_fixture *r = *state;
    static const struct {
        const char *id;
        int64_t age; // when store_recover reads the clock
        bool main;
        deleg_status after;
    } rows[] = {
        {ID1, STORE_UNTAKEN_MS, false, DELEG_QUEUED},
        {ID2, STORE_UNTAKEN_MS + 1, false, DELEG_INTERRUPTED},
        {ID3, STORE_UNTAKEN_MS + 1, true, DELEG_INTERRUPTED},
    };
    size_t n;
    str mine;
    ok(store_recover(r->s, &n, &r->err));
    ok(store_run_begin(r->a, r->s, &mine, &r->err));
    r->now = 1000000;
    for (size_t i = 0; i < 3; i++) {
        delegation_row row = plain_row(rows[i].id, DELEG_QUEUED);
        row.run_id = S("-");
        row.main = rows[i].main;
        row.created_ms = 2000000 + 1 - rows[i].age;
        ok(store_delegation_add(r->s, &row, &r->err));
        assert_int_equal(get(r, rows[i].id).run_id.n, 0);
    }
    // Mine is in my queue for as long as I like.
    delegation_row row = plain_row(ID4, DELEG_QUEUED);
    row.created_ms = 1;
    ok(store_delegation_add(r->s, &row, &r->err));
    r->now = 2000000;
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 2);
    for (size_t i = 0; i < 3; i++) assert_int_equal(get(r, rows[i].id).status, rows[i].after);
    assert_int_equal(get(r, ID4).status, DELEG_QUEUED);
    delegation_row out = get(r, ID2);
    assert_str(out.end_reason, S("no process took it"));
    json *report;
    ok(json_parse(r->a, out.report, 0, &report, &r->err));
    assert_str(json_str(report, S("report"), S("-")), S(""));
    assert_str(json_str(report, S("end_reason"), S("")), S("no process took it"));
}

static dep_status queue_one(store_fixture *r, store *s) {
    return add(r, s, ID1, DELEG_QUEUED);
}

static void test_store_run__a_queued_row_is_taken_from_nobody_and_from_the_dead_and_from_no_living_process(
    void **state) {
    store_fixture *r = *state;
    str mine;
    delegation_row row = plain_row(ID2, DELEG_QUEUED);
    row.run_id = S("-");
    ok(store_delegation_add(r->s, &row, &r->err));
    refused(store_delegation_take(r->s, S(ID2), &r->err), DEP_ERR_INTERNAL, "begins a run first");
    ok(store_run_begin(r->a, r->s, &mine, &r->err));
    ok(store_delegation_take(r->s, S(ID2), &r->err));
    assert_int_equal(get(r, ID2).status, DELEG_RUNNING);
    assert_true(get(r, ID2).started_ms > 0);
    assert_str(get(r, ID2).run_id, mine);
    refused(store_delegation_take(r->s, S(ID2), &r->err), DEP_ERR_INVALID, "not queued (running)");
    refused(store_delegation_take(r->s, S(ID3), &r->err), DEP_ERR_NOT_FOUND, "no delegation " ID3);
    ok(add(r, r->s, ID3, DELEG_QUEUED)); // in this process's own queue
    ok(store_delegation_take(r->s, S(ID3), &r->err));
    pid_t pid = start_run(r, queue_one, true);
    refused(store_delegation_take(r->s, S(ID1), &r->err), DEP_ERR_INVALID, "another process has");
    end_run(pid, true);
    ok(store_delegation_take(r->s, S(ID1), &r->err));
    assert_str(get(r, ID1).run_id, mine);
    size_t n;
    ok(store_recover(r->s, &n, &r->err)); // the dead process's files, not its former row
    assert_int_equal(n, 0);
    assert_int_equal(run_files(r), 2);
    assert_int_equal(get(r, ID1).status, DELEG_RUNNING);
}

// Buries as another process would, and takes its time. The end of the process lets go of the locks.
static pid_t slow_burier(store_fixture *r, const char *run) {
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int turn, lock;
        if (run_dir_open(r->s, &r->err) != DEP_OK ||
            lock_take(r->s->dir, S("deputy.db.lock"), true, 0, &turn, &r->err) != DEP_OK ||
            lock_take(r->s->run_dir, str_z(run), true, 0, &lock, &r->err) != DEP_OK ||
            write(ready[1], "x", 1) != 1)
            _exit(9);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        _exit(0);
    }
    char c;
    close(ready[1]);
    assert_int_equal(read(ready[0], &c, 1), 1);
    close(ready[0]);
    return pid;
}

static void test_store_recover__who_buries_the_dead_is_no_sign_of_their_life(void **state) {
    store_fixture *r = *state;
    size_t n;
    pid_t dead = start_run(r, say_something, true);
    end_run(dead, true);
    const char *run = str_cz(r->a, get(r, ID1).run_id);
    pid_t burier = slow_burier(r, run);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 1);
    assert_int_equal(get(r, ID1).status, DELEG_INTERRUPTED);
    assert_int_equal(run_files(r), 0);
    end_run(burier, false);
}

// Who lives is a matter of locks and not of time.
static void test_store_recover__a_clock_that_jumps_marks_no_living_one_and_saves_no_dead_one(void **state) {
    store_fixture *r = *state;
    static const int64_t decade = (int64_t)3650 * 86400000;
    size_t n;
    r->now = 2 * decade;
    pid_t pid = start_run(r, say_something, true);
    delegation_row row = plain_row(ID2, DELEG_QUEUED);
    row.run_id = S("-");
    ok(store_delegation_add(r->s, &row, &r->err));
    static const int64_t jumps[] = {decade, -decade, 3 * decade};
    for (size_t i = 0; i < sizeof jumps / sizeof *jumps; i++) {
        r->now = jumps[i];
        ok(store_recover(r->s, &n, &r->err));
        assert_int_equal(get(r, ID1).status, DELEG_RUNNING);
        assert_int_equal(run_files(r), 2);
        // To what nobody has taken the time is all there is to go by.
        assert_int_equal(get(r, ID2).status, jumps[i] > 2 * decade ? DELEG_INTERRUPTED : DELEG_QUEUED);
    }
    end_run(pid, true);
    r->now = -decade;
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 1);
    assert_int_equal(get(r, ID1).status, DELEG_INTERRUPTED);
    assert_true(get(r, ID1).ended_ms > 0); // before its beginning, and still an end
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_run__what_a_killed_process_left_is_interrupted_with_its_text),
        STORE_TEST(
            test_store_run__a_process_that_ends_in_order_leaves_no_file_and_what_it_did_not_finish_is_found),
        STORE_TEST(test_store_run__own_rows_other_stores_of_this_process_and_rows_without_a_run_are_left),
        STORE_TEST(test_store_run__files_of_idle_dead_processes_go_and_foreign_files_stay),
        STORE_TEST(test_store_run__rows_of_other_workspaces_are_marked_and_not_counted),
        STORE_TEST(
            test_store_recover__turns_and_queued_rows_of_the_dead_end_and_their_commands_and_sockets_go),
        STORE_TEST(test_store_recover__what_no_process_takes_in_time_is_interrupted),
        STORE_TEST(test_store_recover__who_buries_the_dead_is_no_sign_of_their_life),
        STORE_TEST(test_store_recover__a_clock_that_jumps_marks_no_living_one_and_saves_no_dead_one),
        STORE_TEST(
            test_store_run__a_queued_row_is_taken_from_nobody_and_from_the_dead_and_from_no_living_process),
    };
    return cmocka_run_group_tests_name("store_recover", tests, NULL, NULL);
}

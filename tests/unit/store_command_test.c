// Tests of store/command.c and socket.c: what one process asks of another's delegation.
#include "store/store_int.h"
#include <deputy/json.h>
#include <poll.h>
#include <support/store_fixture.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_datagram(int fd) {
    return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 1;
}

static void test_store_command__a_command_reaches_the_process_that_has_it_once(void **state) {
    store_fixture *r = *state;
    str mine, theirs;
    command_rows rows;
    store *other = open_store(r, "/w");
    ok(store_run_begin(r->a, r->s, &mine, &r->err));
    ok(store_run_begin(r->a, other, &theirs, &r->err));
    assert_true(store_run_socket(r->s) >= 0);
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(add(r, r->s, ID2, DELEG_QUEUED));
    ok(add(r, other, ID3, DELEG_RUNNING));
    assert_false(has_datagram(store_run_socket(r->s)));
    ok(store_command_add(other, S(ID2), S("stop"), &r->err));
    ok(store_command_add(other, S(ID1), S("stop"), &r->err));
    ok(store_command_add(other, S(ID1), S("stop"), &r->err)); // the same again is the same
    assert_true(has_datagram(store_run_socket(r->s)));
    assert_false(has_datagram(store_run_socket(other)));
    ok(store_command_take(r->a, other, &rows, &r->err));
    assert_int_equal(rows.n, 0);
    ok(store_command_take(r->a, r->s, &rows, &r->err));
    assert_int_equal(rows.n, 2);
    assert_str(rows.p[0].delegation, S(ID2));
    assert_str(rows.p[1].delegation, S(ID1));
    assert_str(rows.p[1].verb, S("stop"));
    assert_false(has_datagram(store_run_socket(r->s))); // taken with the rows
    ok(store_command_take(r->a, r->s, &rows, &r->err));
    assert_int_equal(rows.n, 0);
    // Nothing happens to the delegation by itself.
    assert_int_equal(get(r, ID1).status, DELEG_RUNNING);
    // One that nobody took goes with the end.
    ok(store_command_add(other, S(ID1), S("stop"), &r->err));
    ok(store_delegation_status(r->s, S(ID1), DELEG_COMPLETED, S(""), S("{}"), &r->err));
    assert_int_equal(ask_db(r, "SELECT count(*) FROM commands"), 0);
}

static void test_store_command__commands_that_cannot_be(void **state) {
    store_fixture *r = *state;
    delegation_row done = plain_row(ID1, DELEG_RUNNING);
    add_ended(r, &done);
    ok(add(r, r->s, ID2, DELEG_RUNNING));
    refused(store_command_add(r->s, S(ID1), S("stop"), &r->err), DEP_ERR_INVALID,
            "already ended (completed)");
    refused(store_command_add(r->s, S(ID3), S("stop"), &r->err), DEP_ERR_NOT_FOUND, "no delegation");
    refused(store_command_add(r->s, S("3f2a"), S("stop"), &r->err), DEP_ERR_NOT_FOUND, "no delegation 3f2a");
    refused(store_command_add(r->s, S(ID2), S("dance"), &r->err), DEP_ERR_INVALID, "there is: stop");
    refused(store_command_add(open_store(r, "/other"), S(ID2), S("stop"), &r->err), DEP_ERR_NOT_FOUND,
            "no delegation");
    assert_int_equal(ask_db(r, "SELECT count(*) FROM commands"), 0);
}

static void test_store_command__what_no_process_took_is_stopped_at_once(void **state) {
    store_fixture *r = *state;
    str mine;
    delegation_row row = plain_row(ID1, DELEG_QUEUED);
    row.run_id = S("-");
    ok(store_run_begin(r->a, r->s, &mine, &r->err));
    ok(store_delegation_add(r->s, &row, &r->err));
    ok(store_command_add(r->s, S(ID1), S("stop"), &r->err));
    delegation_row out = get(r, ID1);
    assert_int_equal(out.status, DELEG_STOPPED);
    assert_str(out.end_reason, S("stopped"));
    assert_true(out.ended_ms > 0 && out.started_ms == 0);
    json *report;
    ok(json_parse(r->a, out.report, 0, &report, &r->err));
    assert_str(json_str(report, S("status"), S("")), S("stopped"));
    assert_str(json_str(report, S("report"), S("-")), S(""));
    assert_int_equal(ask_db(r, "SELECT count(*) FROM commands"), 0);
    refused(store_delegation_take(r->s, S(ID1), &r->err), DEP_ERR_INVALID, "not queued (stopped)");
}

static void test_store_command__sockets_are_private_and_go_with_the_store_however_long_the_path_is(
    void **state) {
    store_fixture *r = *state;
    str mine, same;
    // Far more than an address of a socket holds.
    str deep = str_fmt(r->a, "%s/%0*d/%0*d/state", r->dir, 120, 1, 120, 2);
    temp_write(r->dir, str_fmt(r->a, "%0*d/%0*d/x", 120, 1, 120, 2).p, S(""));
    store *s;
    mode_t before = umask(0);
    ok(store_open(r->a, deep, S("/w"), false, &r->clock, &s, &r->err));
    ok(store_run_begin(r->a, s, &mine, &r->err));
    umask(before);
    int fd = store_run_socket(s);
    assert_true(fd >= 0);
    ok(store_run_begin(r->a, s, &same, &r->err));
    assert_int_equal(store_run_socket(s), fd);
    const char *path = str_fmt(r->a, "%.*s/run/%.*s.sock", STR_ARG(deep), STR_ARG(mine)).p;
    struct stat st;
    assert_int_equal(lstat(path, &st), 0);
    assert_true(S_ISSOCK(st.st_mode));
    assert_int_equal(st.st_mode & 07777, 0600);
    ok(add(r, s, ID1, DELEG_RUNNING));
    ok(store_command_add(s, S(ID1), S("stop"), &r->err));
    assert_true(has_datagram(fd));
    store_close(s);
    assert_int_equal(lstat(path, &st), -1);
    assert_int_equal(store_run_socket(r->s), -1);
}

static void test_store_command__more_datagrams_than_a_socket_holds_disturb_nobody(void **state) {
    store_fixture *r = *state;
    str mine;
    command_rows rows;
    ok(store_run_begin(r->a, r->s, &mine, &r->err));
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    for (int i = 0; i < 3000; i++) run_socket_poke(r->s->run_dir, r->s->run_id);
    ok(store_command_add(r->s, S(ID1), S("stop"), &r->err));
    ok(store_command_take(r->a, r->s, &rows, &r->err));
    assert_int_equal(rows.n, 1);
    assert_false(has_datagram(store_run_socket(r->s)));
    // A process whose socket could not be made finds its commands all the same.
    run_socket_remove(r->s->run_dir, r->s->run_id);
    ok(store_command_add(r->s, S(ID1), S("stop"), &r->err));
    ok(store_command_take(r->a, r->s, &rows, &r->err));
    assert_int_equal(rows.n, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_command__a_command_reaches_the_process_that_has_it_once),
        STORE_TEST(test_store_command__commands_that_cannot_be),
        STORE_TEST(test_store_command__what_no_process_took_is_stopped_at_once),
        STORE_TEST(test_store_command__sockets_are_private_and_go_with_the_store_however_long_the_path_is),
        STORE_TEST(test_store_command__more_datagrams_than_a_socket_holds_disturb_nobody),
    };
    return cmocka_run_group_tests_name("store_command", tests, NULL, NULL);
}

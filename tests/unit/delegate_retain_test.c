// Retention as the config wants it, and queued rows that are given up.
#include "support/ws_fixture.h"
#include <deputy/delegate.h>
#include <deputy/json.h>

enum : int64_t { DAY_MS = 86400000 };

static int64_t now_ms(void *p) {
    return *(int64_t *)p;
}
static void any(void *p, void *to, size_t n) {
    (void)p;
    sys_clock_real()->random(sys_clock_real()->ctx, to, n);
}

typedef struct {
    ws_fixture *f;
    int64_t now;
    sys_clock clock;
    workspace *w;
    store *s;
    dep_err err;
} rig;

static void ok(const rig *r, dep_status status) {
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
}

// Opens the workspace with this config, and its store; both with a clock of ours.
static rig *opened(ws_fixture *f, const char *config) {
    rig *r = NEW(f->a, rig);
    *r = (rig){.f = f, .now = 1000 * DAY_MS};
    r->clock = (sys_clock){.now_ms = now_ms, .mono_ms = now_ms, .random = any, .ctx = &r->now};
    ws_write(f, "/config/deputy/config.yaml", config);
    r->w = ws_open(f);
    r->w->clock = &r->clock;
    ok(r, store_open(f->a, r->w->dirs.state, r->w->root, false, &r->clock, &r->s, &r->err));
    return r;
}

// One that ended so many days ago, and was delivered.
static void add_old(rig *r, int64_t days) {
    int64_t now = r->now;
    delegation_row row = {
        .id = sys_id(r->f->a, &r->clock), .agent = S("a"), .task = S("t"), .status = DELEG_QUEUED};
    r->now -= days * DAY_MS;
    ok(r, store_delegation_add(r->s, &row, &r->err));
    ok(r, store_delegation_status(r->s, row.id, DELEG_COMPLETED, S("end_turn"), S("{}"), &r->err));
    ok(r, store_delivered(r->s, row.id, &r->err));
    r->now = now;
}

static size_t left(rig *r) {
    delegation_rows rows = {0};
    ok(r, store_delegation_list(r->f->a, r->s, (str){0}, 100, &rows, &r->err));
    return rows.n;
}

static size_t retained(rig *r, bool now) {
    size_t removed = 99;
    ok(r, delegate_retain(r->s, r->w, now, &removed, &r->err));
    return removed;
}

static void test_delegate_retain__once_a_day_and_whenever_it_is_asked_for(void **state) {
    rig *r = opened(*state, "retention: {days: 10}\n");
    add_old(r, 9);
    add_old(r, 11);
    assert_int_equal(retained(r, false), 1);
    add_old(r, 11);
    assert_int_equal(retained(r, false), 0); // this day is done
    assert_int_equal(retained(r, true), 1);
    add_old(r, 11);
    r->now += DAY_MS - 1;
    assert_int_equal(retained(r, false), 0);
    r->now++;
    assert_int_equal(retained(r, false), 1);
    assert_int_equal(left(r), 1);
}

static void test_delegate_retain__a_config_with_errors_removes_nothing(void **state) {
    rig *r = opened(*state, "retention: {days: many}\n");
    size_t removed = 99;
    add_old(r, 900);
    assert_int_equal(retained(r, false), 0);
    assert_int_equal(delegate_retain(r->s, r->w, true, &removed, &r->err), DEP_ERR_REFUSED);
    assert_non_null(strstr(r->err.msg, "config has errors"));
    assert_int_equal(removed, 0);
    assert_int_equal(left(r), 1);
}

static void test_delegate_retain__an_engine_that_opens_applies_it(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, "");
    engine *e;
    add_old(r, 179);
    add_old(r, 181);
    ok(r, engine_open(f->a, r->w, NULL, &e, &r->err));
    assert_int_equal(left(r), 1);
    engine_close(e);
}

// --- Given up

static void test_delegate_retain__a_row_that_nobody_took_can_be_given_up(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "m.md", "words\n");
    ws_agent(f, "a", "knowledge: [{name: M, path: '*.md'}]\n");
    ws_trust(f);
    rig *r = opened(f, "");
    delegate_order o = {.agent = S("a"), .task = S("words"), .background = true};
    delegate_report rep;
    delegation_row row;
    json *j;
    engine *e;
    str id;
    ok(r, engine_open(f->a, r->w, NULL, &e, &r->err));
    ok(r, engine_queue(e, f->a, &o, &id, &r->err));
    ok(r, engine_give_up(e, id, S("nobody came"), &r->err));
    ok(r, store_delegation_get(f->a, r->s, id, &row, &r->err));
    assert_int_equal(row.status, DELEG_FAILED);
    assert_true(str_eq(row.end_reason, S("nobody came")));
    ok(r, json_parse(f->a, row.report, 0, &j, &r->err));
    assert_true(str_eq(json_str(j, S("status"), (str){0}), S("failed")));
    assert_int_equal(json_num(j, S("turns"), -1), 0);
    assert_int_equal(engine_run_queued(e, f->a, id, NULL, &rep, &r->err), DEP_ERR_INVALID);
    // What was taken goes its own way.
    ok(r, engine_queue(e, f->a, &o, &id, &r->err));
    ok(r, engine_run_queued(e, f->a, id, NULL, &rep, &r->err));
    assert_int_equal(rep.status, DELEG_COMPLETED);
    assert_int_equal(engine_give_up(e, id, S("nobody came"), &r->err), DEP_ERR_INVALID);
    ok(r, store_delegation_get(f->a, r->s, id, &row, &r->err));
    assert_int_equal(row.status, DELEG_COMPLETED);
    engine_close(e);
}

#define CASE(name) cmocka_unit_test_setup_teardown(test_delegate_retain__##name, ws_setup, ws_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(once_a_day_and_whenever_it_is_asked_for),
        CASE(a_config_with_errors_removes_nothing),
        CASE(an_engine_that_opens_applies_it),
        CASE(a_row_that_nobody_took_can_be_given_up),
    };
    return cmocka_run_group_tests_name("delegate_retain", tests, NULL, NULL);
}

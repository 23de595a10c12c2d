// One delegation on the bundled `quote` model, which needs no server: budgets before each call, gates of an
// unattended run, what is stored when, and state that cannot be written (rules B16, B19, B20, B27). Scripted
// models: tests/e2e/boundaries_delegate.py.
#include "support/ws_fixture.h"
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

// A clock that goes on by `step` at each look.
typedef struct {
    int64_t now, step;
} ticker;

static int64_t tick(void *p) {
    ticker *t = p;
    return t->now += t->step;
}
static int64_t wall(void *p) {
    return 1796000000000 + ((ticker *)p)->now;
}
static void any(void *p, void *to, size_t n) {
    (void)p;
    sys_clock_real()->random(sys_clock_real()->ctx, to, n);
}

typedef struct {
    ws_fixture *f;
    ticker ticker;
    sys_clock clock;
    int cancel_after; // asks; 0: never
    strs items, kinds;
    buf text;
    delegate_report report;
    dep_err err;
} running;

static bool is_cancelled(void *p) {
    running *r = p;
    return r->cancel_after && --r->cancel_after == 0 ? r->cancel_after = -1, true : r->cancel_after < 0;
}
static void on_item(void *p, str kind, str item) {
    running *r = p;
    vec_push(r->f->a, &r->items, str_dup(r->f->a, item));
    vec_push(r->f->a, &r->kinds, str_dup(r->f->a, kind));
}
static void on_text(void *p, str delta) {
    buf_add(&((running *)p)->text, delta);
}

static running *prepared(ws_fixture *f) {
    running *r = NEW(f->a, running);
    *r = (running){.f = f, .ticker = {.step = 1}, .text = buf_new(f->a, 0)};
    r->clock = (sys_clock){.now_ms = wall, .mono_ms = tick, .random = any, .ctx = &r->ticker};
    ws_open(f)->clock = &r->clock;
    return r;
}

static dep_status run_task(running *r, const char *agent, const char *task) {
    delegate_sink sink = {.item = on_item, .text = on_text, .cancelled = is_cancelled, .ctx = r};
    delegate_order o = {.agent = str_z(agent), .task = str_z(task)};
    engine *e;
    TRY(engine_open(r->f->a, r->f->w, NULL, &e, &r->err));
    dep_status status = engine_run(e, r->f->a, &o, &sink, &r->report, &r->err);
    engine_close(e);
    return status;
}

static running *ran(ws_fixture *f, const char *agent, const char *task) {
    running *r = prepared(f);
    if (run_task(r, agent, task) != DEP_OK) fail_msg("%s", r->err.msg);
    return r;
}

static delegation_row stored(ws_fixture *f, str id) {
    delegation_row row = {0};
    dep_err err;
    if (workspace_store(f->w, true, &err) != DEP_OK ||
        store_delegation_get(f->a, f->w->store, id, &row, &err) != DEP_OK)
        fail_msg("%s", err.msg);
    return row;
}

static void ended(const running *r, deleg_status status, const char *reason) {
    if (r->report.status != status || !str_starts(r->report.end_reason, str_z(reason)))
        fail_msg("%s: " STR_FMT, deleg_status_name(r->report.status), STR_ARG(r->report.end_reason));
}

static void has(str text, const char *part) {
    if (str_find(text, str_z(part)) == SIZE_MAX) fail_msg("\"%s\" is not in: " STR_FMT, part, STR_ARG(text));
}

static void lacks(str text, const char *part) {
    if (str_find(text, str_z(part)) != SIZE_MAX) fail_msg("\"%s\" is in: " STR_FMT, part, STR_ARG(text));
}

static void make_agent(ws_fixture *f, const char *rows) {
    ws_write(f, "docs/manual.md", "# Manual\n\nRefunds are accepted within seven days.\n");
    ws_agent(f, "a", str_cz(f->a, str_fmt(f->a, "knowledge: [{name: Manual, path: 'docs/**'}]\n%s", rows)));
    ws_trust(f);
}

// --- Budgets

static void test_delegate_run__it_ends_with_a_report_that_is_stored(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "");
    running *r = ran(f, "a", "refunds");
    ended(r, DELEG_COMPLETED, "end_turn");
    has(r->report.report, "docs/manual.md:3");
    assert_int_equal(r->report.turns, 2);
    assert_int_equal(r->report.tool_calls, 1);
    delegation_row row = stored(f, r->report.id);
    assert_int_equal(row.status, DELEG_COMPLETED);
    assert_true(str_eq(row.report, r->report.json));
    assert_true(str_eq(row.definition_hash, ws_entry(f, "a.yaml")->def.sha256));
    assert_int_equal(r->report.id.n, 32);
    // The last item says how it ended, and what was heard is what the report holds.
    assert_true(str_eq(r->kinds.p[0], S("status")) && str_eq(r->kinds.p[r->kinds.n - 1], S("status")));
    has(r->items.p[r->items.n - 1], "\"completed\"");
    has(buf_str(&r->text), "docs/manual.md:3");
}

static void test_delegate_run__turns_are_counted_before_each_call(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "maxTurns: 1\n");
    running *r = ran(f, "a", "refunds");
    ended(r, DELEG_TRUNCATED, "max turns: 1");
    assert_int_equal(r->report.turns, 1);
    make_agent(f, "maxTurns: 2\n");
    r = ran(f, "a", "refunds");
    ended(r, DELEG_COMPLETED, "end_turn");
}

static void test_delegate_run__minutes_are_looked_at_before_each_call(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "limits: {minutes: 1}\n");
    running *r = prepared(f);
    r->ticker.step = 20001; // the second call is due at the fourth look
    assert_int_equal(run_task(r, "a", "refunds"), DEP_OK);
    ended(r, DELEG_TRUNCATED, "minutes: 1");
    assert_int_equal(r->report.turns, 1);
    r = prepared(f);
    r->ticker.step = 100;
    assert_int_equal(run_task(r, "a", "refunds"), DEP_OK);
    ended(r, DELEG_COMPLETED, "end_turn");
}

// Ten years on, and back, at each look.
static int64_t jumping_wall(void *p) {
    const ticker *t = p;
    return 1796000000000 + (t->now % 2 ? (int64_t)3650 * 86400000 : 0);
}

static void test_delegate_run__a_clock_that_jumps_spends_no_budget_and_loses_no_item(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "limits: {minutes: 1}\n");
    running *r = prepared(f);
    r->clock.now_ms = jumping_wall;
    assert_int_equal(run_task(r, "a", "refunds"), DEP_OK);
    ended(r, DELEG_COMPLETED, "end_turn");
    assert_true(str_eq(stored(f, r->report.id).report, r->report.json));
    activity_rows items;
    assert_int_equal(store_activity_list(f->a, f->w->store, r->report.id, 0, SIZE_MAX, &items, &r->err),
                     DEP_OK);
    assert_int_equal(items.n, r->items.n);
    for (size_t i = 0; i < items.n; i++) assert_true(str_eq(items.p[i].data, r->items.p[i]));
}

static void test_delegate_run__a_stop_is_heard_and_keeps_the_place(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "");
    // How often it is asked is nobody's promise.
    for (int after = 1; after < 60; after++) {
        running *r = prepared(f);
        r->cancel_after = after;
        assert_int_equal(run_task(r, "a", "refunds"), DEP_OK);
        if (r->report.status == DELEG_COMPLETED) {
            assert_true(after > 3);
            return;
        }
        ended(r, DELEG_STOPPED, "stopped by a person");
        assert_int_equal(stored(f, r->report.id).status, DELEG_STOPPED);
    }
    fail_msg("it never came to its end");
}

// --- Gates

static void test_delegate_run__a_gated_call_is_denied_where_nobody_can_be_asked(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "approval: {confirm: [kb_search]}\n");
    running *r = ran(f, "a", "refunds");
    bool denied = false;
    for (size_t i = 0; i < r->items.n; i++) {
        lacks(r->items.p[i], "seven days");
        denied |=
            str_find(r->items.p[i],
                     S("Denied by policy: kb_search asks a person first (approval.confirm: kb_search")) !=
            SIZE_MAX;
    }
    assert_true(denied);
    lacks(r->report.report, "seven days");
    make_agent(f, "approval: {review: [knowledge]}\n");
    r = ran(f, "a", "refunds");
    lacks(r->report.report, "seven days");
    make_agent(f, "");
    // The system's default pair binds where the definition has none.
    ws_write(f, "/config/deputy/config.yaml", "approval: {confirm: [knowledge]}\n");
    r = ran(f, "a", "refunds");
    lacks(r->report.report, "seven days");
}

static void test_delegate_run__what_cannot_be_held_is_not_begun(void **state) {
    ws_fixture *f = *state;
    static const struct {
        const char *rows;
        dep_status status;
        const char *says;
    } rows[] = {
        {"model: none/such\nlimits: {cost: 1}\n", DEP_ERR_REFUSED, "none/such has no price"},
        {"approval: {confirm: [fs.write]}\n", DEP_ERR_INVALID, "has errors"},
        {"model: none/such\n", DEP_ERR_NOT_FOUND, "not configured"},
        {"model: quote/other\n", DEP_ERR_INVALID, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_agent(f, rows[i].rows);
        running *r = prepared(f);
        dep_status st = run_task(r, "a", "refunds");
        if (i == 3 && st == DEP_OK) continue; // a delegation that failed at its model
        if (st != rows[i].status) fail_msg("row %zu: %d %s", i, st, r->err.msg);
        if (rows[i].says && !strstr(r->err.msg, rows[i].says)) fail_msg("row %zu: %s", i, r->err.msg);
        assert_int_equal(r->items.n, 0);
    }
    make_agent(f, "");
    running *r = prepared(f);
    assert_int_equal(run_task(r, "a", "  \n"), DEP_ERR_INVALID);
    assert_int_equal(run_task(r, "a", "\xff"), DEP_ERR_INVALID);
    buf big = buf_new(f->a, 0);
    buf_add(&big, S("refunds "));
    while (big.n < DELEGATE_TASK_MAX) buf_addc(&big, 'x');
    assert_int_equal(run_task(r, "a", str_cz(f->a, buf_str(&big))), DEP_OK);
    buf_addc(&big, 'x');
    assert_int_equal(run_task(r, "a", str_cz(f->a, buf_str(&big))), DEP_ERR_LIMIT);
}

// --- State

static void test_delegate_run__state_that_cannot_be_written_refuses_before_the_first_call(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "");
    // A file where the directory of state should be, and one that somebody else may write to.
    ws_setenv("XDG_STATE_HOME", ws_path(f, "/broken"));
    ws_write(f, "/broken", "");
    running *r = prepared(f);
    agent_entry *e = ws_entry(f, "a.yaml");
    assert_int_equal(e->state, AGENT_UNTRUSTED); // no list of trust either
    assert_int_not_equal(run_task(r, "librarian", "refunds"), DEP_OK);
    assert_int_equal(r->items.n, 0);
    ws_setenv("XDG_STATE_HOME", ws_path(f, "/open"));
    ws_mkdir(f, "/open/deputy");
    assert_int_equal(chmod(ws_path(f, "/open/deputy"), 0777), 0);
    r = prepared(f);
    assert_int_equal(run_task(r, "librarian", "refunds"), DEP_ERR_REFUSED);
    assert_int_equal(r->items.n, 0);
    // A database that is none.
    ws_setenv("XDG_STATE_HOME", ws_path(f, "/damaged"));
    ws_write(f, "/damaged/deputy/deputy.db",
             "this is no database, and longer than its header would be at the least ...");
    assert_int_equal(chmod(ws_path(f, "/damaged/deputy"), 0700), 0);
    assert_int_equal(chmod(ws_path(f, "/damaged/deputy/deputy.db"), 0600), 0);
    r = prepared(f);
    assert_int_not_equal(run_task(r, "librarian", "refunds"), DEP_OK);
    assert_int_equal(r->items.n, 0);
}

static void test_delegate_run__ids_are_random_and_of_this_workspace(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "");
    str ids[3];
    for (size_t i = 0; i < 3; i++) {
        ws_open(f)->clock = sys_clock_real();
        running r = {.f = f, .text = buf_new(f->a, 0)};
        assert_int_equal(run_task(&r, "a", "refunds"), DEP_OK);
        ids[i] = r.report.id;
        for (size_t k = 0; k < ids[i].n; k++) assert_non_null(memchr("0123456789abcdef", ids[i].p[k], 16));
        for (size_t k = 0; k < i; k++) assert_false(str_eq(str_sub(ids[i], 0, 12), str_sub(ids[k], 0, 12)));
    }
    // Another workspace does not see them.
    ws_mkdir(f, "/other");
    workspace *w;
    dep_err err;
    delegation_row row;
    assert_int_equal(ws_open_at(f, "other", &w, &err), DEP_OK);
    assert_int_equal(workspace_store(w, true, &err), DEP_OK);
    assert_int_equal(store_delegation_get(f->a, w->store, ids[0], &row, &err), DEP_ERR_NOT_FOUND);
}

// --- Secrets

static void test_delegate_run__no_value_of_the_environment_is_kept_or_shown(void **state) {
    ws_fixture *f = *state;
    ws_setenv("A_KEY", "sk-first-0123456789");
    ws_setenv("B_KEY", "second/secret+value");
    ws_write(f, "/config/deputy/config.yaml",
             "providers:\n"
             "  one: {api: anthropic, url: 'https://api.example', key: '${A_KEY}'}\n"
             "  two: {api: anthropic, url: 'https://api.example', key: 'x-${B_KEY}-${UNSET:-none-at-all}'}\n"
             "  three: {api: anthropic, url: 'https://api.example', key: '${NOT_SET}'}\n");
    ws_write(f, "docs/leak.md",
             "refunds sk-first-0123456789 and second/secret+value and second%2Fsecret%2Bvalue\n");
    ws_agent(f, "a", "knowledge: [{name: Manual, path: 'docs/**'}]\nx-note: sk-first-0123456789\n");
    ws_trust(f);
    running *r = ran(f, "a", "refunds sk-first-0123456789");
    delegation_row row = stored(f, r->report.id);
    str all[] = {r->report.report, r->report.json, buf_str(&r->text), row.report,
                 row.task,         row.definition, row.grant};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        lacks(all[i], "sk-first");
        lacks(all[i], "secret");
    }
    for (size_t i = 0; i < r->items.n; i++) {
        lacks(r->items.p[i], "sk-first");
        lacks(r->items.p[i], "secret");
    }
    has(r->report.report, "refunds *** and *** and ***");
    activity_rows items = {0};
    dep_err err;
    assert_int_equal(store_activity_list(f->a, f->w->store, r->report.id, 0, 1000, &items, &err), DEP_OK);
    assert_int_equal(items.n, r->items.n);
    for (vec_each(const activity_row, it, &items)) lacks(it->data, "sk-first");
}

// --- Memory

static void test_delegate_run__the_report_names_what_was_written_to_memory(void **state) {
    ws_fixture *f = *state;
    make_agent(f, "memory: private\n");
    running *r = ran(f, "a", "refunds");
    json *j;
    dep_err err;
    assert_int_equal(json_parse(f->a, r->report.json, 0, &j, &err), DEP_OK);
    static const char *const keys[] = {
        "id",    "agent",      "status", "end_reason", "report",        "definition_hash", "model",
        "turns", "tool_calls", "usage",  "cost",       "memory_writes", "cards",           "warnings"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) assert_non_null(json_get(j, str_z(keys[i])));
    assert_int_equal(json_get(j, S("memory_writes"))->count, 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(test_delegate_run__##name, ws_setup, ws_teardown)
    const struct CMUnitTest tests[] = {
        T(it_ends_with_a_report_that_is_stored),
        T(turns_are_counted_before_each_call),
        T(minutes_are_looked_at_before_each_call),
        T(a_clock_that_jumps_spends_no_budget_and_loses_no_item),
        T(a_stop_is_heard_and_keeps_the_place),
        T(a_gated_call_is_denied_where_nobody_can_be_asked),
        T(what_cannot_be_held_is_not_begun),
        T(state_that_cannot_be_written_refuses_before_the_first_call),
        T(ids_are_random_and_of_this_workspace),
        T(no_value_of_the_environment_is_kept_or_shown),
        T(the_report_names_what_was_written_to_memory),
    };
    return cmocka_run_group_tests_name("delegate_run", tests, NULL, NULL);
}

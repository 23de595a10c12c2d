// Many delegations in one process, on the bundled `quote` model: the cap and its queue, stopping, waiting,
// what a running one keeps of a definition that changes, and continuing one that has ended (rules B20, B21).
#include "support/ws_fixture.h"
#include <deputy/config.h>
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

// Holds every delegation at its first turn until it is let go.
typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int at_turn, allowed; // delegations that have come to their first turn, and how many may go on
    int most, running;    // at once
    char order[64][33];   // ids in the order in which they began
    int begun;
    char ended[64][33];
    int n_ended;
} hold;

typedef struct {
    ws_fixture *f;
    hold gate;
    engine_sink sink;
    engine *e;
    dep_err err;
} rig;

static void on_item(void *p, str id, str agent, str kind, str item) {
    hold *g = &((rig *)p)->gate;
    (void)agent;
    pthread_mutex_lock(&g->lock);
    if (str_eq(kind, S("turn")) && str_find(item, S("\"n\":1}")) != SIZE_MAX) {
        if (g->begun < 64) snprintf(g->order[g->begun++], 33, "%.32s", id.p);
        if (++g->running > g->most) g->most = g->running;
        int mine = ++g->at_turn;
        pthread_cond_broadcast(&g->changed);
        while (mine > g->allowed) pthread_cond_wait(&g->changed, &g->lock);
        g->running--;
    }
    pthread_mutex_unlock(&g->lock);
}

static void on_ended(void *p, str id, str agent, deleg_status status) {
    hold *g = &((rig *)p)->gate;
    (void)agent, (void)status;
    pthread_mutex_lock(&g->lock);
    if (g->n_ended < 64) snprintf(g->ended[g->n_ended++], 33, "%.32s", id.p);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

static void allow(rig *r, int n) {
    pthread_mutex_lock(&r->gate.lock);
    r->gate.allowed = n;
    pthread_cond_broadcast(&r->gate.changed);
    pthread_mutex_unlock(&r->gate.lock);
}

static void until_at_turn(rig *r, int n) {
    pthread_mutex_lock(&r->gate.lock);
    while (r->gate.at_turn < n) pthread_cond_wait(&r->gate.changed, &r->gate.lock);
    pthread_mutex_unlock(&r->gate.lock);
}

static void make_agent(ws_fixture *f, const char *rows) {
    ws_write(f, "docs/manual.md", "# Manual\n\nRefunds are accepted within seven days.\n");
    ws_agent(f, "a", str_cz(f->a, str_fmt(f->a, "knowledge: [{name: Manual, path: 'docs/**'}]\n%s", rows)));
    ws_trust(f);
}

static rig *opened(ws_fixture *f, const char *config, bool gated) {
    if (config) ws_write(f, "/config/deputy/config.yaml", config);
    make_agent(f, "");
    rig *r = NEW(f->a, rig);
    r->f = f;
    pthread_mutex_init(&r->gate.lock, NULL);
    pthread_cond_init(&r->gate.changed, NULL);
    r->gate.allowed = gated ? 0 : 1000000;
    r->sink = (engine_sink){.item = on_item, .ended = on_ended, .ctx = r};
    if (engine_open(f->a, ws_open(f), &r->sink, &r->e, &r->err) != DEP_OK) fail_msg("%s", r->err.msg);
    return r;
}

static str started(rig *r, const delegate_order *o) {
    str id = {0};
    if (engine_start(r->e, r->f->a, o, &id, &r->err) != DEP_OK) fail_msg("%s", r->err.msg);
    return id;
}

static str started_a(rig *r) {
    return started(r, &(delegate_order){.agent = S("a"), .task = S("refunds")});
}

static void wait_all(rig *r, const str *ids, size_t n) {
    bool ended[64];
    assert_true(engine_wait(r->e, ids, n, false, 60000, ended, NULL, NULL));
}

typedef struct {
    arena *a;
    str id, text;
    delegation_row row;
} get;

static dep_status get_row(store *s, void *p, dep_err *err) {
    get *g = p;
    return store_delegation_get(g->a, s, g->id, &g->row, err);
}

static delegation_row stored(rig *r, str id) {
    get g = {.a = r->f->a, .id = id};
    if (store_do(engine_store(r->e), STORE_READ, get_row, &g, &r->err) != DEP_OK) fail_msg("%s", r->err.msg);
    return g.row;
}

static str in_report(rig *r, str id, const char *key) {
    json *j;
    delegation_row row = stored(r, id);
    if (json_parse(r->f->a, row.report, 0, &j, &r->err) != DEP_OK) fail_msg("%s", r->err.msg);
    const json *v = json_get(j, str_z(key));
    return v ? (v->kind == JSON_STRING ? v->s : v->raw) : (str){0};
}

typedef struct {
    arena *a;
    str id;
    message_rows rows;
} sent;

static dep_status get_messages(store *s, void *p, dep_err *err) {
    sent *m = p;
    return store_message_list(m->a, s, m->id, &m->rows, err);
}

// The prompt and the tools that a delegation began with, as they were sent.
static str system_of(rig *r, str id) {
    sent m = {.a = r->f->a, .id = id};
    if (store_do(engine_store(r->e), STORE_READ, get_messages, &m, &r->err) != DEP_OK)
        fail_msg("%s", r->err.msg);
    assert_true(m.rows.n > 0 && str_eq(m.rows.p[0].kind, S("system")));
    return m.rows.p[0].data;
}

static void has(str text, const char *part) {
    if (str_find(text, str_z(part)) == SIZE_MAX) fail_msg("\"%s\" is not in: " STR_FMT, part, STR_ARG(text));
}

// --- The cap and its queue -----------------------------------------------------------------------

static void test_delegate_engine__over_the_cap_they_queue_in_order(void **state) {
    rig *r = opened(*state, "limits: {running: 2}\n", true);
    enum { N = 6 };
    str ids[N];
    for (int i = 0; i < N; i++) ids[i] = started_a(r);
    until_at_turn(r, 2);
    assert_int_equal(stored(r, ids[1]).status, DELEG_RUNNING);
    assert_int_equal(stored(r, ids[2]).status, DELEG_QUEUED);
    engine_tasks now = {0};
    engine_list(r->e, r->f->a, (str){0}, &now);
    assert_int_equal(now.n, N);
    assert_int_equal(now.p[1].status, DELEG_RUNNING);
    assert_int_equal(now.p[2].status, DELEG_QUEUED);
    // One is let go while the other waits: the one that begins is the one that came first. Of two that begin
    // together either may be the first at the gate.
    for (int i = 2; i < N; i++) {
        allow(r, i - 1);
        until_at_turn(r, i + 1);
        assert_string_equal(r->gate.order[i], str_cz(r->f->a, ids[i]));
    }
    allow(r, 1000);
    wait_all(r, ids, N);
    assert_true(r->gate.most <= 2);
    assert_int_equal(r->gate.begun, N);
    for (int i = 0; i < N; i++) {
        delegation_row row = stored(r, ids[i]);
        assert_int_equal(row.status, DELEG_COMPLETED);
        assert_true(row.started_ms > 0);
        has(row.report, "docs/manual.md:3");
    }
    engine_close(r->e);
}

static void test_delegate_engine__the_list_tells_turns_of_a_main_agent(void **state) {
    rig *r = opened(*state, NULL, true);
    str main = started(r, &(delegate_order){.agent = S("a"), .task = S("refunds"), .role = ROLE_MAIN});
    str other = started(r, &(delegate_order){.agent = S("a"), .task = S("refunds"), .description = S("two")});
    engine_tasks now = {0};
    engine_list(r->e, r->f->a, (str){0}, &now);
    assert_int_equal(now.n, 2);
    assert_true(str_eq(now.p[0].id, main) && now.p[0].is_main);
    assert_true(str_eq(now.p[1].id, other) && !now.p[1].is_main);
    assert_true(str_eq(now.p[1].description, S("two")));
    allow(r, 1000);
    engine_close(r->e);
}

static void test_delegate_engine__the_default_cap_and_the_most_that_run(void **state) {
    rig *r = opened(*state, NULL, true);
    enum { N = CONFIG_RUNNING + 1 };
    str ids[N];
    for (int i = 0; i < N; i++) ids[i] = started_a(r);
    until_at_turn(r, CONFIG_RUNNING);
    assert_int_equal(stored(r, ids[N - 1]).status, DELEG_QUEUED);
    allow(r, 1000);
    wait_all(r, ids, N);
    assert_int_equal(r->gate.most, CONFIG_RUNNING);
    engine_close(r->e);
}

static void test_delegate_engine__a_queue_of_1000_is_the_longest(void **state) {
    rig *r = opened(*state, "limits: {running: 1}\n", true);
    str last = {0}, id;
    delegate_order o = {.agent = S("a"), .task = S("refunds")};
    for (int i = 0; i <= DELEGATE_QUEUED_MAX; i++) last = started_a(r);
    assert_int_equal(engine_start(r->e, r->f->a, &o, &id, &r->err), DEP_ERR_LIMIT);
    has(str_z(r->err.msg), "1000 delegations wait");
    assert_true(engine_stop(r->e, last)); // one less, so one more fits
    (void)started_a(r);
    allow(r, 1);
    engine_close(r->e);
    // Those that never began were ended with the program.
    r->f->w = NULL;
}

// --- Stopping ------------------------------------------------------------------------------------

static void test_delegate_engine__a_stop_ends_what_waits_and_what_runs(void **state) {
    rig *r = opened(*state, "limits: {running: 1}\n", true);
    str running = started_a(r), waiting = started_a(r);
    until_at_turn(r, 1);
    assert_true(engine_stop(r->e, waiting));
    assert_int_equal(stored(r, waiting).status, DELEG_STOPPED);
    has(in_report(r, waiting, "end_reason"), "stopped by a person");
    assert_false(engine_stop(r->e, waiting));
    assert_true(engine_stop(r->e, running));
    allow(r, 1000);
    wait_all(r, &running, 1);
    assert_int_equal(stored(r, running).status, DELEG_STOPPED);
    assert_false(engine_stop(r->e, S("00000000000000000000000000000000")));
    engine_close(r->e);
}

static void *let_go(void *p) {
    allow(p, 1000);
    return NULL;
}

static void test_delegate_engine__closing_stops_all_and_loses_no_report(void **state) {
    rig *r = opened(*state, "limits: {running: 2}\n", true);
    str ids[4];
    for (int i = 0; i < 4; i++) ids[i] = started_a(r);
    until_at_turn(r, 2);
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, let_go, r), 0);
    engine_close(r->e);
    pthread_join(t, NULL);
    for (int i = 0; i < 4; i++) {
        delegation_row row = stored(r, ids[i]);
        assert_true(deleg_ended(row.status));
        assert_true(row.report.n > 0);
    }
}

// --- Waiting -------------------------------------------------------------------------------------

static bool at_once(void *p) {
    (void)p;
    return true;
}

static void test_delegate_engine__waiting_for_any_all_and_not_at_all(void **state) {
    rig *r = opened(*state, "limits: {running: 4}\n", true);
    str ids[2] = {started_a(r), started_a(r)};
    bool ended[2];
    until_at_turn(r, 2);
    assert_false(engine_wait(r->e, ids, 2, true, 20, ended, NULL, NULL));
    assert_false(engine_wait(r->e, ids, 2, true, 60000, ended, at_once, NULL));
    allow(r, 1);
    assert_true(engine_wait(r->e, ids, 2, true, 60000, ended, NULL, NULL));
    assert_true(ended[0] != ended[1]);
    allow(r, 2);
    assert_true(engine_wait(r->e, ids, 2, false, 60000, ended, NULL, NULL));
    assert_true(ended[0] && ended[1]);
    engine_close(r->e);
}

static void test_delegate_engine__the_end_of_a_background_one_is_announced(void **state) {
    rig *r = opened(*state, NULL, false);
    str plain = started_a(r);
    str id = started(r, &(delegate_order){.agent = S("a"), .task = S("refunds"), .background = true});
    wait_all(r, &plain, 1);
    wait_all(r, &id, 1);
    engine_close(r->e);
    assert_int_equal(r->gate.n_ended, 1);
    assert_string_equal(r->gate.ended[0], id.p);
}

// --- Definitions ---------------------------------------------------------------------------------

static void test_delegate_engine__a_running_one_keeps_the_definition_it_began_with(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, true);
    str first = started_a(r);
    until_at_turn(r, 1);
    str hash = stored(r, first).definition_hash;
    ws_write(f, "docs/other.md", "Refunds of other things: never.\n");
    ws_agent(f, "a", "knowledge: [{name: Other, path: 'docs/other.md'}]\n");
    ws_trust(f);
    allow(r, 1000);
    str second = started_a(r);
    wait_all(r, &first, 1);
    wait_all(r, &second, 1);
    has(in_report(r, first, "report"), "docs/manual.md:3");
    assert_true(str_eq(stored(r, first).definition_hash, hash));
    assert_false(str_eq(stored(r, second).definition_hash, hash));
    has(in_report(r, second, "report"), "docs/other.md:1");
    assert_int_equal(str_find(in_report(r, second, "report"), S("docs/manual.md")), SIZE_MAX);
    engine_close(r->e);
}

static void test_delegate_engine__an_order_that_cannot_be_leaves_nothing(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    str id;
    static const struct {
        delegate_order o;
        dep_status status;
        const char *says;
    } rows[] = {
        {{.agent = S_INIT("nobody"), .task = S_INIT("t")}, DEP_ERR_NOT_FOUND, "no agent"},
        {{.agent = S_INIT("a"), .task = S_INIT(" ")}, DEP_ERR_INVALID, "empty"},
        {{.agent = S_INIT("a"), .task = S_INIT("t"), .model = S_INIT("none/such")},
         DEP_ERR_NOT_FOUND,
         "not configured"},
        {{.agent = S_INIT("a"), .task = S_INIT("t"), .resume = S_INIT("abcd")}, DEP_ERR_NOT_FOUND, "abcd"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(engine_start(r->e, f->a, &rows[i].o, &id, &r->err), rows[i].status);
        has(str_z(r->err.msg), rows[i].says);
    }
    engine_tasks now = {0};
    engine_list(r->e, f->a, (str){0}, &now);
    assert_int_equal(now.n, 0);
    engine_close(r->e);
}

// --- A row that somebody takes -------------------------------------------------------------------

static void test_delegate_engine__a_queued_row_is_run_once(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    str id;
    delegate_report rep;
    delegate_order o = {.agent = S("a"), .task = S("refunds"), .background = true};
    assert_int_equal(engine_queue(r->e, f->a, &o, &id, &r->err), DEP_OK);
    assert_int_equal(stored(r, id).status, DELEG_QUEUED);
    assert_int_equal(engine_run_queued(r->e, f->a, id, NULL, &rep, &r->err), DEP_OK);
    assert_int_equal(rep.status, DELEG_COMPLETED);
    assert_true(str_eq(rep.id, id));
    assert_int_equal(stored(r, id).status, DELEG_COMPLETED);
    assert_true(stored(r, id).background);
    assert_int_equal(engine_run_queued(r->e, f->a, id, NULL, &rep, &r->err), DEP_ERR_INVALID);
    engine_close(r->e);
}

static void test_delegate_engine__a_queued_row_whose_definition_changed_fails_and_says_so(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    str id;
    delegate_report rep;
    delegate_order o = {.agent = S("a"), .task = S("refunds")};
    assert_int_equal(engine_queue(r->e, f->a, &o, &id, &r->err), DEP_OK);
    ws_agent(f, "a", "knowledge: [{name: Manual, path: 'docs/manual.md'}]\n");
    ws_trust(f);
    assert_int_equal(engine_run_queued(r->e, f->a, id, NULL, &rep, &r->err), DEP_ERR_REFUSED);
    assert_int_equal(stored(r, id).status, DELEG_FAILED);
    has(stored(r, id).end_reason, "changed before it began");
    engine_close(r->e);
}

// --- Continuing ----------------------------------------------------------------------------------

static str resumed(rig *r, str id, dep_status want, const char *says) {
    str next = {0};
    delegate_order o = {.agent = S("a"), .task = S("and what about seven days?"), .resume = id};
    dep_status st = engine_start(r->e, r->f->a, &o, &next, &r->err);
    if (st != want) fail_msg("%d: %s", st, r->err.msg);
    if (want != DEP_OK) has(str_z(r->err.msg), says);
    if (want == DEP_OK) wait_all(r, &next, 1);
    return next;
}

static void test_delegate_engine__an_ended_one_is_continued_by_a_new_one(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, true);
    str id = started_a(r);
    until_at_turn(r, 1);
    (void)resumed(r, id, DEP_ERR_INVALID, "has not ended");
    allow(r, 1000);
    wait_all(r, &id, 1);
    delegation_row before = stored(r, id);
    str next = resumed(r, str_sub(id, 0, 12), DEP_OK, NULL);
    delegation_row row = stored(r, next);
    assert_true(str_eq(row.resumes, id));
    assert_int_equal(row.status, DELEG_COMPLETED);
    has(in_report(r, next, "resumes"), str_cz(f->a, id));
    assert_true(str_eq(stored(r, id).report, before.report)); // what has ended stays as it ended
    engine_close(r->e);
}

static void test_delegate_engine__continuing_never_revives_what_was_taken_away(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    ws_write(f, "docs/other.md", "Refunds of other things: never.\n");
    ws_agent(f, "a",
             "knowledge: [{name: Manual, path: 'docs/manual.md'}, {name: Other, path: 'docs/other.md'}]\n"
             "tools: [read]\n");
    ws_trust(f);
    str id = started_a(r);
    wait_all(r, &id, 1);
    has(in_report(r, id, "report"), "docs/other.md:1");
    // A source and a tool less.
    ws_agent(f, "a", "knowledge: [{name: Manual, path: 'docs/manual.md'}]\n");
    ws_trust(f);
    str next = resumed(r, id, DEP_OK, NULL);
    assert_int_equal(str_find(in_report(r, next, "report"), S("docs/other.md")), SIZE_MAX);
    has(in_report(r, next, "warnings"), "the tool read, the source Other");
    // And nothing more than then: what was added since is not there.
    ws_agent(f, "a",
             "knowledge: [{name: Manual, path: 'docs/manual.md'}, {name: New, path: 'docs/other.md'}]\n"
             "tools: [read, grep]\n");
    ws_trust(f);
    next = resumed(r, next, DEP_OK, NULL);
    has(stored(r, next).grant, "\"tools\":[\"kb_search\"]");
    assert_int_equal(str_find(stored(r, next).grant, S("New")), SIZE_MAX);
    // Nor in a second step, although the definition that the one before began with has it.
    next = resumed(r, next, DEP_OK, NULL);
    has(stored(r, next).grant, "\"tools\":[\"kb_search\"]");
    assert_int_equal(str_find(stored(r, next).grant, S("New")), SIZE_MAX);
    engine_close(r->e);
}

static void test_delegate_engine__continuing_has_nothing_that_was_not_there_then(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    make_agent(f, "skills: [tone]\n");
    str id = started_a(r);
    wait_all(r, &id, 1);
    has(stored(r, id).grant, "\"skills\":[]");
    ws_write(f, ".deputy/skills/tone/SKILL.md",
             "---\nname: tone\ndescription: How we write.\n---\nBe brief.\n");
    ws_trust(f);
    str fresh = started_a(r);
    wait_all(r, &fresh, 1);
    has(stored(r, fresh).grant, "\"skills\":[\"tone\"]");
    has(stored(r, fresh).grant, "use_skill");
    str next = resumed(r, id, DEP_OK, NULL);
    has(stored(r, next).grant, "\"skills\":[]");
    assert_int_equal(str_find(stored(r, next).grant, S("use_skill")), SIZE_MAX);
    engine_close(r->e);
}

static void test_delegate_engine__one_whose_result_was_kept_can_page_it_when_continued(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, "limits: {toolKiB: 1}\n", false);
    for (int i = 0; i < 20; i++) {
        char name[32], text[256];
        snprintf(name, sizeof name, "docs/%d.md", i);
        snprintf(text, sizeof text, "Refunds, part %d: %0120d\n", i, i);
        ws_write(f, name, text);
    }
    str id = started_a(r);
    wait_all(r, &id, 1);
    assert_int_equal(str_find(stored(r, id).grant, S("read_result")), SIZE_MAX);
    str next = resumed(r, id, DEP_OK, NULL);
    has(stored(r, next).grant, "\"deferred\":[\"read_result\"]");
    engine_close(r->e);
}

static void test_delegate_engine__continuing_offers_what_became_resident_or_deferred(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    make_agent(f, "tools: [read, grep]\nresident: [grep]\n");
    str id = started_a(r), next;
    wait_all(r, &id, 1);
    has(stored(r, id).grant, "\"deferred\":[\"read\"");
    make_agent(f, "tools: [read, grep]\nresident: [read]\n");
    next = resumed(r, id, DEP_OK, NULL);
    has(system_of(r, next), "\"name\":\"read\"");
    has(system_of(r, next), "\"name\":\"grep\"");
    engine_close(r->e);
}

static void test_delegate_engine__another_definition_of_the_name_has_no_notes_of_the_first(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    make_agent(f, "memory: private\n");
    ws_write(f, "/config/deputy/agents/a.yaml",
             "name: a\ndescription: Another.\nprompt: P.\nmemory: private\n"
             "knowledge: [{name: Manual, path: 'docs/**'}]\n");
    str id = started_a(r), next;
    wait_all(r, &id, 1);
    has(stored(r, id).grant, "\"memory\":\"private\"");
    next = resumed(r, id, DEP_OK, NULL);
    has(stored(r, next).grant, "\"memory\":\"private\"");
    assert_int_equal(remove(ws_path(f, ".deputy/agents/a.yaml")), 0);
    next = resumed(r, id, DEP_OK, NULL);
    has(stored(r, next).grant, "\"memory\":\"none\"");
    has(in_report(r, next, "warnings"), "memory private");
    engine_close(r->e);
}

static void test_delegate_engine__what_may_not_run_is_not_continued(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    str id = started_a(r);
    wait_all(r, &id, 1);
    dep_err err;
    // Not trusted any more.
    ws_agent(f, "a", "knowledge: [{name: Manual, path: '**'}]\n");
    (void)resumed(r, id, DEP_ERR_REFUSED, "untrusted");
    // Broken.
    ws_agent(f, "a", "maxTurns: none\n");
    ws_trust(f);
    (void)resumed(r, id, DEP_ERR_REFUSED, "invalid");
    // Switched off.
    make_agent(f, "");
    workspace *w = ws_open(f);
    assert_int_equal(workspace_agents(w, &err), DEP_OK);
    assert_int_equal(workspace_switch_set(w, LAYER_WORKSPACE, S("a"), S("off"), &err), DEP_OK);
    (void)resumed(r, id, DEP_ERR_REFUSED, "disabled");
    assert_int_equal(workspace_switch_set(w, LAYER_WORKSPACE, S("a"), (str){0}, &err), DEP_OK);
    // Another agent's.
    str next;
    delegate_order o = {.agent = S("librarian"), .task = S("t"), .resume = id};
    assert_int_equal(engine_start(r->e, f->a, &o, &next, &r->err), DEP_ERR_INVALID);
    // Gone.
    assert_int_equal(remove(ws_path(f, ".deputy/agents/a.yaml")), 0);
    (void)resumed(r, id, DEP_ERR_NOT_FOUND, "no agent");
    engine_close(r->e);
}

static void test_delegate_engine__continuing_has_the_rest_of_the_budget(void **state) {
    ws_fixture *f = *state;
    rig *r = opened(f, NULL, false);
    make_agent(f, "maxTurns: 4\n");
    str id = started_a(r); // two turns
    wait_all(r, &id, 1);
    str next = resumed(r, id, DEP_OK, NULL);
    assert_int_equal(stored(r, next).status, DELEG_COMPLETED);
    (void)resumed(r, next, DEP_ERR_REFUSED, "its turns are spent: 4 of 4");
    engine_close(r->e);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(test_delegate_engine__##name, ws_setup, ws_teardown)
        CASE(over_the_cap_they_queue_in_order),
        CASE(the_list_tells_turns_of_a_main_agent),
        CASE(the_default_cap_and_the_most_that_run),
        CASE(a_queue_of_1000_is_the_longest),
        CASE(a_stop_ends_what_waits_and_what_runs),
        CASE(closing_stops_all_and_loses_no_report),
        CASE(waiting_for_any_all_and_not_at_all),
        CASE(the_end_of_a_background_one_is_announced),
        CASE(a_running_one_keeps_the_definition_it_began_with),
        CASE(an_order_that_cannot_be_leaves_nothing),
        CASE(a_queued_row_is_run_once),
        CASE(a_queued_row_whose_definition_changed_fails_and_says_so),
        CASE(an_ended_one_is_continued_by_a_new_one),
        CASE(continuing_never_revives_what_was_taken_away),
        CASE(continuing_has_nothing_that_was_not_there_then),
        CASE(one_whose_result_was_kept_can_page_it_when_continued),
        CASE(continuing_offers_what_became_resident_or_deferred),
        CASE(another_definition_of_the_name_has_no_notes_of_the_first),
        CASE(what_may_not_run_is_not_continued),
        CASE(continuing_has_the_rest_of_the_budget),
    };
    return cmocka_run_group_tests_name("delegate_engine", tests, nullptr, nullptr);
}

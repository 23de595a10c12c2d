// Tests of what a loss of power leaves of a store: every report whose call returned, and of activity and
// messages all but a tail that was not synced. The disk is the one of lossy_vfs.
#include "store/store_int.h"
#include <stdio.h>
#include <stdlib.h>
#include <support/lossy_vfs.h>
#include <support/store_fixture.h>

enum { ROUNDS = 500, ROUNDS_A_STORE = 25, PER_ROUND = 6, STEPS = 40, ITEMS_MAX = 5 };

// What of one delegation is known to be synced, is known to be written, and may be written by the call that
// the loss of power interrupted.
typedef struct {
    int64_t synced, written, tried;
} extent;

typedef struct {
    char id[33];
    bool added, add_tried;
    extent items, messages;
    bool ended, end_tried;         // its report
    bool delivered, deliver_tried; // the report of the one before it, by one of its messages
} model;

typedef struct {
    store_fixture *r;
    store *s;
    store_shared *sh; // or NULL
    uint64_t seed;
    model d[PER_ROUND];
    size_t n;
    int64_t reports; // all that rounds before had left
    dep_err err;
} world;

static uint64_t pick(world *w, uint64_t n) {
    return lossy_random(&w->seed) % n;
}

static int64_t seeded_now(void *ctx) {
    return ++((world *)ctx)->r->now;
}

static void seeded_bytes(void *ctx, void *p, size_t n) {
    for (size_t i = 0; i < n; i++) ((uint8_t *)p)[i] = (uint8_t)lossy_random(&((world *)ctx)->seed);
}

// --- Steps -----------------------------------------------------------------------------------------------

// A call with its arguments, made directly or through store_do.
typedef struct {
    world *w;
    model *d;
    int64_t from, n;
    bool sync;
    const char *deliver; // id, or NULL
    dep_status (*does)(store *s, void *ctx, dep_err *err);
} step;

static str report_of(const model *d, char *to, size_t size) {
    int n = snprintf(to, size, "{\"report\":\"%s\"}", d->id);
    return str_n(to, (size_t)n);
}

static dep_status do_add(store *s, void *ctx, dep_err *err) {
    delegation_row row = plain_row(((step *)ctx)->d->id, DELEG_RUNNING);
    return store_delegation_add(s, &row, err);
}

static dep_status do_items(store *s, void *ctx, dep_err *err) {
    step *st = ctx;
    char data[ITEMS_MAX][32];
    activity_row items[ITEMS_MAX] = {0};
    for (int64_t i = 0; i < st->n; i++) {
        int n = snprintf(data[i], sizeof data[i], "{\"text\":\"%lld,\"}", (long long)(st->from + i + 1));
        items[i] = (activity_row){.kind = S("text"), .data = str_n(data[i], (size_t)n)};
    }
    return store_activity_add(s, str_z(st->d->id), items, (size_t)st->n, st->sync, err);
}

static dep_status do_message(store *s, void *ctx, dep_err *err) {
    step *st = ctx;
    char data[32];
    int n = snprintf(data, sizeof data, "%lld", (long long)(st->from + 1));
    const message_row message = {S("user"), str_n(data, (size_t)n)};
    const str ids[] = {str_z(st->deliver)};
    return store_message_add(s, str_z(st->d->id), &message, 1, ids, st->deliver ? 1 : 0, st->sync, err);
}

static dep_status do_end(store *s, void *ctx, dep_err *err) {
    const model *d = ((step *)ctx)->d;
    char report[64];
    return store_delegation_status(s, str_z(d->id), DELEG_COMPLETED, S("done"),
                                   report_of(d, report, sizeof report), err);
}

// Whether the call returned OK; everything written so far is then on the disk if this was.
static bool make(world *w, step *st, bool full) {
    st->w = w;
    st->sync = full;
    dep_status status = w->sh ? store_do(w->sh, full ? STORE_WRITE_FULL : STORE_WRITE, st->does, st, &w->err)
                              : st->does(w->s, st, &w->err);
    if (status != DEP_OK) {
        if (!lossy_failed()) fail_msg("%s", w->err.msg);
        return false;
    }
    for (size_t i = 0; full && i < w->n; i++) {
        w->d[i].items.synced = w->d[i].items.written;
        w->d[i].messages.synced = w->d[i].messages.written;
    }
    return true;
}

static void extend(world *w, step *st, extent *e, bool full) {
    st->from = e->written;
    e->tried = e->written + st->n;
    if (!make(w, st, full)) return;
    e->written = e->tried;
    if (full) e->synced = e->written;
}

static void step_add(world *w) {
    model *d = &w->d[w->n++];
    *d = (model){.add_tried = true};
    str id = sys_id(w->r->a, &w->r->clock);
    memcpy(d->id, id.p, sizeof d->id - 1);
    d->added = make(w, &(step){.d = d, .does = do_add}, true);
}

static void step_message(world *w, size_t i, bool full) {
    model *d = &w->d[i], *before = i ? &w->d[i - 1] : NULL;
    step st = {.d = d, .n = 1, .does = do_message};
    bool deliver = before && before->ended && !d->delivered;
    if (deliver) {
        st.deliver = before->id;
        d->deliver_tried = true;
    }
    extend(w, &st, &d->messages, full);
    d->delivered = d->delivered || (deliver && d->messages.written == d->messages.tried);
}

static void random_step(world *w) {
    if (w->n == 0 || (w->n < PER_ROUND && pick(w, 6) == 0)) {
        step_add(w);
        return;
    }
    size_t i = pick(w, w->n);
    model *d = &w->d[i];
    if (d->ended) return;
    switch (pick(w, 10)) {
    case 0: {
        d->end_tried = true;
        d->ended = make(w, &(step){.d = d, .does = do_end}, true);
        break;
    }
    case 1: step_message(w, i, true); break;
    case 2:
    case 3: step_message(w, i, false); break;
    case 4: extend(w, &(step){.d = d, .n = 1, .does = do_items}, &d->items, true); break;
    default:
        extend(w, &(step){.d = d, .n = 1 + (int64_t)pick(w, ITEMS_MAX), .does = do_items}, &d->items, false);
    }
}

// --- Judging ---------------------------------------------------------------------------------------------

#define judge(what, ...)                                                                                     \
    do {                                                                                                     \
        if (!(what)) fail_msg(__VA_ARGS__);                                                                  \
    } while (0)

static void judge_extent(const model *d, const extent *e, int64_t n, const char *what) {
    judge(n >= e->synced && (n <= e->written || n == e->tried),
          "%s: %lld %s; synced %lld, written %lld, tried %lld", d->id, (long long)n, what,
          (long long)e->synced, (long long)e->written, (long long)e->tried);
}

static void judge_texts(store_fixture *r, const model *d) {
    activity_rows items;
    message_rows messages;
    ok(store_activity_list(r->a, r->s, str_z(d->id), 0, SIZE_MAX, &items, &r->err));
    ok(store_message_list(r->a, r->s, str_z(d->id), &messages, &r->err));
    judge_extent(d, &d->items, (int64_t)items.n, "items");
    judge_extent(d, &d->messages, (int64_t)messages.n, "messages");
    for (size_t i = 0; i < items.n; i++)
        assert_str(items.p[i].data, str_fmt(r->a, "{\"text\":\"%zu,\"}", i + 1));
    for (size_t i = 0; i < messages.n; i++) assert_str(messages.p[i].data, str_fmt(r->a, "%zu", i + 1));
}

static void judge_one(world *w, size_t i) {
    store_fixture *r = w->r;
    const model *d = &w->d[i];
    delegation_row row;
    dep_status status = store_delegation_get(r->a, r->s, str_z(d->id), &row, &r->err);
    if (status == DEP_ERR_NOT_FOUND && !d->added) return;
    ok(status);
    judge_texts(r, d);
    if (!d->ended && !(d->end_tried && row.status == DELEG_COMPLETED)) {
        // What nobody ended is interrupted now, with what is left of its text.
        judge(row.status == DELEG_INTERRUPTED, "%s is %s", d->id, deleg_status_name(row.status));
        judge(row.report.n > 0 && row.ended_ms > 0, "%s has no report", d->id);
    } else {
        char report[64];
        judge(row.status == DELEG_COMPLETED, "the report of %s is lost", d->id);
        assert_str(row.report, report_of(d, report, sizeof report));
    }
    if (i == 0) return;
    const model *before = &w->d[i - 1];
    message_rows messages;
    status = store_delegation_get(r->a, r->s, str_z(before->id), &row, &r->err);
    ok(store_message_list(r->a, r->s, str_z(d->id), &messages, &r->err));
    if (status == DEP_OK && row.delivered_ms)
        judge(d->deliver_tried && messages.n > 0, "delivered by nobody");
}

// Opens it again after the loss, and looks.
static void judge_all(world *w) {
    store_fixture *r = w->r;
    size_t interrupted;
    r->s = open_store(r, "/w");
    ok(store_check(r->s, &r->err));
    ok(store_recover(r->s, &interrupted, &r->err));
    delegation_rows rows;
    ok(store_delegation_list(r->a, r->s, S(""), SIZE_MAX, &rows, &r->err));
    int64_t completed = 0, known = 0;
    for (size_t i = 0; i < rows.n; i++) {
        judge(deleg_ended(rows.p[i].status), "%.*s is still running", STR_ARG(rows.p[i].id));
        completed += rows.p[i].status == DELEG_COMPLETED;
    }
    for (size_t i = 0; i < w->n; i++) {
        judge_one(w, i);
        known += w->d[i].ended;
    }
    judge(completed >= w->reports + known && completed <= w->reports + known + 1, "%lld reports, not %lld",
          (long long)completed, (long long)(w->reports + known));
    w->reports = completed;
    store_close(r->s);
}

static void one_round(world *w) {
    store_fixture *r = w->r;
    size_t interrupted;
    str run;
    r->s = w->s = open_store(r, "/w");
    arena *shared_arena = arena_new();
    w->sh = pick(w, 2) ? store_share(shared_arena, w->s) : NULL;
    w->n = 0;
    ok(store_recover(w->s, &interrupted, &r->err));
    ok(store_run_begin(r->a, w->s, &run, &r->err));
    // Small, so that the loss also comes while the log is carried over.
    assert_int_equal(sqlite3_exec(w->s->db, "PRAGMA wal_autocheckpoint=15", NULL, NULL, NULL), SQLITE_OK);
    if (pick(w, 4)) lossy_fail_at(1 + (long)pick(w, 150));
    for (int i = 0; i < STEPS && !lossy_failed(); i++) random_step(w);
    lossy_fail();
    store_close(w->s);
    arena_free(shared_arena);
    lossy_revive(pick(w, 3) ? lossy_random(&w->seed) : 0);
    judge_all(w);
}

// One run of all rounds. What a failed one leaves is put away by the teardown, which also says how to see it
// again.
typedef struct {
    world w;
    void *fixture;
    uint64_t first_seed;
    int round;
    bool passed;
} crash_run;

static int run_setup(void **state) {
    static crash_run run;
    const char *wanted = getenv("DEPUTY_SEED");
    run = (crash_run){.first_seed = wanted ? strtoull(wanted, NULL, 0) : 20261130};
    *state = &run;
    return 0;
}

static int run_teardown(void **state) {
    crash_run *run = *state;
    if (run->fixture) store_teardown(&run->fixture);
    lossy_end();
    if (!run->passed)
        printf("# round %d of DEPUTY_SEED=%llu\n", run->round, (unsigned long long)run->first_seed);
    return 0;
}

static void begin_stores(crash_run *run, uint64_t seed) {
    store_setup(&run->fixture);
    lossy_begin();
    run->w = (world){.r = run->fixture, .seed = seed};
    run->w.r->clock = (sys_clock){seeded_now, seeded_now, seeded_bytes, &run->w};
    store_close(run->w.r->s);
}

static void end_stores(crash_run *run) {
    lossy_end();
    store_teardown(&run->fixture);
    run->fixture = NULL;
}

static void test_store_crash__no_loss_of_power_takes_a_report_or_more_than_the_unsynced_tail(void **state) {
    crash_run *run = *state;
    int64_t reports = 0;
    uint64_t seed = run->first_seed;
    for (; run->round < ROUNDS; run->round++) {
        // A new store now and then: one that grows on and on would be slow to look through.
        if (run->round % ROUNDS_A_STORE == 0) begin_stores(run, seed);
        one_round(&run->w);
        if (run->round % ROUNDS_A_STORE < ROUNDS_A_STORE - 1) continue;
        reports += run->w.reports;
        seed = run->w.seed;
        end_stores(run);
    }
    run->passed = true;
    printf("# %d losses, %lld reports, then %016llx\n", ROUNDS, (long long)reports, (unsigned long long)seed);
}

// The disk itself: without this, the test above would say nothing.
static void test_store_crash__what_was_not_synced_is_gone(void **state) {
    store_fixture *r = *state;
    activity_rows items;
    const activity_row item = {.kind = S("text"), .data = S("{}")};
    store_close(r->s);
    lossy_begin();
    r->s = open_store(r, "/w");
    ok(add(r, r->s, ID1, DELEG_RUNNING));
    ok(store_activity_add(r->s, S(ID1), &item, 1, true, &r->err));
    long syncs = lossy_syncs();
    for (int i = 0; i < 5; i++) ok(store_activity_add(r->s, S(ID1), &item, 1, false, &r->err));
    assert_int_equal(lossy_syncs(), syncs);
    lossy_fail();
    store_close(r->s);
    lossy_revive(0);
    r->s = open_store(r, "/w");
    ok(store_activity_list(r->a, r->s, S(ID1), 0, 10, &items, &r->err));
    assert_int_equal(items.n, 1);
    store_close(r->s);
    lossy_end();
}

static void test_store_crash__a_loss_while_a_store_is_made_leaves_one_that_opens(void **state) {
    store_fixture *r = *state;
    dep_status status = DEP_ERR_IO;
    int n = 1;
    for (; status != DEP_OK; n++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            str dir = str_fmt(r->a, "%s/new%d-%d", r->dir, n, (int)seed);
            store *s = NULL;
            lossy_begin();
            lossy_fail_at(n);
            status = store_open(r->a, dir, S("/w"), false, &r->clock, &s, &r->err);
            bool lost = lossy_failed();
            if (status != DEP_OK) refused(status, DEP_ERR_IO, "cannot be used");
            if (status == DEP_OK) store_close(s);
            lossy_revive(seed);
            ok(store_open(r->a, dir, S("/w"), false, &r->clock, &s, &r->err));
            ok(store_check(s, &r->err));
            ok(add(r, s, ID1, DELEG_RUNNING));
            store_close(s);
            lossy_end();
            assert_true(lost || status == DEP_OK);
        }
        assert_true(n < 1000);
    }
    assert_true(n > 10); // making one takes several writes
}

// --- A full disk -----------------------------------------------------------------------------------------

typedef struct {
    store_fixture *r;
    str text;
} big;

static dep_status big_item_op(store *s, void *ctx, dep_err *err) {
    const activity_row item = {.kind = S("text"), .data = ((big *)ctx)->text};
    return store_activity_add(s, S(ID1), &item, 1, false, err);
}

static dep_status read_op(store *s, void *ctx, dep_err *err) {
    activity_rows items;
    return store_activity_list(((big *)ctx)->r->a, s, S(ID1), 0, 10, &items, err);
}

static void expect_full(store_fixture *r, store *s) {
    int64_t n = 7;
    size_t removed = 7;
    delegation_row row = plain_row(ID3, DELEG_RUNNING);
    const activity_row item = {.kind = S("text"), .data = S("{}")};
    const message_row message = {S("user"), S("{}")};
    const struct {
        const char *what;
        dep_status status;
    } rows[] = {
        {"add", store_delegation_add(s, &row, &r->err)},
        {"status", store_delegation_status(s, S(ID1), DELEG_WAITING, S(""), S(""), &r->err)},
        {"end", store_delegation_status(s, S(ID1), DELEG_COMPLETED, S(""), S("{}"), &r->err)},
        {"item", store_activity_add(s, S(ID1), &item, 1, false, &r->err)},
        {"message", store_message_add(s, S(ID1), &message, 1, NULL, 0, true, &r->err)},
        {"result", store_result_add(s, S(ID1), S("text"), &n, &r->err)},
        {"command", store_command_add(s, S(ID1), S("stop"), &r->err)},
        {"delivered", store_delivered(s, S(ID2), &r->err)},
        {"remove", store_delegation_remove(s, S(ID2), &r->err)},
        {"prune", store_prune(s, 0, 1, &removed, &r->err)},
        {"setting", store_setting_set(s, S("k"), S("w"), &r->err)},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].status != DEP_ERR_IO) fail_msg("%s: %s", rows[i].what, err_name(rows[i].status));
    assert_non_null(strstr(r->err.msg, "cannot write "));
    assert_non_null(strstr(r->err.msg, "deputy.db: No space left on device"));
    assert_true(n == 7 && removed == 7);
}

static void test_store_crash__a_full_disk_is_said_and_reading_goes_on(void **state) {
    store_fixture *r = *state;
    activity_rows items;
    delegation_rows rows;
    delegation_row old[2] = {plain_row(ID2, DELEG_RUNNING), plain_row(ID4, DELEG_RUNNING)};
    store_close(r->s);
    lossy_begin();
    store *s = r->s = open_store(r, "/w");
    ok(add(r, s, ID1, DELEG_RUNNING));
    for (int i = 0; i < 2; i++) add_ended(r, &old[i]);
    ok(store_delivered(s, S(ID4), &r->err));
    r->now += (int64_t)30 * 24 * 3600 * 1000;
    lossy_full(true);
    expect_full(r, s);
    ok(store_activity_list(r->a, s, S(ID1), 0, 10, &items, &r->err));
    assert_int_equal(items.n, 0);
    ok(store_delegation_list(r->a, s, S(""), 10, &rows, &r->err));
    assert_int_equal(rows.n, 3);
    // Through store_do too.
    arena *a = arena_new();
    store_shared *sh = store_share(a, s);
    big b = {.r = r, .text = S("{}")};
    refused(store_do(sh, STORE_WRITE, big_item_op, &b, &r->err), DEP_ERR_IO, "No space left on device");
    ok(store_do(sh, STORE_READ, read_op, &b, &r->err));
    lossy_full(false);
    ok(store_do(sh, STORE_WRITE, big_item_op, &b, &r->err));
    lossy_full(true);
    // One that does not fit into the memory that SQLite keeps before it writes.
    b.text = str_fmt(r->a, "{\"text\":\"%0*d\"}", 16 << 20, 1);
    refused(store_do(sh, STORE_WRITE, big_item_op, &b, &r->err), DEP_ERR_IO, "No space left on device");
    lossy_full(false);
    ok(store_do(sh, STORE_WRITE, big_item_op, &b, &r->err));
    arena_free(a);
    ok(store_activity_list(r->a, s, S(ID1), 0, 10, &items, &r->err));
    assert_int_equal(items.n, 2);
    assert_int_equal(items.p[1].data.n, b.text.n);
    ok(store_check(s, &r->err));
    store_close(s);
    lossy_end();
}

// A test that failed has left its stores open on the disk of lossy_vfs.
static int disk_teardown(void **state) {
    int status = store_teardown(state);
    lossy_end();
    return status;
}

#define DISK_TEST(f) cmocka_unit_test_setup_teardown(f, store_setup, disk_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        DISK_TEST(test_store_crash__what_was_not_synced_is_gone),
        DISK_TEST(test_store_crash__a_loss_while_a_store_is_made_leaves_one_that_opens),
        DISK_TEST(test_store_crash__a_full_disk_is_said_and_reading_goes_on),
        cmocka_unit_test_setup_teardown(
            test_store_crash__no_loss_of_power_takes_a_report_or_more_than_the_unsynced_tail, run_setup,
            run_teardown),
    };
    return cmocka_run_group_tests_name("store_crash", tests, NULL, NULL);
}

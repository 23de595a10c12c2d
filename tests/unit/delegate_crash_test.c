// Whole delegations on a disk that loses power (lossy_vfs): a child runs an engine and tells over a pipe what
// it was told; at a random write it ends, with what the disk had. The parent opens the state with the real
// file system and judges. What is not synced is gone, or a random part of it is, so that this is about the
// disk and not about the page cache. DEPUTY_CRASH_ROUNDS (500 for the whole) says how often, DEPUTY_SEED
// when.
#include "support/lossy_vfs.h"
#include "support/ws_fixture.h"
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 100, ROUNDS_A_STATE = 25, STEPS = 6, AT_ONCE = 4, WRITES = 900, KNOWN = 2048 };

// What is known of one delegation, of this state.
typedef struct {
    str id, report; // report: of a delivered one, else empty
    bool marked;    // its delivery was stored
    bool begun;     // it has ended after some words, so that it can be continued
} known;

typedef struct {
    ws_fixture *f;
    uint64_t seed, loss_seed; // loss_seed: what is left on the disk, drawn on the thread that loses it
    int state, pipe;
    known known[KNOWN];
    size_t n_known;
    int64_t lost, delivered, marked, interrupted, items, missing; // figures
    dep_err err;
} world;

static uint64_t pick(world *w, uint64_t n) {
    return lossy_random(&w->seed) % n;
}

static str state_dir(world *w) {
    return str_fmt(w->f->a, "%s/state%d/deputy", w->f->top, w->state);
}

// So late that nobody waits any longer for a process that takes a queued row.
static int64_t later_ms(void *ctx) {
    return sys_clock_real()->now_ms(ctx) + STORE_UNTAKEN_MS + 1;
}

// --- The child -------------------------------------------------------------------------------------------

// One record of the pipe: a letter, an id and a text. R: the row is stored; I: an item was told to
// who watches all, and O: to who watches one; D: a report
// was delivered; V: the delivery is stored; E: something went wrong that must not.
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static void write_all(int fd, const void *p, size_t n) {
    for (const char *at = p; n;) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno != EINTR) _exit(7);
        if (done > 0) at += done, n -= (size_t)done;
    }
}

static void tell(world *w, char what, str id, str text) {
    char head[64];
    int n = snprintf(head, sizeof head, "%c %-32.*s %zu\n", what, STR_ARG(id), text.n);
    pthread_mutex_lock(&telling);
    write_all(w->pipe, head, (size_t)n);
    write_all(w->pipe, text.p, text.n);
    pthread_mutex_unlock(&telling);
}

// Nobody is in the middle of a record then.
static void at_loss(void *p) {
    world *w = p;
    pthread_mutex_lock(&telling);
    lossy_leave(w->loss_seed);
    kill(getpid(), SIGKILL); // no hook of any run-time library sees this end
}

typedef struct {
    world *w;
    engine *e;
    str id; // of the one that runs on the child's own thread
} child;

static void on_item(void *p, str id, str agent, str kind, str item) {
    (void)agent, (void)kind;
    tell(((child *)p)->w, 'I', id, item);
}

static void on_own_item(void *p, str kind, str item) {
    child *c = p;
    (void)kind;
    tell(c->w, 'O', c->id, item);
}

static void wrong(child *c, const char *what, const dep_err *err) {
    arena *a = arena_new();
    tell(c->w, 'E', (str){0}, str_fmt(a, "%s: %s", what, err->msg));
    arena_free(a);
}

typedef struct {
    arena *a;
    str id;
    delegation_row row;
} query;

static dep_status get_row(store *s, void *p, dep_err *err) {
    query *q = p;
    return store_delegation_get(q->a, s, q->id, &q->row, err);
}

static dep_status mark(store *s, void *p, dep_err *err) {
    return store_delivered(s, ((query *)p)->id, err);
}

static void deliver(child *c, arena *a, str id) {
    dep_err err;
    query q = {.a = a, .id = id};
    if (store_do(engine_store(c->e), STORE_READ, get_row, &q, &err) != DEP_OK) {
        wrong(c, "a report cannot be read", &err);
        return;
    }
    err_set(&err, DEP_ERR_INTERNAL, "%s", deleg_status_name(q.row.status));
    if (!deleg_ended(q.row.status)) wrong(c, "it has ended, but its row has not", &err);
    tell(c->w, 'D', id, q.row.report);
    if (pick(c->w, 2)) return;
    if (store_do(engine_store(c->e), STORE_WRITE_FULL, mark, &q, &err) == DEP_OK) {
        tell(c->w, 'V', id, (str){0});
    } else {
        wrong(c, "a delivery cannot be stored", &err);
    }
}

static delegate_order an_order(world *w) {
    static const str tasks[] = {S_INIT("refunds"), S_INIT("shipping costs"), S_INIT("nothing of this kind")};
    return (delegate_order){.agent = S("a"), .task = tasks[pick(w, 3)]};
}

static void queue_and_run(child *c, arena *a) {
    delegate_order o = an_order(c->w);
    delegate_sink sink = {.item = on_own_item, .ctx = c};
    delegate_report r;
    dep_err err;
    if (engine_queue(c->e, a, &o, &c->id, &err) != DEP_OK) {
        wrong(c, "cannot be queued", &err);
        return;
    }
    tell(c->w, 'R', c->id, (str){0});
    if (engine_run_queued(c->e, a, c->id, &sink, &r, &err) != DEP_OK) {
        wrong(c, "cannot be taken", &err);
        return;
    }
    tell(c->w, 'D', r.id, r.json);
}

// One that is known to have ended is continued, also one that was interrupted.
static void resume(child *c, arena *a) {
    world *w = c->w;
    if (!w->n_known) return;
    known *k = &w->known[pick(w, w->n_known)];
    if (!k->begun) return;
    delegate_order o = an_order(w);
    delegate_report r;
    dep_err err;
    o.resume = k->id;
    if (engine_run(c->e, a, &o, NULL, &r, &err) == DEP_OK) {
        tell(w, 'D', r.id, r.json);
    } else {
        wrong(c, "cannot be continued", &err);
    }
}

static void several(child *c, arena *a) {
    str ids[AT_ONCE];
    bool ended[AT_ONCE];
    dep_err err;
    size_t n = 1 + pick(c->w, AT_ONCE), some = 0;
    for (size_t i = 0; i < n; i++) {
        delegate_order o = an_order(c->w);
        o.background = pick(c->w, 2);
        if (engine_start(c->e, a, &o, &ids[some], &err) != DEP_OK) {
            wrong(c, "cannot be started", &err);
            continue;
        }
        tell(c->w, 'R', ids[some++], (str){0});
    }
    if (some && pick(c->w, 3) == 0) engine_stop(c->e, ids[pick(c->w, some)]);
    err_set(&err, DEP_ERR_TIMEOUT, "a minute is over");
    if (!engine_wait(c->e, ids, some, false, 60000, ended, NULL, NULL)) wrong(c, "they do not end", &err);
    for (size_t i = 0; i < some; i++) deliver(c, a, ids[i]);
}

static void step(child *c, arena *a) {
    switch (pick(c->w, 4)) {
    case 0: queue_and_run(c, a); break;
    case 1: resume(c, a); break;
    default: several(c, a);
    }
}

[[noreturn]] static void be_child(world *w) {
    child c = {.w = w};
    workspace *ws;
    dep_err err;
    arena *a = arena_new();
    engine_sink sink = {.item = on_item, .ctx = &c};
    lossy_begin();
    lossy_at_loss(at_loss, w);
    lossy_fail_at(1 + (long)pick(w, WRITES));
    if (ws_open_at(w->f, "ws", &ws, &err) != DEP_OK || engine_open(a, ws, &sink, &c.e, &err) != DEP_OK) {
        wrong(&c, "cannot be opened", &err);
        _exit(9);
    }
    for (int i = 0; i < STEPS; i++) step(&c, a);
    lossy_fail(); // which kills
    _exit(8);
}

// --- The parent: what it was told ------------------------------------------------------------------------

typedef struct {
    char what;
    str id, text;
} record;
typedef VEC(record) records;

static str read_pipe(arena *a, int fd) {
    buf all = buf_new(a, 0);
    char part[4096];
    for (ssize_t n; (n = read(fd, part, sizeof part)) != 0;) {
        if (n < 0 && errno != EINTR) fail_msg("the pipe cannot be read");
        if (n > 0) buf_add(&all, str_n(part, (size_t)n));
    }
    return buf_str(&all);
}

static void read_records(arena *a, str all, records *ret) {
    str head;
    uint64_t n;
    while (str_cut(all, '\n', &head, &all)) {
        assert_true(head.n > 35);
        assert_true(str_u64(str_trim(str_sub(head, 35, head.n)), SIZE_MAX, &n));
        assert_true(n <= all.n);
        vec_push(a, ret, ((record){head.p[0], str_trim(str_sub(head, 2, 34)), str_sub(all, 0, n)}));
        all = str_sub(all, n, all.n);
    }
}

static known *known_of(world *w, str id) {
    for (size_t i = 0; i < w->n_known; i++)
        if (str_eq(w->known[i].id, id)) return &w->known[i];
    assert_true(w->n_known < KNOWN);
    w->known[w->n_known] = (known){.id = str_dup(w->f->a, id)};
    return &w->known[w->n_known++];
}

static void learn(world *w, const records *all) {
    for (vec_each(const record, r, all)) {
        if (r->what == 'E') fail_msg(STR_FMT, STR_ARG(r->text));
        known *k = known_of(w, r->id);
        if (r->what == 'D') {
            k->report = str_dup(w->f->a, r->text);
            w->delivered++;
        }
        if (r->what == 'V') {
            k->marked = true;
            w->marked++;
        }
    }
}

// --- The parent: what is there ---------------------------------------------------------------------------

#define judge(what, ...)                                                                                     \
    do {                                                                                                     \
        if (!(what)) fail_msg(__VA_ARGS__);                                                                  \
    } while (0)

// The items that were told are stored up to the last status, which is synced; what is stored beyond that is
// the beginning of the rest.
static void judge_items(world *w, arena *a, store *s, str id, const records *all) {
    strs told = {0};
    size_t synced = 0, first = 0;
    activity_rows items = {0};
    for (vec_each(const record, r, all)) {
        if ((r->what != 'I' && r->what != 'O') || !str_eq(r->id, id)) continue;
        if (r->what == 'I') first = 1; // its first status comes before anybody can watch it
        vec_push(a, &told, r->text);
        if (str_starts(r->text, S("{\"kind\":\"status\""))) synced = told.n;
    }
    if (store_activity_list(a, s, id, 0, SIZE_MAX, &items, &w->err) != DEP_OK) fail_msg("%s", w->err.msg);
    judge(items.n >= first, STR_FMT " has lost its first status", STR_ARG(id));
    if (first) items.p++, items.n--;
    size_t both = items.n < told.n ? items.n : told.n;
    for (size_t i = 0; i < both; i++)
        judge(str_eq(items.p[i].data, told.p[i]), "item %zu of " STR_FMT " is another", i, STR_ARG(id));
    judge(items.n >= synced, STR_FMT ": %zu items, %zu were synced", STR_ARG(id), items.n, synced);
    w->items += (int64_t)told.n;
    w->missing += (int64_t)(told.n - both);
}

static bool was_told(const records *all, str id) {
    for (vec_each(const record, r, all))
        if (str_eq(r->id, id)) return true;
    return false;
}

static void judge_known(world *w, arena *a, store *s, known *k, const records *all) {
    delegation_row row;
    if (store_delegation_get(a, s, k->id, &row, &w->err) != DEP_OK) fail_msg("%s", w->err.msg);
    judge(deleg_ended(row.status), STR_FMT " is %s", STR_ARG(k->id), deleg_status_name(row.status));
    judge(row.report.n > 0, STR_FMT " has no report", STR_ARG(k->id));
    judge(!k->report.n || str_eq(row.report, k->report), "the report of " STR_FMT " is another",
          STR_ARG(k->id));
    judge(!k->marked || row.delivered_ms > 0, "the delivery of " STR_FMT " is lost", STR_ARG(k->id));
    if (!was_told(all, k->id)) return;
    w->interrupted += row.status == DELEG_INTERRUPTED;
    judge_items(w, a, s, k->id, all);
    // The first words are stored with the row, unless it was for whoever takes it and nobody did.
    message_rows messages = {0};
    if (store_message_list(a, s, k->id, &messages, &w->err) != DEP_OK) fail_msg("%s", w->err.msg);
    k->begun = messages.n > 0;
    judge(k->begun || str_eq(row.end_reason, S("no process took it")), STR_FMT " has no conversation",
          STR_ARG(k->id));
}

static void judge_all(world *w, const records *all) {
    arena *a = arena_new();
    store *s = NULL;
    size_t interrupted;
    delegation_rows rows = {0};
    sys_clock late = *sys_clock_real();
    late.now_ms = later_ms;
    if (store_open(a, state_dir(w), str_z(w->f->ws), false, &late, &s, &w->err) != DEP_OK ||
        store_check(s, &w->err) != DEP_OK || store_recover(s, &interrupted, &w->err) != DEP_OK ||
        store_delegation_list(a, s, (str){0}, SIZE_MAX, &rows, &w->err) != DEP_OK)
        fail_msg("%s", w->err.msg);
    for (vec_each(const delegation_row, r, &rows))
        judge(deleg_ended(r->status), STR_FMT " is %s", STR_ARG(r->id), deleg_status_name(r->status));
    for (size_t i = 0; i < w->n_known; i++) judge_known(w, a, s, &w->known[i], all);
    arena_free(a);
}

// --- Rounds ----------------------------------------------------------------------------------------------

static void one_round(world *w) {
    int ends[2], how;
    arena *a = arena_new();
    records all = {0};
    uint64_t seed = lossy_random(&w->seed);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        w->pipe = ends[1];
        w->seed = seed;
        w->loss_seed = pick(w, 3) ? lossy_random(&w->seed) : 0;
        be_child(w);
    }
    close(ends[1]);
    str told = read_pipe(a, ends[0]);
    close(ends[0]);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    read_records(a, told, &all);
    learn(w, &all);
    judge(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL, "the child ended with %x", (unsigned)how);
    judge_all(w, &all);
    w->lost++;
    arena_free(a);
}

static void new_state(world *w) {
    w->state++;
    w->n_known = 0;
    ws_setenv("XDG_STATE_HOME", str_cz(w->f->a, str_fmt(w->f->a, "%s/state%d", w->f->top, w->state)));
    ws_trust(w->f); // the lists of trust are part of the state
}

static void test_delegate_crash__a_loss_of_power_takes_no_report_that_was_delivered(void **state) {
    const char *seed = getenv("DEPUTY_SEED"), *rounds = getenv("DEPUTY_CRASH_ROUNDS");
    int n = rounds ? (int)strtol(rounds, NULL, 10) : ROUNDS;
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->f = *state;
    w->seed = seed ? strtoull(seed, NULL, 0) : 20261130;
    printf("# %d losses, DEPUTY_SEED=%llu\n", n, (unsigned long long)w->seed);
    ws_write(w->f, "docs/manual.md",
             "# Manual\n\nRefunds are accepted within seven days.\n\n## Costs\n\nShipping is free.\n");
    ws_agent(w->f, "a", "knowledge: [{name: Manual, path: 'docs/**'}]\n");
    for (int i = 0; i < n; i++) {
        if (i % ROUNDS_A_STATE == 0) new_state(w);
        one_round(w);
    }
    printf("# %lld losses: %lld reports delivered, %lld marked so, %lld interrupted, %lld items, %lld lost\n",
           (long long)w->lost, (long long)w->delivered, (long long)w->marked, (long long)w->interrupted,
           (long long)w->items, (long long)w->missing);
    assert_true(n < 10 || (w->delivered > 0 && w->interrupted > 0));
    free(w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_delegate_crash__a_loss_of_power_takes_no_report_that_was_delivered, ws_setup, ws_teardown),
    };
    return cmocka_run_group_tests_name("delegate_crash", tests, nullptr, nullptr);
}

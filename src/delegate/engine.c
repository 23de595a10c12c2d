// delegate: the engine: which delegations run, wait for a slot, and have ended in this process. The list is
// in order of arrival, and slots are given in that order. Knows nothing of what a run does.
#include "delegate/delegate_int.h"
#include <deputy/thread.h>
#include <sys/resource.h>
#include <time.h>

enum { WORKER_STACK = 512 * 1024, WAIT_LOOK_MS = 100 };

static void with_lock(engine *e) {
    pthread_mutex_lock(&e->lock);
}
static void without_lock(engine *e) {
    pthread_mutex_unlock(&e->lock);
}

// --- Tasks ---------------------------------------------------------------------------------------

static task *find(engine *e, str id) {
    for (task *t = e->tasks; t; t = t->next)
        if (str_eq(t->id, id)) return t;
    return NULL;
}

// With the lock held: takes it out of the list.
static void unlink_task(engine *e, task *t) {
    task **at = &e->tasks;
    while (*at && *at != t) at = &(*at)->next;
    if (!*at) return;
    *at = t->next;
    if (e->tail == &t->next) e->tail = at;
}

// Everything that others go by is set before it can be seen: one that is queued may begin, be stopped and be
// gone before this returns.
task *engine_add(engine *e, run *r, deleg_status status, bool counted) {
    arena *mem = arena_new();
    task *t = NEW(mem, task);
    *t = (task){.e = e,
                .r = r,
                .mem = mem,
                .id = str_dup(mem, r->id),
                .agent = str_dup(mem, r->def->name),
                .description = str_dup(mem, r->description),
                .thread = str_dup(mem, r->thread),
                .background = r->background,
                .is_main = r->is_main,
                .counted = counted,
                .status = status,
                .started_ms = run_now(r)};
    r->task = t;
    with_lock(e);
    *e->tail = t;
    e->tail = &t->next;
    without_lock(e);
    return t;
}

static void free_task(task *t) {
    arena_free(t->mem);
}

void engine_facts(run *r, str doing) {
    task *t = r->task;
    with_lock(r->e);
    t->turns = r->report.turns;
    t->tool_calls = r->report.tool_calls;
    doing = str_sub(doing, 0, sizeof t->doing - 1);
    if (doing.n) memcpy(t->doing, doing.p, doing.n);
    t->doing[doing.n] = 0;
    without_lock(r->e);
}

// Threads that have ended are joined by whoever comes next: none of them can join itself.
static void join_done(engine *e) {
    with_lock(e);
    task *done = e->done;
    e->done = NULL;
    without_lock(e);
    while (done) {
        task *next = done->next;
        pthread_join(done->worker, NULL);
        free_task(done);
        done = next;
    }
}

// The run is over and its report is stored. A task with a thread of its own is kept until that has ended.
void engine_ended(task *t, deleg_status status) {
    engine *e = t->e;
    bool background = t->background && e->sink.ended;
    arena *a = background ? arena_new() : NULL;
    str id = background ? str_dup(a, t->id) : (str){0}, agent = background ? str_dup(a, t->agent) : (str){0};
    with_lock(e);
    unlink_task(e, t);
    t->next = NULL;
    if (t->own_thread) {
        t->next = e->done;
        e->done = t;
    }
    if (t->counted) e->running--;
    engine_launch(e);
    pthread_cond_broadcast(&e->changed);
    without_lock(e);
    if (!t->own_thread) free_task(t);
    if (background) e->sink.ended(e->sink.ctx, id, agent, status);
    arena_free(a);
}

// --- Workers -------------------------------------------------------------------------------------

// Runs what order_prepare has prepared, to its end. take: its row is still a queued one.
static void run_to_end(run *r, bool take) {
    dep_err err;
    const char *stop = atomic_load(&r->task->stop);
    if (stop) {
        report_store(r, DELEG_STOPPED, str_z(stop));
    } else if ((take && order_take(r, &err) != DEP_OK) || order_begin(r, &err) != DEP_OK) {
        report_store(r, DELEG_FAILED, str_fmt(r->a, "could not begin: %s", err.msg));
    } else {
        run_loop(r);
    }
}

// What a run opened goes before the workspace that it was opened in.
static void drop(run *r) {
    engine *e = r->e;
    snapshot *s = r->snap;
    arena_free(r->a);
    snapshot_release(e, s);
}

static void *work(void *p) {
    task *t = p;
    run *r = t->r;
    run_to_end(r, r->queued);
    deleg_status status = r->report.status;
    drop(r);
    engine_ended(t, status);
    return NULL;
}

static int start_thread(task *t) {
    t->own_thread = true;
    int failed = thread_start(&t->worker, WORKER_STACK, work, t);
    if (failed) t->own_thread = false;
    return failed;
}

// With the lock held. A thread that cannot be had now is asked for again when the next one ends, by the next
// order, and by whoever waits.
void engine_launch(engine *e) {
    for (task *t = e->tasks; t && e->running < e->cap && !atomic_load(&e->closing); t = t->next) {
        if (t->status != DELEG_QUEUED) continue;
        t->status = DELEG_RUNNING;
        t->counted = true;
        e->running++;
        e->queued--;
        if (start_thread(t) == 0) continue;
        t->status = DELEG_QUEUED;
        t->counted = false;
        e->running--;
        e->queued++;
        return;
    }
}

// --- Orders --------------------------------------------------------------------------------------

static dep_status reserve(engine *e, bool *queue, dep_err *err) {
    with_lock(e);
    dep_status status = DEP_OK;
    *queue = e->running >= e->cap || e->queued > 0;
    if (atomic_load(&e->closing)) {
        status = err_set(err, DEP_ERR_CANCELLED, "the program is ending");
    } else if (*queue && e->queued >= DELEGATE_QUEUED_MAX) {
        status = err_set(err, DEP_ERR_LIMIT, "%d delegations wait already; wait for some of them first",
                         DELEGATE_QUEUED_MAX);
    } else if (*queue) {
        e->queued++;
    } else {
        e->running++;
    }
    without_lock(e);
    return status;
}

static void give_back(engine *e, bool queue) {
    with_lock(e);
    if (queue) {
        e->queued--;
    } else {
        e->running--;
        engine_launch(e);
    }
    without_lock(e);
}

// A run in an arena of its own, which goes when nothing comes of it.
static dep_status prepare_own(engine *e, const delegate_order *o, run **ret, dep_err *err) {
    arena *mem = arena_new();
    dep_status status = order_prepare(e, mem, o, ret, err);
    if (status != DEP_OK) arena_free(mem);
    return status;
}

dep_status engine_start(engine *e, arena *a, const delegate_order *o, str *id, dep_err *err) {
    run *r;
    bool queue;
    join_done(e);
    TRY(prepare_own(e, o, &r, err));
    dep_status status = reserve(e, &queue, err);
    if (status != DEP_OK) {
        drop(r);
        return status;
    }
    status = order_store(r, queue ? DELEG_QUEUED : DELEG_RUNNING, false, err);
    if (status != DEP_OK) {
        give_back(e, queue);
        drop(r);
        return status;
    }
    *id = str_dup(a, r->id);
    r->queued = queue;
    task *t = engine_add(e, r, queue ? DELEG_QUEUED : DELEG_RUNNING, !queue);
    with_lock(e);
    bool failed = false;
    if (queue) {
        engine_launch(e); // a slot may have become free meanwhile
    } else {
        failed = start_thread(t) != 0;
    }
    without_lock(e);
    if (failed) {
        // It exists, so it ends with a report.
        report_store(r, DELEG_FAILED, S("no thread could be had for it"));
        deleg_status ended = r->report.status;
        drop(r);
        engine_ended(t, ended);
    }
    return DEP_OK;
}

dep_status engine_queue(engine *e, arena *a, const delegate_order *o, str *id, dep_err *err) {
    run *r;
    TRY(prepare_own(e, o, &r, err));
    dep_status status = order_store(r, DELEG_QUEUED, true, err);
    if (status == DEP_OK) *id = str_dup(a, r->id);
    drop(r);
    return status;
}

static void run_here(engine *e, run *r, delegate_report *ret) {
    task *t = engine_add(e, r, DELEG_RUNNING, false);
    run_to_end(r, false);
    *ret = r->report;
    deleg_status status = r->report.status;
    run_release(r);
    engine_ended(t, status);
}

dep_status engine_run(engine *e, arena *a, const delegate_order *o, const delegate_sink *sink,
                      delegate_report *ret, dep_err *err) {
    run *r;
    TRY(order_prepare(e, a, o, &r, err));
    if (sink) r->sink = sink;
    dep_status status = order_store(r, DELEG_RUNNING, false, err);
    if (status != DEP_OK) {
        run_release(r);
        return status;
    }
    run_here(e, r, ret);
    return DEP_OK;
}

dep_status engine_run_queued(engine *e, arena *a, str id, const delegate_sink *sink, delegate_report *ret,
                             dep_err *err) {
    run *r;
    TRY(order_requeue(e, a, id, &r, err));
    if (sink) r->sink = sink;
    // Taken before anything else: what another process has got meanwhile is not ours to end.
    dep_status status = order_take(r, err);
    if (status != DEP_OK) {
        run_release(r);
        return status;
    }
    run_here(e, r, ret);
    return DEP_OK;
}

// --- Searches ------------------------------------------------------------------------------------

bool engine_enter(void *p) {
    run *r = p;
    engine *e = r->e;
    with_lock(e);
    while (e->searching >= e->processors && !atomic_load(&r->task->stop)) {
        struct timespec at = thread_in_ms(WAIT_LOOK_MS);
        pthread_cond_timedwait(&e->searched, &e->lock, &at);
        without_lock(e);
        (void)run_cancelled(r); // what a watcher wants is heard here too
        with_lock(e);
    }
    bool go = !atomic_load(&r->task->stop);
    if (go) e->searching++;
    without_lock(e);
    return go;
}

void engine_leave(void *p) {
    run *r = p;
    with_lock(r->e);
    r->e->searching--;
    pthread_cond_signal(&r->e->searched);
    without_lock(r->e);
}

// --- Waiting, stopping, looking ------------------------------------------------------------------

// With the lock held.
static size_t count_ended(engine *e, const str *ids, size_t n, bool *ended) {
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        ended[i] = find(e, ids[i]) == NULL;
        count += ended[i];
    }
    return count;
}

bool engine_wait(engine *e, const str *ids, size_t n, bool any, int64_t timeout_ms, bool *ended,
                 bool (*cancelled)(void *ctx), void *ctx) {
    const sys_clock *clock = sys_clock_real();
    int64_t until = clock->mono_ms(clock->ctx) + timeout_ms;
    for (;;) {
        with_lock(e);
        engine_launch(e);
        size_t count = count_ended(e, ids, n, ended);
        bool enough = count == n || (any && count > 0);
        int64_t left = until - clock->mono_ms(clock->ctx);
        if (!enough && left > 0) {
            struct timespec at = thread_in_ms(left < WAIT_LOOK_MS ? left : WAIT_LOOK_MS);
            pthread_cond_timedwait(&e->changed, &e->lock, &at);
            count = count_ended(e, ids, n, ended);
            enough = count == n || (any && count > 0);
        }
        without_lock(e);
        if (enough) break;
        if (left <= 0 || (cancelled && cancelled(ctx))) return false;
    }
    join_done(e);
    return true;
}

// One that waits for a slot ends here; with a thread, that sees the word.
bool engine_stop_why(engine *e, str id, const char *why) {
    with_lock(e);
    task *t = find(e, id);
    if (t && !atomic_load(&t->stop)) atomic_store(&t->stop, why);
    bool waits = t && t->status == DELEG_QUEUED;
    if (waits) {
        t->status = DELEG_RUNNING; // nobody else takes it
        e->queued--;
    }
    pthread_cond_broadcast(&e->changed);
    without_lock(e);
    if (waits) {
        run *r = t->r;
        report_store(r, DELEG_STOPPED, str_z(why));
        drop(r);
        engine_ended(t, DELEG_STOPPED);
    }
    return t != NULL;
}

bool engine_stop(engine *e, str id) {
    return engine_stop_why(e, id, "stopped by a person");
}

void engine_list(engine *e, arena *a, str thread, engine_tasks *ret) {
    with_lock(e);
    for (const task *t = e->tasks; t; t = t->next) {
        if (thread.n && !str_eq(thread, t->thread)) continue;
        vec_push(a, ret,
                 ((engine_task){.id = str_dup(a, t->id),
                                .agent = str_dup(a, t->agent),
                                .description = str_dup(a, t->description),
                                .thread = str_dup(a, t->thread),
                                .status = t->status,
                                .background = t->background,
                                .is_main = t->is_main,
                                .turns = t->turns,
                                .tool_calls = t->tool_calls,
                                .started_ms = t->started_ms,
                                .doing = str_dup(a, str_z(t->doing))}));
    }
    without_lock(e);
}

// --- Beginning and end ---------------------------------------------------------------------------

store_shared *engine_store(engine *e) {
    return e->store;
}

// Each delegation holds a few descriptors.
static void raise_descriptors(void) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max < 65536 ? l.rlim_max : 65536;
        (void)setrlimit(RLIMIT_NOFILE, &l);
    }
}

static void make_locks(engine *e) {
    pthread_mutex_init(&e->lock, NULL);
    pthread_mutex_init(&e->snapshots, NULL);
    thread_cond_init(&e->changed);
    thread_cond_init(&e->searched);
}

static void stop_all(engine *e, const char *why) {
    arena *a = arena_new();
    engine_tasks all = {0};
    engine_list(e, a, (str){0}, &all);
    for (vec_each(const engine_task, t, &all)) engine_stop_why(e, t->id, why);
    arena_free(a);
}

void engine_close(engine *e) {
    if (!e || e->closed) return;
    atomic_store(&e->closing, true);
    // Again and again: an order that was on its way comes after the first look, and nobody starts it any
    // more.
    for (bool more = true; more;) {
        stop_all(e, "stopped: the program ended");
        struct timespec at = thread_in_ms(WAIT_LOOK_MS);
        with_lock(e);
        if (e->tasks) pthread_cond_timedwait(&e->changed, &e->lock, &at);
        more = e->tasks != NULL;
        without_lock(e);
    }
    join_done(e);
    control_end(e);
    snapshot_release(e, e->shown);
    snapshot_release(e, e->current);
    e->shown = e->current = NULL;
    if (e->given) e->given->searches = NULL; // the cache goes with the engine
    pthread_cond_destroy(&e->changed);
    pthread_cond_destroy(&e->searched);
    pthread_mutex_destroy(&e->lock);
    pthread_mutex_destroy(&e->snapshots);
    e->closed = true;
}

static void close_deferred(void *e) {
    engine_close(e);
}

static dep_status open_store(arena *a, engine *e, workspace *w, dep_err *err) {
    store *s;
    size_t interrupted;
    // A database opened for reading earlier is opened anew for writing: state that cannot be written refuses
    // everything before the first model call.
    if (w->store) {
        store_close(w->store);
        w->store = NULL;
    }
    TRY(store_open(a, w->dirs.state, w->root, false, w->clock, &s, err));
    TRY(store_run_begin(a, s, &e->run_id, err));
    TRY(store_recover(s, &interrupted, err));
    // Old rows that stay for once harm nobody.
    size_t removed;
    (void)delegate_retain(s, w, false, &removed, NULL);
    e->socket = store_run_socket(s);
    e->store = store_share(a, s);
    return DEP_OK;
}

dep_status engine_open(arena *a, workspace *w, const engine_sink *sink, engine **ret, dep_err *err) {
    engine *e = NEW(a, engine);
    *e = (engine){.a = a, .socket = -1, .wake = -1, .tail = &e->tasks};
    // All delegations search one cache, whichever snapshot of the workspace they began with.
    if (!w->searches) {
        w->searches = search_cache_new(a);
        e->given = w;
    }
    e->opts = (workspace_opts){
        .dir = w->root, .getenv = w->getenv, .clock = w->clock, .bodies = w->bodies, .searches = w->searches};
    if (sink) e->sink = *sink;
    e->cap = (size_t)w->config.limits.running;
    e->processors = thread_processors();
    TRY(workspace_stamp(w, err)); // reads the switches, with a connection that is closed next
    TRY(open_store(a, e, w, err));
    e->net = model_net_new(a, w->clock);
    e->current = NEW(a, snapshot);
    *e->current = (snapshot){.w = w, .refs = 1};
    raise_descriptors();
    make_locks(e);
    arena_defer(a, close_deferred, e); // before store and network, which hang on the same arena
    control_start(e);
    *ret = e;
    return DEP_OK;
}

// cli: delegations in the background. `run --background` stores a queued row and starts this program once
// more with the hidden verb `_work`, in a session of its own and without a terminal, which takes the row and
// runs it.
#include "cli/delegations.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WORKER_LOOK_MS = 20,
    WORKER_START_MS = 30000, // until it must have taken its delegation; longer than a busy store may take
    WORKER_STOP_MS = 10000,  // what was stopped may take so long to end
};

// --- Starting one --------------------------------------------------------------------------------

// The whole environment goes along: the config may name any variable. 0, or an errno.
static int spawn(cli *c, str id, pid_t *pid) {
    static const char program[] = "/proc/self/exe";
    char *argv[] = {str_cz(c->a, S("deputy")), str_cz(c->a, S("-C")), str_cz(c->a, c->w->root),
                    str_cz(c->a, S("_work")),  str_cz(c->a, id),      NULL};
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t acts;
    sigset_t none, all;
    int os = posix_spawnattr_init(&attr);
    if (os) return os;
    os = posix_spawn_file_actions_init(&acts);
    if (os) {
        posix_spawnattr_destroy(&attr);
        return os;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    for (int fd = 0; fd <= 2 && !os; fd++)
        os = posix_spawn_file_actions_addopen(&acts, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    if (!os) os = posix_spawn_file_actions_addclosefrom_np(&acts, 3);
    if (!os) os = posix_spawn(pid, program, &acts, &attr, argv, environ);
    posix_spawn_file_actions_destroy(&acts);
    posix_spawnattr_destroy(&attr);
    return os;
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

// Until the row is no longer queued, the process has ended or the time is over. An empty *why: it was taken.
static int await_taken(cli *c, engine *e, str id, pid_t pid, query *q, str *why) {
    int64_t until = mono_now(c) + WORKER_START_MS;
    dep_err err;
    for (;;) {
        int how = 0;
        // Looked at before the row, so that what it did last is seen.
        bool ended = waitpid(pid, &how, WNOHANG) == pid;
        arena *a = arena_new();
        *q = (query){.a = a, .id = id};
        dep_status status = store_do(engine_store(e), STORE_READ, get_row, q, &err);
        q->row.end_reason = str_dup(c->a, q->row.end_reason);
        q->row.report = str_dup(c->a, q->row.report);
        arena_free(a);
        if (status != DEP_OK) return fail(c, &err);
        *why = (str){0};
        if (q->row.status != DELEG_QUEUED) return EXIT_FINE;
        *why = S("its process ended before it began");
        if (ended) return EXIT_FINE;
        if (mono_now(c) >= until) {
            kill(pid, SIGKILL);
            while (waitpid(pid, &how, 0) < 0 && errno == EINTR) {}
            *why = str_fmt(c->a, "its process had not begun after %d s", WORKER_START_MS / 1000);
            return EXIT_FINE;
        }
        signals_pause(WORKER_LOOK_MS);
    }
}

// It failed before the model was asked: whoever ordered it is still there to be told.
static bool never_began(const delegation_row *row) {
    arena *a = arena_new();
    json *rep;
    bool none = row->status == DELEG_FAILED && json_parse(a, row->report, 0, &rep, NULL) == DEP_OK &&
                json_num(rep, S("turns"), 0) == 0;
    arena_free(a);
    return none;
}

static int give_up(cli *c, engine *e, str id, str why) {
    dep_err err;
    // Somebody may have taken or stopped it after all; then that stands.
    if (engine_give_up(e, id, why, &err) != DEP_OK) say(c, "%s", err.msg);
    return fail_with(c, EXIT_ERRORS, "%.*s was not run: " STR_FMT, SHORT_ID, id.p, STR_ARG(why));
}

int worker_start(cli *c, engine *e, str id) {
    pid_t pid = -1;
    query q = {0};
    str why = {0};
    int os = spawn(c, id, &pid);
    if (os) {
        dep_err err;
        (void)err_os(&err, os, "no process could be started for it");
        return give_up(c, e, id, str_dup(c->a, str_z(err.msg)));
    }
    int code = await_taken(c, e, id, pid, &q, &why);
    if (code) return code;
    if (why.n) return give_up(c, e, id, why);
    if (never_began(&q.row))
        return fail_with(c, EXIT_ERRORS, "%.*s was not run: " STR_FMT, SHORT_ID, id.p,
                         STR_ARG(q.row.end_reason));
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) {
        jw_obj(&w);
        jw_kstr(&w, S("id"), id);
        jw_end_obj(&w);
    } else {
        buf_add(&b, id);
    }
    buf_addc(&b, '\n');
    out_buf(&b);
    fflush(stdout);
    if (!c->json)
        say(c, "runs in the background; `deputy tail %.*s` follows it, `deputy wait %.*s` gives its report",
            SHORT_ID, id.p, SHORT_ID, id.p);
    return EXIT_FINE;
}

// --- Being one -----------------------------------------------------------------------------------

void worker_rest(cli *c, engine *e, bool loud) {
    engine_tasks left = {0};
    strs ids = {0};
    engine_list(e, c->a, (str){0}, &left);
    if (!left.n) return;
    for (vec_each(const engine_task, t, &left)) vec_push(c->a, &ids, t->id);
    bool *ended = NEW_N(c->a, bool, ids.n);
    if (loud && !signals_stop(NULL))
        say(c, "%zu delegation%s in the background still run%s; waiting for %s, Ctrl-C stops %s", ids.n,
            ids.n == 1 ? "" : "s", ids.n == 1 ? "s" : "", ids.n == 1 ? "it" : "them",
            ids.n == 1 ? "it" : "them");
    while (!engine_wait(e, ids.p, ids.n, false, INT32_MAX, ended, signals_stop, NULL)) {
        if (!signals_stop(NULL)) continue;
        for (vec_each(const str, id, &ids)) (void)engine_stop(e, *id);
        (void)engine_wait(e, ids.p, ids.n, false, WORKER_STOP_MS, ended, NULL, NULL);
        break;
    }
}

int verb_work(cli *c) {
    delegate_sink sink = {.cancelled = signals_stop};
    delegate_report r;
    engine *e;
    dep_err err;
    signals_catch();
    int code = need_agents(c);
    if (code) return code;
    if (engine_open(c->a, c->w, NULL, &e, &err) != DEP_OK) return fail(c, &err);
    if (engine_run_queued(e, c->a, arg(c, 0), &sink, &r, &err) != DEP_OK) return fail(c, &err);
    worker_rest(c, e, false);
    return report_exit(r.status);
}

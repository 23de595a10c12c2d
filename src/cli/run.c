// cli: run. Live progress on a terminal, plain when piped, the report last; Ctrl-C stops the run, keeps what
// it had and says where to find it.
#include "cli/delegations.h"
#include "cli/take_agent.h"
#include <deputy/file.h>
#include <pthread.h>
#include <unistd.h>

// Called on the thread of the run, and for delegations that it starts on theirs.
typedef struct {
    cli *c;
    bool live, events;
    int64_t started_ms;
    pthread_mutex_t lock; // of the screen
    feed feed;
} watcher;

static int64_t elapsed(const watcher *w) {
    return (mono_now(w->c) - w->started_ms) / 1000;
}

static void on_turn(void *p, int64_t n) {
    watcher *w = p;
    if (!w->live) return;
    pthread_mutex_lock(&w->lock);
    feed_turn(&w->feed, n, elapsed(w));
    pthread_mutex_unlock(&w->lock);
}

static void on_tool(void *p, str name, str args) {
    watcher *w = p;
    if (!w->live) return;
    pthread_mutex_lock(&w->lock);
    feed_tool(&w->feed, name, args, elapsed(w));
    pthread_mutex_unlock(&w->lock);
}

static void on_text(void *p, str delta) {
    watcher *w = p;
    if (!w->live) return;
    pthread_mutex_lock(&w->lock);
    feed_text(&w->feed, delta);
    pthread_mutex_unlock(&w->lock);
}

static void on_item(void *p, str kind, str item) {
    watcher *w = p;
    (void)kind;
    if (!w->events) return;
    out_exact(item);
    out_exact(S("\n"));
    fflush(stdout);
}

// Of a delegation that a main agent has started: its calls and its end, with its name.
static void on_other(void *p, str id, str agent, str kind, str item) {
    watcher *w = p;
    if (!w->live || (!str_eq(kind, S("tool")) && !str_eq(kind, S("status")))) return;
    arena *a = arena_new();
    json *j;
    str name = str_fmt(a, "[" STR_FMT " %.*s]", STR_ARG(agent), SHORT_ID, id.p);
    pthread_mutex_lock(&w->lock);
    if (json_parse(a, item, 0, &j, NULL) == DEP_OK) {
        feed_end_line(&w->feed);
        w->feed.label = name;
        if (str_eq(kind, S("tool"))) {
            const json *args = json_get(j, S("arguments"));
            feed_tool(&w->feed, json_str(j, S("name"), (str){0}), args ? args->raw : (str){0}, elapsed(w));
        } else {
            feed_note(&w->feed, json_str(j, S("status"), (str){0}));
        }
        w->feed.label = (str){0};
    }
    pthread_mutex_unlock(&w->lock);
    arena_free(a);
}

static int read_task(cli *c, str *task) {
    *task = arg(c, 1);
    if (!str_eq(*task, S("-"))) return EXIT_FINE;
    dep_err err;
    return file_read_stream(c->a, 0, DELEGATE_TASK_MAX, task, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

static void hint_models(cli *c) {
    const char *var, *provider = provider_waiting(c, &var);
    if (provider && !c->w->config.model.n)
        say(c, "%s is set; `deputy models add %s` connects a language model", var, provider);
}

static bool usable(cli *c) {
    if (opt_has(c, "level")) return usage_error(c, "--level: not yet"), false;
    if (opt_has(c, "background") && opt_has(c, "events"))
        return usage_error(c, "--events shows a run here; `deputy tail ID --json` follows one in the "
                              "background"),
               false;
    return true;
}

static dep_status deliver(store *s, void *p, dep_err *err) {
    return store_delivered(s, *(const str *)p, err);
}

// What could not be printed has reached nobody.
static void note_delivered(cli *c, engine *e, str id) {
    dep_err err;
    if (fflush(stdout) != 0 || ferror(stdout)) return;
    if (store_do(engine_store(e), STORE_WRITE_FULL, deliver, &id, &err) != DEP_OK)
        say(c, "%.8s is not marked as read: %s", id.p, err.msg);
}

static int not_run(cli *c, const agent_entry *e, const dep_err *err) {
    return fail_with(c, exit_code(err->status), "\"" STR_FMT "\" was not run: %s", STR_ARG(e->def.name),
                     err->msg);
}

static int run_away(cli *c, const agent_entry *e, delegate_order *o) {
    engine *engine;
    dep_err err;
    str id;
    o->background = true;
    dep_status status = engine_open(c->a, c->w, NULL, &engine, &err);
    if (status == DEP_OK) status = engine_queue(engine, c->a, o, &id, &err);
    return status == DEP_OK ? worker_start(c, engine, id) : not_run(c, e, &err);
}

static int run_here(cli *c, const agent_entry *e, const delegate_order *o) {
    signals_catch();
    watcher w = {.c = c, .events = opt_has(c, "events"), .started_ms = mono_now(c)};
    w.live = isatty(2) && !w.events && !c->json;
    w.feed = feed_new(c, stderr, c->color_err);
    pthread_mutex_init(&w.lock, NULL);
    delegate_sink sink = {.item = on_item,
                          .text = on_text,
                          .tool = on_tool,
                          .turn = on_turn,
                          .cancelled = signals_stop,
                          .ctx = &w};
    engine_sink others = {.item = on_other, .ctx = &w};
    engine *engine;
    delegate_report r;
    dep_err err;
    dep_status status = engine_open(c->a, c->w, &others, &engine, &err);
    if (status == DEP_OK) status = engine_run(engine, c->a, o, &sink, &r, &err);
    if (status != DEP_OK) return not_run(c, e, &err);
    pthread_mutex_lock(&w.lock);
    feed_end_line(&w.feed);
    pthread_mutex_unlock(&w.lock);
    if (c->json || w.events) {
        out_exact(r.json);
        out_exact(S("\n"));
    } else {
        // On one terminal the text has been seen as it came; a pipe gets it whole.
        report_print(c, r.json, w.live && isatty(1), false);
        hint_models(c);
    }
    note_delivered(c, engine, r.id);
    worker_rest(c, engine, true);
    engine_close(engine); // its threads write to w
    return r.status == DELEG_STOPPED && signals_stop(NULL) ? EXIT_INTERRUPTED : report_exit(r.status);
}

int verb_run(cli *c) {
    str task;
    agent_role role;
    if (!usable(c) || !opt_role(c, NULL, &role)) return EXIT_USAGE; // before anything is asked
    int code = need_agents(c);
    if (code) return code;
    print_diags(c, &c->w->diags);
    agent_entry *e = NULL;
    if ((code = take_agent(c, arg(c, 0), S("trust this and run it?"), &e))) return code;
    if (!opt_role(c, &e->def, &role)) return EXIT_USAGE;
    if ((code = read_task(c, &task)) || (code = renew_trust(c, e))) return code;
    delegate_order o = {.agent = e->def.file,
                        .task = task,
                        .description = opt_get(c, "description", (str){0}),
                        .model = opt_get(c, "model", (str){0}),
                        .resume = opt_get(c, "resume", (str){0}),
                        .role = role};
    return opt_has(c, "background") ? run_away(c, e, &o) : run_here(c, e, &o);
}

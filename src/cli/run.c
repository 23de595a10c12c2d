// cli: run. Live progress on a terminal, plain when piped, the report last; Ctrl-C stops the run, keeps what
// it had and says where to find it.
#include "cli/take_agent.h"
#include <deputy/file.h>
#include <signal.h>
#include <unistd.h>

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no context
static volatile sig_atomic_t stop_signal;
static void on_signal(int sig) {
    stop_signal = sig;
}

typedef struct {
    cli *c;
    bool live, events;
    int64_t started_ms, turn;
    bool mid_line;
} watcher;

static int64_t elapsed(const watcher *w) {
    return (w->c->in->clock->mono_ms(w->c->in->clock->ctx) - w->started_ms) / 1000;
}

static void end_line(watcher *w) {
    if (w->mid_line) fputc('\n', stderr);
    w->mid_line = false;
}

static void on_turn(void *p, int64_t n) {
    watcher *w = p;
    w->turn = n;
    if (!w->live) return;
    end_line(w);
    fprintf(stderr, "%s· turn %lld, %lld s%s\n", w->c->color_err ? "\x1b[2m" : "", (long long)n,
            (long long)elapsed(w), w->c->color_err ? "\x1b[0m" : "");
}

static void on_tool(void *p, str name, str args) {
    watcher *w = p;
    if (!w->live) return;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    end_line(w);
    text(&b, "  → ");
    safe(&b, name);
    text(&b, " ");
    brief(&b, args, 100);
    buf_addf(&b, "  (%lld s)\n", (long long)elapsed(w));
    str s = buf_str(&b);
    fwrite(s.p, 1, s.n, stderr);
    arena_free(a);
}

static void on_text(void *p, str delta) {
    watcher *w = p;
    if (!w->live) return;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    term_add(&b, delta, true);
    str s = buf_str(&b);
    fwrite(s.p, 1, s.n, stderr);
    fflush(stderr);
    if (s.n) w->mid_line = s.p[s.n - 1] != '\n';
    arena_free(a);
}

static void on_item(void *p, str kind, str item) {
    watcher *w = p;
    (void)kind;
    if (!w->events) return;
    out_exact(item);
    out_exact(S("\n"));
    fflush(stdout);
}

static bool was_stopped(void *p) {
    (void)p;
    return stop_signal != 0;
}

static void catch_signals(void) {
    struct sigaction act = {.sa_handler = on_signal};
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static int read_task(cli *c, str *task) {
    *task = arg(c, 1);
    if (!str_eq(*task, S("-"))) return EXIT_FINE;
    dep_err err;
    return file_read_stream(c->a, 0, DELEGATE_TASK_MAX, task, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

static void print_report(cli *c, const delegate_report *r, bool streamed) {
    buf b = buf_new(c->a, 0);
    if (!streamed && r->report.n) {
        term_add(&b, r->report, true);
        if (!str_ends(r->report, S("\n"))) text(&b, "\n");
        out_buf(&b);
    }
    buf_clear(&b);
    bool fine = r->status == DELEG_COMPLETED;
    text(&b, deleg_status_name(r->status));
    text(&b, fine ? " · " : ": ");
    if (!fine) safe(&b, r->end_reason), text(&b, "\n");
    buf_addf(&b, "%lld turn%s, %lld tool call%s", (long long)r->turns, r->turns == 1 ? "" : "s",
             (long long)r->tool_calls, r->tool_calls == 1 ? "" : "s");
    if (r->usage.input || r->usage.output)
        buf_addf(&b, ", %lld tokens in, %lld out",
                 (long long)(r->usage.input + r->usage.cache_read + r->usage.cache_write),
                 (long long)r->usage.output);
    buf_addf(&b, " · deputy replay %.8s\n", r->id.p);
    for (vec_each(const str, s, &r->warnings)) text(&b, "note: "), safe(&b, *s), text(&b, "\n");
    for (vec_each(const memory_written, m, &r->memory_writes))
        text(&b, "memory: "), safe(&b, m->file), text(&b, ": "), safe(&b, m->excerpt), text(&b, "\n");
    if (r->status == DELEG_STOPPED)
        buf_addf(&b, "stopped; what it had is kept: deputy replay %.8s\n", r->id.p);
    str s = buf_str(&b);
    fflush(stdout);
    fwrite(s.p, 1, s.n, stderr);
}

static void hint_models(cli *c) {
    const char *var, *provider = provider_waiting(c, &var);
    if (provider && !c->w->config.model.n)
        say(c, "%s is set; `deputy models add %s` connects a language model", var, provider);
}

int verb_run(cli *c) {
    static const char *const later[] = {"background", "resume", "level"};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (opt_has(c, later[i])) return usage_error(c, "--%s: not yet", later[i]);
    str task;
    agent_role role;
    if (!opt_role(c, NULL, &role)) return EXIT_USAGE; // before anything is asked
    int code = need_agents(c);
    if (code) return code;
    print_diags(c, &c->w->diags);
    agent_entry *e = NULL;
    dep_err err;
    if ((code = take_agent(c, arg(c, 0), S("trust this and run it?"), &e))) return code;
    if (!opt_role(c, &e->def, &role)) return EXIT_USAGE;
    if ((code = read_task(c, &task)) || (code = renew_trust(c, e))) return code;
    catch_signals();
    watcher w = {
        .c = c, .events = opt_has(c, "events"), .started_ms = c->in->clock->mono_ms(c->in->clock->ctx)};
    w.live = isatty(2) && !w.events && !c->json;
    delegate_sink sink = {.item = on_item,
                          .text = on_text,
                          .tool = on_tool,
                          .turn = on_turn,
                          .cancelled = was_stopped,
                          .ctx = &w};
    delegate_order o = {.agent = e->def.file,
                        .task = task,
                        .description = opt_get(c, "description", (str){0}),
                        .model = opt_get(c, "model", (str){0}),
                        .role = role};
    delegate_report r;
    engine *engine;
    dep_status status = engine_open(c->a, c->w, NULL, &engine, &err);
    if (status == DEP_OK) status = engine_run(engine, c->a, &o, &sink, &r, &err);
    if (status != DEP_OK)
        return fail_with(c, exit_code(err.status), "\"" STR_FMT "\" was not run: %s", STR_ARG(e->def.name),
                         err.msg);
    end_line(&w);
    if (c->json || w.events) {
        out_exact(r.json);
        out_exact(S("\n"));
    } else {
        // On one terminal the text has been seen as it came; a pipe gets it whole.
        print_report(c, &r, w.live && isatty(1));
        hint_models(c);
    }
    if (r.status == DELEG_STOPPED) return EXIT_INTERRUPTED;
    return r.status == DELEG_COMPLETED ? EXIT_FINE : EXIT_ERRORS;
}

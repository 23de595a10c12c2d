// cli: chat. A conversation with a main agent: each message of the person is a turn, a delegation of its own
// that continues the one before. Ctrl-C stops a turn and what it waits for, never the program; what runs in
// the background outlives the turn.
#include "cli/chat_int.h"
#include "cli/take_agent.h"
#include <signal.h>
#include <unistd.h>

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no context
static volatile sig_atomic_t ctrl_c, told_to_end, resized, continued;
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

static void on_signal(int sig) {
    switch (sig) {
    case SIGINT: ctrl_c = 1; break;
    case SIGWINCH: resized = 1; break;
    case SIGCONT: continued = 1; break;
    default: told_to_end = 1;
    }
}

bool chat_interrupted(bool forget) {
    bool was = ctrl_c != 0;
    if (forget) ctrl_c = 0;
    return was;
}
bool chat_told_to_end(void) {
    return told_to_end != 0;
}
bool chat_resized(void) {
    bool was = resized != 0;
    resized = 0;
    return was;
}
bool chat_continued(void) {
    bool was = continued != 0;
    continued = 0;
    return was;
}

static void catch_signals(void) {
    static const int heard[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
    struct sigaction act = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof heard / sizeof *heard; i++) sigaction(heard[i], &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

// --- A turn --------------------------------------------------------------------------------------

static void on_text(void *p, str delta) {
    chat *ch = p;
    chat_view_text(&ch->view, delta);
}

static void on_tool(void *p, str name, str args) {
    chat *ch = p;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    text(&b, "→ ");
    safe(&b, name);
    text(&b, " ");
    chat_args(&b, args);
    chat_view_end_text(&ch->view);
    if (ch->view.live) chat_view_line(&ch->view, false, buf_str(&b));
    arena_free(a);
}

// What a call came to is for the model, but that it failed is for the person too.
static void on_item(void *p, str kind, str item) {
    enum { ERROR_CHARS = 200 };
    chat *ch = p;
    bool tool = str_eq(kind, S("tool")), context = str_eq(kind, S("context"));
    if (!ch->view.live || (!tool && !context)) return;
    arena *a = arena_new();
    json *j;
    buf b = buf_new(a, 0);
    if (json_parse(a, item, 0, &j, NULL) == DEP_OK && (context || json_bool(j, S("is_error"), false))) {
        str what = json_str(j, tool ? S("result") : S("detail"), (str){0}), line;
        str_cut(str_trim(what), '\n', &line, &what);
        text(&b, tool ? "  error: " : "  note: ");
        brief(&b, line, ERROR_CHARS);
        chat_view_line(&ch->view, true, buf_str(&b));
    }
    arena_free(a);
}

static void on_turn(void *p, int64_t n) {
    (void)n;
    chat *ch = p;
    chat_view_end_text(&ch->view);
}

static bool was_stopped(void *p) {
    (void)p;
    return chat_interrupted(false) || chat_told_to_end();
}

static void count(buf *b, int64_t n, const char *what) {
    buf_addf(b, "%lld %s%s", (long long)n, what, n == 1 ? "" : "s");
}

static void show_end(chat *ch, arena *a, const delegate_report *r) {
    buf b = buf_new(a, 0);
    if (r->status != DELEG_COMPLETED) {
        buf_addf(&b, "%s: ", deleg_status_name(r->status));
        safe(&b, r->end_reason);
        chat_view_line(&ch->view, false, buf_str(&b));
        buf_clear(&b);
    }
    for (vec_each(const memory_written, m, &r->memory_writes)) {
        text(&b, "memory: "), safe(&b, m->file), text(&b, ": "), safe(&b, m->excerpt);
        chat_view_line(&ch->view, true, buf_str(&b));
        buf_clear(&b);
    }
    const model_usage *u = &r->usage;
    text(&b, "· ");
    count(&b, r->turns, "turn"), text(&b, ", "), count(&b, r->tool_calls, "tool call");
    if (u->input || u->output || u->cache_read)
        buf_addf(&b, ", %lld tokens in, %lld out", (long long)(u->input + u->cache_read + u->cache_write),
                 (long long)u->output);
    if (r->cost_micro >= 0) text(&b, ", cost "), buf_add(&b, config_amount(a, r->cost_micro));
    buf_addf(&b, " · %.8s", r->id.p);
    chat_view_line(&ch->view, true, buf_str(&b));
}

static void take_turn(chat *ch, arena *a, str message) {
    strs told = {0};
    delegate_report r;
    dep_err err;
    delegate_order o = {.agent = ch->agent,
                        .task = chat_with_news(ch, a, message, &told),
                        .model = ch->model,
                        .role = ROLE_MAIN,
                        .thread = ch->thread,
                        .resume = ch->last};
    delegate_sink sink = {.item = on_item,
                          .text = on_text,
                          .tool = on_tool,
                          .turn = on_turn,
                          .cancelled = was_stopped,
                          .ctx = ch};
    dep_status st = engine_run(ch->e, a, &o, &sink, &r, &err);
    chat_view_end_text(&ch->view);
    if (st != DEP_OK) {
        ch->failed = true;
        say(ch->c, "not sent: %s", err.msg);
        return;
    }
    if (r.status != DELEG_COMPLETED) ch->failed = true;
    ch->last = str_dup(ch->c->a, r.id);
    for (vec_each(const str, id, &told)) vec_push(ch->c->a, &ch->told, str_dup(ch->c->a, *id));
    show_end(ch, a, &r);
}

// --- The conversation ----------------------------------------------------------------------------

static int converse(chat *ch) {
    while (!ch->quit) {
        arena *a = arena_new();
        str message;
        line_kind kind = chat_input_message(ch->in, a, &message);
        if (kind == LINE_END) {
            chat_leave(ch, a);
        } else if (kind == LINE_GIVEN && str_trim(message).n) {
            chat_input_remember(ch->in, message);
            if (message.p[0] == '/') {
                chat_command(ch, a, message);
            } else {
                take_turn(ch, a, message);
            }
        }
        arena_free(a);
        if (chat_told_to_end()) return EXIT_INTERRUPTED;
        // Without a terminal there is nobody to go on.
        if (!ch->terminal && chat_interrupted(false)) return EXIT_INTERRUPTED;
    }
    return !ch->terminal && ch->failed ? EXIT_ERRORS : EXIT_FINE;
}

static void greet(chat *ch, str model) {
    buf b = buf_new(ch->c->a, 0);
    if (!ch->terminal) return;
    safe(&b, ch->agent);
    text(&b, " · ");
    safe(&b, model);
    buf_addf(&b, " · conversation %.8s · /help lists the commands", ch->thread.p);
    chat_view_line(&ch->view, true, buf_str(&b));
    str notice = chat_input_notice(ch->in);
    if (notice.n) say(ch->c, STR_FMT, STR_ARG(notice));
}

// --- Beginning -----------------------------------------------------------------------------------

// Without a language model only what searches its documents has anything to say.
static int need_model(cli *c, const agent_entry *e, str override, str *model) {
    grant g;
    dep_err err;
    diags d = diags_new(c->a);
    host_opts o = {.model = override};
    if (workspace_grant(c->a, c->w, &e->def, ROLE_MAIN, &o, &g, &d, &err) != DEP_OK) return fail(c, &err);
    *model = g.model;
    if (override.n || !str_starts(g.model, S("quote/")) || grant_find(&g, S("kb_search"))) return EXIT_FINE;
    const char *var, *provider = provider_waiting(c, &var);
    if (provider)
        return fail_with(c, EXIT_ERRORS,
                         "no language model is connected; %s is set: `deputy models add %s --model MODEL` "
                         "connects one",
                         var, provider);
    return fail_with(c, EXIT_ERRORS,
                     "no language model is connected; `export ANTHROPIC_API_KEY=…` and `deputy models add "
                     "anthropic --model MODEL` connect one");
}

// The thread that --resume names; its agent is the one to talk to.
static int find_resumed(cli *c, str *name, thread_row *ret) {
    dep_err err;
    str id = opt_get(c, "resume", (str){0});
    if (!opt_has(c, "resume")) return EXIT_FINE;
    int code = need_workspace(c, false);
    if (code) return code;
    if (workspace_store(c->w, true, &err) != DEP_OK) return fail(c, &err);
    if (chat_find_thread(c->a, c->w->store, id, ret, &err) != DEP_OK) return fail(c, &err);
    if (name->n && !str_eq(*name, ret->agent))
        return fail_with(c, EXIT_USAGE, "the conversation %.8s is with \"" STR_FMT "\"", ret->id.p,
                         STR_ARG(ret->agent));
    *name = ret->agent;
    return EXIT_FINE;
}

static int hold(cli *c, const agent_entry *e, const thread_row *resumed, str model) {
    chat ch = {
        .c = c, .terminal = isatty(0) && (isatty(1) || isatty(2)), .agent = str_dup(c->a, e->def.name)};
    engine_sink sink = {.item = chat_task_item, .ended = chat_task_ended, .ctx = &ch};
    dep_err err;
    str state = c->w->dirs.state;
    ch.model = opt_get(c, "model", (str){0});
    chat_switch(&ch, resumed->id.n ? resumed : NULL);
    chat_view_open(&ch.view, c, isatty(2));
    if (engine_open(c->a, c->w, &sink, &ch.e, &err) != DEP_OK) {
        chat_view_close(&ch.view);
        return fail(c, &err);
    }
    atomic_store(&ch.running, ch.e);
    // The first message may come long after this: it is not to go by what was read now.
    workspace *now;
    if (engine_workspace(ch.e, &now, &err) != DEP_OK) say(c, "%s", err.msg);
    catch_signals();
    ch.in = chat_input_open(c->a, &ch.view, state, ch.terminal);
    greet(&ch, model);
    if (resumed->id.n && ch.terminal) chat_show_last(&ch);
    int code = converse(&ch);
    atomic_store(&ch.leaving, true);
    engine_close(ch.e);
    chat_view_close(&ch.view);
    return code;
}

int verb_chat(cli *c) {
    if (opt_has(c, "list")) return chat_list_threads(c);
    if (c->json) return usage_error(c, "--json is for --list");
    str name = arg(c, 0), model = {0};
    thread_row resumed = {0};
    agent_entry *e = NULL;
    int code = find_resumed(c, &name, &resumed);
    if (code || (code = need_agents(c))) return code;
    print_diags(c, &c->w->diags);
    if (!name.n) name = S("main");
    if ((code = take_agent(c, name, S("trust this and talk to it?"), &e)) || (code = renew_trust(c, e)) ||
        (code = need_model(c, e, opt_get(c, "model", (str){0}), &model)))
        return code;
    return hold(c, e, &resumed, model);
}

// cli: the lines of a conversation that begin with a slash.
#include "cli/chat_int.h"
#include <deputy/keytab.h>

typedef void command_fn(chat *ch, arena *a, str rest, buf *out);
static command_fn help, tasks, stop, agents, model, threads, resume, fresh, quit;

static const struct {
    const char *name, *usage, *summary;
    command_fn *run;
} commands[] = {
    {"tasks", "", "the delegations of this conversation", tasks},
    {"stop", "[ID…]", "stop these delegations; without ID all that run", stop},
    {"agents", "", "the subagents that tasks can be handed to", agents},
    {"model", "[P/M|default]", "the model of the turns to come; without P/M the present one", model},
    {"threads", "", "the conversations of this workspace", threads},
    {"resume", "ID|last", "go on with another conversation", resume},
    {"new", "", "begin another conversation", fresh},
    {"help", "", "this list", help},
    {"quit", "", "leave; asks when delegations still run", quit},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static void help(chat *ch, arena *a, str rest, buf *out) {
    (void)ch, (void)a, (void)rest;
    for (size_t i = 0; i < COMMANDS; i++) {
        int width = (int)strlen(commands[i].name) + 1 + (int)utf8_width(str_z(commands[i].usage));
        buf_addf(out, "/%s %s%*s %s\n", commands[i].name, commands[i].usage, width < 22 ? 22 - width : 0, "",
                 commands[i].summary);
    }
    text(out,
         "A backslash at the end of a line goes on in the next one. Ctrl-C stops a turn, Ctrl-D leaves.\n");
}

static void tasks(chat *ch, arena *a, str rest, buf *out) {
    (void)rest;
    chat_tasks(ch, a, out);
}

static void stop(chat *ch, arena *a, str rest, buf *out) {
    chat_stop(ch, a, rest, out);
}

static void agents(chat *ch, arena *a, str rest, buf *out) {
    (void)a, (void)rest;
    workspace *w;
    dep_err err;
    size_t n = 0;
    if (engine_workspace(ch->e, &w, &err) != DEP_OK) {
        say(ch->c, "%s", err.msg);
        return;
    }
    workspace_lock(w);
    for (vec_each(const agent_entry, e, &w->agents)) {
        if (e->state != AGENT_EFFECTIVE || role_of(&e->def) == ROLE_MAIN) continue;
        n++;
        cell(out, e->def.name, 20);
        text(out, "  ");
        brief(out, e->def.description, 90);
        text(out, "\n");
    }
    workspace_unlock(w);
    if (!n) text(out, "no subagent is in effect here; see `deputy agents`\n");
}

// What can be known of a model without asking it: its form, its provider, its key.
static bool usable(chat *ch, arena *a, str name) {
    workspace *w;
    model_provider *provider;
    str plain;
    strs secrets = {0};
    dep_err err;
    dep_status st = engine_workspace(ch->e, &w, &err);
    if (st == DEP_OK) {
        workspace_lock(w);
        st = delegate_model_open(a, w, name, NULL, &provider, &plain, &secrets, &err);
        workspace_unlock(w);
    }
    if (st != DEP_OK) say(ch->c, "%s", err.msg);
    return st == DEP_OK;
}

static void model(chat *ch, arena *a, str rest, buf *out) {
    if (str_eq(rest, S("default"))) {
        ch->model = (str){0};
    } else if (rest.n) {
        if (!usable(ch, a, rest)) return;
        ch->model = str_dup(ch->c->a, rest);
    }
    text(out, "model: ");
    safe(out, ch->model.n ? ch->model : S("as the definition or the settings say"));
    text(out, "\n");
}

static void threads(chat *ch, arena *a, str rest, buf *out) {
    (void)rest;
    thread_rows rows = {0};
    dep_err err;
    if (chat_engine_threads(a, ch->e, &rows, &err) != DEP_OK) {
        say(ch->c, "%s", err.msg);
        return;
    }
    chat_thread_lines(out, a, &rows, ch->thread);
}

void chat_switch(chat *ch, const thread_row *to) {
    arena *a = ch->c->a;
    ch->thread = to ? str_dup(a, to->id) : sys_id(a, ch->c->in->clock);
    ch->last = to ? str_dup(a, to->last) : (str){0};
    if (to) ch->agent = str_dup(a, to->agent);
}

static void resume(chat *ch, arena *a, str rest, buf *out) {
    thread_row row;
    dep_err err;
    if (!rest.n) {
        text(out, "usage: /resume ID|last; /threads shows them\n");
    } else if (chat_engine_thread(a, ch->e, rest, &row, &err) != DEP_OK) {
        say(ch->c, "%s", err.msg);
    } else {
        chat_switch(ch, &row);
        chat_show_last(ch);
        buf_addf(out, "conversation %.8s\n", ch->thread.p);
    }
}

static void fresh(chat *ch, arena *a, str rest, buf *out) {
    (void)a, (void)rest;
    chat_switch(ch, NULL);
    text(out, "a new conversation\n");
}

// --- Leaving -------------------------------------------------------------------------------------

static bool interrupted(void *p) {
    (void)p;
    return chat_interrupted(false) || chat_told_to_end();
}

static void wait_for(chat *ch, arena *a, const strs *ids) {
    bool *ended = NEW_N(a, bool, ids->n);
    atomic_store(&ch->leaving, true);
    while (!engine_wait(ch->e, ids->p, ids->n, false, INT32_MAX, ended, interrupted, NULL))
        if (interrupted(NULL)) return;
}

void chat_leave(chat *ch, arena *a) {
    strs running = {0};
    str answer;
    chat_running(ch, a, &running);
    ch->quit = true;
    if (!running.n) return;
    char question[120];
    (void)snprintf(question, sizeof question, "%zu delegation%s still run%s: wait, stop or stay? ", running.n,
                   running.n == 1 ? "" : "s", running.n == 1 ? "s" : "");
    for (;;) {
        if (!ch->terminal) chat_view_line(&ch->view, false, str_z(question));
        line_kind kind = chat_input_line(ch->in, a, question, &answer);
        answer = str_trim(answer);
        if (kind == LINE_SIGNAL) return;
        // Nobody is there to answer: what was begun is done. On a terminal the second Ctrl-D means it, and a
        // terminal that is gone is not asked for ever.
        if (kind == LINE_END) answer = ch->terminal ? S("stop") : S("wait");
        if (kind == LINE_CLEARED) answer = S("stay");
        if (str_ieq(answer, S("wait")) || str_ieq(answer, S("w"))) return wait_for(ch, a, &running);
        if (str_ieq(answer, S("stop"))) return; // the end of the engine stops them
        if (str_ieq(answer, S("stay"))) {
            ch->quit = false;
            return;
        }
    }
}

static void quit(chat *ch, arena *a, str rest, buf *out) {
    (void)rest, (void)out;
    chat_leave(ch, a);
}

// --- Dispatch ------------------------------------------------------------------------------------

void chat_command(chat *ch, arena *a, str line) {
    str name, rest;
    strs names = {0};
    buf out = buf_new(a, 0);
    str_cut(str_trim(str_sub(line, 1, line.n)), ' ', &name, &rest);
    rest = str_trim(rest);
    for (size_t i = 0; i < COMMANDS; i++) {
        if (str_eq(str_z(commands[i].name), name)) {
            commands[i].run(ch, a, rest, &out);
            out_buf(&out);
            fflush(stdout);
            return;
        }
        vec_push(a, &names, str_z(commands[i].name));
    }
    str near = nearest_name(name, names.p, names.n);
    if (near.n) {
        say(ch->c, "there is no command /" STR_FMT "; did you mean /" STR_FMT "?", STR_ARG(name),
            STR_ARG(near));
    } else {
        say(ch->c, "there is no command /" STR_FMT "; /help lists them", STR_ARG(name));
    }
}

// cli: tasks: what was delegated in this workspace, and what it does now; rm and prune remove what has ended.
#include "cli/delegations.h"

enum { DOING_SHOWN = 80, TASK_SHOWN = 60 }; // characters

static void time_json(jw *w, arena *a, str key, int64_t ms) {
    jw_kstr(w, key, ms ? time_utc(a, ms) : S(""));
}

void delegation_json(jw *w, const delegation_row *r, arena *a) {
    jw_kstr(w, S("id"), r->id);
    jw_kstr(w, S("agent"), r->agent);
    jw_kstr(w, S("task"), r->task);
    jw_kstr(w, S("description"), r->description);
    jw_kstr(w, S("model"), r->model);
    jw_kstr(w, S("status"), str_z(deleg_status_name(r->status)));
    jw_kstr(w, S("end_reason"), r->end_reason);
    time_json(w, a, S("created"), r->created_ms);
    time_json(w, a, S("started"), r->started_ms);
    time_json(w, a, S("ended"), r->ended_ms);
    jw_kbool(w, S("background"), r->background);
    jw_kbool(w, S("main"), r->main);
    jw_kstr(w, S("thread"), r->thread);
    jw_kstr(w, S("resumes"), r->resumes);
    jw_kstr(w, S("process"), r->run_id);
    time_json(w, a, S("delivered"), r->delivered_ms);
}

// --- What runs now -------------------------------------------------------------------------------

typedef struct {
    int64_t turns;
    str doing; // the last call that it made, or that it waits for the model
} live;

static int live_facts(cli *c, const delegation_row *r, live *ret) {
    activity_row turn = {0}, tool = {0};
    json *item;
    dep_err err;
    *ret = (live){.doing = r->status == DELEG_QUEUED ? S("waits for its turn") : S("has just begun")};
    if (store_activity_last(c->a, c->w->store, r->id, S("turn"), &turn, &err) != DEP_OK ||
        store_activity_last(c->a, c->w->store, r->id, S("tool"), &tool, &err) != DEP_OK)
        return fail(c, &err);
    if (turn.seq && json_parse(c->a, turn.data, 0, &item, NULL) == DEP_OK) {
        ret->turns = (int64_t)json_num(item, S("n"), 0);
        ret->doing = S("waits for the model");
    }
    if (tool.seq > turn.seq && json_parse(c->a, tool.data, 0, &item, NULL) == DEP_OK) {
        const json *args = json_get(item, S("arguments"));
        ret->doing = str_fmt(c->a, STR_FMT " " STR_FMT, STR_ARG(json_str(item, S("name"), (str){0})),
                             STR_ARG(utf8_cut_chars(args ? args->raw : S(""), DOING_SHOWN)));
    }
    return EXIT_FINE;
}

static void add_age(buf *b, int64_t ms) {
    int64_t s = ms > 0 ? ms / 1000 : 0;
    if (s < 120) {
        buf_addf(b, "%lld s", (long long)s);
    } else if (s < 7200) {
        buf_addf(b, "%lld min", (long long)(s / 60));
    } else {
        buf_addf(b, "%lld h", (long long)(s / 3600));
    }
}

static void live_text(cli *c, buf *b, const delegation_row *r, const live *l) {
    int64_t now = c->in->clock->now_ms(c->in->clock->ctx);
    buf_fill(b, ' ', SHORT_ID + 2);
    buf_addf(b, "turn %lld, ", (long long)l->turns);
    brief(b, l->doing, DOING_SHOWN);
    text(b, r->started_ms ? " · runs for " : " · waits for ");
    add_age(b, now - (r->started_ms ? r->started_ms : r->created_ms));
    if (r->background) text(b, " · in the background");
    if (r->run_id.n) {
        text(b, " · process "), safe(b, str_sub(r->run_id, 0, SHORT_ID));
    } else {
        text(b, " · no process has it yet");
    }
    text(b, "\n");
}

// --- The list ------------------------------------------------------------------------------------

static int row_text(cli *c, buf *b, const delegation_row *r) {
    buf_addf(b, "%.*s  ", SHORT_ID, r->id.p);
    cell(b, str_z(deleg_status_name(r->status)), 12);
    cell(b, r->agent, 20);
    text(b, " ");
    safe(b, str_sub(time_local(c->a, r->created_ms), 0, 16));
    text(b, "  ");
    str label = r->description.n ? str_fmt(c->a, STR_FMT ": ", STR_ARG(r->description)) : (str){0};
    brief(b, str_fmt(c->a, STR_FMT STR_FMT, STR_ARG(label), STR_ARG(r->task)), TASK_SHOWN);
    text(b, "\n");
    live l;
    if (deleg_ended(r->status)) return EXIT_FINE;
    int code = live_facts(c, r, &l);
    if (!code) live_text(c, b, r, &l);
    return code;
}

static int row_json(cli *c, jw *w, const delegation_row *r) {
    live l;
    int code = EXIT_FINE;
    jw_obj(w);
    delegation_json(w, r, c->a);
    if (!deleg_ended(r->status) && !(code = live_facts(c, r, &l))) {
        jw_kint(w, S("turns"), l.turns);
        jw_kstr(w, S("doing"), l.doing);
    }
    jw_end_obj(w);
    return code;
}

// The conversation that --thread names; empty: none is named.
static int find_thread(cli *c, str *ret) {
    str given = opt_get(c, "thread", (str){0});
    *ret = opt_has(c, "all") ? S("*") : (str){0};
    if (!opt_has(c, "thread") || !c->w->store) return EXIT_FINE;
    thread_rows threads = {0};
    dep_err err;
    if (!given.n) return usage_error(c, "--thread needs the id of a conversation");
    if (store_thread_list(c->a, c->w->store, given, 2, &threads, &err) != DEP_OK) return fail(c, &err);
    if (!threads.n)
        return fail_with(c, EXIT_ERRORS, "there is no conversation " STR_FMT " in this workspace",
                         STR_ARG(given));
    if (threads.n > 1)
        return fail_with(c, EXIT_ERRORS, STR_FMT " stands for several conversations: " STR_FMT ", " STR_FMT,
                         STR_ARG(given), STR_ARG(threads.p[0].id), STR_ARG(threads.p[1].id));
    *ret = threads.p[0].id;
    return EXIT_FINE;
}

static int list(cli *c) {
    int64_t limit;
    bool writable;
    dep_err err;
    str thread;
    size_t removed;
    delegation_rows rows = {0};
    if (!opt_int(c, "limit", 20, 1, 10000, &limit)) return EXIT_USAGE;
    int code = state_open(c, &writable);
    if (code || (code = find_thread(c, &thread))) return code;
    if (writable && delegate_retain(c->w->store, c->w, false, &removed, &err) != DEP_OK)
        say(c, "old delegations were not removed: %s", err.msg);
    if (c->w->store && store_delegation_list(c->a, c->w->store, thread, (size_t)limit, &rows, &err) != DEP_OK)
        return fail(c, &err);
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_arr(&w);
    for (vec_each(const delegation_row, r, &rows)) {
        code = c->json ? row_json(c, &w, r) : row_text(c, &b, r);
        if (code) return code;
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    if (!c->json && !rows.n) text(&b, "nothing was delegated in this workspace yet\n");
    out_buf(&b);
    return EXIT_FINE;
}

// --- rm, prune -----------------------------------------------------------------------------------

static int consent(cli *c, const delegation_rows *rows) {
    buf shown = buf_new(c->a, 0);
    if (opt_has(c, "yes")) return EXIT_FINE;
    for (vec_each(const delegation_row, r, rows)) {
        int code = row_text(c, &shown, r);
        if (code) return code;
    }
    int yes = ask(c, buf_str(&shown),
                  str_fmt(c->a, "remove %zu delegation%s with all that is kept of %s?", rows->n,
                          rows->n == 1 ? "" : "s", rows->n == 1 ? "it" : "them"));
    if (yes < 0) say(c, "there is no terminal to ask on; add --yes to remove them");
    return yes > 0 ? EXIT_FINE : EXIT_REFUSED;
}

static int remove_named(cli *c) {
    delegation_rows rows = {0};
    dep_err err;
    strs ids = {.p = c->args.p + 1, .n = c->args.n - 1};
    if (!ids.n) return usage_error(c, "tasks rm needs the ids of delegations that have ended");
    int code = state_open(c, NULL);
    if (code || (code = state_named(c, &ids, &rows))) return code;
    for (vec_each(const delegation_row, r, &rows))
        if (!deleg_ended(r->status))
            return fail_with(c, EXIT_ERRORS,
                             "%.*s has not ended (%s); nothing was removed. `deputy stop %.*s` ends it",
                             SHORT_ID, r->id.p, deleg_status_name(r->status), SHORT_ID, r->id.p);
    if ((code = consent(c, &rows))) return code;
    for (vec_each(const delegation_row, r, &rows)) {
        if (store_delegation_remove(c->w->store, r->id, &err) != DEP_OK) return fail(c, &err);
        say(c, "removed %.*s (" STR_FMT ")", SHORT_ID, r->id.p, STR_ARG(r->agent));
    }
    return EXIT_FINE;
}

static int prune(cli *c) {
    size_t removed;
    dep_err err;
    if (c->args.n > 1)
        return usage_error(c, "tasks prune takes nothing more; `retention` of the config says what goes");
    int code = state_open_writing(c);
    if (code) return code;
    const config_retention *keep = &c->w->config.retention;
    if (delegate_retain(c->w->store, c->w, true, &removed, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    if (c->json) {
        jw w = jw_new(&b);
        jw_obj(&w);
        jw_kint(&w, S("removed"), (int64_t)removed);
        jw_end_obj(&w);
        text(&b, "\n");
    } else {
        buf_addf(&b, "removed %zu delegation%s; kept are", removed, removed == 1 ? "" : "s");
        if (keep->days) buf_addf(&b, " the last %lld days", (long long)keep->days);
        if (keep->days && keep->count) text(&b, ",");
        if (keep->count) buf_addf(&b, " at most %lld", (long long)keep->count);
        text(&b, keep->days || keep->count ? "\n" : " all\n");
    }
    out_buf(&b);
    return EXIT_FINE;
}

int verb_tasks(cli *c) {
    if (!c->args.n) return list(c);
    if (str_eq(arg(c, 0), S("rm"))) return remove_named(c);
    if (str_eq(arg(c, 0), S("prune"))) return prune(c);
    return usage_error(c, "tasks takes rm or prune, not \"" STR_FMT "\"", STR_ARG(arg(c, 0)));
}

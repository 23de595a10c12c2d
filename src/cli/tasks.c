// cli: tasks and replay: what was delegated, and everything one delegation did.
#include "cli/cli_int.h"

static int open_store(cli *c) {
    dep_err err;
    int code = need_workspace(c, false);
    if (code) return code;
    size_t interrupted;
    // A run whose process died is marked when somebody looks; where the state cannot be written, it is only
    // shown.
    if (workspace_store(c->w, true, &err) != DEP_OK) return fail(c, &err);
    if (!c->w->store) return EXIT_FINE;
    store_close(c->w->store);
    c->w->store = NULL;
    if (workspace_store(c->w, false, &err) == DEP_OK) {
        if (store_recover(c->w->store, &interrupted, &err) != DEP_OK) say(c, "%s", err.msg);
        return EXIT_FINE;
    }
    // The notice says more than the error: what is not seen.
    dep_err why;
    if (workspace_store(c->w, true, &why) != DEP_OK) return fail(c, &why);
    str notice = c->w->store ? store_notice(c->w->store) : (str){0};
    say(c, "read only: " STR_FMT, STR_ARG(notice.n ? notice : str_z(err.msg)));
    return EXIT_FINE;
}

static void row_json(jw *w, const delegation_row *r, arena *a) {
    jw_kstr(w, S("id"), r->id);
    jw_kstr(w, S("agent"), r->agent);
    jw_kstr(w, S("task"), r->task);
    jw_kstr(w, S("description"), r->description);
    jw_kstr(w, S("model"), r->model);
    jw_kstr(w, S("status"), str_z(deleg_status_name(r->status)));
    jw_kstr(w, S("end_reason"), r->end_reason);
    jw_kstr(w, S("started"), r->started_ms ? time_utc(a, r->started_ms) : S(""));
    jw_kstr(w, S("ended"), r->ended_ms ? time_utc(a, r->ended_ms) : S(""));
}

int verb_tasks(cli *c) {
    int64_t limit;
    dep_err err;
    delegation_rows rows = {0};
    if (!opt_int(c, "limit", 20, 1, 10000, &limit)) return EXIT_USAGE;
    int code = open_store(c);
    if (code) return code;
    if (c->w->store &&
        store_delegation_list(c->a, c->w->store, (str){0}, (size_t)limit, &rows, &err) != DEP_OK)
        return fail(c, &err);
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_arr(&w);
    for (vec_each(const delegation_row, r, &rows)) {
        if (c->json) {
            jw_obj(&w);
            row_json(&w, r, c->a);
            jw_end_obj(&w);
            continue;
        }
        buf_addf(&b, "%.8s  ", r->id.p);
        cell(&b, str_z(deleg_status_name(r->status)), 12);
        cell(&b, r->agent, 20);
        text(&b, " ");
        safe(&b, str_sub(time_local(c->a, r->created_ms), 0, 16));
        text(&b, "  ");
        brief(&b, r->task, 60);
        text(&b, "\n");
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    if (!c->json && !rows.n) text(&b, "nothing was delegated in this workspace yet\n");
    out_buf(&b);
    return EXIT_FINE;
}

// --- replay --------------------------------------------------------------------------------------

static void add_block(buf *b, str s, const char *lead) {
    str line;
    while (s.n) {
        str_cut(s, '\n', &line, &s);
        text(b, lead);
        safe(b, line);
        text(b, "\n");
    }
}

static void item_text(cli *c, buf *b, const activity_row *row) {
    json *j;
    dep_err err;
    if (json_parse(c->a, row->data, 0, &j, &err) != DEP_OK) return;
    if (str_eq(row->kind, S("turn"))) {
        paint(b, c->color_out, "1", str_fmt(c->a, "turn %lld", (long long)json_num(j, S("n"), 0)));
        text(b, "\n");
    } else if (str_eq(row->kind, S("tool"))) {
        const json *args = json_get(j, S("arguments"));
        text(b, "→ ");
        paint(b, c->color_out, "36", json_str(j, S("name"), (str){0}));
        text(b, " ");
        if (args) safe(b, args->raw);
        text(b, json_bool(j, S("is_error"), false) ? "  (error)\n" : "\n");
        add_block(b, json_str(j, S("result"), (str){0}), "  │ ");
    } else if (str_eq(row->kind, S("status"))) {
        text(b, "status: ");
        safe(b, json_str(j, S("status"), (str){0}));
        if (json_str(j, S("end_reason"), (str){0}).n)
            text(b, ", "), safe(b, json_str(j, S("end_reason"), (str){0}));
        text(b, "\n");
    } else {
        add_block(b, json_str(j, S("text"), (str){0}), str_eq(row->kind, S("thinking")) ? "  ~ " : "");
    }
}

static void replay_json(cli *c, const delegation_row *r, const activity_rows *items) {
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    jw_obj(&w);
    row_json(&w, r, c->a);
    jw_kstr(&w, S("definition_hash"), r->definition_hash);
    jw_kstr(&w, S("definition"), r->definition);
    jw_key(&w, S("grant"));
    jw_raw(&w, r->grant.n ? r->grant : S("null"));
    jw_key(&w, S("report"));
    jw_raw(&w, r->report.n ? r->report : S("null"));
    jw_key(&w, S("activity"));
    jw_arr(&w);
    for (vec_each(const activity_row, it, items)) jw_raw(&w, it->data);
    jw_end_arr(&w);
    jw_end_obj(&w);
    buf_addc(&b, '\n');
    out_buf(&b);
}

int verb_replay(cli *c) {
    delegation_row r;
    activity_rows items = {0};
    dep_err err;
    int code = open_store(c);
    if (code) return code;
    if (!c->w->store) {
        say(c, "nothing was delegated in this workspace yet");
        return EXIT_ERRORS;
    }
    if (store_delegation_get(c->a, c->w->store, arg(c, 0), &r, &err) != DEP_OK) return fail(c, &err);
    if (store_activity_list(c->a, c->w->store, r.id, 0, SIZE_MAX, &items, &err) != DEP_OK)
        return fail(c, &err);
    if (c->json) {
        replay_json(c, &r, &items);
        return EXIT_FINE;
    }
    buf b = buf_new(c->a, 0);
    paint(&b, c->color_out, "1", r.agent);
    text(&b, "  "), safe(&b, r.id), text(&b, "  "), safe(&b, r.model);
    buf_addf(&b, "  %s", deleg_status_name(r.status));
    if (r.end_reason.n && r.status != DELEG_COMPLETED) text(&b, ": "), safe(&b, r.end_reason);
    text(&b, "\nbegun: "), safe(&b, time_local(c->a, r.created_ms));
    text(&b, "\ntask: ");
    term_add(&b, r.task, true);
    text(&b, "\n\n");
    for (vec_each(const activity_row, it, &items)) item_text(c, &b, it);
    json *report;
    str words = {0};
    if (r.report.n && json_parse(c->a, r.report, 0, &report, &err) == DEP_OK)
        words = json_str(report, S("report"), (str){0});
    if (words.n) {
        text(&b, "\nreport:\n");
        term_add(&b, words, true);
        if (!str_ends(words, S("\n"))) text(&b, "\n");
    }
    out_buf(&b);
    return EXIT_FINE;
}

// cli: replay: everything that one delegation did, with whole arguments and results. It may be long, so it is
// read and shown in pages.
#include "cli/delegations.h"

enum { REPLAY_PAGE = 32 }; // items held at once; the largest result has some hundred KiB

typedef struct {
    cli *c;
    const delegation_row *row;
    strs chain; // what it continues, newest first
    feed feed;
    buf *out; // of JSON
    jw w;
} replay;

// Each id, with its status, of what it continues.
static int read_chain(replay *r) {
    cli *c = r->c;
    str id = r->row->resumes;
    for (size_t n = 0; id.n && n < DELEGATE_CHAIN_MAX; n++) {
        arena *a = arena_new();
        delegation_row old;
        dep_err err;
        dep_status status = state_row(c, a, id, &old, &err);
        if (status == DEP_OK) vec_push(c->a, &r->chain, str_dup(c->a, old.id));
        id = status == DEP_OK ? str_dup(c->a, old.resumes) : (str){0};
        arena_free(a);
        if (status != DEP_OK && status != DEP_ERR_NOT_FOUND) return fail(c, &err);
    }
    return EXIT_FINE;
}

static int each_item(replay *r, void (*show)(replay *r, const activity_row *it)) {
    cli *c = r->c;
    int64_t seq = 0;
    for (size_t n = REPLAY_PAGE; n == REPLAY_PAGE;) {
        activity_rows items = {0};
        dep_err err;
        arena *a = arena_new();
        dep_status status = store_activity_list(a, c->w->store, r->row->id, seq, REPLAY_PAGE, &items, &err);
        for (vec_each(const activity_row, it, &items)) {
            show(r, it);
            seq = it->seq;
        }
        n = items.n;
        arena_free(a);
        if (status != DEP_OK) return fail(c, &err);
    }
    return EXIT_FINE;
}

// Results that were cut in the conversation, whole.
static int each_result(replay *r, void (*show)(replay *r, str name, str text)) {
    cli *c = r->c;
    dep_status status = DEP_OK;
    for (int64_t n = 1; status == DEP_OK; n++) {
        arena *a = arena_new();
        dep_err err;
        str words;
        status = store_result_get(a, c->w->store, r->row->id, n, &words, &err);
        if (status == DEP_OK)
            show(r, str_fmt(a, "result:%.*s-%lld", SHORT_ID, r->row->id.p, (long long)n), words);
        arena_free(a);
        if (status != DEP_OK && status != DEP_ERR_NOT_FOUND) return fail(c, &err);
    }
    return EXIT_FINE;
}

// --- For people ----------------------------------------------------------------------------------

static void head_text(replay *r, buf *b) {
    cli *c = r->c;
    const delegation_row *row = r->row;
    paint(b, c->color_out, "1", row->agent);
    text(b, "  "), safe(b, row->id), text(b, "  "), safe(b, row->model);
    buf_addf(b, "  %s", deleg_status_name(row->status));
    if (row->end_reason.n && row->status != DELEG_COMPLETED) text(b, ": "), safe(b, row->end_reason);
    text(b, "\nbegun: "), safe(b, time_local(c->a, row->created_ms));
    if (row->ended_ms) text(b, "\nended: "), safe(b, time_local(c->a, row->ended_ms));
    if (row->background) text(b, "\nin the background");
    if (row->thread.n) text(b, "\nconversation: "), safe(b, row->thread);
    if (r->chain.n) text(b, "\ncontinues: ");
    for (size_t i = 0; i < r->chain.n; i++)
        text(b, i ? ", " : ""), safe(b, str_sub(r->chain.p[i], 0, SHORT_ID));
    if (row->description.n) text(b, "\ndescription: "), safe(b, row->description);
    text(b, "\ntask: ");
    term_add(b, row->task, true);
    text(b, "\n\n");
}

static void item_text(replay *r, const activity_row *it) {
    feed_item(&r->feed, it, r->row->started_ms);
}

static void result_text(replay *r, str name, str words) {
    feed_end_line(&r->feed);
    feed_note(&r->feed, str_fmt(r->c->a, STR_FMT ", %zu bytes:", STR_ARG(name), words.n));
    feed_result(&r->feed, words);
}

static int show_text(replay *r) {
    cli *c = r->c;
    buf b = buf_new(c->a, 0);
    head_text(r, &b);
    out_buf(&b);
    r->feed = feed_new(c, stdout, c->color_out);
    r->feed.whole = true;
    int code = each_item(r, item_text);
    if (code || (code = each_result(r, result_text))) return code;
    feed_end_line(&r->feed);
    json *report;
    str words = {0};
    if (r->row->report.n && json_parse(c->a, r->row->report, 0, &report, NULL) == DEP_OK)
        words = json_str(report, S("report"), (str){0});
    buf_clear(&b);
    if (words.n) {
        text(&b, "\nreport:\n");
        term_add(&b, words, true);
        if (!str_ends(words, S("\n"))) text(&b, "\n");
    }
    out_buf(&b);
    return EXIT_FINE;
}

// --- As JSON -------------------------------------------------------------------------------------

static void write_out(replay *r) {
    out_buf(r->out);
    buf_clear(r->out);
}

static void item_json(replay *r, const activity_row *it) {
    jw_raw(&r->w, it->data);
    write_out(r);
}

static void result_json(replay *r, str name, str words) {
    jw_obj(&r->w);
    jw_kstr(&r->w, S("id"), name);
    jw_kstr(&r->w, S("text"), words);
    jw_end_obj(&r->w);
    write_out(r);
}

static int show_json(replay *r) {
    const delegation_row *row = r->row;
    buf b = buf_new(r->c->a, 0);
    r->out = &b;
    r->w = jw_new(&b);
    jw *w = &r->w;
    jw_obj(w);
    delegation_json(w, row, r->c->a);
    jw_kstr(w, S("definition_hash"), row->definition_hash);
    jw_kstr(w, S("definition"), row->definition);
    jw_key(w, S("grant")), jw_raw(w, row->grant.n ? row->grant : S("null"));
    jw_key(w, S("report")), jw_raw(w, row->report.n ? row->report : S("null"));
    jw_key(w, S("continues"));
    jw_arr(w);
    for (vec_each(const str, id, &r->chain)) jw_str(w, *id);
    jw_end_arr(w);
    jw_key(w, S("activity"));
    jw_arr(w);
    int code = each_item(r, item_json);
    jw_end_arr(w);
    jw_key(w, S("results"));
    jw_arr(w);
    if (!code) code = each_result(r, result_json);
    jw_end_arr(w);
    jw_end_obj(w);
    buf_addc(&b, '\n');
    write_out(r);
    return code;
}

int verb_replay(cli *c) {
    delegation_row row;
    dep_err err;
    int code = state_open(c, NULL);
    if (code) return code;
    if (!c->w->store) {
        say(c, "nothing was delegated in this workspace yet");
        return EXIT_ERRORS;
    }
    if (state_row(c, c->a, arg(c, 0), &row, &err) != DEP_OK) return fail(c, &err);
    replay r = {.c = c, .row = &row};
    if ((code = read_chain(&r))) return code;
    return c->json ? show_json(&r) : show_text(&r);
}

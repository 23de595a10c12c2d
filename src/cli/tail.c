// cli: tail: what delegations do, as they do it, whichever process runs them. Reads the activity from the
// store, from its beginning on; ends when they end.
#include "cli/delegations.h"

enum {
    TAIL_PAGE = 64,  // items read at a time
    TAIL_GRACE = 4,  // looks for the item of the end, which is stored a moment after it
    TAIL_MANY = 100, // followed at once
};

typedef struct {
    delegation_row row;
    int64_t seq; // of the last item that was shown
    feed feed;
    bool over, end_seen;
    int grace;
} tailed;
typedef VEC(tailed) all_tailed;

static bool is_end(const activity_row *it) {
    return str_eq(it->kind, S("status")) && str_find(it->data, S("\"end_reason\":")) != SIZE_MAX;
}

static void show_item(cli *c, tailed *t, const activity_row *it) {
    if (!c->json) {
        feed_item(&t->feed, it, t->row.started_ms ? t->row.started_ms : t->row.created_ms);
        return;
    }
    // The item as it is, and whose it is.
    out_exact(S("{\"delegation\":\""));
    out_exact(t->row.id);
    out_exact(S("\","));
    out_exact(str_sub(it->data, 1, it->data.n));
    out_exact(S("\n"));
}

// All that is there and was not shown yet.
static int show_new(cli *c, tailed *t) {
    for (size_t n = TAIL_PAGE; n == TAIL_PAGE && !signals_stop(NULL);) {
        activity_rows items = {0};
        dep_err err;
        arena *a = arena_new();
        dep_status status = store_activity_list(a, c->w->store, t->row.id, t->seq, TAIL_PAGE, &items, &err);
        for (vec_each(const activity_row, it, &items)) {
            show_item(c, t, it);
            t->end_seen = is_end(it);
            t->seq = it->seq;
        }
        n = items.n;
        arena_free(a);
        if (status != DEP_OK) return fail(c, &err);
    }
    fflush(stdout);
    return EXIT_FINE;
}

static void show_end(tailed *t, const delegation_row *now) {
    arena *a = arena_new();
    str reason = now->status == DELEG_COMPLETED
                     ? S("")
                     : str_fmt(a, ": " STR_FMT, STR_ARG(now->end_reason.n ? now->end_reason : S("removed")));
    feed_end_line(&t->feed);
    feed_note(&t->feed, str_fmt(a, "%s" STR_FMT " · deputy replay %.*s", deleg_status_name(now->status),
                                STR_ARG(reason), SHORT_ID, t->row.id.p));
    arena_free(a);
}

// The row first: what was stored before it ended is all there then.
static int look(cli *c, tailed *t) {
    dep_err err;
    arena *a = arena_new();
    delegation_row now = {.status = DELEG_INTERRUPTED};
    dep_status status = state_row(c, a, t->row.id, &now, &err);
    bool ended = deleg_ended(now.status);
    if (!t->row.started_ms) t->row.started_ms = now.started_ms;
    int code = status == DEP_OK ? show_new(c, t) : status == DEP_ERR_NOT_FOUND ? EXIT_FINE : fail(c, &err);
    if (!code && ended && (!c->json || t->end_seen || ++t->grace > TAIL_GRACE)) {
        if (!c->json) show_end(t, &now);
        t->over = true;
    }
    arena_free(a);
    return code;
}

static int follow(cli *c, all_tailed *all) {
    int64_t recovered = mono_now(c);
    for (;;) {
        size_t open = 0;
        state_look(c, &recovered);
        for (vec_each(tailed, t, all)) {
            int code = t->over ? EXIT_FINE : look(c, t);
            if (code) return code;
            open += !t->over;
        }
        // A reader that has gone, as of `tail | head`, is told by cli_main.
        if (!open || ferror(stdout)) break;
        if (!signals_stop(NULL)) signals_pause(LOOK_MS);
        if (signals_stop(NULL)) break;
    }
    for (vec_each(tailed, t, all))
        if (!t->over && !c->json) feed_end_line(&t->feed);
    return signals_stop(NULL) ? EXIT_INTERRUPTED : EXIT_FINE;
}

int verb_tail(cli *c) {
    delegation_rows rows = {0};
    all_tailed all = {0};
    bool writable;
    int code = state_open(c, &writable);
    if (code) return code;
    if ((code = c->args.n ? state_named(c, &c->args, &rows) : state_unfinished(c, &rows))) return code;
    if (!rows.n)
        return fail_with(c, EXIT_ERRORS,
                         "no delegation is running; `deputy replay ID` shows one that has ended");
    if (rows.n > TAIL_MANY)
        return fail_with(c, EXIT_ERRORS, "%zu delegations run, at most %d are followed at once; name one",
                         rows.n, TAIL_MANY);
    for (vec_each(const delegation_row, r, &rows)) {
        if (!writable && !deleg_ended(r->status))
            return fail_with(c, EXIT_ERRORS, "what runs cannot be followed: it would not be seen");
        tailed t = {.row = *r, .feed = feed_new(c, stdout, c->color_out)};
        if (rows.n > 1) t.feed.label = str_sub(r->id, 0, SHORT_ID);
        vec_push(c->a, &all, t);
    }
    signals_catch();
    return follow(c, &all);
}

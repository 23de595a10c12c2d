// cli: wait and stop: delegations of any process, seen through the store. A wait never hangs on a process
// that died: what it left is marked while the wait goes on.
#include "cli/delegations.h"

enum {
    WAIT_SECONDS_MAX = 365 * 24 * 3600,
    STOP_WAIT_MS = 5000, // until a stopped delegation must have ended, or the answer is "not yet"
    NAMES_SHOWN = 10,
};

// Reads those anew that had not ended. One that was removed meanwhile has ended without a report.
static int look(cli *c, delegation_rows *rows, size_t *ended) {
    *ended = 0;
    for (vec_each(delegation_row, r, rows)) {
        dep_err err;
        arena *a = arena_new();
        delegation_row now = {.status = DELEG_INTERRUPTED};
        dep_status status = deleg_ended(r->status) ? DEP_OK : state_row(c, a, r->id, &now, &err);
        bool over = deleg_ended(r->status) || deleg_ended(now.status);
        arena_free(a);
        if (status == DEP_ERR_NOT_FOUND) {
            r->status = DELEG_INTERRUPTED;
            r->end_reason = S("removed");
        } else if (status != DEP_OK) {
            return fail(c, &err);
        }
        if (!over) continue;
        *ended += 1;
        if (!deleg_ended(r->status) && state_row(c, c->a, r->id, r, &err) != DEP_OK) return fail(c, &err);
    }
    return EXIT_FINE;
}

// EXIT_FINE: as many as are wanted have ended. EXIT_ERRORS: the time is over (*late). EXIT_INTERRUPTED.
static int wait_for(cli *c, delegation_rows *rows, bool any, int64_t timeout_ms, bool *late) {
    int64_t until = mono_now(c) + timeout_ms, recovered = mono_now(c);
    for (;;) {
        size_t ended;
        state_look(c, &recovered);
        int code = look(c, rows, &ended);
        if (code || ended == rows->n || (any && ended)) return code;
        if (signals_stop(NULL)) return EXIT_INTERRUPTED;
        int64_t left = until - mono_now(c);
        if (timeout_ms >= 0 && left <= 0) {
            *late = true;
            return EXIT_ERRORS;
        }
        signals_pause(timeout_ms >= 0 && left < LOOK_MS ? (int)left : LOOK_MS);
    }
}

static size_t count_ended(const delegation_rows *rows) {
    size_t n = 0;
    for (vec_each(const delegation_row, r, rows)) n += deleg_ended(r->status);
    return n;
}

static str names_of_open(cli *c, const delegation_rows *rows) {
    buf b = buf_new(c->a, 0);
    size_t n = 0;
    for (vec_each(const delegation_row, r, rows)) {
        if (deleg_ended(r->status)) continue;
        if (n < NAMES_SHOWN)
            buf_addf(&b, "%s%.*s (" STR_FMT ")", n ? ", " : "", SHORT_ID, r->id.p, STR_ARG(r->agent));
        n++;
    }
    if (n > NAMES_SHOWN) buf_addf(&b, " and %zu more", n - NAMES_SHOWN);
    return buf_str(&b);
}

static int show_reports(cli *c, const delegation_rows *rows) {
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    size_t ended = count_ended(rows), shown = 0;
    int code = EXIT_FINE;
    if (c->json) jw_arr(&w);
    for (vec_each(const delegation_row, r, rows)) {
        if (!deleg_ended(r->status)) continue;
        if (r->status != DELEG_COMPLETED) code = EXIT_ERRORS;
        if (!r->report.n) {
            say(c, "%.*s was removed meanwhile", SHORT_ID, r->id.p);
        } else if (c->json) {
            jw_raw(&w, r->report);
        } else {
            if (shown++) out_exact(S("\n"));
            report_print(c, r->report, false, ended > 1);
        }
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    out_buf(&b);
    for (vec_each(const delegation_row, r, rows))
        if (r->report.n) report_delivered(c, r);
    return code;
}

// The given ones; without any, those that have not ended. A turn of a conversation is waited for by the
// person who leads it, unless it was sent to the background.
static int rows_to_wait_for(cli *c, delegation_rows *ret) {
    if (c->args.n) return state_named(c, &c->args, ret);
    delegation_rows all = {0};
    int code = state_unfinished(c, &all);
    for (vec_each(const delegation_row, r, &all))
        if (!r->main || r->background) vec_push(c->a, ret, *r);
    return code;
}

int verb_wait(cli *c) {
    int64_t seconds;
    bool writable, late = false;
    delegation_rows rows = {0};
    if (!opt_int(c, "timeout", -1, 0, WAIT_SECONDS_MAX, &seconds)) return EXIT_USAGE;
    int code = state_open(c, &writable);
    if (code || (code = rows_to_wait_for(c, &rows))) return code;
    if (!rows.n) say(c, "no delegation is running");
    if (!writable && count_ended(&rows) < rows.n)
        return fail_with(c, EXIT_ERRORS, "what runs cannot be waited for: its end would not be seen");
    signals_catch();
    code = wait_for(c, &rows, opt_has(c, "any"), seconds < 0 ? -1 : seconds * 1000, &late);
    if (code && !late && code != EXIT_INTERRUPTED) return code;
    int reports = show_reports(c, &rows);
    str open = names_of_open(c, &rows);
    if (late)
        say(c, "still running after %lld s: " STR_FMT, (long long)seconds, STR_ARG(open));
    else if (code)
        say(c, "the wait was stopped; these go on: " STR_FMT, STR_ARG(open));
    return code ? code : reports;
}

// --- stop ----------------------------------------------------------------------------------------

static int tell(cli *c, const delegation_rows *rows) {
    dep_err err;
    for (vec_each(const delegation_row, r, rows)) {
        if (deleg_ended(r->status)) continue;
        dep_status status = store_command_add(c->w->store, r->id, S("stop"), &err);
        // It may have ended a moment ago; that is seen next.
        if (status != DEP_OK && status != DEP_ERR_INVALID && status != DEP_ERR_NOT_FOUND)
            return fail(c, &err);
    }
    return EXIT_FINE;
}

static void show_stopped(cli *c, const delegation_rows *rows, const bool *before) {
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_arr(&w);
    for (size_t i = 0; i < rows->n; i++) {
        const delegation_row *r = &rows->p[i];
        bool ended = deleg_ended(r->status);
        if (c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("id"), r->id);
            jw_kstr(&w, S("agent"), r->agent);
            jw_kstr(&w, S("status"), str_z(deleg_status_name(r->status)));
            jw_kstr(&w, S("end_reason"), r->end_reason);
            jw_kbool(&w, S("ended"), ended);
            jw_kbool(&w, S("ended_before"), before[i]);
            jw_end_obj(&w);
            continue;
        }
        buf_addf(&b, "%.*s  ", SHORT_ID, r->id.p);
        safe(&b, r->agent);
        buf_addf(&b, "  %s%s", before[i] ? "had ended already: " : "", deleg_status_name(r->status));
        if (!ended) text(&b, ": it was told to stop and has not ended yet");
        if (ended && !before[i]) buf_addf(&b, " · deputy replay %.*s", SHORT_ID, r->id.p);
        text(&b, "\n");
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    out_buf(&b);
}

int verb_stop(cli *c) {
    delegation_rows rows = {0};
    bool late = false, all = opt_has(c, "all");
    if (all == (c->args.n > 0))
        return usage_error(c, "name the delegations to stop, or --all%s", all ? ", not both" : "");
    int code = state_open(c, NULL);
    if (code) return code;
    if ((code = all ? state_unfinished(c, &rows) : state_named(c, &c->args, &rows))) return code;
    if (!rows.n && !c->json) say(c, "no delegation is running");
    bool *before = NEW_N(c->a, bool, rows.n + 1);
    for (size_t i = 0; i < rows.n; i++) before[i] = deleg_ended(rows.p[i].status);
    if ((code = tell(c, &rows))) return code;
    signals_catch();
    code = wait_for(c, &rows, false, STOP_WAIT_MS, &late);
    if (code && !late && code != EXIT_INTERRUPTED) return code;
    show_stopped(c, &rows, before);
    return code;
}

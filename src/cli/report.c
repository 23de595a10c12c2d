// cli: a report object, for people. The same lines whether the delegation ran here, in another process or
// long ago.
#include "cli/delegations.h"

static void add_usage(buf *b, const json *rep) {
    const json *u = json_get(rep, S("usage"));
    double in = json_num(u, S("input_tokens"), 0) + json_num(u, S("cache_read_tokens"), 0) +
                json_num(u, S("cache_write_tokens"), 0);
    double out = json_num(u, S("output_tokens"), 0);
    const json *cost = json_get(rep, S("cost"));
    if (in > 0 || out > 0) buf_addf(b, ", %.0f tokens in, %.0f out", in, out);
    if (cost && cost->kind == JSON_NUMBER && cost->num > 0) text(b, ", cost "), safe(b, cost->raw);
}

static void add_facts(buf *b, const json *rep, str id) {
    int64_t turns = (int64_t)json_num(rep, S("turns"), 0), calls = (int64_t)json_num(rep, S("tool_calls"), 0);
    str status = json_str(rep, S("status"), (str){0});
    bool fine = str_eq(status, S("completed"));
    safe(b, status);
    text(b, fine ? " · " : ": ");
    if (!fine) safe(b, json_str(rep, S("end_reason"), (str){0})), text(b, "\n");
    buf_addf(b, "%lld turn%s, %lld tool call%s", (long long)turns, turns == 1 ? "" : "s", (long long)calls,
             calls == 1 ? "" : "s");
    add_usage(b, rep);
    text(b, " · deputy replay "), safe(b, id), text(b, "\n");
}

static void add_notes(buf *b, const json *rep, str id) {
    const json *list = json_get(rep, S("warnings"));
    for (const json *w = list ? list->child : NULL; w; w = w->next)
        text(b, "note: "), safe(b, w->s), text(b, "\n");
    list = json_get(rep, S("memory_writes"));
    for (const json *m = list ? list->child : NULL; m; m = m->next) {
        text(b, "memory: "), safe(b, json_str(m, S("file"), (str){0}));
        text(b, ": "), safe(b, json_str(m, S("excerpt"), (str){0})), text(b, "\n");
    }
    if (str_eq(json_str(rep, S("status"), (str){0}), S("stopped")))
        text(b, "stopped; what it had is kept: deputy replay "), safe(b, id), text(b, "\n");
}

void report_print(cli *c, str report, bool streamed, bool heading) {
    arena *a = arena_new();
    json *rep = NULL;
    if (json_parse(a, report, 0, &rep, NULL) != DEP_OK) rep = NULL;
    buf b = buf_new(a, 0);
    str id = str_sub(json_str(rep, S("id"), (str){0}), 0, SHORT_ID);
    str words = json_str(rep, S("report"), (str){0});
    if (heading) {
        paint(&b, c->color_out, "1", json_str(rep, S("agent"), (str){0}));
        text(&b, "  "), safe(&b, id), text(&b, "\n");
    }
    if (!streamed && words.n) {
        term_add(&b, words, true);
        if (!str_ends(words, S("\n"))) text(&b, "\n");
    }
    out_buf(&b);
    buf_clear(&b);
    add_facts(&b, rep, id);
    add_notes(&b, rep, id);
    str s = buf_str(&b);
    fflush(stdout);
    fwrite(s.p, 1, s.n, stderr);
    arena_free(a);
}

void report_delivered(cli *c, const delegation_row *row) {
    dep_err err;
    if ((row->thread.n && !row->main) || row->delivered_ms || !deleg_ended(row->status)) return;
    // What was not printed has reached nobody.
    if (fflush(stdout) != 0 || ferror(stdout)) return;
    if (store_delivered(c->w->store, row->id, &err) != DEP_OK)
        say(c, "%.8s is not marked as read: %s", row->id.p, err.msg);
}

int report_exit(deleg_status status) {
    return status == DELEG_COMPLETED ? EXIT_FINE : EXIT_ERRORS;
}

// delegate: activity items. Streamed text is gathered into items of at most DELEGATE_BATCH_MS; items are
// written in batches, a status at once. After a crash at most the last unwritten batch is missing. Secrets
// are taken out before anything is stored or shown.
#include "delegate/delegate_int.h"

int64_t run_now(const run *r) {
    return r->w->clock->now_ms(r->w->clock->ctx);
}

str run_redact(run *r, arena *a, str text) {
    return r->secrets.n ? secret_redact(a, text, r->secrets.p, r->secrets.n) : text;
}

static void write_batch(run *r, bool sync) {
    activity *act = &r->act;
    if (act->items.n) {
        dep_err err;
        if (store_activity_add(r->w->store, r->id, act->items.p, act->items.n, sync, &err) != DEP_OK &&
            act->fault.status == DEP_OK)
            act->fault = err;
    }
    act->items.n = act->items.cap = 0;
    act->items.p = NULL;
    arena_reset(act->a);
    act->text = buf_new(act->a, 0);
    act->thinking = buf_new(act->a, 0);
    act->last_write_ms = run_now(r);
}

static void push(run *r, const char *kind, str item) {
    item = run_redact(r, r->act.a, item);
    vec_push(r->act.a, &r->act.items,
             ((activity_row){.at_ms = run_now(r), .kind = str_z(kind), .data = item}));
    if (r->sink->item) r->sink->item(r->sink->ctx, str_z(kind), item);
}

static buf *item_begin(run *r, jw *w, const char *kind) {
    buf *out = NEW(r->act.a, buf);
    *out = buf_new(r->act.a, 0);
    *w = jw_new(out);
    jw_obj(w);
    jw_kstr(w, S("kind"), str_z(kind));
    jw_kstr(w, S("at"), time_utc(r->act.a, run_now(r)));
    return out;
}

static void text_item(run *r, buf *from, const char *kind) {
    if (!from->n) return;
    jw w;
    str text = run_redact(r, r->act.a, buf_str(from));
    buf *out = item_begin(r, &w, kind);
    jw_kstr(&w, S("text"), text);
    jw_end_obj(&w);
    push(r, kind, buf_str(out));
    buf_clear(from);
}

// What streams, without secrets, also where one is split over two pieces: what may be the start of one is
// held back until more comes, or until the stream ends.
static str safe_part(run *r, redactor *live, str delta, bool last) {
    if (!live) return delta;
    buf safe = buf_new(r->act.a, 0);
    redact_feed(live, delta, &safe);
    if (last) redact_end(live, &safe);
    return buf_str(&safe);
}

static void take_text(run *r, str delta, bool last) {
    delta = safe_part(r, r->live, delta, last);
    if (!delta.n) return;
    buf_add(&r->act.text, delta);
    if (r->sink->text) r->sink->text(r->sink->ctx, delta);
}

static void take_thinking(run *r, str delta, bool last) {
    buf_add(&r->act.thinking, safe_part(r, r->live_thinking, delta, last));
}

static void gather(run *r) {
    text_item(r, &r->act.thinking, "thinking");
    text_item(r, &r->act.text, "text");
}

static void maybe_write(run *r) {
    if (run_now(r) - r->act.last_write_ms < DELEGATE_BATCH_MS && r->act.items.n < DELEGATE_BATCH_ITEMS)
        return;
    gather(r);
    write_batch(r, false);
}

void activity_text(run *r, str delta) {
    take_text(r, delta, false);
    maybe_write(r);
}

void activity_thinking(run *r, str delta) {
    take_thinking(r, delta, false);
    maybe_write(r);
}

void activity_turn(run *r, int64_t n) {
    gather(r);
    jw w;
    buf *out = item_begin(r, &w, "turn");
    jw_kint(&w, S("n"), n);
    jw_end_obj(&w);
    push(r, "turn", buf_str(out));
    if (r->sink->turn) r->sink->turn(r->sink->ctx, n);
    maybe_write(r);
}

void activity_tool(run *r, const model_block *call, str result, bool is_error, int64_t ms) {
    gather(r);
    jw w;
    buf *out = item_begin(r, &w, "tool");
    jw_kstr(&w, S("id"), call->id);
    jw_kstr(&w, S("name"), call->name);
    jw_key(&w, S("arguments"));
    if (call->bad_input) {
        jw_str(&w, call->input);
    } else {
        jw_raw(&w, call->input.n ? call->input : S("{}"));
    }
    jw_kstr(&w, S("result"), result);
    jw_kbool(&w, S("is_error"), is_error);
    jw_kint(&w, S("ms"), ms);
    jw_end_obj(&w);
    push(r, "tool", buf_str(out));
    maybe_write(r);
}

void activity_status(run *r, deleg_status status, str end_reason) {
    gather(r);
    jw w;
    buf *out = item_begin(r, &w, "status");
    jw_kstr(&w, S("status"), str_z(deleg_status_name(status)));
    if (end_reason.n) jw_kstr(&w, S("end_reason"), end_reason);
    jw_kint(&w, S("turns"), r->report.turns);
    jw_kint(&w, S("tool_calls"), r->report.tool_calls);
    jw_end_obj(&w);
    push(r, "status", buf_str(out));
    write_batch(r, true);
}

void activity_flush(run *r, bool sync) {
    take_thinking(r, (str){0}, true);
    take_text(r, (str){0}, true);
    gather(r);
    write_batch(r, sync);
}

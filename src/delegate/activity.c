// delegate: activity items. Streamed text is gathered into items of at most DELEGATE_BATCH_MS; items are
// written in batches, a status at once. After a crash at most the last unwritten batch is missing. A batch
// that cannot be written now is held and grows. Secrets are taken out before anything is stored or shown.
#include "delegate/delegate_int.h"

enum { HELD_MAX = 16 << 20 }; // bytes of a batch that could not be written

int64_t run_now(const run *r) {
    return r->w->clock->now_ms(r->w->clock->ctx);
}

str run_redact(run *r, arena *a, str text) {
    if (!r->secrets.n) return text;
    if (!r->whole) r->whole = redact_new(r->a, r->secrets.p, r->secrets.n);
    return redact_text(r->whole, a, text);
}

static void forget_batch(activity *act) {
    act->items.n = act->items.cap = 0;
    act->items.p = NULL;
    act->messages = (message_rows){0};
    act->delivered = (strs){0};
    arena_reset(act->a);
    act->text = buf_new(act->a, 0);
    act->thinking = buf_new(act->a, 0);
}

typedef struct {
    run *r;
    store_op *first, *last;
    void *ctx;
} batch;

static dep_status write_batch(store *s, void *p, dep_err *err) {
    const batch *b = p;
    activity *act = &b->r->act;
    if (b->first) TRY(b->first(s, b->ctx, err));
    if (act->items.n) TRY(store_activity_add(s, b->r->id, act->items.p, act->items.n, false, err));
    // Reports are delivered with the message that carries them, or not at all.
    if (act->messages.n)
        TRY(store_message_add(s, b->r->id, act->messages.p, act->messages.n, act->delivered.p,
                              act->delivered.n, false, err));
    return b->last ? b->last(s, b->ctx, err) : DEP_OK;
}

dep_status activity_store(run *r, store_mode mode, store_op *first, store_op *last, void *ctx, dep_err *err) {
    batch b = {.r = r, .first = first, .last = last, .ctx = ctx};
    TRY(store_do(r->e->store, mode, write_batch, &b, err));
    forget_batch(&r->act);
    r->act.held = false;
    r->act.last_write_ms = run_mono(r);
    return DEP_OK;
}

// What cannot be written is tried again with what comes; when that is too much it is gone, and the report
// says so.
static void write_now(run *r) {
    activity *act = &r->act;
    dep_err err;
    if ((act->items.n || act->messages.n) &&
        activity_store(r, STORE_WRITE, NULL, NULL, NULL, &err) != DEP_OK) {
        act->held = true;
        if (arena_used(act->a) > HELD_MAX) activity_forget(r, &err);
    }
    act->last_write_ms = run_mono(r);
}

static void free_arena(void *p) {
    arena_free(p);
}

void activity_begin(run *r) {
    r->act.a = arena_new();
    arena_defer(r->a, free_arena, r->act.a);
    forget_batch(&r->act);
    r->act.last_write_ms = run_mono(r);
}

static str keep(run *r, const char *kind, str item) {
    item = run_redact(r, r->act.a, item);
    vec_push(r->act.a, &r->act.items,
             ((activity_row){.at_ms = run_now(r), .kind = str_z(kind), .data = item}));
    return item;
}

void activity_tell(run *r, const char *kind, str item) {
    if (r->sink->item) r->sink->item(r->sink->ctx, str_z(kind), item);
    const engine_sink *all = &r->e->sink;
    if (all->item && r->task && r->task->own_thread)
        all->item(all->ctx, r->id, r->report.agent, str_z(kind), item);
}

static void push(run *r, const char *kind, str item) {
    activity_tell(r, kind, keep(r, kind, item));
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
    bool full = r->act.items.n >= DELEGATE_BATCH_ITEMS && !r->act.held;
    if (run_mono(r) - r->act.last_write_ms < DELEGATE_BATCH_MS && !full) return;
    gather(r);
    write_now(r);
}

void activity_tick(run *r) {
    if (r->act.items.n || r->act.messages.n || r->act.text.n || r->act.thinking.n) maybe_write(r);
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

void activity_context(run *r, const char *event, str detail) {
    gather(r);
    jw w;
    buf *out = item_begin(r, &w, "context");
    jw_kstr(&w, S("event"), str_z(event));
    jw_kstr(&w, S("detail"), detail);
    jw_kint(&w, S("cache_breaks"), r->ctx.cache_breaks);
    jw_end_obj(&w);
    push(r, "context", buf_str(out));
}

str activity_status(run *r, deleg_status status, str end_reason) {
    gather(r);
    jw w;
    buf *out = item_begin(r, &w, "status");
    jw_kstr(&w, S("status"), str_z(deleg_status_name(status)));
    if (end_reason.n) jw_kstr(&w, S("end_reason"), end_reason);
    jw_kint(&w, S("turns"), r->report.turns);
    jw_kint(&w, S("tool_calls"), r->report.tool_calls);
    jw_end_obj(&w);
    return str_dup(r->a, keep(r, "status", buf_str(out)));
}

void activity_gather(run *r) {
    take_thinking(r, (str){0}, true);
    take_text(r, (str){0}, true);
    gather(r);
}

void activity_forget(run *r, const dep_err *why) {
    if (r->act.fault.status == DEP_OK) r->act.fault = *why;
    r->act.gap = r->act.gap || r->act.messages.n > 0;
    forget_batch(&r->act);
}

void activity_flush(run *r) {
    activity_gather(r);
    write_now(r);
}

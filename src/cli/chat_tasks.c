// cli: the delegations beside a conversation: the lines that they print while they run, what the model and
// the person are told when one ends in the background, /tasks and /stop.
#include "cli/chat_int.h"

enum {
    NEWS_MAX = 20,      // ended delegations that one message names
    TASKS_SHOWN = 20,   // of /tasks
    TASKS_LOOKED = 200, // rows of the thread that they are looked for in
};

// --- What they print: on their threads -----------------------------------------------------------

static void head(buf *b, str id, str agent) {
    text(b, "  ");
    safe(b, agent);
    buf_addf(b, " %.8s ", id.p);
}

// One that a turn waits for says here how it ended; a background one is announced by chat_task_ended.
static bool in_background(chat *ch, arena *a, str id) {
    engine_tasks tasks = {0};
    engine *e = atomic_load(&ch->running);
    if (e) engine_list(e, a, (str){0}, &tasks);
    for (vec_each(const engine_task, t, &tasks))
        if (str_eq(t->id, id)) return t->background;
    return false;
}

static bool status_line(chat *ch, buf *b, str id, const json *item) {
    str status = json_str(item, S("status"), (str){0}), why = json_str(item, S("end_reason"), (str){0});
    bool runs = str_eq(status, S("running")) || str_eq(status, S("queued"));
    if (!runs && in_background(ch, b->a, id)) return false;
    safe(b, status);
    if (!runs && !str_eq(status, S("completed")) && why.n) text(b, ": "), safe(b, why);
    return true;
}

void chat_task_item(void *p, str id, str agent, str kind, str item) {
    chat *ch = p;
    bool tool = str_eq(kind, S("tool")), status = str_eq(kind, S("status"));
    // While a person types, their screen is theirs.
    if (!ch->view.live || (!tool && !status) || chat_view_at_prompt(&ch->view)) return;
    arena *a = arena_new();
    json *j;
    buf b = buf_new(a, 0);
    head(&b, id, agent);
    bool shown = json_parse(a, item, 0, &j, NULL) == DEP_OK;
    if (shown && tool) {
        const json *args = json_get(j, S("arguments"));
        text(&b, "→ ");
        safe(&b, json_str(j, S("name"), (str){0}));
        text(&b, " ");
        chat_args(&b, args ? args->raw : (str){0});
        if (json_bool(j, S("is_error"), false)) text(&b, " (error)");
    } else if (shown) {
        shown = status_line(ch, &b, id, j);
    }
    if (shown) chat_view_line(&ch->view, true, buf_str(&b));
    arena_free(a);
}

void chat_task_ended(void *p, str id, str agent, deleg_status status) {
    chat *ch = p;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    text(&b, "ended in the background: ");
    safe(&b, agent);
    buf_addf(&b, " %.8s %s", id.p, deleg_status_name(status));
    if (!atomic_load(&ch->leaving)) text(&b, "; the next message tells the main agent");
    chat_view_line(&ch->view, false, buf_str(&b));
    arena_free(a);
}

// --- What the model is told ----------------------------------------------------------------------

typedef struct {
    arena *a;
    str thread;
    delegation_rows rows;
} rows_query;

static dep_status list_undelivered(store *s, void *p, dep_err *err) {
    rows_query *q = p;
    return store_undelivered(q->a, s, q->thread, &q->rows, err);
}

static dep_status list_rows(store *s, void *p, dep_err *err) {
    rows_query *q = p;
    return store_delegation_list(q->a, s, q->thread, TASKS_LOOKED, &q->rows, err);
}

static bool among(const strs *ids, str id) {
    for (vec_each(const str, s, ids))
        if (str_eq(*s, id)) return true;
    return false;
}

// A name is another one's words (rule B22); everything else in these lines is Deputy's.
str chat_with_news(chat *ch, arena *a, str message, strs *told) {
    rows_query q = {.a = a, .thread = ch->thread};
    size_t fresh = 0;
    if (!ch->last.n || store_do(engine_store(ch->e), STORE_READ, list_undelivered, &q, NULL) != DEP_OK)
        return message;
    buf b = buf_new(a, 0);
    for (vec_each(const delegation_row, r, &q.rows)) {
        if (among(&ch->told, r->id)) continue;
        vec_push(a, told, r->id);
        if (fresh++ >= NEWS_MAX) continue;
        buf_addf(&b, "[ended%s: %.12s (", r->background ? " in the background" : " and not read yet",
                 r->id.p);
        foreign_add(&b, r->agent, FOREIGN_LINE, DEF_NAME_BYTES);
        buf_addf(&b, ") %s; TaskWait gives the report]\n", deleg_status_name(r->status));
    }
    if (fresh > NEWS_MAX) buf_addf(&b, "[and %zu more: TaskList]\n", fresh - NEWS_MAX);
    if (!b.n) return message;
    buf_addc(&b, '\n');
    buf_add(&b, message);
    return buf_str(&b);
}

// --- /tasks --------------------------------------------------------------------------------------

static const engine_task *find_live(const engine_tasks *live, str id) {
    for (vec_each(const engine_task, t, live))
        if (str_eq(t->id, id)) return t;
    return NULL;
}

static void task_line(buf *b, str id, const char *status, str agent, str label) {
    buf_addf(b, "%.8s  ", id.p);
    cell(b, str_z(status), 12);
    cell(b, agent, 18);
    text(b, " ");
    brief(b, label, 60);
}

void chat_tasks(chat *ch, arena *a, buf *out) {
    rows_query q = {.a = a, .thread = ch->thread};
    engine_tasks live = {0};
    size_t shown = 0;
    dep_err err;
    engine_list(ch->e, a, (str){0}, &live);
    if (ch->last.n && store_do(engine_store(ch->e), STORE_READ, list_rows, &q, &err) != DEP_OK)
        say(ch->c, "%s", err.msg);
    for (vec_each(const delegation_row, r, &q.rows)) {
        const engine_task *t = find_live(&live, r->id);
        if (r->main || shown == TASKS_SHOWN) continue;
        shown++;
        task_line(out, r->id, deleg_status_name(t ? t->status : r->status), r->agent,
                  r->description.n ? r->description : r->task);
        if (t && t->doing.n) text(out, "  "), brief(out, t->doing, 60);
        if (!t && deleg_ended(r->status) && !r->delivered_ms) text(out, "  not read yet");
        text(out, "\n");
    }
    // Of the conversations before /new and /resume.
    for (vec_each(const engine_task, t, &live)) {
        if (t->is_main || str_eq(t->thread, ch->thread)) continue;
        shown++;
        task_line(out, t->id, deleg_status_name(t->status), t->agent, t->description);
        buf_addf(out, "  (conversation %.8s)\n", t->thread.p);
    }
    if (!shown) text(out, "no delegations in this conversation yet\n");
}

// --- /stop ---------------------------------------------------------------------------------------

void chat_running(chat *ch, arena *a, strs *ids) {
    engine_tasks live = {0};
    engine_list(ch->e, a, (str){0}, &live);
    for (vec_each(const engine_task, t, &live))
        if (!t->is_main) vec_push(a, ids, t->id);
}

// Stops what an id or its beginning names; the report says what it had.
static void stop_one(chat *ch, arena *a, str id, const strs *running, buf *out) {
    strs fits = {0};
    str wanted = str_lower(a, id);
    for (vec_each(const str, r, running))
        if (wanted.n >= STORE_PREFIX_MIN && str_starts(*r, wanted)) vec_push(a, &fits, *r);
    if (fits.n == 1) {
        buf_addf(out, "%.8s %s\n", fits.p[0].p,
                 engine_stop(ch->e, fits.p[0]) ? "is told to stop" : "has ended");
        return;
    }
    text(out, "\"");
    safe(out, id);
    text(out, fits.n > 1 ? "\" stands for several of those that run; give more digits\n"
                         : "\" is none of those that run here; /tasks shows them\n");
}

void chat_stop(chat *ch, arena *a, str ids, buf *out) {
    strs running = {0};
    chat_running(ch, a, &running);
    str id;
    if (!str_trim(ids).n) {
        for (vec_each(const str, r, &running)) stop_one(ch, a, *r, &running, out);
        if (!running.n) text(out, "nothing runs\n");
        return;
    }
    while ((ids = str_trim(ids)).n) {
        str_cut(ids, ' ', &id, &ids);
        stop_one(ch, a, id, &running, out);
    }
}

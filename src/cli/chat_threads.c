// cli: the conversations of this workspace: which there are, the one that a person means, and how one stood
// when it was left.
#include "cli/chat_int.h"

enum { THREADS_SHOWN = 20, THREADS_LISTED = 1000, LAST_TURNS = 2, LAST_ROWS = 1000, LAST_CHARS = 600 };

// Among the two newest that match; none, or two where one was meant, is an error.
static dep_status pick(arena *a, const thread_rows *rows, str id, thread_row *ret, dep_err *err) {
    bool last = str_eq(id, S("last"));
    if (!rows->n && last)
        return err_set(err, DEP_ERR_NOT_FOUND,
                       "there is no conversation in this workspace yet; `deputy chat` begins one");
    if (!rows->n)
        return err_set(err, DEP_ERR_NOT_FOUND,
                       "there is no conversation \"" STR_FMT "\"; `deputy chat --list` shows them",
                       STR_ARG(id));
    if (rows->n > 1 && !last)
        return err_set(err, DEP_ERR_INVALID,
                       "\"" STR_FMT "\" stands for several conversations: %.12s, %.12s…", STR_ARG(id),
                       str_cz(a, rows->p[0].id), str_cz(a, rows->p[1].id));
    *ret = rows->p[0];
    return DEP_OK;
}

static str prefix(arena *a, str id) {
    return str_eq(id, S("last")) ? (str){0} : str_lower(a, str_trim(id));
}

dep_status chat_find_thread(arena *a, store *s, str id, thread_row *ret, dep_err *err) {
    thread_rows rows = {0};
    if (s) TRY(store_thread_list(a, s, prefix(a, id), 2, &rows, err));
    return pick(a, &rows, id, ret, err);
}

typedef struct {
    arena *a;
    str id;
    size_t limit;
    thread_rows rows;
} thread_query;

static dep_status list_threads(store *s, void *p, dep_err *err) {
    thread_query *q = p;
    return store_thread_list(q->a, s, q->id, q->limit, &q->rows, err);
}

dep_status chat_engine_thread(arena *a, engine *e, str id, thread_row *ret, dep_err *err) {
    thread_query q = {.a = a, .id = prefix(a, id), .limit = 2};
    TRY(store_do(engine_store(e), STORE_READ, list_threads, &q, err));
    return pick(a, &q.rows, id, ret, err);
}

dep_status chat_engine_threads(arena *a, engine *e, thread_rows *ret, dep_err *err) {
    thread_query q = {.a = a, .limit = THREADS_LISTED};
    TRY(store_do(engine_store(e), STORE_READ, list_threads, &q, err));
    *ret = q.rows;
    return DEP_OK;
}

void chat_thread_lines(buf *b, arena *a, const thread_rows *rows, str current) {
    size_t shown = 0;
    for (vec_each(const thread_row, r, rows)) {
        if (shown++ == THREADS_SHOWN) {
            buf_addf(b, "and %zu older ones\n", rows->n - THREADS_SHOWN);
            break;
        }
        buf_addf(b, "%.8s%s ", r->id.p, current.n && str_eq(r->id, current) ? "*" : " ");
        cell(b, r->agent, 16);
        text(b, " ");
        safe(b, str_sub(time_local(a, r->used_ms), 0, 16));
        buf_addf(b, "  %3lld turn%s ", (long long)r->turns, r->turns == 1 ? " " : "s");
        brief(b, r->title, 60);
        text(b, "\n");
    }
    if (!rows->n) text(b, "no conversation in this workspace yet\n");
}

int chat_list_threads(cli *c) {
    dep_err err;
    thread_rows rows = {0};
    int code = need_workspace(c, false);
    if (code) return code;
    if (workspace_store(c->w, true, &err) != DEP_OK ||
        (c->w->store &&
         store_thread_list(c->a, c->w->store, (str){0}, THREADS_LISTED, &rows, &err) != DEP_OK))
        return fail(c, &err);
    buf b = buf_new(c->a, 0);
    if (!c->json) {
        chat_thread_lines(&b, c->a, &rows, (str){0});
        out_buf(&b);
        return EXIT_FINE;
    }
    jw w = jw_new(&b);
    jw_arr(&w);
    for (vec_each(const thread_row, r, &rows)) {
        jw_obj(&w);
        jw_kstr(&w, S("id"), r->id);
        jw_kstr(&w, S("agent"), r->agent);
        jw_kstr(&w, S("title"), r->title);
        jw_kstr(&w, S("created"), time_utc(c->a, r->created_ms));
        jw_kstr(&w, S("used"), time_utc(c->a, r->used_ms));
        jw_kint(&w, S("turns"), r->turns);
        jw_kstr(&w, S("last"), r->last);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    buf_addc(&b, '\n');
    out_buf(&b);
    return EXIT_FINE;
}

// --- How it stood --------------------------------------------------------------------------------

typedef struct {
    arena *a;
    str id; // of the thread, or of one turn
    delegation_rows rows;
    delegation_row row;
} turn_query;

static dep_status list_turns(store *s, void *p, dep_err *err) {
    turn_query *q = p;
    return store_delegation_list(q->a, s, q->id, LAST_ROWS, &q->rows, err);
}

static dep_status get_turn(store *s, void *p, dep_err *err) {
    turn_query *q = p;
    return store_delegation_get(q->a, s, q->id, &q->row, err);
}

// Newest first, with their reports.
static dep_status last_turns(chat *ch, arena *a, delegation_rows *ret, dep_err *err) {
    turn_query list = {.a = a, .id = ch->thread};
    TRY(store_do(engine_store(ch->e), STORE_READ, list_turns, &list, err));
    for (vec_each(const delegation_row, r, &list.rows)) {
        turn_query one = {.a = a, .id = r->id};
        if (!r->main || ret->n == LAST_TURNS) continue;
        TRY(store_do(engine_store(ch->e), STORE_READ, get_turn, &one, err));
        vec_push(a, ret, one.row);
    }
    return DEP_OK;
}

static void cut_text(buf *b, str s) {
    str cut = str_trim(utf8_cut_chars(s, LAST_CHARS));
    term_add(b, cut, true);
    if (cut.n < str_trim(s).n) text(b, "…");
    text(b, "\n");
}

void chat_show_last(chat *ch) {
    arena *a = arena_new();
    delegation_rows turns = {0};
    dep_err err;
    if (last_turns(ch, a, &turns, &err) != DEP_OK) say(ch->c, "%s", err.msg);
    for (size_t i = turns.n; i > 0; i--) {
        const delegation_row *r = &turns.p[i - 1];
        buf b = buf_new(a, 0);
        json *rep;
        text(&b, "> ");
        cut_text(&b, r->task);
        if (json_parse(a, r->report, 0, &rep, NULL) == DEP_OK)
            cut_text(&b, json_str(rep, S("report"), (str){0}));
        if (r->status != DELEG_COMPLETED) {
            buf_addf(&b, "(%s: ", deleg_status_name(r->status));
            safe(&b, r->end_reason);
            text(&b, ")\n");
        }
        chat_view_line(&ch->view, true, str_trim(buf_str(&b)));
    }
    arena_free(a);
}

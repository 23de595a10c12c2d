// cli: activity items as lines for people, live and stored. Text comes in pieces, and is shown as it comes;
// where several delegations share the screen, in whole lines with a label before each. Knows nothing of where
// items come from.
#include "cli/delegations.h"

enum { FEED_LINE_MAX = 4096, FEED_ARGS = 100 }; // bytes of a labelled line that has no end; characters

static const str plain_lead = S_INIT(""), thinking_lead = S_INIT("  ~ "), result_lead = S_INIT("  │ ");

feed feed_new(cli *c, FILE *to, bool color) {
    return (feed){.c = c, .to = to, .color = color, .lead = plain_lead, .pending = buf_new(c->a, 0)};
}

static void put(feed *f, buf *b) {
    str s = buf_str(b);
    fwrite(s.p, 1, s.n, f->to);
}

static void label(const feed *f, buf *b) {
    if (!f->label.n) return;
    paint(b, f->color, "2", f->label);
    text(b, " ");
}

// Text with the lead before each line; it may end within one.
static void write_text(feed *f, str s) {
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    while (s.n) {
        str line;
        bool whole = str_cut(s, '\n', &line, &s);
        if (!f->mid_line) {
            label(f, &b);
            buf_add(&b, f->lead);
        }
        term_add(&b, line, true);
        if (whole) text(&b, "\n");
        f->mid_line = !whole;
    }
    put(f, &b);
    fflush(f->to);
    arena_free(a);
}

void feed_end_line(feed *f) {
    if (f->pending.n) write_text(f, buf_str(&f->pending));
    buf_clear(&f->pending);
    if (f->mid_line) fputc('\n', f->to);
    f->mid_line = false;
}

static void stream(feed *f, str piece, str lead) {
    if (!str_eq(f->lead, lead)) feed_end_line(f);
    f->lead = lead;
    if (!f->label.n) {
        write_text(f, piece);
        return;
    }
    buf_add(&f->pending, piece);
    str all = buf_str(&f->pending);
    size_t end = str_rchr(all, '\n');
    if (end == SIZE_MAX && all.n < FEED_LINE_MAX) return;
    if (end == SIZE_MAX) {
        feed_end_line(f);
        return;
    }
    write_text(f, str_sub(all, 0, end + 1));
    arena *a = arena_new();
    str rest = str_dup(a, str_sub(all, end + 1, all.n));
    buf_clear(&f->pending);
    buf_add(&f->pending, rest);
    arena_free(a);
}

// A line of its own.
static void line(feed *f, const buf *b) {
    arena *a = arena_new();
    buf whole = buf_new(a, 0);
    feed_end_line(f);
    f->lead = plain_lead;
    label(f, &whole);
    buf_add(&whole, str_n(b->p, b->n));
    text(&whole, "\n");
    put(f, &whole);
    fflush(f->to);
    arena_free(a);
}

void feed_note(feed *f, str s) {
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    safe(&b, s);
    line(f, &b);
    arena_free(a);
}

void feed_turn(feed *f, int64_t n, int64_t seconds) {
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    if (f->whole) {
        paint(&b, f->color, "1", str_fmt(a, "turn %lld", (long long)n));
    } else {
        paint(&b, f->color, "2", str_fmt(a, "· turn %lld, %lld s", (long long)n, (long long)seconds));
    }
    line(f, &b);
    arena_free(a);
}

void feed_tool(feed *f, str name, str args, int64_t seconds) {
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    text(&b, "  → ");
    safe(&b, name);
    text(&b, " ");
    brief(&b, args, FEED_ARGS);
    buf_addf(&b, "  (%lld s)", (long long)seconds);
    line(f, &b);
    arena_free(a);
}

void feed_text(feed *f, str piece) {
    stream(f, piece, plain_lead);
}

static str arguments(const json *item) {
    const json *args = json_get(item, S("arguments"));
    return !args ? (str){0} : args->kind == JSON_STRING ? args->s : args->raw;
}

void feed_result(feed *f, str s) {
    stream(f, s, result_lead);
    feed_end_line(f);
}

static void whole_tool(feed *f, arena *a, const json *item) {
    buf b = buf_new(a, 0);
    text(&b, "→ ");
    paint(&b, f->color, "36", json_str(item, S("name"), (str){0}));
    text(&b, " ");
    safe(&b, arguments(item));
    buf_addf(&b, "  (%s%lld ms)", json_bool(item, S("is_error"), false) ? "error, " : "",
             (long long)json_num(item, S("ms"), 0));
    line(f, &b);
    feed_result(f, json_str(item, S("result"), (str){0}));
}

static void context_line(feed *f, arena *a, const json *item) {
    buf b = buf_new(a, 0);
    text(&b, "· ");
    safe(&b, json_str(item, S("event"), (str){0}));
    text(&b, ": ");
    safe(&b, json_str(item, S("detail"), (str){0}));
    str whole = str_dup(a, buf_str(&b));
    buf_clear(&b);
    if (f->color) text(&b, "\x1b[2m");
    buf_add(&b, whole);
    if (f->color) text(&b, "\x1b[0m");
    line(f, &b);
}

static void status_line(feed *f, arena *a, const json *item) {
    buf b = buf_new(a, 0);
    str reason = json_str(item, S("end_reason"), (str){0});
    text(&b, "status: ");
    safe(&b, json_str(item, S("status"), (str){0}));
    if (reason.n) text(&b, ", "), safe(&b, reason);
    line(f, &b);
}

void feed_item(feed *f, const activity_row *row, int64_t started_ms) {
    arena *a = arena_new();
    int64_t seconds = started_ms && row->at_ms > started_ms ? (row->at_ms - started_ms) / 1000 : 0;
    json *item;
    if (json_parse(a, row->data, 0, &item, NULL) != DEP_OK) {
        arena_free(a);
        return;
    }
    str words = json_str(item, S("text"), (str){0});
    if (str_eq(row->kind, S("turn"))) {
        feed_turn(f, (int64_t)json_num(item, S("n"), 0), seconds);
    } else if (str_eq(row->kind, S("tool")) && f->whole) {
        whole_tool(f, a, item);
    } else if (str_eq(row->kind, S("tool"))) {
        feed_tool(f, json_str(item, S("name"), (str){0}), arguments(item), seconds);
    } else if (str_eq(row->kind, S("context"))) {
        context_line(f, a, item);
    } else if (str_eq(row->kind, S("status"))) {
        if (f->whole) status_line(f, a, item);
    } else if (str_eq(row->kind, S("thinking"))) {
        if (f->whole) stream(f, words, thinking_lead);
    } else {
        stream(f, words, plain_lead);
    }
    arena_free(a);
}

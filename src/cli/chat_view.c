// cli: what a conversation prints. The model's words come in pieces, and lines of subagents from other
// threads: a line is never put into the middle of another one or of the prompt; it waits for the next line
// end, or for the reader of the line to make room.
#include "cli/chat_int.h"
#include <sys/eventfd.h>
#include <unistd.h>

enum { ARGS_CHARS = 100 };

void chat_view_open(chat_view *v, cli *c, bool live) {
    *v = (chat_view){.c = c, .live = live, .a = arena_new(), .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    v->pending = buf_new(v->a, 0);
    v->held = buf_new(v->a, 0);
    pthread_mutex_init(&v->lock, NULL);
}

void chat_view_close(chat_view *v) {
    if (v->wake >= 0) close(v->wake);
    v->wake = -1;
    pthread_mutex_destroy(&v->lock);
    arena_free(v->a);
    v->a = NULL;
}

// --- With the lock held --------------------------------------------------------------------------

static void put(FILE *to, str s) {
    // Two streams, perhaps one terminal: what came first is shown first.
    if (to == stderr) fflush(stdout);
    fwrite(s.p, 1, s.n, to);
    fflush(to);
}

static bool print_pending(chat_view *v) {
    if (!v->pending.n) return false;
    put(stderr, buf_str(&v->pending));
    buf_clear(&v->pending);
    return true;
}

// Escaping looks at a character's neighbours (joined emoji, scripts that need joiners), so the last ones wait
// for what follows them.
static size_t whole_part(str s) {
    if (!s.n || (unsigned char)s.p[s.n - 1] < 0x80) return s.n;
    str cut = utf8_cut(s, s.n - 1);
    while (cut.n) {
        size_t at = utf8_floor(cut, cut.n - 1), i = at;
        if (!utf8_is_invisible(utf8_next(cut, &i))) break;
        cut = utf8_cut(cut, at);
    }
    return cut.n;
}

static void put_text(chat_view *v, str s) {
    if (!s.n) return;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    term_add(&b, s, true);
    str shown = buf_str(&b);
    size_t end = str_rchr(shown, '\n');
    // Lines that wait are let in at the first chance.
    if (v->pending.n && end != SIZE_MAX) {
        put(stdout, str_sub(shown, 0, end + 1));
        print_pending(v);
        shown = str_sub(shown, end + 1, shown.n);
        v->mid_line = false;
    }
    put(stdout, shown);
    if (shown.n) v->mid_line = shown.p[shown.n - 1] != '\n';
    arena_free(a);
}

static void end_text(chat_view *v) {
    put_text(v, buf_str(&v->held));
    buf_clear(&v->held);
    if (v->mid_line) put(stdout, S("\n"));
    v->mid_line = false;
    print_pending(v);
}

// --- From outside --------------------------------------------------------------------------------

void chat_view_text(chat_view *v, str delta) {
    pthread_mutex_lock(&v->lock);
    buf_add(&v->held, delta);
    str all = buf_str(&v->held);
    size_t whole = whole_part(all);
    put_text(v, str_sub(all, 0, whole));
    arena *a = arena_new();
    str rest = str_dup(a, str_sub(all, whole, all.n));
    buf_clear(&v->held);
    buf_add(&v->held, rest);
    arena_free(a);
    pthread_mutex_unlock(&v->lock);
}

void chat_view_end_text(chat_view *v) {
    pthread_mutex_lock(&v->lock);
    end_text(v);
    pthread_mutex_unlock(&v->lock);
}

void chat_view_line(chat_view *v, bool dim, str escaped) {
    bool color = dim && v->c->color_err;
    pthread_mutex_lock(&v->lock);
    if (color) buf_add(&v->pending, S("\x1b[2m"));
    buf_add(&v->pending, escaped);
    buf_add(&v->pending, color ? S("\x1b[0m\n") : S("\n"));
    if (v->prompting) {
        uint64_t one = 1;
        ssize_t n = write(v->wake, &one, sizeof one);
        (void)n;
    } else if (!v->mid_line && !v->held.n) {
        print_pending(v);
    }
    pthread_mutex_unlock(&v->lock);
}

void chat_view_prompt(chat_view *v, bool shown) {
    pthread_mutex_lock(&v->lock);
    v->prompting = shown;
    if (!shown) print_pending(v);
    pthread_mutex_unlock(&v->lock);
}

bool chat_view_idle(chat_view *v) {
    uint64_t count;
    ssize_t n = read(v->wake, &count, sizeof count);
    (void)n;
    pthread_mutex_lock(&v->lock);
    bool any = print_pending(v);
    pthread_mutex_unlock(&v->lock);
    return any;
}

bool chat_view_at_prompt(chat_view *v) {
    pthread_mutex_lock(&v->lock);
    bool at = v->prompting;
    pthread_mutex_unlock(&v->lock);
    return at;
}

// --- A call on one line --------------------------------------------------------------------------

void chat_args(buf *b, str args) {
    arena *a = arena_new();
    json *j;
    strs values = {0};
    if (json_parse(a, args, 0, &j, NULL) == DEP_OK && j->kind == JSON_OBJECT) {
        for (const json *v = j->child; v; v = v->next)
            vec_push(a, &values, v->kind == JSON_STRING ? v->s : v->raw);
        args = str_join(a, values.p, values.n, S(" "));
    }
    brief(b, args, ARGS_CHARS);
    arena_free(a);
}

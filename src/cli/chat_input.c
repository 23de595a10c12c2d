// cli: lines that a person types into `chat`. With libedit on a terminal: editing, history, pasting of
// several lines. Without it, or from a pipe, plain lines. While it waits it also hears what the view has to
// print, and signals: no byte is read without that.
#include "cli/chat_edit.h"
#include "cli/chat_int.h"
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    READ_BYTES = 4096,
    PASTE_WAIT_MS = 1000, // for the rest of a paste whose end does not come
    KEY_WAIT_MS = 50,     // for the rest of the sequence that begins a paste
};
#define PASTE_BEGIN S("\x1b[200~")
#define PASTE_END S("\x1b[201~")

struct chat_input {
    arena *a;
    chat_view *view;
    str state, notice;
    bool terminal;
    edit_api api;
    EditLine *el; // NULL: plain lines
    HistoryW *history;
    locale_t locale;
    const char *prompt;
    bool redraw; // plain lines: the prompt is to be shown again
    bool history_failed;
    line_kind ended; // why a read gave no byte
    size_t at, n;
    char bytes[READ_BYTES];
};

// --- Bytes ---------------------------------------------------------------------------------------

// Waits for input, for lines of the view (fd -1: not) or for a signal, whichever comes first. Signals that
// arrive between the look and the wait are not missed. False: the time is over.
static bool wait_input(int wake, int timeout_ms, bool *ready) {
    struct pollfd fds[2] = {{.fd = 0, .events = POLLIN}, {.fd = wake, .events = POLLIN}};
    struct timespec limit = {.tv_sec = timeout_ms / 1000, .tv_nsec = timeout_ms % 1000 * 1000000L};
    sigset_t ours, before;
    sigemptyset(&ours);
    for (const int *s = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT, 0}; *s; s++)
        sigaddset(&ours, *s);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    int n = 0;
    *ready = false;
    if (!chat_interrupted(false) && !chat_told_to_end())
        n = ppoll(fds, 2, timeout_ms < 0 ? NULL : &limit, &before);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    *ready = n > 0 && fds[0].revents;
    return n != 0;
}

// Takes what can be read into the buffer. False at the end of input.
static bool fill(chat_input *in) {
    if (in->at > 0) memmove(in->bytes, in->bytes + in->at, in->n - in->at);
    in->n -= in->at;
    in->at = 0;
    ssize_t n = in->n < sizeof in->bytes ? read(0, in->bytes + in->n, sizeof in->bytes - in->n) : 0;
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return true;
    if (n > 0) in->n += (size_t)n;
    return n > 0;
}

static size_t columns(void) {
    struct winsize w;
    return ioctl(1, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : 80;
}

// Rows from the top of the prompt to the cursor.
static size_t cursor_row(const chat_input *in) {
    const LineInfoW *line = in->api.line(in->el);
    size_t row = 0, column = strlen(in->prompt), width = columns();
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    for (const wchar_t *p = line->buffer; p < line->cursor; p++) {
        if (*p == L'\n') {
            row++;
            column = 0;
            continue;
        }
        buf_clear(&b);
        utf8_put(&b, (uint32_t)*p);
        column += utf8_width(buf_str(&b));
        if (column >= width) {
            row++;
            column = 0;
        }
    }
    arena_free(a);
    return row;
}

// Takes the prompt off the screen, and puts it there again below what was printed.
static void make_room(chat_input *in) {
    FILE *to = isatty(1) ? stdout : stderr;
    if (in->el) {
        size_t row = cursor_row(in);
        if (row) fprintf(to, "\x1b[%zuA", row);
    }
    if (in->terminal) fputs("\r\x1b[J", to);
    fflush(to);
    (void)chat_view_idle(in->view);
    if (in->el) {
        in->api.set(in->el, EL_REFRESH);
    } else {
        in->redraw = true;
    }
}

static void show_prompt(chat_input *in) {
    if (!in->terminal || in->el || !in->redraw) return;
    fputs(in->prompt, stderr);
    fflush(stderr);
    in->redraw = false;
}

// What came with a signal or from the view. False: there is no line any more.
static bool attend(chat_input *in) {
    if (chat_told_to_end()) {
        in->ended = LINE_SIGNAL;
        return false;
    }
    if (chat_interrupted(false)) {
        in->ended = LINE_CLEARED;
        return false;
    }
    if (chat_continued() && in->el) {
        // The shell had the terminal meanwhile.
        in->api.set(in->el, EL_PREP_TERM, 1);
        in->api.set(in->el, EL_REFRESH);
    }
    if (chat_resized() && in->el) in->api.resize(in->el);
    return true;
}

// At least one byte more than there is; false when none comes, and in->ended says why.
static bool more(chat_input *in) {
    for (;;) {
        bool ready;
        show_prompt(in);
        (void)wait_input(in->view->wake, -1, &ready);
        if (!attend(in)) return false;
        if (!ready) {
            if (chat_view_at_prompt(in->view)) make_room(in);
            continue;
        }
        size_t before = in->n - in->at;
        if (!fill(in)) {
            in->ended = LINE_END;
            return false;
        }
        if (in->n - in->at > before) return true;
    }
}

// --- Pasting -------------------------------------------------------------------------------------

static bool starts_paste(chat_input *in) {
    bool ready;
    for (;;) {
        str have = str_n(in->bytes + in->at, in->n - in->at);
        if (str_starts(have, PASTE_BEGIN)) return true;
        if (have.n >= PASTE_BEGIN.n || !str_starts(PASTE_BEGIN, have) || have.n < 2) return false;
        if (!wait_input(-1, KEY_WAIT_MS, &ready) || !ready || !fill(in)) return false;
    }
}

// The pasted text, up to its end mark. What is more than a task may have is left out.
static str pasted(chat_input *in, arena *a) {
    buf b = buf_new(a, DELEGATE_TASK_MAX);
    bool ready;
    in->at += PASTE_BEGIN.n;
    for (;;) {
        str have = str_n(in->bytes + in->at, in->n - in->at);
        size_t end = str_find(have, PASTE_END);
        // The mark may be cut at the end of what has come.
        size_t sure = end != SIZE_MAX ? end : have.n >= PASTE_END.n ? have.n - PASTE_END.n + 1 : 0;
        buf_add(&b, str_sub(have, 0, sure));
        in->at += sure;
        if (end != SIZE_MAX) {
            in->at += PASTE_END.n;
            break;
        }
        if (!wait_input(-1, PASTE_WAIT_MS, &ready) || !ready || !fill(in)) break;
    }
    return buf_str(&b);
}

// Puts it into the line: line ends stay, other control characters do not.
static void insert_paste(chat_input *in) {
    arena *a = arena_new();
    str text = pasted(in, a);
    wchar_t *wide = NEW_N(a, wchar_t, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n;) {
        uint32_t cp = utf8_next(text, &i);
        if (cp == '\r') cp = '\n';
        if (cp == '\t') cp = ' ';
        if (cp == UTF8_BAD || (cp != '\n' && utf8_is_control(cp))) continue;
        wide[n++] = (wchar_t)cp;
    }
    if (n) (void)in->api.insert(in->el, wide);
    in->api.set(in->el, EL_REFRESH);
    arena_free(a);
}

// --- The line editor -----------------------------------------------------------------------------

// NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables): a callback gets nothing but its editor
static typeof(el_get) *editor_get;

static chat_input *input_of(EditLine *el) {
    void *p = NULL;
    editor_get(el, EL_CLIENTDATA, &p);
    return p;
}

static char *give_prompt(EditLine *el) {
    return (char *)(uintptr_t)input_of(el)->prompt;
}

// One character for the editor: 1, or -1 when there is none any more.
static int give_char(EditLine *el, wchar_t *ret) {
    chat_input *in = input_of(el);
    for (;;) {
        if (in->at == in->n && !more(in)) return -1;
        if (in->bytes[in->at] == '\x1b' && starts_paste(in)) {
            insert_paste(in);
            continue;
        }
        str have = str_n(in->bytes + in->at, in->n - in->at);
        size_t i = 0, wanted = (unsigned char)have.p[0] >= 0xF0   ? 4
                               : (unsigned char)have.p[0] >= 0xE0 ? 3
                               : (unsigned char)have.p[0] >= 0xC0 ? 2
                                                                  : 1;
        uint32_t cp = utf8_next(have, &i);
        if (cp == UTF8_BAD && have.n < wanted) {
            // The rest of the character has not come yet.
            if (!more(in)) return -1;
            continue;
        }
        in->at += i;
        if (cp == UTF8_BAD) continue;
        *ret = (wchar_t)cp;
        return 1;
    }
}

static void bind_keys(chat_input *in) {
    static const char *const keys[][2] = {
        {"^R", "em-inc-search-prev"}, {"\\e[3~", "ed-delete-next-char"}, {"\\e[H", "ed-move-to-beg"},
        {"\\e[F", "ed-move-to-end"},  {"\\e[1~", "ed-move-to-beg"},      {"\\e[4~", "ed-move-to-end"},
        {"\\e[1;5D", "ed-prev-word"}, {"\\e[1;5C", "em-next-word"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        in->api.set(in->el, EL_BIND, keys[i][0], keys[i][1], NULL);
}

static wchar_t *widen(arena *a, str s) {
    wchar_t *wide = NEW_N(a, wchar_t, s.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < s.n;) wide[n++] = (wchar_t)utf8_next(s, &i);
    return wide;
}

static void enter(chat_input *in, str line) {
    HistEventW ev;
    arena *a = arena_new();
    in->api.history(in->history, &ev, H_ENTER, widen(a, line));
    arena_free(a);
}

static void load_history(chat_input *in) {
    arena *a = arena_new();
    str text;
    strs entries = {0};
    HistEventW ev;
    dep_err err;
    in->api.history(in->history, &ev, H_SETSIZE, CHAT_HISTORY_LINES);
    in->api.history(in->history, &ev, H_SETUNIQUE, 1);
    if (chat_history_read(a, in->state, &text, &err) == DEP_OK) chat_history_entries(a, text, &entries);
    for (vec_each(const str, e, &entries)) enter(in, *e);
    arena_free(a);
}

static void close_editor(void *p) {
    chat_input *in = p;
    if (in->el) in->api.end(in->el);
    if (in->history) in->api.history_end(in->history);
    in->el = NULL;
    if (in->locale) freelocale(in->locale);
}

static dep_status open_editor(chat_input *in, dep_err *err) {
    const char *term = in->view->c->in->getenv("TERM");
    if (!term || !*term || str_eq(str_z(term), S("dumb")))
        return err_set(err, DEP_ERR_INVALID, "the terminal cannot place its cursor (TERM)");
    TRY(chat_edit_load(NULL, &in->api, err));
    // Of this thread alone: what libedit writes is UTF-8, whatever the environment says.
    in->locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
    if (!in->locale) return err_set(err, DEP_ERR_NOT_FOUND, "the locale C.UTF-8 is missing");
    locale_t before = uselocale(in->locale);
    editor_get = in->api.get;
    in->el = in->api.init("deputy", stdin, isatty(1) ? stdout : stderr, stderr);
    in->history = in->el ? in->api.history_new() : NULL;
    if (!in->history) {
        uselocale(before);
        close_editor(in);
        return err_set(err, DEP_ERR_IO, "libedit does not take this terminal");
    }
    in->api.set(in->el, EL_CLIENTDATA, in);
    in->api.set(in->el, EL_EDITOR, "emacs");
    in->api.set(in->el, EL_SIGNAL, 0);
    in->api.set(in->el, EL_PROMPT, give_prompt);
    in->api.set(in->el, EL_GETCFN, give_char);
    in->api.wset(in->el, EL_HIST, in->api.history, in->history);
    bind_keys(in);
    load_history(in);
    uselocale(before);
    arena_defer(in->a, close_editor, in);
    return DEP_OK;
}

// --- Lines ---------------------------------------------------------------------------------------

static line_kind edited_line(chat_input *in, arena *a, str *ret) {
    FILE *to = isatty(1) ? stdout : stderr;
    int n = 0;
    locale_t before = uselocale(in->locale);
    fputs("\x1b[?2004h", to);
    in->ended = LINE_END;
    // Before the prompt is shown: what is typed the moment that it appears must not meet the old mode.
    in->api.set(in->el, EL_PREP_TERM, 1);
    const wchar_t *line = in->api.gets(in->el, &n);
    fputs("\x1b[?2004l", to);
    fflush(to);
    uselocale(before);
    if (!line || n <= 0) {
        // The line that was typed stays on the screen; the next prompt begins below it.
        fputs(in->ended == LINE_CLEARED ? "^C\n" : "\n", to);
        fflush(to);
        return in->ended;
    }
    buf b = buf_new(a, DELEGATE_TASK_MAX + 1);
    for (int i = 0; i < n; i++) utf8_put(&b, (uint32_t)line[i]);
    *ret = buf_str(&b);
    if (str_ends(*ret, S("\n"))) *ret = str_sub(*ret, 0, ret->n - 1);
    return LINE_GIVEN;
}

static line_kind plain_line(chat_input *in, arena *a, str *ret) {
    buf b = buf_new(a, DELEGATE_TASK_MAX + 1);
    in->redraw = in->terminal;
    show_prompt(in);
    for (;;) {
        if (in->at == in->n && !more(in)) {
            if (in->ended == LINE_CLEARED && in->terminal) fputs("\n", stderr);
            // What stands before the end of input, without a line end, is a line too.
            if (in->ended != LINE_END || !b.n) return in->ended;
            break;
        }
        str have = str_n(in->bytes + in->at, in->n - in->at);
        size_t end = str_chr(have, '\n');
        buf_add(&b, str_sub(have, 0, end == SIZE_MAX ? have.n : end));
        in->at += end == SIZE_MAX ? have.n : end + 1;
        if (end != SIZE_MAX) break;
    }
    *ret = buf_str(&b);
    if (str_ends(*ret, S("\r"))) *ret = str_sub(*ret, 0, ret->n - 1);
    return LINE_GIVEN;
}

line_kind chat_input_line(chat_input *in, arena *a, const char *prompt, str *ret) {
    (void)chat_interrupted(true);
    in->prompt = prompt;
    *ret = (str){0};
    if (in->terminal) chat_view_prompt(in->view, true);
    line_kind kind = in->el ? edited_line(in, a, ret) : plain_line(in, a, ret);
    if (in->terminal) chat_view_prompt(in->view, false);
    return kind;
}

// An odd number of backslashes at the end: the last one joins the next line.
static bool goes_on(str line) {
    size_t n = 0;
    while (n < line.n && line.p[line.n - 1 - n] == '\\') n++;
    return n % 2 == 1;
}

line_kind chat_input_message(chat_input *in, arena *a, str *ret) {
    buf b = buf_new(a, DELEGATE_TASK_MAX + 1);
    str line;
    for (const char *prompt = "> ";; prompt = "  ") {
        line_kind kind = chat_input_line(in, a, prompt, &line);
        if (kind == LINE_END && b.n) break;
        if (kind != LINE_GIVEN) return kind;
        bool joined = goes_on(line);
        buf_add(&b, joined ? str_sub(line, 0, line.n - 1) : line);
        if (!joined) break;
        buf_addc(&b, '\n');
    }
    *ret = buf_str(&b);
    return LINE_GIVEN;
}

void chat_input_remember(chat_input *in, str line) {
    arena *a = arena_new();
    dep_err err;
    if (!in->terminal || !str_trim(line).n) {
        arena_free(a);
        return;
    }
    if (in->el) enter(in, line);
    if (chat_history_append(a, in->state, line, &err) != DEP_OK && !in->history_failed) {
        in->history_failed = true;
        say(in->view->c, "what you type is not kept: %s", err.msg);
    }
    arena_free(a);
}

// --- Beginning -----------------------------------------------------------------------------------

chat_input *chat_input_open(arena *a, chat_view *v, str state, bool terminal) {
    chat_input *in = NEW(a, chat_input);
    *in = (chat_input){.a = a, .view = v, .state = state, .terminal = terminal, .prompt = ""};
    dep_err err;
    if (terminal && open_editor(in, &err) != DEP_OK)
        in->notice = str_fmt(a, "lines cannot be edited: %s", err.msg);
    return in;
}

str chat_input_notice(const chat_input *in) {
    return in->notice;
}

// stub: a local model server for measurements: Anthropic Messages, OpenAI Chat Completions, OpenAI
// Responses and Gemini generateContent, by path, streamed or whole. HTTP/1.1 with keep-alive, one thread,
// epoll.
//   stub [--port N] [--turns N] [--delay-ms N] [--pieces N] [--writes N] [--file PATH] [--pid N] [--log FILE]
// Prints `port N` (0, the default, takes a free one). It keeps nothing between requests: how many answers of
// the model the request repeats says which turn it is. `stub:turns=N` in the task (else --turns, else 0) asks
// for N turns that call a tool, one after the other those of `tools` below that the request offers; then
// comes a report.
//   --delay-ms  before each event; every event is then a write of its own
//   --pieces    deltas of a text or of arguments (3);  --writes  writes of an answer (3)
//   --file      what the reading tools are to read (docs/manual.md); hosts that want absolute paths get it
//   made one
//   --pid       ends when that process ends;  --log  one JSON line a request: path, bytes, turn, turns
// SIGUSR1, and the end, print one JSON line of what was served (most_open: since the last line). Knows
// nothing of Deputy and uses nothing of it, so that both cannot misread the formats alike.
#include "stub_formats.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    HEAD_MAX = 64 * 1024,
    BODY_MAX = 256 * 1024 * 1024,
    READ_BYTES = 64 * 1024,
};

// What a tool is called and what it wants, by host. {path}, {abs}: --file; {n}: the turn; {word}: changes by
// turn. Of two rows of one name the first whose key the request mentions is taken.
static const struct {
    const char *name, *key, *args;
} tools[] = {
    {"read", "filePath", "{\"filePath\":\"{abs}\",\"offset\":{n}}"},
    {"read", NULL, "{\"path\":\"{path}\",\"offset\":{n}}"},
    {"kb_search", NULL, "{\"query\":\"{word} warranty part {n}\"}"},
    {"Read", NULL, "{\"file_path\":\"{abs}\",\"offset\":{n}}"},
    {"read_file", NULL, "{\"file_path\":\"{abs}\",\"start_line\":{n}}"},
    {"exec_command", NULL, "{\"cmd\":\"tail -n +{n} {abs}\"}"},
    {"shell_command", NULL, "{\"command\":\"tail -n +{n} {abs}\"}"},
    {"shell", NULL, "{\"command\":[\"tail\",\"-n\",\"+{n}\",\"{abs}\"]}"},
};
enum { TOOLS = sizeof tools / sizeof *tools };
static_assert(TOOLS <= TOOLS_MAX);
static const char *const words[] = {"refund", "delivery", "label", "appliance", "return"};

typedef struct conn conn;
struct conn {
    int fd;
    bool polls_out, keep, waits, answers;
    bytes in;
    answer a;
    size_t sent, i;       // of a.out; of a.ends
    size_t head, body;    // bytes of the request; head 0: not whole yet
    conn *before, *after; // those that wait for their next event, soonest first
    int64_t due;
};

typedef struct {
    int epoll, listener, signals, parent;
    uint64_t turns, delay_ms, pieces, writes, port, pid;
    const char *file;
    char abs[PATH_MAX];
    FILE *log;
    conn *first, *last;
    uint64_t requests, connections, open, most_open, bytes_in, bytes_out, calls, reports, refused;
    bool end;
} server;

static int64_t now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool is(slice s, const char *z) {
    return s.n == strlen(z) && memcmp(s.p, z, s.n) == 0;
}

// --- What a request says ---------------------------------------------------------------------------------

static const char *string_end(const char *p, const char *end) {
    for (const char *q = p; (q = memchr(q, '"', (size_t)(end - q))); q++) {
        size_t slashes = 0;
        while (q - slashes > p && *(q - slashes - 1) == '\\') slashes++;
        if (slashes % 2 == 0) return q;
    }
    return NULL;
}

static void see_value(request *r, slice key, slice value) {
    static const char marker[] = "stub:turns=";
    if (is(key, "role") && is(value, r->api == API_GENERATE ? "model" : "assistant"))
        r->answers += r->api != API_RESPONSES;
    if (is(key, "type") && is(value, "function_call")) r->answers += r->api == API_RESPONSES;
    if (is(key, "model") && !r->model.n) r->model = value;
    if (is(key, "name"))
        for (size_t i = 0; i < TOOLS; i++) r->named[i] |= is(value, tools[i].name);
    if (r->has_turns) return;
    const char *at = memmem(value.p, value.n, marker, sizeof marker - 1);
    if (!at) return;
    r->has_turns = true;
    r->turns = strtoull(at + sizeof marker - 1, NULL, 10);
}

// One pass over the strings of the body; what stands inside a string is never taken for structure.
static void see_body(request *r, const char *p, size_t n) {
    const char *end = p + n;
    slice key = {0};
    while ((p = memchr(p, '"', (size_t)(end - p)))) {
        const char *close = string_end(p + 1, end);
        if (!close) return;
        slice s = {p + 1, (size_t)(close - p - 1)};
        p = close + 1;
        while (p < end && strchr(" \t\r\n", *p)) p++;
        if (p == end || *p != ':') {
            see_value(r, key, s);
            key = (slice){0};
            continue;
        }
        key = s;
        p++;
        while (p < end && strchr(" \t\r\n", *p)) p++;
        if (is(key, "stream")) r->stream = p < end && *p == 't';
        for (size_t i = 0; i < TOOLS; i++) r->keyed[i] |= tools[i].key && is(key, tools[i].key);
    }
}

static void write_args(const server *s, request *r, const char *form) {
    size_t n = 0;
    char number[32];
    snprintf(number, sizeof number, "%llu", (unsigned long long)r->answers + 1);
    const struct {
        const char *name, *value;
    } values[] = {{"{path}", s->file},
                  {"{abs}", s->abs},
                  {"{n}", number},
                  {"{word}", words[r->answers % (sizeof words / sizeof *words)]}};
    while (*form) {
        const char *value = NULL;
        for (size_t i = 0; !value && i < sizeof values / sizeof *values; i++) {
            size_t length = strlen(values[i].name);
            if (strncmp(form, values[i].name, length) != 0) continue;
            value = values[i].value;
            form += length;
        }
        char one[2] = {*form, 0};
        if (!value) value = one, form++;
        size_t length = strlen(value);
        if (n + length >= sizeof r->args) break;
        memcpy(r->args + n, value, length);
        n += length;
    }
    r->args[n] = 0;
}

// The next call, unless the turns that were asked for are over or nothing known is offered.
static void decide(const server *s, request *r) {
    size_t offered[TOOLS], n = 0;
    for (size_t i = 0; i < TOOLS; i++) {
        bool taken = n && strcmp(tools[offered[n - 1]].name, tools[i].name) == 0;
        if (r->named[i] && !taken && (!tools[i].key || r->keyed[i])) offered[n++] = i;
    }
    if (!r->has_turns) r->turns = s->turns;
    r->in_tokens = r->body / 4;
    r->out_tokens = (sizeof report - 1) / 4;
    if (!n || r->answers >= r->turns) return;
    size_t row = offered[r->answers % n];
    r->tool = tools[row].name;
    write_args(s, r, tools[row].args);
    r->out_tokens = strlen(r->args) / 4 + 10;
}

// --- Answers ---------------------------------------------------------------------------------------------

static void write_whole(answer *a, const char *status, const bytes *body) {
    addf(&a->out, "HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n", status,
         body->n);
    if (body->n) add(&a->out, body->p, body->n);
    mark(a);
}

static void write_answer(server *s, conn *c, const request *r) {
    answer *a = &c->a;
    a->out.n = a->n = c->sent = c->i = 0;
    a->pieces = s->pieces;
    if (r->stream && r->api) {
        addf(
            &a->out,
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
            "transfer-encoding: chunked\r\n\r\n");
        if (r->api == API_MESSAGES) messages_stream(a, r);
        if (r->api == API_CHAT) chat_stream(a, r);
        if (r->api == API_RESPONSES) responses_stream(a, r);
        if (r->api == API_GENERATE) generate_stream(a, r);
        add(&a->out, "0\r\n\r\n", 5);
        a->ends[a->n - 1] = a->out.n;
        return;
    }
    bytes body = {0};
    if (r->api == API_MESSAGES) messages_whole(&body, r);
    if (r->api == API_CHAT) chat_whole(&body, r);
    if (r->api == API_RESPONSES) responses_whole(&body, r, true);
    if (r->api == API_GENERATE) generate_whole(&body, r);
    if (!r->api)
        addf(&body,
             "{\"error\":{\"type\":\"not_found_error\",\"message\":\"the stub does not serve this\"}}");
    write_whole(a, r->api ? "200 OK" : "404 Not Found", &body);
    free(body.p);
}

// --- Connections -----------------------------------------------------------------------------------------

static void wait_on(server *s, conn *c) {
    c->due = now_ms() + (int64_t)s->delay_ms;
    c->waits = true;
    c->before = s->last;
    c->after = NULL;
    *(s->last ? &s->last->after : &s->first) = c;
    s->last = c;
}

static void wait_no_more(server *s, conn *c) {
    if (!c->waits) return;
    *(c->before ? &c->before->after : &s->first) = c->after;
    *(c->after ? &c->after->before : &s->last) = c->before;
    c->waits = false;
}

static void drop(server *s, conn *c) {
    wait_no_more(s, c);
    close(c->fd);
    free(c->in.p);
    free(c->a.out.p);
    free(c);
    s->open--;
}

static void poll_out(const server *s, conn *c, bool out) {
    if (c->polls_out == out) return;
    struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0), .data.ptr = c};
    if (epoll_ctl(s->epoll, EPOLL_CTL_MOD, c->fd, &e) != 0) die("epoll_ctl");
    c->polls_out = out;
}

// Sends what is due. False: the connection is gone.
static bool pump(server *s, conn *c) {
    while (c->i < c->a.n) {
        size_t upto = s->delay_ms ? 1 : (c->a.n + s->writes - 1) / s->writes;
        size_t last = c->i + upto > c->a.n ? c->a.n : c->i + upto;
        while (c->sent < c->a.ends[last - 1]) {
            ssize_t n = send(c->fd, c->a.out.p + c->sent, c->a.ends[last - 1] - c->sent, MSG_NOSIGNAL);
            if (n < 0 && errno == EAGAIN) {
                poll_out(s, c, true);
                return true;
            }
            if (n < 0) {
                drop(s, c);
                return false;
            }
            c->sent += (size_t)n;
            s->bytes_out += (uint64_t)n;
        }
        c->i = last;
        if (s->delay_ms && c->i < c->a.n) {
            poll_out(s, c, false);
            wait_on(s, c);
            return true;
        }
    }
    poll_out(s, c, false);
    c->answers = false;
    if (c->keep) return true;
    drop(s, c);
    return false;
}

static bool header(slice line, const char *name, slice *value) {
    size_t n = strlen(name);
    if (line.n < n || strncasecmp(line.p, name, n) != 0) return false;
    for (*value = (slice){line.p + n, line.n - n}; value->n && *value->p == ' '; value->p++) value->n--;
    return true;
}

// The head of a request. False: more is needed. What cannot be served ends the connection after its answer.
static bool see_head(conn *c) {
    char *end = memmem(c->in.p, c->in.n, "\r\n\r\n", 4);
    if (!end) return false;
    c->head = (size_t)(end - c->in.p) + 4;
    c->body = 0;
    c->keep = true;
    for (const char *p = c->in.p, *eol; p < end; p = eol + 2) {
        eol = memmem(p, (size_t)(end + 2 - p), "\r\n", 2);
        slice line = {p, (size_t)(eol - p)}, v;
        if (header(line, "content-length:", &v)) c->body = strtoull(v.p, NULL, 10);
        if (header(line, "connection:", &v) && v.n == 5 && strncasecmp(v.p, "close", 5) == 0) c->keep = false;
        if (header(line, "transfer-encoding:", &v)) c->keep = false;
        if (header(line, "expect:", &v)) send(c->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
    }
    if (c->body > BODY_MAX) c->body = 0, c->keep = false;
    return true;
}

static slice path_of(const conn *c) {
    const char *from = memchr(c->in.p, ' ', c->head);
    const char *to = from ? memchr(from + 1, ' ', (size_t)(c->in.p + c->head - from - 1)) : NULL;
    if (!to) return (slice){"", 0};
    slice path = {from + 1, (size_t)(to - from - 1)};
    const char *query = memchr(path.p, '?', path.n);
    if (query) path.n = (size_t)(query - path.p);
    return path;
}

static bool ends_with(slice s, const char *z) {
    size_t n = strlen(z);
    return s.n >= n && memcmp(s.p + s.n - n, z, n) == 0;
}

// A whole request has come: it is answered and taken out of the buffer. False: the connection is gone.
static bool serve(server *s, conn *c) {
    slice path = path_of(c);
    request r = {.body = c->body, .id = ++s->requests, .model = {"stub", 0}};
    if (strncmp(c->in.p, "POST ", 5) == 0) {
        if (ends_with(path, "/messages")) r.api = API_MESSAGES;
        if (ends_with(path, "/chat/completions")) r.api = API_CHAT;
        if (ends_with(path, "/responses")) r.api = API_RESPONSES;
        if (ends_with(path, "enerateContent")) r.api = API_GENERATE;
        r.stream = ends_with(path, ":streamGenerateContent");
    }
    see_body(&r, c->in.p + c->head, c->body);
    decide(s, &r);
    write_answer(s, c, &r);
    c->answers = true;
    s->calls += r.api && r.tool;
    s->reports += r.api && !r.tool;
    s->refused += !r.api;
    s->bytes_in += c->head + c->body;
    if (s->log)
        fprintf(s->log,
                "{\"path\": \"%.*s\", \"body\": %zu, \"turn\": %llu, \"turns\": %llu, \"tool\": \"%s\"}\n",
                (int)path.n, path.p, c->body, (unsigned long long)r.answers + 1, (unsigned long long)r.turns,
                r.tool ? r.tool : "");
    c->in.n -= c->head + c->body;
    memmove(c->in.p, c->in.p + c->head + c->body, c->in.n);
    c->head = 0;
    if (s->delay_ms) {
        wait_on(s, c);
        return true;
    }
    return pump(s, c);
}

static void on_input(server *s, conn *c) {
    for (;;) {
        room(&c->in, READ_BYTES);
        size_t space = c->in.cap - c->in.n;
        ssize_t n = recv(c->fd, c->in.p + c->in.n, space, 0);
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            drop(s, c);
            return;
        }
        c->in.n += (size_t)n;
        if ((size_t)n < space) break;
    }
    while (!c->answers) {
        if (!c->head && !see_head(c)) break;
        if (c->in.n < c->head + c->body) {
            room(&c->in, c->head + c->body - c->in.n);
            return;
        }
        if (!serve(s, c)) return;
    }
    if (!c->head && c->in.n > HEAD_MAX) drop(s, c);
}

static void on_connect(server *s) {
    for (int fd; (fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0;) {
        int one = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); // small writes leave as such
        conn *c = calloc(1, sizeof *c);
        if (!c) die("memory");
        c->fd = fd;
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) die("epoll_ctl");
        s->connections++;
        if (++s->open > s->most_open) s->most_open = s->open;
    }
}

// --- The whole -------------------------------------------------------------------------------------------

static void print_stats(server *s) {
    struct rusage u;
    if (s->log) fflush(s->log); // whoever has read the line finds the whole log
    getrusage(RUSAGE_SELF, &u);
    double cpu = (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
                 (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
    printf(
        "{\"requests\": %llu, \"calls\": %llu, \"reports\": %llu, \"refused\": %llu, \"connections\": %llu, "
        "\"open\": %llu, \"most_open\": %llu, \"bytes_in\": %llu, \"bytes_out\": %llu, \"cpu\": %.3f}\n",
        (unsigned long long)s->requests, (unsigned long long)s->calls, (unsigned long long)s->reports,
        (unsigned long long)s->refused, (unsigned long long)s->connections, (unsigned long long)s->open,
        (unsigned long long)s->most_open, (unsigned long long)s->bytes_in, (unsigned long long)s->bytes_out,
        cpu);
    fflush(stdout);
    s->most_open = s->open;
}

static void on_signal(server *s) {
    struct signalfd_siginfo info;
    while (read(s->signals, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo == SIGUSR1)
            print_stats(s);
        else
            s->end = true;
    }
}

static void watch(const server *s, int fd, const int *what) {
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = (void *)(uintptr_t)what};
    if (epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) != 0) die("epoll_ctl");
}

static void open_all(server *s) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_port = htons((uint16_t)s->port)};
    socklen_t size = sizeof at;
    int one = 1;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGTERM), sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    s->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    s->epoll = epoll_create1(EPOLL_CLOEXEC);
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (s->signals < 0 || s->epoll < 0 || s->listener < 0) die("descriptors");
    setsockopt(s->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(s->listener, (struct sockaddr *)&at, size) != 0 || listen(s->listener, 4096) != 0)
        die("the port");
    if (getsockname(s->listener, (struct sockaddr *)&at, &size) != 0) die("the port");
    watch(s, s->listener, &s->listener);
    watch(s, s->signals, &s->signals);
    if (s->pid) {
        s->parent = (int)syscall(SYS_pidfd_open, (pid_t)s->pid, 0);
        if (s->parent < 0) die("--pid");
        watch(s, s->parent, &s->parent);
    }
    printf("port %d\n", ntohs(at.sin_port));
    fflush(stdout);
}

static void take_options(server *s, int argc, char **argv) {
    const struct {
        const char *name;
        uint64_t *value, min, max;
    } numbers[] = {{"--port", &s->port, 0, 65535},          {"--turns", &s->turns, 0, 1000000},
                   {"--delay-ms", &s->delay_ms, 0, 60000},  {"--pieces", &s->pieces, 1, PIECES_MAX},
                   {"--writes", &s->writes, 1, EVENTS_MAX}, {"--pid", &s->pid, 1, INT_MAX}};
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        bool known = false;
        if (value && strcmp(argv[i], "--file") == 0) s->file = value, known = true;
        if (value && strcmp(argv[i], "--log") == 0) {
            s->log = fopen(value, "a");
            if (!s->log) die(value);
            known = true;
        }
        for (size_t k = 0; value && k < sizeof numbers / sizeof *numbers; k++) {
            if (strcmp(argv[i], numbers[k].name) != 0) continue;
            char *end;
            *numbers[k].value = strtoull(value, &end, 10);
            known = *value >= '0' && *value <= '9' && !*end && *numbers[k].value >= numbers[k].min &&
                    *numbers[k].value <= numbers[k].max;
        }
        if (known) continue;
        fprintf(stderr, "stub: %s: not an option, or not a value of it; see the head of stub.c\n", argv[i]);
        exit(2);
    }
    if (!realpath(s->file, s->abs)) snprintf(s->abs, sizeof s->abs, "%s", s->file);
}

int main(int argc, char **argv) {
    static server s = {.pieces = 3, .writes = 3, .file = "docs/manual.md"};
    take_options(&s, argc, argv);
    open_all(&s);
    while (!s.end) {
        struct epoll_event events[256];
        int64_t left = s.first ? s.first->due - now_ms() : -1;
        int n = epoll_wait(s.epoll, events, 256, s.first ? (int)(left > 0 ? left : 0) : -1);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < n; i++) {
            void *what = events[i].data.ptr;
            if (what == &s.listener)
                on_connect(&s);
            else if (what == &s.signals)
                on_signal(&s);
            else if (what == &s.parent)
                s.end = true;
            else if (!(events[i].events & EPOLLOUT) || pump(&s, what))
                on_input(&s, what);
        }
        for (int64_t now = now_ms(); s.first && s.first->due <= now;) {
            conn *c = s.first;
            wait_no_more(&s, c);
            if (pump(&s, c) && !c->answers) on_input(&s, c);
        }
    }
    print_stats(&s);
    return 0;
}

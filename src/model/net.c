// net: the thread of a model_net. It drives all transfers with one multi handle of libcurl, told of ready
// sockets by epoll, so that a busy stream costs the same whether ten or a thousand others are idle.
// Everything of libcurl that belongs to the multi handle happens here; callers reach it through an inbox.
// Whatever the transfers do, nothing here waits but for epoll.
#include "model/net_int.h"
#include <deputy/thread.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum : size_t { NET_STACK = (size_t)512 << 10 }; // several times what libcurl and OpenSSL use
enum { EVENTS = 64 };                            // of one look at epoll

typedef struct {
    net_transfer *first, *last;
} transfers;

struct model_net {
    const sys_clock *clock;
    pthread_mutex_t lock;
    // Under the lock.
    bool started, quit;
    net_transfer *inbox, *inbox_last;
    // Written before the thread starts, then read only.
    curl_api curl;
    pthread_t thread;
    int epoll, wake;
    // The thread's.
    CURLM *multi;
    transfers waiting, running;
    bool has_timer, connected;
    int64_t timer_at;
};

static int64_t mono_ms(void) {
    // Not the net's clock: a test's double belongs to the test's thread.
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

// --- Lists -----------------------------------------------------------------------------------------------

static void list_add(transfers *l, net_transfer *t) {
    t->prev = l->last;
    t->next = NULL;
    if (l->last)
        l->last->next = t;
    else
        l->first = t;
    l->last = t;
}

static void list_remove(transfers *l, net_transfer *t) {
    if (t->prev)
        t->prev->next = t->next;
    else
        l->first = t->next;
    if (t->next)
        t->next->prev = t->prev;
    else
        l->last = t->prev;
    t->prev = t->next = NULL;
}

// --- Sockets and the timer of libcurl --------------------------------------------------------------------

static int on_interest(CURL *easy, curl_socket_t fd, int what, void *ctx, void *of_socket) {
    (void)easy, (void)of_socket;
    model_net *n = ctx;
    uint32_t events = 0;
    if (what == CURL_POLL_IN || what == CURL_POLL_INOUT) events |= EPOLLIN;
    if (what == CURL_POLL_OUT || what == CURL_POLL_INOUT) events |= EPOLLOUT;
    struct epoll_event e = {.events = events, .data.fd = fd};
    if (events == 0) {
        // Without a wish there must be no watch: epoll would still tell of a hang-up, again and again.
        epoll_ctl(n->epoll, EPOLL_CTL_DEL, fd, NULL);
        return 0;
    }
    if (epoll_ctl(n->epoll, EPOLL_CTL_MOD, fd, &e) == 0) return 0;
    return epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &e) == 0 ? 0 : -1;
}

static int on_timer(CURLM *multi, long ms, void *ctx) {
    (void)multi;
    model_net *n = ctx;
    n->has_timer = ms >= 0;
    if (ms >= 0) n->timer_at = mono_ms() + ms;
    return 0;
}

static CURLM *new_multi(model_net *n) {
    CURLM *multi = n->curl.multi_init();
    if (!multi) return NULL;
    n->curl.multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, on_interest);
    n->curl.multi_setopt(multi, CURLMOPT_SOCKETDATA, n);
    n->curl.multi_setopt(multi, CURLMOPT_TIMERFUNCTION, on_timer);
    n->curl.multi_setopt(multi, CURLMOPT_TIMERDATA, n);
    n->curl.multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)NET_KEPT_MAX);
    return multi;
}

// --- Transfers -------------------------------------------------------------------------------------------

static void finish(model_net *n, net_transfer *t, CURLcode code);

static void run(model_net *n, net_transfer *t) {
    t->state = NET_RUNNING;
    t->connecting = true;
    list_add(&n->running, t);
    if (!n->multi) n->multi = new_multi(n);
    CURLMcode bad = n->multi ? n->curl.multi_add_handle(n->multi, t->easy) : CURLM_OUT_OF_MEMORY;
    if (bad != CURLM_OK) finish(n, t, bad == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_FAILED_INIT);
}

static void begin(model_net *n, net_transfer *t) {
    size_t connecting = 0;
    for (const net_transfer *r = n->running.first; r; r = r->next)
        connecting += r->connecting && strcmp(r->origin, t->origin) == 0;
    if (connecting < NET_CONNECTING_MAX) {
        run(n, t);
        return;
    }
    t->state = NET_WAITING;
    list_add(&n->waiting, t);
}

// t needs its place among the connecting no longer: the next of its origin gets it.
static void give_up_place(model_net *n, net_transfer *t) {
    if (!t->connecting) return;
    t->connecting = false;
    net_transfer *next = n->waiting.first;
    while (next && strcmp(next->origin, t->origin) != 0) next = next->next;
    if (!next) return;
    list_remove(&n->waiting, next);
    run(n, next);
}

static void finish(model_net *n, net_transfer *t, CURLcode code) {
    bool was_running = t->state == NET_RUNNING;
    list_remove(was_running ? &n->running : &n->waiting, t);
    t->state = NET_OVER;
    if (was_running && n->multi) n->curl.multi_remove_handle(n->multi, t->easy);
    n->curl.easy_cleanup(t->easy);
    t->easy = NULL;
    net_settle(t, code);
    give_up_place(n, t);
    net_unref(t);
}

static void finish_all(model_net *n, CURLcode code) {
    // Those that wait first, or they would begin when the others make room.
    while (n->waiting.first) finish(n, n->waiting.first, code);
    while (n->running.first) finish(n, n->running.first, code);
}

void net_connected(net_transfer *t) {
    t->net->connected = true; // libcurl is on the stack: the place is given up later
}

static void settle_connected(model_net *n) {
    n->connected = false;
    for (net_transfer *t = n->running.first, *next; t; t = next) {
        next = t->next;
        if (t->connecting && t->is_connected) give_up_place(n, t);
    }
}

void net_begin(net_transfer *t) {
    t->begun = true;
    net_ask(t, NET_ASK_BEGIN);
}

// --- The inbox -------------------------------------------------------------------------------------------

void net_ask(net_transfer *t, unsigned what) {
    model_net *n = t->net;
    net_ref(t);
    pthread_mutex_lock(&n->lock);
    bool queued = t->asked != 0, first = !n->inbox;
    t->asked |= what;
    if (!queued) {
        t->inbox_next = NULL;
        if (first)
            n->inbox = t;
        else
            n->inbox_last->inbox_next = t;
        n->inbox_last = t;
    }
    pthread_mutex_unlock(&n->lock);
    if (queued) net_unref(t);
    if (first) eventfd_write(n->wake, 1);
}

static net_transfer *next_asked(model_net *n, unsigned *what, bool *quit) {
    pthread_mutex_lock(&n->lock);
    net_transfer *t = n->inbox;
    *quit = n->quit;
    if (t) {
        n->inbox = t->inbox_next;
        *what = t->asked;
        t->asked = 0;
    }
    pthread_mutex_unlock(&n->lock);
    return t;
}

// False: the net ends.
static bool read_inbox(model_net *n) {
    unsigned what;
    bool quit;
    for (net_transfer *t; (t = next_asked(n, &what, &quit));) {
        if (what & NET_ASK_BEGIN) {
            net_ref(t);
            begin(n, t);
        }
        bool over = t->state == NET_OVER;
        if (!over && (what & NET_ASK_LEAVE || quit))
            finish(n, t, CURLE_ABORTED_BY_CALLBACK);
        else if (t->state == NET_RUNNING && what & NET_ASK_RESUME)
            n->curl.easy_pause(t->easy, CURLPAUSE_CONT);
        net_unref(t);
    }
    return !quit;
}

// --- The loop --------------------------------------------------------------------------------------------

static void check(model_net *n, CURLMcode code) {
    if (code == CURLM_OK) return;
    // Out of memory or of watches: the handle is of no more use; its transfers fail and may be tried again.
    for (net_transfer *t = n->running.first; t; t = t->next)
        (void)snprintf(t->error, sizeof t->error, "libcurl: %s", n->curl.multi_strerror(code));
    finish_all(n, CURLE_FAILED_INIT);
    n->curl.multi_cleanup(n->multi);
    n->multi = new_multi(n);
}

static void act(model_net *n, int fd, uint32_t events) {
    int bits = 0;
    if (events & EPOLLIN) bits |= CURL_CSELECT_IN;
    if (events & EPOLLOUT) bits |= CURL_CSELECT_OUT;
    if (events & (EPOLLERR | EPOLLHUP)) bits |= CURL_CSELECT_ERR;
    int running;
    if (n->multi) check(n, n->curl.multi_socket_action(n->multi, fd, bits, &running));
}

static void collect(model_net *n) {
    if (n->connected) settle_connected(n);
    CURLMsg *m;
    int queued;
    while (n->multi && (m = n->curl.multi_info_read(n->multi, &queued))) {
        if (m->msg != CURLMSG_DONE) continue;
        CURLcode code = m->data.result; // gone with the handle
        net_transfer *t = NULL;
        n->curl.easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        finish(n, t, code);
    }
}

static void look_once(model_net *n) {
    struct epoll_event events[EVENTS];
    int64_t wait = n->has_timer ? n->timer_at - mono_ms() : -1;
    if (n->has_timer && wait < 0) wait = 0;
    if (wait > INT32_MAX) wait = INT32_MAX;
    int got = epoll_wait(n->epoll, events, EVENTS, (int)wait);
    for (int i = 0; i < got; i++) {
        eventfd_t ignored;
        if (events[i].data.fd == n->wake)
            eventfd_read(n->wake, &ignored);
        else
            act(n, events[i].data.fd, events[i].events);
    }
    if (n->has_timer && mono_ms() >= n->timer_at) {
        n->has_timer = false;
        act(n, CURL_SOCKET_TIMEOUT, 0);
    }
    collect(n);
}

static void *thread_main(void *ctx) {
    model_net *n = ctx;
    pthread_setname_np(pthread_self(), "deputy-net");
    n->multi = new_multi(n);
    while (read_inbox(n)) look_once(n);
    finish_all(n, CURLE_ABORTED_BY_CALLBACK);
    if (n->multi) n->curl.multi_cleanup(n->multi);
    return NULL;
}

// --- Life ------------------------------------------------------------------------------------------------

static dep_status start_locked(model_net *n, dep_err *err) {
    TRY(curl_load(NULL, &n->curl, err));
    n->epoll = epoll_create1(EPOLL_CLOEXEC);
    n->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = n->wake};
    int bad = n->epoll < 0 || n->wake < 0 || epoll_ctl(n->epoll, EPOLL_CTL_ADD, n->wake, &e) < 0 ? errno : 0;
    if (!bad) bad = thread_start(&n->thread, NET_STACK, thread_main, n);
    if (!bad) {
        n->started = true;
        return DEP_OK;
    }
    if (n->epoll >= 0) close(n->epoll);
    if (n->wake >= 0) close(n->wake);
    n->curl.global_cleanup();
    return err_os(err, bad, "the thread for network traffic cannot be started");
}

dep_status net_start(model_net *n, dep_err *err) {
    pthread_mutex_lock(&n->lock);
    dep_status status = n->started ? DEP_OK : start_locked(n, err);
    pthread_mutex_unlock(&n->lock);
    return status;
}

static void release(void *p) {
    model_net *n = p;
    if (n->started) {
        pthread_mutex_lock(&n->lock);
        n->quit = true;
        pthread_mutex_unlock(&n->lock);
        eventfd_write(n->wake, 1);
        pthread_join(n->thread, NULL);
        close(n->epoll);
        close(n->wake);
        n->curl.global_cleanup();
    }
    pthread_mutex_destroy(&n->lock);
}

model_net *model_net_new(arena *a, const sys_clock *clock) {
    model_net *n = NEW(a, model_net);
    n->clock = clock;
    pthread_mutex_init(&n->lock, NULL);
    arena_defer(a, release, n);
    return n;
}

const sys_clock *net_clock(const model_net *n) {
    return n->clock;
}

const curl_api *net_curl(const model_net *n) {
    return &n->curl;
}

dep_status model_can_connect(dep_err *err) {
    curl_api api;
    TRY(curl_load(NULL, &api, err));
    api.global_cleanup();
    return DEP_OK;
}

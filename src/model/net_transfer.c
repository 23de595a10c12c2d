// net_transfer: one transfer between its caller and the thread. Callbacks of libcurl run on the thread, copy
// bytes into memory of the transfer and wake the caller; they never touch an arena. Above NET_BUFFER_MAX
// bytes that nobody has taken the transfer is paused.
#include "model/net_int.h"
#include <deputy/thread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

enum { GROW_FROM = 16 << 10 };

// --- Callbacks: on the thread ----------------------------------------------------------------------------

static bool make_room(net_transfer *t, size_t bytes) {
    if (bytes <= t->in_cap - t->in_n) return true;
    size_t cap = t->in_cap ? t->in_cap : GROW_FROM;
    while (cap < t->in_n + bytes) cap *= 2;
    char *grown = realloc(t->in, cap);
    if (!grown) return false;
    t->in = grown;
    t->in_cap = cap;
    return true;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's
static size_t on_body(char *p, size_t size, size_t n, void *ctx) {
    net_transfer *t = ctx;
    size_t bytes = size * n, ret = bytes;
    pthread_mutex_lock(&t->lock);
    if (t->in_n && bytes > NET_BUFFER_MAX - t->in_n) {
        t->paused = true;
        ret = CURL_WRITEFUNC_PAUSE; // the same bytes come again
    } else if (!make_room(t, bytes)) {
        t->facts.no_memory = true;
        ret = CURL_WRITEFUNC_ERROR;
    } else if (bytes) {
        memcpy(t->in + t->in_n, p, bytes);
        t->in_n += bytes;
        pthread_cond_signal(&t->moved);
    }
    pthread_mutex_unlock(&t->lock);
    return ret;
}

static void keep_header(char *to, str value) {
    value = str_trim(value);
    size_t n = value.n < NET_HEADER_KEPT - 1 ? value.n : NET_HEADER_KEPT - 1;
    if (n) memcpy(to, value.p, n);
    to[n] = 0;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's
static size_t on_header(char *p, size_t size, size_t n, void *ctx) {
    net_transfer *t = ctx;
    str line = {p, size * n}, name, value;
    long status = 0;
    t->curl->easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status);
    pthread_mutex_lock(&t->lock);
    net_facts *f = &t->facts;
    f->header_lines++;
    f->status = (int)status;
    // A new status line: what came before belonged to an interim answer.
    if (str_starts(line, S("HTTP/"))) f->retry_after[0] = f->content_type[0] = 0;
    if (str_cut(line, ':', &name, &value)) {
        if (str_ieq(name, S("retry-after"))) keep_header(f->retry_after, value);
        if (str_ieq(name, S("content-type"))) keep_header(f->content_type, value);
    }
    pthread_mutex_unlock(&t->lock);
    return size * n;
}

static int on_progress(void *ctx, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up) {
    (void)down_all, (void)down, (void)up_all;
    net_transfer *t = ctx;
    curl_off_t since = 0;
    bool connected = false;
    if (!t->is_connected) {
        t->curl->easy_getinfo(t->easy, CURLINFO_PRETRANSFER_TIME_T, &since);
        connected = since > 0;
    }
    if (!connected && up == t->uploaded_seen) return 0;
    t->uploaded_seen = up;
    t->is_connected = t->is_connected || connected;
    pthread_mutex_lock(&t->lock);
    t->facts.uploaded = up;
    if (connected) t->facts.connected = true;
    pthread_mutex_unlock(&t->lock);
    if (connected) net_connected(t);
    return 0;
}

// Sockets must not be seen by children that start meanwhile.
static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)ctx, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void net_settle(net_transfer *t, CURLcode code) {
    pthread_mutex_lock(&t->lock);
    t->facts.done = true;
    t->facts.code = code;
    pthread_cond_signal(&t->moved);
    pthread_mutex_unlock(&t->lock);
}

// --- Life ------------------------------------------------------------------------------------------------

static char *copy(str s) {
    char *p = malloc(s.n + 1);
    if (!p) return NULL;
    if (s.n) memcpy(p, s.p, s.n);
    p[s.n] = 0;
    return p;
}

static void destroy(net_transfer *t) {
    // Still there when it was never handed over.
    if (t->easy) t->curl->easy_cleanup(t->easy);
    if (t->headers) t->curl->slist_free_all(t->headers);
    pthread_cond_destroy(&t->moved);
    pthread_mutex_destroy(&t->lock);
    free(t->body);
    free(t->origin);
    free(t->in);
    free(t->out);
    free(t);
}

void net_ref(net_transfer *t) {
    pthread_mutex_lock(&t->lock);
    t->refs++;
    pthread_mutex_unlock(&t->lock);
}

void net_unref(net_transfer *t) {
    pthread_mutex_lock(&t->lock);
    bool last = --t->refs == 0;
    pthread_mutex_unlock(&t->lock);
    if (last) destroy(t);
}

static bool set_callbacks(net_transfer *t) {
    CURLcode bad = CURLE_OK;
#define SET(option, value)                                                                                   \
    if (bad == CURLE_OK) bad = t->curl->easy_setopt(t->easy, (option), (value))
    SET(CURLOPT_PRIVATE, t);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, t);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, t);
    SET(CURLOPT_NOPROGRESS, 0L);
    SET(CURLOPT_XFERINFOFUNCTION, on_progress);
    SET(CURLOPT_XFERINFODATA, t);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_ERRORBUFFER, t->error);
    SET(CURLOPT_NOSIGNAL, 1L);
#undef SET
    return bad == CURLE_OK;
}

net_transfer *net_transfer_new(model_net *n, str origin, str body) {
    net_transfer *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    t->net = n;
    t->curl = net_curl(n);
    t->refs = 1;
    pthread_mutex_init(&t->lock, NULL);
    thread_cond_init(&t->moved);
    t->origin = copy(origin);
    t->body = copy(body);
    t->easy = t->curl->easy_init();
    if (t->origin && t->body && t->easy && set_callbacks(t)) return t;
    net_unref(t);
    return NULL;
}

// --- The caller ------------------------------------------------------------------------------------------

str net_wait(net_transfer *t, int ms, net_facts *facts) {
    struct timespec until = thread_in_ms(ms);
    pthread_mutex_lock(&t->lock);
    int late = 0;
    while (t->in_n == 0 && !t->facts.done && late == 0)
        late = pthread_cond_timedwait(&t->moved, &t->lock, &until);
    // The two buffers change places, so that nothing is copied while the thread may have to wait.
    char *taken = t->in;
    size_t n = t->in_n, cap = t->in_cap;
    if (n) {
        t->in = t->out;
        t->in_cap = t->out_cap;
        t->in_n = 0;
        t->out = taken;
        t->out_cap = cap;
    }
    bool resume = t->paused && !t->facts.done;
    t->paused = false;
    *facts = t->facts;
    pthread_mutex_unlock(&t->lock);
    if (resume) net_ask(t, NET_ASK_RESUME);
    return (str){t->out, n};
}

void net_leave(net_transfer *t) {
    pthread_mutex_lock(&t->lock);
    bool done = t->facts.done;
    pthread_mutex_unlock(&t->lock);
    // One that never began is nobody else's.
    if (!done && t->begun) net_ask(t, NET_ASK_LEAVE);
    net_unref(t);
}

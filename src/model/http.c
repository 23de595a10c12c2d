// http: drives one transfer of libcurl's multi interface at a time. Callbacks of libcurl only copy bytes into
// memory that the client owns; everything that may allocate from an arena, and so unwind, happens between two
// calls of libcurl. A client that was left in the middle of a transfer that way is put in order by its next
// request or its release. Knows nothing of any model API.
#include "model/curl_int.h"
#include "model/http_int.h"
#include <deputy/model.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

enum {
    POLL_MS = 100,     // longest wait between two looks at cancelled()
    LINGER_MS = 300,   // for the end of an answer of which no more is needed
    HEADER_KEPT = 128, // bytes of a header value that is looked at
};

struct http_client {
    const sys_clock *clock;
    curl_api curl;
    bool loaded;
    CURLM *multi;
    CURL *easy;
    bool attached;
    struct curl_slist *headers;
    char *in; // body bytes between a callback and the loop
    size_t in_n, in_cap;
    bool in_failed;
    size_t header_lines; // progress
    char retry_after[HEADER_KEPT], content_type[HEADER_KEPT];
    char error[CURL_ERROR_SIZE];
};

// State of one request beside the client's.
typedef struct {
    http_client *c;
    const http_request *rq;
    http_response *ret;
    buf error_body;
    int64_t quiet_since, linger_until; // linger_until 0: more is needed
    curl_off_t uploaded;
    size_t header_lines;
    bool connected;
} transfer;

// --- Callbacks -------------------------------------------------------------------------------------------

static size_t on_body(char *p, size_t size, size_t n, void *ctx) {
    http_client *c = ctx;
    size_t bytes = size * n;
    if (bytes > c->in_cap - c->in_n) {
        size_t cap = (c->in_n + bytes) * 2;
        char *grown = realloc(c->in, cap);
        if (!grown) {
            c->in_failed = true;
            return CURL_WRITEFUNC_ERROR;
        }
        c->in = grown;
        c->in_cap = cap;
    }
    if (bytes) memcpy(c->in + c->in_n, p, bytes);
    c->in_n += bytes;
    return bytes;
}

static void keep_header(char *to, str value) {
    value = str_trim(value);
    size_t n = value.n < HEADER_KEPT - 1 ? value.n : HEADER_KEPT - 1;
    if (n) memcpy(to, value.p, n);
    to[n] = 0;
}

// NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's
static size_t on_header(char *p, size_t size, size_t n, void *ctx) {
    http_client *c = ctx;
    str line = {p, size * n}, name, value;
    c->header_lines++;
    // A new status line: what came before belonged to an interim answer.
    if (str_starts(line, S("HTTP/"))) c->retry_after[0] = c->content_type[0] = 0;
    if (str_cut(line, ':', &name, &value)) {
        if (str_ieq(name, S("retry-after"))) keep_header(c->retry_after, value);
        if (str_ieq(name, S("content-type"))) keep_header(c->content_type, value);
    }
    return size * n;
}

// Sockets must not be seen by children that start meanwhile.
static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)ctx, (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

// --- The client's life -----------------------------------------------------------------------------------

static void detach(http_client *c) {
    if (c->attached) c->curl.multi_remove_handle(c->multi, c->easy);
    c->attached = false;
    if (c->headers) c->curl.slist_free_all(c->headers);
    c->headers = NULL;
}

static void release(void *p) {
    http_client *c = p;
    if (!c->loaded) return;
    detach(c);
    if (c->easy) c->curl.easy_cleanup(c->easy);
    if (c->multi) c->curl.multi_cleanup(c->multi);
    c->curl.global_cleanup();
    free(c->in);
    c->loaded = false;
}

http_client *http_client_new(arena *a, const sys_clock *clock) {
    http_client *c = NEW(a, http_client);
    c->clock = clock;
    arena_defer(a, release, c);
    return c;
}

static dep_status make_ready(http_client *c, dep_err *err) {
    if (!c->loaded) TRY(curl_load(NULL, &c->curl, err));
    c->loaded = true;
    detach(c);
    if (!c->multi) c->multi = c->curl.multi_init();
    if (!c->easy) c->easy = c->curl.easy_init();
    if (!c->multi || !c->easy) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    c->curl.easy_reset(c->easy);
    c->in_n = c->header_lines = 0;
    c->in_failed = false;
    c->retry_after[0] = c->content_type[0] = c->error[0] = 0;
    return DEP_OK;
}

static dep_status add_header(http_client *c, const char *line, dep_err *err) {
    struct curl_slist *grown = c->curl.slist_append(c->headers, line);
    if (!grown) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    c->headers = grown;
    return DEP_OK;
}

static dep_status set_up(http_client *c, arena *a, const http_request *rq, dep_err *err) {
    for (size_t i = 0; i < rq->n_headers; i++) TRY(add_header(c, str_cz(a, rq->headers[i]), err));
    // No question before a large body: it costs a round trip, and some servers never answer it.
    TRY(add_header(c, "Expect:", err));
    CURLcode bad = CURLE_OK;
#define SET(option, value)                                                                                   \
    if (bad == CURLE_OK) bad = c->curl.easy_setopt(c->easy, (option), (value))
    SET(CURLOPT_URL, str_cz(a, rq->url));
    if (rq->get) {
        SET(CURLOPT_HTTPGET, 1L);
    } else {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body.n);
        SET(CURLOPT_POSTFIELDS, rq->body.n ? rq->body.p : "");
    }
    SET(CURLOPT_HTTPHEADER, c->headers);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, c);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_socket);
    SET(CURLOPT_ERRORBUFFER, c->error);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L); // a key goes only where it was configured to go
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)rq->connect_ms);
    if (rq->loopback) SET(CURLOPT_NOPROXY, "*");
    if (rq->ca_file.n) SET(CURLOPT_CAINFO, str_cz(a, rq->ca_file));
#undef SET
    if (bad != CURLE_OK)
        return err_set(err, DEP_ERR_INTERNAL, "libcurl refuses an option: %s", c->curl.easy_strerror(bad));
    // Where the library knows it: giving up while a name is looked up must not wait for the resolver's
    // thread.
    (void)c->curl.easy_setopt(c->easy, CURLOPT_QUICK_EXIT, 1L);
    CURLMcode code = c->curl.multi_add_handle(c->multi, c->easy);
    if (code != CURLM_OK) return err_set(err, DEP_ERR_INTERNAL, "libcurl: %s", c->curl.multi_strerror(code));
    c->attached = true;
    return DEP_OK;
}

// --- The loop --------------------------------------------------------------------------------------------

// Hands on what the callbacks have collected.
static dep_status drain(transfer *t, dep_err *err) {
    http_client *c = t->c;
    if (c->in_failed) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    str bytes = {c->in, c->in_n};
    c->in_n = 0;
    if (bytes.n == 0 || t->linger_until) return DEP_OK;
    long status = 0;
    c->curl.easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        buf_add(&t->error_body, bytes);
        return DEP_OK;
    }
    t->ret->received += bytes.n;
    if (t->ret->received > t->rq->max_body)
        return err_set(err, DEP_ERR_LIMIT, "the answer is larger than %zu bytes", t->rq->max_body);
    bool done = false;
    TRY(t->rq->data(t->rq->data_ctx, bytes, &done, err));
    if (done) t->linger_until = c->clock->mono_ms(c->clock->ctx) + LINGER_MS;
    return DEP_OK;
}

// Notes progress; TIMEOUT when there was none for too long.
static dep_status check_silence(transfer *t, bool progress, int64_t now, dep_err *err) {
    http_client *c = t->c;
    curl_off_t value = 0;
    if (!t->connected) {
        c->curl.easy_getinfo(c->easy, CURLINFO_PRETRANSFER_TIME_T, &value);
        t->connected = value > 0;
        progress = progress || t->connected;
    }
    c->curl.easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &value);
    if (value != t->uploaded || c->header_lines != t->header_lines) progress = true;
    t->uploaded = value;
    t->header_lines = c->header_lines;
    if (progress) t->quiet_since = now;
    if (!t->connected) return DEP_OK; // libcurl's own time-out covers this
    bool answered = c->header_lines > 0;
    int limit = answered ? t->rq->idle_ms : t->rq->first_byte_ms;
    if (now - t->quiet_since < limit) return DEP_OK;
    return answered ? err_set(err, DEP_ERR_TIMEOUT,
                              "the server fell silent in the middle of its answer for %.1f s", limit / 1000.0)
                    : err_set(err, DEP_ERR_TIMEOUT, "no answer within %.1f s", limit / 1000.0);
}

// Trying again does not mend these.
static bool lasting(CURLcode code) {
    switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR: return true;
    default: return false;
    }
}

static dep_status finish(transfer *t, CURLcode code, dep_err *err) {
    if (code == CURLE_OK || t->linger_until) return DEP_OK;
    http_client *c = t->c;
    const char *why = c->error[0] ? c->error : c->curl.easy_strerror(code);
    if (code == CURLE_OUT_OF_MEMORY) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    // Nothing listens on this machine: waiting will not start it.
    bool nobody = code == CURLE_COULDNT_CONNECT && t->rq->loopback;
    t->ret->may_retry = t->ret->received == 0 && !lasting(code) && !nobody;
    if (code == CURLE_OPERATION_TIMEDOUT)
        return err_set(err, DEP_ERR_TIMEOUT, "no connection within %.1f s", t->rq->connect_ms / 1000.0);
    return err_set(err, DEP_ERR_NETWORK, "%s", why);
}

static dep_status drive(transfer *t, dep_err *err) {
    http_client *c = t->c;
    const http_request *rq = t->rq;
    t->quiet_since = c->clock->mono_ms(c->clock->ctx);
    for (;;) {
        int running = 0, queued;
        CURLMcode code = c->curl.multi_perform(c->multi, &running);
        if (code != CURLM_OK)
            return err_set(err, DEP_ERR_INTERNAL, "libcurl: %s", c->curl.multi_strerror(code));
        bool progress = c->in_n > 0;
        TRY(drain(t, err));
        for (CURLMsg *m; (m = c->curl.multi_info_read(c->multi, &queued));)
            if (m->msg == CURLMSG_DONE) return finish(t, m->data.result, err);
        if (rq->cancelled && rq->cancelled(rq->cancelled_ctx))
            return err_set(err, DEP_ERR_CANCELLED, "stopped");
        int64_t now = c->clock->mono_ms(c->clock->ctx);
        if (t->linger_until && now >= t->linger_until) return DEP_OK;
        TRY(check_silence(t, progress, now, err));
        code = c->curl.multi_poll(c->multi, NULL, 0, POLL_MS, NULL);
        if (code != CURLM_OK)
            return err_set(err, DEP_ERR_INTERNAL, "libcurl: %s", c->curl.multi_strerror(code));
    }
}

// Retry-After: seconds, or a date of HTTP.
static int64_t retry_after_ms(http_client *c) {
    uint64_t seconds;
    if (!c->retry_after[0]) return -1;
    if (str_u64(str_z(c->retry_after), INT32_MAX, &seconds)) return (int64_t)seconds * 1000;
    time_t at = c->curl.getdate(c->retry_after, NULL);
    if (at == (time_t)-1) return -1;
    int64_t left = (int64_t)at * 1000 - c->clock->now_ms(c->clock->ctx);
    return left > 0 ? left : 0;
}

dep_status http_send(http_client *c, arena *a, const http_request *rq, http_response *ret, dep_err *err) {
    *ret = (http_response){.retry_after_ms = -1};
    TRY(make_ready(c, err));
    transfer t = {
        .c = c, .rq = rq, .ret = ret, .error_body = buf_new(a, rq->max_error_body ? rq->max_error_body : 1)};
    dep_status status = set_up(c, a, rq, err);
    if (status == DEP_OK) status = drive(&t, err);
    long code = 0;
    c->curl.easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &code);
    ret->status = (int)code;
    ret->retry_after_ms = retry_after_ms(c);
    ret->content_type =
        str_lower(a, str_sub(str_z(c->content_type), 0, str_chr(str_z(c->content_type), ';')));
    ret->content_type = str_trim(ret->content_type);
    ret->body = buf_str(&t.error_body);
    detach(c);
    return status;
}

struct model_net {
    const sys_clock *clock;
};

model_net *model_net_new(arena *a, const sys_clock *clock) {
    model_net *n = NEW(a, model_net);
    n->clock = clock;
    return n;
}

dep_status model_can_connect(dep_err *err) {
    curl_api api;
    TRY(curl_load(NULL, &api, err));
    api.global_cleanup();
    return DEP_OK;
}

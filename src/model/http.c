// http: one request at a time for a caller. The transfer itself runs on the net's thread; here its bytes are
// taken, its time-outs and limits kept and its end told, all on the caller's thread and never from within
// libcurl. A client that was left in the middle of a request by an unwinding caller is put in order by its
// next request or its release. Knows nothing of any model API.
#include "model/http_int.h"
#include "model/net_int.h"
#include <unistd.h>

enum {
    WAIT_MS = 100,   // longest wait between two looks at cancelled()
    LINGER_MS = 300, // for the end of an answer of which no more is needed
};

struct http_client {
    model_net *net;
    net_transfer *current; // of the request that runs, or that was left
};

// State of one request.
typedef struct {
    http_client *c;
    net_transfer *t;
    const sys_clock *clock;
    const http_request *rq;
    http_response *ret;
    net_facts facts; // newest
    buf error_body;
    int64_t began, quiet_since, linger_until; // linger_until 0: more is needed
    int64_t uploaded;
    size_t header_lines;
    bool connected;
} exchange;

// --- The client's life -----------------------------------------------------------------------------------

static void leave(void *p) {
    http_client *c = p;
    if (c->current) net_leave(c->current);
    c->current = NULL;
}

http_client *http_client_new(arena *a, model_net *net) {
    http_client *c = NEW(a, http_client);
    c->net = net;
    arena_defer(a, leave, c);
    return c;
}

static dep_status add_header(net_transfer *t, const char *line, dep_err *err) {
    struct curl_slist *grown = t->curl->slist_append(t->headers, line);
    if (!grown) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    t->headers = grown;
    return DEP_OK;
}

// scheme://host:port
static str origin_of(str url) {
    size_t host = str_find(url, S("://"));
    if (host == SIZE_MAX) return url;
    size_t path = str_chr(str_sub(url, host + 3, url.n), '/');
    return path == SIZE_MAX ? url : str_sub(url, 0, host + 3 + path);
}

// libcurl reads some hundred certificates anew for each connection (20 ms of the one thread) unless they come
// from one file alone. So the system's directory of them, which as a rule holds the same ones, is left out at
// first. False: there is no such file, and the directory stays.
static bool one_file_of_authorities(net_transfer *t, const http_request *rq) {
    if (rq->ca_file.n) return true; // instead of the system's, of which libcurl knows two places
    char *file = NULL;
    return t->curl->easy_getinfo(t->easy, CURLINFO_CAINFO, &file) == CURLE_OK && file &&
           access(file, R_OK) == 0;
}

static dep_status set_up(net_transfer *t, arena *a, const http_request *rq, bool one_file, dep_err *err) {
    for (size_t i = 0; i < rq->n_headers; i++) TRY(add_header(t, str_cz(a, rq->headers[i]), err));
    // No question before a large body: it costs a round trip, and some servers never answer it.
    TRY(add_header(t, "Expect:", err));
    CURLcode bad = CURLE_OK;
#define SET(option, value)                                                                                   \
    if (bad == CURLE_OK) bad = t->curl->easy_setopt(t->easy, (option), (value))
    SET(CURLOPT_URL, str_cz(a, rq->url));
    if (rq->get) {
        SET(CURLOPT_HTTPGET, 1L);
    } else {
        SET(CURLOPT_POST, 1L);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)rq->body.n);
        SET(CURLOPT_POSTFIELDS, t->body);
    }
    SET(CURLOPT_HTTPHEADER, t->headers);
    // One stream a connection: then a pause holds back only its own, giving up closes it, and a connection
    // that died unnoticed takes no other stream with it.
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_FOLLOWLOCATION, 0L); // a key goes only where it was configured to go
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)rq->connect_ms);
    if (rq->loopback) SET(CURLOPT_NOPROXY, "*");
    if (rq->ca_file.n) SET(CURLOPT_CAINFO, str_cz(a, rq->ca_file));
    if (one_file) SET(CURLOPT_CAPATH, (char *)NULL);
#undef SET
    if (bad != CURLE_OK)
        return err_set(err, DEP_ERR_INTERNAL, "libcurl refuses an option: %s", t->curl->easy_strerror(bad));
    // Where the library knows it: giving up while a name is looked up must not wait for the resolver's
    // thread.
    (void)t->curl->easy_setopt(t->easy, CURLOPT_QUICK_EXIT, 1L);
    return DEP_OK;
}

// --- The loop --------------------------------------------------------------------------------------------

static int64_t mono_ms(const exchange *x) {
    return x->clock->mono_ms(x->clock->ctx);
}

static dep_status drain(exchange *x, str bytes, dep_err *err) {
    if (bytes.n == 0 || x->linger_until) return DEP_OK;
    bool done = false;
    if (x->facts.status != 200) {
        buf_add(&x->error_body, bytes);
        done = x->error_body.over;
    } else {
        x->ret->received += bytes.n;
        if (x->ret->received > x->rq->max_body)
            return err_set(err, DEP_ERR_LIMIT, "the answer is larger than %zu bytes", x->rq->max_body);
        TRY(x->rq->data(x->rq->data_ctx, bytes, &done, err));
    }
    if (done) x->linger_until = mono_ms(x) + LINGER_MS;
    return DEP_OK;
}

static dep_status no_connection(exchange *x, dep_err *err) {
    x->ret->may_retry = true;
    return err_set(err, DEP_ERR_TIMEOUT, "no connection within %.1f s", x->rq->connect_ms / 1000.0);
}

// Notes progress; TIMEOUT when there was none for too long.
static dep_status check_silence(exchange *x, bool progress, int64_t now, dep_err *err) {
    const net_facts *f = &x->facts;
    progress = progress || f->connected != x->connected || f->uploaded != x->uploaded ||
               f->header_lines != x->header_lines;
    x->connected = f->connected;
    x->uploaded = f->uploaded;
    x->header_lines = f->header_lines;
    if (progress) x->quiet_since = now;
    if (!x->connected) {
        // libcurl keeps this time-out too, but only from when it was this transfer's turn to connect.
        return now - x->began < x->rq->connect_ms ? DEP_OK : no_connection(x, err);
    }
    bool answered = f->header_lines > 0;
    int limit = answered ? x->rq->idle_ms : x->rq->first_byte_ms;
    if (now - x->quiet_since < limit) return DEP_OK;
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

static dep_status finish(exchange *x, dep_err *err) {
    CURLcode code = x->facts.code;
    if (code == CURLE_OK || x->linger_until) return DEP_OK;
    if (code == CURLE_OUT_OF_MEMORY || x->facts.no_memory)
        return err_set(err, DEP_ERR_NOMEM, "out of memory");
    if (code == CURLE_OPERATION_TIMEDOUT) {
        dep_status status = no_connection(x, err);
        x->ret->may_retry = x->ret->received == 0;
        return status;
    }
    // Nothing listens on this machine: waiting will not start it.
    bool nobody = code == CURLE_COULDNT_CONNECT && x->rq->loopback;
    x->ret->may_retry = x->ret->received == 0 && !lasting(code) && !nobody;
    return err_set(err, DEP_ERR_NETWORK, "%s",
                   x->t->error[0] ? x->t->error : x->t->curl->easy_strerror(code));
}

static dep_status drive(exchange *x, dep_err *err) {
    const http_request *rq = x->rq;
    x->began = x->quiet_since = mono_ms(x);
    net_begin(x->t);
    for (;;) {
        str bytes = net_wait(x->t, WAIT_MS, &x->facts);
        TRY(drain(x, bytes, err));
        if (bytes.n == 0 && x->facts.done) return finish(x, err);
        if (rq->cancelled && rq->cancelled(rq->cancelled_ctx))
            return err_set(err, DEP_ERR_CANCELLED, "stopped");
        int64_t now = mono_ms(x);
        if (x->linger_until && now >= x->linger_until) return DEP_OK;
        TRY(check_silence(x, bytes.n > 0, now, err));
    }
}

// Retry-After: seconds, or a date of HTTP.
static int64_t retry_after_ms(const exchange *x) {
    uint64_t seconds;
    const char *said = x->facts.retry_after;
    if (!*said) return -1;
    if (str_u64(str_z(said), INT32_MAX, &seconds)) return (int64_t)seconds * 1000;
    time_t at = x->t->curl->getdate(said, NULL);
    if (at == (time_t)-1) return -1;
    int64_t left = (int64_t)at * 1000 - x->clock->now_ms(x->clock->ctx);
    return left > 0 ? left : 0;
}

// *one_file: whether the system's directory of certificates is to be left out; false afterwards when it was
// not.
static dep_status send_once(http_client *c, arena *a, const http_request *rq, bool *one_file, CURLcode *code,
                            http_response *ret, dep_err *err) {
    *ret = (http_response){.retry_after_ms = -1};
    c->current = net_transfer_new(c->net, origin_of(rq->url), rq->get ? (str){0} : rq->body);
    if (!c->current) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    exchange x = {.c = c,
                  .t = c->current,
                  .clock = net_clock(c->net),
                  .rq = rq,
                  .ret = ret,
                  .error_body = buf_new(a, rq->max_error_body ? rq->max_error_body : 1)};
    *one_file = *one_file && one_file_of_authorities(x.t, rq);
    dep_status status = set_up(x.t, a, rq, *one_file, err);
    if (status == DEP_OK) status = drive(&x, err);
    *code = x.facts.done ? x.facts.code : CURLE_OK;
    str type = str_z(x.facts.content_type);
    ret->status = x.facts.status;
    ret->retry_after_ms = retry_after_ms(&x);
    ret->content_type = str_trim(str_lower(a, str_sub(type, 0, str_chr(type, ';'))));
    ret->body = buf_str(&x.error_body);
    leave(c);
    return status;
}

dep_status http_send(http_client *c, arena *a, const http_request *rq, http_response *ret, dep_err *err) {
    leave(c);
    *ret = (http_response){.retry_after_ms = -1};
    TRY(net_start(c->net, err));
    bool one_file = true;
    CURLcode code = CURLE_OK;
    dep_status status = send_once(c, a, rq, &one_file, &code, ret, err);
    if (code == CURLE_PEER_FAILED_VERIFICATION && one_file && !rq->ca_file.n) {
        one_file = false; // the directory may know the authority
        status = send_once(c, a, rq, &one_file, &code, ret, err);
    }
    return status;
}

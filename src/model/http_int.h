// http: one request at a time whose answer streams. Time-outs, cancellation and limits are ours; proxies,
// certificates and connection reuse are libcurl's. Private to src/model. A client is used by one thread at a
// time; clients of one net by any number.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <deputy/sys.h>

typedef struct model_net model_net;

// What a base URL says, checked before anything is sent: http or https, a plain host, no user, query or
// fragment.
typedef struct {
    bool https;
    bool loopback; // localhost, 127.0.0.0/8, [::1]
    str base;      // without trailing slashes
    str host;      // without port and brackets
} http_url;
// Errors: INVALID. With a key, http to a host that is not loopback is REFUSED: the key would travel in the
// clear.
[[nodiscard]] dep_status http_url_check(arena *a, str url, bool has_key, http_url *ret, dep_err *err);

typedef struct http_client http_client;
// Costs nothing until the first request; ends with the arena, before the net. Time-outs go by the net's
// clock.
http_client *http_client_new(arena *a, model_net *net);

typedef struct {
    str url;
    bool loopback;      // no proxy: what is meant for this machine stays on it
    const str *headers; // "name: value"
    size_t n_headers;
    bool get; // GET, without a body; else POST
    str body;
    str ca_file; // empty: libcurl's
    int connect_ms, first_byte_ms, idle_ms;
    size_t max_body;              // bytes of an answer with status 200
    size_t max_error_body;        // kept of any other
    bool (*cancelled)(void *ctx); // asked at least every 100 ms; may be NULL
    // The body of a 200 as it comes. Sets *done when no more is needed: what follows is read for a moment, so
    // that the connection can be used again, and dropped. Never called from within libcurl, so it may do
    // anything.
    dep_status (*data)(void *ctx, str bytes, bool *done, dep_err *err);
    void *cancelled_ctx, *data_ctx;
} http_request;

typedef struct {
    int status;             // 0: no answer came
    str body;               // of an answer whose status is not 200
    str content_type;       // lower case, without parameters
    int64_t retry_after_ms; // -1: not said
    bool may_retry;         // on failure: trying again can help, and nothing of the answer's body had come
    size_t received;        // bytes of the body of a 200
} http_response;

// OK when an answer came whole, whatever its status. Errors: NETWORK, TIMEOUT, CANCELLED, LIMIT, NOT_FOUND
// (no libcurl), and those of rq->data.
[[nodiscard]] dep_status http_send(http_client *c, arena *a, const http_request *rq, http_response *ret,
                                   dep_err *err);

// net: the thread that owns all connections of a net, and the transfers that callers hand to it. Knows bytes
// and codes of libcurl; what a time-out, a limit or an answer means is the business of http. Private to
// src/model.
#pragma once
#include "model/curl_int.h"
#include <deputy/model.h>
#include <pthread.h>

enum {
    // Bytes of one body that wait for their caller. More are left with the server, which notices.
    NET_BUFFER_MAX = 1 << 20,
    // Transfers of one origin that look its name up and connect at the same time; others wait for their turn,
    // so
    // that hundreds that begin together cost neither hundreds of resolver threads nor all descriptors.
    NET_CONNECTING_MAX = 32,
    NET_KEPT_MAX = 512,    // connections, busy or kept for the next request
    NET_HEADER_KEPT = 128, // bytes of a header value that is looked at
};

// What a caller may know of its transfer.
typedef struct {
    bool done;
    CURLcode code; // when done
    bool connected, no_memory;
    int status; // 0: no answer so far
    size_t header_lines;
    int64_t uploaded;
    char retry_after[NET_HEADER_KEPT], content_type[NET_HEADER_KEPT];
} net_facts;

// One request and its answer, from malloc and counted: a caller that unwinds leaves it, and the thread ends
// it.
typedef struct net_transfer net_transfer;
struct net_transfer {
    model_net *net;
    const curl_api *curl;
    // The caller's until net_begin, then the thread's.
    CURL *easy;
    struct curl_slist *headers;
    char *body, *origin;
    // The thread's alone.
    net_transfer *prev, *next; // in one list of the net
    enum { NET_NEW, NET_WAITING, NET_RUNNING, NET_OVER } state;
    bool connecting;   // holds one of NET_CONNECTING_MAX places
    bool is_connected; // and needs it no longer
    int64_t uploaded_seen;
    // Under the net's lock.
    net_transfer *inbox_next;
    unsigned asked; // NET_ASK_…; not 0: it is in the inbox
    // Under `lock`.
    pthread_mutex_t lock;
    pthread_cond_t moved;
    int refs;
    bool paused;
    net_facts facts;
    char *in; // body bytes that the caller has not taken
    size_t in_n, in_cap;
    char error[CURL_ERROR_SIZE]; // the thread's until done
    // The caller's alone.
    bool begun;
    char *out; // bytes that it has taken
    size_t out_cap;
};
enum { NET_ASK_BEGIN = 1, NET_ASK_RESUME = 2, NET_ASK_LEAVE = 4 };

// --- net.c: the thread -----------------------------------------------------------------------------------
// Loads libcurl and starts the thread if that was not done yet. Any thread. Errors: NOT_FOUND, NOMEM, IO.
[[nodiscard]] dep_status net_start(model_net *n, dep_err *err);
const sys_clock *net_clock(const model_net *n); // for time-outs of callers
// Hands it over; from now on its options are the thread's.
void net_begin(net_transfer *t);
// What to do with it next, and wakes the thread. Any thread.
void net_ask(net_transfer *t, unsigned what);
const curl_api *net_curl(const model_net *n); // after net_start
// The thread tells itself that a place for another connection may be free.
void net_connected(net_transfer *t);

// --- net_transfer.c: one transfer ------------------------------------------------------------------------
// After net_start. The caller holds one reference and sets options before net_begin. origin: where it goes,
// without path. The body is copied; what is done with it is left to the caller. NULL: out of memory.
net_transfer *net_transfer_new(model_net *n, str origin, str body);
// Waits for bytes, the end, or ms; bytes are valid until the next call and empty at the end. Any of its
// caller's threads, one at a time.
str net_wait(net_transfer *t, int ms, net_facts *facts);
// The caller is through with it, finished or not. Never waits.
void net_leave(net_transfer *t);
void net_ref(net_transfer *t);
void net_unref(net_transfer *t);
// The thread: nothing more comes.
void net_settle(net_transfer *t, CURLcode code);

// http_fixture: an HTTP server on threads of the test, for what a scripted one cannot show: silence at every
// stage, hundreds of connections, bodies of any size, and counters of what really happened.
#pragma once
#include <deputy/str.h>
#include <pthread.h>
#include <stdatomic.h>

enum { HTTP_FIXTURE_CONNECTIONS = 2000 };

typedef enum {
    SERVE_ANSWER,  // a body of `head`, fill and `tail`
    SERVE_SILENT,  // accepts, reads, says nothing
    SERVE_TRICKLE, // a chunk of one byte again and again, without end
    SERVE_NO_READ, // accepts, does not read; then as SERVE_SILENT when the mode is changed to that
} http_fixture_mode;

typedef struct http_fixture http_fixture;
typedef struct {
    http_fixture *f;
    int fd;
    pthread_t thread;
} http_fixture_connection;

struct http_fixture {
    _Atomic http_fixture_mode mode; // of connections that come
    // Set before http_fixture_start.
    int status;     // 0: 200
    size_t size;    // of a body
    str head, tail; // of a body, part of size; the rest is 'x'
    int together;   // answers begin when so many requests have come
    // What happened.
    atomic_int connections, requests, open;
    atomic_size_t sent; // bytes of bodies
    int port;
    // Its own.
    int fd;
    atomic_bool quit;
    pthread_t thread;
    http_fixture_connection all[HTTP_FIXTURE_CONNECTIONS];
};

// Listens on 127.0.0.1 (f->port) and serves until stopped, which ends all connections.
void http_fixture_start(http_fixture *f);
void http_fixture_stop(http_fixture *f);
// Looks again and again until *n has at least (at most) this value; the test's own time-out ends a hang.
void wait_at_least(atomic_int *n, int value);
void wait_at_most(atomic_int *n, int value);

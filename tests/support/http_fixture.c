// http_fixture: see the header. One thread accepts, one more serves each connection; all are joined at the
// end.
#include "support/http_fixture.h"
#include "support/support.h"
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

void wait_at_least(atomic_int *n, int value) {
    while (atomic_load(n) < value) nap();
}

void wait_at_most(atomic_int *n, int value) {
    while (atomic_load(n) > value) nap();
}

// Reads one request with its body; false at the end of the connection.
static bool read_request(int fd) {
    enum { HEAD_MAX = 8192 };
    char head[HEAD_MAX + 1];
    size_t n = 0;
    char *end = NULL;
    while (!end) {
        ssize_t got = n < HEAD_MAX ? read(fd, head + n, HEAD_MAX - n) : -1;
        if (got <= 0) return false;
        n += (size_t)got;
        head[n] = 0;
        end = strstr(head, "\r\n\r\n");
    }
    const char *length = strcasestr(head, "content-length:");
    size_t body = length && length < end ? strtoul(length + 15, NULL, 10) : 0;
    size_t have = n - (size_t)(end + 4 - head);
    while (have < body) {
        ssize_t got = read(fd, head, HEAD_MAX);
        if (got <= 0) return false;
        have += (size_t)got;
    }
    return true;
}

static bool send_all(int fd, str s, atomic_size_t *count) {
    while (s.n) {
        ssize_t sent = send(fd, s.p, s.n, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        s = str_sub(s, (size_t)sent, s.n);
        if (count) atomic_fetch_add(count, (size_t)sent);
    }
    return true;
}

static bool answer(http_fixture *f, int fd) {
    static const char fill[65536];
    char head[200];
    int n = snprintf(head, sizeof head,
                     "HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %zu\r\n\r\n",
                     f->status ? f->status : 200, f->size);
    char *x = memset(malloc(sizeof fill), 'x', sizeof fill);
    bool fine = send_all(fd, str_n(head, (size_t)n), NULL) && send_all(fd, f->head, &f->sent);
    for (size_t left = f->size - f->head.n - f->tail.n; fine && left;) {
        size_t piece = left < sizeof fill ? left : sizeof fill;
        fine = send_all(fd, str_n(x, piece), &f->sent);
        left -= piece;
    }
    free(x);
    return fine && send_all(fd, f->tail, &f->sent);
}

static void trickle(http_fixture *f, int fd) {
    bool fine = send_all(fd, S("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), NULL);
    while (fine && !f->quit) {
        fine = send_all(fd, S("1\r\nx\r\n"), &f->sent);
        nap();
    }
}

static void *serve(void *ctx) {
    http_fixture_connection *c = ctx;
    http_fixture *f = c->f;
    char rest[4096];
    http_fixture_mode mode = f->mode;
    if (mode == SERVE_NO_READ || mode == SERVE_SILENT) {
        while (f->mode == SERVE_NO_READ && !f->quit) nap();
        while (read(c->fd, rest, sizeof rest) > 0) {}
    } else {
        while (read_request(c->fd)) {
            atomic_fetch_add(&f->requests, 1);
            while (atomic_load(&f->requests) < f->together && !f->quit) nap();
            if (mode == SERVE_TRICKLE) trickle(f, c->fd);
            if (mode == SERVE_TRICKLE || !answer(f, c->fd)) break;
        }
    }
    shutdown(c->fd, SHUT_RDWR);
    atomic_fetch_sub(&f->open, 1);
    return NULL;
}

static void *accept_all(void *ctx) {
    http_fixture *f = ctx;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, (size_t)1 << 20);
    for (int fd; (fd = accept4(f->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;) {
        int i = atomic_load(&f->connections);
        if (i == HTTP_FIXTURE_CONNECTIONS) abort();
        f->all[i] = (http_fixture_connection){.f = f, .fd = fd};
        atomic_fetch_add(&f->open, 1);
        if (pthread_create(&f->all[i].thread, &small, serve, &f->all[i]) != 0) abort();
        atomic_fetch_add(&f->connections, 1);
    }
    pthread_attr_destroy(&small);
    return NULL;
}

void http_fixture_start(http_fixture *f) {
    f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    assert_true(f->fd >= 0);
    assert_int_equal(bind(f->fd, (struct sockaddr *)&at, size), 0);
    assert_int_equal(listen(f->fd, 1024), 0);
    assert_int_equal(getsockname(f->fd, (struct sockaddr *)&at, &size), 0);
    f->port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&f->thread, NULL, accept_all, f), 0);
}

void http_fixture_stop(http_fixture *f) {
    atomic_store(&f->quit, true);
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(f->thread, NULL);
    int n = atomic_load(&f->connections);
    for (int i = 0; i < n; i++) shutdown(f->all[i].fd, SHUT_RDWR);
    for (int i = 0; i < n; i++) {
        pthread_join(f->all[i].thread, NULL);
        close(f->all[i].fd);
    }
    close(f->fd);
}

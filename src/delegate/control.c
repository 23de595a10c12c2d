// delegate: commands of other processes. A thread waits for a datagram that says there is one, and looks from
// time to time anyway: a datagram may be lost, and a socket may be impossible.
#include "delegate/delegate_int.h"
#include <deputy/thread.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONTROL_LOOK_MS = 500, CONTROL_STACK = 256 * 1024 };

typedef struct {
    arena *a;
    command_rows rows;
} taken;

static dep_status take(store *s, void *p, dep_err *err) {
    taken *t = p;
    return store_command_take(t->a, s, &t->rows, err);
}

static void obey(engine *e) {
    taken t = {.a = arena_new()};
    if (store_do(e->store, STORE_WRITE, take, &t, NULL) == DEP_OK)
        for (vec_each(const command_row, c, &t.rows))
            if (str_eq(c->verb, S("stop"))) engine_stop(e, c->delegation);
    arena_free(t.a);
}

static void empty_socket(int fd) {
    char byte[16];
    while (fd >= 0 && recv(fd, byte, sizeof byte, MSG_DONTWAIT) >= 0) {}
}

static void *listen_on(void *p) {
    engine *e = p;
    struct pollfd fds[2] = {{.fd = e->wake, .events = POLLIN}, {.fd = e->socket, .events = POLLIN}};
    while (!atomic_load(&e->closing)) {
        (void)poll(fds, e->socket >= 0 ? 2 : 1, CONTROL_LOOK_MS);
        if (atomic_load(&e->closing)) break;
        empty_socket(e->socket);
        obey(e);
    }
    return NULL;
}

void control_start(engine *e) {
    e->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    e->listening = e->wake >= 0 && thread_start(&e->listener, CONTROL_STACK, listen_on, e) == 0;
}

void control_end(engine *e) {
    uint64_t one = 1;
    if (e->listening) {
        ssize_t n = write(e->wake, &one, sizeof one);
        (void)n;
        pthread_join(e->listener, NULL);
    }
    e->listening = false;
    if (e->wake >= 0) close(e->wake);
    e->wake = -1;
}

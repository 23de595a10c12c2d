// Tests of model/net.c, net_transfer.c and the caller's side in http.c, against servers on threads of this
// test.
#include "model/model_int.h"
#include "model/net_int.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <support/http_fixture.h>
#include <support/support.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

// One caller: its arena, client and request. Runs on the test's thread or on its own.
typedef struct {
    arena *a;
    http_client *c;
    http_request rq;
    http_response resp;
    dep_status status;
    dep_err err;
    size_t got, largest, pieces;
    atomic_bool stop;
    pthread_t thread;
} caller;

static dep_status count(void *ctx, str bytes, bool *done, dep_err *err) {
    (void)done, (void)err;
    caller *c = ctx;
    c->got += bytes.n;
    c->pieces++;
    if (bytes.n > c->largest) c->largest = bytes.n;
    return DEP_OK;
}

static bool stopped(void *ctx) {
    return atomic_load(&((caller *)ctx)->stop);
}

static caller *caller_new(model_net *net, int port, const char *scheme) {
    arena *a = arena_new();
    caller *c = NEW(a, caller);
    c->a = a;
    c->c = http_client_new(a, net);
    c->rq = (http_request){.url = str_fmt(a, "%s://127.0.0.1:%d/x", scheme, port),
                           .loopback = true,
                           .body = S("{}"),
                           .connect_ms = 60000,
                           .first_byte_ms = 60000,
                           .idle_ms = 60000,
                           .max_body = (size_t)1 << 30,
                           .max_error_body = 1000,
                           .cancelled = stopped,
                           .data = count,
                           .cancelled_ctx = c,
                           .data_ctx = c};
    return c;
}

static dep_status ask(caller *c) {
    c->got = c->pieces = c->largest = 0;
    return c->status = http_send(c->c, c->a, &c->rq, &c->resp, &c->err);
}

static void *ask_main(void *c) {
    (void)ask(c);
    return NULL;
}

static void ask_beside(caller *c) {
    assert_int_equal(pthread_create(&c->thread, NULL, ask_main, c), 0);
}

static void assert_fine(caller *c) {
    if (c->status != DEP_OK) fail_msg("%s: %s", err_name(c->status), c->err.msg);
}

typedef struct {
    arena *a;
    model_net *net;
    http_fixture *f;
} rig;

static rig rig_new(http_fixture_mode mode) {
    rig r = {.a = arena_new(), .f = calloc(1, sizeof *r.f)};
    r.net = model_net_new(r.a, sys_clock_real());
    r.f->mode = mode;
    r.f->size = 5;
    http_fixture_start(r.f);
    return r;
}

static void rig_free(rig *r) {
    arena_free(r->a);
    http_fixture_stop(r->f);
    free(r->f);
}

// --- Sharing ---------------------------------------------------------------------------------------------

static void test_model_net__many_threads_share_one_net_and_its_connections(void **state) {
    (void)state;
    enum { CALLERS = 150, ROUNDS = 3 };
    rig r = rig_new(SERVE_ANSWER);
    caller *all[CALLERS];
    for (int i = 0; i < CALLERS; i++) all[i] = caller_new(r.net, r.f->port, "http");
    for (int round = 1; round <= ROUNDS; round++) {
        // No answer before all have asked: they are under way together.
        r.f->together = round * CALLERS;
        for (int i = 0; i < CALLERS; i++) ask_beside(all[i]);
        for (int i = 0; i < CALLERS; i++) pthread_join(all[i]->thread, NULL);
        for (int i = 0; i < CALLERS; i++) {
            assert_fine(all[i]);
            assert_int_equal(all[i]->got, 5);
        }
    }
    assert_int_equal(atomic_load(&r.f->requests), ROUNDS * CALLERS);
    assert_int_equal(atomic_load(&r.f->connections), CALLERS);
    for (int i = 0; i < CALLERS; i++) arena_free(all[i]->a);
    rig_free(&r);
}

static void test_model_net__a_connection_serves_one_client_after_the_other(void **state) {
    (void)state;
    rig r = rig_new(SERVE_ANSWER);
    for (int i = 0; i < 3; i++) {
        caller *c = caller_new(r.net, r.f->port, "http");
        c->rq.get = i == 1;
        ask(c);
        assert_fine(c);
        assert_int_equal(c->resp.status, 200);
        arena_free(c->a);
    }
    assert_int_equal(atomic_load(&r.f->connections), 1);
    rig_free(&r);
}

static void test_model_net__so_many_connect_at_once_and_the_next_waits_for_its_turn(void **state) {
    (void)state;
    // A TLS connection is not there before the server has said something.
    rig r = rig_new(SERVE_SILENT), other = rig_new(SERVE_ANSWER);
    caller *all[NET_CONNECTING_MAX + 1];
    for (int i = 0; i < NET_CONNECTING_MAX; i++) {
        all[i] = caller_new(r.net, r.f->port, "https");
        ask_beside(all[i]);
    }
    wait_at_least(&r.f->connections, NET_CONNECTING_MAX);
    // One more waits, and gives up when its time is over.
    caller *late = caller_new(r.net, r.f->port, "https");
    late->rq.connect_ms = 300;
    assert_int_equal(ask(late), DEP_ERR_TIMEOUT);
    assert_string_equal(late->err.msg, "no connection within 0.3 s");
    assert_true(late->resp.may_retry);
    assert_int_equal(atomic_load(&r.f->connections), NET_CONNECTING_MAX);
    // Another place is not concerned.
    caller *elsewhere = caller_new(r.net, other.f->port, "http");
    ask(elsewhere);
    assert_fine(elsewhere);
    // Who leaves makes room.
    all[NET_CONNECTING_MAX] = late;
    late->rq.connect_ms = 60000;
    ask_beside(late);
    atomic_store(&all[0]->stop, true);
    wait_at_least(&r.f->connections, NET_CONNECTING_MAX + 1);
    for (int i = 0; i <= NET_CONNECTING_MAX; i++) {
        atomic_store(&all[i]->stop, true);
        pthread_join(all[i]->thread, NULL);
        assert_int_equal(all[i]->status, DEP_ERR_CANCELLED);
        arena_free(all[i]->a);
    }
    arena_free(elsewhere->a);
    rig_free(&r);
    rig_free(&other);
}

// --- Stops -----------------------------------------------------------------------------------------------

static void test_model_net__a_stop_is_heard_whatever_the_transfer_does(void **state) {
    (void)state;
    static const struct {
        http_fixture_mode mode;
        const char *scheme;
        size_t body;
    } rows[] = {
        {SERVE_SILENT, "http", 2},
        {SERVE_SILENT, "https", 2}, // in the handshake
        {SERVE_TRICKLE, "http", 2},
        {SERVE_NO_READ, "http", (size_t)64 << 20}, // more than sockets hold
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        rig r = rig_new(rows[i].mode), other = rig_new(SERVE_ANSWER);
        caller *c = caller_new(r.net, r.f->port, rows[i].scheme);
        c->rq.body = str_n(calloc(1, rows[i].body), rows[i].body);
        ask_beside(c);
        wait_at_least(&r.f->open, 1);
        atomic_store(&c->stop, true);
        pthread_join(c->thread, NULL);
        assert_int_equal(c->status, DEP_ERR_CANCELLED);
        r.f->mode = SERVE_SILENT; // reads what was sent, to see the end of it
        // Its connection goes, while the caller is not concerned any more, and others go on.
        wait_at_most(&r.f->open, 0);
        caller *next = caller_new(r.net, other.f->port, "http");
        ask(next);
        assert_fine(next);
        arena_free(next->a);
        free((char *)c->rq.body.p);
        arena_free(c->a);
        rig_free(&r);
        rig_free(&other);
    }
}

static void test_model_net__an_upload_that_stalls_and_a_handshake_without_answer_time_out(void **state) {
    (void)state;
    rig stall = rig_new(SERVE_NO_READ), silent = rig_new(SERVE_SILENT);
    caller *c = caller_new(stall.net, stall.f->port, "http");
    size_t n = (size_t)64 << 20;
    c->rq.body = str_n(calloc(1, n), n);
    c->rq.first_byte_ms = 300;
    assert_int_equal(ask(c), DEP_ERR_TIMEOUT);
    assert_string_equal(c->err.msg, "no answer within 0.3 s");
    assert_false(c->resp.may_retry);
    free((char *)c->rq.body.p);
    arena_free(c->a);
    c = caller_new(silent.net, silent.f->port, "https");
    c->rq.connect_ms = 300;
    assert_int_equal(ask(c), DEP_ERR_TIMEOUT);
    assert_string_equal(c->err.msg, "no connection within 0.3 s");
    assert_true(c->resp.may_retry);
    arena_free(c->a);
    rig_free(&stall);
    rig_free(&silent);
}

// Threads of this process with that name, and what signals one of them blocks.
static int count_threads(const char *name, uint64_t *blocked) {
    DIR *d = opendir("/proc/self/task");
    int n = 0;
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], line[300], comm[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
        if (!f) continue;
        uint64_t mask = 0;
        while (fgets(line, sizeof line, f)) {
            (void)sscanf(line, "Name: %63s", comm);
            (void)sscanf(line, "SigBlk: %lx", &mask);
        }
        fclose(f);
        if (strcmp(comm, name) != 0) continue;
        n++;
        if (blocked) *blocked = mask;
    }
    closedir(d);
    return n;
}

static void test_model_net__its_thread_begins_with_the_first_request_hears_no_signal_and_ends(void **state) {
    (void)state;
    rig r = rig_new(SERVE_ANSWER);
    caller *c = caller_new(r.net, r.f->port, "http");
    assert_int_equal(count_threads("deputy-net", NULL), 0);
    ask(c);
    assert_fine(c);
    uint64_t blocked = 0;
    assert_int_equal(count_threads("deputy-net", &blocked), 1);
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGCHLD, SIGWINCH, SIGTSTP};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        assert_true(blocked >> (signals[i] - 1) & 1);
    arena_free(c->a);
    arena_free(r.a);
    assert_int_equal(count_threads("deputy-net", NULL), 0);
    http_fixture_stop(r.f);
    free(r.f);
}

// --- Dead DNS: in a process of its own, whose nameserver is a socket that never answers ------------------

enum { CHILD_SKIP = 77 };

#define CHILD_CHECK(condition)                                                                               \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                          \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static bool put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool fine = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return fine;
}

// A network with nothing but a loopback, and another /etc/resolv.conf. The socket of its nameserver, or -1.
static int dead_nameserver(const char *resolv_conf) {
    char map[64];
    uid_t uid = getuid();
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWNET) != 0) {
        if (unshare(CLONE_NEWNS | CLONE_NEWNET) != 0) return -1;
    } else {
        snprintf(map, sizeof map, "0 %u 1", uid);
        if (!put("/proc/self/uid_map", map)) return -1;
    }
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return -1;
    if (mount(resolv_conf, "/etc/resolv.conf", NULL, MS_BIND, NULL) != 0) return -1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons(53), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (ioctl(fd, SIOCSIFFLAGS, &lo) != 0) return -1;
    return bind(fd, (struct sockaddr *)&at, sizeof at) == 0 ? fd : -1;
}

static int dead_dns_child(const char *resolv_conf) {
    int nameserver = dead_nameserver(resolv_conf);
    if (nameserver < 0) return CHILD_SKIP;
    rig r = rig_new(SERVE_ANSWER);
    caller *c = caller_new(r.net, r.f->port, "http"), *other = caller_new(r.net, r.f->port, "http");
    c->rq.url = S("http://name.example/x");
    c->rq.loopback = false;
    ask_beside(c);
    char query[512];
    CHILD_CHECK(recv(nameserver, query, sizeof query, 0) > 0); // it is looked up now, for minutes
    CHILD_CHECK(count_threads("deputy-net", NULL) == 2); // the resolver's thread has the name of its maker
    atomic_store(&c->stop, true);
    pthread_join(c->thread, NULL);
    CHILD_CHECK(c->status == DEP_ERR_CANCELLED);
    // The net goes on, and ends, while the resolver still waits.
    CHILD_CHECK(ask(other) == DEP_OK && other->got == 5);
    arena_free(c->a);
    arena_free(other->a);
    arena_free(r.a);
    CHILD_CHECK(count_threads("deputy-net", NULL) == 1);
    http_fixture_stop(r.f);
    return 0;
}

static void test_model_net__a_name_that_is_looked_up_for_minutes_holds_nobody(void **state) {
    (void)state;
    char *dir = temp_dir(), path[300];
    temp_write(dir, "resolv.conf", S("nameserver 127.0.0.1\noptions timeout:30 attempts:5\n"));
    snprintf(path, sizeof path, "%s/resolv.conf", dir);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) _exit(dead_dns_child(path));
    int status = 0;
    waitpid(pid, &status, 0);
    temp_remove(dir);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CHILD_SKIP) {
        printf("# skipped: no namespaces of its own are allowed here\n");
        skip();
    }
    assert_int_equal(status, 0);
}

// --- Callers that unwind ---------------------------------------------------------------------------------

static dep_status unwind(void *ctx, str bytes, bool *done, dep_err *err) {
    (void)bytes, (void)done, (void)err;
    arena *poor = ctx;
    for (;;) memset(arena_alloc(poor, 4096), 0, 4096);
}

static dep_status ask_poor(caller *c, arena *poor) {
    ARENA_CATCH(poor, &c->err);
    c->rq.data = unwind;
    c->rq.data_ctx = poor;
    return http_send(c->c, poor, &c->rq, &c->resp, &c->err);
}

static void test_model_net__a_caller_that_unwinds_leaves_its_transfer_to_be_ended(void **state) {
    (void)state;
    for (int again = 0; again < 2; again++) {
        rig r = rig_new(SERVE_TRICKLE);
        caller *c = caller_new(r.net, r.f->port, "http");
        int left = 20;
        arena_source source = scarce_source(&left);
        arena *poor = arena_new_from(&source, true);
        assert_int_equal(ask_poor(c, poor), DEP_ERR_NOMEM);
        arena_free(poor);
        assert_int_equal(atomic_load(&r.f->open), 1);
        if (again) {
            // The next request of the client ends what was left.
            r.f->mode = SERVE_ANSWER;
            c->rq.data = count;
            c->rq.data_ctx = c;
            ask(c);
            assert_fine(c);
            wait_at_most(&r.f->open, 1);
        }
        arena_free(c->a);
        if (!again) wait_at_most(&r.f->open, 0);
        rig_free(&r);
    }
}

// --- Bounds ----------------------------------------------------------------------------------------------

static dep_status count_slowly(void *ctx, str bytes, bool *done, dep_err *err) {
    caller *c = ctx;
    http_fixture *f = c->rq.cancelled_ctx;
    // Slower than the time-out for silence, and until the server could not send any more for as long.
    if (c->pieces == 0) {
        size_t before;
        do {
            before = atomic_load(&f->sent);
            nanosleep(&(struct timespec){.tv_sec = c->rq.idle_ms / 1000, .tv_nsec = 100000000}, NULL);
        } while (atomic_load(&f->sent) != before);
    }
    return count(ctx, bytes, done, err);
}

static void test_model_net__a_slow_caller_holds_the_server_back(void **state) {
    (void)state;
    rig r = rig_new(SERVE_ANSWER);
    r.f->size = (size_t)64 << 20;
    caller *c = caller_new(r.net, r.f->port, "http");
    c->rq.data = count_slowly;
    c->rq.cancelled = NULL;
    c->rq.cancelled_ctx = r.f;
    c->rq.idle_ms = 2000; // silence for which the caller is to blame is none
    ask(c);
    assert_fine(c);
    assert_int_equal(c->got, r.f->size);
    assert_true(c->largest <= NET_BUFFER_MAX);
    assert_true(c->largest > NET_BUFFER_MAX / 2);
    assert_int_equal(atomic_load(&r.f->connections), 1);
    arena_free(c->a);
    rig_free(&r);
}

static void test_model_net__an_error_body_without_end_is_not_waited_for(void **state) {
    (void)state;
    for (int more = 0; more < 2; more++) {
        rig r = rig_new(SERVE_ANSWER);
        r.f->status = 503;
        r.f->size = more ? (size_t)1 << 32 : 1000;
        caller *c = caller_new(r.net, r.f->port, "http");
        ask(c);
        assert_fine(c);
        assert_int_equal(c->resp.status, 503);
        assert_int_equal(c->resp.body.n, 1000);
        arena_free(c->a);
        rig_free(&r);
    }
}

static void test_model_net__children_inherit_no_connection(void **state) {
    (void)state;
    rig r = rig_new(SERVE_SILENT);
    caller *c = caller_new(r.net, r.f->port, "http");
    ask_beside(c);
    wait_at_least(&r.f->open, 1);
    int found = 0;
    for (int fd = 0; fd < 1024; fd++) {
        struct sockaddr_in peer;
        socklen_t size = sizeof peer;
        if (getpeername(fd, (struct sockaddr *)&peer, &size) != 0 || peer.sin_family != AF_INET) continue;
        if (ntohs(peer.sin_port) != r.f->port) continue;
        found++;
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    }
    assert_int_equal(found, 1);
    atomic_store(&c->stop, true);
    pthread_join(c->thread, NULL);
    arena_free(c->a);
    rig_free(&r);
}

static void test_model_net__one_json_document_has_a_limit(void **state) {
    (void)state;
    for (size_t more = 0; more < 2; more++) {
        rig r = rig_new(SERVE_ANSWER);
        r.f->size = MODEL_JSON_MAX + more;
        r.f->head = S("{\"max_input_tokens\":77,\"more\":\"");
        r.f->tail = S("\"}");
        model_config c = {.api = S("anthropic"), .net = r.net, .retry_base_ms = 1};
        c.url = str_fmt(r.a, "http://127.0.0.1:%d", r.f->port);
        model_provider *p;
        dep_err err;
        assert_int_equal(model_open(r.a, &c, sys_clock_real(), &p, &err), DEP_OK);
        int64_t tokens = 0;
        dep_status status = model_window(p, r.a, S("m"), NULL, &tokens, &err);
        assert_int_equal(status, more ? DEP_ERR_LIMIT : DEP_OK);
        assert_int_equal(tokens, more ? 0 : 77);
        rig_free(&r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        // First: it starts from a process without threads.
        cmocka_unit_test(test_model_net__a_name_that_is_looked_up_for_minutes_holds_nobody),
        cmocka_unit_test(test_model_net__many_threads_share_one_net_and_its_connections),
        cmocka_unit_test(test_model_net__a_connection_serves_one_client_after_the_other),
        cmocka_unit_test(test_model_net__so_many_connect_at_once_and_the_next_waits_for_its_turn),
        cmocka_unit_test(test_model_net__a_stop_is_heard_whatever_the_transfer_does),
        cmocka_unit_test(test_model_net__an_upload_that_stalls_and_a_handshake_without_answer_time_out),
        cmocka_unit_test(test_model_net__its_thread_begins_with_the_first_request_hears_no_signal_and_ends),
        cmocka_unit_test(test_model_net__a_caller_that_unwinds_leaves_its_transfer_to_be_ended),
        cmocka_unit_test(test_model_net__a_slow_caller_holds_the_server_back),
        cmocka_unit_test(test_model_net__an_error_body_without_end_is_not_waited_for),
        cmocka_unit_test(test_model_net__children_inherit_no_connection),
        cmocka_unit_test(test_model_net__one_json_document_has_a_limit),
    };
    return cmocka_run_group_tests_name("model_net", tests, NULL, NULL);
}

// spawn: one child to its end, with a bounded wait and bounded output. Knows nothing of sandboxes (a floor
// above wraps argv for that). The child starts in its own session with default signals and no descriptor but
// 0, 1, 2; its input is an anonymous file, so there is no pipe to write into and no SIGPIPE to mind.
// spawn_run owns the process and the descriptors and releases them also when an allocation fails in between:
// the part that allocates returns to it.
#include "base/file_int.h"
#include <deputy/sys.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ERR_KEPT = 4096,      // bytes of stderr that are kept
    TERM_WAIT_MS = 2000,  // between TERM and KILL
    STEP_MS = 10,         // between looks at the child where the kernel has no pidfd
    PIPE_DEFAULT = 65536, // what a pipe holds when the kernel does not say
    TURN_MAX = 1 << 20,   // bytes taken from one pipe before the clock is looked at again
};
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U
#endif

typedef struct {
    pid_t pid; // also its process group
    int pidfd, out, err;
} child;

static int64_t mono_ms(void) {
    return sys_clock_real()->mono_ms(NULL);
}

// --- Birth -----------------------------------------------------------------------------------------------

static bool kept_variable(str entry) {
    static const str kept[] = {S_INIT("PATH="), S_INIT("HOME="), S_INIT("LANG="), S_INIT("LANGUAGE="),
                               S_INIT("LC_")};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        if (str_starts(entry, kept[i])) return true;
    }
    return false;
}

static char *const *small_environment(arena *a) {
    VEC(char *) env = {0};
    for (char **e = environ; e && *e; e++) {
        if (kept_variable(str_z(*e))) vec_push(a, &env, *e);
    }
    vec_push(a, &env, NULL);
    return env.p;
}

static dep_status open_input(str input, int *ret, dep_err *err) {
    int fd = input.n ? memfd_create("input", MFD_CLOEXEC | MFD_NOEXEC_SEAL)
                     : open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == EINVAL) fd = memfd_create("input", MFD_CLOEXEC); // Linux before 6.3
    if (fd < 0) return err_os(err, errno, "cannot prepare the input of the process");
    for (size_t at = 0; at < input.n;) {
        ssize_t n = pwrite(fd, input.p + at, input.n - at, (off_t)at); // leaves the position at the start
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) {
            int os = errno;
            file_close(fd);
            return err_os(err, os, "cannot prepare the input of the process");
        }
        at += (size_t)n;
    }
    *ret = fd;
    return DEP_OK;
}

static int spawn_with(const spawn_opts *o, char *const *envp, const int io[3], pid_t *pid) {
    posix_spawnattr_t attr;
    posix_spawn_file_actions_t acts;
    int os = posix_spawnattr_init(&attr);
    if (os) return os;
    os = posix_spawn_file_actions_init(&acts);
    if (os) {
        posix_spawnattr_destroy(&attr);
        return os;
    }
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setsigdefault(&attr, &all);
    for (int i = 0; i < 3 && !os; i++) os = posix_spawn_file_actions_adddup2(&acts, io[i], i);
    if (!os) os = posix_spawn_file_actions_addclosefrom_np(&acts, 3);
    if (!os) os = posix_spawnp(pid, o->argv[0], &acts, &attr, (char *const *)o->argv, envp);
    posix_spawn_file_actions_destroy(&acts);
    posix_spawnattr_destroy(&attr);
    return os;
}

// A pipe whose ends are above 2, so that no dup2 of the child overwrites one that is still to be used.
static int open_pipe(int ends[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    for (int i = 0; i < 2; i++) {
        if (ends[i] > 2) continue;
        int up = fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
        int os = errno;
        if (up >= 0) {
            close(ends[i]);
            ends[i] = up;
            continue;
        }
        close(ends[0]);
        close(ends[1]);
        return os;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return 0;
}

static dep_status start(const spawn_opts *o, char *const *envp, child *c, dep_err *err) {
    [[gnu::cleanup(file_close_p)]] int in = -1, out = -1, errw = -1;
    TRY(open_input(o->input, &in, err));
    int ends[2];
    int os = open_pipe(ends);
    if (!os) {
        c->out = ends[0];
        out = ends[1];
        os = open_pipe(ends);
    }
    if (!os) {
        c->err = ends[0];
        errw = ends[1];
        int up = in > 2 ? in : fcntl(in, F_DUPFD_CLOEXEC, 3);
        if (up < 0) os = errno;
        if (!os && up != in) {
            close(in);
            in = up;
        }
    }
    pid_t pid = -1;
    if (!os) os = spawn_with(o, envp, (int[3]){in, out, errw}, &pid);
    if (os) return err_os(err, os, "cannot start %s", o->argv[0]);
    c->pid = pid;
    c->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return DEP_OK;
}

// --- Life ------------------------------------------------------------------------------------------------

// True when the child has ended. It is not reaped: its number must stay taken while its group is still to be
// signalled.
static bool has_ended(const child *c) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)c->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 ? info.si_pid == c->pid
                                                                                : errno == ECHILD;
}

// Waits for output or the child's end, at most until `end`.
static void wait_some(const child *c, int64_t end) {
    int64_t left = end - mono_ms();
    if (left < 0) left = 0;
    if (c->pidfd < 0 && left > STEP_MS) left = STEP_MS;
    struct pollfd fds[] = {
        {.fd = c->pidfd, .events = POLLIN},
        {.fd = c->out, .events = POLLIN},
        {.fd = c->err, .events = POLLIN},
    };
    poll(fds, 3, left > 60000 ? 60000 : (int)left);
}

// Reads what is there, at most `most` bytes, into b; *fd is closed and -1 at its end. tail: only the last
// ERR_KEPT bytes matter. False when b's ceiling was passed.
static bool take_output(int *fd, buf *b, bool tail, size_t most) {
    char chunk[16384];
    while (*fd >= 0 && most > 0) {
        ssize_t n = read(*fd, chunk, most < sizeof chunk ? most : sizeof chunk);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n <= 0) {
            file_close(*fd);
            *fd = -1;
            break;
        }
        most -= (size_t)n;
        if (!tail && (size_t)n > b->max - b->n) return false;
        buf_add(b, str_n(chunk, (size_t)n));
        if (tail && b->n > 2 * ERR_KEPT) {
            memmove(b->p, b->p + b->n - ERR_KEPT, ERR_KEPT);
            b->n = ERR_KEPT;
        }
    }
    return true;
}

static size_t pipe_room(int fd) {
    int n = fd >= 0 ? fcntl(fd, F_GETPIPE_SZ) : 0;
    return n > 0 ? (size_t)n : PIPE_DEFAULT;
}

// The last ERR_KEPT bytes, from a character's start on.
static str kept_errors(buf *b) {
    str s = buf_str(b);
    if (s.n <= ERR_KEPT) return s;
    s = str_sub(s, s.n - ERR_KEPT, s.n);
    for (int i = 0; i < 3 && s.n && ((unsigned char)s.p[0] & 0xC0) == 0x80; i++) s = str_sub(s, 1, s.n);
    return s;
}

static dep_status converse(arena *a, child *c, const spawn_opts *o, spawn_result *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    int64_t end = mono_ms() + o->timeout_ms;
    buf out = buf_new(a, BUF_MAX), errs = buf_new(a, 2 * ERR_KEPT + 16384);
    out.max = o->max_output;
    for (bool ended = false; !ended;) {
        wait_some(c, end);
        ended = has_ended(c);
        // Of an ended child, what its pipes hold; someone it left behind may go on writing for ever.
        bool fits = take_output(&c->out, &out, false, ended ? pipe_room(c->out) : TURN_MAX);
        take_output(&c->err, &errs, true, ended ? pipe_room(c->err) : TURN_MAX);
        if (!fits)
            return err_set(err, DEP_ERR_LIMIT, "%s wrote more than the limit of %zu bytes", o->argv[0],
                           o->max_output);
        if (!ended && mono_ms() >= end)
            return err_set(err, DEP_ERR_TIMEOUT, "%s did not end within %d ms", o->argv[0], o->timeout_ms);
    }
    ret->out = buf_str(&out);
    ret->err = kept_errors(&errs);
    return DEP_OK;
}

// --- Death -----------------------------------------------------------------------------------------------

// TERM, a bounded wait, KILL, for the whole group; then reaps. False when somebody else has reaped it
// (SIGCHLD ignored).
static bool end_child(child *c, int *exit_code) {
    if (!has_ended(c)) {
        kill(-c->pid, SIGTERM);
        for (int64_t end = mono_ms() + TERM_WAIT_MS; !has_ended(c) && mono_ms() < end;) {
            struct pollfd fd = {.fd = c->pidfd, .events = POLLIN};
            int64_t left = end - mono_ms();
            poll(&fd, 1, c->pidfd < 0 ? STEP_MS : left > 0 ? (int)left : 0);
        }
    }
    kill(-c->pid, SIGKILL);
    int status = 0;
    pid_t reaped = -1;
    do {
        reaped = waitpid(c->pid, &status, 0);
    } while (reaped < 0 && errno == EINTR);
    *exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    return reaped == c->pid;
}

dep_status spawn_run(arena *a, const spawn_opts *o, spawn_result *ret, dep_err *err) {
    if (!o->argv || !o->argv[0] || o->timeout_ms <= 0)
        return err_set(err, DEP_ERR_INVALID, "a process needs a command and a time-out");
    char *const *envp = o->envp ? (char *const *)o->envp : small_environment(a);
    child c = {.pidfd = -1, .out = -1, .err = -1};
    spawn_result result = {0};
    dep_status status = start(o, envp, &c, err);
    if (status == DEP_OK) {
        status = converse(a, &c, o, &result, err);
        if (!end_child(&c, &result.exit_code) && status == DEP_OK)
            status = err_set(err, DEP_ERR_INTERNAL, "the exit code of %s was lost", o->argv[0]);
    }
    file_close(c.pidfd);
    file_close(c.out);
    file_close(c.err);
    if (status == DEP_OK) *ret = result;
    return status;
}

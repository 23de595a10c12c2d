// cli: Ctrl-C. The first asks what runs to stop and to keep what it has; the second, soon after, ends the
// program. Knows nothing of what is stopped.
#include "cli/delegations.h"
#include <signal.h>
#include <time.h>
#include <unistd.h>

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no context
static volatile sig_atomic_t stop_signal;
static volatile int64_t interrupted_ms; // touched by the handler alone
static volatile sig_atomic_t painted;   // standard error is a terminal
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)

// Only what a handler may call. A terminal that closes sends its signal twice, so only Ctrl-C counts twice.
static void on_signal(int sig) {
    stop_signal = sig;
    if (sig != SIGINT) return;
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
    if (interrupted_ms && now - interrupted_ms <= AGAIN_MS) {
        static const char plain[] = "\x1b[0m\n";
        if (painted && write(2, plain, sizeof plain - 1) < 0) {}
        _exit(EXIT_INTERRUPTED);
    }
    interrupted_ms = now;
}

void signals_catch(void) {
    struct sigaction act = {.sa_handler = on_signal};
    painted = isatty(2);
    sigaction(SIGINT, &act, NULL);
    sigaction(SIGTERM, &act, NULL);
    sigaction(SIGHUP, &act, NULL);
    signal(SIGPIPE, SIG_IGN);
}

bool signals_stop(void *ctx) {
    (void)ctx;
    return stop_signal != 0;
}

void signals_pause(int ms) {
    if (stop_signal) return;
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

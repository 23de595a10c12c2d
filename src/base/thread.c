// thread: see the header.
#include <deputy/thread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

// The run-time support of each sanitizer wants much memory of each thread, part of it on the thread's stack.
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                                   \
    __has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define THREAD_SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZED 1
#endif

static size_t with_sanitizer(size_t stack) {
#ifdef THREAD_SANITIZED
    enum : size_t { LEAST = (size_t)16 << 20 };
    return stack && stack < LEAST ? LEAST : stack;
#else
    return stack;
#endif
}

size_t thread_processors(void) {
    cpu_set_t mine;
    if (sched_getaffinity(0, sizeof mine, &mine) == 0) return (size_t)CPU_COUNT(&mine);
    // More of them than the set has room for.
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 1 ? (size_t)online : 1;
}

bool thread_others(cpu_set_t *ret) {
    int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof *ret, ret) != 0) return false;
    CPU_CLR(here, ret);
    return CPU_COUNT(ret) > 0;
}

static int start(pthread_t *ret, size_t stack, bool beside, void *(*run)(void *ctx), void *ctx) {
    pthread_attr_t attr;
    int bad = pthread_attr_init(&attr);
    if (bad) return bad;
    if (stack) bad = pthread_attr_setstacksize(&attr, with_sanitizer(stack));
    cpu_set_t others;
    // Where that cannot be had, nothing is lost.
    if (beside && thread_others(&others)) (void)pthread_attr_setaffinity_np(&attr, sizeof others, &others);
    // A thread inherits the mask of the one that starts it.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!bad) bad = pthread_create(ret, &attr, run, ctx);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return bad;
}

int thread_start(pthread_t *ret, size_t stack, void *(*run)(void *ctx), void *ctx) {
    return start(ret, stack, false, run, ctx);
}

int thread_start_beside(pthread_t *ret, void *(*run)(void *ctx), void *ctx) {
    return start(ret, 0, true, run, ctx);
}

// --- Waiting ---

void thread_cond_init(pthread_cond_t *c) {
    pthread_condattr_t mono;
    pthread_condattr_init(&mono);
    pthread_condattr_setclock(&mono, CLOCK_MONOTONIC);
    pthread_cond_init(c, &mono);
    pthread_condattr_destroy(&mono);
}

struct timespec thread_in_ms(int64_t ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    int64_t ns = at.tv_nsec + ms % 1000 * 1000000;
    at.tv_sec += ms / 1000 + ns / 1000000000;
    at.tv_nsec = ns % 1000000000;
    return at;
}

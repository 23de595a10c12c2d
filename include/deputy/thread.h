// thread: starting one, and waiting for one, the same way everywhere.
#pragma once
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

// Starts run(ctx) on a thread that gets no signals: those are for the thread that a person talks to. stack:
// bytes it needs, or 0 for the system's; a build with sanitizers takes more. The caller joins it. Returns 0
// or an errno number.
[[nodiscard]] int thread_start(pthread_t *ret, size_t stack, void *(*run)(void *ctx), void *ctx);
// The same, with the system's stack, for a short while of work beside the caller's: it runs on other
// processors than the one that the caller is on, where there are any. Left to itself the kernel may put it
// behind the caller, and move it only milliseconds later.
[[nodiscard]] int thread_start_beside(pthread_t *ret, void *(*run)(void *ctx), void *ctx);

// How many processors the caller may run on, at least one: a set of them may be all that taskset or a
// container leaves it. A share of their time is not seen.
size_t thread_processors(void);
// The processors other than the one that the caller is on. False: there are none, or that cannot be told.
bool thread_others(cpu_set_t *ret);

// A condition whose waits end by a clock that nobody sets, and the moment in so many milliseconds by it.
void thread_cond_init(pthread_cond_t *c);
struct timespec thread_in_ms(int64_t ms);

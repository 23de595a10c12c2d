// stop: whether long work shall end early. Who begins the work says how that is asked; the work says how much
// it has done, and about every STOP_EACH bytes the question is put. The answer yes stays. One value belongs
// to one thread: work that is spread over several has one for each. NULL: nobody wants to stop it.
#pragma once
#include <stddef.h>

typedef struct {
    bool (*ask)(void *ctx); // NULL: the answer is no
    void *ctx;
    size_t work; // since it was asked
    bool said;
} stop_sign;

enum : size_t {
    STOP_EACH = (size_t)256 << 10, // bytes that are looked at quickly, about a tenth of a millisecond each
    STOP_ITEM = 256,               // of work that is more than bytes: a name, a line, a comparison of texts
};

// Puts the question at once.
static inline bool stop_ask(stop_sign *s) {
    if (!s || s->said) return s;
    s->work = 0;
    return s->said = s->ask && s->ask(s->ctx);
}

// So much more is done: shall it end?
static inline bool stop_after(stop_sign *s, size_t work) {
    if (!s || s->said) return s;
    s->work += work;
    return s->work >= STOP_EACH && stop_ask(s);
}

static inline bool stop_said(const stop_sign *s) {
    return s && s->said;
}

// hands: see the header. Each waits on a condition of its own, so that only the one that is needed wakes up.
#include <deputy/hands.h>
#include <deputy/thread.h>
#include <stdlib.h>

typedef struct hand hand;
struct hand {
    hands *all;
    hand *next; // idle as well
    pthread_t thread;
    pthread_cond_t wanted;
    void (*run)(void *ctx); // NULL: it is idle
    void *ctx;
    bool begun;
    cpu_set_t processors; // that it was given last
};

struct hands {
    pthread_mutex_t lock;
    hand *idle;
    size_t n, most;
    bool end;
    hand hand[HANDS_MOST];
};

// With the lock held.
static void lay_down(hands *h, hand *x) {
    x->run = NULL;
    x->begun = false;
    x->next = h->idle;
    h->idle = x;
}

static void *work(void *ctx) {
    hand *x = ctx;
    hands *h = x->all;
    pthread_mutex_lock(&h->lock);
    for (;;) {
        while (!x->run && !h->end) pthread_cond_wait(&x->wanted, &h->lock);
        if (!x->run) break;
        x->begun = true;
        pthread_mutex_unlock(&h->lock);
        x->run(x->ctx);
        pthread_mutex_lock(&h->lock);
        lay_down(h, x);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

hands *hands_new(size_t most) {
    hands *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    pthread_mutex_init(&h->lock, NULL);
    h->most = most < HANDS_MOST ? most : HANDS_MOST;
    return h;
}

size_t hands_most(const hands *h) {
    return h->most;
}

void hands_free(hands *h) {
    if (!h) return;
    pthread_mutex_lock(&h->lock);
    h->end = true;
    for (size_t i = 0; i < h->n; i++) pthread_cond_signal(&h->hand[i].wanted);
    pthread_mutex_unlock(&h->lock);
    for (size_t i = 0; i < h->n; i++) {
        pthread_join(h->hand[i].thread, NULL);
        pthread_cond_destroy(&h->hand[i].wanted);
    }
    pthread_mutex_destroy(&h->lock);
    free(h);
}

// As thread_start_beside does for a new one.
static void keep_off(hand *x) {
    cpu_set_t others;
    if (!thread_others(&others) || CPU_EQUAL(&others, &x->processors)) return;
    if (pthread_setaffinity_np(x->thread, sizeof others, &others) == 0) x->processors = others;
}

// With the lock held.
static bool start_one(hands *h, void (*run)(void *ctx), void *ctx) {
    hand *x = &h->hand[h->n];
    *x = (hand){.all = h, .run = run, .ctx = ctx};
    pthread_cond_init(&x->wanted, NULL);
    if (thread_start_beside(&x->thread, work, x) != 0) {
        pthread_cond_destroy(&x->wanted);
        return false;
    }
    h->n++;
    return true;
}

bool hands_lend(hands *h, void (*run)(void *ctx), void *ctx) {
    if (!h) return false;
    bool lent = true;
    pthread_mutex_lock(&h->lock);
    hand *x = h->idle;
    if (x) {
        h->idle = x->next;
        keep_off(x);
        x->run = run;
        x->ctx = ctx;
        pthread_cond_signal(&x->wanted);
    } else {
        lent = h->n < h->most && start_one(h, run, ctx);
    }
    pthread_mutex_unlock(&h->lock);
    return lent;
}

bool hands_take_back(hands *h, const void *ctx) {
    bool back = false;
    pthread_mutex_lock(&h->lock);
    for (size_t i = 0; i < h->n && !back; i++) {
        hand *x = &h->hand[i];
        back = x->run && x->ctx == ctx && !x->begun;
        if (back) lay_down(h, x);
    }
    pthread_mutex_unlock(&h->lock);
    return back;
}

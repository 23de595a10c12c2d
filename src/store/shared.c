// shared: one store for the threads of a process. Who comes while nobody works becomes the leader: it takes
// everything that waits, does it in one transaction and wakes the owners; whoever came meanwhile waits for
// the next one, which one of them leads. So a sync, which is what takes long, is shared by all who waited for
// it.
//
// `lock` guards the queue and the flags of what is in it. The store belongs to the leader, without the lock.
#include "store/store_int.h"
#include <pthread.h>

// What one thread asks, on its stack.
typedef struct ask {
    store_mode mode;
    store_op *op;
    void *ctx;
    dep_err *err;
    dep_status status;
    bool done, lead;
    pthread_cond_t wake;
    struct ask *next;
} ask;

struct store_shared {
    store *s;
    pthread_mutex_t lock;
    ask *first, **end; // not yet taken by a leader, in the order of their coming
    size_t waiting;    // how many these are
    bool led;
};

static void shared_free(void *p) {
    store_shared *sh = p;
    pthread_mutex_destroy(&sh->lock);
}

store_shared *store_share(arena *a, store *s) {
    store_shared *sh = NEW(a, store_shared);
    sh->s = s;
    sh->end = &sh->first;
    pthread_mutex_init(&sh->lock, NULL);
    arena_defer(a, shared_free, sh);
    return sh;
}

size_t store_shared_waiting(store_shared *sh) {
    pthread_mutex_lock(&sh->lock);
    size_t n = sh->waiting;
    pthread_mutex_unlock(&sh->lock);
    return n;
}

// --- The leader's work -----------------------------------------------------------------------------------

static void call(store *s, ask *q) {
    s->in_op = true;
    s->op_mode = q->mode;
    q->status = q->op(s, q->ctx, q->err);
    sql_end(s);
    s->in_op = false;
}

// What a failed op wrote is undone. An op that was unwound in the middle of a part has failed or has left the
// part to be undone: both end here.
static void call_within(store *s, ask *q) {
    q->status = sql_do(s, "SAVEPOINT op", q->err);
    if (q->status != DEP_OK) return;
    s->part = false;
    call(s, q);
    if (s->part && q->status == DEP_OK)
        q->status = err_set(q->err, DEP_ERR_INTERNAL, "an op of store_do went on after memory had run out");
    s->part = false;
    if (!sql_in_transaction(s)) return;
    if (q->status == DEP_OK) q->status = sql_do(s, "RELEASE op", q->err);
    if (q->status == DEP_OK) return;
    dep_status undone = sql_do(s, "ROLLBACK TO op", NULL);
    if (undone == DEP_OK) undone = sql_do(s, "RELEASE op", NULL);
    // What cannot be undone must not be committed.
    if (undone != DEP_OK && sql_in_transaction(s)) sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

// From `from` to `to` inclusive, those that had succeeded.
static void fail_all(ask *from, const ask *to, dep_status status, const dep_err *why) {
    for (ask *q = from;; q = q->next) {
        if (q->mode != STORE_READ && q->status == DEP_OK) {
            q->status = status;
            if (q->err) *q->err = *why;
        }
        if (q == to) return;
    }
}

static ask *next_write(ask *q) {
    while (q && q->mode == STORE_READ) q = q->next;
    return q;
}

// One transaction from q on; the answer is the first one that does not belong to it any more.
static ask *transaction(store *s, ask *q, bool full) {
    dep_err why;
    ask *from = q, *last = q;
    sql_patience(s, full ? STORE_BUSY_MS : STORE_LIGHT_MS);
    dep_status status = sql_begin(s, full, &why);
    sql_patience(s, STORE_BUSY_MS);
    for (; q; q = next_write(q->next)) {
        last = q;
        if (status != DEP_OK) {
            q->status = DEP_OK;
            continue;
        }
        call_within(s, q);
        if (sql_in_transaction(s)) continue;
        // SQLite has rolled back, and with this one's write all before it are lost. Those behind it are tried
        // again.
        if (q->status == DEP_OK) q->status = err_set(q->err, DEP_ERR_IO, "the transaction was lost");
        status =
            err_set(&why, q->status, "%s", q->err ? q->err->msg : "another write of the same moment failed");
        fail_all(from, q, status, &why);
        return next_write(q->next);
    }
    if (status == DEP_OK) status = sql_finish(s, DEP_OK, &why);
    if (status != DEP_OK) fail_all(from, last, status, &why);
    return NULL;
}

static void do_all(store *s, ask *asks) {
    bool full = false;
    dep_err why;
    dep_status writable = store_writable(s, &why);
    for (ask *q = asks; q; q = q->next) {
        full = full || q->mode == STORE_WRITE_FULL;
        if (q->mode == STORE_READ)
            call(s, q);
        else if (writable != DEP_OK)
            q->status = err_set(q->err, writable, "%s", why.msg);
    }
    for (ask *q = writable == DEP_OK ? next_write(asks) : NULL; q;) q = transaction(s, q, full);
    command_send_pokes(s);
}

// --- Waiting and leading ---------------------------------------------------------------------------------

static void wake(ask *q, bool *flag) {
    *flag = true;
    // Under the lock: afterwards its owner may be gone with it.
    pthread_cond_signal(&q->wake);
}

// Called and left with the lock held.
static void lead(store_shared *sh, ask *mine) {
    ask *taken = sh->first;
    sh->first = NULL;
    sh->end = &sh->first;
    sh->waiting = 0;
    pthread_mutex_unlock(&sh->lock);
    do_all(sh->s, taken);
    pthread_mutex_lock(&sh->lock);
    for (ask *q = taken, *next; q; q = next) {
        next = q->next;
        if (q != mine) wake(q, &q->done);
    }
    sh->led = sh->first != NULL;
    if (sh->led) wake(sh->first, &sh->first->lead);
}

dep_status store_do(store_shared *sh, store_mode mode, store_op *op, void *ctx, dep_err *err) {
    ask mine = {.mode = mode, .op = op, .ctx = ctx, .err = err};
    pthread_cond_init(&mine.wake, NULL);
    pthread_mutex_lock(&sh->lock);
    *sh->end = &mine;
    sh->end = &mine.next;
    sh->waiting++;
    if (!sh->led) sh->led = mine.lead = true;
    while (!mine.done && !mine.lead) pthread_cond_wait(&mine.wake, &sh->lock);
    if (!mine.done) lead(sh, &mine);
    pthread_mutex_unlock(&sh->lock);
    pthread_cond_destroy(&mine.wake);
    return mine.status;
}

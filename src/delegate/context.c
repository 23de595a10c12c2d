// delegate: what the model is sent must fit its window. The size of a conversation is what the provider
// counted last, and an estimate of what came since. When it nears the window, older tool results are folded,
// once and in one large step, because each change of what was sent before costs the provider's cache. The
// task, the definition and what the model itself wrote are never touched.
#include "delegate/delegate_int.h"

enum {
    FOLD_KEEP = 400, // bytes: shorter results stay, folding them wins nothing
    // Tokens from which on the window is asked for.
    WORTH_ASKING = DELEGATE_WINDOW / 2,
    WORTH_ASKING_LOCAL = 1500,
};

void context_note_reply(run *r, const model_reply *reply) {
    const model_usage *u = &reply->usage;
    int64_t size = u->input + u->cache_read + u->cache_write + u->output;
    if (!size) return;
    r->ctx.size = size;
    r->ctx.added = 0;
}

// Tokens of the next request, roughly.
static int64_t next_size(run *r) {
    if (!r->ctx.size) {
        size_t first = estimate_tokens(r->prompt.text);
        for (vec_each(const offered_tool, t, &r->offered))
            first += estimate_tokens(t->description) + estimate_tokens(t->schema);
        for (vec_each(const model_message, m, &r->messages))
            for (vec_each(const model_block, b, &m->blocks))
                first += estimate_tokens(b->text) + estimate_tokens(b->input);
        return (int64_t)first;
    }
    return r->ctx.size + r->ctx.added;
}

// What was learnt of a model holds for all delegations of this process.
static int64_t known_window(run *r) {
    int64_t window = 0;
    pthread_mutex_lock(&r->e->lock);
    for (size_t i = 0; i < WINDOWS_KEPT; i++)
        if (str_eq(str_z(r->e->windows[i].model), r->report.model)) window = r->e->windows[i].tokens;
    pthread_mutex_unlock(&r->e->lock);
    return window;
}

static void remember_window(run *r, int64_t tokens) {
    engine *e = r->e;
    if (r->report.model.n >= sizeof e->windows[0].model) return;
    pthread_mutex_lock(&e->lock);
    known_window_row *row = &e->windows[e->n_windows++ % WINDOWS_KEPT];
    memcpy(row->model, r->report.model.p, r->report.model.n);
    row->model[r->report.model.n] = 0;
    row->tokens = tokens;
    pthread_mutex_unlock(&e->lock);
}

// Asked for only when it begins to matter: most delegations never come near it.
static void learn_window(run *r) {
    dep_err why;
    model_sink sink = {.cancelled = run_cancelled, .ctx = r};
    if ((r->ctx.window = known_window(r)) > 0) return;
    if (model_window(r->provider, r->turn, r->model_name, &sink, &r->ctx.window, &why) == DEP_OK &&
        r->ctx.window > 0) {
        remember_window(r, r->ctx.window);
        return;
    }
    r->ctx.window = DELEGATE_WINDOW;
    r->ctx.window_assumed = true;
}

static const model_block *call_of(const model_messages *messages, str id) {
    for (vec_each(const model_message, m, messages))
        for (vec_each(const model_block, b, &m->blocks))
            if (b->kind == BLOCK_TOOL_USE && str_eq(b->id, id)) return b;
    return NULL;
}

// Folds the results of the first `keep` messages. The same rows give the same bytes when they are read again.
void fold_messages(arena *a, model_messages *messages, size_t keep, size_t *results, size_t *bytes) {
    *results = *bytes = 0;
    for (size_t i = 0; i < messages->n && i < keep; i++)
        for (vec_each(model_block, b, &messages->p[i].blocks)) {
            if (b->kind != BLOCK_TOOL_RESULT || b->text.n <= FOLD_KEEP) continue;
            const model_block *call = call_of(messages, b->id);
            *results += 1;
            *bytes += b->text.n;
            b->text = str_fmt(a,
                              "[folded: the %zu bytes of this result of " STR_FMT
                              " were taken out to make room; make the call again if you need them]",
                              b->text.n, STR_ARG(call ? call->name : S("a tool")));
        }
}

// Messages that may be folded: all but the newest answer and its results.
static size_t foldable(const run *r) {
    return r->messages.n > 2 ? r->messages.n - 2 : 0;
}

bool context_fold(run *r, const char *why) {
    if (r->ctx.folded) return false;
    size_t results, bytes, keep = foldable(r);
    fold_messages(r->a, &r->messages, keep, &results, &bytes);
    if (!results) return false;
    r->ctx.folded = true;
    r->ctx.cache_breaks++;
    r->ctx.added -= (int64_t)(bytes / 4);
    message_keep_word(r, "fold", (str){0}, (int64_t)keep);
    str detail = str_fmt(r->a, "%zu older tool results (%zu bytes) were folded: %s", results, bytes, why);
    activity_context(r, "fold", detail);
    run_warn(r, detail);
    return true;
}

void context_make_room(run *r) {
    int64_t size = next_size(r);
    int64_t worth = model_is_local(r->provider) ? WORTH_ASKING_LOCAL : WORTH_ASKING;
    if (!r->ctx.window && size > worth) learn_window(r);
    if (r->ctx.window && size > r->ctx.window / 100 * DELEGATE_FOLD_PERCENT)
        (void)context_fold(r, "the conversation neared the model's window");
}

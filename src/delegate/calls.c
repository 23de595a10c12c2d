// delegate: the tool calls of one answer, in order: gate, run, result. A gated call is denied as unattended,
// with the rule, and the loop goes on. All results of an answer go back in one message.
#include "delegate/delegate_int.h"
#include <deputy/policy.h>
#include <deputy/utf8.h>

// --- What the tools may ask of the loop ----------------------------------------------------------

static bool loaded(const run *r, str name) {
    for (size_t i = 0; i < r->loaded.n; i++)
        if (str_eq(r->loaded.p[i], name)) return true;
    return false;
}

// Offers a deferred tool from the next request on, at the end of the list.
static void offer(run *r, const grant_tool *t) {
    str name = str_z(t->spec->name);
    vec_push(r->a, &r->loaded, name);
    for (vec_each(const offered_tool, o, &r->offered))
        if (str_eq(o->name, name)) return; // a resumed run that had it offered before
    vec_push(r->a, &r->offered, ((offered_tool){name, t->description, t->schema}));
    r->ctx.cache_breaks++;
}

static dep_status load(void *p, str name, buf *out, dep_err *err) {
    run *r = p;
    size_t added = 0, before = 0;
    const char *group = NULL;
    for (vec_each(const grant_tool, t, &r->grant.tools)) {
        str tool = str_z(t->spec->name);
        if (!str_ieq(tool, name) && !str_eq(str_z(t->spec->group), name)) continue;
        if (!t->deferred || loaded(r, tool)) {
            before++;
            continue;
        }
        offer(r, t);
        message_keep_word(r, "load", tool, 0);
        buf_add(out, added ? S(", ") : S("Loaded: "));
        buf_add(out, tool);
        group = t->spec->group;
        added++;
    }
    if (added) {
        activity_context(r, "load", name);
        buf_add(out, S(". Call them from your next step on.\n"));
        const tool_group *g = toolspec_group(str_z(group));
        if (g && *g->guidance) buf_addf(out, "%s\n", g->guidance);
        return DEP_OK;
    }
    if (before) {
        buf_add(out, S("That is loaded already.\n"));
        return DEP_OK;
    }
    strs names = {0};
    for (vec_each(const grant_tool, t, &r->grant.tools))
        if (t->deferred && !loaded(r, str_z(t->spec->name))) vec_push(r->turn, &names, str_z(t->spec->name));
    return err_set(err, DEP_ERR_REFUSED, "\"" STR_FMT "\" is not yours to load; you can load: " STR_FMT,
                   STR_ARG(name),
                   STR_ARG(names.n ? str_join(r->turn, names.p, names.n, S(", ")) : S("nothing more")));
}

static void available(void *p, buf *out) {
    run *r = p;
    for (vec_each(const grant_tool, t, &r->grant.tools)) {
        const char *state = !t->deferred                      ? "resident"
                            : loaded(r, str_z(t->spec->name)) ? "loaded"
                                                              : "loadable";
        buf_addf(out, "%s [%s]: %s", t->spec->name, state, t->spec->description);
        if (t->gated) buf_add(out, S(" Asks first."));
        buf_addc(out, '\n');
    }
}

bool results_mount(run *r) {
    const tool_spec *page = toolspec_find(S("read_result"));
    if (grant_find(&r->grant, str_z(page->name))) return false;
    vec_push(r->a, &r->grant.tools,
             ((grant_tool){.spec = page,
                           .schema = str_z(page->schema),
                           .description = str_z(page->description),
                           .deferred = true,
                           .core = true}));
    return true;
}

typedef struct {
    str id, text;
    int64_t n;
} kept;

static dep_status put_result(store *s, void *p, dep_err *err) {
    kept *k = p;
    return store_result_add(s, k->id, k->text, &k->n, err);
}

// What is not synced is given up soon while another process writes; a result is worth waiting for.
static dep_status put_when_free(run *r, kept *k, dep_err *err) {
    int64_t until = run_mono(r) + STORE_BUSY_MS;
    for (;;) {
        dep_status status = store_do(r->e->store, STORE_WRITE, put_result, k, err);
        if (status != DEP_ERR_BUSY || run_mono(r) >= until || run_cancelled(r)) return status;
    }
}

// Keeps the whole of a result that was cut, and offers the tool that pages it.
static dep_status keep_result(void *p, str whole, str *id, dep_err *err) {
    run *r = p;
    kept k = {.id = r->id, .text = run_redact(r, r->turn, whole)};
    TRY(put_when_free(r, &k, err));
    // The id names the delegation too: a resumed one may still ask for it.
    *id = str_fmt(r->turn, "result:%.8s-%lld", r->id.p, (long long)k.n);
    if (results_mount(r)) {
        offer(r, grant_find(&r->grant, S("read_result")));
        message_keep_word(r, "load", S("read_result"), 0);
    }
    return DEP_OK;
}

typedef struct {
    arena *a;
    str id, text;
    int64_t n;
} wanted;

static dep_status get_result(store *s, void *p, dep_err *err) {
    wanted *w = p;
    return store_result_get(w->a, s, w->id, w->n, &w->text, err);
}

// "result:1a2b3c4d-2" of this delegation or of one that it continues (rule B20).
static bool find_result(const run *r, str id, wanted *ret) {
    str head, tail;
    uint64_t n;
    if (!str_starts(id, S("result:")) || !str_cut(str_sub(id, 7, id.n), '-', &head, &tail)) return false;
    if (!str_u64(tail, INT32_MAX, &n) || head.n < STORE_PREFIX_MIN) return false;
    ret->n = (int64_t)n;
    ret->id = str_starts(r->id, head) ? r->id : (str){0};
    for (vec_each(const str, c, &r->chain))
        if (!ret->id.n && str_starts(*c, head)) ret->id = *c;
    return ret->id.n > 0;
}

static dep_status read_result(void *p, str id, int64_t offset, int64_t limit, buf *out, dep_err *err) {
    run *r = p;
    wanted w = {.a = r->turn};
    if (!find_result(r, id, &w) || store_do(r->e->store, STORE_READ, get_result, &w, NULL) != DEP_OK)
        return err_set(err, DEP_ERR_NOT_FOUND, "this task has no result \"" STR_FMT "\"", STR_ARG(id));
    size_t from = utf8_floor(w.text, offset < 0 ? 0 : (size_t)offset);
    if (from >= w.text.n)
        return err_set(err, DEP_ERR_INVALID, "the result has %zu bytes; offset %lld is behind its end",
                       w.text.n, (long long)offset);
    str page = utf8_cut(str_sub(w.text, from, w.text.n), limit > 0 ? (size_t)limit : TOOL_PAGE);
    // A limit below one character would never get on.
    if (!page.n) page = str_sub(w.text, from, utf8_floor(w.text, from + 4));
    buf_add(out, page);
    if (from + page.n < w.text.n)
        buf_addf(out, "\n[bytes %zu to %zu of %zu; go on with offset %zu]", from, from + page.n, w.text.n,
                 from + page.n);
    return DEP_OK;
}

// --- One call ------------------------------------------------------------------------------------

static void answer(run *r, const model_block *call, model_message *results, str text, bool is_error,
                   int64_t started) {
    text = str_dup(r->a, run_redact(r, r->turn, text));
    vec_push(r->a, &results->blocks,
             ((model_block){.kind = BLOCK_TOOL_RESULT, .id = call->id, .text = text, .is_error = is_error}));
    activity_tool(r, call, text, is_error, run_mono(r) - started);
}

static bool denied(run *r, const model_block *call, str *text) {
    const grant_tool *t = grant_find(&r->grant, call->name);
    str why;
    if (!t || policy_decide(r->turn, r->grant.gates.p, r->grant.gates.n, t->spec, (str){0}, (str){0}, &why) ==
                  DECIDE_ALLOW)
        return false;
    *text = str_fmt(
        r->turn,
        "Denied by policy: %s asks a person first (" STR_FMT
        "), and this run is unattended: there is nobody to ask. Go on without it, and say so in your report.",
        t->spec->name, STR_ARG(why));
    return true;
}

static str call_key(run *r, const model_block *call) {
    return str_fmt(r->turn, STR_FMT " " STR_FMT, STR_ARG(call->name), STR_ARG(call->input));
}

// The same call answer after answer leads nowhere; in one answer it may stand twice. Waiting for others and
// looking after them may repeat.
int calls_in_a_row(run *r, const model_block *call) {
    if (str_eq(call->name, S("TaskWait")) || str_eq(call->name, S("TaskList"))) return 0;
    str key = call_key(r, call);
    uint64_t hash = str_hash(key);
    for (vec_each(const repeated, p, &r->repeated))
        if (p->hash == hash && p->size == key.n) return p->times + 1;
    return 1;
}

static int count_same(run *r, const model_block *call) {
    int times = calls_in_a_row(r, call);
    str key = call_key(r, call);
    if (times) vec_push(r->a, &r->now, ((repeated){str_hash(key), key.n, times}));
    if (times > r->same) r->same = times;
    return times;
}

static void note_memory(run *r, const memory_written *written) {
    memory_written m = *written;
    m.file = str_dup(r->a, m.file);
    m.sha256 = str_dup(r->a, m.sha256);
    m.excerpt = run_redact(r, r->a, str_dup(r->a, m.excerpt));
    vec_push(r->a, &r->report.memory_writes, m);
}

// All results of a run together have a limit too.
static void bound_result(run *r, tool_result *result) {
    int64_t left = r->grant.run_bytes - r->tool_bytes;
    if (left < 0) left = 0;
    if ((int64_t)result->text.n > left) {
        str head = utf8_cut(result->text, (size_t)left);
        result->text = str_fmt(
            r->turn,
            STR_FMT
            "\n[cut: the tool results of this run have reached their limit of %lld bytes; write your report]",
            STR_ARG(head), (long long)r->grant.run_bytes);
    }
    r->tool_bytes += (int64_t)result->text.n;
}

static void tell(run *r, const model_block *call, str input) {
    str name = run_redact(r, r->turn, call->name);
    if (r->sink->tool) r->sink->tool(r->sink->ctx, name, input);
    engine_facts(r, str_fmt(r->turn, STR_FMT " " STR_FMT, STR_ARG(name), STR_ARG(utf8_cut(input, 120))));
}

static void run_call(run *r, const model_block *call, model_message *results) {
    int64_t started = run_mono(r);
    r->report.tool_calls++;
    // A key that a model repeats must not be written down either.
    str text, input = run_redact(r, r->turn, call->input);
    tell(r, call, input);
    if (call->bad_input) {
        answer(r, call, results, S("The arguments are not a JSON object. Send them again as valid JSON."),
               true, started);
        return;
    }
    int same = count_same(r, call);
    if (same >= DELEGATE_SAME_WARN) {
        text = str_fmt(
            r->turn,
            "Not run: you have made this same call in %d answers in a row, and its result stands above. "
            "Do something else, or write your report.",
            same);
        answer(r, call, results, text, true, started);
        return;
    }
    if (denied(r, call, &text)) {
        answer(r, call, results, text, true, started);
        return;
    }
    tool_env env = {.cancelled = run_cancelled,
                    .enter = engine_enter,
                    .leave = engine_leave,
                    .load = load,
                    .available = available,
                    .keep = keep_result,
                    .read_result = read_result,
                    .ctx = r,
                    .delegation = r->id,
                    .model = r->report.model};
    if (r->is_main) tasks_offer(&env);
    tool_result result;
    size_t delivering = r->delivering.n;
    r->answering = call;
    tool_call(r->tools, r->turn, &env, &r->loaded, call->name, input, &result);
    r->answering = NULL;
    if (result.is_error) r->delivering.n = delivering; // the reports are not in it
    if (result.wrote_memory) note_memory(r, &result.written);
    bound_result(r, &result);
    answer(r, call, results, result.text, result.is_error, started);
}

bool run_calls(run *r, const model_blocks *blocks, model_message *results) {
    size_t n = 0;
    r->started = (started_tasks){0};
    r->repeated = r->now;
    r->now = (repeated_calls){0};
    r->same = 0;
    if (r->is_main) tasks_start(r, blocks);
    for (vec_each(const model_block, b, blocks)) {
        if (b->kind != BLOCK_TOOL_USE) continue;
        if (run_cancelled(r)) {
            answer(r, b, results, S("Stopped by a person before this call."), true, run_mono(r));
        } else if (n++ >= DELEGATE_CALLS_MAX) {
            answer(r, b, results, S("Too many calls in one answer: this one was not run."), true,
                   run_mono(r));
        } else {
            run_call(r, b, results);
        }
        // What a search had read is given back before this one waits for anything else.
        arena_reset(r->turn);
    }
    tasks_end(r);
    return r->same < DELEGATE_SAME_END;
}

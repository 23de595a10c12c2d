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
        vec_push(r->a, &r->loaded, tool);
        buf_add(out, added ? S(", ") : S("Loaded: "));
        buf_add(out, tool);
        group = t->spec->group;
        added++;
    }
    if (added) {
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

// --- One call ------------------------------------------------------------------------------------

static void answer(run *r, const model_block *call, model_message *results, str text, bool is_error,
                   int64_t started) {
    text = run_redact(r, r->a, str_dup(r->a, text));
    vec_push(r->a, &results->blocks,
             ((model_block){.kind = BLOCK_TOOL_RESULT, .id = call->id, .text = text, .is_error = is_error}));
    activity_tool(r, call, text, is_error, r->w->clock->mono_ms(r->w->clock->ctx) - started);
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

static void run_call(run *r, const model_block *call, model_message *results) {
    int64_t started = r->w->clock->mono_ms(r->w->clock->ctx);
    r->report.tool_calls++;
    if (r->sink->tool)
        r->sink->tool(r->sink->ctx, run_redact(r, r->turn, call->name), run_redact(r, r->turn, call->input));
    str text;
    if (call->bad_input) {
        answer(r, call, results, S("The arguments are not a JSON object. Send them again as valid JSON."),
               true, started);
        return;
    }
    if (denied(r, call, &text)) {
        answer(r, call, results, text, true, started);
        return;
    }
    tool_env env = {.cancelled = run_cancelled,
                    .load = load,
                    .available = available,
                    .ctx = r,
                    .delegation = r->id,
                    .model = r->report.model};
    tool_result result;
    // A key that a model repeats must not be written down either.
    str input = run_redact(r, r->turn, call->input);
    tool_call(r->tools, r->turn, &env, &r->loaded, call->name, input, &result);
    if (result.wrote_memory) {
        memory_written m = result.written;
        m.file = str_dup(r->a, m.file);
        m.sha256 = str_dup(r->a, m.sha256);
        m.excerpt = run_redact(r, r->a, str_dup(r->a, m.excerpt));
        vec_push(r->a, &r->report.memory_writes, m);
    }
    int64_t left = r->grant.run_bytes - r->tool_bytes;
    if (left < 0) left = 0;
    if ((int64_t)result.text.n > left) {
        str head = utf8_cut(result.text, (size_t)left);
        result.text = str_fmt(
            r->turn,
            STR_FMT
            "\n[cut: the tool results of this run have reached their limit of %lld bytes; write your report]",
            STR_ARG(head), (long long)r->grant.run_bytes);
    }
    r->tool_bytes += (int64_t)result.text.n;
    answer(r, call, results, result.text, result.is_error, started);
}

void run_calls(run *r, const model_blocks *blocks, model_message *results) {
    size_t n = 0;
    for (vec_each(const model_block, b, blocks)) {
        if (b->kind != BLOCK_TOOL_USE) continue;
        arena_reset(r->turn);
        if (run_cancelled(r)) {
            answer(r, b, results, S("Stopped by a person before this call."), true,
                   r->w->clock->mono_ms(r->w->clock->ctx));
        } else if (n++ >= DELEGATE_CALLS_MAX) {
            answer(r, b, results, S("Too many calls in one answer: this one was not run."), true,
                   r->w->clock->mono_ms(r->w->clock->ctx));
        } else {
            run_call(r, b, results);
        }
    }
}

// delegate: the loop. A model call, its tool calls, again, until the model ends, a budget is spent, somebody
// stops it or the provider fails. However it ends, the newest text stays and becomes the report.
#include "delegate/delegate_int.h"
#include <deputy/utf8.h>

bool run_cancelled(void *p) {
    run *r = p;
    activity_tick(r);
    if (r->sink->cancelled && r->sink->cancelled(r->sink->ctx) && !atomic_load(&r->task->stop))
        atomic_store(&r->task->stop, "stopped by a person");
    return atomic_load(&r->task->stop) != NULL;
}

int64_t run_mono(const run *r) {
    return r->w->clock->mono_ms(r->w->clock->ctx);
}

// --- What a reply says ---------------------------------------------------------------------------

static str text_of(arena *a, const model_blocks *blocks) {
    strs parts = {0};
    for (vec_each(const model_block, b, blocks))
        if (b->kind == BLOCK_TEXT && b->text.n) vec_push(a, &parts, b->text);
    return str_join(a, parts.p, parts.n, S("\n"));
}

static bool has_calls(const model_blocks *blocks) {
    for (vec_each(const model_block, b, blocks))
        if (b->kind == BLOCK_TOOL_USE) return true;
    return false;
}

// The text of an answer that was continued is all of its parts.
static void keep_text(run *r, const model_reply *reply) {
    str text = text_of(r->a, &reply->blocks);
    if (r->continued && text.n) text = str_fmt(r->a, STR_FMT STR_FMT, STR_ARG(r->last_text), STR_ARG(text));
    if (str_trim(text).n) r->last_text = text;
    if (reply->model.n) r->report.model_reported = run_redact(r, r->a, reply->model);
    r->report.usage.input += reply->usage.input;
    r->report.usage.output += reply->usage.output;
    r->report.usage.cache_read += reply->usage.cache_read;
    r->report.usage.cache_write += reply->usage.cache_write;
    r->report.usage.estimated |= reply->usage.estimated;
    context_note_reply(r, reply);
}

static void say(run *r, model_role role, const model_blocks *blocks) {
    model_message m = {.role = role, .blocks = *blocks};
    vec_push(r->a, &r->messages, m);
    message_keep(r, &m);
}

// --- Ends ----------------------------------------------------------------------------------------

// What had come of the answer stays in the conversation, for whoever continues it.
static void say_partly(run *r, const model_reply *reply) {
    model_blocks texts = {0};
    for (vec_each(const model_block, b, &reply->blocks))
        if (b->kind == BLOCK_TEXT && str_trim(b->text).n)
            vec_push(r->a, &texts, ((model_block){.kind = BLOCK_TEXT, .text = b->text}));
    if (texts.n) say(r, ROLE_ASSISTANT, &texts);
}

static void end_by_error(run *r, const model_reply *reply, const dep_err *why) {
    say_partly(r, reply);
    const char *stop = atomic_load(&r->task->stop);
    if (why->status == DEP_ERR_CANCELLED) {
        report_store(r, DELEG_STOPPED, stop ? str_z(stop) : S("stopped by a person"));
    } else {
        report_store(r, DELEG_FAILED, str_fmt(r->a, "%s: %s", err_name(why->status), why->msg));
    }
}

static bool end_by_reply(run *r, const model_reply *reply) {
    if (reply->stop == STOP_REFUSAL) {
        report_store(r, DELEG_FAILED, S("refusal: the model declined"));
    } else {
        if (r->wrap_up)
            run_warn(r,
                     str_fmt(r->a,
                             "it was asked to wrap up at the last of %lld turns: its work may be unfinished",
                             (long long)r->grant.turns));
        report_store(r, DELEG_COMPLETED, reply->stop_text.n ? reply->stop_text : S("end_turn"));
    }
    return false;
}

static bool end_truncated(run *r, str reason) {
    report_store(r, DELEG_TRUNCATED, reason);
    return false;
}

// --- One answer ----------------------------------------------------------------------------------

// The answer was cut at its length limit. What is whole of it stands, and the model is asked to go on.
static bool go_on(run *r, const model_reply *reply) {
    if (r->continued >= DELEGATE_CONTINUE_MAX || !reply->blocks.n) {
        if (reply->blocks.n) say(r, ROLE_ASSISTANT, &reply->blocks);
        str times = r->continued ? str_fmt(r->a, ", after %d continuations", r->continued) : (str){0};
        return end_truncated(
            r, str_fmt(r->a, "max_tokens: the answer was cut at the provider's length limit" STR_FMT,
                       STR_ARG(times)));
    }
    r->continued++;
    say(r, ROLE_ASSISTANT, &reply->blocks);
    model_blocks ask = {0};
    vec_push(r->a, &ask,
             ((model_block){.kind = BLOCK_TEXT,
                            .text = S("Your answer was cut at the length limit. Continue exactly where it "
                                      "stopped, without repeating anything.")}));
    say(r, ROLE_USER, &ask);
    activity_context(r, "continue",
                     str_fmt(r->turn, "the answer was cut at its length limit: %d of %d times", r->continued,
                             DELEGATE_CONTINUE_MAX));
    return true;
}

static bool answer_calls(run *r, const model_reply *reply) {
    if (r->wrap_up) return end_truncated(r, str_fmt(r->a, "max turns: %lld", (long long)r->grant.turns));
    say(r, ROLE_ASSISTANT, &reply->blocks);
    model_message results = {.role = ROLE_USER};
    bool more = run_calls(r, &reply->blocks, &results);
    for (vec_each(const model_block, b, &results.blocks)) r->ctx.added += (int64_t)estimate_tokens(b->text);
    say(r, ROLE_USER, &results.blocks);
    for (vec_each(const str, id, &r->delivering)) vec_push(r->act.a, &r->act.delivered, *id);
    // What is marked as read is looked for by the next wait; all else goes with the batch.
    if (r->delivering.n) {
        activity_flush(r);
    } else {
        activity_tick(r);
    }
    r->delivering = (strs){0};
    if (more) return true;
    return end_truncated(r, str_fmt(r->a, "identical calls: the same call was made in %d answers in a row",
                                    DELEGATE_SAME_END));
}

// True: the loop goes on.
static bool take_reply(run *r, const model_reply *reply) {
    bool calls = has_calls(&reply->blocks);
    if (reply->stop == STOP_REFUSAL) return end_by_reply(r, reply);
    if (calls) {
        r->continued = 0;
        return answer_calls(r, reply);
    }
    if (reply->stop == STOP_MAX_TOKENS) return go_on(r, reply);
    say(r, ROLE_ASSISTANT, &reply->blocks);
    if (reply->stop == STOP_PAUSE) return true;
    return end_by_reply(r, reply);
}

// --- One call ------------------------------------------------------------------------------------

static void on_text(void *p, str delta) {
    activity_text(p, delta);
}
static void on_thinking(void *p, str delta) {
    activity_thinking(p, delta);
}

// What a reply says lives as long as the conversation; what was needed to get it, the request's bytes above
// all, does not.
static void keep_reply(run *r, model_reply *reply) {
    model_blocks kept = {0};
    for (vec_each(const model_block, b, &reply->blocks)) {
        model_block c = *b;
        c.text = str_dup(r->a, b->text);
        c.id = str_dup(r->a, b->id);
        c.name = str_dup(r->a, b->name);
        c.input = str_dup(r->a, b->input);
        c.raw = b->raw.n ? str_dup(r->a, b->raw) : (str){0};
        vec_push(r->a, &kept, c);
    }
    reply->blocks = kept;
    reply->stop_text = str_dup(r->a, reply->stop_text);
    reply->model = str_dup(r->a, reply->model);
}

static dep_status call_model(run *r, model_reply *reply, dep_err *err) {
    model_tool *tools = NEW_N(r->turn, model_tool, r->offered.n);
    for (size_t i = 0; i < r->offered.n; i++)
        tools[i] = (model_tool){r->offered.p[i].name, r->offered.p[i].description, r->offered.p[i].schema};
    model_request req = {.model = r->model_name,
                         .system = r->prompt.text,
                         .tools = tools,
                         .n_tools = r->offered.n,
                         .messages = &r->messages};
    model_sink sink = {.text = on_text, .thinking = on_thinking, .cancelled = run_cancelled, .ctx = r};
    *reply = (model_reply){0};
    arena_reset(r->call);
    dep_status st = model_call(r->provider, r->call, &req, &sink, reply, err);
    keep_reply(r, reply);
    activity_gather(r); // what streamed has ended; it is written with the batch
    keep_text(r, reply);
    return st;
}

// A conversation that the provider finds too long is folded and sent once more.
static dep_status one_call(run *r, model_reply *reply, dep_err *err) {
    dep_status st = call_model(r, reply, err);
    if (st == DEP_OK || !reply->too_long) return st;
    if (context_fold(r, "the provider found the conversation too long")) return call_model(r, reply, err);
    return st;
}

// The last call that the turns allow has the same tools, so that the provider's cache holds, and is told that
// none of them is called any more.
static void announce_last_turn(run *r) {
    r->wrap_up = true;
    model_message *last = &r->messages.p[r->messages.n - 1]; // results, or the task
    if (last->role != ROLE_USER) return;                     // a turn that paused goes on as it is
    model_block note = {.kind = BLOCK_TEXT,
                        .text = S("[This is your last step: no tool is run any more. Write your final answer "
                                  "now from what you have, and say what is missing.]")};
    vec_push(r->a, &last->blocks, note);
    message_keep_word(r, "note", note.text, 0);
    activity_context(r, "wrap_up", S("the last turn that is allowed"));
}

void run_loop(run *r) {
    bool more = true;
    while (more) {
        ending end;
        arena_reset(r->turn);
        if (budget_spent(r, &end)) {
            report_store(r, end.status, end.reason);
            return;
        }
        context_make_room(r);
        if (budget_last_turn(r)) announce_last_turn(r);
        activity_turn(r, ++r->report.turns);
        engine_facts(r, S("waits for the model"));
        model_reply reply;
        dep_err why;
        if (one_call(r, &reply, &why) != DEP_OK) {
            end_by_error(r, &reply, &why);
            return;
        }
        more = take_reply(r, &reply);
    }
}

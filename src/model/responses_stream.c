// responses_stream: the events of one OpenAI Responses reply made into blocks.
//
//   response.created → (output_item.added → deltas* → output_item.done)* → response.completed, .incomplete or
//   .failed
//
// Each piece is told more than once: as deltas, as a whole part, as a whole item, and in the output of the
// last event. The later telling wins, and any of them may be missing: a stream of whole items, or of the last
// event alone, is a reply too. Unknown events are passed over, error ends the reply. An item is echoed as the
// server sent it (`raw`); one that did not come whole, or that the API would not take back, is written anew
// by responses_request. Knows nothing of HTTP.
#include "model/responses_int.h"
#include <deputy/utf8.h>

typedef struct {
    model_stream h;
    enum { BODY_UNKNOWN, BODY_EVENTS, BODY_DOCUMENT } body;
    buf document;
    slots slots;
    str stop_text;
    model_stop stop;
    bool incomplete, refusal;
} responses_stream;

model_stream *responses_stream_new(arena *a, const model_provider *p, const model_sink *sink) {
    responses_stream *s = NEW(a, responses_stream);
    model_stream_init(&s->h, a, p, sink);
    s->stop = STOP_OTHER;
    return &s->h;
}

// --- Items -----------------------------------------------------------------------------------------------

static slot *add_slot(responses_stream *s, item_kind kind, const item_keys *k) {
    if (s->slots.n == RESPONSES_ITEMS_MAX) {
        s->h.failed =
            err_set(&s->h.err, DEP_ERR_LIMIT, "the reply has more than %d items", RESPONSES_ITEMS_MAX);
        return NULL;
    }
    slot it = {.text = buf_new(s->h.a, MODEL_REPLY_MAX), .args = buf_new(s->h.a, MODEL_REPLY_MAX)};
    it.i.kind = kind;
    it.i.keys = (item_keys){k->index, str_dup(s->h.a, k->id), str_dup(s->h.a, k->call_id)};
    vec_push(s->h.a, &s->slots, it);
    if (kind != ITEM_REASONING) s->h.facts.has_content = true;
    return &s->slots.p[s->slots.n - 1];
}

static void tell(responses_stream *s, const slot *it, str text) {
    if (text.n == 0) return;
    s->h.facts.has_content = true;
    if (it->i.kind == ITEM_MESSAGE) model_tell_text(s->h.sink, text);
    if (it->i.kind == ITEM_REASONING) model_tell_thinking(s->h.sink, text);
}

static void grow(responses_stream *s, slot *it, str text) {
    buf_add(&it->text, text);
    tell(s, it, text);
}

static void announce(const responses_stream *s, slot *it) {
    if (it->announced || it->i.keys.call_id.n == 0 || it->i.name.n == 0) return;
    it->announced = true;
    model_tell_tool(s->h.sink, it->i.keys.call_id, it->i.name);
}

static bool differ(str a, str b) {
    return a.n && b.n && !str_eq(a, b);
}

// What a newer event says of an item is added to what is known. Another name or call id means that it is
// another item: then nothing may be put together.
static bool take_keys(responses_stream *s, slot *it, const item *i) {
    if (i->kind == ITEM_CALL &&
        (differ(it->i.name, i->name) || differ(it->i.keys.call_id, i->keys.call_id))) {
        model_stream_fail(
            &s->h, "the stream gives one place to two tool calls, so their arguments cannot be told apart");
        return false;
    }
    if (it->i.name.n == 0) it->i.name = str_dup(s->h.a, i->name);
    if (it->i.keys.call_id.n == 0) it->i.keys.call_id = str_dup(s->h.a, i->keys.call_id);
    if (it->i.keys.id.n == 0) it->i.keys.id = str_dup(s->h.a, i->keys.id);
    if (it->i.keys.index < 0) it->i.keys.index = i->keys.index;
    return true;
}

static const char *const kind_names[] = {[ITEM_MESSAGE] = "a text",
                                         [ITEM_REASONING] = "reasoning",
                                         [ITEM_CALL] = "a tool call",
                                         [ITEM_OTHER] = "an item"};

static slot *find(responses_stream *s, item_kind kind, const item_keys *k) {
    bool many;
    slot *it = item_find(&s->slots, kind, k, &many);
    if (many)
        model_stream_fail(&s->h, "the stream continues %s without saying which of those that are open",
                          kind_names[kind]);
    return it;
}

static void on_added(responses_stream *s, const json *event) {
    const json *v = json_get(event, S("item"));
    if (!v || v->kind != JSON_OBJECT) return;
    item i = item_read(s->h.scratch, v, event);
    // The same item again, or one whose deltas came first.
    slot *it = NULL;
    if (i.keys.id.n || i.keys.call_id.n) {
        const item_keys k = {.index = -1, .id = i.keys.id, .call_id = i.keys.call_id};
        it = find(s, i.kind, &k);
        if (s->h.failed != DEP_OK) return;
    }
    if (!it) it = add_slot(s, i.kind, &i.keys);
    if (!it || !take_keys(s, it, &i)) return;
    if (i.kind == ITEM_CALL) {
        if (it->args.n == 0) buf_add(&it->args, i.args);
        announce(s, it);
    } else if (it->text.n == 0) {
        grow(s, it, i.text);
    }
}

// The text of a whole item or part, of which a beginning may have been heard.
static void complete(responses_stream *s, slot *it, size_t from, str whole) {
    str heard = str_sub(buf_str(&it->text), from, it->text.n);
    if (whole.n == 0 || str_eq(whole, heard)) return;
    if (str_starts(whole, heard)) {
        grow(s, it, str_sub(whole, heard.n, whole.n));
    } else {
        it->text.n = from;
        buf_add(&it->text, whole);
    }
}

static void close_slot(responses_stream *s, slot *it, const item *i) {
    if (!take_keys(s, it, i)) return;
    bool fits = true;
    if (i->kind == ITEM_CALL) {
        str deltas = str_dup(s->h.scratch, buf_str(&it->args));
        fits = i->args.n > 0 || deltas.n == 0;
        if (i->args.n) buf_clear(&it->args), buf_add(&it->args, i->args), it->doubtful = false;
        if (deltas.n == 0 && i->args.n == 0) it->doubtful = false;
        announce(s, it);
    } else {
        fits = i->text.n > 0 || it->text.n == 0;
        complete(s, it, 0, i->text);
    }
    it->closed = true;
    it->i.cut = i->cut;
    it->refusal |= i->refusal;
    // An item whose whole is less than its pieces is not what can be sent back.
    if (i->echo && fits) it->i.raw = str_dup(s->h.a, i->raw);
}

static void on_done(responses_stream *s, const json *event) {
    const json *v = json_get(event, S("item"));
    if (!v || v->kind != JSON_OBJECT) {
        model_stream_fail(&s->h, "the stream holds an output_item.done without an item");
        return;
    }
    item i = item_read(s->h.scratch, v, event);
    slot *it = find(s, i.kind, &i.keys);
    if (s->h.failed != DEP_OK) return;
    if (!it) {
        const item_keys k = {.index = -1, .id = i.keys.id, .call_id = i.keys.call_id};
        if (item_is_closed(&s->slots, i.kind, &k)) return; // told twice
        it = add_slot(s, i.kind, &i.keys);
    }
    if (it) close_slot(s, it, &i);
}

// --- Deltas and parts ------------------------------------------------------------------------------------

static const struct {
    str type;
    item_kind kind;
    bool whole;
    str member; // its text
    str part;   // what counts the parts of the item
    bool refusal;
} pieces[] = {
    {S_INIT("output_text.delta"), ITEM_MESSAGE, false, S_INIT("delta"), S_INIT("content_index"), false},
    {S_INIT("output_text.done"), ITEM_MESSAGE, true, S_INIT("text"), S_INIT("content_index"), false},
    {S_INIT("refusal.delta"), ITEM_MESSAGE, false, S_INIT("delta"), S_INIT("content_index"), true},
    {S_INIT("refusal.done"), ITEM_MESSAGE, true, S_INIT("refusal"), S_INIT("content_index"), true},
    {S_INIT("reasoning_summary_text.delta"), ITEM_REASONING, false, S_INIT("delta"), S_INIT("summary_index"),
     false},
    {S_INIT("reasoning_summary_text.done"), ITEM_REASONING, true, S_INIT("text"), S_INIT("summary_index"),
     false},
    {S_INIT("reasoning_text.delta"), ITEM_REASONING, false, S_INIT("delta"), S_INIT("content_index"), false},
    {S_INIT("reasoning_text.done"), ITEM_REASONING, true, S_INIT("text"), S_INIT("content_index"), false},
    {S_INIT("function_call_arguments.delta"), ITEM_CALL, false, S_INIT("delta"), S_INIT(""), false},
    {S_INIT("function_call_arguments.done"), ITEM_CALL, true, S_INIT("arguments"), S_INIT(""), false},
};

static void add_args(slot *it, str text, bool whole) {
    if (whole && text.n) buf_clear(&it->args);
    buf_add(&it->args, text);
}

static void add_text(responses_stream *s, slot *it, const json *part, str text, bool whole) {
    int64_t n;
    if (json_int(part, 0, INT32_MAX, &n) && n != it->part) {
        it->part = n;
        if (it->text.n && it->i.kind == ITEM_REASONING) grow(s, it, S("\n\n"));
        it->part_from = it->text.n;
    }
    if (whole)
        complete(s, it, it->part_from, text);
    else
        grow(s, it, text);
}

// False when the event is none of those.
static bool on_piece(responses_stream *s, str type, const json *event) {
    size_t n = 0, count = sizeof pieces / sizeof *pieces;
    while (n < count && !str_eq(type, pieces[n].type)) n++;
    if (n == count) return false;
    const json *value = json_get(event, pieces[n].member);
    bool object = value && value->kind == JSON_OBJECT && pieces[n].kind == ITEM_CALL;
    if (!value || (value->kind != JSON_STRING && !object)) return true;
    item_keys k = item_keys_read(event);
    slot *it = find(s, pieces[n].kind, &k);
    if (s->h.failed != DEP_OK) return true;
    if (!it && item_is_closed(&s->slots, pieces[n].kind, &k)) {
        if (!pieces[n].whole) model_stream_fail(&s->h, "the stream continues an item that has ended");
        return true;
    }
    if (!it) it = add_slot(s, pieces[n].kind, &k);
    if (!it) return true;
    it->refusal |= pieces[n].refusal;
    it->doubtful |= differ(it->i.keys.id, k.id) && (!k.call_id.n || !str_eq(it->i.keys.call_id, k.call_id));
    str text = object ? value->raw : value->s;
    if (pieces[n].kind == ITEM_CALL)
        add_args(it, text, pieces[n].whole);
    else
        add_text(s, it, json_get(event, pieces[n].part), text, pieces[n].whole);
    return true;
}

// --- The response ----------------------------------------------------------------------------------------

// One that says nothing but 0 has not counted.
static void take_usage(responses_stream *s, const json *usage) {
    int64_t in, out, cached;
    if (json_int(json_get(usage, S("input_tokens")), 0, MODEL_TOKENS_MAX, &in)) {
        if (!json_int(json_get(json_get(usage, S("input_tokens_details")), S("cached_tokens")), 0, in,
                      &cached))
            cached = 0;
        s->h.usage.input = in - cached;
        s->h.usage.cache_read = cached;
        s->h.facts.has_usage = s->h.facts.has_usage || in > 0;
    }
    if (json_int(json_get(usage, S("output_tokens")), 0, MODEL_TOKENS_MAX, &out)) {
        s->h.usage.output = out;
        s->h.facts.has_usage = s->h.facts.has_usage || out > 0;
    }
}

bool responses_error_passes(str code) {
    static const str rows[] = {S_INIT("rate_limit_exceeded"),
                               S_INIT("rate_limit_error"),
                               S_INIT("too_many_requests"),
                               S_INIT("server_error"),
                               S_INIT("internal_server_error"),
                               S_INIT("api_error"),
                               S_INIT("server_is_overloaded"),
                               S_INIT("overloaded_error"),
                               S_INIT("overloaded"),
                               S_INIT("slow_down"),
                               S_INIT("service_unavailable"),
                               S_INIT("service_unavailable_error"),
                               S_INIT("timeout"),
                               S_INIT("timeout_error")};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_ieq(code, rows[i])) return true;
    return false;
}

// {"code", "type", "message"}, a text, or a code that is the HTTP status.
static void on_error(responses_stream *s, const json *error) {
    int64_t status = 0;
    json_int(json_get(error, S("code")), 0, 999, &status);
    str type = json_str(error, S("type"), S("")), code = json_str(error, S("code"), type);
    str message = json_str(error, S("message"), S("no message"));
    if (error && error->kind == JSON_STRING) message = error->s;
    s->h.facts.passes = status == 429 || status >= 500 || responses_error_passes(code) ||
                        (responses_error_passes(type) && !str_eq(code, S("insufficient_quota")));
    if (code.n == 0 || str_eq(code, S("error")))
        model_stream_fail(&s->h, STR_FMT, STR_ARG(message));
    else
        model_stream_fail(&s->h, STR_FMT ": " STR_FMT, STR_ARG(code), STR_ARG(message));
}

static void take_output(responses_stream *s, const json *output) {
    if (!output || output->kind != JSON_ARRAY || output->count == 0) return;
    if (output->count > RESPONSES_ITEMS_MAX) {
        s->h.failed =
            err_set(&s->h.err, DEP_ERR_LIMIT, "the reply has more than %d items", RESPONSES_ITEMS_MAX);
        return;
    }
    item *items = NEW_N(s->h.scratch, item, output->count);
    size_t *to = NEW_N(s->h.scratch, size_t, output->count), n = 0;
    for (const json *v = output->child; v; v = v->next)
        if (v->kind == JSON_OBJECT) items[n++] = item_read(s->h.scratch, v, NULL);
    item_match(&s->slots, items, n, NEW_N(s->h.scratch, bool, s->slots.n), to);
    for (size_t j = 0; j < n && s->h.failed == DEP_OK; j++) {
        slot *it;
        if (to[j] != SIZE_MAX)
            it = &s->slots.p[to[j]];
        else if (!(it = add_slot(s, items[j].kind, &items[j].keys)))
            return;
        if (!it->closed) close_slot(s, it, &items[j]);
    }
}

static void on_incomplete(responses_stream *s, const json *response) {
    str reason = json_str(json_get(response, S("incomplete_details")), S("reason"), S(""));
    s->stop_text = str_dup(s->h.a, reason.n ? reason : S("incomplete"));
    // Without a reason it is taken for the usual one.
    if (reason.n == 0 || str_eq(reason, S("max_output_tokens")) || str_eq(reason, S("max_tokens")) ||
        str_eq(reason, S("length")))
        s->stop = STOP_MAX_TOKENS;
    else if (str_eq(reason, S("content_filter")))
        s->stop = STOP_REFUSAL;
}

// The last event of the stream. Some servers name the wrong one: the status of the response knows better.
static void on_end(responses_stream *s, str status, const json *response) {
    str said = json_str(response, S("status"), S(""));
    if (str_eq(said, S("incomplete")) || str_eq(said, S("failed")) || str_eq(said, S("cancelled")))
        status = said;
    take_usage(s, json_get(response, S("usage")));
    str model = json_str(response, S("model"), S(""));
    if (model.n) s->h.model = str_dup(s->h.a, model);
    const json *error = json_get(response, S("error"));
    if (str_eq(status, S("failed")) || str_eq(status, S("cancelled"))) {
        if (error && (error->kind == JSON_OBJECT || error->kind == JSON_STRING))
            on_error(s, error);
        else
            model_stream_fail(&s->h, "the API ended the response as " STR_FMT ", without a reason",
                              STR_ARG(status));
        return;
    }
    take_output(s, json_get(response, S("output")));
    if (s->h.failed != DEP_OK) return;
    s->h.done = true;
    s->stop = STOP_END;
    s->stop_text = str_dup(s->h.a, status);
    if (str_eq(status, S("incomplete"))) {
        s->incomplete = true;
        s->stop = STOP_OTHER;
        on_incomplete(s, response);
    }
}

static void on_json(responses_stream *s, str name, const json *event) {
    if (event->kind != JSON_OBJECT) return;
    const json *error = json_get(event, S("error"));
    bool has_error = error && (error->kind == JSON_OBJECT || error->kind == JSON_STRING);
    // Without a type the name of the event says it.
    str type = json_str(event, S("type"), name);
    if (str_eq(type, S("error")) || (has_error && !str_starts(type, S("response.")))) {
        on_error(s, has_error ? error : event);
        return;
    }
    if (str_eq(json_str(event, S("object"), S("")), S("error"))) {
        on_error(s, event);
        return;
    }
    if (!str_starts(type, S("response."))) return;
    type = str_sub(type, sizeof "response." - 1, type.n);
    const json *response = json_get(event, S("response"));
    if (str_eq(type, S("output_item.added"))) {
        on_added(s, event);
    } else if (str_eq(type, S("output_item.done"))) {
        on_done(s, event);
    } else if (str_eq(type, S("completed")) || str_eq(type, S("incomplete")) || str_eq(type, S("failed")) ||
               str_eq(type, S("cancelled"))) {
        on_end(s, type, response);
    } else if (!on_piece(s, type, event) && str_eq(type, S("created"))) {
        s->h.model = str_dup(s->h.a, json_str(response, S("model"), S("")));
    }
}

static bool on_event(void *ctx, const sse_event *e) {
    responses_stream *s = ctx;
    // The end marker of the older API, which some servers send too.
    if (str_eq(e->data, S("[DONE]"))) return true;
    json *event;
    dep_err why;
    if (model_stream_json(&s->h, e->data, &event, &why) != DEP_OK)
        model_stream_fail(&s->h, "the stream holds an event that is not JSON (%s)", why.msg);
    else
        on_json(s, e->event, event);
    return s->h.failed == DEP_OK && !s->h.done;
}

// By the first byte that is not blank. No line of a stream begins with a brace.
static void tell_body(responses_stream *s, str bytes) {
    for (size_t i = 0; i < bytes.n && s->body == BODY_UNKNOWN; i++)
        if (!strchr(" \t\r\n", bytes.p[i]) || bytes.p[i] == 0)
            s->body = bytes.p[i] == '{' ? BODY_DOCUMENT : BODY_EVENTS;
    if (s->body == BODY_DOCUMENT) s->document = buf_new(s->h.a, MODEL_REPLY_MAX);
}

dep_status responses_stream_feed(model_stream *m, str bytes, bool *done, dep_err *err) {
    ARENA_CATCH(m->scratch, err);
    responses_stream *s = (responses_stream *)m;
    if (s->body == BODY_UNKNOWN) tell_body(s, bytes);
    if (s->body == BODY_DOCUMENT) {
        buf_add(&s->document, bytes);
        if (s->document.over)
            return err_set(err, DEP_ERR_LIMIT, "the reply has more than %d bytes", MODEL_REPLY_MAX);
        return DEP_OK;
    }
    model_stream_events(m, bytes, on_event);
    return model_stream_state(m, done, err);
}

// --- The reply -------------------------------------------------------------------------------------------

// A call that the server did not name gets an id of ours. The item's own will do when no other call has it;
// else one that no turn of the conversation has had.
static str call_id_for(responses_stream *s, const slot *it, size_t place) {
    size_t others = 0;
    for (vec_each(const slot, o, &s->slots))
        others +=
            o != it && (str_eq(o->i.keys.id, it->i.keys.id) || str_eq(o->i.keys.call_id, it->i.keys.id));
    if (it->i.keys.id.n && !others) return it->i.keys.id;
    uint64_t number = place;
    if (s->h.p) s->h.p->clock->random(s->h.p->clock->ctx, &number, sizeof number);
    return str_fmt(s->h.a, "call_%016llx", (unsigned long long)number);
}

// Whether a call may stand in the reply. Half a call must never run, and one that could be another's neither.
static bool call_stands(responses_stream *s, const slot *it, bool whole) {
    if (it->i.cut || (!it->closed && (!whole || s->incomplete))) return false;
    if (it->i.name.n == 0) {
        if (whole) model_stream_fail(&s->h, "the stream holds a tool call without a name");
        return false;
    }
    if (it->doubtful) {
        if (whole)
            model_stream_fail(&s->h,
                              "the stream names a tool call in two ways, so its arguments cannot be trusted");
        return false;
    }
    for (vec_each(const slot, o, &s->slots)) {
        if (o == it || o->i.kind != ITEM_CALL || !o->i.keys.call_id.n ||
            !str_eq(o->i.keys.call_id, it->i.keys.call_id))
            continue;
        if (whole) model_stream_fail(&s->h, "the stream holds two tool calls with one id");
        return false;
    }
    return true;
}

static void finish_slot(responses_stream *s, size_t place, bool whole, model_reply *ret) {
    slot *it = &s->slots.p[place];
    model_block m = {.kind = BLOCK_OTHER, .raw = it->i.raw};
    switch (it->i.kind) {
    case ITEM_MESSAGE:
        m.kind = BLOCK_TEXT;
        m.text = buf_str(&it->text);
        s->refusal |= it->refusal;
        // The API refuses blank text when it is sent back.
        if (str_trim(m.text).n == 0) return;
        break;
    case ITEM_REASONING:
        m.kind = BLOCK_THINKING;
        m.text = buf_str(&it->text);
        if (m.text.n == 0 && m.raw.n == 0) return;
        break;
    case ITEM_CALL:
        if (!call_stands(s, it, whole)) return;
        m.kind = BLOCK_TOOL_USE;
        m.name = it->i.name;
        m.id = it->i.keys.call_id.n ? it->i.keys.call_id : call_id_for(s, it, place);
        model_block_set_input(s->h.a, &m, buf_str(&it->args));
        if (m.bad_input && s->incomplete) return; // cut, whatever the server says of it
        break;
    case ITEM_OTHER:
        if (m.raw.n == 0) return;
    }
    vec_push(s->h.a, &ret->blocks, m);
}

// One that is cut leaves the reply without an end.
static void take_document(responses_stream *s) {
    json *response;
    arena_reset(s->h.scratch);
    if (json_parse(s->h.scratch, buf_str(&s->document), MODEL_REPLY_MAX, &response, NULL) != DEP_OK) return;
    const json *error = json_get(response, S("error"));
    if (error && (error->kind == JSON_OBJECT || error->kind == JSON_STRING))
        on_error(s, error);
    else if (json_get(response, S("output")) || json_get(response, S("status")))
        on_end(s, json_str(response, S("status"), S("completed")), response);
    else
        model_stream_fail(&s->h, "the answer is neither a stream nor a response");
}

dep_status responses_stream_end(model_stream *m, bool whole, model_reply *ret, dep_err *err) {
    ARENA_CATCH(m->scratch, err);
    responses_stream *s = (responses_stream *)m;
    if (whole && s->body == BODY_DOCUMENT && !s->h.done && s->h.failed == DEP_OK) take_document(s);
    *ret =
        (model_reply){.usage = s->h.usage, .model = s->h.model, .stop = s->stop, .stop_text = s->stop_text};
    bool has_call = false;
    for (size_t i = 0; i < s->slots.n; i++) finish_slot(s, i, whole && s->h.done, ret);
    for (vec_each(const model_block, b, &ret->blocks)) has_call |= b->kind == BLOCK_TOOL_USE;
    if (!whole) return DEP_OK;
    if (s->h.failed != DEP_OK) return err_set(err, s->h.failed, "%s", s->h.err.msg);
    if (!s->h.done) return model_stream_early(err);
    if (s->refusal && ret->stop != STOP_MAX_TOKENS) {
        ret->stop = STOP_REFUSAL;
        ret->stop_text = S("refusal");
    } else {
        ret->stop = model_stop_beside(ret->stop, has_call);
    }
    return DEP_OK;
}

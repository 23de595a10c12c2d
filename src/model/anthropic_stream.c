// anthropic_stream: the events of one Anthropic Messages reply made into blocks.
//
//   message_start → (content_block_start → content_block_delta* → content_block_stop)* → message_delta →
//   message_stop
//
// ping and unknown events are passed over, error ends the reply. Each block is assembled twice: as our own
// block, and as the JSON the provider sent (`raw`), so that it can be echoed unchanged: the members of
// content_block_start in their order, with those that deltas continue replaced by the whole. Knows nothing of
// HTTP.
#include "model/anthropic_int.h"

enum {
    STREAM_BLOCKS_MAX = 1000, // blocks of a reply
};

// A member of a block that deltas continue.
typedef enum { PART_TEXT, PART_THINKING, PART_SIGNATURE, PART_INPUT, PART_CITATIONS, PART_COUNT } part;
static const struct {
    str delta, delta_member, member;
} parts[PART_COUNT] = {
    [PART_TEXT] = {S_INIT("text_delta"), S_INIT("text"), S_INIT("text")},
    [PART_THINKING] = {S_INIT("thinking_delta"), S_INIT("thinking"), S_INIT("thinking")},
    [PART_SIGNATURE] = {S_INIT("signature_delta"), S_INIT("signature"), S_INIT("signature")},
    [PART_INPUT] = {S_INIT("input_json_delta"), S_INIT("partial_json"), S_INIT("input")},
    [PART_CITATIONS] = {S_INIT("citations_delta"), S_INIT("citation"), S_INIT("citations")},
};

typedef struct {
    int64_t index; // the provider's
    str start;     // content_block as it came
    str type, id, name;
    buf parts[PART_COUNT];
    bool seen[PART_COUNT];
    bool closed;
} block;

typedef struct {
    model_stream h;
    VEC(block) blocks;
    str stop_reason;
} anthropic_stream;

model_stream *anthropic_stream_new(arena *a, const model_provider *p, const model_sink *sink) {
    anthropic_stream *s = NEW(a, anthropic_stream);
    model_stream_init(&s->h, a, p, sink);
    return &s->h;
}

// --- Blocks ----------------------------------------------------------------------------------------------

static block *find_block(anthropic_stream *s, const json *event) {
    int64_t index;
    if (!json_int(json_get(event, S("index")), 0, INT32_MAX, &index)) return NULL;
    // Newest first: an index that is used again means the block that began last.
    for (size_t i = s->blocks.n; i > 0; i--)
        if (s->blocks.p[i - 1].index == index) return &s->blocks.p[i - 1];
    return NULL;
}

static void add_part(anthropic_stream *s, block *b, part k, str text) {
    if (!b->seen[k]) b->parts[k] = buf_new(s->h.a, MODEL_REPLY_MAX);
    b->seen[k] = true;
    if (k == PART_CITATIONS && b->parts[k].n) buf_add(&b->parts[k], S(","));
    buf_add(&b->parts[k], text);
}

static void tell(const anthropic_stream *s, part k, str text) {
    if (text.n == 0) return;
    if (k == PART_TEXT) model_tell_text(s->h.sink, text);
    if (k == PART_THINKING) model_tell_thinking(s->h.sink, text);
}

static void on_block_start(anthropic_stream *s, const json *event) {
    const json *content = json_get(event, S("content_block"));
    int64_t index;
    if (!content || content->kind != JSON_OBJECT ||
        !json_int(json_get(event, S("index")), 0, INT32_MAX, &index)) {
        model_stream_fail(&s->h, "the stream holds a content_block_start without a block or an index");
        return;
    }
    if (s->blocks.n == STREAM_BLOCKS_MAX) {
        s->h.failed =
            err_set(&s->h.err, DEP_ERR_LIMIT, "the reply has more than %d blocks", STREAM_BLOCKS_MAX);
        return;
    }
    s->h.facts.has_content = true;
    block b = {.index = index, .start = str_dup(s->h.a, content->raw)};
    b.type = str_dup(s->h.a, json_str(content, S("type"), S("")));
    if (str_eq(b.type, S("tool_use"))) {
        b.id = str_dup(s->h.a, json_str(content, S("id"), S("")));
        b.name = str_dup(s->h.a, json_str(content, S("name"), S("")));
        if (b.id.n == 0 || b.name.n == 0) {
            model_stream_fail(&s->h, "the stream holds a tool call without an id or a name");
            return;
        }
    }
    // What stands in the start event is the beginning of the whole.
    for (part k = PART_TEXT; k <= PART_SIGNATURE; k++) {
        str begun = json_str(content, parts[k].member, S(""));
        if (begun.n) add_part(s, &b, k, begun);
    }
    vec_push(s->h.a, &s->blocks, b);
    if (b.id.n) model_tell_tool(s->h.sink, b.id, b.name);
    if (str_eq(b.type, S("text"))) tell(s, PART_TEXT, json_str(content, S("text"), S("")));
    if (str_eq(b.type, S("thinking"))) tell(s, PART_THINKING, json_str(content, S("thinking"), S("")));
}

static void on_block_delta(anthropic_stream *s, const json *event) {
    block *b = find_block(s, event);
    const json *delta = json_get(event, S("delta"));
    if (!b || b->closed || !delta) {
        model_stream_fail(&s->h, "the stream continues a block that is not open");
        return;
    }
    str type = json_str(delta, S("type"), S(""));
    for (part k = 0; k < PART_COUNT; k++) {
        if (!str_eq(type, parts[k].delta)) continue;
        const json *value = json_get(delta, parts[k].delta_member);
        if (!value) return;
        if (k == PART_CITATIONS) {
            add_part(s, b, k, value->raw);
        } else if (value->kind == JSON_STRING) {
            add_part(s, b, k, value->s);
            tell(s, k, value->s);
        }
        return;
    }
}

// --- Message ---------------------------------------------------------------------------------------------

// Counts are cumulative, so the largest one seen is the whole; some servers repeat one as 0, and one that
// says nothing but 0 has not counted.
static void take_usage(anthropic_stream *s, const json *usage) {
    const struct {
        str member;
        int64_t *to;
    } counts[] = {
        {S("input_tokens"), &s->h.usage.input},
        {S("output_tokens"), &s->h.usage.output},
        {S("cache_read_input_tokens"), &s->h.usage.cache_read},
        {S("cache_creation_input_tokens"), &s->h.usage.cache_write},
    };
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        int64_t n;
        if (!json_int(json_get(usage, counts[i].member), 0, MODEL_TOKENS_MAX, &n)) continue;
        if (n > *counts[i].to) *counts[i].to = n;
        if (n > 0) s->h.facts.has_usage = true;
    }
}

static void on_error(anthropic_stream *s, const json *event) {
    const json *error = json_get(event, S("error"));
    str type = json_str(error, S("type"), S("error"));
    s->h.facts.passes = anthropic_error_passes(type);
    model_stream_fail(&s->h, STR_FMT ": " STR_FMT, STR_ARG(type),
                      STR_ARG(json_str(error, S("message"), S("no message"))));
}

static void on_json(anthropic_stream *s, const json *event) {
    str type = json_str(event, S("type"), S(""));
    if (str_eq(type, S("message_start"))) {
        const json *message = json_get(event, S("message"));
        s->h.model = str_dup(s->h.a, json_str(message, S("model"), S("")));
        take_usage(s, json_get(message, S("usage")));
    } else if (str_eq(type, S("content_block_start"))) {
        on_block_start(s, event);
    } else if (str_eq(type, S("content_block_delta"))) {
        on_block_delta(s, event);
    } else if (str_eq(type, S("content_block_stop"))) {
        block *b = find_block(s, event);
        if (b) b->closed = true;
    } else if (str_eq(type, S("message_delta"))) {
        str reason = json_str(json_get(event, S("delta")), S("stop_reason"), S(""));
        if (reason.n) s->stop_reason = str_dup(s->h.a, reason);
        take_usage(s, json_get(event, S("usage")));
    } else if (str_eq(type, S("message_stop"))) {
        s->h.done = true;
    } else if (str_eq(type, S("error"))) {
        on_error(s, event);
    }
}

static bool on_event(void *ctx, const sse_event *e) {
    anthropic_stream *s = ctx;
    // Some proxies close with OpenAI's end marker.
    if (str_eq(e->data, S("[DONE]"))) return true;
    json *event;
    dep_err why;
    if (model_stream_json(&s->h, e->data, &event, &why) != DEP_OK)
        model_stream_fail(&s->h, "the stream holds an event that is not JSON (%s)", why.msg);
    else
        on_json(s, event);
    return s->h.failed == DEP_OK && !s->h.done;
}

dep_status anthropic_stream_feed(model_stream *m, str bytes, bool *done, dep_err *err) {
    ARENA_CATCH(m->scratch, err);
    model_stream_events(m, bytes, on_event);
    return model_stream_state(m, done, err);
}

// --- The reply -------------------------------------------------------------------------------------------

// The API takes nothing but an object back. `input` is not only that of calls: blocks of kinds to come have
// one too.
static str object_or_empty(anthropic_stream *s, str text) {
    json *parsed;
    bool fine = json_parse(s->h.scratch, text, 0, &parsed, NULL) == DEP_OK && parsed->kind == JSON_OBJECT;
    return fine ? text : S("{}");
}

// The whole value of a member that deltas continued.
static void write_part(anthropic_stream *s, jw *w, block *b, part k) {
    str text = buf_str(&b->parts[k]);
    if (k == PART_CITATIONS) {
        jw_arr(w);
        if (text.n) jw_raw(w, text);
        jw_end_arr(w);
    } else if (k == PART_INPUT) {
        jw_raw(w, object_or_empty(s, text));
    } else {
        jw_str(w, text);
    }
}

static str raw_block(anthropic_stream *s, block *b) {
    json *start;
    arena_reset(s->h.scratch);
    if (json_parse(s->h.scratch, b->start, 0, &start, NULL) != DEP_OK) return (str){0};
    buf out = buf_new(s->h.a, 0);
    jw w = jw_new(&out);
    bool written[PART_COUNT] = {0};
    jw_obj(&w);
    for (const json *m = start->child; m; m = m->next) {
        part k = 0;
        while (k < PART_COUNT && !(b->seen[k] && str_eq(m->key, parts[k].member))) k++;
        jw_key(&w, m->key);
        if (k == PART_COUNT) {
            jw_raw(&w, str_eq(m->key, S("input")) ? object_or_empty(s, m->raw) : m->raw);
        } else {
            written[k] = true;
            write_part(s, &w, b, k);
        }
    }
    for (part k = 0; k < PART_COUNT; k++) {
        if (!b->seen[k] || written[k]) continue;
        jw_key(&w, parts[k].member);
        write_part(s, &w, b, k);
    }
    jw_end_obj(&w);
    return buf_str(&out);
}

static void set_input(anthropic_stream *s, block *b, model_block *m) {
    str text = b->seen[PART_INPUT] ? buf_str(&b->parts[PART_INPUT]) : (str){0};
    if (str_trim(text).n == 0) {
        // Some servers send the whole input at once.
        json *start;
        arena_reset(s->h.scratch);
        if (json_parse(s->h.scratch, b->start, 0, &start, NULL) == DEP_OK) {
            const json *input = json_get(start, S("input"));
            if (input) text = str_dup(s->h.a, input->raw);
        }
        b->seen[PART_INPUT] = false;
    }
    model_block_set_input(s->h.a, m, text);
}

static str part_text(block *b, part k) {
    return b->seen[k] ? buf_str(&b->parts[k]) : (str){0};
}

static model_stop named_stop(str reason) {
    static const struct {
        str reason;
        model_stop stop;
    } rows[] = {
        {S_INIT("end_turn"), STOP_END},
        {S_INIT("stop_sequence"), STOP_END},
        {S_INIT("tool_use"), STOP_TOOL_USE},
        {S_INIT("max_tokens"), STOP_MAX_TOKENS},
        {S_INIT("model_context_window_exceeded"), STOP_MAX_TOKENS},
        {S_INIT("pause_turn"), STOP_PAUSE},
        {S_INIT("refusal"), STOP_REFUSAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_eq(reason, rows[i].reason)) return rows[i].stop;
    return STOP_OTHER;
}

// A reply that came to its limit in the middle of a block: what can be neither run nor sent back is left out.
static bool is_half(const anthropic_stream *s, block *b, const model_block *m) {
    if (named_stop(s->stop_reason) != STOP_MAX_TOKENS) return false;
    if (m->kind == BLOCK_THINKING && !str_eq(b->type, S("redacted_thinking")))
        return !b->closed || part_text(b, PART_SIGNATURE).n == 0;
    if (m->kind != BLOCK_TOOL_USE) return false;
    // The newest may have been cut before its first argument, which then looks like a call without any.
    bool newest = b == &s->blocks.p[s->blocks.n - 1];
    bool blank = !b->seen[PART_INPUT] && str_eq(m->input, S("{}"));
    return !b->closed || m->bad_input || (newest && blank);
}

static void finish_block(anthropic_stream *s, block *b, bool whole, model_reply *ret) {
    model_block m = {.kind = BLOCK_OTHER};
    if (str_eq(b->type, S("text"))) {
        m.kind = BLOCK_TEXT;
        m.text = part_text(b, PART_TEXT);
        // The API refuses blank text when it is sent back.
        if (str_trim(m.text).n == 0) return;
    } else if (str_eq(b->type, S("thinking"))) {
        m.kind = BLOCK_THINKING;
        m.text = part_text(b, PART_THINKING);
    } else if (str_eq(b->type, S("redacted_thinking"))) {
        m.kind = BLOCK_THINKING;
    } else if (str_eq(b->type, S("tool_use"))) {
        // Half a call must never run.
        if (!b->closed && !whole) return;
        m.kind = BLOCK_TOOL_USE;
        m.id = b->id;
        m.name = b->name;
        set_input(s, b, &m);
    }
    if (is_half(s, b, &m)) return;
    // Thinking without its signature, or half of something unknown, cannot be sent back.
    if (b->closed || m.kind == BLOCK_TEXT || m.kind == BLOCK_TOOL_USE) m.raw = raw_block(s, b);
    if (m.kind == BLOCK_OTHER && m.raw.n == 0) return;
    vec_push(s->h.a, &ret->blocks, m);
}

dep_status anthropic_stream_end(model_stream *m, bool whole, model_reply *ret, dep_err *err) {
    ARENA_CATCH(m->scratch, err);
    anthropic_stream *s = (anthropic_stream *)m;
    *ret = (model_reply){
        .usage = s->h.usage, .model = s->h.model, .stop = STOP_OTHER, .stop_text = s->stop_reason};
    bool open = sse_pending(s->h.sse), has_call = false;
    for (size_t i = 0; i < s->blocks.n; i++) open = open || !s->blocks.p[i].closed;
    // A reason to stop after closed blocks says that the reply is whole, even if the last event is missing.
    bool ended = s->h.done || (s->stop_reason.n > 0 && !open);
    for (size_t i = 0; i < s->blocks.n; i++) finish_block(s, &s->blocks.p[i], whole && ended, ret);
    for (size_t i = 0; i < ret->blocks.n; i++) has_call = has_call || ret->blocks.p[i].kind == BLOCK_TOOL_USE;
    if (!whole) return DEP_OK;
    if (!ended) return model_stream_early(err);
    ret->stop = model_stop_beside(named_stop(s->stop_reason), has_call);
    return DEP_OK;
}

bool anthropic_error_passes(str type) {
    static const str rows[] = {S_INIT("overloaded_error"), S_INIT("rate_limit_error"), S_INIT("api_error"),
                               S_INIT("timeout_error")};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (str_eq(type, rows[i])) return true;
    return false;
}

// stub_formats: what the stub answers, in the formats of four APIs, from public descriptions of them.
// Included by stub.c alone. A streamed answer is a list of events, each already a chunk of HTTP/1.1.
#pragma once
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PIECES_MAX = 64,
    EVENTS_MAX = PIECES_MAX * 2 + 16,
    EVENT_MAX = 8192,
    TOOLS_MAX = 16,
};

static const char report[] = "The manual answers the question. An opened product may come back within thirty "
                             "days; the customer pays the "
                             "shipping unless the product was faulty, and a faulty one is fetched. A refund "
                             "is made within fourteen days on "
                             "the way it was paid. What was found: the page on returns names the period, the "
                             "page on warranty names who "
                             "pays, and the page on deliveries says how a parcel is labelled. Nothing else "
                             "in the manual speaks against it.";

typedef struct {
    const char *p;
    size_t n;
} slice;

typedef struct {
    char *p;
    size_t n, cap;
} bytes;

typedef enum { API_NONE, API_MESSAGES, API_CHAT, API_RESPONSES, API_GENERATE } api;

// What a request says, and what is answered.
typedef struct {
    api api;
    bool stream, has_turns;
    uint64_t answers, turns; // of the model so far, and those with a call that were asked for
    slice model;
    bool named[TOOLS_MAX], keyed[TOOLS_MAX]; // by row of the table of tools
    const char *tool;                        // NULL: the report
    char args[PATH_MAX + 256];
    size_t body, in_tokens, out_tokens;
    uint64_t id;
} request;

typedef struct {
    bytes out;
    size_t ends[EVENTS_MAX], n; // where each event ends in out
    size_t pieces;              // deltas of a text
} answer;

[[noreturn]] static void die(const char *what) {
    fprintf(stderr, "stub: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void room(bytes *b, size_t n) {
    if (b->cap - b->n >= n) return;
    b->cap = (b->n + n) * 2;
    b->p = realloc(b->p, b->cap);
    if (!b->p) die("memory");
}

static void add(bytes *b, const char *p, size_t n) {
    room(b, n);
    memcpy(b->p + b->n, p, n);
    b->n += n;
}

[[gnu::format(printf, 2, 3)]] static void addf(bytes *b, const char *fmt, ...) {
    va_list ap;
    room(b, EVENT_MAX);
    va_start(ap, fmt);
    int n = vsnprintf(b->p + b->n, EVENT_MAX, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= EVENT_MAX) die("an event is too long");
    b->n += (size_t)n;
}

static void mark(answer *c) {
    if (c->n == EVENTS_MAX) die("too many events");
    c->ends[c->n++] = c->out.n;
}

static void escaped(bytes *b, const char *p, size_t n) {
    for (; n; n--, p++) {
        if (*p == '"' || *p == '\\') add(b, "\\", 1);
        add(b, p, 1);
    }
}

// One event as one chunk; its data is between before and after, with a piece of text escaped in the middle.
static void event(answer *c, const char *name, const char *before, const char *text, size_t n,
                  const char *after) {
    static const char hex[] = "0123456789abcdef";
    size_t at = c->out.n;
    add(&c->out, "0000\r\n", 6);
    if (name) addf(&c->out, "event: %s\n", name);
    addf(&c->out, "data: %s", before);
    escaped(&c->out, text, n);
    addf(&c->out, "%s\n\n", after);
    size_t size = c->out.n - at - 6;
    for (int i = 3; i >= 0; i--, size >>= 4) c->out.p[at + (size_t)i] = hex[size & 15];
    add(&c->out, "\r\n", 2);
    mark(c);
}

// `before` is a format.
[[gnu::format(printf, 3, 4)]] static void plain_event(answer *c, const char *name, const char *fmt, ...) {
    char data[EVENT_MAX];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(data, sizeof data, fmt, ap);
    va_end(ap);
    if (n < 0 || n >= EVENT_MAX) die("an event is too long");
    event(c, name, data, "", 0, "");
}

static void text_events(answer *c, const char *name, const char *before, const char *text,
                        const char *after) {
    size_t n = strlen(text), size = (n + c->pieces - 1) / c->pieces;
    for (size_t i = 0; i < n; i += size) event(c, name, before, text + i, n - i < size ? n - i : size, after);
}

static void messages_block(answer *c, int index, const char *start, const char *kind, const char *text) {
    char before[128];
    plain_event(c, "content_block_start",
                "{\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}", index, start);
    snprintf(before, sizeof before, "{\"type\":\"content_block_delta\",\"index\":%d,\"delta\":%s", index,
             kind);
    text_events(c, "content_block_delta", before, text, "\"}}");
    plain_event(c, "content_block_stop", "{\"type\":\"content_block_stop\",\"index\":%d}", index);
}

static void messages_stream(answer *c, const request *r) {
    plain_event(c, "message_start",
                "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_%llu\",\"type\":\"message\",\"role\":"
                "\"assistant\",\"model\":\"%.*s\",\"content\":[],\"stop_reason\":null,\"stop_sequence\":null,"
                "\"usage\":{\"input_tokens\":%zu,\"output_tokens\":1}}}",
                (unsigned long long)r->id, (int)r->model.n, r->model.p, r->in_tokens);
    messages_block(c, 0, "{\"type\":\"text\",\"text\":\"\"}", "{\"type\":\"text_delta\",\"text\":\"",
                   r->tool ? "I look that up." : report);
    if (r->tool) {
        char start[256];
        snprintf(start, sizeof start,
                 "{\"type\":\"tool_use\",\"id\":\"toolu_%llu\",\"name\":\"%s\",\"input\":{}}",
                 (unsigned long long)r->id, r->tool);
        messages_block(c, 1, start, "{\"type\":\"input_json_delta\",\"partial_json\":\"", r->args);
    }
    plain_event(
        c, "message_delta",
        "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\",\"stop_sequence\":null},\"usage\":{"
        "\"output_tokens\":%zu}}",
        r->tool ? "tool_use" : "end_turn", r->out_tokens);
    plain_event(c, "message_stop", "{\"type\":\"message_stop\"}");
}

static void messages_whole(bytes *b, const request *r) {
    addf(b,
         "{\"id\":\"msg_%llu\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"%.*s\",\"content\":[",
         (unsigned long long)r->id, (int)r->model.n, r->model.p);
    if (r->tool)
        addf(b, "{\"type\":\"tool_use\",\"id\":\"toolu_%llu\",\"name\":\"%s\",\"input\":%s}",
             (unsigned long long)r->id, r->tool, r->args);
    else
        addf(b, "{\"type\":\"text\",\"text\":\"%s\"}", report);
    addf(b,
         "],\"stop_reason\":\"%s\",\"stop_sequence\":null,\"usage\":{\"input_tokens\":%zu,\"output_tokens\":%"
         "zu}}",
         r->tool ? "tool_use" : "end_turn", r->in_tokens, r->out_tokens);
}

static void chat_usage(bytes *b, const request *r) {
    addf(b, "\"usage\":{\"prompt_tokens\":%zu,\"completion_tokens\":%zu,\"total_tokens\":%zu}", r->in_tokens,
         r->out_tokens, r->in_tokens + r->out_tokens);
}

static void chat_stream(answer *c, const request *r) {
    char head[512], before[640];
    snprintf(
        head, sizeof head,
        "{\"id\":\"chatcmpl-%llu\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"%.*s\","
        "\"choices\":[",
        (unsigned long long)r->id, r->model.n > 256 ? 256 : (int)r->model.n, r->model.p);
    plain_event(
        c, NULL,
        "%s{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}", head);
    if (r->tool) {
        plain_event(
            c, NULL,
            "%s{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"call_%llu\",\"type\":"
            "\"function\",\"function\":{\"name\":\"%s\",\"arguments\":\"\"}}]},\"finish_reason\":null}]}",
            head, (unsigned long long)r->id, r->tool);
        snprintf(before, sizeof before,
                 "%s{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"",
                 head);
        text_events(c, NULL, before, r->args, "\"}}]},\"finish_reason\":null}]}");
    } else {
        snprintf(before, sizeof before, "%s{\"index\":0,\"delta\":{\"content\":\"", head);
        text_events(c, NULL, before, report, "\"},\"finish_reason\":null}]}");
    }
    plain_event(c, NULL, "%s{\"index\":0,\"delta\":{},\"finish_reason\":\"%s\"}]}", head,
                r->tool ? "tool_calls" : "stop");
    bytes usage = {0};
    chat_usage(&usage, r);
    plain_event(c, NULL, "%s],%.*s}", head, (int)usage.n, usage.p);
    free(usage.p);
    plain_event(c, NULL, "[DONE]");
}

static void chat_whole(bytes *b, const request *r) {
    addf(b,
         "{\"id\":\"chatcmpl-%llu\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"%.*s\","
         "\"choices\":[{"
         "\"index\":0,\"message\":{\"role\":\"assistant\",",
         (unsigned long long)r->id, (int)r->model.n, r->model.p);
    if (r->tool) {
        addf(b,
             "\"content\":null,\"tool_calls\":[{\"id\":\"call_%llu\",\"type\":\"function\",\"function\":{"
             "\"name\":"
             "\"%s\",\"arguments\":\"",
             (unsigned long long)r->id, r->tool);
        escaped(b, r->args, strlen(r->args));
        addf(b, "\"}}]},\"finish_reason\":\"tool_calls\"}],");
    } else {
        addf(b, "\"content\":\"%s\"},\"finish_reason\":\"stop\"}],", report);
    }
    chat_usage(b, r);
    add(b, "}", 1);
}

// The one item of a Responses answer, whole or just begun.
static void responses_item(bytes *b, const request *r, bool whole) {
    unsigned long long id = r->id;
    const char *status = whole ? "completed" : "in_progress";
    if (r->tool) {
        addf(b,
             "{\"type\":\"function_call\",\"id\":\"fc_%llu\",\"call_id\":\"call_%llu\",\"name\":\"%s\","
             "\"status\":"
             "\"%s\",\"arguments\":\"",
             id, id, r->tool, status);
        if (whole) escaped(b, r->args, strlen(r->args));
        addf(b, "\"}");
    } else {
        addf(b,
             "{\"type\":\"message\",\"id\":\"msg_%llu\",\"role\":\"assistant\",\"status\":\"%s\",\"content\":"
             "[",
             id, status);
        if (whole) addf(b, "{\"type\":\"output_text\",\"annotations\":[],\"text\":\"%s\"}", report);
        addf(b, "]}");
    }
}

static void responses_whole(bytes *b, const request *r, bool whole) {
    addf(
        b,
        "{\"id\":\"resp_%llu\",\"object\":\"response\",\"created_at\":1,\"status\":\"%s\",\"model\":\"%.*s\","
        "\"error\":null,\"incomplete_details\":null,\"output\":[",
        (unsigned long long)r->id, whole ? "completed" : "in_progress", (int)r->model.n, r->model.p);
    if (whole) responses_item(b, r, true);
    addf(b, "],\"usage\":");
    if (!whole) {
        addf(b, "null}");
        return;
    }
    addf(b,
         "{\"input_tokens\":%zu,\"input_tokens_details\":{\"cached_tokens\":0},\"output_tokens\":%zu,"
         "\"output_tokens_details\":{\"reasoning_tokens\":0},\"total_tokens\":%zu}}",
         r->in_tokens, r->out_tokens, r->in_tokens + r->out_tokens);
}

static void responses_stream(answer *c, const request *r) {
    bytes begun = {0}, whole = {0}, item = {0}, done = {0};
    const char *kind = r->tool ? "response.function_call_arguments" : "response.output_text";
    char name[64], before[256];
    responses_whole(&begun, r, false);
    responses_whole(&whole, r, true);
    responses_item(&item, r, false);
    responses_item(&done, r, true);
    plain_event(c, "response.created", "{\"type\":\"response.created\",\"response\":%.*s}", (int)begun.n,
                begun.p);
    plain_event(c, "response.output_item.added",
                "{\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":%.*s}", (int)item.n,
                item.p);
    const char *part =
        "\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"annotations\":[],"
        "\"text\":";
    if (!r->tool)
        plain_event(c, "response.content_part.added",
                    "{\"type\":\"response.content_part.added\",\"item_id\":\"msg_%llu\",%s\"\"}}",
                    (unsigned long long)r->id, part);
    snprintf(name, sizeof name, "%s.delta", kind);
    snprintf(before, sizeof before,
             "{\"type\":\"%s\",\"item_id\":\"%s_%llu\",\"output_index\":0,\"content_index\":0,\"delta\":\"",
             name, r->tool ? "fc" : "msg", (unsigned long long)r->id);
    text_events(c, name, before, r->tool ? r->args : report, "\"}");
    snprintf(name, sizeof name, "%s.done", kind);
    snprintf(before, sizeof before,
             "{\"type\":\"%s\",\"item_id\":\"%s_%llu\",\"output_index\":0,\"content_index\":0,\"%s\":\"",
             name, r->tool ? "fc" : "msg", (unsigned long long)r->id, r->tool ? "arguments" : "text");
    const char *text = r->tool ? r->args : report;
    event(c, name, before, text, strlen(text), "\"}");
    if (!r->tool)
        plain_event(c, "response.content_part.done",
                    "{\"type\":\"response.content_part.done\",\"item_id\":\"msg_%llu\",%s\"%s\"}}",
                    (unsigned long long)r->id, part, report);
    plain_event(c, "response.output_item.done",
                "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":%.*s}", (int)done.n,
                done.p);
    plain_event(c, "response.completed", "{\"type\":\"response.completed\",\"response\":%.*s}", (int)whole.n,
                whole.p);
    free(begun.p), free(whole.p), free(item.p), free(done.p);
}

// One piece of a generateContent answer; only the last says why it ended and what it took.
static void generate_piece(bytes *b, const request *r, const char *text, size_t n, bool last) {
    addf(b, "{\"candidates\":[{\"index\":0,\"content\":{\"role\":\"model\",\"parts\":[");
    if (r->tool)
        addf(b, "{\"functionCall\":{\"name\":\"%s\",\"args\":%s}}", r->tool, r->args);
    else
        addf(b, "{\"text\":\"%.*s\"}", (int)n, text);
    addf(b,
         "]}%s}],\"modelVersion\":\"stub\",\"usageMetadata\":{\"promptTokenCount\":%zu,"
         "\"candidatesTokenCount\":%zu,"
         "\"totalTokenCount\":%zu}}",
         last ? ",\"finishReason\":\"STOP\"" : "", r->in_tokens, r->out_tokens, r->in_tokens + r->out_tokens);
}

static void generate_whole(bytes *b, const request *r) {
    generate_piece(b, r, report, sizeof report - 1, true);
}

static void generate_stream(answer *c, const request *r) {
    size_t n = sizeof report - 1, size = r->tool ? n : (n + c->pieces - 1) / c->pieces;
    for (size_t i = 0; i < n; i += size) {
        bytes piece = {0};
        generate_piece(&piece, r, report + i, n - i < size ? n - i : size, i + size >= n);
        plain_event(c, NULL, "%.*s", (int)piece.n, piece.p);
        free(piece.p);
    }
}

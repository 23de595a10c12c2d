// sse: server-sent events (HTML standard, section 9.2), fed in pieces of any size. A state machine over
// bytes: nothing but the value of `data` and `event` is kept, so comments and unknown fields may be of any
// length. Knows nothing of what an event means.
#include <deputy/sse.h>

enum { FIELD_NAME_MAX = 8 }; // longer than every name that matters
enum { SSE_EVENT_DEFAULT = 1 << 20 };

typedef enum { AT_START, IN_NAME, AFTER_COLON, IN_VALUE } sse_state;
typedef enum { FIELD_OTHER, FIELD_DATA, FIELD_EVENT } sse_field;

struct sse_reader {
    buf data, event;
    size_t max;
    char name[FIELD_NAME_MAX]; // of the field being read; what does not fit only counts
    size_t name_n;
    sse_state state;
    sse_field field;
    unsigned bom;  // bytes of a byte order mark seen at the start; BOM_DONE afterwards
    bool has_data; // a data line stands in `data`
    bool after_cr; // a LF now belongs to that CR
    bool over;     // the limit was passed: the reader is dead
    bool stopped;  // fn wanted no more
};

enum { BOM_DONE = 3 };

sse_reader *sse_new(arena *a, size_t max_event) {
    sse_reader *r = NEW(a, sse_reader);
    r->max = max_event ? max_event : SSE_EVENT_DEFAULT;
    r->data = buf_new(a, 0);
    r->event = buf_new(a, 0);
    return r;
}

// Everything an event keeps counts against one limit.
static bool keep(sse_reader *r, buf *to, str bytes) {
    if (bytes.n > r->max - r->data.n - r->event.n) {
        r->over = true;
        return false;
    }
    buf_add(to, bytes);
    return true;
}

// The name is complete (a colon or the end of the line came).
static bool begin_value(sse_reader *r) {
    str name = {r->name, r->name_n};
    r->field = FIELD_OTHER;
    if (r->name_n > FIELD_NAME_MAX) return true;
    if (str_eq(name, S("data"))) {
        r->field = FIELD_DATA;
        if (r->has_data && !keep(r, &r->data, S("\n"))) return false;
        r->has_data = true;
    } else if (str_eq(name, S("event"))) {
        r->field = FIELD_EVENT;
        buf_clear(&r->event);
    }
    return true;
}

static bool add_value(sse_reader *r, str bytes) {
    if (r->field == FIELD_DATA) return keep(r, &r->data, bytes);
    if (r->field == FIELD_EVENT) return keep(r, &r->event, bytes);
    return true;
}

// A blank line: the event is whole. Without a data line there is none, and its name is forgotten.
static bool dispatch(sse_reader *r, bool (*fn)(void *ctx, const sse_event *e), void *ctx) {
    bool more = true;
    if (r->has_data) {
        sse_event e = {.event = r->event.n ? buf_str(&r->event) : S("message"), .data = buf_str(&r->data)};
        more = fn(ctx, &e);
    }
    buf_clear(&r->data);
    buf_clear(&r->event);
    r->has_data = false;
    return more;
}

// Length of the run of bytes before the next line end, so that values are copied in one piece.
static size_t run_length(str s) {
    size_t n = str_chr(s, '\n');
    if (n == SIZE_MAX) n = s.n;
    size_t cr = str_chr(str_sub(s, 0, n), '\r');
    return cr == SIZE_MAX ? n : cr;
}

// One step: consumes at least one byte of s and says how many; 0 after the limit.
static size_t step(sse_reader *r, str s) {
    switch (r->state) {
    case AT_START:
        r->name_n = 0;
        r->state = IN_NAME;
        [[fallthrough]];
    case IN_NAME:
        if (s.p[0] != ':') {
            if (r->name_n < FIELD_NAME_MAX) r->name[r->name_n] = s.p[0];
            if (r->name_n <= FIELD_NAME_MAX) r->name_n++;
            return 1;
        }
        if (!begin_value(r)) return 0;
        r->state = AFTER_COLON;
        return 1;
    case AFTER_COLON:
        r->state = IN_VALUE;
        if (s.p[0] == ' ') return 1;
        [[fallthrough]];
    case IN_VALUE: {
        size_t n = run_length(s);
        return add_value(r, str_sub(s, 0, n)) ? n : 0;
    }
    }
    return 0;
}

// A line end. False when fn wants no more or the limit is passed.
static bool line_end(sse_reader *r, bool (*fn)(void *ctx, const sse_event *e), void *ctx) {
    bool more = true;
    if (r->state == AT_START)
        more = dispatch(r, fn, ctx);
    else if (r->state == IN_NAME)
        more = begin_value(r);
    r->state = AT_START;
    return more;
}

static bool feed_lines(sse_reader *r, str s, bool (*fn)(void *ctx, const sse_event *e), void *ctx) {
    for (size_t i = 0; i < s.n;) {
        char c = s.p[i];
        if (c == '\n' && r->after_cr) {
            r->after_cr = false;
            i++;
        } else if (c == '\n' || c == '\r') {
            r->after_cr = c == '\r';
            i++;
            if (!line_end(r, fn, ctx)) return false;
        } else {
            r->after_cr = false;
            size_t n = step(r, str_sub(s, i, s.n));
            if (n == 0) return false;
            i += n;
        }
    }
    return true;
}

dep_status sse_feed(sse_reader *r, str bytes, bool (*fn)(void *ctx, const sse_event *e), void *ctx,
                    bool *stopped, dep_err *err) {
    static const char bom[] = "\xEF\xBB\xBF";
    while (r->bom < BOM_DONE && bytes.n && !r->over && !r->stopped) {
        if (bytes.p[0] == bom[r->bom]) {
            r->bom++;
            bytes = str_sub(bytes, 1, bytes.n);
            continue;
        }
        // No mark after all: what looked like one is the start of a line.
        str begun = {bom, r->bom};
        r->bom = BOM_DONE;
        (void)feed_lines(r, begun, fn, ctx);
    }
    if (!r->over && !r->stopped && !feed_lines(r, bytes, fn, ctx) && !r->over) r->stopped = true;
    if (r->over)
        return err_set(err, DEP_ERR_LIMIT, "an event of the stream is larger than %zu bytes", r->max);
    *stopped = r->stopped;
    return DEP_OK;
}

bool sse_pending(const sse_reader *r) {
    return r->has_data || r->event.n > 0 || r->state != AT_START || (r->bom > 0 && r->bom < BOM_DONE);
}

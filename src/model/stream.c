// stream: what the state machines over a streamed reply share, whatever the API: memory, events as JSON, the
// first failure, and what a reason to stop means beside the calls that came. Knows no API.
#include "model/model_int.h"

static void free_scratch(void *p) {
    arena_free(((model_stream *)p)->scratch);
}

void model_stream_init(model_stream *s, arena *a, const model_provider *p, const model_sink *sink) {
    *s = (model_stream){.a = a, .p = p, .sink = sink};
    arena_defer(a, free_scratch, s); // first: it may be what cannot be had
    s->scratch = arena_new();
    s->sse = sse_new(a, MODEL_EVENT_MAX);
}

void model_stream_fail(model_stream *s, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str text = str_vfmt(s->scratch, fmt, ap);
    va_end(ap);
    s->failed =
        err_set(&s->err, DEP_ERR_PROVIDER, STR_FMT, STR_ARG(model_foreign_message(s->scratch, s->p, text)));
}

dep_status model_stream_json(model_stream *s, str data, json **ret, dep_err *err) {
    arena_reset(s->scratch);
    dep_status status = json_parse(s->scratch, data, MODEL_EVENT_MAX, ret, err);
    if (status != DEP_ERR_PARSE) return status;
    str joined = model_join_halves(s->scratch, s->a, data, &s->half);
    return str_eq(joined, data) ? status : json_parse(s->scratch, joined, MODEL_EVENT_MAX, ret, err);
}

void model_stream_events(model_stream *s, str bytes, bool (*fn)(void *ctx, const sse_event *e)) {
    if (s->failed != DEP_OK) return;
    bool stopped;
    dep_status status = sse_feed(s->sse, bytes, fn, s, &stopped, &s->err);
    if (s->failed == DEP_OK) s->failed = status;
}

dep_status model_stream_state(const model_stream *s, bool *done, dep_err *err) {
    if (s->failed != DEP_OK) return err_set(err, s->failed, "%s", s->err.msg);
    *done = s->done;
    return DEP_OK;
}

dep_status model_stream_early(dep_err *err) {
    return err_set(err, DEP_ERR_NETWORK, "the reply ended early: the stream stopped before its last event");
}

model_stop model_stop_beside(model_stop stop, bool has_call) {
    if (has_call && (stop == STOP_END || stop == STOP_OTHER)) return STOP_TOOL_USE;
    if (!has_call && stop == STOP_TOOL_USE) return STOP_END;
    return stop;
}

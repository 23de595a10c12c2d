// quote: the provider that needs no key and no network. Its one model, `passages`, sends the task as a search
// and quotes what was found. It goes through the ordinary tool loop, so everything around a model is the
// same; it says that it is no language model.
//
//   user: task                      → tool calls kb_search and, where there is memory, memory_search
//   user: results of those calls    → text: every hit in rank order, totals and cuts
//
// Reads the text form of search results: heads `[n] path:line (Source) Heading > Trail`, each followed by its
// lines indented by four blanks; every other line is passed on as it came.
#include "model/model_int.h"
#include <deputy/utf8.h>

enum {
    QUOTE_QUERY_MAX = 4096, // bytes; what search takes
    QUOTE_KB_LIMIT = 10,
    QUOTE_MEMORY_LIMIT = 5,
};

static const str kb_search = S_INIT("kb_search"), memory_search = S_INIT("memory_search");

static bool has_tool(const model_request *req, str name) {
    for (size_t i = 0; i < req->n_tools; i++)
        if (str_eq(req->tools[i].name, name)) return true;
    return false;
}

// The newest message that a person or a main agent wrote.
static const model_message *task_message(const model_messages *messages) {
    for (size_t i = messages->n; i > 0; i--) {
        const model_message *m = &messages->p[i - 1];
        if (m->role != ROLE_USER) continue;
        for (size_t j = 0; j < m->blocks.n; j++)
            if (m->blocks.p[j].kind == BLOCK_TEXT && str_trim(m->blocks.p[j].text).n) return m;
    }
    return NULL;
}

// Without the last line that tells the date.
static str without_date(str text) {
    text = str_trim(text);
    size_t at = str_rchr(text, '\n');
    str last = at == SIZE_MAX ? text : str_sub(text, at + 1, text.n);
    if (!str_starts(last, S(TASK_DATE_PREFIX))) return text;
    return at == SIZE_MAX ? (str){0} : str_trim(str_sub(text, 0, at));
}

// What is searched for; *cut when the task was longer.
static str query_of(arena *a, const model_messages *messages, bool *cut) {
    const model_message *m = task_message(messages);
    buf all = buf_new(a, 0);
    for (size_t i = 0; m && i < m->blocks.n; i++) {
        if (m->blocks.p[i].kind != BLOCK_TEXT) continue;
        if (all.n) buf_addc(&all, '\n');
        buf_add(&all, m->blocks.p[i].text);
    }
    str query = without_date(buf_str(&all));
    *cut = query.n > QUOTE_QUERY_MAX;
    return *cut ? str_trim(utf8_cut(query, QUOTE_QUERY_MAX)) : query;
}

// --- First turn ------------------------------------------------------------------------------------------

static void add_call(arena *a, const model_sink *sink, model_reply *ret, size_t turn, str name, str query,
                     int limit) {
    buf input = buf_new(a, 0);
    jw w = jw_new(&input);
    jw_obj(&w);
    jw_kstr(&w, S("query"), query);
    jw_kint(&w, S("limit"), limit);
    jw_end_obj(&w);
    model_block b = {.kind = BLOCK_TOOL_USE, .name = name, .input = buf_str(&input)};
    b.id = str_fmt(a, "quote_%zu_%zu", turn, ret->blocks.n + 1);
    vec_push(a, &ret->blocks, b);
    model_tell_tool(sink, b.id, b.name);
}

static dep_status ask(arena *a, const model_request *req, const model_sink *sink, model_reply *ret,
                      dep_err *err) {
    bool kb = has_tool(req, kb_search), memory = has_tool(req, memory_search), cut;
    if (!kb && !memory)
        return err_set(err, DEP_ERR_INVALID,
                       "`quote` only quotes what a search finds, and this definition has neither knowledge "
                       "nor memory to search; connect a "
                       "language model: `deputy models add anthropic --key-env ANTHROPIC_API_KEY`, then "
                       "`deputy models use anthropic/MODEL`");
    str query = query_of(a, req->messages, &cut);
    if (query.n == 0)
        return err_set(err, DEP_ERR_INVALID, "the task is empty: there is nothing to search for");
    if (kb) add_call(a, sink, ret, req->messages->n, kb_search, query, QUOTE_KB_LIMIT);
    if (memory) add_call(a, sink, ret, req->messages->n, memory_search, query, QUOTE_MEMORY_LIMIT);
    ret->stop = STOP_TOOL_USE;
    ret->stop_text = S("tool_use");
    return DEP_OK;
}

// --- Second turn -----------------------------------------------------------------------------------------

// The end of a place `path:line` in a head: behind the first number that follows a colon and that `behind` or
// the end follows.
static size_t place_end(str head, str behind) {
    for (size_t i = 1; i < head.n; i++) {
        size_t j = i;
        while (head.p[i - 1] == ':' && j < head.n && head.p[j] >= '0' && head.p[j] <= '9') j++;
        if (j > i && (j == head.n || str_starts(str_sub(head, j, head.n), behind))) return j;
    }
    return SIZE_MAX;
}

// Splits `[3] docs/a b.md:12 (Manual) Refunds > Deadlines` into place and trail. A path may hold colons and
// blanks, so the source's bracket is looked for first; names in memory hold no colon, and their hits have no
// source.
static bool hit_head(str line, bool memory, str *place, str *trail) {
    size_t close = str_chr(line, ']');
    uint64_t number;
    if (!str_starts(line, S("[")) || close == SIZE_MAX ||
        !str_u64(str_sub(line, 1, close), UINT32_MAX, &number))
        return false;
    str head = str_trim(str_sub(line, close + 1, line.n));
    size_t end = memory ? SIZE_MAX : place_end(head, S(" ("));
    if (end == SIZE_MAX) end = place_end(head, S(" "));
    if (end == SIZE_MAX) return false;
    *place = str_sub(head, 0, end);
    *trail = str_trim(str_sub(head, end, head.n));
    return true;
}

// One hit: its text behind its place, the trail under it.
static void quote_hit(buf *out, str place, str text, str trail) {
    buf_addf(out, STR_FMT ": " STR_FMT "\n", STR_ARG(place), STR_ARG(text));
    if (trail.n) buf_addf(out, "    in " STR_FMT "\n", STR_ARG(trail));
}

static void quote_result(arena *a, buf *out, str result, bool memory) {
    buf rest = buf_new(a, 0); // totals, cuts and whatever else stands there
    str place = {0}, trail = {0}, line;
    bool open = false; // a head waits for its text
    bool any = false;
    while (result.n) {
        str_cut(result, '\n', &line, &result);
        str next_place, next_trail;
        bool head = hit_head(line, memory, &next_place, &next_trail);
        if (open && (head || !str_starts(line, S("    ")))) {
            quote_hit(out, place, (str){0}, trail);
            open = false;
        }
        if (head) {
            place = next_place;
            trail = next_trail;
            open = any = true;
        } else if (open) {
            quote_hit(out, place, str_sub(line, 4, line.n), trail);
            open = false;
        } else if (any && str_starts(line, S("    "))) {
            buf_addf(out, STR_FMT "\n", STR_ARG(line));
        } else if (str_trim(line).n) {
            buf_addf(&rest, STR_FMT "\n", STR_ARG(line));
        }
    }
    if (open) quote_hit(out, place, (str){0}, trail);
    str tail = buf_str(&rest);
    if (any && tail.n) buf_addc(out, '\n');
    buf_add(out, tail);
}

static str call_name(const model_messages *messages, str id) {
    for (size_t i = messages->n; i > 0; i--) {
        const model_blocks *blocks = &messages->p[i - 1].blocks;
        for (size_t j = 0; j < blocks->n; j++)
            if (blocks->p[j].kind == BLOCK_TOOL_USE && str_eq(blocks->p[j].id, id)) return blocks->p[j].name;
    }
    return (str){0};
}

static void answer(arena *a, const model_request *req, const model_sink *sink, model_reply *ret) {
    bool cut;
    buf out = buf_new(a, 0);
    buf_add(
        &out,
        S("Passages quoted by search; `quote` is not a language model and draws no conclusion from them.\n"));
    (void)query_of(a, req->messages, &cut);
    if (cut)
        buf_addf(&out, "The task is long: only its first %d bytes were searched for.\n", QUOTE_QUERY_MAX);
    const model_message *last = &req->messages->p[req->messages->n - 1];
    for (vec_each(model_block, b, &last->blocks)) {
        if (b->kind != BLOCK_TOOL_RESULT) continue;
        str name = call_name(req->messages, b->id);
        buf_addc(&out, '\n');
        bool memory = str_eq(name, memory_search);
        if (memory) buf_add(&out, S("From memory:\n"));
        if (b->is_error)
            buf_addf(&out, STR_FMT " failed: " STR_FMT "\n", STR_ARG(name), STR_ARG(str_trim(b->text)));
        else
            quote_result(a, &out, b->text, memory);
    }
    model_block text = {.kind = BLOCK_TEXT, .text = str_trim(buf_str(&out))};
    vec_push(a, &ret->blocks, text);
    model_tell_text(sink, text.text);
    ret->stop = STOP_END;
    ret->stop_text = S("end_turn");
}

static bool has_results(const model_messages *messages) {
    const model_message *last = messages->n ? &messages->p[messages->n - 1] : NULL;
    for (size_t i = 0; last && last->role == ROLE_USER && i < last->blocks.n; i++)
        if (last->blocks.p[i].kind == BLOCK_TOOL_RESULT) return true;
    return false;
}

static dep_status quote_call(model_provider *p, arena *a, const model_request *req, const model_sink *sink,
                             model_reply *ret, dep_err *err) {
    if (!str_eq(req->model, S("passages")))
        return err_set(err, DEP_ERR_INVALID, STR_FMT " has no model '" STR_FMT "'; its one model is passages",
                       STR_ARG(p->config.name), STR_ARG(req->model));
    ret->model = S("passages");
    if (!has_results(req->messages)) return ask(a, req, sink, ret, err);
    answer(a, req, sink, ret);
    return DEP_OK;
}

// There is no wire: the request is shown in the form that most resembles what other providers get.
static str quote_tools_json(arena *a, const model_tool *tools, size_t n) {
    return model_api_anthropic.tools_json(a, tools, n);
}

static str quote_request_json(arena *a, const model_provider *p, const model_request *req) {
    return model_api_anthropic.request_json(a, p, req);
}

const model_api model_api_quote = {
    .api = "quote",
    .call = quote_call,
    .tools_json = quote_tools_json,
    .request_json = quote_request_json,
};

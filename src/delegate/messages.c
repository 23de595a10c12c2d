// delegate: the conversation as rows, so that it can be continued: what was said to the model and heard from
// it, and words of the run loop's own: `system` (prompt and tools as sent first), `load` (a tool that was
// loaded), `fold` (older results were folded here), `note` (a line added to the last message). Blocks of a
// provider are kept as it sent them.
#include "delegate/delegate_int.h"

static const char *const kinds[] = {
    [BLOCK_TEXT] = "text",         [BLOCK_THINKING] = "thinking",
    [BLOCK_TOOL_USE] = "tool_use", [BLOCK_TOOL_RESULT] = "tool_result",
    [BLOCK_OTHER] = "other",
};

// --- Writing -------------------------------------------------------------------------------------

static void keep(run *r, const char *kind, buf *data) {
    arena *a = r->act.a;
    if (r->act.gap) return; // what is stored stays a conversation that can be continued
    str text = run_redact(r, a, buf_str(data));
    vec_push(a, &r->act.messages, ((message_row){.kind = str_z(kind), .data = text}));
}

static buf *begin(run *r, jw *w) {
    buf *out = NEW(r->act.a, buf);
    *out = buf_new(r->act.a, 0);
    *w = jw_new(out);
    jw_obj(w);
    return out;
}

static void put(jw *w, const char *key, str value) {
    if (value.n) jw_kstr(w, str_z(key), value);
}

static void write_block(jw *w, const model_block *b) {
    jw_obj(w);
    jw_kstr(w, S("kind"), str_z(kinds[b->kind]));
    put(w, "text", b->text);
    put(w, "id", b->id);
    put(w, "name", b->name);
    put(w, "input", b->input);
    if (b->bad_input) jw_kbool(w, S("bad_input"), true);
    if (b->is_error) jw_kbool(w, S("is_error"), true);
    put(w, "raw", b->raw);
    jw_end_obj(w);
}

void message_keep(run *r, const model_message *m) {
    jw w;
    buf *out = begin(r, &w);
    jw_key(&w, S("blocks"));
    jw_arr(&w);
    for (vec_each(const model_block, b, &m->blocks)) write_block(&w, b);
    jw_end_arr(&w);
    jw_end_obj(&w);
    keep(r, m->role == ROLE_USER ? "user" : "assistant", out);
}

void message_keep_system(run *r) {
    jw w;
    buf *out = begin(r, &w);
    jw_kstr(&w, S("layer"), str_z(layer_name(r->def->layer)));
    jw_kstr(&w, S("prompt"), r->prompt.text);
    jw_key(&w, S("tools"));
    jw_arr(&w);
    for (vec_each(const offered_tool, t, &r->offered)) {
        jw_obj(&w);
        jw_kstr(&w, S("name"), t->name);
        jw_kstr(&w, S("description"), t->description);
        jw_kstr(&w, S("schema"), t->schema);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    jw_end_obj(&w);
    keep(r, "system", out);
}

void message_keep_word(run *r, const char *kind, str name, int64_t n) {
    jw w;
    buf *out = begin(r, &w);
    put(&w, "name", name);
    jw_kint(&w, S("n"), n);
    jw_end_obj(&w);
    keep(r, kind, out);
}

// --- Reading -------------------------------------------------------------------------------------

static dep_status read_blocks(arena *a, const json *data, model_message *ret, dep_err *err) {
    const json *blocks = json_get(data, S("blocks"));
    for (const json *j = blocks ? blocks->child : NULL; j; j = j->next) {
        str kind = json_str(j, S("kind"), (str){0});
        size_t k = 0;
        while (k < sizeof kinds / sizeof *kinds && !str_eq(kind, str_z(kinds[k]))) k++;
        if (k == sizeof kinds / sizeof *kinds)
            return err_set(err, DEP_ERR_PARSE, "a block of the kind \"" STR_FMT "\" is unknown here",
                           STR_ARG(kind));
        model_block b = {.kind = (block_kind)k,
                         .text = json_str(j, S("text"), (str){0}),
                         .id = json_str(j, S("id"), (str){0}),
                         .name = json_str(j, S("name"), (str){0}),
                         .input = json_str(j, S("input"), (str){0}),
                         .bad_input = json_bool(j, S("bad_input"), false),
                         .is_error = json_bool(j, S("is_error"), false),
                         .raw = json_str(j, S("raw"), (str){0})};
        vec_push(a, &ret->blocks, b);
    }
    return DEP_OK;
}

static void read_system(arena *a, const json *data, conversation *ret) {
    ret->layer = json_str(data, S("layer"), (str){0});
    ret->prompt = json_str(data, S("prompt"), (str){0});
    ret->offered = (offered_tools){0};
    const json *tools = json_get(data, S("tools"));
    for (const json *t = tools ? tools->child : NULL; t; t = t->next)
        vec_push(a, &ret->offered,
                 ((offered_tool){.name = json_str(t, S("name"), (str){0}),
                                 .description = json_str(t, S("description"), (str){0}),
                                 .schema = json_str(t, S("schema"), (str){0})}));
}

// Calls that were never answered, because the process died: an API takes nothing after them but their
// results.
static void answer_open_calls(arena *a, model_messages *messages) {
    if (!messages->n || messages->p[messages->n - 1].role != ROLE_ASSISTANT) return;
    model_message results = {.role = ROLE_USER};
    for (vec_each(const model_block, b, &messages->p[messages->n - 1].blocks))
        if (b->kind == BLOCK_TOOL_USE)
            vec_push(a, &results.blocks,
                     ((model_block){.kind = BLOCK_TOOL_RESULT,
                                    .id = b->id,
                                    .text = S("Not run: the delegation ended before this call."),
                                    .is_error = true}));
    if (results.blocks.n) vec_push(a, messages, results);
}

dep_status messages_read(arena *a, const message_rows *rows, conversation *ret, dep_err *err) {
    for (vec_each(const message_row, row, rows)) {
        json *data;
        TRY(json_parse(a, row->data, 0, &data, err));
        model_message m = {.role = str_eq(row->kind, S("user")) ? ROLE_USER : ROLE_ASSISTANT};
        if (str_eq(row->kind, S("system"))) {
            answer_open_calls(a, &ret->messages); // here the next delegation begins
            read_system(a, data, ret);
        } else if (str_eq(row->kind, S("load"))) {
            vec_push(a, &ret->loaded, json_str(data, S("name"), (str){0}));
        } else if (str_eq(row->kind, S("fold"))) {
            size_t results, bytes;
            fold_messages(a, &ret->messages, (size_t)json_num(data, S("n"), 0), &results, &bytes);
        } else if (str_eq(row->kind, S("note")) && ret->messages.n) {
            model_message *last = &ret->messages.p[ret->messages.n - 1];
            str text = json_str(data, S("name"), (str){0});
            vec_push(a, &last->blocks, ((model_block){.kind = BLOCK_TEXT, .text = text}));
        } else if (str_eq(row->kind, S("user")) || str_eq(row->kind, S("assistant"))) {
            TRY(read_blocks(a, data, &m, err));
            vec_push(a, &ret->messages, m);
        } else {
            return err_set(err, DEP_ERR_PARSE, "a message of the kind \"" STR_FMT "\" is unknown here",
                           STR_ARG(row->kind));
        }
    }
    answer_open_calls(a, &ret->messages);
    return DEP_OK;
}

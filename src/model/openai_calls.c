// openai_calls: the tool calls of one reply, put together from pieces. A piece should name its call by index,
// and its first one bring id and name. Servers leave the index out, give 0 to all, send a new id with each
// piece or none at all. Whose piece it is follows from the index while it is unambiguous, else from the id,
// else from a name where a new call can begin. What can be attributed in two ways is an error: arguments of
// two calls are never merged. Knows nothing of events and of messages.
#include "model/openai_int.h"
#include <deputy/utf8.h>

enum { SHOWN_CHARS = 80 }; // of a piece, in an error

size_t openai_scan_feed(openai_scan *s, str bytes) {
    for (size_t i = 0; i < bytes.n; i++) {
        char c = bytes.p[i];
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (s->closed || !s->begun) {
            if (blank) continue;
            if (s->closed || c != '{') {
                s->over = true;
                return i;
            }
            s->begun = true;
        }
        if (s->in_string) {
            if (s->escaped)
                s->escaped = false;
            else if (c == '\\')
                s->escaped = true;
            else
                s->in_string = c != '"';
        } else if (c == '"') {
            s->in_string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if (c == '}' || c == ']') {
            s->closed = --s->depth == 0;
        }
    }
    return bytes.n;
}

// One element of tool_calls.
typedef struct {
    const json *json;
    bool has_index, whole;
    int64_t index;
    str id, name, args;
    bool object; // the arguments came as a value, not as text
} piece;

typedef enum { NOT_CLEAR, NOTHING_IN_IT, A_NEW_CALL, OF_A_CALL } verdict;

static piece read_piece(const json *v, bool whole) {
    piece f = {.json = v, .whole = whole};
    f.has_index = json_int(json_get(v, S("index")), 0, INT32_MAX, &f.index);
    f.id = json_str(v, S("id"), S(""));
    const json *function = json_get(v, S("function"));
    f.name = json_str(function, S("name"), S(""));
    const json *args = json_get(function, S("arguments"));
    if (args && args->kind == JSON_STRING) {
        f.args = args->s;
    } else if (args && args->kind != JSON_NULL) {
        f.args = args->raw;
        f.object = true;
    }
    return f;
}

static bool blank(str s) {
    return str_trim(s).n == 0;
}

static bool begun(const openai_call *c) {
    return c->args.n > 0;
}

// The calls that a piece can belong to by its index, or all of them when it has none.
typedef struct {
    openai_call *newest;
    size_t n;
    bool older_whole; // all but the newest have their arguments
} candidates;

static candidates find_candidates(openai_calls *c, const piece *f) {
    candidates r = {.older_whole = true};
    for (vec_each(openai_call, it, &c->list)) {
        if (f->has_index && it->index != f->index) continue;
        if (r.newest && !openai_scan_whole(&r.newest->scan)) r.older_whole = false;
        r.newest = it;
        r.n++;
    }
    return r;
}

// Newest first; with the piece's index when there is such a one.
static openai_call *find_id(openai_calls *c, const piece *f) {
    openai_call *found = NULL;
    for (vec_each(openai_call, it, &c->list)) {
        if (f->id.n == 0 || !str_eq(it->id, f->id)) continue;
        if (!found || !f->has_index || it->index == f->index || found->index != f->index) found = it;
    }
    return found;
}

// A piece with a name and no id, where a call could be meant that is there already.
static verdict by_name(const openai_calls *c, const piece *f, candidates of) {
    openai_call *call = of.newest;
    if (!call || call->born == c->delta) return A_NEW_CALL; // one delta names no call twice
    bool same = str_eq(f->name, buf_str(&call->name));
    if (!begun(call)) {
        // The rest of a name, or the name again; without index and id it might as well be another call's.
        if (!f->has_index && call->id.n == 0) return NOT_CLEAR;
        if (same) call->repeated = true;
        return OF_A_CALL;
    }
    if (openai_scan_whole(&call->scan)) {
        if (!same || !blank(f->args)) return A_NEW_CALL;
        call->repeated = true;
        return OF_A_CALL;
    }
    // Within arguments another name begins another call, and the same one may be either.
    if (!same) return A_NEW_CALL;
    return f->has_index && of.n == 1 ? OF_A_CALL : NOT_CLEAR;
}

static verdict by_place(const piece *f, candidates of) {
    if (of.n == 1) return OF_A_CALL;
    bool open = of.newest && !openai_scan_whole(&of.newest->scan);
    if (open && of.older_whole) return OF_A_CALL;
    return blank(f->args) ? NOTHING_IN_IT : NOT_CLEAR;
}

// An index that no call has.
static verdict by_new_index(openai_calls *c, const piece *f, openai_call *known, openai_call **ret) {
    *ret = known;
    if (f->name.n) return A_NEW_CALL;
    if (known) return OF_A_CALL;
    if (f->id.n) return A_NEW_CALL; // its name follows, or it is an error at the end
    if (c->list.n == 1 && c->list.p[0].index == OPENAI_INDEX_NONE) {
        *ret = &c->list.p[0];
        return OF_A_CALL;
    }
    return blank(f->args) ? NOTHING_IN_IT : NOT_CLEAR;
}

// Whose piece is it? *ret: the call, when it is one that is there.
static verdict attribute(openai_calls *c, const piece *f, openai_call **ret) {
    candidates of = find_candidates(c, f);
    openai_call *known = find_id(c, f);
    *ret = of.newest;
    if (f->whole) return A_NEW_CALL;
    if (f->has_index && !of.newest) return by_new_index(c, f, known, ret);
    if (known) {
        *ret = known;
        // Two answers to the same question: the index is one call's, the id another's.
        bool at_odds = f->has_index && known->index != f->index && known->index != OPENAI_INDEX_NONE;
        if (at_odds) return blank(f->args) && !f->name.n ? NOTHING_IN_IT : NOT_CLEAR;
        // An id that serves two calls.
        bool other = f->name.n && begun(known) && !str_eq(f->name, buf_str(&known->name));
        return other ? A_NEW_CALL : OF_A_CALL;
    }
    if (f->id.n && f->name.n) return A_NEW_CALL;
    if (f->id.n) {
        // Some servers send a new id with each piece; the index says whose it is.
        if (of.n == 1 && (f->has_index || of.newest->id.n == 0)) return OF_A_CALL;
        return f->has_index ? NOT_CLEAR : A_NEW_CALL;
    }
    return f->name.n ? by_name(c, f, of) : by_place(f, of);
}

static dep_status not_clear(const openai_calls *c, const piece *f, dep_err *err) {
    str shown = foreign(c->a, f->json->raw, FOREIGN_LINE, SHOWN_CHARS);
    return err_set(err, DEP_ERR_PROVIDER,
                   "the stream holds a piece of a tool call that belongs to no one call: " STR_FMT,
                   STR_ARG(shown));
}

// Members that the API does not know, such as a signature: the server may want them back.
static void keep_extra(openai_calls *c, openai_call *call, const json *v) {
    static const str ours[] = {S_INIT("index"), S_INIT("id"), S_INIT("type"), S_INIT("function")};
    if (v->kind != JSON_OBJECT) return;
    for (const json *m = v->child; m; m = m->next) {
        bool skip = m->kind == JSON_NULL || call->n_extra == OPENAI_CALL_EXTRA_MAX;
        for (size_t i = 0; i < sizeof ours / sizeof *ours; i++) skip = skip || str_eq(m->key, ours[i]);
        for (size_t i = 0; i < call->n_extra; i++) skip = skip || str_eq(m->key, call->extra[i].key);
        if (!skip)
            call->extra[call->n_extra++] = (openai_extra){str_dup(c->a, m->key), str_dup(c->a, m->raw)};
    }
}

static dep_status add_to(openai_calls *c, openai_call *call, const piece *f, dep_err *err) {
    str name = buf_str(&call->name);
    if (f->object && begun(call)) {
        if (str_eq(f->args, buf_str(&call->args))) return DEP_OK; // sent twice
        return not_clear(c, f, err);
    }
    if (call->repeated && openai_scan_whole(&call->scan) && !blank(f->args)) return not_clear(c, f, err);
    if (call->id.n == 0) call->id = str_dup(c->a, f->id);
    if (call->index == OPENAI_INDEX_NONE && f->has_index) call->index = f->index;
    if (f->name.n && !begun(call) && !str_eq(f->name, name)) buf_add(&call->name, f->name);
    openai_scan_feed(&call->scan, f->args);
    buf_add(&call->args, f->args);
    keep_extra(c, call, f->json);
    return DEP_OK;
}

static dep_status take_piece(openai_calls *c, const piece *f, dep_err *err) {
    openai_call *call;
    switch (attribute(c, f, &call)) {
    case NOT_CLEAR: return not_clear(c, f, err);
    case NOTHING_IN_IT: return DEP_OK;
    case OF_A_CALL: return add_to(c, call, f, err);
    case A_NEW_CALL: break;
    }
    if (c->list.n == OPENAI_CALLS_MAX)
        return err_set(err, DEP_ERR_LIMIT, "the reply has more than %d tool calls", OPENAI_CALLS_MAX);
    openai_call fresh = {.index = OPENAI_INDEX_NONE,
                         .name = buf_new(c->a, MODEL_REPLY_MAX),
                         .args = buf_new(c->a, MODEL_REPLY_MAX),
                         .born = c->delta};
    vec_push(c->a, &c->list, fresh);
    return add_to(c, &c->list.p[c->list.n - 1], f, err);
}

dep_status openai_calls_take(openai_calls *c, const json *array, bool whole, bool *any, dep_err *err) {
    *any = false;
    if (!array || array->kind != JSON_ARRAY) return DEP_OK;
    c->delta++;
    for (const json *v = array->child; v; v = v->next) {
        piece f = read_piece(v, whole);
        if (!f.id.n && !f.name.n && !f.args.n) continue;
        *any = true;
        TRY(take_piece(c, &f, err));
    }
    return DEP_OK;
}

// --- What becomes of them --------------------------------------------------------------------------------

static str make_id(arena *a, uint64_t seed, size_t n) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    str text = str_fmt(a, "%llu/%zu", (unsigned long long)seed, n);
    uint64_t bits = str_hash(text);
    char id[OPENAI_ID_CHARS];
    for (int i = 0; i < OPENAI_ID_CHARS; i++, bits /= sizeof letters - 1)
        id[i] = letters[bits % (sizeof letters - 1)];
    return str_dup(a, str_n(id, OPENAI_ID_CHARS));
}

static bool id_taken(const openai_calls *c, str id, const openai_call *but) {
    for (vec_each(const openai_call, it, &c->list))
        if (it != but && str_eq(it->id, id)) return true;
    return false;
}

void openai_calls_identify(openai_calls *c, uint64_t seed) {
    size_t made = 0;
    for (size_t i = 0; i < c->list.n; i++) {
        openai_call *call = &c->list.p[i];
        bool taken = false;
        for (size_t k = 0; k < i; k++) taken = taken || str_eq(c->list.p[k].id, call->id);
        while (call->id.n == 0 || taken) {
            call->id = make_id(c->a, seed, made++);
            taken = id_taken(c, call->id, call);
        }
    }
}

str openai_call_json(arena *a, openai_call *c) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_kstr(&w, S("id"), c->id);
    jw_kstr(&w, S("type"), S("function"));
    jw_key(&w, S("function"));
    jw_obj(&w);
    jw_kstr(&w, S("name"), buf_str(&c->name));
    jw_kstr(&w, S("arguments"), buf_str(&c->args));
    jw_end_obj(&w);
    for (size_t i = 0; i < c->n_extra; i++) {
        jw_key(&w, c->extra[i].key);
        jw_raw(&w, c->extra[i].value);
    }
    jw_end_obj(&w);
    return buf_str(&out);
}

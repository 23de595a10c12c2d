// responses_items: what names an item of a reply, and which of the open ones an event means. Servers leave
// out or make up indexes and ids, so every key that is there is asked; when they do not lead to one item,
// nothing is guessed. Knows nothing of the events' order.
#include "model/responses_int.h"

item_keys item_keys_read(const json *event) {
    item_keys k = {.index = -1};
    if (!json_int(json_get(event, S("output_index")), 0, INT32_MAX, &k.index)) k.index = -1;
    k.id = json_str(event, S("item_id"), S(""));
    k.call_id = json_str(event, S("call_id"), S(""));
    return k;
}

// --- Reading ---------------------------------------------------------------------------------------------

static item_kind kind_of(str type) {
    if (str_eq(type, S("message"))) return ITEM_MESSAGE;
    if (str_eq(type, S("reasoning"))) return ITEM_REASONING;
    if (str_eq(type, S("function_call"))) return ITEM_CALL;
    return ITEM_OTHER;
}

static bool filled(const json *v) {
    return v && ((v->kind == JSON_STRING && v->s.n > 0) || (v->kind == JSON_ARRAY && v->count > 0));
}

// The texts of an array of parts, joined by sep.
static void add_parts(buf *out, const json *parts, str sep, bool *refusal) {
    for (const json *part = parts ? parts->child : NULL; part; part = part->next) {
        str declined = json_str(part, S("refusal"), S(""));
        if (declined.n && refusal) *refusal = true;
        str text = declined.n ? declined : json_str(part, S("text"), S(""));
        if (!text.n) continue;
        if (out->n) buf_add(out, sep);
        buf_add(out, text);
    }
}

static void read_text(arena *a, item *i, const json *v) {
    buf text = buf_new(a, MODEL_REPLY_MAX);
    const json *content = json_get(v, S("content"));
    if (i->kind == ITEM_MESSAGE) {
        add_parts(&text, content, S(""), &i->refusal);
        i->echo = text.n > 0;
    } else {
        add_parts(&text, json_get(v, S("summary")), S("\n\n"), NULL);
        if (!text.n) add_parts(&text, content, S("\n\n"), NULL);
        // A server that keeps nothing can use no other reasoning.
        i->echo = filled(json_get(v, S("encrypted_content"))) || filled(content);
    }
    if (content && content->kind == JSON_STRING && !text.n) buf_add(&text, content->s), i->echo = false;
    i->text = buf_str(&text);
}

item item_read(arena *a, const json *v, const json *event) {
    item i = {.keys = item_keys_read(event), .raw = v->raw, .echo = true};
    item_keys own = item_keys_read(v);
    i.kind = kind_of(json_str(v, S("type"), S("")));
    i.keys.id = json_str(v, S("id"), own.id.n ? own.id : i.keys.id);
    if (i.keys.index < 0) i.keys.index = own.index;
    if (own.call_id.n) i.keys.call_id = own.call_id;
    i.name = json_str(v, S("name"), S(""));
    i.cut = str_eq(json_str(v, S("status"), S("")), S("incomplete"));
    if (i.kind == ITEM_CALL) {
        const json *args = json_get(v, S("arguments"));
        bool text = args && args->kind == JSON_STRING;
        if (args && args->kind != JSON_NULL) i.args = text ? args->s : args->raw;
        i.echo = text && own.call_id.n && i.name.n;
    } else if (i.kind != ITEM_OTHER) {
        read_text(a, &i, v);
    }
    return i;
}

// --- Finding ---------------------------------------------------------------------------------------------

static bool same(str a, str b) {
    return a.n > 0 && str_eq(a, b);
}

static bool differ(str a, str b) {
    return a.n > 0 && b.n > 0 && !str_eq(a, b);
}

// The one open item of that kind for which the key fits.
static slot *only(slots *s, item_kind kind, bool (*fits)(const item_keys *has, const item_keys *k),
                  const item_keys *k, size_t *n) {
    slot *found = NULL;
    *n = 0;
    for (vec_each(slot, it, s)) {
        if (it->closed || it->i.kind != kind || !fits(&it->i.keys, k)) continue;
        found = it;
        ++*n;
    }
    return *n == 1 ? found : NULL;
}

static bool fits_call(const item_keys *has, const item_keys *k) {
    return same(k->call_id, has->call_id);
}
static bool fits_id(const item_keys *has, const item_keys *k) {
    return same(k->id, has->id);
}
static bool fits_index(const item_keys *has, const item_keys *k) {
    return k->index >= 0 && has->index == k->index;
}
// No key stands on both sides.
static bool fits_unknown(const item_keys *has, const item_keys *k) {
    return !(k->index >= 0 && has->index >= 0) && !(k->id.n && has->id.n) &&
           !(k->call_id.n && has->call_id.n);
}

slot *item_find(slots *s, item_kind kind, const item_keys *k, bool *many) {
    size_t n_call, n_id, n_index;
    slot *by_call = only(s, kind, fits_call, k, &n_call), *by_id = only(s, kind, fits_id, k, &n_id),
         *by_index = only(s, kind, fits_index, k, &n_index);
    slot *named = by_call ? by_call : by_id;
    *many = n_call > 1 || (by_call && by_id && by_call != by_id) ||
            (named && by_index && named != by_index) || (!named && (n_id > 1 || n_index > 1));
    if (*many) return NULL;
    if (named || by_index) return named ? named : by_index;
    // Nothing is said that could be compared: then it can only be the one that is open.
    size_t n_open;
    slot *open = only(s, kind, fits_unknown, k, &n_open);
    bool silent = k->index < 0 && k->id.n == 0 && k->call_id.n == 0;
    *many = n_open > 1 && silent;
    return open;
}

bool item_is_closed(const slots *s, item_kind kind, const item_keys *k) {
    for (vec_each(const slot, it, s)) {
        const item_keys *has = &it->i.keys;
        if (!it->closed || it->i.kind != kind) continue;
        // A key that differs says that it is another one.
        if (differ(k->id, has->id) || differ(k->call_id, has->call_id)) continue;
        if (fits_id(has, k) || fits_call(has, k)) return true;
        if (k->id.n == 0 && k->call_id.n == 0 && fits_index(has, k)) return true;
    }
    return false;
}

// --- The output of a whole response -----------------------------------------------------------------------

typedef bool match_rule(const slot *has, size_t place, const item *i, size_t j);

static bool match_id(const slot *has, size_t place, const item *i, size_t j) {
    (void)place, (void)j;
    return has->i.kind == i->kind &&
           (same(i->keys.call_id, has->i.keys.call_id) || same(i->keys.id, has->i.keys.id));
}

// Many servers make up new ids for the output: then its place says which item it is.
static bool match_place(const slot *has, size_t place, const item *i, size_t j) {
    size_t index = has->i.keys.index >= 0 ? (size_t)has->i.keys.index : place;
    bool same_name = i->kind != ITEM_CALL || has->i.name.n == 0 || str_eq(has->i.name, i->name);
    return has->i.kind == i->kind && index == j && same_name;
}

// The last resort, so that nothing is told or run twice.
static bool match_content(const slot *has, size_t place, const item *i, size_t j) {
    (void)place, (void)j;
    if (has->i.kind != i->kind || i->kind == ITEM_OTHER) return false;
    if (i->kind == ITEM_CALL)
        return str_eq(has->i.name, i->name) && str_eq(str_n(has->args.p, has->args.n), i->args);
    return str_eq(str_n(has->text.p, has->text.n), i->text);
}

static match_rule *const rules[] = {match_id, match_place, match_content};

void item_match(const slots *s, const item *output, size_t n, bool *taken, size_t *to) {
    for (size_t j = 0; j < n; j++) to[j] = SIZE_MAX;
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        for (size_t j = 0; j < n; j++) {
            for (size_t place = 0; to[j] == SIZE_MAX && place < s->n; place++) {
                if (taken[place] || !rules[r](&s->p[place], place, &output[j], j)) continue;
                taken[place] = true;
                to[j] = place;
            }
        }
    }
}

// config: from the two files to one struct. What a file says wrongly is not read; where that may be a
// restriction, the config says so and nothing runs (rule B10).
#include "config/config_int.h"

enum : int64_t { AMOUNT_MAX_MICRO = (int64_t)CONFIG_AMOUNT_MAX * 1000000 };

config config_defaults(void) {
    return (config){.limits = {.turns = 60,
                               .minutes = 30,
                               .idle_seconds = 120,
                               .tokens = 2000000,
                               .tool_kib = 256,
                               .run_kib = 8192,
                               .search_total_mib = 256,
                               .search_file_mib = 16,
                               .running = CONFIG_RUNNING},
                    .retention = {.days = 180}};
}

typedef struct {
    arena *a;
    ydoc *doc;
    diags *d;
    config *into;
    str file;
    bool system;
} ctx;

static void report(const ctx *c, const ynode *n, diag_severity sev, const char *code, str msg, str hint) {
    yaml_diag(c->doc, n, c->d, (diag){.severity = sev, .code = code, .msg = msg, .hint = hint});
}

static str text_of(const ynode *n) {
    return n && n->kind == YAML_NODE_SCALAR && !yaml_is_null(n) ? n->text : (str){0};
}

static uint32_t line_of(const ctx *c, const ynode *n) {
    uint32_t line = 0, column;
    if (n) yaml_place(c->doc, n->start, &line, &column);
    return line;
}

// A system key in a workspace file: said, and taken as not there.
static const ynode *allowed(const ctx *c, str key) {
    const ynode *n = yaml_get(c->doc->root, key);
    const key_row *row = keytab_find(config_keys(), key);
    if (!n || c->system || !row || !(row->flags & KEY_SYSTEM)) return n;
    return NULL;
}

static void refuse_system_keys(const ctx *c) {
    if (c->system) return;
    for (const ynode *v = c->doc->root->child; v; v = v->next) {
        const key_row *row = v->key ? keytab_find(config_keys(), v->key->text) : NULL;
        if (row && row->flags & KEY_SYSTEM)
            yaml_diag_key(
                c->doc, v, c->d,
                (diag){.severity = SEV_ERROR,
                       .code = "CFG001",
                       .msg = str_fmt(c->a, "`" STR_FMT "` is not read from a workspace's file",
                                      STR_ARG(v->key->text)),
                       .hint = S(
                           "move it to the system file (`deputy config path`), which no clone can change")});
    }
}

// A limit from its text: a number in the row's bounds, or `unlimited` where the row has the word.
static bool limit_value(const ctx *c, const ynode *n, const key_row *row, int64_t *v) {
    if (row->flags & KEY_UNLIMITED && str_eq(text_of(n), S("unlimited"))) {
        *v = CONFIG_UNLIMITED;
        if (c->system) return true;
        report(c, n, SEV_ERROR, "CFG002",
               str_fmt(c->a, "only the system's `limits.%s` may be `unlimited`", row->name),
               S("write a number, or remove it here"));
        return false;
    }
    return yaml_int(n, v) && *v >= row->min && *v <= row->max;
}

// now: what holds, for people.
static void refuse_raise(const ctx *c, const ynode *n, const char *key, str now) {
    report(c, n, SEV_ERROR, "CFG002",
           str_fmt(c->a, "a workspace may only lower `limits.%s`, and the system's is " STR_FMT, key,
                   STR_ARG(now)),
           S("raise it in the system file, or remove it here"));
}

static void take_limits(const ctx *c) {
    const ynode *limits = yaml_get(c->doc->root, S("limits"));
    config_limits *l = &c->into->limits;
    const struct {
        const char *key;
        int64_t *to;
        bool *set;
    } rows[] = {{"turns", &l->turns, &l->turns_set},
                {"minutes", &l->minutes, &l->minutes_set},
                {"idleSeconds", &l->idle_seconds, NULL},
                {"tokens", &l->tokens, &l->tokens_set},
                {"toolKiB", &l->tool_kib, NULL},
                {"runKiB", &l->run_kib, NULL},
                {"searchMiB", &l->search_total_mib, NULL},
                {"searchFileMiB", &l->search_file_mib, NULL},
                {"running", &l->running, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const ynode *n = yaml_get(limits, str_z(rows[i].key));
        const key_row *row = keytab_find(config_keys(), str_fmt(c->a, "limits.%s", rows[i].key));
        int64_t v;
        if (!n || !limit_value(c, n, row, &v)) continue;
        if (!c->system && v > *rows[i].to) {
            refuse_raise(c, n, rows[i].key, str_fmt(c->a, "%lld", (long long)*rows[i].to));
            continue;
        }
        *rows[i].to = v;
        if (rows[i].set) *rows[i].set = true;
    }
    const ynode *cost = yaml_get(limits, S("cost"));
    int64_t v;
    if (!keytab_micro(text_of(cost), &v) || v <= 0 || v > AMOUNT_MAX_MICRO) return;
    if (!c->system && l->cost_set && v > l->cost_micro) {
        refuse_raise(c, cost, "cost", config_amount(c->a, l->cost_micro));
        return;
    }
    l->cost_micro = v;
    l->cost_set = true;
}

// --- Prices and retention --------------------------------------------------------------------------

// False for what is written and is no price.
static bool price_part(const ynode *n, int64_t dflt, int64_t *ret) {
    *ret = dflt;
    return !n || (keytab_micro(text_of(n), ret) && *ret <= AMOUNT_MAX_MICRO);
}

static bool is_price_name(str name) {
    str provider, model;
    return str_cut(name, '/', &provider, &model) && provider.n && model.n &&
           str_chr(provider, '*') == SIZE_MAX && (str_eq(model, S("*")) || str_chr(model, '*') == SIZE_MAX);
}

// Whole rows alone: half a price would make a run look cheaper than it is.
static void take_prices(const ctx *c) {
    const ynode *map = allowed(c, S("prices"));
    if (!map || map->kind != YAML_NODE_MAP) return;
    for (const ynode *v = map->child; v; v = v->next) {
        config_price p = {.model = v->key->text, .file = c->file, .line = line_of(c, v->key)};
        if (!is_price_name(p.model)) {
            yaml_diag_key(c->doc, v, c->d,
                          (diag){.severity = SEV_ERROR,
                                 .code = "CFG008",
                                 .msg = str_fmt(c->a, "\"" STR_FMT "\" is no model that could have a price",
                                                STR_ARG(p.model)),
                                 .hint = S("write provider/model, or provider/* for all others of it")});
            continue;
        }
        const ynode *input = yaml_get(v, S("input")), *output = yaml_get(v, S("output"));
        bool whole = input && output && price_part(input, 0, &p.input) && price_part(output, 0, &p.output) &&
                     price_part(yaml_get(v, S("cacheRead")), p.input, &p.cache_read) &&
                     price_part(yaml_get(v, S("cacheWrite")), p.input, &p.cache_write);
        if (whole && c->into->prices.n < CONFIG_PRICES_MAX) vec_push(c->a, &c->into->prices, p);
    }
}

// What is written and is wrong bounds nothing: a slip must not delete.
static int64_t retention_part(const ynode *n, const char *path, int64_t dflt) {
    const key_row *row = keytab_find(config_keys(), str_z(path));
    int64_t v;
    if (!n) return dflt;
    return yaml_int(n, &v) && v >= row->min && v <= row->max ? v : 0;
}

static void take_retention(const ctx *c) {
    const ynode *map = allowed(c, S("retention"));
    config_retention *r = &c->into->retention;
    if (!map) return;
    if (map->kind != YAML_NODE_MAP) {
        *r = (config_retention){0};
        return;
    }
    r->days = retention_part(yaml_get(map, S("days")), "retention.days", r->days);
    r->count = retention_part(yaml_get(map, S("count")), "retention.count", r->count);
}

// --- Providers, gates, model -----------------------------------------------------------------------

static void refuse_param(const void *p, const ynode *at, str msg, str hint) {
    const ctx *c = p;
    yaml_diag_key(c->doc, at, c->d,
                  (diag){.severity = SEV_ERROR, .code = "CFG009", .msg = msg, .hint = hint});
}

// A whole number of a provider, or 0.
static int64_t provider_int(const ynode *n, const char *path) {
    const key_row *row = keytab_find(config_keys(), str_z(path));
    int64_t v;
    return n && yaml_int(n, &v) && v >= row->min && v <= row->max ? v : 0;
}

static bool known_api(str api) {
    const key_row *row = keytab_find(config_keys(), S("providers.api"));
    for (const char *const *v = row->values; *v; v++)
        if (str_eq(api, str_z(*v))) return true;
    return false;
}

static void take_providers(const ctx *c) {
    const ynode *map = allowed(c, S("providers"));
    if (!map || map->kind != YAML_NODE_MAP) return;
    for (const ynode *v = map->child; v; v = v->next) {
        if (v->kind != YAML_NODE_MAP) continue;
        config_provider p = {.name = v->key->text,
                             .api = text_of(yaml_get(v, S("api"))),
                             .url = text_of(yaml_get(v, S("url"))),
                             .key = text_of(yaml_get(v, S("key"))),
                             .ca_file = text_of(yaml_get(v, S("caFile"))),
                             .max_tokens = provider_int(yaml_get(v, S("maxTokens")), "providers.maxTokens"),
                             .window = provider_int(yaml_get(v, S("window")), "providers.window"),
                             .params = params_json(c->a, yaml_get(v, S("params")), refuse_param, c),
                             .file = c->file,
                             .line = line_of(c, v->key)};
        if (str_eq(p.name, S("quote")) || str_chr(p.name, '/') != SIZE_MAX || !p.name.n) {
            yaml_diag_key(
                c->doc, v, c->d,
                (diag){.severity = SEV_ERROR,
                       .code = "CFG004",
                       .msg = str_fmt(c->a, "\"" STR_FMT "\" cannot be a provider's name", STR_ARG(p.name)),
                       .hint = S("`quote` is built in, and a name holds no slash")});
            continue;
        }
        if (p.key.n && str_find(p.key, S("${")) == SIZE_MAX)
            report(c, yaml_get(v, S("key")), SEV_WARNING, "CFG005",
                   S("the key stands in the file as plain text"),
                   S("keep it in an environment variable and write `key: ${NAME}`"));
        if (c->into->providers.n < CONFIG_PROVIDERS_MAX && known_api(p.api))
            vec_push(c->a, &c->into->providers, p);
    }
}

static void take_gates(const ctx *c, const ynode *approval, str key, bool confirm) {
    const ynode *n = yaml_get(approval, key);
    if (!n) return;
    c->into->has_gates = true;
    key_items items = {0};
    if (n->kind == YAML_NODE_SCALAR) keytab_names(c->a, c->doc, n, &items);
    for (const ynode *e = n->child; e && n->kind == YAML_NODE_LIST; e = e->next)
        vec_push(c->a, &items, ((key_item){.text = e->text, .node = e}));
    for (vec_each(const key_item, it, &items)) {
        config_gate g = {.text = it->text, .file = c->file, .line = line_of(c, it->node)};
        if (it->node->kind == YAML_NODE_MAP) {
            g.is_map = true;
            g.server = text_of(yaml_get(it->node, S("server")));
            g.tool = text_of(yaml_get(it->node, S("tool")));
            g.text = str_fmt(c->a, "mcp." STR_FMT "%s" STR_FMT, STR_ARG(g.server), g.tool.n ? "." : "",
                             STR_ARG(g.tool));
        }
        if (confirm) {
            vec_push(c->a, &c->into->confirm, g);
        } else {
            vec_push(c->a, &c->into->review, g);
        }
    }
}

// Errors of the text, of limits and gates, of the system's prices, by which a limit is measured, and misspelt
// or foreign restrictions; not those of providers and of keys that mean nothing yet.
static bool may_hide_a_restriction(const ctx *c, const diag *d) {
    static const char *const codes[] = {"KEY006", "KEY008", "KEY010", "CFG008"};
    if (d->severity != SEV_ERROR || str_starts(d->path, S("/providers"))) return false;
    if (str_starts(str_z(d->code), S("YAML"))) return true;
    bool key = str_starts(str_z(d->code), S("KEY"));
    if (key && (str_starts(d->path, S("/limits")) || str_starts(d->path, S("/approval")))) return true;
    if (key && c->system && str_starts(d->path, S("/prices"))) return true;
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (str_eq(str_z(d->code), str_z(codes[i]))) return true;
    return false;
}

static void note_fault(const ctx *c) {
    for (vec_each(const diag, d, &c->d->items)) {
        if (c->into->fault.n || !may_hide_a_restriction(c, d)) continue;
        c->into->fault = str_fmt(c->a, STR_FMT ":%u: " STR_FMT "; nothing runs until this is mended",
                                 STR_ARG(d->file), d->line, STR_ARG(d->msg));
    }
}

// A line that may hold a key is not quoted, nor is its correction: keys are often written as plain text.
static void hide_keys(diags *d) {
    for (vec_each(diag, it, &d->items)) {
        bool text = str_starts(str_z(it->code), S("YAML"));
        if (!text && !str_starts(it->path, S("/providers"))) continue;
        it->source = (str){0};
        if (text && str_chr(it->hint, ':') != SIZE_MAX) it->hint = (str){0};
    }
}

static void take_model(const ctx *c) {
    const ynode *model = yaml_get(c->doc->root, S("model"));
    str name = str_trim(text_of(model));
    size_t slash = str_chr(name, '/');
    if (!name.n) return;
    if (slash == SIZE_MAX || slash == 0 || slash + 1 == name.n) {
        report(c, model, SEV_ERROR, "CFG003",
               str_fmt(c->a, "\"" STR_FMT "\" is not of the form provider/model", STR_ARG(name)),
               S("see `deputy models`"));
        return;
    }
    c->into->model = name;
    c->into->model_file = c->file;
    c->into->model_line = line_of(c, model);
}

static void take_all(const ctx *c) {
    refuse_system_keys(c);
    take_model(c);
    take_limits(c);
    take_prices(c);
    take_retention(c);
    take_providers(c);
    const ynode *approval = allowed(c, S("approval"));
    take_gates(c, approval, S("confirm"), true);
    take_gates(c, approval, S("review"), false);
}

dep_status config_parse(arena *a, str file, str bytes, bool system, config *into, diags *d, dep_err *err) {
    diags own = diags_new(a);
    ctx c = {.a = a, .d = &own, .into = into, .file = str_dup(a, file), .system = system};
    if (str_trim(bytes).n == 0) return DEP_OK;
    TRY(yaml_parse(a, file, bytes, CONFIG_FILE_MAX, true, &c.doc, &own, err));
    // A file of comments alone sets nothing, and that is no fault.
    if (!c.doc->root && own.errors == 1 && str_eq(str_z(own.items.p[0].code), S("YAML012"))) return DEP_OK;
    bool readable = c.doc->root && own.errors == 0;
    if (c.doc->root) keytab_check(config_keys(), c.doc, &own, false);
    if (readable) take_all(&c);
    diags_sort(&own);
    hide_keys(&own);
    note_fault(&c);
    diags_merge(d, &own);
    return DEP_OK;
}

dep_status config_expand(arena *a, str text, const char *(*getenv_fn)(const char *), str *ret, dep_err *err) {
    buf out = buf_new(a, 0);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i], next = i + 1 < text.n ? text.p[i + 1] : 0;
        if (c == '$' && next == '$') {
            buf_addc(&out, '$');
            i++;
        } else if (c == '$' && next == '{') {
            str inside = str_sub(text, i + 2, text.n), name, dflt = {0};
            size_t end = str_chr(inside, '}');
            if (end == SIZE_MAX) return err_set(err, DEP_ERR_INVALID, "\"${\" without its closing brace");
            name = str_sub(inside, 0, end);
            size_t colon = str_find(name, S(":-"));
            bool has_default = colon != SIZE_MAX;
            if (has_default) dflt = str_sub(name, colon + 2, name.n), name = str_sub(name, 0, colon);
            const char *value = getenv_fn(str_cz(a, name));
            if (value && *value) {
                buf_add(&out, str_z(value));
            } else if (has_default) {
                buf_add(&out, dflt);
            } else {
                return err_set(err, DEP_ERR_NOT_FOUND, "the environment variable " STR_FMT " is not set",
                               STR_ARG(name));
            }
            i += 2 + end;
        } else {
            buf_addc(&out, c);
        }
    }
    *ret = buf_str(&out);
    return DEP_OK;
}

const config_provider *config_provider_get(const config *c, str name) {
    for (vec_each(const config_provider, p, &c->providers))
        if (str_eq(p->name, name)) return p;
    return NULL;
}

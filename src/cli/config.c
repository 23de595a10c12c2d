// cli: config. Reads what is in effect with its origin; writes one value of the system file in place.
#include "cli/config_file.h"
#include <deputy/file.h>
#include <deputy/trust.h>
#include <unistd.h>

str config_path(const cli *c) {
    return path_join(c->a, c->w->dirs.config, S("config.yaml"));
}

// Is there nothing else in the file? Then what is left is comments, which is no document, but a fine config.
static bool is_all(const ydoc *doc, str key) {
    ynode *n;
    dep_err err;
    if (yaml_find(doc, key, &n, &err) != DEP_OK) return false;
    while (n->parent && n->parent->kind == YAML_NODE_MAP && n->parent->count == 1) n = n->parent;
    return n == doc->root;
}

static str without_root(arena *a, const ydoc *doc) {
    const ynode *root = doc->root;
    str rest = str_sub(doc->source, root->end, doc->source.n);
    if (str_starts(rest, S("\n"))) rest = str_sub(rest, 1, rest.n);
    return str_fmt(a, STR_FMT STR_FMT, STR_ARG(str_sub(doc->source, 0, root->outer)), STR_ARG(rest));
}

// The file's text with the changes made; errors of the text are printed.
static int changed_text(cli *c, str path, const config_change *changes, size_t n, str *text_now) {
    dep_err err;
    for (size_t i = 0; i < n; i++) {
        diags d = diags_new(c->a);
        ydoc *doc;
        if (yaml_parse(c->a, path, *text_now, CONFIG_FILE_MAX, true, &doc, &d, &err) != DEP_OK)
            return fail(c, &err);
        // A new file, or one of comments alone, is as good as an empty one.
        bool empty = !doc->root && d.errors == 1 && str_eq(str_z(d.items.p[0].code), S("YAML012"));
        if (changes[i].unset && empty)
            return fail_with(c, EXIT_ERRORS, "\"" STR_FMT "\" is not set in " STR_FMT,
                             STR_ARG(changes[i].key), STR_ARG(path));
        if (!doc->root && !empty) {
            print_diags(c, &d);
            return fail_with(c, EXIT_ERRORS, "mend " STR_FMT " first; nothing was written", STR_ARG(path));
        }
        if (changes[i].unset && is_all(doc, changes[i].key)) {
            *text_now = without_root(c->a, doc);
            continue;
        }
        yaml_edit_kind kind = changes[i].unset ? YAML_EDIT_UNSET : YAML_EDIT_SET;
        dep_status st = yaml_edit(c->a, doc, kind, changes[i].key, changes[i].value, NULL, text_now, &err);
        if (st == DEP_ERR_NOT_FOUND && changes[i].unset)
            err_prefix(&err, "it is not set in " STR_FMT, STR_ARG(path));
        if (st != DEP_OK) return fail(c, &err);
    }
    return EXIT_FINE;
}

// Under the lock of the folder dir: what is changed is what is there.
static int edit_locked(cli *c, int dir, const config_change *changes, size_t n) {
    dep_err err;
    str path = config_path(c), bytes = {0};
    dep_status st = file_read(c->a, path, CONFIG_FILE_MAX, &bytes, &err);
    if (st != DEP_OK && st != DEP_ERR_NOT_FOUND) return fail(c, &err);
    config fresh = config_defaults(), old = config_defaults();
    diags d = diags_new(c->a), before = diags_new(c->a);
    if (changes[0].unset && config_parse(c->a, path, bytes, true, &old, &before, &err) != DEP_OK)
        return fail(c, &err);
    int code = changed_text(c, path, changes, n, &bytes);
    if (code) return code;
    if (config_parse(c->a, path, bytes, true, &fresh, &d, &err) != DEP_OK) return fail(c, &err);
    print_diags(c, &d);
    if (d.errors > before.errors || (d.errors && !changes[0].unset))
        return fail_with(c, EXIT_ERRORS, "nothing was written");
    if (file_replace_at(dir, S("config.yaml"), bytes, 0600, &err) != DEP_OK) return fail(c, &err);
    c->w->config = fresh;
    return EXIT_FINE;
}

int config_edit(cli *c, const config_change *changes, size_t n) {
    dep_err err;
    int dir, lock;
    if (dir_make(c->w->dirs.config, 0700, &err) != DEP_OK ||
        dir_open(c->w->dirs.config, &dir, &err) != DEP_OK)
        return fail(c, &err);
    arena_defer_close(c->a, dir);
    if (lock_dir(dir, EDIT_LOCK_MS, &lock, &err) != DEP_OK) return fail(c, &err);
    int code = edit_locked(c, dir, changes, n);
    close(lock);
    return code;
}

// --- What is in effect ---------------------------------------------------------------------------

static void limits_json(arena *a, jw *w, const config_limits *l) {
    jw_obj(w);
    jw_kint(w, S("running"), l->running);
    limit_json(w, S("turns"), l->turns);
    limit_json(w, S("minutes"), l->minutes);
    jw_kint(w, S("idleSeconds"), l->idle_seconds);
    limit_json(w, S("tokens"), l->tokens);
    cost_json(a, w, l->cost_micro);
    jw_kint(w, S("toolKiB"), l->tool_kib);
    jw_kint(w, S("runKiB"), l->run_kib);
    jw_kint(w, S("searchMiB"), l->search_total_mib);
    jw_kint(w, S("searchFileMiB"), l->search_file_mib);
    jw_end_obj(w);
}

static void provider_json(jw *w, const config_provider *p) {
    jw_obj(w);
    jw_kstr(w, S("api"), p->api);
    jw_kstr(w, S("url"), p->url);
    // Never the value: a variable's name, or that there is one.
    jw_kstr(w, S("key"), str_find(p->key, S("${")) != SIZE_MAX ? p->key : p->key.n ? S("***") : S(""));
    if (p->max_tokens) jw_kint(w, S("maxTokens"), p->max_tokens);
    if (p->window) jw_kint(w, S("window"), p->window);
    if (p->params.n) jw_key(w, S("params")), jw_raw(w, p->params);
    if (p->ca_file.n) jw_kstr(w, S("caFile"), p->ca_file);
    jw_end_obj(w);
}

static void prices_json(arena *a, jw *w, const config *cfg) {
    jw_obj(w);
    for (vec_each(const config_price, p, &cfg->prices)) {
        jw_key(w, p->model);
        jw_obj(w);
        jw_key(w, S("input")), jw_raw(w, config_amount(a, p->input));
        jw_key(w, S("output")), jw_raw(w, config_amount(a, p->output));
        jw_key(w, S("cacheRead")), jw_raw(w, config_amount(a, p->cache_read));
        jw_key(w, S("cacheWrite")), jw_raw(w, config_amount(a, p->cache_write));
        jw_end_obj(w);
    }
    jw_end_obj(w);
}

static str config_json(const cli *c) {
    const config *cfg = &c->w->config;
    buf *b = NEW(c->a, buf);
    *b = buf_new(c->a, 0);
    jw w = jw_new(b);
    jw_obj(&w);
    jw_kstr(&w, S("model"), cfg->model.n ? cfg->model : S("quote/passages"));
    jw_key(&w, S("providers"));
    jw_obj(&w);
    for (vec_each(const config_provider, p, &cfg->providers)) {
        jw_key(&w, p->name);
        provider_json(&w, p);
    }
    jw_end_obj(&w);
    jw_key(&w, S("limits"));
    limits_json(c->a, &w, &cfg->limits);
    jw_key(&w, S("retention"));
    jw_obj(&w);
    jw_kint(&w, S("days"), cfg->retention.days);
    jw_kint(&w, S("count"), cfg->retention.count);
    jw_end_obj(&w);
    jw_key(&w, S("prices"));
    prices_json(c->a, &w, cfg);
    jw_end_obj(&w);
    return buf_str(b);
}

// Where a value in effect was written: a file names it, and says the same.
typedef struct {
    cli *c;
    ydoc *system, *workspace; // NULL: there is none, or it is not trusted
} origins;

static ydoc *read_doc(cli *c, str file, str bytes) {
    ydoc *doc;
    dep_err err;
    diags d = diags_new(c->a);
    return yaml_parse(c->a, file, bytes, CONFIG_FILE_MAX, true, &doc, &d, &err) == DEP_OK && doc->root ? doc
                                                                                                       : NULL;
}

static origins find_origins(cli *c) {
    origins o = {.c = c};
    dep_err err;
    str bytes, own = S(".deputy/config.yaml");
    if (file_read(c->a, config_path(c), CONFIG_FILE_MAX, &bytes, &err) == DEP_OK)
        o.system = read_doc(c, config_path(c), bytes);
    if (file_read_at(c->a, c->w->fd, own, FILE_NO_LINKS, CONFIG_FILE_MAX, &bytes, NULL, &err) == DEP_OK &&
        trust_check(c->w->trust, own, sha256_hex(c->a, bytes), NULL) == TRUST_OK)
        o.workspace = read_doc(c, own, bytes);
    return o;
}

// 3, 3.0 and 3.00 are one amount.
static bool same_value(str written, str value) {
    int64_t x, y;
    return str_eq(written, value) || (keytab_micro(written, &x) && keytab_micro(value, &y) && x == y);
}

static str origin_of(const origins *o, str path, str value) {
    const ydoc *docs[] = {o->workspace, o->system};
    for (size_t i = 0; i < 2; i++) {
        ynode *n;
        dep_err err;
        uint32_t line, column;
        if (!docs[i] || yaml_find(docs[i], path, &n, &err) != DEP_OK || n->kind != YAML_NODE_SCALAR ||
            !same_value(str_trim(n->text), value))
            continue;
        yaml_place(docs[i], n->start, &line, &column);
        return str_fmt(o->c->a, STR_FMT ":%u", STR_ARG(docs[i]->file), line);
    }
    return S("default");
}

static str plain_value(const json *j) {
    return j->kind == JSON_STRING ? j->s : j->kind == JSON_NULL ? S("none") : j->raw;
}

// The first part of a dotted path; one in quotes holds dots.
static void cut_key(str *path, str *part) {
    str rest;
    if (str_starts(*path, S("\"")) && str_cut(str_sub(*path, 1, path->n), '"', part, &rest)) {
        *path = str_starts(rest, S(".")) ? str_sub(rest, 1, rest.n) : rest;
    } else {
        str_cut(*path, '.', part, path);
    }
}

// One line a value: its dotted path, the value, where it was written.
static void list_values(const origins *o, buf *b, str path, const json *j) {
    if (j->kind == JSON_OBJECT) {
        for (const json *v = j->child; v; v = v->next) {
            bool plain = str_chr(v->key, '.') == SIZE_MAX;
            str key = plain ? v->key : str_fmt(o->c->a, "\"" STR_FMT "\"", STR_ARG(v->key));
            list_values(o, b,
                        path.n ? str_fmt(o->c->a, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(key)) : key, v);
        }
        return;
    }
    str value = plain_value(j);
    if (!value.n) return;
    safe(b, path);
    text(b, " = ");
    safe(b, value);
    str from = str_eq(value, S("***")) ? config_path(o->c) : origin_of(o, path, value);
    text(b, "  (");
    safe(b, from);
    text(b, ")\n");
}

static int get(cli *c) {
    json *j;
    dep_err err;
    str key = arg(c, 1), part;
    if (c->args.n > 2) return usage_error(c, "usage: deputy config get [KEY]");
    if (json_parse(c->a, config_json(c), 0, &j, &err) != DEP_OK) return fail(c, &err);
    const json *at = j;
    while (key.n && at) {
        cut_key(&key, &part);
        at = json_get(at, part);
    }
    if (!at)
        return fail_with(c, EXIT_ERRORS,
                         "there is no setting \"" STR_FMT "\"; `deputy schema config --reference` lists them",
                         STR_ARG(arg(c, 1)));
    buf b = buf_new(c->a, 0);
    if (c->json) {
        buf_add(&b, at->raw), text(&b, "\n");
    } else if (at->kind == JSON_OBJECT) {
        origins o = find_origins(c);
        list_values(&o, &b, arg(c, 1), at);
    } else {
        safe(&b, plain_value(at)), text(&b, "\n");
    }
    out_buf(&b);
    return EXIT_FINE;
}

static int set(cli *c) {
    str key = arg(c, 1), top;
    if (c->args.n != 3) return usage_error(c, "usage: deputy config set KEY VALUE");
    str_cut(key, '.', &top, &(str){0});
    if (!str_starts(top, S("x-")) && !keytab_find(config_keys(), top)) {
        const char *near = keytab_nearest(config_keys()->rows, top);
        return fail_with(c, EXIT_ERRORS, "there is no setting \"" STR_FMT "\"%s%s%s; nothing was written",
                         STR_ARG(top), near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    }
    config_change change = {.key = key, .value = arg(c, 2)};
    int code = config_edit(c, &change, 1);
    if (!code) say(c, "wrote " STR_FMT, STR_ARG(config_path(c)));
    return code;
}

// Any key: what no version knows must be possible to remove.
static int unset(cli *c) {
    if (c->args.n != 2) return usage_error(c, "usage: deputy config unset KEY");
    config_change change = {.key = arg(c, 1), .unset = true};
    int code = config_edit(c, &change, 1);
    if (!code) say(c, "wrote " STR_FMT, STR_ARG(config_path(c)));
    return code;
}

int verb_config(cli *c) {
    str sub = c->args.n ? arg(c, 0) : S("get");
    bool sets = str_eq(sub, S("set")), unsets = str_eq(sub, S("unset"));
    int code = need_workspace(c, !sets && !unsets); // a change prints what the file says afterwards
    if (code) return code;
    if (sets) return set(c);
    if (unsets) return unset(c);
    if (str_eq(sub, S("get"))) return get(c);
    if (!str_eq(sub, S("path"))) return usage_error(c, "config takes path, get, set or unset");
    if (c->args.n > 1) return usage_error(c, "config path takes nothing more");
    buf b = buf_new(c->a, 0);
    if (c->json) {
        json_quote(&b, config_path(c));
    } else {
        safe(&b, config_path(c));
    }
    text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

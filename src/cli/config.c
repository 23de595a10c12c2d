// cli: config. Reads what is in effect with its origin; writes one value of the system file in place.
#include "cli/config_file.h"
#include <deputy/file.h>
#include <deputy/trust.h>
#include <unistd.h>

str config_path(const cli *c) {
    return path_join(c->a, c->w->dirs.config, S("config.yaml"));
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
        if (!doc->root && !empty) {
            print_diags(c, &d);
            return fail_with(c, EXIT_ERRORS, "mend " STR_FMT " first; nothing was written", STR_ARG(path));
        }
        if (yaml_edit(c->a, doc, YAML_EDIT_SET, changes[i].key, changes[i].value, NULL, text_now, &err) !=
            DEP_OK)
            return fail(c, &err);
    }
    return EXIT_FINE;
}

// Under the lock of the folder dir: what is changed is what is there.
static int edit_locked(cli *c, int dir, const config_change *changes, size_t n) {
    dep_err err;
    str path = config_path(c), bytes = {0};
    dep_status st = file_read(c->a, path, CONFIG_FILE_MAX, &bytes, &err);
    if (st != DEP_OK && st != DEP_ERR_NOT_FOUND) return fail(c, &err);
    int code = changed_text(c, path, changes, n, &bytes);
    if (code) return code;
    config fresh = config_defaults();
    diags d = diags_new(c->a);
    if (config_parse(c->a, path, bytes, true, &fresh, &d, &err) != DEP_OK) return fail(c, &err);
    print_diags(c, &d);
    if (d.errors) return fail_with(c, EXIT_ERRORS, "nothing was written");
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

static void limits_json(jw *w, const config_limits *l) {
    jw_obj(w);
    jw_kint(w, S("turns"), l->turns);
    jw_kint(w, S("minutes"), l->minutes);
    jw_kint(w, S("idleSeconds"), l->idle_seconds);
    jw_kint(w, S("tokens"), l->tokens);
    jw_kint(w, S("toolKiB"), l->tool_kib);
    jw_kint(w, S("runKiB"), l->run_kib);
    jw_kint(w, S("searchMiB"), l->search_total_mib);
    jw_kint(w, S("searchFileMiB"), l->search_file_mib);
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
        jw_obj(&w);
        jw_kstr(&w, S("api"), p->api);
        jw_kstr(&w, S("url"), p->url);
        // Never the value: a variable's name, or that there is one.
        jw_kstr(&w, S("key"), str_find(p->key, S("${")) != SIZE_MAX ? p->key : p->key.n ? S("***") : S(""));
        jw_end_obj(&w);
    }
    jw_end_obj(&w);
    jw_key(&w, S("limits"));
    limits_json(&w, &cfg->limits);
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

static str origin_of(const origins *o, str path, str value) {
    const ydoc *docs[] = {o->workspace, o->system};
    for (size_t i = 0; i < 2; i++) {
        ynode *n;
        dep_err err;
        uint32_t line, column;
        if (!docs[i] || yaml_find(docs[i], path, &n, &err) != DEP_OK || n->kind != YAML_NODE_SCALAR ||
            !str_eq(str_trim(n->text), value))
            continue;
        yaml_place(docs[i], n->start, &line, &column);
        return str_fmt(o->c->a, STR_FMT ":%u", STR_ARG(docs[i]->file), line);
    }
    return S("default");
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
    str value = j->kind == JSON_STRING ? j->s : j->raw;
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
        str_cut(key, '.', &part, &key);
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
        safe(&b, at->kind == JSON_STRING ? at->s : at->raw), text(&b, "\n");
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
    config_change change = {key, arg(c, 2)};
    int code = config_edit(c, &change, 1);
    if (!code) say(c, "wrote " STR_FMT, STR_ARG(config_path(c)));
    return code;
}

int verb_config(cli *c) {
    str sub = c->args.n ? arg(c, 0) : S("get");
    bool sets = str_eq(sub, S("set"));
    int code = need_workspace(c, !sets); // a change prints what the file says afterwards
    if (code) return code;
    if (sets) return set(c);
    if (str_eq(sub, S("get"))) return get(c);
    if (!str_eq(sub, S("path"))) return usage_error(c, "config takes path, get or set");
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

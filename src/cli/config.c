// cli: config. Reads what is in effect with its origin; writes one value of the system file in place.
#include "cli/config_file.h"
#include <deputy/file.h>
#include <unistd.h>

str config_path(const cli *c) {
    return path_join(c->a, c->w->dirs.config, S("config.yaml"));
}

int config_edit(cli *c, const config_change *changes, size_t n) {
    dep_err err;
    str path = config_path(c), bytes = {0};
    dep_status st = file_read(c->a, path, CONFIG_FILE_MAX, &bytes, &err);
    if (st != DEP_OK && st != DEP_ERR_NOT_FOUND) return fail(c, &err);
    for (size_t i = 0; i < n; i++) {
        diags d = diags_new(c->a);
        ydoc *doc;
        if (yaml_parse(c->a, path, bytes, CONFIG_FILE_MAX, true, &doc, &d, &err) != DEP_OK)
            return fail(c, &err);
        bool empty = !doc->root && d.errors == 1 && str_eq(str_z(d.items.p[0].code), S("YAML012"));
        if (empty) {
            // A new file, or one of comments alone: the first key is written below what is there.
            str first = S("x-deputy: 1\n");
            str text_now = str_fmt(c->a, STR_FMT "%s" STR_FMT, STR_ARG(bytes),
                                   bytes.n && !str_ends(bytes, S("\n")) ? "\n" : "", STR_ARG(first));
            diags again = diags_new(c->a);
            if (yaml_parse(c->a, path, text_now, CONFIG_FILE_MAX, true, &doc, &again, &err) != DEP_OK)
                return fail(c, &err);
            if (yaml_edit(c->a, doc, YAML_EDIT_SET, changes[i].key, changes[i].value, NULL, &text_now,
                          &err) != DEP_OK)
                return fail(c, &err);
            if (yaml_parse(c->a, path, text_now, CONFIG_FILE_MAX, true, &doc, &again, &err) != DEP_OK)
                return fail(c, &err);
            if (yaml_edit(c->a, doc, YAML_EDIT_UNSET, S("x-deputy"), S(""), NULL, &bytes, &err) != DEP_OK)
                return fail(c, &err);
            continue;
        }
        if (!doc->root) {
            print_diags(c, &d);
            say(c, "mend " STR_FMT " first; nothing was written", STR_ARG(path));
            return EXIT_ERRORS;
        }
        if (yaml_edit(c->a, doc, YAML_EDIT_SET, changes[i].key, changes[i].value, NULL, &bytes, &err) !=
            DEP_OK)
            return fail(c, &err);
    }
    config fresh = config_defaults();
    diags d = diags_new(c->a);
    if (config_parse(c->a, path, bytes, true, &fresh, &d, &err) != DEP_OK) return fail(c, &err);
    print_diags(c, &d);
    if (d.errors) {
        say(c, "nothing was written");
        return EXIT_ERRORS;
    }
    int dir;
    if (dir_make(c->w->dirs.config, 0700, &err) != DEP_OK ||
        dir_open(c->w->dirs.config, &dir, &err) != DEP_OK)
        return fail(c, &err);
    st = file_replace_at(dir, S("config.yaml"), bytes, 0600, &err);
    close(dir);
    if (st != DEP_OK) return fail(c, &err);
    c->w->config = fresh;
    return EXIT_FINE;
}

// --- What is in effect
// ---------------------------------------------------------------------------------------------------------------

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

static int get(cli *c) {
    json *j;
    dep_err err;
    str text_json = config_json(c), key = arg(c, 1), part;
    if (json_parse(c->a, text_json, 0, &j, &err) != DEP_OK) return fail(c, &err);
    const json *at = j;
    while (key.n && at) {
        str_cut(key, '.', &part, &key);
        at = json_get(at, part);
    }
    if (!at) {
        say(c, "there is no setting \"" STR_FMT "\"; `deputy schema config --reference` lists them",
            STR_ARG(arg(c, 1)));
        return EXIT_ERRORS;
    }
    buf b = buf_new(c->a, 0);
    if (c->json) {
        buf_add(&b, at->raw);
    } else {
        term_add(&b, at->kind == JSON_STRING ? at->s : at->raw, true);
    }
    text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

int verb_config(cli *c) {
    int code = need_workspace(c, true);
    str sub = c->args.n ? arg(c, 0) : S("get");
    if (code) return code;
    if (str_eq(sub, S("path"))) {
        buf b = buf_new(c->a, 0);
        safe(&b, config_path(c));
        text(&b, "\n");
        out_buf(&b);
        return EXIT_FINE;
    }
    if (str_eq(sub, S("get"))) return get(c);
    if (!str_eq(sub, S("set"))) return usage_error(c, "config takes path, get or set");
    if (c->args.n != 3) return usage_error(c, "usage: deputy config set KEY VALUE");
    config_change change = {arg(c, 1), arg(c, 2)};
    code = config_edit(c, &change, 1);
    if (!code) say(c, "wrote " STR_FMT, STR_ARG(config_path(c)));
    return code;
}

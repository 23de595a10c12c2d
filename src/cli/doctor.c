// cli: doctor. What this machine and this workspace offer, one line each; exit 1 when something is broken.
#include "cli/chat_edit.h"
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    cli *c;
    buf b;
    jw w;
    bool broken;
} doctor;

typedef enum { FINE, NOTE, BROKEN } verdict;

static void line(doctor *d, verdict v, const char *what, str more) {
    static const char *const words[] = {"ok", "note", "broken"}, *const sgr[] = {"32", "33", "31"};
    if (v == BROKEN) d->broken = true;
    if (d->c->json) {
        jw_obj(&d->w);
        jw_kstr(&d->w, S("check"), str_z(what));
        jw_kstr(&d->w, S("verdict"), str_z(words[v]));
        jw_kstr(&d->w, S("detail"), more);
        jw_end_obj(&d->w);
        return;
    }
    buf word = buf_new(d->c->a, 0);
    cell(&word, str_z(words[v]), 7);
    paint(&d->b, d->c->color_out, sgr[v], buf_str(&word));
    cell(&d->b, str_z(what), 22);
    safe(&d->b, more);
    text(&d->b, "\n");
}

static void check_dirs(doctor *d) {
    cli *c = d->c;
    struct stat st;
    line(d, FINE, "workspace", c->w->root);
    if (!str_eq(c->w->root, c->w->memory_root))
        line(d, NOTE, "memory",
             str_fmt(c->a, "linked worktree: memory is in " STR_FMT, STR_ARG(c->w->memory_root)));
    str dirs[] = {c->w->dirs.config, c->w->dirs.state};
    const char *names[] = {"config directory", "state directory"};
    for (int i = 0; i < 2; i++) {
        if (lstat(str_cz(c->a, dirs[i]), &st) != 0) {
            line(d, FINE, names[i], str_fmt(c->a, STR_FMT " (not made yet)", STR_ARG(dirs[i])));
        } else if (st.st_uid != geteuid() && i == 1) {
            line(d, BROKEN, names[i], str_fmt(c->a, STR_FMT " belongs to another user", STR_ARG(dirs[i])));
        } else if (i == 1 && (st.st_mode & 077)) {
            line(d, BROKEN, names[i],
                 str_fmt(c->a, STR_FMT " is open to others; chmod 700 it", STR_ARG(dirs[i])));
        } else {
            line(d, FINE, names[i], dirs[i]);
        }
    }
}

static void check_store(doctor *d) {
    cli *c = d->c;
    dep_err err;
    bool fine = workspace_store(c->w, true, &err) == DEP_OK;
    if (fine && c->w->store) fine = store_check(c->w->store, &err) == DEP_OK;
    str notice = fine && c->w->store ? store_notice(c->w->store) : (str){0};
    if (!fine) {
        line(d, BROKEN, "database", str_z(err.msg));
    } else if (notice.n) {
        line(d, NOTE, "database", notice);
    } else {
        line(d, FINE, "database",
             c->w->store ? S("passes its integrity check") : S("none yet: the first run makes it"));
    }
}

static void check_config(doctor *d) {
    cli *c = d->c;
    const config *cfg = &c->w->config;
    line(d, cfg->fault.n ? BROKEN : FINE, "config",
         cfg->fault.n ? cfg->fault : S("nothing in it keeps a run back"));
    line(d, cfg->model.n ? FINE : NOTE, "default model",
         cfg->model.n ? cfg->model : S("quote/passages: quotes passages, no language model is connected"));
    for (vec_each(const config_provider, p, &cfg->providers)) {
        str key;
        dep_err err;
        bool ok = !p->key.n || config_expand(c->a, p->key, c->in->getenv, &key, &err) == DEP_OK;
        line(d, ok ? FINE : NOTE, "provider",
             ok ? p->name : str_fmt(c->a, STR_FMT ": %s", STR_ARG(p->name), err.msg));
    }
    const char *var, *provider = provider_waiting(c, &var);
    if (provider) line(d, NOTE, "models", str_fmt(c->a, "%s is set: deputy models add %s", var, provider));
}

// Libraries that are loaded when they are first needed: what does not work without them.
static void check_libraries(doctor *d) {
    dep_err err;
    bool network = model_can_connect(&err) == DEP_OK, detect = decode_can_detect();
    line(d,
         network                       ? FINE
         : d->c->w->config.providers.n ? BROKEN
                                       : NOTE,
         "libcurl", network ? S("language models can be reached through it") : str_z(err.msg));
    line(d, detect ? FINE : NOTE, "uchardet",
         detect ? S("tells legacy encodings apart")
                : S("libuchardet.so.0 cannot be loaded: text that is not Unicode is taken for GB18030 or "
                    "windows-1252; apt install libuchardet0"));
    edit_api edit;
    bool edits = chat_edit_load(NULL, &edit, &err) == DEP_OK;
    line(d, edits ? FINE : NOTE, "libedit", edits ? S("edits the lines of `deputy chat`") : str_z(err.msg));
}

static void check_agents(doctor *d) {
    cli *c = d->c;
    size_t counts[5] = {0};
    untrusted_files files = {0};
    dep_err err;
    for (vec_each(const agent_entry, e, &c->w->agents)) counts[e->state]++;
    line(d, counts[AGENT_INVALID] ? NOTE : FINE, "definitions",
         str_fmt(c->a, "%zu effective, %zu shadowed, %zu invalid, %zu disabled, %zu untrusted", counts[0],
                 counts[1], counts[2], counts[3], counts[4]));
    if (workspace_untrusted(c->w, &files, &err) != DEP_OK) {
        line(d, BROKEN, "trust", str_z(err.msg));
    } else {
        line(d, files.n ? NOTE : FINE, "trust",
             files.n ? str_fmt(c->a, "%zu files of this workspace are not trusted: deputy trust", files.n)
                     : S("everything here is trusted"));
    }
}

int verb_doctor(cli *c) {
    int code = need_agents(c);
    if (code) return code;
    doctor d = {.c = c, .b = buf_new(c->a, 0)};
    d.w = jw_new(&d.b);
    if (c->json) jw_arr(&d.w);
    line(&d, FINE, "version", str_z(cli_version()));
    line(&d, file_has_openat2() ? FINE : NOTE, "openat2",
         file_has_openat2() ? S("the kernel resolves paths beneath descriptors")
                            : S("missing: paths are walked one component at a time, and links are refused"));
    check_libraries(&d);
    check_dirs(&d);
    check_store(&d);
    check_config(&d);
    check_agents(&d);
    line(&d, NOTE, "sandbox", S("not yet: no tool that runs programs exists in this version"));
    if (c->json) jw_end_arr(&d.w), buf_addc(&d.b, '\n');
    out_buf(&d.b);
    print_diags(c, &c->w->diags);
    return d.broken ? EXIT_ERRORS : EXIT_FINE;
}

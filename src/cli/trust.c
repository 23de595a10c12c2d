// cli: trust, enable and disable. Answers are a person's (rule B16): the whole object is shown and asked on
// /dev/tty; without a terminal nothing changes and the exit is 3.
#include "cli/cli_int.h"

static void list(cli *c, buf *b, const strs *items, const char *mark, const char *sgr) {
    for (vec_each(const str, s, items)) {
        text(b, "      ");
        paint(b, c->color_out, sgr, str_fmt(c->a, "%s " STR_FMT, mark, STR_ARG(*s)));
        text(b, "\n");
    }
}

// One file as a person should see it: reach gained first.
static dep_status show_file(cli *c, buf *b, const untrusted_file *f, dep_err *err) {
    text(b, "  ");
    paint(b, c->color_out, "1", f->file);
    text(b, "  ");
    safe(b, f->kind);
    text(b, f->state == TRUST_NEVER ? ", new" : ", changed since it was trusted");
    buf_addf(b, ", sha256 %.12s…\n", f->sha256.p);
    if (f->summary.n) text(b, "      "), safe(b, utf8_cut_chars(f->summary, 200)), text(b, "\n");
    if (!str_eq(f->kind, S("definition"))) return DEP_OK;
    if (!f->reach.n) {
        text(b, "      it has errors: see `deputy check`\n");
        return DEP_OK;
    }
    reach_diff d;
    TRY(reach_compare(c->a, f->old_reach, f->reach, &d, err));
    list(c, b, &d.gained, "+", "33");
    list(c, b, &d.gates_lost, "- gate:", "33");
    list(c, b, &d.lost, "-", "32");
    list(c, b, &d.gates_gained, "+ gate:", "32");
    return DEP_OK;
}

static void file_json(jw *w, const untrusted_file *f) {
    jw_obj(w);
    jw_kstr(w, S("file"), f->file);
    jw_kstr(w, S("kind"), f->kind);
    jw_kstr(w, S("state"), f->state == TRUST_NEVER ? S("new") : S("changed"));
    jw_kstr(w, S("sha256"), f->sha256);
    jw_key(w, S("reach"));
    if (f->reach.n) {
        jw_raw(w, f->reach);
    } else {
        jw_null(w);
    }
    jw_end_obj(w);
}

static dep_status accept(cli *c, const untrusted_files *files, dep_err *err) {
    trust_list *t;
    TRY(trust_open(c->a, c->w->dirs.state, c->w->root, false, &t, err));
    trust_entry *entries = NEW_N(c->a, trust_entry, files->n);
    for (size_t i = 0; i < files->n; i++)
        entries[i] =
            (trust_entry){.file = files->p[i].file, .sha256 = files->p[i].sha256, .reach = files->p[i].reach};
    return trust_record_all(t, entries, files->n, err);
}

int verb_trust(cli *c) {
    untrusted_files found = {0}, files = {0};
    dep_err err;
    int code = need_agents(c);
    if (code) return code;
    if (workspace_untrusted(c->w, &found, &err) != DEP_OK) return fail(c, &err);
    for (vec_each(const untrusted_file, f, &found))
        if (!opt_has(c, "update") || f->state == TRUST_CHANGED) vec_push(c->a, &files, *f);
    buf b = buf_new(c->a, 0);
    if (c->json) {
        jw w = jw_new(&b);
        jw_arr(&w);
        for (vec_each(const untrusted_file, f, &files)) file_json(&w, f);
        jw_end_arr(&w);
        buf_addc(&b, '\n');
        out_buf(&b);
        return files.n ? EXIT_REFUSED : EXIT_FINE;
    }
    if (!files.n) {
        text(&b, "everything this workspace holds is trusted\n");
        out_buf(&b);
        return EXIT_FINE;
    }
    text(&b, "not trusted in ");
    safe(&b, c->w->root);
    text(&b, ":\n");
    for (vec_each(const untrusted_file, f, &files))
        if (show_file(c, &b, f, &err) != DEP_OK) return fail(c, &err);
    out_buf(&b);
    int yes = ask(c, str_fmt(c->a, "trust these %zu file%s?", files.n, files.n == 1 ? "" : "s"));
    if (yes < 0)
        say(c, "there is no terminal to ask on; nothing was changed. Type `deputy trust` in a terminal");
    if (yes <= 0) return EXIT_REFUSED;
    if (accept(c, &files, &err) != DEP_OK) return fail(c, &err);
    say(c, "%zu file%s trusted", files.n, files.n == 1 ? "" : "s");
    return EXIT_FINE;
}

// --- Switches
// ------------------------------------------------------------------------------------------------------------------------

static int set_switch(cli *c, const agent_entry *e, const char *value) {
    dep_err err;
    if (c->w->store) store_close(c->w->store);
    c->w->store = NULL;
    if (workspace_store(c->w, false, &err) != DEP_OK) return fail(c, &err);
    str key = str_fmt(c->a, "switch:%s:" STR_FMT, layer_name(e->def.layer), STR_ARG(e->def.identity));
    if (store_setting_set(c->w->store, key, str_z(value), &err) != DEP_OK) return fail(c, &err);
    say(c, "\"" STR_FMT "\" (" STR_FMT ") is %s", STR_ARG(e->def.name), STR_ARG(e->def.file),
        str_eq(str_z(value), S("off")) ? "off" : "on");
    return EXIT_FINE;
}

int verb_disable(cli *c) {
    agent_entry *e;
    int code = find_agent(c, arg(c, 0), &e);
    return code ? code : set_switch(c, e, "off");
}

// The one that is off: of several with this name the nearest, and for look-alikes the one that was named by
// file.
int verb_enable(cli *c) {
    agent_entry *e;
    int code = find_agent(c, arg(c, 0), &e);
    if (code) return code;
    if (e->state == AGENT_EFFECTIVE || e->state == AGENT_SHADOWED) {
        say(c, "\"" STR_FMT "\" is not switched off", STR_ARG(e->def.name));
        return EXIT_FINE;
    }
    if (e->state != AGENT_DISABLED) {
        say(c, "\"" STR_FMT "\" is %s: " STR_FMT, STR_ARG(e->def.name), agent_state_name(e->state),
            STR_ARG(e->reason));
        return EXIT_REFUSED;
    }
    buf b = buf_new(c->a, 0);
    safe(&b, e->def.file), text(&b, "\n"), safe(&b, e->reason), text(&b, "\n\n");
    term_add(&b, e->def.text, true);
    text(&b, "\n");
    out_buf(&b);
    int yes = ask(c, str_fmt(c->a, "enable \"" STR_FMT "\"?", STR_ARG(e->def.name)));
    if (yes < 0)
        say(c, "there is no terminal to ask on; nothing was changed. Type `deputy enable` in a terminal");
    if (yes <= 0) return EXIT_REFUSED;
    return set_switch(c, e, "on");
}

// cli: trust, enable and disable. Answers are a person's (rule B16): the whole object is shown and asked on
// /dev/tty; without a terminal nothing changes and the exit is 3.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <deputy/skills.h>
#include <unistd.h>

static void list(cli *c, buf *b, const strs *items, const char *mark, const char *sgr) {
    for (vec_each(const str, s, items)) {
        text(b, "      ");
        paint(b, c->color_out, sgr, str_fmt(c->a, "%s " STR_FMT, mark, STR_ARG(*s)));
        text(b, "\n");
    }
}

// The bytes that the digest stands for, escaped; false when the file has others by now.
static bool show_bytes(cli *c, buf *b, const untrusted_file *f) {
    enum { SHOWN_MAX = MEMORY_FILE_MAX };
    static_assert(SHOWN_MAX >= DEF_FILE_MAX && SHOWN_MAX >= SKILL_FILE_MAX && SHOWN_MAX >= CONFIG_FILE_MAX);
    str bytes, line;
    dep_err err;
    int root = memory_path(f->file) ? c->w->memory_fd : c->w->fd;
    if (file_read_at(c->a, root, f->file, FILE_LINKS_INSIDE, SHOWN_MAX, &bytes, NULL, &err) != DEP_OK ||
        !str_eq(sha256_hex(c->a, bytes), f->sha256))
        return false;
    while (bytes.n) {
        str_cut(bytes, '\n', &line, &bytes);
        text(b, "      | ");
        safe(b, str_ends(line, S("\r")) ? str_sub(line, 0, line.n - 1) : line);
        text(b, "\n");
    }
    return true;
}

// One file as a person should see it: reach gained first, then all of it (rule B16).
static dep_status show_file(cli *c, buf *b, const untrusted_file *f, bool *whole, dep_err *err) {
    text(b, "  ");
    paint(b, c->color_out, "1", f->file);
    text(b, "  ");
    safe(b, f->kind);
    text(b, f->state == TRUST_NEVER ? ", new" : ", changed since it was trusted");
    buf_addf(b, ", sha256 " STR_FMT "…\n", STR_ARG(str_sub(f->sha256, 0, 12)));
    if (str_eq(f->kind, S("definition")) && f->reach.n) {
        reach_diff d;
        TRY(reach_compare(c->a, f->old_reach, f->reach, &d, err));
        list(c, b, &d.gained, "+", "33");
        list(c, b, &d.gates_lost, "- gate:", "33");
        list(c, b, &d.lost, "-", "32");
        list(c, b, &d.gates_gained, "+ gate:", "32");
    } else if (str_eq(f->kind, S("definition"))) {
        text(b, "      it has errors: see `deputy check`\n");
    } else if (str_eq(f->kind, S("memory"))) {
        text(b, "      "), safe(b, f->summary), text(b, "\n");
    }
    *whole = show_bytes(c, b, f);
    if (!*whole) text(b, "      it cannot be shown, so it is left out: it changed just now\n");
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

// Notes are recorded with the checkout that holds them, everything else with this workspace.
static dep_status accept(cli *c, const untrusted_files *files, dep_err *err) {
    TRY(workspace_trust_writable(c->w, err));
    for (int notes = 0; notes < 2; notes++) {
        trust_entry *entries = NEW_N(c->a, trust_entry, files->n);
        size_t n = 0;
        for (vec_each(const untrusted_file, f, files))
            if (str_eq(f->kind, S("memory")) == notes)
                entries[n++] = (trust_entry){.file = f->file, .sha256 = f->sha256, .reach = f->reach};
        if (n) TRY(trust_record_all(notes ? c->w->memory_trust : c->w->trust, entries, n, err));
    }
    return DEP_OK;
}

int trust_files(cli *c, const untrusted_files *files, bool print, str question) {
    untrusted_files shown = {0};
    dep_err err;
    buf b = buf_new(c->a, 0);
    text(&b, "not trusted in ");
    safe(&b, c->w->root);
    text(&b, ":\n");
    for (vec_each(const untrusted_file, f, files)) {
        bool whole;
        if (show_file(c, &b, f, &whole, &err) != DEP_OK) return fail(c, &err);
        if (whole) vec_push(c->a, &shown, *f);
    }
    if (print) out_buf(&b);
    if (!shown.n) return EXIT_ERRORS;
    int yes = ask(c, print && isatty(1) ? (str){0} : buf_str(&b), question);
    if (yes < 0)
        say(c, "there is no terminal to ask on; nothing was changed. Type `deputy trust` in a terminal");
    if (yes <= 0) return EXIT_REFUSED;
    if (accept(c, &shown, &err) != DEP_OK) return fail(c, &err);
    say(c, "%zu file%s trusted", shown.n, shown.n == 1 ? "" : "s");
    return shown.n == files->n ? EXIT_FINE : EXIT_ERRORS;
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
        text(&b, found.n ? "nothing that was trusted has changed; `deputy trust` shows what is new\n"
                         : "everything this workspace holds is trusted\n");
        out_buf(&b);
        return EXIT_FINE;
    }
    return trust_files(c, &files, true,
                       str_fmt(c->a, "trust %s %zu file%s?", files.n == 1 ? "this" : "these", files.n,
                               files.n == 1 ? "" : "s"));
}

// --- Switches ------------------------------------------------------------------------------------

void switch_move(cli *c, def_layer layer, str from, str to) {
    dep_err err;
    str was = workspace_switch(c->w, layer, from);
    if (!was.n) return;
    if ((to.n && workspace_switch_set(c->w, layer, to, was, &err) != DEP_OK) ||
        workspace_switch_set(c->w, layer, from, (str){0}, &err) != DEP_OK)
        say(c, "its switch did not follow: %s", err.msg);
}

static int set_switch(cli *c, const agent_entry *e, const char *value) {
    dep_err err;
    if (workspace_switch_set(c->w, e->def.layer, e->def.identity, str_z(value), &err) != DEP_OK)
        return fail(c, &err);
    say(c, "\"" STR_FMT "\" (" STR_FMT ") is %s", STR_ARG(e->def.name), STR_ARG(e->def.file), value);
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
    // One that is shadowed may be off as well.
    str sw = workspace_switch(c->w, e->def.layer, e->def.identity);
    bool off = e->state == AGENT_DISABLED || (e->state == AGENT_SHADOWED && str_eq(sw, S("off")));
    if (!off && (e->state == AGENT_EFFECTIVE || e->state == AGENT_SHADOWED)) {
        say(c, "\"" STR_FMT "\" is not switched off", STR_ARG(e->def.name));
        return EXIT_FINE;
    }
    if (!off) {
        say(c, "\"" STR_FMT "\" is %s: " STR_FMT, STR_ARG(e->def.name), agent_state_name(e->state),
            STR_ARG(e->reason));
        return EXIT_REFUSED;
    }
    buf b = buf_new(c->a, 0);
    safe(&b, e->def.file), text(&b, "\n"), safe(&b, e->reason), text(&b, "\n\n");
    term_add(&b, e->def.text, true);
    text(&b, "\n");
    out_buf(&b);
    int yes = ask(c, isatty(1) ? (str){0} : buf_str(&b),
                  str_fmt(c->a, "enable \"" STR_FMT "\"?", STR_ARG(e->def.name)));
    if (yes < 0)
        say(c,
            "there is no terminal to ask on; nothing was changed. Type `deputy enable " STR_FMT
            "` in a terminal",
            STR_ARG(arg(c, 0)));
    if (yes <= 0) return EXIT_REFUSED;
    return set_switch(c, e, "on");
}

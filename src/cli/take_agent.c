// cli: the definition that `run` and `chat` are about to run, and the questions of trust before that (rule
// B16).
#include "cli/take_agent.h"
#include <unistd.h>

int renew_trust(cli *c, const agent_entry *e) {
    dep_err err;
    if (e->def.layer != LAYER_WORKSPACE || !e->old_reach.n ||
        (trust_check(c->w->trust, e->def.file, e->def.sha256, NULL) == TRUST_OK))
        return EXIT_FINE;
    return workspace_record(c->w, e->def.file, e->def.text, definition_reach(c->a, &e->def), &err) == DEP_OK
               ? EXIT_FINE
               : fail(c, &err);
}

static bool declares_skill(const cli *c, const definition *def, str location) {
    for (vec_each(const skill, s, &c->w->skills)) {
        if (!str_eq(s->location, location)) continue;
        for (vec_each(const def_name, d, &def->skills))
            if (skills_get(&c->w->skills, d->name) == s) return true;
    }
    return false;
}

// What this definition rests on and what was changed outside Deputy since it was trusted.
static dep_status find_changed(cli *c, const agent_entry *e, untrusted_files *ret, dep_err *err) {
    const definition *def = &e->def;
    untrusted_files all = {0};
    str dir = memory_dir(c->a, def->memory == DEF_MEMORY_SHARED ? MEMORY_SHARED : MEMORY_PRIVATE,
                         def->identity, str_z(layer_name(def->layer)));
    str notes = str_fmt(c->a, STR_FMT "/", STR_ARG(dir));
    TRY(workspace_untrusted(c->w, &all, err));
    for (vec_each(const untrusted_file, f, &all)) {
        bool own = str_eq(f->file, def->file);
        bool used = str_eq(f->kind, S("config")) ||
                    (str_eq(f->kind, S("skill")) && declares_skill(c, def, f->file)) ||
                    (str_eq(f->kind, S("memory")) && def->memory && str_starts(f->file, notes));
        if (own || (used && f->state == TRUST_CHANGED)) vec_push(c->a, ret, *f);
    }
    return DEP_OK;
}

int take_agent(cli *c, str name, str question, agent_entry **ret) {
    untrusted_files changed = {0};
    dep_err err;
    *ret = NULL;
    dep_status st = workspace_agent(c->w, name, ret, &err);
    bool untrusted = st != DEP_OK && *ret && (*ret)->state == AGENT_UNTRUSTED && (*ret)->def.valid;
    if (st != DEP_OK && !untrusted) return fail(c, &err);
    dep_err why;
    if (find_changed(c, *ret, &changed, &why) != DEP_OK) return fail(c, &why);
    if (!changed.n) return st == DEP_OK ? EXIT_FINE : fail(c, &err);
    if (!isatty(0)) {
        if (untrusted) return fail(c, &err);
        for (vec_each(const untrusted_file, f, &changed))
            say(c, STR_FMT " (%s) changed since it was trusted", STR_ARG(f->file), str_cz(c->a, f->kind));
        return fail_with(c, EXIT_REFUSED, "see and accept it with `deputy trust --update`");
    }
    int code = trust_files(c, &changed, false, question);
    if (code) return code;
    c->w = NULL; // what was withheld a moment ago is read anew
    return need_agent(c, name, ret);
}

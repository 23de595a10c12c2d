// cli: set and fmt: one value in place, or the whole file in order. Refused for errors the change adds; older
// ones are listed. Renaming moves private memory along.
#include "cli/cli_int.h"
#include <deputy/config.h>
#include <deputy/file.h>
#include <deputy/memory.h>
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool holds_diag(const diags *d, const diag *it) {
    for (vec_each(const diag, o, &d->items))
        if (str_eq(str_z(o->code), str_z(it->code)) && str_eq(o->path, it->path) && str_eq(o->msg, it->msg))
            return true;
    return false;
}

// What the change brings: diagnostics of the new text that the old one did not have, and older errors.
static void changed_diags(cli *c, const diags *before, const diags *after, diags *added, diags *older) {
    *added = diags_new(c->a);
    *older = diags_new(c->a);
    for (vec_each(const diag, n, &after->items)) {
        if (!holds_diag(before, n)) {
            diags_add(added, *n);
        } else if (n->severity == SEV_ERROR) {
            diags_add(older, *n);
        }
    }
}

static int reparse(cli *c, const agent_entry *e, str bytes, definition *def, diags *d) {
    dep_err err;
    ydoc *doc;
    *d = diags_new(c->a);
    if (definition_parse(c->a, e->def.file, e->def.base, e->def.layer, bytes, false, def, &doc, d, &err) !=
        DEP_OK)
        return fail(c, &err);
    if (doc->root) definition_check_save(def, doc, d);
    if (!def->valid) return EXIT_FINE;
    grant g;
    host_opts o = {0};
    return workspace_grant(c->a, c->w, def, role_of(def), &o, &g, d, &err) == DEP_OK ? EXIT_FINE
                                                                                     : fail(c, &err);
}

static int writable(cli *c, const agent_entry *e) {
    dep_err err;
    int dir;
    str where;
    return workspace_layer_dir(c->w, e->def.layer, false, &dir, &where, &err) == DEP_OK ? EXIT_FINE
                                                                                        : fail(c, &err);
}

// Files that Deputy wrote stay trusted under their new path.
static void move_records(cli *c, const memory_files *files, str old, str new) {
    dep_err err;
    if (workspace_trust_writable(c->w, &err) != DEP_OK) {
        say(c, "its notes are not trusted at the new place: %s", err.msg);
        return;
    }
    trust_list *t = c->w->memory_trust;
    for (vec_each(const memory_file, f, files)) {
        str bytes, from = path_join(c->a, old, f->name), to = path_join(c->a, new, f->name);
        if (f->withheld.n) continue;
        dep_status st =
            file_read_at(c->a, c->w->memory_fd, to, FILE_NO_LINKS, MEMORY_FILE_MAX, &bytes, NULL, &err);
        // Only the bytes that were trusted: another process may have changed the file meanwhile.
        if (st == DEP_OK && trust_check(t, from, sha256_hex(c->a, bytes), NULL) == TRUST_OK)
            st = trust_record(t, to, sha256_hex(c->a, bytes), (str){0}, &err);
        if (st != DEP_OK || trust_forget(t, from, &err) != DEP_OK) say(c, "%s", err.msg);
    }
}

// The private directory follows a rename, when nothing is in the way.
static void move_memory(cli *c, const definition *from, const definition *to) {
    str layer = str_z(layer_name(from->layer));
    str old = memory_dir(c->a, MEMORY_PRIVATE, from->identity, layer),
        new = memory_dir(c->a, MEMORY_PRIVATE, to->identity, layer);
    int dir;
    dep_err err;
    memory_scope *scope = NULL;
    memory_files files = {0};
    if (dir_open_at(c->w->memory_fd, S(".deputy/agent-memory"), FILE_NO_LINKS, &dir, &err) != DEP_OK) return;
    if (memory_open(c->a, c->w->memory_fd, old, false, c->w->memory_trust, c->w->clock, &scope, &err) !=
            DEP_OK ||
        (scope && memory_list(c->a, scope, &files, &err) != DEP_OK)) {
        say(c, "its private memory stays at " STR_FMT ": %s", STR_ARG(old), err.msg);
    } else if (scope && syscall(SYS_renameat2, dir, str_cz(c->a, path_base(old)), dir,
                                str_cz(c->a, path_base(new)), RENAME_NOREPLACE) == 0) {
        move_records(c, &files, old, new);
        say(c, "its private memory moved to " STR_FMT, STR_ARG(new));
    } else if (scope) {
        say(c, "its private memory stays at " STR_FMT ": %s", STR_ARG(old),
            errno == EEXIST ? "the new place is taken" : strerror(errno));
    }
    close(dir);
}

static int check_rename(cli *c, const agent_entry *e, const definition *def) {
    if (str_eq(def->identity, e->def.identity)) return EXIT_FINE;
    for (vec_each(const agent_entry, o, &c->w->agents)) {
        if (o == e || o->def.layer != e->def.layer || !str_eq(o->def.identity, def->identity)) continue;
        say(c, "the name \"" STR_FMT "\" is taken by " STR_FMT "; nothing was written", STR_ARG(def->name),
            STR_ARG(o->def.file));
        return EXIT_ERRORS;
    }
    return EXIT_FINE;
}

static int save(cli *c, agent_entry *e, str bytes) {
    definition def, old;
    diags after, before, added, older;
    dep_err err;
    str shown;
    int code = reparse(c, e, bytes, &def, &after);
    if (code || (code = reparse(c, e, e->def.text, &old, &before))) return code;
    changed_diags(c, &before, &after, &added, &older);
    print_diags(c, &added);
    if (added.errors) {
        say(c, "nothing was written");
        return EXIT_ERRORS;
    }
    if ((code = check_rename(c, e, &def))) return code;
    if (save_definition(c, e->def.layer, e->def.base, bytes, &e->def.text, e->trust == TRUST_OK, &shown,
                        &err) != DEP_OK)
        return fail(c, &err);
    if (!str_eq(old.identity, def.identity)) {
        move_memory(c, &old, &def);
        switch_move(c, old.layer, old.identity, def.identity);
    }
    if (older.errors) {
        say(c, "older errors are left:");
        print_diags(c, &older);
    }
    buf b = buf_new(c->a, 0);
    text(&b, "wrote "), safe(&b, shown), text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

int verb_set(cli *c) {
    agent_entry *e;
    dep_err err;
    str bytes, key = arg(c, 1), value = arg(c, 2);
    bool unset = opt_has(c, "unset"), add = opt_has(c, "add"), remove = opt_has(c, "remove");
    if (unset + add + remove > 1) return usage_error(c, "one of --unset, --add and --remove");
    if (unset && c->args.n == 3) return usage_error(c, "--unset takes no VALUE");
    if (!unset && c->args.n < 3) return usage_error(c, "usage: deputy set NAME KEY VALUE");
    int code = find_agent(c, arg(c, 0), &e);
    if (code) return code;
    if ((code = writable(c, e))) return code;
    if (!e->doc || !e->doc->root) {
        print_diags(c, &e->diags);
        say(c, "the file has errors that leave nothing to edit; mend it in an editor");
        return EXIT_ERRORS;
    }
    yaml_edit_kind kind = unset    ? YAML_EDIT_UNSET
                          : add    ? YAML_EDIT_ADD
                          : remove ? YAML_EDIT_REMOVE
                                   : YAML_EDIT_SET;
    if (yaml_edit(c->a, e->doc, kind, key, value, definition_key_order(), &bytes, &err) != DEP_OK)
        return fail(c, &err);
    return save(c, e, bytes);
}

static int fmt_errors(cli *c, const diags *d) {
    print_diags(c, d);
    say(c, "mend the errors first; nothing was written");
    return EXIT_ERRORS;
}

static int fmt_verdict(cli *c, str file, bool fine) {
    say(c, STR_FMT " is %s", STR_ARG(file), fine ? "in order" : "not in order");
    return fine ? EXIT_FINE : EXIT_ERRORS;
}

// A file by path, in no layer: formatted where it lies.
static int fmt_file(cli *c, str path) {
    str bytes, out;
    dep_err err;
    ydoc *doc;
    definition def;
    diags d = diags_new(c->a);
    if (read_named(c, path, &bytes, &err) != DEP_OK ||
        definition_parse(c->a, path, path_base(path), LAYER_WORKSPACE, bytes, false, &def, &doc, &d, &err) !=
            DEP_OK)
        return fail(c, &err);
    if (d.errors) return fmt_errors(c, &d);
    if (definition_format(c->a, doc, &out, &err) != DEP_OK) return fail(c, &err);
    if (str_eq(out, bytes) || opt_has(c, "check")) return fmt_verdict(c, path, str_eq(out, bytes));
    int dir;
    str parent = path_dir(path);
    if (dir_open(parent.n ? parent : S("."), &dir, &err) != DEP_OK) return fail(c, &err);
    dep_status st = file_replace_at(dir, path_base(path), out, 0644, &err);
    close(dir);
    if (st != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    text(&b, "wrote "), safe(&b, path), text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

int verb_fmt(cli *c) {
    agent_entry *e = NULL;
    dep_err err;
    str out, name = arg(c, 0);
    int code = need_agents(c);
    if (code) return code;
    if (workspace_agent(c->w, name, &e, &err) != DEP_OK && !e)
        return looks_like_file(name) ? fmt_file(c, name) : fail(c, &err);
    if ((code = writable(c, e))) return code;
    if (!e->doc || e->diags.errors) return fmt_errors(c, &e->diags);
    if (definition_format(c->a, e->doc, &out, &err) != DEP_OK) return fail(c, &err);
    bool fine = str_eq(out, e->def.text);
    return fine || opt_has(c, "check") ? fmt_verdict(c, e->def.file, fine) : save(c, e, out);
}

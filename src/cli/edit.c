// cli: set and fmt: one value in place, or the whole file in order. Refused for errors the change adds; older
// ones are listed. Renaming moves private memory along.
#include "cli/cli_int.h"
#include <deputy/config.h>
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

// Errors of the new text that the old one did not have.
static size_t added_errors(const diags *before, const diags *after, diags *out) {
    for (vec_each(const diag, n, &after->items)) {
        bool old = false;
        for (vec_each(const diag, o, &before->items))
            old |=
                str_eq(str_z(o->code), str_z(n->code)) && str_eq(o->path, n->path) && str_eq(o->msg, n->msg);
        if (n->severity == SEV_ERROR && !old) diags_add(out, *n);
    }
    return out->errors;
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
    return workspace_grant(c->w, def, role_of(def), &o, &g, d, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

static int writable(cli *c, const agent_entry *e) {
    dep_err err;
    int dir;
    str where;
    return workspace_layer_dir(c->w, e->def.layer, false, &dir, &where, &err) == DEP_OK ? EXIT_FINE
                                                                                        : fail(c, &err);
}

// The private directory follows a rename, when nothing is in the way.
static void move_memory(cli *c, const definition *from, const definition *to) {
    if (str_eq(from->identity, to->identity)) return;
    str layer = str_z(layer_name(from->layer));
    str old = memory_dir(c->a, MEMORY_PRIVATE, from->identity, layer),
        new = memory_dir(c->a, MEMORY_PRIVATE, to->identity, layer);
    int dir;
    dep_err err;
    if (dir_open_at(c->w->memory_fd, S(".deputy/agent-memory"), FILE_NO_LINKS, &dir, &err) != DEP_OK) return;
    if (syscall(SYS_renameat2, dir, str_cz(c->a, path_base(old)), dir, str_cz(c->a, path_base(new)),
                RENAME_NOREPLACE) == 0) {
        say(c, "its private memory moved to " STR_FMT, STR_ARG(new));
    } else if (errno != ENOENT) {
        say(c, "its private memory stays at " STR_FMT ": the new place is taken", STR_ARG(old));
    }
    close(dir);
    // Switches belong to the identity and follow.
    if (workspace_store(c->w, true, &err) == DEP_OK && c->w->store) {
        str was, key = str_fmt(c->a, "switch:" STR_FMT ":" STR_FMT, STR_ARG(layer), STR_ARG(from->identity));
        str key_new = str_fmt(c->a, "switch:" STR_FMT ":" STR_FMT, STR_ARG(layer), STR_ARG(to->identity));
        if (store_setting_get(c->a, c->w->store, key, &was, &err) != DEP_OK || !was.n) return;
        store_close(c->w->store);
        c->w->store = NULL;
        if (workspace_store(c->w, false, &err) != DEP_OK ||
            store_setting_set(c->w->store, key_new, was, &err) != DEP_OK ||
            store_setting_set(c->w->store, key, S(""), &err) != DEP_OK)
            say(c, "its switch did not follow: %s", err.msg);
    }
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
    definition def;
    diags after, before, added = diags_new(c->a);
    dep_err err;
    str shown;
    int code = reparse(c, e, bytes, &def, &after);
    if (code) return code;
    definition old;
    if ((code = reparse(c, e, e->def.text, &old, &before))) return code;
    if (added_errors(&before, &after, &added)) {
        print_diags(c, &added);
        say(c, "nothing was written");
        return EXIT_ERRORS;
    }
    if ((code = check_rename(c, e, &def))) return code;
    if (save_definition(c, e->def.layer, e->def.base, bytes, false, e->trust == TRUST_OK, &shown, &err) !=
        DEP_OK)
        return fail(c, &err);
    if (str_eq(old.identity, e->def.identity)) move_memory(c, &old, &def);
    print_diags(c, &after);
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

static bool is_path(str s) {
    return str_chr(s, '/') != SIZE_MAX || str_ends(s, S(".yaml")) || str_ends(s, S(".yml"));
}

// A file by path, in no layer: formatted where it lies.
static int fmt_file(cli *c, str path) {
    str bytes, out;
    dep_err err;
    ydoc *doc;
    diags d = diags_new(c->a);
    if (file_read(c->a, path, DEF_FILE_MAX, &bytes, &err) != DEP_OK) return fail(c, &err);
    if (yaml_parse(c->a, path, bytes, DEF_FILE_MAX, true, &doc, &d, &err) != DEP_OK) return fail(c, &err);
    print_diags(c, &d);
    if (d.errors) return EXIT_ERRORS;
    if (definition_format(c->a, doc, &out, &err) != DEP_OK) return fail(c, &err);
    if (str_eq(out, bytes)) return EXIT_FINE;
    if (opt_has(c, "check")) return EXIT_ERRORS;
    int dir;
    str parent = path_dir(path);
    if (dir_open(parent.n ? parent : S("."), &dir, &err) != DEP_OK) return fail(c, &err);
    dep_status st = file_replace_at(dir, path_base(path), out, 0644, &err);
    close(dir);
    return st == DEP_OK ? EXIT_FINE : fail(c, &err);
}

int verb_fmt(cli *c) {
    agent_entry *e = NULL;
    dep_err err;
    str out, name = arg(c, 0);
    int code = need_agents(c);
    if (code) return code;
    if (workspace_agent(c->w, name, &e, &err) != DEP_OK && !e)
        return is_path(name) ? fmt_file(c, name) : fail(c, &err);
    if ((code = writable(c, e))) return code;
    if (!e->doc || e->diags.errors) {
        print_diags(c, &e->diags);
        say(c, "mend the errors first; nothing was written");
        return EXIT_ERRORS;
    }
    if (definition_format(c->a, e->doc, &out, &err) != DEP_OK) return fail(c, &err);
    if (str_eq(out, e->def.text)) {
        say(c, STR_FMT " is in order already", STR_ARG(e->def.file));
        return EXIT_FINE;
    }
    if (opt_has(c, "check")) {
        say(c, STR_FMT " is not in order", STR_ARG(e->def.file));
        return EXIT_ERRORS;
    }
    return save(c, e, out);
}

// cli: new, copy and rm: whole files. A taken identity is refused before anything is written.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <deputy/memory.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

// Refuses when the layer has this identity already, naming the owner; an identity of a nearer or farther
// layer is only said.
static int check_free(cli *c, def_layer layer, str identity, str name) {
    for (vec_each(const agent_entry, e, &c->w->agents)) {
        if (!str_eq(e->def.identity, identity)) continue;
        if (e->def.layer == layer) {
            say(c, "the name \"" STR_FMT "\" is taken by " STR_FMT, STR_ARG(name), STR_ARG(e->def.file));
            return EXIT_ERRORS;
        }
        say(c, "note: " STR_FMT " (%s) has this name too; the nearer layer wins", STR_ARG(e->def.file),
            layer_name(e->def.layer));
    }
    return EXIT_FINE;
}

// A file name for a new definition that nothing in the layer has: names that differ may give one file name,
// and after a rename the old name's file is another's.
static str free_base(cli *c, def_layer layer, str identity) {
    enum { TRIES = 1000 };
    str base = definition_file_name(c->a, identity), stem = str_sub(base, 0, base.n - 5), where;
    int dir;
    dep_err err;
    struct stat st;
    if (workspace_layer_dir(c->w, layer, false, &dir, &where, &err) != DEP_OK) return base;
    for (int i = 2; i < TRIES && fstatat(dir, str_cz(c->a, base), &st, AT_SYMLINK_NOFOLLOW) == 0; i++)
        base = str_fmt(c->a, STR_FMT "-%d.yaml", STR_ARG(stem), i);
    return base;
}

// Where notes of an earlier definition of this name are kept; empty when there are none.
static str former_notes(const cli *c, def_layer layer, str identity) {
    str dir = memory_dir(c->a, MEMORY_PRIVATE, identity, str_z(layer_name(layer)));
    int fd;
    dep_err err;
    if (!dir.n || dir_open_at(c->w->memory_fd, dir, FILE_NO_LINKS, &fd, &err) != DEP_OK) return (str){0};
    close(fd);
    return dir;
}

static void wrote(cli *c, const definition *def, str shown, const char *memory) {
    str notes = former_notes(c, def->layer, def->identity);
    buf b = buf_new(c->a, 0);
    text(&b, "wrote "), safe(&b, shown);
    if (def->memory == DEF_MEMORY_PRIVATE && !notes.n) text(&b, memory);
    text(&b, "\n");
    out_buf(&b);
    if (def->memory == DEF_MEMORY_PRIVATE && notes.n)
        say(c, "note: notes of an earlier \"" STR_FMT "\" are kept in " STR_FMT " and are its memory now",
            STR_ARG(def->name), STR_ARG(notes));
}

static void print_problems(cli *c, const diags *d, diag_severity worst) {
    diags some = diags_new(c->a);
    for (vec_each(const diag, it, &d->items))
        if (it->severity <= worst) diags_add(&some, *it);
    print_diags(c, &some);
}

// Parses a definition as for saving, and prints what is wrong with it.
static int check_text(cli *c, def_layer layer, str file, str bytes, definition *def) {
    dep_err err;
    ydoc *doc;
    diags d = diags_new(c->a);
    if (definition_parse(c->a, file, path_base(file), layer, bytes, false, def, &doc, &d, &err) != DEP_OK)
        return fail(c, &err);
    if (doc->root) definition_check_save(def, doc, &d);
    print_problems(c, &d, SEV_WARNING);
    return d.errors ? EXIT_ERRORS : EXIT_FINE;
}

// The same for what is about to be written; errors refuse.
static int check_before(cli *c, def_layer layer, str file, str bytes, definition *def) {
    int code = check_text(c, layer, file, bytes, def);
    if (code) say(c, "nothing was written");
    return code;
}

// Opens a new file in the editor. What the person saved there is what they accept.
static int edit_new(cli *c, const definition *was, str base, str path) {
    definition def;
    dep_err err;
    str edited, shown;
    int code = run_editor(c, path);
    if (code) return code;
    if (file_read(c->a, path, DEF_FILE_MAX, &edited, &err) != DEP_OK ||
        save_definition(c, was->layer, base, edited, &edited, true, &shown, &err) != DEP_OK)
        return fail(c, &err);
    if ((code = check_text(c, was->layer, shown, edited, &def))) return code;
    return str_eq(def.identity, was->identity) ? EXIT_FINE : check_free(c, def.layer, def.identity, def.name);
}

int verb_new(cli *c) {
    dep_err err;
    str identity, name = arg(c, 0), nfc;
    int code = need_agents(c);
    if (code) return code;
    if (name_check(c->a, name, &nfc, &identity, &err) != DEP_OK) return fail(c, &err);
    def_layer layer = opt_has(c, "system") ? LAYER_SYSTEM : LAYER_WORKSPACE;
    if ((code = check_free(c, layer, identity, name))) return code;
    definition_new_opts o = {.name = nfc,
                             .description = opt_get(c, "description", (str){0}),
                             .prompt = opt_get(c, "prompt", (str){0}),
                             .model = opt_get(c, "model", (str){0}),
                             .memory = opt_get(c, "memory", (str){0}),
                             .tools = opt_all(c, "tools"),
                             .skills = opt_all(c, "skills"),
                             .knowledge = opt_all(c, "knowledge")};
    if (!o.tools.n) {
        vec_push(c->a, &o.tools, S("read"));
        vec_push(c->a, &o.tools, S("glob"));
        vec_push(c->a, &o.tools, S("grep"));
    }
    if (opt_has(c, "edit") && !editor_command(c)) return usage_error(c, "--edit needs $VISUAL or $EDITOR");
    str bytes = definition_text(c->a, &o), base = free_base(c, layer, identity), shown;
    definition def;
    if ((code = check_before(c, layer, base, bytes, &def))) return code;
    if (save_definition(c, layer, base, bytes, NULL, true, &shown, &err) != DEP_OK ||
        put_schema(c, layer, &err) != DEP_OK)
        return fail(c, &err);
    wrote(c, &def, shown, "");
    return opt_has(c, "edit")
               ? edit_new(c, &def, base, layer == LAYER_SYSTEM ? shown : path_join(c->a, c->w->root, shown))
               : EXIT_FINE;
}

int verb_copy(cli *c) {
    agent_entry *e;
    dep_err err;
    str to = opt_get(c, "to", (str){0}), as = opt_get(c, "as", (str){0}), bytes, shown;
    if (!str_eq(to, S("system")) && !str_eq(to, S("workspace")))
        return usage_error(c, "say where to: --to system or --to workspace");
    def_layer layer = str_eq(to, S("system")) ? LAYER_SYSTEM : LAYER_WORKSPACE;
    int code = find_agent(c, arg(c, 0), &e);
    if (code) return code;
    if (!e->def.text.n || !e->doc)
        return fail_with(c, EXIT_ERRORS, "the file of \"" STR_FMT "\" cannot be read", STR_ARG(arg(c, 0)));
    // A copy of a file that nobody has accepted is not accepted by being copied, and the system's layer knows
    // no trust.
    bool trusted = e->trust == TRUST_OK;
    if (!trusted && layer == LAYER_SYSTEM)
        return fail_with(c, EXIT_REFUSED,
                         STR_FMT " is not trusted; see and accept it with `deputy trust`, then copy it",
                         STR_ARG(e->def.file));
    str name = as.n ? as : e->def.name, identity, nfc;
    if (name_check(c->a, name, &nfc, &identity, &err) != DEP_OK) return fail(c, &err);
    if ((code = check_free(c, layer, identity, name))) return code;
    bytes = e->def.text;
    if (as.n && yaml_edit(c->a, e->doc, YAML_EDIT_SET, S("name"), yaml_scalar_text(c->a, nfc, true),
                          definition_key_order(), &bytes, &err) != DEP_OK)
        return fail(c, &err);
    definition def;
    str base = free_base(c, layer, identity);
    if ((code = check_before(c, layer, base, bytes, &def))) return code;
    if (save_definition(c, layer, base, bytes, NULL, trusted, &shown, &err) != DEP_OK) return fail(c, &err);
    wrote(c, &def, shown, "; its memory starts empty");
    return EXIT_FINE;
}

// Another file of the same layer and name, that the switch and the notes belong to as well.
static const agent_entry *twin_of(const cli *c, const agent_entry *e) {
    for (vec_each(const agent_entry, o, &c->w->agents))
        if (o != e && o->def.layer == e->def.layer && str_eq(o->def.identity, e->def.identity)) return o;
    return NULL;
}

int verb_rm(cli *c) {
    agent_entry *e;
    dep_err err;
    int code = find_agent(c, arg(c, 0), &e), dir;
    str where;
    if (code) return code;
    if (workspace_layer_dir(c->w, e->def.layer, false, &dir, &where, &err) != DEP_OK) return fail(c, &err);
    if (!opt_has(c, "yes")) {
        int yes = ask(c, (str){0}, str_fmt(c->a, "remove " STR_FMT "?", STR_ARG(e->def.file)));
        if (yes < 0) {
            say(c, "there is no terminal to ask on; add --yes to remove " STR_FMT, STR_ARG(e->def.file));
            return EXIT_REFUSED;
        }
        if (!yes) return EXIT_REFUSED;
    }
    if (unlinkat(dir, str_cz(c->a, e->def.base), 0) != 0) {
        (void)err_os(&err, errno, STR_FMT, STR_ARG(e->def.file));
        return fail(c, &err);
    }
    if (e->def.layer == LAYER_WORKSPACE && workspace_trust_writable(c->w, &err) == DEP_OK &&
        trust_forget(c->w->trust, e->def.file, &err) != DEP_OK)
        return fail(c, &err);
    buf b = buf_new(c->a, 0);
    text(&b, "removed "), safe(&b, e->def.file), text(&b, "\n");
    for (vec_each(const agent_entry, o, &c->w->agents))
        if (o->state == AGENT_SHADOWED && str_eq(o->shadowed_by, e->def.file))
            text(&b, "in effect now: "), safe(&b, o->def.file), text(&b, "\n");
    out_buf(&b);
    if (twin_of(c, e)) return EXIT_FINE;
    switch_move(c, e->def.layer, e->def.identity, (str){0});
    str notes = former_notes(c, e->def.layer, e->def.identity);
    if (notes.n) say(c, "note: its notes are kept in " STR_FMT, STR_ARG(notes));
    return EXIT_FINE;
}

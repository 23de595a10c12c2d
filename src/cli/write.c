// cli: new, copy and rm: whole files. A taken identity is refused before anything is written.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <sys/wait.h>
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

static int edit_file(cli *c, str path) {
    const char *editor = c->in->getenv("VISUAL");
    if (!editor || !*editor) editor = c->in->getenv("EDITOR");
    if (!editor || !*editor) {
        say(c, "set $VISUAL or $EDITOR to open " STR_FMT, STR_ARG(path));
        return EXIT_FINE;
    }
    // The person's own editor, in their own environment and terminal: not a child of a delegation.
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", str_cz(c->a, str_fmt(c->a, "%s \"$1\"", editor)), "sh",
              str_cz(c->a, path), (char *)NULL);
        _exit(127);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status)) {
        say(c, "the editor did not end well");
        return EXIT_ERRORS;
    }
    return EXIT_FINE;
}

static void print_problems(cli *c, const diags *d, diag_severity worst) {
    diags some = diags_new(c->a);
    for (vec_each(const diag, it, &d->items))
        if (it->severity <= worst) diags_add(&some, *it);
    print_diags(c, &some);
}

// Parses what is about to be written; errors refuse.
static int check_text(cli *c, def_layer layer, str file, str bytes, definition *def) {
    dep_err err;
    ydoc *doc;
    diags d = diags_new(c->a);
    if (definition_parse(c->a, file, path_base(file), layer, bytes, false, def, &doc, &d, &err) != DEP_OK)
        return fail(c, &err);
    if (doc->root) definition_check_save(def, doc, &d);
    print_problems(c, &d, SEV_WARNING);
    if (d.errors) {
        say(c, "nothing was written");
        return EXIT_ERRORS;
    }
    return EXIT_FINE;
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
    str bytes = definition_text(c->a, &o), base = definition_file_name(c->a, identity), shown;
    definition def;
    if ((code = check_text(c, layer, base, bytes, &def))) return code;
    if (save_definition(c, layer, base, bytes, true, true, &shown, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    text(&b, "wrote "), safe(&b, shown), text(&b, "\n");
    out_buf(&b);
    str path = layer == LAYER_SYSTEM ? shown : path_join(c->a, c->w->root, shown);
    if (!opt_has(c, "edit")) return EXIT_FINE;
    if ((code = edit_file(c, path))) return code;
    // The person has just written it at our prompt: what they saved is what they accept.
    str edited;
    if (file_read(c->a, path, DEF_FILE_MAX, &edited, &err) != DEP_OK) return fail(c, &err);
    if (save_definition(c, layer, base, edited, false, true, &shown, &err) != DEP_OK) return fail(c, &err);
    return check_text(c, layer, shown, edited, &def) ? EXIT_ERRORS : EXIT_FINE;
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
        return usage_error(c, "the file of \"" STR_FMT "\" cannot be read", STR_ARG(arg(c, 0)));
    str name = as.n ? as : e->def.name, identity, nfc;
    if (name_check(c->a, name, &nfc, &identity, &err) != DEP_OK) return fail(c, &err);
    if ((code = check_free(c, layer, identity, name))) return code;
    bytes = e->def.text;
    if (as.n && yaml_edit(c->a, e->doc, YAML_EDIT_SET, S("name"), yaml_scalar_text(c->a, nfc, true),
                          definition_key_order(), &bytes, &err) != DEP_OK)
        return fail(c, &err);
    definition def;
    str base = definition_file_name(c->a, identity);
    if ((code = check_text(c, layer, base, bytes, &def))) return code;
    // A copy of a file that nobody has accepted is not accepted by being copied.
    bool trusted = e->trust == TRUST_OK;
    if (save_definition(c, layer, base, bytes, true, trusted, &shown, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    text(&b, "wrote "), safe(&b, shown), text(&b, "; its memory starts empty\n");
    out_buf(&b);
    return EXIT_FINE;
}

int verb_rm(cli *c) {
    agent_entry *e;
    dep_err err;
    int code = find_agent(c, arg(c, 0), &e), dir;
    str where;
    if (code) return code;
    if (!opt_has(c, "yes")) {
        int yes = ask(c, str_fmt(c->a, "remove " STR_FMT "?", STR_ARG(e->def.file)));
        if (yes < 0) {
            say(c, "there is no terminal to ask on; add --yes to remove " STR_FMT, STR_ARG(e->def.file));
            return EXIT_REFUSED;
        }
        if (!yes) return EXIT_ERRORS;
    }
    if (workspace_layer_dir(c->w, e->def.layer, false, &dir, &where, &err) != DEP_OK) return fail(c, &err);
    if (unlinkat(dir, str_cz(c->a, e->def.base), 0) != 0) {
        (void)err_os(&err, errno, STR_FMT, STR_ARG(e->def.file));
        return fail(c, &err);
    }
    trust_list *t;
    if (e->def.layer == LAYER_WORKSPACE &&
        trust_open(c->a, c->w->dirs.state, c->w->root, false, &t, &err) == DEP_OK &&
        trust_forget(t, e->def.file, &err) != DEP_OK)
        return fail(c, &err);
    buf b = buf_new(c->a, 0);
    text(&b, "removed "), safe(&b, e->def.file), text(&b, "\n");
    for (vec_each(const agent_entry, o, &c->w->agents))
        if (o->state == AGENT_SHADOWED && str_eq(o->shadowed_by, e->def.file))
            text(&b, "in effect now: "), safe(&b, o->def.file), text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

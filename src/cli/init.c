// cli: init. Makes .deputy with a first, commented definition, a local copy of the schema for editors and a
// .gitignore; names the manuals it finds. Nothing that is there is overwritten.
#include "cli/cli_int.h"
#include <deputy/assets.h>
#include <deputy/config.h>
#include <deputy/file.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static const char gitignore[] = "# Notes of agents stay on this machine.\nmemory/\nagent-memory/\n";

// Writes dir/rel (parents made); existing files stay as they are. *made counts new ones.
static dep_status put(cli *c, int root, str rel, str bytes, size_t *made, dep_err *err) {
    int dir;
    TRY(dir_make_at(root, path_dir(rel), 0755, &dir, err));
    dep_status st = file_create_at(dir, path_base(rel), bytes, 0644, err);
    close(dir);
    if (st == DEP_ERR_EXISTS) return DEP_OK;
    if (st != DEP_OK) return st;
    ++*made;
    buf b = buf_new(c->a, 0);
    text(&b, "  ");
    safe(&b, rel);
    text(&b, "\n");
    out_buf(&b);
    return DEP_OK;
}

// --- Manuals -------------------------------------------------------------------------------------

static bool is_text_manual(str name) {
    static const char *const ends[] = {".md", ".markdown", ".rst", ".adoc", ".org", ".txt"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (str_ends(name, str_z(ends[i]))) return true;
    return false;
}

static size_t count_manuals(cli *c, int fd, int depth) {
    enum { DEPTH = 6, ENTRIES = 5000 };
    dir_entries entries = {0};
    dep_err err;
    size_t n = 0;
    if (dir_list(c->a, fd, ENTRIES, &entries, &err) != DEP_OK) return 0;
    for (vec_each(const dir_entry, e, &entries)) {
        if (str_starts(e->name, S(".")) || str_eq(e->name, S("node_modules"))) continue;
        if (e->type == DT_REG && is_text_manual(e->name)) n++;
        int child;
        if (e->type != DT_DIR || depth >= DEPTH ||
            dir_open_at(fd, e->name, FILE_NO_LINKS, &child, &err) != DEP_OK)
            continue;
        n += count_manuals(c, child, depth + 1);
        close(child);
    }
    return n;
}

// Top folders that hold text, as globs; the workspace's own files as the last resort.
static strs find_manuals(cli *c, int root) {
    strs globs = {0};
    dir_entries entries = {0};
    dep_err err;
    bool at_root = false;
    if (dir_list(c->a, root, 5000, &entries, &err) != DEP_OK) return globs;
    for (vec_each(const dir_entry, e, &entries)) {
        if (str_starts(e->name, S(".")) || str_eq(e->name, S("node_modules"))) continue;
        if (e->type == DT_REG && is_text_manual(e->name)) at_root = true;
        int child;
        if (e->type != DT_DIR || globs.n >= DEF_PATHS_MAX / 2 ||
            dir_open_at(root, e->name, FILE_NO_LINKS, &child, &err) != DEP_OK)
            continue;
        size_t n = count_manuals(c, child, 1);
        close(child);
        bool plain = true; // a name with glob characters is left to the person
        for (size_t i = 0; i < e->name.n; i++) plain &= !strchr("*?[]{}\\", e->name.p[i]);
        if (n && plain)
            vec_push(c->a, &globs,
                     str_fmt(c->a, "./" STR_FMT "/**/*.{md,markdown,rst,adoc,org,txt}", STR_ARG(e->name)));
    }
    if (at_root) vec_push(c->a, &globs, S("./*.{md,markdown,rst,adoc,org,txt}"));
    return globs;
}

dep_status put_schema(cli *c, def_layer layer, dep_err *err) {
    int dir;
    str where = path_join(c->a, c->w->dirs.config, S("schemas"));
    buf schema = buf_new(c->a, 0);
    keytab_schema(&schema, definition_keys());
    if (layer == LAYER_WORKSPACE) {
        TRY(dir_make_at(c->w->fd, S(".deputy/schemas"), 0755, &dir, err));
    } else {
        TRY(dir_make(where, 0700, err));
        TRY(dir_open(where, &dir, err));
    }
    dep_status st = file_create_at(dir, S("definition.schema.json"), buf_str(&schema), 0644, err);
    close(dir);
    return st == DEP_ERR_EXISTS ? DEP_OK : st;
}

// --- Both kinds ----------------------------------------------------------------------------------

static dep_status record(cli *c, str rel, str bytes, dep_err *err) {
    str reach = {0};
    if (str_starts(rel, S(".deputy/agents/"))) {
        definition def;
        diags d = diags_new(c->a);
        TRY(definition_parse(c->a, rel, path_base(rel), LAYER_WORKSPACE, bytes, false, &def, NULL, &d, err));
        reach = definition_reach(c->a, &def);
    }
    return workspace_record(c->w, rel, bytes, reach, err);
}

static bool needs_trust(str rel) {
    return str_starts(rel, S(".deputy/agents/")) || str_ends(rel, S("/SKILL.md")) ||
           str_eq(rel, S(".deputy/config.yaml")) || memory_path(rel);
}

static dep_status sample(cli *c, dep_err *err) {
    size_t n, made = 0;
    const asset *files = assets_sample(&n);
    for (size_t i = 0; i < n; i++) {
        size_t before = made;
        TRY(put(c, c->w->fd, files[i].path, files[i].bytes, &made, err));
        if (made > before && needs_trust(files[i].path)) TRY(record(c, files[i].path, files[i].bytes, err));
    }
    buf schema = buf_new(c->a, 0);
    keytab_schema(&schema, definition_keys());
    TRY(put(c, c->w->fd, S(".deputy/schemas/definition.schema.json"), buf_str(&schema), &made, err));
    buf b = buf_new(c->a, 0);
    buf_addf(&b, "%zu files made. Try:\n", made);
    static const char *const tries[] = {"agents", "show customer-service",
                                        "run customer-service 'How many days do I have to return it?'",
                                        "search refund"};
    for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
        text(&b, "  deputy -C ");
        safe(&b, c->dir.n ? c->dir : S("."));
        buf_addf(&b, " %s\n", tries[i]);
    }
    out_buf(&b);
    return DEP_OK;
}

// A .gitignore that was there is kept; without these lines notes may be committed, and a person should know.
static void check_ignored(cli *c) {
    str bytes, line;
    dep_err err;
    bool memory = false, agents = false;
    if (file_read_at(c->a, c->w->fd, S(".deputy/.gitignore"), FILE_NO_LINKS, 64 * 1024, &bytes, NULL, &err) !=
        DEP_OK)
        return;
    while (bytes.n) {
        str_cut(bytes, '\n', &line, &bytes);
        line = str_trim(line);
        memory |= str_eq(line, S("memory/")) || str_eq(line, S("/memory/"));
        agents |= str_eq(line, S("agent-memory/")) || str_eq(line, S("/agent-memory/"));
    }
    if (!memory || !agents)
        say(c, "note: .deputy/.gitignore was there and does not name memory/ and agent-memory/: notes may be "
               "committed");
}

static dep_status plain(cli *c, dep_err *err) {
    size_t made = 0;
    strs manuals = find_manuals(c, c->w->fd);
    definition_new_opts o = {.name = S("helper"),
                             .description =
                                 S("Answers questions about the documents of this workspace, with path:line"),
                             .knowledge = manuals};
    vec_push(c->a, &o.tools, S("read"));
    vec_push(c->a, &o.tools, S("glob"));
    vec_push(c->a, &o.tools, S("grep"));
    buf schema = buf_new(c->a, 0), config_schema = buf_new(c->a, 0);
    keytab_schema(&schema, definition_keys());
    keytab_schema(&config_schema, config_keys());
    str definition_bytes = definition_text(c->a, &o), file = S(".deputy/agents/helper.yaml");
    TRY(put(c, c->w->fd, S(".deputy/.gitignore"), str_z(gitignore), &made, err));
    TRY(put(c, c->w->fd, S(".deputy/schemas/definition.schema.json"), buf_str(&schema), &made, err));
    TRY(put(c, c->w->fd, S(".deputy/schemas/config.schema.json"), buf_str(&config_schema), &made, err));
    size_t before = made;
    TRY(put(c, c->w->fd, file, definition_bytes, &made, err));
    if (made > before) TRY(record(c, file, definition_bytes, err));
    buf b = buf_new(c->a, 0);
    if (manuals.n) {
        text(&b, made > before ? "manuals found, named as its knowledge:\n" : "manuals found:\n");
        for (vec_each(const str, g, &manuals)) text(&b, "  "), safe(&b, *g), text(&b, "\n");
    } else {
        text(&b, "no manuals found; name some with `deputy set helper knowledge '[{name: Manual, path: "
                 "\"./docs/**/*.md\"}]'`\n");
    }
    if (!made) text(&b, "everything was there already; nothing was changed\n");
    text(&b, "Next: `deputy show helper`, then `deputy run helper 'your question'`\n");
    out_buf(&b);
    check_ignored(c);
    return DEP_OK;
}

int verb_init(cli *c) {
    dep_err err;
    str dir = arg(c, 0);
    if (dir.n) {
        if (c->dir.n) return usage_error(c, "give the directory once, after init or after -C");
        char *cwd = NULL;
        str path = dir;
        if (dir.p[0] != '/') {
            cwd = getcwd(NULL, 0);
            if (!cwd) return usage_error(c, "the current directory cannot be told");
            arena_defer(c->a, free, cwd);
            path = path_join(c->a, str_z(cwd), dir);
        }
        if (dir_make(path, 0755, &err) != DEP_OK) return fail(c, &err);
        c->dir = dir;
    } else if (!c->dir.n && opt_has(c, "sample")) {
        return usage_error(c, "say where: deputy init --sample DIR");
    } else if (!c->dir.n) {
        // Home and what is above it are no workspace unless a person names them (rule B3).
        int wide = need_workspace(c, false);
        if (wide == EXIT_USAGE) say(c, "`deputy init DIR` makes a workspace of DIR");
        if (wide) return wide;
        c->w = NULL;
        c->dir = S("."); // init makes a workspace where it stands, also below another one
    }
    int code = need_workspace(c, true);
    if (code) return code;
    dep_status st = opt_has(c, "sample") ? sample(c, &err) : plain(c, &err);
    return st == DEP_OK ? EXIT_FINE : fail(c, &err);
}

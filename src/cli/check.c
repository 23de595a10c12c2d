// cli: check. Every fault of every file in one go: definitions (their gates resolved against this host),
// config, skills, memory without an owner.
#include "cli/cli_int.h"
#include <deputy/file.h>

typedef struct {
    cli *c;
    diags all;
    size_t files;
    bool strict;
} checked;

static void merge(checked *k, const diags *d) {
    for (vec_each(const diag, it, &d->items)) {
        diag copy = *it;
        if (k->strict && copy.severity == SEV_WARNING) copy.severity = SEV_ERROR;
        diags_add(&k->all, copy);
    }
    k->all.dropped += d->dropped;
}

static void check_entry(checked *k, agent_entry *e) {
    k->files++;
    merge(k, &e->diags);
    if (e->def.layer == LAYER_WORKSPACE && e->state == AGENT_UNTRUSTED) {
        diags d = diags_new(k->c->a);
        diags_add(&d, (diag){.severity = SEV_WARNING,
                             .code = "TRU003",
                             .file = e->def.file,
                             .msg = str_fmt(k->c->a, "not in effect: " STR_FMT, STR_ARG(e->reason))});
        merge(k, &d);
    }
    grant g;
    dep_err err;
    diags d = diags_new(k->c->a);
    host_opts o = {.count_sources = true};
    if (!e->def.valid ||
        workspace_grant(k->c->a, k->c->w, &e->def, role_of(&e->def), &o, &g, &d, &err) != DEP_OK)
        return;
    for (vec_each(const report_row, r, &g.report)) {
        bool dimension =
            str_eq(str_z(r->dimension), S("skills")) || str_eq(str_z(r->dimension), S("knowledge"));
        bool cost = str_eq(str_z(r->dimension), S("limits")) && r->state == ITEM_REFUSED;
        if (!cost && (!dimension || (r->state != ITEM_MISSING && r->state != ITEM_WITHHELD))) continue;
        diags_add(&d,
                  (diag){.severity = SEV_WARNING,
                         .code = "CAP004",
                         .file = r->at.file.n ? r->at.file : e->def.file,
                         .line = r->at.line,
                         .column = r->at.column,
                         .msg = str_fmt(k->c->a, "%s \"" STR_FMT "\" is %s: " STR_FMT, r->dimension,
                                        STR_ARG(r->name), item_state_name(r->state), STR_ARG(r->reason))});
    }
    merge(k, &d);
}

static void check_orphans(checked *k) {
    workspace *w = k->c->w;
    int fd;
    dep_err err;
    dir_entries entries = {0};
    if (dir_open_at(w->memory_fd, S(".deputy/agent-memory"), FILE_NO_LINKS, &fd, &err) != DEP_OK) return;
    arena_defer_close(k->c->a, fd);
    if (dir_list(k->c->a, fd, DEF_FILES_MAX, &entries, &err) != DEP_OK) return;
    for (vec_each(const dir_entry, e, &entries)) {
        bool owned = str_starts(e->name, S("."));
        for (vec_each(const agent_entry, a, &w->agents)) {
            str dir = memory_dir(k->c->a, MEMORY_PRIVATE, a->def.identity, str_z(layer_name(a->def.layer)));
            if (str_eq(path_base(dir), e->name)) owned = true;
        }
        if (owned) continue;
        diags d = diags_new(k->c->a);
        diags_add(&d, (diag){.severity = SEV_WARNING,
                             .code = "MEM002",
                             .file = str_fmt(k->c->a, ".deputy/agent-memory/" STR_FMT, STR_ARG(e->name)),
                             .msg = S("memory that no definition owns"),
                             .hint = S("rename it to its agent's new name, or remove it")});
        merge(k, &d);
    }
}

// A file that need not be in a layer: checked as a workspace definition.
static int check_file(checked *k, str file) {
    str bytes;
    dep_err err;
    definition def;
    diags d = diags_new(k->c->a);
    if (read_named(k->c, file, &bytes, &err) != DEP_OK) return fail(k->c, &err);
    if (definition_parse(k->c->a, file, path_base(file), LAYER_WORKSPACE, bytes, k->strict, &def, NULL, &d,
                         &err) != DEP_OK)
        return fail(k->c, &err);
    k->files++;
    grant g;
    host_opts o = {0};
    if (def.valid && workspace_grant(k->c->a, k->c->w, &def, role_of(&def), &o, &g, &d, &err) != DEP_OK)
        return fail(k->c, &err);
    merge(k, &d);
    return EXIT_FINE;
}

static void print_result(checked *k) {
    buf b = buf_new(k->c->a, 0);
    diags_sort(&k->all);
    if (k->c->json) {
        jw w = jw_new(&b);
        buf d = buf_new(k->c->a, 0);
        diags_json(&d, &k->all);
        jw_obj(&w);
        jw_kint(&w, S("files"), (int64_t)k->files);
        jw_kint(&w, S("errors"), (int64_t)k->all.errors);
        jw_kint(&w, S("warnings"), (int64_t)k->all.warnings);
        jw_key(&w, S("diagnostics"));
        jw_raw(&w, buf_str(&d));
        jw_end_obj(&w);
        buf_addc(&b, '\n');
        out_buf(&b);
        return;
    }
    diags_print(&b, &k->all, k->c->color_out);
    buf_addf(&b, "%zu file%s checked: %zu error%s, %zu warning%s\n", k->files, k->files == 1 ? "" : "s",
             k->all.errors, k->all.errors == 1 ? "" : "s", k->all.warnings, k->all.warnings == 1 ? "" : "s");
    out_buf(&b);
}

int verb_check(cli *c) {
    int code = need_agents(c);
    if (code) return code;
    checked k = {.c = c, .all = diags_new(c->a), .strict = opt_has(c, "strict")};
    dep_err err;
    for (vec_each(const str, name, &c->args)) {
        agent_entry *e = NULL;
        if (workspace_agent(c->w, *name, &e, &err) == DEP_OK || e) {
            check_entry(&k, e);
        } else if (looks_like_file(*name)) {
            code = check_file(&k, *name);
        } else {
            code = fail(c, &err);
        }
        if (code) return code;
    }
    if (!c->args.n) {
        merge(&k, &c->w->diags);
        for (vec_each(agent_entry, e, &c->w->agents))
            if (e->def.layer != LAYER_BUILTIN || opt_has(c, "all")) check_entry(&k, e);
        if (workspace_skills(c->w, &err) != DEP_OK) return fail(c, &err);
        merge(&k, &c->w->skill_diags);
        check_orphans(&k);
    }
    print_result(&k);
    return k.all.errors ? EXIT_ERRORS : EXIT_FINE;
}

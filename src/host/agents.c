// host: the definitions of all layers, and which of them is in effect. A nearer layer wins; one that is
// invalid, doubled, disabled or lost its trust keeps its name, so that no farther and perhaps wider one takes
// over silently (rule B10); one that was never trusted shadows nothing (rule B7).
//   DEF030 two files of one identity in a layer   DEF031 a file that cannot be read   DEF032 duplicate
//   description   DEF033 look-alike names
#include "host/host_int.h"
#include <deputy/assets.h>
#include <deputy/file.h>
#include <deputy/utf8.h>

const char *agent_state_name(agent_state s) {
    static const char *const names[] = {"effective", "shadowed", "invalid", "disabled", "untrusted"};
    return names[s];
}

static str switch_key(arena *a, def_layer layer, str identity) {
    return str_fmt(a, "switch:%s:" STR_FMT, layer_name(layer), STR_ARG(identity));
}

str workspace_switch(const workspace *w, def_layer layer, str identity) {
    str key = switch_key(w->a, layer, identity);
    for (vec_each(const setting, s, &w->settings))
        if (str_eq(s->key, key)) return s->value;
    return (str){0};
}

dep_status workspace_switch_set(workspace *w, def_layer layer, str identity, str value, dep_err *err) {
    // What is open may be open for reading only.
    store_close(w->store);
    w->store = NULL;
    TRY(workspace_store(w, false, err));
    return store_setting_set(w->store, switch_key(w->a, layer, identity), value, err);
}

static dep_status add_entry(workspace *w, def_layer layer, str file, str base, str bytes, str fault,
                            dep_err *err) {
    agent_entry e = {.diags = diags_new(w->a), .trust = TRUST_OK};
    if (fault.n) {
        diags_add(&e.diags, (diag){.severity = SEV_ERROR,
                                   .code = "DEF031",
                                   .file = file,
                                   .msg = fault,
                                   .hint = S("mend or remove the file")});
        str name = str_sub(base, 0, str_rchr(base, '.'));
        e.def = (definition){
            .file = file, .base = base, .layer = layer, .name = name, .identity = utf8_fold(w->a, name)};
        if (layer == LAYER_WORKSPACE) e.trust = trust_check(w->trust, file, S("-"), &e.old_reach);
    } else {
        TRY(definition_parse(w->a, file, base, layer, bytes, false, &e.def, &e.doc, &e.diags, err));
        if (layer == LAYER_WORKSPACE) e.trust = trust_check(w->trust, file, e.def.sha256, &e.old_reach);
    }
    vec_push(w->a, &w->agents, e);
    return DEP_OK;
}

static dep_status load_dir(workspace *w, def_layer layer, int fd, str shown, dep_err *err) {
    layer_files files;
    TRY(layer_read(w->a, fd, &files, err));
    for (vec_each(const layer_file, f, &files))
        TRY(add_entry(w, layer, path_join(w->a, shown, f->base), f->base, f->bytes, f->fault, err));
    return DEP_OK;
}

// The layer cannot be read: what was trusted in it keeps its names, as far as the names of the files tell.
static dep_status hold_names(workspace *w, const dep_err *why, dep_err *err) {
    const trust_entry *known;
    size_t n;
    trust_entries(w->trust, &known, &n);
    for (size_t i = 0; i < n; i++) {
        if (!str_starts(known[i].file, S(".deputy/agents/"))) continue;
        str file = str_dup(w->a, known[i].file);
        TRY(add_entry(w, LAYER_WORKSPACE, file, path_base(file), (str){0}, str_dup(w->a, str_z(why->msg)),
                      err));
    }
    return DEP_OK;
}

static dep_status load_layers(workspace *w, dep_err *err) {
    struct stat ws_st = {0}, sys_st = {0};
    dep_err why;
    str shown;
    int fd;
    dep_status st = workspace_layer_dir(w, LAYER_WORKSPACE, false, &fd, &shown, &why);
    if (st == DEP_OK) {
        fstat(fd, &ws_st);
        TRY(load_dir(w, LAYER_WORKSPACE, fd, shown, err));
    } else if (st != DEP_ERR_NOT_FOUND) {
        diags_add(&w->diags, (diag){.severity = SEV_ERROR,
                                    .code = "DEF031",
                                    .file = S(".deputy/agents"),
                                    .msg = str_dup(w->a, str_z(why.msg)),
                                    .hint = S("its definitions are not read")});
        TRY(hold_names(w, &why, err));
    }
    st = workspace_layer_dir(w, LAYER_SYSTEM, false, &fd, &shown, &why);
    if (st == DEP_OK) {
        fstat(fd, &sys_st);
        // One directory reached as two layers is read once, as the workspace's.
        if (!ws_st.st_ino || ws_st.st_ino != sys_st.st_ino || ws_st.st_dev != sys_st.st_dev)
            TRY(load_dir(w, LAYER_SYSTEM, fd, shown, err));
    } else if (st != DEP_ERR_NOT_FOUND) {
        diags_add(&w->diags, (diag){.severity = SEV_ERROR,
                                    .code = "DEF031",
                                    .file = shown,
                                    .msg = str_dup(w->a, str_z(why.msg)),
                                    .hint = S("its definitions are not read")});
    }
    size_t n;
    const asset *builtin = assets_agents(&n);
    for (size_t i = 0; i < n; i++)
        TRY(add_entry(w, LAYER_BUILTIN, str_fmt(w->a, "builtin:" STR_FMT, STR_ARG(builtin[i].path)),
                      builtin[i].path, builtin[i].bytes, (str){0}, err));
    return DEP_OK;
}

// --- States --------------------------------------------------------------------------------------

static void mark_duplicates(workspace *w) {
    for (vec_each(agent_entry, x, &w->agents)) {
        if (x->trust == TRUST_NEVER) continue;
        for (vec_each(agent_entry, y, &w->agents)) {
            if (y == x || y->def.layer != x->def.layer || y->trust == TRUST_NEVER ||
                !str_eq(x->def.identity, y->def.identity))
                continue;
            x->reason =
                str_fmt(w->a, "two files of this layer are called \"" STR_FMT "\": " STR_FMT " and " STR_FMT,
                        STR_ARG(x->def.name), STR_ARG(x->def.file), STR_ARG(y->def.file));
            diags_add(&x->diags,
                      (diag){.severity = SEV_ERROR,
                             .code = "DEF030",
                             .file = x->def.file,
                             .line = x->def.name_at.line,
                             .column = x->def.name_at.column,
                             .path = S("/name"),
                             .msg = x->reason,
                             .hint = S("rename or remove one of the two; until then neither is used")});
            x->def.valid = false;
        }
    }
}

static void decide_trust(workspace *w, agent_entry *e) {
    if (e->trust == TRUST_NEVER) {
        e->state = AGENT_UNTRUSTED;
        e->reason = utf8_valid(e->def.file)
                        ? S("never trusted; see and accept it with `deputy trust`")
                        : S("its file name is not UTF-8, so it cannot be trusted; rename the file");
        return;
    }
    e->holds_name = true;
    if (e->trust != TRUST_CHANGED) return;
    reach_diff diff;
    dep_err err;
    // Only a valid file has a reach that can be compared; what did not grow stays trusted.
    if (e->def.valid && e->old_reach.n &&
        reach_compare(w->a, e->old_reach, definition_reach(w->a, &e->def), &diff, &err) == DEP_OK &&
        !reach_grew(&diff)) {
        e->trust = TRUST_OK;
        return;
    }
    e->state = AGENT_UNTRUSTED;
    e->reason = e->def.valid
                    ? S("changed outside Deputy, and its reach grew; see the difference with `deputy trust`")
                    : S("changed outside Deputy since it was trusted; see it with `deputy trust`");
}

static void decide_state(workspace *w, agent_entry *e) {
    decide_trust(w, e);
    if (e->state == AGENT_UNTRUSTED) return;
    str sw = workspace_switch(w, e->def.layer, e->def.identity);
    if (str_eq(sw, S("off"))) {
        e->state = AGENT_DISABLED;
        e->reason = S("switched off; `deputy enable` switches it on");
    } else if (!e->def.valid) {
        e->state = AGENT_INVALID;
        if (!e->reason.n)
            e->reason = str_fmt(w->a, "%zu error%s; see `deputy check " STR_FMT "`", e->diags.errors,
                                e->diags.errors == 1 ? "" : "s", STR_ARG(e->def.name));
    } else {
        e->state = AGENT_EFFECTIVE;
    }
}

static void decide_shadows(workspace *w) {
    for (size_t i = 0; i < w->agents.n; i++) {
        agent_entry *e = &w->agents.p[i];
        for (size_t j = 0; j < i; j++) {
            const agent_entry *nearer = &w->agents.p[j];
            if (!nearer->holds_name || nearer->def.layer == e->def.layer ||
                !str_eq(nearer->def.identity, e->def.identity))
                continue;
            e->state = AGENT_SHADOWED;
            e->holds_name = false;
            e->shadowed_by = nearer->def.file;
            e->reason = str_fmt(w->a, "shadowed by " STR_FMT, STR_ARG(nearer->def.file));
            break;
        }
    }
}

void host_confusables(workspace *w) {
    str *skeletons = NEW_N(w->a, str, w->agents.n);
    for (size_t i = 0; i < w->agents.n; i++) skeletons[i] = name_skeleton(w->a, w->agents.p[i].def.identity);
    for (size_t i = 0; i < w->agents.n; i++) {
        agent_entry *e = &w->agents.p[i];
        if (name_mixed_scripts(e->def.identity))
            diags_add(&e->diags, (diag){.severity = SEV_WARNING,
                                        .code = "DEF033",
                                        .file = e->def.file,
                                        .line = e->def.name_at.line,
                                        .column = e->def.name_at.column,
                                        .msg = str_fmt(w->a, "the name \"" STR_FMT "\" mixes scripts",
                                                       STR_ARG(e->def.name)),
                                        .hint = S("use letters of one script")});
        for (size_t j = 0; j < i; j++) {
            agent_entry *first = &w->agents.p[j];
            if (first->trust == TRUST_NEVER || e->trust == TRUST_NEVER) continue;
            if (!str_eq(skeletons[i], skeletons[j]) || str_eq(e->def.identity, first->def.identity)) continue;
            const struct {
                agent_entry *at, *other;
            } both[] = {{first, e}, {e, first}};
            for (size_t k = 0; k < 2; k++)
                diags_add(
                    &both[k].at->diags,
                    (diag){.severity = SEV_WARNING,
                           .code = "DEF033",
                           .file = both[k].at->def.file,
                           .line = both[k].at->def.name_at.line,
                           .column = both[k].at->def.name_at.column,
                           .msg = str_fmt(w->a, "the name looks like \"" STR_FMT "\" (" STR_FMT ")",
                                          STR_ARG(both[k].other->def.name), STR_ARG(both[k].other->def.file)),
                           .hint = str_fmt(
                               w->a, "rename one; the later one is off until `deputy enable " STR_FMT "`",
                               STR_ARG(e->def.name))});
            if (e->state == AGENT_EFFECTIVE &&
                !str_eq(workspace_switch(w, e->def.layer, e->def.identity), S("on"))) {
                e->state = AGENT_DISABLED;
                e->reason = str_fmt(
                    w->a, "confusable: the name looks like \"" STR_FMT "\"; `deputy enable` switches it on",
                    STR_ARG(first->def.name));
            }
        }
    }
}

static void check_descriptions(workspace *w) {
    for (size_t i = 0; i < w->agents.n; i++) {
        agent_entry *e = &w->agents.p[i];
        for (size_t j = 0; j < i; j++) {
            const agent_entry *o = &w->agents.p[j];
            if (o->state != AGENT_EFFECTIVE || e->state != AGENT_EFFECTIVE || !e->def.description.n ||
                !str_eq(o->def.description, e->def.description))
                continue;
            diags_add(&e->diags, (diag){.severity = SEV_WARNING,
                                        .code = "DEF032",
                                        .file = e->def.file,
                                        .line = e->def.description_at.line,
                                        .column = e->def.description_at.column,
                                        .msg = str_fmt(w->a,
                                                       "the same description as " STR_FMT
                                                       ": a main agent cannot tell them apart",
                                                       STR_ARG(o->def.file)),
                                        .hint = S("say what each one is for")});
        }
    }
}

dep_status workspace_agents(workspace *w, dep_err *err) {
    if (w->agents_loaded) return DEP_OK;
    w->agents_loaded = true;
    dep_err why;
    if (workspace_store(w, true, &why) != DEP_OK) {
        diags_add(&w->diags, (diag){.severity = SEV_WARNING,
                                    .code = "STO001",
                                    .msg = str_fmt(w->a, "switches are not read: %s", why.msg)});
    } else if (w->store) {
        TRY(store_settings(w->a, w->store, S("switch:"), &w->settings, err));
    }
    TRY(load_layers(w, err));
    mark_duplicates(w);
    for (vec_each(agent_entry, e, &w->agents)) decide_state(w, e);
    decide_shadows(w);
    host_confusables(w);
    check_descriptions(w);
    return DEP_OK;
}

static dep_status refuse_holder(workspace *w, const agent_entry *e, dep_err *err) {
    const agent_entry *next = NULL;
    for (vec_each(const agent_entry, o, &w->agents))
        if (o != e && o->state == AGENT_SHADOWED && str_eq(o->def.identity, e->def.identity) &&
            o->def.valid) {
            next = o;
            break;
        }
    str other = next ? str_fmt(w->a,
                               "; the %s one (" STR_FMT ") can be had with `deputy copy " STR_FMT
                               " --to workspace --as NEW`, or by removing this file",
                               layer_name(next->def.layer), STR_ARG(next->def.file), STR_ARG(next->def.file))
                     : (str){0};
    return err_set(err, DEP_ERR_REFUSED, "\"" STR_FMT "\" (" STR_FMT ") is %s: " STR_FMT STR_FMT,
                   STR_ARG(e->def.name), STR_ARG(e->def.file), agent_state_name(e->state), STR_ARG(e->reason),
                   STR_ARG(other));
}

dep_status workspace_agent(workspace *w, str name, agent_entry **ret, dep_err *err) {
    TRY(workspace_agents(w, err));
    str identity = utf8_fold(w->a, str_trim(utf8_cut(name, 4 * DEF_NAME_BYTES)));
    agent_entry *found = NULL, *untrusted = NULL;
    for (vec_each(agent_entry, e, &w->agents)) {
        bool by_file =
            str_eq(name, e->def.file); // "builtin:explorer.yaml" or a path tells apart what a name cannot
        if (!by_file && !str_eq(e->def.identity, identity)) continue;
        if (by_file) {
            *ret = e;
            bool off = str_eq(workspace_switch(w, e->def.layer, e->def.identity), S("off"));
            return e->state == AGENT_EFFECTIVE || (e->state == AGENT_SHADOWED && e->def.valid && !off)
                       ? DEP_OK
                       : refuse_holder(w, e, err);
        }
        if (e->holds_name && !found) found = e;
        if (e->state == AGENT_UNTRUSTED && !untrusted) untrusted = e;
    }
    if (!found) found = untrusted;
    if (found) {
        *ret = found;
        return found->state == AGENT_EFFECTIVE ? DEP_OK : refuse_holder(w, found, err);
    }
    strs names = {0};
    for (vec_each(const agent_entry, e, &w->agents)) vec_push(w->a, &names, e->def.name);
    str near = nearest_name(name, names.p, names.n);
    if (near.n)
        return err_set(err, DEP_ERR_NOT_FOUND,
                       "there is no agent \"" STR_FMT "\"; did you mean \"" STR_FMT "\"?", STR_ARG(name),
                       STR_ARG(near));
    return err_set(err, DEP_ERR_NOT_FOUND, "there is no agent \"" STR_FMT "\"; `deputy agents` lists them",
                   STR_ARG(name));
}

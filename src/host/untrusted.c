// host: what of the workspace a person has not accepted: definitions, skills, config, memory. One row per
// file (rule B7).
#include "host/host_int.h"
#include <deputy/file.h>
#include <deputy/utf8.h>

static void push(workspace *w, const trust_list *list, untrusted_files *ret, const char *kind, str file,
                 str bytes, str reach, str summary) {
    str sha = sha256_hex(w->a, bytes), old = {0};
    trust_state st = trust_check(list, file, sha, &old);
    // What cannot be recorded stays untrusted, and must not keep the others from being accepted.
    if (st == TRUST_OK || !utf8_valid(file)) return;
    vec_push(w->a, ret,
             ((untrusted_file){.file = file,
                               .kind = str_z(kind),
                               .sha256 = sha,
                               .reach = reach,
                               .old_reach = old,
                               .summary = summary,
                               .state = st}));
}

static dep_status memory_untrusted(workspace *w, untrusted_files *ret, dep_err *err) {
    TRY(workspace_agents(w, err));
    strs done = {0};
    for (vec_each(const agent_entry, e, &w->agents)) {
        if (e->def.memory == DEF_MEMORY_NONE) continue;
        str dir = memory_dir(w->a, e->def.memory == DEF_MEMORY_SHARED ? MEMORY_SHARED : MEMORY_PRIVATE,
                             e->def.identity, str_z(layer_name(e->def.layer)));
        bool seen = false;
        for (vec_each(const str, s, &done)) seen |= str_eq(*s, dir);
        if (seen) continue;
        vec_push(w->a, &done, dir);
        memory_scope *scope = NULL;
        dep_err why;
        memory_files files = {0};
        if (workspace_memory(w->a, w, &e->def, false, &scope, &why) != DEP_OK || !scope) continue;
        if (memory_list(w->a, scope, &files, &why) != DEP_OK) continue;
        for (vec_each(const memory_file, f, &files)) {
            str bytes;
            if (!f->withheld.n || memory_read(w->a, scope, f->name, false, &bytes, &why) != DEP_OK) continue;
            push(w, w->memory_trust, ret, "memory", path_join(w->a, dir, f->name), bytes, (str){0},
                 str_fmt(w->a, "notes of " STR_FMT ", %zu bytes", STR_ARG(e->def.name), f->bytes));
        }
    }
    return DEP_OK;
}

dep_status workspace_untrusted(workspace *w, untrusted_files *ret, dep_err *err) {
    TRY(workspace_agents(w, err));
    for (vec_each(const agent_entry, e, &w->agents))
        if (e->def.layer == LAYER_WORKSPACE && e->def.text.n && e->trust != TRUST_OK)
            push(w, w->trust, ret, "definition", e->def.file, e->def.text,
                 e->def.valid ? definition_reach(w->a, &e->def) : (str){0}, e->def.description);
    str bytes;
    dep_err why;
    str config_file = S(".deputy/config.yaml");
    if (file_read_at(w->a, w->fd, config_file, FILE_NO_LINKS, CONFIG_FILE_MAX, &bytes, NULL, &why) == DEP_OK)
        push(w, w->trust, ret, "config", config_file, bytes, (str){0}, S("settings of the workspace"));
    TRY(workspace_skills(w, err));
    for (vec_each(const skill, s, &w->skills))
        if (s->withheld.n && s->sha256.n && utf8_valid(s->location))
            vec_push(w->a, ret,
                     ((untrusted_file){.file = s->location,
                                       .kind = S("skill"),
                                       .sha256 = s->sha256,
                                       .summary = s->description,
                                       .state = trust_check(w->trust, s->location, s->sha256, NULL)}));
    return memory_untrusted(w, ret, err);
}

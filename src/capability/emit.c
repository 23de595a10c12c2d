// capability: grant and report as JSON.
#include <deputy/capability.h>
#include <deputy/json.h>

void grant_names_json(jw *w, str key, const grant *g, bool deferred) {
    jw_key(w, key);
    jw_arr(w);
    for (vec_each(const grant_tool, t, &g->tools))
        if (t->deferred == deferred) jw_str(w, str_z(t->spec->name));
    jw_end_arr(w);
}

void grant_json(buf *out, const grant *g) {
    jw w = jw_new(out);
    jw_obj(&w);
    grant_names_json(&w, S("tools"), g, false);
    grant_names_json(&w, S("deferred"), g, true);
    jw_key(&w, S("skills"));
    jw_arr(&w);
    for (vec_each(const host_skill, s, &g->skills)) jw_str(&w, s->name);
    jw_end_arr(&w);
    jw_key(&w, S("servers"));
    jw_arr(&w);
    for (vec_each(const host_server, s, &g->servers)) jw_str(&w, s->name);
    jw_end_arr(&w);
    jw_key(&w, S("sources"));
    jw_arr(&w);
    for (size_t i = 0; i < g->sources.n; i++) {
        jw_obj(&w);
        jw_kstr(&w, S("name"), g->sources.p[i].name);
        jw_key(&w, S("path"));
        jw_arr(&w);
        for (vec_each(const str, p, &g->sources.p[i].path)) jw_str(&w, *p);
        jw_end_arr(&w);
        if (g->source_files) jw_kint(&w, S("files"), (int64_t)g->source_files[i]);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    jw_kstr(&w, S("memory"), str_z(memory_word(g->memory)));
    jw_end_obj(&w);
}

void place_json(jw *w, def_place at) {
    jw_key(w, S("at"));
    if (!at.line) {
        jw_null(w);
        return;
    }
    jw_obj(w);
    jw_kstr(w, S("file"), at.file);
    jw_kint(w, S("line"), at.line);
    jw_kint(w, S("column"), at.column);
    jw_end_obj(w);
}

void report_json(buf *out, const grant *g) {
    jw w = jw_new(out);
    jw_arr(&w);
    for (vec_each(const report_row, r, &g->report)) {
        jw_obj(&w);
        jw_kstr(&w, S("dimension"), str_z(r->dimension));
        jw_kstr(&w, S("name"), r->name);
        jw_kstr(&w, S("state"), str_z(item_state_name(r->state)));
        jw_kstr(&w, S("reason"), r->reason);
        place_json(&w, r->at);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
}

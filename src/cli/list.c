// cli: agents. One line per definition, nearest layer first; what is not in effect says why.
#include "cli/cli_int.h"

// What an effective one gets, for the listing; nothing when it cannot be resolved.
static void reach_json(cli *c, jw *w, const agent_entry *e) {
    grant g;
    prompt p;
    dep_err err;
    diags d = diags_new(c->a);
    host_opts o = {.memory_block = true};
    if (e->state != AGENT_EFFECTIVE) return;
    if (workspace_grant(c->a, c->w, &e->def, role_of(&e->def), &o, &g, &d, &err) != DEP_OK ||
        assemble(c->a, &g, &p, &err) != DEP_OK)
        return;
    grant_names_json(w, S("tools"), &g, false);
    grant_names_json(w, S("deferred"), &g, true);
    jw_key(w, S("gates"));
    jw_arr(w);
    for (vec_each(const gate, x, &g.gates)) jw_str(w, gate_label(c->a, x));
    jw_end_arr(w);
    jw_kint(w, S("sources"), (int64_t)e->def.sources.n);
    jw_kstr(w, S("memory"), str_z(memory_word(e->def.memory)));
    jw_kint(w, S("prompt_bytes"), (int64_t)p.text.n);
}

static void entry_json(cli *c, jw *w, agent_entry *e) {
    jw_obj(w);
    jw_kstr(w, S("name"), e->def.name);
    // A program reads this: the label of a file that nobody has accepted is not for it (rule B7).
    jw_kstr(w, S("description"), e->state == AGENT_UNTRUSTED ? (str){0} : e->def.description);
    jw_kstr(w, S("layer"), str_z(layer_name(e->def.layer)));
    jw_kstr(w, S("file"), e->def.file);
    jw_kstr(w, S("state"), str_z(agent_state_name(e->state)));
    if (e->reason.n) jw_kstr(w, S("reason"), e->reason);
    if (e->shadowed_by.n) jw_kstr(w, S("shadowed_by"), e->shadowed_by);
    reach_json(c, w, e);
    jw_key(w, S("diagnostics"));
    buf d = buf_new(c->a, 0);
    diags_json(&d, &e->diags);
    jw_raw(w, buf_str(&d));
    jw_end_obj(w);
}

static void entry_line(cli *c, buf *b, const agent_entry *e) {
    static const char *const sgr[] = {"32", "2", "31", "33", "33"};
    cell(b, e->def.name, 20);
    text(b, "  ");
    buf state = buf_new(c->a, 0);
    cell(&state, str_z(agent_state_name(e->state)), 9);
    paint(b, c->color_out, sgr[e->state], buf_str(&state));
    text(b, "  ");
    cell(b, str_z(layer_name(e->def.layer)), 9);
    text(b, "  ");
    if (e->state == AGENT_EFFECTIVE) {
        brief(b, e->def.description, 90);
    } else {
        safe(b, e->reason);
    }
    text(b, "\n");
}

int verb_agents(cli *c) {
    int code = need_agents(c);
    if (code) return code;
    bool all = opt_has(c, "all");
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    size_t hidden = 0, bad = 0;
    if (c->json) jw_arr(&w);
    for (vec_each(agent_entry, e, &c->w->agents)) {
        if (e->diags.errors || e->diags.warnings) bad++;
        if (e->state == AGENT_SHADOWED && !all && !c->json) {
            hidden++;
            continue;
        }
        if (c->json) {
            entry_json(c, &w, e);
        } else {
            entry_line(c, &b, e);
        }
    }
    if (c->json) jw_end_arr(&w);
    if (c->json) buf_addc(&b, '\n');
    if (hidden) buf_addf(&b, "%zu shadowed: see --all\n", hidden);
    out_buf(&b);
    print_diags(c, &c->w->diags);
    if (bad && !c->json)
        say(c, "%zu definition%s with something to mend: see `deputy check`", bad, bad == 1 ? "" : "s");
    return EXIT_FINE;
}

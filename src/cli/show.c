// cli: show, explain and diff: what a definition gets here, which rule decided it, and how two of them
// differ.
#include "cli/cli_int.h"
#include <deputy/file.h>

static int grant_of(cli *c, agent_entry *e, grant *g, diags *d) {
    dep_err err;
    agent_role role;
    if (!opt_role(c, &e->def, &role)) return EXIT_USAGE;
    host_opts o = {.count_sources = true, .memory_block = true};
    *d = diags_new(c->a);
    return workspace_grant(c->a, c->w, &e->def, role, &o, g, d, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

static void axis_json(jw *w, str key, const grant_axis *axis) {
    jw_key(w, key);
    if (!axis->bounded) {
        jw_null(w);
        return;
    }
    jw_arr(w);
    for (vec_each(const str, p, &axis->prefixes)) jw_str(w, *p);
    jw_end_arr(w);
}

static void show_json(cli *c, const agent_entry *e, const grant *g) {
    buf b = buf_new(c->a, 0), part = buf_new(c->a, 0);
    jw w = jw_new(&b);
    jw_obj(&w);
    jw_key(&w, S("definition"));
    if (e->doc && e->doc->root) {
        yaml_to_json(&part, e->doc->root);
        jw_raw(&w, buf_str(&part));
    } else {
        jw_null(&w);
    }
    jw_kstr(&w, S("name"), e->def.name);
    jw_kstr(&w, S("layer"), str_z(layer_name(e->def.layer)));
    jw_kstr(&w, S("file"), e->def.file);
    jw_kstr(&w, S("state"), str_z(agent_state_name(e->state)));
    jw_kstr(&w, S("reason"), e->reason);
    jw_kstr(&w, S("definition_hash"), e->def.sha256);
    jw_kstr(&w, S("role"), str_z(role_name(g->role)));
    buf_clear(&part);
    grant_json(&part, g);
    jw_key(&w, S("grant"));
    jw_raw(&w, buf_str(&part));
    buf_clear(&part);
    report_json(&part, g);
    jw_key(&w, S("report"));
    jw_raw(&w, buf_str(&part));
    jw_key(&w, S("gates"));
    jw_arr(&w);
    for (vec_each(const gate, x, &g->gates)) {
        jw_obj(&w);
        jw_kstr(&w, S("gate"), x->text);
        jw_kstr(&w, S("list"), x->review ? S("review") : S("confirm"));
        jw_kstr(&w, S("origin"), x->origin);
        jw_kstr(&w, S("file"), x->file);
        jw_kint(&w, S("line"), x->line);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    jw_key(&w, S("permissions"));
    jw_obj(&w);
    axis_json(&w, S("read"), &g->read);
    axis_json(&w, S("write"), &g->write);
    axis_json(&w, S("run"), &g->run);
    axis_json(&w, S("net"), &g->net);
    jw_end_obj(&w);
    jw_kstr(&w, S("level"), S("confirm"));
    jw_kstr(&w, S("model"), g->model);
    jw_kstr(&w, S("model_origin"), g->model_origin);
    jw_key(&w, S("budgets"));
    jw_obj(&w);
    limit_json(&w, S("turns"), g->turns);
    limit_json(&w, S("minutes"), g->minutes);
    limit_json(&w, S("tokens"), g->tokens);
    cost_json(c->a, &w, g->cost_micro);
    jw_end_obj(&w);
    jw_kstr(&w, S("refusal"), g->refusal);
    jw_end_obj(&w);
    buf_addc(&b, '\n');
    out_buf(&b);
}

static void place(buf *b, def_place at) {
    if (!at.line) return;
    text(b, "  (");
    safe(b, at.file);
    buf_addf(b, ":%u)", at.line);
}

static void row_line(cli *c, buf *b, const report_row *r) {
    static const char *const sgr[] = {"32", "36", "33", "33", "33", "36", "33", "31"};
    text(b, "  ");
    cell(b, str_z(r->dimension), 10);
    cell(b, r->name, 24);
    buf state = buf_new(c->a, 0);
    cell(&state, str_z(item_state_name(r->state)), 12);
    paint(b, c->color_out, sgr[r->state], buf_str(&state));
    safe(b, r->reason);
    place(b, r->at);
    text(b, "\n");
}

static void axis_line(cli *c, buf *b, const char *name, const grant_axis *axis) {
    buf_addf(b, "  %-6s", name);
    safe(b, axis->bounded ? str_join(c->a, axis->prefixes.p, axis->prefixes.n, S(", "))
                          : S("(no block: the workspace)"));
    text(b, axis->bounded && !axis->prefixes.n ? "nothing\n" : "\n");
}

static void limit_text(buf *b, int64_t v, const char *unit) {
    if (v < CONFIG_UNLIMITED) {
        buf_addf(b, "%lld%s", (long long)v, unit);
    } else {
        buf_addf(b, "unlimited%s", unit);
    }
}

static void show_text(cli *c, const agent_entry *e, const grant *g) {
    buf b = buf_new(c->a, 0);
    paint(&b, c->color_out, "1", e->def.name);
    buf_addf(&b, "  (%s, ", layer_name(e->def.layer));
    safe(&b, e->def.file);
    buf_addf(&b, ", %s", agent_state_name(e->state));
    if (e->reason.n) text(&b, ": "), safe(&b, e->reason);
    text(&b, ")\n");
    safe(&b, e->def.description);
    buf_addf(&b, "\n\nmodel   ");
    safe(&b, g->model);
    text(&b, "  from ");
    safe(&b, g->model_origin);
    buf_addf(&b, "\nlevel   confirm, role %s\nbudgets ", role_name(g->role));
    limit_text(&b, g->turns, " turns, ");
    limit_text(&b, g->minutes, " minutes, ");
    limit_text(&b, g->tokens, " tokens");
    if (g->cost_micro) buf_addf(&b, ", cost " STR_FMT, STR_ARG(config_amount(c->a, g->cost_micro)));
    text(&b, "\n\nwhat is in effect, and what is not:\n");
    for (vec_each(const report_row, r, &g->report)) row_line(c, &b, r);
    if (!g->report.n) text(&b, "  nothing is declared\n");
    text(&b, "\npermissions:\n");
    axis_line(c, &b, "read", &g->read);
    axis_line(c, &b, "write", &g->write);
    axis_line(c, &b, "run", &g->run);
    axis_line(c, &b, "net", &g->net);
    text(&b, "\ngates:\n");
    for (vec_each(const gate, x, &g->gates))
        text(&b, "  "), safe(&b, gate_label(c->a, x)), buf_addf(&b, ", " STR_FMT "\n", STR_ARG(x->origin));
    if (!g->gates.n) text(&b, "  none beside the level's own\n");
    if (g->refusal.n) {
        text(&b, "\nit does not start: ");
        safe(&b, g->refusal);
        text(&b, "\n");
    }
    out_buf(&b);
}

int verb_show(cli *c) {
    agent_entry *e;
    grant g;
    diags d;
    int code = find_agent(c, arg(c, 0), &e);
    if (code) return code;
    if ((code = grant_of(c, e, &g, &d))) return code;
    if (c->json) {
        show_json(c, e, &g);
    } else {
        show_text(c, e, &g);
    }
    print_diags(c, &e->diags);
    print_diags(c, &d);
    return EXIT_FINE;
}

// --- explain -------------------------------------------------------------------------------------

static bool in_effect(const report_row *r) {
    return r->state == ITEM_GRANTED;
}

static void explain_json(jw *w, const report_row *r) {
    jw_obj(w);
    jw_kstr(w, S("item"), r->name);
    jw_kstr(w, S("dimension"), str_z(r->dimension));
    jw_kstr(w, S("state"), str_z(item_state_name(r->state)));
    jw_kstr(w, S("reason"), r->reason);
    jw_key(w, S("rules"));
    jw_arr(w);
    for (vec_each(const item_rule, rule, &r->rules)) {
        jw_obj(w);
        jw_kstr(w, S("rule"), rule->rule);
        jw_kstr(w, S("effect"), rule->effect);
        place_json(w, rule->at);
        jw_end_obj(w);
    }
    jw_end_arr(w);
    jw_end_obj(w);
}

static void explain_text(cli *c, buf *b, const report_row *r) {
    row_line(c, b, r);
    for (vec_each(const item_rule, rule, &r->rules)) {
        text(b, "      ");
        safe(b, rule->effect);
        text(b, ": ");
        safe(b, rule->rule);
        place(b, rule->at);
        text(b, "\n");
    }
}

// A name that no row has: undeclared, and what would declare it.
static report_row undeclared(cli *c, str item) {
    const tool_spec *t = toolspec_find(item);
    report_row r = {.dimension = t ? "tools" : "-",
                    .name = item,
                    .state = ITEM_MISSING,
                    .reason = S("not declared, so not reachable")};
    if (!t) return r;
    str how = t->flags & TOOL_GRANTABLE   ? str_fmt(c->a, "`tools` does not list %s", t->name)
              : t->flags & TOOL_DIMENSION ? str_fmt(c->a, "the dimension `%s` is not declared", t->group)
              : t->flags & TOOL_MAIN      ? S("only role main has it")
                                          : S("nothing is deferred");
    vec_push(c->a, &r.rules, ((item_rule){.rule = how, .effect = S("leaves it out")}));
    return r;
}

int verb_explain(cli *c) {
    agent_entry *e;
    grant g;
    diags d;
    int code = find_agent(c, arg(c, 0), &e);
    if (code) return code;
    if ((code = grant_of(c, e, &g, &d))) return code;
    str item = arg(c, 1);
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    size_t n = 0;
    if (c->json) jw_obj(&w), jw_key(&w, S("items")), jw_arr(&w);
    report_row extra = undeclared(c, item);
    for (size_t i = 0; i <= g.report.n; i++) {
        const report_row *r = i < g.report.n ? &g.report.p[i] : &extra;
        bool wanted = i == g.report.n ? item.n && !n : item.n ? str_ieq(r->name, item) : !in_effect(r);
        if (!wanted) continue;
        n++;
        if (c->json) {
            explain_json(&w, r);
        } else {
            explain_text(c, &b, r);
        }
    }
    if (c->json) jw_end_arr(&w), jw_end_obj(&w), buf_addc(&b, '\n');
    if (!c->json && !n) text(&b, "everything that is declared is in effect\n");
    out_buf(&b);
    print_diags(c, &d);
    return EXIT_FINE;
}

// --- diff ----------------------------------------------------------------------------------------

static int reach_of(cli *c, str name, str *reach) {
    agent_entry *e = NULL;
    dep_err err;
    if (workspace_agent(c->w, name, &e, &err) != DEP_OK && !e) {
        str bytes;
        dep_err file_err;
        definition def;
        diags d = diags_new(c->a);
        if (read_named(c, name, &bytes, &file_err) != DEP_OK)
            return fail(c, file_err.status == DEP_ERR_NOT_FOUND ? &err : &file_err);
        if (definition_parse(c->a, name, path_base(name), LAYER_WORKSPACE, bytes, false, &def, NULL, &d,
                             &err) != DEP_OK)
            return fail(c, &err);
        print_diags(c, &d);
        if (!def.valid) return EXIT_ERRORS;
        *reach = definition_reach(c->a, &def);
        return EXIT_FINE;
    }
    if (!e->def.valid) {
        print_diags(c, &e->diags);
        return EXIT_ERRORS;
    }
    *reach = definition_reach(c->a, &e->def);
    return EXIT_FINE;
}

static void diff_list(cli *c, buf *b, jw *w, const char *key, const char *mark, const char *sgr,
                      const strs *items) {
    if (c->json) {
        jw_key(w, str_z(key));
        jw_arr(w);
        for (vec_each(const str, s, items)) jw_str(w, *s);
        jw_end_arr(w);
        return;
    }
    for (vec_each(const str, s, items))
        paint(b, c->color_out, sgr, str_fmt(c->a, "%s " STR_FMT, mark, STR_ARG(*s))), text(b, "\n");
}

int verb_diff(cli *c) {
    str from = {0}, to = {0};
    reach_diff d;
    dep_err err;
    int code = need_agents(c);
    if (code) return code;
    if ((code = reach_of(c, arg(c, 0), &from))) return code;
    if ((code = reach_of(c, arg(c, 1), &to))) return code;
    if (reach_compare(c->a, from, to, &d, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_obj(&w);
    diff_list(c, &b, &w, "gained", "+", "33", &d.gained);
    diff_list(c, &b, &w, "lost", "-", "32", &d.lost);
    diff_list(c, &b, &w, "gates_gained", "+ gate:", "32", &d.gates_gained);
    diff_list(c, &b, &w, "gates_lost", "- gate:", "33", &d.gates_lost);
    if (c->json) jw_end_obj(&w), buf_addc(&b, '\n');
    if (!c->json && !b.n) text(&b, "the same reach\n");
    out_buf(&b);
    return reach_grew(&d) ? EXIT_ERRORS : EXIT_FINE;
}

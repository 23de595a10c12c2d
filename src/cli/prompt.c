// cli: prompt, tools and schema: exact bytes for programs and golden files.
#include "cli/cli_int.h"
#include "cli/schema_report.h"
#include <deputy/config.h>
#include <deputy/prompt.h>

// The grant of a sound, trusted definition, also of one that is off: nothing that is not trusted is shown as
// a prompt (rule B7).
static int resolved(cli *c, agent_entry **e, grant *g) {
    int code = find_agent(c, arg(c, 0), e);
    if (code) return code;
    agent_role role;
    if (!opt_role(c, &(*e)->def, &role)) return EXIT_USAGE;
    diags d = diags_new(c->a);
    dep_err err;
    host_opts o = {.memory_block = true};
    if (workspace_grant(c->a, c->w, &(*e)->def, role, &o, g, &d, &err) != DEP_OK) return fail(c, &err);
    print_diags(c, &d);
    if (!(*e)->def.valid) {
        print_diags(c, &(*e)->diags);
        return EXIT_ERRORS;
    }
    return (*e)->state == AGENT_UNTRUSTED ? need_agent(c, arg(c, 0), e) : EXIT_FINE;
}

static void parts_out(cli *c, const prompt *p) {
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_arr(&w);
    for (size_t i = 0; i < p->n_parts; i++) {
        const prompt_part *part = &p->parts[i];
        if (!c->json) {
            buf_addf(&b, "%-10s offset %6zu  bytes %6zu  about %5zu tokens\n", part->name, part->offset,
                     part->bytes, part->tokens);
            continue;
        }
        jw_obj(&w);
        jw_kstr(&w, S("part"), str_z(part->name));
        jw_kint(&w, S("offset"), (int64_t)part->offset);
        jw_kint(&w, S("bytes"), (int64_t)part->bytes);
        jw_kint(&w, S("tokens"), (int64_t)part->tokens);
        jw_end_obj(&w);
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    out_buf(&b);
}

int verb_prompt(cli *c) {
    agent_entry *e;
    grant g = {0};
    prompt p;
    dep_err err;
    int code = resolved(c, &e, &g);
    if (code) return code;
    if (assemble(c->a, &g, &p, &err) != DEP_OK) return fail(c, &err);
    if (opt_has(c, "parts")) {
        parts_out(c, &p);
    } else if (c->json) {
        buf b = buf_new(c->a, 0);
        json_quote(&b, p.text);
        buf_addc(&b, '\n');
        out_buf(&b);
    } else {
        out_exact(p.text);
    }
    return EXIT_FINE;
}

// --- tools ---------------------------------------------------------------------------------------

static bool holds(const agent_entry *e, const tool_spec *t) {
    if (e->state != AGENT_EFFECTIVE) return false;
    const definition *def = &e->def;
    for (size_t i = 0; i < def->n_tools; i++)
        if (def->tools[i].tool == t) return true;
    str group = str_z(t->group);
    return (str_eq(group, S("knowledge")) && def->sources.n) || (str_eq(group, S("memory")) && def->memory) ||
           (str_eq(group, S("mcp")) && def->has_mcp) || (str_eq(group, S("skills")) && def->skills.n);
}

static int catalogue(cli *c) {
    int code = need_agents(c);
    if (code) return code;
    size_t n;
    const tool_spec *all = toolspec_all(&n);
    const bool *bodies = tools_bodies();
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        strs held = {0};
        for (vec_each(const agent_entry, e, &c->w->agents))
            if (holds(e, &all[i])) vec_push(c->a, &held, e->def.name);
        if (c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("name"), str_z(all[i].name));
            jw_kstr(&w, S("group"), str_z(all[i].group));
            jw_kstr(&w, S("axis"), str_z(axis_name(all[i].axis)));
            jw_kbool(&w, S("grantable"), all[i].flags & TOOL_GRANTABLE);
            jw_kbool(&w, S("here"), bodies[i]);
            jw_kstr(&w, S("description"), str_z(all[i].description));
            jw_key(&w, S("held_by"));
            jw_arr(&w);
            for (vec_each(const str, s, &held)) jw_str(&w, *s);
            jw_end_arr(&w);
            jw_end_obj(&w);
            continue;
        }
        cell(&b, str_z(all[i].name), 16);
        cell(&b, str_z(all[i].group), 12);
        cell(&b, bodies[i] ? S("here") : S("not yet"), 9);
        safe(&b, held.n ? str_join(c->a, held.p, held.n, S(", ")) : S("(nobody)"));
        text(&b, "\n");
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    out_buf(&b);
    return EXIT_FINE;
}

int verb_tools(cli *c) {
    if (!c->args.n) return catalogue(c);
    agent_entry *e;
    grant g = {0};
    offered_tools offered = {0};
    int code = resolved(c, &e, &g);
    if (code) return code;
    prompt_tools(c->a, &g, NULL, &offered);
    model_tool *tools = NEW_N(c->a, model_tool, offered.n);
    for (size_t i = 0; i < offered.n; i++)
        tools[i] = (model_tool){offered.p[i].name, offered.p[i].description, offered.p[i].schema};
    str provider = {0}, rest = {0}, api = opt_get(c, "api", (str){0});
    if (!api.n) {
        str_cut(g.model, '/', &provider, &rest);
        const config_provider *p = config_provider_get(&c->w->config, provider);
        api = p ? p->api : S("anthropic");
    }
    str json_text = model_tools_json(c->a, api, tools, offered.n);
    if (!json_text.n)
        return usage_error(c,
                           "there is no API \"" STR_FMT "\"; there are anthropic, openai, openai-responses",
                           STR_ARG(api));
    out_exact(json_text);
    out_exact(S("\n"));
    return EXIT_FINE;
}

// --- schema --------------------------------------------------------------------------------------

int verb_schema(cli *c) {
    str what = c->args.n ? arg(c, 0) : S("definition");
    const key_table *t = str_eq(what, S("definition")) ? definition_keys()
                         : str_eq(what, S("config"))   ? config_keys()
                         : str_eq(what, S("skill"))    ? skill_keys()
                                                       : NULL;
    buf b = buf_new(c->a, 0);
    if (str_eq(what, S("report")) && !opt_has(c, "reference")) {
        out_exact(str_z(schema_report));
        return EXIT_FINE;
    }
    if (!t)
        return usage_error(c,
                           "there is no schema \"" STR_FMT "\"; there are definition, config, skill, report",
                           STR_ARG(what));
    if (opt_has(c, "reference")) {
        keytab_reference(&b, t);
    } else {
        keytab_schema(&b, t);
    }
    out_buf(&b);
    return EXIT_FINE;
}

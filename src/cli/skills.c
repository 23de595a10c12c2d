// cli: skills. Every folder that was found, the winner of each name, and what holds the others back.
#include "cli/cli_int.h"

static const char *const layers[] = {"workspace", "workspace-ecosystem", "system", "user-ecosystem",
                                     "plugin"};

int verb_skills(cli *c) {
    dep_err err;
    int code = need_workspace(c, false);
    if (code) return code;
    if (workspace_skills(c->w, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    if (c->json) jw_arr(&w);
    for (vec_each(const skill, s, &c->w->skills)) {
        str why = s->withheld.n      ? s->withheld
                  : s->shadowed_by.n ? str_fmt(c->a, "shadowed by " STR_FMT, STR_ARG(s->shadowed_by))
                                     : (str){0};
        if (c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("name"), s->name);
            jw_kstr(&w, S("description"), s->withheld.n ? (str){0} : s->description);
            jw_kstr(&w, S("layer"), str_z(layers[s->layer]));
            jw_kstr(&w, S("location"), s->location);
            jw_kstr(&w, S("not_in_effect"), why);
            jw_kstr(&w, S("grants_nothing"), s->grants_nothing);
            jw_end_obj(&w);
            continue;
        }
        cell(&b, s->name, 24), text(&b, " "), cell(&b, str_z(layers[s->layer]), 20);
        if (why.n) {
            safe(&b, why);
        } else {
            brief(&b, s->description, 80);
        }
        if (s->grants_nothing.n) text(&b, "  (grants nothing: "), safe(&b, s->grants_nothing), text(&b, ")");
        text(&b, "\n");
    }
    if (c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    if (!c->json && !c->w->skills.n)
        text(&b, "no skills here: a skill is a folder with a SKILL.md below .deputy/skills\n");
    out_buf(&b);
    print_diags(c, &c->w->skill_diags);
    return EXIT_FINE;
}

// grant_fixture: see the header.
#include "support/grant_fixture.h"
#include <string.h>

#define HEAD "name: x\ndescription: d\nprompt: p\n"

// A host that has every tool and nothing else.
static host full_host(void) {
    host h = {.workspace = S("/workspace"),
              .turns = 60,
              .minutes = 30,
              .tokens = 2000000,
              .tool_bytes = 1000,
              .run_bytes = 2000,
              .default_model = S("quote/passages"),
              .default_model_origin = S("the built-in default")};
    size_t n;
    toolspec_all(&n);
    for (size_t i = 0; i < n; i++) h.tools[i] = true;
    return h;
}

resolved grant_start(void) {
    resolved r = {.a = arena_new(), .h = full_host()};
    r.d = diags_new(r.a);
    vec_push(r.a, &r.h.models, S("quote"));
    return r;
}

void grant_parse(resolved *r, def_layer layer, str tail) {
    dep_err err;
    diags d = diags_new(r->a);
    str text = str_fmt(r->a, HEAD STR_FMT, STR_ARG(tail));
    assert_int_equal(
        definition_parse(r->a, S("x.yaml"), S("x.yaml"), layer, text, false, &r->def, NULL, &d, &err),
        DEP_OK);
    for (vec_each(const diag, it, &d.items))
        if (it->severity == SEV_ERROR) fail_msg(STR_FMT "\n" STR_FMT, STR_ARG(it->msg), STR_ARG(text));
}

void grant_resolve(resolved *r, agent_role role) {
    dep_err err;
    assert_int_equal(resolve(r->a, &r->def, &r->h, role, &r->g, &r->d, &err), DEP_OK);
}

resolved grant_on_full(const char *tail) {
    resolved r = grant_start();
    grant_parse(&r, LAYER_WORKSPACE, str_z(tail));
    grant_resolve(&r, ROLE_DELEGATE);
    return r;
}

// Tools in order: "read", "-read" when deferred, "read!" when it asks first.
str grant_tools_text(resolved *r) {
    buf b = buf_new(r->a, 0);
    for (vec_each(const grant_tool, t, &r->g.tools))
        buf_addf(&b, "%s%s%s%s", b.n ? " " : "", t->deferred ? "-" : "", t->spec->name, t->gated ? "!" : "");
    return buf_str(&b);
}

void assert_tools(resolved *r, const char *want) {
    str got = grant_tools_text(r);
    if (!str_eq(got, str_z(want))) fail_msg("want: %s\ngot:  " STR_FMT, want, STR_ARG(got));
}

const report_row *grant_row(const resolved *r, const char *dimension, const char *name) {
    for (vec_each(const report_row, x, &r->g.report))
        if (strcmp(x->dimension, dimension) == 0 && str_eq(x->name, str_z(name))) return x;
    return NULL;
}

void assert_row(const resolved *r, const char *dimension, const char *name, item_state state,
                const char *says) {
    const report_row *x = grant_row(r, dimension, name);
    if (!x) fail_msg("no row %s %s", dimension, name);
    if (x->state != state || str_find(x->reason, str_z(says)) == SIZE_MAX)
        fail_msg("%s %s: %s, " STR_FMT, dimension, name, item_state_name(x->state), STR_ARG(x->reason));
}

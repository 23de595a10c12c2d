// tools: the ones without a world of their own: the loaders (the run loop knows what is loaded) and the list
// of steps.
#include "tools/tools_int.h"
#include <deputy/utf8.h>

dep_status tool_available_tools(tool_ctx *c, dep_err *err) {
    (void)err;
    c->env->available(c->env->ctx, c->out);
    return DEP_OK;
}

dep_status tool_load_tools(tool_ctx *c, dep_err *err) {
    return c->env->load(c->env->ctx, json_str(c->args, S("name"), (str){0}), c->out, err);
}

dep_status tool_todo(tool_ctx *c, dep_err *err) {
    (void)err;
    const json *items = json_get(c->args, S("items"));
    c->t->todo = str_dup(c->t->a, items->raw);
    for (const json *e = items->child; e; e = e->next) {
        str state = json_str(e, S("state"), (str){0});
        buf_add(c->out, str_eq(state, S("done"))    ? S("[x] ")
                        : str_eq(state, S("doing")) ? S("[>] ")
                                                    : S("[ ] "));
        foreign_add(c->out, json_str(e, S("text"), (str){0}), FOREIGN_LINE, 500);
        buf_addc(c->out, '\n');
    }
    if (!items->count) buf_add(c->out, S("The list is empty.\n"));
    return DEP_OK;
}

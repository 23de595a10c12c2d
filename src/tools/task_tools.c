// tools: the quartet of a main agent and read_result. What a task is, the run loop knows; here are only the
// arguments.
#include "tools/tools_int.h"
#include <deputy/utf8.h>

static dep_status missing(const tool_ctx *c, dep_err *err) {
    return err_set(err, DEP_ERR_REFUSED, "%s is not available in this run", c->tool->spec->name);
}

dep_status tool_task(tool_ctx *c, dep_err *err) {
    if (!c->env->task) return missing(c, err);
    tool_task_order o = {.agent = json_str(c->args, S("agent"), (str){0}),
                         .task = json_str(c->args, S("task"), (str){0}),
                         .description = json_str(c->args, S("description"), (str){0}),
                         .model = json_str(c->args, S("model"), (str){0}),
                         .resume = json_str(c->args, S("resume"), (str){0}),
                         .background = json_bool(c->args, S("background"), false)};
    return c->env->task(c->env->ctx, &o, c->out, err);
}

static void take_ids(const tool_ctx *c, strs *ret) {
    const json *ids = json_get(c->args, S("ids"));
    for (const json *id = ids ? ids->child : NULL; id; id = id->next) vec_push(c->turn, ret, id->s);
}

dep_status tool_task_wait(tool_ctx *c, dep_err *err) {
    if (!c->env->task_wait) return missing(c, err);
    strs ids = {0};
    take_ids(c, &ids);
    bool any = str_eq(json_str(c->args, S("mode"), (str){0}), S("any"));
    int64_t seconds = (int64_t)json_num(c->args, S("timeoutSeconds"), TOOL_WAIT_SECONDS);
    return c->env->task_wait(c->env->ctx, &ids, any, seconds * 1000, c->out, err);
}

dep_status tool_task_list(tool_ctx *c, dep_err *err) {
    return c->env->task_list ? c->env->task_list(c->env->ctx, c->out, err) : missing(c, err);
}

dep_status tool_task_stop(tool_ctx *c, dep_err *err) {
    if (!c->env->task_stop) return missing(c, err);
    strs ids = {0};
    take_ids(c, &ids);
    return c->env->task_stop(c->env->ctx, &ids, c->out, err);
}

dep_status tool_read_result(tool_ctx *c, dep_err *err) {
    if (!c->env->read_result) return missing(c, err);
    return c->env->read_result(c->env->ctx, json_str(c->args, S("id"), (str){0}),
                               (int64_t)json_num(c->args, S("offset"), 0),
                               (int64_t)json_num(c->args, S("limit"), TOOL_PAGE), c->out, err);
}

// tools: kb_search. The sources are the grant's; `source` and `path` only narrow.
#include "tools/tools_int.h"

dep_status tool_kb_search(tool_ctx *c, dep_err *err) {
    const config_limits *l = &c->t->w->config.limits;
    knowledge_opts o = {.root = c->t->w->fd,
                        .sources = c->t->g->sources.p,
                        .n_sources = c->t->g->sources.n,
                        .max_bytes = (size_t)l->search_total_mib << 20,
                        .max_file = (size_t)l->search_file_mib << 20,
                        .memory_epoch = workspace_memory_epoch,
                        .was_memory = workspace_was_memory,
                        .ctx = c->t->w,
                        .cache = c->t->w->searches,
                        .cancelled = c->env->cancelled,
                        .cancel_ctx = c->env->ctx};
    search_space space = knowledge_space(c->turn, &o);
    search_result r;
    search_query q = {.query = json_str(c->args, S("query"), (str){0}),
                      .limit = (size_t)json_num(c->args, S("limit"), SEARCH_LIMIT_DEFAULT),
                      .source = json_str(c->args, S("source"), (str){0}),
                      .path = json_str(c->args, S("path"), (str){0})};
    TRY(search_directly(c->turn, &space, &q, &r, err));
    strs names = {0};
    for (vec_each(const def_source, s, &c->t->g->sources)) vec_push(c->turn, &names, s->name);
    knowledge_text(c->out, &r, q.query, &names);
    return DEP_OK;
}

// tools: the table of bodies, building the closure, and one way to call. A result is cut at a character
// boundary when it is larger than its limit, and says so.
#include "tools/tools_int.h"
#include <deputy/utf8.h>

static const struct {
    const char *name;
    tool_body *body;
} bodies[] = {
    {"read", tool_read},
    {"glob", tool_glob},
    {"grep", tool_grep},
    {"use_skill", tool_use_skill},
    {"todo", tool_todo},
    {"kb_search", tool_kb_search},
    {"memory_write", tool_memory_write},
    {"memory_read", tool_memory_read},
    {"memory_search", tool_memory_search},
    {"Task", tool_task},
    {"TaskWait", tool_task_wait},
    {"TaskList", tool_task_list},
    {"TaskStop", tool_task_stop},
    {"read_result", tool_read_result},
    {"available_tools", tool_available_tools},
    {"load_tools", tool_load_tools},
};

static tool_body *body_of(const tool_spec *spec) {
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        if (str_eq(str_z(bodies[i].name), str_z(spec->name))) return bodies[i].body;
    return NULL;
}

const bool *tools_bodies(void) {
    // Kept beside `bodies` in table order; a unit test holds the two together.
    static const bool here[32] = {
        [1] = true,  [4] = true,  [5] = true,  [10] = true, [11] = true, [12] = true,
        [14] = true, [15] = true, [16] = true, [17] = true, [18] = true, [19] = true,
        [20] = true, [21] = true, [22] = true, [23] = true,
    };
    return here;
}

dep_status toolset_open(arena *a, workspace *w, const definition *def, const grant *g, bool live,
                        toolset **ret, dep_err *err) {
    toolset *t = NEW(a, toolset);
    *t = (toolset){.a = a, .w = w, .def = def, .g = g, .todo = S("[]")};
    TRY(access_prepare(t, err));
    if (g->memory != DEF_MEMORY_NONE) TRY(workspace_memory(a, w, def, live, &t->memory, err));
    *ret = t;
    return DEP_OK;
}

bool ctx_cancelled(const tool_ctx *c) {
    return c->env->cancelled && c->env->cancelled(c->env->ctx);
}

static int64_t now(const toolset *t) {
    return t->w->clock->mono_ms(t->w->clock->ctx);
}

bool ctx_late(const tool_ctx *c) {
    return now(c->t) > c->deadline;
}

static bool is_loaded(const strs *loaded, str name) {
    for (size_t i = 0; loaded && i < loaded->n; i++)
        if (str_eq(loaded->p[i], name)) return true;
    return false;
}

static void say_what_there_is(const toolset *t, const strs *loaded, buf *out) {
    bool first = true;
    for (vec_each(const grant_tool, g, &t->g->tools)) {
        if (g->deferred && !is_loaded(loaded, str_z(g->spec->name))) continue;
        buf_add(out, first ? S(" You have: ") : S(", "));
        buf_add(out, str_z(g->spec->name));
        first = false;
    }
    buf_add(out, first ? S(" You have no tools.") : S("."));
}

static void finish(tool_ctx *c, size_t max) {
    str text = buf_str(c->out);
    if (text.n <= max) {
        c->result->text = text;
        return;
    }
    str head = utf8_cut(text, max), id = {0};
    dep_err why;
    // What is paged already is not kept again.
    bool kept = c->env->keep && body_of(c->tool->spec) != tool_read_result &&
                c->env->keep(c->env->ctx, text, &id, &why) == DEP_OK;
    c->result->text =
        kept ? str_fmt(c->turn,
                       STR_FMT "\n[cut: %zu of %zu bytes shown; the rest: read_result with id " STR_FMT
                               " and offset %zu]",
                       STR_ARG(head), head.n, text.n, STR_ARG(id), head.n)
             : str_fmt(c->turn, STR_FMT "\n[cut: %zu of %zu bytes shown; ask for less, or for a part]",
                       STR_ARG(head), head.n, text.n);
}

static void refuse(tool_result *ret, buf *out) {
    ret->is_error = true;
    ret->text = buf_str(out);
}

// What reads or records trust uses the workspace itself, which other delegations share.
static dep_status call_locked(tool_body *body, tool_ctx *c, dep_err *err) {
    // memory_write waits for a lock of another process and takes this one in between.
    str group = str_z(c->tool->spec->group);
    bool shared = (str_eq(group, S("memory")) && body != tool_memory_write) || str_eq(group, S("skills"));
    if (shared) workspace_lock(c->t->w);
    dep_status status = body(c, err);
    if (shared) workspace_unlock(c->t->w);
    return status;
}

// A search holds what it reads, and needs a processor: no more of them than there are processors go on at
// once.
static dep_status call_body(tool_body *body, tool_ctx *c, dep_err *err) {
    bool heavy = body == tool_kb_search || body == tool_grep || body == tool_glob;
    if (heavy && c->env->enter && !c->env->enter(c->env->ctx))
        return err_set(err, DEP_ERR_CANCELLED, "stopped before it began");
    c->deadline = now(c->t) + TOOL_SECONDS_MAX * 1000;
    dep_status status = call_locked(body, c, err);
    if (heavy && c->env->leave) c->env->leave(c->env->ctx);
    return status;
}

void tool_call(toolset *t, arena *turn, const tool_env *env, const strs *loaded, str name, str args_json,
               tool_result *ret) {
    buf *out = NEW(turn, buf);
    *out = buf_new(turn, (size_t)32 << 20);
    *ret = (tool_result){0};
    const grant_tool *tool = grant_find(t->g, name);
    tool_body *body = tool ? body_of(tool->spec) : NULL;
    if (!body) {
        buf_add(out, S("You do not have the tool \""));
        foreign_add(out, name, FOREIGN_LINE, 64);
        buf_add(out, S("\"."));
        say_what_there_is(t, loaded, out);
        refuse(ret, out);
        return;
    }
    if (tool->deferred && !is_loaded(loaded, name)) {
        buf_addf(out, "The tool %s is deferred: load it first with load_tools.", tool->spec->name);
        refuse(ret, out);
        return;
    }
    dep_err err;
    json *args;
    if (json_parse(turn, args_json.n ? args_json : S("{}"), 0, &args, &err) != DEP_OK ||
        toolspec_check_args(turn, tool->schema, args, &err) != DEP_OK) {
        buf_addf(out, "Invalid arguments for %s: ", tool->spec->name);
        foreign_add(out, str_z(err.msg), FOREIGN_LINE, 500);
        refuse(ret, out);
        return;
    }
    tool_ctx c = {.t = t, .turn = turn, .env = env, .tool = tool, .args = args, .out = out, .result = ret};
    if (call_body(body, &c, &err) != DEP_OK) {
        buf_clear(out);
        buf_addf(out, "%s failed: ", tool->spec->name);
        foreign_add(out, str_z(err.msg), FOREIGN_LINE, 1000);
        ret->wrote_memory = false;
        refuse(ret, out);
        return;
    }
    size_t max = tool->spec->max_output;
    if (t->g->tool_bytes > 0 && (size_t)t->g->tool_bytes < max) max = (size_t)t->g->tool_bytes;
    finish(&c, max);
}

// tools: the bodies. A toolset is the closure of one delegation's tools: descriptors, skills, sources and the
// memory scope, fixed when it is built; no argument of a call can widen it. A body gets a tool_env for what
// only the run loop can do, so that nothing here calls upward.
#pragma once
#include <deputy/arena.h>
#include <deputy/capability.h>
#include <deputy/host.h>
#include <deputy/memory.h>
#include <deputy/str.h>

enum : size_t { TOOL_READ_MAX = (size_t)64 << 20, TOOL_GREP_FILE_MAX = (size_t)16 << 20 };
enum {
    TOOL_READ_LINES = 2000, // lines of one read without limit
    TOOL_GLOB_LIMIT = 200,
    TOOL_GREP_LIMIT = 200,
    TOOL_GREP_LINE_CHARS = 400,
    TOOL_WALK_FILES_MAX = 200000,
    TOOL_WALK_DEPTH_MAX = 64,
    TOOL_GREP_STEPS_MAX = 5000000, // items of the pattern tried against one line
    TOOL_SECONDS_MAX = 30,         // one call of glob or grep in all
    TOOL_MEMORY_LIMIT = 6,
    TOOL_PAGE = 32 * 1024,   // bytes of one read_result without limit
    TOOL_WAIT_SECONDS = 600, // of a TaskWait without a time-out
};

// An order of the tool Task, as the model gave it.
typedef struct {
    str agent, task, description, model, resume;
    bool background;
} tool_task_order;

typedef struct {
    bool (*cancelled)(void *ctx); // asked at least every 100 ms
    // Around a search: waits until one more may run. False: stopped meanwhile. NULL: no bound.
    bool (*enter)(void *ctx);
    void (*leave)(void *ctx);
    // load_tools and available_tools: the run loop knows what is loaded. They append the answer for the
    // model.
    dep_status (*load)(void *ctx, str name, buf *out, dep_err *err);
    void (*available)(void *ctx, buf *out);
    // The quartet of role main; NULL elsewhere. They append the answer for the model; an error is one too.
    dep_status (*task)(void *ctx, const tool_task_order *t, buf *out, dep_err *err);
    dep_status (*task_wait)(void *ctx, const strs *ids, bool any, int64_t timeout_ms, buf *out, dep_err *err);
    dep_status (*task_list)(void *ctx, buf *out, dep_err *err);
    dep_status (*task_stop)(void *ctx, const strs *ids, buf *out, dep_err *err);
    // Keeps the whole of a result that was cut; *id is what read_result takes. NULL: nothing is kept.
    dep_status (*keep)(void *ctx, str whole, str *id, dep_err *err);
    // A part of a result that was kept: about `limit` bytes from byte `offset`, at character boundaries.
    dep_status (*read_result)(void *ctx, str id, int64_t offset, int64_t limit, buf *out, dep_err *err);
    void *ctx;
    str delegation, model; // for entry headers of memory
} tool_env;

typedef struct {
    str text; // for the model
    bool is_error;
    bool wrote_memory;
    memory_written written; // when wrote_memory
} tool_result;

typedef struct toolset toolset;
// Opens what the granted tools need. live: directories of memory may be made. The toolset lives in `a`.
[[nodiscard]] dep_status toolset_open(arena *a, workspace *w, const definition *def, const grant *g,
                                      bool live, toolset **ret, dep_err *err);
// Runs one call. Never fails: what goes wrong is a result for the model. A tool that is not granted, or
// deferred and not loaded, answers with what there is. `loaded`: names loaded so far. Results live in `turn`.
void tool_call(toolset *t, arena *turn, const tool_env *env, const strs *loaded, str name, str args_json,
               tool_result *ret);
// By toolspec index: the tools that have a body here.
const bool *tools_bodies(void);

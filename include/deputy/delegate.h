// delegate: one run of one subagent: the loop between a model and the granted tools, its budgets, its
// activity, its report. The report is stored and synced before it is shown. What comes later (queue,
// background, cards, resume) has its states reserved in store.h.
//
// States: (new) → running → completed | truncated | failed | stopped; interrupted is set by store_recover for
// a process that died.
//   running → completed   the model ends its turn                         run.c: run_loop
//   running → truncated   turns, minutes, tokens or max_tokens are spent  run.c: out_of_budget, end_by_reply
//   running → failed      the provider fails or refuses                   run.c: end_by_reply, end_by_error
//   running → stopped     a person stops it                               run.c: end_by_error, out_of_budget
#pragma once
#include <deputy/arena.h>
#include <deputy/capability.h>
#include <deputy/host.h>
#include <deputy/model.h>
#include <deputy/store.h>
#include <deputy/tools.h>

enum {
    DELEGATE_TASK_MAX = 256 * 1024, // bytes of a task
    DELEGATE_BATCH_MS = 250,        // activity is written at least this often while something happens
    DELEGATE_BATCH_ITEMS = 64,
    DELEGATE_CALLS_MAX = 64, // tool calls of one model answer; more are answered with an error
};

typedef struct {
    str task, description;
    str model; // override, provider/model; empty: the grant's
    agent_role role;
} delegate_opts;

// What a watcher hears, on the calling thread. Members may be NULL. item: a whole activity item as one JSON
// object (no line end inside).
typedef struct {
    void (*item)(void *ctx, str kind, str item);
    void (*text)(void *ctx, str delta);
    void (*tool)(void *ctx, str name, str args); // a call starts
    void (*turn)(void *ctx, int64_t n);
    bool (*cancelled)(void *ctx);
    void *ctx;
} delegate_sink;

typedef struct {
    str id, agent;
    deleg_status status;
    str end_reason; // "end_turn", "max turns", "minutes", "tokens", "max_tokens", "refusal", "stopped by a
                    // person", "provider: …"
    str report;     // text
    str definition_hash, model, model_reported;
    int64_t turns, tool_calls;
    model_usage usage;
    strs warnings;
    VEC(memory_written) memory_writes;
    str json; // the report object
} delegate_report;

// Runs to the end on this thread. Errors are those before a delegation exists (nothing is stored then):
// REFUSED, INVALID, NOT_YET, NOT_FOUND (model), IO (state). Everything later is a report with its status.
[[nodiscard]] dep_status delegate_run(arena *a, workspace *w, const definition *def, const delegate_opts *o,
                                      const delegate_sink *sink, delegate_report *ret, dep_err *err);

// The provider of "provider/model" from the config; key expanded. secrets gets the values that must never be
// shown.
[[nodiscard]] dep_status delegate_model_open(arena *a, workspace *w, str model, model_provider **ret,
                                             str *model_name, strs *secrets, dep_err *err);

// delegate: delegations, from an order to a report. An engine is one process's share of a workspace's
// delegations: it keeps the cap and the queue, owns the network thread and the store, and hears commands of
// other processes. Each running delegation is a loop between a model and the granted tools on a thread of its
// own (or on the caller's, engine_run). The report is stored and synced before anybody gets it.
//
// States, and who makes the transition:
//   (order)   → queued     over the cap, or engine_queue                      order.c: order_store
//   (order)   → running    engine_run, or a slot is free                      order.c: order_store
//   queued    → running    a slot, in order of arrival; engine_run_queued     order.c: order_take
//   queued    → stopped    stopped before it began                            engine.c: engine_stop_why
//   queued    → failed     it cannot begin any more                           order.c: fail_row
//   running   → completed  the model ends its turn                            run.c: end_by_reply
//   running   → truncated  turns, minutes, tokens, cost                       budget.c: budget_spent
//   running   → truncated  max_tokens, identical calls                        run.c: end_truncated
//   running   → failed     the provider fails or refuses                      run.c: end_by_error
//   running   → failed     its tools or a thread cannot be had                engine.c: run_to_end
//   running   → stopped    a person, or who delegated, stops it               budget.c, run.c
//   queued, running → interrupted   the process died, or none took it         store_recover
// `waiting` is reserved for cards. What has ended never changes; a resumed delegation is a new one.
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
    DELEGATE_CALLS_MAX = 64,    // tool calls of one model answer; more are answered with an error
    DELEGATE_QUEUED_MAX = 1000, // waiting for a slot in one process
    DELEGATE_CONTINUE_MAX = 3,  // times an answer cut at its length limit is asked to go on
    DELEGATE_SAME_WARN = 3,     // the same call in so many answers in a row is not run, and the model is told
    DELEGATE_SAME_END = 6,      // so many times: the run ends as truncated
    DELEGATE_WINDOW = 32768,    // context window where neither config nor provider says one
    DELEGATE_FOLD_PERCENT = 80, // of the window: older tool results are folded
    DELEGATE_CHAIN_MAX = 1000,  // delegations that continue each other
};

// What a watcher hears, on the thread of the run. Members may be NULL. item: a whole activity item as one
// JSON object (no line end inside).
typedef struct {
    void (*item)(void *ctx, str kind, str item);
    void (*text)(void *ctx, str delta);
    void (*tool)(void *ctx, str name, str args); // a call starts
    void (*turn)(void *ctx, int64_t n);
    bool (*cancelled)(void *ctx);
    void *ctx;
} delegate_sink;

// One delegation to be. Everything but agent and task may be left empty.
typedef struct {
    str agent;             // name of the definition
    str task, description; // description: a label for people
    str model;             // override, provider/model; empty: the grant's
    agent_role role;
    str thread;      // conversation it belongs to (32 hex digits)
    str resume;      // an ended delegation to continue with `task` as a new message; id or prefix. Within a
                     // thread of role main the last turn: its budget starts anew. A turn of a main agent
                     // stays in the thread of the one that it continues
    bool background; // noted in its row: nobody waits for it
} delegate_order;

typedef struct {
    str id, agent;
    deleg_status status;
    str end_reason; // "end_turn", "max turns: 60", "minutes: 30", "tokens: …", "cost: …", "max_tokens: …",
                    // "identical calls: …", "refusal: …", "stopped by a person", "provider: …"
    str report;     // text
    str definition_hash, model, model_reported;
    int64_t turns, tool_calls;
    model_usage usage;
    int64_t cost_micro;   // millionths of the currency of the price table; -1: unknown
    int64_t cache_breaks; // times that a request did not begin with the bytes of the one before
    str resumes;          // the delegation it continued, or empty
    strs warnings;
    VEC(memory_written) memory_writes;
    str json; // the report object
} delegate_report;

// --- Engine ----------------------------------------------------------------------------------------------

typedef struct {
    // Items of delegations that a Task call started, on their threads, several at once. NULL: not wanted.
    void (*item)(void *ctx, str id, str agent, str kind, str item);
    // A background delegation has ended and its report is stored. On its thread.
    void (*ended)(void *ctx, str id, str agent, deleg_status status);
    void *ctx;
} engine_sink;

typedef struct engine engine;
// Opens the store for writing (state that cannot be written refuses everything before the first model call),
// registers the process and marks what dead ones left as interrupted. w must have been opened by this thread
// and belongs to the engine until it is closed. sink may be NULL. Closing it (engine_close or the end of a)
// stops what runs, and waits for it.
[[nodiscard]] dep_status engine_open(arena *a, workspace *w, const engine_sink *sink, engine **ret,
                                     dep_err *err);
void engine_close(engine *e);

// Runs one to its end on this thread, beside the cap. sink may be NULL. Errors are those before a delegation
// exists (nothing is stored then): REFUSED, INVALID, NOT_FOUND (agent, model, resumed), IO (state).
// Everything later is a report with its status.
[[nodiscard]] dep_status engine_run(engine *e, arena *a, const delegate_order *o, const delegate_sink *sink,
                                    delegate_report *ret, dep_err *err);
// The same for a queued row of engine_queue, by its id. INVALID: another process has it, or it has ended; it
// is left alone then. A definition that has changed since it was queued ends it as failed.
[[nodiscard]] dep_status engine_run_queued(engine *e, arena *a, str id, const delegate_sink *sink,
                                           delegate_report *ret, dep_err *err);
// Checks an order and stores it as a queued row that any process may run. Errors as engine_run.
[[nodiscard]] dep_status engine_queue(engine *e, arena *a, const delegate_order *o, str *id, dep_err *err);
// Ends a queued row that no process has taken as failed, for the reason given. INVALID when one has, or when
// it has ended.
[[nodiscard]] dep_status engine_give_up(engine *e, str id, str why, dep_err *err);
// Checks an order, stores it and runs it on a thread of its own as soon as a slot is free. LIMIT when
// DELEGATE_QUEUED_MAX wait.
[[nodiscard]] dep_status engine_start(engine *e, arena *a, const delegate_order *o, str *id, dep_err *err);
// Waits for delegations of this process that engine_start made. any: the first that ends is enough. Which
// have ended says ended[i]; their reports are in the store. False when the time is over, or cancelled says
// so (asked every 100 ms; may be NULL).
bool engine_wait(engine *e, const str *ids, size_t n, bool any, int64_t timeout_ms, bool *ended,
                 bool (*cancelled)(void *ctx), void *ctx);
// Stops one that this process runs or has queued: returns at once. False when there is none of that id.
bool engine_stop(engine *e, str id);
typedef struct {
    str id, agent, description, thread;
    deleg_status status;      // queued or running
    bool background, is_main; // is_main: a turn of a main agent
    int64_t turns, tool_calls, started_ms;
    str doing; // the last thing it did: "read docs/a.md"
} engine_task;
typedef VEC(engine_task) engine_tasks;
// What runs and waits here now, oldest first. thread: only of that conversation; empty: all.
void engine_list(engine *e, arena *a, str thread, engine_tasks *ret);
// The store of the engine: several threads may use it.
store_shared *engine_store(engine *e);
// The workspace as it is now: read anew when one of its files has changed since it was last read. Its
// contents live until the next call; this thread only.
[[nodiscard]] dep_status engine_workspace(engine *e, workspace **ret, dep_err *err);

// Retention, as the config wants it: at most once a day for a workspace, or now. Where the config has errors
// nobody knows how much is to be kept: nothing is removed then, and asking for it now is REFUSED. *removed: 0
// when it was not due.
[[nodiscard]] dep_status delegate_retain(store *s, const workspace *w, bool now, size_t *removed,
                                         dep_err *err);

// The provider of "provider/model" from the config; key expanded. secrets gets the values that must never be
// shown. net: NULL for one of its own.
[[nodiscard]] dep_status delegate_model_open(arena *a, workspace *w, str model, model_net *net,
                                             model_provider **ret, str *model_name, strs *secrets,
                                             dep_err *err);

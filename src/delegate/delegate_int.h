// Shared by the files of this room: the state of one run, and of the engine around all of them.
//
// Threads: a run belongs to one thread at a time; what others may touch of it is in its task, under the
// engine's lock. The workspace is read under workspace_lock. The engine's lock is never held while anything
// is asked of the workspace, the store or a model.
#pragma once
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <deputy/prompt.h>
#include <pthread.h>
#include <stdatomic.h>

typedef struct run run;
typedef struct task task;
typedef struct snapshot snapshot;

// --- snapshot.c: the workspace as it was loaded --------------------------------------------------
struct snapshot {
    arena *a; // NULL: the workspace belongs to the caller of engine_open
    workspace *w;
    int refs; // under the engine's lock
};
// The current one, read anew when a file of it has changed. Given back with snapshot_release.
[[nodiscard]] dep_status snapshot_take(engine *e, snapshot **ret, dep_err *err);
void snapshot_release(engine *e, snapshot *s);

// --- engine.c ------------------------------------------------------------------------------------
enum { TASK_DOING = 160 };

// A delegation of this process, as others see it.
struct task {
    task *next;
    engine *e;
    run *r;     // until it has ended
    arena *mem; // of this task
    str id, agent, description, thread;
    bool background, is_main;
    bool own_thread, counted;   // counted: it holds a slot
    _Atomic(const char *) stop; // who stops it: "stopped by …"; NULL: nobody
    // Under the engine's lock:
    deleg_status status;
    int64_t turns, tool_calls, started_ms;
    char doing[TASK_DOING];
    pthread_t worker;
};

enum { WINDOWS_KEPT = 16 };
typedef struct {
    char model[256];
    int64_t tokens;
} known_window_row;

struct engine {
    arena *a;
    store_shared *store;
    model_net *net;
    engine_sink sink;
    str run_id;
    int socket, wake; // of commands, -1: none; ends the listener
    workspace_opts opts;
    workspace *given;          // the caller's, that searches with the engine's cache
    pthread_mutex_t snapshots; // held while one is loaded
    snapshot *current, *shown; // shown: of engine_workspace
    pthread_mutex_t lock;
    pthread_cond_t changed; // a task has ended, or was stopped
    task *tasks, **tail;    // in order of arrival, until they have ended
    task *done;             // ended; their threads are to be joined
    size_t running, queued, cap;
    size_t searching, processors; // searches going on, and how many may
    pthread_cond_t searched;
    known_window_row windows[WINDOWS_KEPT];
    size_t n_windows;
    pthread_t listener;
    bool listening, closed;
    atomic_bool closing;
};

// Starts what is due. With the engine's lock held.
void engine_launch(engine *e);
// A new task for a prepared run, in the list. counted: it holds a slot.
task *engine_add(engine *e, run *r, deleg_status status, bool counted);
void engine_facts(run *r, str doing); // turns, calls and what it does, for engine_list
// Of a tool_env: one search more, one less.
bool engine_enter(void *run);
void engine_leave(void *run);
void engine_ended(task *t, deleg_status status);
bool engine_stop_why(engine *e, str id, const char *why); // why: a constant

// --- control.c: commands of other processes ------------------------------------------------------
void control_start(engine *e);
void control_end(engine *e);

// --- activity.c: items, in batches ---------------------------------------------------------------
typedef struct {
    arena *a; // of the batch: reset at each write
    VEC(activity_row) items;
    message_rows messages; // to be stored with the next batch
    strs delivered;        // reports that those messages carry
    int64_t last_write_ms;
    buf text, thinking; // streamed so far and not yet an item
    bool held;          // it could not be written and waits
    bool gap;           // messages were given up: none after them is stored
    dep_err fault;      // the first failed write
} activity;

// --- context.c: what the model is sent -----------------------------------------------------------
typedef struct {
    int64_t window;       // tokens; 0: not known yet
    bool window_assumed;  // nobody said it
    int64_t size;         // tokens of the last request and its answer, as reported
    int64_t added;        // estimated tokens that came since
    bool folded;          // older results were folded
    int64_t cache_breaks; // times that a request did not begin with the one before
} context;

// A foreground Task call of the answer that is being worked on.
typedef struct {
    const model_block *call;
    str id; // started; empty: it could not be, and `fault` says why
    dep_err fault;
    bool collected;
} started_task;
typedef VEC(started_task) started_tasks;

typedef struct {
    uint64_t hash;
    size_t size;
    int times; // answers in a row
} repeated;
typedef VEC(repeated) repeated_calls;

struct run {
    engine *e;
    snapshot *snap;
    task *task;
    arena *a, *turn, *call; // of the run, of a turn, of one model call
    workspace *w;
    const definition *def;
    const delegate_sink *sink;
    grant grant;
    toolset *tools;
    model_provider *provider;
    const config_price *price; // NULL: not known
    str model_name;
    strs secrets;
    redactor *live, *live_thinking; // of what streams; NULL without secrets
    redactor *whole;                // of whole texts; made when it is needed first
    str id, task_text, description, thread, resumes;
    bool background, is_main, queued; // queued: its row waits in this process
    prompt prompt;
    offered_tools offered; // as sent; grows at the end only
    model_messages messages;
    strs loaded;
    strs chain;         // what it continues, newest first
    model_usage before; // spent by those
    int64_t turns_before, ms_before, cost_before;
    int64_t started_mono;
    int64_t tool_bytes;           // results so far
    str last_text;                // of the newest answer that had text
    int continued;                // answers in a row that were cut at their length limit
    repeated_calls repeated, now; // calls of the answer before, and of this one
    int same;                     // the most answers in a row that one call of this answer was in
    const model_block *answering; // the call that is being run
    started_tasks started;
    strs delivering; // reports in the results of this answer
    bool wrap_up;    // the last call that the turns allow has been announced
    str fell_away;   // what a resumed delegation has no longer, or empty
    activity act;
    context ctx;
    delegate_report report;
};

int64_t run_now(const run *r);
int64_t run_mono(const run *r);
bool run_cancelled(void *p);
str run_redact(run *r, arena *a, str text);
void run_warn(run *r, str text);

void activity_begin(run *r);
void activity_text(run *r, str delta);
void activity_thinking(run *r, str delta);
void activity_turn(run *r, int64_t n);
void activity_tool(run *r, const model_block *call, str result, bool is_error, int64_t ms);
// Something about the conversation itself: "fold", "load", "wrap_up", "continue".
void activity_context(run *r, const char *event, str detail);
// The item of a status, put into the batch: whoever stores the status with it tells of it afterwards.
str activity_status(run *r, deleg_status status, str end_reason);
void activity_tell(run *r, const char *kind, str item);
// What streamed becomes an item.
void activity_gather(run *r);
// The same, and the batch is written, if that can be done now.
void activity_flush(run *r);
// The batch is given up.
void activity_forget(run *r, const dep_err *why);
// Writes the batch when it has waited long enough.
void activity_tick(run *r);
// Stores what was gathered between `first` and `last` (each may be NULL), in one transaction; forgets the
// batch when it is stored.
[[nodiscard]] dep_status activity_store(run *r, store_mode mode, store_op *first, store_op *last, void *ctx,
                                        dep_err *err);

// --- messages.c: the conversation, as it is stored -----------------------------------------------
// Keeps a message for resume; it is stored with the next batch.
void message_keep(run *r, const model_message *m);
void message_keep_system(run *r);
void message_keep_word(run *r, const char *kind, str name, int64_t n);
// Rebuilds what the rows say: prompt, offered tools, messages, loads.
typedef struct {
    str layer; // of the definition
    str prompt;
    offered_tools offered;
    model_messages messages;
    strs loaded;
} conversation;
[[nodiscard]] dep_status messages_read(arena *a, const message_rows *rows, conversation *ret, dep_err *err);

// --- order.c: from an order to a run that may begin ----------------------------------------------
[[nodiscard]] dep_status order_prepare(engine *e, arena *a, const delegate_order *o, run **ret, dep_err *err);
// Stores its row: running, queued here, or (anybody) queued for whoever takes it.
[[nodiscard]] dep_status order_store(run *r, deleg_status status, bool anybody, dep_err *err);
// A queued row, as an order and a run.
[[nodiscard]] dep_status order_requeue(engine *e, arena *a, str id, run **ret, dep_err *err);
// Its queued row becomes running here. INVALID: another process has it.
[[nodiscard]] dep_status order_take(run *r, dep_err *err);
// Opens its tools; its time begins.
[[nodiscard]] dep_status order_begin(run *r, dep_err *err);
void run_release(run *r); // what it holds beside its arena

// --- resume.c ------------------------------------------------------------------------------------
// Brings back the conversation that o->resume ended with, and narrows r->grant to what it had then and has
// now (rule B21).
[[nodiscard]] dep_status resume_prepare(run *r, const delegate_order *o, dep_err *err);
void grant_intersect(arena *a, grant *g, const grant *stored, buf *lost);

// --- run.c: the loop -----------------------------------------------------------------------------
void run_loop(run *r);

// --- budget.c ------------------------------------------------------------------------------------
typedef struct {
    deleg_status status;
    str reason;
} ending;
// Asked before each model call. True: it ends here.
bool budget_spent(run *r, ending *ret);
bool budget_last_turn(const run *r);    // the next call is the last that the turns allow
int64_t run_cost_micro(const run *r);   // of the run so far; -1: unknown
int64_t cost_sum(int64_t x, int64_t y); // INT64_MAX where that is not enough

// --- context.c -----------------------------------------------------------------------------------
// Before a call: folds when the conversation is about to outgrow the window.
void context_make_room(run *r);
// Folds older tool results, once. False: nothing to fold.
bool context_fold(run *r, const char *why);
void context_note_reply(run *r, const model_reply *reply);
void fold_messages(arena *a, model_messages *messages, size_t keep, size_t *results, size_t *bytes);

// --- calls.c: the tool calls of one answer -------------------------------------------------------
// Gives the run the tool that pages results which were cut. False: it has it already.
bool results_mount(run *r);
// In how many answers in a row, this one included, the call was made; 0: it may repeat.
int calls_in_a_row(run *r, const model_block *call);
// False: the same call was made too often; the run ends.
bool run_calls(run *r, const model_blocks *answer, model_message *results);

// --- tasks.c: the quartet of a main agent --------------------------------------------------------
void tasks_offer(tool_env *env); // puts the functions in
// Starts the foreground tasks of an answer, so that they run at the same time.
void tasks_start(run *r, const model_blocks *answer);
// Those whose call was never reached are stopped.
void tasks_end(run *r);

// --- report.c ------------------------------------------------------------------------------------
// Makes the report object and stores it with the status. One that cannot be stored is a failed one, and still
// handed over.
void report_store(run *r, deleg_status status, str end_reason);
str delegate_report_json(arena *a, const delegate_report *rep);
// A report as a main agent reads it.
void report_for_model(buf *out, arena *a, const delegation_row *row);

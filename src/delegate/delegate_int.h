// Shared by the files of this room: the state of one run.
#pragma once
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <deputy/prompt.h>

typedef struct run run;

// --- activity.c: items, in batches ---------------------------------------------------------------
typedef struct {
    arena *a; // of the batch: reset at each write
    VEC(activity_row) items;
    int64_t last_write_ms;
    buf text, thinking; // streamed so far and not yet an item
    dep_err fault;      // the first failed write
} activity;

struct run {
    arena *a, *turn;
    workspace *w;
    const definition *def;
    const delegate_sink *sink;
    grant grant;
    toolset *tools;
    model_provider *provider;
    str model_name;
    strs secrets;
    redactor *live, *live_thinking; // of what streams; NULL without secrets
    str id;
    prompt prompt;
    model_messages messages;
    strs loaded;
    int64_t started_mono;
    int64_t tool_bytes; // results so far
    str last_text;      // of the newest answer that had text
    activity act;
    delegate_report report;
};

int64_t run_now(const run *r);
bool run_cancelled(void *p);
str run_redact(run *r, arena *a, str text);

void activity_text(run *r, str delta);
void activity_thinking(run *r, str delta);
void activity_turn(run *r, int64_t n);
void activity_tool(run *r, const model_block *call, str result, bool is_error, int64_t ms);
void activity_status(run *r, deleg_status status, str end_reason);
// What streamed becomes an item; the batch is written.
void activity_flush(run *r, bool sync);

// --- calls.c: the tool calls of one answer -------------------------------------------------------
void run_calls(run *r, const model_blocks *answer, model_message *results);

// --- report.c ------------------------------------------------------------------------------------
// Makes the report object and stores it with the status. One that cannot be stored is a failed one, and still
// handed over.
void report_store(run *r, deleg_status status, str end_reason);

// ws_fixture: a workspace with a home, config and state of its own, and what suites of host, tools and
// delegate do with it: open it, trust its files, and call tools as a delegation would.
#pragma once
#include "support/support.h"
#include <deputy/capability.h>
#include <deputy/host.h>
#include <deputy/tools.h>

typedef struct {
    char *top; // holds ws/, home/, config/, state/
    char *ws;
    arena *a; // freed after the test
    int open_before;
    workspace *w; // the last one opened
} ws_fixture;

// As setup and teardown of a test; *state is then a ws_fixture. A test that leaves a descriptor open fails.
int ws_setup(void **state);
int ws_teardown(void **state);
// The environment of workspaces opened from here on; NULL takes a variable away. HOME, XDG_CONFIG_HOME and
// XDG_STATE_HOME are set by ws_setup. name and value must outlive the test.
void ws_setenv(const char *name, const char *value);
const char *ws_getenv(const char *name);

// Files below ws, or with a name that begins with "/" below top ("/config/deputy/agents/x.yaml").
void ws_write(ws_fixture *f, const char *name, const char *text);
void ws_write_bytes(ws_fixture *f, const char *name, str bytes);
void ws_link(ws_fixture *f, const char *target, const char *name);
void ws_hardlink(ws_fixture *f, const char *old, const char *name);
void ws_mkdir(ws_fixture *f, const char *name);
char *ws_path(ws_fixture *f, const char *name);
// .deputy/agents/NAME.yaml: `name`, a description, a prompt, and rows. Not trusted yet.
void ws_agent(ws_fixture *f, const char *name, const char *rows);

// A new workspace value; the test fails when it cannot be opened.
workspace *ws_open(ws_fixture *f);
// With -C dir (relative to top, "ws" is the workspace), or from the current directory when dir is NULL.
dep_status ws_open_at(ws_fixture *f, const char *dir, workspace **ret, dep_err *err);
// Accepts everything that is there, as `deputy trust` does, and opens the workspace again.
workspace *ws_trust(ws_fixture *f);
// The entry that the file made, whatever its state; NULL when there is none.
agent_entry *ws_entry(ws_fixture *f, const char *file);

// --- A delegation's tools without a delegation
typedef struct {
    ws_fixture *f;
    const agent_entry *e;
    grant *grant;
    toolset *tools;
    tool_env env;
    strs loaded;
    bool cancelled;   // what env.cancelled says
    int cancel_after; // it says so from this many asks on; 0: never
} ws_tools;

// The toolset of an effective agent, by name; live.
ws_tools *ws_toolset(ws_fixture *f, const char *agent);
// One call; the text is in f->a. *is_error may be NULL.
str ws_call(ws_tools *t, const char *name, const char *args, bool *is_error);
// The test fails unless a call of tool with args succeeds (fails) and its text holds every one of the texts,
// or with a
// '!' before it does not hold it. The list ends with NULL.
void ws_says(ws_tools *t, const char *tool, const char *args, ...) __attribute__((sentinel));
void ws_refuses(ws_tools *t, const char *tool, const char *args, ...) __attribute__((sentinel));

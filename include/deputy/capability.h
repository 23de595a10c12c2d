// capability: what a definition gets here. `host` is plain data about what exists; resolve() puts both
// together into a grant (what the subagent has) and a report (what became of every declared item, and why).
// Pure: no I/O, no clock; equal input gives equal bytes.
#pragma once
#include <deputy/arena.h>
#include <deputy/config.h>
#include <deputy/definition.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/json.h>
#include <deputy/policy.h>
#include <deputy/toolspec.h>

typedef enum { ROLE_DELEGATE, ROLE_MAIN } agent_role;

enum {
    TASK_LABEL_CHARS = 400,  // of a routing label in the description of Task
    TASK_LABELS_MAX = 16384, // bytes of all of them; the others are offered by name
};

// --- What exists here ----------------------------------------------------------------------------

typedef struct {
    str name, description, location;
    str withheld; // why it may not be used, or empty
    bool hidden;  // disable-model-invocation
} host_skill;

typedef enum { SERVER_CONFIGURED, SERVER_DISABLED } host_server_state;
typedef struct {
    str name, instructions;
    host_server_state state;
} host_server;

typedef struct {
    str name, description;
} host_agent;

typedef struct {
    str name, text;      // text: what is shown
    size_t chars, shown; // of the file, and shown (equal when whole)
} host_memory_file;

typedef struct {
    str name, reason;
} host_named;

typedef struct {
    str workspace;                   // path as shown in the prompt
    bool tools[32];                  // by toolspec index: there is a body
    VEC(host_skill) skills;          // winners of their names
    VEC(host_server) servers;        // configured ones
    VEC(host_agent) agents;          // definitions that a main agent may hand tasks to, in order of name
    const size_t *source_files;      // files per source of the definition, in its order; NULL: unknown
    VEC(host_memory_file) memory;    // resident block in order
    VEC(host_named) memory_left_out; // names that did not fit (reason: size)
    VEC(host_named) memory_notes;    // what a person should know of a shown file: invisible text
    VEC(host_named) memory_withheld; // files that must not be used, with the reason
    bool memory_unavailable;         // the scope cannot be opened; memory_reason says why
    str memory_reason;
    VEC(def_gate) default_gates; // the system's default pair: confirm entries first, n_confirm of them
    size_t n_default_confirm;
    int64_t turns, minutes, tokens, tool_bytes, run_bytes; // from config, or the defaults
    int64_t cost_micro;                                    // from config; 0: none
    // The config says so: a definition may only lower it.
    bool turns_bound, minutes_bound, tokens_bound, cost_bound;
    str default_model, default_model_origin;
    str model;          // of this run alone, instead of the definition's; empty: none
    bool priced;        // the model that the definition gets here has a price:
    config_price price; // this one
    strs models;        // configured provider names, built-in ones too
    str config_fault;   // an error in a config file that may hide a restriction: nothing starts; or empty
} host;

// --- The result ----------------------------------------------------------------------------------

typedef enum {
    ITEM_GRANTED,
    ITEM_DEFERRED,
    ITEM_MISSING,
    ITEM_DISABLED,
    ITEM_UNCONNECTED,
    ITEM_NARROWED,
    ITEM_WITHHELD,
    ITEM_REFUSED
} item_state;
const char *item_state_name(item_state s);

typedef struct {
    str rule;   // "tools: read", "permissions.read: [docs]", "not in this host's toolset"
    str effect; // "grants", "narrows", "defers", "gates", "removes", "withholds"
    def_place at;
} item_rule;

typedef struct {
    const char *dimension; // tools, skills, knowledge, mcp, memory, residency, approval, limits, model
    str name;
    item_state state;
    str reason;
    def_place at;
    VEC(item_rule) rules;
} report_row;

typedef struct {
    const tool_spec *spec;
    str schema;      // parameters as offered (skill names as an enum, …)
    str description; // as offered
    bool deferred;
    bool gated; // asks first
    bool core;  // a loader
} grant_tool;

typedef struct {
    bool bounded;  // false: the workspace
    strs prefixes; // bounded: these
} grant_axis;

typedef struct {
    agent_role role;
    str agent, identity, description;
    str workspace;
    VEC(grant_tool) tools; // table order, deferred ones included; loaders last
    size_t n_deferred;
    VEC(host_skill) skills; // granted
    VEC(def_source) sources;
    const size_t *source_files;
    VEC(host_server) servers; // of the mounted gateway
    def_mcp_search mcp_search;
    def_memory memory;
    VEC(host_memory_file) memory_files;
    VEC(host_named) memory_left_out;
    VEC(gate) gates;
    grant_axis read, write, run, net;
    bool can_change;                                       // has a tool that changes files or runs programs
    int64_t turns, minutes, tokens, tool_bytes, run_bytes; // turns, minutes, tokens: up to CONFIG_UNLIMITED
    int64_t cost_micro;                                    // 0: no limit; else `priced`, or it is refused
    bool priced;                                           // `model` has a price:
    config_price price;                                    // this one
    str model, model_origin;
    str body; // the definition's prompt, exact
    VEC(report_row) report;
    str refusal; // why a delegation cannot start with it, or empty
    dep_status refusal_status;
} grant;

// Order: tools, skills, knowledge, MCP, memory, residency, gates. Faults of gates go to `d`; a grant with one
// of them must not be used:
//   CAP001 a gate that cannot be read   CAP002 a gate that matches nothing this definition declares
//   CAP003 one tool in both lists       (CAP004 is of `check`)
// Errors: NOMEM only.
[[nodiscard]] dep_status resolve(arena *a, const definition *def, const host *h, agent_role role, grant *ret,
                                 diags *d, dep_err *err);

// The tool of that exact name in the grant; NULL: not granted. Deferred ones are found too.
const grant_tool *grant_find(const grant *g, str name);
// {"tools":[…],"deferred":[…],"skills":[…],"servers":[…],"sources":[…],"memory":"private"}
void grant_json(buf *out, const grant *g);
void report_json(buf *out, const grant *g);
// Parts of these for other documents: "key": [names of resident or of deferred tools], and "at": {file, line,
// column} or null.
void grant_names_json(jw *w, str key, const grant *g, bool deferred);
void place_json(jw *w, def_place at);

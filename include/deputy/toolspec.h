// toolspec: the tool table. One row per tool: name, group, permission axis, parameters, flags, limits; no
// bodies. The same rows feed definitions (grantable names), the prompt, the tool array of every API, argument
// checks, help and, later, MCP.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/json.h>
#include <deputy/str.h>

typedef enum { AXIS_NONE, AXIS_READ, AXIS_WRITE, AXIS_RUN, AXIS_NET } tool_axis;

enum tool_flags : unsigned {
    TOOL_GRANTABLE = 1u << 0, // may stand in `tools`
    TOOL_DIMENSION = 1u << 1, // comes only with its dimension (skills through use_skill are grantable)
    TOOL_MAIN = 1u << 2,      // mounted for role main only
    TOOL_CORE = 1u << 3,      // mounted by Deputy: loaders, read_result
    TOOL_CHANGES = 1u << 4,   // can change files or run programs
    TOOL_OUTSIDE = 1u << 5,   // sends data out
    TOOL_GATED = 1u << 6,     // asks first at level confirm
};

typedef struct {
    const char *name;
    const char *group;
    tool_axis axis;
    unsigned flags;
    size_t max_output;       // bytes of a result shown to the model
    const char *description; // for the model; may hold "%s" nowhere: it is exact
    const char *schema;      // JSON Schema of the parameters, additionalProperties false
} tool_spec;

// The whole table, in the order in which tools are offered. *n is the number of rows.
const tool_spec *toolspec_all(size_t *n);
// ASCII case-insensitive; NULL when there is no such tool.
const tool_spec *toolspec_find(str name);
size_t toolspec_index(const tool_spec *t);
const char *axis_name(tool_axis a); // "read"; "" for none

typedef struct {
    const char *name;     // "fs"
    const char *summary;  // one line for people
    const char *guidance; // what load_tools returns with it; "" when there is none
} tool_group;
const tool_group *toolspec_groups(size_t *n);
const tool_group *toolspec_group(str name); // exact; "mcp.<server>" finds the row "mcp"

// A name of another host: Deputy's counterpart, or why there is none.
typedef struct {
    const char *foreign;
    const char *deputy; // NULL: no counterpart
    const char *why;    // for those without: the reason and the way out
} tool_foreign;
// Exact and ASCII case-insensitive look-up; knows `mcp__server__tool` and dotted forms. NULL when unknown.
const tool_foreign *toolspec_foreign(str name);
// The nearest grantable name, or NULL.
const char *toolspec_nearest(str name);

// Checks arguments against the row's schema (types, required, enum, bounds, unknown members): DEP_ERR_INVALID
// with a sentence for the model. `schema` may be a narrowed copy of the row's.
[[nodiscard]] dep_status toolspec_check_args(arena *a, str schema, const json *args, dep_err *err);

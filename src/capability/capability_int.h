// Shared by the files of this room: the state of one resolution.
#pragma once
#include <deputy/capability.h>

typedef struct {
    arena *a;
    const definition *def;
    const host *h;
    grant *g;
    diags *d;
} resolve_ctx;

// Adds a row; the returned pointer is valid until the next row is added.
report_row *row_add(resolve_ctx *c, const char *dimension, str name, item_state state, str reason,
                    def_place at);
void row_rule(resolve_ctx *c, report_row *row, str rule, const char *effect, def_place at);
report_row *row_find(resolve_ctx *c, const char *dimension, str name);
// Adds a tool unless it is there; no row.
grant_tool *tool_mount(resolve_ctx *c, const tool_spec *spec);
bool tool_here(const resolve_ctx *c, const tool_spec *spec);

void resolve_tools(resolve_ctx *c);
void resolve_skills(resolve_ctx *c);
void resolve_knowledge(resolve_ctx *c);
void resolve_mcp(resolve_ctx *c);
void resolve_memory(resolve_ctx *c);
void resolve_main(resolve_ctx *c);
void resolve_residency(resolve_ctx *c);
void resolve_gates(resolve_ctx *c);
void resolve_budgets(resolve_ctx *c);

// policy: pure decisions about calls. Gates ask first; permissions narrow. No I/O, no clock.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>
#include <deputy/toolspec.h>

typedef enum { GATE_TOOL, GATE_GROUP, GATE_SERVER, GATE_SERVER_TOOL } gate_kind;

typedef struct {
    gate_kind kind;
    str text;              // as written
    const tool_spec *tool; // GATE_TOOL
    str group;             // GATE_GROUP
    str server, mcp_tool;  // GATE_SERVER, GATE_SERVER_TOOL
    bool review;           // from the review list
    str origin;            // "definition" or "default"
    str file;
    uint32_t line, column; // 0: unknown
} gate;

// Grammar: tool | group | group.* | group.tool | mcp.server | mcp.server.* | mcp.server.tool |
// core.load_tools; tools in any case, groups and servers exactly. With several dots the longest of the
// `servers` that fits is the server; without a fit the first piece is. Errors: INVALID with the right
// spelling where one exists.
[[nodiscard]] dep_status gate_parse(arena *a, str text, const str *servers, size_t n_servers, gate *ret,
                                    dep_err *err);
// Does the gate reach a call of this tool (server and mcp_tool for MCP calls, else empty)?
bool gate_hits(const gate *g, const tool_spec *tool, str server, str mcp_tool);
// One text for messages: "approval.confirm: fs.read (agents/x.yaml:7)".
str gate_label(arena *a, const gate *g);

typedef enum { DECIDE_ALLOW, DECIDE_ASK } decision;
// ASK with the rule's label in *why when a gate hits or the tool itself asks at level confirm.
decision policy_decide(arena *a, const gate *gates, size_t n, const tool_spec *tool, str server, str mcp_tool,
                       str *why);

// Is `path` (normal form) at or below one of the prefixes? "." covers everything.
bool path_under(str path, const str *prefixes, size_t n);

// Rule B5: why a file must not be read without a card, or NULL: .env*, *.pem, id_*, .netrc, .npmrc, .git/**
// (compared ASCII case-insensitively).
const char *path_sensitive(str path);

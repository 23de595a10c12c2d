// definition: the key table. One row per key; parser, checks, did-you-mean, JSON Schema and reference all
// read these rows.
#include <deputy/definition.h>

static const char *const memory_values[] = {"none", "private", "shared", NULL};
static const char *const search_values[] = {"auto", "on", "off", NULL};

static const key_row server_rows[] = {
    {.name = "name",
     .type = KEY_STRING,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = 256,
     .help = "The server's name, byte for byte as configured."},
    {.name = "include",
     .type = KEY_STRINGS,
     .flags = KEY_RESTRICTS,
     .max = 256,
     .help = "Only these tools of the server. Applied before readonly."},
    {.name = "readonly",
     .type = KEY_BOOL,
     .flags = KEY_RESTRICTS,
     .dflt = "false",
     .help = "Keep only tools whose readOnlyHint is exactly true."},
    {0},
};

static const key_row mcp_rows[] = {
    {.name = "servers",
     .type = KEY_NAMES_OR_MAPS,
     .max = DEF_SERVERS_MAX,
     .sub = server_rows,
     .flags = KEY_STRICT,
     .help = "Allow-list of MCP servers: names, or mappings with include and readonly."},
    {.name = "search",
     .type = KEY_ENUM,
     .values = search_values,
     .dflt = "auto",
     .help = "How their tools are offered: auto lists up to 10 directly, on offers only the gateway, off "
             "lists all."},
    {0},
};

static const key_row source_rows[] = {
    {.name = "name",
     .type = KEY_STRING,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = 100,
     .help = "How the source is called in the prompt and in hits."},
    {.name = "path",
     .type = KEY_STRINGS,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = DEF_PATHS_MAX,
     .help = "Glob, or list of globs, relative to the workspace: ./docs/**/*.md. A plain directory means "
             "everything below it."},
    {.name = "exclude",
     .type = KEY_STRINGS,
     .flags = KEY_RESTRICTS,
     .max = DEF_PATHS_MAX,
     .help = "Globs of files to leave out."},
    {.name = "encoding",
     .type = KEY_STRING,
     .max = 64,
     .help = "Encoding of the files when it is neither UTF-8 nor marked, such as GB18030."},
    {0},
};

static const key_row gate_rows[] = {
    {.name = "server",
     .type = KEY_STRING,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = 256,
     .help = "An MCP server's name, which may hold dots."},
    {.name = "tool", .type = KEY_STRING, .max = 256, .help = "One of its tools; all of them when absent."},
    {0},
};

static const key_row approval_rows[] = {
    {.name = "confirm",
     .type = KEY_NAMES_OR_MAPS,
     .flags = KEY_RESTRICTS | KEY_STRICT,
     .max = DEF_GATES_MAX,
     .sub = gate_rows,
     .help = "Gates that ask a person: a tool, group, group.*, group.tool, mcp.server, mcp.server.tool or "
             "core.load_tools."},
    {.name = "review",
     .type = KEY_NAMES_OR_MAPS,
     .flags = KEY_RESTRICTS | KEY_STRICT,
     .max = DEF_GATES_MAX,
     .sub = gate_rows,
     .help = "Gates that ask a reviewer model first, which can only approve; everything else goes to the "
             "person."},
    {0},
};

static const key_row permission_rows[] = {
    {.name = "read",
     .type = KEY_STRINGS,
     .flags = KEY_RESTRICTS,
     .max = DEF_PATHS_MAX,
     .help = "Path prefixes that read, glob and grep may reach."},
    {.name = "write",
     .type = KEY_STRINGS,
     .flags = KEY_RESTRICTS,
     .max = DEF_PATHS_MAX,
     .help = "Path prefixes that write and edit may reach."},
    {.name = "run",
     .type = KEY_STRINGS,
     .flags = KEY_RESTRICTS,
     .max = DEF_PATHS_MAX,
     .help = "Names of the commands that bash may run."},
    {.name = "net",
     .type = KEY_STRINGS,
     .flags = KEY_RESTRICTS,
     .max = DEF_PATHS_MAX,
     .help = "Hosts that may be reached: exact, or *.example.org."},
    {0},
};

static const key_row limit_rows[] = {
    {.name = "minutes",
     .type = KEY_INT,
     .flags = KEY_RESTRICTS,
     .min = 1,
     .max = 10080,
     .dflt = "30",
     .help = "Wall time of a delegation."},
    {.name = "tokens",
     .type = KEY_INT,
     .flags = KEY_RESTRICTS,
     .min = 1,
     .max = 1000000000,
     .dflt = "2000000",
     .help = "Input and output tokens of a delegation together."},
    {.name = "cost",
     .type = KEY_NUMBER,
     .flags = KEY_RESTRICTS,
     .max = 1000000,
     .help = "Price of a delegation, in the unit of the config's `prices`. A model without a price does not "
             "start."},
    {0},
};

static const key_row rows[] = {
    {.name = "name",
     .type = KEY_STRING,
     .min = 1,
     .help = "The file's base name when absent (with a warning). 1 to 64 characters: a letter or digit "
             "first, then letters, digits, marks, blanks, '.', '_', '-'."},
    {.name = "description",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .max = DEF_DESCRIPTION_MAX,
     .help = "The routing label: when a main agent should hand a task to this subagent, and when not."},
    {.name = "tools",
     .type = KEY_NAMES_OR_ALL,
     .flags = KEY_RESTRICTS,
     .max = 64,
     .help = "What it may use: bash read write edit glob grep task_output task_stop WebFetch WebSearch "
             "use_skill todo. The exact scalar `all` needs `resident`."},
    {.name = "skills",
     .type = KEY_NAMES,
     .flags = KEY_RESTRICTS,
     .max = DEF_SKILLS_MAX,
     .help = "Allow-list of skills by name."},
    {.name = "mcp",
     .type = KEY_MAP,
     .flags = KEY_STRICT | KEY_RESTRICTS,
     .sub = mcp_rows,
     .help = "MCP servers it may reach."},
    {.name = "knowledge",
     .type = KEY_MAPS,
     .flags = KEY_STRICT,
     .max = DEF_SOURCES_MAX,
     .sub = source_rows,
     .help = "Manuals that kb_search searches, as name and globs. Read-only."},
    {.name = "memory",
     .type = KEY_ENUM,
     .values = memory_values,
     .dflt = "none",
     .help = "Notes kept between tasks: its own (private), or the workspace's (shared)."},
    {.name = "model",
     .type = KEY_STRING,
     .min = 3,
     .max = 256,
     .help = "provider/model; the provider ends at the first slash. The configured default when absent."},
    {.name = "maxTurns",
     .type = KEY_INT,
     .flags = KEY_RESTRICTS,
     .min = 1,
     .max = DEF_TURNS_MAX,
     .dflt = "60",
     .help = "Model calls of one delegation."},
    {.name = "resident",
     .type = KEY_NAMES,
     .flags = KEY_RESTRICTS,
     .max = 64,
     .help = "Tools or groups offered from the start; the rest is deferred and loaded by name when needed."},
    {.name = "approval",
     .type = KEY_MAP,
     .flags = KEY_STRICT | KEY_RESTRICTS,
     .sub = approval_rows,
     .help = "Calls that ask first."},
    {.name = "permissions",
     .type = KEY_MAP,
     .flags = KEY_STRICT | KEY_RESTRICTS,
     .sub = permission_rows,
     .help = "Narrows what the tools reach. Without the block: the workspace. With it, an absent axis grants "
             "nothing."},
    {.name = "limits",
     .type = KEY_MAP,
     .flags = KEY_STRICT | KEY_RESTRICTS,
     .sub = limit_rows,
     .help = "Budgets beside maxTurns."},
    {.name = "color", .type = KEY_STRING, .max = 64, .help = "Kept for other programs; never interpreted."},
    {.name = "x-*", .type = KEY_ANY, .help = "Kept for other programs; never interpreted."},
    {.name = "prompt",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .min = 1,
     .help = "The body of the system prompt; it goes last and is never changed."},
    {0},
};

#define ERR SEV_ERROR
#define WARN SEV_WARNING
#define PROMPT "write `prompt`"
#define TURNS "write `maxTurns`"
#define SERVERS "write `mcp.servers`: the names of configured servers"
#define KNOWLEDGE "write `knowledge`: a list of {name, path}"
#define LEAVE_OUT "Deputy grants only what `tools` lists: leave the tool out of `tools` and remove this key"
#define READ_ONLY "leave write, edit and bash out of `tools`, and remove this key"
#define NARROW "narrow with `permissions`, and remove this key"
#define ASK "gates are `approval.confirm`; levels are chosen when a delegation starts"
#define SWITCH "`deputy disable NAME` switches a definition off: remove the key"
#define SAMPLING "sampling is the provider's business: remove the key, or keep it with `x-` before its name"
#define CALLER "how a delegation runs is its caller's choice: remove the key"
#define NO_DELEGATION "a subagent hands nothing to others: remove the key"
// Spellings that differ in `_`, `-` and case alone need one row: a near miss of an ERR row is an error too.
static const key_moved moved[] = {
    // Another host's spelling of something harmless.
    {"instructions", PROMPT, WARN},
    {"instruction", PROMPT, WARN},
    {"system", PROMPT, WARN},
    {"system_prompt", PROMPT, WARN},
    {"systemPrompt", PROMPT, WARN},
    {"developer_instructions", PROMPT, WARN},
    {"purpose", PROMPT, WARN},
    {"body", PROMPT, WARN},
    {"handle", "write `name`", WARN},
    {"id", "write `name`", WARN},
    {"title", "write `name`", WARN},
    {"display_name", "write `name`", WARN},
    {"when_to_use", "say it in `description`", WARN},
    {"whenToUse", "say it in `description`", WARN},
    {"mcpServers", SERVERS, WARN},
    {"mcp_servers", SERVERS, WARN},
    {"mcp-servers", SERVERS, WARN},
    {"toolsets", "write `tools`: a list of tool names", WARN},
    {"available", "write `tools`", WARN},
    {"tool", "write `tools`", WARN},
    {"skill", "write `skills`", WARN},
    {"documents", KNOWLEDGE, WARN},
    {"sources", KNOWLEDGE, WARN},
    {"resources", KNOWLEDGE, WARN},
    {"rag", KNOWLEDGE, WARN},
    {"colour", "write `color`", WARN},
    {"temperature", SAMPLING, WARN},
    {"top_p", SAMPLING, WARN},
    {"effort", SAMPLING, WARN},
    {"triggers", "a subagent is started by a delegation: remove the key", WARN},
    {"mode", "every definition is a subagent here: remove the key", WARN},
    {"background", CALLER, WARN},
    {"is_background", CALLER, WARN},
    {"agents", NO_DELEGATION, WARN},
    {"subagents", NO_DELEGATION, WARN},
    {"sub_agents", NO_DELEGATION, WARN},
    {"handoffs", NO_DELEGATION, WARN},
    {"delegates_to", NO_DELEGATION, WARN},
    {"tools.mcp", "write `mcp.servers`", ERR},
    {"tools.custom",
     "there are no custom tools: put the function behind an MCP server and name it in `mcp.servers`, or make "
     "a command line tool and a skill that explains it",
     ERR},
    {"tools.available", "write `tools` as a plain list", ERR},
    {"tools.resident", "write `resident` at the top level", ERR},
    {"tools.confirm", "write `approval.confirm`", ERR},
    {"tools.review", "write `approval.review`", ERR},
    // Another host's restriction: it must not vanish (rule B10).
    {"max_turns", TURNS, ERR},
    {"max_steps", TURNS, ERR},
    {"steps", TURNS, ERR},
    {"max_iterations", TURNS, ERR},
    {"timeout", "write `limits.minutes`", ERR},
    {"timeout_mins", "write `limits.minutes`", ERR},
    {"max_runtime", "write `limits.minutes`", ERR},
    {"max_cost", "write `limits.cost`", ERR},
    {"max_tokens",
     "the length of one answer is the provider's `maxTokens` in the config; a budget is `limits.tokens`",
     ERR},
    {"disallowedTools", LEAVE_OUT, ERR},
    {"disabledTools", LEAVE_OUT, ERR},
    {"deniedTools", LEAVE_OUT, ERR},
    {"blockedTools", LEAVE_OUT, ERR},
    {"excludedTools", LEAVE_OUT, ERR},
    {"deny", LEAVE_OUT, ERR},
    {"exclude", LEAVE_OUT, ERR},
    {"allowedTools", "write `tools`", ERR},
    {"enabledTools", "write `tools`", ERR},
    {"allow", "write `tools`, and narrow with `permissions`", ERR},
    {"permission", "write `permissions` with read, write, run, net", ERR},
    {"toolsSettings", NARROW, ERR},
    {"network", "write `permissions.net`", ERR},
    {"permissionMode", ASK, ERR},
    {"approval_policy", ASK, ERR},
    {"commandExecutionPolicy", ASK, ERR},
    {"readonly", READ_ONLY, ERR},
    {"sandbox", NARROW, ERR},
    {"sandbox_mode", NARROW, ERR},
    {"isolation", NARROW, ERR},
    {"hooks", "hooks of other hosts do not run here: remove the key, or keep it as `x-hooks`", ERR},
    {"enabled", SWITCH, ERR},
    {"disabled", SWITCH, ERR},
    {"disable", SWITCH, ERR},
    {"disable-model-invocation", SWITCH, ERR},
    {"user-invocable", SWITCH, ERR},
    {"confirm", "write `approval.confirm`", ERR},
    {"review", "write `approval.review`", ERR},
    {"approval.confirm", "write `approval:` and below it `confirm:`", ERR},
    {"approval.review", "write `approval:` and below it `review:`", ERR},
    {"permissions.read", "write `permissions:` and below it `read:`", ERR},
    {"permissions.write", "write `permissions:` and below it `write:`", ERR},
    {"permissions.run", "write `permissions:` and below it `run:`", ERR},
    {"permissions.net", "write `permissions:` and below it `net:`", ERR},
    {"mcp.servers", "write `mcp:` and below it `servers:`", ERR},
    {"limits.minutes", "write `limits:` and below it `minutes:`", ERR},
    {"limits.tokens", "write `limits:` and below it `tokens:`", ERR},
    {"limits.cost", "write `limits:` and below it `cost:`", ERR},
    {"mcp.search_mode", "write `mcp.search`", ERR},
    {"knowledge.type", "a source is files; a server goes to `mcp.servers`", ERR},
    {"knowledge.server", "a source is files; a server goes to `mcp.servers`", ERR},
    {"knowledge.ignore", "write `exclude`", ERR},
    {"knowledge.paths", "write `path`: it takes a list too", ERR},
    {"knowledge.glob", "write `path`", ERR},
    {NULL, NULL, WARN},
};

static const key_table table = {
    .title = "Deputy subagent definition",
    .schema_id = "definition.schema.json",
    .what = "definition",
    .rows = rows,
    .moved = moved,
};

const key_table *definition_keys(void) {
    return &table;
}

const char *const *definition_key_order(void) {
    static const char *const order[] = {
        "name",     "description", "tools",       "skills",   "mcp",    "knowledge", "memory", "model",
        "resident", "approval",    "permissions", "maxTurns", "limits", "color",     "prompt", NULL};
    return order;
}

const char *memory_word(def_memory m) {
    return memory_values[m];
}

const def_axis *definition_axis(const definition *def, tool_axis axis) {
    switch (axis) {
    case AXIS_READ: return &def->read;
    case AXIS_WRITE: return &def->write;
    case AXIS_RUN: return &def->run;
    case AXIS_NET: return &def->net;
    case AXIS_NONE: break;
    }
    return NULL;
}

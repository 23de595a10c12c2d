// toolspec: names that other hosts use for tools, and what Deputy calls them. A name without a counterpart
// says why and what to do instead.
#include <deputy/toolspec.h>

static const char no_delegation[] = "a subagent cannot delegate; only the main agent can";
static const char by_dimension[] = "this tool comes with its dimension and is never granted by name";
static const char use_servers[] = "tools of MCP servers are granted by `mcp.servers`, not by name";
static const char no_person[] =
    "a subagent cannot ask the person or open panels; its report is its only voice";

static const tool_foreign foreign[] = {
    {"read_file", "read", NULL},
    {"read_many_files", "read", NULL},
    {"read/readFile", "read", NULL},
    {"view", "read", NULL},
    {"cat", "read", NULL},
    {"NotebookRead", "read", NULL},
    {"write_file", "write", NULL},
    {"create_file", "write", NULL},
    {"edit/createFile", "write", NULL},
    {"new", "write", NULL},
    {"replace", "edit", NULL},
    {"patch", "edit", NULL},
    {"apply_patch", "edit", NULL},
    {"str_replace", "edit", NULL},
    {"str_replace_editor", "edit", NULL},
    {"str_replace_based_edit_tool", "edit", NULL},
    {"MultiEdit", "edit", NULL},
    {"multi_edit", "edit", NULL},
    {"edit/editFiles", "edit", NULL},
    {"edit_file", "edit", NULL},
    {"editFiles", "edit", NULL},
    {"NotebookEdit", "edit", NULL},
    {"LS", "glob", NULL},
    {"list", "glob", NULL},
    {"list_dir", "glob", NULL},
    {"list_directory", "glob", NULL},
    {"find", "glob", NULL},
    {"find_files", "glob", NULL},
    {"search/fileSearch", "glob", NULL},
    {"file_search", "glob", NULL},
    {"search", "grep", NULL},
    {"search/codebase", "grep", NULL},
    {"search/textSearch", "grep", NULL},
    {"codebase", "grep", NULL},
    {"codeSearch", "grep", NULL},
    {"grep_search", "grep", NULL},
    {"search_file_content", "grep", NULL},
    {"ripgrep", "grep", NULL},
    {"rg", "grep", NULL},
    {"shell", "bash", NULL},
    {"sh", "bash", NULL},
    {"terminal", "bash", NULL},
    {"execute", "bash", NULL},
    {"exec", "bash", NULL},
    {"run_bash", "bash", NULL},
    {"run_command", "bash", NULL},
    {"run_shell_command", "bash", NULL},
    {"runCommands", "bash", NULL},
    {"runInTerminal", "bash", NULL},
    {"execute/runInTerminal", "bash", NULL},
    {"local_shell", "bash", NULL},
    {"BashOutput", "task_output", NULL},
    {"TaskOutput", "task_output", NULL},
    {"execute/getTerminalOutput", "task_output", NULL},
    {"KillShell", "task_stop", NULL},
    {"KillBash", "task_stop", NULL},
    {"web_fetch", "WebFetch", NULL},
    {"fetch", "WebFetch", NULL},
    {"web/fetch", "WebFetch", NULL},
    {"http_request", "WebFetch", NULL},
    {"web_search", "WebSearch", NULL},
    {"google_web_search", "WebSearch", NULL},
    {"Skill", "use_skill", NULL},
    {"skills", "use_skill", NULL},
    {"read_skill", "use_skill", NULL},
    {"activate_skill", "use_skill", NULL},
    {"TodoWrite", "todo", NULL},
    {"TodoRead", "todo", NULL},
    {"todos", "todo", NULL},
    {"write_todos", "todo", NULL},
    {"todo_write", "todo", NULL},
    {"update_plan", "todo", NULL},
    {"Task", NULL, no_delegation},
    {"TaskWait", NULL, no_delegation},
    {"TaskList", NULL, no_delegation},
    {"TaskStop", NULL, no_delegation},
    {"Agent", NULL, no_delegation},
    {"delegate", NULL, no_delegation},
    {"spawn_subagent", NULL, no_delegation},
    {"runSubagent", NULL, no_delegation},
    {"kb_search", NULL, "it comes with `knowledge` and is never granted by name"},
    {"memory_write", NULL, "it comes with `memory` and is never granted by name"},
    {"memory_read", NULL, "it comes with `memory` and is never granted by name"},
    {"memory_search", NULL, "it comes with `memory` and is never granted by name"},
    {"memory", NULL, "memory is declared by the key `memory`: none, private or shared"},
    {"save_memory", NULL, "memory is declared by the key `memory`: none, private or shared"},
    {"mcp", NULL, use_servers},
    {"load_tools", NULL, by_dimension},
    {"available_tools", NULL, by_dimension},
    {"read_result", NULL, by_dimension},
    {"AskUserQuestion", NULL, no_person},
    {"ask_user", NULL, no_person},
    {"Question", NULL, no_person},
    {"ExitPlanMode", NULL, no_person},
    {"open_file", NULL, no_person},
    {"open_panel", NULL, no_person},
};

static const tool_foreign mcp_name = {"mcp__", NULL, use_servers};
static const tool_foreign star = {
    "*", NULL, "wildcards are never widened: list the tools, or write `tools: all` with `resident`"};

const tool_foreign *toolspec_foreign(str name) {
    for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
        if (str_ieq(str_z(foreign[i].foreign), name)) return &foreign[i];
    if (str_starts(name, S("mcp__")) || str_starts(name, S("mcp."))) return &mcp_name;
    if (str_chr(name, '*') != SIZE_MAX) return &star;
    return NULL;
}

// cli: the verb table. Dispatch, help and "not yet" read it; a verb without a function is a reserved name.
#include "cli/cli_int.h"

#define END {NULL, OPT_FLAG, NULL, NULL}
#define ID_HELP "ID may be the first four or more digits."

static const cli_opt agents_opts[] = {{"all", OPT_FLAG, NULL, "shadowed definitions too"}, END};
static const cli_opt check_opts[] = {{"strict", OPT_FLAG, NULL, "warnings are errors"},
                                     {"all", OPT_FLAG, NULL, "built-in definitions too"},
                                     END};
static const cli_opt role_opts[] = {{"role", OPT_VALUE, "delegate|main", "the role to assume"}, END};
static const cli_opt prompt_opts[] = {{"parts", OPT_FLAG, NULL, "the parts with their offsets and sizes"},
                                      {"role", OPT_VALUE, "delegate|main", "the role to assume"},
                                      END};
static const cli_opt tools_opts[] = {
    {"api", OPT_VALUE, "API", "the form of that API: anthropic, openai, openai-responses"},
    {"role", OPT_VALUE, "delegate|main", "the role to assume"},
    END};
static const cli_opt schema_opts[] = {{"reference", OPT_FLAG, NULL, "the reference page in Markdown instead"},
                                      END};
static const cli_opt init_opts[] = {
    {"sample", OPT_FLAG, NULL, "make the sample workspace: a product's manual and a customer-service agent"},
    END};
static const cli_opt new_opts[] = {
    {"description", OPT_VALUE, "TEXT", "the routing label"},
    {"prompt", OPT_VALUE, "TEXT", "the body of the system prompt"},
    {"tools", OPT_VALUES, "NAME,…", "what it may use; read,glob,grep when absent"},
    {"skills", OPT_VALUES, "NAME,…", "skills it may load"},
    {"knowledge", OPT_VALUES, "GLOB,…", "files that kb_search searches"},
    {"memory", OPT_VALUE, "private|shared", "notes between tasks"},
    {"model", OPT_VALUE, "P/M", "provider/model"},
    {"system", OPT_FLAG, NULL, "for all workspaces of this user"},
    {"edit", OPT_FLAG, NULL, "open it in $VISUAL or $EDITOR"},
    END};
static const cli_opt copy_opts[] = {{"to", OPT_VALUE, "system|workspace", "where the copy goes"},
                                    {"as", OPT_VALUE, "NEW", "another name"},
                                    END};
static const cli_opt set_opts[] = {{"unset", OPT_FLAG, NULL, "remove KEY"},
                                   {"add", OPT_FLAG, NULL, "append VALUE to the list at KEY"},
                                   {"remove", OPT_FLAG, NULL, "take VALUE out of the list at KEY"},
                                   END};
static const cli_opt fmt_opts[] = {{"check", OPT_FLAG, NULL, "change nothing; exit 1 when it would"}, END};
static const cli_opt rm_opts[] = {{"yes", OPT_FLAG, NULL, "do not ask"}, END};
static const cli_opt trust_opts[] = {{"update", OPT_FLAG, NULL, "only files that were trusted before"}, END};
static const cli_opt search_opts[] = {
    {"agent", OPT_VALUE, "NAME", "the sources of this agent"},
    {"path", OPT_VALUES, "GLOB", "only these files"},
    {"source", OPT_VALUE, "NAME", "only this source"},
    {"limit", OPT_VALUE, "N", "hits; 10 when absent"},
    {"context", OPT_VALUE, "N", "lines before and after"},
    {"count", OPT_FLAG, NULL, "only the number of matching lines"},
    {"queries", OPT_VALUE, "FILE|-", "one query a line, plain or {\"query\": …}; one answer a line"},
    END};
static const cli_opt run_opts[] = {
    {"model", OPT_VALUE, "P/M", "another model for this run"},
    {"description", OPT_VALUE, "TEXT", "a label for people"},
    {"events", OPT_FLAG, NULL, "activity items as JSON lines, the report last"},
    {"role", OPT_VALUE, "delegate|main", "the role to assume"},
    {"unattended", OPT_FLAG, NULL, "nobody answers: gated calls are denied (always so in this version)"},
    {"background", OPT_FLAG, NULL, "print the id and leave it to a process of its own"},
    {"resume", OPT_VALUE, "ID", "continue this one of the same agent, with TASK as the next message"},
    {"level", OPT_VALUE, "L", "not yet"},
    END};
static const cli_opt chat_opts[] = {
    {"model", OPT_VALUE, "P/M", "another model for this conversation"},
    {"resume", OPT_VALUE, "ID|last", "go on with a conversation"},
    {"list", OPT_FLAG, NULL, "list the conversations of this workspace"},
    {"unattended", OPT_FLAG, NULL, "nobody answers: gated calls are denied (always so in this version)"},
    END};
static const cli_opt tasks_opts[] = {{"limit", OPT_VALUE, "N", "newest delegations; 20 when absent"},
                                     {"all", OPT_FLAG, NULL, "turns of main agents too"},
                                     {"thread", OPT_VALUE, "ID", "only of this conversation"},
                                     {"yes", OPT_FLAG, NULL, "rm: do not ask"},
                                     END};
static const cli_opt wait_opts[] = {
    {"any", OPT_FLAG, NULL, "until one of them has ended"},
    {"timeout", OPT_VALUE, "SECONDS", "wait no longer than this; 0 looks once"},
    END};
static const cli_opt stop_opts[] = {{"all", OPT_FLAG, NULL, "all that have not ended in this workspace"},
                                    END};
static const cli_opt memory_opts[] = {{"shared", OPT_FLAG, NULL, "the workspace's shared memory"},
                                      {"limit", OPT_VALUE, "N", "hits of search"},
                                      {"yes", OPT_FLAG, NULL, "do not ask"},
                                      END};
static const cli_opt models_opts[] = {
    {"url", OPT_VALUE, "URL", "base address; the provider's own when absent"},
    {"key-env", OPT_VALUE, "NAME", "environment variable that holds the key"},
    {"api", OPT_VALUE, "API", "anthropic, openai or openai-responses; for a name that is not known"},
    {"model", OPT_VALUE, "MODEL", "add: make this the default model; test: test this one"},
    END};

static const cli_verb table[] = {
    {"agents", "", "list the definitions and what is in effect", NULL, agents_opts, 0, 0, VERB_JSON,
     verb_agents},
    {"check", "[NAME|FILE…]", "check definitions, config and skills",
     "Exit 1 when there are errors. Without names: all of the workspace and of the user.", check_opts, 0, -1,
     VERB_JSON, verb_check},
    {"show", "NAME", "the grant, the report and where each came from", NULL, role_opts, 1, 1, VERB_JSON,
     verb_show},
    {"explain", "NAME [ITEM]", "every rule that made an item available, deferred, gated or absent",
     "Without ITEM: everything that is not in effect.", role_opts, 1, 2, VERB_JSON, verb_explain},
    {"diff", "A B", "reach gained and lost from A to B (names or files)",
     "Exit 1 when reach was gained or a gate was lost.", NULL, 2, 2, VERB_JSON, verb_diff},
    {"prompt", "NAME", "the system prompt, exact bytes", NULL, prompt_opts, 1, 1, VERB_JSON, verb_prompt},
    {"tools", "[NAME]", "the tool array as the model gets it; without NAME the catalogue", NULL, tools_opts,
     0, 1, VERB_JSON, verb_tools},
    {"init", "[DIR]", "make .deputy with a first definition, or --sample", NULL, init_opts, 0, 1, 0,
     verb_init},
    {"new", "NAME", "write a new definition", NULL, new_opts, 1, 1, 0, verb_new},
    {"copy", "NAME", "copy a definition to a layer you can change", NULL, copy_opts, 1, 1, 0, verb_copy},
    {"set", "NAME KEY [VALUE]", "change one value in the file and nothing else",
     "KEY is a dotted path with indexes: mcp.servers.0.name. VALUE is YAML on one line: 60, [read, grep], "
     "{name: crm}.",
     set_opts, 2, 3, 0, verb_set},
    {"fmt", "NAME|FILE", "put a file's keys in order and its tools in canonical spelling", NULL, fmt_opts, 1,
     1, 0, verb_fmt},
    {"rm", "NAME", "remove a definition's file", NULL, rm_opts, 1, 1, 0, verb_rm},
    {"enable", "NAME", "switch a definition on", NULL, NULL, 1, 1, 0, verb_enable},
    {"disable", "NAME", "switch a definition off; it keeps its name", NULL, NULL, 1, 1, 0, verb_disable},
    {"trust", "", "show what this workspace holds and was not accepted, and ask",
     "Without a terminal it shows, changes nothing and exits 3.", trust_opts, 0, 0, VERB_JSON, verb_trust},
    {"search", "[QUERY]", "search the manuals: ranked path:line hits",
     "Lines with any of the words, or another form of one; \"words in quotes\" are one.\n"
     "Exit 0 when something matches, 1 when nothing does, 2 for wrong usage, 4 when nothing can be read.",
     search_opts, 0, -1, VERB_JSON, verb_search},
    {"run", "NAME TASK|-", "delegate a task and print the report",
     "TASK may be - for standard input. Ctrl-C stops and keeps what there is; a second one ends at once.",
     run_opts, 2, 2, VERB_JSON, verb_run},
    {"chat", "[NAME]", "talk to a main agent, which delegates",
     "NAME is `main` when absent. Lines that begin with a slash are commands: /help. Without a terminal each "
     "line of standard input is a message.",
     chat_opts, 0, 1, VERB_JSON, verb_chat},
    {"tasks", "[rm ID…|prune]", "list delegations, newest first, and what they do now",
     "rm removes what is kept of some that have ended, prune what is older than `retention` of the config.",
     tasks_opts, 0, -1, VERB_JSON, verb_tasks},
    {"wait", "[ID…]", "wait until delegations have ended, and print their reports",
     "Without ID: for all that run in this workspace. Exit 0 when all are completed. " ID_HELP, wait_opts, 0,
     -1, VERB_JSON, verb_wait},
    {"stop", "ID…|--all", "stop delegations; what they had is kept",
     "Exit 0 when all have ended, 1 when one has not yet. " ID_HELP, stop_opts, 0, -1, VERB_JSON, verb_stop},
    {"tail", "[ID]", "follow a delegation while it runs, from its beginning",
     "Without ID: all that run. Ctrl-C ends this and not the delegation. With --json one item a "
     "line. " ID_HELP,
     NULL, 0, 1, VERB_JSON, verb_tail},
    {"replay", "ID", "everything a delegation did, with arguments and results", ID_HELP, NULL, 1, 1,
     VERB_JSON, verb_replay},
    {"memory", "list|show|search|edit|rm|where|export NAME [FILE|QUERY]", "an agent's notes",
     "With --shared, NAME is left out.", memory_opts, 1, -1, VERB_JSON, verb_memory},
    {"skills", "", "list the skills and what is not in effect", NULL, NULL, 0, 0, VERB_JSON, verb_skills},
    {"models", "[add NAME|use P/M|test [NAME]]", "the configured providers; add, choose, test",
     "Known by name: anthropic, openai, openai-responses, openrouter, gemini, deepseek, groq, mistral, xai, "
     "and on "
     "this "
     "machine ollama, llama.cpp, lmstudio, vllm.",
     models_opts, 0, 2, VERB_JSON | VERB_ANYWHERE, verb_models},
    {"config", "[path|get [KEY]|set KEY VALUE|unset KEY]", "the settings in effect, and where they come from",
     NULL, NULL, 0, 3, VERB_JSON | VERB_ANYWHERE, verb_config},
    {"schema", "[definition|config|skill|report]", "the JSON Schema of a file", NULL, schema_opts, 0, 1, 0,
     verb_schema},
    {"doctor", "", "what works on this machine, and what does not", NULL, NULL, 0, 0,
     VERB_JSON | VERB_ANYWHERE, verb_doctor},
    {"help", "[VERB]", "this page, or a verb's", NULL, NULL, 0, 1, 0, verb_help},
    {"version", "", "the version", NULL, NULL, 0, 0, 0, verb_version},
    {"_work", "ID", "run a queued delegation", "Started by `run --background`.", NULL, 1, 1, VERB_HIDDEN,
     verb_work},
    // Reserved: their meaning comes later.
    {"approvals", "", "cards that wait for a person", NULL, NULL, 0, -1, 0, NULL},
    {"approve", "ID", "allow a card", NULL, NULL, 0, -1, 0, NULL},
    {"deny", "ID", "refuse a card", NULL, NULL, 0, -1, 0, NULL},
    {"policy", "NAME TOOL ARGS", "what would be decided", NULL, NULL, 0, -1, 0, NULL},
    {"history", "NAME", "versions of a definition", NULL, NULL, 0, -1, 0, NULL},
    {"restore", "NAME VERSION", "bring a version back", NULL, NULL, 0, -1, 0, NULL},
    {"servers", "", "MCP servers", NULL, NULL, 0, -1, 0, NULL},
    {"audit", "[verify]", "the audit trail", NULL, NULL, 0, -1, 0, NULL},
    {"mcp", "[--as NAME]", "serve over MCP", NULL, NULL, 0, -1, 0, NULL},
    {"serve", "", "the web page", NULL, NULL, 0, -1, 0, NULL},
    {"install", "HOST", "connect a host", NULL, NULL, 0, -1, 0, NULL},
    {NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL},
};

const cli_verb *const cli_verbs = table;

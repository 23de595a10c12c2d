// Shared by the verbs: options as a table, one context, one way to print and to fail.
#pragma once
#include <deputy/buf.h>
#include <deputy/cli.h>
#include <deputy/delegate.h>
#include <deputy/diag.h>
#include <deputy/host.h>
#include <deputy/json.h>
#include <deputy/prompt.h>
#include <deputy/utf8.h>
#include <stdio.h>

typedef enum { OPT_FLAG, OPT_VALUE, OPT_VALUES } opt_kind;
typedef struct {
    const char *name; // "json": --json
    opt_kind kind;
    const char *arg; // what the value is: "DIR"
    const char *help;
} cli_opt;

enum { CLI_OPTS_MAX = 16 };

typedef struct cli cli;
enum {
    VERB_JSON = 1,     // takes --json
    VERB_HIDDEN = 4,   // Deputy's own: in no list
    VERB_ANYWHERE = 2, // about the user's settings: works in home too, which is no workspace by itself
};
typedef struct {
    const char *name;
    const char *usage;      // "NAME [ITEM]"
    const char *summary;    // one line
    const char *detail;     // more, for --help; NULL: nothing more
    const cli_opt *opts;    // ends with name NULL; --help and --json (with VERB_JSON) are added
    int min_args, max_args; // max -1: any number
    unsigned flags;
    int (*run)(cli *c); // NULL: not yet
} cli_verb;

struct cli {
    arena *a;
    const cli_args *in;
    const cli_verb *verb;
    str dir; // -C
    strs args;
    strs values[CLI_OPTS_MAX]; // by option index; a flag has one empty value
    bool json, color_out, color_err;
    workspace *w;
    diags shown; // diagnostics of the workspace, printed once
};

extern const cli_verb *const cli_verbs; // ends with name NULL

// By name or a beginning that only one has; prints and returns NULL otherwise.
const cli_verb *find_verb(cli *c, str name);

// --- Options -------------------------------------------------------------------------------------
bool opt_has(const cli *c, const char *name);
str opt_get(const cli *c, const char *name, str dflt); // the last one given
strs opt_all(const cli *c, const char *name);          // repeated, each split at commas
str arg(const cli *c, size_t i);                       // empty when absent
// --role, else the role that the definition (NULL: any) has; prints and returns false otherwise.
bool opt_role(cli *c, const definition *def, agent_role *ret);
// A whole number option within bounds; prints and returns false otherwise.
bool opt_int(cli *c, const char *name, int64_t dflt, int64_t min, int64_t max, int64_t *ret);

// --- Output --------------------------------------------------------------------------------------
// Human-readable text is built with these: words of ours by text(), everything else by safe(), which escapes
// for terminals (rule B23).
void out_exact(str bytes); // stdout, as it is
void out_buf(buf *b);
static inline void text(buf *b, const char *s) {
    buf_add(b, str_z(s));
}
static inline void safe(buf *b, str s) {
    term_add(b, s, false);
}
void cell(buf *b, str s, size_t width);  // safe, cut or padded to columns
void brief(buf *b, str s, size_t chars); // safe, on one line, cut with a mark
void say(cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3))); // stderr, one escaped line
void paint(buf *b, bool color, const char *sgr, str s);
void print_diags(cli *c, const diags *d); // stderr
// Members of a JSON object: a limit as a number or "unlimited", an amount as a number or null for none.
void limit_json(jw *w, str key, int64_t v);
void cost_json(arena *a, jw *w, int64_t micro);

// --- Failing -------------------------------------------------------------------------------------
int fail(cli *c, const dep_err *err); // prints "deputy: …", gives the exit code of the status
int exit_code(dep_status s);
int fail_with(cli *c, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int usage_error(cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// --- The workspace -------------------------------------------------------------------------------
// Opens it once; prints its diagnostics on stderr when `loud`. EXIT_FINE or the exit code.
int need_workspace(cli *c, bool loud);
int need_agents(cli *c);
// A definition's file that was named by its path. The file itself may not be a link: its lines are quoted
// (rule B1).
[[nodiscard]] dep_status read_named(cli *c, str path, str *bytes, dep_err *err);
// An effective agent by name; prints and gives the exit code otherwise.
int need_agent(cli *c, str name, agent_entry **ret);
// As need_agent, but also one that is not in effect (to look at, to repair).
int find_agent(cli *c, str name, agent_entry **ret);
// NAME|FILE: a file rather than a definition's name.
bool looks_like_file(str s);
// Asks y/N on /dev/tty: 1 yes, 0 no, -1 there is no terminal. shown: what the question is about, as far as
// the terminal has not shown it yet: who answers must have seen it, also when the listing went to a pipe.
int ask(cli *c, str shown, str question);
// Opens a file in $VISUAL or $EDITOR and waits. EXIT_FINE when it ended well; else prints.
const char *editor_command(const cli *c); // NULL: none is set
int run_editor(cli *c, str path);
enum { EDIT_LOCK_MS = 10000 }; // how long a change waits for another one in the same folder
// Writes a definition file of a layer and records that it is trusted, if it was, or is new. was: the bytes
// that it must still have (BUSY otherwise); NULL: a new file.
[[nodiscard]] dep_status save_definition(cli *c, def_layer layer, str base, str bytes, const str *was,
                                         bool was_trusted, str *shown, dep_err *err);
const char *role_name(agent_role r);
// A provider whose key stands in the environment and that is not configured; NULL: none. var: the key's
// variable.
const char *provider_waiting(const cli *c, const char **var);
// The schema that a definition's first line names, for editors; one that is there stays.
[[nodiscard]] dep_status put_schema(cli *c, def_layer layer, dep_err *err);
// Shows these files whole (print: on standard output too), asks, and records what was accepted. EXIT_REFUSED
// without a yes.
int trust_files(cli *c, const untrusted_files *files, bool print, str question);
// A switch belongs to an identity: it follows a rename, and goes with the file (to: empty).
void switch_move(cli *c, def_layer layer, str from, str to);

// --- Verbs, by file ------------------------------------------------------------------------------
int verb_agents(cli *c), verb_check(cli *c);                      // list.c, check.c
int verb_show(cli *c), verb_explain(cli *c), verb_diff(cli *c);   // show.c
int verb_prompt(cli *c), verb_tools(cli *c), verb_schema(cli *c); // prompt.c
int verb_init(cli *c);                                            // init.c
int verb_new(cli *c), verb_copy(cli *c), verb_set(cli *c), verb_fmt(cli *c),
    verb_rm(cli *c);                                                            // write.c, edit.c
int verb_enable(cli *c), verb_disable(cli *c), verb_trust(cli *c);              // trust.c
int verb_search(cli *c);                                                        // search.c
int verb_run(cli *c), verb_tasks(cli *c), verb_replay(cli *c);                  // run.c, tasks.c, replay.c
int verb_wait(cli *c), verb_stop(cli *c), verb_tail(cli *c), verb_work(cli *c); // wait.c, tail.c, worker.c
int verb_chat(cli *c);                                                          // chat.c
int verb_memory(cli *c);                                                        // memory.c
int verb_models(cli *c), verb_config(cli *c);                                   // models.c, config.c
int verb_skills(cli *c), verb_doctor(cli *c), verb_help(cli *c),
    verb_version(cli *c); // skills.c, doctor.c, help.c

void print_help(const cli_verb *v, FILE *to);
void print_overview(FILE *to);

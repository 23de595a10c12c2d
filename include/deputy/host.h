// host: the workspace as it is. Finds its root, reads config, layers, switches, trust, skills and memory,
// decides which definition is in effect, and fills the plain `host` value for resolve(). All impurity of
// resolution is here.
#pragma once
#include <deputy/arena.h>
#include <deputy/capability.h>
#include <deputy/config.h>
#include <deputy/definition.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/memory.h>
#include <deputy/search.h>
#include <deputy/skills.h>
#include <deputy/store.h>
#include <deputy/sys.h>
#include <deputy/trust.h>
#include <pthread.h>

typedef struct {
    str dir; // -C, or empty: found from cwd
    const char *(*getenv)(const char *name);
    const sys_clock *clock;
    const bool *bodies;     // by toolspec index: the tools that have a body in this program
    search_cache *searches; // may be NULL; must outlive the workspace
} workspace_opts;

typedef enum { AGENT_EFFECTIVE, AGENT_SHADOWED, AGENT_INVALID, AGENT_DISABLED, AGENT_UNTRUSTED } agent_state;
const char *agent_state_name(agent_state s);

typedef struct {
    definition def;
    ydoc *doc;
    diags diags;
    agent_state state;
    str reason; // why it is not in effect: "duplicate of …", "confusable", "switched off", "never trusted", …
    str shadowed_by; // file of the winner
    trust_state trust;
    str old_reach;   // recorded reach, when trust is TRUST_CHANGED
    bool holds_name; // no farther one takes over its name
} agent_entry;

typedef struct workspace workspace;
struct workspace {
    arena *a;
    str root;      // absolute path
    int fd;        // its directory, held
    int memory_fd; // where memory lives: the main checkout in a linked worktree
    str memory_root;
    sys_dirs dirs;
    const char *(*getenv)(const char *name);
    const sys_clock *clock;
    const bool *bodies;
    config config;
    diags diags; // of config, layers, trust: not of one definition
    trust_list *trust;
    trust_list *memory_trust; // of memory_root; the same list unless this is a linked worktree
    store *store;             // opened on demand: workspace_store
    settings settings;        // switches
    VEC(agent_entry) agents;  // in order of layer, then file name
    bool agents_loaded, skills_loaded, trust_writable;
    skill_list skills;
    diags skill_diags;
    memory_guard *guard, *own_guard; // of memory_root; of root where that is another place
    pthread_mutex_t lock;            // workspace_lock
    struct workspace_stamps *stamps; // workspace_stamp; NULL: never taken
    int64_t opened_ms;               // of the real clock
    search_cache *searches; // of knowledge; whoever opened the workspace may set it and owns it. NULL: none
    str guard_fault; // why what is memory cannot be told, so that every file counts as memory; else empty
};

// Root: dir, else the nearest ancestor of cwd with an entry .deputy or .git, else cwd. /, home and what is
// above home only when named: INVALID ("name it with -C"). Git configuration never moves it (rule B3). The
// result lives in `a`.
[[nodiscard]] dep_status workspace_open(arena *a, const workspace_opts *o, workspace **ret, dep_err *err);
// A workspace value belongs to one thread at a time: several may share it when each holds this lock, which
// the same thread may take again, around what reads or asks it. workspace_is_memory takes it by itself.
void workspace_lock(workspace *w);
void workspace_unlock(workspace *w);
// Loads the definitions, and remembers what the files that decide what is here look like: config,
// definitions, lists of trust, and skills when they have been loaded.
[[nodiscard]] dep_status workspace_stamp(workspace *w, dep_err *err);
// Has one of them changed since, come or gone? Also true without a stamp, and for a while after a change that
// was so fresh that a second one would not show.
bool workspace_changed(const workspace *w);
// Loads definitions of all layers and decides their states. Once per workspace value.
[[nodiscard]] dep_status workspace_agents(workspace *w, dep_err *err);
[[nodiscard]] dep_status workspace_skills(workspace *w, dep_err *err);
// The state database; read_only: NULL when there is none yet.
[[nodiscard]] dep_status workspace_store(workspace *w, bool read_only, dep_err *err);

// Opens both lists of trust for writing, before something that Deputy writes is recorded.
[[nodiscard]] dep_status workspace_trust_writable(workspace *w, dep_err *err);

// The entry that holds the name. Errors: NOT_FOUND with the nearest name; REFUSED (exit 3) when the holder is
// not effective, saying why and what to type. The entry is set in both REFUSED and OK cases.
[[nodiscard]] dep_status workspace_agent(workspace *w, str name, agent_entry **ret, dep_err *err);

// The switch of a definition: "on", "off" or empty. Setting it to empty removes it; states that were decided
// stay as they are.
str workspace_switch(const workspace *w, def_layer layer, str identity);
[[nodiscard]] dep_status workspace_switch_set(workspace *w, def_layer layer, str identity, str value,
                                              dep_err *err);

typedef struct {
    bool count_sources; // walk the knowledge globs
    bool memory_block;  // read the resident block
    str model;          // of this run alone: the grant's model, price and refusal are of it; empty: none
    bool agents;        // list the definitions that a main agent may hand tasks to
} host_opts;
[[nodiscard]] dep_status workspace_host(arena *a, workspace *w, const definition *def, const host_opts *o,
                                        host *ret, dep_err *err);
// resolve() for an entry with the host value of this workspace. What it gives lives in `a`, but for the texts
// of definitions, skills and config, which are the workspace's.
[[nodiscard]] dep_status workspace_grant(arena *a, workspace *w, const definition *def, agent_role role,
                                         const host_opts *o, grant *ret, diags *d, dep_err *err);
static inline agent_role role_of(const definition *def) {
    return str_eq(def->identity, (str)S_INIT("main")) ? ROLE_MAIN : ROLE_DELEGATE;
}

// The memory scope of a definition; create as memory_open. *ret NULL when not there and not create.
[[nodiscard]] dep_status workspace_memory(arena *a, workspace *w, const definition *def, bool create,
                                          memory_scope **ret, dep_err *err);
// Rule B2, of an opened file or directory; true for everything when guard_fault says why.
bool workspace_is_memory(void *w, const struct stat *st);
// The same for many files at once: a number that stands for what memory holds now, and the answer as it was
// when that number was last asked for. When the number is the same before the files are opened and after it,
// the answers were right throughout.
uint64_t workspace_memory_epoch(void *w);
bool workspace_was_memory(void *w, const struct stat *st);
// memory_path() at any depth: also the memory of a workspace that lies within this one.
bool workspace_memory_path(str path);

// Files of the workspace as trust names them: relative paths. Records bytes that Deputy itself wrote. Only
// when new or trusted before (`was`).
[[nodiscard]] dep_status workspace_record(workspace *w, str file, str bytes, str reach, dep_err *err);

typedef struct {
    str file, kind; // definition, skill, config, memory
    str sha256, reach, old_reach, summary;
    trust_state state;
} untrusted_file;
typedef VEC(untrusted_file) untrusted_files;
// Everything in the workspace that is not trusted.
[[nodiscard]] dep_status workspace_untrusted(workspace *w, untrusted_files *ret, dep_err *err);

// The directory of a writable layer (made when absent), for new, copy, set, rm.
[[nodiscard]] dep_status workspace_layer_dir(workspace *w, def_layer layer, bool create, int *ret, str *shown,
                                             dep_err *err);

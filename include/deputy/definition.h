// definition: one subagent as one YAML file. Parsing collects every fault with its place; what a file does
// not declare is not in the struct. Knows nothing of what exists on this machine: that is `host`, and putting
// the two together is `capability`.
#pragma once
#include <deputy/arena.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/keytab.h>
#include <deputy/toolspec.h>
#include <deputy/yaml.h>

enum {
    DEF_NAME_CHARS = 64,
    DEF_NAME_BYTES = 120,
    DEF_FILE_MAX = 256 * 1024,
    DEF_FILES_MAX = 1000, // per layer
    DEF_SKILLS_MAX = 16,
    DEF_SERVERS_MAX = 16,
    DEF_SOURCES_MAX = 12,
    DEF_PATHS_MAX = 32, // globs of one source, prefixes of one axis
    DEF_GATES_MAX = 64,
    DEF_TURNS_DEFAULT = 60,
    DEF_TURNS_MAX = 10000,
    DEF_DESCRIPTION_MAX = 8192, // code points
};

typedef struct {
    str file; // as shown to people
    uint32_t line, column;
} def_place;

typedef struct {
    str name;
    def_place at;
} def_name;

typedef enum {
    LAYER_WORKSPACE,
    LAYER_WORKSPACE_ECOSYSTEM,
    LAYER_SYSTEM,
    LAYER_USER_ECOSYSTEM,
    LAYER_BUILTIN,
    LAYER_PLUGIN
} def_layer;
const char *layer_name(def_layer l); // "workspace", …

typedef enum { DEF_MEMORY_NONE, DEF_MEMORY_PRIVATE, DEF_MEMORY_SHARED } def_memory;
typedef enum { MCP_SEARCH_AUTO, MCP_SEARCH_ON, MCP_SEARCH_OFF } def_mcp_search;

typedef struct {
    str name;
    strs include; // empty with has_include: nothing is included
    bool has_include, readonly;
    def_place at;
} def_server;

typedef struct {
    str name;
    strs path, exclude;
    str encoding;
    def_place at;
} def_source;

typedef struct {
    str text;         // as written, or "mcp.<server>.<tool>" for the map form
    str server, tool; // of the map form
    bool is_map;
    def_place at;
} def_gate;

typedef struct {
    bool present; // the axis stands in the block
    strs entries;
    def_place at;
} def_axis;

typedef struct {
    // Identity
    str name;     // NFC
    str identity; // folded: the key of look-ups, shadowing, folders
    str description, prompt, model, color;
    bool name_from_file;
    def_place name_at, description_at, prompt_at, model_at;
    // Tools
    bool tools_all;
    struct {
        const tool_spec *tool;
        def_place at;
    } tools[32];
    size_t n_tools;
    // Other dimensions
    VEC(def_name) skills;
    VEC(def_server) servers;
    bool has_mcp;
    def_mcp_search mcp_search;
    def_place mcp_search_at;
    VEC(def_source) sources;
    def_memory memory;
    def_place tools_at, memory_at;
    // Residency
    bool has_resident;
    VEC(def_name) resident;
    def_place resident_at;
    // Gates
    bool has_confirm, has_review;
    VEC(def_gate) confirm, review;
    // Permissions: no block, or one with any of the axes
    bool has_permissions;
    def_place permissions_at;
    def_axis read, write, run, net;
    // Budgets; 0: not declared
    int64_t max_turns, minutes, tokens;
    int64_t cost_micro; // millionths, in the unit of the config's prices
    def_place max_turns_at, minutes_at, tokens_at, cost_at;
    // Where it came from
    def_layer layer;
    str file;   // as shown: "agents/x.yaml" relative to the workspace, or a full path, or
                // "builtin:explorer.yaml"
    str base;   // file name in its layer's directory
    str text;   // the exact bytes
    str sha256; // of them
    bool valid; // no errors: only then may it run
} definition;

// The block of an axis, whether it is present or not; NULL for AXIS_NONE.
const def_axis *definition_axis(const definition *def, tool_axis axis);
const char *memory_word(def_memory m); // "none", "private", "shared": as in the file

// The key table: parser, schema, reference and editors read it.
const key_table *definition_keys(void);
const char *const *definition_key_order(void);

// Parses the bytes of one file. Never fails for what the text holds: faults go to `d`, and `ret->valid` says
// whether it may run. An invalid one keeps its name (from the text where it can be read, else the base name).
// file: for diagnostics. Codes DEF001… in src/definition/definition_int.h.
[[nodiscard]] dep_status definition_parse(arena *a, str file, str base, def_layer layer, str bytes,
                                          bool strict, definition *ret, ydoc **doc, diags *d, dep_err *err);
// Rules that hold at save only: knowledge needs read, …; adds errors to d.
void definition_check_save(const definition *def, const ydoc *doc, diags *d);

// A name's rules (DESIGN section 5): OK, or INVALID with the reason. identity may be NULL.
[[nodiscard]] dep_status name_check(arena *a, str name, str *nfc, str *identity, dep_err *err);
// Rule B9: mixed scripts that UTS #39 Highly Restrictive refuses; and the confusable skeleton, equal for
// look-alikes.
bool name_mixed_scripts(str identity);
str name_skeleton(arena *a, str identity);
// File name for a new definition, from the identity: "customer-service.yaml".
str definition_file_name(arena *a, str identity);

// Text of a new, commented definition.
typedef struct {
    str name, description, prompt, model, schema_path;
    strs tools, knowledge, skills;
    str memory;
} definition_new_opts;
str definition_text(arena *a, const definition_new_opts *o);
// The whole definition in canonical order and spelling (`fmt`): comments are kept where they stand before a
// top-level key.
[[nodiscard]] dep_status definition_format(arena *a, const ydoc *doc, str *ret, dep_err *err);

// What a valid file may reach, as canonical JSON: tools, skills, servers, knowledge, memory, permissions,
// gates; its form is in src/definition/reach.c. Stored with trust.
str definition_reach(arena *a, const definition *def);
typedef struct {
    strs gained, lost, gates_gained, gates_lost;
} reach_diff;
// old, new: reach JSON; empty counts as nothing, and so does what has another form. A gate that is lost is
// also growth, unless another one holds as much, or all that it gated is gone.
[[nodiscard]] dep_status reach_compare(arena *a, str old_reach, str new_reach, reach_diff *ret, dep_err *err);
static inline bool reach_grew(const reach_diff *d) {
    return d->gained.n || d->gates_lost.n;
}

// One file of a layer's directory.
typedef struct {
    str base, bytes;
    str fault; // why it could not be read, else empty
} layer_file;
typedef VEC(layer_file) layer_files;
// Reads *.yaml and *.yml of an open directory, sorted by name; other files are ignored (README, backups,
// dot-files, directories). Links are refused (a row with fault). At most DEF_FILES_MAX; the rest is one row
// with a fault.
[[nodiscard]] dep_status layer_read(arena *a, int dir, layer_files *ret, dep_err *err);

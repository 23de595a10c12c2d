// Shared by the files of this room: the closure, and the shape of a body.
#pragma once
#include <deputy/file.h>
#include <deputy/glob.h>
#include <deputy/json.h>
#include <deputy/knowledge.h>
#include <deputy/tools.h>

typedef struct {
    str path;    // normal form; "" is the workspace
    int fd;      // the directory itself, or the directory that holds the file
    str name;    // of the file in it; empty: path is a directory
    str missing; // why it is not held, or empty
} held_prefix;

typedef struct {
    glob_pat *g;
    bool covers; // what it matches may be a directory, and goes with all that is below it
} held_exclude;

typedef struct {
    VEC(glob_pat *) include;
    VEC(held_exclude) exclude;
} held_source;

struct toolset {
    arena *a;
    workspace *w;
    const definition *def;
    const grant *g;
    VEC(held_prefix) prefixes; // permissions.read; empty and !bounded: the workspace
    VEC(held_source) sources;  // declared knowledge stays readable where read is granted
    memory_scope *memory;
    str todo; // the list as JSON text
};

typedef struct {
    toolset *t;
    arena *turn;
    const tool_env *env;
    const grant_tool *tool;
    const json *args;
    buf *out;
    tool_result *result;
    int64_t deadline; // of the workspace's clock, milliseconds
} tool_ctx;

typedef dep_status tool_body(tool_ctx *c, dep_err *err);
tool_body tool_read, tool_glob, tool_grep, tool_use_skill, tool_todo, tool_kb_search, tool_memory_write,
    tool_memory_read, tool_memory_search, tool_available_tools, tool_load_tools, tool_task, tool_task_wait,
    tool_task_list, tool_task_stop, tool_read_result;

// --- access.c: which files the file tools may open -----------------------------------------------
typedef struct {
    int fd;
    struct stat st;
    str rel;
} opened_file;
[[nodiscard]] dep_status access_prepare(toolset *t, dep_err *err);
// A path argument in normal form: relative, or absolute below the workspace. "" and "." are the workspace.
[[nodiscard]] dep_status access_path(const toolset *t, arena *a, str arg, str *rel, dep_err *err);
// Opens a regular file for reading. Refusals say what bounds the agent. The caller closes fd.
[[nodiscard]] dep_status access_open(toolset *t, arena *a, str rel, opened_file *ret, dep_err *err);
// path below root: true, and *rest is what stands behind root, without slashes before it.
bool access_below_root(str root, str path, str *rest);
bool access_allowed(const toolset *t, str rel); // a file of that path may be opened, as far as the path tells
bool access_may_descend(const toolset *t, str rel); // a directory may hold allowed files

// --- walk.c: files of the workspace in order, as glob and grep see them --------------------------
typedef struct {
    str start;               // directory (or file) to start from, normal form, "" for the workspace
    const glob_pat *pattern; // files must match; NULL: all
    str text;                // of the pattern
    bool (*file)(void *ctx, str rel, const struct stat *st); // false stops
    void *ctx;
    size_t files, ignored; // counted
    size_t skipped;        // directories that could not be listed, or are too deep
    size_t sensitive;      // files left out by rule B5
    size_t links;          // that lead to a directory, or to what may not be opened
    bool over;             // TOOL_WALK_FILES_MAX was reached
    bool late, cancelled;
} tool_walk;
[[nodiscard]] dep_status walk_files(tool_ctx *c, tool_walk *w, dep_err *err);
// What a walk left out, one line each.
void walk_summary(const tool_walk *w, buf *out);

bool ctx_cancelled(const tool_ctx *c);
bool ctx_late(const tool_ctx *c); // TOOL_SECONDS_MAX are over

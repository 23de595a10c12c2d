// memory: scopes of Markdown notes that an agent keeps. A scope is a directory held open since it was resolved (rule B1: no links at all);
// no function takes a directory or a scope name from a tool's arguments.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/search.h>
#include <deputy/str.h>
#include <deputy/sys.h>
#include <deputy/trust.h>

enum {
    MEMORY_WRITE_MAX = 16 * 1024,     // bytes of one write
    MEMORY_FILE_MAX = 256 * 1024,     // bytes of a file
    MEMORY_FILES_MAX = 200,           // files of a scope
    MEMORY_SCOPE_MAX = 4 * 1024 * 1024,
    MEMORY_BLOCK_CHARS = 12000,       // resident block in the prompt
    MEMORY_RESIDENT_CHARS = 4000,     // of one file in the block
    MEMORY_LOCK_MS = 10000,
    MEMORY_NAME_MAX = 64,             // code points of a file name
};

typedef enum { MEMORY_PRIVATE, MEMORY_SHARED } memory_kind;

// "<identity>" for the workspace layer, "<identity>@system", "@builtin", …; shared: ".deputy/memory". Relative to the workspace root.
str memory_dir(arena *a, memory_kind kind, str identity, str layer);

typedef struct memory_scope memory_scope;
// Opens the scope's directory beneath the workspace root; create: make it when absent (with .deputy/.gitignore if .deputy is made). Not there and not create: *ret = NULL, OK.
// trust may be NULL (everything is trusted: tests). label: how files are named in trust and to people (the relative directory).
// Errors: REFUSED naming the component that is a link, or has another owner.
[[nodiscard]] dep_status memory_open(arena *a, int root, str dir, bool create, trust_list *trust, const sys_clock *clock, memory_scope **ret, dep_err *err);

typedef struct {
    str name;      // "MEMORY.md" or "daily/2026-11-30.md"
    size_t bytes;
    int64_t mtime_ms;
    bool resident; // root *.md
    str withheld;  // why it is not used: "untrusted: changed outside Deputy", "symbolic link", "several links", "other owner"; else empty
} memory_file;
typedef VEC(memory_file) memory_files;
// MEMORY.md first, then by name, then daily/.
[[nodiscard]] dep_status memory_list(arena *a, memory_scope *m, memory_files *ret, dep_err *err);

typedef struct {
    str delegation, agent, model; // for the entry header; empty: a person
    bool overwrite;
} memory_write_opts;
typedef struct {
    str file, sha256; // version: of the whole file after the write
    size_t bytes;     // size of the file now
    size_t resident_chars; // how many characters of it the prompt block would show
    str excerpt;      // first 200 characters written
} memory_written;
// Appends (an entry header `<!-- deputy: 2026-11-30T12:00:00Z delegation=… agent=… model=… -->` made by Deputy, a blank line before it) or overwrites.
// Content that imitates a header has it escaped. Holds <dir>/.lock, then opens the file by name; append is read + replace or O_APPEND such that a reader never sees a torn or empty file.
// Records trust for the new bytes if the file was new or trusted before; refuses untrusted files. file empty: MEMORY.md.
[[nodiscard]] dep_status memory_write(arena *a, memory_scope *m, str file, str content, const memory_write_opts *o, memory_written *ret, dep_err *err);
// A whole file; for a person also an untrusted one.
[[nodiscard]] dep_status memory_read(arena *a, memory_scope *m, str file, bool trusted_only, str *ret, dep_err *err);
// Replaces a file's bytes as a person edited them (no header).
[[nodiscard]] dep_status memory_replace(arena *a, memory_scope *m, str file, str bytes, dep_err *err);
[[nodiscard]] dep_status memory_remove(memory_scope *m, str file, dep_err *err);
// Same engine as kb_search, over trusted files, daily/ included.
[[nodiscard]] dep_status memory_search(arena *a, memory_scope *m, str query, size_t limit, bool (*cancelled)(void *), void *ctx, search_result *ret, dep_err *err);
// Valid names: a letter or digit first, then letters, digits, marks, '.', '_', blank, '-', ending in ".md"; optionally below "daily/".
bool memory_name_ok(str file);

typedef struct {
    str name;
    str text;  // newest whole entries that fit MEMORY_RESIDENT_CHARS, or all
    size_t chars, shown;
} memory_shown;
typedef struct {
    VEC(memory_shown) files;  // MEMORY.md first, then newest write first
    VEC(str) left_out;        // names that did not fit the block
    VEC(memory_file) withheld;
} memory_block;
// The snapshot for the prompt. Never fails for what a file holds.
[[nodiscard]] dep_status memory_resident(arena *a, memory_scope *m, memory_block *ret, dep_err *err);

// (device, inode) of the two memory trees and of every file in them that has more than one link, so that no other tool reads them (rule B2).
typedef struct memory_guard memory_guard;
[[nodiscard]] dep_status memory_guard_make(arena *a, int root, memory_guard **ret, dep_err *err);
// True when this opened file or directory belongs to memory. Directories of the trees are compared by inode, files by any of their parents being walked.
bool memory_guard_hit(const memory_guard *g, const struct stat *st);
// True for ".deputy/memory", ".deputy/agent-memory" and anything below, whatever the spelling (normal form).
bool memory_path(str path);

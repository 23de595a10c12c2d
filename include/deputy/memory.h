// memory: scopes of Markdown notes that an agent keeps. A scope is a directory held open since it was
// resolved (rule B1: no links at all); no function takes a directory or a scope name from a tool's arguments.
//
// Writers hold DIR/.lock and replace whole files (temporary, fsync, rename), so readers need no lock:
// whenever they open a file they get one whole version of it. A scope belongs to one thread; several scopes
// of one directory, in one process or in many, work together.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/search.h>
#include <deputy/str.h>
#include <deputy/sys.h>
#include <deputy/trust.h>
#include <deputy/utf8.h>

enum {
    MEMORY_WRITE_MAX = 16 * 1024, // bytes of one write
    MEMORY_FILE_MAX = 256 * 1024, // bytes of a file
    MEMORY_FILES_MAX = 200,       // files of a scope
    MEMORY_SCOPE_MAX = 4 * 1024 * 1024,
    MEMORY_BLOCK_CHARS = 12000,   // resident block in the prompt
    MEMORY_RESIDENT_CHARS = 4000, // of one file in the block
    MEMORY_LOCK_MS = 10000,
    MEMORY_NAME_MAX = 64,       // code points of a file name
    MEMORY_ENTRIES_MAX = 4096,  // names in a directory of a scope, whatever they are
    MEMORY_EXCERPT_CHARS = 200, // of memory_written.excerpt
    MEMORY_GUARD_MAX = 20000,   // files and directories of the two trees
    MEMORY_GUARD_DEPTH = 16,
};

typedef enum { MEMORY_PRIVATE, MEMORY_SHARED } memory_kind;

// Relative to the workspace root. Shared: ".deputy/memory". Private: ".deputy/agent-memory/KEY", KEY being
// the identity for the workspace layer (layer empty or "workspace") and "<identity>@<layer>" for the others
// ("@system",
// "@builtin", …). Empty when identity or layer could not be one component of a path, or hold an '@'.
str memory_dir(arena *a, memory_kind kind, str identity, str layer);

typedef struct memory_scope memory_scope;
// Opens the scope's directory beneath the workspace root; create: make it when absent (0700), and
// .deputy/.gitignore with it. Not there and not create: *ret = NULL, OK. trust may be NULL (everything is
// trusted: tests); dir is also how files are named in trust and to people. clock NULL: the real one. Errors:
// INVALID when dir is no memory directory; REFUSED naming the component that is a link, no directory, or has
// another owner; IO.
[[nodiscard]] dep_status memory_open(arena *a, int root, str dir, bool create, trust_list *trust,
                                     const sys_clock *clock, memory_scope **ret, dep_err *err);
// Writes .gitignore with both memory directories into an open .deputy directory, unless there is one.
[[nodiscard]] dep_status memory_gitignore(int deputy_dir, dep_err *err);

typedef struct {
    str name; // "MEMORY.md" or "daily/2026-11-30.md"
    size_t bytes;
    int64_t mtime_ms;
    bool resident; // root *.md
    // Why it is not used, or empty: "untrusted: changed outside Deputy", "untrusted: not written by Deputy",
    // "symbolic link", "several links", "other owner", "not a regular file", "over 256 KiB", "more than 200
    // files", "name not allowed", "cannot be read".
    str withheld;
} memory_file;
typedef VEC(memory_file) memory_files;
// MEMORY.md first, then by name, then daily/. Everything that is there but names beginning with a dot, used
// or not. Errors: IO; LIMIT for a directory with more than MEMORY_ENTRIES_MAX names.
[[nodiscard]] dep_status memory_list(arena *a, memory_scope *m, memory_files *ret, dep_err *err);

typedef struct {
    str delegation, agent, model; // for the entry header; all empty: a person
    bool overwrite;
    bool no_wait; // BUSY at once when another process holds the scope's lock, instead of after MEMORY_LOCK_MS
} memory_write_opts;
typedef struct {
    str file, sha256;      // version: of the whole file after the write
    size_t bytes;          // size of the file now
    size_t resident_chars; // how many characters of it the prompt block would show; 0 below daily/
    str excerpt;           // first MEMORY_EXCERPT_CHARS characters of what was written, the header apart
} memory_written;
// Appends an entry, or overwrites the file with one. Deputy makes its header, a blank line before it when the
// file is not empty:
//   <!-- deputy: 2026-11-30T12:00:00Z delegation=… agent=… model=… -->
// Content that imitates a header, in whatever letters, has its '<' written `&lt;`; a line feed ends it. file
// empty: MEMORY.md. Records trust for the new bytes if the file was new or trusted before. Durable on return;
// on failure nothing has changed. Errors: INVALID name, blank content to append, or a name that only differs
// in spelling from a file that is there; REFUSED for an untrusted file, a link, several links, another owner;
// LIMIT naming which and what to do; BUSY; IO.
[[nodiscard]] dep_status memory_write(arena *a, memory_scope *m, str file, str content,
                                      const memory_write_opts *o, memory_written *ret, dep_err *err);
// A whole file. trusted_only: REFUSED for an untrusted one; a person may read that too. Links, several links
// and another owner are refused to everybody.
[[nodiscard]] dep_status memory_read(arena *a, memory_scope *m, str file, bool trusted_only, str *ret,
                                     dep_err *err);
// Replaces a file's bytes as a person edited them (no header, nothing escaped). was: SHA-256 of the bytes the
// person began with ("" for none, when the file was not there); REFUSED when the file has other bytes by now,
// so that an agent's note is not lost to an editor. An untrusted file stays untrusted.
[[nodiscard]] dep_status memory_replace(arena *a, memory_scope *m, str file, str was, str bytes,
                                        dep_err *err);
// Removes the file and its trust record; also one that is withheld.
[[nodiscard]] dep_status memory_remove(memory_scope *m, str file, dep_err *err);
// Same engine as kb_search, over trusted files, daily/ included. Withheld files stand in the result's cuts.
[[nodiscard]] dep_status memory_search(arena *a, memory_scope *m, str query, size_t limit,
                                       bool (*cancelled)(void *), void *ctx, search_result *ret,
                                       dep_err *err);
// Valid names: a letter or digit first, then letters, digits, marks, '.', '_', blank, '-', ending in ".md";
// at most MEMORY_NAME_MAX code points; optionally below "daily/".
bool memory_name_ok(str file);

typedef struct {
    str name;
    str text;            // the newest whole entries, or all; foreign() is done and changes it no further
    size_t chars, shown; // characters of the file and of text, for the marker; equal when all is shown
    invisible_finds invisible; // in the whole file (rule B24)
} memory_shown;
typedef struct {
    VEC(memory_shown) files; // MEMORY.md first, then newest write first
    VEC(str) left_out;       // names that did not fit the block
    memory_files withheld;
} memory_block;
// The snapshot for the prompt: root files, each whole or, over MEMORY_RESIDENT_CHARS, its newest whole
// entries (of a newest entry that alone is longer, the lines it begins with and a line "…"). The limits count
// text; whoever renders the block says both sizes where shown < chars. Never fails for what a file holds.
[[nodiscard]] dep_status memory_resident(arena *a, memory_scope *m, memory_block *ret, dep_err *err);

// Rule B2. The (device, inode) pairs of all that is below the two memory trees, kept fresh, so that the other
// tools can ask of any file or directory they have opened, by whatever path, link or mount, whether it
// belongs to memory. Belongs to one thread.
typedef struct memory_guard memory_guard;
// Errors: LIMIT when the trees hold more than MEMORY_GUARD_MAX names or are deeper than MEMORY_GUARD_DEPTH;
// IO.
[[nodiscard]] dep_status memory_guard_make(arena *a, int root, memory_guard **ret, dep_err *err);
// st: from fstat of the opened file or directory. Looks again when the trees have changed since, and says
// true when they cannot be looked at any more. Ask memory_path() of the path as well: it costs nothing and
// holds also for what is made between two looks.
bool memory_guard_hit(memory_guard *g, const struct stat *st);
// The same for many files with one look: epoch looks again where the trees have changed and gives a number
// for what they hold, the same for the same inodes; knew answers from that look alone. A pass over files is
// safe when the number is the same before the first was opened and after the last: what came into the trees
// meanwhile would have changed it.
uint64_t memory_guard_epoch(memory_guard *g);
bool memory_guard_knew(const memory_guard *g, const struct stat *st);
// True for ".deputy/memory", ".deputy/agent-memory" and anything below, whatever the spelling: "./", "//",
// "x/..", ASCII case.
bool memory_path(str path);

// trust: which bytes of which file a person has accepted. One JSON file per workspace in the state directory
// (trust/<SHA-256 of the workspace's path>.json), replaced whole under a lock. Nothing that lies in the
// workspace can speak for itself: no list is ever looked for there.
//
// A list belongs to one thread. What it hands out (reach, entries) is valid until the next call that takes a
// trust_list that is not const.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>

enum : size_t { TRUST_LIST_MAX = (size_t)8 << 20 }; // bytes of a list, read or written
enum { TRUST_LOCK_MS = 10000 };

typedef struct trust_list trust_list;

typedef enum {
    TRUST_NEVER,   // no record of this file
    TRUST_CHANGED, // a record, but of other bytes
    TRUST_OK,
} trust_state;

// state: $XDG_STATE_HOME/deputy (made 0700 when absent and not read_only); workspace: its absolute path, the
// key of the list. A missing list is an empty one. Errors: REFUSED when a directory has another owner or is
// writable by others, or the file has another owner or any group or other bit; INVALID when workspace is not
// absolute; IO; PARSE and LIMIT (name the file; nothing is trusted then).
[[nodiscard]] dep_status trust_open(arena *a, str state, str workspace, bool read_only, trust_list **ret,
                                    dep_err *err);
// A list that trusts nothing and records nothing: what stands in for one that could not be read. To it every
// file is TRUST_CHANGED: any of them may have been trusted, and then holds its name.
trust_list *trust_none(arena *a);
// Reads the list again if another process has replaced it since; *changed (may be NULL) tells. On failure the
// list keeps what it had.
[[nodiscard]] dep_status trust_reload(trust_list *t, bool *changed, dep_err *err);
// file: path relative to the workspace, in normal form. sha256: hex. *reach (may be NULL) gets the recorded
// reach of a definition (canonical JSON), or empty.
trust_state trust_check(const trust_list *t, str file, str sha256, str *reach);

typedef struct {
    str file, sha256;
    str reach; // of a definition: JSON, kept in canonical form; else empty
    str was;   // memory files only, else empty: the digest before a replace that comes after the record. Both
             // are accepted until the next record, so that neither a crash nor a reader between the two steps
             // finds a file that Deputy wrote untrusted.
} trust_entry;

// Records file → sha256 (+ reach), reading the list again under the lock first so that records of other
// processes stay. Durable on return. Errors: INVALID for a path not in normal form or not UTF-8, a digest
// that is none, or a reach that is not JSON; REFUSED for a list opened read-only; BUSY; LIMIT; IO.
[[nodiscard]] dep_status trust_record(trust_list *t, str file, str sha256, str reach, dep_err *err);
[[nodiscard]] dep_status trust_record_all(trust_list *t, const trust_entry *e, size_t n, dep_err *err);
// Removes the record (the file was removed through Deputy). Fine when there is none.
[[nodiscard]] dep_status trust_forget(trust_list *t, str file, dep_err *err);
// All records, sorted by file.
void trust_entries(const trust_list *t, const trust_entry **ret, size_t *n);

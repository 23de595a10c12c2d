// trust: which bytes of which file a person has accepted. One JSON file per workspace in the state directory, replaced whole under a lock.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>

typedef struct trust_list trust_list;

typedef enum {
    TRUST_NEVER,   // no record of this file
    TRUST_CHANGED, // a record, but of other bytes
    TRUST_OK,
} trust_state;

// state: $XDG_STATE_HOME/deputy (made 0700 when absent and not read_only); workspace: its absolute path, the key of the list. A missing list is an empty one.
// Errors: REFUSED when the directory or file has another owner or a group/other bit; IO; PARSE (names the file; nothing is trusted then).
[[nodiscard]] dep_status trust_open(arena *a, str state, str workspace, bool read_only, trust_list **ret, dep_err *err);
// file: path relative to the workspace. sha256: hex. *reach (may be NULL) gets the recorded reach of a definition (canonical JSON), or empty.
trust_state trust_check(const trust_list *t, str file, str sha256, str *reach);
// Records file → sha256 (+ reach), reading the list again under the lock first so that records of other processes stay. Durable on return.
[[nodiscard]] dep_status trust_record(trust_list *t, str file, str sha256, str reach, dep_err *err);
typedef struct { str file, sha256, reach; } trust_entry;
[[nodiscard]] dep_status trust_record_all(trust_list *t, const trust_entry *e, size_t n, dep_err *err);
// Removes the record (the file was removed through Deputy).
[[nodiscard]] dep_status trust_forget(trust_list *t, str file, dep_err *err);
// All records, sorted by file.
void trust_entries(const trust_list *t, const trust_entry **ret, size_t *n);

// memory_int: what the files of this room share.
#pragma once
#include <deputy/memory.h>
#include <sys/stat.h>

struct memory_scope {
    int dir;
    str label; // the directory relative to the workspace root
    trust_list *trust;
    const sys_clock *clock;
};

#define MEMORY_DEFAULT S("MEMORY.md")
#define MEMORY_DAILY S("daily")

// A file as it was found: not there, there and usable, or there and withheld.
typedef struct {
    bool there;
    const char *why;   // withheld: the reason; NULL when usable
    bool untrusted;    // why says only that it is not trusted: bytes and sha256 are set
    str bytes, sha256; // sha256: where there is trust to check
    struct stat st;    // of the opened file, or of the name when it cannot be opened
} memory_found;

// Opens and judges one file; want_bytes: read it even when nobody asks for trust. What it reads is in `a`.
[[nodiscard]] dep_status memory_find(arena *a, const memory_scope *m, str file, bool want_bytes,
                                     memory_found *ret, dep_err *err);

// Everything in the scope but dot-names, in the order of memory_list.
typedef struct {
    memory_file f;
    str bytes; // with want_bytes, of usable files
    struct stat st;
} memory_item;
typedef VEC(memory_item) memory_items;
// Names and reasons are in `a`, bytes in `bytes`.
[[nodiscard]] dep_status memory_scan(arena *a, arena *bytes, const memory_scope *m, bool want_bytes,
                                     memory_items *ret, dep_err *err);
// INVALID with what a name must look like.
[[nodiscard]] dep_status memory_check_name(str file, dep_err *err);
// As withheld: "untrusted: …" → what a person reads when an operation is refused.
[[nodiscard]] dep_status memory_refused(const memory_scope *m, str file, const char *why, dep_err *err);

// --- Entries (entry.c) ---------------------------------------------------------------------------
// "<!-- deputy: TIME delegation=… agent=… model=… -->"
str memory_header(arena *a, const sys_clock *clock, const memory_write_opts *o);
// content with the '<' of everything that reads like a header escaped.
str memory_escape(arena *a, str content);
// The newest whole entries of text that fit `max` characters; see memory_resident. *chars: of text without
// line feeds at its end; *shown: of what is taken from it.
str memory_newest(arena *a, str text, size_t max, size_t *chars, size_t *shown);
// The end of a file's bytes that memory_newest with MEMORY_RESIDENT_CHARS would look at: what it shows is the
// same.
str memory_end(str bytes);

// file: the one way to open (rule B1). Files of a layer, scope, source or skill are opened beneath a held
// directory descriptor by the kernel (openat2: RESOLVE_BENEATH, NO_MAGICLINKS), O_NONBLOCK, O_CLOEXEC,
// regular files only, size from the descriptor. Files are read, never mapped. Without openat2 a component
// walk with O_NOFOLLOW does the same for FILE_NO_LINKS and refuses links for FILE_LINKS_INSIDE;
// file_has_openat2() tells.
//
// Statuses all openers share: INVALID for a path that may not be asked for, NOT_FOUND (also for a link inside
// to something that is not there), REFUSED for links, paths that leave, the wrong kind of file, and a
// component that is no directory (err.os ENOTDIR), IO for the rest (EACCES, EMFILE, …).
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/stop.h>
#include <deputy/str.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef enum {
    FILE_NO_LINKS = 0,     // memory, definitions, config: no symbolic link in any component
    FILE_LINKS_INSIDE = 1, // sources, skills: relative links that stay beneath; absolute ones are refused
} file_links;

enum {
    FILE_RETRY_MAX = 8,   // openat2 EAGAIN retries
    FILE_PATH_MAX = 4095, // bytes of a path; what the kernel takes without the NUL
};

bool file_has_openat2(void);

// Opens a directory by an ordinary path (a root the person named: workspace, config, state). Returns a
// descriptor.
[[nodiscard]] dep_status dir_open(str path, int *ret, dep_err *err);
// Opens a directory beneath dir, ready to be listed and synced. path "" or "." is dir itself.
[[nodiscard]] dep_status dir_open_at(int dir, str path, file_links links, int *ret, dep_err *err);
// Makes each missing component beneath dir (mode for new ones), then opens it. Never through links.
[[nodiscard]] dep_status dir_make_at(int dir, str path, mode_t mode, int *ret, dep_err *err);
// Makes an absolute path with parents (mkdir -p), mode for the last component, 0755 & ~umask for parents.
[[nodiscard]] dep_status dir_make(str path, mode_t mode, dep_err *err);
// Rule B4: a directory of state, by absolute path, made 0700 with make. Refused when it is a link or another
// user's, or when group or others may write to it; bits that let them read are taken away.
[[nodiscard]] dep_status dir_open_private(str path, bool make, int *ret, dep_err *err);
// Rule B4 for an open file: refused when it is another user's or when group or others may read or write it.
[[nodiscard]] dep_status file_check_private(int fd, str name, dep_err *err);

// Opens a regular file for reading beneath dir. path: relative, no "..", no empty components, no NUL (INVALID
// otherwise). st may be NULL; it carries what callers check further (owner, number of links, device and
// inode).
[[nodiscard]] dep_status file_open_at(int dir, str path, file_links links, int *ret, struct stat *st,
                                      dep_err *err);
// What a path beneath dir is, of any kind, without opening it for reading. The same rules for paths and
// links.
[[nodiscard]] dep_status file_stat_at(int dir, str path, file_links links, struct stat *st, dep_err *err);
// Reads at most max bytes of an open regular file, from its start whatever was read before. A file larger
// than max: LIMIT, or with head set the first max bytes. One that shrinks or grows meanwhile gives what was
// there, within max. As all readers here: a NUL byte follows the text, uncounted, and an allocation that
// fails returns NOMEM.
[[nodiscard]] dep_status file_read_fd(arena *a, int fd, size_t max, bool head, str *ret, dep_err *err);
// The same, of a file whose size is known, until it is stopped: CANCELLED. waited: set when it had to be
// waited for, because it was not in memory; may be NULL.
[[nodiscard]] dep_status file_read_sized(arena *a, int fd, size_t size, size_t max, bool head, bool *waited,
                                         stop_sign *s, str *ret, dep_err *err);
// Open, read, close. st may be NULL.
[[nodiscard]] dep_status file_read_at(arena *a, int dir, str path, file_links links, size_t max, str *ret,
                                      struct stat *st, dep_err *err);
// Reads a file by an ordinary path (command-line arguments, the system config). Links are followed; a pipe or
// a character device that the person named is read to its end, and a pipe without a writer is empty.
[[nodiscard]] dep_status file_read(arena *a, str path, size_t max, str *ret, dep_err *err);
// All of a stream such as standard input; LIMIT above max.
[[nodiscard]] dep_status file_read_stream(arena *a, int fd, size_t max, str *ret, dep_err *err);

// Replaces dir/name whole: random O_EXCL temporary beside it, fsync, rename, fsync of the directory. Keeps
// the mode of an existing file, else uses mode & ~umask. name is one component. An existing link, or a file
// that is not regular, is refused by name. On failure the former file is whole and no temporary stays; a file
// with several links keeps its other names with the former text (callers who mind check st_nlink first).
// Access lists and extended attributes are not carried over.
[[nodiscard]] dep_status file_replace_at(int dir, str name, str bytes, mode_t mode, dep_err *err);
// Creates dir/name whole, as above; EXISTS when anything is there, a dangling link included.
[[nodiscard]] dep_status file_create_at(int dir, str name, str bytes, mode_t mode, dep_err *err);

typedef struct {
    str name;
    unsigned char type; // DT_REG, DT_DIR, DT_LNK, …; DT_UNKNOWN is resolved by fstatat
} dir_entry;
typedef VEC(dir_entry) dir_entries;
// The entries of an open directory but . and .., sorted by name bytes. At most max (LIMIT above). dir keeps
// its position and may be O_PATH. Any byte but NUL and '/' may be in a name.
[[nodiscard]] dep_status dir_list(arena *a, int dir, size_t max, dir_entries *ret, dep_err *err);
// The same, until it is stopped: CANCELLED.
[[nodiscard]] dep_status dir_list_until(arena *a, int dir, size_t max, stop_sign *s, dir_entries *ret,
                                        dep_err *err);

// An exclusive or shared lock on dir/name (created 0600, never replaced, no links). Waits at most timeout_ms
// (0: one try, BUSY; also BUSY after the wait). Released by closing the descriptor or by the process's death.
// Two descriptors of one process exclude each other as two processes do; who waits is not served in order.
[[nodiscard]] dep_status lock_take(int dir, str name, bool exclusive, int timeout_ms, int *ret, dep_err *err);
// An exclusive lock on the directory itself, for folders of a person's own files, where nothing is put beside
// them. Waits and ends as lock_take. Where directories cannot be locked (NFS) it excludes nobody.
[[nodiscard]] dep_status lock_dir(int dir, int timeout_ms, int *ret, dep_err *err);

// A relative path in normal form: no ".", no "//", no trailing "/"; "" for "." and "". False for absolute,
// "..", NUL, over FILE_PATH_MAX.
bool path_normal(arena *a, str path, str *ret);
// dir/name with one slash between; the other one when either is empty.
str path_join(arena *a, str dir, str name);
// The last component, trailing slashes ignored: "b" for "a/b" and "a/b/"; "" for "/" and "".
str path_base(str path);
// What stands before it, without the slash: "a" for "a/b", "" for "b", "/" for "/b".
str path_dir(str path);

// file_int: what the files of this room share, and the seam through which a test plays another kernel.
#pragma once
#include <deputy/file.h>
#include <linux/openat2.h>

// The kernel's openat2 as a value: -1 and errno on failure. NULL forces the walk that is used where there is
// no openat2.
typedef int file_openat2(int dir, const char *path, const struct open_how *how);
file_openat2 file_openat2_real;

typedef enum { OPEN_FILE, OPEN_DIR, OPEN_STAT } file_kind;

// All openers end here. ret is a descriptor of a regular file, of a directory, or (OPEN_STAT) an O_PATH one
// of any kind but a link. st may be NULL.
[[nodiscard]] dep_status file_open_with(file_openat2 *openat2_fn, int dir, str path, file_links links,
                                        file_kind kind, int *ret, struct stat *st, dep_err *err);

// One component: not empty, not "." or "..", no '/' and no NUL, at most NAME_MAX bytes. to holds NAME_MAX + 1
// bytes.
[[nodiscard]] dep_status file_component(str name, char *to, dep_err *err);
// Checks that a path may be opened beneath a directory (relative, no "..", no empty component, no NUL, not
// over FILE_PATH_MAX) and writes it to `to`, which holds FILE_PATH_MAX + 1 bytes.
[[nodiscard]] dep_status file_path_check(str path, char *to, dep_err *err);
// An ordinary path as a C string, any form; `to` holds FILE_PATH_MAX + 1 bytes.
[[nodiscard]] dep_status file_ordinary_path(str path, char *to, dep_err *err);
// fsync of a directory, also of one held by O_PATH. A file system that cannot do it is not an error.
[[nodiscard]] dep_status file_sync_dir(int dir, dep_err *err);
// close in cleanups: keeps errno, takes -1.
void file_close(int fd);
// For [[gnu::cleanup]].
void file_close_p(const int *fd);

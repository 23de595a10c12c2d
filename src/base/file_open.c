// file_open: descriptors beneath a held directory (rule B1), and directories of state (rule B4).
// Knows paths, links and kinds of files, not contents. openat2 does the work where the kernel has it; else
// each component is opened with O_NOFOLLOW in turn. Either way nothing is checked by name first and opened
// later: what was opened is what is judged. Descriptors returned belong to the caller.
#include "base/file_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>
#include <unistd.h>

void file_close(int fd) {
    int keep = errno;
    if (fd >= 0) close(fd);
    errno = keep;
}

void file_close_p(const int *fd) {
    file_close(*fd);
}

int file_openat2_real(int dir, const char *path, const struct open_how *how) {
    return (int)syscall(SYS_openat2, dir, path, how, sizeof *how);
}

bool file_has_openat2(void) {
    struct open_how how = {.flags = O_PATH | O_CLOEXEC | O_DIRECTORY, .resolve = RESOLVE_BENEATH};
    int fd = file_openat2_real(AT_FDCWD, ".", &how);
    int os = errno;
    file_close(fd);
    return fd >= 0 || (os != ENOSYS && os != EPERM);
}

// --- Paths -----------------------------------------------------------------------------------------------

dep_status file_component(str name, char *to, dep_err *err) {
    if (name.n == 0 || str_eq(name, S(".")) || str_eq(name, S("..")) || str_chr(name, '/') != SIZE_MAX ||
        str_chr(name, 0) != SIZE_MAX)
        return err_set(err, DEP_ERR_INVALID, "'" STR_FMT "' is not a file name", STR_ARG(name));
    if (name.n > NAME_MAX) return err_set(err, DEP_ERR_INVALID, "the file name is over %d bytes", NAME_MAX);
    memcpy(to, name.p, name.n);
    to[name.n] = 0;
    return DEP_OK;
}

dep_status file_path_check(str path, char *to, dep_err *err) {
    if (path.n == 0) return err_set(err, DEP_ERR_INVALID, "the path is empty");
    if (path.n > FILE_PATH_MAX)
        return err_set(err, DEP_ERR_INVALID, "the path is over %d bytes", FILE_PATH_MAX);
    if (str_chr(path, 0) != SIZE_MAX) return err_set(err, DEP_ERR_INVALID, "the path holds a NUL byte");
    if (path.p[0] == '/') return err_set(err, DEP_ERR_INVALID, "the path is absolute");
    str rest = path, part;
    bool more = true;
    while (more) {
        more = str_cut(rest, '/', &part, &rest);
        if (part.n == 0) return err_set(err, DEP_ERR_INVALID, "the path has an empty component");
        if (str_eq(part, S(".."))) return err_set(err, DEP_ERR_INVALID, "the path holds '..'");
        if (part.n > NAME_MAX)
            return err_set(err, DEP_ERR_INVALID, "a component of the path is over %d bytes", NAME_MAX);
    }
    memcpy(to, path.p, path.n);
    to[path.n] = 0;
    return DEP_OK;
}

// Where the component that begins at p ends.
static char *component_end(char *p) {
    while (*p && *p != '/') p++;
    return p;
}

// --- Reasons ---------------------------------------------------------------------------------------------

static dep_status not_a_directory(dep_err *err, const char *path) {
    dep_status status = err_set(err, DEP_ERR_REFUSED, "%s: a component is not a directory", path);
    if (err) err->os = ENOTDIR;
    return status;
}

static const char *kind_name(mode_t mode) {
    switch (mode & S_IFMT) {
    case S_IFDIR: return "a directory";
    case S_IFLNK: return "a symbolic link";
    case S_IFIFO: return "a pipe";
    case S_IFSOCK: return "a socket";
    case S_IFCHR:
    case S_IFBLK: return "a device";
    default: return "no regular file";
    }
}

// Finds the first link on the way, only to name it, after the open has failed. When there is one, path is cut
// after it.
static bool find_link(int dir, char *path, bool *absolute) {
    int at = dir;
    bool found = false;
    for (char *part = path; !found;) {
        char *end = component_end(part);
        char sep = *end;
        *end = 0;
        int fd = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (at != dir) file_close(at);
        at = fd;
        struct stat st = {0};
        found = fd >= 0 && fstat(fd, &st) == 0 && S_ISLNK(st.st_mode);
        if (found) {
            char target[1];
            *absolute = readlinkat(fd, "", target, sizeof target) == 1 && target[0] == '/';
            break;
        }
        *end = sep;
        if (fd < 0 || !sep) break;
        part = end + 1;
    }
    if (at != dir) file_close(at);
    return found;
}

// os: what openat2 said, or 0 when the walk met the link.
static dep_status refused_link(int dir, char *path, file_links links, int os, dep_err *err) {
    bool absolute = false;
    const char *why = NULL;
    if (!find_link(dir, path, &absolute)) {
        why = "leads out of the directory, or through a link that has gone meanwhile";
    } else if (links == FILE_NO_LINKS) {
        why = "is a symbolic link, and links are not followed here";
    } else if (absolute) {
        why = "is a link to an absolute path, and such links are never followed";
    } else if (os == ELOOP) {
        why = "is a link that cannot be followed: a ring of links, or one that only the kernel can resolve";
    } else if (os == 0) {
        why = "is a symbolic link, which this kernel cannot follow safely (it has no openat2)";
    } else {
        why = "is a link that leads out of the directory";
    }
    (void)err_set(err, DEP_ERR_REFUSED, "%s %s", path, why);
    if (err) err->os = os;
    return DEP_ERR_REFUSED;
}

static dep_status open_failed(int dir, char *path, file_links links, int os, dep_err *err) {
    bool absolute = false;
    if (os == ELOOP || os == EXDEV) return refused_link(dir, path, links, os, err);
    if (os == ENOTDIR) return not_a_directory(err, path);
    // Sockets, and device nodes without a driver, cannot be opened at all.
    if (os == ENXIO || os == ENODEV)
        return err_set(err, DEP_ERR_REFUSED, "%s is a socket or a device, not a regular file", path);
    if (os == ENOENT && links == FILE_LINKS_INSIDE && find_link(dir, path, &absolute)) {
        err_os(err, os, "%s is a link to something that is not there", path);
        return DEP_ERR_NOT_FOUND;
    }
    return err_os(err, os, "cannot open %s", path);
}

// --- The two ways ----------------------------------------------------------------------------------------

static int open_flags(file_kind kind) {
    if (kind == OPEN_STAT) return O_PATH | O_CLOEXEC;
    // O_NONBLOCK: a pipe without a writer must not hold us before we can see that it is one.
    return O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (kind == OPEN_DIR ? O_DIRECTORY : 0);
}

// Without openat2: no link in any component. Returns a descriptor, or -1 with errno; ELOOP for a link.
static int walk_open(int dir, char *path, file_kind kind) {
    int at = dir;
    for (char *part = path;;) {
        char *end = component_end(part);
        char sep = *end;
        *end = 0;
        // O_PATH and fstat rather than O_DIRECTORY: a link and a file would fail alike.
        int fd = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat st = {0};
        int os = fd < 0 || fstat(fd, &st) != 0 ? errno : 0;
        if (!os && S_ISLNK(st.st_mode)) os = ELOOP;
        if (!os && !sep && kind != OPEN_STAT) {
            // The link check above was on another open of the same name; O_NOFOLLOW makes it hold for this
            // one as well.
            file_close(fd);
            fd = openat(at, part, open_flags(kind) | O_NOFOLLOW);
            if (fd < 0) os = errno;
        }
        *end = sep;
        if (at != dir) file_close(at);
        if (os) {
            file_close(fd);
            errno = os;
            return -1;
        }
        if (!sep) return fd;
        at = fd;
        part = end + 1;
    }
}

// Returns a descriptor, or -1 with errno; ENOSYS when the walk has to do it.
static int kernel_open(file_openat2 *fn, int dir, const char *path, file_links links, file_kind kind) {
    struct open_how how = {
        .flags = (uint64_t)open_flags(kind),
        .resolve =
            RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | (links == FILE_NO_LINKS ? RESOLVE_NO_SYMLINKS : 0),
    };
    int fd = -1;
    // EAGAIN: something was renamed on the way while a link with ".." was followed.
    for (int tries = 0; tries <= FILE_RETRY_MAX; tries++) {
        fd = fn(dir, path, &how);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR)) break;
    }
    // System call filters that do not know openat2 answer EPERM. The walk allows less, so it is safe to try
    // for both.
    if (fd < 0 && errno == EPERM) errno = ENOSYS;
    return fd;
}

static dep_status check_kind(int fd, const char *path, file_kind kind, struct stat *st, dep_err *err) {
    struct stat own;
    if (!st) st = &own;
    if (fstat(fd, st) != 0) return err_os(err, errno, "cannot examine %s", path);
    if (kind == OPEN_FILE && !S_ISREG(st->st_mode))
        return err_set(err, DEP_ERR_REFUSED, "%s is %s, not a regular file", path, kind_name(st->st_mode));
    return DEP_OK;
}

dep_status file_open_with(file_openat2 *fn, int dir, str path, file_links links, file_kind kind, int *ret,
                          struct stat *st, dep_err *err) {
    char z[FILE_PATH_MAX + 1];
    TRY(file_path_check(path, z, err));
    int fd = fn ? kernel_open(fn, dir, z, links, kind) : -1;
    bool walk = !fn || (fd < 0 && errno == ENOSYS);
    if (walk) fd = walk_open(dir, z, kind);
    if (fd < 0) {
        int os = errno;
        if (walk && os == ELOOP) return refused_link(dir, z, links, 0, err);
        return open_failed(dir, z, links, os, err);
    }
    struct stat seen;
    dep_status status = check_kind(fd, z, kind, &seen, err);
    if (status != DEP_OK) {
        file_close(fd);
        return status;
    }
    if (st) *st = seen;
    *ret = fd;
    return DEP_OK;
}

dep_status file_open_at(int dir, str path, file_links links, int *ret, struct stat *st, dep_err *err) {
    return file_open_with(file_openat2_real, dir, path, links, OPEN_FILE, ret, st, err);
}

dep_status file_stat_at(int dir, str path, file_links links, struct stat *st, dep_err *err) {
    int fd = -1;
    TRY(file_open_with(file_openat2_real, dir, path, links, OPEN_STAT, &fd, st, err));
    file_close(fd);
    return DEP_OK;
}

// --- Directories -----------------------------------------------------------------------------------------

dep_status dir_open_at(int dir, str path, file_links links, int *ret, dep_err *err) {
    if (path.n == 0) path = S(".");
    return file_open_with(file_openat2_real, dir, path, links, OPEN_DIR, ret, NULL, err);
}

dep_status file_sync_dir(int dir, dep_err *err) {
    [[gnu::cleanup(file_close_p)]] int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return err_os(err, errno, "cannot open the directory to sync it");
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        return err_os(err, errno, "cannot sync the directory");
    return DEP_OK;
}

dep_status file_ordinary_path(str path, char *to, dep_err *err) {
    if (path.n == 0) return err_set(err, DEP_ERR_INVALID, "the path is empty");
    if (path.n > FILE_PATH_MAX)
        return err_set(err, DEP_ERR_INVALID, "the path is over %d bytes", FILE_PATH_MAX);
    if (str_chr(path, 0) != SIZE_MAX) return err_set(err, DEP_ERR_INVALID, "the path holds a NUL byte");
    memcpy(to, path.p, path.n);
    to[path.n] = 0;
    return DEP_OK;
}

dep_status dir_open(str path, int *ret, dep_err *err) {
    char z[FILE_PATH_MAX + 1];
    TRY(file_ordinary_path(path, z, err));
    int fd = open(z, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 && errno == ENOTDIR) return not_a_directory(err, z);
    if (fd < 0) return err_os(err, errno, "cannot open %s", z);
    *ret = fd;
    return DEP_OK;
}

dep_status dir_make_at(int dir, str path, mode_t mode, int *ret, dep_err *err) {
    if (path.n == 0 || str_eq(path, S("."))) return dir_open_at(dir, path, FILE_NO_LINKS, ret, err);
    char z[FILE_PATH_MAX + 1];
    TRY(file_path_check(path, z, err));
    int at = dir;
    str rest = path, part;
    dep_status status = DEP_OK;
    for (bool more = true; more && status == DEP_OK;) {
        more = str_cut(rest, '/', &part, &rest);
        char name[NAME_MAX + 1];
        memcpy(name, part.p, part.n);
        name[part.n] = 0;
        bool made = mkdirat(at, name, mode) == 0;
        int fd = -1;
        if (!made && errno != EEXIST) {
            status = err_os(err, errno, "cannot make the directory %s", z);
        } else {
            if (made) status = file_sync_dir(at, err);
            if (status == DEP_OK) status = dir_open_at(at, part, FILE_NO_LINKS, &fd, err);
        }
        if (at != dir) file_close(at);
        at = fd;
    }
    if (status == DEP_OK) *ret = at;
    return status;
}

// An absolute path as a C string, without slashes at its end: with one, a link in last place would be
// followed.
static dep_status absolute_path(str path, char *to, dep_err *err) {
    while (path.n > 1 && path.p[path.n - 1] == '/') path.n--;
    TRY(file_ordinary_path(path, to, err));
    return path.p[0] == '/' ? DEP_OK : err_set(err, DEP_ERR_INVALID, "%s is not an absolute path", to);
}

dep_status dir_make(str path, mode_t mode, dep_err *err) {
    char z[FILE_PATH_MAX + 1] = "";
    TRY(absolute_path(path, z, err));
    for (char *end = component_end(z + 1);; end = component_end(end + 1)) {
        char sep = *end;
        *end = 0;
        // Parents get the usual mode: a private directory below them does not make them private.
        if (mkdir(z, sep ? 0755 : mode) != 0 && errno != EEXIST && errno != EISDIR)
            return err_os(err, errno, "cannot make the directory %s", z);
        *end = sep;
        if (!sep) break;
    }
    struct stat st = {0};
    if (stat(z, &st) != 0) return err_os(err, errno, "cannot examine %s", z);
    if (!S_ISDIR(st.st_mode)) return not_a_directory(err, z);
    return DEP_OK;
}

// --- State is private ------------------------------------------------------------------------------------

static dep_status check_owner(const struct stat *st, const char *name, dep_err *err) {
    if (st->st_uid == geteuid()) return DEP_OK;
    return err_set(err, DEP_ERR_REFUSED, "%s belongs to another user (uid %u, not %u)", name,
                   (unsigned)st->st_uid, (unsigned)geteuid());
}

static dep_status make_private(int fd, const char *name, dep_err *err) {
    struct stat st = {0};
    if (fstat(fd, &st) != 0) return err_os(err, errno, "cannot examine %s", name);
    TRY(check_owner(&st, name, err));
    // Who could write may have planted something: that is for a person to look at, not to paper over.
    if (st.st_mode & 0022)
        return err_set(err, DEP_ERR_REFUSED,
                       "%s can be written by others (mode %04o); look through it, then: chmod 700", name,
                       (unsigned)(st.st_mode & 07777));
    if ((st.st_mode & 0077) && fchmod(fd, st.st_mode & 0700) != 0)
        return err_os(err, errno, "cannot make %s private", name);
    return DEP_OK;
}

dep_status dir_open_private(str path, bool make, int *ret, dep_err *err) {
    char z[FILE_PATH_MAX + 1];
    TRY(absolute_path(path, z, err));
    if (make) TRY(dir_make(path, 0700, err));
    int fd = open(z, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        struct stat st = {0};
        int os = errno;
        if ((os == ENOTDIR || os == ELOOP) && lstat(z, &st) == 0)
            return err_set(err, DEP_ERR_REFUSED, "%s is %s, not a directory", z, kind_name(st.st_mode));
        return err_os(err, os, "cannot open %s", z);
    }
    dep_status status = make_private(fd, z, err);
    if (status != DEP_OK) {
        file_close(fd);
        return status;
    }
    *ret = fd;
    return DEP_OK;
}

dep_status file_check_private(int fd, str name, dep_err *err) {
    struct stat st = {0};
    char z[FILE_PATH_MAX + 1];
    TRY(file_ordinary_path(name, z, err));
    if (fstat(fd, &st) != 0) return err_os(err, errno, "cannot examine %s", z);
    TRY(check_owner(&st, z, err));
    if (st.st_mode & 0077)
        return err_set(err, DEP_ERR_REFUSED,
                       "%s can be read or written by others (mode %04o); it should be 0600", z,
                       (unsigned)(st.st_mode & 07777));
    return DEP_OK;
}

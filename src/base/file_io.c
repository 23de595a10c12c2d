// file_io: the bytes of files: read whole with a limit, replaced and created whole, and the names in a
// directory. Decides nothing about paths and links (file_open.c does). Text lives in the caller's arena. Each
// function that holds a descriptor while it allocates is split in two, so that an allocation failure unwinds
// to the half that closes it.
#include "base/file_int.h"
#include <deputy/arena.h>
#include <deputy/sort.h>
#include <deputy/sys.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

// --- Reading ---------------------------------------------------------------------------------------------

enum : size_t { READ_FIRST = 4096 };

// Reads up to max + 1 bytes: the one too many tells a longer file. pos < 0: a stream.
// waited: NULL, or set when the first bytes were not in memory.
static ssize_t read_first(int fd, char *p, size_t n, bool *waited) {
    struct iovec v = {.iov_base = p, .iov_len = n};
    ssize_t got = preadv2(fd, &v, 1, 0, RWF_NOWAIT);
    if (got < 0 && errno == EAGAIN) *waited = true;
    return got > 0 ? got : pread(fd, p, n, 0);
}

static dep_status read_all(arena *a, int fd, off_t pos, size_t hint, size_t max, bool head, bool *waited,
                           stop_sign *s, str *ret, dep_err *err) {
    if (max > SSIZE_MAX) max = SSIZE_MAX;
    size_t cap = (hint < max ? hint : max) + 1, n = 0;
    char *p = arena_bytes(a, cap + 1); // and the NUL
    while (n <= max) {
        if (n == cap) {
            size_t more = cap < max / 2 ? cap * 2 : max + 1;
            p = arena_grow_bytes(a, p, cap + 1, more + 1);
            cap = more;
        }
        // Somebody may want to stop it: not all at once then.
        size_t some = s && cap - n > STOP_EACH ? STOP_EACH : cap - n;
        ssize_t got = pos < 0            ? read(fd, p + n, some)
                      : n == 0 && waited ? read_first(fd, p, some, waited)
                                         : pread(fd, p + n, some, pos + (off_t)n);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_os(err, errno, "cannot read");
        if (got == 0) break;
        n += (size_t)got;
        // All that the file said it has, and there was room for more: this was its end.
        if (pos >= 0 && n == hint && n < cap) break;
        if (stop_after(s, (size_t)got)) return err_set(err, DEP_ERR_CANCELLED, "stopped while reading");
    }
    if (n > max && !head) return err_set(err, DEP_ERR_LIMIT, "larger than the limit of %zu bytes", max);
    if (n > max) n = max;
    p[n] = 0;
    *ret = (str){p, n};
    return DEP_OK;
}

dep_status file_read_fd(arena *a, int fd, size_t max, bool head, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    struct stat st;
    if (fstat(fd, &st) != 0) return err_os(err, errno, "cannot examine the open file");
    size_t size = st.st_size > 0 ? (size_t)st.st_size : 0;
    if (size > max && !head)
        return err_set(err, DEP_ERR_LIMIT, "%zu bytes, over the limit of %zu", size, max);
    return read_all(a, fd, 0, size, max, head, NULL, NULL, ret, err);
}

dep_status file_read_sized(arena *a, int fd, size_t size, size_t max, bool head, bool *waited, stop_sign *s,
                           str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    return read_all(a, fd, 0, size, max, head, waited, s, ret, err);
}

dep_status file_read_stream(arena *a, int fd, size_t max, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    return read_all(a, fd, -1, READ_FIRST, max, false, NULL, NULL, ret, err);
}

dep_status file_read_at(arena *a, int dir, str path, file_links links, size_t max, str *ret, struct stat *st,
                        dep_err *err) {
    int fd = -1;
    struct stat seen;
    TRY(file_open_at(dir, path, links, &fd, &seen, err));
    dep_status status = file_read_fd(a, fd, max, false, ret, err);
    file_close(fd);
    if (status == DEP_OK && st) *st = seen;
    return status;
}

dep_status file_read(arena *a, str path, size_t max, str *ret, dep_err *err) {
    char z[FILE_PATH_MAX + 1];
    TRY(file_ordinary_path(path, z, err));
    // O_NONBLOCK: opening a pipe without a writer must not hang.
    int fd = open(z, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) return err_os(err, errno, "cannot open %s", z);
    struct stat st;
    dep_status status = DEP_OK;
    if (fstat(fd, &st) != 0) {
        status = err_os(err, errno, "cannot examine %s", z);
    } else if (S_ISREG(st.st_mode)) {
        status = file_read_fd(a, fd, max, false, ret, err);
    } else if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0) fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
        status = file_read_stream(a, fd, max, ret, err);
    } else {
        status = err_set(err, DEP_ERR_REFUSED, "%s is not a file", z);
    }
    file_close(fd);
    return status;
}

// --- Writing ---------------------------------------------------------------------------------------------

static dep_status write_all(int fd, str bytes, dep_err *err) {
    while (bytes.n) {
        ssize_t n = write(fd, bytes.p, bytes.n);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return err_os(err, errno, "cannot write");
        bytes = str_sub(bytes, (size_t)n, bytes.n);
    }
    return DEP_OK;
}

// A dot, so that no glob finds it, and no ending that a loader takes.
enum { TEMP_NAME = sizeof ".deputy-0123456789abcdef.tmp" };

static dep_status open_temp(int dir, mode_t mode, char name[TEMP_NAME], int *ret, dep_err *err) {
    const sys_clock *c = sys_clock_real();
    for (int tries = 0; tries < 8; tries++) {
        uint64_t r;
        c->random(c->ctx, &r, sizeof r);
        snprintf(name, TEMP_NAME, ".deputy-%016llx.tmp", (unsigned long long)r);
        int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        if (fd >= 0) {
            *ret = fd;
            return DEP_OK;
        }
        if (errno != EEXIST) break;
    }
    return err_os(err, errno, "cannot make a temporary file in the directory");
}

// Owner, group and mode of the file that is about to be replaced. Where the group cannot be kept, the new
// group gets no more than everybody has.
static dep_status copy_mode(int fd, const struct stat *old, dep_err *err) {
    struct stat st;
    if (fstat(fd, &st) != 0) return err_os(err, errno, "cannot examine the temporary file");
    mode_t mode = old->st_mode & 0777;
    if (st.st_uid != old->st_uid && fchown(fd, old->st_uid, (gid_t)-1) != 0 && errno != EPERM)
        return err_os(err, errno, "cannot keep the owner");
    if (st.st_gid != old->st_gid && fchown(fd, (uid_t)-1, old->st_gid) != 0) mode &= ~070u | (mode & 07) << 3;
    if (fchmod(fd, mode) != 0) return err_os(err, errno, "cannot keep the mode");
    return DEP_OK;
}

// Puts the temporary in place. fresh: only where nothing is.
static dep_status put_in_place(int dir, const char *temp, const char *name, bool fresh, dep_err *err) {
    if (!fresh) {
        if (renameat(dir, temp, dir, name) != 0) return err_os(err, errno, "cannot put %s in place", name);
        return file_sync_dir(dir, err);
    }
    if (renameat2(dir, temp, dir, name, RENAME_NOREPLACE) != 0) {
        if (errno == EEXIST) return err_os(err, errno, "cannot create %s", name);
        // Some file systems (NFS) know no such rename; a second link refuses a taken name as well.
        if (linkat(dir, temp, dir, name, 0) != 0) return err_os(err, errno, "cannot create %s", name);
        if (unlinkat(dir, temp, 0) != 0) return err_os(err, errno, "cannot remove the temporary of %s", name);
    }
    return file_sync_dir(dir, err);
}

static dep_status write_whole(int dir, const char *name, str bytes, mode_t mode, const struct stat *old,
                              dep_err *err) {
    char temp[TEMP_NAME];
    int fd = -1;
    TRY(open_temp(dir, old ? 0600 : mode & 0777, temp, &fd, err));
    dep_status status = write_all(fd, bytes, err);
    if (status == DEP_OK && old) status = copy_mode(fd, old, err);
    if (status == DEP_OK && fsync(fd) != 0) status = err_os(err, errno, "cannot sync");
    // Network file systems may say only now that there is no room.
    if (close(fd) != 0 && errno != EINTR && status == DEP_OK) status = err_os(err, errno, "cannot write");
    if (status == DEP_OK) {
        status = put_in_place(dir, temp, name, old == NULL, err);
    } else {
        err_prefix(err, "%s", name);
    }
    if (status != DEP_OK) unlinkat(dir, temp, 0);
    return status;
}

dep_status file_replace_at(int dir, str name, str bytes, mode_t mode, dep_err *err) {
    char z[NAME_MAX + 1];
    TRY(file_component(name, z, err));
    for (int tries = 0;; tries++) {
        struct stat st;
        bool there = fstatat(dir, z, &st, AT_SYMLINK_NOFOLLOW) == 0;
        if (!there && errno != ENOENT) return err_os(err, errno, "cannot examine %s", z);
        if (there && S_ISLNK(st.st_mode))
            return err_set(err, DEP_ERR_REFUSED, "%s is a symbolic link and is not replaced", z);
        if (there && !S_ISREG(st.st_mode))
            return err_set(err, DEP_ERR_REFUSED, "%s is not a regular file and is not replaced", z);
        // A file that appears between the two calls is looked at again, so that its mode is kept too.
        dep_status status = write_whole(dir, z, bytes, mode, there ? &st : NULL, err);
        if (status != DEP_ERR_EXISTS || tries == FILE_RETRY_MAX) return status;
    }
}

dep_status file_create_at(int dir, str name, str bytes, mode_t mode, dep_err *err) {
    char z[NAME_MAX + 1];
    TRY(file_component(name, z, err));
    struct stat st;
    // Only to spare the write; put_in_place decides.
    if (fstatat(dir, z, &st, AT_SYMLINK_NOFOLLOW) == 0) return err_os(err, EEXIST, "cannot create %s", z);
    return write_whole(dir, z, bytes, mode, NULL, err);
}

// --- Listing ---------------------------------------------------------------------------------------------

enum : size_t { DIR_ENTRY_WORK = STOP_EACH / 64 }; // the kernel may be asked for each

static int by_name(const void *x, const void *y) {
    const dir_entry *a = x, *b = y;
    return str_cmp(a->name, b->name);
}

static unsigned char type_of(DIR *d, const char *name) {
    struct stat st;
    if (fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
    return IFTODT(st.st_mode);
}

static dep_status list_caught(arena *a, DIR *d, size_t max, stop_sign *s, dir_entries *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    dir_entries all = {0};
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(d);
        if (!e && errno) return err_os(err, errno, "cannot list the directory");
        if (!e) break;
        str name = str_z(e->d_name);
        if (str_eq(name, S(".")) || str_eq(name, S(".."))) continue;
        unsigned char type = e->d_type == DT_UNKNOWN ? type_of(d, e->d_name) : e->d_type;
        if (type == DT_UNKNOWN) continue; // gone meanwhile
        if (all.n == max) return err_set(err, DEP_ERR_LIMIT, "more than %zu entries in the directory", max);
        vec_push(a, &all, (dir_entry){.name = str_dup(a, name), .type = type});
        if (stop_after(s, DIR_ENTRY_WORK)) break;
    }
    all.p = sort_until(a, all.p, all.n, sizeof *all.p, by_name, s);
    if (stop_said(s)) return err_set(err, DEP_ERR_CANCELLED, "stopped while listing");
    *ret = all;
    return DEP_OK;
}

dep_status dir_list(arena *a, int dir, size_t max, dir_entries *ret, dep_err *err) {
    return dir_list_until(a, dir, max, NULL, ret, err);
}

dep_status dir_list_until(arena *a, int dir, size_t max, stop_sign *s, dir_entries *ret, dep_err *err) {
    // A description of its own: a duplicate would share the position with the caller's descriptor.
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return err_os(err, errno, "cannot list the directory");
    DIR *d = fdopendir(fd);
    if (!d) {
        int os = errno;
        file_close(fd);
        return err_os(err, os, "cannot list the directory");
    }
    dep_status status = list_caught(a, d, max, s, ret, err);
    closedir(d);
    return status;
}

// lock: advisory locks between processes and between descriptors of one process, on a file that is only there
// for it. flock rather than fcntl's record locks: its owner is the open description, so two descriptors in
// one process exclude each other, closing some other descriptor of the file releases nothing, and a shared
// lock needs no right to write.
#include "base/file_int.h"
#include <deputy/sys.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { LOCK_STEP_MS = 10 };

static int64_t mono_ms(void) {
    return sys_clock_real()->mono_ms(NULL);
}

static dep_status open_lock(int dir, const char *name, bool exclusive, int *ret, dep_err *err) {
    // Locks over NFS need a descriptor that can write to be exclusive.
    int flags = (exclusive ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
    int fd = openat(dir, name, flags | O_CREAT, 0600);
    // Someone who may only read can still share.
    if (fd < 0 && !exclusive && (errno == EACCES || errno == EROFS)) fd = openat(dir, name, flags);
    if (fd < 0 && (errno == ELOOP || errno == EISDIR || errno == ENXIO))
        return err_set(err, DEP_ERR_REFUSED, "the lock file %s is not a regular file", name);
    if (fd < 0) return err_os(err, errno, "cannot open the lock file %s", name);
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        file_close(fd);
        return err_set(err, DEP_ERR_REFUSED, "the lock file %s is not a regular file", name);
    }
    *ret = fd;
    return DEP_OK;
}

// Someone may have removed the file while we waited for it: a lock on a file without a name excludes nobody.
static bool still_named(int dir, const char *name, int fd) {
    struct stat held, named;
    return fstat(fd, &held) == 0 && fstatat(dir, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

// Until the lock is had, or `end` has passed.
static dep_status wait_for(int fd, int kind, int64_t end, const char *name, dep_err *err) {
    for (int64_t step = 1; flock(fd, kind | LOCK_NB) != 0;) {
        if (errno != EWOULDBLOCK && errno != EINTR) return err_os(err, errno, "cannot lock %s", name);
        int64_t left = end - mono_ms();
        if (left <= 0) return err_set(err, DEP_ERR_BUSY, "%s is locked by another process", name);
        if (step > left) step = left;
        nanosleep(&(struct timespec){.tv_nsec = step * 1000000}, NULL);
        step = step * 2 < LOCK_STEP_MS ? step * 2 : LOCK_STEP_MS;
    }
    return DEP_OK;
}

static int64_t end_of(int timeout_ms) {
    return mono_ms() + (timeout_ms > 0 ? timeout_ms : 0);
}

dep_status lock_take(int dir, str name, bool exclusive, int timeout_ms, int *ret, dep_err *err) {
    char z[NAME_MAX + 1];
    TRY(file_component(name, z, err));
    int64_t end = end_of(timeout_ms);
    for (;;) {
        int fd = -1;
        TRY(open_lock(dir, z, exclusive, &fd, err));
        dep_status status = wait_for(fd, exclusive ? LOCK_EX : LOCK_SH, end, z, err);
        if (status == DEP_OK && still_named(dir, z, fd)) {
            *ret = fd;
            return DEP_OK;
        }
        file_close(fd);
        if (status != DEP_OK) return status;
        if (mono_ms() >= end) return err_set(err, DEP_ERR_BUSY, "%s is locked by another process", z);
    }
}

dep_status lock_dir(int dir, int timeout_ms, int *ret, dep_err *err) {
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return err_os(err, errno, "cannot open the directory");
    dep_err why;
    dep_status status = wait_for(fd, LOCK_EX, end_of(timeout_ms), "the directory", &why);
    bool never = status == DEP_ERR_IO && (why.os == EBADF || why.os == ENOLCK || why.os == ENOTSUP);
    if (status != DEP_OK && !never) {
        file_close(fd);
        if (err) *err = why;
        return status;
    }
    *ret = fd;
    return DEP_OK;
}

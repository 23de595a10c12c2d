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

dep_status lock_take(int dir, str name, bool exclusive, int timeout_ms, int *ret, dep_err *err) {
    char z[NAME_MAX + 1];
    TRY(file_component(name, z, err));
    int64_t end = mono_ms() + (timeout_ms > 0 ? timeout_ms : 0);
    int fd = -1;
    for (int64_t step = 1;;) {
        if (fd < 0) TRY(open_lock(dir, z, exclusive, &fd, err));
        if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) {
            if (still_named(dir, z, fd)) break;
            file_close(fd);
            fd = -1;
        } else if (errno != EWOULDBLOCK && errno != EINTR) {
            int os = errno;
            file_close(fd);
            return err_os(err, os, "cannot lock %s", z);
        }
        int64_t left = end - mono_ms();
        if (left <= 0) {
            file_close(fd);
            return err_set(err, DEP_ERR_BUSY, "%s is locked by another process", z);
        }
        if (step > left) step = left;
        nanosleep(&(struct timespec){.tv_nsec = step * 1000000}, NULL);
        step = step * 2 < LOCK_STEP_MS ? step * 2 : LOCK_STEP_MS;
    }
    *ret = fd;
    return DEP_OK;
}

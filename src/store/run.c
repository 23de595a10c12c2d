// run: which processes are alive. A process holds a lock on run/<id>; the lock dies with it however it dies,
// so a free lock is proof, and no process id can be taken for another's. Beside it is its socket.
#include "store/store_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

dep_status run_dir_open(store *s, dep_err *err) {
    return s->run_dir >= 0 ? DEP_OK : dir_make_at(s->dir, S("run"), 0700, &s->run_dir, err);
}

dep_status store_run_begin(arena *a, store *s, str *run_id, dep_err *err) {
    ARENA_CATCH(a, err);
    TRY(store_writable(s, err));
    TRY(run_dir_open(s, err));
    if (s->run_lock < 0) {
        str id = sys_id(a, s->clock);
        TRY(lock_take(s->run_dir, id, true, STORE_BUSY_MS, &s->run_lock, err));
        memcpy(s->run_id, id.p, id.n < sizeof s->run_id ? id.n : sizeof s->run_id - 1);
        s->run_socket = run_socket_open(s->run_dir, s->run_id);
    }
    *run_id = str_dup(a, str_z(s->run_id));
    return DEP_OK;
}

dep_status run_alive(store *s, str run, bool *ret, dep_err *err) {
    TRY(run_dir_open(s, err));
    char name[STORE_ID_DIGITS + 1] = {0};
    if (!store_is_id(run)) return err_set(err, DEP_ERR_INTERNAL, "the id of a process is damaged");
    memcpy(name, run.p, run.n);
    struct stat st;
    if (fstatat(s->run_dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 && errno == ENOENT) {
        *ret = false;
        return DEP_OK;
    }
    int lock;
    dep_status status = lock_take(s->run_dir, run, true, 0, &lock, err);
    if (status != DEP_OK && status != DEP_ERR_BUSY) return status;
    if (status == DEP_OK) close(lock);
    *ret = status == DEP_ERR_BUSY;
    return DEP_OK;
}

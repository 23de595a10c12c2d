// open: a store's beginning and end. The database file is made and examined without ever opening it beside
// SQLite: closing such a descriptor would drop the locks of every other connection of this process.
#include "store/store_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char db_name[] = "deputy.db";

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static void close_db(store *s) {
    sql_end(s);
    for (size_t i = 0; i < s->n_kept; i++) sqlite3_finalize(s->kept[i].st);
    s->n_kept = 0;
    sqlite3_close(s->db);
    s->db = NULL;
}

void store_close(store *s) {
    if (!s || s->dir < 0) return;
    close_db(s);
    if (s->run_socket >= 0) run_socket_remove(s->run_dir, s->run_id);
    close_fd(&s->run_socket);
    if (s->run_lock >= 0) unlinkat(s->run_dir, s->run_id, 0);
    close_fd(&s->run_lock);
    close_fd(&s->run_dir);
    close_fd(&s->dir);
}

static void close_deferred(void *s) {
    store_close(s);
}

str store_notice(const store *s) {
    return s->notice;
}

// The file of the database: ours alone, a plain file. *found false: not there.
static dep_status check_file(const store *s, bool *found, dep_err *err) {
    int fd = openat(s->dir, db_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    *found = fd >= 0;
    if (fd < 0 && errno == ENOENT) return DEP_OK;
    if (fd < 0) return err_os(err, errno, "cannot examine " STR_FMT, STR_ARG(s->path));
    struct stat st;
    dep_status status = DEP_OK;
    if (fstat(fd, &st) != 0)
        status = err_os(err, errno, "cannot examine " STR_FMT, STR_ARG(s->path));
    else if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
        status = err_set(err, DEP_ERR_REFUSED, STR_FMT " is a link or no regular file", STR_ARG(s->path));
    else
        status = file_check_private(fd, s->path, err);
    close(fd);
    return status;
}

// The path as a URI, so that SQLite takes its name for a name whatever characters it holds.
static str uri_of(arena *a, str path, const char *query) {
    buf out = buf_new(a, 0);
    buf_add(&out, S("file:"));
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        bool plain =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/-._~", c);
        if (c && plain)
            buf_addc(&out, (char)c);
        else
            buf_addf(&out, "%%%02X", c);
    }
    buf_add(&out, str_z(query));
    return buf_str(&out);
}

static dep_status open_db(arena *a, store *s, const char *query, dep_err *err) {
    int flags = SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= s->read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE;
    int code = sqlite3_open_v2(uri_of(a, s->path, query).p, &s->db, flags, NULL);
    if (!s->db) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    if (code != SQLITE_OK) return sql_fail(s, err);
    sql_patience(s, STORE_BUSY_MS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    s->full_sync = true; // SQLite's own default
    return sql_exec(s, "PRAGMA foreign_keys=ON", err);
}

// --- Reading only ----------------------------------------------------------------------------------------

static str immutable_notice(arena *a, const store *s) {
    struct stat st;
    bool wal = fstatat(s->dir, "deputy.db-wal", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0;
    str text = str_fmt(a,
                       "the state directory cannot be written: " STR_FMT
                       " is shown as it was last left, nothing that runs now is seen",
                       STR_ARG(s->path));
    if (wal)
        text = str_fmt(a, STR_FMT "; %lld bytes of newer changes in deputy.db-wal are not read",
                       STR_ARG(text), (long long)st.st_size);
    return text;
}

// A database in WAL mode is read through a file of shared memory. Where that can neither be found nor made,
// nobody writes either, and the file is read as one that does not change.
static dep_status open_reading(arena *a, store *s, int64_t *version, dep_err *err) {
    dep_err why;
    dep_status status = open_db(a, s, "", &why);
    if (status == DEP_OK) status = migrate_version(s, version, &why);
    int code = sqlite3_errcode(s->db) & 0xFF;
    if (status == DEP_OK) return DEP_OK;
    if (code == SQLITE_CANTOPEN || code == SQLITE_READONLY) {
        close_db(s);
        status = open_db(a, s, "?immutable=1", &why);
        if (status == DEP_OK) status = migrate_version(s, version, &why);
        s->notice = immutable_notice(a, s);
    }
    if (status != DEP_OK && err) *err = why;
    return status;
}

static dep_status find_workspace(store *s, str path, dep_err *err) {
    bool row = false;
    TRY(sql_use(s, "SELECT id FROM workspaces WHERE path = ?1", err));
    sql_text(s, 1, path);
    dep_status status = sql_step(s, &row, err);
    s->workspace = status == DEP_OK && row ? sql_col_int(s, 0) : -1;
    sql_end(s);
    return status;
}

// --- Writing ---------------------------------------------------------------------------------------------

static dep_status set_wal(store *s, dep_err *err) {
    bool row = false;
    TRY(sql_use(s, "PRAGMA journal_mode=WAL", err));
    dep_status status = sql_step(s, &row, err);
    const char *mode = status == DEP_OK && row ? (const char *)sqlite3_column_text(s->active, 0) : NULL;
    if (status == DEP_OK && (!mode || strcmp(mode, "wal") != 0))
        status =
            err_set(err, DEP_ERR_IO, STR_FMT " cannot be written by several processes here (journal mode %s)",
                    STR_ARG(s->path), mode ? mode : "unknown");
    sql_end(s);
    return status;
}

// Two processes must not change the mode of a new database at once: that is the one thing SQLite's own
// waiting does not cover.
static dep_status make_current(store *s, dep_err *err) {
    int64_t version;
    TRY(migrate_version(s, &version, err));
    if (version == STORE_SCHEMA) return DEP_OK;
    int lock;
    TRY(lock_take(s->dir, S("deputy.db.lock"), true, STORE_BUSY_MS, &lock, err));
    dep_status status = set_wal(s, err);
    if (status == DEP_OK) status = migrate_run(s, err);
    close(lock);
    return status;
}

static dep_status add_workspace(store *s, str path, dep_err *err) {
    TRY(find_workspace(s, path, err));
    if (s->workspace >= 0) return DEP_OK;
    TRY(sql_begin(s, true, err));
    dep_status status = sql_use(
        s, "INSERT INTO workspaces (path, created_ms) VALUES (?1, ?2) ON CONFLICT (path) DO NOTHING", err);
    if (status == DEP_OK) {
        sql_text(s, 1, path);
        sql_int(s, 2, store_now(s));
        status = sql_step(s, NULL, err);
    }
    TRY(sql_finish(s, status, err));
    return find_workspace(s, path, err);
}

static dep_status open_writing(arena *a, store *s, str workspace, dep_err *err) {
    bool found;
    TRY(check_file(s, &found, err));
    if (!found && mknodat(s->dir, db_name, S_IFREG | 0600, 0) != 0 && errno != EEXIST)
        return err_os(err, errno, "cannot make " STR_FMT, STR_ARG(s->path));
    if (!found) TRY(check_file(s, &found, err));
    TRY(open_db(a, s, "", err));
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return err_set(err, DEP_ERR_IO,
                       STR_FMT
                       " cannot be written; make it writable or set XDG_STATE_HOME to another directory",
                       STR_ARG(s->path));
    TRY(make_current(s, err));
    return add_workspace(s, workspace, err);
}

static dep_status open_any(arena *a, store *s, str state, str workspace, bool *there, dep_err *err) {
    *there = false;
    dep_err why;
    dep_status status = dir_open_private(state, !s->read_only, &s->dir, &why);
    if (status == DEP_ERR_NOT_FOUND && s->read_only) return DEP_OK;
    if (status != DEP_OK) {
        if (err) *err = why;
        return status;
    }
    TRY(netfs_refuse(a, s->dir, state, err));
    if (!s->read_only) {
        *there = true;
        return open_writing(a, s, workspace, err);
    }
    int64_t version;
    TRY(check_file(s, there, err));
    if (!*there) return DEP_OK;
    TRY(open_reading(a, s, &version, err));
    TRY(migrate_reading(s, version, err));
    *there = version > 0;
    return *there ? find_workspace(s, workspace, err) : DEP_OK;
}

dep_status store_open(arena *a, str state, str workspace, bool read_only, const sys_clock *clock, store **ret,
                      dep_err *err) {
    ARENA_CATCH(a, err);
    store *s = NEW(a, store);
    *s = (store){.dir = -1,
                 .run_dir = -1,
                 .run_lock = -1,
                 .run_socket = -1,
                 .workspace = -1,
                 .clock = clock,
                 .read_only = read_only};
    arena_defer(a, close_deferred, s);
    s->path = path_join(a, state, str_z(db_name));
    bool there;
    dep_status status = open_any(a, s, state, workspace, &there, err);
    if (status != DEP_OK || !there) store_close(s);
    if (status == DEP_OK) *ret = there ? s : NULL;
    return status;
}

static dep_status first_finding(store *s, dep_err *err) {
    bool row = false;
    TRY(sql_step(s, &row, err));
    const char *text = row ? (const char *)sqlite3_column_text(s->active, 0) : NULL;
    if (text && strcmp(text, "ok") == 0) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID, STR_FMT " is damaged: %s", STR_ARG(s->path),
                   text ? text : "no answer");
}

dep_status store_check(store *s, dep_err *err) {
    TRY(sql_use(s, "PRAGMA integrity_check(1)", err));
    dep_status status = first_finding(s, err);
    sql_end(s);
    return status;
}

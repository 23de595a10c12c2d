// write: what changes a scope. Every change holds DIR/.lock from before it looks at the files until its bytes
// are durable, so that writers of all processes see each other's work whole. A file is replaced, never
// written in place; trust is recorded before the replace (see trust_entry.was). Nothing here is shown to a
// model but memory_written.
#include "memory/memory_int.h"
#include <deputy/file.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { DIGEST_LENGTH = 64 };

typedef struct {
    size_t files, bytes; // without the file that is being written
    str alike;           // a file whose name only differs in spelling
} usage;

// --- What is there -------------------------------------------------------------------------------

// A temporary that a killed writer left behind. Only writers make them, and they all hold the lock.
static bool is_leftover(const dir_entry *e) {
    return e->type == DT_REG && str_starts(e->name, S(".deputy-")) && str_ends(e->name, S(".tmp"));
}

// fd: the scope's directory (prefix empty) or daily/.
static dep_status count_dir(arena *s, int fd, str prefix, str file, str folded, usage *u, dep_err *err) {
    dir_entries names = {0};
    TRY(dir_list(s, fd, MEMORY_ENTRIES_MAX, &names, err));
    for (vec_each(dir_entry, e, &names)) {
        if (is_leftover(e)) (void)unlinkat(fd, str_cz(s, e->name), 0);
        str name = path_join(s, prefix, e->name);
        if (e->name.p[0] == '.' || e->type == DT_DIR || str_eq(name, file)) continue;
        struct stat st;
        if (fstatat(fd, str_cz(s, e->name), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
        u->files++;
        u->bytes += st.st_size > 0 ? (size_t)st.st_size : 0;
        if (!u->alike.n && str_eq(utf8_fold(s, name), folded)) u->alike = name;
    }
    return DEP_OK;
}

static dep_status count_files(arena *s, const memory_scope *m, str file, usage *u, dep_err *err) {
    int fd = -1;
    dep_err why;
    str folded = utf8_fold(s, file);
    TRY(count_dir(s, m->dir, (str){0}, file, folded, u, err));
    dep_status status = dir_open_at(m->dir, MEMORY_DAILY, FILE_NO_LINKS, &fd, &why);
    if (status != DEP_OK) return DEP_OK; // not there, or refused where the file itself is opened
    status = count_dir(s, fd, MEMORY_DAILY, file, folded, u, err);
    close(fd);
    return status;
}

static dep_status check_limits(arena *s, const memory_scope *m, str file, bool there, size_t size,
                               dep_err *err) {
    usage u = {0};
    if (size > MEMORY_FILE_MAX)
        return err_set(
            err, DEP_ERR_LIMIT,
            STR_FMT
            " would be %zu bytes, over the limit of %d: overwrite it with what still counts, or write "
            "to another file",
            STR_ARG(file), size, MEMORY_FILE_MAX);
    TRY(count_files(s, m, file, &u, err));
    if (!there && u.alike.n)
        return err_set(err, DEP_ERR_INVALID, STR_FMT " is there as " STR_FMT ": write to that name",
                       STR_ARG(file), STR_ARG(u.alike));
    if (!there && u.files >= MEMORY_FILES_MAX)
        return err_set(err, DEP_ERR_LIMIT, "this memory has %zu files, the limit is %d: write to one of them",
                       u.files, MEMORY_FILES_MAX);
    if (u.bytes + size > MEMORY_SCOPE_MAX)
        return err_set(
            err, DEP_ERR_LIMIT,
            "this memory would be %zu bytes, over the limit of %d: overwrite a file with what still counts",
            u.bytes + size, MEMORY_SCOPE_MAX);
    return DEP_OK;
}

// --- Putting bytes in place ----------------------------------------------------------------------

static dep_status put_file(arena *s, const memory_scope *m, str file, str bytes, dep_err *err) {
    if (!str_starts(file, S("daily/"))) return file_replace_at(m->dir, file, bytes, 0600, err);
    int fd = -1;
    TRY(dir_make_at(m->dir, MEMORY_DAILY, 0700, &fd, err));
    struct stat st;
    dep_status status = DEP_OK;
    if (fstat(fd, &st) != 0 || st.st_uid != geteuid()) {
        status = memory_refused(m, MEMORY_DAILY, "other owner", err);
    } else {
        status = file_replace_at(fd, path_base(str_dup(s, file)), bytes, 0600, err);
    }
    close(fd);
    return status;
}

// Under the lock. old: what memory_find said.
static dep_status store(arena *s, const memory_scope *m, str file, const memory_found *old, str bytes,
                        bool record, str sha256, dep_err *err) {
    TRY(check_limits(s, m, file, old->there, bytes.n, err));
    if (m->trust && record) {
        trust_entry e = {.file = path_join(s, m->label, file), .sha256 = sha256, .was = old->sha256};
        TRY(trust_record_all(m->trust, &e, 1, err));
    }
    return put_file(s, m, file, bytes, err);
}

// Locks, and hands the lock to the scratch arena, whose end releases it.
static dep_status lock_scope(arena *s, const memory_scope *m, int wait_ms, dep_err *err) {
    int fd = -1;
    dep_status status = lock_take(m->dir, S(".lock"), true, wait_ms, &fd, err);
    if (status == DEP_OK) {
        arena_defer_close(s, fd);
    } else {
        err_prefix(err, STR_FMT, STR_ARG(m->label));
    }
    return status;
}

// --- Writing -------------------------------------------------------------------------------------

typedef struct {
    str file, body; // body: the content, escaped and ending in a line feed
    str header;
    bool overwrite, no_wait;
    char *sha256; // room for 64 digits
    size_t bytes, resident;
} writing;

static str whole(arena *s, const writing *w, str old) {
    // One piece of the right size: most of it is the old text.
    size_t room = old.n + 2 + w->header.n + 1 + w->body.n + 1;
    buf out = {.a = s, .p = arena_alloc(s, room), .cap = room, .max = BUF_MAX};
    if (!w->overwrite && old.n) {
        buf_add(&out, old);
        if (old.p[old.n - 1] != '\n') buf_addc(&out, '\n');
        buf_addc(&out, '\n');
    }
    buf_add(&out, w->header);
    buf_addc(&out, '\n');
    buf_add(&out, w->body);
    return buf_str(&out);
}

static dep_status write_locked(arena *s, const memory_scope *m, writing *w, dep_err *err) {
    memory_found old;
    TRY(lock_scope(s, m, w->no_wait ? 0 : MEMORY_LOCK_MS, err));
    TRY(memory_find(s, m, w->file, true, &old, err));
    if (old.why) return memory_refused(m, w->file, old.why, err);
    str bytes = whole(s, w, old.bytes);
    str sha256 = sha256_hex(s, bytes);
    TRY(store(s, m, w->file, &old, bytes, true, sha256, err));
    memcpy(w->sha256, sha256.p, DIGEST_LENGTH);
    w->bytes = bytes.n;
    if (str_chr(w->file, '/') == SIZE_MAX) {
        size_t chars;
        str end = foreign(s, memory_end(bytes), FOREIGN_TEXT, 0);
        memory_newest(s, end, MEMORY_RESIDENT_CHARS, &chars, &w->resident);
    }
    return DEP_OK;
}

static str with_line_end(arena *a, str s) {
    if (s.n && s.p[s.n - 1] == '\n') return s;
    return str_fmt(a, STR_FMT "\n", STR_ARG(s));
}

dep_status memory_write(arena *a, memory_scope *m, str file, str content, const memory_write_opts *o,
                        memory_written *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    if (!file.n) file = MEMORY_DEFAULT;
    TRY(memory_check_name(file, err));
    if (content.n > MEMORY_WRITE_MAX)
        return err_set(err, DEP_ERR_LIMIT,
                       "%zu bytes are over the limit of %d for one write: write less, or in parts", content.n,
                       MEMORY_WRITE_MAX);
    if (!o->overwrite && !str_trim(content).n)
        return err_set(err, DEP_ERR_INVALID, "there is nothing to write");
    str body = memory_escape(a, utf8_repair(a, content));
    writing w = {.file = file,
                 .body = with_line_end(a, body),
                 .header = memory_header(a, m->clock, o),
                 .overwrite = o->overwrite,
                 .no_wait = o->no_wait,
                 .sha256 = arena_alloc(a, DIGEST_LENGTH)};
    memory_written done = {.file = str_dup(a, file),
                           .excerpt = str_dup(a, utf8_cut_chars(body, MEMORY_EXCERPT_CHARS))};
    // Whole files and the lock live no longer than this write.
    arena *s = arena_new();
    dep_status status = write_locked(s, m, &w, err);
    if (status == DEP_OK) {
        done.sha256 = str_n(w.sha256, DIGEST_LENGTH);
        done.bytes = w.bytes;
        done.resident_chars = w.resident;
        *ret = done;
    }
    arena_free(s);
    return status;
}

static dep_status replace_locked(arena *s, const memory_scope *m, str file, str was, str bytes,
                                 dep_err *err) {
    memory_found old;
    TRY(lock_scope(s, m, MEMORY_LOCK_MS, err));
    TRY(memory_find(s, m, file, true, &old, err));
    if (old.why && !old.untrusted) return memory_refused(m, file, old.why, err);
    if (old.there && !old.sha256.n) old.sha256 = sha256_hex(s, old.bytes);
    if (!str_eq(was, old.sha256))
        return err_set(err, DEP_ERR_REFUSED,
                       STR_FMT "/" STR_FMT " has changed since it was opened: nothing is written",
                       STR_ARG(m->label), STR_ARG(file));
    return store(s, m, file, &old, bytes, !old.untrusted, sha256_hex(s, bytes), err);
}

dep_status memory_replace(arena *a, memory_scope *m, str file, str was, str bytes, dep_err *err) {
    (void)a;
    TRY(memory_check_name(file, err));
    arena *s = arena_new();
    dep_status status = replace_locked(s, m, file, was, bytes, err);
    arena_free(s);
    return status;
}

// --- Removing ------------------------------------------------------------------------------------

static dep_status remove_locked(arena *s, const memory_scope *m, str file, dep_err *err) {
    TRY(lock_scope(s, m, MEMORY_LOCK_MS, err));
    bool daily = str_starts(file, S("daily/"));
    int fd = -1;
    // The name goes, whatever it leads to; daily/ itself is never followed out of the scope.
    TRY(dir_open_at(m->dir, daily ? MEMORY_DAILY : S("."), FILE_NO_LINKS, &fd, err));
    arena_defer_close(s, fd);
    if (unlinkat(fd, str_cz(s, path_base(file)), 0) != 0)
        return err_os(err, errno, "cannot remove " STR_FMT "/" STR_FMT, STR_ARG(m->label), STR_ARG(file));
    if (fsync(fd) != 0 && errno != EINVAL && errno != ENOTSUP)
        return err_os(err, errno, "cannot sync " STR_FMT, STR_ARG(m->label));
    return m->trust ? trust_forget(m->trust, path_join(s, m->label, file), err) : DEP_OK;
}

dep_status memory_remove(memory_scope *m, str file, dep_err *err) {
    TRY(memory_check_name(file, err));
    arena *s = arena_new();
    dep_status status = remove_locked(s, m, file, err);
    arena_free(s);
    return status;
}

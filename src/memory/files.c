// files: finding, judging, listing and reading the files of a scope. It must not change any. A file is judged
// on what was opened: regular, ours, one link, within its limit, and of bytes that are trusted. Lists and
// reasons are in the caller's arena; bytes that are only hashed are dropped at once.
#include "memory/memory_int.h"
#include <deputy/file.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

// Rounds of reading again while other processes write: each round sees a newer list than the one before.
enum { TRUST_ROUNDS = 16 };

#define WHY_LINK "symbolic link"
#define WHY_KIND "not a regular file"

// --- One file ------------------------------------------------------------------------------------

// Why the name cannot be opened, looked at without following it.
static const char *why_refused(const memory_scope *m, arena *a, str file, struct stat *st) {
    bool daily = str_starts(file, S("daily/"));
    if (daily && (fstatat(m->dir, "daily", st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISDIR(st->st_mode)))
        return S_ISLNK(st->st_mode) ? WHY_LINK : WHY_KIND;
    if (fstatat(m->dir, str_cz(a, file), st, AT_SYMLINK_NOFOLLOW) != 0) return "cannot be read";
    return S_ISLNK(st->st_mode) ? WHY_LINK : S_ISREG(st->st_mode) ? "cannot be read" : WHY_KIND;
}

static const char *why_not_ours(const memory_scope *m, str file, const struct stat *st) {
    struct stat parent;
    if (st->st_uid != geteuid()) return "other owner";
    if (str_starts(file, S("daily/")) &&
        (fstatat(m->dir, "daily", &parent, AT_SYMLINK_NOFOLLOW) != 0 || parent.st_uid != geteuid()))
        return "other owner";
    if (st->st_nlink > 1) return "several links";
    if (st->st_size > MEMORY_FILE_MAX) return "over 256 KiB";
    return NULL;
}

// Everything but trust.
static dep_status find_once(arena *a, const memory_scope *m, str file, bool want_bytes, memory_found *f,
                            dep_err *err) {
    int fd = -1;
    dep_err why;
    *f = (memory_found){0};
    dep_status status = file_open_at(m->dir, file, FILE_NO_LINKS, &fd, &f->st, &why);
    if (status == DEP_ERR_NOT_FOUND) return DEP_OK;
    f->there = true;
    if (status != DEP_OK) {
        f->why = why_refused(m, a, file, &f->st);
        return DEP_OK;
    }
    f->why = why_not_ours(m, file, &f->st);
    if (!f->why && (want_bytes || m->trust)) {
        status = file_read_fd(a, fd, MEMORY_FILE_MAX, false, &f->bytes, &why);
        if (status == DEP_ERR_NOMEM) {
            close(fd);
            if (err) *err = why;
            return status;
        }
        if (status != DEP_OK) f->why = status == DEP_ERR_LIMIT ? "over 256 KiB" : "cannot be read";
    }
    close(fd);
    return DEP_OK;
}

dep_status memory_find(arena *a, const memory_scope *m, str file, bool want_bytes, memory_found *ret,
                       dep_err *err) {
    str path = path_join(a, m->label, file);
    for (int round = 0; round < TRUST_ROUNDS; round++) {
        TRY(find_once(a, m, file, want_bytes, ret, err));
        if (!ret->there || ret->why || !(want_bytes || m->trust)) return DEP_OK;
        if (!m->trust) return DEP_OK;
        ret->sha256 = sha256_hex(a, ret->bytes);
        trust_state state = trust_check(m->trust, path, ret->sha256, NULL);
        if (state == TRUST_OK) return DEP_OK;
        ret->untrusted = true;
        ret->why =
            state == TRUST_NEVER ? "untrusted: not written by Deputy" : "untrusted: changed outside Deputy";
        // Writers record before they replace: bytes that another process has put here since our list was read
        // are in the newer list. When there is none, they are from somebody else.
        bool changed = false;
        TRY(trust_reload(m->trust, &changed, err));
        if (!changed) return DEP_OK;
    }
    return DEP_OK;
}

dep_status memory_refused(const memory_scope *m, str file, const char *why, dep_err *err) {
    bool trust = str_starts(str_z(why), S("untrusted"));
    return err_set(err, DEP_ERR_REFUSED, STR_FMT "/" STR_FMT " is not used: %s%s", STR_ARG(m->label),
                   STR_ARG(file), why, trust ? " (look at it and accept it with `deputy trust`)" : "");
}

dep_status memory_read(arena *a, memory_scope *m, str file, bool trusted_only, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    memory_found f;
    TRY(memory_check_name(file, err));
    TRY(memory_find(a, m, file, true, &f, err));
    if (!f.there)
        return err_set(err, DEP_ERR_NOT_FOUND, "there is no memory file " STR_FMT " in " STR_FMT,
                       STR_ARG(file), STR_ARG(m->label));
    if (f.why && (trusted_only || !f.untrusted)) return memory_refused(m, file, f.why, err);
    *ret = f.bytes;
    return DEP_OK;
}

// --- All files -----------------------------------------------------------------------------------

static void add(arena *a, memory_items *all, str name, const struct stat *st, const char *why, str bytes) {
    memory_item i = {.bytes = bytes, .st = *st};
    i.f = (memory_file){.name = str_dup(a, name),
                        .bytes = st->st_size > 0 ? (size_t)st->st_size : 0,
                        .mtime_ms = (int64_t)st->st_mtim.tv_sec * 1000 + st->st_mtim.tv_nsec / 1000000,
                        .resident = str_chr(name, '/') == SIZE_MAX,
                        .withheld = str_z(why)};
    vec_push(a, all, i);
}

typedef struct {
    arena *a, *bytes;
    const memory_scope *m;
    bool want_bytes;
    size_t files; // judged so far
    memory_items *all;
} scan;

static dep_status scan_file(scan *s, str name, dep_err *err) {
    memory_found f = {0};
    struct stat st = {0};
    if (!memory_name_ok(name)) {
        if (fstatat(s->m->dir, str_cz(s->a, name), &st, AT_SYMLINK_NOFOLLOW) != 0)
            return DEP_OK; // gone meanwhile
        add(s->a, s->all, name, &st, "name not allowed", (str){0});
        return DEP_OK;
    }
    if (s->files++ >= MEMORY_FILES_MAX) {
        if (fstatat(s->m->dir, str_cz(s->a, name), &st, AT_SYMLINK_NOFOLLOW) == 0)
            add(s->a, s->all, name, &st, "more than 200 files", (str){0});
        return DEP_OK;
    }
    TRY(memory_find(s->bytes, s->m, name, s->want_bytes, &f, err));
    if (f.there) add(s->a, s->all, name, &f.st, f.why, f.bytes);
    if (!s->want_bytes) arena_reset(s->bytes);
    return DEP_OK;
}

// MEMORY.md before all others, so that 200 other files cannot push it out.
static int default_first(const void *x, const void *y) {
    const dir_entry *a = x, *b = y;
    bool first = str_eq(a->name, MEMORY_DEFAULT), second = str_eq(b->name, MEMORY_DEFAULT);
    if (first != second) return first ? -1 : 1;
    return str_cmp(a->name, b->name);
}

static dep_status scan_daily(scan *s, dep_err *err) {
    int fd = -1;
    dep_err why;
    dir_entries names = {0};
    struct stat st = {0};
    dep_status status = dir_open_at(s->m->dir, MEMORY_DAILY, FILE_NO_LINKS, &fd, &why);
    if (status == DEP_ERR_NOT_FOUND) return DEP_OK;
    if (status == DEP_OK && fstat(fd, &st) == 0 && st.st_uid != geteuid()) status = DEP_ERR_REFUSED;
    if (status != DEP_OK) {
        if (fd >= 0) close(fd);
        if (!st.st_mode) (void)fstatat(s->m->dir, "daily", &st, AT_SYMLINK_NOFOLLOW);
        add(s->a, s->all, MEMORY_DAILY, &st,
            S_ISLNK(st.st_mode)   ? WHY_LINK
            : S_ISDIR(st.st_mode) ? "other owner"
                                  : WHY_KIND,
            (str){0});
        return DEP_OK;
    }
    status = dir_list(s->a, fd, MEMORY_ENTRIES_MAX, &names, err);
    close(fd);
    if (status != DEP_OK) {
        err_prefix(err, STR_FMT "/daily", STR_ARG(s->m->label));
        return status;
    }
    for (vec_each(dir_entry, e, &names))
        if (e->name.p[0] != '.') TRY(scan_file(s, path_join(s->a, MEMORY_DAILY, e->name), err));
    return DEP_OK;
}

dep_status memory_scan(arena *a, arena *bytes, const memory_scope *m, bool want_bytes, memory_items *ret,
                       dep_err *err) {
    memory_items all = {0};
    dir_entries names = {0};
    scan s = {.a = a, .bytes = bytes, .m = m, .want_bytes = want_bytes, .all = &all};
    dep_status status = dir_list(a, m->dir, MEMORY_ENTRIES_MAX, &names, err);
    if (status != DEP_OK) {
        err_prefix(err, STR_FMT, STR_ARG(m->label));
        return status;
    }
    if (names.n) qsort(names.p, names.n, sizeof *names.p, default_first);
    for (vec_each(dir_entry, e, &names))
        if (e->name.p[0] != '.' && !str_eq(e->name, MEMORY_DAILY)) TRY(scan_file(&s, e->name, err));
    TRY(scan_daily(&s, err));
    *ret = all;
    return DEP_OK;
}

static dep_status list_caught(arena *a, arena *bytes, memory_scope *m, memory_files *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    memory_items items;
    memory_files files = {0};
    TRY(memory_scan(a, bytes, m, false, &items, err));
    for (vec_each(memory_item, i, &items)) vec_push(a, &files, i->f);
    *ret = files;
    return DEP_OK;
}

dep_status memory_list(arena *a, memory_scope *m, memory_files *ret, dep_err *err) {
    arena *bytes = arena_new();
    dep_status status = list_caught(a, bytes, m, ret, err);
    arena_free(bytes);
    return status;
}

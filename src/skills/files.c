// files: what lies in a skill's folder beside SKILL.md. Everything is opened beneath the descriptor that was
// opened when the skill was found; links may lead about inside the folder and never out of it. It must not
// execute, decode or interpret anything.
#include "skills/skills_int.h"
#include <deputy/file.h>
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    arena *a;
    const skill *sk;
    strs files;
    size_t entries;
    VEC(struct stat) seen; // directories on the way, so that links in a circle end
} listing;

static bool hidden(str name) {
    return name.n && name.p[0] == '.';
}

static bool refused(const skill *sk, const struct stat *st) {
    return sk->refuse && sk->refuse(sk->ctx, st);
}

static dep_status list_dir(listing *l, str rel, int depth, dep_err *err);

static dep_status list_entry(listing *l, str path, const dir_entry *e, int depth, dep_err *err) {
    struct stat st;
    dep_err why;
    if (file_stat_at(l->sk->dir, path, FILE_LINKS_INSIDE, &st, &why) != DEP_OK)
        return DEP_OK; // gone, or leads out
    if (refused(l->sk, &st)) return DEP_OK;
    if (S_ISREG(st.st_mode)) {
        vec_push(l->a, &l->files, path);
        return DEP_OK;
    }
    if (!S_ISDIR(st.st_mode) || depth >= SKILL_LIST_DEPTH) return DEP_OK;
    if (e->type == DT_LNK)
        for (vec_each(const struct stat, s, &l->seen))
            if (s->st_dev == st.st_dev && s->st_ino == st.st_ino) return DEP_OK;
    vec_push(l->a, &l->seen, st);
    return list_dir(l, path, depth + 1, err);
}

static dep_status list_dir(listing *l, str rel, int depth, dep_err *err) {
    int fd = -1;
    dir_entries names = {0};
    if (dir_open_at(l->sk->dir, rel, FILE_LINKS_INSIDE, &fd, err) != DEP_OK)
        return DEP_OK; // unreadable, or gone
    dep_status status = dir_list(l->a, fd, SKILL_ENTRIES_MAX, &names, err);
    close(fd);
    if (status != DEP_OK) return status;
    for (vec_each(const dir_entry, e, &names)) {
        if (hidden(e->name) || (rel.n == 0 && str_eq(e->name, path_base(l->sk->location)))) continue;
        if (++l->entries > SKILL_ENTRIES_MAX)
            return err_set(err, DEP_ERR_LIMIT, "more than %d files and folders in the skill",
                           SKILL_ENTRIES_MAX);
        TRY(list_entry(l, path_join(l->a, rel, e->name), e, depth, err));
    }
    return DEP_OK;
}

static dep_status check_open(const skill *sk, dep_err *err) {
    if (sk->dir >= 0) return DEP_OK;
    return err_set(err, DEP_ERR_REFUSED, "the folder of this skill is not open: only its text can be read");
}

dep_status skill_files(arena *a, const skill *sk, strs *ret, size_t *more, dep_err *err) {
    ARENA_CATCH(a, err);
    listing l = {.a = a, .sk = sk};
    struct stat st;
    TRY(check_open(sk, err));
    if (fstat(sk->dir, &st) == 0) vec_push(a, &l.seen, st);
    TRY(list_dir(&l, (str){0}, 0, err));
    if (l.files.n) qsort(l.files.p, l.files.n, sizeof *l.files.p, str_cmp_qsort);
    *more = l.files.n > SKILL_LIST_MAX ? l.files.n - SKILL_LIST_MAX : 0;
    l.files.n -= *more;
    *ret = l.files;
    return DEP_OK;
}

// The path in normal form, without hidden components.
static dep_status file_path(arena *a, str file, str *ret, dep_err *err) {
    str rest, part;
    if (!path_normal(a, file, ret) || !ret->n)
        return err_set(err, DEP_ERR_INVALID, "'" STR_FMT "' is not a path within the skill's folder",
                       STR_ARG(skill_shown(a, file)));
    rest = *ret;
    for (bool go_on = true; go_on;) {
        go_on = str_cut(rest, '/', &part, &rest);
        if (hidden(part))
            return err_set(err, DEP_ERR_INVALID,
                           "'" STR_FMT "' is hidden, and hidden files are no part of a skill",
                           STR_ARG(skill_shown(a, file)));
    }
    return DEP_OK;
}

dep_status skill_read(arena *a, const skill *sk, str file, str *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    int fd = -1;
    struct stat st;
    str path;
    dep_err why;
    TRY(check_open(sk, err));
    TRY(file_path(a, file, &path, err));
    dep_status status = file_open_at(sk->dir, path, FILE_LINKS_INSIDE, &fd, &st, &why);
    if (status != DEP_OK) {
        str link = skill_link_target(a, sk->dir, path);
        if (err) *err = why;
        if (link.n) err_set(err, status, "link out of the skill, or to nothing: " STR_FMT, STR_ARG(link));
        return status;
    }
    if (refused(sk, &st)) {
        status = err_set(err, DEP_ERR_REFUSED, "'" STR_FMT "' is no part of the skill",
                         STR_ARG(skill_shown(a, path)));
    } else {
        status = file_read_fd(a, fd, SKILL_RESOURCE_MAX, false, ret, err);
        if (status != DEP_OK) err_prefix(err, STR_FMT, STR_ARG(skill_shown(a, path)));
    }
    close(fd);
    return status;
}

// tools: which files read, glob and grep may open. The boundary is a descriptor: the workspace's, or one per
// `permissions.read` prefix, and the kernel resolves every path beneath it. What was opened is then checked
// by what it is: memory by inode (rule B2), sensitive files by their real path (rule B5).
#include "tools/tools_int.h"
#include <deputy/policy.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void hold_prefix(toolset *t, str path) {
    held_prefix p = {.path = path, .fd = -1};
    dep_err why;
    str dir = str_eq(path, S(".")) ? S("") : path;
    if (dir_open_at(t->w->fd, dir, FILE_LINKS_INSIDE, &p.fd, &why) != DEP_OK) {
        // Not a directory: a single file is held by its directory and name.
        p.name = path_base(path);
        if (dir_open_at(t->w->fd, path_dir(path), FILE_LINKS_INSIDE, &p.fd, &why) != DEP_OK) p.missing = true;
    }
    if (!p.missing) arena_defer_close(t->a, p.fd);
    vec_push(t->a, &t->prefixes, p);
}

static dep_status add_pattern(toolset *t, str text, bool exclude, held_source *s, dep_err *err) {
    glob_pat *g;
    TRY(glob_compile(t->a, text, &g, err));
    if (exclude) {
        vec_push(t->a, &s->exclude, g);
    } else {
        vec_push(t->a, &s->include, g);
    }
    if (!glob_literal(g)) return DEP_OK;
    // A plain directory means everything below it.
    TRY(glob_compile(t->a, str_fmt(t->a, STR_FMT "/**/*", STR_ARG(text)), &g, err));
    if (exclude) {
        vec_push(t->a, &s->exclude, g);
    } else {
        vec_push(t->a, &s->include, g);
    }
    return DEP_OK;
}

dep_status access_prepare(toolset *t, dep_err *err) {
    if (t->g->read.bounded)
        for (vec_each(const str, p, &t->g->read.prefixes)) hold_prefix(t, *p);
    for (vec_each(const def_source, s, &t->g->sources)) {
        held_source held = {0};
        for (vec_each(const str, g, &s->path)) TRY(add_pattern(t, *g, false, &held, err));
        for (vec_each(const str, g, &s->exclude)) TRY(add_pattern(t, *g, true, &held, err));
        vec_push(t->a, &t->sources, held);
    }
    return DEP_OK;
}

dep_status access_path(const toolset *t, arena *a, str arg, str *rel, dep_err *err) {
    str root = t->w->root, path = arg;
    if (str_starts(path, root) && (path.n == root.n || path.p[root.n] == '/')) {
        path = str_sub(path, root.n, path.n);
        while (str_starts(path, S("/"))) path = str_sub(path, 1, path.n);
    }
    if (!path.n || str_eq(path, S(".")) || str_eq(path, S("./"))) {
        *rel = S("");
        return DEP_OK;
    }
    if (!path_normal(a, path, rel))
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT "\" is outside the workspace; give a path relative to it, without `..`",
                       STR_ARG(arg));
    if (str_eq(*rel, S("."))) *rel = S("");
    return DEP_OK;
}

static bool in_source(const toolset *t, str rel) {
    for (vec_each(const held_source, s, &t->sources)) {
        bool in = false;
        for (vec_each(glob_pat *const, g, &s->include)) in |= glob_match(*g, rel);
        for (vec_each(glob_pat *const, g, &s->exclude)) in &= !glob_match(*g, rel);
        if (in) return true;
    }
    return false;
}

bool access_allowed(const toolset *t, str rel) {
    if (memory_path(rel) || path_sensitive(rel)) return false;
    if (!t->g->read.bounded || path_under(rel, t->g->read.prefixes.p, t->g->read.prefixes.n)) return true;
    return in_source(t, rel);
}

bool access_may_descend(const toolset *t, str rel) {
    if (memory_path(rel)) return false;
    if (!t->g->read.bounded || !rel.n) return true;
    for (vec_each(const held_prefix, p, &t->prefixes))
        if (path_under(rel, &p->path, 1) || path_under(p->path, &rel, 1)) return true;
    for (vec_each(const held_source, s, &t->sources))
        for (vec_each(glob_pat *const, g, &s->include))
            if (glob_may_descend(*g, rel)) return true;
    return false;
}

// Where an open file really is, relative to the workspace; empty when it cannot be told.
static str real_path(const toolset *t, arena *a, int fd) {
    char link[64], path[FILE_PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    str real = n > 0 ? str_dup(a, str_n(path, (size_t)n)) : (str){0}, root = t->w->root;
    if (!str_starts(real, root) || real.n <= root.n || real.p[root.n] != '/') return (str){0};
    return str_sub(real, root.n + 1, real.n);
}

static dep_status check_opened(toolset *t, arena *a, const opened_file *f, dep_err *err) {
    if (workspace_is_memory(t->w, &f->st))
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT "\" belongs to memory, which only the memory tools reach",
                       STR_ARG(f->rel));
    str real = real_path(t, a, f->fd);
    const char *why = real.n ? path_sensitive(real) : NULL;
    if (why)
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT
                       "\" is %s; it is not read without a person's approval, which does not exist yet",
                       STR_ARG(f->rel), why);
    if (real.n && memory_path(real))
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT "\" belongs to memory, which only the memory tools reach",
                       STR_ARG(f->rel));
    return DEP_OK;
}

static dep_status open_bounded(toolset *t, str rel, opened_file *ret, dep_err *err) {
    for (vec_each(const held_prefix, p, &t->prefixes)) {
        if (p->missing || !path_under(rel, &p->path, 1)) continue;
        if (p->name.n) return file_open_at(p->fd, p->name, FILE_LINKS_INSIDE, &ret->fd, &ret->st, err);
        str below = str_eq(p->path, S(".")) ? rel : str_sub(rel, p->path.n + 1, rel.n);
        return file_open_at(p->fd, below, FILE_LINKS_INSIDE, &ret->fd, &ret->st, err);
    }
    if (in_source(t, rel)) return file_open_at(t->w->fd, rel, FILE_LINKS_INSIDE, &ret->fd, &ret->st, err);
    return err_set(err, DEP_ERR_REFUSED,
                   "\"" STR_FMT "\" is outside what `permissions.read` allows: [" STR_FMT "]", STR_ARG(rel),
                   STR_ARG(str_join(t->a, t->g->read.prefixes.p, t->g->read.prefixes.n, S(", "))));
}

dep_status access_open(toolset *t, arena *a, str rel, opened_file *ret, dep_err *err) {
    if (!rel.n) return err_set(err, DEP_ERR_REFUSED, "that is the workspace itself, not a file");
    if (memory_path(rel))
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT "\" belongs to memory, which only the memory tools reach", STR_ARG(rel));
    const char *why = path_sensitive(rel);
    if (why)
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT
                       "\" is %s; it is not read without a person's approval, which does not exist yet",
                       STR_ARG(rel), why);
    *ret = (opened_file){.fd = -1, .rel = rel};
    TRY(t->g->read.bounded ? open_bounded(t, rel, ret, err)
                           : file_open_at(t->w->fd, rel, FILE_LINKS_INSIDE, &ret->fd, &ret->st, err));
    dep_status st = check_opened(t, a, ret, err);
    if (st != DEP_OK) close(ret->fd);
    return st;
}

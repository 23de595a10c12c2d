// tools: which files read, glob and grep may open. The boundary is a descriptor: the workspace's, or one per
// `permissions.read` prefix, and the kernel resolves every path beneath it. What was opened is then judged by
// what it is: memory by inode (rule B2), and what a link led to by its real path, which must be allowed by
// itself (rules B2, B5).
#include "tools/tools_int.h"
#include <deputy/policy.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

// --- What is held --------------------------------------------------------------------------------

// No component of a prefix may be a link: whoever can put a link into the workspace would else choose what a
// definition allows. Held since the toolset was built, so that a later swap changes nothing.
static void hold_prefix(toolset *t, str path) {
    dep_err why;
    if (str_eq(path, S("."))) path = S("");
    held_prefix p = {.path = path, .fd = -1};
    dep_status st = dir_open_at(t->w->fd, path, FILE_NO_LINKS, &p.fd, &why);
    if (st == DEP_ERR_REFUSED && why.os == ENOTDIR) {
        // A single file is held by its directory and name.
        p.name = path_base(path);
        st = dir_open_at(t->w->fd, path_dir(path), FILE_NO_LINKS, &p.fd, &why);
    }
    if (st == DEP_OK) {
        arena_defer_close(t->a, p.fd);
    } else {
        p.missing = str_dup(t->a, str_z(why.msg));
    }
    vec_push(t->a, &t->prefixes, p);
}

static bool has_wildcard(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '*' || s.p[i] == '?' || s.p[i] == '[') return true;
    return false;
}

// As the search reads them: what names a directory means everything below it.
static dep_status add_include(toolset *t, str text, held_source *s, dep_err *err) {
    glob_pat *g;
    TRY(glob_compile(t->a, text, &g, err));
    vec_push(t->a, &s->include, g);
    if (has_wildcard(text)) return DEP_OK;
    TRY(glob_compile(t->a, str_fmt(t->a, STR_FMT "/**/*", STR_ARG(text)), &g, err));
    vec_push(t->a, &s->include, g);
    return DEP_OK;
}

static dep_status add_exclude(toolset *t, str text, held_source *s, dep_err *err) {
    held_exclude x = {0};
    str last = path_base(text);
    TRY(glob_compile(t->a, text, &x.g, err));
    x.covers = str_eq(last, S("**")) || !has_wildcard(last);
    vec_push(t->a, &s->exclude, x);
    return DEP_OK;
}

dep_status access_prepare(toolset *t, dep_err *err) {
    if (t->g->read.bounded)
        for (vec_each(const str, p, &t->g->read.prefixes)) hold_prefix(t, *p);
    for (vec_each(const def_source, s, &t->g->sources)) {
        held_source held = {0};
        for (vec_each(const str, g, &s->path)) TRY(add_include(t, *g, &held, err));
        for (vec_each(const str, g, &s->exclude)) TRY(add_exclude(t, *g, &held, err));
        vec_push(t->a, &t->sources, held);
    }
    return DEP_OK;
}

// --- What a path tells ---------------------------------------------------------------------------

bool access_below_root(str root, str path, str *rest) {
    if (str_eq(root, S("/"))) root = S("");
    if (!str_starts(path, root) || (path.n > root.n && path.p[root.n] != '/')) return false;
    *rest = str_sub(path, root.n, path.n);
    while (str_starts(*rest, S("/"))) *rest = str_sub(*rest, 1, rest->n);
    return true;
}

dep_status access_path(const toolset *t, arena *a, str arg, str *rel, dep_err *err) {
    str path = arg;
    if (str_starts(arg, S("/"))) access_below_root(t->w->root, arg, &path);
    if (!path_normal(a, path, rel))
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT "\" is outside the workspace; give a path relative to it, without `..`",
                       STR_ARG(arg));
    return DEP_OK;
}

static bool within_deputy(str rel) {
    str head;
    for (bool more = true; more;) {
        more = str_cut(rel, '/', &head, &rel);
        if (str_ieq(head, S(".deputy"))) return true;
    }
    return false;
}

static bool excluded(const held_source *s, str rel) {
    for (vec_each(const held_exclude, x, &s->exclude)) {
        if (glob_match(x->g, rel)) return true;
        for (size_t i = 0; x->covers && i < rel.n; i++)
            if (rel.p[i] == '/' && glob_match(x->g, str_sub(rel, 0, i))) return true;
    }
    return false;
}

static bool in_source(const toolset *t, str rel) {
    if (within_deputy(rel)) return false;
    for (vec_each(const held_source, s, &t->sources))
        for (vec_each(glob_pat *const, g, &s->include))
            if (glob_match(*g, rel) && !excluded(s, rel)) return true;
    return false;
}

bool access_allowed(const toolset *t, str rel) {
    if (workspace_memory_path(rel) || path_sensitive(rel)) return false;
    if (!t->g->read.bounded || path_under(rel, t->g->read.prefixes.p, t->g->read.prefixes.n)) return true;
    return in_source(t, rel);
}

bool access_may_descend(const toolset *t, str rel) {
    if (workspace_memory_path(rel)) return false;
    if (!t->g->read.bounded || !rel.n) return true;
    for (vec_each(const held_prefix, p, &t->prefixes))
        if (path_under(rel, &p->path, 1) || path_under(p->path, &rel, 1)) return true;
    for (vec_each(const held_source, s, &t->sources))
        for (vec_each(glob_pat *const, g, &s->include))
            if (glob_may_descend(*g, rel)) return true;
    return false;
}

// --- Opening -------------------------------------------------------------------------------------

static dep_status is_memory(str rel, dep_err *err) {
    return err_set(err, DEP_ERR_REFUSED,
                   "\"" STR_FMT "\" belongs to memory, which only the memory tools reach", STR_ARG(rel));
}

static dep_status is_sensitive(str rel, const char *why, dep_err *err) {
    return err_set(err, DEP_ERR_REFUSED,
                   "\"" STR_FMT
                   "\" is %s; it is not read without a person's approval, which does not exist yet",
                   STR_ARG(rel), why);
}

static bool proc_path(arena *a, int fd, str *ret) {
    char link[64], path[FILE_PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path);
    if (n <= 0 || (size_t)n >= sizeof path || path[0] != '/') return false;
    *ret = str_dup(a, str_n(path, (size_t)n));
    return true;
}

// Where an open file really is, below the workspace as it is held; false when that cannot be told, or when
// the file has gone meanwhile (its path then says nothing).
static bool real_path(const toolset *t, arena *a, const opened_file *f, str *ret) {
    str root, path;
    struct stat st;
    return fstat(f->fd, &st) == 0 && st.st_nlink > 0 && proc_path(a, t->w->fd, &root) &&
           proc_path(a, f->fd, &path) && access_below_root(root, path, ret) && ret->n > 0;
}

// A link does not make anything readable that could not be read by its own name.
static dep_status check_target(const toolset *t, arena *a, const opened_file *f, dep_err *err) {
    str real;
    if (!real_path(t, a, f, &real))
        return err_set(err, DEP_ERR_REFUSED, "\"" STR_FMT "\" is a link, and where it leads cannot be told",
                       STR_ARG(f->rel));
    if (workspace_memory_path(real)) return is_memory(f->rel, err);
    const char *why = path_sensitive(real);
    if (why) return is_sensitive(f->rel, why, err);
    if (within_deputy(real) || !access_allowed(t, real))
        return err_set(err, DEP_ERR_REFUSED, "\"" STR_FMT "\" is a link to \"" STR_FMT "\", which %s",
                       STR_ARG(f->rel), STR_ARG(real),
                       within_deputy(real) ? "no link reaches" : "`permissions.read` does not allow");
    return DEP_OK;
}

// Opens beneath dir: first without links, so that a link is known to be one.
static dep_status open_beneath(const toolset *t, arena *a, int dir, str path, opened_file *f, dep_err *err) {
    bool linked = false;
    dep_status st = file_open_at(dir, path, FILE_NO_LINKS, &f->fd, &f->st, err);
    if (st == DEP_ERR_REFUSED) {
        linked = true;
        st = file_open_at(dir, path, FILE_LINKS_INSIDE, &f->fd, &f->st, err);
    }
    if (st != DEP_OK) return st;
    if (workspace_is_memory(t->w, &f->st)) {
        st = t->w->guard_fault.n
                 ? err_set(err, DEP_ERR_REFUSED,
                           "no file is read, because which of them are memory cannot be told: " STR_FMT,
                           STR_ARG(t->w->guard_fault))
                 : is_memory(f->rel, err);
    } else if (linked) {
        st = check_target(t, a, f, err);
    }
    if (st != DEP_OK) close(f->fd);
    return st;
}

static dep_status out_of_bounds(const toolset *t, arena *a, str rel, dep_err *err) {
    for (vec_each(const held_prefix, p, &t->prefixes))
        if (p->missing.n && path_under(rel, &p->path, 1))
            return err_set(err, DEP_ERR_REFUSED,
                           "\"" STR_FMT "\": `permissions.read` names \"" STR_FMT
                           "\", which is not reached: " STR_FMT,
                           STR_ARG(rel), STR_ARG(p->path), STR_ARG(p->missing));
    return err_set(err, DEP_ERR_REFUSED,
                   "\"" STR_FMT "\" is outside what `permissions.read` allows: [" STR_FMT "]", STR_ARG(rel),
                   STR_ARG(str_join(a, t->g->read.prefixes.p, t->g->read.prefixes.n, S(", "))));
}

static dep_status open_bounded(const toolset *t, arena *a, opened_file *f, dep_err *err) {
    for (vec_each(const held_prefix, p, &t->prefixes)) {
        if (p->missing.n || !path_under(f->rel, &p->path, 1)) continue;
        if (!p->name.n)
            return open_beneath(t, a, p->fd, p->path.n ? str_sub(f->rel, p->path.n + 1, f->rel.n) : f->rel, f,
                                err);
        if (str_eq(f->rel, p->path)) return open_beneath(t, a, p->fd, p->name, f, err);
    }
    if (in_source(t, f->rel)) return open_beneath(t, a, t->w->fd, f->rel, f, err);
    return out_of_bounds(t, a, f->rel, err);
}

dep_status access_open(toolset *t, arena *a, str rel, opened_file *ret, dep_err *err) {
    if (!rel.n) return err_set(err, DEP_ERR_REFUSED, "that is the workspace itself, not a file");
    if (workspace_memory_path(rel)) return is_memory(rel, err);
    const char *why = path_sensitive(rel);
    if (why) return is_sensitive(rel, why, err);
    *ret = (opened_file){.fd = -1, .rel = rel};
    return t->g->read.bounded ? open_bounded(t, a, ret, err) : open_beneath(t, a, t->w->fd, rel, ret, err);
}

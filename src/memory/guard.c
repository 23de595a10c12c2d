// guard: is this opened file or directory a part of memory (rule B2)? It must not ask how a caller came to
// it: a link, a hard link and a mount keep the inode, so the inodes of everything below the two trees are the
// answer. A look is good as long as the directories it listed have not changed, which one stat each tells.
// Owns its descriptor and its tables; nothing points into them.
#include "memory/memory_int.h"
#include <deputy/file.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

// How far the clock of a network file system may be from ours.
enum { CLOCK_SLACK_MS = 3600 * 1000 };
// A directory that changed this shortly before it was listed may change again without another time: the
// kernel's clock ticks, and some file systems keep whole or even seconds.
enum { TICK_MS = 50, COARSE_TICK_MS = 2000 };

typedef struct {
    dev_t dev;
    ino_t ino;
} inode;

// A directory as it was listed; ino 0: it was not there, or could not be opened.
typedef struct {
    str path; // below the workspace root
    inode id;
    struct timespec changed;
} seen_dir;

enum { TOPS = 3 };

typedef struct {
    arena *mem;
    VEC(inode) all; // sorted
    seen_dir top[TOPS];
    VEC(seen_dir) below;
    int64_t when; // it began, Unix milliseconds
} look;

struct memory_guard {
    int root;
    bool broken; // the last look failed: everything is memory until one succeeds
    look now;
};

static const char *const tops[TOPS] = {".deputy", ".deputy/memory", ".deputy/agent-memory"};

static void guard_free(void *p) {
    memory_guard *g = p;
    arena_free(g->now.mem);
    if (g->root >= 0) close(g->root);
}

static int by_inode(const void *x, const void *y) {
    const inode *a = x, *b = y;
    if (a->dev != b->dev) return a->dev < b->dev ? -1 : 1;
    return a->ino < b->ino ? -1 : a->ino > b->ino;
}

// --- Looking -------------------------------------------------------------------------------------

static dep_status add(look *l, const struct stat *st, dep_err *err) {
    if (l->all.n >= MEMORY_GUARD_MAX)
        return err_set(err, DEP_ERR_LIMIT, "the memory directories hold more than %d names",
                       MEMORY_GUARD_MAX);
    vec_push(l->mem, &l->all, (inode){st->st_dev, st->st_ino});
    return DEP_OK;
}

static dep_status look_dir(look *l, int fd, str path, int depth, dep_err *err);

// One name in an open directory: kept, and entered when it is a directory. Links lead elsewhere and are not
// followed.
static dep_status look_name(look *l, int fd, str path, str name, int depth, dep_err *err) {
    struct stat st;
    if (fstatat(fd, str_cz(l->mem, name), &st, AT_SYMLINK_NOFOLLOW) != 0) return DEP_OK; // gone meanwhile
    if (S_ISLNK(st.st_mode)) return DEP_OK;
    TRY(add(l, &st, err));
    if (!S_ISDIR(st.st_mode)) return DEP_OK;
    if (depth >= MEMORY_GUARD_DEPTH)
        return err_set(err, DEP_ERR_LIMIT, "the memory directories are deeper than %d", MEMORY_GUARD_DEPTH);
    int sub = -1;
    dep_err why;
    path = path_join(l->mem, path, name);
    dep_status status = dir_open_at(fd, name, FILE_NO_LINKS, &sub, &why);
    if (status == DEP_ERR_IO && why.os == EACCES) return DEP_OK; // nobody of this user gets in
    if (status == DEP_ERR_NOT_FOUND || status == DEP_ERR_REFUSED)
        return DEP_OK; // replaced meanwhile: the parent tells
    if (status != DEP_OK) {
        if (err) *err = why;
        return status;
    }
    status = look_dir(l, sub, path, depth + 1, err);
    close(sub);
    return status;
}

static dep_status look_dir(look *l, int fd, str path, int depth, dep_err *err) {
    dir_entries names = {0};
    if (depth > 1) {
        struct stat st;
        // Before the listing: a change during it shows as one after it.
        if (fstat(fd, &st) != 0) return err_os(err, errno, "cannot examine " STR_FMT, STR_ARG(path));
        vec_push(l->mem, &l->below, (seen_dir){path, {st.st_dev, st.st_ino}, st.st_ctim});
    }
    TRY(dir_list(l->mem, fd, MEMORY_GUARD_MAX, &names, err));
    for (vec_each(dir_entry, e, &names)) TRY(look_name(l, fd, path, e->name, depth, err));
    return DEP_OK;
}

static dep_status look_top(look *l, int root, size_t i, dep_err *err) {
    int fd = -1;
    struct stat st;
    dep_err why;
    str path = str_z(tops[i]);
    l->top[i].path = path;
    dep_status status = dir_open_at(root, path, FILE_NO_LINKS, &fd, &why);
    // Memory is never behind a link.
    if (status == DEP_ERR_NOT_FOUND || status == DEP_ERR_REFUSED) return DEP_OK;
    if (status != DEP_OK) {
        if (err) *err = why;
        return status;
    }
    if (fstat(fd, &st) != 0) {
        status = err_os(err, errno, "cannot examine %s", tops[i]);
    } else {
        l->top[i] = (seen_dir){path, {st.st_dev, st.st_ino}, st.st_ctim};
        // .deputy itself is no memory; it is watched because the trees may come and go in it.
        if (i > 0) status = add(l, &st, err);
        if (i > 0 && status == DEP_OK) status = look_dir(l, fd, path, 1, err);
    }
    close(fd);
    return status;
}

static dep_status look_at(look *l, int root, dep_err *err) {
    ARENA_CATCH(l->mem, err);
    for (size_t i = 0; i < TOPS; i++) TRY(look_top(l, root, i, err));
    if (l->all.n) qsort(l->all.p, l->all.n, sizeof *l->all.p, by_inode);
    return DEP_OK;
}

static int64_t now_ms(void) {
    const sys_clock *c = sys_clock_real();
    return c->now_ms(c->ctx);
}

static dep_status look_again(memory_guard *g, dep_err *err) {
    look l = {.mem = arena_new(), .when = now_ms()};
    dep_status status = look_at(&l, g->root, err);
    g->broken = status != DEP_OK;
    if (status == DEP_OK) {
        arena_free(g->now.mem);
        g->now = l;
    } else {
        arena_free(l.mem);
    }
    return status;
}

dep_status memory_guard_make(arena *a, int root, memory_guard **ret, dep_err *err) {
    ARENA_CATCH(a, err);
    memory_guard *g = NEW(a, memory_guard);
    g->root = -1;
    arena_defer(a, guard_free, g);
    TRY(dir_open_at(root, S("."), FILE_NO_LINKS, &g->root, err));
    TRY(look_again(g, err));
    *ret = g;
    return DEP_OK;
}

// --- Asking --------------------------------------------------------------------------------------

static bool known(const look *l, const struct stat *st) {
    inode id = {st->st_dev, st->st_ino};
    return l->all.n && bsearch(&id, l->all.p, l->all.n, sizeof id, by_inode);
}

static int64_t ms(struct timespec t) {
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool unchanged(const memory_guard *g, const seen_dir *d) {
    struct stat st;
    bool there = fstatat(g->root, d->path.p, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
    if (!there) return d->id.ino == 0;
    return st.st_ino == d->id.ino && st.st_dev == d->id.dev && st.st_ctim.tv_sec == d->changed.tv_sec &&
           st.st_ctim.tv_nsec == d->changed.tv_nsec &&
           ms(d->changed) < g->now.when - (d->changed.tv_nsec ? TICK_MS : COARSE_TICK_MS);
}

static bool tops_unchanged(const memory_guard *g) {
    for (size_t i = 0; i < TOPS; i++) {
        if (!unchanged(g, &g->now.top[i])) return false;
        if (i == 0 && g->now.top[0].id.ino == 0) break;
    }
    return true;
}

static bool below_unchanged(const memory_guard *g) {
    for (vec_each(const seen_dir, d, &g->now.below))
        if (!unchanged(g, d)) return false;
    return true;
}

static bool fresh(const memory_guard *g, const struct stat *st) {
    if (!tops_unchanged(g)) return false;
    if (g->now.top[0].id.ino == 0) return true;
    // Linking and renaming set the change time of a file: one that has not changed since well before the look
    // has not been put into a tree after it. This spares the many old files of a workspace a stat per scope.
    if (ms(st->st_ctim) < g->now.when - CLOCK_SLACK_MS) return true;
    return below_unchanged(g);
}

bool memory_guard_hit(memory_guard *g, const struct stat *st) {
    // The former look first: what was memory when it was opened is not given out because it has been replaced
    // since.
    if (!g->broken && known(&g->now, st)) return true;
    if (!g->broken && fresh(g, st)) return false;
    return look_again(g, NULL) != DEP_OK || known(&g->now, st);
}

uint64_t memory_guard_epoch(memory_guard *g) {
    if (g->broken || !tops_unchanged(g) || !below_unchanged(g)) (void)look_again(g, NULL);
    if (g->broken) return 1;
    // The same inodes give the same answers, whichever guard is asked.
    uint64_t h = 0xCBF29CE484222325u;
    for (vec_each(const inode, i, &g->now.all)) {
        h = (h ^ (uint64_t)i->dev) * 0x100000001B3u;
        h = (h ^ (uint64_t)i->ino) * 0x9E3779B97F4A7C15u;
        h ^= h >> 32;
    }
    return h;
}

bool memory_guard_knew(const memory_guard *g, const struct stat *st) {
    return g->broken || known(&g->now, st);
}

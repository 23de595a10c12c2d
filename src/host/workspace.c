// host: finding the workspace and opening what belongs to it. The root is a directory that a person named or
// stands in; nothing inside it (git configuration, gitdir files, links) moves it (rule B3).
#include "host/host_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

// An entry that another user has put there, say in /tmp, does not make what lies below it one workspace.
static bool has_entry(str dir, const char *name, uid_t owner, arena *a) {
    struct stat st;
    return lstat(str_cz(a, path_join(a, dir, str_z(name))), &st) == 0 &&
           (st.st_uid == owner || st.st_uid == geteuid() || st.st_uid == 0);
}

static str parent_of(str dir) {
    size_t at = str_rchr(dir, '/');
    return at == 0 || at == SIZE_MAX ? S("/") : str_sub(dir, 0, at);
}

// "/", home and every ancestor of home: too wide to be taken by accident.
static bool too_wide(str dir, str home) {
    if (str_eq(dir, S("/")) || str_eq(dir, home)) return true;
    return home.n > dir.n && str_starts(home, dir) && home.p[dir.n] == '/';
}

bool workspace_memory_path(str path) {
    str head;
    for (bool more = true; more;) {
        if (memory_path(path)) return true;
        more = str_cut(path, '/', &head, &path);
    }
    return false;
}

static dep_status find_root(arena *a, const workspace_opts *o, str home, str *ret, dep_err *err) {
    char *real = o->dir.n ? realpath(str_cz(a, o->dir), NULL) : realpath(".", NULL);
    if (!real) return err_os(err, errno, "workspace \"" STR_FMT "\"", STR_ARG(o->dir.n ? o->dir : S(".")));
    arena_defer(a, free, real);
    str cwd = str_z(real);
    *ret = cwd;
    if (o->dir.n) return DEP_OK;
    char *real_home = home.n ? realpath(str_cz(a, home), NULL) : NULL;
    if (real_home) {
        arena_defer(a, free, real_home);
        home = str_z(real_home);
    }
    struct stat st;
    if (lstat(real, &st) != 0) return err_os(err, errno, "workspace \"" STR_FMT "\"", STR_ARG(cwd));
    for (str dir = cwd; !too_wide(dir, home); dir = parent_of(dir)) {
        if (!has_entry(dir, ".deputy", st.st_uid, a) && !has_entry(dir, ".git", st.st_uid, a)) continue;
        *ret = dir;
        return DEP_OK;
    }
    if (too_wide(cwd, home))
        return err_set(err, DEP_ERR_INVALID,
                       "" STR_FMT " is not taken as a workspace by itself; name a directory with -C DIR",
                       STR_ARG(cwd));
    return DEP_OK;
}

// Nobody knows what restricts in a file that is there and cannot be read, so nothing runs (rule B10).
static void unread_config(workspace *w, str file, const dep_err *why, bool restricts) {
    str msg = str_dup(w->a, str_z(why->msg));
    if (restricts && !w->config.fault.n)
        w->config.fault = str_fmt(w->a, STR_FMT "; nothing runs until this is mended", STR_ARG(msg));
    diags_add(&w->diags, (diag){.severity = SEV_ERROR,
                                .code = "CFG006",
                                .file = file,
                                .msg = msg,
                                .hint = S("the file is not read")});
}

// The user's own file, by an ordinary path; the workspace's, beneath the root and only when it is trusted.
static dep_status load_system_config(workspace *w, dep_err *err) {
    str path = path_join(w->a, w->dirs.config, S("config.yaml")), bytes;
    dep_err why;
    dep_status st = file_read(w->a, path, CONFIG_FILE_MAX, &bytes, &why);
    if (st == DEP_ERR_NOT_FOUND) return DEP_OK;
    if (st != DEP_OK) {
        unread_config(w, path, &why, true);
        return DEP_OK;
    }
    return config_parse(w->a, path, bytes, true, &w->config, &w->diags, err);
}

static dep_status load_workspace_config(workspace *w, dep_err *err) {
    str file = S(".deputy/config.yaml"), bytes;
    dep_err why;
    dep_status st = file_read_at(w->a, w->fd, file, FILE_NO_LINKS, CONFIG_FILE_MAX, &bytes, NULL, &why);
    if (st == DEP_ERR_NOT_FOUND) return DEP_OK;
    if (st != DEP_OK) {
        // One that nobody ever accepted sets nothing, and keeps nothing from running either.
        unread_config(w, file, &why, trust_check(w->trust, file, S("-"), NULL) != TRUST_NEVER);
        return DEP_OK;
    }
    if (trust_check(w->trust, file, sha256_hex(w->a, bytes), NULL) != TRUST_OK) {
        diags_add(&w->diags,
                  (diag){.severity = SEV_WARNING,
                         .code = "TRU001",
                         .file = file,
                         .msg = S("withheld: the workspace's config is not trusted and is not read"),
                         .hint = S("see and accept it with `deputy trust`")});
        return DEP_OK;
    }
    return config_parse(w->a, file, bytes, false, &w->config, &w->diags, err);
}

static void check_models(workspace *w) {
    config *c = &w->config;
    str provider, model;
    if (!c->model.n || !str_cut(c->model, '/', &provider, &model)) return;
    if (str_eq(provider, S("quote")) || config_provider_get(c, provider)) return;
    diags_add(
        &w->diags,
        (diag){.severity = SEV_WARNING,
               .code = "CFG007",
               .file = c->model_file,
               .line = c->model_line,
               .msg = str_fmt(w->a, "the provider of the default model \"" STR_FMT "\" is not configured",
                              STR_ARG(c->model)),
               .hint = str_fmt(w->a, "deputy models add " STR_FMT, STR_ARG(provider))});
}

static void release(void *p) {
    workspace *w = p;
    store_close(w->store);
    pthread_mutex_destroy(&w->lock);
}

static void make_lock(pthread_mutex_t *lock) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

void workspace_lock(workspace *w) {
    pthread_mutex_lock(&w->lock);
}

void workspace_unlock(workspace *w) {
    pthread_mutex_unlock(&w->lock);
}

// A list that cannot be read trusts nothing, and says so: the rest of Deputy goes on.
static trust_list *open_trust(workspace *w, str root) {
    trust_list *t;
    dep_err fault;
    if (trust_open(w->a, w->dirs.state, root, true, &t, &fault) == DEP_OK) return t;
    diags_add(&w->diags,
              (diag){.severity = SEV_ERROR,
                     .code = "TRU002",
                     .msg = str_fmt(w->a, "%s; nothing of " STR_FMT " is trusted until that is mended",
                                    fault.msg, STR_ARG(root))});
    return trust_none(w->a);
}

dep_status workspace_trust_writable(workspace *w, dep_err *err) {
    // Once: what has them keeps them, and whoever records reads them again.
    if (w->trust_writable) return DEP_OK;
    TRY(trust_open(w->a, w->dirs.state, w->root, false, &w->trust, err));
    w->memory_trust = w->trust;
    if (w->memory_fd != w->fd)
        TRY(trust_open(w->a, w->dirs.state, w->memory_root, false, &w->memory_trust, err));
    w->trust_writable = true;
    return DEP_OK;
}

dep_status workspace_open(arena *a, const workspace_opts *o, workspace **ret, dep_err *err) {
    workspace *w = NEW(a, workspace);
    *w = (workspace){.a = a,
                     .fd = -1,
                     .memory_fd = -1,
                     .getenv = o->getenv,
                     .clock = o->clock,
                     .bodies = o->bodies,
                     .searches = o->searches,
                     .config = config_defaults(),
                     .diags = diags_new(a),
                     .skill_diags = diags_new(a)};
    w->opened_ms = sys_clock_real()->now_ms(sys_clock_real()->ctx);
    make_lock(&w->lock);
    arena_defer(a, release, w);
    TRY(sys_dirs_find(a, o->getenv, &w->dirs, err));
    if (w->dirs.warning.n)
        diags_add(&w->diags, (diag){.severity = SEV_WARNING, .code = "SYS001", .msg = w->dirs.warning});
    TRY(find_root(a, o, w->dirs.home, &w->root, err));
    // As a root of its own, memory would be ordinary files (rule B2).
    if (workspace_memory_path(w->root))
        return err_set(err, DEP_ERR_INVALID, STR_FMT " belongs to memory and is no workspace",
                       STR_ARG(w->root));
    TRY(dir_open(w->root, &w->fd, err));
    arena_defer_close(a, w->fd);
    str why = {0}, main_checkout = worktree_main_checkout(a, w->fd, w->root, &why);
    w->memory_fd = w->fd;
    w->memory_root = w->root;
    if (main_checkout.n && dir_open(main_checkout, &w->memory_fd, err) == DEP_OK) {
        arena_defer_close(a, w->memory_fd);
        w->memory_root = main_checkout;
    }
    if (why.n)
        diags_add(&w->diags,
                  (diag){.severity = SEV_WARNING, .code = "MEM001", .file = S(".git"), .msg = why});
    w->trust = open_trust(w, w->root);
    w->memory_trust = w->memory_fd == w->fd ? w->trust : open_trust(w, w->memory_root);
    TRY(load_system_config(w, err));
    TRY(load_workspace_config(w, err));
    check_models(w);
    *ret = w;
    return DEP_OK;
}

dep_status workspace_store(workspace *w, bool read_only, dep_err *err) {
    if (w->store) return DEP_OK;
    return store_open(w->a, w->dirs.state, w->root, read_only, w->clock, &w->store, err);
}

dep_status workspace_record(workspace *w, str file, str bytes, str reach, dep_err *err) {
    TRY(workspace_trust_writable(w, err));
    return trust_record(w->trust, file, sha256_hex(w->a, bytes), reach, err);
}

dep_status workspace_layer_dir(workspace *w, def_layer layer, bool create, int *ret, str *shown,
                               dep_err *err) {
    if (layer == LAYER_WORKSPACE) {
        *shown = S(".deputy/agents");
        TRY(create ? dir_make_at(w->fd, S(".deputy/agents"), 0755, ret, err)
                   : dir_open_at(w->fd, S(".deputy/agents"), FILE_NO_LINKS, ret, err));
    } else if (layer == LAYER_SYSTEM) {
        *shown = path_join(w->a, w->dirs.config, S("agents"));
        if (create) TRY(dir_make(*shown, 0700, err));
        TRY(dir_open(*shown, ret, err));
    } else {
        return err_set(
            err, DEP_ERR_REFUSED,
            "%s definitions are read-only; `deputy copy NAME --to workspace` makes one you can change",
            layer_name(layer));
    }
    arena_defer_close(w->a, *ret);
    return DEP_OK;
}

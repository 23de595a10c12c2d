// walk: finds the files of each source by name, beneath a held directory (rule B1). Opens directories, never
// files. Knows nothing of text. What a glob cannot name by accident: dot-files (the glob's own rule),
// node_modules and folders of version control (the pattern must spell them), and `.deputy`, which is never
// entered, by any spelling, link or mount. The result depends on names alone, not on the order in which a
// file system lists them.
#include "search/search_int.h"
#include <deputy/file.h>
#include <deputy/sort.h>
#include <deputy/utf8.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const str forbidden_dir = S_INIT(".deputy");

// Folders that hold many files nobody means. A set bit of pattern.spells says that the pattern names the
// folder.
static const str shy_dirs[] = {S_INIT("node_modules"), S_INIT(".git"), S_INIT(".hg"), S_INIT(".svn"),
                               S_INIT("CVS")};

typedef struct {
    glob_pat *g;
    unsigned spells;
} pattern;

typedef struct {
    dev_t dev;
    ino_t ino;
} inode;

typedef struct {
    arena *a;
    const search_space *space;
    const search_limits *limits;
    walk_result *out;
    uint32_t source; // the one being walked
    pattern *patterns;
    size_t n_patterns;
    walk_exclude *excludes;
    size_t n_excludes;
    size_t entries, links;
    inode above[SEARCH_DEPTH_MAX + 2]; // the directories that the present one is in
    size_t n_above;
    const walk_watch *watch;        // may be NULL
    int open[SEARCH_DEPTH_MAX + 2]; // descriptors of those, while files are asked for what they look like
    size_t n_open;
    inode forbidden; // of forbidden_dir below the root, when it is there
    bool has_forbidden;
    stop_sign asks;
    bool stop;
} walker;

// A directory that may be listed.
typedef struct {
    str path, real;     // by name; as the kernel knows it
    bool linked;        // they differ, or may
    const bool *active; // patterns that may match below it
} place;

static void cut(walker *w, str path, bool wide, bool loses, const char *reason) {
    vec_push(
        w->a, &w->out->cuts,
        (cut_item){.reason = str_z(reason), .path = path, .source = w->source, .wide = wide, .loses = loses});
}

static void cut_os(walker *w, str path, bool wide, int os) {
    const char *text = os ? strerrordesc_np(os) : NULL;
    str reason = str_fmt(w->a, "unreadable: %s", text ? text : "unknown error");
    vec_push(w->a, &w->out->cuts,
             (cut_item){.reason = reason, .path = path, .source = w->source, .wide = wide, .loses = true});
}

// --- Names ---

bool walk_forbidden(str path) {
    str rest = path, part;
    for (bool more = true; more;) {
        more = str_cut(rest, '/', &part, &rest);
        if (str_eq(part, forbidden_dir)) return true;
    }
    return false;
}

static unsigned shy_bit(str name) {
    for (size_t i = 0; i < sizeof shy_dirs / sizeof *shy_dirs; i++)
        if (str_eq(name, shy_dirs[i])) return 1u << i;
    return 0;
}

// Which of the shy directories a pattern spells as a whole component or alternative.
static unsigned spells(str text) {
    unsigned bits = 0;
    for (size_t from = 0, i = 0; i <= text.n; i++) {
        if (i < text.n && !strchr("/{},", text.p[i])) continue;
        bits |= shy_bit(str_sub(text, from, i));
        from = i + 1;
    }
    return bits;
}

static bool has_wildcard(str s) {
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '*' || s.p[i] == '?' || s.p[i] == '[') return true;
        if (s.p[i] == '\\') i++;
    }
    return false;
}

bool walk_excluded(const walk_exclude *x, size_t n, str path) {
    for (size_t i = 0; i < n; i++) {
        if (glob_match(x[i].g, path)) return true;
        for (size_t at = 0; at < path.n; at++)
            if (path.p[at] == '/' && glob_names(x[i].g, str_sub(path, 0, at))) return true;
    }
    return false;
}

// Of a directory: nothing below it can be in the source.
static bool covered(const walker *w, str dir) {
    for (size_t i = 0; i < w->n_excludes; i++)
        if (glob_names(w->excludes[i].g, dir)) return true;
    return false;
}

static bool wanted(const walker *w, const bool *active, str path) {
    for (size_t i = 0; i < w->n_patterns; i++)
        if (active[i] && glob_match(w->patterns[i].g, path))
            return !walk_excluded(w->excludes, w->n_excludes, path);
    return false;
}

static bool may_descend(const walker *w, const bool *active, str dir) {
    for (size_t i = 0; i < w->n_patterns; i++)
        if (active[i] && glob_may_descend(w->patterns[i].g, dir)) return true;
    return false;
}

// The patterns that stay active in the directory `name`.
static const bool *narrow(walker *w, const bool *active, str name) {
    unsigned bit = shy_bit(name);
    if (!bit) return active;
    bool *now = NEW_N(w->a, bool, w->n_patterns + 1);
    for (size_t i = 0; i < w->n_patterns; i++) now[i] = active[i] && (w->patterns[i].spells & bit);
    return now;
}

// --- Opening ---

static bool proc_path(arena *a, int fd, str *ret) {
    char link[64], target[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, target, sizeof target);
    if (n <= 0 || (size_t)n >= sizeof target || target[0] != '/') return false;
    *ret = str_dup(a, str_n(target, (size_t)n));
    return true;
}

bool walk_real_path(arena *a, int root, int fd, str *ret) {
    str base, path;
    if (!proc_path(a, root, &base) || !proc_path(a, fd, &path)) return false;
    if (str_eq(base, path)) {
        *ret = (str){0};
        return true;
    }
    if (base.n > 1) {
        if (!str_starts(path, base)) return false;
        path = str_sub(path, base.n, path.n);
    }
    if (path.n < 2 || path.p[0] != '/') return false;
    *ret = str_sub(path, 1, path.n);
    return true;
}

const char *walk_link_refused(void) {
    return file_has_openat2() ? "symbolic link leaves the directory of the sources"
                              : "symbolic link, which this kernel cannot follow safely (it has no openat2)";
}

static bool link_is_absolute(walker *w, str path) {
    char target[1];
    char *z = str_cz(w->a, path);
    return readlinkat(w->space->root, z, target, sizeof target) == 1 && target[0] == '/';
}

static void cut_link(walker *w, str path, dep_status status, int os) {
    if (status == DEP_ERR_NOT_FOUND)
        cut(w, path, false, false, "symbolic link to nothing");
    else if (status != DEP_ERR_REFUSED)
        cut_os(w, path, true, os);
    else if (link_is_absolute(w, path))
        cut(w, path, true, false, "absolute symbolic link");
    else if (os == ELOOP)
        cut(w, path, true, false, "symbolic link in a ring of links");
    else
        cut(w, path, true, false, walk_link_refused());
    w->out->cuts.p[w->out->cuts.n - 1].link = true;
}

static const char *ask_about(const walker *w, str dir, const struct stat *st) {
    // With its slash: a rule for file names must not take a directory for a file.
    return dir.n ? w->space->refuse(w->space->ctx, str_fmt(w->a, STR_FMT "/", STR_ARG(dir)), st) : NULL;
}

// A reason of the caller's for a directory, under its name or where it really is.
static const char *refusal(const walker *w, const place *p, const struct stat *st) {
    if (!w->space->refuse) return NULL;
    const char *why = ask_about(w, p->path, st);
    return why || !p->linked ? why : ask_about(w, p->real, st);
}

static bool is_above(const walker *w, const struct stat *st) {
    for (size_t i = 0; i < w->n_above; i++)
        if (w->above[i].dev == st->st_dev && w->above[i].ino == st->st_ino) return true;
    return false;
}

// What was opened is what is judged: by its inode and its real path, not by the name that led there.
static bool admissible(walker *w, int fd, place *p, struct stat *st) {
    if (fstat(fd, st) != 0) {
        cut_os(w, p->path, true, errno);
        return false;
    }
    bool found = w->has_forbidden && w->forbidden.dev == st->st_dev && w->forbidden.ino == st->st_ino;
    if (p->linked && !walk_real_path(w->a, w->space->root, fd, &p->real)) {
        cut(w, p->path, true, false, "symbolic link: where it leads cannot be told");
        return false;
    }
    if (!p->linked) p->real = p->path;
    if (found || walk_forbidden(p->real)) {
        cut(w, p->path, true, false, "below .deputy, which is never searched");
        return false;
    }
    if (p->linked && (covered(w, p->real) || walk_excluded(w->excludes, w->n_excludes, p->real)))
        return false;
    if (is_above(w, st)) {
        cut(w, p->path, true, false, "symbolic link back to a directory above it");
        return false;
    }
    const char *why = refusal(w, p, st);
    if (why) cut(w, p->path, true, false, why);
    return !why;
}

// Opens and judges one directory. Its descriptor, or -1 when there is nothing to walk (and says why, where
// there is a why).
static int open_place(walker *w, place *p, bool parent_linked, struct stat *st) {
    int fd = -1;
    dep_err err = {0};
    dep_status status = DEP_ERR_REFUSED;
    p->linked = parent_linked;
    if (!p->linked) status = dir_open_at(w->space->root, p->path, FILE_NO_LINKS, &fd, &err);
    if (status == DEP_ERR_REFUSED && err.os != ENOTDIR) {
        if (!p->linked && w->links++ >= w->limits->links) {
            cut(w, p->path, true, true, "too many linked directories: not followed");
            return -1;
        }
        p->linked = true;
        err = (dep_err){0};
        status = dir_open_at(w->space->root, p->path, FILE_LINKS_INSIDE, &fd, &err);
    }
    if (status != DEP_OK) {
        // What is not there, or is no directory, is no loss: a pattern may name what does not exist yet.
        if (status == DEP_ERR_REFUSED && err.os != ENOTDIR)
            cut_link(w, p->path, status, err.os);
        else if (status != DEP_ERR_REFUSED && status != DEP_ERR_NOT_FOUND)
            cut_os(w, p->path, true, err.os);
        return -1;
    }
    if (admissible(w, fd, p, st)) return fd;
    close(fd);
    return -1;
}

// The entries of one directory, which is then the innermost of w->above.
static bool list_place(walker *w, place *p, bool parent_linked, dir_entries *ret) {
    struct stat st;
    int fd = open_place(w, p, parent_linked, &st);
    if (fd < 0) return false;
    dep_err err = {0};
    w->open[w->n_open++] = fd;
    // Before the listing: what comes later is told.
    if (w->watch) w->watch->enter(w->watch->ctx, p->path, fd, p->linked, &st);
    dep_status status = dir_list_until(w->a, fd, w->limits->entries - w->entries, &w->asks, ret, &err);
    if (status != DEP_OK) close(w->open[--w->n_open]);
    if (status == DEP_ERR_CANCELLED) {
        w->stop = true;
    } else if (status == DEP_ERR_LIMIT) {
        w->stop = true;
        cut(w, p->path, true, true, "too many directory entries: the walk stopped here");
    } else if (status != DEP_OK) {
        cut_os(w, p->path, true, err.os);
    } else {
        w->above[w->n_above++] = (inode){st.st_dev, st.st_ino};
    }
    return status == DEP_OK;
}

// --- Walking ---

static bool should_stop(walker *w) {
    w->stop = w->stop || stop_after(&w->asks, STOP_EACH / 64);
    return w->stop;
}

static void take_file(walker *w, str path) {
    if (w->out->files.n >= w->limits->files) {
        cut(w, path, true, true, "too many files: the walk stopped here");
        w->stop = true;
        return;
    }
    vec_push(w->a, &w->out->files, (walk_file){.source = w->source, .path = path});
}

// What the file looks like by its name in the directory that is open. A link is left out: it leads elsewhere.
static void add_sig(walker *w, str name) {
    struct stat st;
    if (!w->watch || !w->watch->stat || w->stop) return;
    // The name came from a listing, with a NUL behind it.
    if (fstatat(w->open[w->n_open - 1], name.p, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode))
        w->out->files.p[w->out->files.n - 1].sig = sig_of(&st);
}

static void walk_place(walker *w, str path, const bool *active, bool parent_linked, size_t depth);

static void take_link(walker *w, const place *in, str path, const bool *active, size_t depth) {
    bool as_file = wanted(w, in->active, path), as_dir = may_descend(w, active, path) && !covered(w, path);
    if (!as_file && !as_dir) return;
    struct stat st;
    dep_err err;
    dep_status status = file_stat_at(w->space->root, path, FILE_LINKS_INSIDE, &st, &err);
    if (status != DEP_OK) {
        cut_link(w, path, status, err.os);
        return;
    }
    if (S_ISDIR(st.st_mode)) {
        if (as_dir) walk_place(w, path, active, in->linked, depth);
    } else if (as_file && S_ISREG(st.st_mode)) {
        take_file(w, path);
    } else if (as_file) {
        cut(w, path, false, false, "not a regular file");
        w->out->cuts.p[w->out->cuts.n - 1].link = true;
    }
}

static void take_entry(walker *w, const place *in, const dir_entry *e, size_t depth) {
    str path = path_join(w->a, in->path, e->name);
    if (path.n > FILE_PATH_MAX) {
        if (wanted(w, in->active, path) || (e->type != DT_REG && may_descend(w, in->active, path)))
            cut(w, path, true, true, "path longer than the system takes: not searched");
        return;
    }
    if (str_eq(e->name, forbidden_dir)) {
        if (may_descend(w, in->active, path))
            cut(w, path, true, false, "below .deputy, which is never searched");
        return;
    }
    const bool *active = narrow(w, in->active, e->name);
    if (e->type == DT_DIR) {
        if (may_descend(w, active, path) && !covered(w, path)) walk_place(w, path, active, in->linked, depth);
    } else if (e->type == DT_LNK) {
        take_link(w, in, path, active, depth);
    } else if (wanted(w, in->active, path)) {
        if (e->type == DT_REG) {
            take_file(w, path);
            if (!in->linked) add_sig(w, e->name);
        } else {
            cut(w, path, false, false, "not a regular file");
        }
    }
}

// A directory's name, as it stands in the paths of what is below it.
static int by_paths(const void *a, const void *b) {
    const dir_entry *x = a, *y = b;
    size_t least = x->name.n < y->name.n ? x->name.n : y->name.n;
    int order = memcmp(x->name.p, y->name.p, least);
    if (order) return order;
    // The byte after the shorter one, where a directory has a slash.
    unsigned char after_x = x->name.n > least   ? (unsigned char)x->name.p[least]
                            : x->type == DT_DIR ? '/'
                                                : 0,
                  after_y = y->name.n > least   ? (unsigned char)y->name.p[least]
                            : y->type == DT_DIR ? '/'
                                                : 0;
    return (after_x > after_y) - (after_x < after_y);
}

// Recursion is bounded by limits.depth. NOLINTNEXTLINE(misc-no-recursion)
static void walk_place(walker *w, str path, const bool *active, bool parent_linked, size_t depth) {
    if (depth > w->limits->depth) {
        cut(w, path, true, true, "directories nested too deep: not entered");
        return;
    }
    place p = {.path = path, .active = active};
    dir_entries entries = {0};
    if (!list_place(w, &p, parent_linked, &entries)) return;
    // So that files mostly come in the order of their paths.
    entries.p = sort_until(w->a, entries.p, entries.n, sizeof *entries.p, by_paths, &w->asks);
    for (vec_each(dir_entry, e, &entries)) {
        if (should_stop(w)) break;
        w->entries++;
        take_entry(w, &p, e, depth + 1);
    }
    w->n_above--;
    close(w->open[--w->n_open]);
}

// One step on the way to a prefix: judges the directory `in`, then the name of the next one. False: the way
// ends here.
static bool step_down(walker *w, place *in, bool *linked, str next, str path) {
    struct stat st;
    int fd = open_place(w, in, *linked, &st);
    if (fd < 0) return false;
    if (w->watch) w->watch->enter(w->watch->ctx, in->path, fd, in->linked, &st);
    close(fd);
    *linked = in->linked;
    w->above[w->n_above++] = (inode){st.st_dev, st.st_ino};
    if (!str_eq(next, forbidden_dir)) return !covered(w, path);
    cut(w, path, true, false, "below .deputy, which is never searched");
    return false;
}

// Walks the directory `prefix`. The ones above it are judged without being listed.
static void walk_from(walker *w, str prefix) {
    bool *all = NEW_N(w->a, bool, w->n_patterns + 1);
    for (size_t i = 0; i < w->n_patterns; i++) all[i] = true;
    const bool *active = all;
    size_t depth = 0, kept = w->n_above;
    bool linked = false, open = !covered(w, (str){0});
    for (size_t at = 0, end = 0; open && at < prefix.n; at = end + 1, depth++) {
        size_t slash = str_chr(str_sub(prefix, at, prefix.n), '/');
        end = slash == SIZE_MAX ? prefix.n : at + slash;
        str name = str_sub(prefix, at, end);
        place in = {.path = str_sub(prefix, 0, at ? at - 1 : 0)};
        if (depth < w->limits->depth) {
            open = step_down(w, &in, &linked, name, str_sub(prefix, 0, end));
        } else {
            cut(w, prefix, true, true, "directories nested too deep: not entered");
            open = false;
        }
        active = narrow(w, active, name);
    }
    if (open) walk_place(w, prefix, active, linked, depth);
    w->n_above = kept;
}

// --- Sources ---

static dep_status compile(walker *w, str source, str text, glob_pat **ret, dep_err *err) {
    dep_status status = glob_compile(w->a, text, ret, err);
    if (status != DEP_OK)
        err_prefix(err, "source \"" STR_FMT "\": \"" STR_FMT "\"", STR_ARG(source), STR_ARG(text));
    return status;
}

// A pattern, and where it has no wildcard also what is below the directories that it names.
static dep_status add_pattern(walker *w, str source, str text, size_t *n, dep_err *err) {
    TRY(compile(w, source, text, &w->patterns[*n].g, err));
    w->patterns[(*n)++].spells = spells(text);
    if (has_wildcard(text)) return DEP_OK;
    str below = str_fmt(w->a, STR_FMT "/**/*", STR_ARG(text));
    TRY(compile(w, source, below, &w->patterns[*n].g, err));
    w->patterns[(*n)++].spells = spells(text);
    return DEP_OK;
}

dep_status walk_excludes(arena *a, const search_source *s, walk_exclude **ret, dep_err *err) {
    walk_exclude *x = NEW_N(a, walk_exclude, s->n_exclude + 1);
    for (size_t i = 0; i < s->n_exclude; i++) {
        str text = s->exclude[i];
        dep_status status = glob_compile(a, text, &x[i].g, err);
        if (status != DEP_OK) {
            err_prefix(err, "source \"" STR_FMT "\": exclude \"" STR_FMT "\"", STR_ARG(s->name),
                       STR_ARG(text));
            return status;
        }
    }
    *ret = x;
    return DEP_OK;
}

static bool below(str path, str dir) {
    return dir.n == 0 || str_eq(path, dir) ||
           (path.n > dir.n && path.p[dir.n] == '/' && str_starts(path, dir));
}

// Where the walks begin: the fixed prefixes of the patterns, none below another.
static void find_roots(walker *w, strs *roots) {
    for (size_t i = 0; i < w->n_patterns; i++) {
        str prefix = glob_prefix(w->patterns[i].g);
        bool has = false;
        size_t kept = 0;
        for (size_t k = 0; k < roots->n; k++) {
            has = has || below(prefix, roots->p[k]);
            if (has || !below(roots->p[k], prefix)) roots->p[kept++] = roots->p[k];
        }
        roots->n = kept;
        if (!has) vec_push(w->a, roots, prefix);
    }
    if (roots->n > 1) qsort(roots->p, roots->n, sizeof *roots->p, str_cmp_qsort);
}

static int by_path(const void *a, const void *b) {
    const walk_file *x = a, *y = b;
    return str_cmp(x->path, y->path);
}

static void sort_files(walker *w, walk_file *files, size_t n) {
    walk_file *sorted = sort_until(w->a, files, n, sizeof *files, by_path, &w->asks);
    if (sorted != files) memcpy(files, sorted, n * sizeof *files);
}

static dep_status walk_source(walker *w, const search_source *s, dep_err *err) {
    if (s->encoding.n && !decode_known_encoding(s->encoding))
        return err_set(err, DEP_ERR_INVALID, "source \"" STR_FMT "\": unknown encoding \"" STR_FMT "\"",
                       STR_ARG(s->name), STR_ARG(s->encoding));
    w->patterns = NEW_N(w->a, pattern, s->n_include * 2 + 1);
    w->n_patterns = 0;
    for (size_t i = 0; i < s->n_include; i++)
        TRY(add_pattern(w, s->name, s->include[i], &w->n_patterns, err));
    TRY(walk_excludes(w->a, s, &w->excludes, err));
    w->n_excludes = s->n_exclude;
    if (w->stop) return DEP_OK;

    strs roots = {0};
    find_roots(w, &roots);
    size_t first = w->out->files.n;
    for (size_t i = 0; i < roots.n && !w->stop; i++) walk_from(w, roots.p[i]);
    size_t n = w->out->files.n - first;
    if (n) sort_files(w, w->out->files.p + first, n);
    if (n == 0 && !w->stop) cut(w, s->name, true, false, "source matches no file");
    return DEP_OK;
}

// Only when memory has ended in the middle of a walk is there one.
static void close_open(void *p) {
    walker *w = p;
    while (w->n_open) close(w->open[--w->n_open]);
}

dep_status walk_sources(arena *a, const search_space *space, const search_limits *limits, walk_result *ret,
                        dep_err *err) {
    return walk_sources_for(a, space, limits, NULL, ret, err);
}

dep_status walk_sources_for(arena *a, const search_space *space, const search_limits *limits,
                            const walk_watch *watch, walk_result *ret, dep_err *err) {
    walker *w = NEW(a, walker);
    *w = (walker){.a = a, .space = space, .limits = limits, .watch = watch, .out = ret};
    // Also asked before anything is done.
    w->asks = (stop_sign){.ask = space->cancelled, .ctx = space->ctx, .work = STOP_EACH};
    arena_defer(a, close_open, w);
    struct stat st;
    if (file_stat_at(space->root, forbidden_dir, FILE_NO_LINKS, &st, NULL) == DEP_OK) {
        w->forbidden = (inode){st.st_dev, st.st_ino};
        w->has_forbidden = true;
    }
    for (size_t i = 0; i < space->n_sources; i++) {
        w->source = (uint32_t)i;
        TRY(walk_source(w, &space->sources[i], err));
    }
    ret->cancelled = stop_said(&w->asks);
    return DEP_OK;
}

dep_status search_count(const search_space *space, size_t *counts, dep_err *err) {
    arena *a = arena_new();
    walk_result r = {0};
    dep_status status = walk_sources(a, space, &search_limits_default, &r, err);
    if (status == DEP_OK) {
        for (size_t i = 0; i < space->n_sources; i++) counts[i] = 0;
        for (vec_each(walk_file, f, &r.files)) counts[f->source]++;
    }
    arena_free(a);
    return status;
}

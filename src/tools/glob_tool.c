// tools: glob. Newest change first, then by path; a few more than are shown are counted.
#include "tools/tools_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

typedef struct {
    str rel;
    int64_t mtime_ns;
} found;

typedef struct {
    arena *a;
    VEC(found) files;
} finds;

static bool take(void *p, str rel, const struct stat *st) {
    finds *f = p;
    vec_push(f->a, &f->files,
             ((found){.rel = rel, .mtime_ns = st->st_mtim.tv_sec * 1000000000LL + st->st_mtim.tv_nsec}));
    return true;
}

static int newest_first(const void *x, const void *y) {
    const found *p = x, *q = y;
    if (p->mtime_ns != q->mtime_ns) return p->mtime_ns > q->mtime_ns ? -1 : 1;
    return str_cmp(p->rel, q->rel);
}

// A path as a pattern that matches it alone.
static str literal(arena *a, str path) {
    buf out = buf_new(a, 0);
    for (size_t i = 0; i < path.n; i++) {
        if (strchr("*?[]{},\\", path.p[i])) buf_addc(&out, '\\');
        buf_addc(&out, path.p[i]);
    }
    return buf_str(&out);
}

dep_status tool_glob(tool_ctx *c, dep_err *err) {
    str start;
    TRY(access_path(c->t, c->turn, json_str(c->args, S("path"), (str){0}), &start, err));
    str pattern = json_str(c->args, S("pattern"), (str){0});
    // A pattern may be given from the workspace's own path, and is relative to `path`.
    if (str_starts(pattern, S("/"))) {
        access_below_root(c->t->w->root, pattern, &pattern);
    } else if (start.n) {
        pattern = path_join(c->turn, literal(c->turn, start), pattern);
    }
    glob_pat *g;
    TRY(glob_compile(c->turn, pattern, &g, err));
    finds f = {.a = c->turn};
    tool_walk w = {.start = start, .pattern = g, .text = pattern, .file = take, .ctx = &f};
    TRY(walk_files(c, &w, err));
    if (f.files.n) qsort(f.files.p, f.files.n, sizeof(found), newest_first);
    size_t limit = (size_t)json_num(c->args, S("limit"), TOOL_GLOB_LIMIT);
    for (size_t i = 0; i < f.files.n && i < limit; i++) {
        foreign_add(c->out, f.files.p[i].rel, FOREIGN_LINE, 0);
        buf_addc(c->out, '\n');
    }
    if (!f.files.n) buf_add(c->out, S("No file matches.\n"));
    if (f.files.n > limit) buf_addf(c->out, "[%zu of %zu files shown]\n", limit, f.files.n);
    walk_summary(&w, c->out);
    if (w.cancelled) return err_set(err, DEP_ERR_CANCELLED, "stopped");
    return DEP_OK;
}

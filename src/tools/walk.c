// tools: the walk behind glob and grep. In order of names, beneath descriptors, never through a link to a
// directory; obeys .gitignore; dot-files, node_modules and VCS folders only when the pattern or the start
// names them; nothing below a .deputy unless the start names it.
#include "tools/ignore.h"
#include "tools/tools_int.h"
#include <deputy/policy.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

typedef struct {
    tool_ctx *c;
    tool_walk *w;
    ignore_rules rules;
    size_t depth;
    bool stop;
} walk_state;

// A folder that holds many files nobody means.
static bool shy(str name) {
    return str_eq(name, S("node_modules")) || str_eq(name, S("CVS"));
}

// Does the pattern spell the name as a whole component or alternative?
static bool spells(str pattern, str name) {
    for (size_t from = 0, i = 0; i <= pattern.n; i++) {
        if (i < pattern.n && !strchr("/{},", pattern.p[i])) continue;
        if (str_eq(str_sub(pattern, from, i), name)) return true;
        from = i + 1;
    }
    return false;
}

// Names that must be asked for. That `*` matches no hidden name is the glob's own rule.
static bool asked_for(const walk_state *s, str name, str rel) {
    const glob_pat *pattern = s->w->pattern;
    if (shy(name)) return pattern && spells(s->w->text, name);
    if (!str_starts(name, S("."))) return true;
    return pattern && (glob_match(pattern, rel) || glob_may_descend(pattern, rel));
}

// dir: where the file is; rel: its path from the workspace.
static void take_file(walk_state *s, int dir, str name, str rel) {
    tool_walk *w = s->w;
    if (w->pattern && !glob_match(w->pattern, rel)) return;
    if (!access_allowed(s->c->t, rel)) {
        w->sensitive += path_sensitive(rel) != NULL;
        return;
    }
    if (w->files >= TOOL_WALK_FILES_MAX) {
        w->over = s->stop = true;
        return;
    }
    w->files++;
    struct stat st;
    if (fstatat(dir, str_cz(s->c->turn, name), &st, AT_SYMLINK_NOFOLLOW) != 0) return;
    if (S_ISLNK(st.st_mode)) {
        // A link counts as the file it leads to, if that may be opened.
        opened_file f;
        dep_err err;
        if (access_open(s->c->t, s->c->turn, rel, &f, &err) != DEP_OK) {
            w->links++;
            return;
        }
        st = f.st;
        close(f.fd);
    } else if (st.st_nlink > 1 && workspace_is_memory(s->c->t->w, &st)) {
        return; // another name of a memory file
    }
    if (S_ISREG(st.st_mode) && !w->file(w->ctx, rel, &st)) s->stop = true;
}

static void walk_dir(walk_state *s, int fd, str rel);

// A mount can show the memory directories under another path.
static bool is_memory(walk_state *s, int dir) {
    struct stat st;
    return fstat(dir, &st) != 0 || workspace_is_memory(s->c->t->w, &st);
}

static void take_dir(walk_state *s, int fd, str name, str rel) {
    if (!access_may_descend(s->c->t, rel)) return;
    if (s->w->pattern && !glob_may_descend(s->w->pattern, rel)) return;
    int child;
    dep_err err;
    if (s->depth >= TOOL_WALK_DEPTH_MAX || dir_open_at(fd, name, FILE_NO_LINKS, &child, &err) != DEP_OK) {
        s->w->skipped++;
        return;
    }
    size_t rules = s->rules.n;
    s->depth++;
    if (!is_memory(s, child)) walk_dir(s, child, rel);
    s->depth--;
    s->rules.n = rules;
    close(child);
}

static void walk_dir(walk_state *s, int fd, str rel) {
    arena *a = s->c->turn;
    dir_entries entries = {0};
    dep_err err;
    str ignore;
    if (file_read_at(a, fd, S(".gitignore"), FILE_NO_LINKS, IGNORE_FILE_MAX, &ignore, NULL, &err) == DEP_OK)
        ignore_add(a, &s->rules, rel, ignore);
    if (dir_list(a, fd, TOOL_WALK_FILES_MAX, &entries, &err) != DEP_OK) {
        s->w->skipped++;
        return;
    }
    for (vec_each(const dir_entry, e, &entries)) {
        if (s->stop) return;
        s->w->cancelled = ctx_cancelled(s->c);
        s->w->late = ctx_late(s->c);
        s->stop = s->w->cancelled || s->w->late;
        if (s->stop) return;
        str path = rel.n ? path_join(a, rel, e->name) : e->name;
        if (str_ieq(e->name, S(".deputy")) || str_ieq(e->name, S(".git"))) continue;
        if (!asked_for(s, e->name, path)) continue;
        if (ignore_hit(&s->rules, path, e->type == DT_DIR)) {
            s->w->ignored++;
            continue;
        }
        if (e->type == DT_DIR) take_dir(s, fd, e->name, path);
        if (e->type == DT_REG || e->type == DT_LNK) take_file(s, fd, e->name, path);
    }
}

// Rules of the directories above the start bind too.
static void inherit_rules(walk_state *s, str start) {
    for (size_t i = 0; i < start.n; i++) {
        if (i && start.p[i] != '/') continue;
        str dir = str_sub(start, 0, i), text;
        dep_err err;
        str file = dir.n ? path_join(s->c->turn, dir, S(".gitignore")) : S(".gitignore");
        if (file_read_at(s->c->turn, s->c->t->w->fd, file, FILE_NO_LINKS, IGNORE_FILE_MAX, &text, NULL,
                         &err) == DEP_OK)
            ignore_add(s->c->turn, &s->rules, dir, text);
    }
}

// A start that is no directory: the one file, whatever the pattern. why: what kept it from being opened as
// one.
static dep_status take_start(walk_state *s, const dep_err *why, dep_err *err) {
    str start = s->w->start, name = path_base(start);
    opened_file f;
    struct stat st;
    int dir;
    if (!start.n || dir_open_at(s->c->t->w->fd, path_dir(start), FILE_NO_LINKS, &dir, err) != DEP_OK)
        return err_set(err, why->status, "%s", why->msg);
    dep_status status = DEP_OK;
    if (fstatat(dir, str_cz(s->c->turn, name), &st, AT_SYMLINK_NOFOLLOW) != 0 || S_ISDIR(st.st_mode)) {
        status = err_set(err, why->status, "%s", why->msg);
    } else if ((status = access_open(s->c->t, s->c->turn, start, &f, err)) == DEP_OK) {
        close(f.fd);
        s->w->pattern = NULL;
        take_file(s, dir, name, start);
    }
    close(dir);
    return status;
}

dep_status walk_files(tool_ctx *c, tool_walk *w, dep_err *err) {
    walk_state s = {.c = c, .w = w};
    if (workspace_memory_path(w->start))
        return err_set(err, DEP_ERR_REFUSED,
                       "\"" STR_FMT "\" belongs to memory, which only the memory tools reach",
                       STR_ARG(w->start));
    if (!access_may_descend(c->t, w->start) && !access_allowed(c->t, w->start))
        return err_set(err, DEP_ERR_REFUSED, "\"" STR_FMT "\" is outside what `permissions.read` allows",
                       STR_ARG(w->start));
    int fd;
    dep_err why;
    if (dir_open_at(c->t->w->fd, w->start, FILE_NO_LINKS, &fd, &why) != DEP_OK)
        return take_start(&s, &why, err);
    inherit_rules(&s, w->start);
    if (!is_memory(&s, fd)) walk_dir(&s, fd, w->start);
    close(fd);
    return DEP_OK;
}

void walk_summary(const tool_walk *w, buf *out) {
    if (w->ignored) buf_addf(out, "[%zu entries left out by .gitignore]\n", w->ignored);
    if (w->sensitive)
        buf_addf(out, "[%zu file%s left out that may hold secrets, such as keys]\n", w->sensitive,
                 w->sensitive == 1 ? "" : "s");
    if (w->links)
        buf_addf(out, "[%zu link%s not followed: to a directory, out of reach, or to nothing]\n", w->links,
                 w->links == 1 ? "" : "s");
    if (w->skipped)
        buf_addf(out, "[%zu director%s not entered: unreadable, or too deep]\n", w->skipped,
                 w->skipped == 1 ? "y" : "ies");
    if (w->late) buf_addf(out, "[stopped after %d s: not everything was looked at]\n", TOOL_SECONDS_MAX);
    if (w->over)
        buf_addf(out, "[stopped after %d files: narrow the path or the pattern]\n", TOOL_WALK_FILES_MAX);
}

// host: do the files that decide what a workspace holds still look as they did when it was loaded? Compared
// are identity, size and times, as git does it; a file that was changed just before it was looked at may
// change again without another time, so it counts as changed until it has grown old.
#include "host/host_int.h"
#include <deputy/file.h>
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

enum {
    STAMP_FRESH_MS = 2000, // some file systems keep whole or even seconds
    STAMPS_MAX = 10000,    // from so many on, folders without a skill are passed over
};

typedef struct {
    str path; // absolute
    bool there;
    struct stat st;
} stamp;

struct workspace_stamps {
    VEC(stamp) files;
    bool skills; // were they loaded by then
};

static void look(const char *path, bool *there, struct stat *st) {
    *st = (struct stat){0};
    *there = fstatat(AT_FDCWD, path, st, 0) == 0;
}

static void add(workspace *w, str path) {
    stamp s = {.path = str_dup(w->a, path)};
    look(s.path.p, &s.there, &s.st);
    vec_push(w->a, &w->stamps->files, s);
}

static void add_agents(workspace *w) {
    add(w, path_join(w->a, w->root, S(".deputy/agents")));
    add(w, path_join(w->a, w->dirs.config, S("agents")));
    for (vec_each(const agent_entry, e, &w->agents)) {
        if (e->def.layer == LAYER_WORKSPACE) add(w, path_join(w->a, w->root, e->def.file));
        if (e->def.layer == LAYER_SYSTEM)
            add(w, path_join(w->a, path_join(w->a, w->dirs.config, S("agents")), e->def.base));
    }
}

// Folders below a root of skills, as far as skills are looked for: one that comes into an empty folder
// changes nothing above it. Links are not followed; what is behind one is known by its skill.
static void add_folders(workspace *w, int parent, str name, str shown, int depth) {
    arena *scratch = arena_new();
    dir_entries names = {0};
    int fd;
    if (dir_open_at(parent, name, FILE_NO_LINKS, &fd, NULL) == DEP_OK) {
        add(w, shown);
        bool listed = depth < SKILL_DEPTH_MAX && w->stamps->files.n < STAMPS_MAX &&
                      dir_list(scratch, fd, SKILL_ENTRIES_MAX, &names, NULL) == DEP_OK;
        for (size_t i = 0; listed && i < names.n; i++)
            if (names.p[i].type == DT_DIR)
                add_folders(w, fd, names.p[i].name, path_join(scratch, shown, names.p[i].name), depth + 1);
        close(fd);
    }
    arena_free(scratch);
}

static void add_root(workspace *w, str path) {
    arena *scratch = arena_new();
    dir_entries names = {0};
    int fd;
    add(w, path);
    if (dir_open(path, &fd, NULL) == DEP_OK) {
        if (dir_list(scratch, fd, SKILL_ENTRIES_MAX, &names, NULL) == DEP_OK)
            for (vec_each(const dir_entry, e, &names))
                if (e->type == DT_DIR) add_folders(w, fd, e->name, path_join(scratch, path, e->name), 1);
        close(fd);
    }
    arena_free(scratch);
}

static void add_skills(workspace *w) {
    static const char *const below[] = {".deputy/skills", ".agents/skills", ".claude/skills"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
        add_root(w, path_join(w->a, w->root, str_z(below[i])));
        if (i) add_root(w, path_join(w->a, w->dirs.home, str_z(below[i])));
    }
    add_root(w, path_join(w->a, w->dirs.config, S("skills")));
    for (vec_each(const skill, s, &w->skills)) {
        str path = s->location;
        if (str_starts(path, S("~/"))) path = path_join(w->a, w->dirs.home, str_sub(path, 2, path.n));
        if (!str_starts(path, S("/"))) path = path_join(w->a, w->root, path);
        // The folder too: a skill that comes beside this one changes the one above.
        add(w, path);
        add(w, path_dir(path_dir(path)));
    }
}

dep_status workspace_stamp(workspace *w, dep_err *err) {
    TRY(workspace_agents(w, err));
    w->stamps = NEW(w->a, struct workspace_stamps);
    w->stamps->skills = w->skills_loaded;
    add(w, path_join(w->a, w->dirs.config, S("config.yaml")));
    add(w, path_join(w->a, w->root, S(".deputy")));
    add(w, path_join(w->a, w->root, S(".deputy/config.yaml")));
    // Lists of trust are replaced whole, so the directory tells.
    add(w, path_join(w->a, w->dirs.state, S("trust")));
    add_agents(w);
    add_skills(w);
    return DEP_OK;
}

static int64_t changed_ms(const struct stat *st) {
    return (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
}

// Against the moment when loading began: what was changed between the load and the stamp shows too.
static bool same(const stamp *s, int64_t opened_ms) {
    bool there;
    struct stat st;
    look(s->path.p, &there, &st);
    if (there != s->there) return false;
    if (!there) return true;
    return st.st_ino == s->st.st_ino && st.st_dev == s->st.st_dev && st.st_size == s->st.st_size &&
           st.st_mtim.tv_sec == s->st.st_mtim.tv_sec && st.st_mtim.tv_nsec == s->st.st_mtim.tv_nsec &&
           st.st_ctim.tv_sec == s->st.st_ctim.tv_sec && st.st_ctim.tv_nsec == s->st.st_ctim.tv_nsec &&
           changed_ms(&st) < opened_ms - STAMP_FRESH_MS;
}

bool workspace_changed(const workspace *w) {
    // Skills that were read later are not among the stamps.
    if (!w->stamps || w->stamps->skills != w->skills_loaded) return true;
    for (vec_each(const stamp, s, &w->stamps->files))
        if (!same(s, w->opened_ms)) return true;
    return false;
}

// find: the skills of all roots, and which of them win their names. It reads folders and SKILL.md files
// beneath the roots' descriptors (rule B1) and nothing else; what they say is parse.c's business. Folders are
// opened again once it is known which skills can be used, so that shadowed and withheld ones cost no
// descriptor.
#include "skills/skills_int.h"
#include <deputy/file.h>
#include <deputy/utf8.h>
#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NOT_TRUSTED S("not trusted")
#define CHANGED S("changed since it was trusted")

// A descriptor that its arena closes, unless it was closed before.
typedef struct {
    int fd;
} held;

typedef struct {
    dev_t dev;
    ino_t ino;
    str path; // below the root
} seen_dir;

// What is known of a found skill besides the skill.
typedef struct {
    const skill_root *root;
    str folder; // as base_path() takes it
    dev_t dev;
    ino_t ino;
    str identity;
    bool never; // was never trusted: shadows nothing
} found;

typedef struct {
    arena *a, *s; // result, scratch
    trust_list *trust;
    diags *d;
    skill_list skills;
    VEC(found) more; // beside skills
    size_t bytes;    // of all SKILL.md
    // Of the root that is being read:
    const skill_root *root;
    VEC(seen_dir) seen;
    bool full; // SKILL_DIRS_MAX or SKILL_BYTES_MAX
    size_t deep;
    str first_deep;
} finder;

static void held_close(void *p) {
    held *h = p;
    if (h->fd >= 0) close(h->fd);
    h->fd = -1;
}

static held *hold(arena *a) {
    held *h = NEW(a, held);
    h->fd = -1;
    arena_defer(a, held_close, h);
    return h;
}

// --- Paths and diagnostics -----------------------------------------------------------------------

static int base_dir(const skill_root *r) {
    return r->below.n ? r->within : r->dir;
}

static str base_path(arena *a, const skill_root *r, str rel) {
    str path = path_join(a, r->below, rel);
    return path.n ? path : S(".");
}

static str location(finder *f, str rel) {
    return path_join(f->a, f->root->label, rel);
}

static void report(finder *f, diag_severity severity, const char *code, str rel, str msg, const char *hint) {
    diags_add(
        f->d,
        (diag){
            .severity = severity, .code = code, .file = location(f, rel), .msg = msg, .hint = str_z(hint)});
}

// Something that could not be opened: a link that is not followed, or another fault.
static void report_failed(finder *f, str rel, dep_status status, const dep_err *why) {
    str link = skill_link_target(f->s, f->root->dir, rel);
    if (link.n) {
        const char *what = status == DEP_ERR_NOT_FOUND ? "to something that is not there" : "not followed";
        report(f, SEV_WARNING, "SKL014", rel, str_fmt(f->s, "link %s: " STR_FMT, what, STR_ARG(link)),
               "only relative links that stay inside are followed: replace it by the folder or file itself");
        return;
    }
    report(f, SEV_ERROR, "SKL018", rel, skill_shown(f->s, str_z(why->msg)), "");
}

// Rule B2, and whatever else the floor above refuses. True: reported.
static bool refused(finder *f, str rel, const struct stat *st) {
    const char *why = f->root->refuse ? f->root->refuse(f->root->ctx, st) : NULL;
    if (why) report(f, SEV_ERROR, "SKL018", rel, str_fmt(f->s, "not used: %s", why), "");
    return why != NULL;
}

// --- One skill -----------------------------------------------------------------------------------

static void add_skill(finder *f, skill sk, found more) {
    sk.layer = f->root->layer;
    sk.refuse = f->root->refuse;
    sk.ctx = f->root->ctx;
    sk.dir = -1;
    more.root = f->root;
    more.identity = utf8_fold(f->a, sk.name);
    vec_push(f->a, &f->skills, sk);
    vec_push(f->a, &f->more, more);
}

static bool read_file(finder *f, str rel, str *ret) {
    held *h = hold(f->s);
    struct stat st;
    dep_err why;
    dep_status status =
        file_open_at(base_dir(f->root), base_path(f->s, f->root, rel), FILE_LINKS_INSIDE, &h->fd, &st, &why);
    if (status != DEP_OK) {
        report_failed(f, rel, status, &why);
        return false;
    }
    if (refused(f, rel, &st)) return false;
    status = file_read_fd(f->a, h->fd, SKILL_FILE_MAX, false, ret, &why);
    held_close(h);
    if (status == DEP_ERR_LIMIT) {
        report(f, SEV_ERROR, "SKL018", rel,
               str_fmt(f->s, "%lld bytes, over the limit of %d", (long long)st.st_size, SKILL_FILE_MAX),
               "move details into files beside it");
        return false;
    }
    if (status != DEP_OK) {
        report_failed(f, rel, status, &why);
        return false;
    }
    f->bytes += ret->n;
    return true;
}

// rel: the skill's folder; file: its SKILL.md as it is spelled.
static void load_skill(finder *f, str rel, str file, const struct stat *folder) {
    bool workspace = f->root->layer == SKILL_WORKSPACE || f->root->layer == SKILL_WORKSPACE_ECOSYSTEM;
    str path = path_join(f->s, rel, file), text = {0};
    skill sk = {.location = str_dup(f->a, location(f, path))};
    found more = {.folder = str_dup(f->a, rel), .dev = folder->st_dev, .ino = folder->st_ino};
    bool ok =
        read_file(f, path, &text) && skill_parse(f->a, sk.location, text, path_base(more.folder), &sk, f->d);
    trust_state state =
        workspace && f->trust ? trust_check(f->trust, sk.location, sk.sha256, NULL) : TRUST_OK;
    // A broken one that was trusted once keeps its name; any other is as if it were not there.
    if (!ok && state != TRUST_CHANGED) return;
    if (!sk.name.n) sk.name = utf8_repair(f->a, path_base(more.folder));
    if (state != TRUST_OK) sk.withheld = state == TRUST_NEVER ? NOT_TRUSTED : CHANGED;
    more.never = state == TRUST_NEVER;
    add_skill(f, sk, more);
}

// The entry that is the folder's SKILL.md: that spelling first, then any other case.
static const dir_entry *skill_file(finder *f, str rel, const dir_entries *names) {
    const dir_entry *best = NULL;
    size_t spellings = 0;
    for (vec_each(const dir_entry, e, names)) {
        if (!str_ieq(e->name, S("SKILL.md"))) continue;
        spellings++;
        if (!best || str_eq(e->name, S("SKILL.md"))) best = e;
    }
    if (best && (spellings > 1 || !str_eq(best->name, S("SKILL.md"))))
        report(f, SEV_WARNING, "SKL012", path_join(f->s, rel, best->name),
               spellings > 1 ? S("the folder holds SKILL.md in several spellings: this one is read")
                             : S("the file should be spelled SKILL.md: other programs may not find it"),
               "rename it to SKILL.md");
    return best;
}

// --- Walking -------------------------------------------------------------------------------------

static void visit(finder *f, str rel, int depth);

static bool skipped(str name) {
    static const str names[] = {S_INIT(".git"), S_INIT(".hg"), S_INIT(".svn"), S_INIT("node_modules")};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_eq(name, names[i])) return true;
    return false;
}

static void visit_entry(finder *f, str rel, const dir_entry *e, int depth) {
    str path = path_join(f->s, rel, e->name);
    if (f->full || skipped(e->name) || (e->type != DT_DIR && e->type != DT_LNK)) return;
    if (e->type == DT_LNK) {
        struct stat st;
        dep_err why;
        dep_status status =
            file_stat_at(base_dir(f->root), base_path(f->s, f->root, path), FILE_LINKS_INSIDE, &st, &why);
        if (status != DEP_OK) report_failed(f, path, status, &why);
        if (status != DEP_OK || !S_ISDIR(st.st_mode)) return;
    }
    if (depth < SKILL_DEPTH_MAX) {
        visit(f, path, depth + 1);
    } else if (f->deep++ == 0) {
        f->first_deep = path;
    }
}

// False: this directory was read already, by another path. Told, because its skills have only the first
// location.
static bool first_visit(finder *f, str rel, const struct stat *st) {
    for (vec_each(const seen_dir, s, &f->seen)) {
        if (s->dev != st->st_dev || s->ino != st->st_ino) continue;
        str link = skill_link_target(f->s, f->root->dir, rel);
        report(f, SEV_WARNING, "SKL014", rel,
               str_fmt(f->s, "%s" STR_FMT " leads to " STR_FMT ", which is read by that name",
                       link.n ? "link " : "", STR_ARG(link.n ? link : skill_shown(f->s, rel)),
                       STR_ARG(skill_shown(f->s, location(f, s->path)))),
               "");
        return false;
    }
    vec_push(f->s, &f->seen, (seen_dir){st->st_dev, st->st_ino, rel});
    return true;
}

static bool room_for_more(finder *f, str rel) {
    if (f->seen.n < SKILL_DIRS_MAX + 1u && f->bytes < SKILL_BYTES_MAX) return true;
    f->full = true;
    report(f, SEV_WARNING, "SKL015", rel,
           f->bytes < SKILL_BYTES_MAX
               ? str_fmt(f->s, "more than %d folders: this one and those after it are not looked at",
                         SKILL_DIRS_MAX)
               : str_fmt(f->s, "the skills are over %d MiB: this folder and those after it are not looked at",
                         SKILL_BYTES_MAX >> 20),
           "remove what is no skill");
    return false;
}

static void visit(finder *f, str rel, int depth) {
    held *h = hold(f->s);
    struct stat st;
    dep_err why;
    dir_entries names = {0};
    if (!room_for_more(f, rel)) return;
    dep_status status =
        dir_open_at(base_dir(f->root), base_path(f->s, f->root, rel), FILE_LINKS_INSIDE, &h->fd, &why);
    if (status == DEP_OK && fstat(h->fd, &st) != 0)
        status = err_set(&why, DEP_ERR_IO, "cannot examine the folder");
    if (status != DEP_OK) {
        report_failed(f, rel, status, &why);
        return;
    }
    if (refused(f, rel, &st) || !first_visit(f, rel, &st)) return held_close(h);
    status = dir_list(f->s, h->fd, SKILL_ENTRIES_MAX, &names, &why);
    held_close(h);
    if (status != DEP_OK) {
        report(f, SEV_WARNING, status == DEP_ERR_LIMIT ? "SKL015" : "SKL018", rel,
               skill_shown(f->s, str_z(why.msg)), "");
        return;
    }
    const dir_entry *file = skill_file(f, rel, &names);
    if (file && depth > 0) {
        load_skill(f, rel, file->name, &st);
        return;
    }
    if (file)
        report(f, SEV_ERROR, "SKL018", file->name,
               S("a skill needs a folder of its own: this one is not read"),
               "move it into a folder that has the skill's name");
    for (vec_each(const dir_entry, e, &names)) visit_entry(f, rel, e, depth);
}

static void read_root(finder *f, const skill_root *r) {
    f->root = r;
    f->seen.n = 0;
    f->full = false;
    f->deep = 0;
    visit(f, (str){0}, 0);
    if (f->deep)
        report(f, SEV_WARNING, "SKL015", f->first_deep,
               str_fmt(f->s, "more than %d folders deep: not looked at (%zu such folder%s)", SKILL_DEPTH_MAX,
                       f->deep, f->deep == 1 ? "" : "s"),
               "move skills up");
}

// --- Winners -------------------------------------------------------------------------------------

typedef struct {
    str identity;
    bool never;
    size_t at;
} rival;

// Of one name, the first that was ever trusted is first.
static int by_rank(const void *x, const void *y) {
    const rival *a = x, *b = y;
    int c = str_cmp(a->identity, b->identity);
    if (c) return c;
    if (a->never != b->never) return a->never ? 1 : -1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void decide(finder *f) {
    size_t n = f->skills.n;
    rival *all = NEW_N(f->s, rival, n);
    for (size_t i = 0; i < n; i++) all[i] = (rival){f->more.p[i].identity, f->more.p[i].never, i};
    if (n) qsort(all, n, sizeof *all, by_rank);
    for (size_t i = 1, winner = 0; i < n; i++) {
        if (str_eq(all[i].identity, all[winner].identity)) {
            f->skills.p[all[i].at].shadowed_by = f->skills.p[all[winner].at].location;
        } else {
            winner = i;
        }
    }
    for (size_t i = 0; i < n; i++) {
        const skill *sk = &f->skills.p[i];
        if (!sk->shadowed_by.n || f->more.p[i].never) continue;
        diags_add(f->d, (diag){.severity = SEV_WARNING,
                               .code = "SKL013",
                               .file = sk->location,
                               .msg = str_fmt(
                                   f->s, "the skill \"" STR_FMT "\" is also in " STR_FMT ": that one is used",
                                   STR_ARG(skill_shown(f->s, sk->name)),
                                   STR_ARG(skill_shown(f->s, sk->shadowed_by))),
                               .hint = S("rename or remove one of them")});
    }
}

// Opens the folders of the skills that can be used. A folder that was replaced since it was read is another
// one.
static void open_folders(finder *f) {
    size_t open = 0, over = 0;
    for (size_t i = 0; i < f->skills.n; i++) {
        skill *sk = &f->skills.p[i];
        const found *more = &f->more.p[i];
        if (sk->shadowed_by.n || sk->withheld.n) continue;
        struct stat st;
        dep_err why;
        held *h = hold(f->a);
        if (open == SKILL_OPEN_MAX ||
            dir_open_at(base_dir(more->root), base_path(f->s, more->root, more->folder), FILE_LINKS_INSIDE,
                        &h->fd, &why) != DEP_OK ||
            fstat(h->fd, &st) != 0 || st.st_dev != more->dev || st.st_ino != more->ino) {
            held_close(h);
            if (over++ == 0)
                diags_add(f->d,
                          (diag){.severity = SEV_WARNING,
                                 .code = "SKL015",
                                 .file = sk->location,
                                 .msg = open == SKILL_OPEN_MAX
                                            ? str_fmt(f->s,
                                                      "more than %d skills: from this one on their files "
                                                      "cannot be read, only their text",
                                                      SKILL_OPEN_MAX)
                                            : S("the folder cannot be held open: its files cannot be read")});
            continue;
        }
        sk->dir = h->fd;
        open++;
    }
}

// --- The two entrances ---------------------------------------------------------------------------

static dep_status find_caught(finder *f, const skill_root *roots, size_t n, skill_list *ret, dep_err *err) {
    ARENA_CATCH(f->a, err);
    for (size_t i = 0; i < n; i++) read_root(f, &roots[i]);
    decide(f);
    open_folders(f);
    *ret = f->skills;
    return DEP_OK;
}

dep_status skills_find(arena *a, const skill_root *roots, size_t n, trust_list *trust, skill_list *ret,
                       diags *d, dep_err *err) {
    finder f = {.a = a, .s = arena_new(), .trust = trust, .d = d};
    dep_status status = find_caught(&f, roots, n, ret, err);
    arena_free(f.s);
    return status;
}

const skill *skills_get(const skill_list *l, str name) {
    arena *s = arena_new();
    str identity = utf8_fold(s, name);
    const skill *best = NULL;
    int rank = 0;
    for (vec_each(const skill, i, l)) {
        bool exact = str_eq(i->name, name);
        if (i->shadowed_by.n || !(exact || str_eq(utf8_fold(s, i->name), identity))) continue;
        int r = exact ? 2 : 1;
        if (r > rank) {
            best = i;
            rank = r;
        }
    }
    arena_free(s);
    return best;
}

// list: the trusted digests of one workspace, as a sorted table in memory and a canonical JSON file in the
// state directory. It must not know what a definition, a skill or a memory is, and it never looks into the
// workspace. The entries live in an arena of the list's own that is replaced whole with every reload, so that
// a long run which records a thousand times keeps one table only.
#include <deputy/file.h>
#include <deputy/json.h>
#include <deputy/sys.h>
#include <deputy/trust.h>
#include <deputy/utf8.h>
#include <stdlib.h>
#include <unistd.h>

enum { FORMAT = 1, DIGEST_LENGTH = 64 };

typedef struct {
    arena *mem; // NULL: no entries
    trust_entry *e;
    size_t n;
    struct stat st; // of the file that was read; zero when there was none
} table;

struct trust_list {
    int dir; // the directory of the lists; -1 when there is none yet
    bool read_only, unread;
    str name; // of the file in dir
    str path; // for messages
    str workspace;
    table t;
};

static void list_free(void *p) {
    trust_list *t = p;
    arena_free(t->t.mem);
    if (t->dir >= 0) close(t->dir);
}

static int by_file(const void *x, const void *y) {
    const trust_entry *a = x, *b = y;
    return str_cmp(a->file, b->file);
}

static const trust_entry *find(const table *t, str file) {
    trust_entry key = {.file = file};
    return t->n ? bsearch(&key, t->e, t->n, sizeof *t->e, by_file) : NULL;
}

static bool is_digest(str s) {
    if (s.n != DIGEST_LENGTH) return false;
    for (size_t i = 0; i < s.n; i++)
        if (!((s.p[i] >= '0' && s.p[i] <= '9') || (s.p[i] >= 'a' && s.p[i] <= 'f'))) return false;
    return true;
}

// --- Reading -------------------------------------------------------------------------------------

static dep_status read_entry(arena *a, const json *v, trust_entry *ret, dep_err *err) {
    const json *reach = json_get(v, S("reach"));
    trust_entry e = {
        .file = v->key, .sha256 = json_str(v, S("sha256"), (str){0}), .was = json_str(v, S("was"), (str){0})};
    if (!is_digest(e.sha256) || (e.was.n && !is_digest(e.was)))
        return err_set(err, DEP_ERR_PARSE, "the record of '" STR_FMT "' has no digest", STR_ARG(e.file));
    if (reach && reach->kind != JSON_NULL) {
        // A list that was edited by hand may hold another form; comparisons want the one.
        buf out = buf_new(a, TRUST_LIST_MAX);
        json_canonical(&out, reach);
        e.reach = buf_str(&out);
    }
    *ret = e;
    return DEP_OK;
}

static dep_status parse(arena *mem, const trust_list *l, str text, table *ret, dep_err *err) {
    json *root = NULL;
    TRY(json_parse(mem, text, TRUST_LIST_MAX, &root, err));
    int64_t version = 0;
    const json *files = json_get(root, S("files"));
    if (!json_int(json_get(root, S("version")), 1, INT32_MAX, &version) || !files ||
        files->kind != JSON_OBJECT)
        return err_set(err, DEP_ERR_PARSE, "it is not a list of trusted files");
    if (version > FORMAT)
        return err_set(err, DEP_ERR_PARSE,
                       "it was written by a newer version of Deputy (format %d, known is %d)", (int)version,
                       FORMAT);
    if (!str_eq(json_str(root, S("workspace"), (str){0}), utf8_repair(mem, l->workspace)))
        return err_set(err, DEP_ERR_PARSE, "it belongs to another workspace");
    ret->e = NEW_N(mem, trust_entry, files->count);
    for (const json *v = files->child; v; v = v->next) TRY(read_entry(mem, v, &ret->e[ret->n++], err));
    if (ret->n) qsort(ret->e, ret->n, sizeof *ret->e, by_file);
    return DEP_OK;
}

static dep_status load_open(const trust_list *l, int fd, table *ret, dep_err *err) {
    ARENA_CATCH(ret->mem, err);
    str text;
    TRY(file_check_private(fd, l->name, err));
    TRY(file_read_fd(ret->mem, fd, TRUST_LIST_MAX, false, &text, err));
    return parse(ret->mem, l, text, ret, err);
}

// A fresh table from the file; an empty one when there is none.
static dep_status load(const trust_list *l, table *ret, dep_err *err) {
    table t = {0};
    int fd = -1;
    dep_err why;
    dep_status status =
        l->dir < 0 ? DEP_ERR_NOT_FOUND : file_open_at(l->dir, l->name, FILE_NO_LINKS, &fd, &t.st, &why);
    if (status == DEP_OK) {
        t.mem = arena_new();
        status = load_open(l, fd, &t, &why);
        close(fd);
    } else if (status == DEP_ERR_NOT_FOUND) {
        status = DEP_OK;
    }
    if (status != DEP_OK) {
        arena_free(t.mem);
        if (err) *err = why;
        err_prefix(err, STR_FMT, STR_ARG(l->path));
        return status;
    }
    *ret = t;
    return DEP_OK;
}

static void replace_table(trust_list *l, table t) {
    arena_free(l->t.mem);
    l->t = t;
}

// --- Opening -------------------------------------------------------------------------------------

// Sets l->dir, or leaves it -1 where nothing may be made and nothing is there.
static dep_status open_dir(arena *a, trust_list *l, str state, dep_err *err) {
    int fd = -1;
    dep_err why;
    str lists = path_join(a, state, S("trust"));
    // The state directory itself first: who can write to it can replace what is in it.
    dep_status status = dir_open_private(state, !l->read_only, &fd, &why);
    if (status == DEP_OK) {
        close(fd);
        status = dir_open_private(lists, !l->read_only, &l->dir, &why);
    }
    if (status == DEP_ERR_NOT_FOUND && l->read_only) return DEP_OK;
    if (status != DEP_OK && err) *err = why;
    return status;
}

trust_list *trust_none(arena *a) {
    trust_list *t = NEW(a, trust_list);
    *t = (trust_list){.dir = -1, .read_only = true, .unread = true};
    return t;
}

dep_status trust_open(arena *a, str state, str workspace, bool read_only, trust_list **ret, dep_err *err) {
    ARENA_CATCH(a, err);
    if (workspace.n == 0 || workspace.p[0] != '/')
        return err_set(err, DEP_ERR_INVALID, "the workspace is not named by an absolute path");
    trust_list *l = NEW(a, trust_list);
    l->dir = -1;
    l->read_only = read_only;
    arena_defer(a, list_free, l);
    l->workspace = str_dup(a, workspace);
    l->name = str_fmt(a, STR_FMT ".json", STR_ARG(sha256_hex(a, workspace)));
    l->path = str_dup(a, path_join(a, path_join(a, state, S("trust")), l->name));
    TRY(open_dir(a, l, state, err));
    TRY(load(l, &l->t, err));
    *ret = l;
    return DEP_OK;
}

dep_status trust_reload(trust_list *l, bool *changed, dep_err *err) {
    struct stat st = {0};
    dep_err why;
    dep_status status =
        l->dir < 0 ? DEP_ERR_NOT_FOUND : file_stat_at(l->dir, l->name, FILE_NO_LINKS, &st, &why);
    if (status != DEP_OK && status != DEP_ERR_NOT_FOUND) {
        if (err) *err = why;
        err_prefix(err, STR_FMT, STR_ARG(l->path));
        return status;
    }
    const struct stat *had = &l->t.st;
    // Lists are replaced, never written in place, so another file is another inode.
    bool same = st.st_ino == had->st_ino && st.st_dev == had->st_dev && st.st_size == had->st_size &&
                st.st_mtim.tv_sec == had->st_mtim.tv_sec && st.st_mtim.tv_nsec == had->st_mtim.tv_nsec;
    if (!same) {
        table t;
        TRY(load(l, &t, err));
        replace_table(l, t);
    }
    if (changed) *changed = !same;
    return DEP_OK;
}

trust_state trust_check(const trust_list *l, str file, str sha256, str *reach) {
    const trust_entry *e = find(&l->t, file);
    if (reach) *reach = e ? e->reach : (str){0};
    if (!e) return l->unread ? TRUST_CHANGED : TRUST_NEVER;
    bool same = str_eq(e->sha256, sha256) || (e->was.n && str_eq(e->was, sha256));
    return same ? TRUST_OK : TRUST_CHANGED;
}

void trust_entries(const trust_list *l, const trust_entry **ret, size_t *n) {
    *ret = l->t.e;
    *n = l->t.n;
}

// --- Writing -------------------------------------------------------------------------------------

static bool is_normal(arena *a, str file) {
    str normal;
    return file.n && utf8_valid(file) && path_normal(a, file, &normal) && str_eq(normal, file);
}

// The entry as it is kept: checked, copied, its reach in canonical form.
static dep_status take_entry(arena *mem, const trust_entry *in, trust_entry *ret, dep_err *err) {
    if (!is_normal(mem, in->file))
        return err_set(err, DEP_ERR_INVALID,
                       "'" STR_FMT "' is not a path within the workspace in normal form", STR_ARG(in->file));
    if (!is_digest(in->sha256) || (in->was.n && !is_digest(in->was)))
        return err_set(err, DEP_ERR_INVALID, "the digest of " STR_FMT " is not a SHA-256 in hex",
                       STR_ARG(in->file));
    trust_entry e = {.file = str_dup(mem, in->file), .sha256 = str_dup(mem, in->sha256)};
    if (in->was.n) e.was = str_dup(mem, in->was);
    if (in->reach.n) {
        json *reach = NULL;
        if (json_parse(mem, str_dup(mem, in->reach), TRUST_LIST_MAX, &reach, err) != DEP_OK) {
            err_prefix(err, "the reach of " STR_FMT, STR_ARG(in->file));
            return DEP_ERR_INVALID;
        }
        buf out = buf_new(mem, TRUST_LIST_MAX);
        json_canonical(&out, reach);
        e.reach = buf_str(&out);
    }
    *ret = e;
    return DEP_OK;
}

static bool same_entry(const trust_entry *x, const trust_entry *y) {
    return str_eq(x->sha256, y->sha256) && str_eq(x->was, y->was) && str_eq(x->reach, y->reach);
}

// Puts e into the table; false when it was there just so.
static bool put(arena *mem, table *t, size_t *cap, trust_entry e) {
    trust_entry *old = NULL;
    for (size_t i = 0; i < t->n && !old; i++)
        if (str_eq(t->e[i].file, e.file)) old = &t->e[i];
    if (old) {
        if (same_entry(old, &e)) return false;
        *old = e;
        return true;
    }
    if (t->n == *cap) t->e = vec_grow_(mem, t->e, cap, sizeof *t->e);
    t->e[t->n++] = e;
    return true;
}

// {"files":{FILE:{"reach":…,"sha256":…,"was":…},…},"version":1,"workspace":…}: canonical, members sorted.
static str written(arena *a, const trust_list *l, const table *t) {
    buf out = buf_new(a, (size_t)TRUST_LIST_MAX + 1);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_key(&w, S("files"));
    jw_obj(&w);
    for (size_t i = 0; i < t->n; i++) {
        const trust_entry *e = &t->e[i];
        jw_key(&w, e->file);
        jw_obj(&w);
        if (e->reach.n) {
            jw_key(&w, S("reach"));
            jw_raw(&w, e->reach);
        }
        jw_kstr(&w, S("sha256"), e->sha256);
        if (e->was.n) jw_kstr(&w, S("was"), e->was);
        jw_end_obj(&w);
    }
    jw_end_obj(&w);
    jw_kint(&w, S("version"), FORMAT);
    jw_kstr(&w, S("workspace"), l->workspace);
    jw_end_obj(&w);
    return buf_str(&out);
}

static dep_status save(trust_list *l, table *t, dep_err *err) {
    if (t->n) qsort(t->e, t->n, sizeof *t->e, by_file);
    arena *a = arena_new();
    str text = written(a, l, t);
    dep_status status = DEP_OK;
    if (text.n > TRUST_LIST_MAX) {
        status = err_set(err, DEP_ERR_LIMIT, "the list would be over %zu bytes", (size_t)TRUST_LIST_MAX);
    } else {
        status = file_replace_at(l->dir, l->name, text, 0600, err);
    }
    if (status == DEP_OK) status = file_stat_at(l->dir, l->name, FILE_NO_LINKS, &t->st, err);
    if (status != DEP_OK) err_prefix(err, STR_FMT, STR_ARG(l->path));
    arena_free(a);
    return status;
}

// t holds what the file says now, read under the lock.
static dep_status record_into(trust_list *l, table *t, const trust_entry *e, size_t n, dep_err *err) {
    if (!t->mem) t->mem = arena_new();
    ARENA_CATCH(t->mem, err);
    size_t cap = t->n;
    bool changed = false;
    for (size_t i = 0; i < n; i++) {
        trust_entry mine;
        TRY(take_entry(t->mem, &e[i], &mine, err));
        changed |= put(t->mem, t, &cap, mine);
    }
    return changed ? save(l, t, err) : DEP_OK;
}

static dep_status forget_in(trust_list *l, table *t, str file, dep_err *err) {
    for (size_t i = 0; i < t->n; i++) {
        if (!str_eq(t->e[i].file, file)) continue;
        memmove(&t->e[i], &t->e[i + 1], (t->n - i - 1) * sizeof *t->e);
        t->n--;
        return save(l, t, err);
    }
    return DEP_OK;
}

// Under the lock: reads what is there, changes it (e == NULL: forgets `gone`), and makes it the list's table.
static dep_status change(trust_list *l, const trust_entry *e, size_t n, str gone, dep_err *err) {
    if (l->read_only)
        return err_set(err, DEP_ERR_REFUSED, "the list of trusted files was opened for reading only");
    int lock = -1;
    TRY(lock_take(l->dir, S(".lock"), true, TRUST_LOCK_MS, &lock, err));
    table t = {0};
    dep_status status = load(l, &t, err);
    if (status == DEP_OK) {
        status = e ? record_into(l, &t, e, n, err) : forget_in(l, &t, gone, err);
        if (status == DEP_OK) {
            replace_table(l, t);
        } else {
            arena_free(t.mem);
        }
    }
    close(lock);
    return status;
}

dep_status trust_record_all(trust_list *l, const trust_entry *e, size_t n, dep_err *err) {
    return n ? change(l, e, n, (str){0}, err) : DEP_OK;
}

dep_status trust_record(trust_list *l, str file, str sha256, str reach, dep_err *err) {
    trust_entry e = {.file = file, .sha256 = sha256, .reach = reach};
    return change(l, &e, 1, (str){0}, err);
}

dep_status trust_forget(trust_list *l, str file, dep_err *err) {
    return change(l, NULL, 0, file, err);
}

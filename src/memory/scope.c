// scope: where memory lies and how its directory is opened. It must not know what is in the files. Each
// component between the workspace root and the scope is opened on its own, without links, and must be ours;
// the descriptor of the last one is the scope's for as long as its arena lives.
#include "memory/memory_int.h"
#include <deputy/file.h>
#include <unistd.h>

enum { TREE_DEPTH = 2 }; // components of ".deputy/memory" and ".deputy/agent-memory"

static bool is_component(str s) {
    return s.n && s.p[0] != '.' && str_chr(s, '/') == SIZE_MAX && str_chr(s, 0) == SIZE_MAX &&
           str_chr(s, '@') == SIZE_MAX;
}

str memory_dir(arena *a, memory_kind kind, str identity, str layer) {
    if (kind == MEMORY_SHARED) return S(".deputy/memory");
    bool workspace = layer.n == 0 || str_eq(layer, S("workspace"));
    // An '@' of the name's own could make one layer's folder look like another's.
    if (!is_component(identity) || (!workspace && !is_component(layer))) return (str){0};
    if (workspace) return str_fmt(a, ".deputy/agent-memory/" STR_FMT, STR_ARG(identity));
    return str_fmt(a, ".deputy/agent-memory/" STR_FMT "@" STR_FMT, STR_ARG(identity), STR_ARG(layer));
}

// --- Paths and names -----------------------------------------------------------------------------

bool memory_path(str path) {
    str part[TREE_DEPTH] = {0};
    size_t depth = 0;
    str rest = path, head;
    for (bool more = true; more;) {
        more = str_cut(rest, '/', &head, &rest);
        if (head.n == 0 || str_eq(head, S("."))) continue;
        if (str_eq(head, S(".."))) {
            if (depth) depth--;
            continue;
        }
        if (depth < TREE_DEPTH) part[depth] = head;
        depth++;
    }
    return depth >= TREE_DEPTH && str_ieq(part[0], S(".deputy")) &&
           (str_ieq(part[1], S("memory")) || str_ieq(part[1], S("agent-memory")));
}

bool memory_name_ok(str file) {
    str name = str_starts(file, S("daily/")) ? str_sub(file, 6, file.n) : file;
    if (!str_ends(name, S(".md")) || !utf8_valid(name) || utf8_count(name) > MEMORY_NAME_MAX) return false;
    for (size_t i = 0; i < name.n;) {
        bool first = i == 0;
        uint32_t cp = utf8_next(name, &i);
        if (utf8_is_letter(cp) || utf8_is_decimal(cp)) continue;
        if (first) return false;
        if (!utf8_is_mark(cp) && cp != '.' && cp != '_' && cp != ' ' && cp != '-') return false;
        // Variation selectors and the like are marks that nobody sees.
        if (utf8_is_invisible(cp)) return false;
    }
    return true;
}

dep_status memory_check_name(str file, dep_err *err) {
    if (memory_name_ok(file)) return DEP_OK;
    return err_set(err, DEP_ERR_INVALID,
                   "'" STR_FMT
                   "' is not a name for a memory file: write NAME.md or daily/NAME.md, NAME beginning with a "
                   "letter or digit, then letters, digits, '.', '_', '-' or blanks, %d characters at most",
                   STR_ARG(utf8_cut(file, 200)), MEMORY_NAME_MAX);
}

// --- Opening -------------------------------------------------------------------------------------

dep_status memory_gitignore(int deputy_dir, dep_err *err) {
    dep_err why;
    dep_status status = file_create_at(deputy_dir, S(".gitignore"),
                                       S("# Notes that agents keep. Remove a line to commit them.\n"
                                         "memory/\nagent-memory/\n"),
                                       0644, &why);
    if (status == DEP_OK || status == DEP_ERR_EXISTS) return DEP_OK;
    if (err) *err = why;
    return status;
}

// Opens one component beneath dir. *ret = -1: not there, and not to be made. path: up to and with it, for
// messages.
static dep_status open_component(int dir, str name, str path, bool create, mode_t mode, int *ret, bool *made,
                                 dep_err *err) {
    int fd = -1;
    dep_err why;
    *made = false;
    dep_status status = dir_open_at(dir, name, FILE_NO_LINKS, &fd, &why);
    if (status == DEP_ERR_NOT_FOUND) {
        if (!create) {
            *ret = -1;
            return DEP_OK;
        }
        *made = true;
        status = dir_make_at(dir, name, mode, &fd, &why);
    }
    if (status != DEP_OK) {
        if (err) *err = why;
        // The reason names the component alone.
        if (path.n > name.n) err_prefix(err, "in " STR_FMT, STR_ARG(path_dir(path)));
        return status;
    }
    struct stat st;
    if (fstat(fd, &st) != 0 || st.st_uid != geteuid()) {
        close(fd);
        return err_set(err, DEP_ERR_REFUSED, STR_FMT " belongs to another user", STR_ARG(path));
    }
    *ret = fd;
    return DEP_OK;
}

// *ret = -1: not there.
static dep_status open_dir(int root, str dir, bool create, int *ret, dep_err *err) {
    int at = root;
    dep_status status = DEP_OK;
    str rest = dir, name;
    size_t depth = 0;
    for (bool more = true; more && status == DEP_OK && at >= 0; depth++) {
        more = str_cut(rest, '/', &name, &rest);
        str path = str_n(dir.p, (size_t)(name.p + name.n - dir.p));
        bool made = false;
        int fd = -1;
        // .deputy is meant to be committed; what is below it here is not.
        status = open_component(at, name, path, create, depth == 0 ? 0755 : 0700, &fd, &made, err);
        // With the first directory of memory, so that a .deputy that somebody made by hand is covered too.
        if (status == DEP_OK && made && depth == 1) status = memory_gitignore(at, err);
        if (status == DEP_OK && made && depth == 0) status = memory_gitignore(fd, err);
        if (at != root) close(at);
        at = fd;
    }
    if (status == DEP_OK) {
        *ret = at;
    } else if (at >= 0 && at != root) {
        close(at);
    }
    return status;
}

static bool is_scope_dir(arena *a, str dir) {
    str normal;
    if (!path_normal(a, dir, &normal) || !str_eq(normal, dir)) return false;
    if (str_eq(dir, S(".deputy/memory"))) return true;
    str key = S(".deputy/agent-memory/");
    return str_starts(dir, key) && str_sub(dir, key.n, dir.n).p[0] != '.' &&
           str_chr(str_sub(dir, key.n, dir.n), '/') == SIZE_MAX;
}

static void scope_close(void *p) {
    memory_scope *m = p;
    if (m->dir >= 0) close(m->dir);
}

dep_status memory_open(arena *a, int root, str dir, bool create, trust_list *trust, const sys_clock *clock,
                       memory_scope **ret, dep_err *err) {
    ARENA_CATCH(a, err);
    if (!is_scope_dir(a, dir))
        return err_set(err, DEP_ERR_INVALID, "'" STR_FMT "' is not a memory directory", STR_ARG(dir));
    memory_scope *m = NEW(a, memory_scope);
    m->label = str_dup(a, dir);
    m->trust = trust;
    m->clock = clock ? clock : sys_clock_real();
    m->dir = -1;
    arena_defer(a, scope_close, m);
    TRY(open_dir(root, dir, create, &m->dir, err));
    *ret = m->dir < 0 ? NULL : m;
    return DEP_OK;
}

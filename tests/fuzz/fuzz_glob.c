// Fuzzes path patterns. Input: a pattern, a line feed, a path. Whatever compiles must match without a fault,
// and where it matches, every directory on the way must be one that a walk enters, and the literal prefix
// must be on the path.
#include <deputy/arena.h>
#include <deputy/glob.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact) {
    if (!fact) abort();
}

static void check_match(const glob_pat *g, str path) {
    if (!glob_match(g, path)) {
        require(!glob_literal(g) || !str_eq(path, glob_path(g)));
        return;
    }
    str prefix = glob_prefix(g);
    require(str_starts(path, prefix) && (prefix.n == 0 || path.p[prefix.n] == '/'));
    require(!glob_literal(g) || str_eq(path, glob_path(g)));
    require(path.n == 0 || glob_may_descend(g, (str){0}));
    for (size_t i = 0; i < path.n; i++) {
        if (path.p[i] == '/') require(glob_may_descend(g, str_sub(path, 0, i)));
    }
}

// Paths that glob_match is promised: in normal form.
static bool normal(str path) {
    str rest = path, part;
    for (bool more = path.n > 0; more;) {
        more = str_cut(rest, '/', &part, &rest);
        if (part.n == 0 || str_eq(part, S(".")) || str_eq(part, S(".."))) return false;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    // Long paths repeat what short ones do, at the price of fewer runs.
    if (size > 2048) return 0;
    str pattern, path;
    str_cut(str_n((const char *)data, size), '\n', &pattern, &path);
    arena *a = arena_new();
    glob_pat *g = NULL;
    dep_err err = {0};
    if (glob_compile(a, pattern, &g, &err) == DEP_OK) {
        if (normal(path)) {
            check_match(g, path);
        } else {
            glob_match(g, path);
            glob_may_descend(g, path);
        }
        if (glob_literal(g) && normal(glob_path(g))) require(glob_match(g, glob_path(g)));
    } else {
        require(err.msg[0] && (err.status == DEP_ERR_INVALID || err.status == DEP_ERR_LIMIT));
    }
    arena_free(a);
    return 0;
}

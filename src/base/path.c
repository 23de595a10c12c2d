// path: relative paths as text. Nothing here touches a file system; what a path leads to is judged when it is
// opened.
#include <deputy/file.h>

bool path_normal(arena *a, str path, str *ret) {
    if (path.n > FILE_PATH_MAX || str_chr(path, 0) != SIZE_MAX || (path.n && path.p[0] == '/')) return false;
    char *p = arena_alloc(a, path.n + 1);
    size_t n = 0;
    str rest = path, part;
    for (bool more = true; more;) {
        more = str_cut(rest, '/', &part, &rest);
        if (str_eq(part, S(".."))) return false;
        if (part.n == 0 || str_eq(part, S("."))) continue;
        if (n) p[n++] = '/';
        memcpy(p + n, part.p, part.n);
        n += part.n;
    }
    *ret = (str){p, n};
    return true;
}

str path_join(arena *a, str dir, str name) {
    if (dir.n == 0) return name;
    if (name.n == 0) return dir;
    bool slash = dir.p[dir.n - 1] == '/';
    char *p = arena_alloc(a, dir.n + 1 + name.n + 1);
    memcpy(p, dir.p, dir.n);
    if (!slash) p[dir.n] = '/';
    memcpy(p + dir.n + !slash, name.p, name.n);
    return (str){p, dir.n + !slash + name.n};
}

static str without_slashes(str path) {
    while (path.n && path.p[path.n - 1] == '/') path.n--;
    return path;
}

str path_base(str path) {
    path = without_slashes(path);
    size_t at = str_rchr(path, '/');
    return at == SIZE_MAX ? path : str_sub(path, at + 1, path.n);
}

str path_dir(str path) {
    str whole = without_slashes(path);
    size_t at = str_rchr(whole, '/');
    if (at == SIZE_MAX) return whole.n || path.n == 0 ? (str){0} : str_sub(path, 0, 1); // "b" and "", or "/"
    str dir = without_slashes(str_sub(whole, 0, at));
    return dir.n ? dir : str_sub(path, 0, 1);
}

// definition: does one glob of a source hold all that another one can? Told from the text alone and only in
// the forms that people write (`docs`, `docs/**`, `docs/**/*.md` and what lies below them); anything else
// counts as more, so a doubt asks a person again.
#include "definition/definition_int.h"

static bool has_wildcard(str s) {
    for (size_t i = 0; i < s.n; i++)
        if (strchr("*?[{\\", s.p[i])) return true;
    return false;
}

static str normal(str s) {
    while (str_starts(s, S("./"))) s = str_sub(s, 2, s.n);
    while (s.n && s.p[s.n - 1] == '/') s.n--;
    return s;
}

static str without_end(str s, str end) {
    return str_ends(s, end) ? str_sub(s, 0, s.n - end.n) : s;
}

// "docs", "docs/**" and "docs/**/*" hold everything below docs, "**" everything. False for other forms.
static bool whole_folder(str s, str *dir) {
    *dir = without_end(without_end(s, S("/*")), S("**"));
    if (dir->n == s.n) return !has_wildcard(s);
    if (!str_ends(without_end(s, S("/*")), S("**"))) return false;
    if (dir->n && dir->p[dir->n - 1] != '/') return false;
    *dir = normal(*dir);
    return !has_wildcard(*dir);
}

// "docs/**/*.md": below docs, every file that fits the last part.
static bool folder_and_last(str s, str *dir, str *last) {
    size_t at = str_rchr(s, '/');
    if (at == SIZE_MAX || !str_ends(str_sub(s, 0, at), S("**"))) return false;
    *last = str_sub(s, at + 1, s.n);
    *dir = str_sub(s, 0, at - 2);
    if (dir->n && dir->p[dir->n - 1] != '/') return false;
    *dir = normal(*dir);
    return !has_wildcard(*dir);
}

// A part that names nothing which a wildcard would not have entered: no dot-name, no folder that must be
// spelt.
static bool is_tame(str part) {
    static const char *const shy[] = {"node_modules", "CVS"};
    size_t depth = 0;
    if (!part.n || strchr(".[{\\", part.p[0])) return false;
    for (size_t i = 0; i < part.n; i++) {
        if (part.p[i] == '\\') return false;
        if (part.p[i] == '{') depth++;
        if (part.p[i] == '}' && depth-- == 0) return false;
    }
    for (size_t i = 0; i < sizeof shy / sizeof *shy; i++)
        if (str_find(part, str_z(shy[i])) != SIZE_MAX) return false;
    return depth == 0; // braces that span a slash are another matter
}

static bool all_tame(str path) {
    str part;
    for (bool more = true; more;) {
        more = str_cut(path, '/', &part, &path);
        if (!is_tame(part)) return false;
    }
    return true;
}

static bool below(str path, str dir, str *rest) {
    *rest = path;
    if (!dir.n) return true;
    if (!str_starts(path, dir) || path.n <= dir.n || path.p[dir.n] != '/') return false;
    *rest = str_sub(path, dir.n + 1, path.n);
    return true;
}

bool reach_path_holds(str have, str want) {
    str dir, last, rest;
    have = normal(have);
    want = normal(want);
    if (str_eq(have, want)) return true;
    if (whole_folder(have, &dir)) {
        str same;
        if (whole_folder(want, &same) && str_eq(dir, same)) return true;
        return below(want, dir, &rest) && all_tame(rest);
    }
    if (!folder_and_last(have, &dir, &last) || !below(want, dir, &rest)) return false;
    size_t at = str_rchr(rest, '/');
    str end = at == SIZE_MAX ? rest : str_sub(rest, at + 1, rest.n);
    return str_eq(end, last) && (at == SIZE_MAX || all_tame(str_sub(rest, 0, at)));
}

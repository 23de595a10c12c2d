// ignore: gitignore(5) by our globs: comments, `!`, a trailing `/`, anchoring by a slash, `**`. What differs
// there is written in our way: braces are letters, `x/**` does not mean x itself, and `*` matches names that
// begin with a dot, so a pattern that begins with `*` gets a second form with the dot.
#include "tools/ignore.h"
#include <deputy/buf.h>

static void add_rule(arena *a, ignore_rules *rules, str base, str pattern, bool negated, bool dir_only) {
    glob_pat *g;
    dep_err err;
    if (rules->n >= IGNORE_RULES_MAX || glob_compile(a, pattern, &g, &err) != DEP_OK) return;
    vec_push(a, rules, ((ignore_rule){.pattern = g, .base = base, .negated = negated, .dir_only = dir_only}));
}

// Braces outside of brackets and escapes become letters.
static str as_glob(arena *a, str line) {
    buf out = buf_new(a, 0);
    bool set = false;
    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];
        if (c == '\\' && i + 1 < line.n) {
            buf_addc(&out, c);
            c = line.p[++i];
        } else if (!set && (c == '{' || c == '}')) {
            buf_addc(&out, '\\');
        } else {
            set = c == '[' || (set && c != ']');
        }
        buf_addc(&out, c);
    }
    if (str_ends(line, S("/**"))) buf_add(&out, S("/*"));
    return buf_str(&out);
}

void ignore_add(arena *a, ignore_rules *rules, str base, str text) {
    str line;
    while (text.n) {
        str_cut(text, '\n', &line, &text);
        if (str_ends(line, S("\r"))) line.n--;
        while (line.n > 1 && line.p[line.n - 1] == ' ' && line.p[line.n - 2] != '\\') line.n--;
        if (!line.n || line.p[0] == '#' || str_eq(line, S(" "))) continue;
        bool negated = line.p[0] == '!';
        if (negated) line = str_sub(line, 1, line.n);
        bool dir_only = str_ends(line, S("/"));
        if (dir_only) line.n--;
        bool anchored = str_chr(line, '/') != SIZE_MAX;
        if (str_starts(line, S("/"))) line = str_sub(line, 1, line.n);
        if (!line.n) continue;
        line = as_glob(a, line);
        const char *deep = anchored ? "" : "**/";
        add_rule(a, rules, base, str_fmt(a, "%s" STR_FMT, deep, STR_ARG(line)), negated, dir_only);
        if (line.p[0] == '*' && !str_starts(line, S("**")))
            add_rule(a, rules, base, str_fmt(a, "%s." STR_FMT, deep, STR_ARG(line)), negated, dir_only);
    }
}

bool ignore_hit(const ignore_rules *rules, str rel, bool is_dir) {
    for (size_t i = rules->n; i-- > 0;) {
        const ignore_rule *r = &rules->p[i];
        if (r->dir_only && !is_dir) continue;
        str below = rel;
        if (r->base.n) {
            if (!str_starts(rel, r->base) || rel.n <= r->base.n || rel.p[r->base.n] != '/') continue;
            below = str_sub(rel, r->base.n + 1, rel.n);
        }
        if (glob_match(r->pattern, below)) return !r->negated;
    }
    return false;
}

// glob: compiles path patterns. Braces are expanded first, up to the limit, into alternatives; each
// alternative is a list of components, each component a list of operations. Knows no files. The pattern's
// bytes are copied into the arena.
//
// Expansion works on two tables made in one pass over the text, so that its cost is the size of what it
// produces and a deeply nested pattern is no worse than a flat one.
#include "base/glob_int.h"
#include <deputy/file.h>
#include <deputy/utf8.h>

typedef struct {
    arena *a;
    dep_err *err;
    str text;
    uint16_t *next;  // at '{' and ',' of a group: where its next ',' or '}' is
    uint16_t *after; // at '{': the index behind its '}'
    VEC(glob_alt) alts;
    char out[GLOB_PATTERN_MAX]; // the alternative being made
} compiler;

// What follows an alternative's text: the rest of the text around its group.
typedef struct tail tail;
struct tail {
    size_t from, to;
    const tail *next;
};

#define BAD(c, ...) err_set((c)->err, DEP_ERR_INVALID, __VA_ARGS__)

// --- Brackets --------------------------------------------------------------------------------------------

static bool is_negation(str s, size_t i) {
    return i < s.n && (s.p[i] == '!' || s.p[i] == '^');
}

// s.p[at] is '[': *end is the index behind its ']'. A ']' in first place stands for itself.
static dep_status bracket_end(compiler *c, str s, size_t at, size_t *end) {
    size_t i = at + 1;
    if (is_negation(s, i)) i++;
    for (size_t first = i; i < s.n; i++) {
        bool escaped = s.p[i] == '\\';
        if (escaped && ++i == s.n) break;
        if (s.p[i] == '/') return BAD(c, "'/' inside brackets can never match");
        if (escaped) continue;
        if (s.p[i] == '[' && i + 1 < s.n && s.p[i + 1] == ':')
            return BAD(c, "classes like [:alpha:] are not known; name the characters or a range");
        if (s.p[i] == ']' && i > first) {
            *end = i + 1;
            return DEP_OK;
        }
    }
    return BAD(c, "'[' without its ']'");
}

// One character inside brackets, escaped or not.
static uint32_t bracket_char(str s, size_t *i) {
    if (s.p[*i] == '\\') ++*i;
    return utf8_next(s, i);
}

// s: from '[' to ']', as bracket_end found it.
static dep_status bracket_op(compiler *c, str s, glob_op *ret) {
    VEC(glob_range) ranges = {0};
    size_t i = 1, last = s.n - 1;
    bool negated = is_negation(s, i);
    if (negated) i++;
    while (i < last) {
        uint32_t from = bracket_char(s, &i), to = from;
        if (i + 1 < last && s.p[i] == '-') {
            i++;
            to = bracket_char(s, &i);
        }
        if (from > to) return BAD(c, "the range in " STR_FMT " is the wrong way round", STR_ARG(s));
        vec_push(c->a, &ranges, (glob_range){from, to});
    }
    *ret = (glob_op){.kind = OP_SET, .negated = negated, .ranges = ranges.p, .n = ranges.n};
    return DEP_OK;
}

// --- One alternative -------------------------------------------------------------------------------------

// The literal text at s.p[*i], escapes removed.
static str literal_run(compiler *c, str s, size_t *i) {
    size_t end = *i;
    while (end < s.n && !strchr("*?[", s.p[end])) end += s.p[end] == '\\' ? 2 : 1;
    char *p = arena_alloc(c->a, end - *i);
    size_t n = 0;
    for (; *i < end; ++*i) {
        if (s.p[*i] == '\\') ++*i;
        p[n++] = s.p[*i];
    }
    return (str){p, n};
}

static dep_status compile_part(compiler *c, str s, glob_part *ret) {
    if (str_eq(s, S("**"))) {
        *ret = (glob_part){.any = true};
        return DEP_OK;
    }
    VEC(glob_op) ops = {0};
    for (size_t i = 0; i < s.n;) {
        glob_op op = {0};
        if (s.p[i] == '*') {
            i++;
            if (ops.n && ops.p[ops.n - 1].kind == OP_STAR) continue;
            op.kind = OP_STAR;
        } else if (s.p[i] == '?') {
            i++;
            op.kind = OP_ANY;
        } else if (s.p[i] == '[') {
            size_t end = 0;
            TRY(bracket_end(c, s, i, &end));
            TRY(bracket_op(c, str_sub(s, i, end), &op));
            i = end;
        } else {
            op = (glob_op){.kind = OP_TEXT, .text = literal_run(c, s, &i)};
        }
        vec_push(c->a, &ops, op);
    }
    bool text = ops.n && ops.p[0].kind == OP_TEXT;
    *ret = (glob_part){.hidden = text && ops.p[0].text.p[0] == '.', .ops = ops.p, .n = ops.n};
    if (ops.n == 1 && text && str_eq(ops.p[0].text, S("..")))
        return BAD(c, "'..' leads out of the directory");
    return DEP_OK;
}

static bool part_is_text(const glob_part *p, str text) {
    return p->n == 1 && p->ops[0].kind == OP_TEXT && str_eq(p->ops[0].text, text);
}

static dep_status compile_alternative(compiler *c, str s) {
    if (s.n == 0)
        return BAD(c, c->text.n ? "an alternative of the pattern is empty" : "the pattern is empty");
    if (s.p[0] == '/') return BAD(c, "the pattern is absolute; it must be relative");
    VEC(glob_part) parts = {0};
    str rest = s, text;
    for (bool more = true; more;) {
        more = str_cut(rest, '/', &text, &rest);
        if (text.n == 0) continue;
        glob_part part;
        TRY(compile_part(c, text, &part));
        if (part_is_text(&part, S("."))) continue;
        if (part.any && parts.n && parts.p[parts.n - 1].any) continue;
        vec_push(c->a, &parts, part);
    }
    vec_push(c->a, &c->alts, (glob_alt){.parts = parts.p, .n = parts.n});
    return DEP_OK;
}

// --- Alternatives ----------------------------------------------------------------------------------------

// Fills the tables and refuses what is not closed.
static dep_status scan_braces(compiler *c) {
    str s = c->text;
    uint16_t open[GLOB_PATTERN_MAX],
        last[GLOB_PATTERN_MAX]; // of each open group: its '{', its newest '{' or ','
    size_t depth = 0;
    for (size_t i = 0; i < s.n; i++) {
        char ch = s.p[i];
        if (ch == '\\') {
            if (++i == s.n) return BAD(c, "the pattern ends with a backslash that escapes nothing");
            if (s.p[i] == '/') return BAD(c, "'/' cannot be escaped");
        } else if (ch == '[') {
            size_t end = 0;
            TRY(bracket_end(c, s, i, &end));
            i = end - 1;
        } else if (ch == '{') {
            open[depth] = last[depth] = (uint16_t)i;
            depth++;
        } else if (ch == ',' && depth) {
            c->next[last[depth - 1]] = (uint16_t)i;
            last[depth - 1] = (uint16_t)i;
        } else if (ch == '}') {
            if (depth == 0) return BAD(c, "'}' without its '{'; a literal one is written \\}");
            depth--;
            c->next[last[depth]] = (uint16_t)i;
            c->after[open[depth]] = (uint16_t)(i + 1);
        }
    }
    return depth ? BAD(c, "'{' without its '}'; a literal one is written \\{") : DEP_OK;
}

// Copies text[from, to) to out at n and what follows it, branching at each group. Depth is bounded by the
// pattern's length. NOLINTNEXTLINE(misc-no-recursion)
static dep_status expand(compiler *c, size_t from, size_t to, const tail *follow, size_t n) {
    for (;;) {
        for (; from < to && c->text.p[from] != '{'; from++) {
            size_t end = from + 1;
            if (c->text.p[from] == '\\') end++;
            if (c->text.p[from] == '[') TRY(bracket_end(c, c->text, from, &end));
            memcpy(c->out + n, c->text.p + from, end - from);
            n += end - from;
            from = end - 1;
        }
        if (from < to) break;
        if (!follow) {
            if (c->alts.n == GLOB_ALTERNATIVES_MAX)
                return err_set(c->err, DEP_ERR_LIMIT, "the pattern has more than %d alternatives",
                               GLOB_ALTERNATIVES_MAX);
            return compile_alternative(c, str_n(c->out, n));
        }
        from = follow->from;
        to = follow->to;
        follow = follow->next;
    }
    tail rest = {c->after[from], to, follow};
    for (size_t at = from; at + 1 != rest.from; at = c->next[at])
        TRY(expand(c, at + 1, c->next[at], &rest, n));
    return DEP_OK;
}

// --- What callers ask about the whole --------------------------------------------------------------------

static str join_parts(arena *a, const glob_alt *alt, size_t n) {
    str s = {0};
    for (size_t i = 0; i < n; i++) s = path_join(a, s, alt->parts[i].ops[0].text);
    return s;
}

// How many leading components are literal in all alternatives and the same; the last one of each names files.
static size_t common_parts(const glob_alt *alts, size_t count) {
    for (size_t n = 0;; n++) {
        for (size_t i = 0; i < count; i++) {
            if (n + 1 >= alts[i].n || !part_is_literal(&alts[i].parts[n]) ||
                !part_is_text(&alts[i].parts[n], alts[0].parts[n].ops[0].text))
                return n;
        }
    }
}

static void describe(arena *a, glob_pat *g) {
    g->prefix = join_parts(a, &g->alts[0], common_parts(g->alts, g->n));
    g->literal = g->n == 1;
    for (size_t i = 0; i < g->alts[0].n; i++)
        g->literal = g->literal && part_is_literal(&g->alts[0].parts[i]);
    if (g->literal) g->path = join_parts(a, &g->alts[0], g->alts[0].n);
}

dep_status glob_compile(arena *a, str pattern, glob_pat **ret, dep_err *err) {
    ARENA_CATCH(a, err);
    if (pattern.n > GLOB_PATTERN_MAX)
        return err_set(err, DEP_ERR_LIMIT, "the pattern is over %d bytes", GLOB_PATTERN_MAX);
    if (str_chr(pattern, 0) != SIZE_MAX) return err_set(err, DEP_ERR_INVALID, "the pattern holds a NUL byte");
    if (!utf8_valid(pattern)) return err_set(err, DEP_ERR_INVALID, "the pattern is not valid UTF-8");
    compiler *c = NEW(a, compiler);
    c->a = a;
    c->err = err;
    c->text = pattern;
    c->next = NEW_N(a, uint16_t, pattern.n + 1);
    c->after = NEW_N(a, uint16_t, pattern.n + 1);
    TRY(scan_braces(c));
    TRY(expand(c, 0, pattern.n, NULL, 0));
    glob_pat *g = NEW(a, glob_pat);
    g->alts = c->alts.p;
    g->n = c->alts.n;
    describe(a, g);
    *ret = g;
    return DEP_OK;
}

str glob_prefix(const glob_pat *g) {
    return g->prefix;
}

bool glob_literal(const glob_pat *g) {
    return g->literal;
}

str glob_path(const glob_pat *g) {
    return g->path;
}

// glob_match: runs compiled patterns over paths. Two levels: components against the pattern's components by
// carrying the set of places the pattern can be at, and one component against its operations by going back to
// the newest star only. Neither ever explores a tree, so the time is at most pattern times path. No memory is
// taken.
#include "base/glob_int.h"
#include <deputy/utf8.h>

// --- One component ---------------------------------------------------------------------------------------

static bool in_set(const glob_op *op, uint32_t cp) {
    bool found = false;
    for (size_t i = 0; i < op->n && !found; i++) found = cp >= op->ranges[i].from && cp <= op->ranges[i].to;
    return found != op->negated;
}

// One operation that is no star, at s.p[*i].
static bool match_op(const glob_op *op, str s, size_t *i) {
    if (op->kind == OP_TEXT) {
        if (!str_starts(str_sub(s, *i, s.n), op->text)) return false;
        *i += op->text.n;
        return true;
    }
    if (*i == s.n) return false;
    uint32_t cp = utf8_next(s, i);
    return op->kind == OP_ANY || in_set(op, cp == UTF8_BAD ? 0xFFFD : cp);
}

// What most patterns end with, a star and perhaps text behind it, needs no tries.
static bool ends_quickly(const glob_part *part, size_t star) {
    return star + 1 == part->n || (star + 2 == part->n && part->ops[star + 1].kind == OP_TEXT);
}

static bool match_part(const glob_part *part, str s) {
    if (s.n && s.p[0] == '.' && !part->hidden) return false;
    size_t i = 0, op = 0, star = SIZE_MAX, star_at = 0;
    while (op < part->n || i < s.n) {
        if (op < part->n && part->ops[op].kind == OP_STAR) {
            if (ends_quickly(part, op))
                return op + 1 == part->n || str_ends(str_sub(s, i, s.n), part->ops[op + 1].text);
            // The text before this star is matched as early as it can be, so no earlier star needs another
            // try.
            star = op++;
            star_at = i;
        } else if (op < part->n && match_op(&part->ops[op], s, &i)) {
            op++;
        } else if (star != SIZE_MAX && star_at < s.n) {
            utf8_next(s, &star_at);
            i = star_at;
            op = star + 1;
        } else {
            return false;
        }
    }
    return true;
}

// --- Components ------------------------------------------------------------------------------------------

// places[k]: the components so far can be matched by the pattern's first k. A `**` may stand for none, so a
// place before one is also a place after it.
static void skip_any(const glob_alt *alt, bool *places) {
    for (size_t k = 0; k < alt->n; k++) {
        if (places[k] && alt->parts[k].any) places[k + 1] = true;
    }
}

// Takes all components of path. False when no place is left.
static bool run(const glob_alt *alt, str path, bool *places) {
    memset(places, 0, (alt->n + 1) * sizeof *places);
    places[0] = true;
    skip_any(alt, places);
    str rest = path, text;
    for (bool more = path.n > 0; more;) {
        more = str_cut(rest, '/', &text, &rest);
        bool alive = false;
        // From the end, so that places[k + 1] can be overwritten before k is looked at.
        for (size_t k = alt->n + 1; k-- > 0;) {
            bool stay = places[k] && k < alt->n && alt->parts[k].any && (text.n == 0 || text.p[0] != '.');
            bool come =
                k > 0 && places[k - 1] && !alt->parts[k - 1].any && match_part(&alt->parts[k - 1], text);
            places[k] = stay || come;
            alive = alive || places[k];
        }
        if (!alive) return false;
        skip_any(alt, places);
    }
    return true;
}

bool glob_match(const glob_pat *g, str path) {
    bool places[GLOB_PARTS_MAX + 1];
    for (size_t i = 0; i < g->n; i++) {
        if (run(&g->alts[i], path, places) && places[g->alts[i].n]) return true;
    }
    return false;
}

bool glob_names(const glob_pat *g, str path) {
    bool places[GLOB_PARTS_MAX + 1];
    for (size_t i = 0; i < g->n; i++) {
        const glob_alt *alt = &g->alts[i];
        const glob_part *last = alt->n ? &alt->parts[alt->n - 1] : NULL;
        if (last && !last->any && !part_is_literal(last)) continue;
        if (run(alt, path, places) && places[alt->n]) return true;
    }
    return false;
}

bool glob_may_descend(const glob_pat *g, str path) {
    bool places[GLOB_PARTS_MAX + 1];
    for (size_t i = 0; i < g->n; i++) {
        const glob_alt *alt = &g->alts[i];
        if (!run(alt, path, places)) continue;
        for (size_t k = 0; k < alt->n; k++) {
            if (places[k]) return true;
        }
    }
    return false;
}

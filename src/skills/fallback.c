// fallback: frontmatter that YAML refuses, most often for a ": " in a description. A known key at the start
// of a line begins a value, and everything up to the next one belongs to it. It must not guess more than
// that: what looks like a key but is none (`user: "…"` in an example) is text. Values are in the caller's
// arena.
#include "skills/skills_int.h"

static str without_cr(str line) {
    return line.n && line.p[line.n - 1] == '\r' ? str_sub(line, 0, line.n - 1) : line;
}

static size_t indent_of(str line) {
    size_t n = 0;
    while (n < line.n && (line.p[n] == ' ' || line.p[n] == '\t')) n++;
    return n;
}

// `key:` at column 1, then a blank or the end. *rest: what follows.
static bool key_line(str line, str *key, str *rest) {
    size_t colon = str_chr(line, ':');
    if (colon == SIZE_MAX || colon == 0) return false;
    if (colon + 1 < line.n && line.p[colon + 1] != ' ' && line.p[colon + 1] != '\t') return false;
    *key = str_sub(line, 0, colon);
    *rest = str_trim(str_sub(line, colon + 1, line.n));
    return skill_known_key(*key);
}

// '…' or "…" around the whole value.
static str unquoted(arena *a, str s) {
    char quote = s.n >= 2 ? s.p[0] : 0;
    if ((quote != '"' && quote != '\'') || s.p[s.n - 1] != quote) return s;
    buf out = buf_new(a, 0);
    s = str_sub(s, 1, s.n - 1);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i], next = i + 1 < s.n ? s.p[i + 1] : 0;
        if (quote == '\'' && c == '\'' && next == '\'') i++;
        if (quote == '"' && c == '\\' && (next == '"' || next == '\\' || next == 'n')) {
            c = next == 'n' ? '\n' : next;
            i++;
        }
        buf_addc(&out, c);
    }
    return buf_str(&out);
}

// A block scalar's lines without their common indentation; folded ones joined by blanks.
static str block(arena *a, const strs *lines, bool folded) {
    size_t indent = SIZE_MAX;
    buf out = buf_new(a, 0);
    for (vec_each(const str, l, lines))
        if (str_trim(*l).n && indent_of(*l) < indent) indent = indent_of(*l);
    for (vec_each(const str, l, lines)) {
        if (out.n) buf_addc(&out, folded && l->n ? ' ' : '\n');
        buf_add(&out, str_sub(*l, indent, l->n));
    }
    return str_trim(buf_str(&out));
}

static str value_of(arena *a, str first, const strs *lines) {
    char c = first.n ? first.p[0] : 0;
    bool marks = (c == '|' || c == '>') && first.n <= 3;
    for (size_t i = 1; marks && i < first.n; i++)
        marks = first.p[i] == '+' || first.p[i] == '-' || (first.p[i] >= '1' && first.p[i] <= '9');
    if (marks) return block(a, lines, c == '>');
    buf out = buf_new(a, 0);
    buf_add(&out, first);
    for (vec_each(const str, l, lines)) {
        buf_addc(&out, '\n');
        buf_add(&out, str_trim(*l));
    }
    return unquoted(a, str_trim(buf_str(&out)));
}

void skill_read_lines(const skill_text *t, size_t from, size_t to, uint32_t line, skill_fields *ret) {
    skill_field now = {0};
    strs lines = {0}; // of its value, after the first
    str first = {0}, rest = str_sub(t->text, from, to);
    for (bool more = true; more; line++) {
        str whole, key, value;
        more = str_cut(rest, '\n', &whole, &rest);
        whole = without_cr(whole);
        if (key_line(whole, &key, &value)) {
            if (now.key.n) {
                now.value = value_of(t->a, first, &lines);
                vec_push(t->a, ret, now);
            }
            now = (skill_field){.key = key, .scalar = true, .line = line, .column = 1};
            first = value;
            lines = (strs){0};
        } else if (now.key.n && !(whole.n && whole.p[0] == '#')) {
            vec_push(t->a, &lines, whole);
        }
    }
    if (now.key.n) {
        now.value = value_of(t->a, first, &lines);
        vec_push(t->a, ret, now);
    }
}

// edit_unset: a key or a list item removed with its line, as cuts in the text.
#include "yaml/edit_int.h"

// What goes with it: a mapping that would be left without keys.
static ynode *whole(ynode *n) {
    while (n->parent && n->parent->kind == YAML_NODE_MAP && n->parent->count == 1) n = n->parent;
    return n;
}

static const ynode *before(const ynode *n) {
    const ynode *c = n->parent->child, *last = NULL;
    for (; c != n; c = c->next) last = c;
    return last;
}

static bool holds_comment(const edit *e, size_t from, size_t to) {
    return from < to && memchr(e->doc->source.p + from, '#', to - from);
}

// Past lines that hold nothing.
static size_t past_blank_lines(const edit *e, size_t at) {
    str s = e->doc->source;
    while (at < s.n) {
        size_t i = at;
        while (i < s.n && yaml_blank(s.p[i])) i++;
        if (i < yaml_eol(e->doc, at)) break;
        size_t next = yaml_next_line(e->doc, at);
        if (next == at) break;
        at = next;
    }
    return at;
}

static void remove_from_block(edit *e, const ynode *n) {
    size_t entry = edit_entry(e, n), after = edit_after(e, n);
    if (edit_begins_line(e, entry)) {
        edit_cut(e, yaml_bol(e->doc, entry), e->elsewhere ? past_blank_lines(e, after) : after, (str){0});
        return;
    }
    // The first one behind `- ` (or `--- `): the next takes its place, but comments between stay where they
    // are.
    size_t next = n->next ? edit_entry(e, n->next) : after;
    if (!n->next || holds_comment(e, after, next)) {
        size_t from = entry, end = edit_tail_end(e, n);
        while (from > 0 && e->doc->source.p[from - 1] == ' ') from--;
        edit_cut(e, from, end < n->end ? end : yaml_eol(e->doc, end), (str){0});
    } else {
        edit_cut(e, entry, next, (str){0});
    }
}

static bool only_blanks(const edit *e, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (!yaml_blank(e->doc->source.p[i])) return false;
    return true;
}

// Behind the entry (and its comma) nothing but a comment until the line ends?
static bool ends_line(const edit *e, size_t at) {
    str s = e->doc->source;
    while (at < s.n && yaml_blank(s.p[at])) at++;
    return at >= s.n || s.p[at] == '#' || s.p[at] == '\n' || s.p[at] == '\r';
}

static void remove_from_flow(edit *e, const ynode *n) {
    str s = e->doc->source;
    size_t entry = edit_entry(e, n), end = n->end, at = yaml_skip(s, end);
    bool comma = at < s.n && s.p[at] == ',' && edit_same_line(e, end, at);
    if (comma) end = at + 1;
    if (edit_begins_line(e, entry) && ends_line(e, end)) {
        edit_cut(e, yaml_bol(e->doc, entry), yaml_next_line(e->doc, end), (str){0});
        return;
    }
    if (comma) {
        while (end < s.n && yaml_blank(s.p[end])) end++;
        if (ends_line(e, end)) end = at + 1;
        edit_cut(e, entry, end, (str){0});
        return;
    }
    const ynode *prev = before(n);
    size_t from = entry;
    if (prev) {
        at = yaml_skip(s, prev->end);
        if (at < entry && s.p[at] == ',' && only_blanks(e, prev->end, at) && only_blanks(e, at + 1, entry))
            from = prev->end;
    }
    edit_cut(e, from, end, (str){0});
}

dep_status edit_unset(edit *e, const ypath *p) {
    ynode *n;
    size_t found;
    TRY(edit_walk(e->a, e->doc->root, p, &n, &found, e->err));
    if (found < p->n)
        return err_set(e->err, DEP_ERR_NOT_FOUND, "there is no `" STR_FMT "`",
                       STR_ARG(ypath_text(e->a, p, found + 1)));
    n = whole(n);
    if (!n->parent)
        return err_set(e->err, DEP_ERR_REFUSED,
                       "it is the document's last key, and an empty document is no document");
    TRY(edit_check_anchors(e->a, e->doc, n, true, true, e->err));
    if (n->parent->kind == YAML_NODE_LIST && n->parent->count == 1) {
        ynode *none = NEW(e->a, ynode);
        *none = (ynode){.kind = YAML_NODE_LIST, .style = YSTYLE_FLOW};
        if (!n->parent->parent) {
            edit_cut(e, n->parent->start, edit_tail_end(e, n->parent), S("[]"));
        } else {
            edit_replace(e, n->parent, none);
        }
    } else if (n->parent->style == YSTYLE_FLOW) {
        remove_from_flow(e, n);
    } else {
        remove_from_block(e, n);
    }
    return DEP_OK;
}

// parse: libyaml's events made into nodes. Knows no key names.
//
// libyaml's memory is not the arena's: parser and event live in the frame of yaml_parse, which releases them
// whether the guarded part below it ends well or is unwound for want of memory. Depth, nodes, aliases and
// their copies are counted before anything is made, so that no text costs more than its size allows.
#include "yaml/yaml_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>
#include <yaml.h>

typedef struct {
    ynode *node, *last;
    ynode *key; // read, its value not yet
} frame;

typedef struct {
    str name;
    ynode *node;
    size_t before, weight; // nodes made before it; of it
    bool complete;
} anchor;

typedef struct {
    size_t from, to;
} range;

typedef struct {
    arena *a;
    ydoc *doc;
    ytext t;
    diags d;
    yaml_parser_t parser;
    yaml_event_t event;
    bool has_event, require_map, stopped;
    frame stack[YAML_DEPTH_MAX];
    size_t depth, nodes, aliases, documents;
    size_t tried;  // corrections, each of which reads the text once more
    size_t judged; // characters before this place have been understood
    VEC(anchor) anchors;
    VEC(range) quoted;
} reader;

static void stop(reader *r) {
    r->stopped = true;
    r->doc->root = NULL;
}

static size_t offset_of(const reader *r, yaml_mark_t mark) {
    return yaml_offset(r->doc, &r->t, mark.index);
}

static void report(reader *r, const ynode *path, size_t from, size_t to, const char *code, str msg,
                   str hint) {
    yaml_diag_span(r->doc, path, from, to, &r->d, yaml_error(code, msg, hint));
}

enum { CORRECTIONS_MAX = 8, NAME_SHOWN_MAX = 80 };

static str quoted_line_at(reader *r, size_t at) {
    uint32_t line, column;
    if (r->tried++ >= CORRECTIONS_MAX) return (str){0};
    yaml_place(r->doc, at, &line, &column);
    return yaml_quoted_line(r->a, r->doc, line, line);
}

// --- Places -----------------------------------------------------------------------------------------------

static bool is_anchor_char(char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
}

// Past `&name` and `!tag` at the start of a node.
static size_t skip_properties(str s, size_t at) {
    while (at < s.n && (s.p[at] == '&' || s.p[at] == '!')) {
        if (s.p[at] == '&') {
            at++;
            while (at < s.n && is_anchor_char(s.p[at])) at++;
        } else {
            while (at < s.n && !memchr(" \t\r\n,[]{}", s.p[at], 9)) at++;
        }
        at = yaml_skip(s, at);
    }
    return at;
}

static size_t spaces_at(str s, size_t at) {
    size_t n = 0;
    while (at + n < s.n && s.p[at + n] == ' ') n++;
    return n;
}

static bool line_ends_at(str s, size_t at) {
    return at >= s.n || s.p[at] == '\n' || s.p[at] == '\r';
}

// The content's indentation as the header or the first visible line tells.
static size_t block_indent(const reader *r, size_t header, size_t body, size_t end) {
    str s = r->doc->source;
    for (size_t i = header + 1; i < body && strchr("+-0123456789", s.p[i]); i++) {
        if (s.p[i] < '1' || s.p[i] > '9') continue;
        uint32_t line, column = 1;
        for (size_t k = r->depth; k-- > 0;) {
            if (r->stack[k].node->style != YSTYLE_BLOCK) continue;
            yaml_place(r->doc, r->stack[k].node->start, &line, &column);
            break;
        }
        return column - 1 + (size_t)(s.p[i] - '0');
    }
    for (size_t at = body; at < end; at = yaml_next_line(r->doc, at)) {
        size_t n = spaces_at(s, at);
        if (!line_ends_at(s, at + n)) return n;
    }
    return SIZE_MAX;
}

// End of a block scalar's last content line. libyaml's end mark lies behind the blank lines that follow.
static size_t block_end(const reader *r, size_t header, size_t end) {
    str s = r->doc->source;
    size_t body = yaml_next_line(r->doc, header), last = body;
    if (body > end) return end; // a lone CR ended its line for libyaml
    for (size_t i = header + 1; i < body && strchr("+-0123456789", s.p[i]); i++)
        if (s.p[i] == '+') return end;
    size_t indent = block_indent(r, header, body, end);
    for (size_t at = body; at < end;) {
        size_t n = spaces_at(s, at), next = yaml_next_line(r->doc, at);
        if (!line_ends_at(s, at + n) || n > indent) last = next;
        if (next == at) break;
        at = next;
    }
    return last;
}

static bool is_empty_plain(const ynode *n) {
    return n->kind == YAML_NODE_SCALAR && n->style == YSTYLE_PLAIN && !n->alias && n->text.n == 0;
}

// libyaml puts an empty value where the next token stands; it belongs behind its `:`.
static void place_empty_value(const reader *r, ynode *n) {
    str s = r->doc->source;
    size_t at = yaml_skip(s, n->key->end);
    if (at < s.n && at <= n->start && s.p[at] == ':') {
        n->start = at + 1;
    } else if (n->key->end > n->key->start) {
        n->start = n->key->end;
    }
    n->end = n->outer = n->start;
}

// --- Making the tree --------------------------------------------------------------------------------------

static bool count_nodes(reader *r, size_t n, size_t at) {
    if (n <= YAML_NODE_MAX - r->nodes) {
        r->nodes += n;
        return true;
    }
    report(
        r, NULL, at, at, "YAML006",
        str_fmt(r->a, "the document has more than %d nodes, copies through aliases included", YAML_NODE_MAX),
        S("split it, or use fewer aliases"));
    stop(r);
    return false;
}

static void append(frame *f, ynode *n) {
    n->parent = f->node;
    if (f->last) {
        f->last->next = n;
    } else {
        f->node->child = n;
    }
    f->last = n;
    f->node->count++;
    f->node->end = n->end;
}

static void check_key(reader *r, const frame *f, const ynode *n) {
    // libyaml takes this `?` for the mark of a key, YAML 1.2 for its first character.
    if (f->node->style == YSTYLE_FLOW && n->outer > 0 && n->outer < n->end &&
        r->doc->source.p[n->outer - 1] == '?')
        report(r, f->node, n->outer - 1, n->end, "YAML001", S("a key that begins with `?` needs quotes here"),
               S("put the key in quotes"));
    if (n->style == YSTYLE_PLAIN && str_eq(n->text, S("<<")))
        report(r, f->node, n->start, n->end, "YAML014", S("merge keys are not accepted"),
               S("write the merged keys out"));
}

static ynode *bad_key(reader *r, const frame *f, const ynode *n, const char *what) {
    report(r, f->node, n->start, n->end, "YAML013", str_fmt(r->a, "a key cannot be %s", what),
           S("write the key as plain text or in quotes"));
    ynode *key = NEW(r->a, ynode);
    *key = (ynode){.style = YSTYLE_DOUBLE, .start = n->start, .end = n->start, .outer = n->outer};
    return key;
}

static void attach(reader *r, ynode *n) {
    if (r->depth == 0) {
        r->doc->root = n;
        return;
    }
    frame *f = &r->stack[r->depth - 1];
    if (f->node->kind == YAML_NODE_LIST) {
        append(f, n);
    } else if (!f->key) {
        if (n->alias) {
            n = bad_key(r, f, n, "an alias");
        } else if (n->kind != YAML_NODE_SCALAR) {
            n = bad_key(r, f, n, n->kind == YAML_NODE_LIST ? "a list" : "a mapping");
        }
        n->parent = f->node;
        f->key = n;
        f->node->end = n->end;
        check_key(r, f, n);
    } else {
        n->key = f->key;
        f->key = NULL;
        if (is_empty_plain(n) && n->outer == n->start) place_empty_value(r, n);
        append(f, n);
    }
}

static void note_anchor(reader *r, ynode *n, const yaml_char_t *name, bool complete) {
    if (!name) return;
    n->anchor = str_dup(r->a, str_z((const char *)name));
    str s = r->doc->source;
    size_t end = n->outer;
    while (end < s.n && s.p[end] != '&') end++;
    size_t after = end + 1 + n->anchor.n;
    if (after < s.n && !memchr(" \t\r\n,]}", s.p[after], 7))
        report(r, n, end, after + 1, "YAML001",
               S("an anchor's name holds letters, digits, `_` and `-` alone"),
               S("put a blank after the name, or the value in quotes"));
    vec_push(
        r->a, &r->anchors,
        (anchor){.name = n->anchor, .node = n, .before = r->nodes - 1, .weight = 1, .complete = complete});
}

static void check_tag(reader *r, const yaml_char_t *tag, size_t at) {
    if (!tag) return;
    str s = r->doc->source;
    size_t end = at;
    while (end < s.n && s.p[end] != '!') end++;
    at = end;
    while (end < s.n && !memchr(" \t\r\n,", s.p[end], 5)) end++;
    str written = str_sub(s, at, end), hint = {0};
    bool real = written.n < 2 || written.p[1] == '!' || written.p[1] == '<';
    if (!real) hint = quoted_line_at(r, at);
    if (!hint.n) hint = S("remove it: values are read as text");
    report(r, NULL, at, end, "YAML003", S("explicit tags are not accepted"), hint);
}

static ynode *new_node(reader *r, ynode_kind kind, ynode_style style, const yaml_char_t *tag, bool props) {
    size_t start = offset_of(r, r->event.start_mark), end = offset_of(r, r->event.end_mark);
    if (!count_nodes(r, 1, start)) return NULL;
    ynode *n = NEW(r->a, ynode);
    *n = (ynode){.kind = kind, .style = style, .start = start, .end = end, .outer = start};
    if (props) n->start = skip_properties(r->doc->source, start);
    check_tag(r, tag, start);
    return n;
}

static ynode_style scalar_style(yaml_scalar_style_t s) {
    switch (s) {
    case YAML_SINGLE_QUOTED_SCALAR_STYLE: return YSTYLE_SINGLE;
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE: return YSTYLE_DOUBLE;
    case YAML_LITERAL_SCALAR_STYLE: return YSTYLE_LITERAL;
    case YAML_FOLDED_SCALAR_STYLE: return YSTYLE_FOLDED;
    default: return YSTYLE_PLAIN;
    }
}

static void on_scalar(reader *r) {
    const typeof(r->event.data.scalar) *e = &r->event.data.scalar;
    ynode *n = new_node(r, YAML_NODE_SCALAR, scalar_style(e->style), e->tag, e->anchor || e->tag);
    if (!n) return;
    n->text = yaml_unswap(r->a, &r->t, str_n((const char *)e->value, e->length));
    if ((n->style == YSTYLE_PLAIN && e->length == 0) || n->start > n->end) n->start = n->end;
    if (n->style == YSTYLE_LITERAL || n->style == YSTYLE_FOLDED) n->end = block_end(r, n->start, n->end);
    if (r->t.odd.n && (n->style == YSTYLE_SINGLE || n->style == YSTYLE_DOUBLE))
        vec_push(r->a, &r->quoted, (range){n->start, n->end});
    note_anchor(r, n, e->anchor, true);
    attach(r, n);
    if (n->text.n && memchr(n->text.p, 0, n->text.n))
        report(r, n, n->start, n->end, "YAML010", S("the text holds the character U+0000"),
               S("remove the escape"));
}

static void on_start(reader *r, ynode_kind kind) {
    bool map = kind == YAML_NODE_MAP, flow;
    const yaml_char_t *name, *tag;
    if (map) {
        flow = r->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE;
        name = r->event.data.mapping_start.anchor;
        tag = r->event.data.mapping_start.tag;
    } else {
        flow = r->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
        name = r->event.data.sequence_start.anchor;
        tag = r->event.data.sequence_start.tag;
    }
    ynode *n = new_node(r, kind, flow ? YSTYLE_FLOW : YSTYLE_BLOCK, tag, name || tag);
    if (!n) return;
    if (r->depth == YAML_DEPTH_MAX) {
        report(r, NULL, n->start, n->start, "YAML005",
               str_fmt(r->a, "lists and mappings stand in each other more than %d deep", YAML_DEPTH_MAX),
               (str){0});
        stop(r);
        return;
    }
    n->end = n->start;
    note_anchor(r, n, name, false);
    attach(r, n);
    r->stack[r->depth++] = (frame){.node = n};
}

// --- Duplicate keys ---------------------------------------------------------------------------------------

static int by_key(const void *x, const void *y) {
    const ynode *a = *(ynode *const *)x, *b = *(ynode *const *)y;
    int c = str_cmp(a->key->text, b->key->text);
    if (c) return c;
    return a->key->start < b->key->start ? -1 : a->key->start > b->key->start;
}

static void report_duplicate(reader *r, const ynode *first, const ynode *again) {
    uint32_t line1, line2, column;
    yaml_place(r->doc, first->key->start, &line1, &column);
    yaml_place(r->doc, again->key->start, &line2, &column);
    str key = utf8_cut(again->key->text, NAME_SHOWN_MAX);
    report(r, again, again->key->start, again->key->end, "YAML002",
           str_fmt(r->a, "key \"" STR_FMT "\" stands on line %u and again on line %u", STR_ARG(key), line1,
                   line2),
           S("keep one of them"));
}

static void check_duplicates(reader *r, const ynode *map) {
    if (map->count < 2) return;
    ynode **all = NEW_N(r->a, ynode *, map->count);
    size_t n = 0;
    for (ynode *c = map->child; c; c = c->next)
        if (c->key->end > c->key->start || c->key->style != YSTYLE_DOUBLE) all[n++] = c; // not one of bad_key
    qsort(all, n, sizeof *all, by_key);
    for (size_t i = 1, first = 0; i < n; i++) {
        if (str_eq(all[i]->key->text, all[first]->key->text)) {
            report_duplicate(r, all[first], all[i]);
        } else {
            first = i;
        }
    }
}

static void on_end(reader *r) {
    ynode *n = r->stack[--r->depth].node;
    // The end mark is true for a bracket alone; a single pair in a flow list has none.
    if (n->style == YSTYLE_FLOW && n->start < r->doc->source.n && strchr("[{", r->doc->source.p[n->start]))
        n->end = offset_of(r, r->event.end_mark);
    if (r->depth && r->stack[r->depth - 1].node == n->parent) n->parent->end = n->end;
    for (size_t i = r->anchors.n; n->anchor.n && i-- > 0;) {
        anchor *x = &r->anchors.p[i];
        if (x->node != n) continue;
        x->complete = true;
        x->weight = r->nodes - x->before;
        break;
    }
    if (n->kind == YAML_NODE_MAP) check_duplicates(r, n);
}

// --- Aliases ----------------------------------------------------------------------------------------------

static bool fits_depth(const ynode *n, size_t depth) {
    if (n->kind == YAML_NODE_SCALAR) return true;
    if (depth >= YAML_DEPTH_MAX) return false;
    for (const ynode *c = n->child; c; c = c->next)
        if (!fits_depth(c, depth + 1)) return false;
    return true;
}

static ynode *copy(arena *a, const ynode *from, ynode *parent) {
    ynode *n = NEW(a, ynode), **tail = &n->child;
    *n = *from;
    n->anchor = (str){0};
    n->parent = parent;
    n->child = n->next = NULL;
    for (const ynode *c = from->child; c; c = c->next) {
        *tail = copy(a, c, n);
        if (c->key) (*tail)->key = copy(a, c->key, n);
        tail = &(*tail)->next;
    }
    return n;
}

static const anchor *find_anchor(const reader *r, str name) {
    for (size_t i = r->anchors.n; i-- > 0;)
        if (str_eq(r->anchors.p[i].name, name)) return &r->anchors.p[i];
    return NULL;
}

static const anchor *alias_target(reader *r, str name, size_t start, size_t end) {
    if (++r->aliases > YAML_ALIAS_MAX) {
        if (r->aliases == YAML_ALIAS_MAX + 1)
            report(r, NULL, start, end, "YAML004",
                   str_fmt(r->a, "more than %d aliases in one document", YAML_ALIAS_MAX),
                   S("write the values out"));
        return NULL;
    }
    const anchor *x = find_anchor(r, name);
    if (x && x->complete) return x;
    name = utf8_cut(name, NAME_SHOWN_MAX);
    str hint = x ? S("write the value out") : quoted_line_at(r, start);
    if (!hint.n) hint = S("put the value in quotes if it is text");
    report(r, NULL, start, end, "YAML004",
           x ? str_fmt(r->a, "alias *" STR_FMT " stands inside the value it refers to", STR_ARG(name))
             : str_fmt(r->a, "alias *" STR_FMT " has no anchor before it", STR_ARG(name)),
           hint);
    return NULL;
}

static void on_alias(reader *r) {
    size_t start = offset_of(r, r->event.start_mark), end = offset_of(r, r->event.end_mark);
    str name = str_z((const char *)r->event.data.alias.anchor);
    const anchor *x = alias_target(r, name, start, end);
    if (!count_nodes(r, x ? x->weight : 1, start)) return;
    if (x && !fits_depth(x->node, r->depth)) {
        report(r, NULL, start, end, "YAML005",
               str_fmt(r->a, "with this alias the nesting is more than %d deep", YAML_DEPTH_MAX), (str){0});
        stop(r);
        return;
    }
    ynode *n = x ? copy(r->a, x->node, NULL) : NEW(r->a, ynode);
    n->alias = true;
    n->start = n->outer = start;
    n->end = end;
    n->key = NULL;
    attach(r, n);
}

// --- The document -----------------------------------------------------------------------------------------

static void on_document(reader *r) {
    if (++r->documents == 1) return;
    size_t at = offset_of(r, r->event.start_mark);
    report(r, NULL, at, yaml_eol(r->doc, at), "YAML007", S("a second document begins here"),
           S("keep one document; text after `---` or `...` is not read"));
    r->stopped = true;
}

static void on_event(reader *r) {
    switch (r->event.type) {
    case YAML_DOCUMENT_START_EVENT: on_document(r); break;
    case YAML_ALIAS_EVENT: on_alias(r); break;
    case YAML_SCALAR_EVENT: on_scalar(r); break;
    case YAML_SEQUENCE_START_EVENT: on_start(r, YAML_NODE_LIST); break;
    case YAML_MAPPING_START_EVENT: on_start(r, YAML_NODE_MAP); break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT: on_end(r); break;
    default: break;
    }
}

static void on_fault(reader *r) {
    yfault f = {.problem = r->parser.problem, .context = r->parser.context, .from = SIZE_MAX};
    f.at = offset_of(r, r->parser.problem_mark);
    if (r->parser.context) f.from = offset_of(r, r->parser.context_mark);
    // What libyaml had read of the fault's line is not known to be quoted or not.
    r->judged = yaml_bol(r->doc, f.at);
    if (f.context && strstr(f.context, "quoted scalar") && f.from < r->judged) r->judged = f.from;
    yaml_syntax_fault(r->a, r->doc, &f, &r->d);
    stop(r);
}

// Characters that are harmless inside quotes only.
static void judge_odd(reader *r) {
    size_t q = 0;
    for (size_t i = 0; i < r->t.odd.n; i++) {
        const odd_char *c = &r->t.odd.p[i];
        while (q < r->quoted.n && r->quoted.p[q].to <= c->at) q++;
        if (c->at > r->judged || (c->at == r->judged && c->cp != CP_BOM)) return;
        if (q < r->quoted.n && r->quoted.p[q].from <= c->at) continue;
        if (c->cp == CP_BOM) {
            report(r, NULL, c->at, c->at + 3, "YAML016",
                   r->doc->bom ? S("a second byte order mark") : S("a byte order mark inside the text"),
                   S("remove the character U+FEFF"));
            continue;
        }
        const char *name = c->cp == CP_NEL  ? "next line"
                           : c->cp == CP_LS ? "line separator"
                                            : "paragraph separator";
        report(
            r, NULL, c->at, c->at + (c->cp == CP_NEL ? 2 : 3), "YAML009",
            str_fmt(r->a, "%s character U+%04X outside quotes: some programs end the line here", name, c->cp),
            S("replace it by a line end, or put the value in quotes"));
    }
}

static void judge_root(reader *r) {
    ynode *root = r->doc->root;
    if (!root || is_empty_plain(root)) {
        yaml_diag(r->doc, NULL, &r->d, yaml_error("YAML012", S("the document is empty"), (str){0}));
        r->doc->root = NULL;
    } else if (r->require_map && root->kind != YAML_NODE_MAP) {
        report(r, root, root->start, yaml_eol(r->doc, root->start), "YAML008",
               str_fmt(r->a, "the document is %s, not a mapping of keys to values",
                       root->kind == YAML_NODE_LIST ? "a list" : "a single value"),
               S("write `key: value` lines"));
    }
}

// All that allocates from the arena. What it leaves in r->parser and r->event is the caller's to release.
static dep_status read_guarded(reader *r, size_t max_size, dep_err *err) {
    ARENA_CATCH(r->a, err);
    r->d = diags_new(r->a);
    if (!yaml_decode(r->a, r->doc, &r->t, max_size, &r->d)) return DEP_OK;
    r->judged = SIZE_MAX;
    yaml_parser_set_encoding(&r->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)r->t.text.p, r->t.text.n);
    for (bool end = false; !end && !r->stopped;) {
        if (!yaml_parser_parse(&r->parser, &r->event)) {
            if (r->parser.error == YAML_MEMORY_ERROR) return err_set(err, DEP_ERR_NOMEM, "out of memory");
            on_fault(r);
            break;
        }
        r->has_event = true;
        on_event(r);
        end = r->event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&r->event);
        r->has_event = false;
    }
    if (r->stopped && r->documents < 2) r->doc->root = NULL;
    judge_odd(r);
    if (!r->stopped || r->documents > 1) judge_root(r);
    diags_sort(&r->d);
    return DEP_OK;
}

static dep_status hand_over(const diags *from, diags *to, dep_err *err) {
    ARENA_CATCH(to->a, err);
    if (from->items.n) diags_merge(to, from);
    return DEP_OK;
}

static dep_status new_doc(arena *a, str file, str bytes, ydoc **ret, dep_err *err) {
    ARENA_CATCH(a, err);
    *ret = NEW(a, ydoc);
    **ret = (ydoc){.file = str_dup(a, file), .source = bytes.p ? bytes : S("")};
    return DEP_OK;
}

dep_status yaml_parse(arena *a, str file, str bytes, size_t max_size, bool require_map, ydoc **ret, diags *d,
                      dep_err *err) {
    reader r = {.a = a, .require_map = require_map};
    TRY(new_doc(a, file, bytes, &r.doc, err));
    if (!yaml_parser_initialize(&r.parser)) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    dep_status status = read_guarded(&r, max_size, err);
    if (r.has_event) yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    TRY(status);
    TRY(hand_over(&r.d, d, err));
    *ret = r.doc;
    return DEP_OK;
}

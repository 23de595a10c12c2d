// definition: writing. A new file's text, and `fmt`, the only thing that rewrites one.
#include <deputy/definition.h>
#include <stdlib.h>

static void add_list(buf *out, const char *key, strs items) {
    if (!items.n) return;
    buf_addf(out, "%s: [", key);
    for (size_t i = 0; i < items.n; i++) {
        if (i) buf_add(out, S(", "));
        buf_add(out, yaml_scalar_text(out->a, items.p[i], true));
    }
    buf_add(out, S("]\n"));
}

str definition_text(arena *a, const definition_new_opts *o) {
    buf out = buf_new(a, 0);
    buf_addf(&out, "# yaml-language-server: $schema=" STR_FMT "\n",
             STR_ARG(o->schema_path.n ? o->schema_path : S("../schemas/definition.schema.json")));
    buf_add(&out, S("# One subagent. What this file does not declare is not reachable. `deputy check` and "
                    "`deputy show` tell what is in effect.\n"));
    buf_addf(&out, "name: " STR_FMT "\n", STR_ARG(yaml_scalar_text(a, o->name, false)));
    buf_add(&out, S("# When a main agent should hand a task to it, and when not.\n"));
    buf_addf(&out, "description: " STR_FMT "\n",
             STR_ARG(yaml_scalar_text(a,
                                      o->description.n
                                          ? o->description
                                          : str_fmt(a, "Answers questions about " STR_FMT, STR_ARG(o->name)),
                                      false)));
    buf_add(&out, S("# read: open files. glob: find them by name. grep: find lines in them.\n"));
    add_list(&out, "tools", o->tools);
    if (o->skills.n) {
        add_list(&out, "skills", o->skills);
    } else {
        buf_add(&out, S("# skills: [tone-guide]\n"));
    }
    buf_add(&out, S("# mcp:\n#   servers: [crm]\n"));
    if (o->knowledge.n) {
        buf_add(&out, S("# Searched line by line by kb_search; hits are path:line.\nknowledge:\n  - name: "
                        "Documents\n    path:\n"));
        for (vec_each(const str, g, &o->knowledge))
            buf_addf(&out, "      - " STR_FMT "\n", STR_ARG(yaml_scalar_text(a, *g, false)));
    } else {
        buf_add(&out, S("# knowledge:\n#   - {name: Manual, path: \"./docs/**/*.md\"}\n"));
    }
    if (o->memory.n) {
        buf_addf(&out, "memory: " STR_FMT "\n", STR_ARG(yaml_scalar_text(a, o->memory, false)));
    } else {
        buf_add(&out, S("# memory: private\n"));
    }
    if (o->model.n) buf_addf(&out, "model: " STR_FMT "\n", STR_ARG(yaml_scalar_text(a, o->model, false)));
    buf_add(&out, S("maxTurns: 60\n"));
    buf_add(&out, S("prompt: "));
    yaml_block_text(&out,
                    o->prompt.n
                        ? o->prompt
                        : S("Answer from the files of this workspace.\n"
                            "Search first, open what you found, and quote path:line for each statement.\n"
                            "When the files do not answer the question, say so; never guess.\n"),
                    2, S("\n"));
    return buf_str(&out);
}

// --- fmt -----------------------------------------------------------------------------------------

typedef struct {
    size_t start,
        end; // bytes of the piece: comments before the key, the key, its value, up to the next piece
    str key;
    int rank;
    size_t place;
} piece;

static int by_rank(const void *x, const void *y) {
    const piece *p = x, *q = y;
    if (p->rank != q->rank) return p->rank < q->rank ? -1 : 1;
    return p->place < q->place ? -1 : p->place > q->place;
}

static int rank_of(str key) {
    const char *const *order = definition_key_order();
    int i = 0, last = 0;
    for (; order[i]; i++) {
        if (str_eq(str_z(order[i]), key)) return i * 2;
        last = i;
    }
    return last * 2 - 1; // unknown keys stand before the prompt, which is last
}

// The first line of the comments that stand right above a key, in its column, with no blank line between;
// what is indented farther belongs to the value before. floor: where that value ends.
static size_t piece_start(const ydoc *doc, const ynode *value, size_t floor) {
    uint32_t line, column;
    yaml_place(doc, value->key->start, &line, &column);
    while (line > 1 && doc->lines[line - 2] >= floor) {
        str above = yaml_line(doc, line - 1);
        size_t indent = 0;
        while (indent < above.n && above.p[indent] == ' ') indent++;
        if (indent == above.n || above.p[indent] != '#' || indent + 1 != column) break;
        if (str_find(above, S("yaml-language-server")) != SIZE_MAX) break;
        line--;
    }
    size_t start = doc->lines[line - 1];
    return start < floor ? floor : start;
}

// Tool names differ from their canonical spelling in case alone, so each is overwritten where it stands.
static str canonical_tools(arena *a, const ydoc *doc) {
    key_items items = {0};
    keytab_names(a, doc, yaml_get(doc->root, S("tools")), &items);
    char *text = str_cz(a, doc->source);
    for (vec_each(const key_item, it, &items)) {
        const tool_spec *t = toolspec_find(it->text);
        size_t at = it->at;
        if (!t || !at) continue;
        if (text[at] == '"' || text[at] == '\'') at++;
        if (str_eq(str_sub(doc->source, at, at + it->text.n), it->text))
            memcpy(text + at, t->name, it->text.n);
    }
    return str_n(text, doc->source.n);
}

dep_status definition_format(arena *a, const ydoc *doc, str *ret, dep_err *err) {
    ynode *root = doc->root;
    if (!root) return err_set(err, DEP_ERR_INVALID, "the file has errors; mend them first (deputy check)");
    if (root->style == YSTYLE_FLOW)
        return err_set(err, DEP_ERR_REFUSED,
                       "the whole file is one flow mapping { }; write it as block YAML first");
    VEC(piece) pieces = {0};
    size_t floor = doc->bom ? 3 : 0; // nothing moves in front of the byte order mark
    for (const ynode *v = root->child; v; v = v->next) {
        size_t start = piece_start(doc, v, floor);
        floor = v->end;
        if (pieces.n) pieces.p[pieces.n - 1].end = start;
        vec_push(a, &pieces,
                 ((piece){.start = start,
                          .end = doc->source.n,
                          .key = v->key->text,
                          .rank = rank_of(v->key->text),
                          .place = pieces.n}));
    }
    if (!pieces.n) return err_set(err, DEP_ERR_INVALID, "the file declares nothing");
    const char *newline = str_find(doc->source, S("\r\n")) != SIZE_MAX ? "\r\n" : "\n";
    size_t head = pieces.p[0].start;
    qsort(pieces.p, pieces.n, sizeof(piece), by_rank);
    buf out = buf_new(a, 0);
    buf_add(&out, str_sub(doc->source, 0, head));
    for (vec_each(const piece, p, &pieces)) {
        str text = str_sub(doc->source, p->start, p->end);
        buf_add(&out, text);
        if (!str_ends(text, S("\n"))) buf_add(&out, str_z(newline));
    }
    str text = buf_str(&out);
    diags d = diags_new(a);
    ydoc *again;
    TRY(yaml_parse(a, doc->file, text, DEF_FILE_MAX, true, &again, &d, err));
    if (d.errors || !again->root || !yaml_equal(root, again->root))
        return err_set(
            err, DEP_ERR_REFUSED,
            "reordering the keys would change what the file says (an anchor used before its place?)");
    *ret = canonical_tools(a, again);
    return DEP_OK;
}

// Private to the edit files: one edit of one document, made of cuts in its text.
//
// edit.c        value and path, steps, the proof that nothing else changed
// edit_plan.c   what is asked, as steps that set or remove one node
// edit_set.c    a node replaced, a key or an item added, as cuts
// edit_unset.c  a node removed, as cuts
// edit_emit.c   nodes as text
// edit_tree.c   the tree that the result must have
// edit_value.c  the value as nodes
#pragma once
#include "yaml/yaml_int.h"

typedef struct {
    size_t from, to; // bytes of the source that go
    str text;        // what takes their place
} cut;
typedef VEC(cut) cuts;

// Ways to write the same value, tried in this order until the proof holds.
typedef enum {
    VARIANT_NORMAL,
    VARIANT_NO_BLOCKS, // no block scalars: a comment or blank line behind the place would become their
                       // content
    VARIANT_ELSEWHERE, // a new key at the end of its mapping; blank lines behind a removed one go too
    VARIANT_BOTH,
    VARIANT_N
} edit_variant;

typedef struct {
    arena *a;
    const ydoc *doc;
    str eol;          // line end of the file
    unsigned step;    // indentation of a nested mapping
    bool dash_at_key; // lists stand in their key's column
    bool no_blocks, elsewhere;
    const char *const *order; // of new top-level keys; may be NULL
    cuts cuts;
    dep_err *err;
} edit;

edit edit_new(arena *a, const ydoc *doc, edit_variant v, const char *const *order, dep_err *err);
void edit_cut(edit *e, size_t from, size_t to, str text);
str edit_apply(const edit *e);

// One node set or removed.
typedef struct {
    bool unset;
    ypath path;
    ynode *value; // set
} edit_step;
typedef VEC(edit_step) edit_steps;

// The deepest node of the path that is there, and how many parts led to it. REFUSED through an alias or a
// doubled key.
[[nodiscard]] dep_status edit_walk(arena *a, ynode *root, const ypath *p, ynode **ret, size_t *found,
                                   dep_err *err);
// value below the parts [from, n) of a path that are not there yet.
[[nodiscard]] dep_status edit_wrap(arena *a, const ypath *p, size_t from, ynode *value, ynode **ret,
                                   dep_err *err);

[[nodiscard]] dep_status edit_set(edit *e, const ypath *p, ynode *value);
[[nodiscard]] dep_status edit_unset(edit *e, const ypath *p);
// A node that is there, replaced (edit_set.c); removed (edit_unset.c).
void edit_replace(edit *e, const ynode *v, const ynode *value);

// --- Geometry (edit.c) ------------------------------------------------------------------------------------

unsigned edit_column(const edit *e, size_t at); // from 0
bool edit_same_line(const edit *e, size_t a, size_t b);
bool edit_is_block(const ynode *n);        // a collection in block style, not an alias
bool edit_is_block_scalar(const ynode *n); // `|` or `>`, not an alias
bool edit_is_empty(const ynode *n);        // no text at all
bool edit_in_flow(const ynode *n);         // stands inside [ ] or { }
// Where a child of a collection begins: its `-`, its key, its `? `.
size_t edit_entry(const edit *e, const ynode *child);
// End of a node without the line end that belongs to a block scalar at its tail.
size_t edit_tail_end(const edit *e, const ynode *n);
// Start of the line after the node's last.
size_t edit_after(const edit *e, const ynode *n);
// Only blanks before it on its line?
bool edit_begins_line(const edit *e, size_t at);

// --- Emitting (edit_emit.c) -------------------------------------------------------------------------------

// Gives collections the style (block or flow) that their counterparts in old have.
void edit_inherit(ynode *value, const ynode *old);
// Must it be written over several lines? col: where it would begin.
bool edit_as_block(const edit *e, const ynode *value, unsigned col);
// A string that is to be a block scalar. old: style of what stood there.
bool edit_as_block_scalar(const edit *e, const ynode *value, ynode_style old);
str edit_inline(const edit *e, const ynode *value, ynode_style old, bool flow); // a scalar on one line
str edit_inline_flow(const edit *e, const ynode *value);                        // a collection on one line
// All of these end without a line end. Block collections: the first line without indentation, the others from
// col on.
void edit_emit_block(const edit *e, buf *b, const ynode *value, unsigned col);
// What follows `key:` whose column is col, its leading blank or line end included.
void edit_emit_value(const edit *e, buf *b, const ynode *value, unsigned col);
// What follows `- `; dash: column of the `-`, col: where the item begins.
void edit_emit_item(const edit *e, buf *b, const ynode *value, unsigned dash, unsigned col);

// --- Trees (edit_tree.c) ----------------------------------------------------------------------------------

typedef struct {
    ynode n;
    bool fresh; // set by the edit: its value counts, not how it is written
} xnode;

// A copy whose nodes are xnodes.
ynode *edit_clone(arena *a, const ynode *n, bool fresh);
// Does the step on a copy; *root may become another node.
[[nodiscard]] dep_status edit_tree_step(arena *a, ynode **root, const edit_step *s, dep_err *err);
// Same value, and both plain or both not where plain text has a type.
bool edit_same_value(const ynode *x, const ynode *y);
// Is `got` what `want` (of xnodes) says? Else *why is a reason.
bool edit_same_tree(const ynode *want, const ydoc *want_doc, const ynode *got, const ydoc *got_doc);
// INVALID when an alias elsewhere refers into n (or its key, when it goes too), REFUSED when one repeats what
// n stands in.
[[nodiscard]] dep_status edit_check_anchors(arena *a, const ydoc *doc, const ynode *n, bool goes,
                                            bool key_goes, dep_err *err);

// --- The value (edit_value.c) -----------------------------------------------------------------------------

// A YAML flow node or JSON. Errors: INVALID with the reason.
[[nodiscard]] dep_status edit_value(arena *a, str value, ynode **ret, dep_err *err);

// --- Plans (edit_plan.c) ----------------------------------------------------------------------------------

// What is asked, as steps. `least` changes as little text as it can and may be empty (use `want` then).
typedef struct {
    edit_steps want, least;
} edit_plan;
[[nodiscard]] dep_status edit_plan_make(arena *a, const ydoc *doc, yaml_edit_kind kind, const ypath *p,
                                        ynode *value, edit_plan *ret, dep_err *err);

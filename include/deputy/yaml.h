// yaml: libyaml events made into nodes with exact byte positions, and edits that change one value in the text
// and nothing else. Scalars stay text (YAML 1.2 core spelling is the reader's business): `no`, `on`, `1:30`,
// `1.10` keep their characters.
//
// What is accepted: one document in UTF-8 with at most one BOM; LF or CRLF, a missing last line end;
// comments; flow and block style; anchors and at most YAML_ALIAS_MAX aliases, as values; `---`, `...` and a
// `%YAML 1.1` or `%YAML 1.2` line. What is refused, each with its code: duplicate keys, explicit tags
// (`!!str` and `%TAG` too), merge keys, keys that are lists, maps or aliases, a second document, U+0000 in
// any spelling, and what stands in the list of codes below.
#pragma once
#include <deputy/arena.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/str.h>

typedef enum { YAML_NODE_SCALAR, YAML_NODE_LIST, YAML_NODE_MAP } ynode_kind;
typedef enum {
    YSTYLE_PLAIN,
    YSTYLE_SINGLE,
    YSTYLE_DOUBLE,
    YSTYLE_LITERAL,
    YSTYLE_FOLDED,
    YSTYLE_BLOCK,
    YSTYLE_FLOW
} ynode_style;

typedef struct ynode ynode;
struct ynode {
    ynode_kind kind;
    ynode_style style; // scalars: PLAIN…FOLDED; collections: BLOCK or FLOW
    str text;          // scalar: its value
    // Byte offsets into ydoc.source. Scalars: with their quotes; block scalars from the `|` to the end of
    // their last content line (with its line end; with `+` the blank lines that follow are content).
    // Collections: from the first child (BLOCK: the `-` or the first key) or bracket to the end of the last
    // child or bracket. An empty value stands right after its `:` or `-`.
    size_t start, end;
    size_t outer; // where its anchor or tag begins; start when it has none
    ynode *key;   // in a map: the key's node, always a scalar
    ynode *child; // first value
    ynode *next;  // next sibling value
    ynode *parent;
    size_t count;
    str anchor; // "&name" stood before it: name
    bool alias; // stands for an alias: start/end are the alias' place, the rest is a copy of its target
};

typedef struct {
    str file;   // name for diagnostics
    str source; // the whole text as read, a BOM included; the caller's bytes, which must live as long
    bool bom;
    ynode *root;            // NULL when the text has errors that leave no tree
    size_t *lines, n_lines; // byte offset of each line's start (lines end at LF alone)
} ydoc;

enum {
    YAML_SIZE_MAX = 256 * 1024, // bytes of a document
    YAML_DEPTH_MAX = 32,        // nesting of collections
    YAML_ALIAS_MAX = 16,        // aliases in a document
    YAML_NODE_MAX = 20000,      // nodes, keys and copies through aliases included
};

// Parses one document. Faults go to `d` in the order of the text, all that can be found in one go (libyaml
// stops at the first syntax error; what stands before it is reported with it). All are errors. Codes:
//   YAML001 syntax, an unknown directive      YAML002 duplicate key (both lines)
//   YAML003 explicit tag                      YAML004 too many aliases / undefined alias / self reference
//   YAML005 depth                             YAML006 size or node count
//   YAML007 second document                   YAML008 root is not a mapping
//   YAML009 NEL, LS or PS outside quoted scalars
//   YAML010 NUL or control character, an escaped NUL, a CR without LF
//   YAML011 invalid UTF-8 (line and column of the first byte; UTF-16 is named)
//   YAML012 empty document                    YAML013 key is not a scalar, or an alias
//   YAML014 merge key `<<`                    YAML015 tab indentation
//   YAML016 more than one BOM
// For a plain value that begins with * ! [ { & % @ ` or holds ": ", the hint is the corrected, quoted line.
// max_size 0: YAML_SIZE_MAX. require_map: YAML008.
// Returns OK with *ret also when there are diagnostics: ret->root is NULL after a syntax error, YAML005, 006,
// 011 and 012; the others leave a tree for display and repair, which nobody may run. NOMEM otherwise.
[[nodiscard]] dep_status yaml_parse(arena *a, str file, str bytes, size_t max_size, bool require_map,
                                    ydoc **ret, diags *d, dep_err *err);

// Line and column (code points, both from 1) of a byte offset; a BOM counts no column.
void yaml_place(const ydoc *doc, size_t offset, uint32_t *line, uint32_t *column);
str yaml_line(const ydoc *doc,
              uint32_t line); // without its line end and BOM; empty when there is no such line
// Fills file, line, column, end, path and source of `base` from the node and adds it. n may be NULL (whole
// file). Lines over YAML_LINE_SHOWN_MAX bytes are not quoted.
void yaml_diag(const ydoc *doc, const ynode *n, diags *d, diag base);
// As yaml_diag, pointing at the key of a map's value.
void yaml_diag_key(const ydoc *doc, const ynode *value, diags *d, diag base);
// As yaml_diag for a part of a scalar: bytes [from, to) of the source.
void yaml_diag_span(const ydoc *doc, const ynode *n, size_t from, size_t to, diags *d, diag base);
enum { YAML_LINE_SHOWN_MAX = 8192 };
str yaml_pointer(arena *a, const ynode *n); // JSON Pointer of a node; empty for the root

ynode *yaml_get(const ynode *map, str key);  // NULL when absent or not a map; the first of several
ynode *yaml_at(const ynode *list, size_t i); // NULL when out of range or not a list
bool yaml_is_null(const ynode *n);           // plain ~, null, Null, NULL or empty
// Decimal whole number with optional '-' and no needless zeros, plain or quoted; nothing else (no `+5`,
// `007`, `0x3C`, `1e2`, `1_000`).
bool yaml_int(const ynode *n, int64_t *ret);
bool yaml_bool(const ynode *n, bool *ret);       // plain true / false (True TRUE too)
bool yaml_equal(const ynode *x, const ynode *y); // kind, text, plain-null alike; map keys in any order
void yaml_to_json(buf *out, const ynode *n); // scalars as strings, but plain null/true/false/decimal integers
                                             // as such

// Finds a node by a dotted path with indexes: `mcp.servers.0.name`, `mcp.servers[0].name`; a key with dots
// can be quoted: `"a.b".c`. Errors: INVALID syntax, LIMIT over YAML_DEPTH_MAX parts; NOT_FOUND says which
// part is missing.
[[nodiscard]] dep_status yaml_find(const ydoc *doc, str path, ynode **ret, dep_err *err);

typedef enum {
    // value (a YAML flow node, or JSON) replaces the node at path; missing maps of the path are made; a list
    // index one
    // past the end appends. Lists and maps that stay lists and maps are changed item by item where that keeps
    // more of the text.
    YAML_EDIT_SET,
    // The key (or list item) goes, with its line; an emptied parent map goes too, an emptied list stays as
    // [].
    YAML_EDIT_UNSET,
    // value is appended to the list at path (made when absent). A string list "a, b" stays a string when the
    // value is one word; another scalar becomes a list of two.
    YAML_EDIT_ADD,
    // Every list item equal to value goes; of a string list "a, b" every such word.
    YAML_EDIT_REMOVE,
} yaml_edit_kind;

// Changes one value in the text. Comments, order, quoting, line ends, BOM, indentation and unknown keys
// elsewhere stay byte for byte; comments inside a value that is replaced as a whole go with it. The result is
// parsed again: all other nodes equal, the wanted value equal, no new errors, or nothing is returned.
// Multi-line strings become literal block scalars where the place allows; the style of a replaced value is
// kept where it can be. new_key_order: NULL-terminated key names (NULL: none); a new top-level key is put
// after the nearest present one that stands before it there (else at the end). A document that is only empty
// (YAML012) can be SET and ADDed to; another one without a tree is INVALID. Errors: INVALID (value does not
// parse, path syntax, an anchor that is referred to elsewhere would go, an operation that does not fit the
// value there), NOT_FOUND (unset / remove / an index past the end), REFUSED (cannot be done without touching
// something else; says why), EXISTS (add of an equal item), LIMIT, NOMEM. *ret = new text in the arena.
[[nodiscard]] dep_status yaml_edit(arena *a, const ydoc *doc, yaml_edit_kind kind, str path, str value,
                                   const char *const *new_key_order, str *ret, dep_err *err);

// A scalar as YAML text for a given place: plain when that reads back equal (so `no` and `60` stay plain, a
// text that reads as null or as a merge key is quoted), else '…', or "…" when it needs escapes. One line
// always. flow: inside [ ] or { }. Good for keys too.
str yaml_scalar_text(arena *a, str value, bool flow);
// `|` with chomping indicator, then the lines with the given indentation (1 or more), for a key whose column
// is smaller than indent; or a quoted scalar when a block cannot hold the text (first line begins with a
// blank, no visible character, CR, controls, …). Either way it ends with line_end.
void yaml_block_text(buf *out, str value, unsigned indent, str line_end);

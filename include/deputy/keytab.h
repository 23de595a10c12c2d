// keytab: one table of keys drives the check, did-you-mean, the JSON Schema and the reference page. Used by
// definition, config and SKILL.md; it knows YAML nodes and tables, not their meaning.
#pragma once
#include <deputy/diag.h>
#include <deputy/yaml.h>

typedef enum {
    KEY_STRING, // one scalar; min/max: code points
    KEY_TEXT,   // as KEY_STRING, usually several lines
    KEY_INT,    // whole number, plain or quoted; min/max: value
    KEY_NUMBER, // decimal digits with at most one point inside and KEY_DECIMALS digits behind it, plain or
                // quoted; above min, up to max
    KEY_BOOL,   // true / false
    KEY_ENUM,   // one of `values`, exact spelling
    KEY_NAMES,  // list of scalars, or one string split at commas or blanks outside parentheses; max: entries
    KEY_NAMES_OR_ALL,  // as KEY_NAMES, or the exact scalar `all`
    KEY_STRINGS,       // list of scalars, or one scalar which is not split; max: entries
    KEY_MAP,           // mapping with the keys of `sub`
    KEY_MAPS,          // list of mappings with the keys of `sub`; max: entries
    KEY_NAMES_OR_MAPS, // list (or string as KEY_NAMES) whose items are scalars or mappings with the keys of
                       // `sub`; max: entries
    KEY_NAMED_MAPS,    // mapping from free names to mappings with the keys of `sub`; max: entries
    KEY_STRING_MAP,    // mapping from free names to scalars; max: entries
    KEY_ANY,           // kept, never looked at
} key_type;

enum key_flags : unsigned {
    KEY_REQUIRED = 1u << 0,
    KEY_STRICT = 1u << 1, // an unknown key inside is an error, not a warning
    KEY_RESTRICTS =
        1u << 2, // narrows what an agent may reach: an unknown key that is nearly this name is an error
    KEY_SYSTEM = 1u << 3,    // config: only the system file may hold it
    KEY_LOWER = 1u << 4,     // config: a workspace file may only lower it
    KEY_NOT_YET = 1u << 5,   // reserved: answered with "not yet"
    KEY_UNLIMITED = 1u << 6, // KEY_INT: the word `unlimited` too
    KEY_FROM_MIN = 1u << 7,  // KEY_NUMBER: min itself too
};

enum { KEY_DECIMALS = 6 }; // what a KEY_NUMBER may have behind its point

typedef struct key_row key_row;
struct key_row {
    const char *name; // "x-*" matches a prefix
    key_type type;
    unsigned flags;
    int64_t min, max;          // 0, 0: no bound; max < min: no upper bound
    const char *const *values; // KEY_ENUM; NULL-terminated
    const char *dflt;          // default as YAML text, for schema and reference; NULL when there is none
    const key_row *sub;        // ends with a row whose name is NULL
    const char *help;          // one or two sentences, for schema, reference and editors
};

// An old or foreign spelling and what to write instead. Matched without regard to ASCII case. One of severity
// SEV_ERROR stands for a restriction: a near miss of it is an error too.
typedef struct {
    const char *path; // dotted, without list indexes: "tools.mcp" is `mcp` inside `tools`, also where `tools`
                      // may not be a mapping; a key that is written with a dot matches too
    const char *hint; // "write `prompt`"
    diag_severity severity;
} key_moved;

typedef struct {
    const char *title;     // "Deputy subagent definition"
    const char *schema_id; // file name of the schema: "definition.schema.json"
    const char *what;      // "definition": used in messages
    const key_row *rows;
    const key_moved *moved; // ends with path NULL; may be NULL
} key_table;

// Checks a document's root against the table (nothing when there is no mapping); codes:
//   KEY001 unknown key (warning; nearest known key as hint)
//   KEY002 wrong type; also a key without a value, which is never taken for an absent one
//   KEY003 out of range; an empty entry     KEY004 not one of the values; `All` or `[all]` for `all`
//   KEY005 required key missing or null     KEY006 renamed or foreign key (an error inside a KEY_STRICT row)
//   KEY007 too many entries
//   KEY008 unknown key where each one counts (error): inside a KEY_STRICT row at any depth, a near miss of a
//          KEY_RESTRICTS row, or the exact name of a row that restricts in another place
//   KEY009 reserved, not yet (error)        KEY010 unbalanced parentheses in a list string
// strict: every warning of the table is an error.
void keytab_check(const key_table *t, const ydoc *doc, diags *d, bool strict);

// The entries of a KEY_NAMES / KEY_STRINGS value with the node each comes from (for a split string: the
// scalar's node, with offset).
typedef struct {
    str text;
    const ynode *node; // the item, or the whole scalar
    size_t at;         // byte offset of the entry in the source; 0 when it cannot be told (escapes)
} key_item;
typedef VEC(key_item) key_items;
// Splits as the table says: `Read, Bash(git add:*, git commit:*), Grep` → 3. Empty entries of a string fall
// away; items of a list are taken whole, and those that are no scalars fall away. False for unbalanced
// parentheses (*ret then holds what could be split).
bool keytab_names(arena *a, const ydoc *doc, const ynode *value, key_items *ret);
void keytab_strings(arena *a, const ynode *value, key_items *ret);
// A KEY_NUMBER's text in millionths, exactly; INT64_MAX when 64 bits cannot hold it. False when it is none.
bool keytab_micro(str text, int64_t *ret);
// Finds a row by dotted path without indexes ("mcp.servers.name"), or NULL. The free names of KEY_NAMED_MAPS
// are left out, as indexes are.
const key_row *keytab_find(const key_table *t, str path);
// The name of the nearest row at this level within edit distance 2 (3 for names of 8 characters and more) and
// less than half of the name, ASCII case ignored; or NULL.
const char *keytab_nearest(const key_row *rows, str key);
// The nearest of n names by the same measure, or empty.
str nearest_name(str name, const str *names, size_t n);

// JSON Schema 2020-12 of the table, pretty printed with two blanks, stable. Text is any scalar but null, as
// the parser reads it. Old and foreign spellings are in it with their hint (`not` for errors, `deprecated`
// for warnings), and editors are asked not to suggest them.
void keytab_schema(buf *out, const key_table *t);
// Markdown reference: one table per level: key, form, default, where (config), meaning.
void keytab_reference(buf *out, const key_table *t);

// keytab: one table of keys drives the check, did-you-mean, the JSON Schema and the reference page. Used by definition, config
// and SKILL.md; it knows YAML nodes and tables, not their meaning.
#pragma once
#include <deputy/diag.h>
#include <deputy/yaml.h>

typedef enum {
    KEY_STRING,   // one scalar; min/max: code points
    KEY_TEXT,     // as KEY_STRING, usually several lines
    KEY_INT,      // whole number, plain or quoted; min/max: value
    KEY_BOOL,     // true / false
    KEY_ENUM,     // one of `values`, exact spelling
    KEY_NAMES,    // list of scalars, or one string split at commas or blanks outside parentheses; max: entries
    KEY_NAMES_OR_ALL, // as KEY_NAMES, or the exact scalar `all`
    KEY_STRINGS,  // list of scalars, or one scalar which is not split; max: entries
    KEY_MAP,      // mapping with the keys of `sub`
    KEY_MAPS,     // list of mappings with the keys of `sub`; max: entries
    KEY_NAMES_OR_MAPS, // list (or string as KEY_NAMES) whose items are scalars or mappings with the keys of `sub`; max: entries
    KEY_NAMED_MAPS,    // mapping from free names to mappings with the keys of `sub`; max: entries
    KEY_STRING_MAP,    // mapping from free names to scalars; max: entries
    KEY_ANY,      // kept, never looked at
} key_type;

enum key_flags : unsigned {
    KEY_REQUIRED = 1u << 0,
    KEY_STRICT = 1u << 1,    // an unknown key inside is an error, not a warning
    KEY_RESTRICTS = 1u << 2, // narrows what an agent may reach: an unknown key that is nearly this name is an error
    KEY_SYSTEM = 1u << 3,    // config: only the system file may hold it
    KEY_LOWER = 1u << 4,     // config: a workspace file may only lower it
    KEY_NOT_YET = 1u << 5,   // reserved: answered with "not yet"
};

typedef struct key_row key_row;
struct key_row {
    const char *name; // "x-*" matches a prefix
    key_type type;
    unsigned flags;
    int64_t min, max;          // 0, 0: no bound
    const char *const *values; // KEY_ENUM; NULL-terminated
    const char *dflt;          // default as YAML text, for schema and reference; NULL when there is none
    const key_row *sub;        // ends with a row whose name is NULL
    const char *help;          // one or two sentences, for schema, reference and editors
};

// An old or foreign spelling and what to write instead.
typedef struct {
    const char *path;  // dotted: "tools.mcp"; a last part matched at that place
    const char *hint;  // "write `prompt`"
    diag_severity severity;
} key_moved;

typedef struct {
    const char *title;      // "Deputy subagent definition"
    const char *schema_id;  // file name of the schema: "definition.schema.json"
    const char *what;       // "definition": used in messages
    const key_row *rows;
    const key_moved *moved; // ends with path NULL; may be NULL
} key_table;

// Checks a document's root against the table; codes:
//   KEY001 unknown key (warning; nearest known key as hint)  KEY002 wrong type  KEY003 out of range  KEY004 not one of the values
//   KEY005 required key missing  KEY006 renamed or foreign key  KEY007 too many entries  KEY008 unknown key where each one counts (error)
//   KEY009 reserved, not yet  KEY010 unbalanced parentheses in a list string
// strict: every warning of the table is an error.
void keytab_check(const key_table *t, const ydoc *doc, diags *d, bool strict);

// The entries of a KEY_NAMES / KEY_STRINGS value with the node each comes from (for a split string: the scalar's node, with offset).
typedef struct {
    str text;
    const ynode *node; // the item, or the whole scalar
    size_t at;         // byte offset of the entry in the source; 0 when it cannot be told (escapes)
} key_item;
typedef VEC(key_item) key_items;
// Splits as the table says: `Read, Bash(git add:*, git commit:*), Grep` → 3. False for unbalanced parentheses.
bool keytab_names(arena *a, const ydoc *doc, const ynode *value, key_items *ret);
void keytab_strings(arena *a, const ynode *value, key_items *ret);
// Finds a row by dotted path without indexes ("mcp.servers.name"), or NULL.
const key_row *keytab_find(const key_table *t, str path);
// The name of the nearest row at this level within edit distance 2 (3 for long names), or NULL.
const char *keytab_nearest(const key_row *rows, str key);
// The nearest of n names, or empty.
str nearest_name(str name, const str *names, size_t n);

// JSON Schema 2020-12 of the table, pretty printed with two blanks, stable.
void keytab_schema(buf *out, const key_table *t);
// Markdown reference: one table per level: key, form, default, where (config), meaning.
void keytab_reference(buf *out, const key_table *t);

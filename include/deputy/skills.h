// skills: SKILL.md folders (Agent Skills), found in layers, read leniently, every loss named. A found skill's folder stays open, so that its
// files can be read later whatever happens to the path.
#pragma once
#include <deputy/arena.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/keytab.h>
#include <deputy/str.h>
#include <deputy/trust.h>

enum {
    SKILL_FILE_MAX = 256 * 1024,     // SKILL.md
    SKILL_RESOURCE_MAX = 1024 * 1024,
    SKILL_DIRS_MAX = 2000,           // folders looked at per root
    SKILL_DEPTH_MAX = 4,
    SKILL_LIST_MAX = 200,            // files listed with a body
    SKILL_NAME_MAX = 64,
    SKILL_DESCRIPTION_MAX = 1024,    // longer ones are shown cut, with a warning
};

typedef enum { SKILL_WORKSPACE, SKILL_WORKSPACE_ECOSYSTEM, SKILL_SYSTEM, SKILL_USER_ECOSYSTEM, SKILL_PLUGIN } skill_layer;

typedef struct {
    str name, description;
    str location;      // as shown: path of SKILL.md relative to the workspace, or "~/…"
    skill_layer layer;
    str body;          // text after the frontmatter, exact
    str sha256;        // of SKILL.md
    int dir;           // open folder, closed with the arena
    str shadowed_by;   // location of the winner of the same name, or empty
    str withheld;      // "not trusted" / "changed since it was trusted", or empty
    bool hidden;       // disable-model-invocation: true
    str grants_nothing; // names of keys that are shown and grant nothing: "allowed-tools, hooks"
} skill;
typedef VEC(skill) skill_list;

typedef struct {
    int dir;           // root directory to scan, e.g. W/.deputy/skills; stays the caller's
    str label;         // prefix of locations
    skill_layer layer;
} skill_root;

// Reads every skill of the roots in order. Names compare by identity (folded); first wins, each collision is a diagnostic. Workspace layers need trust
// (trust NULL: all trusted). Codes SKL001… A broken one never hides the others. Also reports invisible text (rule B24).
[[nodiscard]] dep_status skills_find(arena *a, const skill_root *roots, size_t n, trust_list *trust, skill_list *ret, diags *d, dep_err *err);
// One SKILL.md text → name, description, body, … fallback_name: the folder's. Lenient: a value with ": " is read as plain text with a warning;
// only no frontmatter, no description or no name at all make it unusable (false).
bool skill_parse(arena *a, str file, str text, str fallback_name, skill *ret, diags *d);
// The winner of that exact name (then of that identity), or NULL.
const skill *skills_get(const skill_list *l, str name);
// Files below the folder, relative, sorted, without SKILL.md and dot-files; at most SKILL_LIST_MAX, *more = how many were left out.
[[nodiscard]] dep_status skill_files(arena *a, const skill *s, strs *ret, size_t *more, dep_err *err);
// A file below the skill's own folder: links that stay inside only.
[[nodiscard]] dep_status skill_read(arena *a, const skill *s, str file, str *ret, dep_err *err);
// The keys of the frontmatter, for schema and reference.
const key_table *skill_keys(void);

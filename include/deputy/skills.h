// skills: SKILL.md folders (Agent Skills), found in layers, read leniently, every loss named. A found skill's
// folder stays open, so that its files can be read later whatever happens to the path. What a SKILL.md says
// grants nothing.
//
// Diagnostics. An error means that this skill is not used; the others are.
//   SKL001 error    no frontmatter at the top (says where there is one, or that the line ends or the encoding
//   hide it) SKL002 error    frontmatter that is never closed SKL003 warning  frontmatter that is not YAML:
//   read line by line, known keys ending a value SKL004 error    no description SKL005 warning  no usable
//   name: the folder's is used SKL006 error    no name at all SKL007 warning  a name against the rules (1-64
//   lower-case letters, digits and single '-') SKL008 warning  name and folder differ SKL009 warning
//   description over SKILL_DESCRIPTION_MAX characters: cut SKL010 warning  a key twice: the first counts
//   SKL011 note     keys that are shown and grant nothing
//   SKL012 warning  the file is not spelled SKILL.md
//   SKL013 warning  one name in two places: the first wins; both are named
//   SKL014 warning  a link that is not followed: leads out, to nothing, in a circle, or to what was read
//   already SKL015 warning  a limit: folders, depth, bytes, entries, folders held open SKL016 warning
//   invisible text (rule B24) SKL017 warning  not quite UTF-8: invalid bytes, or a second byte order mark
//   SKL018 error    a file or folder that cannot be used: too large, not readable, not a file, belongs to
//   memory SKL019 warning  no text after the frontmatter SKL020 warning  a value of the wrong kind SKL021
//   warning  a key that hides the skill from the model is not exactly that: read as if it were
#pragma once
#include <deputy/arena.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/keytab.h>
#include <deputy/str.h>
#include <deputy/trust.h>
#include <sys/stat.h>

enum {
    SKILL_FILE_MAX = 256 * 1024,        // SKILL.md
    SKILL_RESOURCE_MAX = 1024 * 1024,   // of skill_read
    SKILL_BYTES_MAX = 64 * 1024 * 1024, // all SKILL.md of one skills_find
    SKILL_DIRS_MAX = 2000,              // folders looked at per root
    SKILL_DEPTH_MAX = 4,                // a skill's folder below its root
    SKILL_ENTRIES_MAX = 10000,          // names in one folder
    SKILL_OPEN_MAX = 512,               // folders held open by one skills_find; skills beyond it have dir -1
    SKILL_LIST_MAX = 200,               // files listed with a body
    SKILL_LIST_DEPTH = 8,               // folders below the skill's that are listed
    SKILL_NAME_MAX = 64,
    SKILL_DESCRIPTION_MAX = 1024, // longer ones are cut with "…"
};

typedef enum {
    SKILL_WORKSPACE,
    SKILL_WORKSPACE_ECOSYSTEM,
    SKILL_SYSTEM,
    SKILL_USER_ECOSYSTEM,
    SKILL_PLUGIN
} skill_layer;

// Says why an opened file or folder must not be used ("belongs to memory", rule B2), or NULL.
typedef const char *skill_refuse(void *ctx, const struct stat *st);

typedef struct {
    str name, description;
    str location; // as shown: path of SKILL.md relative to the workspace, or "~/…"
    skill_layer layer;
    str body;   // text after the frontmatter, exact
    str sha256; // of SKILL.md
    int dir; // open folder, closed with the arena; -1 when the skill cannot be used, or over SKILL_OPEN_MAX
    str shadowed_by;      // location of the winner of the same name, or empty
    str withheld;         // "not trusted" / "changed since it was trusted", or empty
    bool hidden;          // disable-model-invocation: true
    str grants_nothing;   // names of keys that are shown and grant nothing: "allowed-tools, hooks"
    skill_refuse *refuse; // of its root
    void *ctx;
} skill;
typedef VEC(skill) skill_list;

typedef struct {
    int dir;   // root directory to scan, e.g. W/.deputy/skills; stays the caller's
    str label; // prefix of locations
    skill_layer layer;
    // Links of folders and of SKILL.md may lead anywhere below `within`, where dir is at the path `below` (W
    // and
    // ".deputy/skills"). below empty: only below dir. A skill's own files never leave its folder.
    int within;
    str below;
    skill_refuse *refuse; // may be NULL
    void *ctx;
} skill_root;

// Reads every skill of the roots in order, in each root by folder path bytes. Folders of skills are not
// searched for more of them; .git, .hg, .svn and node_modules are not entered. Names compare by identity
// (folded); first wins, each collision is a diagnostic. Workspace layers need trust (trust NULL: all
// trusted): one that was never trusted is withheld and shadows nothing; one that was trusted once and has
// changed is withheld and keeps its name. A broken one never hides the others. Also reports invisible text
// (rule B24). The list is in that order, shadowed and withheld ones included.
[[nodiscard]] dep_status skills_find(arena *a, const skill_root *roots, size_t n, trust_list *trust,
                                     skill_list *ret, diags *d, dep_err *err);
// One SKILL.md text → name, description, body, sha256, hidden, grants_nothing (the rest of *ret is left as it
// is). fallback_name: the folder's, or empty. text must outlive *ret. Lenient: a value with ": " is read as
// plain text with a warning; only no frontmatter, no description or no name at all make it unusable (false,
// and *ret.name is set when it could be read).
bool skill_parse(arena *a, str file, str text, str fallback_name, skill *ret, diags *d);
// The winner of that exact name (then of that identity). Where there is none, one that is not trusted; look
// at withheld. NULL: no such skill.
const skill *skills_get(const skill_list *l, str name);
// Files below the folder, relative, sorted, without SKILL.md and dot-names; links as far as they stay inside.
// At most SKILL_LIST_MAX, *more = how many were left out. Errors: REFUSED when dir is -1; IO; LIMIT.
[[nodiscard]] dep_status skill_files(arena *a, const skill *s, strs *ret, size_t *more, dep_err *err);
// The bytes of a file below the skill's own folder: links that stay inside only, no dot-names. Errors:
// INVALID path; NOT_FOUND; REFUSED for a link that leads out (naming its target), what is not a file, what
// belongs to memory; LIMIT over SKILL_RESOURCE_MAX.
[[nodiscard]] dep_status skill_read(arena *a, const skill *s, str file, str *ret, dep_err *err);
// The keys of the frontmatter, for schema and reference.
const key_table *skill_keys(void);

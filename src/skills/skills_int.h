// skills_int: what the files of this room share.
#pragma once
#include <deputy/skills.h>

// One SKILL.md while it is read.
typedef struct {
    arena *a;
    str file; // for diagnostics
    str text; // without byte order marks, valid UTF-8
    diags *d;
} skill_text;

// One key of the frontmatter, whichever way it was read.
typedef struct {
    str key, value; // value: of a scalar
    bool scalar;    // false: a list or a mapping
    uint32_t line, column;
} skill_field;
typedef VEC(skill_field) skill_fields;

// A fault at a place; line 0: the whole file.
void skill_diag(const skill_text *t, diag_severity severity, const char *code, uint32_t line, uint32_t column,
                str msg, str hint);
// A name as it may stand in a message.
str skill_shown(arena *a, str s);

// keys.c
bool skill_known_key(str key);
bool skill_key_grants(str key);

// fallback.c: the frontmatter line by line. from: offset of its first line, number `line`; to: of the closing
// fence.
void skill_read_lines(const skill_text *t, size_t from, size_t to, uint32_t line, skill_fields *ret);

// links.c: "references/x.md -> /etc/hostname" for the first link on the way, or empty. dir: where path
// begins.
str skill_link_target(arena *a, int dir, str path);

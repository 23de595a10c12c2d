// ignore: .gitignore rules as the walk meets them.
#pragma once
#include <deputy/arena.h>
#include <deputy/glob.h>
#include <deputy/str.h>

typedef struct {
    const glob_pat *pattern;
    str base; // directory of the file, "" for the workspace
    bool negated, dir_only;
} ignore_rule;
typedef VEC(ignore_rule) ignore_rules;

enum { IGNORE_FILE_MAX = 256 * 1024, IGNORE_RULES_MAX = 5000 };

// Appends the rules of one .gitignore text in directory base. What cannot be read as a pattern is passed
// over, as git does.
void ignore_add(arena *a, ignore_rules *rules, str base, str text);
// The last rule that matches decides.
bool ignore_hit(const ignore_rules *rules, str rel, bool is_dir);

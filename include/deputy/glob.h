// glob: path patterns. `*` and `?` do not match '/', `**` as a whole component matches any number of components, `[a-z]`
// `[!a]` match one code point, `{a,b}` alternatives (nesting allowed). Case-sensitive, over UTF-8 code points. A leading dot of
// a component is matched only by a literal dot (or by a component of the pattern that begins with one).
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>

enum { GLOB_ALTERNATIVES_MAX = 256, GLOB_PATTERN_MAX = 1024 };

typedef struct glob_pat glob_pat;

// Compiles a relative pattern. Errors: INVALID for absolute patterns, "..", unclosed brackets or braces, NUL; LIMIT.
// Backslash escapes the next character.
[[nodiscard]] dep_status glob_compile(arena *a, str pattern, glob_pat **ret, dep_err *err);
// Matches a whole relative path. Time is bounded by pattern × path (no exponential cases).
bool glob_match(const glob_pat *g, str path);
// True when the directory `path` may hold matches (prune walks with it). "" is the root.
bool glob_may_descend(const glob_pat *g, str path);
// The longest literal directory prefix common to all alternatives: "docs/en" for "docs/en/**/*.md"; "" when there is none.
str glob_prefix(const glob_pat *g);
// True when there is no wildcard at all.
bool glob_literal(const glob_pat *g);

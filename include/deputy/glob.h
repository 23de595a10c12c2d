// glob: path patterns. `*` and `?` do not match '/', `**` as a whole component matches any number of
// components (none too), `[a-z]` `[!a]` `[^a]` match one code point, `{a,b}` alternatives (nesting allowed;
// an empty one too: `a{,.b}`). Case-sensitive, over UTF-8 code points; an invalid byte of a path counts as
// one U+FFFD. A leading dot of a component is matched only by a literal dot at the start of the pattern's
// component, so `*`,
// `?`, `[.]` and `**` never enter hidden names.
#pragma once
#include <deputy/arena.h>
#include <deputy/err.h>
#include <deputy/str.h>

enum { GLOB_ALTERNATIVES_MAX = 256, GLOB_PATTERN_MAX = 1024 };

typedef struct glob_pat glob_pat;

// Compiles a relative pattern. Backslash escapes the next character. "." components and doubled or trailing
// slashes are dropped: `./docs/` is `docs`, and `.` alone matches only "". A directory stands for itself, not
// for its files. Errors: INVALID for empty and absolute patterns, "..", unclosed or unopened braces, unclosed
// brackets, `[z-a]`, `[[:x:]]`, '/' escaped or in brackets, NUL, invalid UTF-8; LIMIT for the length and the
// number of alternatives.
[[nodiscard]] dep_status glob_compile(arena *a, str pattern, glob_pat **ret, dep_err *err);
// Matches a whole relative path in normal form. Time is bounded by pattern × path for each alternative (no
// exponential cases).
bool glob_match(const glob_pat *g, str path);
// The same by those alternatives alone that end in a name or in `**`: what names a directory may stand for
// all below it, what only selects (`docs/*`) does not.
bool glob_names(const glob_pat *g, str path);
// True when there can be a match below the directory `path` (prune walks with it). "" is the root. Exact,
// apart from brackets that match nothing.
bool glob_may_descend(const glob_pat *g, str path);
// The longest literal directory prefix common to all alternatives: "docs/en" for "docs/en/**/*.md"; "" when
// there is none.
str glob_prefix(const glob_pat *g);
// True when the pattern is one path: no wildcard and one alternative. glob_path is that path, escapes removed
// ("" otherwise).
bool glob_literal(const glob_pat *g);
str glob_path(const glob_pat *g);

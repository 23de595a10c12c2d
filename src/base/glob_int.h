// glob_int: a compiled pattern, shared by glob.c (compiles) and glob_match.c (matches).
#pragma once
#include <deputy/glob.h>

typedef struct {
    uint32_t from, to; // both included
} glob_range;

typedef enum { OP_TEXT, OP_ANY, OP_STAR, OP_SET } glob_op_kind;

typedef struct {
    glob_op_kind kind;
    bool negated;             // OP_SET
    str text;                 // OP_TEXT: bytes, escapes removed
    const glob_range *ranges; // OP_SET
    size_t n;
} glob_op;

typedef struct {
    bool any;    // `**`: any number of components; no ops
    bool hidden; // begins with a literal dot
    const glob_op *ops;
    size_t n;
} glob_part;

// One alternative after expansion.
typedef struct {
    const glob_part *parts;
    size_t n;
} glob_alt;

enum { GLOB_PARTS_MAX = GLOB_PATTERN_MAX / 2 + 1 };

static inline bool part_is_literal(const glob_part *p) {
    return p->n == 1 && p->ops[0].kind == OP_TEXT;
}

struct glob_pat {
    const glob_alt *alts;
    size_t n;
    str prefix, path;
    bool literal;
};

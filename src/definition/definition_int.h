// Shared by the files of this room: what the passes over one definition carry around.
#pragma once
#include <deputy/definition.h>
#include <deputy/file.h>

typedef struct {
    arena *a;
    ydoc *doc;
    definition *def;
    diags *d;
    bool strict;
} parse_ctx;

// Adds a diagnostic at a node (NULL: the file); warnings become errors when strict.
void report(const parse_ctx *c, const ynode *n, diag_severity sev, const char *code, str msg, str hint);
def_place place_of(const parse_ctx *c, const ynode *n);
def_place item_place(const parse_ctx *c, const key_item *it);
// Rules between keys.
void check_rules(parse_ctx *c);
// Rule B24: invisible text, anywhere in the file.
void check_invisible(parse_ctx *c);

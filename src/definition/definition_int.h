// Shared by the files of this room: what the passes over one definition carry around, and the codes of its
// diagnostics (those of the table are in keytab.h, of the text in yaml.h; codes are never reused):
//   DEF001 no name: the file's is used      DEF002 a name that breaks the rules
//   DEF003 empty description                DEF004 unknown tool
//   DEF005 a foreign tool, or one that is never granted by name
//   DEF006 a tool with parentheses          DEF008 `tools: all` without resident
//   DEF009 resident names what is not there DEF010 nothing is granted
//   DEF011 knowledge without read           DEF012 a glob that cannot be used
//   DEF013 files that are no text           DEF014 two sources of one name
//   DEF015 use_skill without skills         DEF016 a server twice
//   DEF017 a pattern where a path stands    (DEF018 was of limits.cost)
//   DEF019 the model's form                 DEF020 one text where a list stands
//   DEF021 invisible text                   DEF022 a prefix outside the workspace
//   DEF024 private data and a way out       DEF025 read reaches the workspace
//   DEF027 blank prompt                     DEF028 unknown encoding
//   DEF029 permissions that take a declared tool away
//   DEF030 and above are of host.
#pragma once
#include <deputy/definition.h>
#include <deputy/file.h>

typedef struct {
    arena *a;
    ydoc *doc;
    definition *def;
    diags *d;
    bool strict;
    bool nomem; // something below was out of memory where no error could be passed on
} parse_ctx;

// Adds a diagnostic at a node (NULL: the file); warnings become errors when strict.
void report(const parse_ctx *c, const ynode *n, diag_severity sev, const char *code, str msg, str hint);
// An error at one entry of a list, also where the list is one string.
void report_item(const parse_ctx *c, const key_item *it, const char *code, str msg, str hint);
def_place place_of(const parse_ctx *c, const ynode *n);
def_place item_place(const parse_ctx *c, const key_item *it);
// Rules between keys.
void check_rules(parse_ctx *c);
// Rule B24: invisible text, anywhere in the file.
void check_invisible(parse_ctx *c);
// Does the glob `have` of a source hold every file that `want` can reach? False in doubt.
bool reach_path_holds(str have, str want);

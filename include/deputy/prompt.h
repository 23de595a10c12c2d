// prompt: a grant as the system text. Fixed order: framing, catalogue (skills, knowledge, MCP, memory,
// deferred tools), body. Parts are joined by one blank line; an absent dimension leaves nothing. Pure: equal
// grants give equal bytes. The body is exact; all other foreign text goes through foreign_add (rule B22).
#pragma once
#include <deputy/arena.h>
#include <deputy/capability.h>
#include <deputy/err.h>
#include <deputy/str.h>

enum {
    PROMPT_PARTS_MAX = 8,
    PROMPT_FIELD_CHARS = 400,         // names, paths, globs on one line
    PROMPT_DESCRIPTION_CHARS = 1024,  // of a skill
    PROMPT_INSTRUCTIONS_CHARS = 2000, // of a server
    PROMPT_SIZE_MAX = 2 << 20,
};

typedef struct {
    const char *name; // framing, skills, knowledge, mcp, memory, deferred, body
    size_t offset, bytes, tokens;
} prompt_part;

typedef struct {
    str text;
    prompt_part parts[PROMPT_PARTS_MAX];
    size_t n_parts;
} prompt;

// Errors: NOMEM; LIMIT above PROMPT_SIZE_MAX.
[[nodiscard]] dep_status assemble(arena *a, const grant *g, prompt *ret, dep_err *err);
// A rough count for people: about four ASCII bytes a token, about one token and a half per other character.
size_t estimate_tokens(str text);
// {"tools":…} as offered first: resident tools and loaders, in table order, then those in `loaded` (names, in
// the order of loading).
typedef struct {
    str name, description, schema;
} offered_tool;
typedef VEC(offered_tool) offered_tools;
void prompt_tools(arena *a, const grant *g, const strs *loaded, offered_tools *ret);

// keys: the frontmatter of SKILL.md as a table, for the schema, the reference and the reader. Reading is
// lenient and does not check against it; it only needs to know which words at the start of a line are keys.
#include "skills/skills_int.h"

#define SHOWN "Kept and shown; grants and changes nothing in Deputy."

static const key_row rows[] = {
    {.name = "name",
     .type = KEY_STRING,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = SKILL_NAME_MAX,
     .help = "The name by which definitions declare the skill: lower-case letters, digits and single "
             "hyphens; the same "
             "as the folder's."},
    {.name = "description",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = SKILL_DESCRIPTION_MAX,
     .help = "What the skill does and when to use it: the one line that an agent sees before it loads the "
             "skill."},
    {.name = "license",
     .type = KEY_STRING,
     .help = "The licence of the skill, or the name of a file that holds it."},
    {.name = "compatibility", .type = KEY_TEXT, .max = 500, .help = "What the skill needs to run. " SHOWN},
    {.name = "metadata", .type = KEY_ANY, .help = "Anything else, as a mapping. Kept, never interpreted."},
    {.name = "disable-model-invocation",
     .type = KEY_BOOL,
     .dflt = "false",
     .help = "true hides the skill from the catalogue, so that no agent loads it on its own."},
    {.name = "allowed-tools", .type = KEY_ANY, .help = SHOWN},
    {.name = "disallowed-tools", .type = KEY_ANY, .help = SHOWN},
    {.name = "hooks", .type = KEY_ANY, .help = SHOWN},
    {.name = "model", .type = KEY_ANY, .help = SHOWN},
    {.name = "agent", .type = KEY_ANY, .help = SHOWN},
    {.name = "context", .type = KEY_ANY, .help = SHOWN},
    {.name = "effort", .type = KEY_ANY, .help = SHOWN},
    {.name = "background", .type = KEY_ANY, .help = SHOWN},
    {.name = "shell", .type = KEY_ANY, .help = SHOWN},
    {.name = "user-invocable", .type = KEY_ANY, .help = SHOWN},
    {.name = "argument-hint", .type = KEY_ANY, .help = SHOWN},
    {.name = "arguments", .type = KEY_ANY, .help = SHOWN},
    {.name = "paths", .type = KEY_ANY, .help = SHOWN},
    {.name = "when_to_use", .type = KEY_ANY, .help = SHOWN},
    {.name = "version", .type = KEY_ANY, .help = "Kept, never interpreted."},
    {.name = "x-*", .type = KEY_ANY, .help = "Kept, never interpreted."},
    {0},
};

static const key_table table = {
    .title = "Agent skill (frontmatter of SKILL.md)",
    .schema_id = "skill.schema.json",
    .what = "skill",
    .rows = rows,
};

// Keys that real files have beside those: they end a value when a file has to be read line by line.
static const char *const others[] = {
    "allowed_tools", "args",       "author",      "category",   "created",  "dependencies", "homepage",
    "keywords",      "mcp",        "mcp-servers", "mcpServers", "modified", "origin",       "permissions",
    "priority",      "references", "requires",    "reviewed",   "risk",     "source",       "tags",
    "title",         "tools",      "triggers",    "type",       "updated",
};

// Keys that give something away in the programs they come from.
static const char *const granting[] = {
    "allowed-tools", "allowed_tools", "disallowed-tools", "tools",      "hooks",
    "model",         "agent",         "context",          "effort",     "background",
    "shell",         "mcp",           "mcp-servers",      "mcpServers", "permissions",
};

const key_table *skill_keys(void) {
    return &table;
}

static bool among(const char *const *words, size_t n, str key) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(key, str_z(words[i]))) return true;
    return false;
}

bool skill_known_key(str key) {
    for (const key_row *r = rows; r->name; r++)
        if (str_eq(key, str_z(r->name))) return true;
    return str_starts(key, S("x-")) || among(others, sizeof others / sizeof *others, key);
}

bool skill_key_grants(str key) {
    return among(granting, sizeof granting / sizeof *granting, key);
}

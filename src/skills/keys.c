// skills: the keys of a SKILL.md's frontmatter, as the Agent Skills format has them; for the schema and for
// editors. Reading is lenient (parse.c) and looks at few of them.
#include <deputy/skills.h>

static const key_row rows[] = {
    {.name = "name",
     .type = KEY_STRING,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = SKILL_NAME_MAX,
     .help = "Lower-case letters, digits and hyphens; equal to the folder's name."},
    {.name = "description",
     .type = KEY_TEXT,
     .flags = KEY_REQUIRED,
     .min = 1,
     .max = SKILL_DESCRIPTION_MAX,
     .help = "What the skill does and when to use it."},
    {.name = "license", .type = KEY_STRING, .help = "Shown, never interpreted."},
    {.name = "compatibility", .type = KEY_STRING, .max = 500, .help = "Shown, never interpreted."},
    {.name = "metadata", .type = KEY_STRING_MAP, .max = 100, .help = "Kept for other programs."},
    {.name = "allowed-tools",
     .type = KEY_NAMES,
     .max = 64,
     .help = "Shown; grants nothing: tools are granted by the definition."},
    {.name = "disable-model-invocation",
     .type = KEY_BOOL,
     .dflt = "false",
     .help = "Shown; a definition that declares the skill may still use it."},
    {0},
};

static const key_table table = {.title = "Deputy skill (SKILL.md frontmatter)",
                                .schema_id = "skill.schema.json",
                                .what = "skill",
                                .rows = rows};

const key_table *skill_keys(void) {
    return &table;
}

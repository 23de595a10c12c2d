// Writing the system's config file: shared by config and models.
#pragma once
#include "cli/cli_int.h"

typedef struct {
    str key, value; // dotted path, YAML on one line
    bool unset;     // the key goes; then errors that stood there before may stay
} config_change;
str config_path(const cli *c);
// Makes the changes in the text, checks it and replaces the file; nothing is written when there are errors.
int config_edit(cli *c, const config_change *changes, size_t n);

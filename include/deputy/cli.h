// cli: the command line. `deputy [-C DIR] VERB …`. One verb table feeds dispatch, help and completion; one
// file per family of verbs.
#pragma once
#include <deputy/sys.h>

typedef struct {
    int argc;
    char **argv;
    const char *(*getenv)(const char *name);
    const sys_clock *clock;
} cli_args;

enum {
    EXIT_FINE = 0,
    EXIT_ERRORS = 1,
    EXIT_USAGE = 2,
    EXIT_REFUSED = 3,
    EXIT_UNREADABLE = 4,
    EXIT_INTERRUPTED = 130
};

// Runs one command; the process's exit code.
int cli_main(const cli_args *args);
const char *cli_version(void);

// Entry point of the program. Everything else is in the library, so that suites can link it.
#include <deputy/cli.h>
#include <stdlib.h>

static const char *from_environment(const char *name) {
    return getenv(name);
}

int main(int argc, char **argv) {
    cli_args args = {.argc = argc, .argv = argv, .getenv = from_environment, .clock = sys_clock_real()};
    return cli_main(&args);
}

// cli: help and version, printed from the verb table.
#include "cli/cli_int.h"
#include <string.h>

void print_overview(FILE *to) {
    fputs("Deputy says what each subagent may reach, enforces it, and shows what it did.\n\n"
          "usage: deputy [-C DIR] VERB [ARGUMENTS]\n\n",
          to);
    for (const cli_verb *v = cli_verbs; v->name; v++)
        if (v->run && !(v->flags & VERB_HIDDEN)) fprintf(to, "  %-9s %s\n", v->name, v->summary);
    fputs("\nnot yet:", to);
    for (const cli_verb *v = cli_verbs; v->name; v++)
        if (!v->run) fprintf(to, " %s", v->name);
    fputs("\n\n`deputy VERB --help` tells more. New here: `deputy init --sample DIR`.\n", to);
}

void print_help(const cli_verb *v, FILE *to) {
    fprintf(to, "usage: deputy [-C DIR] %s%s%s\n\n%s\n", v->name, *v->usage ? " " : "", v->usage, v->summary);
    if (!v->run) fputs("Not yet: the name is reserved.\n", to);
    if (v->detail) fprintf(to, "%s\n", v->detail);
    if (!v->opts && !(v->flags & VERB_JSON)) return;
    fputc('\n', to);
    for (const cli_opt *o = v->opts; o && o->name; o++) {
        int width = 2 + (int)strlen(o->name) + (o->arg ? 1 + (int)utf8_width(str_z(o->arg)) : 0);
        fprintf(to, "  --%s%s%s%*s %s\n", o->name, o->arg ? " " : "", o->arg ? o->arg : "",
                width < 24 ? 24 - width : 0, "", o->help);
    }
    if (v->flags & VERB_JSON) fprintf(to, "  %-24s %s\n", "--json", "one JSON document on standard output");
}

int verb_help(cli *c) {
    if (!c->args.n) {
        print_overview(stdout);
        return EXIT_FINE;
    }
    const cli_verb *v = find_verb(c, arg(c, 0));
    if (!v) return EXIT_USAGE;
    print_help(v, stdout);
    return EXIT_FINE;
}

int verb_version(cli *c) {
    (void)c;
    printf("deputy %s\n", cli_version());
    return EXIT_FINE;
}

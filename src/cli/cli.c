// cli: from argv to a verb: global options, the verb table, its options, help. A verb gets one context and
// returns an exit code.
#include "cli/cli_int.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#ifndef DEPUTY_VERSION
#define DEPUTY_VERSION "0.1.0"
#endif

const char *cli_version(void) {
    return DEPUTY_VERSION;
}

// --- Options -------------------------------------------------------------------------------------

static int opt_index(const cli_verb *v, str name) {
    for (int i = 0; v->opts && v->opts[i].name; i++)
        if (str_eq(str_z(v->opts[i].name), name)) return i;
    return -1;
}

bool opt_has(const cli *c, const char *name) {
    int i = opt_index(c->verb, str_z(name));
    return i >= 0 && c->values[i].n > 0;
}

str opt_get(const cli *c, const char *name, str dflt) {
    int i = opt_index(c->verb, str_z(name));
    return i >= 0 && c->values[i].n ? c->values[i].p[c->values[i].n - 1] : dflt;
}

strs opt_all(const cli *c, const char *name) {
    strs out = {0};
    int i = opt_index(c->verb, str_z(name));
    for (size_t j = 0; i >= 0 && j < c->values[i].n; j++) {
        str rest = c->values[i].p[j], one;
        // Commas inside { } belong to a glob.
        while (rest.n) {
            size_t at = 0;
            int depth = 0;
            for (; at < rest.n && (rest.p[at] != ',' || depth > 0); at++)
                depth += (rest.p[at] == '{') - (rest.p[at] == '}');
            one = str_trim(str_sub(rest, 0, at));
            rest = str_sub(rest, at + 1, rest.n);
            if (one.n) vec_push(c->a, &out, one);
        }
    }
    return out;
}

str arg(const cli *c, size_t i) {
    return i < c->args.n ? c->args.p[i] : (str){0};
}

bool opt_role(cli *c, const definition *def, agent_role *ret) {
    str given = opt_get(c, "role", (str){0});
    *ret = def ? role_of(def) : ROLE_DELEGATE;
    for (agent_role r = ROLE_DELEGATE; r <= ROLE_MAIN; r++)
        if (str_eq(given, str_z(role_name(r)))) {
            *ret = r;
            return true;
        }
    if (!given.n) return true;
    usage_error(c, "--role is delegate or main, not \"" STR_FMT "\"", STR_ARG(given));
    return false;
}

bool opt_int(cli *c, const char *name, int64_t dflt, int64_t min, int64_t max, int64_t *ret) {
    *ret = dflt;
    if (!opt_has(c, name)) return true;
    uint64_t v;
    str given = opt_get(c, name, (str){0});
    if (!str_u64(given, (uint64_t)max, &v) || (int64_t)v < min) {
        usage_error(c, "--%s takes a whole number from %lld to %lld, not \"" STR_FMT "\"", name,
                    (long long)min, (long long)max, STR_ARG(given));
        return false;
    }
    *ret = (int64_t)v;
    return true;
}

const cli_verb *find_verb(cli *c, str name) {
    const cli_verb *found = NULL;
    strs near = {0}, all = {0};
    for (const cli_verb *v = cli_verbs; v->name; v++) {
        if (str_eq(str_z(v->name), name)) return v;
        if (v->flags & VERB_HIDDEN) continue;
        vec_push(c->a, &all, str_z(v->name));
        if (str_starts(str_z(v->name), name) && v->run) {
            found = v;
            vec_push(c->a, &near, str_z(v->name));
        }
    }
    if (near.n == 1) return found;
    if (near.n > 1) {
        say(c, "\"" STR_FMT "\" is short for several verbs: " STR_FMT, STR_ARG(name),
            STR_ARG(str_join(c->a, near.p, near.n, S(", "))));
        return NULL;
    }
    str nearest = nearest_name(name, all.p, all.n);
    if (nearest.n) {
        say(c, "there is no verb \"" STR_FMT "\"; did you mean \"" STR_FMT "\"?", STR_ARG(name),
            STR_ARG(nearest));
    } else {
        say(c, "there is no verb \"" STR_FMT "\"; `deputy help` lists them", STR_ARG(name));
    }
    return NULL;
}

// An option that the verb lacks: the nearest one, or what the word may have been meant for.
static int no_option(cli *c, str word) {
    strs names = {0};
    for (const cli_opt *o = c->verb->opts; o && o->name; o++) vec_push(c->a, &names, str_z(o->name));
    if (c->verb->flags & VERB_JSON) vec_push(c->a, &names, S("json"));
    str name = str_starts(word, S("--")) ? str_sub(word, 2, word.n) : (str){0};
    str nearest = nearest_name(name, names.p, names.n), more = {0};
    if (str_eq(word, S("-C"))) {
        more = S("; -C DIR stands before the verb");
    } else if (nearest.n) {
        more = str_fmt(c->a, "; did you mean --" STR_FMT "?", STR_ARG(nearest));
    } else if (name.n == 0 || str_chr(word, ' ') != SIZE_MAX) {
        more = S("; put -- before a text that begins with a hyphen");
    }
    return usage_error(c, "%s has no option " STR_FMT STR_FMT, c->verb->name, STR_ARG(word), STR_ARG(more));
}

static int take_option(cli *c, str word, int *i) {
    const cli_args *in = c->in;
    str name = str_sub(word, 2, word.n), value = {0};
    bool has_value = str_cut(name, '=', &name, &value);
    if (str_eq(name, S("json")) && (c->verb->flags & VERB_JSON) && !has_value) {
        c->json = true;
        return EXIT_FINE;
    }
    int at = opt_index(c->verb, name);
    if (at < 0) return no_option(c, str_sub(word, 0, 2 + name.n));
    if (c->verb->opts[at].kind == OPT_FLAG) {
        if (has_value) return usage_error(c, "--" STR_FMT " takes no value", STR_ARG(name));
        vec_push(c->a, &c->values[at], S(""));
        return EXIT_FINE;
    }
    if (!has_value) {
        if (*i + 1 >= in->argc)
            return usage_error(c, "--" STR_FMT " needs %s", STR_ARG(name), c->verb->opts[at].arg);
        value = str_z(in->argv[++*i]);
    }
    vec_push(c->a, &c->values[at], value);
    return EXIT_FINE;
}

static int parse_verb(cli *c, int i) {
    bool only_args = false;
    for (; i < c->in->argc; i++) {
        str word = str_z(c->in->argv[i]);
        if (!only_args && str_eq(word, S("--"))) {
            only_args = true;
        } else if (!only_args && (str_eq(word, S("--help")) || str_eq(word, S("-h")))) {
            print_help(c->verb, stdout);
            return -1;
        } else if (!only_args && str_starts(word, S("--")) && word.n > 2) {
            int code = take_option(c, word, &i);
            if (code) return code;
        } else if (!only_args && word.n > 1 && word.p[0] == '-') {
            return no_option(c, word);
        } else {
            vec_push(c->a, &c->args, word);
        }
    }
    if (c->verb->max_args >= 0 && (int)c->args.n > c->verb->max_args)
        return usage_error(
            c, "\"" STR_FMT "\" is one argument too many; put quotes around a text of several words",
            STR_ARG(arg(c, (size_t)c->verb->max_args)));
    if ((int)c->args.n < c->verb->min_args)
        return usage_error(c, "usage: deputy %s %s", c->verb->name, c->verb->usage);
    return EXIT_FINE;
}

// A reserved name answers the same whatever follows it, but for --help.
static int not_yet(cli *c, int i) {
    for (; i < c->in->argc; i++) {
        str word = str_z(c->in->argv[i]);
        if (!str_eq(word, S("--help")) && !str_eq(word, S("-h"))) continue;
        print_help(c->verb, stdout);
        return EXIT_FINE;
    }
    say(c, "%s: not yet. The name is reserved; this version has no such verb", c->verb->name);
    return EXIT_USAGE;
}

// Inside a delegation there is no Deputy: only what reads nothing of the state (rule B14).
static bool refused_inside(const cli *c) {
    static const char *const fine[] = {"help", "version", "schema", "check"};
    if (!c->in->getenv("DEPUTY_DELEGATION")) return false;
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        if (str_eq(str_z(c->verb->name), str_z(fine[i]))) return false;
    return true;
}

static bool wants_color(const cli *c, int fd) {
    const char *no = c->in->getenv("NO_COLOR"), *term = c->in->getenv("TERM");
    return !(no && *no) && isatty(fd) && !(term && str_eq(str_z(term), S("dumb")));
}

static int dispatch(cli *c) {
    int i = 1;
    for (; i < c->in->argc; i++) {
        str word = str_z(c->in->argv[i]);
        if (str_eq(word, S("-C"))) {
            if (i + 1 >= c->in->argc) {
                say(c, "-C needs a directory");
                return EXIT_USAGE;
            }
            c->dir = str_z(c->in->argv[++i]);
        } else if (str_eq(word, S("--help")) || str_eq(word, S("-h"))) {
            print_overview(stdout);
            return EXIT_FINE;
        } else if (str_eq(word, S("--version"))) {
            return verb_version(c);
        } else {
            break;
        }
    }
    if (i >= c->in->argc) {
        print_overview(stderr);
        return EXIT_USAGE;
    }
    if (c->in->argv[i][0] == '-') {
        say(c, "there is no option %s; `deputy help` lists what there is", c->in->argv[i]);
        return EXIT_USAGE;
    }
    c->verb = find_verb(c, str_z(c->in->argv[i]));
    if (!c->verb) return EXIT_USAGE;
    if (refused_inside(c)) {
        say(c, "%s: refused inside a delegation", c->verb->name);
        return EXIT_REFUSED;
    }
    if (!c->verb->run) return not_yet(c, i + 1);
    int code = parse_verb(c, i + 1);
    if (code) return code < 0 ? EXIT_FINE : code;
    return c->verb->run(c);
}

// A standard stream that is closed is opened again, for nothing: else the next file opened, perhaps a
// database, would take its number and be written to. /dev/full lets what is printed fail as it should.
static void open_closed_streams(void) {
    for (int fd = 0; fd <= 2; fd++) {
        if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF) continue;
        int opened = open(fd == 1 ? "/dev/full" : "/dev/null", fd ? O_WRONLY : O_RDONLY);
        if (opened < 0) return;
    }
}

int cli_main(const cli_args *args) {
    open_closed_streams();
    arena *a = arena_new();
    cli c = {.a = a, .in = args};
    c.color_out = wants_color(&c, 1);
    c.color_err = wants_color(&c, 2);
    int code = dispatch(&c);
    // Output that could not be written is an error, not a success with nothing to show.
    if (fflush(stdout) != 0 || ferror(stdout)) {
        say(&c, "standard output could not be written");
        code = code ? code : EXIT_ERRORS;
    }
    arena_free(a);
    return code;
}

// cli: memory. A person sees, edits and removes an agent's notes; what was not trusted is shown too, and says
// so.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <deputy/knowledge.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    cli *c;
    memory_scope *scope;
    str dir;  // relative to where memory lives
    str file; // FILE, or the query
} mem;

static int none(const mem *m) {
    say(m->c, "there are no notes yet: " STR_FMT " does not exist", STR_ARG(m->dir));
    return EXIT_ERRORS;
}

static int list(mem *m) {
    memory_files files = {0};
    dep_err err;
    if (m->scope && memory_list(m->c->a, m->scope, &files, &err) != DEP_OK) return fail(m->c, &err);
    buf b = buf_new(m->c->a, 0);
    jw w = jw_new(&b);
    if (m->c->json) jw_arr(&w);
    for (vec_each(const memory_file, f, &files)) {
        if (m->c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("file"), f->name);
            jw_kint(&w, S("bytes"), (int64_t)f->bytes);
            jw_kbool(&w, S("resident"), f->resident);
            jw_kstr(&w, S("withheld"), f->withheld);
            jw_end_obj(&w);
            continue;
        }
        cell(&b, f->name, 32);
        buf_addf(&b, "%8zu bytes  %s", f->bytes, f->resident ? "shown at the start" : "searched and read");
        if (f->withheld.n) text(&b, "  withheld: "), safe(&b, f->withheld);
        text(&b, "\n");
    }
    if (m->c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    if (!m->c->json && !files.n) text(&b, "no notes yet\n");
    out_buf(&b);
    return EXIT_FINE;
}

static int show(mem *m) {
    str bytes;
    dep_err err;
    if (!m->scope) return none(m);
    if (memory_read(m->c->a, m->scope, m->file.n ? m->file : S("MEMORY.md"), false, &bytes, &err) != DEP_OK)
        return fail(m->c, &err);
    buf b = buf_new(m->c->a, 0);
    if (m->c->json) {
        json_quote(&b, bytes);
        text(&b, "\n");
    } else {
        term_add(&b, bytes, true);
    }
    out_buf(&b);
    return EXIT_FINE;
}

static int search_notes(mem *m) {
    search_result r = {0};
    dep_err err;
    int64_t limit;
    if (!opt_int(m->c, "limit", SEARCH_LIMIT_DEFAULT, 1, 1000, &limit)) return EXIT_USAGE;
    if (!m->file.n) return usage_error(m->c, "memory search needs a query");
    if (!m->scope) return none(m);
    if (memory_search(m->c->a, m->scope, m->file, (size_t)limit, NULL, NULL, &r, &err) != DEP_OK)
        return fail(m->c, &err);
    buf b = buf_new(m->c->a, 0);
    if (m->c->json) {
        search_json(&b, &r);
        text(&b, "\n");
    } else {
        for (vec_each(const search_hit, h, &r.hits))
            safe(&b, h->path), buf_addf(&b, ":%u: ", h->line), safe(&b, str_trim(h->text)), text(&b, "\n");
    }
    out_buf(&b);
    return r.hits.n ? EXIT_FINE : EXIT_ERRORS;
}

static int where(mem *m) {
    buf b = buf_new(m->c->a, 0);
    safe(&b, path_join(m->c->a, m->c->w->memory_root, m->dir));
    text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

static int remove_file(mem *m) {
    dep_err err;
    if (!m->file.n) return usage_error(m->c, "memory rm needs a FILE");
    if (!m->scope) return none(m);
    if (!opt_has(m->c, "yes")) {
        int yes = ask(m->c, str_fmt(m->c->a, "remove " STR_FMT " from " STR_FMT "?", STR_ARG(m->file),
                                    STR_ARG(m->dir)));
        if (yes < 0) say(m->c, "there is no terminal to ask on; add --yes");
        if (yes <= 0) return EXIT_REFUSED;
    }
    if (memory_remove(m->scope, m->file, &err) != DEP_OK) return fail(m->c, &err);
    say(m->c, "removed " STR_FMT, STR_ARG(m->file));
    return EXIT_FINE;
}

// Edits a private copy in $VISUAL or $EDITOR and puts it back whole; an unchanged copy changes nothing.
static int edit(mem *m) {
    cli *c = m->c;
    str old = {0}, new;
    dep_err err;
    str file = m->file.n ? m->file : S("MEMORY.md");
    if (!m->scope) return none(m);
    dep_status st = memory_read(c->a, m->scope, file, false, &old, &err);
    if (st != DEP_OK && st != DEP_ERR_NOT_FOUND) return fail(c, &err);
    const char *editor = c->in->getenv("VISUAL"), *tmp = c->in->getenv("TMPDIR");
    if (!editor || !*editor) editor = c->in->getenv("EDITOR");
    if (!editor || !*editor) return usage_error(c, "set $VISUAL or $EDITOR");
    char *path = str_cz(c->a, str_fmt(c->a, "%s/deputy-memory-XXXXXX.md", tmp && *tmp ? tmp : "/tmp"));
    int fd = mkstemps(path, 3);
    if (fd < 0 || (old.n && write(fd, old.p, old.n) != (ssize_t)old.n)) {
        (void)err_os(&err, errno, "%s", path);
        return fail(c, &err);
    }
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", str_cz(c->a, str_fmt(c->a, "%s \"$1\"", editor)), "sh", path,
              (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    st = file_read(c->a, str_z(path), MEMORY_FILE_MAX, &new, &err);
    if (st != DEP_OK) {
        say(c, "%s; what you wrote is kept in %s", err.msg, path);
        return EXIT_ERRORS;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) || str_eq(old, new)) {
        unlink(path);
        say(c, "nothing was changed");
        return EXIT_FINE;
    }
    if (memory_replace(c->a, m->scope, file, old, new, &err) != DEP_OK) {
        say(c, "%s; what you wrote is kept in %s", err.msg, path);
        return exit_code(err.status);
    }
    unlink(path);
    say(c, "wrote " STR_FMT, STR_ARG(file));
    return EXIT_FINE;
}

// All files as one JSON document, or as text with a line of equals signs before each.
static int export(mem *m) {
    memory_files files = {0};
    dep_err err;
    if (m->scope && memory_list(m->c->a, m->scope, &files, &err) != DEP_OK) return fail(m->c, &err);
    buf b = buf_new(m->c->a, 0);
    jw w = jw_new(&b);
    if (m->c->json) jw_arr(&w);
    for (vec_each(const memory_file, f, &files)) {
        str bytes;
        if (memory_read(m->c->a, m->scope, f->name, false, &bytes, &err) != DEP_OK) {
            say(m->c, "%s", err.msg);
            continue;
        }
        if (m->c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("file"), f->name);
            jw_kstr(&w, S("text"), bytes);
            jw_end_obj(&w);
        } else {
            text(&b, "===== "), safe(&b, f->name), text(&b, "\n"), term_add(&b, bytes, true);
            if (!str_ends(bytes, S("\n"))) text(&b, "\n");
        }
    }
    if (m->c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    out_buf(&b);
    return EXIT_FINE;
}

int verb_memory(cli *c) {
    static const struct {
        const char *name;
        int (*run)(mem *m);
        bool create;
    } subs[] = {{"list", list, false},    {"show", show, false},      {"search", search_notes, false},
                {"edit", edit, true},     {"rm", remove_file, false}, {"where", where, false},
                {"export", export, false}};
    str sub = arg(c, 0);
    if (str_eq(sub, S("restore"))) return usage_error(c, "memory restore: not yet");
    for (size_t i = 0; i < sizeof subs / sizeof *subs; i++) {
        if (!str_eq(str_z(subs[i].name), sub)) continue;
        mem m = {.c = c};
        dep_err err;
        definition shared = {.memory = DEF_MEMORY_SHARED, .identity = S("main"), .name = S("shared")};
        const definition *def = &shared;
        int code = need_agents(c);
        size_t next = 1;
        if (!code && !opt_has(c, "shared")) {
            agent_entry *e;
            if (c->args.n < 2)
                return usage_error(c, "memory %s needs an agent's NAME, or --shared", subs[i].name);
            code = find_agent(c, arg(c, next++), &e);
            if (!code && e->def.memory == DEF_MEMORY_NONE) {
                say(c, "\"" STR_FMT "\" declares no memory", STR_ARG(e->def.name));
                return EXIT_ERRORS;
            }
            if (!code) def = &e->def;
        }
        if (code) return code;
        m.file = c->args.n > next ? str_join(c->a, c->args.p + next, c->args.n - next, S(" ")) : (str){0};
        m.dir = memory_dir(c->a, def->memory == DEF_MEMORY_SHARED ? MEMORY_SHARED : MEMORY_PRIVATE,
                           def->identity, str_z(layer_name(def->layer)));
        if (subs[i].create) {
            trust_list *t; // writing records what is written
            if (trust_open(c->a, c->w->dirs.state, c->w->root, false, &t, &err) != DEP_OK)
                return fail(c, &err);
            c->w->trust = t;
        }
        if (workspace_memory(c->w, def, subs[i].create, &m.scope, &err) != DEP_OK) return fail(c, &err);
        return subs[i].run(&m);
    }
    return usage_error(c, "memory takes list, show, search, edit, rm, where or export, not \"" STR_FMT "\"",
                       STR_ARG(sub));
}

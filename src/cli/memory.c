// cli: memory. A person sees, edits and removes an agent's notes; what was not trusted is shown too, and says
// so.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <deputy/knowledge.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
    cli *c;
    const definition *def;
    memory_scope *scope; // NULL: there is none yet
    str dir;             // relative to where memory lives
    str file;            // FILE, or the query
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

// A person may see what is not in effect, and is told so.
static void say_withheld(mem *m, str file) {
    memory_files files = {0};
    dep_err err;
    if (memory_list(m->c->a, m->scope, &files, &err) != DEP_OK) return;
    for (vec_each(const memory_file, f, &files))
        if (str_eq(f->name, file) && f->withheld.n)
            say(m->c, STR_FMT " is withheld from the agent: " STR_FMT, STR_ARG(file), STR_ARG(f->withheld));
}

static int show(mem *m) {
    str bytes, file = m->file.n ? m->file : S("MEMORY.md");
    dep_err err;
    if (!m->scope) return none(m);
    if (memory_read(m->c->a, m->scope, file, false, &bytes, &err) != DEP_OK) return fail(m->c, &err);
    buf b = buf_new(m->c->a, 0);
    if (m->c->json) {
        json_quote(&b, bytes);
        text(&b, "\n");
    } else {
        term_add(&b, bytes, true);
        if (bytes.n && !str_ends(bytes, S("\n"))) text(&b, "\n");
    }
    out_buf(&b);
    say_withheld(m, file);
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
        int yes =
            ask(m->c, (str){0},
                str_fmt(m->c->a, "remove " STR_FMT " from " STR_FMT "?", STR_ARG(m->file), STR_ARG(m->dir)));
        if (yes < 0)
            say(m->c, "there is no terminal to ask on; add --yes to remove " STR_FMT, STR_ARG(m->file));
        if (yes <= 0) return EXIT_REFUSED;
    }
    if (memory_remove(m->scope, m->file, &err) != DEP_OK) return fail(m->c, &err);
    say(m->c, "removed " STR_FMT, STR_ARG(m->file));
    return EXIT_FINE;
}

// Puts back what was written in the private copy at `path`; what cannot be put back is kept there.
static int put_back(mem *m, str file, str old, str was, const char *path, int ended) {
    cli *c = m->c;
    str new;
    dep_err err;
    dep_status st = file_read(c->a, str_z(path), MEMORY_FILE_MAX, &new, &err);
    if (st == DEP_OK && str_eq(old, new)) {
        unlink(path);
        say(c, "nothing was changed");
        return ended;
    }
    if (st == DEP_OK && ended)
        return fail_with(c, ended, "nothing was changed; what you wrote is kept in %s", path);
    if (st == DEP_OK && !m->scope) st = workspace_memory(c->a, c->w, m->def, true, &m->scope, &err);
    if (st == DEP_OK) st = memory_replace(c->a, m->scope, file, was, new, &err);
    if (st != DEP_OK) return fail_with(c, exit_code(st), "%s; what you wrote is kept in %s", err.msg, path);
    unlink(path);
    say(c, "wrote " STR_FMT, STR_ARG(file));
    return EXIT_FINE;
}

// Edits a private copy in $VISUAL or $EDITOR and puts it back whole; an unchanged copy changes nothing.
static int edit(mem *m) {
    cli *c = m->c;
    str old = {0}, was = {0}, file = m->file.n ? m->file : S("MEMORY.md");
    dep_err err;
    if (!editor_command(c)) return usage_error(c, "memory edit needs $VISUAL or $EDITOR");
    if (!memory_name_ok(file))
        return usage_error(c, "\"" STR_FMT "\" is no name for notes: NAME.md or daily/NAME.md",
                           STR_ARG(file));
    dep_status st = m->scope ? memory_read(c->a, m->scope, file, false, &old, &err) : DEP_ERR_NOT_FOUND;
    if (st != DEP_OK && st != DEP_ERR_NOT_FOUND) return fail(c, &err);
    if (st == DEP_OK) was = sha256_hex(c->a, old);
    const char *tmp = c->in->getenv("TMPDIR");
    char *path = str_cz(c->a, str_fmt(c->a, "%s/deputy-memory-XXXXXX.md", tmp && *tmp ? tmp : "/tmp"));
    int fd = mkostemps(path, 3, O_CLOEXEC);
    if (fd < 0 || (old.n && write(fd, old.p, old.n) != (ssize_t)old.n)) {
        (void)err_os(&err, errno, "%s", path);
        if (fd >= 0) close(fd), unlink(path);
        return fail(c, &err);
    }
    close(fd);
    return put_back(m, file, old, was, path, run_editor(c, str_z(path)));
}

// All files as one JSON document, or as text with a line of equals signs before each.
static int export(mem *m) {
    memory_files files = {0};
    dep_err err;
    int code = EXIT_FINE;
    if (m->scope && memory_list(m->c->a, m->scope, &files, &err) != DEP_OK) return fail(m->c, &err);
    buf b = buf_new(m->c->a, 0);
    jw w = jw_new(&b);
    if (m->c->json) jw_arr(&w);
    for (vec_each(const memory_file, f, &files)) {
        str bytes;
        if (memory_read(m->c->a, m->scope, f->name, false, &bytes, &err) != DEP_OK) {
            code = fail(m->c, &err);
            continue;
        }
        if (m->c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("file"), f->name);
            jw_kstr(&w, S("withheld"), f->withheld);
            jw_kstr(&w, S("text"), bytes);
            jw_end_obj(&w);
        } else {
            text(&b, "===== "), safe(&b, f->name);
            if (f->withheld.n) text(&b, " (withheld: "), safe(&b, f->withheld), text(&b, ")");
            text(&b, "\n"), term_add(&b, bytes, true);
            if (!str_ends(bytes, S("\n"))) text(&b, "\n");
        }
    }
    if (m->c->json) jw_end_arr(&w), buf_addc(&b, '\n');
    out_buf(&b);
    return code;
}

// The scope that NAME, or --shared, means; it is not made. EXIT_FINE or the exit code.
static int open_scope(mem *m) {
    static const definition shared = {
        .memory = DEF_MEMORY_SHARED, .identity = S_INIT("main"), .name = S_INIT("shared")};
    cli *c = m->c;
    dep_err err;
    size_t next = 1;
    m->def = &shared;
    if (!opt_has(c, "shared")) {
        agent_entry *e;
        if (c->args.n < 2)
            return usage_error(c, "memory " STR_FMT " needs an agent's NAME, or --shared",
                               STR_ARG(arg(c, 0)));
        int code = find_agent(c, arg(c, next++), &e);
        if (code) return code;
        if (e->def.memory == DEF_MEMORY_NONE)
            return fail_with(c, EXIT_ERRORS, "\"" STR_FMT "\" declares no memory", STR_ARG(e->def.name));
        m->def = &e->def;
    }
    m->file = c->args.n > next ? str_join(c->a, c->args.p + next, c->args.n - next, S(" ")) : (str){0};
    m->dir = memory_dir(c->a, m->def->memory == DEF_MEMORY_SHARED ? MEMORY_SHARED : MEMORY_PRIVATE,
                        m->def->identity, str_z(layer_name(m->def->layer)));
    return workspace_memory(c->a, c->w, m->def, false, &m->scope, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

int verb_memory(cli *c) {
    static const struct {
        const char *name;
        int (*run)(mem *m);
        bool file, writes; // takes FILE or QUERY; changes something
    } subs[] = {{"list", list, false, false},          {"show", show, true, false},
                {"search", search_notes, true, false}, {"edit", edit, true, true},
                {"rm", remove_file, true, true},       {"where", where, false, false},
                {"export", export, false, false}};
    str sub = arg(c, 0);
    if (str_eq(sub, S("restore"))) return usage_error(c, "memory restore: not yet");
    for (size_t i = 0; i < sizeof subs / sizeof *subs; i++) {
        if (!str_eq(str_z(subs[i].name), sub)) continue;
        mem m = {.c = c};
        dep_err err;
        int code = need_agents(c);
        if (code) return code;
        // What writes records what it writes, and forgets what it removes.
        if (subs[i].writes && workspace_trust_writable(c->w, &err) != DEP_OK) return fail(c, &err);
        if ((code = open_scope(&m))) return code;
        if (m.file.n && !subs[i].file)
            return usage_error(c, "memory %s takes nothing after %s", subs[i].name,
                               opt_has(c, "shared") ? "--shared: it stands instead of NAME" : "NAME");
        return subs[i].run(&m);
    }
    return usage_error(c, "memory takes list, show, search, edit, rm, where or export, not \"" STR_FMT "\"",
                       STR_ARG(sub));
}

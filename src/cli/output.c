// cli: printing, failing, asking, and opening the workspace: what every verb needs and does in one way.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

void out_exact(str bytes) {
    fwrite(bytes.p, 1, bytes.n, stdout);
}
void out_buf(buf *b) {
    out_exact(buf_str(b));
}

void cell(buf *b, str s, size_t width) {
    buf shown = buf_new(b->a, 0);
    term_add(&shown, s, false);
    str t = buf_str(&shown);
    size_t w = utf8_width(t);
    if (w > width) {
        size_t n = t.n;
        while (n && utf8_width(str_sub(t, 0, n)) > width - 1) n = utf8_cut(t, n - 1).n;
        t = str_sub(t, 0, n);
        buf_add(b, t);
        buf_add(b, S("…"));
        w = utf8_width(t) + 1;
    } else {
        buf_add(b, t);
    }
    if (w < width) buf_fill(b, ' ', width - w);
}

void brief(buf *b, str s, size_t chars) {
    str cut = utf8_cut_chars(s, chars);
    safe(b, str_trim(cut));
    if (cut.n < s.n) text(b, "…");
}

void paint(buf *b, bool color, const char *sgr, str s) {
    if (color) buf_addf(b, "\x1b[%sm", sgr);
    term_add(b, s, false);
    if (color) buf_add(b, S("\x1b[0m"));
}

void say(cli *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str s = str_vfmt(c->a, fmt, ap);
    va_end(ap);
    buf b = buf_new(c->a, 0);
    text(&b, "deputy: ");
    term_add(&b, s, true);
    buf_addc(&b, '\n');
    str line = buf_str(&b);
    fflush(stdout);
    fwrite(line.p, 1, line.n, stderr);
}

void limit_json(jw *w, str key, int64_t v) {
    if (v < CONFIG_UNLIMITED) {
        jw_kint(w, key, v);
    } else {
        jw_kstr(w, key, S("unlimited"));
    }
}

void cost_json(arena *a, jw *w, int64_t micro) {
    jw_key(w, S("cost"));
    jw_raw(w, micro ? config_amount(a, micro) : S("null"));
}

void print_diags(cli *c, const diags *d) {
    buf b = buf_new(c->a, 0);
    diags_print(&b, d, c->color_err);
    str s = buf_str(&b);
    fflush(stdout);
    fwrite(s.p, 1, s.n, stderr);
}

int exit_code(dep_status s) {
    switch (s) {
    case DEP_OK: return EXIT_FINE;
    case DEP_ERR_REFUSED:
    case DEP_ERR_NOT_YET: return EXIT_REFUSED;
    case DEP_ERR_CANCELLED: return EXIT_INTERRUPTED;
    default: return EXIT_ERRORS;
    }
}

int fail(cli *c, const dep_err *err) {
    say(c, "%s", err->msg);
    return exit_code(err->status);
}

int fail_with(cli *c, int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str s = str_vfmt(c->a, fmt, ap);
    va_end(ap);
    say(c, STR_FMT, STR_ARG(s));
    return code;
}

int usage_error(cli *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    str s = str_vfmt(c->a, fmt, ap);
    va_end(ap);
    say(c, STR_FMT "\n  see `deputy %s --help`", STR_ARG(s), c->verb->name);
    return EXIT_USAGE;
}

// --- The workspace -------------------------------------------------------------------------------

int need_workspace(cli *c, bool loud) {
    if (c->w) return EXIT_FINE;
    dep_err err;
    workspace_opts o = {
        .dir = c->dir, .getenv = c->in->getenv, .clock = c->in->clock, .bodies = tools_bodies()};
    dep_status st = workspace_open(c->a, &o, &c->w, &err);
    // Settings of the user need no workspace: home, which is none by itself, will do to stand in.
    if (st == DEP_ERR_INVALID && !c->dir.n && (c->verb->flags & VERB_ANYWHERE)) {
        o.dir = S(".");
        st = workspace_open(c->a, &o, &c->w, &err);
    }
    if (st == DEP_ERR_INVALID || (st != DEP_OK && c->dir.n)) {
        say(c, "%s", err.msg);
        return EXIT_USAGE;
    }
    if (st != DEP_OK) return fail(c, &err);
    if (loud) print_diags(c, &c->w->diags);
    return EXIT_FINE;
}

dep_status read_named(cli *c, str path, str *bytes, dep_err *err) {
    int dir;
    str parent = path_dir(path);
    TRY(dir_open(parent.n ? parent : S("."), &dir, err));
    dep_status st = file_read_at(c->a, dir, path_base(path), FILE_NO_LINKS, DEF_FILE_MAX, bytes, NULL, err);
    close(dir);
    return st;
}

int need_agents(cli *c) {
    int code = need_workspace(c, false);
    if (code) return code;
    dep_err err;
    return workspace_agents(c->w, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

int need_agent(cli *c, str name, agent_entry **ret) {
    int code = need_agents(c);
    if (code) return code;
    dep_err err;
    return workspace_agent(c->w, name, ret, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

int find_agent(cli *c, str name, agent_entry **ret) {
    int code = need_agents(c);
    if (code) return code;
    dep_err err;
    *ret = NULL;
    dep_status st = workspace_agent(c->w, name, ret, &err);
    return st == DEP_OK || (st == DEP_ERR_REFUSED && *ret) ? EXIT_FINE : fail(c, &err);
}

bool looks_like_file(str s) {
    return str_chr(s, '/') != SIZE_MAX || str_ends(s, S(".yaml")) || str_ends(s, S(".yml"));
}

int ask(cli *c, str shown, str question) {
    enum { ANSWER_MS = 10 * 60 * 1000 };
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
    if (tty < 0) return -1;
    buf b = buf_new(c->a, 0);
    buf_add(&b, shown);
    term_add(&b, question, true);
    text(&b, " [y/N] ");
    str q = buf_str(&b);
    fflush(stdout);
    // What was typed before the question is no answer to it.
    tcflush(tty, TCIFLUSH);
    size_t done = 0;
    for (ssize_t n; done < q.n; done += (size_t)n)
        if ((n = write(tty, q.p + done, q.n - done)) < 0) break;
    char line[256] = {0};
    struct pollfd p = {.fd = tty, .events = POLLIN};
    ssize_t n = done < q.n || poll(&p, 1, ANSWER_MS) <= 0 ? 0 : read(tty, line, sizeof line - 1);
    close(tty);
    str answer = str_trim(str_n(line, n > 0 ? (size_t)n : 0));
    return str_ieq(answer, S("y")) || str_ieq(answer, S("yes"));
}

const char *editor_command(const cli *c) {
    const char *editor = c->in->getenv("VISUAL");
    if (!editor || !*editor) editor = c->in->getenv("EDITOR");
    return editor && *editor ? editor : NULL;
}

int run_editor(cli *c, str path) {
    const char *editor = editor_command(c);
    if (!editor) return usage_error(c, "set $VISUAL or $EDITOR to open " STR_FMT, STR_ARG(path));
    char *command = str_cz(c->a, str_fmt(c->a, "%s \"$1\"", editor)), *file = str_cz(c->a, path);
    // The person's own editor, in their own environment and terminal: not a child of a delegation.
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        execl("/bin/sh", "sh", "-c", command, "sh", file, (char *)NULL);
        _exit(127);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return EXIT_FINE;
    say(c, "the editor `%s` did not end well", editor);
    return EXIT_ERRORS;
}

// Two people, or a script, may change one file at a time: neither change is lost without a word.
static dep_status replace_unchanged(cli *c, int dir, str base, str was, str bytes, dep_err *err) {
    int lock;
    str now;
    TRY(lock_dir(dir, EDIT_LOCK_MS, &lock, err));
    dep_status st = file_read_at(c->a, dir, base, FILE_NO_LINKS, DEF_FILE_MAX, &now, NULL, err);
    if (st == DEP_OK && !str_eq(now, was))
        st = err_set(err, DEP_ERR_BUSY, STR_FMT " was changed meanwhile; nothing was written, try again",
                     STR_ARG(base));
    if (st == DEP_OK) st = file_replace_at(dir, base, bytes, 0644, err);
    close(lock);
    return st;
}

dep_status save_definition(cli *c, def_layer layer, str base, str bytes, const str *was, bool was_trusted,
                           str *shown, dep_err *err) {
    workspace *w = c->w;
    int dir;
    str where;
    TRY(workspace_layer_dir(w, layer, true, &dir, &where, err));
    *shown = path_join(c->a, where, base);
    TRY(was ? replace_unchanged(c, dir, base, *was, bytes, err)
            : file_create_at(dir, base, bytes, layer == LAYER_SYSTEM ? 0600 : 0644, err));
    if (layer != LAYER_WORKSPACE || !was_trusted) return DEP_OK;
    definition def;
    diags d = diags_new(c->a);
    TRY(definition_parse(c->a, *shown, base, layer, bytes, false, &def, NULL, &d, err));
    return workspace_record(w, *shown, bytes, definition_reach(c->a, &def), err);
}

const char *role_name(agent_role r) {
    return r == ROLE_MAIN ? "main" : "delegate";
}

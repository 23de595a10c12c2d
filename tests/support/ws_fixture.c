// ws_fixture: see the header.
#include "support/ws_fixture.h"
#include <deputy/file.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VARS = 16 };
static struct {
    const char *name, *value;
} environment[VARS];

const char *ws_getenv(const char *name) {
    for (size_t i = 0; i < VARS; i++)
        if (environment[i].name && strcmp(environment[i].name, name) == 0) return environment[i].value;
    return NULL;
}

void ws_setenv(const char *name, const char *value) {
    size_t free_place = VARS;
    for (size_t i = VARS; i-- > 0;) {
        if (!environment[i].name) free_place = i;
        if (environment[i].name && strcmp(environment[i].name, name) == 0) {
            environment[i].value = value;
            return;
        }
    }
    assert_true(free_place < VARS);
    environment[free_place].name = name;
    environment[free_place].value = value;
}

static int open_descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

int ws_setup(void **state) {
    ws_fixture *f = calloc(1, sizeof *f);
    f->open_before = open_descriptors();
    f->a = arena_new();
    char *dir = temp_dir();
    // Links on the way to the directory of temporary files would make two names of one workspace.
    f->top = realpath(dir, NULL);
    assert_non_null(f->top);
    free(dir);
    f->ws = ws_path(f, "/ws");
    memset(environment, 0, sizeof environment);
    ws_setenv("HOME", ws_path(f, "/home"));
    ws_setenv("XDG_CONFIG_HOME", ws_path(f, "/config"));
    ws_setenv("XDG_STATE_HOME", ws_path(f, "/state"));
    assert_int_equal(mkdir(f->ws, 0755), 0);
    assert_int_equal(mkdir(ws_path(f, "/home"), 0755), 0);
    *state = f;
    return 0;
}

int ws_teardown(void **state) {
    ws_fixture *f = *state;
    arena_free(f->a);
    temp_remove(f->top);
    int left = open_descriptors() - f->open_before;
    free(f);
    if (left != 0) fprintf(stderr, "%d descriptors left open\n", left);
    return left != 0;
}

// --- Files

char *ws_path(ws_fixture *f, const char *name) {
    return str_cz(f->a, str_fmt(f->a, "%s%s%s", f->top, name[0] == '/' ? "" : "/ws/", name));
}

void ws_write_bytes(ws_fixture *f, const char *name, str bytes) {
    temp_write(name[0] == '/' ? f->top : f->ws, name[0] == '/' ? name + 1 : name, bytes);
}

void ws_write(ws_fixture *f, const char *name, const char *text) {
    ws_write_bytes(f, name, str_z(text));
}

void ws_mkdir(ws_fixture *f, const char *name) {
    dep_err err;
    if (dir_make(str_z(ws_path(f, name)), 0755, &err) != DEP_OK) fail_msg("%s", err.msg);
}

static void parents(ws_fixture *f, const char *name) {
    str dir = path_dir(str_z(name));
    if (dir.n > 1) ws_mkdir(f, str_cz(f->a, dir));
}

void ws_link(ws_fixture *f, const char *target, const char *name) {
    parents(f, name);
    if (symlink(target, ws_path(f, name)) != 0) fail_msg("link %s: %s", name, strerror(errno));
}

void ws_hardlink(ws_fixture *f, const char *old, const char *name) {
    parents(f, name);
    if (link(ws_path(f, old), ws_path(f, name)) != 0) fail_msg("link %s: %s", name, strerror(errno));
}

void ws_agent(ws_fixture *f, const char *name, const char *rows) {
    ws_write(f, str_cz(f->a, str_fmt(f->a, ".deputy/agents/%s.yaml", name)),
             str_cz(f->a, str_fmt(f->a, "name: %s\ndescription: About %s\n%sprompt: P\n", name, name, rows)));
}

// --- Workspaces

dep_status ws_open_at(ws_fixture *f, const char *dir, workspace **ret, dep_err *err) {
    workspace_opts o = {.getenv = ws_getenv, .clock = sys_clock_real(), .bodies = tools_bodies()};
    if (dir) o.dir = str_z(ws_path(f, str_cz(f->a, str_fmt(f->a, "/%s", dir))));
    return workspace_open(f->a, &o, ret, err);
}

workspace *ws_open(ws_fixture *f) {
    dep_err err;
    if (ws_open_at(f, "ws", &f->w, &err) != DEP_OK) fail_msg("%s", err.msg);
    if (workspace_agents(f->w, &err) != DEP_OK) fail_msg("%s", err.msg);
    return f->w;
}

workspace *ws_trust(ws_fixture *f) {
    dep_err err;
    untrusted_files files = {0};
    workspace *w = ws_open(f);
    if (workspace_untrusted(w, &files, &err) != DEP_OK || workspace_trust_writable(w, &err) != DEP_OK)
        fail_msg("%s", err.msg);
    for (vec_each(const untrusted_file, u, &files)) {
        trust_list *t = str_eq(u->kind, S("memory")) ? w->memory_trust : w->trust;
        if (trust_record(t, u->file, u->sha256, u->reach, &err) != DEP_OK) fail_msg("%s", err.msg);
    }
    return ws_open(f);
}

agent_entry *ws_entry(ws_fixture *f, const char *file) {
    for (vec_each(agent_entry, e, &f->w->agents))
        if (str_ends(e->def.file, str_z(file))) return e;
    return NULL;
}

// --- Tools

static bool is_cancelled(void *p) {
    ws_tools *t = p;
    if (t->cancel_after && --t->cancel_after == 0) t->cancelled = true;
    return t->cancelled;
}

// As the run loop does: what is granted and deferred, once.
static dep_status load(void *p, str name, buf *out, dep_err *err) {
    ws_tools *t = p;
    size_t added = 0;
    for (vec_each(const grant_tool, g, &t->grant->tools)) {
        if (!g->deferred || !str_eq(str_z(g->spec->name), name)) continue;
        vec_push(t->f->a, &t->loaded, str_z(g->spec->name));
        added++;
    }
    if (!added) return err_set(err, DEP_ERR_REFUSED, "\"" STR_FMT "\" is not yours to load", STR_ARG(name));
    buf_add(out, S("Loaded.\n"));
    return DEP_OK;
}

static void available(void *p, buf *out) {
    buf_addf(out, "%zu tools\n", ((ws_tools *)p)->grant->tools.n);
}

ws_tools *ws_toolset(ws_fixture *f, const char *agent) {
    dep_err err;
    agent_entry *e = NULL;
    diags d = diags_new(f->a);
    host_opts o = {.count_sources = true, .memory_block = true};
    ws_tools *t = NEW(f->a, ws_tools);
    *t = (ws_tools){.f = f, .grant = NEW(f->a, grant)};
    t->env = (tool_env){.cancelled = is_cancelled,
                        .load = load,
                        .available = available,
                        .ctx = t,
                        .delegation = S("0123456789abcdef0123456789abcdef"),
                        .model = S("fake/one")};
    if (workspace_trust_writable(f->w, &err) != DEP_OK ||
        workspace_agent(f->w, str_z(agent), &e, &err) != DEP_OK ||
        workspace_grant(f->a, f->w, &e->def, role_of(&e->def), &o, t->grant, &d, &err) != DEP_OK ||
        toolset_open(f->a, f->w, &e->def, t->grant, true, &t->tools, &err) != DEP_OK)
        fail_msg("%s", err.msg);
    t->e = e;
    return t;
}

str ws_call(ws_tools *t, const char *name, const char *args, bool *is_error) {
    arena *turn = arena_new();
    tool_result r;
    tool_call(t->tools, turn, &t->env, &t->loaded, str_z(name), str_z(args), &r);
    str text = str_dup(t->f->a, r.text);
    if (is_error) *is_error = r.is_error;
    arena_free(turn);
    return text;
}

static void check(ws_tools *t, const char *tool, const char *args, bool refused, va_list texts) {
    bool is_error;
    str text = ws_call(t, tool, args, &is_error);
    if (is_error != refused)
        fail_msg("%s %s %s: " STR_FMT, tool, args, is_error ? "failed" : "succeeded", STR_ARG(text));
    for (const char *want; (want = va_arg(texts, const char *));) {
        bool without = want[0] == '!';
        bool there = str_find(text, str_z(want + without)) != SIZE_MAX;
        if (there == without)
            fail_msg("%s %s %s \"%s\": " STR_FMT, tool, args, without ? "says" : "does not say",
                     want + without, STR_ARG(text));
    }
}

void ws_says(ws_tools *t, const char *tool, const char *args, ...) {
    va_list texts;
    va_start(texts, args);
    check(t, tool, args, false, texts);
    va_end(texts);
}

void ws_refuses(ws_tools *t, const char *tool, const char *args, ...) {
    va_list texts;
    va_start(texts, args);
    check(t, tool, args, true, texts);
    va_end(texts);
}

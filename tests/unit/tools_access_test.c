// Confinement of read, glob, grep and kb_search (rules B1, B2, B5, B10): whatever a path, a link, a mount or
// a race leads to, nothing outside the grant is opened. Each rule has the mutation that makes its test fail
// in tests/README.md.
#include "support/ws_fixture.h"
#include <deputy/file.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

static ws_tools *fs_tools(ws_fixture *f, const char *rows) {
    ws_agent(f, "a", str_cz(f->a, str_fmt(f->a, "tools: [read, glob, grep]\n%s", rows)));
    ws_trust(f);
    return ws_toolset(f, "a");
}

static const char *read_of(ws_fixture *f, const char *path) {
    return str_cz(f->a, str_fmt(f->a, "{\"path\":\"%s\"}", path));
}

// --- The workspace

static void test_tools_access__paths_that_leave_the_workspace_are_refused(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "in.txt", "inside\n");
    ws_write(f, "sub/deep.txt", "deep\n");
    ws_write(f, "/out.txt", "OUTSIDE\n");
    ws_write(f, "/ws-sibling/x.txt", "OUTSIDE\n");
    ws_link(f, "/etc/passwd", "abs.txt");
    ws_link(f, "../out.txt", "up.txt");
    ws_link(f, "..", "updir");
    ws_link(f, "/", "rootdir");
    ws_link(f, "/proc/self/cwd", "magic");
    ws_link(f, "/proc/self/environ", "environ.txt");
    ws_link(f, "loop1", "loop2");
    ws_link(f, "loop2", "loop1");
    ws_tools *t = fs_tools(f, "");
    static const char *const out[] = {"../out.txt",
                                      "sub/../../out.txt",
                                      "./../out.txt",
                                      "/etc/passwd",
                                      "abs.txt",
                                      "up.txt",
                                      "updir/out.txt",
                                      "rootdir/etc/passwd",
                                      "magic/../out.txt",
                                      "magic/in.txt",
                                      "environ.txt",
                                      "loop1",
                                      "loop1/x",
                                      "..",
                                      "/",
                                      "/proc/self/environ",
                                      "//etc/passwd",
                                      "in.txt/../../out.txt",
                                      "\\u0000",
                                      "in.txt\\u0000.md",
                                      "file:///etc/passwd",
                                      "~/out.txt",
                                      "$HOME/out.txt",
                                      "sub/deep.txt/../../../out.txt"};
    for (size_t i = 0; i < sizeof out / sizeof *out; i++)
        ws_refuses(t, "read", read_of(f, out[i]), "!OUTSIDE", "!root:", NULL);
    ws_refuses(t, "read", read_of(f, ws_path(f, "/out.txt")), "outside the workspace", NULL);
    // A sibling whose name begins with the workspace's.
    ws_refuses(t, "read", read_of(f, ws_path(f, "/ws-sibling/x.txt")), "outside the workspace", NULL);
    ws_refuses(t, "read", read_of(f, str_cz(f->a, str_fmt(f->a, "%s/../out.txt", f->ws))), "outside", NULL);
    static const char *const in[] = {"in.txt",    "./in.txt",      "sub/../in.txt",
                                     ".//in.txt", "sub//deep.txt", "sub/./deep.txt"};
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) {
        bool is_error;
        str text = ws_call(t, "read", read_of(f, in[i]), &is_error);
        assert_int_equal(is_error, strstr(in[i], "..") != NULL);
        (void)text;
    }
    ws_says(t, "read", read_of(f, ws_path(f, "in.txt")), "inside", NULL);
    ws_says(t, "read", read_of(f, str_cz(f->a, str_fmt(f->a, "%s//sub/deep.txt", f->ws))), "deep", NULL);
}

static void test_tools_access__listings_never_show_what_lies_behind_a_link_that_leaves(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "/outside/secret.txt", "OUTSIDE\n");
    ws_write(f, "a.txt", "inside\n");
    ws_link(f, "../outside", "dir");
    ws_link(f, "../outside/secret.txt", "file.txt");
    ws_link(f, "/etc", "etc");
    ws_tools *t = fs_tools(f, "");
    ws_says(t, "glob", "{\"pattern\":\"**/*\"}", "a.txt", "!secret", "!file.txt", "!passwd", NULL);
    ws_says(t, "glob", "{\"pattern\":\"dir/*\"}", "!secret", NULL);
    ws_says(t, "grep", "{\"pattern\":\"OUTSIDE|root:\"}", "No line matches", NULL);
    // Nor does a start behind a link say whether something is there.
    static const char *const starts[] = {"dir", "dir/secret.txt", "dir/none.txt", "etc/passwd", "etc/none"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *path = str_cz(f->a, str_fmt(f->a, "{\"pattern\":\"**\",\"path\":\"%s\"}", starts[i]));
        ws_refuses(t, "glob", path, "link", NULL);
        path = str_cz(f->a, str_fmt(f->a, "{\"pattern\":\".\",\"path\":\"%s\"}", starts[i]));
        ws_refuses(t, "grep", path, "link", NULL);
    }
    ws_refuses(t, "glob", "{\"pattern\":\"../*\"}", "..", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"/etc/*\"}", "absolute", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"{a,../b}/*\"}", "..", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"*\",\"path\":\"..\"}", "outside the workspace", NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"x\",\"path\":\"/etc\"}", "outside the workspace", NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"x\",\"include\":\"../**\"}", "..", NULL);
}

static void test_tools_access__links_that_stay_inside_are_followed(void **state) {
    ws_fixture *f = *state;
    if (!file_has_openat2()) skip(); // links are refused then
    ws_write(f, "docs/real.md", "the text\n");
    ws_link(f, "docs/real.md", "short.md");
    ws_link(f, "../docs/real.md", "sub/up.md");
    ws_link(f, "docs", "manual");
    ws_tools *t = fs_tools(f, "");
    ws_says(t, "read", read_of(f, "short.md"), "the text", NULL);
    ws_says(t, "read", read_of(f, "sub/up.md"), "the text", NULL);
    ws_says(t, "read", read_of(f, "manual/real.md"), "the text", NULL);
    // A walk does not go through links to directories, so each file is listed once a directory.
    ws_says(t, "glob", "{\"pattern\":\"**/*.md\"}", "docs/real.md", "short.md", "sub/up.md",
            "!manual/real.md", NULL);
}

static void test_tools_access__only_regular_files_are_read(void **state) {
    ws_fixture *f = *state;
    assert_int_equal(mkfifo(ws_path(f, "pipe.txt"), 0644), 0);
    ws_mkdir(f, "dir.txt");
    ws_link(f, "/dev/zero", "zero.txt");
    ws_tools *t = fs_tools(f, "");
    ws_refuses(t, "read", read_of(f, "pipe.txt"), "a pipe, not a regular file", NULL);
    ws_refuses(t, "read", read_of(f, "dir.txt"), "a directory", NULL);
    ws_refuses(t, "read", read_of(f, "zero.txt"), "absolute", NULL);
    ws_refuses(t, "read", read_of(f, "."), "the workspace itself", NULL);
    ws_refuses(t, "read", read_of(f, "none.txt"), "none.txt", NULL);
    ws_says(t, "grep", "{\"pattern\":\".\"}", "No line matches", NULL);
}

// --- permissions.read

static void test_tools_access__permissions_narrow_read_glob_and_grep(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "needle allowed\n");
    ws_write(f, "docs-private/a.md", "needle DENIED\n");
    ws_write(f, "doc", "needle DENIED\n");
    ws_write(f, "src/main.c", "needle allowed\n");
    ws_write(f, "src/main.c.bak", "needle DENIED\n");
    ws_write(f, "src/other.c", "needle DENIED\n");
    ws_write(f, "top.txt", "needle DENIED\n");
    ws_tools *t = fs_tools(f, "permissions: {read: [docs/, ./src/main.c, missing]}\n");
    static const char *const denied[] = {
        "docs-private/a.md", "doc", "src/other.c",           "src/main.c.bak", "top.txt",
        "docs/../top.txt",   "src", ".deputy/agents/a.yaml", "missing/x"};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
        ws_refuses(t, "read", read_of(f, denied[i]), "!DENIED", NULL);
    ws_refuses(t, "read", read_of(f, "top.txt"), "permissions.read", "docs, src/main.c, missing", NULL);
    ws_refuses(t, "read", read_of(f, "missing/x"), "permissions.read", "not reached", NULL);
    ws_says(t, "read", read_of(f, "docs/a.md"), "allowed", NULL);
    ws_says(t, "read", read_of(f, "src/main.c"), "allowed", NULL);
    ws_says(t, "grep", "{\"pattern\":\"needle\"}", "docs/a.md:1:", "src/main.c:1:", "!DENIED", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**\"}", "docs/a.md", "src/main.c\n", "!private", "!top", "!other",
            "!bak", NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"needle\",\"path\":\"docs-private\"}", "permissions.read", NULL);
    ws_refuses(t, "glob", "{\"pattern\":\"*\",\"path\":\"docs-private\"}", "permissions.read", NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"needle\",\"path\":\"top.txt\"}", "permissions.read", NULL);
}

static void test_tools_access__a_link_leads_out_of_no_prefix(void **state) {
    ws_fixture *f = *state;
    if (!file_has_openat2()) skip(); // links are refused then
    ws_write(f, "docs/a.md", "allowed\n");
    ws_write(f, "docs/sub/b.md", "allowed too\n");
    ws_write(f, "secrets/key.txt", "DENIED\n");
    ws_link(f, "../secrets/key.txt", "docs/out.md");
    ws_link(f, "../secrets", "docs/outdir");
    ws_link(f, "..", "docs/up");
    ws_link(f, "../a.md", "docs/sub/in.md");
    ws_tools *t = fs_tools(f, "permissions: {read: [docs]}\n");
    static const char *const denied[] = {"docs/out.md", "docs/outdir/key.txt", "docs/up/secrets/key.txt"};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
        ws_refuses(t, "read", read_of(f, denied[i]), "!DENIED", NULL);
    ws_says(t, "read", read_of(f, "docs/sub/in.md"), "allowed", NULL);
    ws_says(t, "grep", "{\"pattern\":\"DENIED\"}", "No line matches", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**/*\"}", "docs/sub/in.md", "!out.md", "!key", NULL);
}

static void test_tools_access__a_prefix_that_is_a_link_reaches_nothing(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "secrets/key.txt", "DENIED\n");
    ws_link(f, ".", "docs");
    ws_link(f, "secrets", "manual");
    ws_link(f, "secrets/key.txt", "README.md");
    ws_mkdir(f, "real");
    ws_link(f, "../secrets", "real/sub");
    ws_tools *t = fs_tools(f, "permissions: {read: [docs, manual, README.md, real/sub]}\n");
    static const char *const denied[] = {"docs/secrets/key.txt", "manual/key.txt", "README.md",
                                         "real/sub/key.txt"};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
        ws_refuses(t, "read", read_of(f, denied[i]), "!DENIED", "permissions.read", "symbolic link", NULL);
    ws_says(t, "grep", "{\"pattern\":\"DENIED\"}", "No line matches", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**/*\"}", "No file matches", NULL);
}

static void test_tools_access__the_whole_workspace_as_prefix_is_the_workspace(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "README.md", "needle\n");
    ws_write(f, "sub/b.md", "needle\n");
    ws_write(f, ".env", "needle DENIED\n");
    ws_tools *t = fs_tools(f, "permissions: {read: [.]}\n");
    ws_says(t, "read", read_of(f, "README.md"), "needle", NULL);
    ws_says(t, "read", read_of(f, "sub/b.md"), "needle", NULL);
    ws_says(t, "grep", "{\"pattern\":\"needle\"}", "README.md:1:", "sub/b.md:1:", "!DENIED", NULL);
    ws_refuses(t, "read", read_of(f, "../ws/README.md"), "outside", NULL);
}

static void test_tools_access__declared_knowledge_and_skills_stay_readable(void **state) {
    ws_fixture *f = *state;
    if (!file_has_openat2()) skip(); // links are refused then
    ws_write(f, "docs/manual.md", "needle manual\n");
    ws_write(f, "docs/old/manual.md", "needle DENIED\n");
    ws_write(f, "docs/notes.txt", "needle DENIED\n");
    ws_write(f, "guide/deep/x.txt", "needle guide\n");
    ws_write(f, "src/a.c", "needle source\n");
    ws_write(f, "other/x.md", "needle DENIED\n");
    ws_link(f, "../other/x.md", "docs/link.md");
    ws_link(f, "manual.md", "docs/alias.md");
    ws_write(f, ".deputy/skills/tone/SKILL.md", "---\nname: tone\ndescription: Tone\n---\nBe kind.\n");
    ws_write(f, ".deputy/skills/tone/more.md", "More.\n");
    ws_tools *t = fs_tools(f, "permissions: {read: [src]}\nskills: [tone]\nknowledge:\n"
                              "  - {name: Manual, path: 'docs/**/*.md', exclude: docs/old}\n"
                              "  - {name: Guide, path: guide}\n");
    ws_says(t, "read", read_of(f, "docs/manual.md"), "manual", NULL);
    ws_says(t, "read", read_of(f, "guide/deep/x.txt"), "guide", NULL);
    ws_says(t, "read", read_of(f, "src/a.c"), "source", NULL);
    ws_says(t, "read", read_of(f, "docs/alias.md"), "manual", NULL);
    ws_says(t, "use_skill", "{\"name\":\"tone\"}", "Be kind.", "more.md", NULL);
    ws_says(t, "use_skill", "{\"name\":\"tone\",\"file\":\"more.md\"}", "More.", NULL);
    static const char *const denied[] = {"docs/old/manual.md", "docs/notes.txt", "other/x.md",
                                         "docs/link.md"};
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++)
        ws_refuses(t, "read", read_of(f, denied[i]), "!DENIED", NULL);
    ws_says(t, "grep", "{\"pattern\":\"needle\"}",
            "docs/manual.md:1:", "guide/deep/x.txt:1:", "src/a.c:1:", "!DENIED", NULL);
}

static void test_tools_access__a_knowledge_glob_opens_nothing_below_deputy(void **state) {
    ws_fixture *f = *state;
    ws_write(f, ".deputy/notes.md", "needle DENIED\n");
    ws_write(f, "sub/.deputy/notes.md", "needle DENIED\n");
    ws_write(f, "docs/a.md", "needle fine\n");
    ws_link(f, "../.deputy/notes.md", "docs/l.md");
    ws_tools *t = fs_tools(f, "permissions: {read: [src]}\nknowledge:\n"
                              "  - {name: All, path: ['**/*.md', '.deputy/**', 'sub/.deputy/**']}\n");
    ws_refuses(t, "read", read_of(f, ".deputy/notes.md"), "permissions.read", NULL);
    ws_refuses(t, "read", read_of(f, "sub/.deputy/notes.md"), "permissions.read", NULL);
    ws_refuses(t, "read", read_of(f, "docs/l.md"), "!DENIED", NULL);
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "docs/a.md:1", "!DENIED", NULL);
    ws_says(t, "glob", "{\"pattern\":\".deputy/**\"}", "!notes", NULL);
    ws_says(t, "glob", "{\"pattern\":\"{.deputy,sub/.deputy}/*\"}", "!notes", NULL);
}

static void test_tools_access__deputys_folder_is_read_by_name_and_never_by_a_glob(void **state) {
    ws_fixture *f = *state;
    if (!file_has_openat2()) skip(); // links are refused then
    ws_write(f, ".deputy/config.yaml", "# needle\n");
    ws_link(f, ".deputy/config.yaml", "link.yaml");
    ws_link(f, ".deputy", "folder");
    ws_tools *t = fs_tools(f, "");
    ws_refuses(t, "read", read_of(f, "link.yaml"), "which no link reaches", NULL);
    ws_refuses(t, "read", read_of(f, "folder/config.yaml"), "which no link reaches", NULL);
    ws_says(t, "read", read_of(f, ".deputy/config.yaml"), "needle", NULL);
    ws_says(t, "grep", "{\"pattern\":\"needle\"}", "No line matches", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**/*.yaml\"}", "No file matches", NULL);
    ws_says(t, "glob", "{\"pattern\":\".deputy/**/*.yaml\"}", "No file matches", NULL);
}

// --- Memory (rule B2)

static const char memory_rows[] = "memory: private\n";

static void make_memory(ws_fixture *f) {
    ws_write(f, ".deputy/memory/MEMORY.md", "shared NOTE\n");
    ws_write(f, ".deputy/agent-memory/a/MEMORY.md", "own NOTE\n");
    ws_write(f, ".deputy/agent-memory/b/MEMORY.md", "foreign NOTE\n");
    ws_write(f, ".deputy/agent-memory/b/daily/d.md", "foreign NOTE\n");
    ws_write(f, "docs/a.md", "plain\n");
}

static void test_tools_access__memory_exists_for_no_other_tool(void **state) {
    ws_fixture *f = *state;
    if (!file_has_openat2()) skip(); // links are refused then
    make_memory(f);
    ws_write(f, "nested/.deputy/agent-memory/x/MEMORY.md", "nested NOTE\n");
    ws_link(f, ".deputy/memory/MEMORY.md", "link.md");
    ws_link(f, "../.deputy/agent-memory", "docs/dir");
    ws_link(f, ".deputy", "d");
    ws_hardlink(f, ".deputy/agent-memory/b/MEMORY.md", "docs/hard.md");
    ws_tools *t =
        fs_tools(f, "memory: private\nknowledge: [{name: K, path: ['**/*', '.deputy/**/*', 'd/**']}]\n");
    static const char *const paths[] = {".deputy/memory/MEMORY.md",
                                        ".deputy/agent-memory/a/MEMORY.md",
                                        ".deputy/agent-memory/b/MEMORY.md",
                                        ".deputy/./memory/MEMORY.md",
                                        ".deputy//memory/MEMORY.md",
                                        "./.deputy/memory/MEMORY.md",
                                        ".deputy/agent-memory/b/daily/d.md",
                                        "link.md",
                                        "docs/dir/b/MEMORY.md",
                                        "d/memory/MEMORY.md",
                                        "d/agent-memory/b/MEMORY.md",
                                        "docs/hard.md",
                                        ".DEPUTY/memory/MEMORY.md",
                                        "nested/.deputy/agent-memory/x/MEMORY.md"};
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        ws_refuses(t, "read", read_of(f, paths[i]), "!NOTE", NULL);
    ws_refuses(t, "read", read_of(f, "docs/hard.md"), "belongs to memory", NULL);
    ws_refuses(t, "read", read_of(f, "link.md"), "belongs to memory", NULL);
    ws_says(t, "grep", "{\"pattern\":\"NOTE\"}", "No line matches", NULL);
    ws_says(t, "glob", "{\"pattern\":\"**/*.md\"}", "docs/a.md", "!MEMORY", "!hard", "!link.md", NULL);
    ws_says(t, "kb_search", "{\"query\":\"NOTE\"}", "No line matches", NULL);
    static const char *const starts[] = {
        ".deputy/memory", ".deputy/agent-memory",        ".deputy/agent-memory/b",
        "docs/dir",       "nested/.deputy/agent-memory", ".deputy/memory/MEMORY.md"};
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const char *args = str_cz(f->a, str_fmt(f->a, "{\"pattern\":\"**\",\"path\":\"%s\"}", starts[i]));
        ws_refuses(t, "glob", args, "!MEMORY.md\n", NULL);
        ws_refuses(t, "grep", args, "!NOTE", NULL);
    }
    // The folder itself may be named; what belongs to memory is not in it.
    ws_says(t, "glob", "{\"pattern\":\"**\",\"path\":\".deputy\"}", ".deputy/agents/a.yaml", "!MEMORY", NULL);
    ws_says(t, "grep", "{\"pattern\":\"NOTE\",\"path\":\".deputy\"}", "No line matches", NULL);
}

static void test_tools_access__a_note_written_meanwhile_is_memory_too(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "plain\n");
    ws_tools *t = fs_tools(f, memory_rows);
    ws_says(t, "read", read_of(f, "docs/a.md"), "plain", NULL); // the first look at the memory trees
    ws_says(t, "memory_write", "{\"content\":\"a NOTE\"}", "Added", NULL);
    ws_hardlink(f, ".deputy/agent-memory/a/MEMORY.md", "docs/hard.md");
    ws_refuses(t, "read", read_of(f, "docs/hard.md"), "belongs to memory", NULL);
    ws_says(t, "grep", "{\"pattern\":\"NOTE\"}", "No line matches", NULL);
}

// Memory mounted elsewhere: needs a mount namespace of our own, so it runs in a child.
static int mounted(ws_fixture *f) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 && unshare(CLONE_NEWNS) != 0) return 77;
    if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount(ws_path(f, ".deputy/agent-memory"), ws_path(f, "docs/mnt"), "none", MS_BIND, NULL) != 0)
        return 77;
    ws_open(f);
    ws_tools *t = ws_toolset(f, "a");
    ws_refuses(t, "read", read_of(f, "docs/mnt/b/MEMORY.md"), "belongs to memory", NULL);
    ws_says(t, "glob", "{\"pattern\":\"docs/**\"}", "docs/a.md", "!MEMORY", NULL);
    ws_says(t, "grep", "{\"pattern\":\"NOTE\"}", "No line matches", NULL);
    ws_says(t, "kb_search", "{\"query\":\"NOTE\"}", "No line matches", NULL);
    return 0;
}

static void test_tools_access__a_mount_of_memory_is_memory(void **state) {
    ws_fixture *f = *state;
    make_memory(f);
    ws_mkdir(f, "docs/mnt");
    fs_tools(f, "knowledge: [{name: K, path: '**/*'}]\n");
    pid_t pid = fork();
    if (pid == 0) _exit(mounted(f));
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("# mounting needs namespaces\n");
        skip();
    }
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_tools_access__memory_that_cannot_be_told_apart_closes_everything(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "plain\n");
    buf path = buf_new(f->a, 0);
    buf_add(&path, S(".deputy/memory"));
    for (int i = 0; i < MEMORY_GUARD_DEPTH; i++) buf_add(&path, S("/d"));
    ws_write(f, str_cz(f->a, buf_str(&path)), "x");
    ws_tools *t = fs_tools(f, "");
    ws_says(t, "read", read_of(f, "docs/a.md"), "plain", NULL);
    buf_add(&path, S("d/x"));
    ws_write(f, str_cz(f->a, buf_str(&path)), "x");
    ws_open(f);
    t = ws_toolset(f, "a");
    ws_refuses(t, "read", read_of(f, "docs/a.md"), "no file is read", "deeper than 16", NULL);
    ws_says(t, "grep", "{\"pattern\":\"plain\"}", "No line matches", NULL);
}

static void test_tools_access__two_agents_never_see_each_others_notes(void **state) {
    ws_fixture *f = *state;
    ws_agent(f, "a", "tools: [read, glob, grep]\nmemory: private\n");
    ws_agent(f, "b", "tools: [read, glob, grep]\nmemory: private\n");
    ws_agent(f, "c", "tools: [read, glob, grep]\nmemory: shared\n");
    ws_trust(f);
    ws_tools *a = ws_toolset(f, "a"), *b = ws_toolset(f, "b"), *c = ws_toolset(f, "c");
    ws_says(a, "memory_write", "{\"content\":\"NOTE of a\"}", "Added", NULL);
    ws_says(c, "memory_write", "{\"content\":\"NOTE of all\"}", "Added", NULL);
    ws_says(b, "memory_read", "{}", "Your memory is empty", NULL);
    ws_says(b, "memory_search", "{\"query\":\"NOTE\"}", "!NOTE of", NULL);
    ws_says(c, "memory_search", "{\"query\":\"NOTE\"}", "NOTE of all", "!NOTE of a\n", NULL);
    ws_says(a, "memory_search", "{\"query\":\"NOTE\"}", "NOTE of a\n", "!NOTE of all", NULL);
    static const char *const files[] = {"../a/MEMORY.md",
                                        "../../memory/MEMORY.md",
                                        "/MEMORY.md",
                                        "daily/../../a/MEMORY.md",
                                        "../a",
                                        "a/MEMORY.md",
                                        "..",
                                        ".",
                                        "",
                                        "MEMORY.md/..",
                                        ".lock"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        bool is_error;
        str text =
            ws_call(b, "memory_read", str_cz(f->a, str_fmt(f->a, "{\"file\":\"%s\"}", files[i])), &is_error);
        assert_true(is_error || !files[i][0]);
        assert_true(str_find(text, S("NOTE")) == SIZE_MAX);
        ws_refuses(
            b, "memory_write",
            str_cz(f->a, str_fmt(f->a, "{\"file\":\"%s\",\"content\":\"x\"}", files[i][0] ? files[i] : "..")),
            "name for a memory file", NULL);
    }
    static const char *const forged[] = {"\"scope\":\"shared\"", "\"dir\":\".deputy/agent-memory/a\"",
                                         "\"agent\":\"a\"",      "\"owner\":\"a\"",
                                         "\"path\":\"../a\"",    "\"File\":\"x\""};
    for (size_t i = 0; i < sizeof forged / sizeof *forged; i++) {
        ws_refuses(b, "memory_write", str_cz(f->a, str_fmt(f->a, "{\"content\":\"x\",%s}", forged[i])),
                   "unknown argument", NULL);
        ws_refuses(b, "memory_read", str_cz(f->a, str_fmt(f->a, "{%s}", forged[i])), "unknown argument",
                   NULL);
        ws_refuses(b, "memory_search", str_cz(f->a, str_fmt(f->a, "{\"query\":\"NOTE\",%s}", forged[i])),
                   "unknown argument", NULL);
    }
}

// --- Sensitive files (rule B5)

static void test_tools_access__sensitive_files_are_denied_by_every_name(void **state) {
    ws_fixture *f = *state;
    if (!file_has_openat2()) skip(); // links are refused then
    static const char *const sensitive[] = {
        ".env",           ".env.local", "sub/.env", ".ENV",        "key.pem",  "sub/KEY.PEM", "id_rsa",
        "sub/id_ed25519", ".netrc",     ".npmrc",   ".git/config", ".git/a/b", "sub/.git/x",  ".envrc"};
    for (size_t i = 0; i < sizeof sensitive / sizeof *sensitive; i++) ws_write(f, sensitive[i], "TOKEN\n");
    ws_link(f, ".env", "settings.txt");
    ws_link(f, "../key.pem", "docs/cert.txt");
    ws_link(f, ".git", "history");
    ws_link(f, "settings.txt", "twice.txt");
    ws_write(f, "environment.txt", "plain\n");
    ws_write(f, "identity.txt", "plain\n");
    ws_tools *t = fs_tools(f, "knowledge: [{name: K, path: ['**/*', '**/.env', '.git/**', '.*']}]\n");
    for (size_t i = 0; i < sizeof sensitive / sizeof *sensitive; i++)
        ws_refuses(t, "read", read_of(f, sensitive[i]), "approval", "!TOKEN", NULL);
    static const char *const links[] = {"settings.txt", "docs/cert.txt", "history/config", "twice.txt"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++)
        ws_refuses(t, "read", read_of(f, links[i]), "approval", "!TOKEN", NULL);
    ws_says(t, "read", read_of(f, "environment.txt"), "plain", NULL);
    ws_says(t, "read", read_of(f, "identity.txt"), "plain", NULL);
    ws_says(t, "grep", "{\"pattern\":\"TOKEN\"}", "No line matches", "4 files left out that may hold secrets",
            NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"TOKEN\",\"path\":\".env\"}", "approval", NULL);
    ws_says(t, "grep", "{\"pattern\":\"TOKEN\",\"path\":\".git\"}", "No line matches", NULL);
    ws_refuses(t, "grep", "{\"pattern\":\"TOKEN\",\"path\":\"settings.txt\"}", "approval", NULL);
    ws_says(t, "kb_search", "{\"query\":\"TOKEN\"}", "No line matches", "environment file", NULL);
    ws_says(t, "glob", "{\"pattern\":\"{**/.env,**/.git/**,*.pem}\"}", "No file matches", NULL);
}

// --- Races (rule B1)

typedef struct {
    const char *dir, *aside, *link; // made before the thread: an arena has one owner
    atomic_bool stop;
    atomic_size_t swaps;
} swapper;

// docs/ is a directory, then a link that leaves, in turns.
static void *swap(void *p) {
    swapper *s = p;
    while (!atomic_load(&s->stop)) {
        if (rename(s->dir, s->aside) != 0 || rename(s->link, s->dir) != 0) break;
        if (rename(s->dir, s->link) != 0 || rename(s->aside, s->dir) != 0) break;
        atomic_fetch_add(&s->swaps, 1);
    }
    return NULL;
}

static void race(ws_fixture *f, ws_tools *t, size_t rounds) {
    if (under_valgrind()) rounds = 64; // threads take turns there, slowly
    swapper s = {.dir = ws_path(f, "docs"), .aside = ws_path(f, "aside"), .link = ws_path(f, "link")};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, swap, &s), 0);
    size_t read = 0;
    for (size_t i = 0; i < rounds; i++) {
        static const char *const calls[][2] = {{"read", "{\"path\":\"docs/a.md\"}"},
                                               {"grep", "{\"pattern\":\"e\",\"path\":\"docs\"}"},
                                               {"grep", "{\"pattern\":\"e\"}"},
                                               {"kb_search", "{\"query\":\"fine OUTSIDE\"}"},
                                               {"glob", "{\"pattern\":\"docs/*\"}"}};
        size_t k = i % 16 ? i % 2 ? 0 : 1 + i % 3 / 2 : i / 16 % 5;
        bool is_error;
        arena *a = arena_new(), *own = f->a;
        f->a = a; // thousands of answers are not kept
        str text = ws_call(t, calls[k][0], calls[k][1], &is_error);
        bool escaped = str_find(text, S("OUTSIDE")) != SIZE_MAX && k != 3;
        escaped =
            escaped || str_find(text, S("out/")) != SIZE_MAX || str_find(text, S("other.md")) != SIZE_MAX;
        if (escaped) print_message("%s: " STR_FMT "\n", calls[k][0], STR_ARG(text));
        read += k == 0 && !is_error;
        f->a = own;
        arena_free(a);
        if (escaped) {
            atomic_store(&s.stop, true);
            pthread_join(thread, NULL);
            fail_msg("escaped in round %zu", i);
        }
    }
    atomic_store(&s.stop, true);
    pthread_join(thread, NULL);
    // Both sides of the swap were seen.
    assert_true(read > 0 && atomic_load(&s.swaps) > 0);
}

static void test_tools_access__a_directory_swapped_for_a_link_lets_nothing_out(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "fine\n");
    ws_write(f, "/out/a.md", "OUTSIDE line\n");
    ws_write(f, "/out/other.md", "OUTSIDE line\n");
    ws_link(f, "../out", "link");
    ws_tools *t = fs_tools(f, "knowledge: [{name: K, path: 'docs/**'}]\n");
    race(f, t, 4000);
}

static void test_tools_access__a_prefix_swapped_for_a_link_lets_nothing_out(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "fine\n");
    ws_write(f, "secrets/a.md", "OUTSIDE line\n");
    ws_write(f, "secrets/other.md", "OUTSIDE line\n");
    ws_link(f, "secrets", "link");
    ws_tools *t = fs_tools(f, "permissions: {read: [docs]}\n");
    race(f, t, 4000);
}

// --- Odd workspaces

static void test_tools_access__a_workspace_that_moved_lets_links_lead_nowhere(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/a.md", "fine\n");
    ws_write(f, ".env", "TOKEN\n");
    ws_link(f, "../.env", "docs/l.txt");
    ws_tools *t = fs_tools(f, "");
    assert_int_equal(rename(f->ws, ws_path(f, "/moved")), 0);
    ws_says(t, "read", "{\"path\":\"docs/a.md\"}", "fine", NULL);
    ws_refuses(t, "read", "{\"path\":\"docs/l.txt\"}", "!TOKEN", NULL);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(test_tools_access__##name, ws_setup, ws_teardown)
    const struct CMUnitTest tests[] = {
        T(paths_that_leave_the_workspace_are_refused),
        T(listings_never_show_what_lies_behind_a_link_that_leaves),
        T(links_that_stay_inside_are_followed),
        T(only_regular_files_are_read),
        T(permissions_narrow_read_glob_and_grep),
        T(a_link_leads_out_of_no_prefix),
        T(a_prefix_that_is_a_link_reaches_nothing),
        T(the_whole_workspace_as_prefix_is_the_workspace),
        T(declared_knowledge_and_skills_stay_readable),
        T(a_knowledge_glob_opens_nothing_below_deputy),
        T(deputys_folder_is_read_by_name_and_never_by_a_glob),
        T(memory_exists_for_no_other_tool),
        T(a_note_written_meanwhile_is_memory_too),
        T(a_mount_of_memory_is_memory),
        T(memory_that_cannot_be_told_apart_closes_everything),
        T(two_agents_never_see_each_others_notes),
        T(sensitive_files_are_denied_by_every_name),
        T(a_directory_swapped_for_a_link_lets_nothing_out),
        T(a_prefix_swapped_for_a_link_lets_nothing_out),
        T(a_workspace_that_moved_lets_links_lead_nowhere),
    };
    return cmocka_run_group_tests_name("tools_access", tests, NULL, NULL);
}

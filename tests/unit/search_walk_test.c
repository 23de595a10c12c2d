// Which files a source has: what globs, excludes and links mean, what is never entered, the limits, and what
// is said about it.
#include "search/search_int.h"
#include "support/dir_fixture.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// Patterns and names in the tables below are separated by blanks.
static strs words(arena *a, const char *text) {
    strs list = {0};
    str rest = str_z(text), word;
    for (bool more = rest.n > 0; more;) {
        more = str_cut(rest, ' ', &word, &rest);
        if (word.n) vec_push(a, &list, word);
    }
    return list;
}

static search_source source_of(arena *a, const char *include, const char *exclude) {
    strs in = words(a, include), out = words(a, exclude);
    return (search_source){
        .name = S("Manual"), .include = in.p, .n_include = in.n, .exclude = out.p, .n_exclude = out.n};
}

static walk_result walk_with(dir_fixture *f, search_space *space, const search_limits *limits) {
    walk_result r = {0};
    dep_err err = {0};
    space->root = f->dir;
    if (walk_sources(f->a, space, limits, &r, &err) != DEP_OK) fail_msg("%s", err.msg);
    return r;
}

static walk_result walk(dir_fixture *f, const char *include, const char *exclude) {
    search_source s = source_of(f->a, include, exclude);
    search_space space = {.sources = &s, .n_sources = 1};
    return walk_with(f, &space, &search_limits_default);
}

static const char *listed(dir_fixture *f, const walk_result *r) {
    strs paths = {0};
    for (vec_each(const walk_file, file, &r->files)) vec_push(f->a, &paths, file->path);
    return str_cz(f->a, str_join(f->a, paths.p, paths.n, S(" ")));
}

static void assert_files(dir_fixture *f, const char *include, const char *exclude, const char *want) {
    walk_result r = walk(f, include, exclude);
    const char *got = listed(f, &r);
    if (strcmp(got, want) != 0) fail_msg("%s without (%s): \"%s\", not \"%s\"", include, exclude, got, want);
}

static size_t count_cuts(const walk_result *r, const char *path, const char *reason) {
    size_t n = 0;
    for (vec_each(const cut_item, c, &r->cuts))
        n += (!path || str_eq(c->path, str_z(path))) && str_find(c->reason, str_z(reason)) != SIZE_MAX;
    return n;
}

static void assert_cut(const walk_result *r, const char *path, const char *reason) {
    if (count_cuts(r, path, reason) == 1) return;
    for (vec_each(const cut_item, c, &r->cuts))
        printf("# " STR_FMT ": " STR_FMT "\n", STR_ARG(c->path), STR_ARG(c->reason));
    fail_msg("not said once: %s: %s", path ? path : "(any)", reason);
}

static void touch(dir_fixture *f, const char *names) {
    strs list = words(f->a, names);
    for (vec_each(const str, name, &list)) temp_write(f->path, str_cz(f->a, *name), S("text\n"));
}

// --- Patterns ---

static void test_search_walk__globs_and_directories_name_files(void **state) {
    dir_fixture *f = *state;
    touch(f, "a.md b.txt docs/c.md docs/d.rst docs/deep/e.md docs2/f.md img/x.png [odd]/g.md");
    static const struct {
        const char *include, *exclude, *want;
    } cases[] = {
        {"**/*.md", "", "[odd]/g.md a.md docs/c.md docs/deep/e.md docs2/f.md"},
        {"*.md", "", "a.md"},
        {"docs/*", "", "docs/c.md docs/d.rst"},
        {"docs/**", "", "docs/c.md docs/d.rst docs/deep/e.md"},
        {"docs", "", "docs/c.md docs/d.rst docs/deep/e.md"},
        {"docs/", "", "docs/c.md docs/d.rst docs/deep/e.md"},
        {"./docs", "", "docs/c.md docs/d.rst docs/deep/e.md"},
        {".", "", "[odd]/g.md a.md b.txt docs/c.md docs/d.rst docs/deep/e.md docs2/f.md img/x.png"},
        {"{docs2,img}", "", "docs2/f.md img/x.png"},
        {"\\[odd\\]", "", "[odd]/g.md"},
        {"docs/c.md", "", "docs/c.md"},
        {"docs/{c,e}.md", "", "docs/c.md"},
        {"docs/[cd].*", "", "docs/c.md docs/d.rst"},
        {"docs/?.md", "", "docs/c.md"},
        {"docs/**/*.md docs/deep/* docs", "", "docs/c.md docs/d.rst docs/deep/e.md"},
        {"docs/deep docs2", "", "docs/deep/e.md docs2/f.md"},
        {"DOCS", "", ""},
        {"nothing/here", "", ""},
        {"a.md/b", "", ""},
        {"**", "docs", "[odd]/g.md a.md b.txt docs2/f.md img/x.png"},
        {"**", "docs/**", "[odd]/g.md a.md b.txt docs2/f.md img/x.png"},
        {"docs", "docs/*", "docs/deep/e.md"},
        {"docs", "**/deep", "docs/c.md docs/d.rst"},
        {"docs", "**/*.md", "docs/d.rst"},
        {"docs", "**", ""},
        {"docs", ".", ""},
        {"docs/deep", "docs", ""},
        // Each alternative by itself: one that names a directory covers it, whatever stands beside it.
        {"**", "{docs,*.txt}", "[odd]/g.md a.md docs2/f.md img/x.png"},
        {"**", "{*.txt,docs}", "[odd]/g.md a.md docs2/f.md img/x.png"},
        {"**", "{docs/**,i*/*}", "[odd]/g.md a.md b.txt docs2/f.md"},
        {"docs", "docs/{*.md,deep}", "docs/d.rst"},
        {"docs", "{docs/*,x}", "docs/deep/e.md"},
        {"docs", "docs/d*", "docs/c.md docs/deep/e.md"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_files(f, cases[i].include, cases[i].exclude, cases[i].want);
}

static void test_search_walk__what_nobody_means_is_found_only_by_its_name(void **state) {
    dir_fixture *f = *state;
    touch(f, "a.md .env .github/w.yml .git/config .git/logs/l.md sub/.git/config sub/.hidden.md sub/s.md "
             "CVS/c.md .svn/s.md");
    touch(f, "node_modules/p/r.md node_modules/p/node_modules/q/r.md lib/node_modules/x.md");
    static const struct {
        const char *include, *want;
    } cases[] = {
        {"**/*", "a.md sub/s.md"},
        {".", "a.md sub/s.md"},
        {"**/.*", ".env sub/.hidden.md"},
        {".github", ".github/w.yml"},
        {".*/*", ".github/w.yml"},
        {".git/**", ".git/config .git/logs/l.md"},
        {".git/config", ".git/config"},
        {"**/.git/*", ".git/config sub/.git/config"},
        {"node_modules/*/*.md", "node_modules/p/r.md"},
        {"node_modules", "node_modules/p/node_modules/q/r.md node_modules/p/r.md"},
        {"{node_modules,sub}/**/r.md", "node_modules/p/node_modules/q/r.md node_modules/p/r.md"},
        {"**/*.md node_modules/p/*.txt", "a.md sub/s.md"},
        {"CVS/*", "CVS/c.md"},
        {"C?S/*", ""},
        {"[C]VS/*", ""},
        {"node_module?/**", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_files(f, cases[i].include, "", cases[i].want);
}

static void test_search_walk__dot_deputy_is_never_entered(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, ".deputy/agents/a.md .deputy/memory/MEMORY.md sub/.deputy/x.md docs/d.md");
    link_to(f, "../.deputy/memory", "docs/notes");
    link_to(f, ".deputy", "visible");
    static const char *const patterns[] = {".deputy",           ".deputy/**",      ".*/**/*.md",
                                           "sub/.deputy/x.md",  "**/.deputy/**",   ".deputy/memory/**",
                                           "{.deputy,nope}/**", "visible",         ".deputy/agents",
                                           "docs/notes/**",     "visible/agents/*"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        walk_result r = walk(f, patterns[i], "");
        if (r.files.n) fail_msg("%s finds " STR_FMT, patterns[i], STR_ARG(r.files.p[0].path));
        assert_true(count_cuts(&r, NULL, "below .deputy, which is never searched") > 0);
    }
    assert_files(f, "**/*.md", "", "docs/d.md");
}

static void test_search_walk__patterns_that_leave_are_refused_with_the_reason(void **state) {
    dir_fixture *f = *state;
    static const struct {
        const char *pattern, *says;
    } cases[] = {
        {"/etc/*", "absolute"}, {"../x", ".."},         {"docs/../../x", ".."}, {"{/etc,docs}/*", "absolute"},
        {"{a,../b}", ".."},     {"docs/[a", "without"}, {"docs/{a", "without"}, {"", "empty"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str pattern = str_z(cases[i].pattern);
        for (int excluding = 0; excluding < 2; excluding++) {
            str all = S("**");
            search_source s = {.name = S("Manual"), .include = excluding ? &all : &pattern, .n_include = 1};
            s.exclude = &pattern;
            s.n_exclude = excluding ? 1 : 0;
            search_space space = {.root = f->dir, .sources = &s, .n_sources = 1};
            size_t n = 0;
            dep_err err = {0};
            assert_int_equal(search_count(&space, &n, &err), DEP_ERR_INVALID);
            assert_says(&err, "source \"Manual\"");
            assert_says(&err, cases[i].says);
        }
    }
    search_source s = source_of(f->a, "**", "");
    s.encoding = S("EBCDIC-37");
    search_space space = {.root = f->dir, .sources = &s, .n_sources = 1};
    dep_err err = {0};
    search_corpus *c = NULL;
    assert_int_equal(search_open(&space, &c, &err), DEP_ERR_INVALID);
    assert_says(&err, "EBCDIC-37");
}

static void test_search_walk__a_source_without_files_is_said(void **state) {
    dir_fixture *f = *state;
    touch(f, "docs/a.md");
    search_source s[2] = {source_of(f->a, "manual/**/*.md", ""), source_of(f->a, "docs", "")};
    s[0].name = S("Gone");
    search_space space = {.sources = s, .n_sources = 2};
    walk_result r = walk_with(f, &space, &search_limits_default);
    assert_string_equal(listed(f, &r), "docs/a.md");
    assert_cut(&r, "Gone", "source matches no file");
    assert_int_equal(r.cuts.n, 1);
}

static void test_search_walk__counting_reads_no_file(void **state) {
    dir_fixture *f = *state;
    touch(f, "docs/a.md docs/b.md docs/c.txt x.md");
    search_source s[3] = {source_of(f->a, "docs/*.md docs/a.*", ""), source_of(f->a, "**/*.md", "docs/b.md"),
                          source_of(f->a, "none", "")};
    search_space space = {.root = f->dir, .sources = s, .n_sources = 3};
    size_t counts[3] = {9, 9, 9};
    assert_int_equal(search_count(&space, counts, NULL), DEP_OK);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 0);
}

// --- Links and odd files ---

static void test_search_walk__links_are_followed_only_inside(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, "docs/a.md shared/s.md shared/deep/t.md top.md");
    link_to(f, "../shared", "docs/inside");
    link_to(f, "../top.md", "docs/one.md");
    link_to(f, "../nowhere.md", "docs/dangling.md");
    link_to(f, "../../../../../../../etc/hostname", "docs/out.md");
    link_to(f, "/etc", "docs/etc");
    char absolute[4200];
    snprintf(absolute, sizeof absolute, "%s/top.md", f->path);
    link_to(f, absolute, "docs/abs.md");
    walk_result r = walk(f, "docs", "");
    assert_string_equal(listed(f, &r), "docs/a.md docs/inside/deep/t.md docs/inside/s.md docs/one.md");
    assert_cut(&r, "docs/dangling.md", "symbolic link to nothing");
    assert_cut(&r, "docs/out.md", "symbolic link leaves the directory");
    assert_cut(&r, "docs/etc", "absolute symbolic link");
    assert_cut(&r, "docs/abs.md", "absolute symbolic link");
    assert_int_equal(r.cuts.n, 4);
    // Through a link named in the pattern as well.
    assert_files(f, "docs/inside/**/*.md", "", "docs/inside/deep/t.md docs/inside/s.md");
    assert_files(f, "docs/one.md", "", "docs/one.md");
}

static void test_search_walk__links_cannot_undo_an_exclude(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, "docs/a.md private/p.md");
    link_to(f, "../private", "docs/way");
    assert_files(f, "docs", "", "docs/a.md docs/way/p.md");
    assert_files(f, "docs", "private", "docs/a.md");
    assert_files(f, "docs", "private/**", "docs/a.md");
}

static void test_search_walk__loops_end(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, "docs/a.md docs/b/b.md");
    link_to(f, ".", "docs/self");
    link_to(f, "..", "docs/b/up");
    link_to(f, "../docs", "docs/again");
    link_to(f, "ring2", "docs/ring1");
    link_to(f, "ring1", "docs/ring2");
    walk_result r = walk(f, "docs", "");
    assert_string_equal(listed(f, &r), "docs/a.md docs/b/b.md");
    assert_int_equal(count_cuts(&r, NULL, "symbolic link back to a directory above it"), 3);
    assert_int_equal(count_cuts(&r, "docs/ring1", ""), 1);
    assert_cut(&r, "docs/ring1", "symbolic link in a ring of links");
    assert_cut(&r, "docs/ring2", "symbolic link in a ring of links");
}

static void test_search_walk__pipes_and_sockets_are_named_and_not_opened(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, "docs/a.md");
    assert_int_equal(mkfifoat(f->dir, "docs/pipe.md", 0600), 0);
    int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int n = snprintf(name.sun_path, sizeof name.sun_path, "%s/docs/s.md", f->path);
    bool fits = n > 0 && (size_t)n < sizeof name.sun_path;
    if (fits) assert_int_equal(bind(s, (struct sockaddr *)&name, sizeof name), 0);
    close(s);
    link_to(f, "pipe.md", "docs/to-pipe.md");
    walk_result r = walk(f, "docs/*.md", "");
    assert_string_equal(listed(f, &r), "docs/a.md");
    assert_int_equal(count_cuts(&r, NULL, "not a regular file"), fits ? 3 : 2);
    // A name that no pattern asks for is not worth a word.
    r = walk(f, "docs/a.*", "");
    assert_int_equal(r.cuts.n, 0);
}

static int look_without_rights(dir_fixture *f) {
    if (geteuid() == 0 && (chmod(f->path, 0755) != 0 || setuid(65534) != 0)) return 2;
    walk_result r = walk(f, "docs", "");
    bool ok = r.files.n == 1 && count_cuts(&r, "docs/locked", "unreadable: Permission denied") == 1 &&
              r.cuts.p[0].loses;
    return ok ? 0 : 1;
}

static void test_search_walk__a_locked_directory_is_named(void **state) {
    dir_fixture *f = *state;
    touch(f, "docs/a.md docs/locked/b.md");
    assert_int_equal(fchmodat(f->dir, "docs/locked", 0, 0), 0);
    assert_int_equal(in_child(look_without_rights, f), 0);
    assert_int_equal(fchmodat(f->dir, "docs/locked", 0700, 0), 0);
}

static void test_search_walk__without_openat2_links_are_named(void **state) {
    dir_fixture *f = *state;
    if (file_has_openat2()) skip(); // run under valgrind, which does not know the call
    touch(f, "docs/a.md top.md");
    link_to(f, "../top.md", "docs/one.md");
    walk_result r = walk(f, "docs", "");
    assert_string_equal(listed(f, &r), "docs/a.md");
    assert_cut(&r, "docs/one.md", "has no openat2");
}

// --- The caller's refusal ---

typedef struct {
    arena *a;
    strs asked;
    const char *no;
} refuser;

static const char *refuse(void *p, str path, const struct stat *st) {
    refuser *r = p;
    str noted = str_fmt(r->a, "%s" STR_FMT, S_ISDIR(st->st_mode) ? "d:" : "f:", STR_ARG(path));
    vec_push(r->a, &r->asked, noted);
    return r->no && str_eq(path, str_z(r->no)) ? "not for you" : NULL;
}

static void test_search_walk__directories_are_refused_by_either_name(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, "docs/a.md other/o.md other/deep/p.md");
    link_to(f, "../other", "docs/way");
    refuser r = {.a = f->a};
    search_source s = source_of(f->a, "docs", "");
    search_space space = {.sources = &s, .n_sources = 1, .refuse = refuse, .ctx = &r};
    walk_result w = walk_with(f, &space, &search_limits_default);
    assert_int_equal(w.files.n, 3);
    str asked = str_join(f->a, r.asked.p, r.asked.n, S(" "));
    assert_text(asked, "d:docs/ d:docs/way/ d:other/ d:docs/way/deep/ d:other/deep/");
    r.no = "other/";
    w = walk_with(f, &space, &search_limits_default);
    assert_string_equal(listed(f, &w), "docs/a.md");
    assert_cut(&w, "docs/way", "not for you");
    r.no = "docs/way/deep/";
    w = walk_with(f, &space, &search_limits_default);
    assert_string_equal(listed(f, &w), "docs/a.md docs/way/o.md");
}

// --- Limits ---

static walk_result walk_limited(dir_fixture *f, const char *include, search_limits limits) {
    search_source s = source_of(f->a, include, "");
    search_space space = {.sources = &s, .n_sources = 1};
    return walk_with(f, &space, &limits);
}

static void test_search_walk__file_limit_holds_at_n_and_says_so_after(void **state) {
    dir_fixture *f = *state;
    touch(f, "d/a.md d/b.md d/c.md");
    search_limits limits = search_limits_default;
    limits.files = 3;
    walk_result r = walk_limited(f, "d", limits);
    assert_int_equal(r.files.n, 3);
    assert_int_equal(r.cuts.n, 0);
    limits.files = 2;
    r = walk_limited(f, "d", limits);
    assert_string_equal(listed(f, &r), "d/a.md d/b.md");
    assert_cut(&r, "d/c.md", "too many files: the walk stopped here");
    assert_true(r.cuts.p[0].loses);
}

static void test_search_walk__entry_limit_holds_at_n_and_says_so_after(void **state) {
    dir_fixture *f = *state;
    touch(f, "d/a.md d/b.txt d/e/c.md");
    search_limits limits = search_limits_default;
    limits.entries = 4;
    walk_result r = walk_limited(f, "d/**/*.md", limits);
    assert_int_equal(r.files.n, 2);
    assert_int_equal(r.cuts.n, 0);
    limits.entries = 3;
    r = walk_limited(f, "d/**/*.md", limits);
    assert_int_equal(r.files.n, 1);
    assert_cut(&r, "d/e", "too many directory entries");
}

static void nested(dir_fixture *f, char *path, size_t size, int depth) {
    size_t n = 0;
    for (int i = 0; i < depth; i++) n += (size_t)snprintf(path + n, size - n, "d/");
    snprintf(path + n, size - n, "x.md");
    temp_write(f->path, path, S("text\n"));
}

static void test_search_walk__depth_limit_holds_at_n_and_says_so_after(void **state) {
    dir_fixture *f = *state;
    char path[512], deeper[512];
    nested(f, path, sizeof path, SEARCH_DEPTH_MAX);
    assert_files(f, "**/*.md", "", path);
    assert_files(f, path, "", path);
    nested(f, deeper, sizeof deeper, SEARCH_DEPTH_MAX + 1);
    walk_result r = walk(f, "**/*.md", "");
    assert_string_equal(listed(f, &r), path);
    assert_int_equal(count_cuts(&r, NULL, "nested too deep"), 1);
    r = walk(f, deeper, "");
    assert_int_equal(r.files.n, 0);
    assert_int_equal(count_cuts(&r, NULL, "nested too deep"), 1);
}

// The longest path that the system takes is searched; what lies deeper is named, however deep.
static void test_search_walk__path_limit_holds_at_n_and_says_so_after(void **state) {
    dir_fixture *f = *state;
    enum { DEEP = 16, LONG = 240, LEFT = FILE_PATH_MAX - DEEP * (LONG + 1) };
    char name[LONG + 1] = {0}, last[LEFT + 2] = {0};
    memset(name, 'd', LONG);
    memset(last, 'f', LEFT);
    int at[DEEP + 1] = {f->dir};
    for (int i = 0; i < DEEP; i++) {
        assert_int_equal(mkdirat(at[i], name, 0700), 0);
        at[i + 1] = openat(at[i], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_true(at[i + 1] >= 0);
    }
    for (int longer = 0; longer < 4; longer++) {
        // A file of n bytes, one of n + 1, a link of n + 1, and a directory of n bytes with a file in it.
        memset(last, 'f', LEFT + 1);
        last[LEFT + (longer == 1 || longer == 2)] = 0;
        int fd = -1;
        if (longer == 2) {
            assert_int_equal(symlinkat(".", at[DEEP], last), 0);
        } else if (longer < 2) {
            fd = openat(at[DEEP], last, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        } else {
            assert_int_equal(mkdirat(at[DEEP], last, 0700), 0);
            int dir = openat(at[DEEP], last, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            fd = openat(dir, "x", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
            close(dir);
        }
        if (fd >= 0) close(fd);
        walk_result r = walk(f, "**", "");
        assert_int_equal(r.files.n, longer == 0);
        assert_int_equal(count_cuts(&r, NULL, "path longer than the system takes: not searched"), longer > 0);
        if (longer) assert_true(r.cuts.p[0].loses);
        if (longer == 3) {
            int dir = openat(at[DEEP], last, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            assert_int_equal(unlinkat(dir, "x", 0), 0);
            close(dir);
        }
        assert_int_equal(unlinkat(at[DEEP], last, longer == 3 ? AT_REMOVEDIR : 0), 0);
    }
    for (int i = DEEP; i > 0; i--) {
        close(at[i]);
        assert_int_equal(unlinkat(at[i - 1], name, AT_REMOVEDIR), 0);
    }
}

static void test_search_walk__link_limit_holds_at_n_and_says_so_after(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    touch(f, "a/x.md d/y.md");
    link_to(f, "../a", "d/l1");
    link_to(f, "../a", "d/l2");
    search_limits limits = search_limits_default;
    limits.links = 2;
    walk_result r = walk_limited(f, "d", limits);
    assert_string_equal(listed(f, &r), "d/l1/x.md d/l2/x.md d/y.md");
    assert_int_equal(r.cuts.n, 0);
    limits.links = 1;
    r = walk_limited(f, "d", limits);
    assert_string_equal(listed(f, &r), "d/l1/x.md d/y.md");
    assert_cut(&r, "d/l2", "too many linked directories");
}

static bool always(void *ctx) {
    ++*(int *)ctx;
    return true;
}

static void test_search_walk__a_cancelled_walk_stops(void **state) {
    dir_fixture *f = *state;
    touch(f, "a/x.md a/y.md b/z.md");
    int asked = 0;
    search_source s = source_of(f->a, "**", "");
    search_space space = {.sources = &s, .n_sources = 1, .cancelled = always, .ctx = &asked};
    walk_result r = walk_with(f, &space, &search_limits_default);
    assert_true(r.cancelled);
    assert_int_equal(asked, 1);
    assert_int_equal(r.files.n, 0);
}

static void test_search_walk__order_of_creation_does_not_matter(void **state) {
    dir_fixture *f = *state;
    touch(f, "one/a.md one/a/b.md one/a-b.md one/é.md one/B.md");
    touch(f, "two/B.md two/é.md two/a-b.md two/a/b.md two/a.md");
    walk_result one = walk(f, "one", ""), two = walk(f, "two", "");
    assert_string_equal(listed(f, &one), "one/B.md one/a-b.md one/a.md one/a/b.md one/é.md");
    assert_int_equal(one.files.n, two.files.n);
    for (size_t i = 0; i < one.files.n; i++) {
        str x = one.files.p[i].path, y = two.files.p[i].path;
        assert_true(str_eq(str_sub(x, 3, x.n), str_sub(y, 3, y.n)));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(test_search_walk__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(globs_and_directories_name_files),
        TEST(what_nobody_means_is_found_only_by_its_name),
        TEST(dot_deputy_is_never_entered),
        TEST(patterns_that_leave_are_refused_with_the_reason),
        TEST(a_source_without_files_is_said),
        TEST(counting_reads_no_file),
        TEST(links_are_followed_only_inside),
        TEST(links_cannot_undo_an_exclude),
        TEST(loops_end),
        TEST(pipes_and_sockets_are_named_and_not_opened),
        TEST(a_locked_directory_is_named),
        TEST(without_openat2_links_are_named),
        TEST(directories_are_refused_by_either_name),
        TEST(file_limit_holds_at_n_and_says_so_after),
        TEST(entry_limit_holds_at_n_and_says_so_after),
        TEST(depth_limit_holds_at_n_and_says_so_after),
        TEST(path_limit_holds_at_n_and_says_so_after),
        TEST(link_limit_holds_at_n_and_says_so_after),
        TEST(a_cancelled_walk_stops),
        TEST(order_of_creation_does_not_matter),
    };
    return cmocka_run_group_tests_name("search_walk", tests, NULL, NULL);
}

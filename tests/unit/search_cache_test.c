// Corpora that are kept. After whatever has been done to the files, a search with a cache answers as one that
// reads everything anew: that is the oracle of most cases here, with changes told by the kernel and without.
#include "search/search_int.h"
#include "support/dir_fixture.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const str everything[] = {S_INIT("**/*")};
static const search_source manual[] = {{.name = S_INIT("Manual"), .include = everything, .n_include = 1}};

static search_space space_of(dir_fixture *f, search_cache *cache) {
    return (search_space){.root = f->dir, .sources = manual, .n_sources = 1, .cache = cache};
}

// The whole answer, as bytes.
static str answer_of(arena *a, const search_space *space, str query) {
    search_corpus *c;
    search_result r = {0};
    dep_err err;
    if (search_open(space, &c, &err) != DEP_OK) fail_msg("%s", err.msg);
    search_query q = {.query = query, .limit = 50};
    if (search_run(a, c, &q, &r, &err) != DEP_OK) fail_msg("%s", err.msg);
    search_close(c);
    buf b = buf_new(a, 0);
    r.notice = (str){0}; // of kept corpora alone
    search_json(&b, &r);
    return buf_str(&b);
}

static void assert_current(dir_fixture *f, const search_space *space, const char *query) {
    search_space plain = *space;
    plain.cache = NULL;
    arena *a = arena_new();
    str kept = answer_of(a, space, str_z(query)), read = answer_of(a, &plain, str_z(query));
    if (!str_eq(kept, read)) fail_msg("kept: " STR_FMT "\nread: " STR_FMT, STR_ARG(kept), STR_ARG(read));
    arena_free(a);
    (void)f;
}

static search_cache *new_cache(dir_fixture *f, bool blind) {
    // Watched from the first search on.
    search_cache *c = search_cache_new_with(f->a, SEARCH_CACHE_BYTES, SEARCH_CACHE_CORPORA);
    assert_non_null(c);
    if (blind) search_cache_blind(c);
    return c;
}

// --- Changes ---

typedef struct {
    uint64_t x;
} rng;

static uint32_t next(rng *r, uint32_t n) {
    r->x ^= r->x << 13;
    r->x ^= r->x >> 7;
    r->x ^= r->x << 17;
    return (uint32_t)((r->x >> 33) % n);
}

static const char *const dirs[] = {".", "d", "d/e", "x", "x/y/z"};
static const char *const ways[] = {"d", "d/e", "x", "x/y", "x/y/z", "to", "a.md", "d/a.md"};
enum { WAYS = sizeof ways / sizeof *ways };
static const char *const files[] = {"a.md", "b.txt", "c.md", "Übung.md"};
static const char *const texts[] = {
    "# Head\nneedle one\n",
    "needle\n",
    "nothing\n",
    "two needle\nneedle needle\n",
    "\0\0binary needle",
    "caf\xE9 needle r\xE9sum\xE9\n",
    "",
    "# A\n## B\nNeedle in b\n退款 needle\n",
};
static const size_t lengths[] = {19, 7, 8, 26, 15, 20, 0, 35};

static str random_path(arena *a, rng *r) {
    return path_join(a, str_z(dirs[next(r, sizeof dirs / sizeof *dirs)]),
                     str_z(files[next(r, sizeof files / sizeof *files)]));
}

static void write_file(dir_fixture *f, str path, rng *r) {
    size_t t = next(r, sizeof texts / sizeof *texts);
    int dir = -1;
    if (dir_make_at(f->dir, path_dir(path), 0755, &dir, NULL) != DEP_OK) return;
    int fd = openat(dir, path_base(path).p,
                    O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644);
    if (fd >= 0) {
        assert_int_equal(write(fd, texts[t], lengths[t]), lengths[t]);
        close(fd);
    }
    close(dir);
}

// One thing that somebody may do to a directory of files. What fails, fails.
static void change(dir_fixture *f, arena *a, rng *r) {
    char *one = str_cz(a, random_path(a, r)), *two = str_cz(a, random_path(a, r));
    int done = 0;
    switch (next(r, 12)) {
    case 0:
    case 1:
    case 2: write_file(f, str_z(one), r); break;
    case 3: done = unlinkat(f->dir, one, 0); break;
    case 4: done = renameat(f->dir, one, f->dir, two); break;
    case 5: done = renameat(f->dir, "d", f->dir, "x/d2"); break;
    case 6: done = renameat(f->dir, "x/d2", f->dir, "d"); break;
    case 7: done = linkat(f->dir, one, f->dir, two, 0); break;
    case 8: done = symlinkat("a.md", f->dir, two); break;
    case 9: done = symlinkat("x", f->dir, "to"); break;
    case 10: done = unlinkat(f->dir, "to", 0); break;
    default: done = mkfifoat(f->dir, one, 0600); break;
    }
    (void)done;
}

// Writes into a file that is there, at its end or in its middle, or takes its end away.
static void touch_up(dir_fixture *f, char *path, rng *r) {
    int fd = openat(f->dir, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    int done = 0;
    switch (next(r, 4)) {
    case 0: done = (int)pwrite(fd, "Needle\n", 7, lseek(fd, 0, SEEK_END)); break;
    case 1: done = (int)pwrite(fd, "退款", 6, (off_t)next(r, 12)); break;
    case 2: done = ftruncate(fd, (off_t)next(r, 20)); break;
    default: done = fchmod(fd, next(r, 2) ? 0600 : 0644); break;
    }
    (void)done;
    close(fd);
}

// What moves, replaces or takes away whole directories and links.
static void change_tree(dir_fixture *f, arena *a, rng *r) {
    char *one = str_cz(a, random_path(a, r)), *two = str_cz(a, random_path(a, r));
    const char *from = ways[next(r, WAYS)], *to = ways[next(r, WAYS)];
    int done = 0, dir = -1;
    switch (next(r, 11)) {
    case 0: touch_up(f, one, r); break;
    case 1: done = renameat2(f->dir, one, f->dir, two, RENAME_EXCHANGE); break;
    case 2: done = renameat2(f->dir, from, f->dir, to, RENAME_EXCHANGE); break;
    case 3: done = renameat(f->dir, from, f->dir, to); break;
    case 4: done = unlinkat(f->dir, from, AT_REMOVEDIR); break;
    case 5:
        if (dir_make_at(f->dir, str_z(from), 0755, &dir, NULL) == DEP_OK) close(dir);
        break;
    case 6: done = symlinkat(to, f->dir, from); break;
    case 7: done = symlinkat("../x/y", f->dir, two); break;
    // Out of what is searched, and back in under another name some time later.
    case 8: done = renameat(f->dir, from, f->dir, ".out/of"); break;
    case 9: done = renameat(f->dir, ".out/of", f->dir, to); break;
    default: done = unlinkat(f->dir, from, 0); break;
    }
    (void)done;
}

// Whole trees are moved about too: what they held at the beginning comes back now and then.
static void random_trees(dir_fixture *f, const search_space *space, uint64_t seed) {
    rng r = {seed};
    temp_write(f->path, ".out/hidden.md", S("needle\n"));
    for (int i = 0; i < 150; i++) {
        arena *a = arena_new();
        for (uint32_t n = next(&r, 4); n; n--) {
            if (next(&r, 2))
                change(f, a, &r);
            else
                change_tree(f, a, &r);
        }
        arena_free(a);
        assert_current(f, space, next(&r, 2) ? "needle" : "退款 one");
    }
}

static void random_changes(dir_fixture *f, search_cache *cache, uint64_t seed) {
    rng r = {seed};
    search_space space = space_of(f, cache);
    for (int i = 0; i < 250; i++) {
        arena *a = arena_new();
        for (uint32_t n = next(&r, 4); n; n--) change(f, a, &r);
        arena_free(a);
        assert_current(f, &space, next(&r, 2) ? "needle" : "退款 one");
    }
}

static void test_search_cache__whatever_changes_is_seen_when_it_is_told(void **state) {
    random_changes(*state, new_cache(*state, false), 7);
}

static void test_search_cache__whatever_changes_is_seen_when_nothing_is_told(void **state) {
    random_changes(*state, new_cache(*state, true), 8);
}

// A corpus is watched only once it has been looked at often: many files make that soon.
static void test_search_cache__whatever_changes_is_seen_before_it_is_watched_and_after(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 40; i++)
        temp_write(f->path, str_cz(f->a, str_fmt(f->a, "many/%d.md", i)), S("needle\n"));
    random_changes(f, search_cache_new(f->a), 9);
}

// Files that belong to several sources, excludes, and a budget that holds only some of them.
static search_space several(dir_fixture *f, search_cache *cache) {
    static const str in_d[] = {S_INIT("d/**/*.md"), S_INIT("x/y")}, top[] = {S_INIT("*"), S_INIT("d/*")},
                     without[] = {S_INIT("x/y/z"), S_INIT("**/c.md")};
    static const search_source sources[] = {
        {.name = S_INIT("Manual"), .include = everything, .n_include = 1, .exclude = without, .n_exclude = 2},
        {.name = S_INIT("Deep"), .include = in_d, .n_include = 2},
        {.name = S_INIT("Top"), .include = top, .n_include = 2, .encoding = S_INIT("latin1")},
    };
    return (search_space){.root = f->dir, .sources = sources, .n_sources = 3, .cache = cache};
}

static void test_search_cache__whole_trees_that_move_are_followed(void **state) {
    dir_fixture *f = *state;
    for (uint64_t seed = 21; seed < 25; seed++) {
        search_cache *cache = new_cache(f, seed % 3 == 0);
        search_space space = seed % 2 ? space_of(f, cache) : several(f, cache);
        if (seed > 22) space.max_bytes = 60;
        if (seed > 22) space.max_file = 25;
        random_trees(f, &space, seed);
    }
}

// Which version a search gets: the same pointer means that nothing was read.
static const corpus_file *first_file(const search_space *space) {
    search_corpus *c;
    dep_err err;
    if (search_open(space, &c, &err) != DEP_OK) fail_msg("%s", err.msg);
    const corpus_file *f = c->files;
    search_close(c);
    return f;
}

static void test_search_cache__what_did_not_change_is_not_read_again(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    temp_write(f->path, "d/b.md", S("needle\n"));
    search_space space = space_of(f, new_cache(f, false));
    const corpus_file *before = first_file(&space);
    assert_ptr_equal(first_file(&space), before);
    // Something that is no matter of the sources.
    temp_write(f->path, ".hidden", S("x"));
    search_corpus *c;
    dep_err err;
    assert_int_equal(search_open(&space, &c, &err), DEP_OK);
    const char *text = c->files[0].folded.p;
    search_close(c);
    // One file changes: the other one's text stays where it is.
    temp_write(f->path, "d/b.md", S("other\n"));
    assert_int_equal(search_open(&space, &c, &err), DEP_OK);
    assert_ptr_equal(c->files[0].folded.p, text);
    assert_text(c->files[1].folded, "other\n");
    search_close(c);
}

static void test_search_cache__a_search_keeps_the_version_it_began_with(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle old\n"));
    search_space space = space_of(f, new_cache(f, false));
    search_corpus *old, *now;
    search_result r = {0};
    dep_err err;
    assert_int_equal(search_open(&space, &old, &err), DEP_OK);
    temp_write(f->path, "a.md", S("needle new\n"));
    assert_int_equal(search_open(&space, &now, &err), DEP_OK);
    search_query q = {.query = S("needle")};
    assert_int_equal(search_run(f->a, old, &q, &r, &err), DEP_OK);
    assert_text(r.hits.p[0].text, "needle old");
    r = (search_result){0};
    assert_int_equal(search_run(f->a, now, &q, &r, &err), DEP_OK);
    assert_text(r.hits.p[0].text, "needle new");
    search_close(now);
    search_close(old);
}

static void test_search_cache__slow_ways_of_looking_are_said(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    for (int blind = 0; blind < 2; blind++) {
        search_space space = space_of(f, new_cache(f, blind));
        search_corpus *c;
        search_result r = {0};
        dep_err err;
        assert_int_equal(search_open(&space, &c, &err), DEP_OK);
        assert_int_equal(search_run(f->a, c, &(search_query){.query = S("needle")}, &r, &err), DEP_OK);
        assert_int_equal(str_find(r.notice, S("every file is looked at")) != SIZE_MAX, blind);
        search_close(c);
    }
}

// --- What the kernel does not tell ---

// More changes than the kernel keeps: what it dropped is found all the same.
static void test_search_cache__changes_that_were_dropped_are_found(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle old\n"));
    search_space space = space_of(f, new_cache(f, false));
    assert_current(f, &space, "needle");
    str most = read_all("/proc/sys/fs/inotify/max_queued_events");
    int64_t limit = strtoll(most.p, NULL, 10);
    free((char *)most.p);
    if (limit > 100000) skip();
    // Each round is three events, none like the one before it.
    for (int64_t i = 0; i < limit / 3 + 10; i++) {
        int fd = openat(f->dir, ".noise", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(unlinkat(f->dir, ".noise", 0), 0);
    }
    temp_write(f->path, "a.md", S("needle new\n"));
    temp_write(f->path, "new/b.md", S("needle\n"));
    assert_current(f, &space, "needle");
    // And told again from then on.
    temp_write(f->path, "new/b.md", S("needle again\n"));
    assert_current(f, &space, "needle");
}

enum { CANNOT = 77 };

static bool put(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return ok;
}

static bool is_current(dir_fixture *f, const search_space *space) {
    search_space plain = *space;
    plain.cache = NULL;
    return str_eq(answer_of(f->a, space, S("needle")), answer_of(f->a, &plain, S("needle")));
}

// Three directories may be watched, four are there.
static int run_out_of_watches(dir_fixture *f) {
    uid_t uid = getuid();
    if (unshare(CLONE_NEWUSER) != 0) return CANNOT;
    char map[64];
    snprintf(map, sizeof map, "0 %u 1", uid);
    if (!put("/proc/self/uid_map", map) || !put("/proc/sys/user/max_inotify_watches", "3")) return CANNOT;
    search_space space = space_of(f, new_cache(f, false));
    search_corpus *c;
    search_result r = {0};
    if (search_open(&space, &c, NULL) != DEP_OK) return 2;
    if (search_run(f->a, c, &(search_query){.query = S("needle")}, &r, NULL) != DEP_OK) return 3;
    search_close(c);
    if (str_find(r.notice, S("fs.inotify.max_user_watches")) == SIZE_MAX) return 4;
    temp_write(f->path, "d/e/b.md", S("needle new\n"));
    if (!is_current(f, &space)) return 5;
    temp_write(f->path, "x/y/c.md", S("needle new\n"));
    return is_current(f, &space) ? 0 : 6;
}

static void test_search_cache__when_watches_run_out_that_is_said_and_nothing_is_missed(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    temp_write(f->path, "d/e/b.md", S("needle\n"));
    temp_write(f->path, "x/a.md", S("needle\n"));
    int code = in_child(run_out_of_watches, f);
    if (code == CANNOT) skip();
    assert_int_equal(code, 0);
}

static int mount_and_unmount(dir_fixture *f) {
    if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) != 0) return CANNOT;
    char *d = str_cz(f->a, at(f, "d"));
    search_space space = space_of(f, new_cache(f, false));
    if (!is_current(f, &space)) return 2;
    if (mount("none", d, "tmpfs", 0, "size=64k") != 0) return CANNOT;
    if (!is_current(f, &space)) return 3;
    temp_write(f->path, "d/in.md", S("needle in the mount\n"));
    if (!is_current(f, &space)) return 4;
    temp_write(f->path, "d/in.md", S("needle changed\n"));
    if (!is_current(f, &space)) return 5;
    if (umount2(d, MNT_DETACH) != 0) return 6;
    if (!is_current(f, &space)) return 7;
    temp_write(f->path, "d/b.md", S("needle below\n"));
    return is_current(f, &space) ? 0 : 8;
}

static void test_search_cache__mounts_that_come_and_go_are_noticed(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    temp_write(f->path, "d/b.md", S("needle\n"));
    int code = in_child(mount_and_unmount, f);
    if (code == CANNOT) skip();
    assert_int_equal(code, 0);
}

// --- Budget and memory ---

static void test_search_cache__a_grown_file_meets_the_same_budget(void **state) {
    dir_fixture *f = *state;
    search_space space = space_of(f, new_cache(f, false));
    space.max_bytes = 4096;
    space.max_file = 2048;
    temp_write(f->path, "a.md", S("needle\n"));
    temp_write(f->path, "b.md", S("needle\n"));
    assert_current(f, &space, "needle");
    char text[3000];
    for (size_t n = 1000; n <= sizeof text; n += 500) {
        memset(text, 'x', n);
        memcpy(text, "needle\n", 7);
        temp_write(f->path, "a.md", str_n(text, n));
        temp_write(f->path, "b.md", str_n(text, n));
        assert_current(f, &space, "needle");
    }
    temp_write(f->path, "a.md", S("needle\n"));
    assert_current(f, &space, "needle");
}

static void test_search_cache__no_more_corpora_are_kept_than_may_be(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    search_cache *c = search_cache_new_with(f->a, SIZE_MAX, 3);
    size_t n;
    for (size_t i = 1; i <= 5; i++) {
        search_space space = space_of(f, c);
        space.max_file = 1000 + i;
        assert_current(f, &space, "needle");
        search_cache_size(c, &n);
        assert_int_equal(n, i < 3 ? i : 3);
    }
    // The size of two corpora, and one byte less.
    size_t one = search_cache_size(c, &n) / 3;
    for (size_t less = 0; less < 2; less++) {
        c = search_cache_new_with(f->a, 2 * one - less, 10);
        for (size_t i = 1; i <= 2; i++) {
            search_space space = space_of(f, c);
            space.max_file = 1000 + i;
            assert_current(f, &space, "needle");
        }
        search_cache_size(c, &n);
        assert_int_equal(n, 2 - less);
    }
}

// --- What may not be read ---

typedef struct {
    ino_t refused[8];
    size_t n, asked;
    uint64_t epoch;
} rules;

static const char *refuse(void *p, str path, const struct stat *st) {
    rules *r = p;
    (void)path;
    r->asked++;
    for (size_t i = 0; i < r->n; i++)
        if (r->refused[i] == st->st_ino) return "belongs to memory";
    return NULL;
}

static uint64_t epoch(void *p) {
    return ((rules *)p)->epoch;
}

static ino_t inode_of(dir_fixture *f, const char *name) {
    struct stat st;
    assert_int_equal(fstatat(f->dir, name, &st, AT_SYMLINK_NOFOLLOW), 0);
    return st.st_ino;
}

static void test_search_cache__what_is_kept_is_judged_anew_when_the_rules_change(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle a\n"));
    temp_write(f->path, "b.md", S("needle b\n"));
    rules r = {.epoch = 1};
    search_space space = space_of(f, new_cache(f, false));
    space.refuse = refuse;
    space.epoch = epoch;
    space.ctx = &r;
    assert_current(f, &space, "needle");
    r.asked = 0;
    assert_true(str_find(answer_of(f->a, &space, S("needle")), S("needle b")) != SIZE_MAX);
    assert_int_equal(r.asked, 0); // nothing changed
    r.refused[r.n++] = inode_of(f, "b.md");
    r.epoch++;
    str answer = answer_of(f->a, &space, S("needle"));
    assert_true(str_find(answer, S("needle b")) == SIZE_MAX &&
                str_find(answer, S("belongs to memory")) != SIZE_MAX);
    assert_current(f, &space, "needle");
    r.n = 0;
    r.epoch++;
    assert_true(str_find(answer_of(f->a, &space, S("needle")), S("needle b")) != SIZE_MAX);
}

static void test_search_cache__without_an_epoch_every_file_is_judged_at_every_search(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle a\n"));
    rules r = {0};
    search_space space = space_of(f, new_cache(f, false));
    space.refuse = refuse;
    space.ctx = &r;
    assert_current(f, &space, "needle");
    r.refused[r.n++] = inode_of(f, "a.md");
    assert_true(str_find(answer_of(f->a, &space, S("needle")), S("needle a")) == SIZE_MAX);
}

// What was said of a file when it was read is said as long as the file is the same, whichever of its names
// are left.
static void test_search_cache__what_is_said_of_a_file_outlives_its_first_name(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    temp_write(f->path, "m.md", S("needle\nneedle\nneedle\nneedle\n"));
    temp_write(f->path, "n.md", S("needle caf\xE9 d\xE9j\xE0 vu"));
    link_to(f, "m.md", "a.md");
    link_to(f, "n.md", "b.md");
    // So that they are taken over: what has just changed is read again.
    struct stat st;
    struct timespec now;
    assert_int_equal(fstatat(f->dir, "n.md", &st, 0), 0);
    do {
        usleep(1000);
        clock_gettime(CLOCK_REALTIME, &now);
    } while ((now.tv_sec - st.st_ctim.tv_sec) * 1000 + (now.tv_nsec - st.st_ctim.tv_nsec) / 1000000 < 100);
    search_space space = space_of(f, new_cache(f, false));
    space.max_file = 20;
    assert_current(f, &space, "needle");
    assert_int_equal(unlinkat(f->dir, "a.md", 0), 0);
    assert_int_equal(unlinkat(f->dir, "b.md", 0), 0);
    assert_current(f, &space, "needle");
}

static const char *refuse_a(void *p, str path, const struct stat *st) {
    (void)p, (void)st;
    return str_eq(path, S("docs/a.md")) ? "sensitive file" : NULL;
}

// What lies behind links is asked for at each search, all of it: one link that breaks hides no other change.
static void test_search_cache__a_link_that_breaks_hides_no_other_change(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    temp_write(f->path, "store/a.md", S("needle a\n"));
    temp_write(f->path, "store/b.md", S("needle b\n"));
    temp_write(f->path, "docs/c.md", S("needle c\n"));
    link_to(f, "../store/a.md", "docs/a.md");
    link_to(f, "../store/b.md", "docs/b.md");
    static const str docs[] = {S_INIT("docs")};
    search_source source = {.name = S("Manual"), .include = docs, .n_include = 1};
    rules r = {.epoch = 1};
    search_space space = space_of(f, new_cache(f, false));
    space.sources = &source;
    space.refuse = refuse_a;
    space.epoch = epoch;
    space.ctx = &r;
    assert_current(f, &space, "needle");
    assert_int_equal(unlinkat(f->dir, "store/a.md", 0), 0);
    temp_write(f->path, "store/b.md", S("needle b, another one\n"));
    assert_current(f, &space, "needle");
}

typedef struct {
    dir_fixture *f;
    rng r;
    bool on;
} meddler;

// Asked of each directory and file while a search walks and reads: files and directories change just then.
static const char *meddle(void *p, str path, const struct stat *st) {
    meddler *m = p;
    (void)path, (void)st;
    if (!m->on || next(&m->r, 3)) return NULL;
    arena *a = arena_new();
    if (next(&m->r, 3))
        change(m->f, a, &m->r);
    else
        change_tree(m->f, a, &m->r);
    arena_free(a);
    return NULL;
}

static uint64_t no_epoch(void *p) {
    (void)p;
    return 1;
}

// What the search in the middle of it finds is nobody's guess; the next one is right.
static void test_search_cache__what_changes_while_it_is_read_is_seen_by_the_next_search(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, ".out/hidden.md", S("needle\n"));
    for (int blind = 0; blind < 2; blind++) {
        meddler m = {.f = f, .r = {(uint64_t)31 + (uint64_t)blind}};
        search_space space = space_of(f, new_cache(f, blind));
        space.refuse = meddle;
        space.epoch = no_epoch;
        space.ctx = &m;
        for (int i = 0; i < 60; i++) {
            arena *a = arena_new();
            for (int k = 0; k < 3; k++) change(f, a, &m.r);
            m.on = true;
            (void)answer_of(a, &space, S("needle"));
            arena_free(a);
            m.on = false;
            assert_current(f, &space, "needle");
        }
    }
}

// Where a link leads is not watched: what appears there is found all the same.
static void test_search_cache__a_link_to_nothing_is_asked_again(void **state) {
    if (!file_has_openat2()) skip(); // links are refused then
    dir_fixture *f = *state;
    temp_write(f->path, "docs/c.md", S("needle c\n"));
    temp_write(f->path, "store/deep/x", S("x"));
    assert_int_equal(mkfifoat(f->dir, "store/pipe.md", 0600), 0);
    link_to(f, "../store/file.md", "docs/file.md");
    link_to(f, "../store/dir", "docs/dir");
    link_to(f, "../store/pipe.md", "docs/pipe.md");
    link_to(f, "../store/ring", "docs/ring.md");
    link_to(f, "ring", "store/ring");
    static const str docs[] = {S_INIT("docs")};
    search_source source = {.name = S("Manual"), .include = docs, .n_include = 1};
    search_space space = space_of(f, new_cache(f, false));
    space.sources = &source;
    assert_current(f, &space, "needle");
    const corpus_file *before = first_file(&space);
    assert_ptr_equal(first_file(&space), before); // nothing appeared: nothing is walked
    temp_write(f->path, "store/file.md", S("needle at the end of a link\n"));
    assert_current(f, &space, "needle");
    temp_write(f->path, "store/dir/d.md", S("needle in a directory\n"));
    assert_current(f, &space, "needle");
    assert_int_equal(unlinkat(f->dir, "store/pipe.md", 0), 0);
    temp_write(f->path, "store/pipe.md", S("needle no pipe\n"));
    assert_current(f, &space, "needle");
    assert_int_equal(unlinkat(f->dir, "store/ring", 0), 0);
    temp_write(f->path, "store/ring", S("needle no ring\n"));
    assert_current(f, &space, "needle");
}

// --- Threads ---

enum { THREADS = 50, ROUNDS = 12 };

typedef struct {
    const search_space *space;
    atomic_bool *stop;
    size_t answers, wrong;
} reader;

// Every version of a file has as many lines as the number in them says.
static void *read_on(void *p) {
    reader *k = p;
    for (int i = 0; i < ROUNDS || !atomic_load(k->stop); i++) {
        arena *a = arena_new();
        search_corpus *c;
        search_result r = {0};
        if (search_open(k->space, &c, NULL) == DEP_OK) {
            search_query q = {.query = S("needle"), .limit = 50};
            if (search_run(a, c, &q, &r, NULL) == DEP_OK) k->answers++;
            for (vec_each(const search_hit, h, &r.hits))
                k->wrong += !str_starts(h->text, S("needle number "));
            search_close(c);
        }
        arena_free(a);
        if (i > 10 * ROUNDS) break;
    }
    return NULL;
}

static void test_search_cache__fifty_threads_search_while_files_change(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 20; i++)
        temp_write(f->path, str_cz(f->a, str_fmt(f->a, "d%d/f%d.md", i % 3, i)), S("needle number 0\n"));
    search_space space = space_of(f, new_cache(f, false));
    atomic_bool stop = false;
    reader k[THREADS];
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++) {
        k[i] = (reader){.space = &space, .stop = &stop};
        assert_int_equal(pthread_create(&t[i], NULL, read_on, &k[i]), 0);
    }
    rng r = {3};
    for (int i = 0; i < 60; i++) {
        char *path = str_cz(f->a, str_fmt(f->a, "d%u/f%u.md", next(&r, 4), next(&r, 20)));
        if (next(&r, 4) == 0)
            (void)unlinkat(f->dir, path, 0);
        else
            temp_write(f->path, path, str_fmt(f->a, "needle number %d\n", i));
        usleep(500);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_true(k[i].answers >= ROUNDS);
        assert_int_equal(k[i].wrong, 0);
    }
    assert_current(f, &space, "needle");
}

typedef struct {
    atomic_bool in, go;
} gate;

static bool held(void *p) {
    gate *g = p;
    atomic_store(&g->in, true);
    while (!atomic_load(&g->go)) usleep(100);
    return false;
}

static void *open_held(void *p) {
    search_corpus *c;
    if (search_open(p, &c, NULL) == DEP_OK) search_close(c);
    return NULL;
}

static bool always(void *p) {
    (void)p;
    return true;
}

static void test_search_cache__who_waits_for_another_search_can_be_cancelled(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a.md", S("needle\n"));
    gate g = {false, false};
    search_space first = space_of(f, new_cache(f, false)), second = first;
    first.cancelled = held;
    first.ctx = &g;
    second.cancelled = always;
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, open_held, &first), 0);
    while (!atomic_load(&g.in)) usleep(100);
    str answer = answer_of(f->a, &second, S("needle"));
    assert_true(str_find(answer, S("\"cancelled\":true")) != SIZE_MAX);
    atomic_store(&g.go, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    second.cancelled = NULL;
    assert_current(f, &second, "needle");
}

static void test_search_cache__a_cancelled_search_leaves_nothing_half_read(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < 300; i++)
        temp_write(f->path, str_cz(f->a, str_fmt(f->a, "f%03d.md", i)), S("needle\n"));
    search_space space = space_of(f, new_cache(f, false)), stopped = space;
    stopped.cancelled = always;
    assert_true(str_find(answer_of(f->a, &stopped, S("needle")), S("\"cancelled\":true")) != SIZE_MAX);
    assert_current(f, &space, "needle");
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_search_cache__whatever_changes_is_seen_when_it_is_told),
        CASE(test_search_cache__whatever_changes_is_seen_when_nothing_is_told),
        CASE(test_search_cache__whatever_changes_is_seen_before_it_is_watched_and_after),
        CASE(test_search_cache__whole_trees_that_move_are_followed),
        CASE(test_search_cache__what_did_not_change_is_not_read_again),
        CASE(test_search_cache__a_search_keeps_the_version_it_began_with),
        CASE(test_search_cache__slow_ways_of_looking_are_said),
        CASE(test_search_cache__changes_that_were_dropped_are_found),
        CASE(test_search_cache__when_watches_run_out_that_is_said_and_nothing_is_missed),
        CASE(test_search_cache__mounts_that_come_and_go_are_noticed),
        CASE(test_search_cache__a_grown_file_meets_the_same_budget),
        CASE(test_search_cache__no_more_corpora_are_kept_than_may_be),
        CASE(test_search_cache__what_is_kept_is_judged_anew_when_the_rules_change),
        CASE(test_search_cache__without_an_epoch_every_file_is_judged_at_every_search),
        CASE(test_search_cache__what_is_said_of_a_file_outlives_its_first_name),
        CASE(test_search_cache__what_changes_while_it_is_read_is_seen_by_the_next_search),
        CASE(test_search_cache__a_link_to_nothing_is_asked_again),
        CASE(test_search_cache__a_link_that_breaks_hides_no_other_change),
        CASE(test_search_cache__fifty_threads_search_while_files_change),
        CASE(test_search_cache__who_waits_for_another_search_can_be_cancelled),
        CASE(test_search_cache__a_cancelled_search_leaves_nothing_half_read),
    };
    return cmocka_run_group_tests_name("search_cache", tests, nullptr, nullptr);
}

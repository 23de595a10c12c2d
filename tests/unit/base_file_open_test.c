// Opening beneath a directory (rule B1) and directories of state (rule B4).
#include "base/file_int.h"
#include "support/dir_fixture.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

// --- Opening: links and paths -----------------------------------------------------------------------------

// The directory that the link cases are opened beneath is `root`; `outside.txt` stands beside it.
static int make_links(dir_fixture *f) {
    temp_write(f->path, "outside.txt", S("outside"));
    temp_write(f->path, "root/plain.txt", S("plain"));
    temp_write(f->path, "root/sub/inner.txt", S("inner"));
    link_to(f, "sub/inner.txt", "root/inside");
    link_to(f, "sub/../plain.txt", "root/updown");
    link_to(f, "../plain.txt", "root/sub/up");
    link_to(f, "sub", "root/subdir");
    link_to(f, "../outside.txt", "root/out");
    link_to(f, "..", "root/parent");
    link_to(f, "nothing", "root/dangling");
    link_to(f, "ring", "root/ring");
    link_to(f, str_cz(f->a, at(f, "root/plain.txt")), "root/absolute");
    link_to(f, "absolute", "root/chain");
    link_to(f, "/proc/self/exe", "root/magic");
    int root = openat(f->dir, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    return root;
}

typedef struct {
    const char *path;
    dep_status no_links, inside, walk; // walk: FILE_LINKS_INSIDE where the kernel has no openat2
    const char *reason;                // with FILE_LINKS_INSIDE
} link_case;

static const link_case link_cases[] = {
    {"plain.txt", DEP_OK, DEP_OK, DEP_OK, ""},
    {"sub/inner.txt", DEP_OK, DEP_OK, DEP_OK, ""},
    {"./sub/./inner.txt", DEP_OK, DEP_OK, DEP_OK, ""},
    {"inside", DEP_ERR_REFUSED, DEP_OK, DEP_ERR_REFUSED, ""},
    {"updown", DEP_ERR_REFUSED, DEP_OK, DEP_ERR_REFUSED, ""},
    {"sub/up", DEP_ERR_REFUSED, DEP_OK, DEP_ERR_REFUSED, ""},
    {"subdir/inner.txt", DEP_ERR_REFUSED, DEP_OK, DEP_ERR_REFUSED, ""},
    {"subdir/up", DEP_ERR_REFUSED, DEP_OK, DEP_ERR_REFUSED, ""},
    {"out", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "out is a link that leads out"},
    {"parent/outside.txt", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED,
     "parent is a link that leads out"},
    {"parent/root/plain.txt", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED,
     "parent is a link that leads out"},
    {"absolute", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "absolute is a link to an absolute path"},
    {"chain", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "chain is a link"},
    {"magic", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "magic is a link to an absolute path"},
    {"ring", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "ring is a link that cannot be followed"},
    {"dangling", DEP_ERR_REFUSED, DEP_ERR_NOT_FOUND, DEP_ERR_REFUSED, "dangling is a link to something"},
    {"missing", DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND, "cannot open missing"},
    {"sub/missing", DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND, "cannot open sub/missing"},
    {"gone/missing", DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND, "cannot open gone/missing"},
    {"plain.txt/x", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "not a directory"},
    {"sub", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, "sub is a directory"},
    {".", DEP_ERR_REFUSED, DEP_ERR_REFUSED, DEP_ERR_REFUSED, ". is a directory"},
    {"../outside.txt", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "'..'"},
    {"sub/../plain.txt", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "'..'"},
    {"sub/..", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "'..'"},
    {"", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "empty"},
    {"/etc/passwd", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "absolute"},
    {"sub//inner.txt", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "empty component"},
    {"plain.txt/", DEP_ERR_INVALID, DEP_ERR_INVALID, DEP_ERR_INVALID, "empty component"},
};

static void check_link_case(int root, const link_case *c, file_openat2 *fn, file_links links,
                            dep_status want) {
    dep_err err = {0};
    int fd = -1;
    dep_status got = file_open_with(fn, root, str_z(c->path), links, OPEN_FILE, &fd, NULL, &err);
    if (got != want)
        fail_msg("'%s' (links %d): %s, not %s: %s", c->path, links, err_name(got), err_name(want), err.msg);
    assert_int_equal(got == DEP_OK, fd >= 0);
    if (got == DEP_OK) assert_int_equal(close(fd), 0);
    if (got != DEP_OK && fn && links == FILE_LINKS_INSIDE) assert_says(&err, c->reason);
    // Where only a link stands in the way, the walk says so.
    if (!fn && got == DEP_ERR_REFUSED && c->inside == DEP_OK) assert_says(&err, "is a symbolic link");
}

static void test_base_file_open__links_are_followed_only_where_allowed_and_only_inside(void **state) {
    dir_fixture *f = *state;
    if (!file_has_openat2()) skip();
    int root = make_links(f);
    for (size_t i = 0; i < sizeof link_cases / sizeof *link_cases; i++) {
        const link_case *c = &link_cases[i];
        check_link_case(root, c, file_openat2_real, FILE_NO_LINKS, c->no_links);
        check_link_case(root, c, file_openat2_real, FILE_LINKS_INSIDE, c->inside);
    }
    close(root);
}

static void test_base_file_open__without_openat2_no_link_is_followed_at_all(void **state) {
    dir_fixture *f = *state;
    int root = make_links(f);
    for (size_t i = 0; i < sizeof link_cases / sizeof *link_cases; i++) {
        const link_case *c = &link_cases[i];
        check_link_case(root, c, NULL, FILE_NO_LINKS, c->no_links);
        check_link_case(root, c, NULL, FILE_LINKS_INSIDE, c->walk);
    }
    dep_err err = {0};
    int fd = -1;
    assert_int_equal(file_open_with(NULL, root, S("inside"), FILE_LINKS_INSIDE, OPEN_FILE, &fd, NULL, &err),
                     DEP_ERR_REFUSED);
    assert_says(&err, "no openat2");
    close(root);
}

static void test_base_file_open__a_refused_link_is_named_by_its_place_in_the_path(void **state) {
    dir_fixture *f = *state;
    int root = make_links(f), fd = -1;
    dep_err err = {0};
    assert_int_equal(file_open_at(root, S("subdir/inner.txt"), FILE_NO_LINKS, &fd, NULL, &err),
                     DEP_ERR_REFUSED);
    assert_string_equal(err.msg, "subdir is a symbolic link, and links are not followed here");
    assert_int_equal(file_open_at(root, S("sub/up"), FILE_NO_LINKS, &fd, NULL, &err), DEP_ERR_REFUSED);
    assert_string_equal(err.msg, "sub/up is a symbolic link, and links are not followed here");
    close(root);
}

static void test_base_file_open__magic_links_of_proc_are_never_followed(void **state) {
    (void)state;
    static const char *const paths[] = {"exe", "fd/1", "cwd/README.md", "root/etc/passwd"};
    int proc = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(proc >= 0);
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        for (int links = FILE_NO_LINKS; links <= FILE_LINKS_INSIDE; links++) {
            int fd = -1;
            assert_int_equal(file_open_at(proc, str_z(paths[i]), links, &fd, NULL, NULL), DEP_ERR_REFUSED);
            assert_int_equal(file_open_with(NULL, proc, str_z(paths[i]), links, OPEN_FILE, &fd, NULL, NULL),
                             DEP_ERR_REFUSED);
        }
    }
    close(proc);
}

static void test_base_file_open__path_limits_hold_at_n_and_one_more(void **state) {
    dir_fixture *f = *state;
    char path[FILE_PATH_MAX + 2];
    for (size_t i = 0; i < sizeof path; i++) path[i] = i % 2 ? '/' : 'a';
    int fd = -1;
    // 4,095 bytes end with a component, 4,096 with a slash.
    assert_int_equal(file_open_at(f->dir, str_n(path, FILE_PATH_MAX), FILE_NO_LINKS, &fd, NULL, NULL),
                     DEP_ERR_NOT_FOUND);
    path[FILE_PATH_MAX] = 'a';
    assert_int_equal(file_open_at(f->dir, str_n(path, FILE_PATH_MAX + 1), FILE_NO_LINKS, &fd, NULL, NULL),
                     DEP_ERR_INVALID);
    char name[256];
    memset(name, 'n', sizeof name);
    assert_int_equal(file_open_at(f->dir, str_n(name, 255), FILE_NO_LINKS, &fd, NULL, NULL),
                     DEP_ERR_NOT_FOUND);
    assert_int_equal(file_open_at(f->dir, str_n(name, 256), FILE_NO_LINKS, &fd, NULL, NULL), DEP_ERR_INVALID);
    assert_int_equal(file_replace_at(f->dir, str_n(name, 255), S("x"), 0600, NULL), DEP_OK);
    assert_int_equal(file_replace_at(f->dir, str_n(name, 256), S("x"), 0600, NULL), DEP_ERR_INVALID);
    assert_int_equal(file_open_at(f->dir, S("a\0b"), FILE_NO_LINKS, &fd, NULL, NULL), DEP_ERR_INVALID);
    assert_int_equal(fd, -1);
}

// --- Opening: kinds of files ------------------------------------------------------------------------------

static void test_base_file_open__only_regular_files_are_opened_and_a_pipe_does_not_block(void **state) {
    dir_fixture *f = *state;
    assert_int_equal(mkfifoat(f->dir, "pipe", 0600), 0);
    assert_int_equal(mkdirat(f->dir, "folder", 0700), 0);
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    assert_true((size_t)snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", f->path) <
                sizeof name.sun_path);
    assert_int_equal(bind(sock, (struct sockaddr *)&name, sizeof name), 0);
    int dev = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const struct {
        int dir;
        const char *name, *reason;
    } cases[] = {
        {f->dir, "pipe", "a pipe"},
        {f->dir, "folder", "a directory"},
        {f->dir, "socket", "a socket"},
        {dev, "null", "a device"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int walk = 0; walk < 2; walk++) {
            int fd = -1;
            dep_err err = {0};
            assert_int_equal(file_open_with(walk ? NULL : file_openat2_real, cases[i].dir,
                                            str_z(cases[i].name), FILE_LINKS_INSIDE, OPEN_FILE, &fd, NULL,
                                            &err),
                             DEP_ERR_REFUSED);
            assert_says(&err, cases[i].reason);
        }
    }
    close(sock);
    close(dev);
}

static void test_base_file_open__size_owner_and_links_come_from_the_open_descriptor(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a", S("12345"));
    assert_int_equal(linkat(f->dir, "a", f->dir, "b", 0), 0);
    struct stat st = {0};
    int fd = -1;
    assert_int_equal(file_open_at(f->dir, S("b"), FILE_NO_LINKS, &fd, &st, NULL), DEP_OK);
    assert_int_equal(st.st_size, 5);
    assert_int_equal(st.st_nlink, 2);
    assert_int_equal(st.st_uid, geteuid());
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
}

static void test_base_file_open__a_directory_is_opened_beneath_and_nothing_else_is_one(void **state) {
    dir_fixture *f = *state;
    int root = make_links(f), fd = -1;
    static const struct {
        const char *path;
        dep_status no_links, inside;
    } cases[] = {
        {"", DEP_OK, DEP_OK},
        {".", DEP_OK, DEP_OK},
        {"sub", DEP_OK, DEP_OK},
        {"subdir", DEP_ERR_REFUSED, DEP_OK},
        {"parent", DEP_ERR_REFUSED, DEP_ERR_REFUSED},
        {"plain.txt", DEP_ERR_REFUSED, DEP_ERR_REFUSED},
        {"inside", DEP_ERR_REFUSED, DEP_ERR_REFUSED},
        {"missing", DEP_ERR_NOT_FOUND, DEP_ERR_NOT_FOUND},
        {"..", DEP_ERR_INVALID, DEP_ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int links = FILE_NO_LINKS; links <= FILE_LINKS_INSIDE; links++) {
            if (links == FILE_LINKS_INSIDE && !file_has_openat2()) continue;
            dep_err err = {0};
            dep_status want = links == FILE_NO_LINKS ? cases[i].no_links : cases[i].inside;
            dep_status got = dir_open_at(root, str_z(cases[i].path), links, &fd, &err);
            if (got != want) fail_msg("'%s': %s: %s", cases[i].path, err_name(got), err.msg);
            if (got == DEP_OK) close(fd);
        }
    }
    close(root);
}

static void test_base_file_open__stat_sees_any_kind_but_keeps_the_rules_of_links(void **state) {
    dir_fixture *f = *state;
    int root = make_links(f);
    assert_int_equal(mkfifoat(root, "pipe", 0600), 0);
    struct stat st = {0};
    assert_int_equal(file_stat_at(root, S("pipe"), FILE_NO_LINKS, &st, NULL), DEP_OK);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(file_stat_at(root, S("sub"), FILE_NO_LINKS, &st, NULL), DEP_OK);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(file_stat_at(root, S("inside"), FILE_NO_LINKS, &st, NULL), DEP_ERR_REFUSED);
    assert_int_equal(file_stat_at(root, S("out"), FILE_LINKS_INSIDE, &st, NULL), DEP_ERR_REFUSED);
    assert_int_equal(file_stat_at(root, S("missing"), FILE_NO_LINKS, &st, NULL), DEP_ERR_NOT_FOUND);
    // The same without openat2.
    int fd = -1;
    assert_int_equal(file_open_with(NULL, root, S("pipe"), FILE_NO_LINKS, OPEN_STAT, &fd, &st, NULL), DEP_OK);
    assert_true(S_ISFIFO(st.st_mode));
    close(fd);
    static const char *const links[] = {"inside", "out", "subdir/inner.txt", "dangling"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        assert_int_equal(
            file_open_with(NULL, root, str_z(links[i]), FILE_LINKS_INSIDE, OPEN_STAT, &fd, &st, NULL),
            DEP_ERR_REFUSED);
    }
    close(root);
}

// --- Opening: the kernel's answers ------------------------------------------------------------------------

static int calls;           // of the doubles below
static int again;           // EAGAIN answers before the real one
static int answer;          // the errno that `always` gives
static struct open_how how; // what was asked last

static int sometimes(int dir, const char *path, const struct open_how *h) {
    calls++;
    how = *h;
    if (again-- > 0) {
        errno = EAGAIN;
        return -1;
    }
    return file_openat2_real(dir, path, h);
}

static int always(int dir, const char *path, const struct open_how *h) {
    (void)dir;
    (void)path;
    calls++;
    how = *h;
    errno = answer;
    return -1;
}

static void test_base_file_open__a_busy_path_is_tried_a_bounded_number_of_times(void **state) {
    dir_fixture *f = *state;
    if (!file_has_openat2()) skip();
    temp_write(f->path, "a", S("x"));
    int fd = -1;
    dep_err err = {0};
    calls = 0, again = FILE_RETRY_MAX;
    assert_int_equal(file_open_with(sometimes, f->dir, S("a"), FILE_LINKS_INSIDE, OPEN_FILE, &fd, NULL, &err),
                     DEP_OK);
    assert_int_equal(calls, FILE_RETRY_MAX + 1);
    close(fd);
    calls = 0, again = FILE_RETRY_MAX + 1;
    assert_int_equal(file_open_with(sometimes, f->dir, S("a"), FILE_LINKS_INSIDE, OPEN_FILE, &fd, NULL, &err),
                     DEP_ERR_IO);
    assert_int_equal(calls, FILE_RETRY_MAX + 1);
    assert_int_equal(err.os, EAGAIN);
}

static void test_base_file_open__the_kernel_is_asked_for_every_restriction(void **state) {
    dir_fixture *f = *state;
    int fd = -1;
    answer = ENOENT;
    assert_int_equal(file_open_with(always, f->dir, S("a"), FILE_NO_LINKS, OPEN_FILE, &fd, NULL, NULL),
                     DEP_ERR_NOT_FOUND);
    assert_int_equal(how.resolve, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS);
    assert_int_equal(how.flags & O_ACCMODE, O_RDONLY);
    assert_true(how.flags & O_NONBLOCK && how.flags & O_CLOEXEC && how.flags & O_NOCTTY);
    assert_int_equal(file_open_with(always, f->dir, S("a"), FILE_LINKS_INSIDE, OPEN_DIR, &fd, NULL, NULL),
                     DEP_ERR_NOT_FOUND);
    assert_int_equal(how.resolve, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS);
    assert_true(how.flags & O_DIRECTORY && how.flags & O_CLOEXEC);
}

static void test_base_file_open__a_kernel_or_filter_without_openat2_leads_to_the_walk(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "sub/a", S("x"));
    link_to(f, "a", "sub/l");
    static const int answers[] = {ENOSYS, EPERM};
    for (size_t i = 0; i < 2; i++) {
        answer = answers[i];
        int fd = -1;
        assert_int_equal(
            file_open_with(always, f->dir, S("sub/a"), FILE_NO_LINKS, OPEN_FILE, &fd, NULL, NULL), DEP_OK);
        close(fd);
        assert_int_equal(
            file_open_with(always, f->dir, S("sub/l"), FILE_LINKS_INSIDE, OPEN_FILE, &fd, NULL, NULL),
            DEP_ERR_REFUSED);
    }
    answer = EACCES;
    int fd = -1;
    dep_err err = {0};
    assert_int_equal(file_open_with(always, f->dir, S("sub/a"), FILE_NO_LINKS, OPEN_FILE, &fd, NULL, &err),
                     DEP_ERR_IO);
    assert_int_equal(err.os, EACCES);
}

static void test_base_file_open__running_out_of_descriptors_is_an_error_and_no_absence(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a", S("x"));
    struct rlimit was, none = {0};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none.rlim_max = was.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int fd = -1;
    dep_err err = {0};
    dep_status kernel = file_open_at(f->dir, S("a"), FILE_NO_LINKS, &fd, NULL, &err);
    dep_status walk = file_open_with(NULL, f->dir, S("a"), FILE_NO_LINKS, OPEN_FILE, &fd, NULL, NULL);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(kernel, DEP_ERR_IO);
    assert_int_equal(walk, DEP_ERR_IO);
    assert_int_equal(err.os, EMFILE);
}

// --- Directories ------------------------------------------------------------------------------------------

static void test_base_file_open__directories_are_made_beneath_but_never_through_links(void **state) {
    dir_fixture *f = *state;
    mode_t was = umask(022);
    int fd = -1;
    assert_int_equal(dir_make_at(f->dir, S("a/b/c"), 0700, &fd, NULL), DEP_OK);
    close(fd);
    assert_int_equal(mode_of(f, "a"), 0700);
    assert_int_equal(mode_of(f, "a/b/c"), 0700);
    assert_int_equal(dir_make_at(f->dir, S("a/b/c"), 0700, &fd, NULL), DEP_OK);
    close(fd);
    assert_int_equal(dir_make_at(f->dir, S("."), 0700, &fd, NULL), DEP_OK);
    close(fd);
    link_to(f, "a", "l");
    temp_write(f->path, "file", S("x"));
    assert_int_equal(dir_make_at(f->dir, S("l/new"), 0700, &fd, NULL), DEP_ERR_REFUSED);
    assert_int_equal(dir_make_at(f->dir, S("l"), 0700, &fd, NULL), DEP_ERR_REFUSED);
    assert_int_equal(dir_make_at(f->dir, S("file"), 0700, &fd, NULL), DEP_ERR_REFUSED);
    assert_int_equal(dir_make_at(f->dir, S("file/new"), 0700, &fd, NULL), DEP_ERR_REFUSED);
    assert_int_equal(dir_make_at(f->dir, S("a/../x"), 0700, &fd, NULL), DEP_ERR_INVALID);
    assert_int_equal(faccessat(f->dir, "a/new", F_OK, 0), -1);

    assert_int_equal(dir_make(at(f, "p/q//r/"), 0700, NULL), DEP_OK);
    assert_int_equal(mode_of(f, "p"), 0755);
    assert_int_equal(mode_of(f, "p/q"), 0755);
    assert_int_equal(mode_of(f, "p/q/r"), 0700);
    assert_int_equal(dir_make(at(f, "p/q/r"), 0700, NULL), DEP_OK);
    assert_int_equal(dir_make(at(f, "file"), 0700, NULL), DEP_ERR_REFUSED);
    assert_int_equal(dir_make(S("relative"), 0700, NULL), DEP_ERR_INVALID);
    assert_int_equal(dir_make(S("/"), 0700, NULL), DEP_OK);
    umask(was);
}

static void test_base_file_open__state_is_private_or_refused(void **state) {
    dir_fixture *f = *state;
    int fd = -1;
    dep_err err = {0};
    assert_int_equal(dir_open_private(at(f, "state"), false, &fd, &err), DEP_ERR_NOT_FOUND);
    assert_int_equal(dir_open_private(at(f, "x/state"), true, &fd, &err), DEP_OK);
    close(fd);
    assert_int_equal(mode_of(f, "x/state"), 0700);
    static const struct {
        mode_t mode;
        dep_status want;
        mode_t after;
    } modes[] = {
        {0700, DEP_OK, 0700},          {0755, DEP_OK, 0700},          {0701, DEP_OK, 0700},
        {0720, DEP_ERR_REFUSED, 0720}, {0702, DEP_ERR_REFUSED, 0702}, {01777, DEP_ERR_REFUSED, 01777},
    };
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(fchmodat(f->dir, "x/state", modes[i].mode, 0), 0);
        assert_int_equal(dir_open_private(at(f, "x/state/"), false, &fd, &err), modes[i].want);
        if (modes[i].want == DEP_OK) close(fd);
        assert_int_equal(mode_of(f, "x/state"), modes[i].after);
    }
    assert_int_equal(fchmodat(f->dir, "x/state", 0700, 0), 0);
    link_to(f, "x/state", "l");
    temp_write(f->path, "file", S("x"));
    assert_int_equal(dir_open_private(at(f, "l"), false, &fd, &err), DEP_ERR_REFUSED);
    assert_int_equal(dir_open_private(at(f, "l/"), true, &fd, &err), DEP_ERR_REFUSED);
    assert_int_equal(dir_open_private(at(f, "file"), false, &fd, &err), DEP_ERR_REFUSED);
    assert_int_equal(dir_open_private(S("relative"), false, &fd, &err), DEP_ERR_INVALID);
}

static void test_base_file_open__state_of_another_user_is_refused(void **state) {
    dir_fixture *f = *state;
    int fd = -1;
    dep_err err = {0};
    str foreign = S("/");
    if (geteuid() == 0) {
        assert_int_equal(mkdirat(f->dir, "theirs", 0700), 0);
        assert_int_equal(fchownat(f->dir, "theirs", 12345, 12345, 0), 0);
        foreign = at(f, "theirs");
    }
    assert_int_equal(dir_open_private(foreign, false, &fd, &err), DEP_ERR_REFUSED);
    assert_says(&err, "another user");
    if (geteuid() != 0) return;
    temp_write(f->path, "theirs.db", S("x"));
    assert_int_equal(fchownat(f->dir, "theirs.db", 12345, 12345, 0), 0);
    fd = openat(f->dir, "theirs.db", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_check_private(fd, S("theirs.db"), &err), DEP_ERR_REFUSED);
    assert_says(&err, "another user");
    close(fd);
}

static void test_base_file_open__a_file_of_state_that_others_can_read_is_refused(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "db", S("x"));
    int fd = openat(f->dir, "db", O_RDONLY | O_CLOEXEC);
    static const mode_t modes[] = {0600, 0400, 0640, 0604, 0620, 0601};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(fchmod(fd, modes[i]), 0);
        assert_int_equal(file_check_private(fd, S("db"), NULL), modes[i] & 077 ? DEP_ERR_REFUSED : DEP_OK);
    }
    close(fd);
}

#define T(name) cmocka_unit_test_setup_teardown(test_base_file_open__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(links_are_followed_only_where_allowed_and_only_inside),
        T(without_openat2_no_link_is_followed_at_all),
        T(a_refused_link_is_named_by_its_place_in_the_path),
        T(magic_links_of_proc_are_never_followed),
        T(path_limits_hold_at_n_and_one_more),
        T(only_regular_files_are_opened_and_a_pipe_does_not_block),
        T(size_owner_and_links_come_from_the_open_descriptor),
        T(a_directory_is_opened_beneath_and_nothing_else_is_one),
        T(stat_sees_any_kind_but_keeps_the_rules_of_links),
        T(a_busy_path_is_tried_a_bounded_number_of_times),
        T(the_kernel_is_asked_for_every_restriction),
        T(a_kernel_or_filter_without_openat2_leads_to_the_walk),
        T(running_out_of_descriptors_is_an_error_and_no_absence),
        T(directories_are_made_beneath_but_never_through_links),
        T(state_is_private_or_refused),
        T(state_of_another_user_is_refused),
        T(a_file_of_state_that_others_can_read_is_refused),
    };
    return cmocka_run_group_tests_name("base_file_open", tests, NULL, NULL);
}

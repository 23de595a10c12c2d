// Reading with limits, whole-file writes, listing.
#include "support/dir_fixture.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

// --- Reading ----------------------------------------------------------------------------------------------

static void test_base_file_io__reading_stops_at_its_limit(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "ten", S("0123456789"));
    temp_write(f->path, "none", S(""));
    struct stat st = {0};
    str text = {0};
    dep_err err = {0};
    assert_int_equal(file_read_at(f->a, f->dir, S("ten"), FILE_NO_LINKS, 10, &text, &st, &err), DEP_OK);
    assert_text(text, "0123456789");
    assert_int_equal(text.p[text.n], 0);
    assert_int_equal(st.st_size, 10);
    text = S("untouched");
    assert_int_equal(file_read_at(f->a, f->dir, S("ten"), FILE_NO_LINKS, 9, &text, &st, &err), DEP_ERR_LIMIT);
    assert_text(text, "untouched");
    assert_int_equal(file_read_at(f->a, f->dir, S("none"), FILE_NO_LINKS, 0, &text, NULL, &err), DEP_OK);
    assert_int_equal(text.n, 0);
    assert_int_equal(file_read(f->a, at(f, "ten"), 9, &text, &err), DEP_ERR_LIMIT);
    assert_int_equal(file_read(f->a, at(f, "ten"), 10, &text, &err), DEP_OK);

    int fd = openat(f->dir, "ten", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_read_fd(f->a, fd, 4, true, &text, &err), DEP_OK);
    assert_text(text, "0123");
    // From the start again, whatever was read before.
    assert_int_equal(file_read_fd(f->a, fd, 100, true, &text, &err), DEP_OK);
    assert_text(text, "0123456789");
    assert_int_equal(file_read_fd(f->a, fd, 0, true, &text, &err), DEP_OK);
    assert_int_equal(text.n, 0);
    close(fd);
}

static void test_base_file_io__a_file_that_has_less_or_more_than_its_size_is_read_as_it_is(void **state) {
    dir_fixture *f = *state;
    str text = {0};
    // The kernel's own files say 4,096 bytes and hold a few, or say 0 and hold many: as a file that shrinks
    // or grows.
    struct stat st;
    const char *shorter = "/sys/kernel/mm/transparent_hugepage/enabled";
    if (stat(shorter, &st) == 0 && st.st_size > 0) {
        assert_int_equal(file_read(f->a, str_z(shorter), 1 << 16, &text, NULL), DEP_OK);
        assert_in_range(text.n, 1, (size_t)st.st_size - 1);
    }
    assert_int_equal(file_read(f->a, S("/proc/self/status"), 1 << 16, &text, NULL), DEP_OK);
    assert_in_range(text.n, 100, 1 << 16);
    assert_int_equal(file_read(f->a, S("/proc/self/status"), 99, &text, NULL), DEP_ERR_LIMIT);
}

static int resize_often(dir_fixture *f) {
    int fd = openat(f->dir, "moving", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < 3000; i++) {
        if (ftruncate(fd, 0) != 0 || ftruncate(fd, 100000) != 0) return 1;
    }
    return 0;
}

static void test_base_file_io__a_file_that_shrinks_while_it_is_read_does_no_harm(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "moving", S("x"));
    pid_t pid = start_child(resize_often, f);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        str text = {0};
        assert_int_equal(file_read_at(f->a, f->dir, S("moving"), FILE_NO_LINKS, 100000, &text, NULL, NULL),
                         DEP_OK);
        assert_in_range(text.n, 0, 100000);
        arena_reset(f->a);
    }
    assert_int_equal(status, 0);
}

static void test_base_file_io__a_named_pipe_or_device_is_read_as_a_stream(void **state) {
    dir_fixture *f = *state;
    str text = {0};
    assert_int_equal(mkfifoat(f->dir, "pipe", 0600), 0);
    assert_int_equal(file_read(f->a, at(f, "pipe"), 10, &text, NULL), DEP_OK);
    assert_int_equal(text.n, 0);
    assert_int_equal(file_read(f->a, S("/dev/null"), 10, &text, NULL), DEP_OK);
    assert_int_equal(text.n, 0);
    assert_int_equal(file_read(f->a, S("/dev/zero"), 10, &text, NULL), DEP_ERR_LIMIT);
    assert_int_equal(file_read(f->a, str_z(f->path), 10, &text, NULL), DEP_ERR_REFUSED);
    assert_int_equal(file_read(f->a, at(f, "missing"), 10, &text, NULL), DEP_ERR_NOT_FOUND);
    assert_int_equal(file_read(f->a, S("a\0b"), 10, &text, NULL), DEP_ERR_INVALID);
    temp_write(f->path, "a", S("text"));
    link_to(f, "a", "l");
    assert_int_equal(file_read(f->a, at(f, "l"), 10, &text, NULL), DEP_OK);
    assert_text(text, "text");
}

static void test_base_file_io__a_stream_is_read_to_its_end_or_its_limit(void **state) {
    dir_fixture *f = *state;
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 20000};
    char bytes[20000];
    memset(bytes, 'b', sizeof bytes);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int over = 0; over < 2; over++) {
            if (over && sizes[i] == 0) continue;
            int ends[2];
            assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
            assert_int_equal(write(ends[1], bytes, sizes[i]), sizes[i]);
            close(ends[1]);
            str text = {0};
            dep_status got = file_read_stream(f->a, ends[0], sizes[i] - (size_t)over, &text, NULL);
            assert_int_equal(got, over ? DEP_ERR_LIMIT : DEP_OK);
            assert_int_equal(text.n, over ? 0 : sizes[i]);
            close(ends[0]);
        }
    }
}

// An arena that gives out `left` blocks and no more.
static int left;

static void *some_blocks(void *ctx, size_t n) {
    (void)ctx;
    return left-- > 0 ? malloc(n) : NULL;
}

static void free_block(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

static void test_base_file_io__no_memory_is_a_status_and_leaves_nothing_open(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a", S("0123456789"));
    const arena_source source = {.alloc = some_blocks, .free = free_block};
    // teardown counts the descriptors.
    for (int blocks = 1; blocks < 8; blocks++) {
        left = blocks;
        arena *a = arena_new_from(&source, true);
        str text = {0};
        dir_entries all = {0};
        dep_status read_status = file_read_at(a, f->dir, S("a"), FILE_NO_LINKS, 100, &text, NULL, NULL);
        assert_int_equal(read_status, blocks > 1 ? DEP_OK : DEP_ERR_NOMEM);
        left = blocks - 1;
        dep_status list_status = dir_list(a, f->dir, 100, &all, NULL);
        assert_true(list_status == DEP_OK || (list_status == DEP_ERR_NOMEM && blocks < 4));
        arena_free(a);
    }
}

// --- Writing ----------------------------------------------------------------------------------------------

static void test_base_file_io__replacing_keeps_the_mode_and_a_new_file_gets_the_asked_one(void **state) {
    dir_fixture *f = *state;
    mode_t was = umask(022);
    assert_int_equal(file_replace_at(f->dir, S("new"), S("one"), 0666, NULL), DEP_OK);
    assert_int_equal(mode_of(f, "new"), 0644);
    assert_int_equal(file_replace_at(f->dir, S("secret"), S("one"), 0600, NULL), DEP_OK);
    assert_int_equal(mode_of(f, "secret"), 0600);
    assert_int_equal(fchmodat(f->dir, "new", 0662, 0), 0);
    struct stat before, after;
    assert_int_equal(fstatat(f->dir, "new", &before, 0), 0);
    assert_int_equal(file_replace_at(f->dir, S("new"), S("two, longer"), 0600, NULL), DEP_OK);
    umask(was);
    assert_int_equal(fstatat(f->dir, "new", &after, 0), 0);
    assert_int_equal(mode_of(f, "new"), 0662);
    assert_int_not_equal(before.st_ino, after.st_ino);
    assert_text(text_of(f, "new"), "two, longer");
    assert_int_equal(file_replace_at(f->dir, S("new"), S(""), 0600, NULL), DEP_OK);
    assert_int_equal(text_of(f, "new").n, 0);
    assert_int_equal(entries(f), 2);
}

static void test_base_file_io__what_is_no_plain_file_is_not_replaced(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "target", S("kept"));
    link_to(f, "target", "link");
    link_to(f, "nothing", "dangling");
    assert_int_equal(mkfifoat(f->dir, "pipe", 0600), 0);
    assert_int_equal(mkdirat(f->dir, "folder", 0700), 0);
    static const char *const names[] = {"link", "dangling", "pipe", "folder"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        dep_err err = {0};
        assert_int_equal(file_replace_at(f->dir, str_z(names[i]), S("x"), 0600, &err), DEP_ERR_REFUSED);
        assert_says(&err, names[i]);
        assert_says(&err, i < 2 ? "symbolic link" : "not a regular file");
    }
    static const char *const bad[] = {"", ".", "..", "a/b", "/a", "target/"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(file_replace_at(f->dir, str_z(bad[i]), S("x"), 0600, NULL), DEP_ERR_INVALID);
        assert_int_equal(file_create_at(f->dir, str_z(bad[i]), S("x"), 0600, NULL), DEP_ERR_INVALID);
    }
    assert_int_equal(file_replace_at(f->dir, S("a\0b"), S("x"), 0600, NULL), DEP_ERR_INVALID);
    assert_text(text_of(f, "target"), "kept");
    assert_int_equal(entries(f), 5);
}

static void test_base_file_io__replacing_gives_a_new_file_and_leaves_other_names_alone(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a", S("former"));
    assert_int_equal(linkat(f->dir, "a", f->dir, "b", 0), 0);
    int fd = openat(f->dir, "a", O_RDONLY | O_CLOEXEC);
    assert_int_equal(file_replace_at(f->dir, S("a"), S("present"), 0600, NULL), DEP_OK);
    assert_text(text_of(f, "a"), "present");
    assert_text(text_of(f, "b"), "former");
    str text = {0};
    assert_int_equal(file_read_fd(f->a, fd, 100, false, &text, NULL), DEP_OK);
    assert_text(text, "former");
    close(fd);
}

static int replace_over_the_size_limit(dir_fixture *f) {
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = {4096, 4096};
    char bytes[8192] = {0};
    dep_err err = {0};
    if (setrlimit(RLIMIT_FSIZE, &small) != 0) return 1;
    if (file_replace_at(f->dir, S("a"), str_n(bytes, sizeof bytes), 0600, &err) != DEP_ERR_IO ||
        err.os != EFBIG)
        return 2;
    if (file_create_at(f->dir, S("b"), str_n(bytes, sizeof bytes), 0600, &err) != DEP_ERR_IO) return 3;
    return 0;
}

static void test_base_file_io__a_write_that_fails_keeps_the_former_file_and_no_temporary(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a", S("former"));
    assert_int_equal(in_child(replace_over_the_size_limit, f), 0);
    assert_text(text_of(f, "a"), "former");
    assert_int_equal(entries(f), 1);
}

enum { CANNOT_MOUNT = 77 };

static bool write_map(const char *path, const char *text) {
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) close(fd);
    return done;
}

// A mount namespace of our own; without the right to one, inside a user namespace in which we stay who we
// are.
static bool own_mounts(void) {
    char uid[64], gid[64];
    snprintf(uid, sizeof uid, "%u %u 1", (unsigned)geteuid(), (unsigned)geteuid());
    snprintf(gid, sizeof gid, "%u %u 1", (unsigned)getegid(), (unsigned)getegid());
    if (unshare(CLONE_NEWNS) == 0) return true;
    return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 && write_map("/proc/self/setgroups", "deny") &&
           write_map("/proc/self/uid_map", uid) && write_map("/proc/self/gid_map", gid);
}

static int replace_on_a_full_disk(dir_fixture *f) {
    if (!own_mounts()) return CANNOT_MOUNT;
    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL);
    if (mount("none", f->path, "tmpfs", 0, "size=64k") != 0) return CANNOT_MOUNT;
    int dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    static char bytes[200000];
    dep_err err = {0};
    if (file_replace_at(dir, S("a"), S("former"), 0600, &err) != DEP_OK) return 1;
    if (file_replace_at(dir, S("a"), str_n(bytes, sizeof bytes), 0600, &err) != DEP_ERR_IO ||
        err.os != ENOSPC)
        return 2;
    dir_entries all = {0};
    if (dir_list(f->a, dir, 10, &all, &err) != DEP_OK || all.n != 1) return 3;
    str text = {0};
    if (file_read_at(f->a, dir, S("a"), FILE_NO_LINKS, 100, &text, NULL, &err) != DEP_OK) return 4;
    return str_eq(text, S("former")) ? 0 : 5;
}

static void test_base_file_io__a_full_disk_keeps_the_former_file_and_no_temporary(void **state) {
    int code = in_child(replace_on_a_full_disk, *state);
    if (code == CANNOT_MOUNT) {
        print_message("no right to mount a small file system here\n");
        skip();
    }
    assert_int_equal(code, 0);
}

static int replace_often(dir_fixture *f) {
    char bytes[50000];
    for (int i = 0; i < 40; i++) {
        memset(bytes, 'a' + i % 26, sizeof bytes);
        if (file_replace_at(f->dir, S("a"), str_n(bytes, 1000 + (size_t)i * 1000), 0600, NULL) != DEP_OK)
            return 1;
    }
    return 0;
}

static void test_base_file_io__a_reader_sees_the_former_or_the_present_text_and_never_half(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "a", S("a"));
    pid_t pid = start_child(replace_often, f);
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        str text = {0};
        assert_int_equal(file_read_at(f->a, f->dir, S("a"), FILE_NO_LINKS, 1 << 20, &text, NULL, NULL),
                         DEP_OK);
        assert_true(text.n == 1 || text.n == 1000 + (size_t)(text.p[0] - 'a') * 1000 ||
                    text.n == 27000 + (size_t)(text.p[0] - 'a') * 1000);
        for (size_t i = 1; i < text.n; i++) assert_int_equal(text.p[i], text.p[0]);
        arena_reset(f->a);
    }
    assert_int_equal(status, 0);
    assert_int_equal(entries(f), 1);
}

static void test_base_file_io__creating_never_takes_a_name_that_is_there(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "file", S("kept"));
    assert_int_equal(mkdirat(f->dir, "folder", 0700), 0);
    link_to(f, "nothing", "dangling");
    static const char *const taken[] = {"file", "folder", "dangling"};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        assert_int_equal(file_create_at(f->dir, str_z(taken[i]), S("x"), 0600, NULL), DEP_ERR_EXISTS);
    }
    assert_text(text_of(f, "file"), "kept");
    assert_int_equal(file_create_at(f->dir, S("new"), S("text"), 0640, NULL), DEP_OK);
    assert_text(text_of(f, "new"), "text");
    assert_int_equal(mode_of(f, "new") & ~0640u, 0);
    assert_int_equal(entries(f), 4);
}

static int create_race(dir_fixture *f) {
    int won = 0;
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        dep_status s = file_create_at(f->dir, str_z(name), S("x"), 0600, NULL);
        if (s != DEP_OK && s != DEP_ERR_EXISTS) return 255;
        won += s == DEP_OK;
    }
    return won;
}

static void test_base_file_io__of_two_processes_creating_a_name_one_wins(void **state) {
    dir_fixture *f = *state;
    pid_t pid = start_child(create_race, f);
    int mine = create_race(f);
    assert_int_equal(mine + child_code(pid), 100);
    assert_int_equal(entries(f), 100);
}

static void test_base_file_io__a_listing_is_sorted_typed_and_limited(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "b", S(""));
    temp_write(f->path, "B", S(""));
    temp_write(f->path, "\xff\n", S(""));
    temp_write(f->path, ".hidden", S(""));
    assert_int_equal(mkdirat(f->dir, "a", 0700), 0);
    link_to(f, "b", "c");
    dir_entries all = {0};
    assert_int_equal(dir_list(f->a, f->dir, 6, &all, NULL), DEP_OK);
    static const struct {
        const char *name;
        unsigned char type;
    } want[] = {{".hidden", DT_REG}, {"B", DT_REG}, {"a", DT_DIR},
                {"b", DT_REG},       {"c", DT_LNK}, {"\xff\n", DT_REG}};
    assert_int_equal(all.n, 6);
    for (size_t i = 0; i < all.n; i++) {
        assert_true(str_eq(all.p[i].name, str_z(want[i].name)));
        assert_int_equal(all.p[i].type, want[i].type);
    }
    dep_err err = {0};
    assert_int_equal(dir_list(f->a, f->dir, 5, &all, &err), DEP_ERR_LIMIT);
    // The descriptor's own position is not used, and one without the right to read will do.
    int path_only = openat(f->dir, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(dir_list(f->a, path_only, 6, &all, NULL), DEP_OK);
    assert_int_equal(dir_list(f->a, f->dir, 6, &all, NULL), DEP_OK);
    assert_int_equal(all.n, 6);
    close(path_only);
}

#define T(name) cmocka_unit_test_setup_teardown(test_base_file_io__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(reading_stops_at_its_limit),
        T(a_file_that_has_less_or_more_than_its_size_is_read_as_it_is),
        T(a_file_that_shrinks_while_it_is_read_does_no_harm),
        T(a_named_pipe_or_device_is_read_as_a_stream),
        T(a_stream_is_read_to_its_end_or_its_limit),
        T(no_memory_is_a_status_and_leaves_nothing_open),
        T(replacing_keeps_the_mode_and_a_new_file_gets_the_asked_one),
        T(what_is_no_plain_file_is_not_replaced),
        T(replacing_gives_a_new_file_and_leaves_other_names_alone),
        T(a_write_that_fails_keeps_the_former_file_and_no_temporary),
        T(a_full_disk_keeps_the_former_file_and_no_temporary),
        T(a_reader_sees_the_former_or_the_present_text_and_never_half),
        T(creating_never_takes_a_name_that_is_there),
        T(of_two_processes_creating_a_name_one_wins),
        T(a_listing_is_sorted_typed_and_limited),
    };
    return cmocka_run_group_tests_name("base_file_io", tests, NULL, NULL);
}

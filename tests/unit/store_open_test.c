// Tests of store/open.c, migrate.c, sql.c and netfs.c: who may open what, and what a person is told.
#include "store/store_int.h"
#include <deputy/file.h>
#include <fcntl.h>
#include <stdio.h>
#include <support/support.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    arena *a;
    char *dir;
    str state; // dir/state, not made
    dep_err err;
} rig;

static int set_up(void **state) {
    arena *a = arena_new();
    rig *r = NEW(a, rig);
    r->a = a;
    r->dir = temp_dir_fast(NULL);
    r->state = str_fmt(a, "%s/state", r->dir);
    *state = r;
    return 0;
}

static int tear_down(void **state) {
    rig *r = *state;
    arena *a = r->a;
    char *dir = r->dir;
    arena_free(a); // closes the stores, which use the directory
    temp_remove(dir);
    return 0;
}

static const char *in_state(rig *r, const char *name) {
    return str_fmt(r->a, "%.*s/%s", STR_ARG(r->state), name).p;
}

static dep_status open_as(rig *r, const char *workspace, bool read_only, store **ret) {
    return store_open(r->a, r->state, str_z(workspace), read_only, sys_clock_real(), ret, &r->err);
}

static store *opened(rig *r, bool read_only) {
    store *s = NULL;
    dep_status status = open_as(r, "/w", read_only, &s);
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
    return s;
}

static void raw_sql(rig *r, const char *sql) {
    sqlite3 *db;
    assert_int_equal(sqlite3_open(in_state(r, "deputy.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static unsigned mode_of(const char *path) {
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

static void test_store_open__a_new_store_is_private_in_wal_mode_and_whole(void **state) {
    rig *r = *state;
    mode_t before = umask(0);
    store *s = opened(r, false);
    umask(before);
    assert_int_equal(mode_of(r->state.p), 0700);
    assert_int_equal(mode_of(in_state(r, "deputy.db")), 0600);
    assert_int_equal(store_setting_set(s, S("k"), S("v"), &r->err), DEP_OK);
    assert_int_equal(mode_of(in_state(r, "deputy.db-wal")), 0600);
    assert_int_equal(mode_of(in_state(r, "deputy.db-shm")), 0600);
    assert_int_equal(store_check(s, &r->err), DEP_OK);
    assert_int_equal(store_notice(s).n, 0);
    int64_t version;
    assert_int_equal(migrate_version(s, &version, &r->err), DEP_OK);
    assert_int_equal(version, STORE_SCHEMA);
}

static void test_store_open__reading_where_nothing_is_makes_nothing(void **state) {
    rig *r = *state;
    assert_null(opened(r, true));
    assert_int_equal(access(r->state.p, F_OK), -1);
    assert_int_equal(mkdir(r->state.p, 0700), 0);
    assert_null(opened(r, true));
    assert_int_equal(access(in_state(r, "deputy.db"), F_OK), -1);
    // An empty file is what a crash right after its making leaves.
    int fd = open(in_state(r, "deputy.db"), O_CREAT | O_WRONLY, 0600);
    close(fd);
    assert_null(opened(r, true));
    assert_non_null(opened(r, false));
}

static void test_store_open__workspaces_see_only_their_own(void **state) {
    rig *r = *state;
    store *one, *two, *again;
    str value;
    assert_int_equal(open_as(r, "/one", false, &one), DEP_OK);
    assert_int_equal(open_as(r, "/two", false, &two), DEP_OK);
    assert_int_equal(store_setting_set(one, S("k"), S("v"), &r->err), DEP_OK);
    assert_int_equal(store_setting_get(r->a, two, S("k"), &value, &r->err), DEP_OK);
    assert_int_equal(value.n, 0);
    store_close(one);
    assert_int_equal(open_as(r, "/one", true, &again), DEP_OK);
    assert_int_equal(store_setting_get(r->a, again, S("k"), &value, &r->err), DEP_OK);
    assert_true(str_eq(value, S("v")));
    // A workspace that has no rows yet.
    assert_int_equal(open_as(r, "/three", true, &again), DEP_OK);
    assert_int_equal(store_setting_get(r->a, again, S("k"), &value, &r->err), DEP_OK);
    assert_int_equal(value.n, 0);
}

static void test_store_open__a_read_only_store_refuses_to_write(void **state) {
    rig *r = *state;
    store_close(opened(r, false));
    store *s = opened(r, true);
    str id;
    size_t n = 7;
    delegation_row row = {.id = S("00000000000000000000000000000001")};
    assert_int_equal(store_setting_set(s, S("k"), S("v"), &r->err), DEP_ERR_REFUSED);
    assert_int_equal(store_run_begin(r->a, s, &id, &r->err), DEP_ERR_REFUSED);
    assert_int_equal(store_delegation_add(s, &row, &r->err), DEP_ERR_REFUSED);
    assert_int_equal(store_delegation_status(s, row.id, DELEG_RUNNING, S(""), S(""), &r->err),
                     DEP_ERR_REFUSED);
    assert_int_equal(store_activity_add(s, row.id, NULL, 0, false, &r->err), DEP_ERR_REFUSED);
    assert_int_equal(store_recover(s, &n, &r->err), DEP_OK);
    assert_int_equal(n, 0);
}

// --- B4: state is private --------------------------------------------------------------------------------

static void expect_refused(rig *r, const char *part) {
    store *s;
    for (int read_only = 0; read_only < 2; read_only++) {
        assert_int_equal(open_as(r, "/w", read_only, &s), DEP_ERR_REFUSED);
        if (!strstr(r->err.msg, part)) fail_msg("%s", r->err.msg);
    }
}

static void test_store_open__a_database_that_others_may_read_or_write_is_refused(void **state) {
    rig *r = *state;
    store_close(opened(r, false));
    static const unsigned modes[] = {0640, 0604, 0620, 0666};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(in_state(r, "deputy.db"), modes[i]), 0);
        expect_refused(r, "deputy.db");
    }
}

static void test_store_open__a_database_of_another_owner_is_refused(void **state) {
    rig *r = *state;
    if (geteuid() != 0) skip();
    store_close(opened(r, false));
    assert_int_equal(chown(in_state(r, "deputy.db"), 65534, (gid_t)-1), 0);
    expect_refused(r, "another user");
    assert_int_equal(chown(in_state(r, "deputy.db"), 0, (gid_t)-1), 0);
    assert_int_equal(chown(r->state.p, 65534, (gid_t)-1), 0);
    expect_refused(r, "another user");
}

static void test_store_open__links_are_refused(void **state) {
    rig *r = *state;
    store_close(opened(r, false));
    assert_int_equal(rename(in_state(r, "deputy.db"), in_state(r, "real.db")), 0);
    assert_int_equal(symlink("real.db", in_state(r, "deputy.db")), 0);
    expect_refused(r, "deputy.db is a link");
    assert_int_equal(unlink(in_state(r, "deputy.db")), 0);
    assert_int_equal(link(in_state(r, "real.db"), in_state(r, "deputy.db")), 0);
    expect_refused(r, "deputy.db is a link");
    assert_int_equal(unlink(in_state(r, "deputy.db")), 0);
    assert_int_equal(mkdir(in_state(r, "deputy.db"), 0700), 0);
    expect_refused(r, "no regular file");
    // The directory itself.
    assert_int_equal(rename(r->state.p, str_fmt(r->a, "%s/real", r->dir).p), 0);
    assert_int_equal(symlink("real", r->state.p), 0);
    expect_refused(r, "symbolic link");
}

// --- Schema ----------------------------------------------------------------------------------------------

static void test_store_open__a_newer_schema_is_refused_with_the_next_step(void **state) {
    rig *r = *state;
    store_close(opened(r, false));
    raw_sql(r, "PRAGMA user_version=3");
    expect_refused(r, "newer Deputy (schema 3, this one knows 2); update Deputy");
}

static void test_store_open__what_is_no_database_of_deputy_is_left_alone(void **state) {
    rig *r = *state;
    store *s;
    assert_int_equal(mkdir(r->state.p, 0700), 0);
    raw_sql(r, "CREATE TABLE theirs (x)");
    assert_int_equal(chmod(in_state(r, "deputy.db"), 0600), 0);
    for (int read_only = 0; read_only < 2; read_only++) {
        assert_int_equal(open_as(r, "/w", read_only, &s), DEP_ERR_INVALID);
        assert_non_null(strstr(r->err.msg, "not one of Deputy's"));
    }
    temp_write(r->state.p, "deputy.db", S("this is no database, but it is long enough to look at, really"));
    for (int read_only = 0; read_only < 2; read_only++) {
        assert_int_equal(open_as(r, "/w", read_only, &s), DEP_ERR_INVALID);
        assert_non_null(strstr(r->err.msg, "move it aside"));
    }
}

static void test_store_open__damage_is_found_by_the_check(void **state) {
    rig *r = *state;
    store *s = opened(r, false);
    for (int i = 0; i < 300; i++)
        assert_int_equal(store_setting_set(s, str_fmt(r->a, "key%d", i), S("some value or other"), &r->err),
                         DEP_OK);
    store_close(s);
    FILE *f = fopen(in_state(r, "deputy.db"), "r+");
    fseek(f, -4096, SEEK_END);
    for (int i = 0; i < 2048; i++) fputc(0xA5, f);
    fclose(f);
    assert_int_equal(open_as(r, "/w", true, &s), DEP_OK);
    assert_int_equal(store_check(s, &r->err), DEP_ERR_INVALID);
    assert_non_null(strstr(r->err.msg, "damaged"));
}

static void test_store_open__many_processes_may_open_a_new_store_at_once(void **state) {
    rig *r = *state;
    enum { PROCESSES = 8 };
    pid_t pids[PROCESSES];
    for (int i = 0; i < PROCESSES; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            store *s;
            arena *a = arena_new();
            dep_err err;
            dep_status status = store_open(a, r->state, S("/w"), false, sys_clock_real(), &s, &err);
            if (status == DEP_OK) status = store_setting_set(s, str_fmt(a, "k%d", i), S("v"), &err);
            if (status != DEP_OK) fprintf(stderr, "%s\n", err.msg);
            arena_free(a);
            _exit(status == DEP_OK ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int code;
        assert_int_equal(waitpid(pids[i], &code, 0), pids[i]);
        assert_int_equal(code, 0);
    }
    settings all;
    assert_int_equal(store_settings(r->a, opened(r, false), S("k"), &all, &r->err), DEP_OK);
    assert_int_equal(all.n, PROCESSES);
}

// --- A directory that cannot be written ------------------------------------------------------------------

// Runs body as a user whom permissions bind, in a process of its own.
static void as_bound_user(rig *r, int (*body)(rig *r)) {
    pid_t pid = fork();
    if (pid == 0) {
        if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(100);
        _exit(body(r));
    }
    int code;
    assert_int_equal(waitpid(pid, &code, 0), pid);
    assert_int_equal(code, 0);
}

static void give_away(rig *r, mode_t dir_mode, mode_t file_mode) {
    uid_t uid = geteuid() == 0 ? 65534 : geteuid();
    static const char *const names[] = {"deputy.db", "deputy.db-wal", "deputy.db-shm"};
    for (size_t i = 0; i < 3; i++) {
        if (chown(in_state(r, names[i]), uid, (gid_t)-1) == 0) chmod(in_state(r, names[i]), file_mode);
    }
    assert_int_equal(chown(r->state.p, uid, (gid_t)-1), 0);
    assert_int_equal(chmod(r->state.p, dir_mode), 0);
    assert_int_equal(chmod(r->dir, 0755), 0);
}

// What reads, reads; what writes is refused. 0 when all of it is so.
static int use_frozen(rig *r, store *s) {
    static const str id = S_INIT("00000000000000000000000000000001");
    str value, text;
    int64_t n;
    size_t count;
    delegation_row row;
    delegation_rows rows;
    activity_rows items;
    message_rows messages;
    thread_rows threads;
    command_rows commands;
    const message_row message = {S("user"), S("{}")};
    const struct {
        dep_status status, wanted;
    } calls[] = {
        {store_setting_get(r->a, s, S("k"), &value, &r->err), DEP_OK},
        {store_delegation_get(r->a, s, id, &row, &r->err), DEP_OK},
        {store_delegation_list(r->a, s, id, 9, &rows, &r->err), DEP_OK},
        {store_undelivered(r->a, s, id, &rows, &r->err), DEP_OK},
        {store_thread_list(r->a, s, S(""), 9, &threads, &r->err), DEP_OK},
        {store_message_list(r->a, s, id, &messages, &r->err), DEP_OK},
        {store_activity_list(r->a, s, id, 0, 9, &items, &r->err), DEP_OK},
        {store_result_get(r->a, s, id, 1, &text, &r->err), DEP_OK},
        {store_recover(s, &count, &r->err), DEP_OK},
        {store_delegation_add(s, &row, &r->err), DEP_ERR_REFUSED},
        {store_delegation_take(s, id, &r->err), DEP_ERR_REFUSED},
        {store_delivered(s, id, &r->err), DEP_ERR_REFUSED},
        {store_delegation_remove(s, id, &r->err), DEP_ERR_REFUSED},
        {store_prune(s, 1, 1, &count, &r->err), DEP_ERR_REFUSED},
        {store_message_add(s, id, &message, 1, NULL, 0, true, &r->err), DEP_ERR_REFUSED},
        {store_result_add(s, id, S("x"), &n, &r->err), DEP_ERR_REFUSED},
        {store_command_add(s, id, S("stop"), &r->err), DEP_ERR_REFUSED},
        {store_command_take(r->a, s, &commands, &r->err), DEP_ERR_REFUSED},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].status != calls[i].wanted)
            return fprintf(stderr, "call %zu: %s\n", i, r->err.msg), 10 + (int)i;
    if (!str_eq(value, S("v")) || !str_eq(text, S("whole")) || messages.n != 1 || threads.n != 1) return 6;
    return strstr(r->err.msg, "open for reading only") ? 0 : 7;
}

static int read_frozen(rig *r) {
    store *s;
    if (open_as(r, "/w", true, &s) != DEP_OK) return fprintf(stderr, "%s\n", r->err.msg), 1;
    int code = use_frozen(r, s);
    if (code) return code;
    if (str_find(store_notice(s), S("nothing that runs now is seen")) == SIZE_MAX) return 3;
    if (open_as(r, "/w", false, &s) == DEP_OK) return 4;
    if (r->err.status != DEP_ERR_IO) return fprintf(stderr, "%s\n", r->err.msg), 5;
    return 0;
}

static void test_store_open__a_directory_that_cannot_be_written_is_read_and_said(void **state) {
    rig *r = *state;
    store *s = opened(r, false);
    assert_int_equal(store_setting_set(s, S("k"), S("v"), &r->err), DEP_OK);
    delegation_row row = {.id = S("00000000000000000000000000000001"),
                          .thread = S("00000000000000000000000000000001"),
                          .main = true,
                          .status = DELEG_RUNNING};
    const message_row message = {S("user"), S("{}")};
    int64_t n;
    assert_int_equal(store_delegation_add(s, &row, &r->err), DEP_OK);
    assert_int_equal(store_message_add(s, row.id, &message, 1, NULL, 0, true, &r->err), DEP_OK);
    assert_int_equal(store_result_add(s, row.id, S("whole"), &n, &r->err), DEP_OK);
    store_close(s);
    give_away(r, 0500, 0400);
    as_bound_user(r, read_frozen);
    assert_int_equal(chmod(r->state.p, 0700), 0);
}

static int read_live(rig *r) {
    store *s;
    str value;
    if (open_as(r, "/w", true, &s) != DEP_OK) return fprintf(stderr, "%s\n", r->err.msg), 1;
    if (store_setting_get(r->a, s, S("k"), &value, &r->err) != DEP_OK || !str_eq(value, S("v"))) return 2;
    return 0;
}

static void test_store_open__changes_not_yet_in_the_main_file_are_read_where_their_files_are(void **state) {
    rig *r = *state;
    store *s = opened(r, false);
    assert_int_equal(store_setting_set(s, S("k"), S("v"), &r->err), DEP_OK);
    give_away(r, 0500, 0400); // still open: the change is in the log alone
    as_bound_user(r, read_live);
    assert_int_equal(chmod(r->state.p, 0700), 0);
}

// --- Memory ------------------------------------------------------------------------------------------------

// One delegation from its making to its removal.
static dep_status use_delegation(store *s, arena *a, str id, dep_err *err) {
    command_rows commands;
    message_rows messages;
    activity_rows items;
    str text;
    int64_t n;
    size_t removed;
    const message_row message = {S("user"), S("{}")};
    const activity_row item = {.kind = S("text"), .data = S("{\"text\":\"x\"}")};
    delegation_row row = {.id = id, .agent = S("x"), .run_id = S("-"), .thread = id};
    TRY(store_delegation_add(s, &row, err));
    TRY(store_delegation_take(s, id, err));
    TRY(store_command_add(s, id, S("stop"), err));
    TRY(store_command_take(a, s, &commands, err));
    TRY(store_activity_add(s, id, &item, 1, false, err));
    TRY(store_activity_list(a, s, id, 0, 9, &items, err));
    TRY(store_message_add(s, id, &message, 1, NULL, 0, false, err));
    TRY(store_message_list(a, s, id, &messages, err));
    TRY(store_result_add(s, id, S("whole"), &n, err));
    TRY(store_result_get(a, s, id, 1, &text, err));
    TRY(store_delegation_status(s, id, DELEG_COMPLETED, S("done"), S("{}"), err));
    TRY(store_delivered(s, id, err));
    TRY(store_delegation_remove(s, id, err));
    return store_prune(s, 30, 100, &removed, err);
}

// One pass over what the store does, with every statement that it has.
static dep_status use_all(rig *r, arena *a, store **used, dep_err *err) {
    store *s;
    str id, value;
    size_t interrupted;
    delegation_rows rows;
    thread_rows threads;
    settings all;
    delegation_row row = {.id = sys_id(r->a, sys_clock_real()), .agent = S("x"), .run_id = S("-")};
    TRY(store_open(a, r->state, S("/w"), false, sys_clock_real(), &s, err));
    *used = s;
    TRY(store_recover(s, &interrupted, err));
    TRY(store_run_begin(a, s, &id, err));
    TRY(store_setting_set(s, S("k"), S("v"), err));
    TRY(store_delegation_add(s, &row, err));
    TRY(store_delegation_list(a, s, (str){0}, 10, &rows, err));
    TRY(store_delegation_list(a, s, row.id, 10, &rows, err));
    TRY(store_delegation_get(a, s, row.id, &row, err));
    TRY(store_delegation_get(a, s, str_sub(row.id, 0, 30), &row, err));
    TRY(use_delegation(s, a, sys_id(r->a, sys_clock_real()), err));
    TRY(store_undelivered(a, s, row.id, &rows, err));
    TRY(store_thread_list(a, s, S(""), 10, &threads, err));
    TRY(store_command_add(s, row.id, S("stop"), err)); // nobody took it: it ends
    TRY(store_settings(a, s, S(""), &all, err));
    TRY(store_setting_get(a, s, S("k"), &value, err));
    TRY(store_setting_set(s, S("k"), S(""), err));
    TRY(store_check(s, err));
    return store_setting_set(s, S("k"), S("w"), err);
}

static dep_status fail_part_op(store *s, void *ctx, dep_err *err) {
    (void)ctx;
    dep_err why;
    // A part that is undone, and one that stays.
    if (store_delegation_status(s, S("x"), DELEG_RUNNING, S(""), S(""), &why) != DEP_ERR_NOT_FOUND)
        return DEP_ERR_INTERNAL;
    TRY(store_setting_set(s, S("k"), S("y"), err));
    return err_set(err, DEP_ERR_REFUSED, "undone");
}

static void test_store_open__all_kinds_of_statements_find_room(void **state) {
    rig *r = *state;
    store *s;
    if (use_all(r, r->a, &s, &r->err) != DEP_OK) fail_msg("%s", r->err.msg);
    store_shared *sh = store_share(r->a, s);
    assert_int_equal(store_do(sh, STORE_WRITE_FULL, fail_part_op, NULL, &r->err), DEP_ERR_REFUSED);
    printf("# %zu kinds of statements\n", s->n_kept);
}

static void test_store_open__memory_that_cannot_be_had_is_an_error_and_locks_nothing(void **state) {
    rig *r = *state;
    store *other = opened(r, false); // one that would be locked out
    dep_status status = DEP_ERR_NOMEM;
    for (int allowed = 1; status != DEP_OK; allowed++) {
        int left = allowed;
        arena_source source = scarce_source(&left);
        arena *a = arena_new_from(&source, true);
        store *used;
        status = use_all(r, a, &used, &r->err);
        if (status != DEP_OK && status != DEP_ERR_NOMEM) fail_msg("%d: %s", allowed, r->err.msg);
        assert_int_equal(store_setting_set(other, S("k"), S("x"), &r->err), DEP_OK);
        arena_free(a);
        assert_true(allowed < 1000);
    }
}

// --- Network file systems --------------------------------------------------------------------------------

static void test_store_netfs__network_file_systems_are_told_from_local_ones(void **state) {
    (void)state;
    static const struct {
        uint64_t magic;
        str type;
        const char *name;
    } rows[] = {
        {0x6969, S_INIT("nfs4"), "NFS"},
        {0xFF534D42, S_INIT("cifs"), "CIFS"},
        {0xFE534D42, S_INIT("smb3"), "SMB"},
        {0x01021997, S_INIT("9p"), "9p"},
        {0x65735546, S_INIT("fuse.sshfs"), "fuse.sshfs"},
        {0x65735546, S_INIT("fuse.rclone"), "fuse.rclone"},
        {0x65735546, S_INIT("fuse.gocryptfs"), NULL},
        {0x65735546, S_INIT("fuseblk"), NULL},
        {0x65735546, S_INIT("virtiofs"), NULL},
        {0x65735546, S_INIT(""), NULL},
        {0xEF53, S_INIT("ext4"), NULL},
        {0x01021994, S_INIT("tmpfs"), NULL},
        {0x794C7630, S_INIT("overlay"), NULL},
        {0x9123683E, S_INIT("fuse.sshfs"), NULL}, // btrfs, whatever the type says
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *name = netfs_name(rows[i].magic, rows[i].type);
        if (rows[i].name)
            assert_string_equal(name, rows[i].name);
        else
            assert_null(name);
    }
}

static void test_store_netfs__the_type_of_a_mount_is_read_from_mountinfo(void **state) {
    (void)state;
    static const str info =
        S_INIT("22 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw\n"
               "30 22 0:45 / /home/me/my\\040disk rw,nosuid shared:2 master:1 - fuse.sshfs me@host: rw\n"
               "31 22 0:46 / /x rw - fuse.gocryptfs /y rw\n"
               "broken line\n");
    assert_true(str_eq(netfs_mount_type(info, 254, 1), S("ext4")));
    assert_true(str_eq(netfs_mount_type(info, 0, 45), S("fuse.sshfs")));
    assert_true(str_eq(netfs_mount_type(info, 0, 46), S("fuse.gocryptfs")));
    assert_int_equal(netfs_mount_type(info, 0, 4).n, 0);
    assert_int_equal(netfs_mount_type(S(""), 0, 45).n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_store_open__a_new_store_is_private_in_wal_mode_and_whole),
        TEST(test_store_open__reading_where_nothing_is_makes_nothing),
        TEST(test_store_open__workspaces_see_only_their_own),
        TEST(test_store_open__a_read_only_store_refuses_to_write),
        TEST(test_store_open__a_database_that_others_may_read_or_write_is_refused),
        TEST(test_store_open__a_database_of_another_owner_is_refused),
        TEST(test_store_open__links_are_refused),
        TEST(test_store_open__a_newer_schema_is_refused_with_the_next_step),
        TEST(test_store_open__what_is_no_database_of_deputy_is_left_alone),
        TEST(test_store_open__damage_is_found_by_the_check),
        TEST(test_store_open__many_processes_may_open_a_new_store_at_once),
        TEST(test_store_open__a_directory_that_cannot_be_written_is_read_and_said),
        TEST(test_store_open__changes_not_yet_in_the_main_file_are_read_where_their_files_are),
        TEST(test_store_open__all_kinds_of_statements_find_room),
        TEST(test_store_open__memory_that_cannot_be_had_is_an_error_and_locks_nothing),
        cmocka_unit_test(test_store_netfs__network_file_systems_are_told_from_local_ones),
        cmocka_unit_test(test_store_netfs__the_type_of_a_mount_is_read_from_mountinfo),
    };
    return cmocka_run_group_tests_name("store_open", tests, NULL, NULL);
}

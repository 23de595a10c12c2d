// Children: what they get, what is kept of them, and that they end. Every test fails when it leaves a
// descriptor open.
#include "support/dir_fixture.h"
#include <deputy/sys.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MINUTE = 60000 };

// Runs `sh -c script`, which must start; the outcome is in *r and *err.
static dep_status shell(dir_fixture *f, const char *script, spawn_opts o, spawn_result *r, dep_err *err) {
    const char *argv[] = {"sh", "-c", script, NULL};
    o.argv = argv;
    if (!o.timeout_ms) o.timeout_ms = MINUTE;
    if (!o.max_output) o.max_output = 1 << 20;
    return spawn_run(f->a, &o, r, err);
}

static spawn_result shell_ok(dir_fixture *f, const char *script) {
    spawn_result r = {0};
    dep_err err = {0};
    if (shell(f, script, (spawn_opts){0}, &r, &err) != DEP_OK) fail_msg("%s: %s", script, err.msg);
    return r;
}

static void assert_no_children(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void test_base_spawn__output_errors_and_exit_code_are_kept_apart(void **state) {
    spawn_result r = shell_ok(*state, "echo out; echo err >&2; exit 7");
    assert_text(r.out, "out\n");
    assert_text(r.err, "err\n");
    assert_int_equal(r.exit_code, 7);
    assert_int_equal(shell_ok(*state, "kill -9 $$").exit_code, 128 + 9);
    assert_int_equal(shell_ok(*state, ":").out.n, 0);
    assert_no_children();
}

static void test_base_spawn__input_arrives_whole_and_need_not_be_read(void **state) {
    dir_fixture *f = *state;
    size_t n = 1000000;
    char *bytes = arena_alloc(f->a, n);
    for (size_t i = 0; i < n; i++) bytes[i] = (char)(i * 31 + i / 251);
    spawn_result r = {0};
    spawn_opts o = {.input = {bytes, n}, .max_output = n};
    assert_int_equal(shell(f, "cat", o, &r, NULL), DEP_OK);
    assert_true(str_eq(r.out, o.input));
    assert_int_equal(shell(f, "exit 3", o, &r, NULL), DEP_OK);
    assert_int_equal(r.exit_code, 3);
    assert_int_equal(shell(f, "exec <&-; exit 4", o, &r, NULL), DEP_OK);
    assert_int_equal(r.exit_code, 4);
    assert_int_equal(shell(f, "cat", (spawn_opts){0}, &r, NULL), DEP_OK);
    assert_int_equal(r.out.n, 0);
}

static void test_base_spawn__output_over_its_limit_is_an_error_and_ends_the_child(void **state) {
    dir_fixture *f = *state;
    spawn_result r = {0};
    dep_err err = {0};
    assert_int_equal(shell(f, "printf 0123456789", (spawn_opts){.max_output = 10}, &r, &err), DEP_OK);
    assert_text(r.out, "0123456789");
    spawn_result untouched = {.exit_code = -5};
    assert_int_equal(shell(f, "printf 0123456789", (spawn_opts){.max_output = 9}, &untouched, &err),
                     DEP_ERR_LIMIT);
    assert_int_equal(untouched.exit_code, -5);
    assert_int_equal(shell(f, "yes", (spawn_opts){.max_output = 100000}, &r, &err), DEP_ERR_LIMIT);
    assert_no_children();
}

static void test_base_spawn__the_last_4_kib_of_errors_are_kept(void **state) {
    spawn_result r = shell_ok(*state, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done >&2");
    assert_int_equal(r.err.n, 4096);
    assert_true(str_ends(r.err, S("line 2998\nline 2999\n")));
    r = shell_ok(*state, "printf '%4096s' x >&2");
    assert_int_equal(r.err.n, 4096);
    r = shell_ok(*state, "printf 'é%4095s' x >&2"); // 4,097 bytes: the half character at the front goes too
    assert_int_equal(r.err.n, 4095);
}

static void test_base_spawn__the_environment_is_small_unless_given(void **state) {
    dir_fixture *f = *state;
    setenv("DEPUTY_TEST_SECRET", "hunter2", 1);
    setenv("LC_TEST", "C", 1);
    spawn_result r = shell_ok(f, "env");
    unsetenv("DEPUTY_TEST_SECRET");
    unsetenv("LC_TEST");
    assert_true(str_find(r.out, S("DEPUTY_TEST_SECRET")) == SIZE_MAX);
    assert_true(str_find(r.out, S("LC_TEST=C\n")) != SIZE_MAX);
    assert_true(str_find(r.out, S("PATH=")) != SIZE_MAX);
    const char *envp[] = {"ONLY=this", NULL}, *argv[] = {"/usr/bin/env", NULL};
    spawn_opts o = {.argv = argv, .envp = envp, .timeout_ms = MINUTE, .max_output = 1000};
    assert_int_equal(spawn_run(f->a, &o, &r, NULL), DEP_OK);
    assert_text(r.out, "ONLY=this\n");
}

static void test_base_spawn__no_descriptor_but_the_three_is_inherited(void **state) {
    dir_fixture *f = *state;
    int leaky = dup(f->dir); // without CLOEXEC, as a library might leave one
    int high = fcntl(f->dir, F_DUPFD, 200);
    spawn_result r =
        shell_ok(f, "n=0; while [ $n -le 255 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n+1)); done");
    close(leaky);
    close(high);
    assert_text(r.out, "0\n1\n2\n");
}

static void test_base_spawn__signals_have_their_defaults_in_a_session_of_its_own(void **state) {
    dir_fixture *f = *state;
    sigset_t blocked, was;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_BLOCK, &blocked, &was);
    void (*handler)(int) = signal(SIGPIPE, SIG_IGN);
    assert_int_equal(shell_ok(f, "kill -PIPE $$; exit 1").exit_code, 128 + SIGPIPE);
    assert_int_equal(shell_ok(f, "kill -TERM $$; exit 1").exit_code, 128 + SIGTERM);
    signal(SIGPIPE, handler);
    sigprocmask(SIG_SETMASK, &was, NULL);
    // pid, name, state, parent, group, session
    spawn_result r =
        shell_ok(f, "read p n s pp g ses rest < /proc/$$/stat; [ $p = $g ] && [ $p = $ses ] && echo own");
    assert_text(r.out, "own\n");
}

static void test_base_spawn__a_late_child_is_asked_to_end_and_then_made_to(void **state) {
    dir_fixture *f = *state;
    spawn_result r = {0};
    dep_err err = {0};
    str script =
        str_fmt(f->a, "trap 'echo asked > %s/asked; exit 0' TERM; while :; do sleep 0.05; done", f->path);
    assert_int_equal(shell(f, script.p, (spawn_opts){.timeout_ms = 200}, &r, &err), DEP_ERR_TIMEOUT);
    assert_text(text_of(f, "asked"), "asked\n");
    assert_int_equal(shell(f, "trap '' TERM; sleep 1000", (spawn_opts){.timeout_ms = 50}, &r, &err),
                     DEP_ERR_TIMEOUT);
    assert_says(&err, "50 ms");
    assert_no_children();
}

static void test_base_spawn__a_flood_on_either_stream_does_not_hide_the_time_out(void **state) {
    dir_fixture *f = *state;
    spawn_result r = {0};
    assert_int_equal(shell(f, "yes >&2", (spawn_opts){.timeout_ms = 100}, &r, NULL), DEP_ERR_TIMEOUT);
    assert_int_equal(shell(f, "exec >&- 2>&-; sleep 1000", (spawn_opts){.timeout_ms = 50}, &r, NULL),
                     DEP_ERR_TIMEOUT);
    assert_no_children();
}

static void test_base_spawn__what_a_child_leaves_behind_delays_nothing_and_dies(void **state) {
    dir_fixture *f = *state;
    // The time-out would come long before the sleep ends.
    spawn_result r = shell_ok(f, "sleep 100000 & echo $!; exec 1>&1");
    uint64_t pid = 0;
    assert_true(str_u64(str_trim(r.out), 1 << 30, &pid));
    // It was killed; whoever adopts it may take a moment to reap it.
    char path[64], stat_text[256] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    for (int tries = 0; tries < 1000; tries++) {
        FILE *p = fopen(path, "r");
        if (!p) return;
        bool gone =
            !fgets(stat_text, sizeof stat_text, p) || strstr(stat_text, ") Z ") || strstr(stat_text, ") X ");
        fclose(p);
        if (gone) return;
        usleep(10000);
    }
    fail_msg("process %d still runs: %s", (int)pid, stat_text);
}

static void test_base_spawn__output_written_just_before_the_end_is_kept(void **state) {
    for (int i = 0; i < 30; i++) {
        spawn_result r = shell_ok(*state, "printf '%60000s' end");
        assert_int_equal(r.out.n, 60000);
    }
}

static void test_base_spawn__what_cannot_start_says_so(void **state) {
    dir_fixture *f = *state;
    if (under_valgrind()) skip();
    // A directory of PATH that may not be searched would make "not found" into "not permitted".
    str path = str_dup(f->a, str_z(getenv("PATH")));
    setenv("PATH", "/usr/bin:/bin", 1);
    temp_write(f->path, "plain", S("not a program"));
    const char *missing[] = {"deputy-test-no-such-program", NULL};
    const char *no_file[] = {"/nowhere/at/all", NULL};
    const char *not_executable[] = {str_cz(f->a, at(f, "plain")), NULL};
    const char *nothing[] = {NULL};
    const char *fine[] = {"true", NULL};
    const struct {
        const char *const *argv;
        int timeout_ms;
        dep_status want;
    } cases[] = {
        {missing, MINUTE, DEP_ERR_NOT_FOUND}, {no_file, MINUTE, DEP_ERR_NOT_FOUND},
        {not_executable, MINUTE, DEP_ERR_IO}, {nothing, MINUTE, DEP_ERR_INVALID},
        {NULL, MINUTE, DEP_ERR_INVALID},      {fine, 0, DEP_ERR_INVALID},
        {fine, -1, DEP_ERR_INVALID},          {fine, MINUTE, DEP_OK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        spawn_result r = {0};
        spawn_opts o = {.argv = cases[i].argv, .timeout_ms = cases[i].timeout_ms, .input = S("x")};
        assert_int_equal(spawn_run(f->a, &o, &r, NULL), cases[i].want);
    }
    setenv("PATH", path.p, 1);
    assert_no_children();
}

static int run_without_standard_streams(dir_fixture *f) {
    close(0);
    close(1);
    close(2);
    spawn_result r = {0};
    spawn_opts o = {.input = S("text")};
    if (shell(f, "cat; echo e >&2", o, &r, NULL) != DEP_OK) return 1;
    return str_eq(r.out, S("text")) && str_eq(r.err, S("e\n")) ? 0 : 2;
}

static void test_base_spawn__a_parent_without_standard_streams_is_no_problem(void **state) {
    assert_int_equal(in_child(run_without_standard_streams, *state), 0);
}

static int run_ignoring_children(dir_fixture *f) {
    signal(SIGCHLD, SIG_IGN);
    spawn_result r = {0};
    return shell(f, "exit 3", (spawn_opts){0}, &r, NULL) == DEP_ERR_INTERNAL ? 0 : 1;
}

static void test_base_spawn__a_lost_exit_code_is_never_taken_for_success(void **state) {
    assert_int_equal(in_child(run_ignoring_children, *state), 0);
}

static int left; // blocks that the arena below may still get

static void *some_blocks(void *ctx, size_t n) {
    (void)ctx;
    return left-- > 0 ? malloc(n) : NULL;
}

static void free_block(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

static void test_base_spawn__no_memory_for_the_output_ends_the_child(void **state) {
    (void)state;
    const arena_source source = {.alloc = some_blocks, .free = free_block};
    const char *argv[] = {"sh", "-c", "echo out; sleep 1000", NULL}, *envp[] = {"PATH=/usr/bin:/bin", NULL};
    spawn_opts o = {.argv = argv, .envp = envp, .timeout_ms = MINUTE, .max_output = 1000};
    left = 1;
    arena *a = arena_new_from(&source, true);
    spawn_result r = {0};
    assert_int_equal(spawn_run(a, &o, &r, NULL), DEP_ERR_NOMEM);
    assert_no_children();
    arena_free(a);
}

#define T(name) cmocka_unit_test_setup_teardown(test_base_spawn__##name, dir_setup, dir_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(output_errors_and_exit_code_are_kept_apart),
        T(input_arrives_whole_and_need_not_be_read),
        T(output_over_its_limit_is_an_error_and_ends_the_child),
        T(the_last_4_kib_of_errors_are_kept),
        T(the_environment_is_small_unless_given),
        T(no_descriptor_but_the_three_is_inherited),
        T(signals_have_their_defaults_in_a_session_of_its_own),
        T(a_late_child_is_asked_to_end_and_then_made_to),
        T(a_flood_on_either_stream_does_not_hide_the_time_out),
        T(what_a_child_leaves_behind_delays_nothing_and_dies),
        T(output_written_just_before_the_end_is_kept),
        T(what_cannot_start_says_so),
        T(a_parent_without_standard_streams_is_no_problem),
        T(a_lost_exit_code_is_never_taken_for_success),
        T(no_memory_for_the_output_ends_the_child),
    };
    return cmocka_run_group_tests_name("base_spawn", tests, NULL, NULL);
}

// Clock texts, ids, digests, Deputy's directories, the log.
#include "support/support.h"
#include <deputy/arena.h>
#include <deputy/sys.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int setup(void **state) {
    *state = arena_new();
    return 0;
}

static int teardown(void **state) {
    arena_free(*state);
    return 0;
}

static void assert_text(str s, const char *want) {
    if (!str_eq(s, str_z(want))) fail_msg("\"" STR_FMT "\" is not \"%s\"", STR_ARG(s), want);
}

// --- Clock ------------------------------------------------------------------------------------------------

static void test_base_sys__utc_times_are_written_in_full(void **state) {
    static const struct {
        int64_t ms;
        const char *want;
    } cases[] = {
        {0, "1970-01-01T00:00:00Z"},
        {999, "1970-01-01T00:00:00Z"},
        {-1, "1969-12-31T23:59:59Z"},
        {1796040000000, "2026-11-30T12:00:00Z"},
        {951782400000, "2000-02-29T00:00:00Z"},
        {253402300799999, "9999-12-31T23:59:59Z"},
        {253402300800000, "9999-12-31T23:59:59Z"},
        {-62167219200000, "0000-01-01T00:00:00Z"},
        {-62167219200001, "0000-01-01T00:00:00Z"},
        {INT64_MAX, "9999-12-31T23:59:59Z"},
        {INT64_MIN, "0000-01-01T00:00:00Z"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_text(time_utc(*state, cases[i].ms), cases[i].want);
}

static void test_base_sys__local_times_name_their_zone_and_its_distance(void **state) {
    static const struct {
        const char *tz, *want;
    } cases[] = {
        {"CET-1", "2026-11-30 13:00 CET (UTC+01:00)"},
        {"UTC0", "2026-11-30 12:00 UTC (UTC+00:00)"},
        {"<+0530>-5:30", "2026-11-30 17:30 +0530 (UTC+05:30)"},
        {"NST3:30", "2026-11-30 08:30 NST (UTC-03:30)"},
        {"LongZoneNameHere-1", "2026-11-30 13:00 (UTC+01:00)"},
    };
    const char *was = getenv("TZ");
    str keep = str_dup(*state, str_z(was));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(setenv("TZ", cases[i].tz, 1), 0);
        assert_text(time_local(*state, 1796040000000), cases[i].want);
    }
    if (was) {
        setenv("TZ", keep.p, 1);
    } else {
        unsetenv("TZ");
    }
    tzset();
}

static void test_base_sys__the_real_clock_goes_forward(void **state) {
    (void)state;
    const sys_clock *c = sys_clock_real();
    int64_t mono = c->mono_ms(c->ctx);
    assert_true(c->now_ms(c->ctx) > 1700000000000);
    assert_true(c->mono_ms(c->ctx) >= mono);
}

static void count_up(void *ctx, void *p, size_t n) {
    for (size_t i = 0; i < n; i++) ((unsigned char *)p)[i] = (*(unsigned char *)ctx)++;
}

static void test_base_sys__ids_are_all_of_128_random_bits(void **state) {
    unsigned char next = 0xf8;
    sys_clock c = {.random = count_up, .ctx = &next};
    assert_text(sys_id(*state, &c), "f8f9fafbfcfdfeff0001020304050607");
    str one = sys_id(*state, sys_clock_real()), two = sys_id(*state, sys_clock_real());
    assert_int_equal(one.n, 32);
    assert_false(str_eq(one, two));
}

// --- Digests ----------------------------------------------------------------------------------------------

static void test_base_sys__sha256_gives_the_published_values(void **state) {
    arena *a = *state;
    assert_text(sha256_hex(a, (str){0}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_text(sha256_hex(a, S("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_text(sha256_hex(a, S("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")),
                "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    char *million = arena_alloc(a, 1000000);
    memset(million, 'a', 1000000);
    assert_text(sha256_hex(a, str_n(million, 1000000)),
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void test_base_sys__sha256_is_right_at_every_length_around_its_blocks(void **state) {
    arena *a = *state;
    unsigned char bytes[300];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + 3);
    buf all = buf_new(a, 0);
    for (size_t n = 0; n < sizeof bytes; n++) buf_add(&all, sha256_hex(a, str_n((const char *)bytes, n)));
    // The digest of the 300 digests one after another, made with another implementation.
    assert_text(sha256_hex(a, buf_str(&all)),
                "e58750e2a145fc5559c66f9b6cfb156f52894470a74c4daec866d7b6ceea29ea");
}

// --- Directories ------------------------------------------------------------------------------------------

static const char *const *environment; // name, value, name, value, NULL

static const char *lookup(const char *name) {
    for (const char *const *e = environment; *e; e += 2) {
        if (strcmp(*e, name) == 0) return e[1];
    }
    return NULL;
}

typedef struct {
    const char *env[8];
    dep_status want;
    const char *home, *config, *state, *warning; // warning: a part of it
} dirs_case;

static const dirs_case dirs_cases[] = {
    {{"HOME", "/h"}, DEP_OK, "/h", "/h/.config/deputy", "/h/.local/state/deputy", ""},
    {{"HOME", "/h/"}, DEP_OK, "/h", "/h/.config/deputy", "/h/.local/state/deputy", ""},
    {{"HOME", "/"}, DEP_OK, "/", "/.config/deputy", "/.local/state/deputy", ""},
    {{"HOME", "/h", "XDG_CONFIG_HOME", "/c", "XDG_STATE_HOME", "/s/"},
     DEP_OK,
     "/h",
     "/c/deputy",
     "/s/deputy",
     ""},
    {{"HOME", "/h", "XDG_CONFIG_HOME", "", "XDG_STATE_HOME", ""},
     DEP_OK,
     "/h",
     "/h/.config/deputy",
     "/h/.local/state/deputy",
     ""},
    {{"HOME", "/h", "XDG_CONFIG_HOME", "conf"},
     DEP_OK,
     "/h",
     "/h/.config/deputy",
     "/h/.local/state/deputy",
     "XDG_CONFIG_HOME is not an absolute path"},
    {{"HOME", "/h", "XDG_STATE_HOME", "./s"},
     DEP_OK,
     "/h",
     "/h/.config/deputy",
     "/h/.local/state/deputy",
     "XDG_STATE_HOME is not an absolute path"},
    {{"HOME", "/h", "XDG_CONFIG_HOME", "c", "XDG_STATE_HOME", "s"},
     DEP_OK,
     "/h",
     "/h/.config/deputy",
     "/h/.local/state/deputy",
     "ignored; XDG_STATE_HOME"},
    {{"HOME", "/h", "XDG_STATE_HOME", "/"}, DEP_OK, "/h", "/h/.config/deputy", "/deputy", ""},
    {{NULL}, DEP_ERR_INVALID, "", "", "", "HOME is not set"},
    {{"HOME", ""}, DEP_ERR_INVALID, "", "", "", "HOME is not set"},
    {{"HOME", "h"}, DEP_ERR_INVALID, "", "", "", "HOME is not an absolute path"},
};

static void test_base_sys__directories_follow_home_and_absolute_xdg_values(void **state) {
    for (size_t i = 0; i < sizeof dirs_cases / sizeof *dirs_cases; i++) {
        const dirs_case *c = &dirs_cases[i];
        environment = c->env;
        sys_dirs d = {0};
        dep_err err = {0};
        assert_int_equal(sys_dirs_find(*state, lookup, &d, &err), c->want);
        if (c->want == DEP_OK) {
            assert_text(d.home, c->home);
            assert_text(d.config, c->config);
            assert_text(d.state, c->state);
            assert_int_equal(d.warning.n > 0, c->warning[0] != 0);
            if (c->warning[0]) assert_true(str_find(d.warning, str_z(c->warning)) != SIZE_MAX);
        } else {
            assert_non_null(strstr(err.msg, c->warning));
        }
    }
}

// --- Log --------------------------------------------------------------------------------------------------

static void test_base_sys__the_log_writes_one_escaped_line_per_event(void **state) {
    (void)state;
    char *text = NULL;
    size_t n = 0;
    log_sink l = {.out = open_memstream(&text, &n), .level = LOG_INFO};
    log_line(&l, LOG_ERROR, "cannot open %s", "a\nb\x1b[31m");
    log_line(&l, LOG_INFO, "%d files", 3);
    log_line(&l, LOG_DEBUG, "not shown");
    log_line(&(log_sink){0}, LOG_ERROR, "nowhere");
    fclose(l.out);
    assert_null(strchr(text, '\x1b'));
    size_t lines = 0;
    for (const char *p = text; *p; p++) lines += *p == '\n';
    assert_int_equal(lines, 2);
    assert_non_null(strstr(text, "deputy: error: cannot open a"));
    assert_non_null(strstr(text, "deputy: info: 3 files\n"));
    free(text);
}

static void test_base_sys__log_levels_have_three_names(void **state) {
    (void)state;
    log_level level = LOG_INFO;
    assert_true(log_level_parse(S("error"), &level) && level == LOG_ERROR);
    assert_true(log_level_parse(S("debug"), &level) && level == LOG_DEBUG);
    assert_true(log_level_parse(S("info"), &level) && level == LOG_INFO);
    static const char *const bad[] = {"", "Error", "warn", "debug ", "2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(log_level_parse(str_z(bad[i]), &level));
    assert_int_equal(level, LOG_INFO);
}

#define T(name) cmocka_unit_test_setup_teardown(test_base_sys__##name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(utc_times_are_written_in_full),
        T(local_times_name_their_zone_and_its_distance),
        T(the_real_clock_goes_forward),
        T(ids_are_all_of_128_random_bits),
        T(sha256_gives_the_published_values),
        T(sha256_is_right_at_every_length_around_its_blocks),
        T(directories_follow_home_and_absolute_xdg_values),
        T(the_log_writes_one_escaped_line_per_event),
        T(log_levels_have_three_names),
    };
    return cmocka_run_group_tests_name("base_sys", tests, NULL, NULL);
}

// Prices, the limit of cost, retention, and what is sent beside Deputy's own members: values, bounds, and
// which file may say them.
#include "support/support.h"
#include <deputy/config.h>
#include <deputy/json.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof *(x))

typedef struct {
    arena *a;
    config c;
    diags d;
} read_config;

static void add(read_config *r, bool system, str text) {
    dep_err err;
    if (config_parse(r->a, S("c.yaml"), text, system, &r->c, &r->d, &err) != DEP_OK) fail_msg("%s", err.msg);
}

static read_config parse(bool system, str text) {
    read_config r = {.a = arena_new(), .c = config_defaults()};
    r.d = diags_new(r.a);
    add(&r, system, text);
    return r;
}

static bool has(const diags *d, const char *code) {
    for (vec_each(const diag, it, &d->items))
        if (str_eq(str_z(it->code), str_z(code))) return true;
    return false;
}

// --- Amounts -------------------------------------------------------------------------------------

static void test_config_price__amounts_are_exact_millionths(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t micro; // -1: none
        const char *shown;
    } cases[] = {
        {"0", 0, "0"},
        {"2", 2000000, "2"},
        {"2.5", 2500000, "2.50"},
        {"2.50", 2500000, "2.50"},
        {"0.000001", 1, "0.000001"},
        {"0.1", 100000, "0.10"},
        {"1000000", 1000000000000, "1000000"},
        {"9223372036854.775807", INT64_MAX, "9223372036854.775807"},
        {"9223372036854.775808", INT64_MAX, "9223372036854.775807"},
        {"92233720368547758070", INT64_MAX, "9223372036854.775807"},
        {"9223372036854775807x", -1, NULL},
        {"0.0000001", -1, NULL}, // seven digits
        {"", -1, NULL},
        {".", -1, NULL},
        {".5", -1, NULL},
        {"5.", -1, NULL},
        {"1.2.3", -1, NULL},
        {"-1", -1, NULL},
        {"+1", -1, NULL},
        {"1e3", -1, NULL},
        {"1 ", -1, NULL},
        {"free", -1, NULL},
    };
    arena *a = arena_new();
    for (size_t i = 0; i < COUNT(cases); i++) {
        int64_t micro = -1;
        bool ok = keytab_micro(str_z(cases[i].text), &micro);
        if (ok != (cases[i].micro >= 0) || (ok && micro != cases[i].micro))
            fail_msg("%s: %d %lld", cases[i].text, ok, (long long)micro);
        if (ok) assert_true(str_eq(config_amount(a, micro), str_z(cases[i].shown)));
    }
    arena_free(a);
}

static void test_config_price__costs_are_rounded_up_once_and_never_overflow(void **state) {
    (void)state;
    const config_price
        p = {.input = 3000000, .output = 15000000, .cache_read = 300000, .cache_write = 3750000},
        dust = {.input = 1, .output = 1, .cache_read = 1, .cache_write = 1}, free_of_charge = {0},
        dear = {.input = INT64_MAX, .output = INT64_MAX, .cache_read = INT64_MAX, .cache_write = INT64_MAX};
    const struct {
        const config_price *p;
        int64_t tokens[4], want;
    } cases[] = {
        {&p, {1000000, 0, 0, 0}, 3000000},
        {&p, {0, 1000000, 0, 0}, 15000000},
        {&p, {0, 0, 1000000, 0}, 300000},
        {&p, {0, 0, 0, 1000000}, 3750000},
        {&p, {1, 1, 1, 1}, 23}, // 22.05
        {&p, {0, 0, 0, 0}, 0},
        {&p, {-5, 1, -1, INT64_MIN}, 15},
        {&dust, {1, 0, 0, 0}, 1},
        {&dust, {250000, 250000, 250000, 250000}, 1},
        {&dust, {250000, 250000, 250000, 250001}, 2},
        {&free_of_charge, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, 0},
        {&dear, {1000000, 0, 0, 0}, INT64_MAX},
        {&dear, {1000001, 0, 0, 0}, INT64_MAX},
        {&dear, {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX}, INT64_MAX},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        const int64_t *t = cases[i].tokens;
        int64_t got = config_cost_micro(cases[i].p, t[0], t[1], t[2], t[3]);
        if (got != cases[i].want) fail_msg("case %zu: %lld", i, (long long)got);
    }
}

// --- Prices --------------------------------------------------------------------------------------

static void assert_price(const config *c, const char *model, int64_t input) {
    const config_price *p = config_price_get(c, str_z(model));
    if (input < 0 ? p != NULL : !p || p->input != input)
        fail_msg("%s: %lld", model, p ? (long long)p->input : -1LL);
}

static void test_config_price__the_models_own_price_goes_before_its_providers(void **state) {
    (void)state;
    read_config r = parse(true, S("providers: {echo: {api: quote}, shop: {api: quote}}\n"
                                  "prices:\n"
                                  "  lab/*: {input: 1, output: 2}\n"
                                  "  lab/big/v1.5: {input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75}\n"
                                  "  local/small: {input: 0, output: 0}\n"
                                  "  shop/*: {input: 9, output: 9}\n"));
    assert_int_equal(r.d.items.n, 0);
    assert_price(&r.c, "lab/big/v1.5", 3000000);
    assert_price(&r.c, "lab/big/v1", 1000000);
    assert_price(&r.c, "lab/Big/v1.5", 1000000);
    assert_price(&r.c, "local/small", 0);
    assert_price(&r.c, "local/other", -1);
    assert_price(&r.c, "la/b", -1);
    assert_price(&r.c, "lab", 1000000);
    assert_price(&r.c, "", -1);
    // What is built in costs nothing, whatever its name is; unless somebody says otherwise.
    assert_price(&r.c, "quote/passages", 0);
    assert_price(&r.c, "echo/passages", 0);
    assert_price(&r.c, "shop/passages", 9000000);
    const config_price *p = config_price_get(&r.c, S("lab/big/v1.5"));
    assert_true(p->output == 15000000 && p->cache_read == 300000 && p->cache_write == 3750000);
    assert_true(str_eq(p->file, S("c.yaml")) && p->line == 4);
    p = config_price_get(&r.c, S("lab/x"));
    assert_true(p->cache_read == 1000000 && p->cache_write == 1000000); // as input
    arena_free(r.a);
}

static void test_config_price__half_a_price_is_none(void **state) {
    (void)state;
    static const struct {
        const char *row, *code; // NULL: fine
    } cases[] = {
        {"a/b: {input: 0, output: 0}", NULL},
        {"a/b: {input: 1000000, output: 0.000001}", NULL},
        {"a/b: {input: '1', output: \"2.5\"}", NULL},
        {"a/b: {input: 1000000.000001, output: 1}", "KEY003"},
        {"a/b: {input: 1, output: 1, cacheRead: 1000001}", "KEY003"},
        {"a/b: {input: 1, output: 0.0000001}", "KEY002"},
        {"a/b: {input: 1, output: -1}", "KEY002"},
        {"a/b: {input: 1, output: 1, cacheWrite: free}", "KEY002"},
        {"a/b: {input: 1, output: 1, cacheWrite: }", "KEY002"},
        {"a/b: {input: 1}", "KEY005"},
        {"a/b: {output: 1}", "KEY005"},
        {"a/b: {input: 1, output: 1, cached: 1}", "KEY008"},
        {"a/b: 5", "KEY002"},
        {"a: {input: 1, output: 1}", "CFG008"},
        {"a/: {input: 1, output: 1}", "CFG008"},
        {"/b: {input: 1, output: 1}", "CFG008"},
        {"a/b*: {input: 1, output: 1}", "CFG008"},
        {"'*/b': {input: 1, output: 1}", "CFG008"},
        {"'*': {input: 1, output: 1}", "CFG008"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        read_config r = parse(true, str_fmt(a, "prices:\n  %s\n", cases[i].row));
        bool unknown_key = cases[i].code && strcmp(cases[i].code, "KEY008") == 0;
        assert_int_equal(r.c.prices.n, !cases[i].code || unknown_key);
        assert_int_equal(r.c.fault.n > 0, cases[i].code != NULL);
        if (cases[i].code ? !has(&r.d, cases[i].code) : r.d.items.n > 0) fail_msg("%s", cases[i].row);
        arena_free(r.a);
        arena_free(a);
    }
}

static void test_config_price__prices_hold_at_n_and_n_plus_one(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        arena *a = arena_new();
        buf b = buf_new(a, 0);
        buf_add(&b, S("prices:\n"));
        for (size_t i = 0; i < CONFIG_PRICES_MAX + over; i++)
            buf_addf(&b, "  a/m%zu: {input: 1, output: 1}\n", i);
        read_config r = parse(true, buf_str(&b));
        assert_int_equal(r.c.prices.n, CONFIG_PRICES_MAX);
        assert_int_equal(has(&r.d, "KEY007"), over);
        assert_int_equal(r.c.fault.n > 0, over);
        arena_free(r.a);
        arena_free(a);
    }
}

// --- Cost, retention, which file -----------------------------------------------------------------

static void test_config_price__a_limit_of_cost_is_lowered_and_never_raised(void **state) {
    (void)state;
    static const struct {
        const char *system, *workspace; // NULL: none
        int64_t micro;
        const char *code; // NULL: fine
    } cases[] = {
        {NULL, NULL, 0, NULL},
        {"2.50", NULL, 2500000, NULL},
        {"0.000001", NULL, 1, NULL},
        {"1000000", NULL, 1000000000000, NULL},
        {"1000000.000001", NULL, 0, "KEY003"},
        {"99999999999999999999", NULL, 0, "KEY003"},
        {"0", NULL, 0, "KEY003"},
        {"0.0000001", NULL, 0, "KEY002"},
        {"-1", NULL, 0, "KEY002"},
        {"[1]", NULL, 0, "KEY002"},
        {NULL, "7", 7000000, NULL}, // lower than none
        {"2.50", "2.5", 2500000, NULL},
        {"2.50", "2.499999", 2499999, NULL},
        {"2.50", "2.500001", 2500000, "CFG002"},
        {"2.50", "0", 2500000, "KEY003"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        read_config r = parse(true, S(""));
        if (cases[i].system) add(&r, true, str_fmt(a, "limits: {cost: %s}\n", cases[i].system));
        if (cases[i].workspace) add(&r, false, str_fmt(a, "limits: {cost: %s}\n", cases[i].workspace));
        assert_int_equal(r.c.limits.cost_micro, cases[i].micro);
        assert_int_equal(r.c.limits.cost_set, cases[i].micro > 0);
        if (cases[i].code ? !has(&r.d, cases[i].code) : r.d.items.n > 0) fail_msg("case %zu", i);
        arena_free(r.a);
        arena_free(a);
    }
}

static void test_config_price__what_retention_says_wrongly_deletes_nothing(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t days, count;
        const char *code; // NULL: fine
    } cases[] = {
        {"x-none: 1\n", 180, 0, NULL},
        {"retention: {}\n", 180, 0, NULL},
        {"retention: {days: 0}\n", 0, 0, NULL},
        {"retention: {days: 36500, count: 10000000}\n", 36500, 10000000, NULL},
        {"retention: {count: 5}\n", 180, 5, NULL},
        {"retention: {days: 36501}\n", 0, 0, "KEY003"},
        {"retention: {days: -1, count: 10000001}\n", 0, 0, "KEY003"},
        {"retention: {days: forever}\n", 0, 0, "KEY002"},
        {"retention: never\n", 0, 0, "KEY002"},
        {"retention: {day: 5}\n", 180, 0, "KEY008"}, // and then nothing runs
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        read_config r = parse(true, str_z(cases[i].text));
        assert_int_equal(r.c.retention.days, cases[i].days);
        assert_int_equal(r.c.retention.count, cases[i].count);
        if (cases[i].code ? !has(&r.d, cases[i].code) : r.d.items.n > 0) fail_msg("%s", cases[i].text);
        arena_free(r.a);
    }
}

// B8: a clone decides neither what a model costs nor what is kept.
static void test_config_price__a_workspace_sets_no_price_and_keeps_nothing_longer(void **state) {
    (void)state;
    read_config r =
        parse(true, S("prices: {a/b: {input: 5, output: 5}}\nretention: {days: 10, count: 10}\n"));
    add(&r, false,
        S("prices: {a/b: {input: 0, output: 0}, a/*: {input: 0, output: 0}}\n"
          "retention: {days: 1, count: 1}\n"));
    assert_int_equal(r.d.errors, 2);
    assert_true(has(&r.d, "CFG001"));
    assert_int_equal(r.c.prices.n, 1);
    assert_price(&r.c, "a/b", 5000000);
    assert_price(&r.c, "a/c", -1);
    assert_true(r.c.retention.days == 10 && r.c.retention.count == 10);
    assert_int_equal(r.c.fault.n, 0);
    add(&r, false, S("prices: {a/b: {input: x}}\n")); // what is not read hides nothing
    assert_int_equal(r.c.fault.n, 0);
    arena_free(r.a);
}

// --- Providers -----------------------------------------------------------------------------------

static void test_config_price__windows_hold_at_n_and_n_plus_one(void **state) {
    (void)state;
    static const struct {
        int64_t value, want;
    } cases[] = {{1023, 0}, {1024, 1024}, {100000000, 100000000}, {100000001, 0}, {0, 0}, {-1, 0}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        read_config r = parse(
            true, str_fmt(a, "providers: {a: {api: openai, window: %lld}}\n", (long long)cases[i].value));
        assert_int_equal(config_provider_get(&r.c, S("a"))->window, cases[i].want);
        assert_int_equal(r.d.errors, !cases[i].want);
        arena_free(r.a);
        arena_free(a);
    }
}

static read_config with_params(arena *a, const char *params) {
    return parse(true, str_fmt(a, "providers:\n  a:\n    api: openai\n    params: %s\n", params));
}

static void test_config_price__parameters_are_sent_as_they_are_written(void **state) {
    (void)state;
    static const struct {
        const char *params, *want;
        const char *code; // NULL: fine
    } cases[] = {
        {"{}", "", NULL},
        {"{temperature: 0.2, top_p: 1}", "{\"temperature\":0.2,\"top_p\":1}", NULL},
        {"{reasoning_effort: low, seed: -7, x.y: 1e3}",
         "{\"reasoning_effort\":\"low\",\"seed\":-7,\"x.y\":1e3}", NULL},
        {"{a: true, b: False, c: 'true', d: '5', e: \"5\"}",
         "{\"a\":true,\"b\":false,\"c\":\"true\",\"d\":\"5\",\"e\":\"5\"}", NULL},
        {"{a: 007, b: .5, c: 1.5.2, d: NaN, e: 0x1F, f: '', g: 'say \"x\"'}",
         "{\"a\":\"007\",\"b\":\".5\",\"c\":\"1.5.2\",\"d\":\"NaN\",\"e\":\"0x1F\",\"f\":\"\",\"g\":\"say "
         "\\\"x\\\"\"}",
         NULL},
        {"{_a1: 1}", "{\"_a1\":1}", NULL},
        {"{1a: 1}", "", "CFG009"},
        {"{.a: 1}", "", "CFG009"},
        {"{a-b: 1}", "", "CFG009"},
        {"{'': 1}", "", "CFG009"},
        {"{\"a\\\"b\": 1}", "", "CFG009"},
        {"{Model: x, model: x}", "{\"Model\":\"x\"}", "CFG009"},
        {"{a: null, b: 1}", "{\"b\":1}", "KEY002"},
        {"{a: [1], b: 1}", "{\"b\":1}", "KEY002"},
        {"{a: {c: 1}, b: 1}", "{\"b\":1}", "KEY002"},
        {"[a]", "", "KEY002"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        arena *a = arena_new();
        read_config r = with_params(a, cases[i].params);
        str got = config_provider_get(&r.c, S("a"))->params;
        if (!str_eq(got, str_z(cases[i].want))) fail_msg("%s: " STR_FMT, cases[i].params, STR_ARG(got));
        if (cases[i].code ? !has(&r.d, cases[i].code) : r.d.items.n > 0) fail_msg("%s", cases[i].params);
        json *j;
        dep_err err;
        if (got.n) assert_int_equal(json_parse(a, got, 0, &j, &err), DEP_OK);
        arena_free(r.a);
        arena_free(a);
    }
}

static void test_config_price__no_parameter_takes_the_place_of_ours(void **state) {
    (void)state;
    static const char *const own[] = {
        "model", "messages",   "input",      "instructions",          "system",
        "tools", "stream",     "max_tokens", "max_completion_tokens", "max_output_tokens",
        "n",     "tool_choice"};
    for (size_t i = 0; i < COUNT(own); i++) {
        arena *a = arena_new();
        read_config r = with_params(a, str_cz(a, str_fmt(a, "{%s: x, temperature: 1}", own[i])));
        assert_true(str_eq(config_provider_get(&r.c, S("a"))->params, S("{\"temperature\":1}")));
        assert_int_equal(r.d.errors, 1);
        assert_true(has(&r.d, "CFG009"));
        for (size_t k = 0; k < COUNT(own); k++)
            assert_true(str_find(r.d.items.p[0].hint, str_z(own[k])) != SIZE_MAX);
        arena_free(r.a);
        arena_free(a);
    }
}

static void test_config_price__parameters_hold_at_n_and_n_plus_one(void **state) {
    (void)state;
    for (size_t over = 0; over < 2; over++) {
        arena *a = arena_new();
        buf b = buf_new(a, 0);
        for (size_t i = 0; i < CONFIG_PARAMS_MAX + over; i++) buf_addf(&b, "%sp%zu: 1", i ? ", " : "{", i);
        buf_addc(&b, '}');
        read_config r = with_params(a, str_cz(a, buf_str(&b)));
        json *j;
        dep_err err;
        assert_int_equal(json_parse(a, config_provider_get(&r.c, S("a"))->params, 0, &j, &err), DEP_OK);
        assert_int_equal(j->count, CONFIG_PARAMS_MAX);
        assert_int_equal(has(&r.d, "KEY007"), over);
        arena_free(r.a);

        buf_clear(&b);
        buf_addc(&b, '{');
        buf_fill(&b, 'p', CONFIG_PARAM_NAME_MAX + over);
        buf_add(&b, S(": 1}"));
        r = with_params(a, str_cz(a, buf_str(&b)));
        assert_int_equal(config_provider_get(&r.c, S("a"))->params.n == 0, over);
        assert_int_equal(has(&r.d, "CFG009"), over);
        arena_free(r.a);

        buf_clear(&b);
        buf_add(&b, S("{p: "));
        buf_fill(&b, 'v', CONFIG_PARAM_VALUE_MAX + over);
        buf_addc(&b, '}');
        r = with_params(a, str_cz(a, buf_str(&b)));
        assert_int_equal(config_provider_get(&r.c, S("a"))->params.n == 0, over);
        assert_int_equal(has(&r.d, "CFG009"), over);
        arena_free(r.a);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_config_price__amounts_are_exact_millionths),
        cmocka_unit_test(test_config_price__costs_are_rounded_up_once_and_never_overflow),
        cmocka_unit_test(test_config_price__the_models_own_price_goes_before_its_providers),
        cmocka_unit_test(test_config_price__half_a_price_is_none),
        cmocka_unit_test(test_config_price__prices_hold_at_n_and_n_plus_one),
        cmocka_unit_test(test_config_price__a_limit_of_cost_is_lowered_and_never_raised),
        cmocka_unit_test(test_config_price__what_retention_says_wrongly_deletes_nothing),
        cmocka_unit_test(test_config_price__a_workspace_sets_no_price_and_keeps_nothing_longer),
        cmocka_unit_test(test_config_price__windows_hold_at_n_and_n_plus_one),
        cmocka_unit_test(test_config_price__parameters_are_sent_as_they_are_written),
        cmocka_unit_test(test_config_price__no_parameter_takes_the_place_of_ours),
        cmocka_unit_test(test_config_price__parameters_hold_at_n_and_n_plus_one),
    };
    return cmocka_run_group_tests_name("config_price", tests, NULL, NULL);
}

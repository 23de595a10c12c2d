// Code points, validity, widths, cuts, normal forms and the fold.
#include "base/utf8_int.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

static int setup(void **state) {
    *state = arena_new();
    return 0;
}

static int teardown(void **state) {
    arena_free(*state);
    return 0;
}

static void check_text(str got, str want) {
    if (!str_eq(got, want))
        fail_msg("got \"" STR_FMT "\", want \"" STR_FMT "\"", STR_ARG(got), STR_ARG(want));
}

static int hex_digit(char c) {
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static str from_hex(arena *a, str hex) {
    char *p = arena_alloc(a, hex.n / 2 + 1);
    for (size_t i = 0; i + 1 < hex.n; i += 2)
        p[i / 2] = (char)(hex_digit(hex.p[i]) << 4 | hex_digit(hex.p[i + 1]));
    return str_n(p, hex.n / 2);
}

// --- Decoding and validity. ---

static void test_base_utf8__every_code_point_is_written_and_read_back(void **state) {
    buf b = buf_new(*state, 0);
    for (uint32_t cp = 0; cp <= 0x10FFFF; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        buf_clear(&b);
        utf8_put(&b, cp);
        str s = buf_str(&b);
        size_t i = 0, back = s.n;
        if (utf8_next(s, &i) != cp || i != s.n || !utf8_valid(s) || utf8_prev(s, &back) != cp || back != 0)
            fail_msg("U+%04X does not survive", cp);
    }
}

static void test_base_utf8__what_is_no_scalar_value_is_written_as_the_replacement(void **state) {
    static const uint32_t bad[] = {0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0x110000, UTF8_BAD};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        buf b = buf_new(*state, 0);
        utf8_put(&b, bad[k]);
        check_text(buf_str(&b), S("\uFFFD"));
    }
}

static void test_base_utf8__reading_moves_one_byte_over_bad_input_and_stops_at_the_end(void **state) {
    (void)state;
    str s = S("a\xE4\xBD");
    size_t i = 0;
    assert_int_equal(utf8_next(s, &i), 'a');
    assert_int_equal(utf8_next(s, &i), UTF8_BAD);
    assert_int_equal(i, 2);
    assert_int_equal(utf8_next(s, &i), UTF8_BAD);
    assert_int_equal(i, 3);
    assert_int_equal(utf8_next(s, &i), UTF8_BAD);
    assert_int_equal(i, 3);
}

static void test_base_utf8__the_stress_cases_get_their_verdicts(void **state) {
    char *path = shared_path("realdata/text/kuhn/stress.tsv");
    if (!path) skip();
    str file = read_all(path), rest = file, line;
    size_t cases = 0;
    str_cut(rest, '\n', &line, &rest); // the heading
    while (rest.n) {
        str_cut(rest, '\n', &line, &rest);
        size_t last = str_rchr(line, '\t'), before = str_rchr(str_sub(line, 0, last), '\t');
        str bytes = from_hex(*state, str_sub(line, before + 1, last));
        bool want = line.p[last + 1] == '1';
        if (utf8_valid(bytes) != want) fail_msg("wrong verdict: " STR_FMT, STR_ARG(line));
        if (!utf8_valid(utf8_repair(*state, bytes))) fail_msg("not repaired: " STR_FMT, STR_ARG(line));
        cases++;
    }
    assert_int_equal(cases, 71);
    free((char *)file.p);
    free(path);
}

static void test_base_utf8__the_first_bad_byte_is_found_at_every_offset(void **state) {
    (void)state;
    char text[100];
    for (size_t at = 0; at < sizeof text; at++) {
        memset(text, 'x', sizeof text);
        text[at] = (char)0x80;
        assert_int_equal(utf8_invalid_at(str_n(text, sizeof text)), at);
    }
    memset(text, 'x', sizeof text);
    assert_int_equal(utf8_invalid_at(str_n(text, sizeof text)), SIZE_MAX);
    assert_int_equal(utf8_invalid_at((str){0}), SIZE_MAX);
    assert_int_equal(utf8_invalid_at(S("caf\u00E9 \u4E2D\xE6")), 9);
}

static uint32_t step(uint32_t *seed) {
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

// The first byte that does not belong to a well-formed sequence, one step after the other.
static size_t first_bad(str s) {
    for (size_t i = 0; i < s.n;) {
        size_t at = i;
        if (utf8_next(s, &i) == UTF8_BAD) return at;
    }
    return SIZE_MAX;
}

static void test_base_utf8__every_pair_of_bytes_is_judged_as_by_steps(void **state) {
    (void)state;
    // Before, across and behind the borders of what is looked at in one go, and at the end of the text.
    for (unsigned pair = 0; pair < 65536; pair++) {
        for (size_t at = 13; at < 17; at++) {
            char text[40];
            memset(text, 'x', sizeof text);
            text[at] = (char)(pair >> 8);
            text[at + 1] = (char)pair;
            text[at + 2] = text[at + 3] = (char)0x80;
            for (size_t n = at + 1; n <= at + 4; n++)
                assert_int_equal(utf8_invalid_at(str_n(text, n)), first_bad(str_n(text, n)));
            assert_int_equal(utf8_invalid_at(str_n(text, sizeof text)), first_bad(str_n(text, sizeof text)));
        }
    }
}

static void test_base_utf8__damage_in_any_text_is_found_where_it_is(void **state) {
    static const uint32_t scripts[] = {'a',   0xE9,  0x4E2D, 0xFF0C,   0x1F600,
                                       0x7FF, 0x800, 0xFFFF, 0x10FFFF, 0xD7FF};
    uint32_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        buf b = buf_new(*state, 400);
        for (uint32_t k = step(&seed) % 60; k; k--)
            utf8_put(&b, scripts[step(&seed) % (sizeof scripts / sizeof *scripts)]);
        str text = buf_str(&b);
        assert_int_equal(utf8_invalid_at(text), SIZE_MAX);
        if (!text.n) continue;
        char *p = (char *)text.p;
        p[step(&seed) % text.n] = (char)step(&seed);
        text.n -= step(&seed) % 3 % text.n;
        assert_int_equal(utf8_invalid_at(text), first_bad(text));
        arena_reset(*state);
    }
}

static void test_base_utf8__repair_replaces_each_bad_byte_and_copies_nothing_that_is_good(void **state) {
    str good = S("caf\u00E9");
    assert_ptr_equal(utf8_repair(*state, good).p, good.p);
    check_text(utf8_repair(*state, S("a\xE6\x96")), S("a\uFFFD\uFFFD"));
    check_text(utf8_repair(*state, S("\xC0\xAFx\xFF")), S("\uFFFD\uFFFDx\uFFFD"));
}

static void test_base_utf8__floor_gives_the_start_of_the_code_point(void **state) {
    (void)state;
    str s = S("a\u4E2D\U0001F600\x80z");
    static const size_t want[] = {0, 1, 1, 1, 4, 4, 4, 4, 8, 9, 10, 10};
    for (size_t at = 0; at < sizeof want / sizeof *want; at++) assert_int_equal(utf8_floor(s, at), want[at]);
    assert_int_equal(utf8_count(s), 5);
    assert_int_equal(utf8_count(S("plain text that is longer than one step of thirty-two bytes")), 59);
}

// --- Widths and cuts. ---

static void test_base_utf8__width_counts_terminal_columns(void **state) {
    (void)state;
    static const struct {
        str text;
        size_t want;
    } cases[] = {
        {S_INIT(""), 0},
        {S_INIT("plain"), 5},
        {S_INIT("a\tb"), 3},
        {S_INIT("\x1B[0m"), 3},
        {S_INIT("\u9000\u6B3E"), 4}, // two ideographs
        {S_INIT("e\u0301"), 1},      // e and an accent
        {S_INIT("\uFF21"), 2},       // full-width A
        {S_INIT("\uFF80"), 1},       // half-width katakana
        {S_INIT("\U0001F600"), 2},   // emoji
        {S_INIT("a\u200B\u00AD\u202E"
                "b"),
         2}, // zero width space, soft hyphen, override
        {S_INIT("\xFF"), 1},
        {S_INIT("\U0001FAE9"), 2}, // newer than utf8proc
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (utf8_width(cases[k].text) != cases[k].want)
            fail_msg("case %zu: %zu columns, want %zu", k, utf8_width(cases[k].text), cases[k].want);
}

#define FAMILY "\U0001F469\u200D\U0001F467" // woman, joiner, girl: 11 bytes, 3 code points

static void test_base_utf8__cuts_end_at_grapheme_boundaries(void **state) {
    (void)state;
    static const struct {
        str text;
        size_t bytes, want;
    } cases[] = {
        {S_INIT("abc"), 3, 3},
        {S_INIT("abc"), 2, 2},
        {S_INIT("abc"), 0, 0},
        {S_INIT("a\r\nb"), 2, 1},
        {S_INIT("a\r\nb"), 3, 3},
        {S_INIT("e\u0301x"), 1, 0},
        {S_INIT("e\u0301x"), 2, 0},
        {S_INIT("e\u0301x"), 3, 3},
        {S_INIT("a" FAMILY "b"), 11, 1},
        {S_INIT("a" FAMILY "b"), 12, 12},
        {S_INIT("\U0001F1E9\U0001F1EA\U0001F1EB\U0001F1F7"), 12, 8}, // two flags
        {S_INIT("\u4E2D\u6587"), 5, 3},
        {S_INIT("x\xFF\xFE"), 2, 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (utf8_cut(cases[k].text, cases[k].bytes).n != cases[k].want)
            fail_msg("case %zu: cut to %zu", k, utf8_cut(cases[k].text, cases[k].bytes).n);
}

static void test_base_utf8__cuts_by_characters_end_at_grapheme_boundaries(void **state) {
    (void)state;
    static const struct {
        str text;
        size_t chars, want;
    } cases[] = {
        {S_INIT("abc"), 3, 3},           {S_INIT("abc"), 2, 2},          {S_INIT("abc"), 0, 0},
        {S_INIT("a\r\nb"), 2, 1},        {S_INIT("a" FAMILY "b"), 3, 1}, {S_INIT("a" FAMILY "b"), 4, 12},
        {S_INIT("a" FAMILY "b"), 5, 13}, {S_INIT("e\u0301x"), 1, 0},     {S_INIT("e\u0301x"), 2, 3},
        {S_INIT("\u4E2D\u6587"), 1, 3},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (utf8_cut_chars(cases[k].text, cases[k].chars).n != cases[k].want)
            fail_msg("case %zu: cut to %zu", k, utf8_cut_chars(cases[k].text, cases[k].chars).n);
}

// --- Properties. ---

static void test_base_utf8__properties_of_sample_code_points(void **state) {
    (void)state;
    assert_true(utf8_is_letter('a') && utf8_is_letter(0xE9) && utf8_is_letter(0x4E2D) &&
                utf8_is_letter(0x1D400));
    assert_false(utf8_is_letter('1') || utf8_is_letter('_') || utf8_is_letter(0x301) ||
                 utf8_is_letter(UTF8_BAD));
    assert_true(utf8_is_decimal('7') && utf8_is_decimal(0x0665) && utf8_is_decimal(0xFF17));
    assert_false(utf8_is_decimal(0xB2) || utf8_is_decimal(0x2167));
    assert_true(utf8_is_mark(0x301) && utf8_is_mark(0x0903) && utf8_is_mark(0x20E3));
    assert_true(utf8_is_control(0) && utf8_is_control(0x1F) && utf8_is_control(0x7F) &&
                utf8_is_control(0x9F));
    assert_false(utf8_is_control(' ') || utf8_is_control(0xA0));
    static const uint32_t bidi[] = {0x061C, 0x200E, 0x200F, 0x202A, 0x202E, 0x2066, 0x2069};
    for (size_t k = 0; k < sizeof bidi / sizeof *bidi; k++) {
        assert_true(utf8_is_bidi(bidi[k]));
        assert_false(utf8_is_invisible(bidi[k]));
    }
    static const uint32_t unseen[] = {0xAD,   0x34F,   0x115F,  0x180E,  0x200B, 0x200D, 0x2028,
                                      0x2060, 0x2065,  0x3164,  0xFE0F,  0xFEFF, 0xFFA0, 0xFFF0,
                                      0xFFF9, 0x1D173, 0xE0001, 0xE0041, 0xE01EF};
    for (size_t k = 0; k < sizeof unseen / sizeof *unseen; k++) assert_true(utf8_is_invisible(unseen[k]));
    // Arabic number sign, Kaithi number sign: format characters that show.
    assert_false(utf8_is_invisible(0x0600) || utf8_is_invisible(0x110BD) || utf8_is_invisible(0xA0));
    static const uint32_t cjk[] = {0x4E2D, 0x3042, 0x30A2, 0xFF71, 0xAC00, 0x1112,
                                   0x3105, 0x0E01, 0x0EC0, 0x1780, 0x1000, 0x20000};
    for (size_t k = 0; k < sizeof cjk / sizeof *cjk; k++) assert_true(utf8_is_cjk(cjk[k]));
    assert_false(utf8_is_cjk('a') || utf8_is_cjk(0x3002) || utf8_is_cjk(0xFF21) || utf8_is_cjk(0x0E3F));
}

static void test_base_utf8__the_quick_look_never_passes_what_takes_a_closer_one(void **state) {
    (void)state;
    for (uint32_t cp = 0; cp <= 0x110000; cp++) {
        bool close = utf8_is_control(cp) || utf8_is_bidi(cp) || utf8_is_invisible(cp) || cp == '<' ||
                     cp == 0x226E || cp == 0xFE64 || cp == 0xFF1C;
        if (close && utf8_is_ordinary(cp)) fail_msg("U+%04X", cp);
    }
    assert_false(utf8_is_ordinary(UTF8_BAD));
}

static void test_base_utf8__printable_runs_end_at_the_first_other_byte(void **state) {
    (void)state;
    char text[40];
    for (size_t at = 0; at < sizeof text; at++) {
        for (int c = 0; c < 256; c++) {
            memset(text, '~', sizeof text);
            text[at] = (char)c;
            bool ends = c < 0x20 || c >= 0x7F || c == '<' || c == '"';
            assert_int_equal(utf8_printable_run(str_n(text, sizeof text), 0, '<', '"'),
                             ends ? at : sizeof text);
        }
    }
    assert_int_equal(utf8_printable_run(S("abc"), 3, 'x', 'x'), 0);
}

// --- Normal forms and the fold. ---

static void test_base_utf8__normal_forms(void **state) {
    check_text(utf8_nfc(*state, S("re\u0301vision")), S("r\u00E9vision"));
    check_text(utf8_nfc(*state, S("\u1112\u1161\u11AB")),
               S("\uD55C")); // Hangul parts
    check_text(utf8_nfc(*state, S("a\u0307\u0323")),
               S("\u1EA1\u0307")); // accents are put in order
    check_text(utf8_nfc(*state, S("\uFF21 \uFB01")), S("\uFF21 \uFB01"));
    check_text(utf8_nfkc(*state, S("\uFF21 \uFB01 \u00B2")), S("A fi 2"));
    check_text(utf8_nfkc(*state, S("\uFDFA")),
               S("\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064A\u0647 "
                 "\u0648\u0633\u0644\u0645"));
    check_text(utf8_nfc(*state, S("bad \xFF"
                                  "e\u0301")),
               S("bad \uFFFD\u00E9"));
    str same = S("Plain \u4E2D\u6587 text");
    assert_ptr_equal(utf8_nfc(*state, same).p, same.p);
}

static void test_base_utf8__the_fold_makes_equal_what_reads_equal(void **state) {
    static const struct {
        str text, want;
    } cases[] = {
        {S_INIT(""), S_INIT("")},
        {S_INIT("lower"), S_INIT("lower")},
        {S_INIT("UPPER Case 09 [\\]^_`{|}~ @Z"), S_INIT("upper case 09 [\\]^_`{|}~ @z")},
        {S_INIT("\uFF80\uFF72\uFF84\uFF9E"), S_INIT("\u30BF\u30A4\u30C9")},
        {S_INIT("\uFF32\uFF45\uFF46\uFF55\uFF4E\uFF44"), S_INIT("refund")},
        {S_INIT("Stra\u00DF"
                "e STRASSE"),
         S_INIT("strasse strasse")},
        {S_INIT("\u1E9E"), S_INIT("ss")},
        {S_INIT("\u0130stanbul"), S_INIT("i\u0307stanbul")},
        {S_INIT("\u039F\u0394\u039F\u03A3 \u03BF\u03B4\u03BF\u03C2"),
         S_INIT("\u03BF\u03B4\u03BF\u03C3 \u03BF\u03B4\u03BF\u03C3")},
        {S_INIT("caf\u00E9"), S_INIT("caf\u00E9")},
        {S_INIT("cafe\u0301"), S_INIT("caf\u00E9")},
        {S_INIT("CAF\u00C9"), S_INIT("caf\u00E9")},
        {S_INIT("re\u00ADfund re\u200B"
                "fund \uFEFFre\u200D"
                "fund\uFE0F"),
         S_INIT("refund refund refund")},
        {S_INIT("e\u00AD\u0301"), S_INIT("\u00E9")},
        {S_INIT("\u2121 \u2167 \u2462"), S_INIT("tel viii 3")},
        {S_INIT("\u212A\u017F"), S_INIT("ks")},
        {S_INIT("\u3131\u314F"), S_INIT("\uAC00")}, // compatibility jamo join
        {S_INIT("\uFF1A\uFF21\u3000\uFF21\u0301\uFF5E"), S_INIT(":a \u00E1~")},
        {S_INIT("\U000E0061x\u2065y\uFFF0"), S_INIT("xy")},
        {S_INIT("A\xFFZ"), S_INIT("a\uFFFDz")},
        {S_INIT("\u9000\u6B3E\u653F\u7B56"), S_INIT("\u9000\u6B3E\u653F\u7B56")},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_text(utf8_fold(*state, cases[k].text), cases[k].want);
}

static void test_base_utf8__folding_text_that_needs_none_gives_it_back(void **state) {
    str s = S("plain lower text, \u4E2D\u6587\u3002 \uD55C");
    size_t used = arena_used(*state);
    assert_ptr_equal(utf8_fold(*state, s).p, s.p);
    assert_int_equal(arena_used(*state), used);
}

// The walk in segments against the whole text given to utf8proc in one piece.
static str whole(arena *a, str s, utf8proc_option_t options) {
    utf8proc_uint8_t *p = NULL;
    utf8proc_ssize_t n = utf8proc_map((const utf8proc_uint8_t *)s.p, (utf8proc_ssize_t)s.n, &p, options);
    assert_true(n >= 0);
    str copy = str_dup(a, str_n((char *)p, (size_t)n));
    free(p);
    return copy;
}

static str fold_whole(arena *a, str s) {
    buf kept = buf_new(a, 0);
    for (size_t i = 0; i < s.n;) {
        uint32_t cp = utf8_next(s, &i);
        if (!utf8_is_ignorable(cp)) utf8_put(&kept, cp);
    }
    str now = buf_str(&kept);
    for (int k = 0; k < 4; k++)
        now = whole(a, now, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD);
    return now;
}

static void test_base_utf8__folding_in_segments_equals_folding_at_once(void **state) {
    (void)state;
    // Each code point between others that could combine with it, four neighbourhoods.
    static const str around[][2] = {
        {S_INIT("a"), S_INIT("b")},
        {S_INIT("\u1100"), S_INIT("\u11A8")},
        {S_INIT("\u30AB"), S_INIT("\u0301\u3099")},
        {S_INIT("A\u0308\u00AD"), S_INIT("\u200D\u0323")},
    };
    arena *a = arena_new();
    for (uint32_t cp = 1; cp <= 0x2FFFF; cp++) {
        if (cp >= 0xD800 && cp <= 0xDFFF) continue;
        if (cp > 0x3400 && cp < 0xA000 && cp % 101) continue; // ideographs are all alike
        if (cp > 0xAC00 && cp < 0xD700 && cp % 29) continue;  // and so are syllables
        if (cp > 0x20000 && cp % 31) continue;
        size_t k = cp % 4;
        buf b = buf_new(a, 0);
        for (size_t n = 0; n < 4; n++, k = (k + 1) % 4) {
            buf_clear(&b);
            buf_add(&b, around[k][0]);
            utf8_put(&b, cp);
            buf_add(&b, around[k][1]);
            str s = buf_str(&b);
            str got = utf8_fold(a, s);
            if (!str_eq(got, fold_whole(a, s))) fail_msg("U+%04X in neighbourhood %zu", cp, k);
            if (!str_eq(utf8_nfc(a, s), whole(a, s, UTF8PROC_STABLE | UTF8PROC_COMPOSE)))
                fail_msg("U+%04X in neighbourhood %zu: NFC", cp, k);
            if (!str_eq(utf8_fold(a, got), got)) fail_msg("U+%04X in neighbourhood %zu is not stable", cp, k);
        }
        if (cp % 64 == 0) arena_reset(a);
    }
    arena_free(a);
}

static void test_base_utf8__folding_twice_changes_nothing_in_naughty_strings(void **state) {
    char *path = shared_path("realdata/text/blns/blns.txt");
    if (!path) skip();
    str file = read_all(path), rest = file, line;
    size_t lines = 0;
    while (rest.n) {
        str_cut(rest, '\n', &line, &rest);
        str once = utf8_fold(*state, line), twice = utf8_fold(*state, once);
        if (!str_eq(once, twice) || !utf8_valid(once)) fail_msg("not stable: " STR_FMT, STR_ARG(line));
        check_text(once, fold_whole(*state, line));
        check_text(utf8_fold(*state, utf8_nfc(*state, line)), once);
        check_text(utf8_fold(*state, utf8_nfkc(*state, line)), once);
        lines++;
    }
    assert_true(lines > 500);
    check_text(utf8_fold(*state, file), utf8_fold(*state, utf8_fold(*state, file)));
    free((char *)file.p);
    free(path);
}

static void test_base_utf8__thousands_of_accents_on_one_letter_cost_no_square(void **state) {
    // Two classes of accents in the worst order; at once this would take minutes.
    buf b = buf_new(*state, 0);
    buf_addc(&b, 'A');
    for (int k = 0; k < 200000; k++) buf_add(&b, k % 2 ? S("\u0323") : S("\u0307"));
    str folded = utf8_fold(*state, buf_str(&b));
    assert_true(utf8_valid(folded) && folded.n > 100000);
    assert_int_equal(utf8_cut(buf_str(&b), 1000).n, 0);
}

// Folding copies what it knows to stay the same without a look at each character: it must be so of each.
static void test_base_utf8__no_form_changes_what_folding_copies_unseen(void **state) {
    (void)state;
    for (uint32_t cp = 0x4000; cp <= 0x9FFF; cp++) {
        arena *a = arena_new();
        buf b = buf_new(a, 0);
        // Before and after what takes a closer look, and in a long run.
        for (int k = 0; k < 3; k++) {
            utf8_put(&b, cp);
            buf_add(&b, k == 1 ? S("\xCC\x81") : S("\xEF\xBC\x8C"));
        }
        for (int k = 0; k < 20; k++) utf8_put(&b, cp);
        str text = buf_str(&b), pieces = utf8_fold_pieces(a, text, NULL, NULL), whole = utf8_fold(a, text);
        if (!str_eq(pieces, whole)) fail_msg("U+%04X folds differently", cp);
        str one = str_sub(text, text.n - 3, text.n);
        if (!str_eq(utf8_fold_pieces(a, one, NULL, NULL), one)) fail_msg("U+%04X is changed", cp);
        arena_free(a);
    }
}

// n parts by chance, four of five among the first `few`.
static str mixture(arena *a, uint64_t *x, const char *const *parts, size_t few, size_t all, int n) {
    buf b = buf_new(a, SIZE_MAX / 4);
    for (; n > 0; n--) {
        *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
        buf_add(&b, str_z(parts[(*x >> 20) % ((*x >> 33) % 5 ? few : all)]));
    }
    return buf_str(&b);
}

static size_t capitals_lowered(str from, str to) {
    size_t same = 0;
    for (size_t i = 0; i < from.n; i++) {
        char c = from.p[i];
        same += to.p[i] == (c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
    }
    return same;
}

// What whole files take is another way to the same: any mixture of what is copied, narrowed, folded, composed
// and left out, at any distance from the bytes that are looked at together.
static void test_base_utf8__a_file_folds_as_a_string_does(void **state) {
    (void)state;
    static const char *const parts[] = {"a",
                                        "Zz",
                                        " ",
                                        "\n",
                                        "0",
                                        "中",
                                        "文字",
                                        "，",
                                        "。",
                                        "：",
                                        "Ａ",
                                        "　",
                                        "é",
                                        "É",
                                        "e\xCC\x81",
                                        "\xCC\x81",
                                        "\xCC\xA3",
                                        "か",
                                        "か\xE3\x82\x99",
                                        "ｶﾞ",
                                        "ﷺ",
                                        "ß",
                                        "\xC2\xAD",
                                        "\xE2\x80\x8B",
                                        "한",
                                        "ᄒ",
                                        "ᅡ",
                                        "ㄱ",
                                        "й",
                                        "И",
                                        "😀",
                                        "ﬁ",
                                        "①",
                                        "\xEF\xBF\xBD",
                                        "plain text of some length, "};
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 3000; round++) {
        arena *a = arena_new();
        // Most parts are plain, in some rounds hardly any.
        size_t all = sizeof parts / sizeof *parts;
        str text = mixture(a, &x, parts, round % 3 ? 7 : all, all, round % 90);
        utf8_pieces pieces = {0};
        str file = utf8_fold_pieces(a, text, &pieces, NULL), want = utf8_fold(a, text);
        check_text(file, want);
        // Between the pieces nothing is changed but capitals.
        size_t from = 0, to = 0;
        for (size_t k = 0; k <= pieces.n && !pieces.more; k++) {
            size_t end = k < pieces.n ? pieces.p[k].from : text.n,
                   end_to = k < pieces.n ? pieces.p[k].to : file.n;
            assert_int_equal(end - from, end_to - to);
            assert_int_equal(capitals_lowered(str_sub(text, from, end), str_sub(file, to, end_to)),
                             end - from);
            if (k == pieces.n) break;
            from = end + pieces.p[k].n;
            to = end_to + pieces.p[k].n_to;
        }
        arena_free(a);
    }
}

// Long texts are copied some bytes at a time, with a question after each: what leans back finds its base.
static void test_base_utf8__a_long_file_folds_as_a_string_does(void **state) {
    (void)state;
    for (int d = -20; d < 20; d++) {
        arena *a = arena_new();
        buf b = buf_new(a, SIZE_MAX / 4);
        buf_fill(&b, 'X', (size_t)((int)STOP_EACH + d));
        buf_add(&b, S("\xCC\x81"));
        buf_fill(&b, 'y', STOP_EACH);
        buf_add(&b, S("か\xE3\x82\x99，ﷺﷺ文"));
        stop_sign never = {0};
        check_text(utf8_fold_pieces(a, buf_str(&b), NULL, &never), utf8_fold(a, buf_str(&b)));
        arena_free(a);
    }
}

// The first `chars` code points of s, up to the last place where a grapheme ends: by utf8proc alone.
static size_t cut_by_library(str s, size_t chars) {
    size_t i = 0, best = 0, count = 0;
    int32_t state = 0;
    uint32_t before = 0;
    while (i < s.n && count <= chars) {
        size_t at = i;
        uint32_t cp = utf8_next(s, &i);
        if (!at || utf8proc_grapheme_break_stateful((int32_t)before, (int32_t)cp, &state)) best = at;
        before = cp;
        count++;
    }
    return i == s.n && count <= chars ? s.n : best;
}

static void test_base_utf8__graphemes_end_where_the_library_says(void **state) {
    (void)state;
    static const char *const parts[] = {"a",
                                        "1",
                                        "#",
                                        "~",
                                        "中",
                                        "か",
                                        "カ",
                                        "Ａ",
                                        "。",
                                        "\xCC\x81",
                                        "\xE3\x82\x99",
                                        "\xE2\x80\x8D",
                                        "\xEF\xB8\x8F",
                                        "👩",
                                        "🏽",
                                        "🇩",
                                        "🇪",
                                        "한",
                                        "ᄒ",
                                        "ᅡ",
                                        "क",
                                        "्",
                                        "\r",
                                        "\n",
                                        "é",
                                        "©",
                                        "\xE2\x83\xA3"};
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 20000; round++) {
        arena *a = arena_new();
        size_t all = sizeof parts / sizeof *parts;
        str text = mixture(a, &x, parts, all, all, 14);
        size_t n = 1 + (x >> 40) % 14;
        if (utf8_cut_chars(text, n).n != cut_by_library(text, n)) fail_msg("%zu characters of %s", n, text.p);
        arena_free(a);
    }
}

static bool count_question(void *ctx) {
    ++*(size_t *)ctx;
    return false;
}

// A file of any script can be stopped while it is folded.
static void test_base_utf8__folding_a_file_asks_whether_to_stop(void **state) {
    (void)state;
    static const char *const texts[] = {"a", "A",  "中", "，", "а", "Я",  "α",    "א",
                                        "ก", "か", "カ", "한", "é", "😀", "α β ", "ﷺ"};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        arena *a = arena_new();
        buf b = buf_new(a, SIZE_MAX / 4);
        while (b.n < 4 * STOP_EACH) buf_add(&b, str_z(texts[k]));
        size_t questions = 0;
        stop_sign stop = {.ask = count_question, .ctx = &questions};
        (void)utf8_fold_pieces(a, buf_str(&b), NULL, &stop);
        if (questions < 3) fail_msg("%zu questions while folding %s", questions, texts[k]);
        arena_free(a);
    }
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest cases[] = {
        CASE(test_base_utf8__every_code_point_is_written_and_read_back),
        CASE(test_base_utf8__what_is_no_scalar_value_is_written_as_the_replacement),
        CASE(test_base_utf8__reading_moves_one_byte_over_bad_input_and_stops_at_the_end),
        CASE(test_base_utf8__the_stress_cases_get_their_verdicts),
        CASE(test_base_utf8__the_first_bad_byte_is_found_at_every_offset),
        CASE(test_base_utf8__every_pair_of_bytes_is_judged_as_by_steps),
        CASE(test_base_utf8__damage_in_any_text_is_found_where_it_is),
        CASE(test_base_utf8__repair_replaces_each_bad_byte_and_copies_nothing_that_is_good),
        CASE(test_base_utf8__floor_gives_the_start_of_the_code_point),
        CASE(test_base_utf8__width_counts_terminal_columns),
        CASE(test_base_utf8__cuts_end_at_grapheme_boundaries),
        CASE(test_base_utf8__cuts_by_characters_end_at_grapheme_boundaries),
        CASE(test_base_utf8__graphemes_end_where_the_library_says),
        CASE(test_base_utf8__properties_of_sample_code_points),
        CASE(test_base_utf8__the_quick_look_never_passes_what_takes_a_closer_one),
        CASE(test_base_utf8__printable_runs_end_at_the_first_other_byte),
        CASE(test_base_utf8__normal_forms),
        CASE(test_base_utf8__the_fold_makes_equal_what_reads_equal),
        CASE(test_base_utf8__folding_text_that_needs_none_gives_it_back),
        CASE(test_base_utf8__folding_in_segments_equals_folding_at_once),
        CASE(test_base_utf8__folding_twice_changes_nothing_in_naughty_strings),
        CASE(test_base_utf8__thousands_of_accents_on_one_letter_cost_no_square),
        CASE(test_base_utf8__no_form_changes_what_folding_copies_unseen),
        CASE(test_base_utf8__a_file_folds_as_a_string_does),
        CASE(test_base_utf8__a_long_file_folds_as_a_string_does),
        CASE(test_base_utf8__folding_a_file_asks_whether_to_stop),
    };
    return cmocka_run_group_tests_name("base_utf8", cases, NULL, NULL);
}

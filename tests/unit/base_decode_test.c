// Other encodings: told by the caller, by a mark, or found out.
#include "support/support.h"

#include <deputy/utf8.h>
#include <stdio.h>
#include <stdlib.h>

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

static decoded decode(arena *a, str bytes, str declared) {
    decoded d;
    dep_err err;
    if (decode_text(a, bytes, declared, &d, &err) != DEP_OK) fail_msg("%s", err.msg);
    assert_true(utf8_valid(d.text));
    assert_non_null(d.encoding);
    return d;
}

static void check_decoded(arena *a, str bytes, const char *encoding, str want) {
    decoded d = decode(a, bytes, (str){0});
    assert_string_equal(d.encoding, encoding);
    check_text(d.text, want);
}

// Each is found out without being told, and is the same when told.
static const struct {
    const char *encoding;
    str bytes, text;
} legacy[] = {
    {"windows-1252",
     S_INIT("La strat\xE9gie g\xE9n\xE9rale a \xE9t\xE9 d\xE9"
            "finie \xE0 l\x92\xE9t\xE9 \x93"
            "dernier\x94 \x97 na\xEFve"),
     S_INIT("La stratégie générale a été définie à l’été “dernier” — naïve")},
    {"windows-1252",
     S_INIT("El ni\xF1o comi\xF3 jam\xF3n en la monta\xF1"
            "a y despu\xE9s volvi\xF3"),
     S_INIT("El niño comió jamón en la montaña y después volvió")},
    {"windows-1252", S_INIT("caf\xE9"), S_INIT("café")},
    {"windows-1251",
     S_INIT("\xCF\xEE\xEB\xE8\xF2\xE8\xEA\xE0 \xE2\xEE\xE7\xE2\xF0\xE0\xF2\xE0: \xF2\xEE\xE2\xE0\xF0 "
            "\xEC\xEE\xE6\xED\xEE \xE2\xE5\xF0\xED\xF3\xF2\xFC \xE2 \xF2\xE5\xF7\xE5\xED\xE8\xE5 "
            "\xF1\xE5\xEC\xE8 \xE4\xED\xE5\xE9 \xEF\xEE\xF1\xEB\xE5 \xEF\xEE\xEB\xF3\xF7\xE5\xED\xE8\xFF."),
     S_INIT("Политика возврата: товар можно вернуть в течение семи дней после получения.")},
    {"KOI8-R",
     S_INIT("\xF0\xCF\xCC\xC9\xD4\xC9\xCB\xC1 \xD7\xCF\xDA\xD7\xD2\xC1\xD4\xC1: \xD4\xCF\xD7\xC1\xD2 "
            "\xCD\xCF\xD6\xCE\xCF \xD7\xC5\xD2\xCE\xD5\xD4\xD8 \xD7 \xD4\xC5\xDE\xC5\xCE\xC9\xC5 "
            "\xD3\xC5\xCD\xC9 \xC4\xCE\xC5\xCA \xD0\xCF\xD3\xCC\xC5 \xD0\xCF\xCC\xD5\xDE\xC5\xCE\xC9\xD1."),
     S_INIT("Политика возврата: товар можно вернуть в течение семи дней после получения.")},
    {"GB18030",
     S_INIT("\xCD\xCB\xBF\xEE\xD5\xFE\xB2\xDF\xA3\xBA\xCA\xD5\xB5\xBD\xC9\xCC\xC6\xB7\xBA\xF3\xC6\xDF\xC8\xD5"
            "\xC4\xDA\xBF\xC9\xCD\xCB\n"),
     S_INIT("退款政策：收到商品后七日内可退\n")},
    {"GB18030", S_INIT("# Title\n\nSome English text with \xD6\xD0\xCE\xC4 inside.\n"),
     S_INIT("# Title\n\nSome English text with 中文 inside.\n")},
    {"Big5",
     S_INIT("\xB0h\xB4\xDA\xAC"
            "F\xB5\xA6\xA1G\xA6\xAC\xA8\xEC\xB0\xD3\xAB~\xAB\xE1\xA4"
            "C\xA4\xE9\xA4\xBA\xA5i\xB0h"),
     S_INIT("退款政策：收到商品後七日內可退")},
    {"Shift_JIS",
     S_INIT("\x95\xD4\x8B\xE0\x83|\x83\x8A\x83V\x81[\x81"
            "F\x8F\xA4\x95i\x93\x9E\x92\x85\x8C\xE3\x8E\xB5\x93\xFA\x88\xC8\x93\xE0\x82\xC9\x95\xD4\x95i\x82"
            "\xC5\x82\xAB\x82\xDC\x82\xB7"),
     S_INIT("返金ポリシー：商品到着後七日以内に返品できます")},
    {"EUC-JP",
     S_INIT("\xCA\xD6\xB6\xE2\xA5\xDD\xA5\xEA\xA5\xB7\xA1\xBC\xA1\xA7\xBE\xA6\xC9\xCA\xC5\xFE\xC3\xE5\xB8\xE5"
            "\xBC\xB7\xC6\xFC\xB0\xCA\xC6\xE2\xA4\xCB\xCA\xD6\xC9\xCA\xA4\xC7\xA4\xAD\xA4\xDE\xA4\xB9"),
     S_INIT("返金ポリシー：商品到着後七日以内に返品できます")},
    {"EUC-KR",
     S_INIT("\xC8\xAF\xBA\xD2 \xC1\xA4\xC3\xA5: \xBB\xF3\xC7\xB0 \xBC\xF6\xB7\xC9 \xC8\xC4 7\xC0\xCF "
            "\xC0\xCC\xB3\xBB \xC8\xAF\xBA\xD2 \xB0\xA1\xB4\xC9"),
     S_INIT("환불 정책: 상품 수령 후 7일 이내 환불 가능")},
    {"windows-1250",
     S_INIT("Zasady zwrot\xF3w: towar mo\xBFna zwr\xF3"
            "ci\xE6 w ci\xB9gu siedmiu dni od otrzymania, \xB3\xB9"
            "cznie z paragonem"),
     S_INIT("Zasady zwrotów: towar można zwrócić w ciągu siedmiu dni od otrzymania, łącznie z paragonem")},
    {"windows-874",
     S_INIT("\xB9\xE2\xC2\xBA\xD2\xC2\xA1\xD2\xC3\xA4\xD7\xB9\xE0\xA7\xD4\xB9: "
            "\xCA\xD2\xC1\xD2\xC3\xB6\xA4\xD7\xB9\xCA\xD4\xB9\xA4\xE9\xD2\xE4\xB4\xE9\xC0\xD2\xC2\xE3\xB9\xE0"
            "\xA8\xE7\xB4\xC7\xD1\xB9"),
     S_INIT("นโยบายการคืนเงิน: สามารถคืนสินค้าได้ภายในเจ็ดวัน")},
};

static void test_base_decode__legacy_encodings_are_found_out_and_said_to_be_assumed(void **state) {
    for (size_t k = 0; k < sizeof legacy / sizeof *legacy; k++) {
        decoded d = decode(*state, legacy[k].bytes, (str){0});
        if (strcmp(d.encoding, legacy[k].encoding) != 0) fail_msg("case %zu: %s", k, d.encoding);
        check_text(d.text, legacy[k].text);
        assert_true(d.assumed && !d.lossy && !d.binary);
    }
}

static void test_base_decode__the_detection_is_there(void **state) {
    (void)state;
    assert_true(decode_can_detect());
}

static void test_base_decode__a_declared_encoding_is_taken_at_its_word(void **state) {
    for (size_t k = 0; k < sizeof legacy / sizeof *legacy; k++) {
        decoded d = decode(*state, legacy[k].bytes, str_z(legacy[k].encoding));
        assert_string_equal(d.encoding, legacy[k].encoding);
        check_text(d.text, legacy[k].text);
        assert_true(!d.assumed && !d.lossy && !d.binary);
    }
    decoded d = decode(*state, S("caf\xC3\xA9"), S("latin1"));
    check_text(d.text, S("caf\u00C3\u00A9"));
    d = decode(*state, S("a\0b\0"), S("utf-16"));
    assert_string_equal(d.encoding, "UTF-16LE");
    check_text(d.text, S("ab"));
    d = decode(*state, S("\xFE\xFF\0a\0b"), S("UTF-16"));
    assert_string_equal(d.encoding, "UTF-16BE");
    check_text(d.text, S("ab"));
    d = decode(*state,
               S("a\0\xFF"
                 "b"),
               S("utf-8"));
    assert_true(d.lossy && !d.binary);
    check_text(d.text, S("a\0\uFFFDb"));
}

static void test_base_decode__names_of_encodings(void **state) {
    static const str known[] = {S_INIT("utf-8"),        S_INIT("UTF8"),      S_INIT("GBK"),
                                S_INIT("gb2312"),       S_INIT("Shift_JIS"), S_INIT("shift-jis"),
                                S_INIT("big5"),         S_INIT("EUC-KR"),    S_INIT("cp1251"),
                                S_INIT("Windows 1252"), S_INIT("latin1"),    S_INIT("ISO-8859-15"),
                                S_INIT("iso-2022-jp"),  S_INIT("UTF-32BE")};
    static const str unknown[] = {S_INIT(""),
                                  S_INIT("-"),
                                  S_INIT("utf"),
                                  S_INIT("utf-88"),
                                  S_INIT("8859"),
                                  S_INIT("gbk big5"),
                                  S_INIT("utf-8//IGNORE"),
                                  S_INIT("../GBK"),
                                  S_INIT("utf-8\0x"),
                                  S_INIT("a-very-long-name-that-no-encoding-in-this-world-has")};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (!decode_known_encoding(known[k])) fail_msg("unknown: " STR_FMT, STR_ARG(known[k]));
    for (size_t k = 0; k < sizeof unknown / sizeof *unknown; k++)
        if (decode_known_encoding(unknown[k])) fail_msg("known: " STR_FMT, STR_ARG(unknown[k]));
    decoded d;
    dep_err err;
    assert_int_equal(decode_text(*state, S("x"), S("klingon"), &d, &err), DEP_ERR_INVALID);
    assert_string_equal(err.msg, "unknown encoding \"klingon\"");
}

static void test_base_decode__every_declared_name_can_be_converted(void **state) {
    static const char *const names[] = {
        "UTF-8",        "UTF-16LE",     "UTF-16BE",       "UTF-32LE",     "UTF-32BE",     "GB18030",
        "Big5",         "Shift_JIS",    "EUC-JP",         "ISO-2022-JP",  "EUC-KR",       "windows-1250",
        "windows-1251", "windows-1252", "windows-1253",   "windows-1254", "windows-1255", "windows-1256",
        "windows-1257", "windows-1258", "windows-874",    "ISO-8859-2",   "ISO-8859-3",   "ISO-8859-4",
        "ISO-8859-5",   "ISO-8859-6",   "ISO-8859-10",    "ISO-8859-13",  "ISO-8859-16",  "KOI8-R",
        "KOI8-U",       "IBM866",       "x-mac-cyrillic",
    };
    char bytes[256];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)i;
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        decoded d = decode(*state, str_n(bytes, sizeof bytes), str_z(names[k]));
        assert_string_equal(d.encoding, names[k]);
        assert_true(d.text.n > 0);
    }
}

static void test_base_decode__utf8_is_handed_on_without_a_copy(void **state) {
    str plain = S("plain\r\ncaf\u00E9\n"), marked = S("\uFEFFneedle\n");
    decoded d = decode(*state, plain, (str){0});
    assert_ptr_equal(d.text.p, plain.p);
    assert_string_equal(d.encoding, "UTF-8");
    assert_true(!d.assumed && !d.lossy);
    d = decode(*state, marked, (str){0});
    assert_ptr_equal(d.text.p, marked.p + 3);
    check_text(d.text, S("needle\n"));
    check_text(decode(*state, S("\uFEFF\uFEFFx"), (str){0}).text, S("\uFEFFx"));
    check_text(decode(*state, S("\uFEFF"), (str){0}).text, S(""));
    check_text(decode(*state, (str){0}, (str){0}).text, S(""));
}

static void test_base_decode__utf16_and_utf32_with_a_mark(void **state) {
    check_decoded(*state, S("\xFF\xFEn\0\xE9\0\n\0"), "UTF-16LE", S("n\u00E9\n"));
    check_decoded(*state, S("\xFE\xFF\0n\0\xE9\0\n"), "UTF-16BE", S("n\u00E9\n"));
    check_decoded(*state, S("\xFF\xFE\x3D\xD8\0\xDE"), "UTF-16LE", S("\U0001F600"));
    check_decoded(*state, S("\xFF\xFE\0\0a\0\0\0"), "UTF-32LE", S("a"));
    check_decoded(*state, S("\0\0\xFE\xFF\0\x01\xF6\0"), "UTF-32BE", S("\U0001F600"));
    // Half a pair, a pair the wrong way round, an odd byte.
    check_decoded(*state, S("\xFF\xFE\x3D\xD8x\0"), "UTF-16LE", S("\uFFFDx"));
    check_decoded(*state, S("\xFF\xFE\0\xDE\x3D\xD8"), "UTF-16LE", S("\uFFFD\uFFFD"));
    check_decoded(*state, S("\xFF\xFEx\0y"), "UTF-16LE", S("x\uFFFD"));
    assert_true(decode(*state, S("\xFF\xFEx\0y"), (str){0}).lossy);
}

static void test_base_decode__nuls_hide_a_file_only_within_the_first_8_kib(void **state) {
    char text[9000];
    for (size_t at = 0; at < sizeof text; at += 8190) {
        memset(text, 'x', sizeof text);
        text[at] = 0;
        decoded d = decode(*state, str_n(text, sizeof text), (str){0});
        assert_true(d.binary && d.text.n == 0);
    }
    for (size_t at = 8191; at <= 8192; at++) {
        memset(text, 'x', sizeof text);
        text[at] = 0;
        decoded d = decode(*state, str_n(text, sizeof text), (str){0});
        assert_int_equal(d.binary, at == 8191);
        assert_int_equal(d.text.n, at == 8191 ? 0 : sizeof text);
    }
}

static void test_base_decode__damaged_utf8_stays_utf8(void **state) {
    static const struct {
        str bytes, want;
    } cases[] = {
        {S_INIT("caf\xC3\xA9 \xE6\x96"), S_INIT("caf\u00E9 \uFFFD\uFFFD")},
        {S_INIT("\xE4\xB8\xAD\xE6\x96\x87 \xFF x"), S_INIT("\u4E2D\u6587 \uFFFD x")},
        {S_INIT("\xEF\xBB\xBF"
                "a\xFFz"),
         S_INIT("a\uFFFDz")},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        decoded d = decode(*state, cases[k].bytes, (str){0});
        assert_string_equal(d.encoding, "UTF-8");
        check_text(d.text, cases[k].want);
        assert_true(d.lossy);
    }
}

static void test_base_decode__what_a_declared_encoding_lacks_is_replaced(void **state) {
    decoded d = decode(*state, S("\xD6\xD0\xFF\xCE\xC4\xB0"), S("gbk"));
    assert_true(d.lossy);
    assert_true(str_starts(d.text, S("\u4E2D")) && str_find(d.text, S("\uFFFD")) != SIZE_MAX);
    d = decode(*state, S("a\x81z"), S("windows-1252"));
    check_text(d.text, S("a\uFFFDz"));
    assert_true(d.lossy);
}

static void test_base_decode__long_texts_cross_every_inner_border(void **state) {
    buf bytes = buf_new(*state, 0), want = buf_new(*state, 0);
    for (int k = 0; k < 60000; k++) {
        buf_add(&bytes, k % 7 ? S("\xCD\xCB\xBF\xEE") : S("x\n"));
        buf_add(&want, k % 7 ? S("\u9000\u6B3E") : S("x\n"));
    }
    check_decoded(*state, buf_str(&bytes), "GB18030", buf_str(&want));
}

// The same needle in the encodings of case C38; what cannot be read is at least named.
static void test_base_decode__the_needle_is_found_whatever_the_encoding(void **state) {
    static const struct {
        const char *encoding;
        str bytes;
    } cases[] = {
        {"UTF-8", S_INIT("\xEF\xBB\xBFneedle caf\xC3\xA9\n")},
        {"UTF-16LE", S_INIT("\xFF\xFEn\0e\0e\0d\0l\0e\0 \0c\0a\0f\0\xE9\0\n\0")},
        {"UTF-16BE", S_INIT("\xFE\xFF\0n\0e\0e\0d\0l\0e\0 \0c\0a\0f\0\xE9\0\n")},
        {"windows-1252", S_INIT("needle caf\xE9\n")},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        check_decoded(*state, cases[k].bytes, cases[k].encoding, S("needle caf\u00E9\n"));
    buf late = buf_new(*state, 0);
    buf_add(&late, S("needle\n"));
    buf_fill(&late, 'x', 70000);
    buf_add(&late, S("\0rest\n"));
    decoded d = decode(*state, buf_str(&late), (str){0});
    assert_true(str_starts(d.text, S("needle\n")) && str_ends(d.text, S("\0rest\n")));
}

static void test_base_decode__made_files(void **state) {
    static const struct {
        const char *name, *encoding;
        bool lossy, binary;
    } cases[] = {
        {"made/bom-utf8.md", "UTF-8", false, false},
        {"made/bom-utf8-crlf.md", "UTF-8", false, false},
        {"made/utf16le-bom.md", "UTF-16LE", false, false},
        {"made/double-bom.md", "UTF-8", false, false},
        {"made/lone-continuation.md", "UTF-8", true, false},
        {"made/truncated-multibyte.md", "UTF-8", true, false},
        {"made/overlong-slash.md", "UTF-8", true, false},
        {"made/nul-in-body.md", "binary", false, true},
        {"made/cr-only.md", "UTF-8", false, false},
        {"made/only-bom.md", "UTF-8", false, false},
        {"made/empty.md", "UTF-8", false, false},
        {"made/nel-ls-ps.md", "UTF-8", false, false},
        {"kuhn/stress.bin", "binary", false, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char *path = shared_path(str_fmt(*state, "realdata/text/%s", cases[k].name).p);
        if (!path) skip();
        str file = read_all(path);
        decoded d = decode(*state, file, (str){0});
        if (strcmp(d.encoding, cases[k].encoding) != 0 || d.lossy != cases[k].lossy ||
            d.binary != cases[k].binary)
            fail_msg("%s: %s", cases[k].name, d.encoding);
        // The declared way always gives text.
        assert_false(decode(*state, file, S("UTF-8")).binary);
        free((char *)file.p);
        free(path);
    }
}

static void check_whole(str head, const char *declared, size_t want) {
    if (decode_whole(head, str_z(declared)).n != want)
        fail_msg("%s: not %zu of %zu bytes", declared, want, head.n);
}

static void test_base_decode__of_a_head_whole_lines_or_characters_are_left(void **state) {
    (void)state;
    check_whole(S("one\ntwo\nthr"), "", 8);
    check_whole(S("caf\xC3"), "", 3);
    check_whole(S("\xE4\xB8\xAD\xE6\x96"), "", 3);
    check_whole(S("\xE4\xB8\xAD"), "UTF-8", 3);
    check_whole((str){0}, "", 0);
    // "a", and the first half of a pair. Without a mark and an order it is the little one, as decode_text has
    // it.
    str little = S("a\0\x3D\xD8"), big = S("\0a\xD8\x3D");
    check_whole(little, "UTF-16", 2);
    check_whole(little, "utf_16le", 2);
    check_whole(big, "UTF-16BE", 2);
    check_whole(big, "UTF-16", 4);
    check_whole(S("\xFE\xFF\xD8\x3D"), "UTF-16", 2);
    check_whole(S("\xFF\xFE\x3D\xD8x"), "", 2);
    check_whole(S("\xFF\xFE\0\0a\0\0"), "", 4);
    check_whole(S("a\0\0\0b\0"), "UTF-32", 4);
}

int main(void) {
#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest cases[] = {
        CASE(test_base_decode__legacy_encodings_are_found_out_and_said_to_be_assumed),
        CASE(test_base_decode__the_detection_is_there),
        CASE(test_base_decode__a_declared_encoding_is_taken_at_its_word),
        CASE(test_base_decode__names_of_encodings),
        CASE(test_base_decode__every_declared_name_can_be_converted),
        CASE(test_base_decode__utf8_is_handed_on_without_a_copy),
        CASE(test_base_decode__utf16_and_utf32_with_a_mark),
        CASE(test_base_decode__nuls_hide_a_file_only_within_the_first_8_kib),
        CASE(test_base_decode__damaged_utf8_stays_utf8),
        CASE(test_base_decode__what_a_declared_encoding_lacks_is_replaced),
        CASE(test_base_decode__long_texts_cross_every_inner_border),
        CASE(test_base_decode__the_needle_is_found_whatever_the_encoding),
        CASE(test_base_decode__made_files),
        CASE(test_base_decode__of_a_head_whole_lines_or_characters_are_left),
    };
    return cmocka_run_group_tests_name("base_decode", cases, NULL, NULL);
}

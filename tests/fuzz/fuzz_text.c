// fuzz_text: any bytes through the functions that take foreign text: B22, terminals, the fold, cuts,
// decoding. What comes out is valid, free of what may not come through, stable when done twice, and within
// its limit.
#include <deputy/utf8.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static void check_foreign(arena *a, str text, foreign_kind kind) {
    str out = foreign(a, text, kind, 0);
    invisible_finds finds = {0};
    invisible_scan(a, out, &finds);
    require(utf8_valid(out) && finds.n == 0 && str_chr(out, '\r') == SIZE_MAX);
    require(kind == FOREIGN_TEXT || (str_chr(out, '\n') == SIZE_MAX && str_chr(out, '\t') == SIZE_MAX));
    require(str_eq(foreign(a, out, kind, 0), out));
    for (size_t max = 1; max <= 40; max += 13) {
        str cut = foreign(a, text, kind, max);
        require(utf8_valid(cut) && utf8_count(cut) <= max);
        require(str_eq(foreign(a, cut, kind, 0), cut));
    }
}

static void check_cuts(str text, size_t n) {
    str cut = utf8_cut(text, n), chars = utf8_cut_chars(text, n);
    require(cut.n <= n && cut.n <= text.n && chars.n <= text.n && utf8_count(chars) <= n);
    require(utf8_floor(text, n) <= text.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const str names[] = {S_INIT(""),       S_INIT("utf-8"),  S_INIT("utf-16"),  S_INIT("gbk"),
                                S_INIT("big5"),   S_INIT("sjis"),   S_INIT("euc-jp"),  S_INIT("iso-2022-jp"),
                                S_INIT("euc-kr"), S_INIT("latin1"), S_INIT("utf-32be")};
    arena *a = arena_new();
    str text = str_n((const char *)data, size);
    check_foreign(a, text, FOREIGN_TEXT);
    check_foreign(a, text, FOREIGN_LINE);
    buf shown = buf_new(a, 0);
    term_add(&shown, text, false);
    str seen = buf_str(&shown);
    invisible_finds finds = {0};
    invisible_scan(a, seen, &finds);
    require(utf8_valid(seen) && finds.n == 0 && str_chr(seen, '\n') == SIZE_MAX);
    str folded = utf8_fold(a, text);
    require(utf8_valid(folded));
    require(utf8_valid(utf8_nfc(a, text)) && utf8_valid(utf8_nfkc(a, text)));
    // Thousands of accents on one letter are cut in pieces, where the order may settle only in a second pass.
    if (size < 256) require(str_eq(utf8_fold(a, folded), folded));
    check_cuts(text, size / 2);
    check_cuts(text, size ? data[0] : 0);
    (void)utf8_width(text);
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        decoded d;
        dep_err err;
        require(decode_text(a, text, names[k], &d, &err) == DEP_OK && utf8_valid(d.text));
    }
    arena_free(a);
    return 0;
}

// definition: names. A name is checked on its NFC text and again on its identity (NFKC, case folded), because
// either form may be the one that somebody sees or looks up. Rule B9: look-alikes of another listed name are
// told apart by their skeleton.
#include <deputy/definition.h>
#include <deputy/utf8.h>

static const char *const reserved[] = {"all", "core", "none", "shared", "mcp"};

static dep_status check_form(str s, const char *form, dep_err *err) {
    if (s.n == 0) return err_set(err, DEP_ERR_INVALID, "the name is empty");
    if (s.n > DEF_NAME_BYTES)
        return err_set(err, DEP_ERR_INVALID, "the name has %zu bytes%s; at most %d are allowed", s.n, form,
                       DEF_NAME_BYTES);
    size_t count = utf8_count(s);
    if (count > DEF_NAME_CHARS)
        return err_set(err, DEP_ERR_INVALID, "the name has %zu characters%s; at most %d are allowed", count,
                       form, DEF_NAME_CHARS);
    size_t i = 0;
    bool first = true;
    while (i < s.n) {
        uint32_t cp = utf8_next(s, &i);
        if (cp == UTF8_BAD) return err_set(err, DEP_ERR_INVALID, "the name is not valid UTF-8");
        bool word = utf8_is_letter(cp) || utf8_is_decimal(cp);
        if (first && !word)
            return err_set(err, DEP_ERR_INVALID,
                           "the name must begin with a letter or a digit, not with U+%04X%s", cp, form);
        bool ok = word || utf8_is_mark(cp) || cp == ' ' || cp == '.' || cp == '_' || cp == '-';
        if (!ok || utf8_is_invisible(cp) || utf8_is_bidi(cp) || utf8_is_control(cp))
            return err_set(
                err, DEP_ERR_INVALID,
                "the name holds U+%04X%s; only letters, digits, marks, blanks, '.', '_' and '-' are allowed",
                cp, form);
        first = false;
    }
    char last = s.p[s.n - 1];
    if (last == ' ' || last == '.')
        return err_set(err, DEP_ERR_INVALID, "the name ends with a blank or a dot%s", form);
    if (str_find(s, S("..")) != SIZE_MAX) return err_set(err, DEP_ERR_INVALID, "the name holds '..'%s", form);
    return DEP_OK;
}

dep_status name_check(arena *a, str name, str *ret_nfc, str *ret_identity, dep_err *err) {
    if (!utf8_valid(name)) return err_set(err, DEP_ERR_INVALID, "the name is not valid UTF-8");
    // The bound comes before the normal forms, which can grow a text many times over.
    if (name.n > 4 * DEF_NAME_BYTES)
        return err_set(err, DEP_ERR_INVALID, "the name has %zu bytes; at most %d are allowed", name.n,
                       DEF_NAME_BYTES);
    size_t i = 0;
    while (i < name.n) {
        // Folding drops invisible characters, so they are looked for before it.
        uint32_t cp = utf8_next(name, &i);
        if (utf8_is_invisible(cp) || utf8_is_bidi(cp) || utf8_is_control(cp))
            return err_set(err, DEP_ERR_INVALID, "the name holds the invisible or control character U+%04X",
                           cp);
    }
    str nfc = utf8_nfc(a, name), identity = utf8_fold(a, name);
    TRY(check_form(nfc, "", err));
    TRY(check_form(identity, " in its folded form", err));
    for (size_t r = 0; r < sizeof reserved / sizeof *reserved; r++)
        if (str_eq(identity, str_z(reserved[r])))
            return err_set(err, DEP_ERR_INVALID, "\"%s\" is a reserved name", reserved[r]);
    if (ret_nfc) *ret_nfc = nfc;
    if (ret_identity) *ret_identity = identity;
    return DEP_OK;
}

// --- Scripts -------------------------------------------------------------------------------------

typedef enum {
    SC_COMMON,
    SC_LATIN,
    SC_GREEK,
    SC_CYRILLIC,
    SC_HAN,
    SC_KANA,
    SC_HANGUL,
    SC_BOPOMOFO,
    SC_OTHER
} script;

static const struct {
    uint32_t from, to;
    script sc;
} scripts[] = {
    {0x0041, 0x005A, SC_LATIN},    {0x0061, 0x007A, SC_LATIN},    {0x00AA, 0x00AA, SC_LATIN},
    {0x00BA, 0x00BA, SC_LATIN},    {0x00C0, 0x02B8, SC_LATIN},    {0x02E0, 0x02E4, SC_LATIN},
    {0x02EA, 0x02EB, SC_BOPOMOFO}, {0x0300, 0x036F, SC_COMMON},   {0x0370, 0x03FF, SC_GREEK},
    {0x0400, 0x052F, SC_CYRILLIC}, {0x1100, 0x11FF, SC_HANGUL},   {0x1C80, 0x1C8F, SC_CYRILLIC},
    {0x1D00, 0x1DBF, SC_LATIN},    {0x1E00, 0x1EFF, SC_LATIN},    {0x1F00, 0x1FFF, SC_GREEK},
    {0x2C60, 0x2C7F, SC_LATIN},    {0x2DE0, 0x2DFF, SC_CYRILLIC}, {0x2E80, 0x2FDF, SC_HAN},
    {0x3005, 0x3007, SC_HAN},      {0x3021, 0x3029, SC_HAN},      {0x3040, 0x30FF, SC_KANA},
    {0x3100, 0x312F, SC_BOPOMOFO}, {0x3130, 0x318F, SC_HANGUL},   {0x31A0, 0x31BF, SC_BOPOMOFO},
    {0x31F0, 0x31FF, SC_KANA},     {0x3400, 0x4DBF, SC_HAN},      {0x4E00, 0x9FFF, SC_HAN},
    {0xA640, 0xA69F, SC_CYRILLIC}, {0xA720, 0xA7FF, SC_LATIN},    {0xA960, 0xA97F, SC_HANGUL},
    {0xAB30, 0xAB6F, SC_LATIN},    {0xAC00, 0xD7FF, SC_HANGUL},   {0xF900, 0xFAFF, SC_HAN},
    {0xFB00, 0xFB06, SC_LATIN},    {0x1AFF0, 0x1B16F, SC_KANA},   {0x20000, 0x323AF, SC_HAN},
};

// Letters outside the table count as one other script per 128 code points, which separates all the scripts
// that matter here.
static uint32_t script_of(uint32_t cp) {
    for (size_t i = 0; i < sizeof scripts / sizeof *scripts; i++)
        if (cp >= scripts[i].from && cp <= scripts[i].to) return scripts[i].sc;
    if (!utf8_is_letter(cp)) return SC_COMMON;
    return SC_OTHER + cp / 128;
}

bool name_mixed_scripts(str identity) {
    unsigned known = 0;
    uint32_t other = 0;
    size_t i = 0;
    while (i < identity.n) {
        uint32_t sc = script_of(utf8_next(identity, &i));
        if (sc == SC_COMMON) continue;
        if (sc < SC_OTHER) {
            known |= 1u << sc;
        } else if (other && other != sc) {
            return true;
        } else {
            other = sc;
        }
    }
    if (other) return known != 0;
    static const unsigned allowed[] = {
        1u << SC_LATIN | 1u << SC_HAN | 1u << SC_KANA,
        1u << SC_LATIN | 1u << SC_HAN | 1u << SC_BOPOMOFO,
        1u << SC_LATIN | 1u << SC_HAN | 1u << SC_HANGUL,
        1u << SC_GREEK,
        1u << SC_CYRILLIC,
    };
    for (size_t s = 0; s < sizeof allowed / sizeof *allowed; s++)
        if ((known & ~allowed[s]) == 0) return false;
    return true;
}

// Look-alikes of lower-case Latin letters and digits; identities are folded, so capitals need no rows.
static const struct {
    uint32_t cp;
    const char *like;
} confusable[] = {
    {'0', "o"},     {'1', "l"},     {'m', "rn"},    {'w', "vv"},    {0x0131, "i"},  {0x0251, "a"},
    {0x0261, "g"},  {0x0269, "i"},  {0x026A, "i"},  {0x028B, "u"},  {0x03B1, "a"},  {0x03B3, "y"},
    {0x03B5, "e"},  {0x03B9, "i"},  {0x03BA, "k"},  {0x03BD, "v"},  {0x03BF, "o"},  {0x03C1, "p"},
    {0x03C3, "o"},  {0x03C4, "t"},  {0x03C5, "u"},  {0x03C7, "x"},  {0x03C9, "vv"}, {0x0430, "a"},
    {0x0432, "b"},  {0x0433, "r"},  {0x0435, "e"},  {0x0437, "3"},  {0x043A, "k"},  {0x043C, "rn"},
    {0x043D, "h"},  {0x043E, "o"},  {0x0440, "p"},  {0x0441, "c"},  {0x0442, "t"},  {0x0443, "y"},
    {0x0445, "x"},  {0x0448, "vv"}, {0x044C, "b"},  {0x0455, "s"},  {0x0456, "i"},  {0x0458, "j"},
    {0x0461, "vv"}, {0x0475, "v"},  {0x04AF, "y"},  {0x04BB, "h"},  {0x04CF, "l"},  {0x0501, "d"},
    {0x051B, "q"},  {0x051D, "vv"}, {0x0561, "vv"}, {0x0563, "q"},  {0x0566, "q"},  {0x056C, "l"},
    {0x0570, "h"},  {0x0575, "j"},  {0x0578, "n"},  {0x057D, "u"},  {0x0581, "g"},  {0x0585, "o"},
    {0x05D5, "l"},  {0x05D8, "v"},  {0x05DF, "l"},  {0x05E1, "o"},  {0x0627, "l"},  {0x0647, "o"},
    {0x0665, "o"},  {0x06F5, "o"},  {0x0966, "o"},  {0x1D0F, "o"},  {0x1D1C, "u"},  {0x1D20, "v"},
    {0x1D21, "vv"}, {0x1D22, "z"},  {0x13A5, "i"},  {0xAB93, "z"},  {0xABAA, "s"},  {0x3078, "ヘ"},
    {0x30A8, "工"}, {0x30CB, "二"}, {0x30AB, "力"}, {0x30BF, "夕"}, {0x30ED, "口"}, {0x30C8, "卜"},
};

str name_skeleton(arena *a, str identity) {
    buf out = buf_new(a, 0);
    size_t i = 0;
    while (i < identity.n) {
        size_t from = i;
        uint32_t cp = utf8_next(identity, &i);
        const char *like = NULL;
        for (size_t c = 0; c < sizeof confusable / sizeof *confusable; c++)
            if (confusable[c].cp == cp) like = confusable[c].like;
        buf_add(&out, like ? str_z(like) : str_sub(identity, from, i));
    }
    return buf_str(&out);
}

str definition_file_name(arena *a, str identity) {
    // The rules of a name leave nothing that a path could trip over; blanks become '-' for shells.
    char *p = str_cz(a, identity);
    for (size_t i = 0; i < identity.n; i++)
        if (p[i] == ' ') p[i] = '-';
    return str_fmt(a, "%s.yaml", p);
}

const char *layer_name(def_layer l) {
    static const char *const names[] = {
        "workspace", "workspace-ecosystem", "system", "user-ecosystem", "builtin", "plugin"};
    return names[l];
}

// utf8: code points, normal forms, display width, cuts, and the two escapers (foreign text for models, text for terminals).
// Every function accepts any bytes; what is not valid UTF-8 is treated byte by byte as U+FFFD.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/str.h>

enum : uint32_t { UTF8_BAD = 0xFFFFFFFFu };

// Decodes one code point at s.p[*i] and moves *i past it. Invalid input (overlong, surrogate, > 10FFFF, cut short) gives
// UTF8_BAD and moves one byte. At the end of s: UTF8_BAD and *i unchanged.
uint32_t utf8_next(str s, size_t *i);
// Appends cp (surrogates and > 10FFFF become U+FFFD).
void utf8_put(buf *b, uint32_t cp);
// Byte offset of the first invalid byte, or SIZE_MAX when all is valid.
size_t utf8_invalid_at(str s);
static inline bool utf8_valid(str s) { return utf8_invalid_at(s) == SIZE_MAX; }
// A valid copy: each invalid byte becomes U+FFFD. Returns s itself when it is valid.
str utf8_repair(arena *a, str s);
size_t utf8_count(str s); // code points
// Columns on a terminal: 0 for combining and invisible ones, 2 for wide ones; a tab counts 1.
size_t utf8_width(str s);
// The longest prefix of at most `bytes` bytes that ends at a grapheme boundary.
str utf8_cut(str s, size_t bytes);
// The longest prefix of at most `n` code points that ends at a grapheme boundary.
str utf8_cut_chars(str s, size_t n);
// Byte offset of the code point boundary at or before `at`.
size_t utf8_floor(str s, size_t at);

str utf8_nfc(arena *a, str s);
str utf8_nfkc(arena *a, str s);
// NFKC with full case folding, folded until stable: the form in which names are compared (identity) and text is searched.
// Default-ignorable code points are removed (soft hyphen, zero width space, joiners, BOM, variation selectors).
str utf8_fold(arena *a, str s);

// General properties of one code point.
bool utf8_is_letter(uint32_t cp);    // L*
bool utf8_is_decimal(uint32_t cp);   // Nd
bool utf8_is_mark(uint32_t cp);      // M*
bool utf8_is_control(uint32_t cp);   // Cc (C0, DEL, C1)
bool utf8_is_bidi(uint32_t cp);      // U+061C 200E 200F 202A-202E 2066-2069
bool utf8_is_invisible(uint32_t cp); // default-ignorable and format characters, tag characters; not bidi, not control
bool utf8_is_cjk(uint32_t cp);       // Han, Hiragana, Katakana, Hangul, Bopomofo, and Thai, Lao, Khmer, Myanmar: written without blanks

// --- Foreign text is data (rule B22): the one function. -------------------------------------------------------------------
typedef enum {
    FOREIGN_TEXT = 0,     // keeps line feeds and tabs
    FOREIGN_LINE = 1,     // one-line field: line breaks (LF CR VT FF NEL LS PS) and tabs become one blank
} foreign_kind;
// Appends s with Deputy's own tag names made harmless and with control, bidi, tag and other invisible characters written as
// \u{XXXX}. A tag is `<` or `</` followed, after NFKC, folding and removal of invisible characters, by one of the names in
// foreign_tags(); its `<` becomes `&lt;`. Emoji sequences (ZWJ, VS15/16, keycap, flag tags) and joiners between letters
// of scripts that need them stay. CR LF becomes LF. max_chars: cut with "…" at a grapheme boundary; 0 = no limit.
void foreign_add(buf *out, str s, foreign_kind kind, size_t max_chars);
str foreign(arena *a, str s, foreign_kind kind, size_t max_chars);
// NULL-terminated: available_skills skill name description location knowledge_sources allowed_mcp_servers memory
// memory_file skill_content deferred_tools tool_result system task report …
const char *const *foreign_tags(void);

// --- Terminals (rule B23). ----------------------------------------------------------------------------------------------
// Appends s so that a terminal only shows it: control (but LF and, when tabs, TAB), bidi and invisible characters become
// \u{XXXX} (C0 as \x1b); invalid bytes become \xNN.
void term_add(buf *out, str s, bool keep_newlines);

// --- Invisible text (rule B24). -----------------------------------------------------------------------------------------
typedef struct {
    uint32_t cp;    // the first code point of its kind
    size_t count;   // how many of that code point
    uint32_t line;  // 1-based line of the first
    str decoded;    // for tag characters U+E0020..E007E: the words they spell; else empty
} invisible_find;
typedef VEC(invisible_find) invisible_finds;
// One entry per suspicious code point: bidi, controls other than TAB LF CR, zero width and other invisible characters, tag
// characters; quiet on emoji ZWJ sequences, variation selectors after emoji, flags with tags, and one BOM at the start.
void invisible_scan(arena *a, str s, invisible_finds *out);

// --- Other encodings. ---------------------------------------------------------------------------------------------------
typedef struct {
    str text;             // valid UTF-8, line structure kept, one BOM at the start removed
    const char *encoding; // canonical name: "UTF-8", "UTF-16LE", "GB18030", …
    bool assumed;         // detected by a library, not told by a BOM or by the caller
    bool binary;          // looks like no text at all (NULs early on and no BOM): text is empty
    bool lossy;           // some bytes could not be decoded and stand as U+FFFD
} decoded;
// Decodes file bytes. declared: encoding name or empty. Order: declared, BOM (UTF-8, UTF-16), valid UTF-8, then detection
// (GB18030, Big5, Shift_JIS, EUC-KR, EUC-JP, windows-1251, windows-1252, …; windows-1252 when nothing fits). A NUL within
// valid UTF-8 text does not hide the rest: text stays text unless NULs are among the first 8 KiB. UTF-8 input is not copied.
// Errors: INVALID for an unknown declared name.
[[nodiscard]] dep_status decode_text(arena *a, str bytes, str declared, decoded *ret, dep_err *err);
bool decode_known_encoding(str name);

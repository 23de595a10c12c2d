// utf8: code points, normal forms, display width, cuts, and the two escapers (foreign text for models, text
// for terminals). Every function accepts any bytes; what is not valid UTF-8 is treated byte by byte as
// U+FFFD.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/stop.h>
#include <deputy/str.h>

enum : uint32_t { UTF8_BAD = 0xFFFFFFFFu };

// Decodes one code point at s.p[*i] and moves *i past it. Invalid input (overlong, surrogate, > 10FFFF, cut
// short) gives UTF8_BAD and moves one byte. At the end of s: UTF8_BAD and *i unchanged.
uint32_t utf8_next(str s, size_t *i);
// Appends cp (surrogates and > 10FFFF become U+FFFD).
void utf8_put(buf *b, uint32_t cp);
// Byte offset of the first invalid byte, or SIZE_MAX when all is valid.
size_t utf8_invalid_at(str s);
static inline bool utf8_valid(str s) {
    return utf8_invalid_at(s) == SIZE_MAX;
}
// A valid copy: each invalid byte becomes U+FFFD. Returns s itself when it is valid.
str utf8_repair(arena *a, str s);
// The two of them, until they are stopped: what they return means nothing then.
size_t utf8_invalid_until(str s, stop_sign *stop);
str utf8_repair_until(arena *a, str s, stop_sign *stop);
size_t utf8_count(str s); // code points
// Columns on a terminal: 0 for combining and invisible ones, 2 for wide ones; a tab counts 1.
size_t utf8_width(str s);
// The longest prefix of at most `bytes` bytes that ends at a grapheme boundary.
str utf8_cut(str s, size_t bytes);
// The longest prefix of at most `n` code points that ends at a grapheme boundary.
str utf8_cut_chars(str s, size_t n);
// Byte offset of the code point boundary at or before `at`.
size_t utf8_floor(str s, size_t at);

// Normal forms. Invalid bytes become U+FFFD. The result is s itself when nothing changes.
str utf8_nfc(arena *a, str s);
str utf8_nfkc(arena *a, str s);
// NFKC with full case folding, folded until stable: the form in which names are compared (identity) and text
// is searched. Default-ignorable code points are removed (soft hyphen, zero width space, joiners, BOM,
// variation selectors). Folding twice changes nothing (but for hundreds of accents on one letter, which are
// taken in pieces).
str utf8_fold(arena *a, str s);
// Where the folded text is more than the original with ASCII capitals made small: piece by piece, in order.
typedef struct {
    size_t from, n;  // in the original
    size_t to, n_to; // in the folded text
} utf8_piece;
// At most one for each UTF8_PIECE_EACH bytes of the text; `more`: there are more.
typedef struct {
    utf8_piece *p;
    size_t n, cap;
    bool more;
} utf8_pieces;
enum { UTF8_PIECE_EACH = 16 };
// utf8_fold of a well-formed text, telling these pieces (may be NULL). Line feeds in a piece are as many on
// both sides. When it is stopped, what it returns is a part.
str utf8_fold_pieces(arena *a, str s, utf8_pieces *pieces, stop_sign *stop);

// General properties of one code point.
bool utf8_is_letter(uint32_t cp);  // L*
bool utf8_is_decimal(uint32_t cp); // Nd
bool utf8_is_mark(uint32_t cp);    // M*
bool utf8_is_control(uint32_t cp); // Cc (C0, DEL, C1)
bool utf8_is_bidi(uint32_t cp);    // U+061C 200E 200F 202A-202E 2066-2069
// Default-ignorable and unseen format characters, tag characters, line and paragraph separator; not bidi, not
// control.
bool utf8_is_invisible(uint32_t cp);
bool utf8_is_cjk(uint32_t cp); // Han, Hiragana, Katakana, Hangul, Bopomofo, and Thai, Lao, Khmer, Myanmar:
                               // written without blanks

// --- Foreign text is data (rule B22): the one function -------------------------------------------
typedef enum {
    FOREIGN_TEXT = 0, // keeps line feeds and tabs
    FOREIGN_LINE =
        1, // one-line field: a run of line breaks (LF CR VT FF NEL LS PS) and tabs becomes one blank
} foreign_kind;
// Appends s with Deputy's own tag names made harmless and with control, bidi, tag and other invisible
// characters written as
// \u{XXXX} (at least four digits); invalid bytes become U+FFFD. A tag is `<` (of any width) and perhaps
// slashes and blanks, followed by one of the names in foreign_tags() as a whole word; its `<` becomes `&lt;`.
// Names are compared after NFKC, folding and removal of invisible characters and accents, look-alikes of
// other alphabets and `-` for `_` included. After a blank only what goes on like a tag counts (`i < name.n`
// stays). A tag that the end of s cuts short counts, so that texts put side by side cannot make one. Emoji
// sequences (ZWJ, VS15/16, keycap, flag tags) and joiners between letters of scripts that need them stay. CR
// LF becomes LF, another CR is written out. Doing it twice changes nothing. max_chars: at most so many code
// points, the "…" of the cut included, cut at a grapheme boundary; 0 = no limit.
void foreign_add(buf *out, str s, foreign_kind kind, size_t max_chars);
str foreign(arena *a, str s, foreign_kind kind, size_t max_chars);
// NULL-terminated, lower case: available_skills skill knowledge_sources memory tool_result system … A tag
// that prompts or tool results begin to use is added to this list (base/foreign.c) first.
const char *const *foreign_tags(void);

// --- Terminals (rule B23) ------------------------------------------------------------------------
// Appends s so that a terminal only shows it: control, bidi and invisible characters become \u{XXXX} (C0 and
// DEL as \x1b), invalid bytes \xNN. LF and TAB stay when keep_newlines is set; else LF is escaped and TAB
// becomes one blank. Invisible characters that belong to emoji sequences and to scripts with joiners stay:
// give it whole words, not single code points.
void term_add(buf *out, str s, bool keep_newlines);

// --- Invisible text (rule B24) -------------------------------------------------------------------
typedef struct {
    uint32_t cp;   // the first code point of its kind
    size_t count;  // how many of its kind
    uint32_t line; // 1-based line of the first
    str decoded; // for tag characters U+E0020..E007E: the words they spell (the first 400 bytes); else empty
} invisible_find;
typedef VEC(invisible_find) invisible_finds;
// Appends one entry per suspicious code point, in order of first occurrence: bidi, controls other than TAB LF
// CR, zero width and other invisible characters; tag characters together are one entry, and so are the
// variation selectors of plane 14. Quiet on emoji ZWJ sequences, variation selectors after emoji, the three
// flags with tags, joiners of scripts that need them, and one BOM at the start. Lines end at LF.
void invisible_scan(arena *a, str s, invisible_finds *out);

// --- Other encodings -----------------------------------------------------------------------------
typedef struct {
    str text;             // valid UTF-8, line structure kept, one BOM at the start removed
    const char *encoding; // canonical name: "UTF-8", "UTF-16LE", "GB18030", …; "binary"
    bool assumed;         // found out from the bytes, not told by a BOM or by the caller, and not valid UTF-8
    bool binary;          // looks like no text at all (NULs early on and no BOM): text is empty
    bool lossy;           // some bytes could not be decoded and stand as U+FFFD
} decoded;
// Decodes file bytes. declared: encoding name or empty. Order: declared (then nothing is binary), BOM (UTF-8,
// UTF-16, UTF-32), valid UTF-8, UTF-8 with a few bad bytes, then detection (GB18030, Big5, Shift_JIS, EUC-KR,
// EUC-JP, windows-1251, …; windows-1252 when nothing fits). A NUL within text does not hide the rest: text
// stays text unless NULs are among the first 8 KiB. UTF-8 input is not copied. Errors: INVALID for a declared
// name that is unknown, or that this system's iconv lacks.
[[nodiscard]] dep_status decode_text(arena *a, str bytes, str declared, decoded *ret, dep_err *err);
// The same, until it is stopped: CANCELLED.
[[nodiscard]] dep_status decode_text_until(arena *a, str bytes, str declared, stop_sign *stop, decoded *ret,
                                           dep_err *err);
// Of the head of a longer text, what is whole: lines where there are any, else characters, as decode_text
// will read it.
str decode_whole(str head, str declared);
bool decode_known_encoding(str name);
// Is the library that tells legacy encodings apart there? Without it they are taken for GB18030 or
// windows-1252.
bool decode_can_detect(void);

// Private to src/yaml: what decode, parse, fault and the edit files share.
// Offsets are bytes of ydoc.source unless a name says otherwise.
#pragma once
#include <deputy/buf.h>
#include <deputy/yaml.h>

// --- decode.c: one pass over the bytes --------------------------------------------------------------------

typedef struct {
    size_t at;   // byte offset in the source
    uint32_t cp; // NEL, LS, PS, or U+FEFF at the start of a line
} odd_char;

typedef VEC(odd_char) odd_chars;
typedef VEC(uint32_t) offsets;

typedef struct {
    // What libyaml is given: the source without its BOM; NEL, LS and PS (breaks for libyaml, characters for
    // YAML 1.2) and controls are swapped one code point for one, refused directives are made comments.
    str text;
    size_t base;      // bytes of the BOM
    offsets steps;    // byte offset in the source of every 64th code point; empty when the text is ASCII
    odd_chars odd;    // to be judged when it is known what is quoted
    uint32_t swap[3]; // stand-ins of NEL, LS, PS; 0 when there are none
} ytext;

// Fills doc (source, bom, lines) and t; reports YAML006 (size), 010, 011, 003 and 001 (directives) to d.
// False when there is nothing to give to libyaml.
bool yaml_decode(arena *a, ydoc *doc, ytext *t, size_t max_size, diags *d);
// Byte offset of a code point index of libyaml.
size_t yaml_offset(const ydoc *doc, const ytext *t, size_t index);
// A scalar's value as libyaml gave it, with the stand-ins turned back; copied into a.
str yaml_unswap(arena *a, const ytext *t, str value);

// --- fault.c: syntax errors in plain words ----------------------------------------------------------------

typedef struct {
    const char *problem, *context; // libyaml's words
    size_t at, from;               // places of the problem and of what was being read; from SIZE_MAX: none
} yfault;
void yaml_syntax_fault(arena *a, const ydoc *doc, const yfault *f, diags *d);
// The line with its value quoted, or empty when that does not help: the first syntax error of the corrected
// text must lie beyond line `beyond`.
str yaml_quoted_line(arena *a, const ydoc *doc, uint32_t line, uint32_t beyond);

// --- Small things -----------------------------------------------------------------------------------------

enum : uint32_t { CP_NEL = 0x85, CP_LS = 0x2028, CP_PS = 0x2029, CP_BOM = 0xFEFF };

diag yaml_error(const char *code, str msg, str hint);
static inline bool yaml_blank(char c) {
    return c == ' ' || c == '\t';
}
// Past blanks, line ends and comments.
size_t yaml_skip(str s, size_t at);
// Start of the line of an offset (after a BOM), the place of its line end (before CRLF), the start of the
// next line or the end of the text.
size_t yaml_bol(const ydoc *doc, size_t at);
size_t yaml_eol(const ydoc *doc, size_t at);
size_t yaml_next_line(const ydoc *doc, size_t at);

// --- path.c -----------------------------------------------------------------------------------------------

typedef struct {
    str key;
    bool may_key, may_index;
    size_t index;
} ypart;
typedef struct {
    ypart p[YAML_DEPTH_MAX];
    size_t n;
} ypath;
[[nodiscard]] dep_status ypath_parse(arena *a, str path, ypath *ret, dep_err *err);
// The child a part names, or NULL.
ynode *ypath_step(const ynode *n, const ypart *part);
str ypath_text(arena *a, const ypath *p, size_t n); // the first n parts, for messages

// --- scalar.c ---------------------------------------------------------------------------------------------

bool yaml_plain_ok(str value, bool flow);
// Would another reader take the plain text for a number, boolean, null or date?
bool yaml_looks_typed(str value);
// Quoted: with the marks that need fewer escapes; with these marks unless escapes are needed.
str yaml_quote(arena *a, str value, bool prefer_double);
str yaml_quote_as(arena *a, str value, bool double_quotes);
// Can a block scalar hold it; with indicator: also one whose first line begins with a blank.
bool yaml_block_ok(str value, bool indicator);
bool yaml_fold_ok(str value);
// Header ("|", "|2-", ">+") and body lines (each with line_end) of a block scalar. parent: column that an
// indentation indicator counts from.
void yaml_block_header(buf *out, str value, bool folded, unsigned indent, unsigned parent);
void yaml_block_body(buf *out, str value, bool folded, unsigned indent, str line_end);

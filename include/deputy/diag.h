// diag: what is wrong in a text, where, and what to do next. Collected, not thrown: a validator reports every
// fault of a file. Two printers over the same list: for a person (file:line:column, the line, a caret) and as
// JSON.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/str.h>

typedef enum { SEV_ERROR, SEV_WARNING, SEV_NOTE } diag_severity;

typedef struct {
    diag_severity severity;
    const char *code;      // stable: "DEF014"; codes are never reused
    str file;              // as the person would name it; empty when there is none
    uint32_t line, column; // 1-based; column counts code points; 0 when unknown
    uint32_t end;          // column after the last code point on the same line; 0 when unknown
    str path;              // JSON Pointer into the document ("/mcp/servers/0"), or empty
    str msg;               // one line
    str hint;              // the next step, or empty; may hold a corrected line
    str source;            // the text of that line, without its line end; empty when it must not be shown
} diag;

enum { DIAG_MAX = 200 }; // diagnostics kept per list; more are counted in `dropped`

typedef struct {
    arena *a;
    VEC(diag) items;
    size_t errors, warnings, dropped;
} diags;

static inline diags diags_new(arena *a) {
    return (diags){.a = a};
}
// Appends a copy. Over DIAG_MAX it only counts.
void diags_add(diags *d, diag item);
// Errors and warnings of `from` appended to `to`.
void diags_merge(diags *to, const diags *from);
// In order of file, line, column; stable.
void diags_sort(diags *d);
// One diagnostic for a person, with source line and caret when known; wide characters count two columns, tabs
// are kept so that the caret stands under its text. Escaped for terminals. color: SGR sequences.
void diag_print(buf *out, const diag *d, bool color);
void diags_print(buf *out, const diags *d, bool color);
// [{"severity":…,"code":…,"file":…,"line":…,"column":…,"end":…,"path":…,"message":…,"hint":…}, …]
void diags_json(buf *out, const diags *d);
const char *diag_severity_name(diag_severity s);

// fault: a syntax error of libyaml in plain words, at the place where a person would look, with the corrected
// line where quoting the value cures it. A correction is offered only after it was tried.
#include "yaml/yaml_int.h"
#include <deputy/utf8.h>
#include <yaml.h>

typedef struct {
    const char *problem, *context; // parts of libyaml's words; NULL: any
    bool at_context;               // point at what was begun, not at where it went wrong
    const char *msg, *hint;
} words;

static const words table[] = {
    {"mapping values are not allowed", NULL, false, "`: ` cannot stand here",
     "put the value in quotes, or check the indentation"},
    {"block sequence entries are not allowed", NULL, false, "a list item (`- `) cannot begin here",
     "begin the list on a line of its own, below its key"},
    {"mapping keys are not allowed", NULL, false, "`? ` cannot stand here", "put the value in quotes"},
    {"did not find expected key", NULL, false,
     "a key was expected here, at the indentation of the keys before it",
     "check the quotes and the indentation"},
    {"did not find expected '-' indicator", NULL, false, "a list item (`- `) was expected here",
     "check the indentation"},
    {"could not find expected ':'", NULL, true, "a `:` is missing after this key",
     "write `key: value`, or indent the line if it belongs to the value above"},
    {"found unexpected end of stream", "quoted scalar", true, "this quote is never closed", "close it"},
    {"found unexpected document indicator", NULL, true, "this quote is not closed before `---` or `...`",
     "close it"},
    {"',' or ']'", NULL, false, "`,` or `]` was expected here",
     "close the list, or put its entries in quotes"},
    {"',' or '}'", NULL, false, "`,` or `}` was expected here",
     "close the mapping, or put its values in quotes"},
    {"did not find expected node content", NULL, false, "a value was expected here",
     "put the value in quotes"},
    {NULL, "scanning an alias", true, "`*` begins an alias, and no name follows it",
     "put the value in quotes"},
    {NULL, "scanning an anchor", true, "`&` begins an anchor, and no name follows it",
     "put the value in quotes"},
    {"comment or line break", "block scalar", true, "text cannot follow `|` or `>` on the same line",
     "begin it on the next line, indented"},
    {"indicator equal to 0", NULL, true, "a block's indentation cannot be 0", "write `|` alone"},
    {"found unknown escape character", NULL, false, "this escape is not known in double quotes",
     "write `\\\\` for a backslash, or use single quotes"},
    {"expected hexdecimal number", NULL, false, "this escape needs hexadecimal digits",
     "write `\\\\` for a backslash, or use single quotes"},
    {"invalid Unicode character escape", NULL, false, "this escape is not a character",
     "write the character itself"},
    {"expected <document start>", NULL, false, "this line stands outside of the document's mapping",
     "check the indentation: all top-level keys begin in the same column"},
    {"found unexpected ':'", NULL, false, "`:` cannot stand here", "put the value in quotes"},
};

static bool matches(const words *w, const yfault *f) {
    return (!w->problem || (f->problem && strstr(f->problem, w->problem))) &&
           (!w->context || (f->context && strstr(f->context, w->context)));
}

// --- Trying a correction ----------------------------------------------------------------------------------

// Line (from 1) of the first syntax error, or UINT32_MAX when there is none. Allocates nothing from an arena,
// so that nothing is lost when that is unwound.
static uint32_t first_error(str text) {
    yaml_parser_t p;
    if (!yaml_parser_initialize(&p)) return 0;
    yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&p, (const unsigned char *)text.p, text.n);
    uint32_t line = UINT32_MAX;
    int depth = 0;
    for (bool end = false; !end;) {
        yaml_event_t e;
        if (!yaml_parser_parse(&p, &e)) {
            line = 1;
            size_t index = p.error == YAML_READER_ERROR ? 0 : p.problem_mark.index;
            for (size_t i = 0; index-- && i < text.n;) line += utf8_next(text, &i) == '\n';
            break;
        }
        depth += e.type == YAML_SEQUENCE_START_EVENT || e.type == YAML_MAPPING_START_EVENT;
        depth -= e.type == YAML_SEQUENCE_END_EVENT || e.type == YAML_MAPPING_END_EVENT;
        end = e.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&e);
        if (depth > YAML_DEPTH_MAX) {
            line = 0;
            break;
        }
    }
    yaml_parser_delete(&p);
    return line;
}

// Where the value of a `- key: value` line begins.
static size_t value_at(str s) {
    size_t i = 0;
    while (i < s.n && yaml_blank(s.p[i])) i++;
    while (i + 1 < s.n && s.p[i] == '-' && s.p[i + 1] == ' ') {
        i++;
        while (i < s.n && yaml_blank(s.p[i])) i++;
    }
    if (i < s.n && strchr("*&!|>{}[]%@`", s.p[i])) return i;
    size_t colon = str_find(str_sub(s, i, s.n), S(": "));
    if (colon != SIZE_MAX) i += colon + 1;
    while (i < s.n && yaml_blank(s.p[i])) i++;
    return i;
}

str yaml_quoted_line(arena *a, const ydoc *doc, uint32_t line, uint32_t beyond) {
    str s = yaml_line(doc, line);
    if (s.n > YAML_LINE_SHOWN_MAX) return (str){0};
    size_t from = value_at(s), to = s.n;
    // `# ` with a blank on both sides is meant as a comment; `#12` rather as text.
    size_t comment = str_find(str_sub(s, from, s.n), S(" # "));
    if (comment != SIZE_MAX) to = from + comment;
    while (to > from && yaml_blank(s.p[to - 1])) to--;
    if (to == from) return (str){0};
    str quoted = yaml_quote(a, str_sub(s, from, to), true);
    str fixed = str_fmt(a, STR_FMT STR_FMT STR_FMT, STR_ARG(str_sub(s, 0, from)), STR_ARG(quoted),
                        STR_ARG(str_sub(s, to, s.n)));
    size_t at = (size_t)(s.p - doc->source.p), base = doc->bom ? 3 : 0;
    buf b = buf_new(a, 0);
    buf_add(&b, str_sub(doc->source, base, at));
    buf_add(&b, fixed);
    buf_add(&b, str_sub(doc->source, at + s.n, doc->source.n));
    return first_error(buf_str(&b)) > beyond ? fixed : (str){0};
}

// --- The diagnostic ---------------------------------------------------------------------------------------

// A tab among the blanks that begin the line, before `at`.
static bool tab_indents(const ydoc *doc, size_t at) {
    str s = doc->source;
    size_t i = yaml_bol(doc, at);
    bool tab = false;
    for (; i < s.n && yaml_blank(s.p[i]); i++) tab = tab || s.p[i] == '\t';
    return tab && at <= i;
}

// Does a line `...` end the document before `at`, with nothing but blanks and comments between?
static bool after_end(const ydoc *doc, size_t at) {
    uint32_t line, column;
    yaml_place(doc, at, &line, &column);
    while (--line > 0) {
        str s = yaml_line(doc, line);
        if (str_starts(s, S("..."))) return true;
        s = str_trim(s);
        if (s.n && s.p[0] != '#') return false;
    }
    return false;
}

static bool is_tag(const yfault *f) {
    return (f->problem && strstr(f->problem, "tag handle")) || (f->context && strstr(f->context, "a tag"));
}

static bool is_open_quote(const yfault *f) {
    return f->context && strstr(f->context, "scanning a quoted scalar");
}

// `[a, b` or `{a: 1` without its end: quotes would hide the fault.
static bool is_open_flow(str line) {
    str value = str_sub(line, value_at(line), line.n);
    return (str_starts(value, S("[")) && str_chr(value, ']') == SIZE_MAX) ||
           (str_starts(value, S("{")) && str_chr(value, '}') == SIZE_MAX);
}

static str correction(arena *a, const ydoc *doc, const yfault *f) {
    uint32_t line, from = 0, column;
    yaml_place(doc, f->at, &line, &column);
    if (f->from != SIZE_MAX) yaml_place(doc, f->from, &from, &column);
    // A missing `:` or a quote is noticed lines later.
    uint32_t beyond = from > line ? from : line;
    str fixed = yaml_quoted_line(a, doc, line, beyond);
    if (!fixed.n && from && from != line && !is_open_flow(yaml_line(doc, from)))
        fixed = yaml_quoted_line(a, doc, from, beyond);
    return fixed;
}

void yaml_syntax_fault(arena *a, const ydoc *doc, const yfault *f, diags *d) {
    const char *code = "YAML001";
    str msg = str_z(f->problem ? f->problem : "the text is not YAML"), hint = {0};
    size_t at = f->at;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (!matches(&table[i], f)) continue;
        msg = str_z(table[i].msg);
        hint = str_z(table[i].hint);
        if (table[i].at_context && f->from != SIZE_MAX) at = f->from;
        break;
    }
    if (at >= doc->source.n && f->from != SIZE_MAX) at = f->from;
    str s = doc->source;
    if (is_tag(f)) {
        code = "YAML003";
        msg = S("explicit tags are not accepted");
        hint = S("remove it: values are read as text");
        if (f->from != SIZE_MAX) at = f->from;
    } else if (tab_indents(doc, f->at) || (f->problem && strstr(f->problem, "tab character"))) {
        yaml_diag_span(doc, NULL, f->at, f->at + 1, d,
                       yaml_error("YAML015", S("a tab cannot indent a line"), S("use blanks")));
        return;
    } else if (at < s.n && f->problem && strstr(f->problem, "cannot start any token")) {
        msg = str_fmt(a, "a value cannot begin with the character %c", s.p[at]);
        hint = S("put the value in quotes");
    }
    if (f->problem && strstr(f->problem, "<document start>") && after_end(doc, at)) {
        code = "YAML007";
        msg = S("text after the end of the document");
        hint = S("remove the line `...`, or what follows it");
    }
    uint32_t line, from, column;
    yaml_place(doc, at, &line, &column);
    if (f->from != SIZE_MAX) yaml_place(doc, f->from, &from, &column);
    if (f->from != SIZE_MAX && from < line && f->context && strstr(f->context, "parsing a flow"))
        msg = str_fmt(a, STR_FMT ": what begins on line %u is not closed", STR_ARG(msg), from);
    str fixed = is_open_quote(f) ? (str){0} : correction(a, doc, f);
    if (fixed.n) hint = fixed;
    if (fixed.n && f->problem && strstr(f->problem, "mapping values"))
        msg = S("a value without quotes cannot hold `: `");
    yaml_diag_span(doc, NULL, at, at + 1, d, yaml_error(code, msg, hint));
}

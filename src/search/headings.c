// headings: finds the headings of a document and their order, by the form that its file name tells.
// Works on the original text; knows no file and no query. Front matter, comments and code blocks are not
// headings. One reader per form over the same line cursor; HTML, which is not made of lines, is searched as
// text.
#include "search/bytes.h"
#include "search/search_int.h"
#include <deputy/buf.h>
#include <deputy/utf8.h>

typedef enum { FORM_NONE, FORM_MARKDOWN, FORM_RST, FORM_ASCIIDOC, FORM_ORG, FORM_HTML } form;

static const struct {
    str ext;
    form form;
} forms[] = {
    {S_INIT("md"), FORM_MARKDOWN},  {S_INIT("markdown"), FORM_MARKDOWN}, {S_INIT("mdown"), FORM_MARKDOWN},
    {S_INIT("mkd"), FORM_MARKDOWN}, {S_INIT("mdx"), FORM_MARKDOWN},      {S_INIT("mdc"), FORM_MARKDOWN},
    {S_INIT("txt"), FORM_MARKDOWN}, {S_INIT("text"), FORM_MARKDOWN},     {S_INIT("rst"), FORM_RST},
    {S_INIT("rest"), FORM_RST},     {S_INIT("adoc"), FORM_ASCIIDOC},     {S_INIT("asciidoc"), FORM_ASCIIDOC},
    {S_INIT("asc"), FORM_ASCIIDOC}, {S_INIT("org"), FORM_ORG},           {S_INIT("html"), FORM_HTML},
    {S_INIT("htm"), FORM_HTML},     {S_INIT("xhtml"), FORM_HTML},
};

// README and NOTES are text; in a Makefile or Dockerfile, # begins a comment.
static form form_of_name(str path, size_t slash) {
    for (size_t i = slash == SIZE_MAX ? 0 : slash + 1; i < path.n; i++)
        if (path.p[i] >= 'a' && path.p[i] <= 'z') return FORM_NONE;
    return FORM_MARKDOWN;
}

static form form_of(str path) {
    size_t slash = str_rchr(path, '/'), dot = str_rchr(path, '.');
    if (dot == SIZE_MAX || (slash != SIZE_MAX && dot < slash)) return form_of_name(path, slash);
    str ext = str_sub(path, dot + 1, path.n);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (str_ieq(ext, forms[i].ext)) return forms[i].form;
    return FORM_NONE;
}

typedef struct {
    arena *a;
    str text;
    heading_list *out;
    stop_sign *stop;
    uint32_t open[HEADING_LEVELS + 1]; // number of the last heading of each level, 0: none
    // Line feeds of the bytes from `block` on, without those before `next`.
    size_t block, next;
    uint64_t feeds;
    bool looked;
} reader;

typedef struct {
    str s;          // the line without its end
    uint32_t at;    // where it begins in the text
    uint32_t index; // its number
} line;

static void look_at_block(reader *r, size_t block) {
    r->block = block;
    r->feeds = bytes_equal_of(r->text.p + block, r->text.n - block, '\n');
    r->looked = true;
}

// The first line feed from pos on that is not in the block at hand, or the end of the text.
static size_t later_line_end(reader *r, size_t pos) {
    if (!r->looked || pos != r->next || pos - r->block >= BYTES) {
        look_at_block(r, pos / BYTES * BYTES);
        r->feeds &= UINT64_MAX << (pos - r->block);
    }
    while (!r->feeds) {
        if (r->text.n - r->block <= BYTES) return r->text.n;
        look_at_block(r, r->block + BYTES);
    }
    return r->block + (size_t)__builtin_ctzll(r->feeds);
}

// Where the line that begins at pos ends, its line feed not counted.
static inline size_t line_end(reader *r, size_t pos) {
    // Lines are mostly asked for one after the other: the feeds of those before are gone.
    bool here = r->looked && pos == r->next && r->feeds;
    size_t end = here ? r->block + (size_t)__builtin_ctzll(r->feeds) : later_line_end(r, pos);
    r->feeds &= r->feeds - 1;
    r->next = end + 1;
    return end;
}

static inline line line_of(const reader *r, size_t at, size_t end, uint32_t index) {
    if (end > at && r->text.p[end - 1] == '\r') end--;
    return (line){.s = {r->text.p + at, end - at}, .at = (uint32_t)at, .index = index};
}

// The next line; false at the end, or when it is stopped.
static inline bool next_line(reader *r, size_t *pos, uint32_t *index, line *ret) {
    enum { WORK = 32 };
    if (*pos >= r->text.n || stop_said(r->stop)) return false;
    size_t end = line_end(r, *pos);
    *ret = line_of(r, *pos, end, (*index)++);
    (void)stop_after(r->stop, end - *pos + WORK);
    *pos = end + 1;
    return true;
}

static void add(reader *r, int level, uint32_t first, uint32_t last, const char *p, size_t n, bool html) {
    if (r->out->n >= HEADINGS_MAX) return;
    if (level > HEADING_LEVELS) level = HEADING_LEVELS;
    heading h = {.first = first,
                 .last = last,
                 .at = (uint32_t)(p - r->text.p),
                 .n = (uint32_t)n,
                 .level = (uint8_t)level,
                 .html = html};
    for (int k = level - 1; k > 0 && !h.parent; k--) h.parent = r->open[k];
    vec_push(r->a, r->out, h);
    r->open[level] = (uint32_t)r->out->n;
    for (int k = level + 1; k <= HEADING_LEVELS; k++) r->open[k] = 0;
}

// Of a rule that fills the whole file nobody asks meanwhile whether to stop: it takes a millisecond.
static size_t count_same(str s, size_t i, char c) {
    size_t n = 0;
    while (s.n - i - n >= BYTES && bytes_equal(s.p + i + n, c) == UINT64_MAX) n += BYTES;
    while (i + n < s.n && s.p[i + n] == c) n++;
    return n;
}

// Blanks and tabs at the start.
static size_t indent_of(str s) {
    size_t i = 0;
    while (i < s.n && (s.p[i] == ' ' || s.p[i] == '\t')) i++;
    return i;
}

// An indent of n bytes that makes a line of Markdown code.
static bool is_code_indent(str s, size_t n) {
    return n > 3 || (n && memchr(s.p, '\t', n));
}

// The whole line is one character repeated, blanks at the end aside. Returns it, or 0.
static char rule_of(str s, size_t at_least) {
    s = str_trim(s);
    return s.n >= at_least && s.n && count_same(s, 0, s.p[0]) == s.n ? s.p[0] : 0;
}

// --- HTML ---

static char low(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool tag_at(str s, size_t i, str name) {
    return str_ieq(str_sub(s, i, i + name.n), name);
}

enum { HTML_HEADING_MAX = 4096 }; // bytes of its tag, and of its text

// Level of the heading that opens at s.p[i], '<' there; 0 when there is none. *body: where its text begins.
static int html_opens(str s, size_t i, size_t *body) {
    if (i + 3 >= s.n || low(s.p[i + 1]) != 'h' || s.p[i + 2] < '1' || s.p[i + 2] > '6') return 0;
    char c = s.p[i + 3];
    if (c != '>' && c != ' ' && c != '\t' && c != '\n' && c != '\r') return 0;
    size_t close = str_chr(str_sub(s, i, i + HTML_HEADING_MAX), '>');
    if (close == SIZE_MAX) return 0;
    *body = i + close + 1;
    return s.p[i + 2] - '0';
}

// The first end of a heading from `from` on; s.n when there is none.
static size_t html_close(str s, size_t from, stop_sign *stop) {
    for (size_t i = from; i + 3 < s.n; i++) {
        size_t some = s.n - i - 3 < STOP_EACH ? s.n - i - 3 : STOP_EACH;
        const char *p = memchr(s.p + i, '<', some);
        if (stop_after(stop, p ? (size_t)(p - s.p) - i + 1 : some)) break;
        if (!p) {
            i += some - 1;
            continue;
        }
        i = (size_t)(p - s.p);
        if (p[1] == '/' && low(p[2]) == 'h') return i;
    }
    return s.n;
}

// Length of the heading's text that begins at body; 0 when it does not end within reason. *close: the end
// found last, so that a text of many openings is looked through once; 0 at first.
static size_t html_length(str s, size_t body, stop_sign *stop, size_t *close) {
    if (*close < body) *close = html_close(s, body, stop);
    return *close < s.n && *close - body + 3 < HTML_HEADING_MAX ? *close - body : 0;
}

// Where what begins at i ends, when it is something whose inside is no document: a comment, a script, a style
// sheet.
static size_t html_skip(str s, size_t i, stop_sign *stop) {
    static const struct {
        str open, close;
    } opaque[] = {{S_INIT("<!--"), S_INIT("-->")},
                  {S_INIT("<script"), S_INIT("</script")},
                  {S_INIT("<style"), S_INIT("</style")}};
    for (size_t k = 0; k < sizeof opaque / sizeof *opaque; k++) {
        if (!tag_at(s, i, opaque[k].open)) continue;
        for (size_t at = i + opaque[k].open.n; at < s.n && !stop_after(stop, 1); at++)
            if (s.p[at] == opaque[k].close.p[0] && tag_at(s, at, opaque[k].close))
                return at + opaque[k].close.n;
        return s.n;
    }
    return i;
}

static void read_html(reader *r) {
    enum { WORK = 16 };
    str s = r->text;
    uint32_t index = 0;
    size_t counted = 0; // lines before it are in index
    size_t close = 0;
    for (size_t i = 0; i < s.n;) {
        size_t some = s.n - i < STOP_EACH ? s.n - i : STOP_EACH;
        const char *p = memchr(s.p + i, '<', some);
        if (stop_after(r->stop, p ? (size_t)(p - s.p) - i + WORK : some)) return;
        if (!p) {
            i += some;
            continue;
        }
        i = (size_t)(p - s.p);
        size_t past = html_skip(s, i, r->stop), body = 0;
        if (past > i) {
            i = past;
            continue;
        }
        int level = html_opens(s, i, &body);
        size_t n = level ? html_length(s, body, r->stop, &close) : 0;
        if (n) {
            for (; counted < i && !stop_after(r->stop, 1); counted++) index += s.p[counted] == '\n';
            uint32_t last = index;
            for (size_t k = i; k < body + n; k++) last += s.p[k] == '\n';
            add(r, level, index, last, s.p + body, n, true);
            i = body + n;
        } else {
            i++;
        }
    }
}

// --- Markdown ---

typedef struct {
    char fence;     // the open fence's character, or 0
    size_t fence_n; // its length
    bool comment;   // within <!-- … --> over several lines
    line paragraph; // the line before this one, when it may be the text of an underlined heading
    bool has_paragraph;
} markdown;

// The title that a line of front matter gives the document: `title: …`, `title = …`. Empty: none.
static str front_title(str s) {
    static const str key = S_INIT("title");
    if (!str_starts(s, key)) return (str){0};
    str rest = str_trim(str_sub(s, key.n, s.n));
    if (rest.n == 0 || (rest.p[0] != ':' && rest.p[0] != '=')) return (str){0};
    rest = str_trim(str_sub(rest, 1, rest.n));
    char quote = rest.n > 1 && (rest.p[0] == '"' || rest.p[0] == '\'') ? rest.p[0] : 0;
    return quote && rest.p[rest.n - 1] == quote ? str_sub(rest, 1, rest.n - 1) : rest;
}

// Blanks before a line's text that are looked at. With more it is code, and marks nothing.
enum { INDENT_MAX = 4096 };

// A line that may enclose front matter; empty: it is too long.
static str mark_of(const line *l) {
    return l->s.n > INDENT_MAX ? (str){0} : str_trim(l->s);
}

// Where front matter ends: the text after it; 0 when there is none. Its title is a heading of the top level:
// many documents have no other one.
static size_t front_matter(reader *r, uint32_t *index) {
    size_t pos = 0;
    uint32_t n = 0;
    line l, titled = {0};
    str title = {0};
    if (!next_line(r, &pos, &n, &l)) return 0;
    str mark = mark_of(&l);
    if (!str_eq(mark, S("---")) && !str_eq(mark, S("+++"))) return 0;
    while (next_line(r, &pos, &n, &l)) {
        str end = mark_of(&l);
        if (str_eq(end, mark) || (mark.p[0] == '-' && str_eq(end, S("...")))) {
            if (title.n) add(r, 1, titled.index, titled.index, title.p, title.n, false);
            *index = n;
            return pos;
        }
        if (title.n) continue;
        title = front_title(l.s);
        titled = l;
    }
    return 0;
}

// Tracks fences. True when the line is a fence or within one.
static bool in_fence(markdown *m, str s) {
    size_t i = indent_of(s);
    char c = i < s.n ? s.p[i] : 0;
    size_t n = c == '`' || c == '~' ? count_same(s, i, c) : 0;
    if (m->fence) {
        if (c == m->fence && n >= m->fence_n && indent_of(str_sub(s, i + n, s.n)) == s.n - i - n)
            m->fence = 0;
        return true;
    }
    // A backtick later on makes it code within a line.
    if (n < 3 || (c == '`' && str_chr(str_sub(s, i + n, s.n), '`') != SIZE_MAX)) return false;
    m->fence = c;
    m->fence_n = n;
    return true;
}

static bool in_comment(markdown *m, str s) {
    bool was = m->comment;
    if (!was && !str_starts(str_trim(s), S("<!--"))) return false;
    m->comment = str_find(s, S("-->")) == SIZE_MAX;
    return true;
}

// Could the line be the text of an underlined heading? Not a list item, quotation, table row or other block;
// "1. Scope" is one more often than a list of one item.
static bool may_be_title(str s) {
    size_t i = indent_of(s);
    if (is_code_indent(s, i) || i == s.n) return false;
    char c = s.p[i];
    char then = i + 1 < s.n ? s.p[i + 1] : ' ';
    if (c == '>' || c == '|' || c == '<') return false;
    if ((c == '-' || c == '*' || c == '+') && (then == ' ' || then == '\t')) return false;
    return true;
}

// Does l go on with the paragraph of the line before it? Only the first line of one may be a title: a rule
// under a longer one closes a table or a note more often than it names it.
static bool follows(const line *l, const line *before) {
    return before->s.p && before->index + 1 == l->index && indent_of(before->s) < before->s.n;
}

static void markdown_line(reader *r, markdown *m, const line *l) {
    str s = l->s;
    bool had = m->has_paragraph;
    line before = m->paragraph;
    m->has_paragraph = false;
    size_t i = indent_of(s);
    char c = i < s.n ? s.p[i] : 0;
    if ((m->fence || c == '`' || c == '~') && in_fence(m, s)) return;
    // Before a comment there may be a carriage return.
    if ((m->comment || c == '<' || (unsigned char)c < ' ') && in_comment(m, s)) return;
    if (i == s.n) return;
    if (!is_code_indent(s, i) && c == '#') {
        size_t n = count_same(s, i, '#');
        if (n <= 6 && (i + n == s.n || s.p[i + n] == ' ' || s.p[i + n] == '\t'))
            add(r, (int)n, l->index, l->index, s.p + i + n, s.n - i - n, false);
        return;
    }
    if (c == '<') {
        size_t body = 0, close = 0;
        int level = html_opens(s, i, &body);
        size_t n = level ? html_length(s, body, r->stop, &close) : 0;
        if (n) add(r, level, l->index, l->index, s.p + body, n, true);
        return;
    }
    char rule = !is_code_indent(s, i) && had ? rule_of(s, 2) : 0;
    if (rule == '=' || rule == '-') {
        add(r, rule == '=' ? 1 : 2, before.index, l->index, before.s.p, before.s.n, false);
        return;
    }
    m->has_paragraph = !follows(l, &before) && may_be_title(s);
}

typedef enum { LINE_TEXT, LINE_BLANK, LINE_MARKED } line_kind;

// What a line is by how it begins: marked, when it may be more than text.
static inline line_kind kind_at(str s, size_t pos) {
    static const bool marks[256] = {[0 ... ' '] = true, ['`'] = true, ['~'] = true, ['<'] = true,
                                    ['#'] = true,       ['='] = true, ['-'] = true};
    size_t most = s.n - pos > INDENT_MAX ? pos + INDENT_MAX : s.n;
    while (pos < most && (s.p[pos] == ' ' || s.p[pos] == '\t')) pos++;
    if (pos == most && pos < s.n) return LINE_TEXT;
    bool cr = pos < s.n && s.p[pos] == '\r';
    pos += cr;
    if (pos >= s.n || s.p[pos] == '\n') return LINE_BLANK;
    return cr || marks[(unsigned char)s.p[pos]] ? LINE_MARKED : LINE_TEXT;
}

// Most lines are text or blank: passes those by, up to one that may be more. Of them only the last one
// counts.
static void pass_text(reader *r, markdown *m, size_t *pos, uint32_t *index) {
    enum { WORK = 16 };
    size_t at = *pos, last = at, n = 0;
    line_kind kind = LINE_BLANK, before = LINE_BLANK;
    for (line_kind k; at < r->text.n && (k = kind_at(r->text, at)) != LINE_MARKED; n++) {
        before = kind;
        kind = k;
        last = at;
        at = line_end(r, at) + 1;
        if (stop_after(r->stop, at - last + WORK)) break;
    }
    if (!n) return;
    *pos = at;
    *index += (uint32_t)n;
    line was = m->paragraph;
    m->paragraph = line_of(r, last, at - 1, *index - 1);
    bool goes_on = n > 1 ? before == LINE_TEXT : follows(&m->paragraph, &was);
    m->has_paragraph = kind == LINE_TEXT && !m->fence && !goes_on && may_be_title(m->paragraph.s);
}

static void read_markdown(reader *r) {
    markdown m = {0};
    uint32_t index = 0;
    size_t pos = front_matter(r, &index);
    line l;
    for (;;) {
        // What ends a comment may stand anywhere.
        if (!m.comment) pass_text(r, &m, &pos, &index);
        if (!next_line(r, &pos, &index, &l)) return;
        markdown_line(r, &m, &l);
        // Also one that cannot be a title: the next one may go on with it.
        m.paragraph = l;
    }
}

// --- reStructuredText ---

static bool is_punct(char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

typedef struct {
    line l;
    char rule; // the character it is made of, or 0
    bool text; // neither blank nor a rule
} rst_line;

// Levels are what a document makes of them: each pair of character and overline in the order of first use.
typedef struct {
    struct {
        char c;
        bool over;
    } style[HEADING_LEVELS];
    int n;
} rst_styles;

static int rst_level(rst_styles *s, char c, bool over) {
    int k = 0;
    while (k < s->n && (s->style[k].c != c || s->style[k].over != over)) k++;
    if (k == s->n && s->n < HEADING_LEVELS) {
        s->style[k].c = c;
        s->style[k].over = over;
        s->n++;
    }
    return k + 1;
}

static void read_rst(reader *r) {
    rst_styles styles = {0};
    rst_line above = {0}, before = {0}, now;
    uint32_t index = 0;
    for (size_t pos = 0; next_line(r, &pos, &index, &now.l); above = before, before = now) {
        str s = str_trim(now.l.s);
        char c = rule_of(now.l.s, 3);
        now.rule = c && is_punct(c) && indent_of(now.l.s) == 0 ? c : 0;
        now.text = s.n && !now.rule;
        if (!now.rule || !before.text) continue;
        // A title has nothing but its overline or a blank line above it, and no indent without the overline.
        bool over = above.rule == now.rule;
        if (!over && (above.text || above.rule || indent_of(before.l.s) > 0)) continue;
        str title = str_trim(before.l.s);
        if (s.n < 4 && s.n < utf8_width(title)) continue;
        add(r, rst_level(&styles, now.rule, over), over ? above.l.index : before.l.index, now.l.index,
            title.p, title.n, false);
        now = (rst_line){.l = now.l}; // an underline is no overline of what follows
    }
}

// --- AsciiDoc, Org ---

static void read_asciidoc(reader *r) {
    char block = 0; // the character of an open block whose inside is not read
    size_t block_n = 0;
    uint32_t index = 0;
    line l;
    for (size_t pos = 0; next_line(r, &pos, &index, &l);) {
        char c = rule_of(l.s, 3);
        if (c && str_trim(l.s).n != l.s.n) c = 0; // delimiters stand alone
        bool fence = c && ((l.s.n >= 4 && memchr("-./+", c, 4)) || (l.s.n == 3 && c == '`'));
        if (block) {
            if (c == block && l.s.n == block_n) block = 0;
        } else if (fence) {
            block = c;
            block_n = l.s.n;
        } else if (l.s.n && (l.s.p[0] == '=' || l.s.p[0] == '#')) {
            size_t n = count_same(l.s, 0, l.s.p[0]);
            if (n <= 6 && n < l.s.n && (l.s.p[n] == ' ' || l.s.p[n] == '\t'))
                add(r, (int)n, l.index, l.index, l.s.p + n, l.s.n - n, false);
        }
    }
}

static void read_org(reader *r) {
    bool block = false;
    uint32_t index = 0;
    line l;
    for (size_t pos = 0; next_line(r, &pos, &index, &l);) {
        str s = str_trim(l.s);
        if (s.n >= 2 && s.p[0] == '#' && s.p[1] == '+') {
            if (tag_at(s, 2, S("begin_"))) block = true;
            if (tag_at(s, 2, S("end_"))) block = false;
        } else if (!block && l.s.n && l.s.p[0] == '*') {
            size_t n = count_same(l.s, 0, '*');
            if (n < l.s.n && l.s.p[n] == ' ') add(r, (int)n, l.index, l.index, l.s.p + n, l.s.n - n, false);
        }
    }
}

void headings_find(arena *a, str path, str text, stop_sign *stop, heading_list *ret) {
    reader r = {.a = a, .text = text, .out = ret, .stop = stop};
    switch (form_of(path)) {
    case FORM_MARKDOWN: read_markdown(&r); break;
    case FORM_RST: read_rst(&r); break;
    case FORM_ASCIIDOC: read_asciidoc(&r); break;
    case FORM_ORG: read_org(&r); break;
    case FORM_HTML: read_html(&r); break;
    case FORM_NONE: break;
    }
}

// --- Titles ---

// Marks that close a heading without being part of it: the second row of #, {#anchor}, Org's :tags:.
static str without_tail(str s) {
    s = str_trim(s);
    size_t n = s.n;
    while (n && s.p[n - 1] == '#') n--;
    if (n < s.n && (n == 0 || s.p[n - 1] == ' ' || s.p[n - 1] == '\t')) s = str_trim(str_sub(s, 0, n));
    if (s.n && s.p[s.n - 1] == '}') {
        size_t open = str_rchr(s, '{');
        if (open != SIZE_MAX && open > 0 && open + 1 < s.n && (s.p[open + 1] == '#' || s.p[open + 1] == '.'))
            s = str_trim(str_sub(s, 0, open));
    }
    return s;
}

// The character that an entity at s.p[i] stands for, and its length; 0 when it is none of the few that
// matter.
static size_t entity(str s, size_t i, char *ret) {
    static const struct {
        str name;
        char c;
    } names[] = {{S_INIT("&amp;"), '&'},  {S_INIT("&lt;"), '<'},   {S_INIT("&gt;"), '>'},
                 {S_INIT("&quot;"), '"'}, {S_INIT("&#39;"), '\''}, {S_INIT("&nbsp;"), ' '}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        if (!tag_at(s, i, names[k].name)) continue;
        *ret = names[k].c;
        return names[k].name.n;
    }
    return 0;
}

// Characters that stand in a title as they are.
static size_t title_run(str s, bool html) {
    size_t n = 0;
    for (; n < s.n; n++) {
        char c = s.p[n];
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || (html && (c == '<' || c == '&'))) break;
    }
    return n;
}

str heading_title(arena *a, str raw, bool html) {
    if (!html) raw = without_tail(raw);
    buf b = buf_new(a, 0);
    bool blank = false;
    for (size_t i = 0; i < raw.n && b.n < (size_t)HEADING_CHARS * 16;) {
        enum : size_t { SOME = 256 }; // of a run at once
        size_t run = title_run(str_sub(raw, i, i + SOME), html), step = 1;
        if (run) {
            if (blank) buf_addc(&b, ' ');
            blank = false;
            buf_add(&b, str_sub(raw, i, i + run));
            i += run;
            continue;
        }
        char c = raw.p[i];
        if (html && c == '<') {
            size_t close = str_chr(str_sub(raw, i, raw.n), '>');
            i = close == SIZE_MAX ? raw.n : i + close + 1;
            continue;
        }
        if (html && c == '&') {
            size_t n = entity(raw, i, &c);
            if (n) step = n;
        }
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
            blank = b.n > 0;
        } else {
            if (blank) buf_addc(&b, ' ');
            blank = false;
            buf_addc(&b, c);
        }
        i += step;
    }
    str all = buf_str(&b), cut = utf8_cut_chars(all, HEADING_CHARS);
    if (cut.n == all.n) return all;
    cut = utf8_cut_chars(all, HEADING_CHARS - 1);
    return str_fmt(a, STR_FMT "…", STR_ARG(cut));
}

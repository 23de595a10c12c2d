// parse: one SKILL.md from its bytes to a skill. Pure: it opens nothing. The frontmatter is YAML where that
// can be; where it cannot, fallback.c reads it, with a warning. Nothing in it grants anything, so leniency
// costs no safety; the one key that restricts (disable-model-invocation) is read towards the restriction.
#include "skills/skills_int.h"
#include <deputy/sys.h>
#include <deputy/utf8.h>
#include <deputy/yaml.h>

enum { SOURCE_MAX = 400, SHOWN_MAX = 100 };

#define BOM S("\xEF\xBB\xBF")

static const char hiding_key[] = "disable-model-invocation";

// --- Diagnostics ---------------------------------------------------------------------------------

static str line_of(str text, uint32_t line) {
    str rest = text, head = {0};
    for (uint32_t i = 0; i < line; i++)
        if (!str_cut(rest, '\n', &head, &rest) && i + 1 < line) return (str){0};
    return head.n && head.p[head.n - 1] == '\r' ? str_sub(head, 0, head.n - 1) : head;
}

void skill_diag(const skill_text *t, diag_severity severity, const char *code, uint32_t line, uint32_t column,
                str msg, str hint) {
    diag d = {.severity = severity,
              .code = code,
              .file = t->file,
              .line = line,
              .column = column,
              .msg = msg,
              .hint = hint};
    if (line) d.source = line_of(t->text, line);
    if (d.source.n > SOURCE_MAX) d.source = (str){0};
    diags_add(t->d, d);
}

str skill_shown(arena *a, str s) {
    return foreign(a, s, FOREIGN_LINE, SHOWN_MAX);
}

// --- The text and its two parts ------------------------------------------------------------------

// False: not text that can be read.
static bool take_text(skill_text *t, str bytes) {
    if (str_starts(bytes, S("\xFF\xFE")) || str_starts(bytes, S("\xFE\xFF"))) {
        skill_diag(t, SEV_ERROR, "SKL001", 0, 0, S("the file is UTF-16, so no frontmatter is seen"),
                   S("save it as UTF-8"));
        return false;
    }
    t->text = bytes;
    if (str_starts(t->text, BOM)) t->text = str_sub(t->text, 3, t->text.n);
    size_t marks = 0;
    for (; str_starts(t->text, BOM); marks++) t->text = str_sub(t->text, 3, t->text.n);
    uint32_t line = 1;
    size_t bad = utf8_invalid_at(t->text);
    for (size_t i = 0; bad != SIZE_MAX && i < bad; i++) line += t->text.p[i] == '\n';
    t->text = utf8_repair(t->a, t->text); // before anything quotes it
    if (marks)
        skill_diag(t, SEV_WARNING, "SKL017", 1, 1, S("the file begins with more than one byte order mark"),
                   S("remove the characters U+FEFF before ---"));
    if (bad != SIZE_MAX)
        skill_diag(t, SEV_WARNING, "SKL017", line, 0, S("bytes that are not UTF-8 are read as U+FFFD"),
                   S("save it as UTF-8"));
    return true;
}

static bool is_fence(str line) {
    while (line.n && (line.p[line.n - 1] == ' ' || line.p[line.n - 1] == '\t' || line.p[line.n - 1] == '\r'))
        line.n--;
    return str_eq(line, S("---"));
}

static bool no_frontmatter(const skill_text *t) {
    str rest = t->text, head;
    uint32_t line = 1;
    if (str_starts(t->text, S("---\r")) && str_chr(t->text, '\n') == SIZE_MAX) {
        skill_diag(t, SEV_ERROR, "SKL001", 1, 1,
                   S("the lines end in CR alone (old Mac line ends), so no frontmatter is seen"),
                   S("save it with LF or CR LF line ends"));
        return false;
    }
    for (bool more = true; more; line++) {
        more = str_cut(rest, '\n', &head, &rest);
        if (!is_fence(str_trim(head))) continue;
        skill_diag(
            t, SEV_ERROR, "SKL001", line, 1,
            str_fmt(t->a,
                    "no frontmatter at the top: the first line must be ---, and there is one on line %u",
                    line),
            S("remove what stands before it"));
        return false;
    }
    skill_diag(t, SEV_ERROR, "SKL001", 1, 1, S("no frontmatter at the top"),
               S("begin the file with ---, name:, description:, ---"));
    return false;
}

// *open: offset after the first fence line; *close: of the closing one; *body: after it.
static bool split(const skill_text *t, size_t *open, size_t *close, size_t *body) {
    str head, rest;
    bool more = str_cut(t->text, '\n', &head, &rest);
    if (!is_fence(head)) return no_frontmatter(t);
    *open = more ? head.n + 1 : t->text.n;
    for (size_t at = *open; more && at <= t->text.n;) {
        more = str_cut(str_sub(t->text, at, t->text.n), '\n', &head, &rest);
        if (is_fence(head)) {
            *close = at;
            *body = more ? at + head.n + 1 : t->text.n;
            return true;
        }
        at += head.n + 1;
    }
    skill_diag(t, SEV_ERROR, "SKL002", 1, 1, S("the frontmatter that begins here is never closed"),
               S("put a line --- after its last key"));
    return false;
}

// --- Fields --------------------------------------------------------------------------------------

static void yaml_fields(arena *a, const ydoc *doc, skill_fields *ret) {
    for (const ynode *n = doc->root->child; n; n = n->next) {
        skill_field f = {.key = n->key->text, .scalar = n->kind == YAML_NODE_SCALAR};
        if (f.scalar && !yaml_is_null(n)) f.value = n->text;
        yaml_place(doc, n->key->start, &f.line, &f.column);
        vec_push(a, ret, f);
    }
}

static void read_fields(const skill_text *t, size_t open, size_t close, skill_fields *ret) {
    ydoc *doc = NULL;
    diags d = diags_new(t->a);
    dep_err err;
    // With the opening fence, which YAML takes as the start of a document, so that its lines are the file's.
    dep_status status = yaml_parse(t->a, t->file, str_sub(t->text, 0, close), 0, true, &doc, &d, &err);
    bool tree = status == DEP_OK && doc->root && doc->root->kind == YAML_NODE_MAP;
    uint32_t line = 1;
    for (vec_each(diag, i, &d.items)) {
        if (line == 1 && i->line) line = i->line;
        if (strcmp(i->code, "YAML012") == 0 || strcmp(i->code, "YAML002") == 0) continue; // said in our words
        i->severity = SEV_WARNING;
        diags_add(t->d, *i);
    }
    if (tree) {
        yaml_fields(t->a, doc, ret);
        return;
    }
    skill_read_lines(t, open, close, 2, ret);
    if (ret->n)
        skill_diag(
            t, SEV_WARNING, "SKL003", line, 0,
            S("the frontmatter is not YAML: its values are read as plain text, up to the next known key"),
            S("put values that hold ': ' or begin with a special character in quotes"));
}

static const skill_field *field(const skill_fields *f, str key) {
    for (vec_each(const skill_field, i, f))
        if (str_eq(i->key, key)) return i;
    return NULL;
}

static void report_twice(const skill_text *t, const skill_fields *f) {
    for (vec_each(const skill_field, i, f)) {
        const skill_field *first = field(f, i->key);
        if (first == i) continue;
        skill_diag(t, SEV_WARNING, "SKL010", i->line, i->column,
                   str_fmt(t->a,
                           "key \"" STR_FMT "\" stands on line %u and again on line %u: the first counts",
                           STR_ARG(skill_shown(t->a, i->key)), first->line, i->line),
                   S("keep one of them"));
    }
}

// A scalar as one line, or empty: absent, null, blank, or (reported) of the wrong kind.
static str line_value(const skill_text *t, const skill_fields *f, const char *key) {
    const skill_field *it = field(f, str_z(key));
    if (!it) return (str){0};
    if (!it->scalar) {
        skill_diag(t, SEV_WARNING, "SKL020", it->line, it->column, str_fmt(t->a, "%s is not a text", key),
                   str_fmt(t->a, "write `%s: …` on one line", key));
        return (str){0};
    }
    // Line ends and runs of blanks become one blank.
    buf out = buf_new(t->a, 0);
    str s = str_trim(it->value);
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
        if (!blank) buf_addc(&out, c);
        if (blank && out.n && out.p[out.n - 1] != ' ') buf_addc(&out, ' ');
    }
    return buf_str(&out);
}

// --- Name ----------------------------------------------------------------------------------------

static const char *name_fault(str name) {
    bool hyphen = true;
    if (utf8_count(name) > SKILL_NAME_MAX) return "is over 64 characters";
    for (size_t i = 0; i < name.n;) {
        uint32_t cp = utf8_next(name, &i);
        if (cp == '-') {
            if (hyphen) return i == 1 ? "begins with a hyphen" : "has two hyphens in a row";
            hyphen = true;
            continue;
        }
        hyphen = false;
        if (cp >= 'A' && cp <= 'Z') return "has capital letters";
        if (cp < 0x80 ? !((cp >= 'a' && cp <= 'z') || (cp >= '0' && cp <= '9'))
                      : !(utf8_is_letter(cp) || utf8_is_decimal(cp) || utf8_is_mark(cp)))
            return "has other characters than letters, digits and hyphens";
    }
    return hyphen ? "ends with a hyphen" : NULL;
}

static bool has_identity(arena *a, str name) {
    return str_trim(utf8_fold(a, name)).n > 0;
}

// False: there is none.
static bool read_name(const skill_text *t, const skill_fields *f, str folder, skill *ret) {
    const skill_field *it = field(f, S("name"));
    uint32_t line = it ? it->line : 0, column = it ? it->column : 0;
    str name = line_value(t, f, "name");
    if (!has_identity(t->a, name)) {
        if (!has_identity(t->a, folder)) {
            skill_diag(t, SEV_ERROR, "SKL006", line, column, S("the skill has no name"),
                       S("add a line `name: …`"));
            return false;
        }
        ret->name = utf8_repair(t->a, folder);
        skill_diag(t, SEV_WARNING, "SKL005", line, column,
                   str_fmt(t->a, "%s name: the folder's is used, \"" STR_FMT "\"", it ? "no usable" : "no",
                           STR_ARG(skill_shown(t->a, ret->name))),
                   str_fmt(t->a, "write `name: " STR_FMT "`", STR_ARG(skill_shown(t->a, ret->name))));
        return true;
    }
    ret->name = name;
    const char *fault = name_fault(name);
    if (fault)
        skill_diag(
            t, SEV_WARNING, "SKL007", line, column,
            str_fmt(t->a, "the name \"" STR_FMT "\" %s", STR_ARG(skill_shown(t->a, name)), fault),
            S("use lower-case letters, digits and single hyphens, so that every program finds the skill"));
    if (folder.n && !str_eq(utf8_nfkc(t->a, name), utf8_nfkc(t->a, utf8_repair(t->a, folder))))
        skill_diag(t, SEV_WARNING, "SKL008", line, column,
                   str_fmt(t->a, "the name \"" STR_FMT "\" is not that of the folder, \"" STR_FMT "\"",
                           STR_ARG(skill_shown(t->a, name)), STR_ARG(skill_shown(t->a, folder))),
                   S("definitions declare it by its name; rename the folder"));
    return true;
}

// --- The rest ------------------------------------------------------------------------------------

static bool read_description(const skill_text *t, const skill_fields *f, skill *ret) {
    const skill_field *it = field(f, S("description"));
    str text = line_value(t, f, "description");
    if (!text.n) {
        str hint = S("add a line `description: …` that says what the skill does and when to use it");
        for (vec_each(const skill_field, i, f))
            if (!it && str_distance(i->key, S("description"), 3) <= 3)
                hint = str_fmt(t->a, "\"" STR_FMT "\" is not a key: write `description`",
                               STR_ARG(skill_shown(t->a, i->key)));
        skill_diag(t, SEV_ERROR, "SKL004", it ? it->line : 0, it ? it->column : 0,
                   S("the skill has no description"), hint);
        return false;
    }
    size_t n = utf8_count(text);
    if (n > SKILL_DESCRIPTION_MAX) {
        skill_diag(
            t, SEV_WARNING, "SKL009", it->line, it->column,
            str_fmt(t->a, "the description has %zu characters: it is cut after %d", n, SKILL_DESCRIPTION_MAX),
            S("put the important part first, and details into the text"));
        text = str_fmt(t->a, STR_FMT "…", STR_ARG(utf8_cut_chars(text, SKILL_DESCRIPTION_MAX - 1)));
    }
    ret->description = text;
    return true;
}

// disable_model_invocation, disableModelInvocation, disable-model-invokation
static bool nearly_hides(arena *a, str key) {
    buf out = buf_new(a, 0);
    for (size_t i = 0; i < key.n && key.n <= 40; i++)
        if (key.p[i] != '-' && key.p[i] != '_') buf_addc(&out, key.p[i]);
    return str_distance(buf_str(&out), S("disablemodelinvocation"), 2) <= 2;
}

static void read_hidden(const skill_text *t, const skill_fields *f, skill *ret) {
    for (vec_each(const skill_field, i, f)) {
        bool exact = str_eq(i->key, str_z(hiding_key));
        if (!exact && !nearly_hides(t->a, i->key)) continue;
        if (exact && i->scalar && str_ieq(i->value, S("false"))) continue;
        ret->hidden = true;
        if (exact && i->scalar && str_ieq(i->value, S("true"))) continue;
        skill_diag(t, SEV_WARNING, "SKL021", i->line, i->column,
                   str_fmt(t->a, "read as `%s: true`: the skill is hidden", hiding_key),
                   str_fmt(t->a, "write `%s: true` or `%s: false`", hiding_key, hiding_key));
    }
}

static void read_granting(const skill_text *t, const skill_fields *f, skill *ret) {
    strs names = {0};
    const skill_field *first = NULL;
    for (vec_each(const skill_field, i, f)) {
        if (!skill_key_grants(i->key) || field(f, i->key) != i) continue;
        if (!first) first = i;
        vec_push(t->a, &names, i->key);
    }
    if (!first) return;
    ret->grants_nothing = str_join(t->a, names.p, names.n, S(", "));
    skill_diag(t, SEV_NOTE, "SKL011", first->line, first->column,
               str_fmt(t->a, "shown, but without effect here: " STR_FMT, STR_ARG(ret->grants_nothing)),
               S("a skill has the tools of the agent that uses it"));
}

static void report_invisible(const skill_text *t) {
    invisible_finds finds = {0};
    invisible_scan(t->a, t->text, &finds);
    for (vec_each(const invisible_find, i, &finds)) {
        str words = {0};
        if (i->decoded.n)
            words =
                str_fmt(t->a, "; as tags they spell \"" STR_FMT "\"", STR_ARG(skill_shown(t->a, i->decoded)));
        skill_diag(t, SEV_WARNING, "SKL016", i->line, 0,
                   str_fmt(t->a, "%zu invisible character%s U+%04X, first on this line" STR_FMT, i->count,
                           i->count == 1 ? "" : "s", i->cp, STR_ARG(words)),
                   S("remove them, unless you know what they are for"));
    }
}

bool skill_parse(arena *a, str file, str text, str fallback_name, skill *ret, diags *d) {
    skill_text t = {.a = a, .file = file, .d = d};
    skill_fields fields = {0};
    size_t open = 0, close = 0, body = 0;
    ret->sha256 = sha256_hex(a, text);
    if (!take_text(&t, text)) return false;
    report_invisible(&t);
    if (!split(&t, &open, &close, &body)) return false;
    read_fields(&t, open, close, &fields);
    report_twice(&t, &fields);
    bool named = read_name(&t, &fields, fallback_name, ret), described = read_description(&t, &fields, ret);
    read_hidden(&t, &fields, ret);
    read_granting(&t, &fields, ret);
    ret->body = str_sub(t.text, body, t.text.n);
    if (!str_trim(ret->body).n)
        skill_diag(&t, SEV_WARNING, "SKL019", 0, 0, S("there is no text after the frontmatter"),
                   S("write what an agent should do when it uses the skill"));
    return named && described;
}

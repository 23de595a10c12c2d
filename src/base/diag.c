// diag: the list and its two printers.
#include <deputy/diag.h>
#include <deputy/json.h>
#include <deputy/utf8.h>

void diags_add(diags *d, diag item) {
    if (item.severity == SEV_ERROR) d->errors++;
    if (item.severity == SEV_WARNING) d->warnings++;
    if (d->items.n >= DIAG_MAX) {
        d->dropped++;
        return;
    }
    item.file = str_dup(d->a, item.file);
    item.path = str_dup(d->a, item.path);
    item.msg = str_dup(d->a, item.msg);
    item.hint = str_dup(d->a, item.hint);
    item.source = str_dup(d->a, item.source);
    vec_push(d->a, &d->items, item);
}

void diags_merge(diags *to, const diags *from) {
    for (vec_each(const diag, it, &from->items)) diags_add(to, *it);
    to->dropped += from->dropped;
}

static int by_place(const diag *x, const diag *y) {
    int c = str_cmp(x->file, y->file);
    if (c) return c;
    if (x->line != y->line) return x->line < y->line ? -1 : 1;
    if (x->column != y->column) return x->column < y->column ? -1 : 1;
    return 0;
}

void diags_sort(diags *d) {
    // Insertion keeps equal places in the order in which they were found; the list is short (DIAG_MAX).
    for (size_t i = 1; i < d->items.n; i++) {
        diag x = d->items.p[i];
        size_t j = i;
        for (; j > 0 && by_place(&d->items.p[j - 1], &x) > 0; j--) d->items.p[j] = d->items.p[j - 1];
        d->items.p[j] = x;
    }
}

const char *diag_severity_name(diag_severity s) {
    static const char *const names[] = {"error", "warning", "note"};
    return names[s];
}

enum { SOURCE_SHOWN_MAX = 160 };

// The part of the line that is shown: a window of SOURCE_SHOWN_MAX characters that holds the column.
static str window(str line, uint32_t column, size_t *skipped) {
    *skipped = 0;
    size_t at = 0, first = 0;
    if (column > SOURCE_SHOWN_MAX - 20) {
        size_t skip = column - 60;
        for (size_t i = 0; i < skip && at < line.n; i++) utf8_next(line, &at);
        first = at;
        *skipped = skip;
    }
    return utf8_cut_chars(str_sub(line, first, line.n), SOURCE_SHOWN_MAX);
}

// The byte offset of a column within a slice whose first character has column `first`; its end when it is
// beyond.
static size_t column_at(str line, size_t first, uint32_t column) {
    size_t at = 0;
    for (size_t c = first; c < column && at < line.n; c++) utf8_next(line, &at);
    return at;
}

static void print_caret(buf *out, const diag *d, bool color) {
    size_t skipped;
    str line = window(d->source, d->column, &skipped);
    size_t from = column_at(line, skipped + 1, d->column);
    size_t to = d->end > d->column ? column_at(line, skipped + 1, d->end) : from;
    // Escaped in three pieces, so that the caret counts what is shown.
    size_t start = out->n + 2, caret, end;
    buf_add(out, S("  "));
    term_add(out, str_sub(line, 0, from), false);
    caret = out->n;
    term_add(out, str_sub(line, from, to), false);
    end = out->n;
    term_add(out, str_sub(line, to, line.n), false);
    size_t lead = utf8_width(str_n(out->p + start, caret - start));
    size_t width = end > caret ? utf8_width(str_n(out->p + caret, end - caret)) : 1;
    buf_add(out, S("\n  "));
    buf_fill(out, ' ', lead);
    if (color) buf_add(out, S("\x1b[1;32m"));
    buf_addc(out, '^');
    if (width > 1) buf_fill(out, '~', width - 1);
    if (color) buf_add(out, S("\x1b[0m"));
    buf_addc(out, '\n');
}

void diag_print(buf *out, const diag *d, bool color) {
    static const char *const sgr[] = {"\x1b[1;31m", "\x1b[1;35m", "\x1b[1;36m"};
    if (d->file.n) {
        term_add(out, d->file, false);
        if (d->line) buf_addf(out, ":%u", d->line);
        if (d->line && d->column) buf_addf(out, ":%u", d->column);
        buf_add(out, S(": "));
    }
    if (color) buf_add(out, str_z(sgr[d->severity]));
    buf_add(out, str_z(diag_severity_name(d->severity)));
    if (color) buf_add(out, S("\x1b[0m"));
    buf_add(out, S(": "));
    term_add(out, d->msg, false);
    buf_addf(out, " [%s]\n", d->code ? d->code : "");
    if (d->source.n && d->column) print_caret(out, d, color);
    if (!d->hint.n) return;
    str rest = d->hint, line;
    const char *lead = "  hint: ";
    while (rest.n) {
        str_cut(rest, '\n', &line, &rest);
        buf_add(out, str_z(lead));
        term_add(out, line, false);
        buf_addc(out, '\n');
        lead = "        ";
    }
}

void diags_print(buf *out, const diags *d, bool color) {
    for (vec_each(const diag, it, &d->items)) diag_print(out, it, color);
    if (d->dropped) buf_addf(out, "… and %zu more\n", d->dropped);
}

void diags_json(buf *out, const diags *d) {
    jw w = jw_new(out);
    jw_arr(&w);
    for (vec_each(const diag, it, &d->items)) {
        jw_obj(&w);
        jw_kstr(&w, S("severity"), str_z(diag_severity_name(it->severity)));
        jw_kstr(&w, S("code"), str_z(it->code));
        jw_kstr(&w, S("file"), it->file);
        jw_kint(&w, S("line"), it->line);
        jw_kint(&w, S("column"), it->column);
        jw_kint(&w, S("end"), it->end);
        jw_kstr(&w, S("path"), it->path);
        jw_kstr(&w, S("message"), it->msg);
        jw_kstr(&w, S("hint"), it->hint);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
}

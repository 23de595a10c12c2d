// tools: read. Lines with their numbers, as kb_search and grep count them (one decoder). The text is exact;
// what cannot be seen in it is named before it (rule B24), where no cut can take the warning away.
#include "tools/tools_int.h"
#include <deputy/utf8.h>
#include <unistd.h>

// text begins with line `first` of the file.
static void warn_invisible(tool_ctx *c, str text, int64_t first) {
    invisible_finds finds = {0};
    invisible_scan(c->turn, text, &finds);
    for (vec_each(const invisible_find, f, &finds)) {
        buf_addf(c->out, "[warning: invisible character U+%04X, %zu time%s, first in line %lld", f->cp,
                 f->count, f->count == 1 ? "" : "s", (long long)(first + f->line - 1));
        if (f->decoded.n) {
            buf_add(c->out, S(": it spells \""));
            foreign_add(c->out, f->decoded, FOREIGN_LINE, 200);
            buf_addc(c->out, '"');
        }
        buf_add(c->out, S("]\n"));
    }
}

// The lines offset … offset + limit - 1, as one piece of the text; *n: how many lines there are, *shown: how
// many of them these are.
static str take_lines(str text, int64_t offset, int64_t limit, int64_t *n, int64_t *shown) {
    str line, taken = {0};
    *n = *shown = 0;
    while (text.n) {
        const char *at = text.p;
        str_cut(text, '\n', &line, &text);
        if (++*n < offset || *shown >= limit) continue;
        if (!taken.p) taken.p = at;
        taken.n = (size_t)(line.p + line.n - taken.p);
        ++*shown;
    }
    return taken;
}

static void add_lines(tool_ctx *c, str text, int64_t offset, int64_t limit) {
    int64_t n, shown;
    str taken = take_lines(text, offset, limit, &n, &shown), line;
    warn_invisible(c, taken, offset);
    for (int64_t i = 0; i < shown; i++) {
        str_cut(taken, '\n', &line, &taken);
        buf_addf(c->out, "%6lld\t", (long long)(offset + i));
        buf_add(c->out, line);
        buf_addc(c->out, '\n');
    }
    if (!n) buf_add(c->out, S("[the file is empty]\n"));
    if (n && !shown)
        buf_addf(c->out, "[the file has %lld lines; offset %lld is after its end]\n", (long long)n,
                 (long long)offset);
    if (shown && (offset > 1 || offset + shown - 1 < n))
        buf_addf(c->out, "[lines %lld-%lld of %lld%s]\n", (long long)offset, (long long)(offset + shown - 1),
                 (long long)n, offset + shown - 1 < n ? "; read on with offset" : "");
}

dep_status tool_read(tool_ctx *c, dep_err *err) {
    str rel, bytes;
    TRY(access_path(c->t, c->turn, json_str(c->args, S("path"), (str){0}), &rel, err));
    opened_file f;
    TRY(access_open(c->t, c->turn, rel, &f, err));
    dep_status st = file_read_fd(c->turn, f.fd, TOOL_READ_MAX, false, &bytes, err);
    close(f.fd);
    if (st != DEP_OK) return st;
    decoded d;
    TRY(decode_text(c->turn, bytes, (str){0}, &d, err));
    if (d.binary)
        return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" is a binary file of %zu bytes", STR_ARG(rel),
                       bytes.n);
    if (d.assumed)
        buf_addf(c->out, "[read as %s, which is assumed%s]\n", d.encoding,
                 d.lossy ? "; some bytes could not be decoded" : "");
    add_lines(c, d.text, (int64_t)json_num(c->args, S("offset"), 1),
              (int64_t)json_num(c->args, S("limit"), TOOL_READ_LINES));
    return DEP_OK;
}

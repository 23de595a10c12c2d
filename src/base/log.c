// log: one escaped line per event for the person who runs the program. The library itself never logs: it
// returns.
#include <deputy/sys.h>
#include <deputy/utf8.h>
#include <stdarg.h>

enum { LOG_LINE_MAX = 4096 };

static const char *const level_names[] = {"error", "info", "debug"};

bool log_level_parse(str name, log_level *ret) {
    for (size_t i = 0; i < sizeof level_names / sizeof *level_names; i++) {
        if (!str_eq(name, str_z(level_names[i]))) continue;
        *ret = (log_level)i;
        return true;
    }
    return false;
}

void log_line(const log_sink *l, log_level level, const char *fmt, ...) {
    if (!l->out || level > l->level) return;
    arena *a = arena_new();
    va_list ap;
    va_start(ap, fmt);
    str text = str_vfmt(a, fmt, ap);
    va_end(ap);
    buf line = buf_new(a, LOG_LINE_MAX);
    buf_addf(&line, "deputy: %s: ", level_names[level]);
    term_add(&line, text, false);
    str s = buf_str(&line);
    // One call, one lock of the stream: lines of several threads do not mix.
    fprintf(l->out, STR_FMT "%s\n", STR_ARG(s), line.over ? "…" : "");
    fflush(l->out);
    arena_free(a);
}

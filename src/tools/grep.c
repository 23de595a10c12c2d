// tools: grep. A pattern and the text it meets are both hostile, so the matcher calls us back at every item
// it tries: the steps of a line are counted, the clock and the person are asked. A catastrophic pattern costs
// a line, not the delegation; every line that was given up is counted in the answer.
#include "tools/tools_int.h"
#include <deputy/utf8.h>
#include <unistd.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

enum { CONTEXT_MAX = 16 }; // lines kept before a match; more than the schema allows

typedef struct {
    tool_ctx *c;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    const glob_pat *include;
    size_t limit, context, shown, matched, files, given_up, binary, large, unread;
    bool late, cancelled;
    int steps; // of the present line
} grep_state;

static void free_code(void *p) {
    pcre2_code_free(p);
}
static void free_data(void *p) {
    pcre2_match_data_free(p);
}
static void free_limits(void *p) {
    pcre2_match_context_free(p);
}

static bool out_of_time(grep_state *s) {
    s->late = s->late || ctx_cancelled(s->c) || ctx_late(s->c);
    return s->late;
}

// The matcher is about to try one item of the pattern. Non-zero ends the match.
static int on_step(pcre2_callout_block *block, void *p) {
    enum { STEPS_A_LOOK = 64 }; // each may pass over the whole line
    grep_state *s = p;
    (void)block;
    s->steps++;
    bool look = s->steps % STEPS_A_LOOK == 0;
    return s->steps >= TOOL_GREP_STEPS_MAX || (look && out_of_time(s)) ? PCRE2_ERROR_CALLOUT : 0;
}

static dep_status compile(grep_state *s, str pattern, bool ignore_case, dep_err *err) {
    int code;
    PCRE2_SIZE at;
    uint32_t flags =
        PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT | (ignore_case ? PCRE2_CASELESS : 0);
    s->code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, flags, &code, &at, NULL);
    if (!s->code) {
        unsigned char why[256];
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(err, DEP_ERR_INVALID, "the pattern is not a regular expression: %s (at character %zu)",
                       (char *)why, utf8_count(str_sub(pattern, 0, (size_t)at)));
    }
    arena_defer(s->c->turn, free_code, s->code);
    pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE);
    s->data = pcre2_match_data_create_from_pattern(s->code, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->data || !s->limits) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    arena_defer(s->c->turn, free_data, s->data);
    arena_defer(s->c->turn, free_limits, s->limits);
    pcre2_set_callout(s->limits, on_step, s);
    pcre2_set_match_limit(s->limits, TOOL_GREP_STEPS_MAX);
    pcre2_set_depth_limit(s->limits, 10000);
    pcre2_set_heap_limit(s->limits, 20000);
    return DEP_OK;
}

static bool line_matches(grep_state *s, str line, size_t *from) {
    s->steps = 0;
    int n = pcre2_match(s->code, (PCRE2_SPTR)(line.p ? line.p : ""), line.n, 0, PCRE2_NO_UTF_CHECK, s->data,
                        s->limits);
    if (n < 0) {
        if (n != PCRE2_ERROR_NOMATCH && !s->late) s->given_up++;
        return false;
    }
    *from = pcre2_get_ovector_pointer(s->data)[0];
    return true;
}

static void add_line(grep_state *s, str rel, size_t n, char mark, str line, size_t from) {
    buf *out = s->c->out;
    foreign_add(out, rel, FOREIGN_LINE, 0);
    buf_addf(out, "%c%zu%c ", mark, n, mark);
    // A long line is shown around its match.
    if (utf8_count(line) > TOOL_GREP_LINE_CHARS && from > TOOL_GREP_LINE_CHARS / 2) {
        line = str_sub(line, utf8_floor(line, from - TOOL_GREP_LINE_CHARS / 4), line.n);
        buf_add(out, S("…"));
    }
    foreign_add(out, line, FOREIGN_LINE, TOOL_GREP_LINE_CHARS);
    buf_addc(out, '\n');
}

// Where the lines of one file stand against the answer.
typedef struct {
    str recent[CONTEXT_MAX]; // the newest lines, by number
    size_t n, printed;       // number of the present line; of the newest one in the answer
    size_t after;            // lines still to be printed behind a match
    bool any;
} grep_lines;

static void add_match(grep_state *s, grep_lines *l, str rel, str line, size_t from) {
    s->matched++;
    if (!l->any) s->files++;
    l->any = true;
    l->after = 0;
    if (s->shown >= s->limit) return;
    s->shown++;
    size_t first = l->n > s->context ? l->n - s->context : 1;
    if (first <= l->printed) first = l->printed + 1;
    if (l->printed && s->context && first > l->printed + 1) buf_add(s->c->out, S("--\n"));
    for (size_t n = first; n < l->n; n++) add_line(s, rel, n, '-', l->recent[n % CONTEXT_MAX], 0);
    add_line(s, rel, l->n, ':', line, from);
    l->printed = l->n;
    l->after = s->context;
}

static void grep_text(grep_state *s, str rel, str text) {
    enum { LINES_A_LOOK = 256 };
    grep_lines l = {0};
    str line;
    while (text.n && !s->late) {
        str_cut(text, '\n', &line, &text);
        if (str_ends(line, S("\r"))) line.n--;
        size_t from;
        if (++l.n % LINES_A_LOOK == 0 && out_of_time(s)) return;
        if (line_matches(s, line, &from)) {
            add_match(s, &l, rel, line, from);
        } else if (l.after) {
            add_line(s, rel, l.n, '-', line, 0);
            l.printed = l.n;
            l.after--;
        }
        l.recent[l.n % CONTEXT_MAX] = line;
    }
}

static bool grep_file(void *p, str rel, const struct stat *st) {
    (void)st;
    grep_state *s = p;
    if (s->include && !glob_match(s->include, rel)) return true;
    arena *a = arena_new(); // one file's bytes at a time
    opened_file f;
    dep_err err;
    str bytes;
    if (access_open(s->c->t, a, rel, &f, &err) != DEP_OK) {
        s->unread++;
        arena_free(a);
        return true;
    }
    dep_status st_read = file_read_fd(a, f.fd, TOOL_GREP_FILE_MAX, true, &bytes, &err);
    close(f.fd);
    if (st_read == DEP_OK && f.st.st_size > (off_t)TOOL_GREP_FILE_MAX) s->large++;
    decoded d = {0};
    if (st_read != DEP_OK || decode_text(a, bytes, (str){0}, &d, &err) != DEP_OK) {
        s->unread++;
    } else if (d.binary) {
        s->binary++;
    } else {
        tool_ctx inner = *s->c;
        inner.turn = a;
        tool_ctx *outer = s->c;
        s->c = &inner;
        grep_text(s, rel, d.text);
        s->c = outer;
    }
    arena_free(a);
    s->cancelled = ctx_cancelled(s->c);
    return !s->late && !s->cancelled;
}

static void summary(const grep_state *s, const tool_walk *w) {
    buf *out = s->c->out;
    if (!s->matched) buf_add(out, S("No line matches.\n"));
    if (s->matched > s->shown)
        buf_addf(out, "[%zu of %zu matching lines shown, in %zu files]\n", s->shown, s->matched, s->files);
    if (s->given_up)
        buf_addf(out, "[%zu line%s given up: the pattern needs too many steps there; make it simpler]\n",
                 s->given_up, s->given_up == 1 ? "" : "s");
    if (s->binary) buf_addf(out, "[%zu binary file%s not searched]\n", s->binary, s->binary == 1 ? "" : "s");
    if (s->large)
        buf_addf(out, "[of %zu large file%s only the first 16 MiB were searched]\n", s->large,
                 s->large == 1 ? "" : "s");
    if (s->unread) buf_addf(out, "[%zu file%s could not be read]\n", s->unread, s->unread == 1 ? "" : "s");
    walk_summary(w, out);
}

dep_status tool_grep(tool_ctx *c, dep_err *err) {
    grep_state s = {.c = c,
                    .limit = (size_t)json_num(c->args, S("limit"), TOOL_GREP_LIMIT),
                    .context = (size_t)json_num(c->args, S("context"), 0)};
    if (s.context >= CONTEXT_MAX) s.context = CONTEXT_MAX - 1;
    str start, include = json_str(c->args, S("include"), (str){0});
    TRY(access_path(c->t, c->turn, json_str(c->args, S("path"), (str){0}), &start, err));
    TRY(compile(&s, json_str(c->args, S("pattern"), (str){0}), json_bool(c->args, S("ignoreCase"), false),
                err));
    if (include.n) {
        // "*.md" means any depth, as people write it.
        if (str_chr(include, '/') == SIZE_MAX) include = str_fmt(c->turn, "**/" STR_FMT, STR_ARG(include));
        glob_pat *g;
        TRY(glob_compile(c->turn, include, &g, err));
        s.include = g;
    }
    tool_walk w = {.start = start, .file = grep_file, .ctx = &s};
    TRY(walk_files(c, &w, err));
    if (w.cancelled || s.cancelled) return err_set(err, DEP_ERR_CANCELLED, "stopped");
    w.late = w.late || s.late;
    summary(&s, &w);
    return DEP_OK;
}

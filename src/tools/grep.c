// tools: grep. PCRE2 with match limits, so that a catastrophic pattern costs a line, not the delegation;
// every line that was given up is counted in the answer.
#include "tools/tools_int.h"
#include <deputy/utf8.h>
#include <time.h>
#include <unistd.h>
#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

typedef struct {
    tool_ctx *c;
    pcre2_code *code;
    pcre2_match_data *data;
    pcre2_match_context *limits;
    const glob_pat *include;
    size_t limit, context, shown, matched, files, given_up, binary, large, unread;
    time_t deadline;
    bool late, cancelled;
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

static dep_status compile(grep_state *s, str pattern, bool ignore_case, dep_err *err) {
    int code;
    PCRE2_SIZE at;
    uint32_t flags = PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | (ignore_case ? PCRE2_CASELESS : 0);
    s->code = pcre2_compile((PCRE2_SPTR)pattern.p, pattern.n, flags, &code, &at, NULL);
    if (!s->code) {
        unsigned char why[256];
        pcre2_get_error_message(code, why, sizeof why);
        return err_set(err, DEP_ERR_INVALID, "the pattern is not a regular expression: %s (at character %zu)",
                       (char *)why, (size_t)at);
    }
    arena_defer(s->c->turn, free_code, s->code);
    pcre2_jit_compile(s->code, PCRE2_JIT_COMPLETE);
    s->data = pcre2_match_data_create_from_pattern(s->code, NULL);
    s->limits = pcre2_match_context_create(NULL);
    if (!s->data || !s->limits) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    arena_defer(s->c->turn, free_data, s->data);
    arena_defer(s->c->turn, free_limits, s->limits);
    pcre2_set_match_limit(s->limits, TOOL_GREP_MATCH_LIMIT);
    pcre2_set_depth_limit(s->limits, 10000);
    pcre2_set_heap_limit(s->limits, 20000);
    return DEP_OK;
}

static bool line_matches(grep_state *s, str line, size_t *from) {
    int n = pcre2_match(s->code, (PCRE2_SPTR)(line.p ? line.p : ""), line.n, 0, PCRE2_NO_UTF_CHECK, s->data,
                        s->limits);
    if (n == PCRE2_ERROR_NOMATCH) return false;
    if (n < 0) {
        s->given_up++;
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

typedef VEC(str) line_list;

static void grep_text(grep_state *s, str rel, str text) {
    line_list lines = {0};
    str line;
    while (text.n) {
        str_cut(text, '\n', &line, &text);
        if (str_ends(line, S("\r"))) line.n--;
        vec_push(s->c->turn, &lines, line);
    }
    size_t printed = 0; // lines up to this index are in the answer
    bool any = false;
    for (size_t i = 0; i < lines.n; i++) {
        if (i % 256 == 0 && (ctx_cancelled(s->c) || time(NULL) > s->deadline)) {
            s->late = true;
            break;
        }
        size_t from;
        if (!line_matches(s, lines.p[i], &from)) {
            if (s->given_up % 16 == 15 && (ctx_cancelled(s->c) || time(NULL) > s->deadline)) {
                s->late = true;
                break;
            }
            continue;
        }
        s->matched++;
        if (!any) s->files++;
        if (s->shown >= s->limit) continue;
        s->shown++;
        size_t first = i > s->context ? i - s->context : 0;
        if (first < printed) first = printed;
        if (any && s->context && first > printed) buf_add(s->c->out, S("--\n"));
        for (size_t j = first; j < i; j++) add_line(s, rel, j + 1, '-', lines.p[j], 0);
        add_line(s, rel, i + 1, ':', lines.p[i], from);
        printed = i + 1;
        for (size_t j = i + 1; j < lines.n && j <= i + s->context; j++) {
            size_t next_from;
            if (line_matches(s, lines.p[j], &next_from)) break;
            add_line(s, rel, j + 1, '-', lines.p[j], 0);
            printed = j + 1;
        }
        any = true;
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
    if (s->late) buf_addf(out, "[stopped after %d s: not every file was searched]\n", TOOL_GREP_SECONDS_MAX);
    if (s->binary) buf_addf(out, "[%zu binary file%s not searched]\n", s->binary, s->binary == 1 ? "" : "s");
    if (s->large)
        buf_addf(out, "[of %zu large file%s only the first 16 MiB were searched]\n", s->large,
                 s->large == 1 ? "" : "s");
    if (s->unread) buf_addf(out, "[%zu file%s could not be read]\n", s->unread, s->unread == 1 ? "" : "s");
    if (w->ignored) buf_addf(out, "[%zu entries left out by .gitignore]\n", w->ignored);
    if (w->over) buf_addf(out, "[stopped after %d files: narrow the path]\n", TOOL_WALK_FILES_MAX);
}

dep_status tool_grep(tool_ctx *c, dep_err *err) {
    grep_state s = {.c = c,
                    .limit = (size_t)json_num(c->args, S("limit"), TOOL_GREP_LIMIT),
                    .context = (size_t)json_num(c->args, S("context"), 0)};
    s.deadline = time(NULL) + TOOL_GREP_SECONDS_MAX;
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
    summary(&s, &w);
    return DEP_OK;
}

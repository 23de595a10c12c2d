// cli: search. The same engine and sources as kb_search, for people and for programs; `--queries` answers
// many, and keeps what it has read between them.
#include "cli/cli_int.h"
#include <deputy/file.h>
#include <deputy/knowledge.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// NOLINTBEGIN(cppcoreguidelines-avoid-non-const-global-variables): a signal handler has no context
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t waiting; // for the next query, with every answer given
// NOLINTEND(cppcoreguidelines-avoid-non-const-global-variables)
static void on_interrupt(int sig) {
    // Between the last look at the flag and the read that waits, nobody would look again.
    if (waiting) _exit(EXIT_INTERRUPTED);
    interrupted = sig;
}
static bool cancelled(void *ctx) {
    (void)ctx;
    return interrupted != 0;
}

typedef struct {
    cli *c;
    const search_space *space;
    search_query q;
    bool count;
} searching;

// --- Sources -------------------------------------------------------------------------------------

enum { SOURCES_MAX = 1000 };

static void add_source(cli *c, knowledge_opts *k, def_source s) {
    for (size_t i = 0; i < k->n_sources; i++)
        if (str_eq(k->sources[i].name, s.name))
            s.name = str_fmt(c->a, STR_FMT " (%zu)", STR_ARG(s.name), k->n_sources + 1);
    ((def_source *)k->sources)[k->n_sources++] = s;
}

static int take_sources(cli *c, knowledge_opts *k) {
    def_source *all = NEW_N(c->a, def_source, SOURCES_MAX);
    k->sources = all;
    str agent = opt_get(c, "agent", (str){0});
    strs paths = opt_all(c, "path");
    if (agent.n) {
        agent_entry *e;
        int code = need_agent(c, agent, &e);
        if (code) return code;
        for (vec_each(const def_source, s, &e->def.sources)) add_source(c, k, *s);
        if (!k->n_sources) return usage_error(c, "\"" STR_FMT "\" declares no knowledge", STR_ARG(agent));
        return EXIT_FINE;
    }
    if (paths.n) {
        add_source(c, k, (def_source){.name = S("files"), .path = paths});
        return EXIT_FINE;
    }
    int code = need_agents(c);
    if (code) return code;
    size_t over = 0;
    for (vec_each(const agent_entry, e, &c->w->agents)) {
        if (e->state != AGENT_EFFECTIVE || (e->def.layer != LAYER_WORKSPACE && e->def.layer != LAYER_SYSTEM))
            continue;
        for (vec_each(const def_source, s, &e->def.sources)) {
            if (k->n_sources < SOURCES_MAX) {
                add_source(c, k, *s);
            } else {
                over++;
            }
        }
    }
    if (over)
        say(c, "%zu source%s beyond the first %d not searched; name an agent with --agent", over,
            over == 1 ? "" : "s", SOURCES_MAX);
    if (k->n_sources) return EXIT_FINE;
    strs everything = {0};
    vec_push(c->a, &everything, S("**/*"));
    add_source(c, k, (def_source){.name = S("files"), .path = everything});
    return EXIT_FINE;
}

// --- Printing ------------------------------------------------------------------------------------

static void context_lines(cli *c, buf *b, const search_hit *h, const str *lines, size_t n, bool before) {
    for (size_t i = 0; i < n; i++) {
        uint32_t line = before ? h->line - (uint32_t)(n - i) : h->line + 1 + (uint32_t)i;
        buf at = buf_new(c->a, 0);
        safe(&at, h->path);
        buf_addf(&at, "-%u-", line);
        paint(b, c->color_out, "2", buf_str(&at));
        safe(b, lines[i]);
        text(b, "\n");
    }
}

static void print_hit(cli *c, buf *b, const search_hit *h) {
    context_lines(c, b, h, h->before, h->n_before, true);
    paint(b, c->color_out, "35", h->path);
    text(b, ":");
    paint(b, c->color_out, "32", str_fmt(c->a, "%u", h->line));
    text(b, ": ");
    safe(b, str_trim(h->text));
    text(b, "\n");
    if (h->heading.n) {
        text(b, "    ");
        paint(b, c->color_out, "2", h->heading);
        text(b, "\n");
    }
    context_lines(c, b, h, h->after, h->n_after, false);
    if (h->n_before || h->n_after) text(b, "--\n");
}

static void print_totals(cli *c, const search_result *r) {
    buf b = buf_new(c->a, 0);
    buf_addf(&b, "%zu of %s%zu matching lines, %zu files, %zu bytes searched\n", r->hits.n,
             r->totals.at_least ? "at least " : "", r->totals.matched_lines, r->totals.files,
             r->totals.bytes);
    for (vec_each(const search_cut, cut, &r->cuts)) {
        text(&b, "not seen: ");
        safe(&b, cut->reason);
        buf_addf(&b, ": %zu", cut->count);
        for (size_t i = 0; i < cut->paths.n && i < SEARCH_CUT_PATHS; i++)
            text(&b, i ? ", " : " ("), safe(&b, cut->paths.p[i]);
        if (cut->paths.n) text(&b, cut->paths.n > SEARCH_CUT_PATHS ? ", …)" : ")");
        text(&b, "\n");
    }
    if (r->ignored_terms) buf_addf(&b, "%zu words of the query were not used\n", r->ignored_terms);
    if (r->cancelled) text(&b, "stopped: the rest was not searched\n");
    if (r->notice.n) buf_addf(&b, STR_FMT "\n", STR_ARG(r->notice));
    str s = buf_str(&b);
    fflush(stdout);
    fwrite(s.p, 1, s.n, stderr);
}

// No file was searched at all: which globs found none.
static int nothing_read(cli *c) {
    strs paths = opt_all(c, "path");
    if (paths.n) {
        say(c, "no file could be searched below " STR_FMT " with --path " STR_FMT, STR_ARG(c->w->root),
            STR_ARG(str_join(c->a, paths.p, paths.n, S(", "))));
    } else {
        say(c, "no file could be searched below " STR_FMT, STR_ARG(c->w->root));
    }
    return EXIT_UNREADABLE;
}

static int answer(searching *s, str query) {
    cli *c = s->c;
    search_result r = {0};
    dep_err err;
    s->q.query = query;
    if (search_directly(c->a, s->space, &s->q, &r, &err) != DEP_OK) {
        say(c, "%s", err.msg);
        return err.status == DEP_ERR_INVALID ? EXIT_USAGE : EXIT_UNREADABLE;
    }
    buf b = buf_new(c->a, 0);
    if (c->json) {
        search_json(&b, &r);
        buf_addc(&b, '\n');
    } else if (s->count) {
        buf_addf(&b, "%s%zu\n", r.totals.at_least ? "at least " : "", r.totals.matched_lines);
    } else {
        for (vec_each(const search_hit, h, &r.hits)) print_hit(c, &b, h);
    }
    out_buf(&b);
    if (!c->json) print_totals(c, &r);
    if (interrupted) return EXIT_INTERRUPTED;
    if (!r.totals.files && !r.hits.n) return nothing_read(c);
    return r.totals.matched_lines || r.totals.expanded_lines ? EXIT_FINE : EXIT_ERRORS;
}

// --- Many queries --------------------------------------------------------------------------------

// A line is a query, or a JSON object of which only "query" is read.
static str query_of(arena *a, str line) {
    json *j;
    dep_err err;
    if (!str_starts(str_trim(line), S("{")) || json_parse(a, line, 0, &j, &err) != DEP_OK) return line;
    return json_str(j, S("query"), (str){0});
}

// EXIT_FINE with hits, EXIT_ERRORS without, EXIT_UNREADABLE when nothing was searched; -1: it could not be
// written.
static int answer_line(searching *s, str line) {
    arena *a = arena_new();
    search_result r = {0};
    dep_err err;
    buf b = buf_new(a, 0);
    s->q.query = query_of(a, line);
    // The files as they are at this question: the cache reads anew what has changed since the last one.
    if (search_directly(a, s->space, &s->q, &r, &err) == DEP_OK) {
        search_json(&b, &r);
    } else {
        jw w = jw_new(&b);
        jw_obj(&w);
        jw_kstr(&w, S("error"), str_z(err.msg));
        jw_key(&w, S("hits"));
        jw_arr(&w), jw_end_arr(&w), jw_end_obj(&w);
    }
    buf_addc(&b, '\n');
    out_buf(&b);
    int code = r.hits.n ? EXIT_FINE : r.totals.files ? EXIT_ERRORS : EXIT_UNREADABLE;
    arena_free(a);
    // Each answer is there before the next question: programs talk to this line by line.
    return fflush(stdout) != 0 ? -1 : code;
}

static int answer_all(searching *s, str file, FILE *in) {
    char *line = NULL;
    size_t cap = 0;
    size_t answers[EXIT_UNREADABLE + 1] = {0};
    int code = EXIT_FINE;
    errno = 0;
    while (code >= 0 && !interrupted) {
        waiting = 1;
        ssize_t n = interrupted ? -1 : getline(&line, &cap, in);
        waiting = 0;
        if (n < 0) break;
        str one_line = str_trim(str_n(line, (size_t)n));
        if (!one_line.n) continue;
        code = answer_line(s, one_line);
        if (code >= 0) answers[code]++;
    }
    bool unread = ferror(in) && !interrupted;
    if (unread) say(s->c, "cannot read " STR_FMT ": %s", STR_ARG(file), strerror(errno));
    free(line);
    if (interrupted) return EXIT_INTERRUPTED;
    if (unread) return EXIT_UNREADABLE;
    if (code < 0) return EXIT_ERRORS;
    // The best of the answers: programs look at each line for its own.
    if (answers[EXIT_FINE]) return EXIT_FINE;
    return answers[EXIT_ERRORS] || !answers[EXIT_UNREADABLE] ? EXIT_ERRORS : EXIT_UNREADABLE;
}

static int many(searching *s, str file) {
    if (str_eq(file, S("-"))) return answer_all(s, file, stdin);
    FILE *in = fopen(str_cz(s->c->a, file), "re");
    if (!in) {
        say(s->c, "cannot read " STR_FMT ": %s", STR_ARG(file), strerror(errno));
        return EXIT_UNREADABLE;
    }
    int code = answer_all(s, file, in);
    fclose(in);
    return code;
}

// Several paths as the one pattern that narrows an agent's sources. Each is a glob, or a directory with all
// below it.
static str filter_of(cli *c, const strs *paths) {
    if (paths->n == 1) return paths->p[0];
    buf b = buf_new(c->a, 0);
    for (vec_each(const str, p, paths))
        buf_addf(&b, "%s" STR_FMT "," STR_FMT "/**", b.n ? "," : "{", STR_ARG(*p), STR_ARG(*p));
    buf_addc(&b, '}');
    return buf_str(&b);
}

int verb_search(cli *c) {
    int64_t limit, context;
    dep_err err;
    str queries = opt_get(c, "queries", (str){0});
    if (!opt_int(c, "limit", SEARCH_LIMIT_DEFAULT, 1, 10000, &limit) ||
        !opt_int(c, "context", 0, 0, 100, &context))
        return EXIT_USAGE;
    if (queries.n ? c->args.n > 0 : c->args.n == 0)
        return usage_error(c,
                           queries.n ? "--queries stands instead of a query" : "usage: deputy search QUERY");
    int code = need_workspace(c, false);
    if (code) return code;
    // Without SA_RESTART: waiting for the next query ends too.
    sigaction(SIGINT, &(struct sigaction){.sa_handler = on_interrupt}, NULL);
    knowledge_opts k = {.root = c->w->fd,
                        .max_bytes = (size_t)c->w->config.limits.search_total_mib << 20,
                        .max_file = (size_t)c->w->config.limits.search_file_mib << 20,
                        .memory_epoch = workspace_memory_epoch,
                        .was_memory = workspace_was_memory,
                        .ctx = c->w};
    if ((code = take_sources(c, &k))) return code;
    search_space space = knowledge_space(c->a, &k);
    space.cancelled = cancelled;
    if (queries.n) space.cache = search_cache_new(c->a);
    searching s = {.c = c, .space = &space, .count = opt_has(c, "count")};
    strs paths = opt_all(c, "path");
    s.q = (search_query){
        .limit = (size_t)limit, .context = (size_t)context, .source = opt_get(c, "source", (str){0})};
    if (opt_has(c, "agent") && paths.n) s.q.path = filter_of(c, &paths);
    if (!queries.n) return answer(&s, str_join(c->a, c->args.p, c->args.n, S(" ")));
    // Read now, so that the first question is answered as fast as the others; each looks for itself.
    search_corpus *corpus;
    if (search_open(&space, &corpus, &err) != DEP_OK) {
        say(c, "%s", err.msg);
        return err.status == DEP_ERR_INVALID ? EXIT_USAGE : EXIT_UNREADABLE;
    }
    search_close(corpus);
    return many(&s, queries);
}

// search_eval: answers a file of queries from one directory, for tests that measure ranking.
//   search_eval DIR QUERIES.jsonl [LIMIT] > HITS.jsonl
// Of a row only "query" is read. One answer a line: {"hits": [{"path": …, "line": …}, …]}. Times go to
// stderr.
#include <deputy/file.h>
#include <deputy/json.h>
#include <deputy/search.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int fail(const dep_err *err) {
    fprintf(stderr, "search_eval: %s\n", err->msg);
    return 1;
}

static void print_hits(arena *a, const search_result *r) {
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    jw_obj(&w);
    jw_key(&w, S("hits"));
    jw_arr(&w);
    for (vec_each(const search_hit, h, &r->hits)) {
        jw_obj(&w);
        jw_kstr(&w, S("path"), h->path);
        jw_kint(&w, S("line"), h->line);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    jw_end_obj(&w);
    str text = buf_str(&out);
    printf(STR_FMT "\n", STR_ARG(text));
}

int main(int argc, char **argv) {
    if (argc < 3) return fprintf(stderr, "usage: search_eval DIR QUERIES.jsonl [LIMIT]\n"), 2;
    arena *a = arena_new();
    dep_err err;
    search_space space = {.root = -1, .n_sources = 1};
    str rows, all = S("**/*");
    search_source source = {.name = S("corpus"), .include = &all, .n_include = 1};
    space.sources = &source;
    if (dir_open(str_z(argv[1]), &space.root, &err) != DEP_OK) return fail(&err);
    if (file_read(a, str_z(argv[2]), (size_t)64 << 20, &rows, &err) != DEP_OK) return fail(&err);
    size_t limit = argc > 3 ? strtoul(argv[3], NULL, 10) : 50;

    double start = now_ms();
    search_corpus *c;
    if (search_open(&space, &c, &err) != DEP_OK) return fail(&err);
    fprintf(stderr, "open: %.1f ms\n", now_ms() - start);

    size_t n = 0;
    double total = 0, worst = 0;
    str row;
    for (bool more = rows.n > 0; more;) {
        more = str_cut(rows, '\n', &row, &rows);
        if (str_trim(row).n == 0) continue;
        arena *turn = arena_new();
        json *v;
        if (json_parse(turn, row, 0, &v, &err) != DEP_OK) return fail(&err);
        search_query q = {.query = json_str(v, S("query"), (str){0}), .limit = limit};
        search_result r = {0};
        start = now_ms();
        if (search_run(turn, c, &q, &r, &err) != DEP_OK) return fail(&err);
        double ms = now_ms() - start;
        total += ms;
        worst = ms > worst ? ms : worst;
        n++;
        print_hits(turn, &r);
        arena_free(turn);
    }
    fprintf(stderr, "%zu queries: mean %.1f ms, worst %.1f ms\n", n, total / (double)(n ? n : 1), worst);
    search_close(c);
    close(space.root);
    arena_free(a);
    return 0;
}

// search_speed: times searches in one process. Reads orders from standard input, one a line, and answers each
// with one line of milliseconds, so that a script can interleave it with other programs:
//   search_speed DIR
//   Q QUERY      one search with what is kept: milliseconds, of the processor, until
//                opened; hits, matching lines, bytes searched
//   F QUERY      the same with nothing kept
//   R            the corpus' folded bytes, read once by one core: gigabytes a second
//   M            resident memory of the process and bytes of the corpus
#include <deputy/file.h>
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

// Of all threads: what a busy machine does not stretch.
static double cpu_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int fail(const dep_err *err) {
    fprintf(stderr, "search_speed: %s\n", err->msg);
    return 1;
}

static dep_status search(const search_space *space, str query) {
    arena *a = arena_new();
    search_corpus *c;
    search_result r = {0};
    dep_err err;
    double start = now_ms(), cpu = cpu_ms();
    dep_status status = search_open(space, &c, &err);
    double opened = now_ms();
    if (status == DEP_OK) {
        search_query q = {.query = query, .limit = 50};
        status = search_run(a, c, &q, &r, &err);
        double end = now_ms();
        // What a thread that still runs has used is not counted before it sleeps.
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        cpu = cpu_ms() - cpu;
        search_close(c);
        printf("%.4f %.4f %.4f %zu %zu %zu\n", end - start, cpu, opened - start, r.hits.n,
               r.totals.matched_lines, r.totals.bytes);
    }
    if (status != DEP_OK) fail(&err);
    arena_free(a);
    return status;
}

// What a core can read at most: the corpus' size, in memory that lies as the corpus does.
static void bandwidth(size_t n) {
    static uint64_t *p; // made once: page faults are no reading
    static size_t have;
    if (!p || have < n) {
        free(p);
        have = (n + ((size_t)2 << 20)) / ((size_t)2 << 20) * ((size_t)2 << 20);
        p = aligned_alloc((size_t)2 << 20, have);
        if (!p) exit(1);
        for (size_t i = 0; i < have / 8; i++) p[i] = i;
    }
    double best = 0;
    for (int round = 0; round < 5; round++) {
        double start = now_ms();
        uint64_t s[16] = {0};
        for (size_t i = 0; i + 16 <= n / 8; i += 16)
            for (size_t k = 0; k < 16; k++) s[k] += p[i + k];
        uint64_t sum = 0;
        for (size_t k = 0; k < 16; k++) sum += s[k];
        double ms = now_ms() - start;
        __asm__ volatile("" : : "r"(sum));
        double rate = (double)n / ms / 1e6;
        best = rate > best ? rate : best;
    }
    printf("%.3f\n", best);
}

static void memory(void) {
    size_t pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%zu %zu", &pages, &resident) != 2) resident = 0;
    if (f) fclose(f);
    printf("%zu\n", resident * (size_t)sysconf(_SC_PAGESIZE));
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: search_speed DIR < ORDERS\n"), 2;
    arena *a = arena_new();
    dep_err err;
    str all = S("**/*");
    search_source source = {.name = S("corpus"), .include = &all, .n_include = 1};
    search_space kept = {.root = -1, .sources = &source, .n_sources = 1, .cache = search_cache_new(a)}, alone;
    if (dir_open(str_z(argv[1]), &kept.root, &err) != DEP_OK) return fail(&err);
    alone = kept;
    alone.cache = NULL;
    char *line = NULL;
    size_t cap = 0;
    for (ssize_t n; (n = getline(&line, &cap, stdin)) > 0;) {
        str order = str_trim(str_n(line, (size_t)n));
        if (!order.n) continue;
        str query = order.n > 2 ? str_sub(order, 2, order.n) : (str){0};
        if (order.p[0] == 'Q' && search(&kept, query) != DEP_OK) return 1;
        if (order.p[0] == 'F' && search(&alone, query) != DEP_OK) return 1;
        if (order.p[0] == 'R') bandwidth(strtoul(query.p ? query.p : "0", NULL, 10));
        if (order.p[0] == 'M') memory();
        fflush(stdout);
    }
    free(line);
    close(kept.root);
    arena_free(a);
    return 0;
}

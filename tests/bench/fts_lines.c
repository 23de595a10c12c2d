// fts_lines: a peer of search: an SQLite FTS5 index over the lines of a directory's files.
//   fts_lines DIR    then one query a line on standard input
// First line of output: milliseconds to build the index, in memory. Then one line a query: milliseconds for
// its 50 best lines by bm25, and how many lines match.
#include <fcntl.h>
#include <fts.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(sqlite3 *db) {
    fprintf(stderr, "fts_lines: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static void add_file(sqlite3 *db, sqlite3_stmt *insert, const char *path) {
    char *line = NULL;
    size_t cap = 0;
    FILE *f = fopen(path, "re");
    if (!f) return;
    for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
        if (n < 2) continue;
        sqlite3_bind_text(insert, 1, line, (int)n, SQLITE_STATIC);
        if (sqlite3_step(insert) != SQLITE_DONE) die(db);
        sqlite3_reset(insert);
    }
    free(line);
    fclose(f);
}

static void add_all(sqlite3 *db, char *dir) {
    sqlite3_stmt *insert;
    char *roots[] = {dir, NULL};
    if (sqlite3_prepare_v2(db, "INSERT INTO lines(text) VALUES(?)", -1, &insert, NULL) != SQLITE_OK) die(db);
    FTS *walk = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    for (FTSENT *e; walk && (e = fts_read(walk));)
        if (e->fts_info == FTS_F) add_file(db, insert, e->fts_path);
    if (walk) fts_close(walk);
    sqlite3_finalize(insert);
}

// "a b" as "a" OR "b".
static void any_word(char *query, char *to, size_t n) {
    char *rest = query;
    size_t at = 0;
    for (char *word; (word = strsep(&rest, " \n"));)
        if (*word && at + strlen(word) + 8 < n)
            at += (size_t)snprintf(to + at, n - at, "%s\"%s\"", at ? " OR " : "", word);
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "usage: fts_lines DIR < QUERIES\n"), 2;
    sqlite3 *db;
    sqlite3_stmt *best, *count;
    if (sqlite3_open(":memory:", &db) != SQLITE_OK) return 1;
    double start = now_ms();
    if (sqlite3_exec(db, "CREATE VIRTUAL TABLE lines USING fts5(text); BEGIN", NULL, NULL, NULL) != SQLITE_OK)
        die(db);
    add_all(db, argv[1]);
    if (sqlite3_exec(db, "COMMIT; INSERT INTO lines(lines) VALUES('optimize')", NULL, NULL, NULL) !=
        SQLITE_OK)
        die(db);
    printf("%.1f\n", now_ms() - start);
    fflush(stdout);
    if (sqlite3_prepare_v2(db, "SELECT rowid FROM lines WHERE lines MATCH ? ORDER BY bm25(lines) LIMIT 50",
                           -1, &best, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, "SELECT count(*) FROM lines WHERE lines MATCH ?", -1, &count, NULL) !=
            SQLITE_OK)
        die(db);
    char *line = NULL, match[4096];
    size_t cap = 0;
    while (getline(&line, &cap, stdin) > 0) {
        match[0] = 0;
        any_word(line, match, sizeof match);
        start = now_ms();
        sqlite3_bind_text(best, 1, match, -1, SQLITE_STATIC);
        while (sqlite3_step(best) == SQLITE_ROW) continue;
        sqlite3_reset(best);
        double ms = now_ms() - start;
        sqlite3_bind_text(count, 1, match, -1, SQLITE_STATIC);
        long long n = sqlite3_step(count) == SQLITE_ROW ? sqlite3_column_int64(count, 0) : -1;
        sqlite3_reset(count);
        printf("%.4f %lld\n", ms, n);
        fflush(stdout);
    }
    free(line);
    sqlite3_finalize(best);
    sqlite3_finalize(count);
    sqlite3_close(db);
    return 0;
}

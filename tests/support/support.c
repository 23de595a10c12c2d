// support: temporary directories, files and scarce memory of unit suites.
#include "support/support.h"
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

char *temp_dir(void) {
    const char *base = getenv("TMPDIR");
    char *dir = NULL;
    assert_true(asprintf(&dir, "%s/deputy-test-XXXXXX", base && base[0] == '/' ? base : "/tmp") > 0);
    assert_non_null(mkdtemp(dir));
    return dir;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where) {
    (void)st;
    (void)type;
    (void)where;
    return remove(path);
}

void temp_remove(char *dir) {
    if (dir) nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(dir);
}

void temp_write(const char *dir, const char *name, str bytes) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    assert_true(n > 0 && (size_t)n < sizeof path);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *p = '/';
    }
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(bytes.n ? fwrite(bytes.p, 1, bytes.n, f) : 0, bytes.n);
    assert_int_equal(fclose(f), 0);
}

char *shared_path(const char *name) {
    const char *root = getenv("DEPUTY_SHARED");
    char *path = NULL;
    assert_true(asprintf(&path, "%s/%s", root && *root ? root : "../shared", name) > 0);
    if (access(path, R_OK) == 0) return path;
    printf("# not there, its test is skipped: %s\n", path);
    free(path);
    return NULL;
}

str read_all(const char *path) {
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    long n = ftell(f);
    assert_true(n >= 0);
    rewind(f);
    char *p = malloc((size_t)n + 1);
    assert_non_null(p);
    assert_int_equal(fread(p, 1, (size_t)n, f), n);
    p[n] = 0;
    fclose(f);
    return (str){p, (size_t)n};
}

bool under_valgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "vgpreload");
}

char *temp_dir_fast(bool *in_memory) {
    enum { TMPFS = 0x01021994 };
    struct statfs fs;
    char *dir = strdup("/dev/shm/deputy-test-XXXXXX");
    assert_non_null(dir);
    bool fast = statfs("/dev/shm", &fs) == 0 && fs.f_type == TMPFS && mkdtemp(dir);
    if (in_memory) *in_memory = fast;
    if (fast) return dir;
    free(dir);
    return temp_dir();
}

static void *alloc_some(void *ctx, size_t n) {
    int *left = ctx;
    return (*left)-- > 0 ? malloc(n) : NULL;
}

static void free_one(void *ctx, void *p) {
    (void)ctx;
    free(p);
}

arena_source scarce_source(int *left) {
    return (arena_source){.alloc = alloc_some, .free = free_one, .ctx = left};
}

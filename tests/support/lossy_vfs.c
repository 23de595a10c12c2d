// lossy_vfs: see the header. Each file is held whole in memory; the file below it has what was synced.
#include "support/lossy_vfs.h"
#include "support/support.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

enum { FILES = 8, CONNECTIONS = 8, SECTOR = 512 };

// A write, or with bytes NULL a cut, that no sync has followed yet.
typedef struct {
    int64_t at, n;
    uint8_t *bytes;
} change;

typedef struct {
    char name[512];
    uint8_t *p; // what readers see
    int64_t n, cap;
    change *changes;
    size_t n_changes, cap_changes;
    sqlite3_file *below[CONNECTIONS]; // that have it open
    size_t n_below;
} content;

typedef struct {
    sqlite3_file base;
    content *c;
    sqlite3_file *below; // in the same block, behind this
} lossy_file;

// Tests are single processes: one state is enough. The lock is held while a file's content is looked at.
static struct {
    sqlite3_vfs vfs, *real;
    content files[FILES];
    long countdown, syncs;
    bool failed, full;
    void (*at_loss)(void *ctx);
    void *at_loss_ctx;
} disk;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void with_lock(void) {
    pthread_mutex_lock(&lock);
}
static int without_lock(int code) {
    pthread_mutex_unlock(&lock);
    return code;
}

uint64_t lossy_random(uint64_t *seed) {
    uint64_t z = *seed += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static void lose(void) {
    disk.failed = true;
    if (disk.at_loss) disk.at_loss(disk.at_loss_ctx);
}

// True when power fails with this change, or has failed.
static bool fails_now(void) {
    if (!disk.failed && disk.countdown > 0 && --disk.countdown == 0) lose();
    return disk.failed;
}

// --- Content ---------------------------------------------------------------------------------------------

static void resize(content *c, int64_t n) {
    if (n > c->cap) {
        c->cap = n * 2;
        c->p = realloc(c->p, (size_t)c->cap);
        assert_non_null(c->p);
    }
    if (n > c->n) memset(c->p + c->n, 0, (size_t)(n - c->n));
    c->n = n;
}

static void apply(content *c, const change *ch) {
    if (!ch->bytes) {
        resize(c, ch->at);
        return;
    }
    if (ch->at + ch->n > c->n) resize(c, ch->at + ch->n);
    memcpy(c->p + ch->at, ch->bytes, (size_t)ch->n);
}

static void note(content *c, int64_t at, const void *bytes, int64_t n) {
    if (c->n_changes == c->cap_changes) {
        c->cap_changes = c->cap_changes ? c->cap_changes * 2 : 64;
        c->changes = realloc(c->changes, c->cap_changes * sizeof *c->changes);
        assert_non_null(c->changes);
    }
    change *ch = &c->changes[c->n_changes++];
    *ch = (change){.at = at, .n = n};
    if (bytes) {
        ch->bytes = malloc((size_t)n + 1);
        assert_non_null(ch->bytes);
        memcpy(ch->bytes, bytes, (size_t)n);
    }
    apply(c, ch);
}

static void forget_changes(content *c) {
    for (size_t i = 0; i < c->n_changes; i++) free(c->changes[i].bytes);
    c->n_changes = 0;
}

static void put_all_down(content *c) {
    sqlite3_file *below = c->below[0];
    const sqlite3_io_methods *m = below->pMethods;
    for (size_t i = 0; i < c->n_changes; i++) {
        const change *ch = &c->changes[i];
        int code = ch->bytes ? m->xWrite(below, ch->bytes, (int)ch->n, ch->at) : m->xTruncate(below, ch->at);
        assert_int_equal(code, SQLITE_OK);
    }
    forget_changes(c);
}

static void load(content *c, sqlite3_file *below) {
    sqlite3_int64 n = 0;
    assert_int_equal(below->pMethods->xFileSize(below, &n), SQLITE_OK);
    c->n = 0;
    resize(c, n);
    if (n) assert_int_equal(below->pMethods->xRead(below, c->p, (int)n, 0), SQLITE_OK);
}

// --- Methods of a file -----------------------------------------------------------------------------------

static int f_close(sqlite3_file *f) {
    lossy_file *lf = (lossy_file *)f;
    content *c = lf->c;
    with_lock();
    if (!disk.failed && c->n_below == 1) put_all_down(c);
    size_t i = 0;
    while (c->below[i] != lf->below) i++;
    c->below[i] = c->below[--c->n_below];
    without_lock(0);
    return lf->below->pMethods->xClose(lf->below);
}

static int f_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at) {
    const content *c = ((lossy_file *)f)->c;
    with_lock();
    if (disk.failed) return without_lock(SQLITE_IOERR_READ);
    int64_t have = at < c->n ? c->n - at : 0;
    if (have > n) have = n;
    memset(to, 0, (size_t)n);
    if (have) memcpy(to, c->p + at, (size_t)have);
    return without_lock(have < n ? SQLITE_IOERR_SHORT_READ : SQLITE_OK);
}

static int f_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at) {
    with_lock();
    if (fails_now()) return without_lock(SQLITE_IOERR_WRITE);
    if (disk.full) return without_lock(SQLITE_FULL);
    note(((lossy_file *)f)->c, at, from, n);
    return without_lock(SQLITE_OK);
}

static int f_truncate(sqlite3_file *f, sqlite3_int64 n) {
    with_lock();
    if (fails_now()) return without_lock(SQLITE_IOERR_TRUNCATE);
    note(((lossy_file *)f)->c, n, NULL, 0);
    return without_lock(SQLITE_OK);
}

static int f_sync(sqlite3_file *f, int flags) {
    (void)flags;
    with_lock();
    if (fails_now()) return without_lock(SQLITE_IOERR_FSYNC);
    disk.syncs++;
    put_all_down(((lossy_file *)f)->c);
    return without_lock(SQLITE_OK);
}

static int f_size(sqlite3_file *f, sqlite3_int64 *n) {
    with_lock();
    *n = ((lossy_file *)f)->c->n;
    return without_lock(disk.failed ? SQLITE_IOERR_FSTAT : SQLITE_OK);
}

#define BELOW(f) ((lossy_file *)(f))->below

static int f_lock(sqlite3_file *f, int kind) {
    return BELOW(f)->pMethods->xLock(BELOW(f), kind);
}
static int f_unlock(sqlite3_file *f, int kind) {
    return BELOW(f)->pMethods->xUnlock(BELOW(f), kind);
}
static int f_reserved(sqlite3_file *f, int *ret) {
    return BELOW(f)->pMethods->xCheckReservedLock(BELOW(f), ret);
}
static int f_control(sqlite3_file *f, int op, void *arg) {
    return BELOW(f)->pMethods->xFileControl(BELOW(f), op, arg);
}
static int f_sector(sqlite3_file *f) {
    return BELOW(f)->pMethods->xSectorSize(BELOW(f));
}
static int f_device(sqlite3_file *f) {
    return BELOW(f)->pMethods->xDeviceCharacteristics(BELOW(f));
}
static int f_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret) {
    return BELOW(f)->pMethods->xShmMap(BELOW(f), page, size, extend, ret);
}
static int f_shm_lock(sqlite3_file *f, int offset, int n, int flags) {
    return BELOW(f)->pMethods->xShmLock(BELOW(f), offset, n, flags);
}
static void f_shm_barrier(sqlite3_file *f) {
    BELOW(f)->pMethods->xShmBarrier(BELOW(f));
}
static int f_shm_unmap(sqlite3_file *f, int del) {
    return BELOW(f)->pMethods->xShmUnmap(BELOW(f), del);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, // no mapping
    .xClose = f_close,
    .xRead = f_read,
    .xWrite = f_write,
    .xTruncate = f_truncate,
    .xSync = f_sync,
    .xFileSize = f_size,
    .xLock = f_lock,
    .xUnlock = f_unlock,
    .xCheckReservedLock = f_reserved,
    .xFileControl = f_control,
    .xSectorSize = f_sector,
    .xDeviceCharacteristics = f_device,
    .xShmMap = f_shm_map,
    .xShmLock = f_shm_lock,
    .xShmBarrier = f_shm_barrier,
    .xShmUnmap = f_shm_unmap,
};

// --- Methods of the file system --------------------------------------------------------------------------

static content *content_of(const char *name) {
    content *free_one = NULL;
    for (size_t i = 0; i < FILES; i++) {
        if (strcmp(disk.files[i].name, name) == 0) return &disk.files[i];
        if (!free_one && !disk.files[i].name[0]) free_one = &disk.files[i];
    }
    assert_non_null(free_one);
    assert_true(strlen(name) < sizeof free_one->name);
    memcpy(free_one->name, name, strlen(name) + 1);
    return free_one;
}

static int v_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out) {
    (void)vfs;
    enum { KEPT = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL };
    f->pMethods = NULL;
    if (!(flags & KEPT)) return disk.real->xOpen(disk.real, name, f, flags, out);
    lossy_file *lf = (lossy_file *)f;
    lf->below = (sqlite3_file *)(lf + 1);
    with_lock();
    int code = disk.failed ? SQLITE_CANTOPEN : disk.real->xOpen(disk.real, name, lf->below, flags, out);
    if (code != SQLITE_OK) return without_lock(code);
    lf->c = content_of(name);
    assert_true(lf->c->n_below < CONNECTIONS);
    if (!lf->c->n_below) load(lf->c, lf->below);
    lf->c->below[lf->c->n_below++] = lf->below;
    f->pMethods = &methods;
    return without_lock(SQLITE_OK);
}

static int v_delete(sqlite3_vfs *vfs, const char *name, int sync_dir) {
    (void)vfs;
    (void)sync_dir;
    with_lock();
    return without_lock(disk.failed ? SQLITE_IOERR_DELETE : disk.real->xDelete(disk.real, name, 0));
}

static int v_last_error(sqlite3_vfs *vfs, int n, char *text) {
    (void)vfs;
    (void)n;
    (void)text;
    return EIO;
}

void lossy_begin(void) {
    memset(&disk, 0, sizeof disk);
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.zName = "lossy";
    disk.vfs.pNext = NULL;
    disk.vfs.szOsFile = (int)sizeof(lossy_file) + disk.real->szOsFile;
    disk.vfs.xOpen = v_open;
    disk.vfs.xDelete = v_delete;
    disk.vfs.xGetLastError = v_last_error;
    assert_int_equal(sqlite3_vfs_register(&disk.vfs, 1), SQLITE_OK);
}

void lossy_end(void) {
    if (!disk.real) return;
    sqlite3_vfs_unregister(&disk.vfs);
    sqlite3_vfs_register(disk.real, 1);
    for (size_t i = 0; i < FILES; i++) {
        forget_changes(&disk.files[i]);
        free(disk.files[i].changes);
        free(disk.files[i].p);
    }
    disk.real = NULL;
    memset(&disk.files, 0, sizeof disk.files);
}

void lossy_fail_at(long n) {
    with_lock();
    disk.countdown = n;
    without_lock(0);
}

bool lossy_failed(void) {
    with_lock();
    return without_lock(disk.failed);
}

void lossy_fail(void) {
    with_lock();
    lose();
    without_lock(0);
}

void lossy_at_loss(void (*fn)(void *ctx), void *ctx) {
    disk.at_loss = fn;
    disk.at_loss_ctx = ctx;
}

// A write reaches the disk not at all, whole, or up to a sector; a cut not at all or whole.
static void put_some_down(const content *c, uint64_t *seed, int fd) {
    for (size_t i = 0; i < c->n_changes; i++) {
        const change *ch = &c->changes[i];
        uint64_t fate = lossy_random(seed) % 4;
        if (fate < 2) continue;
        int64_t n = ch->n, sectors = n / SECTOR;
        if (fate == 3 && sectors > 1)
            n = SECTOR * (1 + (int64_t)(lossy_random(seed) % (uint64_t)(sectors - 1)));
        if (ch->bytes)
            assert_int_equal(pwrite(fd, ch->bytes, (size_t)n, ch->at), n);
        else
            assert_int_equal(ftruncate(fd, ch->at), 0);
    }
}

void lossy_leave(uint64_t seed) {
    for (size_t i = 0; i < FILES; i++) {
        content *c = &disk.files[i];
        int fd = seed && c->n_changes ? open(c->name, O_RDWR | O_CLOEXEC) : -1;
        if (fd < 0) continue;
        put_some_down(c, &seed, fd);
        close(fd);
    }
}

void lossy_revive(uint64_t seed) {
    lossy_leave(seed);
    for (size_t i = 0; i < FILES; i++) {
        assert_int_equal(disk.files[i].n_below, 0);
        forget_changes(&disk.files[i]);
    }
    disk.failed = disk.full = false;
    disk.countdown = 0;
}

void lossy_full(bool full) {
    disk.full = full;
}

long lossy_syncs(void) {
    return disk.syncs;
}

// resident: the snapshot of a scope that stands in the prompt, and the search over it. Both see trusted files
// only, as memory_scan judged them. The snapshot is deterministic in what the files hold and when they were
// written.
#include "memory/memory_int.h"
#include <deputy/file.h>
#include <fcntl.h>
#include <stdlib.h>

enum { SEARCH_ROUNDS = 4 };

static int newest_first(const void *x, const void *y) {
    const memory_item *a = *(const memory_item *const *)x, *b = *(const memory_item *const *)y;
    bool first = str_eq(a->f.name, MEMORY_DEFAULT), second = str_eq(b->f.name, MEMORY_DEFAULT);
    if (first != second) return first ? -1 : 1;
    if (a->f.mtime_ms != b->f.mtime_ms) return a->f.mtime_ms > b->f.mtime_ms ? -1 : 1;
    return str_cmp(a->f.name, b->f.name);
}

static dep_status resident_caught(arena *a, arena *s, memory_scope *m, memory_block *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    memory_items items;
    memory_block b = {0};
    VEC(const memory_item *) order = {0};
    size_t used = 0;
    TRY(memory_scan(a, s, m, true, &items, err));
    for (vec_each(memory_item, i, &items)) {
        if (i->f.withheld.n) {
            vec_push(a, &b.withheld, i->f);
        } else if (i->f.resident) {
            vec_push(a, &order, i);
        }
    }
    if (order.n) qsort(order.p, order.n, sizeof *order.p, newest_first);
    for (size_t k = 0; k < order.n; k++) {
        const memory_item *i = order.p[k];
        memory_shown shown = {.name = i->f.name};
        str text = foreign(s, i->bytes, FOREIGN_TEXT, 0);
        text = memory_newest(s, text, MEMORY_RESIDENT_CHARS, &shown.chars, &shown.shown);
        size_t size = utf8_count(text);
        if (size > MEMORY_BLOCK_CHARS - used) {
            vec_push(a, &b.left_out, i->f.name);
            continue;
        }
        used += size;
        shown.text = str_dup(a, text);
        invisible_scan(a, i->bytes, &shown.invisible);
        vec_push(a, &b.files, shown);
    }
    *ret = b;
    return DEP_OK;
}

dep_status memory_resident(arena *a, memory_scope *m, memory_block *ret, dep_err *err) {
    arena *s = arena_new();
    dep_status status = resident_caught(a, s, m, ret, err);
    arena_free(s);
    return status;
}

// --- Search --------------------------------------------------------------------------------------

typedef struct {
    const memory_items *items;
    bool (*cancelled)(void *);
    void *ctx;
    bool moved; // a file was replaced between the judging and the opening
} finder;

// A file is searched only if it is the very one that was judged: a replaced one has another inode or time.
static const char *refuse(void *p, str path, const struct stat *st) {
    finder *f = p;
    if (S_ISDIR(st->st_mode)) return NULL; // daily/, opened beneath the scope
    for (vec_each(memory_item, i, f->items)) {
        if (!str_eq(i->f.name, path)) continue;
        if (i->f.withheld.n) return i->f.withheld.p; // of a string literal
        if (i->st.st_dev == st->st_dev && i->st.st_ino == st->st_ino && i->st.st_size == st->st_size &&
            i->st.st_mtim.tv_sec == st->st_mtim.tv_sec && i->st.st_mtim.tv_nsec == st->st_mtim.tv_nsec)
            return NULL;
        break;
    }
    f->moved = true;
    return "written while it was searched";
}

static bool cancelled(void *p) {
    finder *f = p;
    return f->cancelled && f->cancelled(f->ctx);
}

static dep_status search_once(arena *a, arena *s, arena *bytes, memory_scope *m, const search_query *q,
                              finder *f, search_result *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    memory_items items;
    static const str include[] = {S_INIT("*.md"), S_INIT("daily/*.md")};
    search_source source = {.include = include, .n_include = 2};
    search_space space = {.root = m->dir,
                          .sources = &source,
                          .n_sources = 1,
                          .max_bytes = MEMORY_SCOPE_MAX,
                          .max_file = MEMORY_FILE_MAX,
                          .refuse = refuse,
                          .cancelled = cancelled,
                          .ctx = f};
    TRY(memory_scan(s, bytes, m, false, &items, err));
    f->items = &items;
    f->moved = false;
    return search_directly(a, &space, q, ret, err);
}

dep_status memory_search(arena *a, memory_scope *m, str query, size_t limit, bool (*is_cancelled)(void *),
                         void *ctx, search_result *ret, dep_err *err) {
    search_query q = {.query = query, .limit = limit < SEARCH_LIMIT_MAX ? limit : SEARCH_LIMIT_MAX};
    finder f = {.cancelled = is_cancelled, .ctx = ctx};
    dep_status status = DEP_OK;
    // A file that another process replaced in between is searched in the next round, not reported as if it
    // were gone.
    for (int round = 0; round < SEARCH_ROUNDS; round++) {
        search_result found = {0};
        arena *s = arena_new(), *bytes = arena_new();
        status = search_once(a, s, bytes, m, &q, &f, &found, err);
        arena_free(s);
        arena_free(bytes);
        if (status != DEP_OK) return status;
        *ret = found;
        if (!f.moved || found.cancelled) break;
    }
    return status;
}

// corpus: reads the files that the walk found, once each, into text, folded text, line starts and headings.
// Knows nothing of queries. A file is what its device and inode say it is: several names, links and sources
// that lead to one file make one corpus_file with several names; the declared encoding is that of its first
// source. After search_open nothing of a corpus changes. Its arena holds about 2.2 bytes for each byte read;
// what folding makes longer is charged to the budget.
#include "search/search_int.h"
#include <deputy/file.h>
#include <deputy/utf8.h>
#include <stdlib.h>

// Offsets within a file are 32 bits, and folding makes text up to eleven times longer.
enum : size_t { FILE_BYTES_CEILING = (size_t)256 << 20 };

// One path, with the sources that have it.
typedef struct {
    str path;
    VEC(uint32_t) sources;
    bool later; // did not fit its source's share of the budget
} candidate;

typedef struct {
    dev_t dev;
    ino_t ino;
    size_t file; // number in `files`, counted from 1; 0: free
} slot;

typedef struct {
    corpus_file file;
    VEC(file_name) names;
} loaded;

typedef struct {
    search_corpus *c;
    arena *scratch; // of the whole load
    arena *turn;    // of one file
    const search_space *space;
    walk_exclude **excludes;   // of each source
    VEC(candidate) candidates; // by first source, then path
    VEC(loaded) files;
    slot *slots;
    size_t n_slots;
    size_t max_file, left, share_left;
    size_t since_asked; // bytes and files since cancelled() was asked
} loader;

// For each source that has the file, so that it is said whichever of them a query asks.
static void cut(loader *l, const candidate *cand, bool loses, str reason) {
    arena *a = l->c->a;
    cut_item item = {.reason = str_dup(a, reason), .path = str_dup(a, cand->path), .loses = loses};
    for (vec_each(uint32_t, source, &cand->sources)) {
        item.source = *source;
        vec_push(a, &l->c->cuts, item);
    }
}

// "16 MiB", or bytes where it is not round.
static str size_text(arena *a, size_t n) {
    if (n >= 1 << 20 && n % (1 << 20) == 0) return str_fmt(a, "%zu MiB", n >> 20);
    if (n >= 1 << 10 && n % (1 << 10) == 0) return str_fmt(a, "%zu KiB", n >> 10);
    return str_fmt(a, "%zu bytes", n);
}

// --- Which files ---

static int by_path_source(const void *a, const void *b) {
    const walk_file *x = a, *y = b;
    int order = str_cmp(x->path, y->path);
    return order ? order : (x->source > y->source) - (x->source < y->source);
}

static int by_source_path(const void *a, const void *b) {
    const candidate *x = a, *y = b;
    if (x->sources.p[0] != y->sources.p[0]) return x->sources.p[0] < y->sources.p[0] ? -1 : 1;
    return str_cmp(x->path, y->path);
}

static void gather(loader *l, walk_file *files, size_t n) {
    if (n > 1) qsort(files, n, sizeof *files, by_path_source);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !str_eq(files[i].path, files[i - 1].path))
            vec_push(l->scratch, &l->candidates, (candidate){.path = files[i].path});
        candidate *last = &l->candidates.p[l->candidates.n - 1];
        vec_push(l->scratch, &last->sources, files[i].source);
    }
    if (l->candidates.n > 1) qsort(l->candidates.p, l->candidates.n, sizeof *l->candidates.p, by_source_path);
    l->n_slots = 64;
    while (l->n_slots < l->candidates.n * 2) l->n_slots *= 2;
    l->slots = NEW_N(l->scratch, slot, l->n_slots);
}

static slot *find_slot(loader *l, const struct stat *st) {
    uint64_t h = ((uint64_t)st->st_ino * 0x9E3779B97F4A7C15u) ^ ((uint64_t)st->st_dev * 0xC2B2AE3D27D4EB4Fu);
    for (size_t i = (size_t)(h >> 32);; i++) {
        slot *s = &l->slots[i & (l->n_slots - 1)];
        if (!s->file || (s->dev == st->st_dev && s->ino == st->st_ino)) return s;
    }
}

static void add_names(loader *l, loaded *f, const candidate *cand) {
    str path = str_dup(l->c->a, cand->path);
    for (size_t i = 0; i < cand->sources.n; i++)
        vec_push(l->scratch, &f->names, (file_name){.source = cand->sources.p[i], .path = path});
}

// --- Opening ---

static void cut_failed(loader *l, const candidate *cand, dep_status status, int os) {
    struct stat st;
    if (status == DEP_ERR_NOT_FOUND) {
        cut(l, cand, true, S("gone while searching"));
    } else if (status == DEP_ERR_REFUSED) {
        bool odd = file_stat_at(l->space->root, cand->path, FILE_LINKS_INSIDE, &st, NULL) == DEP_OK;
        cut(l, cand, false, odd ? S("not a regular file") : str_z(walk_link_refused()));
    } else {
        const char *text = strerrordesc_np(os);
        cut(l, cand, true, str_fmt(l->scratch, "unreadable: %s", text ? text : "unknown error"));
    }
}

// Judges an open file by its path and, when links led to it, by where it really is.
static bool allowed(loader *l, const candidate *cand, int fd, bool linked, const struct stat *st) {
    uint32_t source = cand->sources.p[0];
    const search_space *sp = l->space;
    const char *why = sp->refuse ? sp->refuse(sp->ctx, cand->path, st) : NULL;
    if (!why && linked) {
        str real;
        if (!walk_real_path(l->scratch, sp->root, fd, &real)) {
            why = "symbolic link: where it leads cannot be told";
        } else if (walk_forbidden(real)) {
            why = "below .deputy, which is never searched";
        } else if (walk_excluded(l->excludes[source], sp->sources[source].n_exclude, real)) {
            why = "symbolic link to an excluded file";
        } else if (sp->refuse) {
            why = sp->refuse(sp->ctx, real, st);
        }
    }
    if (why) cut(l, cand, false, str_z(why));
    return !why;
}

// A descriptor of the candidate's file, or -1 when it must not or cannot be read. It is closed when l->turn
// is reset.
static int open_candidate(loader *l, const candidate *cand, struct stat *st) {
    int fd = -1;
    dep_err err = {0};
    bool linked = false;
    dep_status status = file_open_at(l->space->root, cand->path, FILE_NO_LINKS, &fd, st, &err);
    if (status == DEP_ERR_REFUSED) {
        linked = true;
        status = file_open_at(l->space->root, cand->path, FILE_LINKS_INSIDE, &fd, st, &err);
    }
    if (status != DEP_OK) {
        cut_failed(l, cand, status, err.os);
        return -1;
    }
    arena_defer_close(l->turn, fd);
    return allowed(l, cand, fd, linked, st) ? fd : -1;
}

// --- Text ---

// UTF-16: not between the halves of a pair.
static str whole_units(str head, bool big) {
    head.n -= head.n % 2;
    if (head.n < 2) return head;
    unsigned char high = (unsigned char)head.p[head.n - (big ? 2 : 1)];
    if (high >= 0xD8 && high <= 0xDB) head.n -= 2;
    return head;
}

// What a read that stopped at a limit leaves: whole lines where there are lines, whole characters in any
// case.
static str whole_part(str head, str encoding) {
    bool wide = str_find(encoding, S("16")) != SIZE_MAX;
    if (str_starts(head, S("\xFF\xFE\0\0")) || str_find(encoding, S("32")) != SIZE_MAX)
        return str_sub(head, 0, head.n / 4 * 4);
    if (str_starts(head, S("\xFF\xFE"))) return whole_units(head, false);
    if (wide || str_starts(head, S("\xFE\xFF")))
        return whole_units(head, !str_ends(encoding, S("LE")) && !str_ends(encoding, S("le")));
    size_t at = str_rchr(head, '\n');
    if (at != SIZE_MAX) return str_sub(head, 0, at + 1);
    for (size_t back = 1; back <= 4 && back <= head.n; back++) {
        unsigned char ch = (unsigned char)head.p[head.n - back];
        if ((ch & 0xC0) == 0x80) continue;
        size_t need = ch < 0x80 ? 1 : ch >= 0xF0 ? 4 : ch >= 0xE0 ? 3 : 2;
        return str_sub(head, 0, need > back ? head.n - back : head.n);
    }
    return head;
}

static const uint32_t *find_lines(arena *a, str folded, uint32_t *n_lines) {
    size_t n = 0;
    for (size_t i = 0; i < folded.n; n++) {
        const char *lf = memchr(folded.p + i, '\n', folded.n - i);
        if (!lf) {
            n++;
            break;
        }
        i = (size_t)(lf - folded.p) + 1;
    }
    uint32_t *starts = NEW_N(a, uint32_t, n + 1);
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        starts[i] = (uint32_t)at;
        const char *lf = memchr(folded.p + at, '\n', folded.n - at);
        at = lf ? (size_t)(lf - folded.p) + 1 : folded.n + 1;
    }
    starts[n] = (uint32_t)at;
    *n_lines = (uint32_t)n;
    return starts;
}

static bool is_ascii(str s) {
    unsigned char all = 0;
    for (size_t i = 0; i < s.n; i++) all |= (unsigned char)s.p[i];
    return all < 0x80;
}

// Bytes of the headings above each section, summed: for the average length of such a chain.
static uint64_t sum_chains(arena *a, const heading_list *heads) {
    uint64_t *chain = NEW_N(a, uint64_t, heads->n + 1), sum = 0;
    for (size_t i = 0; i < heads->n; i++) {
        chain[i + 1] = chain[heads->p[i].parent] + heads->p[i].n;
        sum += chain[i + 1];
    }
    return sum;
}

// Moves one decoded text into the corpus.
static void keep_text(loader *l, const candidate *cand, str text, size_t bytes, corpus_file *f) {
    arena *a = l->c->a;
    str folded = utf8_fold(l->turn, text);
    f->bytes = bytes;
    f->text = str_dup(a, text);
    f->folded = folded.p == text.p ? f->text : str_dup(a, folded);
    f->same_starts = folded.n == text.n && is_ascii(text);
    f->starts = find_lines(a, f->folded, &f->n_lines);
    heading_list heads = {0};
    headings_find(l->turn, cand->path, f->text, &heads);
    heading *kept = NEW_N(a, heading, heads.n);
    if (heads.n) memcpy(kept, heads.p, heads.n * sizeof *kept);
    f->heads = kept;
    f->n_heads = (uint32_t)heads.n;
    f->chain_bytes = sum_chains(l->turn, &heads);
}

// Says what the decoder had to assume. False: there is no text.
static bool judge_decoded(loader *l, const candidate *cand, const decoded *d, str bytes) {
    if (d->binary || str_starts(bytes, S("%PDF-"))) {
        cut(l, cand, false, d->binary ? S("binary") : S("PDF: not text"));
        return false;
    }
    bool utf8 = str_eq(str_z(d->encoding), S("UTF-8"));
    if (d->assumed && !utf8)
        cut(l, cand, false,
            str_fmt(l->turn, "read as %s (assumed%s)", d->encoding, d->lossy ? ", not all of it fits" : ""));
    else if (d->lossy)
        cut(l, cand, false, str_fmt(l->turn, "bytes that are not valid %s: shown as U+FFFD", d->encoding));
    return true;
}

// Reads one open file into *ret. False when it has no text.
static bool read_text(loader *l, const candidate *cand, int fd, size_t size, corpus_file *ret) {
    str encoding = l->space->sources[cand->sources.p[0]].encoding, bytes;
    dep_err err = {0};
    dep_status status = file_read_fd(l->turn, fd, l->max_file, true, &bytes, &err);
    decoded d = {0};
    size_t read = bytes.n;
    if (status == DEP_OK) {
        if (size > l->max_file) {
            cut(l, cand, true,
                str_fmt(l->turn, "over " STR_FMT ": head searched",
                        STR_ARG(size_text(l->turn, l->max_file))));
            bytes = whole_part(bytes, encoding);
        }
        status = decode_text(l->turn, bytes, encoding, &d, &err);
    }
    if (status != DEP_OK) {
        const char *text = err.os ? strerrordesc_np(err.os) : err.msg;
        cut(l, cand, true, str_fmt(l->turn, "unreadable: %s", text ? text : "unknown error"));
        return false;
    }
    if (!judge_decoded(l, cand, &d, bytes)) return false;
    if (d.text.n > FILE_BYTES_CEILING) {
        cut(l, cand, true, S("over 256 MiB as UTF-8: head searched"));
        d.text = utf8_cut(d.text, FILE_BYTES_CEILING);
    }
    keep_text(l, cand, d.text, read, ret);
    return true;
}

// --- The budget ---

static void spend(loader *l, size_t n) {
    l->left -= n < l->left ? n : l->left;
    l->share_left -= n < l->share_left ? n : l->share_left;
}

// Reads one candidate when it fits the budget; false when it does not.
static bool load(loader *l, const candidate *cand, size_t budget) {
    struct stat st;
    arena_reset(l->turn);
    int fd = open_candidate(l, cand, &st);
    if (fd < 0) return true;
    size_t size = st.st_size > 0 ? (size_t)st.st_size : 0, cost = size < l->max_file ? size : l->max_file;
    slot *s = find_slot(l, &st);
    bool fits = s->file || cost <= budget;
    if (s->file) {
        add_names(l, &l->files.p[s->file - 1], cand);
    } else if (fits) {
        loaded f = {0};
        if (read_text(l, cand, fd, size, &f.file)) {
            add_names(l, &f, cand);
            vec_push(l->scratch, &l->files, f);
            *s = (slot){st.st_dev, st.st_ino, l->files.n};
            if (f.file.folded.n > cost) cost = f.file.folded.n;
        }
        spend(l, cost);
        l->since_asked += cost;
    }
    return fits;
}

static bool stop_asked(loader *l) {
    l->since_asked += (1 << 20) / 64;
    if (l->since_asked < 1 << 20) return false;
    l->since_asked = 0;
    l->c->cancelled = l->space->cancelled && l->space->cancelled(l->space->ctx);
    return l->c->cancelled;
}

// Each source first gets an equal share of the budget, so that a large one does not starve those after it;
// what the shares leave goes to the files that did not fit, in order.
static void load_all(loader *l) {
    size_t max_bytes = l->space->max_bytes ? l->space->max_bytes : SEARCH_BYTES_MAX;
    l->left = max_bytes;
    uint32_t source = SEARCH_NO_SOURCE;
    for (vec_each(candidate, cand, &l->candidates)) {
        if (stop_asked(l)) return;
        if (cand->sources.p[0] != source) {
            source = cand->sources.p[0];
            l->share_left = max_bytes / l->space->n_sources;
        }
        cand->later = !load(l, cand, l->share_left < l->left ? l->share_left : l->left);
    }
    str reason =
        str_fmt(l->scratch, "not read: budget of " STR_FMT, STR_ARG(size_text(l->scratch, max_bytes)));
    for (vec_each(candidate, cand, &l->candidates)) {
        if (!cand->later) continue;
        if (stop_asked(l)) return;
        if (!load(l, cand, l->left)) cut(l, cand, true, reason);
    }
}

// --- The corpus ---

static int by_name(const void *a, const void *b) {
    const file_name *x = a, *y = b;
    if (x->source != y->source) return x->source < y->source ? -1 : 1;
    return str_cmp(x->path, y->path);
}

static int by_first_name(const void *a, const void *b) {
    return by_name(((const corpus_file *)a)->names, ((const corpus_file *)b)->names);
}

static int by_reason(const void *a, const void *b) {
    const cut_item *x = a, *y = b;
    int order = str_cmp(x->reason, y->reason);
    if (!order) order = str_cmp(x->path, y->path);
    return order ? order : (x->source > y->source) - (x->source < y->source);
}

static void finish(loader *l) {
    search_corpus *c = l->c;
    if (c->cuts.n > 1) qsort(c->cuts.p, c->cuts.n, sizeof *c->cuts.p, by_reason);
    c->n_files = l->files.n;
    c->files = NEW_N(c->a, corpus_file, c->n_files);
    for (size_t i = 0; i < c->n_files; i++) {
        loaded *from = &l->files.p[i];
        file_name *names = NEW_N(c->a, file_name, from->names.n);
        memcpy(names, from->names.p, from->names.n * sizeof *names);
        qsort(names, from->names.n, sizeof *names, by_name);
        c->files[i] = from->file;
        c->files[i].names = names;
        c->files[i].n_names = (uint32_t)from->names.n;
    }
    if (c->n_files > 1) qsort(c->files, c->n_files, sizeof *c->files, by_first_name);
}

static dep_status fill(search_corpus *c, arena *scratch, arena *turn, const search_space *space,
                       dep_err *err) {
    loader l = {.c = c, .scratch = scratch, .turn = turn, .space = space};
    l.max_file = space->max_file ? space->max_file : SEARCH_FILE_MAX;
    if (l.max_file > FILE_BYTES_CEILING) l.max_file = FILE_BYTES_CEILING;
    c->n_sources = space->n_sources;
    c->sources = NEW_N(c->a, str, space->n_sources);
    l.excludes = NEW_N(scratch, walk_exclude *, space->n_sources);
    for (size_t i = 0; i < space->n_sources; i++) {
        c->sources[i] = str_dup(c->a, space->sources[i].name);
        TRY(walk_excludes(scratch, &space->sources[i], &l.excludes[i], err));
    }
    walk_result walked = {0};
    TRY(walk_sources(scratch, space, &c->limits, &walked, err));
    for (vec_each(cut_item, item, &walked.cuts)) {
        cut_item kept = *item;
        kept.reason = str_dup(c->a, kept.reason);
        kept.path = str_dup(c->a, kept.path);
        vec_push(c->a, &c->cuts, kept);
    }
    c->cancelled = walked.cancelled;
    gather(&l, walked.files.p, walked.files.n);
    if (!c->cancelled) load_all(&l);
    finish(&l);
    return DEP_OK;
}

// The three arenas under one unwind target each: an allocation failure in any of them ends here.
static dep_status fill_caught_turn(search_corpus *c, arena *scratch, arena *turn, const search_space *space,
                                   dep_err *err) {
    ARENA_CATCH(turn, err);
    return fill(c, scratch, turn, space, err);
}

static dep_status fill_caught(search_corpus *c, arena *scratch, arena *turn, const search_space *space,
                              dep_err *err) {
    ARENA_CATCH(scratch, err);
    return fill_caught_turn(c, scratch, turn, space, err);
}

static dep_status fill_whole(search_corpus *c, arena *scratch, arena *turn, const search_space *space,
                             dep_err *err) {
    ARENA_CATCH(c->a, err);
    return fill_caught(c, scratch, turn, space, err);
}

dep_status search_open_with(const search_space *space, const search_limits *limits, search_corpus **ret,
                            dep_err *err) {
    arena *a = arena_new(), *scratch = arena_new(), *turn = arena_new();
    search_corpus *c = NEW(a, search_corpus);
    *c = (search_corpus){.a = a, .limits = *limits, .ask = space->cancelled, .ctx = space->ctx};
    dep_status status = fill_whole(c, scratch, turn, space, err);
    arena_free(turn);
    arena_free(scratch);
    if (status != DEP_OK) {
        arena_free(a);
        return status;
    }
    *ret = c;
    return DEP_OK;
}

dep_status search_open(const search_space *space, search_corpus **ret, dep_err *err) {
    return search_open_with(space, &search_limits_default, ret, err);
}

void search_close(search_corpus *c) {
    if (c) arena_free(c->a);
}

// --- Looking things up ---

str corpus_original(const corpus_file *f, uint32_t line) {
    size_t from = 0;
    if (f->same_starts) {
        from = f->starts[line];
    } else {
        for (uint32_t i = 0; i < line && from < f->text.n; i++) {
            const char *lf = memchr(f->text.p + from, '\n', f->text.n - from);
            from = lf ? (size_t)(lf - f->text.p) + 1 : f->text.n;
        }
    }
    str rest = str_sub(f->text, from, f->text.n);
    size_t end = str_chr(rest, '\n');
    if (end != SIZE_MAX) rest.n = end;
    if (rest.n && rest.p[rest.n - 1] == '\r') rest.n--;
    return rest;
}

uint32_t corpus_section(const corpus_file *f, uint32_t line) {
    uint32_t low = 0, high = f->n_heads;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (f->heads[mid].first <= line)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

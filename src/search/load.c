// load: reads the files that the walk found, once each, into a version of a corpus. Knows nothing of queries.
// A file is what its device and inode say it is: several names, links and sources that lead to one file make
// one corpus_file with several names; the declared encoding is that of its first source. What a former
// version holds of a file that looks the same is taken over without opening it.
#include "search/load_int.h"
#include <deputy/file.h>
#include <deputy/sort.h>
#include <deputy/utf8.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

// A file that changed this shortly before it was read may change again without another time: the kernel's
// clock ticks, and some file systems keep whole or even seconds.
enum { TICK_MS = 50, COARSE_TICK_MS = 2000 };

// For each source that has the file, so that it is said whichever of them a query asks.
void loader_cut(loader *l, const candidate *cand, bool loses, str reason) {
    arena *a = l->names;
    cut_item item = {.reason = str_dup(a, reason), .path = cand->path, .loses = loses};
    for (vec_each(uint32_t, source, &cand->sources)) {
        item.source = *source;
        vec_push(a, &l->cuts, item);
    }
}

// The same, of what the file itself holds: said again when its text is taken over.
static void note(loader *l, const candidate *cand, bool loses, str reason) {
    cut_item item = {.reason = str_dup(l->names, reason), .loses = loses};
    vec_push(l->names, &l->track->notes, item);
    loader_cut(l, cand, loses, reason);
}

// Of a file that stands under another name already: the same is said of it.
static void note_again(loader *l, const candidate *cand, const loaded *f) {
    for (vec_each(const cut_item, n, &f->notes)) note(l, cand, n->loses, n->reason);
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

static bool is_sorted(const candidate *p, size_t n) {
    for (size_t i = 1; i < n; i++)
        if (by_source_path(&p[i - 1], &p[i]) > 0) return false;
    return true;
}

void loader_gather(loader *l, walk_file *files, size_t n) {
    vec_reserve(l->scratch, &l->candidates, n);
    if (l->space->n_sources > 1)
        files = sort_until(l->scratch, files, n, sizeof *files, by_path_source, &l->stop);
    for (size_t i = 0; i < n && !stop_after(&l->stop, STOP_ITEM); i++) {
        if (i == 0 || !str_eq(files[i].path, files[i - 1].path))
            vec_push(l->scratch, &l->candidates,
                     (candidate){.path = str_dup(l->names, files[i].path), .sig = files[i].sig});
        candidate *last = &l->candidates.p[l->candidates.n - 1];
        vec_reserve(l->scratch, &last->sources, 1);
        vec_push(l->scratch, &last->sources, files[i].source);
    }
    l->candidates.cap = l->candidates.n;
    if (!is_sorted(l->candidates.p, l->candidates.n))
        l->candidates.p = sort_until(l->scratch, l->candidates.p, l->candidates.n, sizeof *l->candidates.p,
                                     by_source_path, &l->stop);
    vec_reserve(l->scratch, &l->files, l->candidates.n);
    l->tracks = NEW_N(l->scratch, corpus_track, l->candidates.n + 1);
    l->n_slots = 64;
    while (l->n_slots < l->candidates.n * 2) l->n_slots *= 2;
    l->slots = NEW_N(l->scratch, slot, l->n_slots);
}

static slot *find_slot(loader *l, dev_t dev, ino_t ino) {
    uint64_t h = ((uint64_t)ino * 0x9E3779B97F4A7C15u) ^ ((uint64_t)dev * 0xC2B2AE3D27D4EB4Fu);
    for (size_t i = (size_t)(h >> 32);; i++) {
        slot *s = &l->slots[i & (l->n_slots - 1)];
        if (!s->file || (s->dev == dev && s->ino == ino)) return s;
    }
}

static void add_names(loader *l, loaded *f, const candidate *cand) {
    vec_reserve(l->names, &f->names, f->names.n + cand->sources.n);
    for (size_t i = 0; i < cand->sources.n; i++)
        vec_push(l->names, &f->names, (file_name){.source = cand->sources.p[i], .path = cand->path});
}

// --- Opening ---

static void cut_failed(loader *l, const candidate *cand, dep_status status, int os) {
    struct stat st;
    if (status == DEP_ERR_NOT_FOUND) {
        loader_cut(l, cand, true, S("gone while searching"));
    } else if (status == DEP_ERR_REFUSED) {
        bool odd = file_stat_at(l->space->root, cand->path, FILE_LINKS_INSIDE, &st, NULL) == DEP_OK;
        loader_cut(l, cand, false, odd ? S("not a regular file") : str_z(walk_link_refused()));
    } else {
        const char *text = strerrordesc_np(os);
        loader_cut(l, cand, true, str_fmt(l->scratch, "unreadable: %s", text ? text : "unknown error"));
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
    l->track->refused = why != NULL;
    if (why) loader_cut(l, cand, false, str_z(why));
    return !why;
}

static void close_dir(void *p) {
    loader *l = p;
    if (l->dir_fd >= 0) close(l->dir_fd);
}

// Opens the file, without links, by way of its directory when that is at hand: a short name is found sooner
// than a long one.
static dep_status open_beside(loader *l, str path, int *fd, struct stat *st, dep_err *err) {
    size_t slash = str_rchr(path, '/');
    str dir = str_sub(path, 0, slash == SIZE_MAX ? 0 : slash);
    if (!dir.n) return file_open_at(l->space->root, path, FILE_NO_LINKS, fd, st, err);
    if (!l->dir.n || !str_eq(dir, l->dir)) {
        if (!l->dir.n) arena_defer(l->scratch, close_dir, l);
        if (l->dir.n && l->dir_fd >= 0) close(l->dir_fd);
        l->dir = dir;
        if (dir_open_at(l->space->root, dir, FILE_NO_LINKS, &l->dir_fd, NULL) != DEP_OK) l->dir_fd = -1;
    }
    if (l->dir_fd < 0) return file_open_at(l->space->root, path, FILE_NO_LINKS, fd, st, err);
    return file_open_at(l->dir_fd, str_sub(path, slash + 1, path.n), FILE_NO_LINKS, fd, st, err);
}

// A descriptor of the candidate's file, or -1 when it must not or cannot be read. It is closed when l->turn
// is reset.
static int open_candidate(loader *l, const candidate *cand, struct stat *st) {
    int fd = -1;
    dep_err err = {0};
    bool linked = false;
    dep_status status = open_beside(l, cand->path, &fd, st, &err);
    if (status == DEP_ERR_REFUSED) {
        linked = true;
        status = file_open_at(l->space->root, cand->path, FILE_LINKS_INSIDE, &fd, st, &err);
    }
    l->track->linked = linked;
    if (status != DEP_OK) {
        cut_failed(l, cand, status, err.os);
        return -1;
    }
    arena_defer_close(l->opened, fd);
    if (!allowed(l, cand, fd, linked, st)) return -1;
    int64_t changed = (int64_t)st->st_ctim.tv_sec * 1000 + st->st_ctim.tv_nsec / 1000000;
    l->track->sig = sig_of(st);
    l->track->several = st->st_nlink > 1;
    l->track->fresh = changed >= l->now_ms - (st->st_ctim.tv_nsec ? TICK_MS : COARSE_TICK_MS);
    return fd;
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

// A document that holds text, but not as text: PDF, and what word processors, spreadsheets and readers of
// books write.
static bool needs_converter(str path, str bytes) {
    static const str kinds[] = {S_INIT(".docx"), S_INIT(".xlsx"), S_INIT(".pptx"), S_INIT(".odt"),
                                S_INIT(".ods"),  S_INIT(".odp"),  S_INIT(".epub")};
    if (str_starts(bytes, S("%PDF-")) || str_starts(bytes, S("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")))
        return true;
    if (!str_starts(bytes, S("PK\3\4"))) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (path.n > kinds[i].n && str_ieq(str_sub(path, path.n - kinds[i].n, path.n), kinds[i])) return true;
    return false;
}

// Says what the decoder had to assume. False: there is no text.
static bool judge_decoded(loader *l, const candidate *cand, const decoded *d, str bytes) {
    bool document = needs_converter(cand->path, bytes);
    if (d->binary || document) {
        note(l, cand, false,
             document ? S("not text: needs a converter, and there is none yet") : S("binary"));
        return false;
    }
    bool utf8 = str_eq(str_z(d->encoding), S("UTF-8"));
    if (d->assumed && !utf8)
        note(l, cand, false,
             str_fmt(l->turn, "read as %s (assumed%s)", d->encoding, d->lossy ? ", not all of it fits" : ""));
    else if (d->lossy)
        note(l, cand, false, str_fmt(l->turn, "bytes that are not valid %s: shown as U+FFFD", d->encoding));
    return true;
}

// Reads one open file; *ret gets its text. False when it has none.
static bool read_text(loader *l, const candidate *cand, int fd, size_t size, loaded *f, str *ret) {
    str encoding = l->space->sources[cand->sources.p[0]].encoding, bytes;
    bool waited = false;
    dep_err err = {0};
    dep_status status =
        file_read_sized(l->turn, fd, size, l->max_file + 1, true, &waited, &l->stop, &bytes, &err);
    l->waits += waited;
    decoded d = {0};
    size_t read = bytes.n;
    if (status == DEP_OK) {
        // By what was read: it may have grown since it was opened.
        if (read > l->max_file) {
            read = l->max_file;
            bytes.n = read;
            note(l, cand, true,
                 str_fmt(l->turn, "over " STR_FMT ": head searched",
                         STR_ARG(size_text(l->turn, l->max_file))));
            bytes = whole_part(bytes, encoding);
        }
        status = decode_text_until(l->turn, bytes, encoding, &l->stop, &d, &err);
    }
    if (status == DEP_ERR_CANCELLED) return false;
    if (status != DEP_OK) {
        const char *text = err.os ? strerrordesc_np(err.os) : err.msg;
        loader_cut(l, cand, true, str_fmt(l->turn, "unreadable: %s", text ? text : "unknown error"));
        l->track->sig = (file_sig){0};
        return false;
    }
    if (!judge_decoded(l, cand, &d, bytes)) return false;
    if (d.text.n > CORPUS_FILE_CEILING) {
        note(l, cand, true, S("over 256 MiB as UTF-8: head searched"));
        d.text = utf8_cut(d.text, CORPUS_FILE_CEILING);
    }
    f->file.bytes = read;
    *ret = d.text;
    return true;
}

// --- What is there already ---

static struct stat stat_of(const file_sig *sig) {
    return (struct stat){.st_dev = sig->dev,
                         .st_ino = sig->ino,
                         .st_size = sig->size,
                         .st_mtim = sig->mtime,
                         .st_ctim = sig->ctime,
                         .st_mode = S_IFREG | 0444,
                         .st_nlink = 1};
}

// What the former version knows of the candidate, when that is still so.
static const corpus_track *known(loader *l, const candidate *cand) {
    if (!l->old || !cand->sig.ino) return NULL;
    const corpus_track *t = corpus_track_of(l->old, cand->path);
    // What has several names may be changed through another one, what was read shortly after a change may
    // have been changed again, and of what could not be read the reason may have gone.
    if (!t || t->linked || t->several || t->fresh || t->refused || (!t->file && !t->notes.n) ||
        t->source != cand->sources.p[0] || !sig_eq(&t->sig, &cand->sig))
        return NULL;
    struct stat st = stat_of(&cand->sig);
    if (!l->judged && l->space->refuse && l->space->refuse(l->space->ctx, cand->path, &st)) return NULL;
    return t;
}

static bool take_over(loader *l, const candidate *cand, const corpus_track *t, loaded *ret) {
    l->track->sig = t->sig;
    for (vec_each(const cut_item, n, &t->notes)) note(l, cand, n->loses, n->reason);
    if (!t->file) return false;
    ret->file = l->old->files[t->file - 1];
    return true;
}

// --- The budget ---

static void spend(loader *l, size_t n) {
    l->cost += n;
    l->left -= n < l->left ? n : l->left;
    l->share_left -= n < l->share_left ? n : l->share_left;
}

// Takes in what has come out of the pipe.
static void take_in(loader *l, pipe_batch *b) {
    if (b->fault != DEP_OK && l->fault == DEP_OK) {
        l->fault = b->fault;
        if (l->err) *l->err = b->err;
    }
    for (size_t i = 0; i < b->n && b->fault == DEP_OK; i++) {
        loaded *f = &l->files.p[b->jobs[i].index];
        size_t bytes = f->file.bytes, n = b->jobs[i].file.folded.n;
        f->file = b->jobs[i].file;
        f->whole = b->jobs[i].whole;
        f->file.bytes = bytes;
        // What folding made longer.
        if (n > f->cost) spend(l, n - f->cost);
        if (n > f->cost) f->cost = n;
        l->in_pipe -= b->jobs[i].text.n;
    }
    b->n = b->bytes = 0;
    arena_reset(b->a);
}

void loader_drain(loader *l) {
    if (pipe_filling(l->pipe)->n) {
        pipe_batch *out = pipe_next(l->pipe);
        if (out) take_in(l, out);
    }
    for (pipe_batch *b; (b = pipe_drain(l->pipe));) take_in(l, b);
    l->turn = pipe_filling(l->pipe)->a;
}

void loader_stopped(loader *l) {
    size_t n = 0;
    for (vec_each(const loaded, f, &l->files))
        if (f->whole) l->files.p[n++] = *f;
    l->files.n = n;
    // Their numbers are others now, and nobody takes them over.
    for (size_t i = 0; i < l->candidates.n; i++) l->tracks[i].file = 0;
    l->cancelled = true;
}

static void to_pipe(loader *l, const candidate *cand, str text, size_t index) {
    pipe_batch *b = pipe_filling(l->pipe);
    b->jobs[b->n++] = (pipe_job){.index = index, .path = cand->path, .text = text};
    b->bytes += text.n;
    l->in_pipe += text.n;
}

// A full batch goes on its way.
static void move_on(loader *l) {
    pipe_batch *b = pipe_filling(l->pipe);
    if (b->n < PIPE_FILES && arena_used(b->a) < PIPE_BYTES) return;
    pipe_batch *out = pipe_next(l->pipe);
    if (out) take_in(l, out);
    l->turn = pipe_filling(l->pipe)->a;
}

static size_t budget_of(const loader *l, bool whole) {
    return whole || l->left < l->share_left ? l->left : l->share_left;
}

// Near the end of the budget nothing may be underway, because folding may make it longer than was thought.
static void settle(loader *l, bool whole) {
    enum { LONGER = 11 };
    if (l->in_pipe && budget_of(l, whole) < l->max_file + l->in_pipe * LONGER) loader_drain(l);
}

static dep_status load_caught(loader *l, candidate *cand, bool whole, bool *fits) {
    ARENA_CATCH(l->turn, l->err);
    struct stat st;
    const corpus_track *old = known(l, cand);
    int fd = -1;
    if (old)
        st = stat_of(&cand->sig);
    else if ((fd = open_candidate(l, cand, &st)) < 0)
        return DEP_OK;
    size_t size = st.st_size > 0 ? (size_t)st.st_size : 0, cost = size < l->max_file ? size : l->max_file;
    slot *s = find_slot(l, st.st_dev, st.st_ino);
    *fits = s->file || cost <= budget_of(l, whole);
    if (s->file) {
        add_names(l, &l->files.p[s->file - 1], cand);
        note_again(l, cand, &l->files.p[s->file - 1]);
        l->track->file = (uint32_t)s->file;
    } else if (*fits) {
        loaded f = {.cost = cost, .whole = old};
        str text = {0};
        if (old ? take_over(l, cand, old, &f) : read_text(l, cand, fd, size, &f, &text)) {
            if (old && f.file.folded.n > f.cost) f.cost = f.file.folded.n;
            add_names(l, &f, cand);
            f.notes = l->track->notes;
            vec_push(l->scratch, &l->files, f);
            *s = (slot){st.st_dev, st.st_ino, l->files.n};
            l->track->file = (uint32_t)l->files.n;
            if (!old) to_pipe(l, cand, text, l->files.n - 1);
        }
        spend(l, f.cost);
    } else {
        l->track->sig = (file_sig){0};
    }
    return DEP_OK;
}

// Once files have had to be waited for, the next ones are asked for beforehand, many at a time: a disk has
// them sooner than one after the other.
static void ask_ahead(loader *l, size_t now) {
    enum { WAITS = 2, AHEAD = 32 };
    if (l->waits < WAITS) return;
    if (l->asked_for <= now) l->asked_for = now + 1;
    for (; l->asked_for < l->candidates.n && l->asked_for <= now + AHEAD; l->asked_for++) {
        struct stat st;
        int fd = -1;
        const candidate *cand = &l->candidates.p[l->asked_for];
        if (known(l, cand)) continue;
        if (file_open_at(l->space->root, cand->path, FILE_NO_LINKS, &fd, &st, NULL) != DEP_OK) continue;
        // What must not be read is not asked for either.
        bool refused = l->space->refuse && l->space->refuse(l->space->ctx, cand->path, &st);
        if (!refused && st.st_size > 0)
            (void)posix_fadvise(fd, 0, st.st_size < (off_t)l->max_file ? st.st_size : (off_t)l->max_file,
                                POSIX_FADV_WILLNEED);
        close(fd);
    }
}

bool loader_load(loader *l, candidate *cand, bool whole) {
    bool fits = true;
    ask_ahead(l, (size_t)(cand - l->candidates.p));
    l->track = &l->tracks[cand - l->candidates.p];
    *l->track = (corpus_track){.path = cand->path, .source = cand->sources.p[0]};
    settle(l, whole);
    l->turn = pipe_filling(l->pipe)->a;
    dep_status status = load_caught(l, cand, whole, &fits);
    arena_reset(l->opened);
    if (status != DEP_OK)
        l->fault = status;
    else
        move_on(l);
    return fits;
}

static bool stop_asked(loader *l) {
    if (l->fault != DEP_OK) return true;
    return stop_after(&l->stop, STOP_EACH / 64);
}

// Each source first gets an equal share of the budget, so that a large one does not starve those after it;
// what the shares leave goes to the files that did not fit, in order.
dep_status loader_load_all(loader *l) {
    size_t max_bytes = l->space->max_bytes ? l->space->max_bytes : SEARCH_BYTES_MAX;
    l->left = max_bytes;
    uint32_t source = SEARCH_NO_SOURCE;
    for (vec_each(candidate, cand, &l->candidates)) {
        if (stop_asked(l)) return l->fault;
        if (cand->sources.p[0] != source) {
            source = cand->sources.p[0];
            l->share_left = max_bytes / l->space->n_sources;
        }
        cand->later = !loader_load(l, cand, false);
    }
    str reason =
        str_fmt(l->scratch, "not read: budget of " STR_FMT, STR_ARG(size_text(l->scratch, max_bytes)));
    for (vec_each(candidate, cand, &l->candidates)) {
        if (!cand->later) continue;
        if (stop_asked(l)) return l->fault;
        if (loader_load(l, cand, true)) continue;
        loader_cut(l, cand, true, reason);
        l->left_out++;
    }
    return l->fault;
}

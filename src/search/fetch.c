// fetch: see the header.
#include "search/fetch.h"
#include <deputy/file.h>
#include <deputy/utf8.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

// A file that changed this shortly before it was read may change again without another time: the kernel's
// clock ticks, and some file systems keep whole or even seconds.
enum { TICK_MS = 50, COARSE_TICK_MS = 2000 };
enum : size_t { TURN_BYTES = (size_t)256 << 10 }; // after which the memory of texts is used again
// Of every so many bytes a part is counted: enough to tell rare runs from common ones.
enum { SAMPLE_EACH = 1024, SAMPLE = 128, SAMPLE_WORK = 8 };

static void say(const fetcher *x, fetched *f, bool of_text, bool loses, str reason) {
    remark **end = &f->said;
    while (*end) end = &(*end)->next;
    *end = NEW(x->keep, remark);
    **end = (remark){.reason = str_dup(x->keep, reason), .loses = loses, .of_text = of_text};
}

static void cut(const fetcher *x, fetched *f, bool loses, str reason) {
    say(x, f, false, loses, reason);
}

static void note(const fetcher *x, fetched *f, bool loses, str reason) {
    say(x, f, true, loses, reason);
}

static const char *system_text(int os) {
    const char *text = strerrordesc_np(os);
    return text ? text : "unknown error";
}

// --- Opening ---

static void cut_failed(const fetcher *x, const candidate *cand, fetched *f, dep_status status, int os) {
    struct stat st;
    if (status == DEP_ERR_NOT_FOUND) {
        cut(x, f, true, S("gone while searching"));
    } else if (status == DEP_ERR_REFUSED) {
        bool odd = file_stat_at(x->rules->space->root, cand->path, FILE_LINKS_INSIDE, &st, NULL) == DEP_OK;
        cut(x, f, false, odd ? S("not a regular file") : str_z(walk_link_refused()));
    } else {
        cut(x, f, true, str_fmt(x->keep, "unreadable: %s", system_text(os)));
    }
}

static const char *refused(const fetcher *x, str path, const struct stat *st) {
    const search_space *sp = x->rules->space;
    if (!sp->refuse) return NULL;
    pthread_mutex_lock(x->rules->judging);
    const char *why = sp->refuse(sp->ctx, path, st);
    pthread_mutex_unlock(x->rules->judging);
    return why;
}

// Judges an open file by its path and, when links led to it, by where it really is.
static bool allowed(const fetcher *x, const candidate *cand, int fd, fetched *f, const struct stat *st) {
    uint32_t source = cand->sources.p[0];
    const search_space *sp = x->rules->space;
    const char *why = refused(x, cand->path, st);
    if (!why && f->linked) {
        str real;
        if (!walk_real_path(x->keep, sp->root, fd, &real))
            why = "symbolic link: where it leads cannot be told";
        else if (walk_forbidden(real))
            why = "below .deputy, which is never searched";
        else if (walk_excluded(x->rules->excludes[source], sp->sources[source].n_exclude, real))
            why = "symbolic link to an excluded file";
        else
            why = refused(x, real, st);
    }
    f->refused = why != NULL;
    if (why) cut(x, f, false, str_z(why));
    return !why;
}

// Opens the file, without links, by way of its directory when that is at hand: a short name is found sooner
// than a long one.
static dep_status open_beside(fetcher *x, str path, int *fd, struct stat *st, dep_err *err) {
    int root = x->rules->space->root;
    size_t slash = str_rchr(path, '/');
    str dir = str_sub(path, 0, slash == SIZE_MAX ? 0 : slash);
    if (!dir.n) return file_open_at(root, path, FILE_NO_LINKS, fd, st, err);
    if (!x->dir.n || !str_eq(dir, x->dir)) {
        if (x->dir_fd >= 0) close(x->dir_fd);
        x->dir = dir;
        if (dir_open_at(root, dir, FILE_NO_LINKS, &x->dir_fd, NULL) != DEP_OK) x->dir_fd = -1;
    }
    if (x->dir_fd < 0) return file_open_at(root, path, FILE_NO_LINKS, fd, st, err);
    return file_open_at(x->dir_fd, str_sub(path, slash + 1, path.n), FILE_NO_LINKS, fd, st, err);
}

int fetch_open(fetcher *x, unsigned batch, bool alone, const candidate *cand, fetched *ret) {
    int fd = -1;
    dep_err err = {0};
    struct stat st;
    *ret = (fetched){0};
    dep_status status = open_beside(x, cand->path, &fd, &st, &err);
    if (status == DEP_ERR_REFUSED) {
        ret->linked = true;
        status = file_open_at(x->rules->space->root, cand->path, FILE_LINKS_INSIDE, &fd, &st, &err);
    }
    if (status != DEP_OK && !alone && (err.os == EMFILE || err.os == ENFILE)) return -1;
    ret->state = FETCH_NOTHING;
    if (status != DEP_OK) {
        cut_failed(x, cand, ret, status, err.os);
        return -1;
    }
    x->open[batch].fds[x->open[batch].n++] = fd;
    if (!allowed(x, cand, fd, ret, &st)) return -1;
    int64_t changed = (int64_t)st.st_ctim.tv_sec * 1000 + st.st_ctim.tv_nsec / 1000000;
    ret->sig = sig_of(&st);
    ret->several = st.st_nlink > 1;
    ret->fresh = changed >= x->rules->now_ms - (st.st_ctim.tv_nsec ? TICK_MS : COARSE_TICK_MS);
    ret->state = FETCH_NOT_YET;
    return fd;
}

void fetch_ahead(const fetcher *x, int fd, const fetched *f) {
    // Nothing would mean all there is.
    size_t n = fetch_size(x->rules, &f->sig);
    if (n) (void)posix_fadvise(fd, 0, (off_t)n, POSIX_FADV_WILLNEED);
}

void fetch_close(fetcher *x, unsigned batch) {
    open_files *o = &x->open[batch];
    while (o->n) close(o->fds[--o->n]);
}

void fetch_end(fetcher *x) {
    fetch_close(x, 0);
    fetch_close(x, 1);
    if (x->dir_fd >= 0) close(x->dir_fd);
    x->dir_fd = -1;
    x->dir = (str){0};
}

// --- Text ---

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
static bool judge_decoded(const fetcher *x, const candidate *cand, fetched *f, const decoded *d, str bytes) {
    bool document = needs_converter(cand->path, bytes);
    if (d->binary || document) {
        note(x, f, false, document ? S("not text: needs a converter, and there is none yet") : S("binary"));
        return false;
    }
    bool utf8 = str_eq(str_z(d->encoding), S("UTF-8"));
    if (d->assumed && !utf8)
        note(x, f, false,
             str_fmt(x->turn, "read as %s (assumed%s)", d->encoding, d->lossy ? ", not all of it fits" : ""));
    else if (d->lossy)
        note(x, f, false, str_fmt(x->turn, "bytes that are not valid %s: shown as U+FFFD", d->encoding));
    return true;
}

str size_text(arena *a, size_t n) {
    if (n >= 1 << 20 && n % (1 << 20) == 0) return str_fmt(a, "%zu MiB", n >> 20);
    if (n >= 1 << 10 && n % (1 << 10) == 0) return str_fmt(a, "%zu KiB", n >> 10);
    return str_fmt(a, "%zu bytes", n);
}

// The bytes of an open file, and its text. *ret: what there is. False: there is none, or it was stopped.
static bool read_text(fetcher *x, const candidate *cand, int fd, fetched *f, str *ret) {
    size_t max = x->rules->max_file, size = f->sig.size > 0 ? (size_t)f->sig.size : 0;
    str encoding = x->rules->space->sources[cand->sources.p[0]].encoding, bytes;
    dep_err err = {0};
    dep_status status = file_read_sized(x->turn, fd, size, max + 1, true, &x->waited, x->stop, &bytes, &err);
    decoded d = {0};
    if (status == DEP_OK) {
        f->file.bytes = bytes.n;
        // By what was read: it may have grown since it was opened.
        if (bytes.n > max) {
            f->file.bytes = bytes.n = max;
            note(x, f, true,
                 str_fmt(x->turn, "over " STR_FMT ": head searched", STR_ARG(size_text(x->turn, max))));
            bytes = decode_whole(bytes, encoding);
        }
        status = decode_text_until(x->turn, bytes, encoding, x->stop, &d, &err);
    }
    if (status == DEP_ERR_CANCELLED) return false;
    f->state = FETCH_NOTHING;
    if (status != DEP_OK) {
        const char *text = err.os ? system_text(err.os) : err.msg;
        cut(x, f, true, str_fmt(x->turn, "unreadable: %s", text));
        f->unread = true;
        return false;
    }
    if (!judge_decoded(x, cand, f, &d, bytes)) return false;
    if (d.text.n > CORPUS_FILE_CEILING) {
        note(x, f, true, S("over 256 MiB as UTF-8: head searched"));
        d.text = utf8_cut(d.text, CORPUS_FILE_CEILING);
    }
    *ret = d.text;
    return true;
}

// Which runs of bytes are common: parts of the texts tell.
static void sample(fetcher *x, str folded) {
    const unsigned char *s = (const unsigned char *)folded.p;
    for (size_t from = 0; from + 2 < folded.n; from += SAMPLE_EACH) {
        size_t to = from + SAMPLE < folded.n - 2 ? from + SAMPLE : folded.n - 2;
        for (size_t i = from; i < to; i++) {
            x->two[two_bytes(s + i)]++;
            x->three[three_bytes(s + i)]++;
        }
        if (stop_after(x->stop, SAMPLE * SAMPLE_WORK)) break;
    }
    x->counted += folded.n;
}

dep_status fetch_text(fetcher *x, const candidate *cand, int fd, fetched *ret, dep_err *err) {
    str text;
    corpus_parts parts;
    if (arena_used(x->turn) > TURN_BYTES) arena_reset(x->turn);
    if (!read_text(x, cand, fd, ret, &text)) return DEP_OK;
    ret->state = FETCH_NOT_YET;
    corpus_prepare(x->turn, cand->path, text, x->rules->bare, x->stop, &parts);
    size_t bytes = ret->file.bytes;
    dep_status status = corpus_keep(&parts, &x->slabs, &ret->file, err);
    ret->file.bytes = bytes;
    if (status == DEP_ERR_CANCELLED) return DEP_OK;
    if (status != DEP_OK) return status;
    ret->state = FETCH_TEXT;
    if (x->two) sample(x, ret->file.folded);
    return DEP_OK;
}

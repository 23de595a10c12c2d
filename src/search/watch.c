// watch: hears from the kernel which directories' contents have changed (inotify). Whatever it cannot tell
// for certain (an overflow, a directory that went, a mount that came or went) counts as a change of
// everything. Knows directories and names, not what they mean. What inotify never tells: writes through a
// mapping, writes through another hard link, changes behind links; whoever uses it looks at those in another
// way.
#include "search/watch_int.h"
#include <deputy/file.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/vfs.h>
#include <unistd.h>

enum : uint32_t {
    TOLD = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |
           IN_DELETE_SELF | IN_MOVE_SELF,
};
enum { SLOTS_FIRST = 256, EVENT_BYTES = 64 * 1024 };

// One directory of one owner; several owners, and several names, may have one descriptor.
typedef struct place place;
struct place {
    place *next;
    watch_owner *owner;
    uint64_t round;
    int wd;
    char path[]; // with a NUL
};

struct watcher {
    int fd, mounts; // -1: none
    bool tried;
    place **slots; // by descriptor
    size_t n_slots, n;
    watch_owner **owners;
    size_t n_owners, cap_owners;
};

watcher *watch_new(void) {
    watcher *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->fd = w->mounts = -1;
    return w;
}

static place **slot_of(watcher *w, int wd) {
    return &w->slots[(unsigned)wd & (w->n_slots - 1)];
}

void watch_clear(watch_owner *o) {
    for (size_t i = 0; i < o->n_paths; i++) free(o->paths[i]);
    o->n_paths = 0;
    o->all = false;
}

void watch_free(watcher *w) {
    if (!w) return;
    for (size_t i = 0; i < w->n_slots; i++)
        for (place *p = w->slots[i], *next; p; p = next) {
            next = p->next;
            free(p);
        }
    free(w->slots);
    free(w->owners);
    if (w->fd >= 0) close(w->fd);
    if (w->mounts >= 0) close(w->mounts);
    free(w);
}

void watch_blind(watcher *w) {
    w->tried = true;
}

// --- The table ---

static bool grow(watcher *w) {
    if (w->n < w->n_slots) return true;
    size_t n = w->n_slots ? w->n_slots * 2 : SLOTS_FIRST, was = w->n_slots;
    place **old = w->slots, **slots = calloc(n, sizeof *slots);
    if (!slots) return false;
    w->slots = slots;
    w->n_slots = n;
    for (size_t i = 0; i < was; i++)
        for (place *p = old[i], *next; p; p = next) {
            next = p->next;
            place **to = slot_of(w, p->wd);
            p->next = *to;
            *to = p;
        }
    free(old);
    return true;
}

static bool has_wd(watcher *w, int wd) {
    for (place *p = *slot_of(w, wd); p; p = p->next)
        if (p->wd == wd) return true;
    return false;
}

// Takes out the places of an owner that are older than its round; a directory that nobody has any more is not
// watched any longer.
static void sweep(watcher *w, watch_owner *o, uint64_t round) {
    for (size_t i = 0; i < w->n_slots; i++)
        for (place **at = &w->slots[i]; *at;) {
            place *p = *at;
            if (p->owner != o || p->round >= round) {
                at = &p->next;
                continue;
            }
            *at = p->next;
            w->n--;
            if (!has_wd(w, p->wd)) (void)inotify_rm_watch(w->fd, p->wd);
            free(p);
        }
}

static void add_owner(watcher *w, watch_owner *o) {
    if (o->used) return;
    if (w->n_owners == w->cap_owners) {
        size_t cap = w->cap_owners ? w->cap_owners * 2 : 8;
        watch_owner **p = realloc(w->owners, cap * sizeof *p);
        if (!p) return;
        w->owners = p;
        w->cap_owners = cap;
    }
    w->owners[w->n_owners++] = o;
    o->used = true;
}

void watch_begin(watcher *w, watch_owner *o) {
    add_owner(w, o);
    o->round++;
}

void watch_end(watcher *w, watch_owner *o) {
    sweep(w, o, o->round);
}

void watch_forget(watcher *w, watch_owner *o) {
    sweep(w, o, UINT64_MAX);
    for (size_t i = 0; i < w->n_owners; i++)
        if (w->owners[i] == o) w->owners[i--] = w->owners[--w->n_owners];
    o->used = false;
    watch_clear(o);
}

// --- Watching ---

// Others write there without this kernel's knowledge.
static bool is_remote(int fd) {
    static const uint32_t kinds[] = {
        0x6969 /* NFS */,       0x517B /* SMB */,        0xFF534D42 /* CIFS */,   0xFE534D42 /* SMB2 */,
        0x65735546 /* FUSE */,  0x01021997 /* 9P */,     0x00C36400 /* Ceph */,   0x5346414F /* AFS */,
        0x6B414653 /* kAFS */,  0x564C /* NCP */,        0x73757245 /* Coda */,   0x0BD00BD0 /* Lustre */,
        0x47504653 /* GPFS */,  0x19830326 /* BeeGFS */, 0xAAD7AAEA /* PanFS */,  0x01161970 /* GFS2 */,
        0x7461636F /* OCFS2 */, 0x786F4256 /* vboxsf */, 0xBACBACBC /* vmhgfs */,
    };
    struct statfs s;
    if (fstatfs(fd, &s) != 0) return true;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((uint32_t)s.f_type == kinds[i]) return true;
    return false;
}

static const char *start(watcher *w) {
    if (!w->tried) {
        w->tried = true;
        w->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        // A mount over a directory changes what is there and is told in no other way.
        int self = -1;
        if (w->fd >= 0 && dir_open(S("/proc/self"), &self, NULL) == DEP_OK) {
            if (file_open_at(self, S("mountinfo"), FILE_NO_LINKS, &w->mounts, NULL, NULL) != DEP_OK)
                w->mounts = -1;
            close(self);
        }
    }
    if (w->fd < 0) return "every file is looked at: this process may not watch for changes (inotify)";
    if (w->mounts < 0) return "every file is looked at: changed mounts cannot be told without /proc";
    return NULL;
}

const char *watch_dir(watcher *w, watch_owner *o, str path, int fd) {
    static const char no_memory[] = "every file is looked at: no memory to watch for changes";
    const char *why = start(w);
    if (why) return why;
    if (is_remote(fd)) return "every file is looked at: a network file system does not tell of changes";
    if (!o->used || !grow(w)) return no_memory;
    // By its descriptor: a name could lead elsewhere by now.
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int wd = inotify_add_watch(w->fd, link, TOLD | IN_ONLYDIR);
    if (wd < 0)
        return errno == ENOSPC ? "every file is looked at: no more directories can be watched "
                                 "(fs.inotify.max_user_watches)"
                               : "every file is looked at: a directory cannot be watched for changes";
    for (place *p = *slot_of(w, wd); p; p = p->next)
        if (p->wd == wd && p->owner == o && str_eq(str_z(p->path), path)) {
            p->round = o->round;
            return NULL;
        }
    place *p = malloc(sizeof *p + path.n + 1);
    if (!p) return no_memory;
    *p = (place){.owner = o, .round = o->round, .wd = wd};
    if (path.n) memcpy(p->path, path.p, path.n);
    p->path[path.n] = 0;
    place **to = slot_of(w, wd);
    p->next = *to;
    *to = p;
    w->n++;
    return NULL;
}

// --- Hearing ---

static void all_changed(watcher *w) {
    for (size_t i = 0; i < w->n_owners; i++) w->owners[i]->all = true;
}

static void changed(watch_owner *o, const char *dir, const char *name) {
    if (o->all) return;
    size_t n = strlen(dir), m = strlen(name), slash = n ? 1 : 0;
    char *path = malloc(n + slash + m + 1);
    if (!path || o->n_paths == WATCH_PATHS_MAX) {
        free(path);
        o->all = true;
        return;
    }
    memcpy(path, dir, n);
    if (slash) path[n] = '/';
    memcpy(path + n + slash, name, m + 1);
    for (size_t i = o->n_paths; i; i--)
        if (strcmp(o->paths[i - 1], path) == 0) {
            free(path);
            return;
        }
    o->paths[o->n_paths++] = path;
}

static void heard(watcher *w, const struct inotify_event *e) {
    if (e->mask & (IN_Q_OVERFLOW | IN_UNMOUNT)) {
        all_changed(w);
        return;
    }
    if (!w->n_slots) return;
    for (place *p = *slot_of(w, e->wd); p; p = p->next) {
        if (p->wd != e->wd) continue;
        // Of a directory, or one that went: what is below may be other than it was.
        if (!e->len || (e->mask & IN_ISDIR))
            p->owner->all = true;
        else
            changed(p->owner, p->path, e->name);
    }
}

void watch_drain(watcher *w) {
    if (w->fd < 0) return;
    struct pollfd mounts = {.fd = w->mounts, .events = POLLPRI};
    if (w->mounts >= 0 && poll(&mounts, 1, 0) > 0 && (mounts.revents & (POLLPRI | POLLERR))) all_changed(w);
    alignas(struct inotify_event) char bytes[EVENT_BYTES];
    for (;;) {
        ssize_t n = read(w->fd, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) {
            if (n < 0 && errno != EAGAIN) all_changed(w);
            return;
        }
        for (char *p = bytes; p < bytes + n;) {
            const struct inotify_event *e = (const struct inotify_event *)p;
            heard(w, e);
            p += sizeof *e + e->len;
        }
    }
}

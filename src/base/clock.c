// clock: time and randomness of the real world, behind members that a test replaces; times as text.
#include <deputy/sys.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

static int64_t clock_ms(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int64_t real_now(void *ctx) {
    (void)ctx;
    return clock_ms(CLOCK_REALTIME);
}

static int64_t real_mono(void *ctx) {
    (void)ctx;
    return clock_ms(CLOCK_MONOTONIC);
}

static void real_random(void *ctx, void *p, size_t n) {
    (void)ctx;
    for (char *to = p; n;) {
        ssize_t got = getrandom(to, n, 0);
        if (got < 0 && errno == EINTR) continue;
        // Ids and temporary names rest on it: no answer is better than a guessable one.
        if (got < 0) abort();
        to += got;
        n -= (size_t)got;
    }
}

const sys_clock *sys_clock_real(void) {
    static const sys_clock real = {.now_ms = real_now, .mono_ms = real_mono, .random = real_random};
    return &real;
}

// Seconds, rounded down, within the years 0000 to 9999.
static time_t whole_seconds(int64_t ms) {
    static const int64_t first = -62167219200, last = 253402300799;
    int64_t s = ms / 1000 - (ms % 1000 < 0);
    return s < first ? first : s > last ? last : s;
}

str time_utc(arena *a, int64_t ms) {
    time_t s = whole_seconds(ms);
    struct tm t = {0};
    gmtime_r(&s, &t);
    return str_fmt(a, "%04d-%02d-%02dT%02d:%02d:%02dZ", t.tm_year + 1900, t.tm_mon + 1, t.tm_mday, t.tm_hour,
                   t.tm_min, t.tm_sec);
}

// TZ may name any text as a zone, and the line goes into a prompt.
static str zone_name(const char *zone) {
    str z = str_z(zone);
    if (z.n > 12) return (str){0};
    for (size_t i = 0; i < z.n; i++) {
        char c = z.p[i];
        bool fine = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' ||
                    c == '-';
        if (!fine) return (str){0};
    }
    return z;
}

str time_local(arena *a, int64_t ms) {
    time_t s = whole_seconds(ms);
    struct tm t = {0};
    tzset();
    localtime_r(&s, &t);
    long off = t.tm_gmtoff;
    long minutes = (off < 0 ? -off : off) / 60;
    str zone = zone_name(t.tm_zone);
    return str_fmt(a, "%04d-%02d-%02d %02d:%02d " STR_FMT "%s(UTC%c%02ld:%02ld)", t.tm_year + 1900,
                   t.tm_mon + 1, t.tm_mday, t.tm_hour, t.tm_min, STR_ARG(zone), zone.n ? " " : "",
                   off < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

str sys_id(arena *a, const sys_clock *c) {
    unsigned char r[16];
    c->random(c->ctx, r, sizeof r);
    char *p = arena_alloc(a, 2 * sizeof r + 1);
    for (size_t i = 0; i < sizeof r; i++) {
        p[2 * i] = "0123456789abcdef"[r[i] >> 4];
        p[2 * i + 1] = "0123456789abcdef"[r[i] & 15];
    }
    return (str){p, 2 * sizeof r};
}

// curl_floor: what delegations cost at least: the same requests by libcurl, the same syncs, and nothing else.
//   curl_floor --url URL [--turns N] [--at-once N] [--sizes N,…] [--syncs N] [--state DIR]
// Each of --at-once conversations sends --turns requests that are answered with a call of a tool, and one
// that is answered with a report (see stub.c). The request of turn i has the i-th of --sizes bytes: the
// conversation grows by an answer and a result, as one that is led by an agent. One conversation is a loop of
// curl_easy_perform, several are one curl_multi on one thread. --syncs fdatasyncs of a file in --state are
// spread over all of it, each after a page of 4 KiB. Of an answer nothing is looked at but its end. Prints
// JSON: milliseconds, KiB. Knows nothing of Deputy.
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SIZES_MAX = 4096, GROWTH = 4096 };

static const char start[] =
    "{\"model\":\"model\",\"max_tokens\":8192,\"stream\":true,\"tools\":[{\"name\":\"read\"},"
    "{\"name\":\"kb_search\"}],\"messages\":[{\"role\":\"user\",\"content\":\"stub:turns=%lu ";
static const char grown[] =
    ",{\"role\":\"assistant\",\"content\":[{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":\"read\","
    "\"input\":{}}]},"
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1\",\"content\":\"";
static const char end_event[] = "\"type\":\"message_stop\"";

typedef struct {
    CURL *easy;
    char *body;
    size_t n, turn;
    char tail[sizeof end_event]; // of what came, because an event may be cut by the pieces it comes in
    size_t tail_n;
    bool ended;
} job;

typedef struct {
    const char *url, *state;
    unsigned long turns, at_once, syncs;
    size_t sizes[SIZES_MAX], n_sizes;
    struct curl_slist *headers;
    int file;
    size_t requests, synced, received;
} floor_run;

[[noreturn]] static void die(const char *what, const char *why) {
    fprintf(stderr, "curl_floor: %s: %s\n", what, why);
    exit(1);
}

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

// VmHWM, and not the peak of getrusage: that one counts from the memory of whoever started this process.
static long peak_kib(void) {
    char line[256];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtol(line + 6, NULL, 10);
    if (status) fclose(status);
    return kib;
}

static size_t size_of(const floor_run *f, size_t turn) {
    if (turn < f->n_sizes) return f->sizes[turn];
    return (f->n_sizes ? f->sizes[f->n_sizes - 1] : 2 * GROWTH) + (turn + 1 - f->n_sizes) * GROWTH;
}

// The body of the job's turn: what was there, the new part, blanks up to the size that is asked for.
static void grow(const floor_run *f, job *j) {
    static const char closing[] = "\"}]}", closing_result[] = "\"}]}]}";
    char first[512];
    snprintf(first, sizeof first, start, f->turns);
    const char *part = j->turn ? grown : first, *close = j->turn ? closing_result : closing;
    size_t least = j->n + strlen(part) + strlen(close), size = size_of(f, j->turn);
    if (size < least) size = least;
    j->body = realloc(j->body, size + 1);
    if (!j->body) die("memory", strerror(errno));
    memcpy(j->body + j->n, part, strlen(part));
    memset(j->body + j->n + strlen(part), '.', size - least);
    memcpy(j->body + size - strlen(close), close, strlen(close) + 1);
    j->n = size - 2; // the list of messages goes on
    curl_easy_setopt(j->easy, CURLOPT_POSTFIELDS, j->body);
    curl_easy_setopt(j->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
    j->tail_n = 0;
    j->ended = false;
}

static size_t on_data(char *p, size_t size, size_t n, void *ctx) {
    job *j = ctx;
    n *= size;
    size_t keep = sizeof end_event - 2;
    if (n >= keep) {
        char seam[sizeof end_event * 2];
        memcpy(seam, j->tail, j->tail_n);
        memcpy(seam + j->tail_n, p, keep);
        j->ended = j->ended || memmem(seam, j->tail_n + keep, end_event, sizeof end_event - 1) ||
                   memmem(p, n, end_event, sizeof end_event - 1);
        memcpy(j->tail, p + n - keep, keep);
        j->tail_n = keep;
    } else {
        char all[sizeof end_event * 2];
        memcpy(all, j->tail, j->tail_n);
        memcpy(all + j->tail_n, p, n);
        size_t whole = j->tail_n + n;
        j->ended = j->ended || memmem(all, whole, end_event, sizeof end_event - 1);
        j->tail_n = whole < keep ? whole : keep;
        memcpy(j->tail, all + whole - j->tail_n, j->tail_n);
    }
    return n;
}

static void sync_some(floor_run *f, size_t requests) {
    static const char page[4096];
    size_t due = f->syncs * requests / ((f->turns + 1) * f->at_once);
    for (; f->synced < due; f->synced++)
        if (write(f->file, page, sizeof page) != sizeof page || fdatasync(f->file) != 0)
            die(f->state, strerror(errno));
}

// True: there is another turn.
static bool next(floor_run *f, job *j, CURLcode code) {
    long status = 0;
    curl_off_t bytes = 0;
    if (code != CURLE_OK) die(f->url, curl_easy_strerror(code));
    curl_easy_getinfo(j->easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(j->easy, CURLINFO_SIZE_DOWNLOAD_T, &bytes);
    if (status != 200 || !j->ended) die(f->url, "not a whole answer");
    f->received += (size_t)bytes;
    sync_some(f, ++f->requests);
    if (++j->turn > f->turns) return false;
    grow(f, j);
    return true;
}

static void begin(const floor_run *f, job *j) {
    j->easy = curl_easy_init();
    if (!j->easy) die("libcurl", "no handle");
    curl_easy_setopt(j->easy, CURLOPT_URL, f->url);
    curl_easy_setopt(j->easy, CURLOPT_HTTPHEADER, f->headers);
    curl_easy_setopt(j->easy, CURLOPT_POST, 1L);
    curl_easy_setopt(j->easy, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(j->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(j->easy, CURLOPT_WRITEFUNCTION, on_data);
    curl_easy_setopt(j->easy, CURLOPT_WRITEDATA, j);
    curl_easy_setopt(j->easy, CURLOPT_PRIVATE, j);
    grow(f, j);
}

static void run_one(floor_run *f, job *j) {
    while (next(f, j, curl_easy_perform(j->easy))) {}
}

static void run_many(floor_run *f, job *jobs) {
    CURLM *multi = curl_multi_init();
    for (size_t i = 0; i < f->at_once; i++) curl_multi_add_handle(multi, jobs[i].easy);
    for (size_t left = f->at_once; left;) {
        int running, queued;
        CURLMcode code = curl_multi_perform(multi, &running);
        for (CURLMsg *m; (m = curl_multi_info_read(multi, &queued));) {
            job *j;
            CURL *easy = m->easy_handle;
            CURLcode result = m->data.result;
            curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&j);
            curl_multi_remove_handle(multi, easy);
            if (next(f, j, result))
                curl_multi_add_handle(multi, easy);
            else
                left--;
        }
        if (code == CURLM_OK && left) code = curl_multi_poll(multi, NULL, 0, 1000, NULL);
        if (code != CURLM_OK) die(f->url, curl_multi_strerror(code));
    }
    for (size_t i = 0; i < f->at_once; i++) curl_easy_cleanup(jobs[i].easy);
    curl_multi_cleanup(multi);
}

static void take_sizes(floor_run *f, const char *list) {
    for (char *end; *list && f->n_sizes < SIZES_MAX; list = *end ? end + 1 : end) {
        f->sizes[f->n_sizes++] = strtoul(list, &end, 10);
        if (end == list) die("--sizes", "numbers with commas");
    }
}

static void take_options(floor_run *f, int argc, char **argv) {
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *name = argv[i], *value = argv[i + 1];
        if (strcmp(name, "--url") == 0)
            f->url = value;
        else if (strcmp(name, "--state") == 0)
            f->state = value;
        else if (strcmp(name, "--turns") == 0)
            f->turns = strtoul(value, NULL, 10);
        else if (strcmp(name, "--at-once") == 0)
            f->at_once = strtoul(value, NULL, 10);
        else if (strcmp(name, "--syncs") == 0)
            f->syncs = strtoul(value, NULL, 10);
        else if (strcmp(name, "--sizes") == 0)
            take_sizes(f, value);
        else
            die(name, "not an option; see the head of curl_floor.c");
    }
    if (!f->url || argc % 2 == 0 || !f->at_once) die("usage", "see the head of curl_floor.c");
}

int main(int argc, char **argv) {
    double from = now_ms();
    static floor_run f = {.at_once = 1, .state = "."};
    take_options(&f, argc, argv);
    char path[4096];
    snprintf(path, sizeof path, "%s/curl-floor.%d", f.state, getpid());
    f.file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (f.file < 0) die(path, strerror(errno));
    unlink(path); // it lives as long as this process
    curl_global_init(CURL_GLOBAL_DEFAULT);
    for (const char *const *h =
             (const char *const[]){"content-type: application/json", "anthropic-version: 2023-06-01",
                                   "x-api-key: none", "Expect:", NULL};
         *h; h++)
        f.headers = curl_slist_append(f.headers, *h);
    job *jobs = calloc(f.at_once, sizeof *jobs);
    if (!jobs) die("memory", strerror(errno));
    for (size_t i = 0; i < f.at_once; i++) begin(&f, &jobs[i]);
    if (f.at_once == 1) {
        run_one(&f, jobs);
        curl_easy_cleanup(jobs->easy);
    } else {
        run_many(&f, jobs);
    }
    for (size_t i = 0; i < f.at_once; i++) free(jobs[i].body);
    free(jobs);
    curl_slist_free_all(f.headers);
    curl_global_cleanup();
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("{\"wall\": %.3f, \"cpu\": %.3f, \"peak\": %ld, \"requests\": %zu, \"syncs\": %zu, \"received\": "
           "%zu}\n",
           now_ms() - from,
           (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3,
           peak_kib(), f.requests, f.synced, f.received);
    return 0;
}

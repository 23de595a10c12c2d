// delegations: runs N delegations at once in this process and prints what that took.
//   delegations DIR AGENT TASK N
// DIR is a workspace, AGENT a definition that is in effect there. N are started one after the other and
// waited for; then the state is opened again by itself and every row is looked at: what is not there is lost.
// Prints JSON: counts, milliseconds from the first start to the last end, CPU of the whole process, peak KiB
// before the first start and at the end.
#include <deputy/config.h>
#include <deputy/delegate.h>
#include <deputy/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { WAIT_MS = 600000 };

typedef struct {
    size_t completed, other, lost;
    int64_t turns, tool_calls;
    str reason; // of the first that did not complete
} outcome;

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double cpu_ms(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
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

static const char *from_environment(const char *name) {
    return getenv(name);
}

static int fail(const dep_err *err) {
    fprintf(stderr, "delegations: %s\n", err->msg);
    return 1;
}

static int64_t number(const json *report, str key) {
    int64_t n = 0;
    return json_int(json_get(report, key), 0, INT64_MAX, &n) ? n : 0;
}

// From the state as another process would find it.
static dep_status look(arena *a, workspace *w, const str *ids, size_t n, outcome *ret, dep_err *err) {
    store *s;
    TRY(store_open(a, w->dirs.state, w->root, true, w->clock, &s, err));
    for (size_t i = 0; i < n; i++) {
        delegation_row row;
        json *report;
        if (!s || store_delegation_get(a, s, ids[i], &row, err) != DEP_OK) {
            ret->lost++;
            continue;
        }
        bool fine = row.status == DELEG_COMPLETED;
        ret->completed += fine;
        ret->other += !fine;
        if (!fine && !ret->reason.n) ret->reason = row.end_reason;
        if (!row.report.n || json_parse(a, row.report, 0, &report, err) != DEP_OK) continue;
        ret->turns += number(report, S("turns"));
        ret->tool_calls += number(report, S("tool_calls"));
    }
    return DEP_OK;
}

static dep_status run_all(arena *a, workspace *w, const delegate_order *o, str *ids, size_t n, dep_err *err) {
    engine *e;
    TRY(engine_open(a, w, NULL, &e, err));
    bool *ended = NEW_N(a, bool, n);
    dep_status st = DEP_OK;
    for (size_t i = 0; i < n && st == DEP_OK; i++) st = engine_start(e, a, o, &ids[i], err);
    if (st == DEP_OK && !engine_wait(e, ids, n, false, WAIT_MS, ended, NULL, NULL))
        st = err_set(err, DEP_ERR_TIMEOUT, "not all had ended after %d s", WAIT_MS / 1000);
    engine_close(e);
    return st;
}

int main(int argc, char **argv) {
    uint64_t n;
    if (argc != 5 || !str_u64(str_z(argv[4]), CONFIG_RUNNING_MAX, &n) || n == 0)
        return fprintf(stderr, "usage: delegations DIR AGENT TASK N (1 to %d)\n", CONFIG_RUNNING_MAX), 2;
    arena *a = arena_new(), *later = arena_new();
    dep_err err;
    workspace *w, *again;
    workspace_opts wo = {.dir = str_z(argv[1]),
                         .getenv = from_environment,
                         .clock = sys_clock_real(),
                         .bodies = tools_bodies()};
    if (workspace_open(a, &wo, &w, &err) != DEP_OK) return fail(&err);
    delegate_order o = {.agent = str_z(argv[2]), .task = str_z(argv[3]), .role = ROLE_DELEGATE};
    str *ids = NEW_N(later, str, n);
    long before = peak_kib();
    double from = now_ms(), from_cpu = cpu_ms();
    if (run_all(later, w, &o, ids, n, &err) != DEP_OK) return fail(&err);
    double wall = now_ms() - from, cpu = cpu_ms() - from_cpu;
    long after = peak_kib();
    outcome out = {0};
    if (workspace_open(later, &wo, &again, &err) != DEP_OK ||
        look(later, again, ids, n, &out, &err) != DEP_OK)
        return fail(&err);
    printf("{\"delegations\": %zu, \"completed\": %zu, \"other\": %zu, \"lost\": %zu, \"turns\": %lld, "
           "\"tool_calls\": %lld, \"wall\": %.3f, \"cpu\": %.3f, \"before\": %ld, \"peak\": %ld}\n",
           (size_t)n, out.completed, out.other, out.lost, (long long)out.turns, (long long)out.tool_calls,
           wall, cpu, before, after);
    if (out.reason.n)
        fprintf(stderr, "delegations: one did not complete: " STR_FMT "\n", STR_ARG(out.reason));
    arena_free(later);
    arena_free(a);
    return out.completed != n;
}

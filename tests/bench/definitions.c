// definitions: loads, resolves and assembles N definitions and prints what that took.
//   definitions [N]
#include <deputy/capability.h>
#include <deputy/definition.h>
#include <deputy/prompt.h>
#include <deputy/tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static str text_of(arena *a, size_t i) {
    return str_fmt(
        a,
        "# Definition %zu of the measurement.\n"
        "name: agent-%zu\n"
        "description: Answers questions of kind %zu from the manuals\n"
        "tools: [read, glob, grep, use_skill]  # to look things up\n"
        "skills: [tone-guide]\n"
        "mcp: {servers: [crm]}\n"
        "knowledge:\n  - name: Manual\n    path: ./docs/**/*.md\n"
        "memory: private\nmaxTurns: 60\n"
        "permissions: {read: [docs]}\n"
        "prompt: |\n  You answer questions.\n  Search first, then read, then say what you found.\n",
        i, i, i);
}

int main(int argc, char **argv) {
    uint64_t n = 1000;
    if (argc > 1 && !str_u64(str_z(argv[1]), 1000000, &n)) return 2;
    arena *keep = arena_new();
    host h = {.workspace = S("/workspace"),
              .turns = 60,
              .minutes = 30,
              .tokens = 2000000,
              .default_model = S("quote/passages")};
    for (size_t i = 0; i < 32; i++) h.tools[i] = tools_bodies()[i];
    vec_push(keep, &h.skills,
             ((host_skill){.name = S("tone-guide"),
                           .description = S("How to write"),
                           .location = S(".deputy/skills/tone-guide/SKILL.md")}));
    double from = now_ms();
    size_t bytes = 0, bad = 0;
    for (size_t i = 0; i < n; i++) {
        definition def;
        grant g;
        prompt p;
        dep_err err;
        diags d = diags_new(keep);
        if (definition_parse(keep, S("x.yaml"), S("x.yaml"), LAYER_WORKSPACE, text_of(keep, i), false, &def,
                             NULL, &d, &err) != DEP_OK ||
            !def.valid || resolve(keep, &def, &h, ROLE_DELEGATE, &g, &d, &err) != DEP_OK ||
            assemble(keep, &g, &p, &err) != DEP_OK) {
            bad++;
            continue;
        }
        bytes += p.text.n;
    }
    double ms = now_ms() - from;
    struct rusage ru;
    getrusage(RUSAGE_SELF, &ru);
    printf(
        "{\"definitions\": %zu, \"failed\": %zu, \"prompt_bytes\": %zu, \"ms\": %.2f, \"peak_kib\": %ld}\n",
        (size_t)n, bad, bytes, ms, ru.ru_maxrss);
    arena_free(keep);
    return bad != 0;
}

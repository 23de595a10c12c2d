// fuzz_json: any bytes through the reader. What it accepts must come out of the canonical form unchanged,
// each value's slice must be the same value again, and the same bytes quoted as a string must read back.
#include <deputy/json.h>
#include <deputy/utf8.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool ok) {
    if (!ok) abort();
}

static str canonical(arena *a, const json *v) {
    buf b = buf_new(a, 0);
    json_canonical(&b, v);
    require(!b.over);
    return buf_str(&b);
}

// A refusal is an answer; an answer of another kind is a fault of ours.
static bool read(arena *a, str text, bool twins, json **ret) {
    dep_err err = {0};
    dep_status st = twins ? json_parse_twins(a, text, 0, ret, &err) : json_parse(a, text, 0, ret, &err);
    require(st == DEP_OK || ((st == DEP_ERR_PARSE || st == DEP_ERR_LIMIT) && err.msg[0]));
    return st == DEP_OK;
}

static void check_slices(arena *a, const json *v, int depth) {
    json *again = NULL;
    require(read(a, v->raw, true, &again));
    require(again->kind == v->kind && again->count == v->count);
    require(utf8_valid(v->s) && utf8_valid(v->key));
    if (depth == 0) return;
    size_t n = 0;
    for (const json *e = v->child; e; e = e->next) {
        n++;
        // Enough of a long list, or the time grows with the square.
        if (n <= 8) check_slices(a, e, depth - 1);
    }
    require(n == v->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *a = arena_new();
    str text = str_n((const char *)data, size);
    json *v = NULL, *again = NULL;
    if (read(a, text, false, &v)) {
        str once = canonical(a, v);
        require(read(a, once, false, &again));
        require(str_eq(canonical(a, again), once));
        check_slices(a, v, 4);
    } else {
        (void)read(a, text, true, &v);
    }
    buf quoted = buf_new(a, 0);
    json_quote(&quoted, text);
    require(read(a, buf_str(&quoted), false, &v));
    require(v->kind == JSON_STRING && str_eq(v->s, utf8_repair(a, text)));
    arena_free(a);
    return 0;
}

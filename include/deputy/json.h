// json: strict reading (our validator, then cJSON) and a writer. RFC 8259: no comments, no trailing commas,
// no duplicate keys, valid UTF-8, no lone surrogates, bounded depth and size. Strings keep U+0000. Look-ups
// are case-sensitive.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/err.h>
#include <deputy/str.h>

typedef enum {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_kind;

typedef struct json json;
struct json {
    json_kind kind;
    str key;      // in an object: the decoded member name
    str raw;      // the exact bytes of this value in the input (which must outlive the tree)
    str s;        // JSON_STRING: decoded text, U+0000 included
    double num;   // JSON_NUMBER
    json *child;  // first element or member
    json *next;   // sibling
    size_t count; // elements or members
};

// JSON_VALUES_MAX bounds the memory of a document of many tiny values.
enum : size_t { JSON_DEPTH_MAX = 256, JSON_SIZE_MAX = (size_t)64 << 20, JSON_VALUES_MAX = (size_t)1 << 20 };

// Parses one document; blanks around it are fine, a byte order mark is not. max_size 0 = JSON_SIZE_MAX.
// Errors: PARSE with "line L column C: …" (columns count code points), LIMIT for size, depth and number of
// values. A number too large for a double is an error; one that a double rounds keeps its digits in `raw`.
// The tree lives in `a`; raw slices, and strings and keys without escapes, point into `text`.
[[nodiscard]] dep_status json_parse(arena *a, str text, size_t max_size, json **ret, dep_err *err);
// As json_parse, but an object may hold a key more than once, as the RFC allows: to show what somebody sent,
// never to act on it. json_get finds the first one.
[[nodiscard]] dep_status json_parse_twins(arena *a, str text, size_t max_size, json **ret, dep_err *err);

const json *json_get(const json *o, str key); // NULL when absent or o is not an object
const json *json_at(const json *v, size_t i); // NULL when out of range or v is not an array
// The value when present and of that kind, else the default. Walks the members: for one look-up, not for
// loops.
str json_str(const json *o, str key, str dflt);
bool json_bool(const json *o, str key, bool dflt);
double json_num(const json *o, str key, double dflt);
// True only for a whole number within [min, max]; exact for all 64 bits when written without point and
// exponent.
bool json_int(const json *v, int64_t min, int64_t max, int64_t *ret);

// --- Writing: always valid, members in the order given, no blanks.
// -------------------------------------------------------- jw_obj(&w); jw_key(&w, S("a")); jw_int(&w, 1);
// jw_end_obj(&w);
typedef struct {
    buf *out;
    int depth;
    bool comma; // a value stands before the next one at this depth
} jw;
static inline jw jw_new(buf *out) {
    return (jw){.out = out};
}
void jw_obj(jw *w);
void jw_arr(jw *w);
void jw_end_obj(jw *w);
void jw_end_arr(jw *w);
void jw_key(jw *w, str key);
void jw_str(jw *w, str s); // invalid UTF-8 becomes U+FFFD; control characters are escaped
void jw_int(jw *w, int64_t v);
void jw_num(jw *w, double v); // shortest text that reads back equal; NaN and infinities as null
void jw_bool(jw *w, bool v);
void jw_null(jw *w);
void jw_raw(jw *w, str json_text); // a value that is JSON already
static inline void jw_kstr(jw *w, str k, str v) {
    jw_key(w, k);
    jw_str(w, v);
}
static inline void jw_kint(jw *w, str k, int64_t v) {
    jw_key(w, k);
    jw_int(w, v);
}
static inline void jw_kbool(jw *w, str k, bool v) {
    jw_key(w, k);
    jw_bool(w, v);
}
// Appends s as a JSON string with its quotes.
void json_quote(buf *out, str s);
// Canonical form: members sorted by key bytes, no blanks, numbers and strings as jw writes them (a whole
// number that neither 64 bits nor a double hold keeps its digits). For digests and comparisons.
void json_canonical(buf *out, const json *v);

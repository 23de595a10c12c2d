// err: what a function could not do. A status that callers branch on, and one sentence for a person.
// Lower layers return, they never log. Messages: one line, lower case, no blame, no repetition of the
// caller's context. `ret` parameters are untouched on failure, `err` is untouched on success.
#pragma once
#include <stdarg.h>

typedef enum {
    DEP_OK = 0,
    DEP_ERR_NOMEM,     // memory could not be had
    DEP_ERR_IO,        // the operating system said no; err.os has the errno
    DEP_ERR_NOT_FOUND, // the named thing is not there
    DEP_ERR_EXISTS,    // it is there already
    DEP_ERR_PARSE,     // the text does not follow its grammar
    DEP_ERR_INVALID,   // well formed, but not allowed to be so
    DEP_ERR_LIMIT,     // a named limit was passed
    DEP_ERR_REFUSED,   // policy, trust or a boundary refuses it
    DEP_ERR_BUSY,      // a lock is held by another process
    DEP_ERR_TIMEOUT,   // a wait ended without an answer
    DEP_ERR_CANCELLED, // a person or a caller stopped it
    DEP_ERR_NOT_YET,   // a reserved name whose meaning does not exist in this version
    DEP_ERR_NETWORK,   // no connection, or it broke
    DEP_ERR_PROVIDER,  // the model API answered with an error
    DEP_ERR_INTERNAL,  // a fault of Deputy's own
} dep_status;

enum { DEP_ERR_MSG_MAX = 1024 };

typedef struct {
    dep_status status;
    int os; // errno, or 0
    char msg[DEP_ERR_MSG_MAX];
} dep_err;

// Fills *err (may be NULL) and returns status, so that `return err_set(err, …)` reads well. Over-long text is
// cut at a character boundary.
[[gnu::format(printf, 3, 4)]] dep_status err_set(dep_err *err, dep_status status, const char *fmt, ...);
// As err_set with DEP_ERR_IO (ENOENT: NOT_FOUND, EEXIST: EXISTS, ENOMEM: NOMEM), appending the text of the
// errno.
[[gnu::format(printf, 3, 4)]] dep_status err_os(dep_err *err, int os, const char *fmt, ...);
// Puts "prefix: " before the message that is there.
[[gnu::format(printf, 2, 3)]] void err_prefix(dep_err *err, const char *fmt, ...);
// A stable lower-case word for a status, for JSON: "not_found".
const char *err_name(dep_status status);

#define TRY(expr)                                                                                            \
    do {                                                                                                     \
        dep_status try_status_ = (expr);                                                                     \
        if (try_status_ != DEP_OK) return try_status_;                                                       \
    } while (0)

// err: filling the caller's error object.
#include <deputy/err.h>
#include <deputy/str.h>
#include <deputy/utf8.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void cut_whole(char *msg, int n) {
    if (n < 0) {
        msg[0] = 0;
    } else if (n >= DEP_ERR_MSG_MAX) {
        str all = {msg, DEP_ERR_MSG_MAX - 1};
        memcpy(msg + utf8_cut(all, DEP_ERR_MSG_MAX - 4).n, "…", sizeof "…");
    }
}

dep_status err_set(dep_err *err, dep_status status, const char *fmt, ...) {
    if (!err) return status;
    // The arguments may point into err->msg itself, so the text is made aside.
    char msg[DEP_ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    cut_whole(msg, vsnprintf(msg, sizeof msg, fmt, ap));
    va_end(ap);
    err->status = status;
    err->os = 0;
    memcpy(err->msg, msg, sizeof msg);
    return status;
}

dep_status err_os(dep_err *err, int os, const char *fmt, ...) {
    dep_status status = DEP_ERR_IO;
    if (os == ENOENT) status = DEP_ERR_NOT_FOUND;
    if (os == EEXIST) status = DEP_ERR_EXISTS;
    if (os == ENOMEM) status = DEP_ERR_NOMEM;
    if (!err) return status;
    char msg[DEP_ERR_MSG_MAX], why[128];
    va_list ap;
    va_start(ap, fmt);
    cut_whole(msg, vsnprintf(msg, sizeof msg, fmt, ap));
    va_end(ap);
    err_set(err, status, "%s: %s", msg, strerror_r(os, why, sizeof why));
    err->os = os;
    return status;
}

void err_prefix(dep_err *err, const char *fmt, ...) {
    if (!err) return;
    char prefix[DEP_ERR_MSG_MAX];
    va_list ap;
    va_start(ap, fmt);
    cut_whole(prefix, vsnprintf(prefix, sizeof prefix, fmt, ap));
    va_end(ap);
    int os = err->os;
    err_set(err, err->status, "%s: %s", prefix, err->msg);
    err->os = os;
}

const char *err_name(dep_status status) {
    static const char *const names[] = {
        "ok",      "out_of_memory", "io",      "not_found", "exists",  "parse",   "invalid",  "limit",
        "refused", "busy",          "timeout", "cancelled", "not_yet", "network", "provider", "internal",
    };
    return (size_t)status < sizeof names / sizeof *names ? names[status] : "internal";
}

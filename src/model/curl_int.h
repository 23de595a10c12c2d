// curl: libcurl behind function pointers, loaded at the first request, so that programs that never speak to a
// network do not pay for its two dozen shared objects. Private to src/model.
#pragma once
#include <deputy/err.h>
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

typedef struct {
    typeof(curl_global_init) *global_init;
    typeof(curl_global_cleanup) *global_cleanup;
    typeof(curl_easy_init) *easy_init;
    typeof(curl_easy_cleanup) *easy_cleanup;
    typeof(curl_easy_setopt) *easy_setopt;
    typeof(curl_easy_getinfo) *easy_getinfo;
    typeof(curl_easy_pause) *easy_pause;
    typeof(curl_easy_strerror) *easy_strerror;
    typeof(curl_multi_init) *multi_init;
    typeof(curl_multi_cleanup) *multi_cleanup;
    typeof(curl_multi_add_handle) *multi_add_handle;
    typeof(curl_multi_remove_handle) *multi_remove_handle;
    typeof(curl_multi_setopt) *multi_setopt;
    typeof(curl_multi_socket_action) *multi_socket_action;
    typeof(curl_multi_info_read) *multi_info_read;
    typeof(curl_multi_strerror) *multi_strerror;
    typeof(curl_slist_append) *slist_append;
    typeof(curl_slist_free_all) *slist_free_all;
    typeof(curl_getdate) *getdate;
} curl_api;

// Loads the library (soname; NULL: libcurl.so.4) and initialises it. Each success is undone by
// global_cleanup; the library itself stays loaded, because TLS libraries leave exit handlers behind. Errors:
// NOT_FOUND naming the Debian package.
[[nodiscard]] dep_status curl_load(const char *soname, curl_api *ret, dep_err *err);

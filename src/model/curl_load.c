// curl_load: dlopen of libcurl. See curl_int.h.
#include "model/curl_int.h"
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
} wanted[] = {
    {"curl_global_init", offsetof(curl_api, global_init)},
    {"curl_global_cleanup", offsetof(curl_api, global_cleanup)},
    {"curl_easy_init", offsetof(curl_api, easy_init)},
    {"curl_easy_cleanup", offsetof(curl_api, easy_cleanup)},
    {"curl_easy_setopt", offsetof(curl_api, easy_setopt)},
    {"curl_easy_getinfo", offsetof(curl_api, easy_getinfo)},
    {"curl_easy_pause", offsetof(curl_api, easy_pause)},
    {"curl_easy_strerror", offsetof(curl_api, easy_strerror)},
    {"curl_multi_init", offsetof(curl_api, multi_init)},
    {"curl_multi_cleanup", offsetof(curl_api, multi_cleanup)},
    {"curl_multi_add_handle", offsetof(curl_api, multi_add_handle)},
    {"curl_multi_remove_handle", offsetof(curl_api, multi_remove_handle)},
    {"curl_multi_setopt", offsetof(curl_api, multi_setopt)},
    {"curl_multi_socket_action", offsetof(curl_api, multi_socket_action)},
    {"curl_multi_info_read", offsetof(curl_api, multi_info_read)},
    {"curl_multi_strerror", offsetof(curl_api, multi_strerror)},
    {"curl_slist_append", offsetof(curl_api, slist_append)},
    {"curl_slist_free_all", offsetof(curl_api, slist_free_all)},
    {"curl_getdate", offsetof(curl_api, getdate)},
};

dep_status curl_load(const char *soname, curl_api *ret, dep_err *err) {
    if (!soname) soname = "libcurl.so.4";
    void *lib = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
    if (!lib)
        return err_set(
            err, DEP_ERR_NOT_FOUND,
            "%s cannot be loaded (%s); it comes with the Debian package libcurl4: apt install libcurl4",
            soname, dlerror());
    curl_api api = {0};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *p = dlsym(lib, wanted[i].symbol);
        if (!p)
            return err_set(err, DEP_ERR_NOT_FOUND,
                           "%s has no %s; Deputy needs libcurl 7.66 or newer (Debian package libcurl4)",
                           soname, wanted[i].symbol);
        memcpy((char *)&api + wanted[i].offset, &p, sizeof p);
    }
    CURLcode code = api.global_init(CURL_GLOBAL_DEFAULT);
    if (code != CURLE_OK)
        return err_set(err, DEP_ERR_INTERNAL, "libcurl does not start: %s", api.easy_strerror(code));
    *ret = api;
    return DEP_OK;
}

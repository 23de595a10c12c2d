// chat_edit: dlopen of libedit. See chat_edit.h.
#include "cli/chat_edit.h"
#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *symbol;
    size_t offset;
} wanted[] = {
    {"el_init", offsetof(edit_api, init)},
    {"el_end", offsetof(edit_api, end)},
    {"el_wgets", offsetof(edit_api, gets)},
    {"el_set", offsetof(edit_api, set)},
    {"el_get", offsetof(edit_api, get)},
    {"el_resize", offsetof(edit_api, resize)},
    {"el_wline", offsetof(edit_api, line)},
    {"el_winsertstr", offsetof(edit_api, insert)},
    {"history_winit", offsetof(edit_api, history_new)},
    {"history_wend", offsetof(edit_api, history_end)},
    {"history_w", offsetof(edit_api, history)},
    {"el_wset", offsetof(edit_api, wset)},
};

dep_status chat_edit_load(const char *soname, edit_api *ret, dep_err *err) {
    if (!soname) soname = "libedit.so.2";
    void *lib = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return err_set(err, DEP_ERR_NOT_FOUND,
                       "%s cannot be loaded (%s); it comes with the Debian package libedit2: apt install "
                       "libedit2",
                       soname, dlerror());
    edit_api api = {0};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        void *p = dlsym(lib, wanted[i].symbol);
        if (!p)
            return err_set(err, DEP_ERR_NOT_FOUND,
                           "%s has no %s; Deputy needs libedit 3.1 or newer (Debian package libedit2)",
                           soname, wanted[i].symbol);
        memcpy((char *)&api + wanted[i].offset, &p, sizeof p);
    }
    *ret = api;
    return DEP_OK;
}

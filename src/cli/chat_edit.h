// chat_edit: libedit behind function pointers, loaded when a conversation begins on a terminal, so that other
// verbs pay nothing for it.
#pragma once
#include <deputy/err.h>
#include <histedit.h>

typedef struct {
    typeof(el_init) *init;
    typeof(el_end) *end;
    typeof(el_wgets) *gets;
    typeof(el_set) *set;
    typeof(el_get) *get;
    typeof(el_resize) *resize;
    typeof(el_wline) *line;
    typeof(el_winsertstr) *insert;
    typeof(history_winit) *history_new;
    typeof(history_wend) *history_end;
    typeof(history_w) *history;
    typeof(el_wset) *wset;
} edit_api;

// Loads the library (soname; NULL: libedit.so.2). It stays loaded. Errors: NOT_FOUND naming the Debian
// package.
[[nodiscard]] dep_status chat_edit_load(const char *soname, edit_api *ret, dep_err *err);

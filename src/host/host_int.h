// Shared by the files of this room.
#pragma once
#include <deputy/host.h>

// Setting key of a switch: "switch:<layer>:<identity>".
str switch_key(arena *a, def_layer layer, str identity);
str switch_value(const workspace *w, def_layer layer, str identity);
void host_confusables(workspace *w);
str worktree_main_checkout(arena *a, int root_fd, str root, str *why);

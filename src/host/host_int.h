// Shared by the files of this room.
#pragma once
#include <deputy/host.h>

void host_confusables(workspace *w);
str worktree_main_checkout(arena *a, int root_fd, str root, str *why);

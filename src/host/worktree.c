// host: a linked git worktree keeps its definitions and shares the main checkout's memory, when both sides
// say so: its `.git` file names <main>/.git/worktrees/<id>, whose `gitdir` file names this `.git` back, all
// with our owner. One side alone could be forged by a clone.
#include "host/host_int.h"
#include <deputy/file.h>
#include <unistd.h>

static str one_line(str s) {
    return str_trim(s);
}

str worktree_main_checkout(arena *a, int root_fd, str root, str *why) {
    enum { GIT_FILE_MAX = 4096 };
    str text, back;
    struct stat st;
    dep_err err;
    if (file_read_at(a, root_fd, S(".git"), FILE_NO_LINKS, GIT_FILE_MAX, &text, &st, &err) != DEP_OK)
        return (str){0};
    if (!str_starts(text, S("gitdir: "))) return (str){0};
    str gitdir = one_line(str_sub(text, 8, text.n));
    size_t at = str_find(gitdir, S("/.git/worktrees/"));
    if (at == SIZE_MAX) return (str){0}; // a submodule or a separate git directory: nothing shared
    str refused = S("this looks like a linked worktree, but its main checkout does not name it back: memory "
                    "is kept here");
    str main_root = str_sub(gitdir, 0, at),
        id = str_sub(gitdir, at + sizeof "/.git/worktrees/" - 1, gitdir.n);
    if (gitdir.p[0] != '/' || !id.n || str_chr(id, '/') != SIZE_MAX ||
        str_find(gitdir, S("/..")) != SIZE_MAX) {
        *why = refused;
        return (str){0};
    }
    int fd;
    struct stat back_st;
    if (dir_open(main_root, &fd, &err) != DEP_OK) {
        *why = refused;
        return (str){0};
    }
    str rel = str_fmt(a, ".git/worktrees/" STR_FMT "/gitdir", STR_ARG(id));
    struct stat root_st;
    dep_status read = file_read_at(a, fd, rel, FILE_NO_LINKS, GIT_FILE_MAX, &back, &back_st, &err);
    bool ours = fstat(fd, &root_st) == 0 && root_st.st_uid == geteuid() && st.st_uid == geteuid();
    close(fd);
    if (read != DEP_OK || !ours || back_st.st_uid != geteuid() ||
        !str_eq(one_line(back), path_join(a, root, S(".git")))) {
        *why = refused;
        return (str){0};
    }
    return main_root;
}

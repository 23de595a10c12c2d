// links: where a link that is not followed leads, for the person who reads that it is not. Looks, and opens
// nothing.
#include "skills/skills_int.h"
#include <unistd.h>

enum { TARGET_MAX = 512 };

str skill_link_target(arena *a, int dir, str path) {
    for (size_t at = 0; at < path.n;) {
        size_t slash = str_chr(str_sub(path, at, path.n), '/');
        size_t end = slash == SIZE_MAX ? path.n : at + slash;
        str prefix = str_sub(path, 0, end);
        char target[TARGET_MAX];
        // What stands before this component is no link, or it would have been found.
        ssize_t n = readlinkat(dir, str_cz(a, prefix), target, sizeof target);
        if (n > 0)
            return str_fmt(a, STR_FMT " -> " STR_FMT, STR_ARG(skill_shown(a, prefix)),
                           STR_ARG(skill_shown(a, str_n(target, (size_t)n))));
        at = end + 1;
    }
    return (str){0};
}

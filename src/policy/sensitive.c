// policy: files that often hold secrets (rule B5). Until cards exist they are denied to read, grep and
// kb_search with the reason.
#include <deputy/policy.h>

static bool istarts(str s, str prefix) {
    return s.n >= prefix.n && str_ieq(str_sub(s, 0, prefix.n), prefix);
}

const char *path_sensitive(str path) {
    str rest = path, part;
    bool more = true;
    while (more) {
        more = str_cut(rest, '/', &part, &rest);
        if (str_ieq(part, S(".git"))) return "inside .git, which may hold credentials";
        if (more) continue;
        if (istarts(part, S(".env"))) return "an environment file, which may hold secrets";
        if (part.n >= 4 && str_ieq(str_sub(part, part.n - 4, part.n), S(".pem"))) return "a key file";
        if (istarts(part, S("id_"))) return "named like a private key";
        if (str_ieq(part, S(".netrc")) || str_ieq(part, S(".npmrc"))) return "a file of credentials";
    }
    return NULL;
}

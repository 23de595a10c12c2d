// dirs: where Deputy's own files are, from the environment alone (rule B4). Makes and opens nothing.
#include <deputy/sys.h>

static str trimmed(str path) {
    while (path.n > 1 && path.p[path.n - 1] == '/') path.n--;
    return path;
}

// $name/deputy, else home/fallback/deputy. The XDG rules: empty is unset, relative is invalid and ignored.
static str xdg_dir(arena *a, const char *value, const char *name, str home, const char *fallback,
                   str *warning) {
    str base = str_z(value);
    if (base.n && base.p[0] != '/') {
        *warning = str_fmt(a, STR_FMT "%s%s is not an absolute path and is ignored", STR_ARG(*warning),
                           warning->n ? "; " : "", name);
        base = (str){0};
    }
    if (base.n == 0) base = str_fmt(a, STR_FMT "/%s", STR_ARG(home.n == 1 ? (str){0} : home), fallback);
    base = trimmed(base);
    return str_fmt(a, STR_FMT "/deputy", STR_ARG(base.n == 1 ? (str){0} : base));
}

dep_status sys_dirs_find(arena *a, const char *(*getenv_fn)(const char *), sys_dirs *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    str home = str_z(getenv_fn("HOME"));
    if (home.n == 0 || home.p[0] != '/')
        return err_set(err, DEP_ERR_INVALID, "HOME is %s; set it to the absolute path of your home directory",
                       home.n ? "not an absolute path" : "not set");
    sys_dirs d = {.home = str_dup(a, trimmed(home))};
    d.config = xdg_dir(a, getenv_fn("XDG_CONFIG_HOME"), "XDG_CONFIG_HOME", d.home, ".config", &d.warning);
    d.state = xdg_dir(a, getenv_fn("XDG_STATE_HOME"), "XDG_STATE_HOME", d.home, ".local/state", &d.warning);
    *ret = d;
    return DEP_OK;
}

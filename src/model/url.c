// url: what a provider's base URL may be. A grammar narrower than RFC 3986, so that no two parsers can read
// it differently: what decides here whether a key may travel must be what libcurl connects to. Private part
// of src/model.
#include "model/http_int.h"

static bool alnum(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool all_of(str s, const char *also) {
    for (size_t i = 0; i < s.n; i++)
        if (!alnum(s.p[i]) && (s.p[i] == 0 || !strchr(also, s.p[i]))) return false;
    return true;
}

// 127.x.x.x in plain decimal; every other spelling of an address is a name that is not loopback.
static bool loopback_v4(str host) {
    for (int i = 0; i < 4; i++) {
        str part;
        uint64_t v;
        bool more = str_cut(host, '.', &part, &host);
        if (more != (i < 3) || part.n > 3 || (part.n > 1 && part.p[0] == '0') || !str_u64(part, 255, &v))
            return false;
        if (i == 0 && v != 127) return false;
    }
    return true;
}

// host[:port], or [v6][:port].
static bool split_authority(str authority, str *host, bool *v6) {
    str port = {0};
    bool has_port;
    *v6 = str_starts(authority, S("["));
    if (*v6) {
        size_t end = str_chr(authority, ']');
        if (end == SIZE_MAX) return false;
        *host = str_sub(authority, 1, end);
        str rest = str_sub(authority, end + 1, authority.n);
        has_port = rest.n > 0;
        if (has_port && rest.p[0] != ':') return false;
        port = str_sub(rest, 1, rest.n);
    } else {
        has_port = str_cut(authority, ':', host, &port);
    }
    uint64_t number;
    if (has_port && (!str_u64(port, 65535, &number) || number == 0)) return false;
    return host->n > 0 && all_of(*host, *v6 ? ":." : "-._");
}

dep_status http_url_check(arena *a, str url, bool has_key, http_url *ret, dep_err *err) {
    http_url u = {0};
    str rest;
    if (str_ieq(str_sub(url, 0, 8), S("https://"))) {
        u.https = true;
        rest = str_sub(url, 8, url.n);
    } else if (str_ieq(str_sub(url, 0, 7), S("http://"))) {
        rest = str_sub(url, 7, url.n);
    } else {
        return err_set(err, DEP_ERR_INVALID, "the url '" STR_FMT "' begins with neither https:// nor http://",
                       STR_ARG(url));
    }
    size_t slash = str_chr(rest, '/');
    str authority = str_sub(rest, 0, slash),
        path = slash == SIZE_MAX ? (str){0} : str_sub(rest, slash, rest.n);
    // What stands before an '@' is a secret, so the url is not repeated here.
    if (str_chr(authority, '@') != SIZE_MAX)
        return err_set(err, DEP_ERR_INVALID,
                       "a url must not hold a user or password; the key has a setting of its own");
    bool v6;
    if (!split_authority(authority, &u.host, &v6) || !all_of(path, "/-._~"))
        return err_set(err, DEP_ERR_INVALID,
                       "'" STR_FMT "' is not a url of the form https://host[:port][/path]", STR_ARG(url));
    u.loopback = v6 ? str_eq(u.host, S("::1")) : str_ieq(u.host, S("localhost")) || loopback_v4(u.host);
    if (!u.https && !u.loopback && has_key)
        return err_set(err, DEP_ERR_REFUSED,
                       "the key would travel unencrypted to " STR_FMT
                       ": use https, or a server on this machine",
                       STR_ARG(u.host));
    u.host = str_dup(a, u.host);
    while (str_ends(url, S("/"))) url.n--;
    u.base = str_dup(a, url);
    *ret = u;
    return DEP_OK;
}

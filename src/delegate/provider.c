// delegate: the model that a delegation talks to, opened from the configuration, and every secret that the
// configuration holds.
#include "delegate/delegate_int.h"

// Every value that the configuration takes from the environment, and every key, also of the providers that
// this run does not use (rule B27). A variable that is not set has no value to hide.
static void collect_secrets(arena *a, const workspace *w, strs *secrets) {
    for (vec_each(const config_provider, p, &w->config.providers)) {
        str rest = p->key, whole, value;
        dep_err err;
        if (p->key.n && config_expand(a, p->key, w->getenv, &whole, &err) == DEP_OK)
            vec_push(a, secrets, whole);
        for (size_t at; (at = str_find(rest, S("${"))) != SIZE_MAX;) {
            rest = str_sub(rest, at, rest.n);
            size_t end = str_chr(rest, '}');
            if (end == SIZE_MAX) break;
            if (config_expand(a, str_sub(rest, 0, end + 1), w->getenv, &value, &err) == DEP_OK)
                vec_push(a, secrets, value);
            rest = str_sub(rest, end + 1, rest.n);
        }
    }
}

dep_status delegate_model_open(arena *a, workspace *w, str model, model_net *net, model_provider **ret,
                               str *model_name, strs *secrets, dep_err *err) {
    str provider;
    if (!str_cut(model, '/', &provider, model_name))
        return err_set(err, DEP_ERR_INVALID, "the model \"" STR_FMT "\" is not of the form provider/model",
                       STR_ARG(model));
    model_config mc = {.name = provider,
                       .api = provider,
                       .net = net,
                       .idle_ms = (int)(w->config.limits.idle_seconds * 1000)};
    if (!str_eq(provider, S("quote"))) {
        const config_provider *p = config_provider_get(&w->config, provider);
        if (!p)
            return err_set(err, DEP_ERR_NOT_FOUND,
                           "the provider \"" STR_FMT "\" of the model \"" STR_FMT
                           "\" is not configured; `deputy models add " STR_FMT "` does it",
                           STR_ARG(provider), STR_ARG(model), STR_ARG(provider));
        mc.api = p->api;
        mc.url = p->url;
        mc.max_tokens = p->max_tokens;
        mc.window = p->window;
        mc.params = p->params;
        mc.ca_file = p->ca_file;
        if (config_expand(a, p->key, w->getenv, &mc.key, err) != DEP_OK) {
            err_prefix(err, "the key of the provider \"" STR_FMT "\"", STR_ARG(provider));
            return err->status;
        }
    }
    collect_secrets(a, w, secrets);
    return model_open(a, &mc, w->clock, ret, err);
}

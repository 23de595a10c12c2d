// cli: models. What is configured; add a provider, choose the default, send one small request.
#include "cli/config_file.h"

static const struct {
    const char *name, *api, *key_env, *url;
} known[] = {
    {"anthropic", "anthropic", "ANTHROPIC_API_KEY", ""},
    {"openai", "openai", "OPENAI_API_KEY", ""},
    {"ollama", "openai", "", "http://127.0.0.1:11434/v1"},
};

static bool api_here(str api) {
    return str_eq(api, S("anthropic")) || str_eq(api, S("quote"));
}

static int list(cli *c) {
    const config *cfg = &c->w->config;
    buf b = buf_new(c->a, 0);
    jw w = jw_new(&b);
    str model = cfg->model.n ? cfg->model : S("quote/passages");
    if (c->json) {
        jw_obj(&w);
        jw_kstr(&w, S("default"), model);
        jw_key(&w, S("providers"));
        jw_arr(&w);
    }
    for (size_t i = 0; i <= cfg->providers.n; i++) {
        config_provider quote = {.name = S("quote"), .api = S("quote")};
        const config_provider *p = i ? &cfg->providers.p[i - 1] : &quote;
        str key, state = S("ready");
        dep_err err;
        if (!api_here(p->api)) {
            state = S("not yet: this version does not speak that API");
        } else if (p->key.n && config_expand(c->a, p->key, c->in->getenv, &key, &err) != DEP_OK) {
            state = str_dup(c->a, str_z(err.msg));
        }
        if (c->json) {
            jw_obj(&w);
            jw_kstr(&w, S("name"), p->name);
            jw_kstr(&w, S("api"), p->api);
            jw_kstr(&w, S("url"), p->url);
            jw_kstr(&w, S("state"), state);
            jw_end_obj(&w);
            continue;
        }
        cell(&b, p->name, 14), text(&b, " "), cell(&b, p->api, 18), safe(&b, state);
        if (p->url.n) text(&b, "  "), safe(&b, p->url);
        if (!i) text(&b, "  built in: quotes passages, is not a language model");
        text(&b, "\n");
    }
    if (c->json) {
        jw_end_arr(&w), jw_end_obj(&w);
        text(&b, "\n");
    } else {
        text(&b, "default: "), safe(&b, model), text(&b, "\n");
        if (!cfg->providers.n)
            text(&b, "connect one: deputy models add anthropic --key-env ANTHROPIC_API_KEY, then deputy "
                     "models use anthropic/MODEL\n");
    }
    out_buf(&b);
    return EXIT_FINE;
}

static int add(cli *c) {
    str name = arg(c, 1);
    if (!name.n)
        return usage_error(c, "usage: deputy models add NAME [--api API] [--url URL] [--key-env VARIABLE]");
    str api = opt_get(c, "api", (str){0}), url = opt_get(c, "url", (str){0}),
        key = opt_get(c, "key-env", (str){0});
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!str_eq(str_z(known[i].name), name)) continue;
        if (!api.n) api = str_z(known[i].api);
        if (!key.n) key = str_z(known[i].key_env);
        if (!url.n) url = str_z(known[i].url);
    }
    if (!api.n) return usage_error(c, "say which API it speaks: --api anthropic");
    if (!api_here(api)) {
        say(c, "the API \"" STR_FMT "\": not yet. This version speaks anthropic", STR_ARG(api));
        return EXIT_REFUSED;
    }
    for (size_t i = 0; i < key.n; i++)
        if (!((key.p[i] >= 'A' && key.p[i] <= 'Z') || (key.p[i] >= 'a' && key.p[i] <= 'z') ||
              (key.p[i] >= '0' && key.p[i] <= '9' && i) || key.p[i] == '_'))
            return usage_error(c,
                               "--key-env takes the name of an environment variable, never the key itself");
    buf v = buf_new(c->a, 0);
    text(&v, "{api: "), buf_add(&v, api);
    if (url.n) text(&v, ", url: "), buf_add(&v, yaml_scalar_text(c->a, url, true));
    if (key.n) text(&v, ", key: \"${"), buf_add(&v, key), text(&v, "}\"");
    text(&v, "}");
    str quoted = str_fmt(c->a, "providers.\"" STR_FMT "\"", STR_ARG(name));
    config_change change = {quoted, buf_str(&v)};
    int code = config_edit(c, &change, 1);
    if (code) return code;
    say(c, "wrote " STR_FMT, STR_ARG(config_path(c)));
    const char *value = key.n ? c->in->getenv(str_cz(c->a, key)) : "";
    if (!value || (!*value && key.n))
        say(c, "the environment variable " STR_FMT " is not set now", STR_ARG(key));
    say(c, "next: deputy models use " STR_FMT "/MODEL, then deputy models test", STR_ARG(name));
    return EXIT_FINE;
}

static int use(cli *c) {
    str model = arg(c, 1), provider, rest;
    if (!model.n || !str_cut(model, '/', &provider, &rest) || !provider.n || !rest.n)
        return usage_error(c, "usage: deputy models use PROVIDER/MODEL");
    if (!str_eq(provider, S("quote")) && !config_provider_get(&c->w->config, provider)) {
        say(c, "the provider \"" STR_FMT "\" is not configured; `deputy models add " STR_FMT "` does it",
            STR_ARG(provider), STR_ARG(provider));
        return EXIT_ERRORS;
    }
    config_change change = {S("model"), yaml_scalar_text(c->a, model, true)};
    int code = config_edit(c, &change, 1);
    if (!code) say(c, "the default model is " STR_FMT, STR_ARG(model));
    return code;
}

static int test(cli *c) {
    str model = opt_get(c, "model", (str){0}), name = arg(c, 1), provider, rest;
    if (!model.n) model = c->w->config.model;
    if (name.n && str_chr(name, '/') != SIZE_MAX) model = name;
    if (name.n && str_chr(name, '/') == SIZE_MAX && str_chr(model, '/') == SIZE_MAX && model.n)
        model = str_fmt(c->a, STR_FMT "/" STR_FMT, STR_ARG(name), STR_ARG(model));
    if (!model.n)
        return usage_error(
            c, "say which: deputy models test PROVIDER/MODEL, or choose a default with `models use`");
    str_cut(model, '/', &provider, &rest);
    if (name.n && str_chr(name, '/') == SIZE_MAX && !str_eq(name, provider))
        return usage_error(c, "the default model is " STR_FMT "; add --model MODEL to test " STR_FMT,
                           STR_ARG(model), STR_ARG(name));
    if (str_eq(provider, S("quote"))) {
        say(c, "quote needs no test: it is built in and calls nobody");
        return EXIT_FINE;
    }
    model_provider *p;
    strs secrets = {0};
    dep_err err;
    str model_name;
    if (delegate_model_open(c->a, c->w, model, &p, &model_name, &secrets, &err) != DEP_OK)
        return fail(c, &err);
    model_messages messages = {0};
    model_message m = {.role = ROLE_USER};
    vec_push(c->a, &m.blocks,
             ((model_block){.kind = BLOCK_TEXT, .text = S("Answer with the one word: ready")}));
    vec_push(c->a, &messages, m);
    model_request req = {.model = model_name, .messages = &messages, .max_tokens = 64};
    model_sink sink = {0};
    model_reply reply = {0};
    int64_t from = c->in->clock->mono_ms(c->in->clock->ctx);
    if (model_call(p, c->a, &req, &sink, &reply, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    safe(&b, model);
    buf_addf(&b, " answered in %lld ms: ", (long long)(c->in->clock->mono_ms(c->in->clock->ctx) - from));
    for (vec_each(const model_block, block, &reply.blocks))
        if (block->kind == BLOCK_TEXT) safe(&b, utf8_cut_chars(block->text, 200));
    buf_addf(&b, "\n%lld tokens in, %lld out; model reported: ", (long long)reply.usage.input,
             (long long)reply.usage.output);
    safe(&b, reply.model);
    text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

int verb_models(cli *c) {
    int code = need_workspace(c, true);
    str sub = arg(c, 0);
    if (code) return code;
    if (!sub.n || str_eq(sub, S("list"))) return list(c);
    if (str_eq(sub, S("add"))) return add(c);
    if (str_eq(sub, S("use"))) return use(c);
    if (str_eq(sub, S("test"))) return test(c);
    return usage_error(c, "models takes add, use or test, not \"" STR_FMT "\"", STR_ARG(sub));
}

// cli: models. What is configured; add a provider, choose the default, send one small request.
#include "cli/config_file.h"
#include <string.h>

// What a name alone says. Servers of one's own machine stand at their usual addresses and want no key.
static const struct {
    const char *name, *api, *key_env, *url;
} known[] = {
    {"anthropic", "anthropic", "ANTHROPIC_API_KEY", ""},
    {"openai", "openai", "OPENAI_API_KEY", ""},
    {"openai-responses", "openai-responses", "OPENAI_API_KEY", ""},
    {"openrouter", "openai", "OPENROUTER_API_KEY", "https://openrouter.ai/api/v1"},
    {"gemini", "openai", "GEMINI_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai"},
    {"deepseek", "openai", "DEEPSEEK_API_KEY", "https://api.deepseek.com/v1"},
    {"groq", "openai", "GROQ_API_KEY", "https://api.groq.com/openai/v1"},
    {"mistral", "openai", "MISTRAL_API_KEY", "https://api.mistral.ai/v1"},
    {"xai", "openai", "XAI_API_KEY", "https://api.x.ai/v1"},
    {"ollama", "openai", "", "http://127.0.0.1:11434/v1"},
    {"llama.cpp", "openai", "", "http://127.0.0.1:8080/v1"},
    {"lmstudio", "openai", "", "http://127.0.0.1:1234/v1"},
    {"vllm", "openai", "", "http://127.0.0.1:8000/v1"},
};

// The APIs that a provider in the config may name.
static const char *const *apis(void) {
    return keytab_find(config_keys(), S("providers.api"))->values;
}

static bool is_api(str api) {
    for (const char *const *v = apis(); *v; v++)
        if (str_eq(api, str_z(*v))) return true;
    return false;
}

static str api_names(arena *a) {
    buf b = buf_new(a, 0);
    for (const char *const *v = apis(); *v; v++)
        if (!str_eq(str_z(*v), S("quote"))) buf_addf(&b, "%s%s", b.n ? ", " : "", *v);
    return buf_str(&b);
}

static bool in_use(const config *cfg, const char *name, const char *key_env) {
    if (config_provider_get(cfg, str_z(name))) return true;
    for (vec_each(const config_provider, p, &cfg->providers))
        if (str_find(p->key, str_z(key_env)) != SIZE_MAX) return true;
    return false;
}

const char *provider_waiting(const cli *c, const char **var) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        const char *key = *known[i].key_env ? c->in->getenv(known[i].key_env) : NULL;
        if (!key || !*key || in_use(&c->w->config, known[i].name, known[i].key_env)) continue;
        *var = known[i].key_env;
        return known[i].name;
    }
    return NULL;
}

static void known_names(buf *b) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        buf_addf(b, "%s%s", i ? ", " : "", known[i].name);
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
        if (p->key.n && config_expand(c->a, p->key, c->in->getenv, &key, &err) != DEP_OK)
            state = str_dup(c->a, str_z(err.msg));
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
            text(&b,
                 "connect one: deputy models add anthropic --model MODEL, with the key in ANTHROPIC_API_KEY\n"
                 "or a server of this machine: deputy models add ollama --model MODEL\n"
                 "known by name: "),
                known_names(&b), text(&b, "\n");
    }
    out_buf(&b);
    return EXIT_FINE;
}

static bool word(str s, const char *also) {
    for (size_t i = 0; i < s.n; i++) {
        bool letter = (s.p[i] >= 'A' && s.p[i] <= 'Z') || (s.p[i] >= 'a' && s.p[i] <= 'z') || s.p[i] == '_';
        if (!letter && !(s.p[i] >= '0' && s.p[i] <= '9' && i) && (!i || !s.p[i] || !strchr(also, s.p[i])))
            return false;
    }
    return s.n > 0;
}

// What was given, completed by what is known of the name; EXIT_FINE when it can be used.
static int take_provider(cli *c, str name, model_config *mc, str *key_env) {
    dep_err err;
    mc->api = opt_get(c, "api", (str){0});
    mc->url = opt_get(c, "url", (str){0});
    *key_env = opt_get(c, "key-env", (str){0});
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!str_eq(str_z(known[i].name), name)) continue;
        if (!mc->api.n) mc->api = str_z(known[i].api);
        // Nobody's key goes to another address than its owner's unless that is said.
        if (!key_env->n && !mc->url.n) *key_env = str_z(known[i].key_env);
        if (!mc->url.n) mc->url = str_z(known[i].url);
    }
    if (!word(name, ".-"))
        return usage_error(c, "a provider's name has letters, digits, '.', '_' and '-', a letter first");
    if (!mc->api.n) {
        buf b = buf_new(c->a, 0);
        known_names(&b);
        return usage_error(
            c, "say which API it speaks: --api with one of " STR_FMT "; known without it: " STR_FMT,
            STR_ARG(api_names(c->a)), STR_ARG(buf_str(&b)));
    }
    if (key_env->n && !word(*key_env, ""))
        return usage_error(c, "--key-env takes the name of an environment variable, never the key itself");
    if (!is_api(mc->api))
        return usage_error(c, "there is no API \"" STR_FMT "\"; there are " STR_FMT, STR_ARG(mc->api),
                           STR_ARG(api_names(c->a)));
    // Opened once with a key that is none: a URL that could not be used is not written.
    model_provider *p;
    mc->name = name;
    mc->key = key_env->n ? S("none") : (str){0};
    return model_open(c->a, mc, c->in->clock, &p, &err) == DEP_OK ? EXIT_FINE : fail(c, &err);
}

static int add(cli *c) {
    str name = arg(c, 1), key_env, model = opt_get(c, "model", (str){0});
    model_config mc = {0};
    if (!name.n)
        return usage_error(
            c, "usage: deputy models add NAME [--api API] [--url URL] [--key-env VARIABLE] [--model MODEL]");
    int code = take_provider(c, name, &mc, &key_env);
    if (code) return code;
    // Each value on its own: what stands beside them in the file stays.
    str at = str_fmt(c->a, "providers.\"" STR_FMT "\".", STR_ARG(name));
    config_change changes[4];
    size_t n = 0;
    changes[n++] = (config_change){.key = str_fmt(c->a, STR_FMT "api", STR_ARG(at)), .value = mc.api};
    if (mc.url.n)
        changes[n++] = (config_change){.key = str_fmt(c->a, STR_FMT "url", STR_ARG(at)),
                                       .value = yaml_scalar_text(c->a, mc.url, true)};
    if (key_env.n)
        changes[n++] = (config_change){.key = str_fmt(c->a, STR_FMT "key", STR_ARG(at)),
                                       .value = str_fmt(c->a, "\"${" STR_FMT "}\"", STR_ARG(key_env))};
    if (model.n) {
        model = str_fmt(c->a, STR_FMT "/" STR_FMT, STR_ARG(name), STR_ARG(model));
        changes[n++] = (config_change){.key = S("model"), .value = yaml_scalar_text(c->a, model, true)};
    }
    if ((code = config_edit(c, changes, n))) return code;
    say(c, "wrote " STR_FMT, STR_ARG(config_path(c)));
    const char *value = key_env.n ? c->in->getenv(str_cz(c->a, key_env)) : "";
    if (!value || (!*value && key_env.n))
        say(c, "the environment variable " STR_FMT " is not set now", STR_ARG(key_env));
    if (!key_env.n) say(c, "no key is sent; --key-env VARIABLE names one");
    if (model.n) {
        say(c, "the default model is " STR_FMT "; next: deputy models test", STR_ARG(model));
    } else {
        say(c, "next: deputy models use " STR_FMT "/MODEL, then deputy models test", STR_ARG(name));
    }
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
    config_change change = {.key = S("model"), .value = yaml_scalar_text(c->a, model, true)};
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
    if (delegate_model_open(c->a, c->w, model, NULL, &p, &model_name, &secrets, &err) != DEP_OK)
        return fail(c, &err);
    model_messages messages = {0};
    model_message m = {.role = ROLE_USER};
    vec_push(c->a, &m.blocks,
             ((model_block){.kind = BLOCK_TEXT, .text = S("Answer with the one word: ready")}));
    vec_push(c->a, &messages, m);
    // Room for a model that thinks before it says a word.
    enum { TEST_TOKENS = 1024 };
    model_request req = {.model = model_name, .messages = &messages, .max_tokens = TEST_TOKENS};
    model_sink sink = {0};
    model_reply reply = {0};
    int64_t from = c->in->clock->mono_ms(c->in->clock->ctx);
    if (model_call(p, c->a, &req, &sink, &reply, &err) != DEP_OK) return fail(c, &err);
    buf b = buf_new(c->a, 0);
    safe(&b, model);
    buf_addf(&b, " answered in %lld ms: ", (long long)(c->in->clock->mono_ms(c->in->clock->ctx) - from));
    size_t head = b.n;
    for (vec_each(const model_block, block, &reply.blocks))
        if (block->kind == BLOCK_TEXT) brief(&b, block->text, 200);
    if (b.n == head) text(&b, "(no text)");
    buf_addf(&b, "\n%lld tokens in, %lld out%s; model reported: ", (long long)reply.usage.input,
             (long long)reply.usage.output, reply.usage.estimated ? " (estimated)" : "");
    safe(&b, reply.model);
    text(&b, "\n");
    out_buf(&b);
    return EXIT_FINE;
}

int verb_models(cli *c) {
    str sub = arg(c, 0);
    bool writes = str_eq(sub, S("add")) || str_eq(sub, S("use"));
    int code = need_workspace(c, !writes); // a change prints what the file says afterwards
    if (code) return code;
    if (!sub.n || str_eq(sub, S("list"))) return list(c);
    if (str_eq(sub, S("add"))) return add(c);
    if (str_eq(sub, S("use"))) return use(c);
    if (str_eq(sub, S("test"))) return test(c);
    return usage_error(c, "models takes add, use or test, not \"" STR_FMT "\"", STR_ARG(sub));
}

// openai_window: the context window of a model, asked of the server. The API itself does not tell; servers
// that speak it do, each under another name and some at an address of their own. They are asked in turn until
// one answers. Knows nothing of conversations.
#include "model/openai_int.h"

enum { REFUSED_MAX = 2 };

// Beneath the versioned address, or (own) beside it. The id of the model follows a path that ends in a slash.
static const struct {
    const char *path;
    bool own;
} places[] = {
    {"/models/", false}, {"/models", false}, {"/api/v0/models/", true}, // LM Studio
    {"/props", true},                                                   // llama.cpp
    {"/api/ps", true},                                                  // Ollama: the models that are loaded
};

// Tokens of one description of a model: what is loaded before what would be possible.
static bool tokens_of(const json *v, int64_t *tokens) {
    static const str keys[] = {S_INIT("loaded_context_length"), S_INIT("max_model_len"),
                               S_INIT("context_length"), S_INIT("context_window"),
                               S_INIT("max_context_length")};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_int(json_get(v, keys[i]), 1, MODEL_TOKENS_MAX, tokens)) return true;
    static const str inner[] = {S_INIT("meta"), S_INIT("default_generation_settings")};
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        if (json_int(json_get(json_get(v, inner[i]), S("n_ctx")), 1, MODEL_TOKENS_MAX, tokens)) return true;
    return false;
}

static bool is_named(const json *v, str model) {
    static const str keys[] = {S_INIT("id"), S_INIT("model"), S_INIT("name")};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        str name = json_str(v, keys[i], S(""));
        if (str_eq(name, model)) return true;
        // Ollama names the tag that was left out.
        if (str_ends(name, S(":latest")) && str_eq(str_sub(name, 0, name.n - 7), model)) return true;
    }
    return false;
}

static bool find_tokens(const json *answer, str model, int64_t *tokens) {
    if (tokens_of(answer, tokens)) return true;
    const json *data = json_get(answer, S("data")), *models = json_get(answer, S("models"));
    const json *lists[] = {data, models};
    for (size_t i = 0; i < 2; i++) {
        if (!lists[i] || lists[i]->kind != JSON_ARRAY) continue;
        for (const json *v = lists[i]->child; v; v = v->next)
            if (is_named(v, model) && tokens_of(v, tokens)) return true;
    }
    // A server of one model serves it under any name.
    return data && data->kind == JSON_ARRAY && data->count == 1 && tokens_of(data->child, tokens);
}

static str place_url(arena *a, const model_provider *p, size_t i, str model) {
    str base = p->url.base;
    if (places[i].own && str_ends(base, S("/v1"))) base.n -= 3;
    str url = places[i].own ? str_fmt(a, STR_FMT "%s", STR_ARG(base), places[i].path)
                            : model_api_url(a, p, places[i].path);
    if (!str_ends(url, S("/"))) return url;
    str id = model_url_segment(a, model);
    return str_fmt(a, STR_FMT STR_FMT, STR_ARG(url), STR_ARG(id));
}

dep_status openai_window(model_provider *p, arena *a, str model, const model_sink *sink, int64_t *tokens,
                         dep_err *err) {
    str headers[OPENAI_HEADERS];
    size_t n = openai_headers(a, p, headers);
    size_t n_places = openai_is_own(p) ? 1 : sizeof places / sizeof *places, refused = 0;
    for (size_t i = 0; i < n_places; i++) {
        json *answer;
        dep_err why;
        dep_status status = model_get_json(p, a, place_url(a, p, i, model), headers, n, sink, &answer, &why);
        // What refuses one question may answer the next, but not after a second refusal.
        if (status == DEP_ERR_PROVIDER) refused++;
        bool answered = status == DEP_OK || status == DEP_ERR_NOT_FOUND || status == DEP_ERR_PROVIDER;
        if (!answered || refused == REFUSED_MAX) return err_set(err, status, "%s", why.msg);
        if (status == DEP_OK && find_tokens(answer, model, tokens)) return DEP_OK;
    }
    return err_set(err, DEP_ERR_NOT_FOUND, STR_FMT ": the server does not tell the window of " STR_FMT,
                   STR_ARG(p->config.name), STR_ARG(model_foreign_message(a, p, model)));
}

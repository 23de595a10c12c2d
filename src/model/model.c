// model: the table of APIs, checked configurations, and what the clients share. Knows no wire format.
#include "model/model_int.h"
#include <deputy/utf8.h>
#include <time.h>

static const model_api *const apis[] = {&model_api_anthropic, &model_api_openai, &model_api_responses,
                                        &model_api_quote};

static const model_api *find_api(str name) {
    for (size_t i = 0; i < sizeof apis / sizeof *apis; i++)
        if (str_eq(name, str_z(apis[i]->api))) return apis[i];
    return NULL;
}

static str default_str(arena *a, str s, const char *dflt) {
    return s.n ? str_dup(a, s) : str_z(dflt);
}

// Goes into a header: a line break in it would begin another one.
static dep_status check_key(str name, str key, dep_err *err) {
    for (size_t i = 0; i < key.n; i++)
        if ((unsigned char)key.p[i] <= ' ' || key.p[i] == 127)
            return err_set(err, DEP_ERR_INVALID,
                           "the key of " STR_FMT " holds a blank, a line break or a control character",
                           STR_ARG(name));
    return DEP_OK;
}

dep_status model_open(arena *a, const model_config *c, const sys_clock *clock, model_provider **ret,
                      dep_err *err) {
    ARENA_CATCH(a, err);
    const model_api *api = find_api(c->api);
    if (!api)
        return err_set(err, DEP_ERR_INVALID,
                       "there is no api '" STR_FMT "'; there are: anthropic, openai, openai-responses, quote",
                       STR_ARG(c->api));
    model_provider *p = NEW(a, model_provider);
    p->api = api;
    p->clock = clock;
    p->config = (model_config){
        .name = default_str(a, c->name, api->api),
        .api = str_z(api->api),
        .url = default_str(a, c->url, api->default_url),
        .key = str_dup(a, c->key),
        .ca_file = str_dup(a, c->ca_file),
        .max_tokens = c->max_tokens ? c->max_tokens : MODEL_MAX_TOKENS_DEFAULT,
        .window = c->window,
        .params = str_dup(a, c->params),
        .net = c->net,
        .connect_ms = c->connect_ms ? c->connect_ms : MODEL_CONNECT_MS,
        .first_byte_ms = c->first_byte_ms ? c->first_byte_ms : MODEL_FIRST_BYTE_MS,
        .idle_ms = c->idle_ms ? c->idle_ms : MODEL_IDLE_MS,
        .retry_base_ms = c->retry_base_ms ? c->retry_base_ms : MODEL_RETRY_BASE_MS,
    };
    json *params;
    if (c->params.n && json_parse(a, p->config.params, 0, &params, err) == DEP_OK &&
        params->kind == JSON_OBJECT) {
        p->params = params;
    } else if (c->params.n) {
        return err_set(err, DEP_ERR_INVALID, "the parameters of " STR_FMT " are no JSON object",
                       STR_ARG(p->config.name));
    }
    if (api->default_url) {
        TRY(check_key(p->config.name, p->config.key, err));
        TRY(http_url_check(a, p->config.url, p->config.key.n > 0, &p->url, err));
        if (!p->config.net) p->config.net = model_net_new(a, clock);
        p->http = http_client_new(a, p->config.net);
    }
    *ret = p;
    return DEP_OK;
}

buf model_body(arena *a, const model_request *req) {
    enum { FRAME = 4096, BLOCK = 256 };
    size_t room = FRAME + req->system.n;
    for (size_t i = 0; i < req->n_tools; i++)
        room += BLOCK + req->tools[i].description.n + req->tools[i].schema.n;
    for (vec_each(const model_message, m, req->messages))
        for (vec_each(const model_block, b, &m->blocks))
            room += BLOCK + (b->raw.n ? b->raw.n : b->text.n + b->input.n + b->name.n);
    room += room / 8; // line ends and quotes take two bytes
    return (buf){.a = a, .p = arena_alloc(a, room), .cap = room, .max = BUF_MAX};
}

void model_params(jw *w, const model_provider *p) {
    for (const json *v = p->params ? p->params->child : NULL; v; v = v->next) {
        jw_key(w, v->key);
        jw_raw(w, v->raw);
    }
}

dep_status model_call(model_provider *p, arena *a, const model_request *req, const model_sink *sink,
                      model_reply *ret, dep_err *err) {
    ARENA_CATCH(a, err);
    *ret = (model_reply){0};
    if (model_cancelled(sink)) return err_set(err, DEP_ERR_CANCELLED, "stopped");
    return p->api->call(p, a, req, sink, ret, err);
}

bool model_is_local(const model_provider *p) {
    return p->http && p->url.loopback;
}

dep_status model_window(model_provider *p, arena *a, str model, const model_sink *sink, int64_t *tokens,
                        dep_err *err) {
    ARENA_CATCH(a, err);
    if (p->config.window > 0) {
        *tokens = p->config.window;
        return DEP_OK;
    }
    if (!p->api->window) return err_set(err, DEP_ERR_NOT_FOUND, "the API does not tell a model's window");
    return p->api->window(p, a, model, sink, tokens, err);
}

str model_tools_json(arena *a, str api, const model_tool *tools, size_t n) {
    const model_api *found = find_api(api);
    return found ? found->tools_json(a, tools, n) : (str){0};
}

str model_request_json(arena *a, const model_provider *p, const model_request *req) {
    return secret_redact(a, p->api->request_json(a, p, req), &p->config.key, 1);
}

bool model_cancelled(const model_sink *sink) {
    return sink && sink->cancelled && sink->cancelled(sink->ctx);
}

void model_tell_text(const model_sink *sink, str delta) {
    if (sink && sink->text) sink->text(sink->ctx, delta);
}

void model_tell_thinking(const model_sink *sink, str delta) {
    if (sink && sink->thinking) sink->thinking(sink->ctx, delta);
}

void model_tell_tool(const model_sink *sink, str id, str name) {
    if (sink && sink->tool) sink->tool(sink->ctx, id, name);
}

bool model_wait(const model_sink *sink, int64_t ms) {
    enum { SLICE_MS = 50 };
    for (;;) {
        if (model_cancelled(sink)) return false;
        if (ms <= 0) return true;
        int64_t slice = ms < SLICE_MS ? ms : SLICE_MS;
        nanosleep(&(struct timespec){.tv_nsec = slice * 1000000}, NULL);
        ms -= slice;
    }
}

int64_t model_backoff_ms(const model_provider *p, int attempt) {
    int64_t ms = p->config.retry_base_ms;
    for (int i = 0; i < attempt && ms < MODEL_RETRY_STEP_MAX_MS; i++) ms *= 2;
    if (ms > MODEL_RETRY_STEP_MAX_MS) ms = MODEL_RETRY_STEP_MAX_MS;
    // Between a half and the whole, so that many delegations that were refused together do not come back
    // together.
    uint32_t r;
    p->clock->random(p->clock->ctx, &r, sizeof r);
    return ms / 2 + (int64_t)(r % (uint64_t)(ms / 2 + 1));
}

str model_foreign_message(arena *a, const model_provider *p, str text) {
    if (p) text = secret_redact(a, text, &p->config.key, 1);
    return str_trim(foreign(a, str_trim(text), FOREIGN_LINE, MODEL_MESSAGE_CHARS));
}

void model_block_set_input(arena *a, model_block *b, str text) {
    json *parsed;
    str trimmed = str_trim(text);
    b->input = trimmed.n ? trimmed : S("{}");
    b->bad_input = json_parse(a, b->input, 0, &parsed, NULL) != DEP_OK || parsed->kind != JSON_OBJECT;
    if (b->bad_input) b->input = text;
}

void model_usage_add(model_usage *to, const model_usage *more) {
    to->input += more->input;
    to->output += more->output;
    to->cache_read += more->cache_read;
    to->cache_write += more->cache_write;
    to->estimated |= more->estimated;
}

bool model_reply_blank(const model_reply *r) {
    for (vec_each(const model_block, b, &r->blocks))
        if (b->kind == BLOCK_TEXT || b->kind == BLOCK_TOOL_USE) return false;
    return true;
}

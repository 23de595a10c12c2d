#include "support/api_fixture.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_server(api_fixture *r, const char *server, const char *replies, const char *gets) {
    str more = gets ? str_fmt(r->a, ",\"gets\":{%s}", gets) : (str){0};
    temp_write(r->dir, "script.json", str_fmt(r->a, "{\"replies\":[%s]%.*s}", replies, STR_ARG(more)));
    char *program = str_cz(r->a, str_fmt(r->a, "tests/support/%s", server));
    char *script = str_cz(r->a, str_fmt(r->a, "%s/script.json", r->dir));
    char *record = str_cz(r->a, str_fmt(r->a, "%s/requests.jsonl", r->dir));
    int out[2];
    assert_int_equal(pipe(out), 0);
    r->pid = fork();
    assert_true(r->pid >= 0);
    if (r->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], 1);
        close(out[0]);
        close(out[1]);
        execlp("python3", "python3", program, script, "--record", record, NULL);
        _exit(127);
    }
    close(out[1]);
    FILE *f = fdopen(out[0], "r");
    char line[64] = "";
    if (!fgets(line, sizeof line, f) || sscanf(line, "port %d", &r->port) != 1)
        fail_msg("the server says: %s", line);
    fclose(f);
}

api_fixture *api_begin(const char *server, const char *replies, const char *gets, const char *model,
                       model_config c) {
    arena *a = arena_new();
    api_fixture *r = NEW(a, api_fixture);
    r->a = a;
    r->dir = temp_dir();
    r->model = str_z(model);
    r->heard = buf_new(a, 0);
    if (replies) start_server(r, server, replies, gets);
    api_open(r, c, "");
    return r;
}

void api_end(api_fixture *r) {
    if (r->pid > 0) {
        kill(r->pid, SIGKILL);
        waitpid(r->pid, NULL, 0);
    }
    temp_remove(r->dir);
    arena_free(r->a);
}

void api_open(api_fixture *r, model_config c, const char *path) {
    if (c.url.n == 0) c.url = str_fmt(r->a, "http://127.0.0.1:%d%s", r->port, path);
    dep_status status = model_open(r->a, &c, sys_clock_real(), &r->p, &r->err);
    if (status != DEP_OK) fail_msg("%s", r->err.msg);
}

const json *api_requests(api_fixture *r, size_t *n) {
    char *path = str_cz(r->a, str_fmt(r->a, "%s/requests.jsonl", r->dir));
    str text = access(path, R_OK) == 0 ? read_all(path) : (str){0};
    str line, rest = text;
    buf joined = buf_new(r->a, 0);
    *n = 0;
    while (str_cut(rest, '\n', &line, &rest)) {
        buf_addf(&joined, "%s%.*s", *n ? "," : "[", STR_ARG(line));
        ++*n;
    }
    buf_add(&joined, *n ? S("]") : S("[]"));
    free((char *)text.p);
    json *all;
    assert_int_equal(json_parse(r->a, buf_str(&joined), 0, &all, NULL), DEP_OK);
    return all;
}

size_t api_request_count(api_fixture *r) {
    size_t n;
    api_requests(r, &n);
    return n;
}

static void hear_text(void *ctx, str delta) {
    buf_add(&((api_fixture *)ctx)->heard, delta);
}

static bool cancelled(void *ctx) {
    api_fixture *r = ctx;
    if (r->cancel_after == 0) return false;
    if (r->cancel_from && api_request_count(r) < r->cancel_from) return false;
    if (r->cancel_on_text && r->heard.n == 0) return false;
    return --r->cancel_after == 0;
}

dep_status api_call(api_fixture *r) {
    model_messages *m = NEW(r->a, model_messages);
    model_message message = {.role = ROLE_USER};
    model_block b = {.kind = BLOCK_TEXT, .text = S("task")};
    vec_push(r->a, &message.blocks, b);
    vec_push(r->a, m, message);
    model_sink sink = {.text = hear_text, .cancelled = cancelled, .ctx = r};
    model_request req = {.model = r->model, .system = S("You are."), .messages = m};
    buf_clear(&r->heard);
    return model_call(r->p, r->a, &req, &sink, &r->reply, &r->err);
}

str reply_text(const model_reply *r) {
    for (vec_each(const model_block, b, &r->blocks))
        if (b->kind == BLOCK_TEXT) return b->text;
    return (str){0};
}

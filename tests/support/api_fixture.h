// api_fixture: a scripted server of one API (fake_*.py), a provider for it, and what a caller hears.
#pragma once
#include "support/support.h"
#include <deputy/model.h>
#include <sys/types.h>

#define KEY "sk-test-0123456789"
// A reply of the script: an error whose message repeats the key.
#define ERROR(status, type, more)                                                                            \
    "{\"status\":" status ",\"error\":{\"type\":\"" type "\",\"message\":\"no " KEY " please\"}" more "}"

typedef struct {
    arena *a;
    char *dir;
    pid_t pid; // of the server; 0: none
    int port;
    str model; // that is called
    model_provider *p;
    buf heard;           // text
    int cancel_after;    // times the sink is asked until it says to stop; 0: never
    size_t cancel_from;  // they count once the server has had so many requests
    bool cancel_on_text; // and once some text was heard
    dep_err err;
    model_reply reply;
} api_fixture;

// server: a file of tests/support. replies, gets: what stands between the brackets of its script; NULL
// replies: no server, NULL gets: no such member.
api_fixture *api_begin(const char *server, const char *replies, const char *gets, const char *model,
                       model_config c);
void api_end(api_fixture *r);
// Another provider; one without an address gets the server's, followed by path.
void api_open(api_fixture *r, model_config c, const char *path);
// One call with a task; its reply and err are the fixture's.
dep_status api_call(api_fixture *r);
// What the server was asked, as it wrote it down.
const json *api_requests(api_fixture *r, size_t *n);
size_t api_request_count(api_fixture *r);
// The first text of a reply.
str reply_text(const model_reply *r);

// stream_fixture: a reply's bytes fed to the state machine of one API, without a network, and what came of
// them.
#pragma once
#include "model/model_int.h"
#include "support/support.h"

typedef struct {
    arena *a; // released by the test
    model_reply reply;
    dep_status status; // of feeding, else of the end
    dep_err err;
    model_stream *s;
    bool done;
    str heard; // what the sink got: [text], {thinking}, <id name> of calls
} outcome;

// w: open, feed and end. Bytes that come after the reply is done are fed too: they change nothing.
outcome stream_run(const model_wire *w, str bytes, size_t piece);

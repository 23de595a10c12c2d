// request_fixture: a conversation in neutral blocks, for the suites of the requests that the APIs get.
#pragma once
#include "support/support.h"
#include <deputy/model.h>

enum { REQUEST_TOOLS = 2 };
extern const model_tool request_tools[REQUEST_TOOLS]; // read and todo

model_block text_block(const char *s);
void message_add(arena *a, model_messages *m, model_role role, const model_block *blocks, size_t n);
#define ADD(a, m, role, ...)                                                                                 \
    do {                                                                                                     \
        const model_block blocks_[] = {__VA_ARGS__};                                                         \
        message_add((a), (m), (role), blocks_, sizeof blocks_ / sizeof *blocks_);                            \
    } while (0)

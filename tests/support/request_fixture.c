#include "support/request_fixture.h"

const model_tool request_tools[REQUEST_TOOLS] = {
    {S_INIT("read"), S_INIT("Reads a file."),
     S_INIT("{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}")},
    {S_INIT("todo"), S_INIT("Says \"what\"."), S_INIT("{\"type\":\"object\"}")},
};

model_block text_block(const char *s) {
    return (model_block){.kind = BLOCK_TEXT, .text = str_z(s)};
}

void message_add(arena *a, model_messages *m, model_role role, const model_block *blocks, size_t n) {
    model_message message = {.role = role};
    for (size_t i = 0; i < n; i++) vec_push(a, &message.blocks, blocks[i]);
    vec_push(a, m, message);
}

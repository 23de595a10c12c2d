// hands: threads that are kept for short work beside the caller's. Starting one takes as long as such work
// does.
#pragma once
#include <stddef.h>

typedef struct hands hands;

enum { HANDS_MOST = 64 };

// most: threads there may be, up to HANDS_MOST. Each is started when it is first needed, and then kept. NULL:
// no memory.
hands *hands_new(size_t most);
size_t hands_most(const hands *h);
// Waits for what they are at. Nobody may ask any more. NULL is fine.
void hands_free(hands *h);
// Runs run(ctx) on a thread beside the caller's. False: all are at work, or there is none, as with h NULL.
// Any number of threads may ask.
bool hands_lend(hands *h, void (*run)(void *ctx), void *ctx);
// What was lent for ctx and has not begun yet will not. False: it has, or nothing was.
bool hands_take_back(hands *h, const void *ctx);

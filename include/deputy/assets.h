// assets: files that travel inside the program. The bytes live as long as the process, belong to nobody and
// are exactly the bytes of the repository's files; tables are sorted by path. No logic here: what a file
// means is its reader's business.
#pragma once
#include <deputy/str.h>

typedef struct {
    str path;
    str bytes; // never empty
} asset;

// The bundled definitions (agents/). path: file name, "explorer.yaml".
const asset *assets_agents(size_t *n);
// The sample workspace of `deputy init --sample DIR`. path: target relative to DIR, "docs/faq.md" or
// ".deputy/agents/customer-service.yaml"; parents are not listed.
const asset *assets_sample(size_t *n);

// knowledge: a definition's sources as a search space, and a search result as text for a model. Read-only:
// nothing writes through it.
#pragma once
#include <deputy/arena.h>
#include <deputy/buf.h>
#include <deputy/definition.h>
#include <deputy/search.h>

typedef struct {
    int root; // workspace directory
    const def_source *sources;
    size_t n_sources;
    size_t max_bytes, max_file;
    // Files that belong to memory (rule B2), whatever their path; may be NULL.
    bool (*is_memory)(void *ctx, const struct stat *st);
    // Both or none, instead of is_memory: see workspace_memory_epoch.
    uint64_t (*memory_epoch)(void *ctx);
    bool (*was_memory)(void *ctx, const struct stat *st);
    void *ctx;
    bool (*cancelled)(void *ctx); // may be NULL
    void *cancel_ctx;
    search_cache *cache; // what is read is kept there; may be NULL
} knowledge_opts;

// Lives in `a`. Sensitive files (rule B5), memory and everything below .deputy are refused with their reason.
search_space knowledge_space(arena *a, const knowledge_opts *o);

// The answer of kb_search and memory_search (whose hits have no source), escaped as foreign text (rule B22):
//   [1] docs/manual.md:12 (Product manual) Refunds > Deadlines
//       Refunds are accepted within seven days of receipt.
//
//   2 hits shown of 5 matching lines; searched 12 files, 48210 bytes.
//   cut: binary file, not searched: 1 (docs/logo.md)
// sources: named when nothing was found.
void knowledge_text(buf *out, const search_result *r, str query, const strs *sources);

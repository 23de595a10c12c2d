// grant_fixture: one definition resolved on a host that is a plain value; for suites of capability.
#pragma once
#include "support/support.h"
#include <deputy/capability.h>

typedef struct {
    arena *a;
    host h;
    definition def;
    grant g;
    diags d;
} resolved;

// A host that has every tool, the provider `quote` and nothing else; no definition yet. Release with
// arena_free(r.a).
resolved grant_start(void);
// A definition with name, description and prompt, and these keys from line 4 on; the test fails when it has
// errors.
void grant_parse(resolved *r, def_layer layer, str keys);
void grant_resolve(resolved *r, agent_role role);
// All three, in the workspace's layer, as a delegate.
resolved grant_on_full(const char *keys);

// Tools in order: "read", "-read" when deferred, "read!" when it asks first.
str grant_tools_text(resolved *r);
void assert_tools(resolved *r, const char *want);
// The row of an item, or NULL.
const report_row *grant_row(const resolved *r, const char *dimension, const char *name);
// The item has a row of that state, with a reason that holds `says`.
void assert_row(const resolved *r, const char *dimension, const char *name, item_state state,
                const char *says);

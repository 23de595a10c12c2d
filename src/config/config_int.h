// Private to the config files.
#pragma once
#include <deputy/config.h>
#include <deputy/yaml.h>

// The parameters of a provider as a JSON object; empty when there are none. What cannot be sent is left out,
// and each such entry calls `refuse` with the reason and what to do.
typedef void params_refuse(const void *ctx, const ynode *at, str msg, str hint);
str params_json(arena *a, const ynode *map, params_refuse *refuse, const void *ctx);

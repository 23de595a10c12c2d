// config: settings of the system file ($XDG_CONFIG_HOME/deputy/config.yaml) and of the workspace file
// (.deputy/config.yaml). One key table with a column "where": a system key in a workspace file is an error
// and is not read (rule B8).
#pragma once
#include <deputy/arena.h>
#include <deputy/diag.h>
#include <deputy/err.h>
#include <deputy/keytab.h>

enum {
    CONFIG_FILE_MAX = 256 * 1024,
    CONFIG_PROVIDERS_MAX = 64,
    CONFIG_PRICES_MAX = 1024,
    CONFIG_AMOUNT_MAX = 1000000, // of a price and of limits.cost
    CONFIG_RUNNING = 16,         // limits.running where no file says anything
    CONFIG_RUNNING_MAX = 1000,
    CONFIG_PARAMS_MAX = 16,
    CONFIG_PARAM_NAME_MAX = 64,    // bytes
    CONFIG_PARAM_VALUE_MAX = 1024, // bytes
};
// `unlimited` as turns, minutes and tokens. More than any run reaches, and small enough to count with: its
// minutes fit into 64 bits as milliseconds. Never shown as a number.
enum : int64_t { CONFIG_UNLIMITED = 1000000000000 };

typedef struct {
    str name, api, url;
    str key;            // as written, with ${VAR}; never printed expanded
    int64_t max_tokens; // of one answer; 0: the client's default
    int64_t window;     // context window of its models, tokens; 0: ask the server
    str params;         // more members of a request, as a JSON object; empty: none
    str ca_file;
    str file;
    uint32_t line;
} config_provider;

typedef struct {
    int64_t turns, minutes, idle_seconds, tokens, tool_kib, run_kib; // budgets of a delegation
    int64_t search_total_mib, search_file_mib;
    int64_t running;    // delegations of one process at once
    int64_t cost_micro; // of a delegation, millionths of the unit of the prices; 0: none
    bool turns_set, minutes_set, tokens_set,
        cost_set; // written in a file: then no definition may ask for more
} config_limits;

// Millionths for a million tokens: so many tokens cost so many millionths of a millionth.
typedef struct {
    str model; // provider/model, or provider/*
    int64_t input, output, cache_read, cache_write;
    str file;
    uint32_t line;
} config_price;

typedef struct {
    int64_t days, count; // of ended delegations; 0: no bound
} config_retention;

typedef struct {
    str text, server, tool; // as in a definition's approval lists
    bool is_map;
    str file;
    uint32_t line;
} config_gate;

typedef struct {
    str model; // default model, provider/model
    str model_file;
    uint32_t model_line;
    VEC(config_provider) providers;
    VEC(config_price) prices;
    config_limits limits;
    config_retention retention;
    VEC(config_gate) confirm, review; // the default pair
    bool has_gates;
    str fault; // an error that may hide a restriction of these files, with its place: nothing may run; or
               // empty
} config;

const key_table *config_keys(void);
// turns 60, minutes 30, idle 120 s, tokens 2,000,000, tool output 256 KiB a call and 8 MiB a run, search 256
// MiB and 16 MiB a file, 16 delegations at once, 180 days.
config config_defaults(void);
// Reads one file over *into: first the system file, then the workspace's. A workspace file may name a model,
// and lower limits. A file whose YAML has errors is not read at all; a key with errors is not. system: which
// file it is. Codes beside those of yaml.h and keytab.h:
//   CFG001 a system key in a workspace file   CFG002 a workspace file that raises a limit
//   CFG003 not of the form provider/model     CFG004 a name that a provider cannot have
//   CFG005 a key written as plain text        (CFG006, CFG007 are of host)
//   CFG008 a price of what is no model        CFG009 a parameter that cannot be sent
[[nodiscard]] dep_status config_parse(arena *a, str file, str bytes, bool system, config *into, diags *d,
                                      dep_err *err);
// Replaces ${VAR} and ${VAR:-default}; `$$` is one dollar sign. Errors: NOT_FOUND naming the variable,
// INVALID for an open brace.
[[nodiscard]] dep_status config_expand(arena *a, str text, const char *(*getenv_fn)(const char *), str *ret,
                                       dep_err *err);
const config_provider *config_provider_get(const config *c, str name);

// The price of a model, "provider/model": its own, else that of provider/*; NULL: unknown. What `quote`
// answers costs nothing, whatever it is called. A run whose model is not the grant's asks for that one.
const config_price *config_price_get(const config *c, str model);
// What so many tokens cost, in millionths, rounded up once; INT64_MAX when 64 bits cannot hold it. A negative
// number counts as 0. input: without the cached ones.
int64_t config_cost_micro(const config_price *p, int64_t input, int64_t output, int64_t cache_read,
                          int64_t cache_write);
// Millionths for people, and as a JSON number: 2, 2.50, 0.000001.
str config_amount(arena *a, int64_t micro);

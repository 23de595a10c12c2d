// params: members of a provider's requests that are sent as they are written. It knows which names Deputy's
// clients write themselves, in any API; those are never taken, or a setting could change what is granted.
#include "config/config_int.h"
#include <deputy/json.h>

static const char *const own[] = {"model",
                                  "messages",
                                  "input",
                                  "instructions",
                                  "system",
                                  "stream",
                                  "stream_options",
                                  "tools",
                                  "tool_choice",
                                  "parallel_tool_calls",
                                  "functions",
                                  "function_call",
                                  "max_tokens",
                                  "max_completion_tokens",
                                  "max_output_tokens",
                                  "n",
                                  "store",
                                  "include",
                                  "background",
                                  "conversation",
                                  "previous_response_id"};
enum { OWN = sizeof own / sizeof *own };

static bool is_own(str name) {
    for (size_t i = 0; i < OWN; i++)
        if (str_eq(str_z(own[i]), name)) return true;
    return false;
}

static bool is_name(str s) {
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (!letter && !(i && ((c >= '0' && c <= '9') || c == '.'))) return false;
    }
    return s.n > 0 && s.n <= CONFIG_PARAM_NAME_MAX;
}

static str own_names(arena *a) {
    str names[OWN];
    for (size_t i = 0; i < OWN; i++) names[i] = str_z(own[i]);
    return str_join(a, names, OWN, S(", "));
}

// A plain number or boolean stays one; all else is text.
static void add_value(arena *a, jw *w, const ynode *v) {
    bool b;
    json *j;
    dep_err err;
    if (yaml_bool(v, &b)) {
        jw_bool(w, b);
    } else if (v->style == YSTYLE_PLAIN && json_parse(a, v->text, 0, &j, &err) == DEP_OK &&
               j->kind == JSON_NUMBER) {
        jw_raw(w, j->raw);
    } else {
        jw_str(w, v->text);
    }
}

str params_json(arena *a, const ynode *map, params_refuse *refuse, const void *ctx) {
    if (!map || map->kind != YAML_NODE_MAP) return (str){0};
    buf out = buf_new(a, 0);
    jw w = jw_new(&out);
    size_t n = 0;
    jw_obj(&w);
    for (const ynode *v = map->child; v && n < CONFIG_PARAMS_MAX; v = v->next) {
        str name = v->key->text;
        if (v->kind != YAML_NODE_SCALAR || yaml_is_null(v)) continue; // the table's check has said it
        if (!is_name(name)) {
            refuse(ctx, v, S("this cannot be a parameter's name"),
                   str_fmt(a, "1 to %d letters, digits, '_' and '.', a letter or '_' first",
                           CONFIG_PARAM_NAME_MAX));
        } else if (is_own(name)) {
            refuse(ctx, v, str_fmt(a, "`" STR_FMT "` is written by Deputy itself", STR_ARG(name)),
                   str_fmt(a, "remove it; not possible are " STR_FMT, STR_ARG(own_names(a))));
        } else if (v->text.n > CONFIG_PARAM_VALUE_MAX) {
            refuse(ctx, v,
                   str_fmt(a, "the parameter `" STR_FMT "` has %zu bytes; at most %d are possible",
                           STR_ARG(name), v->text.n, CONFIG_PARAM_VALUE_MAX),
                   (str){0});
        } else {
            jw_key(&w, name);
            add_value(a, &w, v);
            n++;
        }
    }
    jw_end_obj(&w);
    return n ? buf_str(&out) : (str){0};
}

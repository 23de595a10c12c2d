// Private to the keytab files.
#pragma once
#include <deputy/keytab.h>

// The row for a key: its own, or a prefix row ("x-*").
const key_row *keytab_row(const key_row *rows, str key);
bool keytab_is_prefix(const key_row *row);
// Edit distance when it counts as near, else SIZE_MAX.
size_t keytab_distance(str name, str key);
bool keytab_is_list(key_type t); // KEY_NAMES and its kin
static inline bool key_bounded_above(const key_row *r) {
    return r->max >= r->min && (r->max || r->min);
}

// halves: characters that a server cuts between the two escapes of one. Servers and proxies that count in
// UTF-16 do so. Knows no API.
#include "model/model_int.h"

// The four digits of an escape \uXXXX at s.p[i]; -1: there is none.
static int escape_at(str s, size_t i) {
    int value = 0;
    if (i + 6 > s.n || s.p[i] != '\\' || s.p[i + 1] != 'u') return -1;
    for (size_t k = i + 2; k < i + 6; k++) {
        char c = s.p[k];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static bool is_high(int c) {
    return c >= 0xD800 && c <= 0xDBFF;
}

static bool is_low(int c) {
    return c >= 0xDC00 && c <= 0xDFFF;
}

// Anything that is not such a half stays as it is, which is no JSON.
str model_join_halves(arena *a, arena *keep, str data, str *half) {
    buf out = buf_new(a, 0);
    size_t from = 0, i = 0;
    while (i < data.n) {
        int c = escape_at(data, i);
        if (c < 0) {
            i += data.p[i] == '\\' ? 2 : 1;
            continue;
        }
        bool ends = i + 6 < data.n && data.p[i + 6] == '"', begins = i > 0 && data.p[i - 1] == '"';
        if (is_high(c) && is_low(escape_at(data, i + 6))) {
            i += 12;
            continue;
        }
        if (is_high(c) && ends && half->n == 0) {
            buf_add(&out, str_sub(data, from, i));
            *half = str_dup(keep, str_sub(data, i, i + 6));
            from = i + 6;
        } else if (is_low(c) && begins && half->n) {
            buf_add(&out, str_sub(data, from, i));
            buf_add(&out, *half);
            *half = (str){0};
            from = i;
        }
        i += 6;
    }
    buf_add(&out, str_sub(data, from, data.n));
    return buf_str(&out);
}

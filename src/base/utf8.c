// utf8: decoding, validity, widths, cuts and properties of code points. Knows nothing of what the text means.
// Results are slices of the argument; only utf8_repair may allocate. ASCII, the common case, is skipped eight
// bytes at a time; properties come from utf8proc.
#include "base/utf8_int.h"
#include <utf8proc.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static inline const unsigned char *bytes_of(str s) {
    return (const unsigned char *)s.p;
}

#if defined(__x86_64__)
static __m128i load16(str s, size_t i) {
    return _mm_loadu_si128((const __m128i *)(s.p + i));
}

size_t utf8_ascii_run(str s, size_t from) {
    size_t i = from;
    for (; s.n - i >= 16; i += 16) {
        unsigned others = (unsigned)_mm_movemask_epi8(load16(s, i));
        if (others) return i + (unsigned)__builtin_ctz(others) - from;
    }
    while (i < s.n && bytes_of(s)[i] < 0x80) i++;
    return i - from;
}
#else
size_t utf8_ascii_run(str s, size_t from) {
    size_t i = from;
    for (; s.n - i >= 32; i += 32) {
        uint64_t w[4];
        memcpy(w, s.p + i, sizeof w);
        if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080u) break;
    }
    while (i < s.n && bytes_of(s)[i] < 0x80) i++;
    return i - from;
}
#endif

static uint64_t any_zero(uint64_t w) {
    return (w - 0x0101010101010101u) & ~w & 0x8080808080808080u;
}

size_t utf8_printable_run(str s, size_t from, char a, char b) {
    const uint64_t ones = 0x0101010101010101u, as = ones * (unsigned char)a, bs = ones * (unsigned char)b;
    size_t i = from;
    for (; s.n - i >= 8; i += 8) {
        uint64_t w;
        memcpy(&w, s.p + i, sizeof w);
        uint64_t low = (w - ones * 0x20) & ~w, bad = w | low | any_zero(w ^ ones * 0x7F);
        if (((bad | any_zero(w ^ as) | any_zero(w ^ bs)) & 0x8080808080808080u) != 0) break;
    }
    while (i < s.n && s.p[i] >= 0x20 && s.p[i] < 0x7F && s.p[i] != a && s.p[i] != b) i++;
    return i - from;
}

uint32_t utf8_next(str s, size_t *i) {
    return *i < s.n ? utf8_step(s, i) : UTF8_BAD;
}

uint32_t utf8_prev(str s, size_t *i) {
    if (*i == 0) return UTF8_BAD;
    size_t start = utf8_floor(s, *i - 1), at = start;
    uint32_t cp = utf8_next(s, &at);
    // A sequence that does not end exactly here is a stray byte.
    if (at != *i) {
        *i -= 1;
        return UTF8_BAD;
    }
    *i = start;
    return cp;
}

void utf8_put(buf *b, uint32_t cp) {
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) cp = UTF8_REPLACEMENT;
    char c[4];
    size_t n = 1;
    if (cp < 0x80) {
        c[0] = (char)cp;
    } else if (cp < 0x800) {
        c[0] = (char)(0xC0 | cp >> 6);
        n = 2;
    } else if (cp < 0x10000) {
        c[0] = (char)(0xE0 | cp >> 12);
        n = 3;
    } else {
        c[0] = (char)(0xF0 | cp >> 18);
        n = 4;
    }
    for (size_t k = 1; k < n; k++) c[k] = (char)(0x80 | (cp >> 6 * (n - 1 - k) & 0x3F));
    buf_add(b, str_n(c, n));
}

static void add_until(buf *out, str s, stop_sign *stop) {
    do {
        str part = str_sub(s, 0, STOP_EACH);
        buf_add(out, part);
        s = str_sub(s, part.n, s.n);
        if (stop_after(stop, part.n)) return;
    } while (s.n);
}

str utf8_repair(arena *a, str s) {
    return utf8_repair_until(a, s, NULL);
}

str utf8_repair_until(arena *a, str s, stop_sign *stop) {
    enum { WORK = 16 };
    size_t bad = utf8_invalid_until(s, stop);
    if (bad == SIZE_MAX) return s;
    buf out = buf_new(a, s.n * 3);
    size_t from = 0;
    while (bad != SIZE_MAX) {
        add_until(&out, str_sub(s, from, from + bad), stop);
        utf8_put(&out, UTF8_REPLACEMENT);
        from += bad + 1;
        if (stop_after(stop, WORK)) break;
        bad = utf8_invalid_until(str_sub(s, from, s.n), stop);
    }
    add_until(&out, str_sub(s, from, s.n), stop);
    return buf_str(&out);
}

size_t utf8_count(str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; n++) {
        size_t run = utf8_ascii_run(s, i);
        n += run;
        i += run;
        if (i == s.n) break;
        utf8_next(s, &i);
    }
    return n;
}

static size_t width_of(uint32_t cp) {
    if ((cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0xAC00 && cp <= 0xD7A3)) return 2;
    if (cp == '\t' || cp == UTF8_BAD) return 1;
    if (utf8_is_control(cp) || utf8_is_bidi(cp) || utf8_is_invisible(cp) || utf8_is_mark(cp)) return 0;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)cp);
    if (p->category != UTF8PROC_CATEGORY_CN) return p->charwidth;
    // Not assigned when utf8proc was made: newer emoji and ideographs are wide.
    return (cp >= 0x1F300 && cp <= 0x1FAFF) || (cp >= 0x20000 && cp <= 0x3FFFD) ? 2 : 1;
}

size_t utf8_width(str s) {
    size_t w = 0;
    for (size_t i = 0; i < s.n;) {
        size_t run = utf8_printable_run(s, i, 0, 0);
        w += run;
        i += run;
        if (i < s.n) w += width_of(utf8_step(s, &i));
    }
    return w;
}

size_t utf8_floor(str s, size_t at) {
    if (at >= s.n) return s.n;
    size_t lead = at;
    while (lead > 0 && at - lead < 3 && utf8_is_cont(bytes_of(s)[lead])) lead--;
    uint32_t cp;
    size_t n = utf8_sequence(bytes_of(s) + lead, s.n - lead, &cp);
    return lead + n > at ? lead : at;
}

// A grapheme of its own beside others of these: printable ASCII, ideographs, kana, full-width ASCII.
static bool is_lone(uint32_t cp) {
    return (cp >= 0x20 && cp <= 0x7E) || (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3041 && cp <= 0x3096) ||
           (cp >= 0x30A1 && cp <= 0x30FA) || (cp >= 0xFF01 && cp <= 0xFF5E);
}

bool utf8_breaks(uint32_t before, uint32_t after, int32_t *state) {
    if (is_lone(before) && is_lone(after)) {
        *state = 0; // what came before does not matter to what follows
        return true;
    }
    if (before == UTF8_BAD) before = UTF8_REPLACEMENT;
    if (after == UTF8_BAD) after = UTF8_REPLACEMENT;
    return utf8proc_grapheme_break_stateful((utf8proc_int32_t)before, (utf8proc_int32_t)after, state);
}

// The last grapheme boundary within the first `bytes` bytes and `chars` code points of s.
static size_t cut_at(str s, size_t bytes, size_t chars) {
    size_t i = 0, best = 0, count = 0;
    int32_t state = 0;
    uint32_t before = 0;
    for (;;) {
        size_t at = i;
        uint32_t cp = utf8_next(s, &i);
        if (at == s.n || at == 0 || utf8_breaks(before, cp, &state)) best = at;
        if (at == s.n || i > bytes || count == chars) return best;
        before = cp;
        count++;
    }
}

// Between two ASCII characters there is always a boundary, but within CR LF.
static bool ascii_boundary(str s, size_t at) {
    unsigned char l = bytes_of(s)[at - 1], r = bytes_of(s)[at];
    return l < 0x80 && r < 0x80 && !(l == '\r' && r == '\n');
}

str utf8_cut(str s, size_t bytes) {
    if (s.n <= bytes) return s;
    if (bytes == 0 || ascii_boundary(s, bytes)) return str_sub(s, 0, bytes);
    return str_sub(s, 0, cut_at(s, bytes, SIZE_MAX));
}

str utf8_cut_chars(str s, size_t n) {
    if (s.n <= n || n == 0) return str_sub(s, 0, n);
    if (utf8_ascii_run(str_sub(s, 0, n + 1), 0) == n + 1 && ascii_boundary(s, n)) return str_sub(s, 0, n);
    return str_sub(s, 0, cut_at(s, s.n, n));
}

bool cp_within(uint32_t cp, const cp_range *ranges, size_t n) {
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (cp > ranges[mid].last)
            low = mid + 1;
        else if (cp < ranges[mid].first)
            high = mid;
        else
            return true;
    }
    return false;
}

// The general category; UTF8_BAD is not assigned.
static utf8proc_category_t category(uint32_t cp) {
    return utf8proc_category((utf8proc_int32_t)cp);
}

bool utf8_is_letter(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool utf8_is_decimal(uint32_t cp) {
    return category(cp) == UTF8PROC_CATEGORY_ND;
}

bool utf8_is_mark(uint32_t cp) {
    utf8proc_category_t c = category(cp);
    return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool utf8_is_control(uint32_t cp) {
    return cp < 0x20 || (cp >= 0x7F && cp < 0xA0);
}

bool utf8_is_bidi(uint32_t cp) {
    return cp == 0x061C || cp == 0x200E || cp == 0x200F || (cp >= 0x202A && cp <= 0x202E) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

static const cp_range ignorable[] = {
    {0x00AD, 0x00AD},   {0x034F, 0x034F},   {0x061C, 0x061C}, {0x115F, 0x1160}, {0x17B4, 0x17B5},
    {0x180B, 0x180F},   {0x200B, 0x200F},   {0x202A, 0x202E}, {0x2060, 0x206F}, {0x3164, 0x3164},
    {0xFE00, 0xFE0F},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0}, {0xFFF0, 0xFFF8}, {0x1BCA0, 0x1BCA3},
    {0x1D173, 0x1D17A}, {0xE0000, 0xE0FFF},
};

bool utf8_is_ignorable(uint32_t cp) {
    return cp >= 0xAD && cp_within(cp, ignorable, sizeof ignorable / sizeof *ignorable);
}

bool utf8_is_invisible(uint32_t cp) {
    if (cp < 0xAD || utf8_is_bidi(cp)) return false;
    // Line and paragraph separator, interlinear annotation and hieroglyph joiners are not ignorable, yet show
    // nothing. Format characters that do show something (Arabic number signs and the like) are ordinary text.
    return utf8_is_ignorable(cp) || cp == 0x2028 || cp == 0x2029 || (cp >= 0xFFF9 && cp <= 0xFFFB) ||
           (cp >= 0x13430 && cp <= 0x1343F);
}

static const cp_range cjk[] = {
    {0x0E01, 0x0E3A}, {0x0E40, 0x0EFF},   {0x1000, 0x109F},   {0x1100, 0x11FF},   {0x1780, 0x17FF},
    {0x2E80, 0x2FDF}, {0x3005, 0x3007},   {0x3021, 0x3029},   {0x3031, 0x3035},   {0x3038, 0x303C},
    {0x3041, 0x318F}, {0x31A0, 0x31BF},   {0x31F0, 0x31FF},   {0x3400, 0x4DBF},   {0x4E00, 0x9FFF},
    {0xA960, 0xA97F}, {0xA9E0, 0xA9FF},   {0xAA60, 0xAA7F},   {0xAC00, 0xD7FF},   {0xF900, 0xFAFF},
    {0xFF66, 0xFFDC}, {0x1AFF0, 0x1B16F}, {0x1F200, 0x1F200}, {0x20000, 0x3FFFD},
};

bool utf8_is_cjk(uint32_t cp) {
    return cp >= 0x0E01 && cp_within(cp, cjk, sizeof cjk / sizeof *cjk);
}

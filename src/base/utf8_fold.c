// utf8_fold: normal forms NFC and NFKC, and the fold in which names are compared and text is searched.
// The text is walked as runs that the form leaves alone, copied as they are, and short segments between them
// that utf8proc works on. Text that is known to be well-formed, whole files, has a faster walk of its own. A
// segment starts and ends where nothing can combine across the border, so the pieces add up to the whole; one
// made of more than SEGMENT_HARD code points (thousands of accents on one letter) is cut all the same,
// because ordering accents costs the square of their number. Results are in the arena, or are the argument
// itself when nothing changes.
#include "base/utf8_int.h"
#include <utf8proc.h>

enum { SEGMENT_SOFT = 128, SEGMENT_HARD = 256, DECOMPOSED_MAX = 1024, FOLD_PASSES = 4 };

typedef struct {
    arena *a;
    utf8proc_option_t options;
    bool fold;
} form;

// Could cp, or what it decomposes to, combine with what stands before it? Marks, the second and third parts
// of Hangul syllables in their three encodings, half-width voice marks; and what the fold removes, because
// its neighbours then meet.
static bool leans_back(uint32_t cp) {
    if (cp < 0xAD || (cp >= 0x4E00 && cp <= 0x9FFF)) return false;
    return (cp >= 0x1160 && cp <= 0x11FF) || (cp >= 0x3131 && cp <= 0x318E) ||
           (cp >= 0xFF9E && cp <= 0xFFDC) || utf8_is_mark(cp) || utf8_is_ignorable(cp);
}

// A quick yes for letters of common scripts that every form leaves alone and that do not lean back.
static bool steady(uint32_t cp) {
    if (cp < 0x460) return cp >= 0x430 || (cp >= 0xE0 && cp <= 0xFF);
    return (cp >= 0x4E00 && cp <= 0x9FFF) || (cp >= 0x3041 && cp <= 0x3096) ||
           (cp >= 0x30A1 && cp <= 0x30FA) || (cp >= 0xAC00 && cp <= 0xD7A3) || cp == 0x3001 || cp == 0x3002;
}

// Is cp the same after the form, as far as its neighbours allow? Upper-case ASCII counts: copying lowers it.
static bool inert(const form *f, uint32_t cp) {
    if (cp == UTF8_BAD) return false;
    const utf8proc_property_t *p = utf8proc_get_property((utf8proc_int32_t)cp);
    return p->decomp_seqindex == UINT16_MAX && (!f->fold || p->casefold_seqindex == UINT16_MAX);
}

// End of the run from i that can be copied. Where the next one leans back, its base is left to the segment.
static size_t run_end(const form *f, str s, size_t i) {
    size_t last = i;
    while (i < s.n) {
        if ((unsigned char)s.p[i] < 0x80) {
            i += utf8_ascii_run(s, i);
            last = i - 1;
            continue;
        }
        size_t at = i;
        uint32_t cp = utf8_step(s, &i);
        if (!steady(cp)) {
            if (leans_back(cp)) return last;
            if (!inert(f, cp)) return at;
        }
        last = at;
    }
    return s.n;
}

static char lower(char c) {
    return (char)(c | (c >= 'A' && c <= 'Z') << 5);
}

#if defined(__x86_64__)
// Which of 16 bytes are capitals: all bits set.
static __m128i capitals(__m128i v) {
    return _mm_and_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8('A' - 1)),
                         _mm_cmplt_epi8(v, _mm_set1_epi8('Z' + 1)));
}
#endif

static void copy_run(const form *f, buf *out, str run) {
    size_t from = out->n, i = 0;
    buf_add(out, run);
    if (!f->fold) return;
    char *p = out->p + from;
    size_t n = out->n - from;
#if defined(__x86_64__)
    for (; n - i >= 16; i += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + i)), up = capitals(v);
        _mm_storeu_si128((__m128i *)(p + i), _mm_or_si128(v, _mm_and_si128(up, _mm_set1_epi8(0x20))));
    }
#endif
    for (; i < n; i++) p[i] = lower(p[i]);
}

// One pass of the form over a valid text; the result is in q or, when it is long, in the arena.
static str pass(const form *f, str text, int32_t q[DECOMPOSED_MAX + 1]) {
    const utf8proc_uint8_t *p = (const utf8proc_uint8_t *)text.p;
    utf8proc_ssize_t len = (utf8proc_ssize_t)text.n;
    int32_t *wide = q;
    utf8proc_ssize_t n = utf8proc_decompose(p, len, q, DECOMPOSED_MAX, f->options);
    if (n > DECOMPOSED_MAX) {
        wide = NEW_N(f->a, int32_t, (size_t)n + 1);
        n = utf8proc_decompose(p, len, wide, n, f->options);
    }
    if (n < 0) return text;
    n = utf8proc_reencode(wide, n, f->options);
    return n < 0 ? text : str_n((const char *)wide, (size_t)n);
}

// Takes one segment at *i, valid and without what the fold removes.
static str take_segment(const form *f, str s, size_t *i, char text[SEGMENT_HARD * 4]) {
    size_t n = 0;
    for (int count = 0; *i < s.n && count < SEGMENT_HARD; count++) {
        size_t next = *i;
        uint32_t cp = utf8_next(s, &next);
        bool leans = leans_back(cp);
        if (count > 0 && !leans && (count >= SEGMENT_SOFT || cp < 0x80 || inert(f, cp))) break;
        if (cp == UTF8_BAD) {
            memcpy(text + n, "\xEF\xBF\xBD", 3);
            n += 3;
        } else if (!f->fold || !utf8_is_ignorable(cp)) {
            memcpy(text + n, s.p + *i, next - *i);
            n += next - *i;
        }
        *i = next;
    }
    return str_n(text, n);
}

static size_t add_segment(const form *f, buf *out, str s, size_t i) {
    char text[SEGMENT_HARD * 4];
    int32_t q[2][DECOMPOSED_MAX + 1];
    str now = take_segment(f, s, &i, text);
    // Folding can lead to a letter that folds again, and a folded accent can stand in another order: until it
    // is stable.
    for (int k = 0; k < (f->fold ? FOLD_PASSES : 1); k++) {
        str then = pass(f, now, q[k % 2]);
        bool stable = str_eq(then, now);
        now = then;
        if (stable) break;
    }
    buf_add(out, now);
    return i;
}

// Full-width ASCII, in every line of Chinese and Japanese text.
static bool is_wide(uint32_t cp) {
    return cp == 0x3000 || (cp >= 0xFF01 && cp <= 0xFF5E);
}

// What stands for it, or 0 when a segment must decide.
static char narrow(const form *f, str s, size_t *i) {
    if (!(f->options & UTF8PROC_COMPAT)) return 0;
    size_t next = *i;
    uint32_t cp = utf8_next(s, &next);
    if (!is_wide(cp)) return 0;
    size_t after = next;
    if (next < s.n && leans_back(utf8_next(s, &after))) return 0;
    *i = next;
    char c = cp == 0x3000 ? ' ' : (char)(cp - 0xFEE0);
    return f->fold ? lower(c) : c;
}

// What a segment costs, in bytes of plain text.
static size_t segment_work(size_t n, size_t n_to) {
    enum { ANY = 64, EACH = 16, EACH_TO = 8, MANY = 64, MANY_EACH = 128 };
    return ANY + (n <= 3 ? 0 : n > MANY ? MANY_EACH : EACH) * n + EACH_TO * n_to;
}

static bool has_upper(str s) {
    size_t i = 0;
#if defined(__x86_64__)
    for (; s.n - i >= 16; i += 16)
        if (_mm_movemask_epi8(capitals(_mm_loadu_si128((const __m128i *)(s.p + i))))) return true;
#endif
    for (; i < s.n; i++)
        if (s.p[i] >= 'A' && s.p[i] <= 'Z') return true;
    return false;
}

static str apply(const form *f, str s) {
    size_t end = run_end(f, s, 0);
    if (end == s.n && !(f->fold && has_upper(s))) return s;
    buf out = buf_new(f->a, SIZE_MAX / 4);
    buf_reserve(&out, s.n + s.n / 8 + 16); // most texts keep their size: one block instead of doubling
    for (size_t i = 0;; end = run_end(f, s, i)) {
        copy_run(f, &out, str_sub(s, i, end));
        if (end == s.n) break;
        i = end;
        char c = narrow(f, s, &i);
        if (c)
            buf_addc(&out, c);
        else
            i = add_segment(f, &out, s, end);
    }
    return buf_str(&out);
}

// --- Whole files ---

typedef struct {
    form f;
    str s;
    buf out;
    utf8_pieces *pieces; // may be NULL
    stop_sign *stop;
} walk;

// Of sixteen bytes: which begin characters other than ASCII and U+4000 to U+9FFF. In a well-formed text no
// other byte needs a look.
#if defined(__x86_64__)
static inline unsigned others(__m128i v) {
    // Signed: continuation bytes are the least ones, then C0 to E3, the six, the rest, ASCII.
    __m128i low = _mm_andnot_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8((char)0xE3)),
                                   _mm_cmpgt_epi8(v, _mm_set1_epi8((char)0xBF))),
            high = _mm_andnot_si128(_mm_cmpgt_epi8(v, _mm_set1_epi8(-1)),
                                    _mm_cmpgt_epi8(v, _mm_set1_epi8((char)0xE9)));
    return (unsigned)_mm_movemask_epi8(_mm_or_si128(low, high));
}
#endif

static inline bool is_plain(unsigned char c) {
    return c < 0xC0 || (c >= 0xE4 && c <= 0xE9);
}

// Copies the plain bytes of s[i, to), capitals lowered; returns where it stops. There is room for 16 more.
static inline size_t copy_plain(walk *w, size_t i, size_t to) {
    const char *p = w->s.p;
    char *q = w->out.p + w->out.n;
    size_t from = i;
#if defined(__x86_64__)
    for (; to - i >= 16; i += 16, q += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(p + i)), up = capitals(v);
        unsigned other = others(v);
        _mm_storeu_si128((__m128i *)q, _mm_or_si128(v, _mm_and_si128(up, _mm_set1_epi8(0x20))));
        if (!other) continue;
        i += (unsigned)__builtin_ctz(other);
        w->out.n += i - from;
        return i;
    }
#endif
    for (; i < to && is_plain((unsigned char)p[i]); i++) *q++ = lower(p[i]);
    w->out.n += i - from;
    return i;
}

enum : size_t { ROOM = 32 }; // behind what is copied: a vector and a character

// Copies the character at *i, which is none of the plain ones. False: there the run ends, which began at
// `start`. When this one leans back, that is before its base.
static inline bool copy_other(walk *w, size_t start, size_t *i) {
    size_t next = *i;
    uint32_t cp = utf8_step(w->s, &next);
    if (is_wide(cp)) return false;
    if (!steady(cp)) {
        bool leans = leans_back(cp);
        if (leans && *i > start) {
            size_t base = utf8_floor(w->s, *i - 1);
            w->out.n -= *i - base;
            *i = base;
        }
        if (leans || !inert(&w->f, cp)) return false;
    }
    for (size_t k = *i; k < next; k++) w->out.p[w->out.n++] = w->s.p[k];
    *i = next;
    return true;
}

// Copies what the fold leaves alone, from i on; returns where that ends.
static size_t copy_run_of(walk *w, size_t i) {
    size_t start = i;
    for (bool more = true; more && i < w->s.n && !stop_said(w->stop);) {
        size_t to = w->s.n - i < STOP_EACH ? w->s.n : i + STOP_EACH, at = i;
        buf_reserve(&w->out, to - i + ROOM);
        while (more && i < to) {
            if (is_plain((unsigned char)w->s.p[i]))
                i = copy_plain(w, i, to);
            else
                more = copy_other(w, start, &i);
        }
        if (i > at) (void)stop_after(w->stop, i - at);
    }
    return i;
}

static void tell(walk *w, utf8_piece p) {
    if (!w->pieces) return;
    w->pieces->more = w->pieces->n > w->s.n / UTF8_PIECE_EACH;
    if (!w->pieces->more) vec_push(w->f.a, w->pieces, p);
}

// Has nothing changed?
static bool is_same(walk *w) {
    size_t i = 0, n = w->out.n;
    for (size_t some; n == w->s.n && i < n; i += some) {
        some = n - i < STOP_EACH ? n - i : STOP_EACH;
        if (memcmp(w->out.p + i, w->s.p + i, some) != 0 || stop_after(w->stop, some)) return false;
    }
    return i == w->s.n;
}

static str fold_file(walk *w) {
    w->out = buf_new(w->f.a, SIZE_MAX / 4);
    buf_reserve(&w->out, w->s.n + w->s.n / 8 + ROOM); // most texts keep their size
    for (size_t i = copy_run_of(w, 0); i < w->s.n && !stop_said(w->stop); i = copy_run_of(w, i)) {
        size_t at = i, from = w->out.n;
        char c = narrow(&w->f, w->s, &i);
        if (c)
            buf_addc(&w->out, c);
        else
            i = add_segment(&w->f, &w->out, w->s, i);
        tell(w, (utf8_piece){.from = at, .n = i - at, .to = from, .n_to = w->out.n - from});
        (void)stop_after(w->stop, segment_work(i - at, w->out.n - from));
    }
    return is_same(w) ? w->s : buf_str(&w->out);
}

str utf8_nfc(arena *a, str s) {
    form f = {.a = a, .options = UTF8PROC_STABLE | UTF8PROC_COMPOSE};
    return apply(&f, s);
}

str utf8_nfkc(arena *a, str s) {
    form f = {.a = a, .options = UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT};
    return apply(&f, s);
}

static const utf8proc_option_t FOLD =
    UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD;

str utf8_fold_pieces(arena *a, str s, utf8_pieces *pieces, stop_sign *stop) {
    walk w = {.f = {a, FOLD, true}, .s = s, .pieces = pieces, .stop = stop};
    return fold_file(&w);
}

str utf8_fold(arena *a, str s) {
    form f = {a, FOLD, true};
    return apply(&f, s);
}

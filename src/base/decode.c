// decode: file bytes of any encoding to valid UTF-8. Knows the names of encodings and nothing of files or
// search. UTF-8 is handed on without a copy. While uchardet or iconv hold memory of their own nothing is
// allocated from the arena, because an allocation that fails leaves this function at once; iconv therefore
// runs twice: to measure, and to write.
#include "base/utf8_int.h"
#include <dlfcn.h>
#include <errno.h>
#include <iconv.h>
#include <uchardet/uchardet.h>

enum : size_t {
    NUL_WINDOW = (size_t)8 << 10,      // NULs in here mean: no text
    DETECT_WINDOW = (size_t)128 << 10, // bytes that the detection reads
    DETECT_PART = (size_t)8 << 10,     // of it, between two questions whether to stop
    ICONV_PART = (size_t)64 << 10,     // that iconv converts at a time
    ICONV_WORK = 4,                    // what a byte of it costs
    UNIT_WORK = 8,                     // what one character costs, in bytes that are only copied
    WEAK_EVIDENCE = 6,                 // fewer bytes beyond ASCII do not tell the Latin encodings apart
};

enum : unsigned {
    BIG = 1,   // the byte with more weight first
    WEAK = 2,  // a Latin one that uchardet names on thin evidence
    PAIRS = 4, // of East Asia, two bytes a character
};

typedef enum { BY_UTF8, BY_UTF16, BY_UTF32, BY_WIN1252, BY_ICONV } method;

typedef struct {
    const char *name;
    const char *aliases; // further names, in lower case without - _ and blank, each between blanks
    const char *iconv;
    method how;
    unsigned traits;
} encoding;

static const encoding encodings[] = {
    {"UTF-8", " utf8 ascii usascii ", nullptr, BY_UTF8, 0},
    {"UTF-16LE", " utf16le utf16 ucs2 unicode ", nullptr, BY_UTF16, 0},
    {"UTF-16BE", " utf16be ", nullptr, BY_UTF16, BIG},
    {"UTF-32LE", " utf32le utf32 ", nullptr, BY_UTF32, 0},
    {"UTF-32BE", " utf32be ", nullptr, BY_UTF32, BIG},
    {"GB18030", " gb18030 gbk gb2312 cp936 windows936 euccn chinese ", "GB18030", BY_ICONV, PAIRS},
    {"Big5", " big5 big5hkscs cp950 windows950 ", "BIG5-HKSCS", BY_ICONV, PAIRS},
    {"Shift_JIS", " shiftjis sjis cp932 windows932 windows31j mskanji ", "CP932", BY_ICONV, PAIRS},
    {"EUC-JP", " eucjp ujis ", "EUC-JP", BY_ICONV, PAIRS},
    {"ISO-2022-JP", " iso2022jp ", "ISO-2022-JP", BY_ICONV, PAIRS},
    {"EUC-KR", " euckr uhc cp949 windows949 ksc56011987 korean ", "CP949", BY_ICONV, PAIRS},
    {"windows-1250", " windows1250 cp1250 ", "CP1250", BY_ICONV, WEAK},
    {"windows-1251", " windows1251 cp1251 ", "CP1251", BY_ICONV, 0},
    {"windows-1252", " windows1252 cp1252 iso88591 latin1 iso885915 latin9 ", nullptr, BY_WIN1252, WEAK},
    {"windows-1253", " windows1253 cp1253 iso88597 greek ", "CP1253", BY_ICONV, 0},
    {"windows-1254", " windows1254 cp1254 iso88599 latin5 ", "CP1254", BY_ICONV, WEAK},
    {"windows-1255", " windows1255 cp1255 iso88598 hebrew ", "CP1255", BY_ICONV, 0},
    {"windows-1256", " windows1256 cp1256 arabic ", "CP1256", BY_ICONV, 0},
    {"windows-1257", " windows1257 cp1257 ", "CP1257", BY_ICONV, WEAK},
    {"windows-1258", " windows1258 cp1258 ", "CP1258", BY_ICONV, WEAK},
    {"windows-874", " windows874 cp874 tis620 iso885911 ", "CP874", BY_ICONV, 0},
    {"ISO-8859-2", " iso88592 latin2 ", "ISO-8859-2", BY_ICONV, WEAK},
    {"ISO-8859-3", " iso88593 latin3 ", "ISO-8859-3", BY_ICONV, WEAK},
    {"ISO-8859-4", " iso88594 latin4 ", "ISO-8859-4", BY_ICONV, WEAK},
    {"ISO-8859-5", " iso88595 cyrillic ", "ISO-8859-5", BY_ICONV, 0},
    {"ISO-8859-6", " iso88596 ", "ISO-8859-6", BY_ICONV, 0},
    {"ISO-8859-10", " iso885910 latin6 ", "ISO-8859-10", BY_ICONV, WEAK},
    {"ISO-8859-13", " iso885913 latin7 ", "ISO-8859-13", BY_ICONV, WEAK},
    {"ISO-8859-16", " iso885916 latin10 ", "ISO-8859-16", BY_ICONV, WEAK},
    {"KOI8-R", " koi8r ", "KOI8-R", BY_ICONV, 0},
    {"KOI8-U", " koi8u ", "KOI8-U", BY_ICONV, 0},
    {"IBM866", " ibm866 cp866 ", "CP866", BY_ICONV, 0},
    {"x-mac-cyrillic", " xmaccyrillic maccyrillic ", "MAC-CYRILLIC", BY_ICONV, 0},
};

static const encoding *find_encoding(str name) {
    char squeezed[32] = " ";
    size_t n = 1;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '-' || c == '_' || c == ' ') continue;
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return nullptr;
        if (n == sizeof squeezed - 2) return nullptr;
        squeezed[n++] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
    }
    if (n == 1) return nullptr;
    squeezed[n++] = ' ';
    for (size_t k = 0; k < sizeof encodings / sizeof *encodings; k++)
        if (str_find(str_z(encodings[k].aliases), str_n(squeezed, n)) != SIZE_MAX) return &encodings[k];
    return nullptr;
}

bool decode_known_encoding(str name) {
    return find_encoding(name) != nullptr;
}

// --- One function a method: bytes in, UTF-8 out, number of places where something was lost. ---

// A buffer with room for all that there may be: memory that is not written costs nothing.
static buf room_for(arena *a, size_t n) {
    buf b = buf_new(a, n + 8);
    b.cap = n + 8;
    b.p = arena_bytes(a, b.cap);
    return b;
}

static str from_utf16(arena *a, str bytes, bool big, stop_sign *stop, size_t *lost) {
    buf out = room_for(a, bytes.n / 2 * 3 + 3);
    const unsigned char *p = (const unsigned char *)bytes.p;
    uint32_t high = 0;
    for (size_t i = 0; i + 1 < bytes.n; i += 2) {
        uint32_t u = big ? (uint32_t)p[i] << 8 | p[i + 1] : (uint32_t)p[i + 1] << 8 | p[i];
        bool low = u >= 0xDC00 && u <= 0xDFFF;
        if (stop_after(stop, UNIT_WORK)) break;
        if (high && low) {
            utf8_put(&out, 0x10000 + ((high - 0xD800) << 10) + (u - 0xDC00));
            high = 0;
            continue;
        }
        if (high || low) {
            utf8_put(&out, UTF8_REPLACEMENT);
            (*lost)++;
        }
        high = u >= 0xD800 && u <= 0xDBFF ? u : 0;
        if (!high && !low) utf8_put(&out, u);
    }
    if (high || bytes.n % 2) {
        utf8_put(&out, UTF8_REPLACEMENT);
        (*lost)++;
    }
    return buf_str(&out);
}

static str from_utf32(arena *a, str bytes, bool big, stop_sign *stop, size_t *lost) {
    buf out = room_for(a, bytes.n + 3);
    const unsigned char *p = (const unsigned char *)bytes.p;
    size_t whole = bytes.n / 4 * 4;
    for (size_t i = 0; i < whole; i += 4) {
        uint32_t le =
            (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 | (uint32_t)p[i + 3] << 24;
        uint32_t cp = big ? __builtin_bswap32(le) : le;
        if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) (*lost)++;
        utf8_put(&out, cp);
        if (stop_after(stop, UNIT_WORK)) break;
    }
    if (whole < bytes.n) {
        utf8_put(&out, UTF8_REPLACEMENT);
        (*lost)++;
    }
    return buf_str(&out);
}

static size_t bytes_beyond_ascii(str s) {
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) n += (unsigned char)s.p[i] >= 0x80;
    return n;
}

static str from_win1252(arena *a, str bytes, stop_sign *stop, size_t *lost) {
    static const uint16_t c1[32] = {
        0x20AC, 0xFFFD, 0x201A, 0x0192, 0x201E, 0x2026, 0x2020, 0x2021, 0x02C6, 0x2030, 0x0160,
        0x2039, 0x0152, 0xFFFD, 0x017D, 0xFFFD, 0xFFFD, 0x2018, 0x2019, 0x201C, 0x201D, 0x2022,
        0x2013, 0x2014, 0x02DC, 0x2122, 0x0161, 0x203A, 0x0153, 0xFFFD, 0x017E, 0x0178,
    };
    buf out = room_for(a, bytes.n + 2 * bytes_beyond_ascii(bytes));
    for (size_t i = 0; i < bytes.n; i++) {
        size_t run = utf8_ascii_run(str_sub(bytes, 0, i + STOP_EACH), i);
        if (stop_after(stop, run + UNIT_WORK)) break;
        buf_add(&out, str_n(bytes.p + i, run));
        i += run;
        if (i == bytes.n) break;
        unsigned char c = (unsigned char)bytes.p[i];
        uint32_t cp = c < 0x80 ? c : c < 0xA0 ? c1[c - 0x80] : c;
        *lost += cp == UTF8_REPLACEMENT;
        utf8_put(&out, cp);
    }
    return buf_str(&out);
}

// Converts into dst, which holds enough, or only measures when dst is NULL. Returns the length.
static size_t run_iconv(iconv_t cd, str bytes, char *dst, size_t cap, stop_sign *stop, size_t *lost) {
    char scratch[4096];
    char *in = (char *)bytes.p;
    size_t left = bytes.n, n = 0, work = 0;
    iconv(cd, nullptr, nullptr, nullptr, nullptr);
    *lost = 0;
    for (bool flushed = false; !flushed && !stop_after(stop, work * ICONV_WORK + UNIT_WORK);) {
        char *out = dst ? dst + n : scratch;
        size_t room = dst ? cap - n : sizeof scratch, had = room, before = left;
        bool flush = left == 0;
        size_t some = left < ICONV_PART ? left : ICONV_PART, part = some;
        size_t rc = iconv(cd, flush ? nullptr : &in, flush ? nullptr : &part, &out, &room);
        work = some - part;
        left -= work;
        n += had - room;
        if (rc != (size_t)-1) {
            flushed = flush;
            continue;
        }
        if (errno == E2BIG) {
            if (had == room && before == left) break; // cannot go on
            continue;
        }
        if (errno == EINVAL && part < left && before != left) continue; // the rest of it comes with the next
        if (flush) break;
        // One replacement for a byte that means nothing, one for a sequence that the end cuts short.
        size_t skip = errno == EINVAL ? left : 1;
        in += skip;
        left -= skip;
        if (dst && cap - n >= 3) memcpy(dst + n, "\xEF\xBF\xBD", 3);
        n += 3;
        (*lost)++;
    }
    return n;
}

// False when this system's iconv does not know the encoding.
static bool from_iconv(arena *a, str bytes, const char *name, stop_sign *stop, str *ret, size_t *lost) {
    iconv_t cd = iconv_open("UTF-8", name);
    if (cd == (iconv_t)-1) return false;
    size_t n = run_iconv(cd, bytes, nullptr, 0, stop, lost);
    iconv_close(cd);
    char *dst = arena_bytes(a, n + 1);
    cd = iconv_open("UTF-8", name);
    if (cd == (iconv_t)-1) return false;
    size_t written = run_iconv(cd, bytes, dst, n, stop, lost);
    iconv_close(cd);
    *ret = str_n(dst, written < n ? written : n);
    return true;
}

static str without_bom(str s) {
    return str_starts(s, S("\xEF\xBB\xBF")) ? str_sub(s, 3, s.n) : s;
}

static bool convert(arena *a, str bytes, const encoding *e, stop_sign *stop, decoded *ret, size_t *lost) {
    *lost = 0;
    str text = bytes;
    switch (e->how) {
    case BY_UTF8:
        text = utf8_repair_until(a, bytes, stop);
        *lost = text.p != bytes.p;
        break;
    case BY_UTF16: text = from_utf16(a, bytes, e->traits & BIG, stop, lost); break;
    case BY_UTF32: text = from_utf32(a, bytes, e->traits & BIG, stop, lost); break;
    case BY_WIN1252: text = from_win1252(a, bytes, stop, lost); break;
    case BY_ICONV:
        if (!from_iconv(a, bytes, e->iconv, stop, &text, lost)) return false;
        // What a decoder made must be valid whatever it is.
        text = utf8_repair_until(a, text, stop);
        break;
    }
    *ret = (decoded){.text = without_bom(text), .encoding = e->name, .lossy = *lost > 0};
    return true;
}

// --- Which encoding is it? ---

static const encoding *by_bom(str b) {
    if (str_starts(b, S("\xEF\xBB\xBF"))) return find_encoding(S("UTF-8"));
    if (b.n % 4 == 0 && str_starts(b, S("\xFF\xFE\0\0"))) return find_encoding(S("UTF-32LE"));
    if (b.n % 4 == 0 && str_starts(b, S("\0\0\xFE\xFF"))) return find_encoding(S("UTF-32BE"));
    if (str_starts(b, S("\xFF\xFE"))) return find_encoding(S("UTF-16LE"));
    return str_starts(b, S("\xFE\xFF")) ? find_encoding(S("UTF-16BE")) : nullptr;
}

// UTF-8 with some damage: at least as many good sequences as bad bytes. In text of another encoding good ones
// are chance.
static bool mostly_utf8(str bytes, stop_sign *stop) {
    size_t good = 0, bad = 0;
    for (size_t i = 0; i < bytes.n;) {
        size_t run = utf8_ascii_run(bytes, i);
        if (stop_after(stop, run / 8 + UNIT_WORK)) break;
        i += run;
        if (i == bytes.n) break;
        // What a cut sequence leaves behind counts once.
        bool lead = (unsigned char)bytes.p[i] >= 0xC2;
        if (utf8_next(bytes, &i) != UTF8_BAD) {
            good++;
            continue;
        }
        bad++;
        for (int k = 0; lead && k < 2 && i < bytes.n && ((unsigned char)bytes.p[i] & 0xC0) == 0x80; k++) i++;
    }
    return good > 0 && good >= bad;
}

// Every byte beyond ASCII is half of a two-byte character of GB 2312 from the rows of common ideographs and
// punctuation, two at least: Chinese words in a text that is mostly ASCII, too few for uchardet. In an
// alphabet some word has an odd length.
static bool sparse_gb(str bytes) {
    size_t ideographs = 0;
    for (size_t i = 0; i < bytes.n;) {
        i += utf8_ascii_run(bytes, i);
        if (i + 1 >= bytes.n) break;
        unsigned char lead = (unsigned char)bytes.p[i], trail = (unsigned char)bytes.p[i + 1];
        bool common = lead >= 0xB0 && lead <= 0xD7;
        if (!common && !(lead >= 0xA1 && lead <= 0xA3)) return false;
        if (trail < 0xA1 || trail > 0xFE) return false;
        ideographs += common;
        i += 2;
    }
    return ideographs >= 2;
}

// uchardet is C++ and brings its runtime along, so it is loaded by the first file that needs it and not by
// every start.
typedef struct {
    typeof(uchardet_new) *make;
    typeof(uchardet_delete) *destroy;
    typeof(uchardet_handle_data) *feed;
    typeof(uchardet_data_end) *end;
    typeof(uchardet_get_charset) *charset;
} detector;

// A library that is open already is only counted.
static bool detector_open(detector *d) {
    void *lib = dlopen("libuchardet.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!lib) return false;
    d->make = (typeof(d->make))dlsym(lib, "uchardet_new");
    d->destroy = (typeof(d->destroy))dlsym(lib, "uchardet_delete");
    d->feed = (typeof(d->feed))dlsym(lib, "uchardet_handle_data");
    d->end = (typeof(d->end))dlsym(lib, "uchardet_data_end");
    d->charset = (typeof(d->charset))dlsym(lib, "uchardet_get_charset");
    return d->make && d->destroy && d->feed && d->end && d->charset;
}

bool decode_can_detect(void) {
    return detector_open(&(detector){0});
}

static const encoding *ask_uchardet(str window, stop_sign *stop) {
    detector d;
    if (!detector_open(&d)) return nullptr;
    uchardet_t u = d.make();
    if (!u) return nullptr;
    const encoding *e = nullptr;
    bool fed = true;
    while (fed && window.n && !stop_said(stop)) {
        str part = str_sub(window, 0, DETECT_PART);
        fed = d.feed(u, part.p, part.n) == 0;
        window = str_sub(window, part.n, window.n);
        (void)stop_ask(stop);
    }
    if (fed) {
        d.end(u);
        e = find_encoding(str_z(d.charset(u)));
    }
    d.destroy(u);
    return e;
}

static const encoding *detect(str bytes, stop_sign *stop) {
    size_t first = utf8_ascii_run(bytes, 0);
    str window = str_sub(bytes, first > 256 ? first - 256 : 0, bytes.n);
    window = str_sub(window, 0, DETECT_WINDOW);

    const encoding *e = ask_uchardet(window, stop);
    if ((!e || !(e->traits & PAIRS)) && sparse_gb(window)) return find_encoding(S("GB18030"));
    bool unicode = e && e->how <= BY_UTF32; // already excluded: it would be valid, or have a BOM
    if (!e || unicode || ((e->traits & WEAK) && bytes_beyond_ascii(window) < WEAK_EVIDENCE))
        return find_encoding(S("windows-1252"));
    return e;
}

static bool looks_binary(str bytes) {
    str head = str_sub(bytes, 0, NUL_WINDOW);
    return head.n && memchr(head.p, 0, head.n) != nullptr;
}

static dep_status decode(arena *a, str bytes, str declared, stop_sign *stop, decoded *ret, dep_err *err) {
    const encoding *bom = by_bom(bytes);
    size_t lost;
    if (declared.n) {
        const encoding *e = find_encoding(declared);
        if (!e) return err_set(err, DEP_ERR_INVALID, "unknown encoding \"%.40s\"", str_cz(a, declared));
        // A name without byte order leaves it to the mark.
        if (bom && bom->how == e->how) e = bom;
        if (!convert(a, bytes, e, stop, ret, &lost))
            return err_set(err, DEP_ERR_INVALID, "this system cannot convert from %s", e->name);
        return DEP_OK;
    }
    if (bom && convert(a, bytes, bom, stop, ret, &lost)) return DEP_OK;
    if (looks_binary(bytes)) {
        *ret = (decoded){.encoding = "binary", .binary = true};
        return DEP_OK;
    }
    if (utf8_invalid_until(bytes, stop) == SIZE_MAX) {
        *ret = (decoded){.text = bytes, .encoding = "UTF-8"};
        return DEP_OK;
    }
    bool utf8 = mostly_utf8(bytes, stop);
    if (stop_said(stop)) return DEP_OK;
    const encoding *e = utf8 ? find_encoding(S("UTF-8")) : detect(bytes, stop);
    if (!convert(a, bytes, e, stop, ret, &lost) ||
        (e->how == BY_ICONV && lost > bytes_beyond_ascii(bytes) / 4))
        convert(a, bytes, find_encoding(S("windows-1252")), stop, ret, &lost);
    ret->assumed = true;
    return DEP_OK;
}

dep_status decode_text_until(arena *a, str bytes, str declared, stop_sign *stop, decoded *ret, dep_err *err) {
    dep_status status = decode(a, bytes, declared, stop, ret, err);
    return stop_said(stop) ? err_set(err, DEP_ERR_CANCELLED, "stopped while decoding") : status;
}

dep_status decode_text(arena *a, str bytes, str declared, decoded *ret, dep_err *err) {
    return decode_text_until(a, bytes, declared, NULL, ret, err);
}

// --- A part of a text ---

// Not between the halves of a pair.
static str whole_units(str head, bool big) {
    head.n -= head.n % 2;
    if (head.n < 2) return head;
    unsigned char high = (unsigned char)head.p[head.n - (big ? 2 : 1)];
    if (high >= 0xD8 && high <= 0xDB) head.n -= 2;
    return head;
}

// The last line is the one that is cut; of a text without lines, the last character.
static str whole_bytes(str head) {
    size_t at = str_rchr(head, '\n');
    if (at != SIZE_MAX) return str_sub(head, 0, at + 1);
    for (size_t back = 1; back <= 4 && back <= head.n; back++) {
        unsigned char c = (unsigned char)head.p[head.n - back];
        if ((c & 0xC0) == 0x80) continue;
        size_t need = c < 0x80 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
        return str_sub(head, 0, need > back ? head.n - back : head.n);
    }
    return head;
}

str decode_whole(str head, str declared) {
    str fours = str_sub(head, 0, head.n / 4 * 4);
    const encoding *e = find_encoding(declared), *bom = by_bom(fours);
    if (bom && (!e || bom->how == e->how)) e = bom;
    if (e && e->how == BY_UTF32) return fours;
    return e && e->how == BY_UTF16 ? whole_units(head, e->traits & BIG) : whole_bytes(head);
}

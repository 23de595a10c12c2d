// text: one decoded file as a corpus holds it. The folded text lies in a slab; of the original only what
// differs is kept: one bit for each byte that was a capital, and the pieces that folding changed in other
// ways. Where those are many, as in text full of accents, the original is kept whole. Knows no query.
#include "search/bytes.h"
#include "search/search_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

// A slab's first bytes; later ones are larger, up to the size of a large page.
enum : size_t { SLAB_FIRST = (size_t)64 << 10, SLAB_MOST = ((size_t)2 << 20) - 2 * SLAB_TAIL };

enum : size_t { ITEM_WORK = 16 }; // of a line or a piece, besides its bytes

// --- Lines ---

// Where the heads' lines begin, and the first ones below them: found in one pass that counts line feeds.
typedef struct {
    const heading_list *heads;
    head_span *spans;
    size_t first, body; // heads whose place is known
} placing;

// Behind the n-th of these line feeds, counted from 1.
static uint32_t behind(uint64_t feeds, size_t block, uint32_t n) {
    while (--n) feeds &= feeds - 1;
    return (uint32_t)block + (uint32_t)__builtin_ctzll(feeds) + 1;
}

// line: line feeds before the block. Heads are in order of their first lines, and of their last ones.
static void place_heads(placing *p, uint64_t feeds, size_t block, uint32_t line) {
    uint32_t end = line + (uint32_t)__builtin_popcountll(feeds);
    for (; p->first < p->heads->n && p->heads->p[p->first].first <= end; p->first++) {
        uint32_t n = p->heads->p[p->first].first - line;
        p->spans[p->first].first = n ? behind(feeds, block, n) : (uint32_t)block;
    }
    for (; p->body < p->heads->n && p->heads->p[p->body].last < end; p->body++)
        p->spans[p->body].body = behind(feeds, block, p->heads->p[p->body].last + 1 - line);
}

static void find_lines(arena *a, corpus_parts *p) {
    str s = p->folded;
    uint32_t line = 0;
    placing heads = {.heads = &p->heads, .spans = NEW_N(a, head_span, p->heads.n)};
    p->spans = heads.spans;
    uint32_t *before = NEW_N(a, uint32_t, s.n / LINES_EACH + 1);
    p->lines_before = before;
    for (size_t at = 0; at < s.n; at += BYTES) {
        uint64_t feeds = bytes_equal_of(s.p + at, s.n - at, '\n');
        if (at % LINES_EACH == 0 && at) {
            before[at / LINES_EACH - 1] = line;
            if (stop_after(p->stop, LINES_EACH)) return;
        }
        if (heads.body < p->heads.n) place_heads(&heads, feeds, at, line);
        line += (uint32_t)__builtin_popcountll(feeds);
    }
    for (; heads.first < p->heads.n; heads.first++) heads.spans[heads.first].first = (uint32_t)s.n;
    for (; heads.body < p->heads.n; heads.body++) heads.spans[heads.body].body = (uint32_t)s.n;
    p->n_lines = line + (s.n && s.p[s.n - 1] != '\n');
}

// --- Capitals ---

static void set_bits(uint8_t *bits, size_t at, uint32_t mask) {
    uint32_t word;
    memcpy(&word, bits + at / 8, sizeof word);
    word |= mask << (at % 8);
    memcpy(bits + at / 8, &word, sizeof word);
}

// A bit for each of n bytes that differs, from bit `at` on.
static void mark_capitals(uint8_t *bits, size_t at, const char *text, const char *folded, size_t n) {
    size_t i = 0;
#if defined(__x86_64__)
    for (; i + 16 <= n; i += 16) {
        __m128i t = _mm_loadu_si128((const __m128i *)(text + i)),
                f = _mm_loadu_si128((const __m128i *)(folded + i));
        uint32_t mask = 0xFFFF & ~(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(t, f));
        if (mask) set_bits(bits, at + i, mask);
    }
#endif
    for (; i < n; i++)
        if (text[i] != folded[i]) set_bits(bits, at + i, 1);
}

static size_t bits_size(size_t n) {
    return n / 8 + sizeof(uint32_t) + 1;
}

// --- Packing ---

static size_t align4(size_t n) {
    return (n + 3) / 4 * 4;
}

static void fill_patches(const corpus_parts *p, corpus_file *f, patch *patches, char *pool) {
    size_t at = 0;
    for (size_t i = 0; i < p->pieces.n && !stop_after(p->stop, ITEM_WORK); i++) {
        const utf8_piece *u = &p->pieces.p[i];
        patches[i] = (patch){.folded = (uint32_t)u->to,
                             .original = (uint32_t)u->from,
                             .pool = (uint32_t)at,
                             .n_folded = (uint16_t)u->n_to,
                             .n_original = (uint16_t)u->n};
        memcpy(pool + at, p->text.p + u->from, u->n);
        at += u->n;
    }
    f->patches = patches;
    f->pool = pool;
    f->n_patches = (uint32_t)p->pieces.n;
}

static void fill_capitals(const corpus_parts *p, uint8_t *bits) {
    size_t from = 0, to = 0;
    for (size_t i = 0; i <= p->pieces.n && !stop_said(p->stop); i++) {
        const utf8_piece *u = i < p->pieces.n ? &p->pieces.p[i] : NULL;
        size_t n = (u ? u->from : p->text.n) - from;
        for (size_t at = 0, some; at < n && !stop_said(p->stop); at += some) {
            some = n - at < STOP_EACH ? n - at : STOP_EACH;
            mark_capitals(bits, to + at, p->text.p + from + at, p->folded.p + to + at, some);
            (void)stop_after(p->stop, some + ITEM_WORK);
        }
        from += n + (u ? u->n : 0);
        to += n + (u ? u->n_to : 0);
    }
}

// Bytes of the headings above each section, summed: for the average length of such a chain.
static uint64_t sum_chains(arena *a, const heading_list *heads) {
    uint64_t *chain = NEW_N(a, uint64_t, heads->n + 1), sum = 0;
    for (size_t i = 0; i < heads->n; i++) {
        chain[i + 1] = chain[heads->p[i].parent] + heads->p[i].n;
        sum += chain[i + 1];
    }
    return sum;
}

static void keep_heads(const corpus_parts *p, corpus_head *heads) {
    for (size_t i = 0; i < p->heads.n; i++) {
        const heading *h = &p->heads.p[i];
        heads[i] = (corpus_head){.at = h->at, .n = h->n, .parent = h->parent, .html = h->html};
    }
}

static slab *slab_for(slabs *to, size_t n) {
    slab *last = to->n ? to->p[to->n - 1] : NULL;
    if (last && slab_fits(last, n)) return last;
    size_t cap = last ? last->cap * 2 : SLAB_FIRST;
    if (cap > SLAB_MOST) cap = SLAB_MOST;
    if (cap < n + 1) cap = n + 1;
    slab *s = slab_new(cap);
    // No arena here: a slab must not be lost when there is no memory for its place in the list.
    return s && slab_list_add(to, s) ? s : NULL;
}

static void mark_original(str text, stop_sign *stop, uint32_t *marks) {
    size_t at = 0;
    for (uint32_t line = 0;; line++) {
        if (line % MARK_LINES == 0) marks[line / MARK_LINES] = (uint32_t)at;
        const char *lf = memchr(text.p + at, '\n', text.n - at);
        if (!lf || stop_after(stop, (size_t)(lf - text.p) - at + ITEM_WORK)) return;
        if ((at = (size_t)(lf - text.p) + 1) == text.n) return;
    }
}

static dep_status pack(const corpus_parts *p, slabs *to, corpus_file *f, dep_err *err) {
    slab *s = slab_for(to, p->path.n + 1 + p->folded.n);
    size_t marks = p->folded.n ? (p->folded.n - 1) / LINES_EACH * sizeof(uint32_t) : 0,
           spans = p->heads.n * sizeof(head_span), heads = p->heads.n * sizeof(corpus_head),
           patches = p->whole || p->bare ? 0 : p->pieces.n * sizeof(patch),
           bits = p->capitals && !p->whole && !p->bare ? align4(bits_size(p->folded.n)) : 0,
           lines = p->whole && !p->bare ? (p->n_lines / MARK_LINES + 1) * sizeof(uint32_t) : 0,
           pool = p->bare    ? 0
                  : p->whole ? p->text.n
                             : p->pool;
    char *block = s ? slab_block_new(s, marks + spans + heads + patches + bits + lines + pool) : NULL;
    if (!block) return err_set(err, DEP_ERR_NOMEM, "out of memory");
    f->n_path = (uint32_t)p->path.n;
    f->n_lines = p->n_lines;
    if (marks) f->lines_before = memcpy(block, p->lines_before, marks);
    block += marks;
    f->spans = (head_span *)block;
    f->heads = (corpus_head *)(block + spans);
    f->n_heads = (uint32_t)p->heads.n;
    if (spans) memcpy(block, p->spans, spans);
    keep_heads(p, (corpus_head *)(block + spans));
    block += spans + heads;
    char *own = block + patches + bits + lines;
    if (p->bare) {
        // Without its original.
    } else if (p->whole) {
        mark_original(p->text, p->stop, (uint32_t *)block);
        f->marks = (uint32_t *)block;
        for (size_t at = 0; at < p->text.n && !stop_after(p->stop, STOP_EACH); at += STOP_EACH)
            memcpy(own + at, p->text.p + at, p->text.n - at < STOP_EACH ? p->text.n - at : STOP_EACH);
        f->text = str_n(own, p->text.n);
    } else {
        fill_patches(p, f, (patch *)block, own);
        if (bits) {
            memset(block + patches, 0, bits);
            fill_capitals(p, (uint8_t *)block + patches);
            f->capitals = (uint8_t *)block + patches;
        }
    }
    f->n_text = (uint32_t)p->text.n;
    f->in = s;
    f->folded = str_n(slab_add(s, p->path, p->folded, p->stop), p->folded.n);
    return f->folded.p ? DEP_OK : err_set(err, DEP_ERR_CANCELLED, "stopped");
}

static_assert(sizeof(patch) >= UTF8_PIECE_EACH, "where not all pieces are told, the original is kept whole");

static void look_at_pieces(corpus_parts *p) {
    p->whole = p->pieces.more;
    for (vec_each(const utf8_piece, u, &p->pieces)) {
        p->pool += u->n;
        p->whole = p->whole || u->n > UINT16_MAX || u->n_to > UINT16_MAX;
        if (stop_after(p->stop, ITEM_WORK / 4)) return;
    }
    p->whole = p->whole || p->pieces.n * sizeof(patch) + p->pool + p->folded.n / 8 > p->text.n;
}

void corpus_prepare(arena *turn, str path, str text, bool bare, stop_sign *stop, corpus_parts *p) {
    *p = (corpus_parts){
        .path = utf8_fold(turn, utf8_repair(turn, path)), .text = text, .bare = bare, .stop = stop};
    p->folded = utf8_fold_pieces(turn, text, bare ? NULL : &p->pieces, stop);
    p->capitals = p->folded.p != text.p;
    look_at_pieces(p);
    headings_find(turn, path, text, stop, &p->heads);
    find_lines(turn, p);
    p->chain_bytes = sum_chains(turn, &p->heads);
}

dep_status corpus_keep(const corpus_parts *p, slabs *to, corpus_file *f, dep_err *err) {
    f->chain_bytes = p->chain_bytes;
    // What was found of a part must not be put together.
    dep_status status = stop_said(p->stop) ? err_set(err, DEP_ERR_CANCELLED, "stopped") : pack(p, to, f, err);
    if (status != DEP_OK) *f = (corpus_file){0};
    return status;
}

// --- The original ---

// The number of patches that begin before the place in the original.
static size_t patches_before(const corpus_file *f, size_t original) {
    size_t low = 0, high = f->n_patches;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->patches[mid].original < original)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void copy_back(const corpus_file *f, char *to, size_t folded, size_t n) {
    memcpy(to, f->folded.p + folded, n);
    // Eight bytes at a time; of most none is a capital.
    for (size_t i = 0, step; f->capitals && i < n; i += step) {
        size_t bit = (folded + i) % 8;
        unsigned bits = (unsigned)f->capitals[(folded + i) / 8] >> bit;
        step = 8 - bit < n - i ? 8 - bit : n - i;
        for (bits &= (1u << step) - 1; bits; bits &= bits - 1)
            to[i + (size_t)__builtin_ctz(bits)] += 'A' - 'a';
    }
}

str corpus_text(arena *a, const corpus_file *f, size_t from, size_t to) {
    if (to > f->n_text) to = f->n_text;
    if (from >= to) return (str){0};
    if (f->text.p) return str_sub(f->text, from, to);
    char *out = arena_alloc(a, to - from), *at = out;
    size_t k = patches_before(f, from + 1);
    // Where the text before patch k, which is like the folded one, begins in both.
    size_t original = 0, folded = 0;
    if (k) {
        const patch *p = &f->patches[k - 1];
        original = (size_t)p->original + p->n_original;
        folded = (size_t)p->folded + p->n_folded;
        if (from < original) {
            size_t n = (original < to ? original : to) - from;
            memcpy(at, f->pool + p->pool + (from - p->original), n);
            at += n;
            from += n;
        }
    }
    for (; from < to; k++) {
        const patch *p = k < f->n_patches ? &f->patches[k] : NULL;
        size_t end = p && p->original < to ? p->original : to;
        copy_back(f, at, folded + (from - original), end - from);
        at += end - from;
        from = end;
        if (from == to) break;
        size_t n = p->n_original < to - from ? p->n_original : to - from;
        memcpy(at, f->pool + p->pool, n);
        at += n;
        from += n;
        original = (size_t)p->original + p->n_original;
        folded = (size_t)p->folded + p->n_folded;
    }
    return str_n(out, (size_t)(at - out));
}

// Where the line that begins at `at` begins in the original.
static size_t original_start(const corpus_file *f, size_t at) {
    size_t low = 0, high = f->n_patches;
    if (at == 0) return 0;
    // The last patch that begins before the line: its line end may be in it.
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (f->patches[mid].folded < at)
            low = mid + 1;
        else
            high = mid;
    }
    if (!low) return at;
    const patch *p = &f->patches[low - 1];
    size_t end = (size_t)p->folded + p->n_folded;
    if (at > end) return p->original + p->n_original + (at - end);
    // Inside: as many line ends into the original as into the folded text.
    size_t ends = 0, k = 0;
    for (size_t i = p->folded; i < at; i++) ends += f->folded.p[i] == '\n';
    for (; k < p->n_original && ends; k++) ends -= f->pool[p->pool + k] == '\n';
    return p->original + k;
}

// Where line number n begins in an original that is whole.
static size_t start_of_line(const corpus_file *f, uint32_t n) {
    size_t from = f->marks[n / MARK_LINES];
    for (n %= MARK_LINES; n && from < f->text.n; n--) {
        const char *lf = memchr(f->text.p + from, '\n', f->text.n - from);
        from = lf ? (size_t)(lf - f->text.p) + 1 : f->text.n;
    }
    return from;
}

str corpus_original(arena *a, const corpus_file *f, uint32_t at, uint32_t number) {
    str rest;
    if (f->text.p) {
        rest = str_sub(f->text, start_of_line(f, number), f->text.n);
    } else {
        uint32_t next = corpus_next_line(f, at);
        size_t from = original_start(f, at), to = next < f->folded.n ? original_start(f, next) : f->n_text;
        rest = corpus_text(a, f, from, to);
    }
    size_t end = str_chr(rest, '\n');
    if (end != SIZE_MAX) rest.n = end;
    if (str_ends(rest, S("\r"))) rest.n--;
    return rest;
}

static uint32_t count_lines(const char *p, size_t n) {
    uint32_t sum = 0;
    for (size_t at = 0; at < n; at += BYTES)
        sum += (uint32_t)__builtin_popcountll(bytes_equal_of(p + at, n - at, '\n'));
    return sum;
}

uint32_t corpus_line_number(const corpus_file *f, uint32_t at) {
    uint32_t block = at / LINES_EACH, from = block * LINES_EACH;
    return (block ? f->lines_before[block - 1] : 0) + count_lines(f->folded.p + from, at - from);
}

uint32_t corpus_section(const corpus_file *f, uint32_t at) {
    // Without branches that nobody could foresee: this is asked for each matching line.
    uint32_t low = 0;
    for (uint32_t n = f->n_heads; n;) {
        uint32_t half = n / 2;
        bool after = f->spans[low + half].first <= at;
        low += after ? half + 1 : 0;
        n = after ? n - half - 1 : half;
    }
    return low;
}

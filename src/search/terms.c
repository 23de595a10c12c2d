// terms: what a query asks for. Folds it as the corpus is folded, so that equality of bytes is enough
// afterwards, and splits it into phrases, words and, where a script has no blanks, pairs of characters. Knows
// no corpus. The list of stop words is short on purpose: a word on it can be found only when a query has
// nothing else.
#include "search/search_int.h"
#include <deputy/utf8.h>
#include <stdlib.h>

// Sorted by bytes.
static const str stop_words[] = {
    S_INIT("a"),    S_INIT("about"),  S_INIT("am"),    S_INIT("an"),    S_INIT("and"),   S_INIT("any"),
    S_INIT("are"),  S_INIT("as"),     S_INIT("at"),    S_INIT("be"),    S_INIT("been"),  S_INIT("but"),
    S_INIT("by"),   S_INIT("can"),    S_INIT("could"), S_INIT("did"),   S_INIT("do"),    S_INIT("does"),
    S_INIT("for"),  S_INIT("from"),   S_INIT("had"),   S_INIT("has"),   S_INIT("have"),  S_INIT("he"),
    S_INIT("her"),  S_INIT("his"),    S_INIT("how"),   S_INIT("i"),     S_INIT("if"),    S_INIT("in"),
    S_INIT("into"), S_INIT("is"),     S_INIT("it"),    S_INIT("its"),   S_INIT("may"),   S_INIT("me"),
    S_INIT("my"),   S_INIT("of"),     S_INIT("on"),    S_INIT("or"),    S_INIT("our"),   S_INIT("shall"),
    S_INIT("she"),  S_INIT("should"), S_INIT("so"),    S_INIT("such"),  S_INIT("than"),  S_INIT("that"),
    S_INIT("the"),  S_INIT("their"),  S_INIT("them"),  S_INIT("then"),  S_INIT("there"), S_INIT("these"),
    S_INIT("they"), S_INIT("this"),   S_INIT("to"),    S_INIT("us"),    S_INIT("was"),   S_INIT("we"),
    S_INIT("were"), S_INIT("what"),   S_INIT("when"),  S_INIT("where"), S_INIT("which"), S_INIT("who"),
    S_INIT("why"),  S_INIT("will"),   S_INIT("with"),  S_INIT("would"), S_INIT("you"),   S_INIT("your"),
};

// What an apostrophe leaves of "it's", "don't" and the like.
static const str remnants[] = {S_INIT("d"), S_INIT("ll"), S_INIT("m"), S_INIT("re"),
                               S_INIT("s"), S_INIT("t"),  S_INIT("ve")};

// Chinese and Japanese particles; alone they say nothing about what is looked for.
static const uint32_t particles[] = {
    0x7684 /* 的 */, 0x4E86 /* 了 */, 0x5417 /* 吗 */, 0x5462 /* 呢 */, 0x5427 /* 吧 */, 0x554A /* 啊 */,
    0x5730 /* 地 */, 0x5F97 /* 得 */, 0x306E /* の */, 0x306F /* は */, 0x304C /* が */, 0x3092 /* を */,
    0x306B /* に */, 0x3067 /* で */, 0x3068 /* と */, 0x3082 /* も */, 0x304B /* か */};

// Korean particles and endings of verbs, at the end of a word.
static const uint32_t hangul_endings[] = {0xC740 /* 은 */, 0xB294 /* 는 */, 0xC774 /* 이 */, 0xAC00 /* 가 */,
                                          0xC744 /* 을 */, 0xB97C /* 를 */, 0xC758 /* 의 */, 0xC5D0 /* 에 */,
                                          0xC11C /* 서 */, 0xB85C /* 로 */, 0xC640 /* 와 */, 0xACFC /* 과 */,
                                          0xB3C4 /* 도 */, 0xAE30 /* 기 */, 0xD558 /* 하 */, 0xD560 /* 할 */,
                                          0xD55C /* 한 */, 0xACE0 /* 고 */, 0xB2E4 /* 다 */};

// Pairs that ask, in Chinese, Japanese and Korean. Who asks seldom finds them in the answer.
static const str asking[] = {
    S_INIT("如何"), S_INIT("什么"), S_INIT("怎么"), S_INIT("怎样"), S_INIT("是否"), S_INIT("哪些"),
    S_INIT("哪个"), S_INIT("为什"), S_INIT("多少"), S_INIT("どの"), S_INIT("どこ"), S_INIT("どん"),
    S_INIT("んな"), S_INIT("なぜ"), S_INIT("いつ"), S_INIT("です"), S_INIT("すか"), S_INIT("とい"),
    S_INIT("いう"), S_INIT("何で"), S_INIT("何と"), S_INIT("は何"), S_INIT("무엇"), S_INIT("어떻"),
    S_INIT("떻게"), S_INIT("나요"), S_INIT("까요"), S_INIT("가요"), S_INIT("인가"), S_INIT("니까"),
    S_INIT("습니"), S_INIT("합니"), S_INIT("니다"),
};

// Against a word of a script with blanks: a run of n characters has n - 1 pairs and about n / 2 words.
static const double PAIR = 0.5;
static const double PAIR_ALONE = 0.75; // a run of one or two characters, which is a word more often
static const double SIGNED = 0.5;      // "c++", which in manuals of that language stands everywhere

typedef struct {
    arena *a;
    term_list *out;
    VEC(term) stopped; // terms that count only when there is nothing else
    size_t words, grams;
} parser;

#define HAS(list, s)                                                                                         \
    (bsearch(&(s), (list), sizeof(list) / sizeof *(list), sizeof *(list), str_cmp_qsort) != NULL)

static bool is_one_of(str s, const str *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(s, list[i])) return true;
    return false;
}

static bool is_among(uint32_t cp, const uint32_t *list, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (list[i] == cp) return true;
    return false;
}

static bool is_particle(uint32_t cp) {
    return is_among(cp, particles, sizeof particles / sizeof *particles);
}

// Does the last character of a run only inflect it?
static bool is_hangul_ending(uint32_t cp) {
    return is_among(cp, hangul_endings, sizeof hangul_endings / sizeof *hangul_endings);
}

static bool is_alnum(uint32_t cp) {
    if (cp < 0x80) return (cp >= 'a' && cp <= 'z') || (cp >= '0' && cp <= '9') || (cp >= 'A' && cp <= 'Z');
    if (cp == UTF8_BAD) return false;
    return utf8_is_letter(cp) || utf8_is_decimal(cp) || utf8_is_mark(cp) || cp == 0x3007;
}

static bool is_blank(uint32_t cp) {
    return cp == ' ' || (cp >= '\t' && cp <= '\r') || cp == 0x85 || cp == 0x2028 || cp == 0x2029;
}

static bool has(const term *p, size_t n, str text) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(p[i].text, text)) return true;
    return false;
}

// --- Endings of English words ---

static bool is_vowel(char c) {
    return c && strchr("aeiouy", c);
}

// What is left when the ending goes: letters enough, and a vowel among them.
static bool can_drop(str word, str ending) {
    if (!str_ends(word, ending) || word.n < ending.n + TERM_STEM_MIN) return false;
    for (size_t i = 0; i < word.n - ending.n; i++)
        if (is_vowel(word.p[i])) return true;
    return false;
}

// A word with letters beyond a to z is none of English, and inflects at its end, whatever the language: its
// first letters, at least four. Empty: it is no such word.
static str open_stem(str word) {
    size_t chars = 0;
    bool beyond = false;
    for (size_t i = 0; i < word.n; chars++) {
        uint32_t cp = utf8_next(word, &i);
        if (utf8_is_decimal(cp)) return (str){0};
        beyond = beyond || cp >= 0x80;
    }
    if (!beyond || chars <= TERM_OPEN_MIN) return (str){0};
    size_t keep = chars < TERM_OPEN_MIN + TERM_OPEN_MAX ? TERM_OPEN_MIN : chars - TERM_OPEN_MAX, n = 0;
    while (keep--) utf8_next(word, &n);
    return str_sub(word, 0, n);
}

static str stem_of(str word) {
    for (size_t i = 0; i < word.n; i++)
        if (word.p[i] < 'a' || word.p[i] > 'z') return word;
    if (word.n < 4) return word;
    // "configuration", "creation": as their verbs, when enough is left.
    static const str nouns[] = {S_INIT("ations"), S_INIT("ation"), S_INIT("ions"), S_INIT("ion")};
    for (size_t i = 0; i < sizeof nouns / sizeof *nouns; i++)
        if (str_ends(word, nouns[i]) && word.n >= nouns[i].n + TERM_NOUN_MIN)
            return str_sub(word, 0, word.n - nouns[i].n);
    static const str endings[] = {S_INIT("ings"), S_INIT("ing"), S_INIT("ies"), S_INIT("ied"),
                                  S_INIT("ed"),   S_INIT("es"),  S_INIT("e"),   S_INIT("y")};
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        if (!can_drop(word, endings[i])) continue;
        str stem = str_sub(word, 0, word.n - endings[i].n);
        bool doubled = stem.n > TERM_STEM_MIN && stem.p[stem.n - 1] == stem.p[stem.n - 2] &&
                       !is_vowel(stem.p[stem.n - 1]);
        bool full = doubled && strchr("lsz", stem.p[stem.n - 1]);
        return doubled && !full && i < 5 ? str_sub(stem, 0, stem.n - 1) : stem;
    }
    char before = word.p[word.n - 2];
    if (can_drop(word, S("s")) && before != 's' && before != 'u' && before != 'i')
        return str_sub(word, 0, word.n - 1);
    return word;
}

// Endings that leave the word what it is; those from VERBAL on only after a stem of TERM_NOUN_MIN letters:
// "create", "creation", but not "state", "station".
static const str endings_of_words[] = {
    S_INIT(""),    S_INIT("e"),    S_INIT("s"),    S_INIT("es"),    S_INIT("ed"),
    S_INIT("ing"), S_INIT("ings"), S_INIT("ion"),  S_INIT("ions"),  S_INIT("ation"),
    S_INIT("ate"), S_INIT("ates"), S_INIT("ated"), S_INIT("ating"), S_INIT("ations"),
};
enum { VERBAL = 7 };

bool term_same_word(const term *t, str word) {
    if (t->open) return utf8_count(str_sub(word, t->stem.n, word.n)) <= TERM_OPEN_MAX;
    static const str y_endings[] = {S_INIT("y"), S_INIT("ie"), S_INIT("ies"), S_INIT("ied")};
    str own = str_sub(t->text, t->stem.n, t->text.n), rest = str_sub(word, t->stem.n, word.n);
    // "policy" is no form of "police".
    if (is_one_of(own, y_endings, sizeof y_endings / sizeof *y_endings))
        return is_one_of(rest, y_endings, sizeof y_endings / sizeof *y_endings);
    size_t all = sizeof endings_of_words / sizeof *endings_of_words;
    if (is_one_of(rest, endings_of_words, t->stem.n >= TERM_NOUN_MIN ? all : VERBAL)) return true;
    // "run", "running": the last letter doubles.
    return rest.n > 2 && t->stem.n && rest.p[0] == t->stem.p[t->stem.n - 1] &&
           is_one_of(str_sub(rest, 1, rest.n), endings_of_words, VERBAL);
}

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool term_has_point(str s, size_t at) {
    return at && at + 1 < s.n && s.p[at] == '.' && is_digit(s.p[at - 1]) && is_digit(s.p[at + 1]);
}

bool term_is_stop_word(str word) {
    return HAS(stop_words, word);
}

// --- Adding ---

static void add(parser *p, term_kind kind, str text, double weight) {
    if (text.n == 0 || has(p->out->p, p->out->n, text)) return;
    size_t *count = kind == TERM_GRAM ? &p->grams : &p->words;
    if (*count >= (kind == TERM_GRAM ? (size_t)TERM_GRAMS_MAX : (size_t)SEARCH_TERMS_MAX)) {
        p->out->ignored++;
        return;
    }
    (*count)++;
    if (!p->out->p) p->out->p = NEW_N(p->a, term, SEARCH_TERMS_MAX + TERM_GRAMS_MAX);
    str open = kind == TERM_WORD ? open_stem(text) : (str){0};
    p->out->p[p->out->n] = (term){.text = text,
                                  .stem = open.n              ? open
                                          : kind == TERM_WORD ? stem_of(text)
                                                              : text,
                                  .kind = kind,
                                  .open = open.n > 0,
                                  .as = (uint16_t)p->out->n,
                                  .weight = weight};
    p->out->asked = ++p->out->n;
}

static void add_stopped(parser *p, term_kind kind, str text) {
    if (!has(p->stopped.p, p->stopped.n, text))
        vec_push(p->a, &p->stopped, (term){.text = text, .kind = kind, .weight = 1});
}

static void add_word(parser *p, str text, bool after_apostrophe) {
    if (HAS(stop_words, text) || (after_apostrophe && HAS(remnants, text)))
        add_stopped(p, TERM_WORD, text);
    else
        add(p, TERM_WORD, text, 1);
}

// A run written without blanks: as it is up to two characters, else its pairs. A bonus for lines that have
// the whole run was tried: it lowers the rank of the right section on every Chinese set.
static void add_run(parser *p, str run) {
    size_t n = utf8_count(run), i = 0;
    uint32_t first = utf8_next(run, &i);
    if (n == 1 && is_particle(first)) {
        add_stopped(p, TERM_GRAM, run);
        return;
    }
    if (n <= 2) {
        add(p, TERM_GRAM, run, PAIR_ALONE);
        return;
    }
    uint32_t left = first;
    for (size_t from = 0, mid = i; mid < run.n;) {
        size_t end = mid;
        uint32_t right = utf8_next(run, &end);
        str pair = str_sub(run, from, end);
        double weight = is_one_of(pair, asking, sizeof asking / sizeof *asking) ? PAIR / 4 : PAIR;
        if (end == run.n && is_hangul_ending(right)) weight *= 0.3;
        if (is_particle(left) || is_particle(right)) weight *= 0.5;
        if (is_particle(left) && is_particle(right))
            add_stopped(p, TERM_GRAM, pair);
        else
            add(p, TERM_GRAM, pair, weight);
        from = mid;
        mid = end;
        left = right;
    }
}

// --- Splitting ---

// Signs that belong to the word before them: "c++", "c#", "vc++". By itself a letter would stand on every
// other line. n: bytes of the word, which ends at `at`.
static size_t signs_after(str s, size_t n, size_t at) {
    if (n > 2 || s.p[at - 1] < 'a' || s.p[at - 1] > 'z') return 0;
    str rest = str_sub(s, at, s.n);
    if (str_starts(rest, S("++"))) return 2;
    if (n > 1 || !str_starts(rest, S("#"))) return 0;
    // Not "a#b", which is a place in a page; but a script without blanks goes on at once.
    size_t next = 1;
    uint32_t cp = rest.n > 1 ? utf8_next(rest, &next) : ' ';
    return !is_alnum(cp) || utf8_is_cjk(cp);
}

// Words and runs of a folded text.
static void split(parser *p, str s) {
    size_t from = 0;
    bool in_word = false, cjk = false;
    for (size_t i = 0; i <= s.n;) {
        size_t at = i;
        uint32_t cp = at < s.n ? utf8_next(s, &i) : ' ';
        if (at == s.n) i++;
        bool alnum = is_alnum(cp) || (in_word && !cjk && term_has_point(s, at));
        // A mark belongs to what it stands on.
        bool is_cjk = alnum && (utf8_is_mark(cp) && in_word ? cjk : utf8_is_cjk(cp));
        if (in_word && (!alnum || is_cjk != cjk)) {
            str word = str_sub(s, from, at);
            size_t signs = cjk ? 0 : signs_after(s, word.n, at);
            if (cjk)
                add_run(p, word);
            else if (signs)
                add(p, TERM_WORD, str_sub(s, from, at + signs), SIGNED);
            else
                add_word(p, word,
                         str_ends(str_sub(s, 0, from), S("'")) || str_ends(str_sub(s, 0, from), S("’")));
            in_word = false;
        }
        if (alnum && !in_word) {
            from = at;
            cjk = is_cjk;
            in_word = true;
        }
    }
}

// Pieces between blanks, whatever they are made of.
static void split_at_blanks(parser *p, str s) {
    size_t from = 0;
    for (size_t i = 0; i <= s.n;) {
        size_t at = i;
        uint32_t cp = at < s.n ? utf8_next(s, &i) : ' ';
        if (at == s.n) i++;
        if (!is_blank(cp)) continue;
        add(p, TERM_TEXT, str_sub(s, from, at), 1);
        from = i;
    }
}

// A phrase as it stands in a line: runs of blanks as one, none at the ends.
static void add_phrase(parser *p, str s) {
    buf b = buf_new(p->a, 0);
    bool blank = false;
    for (size_t i = 0; i < s.n;) {
        size_t at = i;
        if (is_blank(utf8_next(s, &i))) {
            blank = b.n > 0;
            continue;
        }
        if (blank) buf_addc(&b, ' ');
        blank = false;
        buf_add(&b, str_sub(s, at, i));
    }
    add(p, TERM_TEXT, buf_str(&b), 1);
}

void terms_parse(arena *a, str query, term_list *ret) {
    parser p = {.a = a, .out = ret};
    str rest = utf8_fold(a, utf8_repair(a, query)), all = rest;
    // Phrases are taken out; a quote without its partner is no quote.
    while (rest.n) {
        size_t open = str_chr(rest, '"');
        size_t close = open == SIZE_MAX ? SIZE_MAX : str_chr(str_sub(rest, open + 1, rest.n), '"');
        if (close == SIZE_MAX) {
            split(&p, rest);
            break;
        }
        split(&p, str_sub(rest, 0, open));
        add_phrase(&p, str_sub(rest, open + 1, open + 1 + close));
        rest = str_sub(rest, open + 1 + close + 1, rest.n);
    }
    if (ret->n == 0) {
        for (vec_each(term, t, &p.stopped)) add(&p, t->kind, t->text, 1);
        // Their endings are none, and what is longer than a word is none.
        ret->common = ret->n > 0;
        for (size_t i = 0; i < ret->n; i++) ret->p[i].stem = ret->p[i].text;
    }
    if (ret->n == 0) split_at_blanks(&p, all);
}

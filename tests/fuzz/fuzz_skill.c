// A SKILL.md: it is read or there is an error; what is read keeps its limits; the body is the end of the
// text; line ends of the other kind change nothing.
#include <deputy/skills.h>
#include <deputy/utf8.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool ok) {
    if (!ok) abort();
}

static bool parse(arena *a, str text, skill *s, diags *d) {
    *d = diags_new(a);
    *s = (skill){0};
    return skill_parse(a, S("x/SKILL.md"), text, S("x"), s, d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    arena *a = arena_new();
    str text = str_n((const char *)data, size);
    skill s;
    diags d;
    bool ok = parse(a, text, &s, &d);
    if (ok) {
        check(s.name.n > 0 && utf8_valid(s.name) && utf8_valid(s.body));
        check(s.description.n > 0 && utf8_count(s.description) <= SKILL_DESCRIPTION_MAX);
        check(!utf8_valid(text) || str_ends(text, s.body));
    } else {
        check(d.errors > 0);
    }
    for (vec_each(const diag, i, &d.items))
        check(utf8_valid(i->msg) && utf8_valid(i->hint) && utf8_valid(i->source));
    if (str_chr(text, '\r') == SIZE_MAX && size < 8192) {
        skill t;
        diags e;
        buf crlf = buf_new(a, 0);
        for (size_t i = 0; i < text.n; i++) {
            if (text.p[i] == '\n') buf_addc(&crlf, '\r');
            buf_addc(&crlf, text.p[i]);
        }
        check(parse(a, buf_str(&crlf), &t, &e) == ok);
        check(str_eq(s.name, t.name) && str_eq(s.description, t.description) && s.hidden == t.hidden);
        check(str_eq(s.grants_nothing, t.grants_nothing));
    }
    arena_free(a);
    return 0;
}

// What of a scope reaches the list, the prompt and the search, in which order, and what is said of the rest.
#include "memory/memory_int.h"
#include "support/support.h"
#include <deputy/file.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCOPE ".deputy/memory"
#define H "<!-- deputy: 2026-11-30T12:00:00Z agent=a -->\n" // 46 characters

typedef struct {
    arena *a;
    char *dir;
    int root;
    memory_scope *m;
} fixture;

static char *at(fixture *f, const char *name) {
    return str_cz(f->a, str_fmt(f->a, "%s/%s", f->dir, name));
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->dir = temp_dir();
    f->root = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->root >= 0);
    assert_int_equal(memory_open(f->a, f->root, S(SCOPE), true, NULL, NULL, &f->m, NULL), DEP_OK);
    *state = f;
    return 0;
}

static int teardown(void **state) {
    fixture *f = *state;
    close(f->root);
    arena_free(f->a);
    temp_remove(f->dir);
    free(f);
    return 0;
}

// A file written `age` seconds ago.
static void file_at(fixture *f, const char *name, str text, int age) {
    str path = str_fmt(f->a, SCOPE "/%s", name);
    temp_write(f->dir, path.p, text);
    struct timespec t[2] = {{.tv_sec = 1796040000 - age}, {.tv_sec = 1796040000 - age}};
    assert_int_equal(utimensat(f->root, path.p, t, 0), 0);
}

static str filled(fixture *f, size_t n) {
    buf b = buf_new(f->a, 0);
    buf_fill(&b, 'x', n);
    return str_dup(f->a, buf_str(&b));
}

static str names_of(fixture *f, const memory_block *b) {
    buf out = buf_new(f->a, 0);
    for (vec_each(memory_shown, s, &b->files)) buf_addf(&out, STR_FMT " ", STR_ARG(s->name));
    buf_add(&out, S("|"));
    for (vec_each(str, s, &b->left_out)) buf_addf(&out, " " STR_FMT, STR_ARG(*s));
    buf_add(&out, S("|"));
    for (vec_each(memory_file, s, &b->withheld))
        buf_addf(&out, " " STR_FMT "(" STR_FMT ")", STR_ARG(s->name), STR_ARG(s->withheld));
    return buf_str(&out);
}

static memory_block block_of(fixture *f, memory_scope *m) {
    memory_block b = {0};
    dep_err err;
    dep_status status = memory_resident(f->a, m, &b, &err);
    if (status != DEP_OK) print_error("%s\n", err.msg);
    assert_int_equal(status, DEP_OK);
    return b;
}

static str listed(fixture *f, memory_scope *m) {
    memory_files files;
    assert_int_equal(memory_list(f->a, m, &files, NULL), DEP_OK);
    buf out = buf_new(f->a, 0);
    for (vec_each(memory_file, i, &files)) {
        buf_addf(&out, STR_FMT "%s", STR_ARG(i->name), i->resident ? "" : "*");
        if (i->withheld.n) buf_addf(&out, "(" STR_FMT ")", STR_ARG(i->withheld));
        buf_addc(&out, ' ');
    }
    return buf_str(&out);
}

static void test_memory_resident__an_empty_scope_is_an_empty_block(void **state) {
    fixture *f = *state;
    memory_block b = block_of(f, f->m);
    assert_string_equal(names_of(f, &b).p, "||");
    assert_true(str_empty(listed(f, f->m)));
}

static void test_memory_resident__the_list_has_memory_md_first_and_daily_last(void **state) {
    fixture *f = *state;
    file_at(f, "b.md", S("x"), 0);
    file_at(f, "MEMORY.md", S("x"), 100);
    file_at(f, "a.md", S("x"), 1);
    file_at(f, "A.md", S("x"), 1);
    file_at(f, "daily/2026-11-30.md", S("x"), 0);
    file_at(f, "daily/2026-11-29.md", S("x"), 0);
    file_at(f, ".hidden.md", S("x"), 0);
    file_at(f, "notes.txt", S("x"), 0);
    file_at(f, "more/x.md", S("x"), 0);
    assert_string_equal(listed(f, f->m).p,
                        "MEMORY.md A.md a.md b.md more(name not allowed) notes.txt(name not allowed) "
                        "daily/2026-11-29.md* daily/2026-11-30.md* ");
    memory_files files;
    assert_int_equal(memory_list(f->a, f->m, &files, NULL), DEP_OK);
    assert_int_equal(files.p[0].bytes, 1);
    assert_int_equal(files.p[0].mtime_ms, 1796039900000);
}

static void test_memory_resident__memory_md_comes_first_and_then_the_newest_write(void **state) {
    fixture *f = *state;
    file_at(f, "old.md", S("x"), 30);
    file_at(f, "new.md", S("x"), 10);
    file_at(f, "MEMORY.md", S("x"), 100);
    file_at(f, "same-b.md", S("x"), 20);
    file_at(f, "same-a.md", S("x"), 20);
    file_at(f, "daily/2026-11-30.md", S("x"), 0);
    memory_block b = block_of(f, f->m);
    assert_string_equal(names_of(f, &b).p, "MEMORY.md new.md same-a.md same-b.md old.md ||");
}

static void test_memory_resident__what_does_not_fit_is_left_out_whole_and_named(void **state) {
    fixture *f = *state;
    file_at(f, "MEMORY.md", filled(f, 4000), 100);
    file_at(f, "a.md", filled(f, 4000), 1);
    file_at(f, "b.md", filled(f, 3900), 2);
    file_at(f, "c.md", filled(f, 101), 3); // one too many for the rest
    file_at(f, "d.md", filled(f, 100), 4); // fits exactly
    file_at(f, "e.md", S("x"), 5);
    file_at(f, "f.md", S("\n\n"), 6); // empty: always fits
    memory_block b = block_of(f, f->m);
    assert_string_equal(names_of(f, &b).p, "MEMORY.md a.md b.md d.md f.md | c.md e.md|");
    size_t sum = 0;
    for (vec_each(memory_shown, s, &b.files)) {
        assert_int_equal(s->chars, s->shown);
        sum += utf8_count(s->text);
    }
    assert_int_equal(sum, MEMORY_BLOCK_CHARS);
}

static void test_memory_resident__a_long_file_gives_both_sizes(void **state) {
    fixture *f = *state;
    str old = filled(f, 3000);
    file_at(f, "MEMORY.md", str_fmt(f->a, H STR_FMT "\n\n" H STR_FMT "\n", STR_ARG(old), STR_ARG(old)), 0);
    memory_block b = block_of(f, f->m);
    assert_int_equal(b.files.p[0].chars, 2 * 3046 + 2);
    assert_int_equal(b.files.p[0].shown, 3046);
    assert_true(str_eq(b.files.p[0].text, str_fmt(f->a, H STR_FMT, STR_ARG(old))));
}

// Rules B22 and B24: the block is fit for a prompt, its limits hold after escaping, and what is invisible is
// told.
static void test_memory_resident__text_is_escaped_once_and_invisible_text_is_told(void **state) {
    fixture *f = *state;
    file_at(f, "MEMORY.md", S("a\r\n</memory>\u200B\xff"), 0);
    buf b = buf_new(f->a, 0);
    for (int i = 0; i < 1000; i++) buf_add(&b, S("\u200B")); // eight characters each when written visibly
    file_at(f, "z.md", buf_str(&b), 0);
    memory_block k = block_of(f, f->m);
    assert_string_equal(k.files.p[0].text.p, "a\n&lt;/memory>\\u{200B}\uFFFD");
    assert_true(str_eq(foreign(f->a, k.files.p[0].text, FOREIGN_TEXT, 0), k.files.p[0].text));
    assert_int_equal(k.files.p[0].invisible.n, 1);
    assert_int_equal(k.files.p[0].invisible.p[0].cp, 0x200B);
    assert_int_equal(k.files.p[0].invisible.p[0].line, 2);
    assert_int_equal(k.files.p[1].chars, 8000);
    assert_true(utf8_count(k.files.p[1].text) <= MEMORY_RESIDENT_CHARS);
    assert_int_equal(k.files.p[1].invisible.p[0].count, 1000);
}

static void test_memory_resident__the_same_files_give_the_same_block(void **state) {
    fixture *f = *state;
    for (int i = 0; i < 30; i++) file_at(f, str_fmt(f->a, "n%02d.md", i * 7 % 30).p, filled(f, 700), i % 3);
    memory_block x = block_of(f, f->m), y = block_of(f, f->m);
    assert_string_equal(names_of(f, &x).p, names_of(f, &y).p);
    assert_int_equal(x.files.n, 17);
    assert_int_equal(x.left_out.n, 13);
}

static void test_memory_resident__odd_files_are_withheld_with_the_reason(void **state) {
    fixture *f = *state;
    file_at(f, "good.md", S("good"), 0);
    file_at(f, "twice.md", S("TWICE"), 0);
    file_at(f, "big.md", filled(f, MEMORY_FILE_MAX + 1), 0);
    assert_int_equal(link(at(f, SCOPE "/twice.md"), at(f, "second")), 0);
    assert_int_equal(symlink("/etc/hostname", at(f, SCOPE "/link.md")), 0);
    assert_int_equal(mkfifo(at(f, SCOPE "/pipe.md"), 0600), 0);
    assert_int_equal(symlink("..", at(f, SCOPE "/daily")), 0);
    memory_block b = block_of(f, f->m);
    assert_string_equal(names_of(f, &b).p,
                        "good.md || big.md(over 256 KiB) link.md(symbolic link) pipe.md(not a regular file) "
                        "twice.md(several links) daily(symbolic link)");
    search_result r;
    assert_int_equal(memory_search(f->a, f->m, S("TWICE"), 10, NULL, NULL, &r, NULL), DEP_OK);
    assert_int_equal(r.hits.n, 0);
}

static void test_memory_resident__more_than_200_files_are_told_and_memory_md_is_never_among_them(
    void **state) {
    fixture *f = *state;
    for (int i = 0; i < MEMORY_FILES_MAX; i++) file_at(f, str_fmt(f->a, "A%03d.md", i).p, S("x"), 0);
    file_at(f, "MEMORY.md", S("y"), 0);
    file_at(f, "daily/d.md", S("x"), 0);
    memory_files files;
    assert_int_equal(memory_list(f->a, f->m, &files, NULL), DEP_OK);
    assert_int_equal(files.n, MEMORY_FILES_MAX + 2);
    for (size_t i = 0; i < files.n; i++) assert_int_equal(files.p[i].withheld.n > 0, i >= MEMORY_FILES_MAX);
    assert_true(str_eq(files.p[0].name, S("MEMORY.md")));
    assert_string_equal(files.p[files.n - 1].withheld.p, "more than 200 files");
}

// Rule B7.
static void test_memory_resident__untrusted_files_are_in_no_block_and_no_search(void **state) {
    fixture *f = *state;
    trust_list *t = NULL;
    memory_scope *m = NULL;
    memory_write_opts o = {.agent = S("a")};
    memory_written w;
    assert_int_equal(trust_open(f->a, str_fmt(f->a, "%s/state", f->dir), S("/w"), false, &t, NULL), DEP_OK);
    assert_int_equal(memory_open(f->a, f->root, S(SCOPE), true, t, NULL, &m, NULL), DEP_OK);
    file_at(f, "cloned.md", S("refund everything"), 0);
    assert_int_equal(memory_write(f->a, m, S("mine.md"), S("refund nothing"), &o, &w, NULL), DEP_OK);
    assert_int_equal(memory_write(f->a, m, S("changed.md"), S("refund some"), &o, &w, NULL), DEP_OK);
    file_at(f, "changed.md", S("refund all"), 0);
    memory_block b = block_of(f, m);
    assert_string_equal(names_of(f, &b).p, "mine.md || changed.md(untrusted: changed outside Deputy) "
                                           "cloned.md(untrusted: not written by Deputy)");
    search_result r;
    assert_int_equal(memory_search(f->a, m, S("refund"), 10, NULL, NULL, &r, NULL), DEP_OK);
    assert_int_equal(r.hits.n, 1);
    assert_true(str_eq(r.hits.p[0].path, S("mine.md")));
    assert_int_equal(r.cuts.n, 2);
    // Accepted by a person, they are used.
    assert_int_equal(
        trust_record(t, S(SCOPE "/cloned.md"), sha256_hex(f->a, S("refund everything")), (str){0}, NULL),
        DEP_OK);
    assert_int_equal(memory_search(f->a, m, S("refund"), 10, NULL, NULL, &r, NULL), DEP_OK);
    assert_int_equal(r.hits.n, 2);
}

static void test_memory_resident__search_finds_lines_in_root_and_daily_files(void **state) {
    fixture *f = *state;
    file_at(f, "MEMORY.md", S("# Refunds\n\nThe deadline is 30 days.\n"), 0);
    file_at(f, "daily/2026-11-30.md", S("x\nA deadline was missed.\n"), 0);
    file_at(f, "daily/.hidden.md", S("deadline\n"), 0);
    file_at(f, ".lock.md", S("deadline\n"), 0);
    file_at(f, "notes.txt", S("deadline\n"), 0);
    search_result r;
    assert_int_equal(memory_search(f->a, f->m, S("Deadline"), 10, NULL, NULL, &r, NULL), DEP_OK);
    assert_int_equal(r.hits.n, 2);
    for (size_t i = 0; i < 2; i++) {
        bool daily = str_starts(r.hits.p[i].path, S("daily/"));
        assert_true(str_eq(r.hits.p[i].path, daily ? S("daily/2026-11-30.md") : S("MEMORY.md")));
        assert_int_equal(r.hits.p[i].line, daily ? 2 : 3);
        assert_int_equal(r.hits.p[i].source.n, 0); // there is one scope and no choice of sources
    }
    assert_int_equal(memory_search(f->a, f->m, S("deadline"), 1, NULL, NULL, &r, NULL), DEP_OK);
    assert_int_equal(r.hits.n, 1);
    assert_int_equal(memory_search(f->a, f->m, S(" "), 1, NULL, NULL, &r, NULL), DEP_ERR_INVALID);
}

static void test_memory_resident__the_end_of_a_file_shows_what_the_whole_would(void **state) {
    fixture *f = *state;
    const char *const pieces[] = {"x",  "ü", "退",     "\U0001F600", "\u200B", "\r\n",
                                  "\n", H,   ("\n" H), "e\u0301",    "\xff",   "\r"};
    unsigned seed = 7;
    for (int round = 0; round < 300; round++) {
        buf b = buf_new(f->a, 0);
        size_t want = 14000 + (size_t)(round * 97) % 9000;
        while (b.n < want) {
            seed = seed * 1103515245u + 12345u;
            const char *piece = pieces[(seed >> 16) % 12];
            for (unsigned n = (seed >> 8) % (round % 3 ? 30 : 3000) + 1; n > 0 && b.n < want; n--)
                buf_add(&b, str_z(piece));
        }
        if (round % 7 == 0)
            for (int i = 0; i < 20000; i++) buf_addc(&b, i % 3 ? '\n' : '\r');
        size_t chars, whole, end;
        str text = buf_str(&b);
        str x =
            memory_newest(f->a, foreign(f->a, text, FOREIGN_TEXT, 0), MEMORY_RESIDENT_CHARS, &chars, &whole);
        str y = memory_newest(f->a, foreign(f->a, memory_end(text), FOREIGN_TEXT, 0), MEMORY_RESIDENT_CHARS,
                              &chars, &end);
        assert_true(str_eq(x, y));
        assert_int_equal(whole, end);
        assert_true(utf8_count(x) <= MEMORY_RESIDENT_CHARS);
    }
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_memory_resident__an_empty_scope_is_an_empty_block),
        T(test_memory_resident__the_list_has_memory_md_first_and_daily_last),
        T(test_memory_resident__memory_md_comes_first_and_then_the_newest_write),
        T(test_memory_resident__what_does_not_fit_is_left_out_whole_and_named),
        T(test_memory_resident__a_long_file_gives_both_sizes),
        T(test_memory_resident__text_is_escaped_once_and_invisible_text_is_told),
        T(test_memory_resident__the_same_files_give_the_same_block),
        T(test_memory_resident__odd_files_are_withheld_with_the_reason),
        T(test_memory_resident__more_than_200_files_are_told_and_memory_md_is_never_among_them),
        T(test_memory_resident__untrusted_files_are_in_no_block_and_no_search),
        T(test_memory_resident__search_finds_lines_in_root_and_daily_files),
        T(test_memory_resident__the_end_of_a_file_shows_what_the_whole_would),
    };
    return cmocka_run_group_tests_name("memory_resident", tests, NULL, NULL);
}

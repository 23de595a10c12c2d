// Real skills of many repositories, and texts made to be awkward: nothing crashes, what is known to be broken
// is told, and what is sound is read.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/skills.h>
#include <deputy/utf8.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool has_code(const diags *d, const char *code) {
    for (vec_each(const diag, i, &d->items))
        if (strcmp(i->code, code) == 0) return true;
    return false;
}

static bool has_yaml(const diags *d) {
    for (vec_each(const diag, i, &d->items))
        if (str_starts(str_z(i->code), S("YAML"))) return true;
    return false;
}

static bool flagged(str flags, const char *flag) {
    str rest = flags, head;
    for (bool more = true; more;) {
        more = str_cut(rest, ',', &head, &rest);
        if (str_eq(head, str_z(flag))) return true;
    }
    return false;
}

static void check_one(arena *a, str row_path, str flags, str text) {
    skill s = {0};
    diags d = diags_new(a);
    str folder = path_base(path_dir(row_path));
    bool ok = skill_parse(a, row_path, text, folder, &s, &d);
    const struct {
        const char *flag, *code;
    } wanted[] = {
        {"no-frontmatter", "SKL001"}, {"missing-desc", "SKL004"}, {"missing-name", "SKL005"},
        {"dup-keys", "SKL010"},       {"name-ne-dir", "SKL008"},  {"name-odd", "SKL007"},
        {"zero-width", "SKL016"},     {"yaml-error", "SKL003"},   {"tools-string", "SKL011"},
        {"nested:hooks", "SKL011"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        if (!flagged(flags, wanted[i].flag) || has_code(&d, wanted[i].code)) continue;
        // A name that is not there differs from nothing.
        if (strcmp(wanted[i].flag, "name-ne-dir") == 0 && (has_code(&d, "SKL005") || !ok)) continue;
        // The index means ASCII; letters of other scripts are fine.
        if (strcmp(wanted[i].flag, "name-odd") == 0 && flagged(flags, "nonascii-name")) continue;
        fail_msg(STR_FMT ": no %s for %s", STR_ARG(row_path), wanted[i].code, wanted[i].flag);
    }
    bool broken = flagged(flags, "no-frontmatter") || flagged(flags, "missing-desc");
    if (ok == broken) fail_msg(STR_FMT ": %s", STR_ARG(row_path), ok ? "read" : "not read");
    if (!ok) return;
    assert_true(s.name.n > 0 && s.description.n > 0);
    assert_true(utf8_count(s.description) <= SKILL_DESCRIPTION_MAX);
    assert_true(str_chr(s.description, '\n') == SIZE_MAX && str_chr(s.description, '\r') == SIZE_MAX);
    assert_true(str_ends(text, s.body));
    // Nothing of the frontmatter is in the body.
    assert_false(str_starts(s.body, S("---\nname:")));
}

static void test_skills_corpus__real_skills_are_read_and_their_faults_told(void **state) {
    (void)state;
    char *root = shared_path("realdata/skills");
    if (!root) skip();
    arena *a = arena_new();
    str index, row, rest;
    size_t seen = 0;
    assert_int_equal(file_read(a, str_fmt(a, "%s/INDEX.tsv", root), 1 << 20, &index, NULL), DEP_OK);
    str_cut(index, '\n', &row, &rest);
    while (str_cut(rest, '\n', &row, &rest)) {
        str repo, path, files, bytes, flags, text;
        str_cut(row, '\t', &repo, &row);
        str_cut(row, '\t', &path, &row);
        str_cut(row, '\t', &files, &row);
        str_cut(row, '\t', &bytes, &flags);
        str owner, name;
        str_cut(repo, '/', &owner, &name);
        str file = str_fmt(a, "%s/" STR_FMT "__" STR_FMT "/" STR_FMT, root, STR_ARG(owner), STR_ARG(name),
                           STR_ARG(path));
        if (file_read(a, file, 1 << 20, &text, NULL) != DEP_OK) continue; // not every copy has all of them
        check_one(a, path, flags, text);
        seen++;
    }
    assert_true(seen > 0);
    print_message("# %zu real skills\n", seen);
    arena_free(a);
    free(root);
}

// Each repository as one root: what the walk finds is what the files say, and no descriptor is lost.
static void test_skills_corpus__whole_repositories_are_walked(void **state) {
    (void)state;
    char *root = shared_path("realdata/skills");
    if (!root) skip();
    arena *a = arena_new();
    int fd = -1;
    dir_entries repos;
    size_t found = 0;
    assert_int_equal(dir_open(str_z(root), &fd, NULL), DEP_OK);
    assert_int_equal(dir_list(a, fd, 1000, &repos, NULL), DEP_OK);
    for (vec_each(dir_entry, e, &repos)) {
        if (e->type != DT_DIR) continue;
        skill_root r = {.label = e->name, .layer = SKILL_PLUGIN};
        skill_list list;
        diags d = diags_new(a);
        assert_int_equal(dir_open_at(fd, e->name, FILE_NO_LINKS, &r.dir, NULL), DEP_OK);
        assert_int_equal(skills_find(a, &r, 1, NULL, &list, &d, NULL), DEP_OK);
        for (vec_each(const skill, s, &list)) {
            strs files;
            size_t more;
            found++;
            if (s->shadowed_by.n) continue;
            assert_true(s->dir >= 0);
            assert_int_equal(skill_files(a, s, &files, &more, NULL), DEP_OK);
            for (vec_each(const str, f, &files)) {
                str text;
                dep_status status = skill_read(a, s, *f, &text, NULL);
                assert_true(status == DEP_OK || status == DEP_ERR_LIMIT);
            }
        }
        close(r.dir);
    }
    assert_true(found > 20);
    close(fd);
    arena_free(a);
    free(root);
}

// Awkward texts as SKILL.md.
static void test_skills_corpus__made_texts_end_in_a_skill_or_a_reason(void **state) {
    (void)state;
    char *root = shared_path("realdata/text/made");
    if (!root) skip();
    arena *a = arena_new();
    int fd = -1;
    dir_entries names;
    assert_int_equal(dir_open(str_z(root), &fd, NULL), DEP_OK);
    assert_int_equal(dir_list(a, fd, 1000, &names, NULL), DEP_OK);
    const struct {
        const char *file;
        int ok; // 1, 0; -1: either
        const char *code;
    } known[] = {
        {"bom-utf8.md", 1, NULL},
        {"bom-utf8-crlf.md", 1, NULL},
        {"crlf-utf8.md", 1, NULL},
        {"lf-utf8.md", 1, NULL},
        {"closing-fence-at-eof.md", 1, "SKL019"},
        {"double-bom.md", 1, "SKL017"},
        {"cr-only.md", 0, "SKL001"},
        {"utf16le-bom.md", 0, "SKL001"},
        {"empty.md", 0, "SKL001"},
        {"only-bom.md", 0, "SKL001"},
        {"only-fences.md", 0, "SKL004"},
        {"leading-blank-line.md", 0, "SKL001"},
        {"leading-comment.md", 0, "SKL001"},
        {"unquoted-colon.md", 1, "SKL003"},
        {"unicode-tag-smuggle.md", -1, "SKL016"},
        {"zero-width-in-name.md", -1, "SKL016"},
        {"rtl-override-name.md", -1, "SKL016"},
        {"soft-hyphen-heading.md", -1, "SKL016"},
    };
    const char *quiet[] = {"flag-emoji-legit-tags.md", "emoji-zwj.md"};
    size_t hits = 0;
    for (vec_each(dir_entry, e, &names)) {
        str text;
        skill s = {0};
        diags d = diags_new(a);
        assert_int_equal(file_read_at(a, fd, e->name, FILE_NO_LINKS, 4 << 20, &text, NULL, NULL), DEP_OK);
        bool ok = skill_parse(a, e->name, text, S("folder"), &s, &d);
        assert_true(ok || d.errors > 0);
        assert_true(ok ? s.name.n > 0 && s.description.n > 0 : true);
        for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
            if (!str_eq(e->name, str_z(known[i].file))) continue;
            hits++;
            if ((known[i].ok >= 0 && ok != known[i].ok) || (known[i].code && !has_code(&d, known[i].code)))
                fail_msg("%s: %d", known[i].file, ok);
            // A mark at the start becomes part of nothing.
            assert_true(!ok ||
                        (str_find(s.name, S("\uFEFF")) == SIZE_MAX && !str_starts(s.body, S("\uFEFF"))));
        }
        for (size_t i = 0; i < 2; i++)
            if (str_eq(e->name, str_z(quiet[i])) && has_code(&d, "SKL016")) fail_msg("%s", quiet[i]);
    }
    assert_int_equal(hits, sizeof known / sizeof *known);
    close(fd);
    arena_free(a);
    free(root);
}

// C05: LF, CR LF and a byte order mark make no difference.
static void test_skills_corpus__line_ends_and_marks_make_no_difference(void **state) {
    (void)state;
    char *root = shared_path("realdata/skills");
    if (!root) skip();
    arena *a = arena_new();
    str index, row, rest;
    assert_int_equal(file_read(a, str_fmt(a, "%s/INDEX.tsv", root), 1 << 20, &index, NULL), DEP_OK);
    str_cut(index, '\n', &row, &rest);
    while (str_cut(rest, '\n', &row, &rest)) {
        str repo, path, owner, name, text;
        str_cut(row, '\t', &repo, &row);
        str_cut(row, '\t', &path, &row);
        str_cut(repo, '/', &owner, &name);
        str file = str_fmt(a, "%s/" STR_FMT "__" STR_FMT "/" STR_FMT, root, STR_ARG(owner), STR_ARG(name),
                           STR_ARG(path));
        if (file_read(a, file, 1 << 20, &text, NULL) != DEP_OK || str_chr(text, '\r') != SIZE_MAX) continue;
        buf crlf = buf_new(a, 0);
        buf_add(&crlf, S("\xEF\xBB\xBF"));
        for (size_t i = 0; i < text.n; i++) {
            if (text.p[i] == '\n') buf_addc(&crlf, '\r');
            buf_addc(&crlf, text.p[i]);
        }
        skill x = {0}, y = {0};
        diags dx = diags_new(a), dy = diags_new(a);
        bool okx = skill_parse(a, path, text, S("folder"), &x, &dx);
        bool oky = skill_parse(a, path, buf_str(&crlf), S("folder"), &y, &dy);
        assert_int_equal(okx, oky);
        assert_true(str_eq(x.name, y.name));
        assert_true(str_eq(x.description, y.description));
        assert_true(str_eq(x.grants_nothing, y.grants_nothing));
        assert_int_equal(x.hidden, y.hidden);
        assert_int_equal(dx.items.n, dy.items.n);
        for (size_t i = 0; i < dx.items.n; i++) {
            assert_string_equal(dx.items.p[i].code, dy.items.p[i].code);
            assert_int_equal(dx.items.p[i].line, dy.items.p[i].line);
        }
    }
    arena_free(a);
    free(root);
}

// Definitions of other hosts have the same frontmatter: 55 files made from real ones by known damage.
static void test_skills_corpus__damaged_frontmatter_ends_in_a_skill_or_a_reason(void **state) {
    (void)state;
    char *root = shared_path("realdata/agents-derived");
    if (!root) skip();
    arena *a = arena_new();
    int fd = -1;
    dir_entries names;
    assert_int_equal(dir_open(str_z(root), &fd, NULL), DEP_OK);
    assert_int_equal(dir_list(a, fd, 1000, &names, NULL), DEP_OK);
    for (vec_each(dir_entry, e, &names)) {
        str text;
        skill s = {0};
        diags d = diags_new(a);
        assert_int_equal(file_read_at(a, fd, e->name, FILE_NO_LINKS, 4 << 20, &text, NULL, NULL), DEP_OK);
        bool ok = skill_parse(a, e->name, text, S("folder"), &s, &d);
        assert_true(ok || d.errors > 0);
        const struct {
            const char *end;
            bool ok, told;
        } ends[] = {{"-crlf.md", true, false},  {"-bom.md", true, false},   {"-nofinalnl.md", true, false},
                    {"-dupkey.md", true, true}, {"-noname.md", true, true}, {"-blankfirst.md", false, true},
                    {"-cr.md", false, true},    {"-latin1.md", true, false}};
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            if (!str_ends(e->name, str_z(ends[i].end))) continue;
            if (ok != ends[i].ok || (ends[i].told && !d.items.n))
                fail_msg(STR_FMT ": %d", STR_ARG(e->name), ok);
        }
        if (ok && has_yaml(&d)) assert_true(has_code(&d, "SKL003") || s.description.n);
    }
    close(fd);
    arena_free(a);
    free(root);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skills_corpus__real_skills_are_read_and_their_faults_told),
        cmocka_unit_test(test_skills_corpus__whole_repositories_are_walked),
        cmocka_unit_test(test_skills_corpus__made_texts_end_in_a_skill_or_a_reason),
        cmocka_unit_test(test_skills_corpus__line_ends_and_marks_make_no_difference),
        cmocka_unit_test(test_skills_corpus__damaged_frontmatter_ends_in_a_skill_or_a_reason),
    };
    return cmocka_run_group_tests_name("skills_corpus", tests, NULL, NULL);
}

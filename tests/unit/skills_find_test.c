// Finding skills: layers and collisions, trust, links, limits, and the files beside SKILL.md.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/skills.h>
#include <deputy/sys.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
    arena *a;
    char *dir;
    int root; // the workspace
    trust_list *trust;
    skill_list list;
    diags d;
} fixture;

static char *at(fixture *f, const char *name) {
    return str_cz(f->a, str_fmt(f->a, "%s/w/%s", f->dir, name));
}

static int setup(void **state) {
    fixture *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->dir = temp_dir_fast(NULL);
    assert_int_equal(mkdir(at(f, ""), 0755), 0);
    f->root = open(at(f, ""), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(f->root >= 0);
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

static str skill_text_of(fixture *f, const char *name) {
    return str_fmt(f->a, "---\nname: %s\ndescription: About %s.\n---\nBody of %s.\n", name, name, name);
}

static void put_skill(fixture *f, const char *folder, const char *name) {
    temp_write(f->dir, str_fmt(f->a, "w/%s/SKILL.md", folder).p, skill_text_of(f, name));
}

static void make_link(fixture *f, const char *target, const char *name) {
    assert_int_equal(symlink(target, at(f, name)), 0);
}

static const char *refuse_memory(void *ctx, const struct stat *st) {
    const struct stat *memory = ctx;
    return st->st_ino == memory->st_ino && st->st_dev == memory->st_dev ? "belongs to memory" : NULL;
}

// The roots of a workspace, those that are there. inside: links may lead anywhere in the workspace.
static void find(fixture *f, bool inside, struct stat *memory) {
    const struct {
        const char *dir;
        skill_layer layer;
    } places[] = {{".deputy/skills", SKILL_WORKSPACE},
                  {".agents/skills", SKILL_WORKSPACE_ECOSYSTEM},
                  {"system", SKILL_SYSTEM},
                  {"home", SKILL_USER_ECOSYSTEM}};
    skill_root roots[4];
    size_t n = 0;
    dep_err err;
    for (size_t i = 0; i < 4; i++) {
        int fd = openat(f->root, places[i].dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) continue;
        roots[n] = (skill_root){
            .dir = arena_defer_close(f->a, fd), .label = str_z(places[i].dir), .layer = places[i].layer};
        if (inside) {
            roots[n].within = f->root;
            roots[n].below = str_z(places[i].dir);
        }
        if (memory) {
            roots[n].refuse = refuse_memory;
            roots[n].ctx = memory;
        }
        n++;
    }
    f->d = diags_new(f->a);
    assert_int_equal(skills_find(f->a, roots, n, f->trust, &f->list, &f->d, &err), DEP_OK);
}

// "name@location", one a line; shadowed ones with "<", withheld ones with "!".
static const char *found(fixture *f) {
    buf b = buf_new(f->a, 0);
    for (vec_each(const skill, s, &f->list))
        buf_addf(&b, "%s" STR_FMT "@" STR_FMT "%s%s", b.n ? " " : "", STR_ARG(s->name), STR_ARG(s->location),
                 s->shadowed_by.n ? "<" : "", s->withheld.n ? "!" : "");
    return buf_str(&b).p;
}

static const diag *told(fixture *f, const char *code, const char *file) {
    for (vec_each(const diag, d, &f->d.items))
        if (strcmp(d->code, code) == 0 && (!file || str_eq(d->file, str_z(file)))) return d;
    return NULL;
}

static bool holds(str s, const char *part) {
    return str_find(s, str_z(part)) != SIZE_MAX;
}

static void expect_quiet(fixture *f) {
    for (vec_each(const diag, d, &f->d.items))
        fail_msg("%s " STR_FMT ": " STR_FMT, d->code, STR_ARG(d->file), STR_ARG(d->msg));
}

static void test_skills_find__skills_come_in_order_of_roots_and_folders(void **state) {
    fixture *f = *state;
    put_skill(f, ".deputy/skills/b", "b");
    put_skill(f, ".deputy/skills/a", "a");
    put_skill(f, ".deputy/skills/group/c", "c");
    put_skill(f, ".agents/skills/d", "d");
    put_skill(f, "system/e", "e");
    put_skill(f, ".deputy/skills/node_modules/x", "x");
    put_skill(f, ".deputy/skills/.git/y", "y");
    put_skill(f, ".deputy/skills/a/assets/sample", "sample"); // a skill's folder holds no more of them
    temp_write(f->dir, "w/.deputy/skills/README.md", S("x"));
    find(f, false, NULL);
    expect_quiet(f);
    assert_string_equal(found(f), "a@.deputy/skills/a/SKILL.md b@.deputy/skills/b/SKILL.md "
                                  "c@.deputy/skills/group/c/SKILL.md d@.agents/skills/d/SKILL.md "
                                  "e@system/e/SKILL.md");
    const skill *s = skills_get(&f->list, S("b"));
    assert_true(str_eq(s->body, S("Body of b.\n")));
    assert_true(str_eq(s->sha256, sha256_hex(f->a, skill_text_of(f, "b"))));
    assert_int_equal(s->layer, SKILL_WORKSPACE);
    assert_true(s->dir >= 0);
    assert_null(skills_get(&f->list, S("x")));
}

static void test_skills_find__no_roots_and_empty_roots_are_fine(void **state) {
    fixture *f = *state;
    find(f, false, NULL);
    assert_int_equal(f->list.n, 0);
    assert_int_equal(mkdir(at(f, "system"), 0755), 0);
    find(f, false, NULL);
    assert_int_equal(f->list.n, 0);
    expect_quiet(f);
}

// C30.
static void test_skills_find__odd_spellings_are_found_and_told(void **state) {
    fixture *f = *state;
    temp_write(f->dir, "w/system/tide/skill.md", skill_text_of(f, "tide"));
    put_skill(f, "system/Tide Table", "tide-table");
    put_skill(f, "system/x", "y");
    put_skill(f, "system/z", "z");
    temp_write(f->dir, "w/system/z/Skill.md", skill_text_of(f, "zz"));
    put_skill(f, "system", "root");
    find(f, false, NULL);
    assert_string_equal(found(f), "tide-table@system/Tide Table/SKILL.md tide@system/tide/skill.md "
                                  "y@system/x/SKILL.md z@system/z/SKILL.md");
    assert_non_null(told(f, "SKL012", "system/tide/skill.md"));
    assert_non_null(told(f, "SKL012", "system/z/SKILL.md"));
    assert_non_null(told(f, "SKL008", "system/Tide Table/SKILL.md"));
    assert_non_null(told(f, "SKL008", "system/x/SKILL.md"));
    assert_non_null(told(f, "SKL018", "system/SKILL.md"));
    assert_int_equal(f->d.items.n, 5);
    assert_non_null(skills_get(&f->list, S("y")));
    assert_null(skills_get(&f->list, S("x")));
}

static void test_skills_find__the_first_of_a_name_wins_and_both_are_named(void **state) {
    fixture *f = *state;
    put_skill(f, ".deputy/skills/two", "tide");
    put_skill(f, ".deputy/skills/one", "Tide");
    put_skill(f, ".agents/skills/tide", "ｔide"); // full-width: one identity
    put_skill(f, "home/tide", "tide");
    put_skill(f, "home/other", "other");
    find(f, false, NULL);
    assert_string_equal(found(f), "Tide@.deputy/skills/one/SKILL.md tide@.deputy/skills/two/SKILL.md< "
                                  "ｔide@.agents/skills/tide/SKILL.md< other@home/other/SKILL.md "
                                  "tide@home/tide/SKILL.md<");
    const char *losers[] = {".deputy/skills/two/SKILL.md", ".agents/skills/tide/SKILL.md",
                            "home/tide/SKILL.md"};
    for (size_t i = 0; i < 3; i++) {
        const diag *d = told(f, "SKL013", losers[i]);
        assert_non_null(d);
        assert_true(holds(d->msg, ".deputy/skills/one/SKILL.md"));
    }
    for (vec_each(const skill, s, &f->list)) assert_int_equal(s->dir >= 0, s->shadowed_by.n == 0);
    const char *names[] = {"tide", "Tide", "TIDE", "ｔｉｄｅ"};
    for (size_t i = 0; i < 4; i++) assert_ptr_equal(skills_get(&f->list, str_z(names[i])), &f->list.p[0]);
}

static void test_skills_find__a_broken_skill_hides_no_other(void **state) {
    fixture *f = *state;
    temp_write(f->dir, "w/.deputy/skills/a/SKILL.md", S("---\nname: a\n---\nno description\n"));
    temp_write(f->dir, "w/.deputy/skills/b/SKILL.md", S("no frontmatter"));
    assert_int_equal(mkdir(at(f, ".deputy/skills/c"), 0755), 0);
    assert_int_equal(mkfifo(at(f, ".deputy/skills/c/SKILL.md"), 0644), 0);
    assert_int_equal(mkdir(at(f, ".deputy/skills/d"), 0755), 0);
    assert_int_equal(mkdir(at(f, ".deputy/skills/d/SKILL.md"), 0755), 0);
    put_skill(f, ".deputy/skills/e", "e");
    put_skill(f, "home/a", "a");
    find(f, false, NULL);
    assert_string_equal(found(f), "e@.deputy/skills/e/SKILL.md a@home/a/SKILL.md");
    assert_non_null(told(f, "SKL004", ".deputy/skills/a/SKILL.md"));
    assert_non_null(told(f, "SKL001", ".deputy/skills/b/SKILL.md"));
    assert_non_null(told(f, "SKL018", ".deputy/skills/c/SKILL.md"));
    assert_non_null(told(f, "SKL018", ".deputy/skills/d/SKILL.md"));
    assert_int_equal(f->d.errors, 4);
}

// --- Trust ---------------------------------------------------------------------------------------

static void trust_now(fixture *f, const char *file) {
    str text;
    assert_int_equal(file_read(f->a, str_z(at(f, file)), 1 << 20, &text, NULL), DEP_OK);
    assert_int_equal(trust_record(f->trust, str_z(file), sha256_hex(f->a, text), (str){0}, NULL), DEP_OK);
}

static void open_trust(fixture *f) {
    assert_int_equal(trust_open(f->a, str_fmt(f->a, "%s/state", f->dir), S("/w"), false, &f->trust, NULL),
                     DEP_OK);
}

// Rule B7: a clone's skill is withheld and shadows nothing; one that was trusted once keeps its name.
static void test_skills_find__untrusted_skills_are_withheld_and_shadow_nothing(void **state) {
    fixture *f = *state;
    open_trust(f);
    put_skill(f, ".deputy/skills/new", "new");
    put_skill(f, ".deputy/skills/tide", "tide");
    put_skill(f, ".agents/skills/old", "old");
    put_skill(f, "home/tide", "tide");
    put_skill(f, "home/old", "old");
    trust_now(f, ".agents/skills/old/SKILL.md");
    find(f, false, NULL);
    assert_non_null(told(f, "SKL013", "home/old/SKILL.md"));
    assert_int_equal(f->d.items.n, 1); // for "tide" there is no collision: what is not trusted is not there
    // Of "tide" the person's own wins; of "old" the workspace's does.
    assert_string_equal(skills_get(&f->list, S("tide"))->location.p, "home/tide/SKILL.md");
    assert_true(str_empty(skills_get(&f->list, S("tide"))->withheld));
    assert_true(str_eq(skills_get(&f->list, S("new"))->withheld, S("not trusted")));
    assert_int_equal(skills_get(&f->list, S("new"))->dir, -1);
    assert_string_equal(found(f),
                        "new@.deputy/skills/new/SKILL.md! tide@.deputy/skills/tide/SKILL.md<! "
                        "old@.agents/skills/old/SKILL.md old@home/old/SKILL.md< tide@home/tide/SKILL.md");
}

static void test_skills_find__a_changed_skill_keeps_its_name_until_it_is_trusted_again(void **state) {
    fixture *f = *state;
    open_trust(f);
    put_skill(f, ".deputy/skills/tide", "tide");
    put_skill(f, ".deputy/skills/moon", "moon");
    put_skill(f, "home/tide", "tide");
    put_skill(f, "home/moon", "moon");
    trust_now(f, ".deputy/skills/tide/SKILL.md");
    trust_now(f, ".deputy/skills/moon/SKILL.md");
    temp_write(f->dir, "w/.deputy/skills/tide/SKILL.md", S("---\nname: tide\ndescription: Obey.\n---\nx"));
    temp_write(f->dir, "w/.deputy/skills/moon/SKILL.md", S("broken now"));
    find(f, false, NULL);
    const char *names[] = {"tide", "moon"};
    for (size_t i = 0; i < 2; i++) {
        const skill *s = skills_get(&f->list, str_z(names[i]));
        assert_true(str_starts(s->location, S(".deputy/")));
        assert_true(str_eq(s->withheld, S("changed since it was trusted")));
        assert_int_equal(s->dir, -1);
    }
    trust_now(f, ".deputy/skills/tide/SKILL.md");
    find(f, false, NULL);
    assert_true(str_empty(skills_get(&f->list, S("tide"))->withheld));
}

static void test_skills_find__a_list_that_trusts_nothing_withholds_the_workspace(void **state) {
    fixture *f = *state;
    f->trust = trust_none(f->a);
    put_skill(f, ".deputy/skills/a", "a");
    put_skill(f, "home/b", "b");
    find(f, false, NULL);
    assert_string_equal(found(f), "a@.deputy/skills/a/SKILL.md! b@home/b/SKILL.md");
}

// --- Links (C31) ---------------------------------------------------------------------------------

static void test_skills_find__links_that_stay_inside_are_followed_and_others_told(void **state) {
    fixture *f = *state;
    if (!file_has_openat2()) skip(); // without it no link is followed
    temp_write(f->dir, "outside/o/SKILL.md", skill_text_of(f, "o"));
    put_skill(f, ".deputy/shared/a", "a");
    put_skill(f, ".deputy/shared/b", "b");
    put_skill(f, ".deputy/skills/.own/n", "n"); // inside the root itself
    assert_int_equal(mkdir(at(f, ".deputy/skills/b"), 0755), 0);
    assert_int_equal(mkdir(at(f, ".deputy/skills/loop"), 0755), 0);
    make_link(f, "../shared/a", ".deputy/skills/a");
    make_link(f, "../../shared/b/SKILL.md", ".deputy/skills/b/SKILL.md");
    make_link(f, ".own/n", ".deputy/skills/n");
    make_link(f, "nothing", ".deputy/skills/dangling");
    make_link(f, "ring2", ".deputy/skills/ring1");
    make_link(f, "ring1", ".deputy/skills/ring2");
    make_link(f, "..", ".deputy/skills/loop/up");
    make_link(f, "../../../outside/o", ".deputy/skills/out");
    make_link(f, "/etc", ".deputy/skills/etc");
    make_link(f, "../shared/a/SKILL.md", ".deputy/skills/file");
    find(f, true, NULL);
    assert_string_equal(found(f), "n@.deputy/skills/.own/n/SKILL.md a@.deputy/skills/a/SKILL.md "
                                  "b@.deputy/skills/b/SKILL.md");
    const struct {
        const char *file, *part;
    } told_of[] = {
        {".deputy/skills/dangling", "nothing"},
        {".deputy/skills/ring1", "ring2"},
        {".deputy/skills/ring2", "ring1"},
        {".deputy/skills/loop/up", ".deputy/skills"},
        {".deputy/skills/out", "../../../outside/o"},
        {".deputy/skills/etc", "/etc"},
        {".deputy/skills/n", ".deputy/skills/.own/n"},
    };
    for (size_t i = 0; i < sizeof told_of / sizeof *told_of; i++) {
        const diag *d = told(f, "SKL014", told_of[i].file);
        if (!d || !holds(d->msg, told_of[i].part)) fail_msg("%s", told_of[i].file);
    }
    assert_int_equal(f->d.items.n, sizeof told_of / sizeof *told_of);
    // What is listed can be loaded.
    for (vec_each(const skill, s, &f->list)) {
        str text;
        assert_int_equal(skill_read(f->a, s, S("SKILL.md"), &text, NULL),
                         str_eq(s->name, S("b")) ? DEP_ERR_REFUSED : DEP_OK); // its file is not in its folder
    }
    // Without a wider directory only the root's own inside counts.
    find(f, false, NULL);
    assert_string_equal(found(f), "n@.deputy/skills/.own/n/SKILL.md");
    assert_non_null(told(f, "SKL014", ".deputy/skills/a"));
    assert_non_null(told(f, "SKL014", ".deputy/skills/b/SKILL.md"));
}

// Rule B2.
static void test_skills_find__what_belongs_to_memory_is_no_skill(void **state) {
    fixture *f = *state;
    if (!file_has_openat2()) skip(); // without it no link is followed
    struct stat folder, file;
    put_skill(f, ".deputy/agent-memory/a", "a");
    put_skill(f, ".deputy/skills/b", "b");
    temp_write(f->dir, "w/.deputy/skills/b/notes.md", S("secret"));
    assert_int_equal(mkdir(at(f, ".deputy/skills/x"), 0755), 0);
    make_link(f, "../agent-memory/a", ".deputy/skills/a");
    assert_int_equal(stat(at(f, ".deputy/agent-memory/a"), &folder), 0);
    find(f, true, &folder);
    assert_string_equal(found(f), "b@.deputy/skills/b/SKILL.md");
    assert_true(holds(told(f, "SKL018", ".deputy/skills/a")->msg, "belongs to memory"));
    assert_int_equal(link(at(f, ".deputy/agent-memory/a/SKILL.md"), at(f, ".deputy/skills/x/SKILL.md")), 0);
    assert_int_equal(stat(at(f, ".deputy/agent-memory/a/SKILL.md"), &file), 0);
    find(f, false, &file);
    assert_true(holds(told(f, "SKL018", ".deputy/skills/x/SKILL.md")->msg, "belongs to memory"));
    // Nor is a file beside SKILL.md.
    assert_int_equal(stat(at(f, ".deputy/skills/b/notes.md"), &file), 0);
    find(f, false, &file);
    strs files;
    size_t more;
    str text = {0};
    assert_int_equal(skill_files(f->a, skills_get(&f->list, S("b")), &files, &more, NULL), DEP_OK);
    assert_int_equal(files.n, 0);
    assert_int_equal(skill_read(f->a, skills_get(&f->list, S("b")), S("notes.md"), &text, NULL),
                     DEP_ERR_REFUSED);
    assert_true(str_empty(text));
}

// --- Limits --------------------------------------------------------------------------------------

static void test_skills_find__a_skill_of_256_kib_is_the_largest(void **state) {
    fixture *f = *state;
    str head = skill_text_of(f, "a");
    buf b = buf_new(f->a, 0);
    buf_add(&b, head);
    buf_fill(&b, 'x', SKILL_FILE_MAX - head.n);
    temp_write(f->dir, "w/system/a/SKILL.md", buf_str(&b));
    find(f, false, NULL);
    expect_quiet(f);
    assert_int_equal(f->list.n, 1);
    buf_addc(&b, 'x');
    temp_write(f->dir, "w/system/a/SKILL.md", buf_str(&b));
    find(f, false, NULL);
    assert_int_equal(f->list.n, 0);
    assert_true(holds(told(f, "SKL018", "system/a/SKILL.md")->msg, "262145"));
}

static void test_skills_find__a_skill_lies_at_most_four_folders_deep(void **state) {
    fixture *f = *state;
    put_skill(f, "system/1/2/3/four", "four");
    put_skill(f, "system/1/2/3/4/five", "five");
    put_skill(f, "system/1/2/3/4/six", "six");
    find(f, false, NULL);
    assert_string_equal(found(f), "four@system/1/2/3/four/SKILL.md");
    const diag *d = told(f, "SKL015", "system/1/2/3/4/five");
    assert_non_null(d);
    assert_true(holds(d->msg, "2 such folders"));
    assert_int_equal(f->d.items.n, 1);
}

static void test_skills_find__2000_folders_of_a_root_are_looked_at(void **state) {
    fixture *f = *state;
    for (int i = 0; i < SKILL_DIRS_MAX - 1; i++)
        temp_write(f->dir, str_fmt(f->a, "w/system/d%04d/x", i).p, S(""));
    put_skill(f, "system/last", "last");
    put_skill(f, "home/other", "other");
    find(f, false, NULL);
    expect_quiet(f);
    assert_string_equal(found(f), "last@system/last/SKILL.md other@home/other/SKILL.md");
    assert_int_equal(mkdir(at(f, "system/e"), 0755), 0);
    find(f, false, NULL);
    assert_string_equal(found(f), "other@home/other/SKILL.md");
    assert_true(holds(told(f, "SKL015", "system/last")->msg, "2000"));
}

static void test_skills_find__only_so_many_folders_are_held_open(void **state) {
    fixture *f = *state;
    struct rlimit files;
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur < SKILL_OPEN_MAX + 64) {
        print_message("# too few descriptors\n");
        skip();
    }
    for (int i = 0; i <= SKILL_OPEN_MAX; i++) {
        const char *name = str_fmt(f->a, "s%04d", i).p;
        put_skill(f, str_fmt(f->a, "system/%s", name).p, name);
    }
    find(f, false, NULL);
    assert_int_equal(f->list.n, SKILL_OPEN_MAX + 1);
    for (size_t i = 0; i < f->list.n; i++) assert_int_equal(f->list.p[i].dir >= 0, i < SKILL_OPEN_MAX);
    assert_true(holds(told(f, "SKL015", "system/s0512/SKILL.md")->msg, "512"));
    strs names;
    size_t more;
    str text;
    const skill *last = skills_get(&f->list, S("s0512"));
    assert_int_equal(skill_files(f->a, last, &names, &more, NULL), DEP_ERR_REFUSED);
    assert_int_equal(skill_read(f->a, last, S("SKILL.md"), &text, NULL), DEP_ERR_REFUSED);
    assert_true(str_eq(last->body, S("Body of s0512.\n")));
}

// --- Files ---------------------------------------------------------------------------------------

static str listing(fixture *f, const char *name, size_t *more) {
    strs files = {0};
    assert_int_equal(skill_files(f->a, skills_get(&f->list, str_z(name)), &files, more, NULL), DEP_OK);
    return str_join(f->a, files.p, files.n, S(" "));
}

static void test_skills_find__files_are_listed_sorted_and_without_hidden_ones(void **state) {
    fixture *f = *state;
    if (!file_has_openat2()) skip(); // without it no link is followed
    size_t more;
    put_skill(f, "system/a", "a");
    const char *files[] = {"references/b.md", "references/a.md", "scripts/run.sh", "x.txt",
                           ".hidden",         ".git/config",     "references/.x",  "references/SKILL.md"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        temp_write(f->dir, str_fmt(f->a, "w/system/a/%s", files[i]).p, S("x"));
    assert_int_equal(mkfifo(at(f, "system/a/pipe"), 0644), 0);
    make_link(f, "references", "system/a/refs");
    make_link(f, "../x.txt", "system/a/references/up.txt");
    make_link(f, "..", "system/a/references/circle");
    make_link(f, "/etc/hostname", "system/a/hostname");
    make_link(f, "../../..", "system/a/out");
    find(f, false, NULL);
    str got = listing(f, "a", &more);
    assert_string_equal(
        got.p, "references/SKILL.md references/a.md references/b.md references/up.txt scripts/run.sh x.txt");
    assert_int_equal(more, 0);
}

static void test_skills_find__a_listing_names_200_files_and_counts_the_rest(void **state) {
    fixture *f = *state;
    size_t more;
    put_skill(f, "system/a", "a");
    for (int i = 0; i < SKILL_LIST_MAX; i++)
        temp_write(f->dir, str_fmt(f->a, "w/system/a/r/%03d", i).p, S("x"));
    find(f, false, NULL);
    str all = listing(f, "a", &more);
    assert_int_equal(more, 0);
    temp_write(f->dir, "w/system/a/z", S("x"));
    temp_write(f->dir, "w/system/a/zz", S("x"));
    str cut = listing(f, "a", &more);
    assert_int_equal(more, 2);
    assert_true(str_eq(all, cut));
}

// C33.
static void test_skills_find__files_are_read_inside_the_folder_only(void **state) {
    fixture *f = *state;
    if (!file_has_openat2()) skip(); // without it no link is followed
    put_skill(f, "system/a", "a");
    put_skill(f, "system/b", "b");
    temp_write(f->dir, "w/system/a/references/r.md", S("reference"));
    temp_write(f->dir, "w/system/a/.env", S("KEY"));
    temp_write(f->dir, "w/secret.md", S("SECRET"));
    make_link(f, "../../../secret.md", "system/a/references/x.md");
    make_link(f, "/etc/hostname", "system/a/references/h.md");
    make_link(f, "r.md", "system/a/references/in.md");
    make_link(f, "../b", "system/a/other");
    assert_int_equal(mkfifo(at(f, "system/a/pipe"), 0644), 0);
    find(f, true, NULL);
    const skill *s = skills_get(&f->list, S("a"));
    const struct {
        const char *file;
        dep_status status;
        const char *part;
    } cases[] = {
        {"references/r.md", DEP_OK, NULL},
        {"./references//r.md", DEP_OK, NULL},
        {"references/in.md", DEP_OK, NULL},
        {"references/none.md", DEP_ERR_NOT_FOUND, NULL},
        {"references/x.md", DEP_ERR_REFUSED, "../../../secret.md"},
        {"references/h.md", DEP_ERR_REFUSED, "/etc/hostname"},
        {"other/SKILL.md", DEP_ERR_REFUSED, "../b"},
        {"../b/SKILL.md", DEP_ERR_INVALID, "../b"},
        {"references/../../b/SKILL.md", DEP_ERR_INVALID, NULL},
        {"/etc/hostname", DEP_ERR_INVALID, NULL},
        {".env", DEP_ERR_INVALID, "hidden"},
        {"references/.env", DEP_ERR_INVALID, "hidden"},
        {"", DEP_ERR_INVALID, NULL},
        {".", DEP_ERR_INVALID, NULL},
        {"references", DEP_ERR_REFUSED, NULL},
        {"pipe", DEP_ERR_REFUSED, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        str text = {0};
        dep_err err;
        dep_status status = skill_read(f->a, s, str_z(cases[i].file), &text, &err);
        if (status != cases[i].status) fail_msg("%s: %d %s", cases[i].file, status, status ? err.msg : "");
        assert_true(str_eq(text, status == DEP_OK ? S("reference") : (str){0}));
        if (cases[i].part) assert_non_null(strstr(err.msg, cases[i].part));
    }
}

static void test_skills_find__a_file_of_1_mib_is_the_largest_that_is_read(void **state) {
    fixture *f = *state;
    str text;
    dep_err err;
    put_skill(f, "system/a", "a");
    buf b = buf_new(f->a, 0);
    buf_fill(&b, 'x', SKILL_RESOURCE_MAX);
    temp_write(f->dir, "w/system/a/big", buf_str(&b));
    find(f, false, NULL);
    const skill *s = skills_get(&f->list, S("a"));
    assert_int_equal(skill_read(f->a, s, S("big"), &text, NULL), DEP_OK);
    assert_int_equal(text.n, SKILL_RESOURCE_MAX);
    buf_addc(&b, 'x');
    temp_write(f->dir, "w/system/a/big", buf_str(&b));
    assert_int_equal(skill_read(f->a, s, S("big"), &text, &err), DEP_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "big"));
}

static void test_skills_find__an_open_folder_survives_what_happens_to_its_path(void **state) {
    fixture *f = *state;
    str text;
    put_skill(f, "system/a", "a");
    temp_write(f->dir, "w/system/a/r.md", S("old"));
    find(f, false, NULL);
    assert_int_equal(rename(at(f, "system/a"), at(f, "system/moved")), 0);
    put_skill(f, "system/a", "evil");
    temp_write(f->dir, "w/system/a/r.md", S("evil"));
    assert_int_equal(skill_read(f->a, skills_get(&f->list, S("a")), S("r.md"), &text, NULL), DEP_OK);
    assert_true(str_eq(text, S("old")));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(test_skills_find__skills_come_in_order_of_roots_and_folders),
        T(test_skills_find__no_roots_and_empty_roots_are_fine),
        T(test_skills_find__odd_spellings_are_found_and_told),
        T(test_skills_find__the_first_of_a_name_wins_and_both_are_named),
        T(test_skills_find__a_broken_skill_hides_no_other),
        T(test_skills_find__untrusted_skills_are_withheld_and_shadow_nothing),
        T(test_skills_find__a_changed_skill_keeps_its_name_until_it_is_trusted_again),
        T(test_skills_find__a_list_that_trusts_nothing_withholds_the_workspace),
        T(test_skills_find__links_that_stay_inside_are_followed_and_others_told),
        T(test_skills_find__what_belongs_to_memory_is_no_skill),
        T(test_skills_find__a_skill_of_256_kib_is_the_largest),
        T(test_skills_find__a_skill_lies_at_most_four_folders_deep),
        T(test_skills_find__2000_folders_of_a_root_are_looked_at),
        T(test_skills_find__only_so_many_folders_are_held_open),
        T(test_skills_find__files_are_listed_sorted_and_without_hidden_ones),
        T(test_skills_find__a_listing_names_200_files_and_counts_the_rest),
        T(test_skills_find__files_are_read_inside_the_folder_only),
        T(test_skills_find__a_file_of_1_mib_is_the_largest_that_is_read),
        T(test_skills_find__an_open_folder_survives_what_happens_to_its_path),
    };
    return cmocka_run_group_tests_name("skills_find", tests, NULL, NULL);
}

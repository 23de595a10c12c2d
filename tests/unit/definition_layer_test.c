// The files of a layer's directory: which names count, and that one file that cannot be read is a row of its
// own and hides no other.
#include "support/dir_fixture.h"
#include <deputy/definition.h>
#include <stdio.h>
#include <sys/stat.h>

static layer_files files_of(dir_fixture *f) {
    layer_files files;
    dep_err err;
    if (layer_read(f->a, f->dir, &files, &err) != DEP_OK) fail_msg("%s", err.msg);
    return files;
}

static void write_n(dir_fixture *f, const char *name, size_t n) {
    buf b = buf_new(f->a, 0);
    buf_fill(&b, '#', n);
    temp_write(f->path, name, buf_str(&b));
}

// C28: helper files are no definitions, and are passed over in silence.
static void test_definition_layer__only_yaml_files_count_sorted_by_name(void **state) {
    dir_fixture *f = *state;
    static const char *const names[] = {
        "b.yaml",  "a.yml", "README.md", ".DS_Store", "x.yaml~", ".#x.yaml",  "#x.yaml", "x.yaml.swp",
        "x.yamll", "yaml",  ".yaml",     "c.json",    "C.yaml",  "notes.txt", "x.bak",   "helpers/z.yaml"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) temp_write(f->path, names[i], str_z(names[i]));
    assert_int_equal(mkdirat(f->dir, "y.yaml", 0700), 0);
    layer_files files = files_of(f);
    assert_int_equal(files.n, 3);
    assert_text(files.p[0].base, "C.yaml");
    assert_text(files.p[1].base, "a.yml");
    assert_text(files.p[2].base, "b.yaml");
    for (size_t i = 0; i < files.n; i++) {
        assert_true(str_eq(files.p[i].bytes, files.p[i].base));
        assert_int_equal(files.p[i].fault.n, 0);
    }
}

static void test_definition_layer__a_file_that_cannot_be_read_hides_no_other(void **state) {
    dir_fixture *f = *state;
    temp_write(f->path, "good.yaml", S("name: good\n"));
    link_to(f, "good.yaml", "link.yaml");
    link_to(f, "/etc/passwd", "out.yaml");
    assert_int_equal(mkfifoat(f->dir, "pipe.yaml", 0600), 0);
    write_n(f, "limit.yaml", DEF_FILE_MAX);
    write_n(f, "over.yaml", DEF_FILE_MAX + 1);
    layer_files files = files_of(f);
    assert_int_equal(files.n, 6);
    for (size_t i = 0; i < files.n; i++) {
        const layer_file *x = &files.p[i];
        bool good = str_eq(x->base, S("good.yaml")) || str_eq(x->base, S("limit.yaml"));
        if (good != !x->fault.n) fail_msg(STR_FMT ": " STR_FMT, STR_ARG(x->base), STR_ARG(x->fault));
        if (!good) assert_int_equal(x->bytes.n, 0);
        if (str_eq(x->base, S("over.yaml"))) assert_true(str_find(x->fault, S("262144 bytes")) != SIZE_MAX);
    }
}

static void test_definition_layer__files_over_the_limit_are_one_row(void **state) {
    dir_fixture *f = *state;
    for (int i = 0; i < DEF_FILES_MAX; i++)
        temp_write(f->path, str_cz(f->a, str_fmt(f->a, "a%04d.yaml", i)), S("a"));
    layer_files files = files_of(f);
    assert_int_equal(files.n, DEF_FILES_MAX);
    assert_int_equal(files.p[files.n - 1].fault.n, 0);
    temp_write(f->path, "b.yaml", S("b"));
    temp_write(f->path, "c.yaml", S("c"));
    files = files_of(f);
    assert_int_equal(files.n, DEF_FILES_MAX + 1);
    assert_text(files.p[DEF_FILES_MAX].fault, "2 more files are not read: a layer holds at most 1000");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_definition_layer__only_yaml_files_count_sorted_by_name,
                                        dir_setup, dir_teardown),
        cmocka_unit_test_setup_teardown(test_definition_layer__a_file_that_cannot_be_read_hides_no_other,
                                        dir_setup, dir_teardown),
        cmocka_unit_test_setup_teardown(test_definition_layer__files_over_the_limit_are_one_row, dir_setup,
                                        dir_teardown),
    };
    return cmocka_run_group_tests_name("definition_layer", tests, NULL, NULL);
}

// The embedded tables against the repository's files: nothing forgotten, nothing renamed by mistake, nothing
// out of place. Runs with the repository's root as current directory.
#include <deputy/assets.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "support/support.h"

typedef const asset *(*table_fn)(size_t *n);

static const asset *find(table_fn table, const char *path) {
    size_t n;
    const asset *rows = table(&n);
    for (size_t i = 0; i < n; i++)
        if (str_eq(rows[i].path, str_z(path))) return &rows[i];
    return NULL;
}

static void assert_file_is(const char *file, str bytes) {
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    for (size_t i = 0; i < bytes.n; i++) assert_int_equal(fgetc(f), (unsigned char)bytes.p[i]);
    assert_int_equal(fgetc(f), EOF);
    fclose(f);
}

// The name under which a stored path is written: see the head of src/assets/assets.c.
static void target_of(char *out, size_t size, const char *stored) {
    const char *dot = strncmp(stored, "deputy/", 7) == 0 ? "." : "";
    snprintf(out, size, "%s%s", dot, stored);
    if (strcmp(stored, "deputy/gitignore") == 0) snprintf(out, size, ".deputy/.gitignore");
}

// Checks each file below root/sub against the table; returns how many there are.
static size_t compare_tree(const char *root, const char *sub, table_fn table) {
    char dir[1024];
    snprintf(dir, sizeof dir, "%s/%s", root, sub);
    DIR *d = opendir(dir);
    assert_non_null(d);
    size_t count = 0;
    for (struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        char stored[512], file[1600], target[600];
        snprintf(stored, sizeof stored, "%s%s%s", sub, *sub ? "/" : "", e->d_name);
        snprintf(file, sizeof file, "%s/%s", root, stored);
        struct stat st;
        assert_int_equal(lstat(file, &st), 0);
        if (S_ISDIR(st.st_mode)) {
            count += compare_tree(root, stored, table);
            continue;
        }
        target_of(target, sizeof target, stored);
        const asset *a = find(table, target);
        if (!a) fail_msg("%s has no row in src/assets/assets.c", file);
        assert_file_is(file, a->bytes);
        count++;
    }
    closedir(d);
    return count;
}

static void assert_table(table_fn table) {
    size_t n;
    const asset *rows = table(&n);
    assert_true(n > 0);
    for (size_t i = 0; i < n; i++) {
        assert_true(rows[i].path.n > 0 && rows[i].path.p[0] != '/');
        assert_true(str_find(rows[i].path, S("..")) == SIZE_MAX);
        assert_true(rows[i].bytes.n > 0);
        assert_int_equal(rows[i].bytes.p[rows[i].bytes.n - 1], '\n');
        if (i) assert_true(str_cmp(rows[i - 1].path, rows[i].path) < 0);
    }
}

static void test_assets_assets__tables_are_sorted_and_hold_only_relative_paths(void **state) {
    (void)state;
    assert_table(assets_agents);
    assert_table(assets_sample);
}

static void test_assets_assets__every_bundled_definition_is_embedded_byte_for_byte(void **state) {
    (void)state;
    size_t n;
    assets_agents(&n);
    assert_int_equal(compare_tree("agents", "", assets_agents), n);
}

static void test_assets_assets__every_sample_file_is_embedded_byte_for_byte(void **state) {
    (void)state;
    size_t n;
    assets_sample(&n);
    assert_int_equal(compare_tree("src/assets/sample", "", assets_sample), n);
}

static void test_assets_assets__the_sample_brings_what_the_tour_shows(void **state) {
    (void)state;
    static const char *const needed[] = {
        ".deputy/.gitignore",
        ".deputy/agent-memory/customer-service/MEMORY.md",
        ".deputy/agents/customer-service.yaml",
        ".deputy/skills/refund-policy/SKILL.md",
        ".deputy/skills/tone-guide/SKILL.md",
        "README.md",
        "docs/faq.md",
        "docs/zh/faq.md",
    };
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++)
        assert_non_null(find(assets_sample, needed[i]));
    size_t n, pages = 0;
    const asset *rows = assets_sample(&n);
    for (size_t i = 0; i < n; i++) pages += str_starts(rows[i].path, S("docs/"));
    assert_true(pages >= 12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_assets_assets__tables_are_sorted_and_hold_only_relative_paths),
        cmocka_unit_test(test_assets_assets__every_bundled_definition_is_embedded_byte_for_byte),
        cmocka_unit_test(test_assets_assets__every_sample_file_is_embedded_byte_for_byte),
        cmocka_unit_test(test_assets_assets__the_sample_brings_what_the_tour_shows),
    };
    return cmocka_run_group_tests_name("assets_assets", tests, NULL, NULL);
}

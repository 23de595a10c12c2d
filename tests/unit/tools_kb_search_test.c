// kb_search with what is kept between calls (rule B2): what becomes memory after it was read is quoted no
// more, and what ceases to be memory is found again.
#include "support/ws_fixture.h"
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static ws_tools *searcher(ws_fixture *f) {
    ws_write(f, "docs/manual.md", "# Manual\nneedle in the manual\n");
    ws_write(f, "docs/notes.md", "# Notes\nneedle in the notes\n");
    ws_agent(f, "helper", "tools: [read]\nknowledge: [{name: Manual, path: docs}]\n");
    ws_trust(f);
    f->w->searches = search_cache_new(f->a);
    ws_tools *t = ws_toolset(f, "helper");
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "in the manual", "in the notes", NULL);
    return t;
}

static void test_tools_kb_search__a_file_linked_into_memory_is_quoted_no_more(void **state) {
    ws_fixture *f = *state;
    ws_tools *t = searcher(f);
    ws_mkdir(f, ".deputy/memory");
    ws_hardlink(f, "docs/notes.md", ".deputy/memory/notes.md");
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "in the manual", "!in the notes", "belongs to memory",
            NULL);
    // And its new text through the other name.
    ws_write(f, "docs/manual.md", "# Manual\nneedle in the new manual\n");
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "in the new manual", "!in the notes", NULL);
    assert_int_equal(unlink(ws_path(f, ".deputy/memory/notes.md")), 0);
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "in the notes", "!belongs to memory", NULL);
}

static void test_tools_kb_search__a_file_moved_into_memory_and_linked_back_stays_out(void **state) {
    ws_fixture *f = *state;
    ws_tools *t = searcher(f);
    ws_mkdir(f, ".deputy/agent-memory/helper/daily");
    assert_int_equal(
        rename(ws_path(f, "docs/notes.md"), ws_path(f, ".deputy/agent-memory/helper/daily/n.md")), 0);
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "in the manual", "!in the notes", NULL);
    ws_hardlink(f, ".deputy/agent-memory/helper/daily/n.md", "docs/again.md");
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "!in the notes", "belongs to memory", NULL);
}

static void test_tools_kb_search__a_directory_that_becomes_memory_is_left(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "docs/sub/deep.md", "needle in the deep\n");
    ws_tools *t = searcher(f);
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "in the deep", NULL);
    ws_mkdir(f, ".deputy/memory");
    assert_int_equal(rename(ws_path(f, "docs/sub"), ws_path(f, ".deputy/memory/sub")), 0);
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "!in the deep", NULL);
    ws_link(f, "../.deputy/memory/sub", "docs/sub");
    ws_says(t, "kb_search", "{\"query\":\"needle\"}", "!in the deep", NULL);
}

// A swap under the same name, while nothing else happens.
static void test_tools_kb_search__a_name_swapped_for_a_link_to_memory_shows_nothing(void **state) {
    ws_fixture *f = *state;
    ws_tools *t = searcher(f);
    ws_write(f, ".deputy/memory/MEMORY.md", "needle in the memory\n");
    for (int i = 0; i < 3; i++) {
        (void)unlink(ws_path(f, "docs/notes.md"));
        ws_link(f, "../.deputy/memory/MEMORY.md", "docs/notes.md");
        ws_says(t, "kb_search", "{\"query\":\"needle\"}", "!in the memory", "!in the notes", NULL);
        (void)unlink(ws_path(f, "docs/notes.md"));
        ws_hardlink(f, ".deputy/memory/MEMORY.md", "docs/notes.md");
        ws_says(t, "kb_search", "{\"query\":\"needle\"}", "!in the memory", "!in the notes", NULL);
    }
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, ws_setup, ws_teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_tools_kb_search__a_file_linked_into_memory_is_quoted_no_more),
        CASE(test_tools_kb_search__a_file_moved_into_memory_and_linked_back_stays_out),
        CASE(test_tools_kb_search__a_directory_that_becomes_memory_is_left),
        CASE(test_tools_kb_search__a_name_swapped_for_a_link_to_memory_shows_nothing),
    };
    return cmocka_run_group_tests_name("tools_kb_search", tests, nullptr, nullptr);
}

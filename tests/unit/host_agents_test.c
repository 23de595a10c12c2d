// Which definition is in effect: layers, shadows, names that are kept, trust, switches and look-alikes (rules
// B7, B9, B10, B18).
#include "support/ws_fixture.h"
#include <deputy/file.h>
#include <deputy/store.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READER "description: D\ntools: [read]\nprompt: P\n"

static void system_agent(ws_fixture *f, const char *base, const char *text) {
    ws_write(f, str_cz(f->a, str_fmt(f->a, "/config/deputy/agents/%s", base)), text);
}

static void local_agent(ws_fixture *f, const char *base, const char *text) {
    ws_write(f, str_cz(f->a, str_fmt(f->a, ".deputy/agents/%s", base)), text);
}

static void is(ws_fixture *f, const char *file, agent_state want) {
    agent_entry *e = ws_entry(f, file);
    if (!e) fail_msg("%s is not listed", file);
    if (e->state != want)
        fail_msg("%s is %s (" STR_FMT "), not %s", file, agent_state_name(e->state), STR_ARG(e->reason),
                 agent_state_name(want));
}

// Who answers to the name: the file, or "" with the status and a text of the refusal.
static void answers(ws_fixture *f, const char *name, const char *file, dep_status status, const char *text) {
    agent_entry *e = NULL;
    dep_err err = {0};
    dep_status st = workspace_agent(f->w, str_z(name), &e, &err);
    if (st != status) fail_msg("%s: status %d, %s", name, st, err.msg);
    if (file && (!e || !str_ends(e->def.file, str_z(file))))
        fail_msg("%s: " STR_FMT " instead of %s", name, STR_ARG(e ? e->def.file : S("nobody")), file);
    if (text && !strstr(err.msg, text)) fail_msg("%s: %s", name, err.msg);
}

static void test_host_agents__the_nearer_layer_wins_and_says_over_whom(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "explorer.yaml", "name: explorer\n" READER);
    system_agent(f, "explorer.yaml", "name: Explorer\n" READER);
    system_agent(f, "own.yaml", "name: own\n" READER);
    ws_trust(f);
    is(f, ".deputy/agents/explorer.yaml", AGENT_EFFECTIVE);
    is(f, "config/deputy/agents/explorer.yaml", AGENT_SHADOWED);
    is(f, "builtin:explorer.yaml", AGENT_SHADOWED);
    is(f, "own.yaml", AGENT_EFFECTIVE);
    is(f, "builtin:librarian.yaml", AGENT_EFFECTIVE);
    assert_true(str_eq(ws_entry(f, "builtin:explorer.yaml")->shadowed_by, S(".deputy/agents/explorer.yaml")));
    answers(f, "explorer", ".deputy/agents/explorer.yaml", DEP_OK, NULL);
    answers(f, "EXPLORER", ".deputy/agents/explorer.yaml", DEP_OK, NULL);
    answers(f, "\xEF\xBD\x85xplorer", ".deputy/agents/explorer.yaml", DEP_OK, NULL); // full width
    answers(f, "builtin:explorer.yaml", "builtin:explorer.yaml", DEP_OK, NULL);      // named by file
    answers(f, "explorr", NULL, DEP_ERR_NOT_FOUND, "did you mean");
    answers(f, "", NULL, DEP_ERR_NOT_FOUND, NULL);
}

static void test_host_agents__what_was_never_trusted_shadows_nothing(void **state) {
    ws_fixture *f = *state;
    static const char *const texts[] = {
        ("name: explorer\n" READER),          // fine
        "name: explorer\ntools: [nonsense\n", // broken
        "name: explorer\ntools: all\n",       // invalid
        "",                                   // empty
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        local_agent(f, "explorer.yaml", texts[i]);
        ws_open(f);
        is(f, ".deputy/agents/explorer.yaml", AGENT_UNTRUSTED);
        assert_false(ws_entry(f, ".deputy/agents/explorer.yaml")->holds_name);
        is(f, "builtin:explorer.yaml", AGENT_EFFECTIVE);
        answers(f, "explorer", "builtin:explorer.yaml", DEP_OK, NULL);
    }
    // Nor do two of them, or one beside a trusted one.
    local_agent(f, "twin.yaml", "name: explorer\n" READER);
    ws_open(f);
    answers(f, "explorer", "builtin:explorer.yaml", DEP_OK, NULL);
    assert_int_equal(unlink(ws_path(f, ".deputy/agents/explorer.yaml")), 0);
    ws_trust(f);
    answers(f, "explorer", "twin.yaml", DEP_OK, NULL);
    local_agent(f, "a-rival.yaml", "name: explorer\n" READER);
    ws_open(f);
    answers(f, "explorer", "twin.yaml", DEP_OK, NULL);
    is(f, "a-rival.yaml", AGENT_UNTRUSTED);
    // A link, a directory and an unreadable file are as little.
    assert_int_equal(unlink(ws_path(f, ".deputy/agents/twin.yaml")), 0);
    assert_int_equal(unlink(ws_path(f, ".deputy/agents/a-rival.yaml")), 0);
    ws_write(f, "outside.yaml", "name: explorer\n" READER);
    ws_link(f, "../../outside.yaml", ".deputy/agents/link.yaml");
    ws_mkdir(f, ".deputy/agents/explorer.yaml");
    ws_open(f);
    is(f, "link.yaml", AGENT_UNTRUSTED);
    answers(f, "explorer", "builtin:explorer.yaml", DEP_OK, NULL);
    // One that nobody else has a name for answers to be refused, with the way to accept it.
    local_agent(f, "new.yaml", "name: new\n" READER);
    ws_open(f);
    answers(f, "new", "new.yaml", DEP_ERR_REFUSED, "never trusted; see and accept it with `deputy trust`");
}

static void test_host_agents__what_was_trusted_once_keeps_its_name(void **state) {
    ws_fixture *f = *state;
    static const char *const changed[] = {
        "name: explorer\ndescription: D\ntools: [read, grep]\nprompt: P\n", // gained a tool
        "name: explorer\ntools: [nonsense\n",                               // broken
        "name: explorer\ndescription: D\ntools: all\nprompt: P\n",          // invalid
        "\xff\xfe",
        "",
    };
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++) {
        local_agent(f, "explorer.yaml", "name: explorer\n" READER);
        ws_trust(f);
        answers(f, "explorer", ".deputy/agents/explorer.yaml", DEP_OK, NULL);
        local_agent(f, "explorer.yaml", changed[i]);
        ws_open(f);
        answers(f, "explorer", ".deputy/agents/explorer.yaml", DEP_ERR_REFUSED, "deputy trust");
        is(f, "builtin:explorer.yaml", AGENT_SHADOWED);
    }
    // A file that cannot be read any more, under both endings.
    static const char *const bases[] = {".deputy/agents/explorer.yaml", ".deputy/agents/explorer.yml"};
    for (size_t i = 0; i < 2; i++) {
        ws_write(f, bases[i], "name: explorer\n" READER);
        ws_trust(f);
        assert_int_equal(unlink(ws_path(f, bases[i])), 0);
        ws_link(f, "/etc/hostname", bases[i]);
        ws_open(f);
        answers(f, "explorer", bases[i], DEP_ERR_REFUSED, "untrusted");
        assert_int_equal(unlink(ws_path(f, bases[i])), 0);
    }
    // Removed: the name is free.
    ws_open(f);
    answers(f, "explorer", "builtin:explorer.yaml", DEP_OK, NULL);
}

static void test_host_agents__trust_is_lost_when_reach_grows_and_kept_otherwise(void **state) {
    ws_fixture *f = *state;
    static const char base[] =
        "tools: [read, grep]\npermissions: {read: [docs, src]}\n"
        "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: [fs.grep]}\n";
    static const struct {
        const char *rows;
        bool kept;
    } rows[] = {
        {"description: D2\ntools: [grep, read]\npermissions: {read: [src, docs]}\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: "
         "[fs.grep]}\nprompt: Other\n",
         true}, // words and order
        {"description: D\ntools: [read]\npermissions: {read: [docs]}\nprompt: P\n",
         true}, // less of everything
        {"description: D\ntools: [read, grep, glob]\npermissions: {read: [docs, src]}\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: "
         "[fs.grep]}\nprompt: P\n",
         false},
        {"description: D\ntools: [read, grep]\npermissions: {read: [docs, src, etc]}\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: "
         "[fs.grep]}\nprompt: P\n",
         false},
        {"description: D\ntools: [read, grep]\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: "
         "[fs.grep]}\nprompt: P\n",
         false}, // no block: the workspace
        {"description: D\ntools: [read, grep]\npermissions: {read: [docs, src]}\n"
         "knowledge: [{name: K, path: 'docs/**'}]\napproval: {confirm: [fs.grep]}\nprompt: P\n",
         false}, // an exclude is gone
        {"description: D\ntools: [read, grep]\npermissions: {read: [docs, src]}\n"
         "knowledge: [{name: K, path: '**', exclude: 'docs/old'}]\napproval: {confirm: [fs.grep]}\nprompt: "
         "P\n",
         false},
        {"description: D\ntools: [read, grep]\npermissions: {read: [docs, src]}\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\nprompt: P\n",
         false}, // a gate is gone
        {"description: D\ntools: [read, grep]\npermissions: {read: [docs, src]}\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: "
         "[fs.grep]}\nmemory: private\nprompt: P\n",
         false},
        {"description: D\ntools: [read, grep]\npermissions: {read: [docs, src]}\nskills: [s]\n"
         "knowledge: [{name: K, path: 'docs/**', exclude: 'docs/old'}]\napproval: {confirm: "
         "[fs.grep]}\nprompt: P\n",
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ws_agent(f, "a", base);
        ws_trust(f);
        local_agent(f, "a.yaml", str_cz(f->a, str_fmt(f->a, "name: a\n%s", rows[i].rows)));
        ws_open(f);
        agent_entry *e = ws_entry(f, "a.yaml");
        if ((e->state == AGENT_EFFECTIVE) != rows[i].kept)
            fail_msg("row %zu is %s: " STR_FMT "\n" STR_FMT, i, agent_state_name(e->state),
                     STR_ARG(e->old_reach), STR_ARG(definition_reach(f->a, &e->def)));
        if (!rows[i].kept) answers(f, "a", "a.yaml", DEP_ERR_REFUSED, "its reach grew");
    }
}

static void test_host_agents__nothing_of_an_untrusted_file_is_listed_as_runnable(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "a.yaml", "name: a\ndescription: EVIL words\ntools: [read]\nprompt: EVIL\n");
    local_agent(f, "b.yaml", "name: b\ndescription: D\ntools: [read]\nmemory: private\nprompt: P\n");
    ws_write(f, ".deputy/skills/s/SKILL.md", "---\nname: s\ndescription: EVIL\n---\nEVIL\n");
    ws_write(f, ".deputy/config.yaml", "limits: {turns: 1}\n");
    ws_write(f, ".deputy/agent-memory/b/MEMORY.md", "EVIL\n");
    workspace *w = ws_open(f);
    untrusted_files files = {0};
    dep_err err;
    assert_int_equal(workspace_untrusted(w, &files, &err), DEP_OK);
    static const char *const kinds[] = {"definition", "definition", "config", "skill", "memory"};
    static const char *const names[] = {".deputy/agents/a.yaml", ".deputy/agents/b.yaml",
                                        ".deputy/config.yaml", ".deputy/skills/s/SKILL.md",
                                        ".deputy/agent-memory/b/MEMORY.md"};
    assert_int_equal(files.n, 5); // each file is a row
    for (size_t i = 0; i < 5; i++) {
        assert_true(str_eq(files.p[i].kind, str_z(kinds[i])) && str_eq(files.p[i].file, str_z(names[i])));
        assert_int_equal(files.p[i].state, TRUST_NEVER);
        str bytes = read_all(ws_path(f, names[i]));
        assert_true(str_eq(files.p[i].sha256, sha256_hex(f->a, bytes)));
        free((char *)bytes.p);
    }
    for (vec_each(const agent_entry, e, &w->agents))
        if (e->def.layer == LAYER_WORKSPACE) assert_int_equal(e->state, AGENT_UNTRUSTED);
    // Accepted by somebody who saw other bytes: still not.
    assert_int_equal(workspace_trust_writable(w, &err), DEP_OK);
    local_agent(f, "a.yaml", "name: a\ndescription: EVIL words\ntools: [read, grep]\nprompt: EVIL\n");
    for (vec_each(const untrusted_file, u, &files))
        assert_int_equal(trust_record(w->trust, u->file, u->sha256, u->reach, &err), DEP_OK);
    ws_open(f);
    is(f, "a.yaml", AGENT_UNTRUSTED);
    is(f, "b.yaml", AGENT_EFFECTIVE);
}

static void test_host_agents__one_file_that_cannot_be_accepted_does_not_keep_the_others_back(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "fine.yaml", "name: fine\n" READER);
    local_agent(f, "bad\xff.yaml", "name: bad\n" READER);
    ws_write(f, ".deputy/skills/s/SKILL.md", "---\nname: s\ndescription: S\n---\nBody\n");
    ws_trust(f);
    is(f, "fine.yaml", AGENT_EFFECTIVE);
    is(f, "bad\xff.yaml", AGENT_UNTRUSTED);
    answers(f, "bad", "bad\xff.yaml", DEP_ERR_REFUSED, "not UTF-8");
    // A skill that was trusted and is a link now has no bytes that could be accepted.
    assert_int_equal(unlink(ws_path(f, ".deputy/skills/s/SKILL.md")), 0);
    ws_link(f, "/etc/hostname", ".deputy/skills/s/SKILL.md");
    local_agent(f, "next.yaml", "name: next\n" READER);
    ws_trust(f);
    is(f, "next.yaml", AGENT_EFFECTIVE);
}

static void test_host_agents__twins_are_both_off_and_keep_the_name(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "one.yaml", "name: explorer\n" READER);
    local_agent(f, "two.yaml", "name: EXPLORER\n" READER);
    system_agent(f, "a.yaml", "name: sys\n" READER);
    system_agent(f, "b.yml", "name: sys\n" READER);
    ws_trust(f);
    is(f, "one.yaml", AGENT_INVALID);
    is(f, "two.yaml", AGENT_INVALID);
    is(f, "a.yaml", AGENT_INVALID);
    is(f, "b.yml", AGENT_INVALID);
    is(f, "builtin:explorer.yaml", AGENT_SHADOWED);
    answers(f, "explorer", NULL, DEP_ERR_REFUSED, "two files of this layer are called");
    answers(f, "sys", NULL, DEP_ERR_REFUSED, "two files");
    // The same name in two layers is no twin.
    assert_int_equal(unlink(ws_path(f, ".deputy/agents/two.yaml")), 0);
    system_agent(f, "c.yaml", "name: explorer\n" READER);
    ws_open(f);
    answers(f, "explorer", "one.yaml", DEP_OK, NULL);
}

static void test_host_agents__an_invalid_or_switched_off_one_keeps_its_name(void **state) {
    ws_fixture *f = *state;
    dep_err err;
    system_agent(f, "explorer.yaml", "name: explorer\ndescription: D\ntools: [nonsense]\nprompt: P\n");
    system_agent(f, "librarian.yaml", "name: librarian\n" READER);
    ws_open(f);
    is(f, "deputy/agents/explorer.yaml", AGENT_INVALID);
    is(f, "builtin:explorer.yaml", AGENT_SHADOWED);
    answers(f, "explorer", "deputy/agents/explorer.yaml", DEP_ERR_REFUSED, "is invalid");
    answers(f, "explorer", NULL, DEP_ERR_REFUSED, "deputy copy builtin:explorer.yaml");
    assert_int_equal(workspace_store(f->w, false, &err), DEP_OK);
    assert_int_equal(store_setting_set(f->w->store, S("switch:system:librarian"), S("off"), &err), DEP_OK);
    ws_open(f);
    answers(f, "librarian", "deputy/agents/librarian.yaml", DEP_ERR_REFUSED, "switched off");
    is(f, "builtin:librarian.yaml", AGENT_SHADOWED);
    // A switch is of one layer's definition, not of a name.
    assert_int_equal(unlink(ws_path(f, "/config/deputy/agents/librarian.yaml")), 0);
    ws_open(f);
    answers(f, "librarian", "builtin:librarian.yaml", DEP_OK, NULL);
    // Shadowed and switched off is off by every name.
    system_agent(f, "librarian.yaml", "name: librarian\n" READER);
    local_agent(f, "librarian.yaml", "name: librarian\n" READER);
    ws_trust(f);
    answers(f, "librarian", ".deputy/agents/librarian.yaml", DEP_OK, NULL);
    answers(f, ws_path(f, "/config/deputy/agents/librarian.yaml"), NULL, DEP_ERR_REFUSED, NULL);
    answers(f, "builtin:librarian.yaml", "builtin:librarian.yaml", DEP_OK, NULL);
}

// --- Look-alikes

static bool warns(ws_fixture *f, const char *file, const char *text) {
    for (vec_each(const diag, it, &ws_entry(f, file)->diags.items))
        if (strcmp(it->code, "DEF033") == 0 && str_find(it->msg, str_z(text)) != SIZE_MAX) return true;
    return false;
}

static void test_host_agents__the_later_of_two_look_alikes_is_off_until_enabled(void **state) {
    ws_fixture *f = *state;
    dep_err err;
    local_agent(f, "a.yaml", "name: c\u043Ede\n" READER); // Cyrillic o
    system_agent(f, "b.yaml", "name: code\n" READER);
    system_agent(f, "c.yaml", "name: paypa1\n" READER);
    system_agent(f, "d.yaml", "name: paypal\n" READER);
    ws_trust(f);
    is(f, "agents/a.yaml", AGENT_EFFECTIVE);
    is(f, "agents/b.yaml", AGENT_DISABLED); // the farther layer
    is(f, "agents/c.yaml", AGENT_EFFECTIVE);
    is(f, "agents/d.yaml", AGENT_DISABLED); // by file name
    answers(f, "code", "agents/b.yaml", DEP_ERR_REFUSED, "confusable");
    assert_true(warns(f, "agents/a.yaml", "looks like \"code\"") &&
                warns(f, "agents/b.yaml", "looks like \"c\u043Ede\""));
    assert_true(warns(f, "agents/a.yaml", "mixes scripts"));
    assert_false(warns(f, "agents/b.yaml", "mixes scripts"));
    assert_int_equal(workspace_store(f->w, false, &err), DEP_OK);
    assert_int_equal(store_setting_set(f->w->store, S("switch:system:code"), S("on"), &err), DEP_OK);
    ws_open(f);
    is(f, "agents/b.yaml", AGENT_EFFECTIVE);
    is(f, "agents/d.yaml", AGENT_DISABLED);
}

static void test_host_agents__an_untrusted_look_alike_switches_nothing_off(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "a.yaml", "name: expl\u043Erer\n" READER);
    local_agent(f, "b.yaml", "name: \u0435xplorer\n" READER);
    local_agent(f, "c.yaml", "name: 1ibrarian\n" READER);
    ws_open(f);
    is(f, "builtin:explorer.yaml", AGENT_EFFECTIVE);
    is(f, "builtin:librarian.yaml", AGENT_EFFECTIVE);
    assert_false(warns(f, "builtin:explorer.yaml", "looks like"));
    answers(f, "expl\u043Erer", "a.yaml", DEP_ERR_REFUSED, "never trusted");
}

static void test_host_agents__han_with_latin_is_no_mixture(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "a.yaml", "name: 客服 bot\n" READER);
    local_agent(f, "b.yaml", "name: ответ\n" READER);
    ws_trust(f);
    is(f, "a.yaml", AGENT_EFFECTIVE);
    is(f, "b.yaml", AGENT_EFFECTIVE);
    assert_int_equal(ws_entry(f, "a.yaml")->diags.warnings, 0);
}

static void test_host_agents__a_name_is_also_judged_as_it_is_looked_up(void **state) {
    ws_fixture *f = *state;
    // Fine as they are written; folded, one begins with a blank and one has ninety characters.
    local_agent(f, "a.yaml", "name: \u037Aname\n" READER);
    local_agent(f, "b.yaml", "name: \uFDFA\uFDFA\uFDFA\uFDFA\uFDFA\n" READER);
    local_agent(f, "c.yaml", "name: \uFF41\uFF4C\uFF4C\n" READER); // "all", full width
    local_agent(f, "d.yaml", "name: \uFDFA\n" READER);
    ws_trust(f);
    is(f, "a.yaml", AGENT_INVALID);
    is(f, "b.yaml", AGENT_INVALID);
    is(f, "c.yaml", AGENT_INVALID);
    is(f, "d.yaml", AGENT_EFFECTIVE);
}

// --- Places

static void test_host_agents__one_directory_as_two_layers_is_read_once(void **state) {
    ws_fixture *f = *state;
    local_agent(f, "a.yaml", "name: a\n" READER);
    ws_mkdir(f, "/config/deputy");
    ws_link(f, ws_path(f, ".deputy/agents"), "/config/deputy/agents");
    workspace *w = ws_open(f);
    size_t n = 0;
    for (vec_each(const agent_entry, e, &w->agents)) n += e->def.layer != LAYER_BUILTIN;
    assert_int_equal(n, 1);
    is(f, "a.yaml", AGENT_UNTRUSTED); // as the workspace's, which needs trust
}

static void test_host_agents__a_layer_that_is_a_link_is_not_read_and_said(void **state) {
    ws_fixture *f = *state;
    ws_write(f, "elsewhere/a.yaml", "name: a\n" READER);
    ws_mkdir(f, ".deputy");
    ws_link(f, "../elsewhere", ".deputy/agents");
    workspace *w = ws_open(f);
    assert_null(ws_entry(f, "a.yaml"));
    assert_int_equal(w->diags.errors, 1);
    assert_true(str_find(w->diags.items.p[0].msg, S("symbolic link")) != SIZE_MAX);
}

static void test_host_agents__a_layer_holds_a_thousand_files_and_says_what_is_left(void **state) {
    ws_fixture *f = *state;
    for (int i = 0; i < DEF_FILES_MAX; i++)
        system_agent(f, str_cz(f->a, str_fmt(f->a, "x%04d.yaml", i)),
                     str_cz(f->a, str_fmt(f->a, "name: x%d\n" READER, i)));
    ws_open(f);
    is(f, "x0999.yaml", AGENT_EFFECTIVE);
    system_agent(f, "y.yaml", "name: y\n" READER);
    workspace *w = ws_open(f);
    assert_null(ws_entry(f, "y.yaml"));
    bool said = false;
    for (vec_each(const agent_entry, e, &w->agents))
        for (vec_each(const diag, it, &e->diags.items))
            said |= str_find(it->msg, S("1 more files are not read")) != SIZE_MAX;
    assert_true(said);
}

static void test_host_agents__memory_belongs_to_a_layer_and_a_name(void **state) {
    ws_fixture *f = *state;
    system_agent(f, "helper.yaml", "name: helper\ndescription: D\nmemory: private\nprompt: P\n");
    ws_open(f);
    ws_tools *t = ws_toolset(f, "helper");
    ws_says(t, "memory_write", "{\"content\":\"NOTE of the system's\"}", "Added", NULL);
    assert_int_equal(access(ws_path(f, ".deputy/agent-memory/helper@system/MEMORY.md"), R_OK), 0);
    // A clone's definition of that name has a folder of its own, and none can be named into the other's.
    local_agent(f, "helper.yaml", "name: helper\ndescription: D\nmemory: private\nprompt: P\n");
    local_agent(f, "at.yaml", "name: helper@system\ndescription: D\nmemory: private\nprompt: P\n");
    ws_trust(f);
    is(f, "at.yaml", AGENT_INVALID);
    t = ws_toolset(f, "helper");
    assert_int_equal(t->e->def.layer, LAYER_WORKSPACE);
    ws_says(t, "memory_read", "{}", "Your memory is empty", NULL);
    ws_says(t, "memory_search", "{\"query\":\"NOTE\"}", "!NOTE of", NULL);
    ws_says(t, "memory_write", "{\"content\":\"mine\"}", "Added", NULL);
    assert_int_equal(access(ws_path(f, ".deputy/agent-memory/helper/MEMORY.md"), R_OK), 0);
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(test_host_agents__##name, ws_setup, ws_teardown)
    const struct CMUnitTest tests[] = {
        T(the_nearer_layer_wins_and_says_over_whom),
        T(what_was_never_trusted_shadows_nothing),
        T(what_was_trusted_once_keeps_its_name),
        T(trust_is_lost_when_reach_grows_and_kept_otherwise),
        T(nothing_of_an_untrusted_file_is_listed_as_runnable),
        T(one_file_that_cannot_be_accepted_does_not_keep_the_others_back),
        T(twins_are_both_off_and_keep_the_name),
        T(an_invalid_or_switched_off_one_keeps_its_name),
        T(the_later_of_two_look_alikes_is_off_until_enabled),
        T(an_untrusted_look_alike_switches_nothing_off),
        T(han_with_latin_is_no_mixture),
        T(a_name_is_also_judged_as_it_is_looked_up),
        T(one_directory_as_two_layers_is_read_once),
        T(a_layer_that_is_a_link_is_not_read_and_said),
        T(a_layer_holds_a_thousand_files_and_says_what_is_left),
        T(memory_belongs_to_a_layer_and_a_name),
    };
    return cmocka_run_group_tests_name("host_agents", tests, NULL, NULL);
}

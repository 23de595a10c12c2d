// Tests of store/migrate.c: a database of schema 1, with rows in it, is brought up and read.
#include "store/store_int.h"
#include <support/store_fixture.h>
#include <sys/stat.h>
#include <unistd.h>

// What the first release made, word for word.
static const char schema1[] =
    "PRAGMA journal_mode=WAL; BEGIN;"
    "CREATE TABLE workspaces (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, created_ms INTEGER NOT "
    "NULL);"
    "CREATE TABLE delegations (ordinal INTEGER PRIMARY KEY,"
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id), id TEXT NOT NULL UNIQUE, agent TEXT NOT "
    "NULL,"
    "  task TEXT NOT NULL, description TEXT NOT NULL, model TEXT NOT NULL, definition_hash TEXT NOT NULL,"
    "  definition TEXT NOT NULL, grant_json TEXT NOT NULL, status TEXT NOT NULL, end_reason TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL, started_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL,"
    "  report TEXT NOT NULL, run_id TEXT NOT NULL);"
    "CREATE INDEX delegations_by_workspace ON delegations (workspace_id, created_ms, ordinal);"
    "CREATE INDEX delegations_unfinished ON delegations (run_id) WHERE ended_ms = 0;"
    "CREATE TABLE activity (workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  delegation_id TEXT NOT NULL REFERENCES delegations (id), seq INTEGER NOT NULL,"
    "  at_ms INTEGER NOT NULL, kind TEXT NOT NULL, data TEXT NOT NULL, PRIMARY KEY (delegation_id, seq));"
    "CREATE TABLE settings (workspace_id INTEGER NOT NULL REFERENCES workspaces (id), key TEXT NOT NULL,"
    "  value TEXT NOT NULL, PRIMARY KEY (workspace_id, key));"
    "INSERT INTO workspaces VALUES (1, '/w', 5), (2, '/other', 6);"
    "INSERT INTO delegations VALUES (1, 1, '" ID1
    "', 'librarian', 'Find it', 'd', 'p/m', 'h', 'name: x', '{}',"
    "  'completed', 'done', 10, 11, 20, '{\"report\":\"r\"}', 'dddd0000000000000000000000000001');"
    "INSERT INTO delegations VALUES (2, 1, '" ID2
    "', 'librarian', 'And this', '', 'p/m', 'h', 'name: x', '{}',"
    "  'running', '', 30, 31, 0, '', 'dddd0000000000000000000000000001');"
    "INSERT INTO delegations VALUES (3, 2, '" ID3 "', 'other', 'That', '', 'p/m', 'h', 'name: x', '{}',"
    "  'completed', 'done', 10, 11, 20, '{}', '');"
    "INSERT INTO activity VALUES (1, '" ID1 "', 1, 12, 'text', '{\"text\":\"a\"}');"
    "INSERT INTO activity VALUES (1, '" ID2 "', 1, 32, 'text', '{\"text\":\"said before it died\"}');"
    "INSERT INTO settings VALUES (1, 'switch:system:x', 'off');"
    "PRAGMA application_id=1145393236; PRAGMA user_version=1; COMMIT";

static void make_old(store_fixture *r) {
    const char *path = str_fmt(r->a, "%.*s/deputy.db", STR_ARG(r->state)).p;
    sqlite3 *db;
    store_close(r->s);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, schema1, NULL, NULL, NULL) != SQLITE_OK) fail_msg("%s", sqlite3_errmsg(db));
    sqlite3_close(db);
    assert_int_equal(chmod(path, 0600), 0);
}

static void expect_old_rows(store_fixture *r, store *s, int64_t schema) {
    delegation_row row;
    delegation_rows rows;
    activity_rows items;
    message_rows messages;
    thread_rows threads;
    str text;
    ok(store_delegation_get(r->a, s, S("3f2a0"), &row, &r->err));
    assert_str(row.task, S("Find it"));
    assert_str(row.definition, S("name: x"));
    assert_str(row.report, S("{\"report\":\"r\"}"));
    assert_int_equal(row.created_ms + row.started_ms + row.ended_ms, 41);
    assert_str(row.thread, S(""));
    assert_str(row.resumes, S(""));
    assert_false(row.main || row.background);
    assert_int_equal(row.delivered_ms, 20); // who asked had waited for it
    ok(store_delegation_list(r->a, s, S(""), 10, &rows, &r->err));
    assert_int_equal(rows.n, 2);
    assert_str(rows.p[0].id, S(ID2));
    assert_int_equal(rows.p[0].delivered_ms, 0);
    ok(store_delegation_list(r->a, s, S(THREAD1), 10, &rows, &r->err));
    assert_int_equal(rows.n, 0);
    ok(store_undelivered(r->a, s, S(THREAD1), &rows, &r->err));
    assert_int_equal(rows.n, 0);
    ok(store_thread_list(r->a, s, S(""), 10, &threads, &r->err));
    assert_int_equal(threads.n, 0);
    ok(store_activity_list(r->a, s, S(ID1), 0, 10, &items, &r->err));
    assert_int_equal(items.n, 1);
    ok(store_message_list(r->a, s, S(ID1), &messages, &r->err));
    assert_int_equal(messages.n, 0);
    refused(store_result_get(r->a, s, S(ID1), 1, &text, &r->err), DEP_ERR_NOT_FOUND, "has no result");
    ok(store_setting_get(r->a, s, S("switch:system:x"), &text, &r->err));
    assert_str(text, S("off"));
    ok(store_check(s, &r->err));
    assert_int_equal(ask_db(r, "PRAGMA user_version"), schema);
}

static void test_store_migrate__a_database_of_schema_1_is_brought_up_with_its_rows(void **state) {
    store_fixture *r = *state;
    size_t n;
    make_old(r);
    r->s = open_store(r, "/w");
    expect_old_rows(r, r->s, STORE_SCHEMA);
    ok(store_recover(r->s, &n, &r->err));
    assert_int_equal(n, 1);
    assert_int_equal(get(r, ID2).status, DELEG_INTERRUPTED);
    assert_true(str_find(get(r, ID2).report, S("said before it died")) != SIZE_MAX);
    delegation_row next = plain_row(ID4, DELEG_RUNNING);
    next.resumes = S(ID1);
    next.thread = S(THREAD1);
    add_ended(r, &next);
    store_close(r->s);
    r->s = open_store(r, "/w"); // nothing more to do
    assert_str(get(r, ID4).resumes, S(ID1));
    ok(store_delegation_remove(r->s, S(ID1), &r->err));
}

static void test_store_migrate__a_database_of_schema_1_is_read_where_it_may_not_be_written(void **state) {
    store_fixture *r = *state;
    make_old(r);
    store *s = NULL;
    ok(store_open(r->a, r->state, S("/w"), true, &r->clock, &s, &r->err));
    assert_non_null(s);
    expect_old_rows(r, s, 1);
    refused(store_delivered(s, S(ID1), &r->err), DEP_ERR_REFUSED, "reading only");
    // Somebody else brings it up meanwhile.
    r->s = open_store(r, "/w");
    delegation_row row = plain_row(ID4, DELEG_RUNNING);
    row.thread = S(THREAD1);
    add_ended(r, &row);
    store_close(s);
    ok(store_open(r->a, r->state, S("/w"), true, &r->clock, &s, &r->err));
    ok(store_delegation_get(r->a, s, S(ID4), &row, &r->err));
    assert_str(row.thread, S(THREAD1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_store_migrate__a_database_of_schema_1_is_brought_up_with_its_rows),
        STORE_TEST(test_store_migrate__a_database_of_schema_1_is_read_where_it_may_not_be_written),
    };
    return cmocka_run_group_tests_name("store_migrate", tests, NULL, NULL);
}

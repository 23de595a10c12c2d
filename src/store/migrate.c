// migrate: the schema, step by step. A step is never changed once released; later ones only add. The SQL
// keeps to what PostgreSQL understands too, but for the types' names.
#include "store/store_int.h"

enum { APPLICATION_ID = 0x44455054 }; // "DEPT"

static const char *const steps[STORE_SCHEMA] = {
    // 1: workspaces, delegations, their activity, settings. `ordinal` is the order of making, which a clock
    // does not give.
    "CREATE TABLE workspaces ("
    "  id INTEGER PRIMARY KEY,"
    "  path TEXT NOT NULL UNIQUE,"
    "  created_ms INTEGER NOT NULL);"
    "CREATE TABLE delegations ("
    "  ordinal INTEGER PRIMARY KEY,"
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  id TEXT NOT NULL UNIQUE,"
    "  agent TEXT NOT NULL,"
    "  task TEXT NOT NULL,"
    "  description TEXT NOT NULL,"
    "  model TEXT NOT NULL,"
    "  definition_hash TEXT NOT NULL,"
    "  definition TEXT NOT NULL,"
    "  grant_json TEXT NOT NULL,"
    "  status TEXT NOT NULL,"
    "  end_reason TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  started_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER NOT NULL,"
    "  report TEXT NOT NULL,"
    "  run_id TEXT NOT NULL);"
    "CREATE INDEX delegations_by_workspace ON delegations (workspace_id, created_ms, ordinal);"
    "CREATE INDEX delegations_unfinished ON delegations (run_id) WHERE ended_ms = 0;"
    "CREATE TABLE activity ("
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  delegation_id TEXT NOT NULL REFERENCES delegations (id),"
    "  seq INTEGER NOT NULL,"
    "  at_ms INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  data TEXT NOT NULL,"
    "  PRIMARY KEY (delegation_id, seq));"
    "CREATE TABLE settings ("
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  key TEXT NOT NULL,"
    "  value TEXT NOT NULL,"
    "  PRIMARY KEY (workspace_id, key));",
    // 2: conversations, what was said in them, results, commands, what was removed. Whoever asked for a
    // delegation of schema 1 waited for it, so its report was delivered. Indexes name only the rows that are
    // asked for: turns of a main agent and reports long delivered would make them large.
    "ALTER TABLE delegations ADD COLUMN thread TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE delegations ADD COLUMN resumes TEXT NOT NULL DEFAULT '';"
    "ALTER TABLE delegations ADD COLUMN main INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE delegations ADD COLUMN background INTEGER NOT NULL DEFAULT 0;"
    "ALTER TABLE delegations ADD COLUMN delivered_ms INTEGER NOT NULL DEFAULT 0;"
    "UPDATE delegations SET delivered_ms = ended_ms;"
    "CREATE INDEX delegations_asked ON delegations (workspace_id, created_ms, ordinal) WHERE main = 0;"
    "CREATE INDEX delegations_by_thread ON delegations (workspace_id, thread, created_ms, ordinal) "
    "  WHERE thread <> '';"
    "CREATE INDEX delegations_undelivered ON delegations (workspace_id, thread) "
    "  WHERE delivered_ms = 0 AND main = 0;"
    "CREATE INDEX delegations_by_end ON delegations (workspace_id, ended_ms, ordinal) WHERE ended_ms > 0;"
    "CREATE INDEX delegations_by_resumed ON delegations (resumes) WHERE resumes <> '';"
    "CREATE TABLE messages ("
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  delegation_id TEXT NOT NULL REFERENCES delegations (id),"
    "  seq INTEGER NOT NULL,"
    "  kind TEXT NOT NULL,"
    "  data TEXT NOT NULL,"
    "  PRIMARY KEY (delegation_id, seq));"
    "CREATE TABLE results ("
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  delegation_id TEXT NOT NULL REFERENCES delegations (id),"
    "  n INTEGER NOT NULL,"
    "  text TEXT NOT NULL,"
    "  PRIMARY KEY (delegation_id, n));"
    "CREATE TABLE commands ("
    "  ordinal INTEGER PRIMARY KEY,"
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  delegation_id TEXT NOT NULL REFERENCES delegations (id),"
    "  verb TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  UNIQUE (delegation_id, verb));"
    "CREATE TABLE removed ("
    "  workspace_id INTEGER NOT NULL REFERENCES workspaces (id),"
    "  id TEXT NOT NULL UNIQUE,"
    "  agent TEXT NOT NULL,"
    "  status TEXT NOT NULL,"
    "  created_ms INTEGER NOT NULL,"
    "  started_ms INTEGER NOT NULL,"
    "  ended_ms INTEGER NOT NULL,"
    "  removed_ms INTEGER NOT NULL);",
};

// What an older database lacks, for a connection that may not change it: views and empty tables of its own in
// memory, which are found before those of the file.
static const char *const reading[STORE_SCHEMA] = {
    "", // there is no reading without a schema
    "CREATE TEMP VIEW delegations AS SELECT *, '' AS thread, '' AS resumes, 0 AS main, 0 AS background, "
    "  ended_ms AS delivered_ms FROM main.delegations;"
    "CREATE TEMP TABLE messages (workspace_id, delegation_id, seq, kind, data);"
    "CREATE TEMP TABLE results (workspace_id, delegation_id, n, text);"
    "CREATE TEMP TABLE commands (ordinal, workspace_id, delegation_id, verb, created_ms);",
};

dep_status migrate_reading(store *s, int64_t version, dep_err *err) {
    if (version < 1 || version >= STORE_SCHEMA) return DEP_OK;
    TRY(sql_exec(s, "PRAGMA temp_store=MEMORY", err));
    for (int64_t i = version; i < STORE_SCHEMA; i++) TRY(sql_exec(s, reading[i], err));
    return DEP_OK;
}

static dep_status read_number(store *s, const char *pragma, int64_t *ret, dep_err *err) {
    bool row = false;
    TRY(sql_use(s, pragma, err));
    dep_status status = sql_step(s, &row, err);
    if (status == DEP_OK) *ret = row ? sql_col_int(s, 0) : 0;
    sql_end(s);
    return status;
}

// A database of ours says so by its number, once that is there for good.
static dep_status is_current(store *s, bool *ret, dep_err *err) {
    int64_t application = 0, version = 0;
    TRY(read_number(s, "PRAGMA application_id", &application, err));
    TRY(read_number(s, "PRAGMA user_version", &version, err));
    *ret = application == APPLICATION_ID && version == STORE_SCHEMA;
    return DEP_OK;
}

// One statement, so that all three are of the same moment: somebody may be making the database right now.
static dep_status read_numbers(store *s, int64_t numbers[3], dep_err *err) {
    bool row = false;
    TRY(sql_use(s,
                "SELECT (SELECT user_version FROM pragma_user_version), "
                "(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_master)",
                err));
    dep_status status = sql_step(s, &row, err);
    for (int i = 0; i < 3 && status == DEP_OK; i++) numbers[i] = row ? sql_col_int(s, i) : 0;
    sql_end(s);
    return status;
}

dep_status migrate_version(store *s, int64_t *version, dep_err *err) {
    int64_t numbers[3] = {0};
    bool current;
    // The usual case, and a tenth of the cost of the whole question.
    TRY(is_current(s, &current, err));
    if (current) {
        *version = STORE_SCHEMA;
        return DEP_OK;
    }
    TRY(read_numbers(s, numbers, err));
    int64_t v = numbers[0], application = numbers[1], tables = numbers[2];
    if ((tables > 0 || v != 0) && application != APPLICATION_ID)
        return err_set(err, DEP_ERR_INVALID, STR_FMT " is a database, but not one of Deputy's; move it aside",
                       STR_ARG(s->path));
    if (v > STORE_SCHEMA)
        return err_set(err, DEP_ERR_REFUSED,
                       STR_FMT " was written by a newer Deputy (schema %lld, this one knows %d); update "
                               "Deputy, or set XDG_STATE_HOME to "
                               "another directory",
                       STR_ARG(s->path), (long long)v, STORE_SCHEMA);
    *version = v;
    return DEP_OK;
}

static dep_status run_steps(store *s, dep_err *err) {
    // Read again now that nobody else can be at it.
    int64_t version = 0;
    TRY(migrate_version(s, &version, err));
    for (int64_t i = version; i < STORE_SCHEMA; i++) TRY(sql_exec(s, steps[i], err));
    static_assert(STORE_SCHEMA == 2 && APPLICATION_ID == 1145393236, "the numbers in the next line");
    return version < STORE_SCHEMA
               ? sql_exec(s, "PRAGMA application_id=1145393236; PRAGMA user_version=2", err)
               : DEP_OK;
}

dep_status migrate_run(store *s, dep_err *err) {
    TRY(sql_begin(s, true, err));
    return sql_finish(s, run_steps(s, err), err);
}

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
};

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
    static_assert(STORE_SCHEMA == 1 && APPLICATION_ID == 1145393236, "the numbers in the next line");
    return version < STORE_SCHEMA
               ? sql_exec(s, "PRAGMA application_id=1145393236; PRAGMA user_version=1", err)
               : DEP_OK;
}

dep_status migrate_run(store *s, dep_err *err) {
    TRY(sql_begin(s, true, err));
    return sql_finish(s, run_steps(s, err), err);
}

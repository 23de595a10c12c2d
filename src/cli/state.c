// cli: the state directory, for verbs that look at delegations whoever runs them.
#include "cli/delegations.h"

int64_t mono_now(const cli *c) {
    return c->in->clock->mono_ms(c->in->clock->ctx);
}

static void recover(cli *c) {
    size_t interrupted;
    dep_err err;
    if (store_recover(c->w->store, &interrupted, &err) != DEP_OK) say(c, "%s", err.msg);
}

int state_open(cli *c, bool *writable) {
    dep_err err;
    if (writable) *writable = false;
    int code = need_workspace(c, false);
    if (code) return code;
    // Looking makes no database.
    if (workspace_store(c->w, true, &err) != DEP_OK) return fail(c, &err);
    if (!c->w->store) return EXIT_FINE;
    store_close(c->w->store);
    c->w->store = NULL;
    if (workspace_store(c->w, false, &err) == DEP_OK) {
        recover(c);
        if (writable) *writable = true;
        return EXIT_FINE;
    }
    // The notice says more than the error: what is not seen.
    dep_err why;
    if (workspace_store(c->w, true, &why) != DEP_OK) return fail(c, &why);
    str notice = c->w->store ? store_notice(c->w->store) : (str){0};
    say(c, "read only: " STR_FMT, STR_ARG(notice.n ? notice : str_z(err.msg)));
    return EXIT_FINE;
}

int state_open_writing(cli *c) {
    dep_err err;
    int code = need_workspace(c, false);
    if (code) return code;
    if (workspace_store(c->w, false, &err) != DEP_OK) return fail(c, &err);
    recover(c);
    return EXIT_FINE;
}

void state_look(cli *c, int64_t *last_ms) {
    int64_t now = mono_now(c);
    if (!c->w->store || now - *last_ms < RECOVER_MS) return;
    *last_ms = now;
    recover(c);
}

static bool among(const delegation_rows *rows, str id) {
    for (vec_each(const delegation_row, r, rows))
        if (str_eq(r->id, id)) return true;
    return false;
}

int state_named(cli *c, const strs *ids, delegation_rows *ret) {
    dep_err err;
    for (vec_each(const str, id, ids)) {
        delegation_row row;
        if (!c->w->store)
            return fail_with(c, EXIT_ERRORS, "there is no delegation " STR_FMT " in this workspace",
                             STR_ARG(*id));
        if (store_delegation_get(c->a, c->w->store, *id, &row, &err) != DEP_OK) return fail(c, &err);
        if (!among(ret, row.id)) vec_push(c->a, ret, row);
    }
    return EXIT_FINE;
}

int state_unfinished(cli *c, delegation_rows *ret) {
    dep_err err;
    if (!c->w->store || store_unfinished(c->a, c->w->store, ret, &err) == DEP_OK) return EXIT_FINE;
    return fail(c, &err);
}

dep_status state_row(cli *c, arena *a, str id, delegation_row *ret, dep_err *err) {
    return store_delegation_get(a, c->w->store, id, ret, err);
}

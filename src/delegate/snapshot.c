// delegate: the workspace as it was loaded, shared by the delegations that began with it. A new delegation
// sees today's files, trust and switches; a running one keeps what it began with.
#include "delegate/delegate_int.h"

typedef struct {
    arena *a;
    settings ret;
} switches;

static dep_status read_switches(store *s, void *p, dep_err *err) {
    switches *sw = p;
    return store_settings(sw->a, s, S("switch:"), &sw->ret, err);
}

static bool same_switches(engine *e, const workspace *w) {
    switches now = {.a = arena_new()};
    bool same =
        store_do(e->store, STORE_READ, read_switches, &now, NULL) == DEP_OK && now.ret.n == w->settings.n;
    for (size_t i = 0; same && i < now.ret.n; i++)
        same = str_eq(now.ret.p[i].key, w->settings.p[i].key) &&
               str_eq(now.ret.p[i].value, w->settings.p[i].value);
    arena_free(now.a);
    return same;
}

static dep_status load(engine *e, arena *a, workspace **ret, dep_err *err) {
    workspace *w;
    TRY(workspace_open(a, &e->opts, &w, err));
    // The skills too, so that a run that needs them makes this one no stranger to itself.
    TRY(workspace_agents(w, err));
    TRY(workspace_skills(w, err));
    TRY(workspace_stamp(w, err));
    // The engine has a connection of its own; this one has done its work.
    store_close(w->store);
    w->store = NULL;
    *ret = w;
    return DEP_OK;
}

static dep_status renew(engine *e, dep_err *err) {
    arena *a = arena_new();
    workspace *w = NULL;
    dep_status status = load(e, a, &w, err);
    if (status != DEP_OK) {
        arena_free(a);
        return status;
    }
    snapshot *s = NEW(a, snapshot);
    *s = (snapshot){.a = a, .w = w, .refs = 1};
    snapshot *old = e->current;
    e->current = s;
    snapshot_release(e, old);
    return DEP_OK;
}

dep_status snapshot_take(engine *e, snapshot **ret, dep_err *err) {
    pthread_mutex_lock(&e->snapshots);
    dep_status status = DEP_OK;
    workspace *w = e->current->w;
    workspace_lock(w);
    bool changed = workspace_changed(w);
    workspace_unlock(w);
    // Without the lock: the store may have to wait for another process, and tools need the workspace.
    if (changed || !same_switches(e, w)) status = renew(e, err);
    if (status == DEP_OK) {
        pthread_mutex_lock(&e->lock);
        e->current->refs++;
        pthread_mutex_unlock(&e->lock);
        *ret = e->current;
    }
    pthread_mutex_unlock(&e->snapshots);
    return status;
}

void snapshot_release(engine *e, snapshot *s) {
    if (!s) return;
    pthread_mutex_lock(&e->lock);
    bool last = --s->refs == 0;
    pthread_mutex_unlock(&e->lock);
    // The memory of the snapshot is in the arena that goes.
    if (last && s->a) arena_free(s->a);
}

dep_status engine_workspace(engine *e, workspace **ret, dep_err *err) {
    snapshot *s;
    TRY(snapshot_take(e, &s, err));
    snapshot_release(e, e->shown);
    e->shown = s;
    *ret = s->w;
    return DEP_OK;
}

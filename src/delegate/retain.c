// delegate: retention: what ended long ago goes. Knows when it was last looked at, not what a row holds.
#include "delegate/delegate_int.h"

static const str day_key = S_INIT("retention:day");
enum : int64_t { DAY_MS = 86400000 };

static dep_status due(arena *a, store *s, str today, bool *ret, dep_err *err) {
    str last;
    TRY(store_setting_get(a, s, day_key, &last, err));
    *ret = !str_eq(last, today);
    return DEP_OK;
}

static dep_status retain(arena *a, store *s, const workspace *w, bool now, size_t *removed, dep_err *err) {
    bool needed = true;
    str today = str_fmt(a, "%lld", (long long)(w->clock->now_ms(w->clock->ctx) / DAY_MS));
    if (!now) TRY(due(a, s, today, &needed, err));
    if (!needed) return DEP_OK;
    // Noted first: what fails is not tried again with each command of this day.
    TRY(store_setting_set(s, day_key, today, err));
    return store_prune(s, w->config.retention.days, w->config.retention.count, removed, err);
}

dep_status delegate_retain(store *s, const workspace *w, bool now, size_t *removed, dep_err *err) {
    *removed = 0;
    if (w->diags.errors || w->config.fault.n)
        return now ? err_set(err, DEP_ERR_REFUSED,
                             "the config has errors, so it is not known how much is to be kept; see `deputy "
                             "check`")
                   : DEP_OK;
    arena *a = arena_new();
    dep_status status = retain(a, s, w, now, removed, err);
    arena_free(a);
    return status;
}

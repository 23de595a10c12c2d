// delegate: budgets. All of them are asked before each model call, and whoever cannot be told whether one is
// spent counts as spent. A resumed delegation has what the ones before it left.
#include "delegate/delegate_int.h"

static int64_t tokens_of(const model_usage *u) {
    return u->input + u->output + u->cache_read + u->cache_write;
}

int64_t cost_sum(int64_t x, int64_t y) {
    int64_t sum;
    return __builtin_add_overflow(x, y, &sum) ? INT64_MAX : sum;
}

int64_t run_cost_micro(const run *r) {
    const model_usage *u = &r->report.usage;
    return r->price ? config_cost_micro(r->price, u->input, u->output, u->cache_read, u->cache_write) : -1;
}

bool budget_last_turn(const run *r) {
    int64_t limit = r->grant.turns - r->turns_before;
    // A run of one turn has nothing to wrap up.
    return limit > 1 && r->report.turns == limit - 1;
}

bool budget_spent(run *r, ending *ret) {
    const grant *g = &r->grant;
    int64_t elapsed = run_mono(r) - r->started_mono + r->ms_before;
    int64_t tokens = tokens_of(&r->report.usage) + tokens_of(&r->before);
    int64_t cost = run_cost_micro(r), all = cost < 0 ? cost : cost_sum(cost, r->cost_before);
    *ret = (ending){.status = DELEG_TRUNCATED};
    if (run_cancelled(r)) {
        const char *why = atomic_load(&r->task->stop);
        *ret = (ending){DELEG_STOPPED, why ? str_z(why) : S("stopped by a person")};
    } else if (r->report.turns >= g->turns - r->turns_before) {
        ret->reason = str_fmt(r->a, "max turns: %lld", (long long)g->turns);
    } else if (elapsed / 60000 >= g->minutes) {
        ret->reason = str_fmt(r->a, "minutes: %lld", (long long)g->minutes);
    } else if (tokens >= g->tokens) {
        ret->reason = str_fmt(r->a, "tokens: %lld of %lld", (long long)tokens, (long long)g->tokens);
    } else if (g->cost_micro > 0 && (cost < 0 || all >= g->cost_micro)) {
        ret->reason = cost < 0
                          ? S("cost: its price is not known")
                          : str_fmt(r->a, "cost: " STR_FMT " of " STR_FMT, STR_ARG(config_amount(r->a, all)),
                                    STR_ARG(config_amount(r->a, g->cost_micro)));
    } else {
        return false;
    }
    return true;
}

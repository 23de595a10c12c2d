// price: what a model's tokens cost. Whole millionths throughout, so that sums are exact; rounded up, so that
// a limit is never passed unseen.
#include <deputy/config.h>

enum { MILLION = 1000000 };

const config_price *config_price_get(const config *c, str model) {
    static const config_price nothing = {.model = S_INIT("quote/*")};
    const config_price *all = NULL;
    str provider;
    str_cut(model, '/', &provider, &(str){0});
    for (vec_each(const config_price, p, &c->prices)) {
        if (str_eq(p->model, model)) return p;
        bool others = str_ends(p->model, S("/*")) && str_eq(str_sub(p->model, 0, p->model.n - 2), provider);
        if (others) all = p;
    }
    const config_provider *p = config_provider_get(c, provider);
    if (!all && (str_eq(provider, S("quote")) || (p && str_eq(p->api, S("quote"))))) return &nothing;
    return all;
}

int64_t config_cost_micro(const config_price *p, int64_t input, int64_t output, int64_t cache_read,
                          int64_t cache_write) {
    const int64_t parts[][2] = {
        {input, p->input}, {output, p->output}, {cache_read, p->cache_read}, {cache_write, p->cache_write}};
    int64_t whole = 0;
    uint64_t part =
        0; // four times less than a million tokens at no more than CONFIG_AMOUNT_MAX each: it fits
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int64_t tokens = parts[i][0], price = parts[i][1], product;
        if (tokens <= 0 || price <= 0) continue;
        if (__builtin_mul_overflow(tokens / MILLION, price, &product) ||
            __builtin_add_overflow(whole, product, &whole))
            return INT64_MAX;
        part += (uint64_t)(tokens % MILLION) * (uint64_t)price;
    }
    part = (part + MILLION - 1) / MILLION;
    return __builtin_add_overflow(whole, (int64_t)part, &whole) ? INT64_MAX : whole;
}

str config_amount(arena *a, int64_t micro) {
    long long whole = micro / MILLION, part = micro % MILLION;
    if (!part) return str_fmt(a, "%lld", whole);
    str s = str_fmt(a, "%lld.%06lld", whole, part);
    for (int i = 0; i < 4 && s.p[s.n - 1] == '0'; i++) s.n--;
    return s;
}

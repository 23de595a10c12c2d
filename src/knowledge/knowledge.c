// knowledge: sources → search space; result → text.
#include <deputy/knowledge.h>
#include <deputy/policy.h>
#include <deputy/utf8.h>

static const char *refuse(void *p, str path, const struct stat *st) {
    const knowledge_opts *o = p;
    bool (*is_memory)(void *, const struct stat *) = o->memory_epoch ? o->was_memory : o->is_memory;
    if (is_memory && is_memory(o->ctx, st)) return "belongs to memory";
    return path_sensitive(path);
}

static uint64_t epoch(void *p) {
    const knowledge_opts *o = p;
    return o->memory_epoch(o->ctx);
}

static bool cancelled(void *p) {
    const knowledge_opts *o = p;
    return o->cancelled && o->cancelled(o->cancel_ctx);
}

search_space knowledge_space(arena *a, const knowledge_opts *o) {
    knowledge_opts *mine = NEW(a, knowledge_opts);
    *mine = *o;
    search_source *sources = NEW_N(a, search_source, o->n_sources);
    for (size_t i = 0; i < o->n_sources; i++) {
        const def_source *s = &o->sources[i];
        sources[i] = (search_source){.name = s->name,
                                     .include = s->path.p,
                                     .n_include = s->path.n,
                                     .exclude = s->exclude.p,
                                     .n_exclude = s->exclude.n,
                                     .encoding = s->encoding};
    }
    return (search_space){.root = o->root,
                          .sources = sources,
                          .n_sources = o->n_sources,
                          .max_bytes = o->max_bytes,
                          .max_file = o->max_file,
                          .refuse = refuse,
                          .cancelled = cancelled,
                          .ctx = mine,
                          .cache = o->cache,
                          .epoch = o->memory_epoch ? epoch : NULL};
}

static void add_hit(buf *out, size_t n, const search_hit *h) {
    buf_addf(out, "[%zu] ", n);
    foreign_add(out, h->path, FOREIGN_LINE, 0);
    buf_addf(out, ":%u", h->line);
    if (h->source.n) {
        buf_add(out, S(" ("));
        foreign_add(out, h->source, FOREIGN_LINE, 100);
        buf_addc(out, ')');
    }
    if (h->heading.n) {
        buf_addc(out, ' ');
        foreign_add(out, h->heading, FOREIGN_LINE, 200);
    }
    buf_add(out, S("\n    "));
    foreign_add(out, str_trim(h->text), FOREIGN_LINE, 0);
    buf_addc(out, '\n');
}

static void add_cut(buf *out, const search_cut *c) {
    buf_add(out, S("cut: "));
    foreign_add(out, c->reason, FOREIGN_LINE, 200);
    buf_addf(out, ": %zu", c->count);
    if (c->paths.n) buf_add(out, S(" ("));
    for (size_t i = 0; i < c->paths.n && i < SEARCH_CUT_PATHS; i++) {
        if (i) buf_add(out, S(", "));
        foreign_add(out, c->paths.p[i], FOREIGN_LINE, 200);
    }
    if (c->paths.n > SEARCH_CUT_PATHS) buf_add(out, S(", …"));
    if (c->paths.n) buf_addc(out, ')');
    buf_addc(out, '\n');
}

void knowledge_text(buf *out, const search_result *r, str query, const strs *sources) {
    size_t n = 0;
    for (vec_each(const search_hit, h, &r->hits)) add_hit(out, ++n, h);
    if (!n) {
        buf_add(out, S("No line matches \""));
        foreign_add(out, query, FOREIGN_LINE, 200);
        buf_addc(out, '"');
        for (size_t i = 0; i < sources->n; i++) {
            buf_add(out, i ? S(", ") : S(" in "));
            foreign_add(out, sources->p[i], FOREIGN_LINE, 100);
        }
        buf_add(out, S(". Try other words, the words of the source's language, or fewer of them.\n"));
    }
    buf_addf(out, "\n%zu hit%s shown of %s%zu matching line%s; searched %zu file%s, %zu bytes.\n", n,
             n == 1 ? "" : "s", r->totals.at_least ? "at least " : "", r->totals.matched_lines,
             r->totals.matched_lines == 1 ? "" : "s", r->totals.files, r->totals.files == 1 ? "" : "s",
             r->totals.bytes);
    if (r->cancelled) buf_add(out, S("The search was cancelled: the rest was not searched.\n"));
    if (r->ignored_terms) buf_addf(out, "cut: %zu words of the query were not used\n", r->ignored_terms);
    for (vec_each(const search_cut, c, &r->cuts)) add_cut(out, c);
}

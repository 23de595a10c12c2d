// json: the answer of a search as one JSON object (DESIGN, command line). Knows nothing of how it was found.
#include <deputy/json.h>
#include <deputy/search.h>

static void write_lines(jw *w, str key, const str *lines, size_t n) {
    if (n == 0) return;
    jw_key(w, key);
    jw_arr(w);
    for (size_t i = 0; i < n; i++) jw_str(w, lines[i]);
    jw_end_arr(w);
}

static void write_hit(jw *w, const search_hit *h) {
    jw_obj(w);
    jw_kstr(w, S("source"), h->source);
    jw_kstr(w, S("path"), h->path);
    jw_kint(w, S("line"), h->line);
    jw_kstr(w, S("text"), h->text);
    jw_kstr(w, S("heading"), h->heading);
    jw_key(w, S("score"));
    jw_num(w, h->score);
    write_lines(w, S("before"), h->before, h->n_before);
    write_lines(w, S("after"), h->after, h->n_after);
    jw_end_obj(w);
}

static void write_cut(jw *w, const search_cut *c) {
    jw_obj(w);
    jw_kstr(w, S("reason"), c->reason);
    jw_kint(w, S("count"), (int64_t)c->count);
    jw_key(w, S("paths"));
    jw_arr(w);
    for (vec_each(const str, path, &c->paths)) jw_str(w, *path);
    jw_end_arr(w);
    jw_end_obj(w);
}

void search_json(buf *out, const search_result *r) {
    jw w = jw_new(out);
    jw_obj(&w);
    jw_key(&w, S("hits"));
    jw_arr(&w);
    for (vec_each(const search_hit, h, &r->hits)) write_hit(&w, h);
    jw_end_arr(&w);
    jw_key(&w, S("totals"));
    jw_obj(&w);
    jw_kint(&w, S("files"), (int64_t)r->totals.files);
    jw_kint(&w, S("bytes"), (int64_t)r->totals.bytes);
    jw_kint(&w, S("matched_lines"), (int64_t)r->totals.matched_lines);
    jw_kint(&w, S("expanded_lines"), (int64_t)r->totals.expanded_lines);
    jw_kbool(&w, S("at_least"), r->totals.at_least);
    jw_end_obj(&w);
    jw_key(&w, S("cuts"));
    jw_arr(&w);
    for (vec_each(const search_cut, c, &r->cuts)) write_cut(&w, c);
    jw_end_arr(&w);
    if (r->ignored_terms) jw_kint(&w, S("ignored_terms"), (int64_t)r->ignored_terms);
    if (r->cancelled) jw_kbool(&w, S("cancelled"), true);
    if (r->notice.n) jw_kstr(&w, S("notice"), r->notice);
    jw_end_obj(&w);
}

// delegate: the report object. One shape for the command line, the database and, later, MCP and HTTP.
#include "delegate/delegate_int.h"
#include <deputy/utf8.h>

static void warn(run *r, str text) {
    vec_push(r->a, &r->report.warnings, run_redact(r, r->a, text));
}

static void collect_warnings(run *r) {
    delegate_report *rep = &r->report;
    if (!rep->tool_calls) warn(r, S("no tool was called"));
    if (!str_trim(rep->report).n) warn(r, S("the report is empty"));
    if (rep->usage.estimated) warn(r, S("the provider did not report usage: it is estimated"));
    if (r->act.fault.status != DEP_OK)
        warn(r, str_fmt(r->a, "some activity could not be stored: %s", r->act.fault.msg));
    if (!str_starts(r->report.model, S("quote/")) && r->grant.model.n && rep->model_reported.n &&
        !str_eq(rep->model_reported, r->model_name))
        warn(r, str_fmt(r->a, "the provider answered with the model \"" STR_FMT "\"",
                        STR_ARG(rep->model_reported)));
    for (vec_each(const report_row, row, &r->grant.report))
        if (row->state == ITEM_WITHHELD)
            warn(r, str_fmt(r->a, "%s " STR_FMT " withheld: " STR_FMT, row->dimension, STR_ARG(row->name),
                            STR_ARG(row->reason)));
}

static void usage_json(jw *w, const model_usage *u) {
    jw_key(w, S("usage"));
    jw_obj(w);
    jw_kint(w, S("input_tokens"), u->input);
    jw_kint(w, S("output_tokens"), u->output);
    jw_kint(w, S("cache_read_tokens"), u->cache_read);
    jw_kint(w, S("cache_write_tokens"), u->cache_write);
    jw_kbool(w, S("estimated"), u->estimated);
    jw_end_obj(w);
}

static str report_json_of(run *r) {
    const delegate_report *rep = &r->report;
    buf *out = NEW(r->a, buf);
    *out = buf_new(r->a, 0);
    jw w = jw_new(out);
    jw_obj(&w);
    jw_kstr(&w, S("id"), rep->id);
    jw_kstr(&w, S("agent"), rep->agent);
    jw_kstr(&w, S("status"), str_z(deleg_status_name(rep->status)));
    jw_kstr(&w, S("end_reason"), rep->end_reason);
    jw_kstr(&w, S("report"), rep->report);
    jw_kstr(&w, S("definition_hash"), rep->definition_hash);
    jw_key(&w, S("model"));
    jw_obj(&w);
    jw_kstr(&w, S("requested"), rep->model);
    jw_kstr(&w, S("reported"), rep->model_reported);
    jw_end_obj(&w);
    jw_kint(&w, S("turns"), rep->turns);
    jw_kint(&w, S("tool_calls"), rep->tool_calls);
    usage_json(&w, &rep->usage);
    jw_key(&w, S("cost"));
    jw_null(&w);
    jw_key(&w, S("memory_writes"));
    jw_arr(&w);
    for (vec_each(const memory_written, m, &rep->memory_writes)) {
        jw_obj(&w);
        jw_kstr(&w, S("file"), m->file);
        jw_kstr(&w, S("version"), m->sha256);
        jw_kstr(&w, S("excerpt"), m->excerpt);
        jw_end_obj(&w);
    }
    jw_end_arr(&w);
    jw_key(&w, S("cards"));
    jw_arr(&w);
    jw_end_arr(&w);
    jw_key(&w, S("warnings"));
    jw_arr(&w);
    for (vec_each(const str, s, &rep->warnings)) jw_str(&w, *s);
    jw_end_arr(&w);
    jw_end_obj(&w);
    return buf_str(out);
}

void report_store(run *r, deleg_status status, str end_reason) {
    delegate_report *rep = &r->report;
    dep_err why;
    rep->status = status;
    rep->end_reason = run_redact(r, r->a, end_reason);
    rep->report = run_redact(r, r->a, r->last_text);
    activity_flush(r, false);
    collect_warnings(r);
    rep->json = run_redact(r, r->a, report_json_of(r));
    if (store_delegation_status(r->w->store, r->id, status, rep->end_reason, rep->json, &why) != DEP_OK) {
        rep->status = DELEG_FAILED;
        rep->end_reason = str_fmt(r->a, "the report could not be stored: %s (it had ended with: " STR_FMT ")",
                                  why.msg, STR_ARG(rep->end_reason));
        rep->json = run_redact(r, r->a, report_json_of(r));
    }
    activity_status(r, rep->status, rep->end_reason);
}

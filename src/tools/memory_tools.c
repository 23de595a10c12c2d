// tools: the memory trio. The scope was opened when the toolset was built; no argument names a directory or a
// scope.
#include "tools/tools_int.h"
#include <deputy/utf8.h>
#include <time.h>

enum { LOCK_LOOK_MS = 20 };

// Another process may hold the scope's lock: a stop is heard meanwhile, and no other delegation waits with
// this one.
static dep_status write_when_free(tool_ctx *c, memory_write_opts *o, memory_written *ret, dep_err *err) {
    str file = json_str(c->args, S("file"), (str){0}), content = json_str(c->args, S("content"), (str){0});
    o->no_wait = true;
    for (int waited = 0;; waited += LOCK_LOOK_MS) {
        workspace_lock(c->t->w);
        dep_status status = memory_write(c->turn, c->t->memory, file, content, o, ret, err);
        workspace_unlock(c->t->w);
        if (status != DEP_ERR_BUSY || waited >= MEMORY_LOCK_MS) return status;
        if (ctx_cancelled(c)) return err_set(err, DEP_ERR_CANCELLED, "stopped while the notes were locked");
        nanosleep(&(struct timespec){.tv_nsec = LOCK_LOOK_MS * 1000000}, NULL);
    }
}

static dep_status scope_of(tool_ctx *c, dep_err *err) {
    if (c->t->memory) return DEP_OK;
    return err_set(err, DEP_ERR_NOT_FOUND, "your memory is empty");
}

dep_status tool_memory_write(tool_ctx *c, dep_err *err) {
    if (!c->t->memory) return err_set(err, DEP_ERR_REFUSED, "memory cannot be written here");
    memory_write_opts o = {.delegation = c->env->delegation,
                           .agent = c->t->g->agent,
                           .model = c->env->model,
                           .overwrite = str_eq(json_str(c->args, S("mode"), (str){0}), S("overwrite"))};
    memory_written w;
    TRY(write_when_free(c, &o, &w, err));
    buf_add(c->out, o.overwrite ? S("Overwrote ") : S("Added an entry to "));
    foreign_add(c->out, w.file, FOREIGN_LINE, 0);
    buf_addf(c->out, ": %zu bytes now", w.bytes);
    if (str_starts(w.file, S("daily/"))) {
        buf_add(c->out, S("; it is searched and read, not shown at the start."));
    } else {
        buf_addf(c->out, "; %zu characters of it are shown at the start of each task.", w.resident_chars);
    }
    c->result->wrote_memory = true;
    c->result->written = w;
    return DEP_OK;
}

static dep_status list_files(tool_ctx *c, dep_err *err) {
    memory_files files = {0};
    if (c->t->memory) TRY(memory_list(c->turn, c->t->memory, &files, err));
    for (vec_each(const memory_file, f, &files)) {
        foreign_add(c->out, f->name, FOREIGN_LINE, 0);
        buf_addf(c->out, " (%zu bytes%s)", f->bytes, f->resident ? "" : ", not shown at the start");
        if (f->withheld.n) {
            buf_add(c->out, S(": withheld, "));
            foreign_add(c->out, f->withheld, FOREIGN_LINE, 200);
        }
        buf_addc(c->out, '\n');
    }
    if (!files.n) buf_add(c->out, S("Your memory is empty.\n"));
    return DEP_OK;
}

dep_status tool_memory_read(tool_ctx *c, dep_err *err) {
    str file = json_str(c->args, S("file"), (str){0}), text;
    if (!file.n) return list_files(c, err);
    TRY(scope_of(c, err));
    TRY(memory_read(c->turn, c->t->memory, file, true, &text, err));
    foreign_add(c->out, text, FOREIGN_TEXT, 0);
    return DEP_OK;
}

dep_status tool_memory_search(tool_ctx *c, dep_err *err) {
    strs names = {0};
    search_result r = {0};
    str query = json_str(c->args, S("query"), (str){0});
    vec_push(c->turn, &names, S("your memory"));
    if (c->t->memory)
        TRY(memory_search(c->turn, c->t->memory, query,
                          (size_t)json_num(c->args, S("limit"), TOOL_MEMORY_LIMIT), c->env->cancelled,
                          c->env->ctx, &r, err));
    knowledge_text(c->out, &r, query, &names);
    return DEP_OK;
}

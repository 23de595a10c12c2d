// tools: use_skill. `name` is an enum of the granted skills; files are read below the skill's own folder,
// held open since resolution.
#include "tools/tools_int.h"
#include <deputy/utf8.h>

static void add_body(tool_ctx *c, const skill *s, const strs *files, size_t more) {
    buf *out = c->out;
    buf_add(out, S("<skill_content name=\""));
    foreign_add(out, s->name, FOREIGN_LINE, 0);
    buf_add(out, S("\">\n"));
    foreign_add(out, s->body, FOREIGN_TEXT, 0);
    if (!str_ends(s->body, S("\n"))) buf_addc(out, '\n');
    buf_add(out, S("</skill_content>\n"));
    if (!files->n) return;
    buf_add(out, S("Files of this skill, read with use_skill and `file`:\n"));
    for (vec_each(const str, f, files)) {
        buf_add(out, S("- "));
        foreign_add(out, *f, FOREIGN_LINE, 0);
        buf_addc(out, '\n');
    }
    if (more) buf_addf(out, "[%zu more files are not listed]\n", more);
}

dep_status tool_use_skill(tool_ctx *c, dep_err *err) {
    str name = json_str(c->args, S("name"), (str){0}), file = json_str(c->args, S("file"), (str){0});
    const skill *s = skills_get(&c->t->w->skills, name);
    if (!s || s->withheld.n)
        return err_set(err, DEP_ERR_NOT_FOUND, "there is no skill \"" STR_FMT "\" for you", STR_ARG(name));
    if (!file.n) {
        strs files = {0};
        size_t more = 0;
        TRY(skill_files(c->turn, s, &files, &more, err));
        add_body(c, s, &files, more);
        return DEP_OK;
    }
    str bytes;
    decoded d;
    TRY(skill_read(c->turn, s, file, &bytes, err));
    TRY(decode_text(c->turn, bytes, (str){0}, &d, err));
    if (d.binary) return err_set(err, DEP_ERR_INVALID, "\"" STR_FMT "\" is a binary file", STR_ARG(file));
    foreign_add(c->out, d.text, FOREIGN_TEXT, 0);
    return DEP_OK;
}

// definition: the files of one layer's directory, read beneath a held descriptor without following any link
// (rule B1).
#include <deputy/definition.h>
#include <deputy/file.h>
#include <dirent.h>

static bool is_definition_file(const dir_entry *e) {
    if (str_starts(e->name, S(".")) || str_starts(e->name, S("#"))) return false;
    return str_ends(e->name, S(".yaml")) || str_ends(e->name, S(".yml"));
}

dep_status layer_read(arena *a, int dir, layer_files *ret, dep_err *err) {
    enum { ENTRIES_MAX = 20000 }; // entries looked at; far above the files that count
    dir_entries entries = {0};
    TRY(dir_list(a, dir, ENTRIES_MAX, &entries, err));
    *ret = (layer_files){0};
    size_t over = 0;
    for (vec_each(const dir_entry, e, &entries)) {
        if (!is_definition_file(e) || e->type == DT_DIR) continue;
        if (ret->n >= DEF_FILES_MAX) {
            over++;
            continue;
        }
        layer_file f = {.base = e->name};
        dep_err why;
        if (file_read_at(a, dir, e->name, FILE_NO_LINKS, DEF_FILE_MAX, &f.bytes, NULL, &why) != DEP_OK) {
            f.bytes = (str){0};
            f.fault = why.status == DEP_ERR_LIMIT
                          ? str_fmt(a, "the file has more than %d bytes", DEF_FILE_MAX)
                          : str_dup(a, str_z(why.msg));
        }
        vec_push(a, ret, f);
    }
    if (over)
        vec_push(a, ret,
                 ((layer_file){.base = S("."),
                               .fault = str_fmt(a, "%zu more files are not read: a layer holds at most %d",
                                                over, DEF_FILES_MAX)}));
    return DEP_OK;
}

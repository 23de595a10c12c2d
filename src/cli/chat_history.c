// cli: the lines that a person typed into `chat`, so that the arrow keys bring them back: a file of one entry
// a line in the state directory, 0600. Backslash and line feed within an entry are written as \\ and \n.
#include "cli/chat_int.h"
#include <deputy/file.h>
#include <unistd.h>

enum { HISTORY_LOCK_MS = 2000 };
#define HISTORY_FILE S("chat_history")

static str encode(arena *a, str entry) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < entry.n; i++) {
        char c = entry.p[i];
        if (c == '\n') {
            buf_add(&b, S("\\n"));
        } else {
            if (c == '\\') buf_addc(&b, '\\');
            buf_addc(&b, c);
        }
    }
    return buf_str(&b);
}

static str decode(arena *a, str line) {
    buf b = buf_new(a, 0);
    for (size_t i = 0; i < line.n; i++) {
        char c = line.p[i];
        if (c == '\\' && i + 1 < line.n) c = line.p[++i] == 'n' ? '\n' : line.p[i];
        buf_addc(&b, c);
    }
    return buf_str(&b);
}

// Lines as they stand in the file, without empty ones.
static void file_lines(arena *a, str text, strs *ret) {
    str line;
    while (text.n) {
        str_cut(text, '\n', &line, &text);
        if (line.n) vec_push(a, ret, line);
    }
}

str chat_history_add(arena *a, str text, str entry) {
    strs lines = {0};
    size_t bytes = 0, from;
    if (!str_trim(entry).n || entry.n > CHAT_HISTORY_ENTRY_MAX || !utf8_valid(entry)) return text;
    str line = encode(a, entry);
    file_lines(a, text, &lines);
    if (lines.n && str_eq(lines.p[lines.n - 1], line)) return text;
    vec_push(a, &lines, line);
    // The newest that both bounds allow.
    for (from = lines.n; from > 0 && lines.n - from < CHAT_HISTORY_LINES; from--) {
        bytes += lines.p[from - 1].n + 1;
        if (bytes > CHAT_HISTORY_BYTES) break;
    }
    buf b = buf_new(a, 0);
    for (size_t i = from; i < lines.n; i++) {
        buf_add(&b, lines.p[i]);
        buf_addc(&b, '\n');
    }
    return buf_str(&b);
}

void chat_history_entries(arena *a, str text, strs *ret) {
    strs lines = {0};
    file_lines(a, text, &lines);
    for (vec_each(const str, l, &lines)) {
        str entry = decode(a, *l);
        if (utf8_valid(entry)) vec_push(a, ret, entry);
    }
}

static dep_status read_at(arena *a, int dir, str *text, dep_err *err) {
    *text = (str){0};
    dep_err why;
    dep_status st = file_read_at(a, dir, HISTORY_FILE, FILE_NO_LINKS, CHAT_HISTORY_BYTES, text, NULL, &why);
    if (st == DEP_OK || st == DEP_ERR_NOT_FOUND) return DEP_OK;
    return err_set(err, st, "chat_history: %s", why.msg);
}

dep_status chat_history_read(arena *a, str state, str *text, dep_err *err) {
    int dir;
    TRY(dir_open_private(state, true, &dir, err));
    dep_status st = read_at(a, dir, text, err);
    close(dir);
    return st;
}

dep_status chat_history_append(arena *a, str state, str entry, dep_err *err) {
    int dir, lock;
    TRY(dir_open_private(state, true, &dir, err));
    // Two conversations may be open at once.
    dep_status st = lock_dir(dir, HISTORY_LOCK_MS, &lock, err);
    if (st == DEP_OK) {
        str text;
        st = read_at(a, dir, &text, err);
        if (st == DEP_OK)
            st = file_replace_at(dir, HISTORY_FILE, chat_history_add(a, text, entry), 0600, err);
        close(lock);
    }
    close(dir);
    return st;
}

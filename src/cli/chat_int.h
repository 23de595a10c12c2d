// chat: what the files of this verb share. chat.c runs the conversation, chat_commands.c what begins with a
// slash, chat_tasks.c shows delegations, chat_threads.c finds and shows conversations, chat_view.c prints,
// chat_input.c reads lines (with libedit: chat_edit.c), chat_history.c keeps what was typed.
//
// Threads: turns run on the main thread. Subagents report from theirs: what they say goes through the view,
// which prints whole lines under its lock.
#pragma once
#include "cli/cli_int.h"
#include <pthread.h>
#include <stdatomic.h>

// --- chat_history.c ------------------------------------------------------------------------------
enum {
    CHAT_HISTORY_LINES = 1000,        // entries that are kept, the newest
    CHAT_HISTORY_ENTRY_MAX = 4096,    // bytes of one; longer ones are not kept
    CHAT_HISTORY_BYTES = 1024 * 1024, // of the file that is read
};
// The file's text with one more entry, and without what is too much; as it was for one that is not kept
// (empty, too long, the same as the last one).
str chat_history_add(arena *a, str text, str entry);
// The entries, oldest first.
void chat_history_entries(arena *a, str text, strs *ret);
// state: the state directory. A file that is not there is empty.
[[nodiscard]] dep_status chat_history_read(arena *a, str state, str *text, dep_err *err);
[[nodiscard]] dep_status chat_history_append(arena *a, str state, str entry, dep_err *err);

// --- chat_view.c ---------------------------------------------------------------------------------
// What the model says goes to standard output, everything else to standard error.
typedef struct chat_view {
    cli *c;
    bool live; // tools and subagents are shown
    pthread_mutex_t lock;
    // Under the lock:
    arena *a;    // of what waits
    buf pending; // whole lines that wait for the end of a line
    buf held;    // the end of the text so far, which the next piece may go on with
    bool mid_line;
    bool prompting; // a person is at the prompt: lines wait for chat_view_idle
    int wake;       // an eventfd: something waits while the prompt is shown
} chat_view;

void chat_view_open(chat_view *v, cli *c, bool live);
void chat_view_close(chat_view *v);
// The model's words as they come.
void chat_view_text(chat_view *v, str delta);
// Ends the line that the model's words stand in.
void chat_view_end_text(chat_view *v);
// A whole line of Deputy's own; dim: set apart from the conversation. Any thread.
void chat_view_line(chat_view *v, bool dim, str escaped);
// The prompt is shown from now on (true) or not any more; then what waited is printed.
void chat_view_prompt(chat_view *v, bool shown);
// What waits, printed while the prompt is off the screen. False when nothing waited.
bool chat_view_idle(chat_view *v);
// Is the prompt shown?
bool chat_view_at_prompt(chat_view *v);
// The arguments of a tool call on one line: their values, escaped.
void chat_args(buf *b, str args);

// --- chat_input.c --------------------------------------------------------------------------------
typedef enum {
    LINE_GIVEN,
    LINE_CLEARED, // Ctrl-C: what was typed is gone
    LINE_END,     // end of input
    LINE_SIGNAL,  // the program was told to end
} line_kind;

typedef struct chat_input chat_input;
// terminal: a person types here. The line editor is used where it can be; why not, says the notice, or it is
// empty.
chat_input *chat_input_open(arena *a, chat_view *v, str state, bool terminal);
str chat_input_notice(const chat_input *in);
// One line without its line end. At most DELEGATE_TASK_MAX + 1 bytes of it.
line_kind chat_input_line(chat_input *in, arena *a, const char *prompt, str *ret);
// What may be several lines, each but the last ended by a backslash.
line_kind chat_input_message(chat_input *in, arena *a, str *ret);
// It was a line for the model, or a command: it is kept.
void chat_input_remember(chat_input *in, str line);

// --- Signals (chat.c) ----------------------------------------------------------------------------
bool chat_interrupted(bool forget);            // Ctrl-C since it was last forgotten
bool chat_told_to_end(void);                   // SIGTERM, SIGHUP
bool chat_resized(void), chat_continued(void); // since last asked

// --- The conversation ----------------------------------------------------------------------------
typedef struct chat {
    cli *c;
    engine *e;
    _Atomic(engine *) running; // the same, for the threads of subagents; NULL before it is open
    atomic_bool leaving;       // no message comes any more
    chat_view view;
    chat_input *in;
    bool terminal, quit;
    str agent, model; // model: empty: the agent's or the default one
    str thread, last; // last: its newest turn, or empty
    strs told;        // delegations whose end the model was told of
    bool failed;      // a turn did not complete
} chat;

// --- chat_threads.c ------------------------------------------------------------------------------
int chat_list_threads(cli *c); // chat --list
// id: a prefix or "last". Errors: NOT_FOUND, INVALID for a prefix of several. s NULL: there are none.
[[nodiscard]] dep_status chat_find_thread(arena *a, store *s, str id, thread_row *ret, dep_err *err);
// The same, and all of them, through the store of an open engine.
[[nodiscard]] dep_status chat_engine_thread(arena *a, engine *e, str id, thread_row *ret, dep_err *err);
[[nodiscard]] dep_status chat_engine_threads(arena *a, engine *e, thread_rows *ret, dep_err *err);
void chat_thread_lines(buf *b, arena *a, const thread_rows *rows, str current);
// The last exchanges, briefly.
void chat_show_last(chat *ch);

// --- chat_tasks.c --------------------------------------------------------------------------------
// For engine_sink; ctx is the chat.
void chat_task_item(void *ctx, str id, str agent, str kind, str item);
void chat_task_ended(void *ctx, str id, str agent, deleg_status status);
// The message, and before it what has ended since the model was last told; told: their ids.
str chat_with_news(chat *ch, arena *a, str message, strs *told);
void chat_tasks(chat *ch, arena *a, buf *out);         // /tasks
void chat_stop(chat *ch, arena *a, str ids, buf *out); // /stop
void chat_running(chat *ch, arena *a, strs *ids);      // what runs or waits here, turns excepted

// --- chat_commands.c -----------------------------------------------------------------------------
// A line that begins with a slash.
void chat_command(chat *ch, arena *a, str line);
// /quit, and the end of input: asks when delegations still run. Sets ch->quit unless the person stays.
void chat_leave(chat *ch, arena *a);
// Another thread, or (NULL) a new one.
void chat_switch(chat *ch, const thread_row *to);

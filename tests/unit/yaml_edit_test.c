// Edits in place: exact results for places that are easily got wrong, and a property over many documents:
// every byte outside of the touched value stays, the wanted value is read back, or nothing is written.
#include "support/support.h"
#include <deputy/file.h>
#include <deputy/yaml.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SET = YAML_EDIT_SET, UNSET = YAML_EDIT_UNSET, ADD = YAML_EDIT_ADD, REMOVE = YAML_EDIT_REMOVE };

static const char *const key_order[] = {"name",      "description", "tools",    "skills", "mcp",
                                        "knowledge", "memory",      "maxTurns", "prompt", NULL};

typedef struct {
    const char *what;
    int kind;
    const char *path, *value, *text;
    const char *want;  // the new text, or NULL:
    dep_status status; // why not
} edit_case;

static const edit_case cases[] = {
    // One line
    {"a comment behind the value stays", SET, "name", "y", "name: x   # who\nb: 1\n",
     "name: y   # who\nb: 1\n", 0},
    {"single quotes stay", SET, "a", "it", "a: 'x' # c\n", "a: 'it' # c\n", 0},
    {"double quotes stay", SET, "a", "it", "a: \"x\"\n", "a: \"it\"\n", 0},
    {"quotes go for a number", SET, "a", "70", "a: \"60\"\n", "a: 70\n", 0},
    {"a quoted number stays text", SET, "a", "'1.10'", "a: x\n", "a: '1.10'\n", 0},
    {"a word that others read as a boolean keeps its quotes", SET, "a", "'no'", "a: x\n", "a: 'no'\n", 0},
    {"needless quotes go", SET, "a", "\"Read it\"", "a: x\n", "a: Read it\n", 0},
    {"text with a colon is quoted", SET, "a", "'b: c'", "a: x\n", "a: 'b: c'\n", 0},
    {"JSON is taken as such", SET, "a", "[\"\\ud83d\\ude00\", 1, \"1\", null, {\"b\": true}]", "a: x\n",
     "a: [😀, 1, \"1\", null, {b: true}]\n", 0},
    {"JSON with U+0000", SET, "a", "\"\\u0000\"", "a: x\n", NULL, DEP_ERR_INVALID},
    {"no change at all", SET, "a", "x", "a:   x\n", "a:   x\n", 0},
    {"a plain value over several lines", SET, "a", "x", "a: one\n  two # c\nb: 1\n", "a: x # c\nb: 1\n", 0},
    {"a quoted value over several lines", SET, "a", "x", "a: \"one\n  two\" # c\nb: 1\n",
     "a: \"x\" # c\nb: 1\n", 0},
    {"a value below its key", SET, "a", "x", "a:\n    one\nb: 1\n", "a:\n    x\nb: 1\n", 0},
    {"an empty value", SET, "tools", "[read]", "tools:\nb: 1\n", "tools: [read]\nb: 1\n", 0},
    {"an empty value with a comment", SET, "tools", "x", "tools: # none\nb: 1\n", "tools: x # none\nb: 1\n",
     0},
    {"an empty value at the end of a text without line end", SET, "a", "x", "b: 1\na:", "b: 1\na: x", 0},
    {"null", SET, "a", "null", "a: x\n", "a: null\n", 0},
    {"an alias gives way to a value", SET, "c", "1", "a: &x 2\nc: *x # c\n", "a: &x 2\nc: 1 # c\n", 0},
    {"an anchor that nothing refers to stays", SET, "a", "1", "a: &x 2\nc: 3\n", "a: &x 1\nc: 3\n", 0},
    // Blocks
    {"a block stays a block", SET, "prompt", "\"A\\n\\n B\\n\"", "prompt: |\n    old\n\n    text\nb: 1\n",
     "prompt: |\n    A\n\n     B\nb: 1\n", 0},
    {"a block's comment stays", SET, "p", "\"A\\nB\"", "p: | # the body\n  old\nb: 1\n",
     "p: |- # the body\n  A\n  B\nb: 1\n", 0},
    {"a block for one line", SET, "p", "one line", "p: |\n  old\nb: 1\n", "p: |-\n  one line\nb: 1\n", 0},
    {"a folded block stays folded", SET, "p", "\"A\\n\\nB\\nC\\n\"", "p: >\n  old\n  text\nb: 1\n",
     "p: >\n  A\n\n\n  B\n\n  C\nb: 1\n", 0},
    {"a text that begins with blanks", SET, "p", "\"  A\\nB\\n\"", "p: |\n   old\nb: 1\n",
     "p: |3\n     A\n   B\nb: 1\n", 0},
    {"kept line ends", SET, "p", "\"A\\n\\n\"", "p: |\n  old\nb: 1\n", "p: |+\n  A\n\nb: 1\n", 0},
    {"blank lines behind a block stay", SET, "p", "\"A\\n\"", "p: |\n  old\n\n\n# c\nb: 1\n",
     "p: |\n  A\n\n\n# c\nb: 1\n", 0},
    {"no block where blank lines would join it", SET, "p", "\"A\\n\\n\"", "p: |\n  old\n\nb: 1\n",
     "p: \"A\\n\\n\"\n\nb: 1\n", 0},
    {"a number for a block", SET, "p", "60", "p: | # c\n  old\nb: 1\n", "p: 60 # c\nb: 1\n", 0},
    {"a list for a block", SET, "p", "[a, b]", "p: | # c\n  old\nb: 1\n", "p: [a, b] # c\nb: 1\n", 0},
    {"several lines for one", SET, "p", "\"A\\nB\\n\"", "p: old # c\nb: 1\n", "p: | # c\n  A\n  B\nb: 1\n",
     0},
    {"several lines in brackets", SET, "a.0", "\"A\\nB\"", "a: [x, y]\n", "a: [\"A\\nB\", y]\n", 0},
    {"a block at the end of a text without line end", SET, "p", "\"A\\nB\\n\"", "a: 1\np: |\n  old",
     "a: 1\np: |\n  A\n  B", 0},
    {"a key behind a block without line end", SET, "q", "1", "p: |\n  old", "p: |\n  old\nq: 1", 0},
    {"a control character", SET, "p", "\"A\\x1b\\nB\"", "p: x\n", "p: \"A\\e\\nB\"\n", 0},
    // Lists
    {"flow list: append", ADD, "tools", "glob", "tools: [read, grep] # c\n",
     "tools: [read, grep, glob] # c\n", 0},
    {"flow list: into none", ADD, "t", "a", "t: [] # c\n", "t: [a] # c\n", 0},
    {"flow list over lines: append", ADD, "t", "c", "t: [\n  a, # x\n  b # y\n]\n",
     "t: [\n  a, # x\n  b, # y\n  c\n]\n", 0},
    {"flow list with a comma at the end", ADD, "t", "c", "t: [\n  a,\n  b, # y\n]\n",
     "t: [\n  a,\n  b, # y\n  c,\n]\n", 0},
    {"flow list: remove the middle", REMOVE, "t", "b", "t: [a, b, c]\n", "t: [a, c]\n", 0},
    {"flow list: remove the last", REMOVE, "t", "c", "t: [a, b, c]\n", "t: [a, b]\n", 0},
    {"flow list: remove the only one", REMOVE, "t", "a", "t: [ a ] # c\n", "t: [] # c\n", 0},
    {"flow list over lines: remove", REMOVE, "t", "b", "t: [\n  a, # x\n  b, # y\n  c\n]\n",
     "t: [\n  a, # x\n  c\n]\n", 0},
    {"block list: append", ADD, "t", "c", "t:\n  - a # x\n  - b # y\n# z\nu: 1\n",
     "t:\n  - a # x\n  - b # y\n  - c\n# z\nu: 1\n", 0},
    {"block list in its key's column: append", ADD, "t", "c", "t:\n- a\n- b\nu: 1\n",
     "t:\n- a\n- b\n- c\nu: 1\n", 0},
    {"block list with wide dashes: append", ADD, "t", "c", "t:\n    -   a\nu: 1\n",
     "t:\n    -   a\n    -   c\nu: 1\n", 0},
    {"block list at the end without line end: append", ADD, "t", "c", "t:\n- a", "t:\n- a\n- c", 0},
    {"block list: remove", REMOVE, "t", "a", "t:\n  - a # x\n  # about b\n  - b\n",
     "t:\n  # about b\n  - b\n", 0},
    {"block list: remove the only one", REMOVE, "t", "a", "t: # c\n  - a\nu: 1\n", "t: [] # c\nu: 1\n", 0},
    {"block list: remove what stands twice", REMOVE, "t", "a", "t:\n- a\n- b\n- a\n", "t:\n- b\n", 0},
    {"block list: set an item", SET, "t.1", "c", "t:\n- a\n- b # y\n", "t:\n- a\n- c # y\n", 0},
    {"block list: an empty item", SET, "t.0", "c", "t:\n-\n- b\n", "t:\n- c\n- b\n", 0},
    {"block list by one past the end", SET, "t[2]", "c", "t:\n- a\n- b\n", "t:\n- a\n- b\n- c\n", 0},
    {"block list set as a whole keeps what stays", SET, "t", "[b, c]", "t:\n  - a\n  - b # y\n",
     "t:\n  - b # y\n  - c\n", 0},
    {"block list stays in block style", SET, "t", "[x, y]", "t:\n  - a\n  - b # y\n",
     "t:\n  - x\n  - y # y\n", 0},
    {"a list of mappings: append one", ADD, "k", "{name: b, path: [x, y]}",
     "k:\n  - name: a\n    path: p\nu: 1\n",
     "k:\n  - name: a\n    path: p\n  - name: b\n    path: [x, y]\nu: 1\n", 0},
    {"a list of mappings: remove one", UNSET, "k.0", "", "k:\n  - name: a\n    path: p\n  - name: b\n",
     "k:\n  - name: b\n", 0},
    {"a list of mappings: a key of one", SET, "k.0.path", "q",
     "k:\n  - name: a\n    path: p # here\n  - name: b\n",
     "k:\n  - name: a\n    path: q # here\n  - name: b\n", 0},
    {"a list of mappings: a new key of one", SET, "k.0.x", "q", "k:\n  - name: a\n  - name: b\n",
     "k:\n  - name: a\n    x: q\n  - name: b\n", 0},
    {"the first key behind a dash goes", UNSET, "k.0.name", "", "k:\n  - name: a # x\n    path: p\n",
     "k:\n  - path: p\n", 0},
    {"the first key behind a dash goes, the comment below stays", UNSET, "k.0.name", "",
     "k:\n  - name: a\n    # where\n    path: p\n", "k:\n  -\n    # where\n    path: p\n", 0},
    {"the only key of an item takes the item along", UNSET, "k.0.name", "", "k:\n  - name: a\n  - name: b\n",
     "k:\n  - name: b\n", 0},
    {"lists in lists", SET, "k.0.1", "x", "k:\n- - a\n  - b\n- c\n", "k:\n- - a\n  - x\n- c\n", 0},
    {"lists in lists: the first goes", UNSET, "k.0.0", "", "k:\n- - a\n  - b\n- c\n", "k:\n- - b\n- c\n", 0},
    {"a set list of one value", SET, "t", "[read, grep]", "t: read # c\n", "t: [read, grep] # c\n", 0},
    {"a list too wide for a line", SET, "t",
     "[aaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbbb, cccccccccccccccccccccccc, "
     "dddddddddddddddddddddddd]",
     "t: a # c\n",
     "t: # c\n  - aaaaaaaaaaaaaaaaaaaaaaaa\n  - bbbbbbbbbbbbbbbbbbbbbbbbbbb\n  - cccccccccccccccccccccccc\n  "
     "- "
     "dddddddddddddddddddddddd\n",
     0},
    {"text in a block list becomes one line again", SET, "t", "x",
     "t: # c\n  # about a\n  - a # y\n  - b\nu: 1\n", "t: x # c\n  # about a\nu: 1\n", 0},
    // String lists
    {"string list: append", ADD, "tools", "Grep", "tools: Read, Bash(a, b) # c\n",
     "tools: Read, Bash(a, b), Grep # c\n", 0},
    {"string list by blanks: append", ADD, "tools", "Grep", "tools: Read Glob\n", "tools: Read Glob Grep\n",
     0},
    {"string list: in quotes", ADD, "tools", "Grep", "tools: \"Read, Glob\"\n",
     "tools: \"Read, Glob, Grep\"\n", 0},
    {"string list: what has blanks makes it a list", ADD, "tools", "'a b'", "tools: Read, Glob\n",
     "tools: [Read, Glob, a b]\n", 0},
    {"string list: remove", REMOVE, "tools", "Read", "tools: Read, Bash(a, b) # c\n",
     "tools: Bash(a, b) # c\n", 0},
    {"string list: remove the only one", REMOVE, "tools", "Read", "tools: Read\n", "tools: []\n", 0},
    {"one value becomes a list", ADD, "tools", "Grep", "tools: Read # c\n", "tools: [Read, Grep] # c\n", 0},
    {"a path with a blank is one value", ADD, "p", "b/*.md", "p: ./my docs/*.md\n",
     "p: [./my docs/*.md, b/*.md]\n", 0},
    {"add to what is absent", ADD, "tools", "read", "name: x\n", "name: x\ntools: [read]\n", 0},
    {"add to what is empty", ADD, "tools", "read", "tools: # c\nname: x\n", "tools: [read] # c\nname: x\n",
     0},
    {"the entry is there", ADD, "tools", "read", "tools: [read]\n", NULL, DEP_ERR_EXISTS},
    {"the word is there", ADD, "tools", "Read", "tools: Read, Grep\n", NULL, DEP_ERR_EXISTS},
    {"the entry is not there", REMOVE, "tools", "grep", "tools: [read]\n", NULL, DEP_ERR_NOT_FOUND},
    {"a mapping is no list", ADD, "m", "x", "m:\n  a: 1\n", NULL, DEP_ERR_INVALID},
    // Mappings
    {"a new key where the order wants it", SET, "tools", "[read]",
     "name: x\n# about\ndescription: d # e\nmemory: none\n",
     "name: x\n# about\ndescription: d # e\ntools: [read]\nmemory: none\n", 0},
    {"a key outside of the order comes last", SET, "x-y", "1", "name: x\nprompt: |\n  a\n\n# end\n",
     "name: x\nprompt: |\n  a\nx-y: 1\n\n# end\n", 0},
    {"a first key of the order comes last", SET, "name", "x", "tools: [a]\nb: 1\n",
     "tools: [a]\nb: 1\nname: x\n", 0},
    {"missing mappings are made", SET, "permissions.run", "[git]", "name: x\n",
     "name: x\npermissions:\n  run: [git]\n", 0},
    {"missing mappings in an empty value", SET, "m.a.b", "1", "m: # c\nn: 2\n",
     "m: # c\n  a:\n    b: 1\nn: 2\n", 0},
    {"indentation as elsewhere", SET, "p.q", "1", "a:\n    b: 1\n", "a:\n    b: 1\np:\n    q: 1\n", 0},
    {"missing mappings in braces", SET, "m.a.b", "1", "m: {c: 2}\n", "m: {c: 2, a: {b: 1}}\n", 0},
    {"a key into empty braces", SET, "m.a", "1", "m: {} # c\n", "m: {a: 1} # c\n", 0},
    {"a key behind an empty value in braces", SET, "m.b", "1", "m: {a: }\n", "m: {a: , b: 1 }\n", 0},
    {"a value for a key without colon in braces", SET, "m.a", "1", "m: {a, b}\n", "m: {a: 1, b}\n", 0},
    {"braces over lines", SET, "m.c", "3", "m: {\n  a: 1,\n  b: 2 # y\n}\n",
     "m: {\n  a: 1,\n  b: 2, # y\n  c: 3\n}\n", 0},
    {"a key of a nested mapping", SET, "mcp.search", "on", "mcp:\n  servers:\n  - a\n  # - b\nx: 1\n",
     "mcp:\n  servers:\n  - a\n  search: on\n  # - b\nx: 1\n", 0},
    {"a key with dots", SET, "\"a.b\".c", "1", "a.b:\n  c: 2 # d\n", "a.b:\n  c: 1 # d\n", 0},
    {"a key that needs quotes", SET, "\"a: b\"", "1", "c: 2\n", "c: 2\n'a: b': 1\n", 0},
    {"unset takes the line, comments above stay", UNSET, "b", "", "a: 1\n# about b\nb: 2 # c\nd: 3\n",
     "a: 1\n# about b\nd: 3\n", 0},
    {"unset a block", UNSET, "p", "", "a: 1\np: |\n  x\n\n  y\n\nb: 2\n", "a: 1\n\nb: 2\n", 0},
    {"unset a mapping", UNSET, "m", "", "a: 1\nm: # c\n  x: 1\n  # d\n  y: [1,\n   2] # e\nb: 2\n",
     "a: 1\nb: 2\n", 0},
    {"unset the last key of a mapping", UNSET, "m.x.y", "", "a: 1\nm:\n  x:\n    y: 1\nb: 2\n",
     "a: 1\nb: 2\n", 0},
    {"unset in braces", UNSET, "m.a", "", "m: {a: 1, b: 2}\n", "m: {b: 2}\n", 0},
    {"unset the only key in braces", UNSET, "m.a", "", "m: {a: 1}\nb: 2\n", "b: 2\n", 0},
    {"unset at the end without line end", UNSET, "b", "", "a: 1\nb: 2", "a: 1\n", 0},
    {"unset between a kept block and a blank line", UNSET, "b", "", "a: |+\n  x\nb: 1\n\nc: 2\n",
     "a: |+\n  x\nc: 2\n", 0},
    {"an explicit key", SET, "a", "x", "? a\n: b # c\n? d\n: e\n", "? a\n: x # c\n? d\n: e\n", 0},
    {"an explicit key without a value", SET, "d", "x", "? a\n: b\n? d # c\n? e\n",
     "? a\n: b\n? d # c\n: x\n? e\n", 0},
    {"an explicit key goes", UNSET, "a", "", "? a\n: b # c\n? d\n: e\n", "? d\n: e\n", 0},
    {"a mapping set as a whole keeps what stays", SET, "m", "{a: 1, c: 3}", "m:\n  a: 1 # x\n  b: 2\n",
     "m:\n  a: 1 # x\n  c: 3\n", 0},
    // The document
    {"CRLF", SET, "m.b", "\"x\\ny\\n\"", "a: 1\r\nm:\r\n  c: 2\r\n",
     "a: 1\r\nm:\r\n  c: 2\r\n  b: |\r\n    x\r\n    y\r\n", 0},
    {"CRLF and no last line end", ADD, "m", "y", "m:\r\n  - x", "m:\r\n  - x\r\n  - y", 0},
    {"a BOM", SET, "a", "2",
     "\xEF\xBB\xBF"
     "a: 1\nb: 2\n",
     "\xEF\xBB\xBF"
     "a: 2\nb: 2\n",
     0},
    {"a BOM before what goes", UNSET, "a", "",
     "\xEF\xBB\xBF"
     "a: 1\nb: 2\n",
     "\xEF\xBB\xBF"
     "b: 2\n",
     0},
    {"document marks", SET, "b", "2", "%YAML 1.2\n---\na: 1\n...\n", "%YAML 1.2\n---\na: 1\nb: 2\n...\n", 0},
    {"an empty document", SET, "a.b", "1", "# nothing yet\n", "# nothing yet\na:\n  b: 1\n", 0},
    {"no bytes at all", SET, "a", "1", "", "a: 1\n", 0},
    {"wide characters", SET, "键", "新", "键: 值 # 注\n二: \"三\"\n", "键: 新 # 注\n二: \"三\"\n", 0},
    {"odd indentation", SET, "a.b.c", "2", "a:\n     b:\n      c: 1\n   # odd\n",
     "a:\n     b:\n      c: 2\n   # odd\n", 0},
    {"older errors do not hinder", SET, "c", "1", "a: 1\na: 2\nc: !x 3\n", "a: 1\na: 2\nc: !x 1\n", 0},
    // Refusals
    {"an alias is not entered", SET, "c.b", "1", "a: &x\n  b: 2\nc: *x\n", NULL, DEP_ERR_REFUSED},
    {"what an alias repeats is not changed", SET, "a.b", "1", "a: &x\n  b: 2\nc: *x\n", NULL,
     DEP_ERR_REFUSED},
    {"what an alias repeats does not grow", SET, "a.d", "1", "a: &x\n  b: 2\nc: *x\n", NULL, DEP_ERR_REFUSED},
    {"an anchor in use does not go", SET, "a", "1", "a: &x\n  b: 2\nc: *x\n", NULL, DEP_ERR_INVALID},
    {"an anchor in use does not go with its key", UNSET, "a", "", "a:\n  b: &x 2\nc: *x\n", NULL,
     DEP_ERR_INVALID},
    {"an anchor goes with its aliases", UNSET, "a", "", "a: {b: &x 2, d: *x}\nc: 1\n", "c: 1\n", 0},
    {"a doubled key", SET, "a", "3", "a: 1\na: 2\n", NULL, DEP_ERR_REFUSED},
    {"the last key", UNSET, "a.b", "", "a:\n  b: 1\n", NULL, DEP_ERR_REFUSED},
    {"a pair without braces", SET, "a.0.c", "1", "a: [b: c]\n", NULL, DEP_ERR_REFUSED},
    {"a key below a value", SET, "a.b", "1", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a key of a list", SET, "a.b", "1", "a: [x]\n", NULL, DEP_ERR_INVALID},
    {"an index of a mapping", SET, "a[0]", "1", "a: {b: 1}\n", NULL, DEP_ERR_INVALID},
    {"an index past the end", SET, "a.5", "1", "a: [x]\n", NULL, DEP_ERR_NOT_FOUND},
    {"unset what is not there", UNSET, "a.b", "", "a: {c: 1}\n", NULL, DEP_ERR_NOT_FOUND},
    {"a value with a colon", SET, "a", "b: c", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a value with a comment", SET, "a", "b # c", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a value that does not parse", SET, "a", "[b", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a value with an anchor", SET, "a", "&b c", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a value with a tag", SET, "a", "!!str c", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a value that is a document", SET, "a", "--- b", "a: x\n", NULL, DEP_ERR_INVALID},
    {"no value", SET, "a", " ", "a: x\n", NULL, DEP_ERR_INVALID},
    {"no path", SET, "", "1", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a path with a hole", SET, "a..b", "1", "a: x\n", NULL, DEP_ERR_INVALID},
    {"a text with a syntax error", SET, "a", "1", "a: b: c\n", NULL, DEP_ERR_INVALID},
};

static ydoc *parse(arena *a, str text, size_t *errors) {
    diags d = diags_new(a);
    ydoc *doc = NULL;
    assert_int_equal(yaml_parse(a, S("t.yaml"), text, 1 << 20, true, &doc, &d, NULL), DEP_OK);
    if (errors) *errors = d.errors;
    return doc;
}

static bool one_case(const edit_case *c) {
    arena *a = arena_new();
    str out = {0};
    dep_err err = {0};
    ydoc *doc = parse(a, str_z(c->text), NULL);
    dep_status status =
        yaml_edit(a, doc, (yaml_edit_kind)c->kind, str_z(c->path), str_z(c->value), key_order, &out, &err);
    bool ok = c->want ? status == DEP_OK && str_eq(out, str_z(c->want))
                      : status == c->status && !out.p && err.msg[0] && err.status == status;
    if (!ok)
        printf("%s: %s %s\n--- got:\n" STR_FMT "\n--- wanted:\n%s\n", c->what, err_name(status), err.msg,
               STR_ARG(out), c->want ? c->want : err_name(c->status));
    arena_free(a);
    return ok;
}

static void test_yaml_edit__gives_exactly_the_text_a_person_would_write(void **state) {
    (void)state;
    size_t bad = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) bad += !one_case(&cases[i]);
    assert_int_equal(bad, 0);
}

static size_t changed_lines(str x, str y) {
    size_t n = 0;
    str a, b;
    while (x.n || y.n) {
        str_cut(x, '\n', &a, &x);
        str_cut(y, '\n', &b, &y);
        n += !str_eq(a, b);
    }
    return n;
}

static void test_yaml_edit__one_field_of_a_lived_in_file_changes_one_line(void **state) {
    (void)state;
    static const char text[] = "# Owner: support\n\nname:   \"desk\"   # shown in lists\ndescription: "
                               "\"One\\nTwo: \\\"three\\\"\"\nx-note: &note {b: "
                               "'it''s', a: [1,2 , 3]}\nunknown_key:\n    - *note\n    -   odd   \nmaxTurns: "
                               "60 # enough\ntools: [ read,grep ]\n\n\n"
                               "# The body\nprompt: |-\n   You are.  \n\n     Indented.\n\n\n# end";
    arena *a = arena_new();
    ydoc *doc = parse(a, str_z(text), NULL);
    str out = {0};
    assert_int_equal(yaml_edit(a, doc, YAML_EDIT_SET, S("maxTurns"), S("61"), key_order, &out, NULL), DEP_OK);
    assert_int_equal(changed_lines(doc->source, out), 1);
    assert_true(str_find(out, S("\nmaxTurns: 61 # enough\n")) != SIZE_MAX);
    ydoc *again = parse(a, out, NULL);
    assert_int_equal(yaml_edit(a, again, YAML_EDIT_SET, S("maxTurns"), S("60"), key_order, &out, NULL),
                     DEP_OK);
    assert_true(str_eq(out, str_z(text)));
    arena_free(a);
}

static void test_yaml_edit__the_text_does_not_outgrow_its_limit(void **state) {
    (void)state;
    arena *a = arena_new();
    buf b = buf_new(a, 0);
    buf_add(&b, S("a: "));
    buf_fill(&b, 'x', YAML_SIZE_MAX - 10);
    buf_add(&b, S("\nb: 1"));
    assert_int_equal(b.n, YAML_SIZE_MAX - 2);
    ydoc *doc = parse(a, buf_str(&b), NULL);
    str out = {0};
    dep_err err;
    assert_int_equal(yaml_edit(a, doc, YAML_EDIT_SET, S("b"), S("123"), NULL, &out, &err), DEP_OK);
    assert_int_equal(out.n, YAML_SIZE_MAX);
    out = (str){0};
    assert_int_equal(yaml_edit(a, doc, YAML_EDIT_SET, S("b"), S("1234"), NULL, &out, &err), DEP_ERR_LIMIT);
    assert_true(!out.p);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_yaml_edit__gives_exactly_the_text_a_person_would_write),
        cmocka_unit_test(test_yaml_edit__one_field_of_a_lived_in_file_changes_one_line),
        cmocka_unit_test(test_yaml_edit__the_text_does_not_outgrow_its_limit),
    };
    return cmocka_run_group_tests_name("yaml_edit", tests, NULL, NULL);
}

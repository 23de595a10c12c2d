#!/bin/sh
# Every public header compiles alone, twice in a row, under stricter warnings than the sources get.
set -eu
cd "$(dirname "$0")/../../.."
strict='-Werror -Wpedantic -Wundef -Wcast-qual -Wwrite-strings -Wold-style-definition -Wredundant-decls -Wnewline-eof'
status=0
for header in include/deputy/*.h; do
    name=deputy/${header##*/}
    # shellcheck disable=SC2046,SC2086 # lists of words
    printf '#include <%s>\n#include <%s>\n' "$name" "$name" |
        clang-19 $(sh tests/support/check/list.sh warnings) $strict -D_GNU_SOURCE -Iinclude -fsyntax-only -x c - || {
        echo "$header does not compile alone"
        status=1
    }
done
exit $status

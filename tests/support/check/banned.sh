#!/bin/sh
# src/base/banned.h does what it promises: a use of each of its functions is an error, also with libc's own headers
# included, and a source without such a use compiles. That no source has one is proved by every build.
set -eu
cd "$(dirname "$0")/../../.."
status=0

compile() {
    clang-19 -std=gnu23 -D_GNU_SOURCE -Isrc -include src/base/banned.h -fsyntax-only -x c - 2>&1
}
headers='#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
'
names=$(sed -n 's/^extern .*[ *]\([a-z]*\)(.*) DEP_BANNED(.*);$/\1/p' src/base/banned.h)
count=$(grep -c '^extern ' src/base/banned.h)
[ "$(echo "$names" | wc -l)" = "$count" ] || {
    echo "banned.h: $count prototypes, but names were read from fewer lines"
    status=1
}
for name in strcpy strcat sprintf vsprintf strncpy strncat strtok gets atoi atol atof system popen tmpnam mktemp alloca \
    setenv putenv rand; do
    echo "$names" | grep -qx "$name" || {
        echo "banned.h has lost $name"
        status=1
    }
done
for name in $names; do
    # Taking the address needs no arguments and is refused the same way as a call.
    if printf '%svoid *use(void); void *use(void) { return (void *)%s; }\n' "$headers" "$name" | compile |
        grep -q "'$name' is unavailable"; then :; else
        echo "banned.h does not stop a use of $name"
        status=1
    fi
done
printf '%sint use(void); int use(void) { return (int)strlen("x") + snprintf(nullptr, 0, "x"); }\n' "$headers" | compile || {
    echo 'banned.h stops a harmless source'
    status=1
}
exit $status

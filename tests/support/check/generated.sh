#!/bin/sh
# generated.sh DEPUTY: what the program generates from its tables and what the repository holds are the same bytes.
# After a change of a table:  for each line below, run the command and save its output in the file.
set -eu
cd "$(dirname "$0")/../../.."
deputy=$1
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# same FILE WORD…: output of `deputy WORD…` against FILE.
same() {
    file=$1
    shift
    if ! "$deputy" "$@" >"$work/now" 2>"$work/err"; then
        echo "$file: deputy $* failed: $(head -n 1 "$work/err")"
        status=1
    elif ! [ -e "$file" ]; then
        echo "$file is missing; make it with: deputy $* >$file"
        status=1
    elif ! cmp -s "$file" "$work/now"; then
        echo "$file differs from what deputy $* prints; make it again with: deputy $* >$file"
        diff -u "$file" "$work/now" | head -n 20 || true
        status=1
    fi
}

if ! "$deputy" schema definition >/dev/null 2>&1; then
    echo 'this deputy has no verb schema yet; nothing to compare'
    exit 0
fi
for name in definition config skill report; do
    same "schemas/$name.json" schema "$name"
done
same schemas/reference.md schema --reference
exit $status

#!/bin/sh
# Every source, unit suite, support file and fuzz target of the tree stands in build.zig, once, and nothing else does.
set -eu
cd "$(dirname "$0")/../../.."
status=0

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# tell WHAT: standard input holds the findings, one a line.
tell() {
    while read -r item; do
        echo "$1: $item"
        status=1
    done
}

# compare LISTS WHAT: standard input is what the tree has, one a line.
compare() {
    grep . | sort >"$work/tree" || true
    for list in $1; do sh tests/support/check/list.sh "$list"; done | sort >"$work/listed"
    uniq -d "$work/listed" >"$work/twice"
    comm -23 "$work/tree" "$work/listed" >"$work/missing"
    sort -u "$work/listed" | comm -13 "$work/tree" - >"$work/stale"
    tell "$2 not listed in build.zig ($1)" <"$work/missing"
    tell "$2 listed in build.zig ($1), but there is none" <"$work/stale"
    tell "$2 listed twice in build.zig" <"$work/twice"
}

compare 'core_files main_files' 'source' <<END
$(find src -name '*.c' | sed 's#^src/##')
END
compare suites 'unit suite' <<END
$(find tests/unit -name '*.c' | sed -n 's#^tests/unit/\(.*\)_test\.c$#\1#p')
END
compare support_files 'test support file' <<END
$(find tests/support -name '*.c' | sed 's#^tests/support/##')
END
compare fuzzers 'fuzz target' <<END
$(find tests/fuzz -name 'fuzz_*.c' | sed 's#^tests/fuzz/fuzz_\(.*\)\.c$#\1#')
END
compare 'bench_programs bench_peers' 'measuring program' <<END
$(find tests/bench -name '*.c' 2>/dev/null | sed 's#^tests/bench/\(.*\)\.c$#\1#')
END

find tests/unit -name '*.c' ! -name '*_test.c' >"$work/odd"
tell 'not a unit suite (NAME_test.c)' <"$work/odd"
# A suite mirrors a room: its name begins with a directory of src/ (or with support, for the helpers themselves).
for suite in $(sh tests/support/check/list.sh suites); do
    room=${suite%%_*}
    [ -d "src/$room" ] || [ "$room" = support ] || {
        printf 'tests/unit/%s_test.c names no room of src/\n' "$suite"
        status=1
    }
done
exit $status

#!/bin/sh
# Prints one of the lists of build.zig, an item a line: core_files, main_files, suites, fuzzers, support_files,
# libraries, warnings. build.zig is the one place where they stand; whatever else needs one asks here.
set -eu
cd "$(dirname "$0")/../../.."
awk -v list="$1" '
    $0 ~ "^const " list " = " { inside = 1; found = 1 }
    inside && match($0, /"[^"]+"/) { print substr($0, RSTART + 1, RLENGTH - 2) }
    inside && /};$/ { inside = 0 }
    END { exit !found }
' build.zig

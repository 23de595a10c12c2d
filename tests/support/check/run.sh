#!/bin/sh
# `./dev check [NAME…]`: runs the checks below, all of them even after a failure, and says how each ended. Needs what
# `./dev check` has installed and built; ZIG is the pinned zig.
set -eu
cd "$(dirname "$0")/../../.."
here=tests/support/check
all='format lists floors banned headers style tidy generated'

check_format() {
    find src include tests -name '*.[ch]' ! -path 'tests/fixtures/*' -exec clang-format-19 --dry-run -Werror {} + 2>&1 |
        sed -n 's/^\([^:]*\):[0-9].*code should be clang-formatted.*/\1/p' | uniq -c >build/format.txt
    [ ! -s build/format.txt ] || {
        echo 'places that clang-format-19 -i would change:'
        cat build/format.txt
        return 1
    }
    "$ZIG" fmt --check build.zig build.zig.zon
}
check_lists() { sh $here/lists.sh; }
check_floors() { python3 $here/floors.py; }
check_banned() { sh $here/banned.sh; }
check_headers() { sh $here/headers.sh; }
check_style() { sh $here/style.sh; }
check_tidy() { sh $here/tidy.sh; }
check_generated() { sh $here/generated.sh build/debug/bin/deputy; }

# shellcheck disable=SC2086 # a list of words
[ $# -gt 0 ] || set -- $all
failed=
for name in "$@"; do
    case " $all " in
        *" $name "*) ;;
        *)
            echo "no such check: $name; there are: $all" >&2
            exit 2
            ;;
    esac
    begin=$(date +%s)
    if "check_$name"; then verdict=ok; else verdict=FAIL failed="$failed $name"; fi
    echo "$verdict $name ($(($(date +%s) - begin)) s)"
done
[ -z "$failed" ] || {
    echo "failed:$failed"
    exit 1
}
echo 'all checks passed'

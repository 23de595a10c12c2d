#!/bin/sh
# Habits that a compiler does not see, each a grep: no static locals, no #embed outside src/assets, files opened by base
# alone, no leftovers, no endless files; shell scripts are clean under shellcheck where it is installed.
set -eu
cd "$(dirname "$0")/../../.."
status=0
# refuse WHY: standard input holds the findings, one a line.
refuse() {
    found=$(cat)
    [ -z "$found" ] || {
        printf '%s:\n%s\n' "$1" "$found"
        status=1
    }
}

refuse '#embed belongs to src/assets' <<END
$(grep -rnE '^[[:blank:]]*#[[:blank:]]*embed' src include --include='*.[ch]' | grep -v '^src/assets/' || true)
END
refuse 'mutable data that outlives a call (clang-tidy looks at file scope)' <<END
$(grep -rnE '^[[:blank:]]+(static|thread_local|_Thread_local) ' src include --include='*.[ch]' | grep -vE 'static (const|inline|constexpr) |\(\*const ' || true)
END
refuse 'a leftover' <<END
$(grep -rnwE 'TODO|FIXME|XXX|HACK' src include tests dev build.zig --include='*.[ch]' --include='*.sh' --include=dev --include='*.zig' | grep -v '^tests/support/check/style.sh:' || true)
END
# store opens its database, cli the terminal and files that its arguments name.
refuse 'files are opened by src/base (rule B1)' <<END
$(grep -rnE '(^|[^_[:alnum:].>])(open|openat|openat2|creat|fopen|freopen|opendir|mmap|mkstemp|mkostemp)\(' src --include='*.c' | grep -vE '^src/(base|store|cli)/' | grep -vE '^[^:]*:[0-9]*:[[:blank:]]*(//|\*)' || true)
END
refuse 'trailing blanks or tabs' <<END
$(grep -rnE "[[:blank:]]+\$|	" src include build.zig dev --include='*.[ch]' --include=dev --include=build.zig || true)
END
refuse 'more than 700 lines: split it' <<END
$(find src include -name '*.[ch]' -exec wc -l {} + | awk '$2 != "total" && $1 > 700 { print $2 " has " $1 " lines" }')
END
if command -v shellcheck >/dev/null 2>&1; then
    refuse 'shellcheck' <<END
$(shellcheck -s sh dev tests/support/check/*.sh 2>&1 || true)
$(shellcheck .ci/run 2>&1 || true)
END
fi
exit $status

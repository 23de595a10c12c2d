#!/bin/sh
# clang-tidy over src/, as many at a time as there are processors. A file whose preprocessed text, configuration and
# tool were found clean before is not looked at again (build/tidy holds the digests).
set -eu
cd "$(dirname "$0")/../../.."
export flags
# shellcheck disable=SC2046 # a list of words
flags="-std=gnu23 -D_GNU_SOURCE -Iinclude -Isrc --embed-dir=. $(pkg-config --cflags $(sh tests/support/check/list.sh libraries))"
export known=build/tidy
mkdir -p "$known"
find "$known" -type f -mtime +30 -delete
base=$({
    clang-tidy-19 --version
    cat .clang-tidy
    echo "$flags"
} | sha256sum | cut -c1-64)
export base

# shellcheck disable=SC2016 # expanded by the inner shell
find src -name '*.c' | sort | xargs -P "$(nproc)" -n 1 sh -c '
    # Comments stay in (-C), because NOLINT is one.
    key=$({ echo "$base $1"; clang-19 $flags -E -C "$1" 2>&1; } | sha256sum | cut -c1-64)
    [ ! -e "$known/$key" ] || exit 0
    if output=$(clang-tidy-19 -quiet "$1" -- $flags 2>/dev/null); then
        : >"$known/$key"
    else
        printf "%s\n" "$output"
        exit 1
    fi
' tidy

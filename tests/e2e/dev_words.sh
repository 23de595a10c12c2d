# ./dev: help, wrong words, and what it says when something is missing that it may not install.
set -eu
fail() {
    echo "dev_words: $*"
    exit 1
}
# expect CODE WORD…: runs ./dev with these, standard output in $TMPDIR/out, standard error in $TMPDIR/err.
expect() {
    wanted=$1
    shift
    code=0
    ./dev "$@" >"$TMPDIR/out" 2>"$TMPDIR/err" || code=$?
    [ "$code" = "$wanted" ] || fail "./dev $*: exit code $code, not $wanted: $(cat "$TMPDIR/err")"
}

expect 0 help
for word in build run test check bench fuzz asan tsan valgrind install; do
    grep -qw "$word" "$TMPDIR/out" || fail "help does not mention $word"
done
expect 2 biuld
grep -q "no such word: biuld" "$TMPDIR/err" || fail 'a wrong word is not named'
[ ! -s "$TMPDIR/out" ] || fail 'a wrong word prints to standard output'
expect 2 install --prefix
expect 2 install somewhere

# A person without rights and without any package.
mkdir "$TMPDIR/bin"
printf '#!/bin/sh\nexit 1\n' >"$TMPDIR/bin/dpkg-query"
printf '#!/bin/sh\nexit 1\n' >"$TMPDIR/bin/sudo"
printf '#!/bin/sh\necho 1000\n' >"$TMPDIR/bin/id"
printf '#!/bin/sh\necho "apt-get was called"\nexit 1\n' >"$TMPDIR/bin/apt-get"
chmod +x "$TMPDIR/bin/"*
PATH=$TMPDIR/bin:$PATH
export PATH
expect 1 build
grep -q 'run as root: apt-get install .*libyaml-dev' "$TMPDIR/err" || fail 'the missing package and the command are not named'
! grep -q 'apt-get was called' "$TMPDIR/out" "$TMPDIR/err" || fail 'apt-get was called without rights'

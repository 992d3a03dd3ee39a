#!/bin/sh
# whole.sh KILN FILE... - each file with all its kernels in one library: constants and optional arrays
# that the command asks for are given, and what it writes compiles without a warning.
set -u
kiln=$1 p=0 f=0
shift
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
for file; do
    name=whole_$(basename "$file" .kiln)
    set --
    n=0
    while ! "$kiln" build "$file" --targets cpu,sm_80 "$@" -o "$dir/$name" 2>"$dir/log" && [ $n -lt 12 ]; do
        n=$((n + 1))
        define=$(sed -n 's/.*nothing determines the constant `\([A-Za-z0-9_]*\)`.*/\1=16,64/p
            s/.*say which are given, as in -D \([A-Za-z0-9_]*=false\).*/\1/p' "$dir/log")
        [ -n "$define" ] || break
        set -- "$@" -D "$define"
    done
    [ -e "$dir/$name.c" ] && cc -std=c11 -O2 -DKL_NO_V4 -Wall -Wextra -Werror -c "$dir/$name.c" -o "$dir/o.o" 2>>"$dir/log" &&
        c++ -std=c++17 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -x c++ "$dir/$name.h" 2>>"$dir/log"
    if [ $? = 0 ]; then
        p=$((p + 1))
        echo "ok $file $*: $(wc -c <"$dir/$name.c") bytes"
    else
        f=$((f + 1))
        echo "FAIL $file $*"
        head -5 "$dir/log"
    fi
done
echo "$p passed, $f failed, 0 skipped"
[ $f = 0 ]

#!/bin/sh
# order.sh KILN OTHER FILE... - two builds of the command, by compilers that evaluate arguments in
# different orders (gcc from the last, clang from the first), write the same: the C and PTX of all
# kernels of each file, and the IR of a kernel with print and assert.
set -u
kiln=$1 other=$2 p=0 f=0
shift 2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/a" "$dir/b"

same() { # same WHAT FILE FILE
    if cmp -s "$2" "$3"; then
        p=$((p + 1))
    else
        f=$((f + 1))
        echo "FAIL $1 depends on the compiler that built kiln"
        diff "$2" "$3" | head -6
    fi
}

for file; do
    name=$(basename "$file" .kiln) n=0
    set --
    while ! "$kiln" build "$file" --targets cpu,sm_90 "$@" -o "$dir/a/$name" 2>"$dir/log" && [ $n -lt 12 ]; do
        n=$((n + 1)) # what the command asks for is given
        define=$(sed -n 's/.*nothing determines the constant `\([A-Za-z0-9_]*\)`.*/\1=16,64/p
            s/.*say which are given, as in -D \([A-Za-z0-9_]*=false\).*/\1/p' "$dir/log")
        [ -n "$define" ] || break
        set -- "$@" -D "$define"
    done
    [ -e "$dir/a/$name.c" ] || cp "$dir/log" "$dir/a/$name.c"
    "$other" build "$file" --targets cpu,sm_90 "$@" -o "$dir/b/$name" 2>"$dir/log" || cp "$dir/log" "$dir/b/$name.c"
    same "$file" "$dir/a/$name.c" "$dir/b/$name.c"
done

cat >"$dir/say.kiln" <<'K'
kernel say(i64 n, f32 y[n], const f32 x[n]) grid(cdiv(n, 64))
{
    i64 i = program_id(0) * 64;
    auto v = load(x[i:64]);
    assert(v > 0.0, "positive");
    print("{} and {} at {}", v, max(v), i);
    y[i:64] = v;
}
K
for k in a b; do
    "$kiln" emit "$dir/say.kiln" n=1000 'y=zeros(1000,f32)' 'x=zeros(1000,f32)' --opt 1 >"$dir/$k/say.ir" 2>&1
    kiln=$other
done
same "the IR of print and assert" "$dir/a/say.ir" "$dir/b/say.ir"
echo "$p passed, $f failed, 0 skipped"
[ $f = 0 ]

# The kernels of tests/check, on the interpreter and as PTX: what is found must be what the comments
# at their lines say, no more and no less.
want() { # FILE
    awk '{
        if (!match($0, "// expect ")) next
        n = split(substr($0, RSTART + RLENGTH), code, " ")
        for (i = 1; i <= n; i++) print NR, code[i]
    }' "$1" | sort
}
n=0
for f in "$SRC"/tests/check/*.kiln; do
    args=$(sed -n 's|^// args: ||p' "$f")
    for device in interp sim; do
        # shellcheck disable=SC2086
        "$KILN" check --device $device "$f" $args > out.txt 2> err.txt
        rc=$?
        sed -n 's/^[^ ]*:\([0-9]*\):[0-9]*: \([a-z]*\[K.*\)/\1 \2/p' out.txt | grep -v 'K1304\|K1701' |
            sort > said.$device
        sed -n 's/^[^ ]*:\([0-9]*\):[0-9]*: [a-z]*\[\(K[0-9]*\)\].*/\1 \2/p' out.txt | sort -u > got.txt
        want "$f" > want.txt
        if [ $rc -gt 1 ] || ! cmp -s got.txt want.txt; then
            echo "$device: $(basename "$f"): exit $rc"
            diff want.txt got.txt
            cat out.txt err.txt
        fi
    done
    # the same words, but for the bits of two orders, and which run it was that waits
    cmp -s said.interp said.sim || diff said.interp said.sim
    n=$((n + 1))
done
[ "$n" -ge 70 ] && echo "$n kernels"
# The library as PTX, which has the interpreter's checks, too: nothing, not even a warning.
for f in "$SRC"/kernels/*.kiln; do
    "$KILN" check --device sim "$f" > out.txt 2>&1 || cat out.txt
    tail -n 1 out.txt | grep -q ' 0 failed; 0 errors, 0 warnings, ' || cat out.txt
done

# Every source of the tree: kernels and what the library embeds have the form already; the others
# that parse get it in one step, and their syntax tree stays.  Silence is right.
"$KILN" fmt --check "$SRC"/kernels/*.kiln "$SRC"/src/lang/include/*.kiln || exit 1
cp -r "$SRC/tests" tree
bad=0 n=0
for f in $(find tree -name '*.kiln' | sort); do
    "$KILN" emit "$f" --stage ast >before 2>/dev/null || before=none
    cp "$f" old
    "$KILN" fmt "$f" 2>err
    rc=$?
    if [ $rc = 2 ]; then # an error in the source
        cmp -s "$f" old || { echo "$f: changed though it does not parse"; bad=1; }
        continue
    fi
    [ $rc = 0 ] || { echo "$f: status $rc"; cat err; bad=1; continue; }
    "$KILN" fmt --check "$f" >/dev/null 2>&1 || { echo "$f: not stable"; bad=1; }
    "$KILN" emit "$f" --stage ast >after 2>/dev/null
    cmp -s before after || { echo "$f: the tree differs"; bad=1; }
    n=$((n + 1))
done
[ $n -gt 50 ] || { echo "only $n sources"; bad=1; }
exit $bad

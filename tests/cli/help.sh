# Every help text, and that each fits a screen of 24 lines of 80 columns.  A text that does not
# fit is status 1, and takes the captured output away, so that no --update makes it a golden: run
# the script by hand to see which line it is.
bad=0
fits() {
    awk -v c="$1" 'length($0) > 80 { print c ": line " NR " is too long"; bad = 1 }
                   END { if (NR > 24) { print c ": too many lines"; bad = 1 } exit bad }' || bad=1
}
"$KILN" --help
for c in $("$KILN" --help | sed -n "s,^  \([a-z]*\) .*,\1,p"); do
    echo "== $c"
    "$KILN" $c --help
    "$KILN" help $c >a; "$KILN" $c --help >b; cmp a b
    fits $c <b
done
"$KILN" --help >b
fits kiln <b
"$KILN" --version | grep -c '^kiln [0-9]*\.[0-9]*\.[0-9]*$'
[ $bad = 0 ] || { rm -f .out; exit 1; }

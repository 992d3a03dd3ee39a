# Every help text, and that each fits a screen of 24 lines of 80 columns.
"$KILN" --help
for c in run check emit test doctor help; do
    echo "== $c"
    "$KILN" $c --help
    "$KILN" help $c >a; "$KILN" $c --help >b; cmp a b
    awk -v c=$c 'length($0) > 80 { print c ": line " NR " is too long" }
                 END { if (NR > 24) print c ": too many lines" }' b
done
"$KILN" --help | awk 'length($0) > 80 { print "line " NR " is too long" }
                      END { if (NR > 24) print "too many lines" }'
"$KILN" --version | grep -c '^kiln [0-9]*\.[0-9]*\.[0-9]*$'

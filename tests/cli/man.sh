# Manual pages: one for each command and for the language and the library; a command's page has
# exactly the options of its --help, in that order; kiln(3) has every function of the headers.
# Silence is right.
command -v scdoc >/dev/null || { echo "no scdoc" >&2; exit 77; }
mkdir man
(cd "$SRC" && KILN=$KILN sh tools/man.sh "$OLDPWD/man") || exit 1
(cd "$SRC" && sh tools/man.sh --list) | sort >want
ls man | sort | diff want - || exit 1
bad=0
for c in $("$KILN" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    "$KILN" $c --help | sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p' >help
    # of the page: lines of bold words that begin with an option
    sed -n '/^.SH OPTIONS/,/^.SH [^O]/p' man/kiln-$c.1 | sed 's/\\fB\|\\fR\|\\fI\|\\fP//g; s/\\-/-/g' |
        sed -n 's/^\(-., \)\{0,1\}\(--[a-z-]*\)\( .*\)\{0,1\}$/\2/p' >page
    test -s help && diff help page || { echo "kiln-$c(1)"; bad=1; }
    test -f "$SRC/docs/man/kiln-$c.1.scd" || { echo "docs/man/kiln-$c.1.scd is missing"; bad=1; }
    grep -q "kiln-$c" man/kiln.1 || { echo "kiln(1) lacks $c"; bad=1; }
done
sed 's/\\-/-/g' man/kiln.3 >three
for f in $(cat "$SRC"/include/*.h | sed -n 's/^KILN_API.*[ *]\(kiln_[a-z0-9_]*\)(.*/\1/p'); do
    grep -q "$f(" three || { echo "kiln(3) lacks $f"; bad=1; }
done
if command -v groff >/dev/null; then
    for p in man/*; do groff -man -ww -z -Kutf8 -Tutf8 $p 2>&1 | grep -v 'cannot.*break\|can.t break' ; done >log
    test -s log && { cat log; bad=1; }
fi
exit $bad

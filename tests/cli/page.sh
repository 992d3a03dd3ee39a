# Pages of diagnostics: every code that the list names has one.
"$KILN" help k0901; echo "rc $?"
grep -o '^DIAG(K[0-9]*' "$SRC/src/base/diag.def" | cut -c6- | while read c; do
    "$KILN" help $c >page || echo "$c has no page"
    test "$(wc -l <page)" -ge 5 || echo "$c: the page is short"
done

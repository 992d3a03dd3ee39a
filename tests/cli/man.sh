# The option section of the manual page is the one that the table gives.
"$KILN" help --man >want
sed -n '/^; options begin/,/^; options end/p' "$SRC/docs/man/kiln.1.scd" | sed '1d;$d' >have
diff want have || { echo "docs/man/kiln.1.scd: replace the lines between the marks by \`kiln help --man\`"; exit 1; }
if command -v scdoc >/dev/null; then scdoc <"$SRC/docs/man/kiln.1.scd" >page && test -s page; fi

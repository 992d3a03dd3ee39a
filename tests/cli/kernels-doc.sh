# docs/kernels.md names every file of kernels/, every kernel in its file's row, and every function of
# kiln_nn.h that launches one.  Silence is right.
doc=$SRC/docs/kernels.md bad=0 n=0
for f in "$SRC"/kernels/*.kiln; do
    name=$(basename "$f" .kiln)
    row=$(grep "^| \`$name\` |" "$doc") || { echo "$name has no row"; bad=1; continue; }
    for k in $(sed -n 's/^kernel \([a-z0-9_]*\).*/\1/p' "$f" | grep -v '_\{0,1\}reference$'); do
        case $row in
        *"\`$k\`"*) n=$((n + 1)) ;;
        *) echo "the row of $name does not name $k"; bad=1 ;;
        esac
    done
done
for k in $(sed -n 's/^| `\([a-z0-9_]*\)` |.*/\1/p' "$doc"); do
    [ -f "$SRC/kernels/$k.kiln" ] || { echo "there is no kernels/$k.kiln"; bad=1; }
done
for k in $(grep -o 'kiln_nn_[a-z0-9_]*(' "$SRC/include/kiln_nn.h" | tr -d '(' | sort -u); do
    case $k in
    *_workspace | kiln_nn_create | kiln_nn_free) continue ;;
    esac
    grep -q "\`$k\`" "$doc" || { echo "$k is not named"; bad=1; }
done
for k in $(grep -o 'kiln_nn_[a-z0-9_]*' "$doc" | sort -u); do
    grep -q "$k(" "$SRC/include/kiln_nn.h" || { echo "there is no $k"; bad=1; }
done
[ $n -gt 80 ] || { echo "only $n kernels"; bad=1; }
exit $bad

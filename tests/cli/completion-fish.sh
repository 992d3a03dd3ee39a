# Completion in fish.
command -v fish >/dev/null || { echo "no fish" >&2; exit 77; }
mkdir bin
ln -s "$KILN" bin/kiln
"$KILN" completion fish >kiln.fish
cp "$SRC/kernels/softmax.kiln" one.kiln
cat >ask <<'B'
source ./kiln.fish
for line in "kiln ch" "kiln run --devi" "kiln run --device c" "kiln emit --stage p" \
    "kiln emit one.kiln --arch sm_12" "kiln run one.kiln:softmax_c" "kiln run one.kiln:softmax B" \
    "kiln completion " "kiln help doc"
    echo "$line ->" (complete -C $line | string replace -r '\t.*' '')
end
B
PATH=$PWD/bin:$PATH fish --no-config ask
for c in $("$KILN" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'); do
    "$KILN" $c --help | sed -n 's/^  \(-.,\|   \) \(--[a-z-]*\).*/\2/p' | sort >help
    sed -n "s/^complete -c kiln -n '__kiln_is $c' -l \([a-z-]*\).*/--\1/p" kiln.fish | sort | diff help - ||
        echo "kiln $c"
done

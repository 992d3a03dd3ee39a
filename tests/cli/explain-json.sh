# kiln explain --format json: the whole of one kernel, and that docs/explain.md has every key.
cat >k.kiln <<'K'
kernel scale(i64 n, type T = f32, T y[n], const T x[n], constexpr i64 B = 512) grid(cdiv(n, B))
{
    i64 i = program_id(0) * B;
    y[i:B] = 2 * x[i:B];
}
K
printf '#!/bin/sh\necho "Compiling entry function %skiln_scale%s"\necho "    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads"\necho "Used 40 registers, used 1 barriers"\n' "'" "'" >tool
chmod +x tool
# what kinds of instructions there are, and how many, is the back end's business
"$KILN" explain k.kiln x=1000:f32 --gpu H200 --format json --registers $PWD/tool --measure sim |
    sed '/"instructions": {/,/}/d; /"instructions":/d; /"branches":/d'
"$KILN" explain k.kiln x=1000:f32 --arch sm_86 --format json --registers none >b
for key in '"gpu": null' '"from": null' '"occupancy": null' '"waves": null' '"executor": null'; do
    grep -qF "$key" b && echo "$key"
done
"$KILN" explain k.kiln x=1000:q --format json --registers none 2>/dev/null; echo "rc $?"
k=$SRC/kernels
{
    "$KILN" explain k.kiln x=1000:f32 --gpu H200 --format json --registers $PWD/tool --measure sim
    "$KILN" explain $k/transpose.kiln:transpose x=128x128:f32 --format json --registers none --no-tune
    "$KILN" explain $k/matmul.kiln:matmul a=64x64:bf16 b=64x64:bf16 --format json --registers none --no-tune
    "$KILN" explain $k/histogram.kiln x=1000:i32 --format json --registers none --no-tune 2>/dev/null
} | sed '/"instructions": {/,/}/d' | sed -n 's/^ *"\([a-z0-9_]*\)":.*/\1/p' | sort -u >keys
echo "keys that docs/explain.md lacks:"
while read -r key; do
    grep -q "\`$key\`" "$SRC/docs/explain.md" || echo "  $key"
done <keys

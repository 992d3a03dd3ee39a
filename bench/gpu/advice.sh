#!/bin/sh
# advice.sh [OUT] - on a machine with an NVIDIA GPU: kernels that `kiln explain` has notes for, beside what
# the notes advise, and kernels whose registers spilled, with and without the limit of pressure.c.  Some
# two minutes.  OUT (default: advice-gpu) receives what bench and explain said.
#
# Environment: O (build folder; its kiln is built), DEVICE, SECONDS_EACH (default 2), OLD (a kiln without
# the limit; if not given it is built below OUT).
set -u
OUT=${1:-advice-gpu}
O=${O:-build}
KILN=${KILN:-$O/kiln}
DEVICE=cuda:${DEVICE:-0}
K=bench/gpu/advice.kiln
mkdir -p "$OUT" || exit 1
failed=0

row() { # row KILN LABEL KERNEL ARGUMENT...: the median, and the share of a copy
    kiln=$1 label=$2 kernel=$3
    shift 3
    "$kiln" bench "$K:$kernel" "$@" --device "$DEVICE" --timeout "${SECONDS_EACH:-2}" >"$OUT/$label.txt" 2>&1 ||
        { failed=1; tail -3 "$OUT/$label.txt"; }
    printf '%-26s %s\n' "$label" "$(grep "^$kernel/" "$OUT/$label.txt" | head -1)"
}
say() { # say KERNEL ARGUMENT...: the notes and the gains that explain promises
    kernel=$1
    shift
    "$KILN" explain "$K:$kernel" "$@" --gpu here 2>&1 | grep -E 'note\[K2(104|301|101)|expected gain.*(time|sectors)' |
        sed 's/^/    explain: /' | head -4
}

echo "label                      kernel, shape, cold, 95% CI, noise, min, p95, n, GB/s, % copy, % read, warm"
echo "== K2301: blocks of the grid that go round (a warp on each SM); 16 and 64 times as many"
say columns x=8192x8448
row "$KILN" columns_1 columns x=8192x8448
row "$KILN" columns_16 columns x=8192x8448 parts=16
row "$KILN" columns_64 columns x=8192x8448 parts=64
echo "== K2301: all warps fit, with 4 bytes each; with 16"
say scale x=67108864
row "$KILN" scale_4 scale x=67108864
row "$KILN" scale_16 scale x=67108864 B=512
row "$KILN" scale_32 scale x=67108864 B=1024
echo "== no K2101: shifted sections, of which a block asks for sectors again; two elements a lane, and one, are slower"
say stencil x=8192x8192
row "$KILN" stencil_16x64 stencil x=8192x8192
row "$KILN" stencil_4x64_warps_8 stencil x=8192x8192 BH=4 -D warps=8
row "$KILN" stencil_8x64_warps_8 stencil x=8192x8192 BH=8 -D warps=8
echo "== K2104: 256 elements; 64 copies and their sum (the numbers are random, then all alike)"
say count x=16777216:u8
row "$KILN" count count 'x=randint(16777216,u8,256)'
row "$KILN" count_good count_good 'x=randint(16777216,u8,256)' copies=64
row "$KILN" count_join count_join h=64x256
row "$KILN" count_zeros count 'x=zeros(16777216,u8)'
row "$KILN" count_good_zeros count_good 'x=zeros(16777216,u8)' copies=64

echo "== registers: the limit as it is; and without what lives at once (a second build)"
old=${OLD:-$OUT/old/build/kiln}
[ -x "$old" ] || {
    rm -rf "$OUT/old" && mkdir -p "$OUT/old" &&
        cp -r Makefile src include kernels docs tools tests bench python "$OUT/old" &&
        sed -i 's/uint32_t held = kl_px_pressure(g) + 20;/uint32_t held = 0;/; s/if (scalar && /if (0 \&\& scalar \&\& /' \
            "$OUT/old/src/gen/ptx/emit.c" &&
        make -C "$OUT/old" -j"$(getconf _NPROCESSORS_ONLN)" O=build build/kiln >"$OUT/old.log" 2>&1
}
if [ -x "$old" ]; then
    for case in "columns x=8192x67584" "stencil x=8192x8192" "norm x=65536x1001:bf16" "norm x=65536x1001:f32"; do
        # shellcheck disable=SC2086
        set -- $case
        name=$(echo "$case" | tr ' =:' '___')
        row "$old" "${name}_before" "$@"
        row "$KILN" "${name}_now" "$@"
    done
else
    tail -3 "$OUT/old.log"
    failed=1
fi
rm -rf "$OUT/old"
exit $failed

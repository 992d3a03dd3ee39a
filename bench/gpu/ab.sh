#!/bin/sh
# ab.sh OLD NEW [OUT] - on a machine with an NVIDIA GPU: the same kernels from two build folders, in the
# turns old, new, new, old, and one table: the smaller of each one's two medians on cold data, registers
# and bytes of local memory of a thread.  Both folders need kiln and bench/gpu/kernels.  OUT (default:
# bench-gpu) receives what they printed.  Environment: DEVICE, ONLY (text in a case), PARTS (1: the cases of
# kernels.c, 2: other kernels by `kiln bench`; both are the default, each takes less than a minute).
set -u
PARTS=${PARTS:-1 2}
OLD=${1:?a build folder} NEW=${2:?a second build folder} OUT=${3:-bench-gpu}
DEVICE=${DEVICE:-0}
mkdir -p "$OUT" || exit 1
for b in "$OLD" "$NEW"; do
    if [ ! -x "$b/bench/gpu/kernels" ] || [ ! -x "$b/kiln" ]; then
        echo "ab.sh: $b has no kiln or no bench/gpu/kernels" >&2
        exit 3
    fi
done
cases() {
    for t in f32 bf16; do
        for c in 'softmax 4096x4096' 'softmax 16384x1000' 'softmax 8192x16384' 'layernorm 32768x1024' \
            'layernorm 16384x8192' 'rowsum 4096x4096'; do
            echo "$c $t"
        done
    done | grep -F -- "${ONLY:-}"
}
part() { case " $PARTS " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
others() {
    cat <<'K'
loss.kiln:log_softmax x=8192x4096:f32
loss.kiln:cross_entropy x=8192x4096:f32 label=8192:i64
groupnorm.kiln:groupnorm x=32x256x4096:f32 gamma=256:f32 beta=256:f32 groups=32
norm_backward.kiln:norm_backward dy=8192x4096:f32 x=8192x4096:f32 gamma=4096:f32 mean=8192:f32 rstd=8192:f32
activation.kiln:act_halves x=8192x8192:f32
gemm.kiln:gemm a=4x1024x1024:f32 b=4x1024x1024:f32
gdn.kiln:gdn_recurrent q=512x16x128:f32 k=512x16x128:f32 v=512x16x128:f32 g=512x16:f32 beta=512x16:f32
gdn.kiln:gdn_recurrent q=512x16x128:bf16 k=512x16x128:bf16 v=512x16x128:bf16 g=512x16:f32 beta=512x16:f32
K
}
# of BUILD: lines "case|microseconds|registers|local bytes"
of() {
    part 1 && cases | "$1/bench/gpu/kernels" --device "$DEVICE" --serve 2>>"$OUT/ab.err" | tee -a "$OUT/ab.jsonl" |
        sed -n 's/^{"case": "\([^"]*\)".*"variant": "\([^"]*\)", "ms": \([0-9.]*\),.*"registers": \([0-9]*\), "spill_bytes": \([0-9]*\),.*/\1 \2|\3|\4|\5/p' |
        awk -F'|' '{ printf "%s|%.3f|%s|%s\n", $1, 1000 * $2, $3, $4 }'
    part 2 && others | grep -F -- "${ONLY:-}" | while read -r kernel args; do
        # shellcheck disable=SC2086
        "$1/kiln" bench "kernels/$kernel" $args --device "cuda:$DEVICE" --measure cold --timeout 0.5 --no-tune \
            --format csv 2>>"$OUT/ab.err" </dev/null | tee -a "$OUT/ab.csv" |
            awk -F, '{ n = split($0, q, "\""); $0 = ""; t = q[1] # commas within quotes are no ends of fields
                    for (i = 2; i <= n; i++) { if (i % 2 == 0) gsub(",", " ", q[i]); t = t q[i] }; $0 = t }
                NR == 1 { for (i = 1; i <= NF; i++) if ($i == "median_ms") k = i; next }
                k && $k != "" { printf "%s %s|%.3f||\n", $1, $3, 1000 * $k }'
    done
}
rm -f "$OUT/ab.err" "$OUT/ab.jsonl" "$OUT/ab.csv"
for turn in old new new old; do
    [ "$turn" = old ] && b=$OLD || b=$NEW
    of "$b" | sed "s/^/$turn|/"
done >"$OUT/ab.txt"
awk -F'|' '
    !($2 in seen) { seen[$2] = 1; name[n++] = $2 }
    { k = $1 SUBSEP $2; if (!(k in us) || $3 < us[k]) us[k] = $3; r[k] = $4; s[k] = $5 }
    END {
        printf "%-60s %10s %10s %8s  %s\n", "case", "old us", "new us", "change", "registers, local bytes"
        for (i = 0; i < n; i++) {
            o = "old" SUBSEP name[i]; w = "new" SUBSEP name[i]
            if (!(o in us) || !(w in us)) { printf "%-60s only one of them ran\n", name[i]; continue }
            printf "%-60s %10.2f %10.2f %+7.1f%%  %s\n", name[i], us[o], us[w], 100 * (us[w] / us[o] - 1),
                r[o] == "" ? "" : r[o] ", " s[o] " -> " r[w] ", " s[w]
        }
    }' "$OUT/ab.txt"
[ -s "$OUT/ab.err" ] && sed -n '1,10p' "$OUT/ab.err" >&2
exit 0

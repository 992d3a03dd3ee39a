#!/bin/sh
# tune.sh [OUT] - `kiln tune` on a machine with an NVIDIA GPU: softmax, transpose, matmul; default
# beside tuned, in about a minute.  OUT (default: tune-gpu) receives what was said and the files.
#
# Environment: O (build folder), DEVICE, BUDGET (seconds to measure for each case, default 12), ONLY
# (some of the names below).
set -u
OUT=${1:-tune-gpu}
O=${O:-build}
DEVICE=cuda:${DEVICE:-0}
KILN=${KILN:-$O/kiln}
mkdir -p "$OUT" || exit 1
failed=0

tune() { # tune NAME ARGUMENT...
    name=$1
    shift
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    "$KILN" tune "$@" --device "$DEVICE" --budget "${BUDGET:-12}" -v -o "$OUT/$name.tune" \
        >"$OUT/$name.txt" 2>"$OUT/$name.err" || { failed=1; head -5 "$OUT/$name.err"; }
    grep -v '^    ' "$OUT/$name.txt"
    grep warning "$OUT/$name.err"
    return 0
}

tune softmax kernels/softmax.kiln:softmax x=16384x1000:f32
tune transpose kernels/transpose.kiln:transpose x=10000x7000:f32
tune matmul kernels/matmul.kiln:matmul a=4096x4096:bf16 b=4096x4096:bf16
exit $failed

#!/bin/sh
# bench.sh [OUT] - `kiln bench` on a machine with an NVIDIA GPU: the issue-sized cases beside PyTorch,
# Triton and cuBLAS, the CPU's back end, end to end.  OUT (default: bench-gpu) receives a report in text
# and JSON for each.
#
# Environment: O (build folder), DEVICE, TIMEOUT (seconds a row, default 3), ONLY (some of the names
# below), KILN_CUBLAS (the path of libcublas.so), KILN_PEER_COMPILE=0 (no torch.compile).
set -u
OUT=${1:-bench-gpu}
O=${O:-build}
DEVICE=cuda:${DEVICE:-0}
TIMEOUT=${TIMEOUT:-3}
KILN=${KILN:-$O/kiln}
mkdir -p "$OUT" || exit 1
cublas=$O/bench/peers/cublas.so
[ -e "$cublas" ] || {
    mkdir -p "$(dirname "$cublas")"
    ${CC:-cc} -O2 -shared -fPIC -Iinclude bench/peers/cublas.c -o "$cublas" -ldl || cublas=
}
if [ -z "${KILN_CUBLAS:-}" ]; then # PyTorch brings one
    KILN_CUBLAS=$(python3 -c 'import glob, os, nvidia
print(*[f for p in nvidia.__path__ for f in sorted(glob.glob(os.path.join(p, "*", "lib", "libcublas.so.*")))][-1:])' \
        2>/dev/null)
    [ -z "$KILN_CUBLAS" ] || export KILN_CUBLAS
fi
peers="--peer bench/peers/torch_peer.py --peer bench/peers/triton_peer.py"
failed=0

# bench NAME ARGUMENT...: a report under that name
bench() {
    name=$1
    shift
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    echo "== $name"
    "$KILN" bench "$@" --device "${ON:-$DEVICE}" --timeout "$TIMEOUT" --save "$OUT/$name.json" -o "$OUT/$name.txt" \
        2>"$OUT/$name.err" || { failed=1; head -5 "$OUT/$name.err"; }
    cat "$OUT/$name.txt" 2>/dev/null
}

types="--sweep T=f32,bf16"
bench softmax kernels/softmax.kiln:softmax 'x={r}x{c}:{T}' --sweep r,c=4096x4096,16384x1000,8192x16384 \
    $types $peers
bench gelu kernels/gelu.kiln:tanh_form 'x={n}:{T}' --sweep n=67108864 $types -D BLOCK=1024,4096 $peers
bench norms kernels/layernorm.kiln:layernorm 'x=16384x4096:{T}' 'gamma=4096:{T}' 'beta=4096:{T}' $types $peers
bench rms kernels/rmsnorm.kiln:rmsnorm 'x=16384x4096:{T}' 'gamma=4096:{T}' $types $peers
bench rowsum kernels/rowsum.kiln:rowsum 'x=8192x16384:{T}' $types -D BLOCK=2048,8192 $peers
bench transpose kernels/transpose.kiln:transpose 'x={m}x{n}:f32' --sweep m,n=8192x8192,10000x7000 \
    -D BM=32,64 $peers
bench matmul kernels/matmul.kiln:matmul 'a={n}x{n}:{T}' 'b={n}x{n}:{T}' --sweep n=1024,4096 $types \
    --flops '2*M*N*K' $peers ${cublas:+--peer "$cublas"}
bench small kernels/softmax.kiln:softmax 'x={n}x{n}:f32' --sweep n=64:1024:*2 $peers
ON=cpu,$DEVICE bench cpu-gpu kernels/softmax.kiln:softmax x=2048x2048:f32 --measure cold,warm,ceilings,end-to-end
exit $failed

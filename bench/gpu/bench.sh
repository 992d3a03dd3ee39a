#!/bin/sh
# bench.sh [OUT] - `kiln bench` on a machine with an NVIDIA GPU: the issue-sized cases beside PyTorch,
# Triton, cuBLAS and cuDNN, the CPU's back end, end to end.  OUT (default: bench-gpu) receives a report
# in text and JSON for each, and times.txt: the seconds that each took.  All of it is meant to take
# less than 300 s; PyTorch and Triton are started once for all of it (bench/peers/keep.py).
#
# Environment: O (build folder), DEVICE (number of the GPU, or a device of kiln), TIMEOUT (seconds a
# row, default 0.25: some hundred samples of a launch below a millisecond), LIMIT (seconds after which
# nothing more is begun, default 280), ONLY (some of the names below), KILN_CUBLAS, KILN_CUDNN (paths of
# libcublas.so, libcudnn.so), KILN_PEER_COMPILE=0 (no torch.compile), SMALL=1 (tiny arrays, to try the
# script itself).
set -u
OUT=${1:-bench-gpu}
O=${O:-build}
TIMEOUT=${TIMEOUT:-0.25}
LIMIT=${LIMIT:-280}
KILN=${KILN:-$O/kiln}
case ${DEVICE:-0} in [0-9]*) DEVICE=cuda:${DEVICE:-0} ;; esac
mkdir -p "$OUT" || exit 1
began=$(date +%s)
: >"$OUT/times.txt"

# ---- peers ----

# library NAME: bench/peers/NAME.c, built where it is not yet, or older
library() {
    so=$O/bench/peers/$1.so
    if [ ! -e "$so" ] || [ "bench/peers/$1.c" -nt "$so" ]; then
        mkdir -p "$(dirname "$so")"
        ${CC:-cc} -O2 -shared -fPIC -Iinclude "bench/peers/$1.c" -o "$so.new" -ldl && mv "$so.new" "$so"
    fi
    [ ! -e "$so" ] || echo "--peer $so"
}
# PyTorch brings the libraries of NVIDIA; they load each other by name
nvidia=$(python3 -c 'import glob, os, nvidia
print(":".join(sorted({d for p in nvidia.__path__ for d in glob.glob(os.path.join(p, "*", "lib"))})))' 2>/dev/null)
# newest NAME: the library of that name there
newest() {
    for d in $(echo "$nvidia" | tr : ' '); do ls "$d/$1".so.* 2>/dev/null; done | tail -1
}
[ -n "${KILN_CUBLAS:-}" ] || KILN_CUBLAS=$(newest libcublas)
[ -n "${KILN_CUDNN:-}" ] || KILN_CUDNN=$(newest libcudnn)
export KILN_CUBLAS KILN_CUDNN
[ -z "$nvidia" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$nvidia"
cublas=$(library cublas) cudnn=$(library cudnn)
# one kernel is compiled at a time: a pool of processes for that takes longer to start than it saves
export TORCHINDUCTOR_COMPILE_THREADS=1
export KILN_PEER_TIMEOUT="${KILN_PEER_TIMEOUT:-60}"

run=$(mktemp -d /tmp/kiln-bench-XXXXXX) || exit 1
held=
trap '[ -z "$held" ] || kill $held 2>/dev/null; wait; rm -rf "$run"' EXIT
trap 'exit 130' INT TERM
for p in torch triton; do
    python3 bench/peers/keep.py hold "$run/$p" python3 "bench/peers/${p}_peer.py" 2>"$OUT/$p.err" &
    held="$held $!"
done
for i in 1 2 3 4 5 6 7 8 9 10; do
    [ -x "$run/torch" ] && [ -x "$run/triton" ] && break
    sleep 0.3
done
kept() { # the peer that is kept, or a new one for each run
    if [ -x "$run/$1" ]; then echo "--peer $run/$1"; else echo "--peer bench/peers/${1}_peer.py"; fi
}
torch=$(kept torch) triton=$(kept triton)

# ---- cases ----

failed=0
# bench NAME ARGUMENT...: a report under that name
bench() {
    name=$1
    shift
    case " ${ONLY:-$name} " in *" $name "*) ;; *) return 0 ;; esac
    t0=$(date +%s)
    if [ $((t0 - began)) -ge "$LIMIT" ]; then
        echo "$name not begun: $LIMIT s are over" >>"$OUT/times.txt"
        failed=1
        return 0
    fi
    echo "== $name"
    timeout 150 "$KILN" bench "$@" --device "${ON:-$DEVICE}" --timeout "$TIMEOUT" --save "$OUT/$name.json" \
        -o "$OUT/$name.txt" 2>"$OUT/$name.err"
    rc=$?
    [ $rc = 0 ] || { failed=1; head -5 "$OUT/$name.err"; }
    cat "$OUT/$name.txt" 2>/dev/null
    awk -v name="$name" -v s=$(($(date +%s) - t0)) -v rc=$rc '
        /^[0-9]+ cases?, / { cases = $1; rows = $3 }
        END { printf "%-10s %4d s %4d cases %4d rows  exit %d\n", name, s, cases, rows, rc }' \
        "$OUT/$name.txt" 2>/dev/null >>"$OUT/times.txt"
}

types="--sweep T=f32,bf16"
rows=4096x4096,16384x1000,8192x16384 n=67108864 wide=16384x4096 cols=4096 sums=8192x16384
square=8192x8192,10000x7000 products=1024,4096 small=64:1024:*4 image=16x64x56x56 channels=64 pooled=16x64x112x112
if [ "${SMALL:-0}" = 1 ]; then
    rows=16x64,8x100 n=5000 wide=16x128 cols=128 sums=16x300 square=64x64,50x70 products=64 small=16:64:*4
    image=2x16x14x14 channels=16 pooled=2x8x15x15
fi
bench softmax kernels/softmax.kiln:softmax 'x={r}x{c}:{T}' --sweep r,c=$rows $types $torch $triton $cudnn
bench gelu kernels/gelu.kiln:tanh_form 'x={n}:{T}' --sweep n=$n $types -D BLOCK=1024,4096 $torch $triton
bench norms kernels/layernorm.kiln:layernorm "x=$wide:{T}" "gamma=$cols:{T}" "beta=$cols:{T}" $types $torch $triton
bench rms kernels/rmsnorm.kiln:rmsnorm "x=$wide:{T}" "gamma=$cols:{T}" $types $torch $triton
bench matmul kernels/matmul.kiln:matmul 'a={n}x{n}:{T}' 'b={n}x{n}:{T}' --sweep n=$products $types \
    --flops '2*M*N*K' $torch $triton $cublas
bench conv kernels/conv.kiln:conv2d "x=$image:{T}" "w=64x$channels"x3x3:{T} PH=1 PW=1 $types \
    --flops '2*N*O*OH*OW*C*KH*KW' $torch $cudnn
bench pool kernels/pool.kiln:pool "x=$pooled:{T}" -D KH=3 -D SH=2 PH=1 PW=1 $types $torch $cudnn
bench rowsum kernels/rowsum.kiln:rowsum "x=$sums:{T}" $types -D BLOCK=2048,8192 $torch $triton
bench transpose kernels/transpose.kiln:transpose 'x={m}x{n}:f32' --sweep m,n=$square -D BM=32,64 $torch $triton
bench small kernels/softmax.kiln:softmax 'x={n}x{n}:f32' --sweep n=$small $torch $triton $cudnn
ON=cpu,$DEVICE bench cpu-gpu kernels/softmax.kiln:softmax "x=${rows%%,*}:f32" \
    --measure cold,warm,ceilings,end-to-end
echo "== seconds, of $(($(date +%s) - began)) in all"
cat "$OUT/times.txt"
exit $failed

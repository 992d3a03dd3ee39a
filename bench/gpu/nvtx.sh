#!/bin/sh
# nvtx.sh [OUT] - on a machine with an NVIDIA GPU and Nsight Compute: does the profiler see the ranges
# that kiln pushes around its launches?  A run of softmax and rowsum is profiled with filters by range;
# one line a filter says how many launches should pass it and how many did.
#
# Needs kiln (O: where) and the folder kernels.  OUT (default: bench-gpu) receives the tables of ncu and
# what it said (nvtx-*.log).  Environment: O, DEVICE, NCU, SECONDS_RUN (25: the limit of one run).
# Takes about half a minute; exits with 1 if a line is not right.
set -u
OUT=${1:-bench-gpu}
O=${O:-build}
NCU=${NCU:-$(command -v ncu || ls /usr/local/cuda*/bin/ncu /opt/nvidia/nsight-compute/*/ncu 2>/dev/null | head -1)}
mkdir -p "$OUT/nvtx-cache" || exit 1
[ -n "$NCU" ] || { echo "no ncu here"; echo "0 passed, 0 failed, 1 skipped"; exit 0; }
passed=0 failed=0

traced() { # traced COMMAND...: three launches of each kernel under it
    timeout -k 5 "${SECONDS_RUN:-25}" "$@" "$O/kiln" trace kernels/softmax.kiln:softmax \
        'x=randn(64x1000,f32)' --device "cuda:${DEVICE:-0}" --cache-dir "$OUT/nvtx-cache" --no-tune \
        --repeat 3 --then kernels/rowsum.kiln:rowsum x=@y
}

# seen WANT WHAT [OPTION...]: launches that pass the filters.
seen() {
    want=$1 what=$2
    shift 2
    log=$OUT/nvtx-$((passed + failed)).log
    traced "$NCU" --metrics gpu__time_duration.sum --csv --page raw --clock-control none \
        --cache-control none --nvtx "$@" >"$log" 2>&1
    rc=$?
    # the table of ncu begins with a line of names, and a launch is a line that begins with a number
    got=$(grep -cE '^"[0-9]+",' "$log")
    # where nothing passes, ncu may end as it likes, but not with an error
    [ "$want" != 0 ] || grep -q '^==ERROR==' "$log" || rc=0
    if [ "$got" = "$want" ] && [ $rc = 0 ]; then
        how=ok passed=$((passed + 1))
    else
        how=WRONG failed=$((failed + 1))
        [ $rc = 0 ] || how="WRONG (exit status $rc)"
    fi
    printf '%-58s %6s %6s  %s\n' "$what" "$want" "$got" "$how"
    [ "$how" = ok ] || grep -E '^==(ERROR|WARNING)|kiln: ' "$log" | head -3 | cut -c1-200 | sed 's/^/    /'
}

if ! traced env >"$OUT/nvtx-plain.log" 2>&1; then
    echo "kiln trace fails by itself:"
    tail -3 "$OUT/nvtx-plain.log"
    echo "0 passed, 1 failed"
    exit 1
fi
"$NCU" --version | tail -1
"$NCU" --nvtx env 2>/dev/null | grep '^NVTX_INJECTION' | head -2 || echo "ncu sets no NVTX_INJECTION64_PATH"
printf '%-58s %6s %6s\n' "filter" "should" "did"
shape='x=64x1000:f32 y=64x1000:f32'
seen 6 "none: three launches of two kernels"
seen 3 "kiln@softmax/           domain and kernel" --nvtx-include 'kiln@softmax/'
seen 3 "kiln@rowsum/" --nvtx-include 'kiln@rowsum/'
seen 3 "kiln@softmax/$shape]" --nvtx-include "kiln@softmax/$shape]"
seen 0 "the same with 65 rows" --nvtx-include "kiln@softmax/x=65x1000:f32 y=65x1000:f32]"
seen 6 "regex:kiln@(softmax|rowsum)/" --nvtx-include 'regex:kiln@(softmax|rowsum)/'
seen 3 "all but kiln@softmax/" --nvtx-exclude 'kiln@softmax/'
seen 0 "softmax/                not without the domain" --nvtx-include 'softmax/'
seen 0 "kiln@softmax            push and pop, not start and end" --nvtx-include 'kiln@softmax'
# what ncu writes beside a launch
sed -n '/^"ID"/,$p' "$OUT/nvtx-0.log" | head -3 | tr ',' '\n' | grep -iE 'kiln|softmax|x=64' | head -4 |
    sed 's/^/    said of the first launch: /'
rm -rf "$OUT/nvtx-cache"
echo "$passed passed, $failed failed"
[ $failed = 0 ]

#!/bin/sh
# latency.sh [OUT] - latency of memory and of the L2 cache, unloaded and loaded, and what must be under
# way: the columns `latency`, `unloaded` and `l2_read` of src/model/gpu.def.  Twice, since the first run
# finds clocks low.  OUT (default: bench-gpu) receives latency.txt.  Environment: O (build folder), DEVICE.
set -u
OUT=${1:-bench-gpu}
O=${O:-build}
mkdir -p "$OUT" || exit 1
rc=0
for run in 1 2; do
    echo "== run $run"
    timeout -k 5 55 "$O/bench/gpu/latency" --device "${DEVICE:-0}" || rc=1
done 2>&1 | tee "$OUT/latency.txt"
grep -q '^gpu.def:' "$OUT/latency.txt" || rc=1
exit $rc

#!/bin/sh
# run.sh [OUT] - on a machine with an NVIDIA GPU: build, test on the device, measure.
#
# Needs a C compiler, make, the driver; for the peers python3 with torch (and triton).  No CUDA
# toolkit.  OUT (default: bench-gpu) receives the logs, host.jsonl, results.jsonl, summary.json.
# Environment: O (build folder), ONLY (cases whose name holds this text), TURNS, SECONDS_LEFT (for
# the cases), STEPS (some of: build test host peers), DEVICE.
set -u
OUT=${1:-bench-gpu}
O=${O:-build}
STEPS=${STEPS:-build test host peers}
DEVICE=${DEVICE:-0}
CC=${CC:-cc}
mkdir -p "$OUT" || exit 1
step() { case " $STEPS " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
failed=0

if step build; then
    progs="$O/bench/gpu/kernels $O/bench/gpu/launch $O/tests/compile-times"
    # where jansson (for the command line) is not installed, the library is enough for the figures
    make -j"$(getconf _NPROCESSORS_ONLN)" O="$O" all $progs >"$OUT/build.log" 2>&1 ||
        make -j"$(getconf _NPROCESSORS_ONLN)" O="$O" "$O/libkiln.a" $progs >>"$OUT/build.log" 2>&1 || {
        tail -20 "$OUT/build.log"
        exit 1
    }
fi
if command -v nvidia-smi >/dev/null; then
    nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,power.limit --format=csv
fi >"$OUT/machine.txt" 2>&1
cat "$OUT/machine.txt"
[ -x "$O/kiln" ] && "$O/kiln" doctor | tee -a "$OUT/machine.txt"

if step test && [ -x "$O/kiln" ]; then
    for f in kernels/*.kiln; do
        echo "== $f"
        "$O/kiln" test "$f" --device "cuda:$DEVICE"
    done >"$OUT/test.log" 2>&1 || failed=1
    grep -E 'FAIL|error' "$OUT/test.log" | head -40
    awk '/ passed, / { p += $1; f += $3; s += $5 }
         END { print p + 0 " passed, " f + 0 " failed, " s + 0 " skipped" }' "$OUT/test.log"
    grep -qE '^FAIL|error' "$OUT/test.log" && failed=1
fi
if step host; then
    python3 bench/gpu/host.py --build "$O" --out "$OUT" --device "$DEVICE" 2>"$OUT/host.err" ||
        failed=1
    head -20 "$OUT/host.err"
    python3 bench/gpu/report.py "$OUT" host | sed -n '/^| 19/p; /^| [34] /p'
fi
if step peers; then
    python3 bench/gpu/peers.py --build "$O" --out "$OUT" --device "$DEVICE" --only "${ONLY:-}" \
        --turns "${TURNS:-2}" --seconds "${SECONDS_LEFT:-100000}" 2>"$OUT/peers.err" || failed=1
    head -20 "$OUT/peers.err"
fi
exit $failed
